// Included for each kind of processor, see arithmetic.cc.

template <class To, class From>
WEFT_HERE To Cast(From x) {
  To y;
  static_assert(sizeof(x) == sizeof(y));
  std::memcpy(&y, &x, sizeof(y));
  return y;
}

WEFT_HERE float Floor(float x) { return __builtin_floorf(x); }
WEFT_HERE double Floor(double x) { return __builtin_floor(x); }
WEFT_HERE float Ceil(float x) { return __builtin_ceilf(x); }
WEFT_HERE double Ceil(double x) { return __builtin_ceil(x); }
WEFT_HERE float Even(float x) { return __builtin_rintf(x); }
WEFT_HERE double Even(double x) { return __builtin_rint(x); }
WEFT_HERE float Absolute(float x) { return __builtin_fabsf(x); }
WEFT_HERE double Absolute(double x) { return __builtin_fabs(x); }
WEFT_HERE float WithSign(float x, float y) { return __builtin_copysignf(x, y); }
WEFT_HERE double WithSign(double x, double y) { return __builtin_copysign(x, y); }

// The maximum or minimum; NaN where an operand is NaN. Zeros are ordered by sign.
template <bool largest, class T>
WEFT_HERE T Extremum(T x, T y) {
  if constexpr (kIsFloat<T>) {
    const T u = (largest ? x > y : x < y) ? x : y, v = (largest ? y > x : y < x) ? y : x;
    const Bits<T> a = Cast<Bits<T>>(u), b = Cast<Bits<T>>(v);  // these differ only in the signs of zeros
    const T z = Cast<T>(largest ? a & b : a | b);
    return (x != x) | (y != y) ? x + y : z;
  } else {
    return (largest ? x > y : x < y) ? x : y;
  }
}

// A float truncated to an integer, or the nearest integer of the type; 0 for NaN.
template <class R, class T>
WEFT_HERE R Saturated(T x) {
  constexpr R least = std::numeric_limits<R>::min(), most = std::numeric_limits<R>::max();
  if constexpr (sizeof(R) == 1) {
    T y = x == x ? x : T{0};
    y = y > T{least} ? y : T{least};
    y = y < T{most} ? y : T{most};
    return static_cast<R>(static_cast<int32_t>(y));
  } else {
    constexpr T beyond = 2147483648.0;
    const bool inside = x < beyond && x >= -beyond;
    R y = static_cast<R>(inside ? x : T{0});
    y = x >= beyond ? most : y;
    return x < -beyond ? least : y;
  }
}

template <int64_t op, class R, class T>
WEFT_HERE R Apply(T x) {
  using U = Wrapping<T>;
  if constexpr (op == op::kNeg) {
    if constexpr (kIsFloat<T>) return -x;
    else return static_cast<T>(U{0} - static_cast<U>(x));
  } else if constexpr (op == op::kAbs) {
    if constexpr (kIsFloat<T>) return Absolute(x);
    else return x < 0 ? static_cast<T>(U{0} - static_cast<U>(x)) : x;
  } else if constexpr (op == op::kSign) {
    if constexpr (kIsFloat<T>) return (x < 0) | (x > 0) ? WithSign(T{1}, x) : x + x;
    else return static_cast<T>((x > 0) - (x < 0));
  } else if constexpr (op == op::kFloor) {
    return Floor(x);
  } else if constexpr (op == op::kCeil) {
    return Ceil(x);
  } else if constexpr (op == op::kRound) {
    return Even(x);
  } else if constexpr (op == op::kInverse) {
    return 1 / x;
  } else if constexpr (op == op::kSquare) {
    return static_cast<U>(x) * static_cast<U>(x);
  } else if constexpr (op == op::kSqrt) {
    return __builtin_sqrt(x);
  } else if constexpr (op == op::kRsqrt) {
    return 1 / __builtin_sqrt(x);
  } else if constexpr (op == op::kIsFinite) {
    const Bits<T> infinity = Cast<Bits<T>>(std::numeric_limits<T>::infinity());
    return static_cast<Bits<T>>(Cast<Bits<T>>(x) << 1) < static_cast<Bits<T>>(infinity << 1);
  } else if constexpr (op == op::kConvertElementType) {
    if constexpr (std::is_same_v<R, bool>) return x != T{0};
    else if constexpr (kIsFloat<T> && !kIsFloat<R>) return Saturated<R>(x);
    else return static_cast<R>(x);
  } else {
    return ~x;
  }
}

template <int64_t op, class R, class T>
WEFT_HERE R Apply(T x, T y) {
  using U = Wrapping<T>;
  if constexpr (op == op::kAdd) return static_cast<U>(x) + static_cast<U>(y);
  else if constexpr (op == op::kSub) return static_cast<U>(x) - static_cast<U>(y);
  else if constexpr (op == op::kMul) return static_cast<U>(x) * static_cast<U>(y);
  else if constexpr (op == op::kDiv) return x / y;
  else if constexpr (op == op::kAnd) return x & y;
  else if constexpr (op == op::kOr) return x | y;
  else if constexpr (op == op::kXor) return x ^ y;
  else if constexpr (op == op::kAtLeast) return x < y ? y : x;
  else if constexpr (op == op::kAtMost) return x > y ? y : x;
  else if constexpr (op == op::kEq) return x == y;
  else if constexpr (op == op::kNe) return x != y;
  else if constexpr (op == op::kGt) return x > y;
  else if constexpr (op == op::kGe) return x >= y;
  else if constexpr (op == op::kLt) return x < y;
  else if constexpr (op == op::kLe) return x <= y;
  else return Extremum<op == op::kMax>(x, y);
}

// --- loops over elements ------------------------------------------------------------------------

template <int64_t op, class R, class T>
WEFT_HERE_CALLED void One(const void* const* xs, void* out, int64_t n) {
  R* const z = static_cast<R*>(out);
  const T* const x = static_cast<const T*>(xs[0]);
  WEFT_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) z[i] = Apply<op, R>(x[i]);
}

template <int64_t op, class R, class T>
WEFT_HERE_CALLED void Two(const void* const* xs, void* out, int64_t n) {
  R* const z = static_cast<R*>(out);
  const T *x = static_cast<const T*>(xs[0]), *y = static_cast<const T*>(xs[1]);
  WEFT_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) z[i] = Apply<op, R>(x[i], y[i]);
}

template <class T>
WEFT_HERE_CALLED void Clamp(const void* const* xs, void* out, int64_t n) {
  T* const z = static_cast<T*>(out);
  const T *low = static_cast<const T*>(xs[0]), *x = static_cast<const T*>(xs[1]);
  const T* high = static_cast<const T*>(xs[2]);
  WEFT_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) z[i] = Extremum<false>(Extremum<true>(x[i], low[i]), high[i]);
}

// Selects `yes` where x is in the relation to the scalar y, otherwise `no`. With `scalar`, `yes` is
// a scalar too.
template <int64_t test, class T, bool scalar>
WEFT_HERE_CALLED void Choose(const void* const* xs, void* out, int64_t n) {
  T* const z = static_cast<T*>(out);
  const T *x = static_cast<const T*>(xs[0]), y = *static_cast<const T*>(xs[1]);
  const T *no = static_cast<const T*>(xs[2]), *yes = static_cast<const T*>(xs[3]), first = *yes;
  WEFT_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) {
    const T a = no[i], b = scalar ? first : yes[i];
    z[i] = Apply<test, bool>(x[i], y) ? b : a;
  }
}

WEFT_HERE_CALLED void Not(const void* const* xs, void* out, int64_t n) {
  uint8_t* const z = static_cast<uint8_t*>(out);
  const uint8_t* x = static_cast<const uint8_t*>(xs[0]);
  WEFT_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) z[i] = x[i] ^ 1;
}

// Selects the third operand where the first is true, otherwise the second; as bits of T's width.
template <class T>
WEFT_HERE_CALLED void Select(const void* const* xs, void* out, int64_t n) {
  T* const z = static_cast<T*>(out);
  const uint8_t* which = static_cast<const uint8_t*>(xs[0]);
  const T *no = static_cast<const T*>(xs[1]), *yes = static_cast<const T*>(xs[2]);
  WEFT_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) {
    const T mask = -static_cast<T>(which[i]);
    z[i] = (no[i] & ~mask) | (yes[i] & mask);
  }
}

// A product and a sum, which the compiler rounds once if the processor can.
template <int64_t op, class T>
WEFT_HERE_CALLED void Three(const void* const* xs, void* out, int64_t n) {
  T* const a = static_cast<T*>(out);
  const T *x = static_cast<const T*>(xs[0]), *y = static_cast<const T*>(xs[1]), *z = static_cast<const T*>(xs[2]);
  WEFT_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) {
    if constexpr (op == op::kMultiplyAdd) a[i] = x[i] * y[i] + z[i];
    else if constexpr (op == op::kMultiplySubtract) a[i] = x[i] * y[i] - z[i];
    else a[i] = z[i] - x[i] * y[i];
  }
}

// --- the loop of an operation on a dtype, or null -----------------------------------------------

template <class T>
Compute FindOf(int64_t op) {
  using U = Wrapping<T>;
  switch (op) {
    case op::kAdd: return Two<op::kAdd, U, U>;
    case op::kSub: return Two<op::kSub, U, U>;
    case op::kMul: return Two<op::kMul, U, U>;
    case op::kNeg: return One<op::kNeg, U, U>;
    case op::kAbs: return One<op::kAbs, T, T>;
    case op::kSign: return One<op::kSign, T, T>;
    case op::kMax: return Two<op::kMax, T, T>;
    case op::kMin: return Two<op::kMin, T, T>;
    case op::kEq: return Two<op::kEq, bool, U>;
    case op::kNe: return Two<op::kNe, bool, U>;
    case op::kGt: return Two<op::kGt, bool, T>;
    case op::kGe: return Two<op::kGe, bool, T>;
    case op::kLt: return Two<op::kLt, bool, T>;
    case op::kLe: return Two<op::kLe, bool, T>;
    case op::kSquare: return One<op::kSquare, U, U>;
    case op::kClamp: return Clamp<T>;
  }
  if constexpr (std::is_same_v<T, double>) {
    if (op == op::kSqrt) return One<op::kSqrt, T, T>;
    if (op == op::kRsqrt) return One<op::kRsqrt, T, T>;
  }
  if constexpr (kIsFloat<T>) {
#define WEFT_CHOICES(test)                                     \
  case op::kChoose##test: return Choose<op::k##test, T, false>; \
  case op::kReplace##test: return Choose<op::k##test, T, true>;
    switch (op) {
      case op::kDiv: return Two<op::kDiv, T, T>;
      case op::kFloor: return One<op::kFloor, T, T>;
      case op::kCeil: return One<op::kCeil, T, T>;
      case op::kRound: return One<op::kRound, T, T>;
      case op::kIsFinite: return One<op::kIsFinite, bool, T>;
      case op::kAtLeast: return Two<op::kAtLeast, T, T>;
      case op::kAtMost: return Two<op::kAtMost, T, T>;
      case op::kInverse: return One<op::kInverse, T, T>;
      case op::kMultiplyAdd: return Three<op::kMultiplyAdd, T>;
      case op::kMultiplySubtract: return Three<op::kMultiplySubtract, T>;
      case op::kSubtractProduct: return Three<op::kSubtractProduct, T>;
      WEFT_CHOICES(Eq)
      WEFT_CHOICES(Ne)
      WEFT_CHOICES(Gt)
      WEFT_CHOICES(Ge)
      WEFT_CHOICES(Lt)
      WEFT_CHOICES(Le)
    }
  } else {
    switch (op) {
      case op::kAnd: return Two<op::kAnd, U, U>;
      case op::kOr: return Two<op::kOr, U, U>;
      case op::kXor: return Two<op::kXor, U, U>;
      case op::kNot: return One<op::kNot, U, U>;
    }
  }
  return nullptr;
}

template <class T>
Compute FindConversion(ffi::DataType to) {
  switch (to) {
    case ffi::PRED: return One<op::kConvertElementType, bool, T>;
    case ffi::U8: return One<op::kConvertElementType, uint8_t, T>;
    case ffi::S8: return One<op::kConvertElementType, int8_t, T>;
    case ffi::S32: return One<op::kConvertElementType, int32_t, T>;
    case ffi::F32: return One<op::kConvertElementType, float, T>;
    case ffi::F64: return One<op::kConvertElementType, double, T>;
    default: return nullptr;
  }
}

template <class T>
Compute Find(int64_t op, ffi::DataType to) {
  return op == op::kConvertElementType ? FindConversion<T>(to) : FindOf<T>(op);
}

Compute FindLoop(int64_t op, ffi::DataType from, ffi::DataType to) {
  if (op == op::kSelectN) {
    switch (ffi::ByteWidth(from)) {
      case 1: return Select<uint8_t>;
      case 2: return Select<uint16_t>;
      case 4: return Select<uint32_t>;
      case 8: return Select<uint64_t>;
      default: return nullptr;
    }
  }
  switch (from) {
    case ffi::PRED: return op == op::kNot ? Not : Find<uint8_t>(op, to);
    case ffi::U8: return Find<uint8_t>(op, to);
    case ffi::S8: return Find<int8_t>(op, to);
    case ffi::S32: return Find<int32_t>(op, to);
    case ffi::S64: return op == op::kConvertElementType ? FindConversion<int64_t>(to) : nullptr;
    case ffi::F32: return Find<float>(op, to);
    case ffi::F64: return Find<double>(op, to);
    default: return nullptr;
  }
}
