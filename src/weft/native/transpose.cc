// Axes of an array in another order, of which some are reversed too, where the last one moves.
//
// Blocks of a line of the caches by a line are transposed in registers, and each line of the result is
// written at once: so it does not matter which lines the caches can not hold together, as those of rows
// of a power of two.

#include <array>
#include <utility>
#include <vector>

#include "common.h"

namespace weft {
namespace {

constexpr int64_t kBytes = 1 << 17;  // that are worth a thread
constexpr int64_t kLine = 64;

template <class T>
struct Vector {
  typedef T V __attribute__((vector_size(16), aligned(1), may_alias));
};

// The lanes of two vectors in turn, from the lower halves or the upper ones.
template <class V, class T, bool kUpper, int... kLane>
inline V Interleave(V x, V y, std::integer_sequence<int, kLane...>) {
  constexpr int kCount = sizeof...(kLane), kFrom = kUpper ? kCount / 2 : 0;
#if defined(__clang__)
  return __builtin_shufflevector(x, y, (kFrom + kLane / 2 + kLane % 2 * kCount)...);
#else
  return __builtin_shuffle(x, y, V{static_cast<T>(kFrom + kLane / 2 + kLane % 2 * kCount)...});
#endif
}

// Transposes as many rows as a vector has elements.
template <class T>
inline void TurnTile(const T* from, int64_t row, T* to, int64_t out) {
  if constexpr (sizeof(T) == 16) {
    *to = *from;
  } else {
    typedef typename Vector<T>::V V;
    constexpr int kCount = 16 / sizeof(T);
    constexpr auto lanes = std::make_integer_sequence<int, kCount>();
    V x[kCount], y[kCount];
    for (int i = 0; i < kCount; ++i) x[i] = *reinterpret_cast<const V*>(from + i * row);
    for (int step = 1; step < kCount; step *= 2) {
      for (int i = 0; i < kCount / 2; ++i) {
        y[2 * i] = Interleave<V, T, false>(x[i], x[i + kCount / 2], lanes);
        y[2 * i + 1] = Interleave<V, T, true>(x[i], x[i + kCount / 2], lanes);
      }
      for (int i = 0; i < kCount; ++i) x[i] = y[i];
    }
    for (int i = 0; i < kCount; ++i) *reinterpret_cast<V*>(to + i * out) = x[i];
  }
}

// Transposes `rows` rows of `count` elements, both up to those of a line.
template <class T>
void TurnBlock(const T* from, int64_t row, T* to, int64_t out, int64_t rows, int64_t count) {
  constexpr int64_t kSide = kLine / sizeof(T), kTile = 16 / sizeof(T);
  alignas(kLine) T block[kSide * kSide], turned[kSide * kSide];
  const bool whole = rows == kSide && count == kSide;
  if (!whole) {
    for (int64_t i = 0; i < rows; ++i) std::memcpy(block + i * kSide, from + i * row, count * sizeof(T));
    from = block;
    row = kSide;
  }
  for (int64_t i = 0; i < rows; i += kTile) {
    for (int64_t j = 0; j < count; j += kTile) {
      TurnTile(from + i * row + j, row, turned + j * kSide + i, kSide);
    }
  }
  if (whole) {
    for (int64_t j = 0; j < kSide; ++j) std::memcpy(to + j * out, turned + j * kSide, kLine);
    return;
  }
  for (int64_t j = 0; j < count; ++j) {
    std::memcpy(to + j * out, turned + j * kSide, rows * sizeof(T));
  }
}

// An axis: how many elements it has, and how far they are apart in the operand and in the result.
struct Axis {
  int64_t size, in, out;
};

// `side` is the operand's last axis, `last` the result's, and `rest` all others.
template <class T>
void Turn(ffi::ThreadPool& pool, const T* from, T* to, Axis side, Axis last,
          const std::vector<Axis>& rest) {
  constexpr int64_t kSide = kLine / sizeof(T);
  const int64_t across = (side.size + kSide - 1) / kSide, down = (last.size + kSide - 1) / kSide;
  constexpr int64_t kBlocks = kBytes / (kSide * kLine);
  int64_t total = across * down;
  for (const Axis& axis : rest) total *= axis.size;
  ForEach(pool, (total + kBlocks - 1) / kBlocks, [&](int64_t piece) {
    const int64_t end = std::min(total, (piece + 1) * kBlocks);
    for (int64_t block = piece * kBlocks; block < end;) {
      const int64_t i = block / across % down * kSide, rows = std::min(kSide, last.size - i);
      int64_t place = block / across / down, j = block % across;
      const T* x = from + i * last.in;
      T* y = to + i;
      for (const Axis& axis : rest) {
        x += place % axis.size * axis.in;
        y += place % axis.size * axis.out;
        place /= axis.size;
      }
      for (; j < across && block < end; ++j, ++block) {
        const int64_t begin = j * kSide, count = std::min(kSide, side.size - begin);
        TurnBlock(x + begin, last.in, y + begin * side.out, side.out, rows, count);
      }
    }
  });
}

// Axis `permutation[k]` of x is axis k of the result, in which axes in `reversed` are reversed.
ffi::Error Transpose(ffi::ThreadPool pool, ffi::Span<const int64_t> permutation,
                     ffi::Span<const int64_t> reversed, ffi::AnyBuffer x,
                     ffi::Result<ffi::AnyBuffer> out) {
  const auto inner = x.dimensions(), outer = out->dimensions();
  const int64_t rank = inner.size();
  bool fits = static_cast<int64_t>(outer.size()) == rank && x.element_type() == out->element_type() &&
              static_cast<int64_t>(permutation.size()) == rank && rank > 0;
  std::vector<int64_t> strides(rank, 1);
  for (int64_t i = rank - 2; fits && i >= 0; --i) strides[i] = strides[i + 1] * inner[i + 1];
  std::vector<Axis> axes(fits ? rank : 0), joined;
  int64_t stride = 1, in = 0, at = 0;  // where the first element is in both
  for (int64_t k = rank - 1; fits && k >= 0; --k) {
    const int64_t p = permutation[k];
    fits = p >= 0 && p < rank && inner[p] == outer[k];
    if (!fits) break;
    axes[k] = {outer[k], strides[p], stride};
    stride *= outer[k];
  }
  for (const int64_t k : reversed) {
    fits = fits && k >= 0 && k < rank;
    if (!fits) break;
    in += (axes[k].size - 1) * axes[k].in;
    axes[k].in = -axes[k].in;
  }
  for (const Axis& axis : axes) {  // those that stay side by side are one
    if (axis.size == 1) continue;
    if (!joined.empty() && joined.back().in == axis.in * axis.size) {
      joined.back() = {joined.back().size * axis.size, axis.in, axis.out};
    } else {
      joined.push_back(axis);
    }
  }
  const auto is_side = [](const Axis& axis) { return axis.in == 1 || axis.in == -1; };
  const auto found = std::find_if(joined.begin(), joined.end(), is_side);
  if (!fits || found == joined.end() || found + 1 == joined.end()) {
    return ffi::Error::InvalidArgument("weft.transpose: must move the last axis of the operand");
  }
  if (!out->element_count()) return ffi::Error::Success();
  const Axis last = joined.back();
  Axis side = *found;
  joined.pop_back();
  joined.erase(found);
  if (side.in < 0) {  // read forward, and written backward
    side.in = 1;
    side.out = -side.out;
    in -= side.size - 1;
    at -= (side.size - 1) * side.out;
  }
  std::reverse(joined.begin(), joined.end());
  const auto turn = [&](auto zero) {
    using T = decltype(zero);
    Turn(pool, static_cast<const T*>(x.untyped_data()) + in, static_cast<T*>(out->untyped_data()) + at,
         side, last, joined);
    return ffi::Error::Success();
  };
  switch (ffi::ByteWidth(x.element_type())) {
    case 1: return turn(int8_t{0});
    case 2: return turn(int16_t{0});
    case 4: return turn(int32_t{0});
    case 8: return turn(int64_t{0});
    case 16: return turn(std::array<int64_t, 2>{});
    default: return ffi::Error::InvalidArgument("weft.transpose: no such dtype");
  }
}

}  // namespace
}  // namespace weft

XLA_FFI_DEFINE_HANDLER_SYMBOL(weft_transpose, weft::Transpose,
                              xla::ffi::Ffi::Bind()
                                  .Ctx<xla::ffi::ThreadPool>()
                                  .Attr<xla::ffi::Span<const int64_t>>("permutation")
                                  .Attr<xla::ffi::Span<const int64_t>>("reversed")
                                  .Arg<xla::ffi::AnyBuffer>()
                                  .Ret<xla::ffi::AnyBuffer>());
