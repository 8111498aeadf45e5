// LayerNorm (Ba, Kiros and Hinton 2016). A row stays in the first cache while
// it is read again, so each matrix crosses the memory bus once.

#define LN_EPSILON 1e-5f

// row_mean sums in four accumulators, so that additions overlap.
static inline float row_mean(const float *x, int64_t c) {
  vf sum[4] = {{0}};
  int64_t i = 0;
  for (; i + 4 * VL <= c; i += 4 * VL)
    _Pragma("GCC unroll 4") for (int j = 0; j < 4; j++) sum[j] += vload(x + i + j * VL);
  for (; i < c; i += VL) sum[0] += vloadn(x + i, vleft(c, i));
  return vsum((sum[0] + sum[1]) + (sum[2] + sum[3])) / (float)c;
}

// row_variance is biased: the mean square of x - mean.
static inline float row_variance(const float *x, float mean, int64_t c) {
  vf sum[4] = {{0}};
  int64_t i = 0;
  for (; i + 4 * VL <= c; i += 4 * VL)
    _Pragma("GCC unroll 4") for (int j = 0; j < 4; j++) {
      vf d = vload(x + i + j * VL) - mean;
      sum[j] += d * d;
    }
  for (; i < c; i += VL) {
    int n = vleft(c, i);
    vf d = vfirst(n, vloadn(x + i, n) - mean, vset(0));
    sum[0] += d * d;
  }
  return vsum((sum[0] + sum[1]) + (sum[2] + sum[3])) / (float)c;
}

// normalize writes n <= VL values of a row.
INLINE void normalize(float *out, const float *x, const float *w, const float *bias, vf mean, vf rstd, int n) {
  vf y = (vloadn(x, n) - mean) * rstd * vloadn(w, n);
  if (bias) y += vloadn(bias, n);
  vstoren(out, y, n);
}

static void layernorm(float *out, float *mean, float *rstd, const float *x, const float *w, const float *bias, int64_t rows,
                      int64_t c) {
  for (int64_t r = 0; r < rows; r++, x += c, out += c) {
    float m = row_mean(x, c), s = 1.0f / sqrtf(row_variance(x, m, c) + LN_EPSILON);
    vf mu = vset(m), rs = vset(s);
    int64_t i = 0;
    if (bias)
      for (; i + VL <= c; i += VL) normalize(out + i, x + i, w + i, bias + i, mu, rs, VL);
    else
      for (; i + VL <= c; i += VL) normalize(out + i, x + i, w + i, NULL, mu, rs, VL);
    if (i < c) normalize(out + i, x + i, w + i, bias ? bias + i : NULL, mu, rs, (int)(c - i));
    mean[r] = m, rstd[r] = s;
  }
}

// norm_sums adds n <= VL channels of a row: to dw and db, and to the two means
// that dx needs, of g = dout*w and of g*norm.
INLINE void norm_sums(vf *g_sum, vf *gn_sum, float *dw, float *db, const float *dout, const float *x, const float *w, vf mean,
                      vf rstd, int n) {
  vf d = vloadn(dout, n), norm = (vloadn(x, n) - mean) * rstd, g = d * vloadn(w, n), dn = d * norm;
  *g_sum += g;
  *gn_sum += g * norm; // lanes past n have g = 0, and mean and rstd are finite where the row is
  vstoren(dw, vloadn(dw, n) + dn, n);
  vstoren(db, vloadn(db, n) + d, n);
}

INLINE void norm_dx(float *dx, const float *dout, const float *x, const float *w, vf mean, vf rstd, vf g_mean, vf gn_mean,
                    int n) {
  vf norm = (vloadn(x, n) - mean) * rstd, g = vloadn(dout, n) * vloadn(w, n);
  vstoren(dx, vloadn(dx, n) + rstd * (g - g_mean - norm * gn_mean), n);
}

static void layernorm_grad(float *dx, float *dw, float *db, const float *dout, const float *x, const float *w,
                           const float *mean, const float *rstd, int64_t rows, int64_t c) {
  memset(dw, 0, (size_t)c * 4);
  memset(db, 0, (size_t)c * 4);
  int64_t whole = c / VL * VL;
  int rest = (int)(c - whole);
  for (int64_t r = 0; r < rows; r++, dx += c, dout += c, x += c) {
    vf mu = vset(mean[r]), rs = vset(rstd[r]), g = vset(0), gn = vset(0);
    for (int64_t i = 0; i < whole; i += VL) norm_sums(&g, &gn, dw + i, db + i, dout + i, x + i, w + i, mu, rs, VL);
    if (rest) norm_sums(&g, &gn, dw + whole, db + whole, dout + whole, x + whole, w + whole, mu, rs, rest);
    g = vset(vsum(g) / (float)c), gn = vset(vsum(gn) / (float)c);
    for (int64_t i = 0; i < whole; i += VL) norm_dx(dx + i, dout + i, x + i, w + i, mu, rs, g, gn, VL);
    if (rest) norm_dx(dx + whole, dout + whole, x + whole, w + whole, mu, rs, g, gn, rest);
  }
}
