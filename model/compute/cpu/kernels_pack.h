// Packing for the product. A panel holds w lanes (MR rows of a, or a vector's
// multiple of columns of b) of one depth: for each step of the sum, its w values
// side by side. Lanes that the matrix lacks are 0.

enum { LINE = 16 }; // values of a cache line

#if DDP_WIDTH >= 32
// transpose writes 4 steps of n lanes, 8 or 6, which are lane apart in from.
static inline void transpose(float *to, int64_t w, const float *from, int64_t lane, int n) {
  __m256 r[4];
  for (int i = 0; i < 4; i++) {
    int high = 4 + i < n ? 4 + i : n - 1; // of 6 lanes the last again, instead of what lies past them
    r[i] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(from + i * lane)), _mm_loadu_ps(from + high * lane), 1);
  }
  __m256 a = _mm256_unpacklo_ps(r[0], r[1]), b = _mm256_unpackhi_ps(r[0], r[1]);
  __m256 c = _mm256_unpacklo_ps(r[2], r[3]), d = _mm256_unpackhi_ps(r[2], r[3]);
  __m256 steps[4] = {_mm256_shuffle_ps(a, c, 0x44), _mm256_shuffle_ps(a, c, 0xEE), _mm256_shuffle_ps(b, d, 0x44),
                     _mm256_shuffle_ps(b, d, 0xEE)};
  for (int i = 0; i < 4; i++) {
    if (n == 8) {
      _mm256_storeu_ps(to + i * w, steps[i]);
    } else {
      _mm_storeu_ps(to + i * w, _mm256_castps256_ps128(steps[i]));
      _mm_storel_pi((__m64 *)(to + i * w + 4), _mm256_extractf128_ps(steps[i], 1));
    }
  }
}
enum { LANES = MR % 8 == 0 ? 8 : MR }; // of the rows of a
enum { B_LANES = 8 };
#else
static inline void transpose(float *to, int64_t w, const float *from, int64_t lane, int n) {
  typedef float quad __attribute__((vector_size(16)));
  typedef int order __attribute__((vector_size(16)));
  (void)n;
  quad r[4];
  for (int i = 0; i < 4; i++) memcpy(&r[i], from + i * lane, sizeof r[i]);
  quad a = __builtin_shuffle(r[0], r[1], (order){0, 4, 1, 5}), b = __builtin_shuffle(r[0], r[1], (order){2, 6, 3, 7});
  quad c = __builtin_shuffle(r[2], r[3], (order){0, 4, 1, 5}), d = __builtin_shuffle(r[2], r[3], (order){2, 6, 3, 7});
  quad steps[4] = {__builtin_shuffle(a, c, (order){0, 1, 4, 5}), __builtin_shuffle(a, c, (order){2, 3, 6, 7}),
                   __builtin_shuffle(b, d, (order){0, 1, 4, 5}), __builtin_shuffle(b, d, (order){2, 3, 6, 7})};
  for (int i = 0; i < 4; i++) memcpy(to + i * w, &steps[i], sizeof steps[i]);
}
enum { LANES = 4 };
enum { B_LANES = 4 };
#endif

// pack_across packs a whole panel whose steps are neighbours in memory: it
// transposes, a cache line of each lane at a time.
static inline void pack_across(float *to, int64_t w, const float *from, int64_t lane, int64_t depth, int lanes) {
  int64_t whole = depth / 4 * 4;
  for (int64_t p = 0; p < whole; p += LINE)
    for (int64_t l = 0; l < w; l += lanes)
      for (int64_t q = p; q < p + LINE && q < whole; q += 4) transpose(to + q * w + l, w, from + l * lane + q, lane, lanes);
  for (int64_t p = whole; p < depth; p++)
    for (int64_t l = 0; l < w; l++) to[p * w + l] = from[l * lane + p];
}

// pack_along packs n whole panels, size apart, whose lanes are neighbours; steps
// are next apart.
static inline void pack_along(float *to, int64_t w, int n, int64_t size, const float *from, int64_t next, int64_t depth) {
  enum { AHEAD = 16 };
  for (int64_t p = 0; p < depth; p++, from += next, to += w) {
    if (p + AHEAD < depth)
      for (int64_t l = 0; l < n * w; l += LINE) __builtin_prefetch(from + AHEAD * next + l);
    for (int i = 0; i < n; i++) memcpy(to + i * size, from + i * w, (size_t)w * 4);
  }
}

// pack_part packs a panel that has only n lanes.
static void pack_part(float *to, int64_t w, const float *from, int64_t lane, int64_t next, int64_t n, int64_t depth) {
  memset(to, 0, (size_t)(w * depth) * 4);
  for (int64_t p = 0; p < depth; p++)
    for (int64_t l = 0; l < n; l++) to[p * w + l] = from[l * lane + p * next];
}

// pack_a packs AT_ONCE panels of a transposed matrix together, so that what a
// step reads is whole cache lines.
static void pack_a(float *to, const ddp_matrix *a, int64_t i0, int64_t rows, int64_t p0, int64_t depth) {
  enum { AT_ONCE = 4 };
  int64_t size = MR * depth;
  for (int64_t i = 0; i < rows;) {
    const float *from = a->p + (i0 + i) * a->row + p0 * a->col;
    if (rows - i < MR) {
      pack_part(to, MR, from, a->row, a->col, rows - i, depth);
    } else if (a->col == 1) {
      pack_across(to, MR, from, a->row, depth, LANES);
    } else if (rows - i < AT_ONCE * MR) {
      pack_along(to, MR, 1, size, from, a->col, depth);
    } else {
      pack_along(to, MR, AT_ONCE, size, from, a->col, depth);
      i += (AT_ONCE - 1) * MR, to += (AT_ONCE - 1) * size;
    }
    i += MR, to += size;
  }
}

// width is the packed width of a panel with so many columns: whole vectors.
static inline int64_t width(int64_t columns) { return (columns + VL - 1) / VL * VL; }

// pack_b packs all panels of its columns together where that lets a step read
// neighbours in memory: short runs, far apart, would wait for memory each time.
static void pack_b(float *to, const ddp_matrix *b, int64_t j0, int64_t columns, int64_t p0, int64_t depth) {
  const float *from = b->p + p0 * b->row + j0 * b->col;
  int64_t whole = columns / NR, j = whole * NR, w = width(columns - j);
  if (b->col == 1)
    pack_along(to, NR, (int)whole, NR * depth, from, b->row, depth);
  else
    for (int64_t i = 0; i < whole; i++) pack_across(to + i * NR * depth, NR, from + i * NR * b->col, b->col, depth, B_LANES);
  if (j < columns) pack_part(to + j * depth, w, from + j * b->col, b->col, b->row, columns - j, depth);
}
