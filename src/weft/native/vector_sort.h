// Sorting unsigned integers of 32 or 64 bits by AVX-512, where the machine has it: quicksort.
//
// A range is split about a pivot, a vector at a time, by the instruction that packs chosen lanes, and
// from one place into another of the same size; ranges of up to eight vectors are sorted in registers by
// Batcher's bitonic network (Sorting networks and their applications, AFIPS 1968). Equal elements are
// the same, so that nobody sees their order.

#ifndef WEFT_NATIVE_VECTOR_SORT_H_
#define WEFT_NATIVE_VECTOR_SORT_H_

#include <cstdint>
#include <type_traits>

#if defined(__x86_64__) && defined(__GNUC__)
#define WEFT_AVX512
#include <immintrin.h>
#endif

namespace weft {
namespace {

#ifdef WEFT_AVX512

// Not a pragma: what is compiled of the standard library must run on all machines.
#define WEFT_512 __attribute__((target("avx512f,bmi2,popcnt")))
#define WEFT_512_INLINE __attribute__((target("avx512f,bmi2,popcnt"), always_inline)) inline

// Vectors of unsigned integers of so many bits, whose lanes have the numbers `...`, the last one first.
#define WEFT_LANES(kBits, kCount, ...)                                                     \
  struct Lanes##kBits {                                                                    \
    using Key = uint##kBits##_t;                                                           \
    static constexpr int kLanes = kCount;                                                  \
    WEFT_512_INLINE static __m512i Spread(Key x) { return _mm512_set1_epi##kBits(x); }     \
    WEFT_512_INLINE static __m512i Load(const Key* p, uint32_t mask) {                     \
      return _mm512_mask_loadu_epi##kBits(Spread(~Key{0}), mask, p);                       \
    }                                                                                      \
    WEFT_512_INLINE static void Store(Key* p, uint32_t mask, __m512i x) {                  \
      _mm512_mask_storeu_epi##kBits(p, mask, x);                                           \
    }                                                                                      \
    WEFT_512_INLINE static __m512i Pack(uint32_t mask, __m512i x) {                        \
      return _mm512_maskz_compress_epi##kBits(mask, x);                                    \
    }                                                                                      \
    WEFT_512_INLINE static uint32_t Less(__m512i x, __m512i y) {                           \
      return _mm512_cmplt_epu##kBits##_mask(x, y);                                         \
    }                                                                                      \
    WEFT_512_INLINE static __m512i Min(__m512i x, __m512i y) {                             \
      return _mm512_min_epu##kBits(x, y);                                                  \
    }                                                                                      \
    WEFT_512_INLINE static __m512i Max(__m512i x, __m512i y) {                             \
      return _mm512_max_epu##kBits(x, y);                                                  \
    }                                                                                      \
    WEFT_512_INLINE static __m512i MinOrMax(uint32_t mask, __m512i x, __m512i y) {         \
      return _mm512_mask_max_epu##kBits(Min(x, y), mask, x, y);                            \
    }                                                                                      \
    /* Lane i of the result is lane i ^ by. */                                             \
    template <int by>                                                                      \
    WEFT_512_INLINE static __m512i Swap(__m512i x) {                                       \
      const __m512i places = _mm512_set_epi##kBits(__VA_ARGS__);                           \
      return _mm512_permutexvar_epi##kBits(_mm512_xor_si512(places, Spread(by)), x);       \
    }                                                                                      \
  };

WEFT_LANES(32, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
WEFT_LANES(64, 8, 7, 6, 5, 4, 3, 2, 1, 0)

// The lanes whose number has this bit, a power of two.
constexpr uint32_t MaskOf(int bit) {
  uint32_t mask = 0;
  for (int i = 0; i < 16; ++i) mask |= (i & bit ? 1u : 0u) << i;
  return mask;
}

// The first n lanes; all of them where n is larger, and none where it is negative.
template <class V>
WEFT_512_INLINE uint32_t FirstLanes(int64_t n) {
  return n >= V::kLanes ? (1u << V::kLanes) - 1 : n > 0 ? (1u << n) - 1 : 0;
}

// Compares lanes i and i ^ by; those with the highest bit of `by` keep the larger.
template <class V, int by, int bit>
WEFT_512_INLINE __m512i Exchange(__m512i x) {
  const __m512i y = V::template Swap<by>(x);
  return V::MinOrMax(MaskOf(bit), x, y);
}

// Sorts each vector whose halves are bitonic with each other.
template <class V>
WEFT_512_INLINE __m512i MergeLanes(__m512i x) {
  if constexpr (V::kLanes == 16) x = Exchange<V, 8, 8>(x);
  x = Exchange<V, 4, 4>(x);
  x = Exchange<V, 2, 2>(x);
  return Exchange<V, 1, 1>(x);
}

template <class V>
WEFT_512_INLINE __m512i SortLanes(__m512i x) {
  x = Exchange<V, 1, 1>(x);
  x = Exchange<V, 3, 2>(x);
  x = Exchange<V, 1, 1>(x);
  x = Exchange<V, 7, 4>(x);
  x = Exchange<V, 2, 2>(x);
  x = Exchange<V, 1, 1>(x);
  if constexpr (V::kLanes == 16) {
    x = Exchange<V, 15, 8>(x);
    x = Exchange<V, 4, 4>(x);
    x = Exchange<V, 2, 2>(x);
    x = Exchange<V, 1, 1>(x);
  }
  return x;
}

// Sorts `count` vectors as one row.
template <class V, int count>
WEFT_512_INLINE void SortVectors(__m512i* v) {
  if constexpr (count == 1) {
    v[0] = SortLanes<V>(v[0]);
  } else {
    constexpr int half = count / 2;
    SortVectors<V, half>(v);
    SortVectors<V, half>(v + half);
    __m512i backward[half];  // the second half
#pragma GCC unroll 8
    for (int i = 0; i < half; ++i) backward[i] = V::template Swap<V::kLanes - 1>(v[count - 1 - i]);
#pragma GCC unroll 8
    for (int i = 0; i < half; ++i) {
      v[half + i] = V::Max(v[i], backward[i]);
      v[i] = V::Min(v[i], backward[i]);
    }
#pragma GCC unroll 8
    for (int stride = half / 2; stride > 0; stride /= 2) {
#pragma GCC unroll 8
      for (int i = 0; i < count; ++i) {
        if (i & stride) continue;
        const __m512i x = v[i], y = v[i + stride];
        v[i] = V::Min(x, y);
        v[i + stride] = V::Max(x, y);
      }
    }
#pragma GCC unroll 8
    for (int i = 0; i < count; ++i) v[i] = MergeLanes<V>(v[i]);
  }
}

// Sorts up to `count` vectors of keys from one place into another.
template <class V, int count>
WEFT_512 void SortFew(const typename V::Key* from, typename V::Key* to, int64_t n) {
  constexpr int kLanes = V::kLanes;
  __m512i v[count];
#pragma GCC unroll 8
  for (int i = 0; i < count; ++i) {
    v[i] = V::Load(from + i * kLanes, FirstLanes<V>(n - i * kLanes));
  }
  SortVectors<V, count>(v);
#pragma GCC unroll 8
  for (int i = 0; i < count; ++i) {
    V::Store(to + i * kLanes, FirstLanes<V>(n - i * kLanes), v[i]);
  }
}

// Puts keys below `pivot` first and the others last; gives how many are below.
template <class V>
WEFT_512 int64_t Split(const typename V::Key* from, typename V::Key* to, int64_t n,
                       typename V::Key pivot) {
  constexpr int kLanes = V::kLanes;
  const __m512i bound = V::Spread(pivot);
  int64_t low = 0, high = n;
  const auto put = [&](int64_t i, uint32_t here) WEFT_512 {
    const __m512i x = V::Load(from + i, here);
    const uint32_t less = V::Less(x, bound) & here, others = here & ~less;
    const int below = __builtin_popcount(less), above = __builtin_popcount(others);
    V::Store(to + low, here, V::Pack(less, x));  // what is written beyond is written again
    low += below;
    high -= above;
    V::Store(to + high, (1u << above) - 1, V::Pack(others, x));
  };
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) put(i, FirstLanes<V>(kLanes));
  put(i, FirstLanes<V>(n - i));
  return low;
}

// Sorts n keys that lie in `a` into `out`, which is `a` or `b`, with room in both. Where pivots are found
// badly `depth` times, as in a row made for that, otherwise(a, b, n) sorts and says in which they are.
template <class V, class Otherwise>
WEFT_512 void SortKeys(typename V::Key* a, typename V::Key* b, typename V::Key* out, int64_t n,
                       int depth, const Otherwise& otherwise) {
  using Key = typename V::Key;
  constexpr int kLanes = V::kLanes;
  while (n > 8 * kLanes) {
    if (depth-- == 0) {
      const Key* const found = otherwise(a, b, n);
      for (int64_t i = 0; i < n; ++i) out[i] = found[i];
      return;
    }
    Key some[kLanes];
    for (int i = 0; i < kLanes; ++i) some[i] = a[(2 * i + 1) * n / (2 * kLanes)];
    SortFew<V, 1>(some, some, kLanes);
    const Key pivot = some[kLanes / 2];
    int64_t low = Split<V>(a, b, n, pivot);
    if (low == 0) {  // none is smaller than the pivot: what equals it is in place
      if (pivot == static_cast<Key>(~Key{0})) {
        for (int64_t i = 0; i < n; ++i) out[i] = pivot;
        return;
      }
      low = Split<V>(a, b, n, pivot + 1);
      for (int64_t i = 0; i < low; ++i) out[i] = pivot;
    } else {
      SortKeys<V>(b, a, out, low, depth, otherwise);
    }
    Key* const other = a + low;
    a = b + low;
    b = other;
    out += low;
    n -= low;
  }
  if (n <= kLanes) {
    SortFew<V, 1>(a, out, n);
  } else if (n <= 2 * kLanes) {
    SortFew<V, 2>(a, out, n);
  } else if (n <= 4 * kLanes) {
    SortFew<V, 4>(a, out, n);
  } else {
    SortFew<V, 8>(a, out, n);
  }
}

inline bool HasVectors() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("bmi2");
}

// Sorts n keys in `a`, with room for as many in `b`, where the machine has the vectors.
template <class Key, class Otherwise>
void SortByVectors(Key* a, Key* b, int64_t n, const Otherwise& otherwise) {
  using V = std::conditional_t<sizeof(Key) == 4, Lanes32, Lanes64>;
  SortKeys<V>(a, b, a, n, 64, otherwise);
}

#else

inline bool HasVectors() { return false; }

template <class Key, class Otherwise>
void SortByVectors(Key*, Key*, int64_t, const Otherwise&) {}

#endif  // WEFT_AVX512

}  // namespace
}  // namespace weft

#endif  // WEFT_NATIVE_VECTOR_SORT_H_
