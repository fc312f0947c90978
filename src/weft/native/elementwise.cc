// A few cheap operations on each element: what a program of such operations alone calls.
//
// The results are XLA's, to the bit, but for the signs of NaN. Operands of one element go with all.

#include <cmath>
#include <limits>
#include <type_traits>

#include "common.h"

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-math-errno", "no-trapping-math")
#endif

namespace weft {
namespace {

constexpr int64_t kBlock = 1024;     // elements taken at once where an operand is one number
constexpr int64_t kAlone = 1 << 20;  // bytes that are moved, up to which one thread is as quick
constexpr int64_t kBytes = 1 << 18;  // of those, what is worth a piece

enum Op {  // in the order of passes/alone.py
  kAdd, kSub, kMul, kDiv, kNeg, kAbs, kSign, kMax, kMin, kFloor, kCeil, kEq, kNe, kGt, kGe, kLt, kLe,
  kAnd, kOr, kXor, kNot, kSelect, kClamp, kFinite, kSquare, kConvert, kEven, kInverse,
  kAtLeast, kAtMost,  // the larger and the smaller of a number that is neither zero nor NaN
  kChoose, kReplace = kChoose + 6  // and what follows each: choices by each of the comparisons
};

template <class T>
constexpr bool kIsFloat = std::is_floating_point_v<T>;

// An unsigned integer of as many bytes.
template <class T>
using Bits = std::conditional_t<
    sizeof(T) == 1, uint8_t,
    std::conditional_t<sizeof(T) == 2, uint16_t, std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>>;

// What sums, which wrap, are computed in.
template <class T>
using Wrapping = std::conditional_t<kIsFloat<T>, T, Bits<T>>;

template <class To, class From>
inline To Cast(From x) {
  To y;
  static_assert(sizeof(x) == sizeof(y));
  std::memcpy(&y, &x, sizeof(y));
  return y;
}

inline float Floor(float x) { return __builtin_floorf(x); }
inline double Floor(double x) { return __builtin_floor(x); }
inline float Ceil(float x) { return __builtin_ceilf(x); }
inline double Ceil(double x) { return __builtin_ceil(x); }
inline float Even(float x) { return __builtin_rintf(x); }
inline double Even(double x) { return __builtin_rint(x); }
inline float Absolute(float x) { return __builtin_fabsf(x); }
inline double Absolute(double x) { return __builtin_fabs(x); }
inline float WithSign(float x, float y) { return __builtin_copysignf(x, y); }
inline double WithSign(double x, double y) { return __builtin_copysign(x, y); }

// NaN, if there is one; of zeros of both signs that which is larger, or smaller.
template <bool largest, class T>
inline T Extremum(T x, T y) {
  if constexpr (kIsFloat<T>) {
    const T u = (largest ? x > y : x < y) ? x : y, v = (largest ? y > x : y < x) ? y : x;
    const Bits<T> a = Cast<Bits<T>>(u), b = Cast<Bits<T>>(v);  // which differ by zeros' signs alone
    const T z = Cast<T>(largest ? a & b : a | b);
    return (x != x) | (y != y) ? x + y : z;
  } else {
    return (largest ? x > y : x < y) ? x : y;
  }
}

// Floats cut to integers, to the nearest end of those where they are beyond; NaN to 0.
template <class R, class T>
inline R Saturated(T x) {
  constexpr R least = std::numeric_limits<R>::min(), most = std::numeric_limits<R>::max();
  if constexpr (sizeof(R) == 1) {
    T y = x == x ? x : T{0};
    y = y > T{least} ? y : T{least};
    y = y < T{most} ? y : T{most};
    return static_cast<R>(static_cast<int32_t>(y));
  } else {
    constexpr T beyond = 2147483648.0;
    const bool inside = x < beyond && x >= -beyond;
    R y = static_cast<R>(inside ? x : T{0});
    y = x >= beyond ? most : y;
    return x < -beyond ? least : y;
  }
}

template <Op op, class T>
inline T Apply(T x) {
  using U = Wrapping<T>;
  if constexpr (op == kNeg) {
    if constexpr (kIsFloat<T>) return -x;
    else return static_cast<T>(U{0} - static_cast<U>(x));
  } else if constexpr (op == kAbs) {
    if constexpr (kIsFloat<T>) return Absolute(x);
    else return x < 0 ? static_cast<T>(U{0} - static_cast<U>(x)) : x;
  } else if constexpr (op == kSign) {
    if constexpr (kIsFloat<T>) return (x < 0) | (x > 0) ? WithSign(T{1}, x) : x + x;
    else return static_cast<T>((x > 0) - (x < 0));
  } else if constexpr (op == kFloor) {
    return Floor(x);
  } else if constexpr (op == kCeil) {
    return Ceil(x);
  } else if constexpr (op == kEven) {
    return Even(x);
  } else if constexpr (op == kInverse) {
    return 1 / x;
  } else if constexpr (op == kSquare) {
    return static_cast<U>(x) * static_cast<U>(x);
  } else {
    return ~x;
  }
}

template <Op op, class T>
inline T Apply(T x, T y) {
  using U = Wrapping<T>;
  if constexpr (op == kAdd) return static_cast<U>(x) + static_cast<U>(y);
  else if constexpr (op == kSub) return static_cast<U>(x) - static_cast<U>(y);
  else if constexpr (op == kMul) return static_cast<U>(x) * static_cast<U>(y);
  else if constexpr (op == kDiv) return x / y;
  else if constexpr (op == kAnd) return x & y;
  else if constexpr (op == kOr) return x | y;
  else if constexpr (op == kXor) return x ^ y;
  else if constexpr (op == kAtLeast) return x < y ? y : x;
  else if constexpr (op == kAtMost) return x > y ? y : x;
  else return Extremum<op == kMax>(x, y);
}

// Computes n results; operands lie in order.
using Kernel = void (*)(void*, const void* const*, int64_t);

template <Op op, class T>
WEFT_WIDE void Unary(void* __restrict out, const void* const* xs, int64_t n) {
  T* __restrict z = static_cast<T*>(out);
  const T* __restrict x = static_cast<const T*>(xs[0]);
  for (int64_t i = 0; i < n; ++i) z[i] = Apply<op, T>(x[i]);
}

template <Op op, class T>
WEFT_WIDE void Binary(void* __restrict out, const void* const* xs, int64_t n) {
  T* __restrict z = static_cast<T*>(out);
  const T *x = static_cast<const T*>(xs[0]), *y = static_cast<const T*>(xs[1]);
  for (int64_t i = 0; i < n; ++i) z[i] = Apply<op, T>(x[i], y[i]);
}

template <class T>
WEFT_WIDE void Clamp(void* __restrict out, const void* const* xs, int64_t n) {
  T* __restrict z = static_cast<T*>(out);
  const T *low = static_cast<const T*>(xs[0]), *x = static_cast<const T*>(xs[1]);
  const T* high = static_cast<const T*>(xs[2]);
  for (int64_t i = 0; i < n; ++i) z[i] = Extremum<false>(Extremum<true>(x[i], low[i]), high[i]);
}

template <Op op, class T>
inline bool Holds(T x, T y) {
  if constexpr (op == kEq) return x == y;
  else if constexpr (op == kNe) return x != y;
  else if constexpr (op == kGt) return x > y;
  else if constexpr (op == kGe) return x >= y;
  else if constexpr (op == kLt) return x < y;
  else return x <= y;
}

template <Op op, class T>
WEFT_WIDE void Compare(void* __restrict out, const void* const* xs, int64_t n) {
  uint8_t* __restrict z = static_cast<uint8_t*>(out);
  const T *x = static_cast<const T*>(xs[0]), *y = static_cast<const T*>(xs[1]);
  for (int64_t i = 0; i < n; ++i) z[i] = Holds<op>(x[i], y[i]);
}

// A selection by a comparison with a number: where it holds the fourth operand, which may be a number
// too, else the third.
template <Op op, class T, bool number>
WEFT_WIDE void Choose(void* __restrict out, const void* const* xs, int64_t n) {
  T* __restrict z = static_cast<T*>(out);
  const T *x = static_cast<const T*>(xs[0]), y = *static_cast<const T*>(xs[1]);
  const T *u = static_cast<const T*>(xs[2]), *v = static_cast<const T*>(xs[3]), first = *v;
  for (int64_t i = 0; i < n; ++i) {
    const T a = u[i], b = number ? first : v[i];
    z[i] = Holds<op>(x[i], y) ? b : a;
  }
}

template <class T>
WEFT_WIDE void IsFinite(void* __restrict out, const void* const* xs, int64_t n) {
  const Bits<T> infinity = Cast<Bits<T>>(std::numeric_limits<T>::infinity());
  uint8_t* __restrict z = static_cast<uint8_t*>(out);
  const Bits<T>* x = static_cast<const Bits<T>*>(xs[0]);
  for (int64_t i = 0; i < n; ++i) z[i] = static_cast<Bits<T>>(x[i] << 1) < static_cast<Bits<T>>(infinity << 1);
}

// Bits of the width of T: where the first operand is true the third, else the second.
template <class T>
WEFT_WIDE void Select(void* __restrict out, const void* const* xs, int64_t n) {
  T* __restrict z = static_cast<T*>(out);
  const uint8_t* which = static_cast<const uint8_t*>(xs[0]);
  const T *x = static_cast<const T*>(xs[1]), *y = static_cast<const T*>(xs[2]);
  for (int64_t i = 0; i < n; ++i) {
    const T mask = -static_cast<T>(which[i]);
    z[i] = (x[i] & ~mask) | (y[i] & mask);
  }
}

template <class R, class T>
WEFT_WIDE void Convert(void* __restrict out, const void* const* xs, int64_t n) {
  R* __restrict z = static_cast<R*>(out);
  const T* x = static_cast<const T*>(xs[0]);
  for (int64_t i = 0; i < n; ++i) {
    if constexpr (std::is_same_v<R, bool>) z[i] = x[i] != T{0};
    else if constexpr (kIsFloat<T> && !kIsFloat<R>) z[i] = Saturated<R>(x[i]);
    else z[i] = static_cast<R>(x[i]);
  }
}

WEFT_WIDE void Not(void* __restrict out, const void* const* xs, int64_t n) {
  uint8_t* __restrict z = static_cast<uint8_t*>(out);
  const uint8_t* x = static_cast<const uint8_t*>(xs[0]);
  for (int64_t i = 0; i < n; ++i) z[i] = x[i] ^ 1;
}

// --- by dtype: the kernel for an operation, null where there is none ---------------------------

template <class T>
Kernel FindArithmetic(int64_t op) {
  using U = Wrapping<T>;
  switch (op) {
    case kAdd: return Binary<kAdd, U>;
    case kSub: return Binary<kSub, U>;
    case kMul: return Binary<kMul, U>;
    case kNeg: return Unary<kNeg, U>;
    case kAbs: return Unary<kAbs, T>;
    case kSign: return Unary<kSign, T>;
    case kMax: return Binary<kMax, T>;
    case kMin: return Binary<kMin, T>;
    case kEq: return Compare<kEq, U>;
    case kNe: return Compare<kNe, U>;
    case kGt: return Compare<kGt, T>;
    case kGe: return Compare<kGe, T>;
    case kLt: return Compare<kLt, T>;
    case kLe: return Compare<kLe, T>;
    case kSquare: return Unary<kSquare, U>;
    case kClamp: return Clamp<T>;
  }
  if constexpr (kIsFloat<T>) {
    switch (op) {
      case kDiv: return Binary<kDiv, T>;
      case kFloor: return Unary<kFloor, T>;
      case kCeil: return Unary<kCeil, T>;
      case kEven: return Unary<kEven, T>;
      case kFinite: return IsFinite<T>;
      case kAtLeast: return Binary<kAtLeast, T>;
      case kAtMost: return Binary<kAtMost, T>;
      case kInverse: return Unary<kInverse, T>;
    }
  } else {
    switch (op) {
      case kAnd: return Binary<kAnd, U>;
      case kOr: return Binary<kOr, U>;
      case kXor: return Binary<kXor, U>;
      case kNot: return Unary<kNot, U>;
    }
  }
  return nullptr;
}

template <class T>
Kernel FindConversion(ffi::DataType to) {
  switch (to) {
    case ffi::PRED: return Convert<bool, T>;
    case ffi::U8: return Convert<uint8_t, T>;
    case ffi::S8: return Convert<int8_t, T>;
    case ffi::S32: return Convert<int32_t, T>;
    case ffi::F32: return Convert<float, T>;
    case ffi::F64: return Convert<double, T>;
    default: return nullptr;
  }
}

template <class T>
Kernel Find(int64_t op, ffi::DataType to) {
  return op == kConvert ? FindConversion<T>(to) : FindArithmetic<T>(op);
}

template <class T, bool number>
Kernel FindChoice(int64_t op) {
  constexpr Kernel kernels[] = {Choose<kEq, T, number>, Choose<kNe, T, number>, Choose<kGt, T, number>,
                                Choose<kGe, T, number>, Choose<kLt, T, number>, Choose<kLe, T, number>};
  return op < 6 ? kernels[op] : nullptr;
}

template <class T>
Kernel FindChoice(int64_t op) {
  return op < kReplace ? FindChoice<T, false>(op - kChoose) : FindChoice<T, true>(op - kReplace);
}

Kernel FindKernel(int64_t op, ffi::DataType from, ffi::DataType to) {
  if (op == kSelect) {
    switch (ffi::ByteWidth(to)) {
      case 1: return Select<uint8_t>;
      case 2: return Select<uint16_t>;
      case 4: return Select<uint32_t>;
      case 8: return Select<uint64_t>;
      default: return nullptr;
    }
  }
  if (op >= kChoose) {
    return from == ffi::F32 ? FindChoice<float>(op) : from == ffi::F64 ? FindChoice<double>(op) : nullptr;
  }
  switch (from) {
    case ffi::PRED: return op == kNot ? Not : Find<uint8_t>(op, to);
    case ffi::U8: return Find<uint8_t>(op, to);
    case ffi::S8: return Find<int8_t>(op, to);
    case ffi::S32: return Find<int32_t>(op, to);
    case ffi::S64: return op == kConvert ? FindConversion<int64_t>(to) : nullptr;
    case ffi::F32: return Find<float>(op, to);
    case ffi::F64: return Find<double>(op, to);
    default: return nullptr;
  }
}

// --- the call ----------------------------------------------------------------------------------

// How many operands an operation has.
size_t CountOperands(int64_t op) {
  if (op >= kChoose) return 4;
  if (op == kSelect || op == kClamp) return 3;
  const bool one = (op >= kNeg && op <= kSign) || op == kFloor || op == kCeil || op == kNot;
  return one || (op >= kFinite && op <= kInverse) ? 1 : 2;
}

constexpr size_t kMost = 8;  // operands, and operations

struct Operand {
  const char* at;
  int64_t width;  // bytes of an element
  bool repeats;   // one element, of which `at` is a block
};

struct Step {
  Kernel kernel;
  const int64_t* reads;  // the numbers of values: operands, then what steps give
};

// Computes y by operations one after the other, which go along blocks that the nearest cache holds.
// `starts` are the places in the operands where their elements begin, `types` the results' dtypes.
ffi::Error Elementwise(ffi::ThreadPool pool, ffi::Span<const int64_t> ops,
                       ffi::Span<const int64_t> reads, ffi::Span<const int64_t> types,
                       ffi::Span<const int64_t> starts, ffi::RemainingArgs xs,
                       ffi::Result<ffi::AnyBuffer> y) {
  alignas(64) char blocks[kMost][kBlock * 8];
  Operand operands[kMost];
  Step steps[kMost];
  ffi::DataType dtypes[2 * kMost];
  const int64_t n = y->element_count(), width = ffi::ByteWidth(y->element_type());
  const size_t given = xs.size(), count = ops.size();
  int64_t moved = n * width;
  bool whole = count == 1;
  bool fits = given <= kMost && starts.size() == given && count > 0 && count <= kMost &&
              types.size() == count && types.back() == y->element_type();
  for (size_t i = 0; fits && i < given; ++i) {
    const auto x = *xs.get<ffi::AnyBuffer>(i);
    const int64_t size = x.element_count();
    Operand& operand = operands[i];
    dtypes[i] = x.element_type();
    operand = {static_cast<const char*>(x.untyped_data()),
               static_cast<int64_t>(ffi::ByteWidth(x.element_type())), size == 1};
    fits = operand.repeats || (starts[i] >= 0 && starts[i] + n <= size);
    if (operand.repeats) {
      for (int64_t k = 0; k < kBlock; ++k) {
        std::memcpy(blocks[i] + k * operand.width, operand.at, operand.width);
      }
      operand.at = blocks[i];
    } else {
      operand.at += starts[i] * operand.width;
      moved += n * operand.width;
    }
    whole = whole && !operand.repeats;
  }
  size_t read = 0;
  for (size_t s = 0; fits && s < count; ++s) {
    steps[s].reads = reads.begin() + read;
    read += CountOperands(ops[s]);
    fits = read <= reads.size();
    for (size_t r = read - CountOperands(ops[s]); fits && r < read; ++r) {
      fits = reads[r] >= 0 && reads[r] < static_cast<int64_t>(given + s);
    }
    if (!fits) break;
    dtypes[given + s] = static_cast<ffi::DataType>(types[s]);
    steps[s].kernel = FindKernel(ops[s], dtypes[reads[read - 1]], dtypes[given + s]);
    fits = steps[s].kernel && ffi::ByteWidth(dtypes[given + s]) <= 8;
  }
  if (!fits || read != reads.size()) {
    return ffi::Error::InvalidArgument("weft.elementwise: no such operations of such operands");
  }
  const int64_t pieces = moved <= kAlone ? 1 : (moved + kBytes - 1) / kBytes;
  const int64_t size = ((n + pieces - 1) / pieces + kBlock - 1) / kBlock * kBlock;
  const int64_t length = whole ? size : kBlock;
  ForEach(pool, (n + size - 1) / size, [&](int64_t piece) {
    alignas(64) char room[kMost][kBlock * 8];
    const int64_t end = std::min(n, (piece + 1) * size);
    for (int64_t first = piece * size; first < end; first += length) {
      const void *at[2 * kMost], *from[4];
      for (size_t i = 0; i < given; ++i) {
        const Operand& x = operands[i];
        at[i] = x.repeats ? x.at : x.at + first * x.width;
      }
      for (size_t s = 0; s < count; ++s) {
        void* const to = s + 1 < count ? room[s] : static_cast<char*>(y->untyped_data()) + first * width;
        for (size_t i = 0; i < CountOperands(ops[s]); ++i) from[i] = at[steps[s].reads[i]];
        steps[s].kernel(to, from, std::min(length, end - first));
        at[given + s] = to;
      }
    }
  });
  return ffi::Error::Success();
}

}  // namespace
}  // namespace weft

XLA_FFI_DEFINE_HANDLER_SYMBOL(weft_elementwise, weft::Elementwise,
                              xla::ffi::Ffi::Bind()
                                  .Ctx<xla::ffi::ThreadPool>()
                                  .Attr<xla::ffi::Span<const int64_t>>("ops")
                                  .Attr<xla::ffi::Span<const int64_t>>("reads")
                                  .Attr<xla::ffi::Span<const int64_t>>("types")
                                  .Attr<xla::ffi::Span<const int64_t>>("starts")
                                  .RemainingArgs()
                                  .Ret<xla::ffi::AnyBuffer>());
