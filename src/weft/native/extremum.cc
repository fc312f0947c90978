// The largest or smallest element, or its index, along the middle axis of [rows, n, lanes].
//
// A NaN is the extremum if there is one; of equal elements the first counts. For adjacent elements
// the extremum is found by value first. Then only the block that contains it is searched for the
// index.

// g++ takes twice as long with loop-unroll-and-jam, for little gain. The pragma comes first,
// because functions that are compiled with different options are not inlined into each other.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-loop-unroll-and-jam")
#endif

#include <limits>
#include <type_traits>

#include "common.h"

namespace weft {
namespace {

constexpr int64_t kWidth = 32;       // elements compared at once
constexpr int64_t kBlock = 4096;     // elements of a block
constexpr int64_t kFew = 1024;  // at most this many elements are searched for the index one by one
constexpr int64_t kLong = 256;       // rows of at least this length are searched with vectors
constexpr int64_t kLanes = 512;      // lanes that are processed together
constexpr int64_t kRows = 4;

// Floats. The minimum is the maximum of the negated elements. If NaN is skipped, NaN is replaced by
// the infinity that never wins.
template <class T, bool skips>
struct Floats {
  using Element = T;
  using Value = T;
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  static constexpr bool kHasNan = !skips, kManyAlike = skips;
  Bits flip;
  explicit Floats(bool largest) : flip(largest ? 0 : Bits{1} << (sizeof(T) * 8 - 1)) {}
  Value Load(Element x) const { return Store(x); }
  Value Start(Element x) const {
    return !skips || x == x ? Store(x) : -std::numeric_limits<T>::infinity();
  }
  Element Store(Value x) const {  // not by a product: XLA's threads flush subnormals to zero
    Bits bits;
    std::memcpy(&bits, &x, sizeof(T));
    bits ^= flip;
    std::memcpy(&x, &bits, sizeof(T));
    return x;
  }
  static bool Better(Value x, Value y) { return x > y; }
  static bool IsLast(Value) { return false; }
};

// Integers, unsigned integers and bool, mapped so that the largest value is the extremum. `last` is
// the largest value of the type.
template <class T>
struct Integers {
  using Element = T;
  using Value = T;
  static constexpr bool kHasNan = false, kManyAlike = false;
  T mask, last;
  Integers(bool largest, bool has_sign, bool is_bool) {
    const T lowest = static_cast<T>(std::make_unsigned_t<T>{1} << (sizeof(T) * 8 - 1));
    mask = (largest ? 0 : ~T{0}) ^ (has_sign ? 0 : lowest);
    last = is_bool ? Load(largest) : static_cast<T>(~lowest);
  }
  Value Load(Element x) const { return x ^ mask; }
  Value Start(Element x) const { return Load(x); }
  Element Store(Value x) const { return x ^ mask; }
  static bool Better(Value x, Value y) { return x > y; }
  bool IsLast(Value x) const { return x == last; }
};

// 16-bit floats, mapped to integers in the same order, with NaN largest. `same` is 1 if -0 and 0
// count as equal, else 0. NaN is mapped to `nan`.
struct Halves {
  using Element = int16_t;
  using Value = int16_t;
  static constexpr bool kHasNan = false, kManyAlike = true;
  int16_t mask, infinity, same, nan;
  Value Load(Element x) const {
    const int16_t rest = INT16_MAX, zero = same & -(x == INT16_MIN);
    const int16_t in_order = ((x ^ ((x >> 15) & rest)) + zero) ^ mask;
    return (x & rest) > infinity ? nan : in_order;
  }
  Value Start(Element x) const { return Load(x); }
  Element Store(Value x) const {
    const int16_t in_order = x ^ mask;
    return in_order ^ ((in_order >> 15) & INT16_MAX);
  }
  static bool Better(Value x, Value y) { return x > y; }
  static bool IsLast(Value x) { return x == INT16_MAX; }
};

// A signed integer with the size of T, so that masks and elements fill vectors alike.
template <class T>
using Mask = std::conditional_t<
    sizeof(T) == 8, int64_t,
    std::conditional_t<sizeof(T) == 4, int32_t, std::conditional_t<sizeof(T) == 2, int16_t, int8_t>>>;

// Returns the best of `best` and n elements if none of them is NaN; otherwise sets `nan`.
template <class Kind, class T = typename Kind::Value>
WEFT_WIDE T ScanBlock(Kind kind, const typename Kind::Element* x, int64_t n, T best, bool& nan) {
  T tops[kWidth];
  Mask<T> differs[kWidth];
  for (T& top : tops) top = best;
  if constexpr (Kind::kHasNan) std::fill(differs, differs + kWidth, 0);
  int64_t i = 0;
  for (; i + kWidth <= n; i += kWidth) {
    for (int64_t j = 0; j < kWidth; ++j) {
      const T y = kind.Load(x[i + j]);
      tops[j] = kind.Better(y, tops[j]) ? y : tops[j];
      if constexpr (Kind::kHasNan) differs[j] |= y != y ? ~Mask<T>{0} : Mask<T>{0};
    }
  }
  for (; i < n; ++i) {
    const T y = kind.Load(x[i]);
    best = kind.Better(y, best) ? y : best;
    if constexpr (Kind::kHasNan) nan |= y != y;
  }
  for (int64_t width = kWidth / 2; width >= 8; width /= 2) {
    for (int64_t j = 0; j < width; ++j) {
      tops[j] = kind.Better(tops[j + width], tops[j]) ? tops[j + width] : tops[j];
    }
  }
  for (int64_t j = 0; j < 8; ++j) best = kind.Better(tops[j], best) ? tops[j] : best;
  if constexpr (Kind::kHasNan) {
    for (int64_t j = 1; j < kWidth; ++j) differs[0] |= differs[j];
    nan |= differs[0] != 0;
  }
  return best;
}

// Finds the first element equal to y, from `from` on. Returns the start of the kWidth elements, or
// of the rest, that contain it.
template <class Element>
WEFT_WIDE int64_t FindEqual(const Element* x, int64_t from, int64_t n, Element y) {
  for (; from + kWidth <= n; from += kWidth) {
    Mask<Element> hits = 0;
    for (int64_t j = 0; j < kWidth; ++j) hits |= x[from + j] == y;
    if (hits) break;
  }
  return from;
}

// Returns the index of the extremum of n adjacent elements, or the extremum if R is Element.
template <class R, class Kind>
R FindInRow(Kind kind, const typename Kind::Element* x, int64_t n) {
  using T = typename Kind::Value;
  constexpr bool kIsPlace = !std::is_same_v<R, typename Kind::Element>;
  constexpr int64_t block = Kind::kManyAlike ? kFew : kBlock;
  T best = kind.Start(x[0]);
  int64_t found = 0;
  bool nan = false;
  for (int64_t start = 0; start < n && !nan && !kind.IsLast(best); start += block) {
    const T top = ScanBlock(kind, x + start, std::min(n - start, block), best, nan);
    if (nan || kind.Better(top, best)) best = top, found = start;
  }
  if (!kIsPlace && !nan) return static_cast<R>(kind.Store(best));
  const auto y = kind.Store(best);
  if constexpr (!Kind::kManyAlike) {
    if (!nan && n >= kLong) found = FindEqual(x, found, n, y);
  }
  if constexpr (Kind::kHasNan) {
    while (nan ? x[found] == x[found] : x[found] != y) ++found;
  } else {
    while (kind.Start(x[found]) != best) ++found;
  }
  return kIsPlace ? static_cast<R>(found) : static_cast<R>(x[found]);
}

// The same of lanes from `first` to `last`, whose elements are `lanes` apart.
template <class R, class Kind>
__attribute__((always_inline)) inline void WalkLanes(Kind kind, const typename Kind::Element* x, R* out,
                                                     int64_t n, int64_t lanes, int64_t first,
                                                     int64_t last) {
  using T = typename Kind::Value;
  constexpr bool kIsPlace = !std::is_same_v<R, typename Kind::Element>;
  constexpr bool kTogether = !kIsPlace || !Kind::kHasNan;
  T best[kLanes];
  R found[kLanes];
  for (; first < last; first += kLanes) {
    const int64_t width = std::min(kLanes, last - first);
    for (int64_t j = 0; j < width; ++j) best[j] = kind.Start(x[first + j]), found[j] = R{0};
    int64_t i = 1;
    for (; kTogether && i + kRows <= n; i += kRows) {  // rows together, so that `best` is kept less often
      const auto* from = x + i * lanes + first;
      for (int64_t j = 0; j < width; ++j) {
        T b = best[j];
        R f = found[j];
        for (int64_t k = 0; k < kRows; ++k) {
          const T y = kind.Load(from[k * lanes + j]);
          if constexpr (kIsPlace) {
            const bool takes = !(b >= y) & (b == b);  // y is larger or NaN, and nothing beats NaN
            b = takes ? y : b;
            f = takes ? static_cast<R>(i + k) : f;
          } else {
            const T top = kind.Better(b, y) ? b : y;
            const T skipping = kind.Better(y, b) ? y : b;
            b = !Kind::kHasNan ? skipping : b == b ? top : b;  // `top` is y where that is NaN
          }
        }
        best[j] = b;
        if constexpr (kIsPlace) found[j] = f;
      }
    }
    for (; i < n; ++i) {
      const auto* from = x + i * lanes + first;
      for (int64_t j = 0; j < width; ++j) {
        const T y = kind.Load(from[j]), b = best[j];
        const bool takes = Kind::kHasNan ? !(b >= y) & (b == b) : kind.Better(y, b);
        best[j] = takes ? y : b;
        if constexpr (kIsPlace) found[j] = takes ? static_cast<R>(i) : found[j];
      }
    }
    for (int64_t j = 0; j < width; ++j) {
      out[first + j] = kIsPlace ? found[j] : static_cast<R>(kind.Store(best[j]));
    }
  }
}

template <class R, class Kind>
WEFT_WIDE void FindInLanes(Kind kind, const typename Kind::Element* x, R* out, int64_t n,
                           int64_t lanes, int64_t first, int64_t last) {
  WalkLanes(kind, x, out, n, lanes, first, last);
}

// As WalkLanes, but not inlined: for kinds with NaN the compiler vectorizes these loops better so.
template <class R, class Kind>
WEFT_WIDE void FindPlacesInLanes(Kind kind, const typename Kind::Element* x, R* out, int64_t n,
                                   int64_t lanes, int64_t first, int64_t last) {
  WalkLanes(kind, x, out, n, lanes, first, last);
}

// Like FindInRow for a long row, which several threads search in pieces. Pieces after one that
// contains the largest value of the type are skipped.
template <class R, class Kind>
R FindInPieces(ffi::ThreadPool& pool, Kind kind, const typename Kind::Element* x, int64_t n) {
  constexpr bool kIsPlace = !std::is_same_v<R, typename Kind::Element>;
  constexpr int64_t kPieces = 64;
  const auto value = [&](R result) {
    if constexpr (kIsPlace) return kind.Start(x[result]);
    return kind.Start(result);
  };
  const R start = FindInRow<R>(kind, x, kBlock);  // which wakes no thread if it is enough
  if (kind.IsLast(value(start))) return start;
  R results[kPieces];
  const int64_t pieces = std::min(n / kPiece, kPieces);
  std::atomic<int64_t> last{pieces};
  ForEach(pool, pieces, [&](int64_t p) {
    const int64_t first = n * p / pieces;
    results[p] = start;
    if (p > last.load(std::memory_order_relaxed)) return;
    const R found = FindInRow<R>(kind, x + first, n * (p + 1) / pieces - first);
    results[p] = kIsPlace ? static_cast<R>(first + found) : found;
    if (kind.IsLast(value(results[p]))) last.store(p, std::memory_order_relaxed);
  });
  R found = results[0];
  for (int64_t p = 1; p < pieces; ++p) {
    const auto best = value(found), y = value(results[p]);
    if (best != best) break;
    if (kind.Better(y, best) || y != y) found = results[p];
  }
  return found;
}

// Replaces the result by NaN if all n elements are NaN and were skipped: then it is an infinity.
template <class R, class Element>
void KeepIfAll(const Element* x, R* out, int64_t n, int64_t lanes) {
  if constexpr (std::is_floating_point_v<Element> && std::is_same_v<R, Element>) {
    if (std::abs(*out) != std::numeric_limits<R>::infinity()) return;
    for (int64_t i = 0; i < n; ++i) {
      if (x[i * lanes] == x[i * lanes]) return;
    }
    *out = std::numeric_limits<R>::quiet_NaN();
  }
}

template <class R, class Kind>
ffi::Error Find(ffi::ThreadPool& pool, Kind kind, ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> out,
                bool skips = false) {
  const auto dims = x.dimensions();
  const int64_t rows = dims[0], n = dims[1], lanes = dims[2];
  const auto* const from = static_cast<const typename Kind::Element*>(x.untyped_data());
  R* const to = static_cast<R*>(out->untyped_data());
  if (rows == 1 && lanes == 1 && n >= 2 * kPiece && n < int64_t{1} << 32) {
    *to = FindInPieces<R>(pool, kind, from, n);
    if (skips) KeepIfAll(from, to, n, 1);
    return ffi::Error::Success();
  }
  if (n == 0) return ffi::Error::Success();
  ForEachLane(pool, rows, n, lanes, kLanes, [&](int64_t row, int64_t first, int64_t last) {
    const auto* const start = from + row * n * lanes;
    R* const out = to + row * lanes;
    if (std::is_same_v<Kind, Integers<R>> || lanes == 1) {
      *out = FindInRow<R>(kind, start, n);
    } else if constexpr (Kind::kHasNan && !std::is_same_v<R, typename Kind::Element>) {
      FindPlacesInLanes(kind, start, out, n, lanes, first, last);
    } else if constexpr (!std::is_same_v<Kind, Integers<R>>) {
      FindInLanes(kind, start, out, n, lanes, first, last);
    }
    for (int64_t j = first; skips && j < last; ++j) KeepIfAll(start + j, out + j, n, lanes);
  });
  return ffi::Error::Success();
}

template <class T>
ffi::Error FindFloats(ffi::ThreadPool& pool, bool largest, bool skips, ffi::AnyBuffer x,
                      ffi::Result<ffi::AnyBuffer> out) {
  if (out->element_type() != x.element_type()) {
    return Find<uint32_t>(pool, Floats<T, false>(largest), x, out);
  }
  return skips ? Find<T>(pool, Floats<T, true>(largest), x, out, true)
               : Find<T>(pool, Floats<T, false>(largest), x, out);
}

bool IsFloat(ffi::DataType dtype) {
  return dtype == ffi::F16 || dtype == ffi::BF16 || dtype == ffi::F32 || dtype == ffi::F64;
}

// Returns values if the result has the operand's dtype, otherwise indices, which are uint32. NaN
// can be skipped for values. For integers, values are supported for rows only (lanes == 1). For
// uint32 operands only indices are supported.
ffi::Error Extremum(ffi::ThreadPool pool, bool largest, bool skips, ffi::AnyBuffer x,
                    ffi::Result<ffi::AnyBuffer> out) {
  Size rows, n, lanes;
  const bool values = AreAlike(x, *out), is_float = IsFloat(x.element_type());
  if (!Fits(x, rows, n, lanes) || !Fits(*out, rows, lanes) || n < 1 || n > UINT32_MAX ||
      !(values ? is_float || lanes == 1 || x.element_type() == ffi::U32
               : out->element_type() == ffi::U32)) {
    return ffi::Error::InvalidArgument(
        "the operand must be [rows, n, lanes] with n from 1 to 2**32 - 1, and the result [rows, lanes] of "
        "its dtype, of integers in one lane, or of u32");
  }
  const auto halves = [&](int16_t infinity) {
    const int16_t mask = largest ? 0 : -1, nan = skips ? INT16_MIN : INT16_MAX;
    const Halves kind{mask, infinity, !values, nan};
    return values ? Find<int16_t>(pool, kind, x, out) : Find<uint32_t>(pool, kind, x, out);
  };
  const auto integers = [&](auto zero, bool has_sign) {
    using T = decltype(zero);
    const Integers<T> kind(largest, has_sign, x.element_type() == ffi::PRED);
    const bool in_rows = values && x.element_type() != ffi::U32 && x.dimensions().back() == 1;
    return in_rows ? Find<T>(pool, kind, x, out) : Find<uint32_t>(pool, kind, x, out);
  };
  switch (x.element_type()) {
    case ffi::F16: return halves(0x7c00);
    case ffi::BF16: return halves(0x7f80);
    case ffi::F32: return FindFloats<float>(pool, largest, skips, x, out);
    case ffi::F64: return FindFloats<double>(pool, largest, skips, x, out);
    case ffi::PRED:
    case ffi::U8: return integers(int8_t{0}, false);
    case ffi::U16: return integers(int16_t{0}, false);
    case ffi::U32: return integers(int32_t{0}, false);
    case ffi::U64: return integers(int64_t{0}, false);
    case ffi::S8: return integers(int8_t{0}, true);
    case ffi::S16: return integers(int16_t{0}, true);
    case ffi::S32: return integers(int32_t{0}, true);
    case ffi::S64: return integers(int64_t{0}, true);
    default: return ffi::Error::InvalidArgument("the operand must be bool, integers or floats");
  }
}

}  // namespace
}  // namespace weft

XLA_FFI_DEFINE_HANDLER_SYMBOL(weft_extremum, weft::Extremum,
                              xla::ffi::Ffi::Bind()
                                  .Ctx<xla::ffi::ThreadPool>()
                                  .Attr<bool>("largest")
                                  .Attr<bool>("skips_nan")
                                  .Arg<xla::ffi::AnyBuffer>()
                                  .Ret<xla::ffi::AnyBuffer>());
