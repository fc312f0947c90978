// Included for each kind of processor, after formulas.h: incomplete gamma functions of float64 and
// Hurwitz's zeta function, by the formulas of primitives/special/gamma.py.
//
// Elements of a block are put in order by which formula they take, and each takes its own by
// vectors. A sum goes on until the last lane of its vector needs no more terms.

constexpr double kErfcx[] = {1.2769783815525289, -0.09276382658574592, -0.1660303976152892,
    0.16405128003343034, -0.05422000099205117, -0.008034015081972736, 0.008722653876094503,
    0.0012713389580735082, -0.0014568139519933094, -0.00045434075598725095,
    0.00020636724692395621, 0.00015103874085545062, -1.510006343616514e-06,
    -3.642169452468224e-05, -1.3492292069646336e-05, 3.7064809499525125e-06,
    5.221722809106433e-06, 1.5114586870906878e-06, -6.889468560670721e-07, -8.437327868723199e-07,
    -2.76229711724544e-07, 1.44199957610496e-07, 1.7946763067392e-07, 2.6116706271232e-08,
    -4.501247361024e-08, -1.7167739256832e-08, 4.728557666304e-09, 2.577852792832e-09};
constexpr double kLogGamma1[] = {0.5772156649015329, -0.12262568426129017, 0.03885856646598897,
    -0.014393317820482393, 0.005764938028975333, -0.0024161927665108103, 0.0010426832556439248,
    -0.00045920266884695804, 0.00020529811719418038, -9.285765407874936e-05,
    4.239364373231739e-05, -1.9503582841396636e-05, 9.029628390509567e-06, -4.203673632115506e-06,
    1.970394454455091e-06, -9.265616432709635e-07, 4.2726913381826556e-07,
    -2.0030416534896636e-07, 1.1155325727539197e-07, -5.5375166151065604e-08,
    6.391334594150409e-09, -1.0236037431295987e-09, 1.7121188144742398e-08,
    -9.367397072895999e-09, -4.538300681420799e-09, 2.5690044891136e-09, 1.6544314687488e-09,
    -8.553226043392e-10};
constexpr double kLogGamma2[] = {0.3995894876556691, -0.06441063566344568, 0.014213449664599831,
    -0.003570760544169787, 0.0009622289503534665, -0.0002707614660704004, 7.842743106557905e-05,
    -2.318739599562064e-05, 6.960129693840268e-06, -2.113574508362291e-06, 6.477153826788352e-07,
    -1.9998398769213442e-07, 6.21183783446528e-08, -1.9352015890841602e-08, 6.063886775091199e-09,
    -1.9612115582976e-09, 6.226170314752001e-10, -1.552972054528e-10, 4.77359767552e-11,
    -3.38019221504e-11, 1.10941437952e-11};
constexpr double kStirling[] = {0.08333333333333333, -0.002777777777777778, 0.0007936507936507937,
    -0.0005952380952380953, 0.0008417508417508417, -0.0019175269175269176, 0.00641025641025641,
    -0.029550653594771242, 0.17964437236883057};
constexpr double kEuler[] = {0.08333333333333333, -0.001388888888888889, 3.306878306878307e-05,
    -8.267195767195768e-07, 2.08767569878681e-08, -5.284190138687493e-10, 1.3382536530684679e-11,
    -3.3896802963225827e-13, 8.586062056277845e-15, -2.174868698558062e-16};
constexpr double kTemme0[] = {-0.3333333333333333, 0.08333333333333333, -0.014814814814814815,
    0.0011574074074074073, 0.0003527336860670194, -0.0001787551440329218, 3.919263178522438e-05,
    -2.185448510679992e-06, -1.85406221071516e-06, 8.296711340953087e-07, -1.7665952736826078e-07,
    6.707853543401498e-09, 1.0261809784240309e-08, -4.382036018453353e-09, 9.14769958223679e-10,
    -2.5514193994946248e-11, -5.830772132550426e-11, 2.4361948020667415e-11,
    -5.0276692801141755e-12, 1.1004392031956135e-13};
constexpr double kTemme1[] = {-0.001851851851851852, -0.003472222222222222, 0.0026455026455026454,
    -0.0009902263374485596, 0.00020576131687242798, -4.018775720164609e-07,
    -1.8098550334489977e-05, 7.64916091608111e-06, -1.6120900894563446e-06, 4.647127802807434e-09,
    1.378633446915721e-07, -5.752545603517705e-08, 1.1951628599778148e-08,
    -1.7543241719747647e-11, -1.0091543710600413e-09, 4.162792991842583e-10,
    -8.56390702649298e-11, 6.067215101604758e-14};
constexpr double kTemme2[] = {0.004133597883597883, -0.0026813271604938273, 0.0007716049382716049,
    2.0093878600823047e-06, -0.0001073665322636516, 5.2923448829120125e-05,
    -1.2760635188618728e-05, 3.423578734096138e-08, 1.3721957309062934e-06,
    -6.298992138380055e-07, 1.4280614206064242e-07, -2.0477098421990866e-10,
    -1.409252991086752e-08, 6.228974084922022e-09, -1.3670488396617114e-09,
    9.428356159014678e-13};
constexpr double kTemme3[] = {0.0006494341563786008, 0.00022947209362139917,
    -0.0004691894943952557, 0.00026772063206283885, -7.561801671883977e-05,
    -2.396505113867297e-07, 1.1082654115347302e-05, -5.6749528269915965e-06,
    1.4230900732435883e-06, -2.7861080291528143e-11, -1.6958404091930278e-07,
    8.099464905388083e-08, -1.9111168485973655e-08, 2.3928620439808118e-12};
constexpr double kTemme4[] = {-0.0008618882909167117, 0.0007840392217200666,
    -0.0002990724803031902, -1.4638452578843418e-06, 6.641498215465122e-05,
    -3.968365047179435e-05, 1.1375726970678419e-05, 2.507497226237533e-10,
    -1.6954149536558305e-06, 8.907507532205309e-07, -2.292934834000805e-07,
    2.956794137544049e-11};
constexpr double kTemme5[] = {-0.00033679855336635813, -6.972813758365857e-05,
    0.0002772753244959392, -0.00019932570516188847, 6.797780477937208e-05, 1.419062920643967e-07,
    -1.3594048189768693e-05, 8.018470256334202e-06, -2.291481176508095e-06,
    -3.252473551298454e-10};
constexpr double kTemme6[] = {0.0005313079364639922, -0.0005921664373536939,
    0.0002708782096718045, 7.902353232660328e-07, -8.153969367561969e-05, 5.61168275310625e-05,
    -1.8329116582843375e-05, -3.0796134506033047e-09};
constexpr double kTemme7[] = {0.00034436760689237765, 5.171790908260592e-05,
    -0.00033493161081142234, 0.0002812695154763237, -0.00010976582244684731,
    -1.2741009095484485e-07};

// --- sums of two numbers, for twice the digits (Dekker 1971) ---

struct Two {
  D hi, lo;
};

WEFT_HERE D Choose(I condition, D x, D y) { return condition ? x : y; }
WEFT_HERE bool Some(I condition) {
  int64_t any = 0;
  for (int i = 0; i < kBytes / 8; ++i) any |= condition[i];
  return any != 0;
}
WEFT_HERE Two Join(D x, D y) {  // |x| >= |y|
  const D hi = x + y;
  return {hi, y - (hi - x)};
}
WEFT_HERE Two Sum(D x, D y) {
  const D hi = x + y, part = hi - x;
  return {hi, (x - (hi - part)) + (y - part)};
}
WEFT_HERE Two Add(Two x, Two y) {
  const Two s = Sum(x.hi, y.hi);
  return Join(s.hi, s.lo + (x.lo + y.lo));
}
WEFT_HERE Two Less(Two x) { return {-x.hi, -x.lo}; }
WEFT_HERE Two Times(Two x, Two y) {
  const D hi = x.hi * y.hi;
  return Join(hi, ProductError(x.hi, y.hi, hi) + (x.hi * y.lo + x.lo * y.hi));
}
WEFT_HERE Two Over(Two x, Two y) {
  const D first = x.hi / y.hi;
  const Two rest = Add(x, Less(Times(y, {first, D{}})));
  return Join(first, rest.hi / y.hi);
}

// log(x) of a positive number: 2 artanh((m - 1) / (m + 1)) + e log 2 of m 2**e.
WEFT_HERE Two LogTwo(Two x) {
  constexpr double kSum[] = {1 / 13., 1 / 15., 1 / 17., 1 / 19., 1 / 21.,
                             1 / 23., 1 / 25., 1 / 27., 1 / 29., 1 / 31.};
  constexpr double kHigh[] = {0.3333333333333333, 0.2, 0.14285714285714285, 0.1111111111111111,
                              0.09090909090909091};
  constexpr double kLow[] = {1.850371707708594e-17, -1.1102230246251566e-17, 7.93016446160826e-18,
                             6.1679056923619804e-18, -2.523234146875356e-18};
  const I tiny = x.hi < 0x1p-1022;
  const D up = Choose(tiny, Full(0x1p54), Full(1));
  x = {x.hi * up, x.lo * up};
  const I e = (I)((U)x.hi - 0x3FE6A09E667F3BCD) >> 52;
  const D scale = (D)((U)(1023 - e) << 52), exponent = Number(e - (tiny & 54));
  const Two more = Sum(x.hi * scale - 1, x.lo * scale), top = Join(more.hi, more.lo);
  const Two s = Over(top, Add(top, {Full(2), D{}})), z = Times(s, s);
  Two out{Polynomial(z.hi, kSum), D{}};
  for (int k = 4; k >= 0; --k) out = Add(Times(out, z), {Full(kHigh[k]), Full(kLow[k])});
  out = Add(Times(Times(out, z), s), s);
  const Two least = Times({exponent, D{}}, {Full(1.9082149292705877e-10), Full(1.1612227229362532e-26)});
  return Add(Add(least, {out.hi * 2, out.lo * 2}), {exponent * 0.6931471803691238, D{}});
}

WEFT_HERE D ExpTwo(Two x) {
  const D t = Least(Largest(x.hi, Full(-800)), Full(720)), k = t * 1.4426950408889634 + kMagic;
  const D n = k - kMagic, a = t - n * 6.93147180369123816490e-01;
  const D less = n * 1.90821492927058770002e-10, r = a - less;
  const Two rest = Join(r, (a - r) - less + x.lo);
  return Scale(Exponential(rest.hi, rest.lo), n);
}

// --- incomplete gamma functions ---

// x**a e**-x / gamma(a + 1), which is 0 for vast arguments that are not near each other.
WEFT_HERE_CALLED D Density(D a, D x) {
  const I vast = (a > 2e4) | (x > 1e5);
  a = Choose(vast, Full(1), a), x = Choose(vast, Full(1), x);
  const Two above = Sum(a, Full(1));
  const I small = above.hi < 10;
  const Two held{Choose(small, above.hi, Full(1)), Choose(small, above.lo, D{})};
  const Two u = Times(held, Add(held, {Full(9), D{}}));
  Two product = u;
  for (double c : {8., 14., 18., 20.}) product = Times(product, Add(u, {Full(c), D{}}));
  const Two moved = Add(held, {Full(10), D{}});
  const Two z{Choose(small, moved.hi, above.hi), Choose(small, moved.lo, above.lo)};
  const D inverse = 1 / z.hi, correction = Polynomial(inverse * inverse, kStirling) * inverse;
  Two gamma = Add(Times(Add(z, {Full(-0.5), D{}}), LogTwo(z)), Less(z));
  gamma = Add(gamma, {Full(0.9189385332046728), Full(-3.8782941580672414e-17)});
  gamma = Add(gamma, {correction, D{}});
  Two exponent = Add(Times(LogTwo({x, D{}}), {a, D{}}), {-x, D{}});
  const D out = ExpTwo(Add(exponent, Less(gamma)));
  return Choose(vast, D{}, out * Choose(small, product.hi + product.lo, Full(1)));
}

// P(a, x) gamma(a + 1) / (x**a e**-x): the sum of x**n / ((a + 1) ... (a + n)).
WEFT_HERE_CALLED D SeriesSum(D a, D x) {
  const I vast = (a > 2e4);
  a = Choose(vast, Full(1), a), x = Choose(vast, Full(1), x);
  D c = Full(1), s = c;
  for (int n = 1; n < 10000; n += 4) {
    for (int i = 0; i < 4; ++i) c = c * (x / (a + (n + i))), s = s + c;
    if (!Some(c > s * 0x1p-54)) break;
  }
  return s;
}

// Q(a, x) gamma(a) / (x**a e**-x), a continued fraction: p / q, and by how much that moves times q**2.
WEFT_HERE_CALLED D FractionValue(D a, D x) {
  const I vast = (a > 2e4) | (x > 1e5);
  a = Choose(vast, Full(1), a), x = Choose(vast, Full(2), x);
  D before = D{}, p = Full(1), below = Full(1), q = x - a + 1, b = q, moved = Full(1);
  for (int n = 1; n < 10000; ++n) {
    const D top = n * (a - n);
    b = b + 2;
    const D next = b * p + top * before, under = b * q + top * below;
    before = p, below = q, p = next, q = under, moved = moved * top;
    if (n % 2) continue;
    if (!Some(Abs(moved) > 0x1p-59 * (p * q))) break;
    const D by = Choose(q > 1e70, Full(1e-70), Full(1));
    before = before * by, p = p * by, below = below * by, q = q * by, moved = moved * by * by;
  }
  return p / q;
}

WEFT_HERE D Erfcx(D x) { return Polynomial((x - 2) / (x + 2), kErfcx) / (1 + 2 * x); }

// Q(a, x) where x >= a, else P(a, x), of an x near a large a (Temme 1979).
WEFT_HERE_CALLED D TemmeTail(D a, D x) {
  const Two log = LogTwo(Over({x, D{}}, {a, D{}}));
  const Two deviance = Add(Sum(x, -a), Less(Times(log, {a, D{}})));
  const D size = Largest(deviance.hi + deviance.lo, D{}), inverse = 1 / a;
  const I above = x >= a;
  D eta = FullRoot(2 * size * inverse);
  eta = Choose(above, eta, -eta);
  D total = Polynomial(eta, kTemme7);
  total = total * inverse + Polynomial(eta, kTemme6);
  total = total * inverse + Polynomial(eta, kTemme5);
  total = total * inverse + Polynomial(eta, kTemme4);
  total = total * inverse + Polynomial(eta, kTemme3);
  total = total * inverse + Polynomial(eta, kTemme2);
  total = total * inverse + Polynomial(eta, kTemme1);
  total = total * inverse + Polynomial(eta, kTemme0);
  const D correction = total / FullRoot(a * (2 * kPi)), half = Erfcx(FullRoot(size)) * 0.5;
  return ExpTwo(Less(deviance)) * (half + Choose(above, correction, -correction));
}

// By Horner's rule, where the last digit shows.
template <int kCount>
WEFT_HERE D Horner(D x, const double (&c)[kCount]) {
  D out = Full(c[kCount - 1]);
  for (int i = kCount - 2; i >= 0; --i) out = out * x + c[i];
  return out;
}

// Q(a, x) for x <= 1 and a < 1, where it is small against P (Gautschi 1979).
WEFT_HERE_CALLED D SmallUpper(D a, D x) {
  D total{}, power = Full(1);
  for (int n = 1; n < 20; ++n) power = power * x * (-1. / n), total = total + power / (a + n);
  const I low = a < 0.5;
  const D y = a + 1, first = Horner(Least(y * 2 - 2, Full(1)), kLogGamma1);
  const D second = Horner(Largest((y - 2.25) * (2 / 1.5), Full(-1)), kLogGamma2);
  // of the least a, a product with log gamma(1 + a) / a alone would be taken for 0
  const Two slope = Add(LogTwo({x, D{}}), {(1 - a) * Choose(low, first, second), D{}});
  const D exponent = a * (slope.hi + slope.lo);
  D out, size;
  for (int i = 0; i < kBytes / 8; ++i) out[i] = -std::expm1(exponent[i]), size[i] = out[i];
  return out - (1 - size) * (a * total);
}

constexpr int64_t kBlock = 256;  // elements that are put in order at once

enum { kUniform, kSeries, kFraction, kSmall, kWays };

// One of a block's elements, of which a NaN stays; a way, or what it is.
WEFT_HERE int FindWay(double a, double x, bool lower, double* out) {
  constexpr double inf = INFINITY;
  if (a > 0 && x > 0 && a < inf && x < inf) {
    if (a > 100 && std::fabs(x - a) < 0.4 * a) return kUniform;
    if (!lower && x <= 1 && a < 1) return kSmall;
    return x <= 1 || x <= a ? kSeries : kFraction;
  }
  if (x != x || a != a) {
    *out = x != x ? x : a;
  } else if (!(a >= 0 && x >= 0) || (a == 0 && x == 0) || (a == inf && x == inf)) {
    *out = NAN;
  } else {
    *out = (x == inf || a == 0) == lower;
  }
  return kWays;
}

WEFT_HERE_CALLED D GammaOf(int way, bool lower, D a, D x) {
  if (way == kUniform) {
    const D tail = TemmeTail(a, x);
    return lower ? Choose(x >= a, 1 - tail, tail) : Choose(x >= a, tail, 1 - tail);
  }
  if (way == kSmall) return SmallUpper(a, x);
  const D density = Density(a, x);
  if (way == kSeries) {
    const D p = density * SeriesSum(a, x);
    return lower ? p : 1 - p;
  }
  const D q = density * a * FractionValue(a, x);
  return lower ? 1 - q : q;
}

WEFT_HERE_CALLED void WriteGamma(bool lower, const double* a, const double* x, double* out,
                                 int64_t count) {
  constexpr int64_t kLanes = kBytes / 8;
  double as[kWays + 1][kBlock + kLanes], xs[kWays + 1][kBlock + kLanes];
  int places[kWays + 1][kBlock], filled[kWays + 1] = {};
  for (int64_t i = 0; i < count; ++i) {
    const int way = FindWay(a[i], x[i], lower, &out[i]), k = filled[way]++;
    as[way][k] = a[i], xs[way][k] = x[i], places[way][k] = i;
  }
  for (int way = 0; way < kWays; ++way) {
    const int found = filled[way];
    if (found == 0) continue;
    for (int64_t k = found; k < found + kLanes; ++k) {
      as[way][k] = as[way][found - 1], xs[way][k] = xs[way][found - 1];
    }
    for (int64_t k = 0; k < found; k += kLanes) {
      D u, v;
      std::memcpy(&u, as[way] + k, sizeof(D));
      std::memcpy(&v, xs[way] + k, sizeof(D));
      const D y = GammaOf(way, lower, u, v);
      for (int64_t i = 0; i < kLanes && k + i < found; ++i) out[places[way][k + i]] = y[i];
    }
  }
}

template <bool kLower>
void ComputeGamma(const void* const* xs, void* out, int64_t count) {
  const double *a = static_cast<const double*>(xs[0]), *x = static_cast<const double*>(xs[1]);
  for (int64_t i = 0; i < count; i += kBlock) {
    WriteGamma(kLower, a + i, x + i, static_cast<double*>(out) + i, std::min(kBlock, count - i));
  }
}

// --- Hurwitz's zeta function ---

// The sum of (k + q)**-s over k = 0, 1, ..., by Euler and Maclaurin's formula from k = kFirst on.
template <int kFirst, int kTerms, class Raise>
WEFT_HERE D ZetaOf(D s, D q, Raise raise) {
  D total{};
  for (int k = 0; k < kFirst; ++k, q = q + 1) total = total + raise(q, -s);
  const D last = raise(q, -s), inverse = 1 / q;
  D tail = last * (q / (s - 1) + 0.5), term = last * s * inverse;
  for (int k = 1; k <= kTerms; ++k) {
    tail = tail + term * kEuler[k - 1];
    term = term * ((s + (2 * k - 1)) * inverse) * ((s + 2 * k) * inverse);
  }
  return total + tail;
}

struct PowerD {
  WEFT_HERE_MEMBER D operator()(D x, D y) const { return WidePower(x, y, false); }
};
struct PowerOfF {
  WEFT_HERE_MEMBER D operator()(D x, D y) const { return PowerUsual(x, y); }
};
WEFT_HERE_CALLED D ZetaUsual(D s, D q) { return ZetaOf<9, 10>(s, q, PowerD()); }
// To 1e-9, as single precision wants it.
WEFT_HERE_CALLED D ZetaSingle(D s, D q) { return ZetaOf<4, 5>(s, q, PowerOfF()); }

// The same of an element that is not usual, by the C library.
WEFT_HERE_CALLED double ZetaAny(double s, double q) {
  if (q != q || s != s) return q != q ? q : s;
  if (s < 1) return NAN;
  if (s == 1) return INFINITY;
  if (q <= 0 && std::floor(q) == q) return INFINITY;
  if (q <= 0 && std::floor(s) != s) return NAN;
  if (s == INFINITY) return q > 1 ? 0 : q < 1 ? INFINITY : 1;
  if (q == INFINITY) return 0;
  double total = 0;
  for (int n = 0; n < 10000 && q < 0; ++n, q += 1) total += std::pow(q, -s);
  for (int k = 0; k < 9; ++k, q += 1) total += std::pow(q, -s);
  const double last = std::pow(q, -s), inverse = 1 / q;
  double tail = last * (q / (s - 1) + 0.5), term = last * s * inverse;
  for (int k = 1; k <= 10; ++k) {
    tail += term * kEuler[k - 1];
    term = term * ((s + (2 * k - 1)) * inverse) * ((s + 2 * k) * inverse);
  }
  return total + tail;
}

// Each element, of which only those take long that are not in the range of `WidePower`.
WEFT_HERE_CALLED D ZetaEach(D s, D q) {
  const I known = (s > 1) & (s < 1e6) & (q > 1e-300) & (q < 1e300);
  D out = ZetaUsual(Choose(known, s, Full(2)), Choose(known, q, Full(1)));
  for (int i = 0; i < kBytes / 8; ++i) {
    if (!known[i]) out[i] = ZetaAny(s[i], q[i]);
  }
  return out;
}
