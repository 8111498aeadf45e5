// Operations on flat ranges: AdamW, the norm's blocks, the shard tree's add, and
// the loop that measures a core's peak.

// adamw_part steps n <= VL parameters.
INLINE void adamw_part(float *p, const float *g, float *m, float *v, const ddp_adamw *a, int n) {
  vf grad = vloadn(g, n) * a->grad_scale, x = vloadn(p, n);
  vf first = a->beta1 * vloadn(m, n) + (1 - a->beta1) * grad, second = a->beta2 * vloadn(v, n) + (1 - a->beta2) * (grad * grad);
  vf root = vsqrt(second) * (1.0f / sqrtf(a->correction2)) + a->eps;
  vstoren(m, first, n);
  vstoren(v, second, n);
  vstoren(p, x - (a->lr / a->correction1) * first / root - (a->lr * a->decay) * x, n);
}

static void adamw(float *p, const float *g, float *m, float *v, int64_t n, const ddp_adamw *given) {
  const ddp_adamw a = *given; // a copy, which p and its like cannot alias
  int64_t i = 0;
  for (; i + VL <= n; i += VL) adamw_part(p + i, g + i, m + i, v + i, &a, VL);
  if (i < n) adamw_part(p + i, g + i, m + i, v + i, &a, (int)(n - i));
}

// sum_squares sums up to one block in float64: 2 VL lanes, which the compiler
// keeps in four vectors, then their tree.
static double sum_squares(const float *x, int64_t n) {
  double lane[2 * VL] = {0};
  int64_t i = 0;
  for (; i + 2 * VL <= n; i += 2 * VL)
    for (int j = 0; j < 2 * VL; j++) lane[j] += (double)x[i + j] * (double)x[i + j];
  for (int j = 0; i + j < n; j++) lane[j] += (double)x[i + j] * (double)x[i + j];
  for (int half = VL; half; half /= 2)
    for (int j = 0; j < half; j++) lane[j] += lane[j + half];
  return lane[0];
}

static void add(float *dst, const float *src, int64_t n) {
  int64_t i = 0;
  for (; i + VL <= n; i += VL) vstore(dst + i, vload(dst + i) + vload(src + i));
  if (i < n) vstoren(dst + i, vloadn(dst + i, (int)(n - i)) + vloadn(src + i, (int)(n - i)), (int)(n - i));
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
