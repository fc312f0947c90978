// Products of a matrix and a vector: [m, k] or [k, m] with [k].

#include "tiles.h"

namespace weft {
namespace {

constexpr int64_t kColumns = 512;  // largest number of sums in a block, if columns are strided

template <class T>
struct Product {
  int64_t m, k;
  const T *matrix, *vector;
  T* out;
  bool turned;   // [k, m]
  int64_t rows;  // of a part

  template <int kBytes>
  WEFT_INLINE void Run(int64_t part) const;
};

// The sums of some rows' products, four rows at once.
template <class T, int kBytes>
WEFT_INLINE void MultiplyRows(const Product<T>& job, int64_t first, int64_t last) {
  using V = typename Vector<T, kBytes>::V;
  constexpr int64_t kLanes = Vector<T, kBytes>::kLanes, kRows = 4;
  const int64_t whole = job.k / (2 * kLanes) * 2 * kLanes;
  for (int64_t row = first; row < last; row += kRows) {
    const T* from[kRows];
    V sums[kRows][2] = {};
    for (int64_t r = 0; r < kRows; ++r) from[r] = job.matrix + std::min(row + r, last - 1) * job.k;
    for (int64_t i = 0; i < whole; i += 2 * kLanes) {
      const V x = Load<V>(job.vector + i), y = Load<V>(job.vector + i + kLanes);
      for (int64_t r = 0; r < kRows; ++r) {
        sums[r][0] += x * Load<V>(from[r] + i);
        sums[r][1] += y * Load<V>(from[r] + i + kLanes);
      }
    }
    for (int64_t r = 0; r < std::min(kRows, last - row); ++r) {
      const V both = sums[r][0] + sums[r][1];
      T sum = 0;
      for (int64_t lane = 0; lane < kLanes; ++lane) sum += both[lane];
      for (int64_t i = whole; i < job.k; ++i) sum += job.vector[i] * from[r][i];
      job.out[row + r] = sum;
    }
  }
}

// Computes the sums of a block of columns. Each pass adds four rows.
template <class T, int kBytes>
WEFT_INLINE void MultiplyColumns(const Product<T>& job, int64_t first, int64_t count) {
  using V = typename Vector<T, kBytes>::V;
  constexpr int64_t kLanes = Vector<T, kBytes>::kLanes, kRows = 4;
  alignas(64) T sums[kColumns] = {};
  const int64_t whole = count / kLanes * kLanes;
  for (int64_t i = 0; i < job.k; i += kRows) {
    const T* from[kRows];
    T x[kRows];
    for (int64_t r = 0; r < kRows; ++r) {
      from[r] = job.matrix + std::min(i + r, job.k - 1) * job.m + first;
      x[r] = i + r < job.k ? job.vector[i + r] : T{0};
    }
    const int64_t used = std::min(kRows, job.k - i);
    for (int64_t j = 0; used == kRows && j < whole; j += kLanes) {
      V sum = Load<V>(sums + j);
      for (int64_t r = 0; r < kRows; ++r) sum += x[r] * Load<V>(from[r] + j);
      std::memcpy(sums + j, &sum, sizeof(V));
    }
    for (int64_t j = used == kRows ? whole : 0; j < count; ++j) {
      for (int64_t r = 0; r < used; ++r) sums[j] += x[r] * from[r][j];
    }
  }
  std::memcpy(job.out + first, sums, count * sizeof(T));
}

template <class T>
template <int kBytes>
WEFT_INLINE void Product<T>::Run(int64_t part) const {
  const int64_t first = part * rows, count = std::min(rows, m - first);
  turned ? MultiplyColumns<T, kBytes>(*this, first, count)
         : MultiplyRows<T, kBytes>(*this, first, first + count);
}

ffi::Error Multiply(ffi::ThreadPool pool, ffi::AnyBuffer matrix, ffi::AnyBuffer vector,
                    ffi::Result<ffi::AnyBuffer> out, bool turned) {
  Size m, k;
  if (!Fits(*out, m) || !Fits(vector, k) || k == 0 || !AreAlike(matrix, vector, *out) ||
      !(turned ? Fits(matrix, k, m) : Fits(matrix, m, k))) {
    return ffi::Error::InvalidArgument(
        "operands must be [m, k], or [k, m] if `turned`, and [k] with k above 0, and the result [m], of "
        "one dtype");
  }
  const auto run = [&](auto zero) {
    using T = decltype(zero);
    static const auto part = RunWith<Product<T>>(VectorBytes());
    const int64_t columns = std::clamp<int64_t>(m / 512 * 64, 256, kColumns);
    const int64_t rows = turned ? columns : std::max<int64_t>(4, kPiece / k / 4 * 4);
    const Product<T> job{m, k, static_cast<const T*>(matrix.untyped_data()),
                         static_cast<const T*>(vector.untyped_data()),
                         static_cast<T*>(out->untyped_data()), turned, rows};
    ForEach(pool, (m + rows - 1) / rows, [&](int64_t i) { part(job, i); });
    return ffi::Error::Success();
  };
  switch (matrix.element_type()) {
    case ffi::F32: return run(float{});
    case ffi::F64: return run(double{});
    default: return ffi::Error::InvalidArgument("operands must be f32 or f64");
  }
}

}  // namespace
}  // namespace weft

XLA_FFI_DEFINE_HANDLER_SYMBOL(weft_matvec, weft::Multiply,
                              xla::ffi::Ffi::Bind()
                                  .Ctx<xla::ffi::ThreadPool>()
                                  .Arg<xla::ffi::AnyBuffer>()
                                  .Arg<xla::ffi::AnyBuffer>()
                                  .Ret<xla::ffi::AnyBuffer>()
                                  .Attr<bool>("turned"));
