#include <string.h>

#include "backend.h"

// Values of a task: half of a second-level cache with its four streams.
enum { CHUNK = 1 << 15 };

typedef struct {
  ddp_backend *be;
  float *p, *m, *v;
  const float *g;
  double *sums;
  int64_t n, block;
  const ddp_adamw *a;
} flat_op;

static int64_t chunks(int64_t n) { return ddp_up(n, CHUNK); }

static void adamw_part(void *arg, int i, int thread) {
  (void)thread;
  flat_op *o = arg;
  int64_t lo = (int64_t)i * CHUNK;
  o->be->k->adamw(o->p + lo, o->g + lo, o->m + lo, o->v + lo, ddp_min(CHUNK, o->n - lo), o->a);
}

int ddp_adamw_step(ddp_backend *b, float *p, const float *g, float *m, float *v, int64_t n, const ddp_adamw *a) {
  flat_op o = {.be = b, .p = p, .g = g, .m = m, .v = v, .n = n, .a = a};
  ddp_parallel(b->pool, (int)chunks(n), adamw_part, &o);
  return 0;
}

static void squares_part(void *arg, int i, int thread) {
  (void)thread;
  flat_op *o = arg;
  int64_t lo = (int64_t)i * o->block;
  o->sums[i] = o->be->k->sum_squares(o->g + lo, ddp_min(o->block, o->n - lo));
}

int ddp_block_squares(ddp_backend *b, double *out, const float *x, int64_t n, int64_t block) {
  flat_op o = {.be = b, .g = x, .sums = out, .n = n, .block = block};
  ddp_parallel(b->pool, (int)ddp_up(n, block), squares_part, &o);
  return 0;
}

static void zero_part(void *arg, int i, int thread) {
  (void)thread;
  flat_op *o = arg;
  int64_t lo = (int64_t)i * CHUNK;
  memset(o->p + lo, 0, (size_t)ddp_min(CHUNK, o->n - lo) * 4);
}

int ddp_zero(ddp_backend *b, float *dst, int64_t n) {
  flat_op o = {.be = b, .p = dst, .n = n};
  ddp_parallel(b->pool, (int)chunks(n), zero_part, &o);
  return 0;
}

static void copy_part(void *arg, int i, int thread) {
  (void)thread;
  flat_op *o = arg;
  int64_t lo = (int64_t)i * CHUNK;
  memcpy(o->p + lo, o->g + lo, (size_t)ddp_min(CHUNK, o->n - lo) * 4);
}

int ddp_copy(ddp_backend *b, float *dst, const float *src, int64_t n) {
  flat_op o = {.be = b, .p = dst, .g = src, .n = n};
  ddp_parallel(b->pool, (int)chunks(n), copy_part, &o);
  return 0;
}

static void add_part(void *arg, int i, int thread) {
  (void)thread;
  flat_op *o = arg;
  int64_t lo = (int64_t)i * CHUNK;
  o->be->k->add(o->p + lo, o->g + lo, ddp_min(CHUNK, o->n - lo));
}

int ddp_add(ddp_backend *b, float *dst, const float *src, int64_t n) {
  flat_op o = {.be = b, .p = dst, .g = src, .n = n};
  ddp_parallel(b->pool, (int)chunks(n), add_part, &o);
  return 0;
}
