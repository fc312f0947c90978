// Reductions of a comparison along the middle axis of [rows, n, lanes]: does it hold for any
// element, for all elements, or for how many?
//
// Reading stops once the result is decided. Threads add their parts of the result in any order; the
// order does not change the result.

#include <initializer_list>
#include <string_view>
#include <type_traits>
#include <utility>

#include "common.h"

namespace weft {
namespace {

constexpr int64_t kWidth = 64;     // elements compared at once
constexpr int64_t kBlock = 8192;   // elements between two checks whether the result is decided
constexpr int64_t kFirst = 1024;   // elements before the first check
constexpr int64_t kLanes = 512;    // lanes that one call of WalkLanes processes
constexpr int64_t kRows = 4;
constexpr int64_t kCounted = 255;  // the largest count that 8 bits hold

enum What { kAny, kAll, kCount };

template <class T>
struct Equal {
  static bool Holds(T x, T y) { return x == y; }
};

template <class T>
struct Less {
  static bool Holds(T x, T y) { return x < y; }
};

template <class T>
struct LessOrEqual {
  static bool Holds(T x, T y) { return x <= y; }
};

// An operand. If it is a scalar, `step` is 0 and `data` holds the scalar kLanes times.
template <class T>
struct Side {
  const T* data;
  int64_t step;
  const T* At(int64_t i) const { return data + i * step; }
};

// The unsigned integer type with the size of T, so that counters and elements fill vectors alike.
template <class T>
using Counter = std::conditional_t<
    sizeof(T) == 8, uint64_t,
    std::conditional_t<sizeof(T) == 4, uint32_t,
                       std::conditional_t<sizeof(T) == 2, uint16_t, uint8_t>>>;

// Returns for how many of the n <= kBlock elements from `start` on the comparison holds.
template <class T, template <class> class Op>
WEFT_WIDE int64_t CountBlock(Side<T> left, Side<T> right, int64_t start, int64_t n) {
  static_assert(kBlock <= kWidth * kCounted);
  Counter<T> hits[kWidth];
  for (Counter<T>& hit : hits) hit = 0;
  int64_t i = 0;
  std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t> count = 0;
  for (; i + kWidth <= n; i += kWidth) {
    const T *x = left.At(start + i), *y = right.At(start + i);
    for (int64_t j = 0; j < kWidth; ++j) hits[j] += Op<T>::Holds(x[j], y[j]);
  }
  const T *x = left.At(start + i), *y = right.At(start + i);
  for (int64_t j = 0; i + j < n; ++j) count += Op<T>::Holds(x[j], y[j]);
  for (int64_t j = 0; j < kWidth; ++j) count += hits[j];
  return count;
}

// The same for `width` lanes of at most kCounted rows, which are `lanes` apart; added to `counts`.
template <class T, template <class> class Op>
WEFT_WIDE void CountLanes(Side<T> left, Side<T> right, int64_t start, int64_t n, int64_t lanes,
                          int64_t width, int32_t* counts) {
  Counter<T> hits[kLanes];
  for (int64_t j = 0; j < width; ++j) hits[j] = 0;
  int64_t i = 0;
  const int64_t left_step = lanes * left.step, right_step = lanes * right.step;
  for (; i + kRows <= n; i += kRows) {  // rows together, so that `hits` is kept less often
    const T *x = left.At(start + i * lanes), *y = right.At(start + i * lanes);
    const auto holds = [&](int64_t k, int64_t j) -> Counter<T> {
      return Op<T>::Holds(x[k * left_step + j], y[k * right_step + j]);
    };
    for (int64_t j = 0; j < width; ++j) {
      hits[j] += (holds(0, j) + holds(1, j)) + (holds(2, j) + holds(3, j));
    }
  }
  for (; i < n; ++i) {
    const T *x = left.At(start + i * lanes), *y = right.At(start + i * lanes);
    for (int64_t j = 0; j < width; ++j) hits[j] += Op<T>::Holds(x[j], y[j]);
  }
  for (int64_t j = 0; j < width; ++j) counts[j] += hits[j];
}

// The result buffers. Several threads add to them. If `negates`, the opposite of the given
// comparison is reduced.
struct Results {
  What what;
  bool negates;
  uint8_t* flags;
  int32_t* counts;
  bool IsKnown(int64_t at) const {
    return what != kCount && __atomic_load_n(flags + at, __ATOMIC_RELAXED) != (what == kAll);
  }
  void Add(int64_t at, int64_t hits, int64_t n) const {
    if (negates) hits = n - hits;
    if (what == kCount) {
      __atomic_fetch_add(counts + at, static_cast<int32_t>(hits), __ATOMIC_RELAXED);
    } else if (what == kAny ? hits > 0 : hits < n) {
      __atomic_store_n(flags + at, what == kAny, __ATOMIC_RELAXED);
    }
  }
};

template <class T, template <class> class Op>
void WalkRow(Side<T> left, Side<T> right, const Results& out, int64_t row, int64_t start, int64_t n) {
  int64_t block = out.what == kCount ? kBlock : kFirst;
  for (int64_t i = 0; i < n && !out.IsKnown(row); i += block) {
    if (i > 0) block = std::min(2 * block, kBlock);
    const int64_t count = std::min(block, n - i);
    out.Add(row, CountBlock<T, Op>(left, right, start + i, count), count);
  }
}

template <class T, template <class> class Op>
void WalkLanes(Side<T> left, Side<T> right, const Results& out, int64_t at, int64_t start, int64_t n,
               int64_t lanes, int64_t width) {
  int64_t known = 0, seen = 0;
  while (known < width && out.IsKnown(at + known)) ++known;
  if (known == width) return;
  int32_t counts[kLanes] = {};
  int32_t is_open = 1, is_news = out.what == kCount;  // not bool: GCC would not vectorize the loop
  while (seen < n && is_open) {
    const int64_t count = std::min(kCounted, n - seen);
    CountLanes<T, Op>(left, right, start + seen * lanes, count, lanes, width, counts);
    seen += count;
    is_open = out.what == kCount;
    const int32_t undecided = (out.what == kAll) != out.negates ? seen : 0;
    for (int64_t j = 0; j < width; ++j) {
      const int32_t same = counts[j] == undecided;
      is_open |= same;
      is_news |= same ^ 1;
    }
  }
  if (!is_news) return;
  for (int64_t j = 0; j < width; ++j) out.Add(at + j, counts[j], seen);
}

template <class T, template <class> class Op>
ffi::Error Walk(ffi::ThreadPool& pool, ffi::AnyBuffer x, ffi::AnyBuffer y, bool swaps,
                const Results& out) {
  T splats[kLanes];
  const auto side_of = [&](ffi::AnyBuffer operand) {
    const T* const data = static_cast<const T*>(operand.untyped_data());
    if (operand.dimensions().size()) return Side<T>{data, 1};
    std::fill(splats, splats + kLanes, *data);
    return Side<T>{splats, 0};
  };
  Side<T> left = side_of(x), right = side_of(y);
  if (swaps) std::swap(left, right);
  const auto dims = (x.dimensions().size() ? x : y).dimensions();
  const int64_t rows = dims[0], n = dims[1], lanes = dims[2], size = n * lanes;
  if (rows * lanes == 1 && out.what != kCount) {  // which wakes no thread if it is enough
    WalkRow<T, Op>(left, right, out, 0, 0, std::min(n, kBlock));
    if (out.IsKnown(0)) return ffi::Error::Success();
  }
  const int64_t width = std::min(lanes, kLanes), blocks = (lanes + kLanes - 1) / kLanes;
  const int64_t together = std::max<int64_t>(1, kPiece / std::max<int64_t>(1, size));
  const int64_t step = std::max<int64_t>(1, (lanes > 1 ? 2 : 1) * kPiece / std::max<int64_t>(1, width));
  const int64_t parts = (n + step - 1) / step;
  ForEach(pool, (rows + together - 1) / together * blocks * parts, [&](int64_t piece) {
    const int64_t part = piece % parts, first = piece / parts % blocks * kLanes;
    const int64_t begin = piece / parts / blocks * together, count = std::min(step, n - part * step);
    for (int64_t row = begin; row < std::min(rows, begin + together); ++row) {
      const int64_t start = row * size + part * step * lanes + first;
      if (lanes == 1) {
        WalkRow<T, Op>(left, right, out, row, start, count);
      } else {
        WalkLanes<T, Op>(left, right, out, row * lanes + first, start, count, lanes,
                         std::min(kLanes, lanes - first));
      }
    }
  });
  return ffi::Error::Success();
}

enum Direction { kEq, kNe, kLt, kGe, kGt, kLe };

// `Whole` is the unsigned type of T: equality of integers does not depend on their sign.
template <class Whole, class T>
ffi::Error Choose(ffi::ThreadPool& pool, ffi::AnyBuffer x, ffi::AnyBuffer y, int64_t direction,
                  Results out) {
  switch (direction) {
    case kNe: out.negates = true;
    case kEq: return Walk<Whole, Equal>(pool, x, y, false, out);
    case kLt: return Walk<T, Less>(pool, x, y, false, out);
    case kGt: return Walk<T, Less>(pool, x, y, true, out);
    default: break;
  }
  if constexpr (std::is_floating_point_v<T>) {
    return Walk<T, LessOrEqual>(pool, x, y, direction == kGe, out);
  }
  out.negates = true;
  return Walk<T, Less>(pool, x, y, direction == kLe, out);
}

// Returns the index of a name in a list, or the size of the list if the name is missing.
int64_t FindName(std::string_view name, std::initializer_list<std::string_view> all) {
  return std::find(all.begin(), all.end(), name) - all.begin();
}

// One of the operands may be a scalar.
ffi::Error Compare(ffi::ThreadPool pool, std::string_view direction_name, std::string_view answer,
                   ffi::AnyBuffer x, ffi::AnyBuffer y, ffi::Result<ffi::AnyBuffer> out) {
  const int64_t direction = FindName(direction_name, {"EQ", "NE", "LT", "GE", "GT", "LE"});
  const int64_t what = FindName(answer, {"any", "all", "count"});
  Size rows, n, lanes;
  const bool fits = Fits(x) ? Fits(y, rows, n, lanes)
                            : Fits(x, rows, n, lanes) && (Fits(y) || Fits(y, rows, n, lanes));
  if (!fits || !Fits(*out, rows, lanes) || !AreAlike(x, y) ||
      out->element_type() != (what == kCount ? ffi::S32 : ffi::PRED)) {
    return ffi::Error::InvalidArgument(
        "operands must be [rows, n, lanes], or one of them a number, of one dtype, and the result "
        "[rows, lanes] of bool, or of i32 for a count");
  }
  if (direction > kLe || what > kCount) {
    return ffi::Error::InvalidArgument(
        "direction must be EQ, NE, LT, GE, GT or LE, and answer any, all or count");
  }
  uint8_t* const to = static_cast<uint8_t*>(out->untyped_data());
  std::fill_n(to, out->size_bytes(), what == kAll);
  const Results results{static_cast<What>(what), false, to,
                        static_cast<int32_t*>(out->untyped_data())};
  const auto choose = [&](auto whole, auto zero) {
    return Choose<decltype(whole), decltype(zero)>(pool, x, y, direction, results);
  };
  switch (x.element_type()) {
    case ffi::F32: return choose(float{0}, float{0});
    case ffi::F64: return choose(double{0}, double{0});
    case ffi::S8: return choose(int8_t{0}, int8_t{0});
    case ffi::S16: return choose(int16_t{0}, int16_t{0});
    case ffi::S32: return choose(int32_t{0}, int32_t{0});
    case ffi::S64: return choose(int64_t{0}, int64_t{0});
    case ffi::PRED:
    case ffi::U8: return choose(int8_t{0}, uint8_t{0});
    case ffi::U16: return choose(int16_t{0}, uint16_t{0});
    case ffi::U32: return choose(int32_t{0}, uint32_t{0});
    case ffi::U64: return choose(int64_t{0}, uint64_t{0});
    default: return ffi::Error::InvalidArgument("operands must be bool, integers, f32 or f64");
  }
}

}  // namespace
}  // namespace weft

XLA_FFI_DEFINE_HANDLER_SYMBOL(weft_compare, weft::Compare,
                              xla::ffi::Ffi::Bind()
                                  .Ctx<xla::ffi::ThreadPool>()
                                  .Attr<std::string_view>("direction")
                                  .Attr<std::string_view>("answer")
                                  .Arg<xla::ffi::AnyBuffer>()
                                  .Arg<xla::ffi::AnyBuffer>()
                                  .Ret<xla::ffi::AnyBuffer>());
