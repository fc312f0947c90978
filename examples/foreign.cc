// Root-mean-square normalization of rows, and its derivative, for examples/foreign.py.
//
//   y = w x / r,  r = sqrt(mean(x^2) + eps)
//   dx = (w dy - x sum(w dy x) / (n r^2)) / r,  dw = the sum over rows of dy x / r

#include <cmath>
#include <cstdint>

#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;
using Floats = ffi::Buffer<ffi::F32>;
using Result = ffi::ResultBuffer<ffi::F32>;

static float InverseRoot(const float* x, int64_t n, float eps) {
  float total = 0;
  for (int64_t j = 0; j < n; ++j) total += x[j] * x[j];
  return 1 / std::sqrt(total / n + eps);
}

// x: any number of rows of n; w: n. inverse: 1 / r for each row, which the derivative needs.
static ffi::Error Normalize(float eps, Floats x, Floats w, Result y, Result inverse) {
  const int64_t n = w.element_count();
  if (x.dimensions().size() == 0 || x.dimensions().back() != n) {
    return ffi::Error::InvalidArgument("rms_norm: x must have as many columns as w");
  }
  const float* xs = x.typed_data();
  for (int64_t i = 0; i < static_cast<int64_t>(inverse->element_count()); ++i, xs += n) {
    const float scale = InverseRoot(xs, n, eps);
    inverse->typed_data()[i] = scale;
    for (int64_t j = 0; j < n; ++j) {
      y->typed_data()[i * n + j] = w.typed_data()[j] * xs[j] * scale;
    }
  }
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(rms_norm, Normalize,
                              ffi::Ffi::Bind()
                                  .Attr<float>("eps")
                                  .Arg<Floats>()
                                  .Arg<Floats>()
                                  .Ret<Floats>()
                                  .Ret<Floats>());

static ffi::Error Derivative(Floats x, Floats w, Floats inverse, Floats dy, Result dx, Result dw) {
  const int64_t n = w.element_count();
  const float* weights = w.typed_data();
  for (int64_t j = 0; j < n; ++j) dw->typed_data()[j] = 0;
  for (int64_t i = 0; i < static_cast<int64_t>(inverse.element_count()); ++i) {
    const float* xs = x.typed_data() + i * n;
    const float* dys = dy.typed_data() + i * n;
    const float scale = inverse.typed_data()[i];
    float dot = 0;
    for (int64_t j = 0; j < n; ++j) dot += weights[j] * dys[j] * xs[j];
    for (int64_t j = 0; j < n; ++j) {
      dx->typed_data()[i * n + j] =
          scale * (weights[j] * dys[j] - xs[j] * dot * scale * scale / n);
      dw->typed_data()[j] += dys[j] * xs[j] * scale;
    }
  }
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(rms_norm_derivative, Derivative,
                              ffi::Ffi::Bind()
                                  .Arg<Floats>()
                                  .Arg<Floats>()
                                  .Arg<Floats>()
                                  .Arg<Floats>()
                                  .Ret<Floats>()
                                  .Ret<Floats>());
