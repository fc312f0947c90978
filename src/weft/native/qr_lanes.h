// Included once for each width of vectors: the reflections of a panel of columns.

#include "dot_lanes.h"

template <class V>
WEFT_INLINE auto AddLanes(const V& x) {
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

// As many doubles as a vector of T has lanes.
template <class T>
using Doubles = typename Vector<double, kLanes<T> * static_cast<int>(sizeof(double))>::V;

// Adds up squares, in double precision: an inexact norm makes a reflection that is not orthogonal.
template <class T>
WEFT_INLINE double AddSquares(const T* x, int64_t n) {
  using V = Lanes<T>;
  using D = Doubles<T>;
  constexpr int64_t kParts = 4;
  D parts[kParts] = {};
  int64_t i = 0;
  const auto add = [&](int64_t part) {
    const D y = __builtin_convertvector(Load<V>(x + i + part * kLanes<T>), D);
    parts[part] += y * y;
  };
  for (; i + kParts * kLanes<T> <= n; i += kParts * kLanes<T>) {
    for (int64_t part = 0; part < kParts; ++part) add(part);
  }
  for (; i + kLanes<T> <= n; i += kLanes<T>) add(0);
  double sum = AddLanes<D>((parts[0] + parts[1]) + (parts[2] + parts[3]));
  for (; i < n; ++i) sum += double{x[i]} * x[i];
  return sum;
}

// Returns false if squares that matter may be out of the range of T.
template <class T>
WEFT_INLINE bool IsInRange(double squares) {
  constexpr T kLeast = std::numeric_limits<T>::min(), kEps = std::numeric_limits<T>::epsilon();
  return squares >= kLeast / kEps / kEps && squares <= 1 / kLeast;
}

// Returns a power of 2 that elements are divided by, so that their squares are in range.
template <class T>
WEFT_INLINE T FindScale(T largest) {
  constexpr T kLeast = std::numeric_limits<T>::min();
  if (!(largest > 0 && largest <= std::numeric_limits<T>::max())) return 1;
  return std::max(std::ldexp(T{1}, std::ilogb(largest)), kLeast);
}

// Replaces x, n elements, by the vector of the reflection that makes all but the first zero. The vector's
// first element, which is 1, is not stored: the first element of x becomes the result. Returns tau.
template <class T>
T Reflect(T* x, int64_t n) {
  T scale = 1;
  double squares = AddSquares(x + 1, n - 1), all = squares + double{x[0]} * x[0];
  if (!IsInRange<T>(all)) {
    T largest = 0;
    for (int64_t i = 0; i < n; ++i) largest = std::max(largest, std::fabs(x[i]));
    scale = FindScale(largest);
    for (int64_t i = 0; i < n; ++i) x[i] /= scale;
    squares = AddSquares(x + 1, n - 1), all = squares + double{x[0]} * x[0];
  }
  if (squares == 0) {
    x[0] *= scale;
    std::fill_n(x + 1, n - 1, T{0});
    return 0;
  }
  const T norm = static_cast<T>(std::sqrt(all)), made = x[0] < 0 ? norm : -norm;
  const T head = x[0] - made, tau = -head / made, inverse = 1 / head;
  for (int64_t i = 1; i < n; ++i) x[i] *= inverse;
  x[0] = made * scale;
  return tau;
}

// Factors a panel of `count` columns: computes R in place and, in `vectors`, the rows of V^T, which are
// `apart` elements apart.
template <class T>
void FactorPanel(T* a, int64_t rows, int64_t count, int64_t stride, T* taus, T* vectors, int64_t apart) {
  constexpr int kAtOnce = 4;  // columns that a reflection is applied to
  CopyTransposed(a, stride, rows, count, vectors, apart);
  for (int64_t k = 0; k < count; ++k) {
    T *const column = vectors + k * apart, *const x = column + k;
    const int64_t n = rows - k;
    const T tau = taus[k] = Reflect(x, n);
    for (int64_t i = 0; i <= k; ++i) a[i * stride + k] = column[i];
    std::fill_n(column, k, T{0});
    x[0] = 1;
    if (tau == 0) continue;
    const auto apply = [&](auto some, int64_t j) {
      T sums[some], *const y = vectors + j * apart + k;
      AddProducts<some>(x, y, apart, n, sums);
      for (int c = 0; c < some; ++c) {
        const T factor = tau * sums[c];
        T* const to = y + c * apart;
        for (int64_t i = 0; i < n; ++i) to[i] -= factor * x[i];
      }
    };
    int64_t j = k + 1;
    for (; j + kAtOnce <= count; j += kAtOnce) apply(std::integral_constant<int, kAtOnce>{}, j);
    for (; j < count; ++j) apply(std::integral_constant<int, 1>{}, j);
  }
}

// Reflect for the matrices of all lanes. The elements of x are `stride` vectors apart.
template <class T>
WEFT_INLINE Lanes<T> ReflectLanes(Lanes<T>* x, int64_t n, int64_t stride) {
  using V = Lanes<T>;
  using D = Doubles<T>;
  const V zero = {};
  V scale = zero + 1;
  D squares = {};
  for (int64_t i = 1; i < n; ++i) {
    const D y = __builtin_convertvector(x[i * stride], D);
    squares += y * y;
  }
  const D first = __builtin_convertvector(x[0], D);
  D root = squares + first * first;
  for (int64_t lane = 0; lane < kLanes<T>; ++lane) {
    if (!IsInRange<T>(root[lane])) {
      T largest = 0;
      for (int64_t i = 0; i < n; ++i) largest = std::max(largest, std::fabs(x[i * stride][lane]));
      const T by = scale[lane] = FindScale(largest);
      double sum = 0;
      for (int64_t i = 0; i < n; ++i) x[i * stride][lane] /= by;
      for (int64_t i = 1; i < n; ++i) sum += double{x[i * stride][lane]} * x[i * stride][lane];
      squares[lane] = sum;
      root[lane] = sum + double{x[0][lane]} * x[0][lane];
    }
    root[lane] = std::sqrt(root[lane]);
  }
  const D some = squares != 0 ? D{} + 1 : D{};
  const auto reflects = __builtin_convertvector(some, V) != 0;
  const V norm = __builtin_convertvector(root, V);
  const V made = reflects ? (x[0] < zero ? norm : -norm) : x[0];
  const V head = reflects ? x[0] - made : zero + 1, inverse = reflects ? 1 / head : zero;
  for (int64_t i = 1; i < n; ++i) x[i * stride] *= inverse;
  x[0] = made * scale;
  return reflects ? -head / made : zero;
}

// Applies the reflections of all lanes to rows of a. The elements of v are `apart` vectors apart; the
// first one, 1, is not stored.
template <class T>
WEFT_INLINE void ApplyLanes(const Lanes<T>* v, int64_t apart, Lanes<T> tau, int64_t rows, Lanes<T>* a,
                            int64_t columns, int64_t stride) {
  using V = Lanes<T>;
  constexpr int kAtOnce = 4;
  const auto apply = [&](auto some, int64_t j) {
    V sums[some] = {}, *const at = a + j;
    for (int64_t i = rows - 1; i > 0; --i) {  // the first row last, since its factor is the largest
      for (int c = 0; c < some; ++c) sums[c] += v[i * apart] * at[i * stride + c];
    }
    for (int c = 0; c < some; ++c) sums[c] = (sums[c] + at[c]) * tau;
    for (int c = 0; c < some; ++c) at[c] -= sums[c];
    for (int64_t i = 1; i < rows; ++i) {
      for (int c = 0; c < some; ++c) at[i * stride + c] -= v[i * apart] * sums[c];
    }
  };
  int64_t j = 0;
  for (; j + kAtOnce <= columns; j += kAtOnce) apply(std::integral_constant<int, kAtOnce>{}, j);
  for (; j < columns; ++j) apply(std::integral_constant<int, 1>{}, j);
}

template <class T>
void FactorGroup(const FactorJob<T>& job, int64_t group) {
  using V = Lanes<T>;
  V a[kBeside * kBeside], made[kBeside * kBeside], taus[kBeside];
  const int64_t first = group * kLanes<T>, used = std::min(kLanes<T>, job.count - first);
  const int64_t m = job.m, n = job.n, wide = job.wide, steps = std::min(m, n);
  LoadLanes(job.x + first * m * n, m * n, m * n, used, a);
  for (int64_t k = 0; k < steps; ++k) {
    V* const head = a + k * n + k;
    taus[k] = ReflectLanes<T>(head, m - k, n);
    ApplyLanes<T>(head, n, taus[k], m - k, head + 1, n - k - 1, n);
  }
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < wide; ++j) made[i * wide + j] = V{} + T(i == j);
  }
  for (int64_t k = steps - 1; k >= 0; --k) {
    ApplyLanes<T>(a + k * n + k, n, taus[k], m - k, made + k * wide + k, wide - k, wide);
  }
  StoreLanes(made, m * wide, m * wide, used, job.q + first * m * wide);
  for (int64_t i = 0; i < wide; ++i) {
    for (int64_t j = 0; j < n; ++j) made[i * n + j] = i < steps && j >= i ? a[i * n + j] : V{};
  }
  StoreLanes(made, wide * n, wide * n, used, job.r + first * wide * n);
}
