// Included once for each width of vectors: triangular systems, one in each lane.

#include "dot_lanes.h"

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
