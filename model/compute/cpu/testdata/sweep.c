// Runs every operation at odd sizes, on operands of exactly their size, for the
// sanitizers to watch; checks products against a loop. Argument: threads.
#include <stdio.h>
#include <stdlib.h>

#include "ops.h"

static const ddp_kernels *tables[3] = {&ddp_generic};

static float *values(int64_t n, int seed) {
  float *x = malloc((size_t)n * sizeof *x);
  for (int64_t i = 0; i < n; i++) x[i] = (float)((i * 7919 + seed * 104729) % 11 - 5);
  return x;
}

static int32_t *symbols(int64_t n, int v) {
  int32_t *x = malloc((size_t)n * sizeof *x);
  for (int64_t i = 0; i < n; i++) x[i] = (int32_t)(i * 7 % (v + 1)) - 1; // -1: masked
  return x;
}

static ddp_matrix matrix(const float *p, int64_t rows, int64_t columns, int transposed) {
  return transposed ? (ddp_matrix){p, 1, rows} : (ddp_matrix){p, columns, 1};
}

static const ddp_drop dropping = {.on = 1, .threshold = 1u << 30, .key0 = 1, .key1 = 2, .scale = 1.25f, .rows_per = 3};
static const ddp_drop keeping = {.scale = 1, .rows_per = 3};

static void check(const ddp_product *g) {
  for (int64_t i = 0; i < g->m; i++)
    for (int64_t j = 0; j < g->n; j++) {
      float sum = 0;
      for (int64_t p = 0; p < g->k; p++) sum += g->a.p[i * g->a.row + p * g->a.col] * g->b.p[p * g->b.row + j * g->b.col];
      if (g->c[i * g->n + j] == sum) continue;
      fprintf(stderr, "product %dx%dx%d: c[%d,%d] is %g, want %g\n", (int)g->m, (int)g->k, (int)g->n, (int)i, (int)j,
              g->c[i * g->n + j], sum);
      exit(1);
    }
}

static void products(ddp_backend *b, int64_t m, int64_t k, int64_t n) {
  float *x = values(m * k, 1), *w = values(k * n, 2), *c = values(m * n, 3), *out = values(m * n, 4), *bias = values(n, 5);
  for (int orientation = 0; orientation < 3; orientation++) {
    ddp_product g = {.a = matrix(x, m, k, orientation == 1), .b = matrix(w, k, n, orientation == 2), .c = c, .m = m, .n = n, .k = k};
    ddp_multiply(b, &g);
    check(&g);
    g.accumulate = 1;
    ddp_multiply(b, &g);
    g.accumulate = 0;
    for (g.gelu = 0; g.gelu < 2; g.gelu++) {
      g.bias = bias, g.out = out, g.epilogue = DDP_GELU;
      ddp_multiply(b, &g);
      g.bias = NULL, g.out = NULL, g.pre = out, g.epilogue = DDP_GELU_GRAD;
      ddp_multiply(b, &g);
      g.pre = NULL;
    }
    g.residual = orientation ? c : out, g.drop = dropping, g.epilogue = DDP_RESIDUAL;
    ddp_multiply(b, &g);
  }
  ddp_column_sums(b, bias, c, m, n);
  free(x), free(w), free(c), free(out), free(bias);
}

static void rows(ddp_backend *b, int64_t batch, int64_t t, int64_t c) {
  int64_t m = batch * t, v = c + 2;
  float *x = values(m * c, 1), *y = values(m * c, 2), *mean = values(m, 3), *rstd = values(m, 4), *w = values(c, 5),
        *bias = values(c, 6), *dx = values(m * c, 10), *dw = values(c, 11), *wte = values(v * c, 7), *wpe = values(t * c, 8), *logits = values(m * v, 9);
  int32_t *tokens = symbols(m, (int)v - 1), *targets = symbols(m, (int)v - 1);
  for (int64_t i = 0; i < m; i++) tokens[i] += tokens[i] < 0;
  for (int biased = 0; biased < 2; biased++) {
    ddp_layernorm(b, y, mean, rstd, x, w, biased ? bias : NULL, m, c);
    ddp_layernorm_grad(b, dx, dw, biased ? bias : NULL, y, x, w, mean, rstd, m, c);
  }
  for (int i = 0; i < 2; i++) {
    const ddp_drop *drop = i ? &dropping : &keeping;
    ddp_drop_rows(b, y, x, drop, m, c);
    ddp_drop_rows(b, y, y, drop, m, c);
    ddp_embed(b, y, wte, wpe, tokens, drop, batch, t, c);
    ddp_embed_grad(b, wte, wpe, y, tokens, drop, batch, t, c);
  }
  for (int grad = 0; grad < 2; grad++) ddp_cross_entropy(b, mean, logits, targets, m, v - 1, grad);
  free(x), free(y), free(mean), free(rstd), free(w), free(bias), free(dx), free(dw);
  free(wte), free(wpe), free(logits), free(tokens), free(targets);
}

static void attention(ddp_backend *b, int batch, int t, int h, int d) {
  int64_t m = (int64_t)batch * t, c = (int64_t)h * d;
  float *qkv = values(m * 3 * c, 1), *dqkv = values(m * 3 * c, 2), *out = values(m * c, 3), *dout = values(m * c, 4),
        *lse = values(m * h, 5);
  ddp_attention a = {.out = out, .lse = lse, .dqkv = dqkv, .qkv = qkv, .dout = dout, .b = batch, .t = t, .h = h, .d = d};
  for (int i = 0; i < 2; i++) {
    a.drop = i ? dropping : keeping;
    for (int grad = 0; grad < 2; grad++) ddp_attend(b, &a, grad);
  }
  free(qkv), free(dqkv), free(out), free(dout), free(lse);
}

static void flat(ddp_backend *b, int64_t n) {
  float *p = values(n, 1), *g = values(n, 2), *m = values(n, 3), *v = values(n, 4);
  double sums[100];
  for (int64_t i = 0; i < n; i++) v[i] *= v[i];
  ddp_adamw a = {.lr = .1f, .beta1 = .9f, .beta2 = .95f, .eps = 1e-8f, .decay = .1f, .grad_scale = 1, .correction1 = .1f, .correction2 = .05f};
  ddp_adamw_step(b, p, g, m, v, n, &a);
  ddp_add(b, p, g, n);
  ddp_zero(b, m, n);
  ddp_copy(b, v, g, n);
  ddp_block_squares(b, sums, p, n, 4096);
  free(p), free(g), free(m), free(v);
}

static void sweep(const ddp_kernels *k, int threads) {
  ddp_backend *b = ddp_open(k, threads);
  if (!b) exit(1);
  for (int i = 1; i <= 70; i += 3) {
    products(b, i, i * 37 % 69 + 1, 71 - i);
    rows(b, 2, i, 71 - i);
    attention(b, 2, i, 2, i * 29 % 67 + 1);
    flat(b, i * i);
  }
  products(b, 241, 513, 49);
  products(b, 3, 5, 4099);
  attention(b, 1, 193, 2, 20);
  flat(b, 100000);
  ddp_close(b);
}

int main(int argc, char **argv) {
  int n = 1;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) tables[n++] = &ddp_avx2;
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl"))
    tables[n++] = &ddp_avx512;
#endif
  for (int i = 0; i < n; i++) sweep(tables[i], argc > 1 ? atoi(argv[1]) : 1);
  return 0;
}
