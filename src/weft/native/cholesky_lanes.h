// Included once for each width of vectors: small matrices, factored alone or one in each lane.

#include "dot_lanes.h"

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

// Factors n rows, at most kBase, of one matrix; returns false if it is not positive definite. The
// transpose is factored, whose rows are long where those of the factor are short. The elements above
// the diagonal change.
template <class T>
bool FactorBase(T* a, int64_t n, int64_t stride) {
  using V = Lanes<T>;
  constexpr int64_t kParts = (kBase + kLanes<T> - 1) / kLanes<T>;
  V columns[kParts][kBase + kLanes<T>];
  const int64_t parts = (n + kLanes<T> - 1) / kLanes<T>;
  const auto used = [&](int64_t part) { return std::min(kLanes<T>, n - part * kLanes<T>); };
  for (int64_t part = 0; part < parts; ++part) {
    LoadLanes(a + part * kLanes<T> * stride, stride, n, used(part), columns[part]);
  }
  for (int64_t k = 0; k < n; ++k) {
    const int64_t own = k / kLanes<T>;
    const T head = columns[own][k][k % kLanes<T>];
    if (!(head > 0)) return false;
    const T root = std::sqrt(head), inverse = 1 / root;
    for (int64_t part = own; part < parts; ++part) columns[part][k] *= inverse;
    columns[own][k][k % kLanes<T>] = root;
    for (int64_t part = own; part < parts; ++part) {
      V* const to = columns[part];
      const V row = to[k];
      const int64_t last = std::min(n, (part + 1) * kLanes<T>);
      for (int64_t i = k + 1; i < last; ++i) to[i] -= columns[i / kLanes<T>][k][i % kLanes<T>] * row;
    }
  }
  for (int64_t part = 0; part < parts; ++part) {
    StoreLanes(columns[part], stride, n, used(part), a + part * kLanes<T> * stride);
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
