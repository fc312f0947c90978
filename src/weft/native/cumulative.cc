// Running sums, products, largest and smallest, along the middle axis of [rows, n, lanes].
//
// Floats of 32 bits are added up and multiplied in 64. NaN stays once it has come.

#include <string_view>
#include <type_traits>

#include "common.h"

namespace weft {
namespace {

constexpr int64_t kLanes = 64;  // those worked on together
constexpr int64_t kSegments = 8;  // of a row of at least kLong elements, walked together,
constexpr int64_t kGroups = 8;    // and so many times as many where a row is very long
constexpr int64_t kLong = 256;

template <class T>
struct Wider {
  using Type = T;
};
template <>
struct Wider<float> {
  using Type = double;
};

struct Add {
  template <class T>
  using Of = typename Wider<T>::Type;
  template <class A>
  static A Apply(A x, A y) { return x + y; }
};

struct Multiply {
  template <class T>
  using Of = typename Wider<T>::Type;
  template <class A>
  static A Apply(A x, A y) { return x * y; }
};

struct Largest {
  template <class T>
  using Of = T;
  template <class A>
  static A Apply(A x, A y) { return x != x || x >= y ? x : y; }
};

struct Smallest {
  template <class T>
  using Of = T;
  template <class A>
  static A Apply(A x, A y) { return x != x || x <= y ? x : y; }
};

// Sums and products of signed integers wrap as those of unsigned ones do.
template <class Op>
constexpr bool kWraps = !std::is_same_v<typename Op::template Of<float>, float>;

// Running extrema of n elements side by side, forwards or (step is -1) backwards. Segments are walked
// together, as each step waits for the one before it, and groups of them by threads; then what comes
// before a segment replaces the elements in it that are no better, which are the first ones.
template <class Op, class T>
void RunSegments(ffi::ThreadPool& pool, const T* x, T* y, int64_t n, int64_t step) {
  const int64_t groups = std::clamp<int64_t>(n / (4 * kPiece), 1, kGroups);
  const int64_t segments = groups * kSegments, size = n / segments;
  T totals[kGroups * kSegments];
  ForEach(pool, groups, [&](int64_t group) {
    const int64_t start = group * kSegments * size;
    T best[kSegments];
    for (int64_t s = 0; s < kSegments; ++s) {
      const int64_t at = (start + s * size) * step;
      best[s] = y[at] = x[at];
    }
    for (int64_t i = 1; i < size; ++i) {
      for (int64_t s = 0; s < kSegments; ++s) {
        const int64_t at = (start + s * size + i) * step;
        y[at] = best[s] = Op::Apply(best[s], x[at]);
      }
    }
    std::copy_n(best, kSegments, totals + group * kSegments);
  });
  T total = totals[0];
  for (int64_t s = 1; s < segments; ++s) {
    const int64_t begin = s * size, end = begin + size;
    int64_t low = begin, high = end;
    while (low < high) {
      const int64_t middle = (low + high) / 2;
      const bool better = total == total && Op::Apply(total, y[middle * step]) != total;
      (better ? high : low) = better ? middle : middle + 1;
    }
    T* const from = step > 0 ? y + begin : y - low + 1;
    std::fill(from, from + (low - begin), total);
    if (low < end) total = totals[s];
  }
  for (int64_t i = size * segments; i < n; ++i) {
    y[i * step] = total = Op::Apply(total, x[i * step]);
  }
}

// One element of a row after the other, in lanes from `first` to `last`.
template <class Op, class T>
void Run(ffi::ThreadPool& pool, const T* x, T* y, int64_t n, int64_t lanes, int64_t first,
         int64_t last, bool reverse) {
  using A = typename Op::template Of<T>;
  const int64_t start = reverse ? n - 1 : 0, step = reverse ? -lanes : lanes;
  if (last - first == 1) {
    x += start * lanes + first, y += start * lanes + first;
    if constexpr (!kWraps<Op>) {
      if (n >= kLong && lanes == 1) return RunSegments<Op>(pool, x, y, n, step);
    }
    A total = *x;
    *y = *x;
    for (int64_t i = 1; i < n; ++i) {
      x += step, y += step;
      total = Op::Apply(total, static_cast<A>(*x));
      *y = static_cast<T>(total);
    }
    return;
  }
  A totals[kLanes];
  for (; first < last; first += kLanes) {
    const int64_t width = std::min(kLanes, last - first);
    const T* from = x + start * lanes + first;
    T* to = y + start * lanes + first;
    for (int64_t j = 0; j < width; ++j) totals[j] = from[j], to[j] = from[j];
    for (int64_t i = 1; i < n; ++i) {
      from += step, to += step;
      for (int64_t j = 0; j < width; ++j) {
        totals[j] = Op::Apply(totals[j], static_cast<A>(from[j]));
        to[j] = static_cast<T>(totals[j]);
      }
    }
  }
}

template <class Op, class T>
ffi::Error RunAll(ffi::ThreadPool& pool, bool reverse, ffi::AnyBuffer x,
                  ffi::Result<ffi::AnyBuffer> y) {
  const auto dims = x.dimensions();
  const int64_t rows = dims[0], n = dims[1], lanes = dims[2];
  if (rows == 0 || n == 0 || lanes == 0) return ffi::Error::Success();
  const T* const from = static_cast<const T*>(x.untyped_data());
  T* const to = static_cast<T*>(y->untyped_data());
  const int64_t parts = lanes < 2 * kLanes ? 1 : (lanes + kLanes - 1) / kLanes;
  const int64_t width = (lanes + parts - 1) / parts;  // of equal parts
  ForEachLane(pool, rows, n, lanes, width, [&](int64_t row, int64_t first, int64_t last) {
    const int64_t offset = row * n * lanes;
    Run<Op>(pool, from + offset, to + offset, n, lanes, first, last, reverse);
  });
  return ffi::Error::Success();
}

template <class Op>
ffi::Error RunDtype(ffi::ThreadPool& pool, bool reverse, ffi::AnyBuffer x,
                    ffi::Result<ffi::AnyBuffer> y) {
  using Int = std::conditional_t<kWraps<Op>, uint32_t, int32_t>;
  using Long = std::conditional_t<kWraps<Op>, uint64_t, int64_t>;
  switch (x.element_type()) {
    case ffi::S32: return RunAll<Op, Int>(pool, reverse, x, y);
    case ffi::S64: return RunAll<Op, Long>(pool, reverse, x, y);
    case ffi::F32: return RunAll<Op, float>(pool, reverse, x, y);
    case ffi::F64: return RunAll<Op, double>(pool, reverse, x, y);
    default: return ffi::Error::InvalidArgument("weft.cumulative: no such dtype");
  }
}

ffi::Error Cumulative(ffi::ThreadPool pool, std::string_view kind, bool reverse, ffi::AnyBuffer x,
                      ffi::Result<ffi::AnyBuffer> y) {
  if (x.dimensions().size() != 3) {
    return ffi::Error::InvalidArgument("weft.cumulative: must be of [rows, n, lanes]");
  }
  if (kind == "cumsum") return RunDtype<Add>(pool, reverse, x, y);
  if (kind == "cumprod") return RunDtype<Multiply>(pool, reverse, x, y);
  if (kind == "cummax") return RunDtype<Largest>(pool, reverse, x, y);
  if (kind == "cummin") return RunDtype<Smallest>(pool, reverse, x, y);
  return ffi::Error::InvalidArgument("weft.cumulative: no such kind");
}

}  // namespace
}  // namespace weft

XLA_FFI_DEFINE_HANDLER_SYMBOL(weft_cumulative, weft::Cumulative,
                              xla::ffi::Ffi::Bind()
                                  .Ctx<xla::ffi::ThreadPool>()
                                  .Attr<std::string_view>("kind")
                                  .Attr<bool>("reverse")
                                  .Arg<xla::ffi::AnyBuffer>()
                                  .Ret<xla::ffi::AnyBuffer>());
