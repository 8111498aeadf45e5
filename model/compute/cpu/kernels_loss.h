// Cross-entropy of rows of logits, with its gradient in place: a row is read
// for its largest logit, then for the sum, then scaled, all within the cache.

static inline float largest(const float *x, int64_t n) {
  vf high[4];
  for (int j = 0; j < 4; j++) high[j] = vset(-INFINITY);
  int64_t i = 0;
  for (; i + 4 * VL <= n; i += 4 * VL)
    _Pragma("GCC unroll 4") for (int j = 0; j < 4; j++) high[j] = vmax(high[j], vload(x + i + j * VL));
  for (; i < n; i += VL) {
    int k = vleft(n, i);
    high[0] = vmax(high[0], vfirst(k, vloadn(x + i, k), vset(-INFINITY)));
  }
  return vmost(vmax(vmax(high[0], high[1]), vmax(high[2], high[3])));
}

// exponentials sums e^(x - most), and leaves them in x when keep is set.
INLINE float exponentials(float *x, int64_t n, float most, int keep) {
  vf sum[2] = {{0}};
  int64_t i = 0;
  for (; i + 2 * VL <= n; i += 2 * VL)
    _Pragma("GCC unroll 2") for (int j = 0; j < 2; j++) {
      vf e = vexp(vload(x + i + j * VL) - most);
      sum[j] += e;
      if (keep) vstore(x + i + j * VL, e);
    }
  for (; i < n; i += VL) {
    int k = vleft(n, i);
    vf e = vfirst(k, vexp(vloadn(x + i, k) - most), vset(0));
    sum[0] += e;
    if (keep) vstoren(x + i, e, k);
  }
  return vsum(sum[0] + sum[1]);
}

static void cross_entropy(float *loss, float *logits, const int32_t *targets, int64_t rows, int64_t v, int grad) {
  for (int64_t r = 0; r < rows; r++, logits += v) {
    int32_t target = targets[r];
    if (target < 0) {
      loss[r] = 0;
      if (grad) memset(logits, 0, (size_t)v * 4);
      continue;
    }
    float most = largest(logits, v), wanted = logits[target];
    float total = grad ? exponentials(logits, v, most, 1) : exponentials(logits, v, most, 0);
    loss[r] = vlog(vset(total))[0] + (most - wanted);
    if (!grad) continue;
    vf scale = vset(1.0f / total);
    for (int64_t i = 0; i < v; i += VL) {
      int n = vleft(v, i);
      vstoren(logits + i, vloadn(logits + i, n) * scale, n);
    }
    logits[target] -= 1.0f;
  }
}
