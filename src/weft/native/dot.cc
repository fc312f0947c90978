// Products of batches of matrices: [batch, m, k] or [batch, k, m] with [batch, k, n] or [batch, n, k].

#include "tiles.h"

namespace weft {
namespace {

constexpr int64_t kResults = 24576;  // that a thread takes at once, in rows
constexpr int64_t kUnits = 8;        // matrices of which each is for one thread

template <class T>
struct Dot {
  int64_t batch, m, n, k;
  const T *left, *right;
  T *packed, *out;  // a right matrix in panels of columns
  int64_t parts, rows;  // of the rows, so many in each, or panels of columns
  bool left_turned, narrow;

  template <int kBytes>
  WEFT_INLINE void Run(int64_t part) const;
};

// A part of a product's rows, left factors lying along what is added up.
template <class T, int kBytes, int kColumns>
WEFT_INLINE void MultiplyRows(const Dot<T>& job, int64_t part) {
  using V = typename Vector<T, kBytes>::V;
  constexpr int64_t kWide = kColumns * Vector<T, kBytes>::kLanes;
  const int64_t first = part * job.rows, last = std::min(job.m, first + job.rows);
  for (int64_t f = 0; f < job.n; f += kWide) {
    for (int64_t row = first; row < last; row += kPixels) {
      const T* from[kPixels];
      for (int64_t r = 0; r < kPixels; ++r) from[r] = job.left + std::min(row + r, last - 1) * job.k;
      StoreTile<V, kColumns>(from, 1, job.k, job.packed + f * job.k, job.out + row * job.n + f,
                             job.n, last - row, job.n - f);
    }
  }
}

// A panel of a product's columns, left factors lying beside each other.
template <class T, int kBytes, int kColumns>
WEFT_INLINE void MultiplyColumns(const Dot<T>& job, int64_t part) {
  using V = typename Vector<T, kBytes>::V;
  constexpr int64_t kWide = kColumns * Vector<T, kBytes>::kLanes;
  const int64_t first = part * kWide, columns = std::min(kWide, job.n - first);
  T* const out = job.out + first;
  for (int64_t i = 0; i < job.m; ++i) std::memset(out + i * job.n, 0, columns * sizeof(T));
  Segment<T> segment{job.left, job.packed + first * job.k, job.k};
  AddTiles<V, kColumns>(&segment, 1, job.m, kWide, job.m, out, job.n, columns);
}

template <class T>
template <int kBytes>
WEFT_INLINE void Dot<T>::Run(int64_t part) const {
  if (left_turned) {
    narrow ? MultiplyColumns<T, kBytes, 1>(*this, part)
           : MultiplyColumns<T, kBytes, kVectors>(*this, part);
  } else {
    narrow ? MultiplyRows<T, kBytes, 1>(*this, part)
           : MultiplyRows<T, kBytes, kVectors>(*this, part);
  }
}

template <class T>
ffi::Error MultiplyAll(ffi::ThreadPool& pool, Dot<T> job, bool right_turned) {
  static const int bytes = VectorBytes();
  const Panels layout(job.n, bytes / sizeof(T));
  const int64_t wide = layout.wide, panels = layout.count;
  job.narrow = layout.narrow;
  const auto run = RunWith<Dot<T>>(bytes);
  const auto pack = [&](const Dot<T>& one, int64_t panel) {
    const int64_t first = panel * wide, row = right_turned ? 1 : job.n;
    const int64_t column = right_turned ? job.k : 1;
    PackPanel(one.right + first * column, row, column, job.k, std::min(wide, job.n - first), wide,
              one.packed + first * job.k);
  };
  job.rows = std::max<int64_t>(1, kResults / job.n / kPixels) * kPixels;
  const auto matrix = [&](int64_t i, T* packed) {  // with its own parts alone
    Dot<T> one = job;
    one.left += i * job.m * job.k, one.right += i * job.n * job.k, one.out += i * job.m * job.n;
    one.packed = packed;
    one.parts = job.left_turned ? panels : (job.m + job.rows - 1) / job.rows;
    return one;
  };
  const int64_t size = panels * wide * job.k;
  if (job.batch >= kUnits) {
    const int64_t together = std::max<int64_t>(1, 16 * kPiece / (job.m * job.n * job.k));
    std::atomic<bool> done{true};
    ForEach(pool, (job.batch + together - 1) / together, [&](int64_t piece) {
      const auto packed = Allocate<T>(size);
      if (!packed) return void(done = false);
      for (int64_t i = piece * together; i < std::min(job.batch, (piece + 1) * together); ++i) {
        const Dot<T> one = matrix(i, packed.get());
        for (int64_t panel = 0; panel < panels; ++panel) pack(one, panel);
        for (int64_t part = 0; part < one.parts; ++part) run(one, part);
      }
    });
    return done ? ffi::Error::Success() : OutOfMemory("weft.dot");
  }
  const auto packed = Allocate<T>(size);
  if (!packed) return OutOfMemory("weft.dot");
  for (int64_t i = 0; i < job.batch; ++i) {
    const Dot<T> one = matrix(i, packed.get());
    ForEach(pool, panels, [&](int64_t panel) { pack(one, panel); });
    ForEach(pool, one.parts, [&](int64_t part) { run(one, part); });
  }
  return ffi::Error::Success();
}

ffi::Error DotAll(ffi::ThreadPool pool, ffi::AnyBuffer left, ffi::AnyBuffer right,
                  ffi::Result<ffi::AnyBuffer> out, bool left_turned, bool right_turned) {
  const auto x = left.dimensions(), y = right.dimensions(), z = out->dimensions();
  if (x.size() != 3 || y.size() != 3 || z.size() != 3 || x[0] != z[0] || y[0] != z[0] ||
      x[left_turned ? 2 : 1] != z[1] || y[right_turned ? 1 : 2] != z[2] ||
      x[left_turned ? 1 : 2] != y[right_turned ? 2 : 1]) {
    return ffi::Error::InvalidArgument("weft.dot: sizes do not fit together");
  }
  const int64_t k = x[left_turned ? 1 : 2];
  const auto run = [&](auto zero) {
    using T = decltype(zero);
    const Dot<T> job{z[0], z[1], z[2], k, static_cast<const T*>(left.untyped_data()),
                     static_cast<const T*>(right.untyped_data()), nullptr,
                     static_cast<T*>(out->untyped_data()), 1, 0, left_turned, false};
    return MultiplyAll(pool, job, right_turned);
  };
  switch (left.element_type()) {
    case ffi::F32: return run(float{});
    case ffi::F64: return run(double{});
    default: return ffi::Error::InvalidArgument("weft.dot: no such dtype");
  }
}

}  // namespace
}  // namespace weft

XLA_FFI_DEFINE_HANDLER_SYMBOL(weft_dot, weft::DotAll,
                              xla::ffi::Ffi::Bind()
                                  .Ctx<xla::ffi::ThreadPool>()
                                  .Arg<xla::ffi::AnyBuffer>()
                                  .Arg<xla::ffi::AnyBuffer>()
                                  .Ret<xla::ffi::AnyBuffer>()
                                  .Attr<bool>("left_turned")
                                  .Attr<bool>("right_turned"));
