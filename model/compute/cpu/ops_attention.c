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
