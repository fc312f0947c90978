// Convolutions of arrays [batch, rows, columns, features], and their derivatives in the kernel.
//
// A tile of results is accumulated in registers, over all taps and features, before it is stored.
// The work is divided by shapes only, so the result does not depend on the number of threads.

#include "tiles.h"

namespace weft {
namespace {

constexpr int64_t kUnit = 192;       // pixels (results in space) that a thread takes at once
constexpr int64_t kTable = 4096;     // pointers of the table on a thread's stack
constexpr int64_t kFew = 16;  // input features; below this number, the taps of a row are joined
constexpr int64_t kChunk = 1 << 15;  // elements of x and ct that are read for all tiles in turn
constexpr int64_t kSums = 1 << 22;   // elements of the partial sums of a derivative
constexpr int64_t kPieces = 8;       // partial sums of a derivative, which are added up at the end

// The sizes of x, of the kernel and of the result. Arrays of two have one entry for each spatial
// axis: (rows, columns).
struct Sizes {
  int64_t batch, rows, columns, features;
  int64_t out_rows, out_columns, out_features;
  int64_t taps[2], stride[2], dilation[2], low[2];

  // Returns the row (axis 0) or column (axis 1) of x that `tap` of the kernel reads for the result
  // at `place`.
  int64_t At(int axis, int64_t place, int64_t tap) const {
    return place * stride[axis] + tap * dilation[axis] - low[axis];
  }
};

// --- the result --------------------------------------------------------------------------------

template <class T>
struct Forward {
  Sizes sizes;
  const T *x, *zeros;  // a padded row of taps, all zeros
  T* packed;  // the kernel, [panels, taps * features, lanes of a panel], with zeros at the end
  T* out;
  int64_t unit;
  bool narrow;  // one vector holds the output features

  template <int kBytes>
  WEFT_INLINE void Run(int64_t index) const;
};

template <class T, int kBytes, int kColumns>
WEFT_INLINE void ConvolveUnit(const Forward<T>& job, int64_t index) {
  using V = typename Vector<T, kBytes>::V;
  constexpr int64_t kLanes = Vector<T, kBytes>::kLanes, kWide = kColumns * kLanes;
  const Sizes& s = job.sizes;
  const int64_t taps = s.taps[0] * s.taps[1], places = s.out_rows * s.out_columns;
  const int64_t first = index * job.unit, last = std::min(s.batch * places, first + job.unit);
  const T* seen[kTable];  // for each tile and tap what its pixels see
  bool joined[kUnit / kPixels];  // tiles whose pixels read each row of taps as one contiguous run
  const T** to = seen;
  for (int64_t start = first; start < last; start += kPixels, to += taps * kPixels) {
    bool inner = s.features < kFew && s.dilation[1] == 1;
    for (int64_t r = 0; r < kPixels; ++r) {
      const int64_t left = s.At(1, std::min(start + r, last - 1) % s.out_columns, 0);
      inner = inner && left >= 0 && left + s.taps[1] <= s.columns;
    }
    const int64_t step = inner ? s.taps[1] : 1;
    joined[(start - first) / kPixels] = inner;
    for (int64_t r = 0; r < kPixels; ++r) {
      const int64_t pixel = std::min(start + r, last - 1);  // those past the end are not stored
      const int64_t image = pixel / places, place = pixel % places;
      const int64_t top = s.At(0, place / s.out_columns, 0), left = s.At(1, place % s.out_columns, 0);
      const T** at = to + r;
      for (int64_t i = 0; i < s.taps[0]; ++i) {
        const int64_t row = top + i * s.dilation[0];
        const bool inside = row >= 0 && row < s.rows;
        for (int64_t j = 0; j < s.taps[1]; j += step, at += kPixels) {
          const int64_t column = left + j * s.dilation[1];
          *at = inside && column >= 0 && column < s.columns
                    ? job.x + ((image * s.rows + row) * s.columns + column) * s.features : job.zeros;
        }
      }
    }
  }
  for (int64_t f = 0; f < s.out_features; f += kWide) {
    for (int64_t start = first; start < last; start += kPixels) {
      const int64_t tile = (start - first) / kPixels;
      const int64_t rows = joined[tile] ? s.taps[0] : taps;
      StoreTile<V, kColumns>(seen + tile * taps * kPixels, rows,
                             joined[tile] ? s.features * s.taps[1] : s.features,
                             job.packed + f * taps * s.features, job.out + start * s.out_features + f,
                             s.out_features, last - start, s.out_features - f);
    }
  }
}

template <class T>
template <int kBytes>
WEFT_INLINE void Forward<T>::Run(int64_t index) const {
  narrow ? ConvolveUnit<T, kBytes, 1>(*this, index)
         : ConvolveUnit<T, kBytes, kVectors>(*this, index);
}

// --- the derivative in the kernel --------------------------------------------------------------

template <class T>
struct Derivative {
  Sizes sizes;
  const T *x, *ct;
  T* sums;  // [pieces, taps, features, out_features]
  int64_t pieces, parts;  // of the rows, and of the output features
  std::atomic<bool>* done;  // false if an allocation failed

  template <int kBytes>
  WEFT_INLINE void Run(int64_t index) const;
};

// Adds the contributions of one piece of the cotangents' rows for some output features. Returns
// false if allocation fails.
template <class T, int kBytes>
WEFT_INLINE bool DifferentiatePiece(const Derivative<T>& job, int64_t index) {
  using V = typename Vector<T, kBytes>::V;
  constexpr int64_t kLanes = Vector<T, kBytes>::kLanes, kWide = kVectors * kLanes;
  const Sizes& s = job.sizes;
  const int64_t taps = s.taps[0] * s.taps[1], rows = s.batch * s.out_rows;
  const int64_t piece = index / job.parts, part = index % job.parts;
  const int64_t panels = (s.out_features + kWide - 1) / kWide;
  const int64_t begin = panels * part / job.parts * kWide;
  const int64_t features = std::min(s.out_features, panels * (part + 1) / job.parts * kWide) - begin;
  const bool padded = features % kLanes != 0;  // and then copied to where vectors may be read
  const int64_t full = (features + kLanes - 1) / kLanes * kLanes;
  const int64_t width = padded ? full : s.out_features;
  const int64_t in_row = s.out_columns * (s.features * std::min(s.stride[1], s.columns) + full);
  const int64_t chunk = std::max<int64_t>(1, kChunk / std::max<int64_t>(1, in_row));
  const auto segments = Allocate<Segment<T>>(chunk);
  const auto room = Allocate<T>(padded ? chunk * s.out_columns * width : 1);
  if (!segments || !room) return false;
  T* const sums = job.sums + piece * taps * s.features * s.out_features + begin;
  for (int64_t i = 0; i < taps * s.features; ++i) {
    std::memset(sums + i * s.out_features, 0, features * sizeof(T));
  }
  const int64_t end = rows * (piece + 1) / job.pieces;
  for (int64_t start = rows * piece / job.pieces; start < end; start += chunk) {
    const int64_t stop = std::min(end, start + chunk);
    const T* ct = job.ct + start * s.out_columns * s.out_features + begin;
    if (padded) {
      std::memset(room.get(), 0, (stop - start) * s.out_columns * width * sizeof(T));
      for (int64_t i = 0; i < (stop - start) * s.out_columns; ++i) {
        std::memcpy(room.get() + i * width, ct + i * s.out_features, features * sizeof(T));
      }
      ct = room.get();
    }
    for (int64_t tap = 0; tap < taps; ++tap) {
      int64_t left = 0, right = s.out_columns;  // the range of places whose columns are inside
      while (left < right && s.At(1, left, tap % s.taps[1]) < 0) ++left;
      while (left < right && s.At(1, right - 1, tap % s.taps[1]) >= s.columns) --right;
      const int64_t column = s.At(1, left, tap % s.taps[1]);
      for (int64_t f = 0, next; f < features; f = next) {
        int64_t count = 0;
        for (int64_t i = start; i < stop; ++i) {
          const int64_t row = s.At(0, i % s.out_rows, tap / s.taps[1]);
          if (row < 0 || row >= s.rows || left == right) continue;
          const int64_t at = ((i / s.out_rows * s.rows + row) * s.columns + column) * s.features;
          const T* const from = ct + ((i - start) * s.out_columns + left) * width + f;
          segments[count++] = {job.x + at, from, right - left};
        }
        T* const to = sums + tap * s.features * s.out_features + f;
        const int64_t step = s.stride[1] * s.features, most = features - f;
        next = f + (full - f >= kWide ? kWide : kLanes);
        if (next - f == kWide) {
          AddTiles<V, kVectors>(segments.get(), count, step, width, s.features, to, s.out_features,
                                most);
        } else {
          AddTiles<V, 1>(segments.get(), count, step, width, s.features, to, s.out_features, most);
        }
      }
    }
  }
  return true;
}

template <class T>
template <int kBytes>
WEFT_INLINE void Derivative<T>::Run(int64_t index) const {
  if (!DifferentiatePiece<T, kBytes>(*this, index)) *done = false;
}

// --- calls -------------------------------------------------------------------------------------

template <class T>
ffi::Error Convolve(ffi::ThreadPool& pool, const Sizes& s, const void* x, const void* kernel,
                    void* out) {
  static const int bytes = VectorBytes();
  const int64_t taps = s.taps[0] * s.taps[1], depth = taps * s.features;
  const Panels panels(s.out_features, bytes / sizeof(T));
  const int64_t wide = panels.wide;
  const auto packed = Allocate<T>(panels.count * depth * wide), zeros = Allocate<T>(depth);
  if (!packed || !zeros) return OutOfMemory();
  std::memset(zeros.get(), 0, depth * sizeof(T));
  const int64_t unit = std::min(kUnit, kTable / (taps * kPixels) * kPixels);
  const Forward<T> job{s, static_cast<const T*>(x), zeros.get(), packed.get(),
                       static_cast<T*>(out), unit, panels.narrow};
  ForEach(pool, panels.count, [&](int64_t panel) {
    const int64_t first = panel * wide;
    PackPanel(static_cast<const T*>(kernel) + first, s.out_features, depth,
              std::min(wide, s.out_features - first), wide, job.packed + first * depth);
  });
  const auto run = RunWith<Forward<T>>(bytes);
  const int64_t pixels = s.batch * s.out_rows * s.out_columns;
  ForEach(pool, (pixels + unit - 1) / unit, [&](int64_t index) { run(job, index); });
  return ffi::Error::Success();
}

template <class T>
ffi::Error Differentiate(ffi::ThreadPool& pool, const Sizes& s, const void* x, const void* ct,
                         void* out) {
  static const int bytes = VectorBytes();
  const int64_t size = s.taps[0] * s.taps[1] * s.features * s.out_features;
  const int64_t pixels = s.batch * s.out_rows * s.out_columns;
  int64_t pieces = std::min({kPieces, s.batch * s.out_rows, pixels / kUnit, kSums / size});
  pieces = std::max<int64_t>(1, pieces);
  const int64_t panels = s.out_features * sizeof(T) / (kVectors * bytes);
  const int64_t parts = std::max<int64_t>(1, std::min(panels, kPieces / pieces));
  const auto sums = Allocate<T>(pieces * size);
  if (!sums) return OutOfMemory();
  std::atomic<bool> done{true};
  const Derivative<T> job{s, static_cast<const T*>(x), static_cast<const T*>(ct), sums.get(),
                          pieces, parts, &done};
  const auto run = RunWith<Derivative<T>>(bytes);
  ForEach(pool, pieces * parts, [&](int64_t index) { run(job, index); });
  if (!done) return OutOfMemory();
  T* const to = static_cast<T*>(out);
  ForEach(pool, (size + kPiece - 1) / kPiece, [&](int64_t part) {
    const int64_t first = part * kPiece, last = std::min(size, first + kPiece);
    for (int64_t i = first; i < last; ++i) to[i] = sums[i];
    for (int64_t p = 1; p < pieces; ++p) {
      for (int64_t i = first; i < last; ++i) to[i] += sums[p * size + i];
    }
  });
  return ffi::Error::Success();
}

using Numbers = ffi::Span<const int64_t>;

// Computes the result from x and the kernel or, if `is_derivative`, the cotangent of the kernel
// from x and the cotangent of the result.
ffi::Error Conv(ffi::ThreadPool pool, ffi::AnyBuffer x, ffi::AnyBuffer other,
                ffi::Result<ffi::AnyBuffer> out, Numbers stride, Numbers dilation, Numbers low,
                bool is_derivative) {
  const ffi::AnyBuffer kernel = is_derivative ? *out : other, results = is_derivative ? other : *out;
  Size batch, features, out_features, in[2], taps[2], places[2];
  if (!Fits(x, batch, in[0], in[1], features) || !Fits(kernel, taps[0], taps[1], features, out_features) ||
      !Fits(results, batch, places[0], places[1], out_features) || !AreAlike(x, other, *out) ||
      taps[0] * taps[1] == 0 || taps[0] * taps[1] * kPixels > kTable) {
    return ffi::Error::InvalidArgument(
        "x, the kernel and results must be [batch, rows, columns, features], [taps, taps, features, "
        "features] with 1 to 682 taps, and [batch, rows, columns, features], of one dtype");
  }
  if (!AreWindowsOfPlanes(places, stride, taps, dilation, low)) {
    return ffi::Error::InvalidArgument("stride, dilation and low must be of windows of two axes");
  }
  if (out->element_count() == 0) return ffi::Error::Success();
  const Sizes sizes{batch, in[0], in[1], features, places[0], places[1], out_features,
                    {taps[0], taps[1]}, {stride[0], stride[1]}, {dilation[0], dilation[1]},
                    {low[0], low[1]}};
  const bool wide = x.element_type() == ffi::F64;
  if (!wide && x.element_type() != ffi::F32) {
    return ffi::Error::InvalidArgument("operands must be f32 or f64");
  }
  const auto run = is_derivative ? (wide ? Differentiate<double> : Differentiate<float>)
                                 : (wide ? Convolve<double> : Convolve<float>);
  return run(pool, sizes, x.untyped_data(), other.untyped_data(), out->untyped_data());
}

}  // namespace
}  // namespace weft

XLA_FFI_DEFINE_HANDLER_SYMBOL(weft_conv, weft::Conv,
                              xla::ffi::Ffi::Bind()
                                  .Ctx<xla::ffi::ThreadPool>()
                                  .Arg<xla::ffi::AnyBuffer>()
                                  .Arg<xla::ffi::AnyBuffer>()
                                  .Ret<xla::ffi::AnyBuffer>()
                                  .Attr<xla::ffi::Span<const int64_t>>("stride")
                                  .Attr<xla::ffi::Span<const int64_t>>("dilation")
                                  .Attr<xla::ffi::Span<const int64_t>>("low")
                                  .Attr<bool>("is_derivative"));
