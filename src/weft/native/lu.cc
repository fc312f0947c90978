// The LU factorization of matrices [..., m, n], stored by rows, with partial pivoting, on several
// threads.
//
// The columns are divided in two until there are few. So most of the work is products of matrices. A
// column of zeros is left unchanged. Many small matrices are factored side by side, one in each
// vector lane.

#include <cmath>
#include <limits>
#include <utility>

#include "matrices.h"
#include "products.h"
#include "triangular.h"

namespace weft {
namespace {

constexpr int64_t kBeside = 32;  // the most rows and columns of matrices that are factored side by side
constexpr int64_t kPanel = 16;   // the most columns that are not divided in two

// A factorization of matrices [count, m, n], which are stored by rows.
template <class T>
struct FactorJob {
  const T* x;
  T* out;
  int32_t *pivots, *order;
  int64_t count, m, n;
};

}  // namespace
}  // namespace weft

#define WEFT_LANES "lu_lanes.h"
#include "widths.h"

namespace weft {
namespace {

// Exchanges rows k and pivots[k] for k from 0 to steps - 1, one after another.
template <class T>
void ExchangeRows(T* a, int64_t columns, int64_t stride, const int32_t* pivots, int64_t steps) {
  for (int64_t k = 0; k < steps; ++k) {
    T* const row = a + k * stride;
    if (pivots[k] != k) std::swap_ranges(row, row + columns, a + pivots[k] * stride);
  }
}

// Factors a part of a matrix, whose rows are exchanged in this part only. `scratch` has room for
// kPanel columns.
template <class T>
void Factor(ffi::ThreadPool* pool, T* a, int64_t m, int64_t n, int64_t stride, int32_t* pivots, T* scratch) {
  if (n <= kPanel) return WEFT_PICK(FactorPanel<T>)(a, m, n, stride, pivots, scratch);
  const int64_t steps = std::min(m, n);
  const int64_t half = steps <= kPanel ? steps : (steps / 2 + kPanel - 1) / kPanel * kPanel;
  T *const right = a + half, *const below = a + half * stride;
  Factor(pool, a, m, half, stride, pivots, scratch);
  ExchangeRows(right, n - half, stride, pivots, half);
  Solve(pool, System{half, n - half, stride, 1, stride, 1, true, true}, a, right);
  if (m == half) return;
  T* const corner = below + half;
  Multiply(pool, Dot<T>{1, m - half, n - half, half, below, right, corner, stride, 1, stride, stride, false,
                        true});
  Factor(pool, corner, m - half, n - half, stride, pivots + half, scratch);
  ExchangeRows(below, half, stride, pivots + half, steps - half);
  for (int64_t k = half; k < steps; ++k) pivots[k] += static_cast<int32_t>(half);
}

template <class T>
ffi::Error FactorAll(ffi::ThreadPool& pool, int64_t count, int64_t m, int64_t n, ffi::AnyBuffer x,
                     ffi::Result<ffi::AnyBuffer> out, int32_t* pivots, int32_t* order) {
  const int64_t k = std::min(m, n);
  const T* const from = static_cast<const T*>(x.untyped_data());
  T* const to = static_cast<T*>(out->untyped_data());
  if (std::max(m, n) <= kBeside && count * int64_t{sizeof(T)} * 2 > LaneBytes()) {
    const FactorJob<T> job{from, to, pivots, order, count, m, n};
    ForEachGroup(pool, LaneBytes() / sizeof(T), count, m * n * k,
                 [&](int64_t group) { WEFT_PICK(FactorGroup<T>)(job, group); });
    return ffi::Error::Success();
  }
  std::atomic<bool> failed{false};
  ForEachMatrix(pool, count, m * n * k, [&](ffi::ThreadPool* pool, int64_t i) {
    T* const a = to + i * m * n;
    int32_t *const exchanges = pivots + i * k, *const rows = order + i * m;
    if (from != to) std::copy_n(from + i * m * n, m * n, a);
    const auto scratch = Allocate<T>(kPanel * m);
    if (!scratch) return failed.store(true);
    Factor(pool, a, m, n, n, exchanges, scratch.get());
    for (int64_t j = 0; j < m; ++j) rows[j] = static_cast<int32_t>(j);
    for (int64_t j = 0; j < k; ++j) std::swap(rows[j], rows[exchanges[j]]);
  });
  return failed ? OutOfMemory() : ffi::Error::Success();
}

ffi::Error Lu(ffi::ThreadPool pool, ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> out,
              ffi::Result<ffi::Buffer<ffi::S32>> pivots, ffi::Result<ffi::Buffer<ffi::S32>> order) {
  Leading leading;
  Size m, n;
  if (!Fits(x, leading, m, n) || !Fits(*out, leading, m, n) || m < 1 || n < 1 || m > INT32_MAX || !AreAlike(x, *out) ||
      !Fits(*pivots, leading, Size(std::min<int64_t>(m, n))) || !Fits(*order, leading, m)) {
    return ffi::Error::InvalidArgument(
        "the operand must be [.., m, n], not empty, and results like it, [.., min(m, n)] and [.., m]");
  }
  const int64_t count = leading.count();
  int32_t *const p = pivots->typed_data(), *const o = order->typed_data();
  switch (x.element_type()) {
    case ffi::F32: return FactorAll<float>(pool, count, m, n, x, out, p, o);
    case ffi::F64: return FactorAll<double>(pool, count, m, n, x, out, p, o);
    default: return ffi::Error::InvalidArgument("the operand must be f32 or f64");
  }
}

// --- triangular systems ------------------------------------------------------------------------

}  // namespace
}  // namespace weft

XLA_FFI_DEFINE_HANDLER_SYMBOL(weft_lu, weft::Lu,
                              xla::ffi::Ffi::Bind()
                                  .Ctx<xla::ffi::ThreadPool>()
                                  .Arg<xla::ffi::AnyBuffer>()
                                  .Ret<xla::ffi::AnyBuffer>()
                                  .Ret<xla::ffi::Buffer<xla::ffi::S32>>()
                                  .Ret<xla::ffi::Buffer<xla::ffi::S32>>());
