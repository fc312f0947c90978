// Included once for each width of vectors: triangular systems, one in each lane, and panels of columns.

#include "dot_lanes.h"
#include "solve_lanes.h"

// Solves at most kEquations equations for one panel of columns.
template <class T>
void SolveColumns(const System& s, const T* e, T* x, int64_t part) {
  constexpr int64_t kWide = kVectors * kLanes<T>;
  const int64_t column = part * kWide, columns = std::min(kWide, s.k - column), n = s.n;
  const int64_t wide = columns <= kLanes<T> ? kLanes<T> : kWide;
  T* const at = x + column * s.step;
  alignas(64) T panel[kEquations * kWide];
  const bool by_rows = s.step == 1;
  if (by_rows) {
    PackPanel(at, s.line, n, columns, wide, panel);
  } else {
    PackColumns(at, s.step, n, columns, wide, panel);
  }
  const auto solve = [&](auto lower) {
    wide == kLanes<T> ? SolvePanel<1, lower>(s, e, panel) : SolvePanel<kVectors, lower>(s, e, panel);
  };
  s.lower ? solve(std::true_type{}) : solve(std::false_type{});
  if (!by_rows) return CopyTransposed(panel, wide, n, columns, at, s.step);
  for (int64_t i = 0; i < n; ++i) std::copy_n(panel + i * wide, columns, at + i * s.line);
}

template <class V>
WEFT_INLINE void SolveLanes(const System& s, const V* e, V* x) {
  for (int64_t c = 0; c < s.k; ++c, x += s.step) {
    for (int64_t t = 0; t < s.n; ++t) {
      const int64_t i = s.lower ? t : s.n - 1 - t, end = s.lower ? i : s.n;
      const V* const equation = e + i * s.row;
      V sum = x[i * s.line];
      for (int64_t j = s.lower ? 0 : i + 1; j < end; ++j) {
        sum -= equation[j * s.column] * x[j * s.line];
      }
      x[i * s.line] = s.unit ? sum : sum / equation[i * s.column];
    }
  }
}

template <class T>
void SolveGroup(const SolveJob<T>& job, int64_t group) {
  Lanes<T> e[kBeside * kBeside], x[kBeside * kBeside];
  const int64_t first = group * kLanes<T>, used = std::min(kLanes<T>, job.count - first);
  const int64_t square = job.system.n * job.system.n, size = job.system.n * job.system.k;
  LoadLanes(job.a + first * square, square, square, used, e);
  LoadLanes(job.b + first * size, size, size, used, x);
  SolveLanes(job.system, e, x);
  StoreLanes(x, size, size, used, job.out + first * size);
}
