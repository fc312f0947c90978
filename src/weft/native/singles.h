// Included by formulas.h for each vector width: functions of float32 that are computed in float32.
// The error is at most 1.5 ulp, except for sums of logarithms and gelu. Rounding errors are
// compensated where they matter. Polynomials are minimax fits of the relative error.

WEFT_HERE F Abs(F x) { return (F)((J)x & INT32_MAX); }
WEFT_HERE F CopySign(F x, F y) { return (F)((J)x | ((J)y & INT32_MIN)); }
WEFT_HERE F Root(F x) {
#if defined(__x86_64__) && WEFT_BYTES == 64
  return (F)_mm512_sqrt_ps((__m512)x);
#elif defined(__x86_64__) && WEFT_BYTES == 32
  return (F)_mm256_sqrt_ps((__m256)x);
#else
  for (int i = 0; i < kBytes / 4; ++i) x[i] = std::sqrt(x[i]);
  return x;
#endif
}
// x y + z, rounded once.
WEFT_HERE F Fused(F x, F y, F z) {
#if defined(__x86_64__) && WEFT_BYTES == 64
  return (F)_mm512_fmadd_ps((__m512)x, (__m512)y, (__m512)z);
#elif defined(__x86_64__) && WEFT_BYTES == 32
  return (F)_mm256_fmadd_ps((__m256)x, (__m256)y, (__m256)z);
#else
  for (int i = 0; i < kBytes / 4; ++i) x[i] = std::fma(x[i], y[i], z[i]);
  return x;
#endif
}
WEFT_HERE F Of(float x) { return F{} + x; }

// x - y trunc(x / y), exact of quotients below 2**22; one that was rounded up leaves less than zero.
WEFT_HERE F Remainder(F x, F y) {
  const F a = Abs(x), b = Abs(y), q = a / b, near = (q + 0x1.8p23f) - 0x1.8p23f;
  const F rest = Fused(near > q ? 1 - near : -near, b, a);
  return a < b ? x : CopySign(rest < 0 ? rest + b : rest, x);
}
WEFT_HERE F RemainderEach(F x, F y) {
  for (int i = 0; i < kBytes / 4; ++i) x[i] = std::fmod(x[i], y[i]);
  return x;
}

#if defined(__x86_64__) && WEFT_BYTES == 64
WEFT_HERE F InverseRoot(F x) {
  const F y = (F)_mm512_rsqrt14_ps((__m512)x), e = Fused(-(x * y), y, Of(1));  // NaN where x is 0
  return e == e ? Fused(y * e, Fused(e, Of(0.375f), Of(0.5f)), y) : y;
}
WEFT_HERE bool MayHave(J x) { return _mm512_movepi32_mask((__m512i)x); }  // any that is true
#else
WEFT_HERE F InverseRoot(F x) { return 1 / Root(x); }
WEFT_HERE bool MayHave(J x) { return true; }
#endif
WEFT_HERE F Number(J k) { return __builtin_convertvector(k, F); }

template <int kCount>
WEFT_HERE F Polynomial(F x, const float (&c)[kCount]) {
  F y = Of(c[kCount - 1]);
  for (int i = kCount - 2; i >= 0; --i) y = Fused(y, x, Of(c[i]));
  return y;
}

// --- inverses of circular functions ---

constexpr float kQuarter = 1.57079637f, kQuarterLow = -4.37113883e-8f;  // pi / 2

// s, |x| or of |x| above 1/2 the root of (1 - |x|) / 2, and by how much its arc sine is more.
WEFT_HERE F Arc(F a, J large, F& s) {
  constexpr float kArc[] = {0.166667521f, 0.0749528557f, 0.0454720855f, 0.0241702572f,
                            0.042183239f};
  const F z = large ? 0.5f - a * 0.5f : a * a;
  s = large ? Root(z) : a;
  return s * z * Polynomial(z, kArc);
}

WEFT_HERE F ArcSine(F x) {
  const F a = Abs(x);
  const J large = a > 0.5f;
  F s;
  const F more = Arc(a, large, s), times = large ? Of(-2) : Of(1);
  const F base = large ? Of(kQuarter) : F{}, low = large ? Of(kQuarterLow) : F{};
  const F y = Fused(times, s, base), lack = Fused(times, s, base - y);
  return CopySign(y + (Fused(times, more, low) + lack), x);
}

WEFT_HERE F ArcCosine(F x) {
  const F a = Abs(x);
  const J large = a > 0.5f, turned = large & (x < 0);
  F s;
  const F more = Arc(a, large, s);
  const F size = large ? Of(2) : Of(-1), times = (F)((J)size ^ ((J)x & INT32_MIN));
  const F count = turned ? Of(2) : large ? F{} : Of(1);
  return Fused(count, Of(kQuarter), Fused(times, s, Fused(times, more, count * kQuarterLow)));
}

// For |x| above 1 by the arc tangent of -1 / |x|.
WEFT_HERE F ArcTangent(F x) {
  constexpr float kAngle[] = {-0.333332986f, 0.199985489f, -0.142642424f,
                              0.109521888f, -0.0840345621f, 0.0579576567f,
                              -0.0311778784f, 0.0109146107f, -0.00179362064f};
  const F a = Abs(x);
  const J large = a > 1;
  const F t = large ? -1 / a : a, z = t * t;
  const F base = large ? Of(kQuarter) : F{}, low = large ? Of(kQuarterLow) : F{};
  return CopySign((base + t) + Fused(t * z, Polynomial(z, kAngle), low), x);
}

// --- the tangent ---

// Of |x| < 2**16. Multiples of the first part of pi / 2 are taken off without rounding.
WEFT_HERE F TangentNear(F x) {
  constexpr float kSum[] = {0.333331287f, 0.133395419f, 0.0533490479f,
                            0.0246548038f, 0.00275595183f, 0.00960269012f};
  const F k = Fused(x, Of(0.636619747f), Of(0x1.8p23f)), n = k - 0x1.8p23f;
  const F a = Fused(n, Of(-1.57079637f), x), b = n * 4.37113883e-8f, r = a + b, z = r * r;
  const F rest = ((a - r) + b) + Fused(n, Of(1.71512451e-15f), Fused(n, Of(4.37113883e-8f), -b));
  const F more = Fused(r * z, Polynomial(z, kSum), rest + rest * z), t = r + more;
  const F low = (r - t) + more;
  const J odd = ((J)k & 1) != 0;
  const F q = -1 / t, lack = Fused(q, t, Of(1)) + q * low;  // q is too large by the share of lack
  return odd ? q + q * lack : t;
}

// Of any x, in halves.
WEFT_HERE_CALLED F TangentOfAny(F x) {
  H halves[2];
  std::memcpy(halves, &x, sizeof(F));
  for (H& half : halves) half = Narrow(TangentFar(Wide(half)));
  std::memcpy(&x, halves, sizeof(F));
  return x;
}

// --- exponentials ---

// r, by how much it is short, and n of x = r + n log 2.
WEFT_HERE F SplitPowers(F x, F& low, J& n) {
  const F k = Fused(x, Of(1.44269502f), Of(0x1.8p23f)), m = k - 0x1.8p23f;
  const F a = Fused(m, Of(-0.693145752f), x), r = Fused(m, Of(-1.42860677e-6f), a);
  low = Fused(m, Of(-1.42860677e-6f), a - r);
  n = (J)((W)k - 0x4B400000);
  return r;
}
// e**r - 1 - r for |r| <= log(2) / 2.
WEFT_HERE F ExpRest(F r) {
  constexpr float kExp[] = {0.5f, 0.166666672f, 0.041666314f,
                            0.00833321549f, 0.00139443402f, 0.000199647795f};
  return r * r * Polynomial(r, kExp);
}
WEFT_HERE F PowerOf2(W n) { return (F)((n + 127) << 23); }

// x 2**n of k = n + 0x1.8p23, rounded once.
WEFT_HERE F Scale(F x, F k) {
#if defined(__x86_64__) && WEFT_BYTES == 64
  return (F)_mm512_scalef_ps((__m512)x, (__m512)(k - 0x1.8p23f));
#else
  const J n = (J)((W)k - 0x4B400000), first = n >> 1;
  return x * PowerOf2((W)first) * PowerOf2((W)n - (W)first);
#endif
}
WEFT_HERE F Held(F x, float low, float high) { return x < low ? Of(low) : x > high ? Of(high) : x; }
WEFT_HERE F Exp(F x, bool any = true) {  // else of none above 0
  const F a = any ? Held(x, -104, 89) : x < -104 ? Of(-104) : x;
  const F k = Fused(a, Of(1.44269502f), Of(0x1.8p23f)), m = k - 0x1.8p23f;
  const F r = Fused(m, Of(-1.42860677e-6f), Fused(m, Of(-0.693145752f), a));
  return Scale(1 + (r + ExpRest(r)), k);
}

constexpr float kPowers[] = {0.693147242f, 0.240226507f, 0.0555029623f,
                             0.00961802993f, 0.00134103082f, 0.00015469997f};  // (2**r - 1) / r
WEFT_HERE F Exp2(F x) {
  const F held = Held(x, -150, 128), k = held + 0x1.8p23f, r = held - (k - 0x1.8p23f);
  return Scale(Fused(r, Polynomial(r, kPowers), Of(1)), k);
}

WEFT_HERE F ExpM1(F x) {
  const F most = x > 89 ? Of(89) : x, held = most < -18 ? Of(-18) : most;
  F low;
  J n;
  // 2**(n - 1): 2**128 would overflow.
  const F r = SplitPowers(held, low, n), half = PowerOf2((W)n - 1);
  const F y = Fused(half, r, half - 0.5f);
  return Fused(half, ExpRest(r) + low, y) * 2;
}

// e**(|x|) as two hyperbolic functions: of r the sine, the cosine less 1, and 2**n.
WEFT_HERE F Hyperbolic(F x, bool sine) {
  constexpr float kOdd[] = {0.166666672f, 0.0083332872f, 0.000199062153f};
  constexpr float kEven[] = {0.5f, 0.0416662507f, 0.001394736f};
  F a = Abs(x), low;
  a = a > 89.6f ? Of(89.6f) : a;
  J n;
  const F r = SplitPowers(a, low, n), z = r * r;
  const F odd = Fused(r * z, Polynomial(z, kOdd), low), even = z * Polynomial(z, kEven);
  const J under = n < 100 ? n : J{} + 100;
  const F up = PowerOf2((W)n - 2), down = PowerOf2(-2 - (W)under), sum = up + down, rest = up - down;
  if (!sine) {
    const F falling = down * (1 + (even - (r + odd)));
    return (up + Fused(up, r, Fused(up, even + odd, falling))) * 2;
  }
  return CopySign((rest + Fused(sum, r, Fused(sum, odd, rest * even))) * 2, x);
}
// For |x| above 0.55 by 2**(2 log2(e) |x|). Its rounding error matters less the larger |x| is.
WEFT_HERE F Tanh(F x) {
  constexpr float kNear[] = {-0.333333164f, 0.133325443f, -0.0538475476f, 0.021050714f,
                             -0.00624284893f};
  const F a = Abs(x), z = a * a, near = Fused(a * z, Polynomial(z, kNear), a);
  const F held = a > 10 ? Of(10) : a, k = Fused(held, Of(2.88539004f), Of(0x1.8p23f));
  const F r = Fused(held, Of(2.88539004f), -(k - 0x1.8p23f));
  const F e = Scale(Fused(r, Polynomial(r, kPowers), Of(1)), k);
  return CopySign(a < 0.55f ? near : 1 - 2 / (e + 1), x);
}
WEFT_HERE F Logistic(F x) {
  const F e = Exp(-Abs(x), false);
  return (x < 0 ? e : Of(1)) / (1 + e);
}

// --- logarithms ---

// log(1 + f) as f + rest, and n, of v = (1 + f) 2**n.
WEFT_HERE F SplitLog(F v, F& rest, J& n) {
  constexpr float kLog[] = {0.333333313f, -0.250008225f, 0.200012356f, -0.166233018f,
                            0.142015055f, -0.131604999f, 0.127636462f, -0.0763631016f};
  n = (J)((W)v - 0x3F3504F3) >> 23;
  const F f = (F)((W)v - ((W)n << 23)) - 1;
  rest = f * f * Fused(f, Polynomial(f, kLog), Of(-0.5f));
  return f;
}
// log(v + low) of a positive v, low below its unit, and `more` times log 2.
WEFT_HERE F Log(F v, F low, F more = F{}) {
  F rest;
  J n;
  const F f = SplitLog(v, rest, n), k = Number(n) + more;
  return Fused(k, Of(0.693145752f), f + (Fused(k, Of(1.42860677e-6f), rest) + low / v));
}
// The logarithm of a number that is not positive, or not finite.
WEFT_HERE F AnyLog(F y, F x, float zero) {
  y = x < INFINITY ? y : x;
  return x > zero ? y : x == zero ? Of(-INFINITY) : Of(NAN);
}
// By 1 / log(base) and log(2) / log(base), each in two parts.
WEFT_HERE F LogTo(F x, float all, float low, float two, float two_low) {
  F rest;
  J n;
  const F f = SplitLog(x, rest, n), k = Number(n);
  const F part = Fused(rest, Of(all), Fused(k, Of(two_low), f * low));
  return AnyLog(Fused(k, Of(two), Fused(f, Of(all), part)), x, 0);
}

WEFT_HERE F Log1p(F x) {
  const F v = x + 1, b = v - 1;
  return AnyLog(Log(v, (x - b) + (1 - (v - b))), x, -1);
}

// By log(1 + e) = e + e**2 p(e), 0 <= e <= 1.
WEFT_HERE F LogAddExp(F x, F y) {
  constexpr float kLog[] = {-0.499999315f, 0.33330512f, -0.249585882f,
                            0.196954012f, -0.153553978f, 0.106805556f,
                            -0.0576644354f, 0.0202045757f, -0.00331846974f};
  const F d = x == y ? F{} : Abs(x - y), e = Exp(-d, false);
  return (x > y ? x : y) + Fused(e * e, Polynomial(e, kLog), e);
}

// Of |x| up to 1/2 by a polynomial; of others log(a + root(a**2 + 1)), with what the root lacks.
WEFT_HERE F AreaSine(F x) {
  constexpr float kArea[] = {-0.166666433f, 0.0749866441f, -0.0443859808f, 0.0281759668f,
                             -0.0132485628f};
  const F a = Abs(x), held = a < 4096 ? a : Of(4096), q = Fused(held, held, Of(1)), w = Root(q);
  const F lack = (Fused(held, held, 1 - q) + Fused(-w, w, q)) * (0.5f / w);
  const J vast = a > 4096;
  const F v = w + held, low = (w - v) + held + lack;
  const F far = Log(vast ? a : v, vast ? F{} : low, vast ? Of(1) : F{});
  const F z = a * a, near = Fused(a * z, Polynomial(z, kArea), a);
  return CopySign(a < 0.5f ? near : a < INFINITY ? far : a, x);
}

WEFT_HERE F AreaCosine(F x) {
  const J vast = x > 4096;
  const F held = vast ? Of(4096) : x, d = held - 1, q = Fused(d, d, d + d), w = Root(q);
  const F lack = (Fused(d, d, (d + d) - q) + Fused(-w, w, q)) * (0.5f / (w + 1e-30f));
  const F v = held + w, low = (held - v) + w + lack;
  const F y = Log(vast ? x : v, vast ? F{} : low, vast ? Of(1) : F{});
  return x >= 1 ? (x < INFINITY ? y : x) : Of(NAN);
}

// Half of log((below + top) / (below - top)) + k log 2.
WEFT_HERE F HalfLog(F top, F below, F k) {
  constexpr float kLog[] = {0.333332956f, 0.200044006f, 0.141310111f, 0.132144153f};
  const F s = top / below, z = s * s;
  return Fused(k, Of(0.346572876f), s + Fused(s * z, Polynomial(z, kLog), k * 7.14303385e-7f));
}

// (1 + a) / (1 - a) as (1 + s) / (1 - s) 2**n: of n = 0 s is a. From n = 24 on 1 + 2**n is
// rounded.
WEFT_HERE F AreaTangent(F x) {
  const F a = Abs(x), up = 1 + a, down = 1 - a;
  const J n = (J)((W)up - (W)down + (1 << 21)) >> 23, near = a > 0.99f;
  const F power = PowerOf2((W)n), other = power * down;
  const F top = near ? up - other : Fused(a, 1 + power, 1 - power);
  const F y = HalfLog(top, near ? up + other : Fused(a, 1 - power, 1 + power), Number(n));
  return CopySign(a < 1 ? y : a == 1 ? Of(INFINITY) : Of(NAN), x);
}

// log(x / (1 - x)), likewise, by the smaller of the two.
WEFT_HERE F Logit(F x) {
  const F other = 1 - x, low = x < other ? x : other, high = 1 - low;
  const J n = (J)((W)high - (W)low + (1 << 21)) >> 23;
  const F power = PowerOf2((W)n), top = Fused(-low, power + 1, Of(1));
  const F y = HalfLog(top, Fused(low, power - 1, Of(1)), Number(n)) * 2;
  return (F)((J)(low > 0 ? y : low == 0 ? Of(INFINITY) : Of(NAN)) ^ ((x < 0.5f) & INT32_MIN));
}

// --- roots ---

WEFT_HERE F CubeRoot(F x) {
  // x**(-1/3) to a few percent from a third of the exponent, improved by the series of
  // (1 - e)**(-1/3) with e = 1 - a y**3, and by a step of Newton's method. Small x are scaled, as
  // differences would underflow.
  const F size = Abs(x);
  const J small = size < 0x1p-60f;
  const F a = small ? size * 0x1p60f : size;
  F y = (F)(0x54A21D2A - __builtin_convertvector(Number((J)a) * (1 / 3.0f), J));
  const F e = 1 - a * y * y * y;
  y = Fused(y * e, Fused(e, Fused(e, Of(14 / 81.0f), Of(2 / 9.0f)), Of(1 / 3.0f)), y);
  const F square = y * y, z = a * square, t = z * z;
  const F less = Fused(-t, z, a) - Fused(z, z, -t) * z;
  const F root = Fused(less, square * (1 / 3.0f), z);
  return CopySign(size < INFINITY ? (small ? root * 0x1p-20f : root) : size, x);
}

// --- the normal distribution ---

// For |x| above 0.8 by e**(-x**2) t p(t), t = 1 / (1 + |x| / 2), with compensated rounding errors.
WEFT_HERE F Erfc(F x) {
  constexpr float kErf[] = {0.128379166f, -0.37612626f, 0.112835787f, -0.0268533472f,
                            0.0051871622f, -0.00079978531f, 7.80690316e-05f};  // erf(x) / x - 1
  constexpr float kTail[] = {0.469989091f, 0.619160533f, 0.527847707f, 0.184280425f,
                             -0.134033769f, -0.134669587f, 0.0577054657f, 0.0823087469f};
  const F size = Abs(x), a = size > 10.1f ? Of(10.1f) : size, z = a * a, low = Fused(a, a, -z);
  const F k = Fused(z, Of(-1.44269502f), Of(0x1.8p23f)), m = k - 0x1.8p23f;
  const F r = Fused(m, Of(-1.42860677e-6f), Fused(m, Of(-0.693145752f), -z)) - low;
  const F d = Fused(a, Of(0.5f), Of(1)), t = 1 / d;
  const F lack = (Fused(-d, t, Of(1)) - t * Fused(a, Of(0.5f), 1 - d)) * (t * 1.35f + 1);
  const F p = Polynomial(t - 0.4375f, kTail), q = t * p;
  const F tail = Scale(q + Fused(q, (ExpRest(r) + lack) + r, Fused(t, p, -q)), k);
  const F near = Fused(-x, Polynomial(z, kErf), 1 - x);
  return size < 0.8f ? near : x > 0 ? tail : 2 - tail;
}

// As x times a polynomial in w = -log(1 - x**2), or in its root (Giles).
WEFT_HERE F ErfInverse(F x) {
  constexpr float kNear[] = {1.50140941f, 0.246640295f, -0.00417740364f, -0.0012527447f,
                             0.000218344518f, -4.96334314e-06f, -3.46270122e-06f,
                             4.66169354e-07f, 2.32326656e-08f, -8.79096174e-09f};
  constexpr float kFar[] = {2.95832014f, 1.0037173f, 0.00705230329f, -0.0052750227f,
                            0.00375837483f, -0.00264588348f, 0.00136120967f,
                            -0.000102802172f, -0.000208050726f};
  F rest;
  J n;
  const F a = Abs(x), f = SplitLog((1 - a) * (1 + a), rest, n), k = -Number(n);
  const F w = Fused(k, Of(0.693145752f), Fused(k, Of(1.42860677e-6f), -rest) - f);
  const J far = w >= 5;
  F y = Polynomial(w - 2.5f, kNear);
  if (MayHave(far)) y = far ? Polynomial(Root(w) - 3.125f, kFar) : y;
  return a < 1 ? x * y : a == 1 ? CopySign(Of(INFINITY), x) : Of(NAN);
}

// x times Phi(x), the cumulative normal distribution: for negative x by e**(-x**2 / 2) t p(t) with
// t = 1 / (1 + 0.27 |x|), otherwise by 1 minus that. The error is at most 7 ulp. -inf gives NaN.
WEFT_HERE F Gelu(F x) {
  constexpr float kTail[] = {0.107716963f, 0.107592903f, 0.101505838f,
                             0.0731073543f, 0.105567053f, -0.0661875382f,
                             0.16731286f, -0.125355259f, 0.0287398435f};
  constexpr float kScale = -0.72134751f;  // -log2(e) / 2; p compensates its rounding error
  const F size = Abs(x), a = size > 13.2f ? Of(13.2f) : size, z = a * a, low = Fused(a, a, -z);
  const F k = Fused(z, Of(kScale), Of(0x1.8p23f)), m = k - 0x1.8p23f;
  const F r = Fused(low, Of(kScale), Fused(z, Of(kScale), -m));
  const F e = Scale(Fused(r, Polynomial(r, kPowers), Of(1)), k);
  const F t = 1 / Fused(a, Of(0.27f), Of(1)), tail = a * t * Polynomial(t, kTail) * e;
  return (x > 0 ? x : CopySign(x - x, x)) - tail;
}

// --- functions for programs on 16-bit floats, see functions.cc: to a few ulp ---

WEFT_HERE F Kept(J mask, F x) { return (F)(mask & (J)x); }
WEFT_HERE F RoundBfloat(F x) {
  const F y = (F)(((W)x + 0x7FFF + ((W)x >> 16 & 1)) & 0xFFFF0000);
  return x == x ? y : x;
}
