#include "backend.h"

typedef struct {
  ddp_backend *be;
  const ddp_attention *a;
  int grad;
} heads_op;

static void head_part(void *arg, int i, int thread) {
  heads_op *o = arg;
  float *scratch = o->be->own + thread * o->be->own_len;
  (o->grad ? o->be->k->attention_grad : o->be->k->attention)(o->a, i / o->a->h, i % o->a->h, scratch);
}

int ddp_attend(ddp_backend *b, const ddp_attention *a, int grad) {
  if (ddp_scratch(b, 0, b->k->attention_scratch(a->t, a->d))) return -1;
  heads_op o = {b, a, grad};
  ddp_parallel(b->pool, a->b * a->h, head_part, &o);
  return 0;
}

typedef struct {
  ddp_backend *be;
  float *loss, *logits;
  const int32_t *targets;
  int64_t m, v;
  int grad;
} loss_op;

enum { LOSS_ROWS = 8 };

static void loss_part(void *arg, int i, int thread) {
  (void)thread;
  loss_op *o = arg;
  int64_t lo = (int64_t)i * LOSS_ROWS;
  o->be->k->cross_entropy(o->loss + lo, o->logits + lo * o->v, o->targets + lo, ddp_min(LOSS_ROWS, o->m - lo), o->v, o->grad);
}

int ddp_cross_entropy(ddp_backend *b, float *loss, float *logits, const int32_t *targets, int64_t m, int64_t v, int grad) {
  loss_op o = {b, loss, logits, targets, m, v, grad};
  ddp_parallel(b->pool, (int)ddp_up(m, LOSS_ROWS), loss_part, &o);
  return 0;
}
