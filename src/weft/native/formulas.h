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
// a / b with 42 correct bits, for b neither huge nor tiny, by Newton's method from a 14-bit 1 / b.
WEFT_HERE D Quotient(D a, D b) {
  const D r = (D)_mm512_rcp14_pd((__m512d)b), e = 1 - b * r, q = a * r;
  return q + q * (e + e * e);
}
// 1 / b with an error of 1 ulp.
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
WEFT_HERE D Nearest(D x) {
#if defined(__x86_64__) && WEFT_BYTES == 64
  return (D)_mm512_roundscale_pd((__m512d)x, _MM_FROUND_TO_NEAREST_INT);
#elif defined(__x86_64__) && WEFT_BYTES == 32
  return (D)_mm256_round_pd((__m256d)x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
#else
  for (int i = 0; i < kBytes / 8; ++i) x[i] = std::nearbyint(x[i]);
  return x;
#endif
}
// A whole number up to 2**51, as an integer.
WEFT_HERE I Whole(D x) { return (I)((U)(x + kMagic) - 0x4338000000000000); }
WEFT_HERE D Full(double x) { return D{} + x; }
WEFT_HERE D FullRoot(D x) {
#if defined(__x86_64__) && WEFT_BYTES == 64
  return (D)_mm512_sqrt_pd((__m512d)x);
#elif defined(__x86_64__) && WEFT_BYTES == 32
  return (D)_mm256_sqrt_pd((__m256d)x);
#else
  for (int i = 0; i < kBytes / 8; ++i) x[i] = std::sqrt(x[i]);
  return x;
#endif
}
WEFT_HERE D PowerOf2(D k) { return (D)(((U)Whole(k) + 1023) << 52); }

// Evaluates even and odd powers separately, as two independent chains.
template <int kCount>
WEFT_HERE D Polynomial(D x, const double (&c)[kCount]) {
  const D z = x * x;
  D even = c[(kCount - 1) & ~1] - D{}, odd = c[kCount - 1 - (kCount & 1)] - D{};
  for (int i = ((kCount - 1) & ~1) - 2; i >= 0; i -= 2) even = even * z + c[i];
  for (int i = kCount - 3 - (kCount & 1); i >= 0; i -= 2) odd = odd * z + c[i];
  return even + x * odd;
}

// --- functions of float64, as in fdlibm (Sun Microsystems, 1993; see NOTICE) -------------------

// From here on multiples of the parts of pi / 2 are rounded.
constexpr double kFar = 0x1p19 * kPi / 2;

// The C library's function of elements that are beyond.
WEFT_HERE D CallBeyond(D y, D x, double (*function)(double)) {
  for (int i = 0; i < kBytes / 8; ++i) {
    if (!(std::fabs(x[i]) < kFar)) y[i] = function(x[i]);
  }
  return y;
}

// x 2**n, |n| up to 1100.
WEFT_HERE D Scale(D x, D n) {
#if defined(__x86_64__) && WEFT_BYTES == 64
  return (D)_mm512_scalef_pd((__m512d)x, (__m512d)n);
#else
  const D half = Nearest(n * 0.5);
  return x * PowerOf2(half) * PowerOf2(n - half);
#endif
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

WEFT_HERE D WideExp(D x);
// The C library's.
WEFT_HERE D EachExpm1(D x) {
  for (int i = 0; i < kBytes / 8; ++i) x[i] = std::expm1(x[i]);
  return x;
}

#include "derived.h"

// x = r + n log 2; the first part of log 2 has 32 bits, so that n times it is exact.
WEFT_HERE D WideExp(D x) {
  const D held = x < -746 ? D{} - 746.0 : x > 710 ? D{} + 710.0 : x;
  const D n = Nearest(held * 1.4426950408889634), t = held - n * 6.93147180369123816490e-01;
  const D less = n * 1.90821492927058770002e-10, r = t - less;
  return Scale(Exponential(r, (t - r) - less), n);
}

WEFT_HERE D WideLogistic(D x) {
  const D e = WideExp(-Abs(x));
  return (x < 0 ? e : D{} + 1.0) / (1 + e);
}

#include "gammas.h"
#include "singles.h"

// --- the functions and their operand types ------------------------------------------------------

// A function of vectors of one or two operands. `fast` is for blocks whose elements are all
// `usual`, `any` for the others. For elements below `least` in magnitude the result is x (for odd
// functions).
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
// Functions without a fast path for usual blocks: opcode, vectors, least, formula.
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
  X(Sinh, D, 1e-300, HyperbolicSine(x))                              \
  X(Cosh, D, 0, HyperbolicCosine(x))                                  \
  X(Exp, D, 0, WideExp(x))                                                 \
  X(Logistic, D, 0, WideLogistic(x))                                       \
  X(Erf, D, 2.2250738585072014e-308, ErrorFunction(x))

WEFT_CIRCULAR(SinF, H, 1e-30, 0x1p20f, Narrow(SineNear(Wide(x))), Narrow(SineFar(Wide(x))))
WEFT_CIRCULAR(CosF, H, 0, 0x1p20f, Narrow(CosineNear(Wide(x))),
              Narrow(CosineFar(Wide(x))))
WEFT_CIRCULAR(TanF, F, 1e-4, 0x1p16f, TangentNear(x), TangentOfAny(x))
WEFT_FUNCTION(Atan2F, H, 0,
              (x * x > 1e-36f) & (y * y > 1e-36f) & (x * x < 1e36f) & (y * y < 1e36f),
              Narrow(AngleUsual(Wide(x), Wide(y))), Narrow(Angle(Wide(x), Wide(y))))
WEFT_FUNCTION(PowF, H, 0, WEFT_BETWEEN(x, 1.2e-38f, INFINITY) & WEFT_BETWEEN(y, -7.9f, 7.9f),
              Narrow(PowerUsual(Wide(x), Wide(y))), Narrow(Power(Wide(x), Wide(y))))
WEFT_FUNCTION(RemF, F, 0, WEFT_BETWEEN(Abs(y), 1e-30f, INFINITY) & (Abs(x) < Abs(y) * 0x1p22f),
              Remainder(x, y), RemainderEach(x, y))
WEFT_EACH(WEFT_WHOLE)
WEFT_WHOLE(Add, F, 0, x + y)
WEFT_WHOLE(Sub, F, 0, x - y)
WEFT_WHOLE(Mul, F, 0, x * y)

WEFT_CIRCULAR(SinD, D, 1e-300, kFar, SineUsual(x), CallBeyond(SineUsual(x), x, std::sin))
WEFT_CIRCULAR(CosD, D, 0, kFar, CosineUsual(x),
              CallBeyond(CosineUsual(x), x, std::cos))
WEFT_CIRCULAR(TanD, D, 1e-300, kFar, TangentUsual(x),
              CallBeyond(TangentUsual(x), x, std::tan))
WEFT_FUNCTION(LogD, D, 0, WEFT_BETWEEN(x, 2.3e-308, INFINITY), LogUsual(x), LogAny(x))
WEFT_FUNCTION(PowD, D, 0,
              WEFT_BETWEEN(x, 2.3e-308, INFINITY) & WEFT_BETWEEN(y, -1e30, 1e30) & (x != 1) &
                  (y != 0),
              WidePowerUsual(x, y), WidePower(x, y))
WEFT_FUNCTION(ZetaD, D, 0, WEFT_BETWEEN(x, 1, 1e6) & WEFT_BETWEEN(y, 1e-300, 1e300),
              ZetaUsual(x, y), ZetaEach(x, y))
WEFT_FUNCTION(ZetaSingleD, D, 0, WEFT_BETWEEN(x, 1, 40) & WEFT_BETWEEN(y, 0x1p-20, 0x1p20),
              ZetaSingle(x, y), ZetaEach(x, y))

// Returns vector number i of an array, which may begin at any element. A pointer to vectors would let
// the compiler assume an aligned address, even for memcpy.
template <class V>
WEFT_HERE V ReadAt(const void* from, int64_t i) {
  V x;
  std::memcpy(&x, static_cast<const char*>(from) + i * sizeof(V), sizeof(V));
  return x;
}
template <class V>
WEFT_HERE void WriteAt(void* to, int64_t i, V x) {
  std::memcpy(static_cast<char*>(to) + i * sizeof(V), &x, sizeof(V));
}

// Computes all vectors of one block. kOne: x is a scalar, so that the compiler hoists what depends
// on x.
template <class Function, bool kFast, bool kOne, class V = typename Function::V>
WEFT_HERE void Write(const void* x, const void* y, void* out, int64_t n) {
  V a = ReadAt<V>(x, 0), b, c;
  for (int64_t i = 0; i < n; ++i) {
    if (!kOne) a = ReadAt<V>(x, i);
    b = ReadAt<V>(y, i);
    c = kFast ? Function::Fast(a, b) : Function::Any(a, b);
    if constexpr (Function::kLeast > 0) {
      constexpr std::decay_t<decltype(a[0])> least = Function::kLeast;
      c = (a < least) & (a > -least) ? a : c;
    }
    WriteAt(out, i, c);
  }
}

template <class Function, int64_t kOp, class V = typename Function::V>
WEFT_HERE_CALLED void Apply(const void* const* xs, void* out, int64_t count) {
  constexpr bool kOne = kOp == op::kPowerOf;
  const void *x = xs[0], *y = xs[kOperands[kOp] - 1];
  const int64_t n = count * sizeof(V{}[0]) / sizeof(V);
  if constexpr (!std::is_same_v<decltype(Function::Usual(V{}, V{})), bool>) {
    auto usual = V{} == V{};
    for (int64_t i = 0; i < n; ++i) usual &= Function::Usual(ReadAt<V>(x, i), ReadAt<V>(y, i));
    int64_t parts[sizeof(V) / 8], all = -1;
    std::memcpy(parts, &usual, sizeof(V));
    for (int64_t part : parts) all &= part;
    if (all != -1) return Write<Function, false, kOne>(x, y, out, n);
  }
  Write<Function, true, kOne>(x, y, out, n);
}

// --- rows of programs: of `count` elements, a multiple of 16 ---

// Converts arrays of each dtype to float32 and back; a bool is a mask of all bits.
template <class T>
using Of32 = typename Vector<T, kBytes / 4 * sizeof(T)>::V;  // with the same number of elements

template <class From, class To, class Change>
WEFT_HERE void ConvertEach(const void* const* xs, void* out, int64_t count, Change) {
  for (int64_t i = 0; i < count * 4 / kBytes; ++i) {
    WriteAt<To>(out, i, Change::Made(ReadAt<From>(xs[0], i)));
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
  for (int64_t i = 0; i < count * 4 / kBytes; ++i) {
    const Packed a = ReadAt<Packed>(xs[0], i), b = ReadAt<Packed>(xs[1], i);
    WriteAt<Packed>(out, i, To::Made(Function::Fast(From::Made(a), From::Made(b))));
  }
}
template <class Function>
constexpr Compute kOnHalves = Direct<Function, FromHalfEach, ToHalfEach>;
template <class Function>
constexpr Compute kOnBfloats = Direct<Function, FromBfloatEach, ToBfloatEach>;

// Exact operations on the bits of 16-bit floats. Magnitudes above infinity are NaN.
enum { kNegate, kAbsolute, kLarger, kSmaller };
template <int kOperation, int16_t kInfinity = 0>
WEFT_HERE_CALLED void OnBits(const void* const* xs, void* out, int64_t count) {
  using V = typename Vector<int16_t, 32>::V;
  constexpr bool kTwo = kOperation == kLarger || kOperation == kSmaller;
  for (int64_t i = 0; i < count / 16; ++i) {
    const V a = ReadAt<V>(xs[0], i), b = ReadAt<V>(xs[kTwo], i);
    V c;
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
    WriteAt(out, i, c);
  }
}

// The sum of a row, or its largest element, 16 times.
template <bool kSum, class T>
WEFT_HERE T Joined(T x, T y) { return kSum ? x + y : x > y ? x : y; }
// Joins the second half of an array to the first until one element is left. The width is a constant, so
// that the elements stay in registers.
template <bool kSum, int64_t kWidth, class T>
WEFT_HERE void FoldHalves(T* x) {
  for (int64_t k = 0; k < kWidth; ++k) x[k] = Joined<kSum>(x[k], x[k + kWidth]);
  if constexpr (kWidth > 1) FoldHalves<kSum, kWidth / 2>(x);
}
// Joins vectors of a row, beginning with number `i`, to `kWidth` vectors: `kWidth` of them at a time.
template <bool kSum, class From, int64_t kWidth, class Change>
WEFT_HERE void JoinVectors(F* sums, const void* x, int64_t i, int64_t n, const Change& change) {
  for (; i + kWidth <= n; i += kWidth) {
    for (int64_t k = 0; k < kWidth; ++k) {
      sums[k] = Joined<kSum>(sums[k], change.Made(ReadAt<From>(x, i + k)));
    }
  }
  if constexpr (kWidth > 1) JoinVectors<kSum, From, kWidth / 2>(sums, x, i, n, change);
}
struct Unchanged {
  static WEFT_HERE_MEMBER F Made(F x) { return x; }
};
// Joins two elements of bfloat16 that follow each other, which takes fewer instructions than widening.
template <bool kSum>
struct BfloatPairs {
  static WEFT_HERE_MEMBER F Made(W x) { return Joined<kSum>((F)(x << 16), (F)(x & ~0xFFFF)); }
};
// The elements behind the last whole vector, and zeros or, for a maximum, the first element of the row.
template <bool kSum, class From, int64_t kBytesEach>
WEFT_HERE From ReadRest(const void* x, int64_t count) {
  constexpr int64_t kElements = sizeof(From) / kBytesEach;
  From rest = {};
  char* const to = reinterpret_cast<char*>(&rest);
  for (int64_t j = 0; !kSum && j < kElements; ++j) std::memcpy(to + j * kBytesEach, x, kBytesEach);
  const int64_t whole = count / kElements * kElements;
  std::memcpy(to, static_cast<const char*>(x) + whole * kBytesEach, (count - whole) * kBytesEach);
  return rest;
}
template <class Change, class From>
WEFT_HERE F MadeOfRest(const Change& change, From rest, int64_t) { return change.Made(rest); }
// Any number of elements. The last vector of sums is added in float64, because its elements are the
// largest terms.
template <bool kSum, class From, int64_t kBytesEach, class Change>
WEFT_HERE void JoinElements(const void* x, void* out, int64_t count, const Change& change) {
  constexpr int64_t kFloats = kBytes / 4, kElements = sizeof(From) / kBytesEach;
  // A zero that GCC does not know: it would write constants as `rep stos`, which takes 10 ns.
  F start = F{} + static_cast<float>(count >> 62), y = start;
  if (!kSum || count % kElements) {
    y = MadeOfRest(change, ReadRest<kSum, From, kBytesEach>(x, count), count % kElements);
  }
  if (!kSum) start = y;
  F sums[] = {y, start, start, start, start, start, start, start};
  double parts[kFloats];
  JoinVectors<kSum, From, 8>(sums, x, 0, count / kElements, change);
  FoldHalves<kSum, 4>(sums);
  for (int64_t j = 0; j < kFloats; ++j) parts[j] = sums[0][j];
  FoldHalves<kSum, kFloats / 2>(parts);
  const float one = parts[0];
  for (int64_t j = 0; j < kFloats; ++j) y[j] = one;
  for (int64_t i = 0; i < 64 / kBytes; ++i) WriteAt(out, i, y);
}
template <bool kSum, class From = F, class Change = Unchanged, int64_t kBytesEach = 4>
WEFT_HERE_CALLED void JoinRow(const void* const* xs, void* out, int64_t count) {
  JoinElements<kSum, From, kBytesEach>(xs[0], out, count, Change());
}

// The vectors of elements in float32 that a vector read from a row holds.
struct SinglesOf {
  using From = F;
  static constexpr int64_t kBytesEach = 4, kParts = 1;
  static WEFT_HERE_MEMBER void Split(F x, F* parts) { parts[0] = x; }
};
struct HalvesOf {
  using From = Packed;
  static constexpr int64_t kBytesEach = 2, kParts = 1;
  static WEFT_HERE_MEMBER void Split(Packed x, F* parts) { parts[0] = FromHalfEach::Made(x); }
};
struct BfloatsOf {
  using From = W;
  static constexpr int64_t kBytesEach = 2, kParts = 2;
  static WEFT_HERE_MEMBER void Split(W x, F* parts) {
    parts[0] = (F)(x << 16), parts[1] = (F)(x & ~0xFFFF);
  }
};
// The squares of what elements differ from a number by.
template <class Read>
struct Deviations {
  F from;
  template <class From>
  WEFT_HERE_MEMBER F Made(From x) const {
    F parts[Read::kParts];
    Read::Split(x, parts);
    F d = parts[0] - from, sum = d * d;
    if constexpr (Read::kParts == 2) d = parts[1] - from, sum += d * d;
    return sum;
  }
};
template <class Read, class From>
WEFT_HERE F MadeOfRest(const Deviations<Read>& change, From rest, int64_t count) {
  J place;
  for (int64_t j = 0; j < kBytes / 4; ++j) place[j] = j * Read::kParts;
  F parts[Read::kParts], sum = F{};
  Read::Split(rest, parts);
  for (int32_t k = 0; k < Read::kParts; ++k) {
    const F d = place + k < static_cast<int32_t>(count) ? parts[k] - change.from : F{};
    sum += d * d;
  }
  return sum;
}
// The sum of squares of what the elements of a row differ from a number of the row by.
template <class Read>
WEFT_HERE_CALLED void JoinDeviations(const void* const* xs, void* out, int64_t count) {
  Deviations<Read> change;
  for (int64_t j = 0; j < kBytes / 4; ++j) change.from[j] = *static_cast<const float*>(xs[0]);
  JoinElements<true, typename Read::From, Read::kBytesEach>(xs[1], out, count, change);
}
WEFT_HERE_CALLED void Spread(const void* const* xs, void* out, int64_t count) {
  F y;
  for (int64_t j = 0; j < kBytes / 4; ++j) y[j] = *static_cast<const float*>(xs[0]);  // with its bits
  for (int64_t i = 0; i < count * 4 / kBytes; ++i) WriteAt(out, i, y);
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
    WEFT_BLOCKS(ReduceSquares, F, JoinDeviations<SinglesOf>)
    {op::kReduceSquares, ffi::F16, ffi::F32, JoinDeviations<HalvesOf>, true},
    {op::kReduceSquares, ffi::BF16, ffi::F32, JoinDeviations<BfloatsOf>, true},
    {op::kReduceSum, ffi::F16, ffi::F32, JoinRow<true, Packed, FromHalfEach, 2>, true},
    {op::kReduceSum, ffi::BF16, ffi::F32, (JoinRow<true, W, BfloatPairs<true>, 2>), true},
    {op::kReduceMax, ffi::F16, ffi::F32, JoinRow<false, Packed, FromHalfEach, 2>, true},
    {op::kReduceMax, ffi::BF16, ffi::F32, (JoinRow<false, W, BfloatPairs<false>, 2>), true},
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
