// The QR factorization of matrices [..., m, n], stored by rows, on several threads.
//
// The reflections H = I - tau v v^T of a panel of columns are computed one after another. Then all of
// them are applied to the other columns at once, and later to those of Q. Their product is
// I - V T V^T. The inverse of T is N + 1 / D, where D is the diagonal matrix of the taus, and N is the
// part of V^T V above the diagonal (Puglisi, "Modification of the Householder method based on the
// compact WY representation", 1992). So T = (1 + D N)^-1 D. Most of the work is products of matrices.

#include <cmath>
#include <limits>
#include <type_traits>

#include "matrices.h"
#include "products.h"
#include "triangular.h"

namespace weft {
namespace {

constexpr int64_t kPanel = 32;  // the most columns of a panel

}  // namespace
}  // namespace weft

#define WEFT_LANES "qr_lanes.h"
#include "widths.h"

namespace weft {
namespace {

// The reflections of a panel: V^T with rows of `rows` elements, D, and D N above the diagonal.
template <class T>
struct Reflections {
  T *vectors, *taus, *inner;
  int64_t rows, count;
};

// Applies reflections to `columns` columns of a matrix, the first one first if `forward`. `scratch` has
// room for kPanel of its rows.
template <class T>
void Apply(ffi::ThreadPool* pool, const Reflections<T>& h, bool forward, T* a, int64_t columns,
           int64_t stride, T* scratch) {
  if (!columns) return;
  Multiply(pool, Dot<T>{1, h.count, columns, h.rows, h.vectors, a, scratch, h.rows, 1, stride, columns,
                        false});
  const auto scale = [&] {
    for (int64_t i = 0; i < h.count; ++i) {
      for (int64_t j = 0; j < columns; ++j) scratch[i * columns + j] *= h.taus[i];
    }
  };
  if (!forward) scale();
  const System transposed{h.count, columns, 1, h.count, columns, 1, true, true};
  const System plain{h.count, columns, h.count, 1, columns, 1, false, true};
  Solve(pool, forward ? transposed : plain, h.inner, scratch);
  if (forward) scale();
  Multiply(pool, Dot<T>{1, h.rows, columns, h.count, h.vectors, scratch, a, 1, h.rows, columns, stride,
                        false, true});
}

// Factors one matrix. `q` has `wide` columns and `r` has as many rows. Returns false if there is no
// memory.
template <class T>
bool Factor(ffi::ThreadPool* pool, const T* x, int64_t m, int64_t n, int64_t wide, T* q, T* r) {
  const int64_t steps = std::min(m, n), widest = std::max(n, wide);
  const auto memory = Allocate<T>(m * n + steps * (m + kPanel + 1) + kPanel * widest);
  if (!memory) return false;
  T *const a = memory.get(), *const vectors = a + m * n, *const taus = vectors + steps * m;
  T *const inner = taus + steps, *const scratch = inner + steps * kPanel;
  std::copy_n(x, m * n, a);
  const auto panel = [&](int64_t first) {
    const int64_t count = std::min(kPanel, steps - first);
    return Reflections<T>{vectors + first * m, taus + first, inner + first * kPanel, m - first, count};
  };
  for (int64_t first = 0; first < steps; first += kPanel) {
    const auto h = panel(first);
    T* const corner = a + first * n + first;
    WEFT_PICK(FactorPanel<T>)(corner, h.rows, h.count, n, h.taus, h.vectors);
    Multiply(pool, Dot<T>{1, h.count, h.count, h.rows, h.vectors, h.vectors, h.inner, h.rows, 1, h.rows,
                          h.count, true});
    for (int64_t i = 0; i < h.count; ++i) {
      for (int64_t j = i + 1; j < h.count; ++j) h.inner[i * h.count + j] *= h.taus[i];
    }
    Apply(pool, h, true, corner + h.count, n - first - h.count, n, scratch);
  }
  for (int64_t i = 0; i < wide; ++i) {
    const int64_t zeros = std::min(i, n);
    std::fill_n(r + i * n, i < steps ? zeros : n, T{0});
    if (i < steps) std::copy(a + i * n + zeros, a + (i + 1) * n, r + i * n + zeros);
  }
  std::fill_n(q, m * wide, T{0});
  for (int64_t i = 0; i < wide; ++i) q[i * wide + i] = 1;
  for (int64_t first = (steps - 1) / kPanel * kPanel; first >= 0; first -= kPanel) {
    Apply(pool, panel(first), false, q + first * wide + first, wide - first, wide, scratch);
  }
  return true;
}

template <class T>
ffi::Error FactorAll(ffi::ThreadPool& pool, int64_t count, int64_t m, int64_t n, int64_t wide,
                     ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> q, ffi::Result<ffi::AnyBuffer> r) {
  const T* const from = static_cast<const T*>(x.untyped_data());
  T *const left = static_cast<T*>(q->untyped_data()), *const right = static_cast<T*>(r->untyped_data());
  std::atomic<bool> failed{false};
  ForEachMatrix(pool, count, m * wide * std::min(m, n), [&](ffi::ThreadPool* pool, int64_t i) {
    if (!Factor(pool, from + i * m * n, m, n, wide, left + i * m * wide, right + i * wide * n)) {
      failed.store(true);
    }
  });
  return failed ? OutOfMemory() : ffi::Error::Success();
}

// Returns Q with min(m, n) columns, or m of them, and R.
ffi::Error Qr(ffi::ThreadPool pool, ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> q,
              ffi::Result<ffi::AnyBuffer> r) {
  Leading leading;
  Size m, n, wide;
  if (!Fits(x, leading, m, n) || !Fits(*q, leading, m, wide) || !Fits(*r, leading, wide, n) ||
      !AreAlike(x, *q, *r) || m < 1 || n < 1 || (wide != m && wide != std::min<int64_t>(m, n))) {
    return ffi::Error::InvalidArgument(
        "the operand must be [.., m, n], not empty, and the results [.., m, k] and [.., k, n], of one "
        "dtype, where k is m or min(m, n)");
  }
  switch (x.element_type()) {
    case ffi::F32: return FactorAll<float>(pool, leading.count(), m, n, wide, x, q, r);
    case ffi::F64: return FactorAll<double>(pool, leading.count(), m, n, wide, x, q, r);
    default: return ffi::Error::InvalidArgument("the operand must be f32 or f64");
  }
}

}  // namespace
}  // namespace weft

XLA_FFI_DEFINE_HANDLER_SYMBOL(weft_qr, weft::Qr,
                              xla::ffi::Ffi::Bind()
                                  .Ctx<xla::ffi::ThreadPool>()
                                  .Arg<xla::ffi::AnyBuffer>()
                                  .Ret<xla::ffi::AnyBuffer>()
                                  .Ret<xla::ffi::AnyBuffer>());
