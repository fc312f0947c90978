// The gradient of the maxima or minima of windows: each element of `source` is added at the
// selected element of its window.

#include <limits>

#include "common.h"

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-trapping-math")  // else comparisons are not made several at once
#endif

namespace weft {
namespace {

constexpr int64_t kBlock = 64;  // windows side by side

// One spatial axis: the sizes of the array, of the result and of a window (`width`), the stride
// (`step`), and the padding before the array (`low`).
struct Axis {
  int64_t size, windows, width, step, low;
  int64_t Start(int64_t window) const { return window * step - low; }
};

struct PoolJob {
  Axis rows, columns;
  bool least;
};

// Returns true if `best` stays selected when x follows. The first of equal elements stays; NaN is
// replaced by the element that follows.
template <class T, bool kLeast>
inline bool Keeps(T best, T x) {
  return kLeast ? best <= x : best >= x;
}

// Handles a window at an edge. The padding is worse than all elements.
template <class T, bool kLeast>
int64_t FindInEdge(const PoolJob& job, const T* x, int64_t row, int64_t column) {
  const T worst = (kLeast ? 1 : -1) * std::numeric_limits<T>::infinity();
  T best = worst;
  int64_t at = -1;
  // One row and one column of padding are enough: further ones change nothing.
  const int64_t top = std::max<int64_t>(0, -row - 1), left = std::max<int64_t>(0, -column - 1);
  const int64_t bottom = std::min(job.rows.width, job.rows.size - row + 1);
  const int64_t right = std::min(job.columns.width, job.columns.size - column + 1);
  for (int64_t a = top; a < bottom; ++a) {
    for (int64_t b = left; b < right; ++b) {
      const int64_t i = row + a, j = column + b;
      const bool inside = i >= 0 && i < job.rows.size && j >= 0 && j < job.columns.size;
      const T value = inside ? x[i * job.columns.size + j] : worst;
      if ((a > top || b > left) && Keeps<T, kLeast>(best, value)) continue;
      best = value;
      at = inside ? i * job.columns.size + j : -1;
    }
  }
  return at;
}

// `count` windows that are kStep apart, or `step`, inside: where their elements are, from `x` on.
template <class T, bool kLeast, int64_t kStep>
inline void FindBlock(const PoolJob& job, const T* x, int64_t count, T* best, int32_t* at) {
  const int64_t step = kStep ? kStep : job.columns.step;
  for (int64_t l = 0; l < count; ++l) best[l] = x[l * step];
  for (int64_t l = 0; l < count; ++l) at[l] = 0;
  for (int64_t a = 0; a < job.rows.width; ++a) {
    for (int64_t b = 0; b < job.columns.width; ++b) {
      if (!a && !b) continue;
      const int32_t place = static_cast<int32_t>(a * job.columns.size + b);
      const T* const from = x + place;
      for (int64_t l = 0; l < count; ++l) {
        const T value = from[l * step], before = best[l];
        const int32_t where = at[l];
        const bool keeps = Keeps<T, kLeast>(before, value);
        best[l] = keeps ? before : value;
        at[l] = keeps ? where : place;
      }
    }
  }
}

template <class T, bool kLeast>
WEFT_WIDE void AddPlane(const PoolJob& job, const T* source, const T* x, T* out) {
  const Axis &rows = job.rows, &columns = job.columns;
  std::fill(out, out + rows.size * columns.size, T{});
  // the windows of a row that are inside
  const int64_t before = std::max<int64_t>(0, columns.low);
  const int64_t left = std::min(columns.windows, (before + columns.step - 1) / columns.step);
  const int64_t room = columns.size + columns.low - columns.width;
  const int64_t right = room < 0 ? 0 : std::min(columns.windows, room / columns.step + 1);
  T best[kBlock];
  int32_t at[kBlock];
  for (int64_t i = 0; i < rows.windows; ++i, source += columns.windows) {
    const int64_t row = rows.Start(i);
    const bool inside = row >= 0 && row + rows.width <= rows.size;
    for (int64_t j = 0; j < columns.windows;) {
      const int64_t column = columns.Start(j);
      if (!inside || j < left || j >= right) {
        const int64_t place = FindInEdge<T, kLeast>(job, x, row, column);
        if (place >= 0) out[place] += source[j];
        ++j;
        continue;
      }
      const int64_t count = std::min(kBlock, right - j), first = row * columns.size + column;
      if (columns.step == 1) {
        FindBlock<T, kLeast, 1>(job, x + first, count, best, at);
      } else if (columns.step == 2) {
        FindBlock<T, kLeast, 2>(job, x + first, count, best, at);
      } else {
        FindBlock<T, kLeast, 0>(job, x + first, count, best, at);
      }
      for (int64_t l = 0; l < count; ++l) out[first + l * columns.step + at[l]] += source[j + l];
      j += count;
    }
  }
}

template <class T>
ffi::Error AddAll(ffi::ThreadPool& pool, const PoolJob& job, int64_t planes, const ffi::AnyBuffer& source,
                  const ffi::AnyBuffer& x, ffi::AnyBuffer& out) {
  const int64_t size = job.rows.size * job.columns.size;
  const int64_t windows = job.rows.windows * job.columns.windows;
  const double work = size + 1.0 * windows * std::min(job.rows.width, job.rows.size) *
                                 std::min(job.columns.width, job.columns.size);
  const int64_t together = std::max<int64_t>(1, kPiece / work);
  const T *const s = source.typed_data<T>(), *const from = x.typed_data<T>();
  T* const to = out.typed_data<T>();
  const auto add = job.least ? AddPlane<T, true> : AddPlane<T, false>;
  ForEach(pool, (planes + together - 1) / together, [&](int64_t piece) {
    for (int64_t i = piece * together; i < std::min(planes, (piece + 1) * together); ++i) {
      add(job, s + i * windows, from + i * size, to + i * size);
    }
  });
  return ffi::Error::Success();
}

// source [planes, windows, windows], x and out [planes, rows, columns].
ffi::Error SelectScatter(ffi::ThreadPool pool, bool least, ffi::Span<const int64_t> widths,
                         ffi::Span<const int64_t> steps, ffi::Span<const int64_t> low,
                         ffi::AnyBuffer source, ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> out) {
  Size planes, sizes[2], windows[2];
  if (!Fits(x, planes, sizes[0], sizes[1]) || !Fits(source, planes, windows[0], windows[1]) ||
      !Fits(*out, planes, sizes[0], sizes[1]) || !AreAlike(x, source, *out) ||
      sizes[0] * sizes[1] > INT32_MAX) {
    return ffi::Error::InvalidArgument(
        "operands must be [planes, windows, windows] and [planes, rows, columns] with less than 2**31 "
        "elements of a plane, and the result like the latter");
  }
  bool fits = widths.size() == 2 && steps.size() == 2 && low.size() == 2;
  for (size_t k = 0; fits && k < 2; ++k) {
    fits = widths[k] > 0 && AreWindows(windows[k], steps[k], widths[k], 1, low[k]);
  }
  if (!fits) return ffi::Error::InvalidArgument("widths, steps and low must be of windows of two axes");
  const auto axis = [&](size_t k) {
    return Axis{sizes[k], windows[k], widths[k], steps[k], low[k]};
  };
  const PoolJob job{axis(0), axis(1), least};
  if (!x.element_count()) return ffi::Error::Success();
  switch (x.element_type()) {
    case ffi::F32: return AddAll<float>(pool, job, planes, source, x, *out);
    case ffi::F64: return AddAll<double>(pool, job, planes, source, x, *out);
    default: return ffi::Error::InvalidArgument("operands must be f32 or f64");
  }
}

}  // namespace
}  // namespace weft

XLA_FFI_DEFINE_HANDLER_SYMBOL(weft_select_scatter, weft::SelectScatter,
                              xla::ffi::Ffi::Bind()
                                  .Ctx<xla::ffi::ThreadPool>()
                                  .Attr<bool>("least")
                                  .Attr<xla::ffi::Span<const int64_t>>("widths")
                                  .Attr<xla::ffi::Span<const int64_t>>("steps")
                                  .Attr<xla::ffi::Span<const int64_t>>("low")
                                  .Arg<xla::ffi::AnyBuffer>()
                                  .Arg<xla::ffi::AnyBuffer>()
                                  .Ret<xla::ffi::AnyBuffer>());
