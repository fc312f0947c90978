// The Cholesky factorization of matrices [..., n, n], stored by rows, on several threads.
//
// The matrix is divided in two until its parts are small. So most of the work is products of
// matrices. Many small matrices are factored side by side, one in each vector lane.

#include <cmath>
#include <limits>
#include <type_traits>

#include "matrices.h"
#include "products.h"
#include "triangular.h"

namespace weft {
namespace {

constexpr int64_t kBeside = 32;  // the most rows of matrices that are factored side by side
constexpr int64_t kRows = 192;   // the most rows of a part that is not divided in two
constexpr int64_t kPart = 48;    // rows that the parts of larger matrices are multiples of

template <class T>
struct FactorJob {
  const T* x;
  T* out;
  int64_t count, n;
  bool symmetrize;
};

}  // namespace
}  // namespace weft

#define WEFT_LANES "cholesky_lanes.h"
#include "widths.h"

namespace weft {
namespace {

// Each returns false if the matrix is not positive definite.
template <class T>
bool Factor(ffi::ThreadPool* pool, T* a, int64_t n, int64_t stride) {
  if (n <= kRows) return WEFT_PICK(FactorRows<T>)(a, n, stride);
  const int64_t half = (n / 2 + kPart - 1) / kPart * kPart, rest = n - half;
  T *const below = a + half * stride, *const corner = below + half;
  if (!Factor(pool, a, half, stride)) return false;
  Solve(pool, System{half, rest, stride, 1, 1, stride, true, false}, a, below);
  Multiply(pool, Dot<T>{1, rest, rest, half, below, below, corner, stride, 1, stride, stride, true, true,
                        true});
  return Factor(pool, corner, rest, stride);
}

template <class T>
ffi::Error FactorAll(ffi::ThreadPool& pool, int64_t count, int64_t n, bool symmetrize, ffi::AnyBuffer x,
                     ffi::Result<ffi::AnyBuffer> out) {
  const T* const from = static_cast<const T*>(x.untyped_data());
  T* const to = static_cast<T*>(out->untyped_data());
  if (n <= kBeside && count * int64_t{sizeof(T)} * 2 > LaneBytes()) {
    const FactorJob<T> job{from, to, count, n, symmetrize};
    ForEachGroup(pool, LaneBytes() / sizeof(T), count, n * n * n / 3,
                 [&](int64_t group) { WEFT_PICK(FactorGroup<T>)(job, group); });
    return ffi::Error::Success();
  }
  ForEachMatrix(pool, count, n * n * n / 3, [&](ffi::ThreadPool* pool, int64_t matrix) {
    const T* const given = from + matrix * n * n;
    T* const a = to + matrix * n * n;
    if (symmetrize) {
      WEFT_PICK(Symmetrize<T>)(given, n, a);
    } else if (given != a) {
      std::copy_n(given, n * n, a);
    }
    const bool found = Factor(pool, a, n, n);
    constexpr T kNan = std::numeric_limits<T>::quiet_NaN();
    for (int64_t i = 0; i < n; ++i) {
      if (!found) std::fill_n(a + i * n, i + 1, kNan);
      std::fill(a + i * n + i + 1, a + (i + 1) * n, T{0});
    }
  });
  return ffi::Error::Success();
}

// Returns the lower factor, with zeros above the diagonal. It is NaN for a matrix that is not positive
// definite. (x + x^T) / 2 is factored if `symmetrize`; otherwise only the lower triangles are read.
ffi::Error Cholesky(ffi::ThreadPool pool, bool symmetrize, ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> out) {
  Leading leading;
  Size n;
  if (!Fits(x, leading, n, n) || !Fits(*out, leading, n, n) || !AreAlike(x, *out)) {
    return ffi::Error::InvalidArgument("the operand must be [.., n, n], and the result like it");
  }
  if (out->element_count() == 0) return ffi::Error::Success();
  switch (x.element_type()) {
    case ffi::F32: return FactorAll<float>(pool, leading.count(), n, symmetrize, x, out);
    case ffi::F64: return FactorAll<double>(pool, leading.count(), n, symmetrize, x, out);
    default: return ffi::Error::InvalidArgument("the operand must be f32 or f64");
  }
}

}  // namespace
}  // namespace weft

XLA_FFI_DEFINE_HANDLER_SYMBOL(weft_cholesky, weft::Cholesky,
                              xla::ffi::Ffi::Bind()
                                  .Ctx<xla::ffi::ThreadPool>()
                                  .Attr<bool>("symmetrize")
                                  .Arg<xla::ffi::AnyBuffer>()
                                  .Ret<xla::ffi::AnyBuffer>());
