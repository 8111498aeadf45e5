// Causal attention of one head, forward, with an online softmax (Milakov and
// Gimelshein 2018; tiles as in Dao et al. 2022): a row keeps its largest score
// so far and the sum that belongs to it; both, and what was added up of the
// output, are rescaled when a larger score comes.

typedef struct {
  const ddp_attention *a;
  int sample, head;
  int64_t t, d, c, width; // width: d rounded up to whole vectors
  float scale;
  float *free; // scratch not yet taken
} head_of;

static head_of head_at(const ddp_attention *a, int sample, int head, float *scratch) {
  return (head_of){a, sample, head, a->t, a->d, (int64_t)a->h * a->d, pad(a->d, VL), 1.0f / sqrtf((float)a->d), scratch};
}

// take hands out n values of scratch, in whole cache lines.
static float *take(head_of *h, int64_t n) {
  float *p = h->free;
  h->free += pad(n, 16);
  return p;
}

// qkv_of is where a head's part begins (0 q, 1 k, 2 v): position p is p * 3c on.
static int64_t qkv_of(const head_of *h, int part) { return (int64_t)h->sample * h->t * 3 * h->c + part * h->c + h->head * h->d; }

// out_of is the same in out and dout: position p is p * c on.
static int64_t out_of(const head_of *h) { return (int64_t)h->sample * h->t * h->c + h->head * h->d; }

static float *lse_of(const head_of *h) { return h->a->lse + ((int64_t)h->sample * h->a->h + h->head) * h->t; }

// element is dropout's number of a head's (query, key).
static int64_t element(const head_of *h, int64_t query, int64_t key) { return ((int64_t)h->head * h->t + query) * h->t + key; }

// A tile of queries on its way through the keys.
typedef struct {
  float *s, *out; // scores; unnormalized outputs [QUERIES, width]
  float most[QUERIES], sum[QUERIES][VL];
} online;

// row_softmax turns the first n scores of row r into e^(score - most) and
// rescales what the row has gathered.
static void row_softmax(online *o, int64_t r, int64_t n, int64_t width) {
  float *s = o->s + r * KEYS;
  vf before = vset(o->most[r]), high = before;
  int64_t whole = n / VL * VL;
  for (int64_t k = 0; k < whole; k += VL) high = vmax(high, vload(s + k));
  if (whole < n) high = vmax(high, vfirst(n - whole, vload(s + whole), vset(-INFINITY)));
  float top = vmost(high);
  high = vset(top);
  vf sum = vload(o->sum[r]);
  if (top > o->most[r]) {
    vf shrink = vexp(before - high);
    sum *= shrink;
    if (o->most[r] > -INFINITY)
      for (int64_t i = 0; i < width; i += VL) vstore(o->out + r * width + i, vload(o->out + r * width + i) * shrink);
  }
  o->most[r] = top;
  for (int64_t k = 0; k < n; k += VL) {
    vf e = vfirst(n - k, vexp(vload(s + k) - high), vset(0));
    sum += e;
    vstore(s + k, e);
  }
  vstore(o->sum[r], sum);
}

// attend_tile takes queries q to q+rows-1 through one tile of keys.
static void attend_tile(const head_of *h, online *o, const float *queries, int64_t q, int64_t rows, const float *panels,
                        const float *values, int64_t k) {
  int64_t keys = smaller(KEYS, h->t - k), width = h->width;
  scores(o->s, queries, width, rows, panels + k * h->d, keys, h->d, h->scale, q - k);
  for (int64_t r = 0; r < rows; r++) {
    int64_t n = smaller(keys, q + r + 1 - k);
    row_softmax(o, r, n, width);
    if (h->a->drop.on) drop_row(o->s + r * KEYS, &h->a->drop, (uint32_t)h->sample, element(h, q + r, k), (int)n);
  }
  add_earlier(o->out, o->s, rows, values + k * width, width, keys, q - k);
}

// finish_queries divides by the sums and writes out and lse.
static void finish_queries(const head_of *h, online *o, int64_t q, int64_t rows) {
  float *out = h->a->out + out_of(h) + q * h->c, *lse = lse_of(h) + q;
  for (int64_t r = 0; r < rows; r++) {
    float sum = vsum(vload(o->sum[r]));
    vf inverse = vset(1.0f / sum);
    lse[r] = o->most[r] + vlog(vset(sum))[0];
    for (int64_t i = 0; i < h->d; i += VL)
      vstoren(out + r * h->c + i, vload(o->out + r * h->width + i) * inverse, vleft(h->d, i));
  }
}

static void attention(const ddp_attention *a, int sample, int head, float *scratch) {
  head_of h = head_at(a, sample, head, scratch);
  online o = {.s = take(&h, QUERIES * KEYS), .out = take(&h, QUERIES * h.width)};
  float *queries = take(&h, QUERIES * h.width), *panels = take(&h, pad(h.t, 2 * VL) * h.d);
  float *values = take(&h, pad(h.t, KEYS) * h.width);
  pack_keys(panels, a->qkv + qkv_of(&h, 1), 3 * h.c, h.t, h.d);
  copy_rows(values, a->qkv + qkv_of(&h, 2), 3 * h.c, h.t, h.d, h.width);
  for (int64_t q = 0; q < h.t; q += QUERIES) {
    int64_t rows = smaller(QUERIES, h.t - q);
    copy_rows(queries, a->qkv + qkv_of(&h, 0) + q * 3 * h.c, 3 * h.c, rows, h.d, h.width);
    memset(o.out, 0, (size_t)(QUERIES * h.width) * 4);
    memset(o.sum, 0, sizeof o.sum);
    for (int r = 0; r < QUERIES; r++) o.most[r] = -INFINITY;
    for (int64_t k = 0; k < q + rows; k += KEYS) attend_tile(&h, &o, queries, q, rows, panels, values, k);
    finish_queries(&h, &o, q, rows);
  }
}
