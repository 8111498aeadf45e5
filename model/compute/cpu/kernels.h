// The kernels of one instruction set, as a table. To add one: write it as a
// static function in a template header that isa_*.c include after vec.h, add
// its pointer below, and its name to the list at the end of isa.h.
//
// Kernels compute one task's share of an operation; operations (ops.c) cut the
// work into tasks by shape alone. Matrices are row-major float32; legend as in
// package compute.
#ifndef DDP_KERNELS_H
#define DDP_KERNELS_H

#include <stdint.h>

// ddp_drop is compute.Dropout. on == 0 keeps everything.
typedef struct {
  int on;
  uint32_t threshold, key0, key1, first_sample, place, step;
  float scale;
  int64_t rows_per; // rows of a sample
} ddp_drop;

// ddp_matrix is a matrix in any orientation: element (i, j) is at p[i*row + j*col].
typedef struct {
  const float *p;
  int64_t row, col;
} ddp_matrix;

// What becomes of a finished sum s of a product's element.
enum ddp_epilogue {
  DDP_STORE,     // c = s + bias
  DDP_GELU,      // c = s + bias, out = gelu(c)
  DDP_RESIDUAL,  // c = residual + dropout(s + bias)
  DDP_GELU_GRAD, // c = s * gelu'(pre)
};

// ddp_product is c[m,n] = a[m,k]·b[k,n] with an epilogue.
typedef struct {
  ddp_matrix a, b;
  float *c;
  int64_t m, n, k;
  int accumulate; // add to c (DDP_STORE without bias only)
  enum ddp_epilogue epilogue;
  const float *bias, *residual, *pre;
  float *out;
  int gelu;
  ddp_drop drop;
  float *sums; // where unfinished sums stand: c, or memory like it while c's old values are still needed
} ddp_product;

typedef struct {
  float lr, beta1, beta2, eps, decay, grad_scale, correction1, correction2;
} ddp_adamw;

// ddp_attention is one causal attention: d is the head size, c = h*d.
typedef struct {
  float *out, *lse, *dqkv;
  const float *qkv, *dout;
  int b, t, h, d;
  ddp_drop drop;
} ddp_attention;

typedef struct {
  int vl;     // float32 values of a vector
  int mr, nr; // the product kernel's tile

  // pack_a packs rows [i0, i0+rows) and columns [p0, p0+depth) in panels of mr rows.
  void (*pack_a)(float *to, const ddp_matrix *a, int64_t i0, int64_t rows, int64_t p0, int64_t depth);
  // pack_b packs columns [j0, j0+columns), at most nr, of rows [p0, p0+depth).
  void (*pack_b)(float *to, const ddp_matrix *b, int64_t j0, int64_t columns, int64_t p0, int64_t depth);
  // panel multiplies packed rows [i0, i0+rows) with one packed panel of columns
  // [j0, j0+columns); first and last say where in the sum over k it stands.
  void (*panel)(const ddp_product *g, const float *a, const float *b, int64_t i0, int64_t rows, int64_t j0,
                int64_t columns, int64_t depth, int first, int last);

  void (*column_sums)(float *out, const float *x, int64_t rows, int64_t stride, int64_t lo, int64_t hi);
  void (*layernorm)(float *out, float *mean, float *rstd, const float *x, const float *w, const float *bias, int64_t rows,
                    int64_t c);
  // layernorm_grad adds to dx and writes this block's sums to dw[c] and db[c].
  void (*layernorm_grad)(float *dx, float *dw, float *db, const float *dout, const float *x, const float *w,
                         const float *mean, const float *rstd, int64_t rows, int64_t c);
  void (*drop_rows)(float *dx, const float *dy, const ddp_drop *d, int64_t first_row, int64_t rows, int64_t c);
  void (*embed)(float *out, const float *wte, const float *wpe, const int32_t *tokens, const ddp_drop *d, int64_t row,
                int64_t t, int64_t c);
  // embed_grad adds channels [lo, hi) of all rows, in order.
  void (*embed_grad)(float *dwte, float *dwpe, const float *dout, const int32_t *tokens, const ddp_drop *d, int64_t b,
                     int64_t t, int64_t c, int64_t lo, int64_t hi);
  void (*attention)(const ddp_attention *a, int sample, int head, float *scratch);
  void (*attention_grad)(const ddp_attention *a, int sample, int head, float *scratch);
  int64_t (*attention_scratch)(int64_t t, int64_t d); // float32 values, for either
  void (*cross_entropy)(float *loss, float *logits, const int32_t *targets, int64_t rows, int64_t v, int grad);
  void (*adamw)(float *p, const float *g, float *m, float *v, int64_t n, const ddp_adamw *a);
  double (*sum_squares)(const float *x, int64_t n);
  void (*add)(float *dst, const float *src, int64_t n);
  double (*peak)(int64_t rounds); // does rounds register-only steps; returns their floating-point operations
} ddp_kernels;

extern const ddp_kernels ddp_generic;
#if defined(__x86_64__)
extern const ddp_kernels ddp_avx2, ddp_avx512;
#endif

#endif
