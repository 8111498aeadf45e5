// Operations of a back end: each cuts its work into tasks by shape alone and
// runs them on the pool, so results do not depend on the number of threads.
#ifndef DDP_OPS_H
#define DDP_OPS_H

#include "kernels.h"
#include "pool.h"

typedef struct ddp_backend ddp_backend;

// ddp_open returns NULL when memory or threads are lacking.
ddp_backend *ddp_open(const ddp_kernels *k, int threads);
void ddp_close(ddp_backend *b);

// ddp_alloc returns n zeroed values on a 64-byte boundary, or NULL.
float *ddp_alloc(int64_t n);
void ddp_free(float *p, int64_t n);

// Every operation returns 0, or -1 when scratch memory is lacking; then nothing was done.
int ddp_multiply(ddp_backend *b, const ddp_product *g);
int ddp_column_sums(ddp_backend *b, float *out, const float *x, int64_t rows, int64_t n);
int ddp_layernorm(ddp_backend *b, float *out, float *mean, float *rstd, const float *x, const float *w, const float *bias,
                  int64_t m, int64_t c);
int ddp_layernorm_grad(ddp_backend *b, float *dx, float *dw, float *db, const float *dout, const float *x, const float *w,
                       const float *mean, const float *rstd, int64_t m, int64_t c);
int ddp_drop_rows(ddp_backend *b, float *dx, const float *dy, const ddp_drop *d, int64_t m, int64_t c);
int ddp_embed(ddp_backend *b, float *out, const float *wte, const float *wpe, const int32_t *tokens, const ddp_drop *d,
              int64_t batch, int64_t t, int64_t c);
int ddp_embed_grad(ddp_backend *b, float *dwte, float *dwpe, const float *dout, const int32_t *tokens, const ddp_drop *d,
                   int64_t batch, int64_t t, int64_t c);
int ddp_attend(ddp_backend *b, const ddp_attention *a, int grad);
int ddp_cross_entropy(ddp_backend *b, float *loss, float *logits, const int32_t *targets, int64_t m, int64_t v, int grad);
int ddp_adamw_step(ddp_backend *b, float *p, const float *g, float *m, float *v, int64_t n, const ddp_adamw *a);
int ddp_block_squares(ddp_backend *b, double *out, const float *x, int64_t n, int64_t block);
int ddp_zero(ddp_backend *b, float *dst, int64_t n);
int ddp_copy(ddp_backend *b, float *dst, const float *src, int64_t n);
int ddp_add(ddp_backend *b, float *dst, const float *src, int64_t n);

#endif
