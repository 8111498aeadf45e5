// Elementary functions of a vector. Coefficients are fits of least relative error
// (Lawson's weighted least squares). math_test.go holds the errors' bounds.

// vexp is e^x within 1.3 ulp; 0 below -87.3 and e^88.3 above 88.3. A NaN stays
// one, so that a run that diverges shows it.
//
// x = n ln2 + r with |r| <= ln2/2, a polynomial for e^r, and 2^n by the exponent.
static inline vf vexp(vf x) {
  const vf round = vset(12582912.0f), least = vset(-87.3f); // 1.5 * 2^23: the sum's last bit counts ones
  vf y = vmin(vset(88.3f), vmax(least, x));
  vf shifted = y * 1.44269504f + round;
  vf n = shifted - round;
  vf r = y - n * 0.693145752f; // ln2 in two parts, the first exact in n's products
  r = r - n * 1.42860677e-6f;
  vf p = vset(0.00139013061f);
  p = p * r + 0.00836320035f;
  p = p * r + 0.0416668542f;
  p = p * r + 0.166665763f;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  vi power = ((vi)shifted - (vi)round + 127) << 23;
  return vless(x, least, vset(0), p * (vf)power);
}

// vlog is the natural logarithm of a normal x > 0 within 1 ulp; infinity and NaN
// are themselves.
//
// x = 2^n (1+f) with 1+f between sqrt(1/2) and sqrt(2), and a polynomial for log(1+f).
static inline vf vlog(vf x) {
  const vi root = (vi)vset(0.707106781f);
  vi steps = ((vi)x - root) >> 23;
  vf f = (vf)((vi)x - (steps << 23)) - 1.0f, n = __builtin_convertvector(steps, vf), square = f * f;
  vf p = vset(0.0703758597f);
  p = p * f - 0.115145594f;
  p = p * f + 0.116770111f;
  p = p * f - 0.124201484f;
  p = p * f + 0.142493218f;
  p = p * f - 0.166680574f;
  p = p * f + 0.200007141f;
  p = p * f - 0.24999994f;
  p = p * f + 0.333333313f;
  p = p * f * square + n * 1.42860677e-6f - 0.5f * square;
  return vless(x, vset(INFINITY), n * 0.693145752f + (f + p), x);
}

// vgauss is e^(-x^2/2). The rounding error of the square, which the exponential
// would magnify, is found by splitting x (Dekker 1971) and made good.
static inline vf vgauss(vf x) {
  vf high = (vf)((vi)x & ~0xfff), low = x - high, square = x * x;
  vf lost = (high * high - square) + 2.0f * high * low + low * low;
  vf e = vexp(-0.5f * square);
  return vless(vset(0), e, e - e * (0.5f * lost), vset(0)); // 0 also where the square overflowed
}

// vtail is the normal distribution's share beyond |x|, given gauss = e^(-x^2/2):
// their quotient is smooth in t = 1/(1 + 0.4|x|); the polynomial's middle is 0.7.
static inline vf vtail(vf x, vf gauss) {
  vf t = 1.0f / (1.0f + 0.4f * vabs(x)), s = t - 0.7f;
  vf p = vset(0.0319030955f);
  p = p * s + 0.0258642696f;
  p = p * s - 0.039589759f;
  p = p * s + 0.00158696494f;
  p = p * s + 0.0608138554f;
  p = p * s - 0.0577010587f;
  p = p * s - 0.0972788259f;
  p = p * s + 0.171189368f;
  p = p * s + 0.424792588f;
  p = p * s + 0.360106498f;
  return gauss * t * p;
}

// vphi is the normal distribution function, within 7 ulp however small it is.
static inline vf vphi(vf x, vf gauss) {
  vf tail = vtail(x, gauss);
  return vless(x, vset(0), tail, 1.0f - tail);
}

// The tanh form's argument is u = U1 x + U3 x^3.
#define U1 0.797884561f   // sqrt(2/pi)
#define U3 0.0356774081f // 0.044715 sqrt(2/pi)

// vgate is e^(-2u), for (1+tanh u)/2 = 1/(1+e^(-2u)); at most e^87, so that the
// quotient stays a normal number.
static inline vf vgate(vf x) { return vexp(vmin(vset(87), x * (-2 * U1 - 2 * U3 * (x * x)))); }

// vgelu is the activation, kind as compute.GELU: 0 with tanh, 1 exact. A kind that
// is constant where it is called leaves no branch.
static inline vf vgelu(vf x, int kind) {
  if (kind) return x * vphi(x, vgauss(x));
  return vmax(vset(-30), x) / (1.0f + vgate(x)); // below -30 the quotient is as good as 0, however large x
}

// vgelu_grad is its derivative.
static inline vf vgelu_grad(vf x, int kind) {
  if (kind) {
    vf gauss = vgauss(x);
    return vphi(x, gauss) + x * 0.398942280f * gauss;
  }
  vf e = vgate(x), s = 1.0f / (1.0f + e);
  vf near = vmin(vset(20), vmax(vset(-20), x)); // beyond, the product is 0 and must not meet an infinite square
  vf steep = near * (2 * U1 + 6 * U3 * (near * near));
  return s + s * (e * s) * steep;
}
