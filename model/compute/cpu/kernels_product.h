// Matrix product: the register tile and what is done to a finished one (Goto and
// van de Geijn 2008). Every element of c is summed over k in order, in one
// accumulator for each packed depth, so its bits depend on nothing but k.

// TILE multiplies one panel of a by one of b, nv vectors wide, and writes the
// sums to c, whose rows are stride apart: added to what is there when add is
// set, plus bias where there is one.
#define TILE(name, nv)                                                                                       \
  static inline void name(float *c, int64_t stride, const float *a, const float *b, int64_t depth, int add,  \
                          const float *bias) {                                                               \
    vf sum[MR][nv];                                                                                          \
    _Pragma("GCC unroll 16") for (int i = 0; i < MR; i++)                                                    \
        _Pragma("GCC unroll 4") for (int j = 0; j < nv; j++) sum[i][j] = vset(0);                            \
    _Pragma("GCC unroll 4") for (int64_t p = 0; p < depth; p++, a += MR, b += nv * VL) {                     \
      vf bv[nv];                                                                                             \
      _Pragma("GCC unroll 4") for (int j = 0; j < nv; j++) bv[j] = vload(b + j * VL);                        \
      _Pragma("GCC unroll 16") for (int i = 0; i < MR; i++) {                                                \
        vf x = vset(a[i]);                                                                                   \
        _Pragma("GCC unroll 4") for (int j = 0; j < nv; j++) sum[i][j] += x * bv[j];                         \
      }                                                                                                      \
    }                                                                                                        \
    if (add)                                                                                                 \
      _Pragma("GCC unroll 16") for (int i = 0; i < MR; i++)                                                  \
          _Pragma("GCC unroll 4") for (int j = 0; j < nv; j++) sum[i][j] += vload(c + i * stride + j * VL);  \
    if (bias)                                                                                                \
      _Pragma("GCC unroll 16") for (int i = 0; i < MR; i++)                                                  \
          _Pragma("GCC unroll 4") for (int j = 0; j < nv; j++) sum[i][j] += vload(bias + j * VL);            \
    _Pragma("GCC unroll 16") for (int i = 0; i < MR; i++)                                                    \
        _Pragma("GCC unroll 4") for (int j = 0; j < nv; j++) vstore(c + i * stride + j * VL, sum[i][j]);     \
  }

TILE(tile_1, 1)
TILE(tile_2, 2)
#if NV == 3
TILE(tile_3, 3)
#endif

static inline void tile(float *c, int64_t stride, const float *a, const float *b, int64_t w, int64_t depth, int add,
                        const float *bias) {
  if (w == VL)
    tile_1(c, stride, a, b, depth, add, bias);
  else if (w == 2 * VL)
    tile_2(c, stride, a, b, depth, add, bias);
#if NV == 3
  else
    tile_3(c, stride, a, b, depth, add, bias);
#endif
}

// part is a tile of sums of one depth, kept apart because it sticks out of c or
// because something follows: rows [i0, i0+rows), columns [j0, j0+columns).
typedef struct {
  float sum[MR * NR] __attribute__((aligned(64)));
  int64_t i0, rows, j0, columns;
  int add;           // the sums of earlier depths
  const float *bias; // of column j0, or NULL
} part;

// summed is all of the sum of n values at column j of the part's row r.
static inline vf summed(const ddp_product *g, const part *t, int64_t r, int64_t j, int n) {
  vf v = vload(t->sum + r * NR + j);
  if (t->add) v += vloadn(g->sums + (t->i0 + r) * g->n + t->j0 + j, n);
  if (t->bias) v += vloadn(t->bias + j, n);
  return v;
}

static inline void keep(const ddp_product *g, const part *t) {
  for (int64_t r = 0; r < t->rows; r++)
    for (int64_t j = 0; j < t->columns; j += VL) {
      int n = vleft(t->columns, j);
      vstoren(g->sums + (t->i0 + r) * g->n + t->j0 + j, summed(g, t, r, j, n), n);
    }
}

// finish_as applies one epilogue; what and kind are constants where it is called.
static inline __attribute__((always_inline)) void finish_as(const ddp_product *g, const part *t, enum ddp_epilogue what,
                                                            int kind) {
  for (int64_t r = 0; r < t->rows; r++)
    for (int64_t j = 0; j < t->columns; j += VL) {
      int n = vleft(t->columns, j);
      int64_t at = (t->i0 + r) * g->n + t->j0 + j;
      vf v = summed(g, t, r, j, n);
      if (what == DDP_GELU) vstoren(g->out + at, vgelu(v, kind), n);
      if (what == DDP_RESIDUAL) v += vloadn(g->residual + at, n);
      if (what == DDP_GELU_GRAD) v *= vgelu_grad(vloadn(g->pre + at, n), kind);
      vstoren(g->c + at, v, n);
    }
}

// finish_dropped is finish_as for a residual with dropout.
static void finish_dropped(const ddp_product *g, part *t) {
  for (int64_t r = 0; r < t->rows; r++) {
    int64_t i = t->i0 + r, at = i * g->n + t->j0;
    float *row = t->sum + r * NR;
    for (int64_t j = 0; j < t->columns; j += VL) vstore(row + j, summed(g, t, r, j, vleft(t->columns, j)));
    drop_row(row, &g->drop, (uint32_t)(i / g->drop.rows_per), i % g->drop.rows_per * g->n + t->j0, (int)t->columns);
    for (int64_t j = 0; j < t->columns; j += VL) {
      int n = vleft(t->columns, j);
      vstoren(g->c + at + j, vload(row + j) + vloadn(g->residual + at + j, n), n);
    }
  }
}

// finish turns the last part of the sums into the operation's results.
static void finish(const ddp_product *g, part *t) {
  switch (g->epilogue) {
  case DDP_STORE:
    keep(g, t);
    break;
  case DDP_GELU:
    if (g->gelu)
      finish_as(g, t, DDP_GELU, 1);
    else
      finish_as(g, t, DDP_GELU, 0);
    break;
  case DDP_RESIDUAL:
    if (g->drop.on)
      finish_dropped(g, t);
    else
      finish_as(g, t, DDP_RESIDUAL, 0);
    break;
  case DDP_GELU_GRAD:
    if (g->gelu)
      finish_as(g, t, DDP_GELU_GRAD, 1);
    else
      finish_as(g, t, DDP_GELU_GRAD, 0);
  }
}

// fetch lets a tile of a matrix arrive while its sums are computed.
static inline void fetch(const float *c, int64_t stride, int64_t rows, int64_t columns) {
  for (int64_t r = 0; r < rows; r++)
    for (int64_t j = 0; j < columns; j += LINE) __builtin_prefetch(c + r * stride + j, 1);
}

static void panel(const ddp_product *g, const float *a, const float *b, int64_t i0, int64_t rows, int64_t j0,
                  int64_t columns, int64_t depth, int first, int last) {
  int64_t w = width(columns), end = i0 + rows;
  part t = {.j0 = j0, .columns = columns, .add = !first || g->accumulate, .bias = last && g->bias ? g->bias + j0 : NULL};
  const float *beside = g->out ? g->out : g->pre ? g->pre : g->residual; // the epilogue's other matrix
  int plain = !last || g->epilogue == DDP_STORE;
  for (int64_t i = i0; i < end; i += MR, a += MR * depth) {
    float *c = g->sums + i * g->n + j0;
    t.i0 = i, t.rows = end - i < MR ? end - i : MR;
    fetch(c, g->n, t.rows, columns);
    if (last && beside) fetch(beside + i * g->n + j0, g->n, t.rows, columns);
    if (plain && t.rows == MR && columns == w) {
      tile(c, g->n, a, b, w, depth, t.add, t.bias);
      continue;
    }
    tile(t.sum, NR, a, b, w, depth, 0, NULL);
    if (last)
      finish(g, &t);
    else
      keep(g, &t);
  }
}

// column_sums walks the rows once for 4 vectors of columns.
static void column_sums(float *out, const float *x, int64_t rows, int64_t stride, int64_t lo, int64_t hi) {
  enum { AT_ONCE = 4 };
  int64_t j = lo;
  for (; j + AT_ONCE * VL <= hi; j += AT_ONCE * VL) {
    vf sum[AT_ONCE] = {vset(0), vset(0), vset(0), vset(0)};
    for (int64_t i = 0; i < rows; i++)
      _Pragma("GCC unroll 4") for (int v = 0; v < AT_ONCE; v++) sum[v] += vload(x + i * stride + j + v * VL);
    _Pragma("GCC unroll 4") for (int v = 0; v < AT_ONCE; v++) vstore(out + j + v * VL, sum[v]);
  }
  for (; j < hi; j += VL) {
    int n = vleft(hi, j);
    vf sum = vset(0);
    for (int64_t i = 0; i < rows; i++) sum += vloadn(x + i * stride + j, n);
    vstoren(out + j, sum, n);
  }
}
