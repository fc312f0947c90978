// Kernels of programs: see programs.cc.

#ifndef WEFT_NATIVE_PROGRAMS_H_
#define WEFT_NATIVE_PROGRAMS_H_

#include "opcodes.h"
#include "tiles.h"

namespace weft {

constexpr int64_t kGroup = 16;  // kernels compute a multiple of this number of elements

// Computes `count` elements of a result. The result may share the memory of an operand with
// elements of the same width.
using Compute = void (*)(const void* const* xs, void* out, int64_t count);

struct Kernel {
  int64_t op;
  ffi::DataType from, to;  // dtype of the last operand, and of the result
  Compute compute;  // null if the operation has no kernel
  bool whole;  // results depend on all elements of a row, which may not be split
};

// The kernel of an operation in arithmetic.cc, and in functions.cc.
Kernel FindArithmetic(int64_t op, ffi::DataType from, ffi::DataType to);
Kernel FindFunction(int64_t op, ffi::DataType from, ffi::DataType to);

}  // namespace weft

#endif  // WEFT_NATIVE_PROGRAMS_H_
