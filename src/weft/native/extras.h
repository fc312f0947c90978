// Numbers and arrays that the call of a product scales by and adds, as calls of BLAS do.

#ifndef WEFT_NATIVE_EXTRAS_H_
#define WEFT_NATIVE_EXTRAS_H_

#include <string_view>

#include "common.h"

namespace weft {

// Numbers and an array that a product is computed with, as BLAS does. The operands are multiplied by
// `left` and `right` when they are read: each element is rounded before it is multiplied. An
// element of the result becomes scale * element + weight * (element of the addend).
template <class T>
struct Extras {
  T left = 1, right = 1, scale = 1, weight = 1;
  const T* addend = nullptr;
  int64_t matrix = 0, row = 0, column = 0;  // strides of the addend, which are 0 along axes of size 1
  bool completes = false;                   // elements of the result are changed
  size_t count = 0;                         // operands of the call that are read for these

  // Reads operands of the call, from number `begin` on, that `names` names in their order: left, right,
  // scale, one of add, subtract (the array) and subtract_from (it, the product), weight. Returns false if
  // the operands do not fit a result `out` of one axis or more.
  bool Read(const ffi::RemainingArgs& given, size_t begin, std::string_view names, const ffi::AnyBuffer& out,
            bool scales_operands = true);
  // Finds the strides of an addend. Returns false if it does not fit.
  bool Place(const ffi::AnyBuffer& array, const ffi::AnyBuffer& out);

  // Changes elements of the rows from `first` to `last`, in `columns` columns from `at` on. `out` is the
  // first element of the matrix.
  WEFT_INLINE void Complete(T* out, int64_t stride, int64_t first, int64_t last, int64_t at,
                            int64_t columns) const {
    if (!completes) return;
    const T a = scale, b = weight;
    for (int64_t i = first; i < last; ++i) {
      T* __restrict const to = out + i * stride + at;
      const T* const from = addend == nullptr ? nullptr : addend + i * row + at * column;
      if (from == nullptr) {
        for (int64_t j = 0; j < columns; ++j) to[j] *= a;
      } else if (column == 1) {
        for (int64_t j = 0; j < columns; ++j) to[j] = a * to[j] + b * from[j];
      } else {
        const T c = b * *from;
        for (int64_t j = 0; j < columns; ++j) to[j] = a * to[j] + c;
      }
    }
  }
};

inline ffi::Error WrongExtras() {
  return ffi::Error::InvalidArgument(
      "`extras` must name the further operands in this order: left, right, scale, one of add, subtract and "
      "subtract_from, weight. They must be of the dtype of the result: numbers, and an array of the "
      "sizes of the result, or 1 in place of them");
}

// Multiplies `count` elements by a number.
template <class T>
WEFT_INLINE void Scale(const T* from, int64_t count, T number, T* to) {
  for (int64_t i = 0; i < count; ++i) to[i] = number * from[i];
}

}  // namespace weft

#endif  // WEFT_NATIVE_EXTRAS_H_
