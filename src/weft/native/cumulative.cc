// Running sums, products, maxima and minima along the middle axis of [rows, n, lanes].
//
// float32 is accumulated in float64. After a NaN, all further results are NaN. Each step depends on
// the step before it. Rows with few lanes are therefore walked side by side, one row in each vector
// lane. The parts of a long row are walked side by side too, each part from the sum of all elements
// before it.

#include <limits>
#include <string_view>
#include <type_traits>

#include "tiles.h"

namespace weft {
namespace {

constexpr int64_t kSegments = 8;  // segments of a row of at least kLong elements, walked together
constexpr int64_t kGroups = 8;    // groups of kSegments segments, if a row is very long
constexpr int64_t kLong = 256;
constexpr int64_t kLanes = 64;     // the number of lanes worked on together is a multiple of this
constexpr int64_t kStrip = 512;    // lanes of a row that are processed at once
constexpr int64_t kBlock = 256;    // elements of a row that are held in vectors at once
constexpr int64_t kFewLanes = 8;   // of rows that are processed side by side
constexpr int64_t kShort = 16;     // steps of a row that the processor can overlap
constexpr int64_t kSpan = 1 << 16;  // elements of a row that are worth a thread
constexpr int64_t kMostSpans = 64;

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

// The largest or the smallest.
template <bool largest>
struct Extremum {
  template <class T>
  using Of = T;
  template <class A>
  static A Apply(A x, A y) {
    if constexpr (std::is_arithmetic_v<A>) return x != x || (largest ? x >= y : x <= y) ? x : y;
    const auto better = (largest ? x >= y : x <= y) ? x : y;  // y where one is NaN
    return x != x ? x : better;
  }
};

template <class Op>
constexpr bool kIsExtremum = std::is_same_v<Op, Extremum<true>> || std::is_same_v<Op, Extremum<false>>;

template <class T>
using Four = typename Vector<T, 4 * sizeof(T)>::V;

// Rows [rows, n, lanes], of elements as who takes them knows.
struct RunJob {
  const void* x;
  void* y;
  int64_t rows, n, lanes;
  bool reverse;

  // Returns element i of the operand, or of the result.
  template <class T>
  const T* From(int64_t i) const { return static_cast<const T*>(x) + i; }
  template <class T>
  T* To(int64_t i) const { return static_cast<T*>(y) + i; }
};

}  // namespace
}  // namespace weft

#define WEFT_LANES "cumulative_lanes.h"
#include "widths.h"

namespace weft {
namespace {

// Running extrema of n elements that are adjacent in memory, forwards or backwards (`step` is -1).
// Each step depends on the step before it, so the segments of a group are walked together, and
// groups run on different threads. Afterwards the extremum of all preceding segments replaces the
// first elements of a segment, up to the first element that is better.
template <class Op, class T>
void RunSegments(ffi::ThreadPool& pool, const RunJob& job, int64_t row) {
  const int64_t n = job.n, step = job.reverse ? -1 : 1, first = row * n + (job.reverse ? n - 1 : 0);
  const T* const x = job.From<T>(first);
  T* const y = job.To<T>(first);
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

// Walks along n times `count` elements, or vectors of lanes, V, that are `step` elements apart; in W.
template <class Op, int count, class V, class W, class T>
WEFT_WIDE void Walk(const T* from, T* to, int64_t n, int64_t step) {
  constexpr int64_t kSize = sizeof(V) / sizeof(T);
  W totals[count];
  for (int64_t i = 0; i < n; ++i, from += step, to += step) {
    for (int j = 0; j < count; ++j) {
      const V x = Load<V>(from + j * kSize);
      V y;
      if constexpr (std::is_arithmetic_v<V>) {
        totals[j] = i ? Op::Apply(totals[j], static_cast<W>(x)) : static_cast<W>(x);
        y = static_cast<V>(totals[j]);
      } else {
        const W wide = __builtin_convertvector(x, W);
        totals[j] = i ? Op::Apply(totals[j], wide) : wide;
        y = __builtin_convertvector(totals[j], V);
      }
      std::memcpy(to + j * kSize, &y, sizeof(y));
    }
  }
}

// Walks along lanes from `first` to `last` of a row, some at a time.
template <class Op, class T>
void RunLanes(const RunJob& job, int64_t row, int64_t first, int64_t last) {
  using A = typename Op::template Of<T>;
  const int64_t start = (row * job.n + (job.reverse ? job.n - 1 : 0)) * job.lanes;
  const int64_t step = job.reverse ? -job.lanes : job.lanes, least = last - 4;
  const T* const x = job.From<T>(start);
  T* const y = job.To<T>(start);
  if (first <= least) {
    for (; first + 12 <= last; first += 12) {
      Walk<Op, 3, Four<T>, Four<A>>(x + first, y + first, job.n, step);
    }
    for (; first < last; first += 4) {
      first = std::min(first, least);  // some are walked along twice
      Walk<Op, 1, Four<T>, Four<A>>(x + first, y + first, job.n, step);
    }
  }
  for (; first < last; ++first) Walk<Op, 1, T, A>(x + first, y + first, job.n, step);
}

// Sums and products of four rows of one lane.
template <class Op, class T>
void RunFourRows(const RunJob& job, int64_t row) {
  using A = typename Op::template Of<T>;
  const int64_t n = job.n, step = job.reverse ? -1 : 1, start = row * n + (job.reverse ? n - 1 : 0);
  const T* from = job.From<T>(start);
  T* to = job.To<T>(start);
  Four<A> totals;
  for (int64_t i = 0; i < n; ++i, from += step, to += step) {
    const Four<T> x = {from[0], from[n], from[2 * n], from[3 * n]};
    const Four<A> wide = __builtin_convertvector(x, Four<A>);
    totals = i ? Op::Apply(totals, wide) : wide;
    const Four<T> y = __builtin_convertvector(totals, Four<T>);
    to[0] = y[0], to[n] = y[1], to[2 * n] = y[2], to[3 * n] = y[3];
  }
}

// Computes the running sums of one row, with its parts walked side by side.
template <class T>
void RunSpans(ffi::ThreadPool& pool, const RunJob& job, int64_t row) {
  using A = typename Add::Of<T>;
  const int64_t n = job.n, lanes = job.lanes, first = row * n;
  const int64_t spans = std::clamp<int64_t>(n * lanes / kSpan, 1, kMostSpans);
  A sums[kMostSpans][kFewLanes];
  const auto begin = [=](int64_t s) { return first + n * (job.reverse ? spans - 1 - s : s) / spans; };
  const auto end = [=](int64_t s) { return first + n * (job.reverse ? spans - s : s + 1) / spans; };
  const auto add = WEFT_PICK(AddSpan<T>);
  const auto run = WEFT_PICK(RunSpan<T>);
  std::fill(sums[0], sums[0] + lanes, static_cast<A>(-0.0));
  ForEach(pool, spans - 1, [&](int64_t s) { add(job, begin(s), end(s), sums[s + 1]); });
  for (int64_t s = 1; s < spans; ++s) {
    for (int64_t j = 0; j < lanes; ++j) sums[s][j] += sums[s - 1][j];
  }
  ForEach(pool, spans, [&](int64_t s) { run(job, begin(s), end(s), sums[s]); });
}

// The implementations of an operation for an element type; null where one does not apply.
struct Ways {
  int64_t size;  // bytes of an element
  void (*group)(const RunJob&, int64_t);
  int64_t (*strip)(const RunJob&, int64_t, int64_t, int64_t);
  void (*lanes)(const RunJob&, int64_t, int64_t, int64_t);
  void (*four)(const RunJob&, int64_t);
  void (*segments)(ffi::ThreadPool&, const RunJob&, int64_t);
  void (*spans)(ffi::ThreadPool&, const RunJob&, int64_t);
  bool waits;  // whether a step takes so long that spans pay for several rows too
};

template <class Op, class T>
Ways FindWays() {
  Ways ways{sizeof(T), WEFT_PICK(RunGroup<Op, T>), WEFT_PICK(RunStrip<Op, T>), RunLanes<Op, T>};
  if constexpr (kIsExtremum<Op>) ways.segments = RunSegments<Op, T>;
  else ways.four = RunFourRows<Op, T>;
  if constexpr (std::is_same_v<Op, Add> && !std::is_same_v<T, double>) {  // those stay in order
    ways.spans = RunSpans<T>;
    ways.waits = std::is_same_v<T, float>;
  }
  return ways;
}

ffi::Error RunAll(ffi::ThreadPool& pool, const Ways& ways, const RunJob& job) {
  const int64_t rows = job.rows, n = job.n, lanes = job.lanes;
  if (rows == 0 || n == 0 || lanes == 0) return ffi::Error::Success();
  const bool beside = n >= kShort || !ways.four || (lanes > 1 && lanes <= kFewLanes / 2);
  if (beside && lanes <= kFewLanes && rows * ways.size * 2 > LaneBytes()) {
    const int64_t together = LaneBytes() / ways.size, groups = (rows + together - 1) / together;
    const int64_t each = std::max<int64_t>(1, kPiece / (together * n * lanes));
    ForEach(pool, (groups + each - 1) / each, [&](int64_t piece) {
      const int64_t end = std::min(groups, (piece + 1) * each);
      for (int64_t group = piece * each; group < end; ++group) ways.group(job, group);
    });
    return ffi::Error::Success();
  }
  if (ways.spans && (rows == 1 || ways.waits) && lanes <= kFewLanes && n * lanes >= kPiece) {
    for (int64_t row = 0; row < rows; ++row) ways.spans(pool, job, row);
    return ffi::Error::Success();
  }
  if (lanes == 1) {
    const int64_t each = std::max<int64_t>(1, kPiece / n);
    ForEach(pool, (rows + each - 1) / each, [&](int64_t piece) {
      const int64_t last = std::min(rows, (piece + 1) * each);
      int64_t row = piece * each;
      for (; ways.segments && n >= kLong && row < last; ++row) ways.segments(pool, job, row);
      for (; ways.four && row + 4 <= last; row += 4) ways.four(job, row);
      for (; row < last; ++row) ways.lanes(job, row, 0, 1);
    });
    return ffi::Error::Success();
  }
  const int64_t slices = lanes < 2 * kStrip ? 1 + (lanes >= kStrip) : (lanes + kStrip - 1) / kStrip;
  const int64_t width = (lanes + slices - 1) / slices + kLanes - 1 & -kLanes;
  const bool by_vectors = lanes >= kLanes || lanes * ways.size % LaneBytes() == 0;
  ForEachLane(pool, rows, n, lanes, width, [&](int64_t row, int64_t first, int64_t last) {
    if (by_vectors) first = ways.strip(job, row, first, last);
    ways.lanes(job, row, first, last);
  });
  return ffi::Error::Success();
}

// The sums and products of signed integers wrap, so they are computed with unsigned integers.
template <class Op>
Ways FindWays(ffi::DataType dtype) {
  constexpr bool wraps = !kIsExtremum<Op>;
  switch (dtype) {
    case ffi::S32: return FindWays<Op, std::conditional_t<wraps, uint32_t, int32_t>>();
    case ffi::S64: return FindWays<Op, std::conditional_t<wraps, uint64_t, int64_t>>();
    case ffi::F32: return FindWays<Op, float>();
    case ffi::F64: return FindWays<Op, double>();
    default: return {};
  }
}

Ways FindWays(std::string_view kind, ffi::DataType dtype) {
  if (kind == "cumsum") return FindWays<Add>(dtype);
  if (kind == "cumprod") return FindWays<Multiply>(dtype);
  if (kind == "cummax") return FindWays<Extremum<true>>(dtype);
  if (kind == "cummin") return FindWays<Extremum<false>>(dtype);
  return {};
}

ffi::Error Cumulative(ffi::ThreadPool pool, std::string_view kind, bool reverse, ffi::AnyBuffer x,
                      ffi::Result<ffi::AnyBuffer> y) {
  Size rows, n, lanes;
  if (!Fits(x, rows, n, lanes) || !Fits(*y, rows, n, lanes) || !AreAlike(x, *y)) {
    return ffi::Error::InvalidArgument("the operand must be [rows, n, lanes], and the result alike");
  }
  ffi::DataType dtype = x.element_type();
  if (kind == "cumsum" && (dtype == ffi::C64 || dtype == ffi::C128)) {  // as two real arrays
    dtype = dtype == ffi::C64 ? ffi::F32 : ffi::F64;
    lanes = 2 * lanes;
  }
  const Ways ways = FindWays(kind, dtype);
  if (!ways.size) {
    return ffi::Error::InvalidArgument(
        "kind must be cumsum, cumprod, cummax or cummin, of i32, i64, f32 or f64 (cumsum: or complex)");
  }
  return RunAll(pool, ways, {x.untyped_data(), y->untyped_data(), rows, n, lanes, reverse});
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
