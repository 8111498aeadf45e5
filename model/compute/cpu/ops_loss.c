#include "backend.h"

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
