// Included once for each width of vectors: the reflections of a panel of columns.

#include "dot_lanes.h"

template <class V>
WEFT_INLINE auto AddLanes(V x) {
  auto sum = x[0];
  for (size_t lane = 1; lane < sizeof(V) / sizeof(x[0]); ++lane) sum += x[lane];
  return sum;
}

// Adds up the products of x and each of kCount vectors, which are `stride` apart.
template <int kCount, class T>
WEFT_INLINE void AddProducts(const T* x, const T* y, int64_t stride, int64_t n, T* sums) {
  using V = Lanes<T>;
  V parts[kCount][2] = {};
  int64_t i = 0;
  for (; i + 2 * kLanes<T> <= n; i += 2 * kLanes<T>) {
    const V first = Load<V>(x + i), second = Load<V>(x + i + kLanes<T>);
    for (int j = 0; j < kCount; ++j) {
      parts[j][0] += first * Load<V>(y + j * stride + i);
      parts[j][1] += second * Load<V>(y + j * stride + i + kLanes<T>);
    }
  }
  for (int j = 0; j < kCount; ++j) {
    sums[j] = AddLanes<V>(parts[j][0] + parts[j][1]);
    for (int64_t k = i; k < n; ++k) sums[j] += x[k] * y[j * stride + k];
  }
}

// Replaces x, n elements, by the vector of the reflection that makes all but the first zero. The vector's
// first element, which is 1, is not stored: the first element of x becomes the result. Returns tau.
template <class T>
T Reflect(T* x, int64_t n) {
  constexpr T kLeast = std::numeric_limits<T>::min(), kEps = std::numeric_limits<T>::epsilon();
  T squares, scale = 1;
  AddProducts<1>(x + 1, x + 1, 0, n - 1, &squares);
  T all = squares + x[0] * x[0];
  if (!(all >= kLeast / kEps / kEps && all <= 1 / kLeast)) {  // squares that matter may be out of range
    T largest = 0;
    for (int64_t i = 0; i < n; ++i) largest = std::max(largest, std::fabs(x[i]));
    if (largest > 0 && largest <= std::numeric_limits<T>::max()) {
      scale = std::max(std::ldexp(T{1}, std::ilogb(largest)), kLeast);
      for (int64_t i = 0; i < n; ++i) x[i] /= scale;
      AddProducts<1>(x + 1, x + 1, 0, n - 1, &squares);
      all = squares + x[0] * x[0];
    }
  }
  if (squares == 0) {
    x[0] *= scale;
    std::fill_n(x + 1, n - 1, T{0});
    return 0;
  }
  const T norm = std::sqrt(all), made = x[0] < 0 ? norm : -norm;
  const T head = x[0] - made, tau = -head / made, inverse = 1 / head;
  for (int64_t i = 1; i < n; ++i) x[i] *= inverse;
  x[0] = made * scale;
  return tau;
}

// Factors a panel of `count` columns: computes R in place and, in `vectors`, the rows of V^T.
template <class T>
void FactorPanel(T* a, int64_t rows, int64_t count, int64_t stride, T* taus, T* vectors) {
  constexpr int kAtOnce = 4;  // columns that a reflection is applied to
  CopyTransposed(a, stride, rows, count, vectors, rows);
  for (int64_t k = 0; k < count; ++k) {
    T *const column = vectors + k * rows, *const x = column + k;
    const int64_t n = rows - k;
    const T tau = taus[k] = Reflect(x, n);
    for (int64_t i = 0; i <= k; ++i) a[i * stride + k] = column[i];
    std::fill_n(column, k, T{0});
    x[0] = 1;
    if (tau == 0) continue;
    const auto apply = [&](auto some, int64_t j) {
      T sums[some], *const y = vectors + j * rows + k;
      AddProducts<some>(x, y, rows, n, sums);
      for (int c = 0; c < some; ++c) {
        const T factor = tau * sums[c];
        T* const to = y + c * rows;
        for (int64_t i = 0; i < n; ++i) to[i] -= factor * x[i];
      }
    };
    int64_t j = k + 1;
    for (; j + kAtOnce <= count; j += kAtOnce) apply(std::integral_constant<int, kAtOnce>{}, j);
    for (; j < count; ++j) apply(std::integral_constant<int, 1>{}, j);
  }
}
