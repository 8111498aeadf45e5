#include "backend.h"

// Rows of a task; the LayerNorm gradient's sums are cut here, so it is fixed.
enum { ROWS = 32, CHANNELS = 64 };

typedef struct {
  ddp_backend *be;
  float *out, *mean, *rstd, *dw, *db;
  const float *x, *w, *bias, *dout, *cmean, *crstd;
  const ddp_drop *drop;
  const int32_t *tokens;
  int64_t m, c, t, batch;
} rows_op;

// share gives the rows of task i.
static int64_t share(const rows_op *o, int i, int64_t *n) {
  int64_t lo = (int64_t)i * ROWS;
  *n = ddp_min(ROWS, o->m - lo);
  return lo;
}

static void norm_part(void *arg, int i, int thread) {
  (void)thread;
  rows_op *o = arg;
  int64_t n, lo = share(o, i, &n);
  o->be->k->layernorm(o->out + lo * o->c, o->mean + lo, o->rstd + lo, o->x + lo * o->c, o->w, o->bias, n, o->c);
}

int ddp_layernorm(ddp_backend *b, float *out, float *mean, float *rstd, const float *x, const float *w, const float *bias,
                  int64_t m, int64_t c) {
  rows_op o = {.be = b, .out = out, .mean = mean, .rstd = rstd, .x = x, .w = w, .bias = bias, .m = m, .c = c};
  ddp_parallel(b->pool, (int)ddp_up(m, ROWS), norm_part, &o);
  return 0;
}

static void norm_grad_part(void *arg, int i, int thread) {
  (void)thread;
  rows_op *o = arg;
  int64_t n, lo = share(o, i, &n);
  float *sums = o->be->shared + (int64_t)i * 2 * o->c;
  o->be->k->layernorm_grad(o->out + lo * o->c, sums, sums + o->c, o->dout + lo * o->c, o->x + lo * o->c, o->w,
                           o->cmean + lo, o->crstd + lo, n, o->c);
}

static void norm_sums_part(void *arg, int i, int thread) {
  (void)thread;
  rows_op *o = arg;
  int64_t lo = (int64_t)i * CHANNELS, hi = ddp_min(lo + CHANNELS, o->c), blocks = ddp_up(o->m, ROWS);
  o->be->k->column_sums(o->dw, o->be->shared, blocks, 2 * o->c, lo, hi);
  if (o->db) o->be->k->column_sums(o->db, o->be->shared + o->c, blocks, 2 * o->c, lo, hi);
}

int ddp_layernorm_grad(ddp_backend *b, float *dx, float *dw, float *db, const float *dout, const float *x, const float *w,
                       const float *mean, const float *rstd, int64_t m, int64_t c) {
  int64_t blocks = ddp_up(m, ROWS);
  if (ddp_scratch(b, blocks * 2 * c, 0)) return -1;
  rows_op o = {.be = b, .out = dx, .dout = dout, .x = x, .w = w, .cmean = mean, .crstd = rstd, .m = m, .c = c};
  ddp_parallel(b->pool, (int)blocks, norm_grad_part, &o);
  // The blocks' sums are rows of [dw, db], and are added row by row.
  o.dw = dw, o.db = db;
  ddp_parallel(b->pool, (int)ddp_up(c, CHANNELS), norm_sums_part, &o);
  return 0;
}

static void drop_part(void *arg, int i, int thread) {
  (void)thread;
  rows_op *o = arg;
  int64_t n, lo = share(o, i, &n);
  o->be->k->drop_rows(o->out, o->x, o->drop, lo, n, o->c);
}

int ddp_drop_rows(ddp_backend *b, float *dx, const float *dy, const ddp_drop *d, int64_t m, int64_t c) {
  rows_op o = {.be = b, .out = dx, .x = dy, .drop = d, .m = m, .c = c};
  ddp_parallel(b->pool, (int)ddp_up(m, ROWS), drop_part, &o);
  return 0;
}

static void embed_part(void *arg, int i, int thread) {
  (void)thread;
  rows_op *o = arg;
  int64_t n, lo = share(o, i, &n);
  for (int64_t row = lo; row < lo + n; row++) o->be->k->embed(o->out, o->w, o->bias, o->tokens, o->drop, row, o->t, o->c);
}

int ddp_embed(ddp_backend *b, float *out, const float *wte, const float *wpe, const int32_t *tokens, const ddp_drop *d,
              int64_t batch, int64_t t, int64_t c) {
  rows_op o = {.be = b, .out = out, .w = wte, .bias = wpe, .tokens = tokens, .drop = d, .m = batch * t, .t = t, .c = c};
  ddp_parallel(b->pool, (int)ddp_up(batch * t, ROWS), embed_part, &o);
  return 0;
}

static void embed_grad_part(void *arg, int i, int thread) {
  (void)thread;
  rows_op *o = arg;
  int64_t lo = (int64_t)i * CHANNELS;
  o->be->k->embed_grad(o->dw, o->db, o->dout, o->tokens, o->drop, o->batch, o->t, o->c, lo, ddp_min(lo + CHANNELS, o->c));
}

int ddp_embed_grad(ddp_backend *b, float *dwte, float *dwpe, const float *dout, const int32_t *tokens, const ddp_drop *d,
                   int64_t batch, int64_t t, int64_t c) {
  rows_op o = {.be = b, .dw = dwte, .db = dwpe, .dout = dout, .tokens = tokens, .drop = d, .batch = batch, .t = t, .c = c};
  ddp_parallel(b->pool, (int)ddp_up(c, CHANNELS), embed_grad_part, &o);
  return 0;
}
