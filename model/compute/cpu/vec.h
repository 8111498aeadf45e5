// One vector of VL float32 for each instruction set. Included once by each
// isa_*.c, which has chosen the target; a * b + c is fused where the target can.
//
// DDP_WIDTH is the number of bytes of a vector: 64 (AVX-512), 32 (AVX2) or 16.
//
// Built on it: vecmath.h, the elementary functions, with vgelu(x, kind) and
// vgelu_grad(x, kind); dropout.h, with drop_row(x, drop, sample, first, n), which
// drops n elements of a sample's row in place.

#include <math.h>
#include <stdint.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define VL (DDP_WIDTH / 4)

// INLINE is for templates whose integer arguments must become constants.
#define INLINE static inline __attribute__((always_inline))

typedef float vf __attribute__((vector_size(DDP_WIDTH)));
typedef int32_t vi __attribute__((vector_size(DDP_WIDTH)));

#if VL == 16
static const vi viota = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
#elif VL == 8
static const vi viota = {0, 1, 2, 3, 4, 5, 6, 7};
#else
static const vi viota = {0, 1, 2, 3};
#endif

static inline vf vset(float x) { return x - (vf){0}; }

static inline vf vload(const float *p) {
  vf v;
  memcpy(&v, p, sizeof v);
  return v;
}

static inline void vstore(float *p, vf v) { memcpy(p, &v, sizeof v); }

// vloadn reads the first n <= VL values and nothing beyond; the other lanes are 0.
static inline vf vloadn(const float *p, int n) {
  if (n == VL) return vload(p);
#if DDP_WIDTH == 64
  return (vf)_mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1), p);
#elif DDP_WIDTH == 32
  return (vf)_mm256_maskload_ps(p, (__m256i)(viota < n));
#else
  vf v = {0};
  for (int i = 0; i < n; i++) v[i] = p[i];
  return v;
#endif
}

// vstoren writes the first n <= VL values and nothing beyond.
static inline void vstoren(float *p, vf v, int n) {
  if (n == VL) {
    vstore(p, v);
    return;
  }
#if DDP_WIDTH == 64
  _mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1), (__m512)v);
#elif DDP_WIDTH == 32
  _mm256_maskstore_ps(p, (__m256i)(viota < n), (__m256)v);
#else
  for (int i = 0; i < n; i++) p[i] = v[i];
#endif
}

// vleft is how many of values i to n-1 a vector takes.
static inline int vleft(int64_t n, int64_t i) { return n - i < VL ? (int)(n - i) : VL; }

// vmax is a where a > b, else b: b where either is NaN.
static inline vf vmax(vf a, vf b) {
#if DDP_WIDTH == 64
  return (vf)_mm512_max_ps((__m512)a, (__m512)b);
#elif DDP_WIDTH == 32
  return (vf)_mm256_max_ps((__m256)a, (__m256)b);
#elif defined(__x86_64__)
  return (vf)_mm_max_ps((__m128)a, (__m128)b);
#else
  vi more = a > b;
  return (vf)((more & (vi)a) | (~more & (vi)b));
#endif
}

// vmin is a where a < b, else b: b where either is NaN.
static inline vf vmin(vf a, vf b) {
#if DDP_WIDTH == 64
  return (vf)_mm512_min_ps((__m512)a, (__m512)b);
#elif DDP_WIDTH == 32
  return (vf)_mm256_min_ps((__m256)a, (__m256)b);
#elif defined(__x86_64__)
  return (vf)_mm_min_ps((__m128)a, (__m128)b);
#else
  vi less = a < b;
  return (vf)((less & (vi)a) | (~less & (vi)b));
#endif
}

// vless is a where x < y, else b. It selects: the other's NaN does no harm.
static inline vf vless(vf x, vf y, vf a, vf b) {
#if DDP_WIDTH == 64
  return (vf)_mm512_mask_blend_ps(_mm512_cmp_ps_mask((__m512)x, (__m512)y, _CMP_LT_OQ), (__m512)b, (__m512)a);
#else
  vi less = x < y;
  return (vf)((less & (vi)a) | (~less & (vi)b));
#endif
}

// vfirst is a in the first n lanes, b in the others.
static inline vf vfirst(int64_t n, vf a, vf b) {
#if DDP_WIDTH == 64
  return (vf)_mm512_mask_blend_ps((__mmask16)(n >= VL ? 0xffff : (1u << n) - 1), (__m512)b, (__m512)a);
#else
  vi in = viota < (int32_t)(n < VL ? n : VL);
  return (vf)((in & (vi)a) | (~in & (vi)b));
#endif
}

// vabs clears the sign.
static inline vf vabs(vf a) { return (vf)((vi)a & 0x7fffffff); }

static inline vf vsqrt(vf a) {
#if DDP_WIDTH == 64
  return (vf)_mm512_sqrt_ps((__m512)a);
#elif DDP_WIDTH == 32
  return (vf)_mm256_sqrt_ps((__m256)a);
#elif defined(__x86_64__)
  return (vf)_mm_sqrt_ps((__m128)a);
#else
  for (int i = 0; i < VL; i++) a[i] = sqrtf(a[i]);
  return a;
#endif
}

// vsum adds the lanes as a balanced tree.
static inline float vsum(vf v) {
  _Pragma("GCC unroll 4") for (int half = VL / 2; half; half /= 2) v += __builtin_shuffle(v, (viota + half) & (VL - 1));
  return v[0];
}

// vmost is the largest lane; a NaN may be passed over.
static inline float vmost(vf v) {
  _Pragma("GCC unroll 4") for (int half = VL / 2; half; half /= 2) v = vmax(v, __builtin_shuffle(v, (viota + half) & (VL - 1)));
  return v[0];
}
