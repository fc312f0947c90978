// Included once for each width of vectors: small matrices, factored alone or one in each lane.

#include "dot_lanes.h"
#include "solve_lanes.h"

// Writes the lower triangle of (x + x^T) / 2, and some elements above it.
template <class T>
void Symmetrize(const T* x, int64_t n, T* to) {
  constexpr int64_t kTile = 32;
  T turned[kTile * kTile];
  for (int64_t row = 0; row < n; row += kTile) {
    for (int64_t column = 0; column <= row; column += kTile) {
      const int64_t rows = std::min(kTile, n - row), columns = std::min(kTile, n - column);
      CopyTransposed(x + column * n + row, n, columns, rows, turned, kTile);
      for (int64_t i = 0; i < rows; ++i) {
        const int64_t at = (row + i) * n + column;
        for (int64_t j = 0; j < columns; ++j) to[at + j] = (x[at + j] + turned[i * kTile + j]) * T(0.5);
      }
    }
  }
}

// Factors a square of a panel, whose rows hold columns of the matrix. Returns false if the matrix is not
// positive definite. The elements of a row before its diagonal change.
template <class T>
WEFT_INLINE bool FactorSquare(T* x, int64_t n) {
  using V = Lanes<T>;
  constexpr int64_t kWide = kVectors * kLanes<T>;
  T head = x[0];
  for (int64_t k = 0; k < n; ++k) {
    if (!(head > 0)) return false;
    T* const row = x + k * kWide;
    const T root = std::sqrt(head), inverse = 1 / root;
    if (k + 1 < n) {  // computed alone, as the next step waits for it
      const T factor = row[k + 1] * inverse;
      head = row[kWide + k + 1] - factor * factor;
    }
    for (int64_t at = k / kLanes<T> * kLanes<T>; at < kWide; at += kLanes<T>) {
      const V scaled = Load<V>(row + at) * inverse;
      std::memcpy(row + at, &scaled, sizeof(scaled));
    }
    row[k] = root;
    for (int64_t i = k + 1; i < n; ++i) {
      T* const other = x + i * kWide;
      for (int64_t at = i / kLanes<T> * kLanes<T>; at < kWide; at += kLanes<T>) {
        const V rest = Load<V>(other + at) - row[i] * Load<V>(row + at);
        std::memcpy(other + at, &rest, sizeof(rest));
      }
    }
  }
  return true;
}

// Factors n rows, at most kRows, of one matrix; returns false if it is not positive definite. The
// elements above the diagonal change.
//
// As many rows as a panel has lanes are computed at once, one in each lane. Each element is read and
// written only once.
template <class T>
bool FactorRows(T* a, int64_t n, int64_t stride) {
  constexpr int64_t kWide = kVectors * kLanes<T>;
  alignas(64) T panel[kRows * kWide];
  for (int64_t first = 0; first < n; first += kWide) {
    const int64_t rows = std::min(kWide, n - first);
    T *const at = a + first * stride, *const square = panel + first * kWide;
    PackColumns(at, stride, first + rows, rows, kWide, panel);
    SolvePanel<kVectors, true>(System{first, kWide, stride, 1, kWide, 1, true, false}, a, panel);
    ForRows(rows, [&](auto count, int64_t row) {
      constexpr int kCount = count;
      const T* from[kCount];
      for (int r = 0; r < kCount; ++r) from[r] = panel + row + r;
      SubtractRows<kCount, kVectors>(from, kWide, 0, first, panel, square + row * kWide);
    });
    if (!FactorSquare(square, rows)) return false;
    CopyTransposed(panel, kWide, first + rows, rows, at, stride);
  }
  return true;
}

// Factors what the lanes of `a` hold.
template <class V>
WEFT_INLINE void FactorLanes(V* a, int64_t n) {
  constexpr int64_t kCount = sizeof(V) / sizeof(a[0][0]);
  const V zero = {};
  V nan = zero;  // or 0
  for (int64_t k = 0; k < n; ++k) {
    V* const row = a + k * n;
    V root = row[k];
    for (int64_t lane = 0; lane < kCount; ++lane) root[lane] = std::sqrt(root[lane]);
    nan = row[k] > zero ? nan : zero / zero;
    row[k] = root;
    for (int64_t i = k + 1; i < n; ++i) a[i * n + k] /= root;
    for (int64_t i = k + 1; i < n; ++i) {
      const V factor = a[i * n + k];
      for (int64_t j = k + 1; j <= i; ++j) a[i * n + j] -= factor * a[j * n + k];
    }
    for (int64_t j = k + 1; j < n; ++j) row[j] = zero;
  }
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j <= i; ++j) a[i * n + j] += nan;
  }
}

template <class T>
void FactorGroup(const FactorJob<T>& job, int64_t group) {
  Lanes<T> a[kBeside * kBeside];
  const int64_t first = group * kLanes<T>, used = std::min(kLanes<T>, job.count - first);
  const int64_t size = job.n * job.n;
  LoadLanes(job.x + first * size, size, size, used, a);
  for (int64_t i = 0; job.symmetrize && i < job.n; ++i) {
    for (int64_t j = 0; j < i; ++j) a[i * job.n + j] = (a[i * job.n + j] + a[j * job.n + i]) * T(0.5);
  }
  FactorLanes(a, job.n);
  StoreLanes(a, size, size, used, job.out + first * size);
}
