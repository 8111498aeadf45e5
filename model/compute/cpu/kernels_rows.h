// Dropout of rows, and the embedding.

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
  int64_t i = 0;
  for (; i + VL <= c; i += VL) vstore(o + i, vload(te + i) + vload(pe + i));
  if (i < c) vstoren(o + i, vloadn(te + i, (int)(c - i)) + vloadn(pe + i, (int)(c - i)), (int)(c - i));
  if (d->on) drop_row(o, d, (uint32_t)(row / t), row % t * c, (int)c);
}

static void embed_grad(float *dwte, float *dwpe, const float *dout, const int32_t *tokens, const ddp_drop *d, int64_t b,
                       int64_t t, int64_t c, int64_t lo, int64_t hi) {
  float kept[WORDS];
  int n = (int)(hi - lo);
  for (int64_t row = 0; row < b * t; row++) {
    const float *g = dout + row * c + lo;
    if (d->on) {
      g = memcpy(kept, g, (size_t)n * 4);
      drop_row(kept, d, (uint32_t)(row / t), row % t * c + lo, n);
    }
    float *te = dwte + tokens[row] * c + lo, *pe = dwpe + row % t * c + lo;
    for (int i = 0; i < n; i += VL) {
      int k = vleft(n, i);
      vf v = vloadn(g + i, k);
      vstoren(te + i, vloadn(te + i, k) + v, k);
      vstoren(pe + i, vloadn(pe + i, k) + v, k);
    }
  }
}
