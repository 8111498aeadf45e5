// Dropout's random words, Philox4x32-10: compute.Dropout defines the stream,
// which is the same for every instruction set.

typedef uint64_t vw __attribute__((vector_size(DDP_WIDTH)));

enum { COUNTERS = VL / 2 }; // one in each lane of a vw, four words from each

#if VL == 16
static const vw vcount = {0, 1, 2, 3, 4, 5, 6, 7}, vfront = {0, 8, 1, 9, 2, 10, 3, 11}, vback = {4, 12, 5, 13, 6, 14, 7, 15};
#elif VL == 8
static const vw vcount = {0, 1, 2, 3}, vfront = {0, 4, 1, 5}, vback = {2, 6, 3, 7};
#else
static const vw vcount = {0, 1}, vfront = {0, 2}, vback = {1, 3};
#endif

#define LOW_WORD 0xffffffffu

// vwide multiplies the low halves of the lanes.
static inline vw vwide(vw a, uint32_t by) {
  vw b = by + (vw){0};
#if DDP_WIDTH == 64
  return (vw)_mm512_mul_epu32((__m512i)a, (__m512i)b);
#elif DDP_WIDTH == 32
  return (vw)_mm256_mul_epu32((__m256i)a, (__m256i)b);
#elif defined(__x86_64__)
  return (vw)_mm_mul_epu32((__m128i)a, (__m128i)b);
#else
  return (a & LOW_WORD) * b;
#endif
}

// Words that drop_words makes at most, and room for what it rounds them up to.
enum { WORDS = 256, WORDS_ROOM = WORDS + 4 * VL + 4 };

// philox writes the words of sets * COUNTERS counters from block on: two sets at
// once where there is use for them, as one would wait for its own products. The
// high halves of the lanes hold what is left of products; nothing reads them.
INLINE void philox(uint32_t *to, int sets, const ddp_drop *d, uint32_t sample, uint64_t block) {
  vw c0[2], c1[2], c2[2], c3[2];
  _Pragma("GCC unroll 2") for (int i = 0; i < sets; i++) {
    c0[i] = vcount + (block + (uint64_t)i * COUNTERS);
    c1[i] = (d->first_sample + sample) + (vw){0};
    c2[i] = d->place + (vw){0};
    c3[i] = d->step + (vw){0};
  }
  uint32_t k0 = d->key0, k1 = d->key1;
  _Pragma("GCC unroll 10") for (int round = 0; round < 10; round++, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u)
    _Pragma("GCC unroll 2") for (int i = 0; i < sets; i++) {
      vw a = vwide(c0[i], 0xD2511F53u), b = vwide(c2[i], 0xCD9E8D57u);
      c0[i] = (b >> 32) ^ c1[i] ^ k0, c1[i] = b;
      c2[i] = (a >> 32) ^ c3[i] ^ k1, c3[i] = a;
    }
  _Pragma("GCC unroll 2") for (int i = 0; i < sets; i++) {
    vw x = (c0[i] & LOW_WORD) | c1[i] << 32, y = (c2[i] & LOW_WORD) | c3[i] << 32; // little-endian pairs
    vw front = __builtin_shuffle(x, y, vfront), back = __builtin_shuffle(x, y, vback);
    memcpy(to + 2 * VL * i, &front, sizeof front);
    memcpy(to + 2 * VL * i + VL, &back, sizeof back);
  }
}

// drop_words writes the words of elements first to first+n-1 of a sample, n <= WORDS,
// and returns where in room they begin.
static inline const uint32_t *drop_words(uint32_t *room, const ddp_drop *d, uint32_t sample, int64_t first, int n) {
  int skip = (int)(first % 4), at = 0;
  uint64_t block = (uint64_t)(first / 4);
  for (; at + 2 * VL < skip + n; at += 4 * VL) philox(room + at, 2, d, sample, block + (uint64_t)at / 4);
  if (at < skip + n) philox(room + at, 1, d, sample, block + (uint64_t)at / 4);
  return room + skip;
}

// vkeep is a where the words' elements are kept, else 0, be a NaN. It reads VL
// words, past a row's last ones too: room is large enough.
static inline vf vkeep(const uint32_t *words, uint32_t threshold, vf a) {
  vi w;
  memcpy(&w, words, sizeof w);
#if DDP_WIDTH == 64
  return (vf)_mm512_maskz_mov_ps(_mm512_cmpge_epu32_mask((__m512i)w, _mm512_set1_epi32((int)threshold)), (__m512)a);
#else
  const int32_t sign = INT32_MIN; // compares as unsigned
  vi dropped = (w ^ sign) < ((int32_t)threshold ^ sign);
  return (vf)(~dropped & (vi)a);
#endif
}

// drop_row drops x[n], elements first.. of a sample, and scales what is kept.
static inline void drop_row(float *x, const ddp_drop *d, uint32_t sample, int64_t first, int n) {
  uint32_t room[WORDS_ROOM];
  vf scale = vset(d->scale);
  for (int at = 0; at < n; at += WORDS) {
    int part = n - at < WORDS ? n - at : WORDS;
    const uint32_t *words = drop_words(room, d, sample, first + at, part);
    for (int i = 0; i < part; i += VL) {
      int k = vleft(part, i);
      vstoren(x + at + i, vkeep(words + i, d->threshold, vloadn(x + at + i, k) * scale), k);
    }
  }
}
