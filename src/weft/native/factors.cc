// Postprocessing of LAPACK's factors, in place where XLA shares the buffers: fills with NaN the
// factors of matrices where the routine failed, zeroes one triangle, and converts pivots to
// permutations.
//
// XLA can do this too, but it estimates the cost of these operations and may then run the program
// on another thread. That thread competes with the threads of BLAS, which wait busily.

#include <limits>
#include <utility>

#include "common.h"

namespace weft {
namespace {

// Calls work(NaN, the result, which x is copied to) by dtype. The result is like x, and not empty.
template <class Work>
ffi::Error InPlace(const ffi::AnyBuffer& x, ffi::AnyBuffer& out, const Work& work) {
  void* const to = out.untyped_data();
  if (to != x.untyped_data()) std::memcpy(to, x.untyped_data(), x.size_bytes());
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  const auto run = [&](auto nan) {
    work(nan, static_cast<decltype(nan)*>(to));
    return ffi::Error::Success();
  };
  switch (x.element_type()) {
    case ffi::F32: return run(kNan);
    case ffi::F64: return run(double{kNan});
    case ffi::C64: return run(std::pair<float, float>(kNan, kNan));
    case ffi::C128: return run(std::pair<double, double>(kNan, kNan));
    default: return ffi::Error::InvalidArgument("the operand must be f32, f64 or complex");
  }
}

// Returns x with NaN in each matrix (or vector, or scalar) whose `info` is not 0.
ffi::Error OrNan(ffi::AnyBuffer x, ffi::Buffer<ffi::S32> info, ffi::Result<ffi::AnyBuffer> out) {
  Leading leading;
  Size m, n;
  if (!Fits(info, leading) || !AreAlike(x, *out) || x.dimensions() != out->dimensions() ||
      !(Fits(x, leading) || Fits(x, leading, n) || Fits(x, leading, m, n))) {
    return ffi::Error::InvalidArgument(
        "operands must be [.., m, n], [.., n] or [..], and [..] of i32, and the result like the former");
  }
  if (x.element_count() == 0) return ffi::Error::Success();
  const int64_t count = info.element_count(), size = x.element_count() / count;
  return InPlace(x, *out, [&](auto nan, auto* to) {
    for (int64_t i = 0; i < count; ++i, to += size) {
      if (info.typed_data()[i]) std::fill(to, to + size, nan);
    }
  });
}

// Zeroes the elements below (`upper`) or above the diagonal of matrices with `rows` rows of
// `columns` contiguous elements.
ffi::Error Triangle(int64_t rows, int64_t columns, bool upper, ffi::AnyBuffer x,
                    ffi::Result<ffi::AnyBuffer> out) {
  Leading leading;
  const auto are_matrices = [&](const ffi::AnyBuffer& x) {
    return Fits(x, leading, Size(rows), Size(columns));
  };
  if (!are_matrices(x) || !are_matrices(*out) || !AreAlike(x, *out)) {
    return ffi::Error::InvalidArgument("the operand must be [.., rows, columns], and the result like it");
  }
  if (x.element_count() == 0) return ffi::Error::Success();
  const int64_t lines = x.element_count() / columns;
  return InPlace(x, *out, [&](auto nan, auto* to) {
    for (int64_t line = 0; line < lines; ++line, to += columns) {
      const int64_t row = line % rows;
      const int64_t first = upper ? 0 : std::min(row + 1, columns);
      const int64_t last = upper ? std::min(row, columns) : columns;
      std::fill(to + first, to + last, decltype(nan){});
    }
  });
}

// The order that exchanging elements i and pivots[i] of 0, 1, ..., one i after another, gives.
ffi::Error Permutation(ffi::Buffer<ffi::S32> pivots, ffi::Result<ffi::Buffer<ffi::S32>> out) {
  Leading leading;
  Size size, steps;
  if (!Fits(pivots, leading, steps) || !Fits(*out, leading, size) || size > INT32_MAX) {
    return ffi::Error::InvalidArgument(
        "the operand must be [.., pivots], and the result [.., size] with size less than 2**31");
  }
  const int64_t count = leading.count();
  const int32_t* pivot = pivots.typed_data();
  int32_t* order = out->typed_data();
  for (int64_t i = 0; i < count; ++i, pivot += steps, order += size) {
    for (int64_t k = 0; k < size; ++k) order[k] = static_cast<int32_t>(k);
    for (int64_t k = 0; k < std::min<int64_t>(steps, size); ++k) {
      if (pivot[k] >= 0 && pivot[k] < size) std::swap(order[k], order[pivot[k]]);
    }
  }
  return ffi::Error::Success();
}

}  // namespace
}  // namespace weft

XLA_FFI_DEFINE_HANDLER_SYMBOL(weft_or_nan, weft::OrNan,
                              xla::ffi::Ffi::Bind()
                                  .Arg<xla::ffi::AnyBuffer>()
                                  .Arg<xla::ffi::Buffer<xla::ffi::S32>>()
                                  .Ret<xla::ffi::AnyBuffer>());

XLA_FFI_DEFINE_HANDLER_SYMBOL(weft_triangle, weft::Triangle,
                              xla::ffi::Ffi::Bind()
                                  .Attr<int64_t>("rows")
                                  .Attr<int64_t>("columns")
                                  .Attr<bool>("upper")
                                  .Arg<xla::ffi::AnyBuffer>()
                                  .Ret<xla::ffi::AnyBuffer>());

XLA_FFI_DEFINE_HANDLER_SYMBOL(weft_permutation, weft::Permutation,
                              xla::ffi::Ffi::Bind()
                                  .Arg<xla::ffi::Buffer<xla::ffi::S32>>()
                                  .Ret<xla::ffi::Buffer<xla::ffi::S32>>());
