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

enum { WORDS = 256 }; // the most that drop_words makes at once

// drop_words writes the words of elements first to first+n-1 of a sample, n <= WORDS.
static inline void drop_words(uint32_t *out, const ddp_drop *d, uint32_t sample, int64_t first, int n) {
  uint32_t c0[WORDS / 4 + 1], c1[WORDS / 4 + 1], c2[WORDS / 4 + 1], c3[WORDS / 4 + 1], all[WORDS + 4];
  int blocks = (int)((first + n - 1) / 4 - first / 4) + 1;
  for (int i = 0; i < blocks; i++) {
    c0[i] = (uint32_t)(first / 4) + (uint32_t)i;
    c1[i] = d->first_sample + sample;
    c2[i] = d->place;
    c3[i] = d->step;
  }
  uint32_t k0 = d->key0, k1 = d->key1;
  for (int r = 0; r < 10; r++, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u)
    for (int i = 0; i < blocks; i++) {
      uint64_t a = (uint64_t)c0[i] * 0xD2511F53u, b = (uint64_t)c2[i] * 0xCD9E8D57u;
      uint32_t n0 = (uint32_t)(b >> 32) ^ c1[i] ^ k0, n2 = (uint32_t)(a >> 32) ^ c3[i] ^ k1;
      c0[i] = n0, c1[i] = (uint32_t)b, c2[i] = n2, c3[i] = (uint32_t)a;
    }
  for (int i = 0; i < blocks; i++) all[4 * i] = c0[i], all[4 * i + 1] = c1[i], all[4 * i + 2] = c2[i], all[4 * i + 3] = c3[i];
  memcpy(out, all + first % 4, (size_t)n * 4);
}

// drop_row multiplies x[n], elements first.. of a sample, by their factors.
static inline void drop_row(float *x, const ddp_drop *d, uint32_t sample, int64_t first, int n) {
  uint32_t words[WORDS];
  for (int at = 0; at < n; at += WORDS) {
    int part = n - at < WORDS ? n - at : WORDS;
    drop_words(words, d, sample, first + at, part);
    for (int i = 0; i < part; i++) x[at + i] = words[i] >= d->threshold ? x[at + i] * d->scale : 0;
  }
}
