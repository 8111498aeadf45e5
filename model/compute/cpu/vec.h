// One vector of VL float32 for each instruction set, and the functions on it
// that the kernels need. Included once by each isa_*.c, which has chosen the
// target; a * b + c is fused where the target can.
//
// DDP_WIDTH is the number of bytes of a vector: 64 (AVX-512), 32 (AVX2) or 16.

#include <math.h>
#include <stdint.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define VL (DDP_WIDTH / 4)

typedef float vf __attribute__((vector_size(DDP_WIDTH)));
typedef int32_t vi __attribute__((vector_size(DDP_WIDTH)));

static inline vf vset(float x) { return x - (vf){0}; }

static inline vf vload(const float *p) {
  vf v;
  memcpy(&v, p, sizeof v);
  return v;
}

static inline void vstore(float *p, vf v) { memcpy(p, &v, sizeof v); }

// vloadn reads the first n <= VL values, the others are 0.
static inline vf vloadn(const float *p, int n) {
  if (n == VL) return vload(p);
#if DDP_WIDTH == 64
  return (vf)_mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1), p);
#else
  vf v = {0};
  memcpy(&v, p, (size_t)n * 4);
  return v;
#endif
}

// vstoren writes the first n <= VL values.
static inline void vstoren(float *p, vf v, int n) {
  if (n == VL) {
    vstore(p, v);
    return;
  }
#if DDP_WIDTH == 64
  _mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1), (__m512)v);
#else
  memcpy(p, &v, (size_t)n * 4);
#endif
}

// vpick is a where mask is all ones, b where it is 0.
static inline vf vpick(vi mask, vf a, vf b) { return (vf)((mask & (vi)a) | (~mask & (vi)b)); }

static inline vf vmax(vf a, vf b) {
#if DDP_WIDTH == 64
  return (vf)_mm512_max_ps((__m512)a, (__m512)b);
#elif DDP_WIDTH == 32
  return (vf)_mm256_max_ps((__m256)a, (__m256)b);
#else
  return vpick(a > b, a, b);
#endif
}

static inline vf vmin(vf a, vf b) { return -vmax(-a, -b); }

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
  float lane[VL];
  vstore(lane, v);
  for (int half = VL / 2; half; half /= 2)
    for (int i = 0; i < half; i++) lane[i] += lane[i + half];
  return lane[0];
}

static inline float vmost(vf v) {
  float most = v[0];
  for (int i = 1; i < VL; i++) most = v[i] > most ? v[i] : most;
  return most;
}

// vexp is e^x to about 1 ulp: x = n ln2 + r with |r| <= ln2/2, a polynomial for
// e^r (Taylor's, to degree 7) and 2^n by the exponent. 0 below -87.3; clamped above 88.3.
static inline vf vexp(vf x) {
  const vf round = vset(12582912.0f); // 1.5 * 2^23: the sum's last bit counts ones
  vf y = vmin(vmax(x, vset(-87.3f)), vset(88.3f));
  vf shifted = y * 1.44269504f + round;
  vf n = shifted - round;
  vf r = y - n * 0.693145752f; // ln2 in two parts, the first exact in n's products
  r = r - n * 1.42860677e-6f;
  vf p = vset(1.0f / 5040);
  p = p * r + 1.0f / 720;
  p = p * r + 1.0f / 120;
  p = p * r + 1.0f / 24;
  p = p * r + 1.0f / 6;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  vi power = ((vi)shifted - (vi)round + 127) << 23;
  vf e = p * (vf)power;
  e = vpick(x < vset(-87.3f), vset(0), e);
  return vpick(x != x, x, e); // a NaN stays one, so that a run that diverges shows it
}

// vphi is the normal distribution function, by the fractional approximation of
// erfc with error below 1.2e-7 (Press et al., Numerical Recipes, section 6.2).
static inline vf vphi(vf x) {
  vf z = vmax(x, -x) * 0.707106781f;
  vf t = 1.0f / (1.0f + 0.5f * z);
  vf p = vset(0.17087277f);
  p = p * t - 0.82215223f;
  p = p * t + 1.48851587f;
  p = p * t - 1.13520398f;
  p = p * t + 0.27886807f;
  p = p * t - 0.18628806f;
  p = p * t + 0.09678418f;
  p = p * t + 0.37409196f;
  p = p * t + 1.00002368f;
  p = p * t - 1.26551223f;
  vf half = 0.5f * t * vexp(p - z * z);
  return vpick(x < vset(0), half, 1.0f - half);
}

#define SQRT_2_OVER_PI 0.797884561f
#define GELU_CUBIC 0.044715f

// vgelu is the activation; with tanh it is x times the logistic function of
// twice the tanh's argument. kind as compute.GELU.
static inline vf vgelu(vf x, int kind) {
  if (kind) return x * vphi(x);
  vf u = x * (1.0f + GELU_CUBIC * x * x) * SQRT_2_OVER_PI;
  return x / (1.0f + vexp(vmin(-2.0f * u, vset(80))));
}

// vgelu_grad is its derivative.
static inline vf vgelu_grad(vf x, int kind) {
  if (kind) return vphi(x) + x * 0.398942280f * vexp(-0.5f * x * x);
  vf u = x * (1.0f + GELU_CUBIC * x * x) * SQRT_2_OVER_PI;
  vf e = vexp(vmin(-2.0f * u, vset(80)));
  vf s = 1.0f / (1.0f + e);
  return s + x * s * (e * s) * (2 * SQRT_2_OVER_PI) * (1.0f + 3 * GELU_CUBIC * x * x);
}

// Dropout's random words: see compute.Dropout for the stream's definition.

enum { WORDS = 256 }; // the most that are made at once

typedef uint64_t vu __attribute__((vector_size(DDP_WIDTH)));

enum { BLOCKS = VL / 2 }; // of four words that philox makes at once, one in each lane of a vu

// vwide multiplies the low halves of the lanes.
static inline vu vwide(vu a, uint32_t by) {
  vu b = (vu){0} + by;
#if DDP_WIDTH == 64
  return (vu)_mm512_mul_epu32((__m512i)a, (__m512i)b);
#elif DDP_WIDTH == 32
  return (vu)_mm256_mul_epu32((__m256i)a, (__m256i)b);
#elif defined(__x86_64__)
  return (vu)_mm_mul_epu32((__m128i)a, (__m128i)b);
#else
  return (a & 0xFFFFFFFFu) * b;
#endif
}

// philox writes element block first of a sample and those after it. The high
// halves of the lanes hold what is left of products; nothing reads them.
static inline void philox(uint32_t *out, const ddp_drop *d, uint32_t sample, uint32_t first) {
  vu c0, c1 = (vu){0} + (d->first_sample + sample), c2 = (vu){0} + d->place, c3 = (vu){0} + d->step;
  for (int i = 0; i < BLOCKS; i++) c0[i] = first + (uint32_t)i;
  uint32_t k0 = d->key0, k1 = d->key1;
  for (int r = 0; r < 10; r++, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u) {
    vu a = vwide(c0, 0xD2511F53u), b = vwide(c2, 0xCD9E8D57u);
    c0 = (b >> 32) ^ c1 ^ k0, c1 = b;
    c2 = (a >> 32) ^ c3 ^ k1, c3 = a;
  }
  vu words[2] = {(c0 & 0xFFFFFFFFu) | c1 << 32, (c2 & 0xFFFFFFFFu) | c3 << 32}; // little-endian pairs
  for (int i = 0; i < BLOCKS; i++)
    for (int half = 0; half < 2; half++) memcpy(out + 4 * i + 2 * half, (uint64_t *)&words[half] + i, 8);
}

// drop_row multiplies x[n], elements first.. of a sample, by their factors.
static inline void drop_row(float *x, const ddp_drop *d, uint32_t sample, int64_t first, int n) {
  typedef uint32_t vw __attribute__((vector_size(DDP_WIDTH)));
  uint32_t words[WORDS + 4 * BLOCKS + 4];
  for (int at = 0; at < n; at += WORDS) {
    int part = n - at < WORDS ? n - at : WORDS, skip = (int)((first + at) % 4);
    uint32_t block = (uint32_t)((first + at) / 4);
    for (int i = 0; i < skip + part; i += 4 * BLOCKS) philox(words + i, d, sample, block + (uint32_t)i / 4);
    for (int i = 0; i < part; i += VL) {
      int lanes = part - i < VL ? part - i : VL;
      vw w;
      memcpy(&w, words + skip + i, sizeof w);
      vi keep = (vi)(w >= d->threshold);
      vstoren(x + at + i, (vf)((vi)(vloadn(x + at + i, lanes) * d->scale) & keep), lanes);
    }
  }
}
