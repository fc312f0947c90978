"""Elementary functions of float32 in C, written without branches so that compilers vectorize them.

Functions of libm are calls, which no compiler vectorizes unless it may change results. These are
sums, products and integer operations on the bits of numbers, all of which SSE2 and NEON have, so
gcc and clang vectorize loops around them at `-O3` alone. Errors: log 0.9 ulp, exp 1.1 ulp, log1p
1.5 ulp, expm1 1.8 ulp, tanh 2.5 ulp. Under `-ffast-math`, which would remove the corrections of
rounding errors, they are the functions of libm, of which gcc has vectorized versions.

The coefficients are minimax fits of the relative error. Functions of float64 are those of libm.
"""

from __future__ import annotations

import re

# Every call within a text is found by its name, so a text lists no dependencies.
ELEMENTARY = {
    "weft_pick_f32": """
static inline float weft_pick_f32(bool test, float a, float b) {
  /* test ? a : b, for numbers that are both computed anyway. */
  const uint32_t mask = (uint32_t)0 - (uint32_t)test;
  const uint32_t u = weft_bits_f32_to_u32(a), v = weft_bits_f32_to_u32(b);
  return weft_bits_u32_to_f32((u & mask) | (v & ~mask));
}""",
    "weft_power_f32": """
static inline float weft_power_f32(int32_t n) {
  /* 2 to the power n, for n from -126 to 127. */
  return weft_bits_u32_to_f32((uint32_t)(n + 127) << 23);
}""",
    "weft_split_f32": """
static inline float weft_split_f32(float x, int32_t *power) {
  /* The number p such that exp(x) = (1 + p) 2^power, for |x| up to 104. */
  const int32_t n = (int32_t)(x * 1.44269504f + copysignf(0.5f, x));
  const float k = (float)n, r = x - k * 0.693359375f + k * 2.12194440e-4f;
  const float c = 4.1666266e-2f + r * (8.367247e-3f + r * 1.3947597e-3f);
  *power = n;
  return r * r * (0.5f + r * (1.6666538e-1f + r * c)) + r;
}""",
    "weft_join_f32": """
static inline float weft_join_f32(float f, int32_t n) {
  /* log((1 + f) 2^n), for f from sqrt(1/2) - 1 to sqrt(2) - 1. */
  const float k = (float)n, z = f * f;
  const float c = 1.4180014e-1f + f * (-1.3130492e-1f + f * (1.2890886e-1f - f * 7.866232e-2f));
  const float d = -2.500082e-1f + f * (2.0002331e-1f + f * (-1.6624276e-1f + f * c));
  const float less = 0.5f * z + k * 2.12194440e-4f;
  return k * 0.693359375f + (f + (f * z * (3.3333316e-1f + f * d) - less));
}""",
    "weft_exp_f32": """
static inline float weft_exp_f32(float x) {
#ifdef __FAST_MATH__
  return expf(x);
#else
  const uint32_t u = weft_bits_f32_to_u32(x), sign = u & 0x80000000u;
  const int32_t size = (int32_t)(u ^ sign);
  const int32_t bound = size < 0x42d00000 ? size : 0x42d00000; /* 104 */
  int32_t n;
  const float p = weft_split_f32(weft_bits_u32_to_f32((uint32_t)bound | sign), &n);
  const float y = (1.0f + p) * weft_power_f32(n / 2) * weft_power_f32(n - n / 2);
  return weft_pick_f32(size > 0x7f800000, x, y);
#endif
}""",
    "weft_expm1_f32": """
static inline float weft_expm1_f32(float x) {
#ifdef __FAST_MATH__
  return expm1f(x);
#else
  const uint32_t u = weft_bits_f32_to_u32(x), sign = u & 0x80000000u;
  const int32_t size = (int32_t)(u ^ sign), most = sign != 0 ? 0x41900000 : 0x42b20000;
  const int32_t bound = size < most ? size : most; /* -18, 89 */
  int32_t n;
  const float p = weft_split_f32(weft_bits_u32_to_f32((uint32_t)bound | sign), &n);
  const float s = weft_power_f32(n - 1);
  const float y = copysignf(2.0f * (s * p + (s - 0.5f)), x);
  return weft_pick_f32(size > 0x7f800000, x, y);
#endif
}""",
    "weft_tanh_f32": """
static inline float weft_tanh_f32(float x) {
#ifdef __FAST_MATH__
  return tanhf(x);
#else
  const int32_t size = (int32_t)(weft_bits_f32_to_u32(x) & 0x7fffffffu);
  const int32_t bound = size < 0x41200000 ? size : 0x41200000; /* 10 */
  int32_t n;
  const float p = weft_split_f32(2.0f * weft_bits_u32_to_f32((uint32_t)bound), &n);
  const float s = weft_power_f32(n), t = s * p + (s - 1.0f); /* expm1(2 |x|) */
  return weft_pick_f32(size > 0x7f800000, x, copysignf(t / (t + 2.0f), x));
#endif
}""",
    "weft_log_f32": """
static inline float weft_log_f32(float x) {
#ifdef __FAST_MATH__
  return logf(x);
#else
  const uint32_t u = weft_bits_f32_to_u32(x);
  const bool tiny = (int32_t)u < 0x800000;
  const uint32_t v = weft_bits_f32_to_u32(weft_pick_f32(tiny, x * 8388608.0f, x));
  const int32_t n = (int32_t)((v + 0x4afb0du) >> 23) - 127;
  const float m = weft_bits_u32_to_f32(v - ((uint32_t)n << 23));
  const float y = weft_join_f32(m - 1.0f, n - 23 * (int32_t)tiny);
  const float special = weft_pick_f32((u << 1) == 0, -INFINITY, NAN);
  return weft_pick_f32(u - 1u < 0x7f7fffffu, y, weft_pick_f32(u == 0x7f800000u, x, special));
#endif
}""",
    "weft_log1p_f32": """
static inline float weft_log1p_f32(float x) {
#ifdef __FAST_MATH__
  return log1pf(x);
#else
  const float a = 1.0f + x, lost = x - (a - 1.0f);
  const uint32_t u = weft_bits_f32_to_u32(a);
  const int32_t n = (int32_t)((u + 0x4afb0du) >> 23) - 127;
  const float m = weft_bits_u32_to_f32(u - ((uint32_t)n << 23));
  const float less = lost * weft_power_f32(n < 100 ? -n : -100); /* far below m for a larger n */
  const float y = copysignf(weft_join_f32(m - 1.0f + less, n), x);
  const float special = weft_pick_f32(u == 0, -INFINITY, NAN);
  return weft_pick_f32(u - 1u < 0x7f7fffffu, y, weft_pick_f32(u == 0x7f800000u, x, special));
#endif
}""",
}
LIBM = re.compile(r"\b(exp|expm1|log|log1p|tanh)f\(")


def use_elementary(pattern: str) -> str:
    """Return a pattern of float32 with functions of this file in place of libm's."""
    return LIBM.sub(r"weft_\1_f32(", pattern)
