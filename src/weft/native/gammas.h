// Included for each kind of processor, after formulas.h: incomplete gamma functions of float64 and
// Hurwitz's zeta function, by the formulas of primitives/special/gamma.py. What these have without
// loops is in derived.h.
//
// The elements of a block are grouped by the formula that they need, and each group is computed in
// vectors. A sum ends when no lane of its vector needs more terms.

WEFT_HERE D Choose(I condition, D x, D y) { return condition ? x : y; }
WEFT_HERE bool Some(I condition) {
  int64_t any = 0;
  for (int i = 0; i < kBytes / 8; ++i) any |= condition[i];
  return any != 0;
}

// --- incomplete gamma functions ---

// Both loops are 1.25 times as fast as those in gamma.py, which mask elements and divide at each
// step.
//
// P(a, x) gamma(a + 1) / (x**a e**-x) is the sum of x**n / ((a + 1) ... (a + n)).
WEFT_HERE_CALLED D SeriesSum(D a, D x) {
  D c = Full(1), s = c;
  for (int n = 1; n < 10000; n += 4) {
    for (int i = 0; i < 4; ++i) c = c * (x / (a + (n + i))), s = s + c;
    if (!Some(c > s * 0x1p-54)) break;
  }
  return s;
}

// Q(a, x) gamma(a) / (x**a e**-x), a continued fraction: p / q, and by how much that moves times q**2.
WEFT_HERE_CALLED D FractionValue(D a, D x) {
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

constexpr int64_t kBlock = 256;  // elements that are put in order at once

enum { kUniform, kSeries, kFraction, kSmall, kWays };

// Returns the formula that an element needs, or writes the result to `out` if it is known. NaN
// stays.
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
  // of vast arguments that are not near each other it is 0
  const I vast = (a > 2e4) | (x > 1e5);
  a = Choose(vast, Full(1), a), x = Choose(vast, Full(1), x);
  const D density = Choose(vast, D{}, Density(a, x));
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

// The sum of (q + k)**-s of positive q: powers by the C library, else as `hurwitz_sum` does.
WEFT_HERE_CALLED double ZetaSum(double s, double q) {
  // Bernoulli's numbers over (2k)!
  constexpr double kEuler[] = {0.08333333333333333, -0.001388888888888889, 3.306878306878307e-05,
      -8.267195767195768e-07, 2.08767569878681e-08, -5.284190138687493e-10, 1.3382536530684679e-11,
      -3.3896802963225827e-13, 8.586062056277845e-15, -2.174868698558062e-16};
  double total = 0;
  for (int k = 0; k < 9; ++k, q += 1) total += std::pow(q, -s);
  const double last = std::pow(q, -s), inverse = 1 / q;
  double tail = last * (q / (s - 1) + 0.5), term = last * s * inverse;
  for (int k = 1; k <= 10; ++k) {
    tail += term * kEuler[k - 1];
    term = term * ((s + (2 * k - 1)) * inverse) * ((s + 2 * k) * inverse);
  }
  return total + tail;
}

// For elements that are not usual.
WEFT_HERE_CALLED double ZetaAny(double s, double q) {
  if (q != q || s != s) return q != q ? q : s;
  if (s < 1) return NAN;
  if (s == 1) return INFINITY;
  if (q <= 0 && std::floor(q) == q) return INFINITY;
  if (q <= 0 && std::floor(s) != s) return NAN;
  if (s == INFINITY) return q > 1 ? 0 : q < 1 ? INFINITY : 1;
  if (q == INFINITY) return 0;
  if (q > 0) return ZetaSum(s, q);
  // The terms with a negative base are split into two sums from 0 on, added as in `hurwitz`.
  const double below = std::floor(q), from = q - below, to = below + 1 - q;
  const double rest = ZetaSum(s, 1 - q);
  if (std::fmod(s, 2) == 0) return ZetaSum(s, from) + ZetaSum(s, to) - rest;
  return (from == to ? 0 : ZetaSum(s, from) - ZetaSum(s, to)) + rest;
}

// Computes each element. Only elements outside of the range of `WidePower` are slow.
WEFT_HERE_CALLED D ZetaEach(D s, D q) {
  const I known = (s > 1) & (s < 1e6) & (q > 1e-300) & (q < 1e300);
  D out = ZetaUsual(Choose(known, s, Full(2)), Choose(known, q, Full(1)));
  for (int i = 0; i < kBytes / 8; ++i) {
    if (!known[i]) out[i] = ZetaAny(s[i], q[i]);
  }
  return out;
}
