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

// A few equations, and many right sides, of which a part is a panel of columns.
template <class T>
struct Panel {
  System system;
  const T* e;
  T* x;

  template <int kBytes>
  WEFT_INLINE void Run(int64_t part) const;
};

// Solves equations `first` to `first + kRows` for one panel. Those before them, in the order of the
// solution, are solved.
template <class T, int kBytes, int kColumns, bool kLower, int kRows>
WEFT_INLINE void SolveRows(const System& s, const T* e, int64_t first, T* panel) {
  using V = typename Vector<T, kBytes>::V;
  constexpr int64_t kLanes = Vector<T, kBytes>::kLanes, kWide = kColumns * kLanes;
  constexpr T kLeast = std::numeric_limits<T>::min();  // of normal numbers
  const int64_t begin = kLower ? 0 : first + kRows, end = kLower ? first : s.n;
  T* const to = panel + first * kWide;
  const T* from[kRows];
  V x[kRows][kColumns] = {};
  for (int r = 0; r < kRows; ++r) from[r] = e + (first + r) * s.row;
  for (int64_t p = begin; p < end; ++p) {
    V y[kColumns];
    for (int j = 0; j < kColumns; ++j) y[j] = Load<V>(panel + p * kWide + j * kLanes);
    for (int r = 0; r < kRows; ++r) {
      const T factor = from[r][p * s.column];
      for (int j = 0; j < kColumns; ++j) x[r][j] += factor * y[j];
    }
  }
  for (int r = 0; r < kRows; ++r) {  // sums before they are subtracted are smaller, and more exact
    for (int j = 0; j < kColumns; ++j) x[r][j] = Load<V>(to + r * kWide + j * kLanes) - x[r][j];
  }
#pragma GCC unroll 6
  for (int t = 0; t < kRows; ++t) {
    const int r = kLower ? t : kRows - 1 - t;
    if (!s.unit) {
      const T head = from[r][(first + r) * s.column], inverse = 1 / head;
      if (std::fabs(inverse) >= kLeast && std::fabs(head) >= kLeast) {
        for (int j = 0; j < kColumns; ++j) x[r][j] *= inverse;
      } else {  // the inverse is not exact, or infinite
        for (int j = 0; j < kColumns; ++j) x[r][j] /= head;
      }
    }
#pragma GCC unroll 6
    for (int i = t + 1; i < kRows; ++i) {
      const int q = kLower ? i : kRows - 1 - i;
      const T factor = from[q][(first + r) * s.column];
      for (int j = 0; j < kColumns; ++j) x[q][j] -= factor * x[r][j];
    }
    std::memcpy(to + r * kWide, x[r], sizeof(x[r]));
  }
}

template <class T, int kBytes, int kColumns, bool kLower>
WEFT_INLINE void SolvePanel(const System& s, const T* e, T* panel) {
  const int64_t rest = s.n % kPixels, whole = s.n - rest;  // the last ones in the matrix are left
  const auto solve_rest = [&] {
    for (int64_t t = 0; t < rest; ++t) {
      SolveRows<T, kBytes, kColumns, kLower, 1>(s, e, kLower ? whole + t : s.n - 1 - t, panel);
    }
  };
  if (!kLower) solve_rest();
  for (int64_t t = 0; t < whole; t += kPixels) {
    const int64_t first = kLower ? t : whole - kPixels - t;
    SolveRows<T, kBytes, kColumns, kLower, kPixels>(s, e, first, panel);
  }
  if (kLower) solve_rest();
}

template <class T>
template <int kBytes>
WEFT_INLINE void Panel<T>::Run(int64_t part) const {
  constexpr int64_t kLanes = Vector<T, kBytes>::kLanes, kWide = kVectors * kLanes;
  const int64_t column = part * kWide, columns = std::min(kWide, system.k - column);
  const int64_t wide = columns <= kLanes ? kLanes : kWide, n = system.n;
  T* const at = x + column * system.step;
  alignas(64) T panel[kEquations * kWide];
  const bool by_rows = system.step == 1;
  if (by_rows) {
    PackPanel<T>(at, system.line, n, columns, wide, panel);
  } else {
    WEFT_PICK(PackColumns<T>)(at, system.step, n, columns, wide, panel);
  }
  const auto solve = [&](auto lower) {
    if (wide == kLanes) {
      SolvePanel<T, kBytes, 1, lower>(system, e, panel);
    } else {
      SolvePanel<T, kBytes, kVectors, lower>(system, e, panel);
    }
  };
  system.lower ? solve(std::true_type{}) : solve(std::false_type{});
  if (!by_rows) return WEFT_PICK(CopyTransposed<T>)(panel, wide, n, columns, at, system.step);
  for (int64_t i = 0; i < n; ++i) std::copy_n(panel + i * wide, columns, at + i * system.line);
}

template <class T>
void SolveAll(ffi::ThreadPool* pool, System s, const T* e, T* x) {
  const int64_t n = s.n, k = s.k;
  if (n <= kEquations) {
    static const int bytes = VectorBytes();
    static const auto run = RunWith<Panel<T>>(bytes);
    const int64_t wide = kVectors * bytes / sizeof(T), parts = (k + wide - 1) / wide;
    const int64_t together = std::max<int64_t>(1, kProducts / (n * n * wide));
    const int64_t pieces = pool && n * n * k >= 2 * kProducts ? (parts + together - 1) / together : 1;
    const Panel<T> job{s, e, x};
    const auto run_piece = [&](int64_t piece) {
      for (int64_t i = parts * piece / pieces; i < parts * (piece + 1) / pieces; ++i) run(job, i);
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
  if (s.step == 1) {
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
