// Short Fourier transforms of rows, which take less time than it takes to wake a thread.
//
// A transform of n points is a chain of passes, one for each factor r of n. A pass computes transforms
// of r points and turns their results by roots of unity. Each pass writes what the next one reads in
// order (Stockham, 1966). Real and imaginary parts are stored apart, so that lanes of vectors are
// points side by side. The transform of real points is written by halves, the second as conjugates
// of the first.

#include "checks.h"
#include "common.h"

namespace weft {
namespace {

constexpr int64_t kMostPoints = 1 << 13;
constexpr int64_t kLargestFactor = 7;

// Complex numbers, their parts apart.
template <class T>
struct Parts {
  T* real;
  T* imag;
};

// A pass of factor R. `x` holds [R, n / R / s, s] points and `y` gets [n / R / s, R, s]; `w` has the
// n roots of unity, whose real and imaginary parts alternate.
template <class T, int R>
WEFT_WIDE void Pass(Parts<T> x, Parts<T> y, const T* w, int64_t n, int64_t s) {
  constexpr int kPairs = (R - 1) / 2;  // of the points j and R - j
  const int64_t m = n / R / s, apart = n / R;
  T cosines[R], sines[R];
  for (int j = 0; j < R; ++j) cosines[j] = w[2 * j * apart], sines[j] = w[2 * j * apart + 1];
  const auto transform = [&](int64_t from, int64_t to, const T* turn_real, const T* turn_imag) {
    T real[R], imag[R], re[R], im[R];
    for (int j = 0; j < R; ++j) real[j] = x.real[from + j * apart], imag[j] = x.imag[from + j * apart];
    if constexpr (R == 2) {
      re[0] = real[0] + real[1], im[0] = imag[0] + imag[1];
      re[1] = real[0] - real[1], im[1] = imag[0] - imag[1];
    } else if constexpr (R == 4) {
      const T a = real[0] + real[2], b = imag[0] + imag[2], c = real[1] + real[3], d = imag[1] + imag[3];
      const T e = real[0] - real[2], f = imag[0] - imag[2], g = real[1] - real[3], h = imag[1] - imag[3];
      re[0] = a + c, im[0] = b + d, re[2] = a - c, im[2] = b - d;
      re[1] = e + h, im[1] = f - g, re[3] = e - h, im[3] = f + g;
    } else {
      re[0] = real[0], im[0] = imag[0];
      for (int j = 1; j <= kPairs; ++j) re[0] += real[j] + real[R - j], im[0] += imag[j] + imag[R - j];
      for (int k = 1; k <= kPairs; ++k) {
        T even_real = real[0], even_imag = imag[0], odd_real = 0, odd_imag = 0;
        for (int j = 1; j <= kPairs; ++j) {
          const T c = cosines[j * k % R], d = sines[j * k % R];
          even_real += c * (real[j] + real[R - j]), even_imag += c * (imag[j] + imag[R - j]);
          odd_real += d * (real[j] - real[R - j]), odd_imag += d * (imag[j] - imag[R - j]);
        }
        re[k] = even_real - odd_imag, im[k] = even_imag + odd_real;
        re[R - k] = even_real + odd_imag, im[R - k] = even_imag - odd_real;
      }
    }
    y.real[to] = re[0], y.imag[to] = im[0];
    for (int k = 1; k < R; ++k) {
      y.real[to + k * s] = re[k] * turn_real[k] - im[k] * turn_imag[k];
      y.imag[to + k * s] = re[k] * turn_imag[k] + im[k] * turn_real[k];
    }
  };
  for (int64_t p = 0; p < m; ++p) {
    T turn_real[R], turn_imag[R];
    for (int k = 1; k < R; ++k) turn_real[k] = w[2 * k * p * s], turn_imag[k] = w[2 * k * p * s + 1];
#pragma GCC ivdep
    for (int64_t q = 0; q < s; ++q) transform(p * s + q, p * R * s + q, turn_real, turn_imag);
  }
}

// The forward transform of n points. Returns the one of `x` and `y` that holds the result.
template <class T>
Parts<T> Transform(Parts<T> x, Parts<T> y, const T* w, int64_t n) {
  for (int64_t s = 1, left = n; left > 1;) {
    const int64_t r = left % 4 == 0 ? 4 : left % 2 == 0 ? 2 : left % 3 == 0 ? 3 : left % 5 == 0 ? 5 : 7;
    switch (r) {
      case 2: Pass<T, 2>(x, y, w, n, s); break;
      case 3: Pass<T, 3>(x, y, w, n, s); break;
      case 4: Pass<T, 4>(x, y, w, n, s); break;
      case 5: Pass<T, 5>(x, y, w, n, s); break;
      default: Pass<T, 7>(x, y, w, n, s);
    }
    std::swap(x, y);
    left /= r, s *= r;
  }
  return x;
}

bool IsSmooth(int64_t n) {
  for (int64_t r = 2; r <= kLargestFactor; ++r) {
    while (n % r == 0) n /= r;
  }
  return n == 1;
}

// Transforms `rows` rows of n points. Of complex points that are half a spectrum, or of results that
// are, there are n / 2 + 1. The inverse transform is the forward one of points whose parts change places.
template <class T>
ffi::Error TransformRows(const ffi::AnyBuffer& x, const ffi::AnyBuffer& roots, ffi::AnyBuffer& y,
                         int64_t rows, int64_t given, int64_t made, int64_t n, bool inverse) {
  const bool real_points = x.element_type() == roots.element_type();
  const bool real_results = y.element_type() == roots.element_type();
  auto memory = Allocate<T>(4 * n);
  if (!memory) return OutOfMemory();
  T* const at = memory.get();
  const Parts<T> first{at, at + n}, second{at + 2 * n, at + 3 * n};
  const T scale = inverse ? T{1} / n : T{1};
  for (int64_t row = 0; row < rows; ++row) {
    const T* from = static_cast<const T*>(x.untyped_data()) + row * given * (real_points ? 1 : 2);
    T* const to = static_cast<T*>(y.untyped_data()) + row * made * (real_results ? 1 : 2);
    Parts<T> z = inverse ? Parts<T>{first.imag, first.real} : first;
    for (int64_t i = 0; i < given; ++i) {
      z.real[i] = real_points ? from[i] : from[2 * i];
      z.imag[i] = real_points ? 0 : from[2 * i + 1];
    }
    for (int64_t i = given; i < n; ++i) z.real[i] = z.real[n - i], z.imag[i] = -z.imag[n - i];
    if (real_results) {  // these two are real in the spectrum of real values
      z.imag[0] = 0;
      if (n % 2 == 0) z.imag[n / 2] = 0;
    }
    const Parts<T> out = Transform<T>(first, second, static_cast<const T*>(roots.untyped_data()), n);
    z = inverse ? Parts<T>{out.imag, out.real} : out;
    if (real_points) {
      z.imag[0] = 0;
      if (n % 2 == 0) z.imag[n / 2] = 0;
      for (int64_t i = n / 2 + 1; i < made; ++i) z.real[i] = z.real[n - i], z.imag[i] = 0 - z.imag[n - i];
    }
    for (int64_t i = 0; i < made; ++i) {
      if (real_results) {
        to[i] = z.real[i] * scale;
      } else {
        to[2 * i] = z.real[i] * scale, to[2 * i + 1] = z.imag[i] * scale;
      }
    }
  }
  return ffi::Error::Success();
}

// `roots` [n, 2] has the powers of exp(-2 pi i / n), as real and imaginary parts.
ffi::Error Fft(bool inverse, ffi::AnyBuffer x, ffi::AnyBuffer roots, ffi::Result<ffi::AnyBuffer> out) {
  Size rows, given, made, n;
  ffi::AnyBuffer& y = *out;
  const ffi::DataType real = roots.element_type();
  const ffi::DataType both = real == ffi::F32 ? ffi::C64 : ffi::C128;
  const auto is_known = [&](ffi::DataType type) { return type == real || type == both; };
  const bool fits = Fits(x, rows, given) && Fits(y, rows, made) && Fits(roots, n, Size(2));
  const bool half_given = fits && y.element_type() == real, half_made = fits && made != n;
  if (!fits || (real != ffi::F32 && real != ffi::F64) || !is_known(x.element_type()) ||
      !is_known(y.element_type()) || n < 1 || n > kMostPoints || !IsSmooth(n) ||
      given != (half_given ? n / 2 + 1 : int64_t{n}) || made != (half_made ? n / 2 + 1 : int64_t{n}) ||
      (half_given && (half_made || x.element_type() == real))) {
    return ffi::Error::InvalidArgument(
        "operands must be [rows, n] and [n, 2], and the result [rows, n], of one precision; halves "
        "of spectra have n / 2 + 1 columns; n must have no factor above 7");
  }
  return real == ffi::F32 ? TransformRows<float>(x, roots, y, rows, given, made, n, inverse)
                          : TransformRows<double>(x, roots, y, rows, given, made, n, inverse);
}

}  // namespace
}  // namespace weft

XLA_FFI_DEFINE_HANDLER_SYMBOL(weft_fft, weft::Fft,
                              xla::ffi::Ffi::Bind()
                                  .Attr<bool>("inverse")
                                  .Arg<xla::ffi::AnyBuffer>()
                                  .Arg<xla::ffi::AnyBuffer>()
                                  .Ret<xla::ffi::AnyBuffer>());
