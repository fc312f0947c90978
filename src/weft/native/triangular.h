// Triangular systems of equations, which may be parts of larger matrices.

#ifndef WEFT_NATIVE_TRIANGULAR_H_
#define WEFT_NATIVE_TRIANGULAR_H_

#include "common.h"

namespace weft {

// e x = b for n equations and k columns. e[i, j] is at i * row + j * column, and of x element (i, c)
// at i * line + c * step. One of each two strides is 1.
struct System {
  int64_t n, k, row, column, line, step;
  bool lower, unit;
};

// Replaces b by x, on several threads if there is a pool and enough work.
void Solve(ffi::ThreadPool* pool, System system, const float* e, float* b);
void Solve(ffi::ThreadPool* pool, System system, const double* e, double* b);

}  // namespace weft

#endif  // WEFT_NATIVE_TRIANGULAR_H_
