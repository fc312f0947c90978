// The solution of triangular systems with matrices [..., n, n], on several threads.
//
// The matrix is divided in two until its parts are small. The unknowns of the first part are
// computed, and their products with the other rows are subtracted from the right sides of these
// rows. So most of the work is products of matrices. Many small systems are solved side by side, one
// in each vector lane.

#include "triangular.h"

#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

#include "matrices.h"
#include "products.h"

namespace weft {
namespace {

constexpr int64_t kBeside = 32;     // the most equations of systems that are solved side by side
constexpr int64_t kEquations = 96;  // the most equations that are not divided in two
constexpr int64_t kProducts = 3 << 17;  // products that are worth a thread
constexpr int64_t kOneThread = 1 << 10;  // the most equations of one right side that one thread solves

template <class T>
struct SolveJob {
  const T *a, *b;
  T* out;
  int64_t count;
  System system;
};

}  // namespace
}  // namespace weft

#define WEFT_LANES "triangular_lanes.h"
#include "widths.h"

namespace weft {
namespace {

// Subtracts products from m right sides of one column, on several threads if there are many.
template <class T>
void SubtractAll(ffi::ThreadPool* pool, const System& s, const T* e, const T* x, int64_t m, int64_t n, T* y) {
  const int64_t rows = std::max<int64_t>(16, kProducts / n / 16 * 16);
  if (!pool || m <= rows) return WEFT_PICK(SubtractProducts<T>)(s, e, x, m, n, y);
  ForEach(*pool, (m + rows - 1) / rows, [&](int64_t i) {
    const int64_t first = i * rows;
    WEFT_PICK(SubtractProducts<T>)(s, e + first * s.row, x, std::min(rows, m - first), n, y + first);
  });
}

template <class T>
void SolveAll(ffi::ThreadPool* pool, System s, const T* e, T* x) {
  const int64_t n = s.n, k = s.k;
  const bool one = k == 1 && s.line == 1;
  if (one && n <= kOneThread) return WEFT_PICK(SolveVector<64, T>)(s, e, x);
  if (n <= kEquations) {
    const int64_t wide = kVectors * LaneBytes() / sizeof(T), parts = (k + wide - 1) / wide;
    const int64_t together = std::max<int64_t>(1, kProducts / (n * n * wide));
    const int64_t pieces = pool && n * n * k >= 2 * kProducts ? (parts + together - 1) / together : 1;
    const auto run_piece = [&](int64_t piece) {
      for (int64_t i = parts * piece / pieces; i < parts * (piece + 1) / pieces; ++i) {
        WEFT_PICK(SolveColumns<T>)(s, e, x, i);
      }
    };
    return pieces == 1 ? run_piece(0) : ForEach(*pool, pieces, run_piece);
  }
  const int64_t half = (n / 2 + 4 * kPixels - 1) / (4 * kPixels) * (4 * kPixels);
  const int64_t first = s.lower ? 0 : half, later = half - first;
  System part = s;
  part.n = s.lower ? half : n - half;
  SolveAll(pool, part, e + first * (s.row + s.column), x + first * s.line);
  const T *const known = x + first * s.line, *const factors = e + later * s.row + first * s.column;
  T* const rest = x + later * s.line;
  if (one) {
    SubtractAll(pool, s, factors, known, n - part.n, part.n, rest);
  } else if (s.step == 1) {
    Multiply(pool, Dot<T>{1, n - part.n, k, part.n, factors, known, rest, s.row, s.column, s.line, s.line,
                          false, true});
  } else {
    const bool turned = s.column == 1;
    Multiply(pool, Dot<T>{1, k, n - part.n, part.n, known, factors, rest, s.step, s.line,
                          turned ? s.row : s.column, s.step, turned, true});
  }
  part.n = n - part.n;
  SolveAll(pool, part, e + later * (s.row + s.column), rest);
}

template <class T>
ffi::Error SolveEach(ffi::ThreadPool& pool, System system, int64_t count, ffi::AnyBuffer a,
                     ffi::AnyBuffer b, ffi::Result<ffi::AnyBuffer> out) {
  const T* const e = static_cast<const T*>(a.untyped_data());
  const T* const from = static_cast<const T*>(b.untyped_data());
  T* const to = static_cast<T*>(out->untyped_data());
  const int64_t n = system.n, k = system.k, products = n * n * k;
  const bool near = n <= kBeside && n * k <= kBeside * kBeside && (n <= 24 || k < 8);  // else not in the cache
  if (near && count * int64_t{sizeof(T)} * 2 > LaneBytes()) {
    const SolveJob<T> job{e, from, to, count, system};
    ForEachGroup(pool, LaneBytes() / sizeof(T), count, products,
                 [&](int64_t group) { WEFT_PICK(SolveGroup<T>)(job, group); });
    return ffi::Error::Success();
  }
  if (from != to) std::memcpy(to, from, out->size_bytes());
  ForEachMatrix(pool, count, products, [&](ffi::ThreadPool* pool, int64_t i) {
    SolveAll(pool, system, e + i * n * n, to + i * n * k);
  });
  return ffi::Error::Success();
}

// Returns x with op(a) x = b if `left`, otherwise x with x op(a) = b.
ffi::Error Trsm(ffi::ThreadPool pool, bool left, bool lower, bool transpose, bool unit,
                ffi::AnyBuffer a, ffi::AnyBuffer b, ffi::Result<ffi::AnyBuffer> out) {
  Leading leading;
  Size equations, sides;
  const auto is_side = [&](const ffi::AnyBuffer& x) {
    return left ? Fits(x, leading, equations, sides) : Fits(x, leading, sides, equations);
  };
  if (!Fits(a, leading, equations, equations) || !is_side(b) || !is_side(*out) || !AreAlike(a, b, *out)) {
    return ffi::Error::InvalidArgument(
        "operands must be [.., n, n], and [.., n, k], or [.., k, n] if not `left`, of one dtype, and the "
        "result like the latter");
  }
  const int64_t n = equations, k = sides, count = leading.count();
  if (out->element_count() == 0) return ffi::Error::Success();
  const bool swapped = transpose == left;  // x op(a) = b is solved as the transposed system
  const System system{n, k, swapped ? 1 : n, swapped ? n : 1, left ? k : 1, left ? 1 : n,
                      lower != swapped, unit};
  switch (b.element_type()) {
    case ffi::F32: return SolveEach<float>(pool, system, count, a, b, out);
    case ffi::F64: return SolveEach<double>(pool, system, count, a, b, out);
    default: return ffi::Error::InvalidArgument("operands must be f32 or f64");
  }
}

}  // namespace

void Solve(ffi::ThreadPool* pool, System system, const float* e, float* b) {
  SolveAll(pool, system, e, b);
}
void Solve(ffi::ThreadPool* pool, System system, const double* e, double* b) {
  SolveAll(pool, system, e, b);
}

}  // namespace weft

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
