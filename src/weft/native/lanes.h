// Arrays whose elements lie side by side in lanes of vectors: a lane for each of some small matrices.

#ifndef WEFT_NATIVE_LANES_H_
#define WEFT_NATIVE_LANES_H_

#include <type_traits>
#include <utility>

#include "tiles.h"

namespace weft {

// Integers of a vector's lanes, as comparisons give them, and as wide.
template <class T>
using Mask = std::conditional_t<sizeof(T) == 8, int64_t, int32_t>;

// Which of the lanes of two vectors becomes one of what PairGroups gives.
template <int64_t kLanes, int64_t kHalf, bool kUpper>
constexpr int Paired(int lane) {
  const int64_t from = (lane & ~kHalf) + (kUpper ? kHalf : 0);
  return static_cast<int>(lane & kHalf ? kLanes + from : from);
}

// Of each two groups of kHalf lanes of x and y the lower ones, or the upper ones, in turn.
template <class V, class M, int64_t kHalf, bool kUpper, int... kLane>
WEFT_INLINE V PairGroups(V x, V y, std::integer_sequence<int, kLane...>) {
  constexpr int64_t kLanes = sizeof...(kLane);
#if defined(__clang__)
  return __builtin_shufflevector(x, y, Paired<kLanes, kHalf, kUpper>(kLane)...);
#else
  return __builtin_shuffle(x, y, M{Paired<kLanes, kHalf, kUpper>(kLane)...});
#endif
}

template <class V, class M, int64_t kLanes, int64_t kHalf>
WEFT_INLINE void TransposeBy(V* x) {
  if constexpr (kHalf > 0) {
    constexpr auto lanes = std::make_integer_sequence<int, kLanes>();
    for (int64_t i = 0; i < kLanes; ++i) {
      if (i & kHalf) continue;
      const V low = x[i], high = x[i + kHalf];
      x[i] = PairGroups<V, M, kHalf, false>(low, high, lanes);
      x[i + kHalf] = PairGroups<V, M, kHalf, true>(low, high, lanes);
    }
    TransposeBy<V, M, kLanes, kHalf / 2>(x);
  }
}

// Transposes as many vectors as they have lanes.
template <class T, int kBytes>
WEFT_INLINE void Transpose(typename Vector<T, kBytes>::V* x) {
  using M = typename Vector<Mask<T>, kBytes>::V;
  constexpr int64_t kLanes = Vector<T, kBytes>::kLanes;
  TransposeBy<typename Vector<T, kBytes>::V, M, kLanes, kLanes / 2>(x);
}

// Puts `count` elements of each array into the lanes of vectors; arrays are `stride` apart, and lanes
// from `used` on have the last of them again.
template <class T, int kBytes>
WEFT_INLINE void LoadLanes(const T* from, int64_t stride, int64_t count, int64_t used,
                           typename Vector<T, kBytes>::V* to) {
  using V = typename Vector<T, kBytes>::V;
  constexpr int64_t kLanes = Vector<T, kBytes>::kLanes;
  if (count < kLanes) {
    T* const out = reinterpret_cast<T*>(to);
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      const T* const row = from + std::min(lane, used - 1) * stride;
      for (int64_t i = 0; i < count; ++i) out[i * kLanes + lane] = row[i];
    }
    return;
  }
  for (int64_t i = 0; i < count; i += kLanes) {
    i = std::min(i, count - kLanes);  // the last ones are written twice
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      to[i + lane] = Load<V>(from + std::min(lane, used - 1) * stride + i);
    }
    Transpose<T, kBytes>(to + i);
  }
}

// Takes them back.
template <class T, int kBytes>
WEFT_INLINE void StoreLanes(const typename Vector<T, kBytes>::V* from, int64_t stride, int64_t count,
                            int64_t used, T* to) {
  using V = typename Vector<T, kBytes>::V;
  constexpr int64_t kLanes = Vector<T, kBytes>::kLanes;
  if (count < kLanes) {
    const T* const in = reinterpret_cast<const T*>(from);
    for (int64_t lane = 0; lane < used; ++lane, to += stride) {
      for (int64_t i = 0; i < count; ++i) to[i] = in[i * kLanes + lane];
    }
    return;
  }
  for (int64_t i = 0; i < count; i += kLanes) {
    i = std::min(i, count - kLanes);
    V block[kLanes];
    for (int64_t lane = 0; lane < kLanes; ++lane) block[lane] = from[i + lane];
    Transpose<T, kBytes>(block);
    for (int64_t lane = 0; lane < used; ++lane) {
      std::memcpy(to + lane * stride + i, block + lane, sizeof(V));
    }
  }
}

}  // namespace weft

#endif  // WEFT_NATIVE_LANES_H_
