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

// Subtracts the products of m rows of e and n known unknowns from m right sides of one column.
template <class T>
void SubtractProducts(const System& s, const T* e, const T* x, int64_t m, int64_t n, T* y) {
  using V = Lanes<T>;
  constexpr int64_t kRows = 4, kTerms = 8, kStep = 2 * kLanes<T>;
  if (s.column == 1) {
    const int64_t whole = n / kStep * kStep;
    for (int64_t i = 0; i < m; i += kRows) {
      const T* from[kRows];
      for (int64_t r = 0; r < kRows; ++r) from[r] = e + std::min(i + r, m - 1) * s.row;
      V sums[kRows][2] = {};
      for (int64_t j = 0; j < whole; j += kStep) {
        const V first = Load<V>(x + j), second = Load<V>(x + j + kLanes<T>);
        for (int64_t r = 0; r < kRows; ++r) {
          sums[r][0] += first * Load<V>(from[r] + j);
          sums[r][1] += second * Load<V>(from[r] + j + kLanes<T>);
        }
      }
      for (int64_t r = 0; r < std::min(kRows, m - i); ++r) {
        const V both = sums[r][0] + sums[r][1];
        T sum = 0;
        for (int64_t lane = 0; lane < kLanes<T>; ++lane) sum += both[lane];
        for (int64_t j = whole; j < n; ++j) sum += from[r][j] * x[j];
        y[i + r] -= sum;
      }
    }
    return;
  }
  constexpr int64_t kSums = 1024, kTogether = 64;  // small sums are more exact
  for (int64_t first = 0; first < m; first += kSums, e += kSums, y += kSums) {
    const int64_t count = std::min(kSums, m - first), whole = count / kLanes<T> * kLanes<T>;
    for (int64_t begin = 0; begin < n; begin += kTogether) {
      const int64_t end = std::min(n, begin + kTogether);
      alignas(64) T sums[kSums] = {};
      int64_t j = begin;
      for (; j + kTerms <= end; j += kTerms) {
        const T* const from = e + j * s.column;
        for (int64_t i = 0; i < whole; i += kLanes<T>) {
          V sum = Load<V>(sums + i);
          for (int64_t r = 0; r < kTerms; ++r) sum += x[j + r] * Load<V>(from + r * s.column + i);
          std::memcpy(sums + i, &sum, sizeof(sum));
        }
        for (int64_t i = whole; i < count; ++i) {
          for (int64_t r = 0; r < kTerms; ++r) sums[i] += x[j + r] * from[r * s.column + i];
        }
      }
      for (; j < end; ++j) {
        for (int64_t i = 0; i < count; ++i) sums[i] += x[j] * e[j * s.column + i];
      }
      for (int64_t i = 0; i < count; ++i) y[i] -= sums[i];
    }
  }
}

// Solves a system with one right side, kBlock equations after the others. By rows, the products with
// all unknowns before a block are subtracted at once; by columns, each block is subtracted from all
// right sides after it.
template <int64_t kBlock = 64, class T>
void SolveVector(const System& s, const T* e, T* x) {
  constexpr int64_t kLeast = 8;
  const bool by_rows = s.column == 1;
  for (int64_t done = 0; done < s.n; done += kBlock) {
    const int64_t count = std::min(kBlock, s.n - done), end = done + count;
    const int64_t first = s.lower ? done : s.n - end, last = first + count;
    if (by_rows && done > 0) {
      const int64_t known = s.lower ? 0 : last;
      SubtractProducts(s, e + first * s.row + known, x + known, count, done, x + first);
    }
    if constexpr (kBlock > kLeast) {
      System part = s;
      part.n = count;
      SolveVector<kLeast>(part, e + first * (s.row + s.column), x + first);
    } else {
      for (int64_t t = 0; t < count; ++t) {
        const int64_t i = s.lower ? first + t : last - 1 - t;
        if (!s.unit) x[i] /= e[i * (s.row + s.column)];
        const int64_t from = s.lower ? i + 1 : first, to = s.lower ? last : i;
        for (int64_t j = from; j < to; ++j) x[j] -= e[j * s.row + i * s.column] * x[i];
      }
    }
    if (!by_rows && end < s.n) {
      const int64_t rest = s.lower ? last : 0;
      SubtractProducts(s, e + rest + first * s.column, x + first, s.n - end, count, x + rest);
    }
  }
}
