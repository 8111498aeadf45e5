// Matrix product: packing and the register tile (Goto and van de Geijn 2008).
//
// A packed panel of a is MR rows, column after column; of b, NR columns (fewer
// vectors in a last narrow panel), row after row. Missing rows and columns are 0. Every
// element of c is summed over k in order, in one accumulator for each packed
// depth, so its bits depend on nothing but k.

typedef float quad __attribute__((vector_size(16)));

// transpose4 writes 4 rows of 4 values, stride apart, as 4 columns MR apart.
static inline void transpose4(float *to, const float *from, int64_t stride) {
  typedef int order __attribute__((vector_size(16)));
  quad r[4];
  for (int i = 0; i < 4; i++) memcpy(&r[i], from + i * stride, sizeof r[i]);
  quad a = __builtin_shuffle(r[0], r[1], (order){0, 4, 1, 5}), b = __builtin_shuffle(r[0], r[1], (order){2, 6, 3, 7});
  quad c = __builtin_shuffle(r[2], r[3], (order){0, 4, 1, 5}), d = __builtin_shuffle(r[2], r[3], (order){2, 6, 3, 7});
  quad out[4] = {__builtin_shuffle(a, c, (order){0, 1, 4, 5}), __builtin_shuffle(a, c, (order){2, 3, 6, 7}),
                 __builtin_shuffle(b, d, (order){0, 1, 4, 5}), __builtin_shuffle(b, d, (order){2, 3, 6, 7})};
  for (int i = 0; i < 4; i++) memcpy(to + i * MR, &out[i], sizeof out[i]);
}

// pack_rows_of packs n <= MR rows, each depth neighbours long.
static void pack_rows_of(float *to, const float *from, int64_t stride, int64_t n, int64_t depth) {
  int64_t quads = n / 4 * 4, columns = depth / 4 * 4;
  for (int64_t p = 0; p < columns; p += 4)
    for (int64_t r = 0; r < quads; r += 4) transpose4(to + p * MR + r, from + r * stride + p, stride);
  for (int64_t r = 0; r < n; r++)
    for (int64_t p = r < quads ? columns : 0; p < depth; p++) to[p * MR + r] = from[r * stride + p];
}

static void pack_a(float *to, const ddp_matrix *a, int64_t i0, int64_t rows, int64_t p0, int64_t depth) {
  for (int64_t i = 0; i < rows; i += MR, to += MR * depth) {
    int64_t n = rows - i < MR ? rows - i : MR;
    const float *from = a->p + (i0 + i) * a->row + p0 * a->col;
    if (n < MR) memset(to, 0, (size_t)(MR * depth) * 4);
    if (a->col == 1)
      pack_rows_of(to, from, a->row, n, depth);
    else if (n == MR) // transposed: a column's rows are neighbours
      for (int64_t p = 0; p < depth; p++) memcpy(to + p * MR, from + p * a->col, MR * 4);
    else
      for (int64_t p = 0; p < depth; p++)
        for (int64_t r = 0; r < n; r++) to[p * MR + r] = from[p * a->col + r];
  }
}

// width is the packed width of a panel with so many columns: whole vectors.
static inline int64_t width(int64_t columns) { return (columns + VL - 1) / VL * VL; }

static void pack_b(float *to, const ddp_matrix *b, int64_t j0, int64_t columns, int64_t p0, int64_t depth) {
  int64_t w = width(columns);
  const float *from = b->p + p0 * b->row + j0 * b->col;
  if (columns < w) memset(to, 0, (size_t)(w * depth) * 4);
  if (b->col == 1) {
    if (columns == NR) // a copy of fixed length is a few vectors, not a call
      for (int64_t p = 0; p < depth; p++) memcpy(to + p * NR, from + p * b->row, NR * 4);
    else
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
    _Pragma("GCC unroll 4") for (int64_t p = 0; p < depth; p++, a += MR, b += nv * VL) {     \
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

TILE(tile_1, 1)
TILE(tile_2, 2)
#if NV == 3
TILE(tile_3, 3)
#endif

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
    int64_t m = rows - i < MR ? rows - i : MR;
    for (int64_t r = 0; r < m; r++) // c arrives while the tile is computed
      for (int64_t j = 0; j < columns; j += 16) __builtin_prefetch(g->c + (i0 + i + r) * g->n + j0 + j, 1);
    if (w == VL)
      tile_1(tile, a, b, depth);
    else if (w == 2 * VL)
      tile_2(tile, a, b, depth);
#if NV == 3
    else
      tile_3(tile, a, b, depth);
#endif
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
