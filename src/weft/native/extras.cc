// Reads the further operands of products of matrices.

#include "extras.h"

#include <algorithm>
#include <utility>

namespace weft {

template <class T>
bool Extras<T>::Place(const ffi::AnyBuffer& array, const ffi::AnyBuffer& out) {
  const auto sizes = array.dimensions(), wanted = out.dimensions();
  const size_t rank = wanted.size(), last = std::min<size_t>(2, rank);
  if (sizes.size() != rank) return false;
  int64_t strides[2] = {0, 0}, stride = 1;
  for (size_t i = 0; i < last; ++i) {  // columns, then rows
    const int64_t size = sizes[rank - 1 - i];
    if (size == wanted[rank - 1 - i]) {
      strides[i] = stride;
    } else if (size != 1) {
      return false;
    }
    stride *= size;
  }
  column = strides[0], row = strides[1];
  const ffi::Span<const int64_t> leading{sizes.begin(), rank - last}, batch{wanted.begin(), rank - last};
  matrix = leading == batch ? stride : 0;
  return matrix > 0 || leading == batch || std::all_of(leading.begin(), leading.end(), [](int64_t n) { return n == 1; });
}

template <class T>
bool Extras<T>::Read(const ffi::RemainingArgs& given, size_t begin, std::string_view names,
                     const ffi::AnyBuffer& out, bool scales_operands) {
  constexpr std::string_view kNames[] = {"left", "right", "scale", "add", "subtract", "subtract_from", "weight"};
  constexpr int kKinds[] = {0, 1, 2, 3, 3, 3, 4};
  int kind = -1;
  for (count = 0; !names.empty(); ++count) {
    const std::string_view name = names.substr(0, names.find(' '));
    names.remove_prefix(std::min(names.size(), name.size() + 1));
    const auto* const found = std::find(std::begin(kNames), std::end(kNames), name);
    if (found == std::end(kNames)) return false;
    const int before = std::exchange(kind, kKinds[found - kNames]);
    const auto operand = given.get<ffi::AnyBuffer>(begin + count);
    if (kind <= before || !operand || !AreAlike(out, *operand)) return false;
    const T* const values = operand->template typed_data<T>();
    if (kind != 3 && operand->dimensions().size() > 0) return false;
    switch (kind) {
      case 0:
      case 1:
        if (!scales_operands) return false;
        (kind == 0 ? left : right) = *values;
        break;
      case 2: scale = *values; break;
      case 3:
        if (!Place(*operand, out)) return false;
        addend = values;
        if (name == "subtract") weight = -1;
        if (name == "subtract_from") scale = -scale;
        break;
      default:
        if (before != 3) return false;
        weight *= *values;
    }
    completes = completes || kind >= 2;
  }
  return true;
}

template struct Extras<float>;
template struct Extras<double>;

}  // namespace weft
