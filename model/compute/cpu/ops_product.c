#include "backend.h"

// Blocks of a product: DEPTH values of the sum at a time, so that a packed panel
// of b and a block of a fill half to two thirds of a second-level cache of 1 MiB;
// COLUMNS bound the packed part of b, PACK_COLUMNS what is packed of it at once.
// DEPTH cuts the sum, so it is the same everywhere.
enum { DEPTH = 512, BLOCK_ROWS = 240, COLUMNS = 4096, PACK_COLUMNS = 384 };

// stage is one packed part of b and the sums over it.
typedef struct {
  ddp_backend *be;
  const ddp_product *g;
  int64_t p0, depth, j0, columns;
  int64_t block_rows, blocks; // of a
  int64_t groups;             // of panels of b
  int64_t packs;              // groups that are packed at once
  float *packed;
} stage;

static int64_t panels(const stage *s) { return ddp_up(s->columns, s->be->k->nr); }

// pack_group packs one share of the panels of b.
static void pack_group(void *arg, int i, int thread) {
  (void)thread;
  stage *s = arg;
  int64_t nr = s->be->k->nr, n = panels(s), from = n * i / s->packs * nr, to = ddp_min(n * (i + 1) / s->packs * nr, s->columns);
  s->be->k->pack_b(s->packed + from * s->depth, &s->g->b, s->j0 + from, to - from, s->p0, s->depth);
}

// multiply_block packs one block of rows of a and multiplies it with one group of panels.
static void multiply_block(void *arg, int task, int thread) {
  stage *s = arg;
  const ddp_kernels *k = s->be->k;
  int64_t i0 = task / s->groups * s->block_rows, rows = ddp_min(s->block_rows, s->g->m - i0);
  int64_t group = task % s->groups, n = panels(s), from = n * group / s->groups, to = n * (group + 1) / s->groups;
  if (from == to) return;
  float *a = s->be->own + thread * s->be->own_len;
  k->pack_a(a, &s->g->a, i0, rows, s->p0, s->depth);
  for (int64_t j = from; j < to; j++) {
    int64_t at = j * k->nr;
    k->panel(s->g, a, s->packed + at * s->depth, i0, rows, s->j0 + at, ddp_min(k->nr, s->columns - at), s->depth,
             s->p0 == 0, s->p0 + s->depth == s->g->k);
  }
}

// split chooses how the rows and the panels are shared out: whole blocks of
// rows where there are enough for all threads, else groups of panels too.
static void split(stage *s) {
  int64_t mr = s->be->k->mr, threads = s->be->threads, m = s->g->m;
  s->blocks = ddp_up(m, BLOCK_ROWS);
  if (threads > 1 && m >= 2 * mr * threads) s->blocks = ddp_up(s->blocks, threads) * threads;
  s->block_rows = ddp_up(ddp_up(m, s->blocks), mr) * mr;
  s->blocks = ddp_up(m, s->block_rows);
  s->groups = s->blocks >= threads ? 1 : ddp_up(threads, s->blocks);
}

int ddp_multiply(ddp_backend *b, const ddp_product *given) {
  ddp_product g = *given;
  int64_t nr = b->k->nr, columns = ddp_min(COLUMNS / nr * nr, g.n), depth = ddp_min(DEPTH, g.k);
  int64_t packed = ddp_up(columns, nr) * nr * depth;
  // A sum in several parts is kept in c, unless that still holds the residual.
  int apart = g.epilogue == DDP_RESIDUAL && g.c == g.residual && g.k > DEPTH;
  int64_t rows = BLOCK_ROWS + b->k->mr;
  if (ddp_scratch(b, packed + (apart ? g.m * g.n : 0), rows * depth)) return -1;
  g.sums = apart ? b->shared + packed : g.c;
  stage s = {.be = b, .g = &g, .packed = b->shared};
  split(&s);
  for (s.j0 = 0; s.j0 < g.n; s.j0 += columns) {
    s.columns = ddp_min(columns, g.n - s.j0);
    for (s.p0 = 0; s.p0 < g.k; s.p0 += DEPTH) {
      s.depth = ddp_min(DEPTH, g.k - s.p0);
      s.packs = ddp_min(panels(&s), ddp_up(ddp_up(s.columns, PACK_COLUMNS), b->threads) * b->threads);
      ddp_parallel(b->pool, (int)s.packs, pack_group, &s);
      ddp_parallel(b->pool, (int)(s.blocks * s.groups), multiply_block, &s);
    }
  }
  return 0;
}

typedef struct {
  ddp_backend *be;
  float *out;
  const float *x;
  int64_t rows, n;
} sums;

enum { SUM_COLUMNS = 64 };

static void sum_part(void *arg, int i, int thread) {
  (void)thread;
  sums *s = arg;
  int64_t lo = (int64_t)i * SUM_COLUMNS;
  s->be->k->column_sums(s->out, s->x, s->rows, s->n, lo, ddp_min(lo + SUM_COLUMNS, s->n));
}

int ddp_column_sums(ddp_backend *b, float *out, const float *x, int64_t rows, int64_t n) {
  sums s = {b, out, x, rows, n};
  ddp_parallel(b->pool, (int)ddp_up(n, SUM_COLUMNS), sum_part, &s);
  return 0;
}
