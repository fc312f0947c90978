// The LU factorization of many small matrices [..., m, n], stored by rows, and the solution of
// triangular systems with them, on several threads.
//
// LAPACK factors one matrix a call, and for an 8 by 8 matrix most of the time is the overhead of
// the call. The algorithm is right-looking with partial pivoting, as in LAPACK's getf2. A column of
// zeros is left unchanged. The smallest matrices are factored and solved side by side, one in each
// vector lane.

#include <cmath>
#include <utility>

#include "common.h"

namespace weft {
namespace {

constexpr int64_t kMost = 32;     // rows and columns
constexpr int64_t kBeside = 32;   // of those that are taken side by side
constexpr int64_t kColumns = 64;  // of right sides

// A factorization of matrices [count, m, n], which are stored by rows.
template <class T>
struct FactorJob {
  const T* x;
  T* out;
  int32_t *pivots, *order;
  int64_t count, m, n;
};

// e x = b for n equations and k columns; e[i, j] is at i * row + j * column, and of x element (i, c)
// at i * line + c * step.
struct System {
  int64_t n, k, row, column, line, step;
  bool lower, unit;
};

template <class T>
struct SolveJob {
  const T *a, *b;
  T* out;
  int64_t count;
  System system;
};

}  // namespace
}  // namespace weft

#define WEFT_LANES "lu_lanes.h"
#include "widths.h"

namespace weft {
namespace {

// Whether there are enough to fill lanes.
template <class T>
bool AreBeside(int64_t count, int64_t rows, int64_t columns) {
  return std::max(rows, columns) <= kBeside && count * int64_t{sizeof(T)} * 2 > LaneBytes();
}

// --- factors -----------------------------------------------------------------------------------

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

// Does a job for all groups of matrices side by side, some at a time.
template <class T, class Job>
void ForEachGroup(ffi::ThreadPool& pool, void (*run)(const Job&, int64_t), const Job& job,
                  int64_t products) {
  const int64_t lanes = LaneBytes() / sizeof(T), groups = (job.count + lanes - 1) / lanes;
  const int64_t together = std::max<int64_t>(1, kPiece / (lanes * products));
  ForEach(pool, (groups + together - 1) / together, [&](int64_t piece) {
    const int64_t end = std::min(groups, (piece + 1) * together);
    for (int64_t group = piece * together; group < end; ++group) run(job, group);
  });
}

template <class T>
ffi::Error FactorAll(ffi::ThreadPool& pool, int64_t count, int64_t m, int64_t n, ffi::AnyBuffer x,
                     ffi::Result<ffi::AnyBuffer> out, int32_t* pivots, int32_t* order) {
  const int64_t k = std::min(m, n);
  const int64_t together = std::max<int64_t>(1, kPiece / (m * n * k));
  const T* const from = static_cast<const T*>(x.untyped_data());
  T* const to = static_cast<T*>(out->untyped_data());
  if (AreBeside<T>(count, m, n)) {
    const FactorJob<T> job{from, to, pivots, order, count, m, n};
    ForEachGroup<T>(pool, WEFT_PICK(FactorGroup<T>), job, m * n * k);
    return ffi::Error::Success();
  }
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
  Leading leading;
  Size m, n;
  if (!Fits(x, leading, m, n) || !Fits(*out, leading, m, n) || m < 1 || n < 1 || !AreAlike(x, *out) ||
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

// Solves one system. x is stored by columns or by rows, so that the inner loop is contiguous.
template <class T>
WEFT_WIDE void SolveOne(System s, const T* a, const T* b, T* out) {
  T e[kMost * kMost], x[kMost * kColumns];
  const int64_t n = s.n, k = s.k;
  const bool by_rows = k >= 8;  // of the right sides; else columns of e are subtracted
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) e[by_rows ? i * n + j : j * n + i] = a[i * s.row + j * s.column];
    for (int64_t c = 0; c < k; ++c) x[by_rows ? i * k + c : c * n + i] = b[i * s.line + c * s.step];
  }
  for (int64_t t = 0; t < n; ++t) {
    const int64_t i = s.lower ? t : n - 1 - t;
    const int64_t begin = s.lower ? i + 1 : 0, end = s.lower ? n : i;
    if (by_rows) {
      T* const line = x + i * k;
      if (!s.unit) {
        for (int64_t c = 0; c < k; ++c) line[c] /= e[i * n + i];
      }
      for (int64_t j = begin; j < end; ++j) {
        const T factor = e[j * n + i];
        for (int64_t c = 0; c < k; ++c) x[j * k + c] -= factor * line[c];
      }
    } else {
      const T* const column = e + i * n;
      for (int64_t c = 0; c < k; ++c) {
        T* const vector = x + c * n;
        const T value = vector[i] = s.unit ? vector[i] : vector[i] / column[i];
        for (int64_t j = begin; j < end; ++j) vector[j] -= value * column[j];
      }
    }
  }
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t c = 0; c < k; ++c) out[i * s.line + c * s.step] = x[by_rows ? i * k + c : c * n + i];
  }
}

template <class T>
void SolveAll(ffi::ThreadPool& pool, System system, int64_t count, ffi::AnyBuffer a,
              ffi::AnyBuffer b, ffi::Result<ffi::AnyBuffer> out) {
  const T* const e = static_cast<const T*>(a.untyped_data());
  const T* const from = static_cast<const T*>(b.untyped_data());
  T* const to = static_cast<T*>(out->untyped_data());
  const int64_t n = system.n, k = system.k, products = n * n * k;
  const bool near = n * k <= kBeside * kBeside && (n <= 24 || k < 8);  // else not in the cache
  if (near && AreBeside<T>(count, n, n)) {
    const SolveJob<T> job{e, from, to, count, system};
    ForEachGroup<T>(pool, WEFT_PICK(SolveGroup<T>), job, products);
    return;
  }
  const int64_t together = std::max<int64_t>(1, kPiece / products);
  ForEach(pool, (count + together - 1) / together, [&](int64_t piece) {
    const int64_t last = std::min(count, (piece + 1) * together);
    for (int64_t i = piece * together; i < last; ++i) {
      SolveOne(system, e + i * n * n, from + i * n * k, to + i * n * k);
    }
  });
}

// Returns x with op(a) x = b if `left`, otherwise x with x op(a) = b.
ffi::Error Trsm(ffi::ThreadPool pool, bool left, bool lower, bool transpose, bool unit,
                ffi::AnyBuffer a, ffi::AnyBuffer b, ffi::Result<ffi::AnyBuffer> out) {
  Leading leading;
  Size equations, sides;
  const auto is_side = [&](const ffi::AnyBuffer& x) {
    return left ? Fits(x, leading, equations, sides) : Fits(x, leading, sides, equations);
  };
  if (!Fits(a, leading, equations, equations) || !is_side(b) || !is_side(*out) || !AreAlike(a, b, *out) ||
      equations > kMost || sides > kColumns) {
    return ffi::Error::InvalidArgument(
        "operands must be [.., n, n] with n up to 32, and [.., n, k], or [.., k, n] if not `left`, with k "
        "up to 64, of one dtype, and the result like the latter");
  }
  const int64_t n = equations, k = sides, count = leading.count();
  if (n * k == 0) return ffi::Error::Success();
  const bool swapped = transpose == left;  // x op(a) = b is solved as the transposed system
  const System system{n, k, swapped ? 1 : n, swapped ? n : 1, left ? k : 1, left ? 1 : n,
                      lower != swapped, unit};
  switch (b.element_type()) {
    case ffi::F32: SolveAll<float>(pool, system, count, a, b, out); break;
    case ffi::F64: SolveAll<double>(pool, system, count, a, b, out); break;
    default: return ffi::Error::InvalidArgument("operands must be f32 or f64");
  }
  return ffi::Error::Success();
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

XLA_FFI_DEFINE_HANDLER_SYMBOL(weft_trsm, weft::Trsm,
                              xla::ffi::Ffi::Bind()
                                  .Ctx<xla::ffi::ThreadPool>()
                                  .Attr<bool>("left")
                                  .Attr<bool>("lower")
                                  .Attr<bool>("transpose")
                                  .Attr<bool>("unit")
                                  .Arg<xla::ffi::AnyBuffer>()
                                  .Arg<xla::ffi::AnyBuffer>()
                                  .Ret<xla::ffi::AnyBuffer>());
