// bfloat16, which is the upper 16 bits of a float32, and float16.

#ifndef WEFT_NATIVE_HALVES_H_
#define WEFT_NATIVE_HALVES_H_

#include "tiles.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

// Compiled for AVX-512 too.
#if defined(WEFT_AVX512) && defined(__gnu_linux__) && !defined(__clang__)
#define WEFT_WIDEST __attribute__((target_clones("arch=skylake-avx512", "default")))
#else
#define WEFT_WIDEST
#endif

namespace weft {
namespace {

WEFT_WIDEST void Widen(const uint16_t* __restrict x, float* __restrict y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const uint32_t bits = uint32_t{x[i]} << 16;
    std::memcpy(y + i, &bits, 4);
  }
}

// Rounds to nearest, ties to even. NaN becomes quiet, without its payload, as in XLA.
WEFT_WIDEST void Narrow(const float* __restrict x, uint16_t* __restrict y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    uint32_t bits;
    std::memcpy(&bits, x + i, 4);
    const uint32_t rounded = bits + 0x7FFF + (bits >> 16 & 1);
    y[i] = (x[i] != x[i] ? (bits & 0xFF800000) | 0x400000 : rounded) >> 16;
  }
}

// Elements of float16.
WEFT_FOR("avx2,f16c") void WidenHalf(const uint16_t* __restrict x, float* __restrict y, int64_t n) {
  int64_t i = 0;
#ifdef __x86_64__
  for (; i + 8 <= n; i += 8) {
    _mm256_storeu_ps(y + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(x + i))));
  }
  for (; i < n; ++i) y[i] = _cvtsh_ss(x[i]);
#else
  for (; i < n; ++i) y[i] = reinterpret_cast<const _Float16*>(x)[i];
#endif
}

}  // namespace
}  // namespace weft

#endif  // WEFT_NATIVE_HALVES_H_
