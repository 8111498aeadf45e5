// Matrix product: packing and the register tile (Goto and van de Geijn 2008).
//
// A packed panel of a is MR rows, column after column; of b, NR columns (or VL
// in a last narrow panel), row after row. Missing rows and columns are 0. Every
// element of c is summed over k in order, in one accumulator for each packed
// depth, so its bits depend on nothing but k.

static void pack_a(float *to, const ddp_matrix *a, int64_t i0, int64_t rows, int64_t p0, int64_t depth) {
  for (int64_t i = 0; i < rows; i += MR, to += MR * depth) {
    int64_t n = rows - i < MR ? rows - i : MR;
    const float *from = a->p + (i0 + i) * a->row + p0 * a->col;
    if (n < MR) memset(to, 0, (size_t)(MR * depth) * 4);
    if (a->row == 1) { // transposed: a column's rows are neighbours
      for (int64_t p = 0; p < depth; p++)
        for (int64_t r = 0; r < n; r++) to[p * MR + r] = from[p * a->col + r];
    } else {
      for (int64_t r = 0; r < n; r++)
        for (int64_t p = 0; p < depth; p++) to[p * MR + r] = from[r * a->row + p * a->col];
    }
  }
}

// width is the packed width of a panel with so many columns.
static inline int64_t width(int64_t columns) { return columns <= VL ? VL : NR; }

static void pack_b(float *to, const ddp_matrix *b, int64_t j0, int64_t columns, int64_t p0, int64_t depth) {
  int64_t w = width(columns);
  const float *from = b->p + p0 * b->row + j0 * b->col;
  if (columns < w) memset(to, 0, (size_t)(w * depth) * 4);
  if (b->col == 1) {
    for (int64_t p = 0; p < depth; p++) memcpy(to + p * w, from + p * b->row, (size_t)columns * 4);
    return;
  }
  for (int64_t p = 0; p < depth; p += 16) { // 16 rows at a time stay in the cache
    int64_t end = depth - p < 16 ? depth : p + 16;
    for (int64_t j = 0; j < columns; j++)
      for (int64_t q = p; q < end; q++) to[q * w + j] = from[q * b->row + j * b->col];
  }
}

// TILE multiplies one panel of a by one of b into tile[MR][nv*VL].
#define TILE(name, nv)                                                                       \
  static inline void name(float *tile, const float *a, const float *b, int64_t depth) {     \
    vf sum[MR][nv];                                                                          \
    _Pragma("GCC unroll 16") for (int i = 0; i < MR; i++)                                    \
        _Pragma("GCC unroll 4") for (int j = 0; j < nv; j++) sum[i][j] = vset(0);            \
    for (int64_t p = 0; p < depth; p++, a += MR, b += nv * VL) {                             \
      vf bv[nv];                                                                             \
      _Pragma("GCC unroll 4") for (int j = 0; j < nv; j++) bv[j] = vload(b + j * VL);        \
      _Pragma("GCC unroll 16") for (int i = 0; i < MR; i++) {                                \
        vf x = vset(a[i]);                                                                   \
        _Pragma("GCC unroll 4") for (int j = 0; j < nv; j++) sum[i][j] += x * bv[j];         \
      }                                                                                      \
    }                                                                                        \
    _Pragma("GCC unroll 16") for (int i = 0; i < MR; i++)                                    \
        _Pragma("GCC unroll 4") for (int j = 0; j < nv; j++) vstore(tile + (i * nv + j) * VL, sum[i][j]); \
  }

TILE(tile_wide, NV)
TILE(tile_narrow, 1)

// finish applies the epilogue to v, columns [j, j+n) of row i, n <= VL.
static inline void finish(const ddp_product *g, vf v, int64_t i, int64_t j, int n, int first, int last) {
  float *c = g->c + i * g->n + j;
  if (!first || g->accumulate) v += vloadn(c, n);
  if (!last) {
    vstoren(c, v, n);
    return;
  }
  if (g->bias) v += vloadn(g->bias + j, n);
  switch (g->epilogue) {
  case DDP_STORE:
    break;
  case DDP_GELU:
    vstoren(g->out + i * g->n + j, vgelu(v, g->gelu), n);
    break;
  case DDP_RESIDUAL:
    if (g->drop.on) {
      float row[VL];
      vstore(row, v);
      drop_row(row, &g->drop, (uint32_t)(i / g->drop.rows_per), i % g->drop.rows_per * g->n + j, n);
      v = vload(row);
    }
    v += vloadn(g->residual + i * g->n + j, n);
    break;
  case DDP_GELU_GRAD:
    v *= vgelu_grad(vloadn(g->pre + i * g->n + j, n), g->gelu);
    break;
  }
  vstoren(c, v, n);
}

static void panel(const ddp_product *g, const float *a, const float *b, int64_t i0, int64_t rows, int64_t j0,
                  int64_t columns, int64_t depth, int first, int last) {
  float tile[MR * NR] __attribute__((aligned(64)));
  int64_t w = width(columns);
  for (int64_t i = 0; i < rows; i += MR, a += MR * depth) {
    if (w == VL)
      tile_narrow(tile, a, b, depth);
    else
      tile_wide(tile, a, b, depth);
    int64_t m = rows - i < MR ? rows - i : MR;
    for (int64_t r = 0; r < m; r++)
      for (int64_t j = 0; j < columns; j += VL) {
        int n = columns - j < VL ? (int)(columns - j) : VL;
        finish(g, vload(tile + r * w + j), i0 + i + r, j0 + j, n, first, last);
      }
  }
}

static void column_sums(float *out, const float *x, int64_t rows, int64_t stride, int64_t lo, int64_t hi) {
  for (int64_t j = lo; j < hi; j += VL) {
    int n = hi - j < VL ? (int)(hi - j) : VL;
    vf sum = vset(0);
    for (int64_t i = 0; i < rows; i++) sum += n == VL ? vload(x + i * stride + j) : vloadn(x + i * stride + j, n);
    vstoren(out + j, sum, n);
  }
}
