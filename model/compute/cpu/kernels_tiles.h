// Products of the tiles of attention, STRIP rows by up to two vectors at a time
// in registers.
//
// All of them are sum[r] += a(r, p) * b[p], with a read one value at a time from
// anywhere and b's rows as vectors. Terms that causality forbids are left out,
// never multiplied by 0: what they hold may be NaN.

#if DDP_WIDTH == 64
enum { STRIP = 8 };
#elif DDP_WIDTH == 32
enum { STRIP = 6 };
#else
enum { STRIP = 4 };
#endif

// A tile of scores is QUERIES rows of up to KEYS; both are multiples of every
// STRIP, and KEYS of QUERIES, so that a tile of keys begins where one of queries does.
enum { QUERIES = 48, KEYS = 96 };

// operand is a strip's a: its value (r, p) is at at[r*row + p*step].
typedef struct {
  const float *at;
  int64_t row, step;
} operand;

// gather adds the terms from <= p < to, which all rows have. nv is 1 or 2.
INLINE void gather(vf sum[STRIP][2], int nv, operand a, const float *b, int64_t ldb, int64_t from, int64_t to) {
  const float *ap = a.at + from * a.step;
  b += from * ldb;
  for (int64_t p = from; p < to; p++, ap += a.step, b += ldb) {
    vf b0 = vload(b), b1 = nv > 1 ? vload(b + VL) : b0;
    _Pragma("GCC unroll 8") for (int r = 0; r < STRIP; r++) {
      vf x = vset(ap[r * a.row]);
      sum[r][0] += x * b0;
      if (nv > 1) sum[r][1] += x * b1;
    }
  }
}

enum order { EARLIER, LATER }; // which terms a row has: p <= r + diagonal, or p >= r + diagonal

// gather_some adds the terms that only some of the rows have.
INLINE void gather_some(vf sum[STRIP][2], int nv, operand a, const float *b, int64_t ldb, int64_t from, int64_t to,
                        enum order order, int64_t diagonal) {
  for (int64_t p = from; p < to; p++) {
    const float *ap = a.at + p * a.step, *bp = b + p * ldb;
    vf b0 = vload(bp), b1 = nv > 1 ? vload(bp + VL) : b0;
    _Pragma("GCC unroll 8") for (int r = 0; r < STRIP; r++) if (order == EARLIER ? p <= r + diagonal : p >= r + diagonal) {
      vf x = vset(ap[r * a.row]);
      sum[r][0] += x * b0;
      if (nv > 1) sum[r][1] += x * b1;
    }
  }
}

static inline int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

// add_strip adds a strip's terms p < depth in order's half to c[STRIP, nv*VL].
INLINE void add_strip(int nv, enum order order, float *c, int64_t ldc, operand a, const float *b, int64_t ldb, int64_t depth,
                      int64_t diagonal) {
  vf sum[STRIP][2];
  _Pragma("GCC unroll 8") for (int r = 0; r < STRIP; r++)
    _Pragma("GCC unroll 2") for (int j = 0; j < nv; j++) sum[r][j] = vload(c + r * ldc + j * VL);
  if (order == EARLIER) {
    int64_t all = smaller(depth, diagonal + 1);
    gather(sum, nv, a, b, ldb, 0, all);
    gather_some(sum, nv, a, b, ldb, all, smaller(depth, diagonal + STRIP), order, diagonal);
  } else {
    int64_t all = smaller(depth, larger(0, diagonal + STRIP - 1));
    gather_some(sum, nv, a, b, ldb, larger(0, diagonal), all, order, diagonal);
    gather(sum, nv, a, b, ldb, all, depth);
  }
  _Pragma("GCC unroll 8") for (int r = 0; r < STRIP; r++)
    _Pragma("GCC unroll 2") for (int j = 0; j < nv; j++) vstore(c + r * ldc + j * VL, sum[r][j]);
}

// add_rows adds one strip's product to rows of width values, a multiple of VL.
INLINE void add_rows(enum order order, float *c, operand a, const float *b, int64_t width, int64_t depth, int64_t diagonal) {
  int64_t j = 0;
  for (; j + 2 * VL <= width; j += 2 * VL) add_strip(2, order, c + j, width, a, b + j, width, depth, diagonal);
  if (j < width) add_strip(1, order, c + j, width, a, b + j, width, depth, diagonal);
}

// add_earlier is c[rows, width] += w[rows, keys <= query]·x[keys, width], where
// row r of the tile w sees keys 0 to r + diagonal.
static void add_earlier(float *c, const float *w, int64_t rows, const float *x, int64_t width, int64_t keys, int64_t diagonal) {
  for (int64_t r = 0; r < rows; r += STRIP)
    add_rows(EARLIER, c + r * width, (operand){w + r * KEYS, KEYS, 1}, x, width, keys, diagonal + r);
}

// add_later is c[keys, width] += w[queries >= key, keys]ᵀ·x[queries, width].
static void add_later(float *c, const float *w, int64_t rows, const float *x, int64_t width, int64_t keys, int64_t diagonal) {
  for (int64_t k = 0; k < keys && k - diagonal < rows; k += STRIP)
    add_rows(LATER, c + k * width, (operand){w + k, 1, KEYS}, x, width, rows, k - diagonal);
}

// score_strip writes scale * x[STRIP, d]·panel[d, nv*VL].
INLINE void score_strip(int nv, float *s, operand x, const float *panel, int64_t d, vf scale) {
  vf sum[STRIP][2] = {{{0}}};
  gather(sum, nv, x, panel, nv * VL, 0, d);
  _Pragma("GCC unroll 8") for (int r = 0; r < STRIP; r++)
    _Pragma("GCC unroll 2") for (int j = 0; j < nv; j++) vstore(s + r * KEYS + j * VL, sum[r][j] * scale);
}

// scores writes a tile scale * x[rows, d]·(keys)ᵀ from panels of pack_keys. What
// no row of a strip may see is left as it was; the rest of what a row may not
// see must be passed over.
static void scores(float *s, const float *x, int64_t width, int64_t rows, const float *panels, int64_t keys, int64_t d,
                   float scale, int64_t diagonal) {
  for (int64_t k = 0; k < keys && k - diagonal < rows; k += 2 * VL, panels += 2 * VL * d)
    for (int64_t r = larger(0, k - diagonal) / STRIP * STRIP; r < rows; r += STRIP) {
      operand a = {x + r * width, width, 1};
      if (keys - k > VL)
        score_strip(2, s + r * KEYS + k, a, panels, d, vset(scale));
      else
        score_strip(1, s + r * KEYS + k, a, panels, d, vset(scale));
    }
}

// pack_keys transposes t rows of d values into panels of two vectors' width, the
// last of one where that is enough.
static void pack_keys(float *to, const float *from, int64_t stride, int64_t t, int64_t d) {
  ddp_matrix keys = {from, 1, stride};
  for (int64_t k = 0; k < t; k += 2 * VL) pack_b(to + k * d, &keys, k, smaller(2 * VL, t - k), 0, d);
}

static inline int64_t pad(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

// copy_rows copies t rows of d values into rows of width, filled up with zeros.
static void copy_rows(float *to, const float *from, int64_t stride, int64_t t, int64_t d, int64_t width) {
  for (int64_t p = 0; p < t; p++, to += width, from += stride) {
    int64_t i = 0;
    for (; i + VL <= d; i += VL) vstore(to + i, vload(from + i));
    if (i < d) vstore(to + i, vloadn(from + i, (int)(d - i)));
  }
}

// uncopy_rows is the way back: t rows of width into rows of d values.
static void uncopy_rows(float *to, int64_t stride, const float *from, int64_t width, int64_t t, int64_t d) {
  for (int64_t p = 0; p < t; p++, to += stride, from += width) {
    int64_t i = 0;
    for (; i + VL <= d; i += VL) vstore(to + i, vload(from + i));
    if (i < d) vstoren(to + i, vload(from + i), (int)(d - i));
  }
}
