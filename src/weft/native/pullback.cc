// The derivative of a Cholesky factorization, read backwards, of matrices [..., n, n], on several
// threads.
//
// For a lower triangular L and the cotangent C of L, the cotangent of the matrix is L^-T P L^-1. P is
// the lower triangle of L^T C, with half of its diagonal. Of both products only the blocks that are
// not known to be zero are computed.
//
// The symmetric part of the cotangent takes fewer products: each step of a blocked factorization has a
// derivative, and these are applied from the last step to the first (Murray, "Differentiation of the
// Cholesky decomposition", 2016).

#include "matrices.h"
#include "products.h"
#include "triangular.h"

namespace weft {
namespace {

constexpr int64_t kBase = 96;                // rows of a triangle that is not divided in two
constexpr int64_t kLeast = 48, kMost = 144;  // rows of a band, which is one product
constexpr int64_t kBands = 8;
constexpr int64_t kTriangle = 48;  // the most rows of a factor whose derivative is computed by rows

}  // namespace
}  // namespace weft

#define WEFT_LANES "pullback_lanes.h"
#include "widths.h"

namespace weft {
namespace {

int64_t BandRows(int64_t n) {
  const int64_t rows = (n / kBands + kLeast - 1) / kLeast * kLeast;
  return std::min(kMost, std::max(kLeast, rows));
}

// Writes P. If L is `lower`, a row i of L^T is zero before its element i, so an element of P that is not
// above the diagonal reads no element of C above it.
template <class T>
void HalveProduct(ffi::ThreadPool* pool, bool lower, const T* low, const T* ct, T* out, int64_t n) {
  const int64_t rows = BandRows(n);
  for (int64_t first = 0; first < n; first += rows) {
    const int64_t end = std::min(n, first + rows), begin = lower ? first : 0;
    Dot<T> job{1, end - first, first, n - begin, low + begin * n + first, ct + begin * n, out + first * n,
               1, n, n, n, false};
    if (first > 0) Multiply(pool, job);
    job.n = end - first, job.right += first, job.out += first, job.lower = true;
    Multiply(pool, job);
  }
  for (int64_t i = 0; i < n; ++i) {
    out[i * n + i] *= T(0.5);
    std::fill(out + i * n + i + 1, out + (i + 1) * n, T{0});
  }
}

// Replaces the lower triangular x by x L^-1, which is lower triangular too.
template <class T>
void SolveTriangle(ffi::ThreadPool* pool, const T* low, T* x, int64_t n, int64_t stride) {
  if (n <= kBase) return Solve(pool, System{n, n, 1, stride, 1, stride, false, false}, low, x);
  const int64_t half = (n / 2 + kLeast - 1) / kLeast * kLeast, rest = n - half, rows = BandRows(rest);
  const int64_t below = half * stride, corner = below + half;
  SolveTriangle(pool, low, x, half, stride);
  SolveTriangle(pool, low + corner, x + corner, rest, stride);
  for (int64_t first = 0; first < rest; first += rows) {  // a band of the corner is zero beyond its end
    const int64_t end = std::min(rest, first + rows), at = first * stride;
    Multiply(pool, Dot<T>{1, end - first, half, end, x + corner + at, low + below, x + below + at, stride, 1,
                          stride, stride, false, true});
  }
  Solve(pool, System{half, rest, 1, stride, 1, stride, false, false}, low, x + below);
}

// Replaces the lower triangle of `ct`, half of the cotangent of L, by the symmetric cotangent of the
// matrix. With B the part of L below its first block, and W the cotangent of the last block of the
// matrix, the cotangent of the block below the first one is (C - W B) L^-1, for half of its cotangent C.
template <class T>
void PullSymmetric(ffi::ThreadPool* pool, const T* low, T* ct, int64_t n, int64_t stride) {
  if (n <= kTriangle) return WEFT_PICK(PullTriangle<T>)(low, ct, n, stride);
  const int64_t half = (n / 2 + kTriangle - 1) / kTriangle * kTriangle, rest = n - half;
  const int64_t below = half * stride, corner = below + half;
  PullSymmetric(pool, low + corner, ct + corner, rest, stride);
  Multiply(pool, Dot<T>{1, rest, half, rest, ct + corner, low + below, ct + below, stride, 1, stride, stride,
                        false, true});
  Solve(pool, System{half, rest, 1, stride, 1, stride, false, false}, low, ct + below);
  Multiply(pool, Dot<T>{1, half, half, rest, ct + below, low + below, ct, 1, stride, stride, stride, false,
                        true, true});
  PullSymmetric(pool, low, ct, half, stride);
  WEFT_PICK(CopyTransposed<T>)(ct + below, stride, rest, half, ct + half, stride);
}

template <class T>
void PullAll(ffi::ThreadPool& pool, int64_t count, int64_t n, bool product, bool solve, bool lower, bool symmetric,
             ffi::AnyBuffer low, ffi::AnyBuffer ct, ffi::Result<ffi::AnyBuffer> out) {
  const T* const factors = static_cast<const T*>(low.untyped_data());
  const T* const given = static_cast<const T*>(ct.untyped_data());
  T* const made = static_cast<T*>(out->untyped_data());
  ForEachMatrix(pool, count, 2 * n * n * n, [&](ffi::ThreadPool* pool, int64_t matrix) {
    const int64_t at = matrix * n * n;
    const T *const l = factors + at, *const c = given + at;
    T* const to = made + at;
    if (symmetric) {
      for (int64_t i = 0; i < n; ++i) {
        for (int64_t j = 0; j <= i; ++j) to[i * n + j] = c[i * n + j] * T(0.5);
      }
      return PullSymmetric(pool, l, to, n, n);
    }
    if (product) {
      HalveProduct(pool, lower, l, c, to, n);
    } else if (c != to) {
      std::copy_n(c, n * n, to);
    }
    if (!solve) return;
    SolveTriangle(pool, l, to, n, n);
    Solve(pool, System{n, n, 1, n, n, 1, false, false}, l, to);
  });
}

// Returns P, of the factor `low` and its cotangent `ct`, if `product`. If `solve`, L^-T P L^-1 follows,
// of a lower triangular P that is `ct` if not `product`. Only the product reads elements of `low` above the
// diagonal, unless they are zeros, as `lower` says. If `symmetric`, it returns the symmetric part of
// L^-T P L^-1, and reads no element above the diagonal.
ffi::Error Pull(ffi::ThreadPool pool, bool product, bool solve, bool lower, bool symmetric, ffi::AnyBuffer low,
                ffi::AnyBuffer ct, ffi::Result<ffi::AnyBuffer> out) {
  Leading leading;
  Size n;
  if (!Fits(low, leading, n, n) || !Fits(ct, leading, n, n) || !Fits(*out, leading, n, n) ||
      !AreAlike(low, ct, *out)) {
    return ffi::Error::InvalidArgument("operands must be [.., n, n], and the result like them");
  }
  if (out->element_count() == 0) return ffi::Error::Success();
  if (product && out->untyped_data() == ct.untyped_data()) {
    return ffi::Error::InvalidArgument("the result must not take the buffer of the cotangent");
  }
  if (symmetric && !(product && solve && lower)) {
    return ffi::Error::InvalidArgument("the symmetric part must be of the whole result, of a lower factor");
  }
  const auto run = [&](auto zero) {
    PullAll<decltype(zero)>(pool, leading.count(), n, product, solve, lower, symmetric, low, ct, out);
    return ffi::Error::Success();
  };
  switch (low.element_type()) {
    case ffi::F32: return run(float{});
    case ffi::F64: return run(double{});
    default: return ffi::Error::InvalidArgument("operands must be f32 or f64");
  }
}

}  // namespace
}  // namespace weft

XLA_FFI_DEFINE_HANDLER_SYMBOL(weft_cholesky_pullback, weft::Pull,
                              xla::ffi::Ffi::Bind()
                                  .Ctx<xla::ffi::ThreadPool>()
                                  .Attr<bool>("product")
                                  .Attr<bool>("solve")
                                  .Attr<bool>("lower")
                                  .Attr<bool>("symmetric")
                                  .Arg<xla::ffi::AnyBuffer>()
                                  .Arg<xla::ffi::AnyBuffer>()
                                  .Ret<xla::ffi::AnyBuffer>());
