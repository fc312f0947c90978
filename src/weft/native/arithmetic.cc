// Cheap operations on each element, of all dtypes that programs compute in.
//
// The results are XLA's, to the bit, except for the signs of NaN.

#include <cmath>
#include <limits>
#include <type_traits>

#include "programs.h"

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-math-errno", "no-trapping-math", "align-loops=64")
#define WEFT_INDEPENDENT _Pragma("GCC ivdep")
#else
#define WEFT_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#endif

namespace weft {
namespace {

template <class T>
constexpr bool kIsFloat = std::is_floating_point_v<T>;

// The unsigned integer type with the same size as T.
template <class T>
using Bits = std::conditional_t<
    sizeof(T) == 1, uint8_t,
    std::conditional_t<sizeof(T) == 2, uint16_t, std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>>;

// The type that sums and products of integers are computed in, where they wrap.
template <class T>
using Wrapping = std::conditional_t<kIsFloat<T>, T, Bits<T>>;

}  // namespace
}  // namespace weft

#define WEFT_FILE "arithmetic.h"
#include "processors.h"

namespace weft {

Kernel FindArithmetic(int64_t op, ffi::DataType from, ffi::DataType to) {
  const bool tests = (op >= op::kEq && op <= op::kLe) || op == op::kIsFinite;
  const bool fits = op == op::kConvertElementType || to == (tests ? ffi::PRED : from);
  return {op, from, to, fits ? WEFT_BEST(FindLoop)(op, from, to) : nullptr};
}

}  // namespace weft
