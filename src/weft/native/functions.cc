// Elementwise functions: circular and hyperbolic functions, their inverses, exponentials, powers
// and roots; and the functions that programs on 16-bit floats need besides arithmetic.
//
// Functions of float32, in singles.h, are computed in float32, with an error of 1.5 ulp; the others
// are computed in float64 and rounded once. tools/make_formulas.py writes most of the latter from
// Python, into derived.h. A block with unusual elements, such as huge angles, is computed by slower
// code.

#include <cmath>
#include <type_traits>

#include "halves.h"
#include "programs.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace weft {
namespace {

constexpr double kMagic = 0x1.8p52, kPi = 3.14159265358979323846;

}  // namespace
}  // namespace weft

#define WEFT_FILE "formulas.h"
#include "processors.h"

namespace weft {

Kernel FindFunction(int64_t op, ffi::DataType from, ffi::DataType to) {
  return WEFT_BEST(FindKernel)(op, from, to);
}

}  // namespace weft
