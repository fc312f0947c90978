// The derivative of a depthwise convolution in its kernel. For each channel and each kernel element
// it is the sum of products of the images of the channel and the cotangents of the results.

#include "common.h"

namespace weft {
namespace {

// One spatial axis: the sizes of the image, of the result and of the kernel (`taps`), the stride
// (`step`), the dilation of the kernel, and the padding before the image (`low`).
struct Axis {
  int64_t size, results, taps, step, dilation, low;

  // Returns the range [first, last) of results where kernel element `tap` reads inside the
  // image.
  std::pair<int64_t, int64_t> Range(int64_t tap) const {
    const int64_t shift = tap * dilation - low;  // the index in the image for the first result
    const int64_t first = shift < 0 ? (-shift + step - 1) / step : 0;
    const int64_t last = shift < size ? (size - 1 - shift) / step + 1 : 0;
    return {first, std::min(last, results)};
  }
};

struct DepthwiseJob {
  const void *x, *y;
  int64_t images, channels;
  Axis rows, columns;
  bool last;  // channels are the last axis
};

}  // namespace
}  // namespace weft

#define WEFT_LANES "depthwise_lanes.h"
#include "widths.h"

namespace weft {
namespace {

template <class T>
ffi::Error Sum(ffi::ThreadPool& pool, const DepthwiseJob& job, T* out) {
  const int64_t lanes = LaneBytes() / sizeof(T);
  const int64_t taps = job.rows.taps * job.columns.taps, side = job.last ? lanes : 1;
  const int64_t groups = (job.channels + side - 1) / side;
  // Depends on the shape only, so that sums are the same for any number of threads.
  const int64_t parts = std::max<int64_t>(1, std::min<int64_t>(job.images, 16 / groups));
  const auto sums = Allocate<double>(groups * parts * taps * lanes);
  if (!sums) return OutOfMemory();
  ForEach(pool, groups * parts, [&](int64_t piece) {
    const int64_t group = piece / parts, part = piece % parts;
    double* const to = sums.get() + piece * taps * lanes;
    std::fill(to, to + taps * lanes, 0.0);
    WEFT_PICK(SumImages<T>)(job, job.images * part / parts, job.images * (part + 1) / parts,
                            group * side, std::min(side, job.channels - group * side), to);
  });
  for (int64_t channel = 0; channel < job.channels; ++channel) {
    for (int64_t tap = 0; tap < taps; ++tap) {
      double total = 0;
      for (int64_t part = 0; part < parts; ++part) {
        const int64_t piece = channel / side * parts + part;
        total += sums[(piece * taps + tap) * lanes + channel % side];
      }
      out[channel * taps + tap] = static_cast<T>(total);
    }
  }
  return ffi::Error::Success();
}

// x [n, c, rows, columns], or [n, rows, columns, c] if `last`; y likewise; out [c, taps, taps].
ffi::Error Depthwise(ffi::ThreadPool pool, bool last, ffi::Span<const int64_t> steps,
                     ffi::Span<const int64_t> dilations, ffi::Span<const int64_t> low,
                     ffi::AnyBuffer x, ffi::AnyBuffer y, ffi::Result<ffi::AnyBuffer> out) {
  Size count, channels, sizes[2], results[2], taps[2];
  const auto are_images = [&](const ffi::AnyBuffer& x, Size* sizes) {
    return last ? Fits(x, count, sizes[0], sizes[1], channels)
                : Fits(x, count, channels, sizes[0], sizes[1]);
  };
  if (!are_images(x, sizes) || !are_images(y, results) || !Fits(*out, channels, taps[0], taps[1]) ||
      !AreAlike(x, y, *out)) {
    return ffi::Error::InvalidArgument(
        "operands must be [n, c, rows, columns], or [n, rows, columns, c] if `last`, and the result [c, "
        "taps, taps], of one dtype");
  }
  if (!AreWindowsOfPlanes(results, steps, taps, dilations, low)) {
    return ffi::Error::InvalidArgument("steps, dilations and low must be of windows of two axes");
  }
  const auto axis = [&](size_t k) {
    return Axis{sizes[k], results[k], taps[k], steps[k], dilations[k], low[k]};
  };
  const DepthwiseJob job{x.untyped_data(), y.untyped_data(), count, channels,
                         axis(0), axis(1), last};
  if (!out->element_count()) return ffi::Error::Success();
  switch (x.element_type()) {
    case ffi::F32: return Sum(pool, job, static_cast<float*>(out->untyped_data()));
    case ffi::F64: return Sum(pool, job, static_cast<double*>(out->untyped_data()));
    default: return ffi::Error::InvalidArgument("operands must be f32 or f64");
  }
}

}  // namespace
}  // namespace weft

XLA_FFI_DEFINE_HANDLER_SYMBOL(weft_depthwise, weft::Depthwise,
                              xla::ffi::Ffi::Bind()
                                  .Ctx<xla::ffi::ThreadPool>()
                                  .Attr<bool>("last")
                                  .Attr<xla::ffi::Span<const int64_t>>("steps")
                                  .Attr<xla::ffi::Span<const int64_t>>("dilations")
                                  .Attr<xla::ffi::Span<const int64_t>>("low")
                                  .Arg<xla::ffi::AnyBuffer>()
                                  .Arg<xla::ffi::AnyBuffer>()
                                  .Ret<xla::ffi::AnyBuffer>());
