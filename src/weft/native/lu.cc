// The LU factorization of many small matrices [..., m, n], stored row by row, spread over threads.
//
// LAPACK is called for one matrix after another, and of a matrix of eight by eight most of its time
// is the call's. Right-looking, with the largest pivot of each column, as LAPACK's getf2; a column of
// zeros is left as it is.

#include <cmath>
#include <utility>

#include "common.h"

namespace weft {
namespace {


template <class T>
WEFT_WIDE void Factor(T* a, int32_t* pivots, int32_t* order, int64_t m, int64_t n) {
  for (int64_t i = 0; i < m; ++i) order[i] = static_cast<int32_t>(i);
  for (int64_t k = 0; k < std::min(m, n); ++k) {
    T* const top = a + k * n;
    int64_t pivot = k;
    for (int64_t i = k + 1; i < m; ++i) {
      if (std::fabs(a[i * n + k]) > std::fabs(a[pivot * n + k])) pivot = i;
    }
    pivots[k] = static_cast<int32_t>(pivot);
    if (pivot != k) {
      std::swap(order[k], order[pivot]);
      std::swap_ranges(top, top + n, a + pivot * n);
    }
    if (top[k] == T{0}) continue;
    for (int64_t i = k + 1; i < m; ++i) {
      T* const row = a + i * n;
      const T factor = row[k] / top[k];
      row[k] = factor;
      for (int64_t j = k + 1; j < n; ++j) row[j] -= factor * top[j];
    }
  }
}

template <class T>
ffi::Error FactorAll(ffi::ThreadPool& pool, ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> out,
                     int32_t* pivots, int32_t* order) {
  const auto dims = x.dimensions();
  const int64_t m = dims[dims.size() - 2], n = dims[dims.size() - 1], k = std::min(m, n);
  if (m * n == 0) return ffi::Error::Success();
  const int64_t count = x.element_count() / (m * n);
  const int64_t together = std::max<int64_t>(1, kPiece / (m * n * k));
  const T* const from = static_cast<const T*>(x.untyped_data());
  T* const to = static_cast<T*>(out->untyped_data());
  ForEach(pool, (count + together - 1) / together, [&](int64_t piece) {
    const int64_t first = piece * together, last = std::min(count, first + together);
    if (from != to) std::copy(from + first * m * n, from + last * m * n, to + first * m * n);
    for (int64_t i = first; i < last; ++i) {
      Factor(to + i * m * n, pivots + i * k, order + i * m, m, n);
    }
  });
  return ffi::Error::Success();
}

ffi::Error Lu(ffi::ThreadPool pool, ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> out,
              ffi::Result<ffi::Buffer<ffi::S32>> pivots, ffi::Result<ffi::Buffer<ffi::S32>> order) {
  if (x.dimensions().size() < 2) return ffi::Error::InvalidArgument("weft.lu: must be matrices");
  int32_t *const p = pivots->typed_data(), *const o = order->typed_data();
  switch (x.element_type()) {
    case ffi::F32: return FactorAll<float>(pool, x, out, p, o);
    case ffi::F64: return FactorAll<double>(pool, x, out, p, o);
    default: return ffi::Error::InvalidArgument("weft.lu: no such dtype");
  }
}

}  // namespace
}  // namespace weft

XLA_FFI_DEFINE_HANDLER_SYMBOL(weft_lu, weft::Lu,
                              xla::ffi::Ffi::Bind()
                                  .Ctx<xla::ffi::ThreadPool>()
                                  .Arg<xla::ffi::AnyBuffer>()
                                  .Ret<xla::ffi::AnyBuffer>()
                                  .Ret<xla::ffi::Buffer<xla::ffi::S32>>()
                                  .Ret<xla::ffi::Buffer<xla::ffi::S32>>());
