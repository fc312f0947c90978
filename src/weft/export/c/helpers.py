"""Functions of C: written once here, and part of each source that calls them.

A name says the types, as in `weft_div_i32`. Texts are templates: T is the type of variables of the
kind, S the type of stored ones, U the unsigned integer of the same width, N the kind's name, B the
number of bits, F the suffix of functions of libm.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from weft import dtypes
from weft.export.c.elementary import ELEMENTARY
from weft.export.c.kinds import KINDS, PARTS, Kind

BY_NAME = {kind.name: kind for kind in KINDS.values()}

# Functions without a type.
PLAIN = {
    "weft_floor": """
static inline ptrdiff_t weft_floor(ptrdiff_t a, ptrdiff_t b) {
  const ptrdiff_t q = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}""",
    "weft_min": """
static inline ptrdiff_t weft_min(ptrdiff_t a, ptrdiff_t b) { return a < b ? a : b; }""",
    "weft_max": """
static inline ptrdiff_t weft_max(ptrdiff_t a, ptrdiff_t b) { return a > b ? a : b; }""",
    "weft_align": """
static inline ptrdiff_t weft_align(ptrdiff_t bytes) { return (bytes + 15) / 16 * 16; }""",
}

# The complex number of two parts, which keeps infinite and NaN parts unchanged.
JOINED = """
static inline T weft_N(P re, P im) {
  union { P part[2]; T z; } both;
  both.part[0] = re;
  both.part[1] = im;
  return both.z;
}"""

# Functions of one kind, by the part of their name between "weft_" and the kind.
TYPED = {
    "max": """
static inline T weft_max_N(T a, T b) { return a > b || a != a ? a : b; }""",
    "min": """
static inline T weft_min_N(T a, T b) { return a < b || a != a ? a : b; }""",
    "normalize": """
static inline int weft_normalize_N(ptrdiff_t n, T *a) {
  /* Scales numbers such that the largest is about 1, so that squares are in range; the power. */
  T largest = 0;
  int power = 0;
  for (ptrdiff_t k = 0; k < n; ++k) largest = fabsF(a[k]) > largest ? fabsF(a[k]) : largest;
  if (largest > 0 && isfinite(largest)) (void)frexpF(largest, &power);
  for (ptrdiff_t k = 0; power && k < n; ++k) a[k] = ldexpF(a[k], -power);
  return power;
}""",
    "sign": """
static inline T weft_sign_N(T x) { return x > 0 ? (T)1 : x < 0 ? (T)-1 : x; }""",
    "rem": """
static inline T weft_rem_N(T a, T b) {
  if (b == 0) return a;
  if (MINUS_ONE) return 0;
  return (T)(a % b);
}""",
    "div": """
static inline T weft_div_N(T a, T b) {
  if (b == 0) return (T)~(U)0;
  if (MINUS_ONE) return (T)((W)0 - (W)a);
  return (T)(a / b);
}""",
    "shl": """
static inline T weft_shl_N(T a, T b) {
  return (U)b < Bu ? (T)((W)a << (U)b) : (T)0;
}""",
    "shr": """
static inline T weft_shr_N(T a, T b) {
  return (U)b < Bu ? (T)((U)a >> (U)b) : (T)0;
}""",
    "sar": """
static inline T weft_sar_N(T a, T b) {
  const U n = (U)b < Bu ? (U)b : (U)(B - 1);
  if (!(a < 0)) return (T)(a >> n);
  return (T)~(T)((U)~(U)a >> n);
}""",
    "popcount": """
static inline T weft_popcount_N(T x) {
  U v = (U)x;
  int n = 0;
  for (; v != 0; v = (U)(v & (U)(v - 1u))) ++n;
  return (T)n;
}""",
    "clz": """
static inline T weft_clz_N(T x) {
  int n = 0;
  for (U bit = (U)((U)1 << (B - 1)); bit != 0 && ((U)x & bit) == 0; bit = (U)(bit >> 1)) ++n;
  return (T)n;
}""",
    "pow": """
static inline T weft_pow_N(T x, T n) {
  W result = 1, base = (W)x;
  if (n < 0) return x == 1 ? (T)1 : NEGATIVE_ONE ? (T)(n % 2 == 0 ? 1 : -1) : (T)0;
  for (U k = (U)n; k != 0; k = (U)(k >> 1)) {
    if ((k & 1u) != 0) result *= base;
    base *= base;
  }
  return (T)result;
}""",
    "mulhi": """
static inline T weft_mulhi_N(T a, T b) {
  MULHI
}""",
    "reduce": """
static inline T weft_reduce_N(T x, int exponent, int mantissa) {
  const int full = FULL;
  if (x != x || x == 0) return x;
  if (mantissa < full) {
    U v;
    memcpy(&v, &x, sizeof v);
    const int drop = full - mantissa;
    const U last = (U)((v >> drop) & 1u);
    v = (U)(v + last + (U)(((U)1 << (drop - 1)) - 1u));
    v = (U)(v >> drop << drop);
    memcpy(&x, &v, sizeof v);
  }
  const T top = ldexpF((T)2 - ldexpF((T)1, -mantissa), (1 << (exponent - 1)) - 1);
  if (fabsF(x) > top) return copysignF((T)HUGE_VAL, x);
  if (fabsF(x) < ldexpF((T)1, 2 - (1 << (exponent - 1)))) return copysignF((T)0, x);
  return x;
}""",
    "order": """
static inline I weft_order_N(T x) {
  U v;
  memcpy(&v, &x, sizeof v);
  return (v >> (B - 1)) != 0 ? (I)~(v & (U)(~(U)0 >> 1)) : (I)v;
}""",
    "erf_inv": """
static inline T weft_erf_inv_N(T x) {
  if (fabsF(x) >= 1) return fabsF(x) == 1 ? x * (T)HUGE_VAL : (T)NAN;
  double w = -log1p(-(double)x * (double)x), p;
  if (w < 5) {
    static const double c[9] = {2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06,
        0.00021858087, -0.00125372503, -0.00417768164, 0.246640727, 1.50140941};
    w -= 2.5;
    p = c[0];
    for (int k = 1; k < 9; ++k) p = p * w + c[k];
  } else {
    static const double c[9] = {-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844,
        0.00573950773, -0.0076224613, 0.00943887047, 1.00167406, 2.83297682};
    w = sqrt(w) - 3;
    p = c[0];
    for (int k = 1; k < 9; ++k) p = p * w + c[k];
  }
  double y = p * (double)x;
  for (int k = 0; k < 2; ++k) {
    const double a = fabs(y), slope = 1.1283791670955126 * exp(-a * a);
    const double size = fabs((double)x);
    if (!(slope > 0)) break;
    const double step = (size < 0.5 ? erf(a) - size : 1 - size - erfc(a)) / slope;
    y -= y < 0 ? -step : step;
  }
  return (T)y;
}""",
    "size": """
static inline P weft_size_N(T z) { return fabsF(crealF(z)) + fabsF(cimagF(z)); }""",
    "csign": """
static inline T weft_csign_N(T z) { return z == 0 ? z : z / cabsF(z); }""",
    "expm1": """
static inline T weft_expm1_N(T z) {
  const P a = crealF(z), b = cimagF(z), s = sinF(b / 2);
  const P e = expm1F(a);
  return weft_N(e * cosF(b) - 2 * s * s, (e + 1) * sinF(b));
}""",
    "log1p": """
static inline T weft_log1p_N(T z) {
  const P a = crealF(z), b = cimagF(z), size = hypotF(1 + a, b);
  if (fabsF(a) < (P)0.5 && fabsF(b) < (P)0.5)
    return weft_N(log1pF(a * (2 + a) + b * b) / 2, atan2F(b, 1 + a));
  return weft_N(logF(size), atan2F(b, 1 + a));
}""",
}
HALVES = {
    "weft_load_bf16": """
static inline float weft_load_bf16(uint16_t x) {
  const uint32_t v = (uint32_t)x << 16;
  float y;
  memcpy(&y, &v, sizeof y);
  return y;
}""",
    "weft_store_bf16": """
static inline uint16_t weft_store_bf16(float x) {
  uint32_t v;
  memcpy(&v, &x, sizeof v);
  if (x != x) return (uint16_t)((v >> 16) | 0x40u);
  return (uint16_t)((v + 0x7fffu + ((v >> 16) & 1u)) >> 16);
}""",
    "weft_load_f16": """
static inline float weft_load_f16(uint16_t x) {
  const uint32_t sign = (uint32_t)(x & 0x8000u) << 16, low = x & 0x3ffu;
  const uint32_t exponent = (x >> 10) & 0x1fu;
  uint32_t v;
  float y;
  if (exponent == 0) {
    y = ldexpf((float)low, -24);
    return sign != 0 ? -y : y;
  }
  v = sign | (low << 13) | (exponent == 0x1fu ? 0x7f800000u : (exponent + 112u) << 23);
  memcpy(&y, &v, sizeof y);
  return y;
}""",
    "weft_store_f16": """
static inline uint16_t weft_store_f16(float x) {
  uint32_t v;
  memcpy(&v, &x, sizeof v);
  const uint32_t sign = (v >> 16) & 0x8000u, size = v & 0x7fffffffu;
  if (size > 0x7f800000u) return (uint16_t)(sign | 0x7e00u);
  if (size >= 0x477ff000u) return (uint16_t)(sign | 0x7c00u);
  if (size < 0x38800000u) {
    const float scaled = nearbyintf(ldexpf(fabsf(x), 24));
    return (uint16_t)(sign | (uint32_t)scaled);
  }
  return (uint16_t)(sign | ((size - 0x38000000u + 0xfffu + ((size >> 13) & 1u)) >> 13));
}""",
}
ROUNDED = """
static inline float weft_round_{0}(float x) {{ return weft_load_{0}(weft_store_{0}(x)); }}"""
TO_INTEGER = """
static inline {to} weft_{source}_to_{name}({type} x) {{
  if (x != x) return 0;
  if (x <= ({type}){low}) return {least};
  if (x >= ({type}){high}) return {most};
  return ({to})x;
}}"""
SAME_BITS = """
static inline {to} weft_bits_{source}_to_{name}({type} x) {{
  {to} y;
  memcpy(&y, &x, sizeof y);
  return y;
}}"""
MULHI_NARROW = "return (T)(((D)a * (D)b) >> B);"
MULHI_U64 = """const uint64_t a0 = a & 0xffffffffu, a1 = a >> 32;
  const uint64_t b0 = b & 0xffffffffu, b1 = b >> 32;
  const uint64_t mid = a1 * b0 + ((a0 * b0) >> 32);
  const uint64_t low = (mid & 0xffffffffu) + a0 * b1;
  return a1 * b1 + (mid >> 32) + (low >> 32);"""
MULHI_I64 = """const uint64_t high = weft_mulhi_u64((uint64_t)a, (uint64_t)b);
  const uint64_t less = (a < 0 ? (uint64_t)b : 0u) + (b < 0 ? (uint64_t)a : 0u);
  return (int64_t)(high - less);"""


def suffix_of(kind: Kind) -> str:
    """Return the suffix of functions of libm for a float or complex kind."""
    return "f" if "float" in kind.computed else ""


def fill_template(text: str, kind: Kind) -> str:
    """Return the text of a function for a kind."""
    signed = kind.letter == "i"
    double = f"{'' if signed else 'u'}int{2 * kind.bits}_t"
    mulhi = MULHI_NARROW
    if kind.bits == 64:
        mulhi = MULHI_I64 if signed else MULHI_U64
    part = PARTS[kind.name].computed if kind.letter == "c" else kind.computed
    texts = {
        "MULHI": mulhi.replace("D", double),
        "MINUS_ONE": "b == -1" if signed else "false",
        "NEGATIVE_ONE": "x == -1" if signed else "false",
        "FULL": "23" if kind.bits == 32 else "52",
    }
    for name, given in texts.items():
        text = re.sub(rf"\b{name}\b", given, text)
    if kind.letter == "u":
        text = text.replace("  if (false) return 0;\n", "")
        text = text.replace("  if (false) return (T)((W)0 - (W)a);\n", "")
        text = re.sub(r"  if \(n < 0\) return.*\n", "", text)
        text = text.replace("  if (!(a < 0)) return (T)(a >> n);\n", "  return (T)(a >> n);\n")
        text = text.replace("  return (T)~(T)((U)~(U)a >> n);\n", "")
    words = {
        "T": kind.computed, "S": kind.stored, "U": kind.unsigned if kind.bits <= 64 else "uint64_t",
        "W": kind.wide, "N": kind.name, "B": str(kind.bits), "P": part,
        "I": f"int{min(kind.bits, 64)}_t", "Bu": f"{kind.bits}u",
    }  # fmt: skip
    text = re.sub(r"\b(T|S|U|W|B|P|I|Bu)\b", lambda m: words[m[0]], text)
    text = re.sub(r"_N\b", f"_{kind.name}", text)
    return re.sub(r"(?<=[a-z0-9])F\(", f"{suffix_of(kind)}(", text)


def find_helper(name: str) -> str:
    """Return the text of the function of a name; KeyError if there is none."""
    found = PLAIN.get(name) or HALVES.get(name) or ELEMENTARY.get(name)
    if found:
        return found
    parts = name.split("_")
    if parts[-1] in ("c64", "c128") and len(parts) == 2:
        return fill_template(JOINED, BY_NAME[parts[-1]])
    if parts[1] == "round":
        return ROUNDED.format(parts[2])
    if parts[1] == "bits":
        source, to = BY_NAME[parts[2]], BY_NAME[parts[4]]
        names = dict(to=to.stored, source=source.name, name=to.name, type=source.stored)
        return SAME_BITS.format(**names)
    if len(parts) == 4 and parts[2] == "to":
        return write_conversion(BY_NAME[parts[1]], BY_NAME[parts[3]])
    return fill_template(TYPED["_".join(parts[1:-1])], BY_NAME[parts[-1]])


def write_conversion(source: Kind, to: Kind) -> str:
    """Return the function from floats to integers: towards zero, within bounds, 0 for NaN."""
    info = dtypes.iinfo(to.dtype)
    low, high = int(info.min), int(info.max)
    unsigned = to.letter == "u"
    least = "0" if unsigned else f"{to.name.upper().replace('I', 'INT')}_MIN"
    return TO_INTEGER.format(
        to=to.computed,
        source=source.name,
        name=to.name,
        type=source.computed,
        low=f"{low:.1f}" if abs(low) < 1 << 53 else f"{float(low)!r}",
        high=f"{float(high)!r}" if high < 1 << 53 else f"{float(high + 1)!r}",
        least=least,
        most=f"{to.name.upper().replace('U', 'UINT') if unsigned else least[:-4]}_MAX",
    )


def list_helpers(text: str, own: Callable[[str], bool] = lambda name: False) -> list[str]:
    """Return all functions that a text calls, also indirectly; callees come before callers."""
    order: dict[str, str] = {}

    def visit(text: str) -> None:
        for name in dict.fromkeys(re.findall(r"\bweft_\w+(?=\()", text)):
            if name not in order and not own(name):
                body = find_helper(name)
                visit(body.replace(f"{name}(", "("))
                order[name] = body

    visit(text)
    return list(order.values())
