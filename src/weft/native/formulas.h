// Included for each kind of processor, see functions.cc: formulas by vectors of WEFT_BYTES.

constexpr int kBytes = WEFT_BYTES;
using D = typename Vector<double, kBytes>::V;
using I = typename Vector<int64_t, kBytes>::V;
using F = typename Vector<float, kBytes>::V;
using J = typename Vector<int32_t, kBytes>::V;
using H = typename Vector<float, kBytes / 2>::V;
// Bits whose sums and differences wrap.
using U = typename Vector<uint64_t, kBytes>::V;
using W = typename Vector<uint32_t, kBytes>::V;

WEFT_HERE D Abs(D x) { return (D)((I)x & INT64_MAX); }
WEFT_HERE D CopySign(D x, D y) { return (D)((I)x | ((I)y & INT64_MIN)); }
#if defined(__x86_64__) && WEFT_BYTES == 64
WEFT_HERE D Least(D x, D y) { return (D)_mm512_min_pd((__m512d)x, (__m512d)y); }
WEFT_HERE D Largest(D x, D y) { return (D)_mm512_max_pd((__m512d)x, (__m512d)y); }
WEFT_HERE D Wide(H x) { return (D)_mm512_cvtps_pd((__m256)x); }
WEFT_HERE H Narrow(D x) { return (H)_mm512_cvtpd_ps((__m512d)x); }
// a / b to 42 bits, b neither vast nor tiny, from 14 bits of 1 / b.
WEFT_HERE D Quotient(D a, D b) {
  const D r = (D)_mm512_rcp14_pd((__m512d)b), e = 1 - b * r, q = a * r;
  return q + q * (e + e * e);
}
// 1 / b to a unit.
WEFT_HERE D Inverse(D b) {
  const D r = (D)_mm512_rcp14_pd((__m512d)b), e = 1 - b * r, y = r + r * e;
  return y + y * (1 - b * y);
}
#else
WEFT_HERE D Inverse(D b) { return 1 / b; }
WEFT_HERE D Least(D x, D y) { return x < y ? x : y; }
WEFT_HERE D Largest(D x, D y) { return x > y ? x : y; }
WEFT_HERE D Wide(H x) { return __builtin_convertvector(x, D); }
WEFT_HERE H Narrow(D x) { return __builtin_convertvector(x, H); }
WEFT_HERE D Quotient(D a, D b) { return a / b; }
#endif
WEFT_HERE D Number(I k) { return (D)((U)k + 0x4338000000000000) - kMagic; }
WEFT_HERE D Near(D x) { return (x + kMagic) - kMagic; }  // below 2**51
// 2**k of the lowest bits of k + kMagic
WEFT_HERE D PowerOf2(D k) { return (D)(((U)k << 52) + 0x3FF0000000000000); }

// By even and odd powers, of which neither waits for the other.
template <int kCount>
WEFT_HERE D Polynomial(D x, const double (&c)[kCount]) {
  const D z = x * x;
  D even = c[(kCount - 1) & ~1] - D{}, odd = c[kCount - 1 - (kCount & 1)] - D{};
  for (int i = ((kCount - 1) & ~1) - 2; i >= 0; i -= 2) even = even * z + c[i];
  for (int i = kCount - 3 - (kCount & 1); i >= 0; i -= 2) odd = odd * z + c[i];
  return even + x * odd;
}

// --- circular functions of float32 ---

// r and k of x = r + k pi / 2, by whole turns taken off of the product of x with each part of
// 1 / (2 pi), which is exact: Payne and Hanek's reduction.
WEFT_HERE_CALLED void Reduce(D x, D& r, D& k) {
  constexpr double kParts[] = {0.15915494225919247,    8.327028684640414e-10,
                               5.69002511952534e-19,   6.317065083361892e-27,
                               5.595982707708916e-36,  6.551007954373285e-45};
  D turns[5], sum{}, rest{};
  for (int i = 0; i < 5; ++i) {
    const D t = x * kParts[i];
    turns[i] = Abs(t) < 0x1p51 ? t - Near(t) : t - t;  // of infinity NaN
    if (i > 0) rest += turns[i];
  }
  sum = turns[0] + rest;
  k = sum * 4 + kMagic;
  r = ((turns[0] - (k - kMagic) * 0.25) + rest + x * kParts[5]) * (2 * kPi);
}

WEFT_HERE D SineOf(D r) {
  constexpr double kSine[] = {-0.16666666663878466, 0.0083333327683050712,
                              -0.00019841086452511645, 2.7536455324321069e-06,
                              -2.4079999741638779e-08};
  const D z = r * r;
  return r + r * z * Polynomial(z, kSine);
}

// The sine of x, or of x + pi / 2, as that of an angle up to pi / 2, and its sign.
WEFT_HERE D SineAfter(D x, bool turned, bool far) {
  D k, r;
  if (far) {
    Reduce(x, r, k);
    if (turned) k += 1.0;
    const I odd = ((I)k & 1) != 0;
    // sin(r + pi / 2) = cos r = sin(pi / 2 - |r|)
    const D part = odd ? kPi / 2 - Abs(r) : r;
    return (D)((U)SineOf(part) ^ (((U)k & 2) << 62));
  }
  constexpr double kFirst = 0x1.921fb544p+1, kSecond = 0x1.0b4611a626331p-33;
  D n;
  if (turned) {
    k = (x * (1 / kPi) + 0.5) + kMagic;
    n = (k - kMagic) - 0.5;
  } else {
    k = x * (1 / kPi) + kMagic;
    n = k - kMagic;
  }
  r = (x - n * kFirst) - n * kSecond;
  return (D)((U)SineOf(r) ^ ((U)k << 63));
}

WEFT_HERE D Sine(D x, bool far) { return SineAfter(x, false, far); }
WEFT_HERE D Cosine(D x, bool far) { return SineAfter(x, true, far); }

WEFT_HERE D Tangent(D x) {
  constexpr double kAbove[] = {1.0000000000182503, -0.11135673956026519, 0.0010748300703641667};
  constexpr double kBelow[] = {1, -0.44469007142300859, 0.015971502046276603};
  D k, r;
  Reduce(x, r, k);
  const D z = r * r, top = r * Polynomial(z, kAbove), below = Polynomial(z, kBelow);
  const I odd = ((I)k & 1) != 0;
  return (odd ? -below : top) / (odd ? top : below);
}

// --- angles of float32 ---

WEFT_HERE D AngleOf(D t) {
  constexpr double kAngle[] = {-0.333333332988677,  0.199999913424741,  -0.142853521288634,
                               0.111051339539788,   -0.0903946604820640, 0.0742750313090291,
                               -0.0578314807122139, 0.0386392696068696, -0.0195234180464221,
                               0.00632959465485889, -0.000960571870189740};
  const D z = t * t;
  return t + t * z * Polynomial(z, kAngle);
}

WEFT_HERE D Angle(D y, D x, bool any) {
  const D a = Abs(y), b = Abs(x), low = Least(a, b);
  D high = Largest(a, b);
  if (any) high = high < 1e300 ? high : D{} + 1e300;
  D t = Quotient(low, high);
  if (any) t = a == b ? D{} + 1.0 : t;  // infinities have a ratio too
  if (any) t = high == 0 ? D{} : t;
  D angle = AngleOf(t);
  angle = a > b ? kPi / 2 - angle : angle;
  angle = (I)x < 0 ? kPi - angle : angle;
  angle = (D)((I)angle ^ ((I)y & INT64_MIN));
  if (any) angle = x == x ? (y == y ? angle : y) : x;
  return angle;
}

// --- powers of float32 ---

// log2 of ((1 + s) / (1 - s)), |s| up to 0.2.
WEFT_HERE D Log2Of(D s) {
  constexpr double kLog[] = {2.8853900817779272, 0.96179669392432954, 0.57707801724859842,
                             0.41219840167784738, 0.32061641511412348, 0.26144335271104391,
                             0.24292716541903794};
  return s * Polynomial(s * s, kLog);
}

WEFT_HERE D Log2(D x) {  // of x > 0
  const I e = (I)((U)x - 0x3FE6A09E667F3BCD) >> 52;
  const D m = (D)((U)x - ((U)e << 52));
  return Log2Of(Quotient(m - 1, m + 1)) + Number(e);
}

WEFT_HERE D Exp2(D x) {  // for |x| < 1000
  constexpr double kExp[] = {0.99999999995956179, 0.69314718055683244, 0.24022651213498092,
                             0.055504109063258665, 0.009618025613318034, 0.0013333478473685416,
                             0.00015469729214118296, 1.5303700711365693e-05};
  const D k = x + kMagic, r = x - (k - kMagic);
  return Polynomial(r, kExp) * PowerOf2(k);
}

WEFT_HERE D Power(D x, D y, bool any) {
  const D a = Abs(x);
  D log = Log2(a);
  if (any) {
    log = a == 0 ? D{} - INFINITY : a == INFINITY ? a : log;
    log = x == x ? log : x;
  }
  D p = y * log;
  if (any) p = p > 900 ? D{} + 900.0 : p < -900 ? D{} - 900.0 : p;
  D z = Exp2(p);
  if (!any) return z;
  const I even = Abs(y) >= 0x1p24, whole = even | (Near(y) == y);
  const I odd = whole & ~even & (Near(y * 0.5) != y * 0.5);
  z = (odd & ((I)x < 0)) != 0 ? -z : z;
  z = (whole | (x >= 0) | (x == -INFINITY) | (x != x)) != 0 ? z : D{} + NAN;
  z = y == y ? z : y;
  return ((y == 0) | (x == 1) | ((x == -1) & (Abs(y) == INFINITY))) != 0 ? D{} + 1.0 : z;
}

// --- functions of float64, as in fdlibm (Sun Microsystems, 1993; see NOTICE) -------------------

// From here on multiples of the parts of pi / 2 are rounded.
constexpr double kFar = 0x1p19 * kPi / 2;

// r, its rounding error and k of x = r + k pi / 2, k as the lowest bits of k + kMagic.
struct Turns {
  D r, low, z, k;
};

WEFT_HERE Turns SplitTurns(D x) {
  const D k = x * (2 / kPi) + kMagic, n = k - kMagic;
  const D first = n * 1.57079632673412561417e00, second = n * 6.07710050630396597660e-11;
  const D third = n * 2.02226624871116645580e-21, last = n * 8.47842766036889956997e-32;
  const D a = x - first, b = a - second, c = b - third;
  const D rest = ((a - b) - second) + ((b - c) - third) - last, r = c + rest;
  return {r, (c - r) + rest, r * r, k};
}

// sin(r + low) and its rounding error.
WEFT_HERE D SineAt(const Turns& t, D& more) {
  constexpr double kSine[] = {8.33333333332248946124e-03, -1.98412698298579493134e-04,
                              2.75573137070700676789e-06, -2.50507602534068634195e-08,
                              1.58969099521155010221e-10};
  const D cube = t.z * t.r;
  const D less = (t.z * (t.low * 0.5 - cube * Polynomial(t.z, kSine)) - t.low) +
                 cube * 1.66666666666666324348e-01;
  const D y = t.r - less;
  more = (t.r - y) - less;
  return y;
}

WEFT_HERE D CosineAt(const Turns& t, D& more) {
  constexpr double kCosine[] = {4.16666666666666019037e-02,  -1.38888888888741095749e-03,
                                2.48015872894767294178e-05,  -2.75573143513906633035e-07,
                                2.08757232129817482790e-09,  -1.13596475577881948265e-11};
  const D half = t.z * 0.5, w = 1 - half;
  const D rest = ((1 - w) - half) + (t.z * t.z * Polynomial(t.z, kCosine) - t.r * t.low);
  const D y = w + rest;
  more = (w - y) + rest;
  return y;
}

// The C library's function of elements that are beyond.
WEFT_HERE D CallBeyond(D y, D x, double (*function)(double)) {
  for (int i = 0; i < kBytes / 8; ++i) {
    if (!(std::fabs(x[i]) < kFar)) y[i] = function(x[i]);
  }
  return y;
}

WEFT_HERE D WideSineAfter(D x, uint64_t turned) {
  const Turns t = SplitTurns(x);
  D more;
  const D sine = SineAt(t, more), cosine = CosineAt(t, more);
  const U k = (U)t.k + turned;
  return (D)((U)((k & 1) != 0 ? cosine : sine) ^ ((k & 2) << 62));
}

WEFT_HERE D WideSine(D x, bool any) {
  const D y = WideSineAfter(x, 0);
  return any ? CallBeyond(y, x, std::sin) : y;
}

WEFT_HERE D WideCosine(D x, bool any) {
  const D y = WideSineAfter(x, 1);
  return any ? CallBeyond(y, x, std::cos) : y;
}

WEFT_HERE D WideTangent(D x, bool any) {
  const Turns t = SplitTurns(x);
  D more, less;
  const D sine = SineAt(t, more), cosine = CosineAt(t, less);
  const I odd = ((I)t.k & 1) != 0;
  const D top = odd ? -cosine : sine, below = odd ? sine : cosine;
  const D up = odd ? -less : more, down = odd ? more : less;
  const D inverse = Inverse(below);
  D y = top * inverse;
  // what is left over of the quotient, and both roundings
  y = y + ((top - y * below) + (up - y * down)) * inverse;
  return any ? CallBeyond(y, x, std::tan) : y;
}

// x 2**n, |n| up to 1100.
WEFT_HERE D Scale(D x, D n) {
#if defined(__x86_64__) && WEFT_BYTES == 64
  return (D)_mm512_scalef_pd((__m512d)x, (__m512d)n);
#else
  const D half = Near(n * 0.5);
  return x * PowerOf2(half + kMagic) * PowerOf2((n - half) + kMagic);
#endif
}

// e**(r + low) for |r| <= log(2) / 2.
WEFT_HERE D Exponential(D r, D low) {
  constexpr double kExp[] = {0.16666666666666666,    0.041666666666651357,
                             0.0083333333333321311,  0.0013888888905880625,
                             0.00019841269854465205, 2.4801536390522092e-05,
                             2.7557279870628042e-06, 2.7613805845237328e-07,
                             2.5095647978523832e-08};
  const D z = r * r;
  const D sum = 1 + r, rest = (1 - sum) + r;
  return sum + (rest + (z * 0.5 + (z * r * Polynomial(r, kExp) + (low + low * r))));
}

// By x = r + n log 2, of which the first part has 32 bits.
WEFT_HERE D WideExp(D x) {
  const D held = x < -746 ? D{} - 746.0 : x > 710 ? D{} + 710.0 : x;
  const D n = Near(held * 1.4426950408889634), t = held - n * 6.93147180369123816490e-01;
  const D less = n * 1.90821492927058770002e-10, r = t - less;
  return Scale(Exponential(r, (t - r) - less), n);
}

WEFT_HERE D WideLogistic(D x) {
  const D e = WideExp(-Abs(x));
  return (x < 0 ? e : D{} + 1.0) / (1 + e);
}

// 2 artanh(f / (2 + f)) + n log 2 of x = (1 + f) 2**n.
WEFT_HERE D WideLog(D x, bool any) {
  constexpr double kLog[] = {0.6666666666666735,  0.3999999999940942, 0.2857142874366239,
                             0.22222198432149784, 0.1818357216161805, 0.15313837699209373,
                             0.14798198605116586};
  const I tiny = (I)x < (int64_t{1} << 52);
  const I bits = any ? tiny ? (I)__builtin_convertvector((I)x, D) : (I)x : (I)x;
  const I n = (I)((U)bits - 0x3FE6A09E667F3BCD) >> 52;
  const D f = (D)((U)bits - ((U)n << 52)) - 1, s = f / (f + 2);
  const D k = Number(any ? n - (tiny & 1074) : n);
  const D z = s * s, half = f * f * 0.5;
  const D rest = half - (s * (half + z * Polynomial(z, kLog)) + k * 1.9082149292705877e-10);
  const D y = k * 0.6931471803691238 - (rest - f);
  if (!any) return y;
  return (I)x > 0 ? (x < INFINITY ? y : x) : ((U)x << 1) == 0 ? D{} - INFINITY : D{} + NAN;
}

// The odd and the even part of e**x, of which the other one is the sine or the cosine.
WEFT_HERE D WideHyperbolic(D x, bool sine) {
  constexpr double kOdd[] = {0.16666666666666666, 0.0083333333333333332, 0.0001984126984126992,
                             2.7557319223812314e-06, 2.5052108568688623e-08, 1.6058944542067707e-10,
                             7.6738358619581805e-13};
  constexpr double kEven[] = {0.041666666666666664, 0.0013888888888888913, 2.4801587301481921e-05,
                              2.7557319390121999e-07, 2.087663861207881e-09,
                              1.1509609797482649e-11};
  D a = Abs(x);
  a = a < 710.9 ? a : a == a ? D{} + 710.9 : a;
  // x = r + low + k log 2, of which the first part of log 2 has 32 bits; r is above -log(2) / 4, or
  // a small difference would be taken of large ones
  const D k = (a * 1.4426950408889634 - 0.25) + kMagic, n = k - kMagic;
  const D t = a - n * 6.93147180369123816490e-01, less = n * 1.90821492927058770002e-10;
  const D r = t - less, low = (t - r) - less, z = r * r;
  const D odd = r + (z * r * Polynomial(z, kOdd) + low);
  const D even = z * 0.5 + (z * z * Polynomial(z, kEven) + low * r);
  // halves of 2**k and 2**-k, of which the second may be none
  const D up = PowerOf2(k - 2), under = n < 100 ? n : D{} + 100.0;
  const D down = PowerOf2((kMagic - 2) - under), sum = up + down, difference = up - down;
  if (!sine) return (sum + (sum * even + difference * odd)) * 2;
  // half of the least numbers would be taken for 0
  return CopySign(a < 1e-9 ? a : (difference + (difference * even + sum * odd)) * 2, x);
}

// Up to 0.84375 as x + x p / q in x**2, else 1 - e**(-x**2) w p(w), w = 1 / (1 + x / 2).
WEFT_HERE D ErrorFunction(D x) {
  constexpr double kAbove[] = {1.28379167095512558561e-01, -3.25042107247001499370e-01,
                               -2.84817495755985104766e-02, -5.77027029648944159157e-03,
                               -2.37630166566501626084e-05};
  constexpr double kBelow[] = {1.0, 3.97917223959155352819e-01, 6.50222499887672944485e-02,
                               5.08130628187576562776e-03, 1.32494738004321644526e-04,
                               -3.96022827877536812320e-06};
  constexpr double kTail[] = {0.49504790332795579,   0.66130321836031969,   0.54818295637709868,
                              0.16125293532571763,   -0.15919801351856436,  -0.1168500713527517,
                              0.088858445694603883,  0.069153502826113017,  -0.081143421456569886,
                              -0.02698312626910401,  0.081139956125324,     -0.019655714832747667,
                              -0.065271324184945814, 0.064342724350497052,  0.025307344556201136,
                              -0.073915236545198354};
  const D a = Abs(x), held = Least(a, D{} + 6.0), s = held * held;
  const I near = a < 0.84375;
  const D top = near ? Polynomial(s, kAbove) : D{} + 1.0;
  const D quotient = top / (near ? Polynomial(s, kBelow) : held * 0.5 + 1);
  const D far = 1 - WideExp(-s) * (quotient * Polynomial(quotient - 0.4766483516483517, kTail));
  const D all = held * 1.1283791670955126;  // of tiny ones, whose part by itself is flushed to zero
  const D y = held < 1e-290 ? all : near ? held + held * quotient : far;
  return x == x ? CopySign(y, x) : x;
}

// The rounding error of a product.
WEFT_HERE D ProductError(D x, D y, D product) {
#if defined(__x86_64__) && WEFT_BYTES == 64
  return (D)_mm512_fmsub_pd((__m512d)x, (__m512d)y, (__m512d)product);
#elif defined(__x86_64__) && WEFT_BYTES == 32
  return (D)_mm256_fmsub_pd((__m256d)x, (__m256d)y, (__m256d)product);
#else
  D error;
  for (int i = 0; i < kBytes / 8; ++i) error[i] = __builtin_fma(x[i], y[i], -product[i]);
  return error;
#endif
}

// log2(a) of a positive number as a sum of two.
WEFT_HERE D Log2Parts(D a, bool any, D& less) {
  constexpr double kLog[] = {5.99999999999994648725e-01, 4.28571428578550184252e-01,
                             3.33333329818377432918e-01, 2.72728123808534006489e-01,
                             2.30660745775561754067e-01, 2.06975017800338417784e-01};
  constexpr double kThirds = 9.61796693925975554329e-01;  // 2 / (3 log 2), and what it lacks
  constexpr double kMore = 5.0577616648125906e-17;
  I bits = (I)a, tiny{};
  if (any) {
    tiny = bits < (int64_t{1} << 52);
    bits = tiny ? (I)__builtin_convertvector(bits, D) : bits;
  }
  // as m 2**n, m between sqrt(3) / 2 and sqrt(3), near to 1 or to 1.5
  I e = (I)((U)bits - 0x3FEBB67AE8584CAA) >> 52;
  const D m = (D)((U)bits - ((U)e << 52));
  if (any) e += tiny & -1074;
  const I upper = m >= 1.2247448713915890;
  const D base = upper ? D{} + 1.5 : D{} + 1.0;
  const D log_high = upper ? D{} + 5.84962487220764160156e-01 : D{};
  const D log_low = upper ? D{} + 1.35003920212974897128e-08 : D{};
  // s = (m - base) / (m + base), 3 + s**2 + ..., and their product, each with a second part
  const D top = m - base, below = m + base, below_low = m - (below - base);
  const D v = 1 / below, s = top * v, product = s * below;
  const D s_low = v * (((top - product) - ProductError(s, below, product)) - s * below_low);
  const D z = s * s;
  const D r = z * z * Polynomial(z, kLog) + (ProductError(s, s, z) + 2 * s * s_low);
  const D sum = 3 + z, sum_low = r - ((sum - 3) - z);
  const D u = s * sum, w = ProductError(s, sum, u) + (s_low * sum + s * sum_low);
  const D high = u + w, low = w - (high - u);
  const D part = high * kThirds;
  const D rest = ProductError(high, D{} + kThirds, part) + (high * kMore + low * kThirds + log_low);
  const D whole = Number(e) + log_high, out = whole + part;
  less = (part - (out - whole)) + rest;
  return out;
}

WEFT_HERE D WidePower(D x, D y, bool any) {
  const D a = Abs(x);
  D low, high = Log2Parts(a, any, low), held = y;
  if (any) held = y > 1e30 ? D{} + 1e30 : y < -1e30 ? D{} - 1e30 : y;
  const D p = held * high;
  low = ProductError(held, high, p) + held * low;
  high = p > 1030 ? D{} + 1030.0 : p < -1080 ? D{} - 1080.0 : p;
  low = high != p ? D{} : low;
  const D n = Near(high), rest = high - n, u = rest * 0.69314718055994531;
  const D v = ProductError(rest, D{} + 0.69314718055994531, u) +
              (rest * 2.3190468138462996e-17 + low * 0.69314718055994531);
  const D r = u + v;
  D z = Scale(Exponential(r, v - (r - u)), n);
  if (!any) return z;
  const I zero = (I)a == 0, up = y > 0;
  z = (zero | (a == INFINITY)) != 0 ? ((zero ^ up) != 0 ? D{} + INFINITY : D{}) : z;
  z = ((a == a) & (y == y)) != 0 ? z : D{} + NAN;
  D floor, half_floor;
  for (int i = 0; i < kBytes / 8; ++i) {
    floor[i] = std::floor(y[i]), half_floor[i] = std::floor(y[i] / 2);
  }
  const I whole = floor == y, odd = whole & ((half_floor + half_floor) != y);
  z = (odd & ((I)x < 0)) != 0 ? -z : z;
  z = (whole | (x >= 0) | (x == -INFINITY)) != 0 ? z : D{} + NAN;
  return ((y == 0) | (x == 1) | ((x == -1) & (Abs(y) == INFINITY))) != 0 ? D{} + 1.0 : z;
}

#include "gammas.h"
#include "singles.h"

// --- which function, of which operands ----------------------------------------------------------

// A function of vectors of one operand or two: `fast` of blocks of elements that are all `usual`,
// else `any`. Of an odd one what is below `least` stays, as zero does, and what is taken for zero.
#define WEFT_FUNCTION(name, Operand, least, usual, fast, any)            \
  struct name {                                                          \
    using V = Operand;                                                   \
    static constexpr double kLeast = least;                              \
    static WEFT_HERE_MEMBER auto Usual(V x, V y) { return usual; }       \
    static WEFT_HERE_MEMBER V Fast(V x, V y) { return fast; }            \
    static WEFT_HERE_MEMBER V Any(V x, V y) { return any; }              \
  };
#define WEFT_BETWEEN(x, low, high) ((x > low) & (x < high))
#define WEFT_CIRCULAR(name, V, least, far, fast, any) \
  WEFT_FUNCTION(name, V, least, WEFT_BETWEEN(x, -far, far), fast, any)
#define WEFT_WHOLE(name, V, least, of) WEFT_FUNCTION(name##V, V, least, true, of, x)
#define WEFT_ROW(name, V, ...) {op::k##name, k##V, k##V, Apply<name##V, op::k##name>},
constexpr ffi::DataType kF = ffi::F32, kD = ffi::F64;
// Those that need no look at a block before: opcode, vectors, least, formula.
#define WEFT_EACH(X)                                                       \
  X(Asin, F, 1e-4, ArcSine(x))                                             \
  X(Acos, F, 0, ArcCosine(x))                                              \
  X(Atan, F, 1e-4, ArcTangent(x))                                          \
  X(Cbrt, F, 1.17549435e-38, CubeRoot(x))                                  \
  X(Sinh, F, 1e-4, Hyperbolic(x, true))                                    \
  X(Cosh, F, 0, Hyperbolic(x, false))                                      \
  X(Asinh, F, 1e-4, AreaSine(x))                                           \
  X(Acosh, F, 0, AreaCosine(x))                                            \
  X(Atanh, F, 1e-4, AreaTangent(x))                                        \
  X(Exp2, F, 0, Exp2(x))                                                   \
  X(Expm1, F, 2e-8, ExpM1(x))                                              \
  X(Log2, F, 0, LogTo(x, 1.44269502f, 1.92596303e-8f, 1, 0))               \
  X(Log1p, F, 2e-8, Log1p(x))                                              \
  X(Logaddexp, F, 0, LogAddExp(x, y))                                      \
  X(Gelu, F, 0, Gelu(x))                                                   \
  X(Sqrt, F, 0, Root(x))                                                   \
  X(Rsqrt, F, 0, InverseRoot(x))                                           \
  X(Exp, F, 0, Exp(x))                                                     \
  X(Tanh, F, 1e-4, Tanh(x))                                                \
  X(Logistic, F, 0, Logistic(x))                                           \
  X(Log, F, 0, LogTo(x, 1, 0, 0.693145752f, 1.42860677e-6f))               \
  X(Logit, F, 0, Logit(x))                                                 \
  X(Erfc, F, 0, Erfc(x))                                                   \
  X(ErfInv, F, 0, ErfInverse(x))                                           \
  X(MaskEq, F, 0, (F)(x == y))                                             \
  X(MaskNe, F, 0, (F)(x != y))                                             \
  X(MaskLt, F, 0, (F)(x < y))                                              \
  X(MaskLe, F, 0, (F)(x <= y))                                             \
  X(Keep, F, 0, Kept((J)x, y))                                             \
  X(Drop, F, 0, Kept(~(J)x, y))                                            \
  X(Join, F, 0, (F)((J)x | (J)y))                                          \
  X(RoundBfloat16, F, 0, RoundBfloat(x))                                   \
  X(Sinh, D, 1e-300, WideHyperbolic(x, true))                              \
  X(Cosh, D, 0, WideHyperbolic(x, false))                                  \
  X(Exp, D, 0, WideExp(x))                                                 \
  X(Logistic, D, 0, WideLogistic(x))                                       \
  X(Erf, D, 2.2250738585072014e-308, ErrorFunction(x))

WEFT_CIRCULAR(SinF, H, 1e-30, 0x1p20f, Narrow(Sine(Wide(x), false)), Narrow(Sine(Wide(x), true)))
WEFT_CIRCULAR(CosF, H, 0, 0x1p20f, Narrow(Cosine(Wide(x), false)), Narrow(Cosine(Wide(x), true)))
WEFT_CIRCULAR(TanF, F, 1e-4, 0x1p16f, TangentNear(x), TangentFar(x))
WEFT_FUNCTION(Atan2F, H, 0,
              (x * x > 1e-36f) & (y * y > 1e-36f) & (x * x < 1e36f) & (y * y < 1e36f),
              Narrow(Angle(Wide(x), Wide(y), false)), Narrow(Angle(Wide(x), Wide(y), true)))
WEFT_FUNCTION(PowF, H, 0, WEFT_BETWEEN(x, 1.2e-38f, INFINITY) & WEFT_BETWEEN(y, -7.9f, 7.9f),
              Narrow(Power(Wide(x), Wide(y), false)), Narrow(Power(Wide(x), Wide(y), true)))
WEFT_FUNCTION(RemF, F, 0, WEFT_BETWEEN(Abs(y), 1e-30f, INFINITY) & (Abs(x) < Abs(y) * 0x1p22f),
              Remainder(x, y), RemainderEach(x, y))
WEFT_EACH(WEFT_WHOLE)
WEFT_WHOLE(Add, F, 0, x + y)
WEFT_WHOLE(Sub, F, 0, x - y)
WEFT_WHOLE(Mul, F, 0, x * y)

WEFT_CIRCULAR(SinD, D, 1e-300, kFar, WideSine(x, false), WideSine(x, true))
WEFT_CIRCULAR(CosD, D, 0, kFar, WideCosine(x, false), WideCosine(x, true))
WEFT_CIRCULAR(TanD, D, 1e-300, kFar, WideTangent(x, false), WideTangent(x, true))
WEFT_FUNCTION(LogD, D, 0, WEFT_BETWEEN(x, 2.3e-308, INFINITY), WideLog(x, false), WideLog(x, true))
WEFT_FUNCTION(PowD, D, 0,
              WEFT_BETWEEN(x, 2.3e-308, INFINITY) & WEFT_BETWEEN(y, -1e30, 1e30) & (x != 1) &
                  (y != 0),
              WidePower(x, y, false), WidePower(x, y, true))
WEFT_FUNCTION(ZetaD, D, 0, WEFT_BETWEEN(x, 1, 1e6) & WEFT_BETWEEN(y, 1e-300, 1e300),
              ZetaUsual(x, y), ZetaEach(x, y))
WEFT_FUNCTION(ZetaSingleD, D, 0, WEFT_BETWEEN(x, 1, 40) & WEFT_BETWEEN(y, 0x1p-20, 0x1p20),
              ZetaSingle(x, y), ZetaEach(x, y))

// Whole vectors of one block; kOne: x is one number, of which what is needed is computed once.
template <class Function, bool kFast, bool kOne, class V = typename Function::V>
WEFT_HERE void Write(const V* x, const V* y, V* out, int64_t n) {
  V a, b, c;
  std::memcpy(&a, x, sizeof(V));
  for (int64_t i = 0; i < n; ++i) {
    if (!kOne) std::memcpy(&a, x + i, sizeof(V));
    std::memcpy(&b, y + i, sizeof(V));
    c = kFast ? Function::Fast(a, b) : Function::Any(a, b);
    if constexpr (Function::kLeast > 0) {
      constexpr std::decay_t<decltype(a[0])> least = Function::kLeast;
      c = (a < least) & (a > -least) ? a : c;
    }
    std::memcpy(out + i, &c, sizeof(V));
  }
}

template <class Function, int64_t kOp, class V = typename Function::V>
WEFT_HERE_CALLED void Apply(const void* const* xs, void* out, int64_t count) {
  constexpr bool kOne = kOp == op::kPowerOf;
  const V *x = static_cast<const V*>(xs[0]), *y = static_cast<const V*>(xs[kOperands[kOp] - 1]);
  V* const z = static_cast<V*>(out);
  const int64_t n = count * sizeof(x[0][0]) / sizeof(V);
  if constexpr (!std::is_same_v<decltype(Function::Usual(*x, *y)), bool>) {
    auto usual = V{} == V{};
    for (int64_t i = 0; i < n; ++i) {
      V a, b;
      std::memcpy(&a, x + i, sizeof(V));
      std::memcpy(&b, y + i, sizeof(V));
      usual &= Function::Usual(a, b);
    }
    int64_t parts[sizeof(V) / 8], all = -1;
    std::memcpy(parts, &usual, sizeof(V));
    for (int64_t part : parts) all &= part;
    if (all != -1) return Write<Function, false, kOne>(x, y, z, n);
  }
  Write<Function, true, kOne>(x, y, z, n);
}

// --- rows of programs: of `count` elements, a multiple of 16 ---

// Arrays of each dtype as float32, and back; bool is a mask of all bits.
template <class T>
using Of32 = typename Vector<T, kBytes / 4 * sizeof(T)>::V;  // as many elements

template <class From, class To, class Change>
WEFT_HERE void ConvertEach(const void* const* xs, void* out, int64_t count, Change) {
  const From* const x = static_cast<const From*>(xs[0]);
  for (int64_t i = 0; i < count * 4 / kBytes; ++i) {
    From v;
    std::memcpy(&v, x + i, sizeof(v));
    const To y = Change::Made(v);
    std::memcpy(static_cast<To*>(out) + i, &y, sizeof(y));
  }
}
#define WEFT_CONVERSION(name, From, To, ...)                                            \
  struct name##Each {                                                                   \
    static WEFT_HERE_MEMBER To Made(From x) { __VA_ARGS__; }                            \
  };                                                                                    \
  WEFT_HERE_CALLED void name(const void* const* xs, void* out, int64_t count) {         \
    ConvertEach<From, To>(xs, out, count, name##Each());                                \
  }
using Bytes = Of32<int8_t>;
#if defined(__x86_64__) && WEFT_BYTES == 64
using Packed = __m256i;
WEFT_CONVERSION(FromHalf, Packed, F, return (F)_mm512_cvtph_ps(x))
WEFT_CONVERSION(ToHalf, F, Packed, return _mm512_cvtps_ph((__m512)x, 0))
WEFT_HERE J Widened(Packed x) { return (J)_mm512_cvtepu16_epi32(x); }
WEFT_HERE J Widened(Bytes x) { return (J)_mm512_cvtepu8_epi32((__m128i)x); }
WEFT_HERE Packed Halved(J x) { return _mm512_cvtepi32_epi16((__m512i)x); }
WEFT_HERE Bytes Quartered(J x) { return (Bytes)_mm512_cvtepi32_epi8((__m512i)x); }
#else
#ifdef __x86_64__
using Packed = __m128i;
WEFT_CONVERSION(FromHalf, Packed, F, return (F)_mm256_cvtph_ps(x))
WEFT_CONVERSION(ToHalf, F, Packed, return _mm256_cvtps_ph((__m256)x, 0))
#else
using Packed = Of32<_Float16>;
WEFT_CONVERSION(FromHalf, Packed, F, return __builtin_convertvector(x, F))
WEFT_CONVERSION(ToHalf, F, Packed, return __builtin_convertvector(x, Packed))
#endif
WEFT_HERE J Widened(Packed x) { return __builtin_convertvector((Of32<uint16_t>)x, J); }
WEFT_HERE J Widened(Bytes x) { return __builtin_convertvector(x, J); }
WEFT_HERE Packed Halved(J x) { return (Packed)__builtin_convertvector(x, Of32<uint16_t>); }
WEFT_HERE Bytes Quartered(J x) { return __builtin_convertvector(x, Bytes); }
#endif
WEFT_CONVERSION(RoundHalf, F, F, return FromHalfEach::Made(ToHalfEach::Made(x)))
WEFT_CONVERSION(FromBfloat, Packed, F, return (F)((W)Widened(x) << 16))
WEFT_CONVERSION(ToBfloat, F, Packed, const J high = (J)RoundBfloat(x) >> 16;
                return Halved(x == x ? high : high | 0x40))
WEFT_CONVERSION(FromBool, Bytes, F, return (F)(Widened(x) != 0))
WEFT_CONVERSION(ToBool, F, Bytes, return Quartered((J)x & 1))

// An operation on arrays of 16 bits by itself.
template <class Function, class From, class To>
WEFT_HERE_CALLED void Direct(const void* const* xs, void* out, int64_t count) {
  const Packed *x = static_cast<const Packed*>(xs[0]), *y = static_cast<const Packed*>(xs[1]);
  for (int64_t i = 0; i < count * 4 / kBytes; ++i) {
    Packed a, b;
    std::memcpy(&a, x + i, sizeof(a));
    std::memcpy(&b, y + i, sizeof(b));
    const Packed z = To::Made(Function::Fast(From::Made(a), From::Made(b)));
    std::memcpy(static_cast<Packed*>(out) + i, &z, sizeof(z));
  }
}
template <class Function>
constexpr Compute kOnHalves = Direct<Function, FromHalfEach, ToHalfEach>;
template <class Function>
constexpr Compute kOnBfloats = Direct<Function, FromBfloatEach, ToBfloatEach>;

// An exact operation on the bits of floats of 16 bits, of which NaN are those beyond infinity.
enum { kNegate, kAbsolute, kLarger, kSmaller };
template <int kOperation, int16_t kInfinity = 0>
WEFT_HERE_CALLED void OnBits(const void* const* xs, void* out, int64_t count) {
  using V = typename Vector<int16_t, 32>::V;
  constexpr bool kTwo = kOperation == kLarger || kOperation == kSmaller;
  const V *x = static_cast<const V*>(xs[0]), *y = static_cast<const V*>(xs[kTwo]);
  for (int64_t i = 0; i < count / 16; ++i) {
    V a, b, c;
    std::memcpy(&a, x + i, sizeof(a));
    std::memcpy(&b, y + i, sizeof(b));
    if (kOperation == kNegate) {
      c = a ^ ~(V{} + INT16_MAX);
    } else if (kOperation == kAbsolute) {
      c = a & INT16_MAX;
    } else {
      const V u = a ^ ((a >> 15) & INT16_MAX), v = b ^ ((b >> 15) & INT16_MAX);  // in their order
      c = (kOperation == kLarger ? u > v : u < v) ? a : b;
      c = (b & INT16_MAX) > kInfinity ? b : c;
      c = (a & INT16_MAX) > kInfinity ? a : c;
    }
    std::memcpy(static_cast<V*>(out) + i, &c, sizeof(c));
  }
}

// The sum of a row, or its largest element, 16 times.
template <bool kSum>
WEFT_HERE F Joined(F x, F y) { return kSum ? x + y : x > y ? x : y; }
template <bool kSum>
WEFT_HERE_CALLED void JoinRow(const void* const* xs, void* out, int64_t count) {
  constexpr int64_t kSums = 4, kFloats = kBytes / 4;
  const F* const x = static_cast<const F*>(xs[0]);
  F sums[kSums], y;
  std::memcpy(&y, x, sizeof(y));
  for (int64_t k = 0; k < kSums; ++k) sums[k] = kSum ? F{} : y;
  for (int64_t i = 0; i < count / kFloats; i += kSums) {
    for (int64_t k = 0; k < kSums; ++k) {
      if (i + k >= count / kFloats) break;
      std::memcpy(&y, x + i + k, sizeof(y));
      sums[k] = Joined<kSum>(sums[k], y);
    }
  }
  y = Joined<kSum>(Joined<kSum>(sums[0], sums[1]), Joined<kSum>(sums[2], sums[3]));
#if defined(__x86_64__) && WEFT_BYTES == 64
  const float one = kSum ? _mm512_reduce_add_ps((__m512)y) : _mm512_reduce_max_ps((__m512)y);
#else
  float one = y[0];
  for (int64_t j = 1; j < kFloats; ++j) one = kSum ? one + y[j] : one > y[j] ? one : y[j];
#endif
  for (int64_t j = 0; j < 16; ++j) static_cast<float*>(out)[j] = one;
}
WEFT_HERE_CALLED void Spread(const void* const* xs, void* out, int64_t count) {
  F y;
  for (int64_t j = 0; j < kBytes / 4; ++j) y[j] = *static_cast<const float*>(xs[0]);  // with its bits
  for (int64_t i = 0; i < count * 4 / kBytes; ++i) std::memcpy(static_cast<F*>(out) + i, &y, sizeof(y));
}

#define WEFT_BLOCKS(name, V, kernel) {op::k##name, k##V, k##V, kernel, true},
constexpr Kernel kFunctions[] = {
    WEFT_EACH(WEFT_ROW)
    WEFT_BLOCKS(Sin, F, (Apply<SinF, op::kSin>))
    WEFT_BLOCKS(Cos, F, (Apply<CosF, op::kCos>))
    WEFT_BLOCKS(Tan, F, (Apply<TanF, op::kTan>))
    WEFT_BLOCKS(Atan2, F, (Apply<Atan2F, op::kAtan2>))
    WEFT_BLOCKS(Pow, F, (Apply<PowF, op::kPow>))
    WEFT_BLOCKS(PowerOf, F, (Apply<PowF, op::kPowerOf>))
    WEFT_BLOCKS(Rem, F, (Apply<RemF, op::kRem>))
    WEFT_BLOCKS(Sin, D, (Apply<SinD, op::kSin>))
    WEFT_BLOCKS(Cos, D, (Apply<CosD, op::kCos>))
    WEFT_BLOCKS(Tan, D, (Apply<TanD, op::kTan>))
    WEFT_BLOCKS(Log, D, (Apply<LogD, op::kLog>))
    WEFT_BLOCKS(Pow, D, (Apply<PowD, op::kPow>))
    WEFT_BLOCKS(PowerOf, D, (Apply<PowD, op::kPowerOf>))
    WEFT_BLOCKS(Igamma, D, ComputeGamma<true>)
    WEFT_BLOCKS(Igammac, D, ComputeGamma<false>)
    WEFT_BLOCKS(Zeta, D, (Apply<ZetaD, op::kZeta>))
    WEFT_BLOCKS(ZetaSingle, D, (Apply<ZetaSingleD, op::kZetaSingle>))
    WEFT_BLOCKS(ReduceSum, F, JoinRow<true>)
    WEFT_BLOCKS(ReduceMax, F, JoinRow<false>)
    WEFT_BLOCKS(Spread, F, Spread)
    {op::kRoundFloat16, ffi::F32, ffi::F32, RoundHalf},
    {op::kConvertElementType, ffi::F16, ffi::F32, FromHalf},
    {op::kConvertElementType, ffi::BF16, ffi::F32, FromBfloat},
    {op::kConvertElementType, ffi::F32, ffi::F16, ToHalf},
    {op::kConvertElementType, ffi::F32, ffi::BF16, ToBfloat},
    {op::kLoadMask, ffi::PRED, ffi::F32, FromBool},
    {op::kStoreMask, ffi::F32, ffi::PRED, ToBool},
    {op::kAdd, ffi::F16, ffi::F16, kOnHalves<AddF>},
    {op::kAdd, ffi::BF16, ffi::BF16, kOnBfloats<AddF>},
    {op::kSub, ffi::F16, ffi::F16, kOnHalves<SubF>},
    {op::kSub, ffi::BF16, ffi::BF16, kOnBfloats<SubF>},
    {op::kMul, ffi::F16, ffi::F16, kOnHalves<MulF>},
    {op::kMul, ffi::BF16, ffi::BF16, kOnBfloats<MulF>},
    {op::kNeg, ffi::F16, ffi::F16, OnBits<kNegate>},
    {op::kNeg, ffi::BF16, ffi::BF16, OnBits<kNegate>},
    {op::kAbs, ffi::F16, ffi::F16, OnBits<kAbsolute>},
    {op::kAbs, ffi::BF16, ffi::BF16, OnBits<kAbsolute>},
    {op::kMax, ffi::F16, ffi::F16, OnBits<kLarger, 0x7C00>},
    {op::kMax, ffi::BF16, ffi::BF16, OnBits<kLarger, 0x7F80>},
    {op::kMin, ffi::F16, ffi::F16, OnBits<kSmaller, 0x7C00>},
    {op::kMin, ffi::BF16, ffi::BF16, OnBits<kSmaller, 0x7F80>},
};

Kernel FindKernel(int64_t op, ffi::DataType from, ffi::DataType to) {
  for (const Kernel& kernel : kFunctions) {
    if (kernel.op == op && kernel.from == from && kernel.to == to) return kernel;
  }
  return {};
}
