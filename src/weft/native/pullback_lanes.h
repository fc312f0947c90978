// Included once for each width of vectors: cotangents of small symmetric matrices.

#include "dot_lanes.h"

// Replaces the lower triangle of `ct`, half of the cotangent of the factor L of n rows, at most
// kTriangle, by the symmetric cotangent of the matrix.
//
// Its rows are computed from the last to the first. Let W be the part that is known, l = L[j, j], and b and c the
// parts of column j of L and of `ct` below the diagonal. Then column j of the result is w = (c - W b) / l
// below the diagonal, and (ct[j, j] - w b) / l on it.
template <class T>
void PullTriangle(const T* low, T* ct, int64_t n, int64_t stride) {
  using V = Lanes<T>;
  constexpr int64_t kAtOnce = 4 * kLanes<T>, kWide = kTriangle + kAtOnce;
  // L^T, C^T and the result, with zeros after each row
  alignas(64) T factors[kTriangle * kWide], cts[kTriangle * kWide], made[kTriangle * kWide];
  CopyTransposed(low, stride, n, n, factors, kWide);
  CopyTransposed(ct, stride, n, n, cts, kWide);
  for (T* const x : {factors, cts, made}) {
    for (int64_t i = 0; i < n; ++i) std::fill_n(x + i * kWide + n, kAtOnce, T{0});
  }
  for (int64_t j = n - 1; j >= 0; --j) {
    const T *const b = factors + j * kWide, *const c = cts + j * kWide;
    T* const row = made + j * kWide;
    const T head = b[j];
    V products = {};
    for (int64_t k = j + 1; k < n; k += kAtOnce) {
      V sums[4] = {};
      for (int64_t p = j + 1; p < n; ++p) {
        for (int v = 0; v < 4; ++v) sums[v] += b[p] * Load<V>(made + p * kWide + k + v * kLanes<T>);
      }
      for (int v = 0; v < 4; ++v) {
        const int64_t at = k + v * kLanes<T>;
        const V w = (Load<V>(c + at) - sums[v]) / head;
        products += w * Load<V>(b + at);
        std::memcpy(row + at, &w, sizeof(w));
      }
    }
    T sum = 0;
    for (int64_t lane = 0; lane < kLanes<T>; ++lane) sum += products[lane];
    row[j] = (c[j] - sum) / head;
    for (int64_t k = j + 1; k < n; ++k) made[k * kWide + j] = row[k];
  }
  for (int64_t i = 0; i < n; ++i) std::copy_n(made + i * kWide, n, ct + i * stride);
}
