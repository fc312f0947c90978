// Weighted sums of neighbours along the middle axis of [rows, n, lanes], with weights for each
// result: images at another size.
//
// Rows with few lanes are processed side by side, one in each vector lane.

#include "common.h"

namespace weft {
namespace {

constexpr int64_t kBlock = 256;     // vectors of a result that are made at once
constexpr int64_t kFewLanes = 8;    // of rows that are taken side by side
constexpr int64_t kMost = 1 << 14;  // vectors of a row that the caches hold

template <class T>
struct ResampleJob {
  const T *x, *weights;  // result i has the weights from weights[i * taps] on
  const int32_t* starts;  // and from where on in x
  T* y;
  int64_t rows, n, m, lanes, taps;
};

}  // namespace
}  // namespace weft

#define WEFT_LANES "resample_lanes.h"
#include "widths.h"

namespace weft {
namespace {

template <class T>
ffi::Error ResampleAll(ffi::ThreadPool& pool, ResampleJob<T> job, const int32_t* starts) {
  const auto room = Allocate<int32_t>(job.m);
  if (!room) return OutOfMemory();
  for (int64_t i = 0; i < job.m; ++i) {
    room[i] = std::clamp<int64_t>(starts[i], 0, job.n - job.taps);
  }
  job.starts = room.get();
  const int64_t together = LaneBytes() / sizeof(T), products = job.m * job.lanes * job.taps;
  if (job.lanes <= kFewLanes && job.rows * 2 > together && job.n * job.lanes <= kMost) {
    const auto run = WEFT_PICK(ResampleGroup<T>);
    const int64_t groups = (job.rows + together - 1) / together;
    const int64_t each = std::max<int64_t>(1, kPiece / (products * together));
    std::atomic<bool> refused{false};
    ForEach(pool, (groups + each - 1) / each, [&](int64_t piece) {
      const int64_t size = std::max<int64_t>(job.n * job.lanes, LaneBytes()) * LaneBytes();
      const auto memory = Allocate<char>(size);
      if (!memory) refused = true;
      const int64_t end = memory ? std::min(groups, (piece + 1) * each) : 0;
      for (int64_t group = piece * each; group < end; ++group) run(job, group, memory.get());
    });
    return refused ? OutOfMemory() : ffi::Error::Success();
  }
  const auto run = WEFT_PICK(ResampleRow<T>);
  const int64_t each = std::max<int64_t>(1, kPiece / (job.lanes * job.taps));
  const int64_t parts = (job.m + each - 1) / each;
  ForEach(pool, job.rows * parts, [&](int64_t piece) {
    const int64_t begin = piece % parts * each;
    run(job, piece / parts, begin, std::min(job.m, begin + each));
  });
  return ffi::Error::Success();
}

template <class T>
ffi::Error ResampleFloats(ffi::ThreadPool& pool, ffi::AnyBuffer x, ffi::AnyBuffer weights,
                          const int32_t* starts, ffi::Result<ffi::AnyBuffer> y) {
  const auto dims = x.dimensions(), shape = weights.dimensions();
  const ResampleJob<T> job{static_cast<const T*>(x.untyped_data()),
                           static_cast<const T*>(weights.untyped_data()),
                           starts,
                           static_cast<T*>(y->untyped_data()),
                           dims[0],
                           dims[1],
                           shape[0],
                           dims[2],
                           shape[1]};
  if (y->element_count() == 0) return ffi::Error::Success();
  return ResampleAll(pool, job, starts);
}

ffi::Error Resample(ffi::ThreadPool pool, ffi::AnyBuffer x, ffi::AnyBuffer weights,
                    ffi::Buffer<ffi::S32> starts, ffi::Result<ffi::AnyBuffer> y) {
  Size rows, n, m, lanes, taps;
  if (!Fits(x, rows, n, lanes) || !Fits(weights, m, taps) || !Fits(starts, m) ||
      !Fits(*y, rows, m, lanes) || taps < 1 || taps > n || !AreAlike(x, weights, *y)) {
    return ffi::Error::InvalidArgument(
        "operands must be [rows, n, lanes], [m, taps] with taps from 1 to n, and [m], and the result "
        "[rows, m, lanes], of one dtype");
  }
  switch (x.element_type()) {
    case ffi::F32: return ResampleFloats<float>(pool, x, weights, starts.typed_data(), y);
    case ffi::F64: return ResampleFloats<double>(pool, x, weights, starts.typed_data(), y);
    default: return ffi::Error::InvalidArgument("operands must be f32 or f64");
  }
}

}  // namespace
}  // namespace weft

XLA_FFI_DEFINE_HANDLER_SYMBOL(weft_resample, weft::Resample,
                              xla::ffi::Ffi::Bind()
                                  .Ctx<xla::ffi::ThreadPool>()
                                  .Arg<xla::ffi::AnyBuffer>()
                                  .Arg<xla::ffi::AnyBuffer>()
                                  .Arg<xla::ffi::Buffer<xla::ffi::S32>>()
                                  .Ret<xla::ffi::AnyBuffer>());
