// Products of matrices, which may be parts of larger ones. Blocked factorizations consist of them.

#ifndef WEFT_NATIVE_PRODUCTS_H_
#define WEFT_NATIVE_PRODUCTS_H_

#include "extras.h"

namespace weft {

// The product of `left`, [m, k], and `right`, [k, n], or [n, k] if `right_turned`. With a batch,
// each matrix follows the one before it.
template <class T>
struct Dot {
  int64_t batch, m, n, k;
  const T *left, *right;
  T* out;
  int64_t left_row, left_step;  // strides of `left` along m and along k
  int64_t right_row, out_row;   // strides between rows
  bool right_turned;
  bool subtract = false;  // the product from `out`, in place of storing it
  bool lower = false;     // elements above the diagonal of `out` need not be computed
  int64_t terms = 256;    // that are added up before the sum is added to `out`; small sums are more exact
  bool mirrored = false;  // the product is symmetric: elements above the diagonal are copied from below it
  Extras<T> extras = {};
  int64_t panels = 0, blocks = 0, rows = 0;  // column panels, row blocks, rows of a block

  template <int kBytes>
  WEFT_INLINE void Run(int64_t part) const;
};

// Computes a product, on several threads if there is a pool and enough work.
void Multiply(ffi::ThreadPool* pool, Dot<float> job);
void Multiply(ffi::ThreadPool* pool, Dot<double> job);

}  // namespace weft

#endif  // WEFT_NATIVE_PRODUCTS_H_
