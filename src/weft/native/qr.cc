// The QR factorization of matrices [..., m, n], stored by rows, on several threads.
//
// The reflections H = I - tau v v^T of a panel of columns are computed one after another. Then all of
// them are applied to the other columns at once, and later to those of Q. Their product is
// I - V T V^T. The inverse of T is N + 1 / D, where D is the diagonal matrix of the taus, and N is the
// part of V^T V above the diagonal (Puglisi, "Modification of the Householder method based on the
// compact WY representation", 1992). So T = (1 + D N)^-1 D. Most of the work is products of matrices. Many
// small matrices are factored side by side, one in each vector lane.

#include <cmath>
#include <limits>
#include <type_traits>

#include "matrices.h"
#include "products.h"
#include "triangular.h"

namespace weft {
namespace {

constexpr int64_t kBeside = 32;  // the most rows and columns of matrices that are factored side by side
constexpr int64_t kPanel = 32;   // the most columns of a panel

// The columns of a block: the matrix beside it is read and written once for each block.
int64_t BlockColumns(int64_t columns) {
  return columns < 512 ? kPanel : columns < 1024 ? 2 * kPanel : 4 * kPanel;
}

// Products that are added up at once. Small sums are more exact, and slower. LAPACK applies the
// reflections of fewer columns one by one, with small sums too.
int64_t CountTerms(int64_t columns) { return columns < 128 ? 32 : 128; }

// A factorization of matrices [count, m, n]. Q has `wide` columns, and R has as many rows.
template <class T>
struct FactorJob {
  const T* x;
  T *q, *r;
  int64_t count, m, n, wide;
};

}  // namespace
}  // namespace weft

#define WEFT_LANES "qr_lanes.h"
#include "widths.h"

namespace weft {
namespace {

// The reflections of some columns: V^T with rows of `rows` elements, which are `stride` apart, D, and
// (D N)^T below the diagonal. The rows of V are stored in reverse order, because sums are more exact if the
// largest factor, which is the first one of a reflection, comes last. `terms` products are added up at once.
template <class T>
struct Reflections {
  T *vectors, *taus, *inner;
  int64_t rows, count, stride, terms;
};

// Computes `inner` from the rest.
template <class T>
void Combine(ffi::ThreadPool* pool, const Reflections<T>& h) {
  Multiply(pool, Dot<T>{1, h.count, h.count, h.rows, h.vectors, h.vectors, h.inner, h.stride, 1, h.stride,
                        h.count, true, false, true, h.terms});
  for (int64_t i = 0; i < h.count; ++i) {
    for (int64_t j = 0; j < i; ++j) h.inner[i * h.count + j] *= h.taus[j];
  }
}

// Applies reflections to `columns` columns of a matrix, the first one first if `forward`. `scratch` has
// room for as many of its rows as there are reflections.
template <class T>
void Apply(ffi::ThreadPool* pool, const Reflections<T>& h, bool forward, T* a, int64_t columns,
           int64_t stride, T* scratch) {
  if (!columns) return;
  T* const last = a + (h.rows - 1) * stride;
  Multiply(pool, Dot<T>{1, h.count, columns, h.rows, h.vectors, last, scratch, h.stride, 1, -stride, columns,
                        false, false, false, h.terms});
  const auto scale = [&] {
    for (int64_t i = 0; i < h.count; ++i) {
      for (int64_t j = 0; j < columns; ++j) scratch[i * columns + j] *= h.taus[i];
    }
  };
  if (!forward) scale();
  const System transposed{h.count, columns, h.count, 1, columns, 1, true, true};
  const System plain{h.count, columns, 1, h.count, columns, 1, false, true};
  Solve(pool, forward ? transposed : plain, h.inner, scratch);
  if (forward) scale();
  Multiply(pool, Dot<T>{1, h.rows, columns, h.count, h.vectors, scratch, last, 1, h.stride, columns, -stride,
                        false, true});
}

// Factors one matrix. `q` has `wide` columns and `r` has as many rows. Returns false if there is no
// memory.
template <class T>
bool Factor(ffi::ThreadPool* pool, const T* x, int64_t m, int64_t n, int64_t wide, T* q, T* r) {
  const int64_t steps = std::min(m, n), widest = std::max(n, wide), block = BlockColumns(steps);
  const int64_t stride = m | 16;  // so that rows do not take the same places of the L1 cache
  const int64_t terms = CountTerms(steps);
  const auto memory = Allocate<T>(m * n + steps * (stride + block + 1) + block * widest);
  if (!memory) return false;
  T *const a = memory.get(), *const vectors = a + m * n, *const taus = vectors + steps * stride;
  T *const inner = taus + steps, *const scratch = inner + steps * block;
  std::copy_n(x, m * n, a);
  const auto take = [&](int64_t first, int64_t most) {
    const int64_t count = std::min(most, steps - first);
    T* const at = vectors + first * stride;
    return Reflections<T>{at, taus + first, inner + first * block, m - first, count, stride, terms};
  };
  for (int64_t first = 0; first < steps; first += block) {
    const auto all = take(first, block);
    const int64_t end = first + all.count;
    for (int64_t at = first; at < end; at += kPanel) {
      const auto h = take(at, kPanel);
      T* const corner = a + at * n + at;
      WEFT_PICK(FactorPanel<T>)(corner, h.rows, h.count, n, h.taus, h.vectors, stride);
      for (int64_t k = 0; k < h.count; ++k) {
        T *const row = h.vectors + k * stride, *const end = row + h.rows;
        std::reverse(row, end);
        std::fill_n(end, at - first, T{0});
      }
      if (at + h.count == end) break;
      Combine(pool, h);
      Apply(pool, h, true, corner + h.count, end - at - h.count, n, scratch);
    }
    Combine(pool, all);
    Apply(pool, all, true, a + first * n + end, n - end, n, scratch);
  }
  for (int64_t i = 0; i < wide; ++i) {
    const int64_t zeros = std::min(i, n);
    std::fill_n(r + i * n, i < steps ? zeros : n, T{0});
    if (i < steps) std::copy(a + i * n + zeros, a + (i + 1) * n, r + i * n + zeros);
  }
  std::fill_n(q, m * wide, T{0});
  for (int64_t i = 0; i < wide; ++i) q[i * wide + i] = 1;
  for (int64_t first = (steps - 1) / block * block; first >= 0; first -= block) {
    Apply(pool, take(first, block), false, q + first * wide + first, wide - first, wide, scratch);
  }
  return true;
}

template <class T>
ffi::Error FactorAll(ffi::ThreadPool& pool, int64_t count, int64_t m, int64_t n, int64_t wide,
                     ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> q, ffi::Result<ffi::AnyBuffer> r) {
  const T* const from = static_cast<const T*>(x.untyped_data());
  T *const left = static_cast<T*>(q->untyped_data()), *const right = static_cast<T*>(r->untyped_data());
  if (std::max(m, n) <= kBeside && count * int64_t{sizeof(T)} * 2 > LaneBytes()) {
    const FactorJob<T> job{from, left, right, count, m, n, wide};
    ForEachGroup(pool, LaneBytes() / sizeof(T), count, 2 * m * wide * std::min(m, n),
                 [&](int64_t group) { WEFT_PICK(FactorGroup<T>)(job, group); });
    return ffi::Error::Success();
  }
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
