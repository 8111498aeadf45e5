// Operations on flat ranges: AdamW, the norm's blocks, the shard tree's add, and
// the loop that measures a core's peak.

static void adamw(float *p, const float *g, float *m, float *v, int64_t n, const ddp_adamw *a) {
  vf b1 = vset(a->beta1), b2 = vset(a->beta2), c1 = vset(1 - a->beta1), c2 = vset(1 - a->beta2);
  vf scale = vset(a->grad_scale), step = vset(a->lr / a->correction1), eps = vset(a->eps);
  vf root = vset(1.0f / sqrtf(a->correction2)), shrink = vset(a->lr * a->decay);
  for (int64_t i = 0; i < n; i += VL) {
    int k = n - i < VL ? (int)(n - i) : VL;
    vf grad = vloadn(g + i, k) * scale, x = vloadn(p + i, k);
    vf first = b1 * vloadn(m + i, k) + c1 * grad, second = b2 * vloadn(v + i, k) + c2 * (grad * grad);
    vstoren(m + i, first, k);
    vstoren(v + i, second, k);
    vstoren(p + i, x - step * first / (vsqrt(second) * root + eps) - shrink * x, k);
  }
}

// sum_squares sums up to one block: eight lanes in float64, then their tree.
static double sum_squares(const float *x, int64_t n) {
  double lane[8] = {0};
  int64_t i = 0;
  for (; i + 8 <= n; i += 8)
    for (int j = 0; j < 8; j++) lane[j] += (double)x[i + j] * (double)x[i + j];
  for (; i < n; i++) lane[i % 8] += (double)x[i] * (double)x[i];
  return ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}

static void add(float *dst, const float *src, int64_t n) {
  for (int64_t i = 0; i < n; i++) dst[i] += src[i];
}

// peak keeps 12 independent chains of multiply-adds in registers: enough for
// two units of five cycles' latency.
static double peak(int64_t rounds) {
  enum { CHAINS = 12 };
  volatile float near_one = 0.999999f, small = 1e-6f; // or the compiler folds the chain that starts at their fixed point
  vf x[CHAINS], by = vset(near_one), plus = vset(small);
  _Pragma("GCC unroll 12") for (int i = 0; i < CHAINS; i++) x[i] = vset((float)i);
  for (int64_t r = 0; r < rounds; r++)
    _Pragma("GCC unroll 12") for (int i = 0; i < CHAINS; i++) x[i] = x[i] * by + plus;
  vf all = vset(0);
  _Pragma("GCC unroll 12") for (int i = 0; i < CHAINS; i++) all += x[i];
  float sink = vsum(all);
  __asm__ volatile("" : : "m"(sink));
  return 2.0 * VL * CHAINS * (double)rounds;
}
