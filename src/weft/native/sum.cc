// Sums along the middle axis of [rows, n, lanes], of one array or of the product of two arrays;
// also the product of the elements of each row, for one lane.
//
// Each block is summed in several partial sums, one for each vector lane, which are added in
// float64. So the error does not grow with n. The work is divided by the shape only, so the result
// does not depend on the number of threads.

#include <type_traits>

#include "halves.h"

namespace weft {
namespace {

template <class T>
constexpr int64_t kWidth = 256 / sizeof(T);  // elements added at once, in half of AVX2's registers
constexpr int64_t kBlock = 4096;     // elements of a block
constexpr int64_t kLanes = 512;      // lanes worked on together
constexpr int64_t kRows = 4;
constexpr int64_t kDeep = 64;        // rows of a block of lanes
constexpr int64_t kPieces = 64;      // of a long row, at most

// The terms of a sum: `Elements` adds every element, `Numbers` skips NaN, `Counts` counts the
// elements that are not NaN, `Products` adds products of two arrays, `Parts` adds complex elements
// as pairs of floats. `Factors` are multiplied instead.
template <class T>
struct Elements {
  static constexpr int64_t kParts = 1;
  static constexpr T kStart = 0;
  const T* x;
  T operator[](int64_t i) const { return x[i]; }
  Elements operator+(int64_t i) const { return {x + i}; }
  template <class U>
  static U Join(U a, U b) { return a + b; }
};

template <class T>
struct Numbers : Elements<T> {
  T operator[](int64_t i) const { return this->x[i] == this->x[i] ? this->x[i] : T{0}; }
  Numbers operator+(int64_t i) const { return {this->x + i}; }
};

template <class T>
struct Counts : Elements<T> {
  T operator[](int64_t i) const { return this->x[i] == this->x[i] ? T{1} : T{0}; }
  Counts operator+(int64_t i) const { return {this->x + i}; }
};

template <class T>
struct Products : Elements<T> {
  const T* y;
  T operator[](int64_t i) const { return this->x[i] * y[i]; }
  Products operator+(int64_t i) const { return {this->x + i, y + i}; }
};

template <class T>
struct Parts : Elements<T> {
  static constexpr int64_t kParts = 2;
  Parts operator+(int64_t i) const { return {this->x + i}; }
};

template <class T>
struct Factors : Elements<T> {
  static constexpr T kStart = 1;
  Factors operator+(int64_t i) const { return {this->x + i}; }
  template <class U>
  static U Join(U a, U b) { return a * b; }
};

// Elements of bfloat16: the upper 16 bits of float32.
template <class T>
struct Bfloats : Elements<T> {
  const uint16_t* halves;
  T operator[](int64_t i) const {
    const uint32_t bits = uint32_t{halves[i]} << 16;
    T value;
    std::memcpy(&value, &bits, sizeof(value));
    return value;
  }
  Bfloats operator+(int64_t i) const { return {{}, halves + i}; }
};

// Elements of float16. Each block is widened to float32.
template <class T>
struct Halves : Elements<T> {
  const uint16_t* halves;
  Halves operator+(int64_t i) const { return {{}, halves + i}; }
  Elements<float> Load(float* to, int64_t n, int64_t rows = 1, int64_t stride = 0) const {
    for (int64_t i = 0; i < rows; ++i) WidenHalf(halves + i * stride, to + i * n, n);
    return {to};
  }
};

// Factors of a complex product; real and imaginary parts alternate.
template <class T>
struct ComplexFactors : Elements<T> {
  static constexpr int64_t kParts = 2;
  ComplexFactors operator+(int64_t i) const { return {this->x + i}; }
};

// Multiplies n / 2 complex factors into `to`.
template <class T>
WEFT_WIDE void MultiplyBlock(const T* x, double* to, int64_t n) {
  constexpr int64_t kStep = kWidth<T>, kPairs = kStep / 2;
  T real[kPairs], imag[kPairs];
  for (int64_t j = 0; j < kPairs; ++j) real[j] = 1, imag[j] = 0;
  int64_t i = 0;
  const auto multiply = [&](int64_t j, T re, T im) {
    const T part = real[j] * re - imag[j] * im;
    imag[j] = real[j] * im + imag[j] * re;
    real[j] = part;
  };
  for (; i + kStep <= n; i += kStep) {
    for (int64_t j = 0; j < kPairs; ++j) multiply(j, x[i + 2 * j], x[i + 2 * j + 1]);
  }
  for (int64_t j = 0; i < n; i += 2, ++j) multiply(j, x[i], x[i + 1]);
  for (int64_t width = kPairs / 2; width >= 1; width /= 2) {
    for (int64_t j = 0; j < width; ++j) multiply(j, real[j + width], imag[j + width]);
  }
  const double part = to[0] * real[0] - to[1] * imag[0];
  to[1] = to[0] * imag[0] + to[1] * real[0];
  to[0] = part;
}

// Adds n terms to `to`, or multiplies them in, by Terms::Join.
template <class T, template <class> class Terms>
WEFT_WIDE void AddBlock(Terms<T> x, double* to, int64_t n) {
  constexpr auto join = [](auto a, auto b) { return Terms<T>::Join(a, b); };
  constexpr int64_t kStep = kWidth<T>;
  T sums[kStep];
  for (T& sum : sums) sum = Terms<T>::kStart;
  int64_t i = 0;
  for (; i + kStep <= n; i += kStep) {
    for (int64_t j = 0; j < kStep; ++j) sums[j] = join(sums[j], x[i + j]);
  }
  for (int64_t j = 0; i < n; ++i, ++j) sums[j] = join(sums[j], x[i]);
  const auto fold = [&](auto width) {  // a constant, so that these are a few operations and no loop
    if (width >= kStep || width < Terms<T>::kParts) return;
    for (int64_t j = 0; j < width; ++j) sums[j] = join(sums[j], sums[j + width]);
  };
  fold(std::integral_constant<int64_t, 32>());
  fold(std::integral_constant<int64_t, 16>());
  fold(std::integral_constant<int64_t, 8>());
  fold(std::integral_constant<int64_t, 4>());
  fold(std::integral_constant<int64_t, 2>());
  fold(std::integral_constant<int64_t, 1>());
  for (int64_t j = 0; j < Terms<T>::kParts; ++j) to[j] = join(to[j], double{sums[j]});
}

template <class T, template <class> class Terms>
void AddRow(Terms<T> x, double* to, int64_t n) {
  std::fill(to, to + Terms<T>::kParts, double{Terms<T>::kStart});
  if constexpr (std::is_same_v<Terms<T>, ComplexFactors<T>>) {
    to[0] = 1;
    for (int64_t start = 0; start < n; start += kBlock) {
      MultiplyBlock(x.x + start, to, std::min(n - start, kBlock));
    }
    return;
  }
  for (int64_t start = 0; start < n; start += kBlock) {
    const int64_t count = std::min(n - start, kBlock);
    if constexpr (std::is_same_v<Terms<T>, Halves<T>>) {
      float block[kBlock];
      AddBlock((x + start).Load(block, count), to, count);
    } else {
      AddBlock(x + start, to, count);
    }
  }
}

// Lanes from `first` to `last`, whose elements are `lanes` apart.
template <class T, template <class> class Terms>
WEFT_WIDE void AddLanes(Terms<T> x, T* out, int64_t n, int64_t lanes, int64_t first, int64_t last) {
  for (; first < last; first += kLanes) {
    const int64_t width = std::min(kLanes, last - first);
    double sums[kLanes] = {};
    for (int64_t start = 0; start < n; start += kDeep) {
      const int64_t end = std::min(n, start + kDeep);
      T block[kLanes] = {};
      int64_t i = start;
      for (; i + kRows <= end; i += kRows) {  // rows together, so that `block` is kept less often
        const auto from = x + (i * lanes + first);
        for (int64_t j = 0; j < width; ++j) {
          block[j] += (from[j] + from[lanes + j]) + (from[2 * lanes + j] + from[3 * lanes + j]);
        }
      }
      for (; i < end; ++i) {
        const auto from = x + (i * lanes + first);
        for (int64_t j = 0; j < width; ++j) block[j] += from[j];
      }
      for (int64_t j = 0; j < width; ++j) sums[j] += block[j];
    }
    for (int64_t j = 0; j < width; ++j) out[first + j] = static_cast<T>(sums[j]);
  }
}

void AddLanes(Halves<float> x, float* out, int64_t n, int64_t lanes, int64_t first, int64_t last) {
  constexpr int64_t kTogether = 16;
  float block[kTogether * kLanes], part[kLanes];
  for (; first < last; first += kLanes) {
    const int64_t width = std::min(kLanes, last - first);
    double sums[kLanes] = {};
    for (int64_t i = 0; i < n; i += kTogether) {
      const int64_t rows = std::min(n - i, kTogether);
      AddLanes((x + (i * lanes + first)).Load(block, width, rows, lanes), part, rows, width, 0, width);
      for (int64_t j = 0; j < width; ++j) sums[j] += part[j];
    }
    for (int64_t j = 0; j < width; ++j) out[first + j] = static_cast<float>(sums[j]);
  }
}

// The sums, or products, of rows that follow each other.
template <class T, template <class> class Terms>
ffi::Error SumRows(ffi::ThreadPool& pool, Terms<T> from, T* to, int64_t rows, int64_t n) {
  constexpr int64_t parts = Terms<T>::kParts;
  n *= parts;
  if (rows == 1 && n >= 2 * kPiece) {
    double sums[kPieces][parts], sum[parts];
    const int64_t pieces = std::min(n / kPiece, kPieces);
    const auto edge = [&](int64_t p) { return n / parts * p / pieces * parts; };
    ForEach(pool, pieces, [&](int64_t p) {
      AddRow(from + edge(p), sums[p], edge(p + 1) - edge(p));
    });
    if constexpr (std::is_same_v<Terms<T>, ComplexFactors<T>>) {
      double product[2] = {1, 0};
      for (int64_t p = 0; p < pieces; ++p) MultiplyBlock(sums[p], product, 2);
      for (int64_t j = 0; j < parts; ++j) to[j] = static_cast<T>(product[j]);
      return ffi::Error::Success();
    }
    for (int64_t j = 0; j < parts; ++j) {
      sum[j] = Terms<T>::kStart;
      for (int64_t p = 0; p < pieces; ++p) sum[j] = Terms<T>::Join(sum[j], sums[p][j]);
      to[j] = static_cast<T>(sum[j]);
    }
    return ffi::Error::Success();
  }
  ForEachLane(pool, rows, n, 1, kLanes, [&](int64_t row, int64_t, int64_t) {
    double sum[parts];
    AddRow(from + row * n, sum, n);
    for (int64_t j = 0; j < parts; ++j) to[row * parts + j] = static_cast<T>(sum[j]);
  });
  return ffi::Error::Success();
}

template <class T, template <class> class Terms>
ffi::Error SumAll(ffi::ThreadPool& pool, Terms<T> from, T* to, ffi::Span<const int64_t> dims) {
  const int64_t rows = dims[0], n = dims[1], lanes = dims[2];
  if (lanes == 1) return SumRows(pool, from, to, rows, n);
  ForEachLane(pool, rows, n, lanes, kLanes, [&](int64_t row, int64_t first, int64_t last) {
    AddLanes(from + row * n * lanes, to + row * lanes, n, lanes, first, last);
  });
  return ffi::Error::Success();
}

template <class T>
ffi::Error SumFloats(ffi::ThreadPool& pool, int64_t what, ffi::AnyBuffer x, const void* y,
                     ffi::Result<ffi::AnyBuffer> out) {
  const auto dims = x.dimensions();
  const Elements<T> from{static_cast<const T*>(x.untyped_data())};
  T* const to = static_cast<T*>(out->untyped_data());
  if (y) {
    const Products<T> products{from, static_cast<const T*>(y)};
    return SumAll(pool, products, to, dims);
  }
  switch (what) {
    case 0: return SumAll(pool, from, to, dims);
    case 1: return SumAll(pool, Numbers<T>{from}, to, dims);
    case 2: return SumAll(pool, Counts<T>{from}, to, dims);
    default: return SumRows(pool, Factors<T>{from}, to, dims[0], dims[1]);
  }
}

template <class T>
ffi::Error SumComplex(ffi::ThreadPool& pool, int64_t what, ffi::AnyBuffer x,
                      ffi::Result<ffi::AnyBuffer> out) {
  const auto dims = x.dimensions();
  const Elements<T> from{static_cast<const T*>(x.untyped_data())};
  T* const to = static_cast<T*>(out->untyped_data());
  if (what == 3) return SumRows(pool, ComplexFactors<T>{from}, to, dims[0], dims[1]);
  if (dims[2] == 1) return SumRows(pool, Parts<T>{from}, to, dims[0], dims[1]);
  const int64_t floats[] = {dims[0], dims[1], 2 * dims[2]};
  return SumAll(pool, from, to, ffi::Span<const int64_t>(floats, 3));
}

constexpr int64_t kBytes = 1 << 18;  // that are worth a thread, and adding to what others add to
constexpr int64_t kSide = 1024;  // lanes that are added up at once

// The type of partial sums. Sums of 128 bytes fit in 16 bits; those of integers of 32 bits wrap.
template <class T>
using Partial = std::conditional_t<sizeof(T) == 1, int16_t, uint32_t>;

// Adds to `to` the sums of `width` lanes of integers, of rows `stride` apart.
template <class T>
WEFT_WIDE void AddIntegers(const T* from, int32_t* to, int64_t n, int64_t stride, int64_t width) {
  constexpr int64_t kRows = 128;
  using P = Partial<T>;
  P sums[kSide];
  for (int64_t i = 0; i < n;) {
    const int64_t end = std::min(n, i + kRows);
    for (int64_t j = 0; j < width; ++j) sums[j] = 0;
    for (; i + 4 <= end; i += 4) {
      const T* const x = from + i * stride;
      const T* const y = x + 2 * stride;
      for (int64_t j = 0; j < width; ++j) {
        const P low = static_cast<P>(x[j]) + static_cast<P>(x[j + stride]);
        const P high = static_cast<P>(y[j]) + static_cast<P>(y[j + stride]);
        sums[j] += low + high;
      }
    }
    for (; i < end; ++i) {
      for (int64_t j = 0; j < width; ++j) sums[j] += from[i * stride + j];
    }
    for (int64_t j = 0; j < width; ++j) to[j] += sums[j];
  }
}

// The sum of integers that follow each other.
template <class T>
WEFT_WIDE int32_t AddRowOfIntegers(const T* from, int64_t n) {
  constexpr int64_t kWidth = 32, kBlocks = 128;
  uint32_t sum = 0;
  int64_t i = 0;
  while (i + kWidth <= n) {
    const int64_t end = std::min(n, i + kBlocks * kWidth);
    Partial<T> sums[kWidth] = {};
    for (; i + kWidth <= end; i += kWidth) {
      for (int64_t j = 0; j < kWidth; ++j) sums[j] += from[i + j];
    }
    for (int64_t j = 0; j < kWidth; ++j) sum += sums[j];
  }
  for (; i < n; ++i) sum += from[i];
  return sum;
}

// Sums of integers, modulo 2**32: pieces of a row, or of lanes, are added to the result in any order.
template <class T>
ffi::Error SumIntegers(ffi::ThreadPool& pool, const T* from, int32_t* to, int64_t rows, int64_t n,
                       int64_t lanes) {
  std::fill_n(to, rows * lanes, 0);
  if (lanes == 0) return ffi::Error::Success();
  const int64_t size = n * lanes, width = std::min(lanes, kSide);
  const int64_t together = std::max<int64_t>(1, kBytes / std::max<int64_t>(1, size));
  const int64_t blocks = (lanes + kSide - 1) / kSide, step = std::max<int64_t>(1, kBytes / width);
  const int64_t parts = (n + step - 1) / step;
  ForEach(pool, (rows + together - 1) / together * blocks * parts, [&](int64_t piece) {
    const int64_t part = piece % parts, block = piece / parts % blocks;
    const int64_t row = piece / parts / blocks * together, begin = part * step;
    const int64_t count = std::min(step, n - begin), first = block * kSide;
    for (int64_t r = row; r < std::min(rows, row + together); ++r) {
      const T* const x = from + r * size + begin * lanes + first;
      const int64_t used = std::min(kSide, lanes - first);
      int32_t* const out = to + r * lanes + first;
      if (lanes == 1) {
        __atomic_fetch_add(out, AddRowOfIntegers(x, count), __ATOMIC_RELAXED);
        continue;
      }
      if (parts == 1) {
        AddIntegers(x, out, count, lanes, used);
        continue;
      }
      int32_t sums[kSide] = {};
      AddIntegers(x, sums, count, lanes, used);
      for (int64_t j = 0; j < used; ++j) __atomic_fetch_add(out + j, sums[j], __ATOMIC_RELAXED);
    }
  });
  return ffi::Error::Success();
}

// Computes sums (`what` is 0), sums without NaN (1), counts of elements that are not NaN (2) or
// products of rows (3). Integers and 16-bit floats are only summed, with results of 32 bits.
ffi::Error Sum(ffi::ThreadPool pool, int64_t what, ffi::AnyBuffer x, ffi::RemainingArgs rest,
               ffi::Result<ffi::AnyBuffer> out) {
  const auto y = rest.get<ffi::AnyBuffer>(0);
  const auto dims = x.dimensions();
  const ffi::DataType dtype = x.element_type(), sum = out->element_type();
  Size rows, n, lanes;
  if (!Fits(x, rows, n, lanes) || !Fits(*out, rows, lanes) || rest.size() != (y ? 1 : 0) ||
      (y && !(AreAlike(x, *y) && Fits(*y, rows, n, lanes)))) {
    return ffi::Error::InvalidArgument(
        "one operand, or two alike, must be [rows, n, lanes], and the result [rows, lanes]");
  }
  const bool is_float = dtype == ffi::F32 || dtype == ffi::F64;
  const bool is_complex = dtype == ffi::C64 || dtype == ffi::C128;
  const bool is_half = dtype == ffi::F16 || dtype == ffi::BF16;
  const bool is_wide = dtype == ffi::S32 || dtype == ffi::U32;
  const bool is_product = what == 3 && lanes == 1;
  const bool fits = is_float || is_complex ? sum == dtype
                    : is_half              ? sum == ffi::F32
                    : is_wide              ? sum == dtype
                                           : sum == ffi::S32 || sum == ffi::U32;
  const bool knows = is_float ? (0 <= what && what <= 2) || is_product
                              : what == 0 || (is_complex && is_product);
  if (!fits || !knows || (y && (what || !is_float))) {
    return ffi::Error::InvalidArgument(
        "`what` must be 0, 1 or 2, or 3 for one lane (complex: 0 or 3, others: 0) and the result of the "
        "dtype of floats and integers of 32 bits, else of f32, or of 32 bits for bytes; of two "
        "operands there are sums of floats");
  }
  const void* const other = y ? y->untyped_data() : nullptr;
  const auto integers = [&](auto zero) {
    using T = decltype(zero);
    return SumIntegers(pool, static_cast<const T*>(x.untyped_data()),
                       static_cast<int32_t*>(out->untyped_data()), rows, n, lanes);
  };
  switch (dtype) {
    case ffi::F32: return SumFloats<float>(pool, what, x, other, out);
    case ffi::F64: return SumFloats<double>(pool, what, x, other, out);
    case ffi::C64: return SumComplex<float>(pool, what, x, out);
    case ffi::C128: return SumComplex<double>(pool, what, x, out);
    case ffi::F16:
    case ffi::BF16: {
      const auto* const halves = static_cast<const uint16_t*>(x.untyped_data());
      float* const to = static_cast<float*>(out->untyped_data());
      return dtype == ffi::F16 ? SumAll(pool, Halves<float>{{}, halves}, to, dims)
                               : SumAll(pool, Bfloats<float>{{}, halves}, to, dims);
    }
    case ffi::S8: return integers(int8_t{0});
    case ffi::PRED:
    case ffi::U8: return integers(uint8_t{0});
    case ffi::S32:
    case ffi::U32: return integers(int32_t{0});
    default:
      return ffi::Error::InvalidArgument("operands must be floats, complex, bool, i8, u8, i32 or u32");
  }
}

}  // namespace
}  // namespace weft

XLA_FFI_DEFINE_HANDLER_SYMBOL(weft_sum, weft::Sum,
                              xla::ffi::Ffi::Bind()
                                  .Ctx<xla::ffi::ThreadPool>()
                                  .Attr<int64_t>("what")
                                  .Arg<xla::ffi::AnyBuffer>()
                                  .RemainingArgs()
                                  .Ret<xla::ffi::AnyBuffer>());
