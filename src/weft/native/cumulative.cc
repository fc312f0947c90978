// Running sums, products, largest and smallest, along the middle axis of [rows, n, lanes].
//
// Floats of 32 bits are added up and multiplied in 64. NaN stays once it has come. As each step waits
// for the one before it, rows with few lanes are walked along side by side, one in each lane of vectors,
// and so are the parts of a long row, each from the sum of what is before it.

#include <string_view>
#include <type_traits>

#include "common.h"

namespace weft {
namespace {

constexpr int64_t kLanes = 64;  // those worked on together, where there are as many by vectors
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

// --- rows in lanes of vectors ------------------------------------------------------------------

constexpr int64_t kBlock = 256;    // elements of a row that are in vectors at once
constexpr int64_t kFewLanes = 8;   // of rows that are walked along side by side
constexpr int64_t kGroup = 1 << 17;  // elements of a row that are worth parts for a group of its own
constexpr int64_t kMostParts = 128;
constexpr int64_t kStrip = 512;  // lanes of a row that are walked along at once

// Rows that follow each other. `totals`, of each row and lane, are what is before it if `begin`; else,
// if there are any, they alone are made.
template <class Op, class T>
struct RunJob {
  using A = typename Op::template Of<T>;
  const T* x;
  T* y;
  int64_t rows, n, lanes;
  bool reverse;
  A* totals;
  bool begin;
};

}  // namespace
}  // namespace weft

#define WEFT_LANES "cumulative_lanes.h"
#include "widths.h"

namespace weft {
namespace {

template <class Op, class T>
void RunGroups(ffi::ThreadPool& pool, const RunJob<Op, T>& job) {
  const auto run = WEFT_PICK(RunGroup<Op, T>);
  const int64_t together = LaneBytes() / sizeof(T), groups = (job.rows + together - 1) / together;
  const int64_t each = std::max<int64_t>(1, kPiece / (together * job.n * job.lanes));
  ForEach(pool, (groups + each - 1) / each, [&](int64_t piece) {
    const int64_t end = std::min(groups, (piece + 1) * each);
    for (int64_t group = piece * each; group < end; ++group) run(job, group);
  });
}

// Running sums of one row, whose parts are walked along side by side.
template <class T>
void RunParts(ffi::ThreadPool& pool, bool reverse, const T* x, T* y, int64_t n, int64_t lanes) {
  using A = typename Add::Of<T>;
  const int64_t together = LaneBytes() / sizeof(T);
  const int64_t groups = std::clamp<int64_t>(n * lanes / kGroup, 1, kMostParts / together);
  const int64_t parts = groups * together, size = n / parts, rest = n - parts * size;
  const int64_t start = reverse ? rest * lanes : 0;
  A totals[kMostParts * kFewLanes], sums[kFewLanes];
  std::fill(sums, sums + lanes, static_cast<A>(-0.0));
  RunJob<Add, T> job{x + start, y + start, parts, size, lanes, reverse, totals, false};
  RunGroups(pool, job);
  for (int64_t p = 0; p < parts; ++p) {
    A* const own = totals + (reverse ? parts - 1 - p : p) * lanes;
    for (int64_t j = 0; j < lanes; ++j) {
      const A total = own[j];
      own[j] = sums[j];
      sums[j] += total;
    }
  }
  job.begin = true;
  RunGroups(pool, job);
  for (int64_t i = 0; i < rest; ++i) {
    const int64_t at = (reverse ? rest - 1 - i : parts * size + i) * lanes;
    for (int64_t j = 0; j < lanes; ++j) {
      y[at + j] = static_cast<T>(sums[j] += static_cast<A>(x[at + j]));
    }
  }
}

template <class Op, class T>
ffi::Error RunAll(ffi::ThreadPool& pool, bool reverse, ffi::AnyBuffer x,
                  ffi::Result<ffi::AnyBuffer> y, int64_t parts = 1) {
  const auto dims = x.dimensions();
  const int64_t rows = dims[0], n = dims[1], lanes = dims[2] * parts;
  if (rows == 0 || n == 0 || lanes == 0) return ffi::Error::Success();
  const T* const from = static_cast<const T*>(x.untyped_data());
  T* const to = static_cast<T*>(y->untyped_data());
  // Short rows of additions are left to the processor, which begins one before the last has ended.
  const bool worth = n >= kFewLanes * 2 || std::is_same_v<typename Op::template Of<float>, float>;
  if (worth && lanes <= kFewLanes && rows * int64_t{sizeof(T)} * 2 > LaneBytes()) {
    RunGroups(pool, RunJob<Op, T>{from, to, rows, n, lanes, reverse, nullptr, false});
    return ffi::Error::Success();
  }
  if constexpr (std::is_same_v<Op, Add> && !std::is_same_v<T, double>) {  // those stay in order
    if (lanes <= kFewLanes && rows == 1 && n * lanes >= kPiece) {
      RunParts(pool, reverse, from, to, n, lanes);
      return ffi::Error::Success();
    }
  }
  if (lanes < kLanes) {
    ForEachLane(pool, rows, n, lanes, lanes, [&](int64_t row, int64_t first, int64_t last) {
      const int64_t offset = row * n * lanes;
      Run<Op>(pool, from + offset, to + offset, n, lanes, first, last, reverse);
    });
    return ffi::Error::Success();
  }
  const int64_t slices = lanes < 2 * kStrip ? 1 + (lanes >= kStrip) : (lanes + kStrip - 1) / kStrip;
  const int64_t width = (lanes + slices - 1) / slices + kLanes - 1 & -kLanes;
  const auto run = WEFT_PICK(RunStrip<Op, T>);
  ForEachLane(pool, rows, n, lanes, width, [&](int64_t row, int64_t first, int64_t last) {
    const int64_t offset = row * n * lanes;
    first = run({from + offset, to + offset, 1, n, lanes, reverse, nullptr, false}, first, last);
    if (first < last) Run<Op>(pool, from + offset, to + offset, n, lanes, first, last, reverse);
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
    default: break;
  }
  if constexpr (std::is_same_v<Op, Add>) {  // of complex numbers those of their parts
    if (x.element_type() == ffi::C64) return RunAll<Op, float>(pool, reverse, x, y, 2);
    if (x.element_type() == ffi::C128) return RunAll<Op, double>(pool, reverse, x, y, 2);
  }
  return ffi::Error::InvalidArgument("weft.cumulative: no such dtype");
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
