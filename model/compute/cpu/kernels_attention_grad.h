// Causal attention of one head, backward (Dao et al. 2022). Probabilities are
// computed again from the scores and lse. One tile of keys at a time gathers its
// dk and dv over the queries, in order, while dq gathers over the tiles of keys:
// each sum has one owner and one order.

// sides are one head's rows as tiles read and write them, [T, width].
typedef struct {
  float *q, *dout, *dq; // all positions
  float *delta;         // the sum over channels of dout * out
  float *k, *kt, *vt;   // one tile of keys: rows, and panels of pack_keys
  float *dk, *dv;
  float *p, *ds; // tiles [QUERIES, KEYS]: probabilities after dropout, gradient of scores
} sides;

static sides sides_of(head_of *h) {
  int64_t all = pad(h->t, QUERIES) * h->width, tile = KEYS * h->width, panels = KEYS * h->d;
  return (sides){.q = take(h, all), .dout = take(h, all), .dq = take(h, all), .delta = take(h, h->t),
                 .k = take(h, tile), .kt = take(h, panels), .vt = take(h, panels), .dk = take(h, tile), .dv = take(h, tile),
                 .p = take(h, QUERIES * KEYS), .ds = take(h, QUERIES * KEYS)};
}

static void find_delta(const head_of *h, const sides *x) {
  const float *out = h->a->out + out_of(h);
  for (int64_t p = 0; p < h->t; p++, out += h->c) {
    vf sum = vset(0);
    for (int64_t i = 0; i < h->d; i += VL) sum += vload(x->dout + p * h->width + i) * vloadn(out + i, vleft(h->d, i));
    x->delta[p] = vsum(sum);
  }
}

// grad_row turns n scores p and products ds = dout·v of one query into the
// probabilities after dropout and the scores' gradient.
INLINE void grad_row(const head_of *h, float *p, float *ds, int64_t n, float lse, float delta, const uint32_t *words) {
  const ddp_drop *drop = &h->a->drop;
  vf kept = vset(drop->scale), scale = vset(h->scale);
  for (int64_t k = 0; k < n; k += VL) {
    vf prob = vexp(vload(p + k) - lse), dp = vload(ds + k), dropped = prob;
    if (words) {
      dp = vkeep(words + k, drop->threshold, dp * kept);
      dropped = vkeep(words + k, drop->threshold, prob * kept);
    }
    vstore(p + k, dropped);
    vstore(ds + k, prob * (dp - delta) * scale);
  }
}

// grad_tile adds what queries q to q+rows-1 and the tile of keys from k on have
// to do with each other.
static void grad_tile(const head_of *h, const sides *x, int64_t q, int64_t k, int64_t keys) {
  int64_t rows = smaller(QUERIES, h->t - q), width = h->width;
  const float *lse = lse_of(h) + q;
  scores(x->p, x->q + q * width, width, rows, x->kt, keys, h->d, h->scale, q - k);
  scores(x->ds, x->dout + q * width, width, rows, x->vt, keys, h->d, 1, q - k);
  for (int64_t r = 0; r < rows; r++) {
    int64_t n = smaller(keys, q + r + 1 - k);
    float *p = x->p + r * KEYS, *ds = x->ds + r * KEYS;
    if (h->a->drop.on) {
      uint32_t room[WORDS_ROOM];
      grad_row(h, p, ds, n, lse[r], x->delta[q + r],
               drop_words(room, &h->a->drop, (uint32_t)h->sample, element(h, q + r, k), (int)n));
    } else {
      grad_row(h, p, ds, n, lse[r], x->delta[q + r], NULL);
    }
  }
  add_earlier(x->dq + q * width, x->ds, rows, x->k, width, keys, q - k);
  add_later(x->dk, x->ds, rows, x->q + q * width, width, keys, q - k);
  add_later(x->dv, x->p, rows, x->dout + q * width, width, keys, q - k);
}

static void attention_grad(const ddp_attention *a, int sample, int head, float *scratch) {
  head_of h = head_at(a, sample, head, scratch);
  sides x = sides_of(&h);
  int64_t stride = 3 * h.c, width = h.width;
  copy_rows(x.q, a->qkv + qkv_of(&h, 0), stride, h.t, h.d, width);
  copy_rows(x.dout, a->dout + out_of(&h), h.c, h.t, h.d, width);
  memset(x.dq, 0, (size_t)(h.t * width) * 4);
  find_delta(&h, &x);
  for (int64_t k = 0; k < h.t; k += KEYS) {
    int64_t keys = smaller(KEYS, h.t - k), at = k * stride;
    copy_rows(x.k, a->qkv + qkv_of(&h, 1) + at, stride, keys, h.d, width);
    pack_keys(x.kt, a->qkv + qkv_of(&h, 1) + at, stride, keys, h.d);
    pack_keys(x.vt, a->qkv + qkv_of(&h, 2) + at, stride, keys, h.d);
    memset(x.dk, 0, (size_t)(KEYS * width) * 4);
    memset(x.dv, 0, (size_t)(KEYS * width) * 4);
    for (int64_t q = k; q < h.t; q += QUERIES) grad_tile(&h, &x, q, k, keys);
    uncopy_rows(a->dqkv + qkv_of(&h, 1) + at, stride, x.dk, width, keys, h.d);
    uncopy_rows(a->dqkv + qkv_of(&h, 2) + at, stride, x.dv, width, keys, h.d);
  }
  uncopy_rows(a->dqkv + qkv_of(&h, 0), stride, x.dq, width, h.t, h.d);
}

// attention_scratch is what either direction takes at most, in float32 values.
static int64_t attention_scratch(int64_t t, int64_t d) {
  int64_t width = pad(d, VL), lines = 16 * 12;
  int64_t forward = QUERIES * (KEYS + 2 * width) + pad(t, 2 * VL) * d + pad(t, KEYS) * width;
  int64_t backward = 3 * pad(t, QUERIES) * width + t + KEYS * (3 * width + 2 * d) + 2 * QUERIES * KEYS;
  return larger(forward, backward) + lines;
}
