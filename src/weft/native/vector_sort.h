// Sorts unsigned integers of 32 or 64 bits by quicksort in vectors, with AVX-512 if available.
//
// A range is split at a pivot, a vector at a time, by packing chosen lanes, and from one buffer
// into another of the same size. Ranges of up to eight vectors are sorted in registers by Batcher's
// bitonic network (Sorting networks and their applications, AFIPS 1968). Equal elements are
// indistinguishable, so the sort need not be stable.

#ifndef WEFT_NATIVE_VECTOR_SORT_H_
#define WEFT_NATIVE_VECTOR_SORT_H_

#include <cstdint>
#include <type_traits>

#include "common.h"
#include "keys.h"

#if defined(__AVX2__) && defined(__GNUC__)
#define WEFT_SORTS_VECTORS
#include <immintrin.h>
#endif

namespace weft {
namespace {

#ifdef WEFT_SORTS_VECTORS

// The lanes whose number has this bit, a power of two.
constexpr uint32_t MaskOf(int bit) {
  uint32_t mask = 0;
  for (int i = 0; i < 16; ++i) mask |= (i & bit ? 1u : 0u) << i;
  return mask;
}

#ifdef WEFT_AVX512
namespace by512 {

// An attribute, not a pragma: inlined functions of the standard library must run on all machines.
#define WEFT_SORT __attribute__((target("avx512f,bmi2,popcnt")))
#define WEFT_SORT_INLINE __attribute__((target("avx512f,bmi2,popcnt"), always_inline)) inline

using Vec = __m512i;

// Vectors of unsigned integers of kBits bits. `...` are the numbers of the lanes, the last one
// first.
#define WEFT_LANES(kBits, kCount, ...)                                                     \
  struct Lanes##kBits {                                                                    \
    using Key = uint##kBits##_t;                                                           \
    static constexpr int kLanes = kCount, kRoom = kCount;                                  \
    /* The first n lanes; all where n is larger, and none where it is negative. */         \
    WEFT_SORT_INLINE static uint32_t First(int64_t n) {                                         \
      return n >= kLanes ? (1u << kLanes) - 1 : n > 0 ? (1u << n) - 1 : 0;                 \
    }                                                                                      \
    WEFT_SORT_INLINE static Vec Spread(Key x) { return _mm512_set1_epi##kBits(x); }             \
    WEFT_SORT_INLINE static Vec Load(const Key* p, int64_t n) {                                 \
      return _mm512_mask_loadu_epi##kBits(Spread(~Key{0}), First(n), p);                   \
    }                                                                                      \
    WEFT_SORT_INLINE static void Store(Key* p, int64_t n, Vec x) {                              \
      _mm512_mask_storeu_epi##kBits(p, First(n), x);                                       \
    }                                                                                      \
    WEFT_SORT_INLINE static Vec Min(Vec x, Vec y) { return _mm512_min_epu##kBits(x, y); }       \
    WEFT_SORT_INLINE static Vec Max(Vec x, Vec y) { return _mm512_max_epu##kBits(x, y); }       \
    template <uint32_t mask>                                                               \
    WEFT_SORT_INLINE static Vec MinOrMax(Vec x, Vec y) {                                        \
      return _mm512_mask_max_epu##kBits(Min(x, y), mask, x, y);                            \
    }                                                                                      \
    /* Lane i of the result is lane i ^ by. */                                             \
    template <int by>                                                                      \
    WEFT_SORT_INLINE static Vec Swap(Vec x) {                                                   \
      const Vec places = _mm512_set_epi##kBits(__VA_ARGS__);                               \
      return _mm512_permutexvar_epi##kBits(_mm512_xor_si512(places, Spread(by)), x);       \
    }                                                                                      \
    /* Puts those of n lanes that are below `bound` from `low` on, the others up to `high`. */ \
    WEFT_SORT_INLINE static int Part(Vec x, Vec bound, int64_t n, Key* low, Key* high) {        \
      const uint32_t here = First(n), less = _mm512_cmplt_epu##kBits##_mask(x, bound) & here; \
      const int above = __builtin_popcount(here & ~less);                                  \
      Store(low, n, _mm512_maskz_compress_epi##kBits(less, x)); /* beyond it, written again */ \
      Store(high - above, above, _mm512_maskz_compress_epi##kBits(here & ~less, x));       \
      return __builtin_popcount(less);                                                     \
    }                                                                                      \
  };

WEFT_LANES(32, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
WEFT_LANES(64, 8, 7, 6, 5, 4, 3, 2, 1, 0)

#include "quicksort_lanes.h"

#undef WEFT_SORT
#undef WEFT_SORT_INLINE
}  // namespace by512
#endif

namespace by256 {

using Vec = __m256i;

// Writes the chosen 32-bit words of x from `low` on, and the others up to `high`. Both writes are
// whole vectors and overwrite elements beyond; so two vectors must be free between the two.
WEFT_INLINE void PutWords(uint32_t chosen, Vec x, void* low, void* high) {
  const auto* const order = reinterpret_cast<const __m128i*>(kOrders.numbers[chosen]);
  const Vec packed = _mm256_permutevar8x32_epi32(x, _mm256_cvtepu8_epi32(_mm_loadl_epi64(order)));
  _mm256_storeu_si256(static_cast<Vec*>(low), packed);
  _mm256_storeu_si256(static_cast<Vec*>(high) - 1, packed);
}

struct Lanes32 {
  using Key = uint32_t;
  static constexpr int kLanes = 8, kRoom = 16;  // keys left between `low` and `high`, that Part needs
  WEFT_INLINE static Vec Spread(Key x) { return _mm256_set1_epi32(x); }
  WEFT_INLINE static Vec First(int64_t n) {
    return _mm256_cmpgt_epi32(Spread(n), _mm256_set_epi32(7, 6, 5, 4, 3, 2, 1, 0));
  }
  WEFT_INLINE static Vec Load(const Key* p, int64_t n) {
    if (n >= kLanes) return _mm256_loadu_si256(reinterpret_cast<const Vec*>(p));
    if (n <= 0) return Spread(~Key{0});
    const Vec found = _mm256_maskload_epi32(reinterpret_cast<const int*>(p), First(n));
    return _mm256_blendv_epi8(Spread(~Key{0}), found, First(n));
  }
  WEFT_INLINE static void Store(Key* p, int64_t n, Vec x) {
    if (n >= kLanes) {
      _mm256_storeu_si256(reinterpret_cast<Vec*>(p), x);
    } else if (n > 0) {
      _mm256_maskstore_epi32(reinterpret_cast<int*>(p), First(n), x);
    }
  }
  WEFT_INLINE static Vec Min(Vec x, Vec y) { return _mm256_min_epu32(x, y); }
  WEFT_INLINE static Vec Max(Vec x, Vec y) { return _mm256_max_epu32(x, y); }
  template <uint32_t mask>
  WEFT_INLINE static Vec MinOrMax(Vec x, Vec y) {
    return _mm256_blend_epi32(Min(x, y), Max(x, y), mask & 255);
  }
  template <int by>
  WEFT_INLINE static Vec Swap(Vec x) {
    constexpr int turn = by & 3, places = turn | (1 ^ turn) << 2 | (2 ^ turn) << 4 | (3 ^ turn) << 6;
    const Vec y = turn == 0 ? x : _mm256_shuffle_epi32(x, places);
    return by < 4 ? y : _mm256_permute2x128_si256(y, y, 1);
  }
  WEFT_INLINE static int Part(Vec x, Vec bound, int64_t, Key* low, Key* high) {
    const Vec others = _mm256_cmpeq_epi32(Max(x, bound), x);
    const uint32_t less = ~_mm256_movemask_ps(_mm256_castsi256_ps(others)) & 255;
    PutWords(less, x, low, high);
    return __builtin_popcount(less);
  }
};

// In vectors the highest bits are the other way round, as only signed numbers can be compared.
struct Lanes64 {
  using Key = uint64_t;
  static constexpr int kLanes = 4, kRoom = 8;
  WEFT_INLINE static Vec Turn(Vec x) { return _mm256_xor_si256(x, _mm256_set1_epi64x(INT64_MIN)); }
  WEFT_INLINE static Vec Spread(Key x) { return Turn(_mm256_set1_epi64x(x)); }
  WEFT_INLINE static Vec First(int64_t n) {
    return _mm256_cmpgt_epi64(_mm256_set1_epi64x(n), _mm256_set_epi64x(3, 2, 1, 0));
  }
  WEFT_INLINE static Vec Load(const Key* p, int64_t n) {
    if (n >= kLanes) return Turn(_mm256_loadu_si256(reinterpret_cast<const Vec*>(p)));
    if (n <= 0) return Spread(~Key{0});
    const Vec found = _mm256_maskload_epi64(reinterpret_cast<const long long*>(p), First(n));
    return _mm256_blendv_epi8(Spread(~Key{0}), Turn(found), First(n));
  }
  WEFT_INLINE static void Store(Key* p, int64_t n, Vec x) {
    if (n >= kLanes) {
      _mm256_storeu_si256(reinterpret_cast<Vec*>(p), Turn(x));
    } else if (n > 0) {
      _mm256_maskstore_epi64(reinterpret_cast<long long*>(p), First(n), Turn(x));
    }
  }
  WEFT_INLINE static Vec Min(Vec x, Vec y) {
    return _mm256_blendv_epi8(x, y, _mm256_cmpgt_epi64(x, y));
  }
  WEFT_INLINE static Vec Max(Vec x, Vec y) {
    return _mm256_blendv_epi8(y, x, _mm256_cmpgt_epi64(x, y));
  }
  template <uint32_t mask>
  WEFT_INLINE static Vec MinOrMax(Vec x, Vec y) {
    constexpr int64_t m = mask;
    const Vec largest = _mm256_set_epi64x(-(m >> 3 & 1), -(m >> 2 & 1), -(m >> 1 & 1), -(m & 1));
    return _mm256_blendv_epi8(x, y, _mm256_xor_si256(_mm256_cmpgt_epi64(x, y), largest));
  }
  template <int by>
  WEFT_INLINE static Vec Swap(Vec x) {
    if (by == 1) return _mm256_shuffle_epi32(x, 0x4e);
    return _mm256_permute4x64_epi64(x, by | (1 ^ by) << 2 | (2 ^ by) << 4 | (3 ^ by) << 6);
  }
  WEFT_INLINE static int Part(Vec x, Vec bound, int64_t, Key* low, Key* high) {
    const Vec below = _mm256_cmpgt_epi64(bound, x);
    const uint32_t less = _mm256_movemask_ps(_mm256_castsi256_ps(below));
    PutWords(less, Turn(x), low, high);
    return __builtin_popcount(less) / 2;
  }
};

#define WEFT_SORT
#define WEFT_SORT_INLINE WEFT_INLINE
#include "quicksort_lanes.h"

#undef WEFT_SORT
#undef WEFT_SORT_INLINE
}  // namespace by256

inline bool HasVectors() { return true; }

inline bool HasWideVectors() {
#ifdef WEFT_AVX512
  static const bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("bmi2");
  return wide;
#else
  return false;
#endif
}

// Sorts n keys in `a`; `b` is scratch memory of the same size.
template <class Key, class Otherwise>
void SortByVectors(Key* a, Key* b, int64_t n, const Otherwise& otherwise) {
  constexpr bool half = sizeof(Key) == 4;
#ifdef WEFT_AVX512
  if (HasWideVectors()) {
    using V = std::conditional_t<half, by512::Lanes32, by512::Lanes64>;
    return by512::SortKeys<V>(a, b, a, n, 64, otherwise);
  }
#endif
  using V = std::conditional_t<half, by256::Lanes32, by256::Lanes64>;
  by256::SortKeys<V>(a, b, a, n, 64, otherwise);
}

#else

inline bool HasVectors() { return false; }
inline bool HasWideVectors() { return false; }

template <class Key, class Otherwise>
void SortByVectors(Key*, Key*, int64_t, const Otherwise&) {}

#endif  // WEFT_SORTS_VECTORS

}  // namespace
}  // namespace weft

#endif  // WEFT_NATIVE_VECTOR_SORT_H_
