// Included once for each width of vectors: columns of one matrix, and matrices, one in each lane.

#include "dot_lanes.h"

// Returns the place of the first of the largest sizes of x[k], ..., x[m - 1].
template <class T>
int64_t FindPivot(const T* x, int64_t k, int64_t m) {
  using V = Lanes<T>;
  using M = Lanes<Mask<T>>;
  M places = {}, best = {};
  V largest = V{} - 1;
  for (int64_t lane = 0; lane < kLanes<T>; ++lane) places[lane] = static_cast<Mask<T>>(k + lane);
  int64_t i = k;
  for (; i + kLanes<T> <= m; i += kLanes<T>, places += Mask<T>(kLanes<T>)) {
    const V value = Load<V>(x + i), size = value < 0 ? -value : value;
    const M larger = size > largest;
    largest = larger ? size : largest;
    best = larger ? places : best;
  }
  int64_t pivot = k;
  T size = std::fabs(x[k]);
  const auto compare = [&](T other, int64_t place) {
    if (other > size || (other == size && place < pivot)) size = other, pivot = place;
  };
  for (int64_t lane = 0; lane < kLanes<T>; ++lane) compare(largest[lane], best[lane]);
  for (; i < m; ++i) compare(std::fabs(x[i]), i);
  return pivot;
}

// Factors m rows of n columns, at most kPanel, in `scratch`, where each column is contiguous.
template <class T>
void FactorPanel(T* a, int64_t m, int64_t n, int64_t stride, int32_t* pivots, T* scratch) {
  CopyTransposed(a, stride, m, n, scratch, m);
  for (int64_t k = 0; k < std::min(m, n); ++k) {
    T* const column = scratch + k * m;
    const int64_t pivot = FindPivot(column, k, m);
    pivots[k] = static_cast<int32_t>(pivot);
    if (pivot != k) {
      for (int64_t j = 0; j < n; ++j) std::swap(scratch[j * m + k], scratch[j * m + pivot]);
    }
    const T head = column[k];
    if (head == 0) continue;
    if (std::fabs(head) >= std::numeric_limits<T>::min()) {
      const T inverse = 1 / head;
      for (int64_t i = k + 1; i < m; ++i) column[i] *= inverse;
    } else {  // the inverse may overflow
      for (int64_t i = k + 1; i < m; ++i) column[i] /= head;
    }
    for (int64_t j = k + 1; j < n; ++j) {
      T* const other = scratch + j * m;
      const T factor = other[k];
      for (int64_t i = k + 1; i < m; ++i) other[i] -= factor * column[i];
    }
  }
  CopyTransposed(scratch, m, n, m, a, stride);
}

// Factors what the lanes of `a` hold.
template <class T>
WEFT_INLINE void FactorLanes(Lanes<T>* a, Lanes<Mask<T>>* places, Lanes<Mask<T>>* rows, int64_t m,
                             int64_t n) {
  using V = Lanes<T>;
  using M = Lanes<Mask<T>>;
  for (int64_t i = 0; i < m; ++i) rows[i] = M{} + Mask<T>(i);
  for (int64_t k = 0; k < std::min(m, n); ++k) {
    V* const top = a + k * n;
    M place = M{} + Mask<T>(k);
    V largest = top[k] < 0 ? -top[k] : top[k];
    for (int64_t i = k + 1; i < m; ++i) {
      const V x = a[i * n + k], size = x < 0 ? -x : x;
      const M larger = size > largest;
      largest = larger ? size : largest;
      place = larger ? M{} + Mask<T>(i) : place;
    }
    places[k] = place;
    for (int64_t i = k + 1; i < m; ++i) {
      const M here = place == Mask<T>(i);
      V* const row = a + i * n;
      const M before = rows[k];
      rows[k] = here ? rows[i] : before;
      rows[i] = here ? before : rows[i];
      for (int64_t j = 0; j < n; ++j) {
        const V x = top[j], y = row[j];
        top[j] = here ? y : x;
        row[j] = here ? x : y;
      }
    }
    const V head = top[k];
    const M zero = head == 0;
    const M none = {};
    const bool some = std::memcmp(&zero, &none, sizeof(M)) != 0;
    for (int64_t i = k + 1; i < m; ++i) {
      V* const row = a + i * n;
      const V factor = row[k] = zero ? row[k] : row[k] / head;
      if (some) {
        for (int64_t j = k + 1; j < n; ++j) row[j] = zero ? row[j] : row[j] - factor * top[j];
      } else {
        for (int64_t j = k + 1; j < n; ++j) row[j] -= factor * top[j];
      }
    }
  }
}

template <class T>
void FactorGroup(const FactorJob<T>& job, int64_t group) {
  Lanes<T> a[kBeside * kBeside];
  Lanes<Mask<T>> places[kBeside], rows[kBeside];
  const int64_t first = group * kLanes<T>, used = std::min(kLanes<T>, job.count - first);
  const int64_t m = job.m, n = job.n, size = m * n, k = std::min(m, n);
  LoadLanes(job.x + first * size, size, size, used, a);
  FactorLanes<T>(a, places, rows, m, n);
  StoreLanes(a, size, size, used, job.out + first * size);
  for (int64_t lane = 0; lane < used; ++lane) {
    int32_t* const pivots = job.pivots + (first + lane) * k;
    int32_t* const order = job.order + (first + lane) * m;
    for (int64_t i = 0; i < k; ++i) pivots[i] = static_cast<int32_t>(places[i][lane]);
    for (int64_t i = 0; i < m; ++i) order[i] = static_cast<int32_t>(rows[i][lane]);
  }
}
