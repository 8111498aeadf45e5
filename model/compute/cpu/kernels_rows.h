// Operations on rows: LayerNorm (Ba, Kiros and Hinton 2016), dropout, embedding.

#define LN_EPSILON 1e-5f

static void layernorm(float *out, float *mean, float *rstd, const float *x, const float *w, const float *bias, int64_t rows,
                      int64_t c) {
  for (int64_t r = 0; r < rows; r++, x += c, out += c) {
    vf sum = vset(0), squares = vset(0);
    for (int64_t i = 0; i < c; i += VL) sum += vloadn(x + i, c - i < VL ? (int)(c - i) : VL);
    float mu = vsum(sum) / (float)c;
    for (int64_t i = 0; i < c; i += VL) {
      int n = c - i < VL ? (int)(c - i) : VL;
      float ms[VL] = {0};
      for (int j = 0; j < n; j++) ms[j] = mu;
      vf d = vloadn(x + i, n) - vload(ms);
      squares += d * d;
    }
    float rs = 1.0f / sqrtf(vsum(squares) / (float)c + LN_EPSILON);
    for (int64_t i = 0; i < c; i += VL) {
      int n = c - i < VL ? (int)(c - i) : VL;
      vf y = (vloadn(x + i, n) - vset(mu)) * vset(rs) * vloadn(w + i, n);
      if (bias) y += vloadn(bias + i, n);
      vstoren(out + i, y, n);
    }
    mean[r] = mu, rstd[r] = rs;
  }
}

static void layernorm_grad(float *dx, float *dw, float *db, const float *dout, const float *x, const float *w,
                           const float *mean, const float *rstd, int64_t rows, int64_t c) {
  memset(dw, 0, (size_t)c * 4);
  memset(db, 0, (size_t)c * 4);
  for (int64_t r = 0; r < rows; r++, dx += c, dout += c, x += c) {
    vf mu = vset(mean[r]), rs = vset(rstd[r]), sum_g = vset(0), sum_gn = vset(0);
    for (int64_t i = 0; i < c; i += VL) {
      int n = c - i < VL ? (int)(c - i) : VL;
      vf d = vloadn(dout + i, n), norm = (vloadn(x + i, n) - mu) * rs, g = d * vloadn(w + i, n);
      sum_g += g;
      sum_gn += g * norm;
      vstoren(dw + i, vloadn(dw + i, n) + d * norm, n);
      vstoren(db + i, vloadn(db + i, n) + d, n);
    }
    vf mean_g = vset(vsum(sum_g) / (float)c), mean_gn = vset(vsum(sum_gn) / (float)c);
    for (int64_t i = 0; i < c; i += VL) {
      int n = c - i < VL ? (int)(c - i) : VL;
      vf norm = (vloadn(x + i, n) - mu) * rs, g = vloadn(dout + i, n) * vloadn(w + i, n);
      vstoren(dx + i, vloadn(dx + i, n) + rs * (g - mean_g - norm * mean_gn), n);
    }
  }
}

static void drop_rows(float *dx, const float *dy, const ddp_drop *d, int64_t first_row, int64_t rows, int64_t c) {
  for (int64_t r = first_row; r < first_row + rows; r++) {
    if (dx != dy) memcpy(dx + r * c, dy + r * c, (size_t)c * 4);
    if (d->on) drop_row(dx + r * c, d, (uint32_t)(r / d->rows_per), r % d->rows_per * c, (int)c);
  }
}

static void embed(float *out, const float *wte, const float *wpe, const int32_t *tokens, const ddp_drop *d, int64_t row,
                  int64_t t, int64_t c) {
  const float *te = wte + tokens[row] * c, *pe = wpe + row % t * c;
  float *o = out + row * c;
  for (int64_t i = 0; i < c; i++) o[i] = te[i] + pe[i];
  if (d->on) drop_row(o, d, (uint32_t)(row / t), row % t * c, (int)c);
}

static void embed_grad(float *dwte, float *dwpe, const float *dout, const int32_t *tokens, const ddp_drop *d, int64_t b,
                       int64_t t, int64_t c, int64_t lo, int64_t hi) {
  float g[WORDS];
  int n = (int)(hi - lo);
  for (int64_t row = 0; row < b * t; row++) {
    memcpy(g, dout + row * c + lo, (size_t)n * 4);
    if (d->on) drop_row(g, d, (uint32_t)(row / t), row % t * c + lo, n);
    float *te = dwte + tokens[row] * c + lo, *pe = dwpe + row % t * c + lo;
    for (int i = 0; i < n; i++) te[i] += g[i], pe[i] += g[i];
  }
}
