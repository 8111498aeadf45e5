// Causal attention of one head, forward and backward. QUERIES rows of scores
// are in memory at once, never [T,T]. Keys and values are packed once a head so
// that inner loops run over neighbours. No loop over keys goes past a query's
// own position, except to compute scores that are then discarded: what is later
// never reaches a result, be it NaN.

enum { QUERIES = 8, ROWS = 4 };

static int64_t pad(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

static int64_t attention_scratch(int64_t t, int64_t d) {
  int64_t tp = pad(t, 2 * VL), dp = pad(d, 2 * VL);
  return 2 * d * tp + 5 * t * dp + 2 * QUERIES * tp + QUERIES * dp;
}

// heads reads part (0 q, 1 k, 2 v) of one head: row p is at base + p * stride.
static inline const float *part_of(const ddp_attention *a, int part, int sample, int head) {
  int64_t c = (int64_t)a->h * a->d;
  return a->qkv + (int64_t)sample * a->t * 3 * c + part * c + (int64_t)head * a->d;
}

// pack_rows copies t rows of d values into rows of dp, padded by 0.
static void pack_rows(float *to, const float *from, int64_t stride, int64_t t, int64_t d, int64_t dp) {
  for (int64_t p = 0; p < t; p++) {
    memcpy(to + p * dp, from + p * stride, (size_t)d * 4);
    memset(to + p * dp + d, 0, (size_t)(dp - d) * 4);
  }
}

// pack_columns transposes t rows of d values into d rows of tp, padded by 0.
static void pack_columns(float *to, const float *from, int64_t stride, int64_t t, int64_t d, int64_t tp) {
  for (int64_t i = 0; i < d; i++) memset(to + i * tp + t, 0, (size_t)(tp - t) * 4);
  for (int64_t p = 0; p < t; p++)
    for (int64_t i = 0; i < d; i++) to[i * tp + p] = from[p * stride + i];
}

// products writes scale * x[rows, d]·kt[d, keys], rows of tp; keys is rounded up
// to 2 VL.
static void products(float *s, int64_t tp, const float *x, int64_t stride, int rows, const float *kt, int64_t keys, int64_t d,
                     float scale) {
  for (int r0 = 0; r0 < rows; r0 += ROWS) {
    const float *xr[ROWS];
    for (int r = 0; r < ROWS; r++) xr[r] = x + (r0 + r < rows ? r0 + r : rows - 1) * stride;
    for (int64_t k = 0; k < keys; k += 2 * VL) {
      vf sum[ROWS][2];
      _Pragma("GCC unroll 4") for (int r = 0; r < ROWS; r++) sum[r][0] = sum[r][1] = vset(0);
      const float *col = kt + k;
      for (int64_t i = 0; i < d; i++, col += tp) {
        vf k0 = vload(col), k1 = vload(col + VL);
        _Pragma("GCC unroll 4") for (int r = 0; r < ROWS; r++) {
          vf v = vset(xr[r][i]);
          sum[r][0] += v * k0;
          sum[r][1] += v * k1;
        }
      }
      for (int r = 0; r < ROWS && r0 + r < rows; r++) {
        vstore(s + (r0 + r) * tp + k, sum[r][0] * scale);
        vstore(s + (r0 + r) * tp + k + VL, sum[r][1] * scale);
      }
    }
  }
}

// weigh writes out[rows, dp] = the sum over keys 0 to p+r of w[r][key] * x[key],
// for query rows r at positions p + r.
static void weigh(float *out, const float *w, int64_t tp, const float *x, int64_t dp, int rows, int64_t p) {
  for (int r0 = 0; r0 < rows; r0 += ROWS) {
    int n = rows - r0 < ROWS ? rows - r0 : ROWS;
    const float *wr[ROWS];
    for (int r = 0; r < ROWS; r++) wr[r] = w + (r0 + (r < n ? r : n - 1)) * tp;
    int64_t common = p + r0 + 1;
    for (int64_t i = 0; i < dp; i += 2 * VL) {
      vf sum[ROWS][2];
      _Pragma("GCC unroll 4") for (int r = 0; r < ROWS; r++) sum[r][0] = sum[r][1] = vset(0);
      const float *row = x + i;
      for (int64_t k = 0; k < common; k++, row += dp) {
        vf x0 = vload(row), x1 = vload(row + VL);
        _Pragma("GCC unroll 4") for (int r = 0; r < ROWS; r++) {
          vf v = vset(wr[r][k]);
          sum[r][0] += v * x0;
          sum[r][1] += v * x1;
        }
      }
      for (int r = 0; r < n; r++) {
        for (int64_t k = common; k <= p + r0 + r; k++) {
          vf v = vset(wr[r][k]);
          sum[r][0] += v * vload(x + k * dp + i);
          sum[r][1] += v * vload(x + k * dp + i + VL);
        }
        vstore(out + (r0 + r) * dp + i, sum[r][0]);
        vstore(out + (r0 + r) * dp + i + VL, sum[r][1]);
      }
    }
  }
}

// scatter_rows adds w[r][key] * x[r] to acc[key] for rows r0.. of a block whose
// row r sees keys 0 to p + r.
static inline void scatter_rows(float *acc, const float *w, int64_t tp, const float *x, int64_t dp, int rows, int64_t p) {
  for (int64_t i = 0; i < dp; i += VL) {
    vf xv[QUERIES];
    for (int r = 0; r < rows; r++) xv[r] = vload(x + r * dp + i);
    for (int64_t k = 0; k <= p; k++) {
      vf sum = vload(acc + k * dp + i);
      _Pragma("GCC unroll 8") for (int r = 0; r < rows; r++) sum += vset(w[r * tp + k]) * xv[r];
      vstore(acc + k * dp + i, sum);
    }
    for (int64_t k = p + 1; k < p + rows; k++) {
      vf sum = vload(acc + k * dp + i);
      for (int64_t r = k - p; r < rows; r++) sum += vset(w[r * tp + k]) * xv[r];
      vstore(acc + k * dp + i, sum);
    }
  }
}

static void scatter(float *acc, const float *w, int64_t tp, const float *x, int64_t dp, int rows, int64_t p) {
  if (rows == QUERIES)
    scatter_rows(acc, w, tp, x, dp, QUERIES, p);
  else
    scatter_rows(acc, w, tp, x, dp, rows, p);
}

// exponentials turns s[0..p] into e^(s - shift), 0 up to padded; returns the sum.
static float exponentials(float *s, int64_t p, int64_t padded, float shift) {
  for (int64_t k = p + 1; k < padded; k++) s[k] = -INFINITY;
  vf sum = vset(0);
  for (int64_t k = 0; k < padded; k += VL) {
    vf e = vexp(vload(s + k) - vset(shift));
    vstore(s + k, e);
    sum += e;
  }
  return vsum(sum);
}

static float most_of(const float *s, int64_t n) {
  vf high = vset(-INFINITY);
  int64_t k = 0;
  for (; k + VL <= n; k += VL) high = vmax(high, vload(s + k));
  float most = vmost(high);
  for (; k < n; k++) most = s[k] > most ? s[k] : most;
  return most;
}

static int64_t element(const ddp_attention *a, int head, int64_t p) { return ((int64_t)head * a->t + p) * a->t; }

static void attention(const ddp_attention *a, int sample, int head, float *scratch) {
  int64_t t = a->t, d = a->d, c = (int64_t)a->h * d, tp = pad(t, 2 * VL), dp = pad(d, 2 * VL);
  float *kt = scratch, *v = kt + d * tp, *s = v + t * dp, *o = s + QUERIES * tp;
  const float *q = part_of(a, 0, sample, head);
  pack_columns(kt, part_of(a, 1, sample, head), 3 * c, t, d, tp);
  pack_rows(v, part_of(a, 2, sample, head), 3 * c, t, d, dp);
  float *out = a->out + (int64_t)sample * t * c + (int64_t)head * d, *lse = a->lse + ((int64_t)sample * a->h + head) * t;
  for (int64_t p = 0; p < t; p += QUERIES) {
    int rows = t - p < QUERIES ? (int)(t - p) : QUERIES;
    int64_t padded = pad(p + rows, 2 * VL);
    float sums[QUERIES];
    products(s, tp, q + p * 3 * c, 3 * c, rows, kt, padded, d, 1.0f / sqrtf((float)d));
    for (int r = 0; r < rows; r++) {
      float most = most_of(s + r * tp, p + r + 1);
      sums[r] = exponentials(s + r * tp, p + r, padded, most);
      lse[p + r] = most + logf(sums[r]);
      if (a->drop.on) drop_row(s + r * tp, &a->drop, (uint32_t)sample, element(a, head, p + r), (int)(p + r + 1));
    }
    weigh(o, s, tp, v, dp, rows, p);
    for (int r = 0; r < rows; r++)
      for (int64_t i = 0; i < d; i++) out[(p + r) * c + i] = o[r * dp + i] / sums[r];
  }
}

// grad_scores turns probabilities s and products dp of one row into the scores'
// gradient ds and, in s, the probabilities after dropout.
static void grad_scores(const ddp_attention *a, float *s, float *ds, int64_t p, int sample, int head, float delta, float scale) {
  float factors[WORDS];
  for (int64_t at = 0; at <= p; at += WORDS) {
    int n = p + 1 - at < WORDS ? (int)(p + 1 - at) : WORDS;
    for (int i = 0; i < n; i++) factors[i] = 1;
    if (a->drop.on) drop_row(factors, &a->drop, (uint32_t)sample, element(a, head, p) + at, n);
    for (int i = 0; i < n; i++) {
      float prob = s[at + i];
      ds[at + i] = prob * (ds[at + i] * factors[i] - delta) * scale;
      s[at + i] = prob * factors[i];
    }
  }
}

static void attention_grad(const ddp_attention *a, int sample, int head, float *scratch) {
  int64_t t = a->t, d = a->d, c = (int64_t)a->h * d, tp = pad(t, 2 * VL), dp = pad(d, 2 * VL);
  float *kt = scratch, *vt = kt + d * tp, *k = vt + d * tp, *q = k + t * dp, *g = q + t * dp, *dk = g + t * dp,
        *dv = dk + t * dp, *s = dv + t * dp, *ds = s + QUERIES * tp, *dq = ds + QUERIES * tp;
  pack_columns(kt, part_of(a, 1, sample, head), 3 * c, t, d, tp);
  pack_columns(vt, part_of(a, 2, sample, head), 3 * c, t, d, tp);
  pack_rows(k, part_of(a, 1, sample, head), 3 * c, t, d, dp);
  pack_rows(q, part_of(a, 0, sample, head), 3 * c, t, d, dp);
  int64_t at = (int64_t)sample * t * c + (int64_t)head * d;
  pack_rows(g, a->dout + at, c, t, d, dp);
  memset(dk, 0, (size_t)(2 * t * dp) * 4);
  const float *out = a->out + at, *lse = a->lse + ((int64_t)sample * a->h + head) * t;
  float *dqkv = a->dqkv + (int64_t)sample * t * 3 * c + (int64_t)head * d, scale = 1.0f / sqrtf((float)d);
  for (int64_t p = 0; p < t; p += QUERIES) {
    int rows = t - p < QUERIES ? (int)(t - p) : QUERIES;
    int64_t padded = pad(p + rows, 2 * VL);
    products(s, tp, q + p * dp, dp, rows, kt, padded, d, scale);
    products(ds, tp, g + p * dp, dp, rows, vt, padded, d, 1);
    for (int r = 0; r < rows; r++) {
      float delta = 0;
      for (int64_t i = 0; i < d; i++) delta += g[(p + r) * dp + i] * out[(p + r) * c + i];
      exponentials(s + r * tp, p + r, padded, lse[p + r]);
      grad_scores(a, s + r * tp, ds + r * tp, p + r, sample, head, delta, scale);
    }
    weigh(dq, ds, tp, k, dp, rows, p);
    scatter(dk, ds, tp, q + p * dp, dp, rows, p);
    scatter(dv, s, tp, g + p * dp, dp, rows, p);
    for (int r = 0; r < rows; r++) memcpy(dqkv + (p + r) * 3 * c, dq + r * dp, (size_t)d * 4);
  }
  for (int64_t p = 0; p < t; p++) {
    memcpy(dqkv + p * 3 * c + c, dk + p * dp, (size_t)d * 4);
    memcpy(dqkv + p * 3 * c + 2 * c, dv + p * dp, (size_t)d * 4);
  }
}
