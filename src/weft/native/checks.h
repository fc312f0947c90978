// Checks of what a handler is given, which it makes before it touches memory:
//
//   Size rows, n, lanes;
//   if (!Fits(x, rows, n, lanes) || !Fits(*out, rows, lanes) || !AreAlike(x, *out)) {
//     return ffi::Error::InvalidArgument("the operand must be [rows, n, lanes], ...");
//   }
//
// Buffers are compared with each other and with attributes. No product of sizes of one buffer
// overflows (kMostElements in ffi.h). Other values that are computed from attributes are Exact.

#ifndef WEFT_NATIVE_CHECKS_H_
#define WEFT_NATIVE_CHECKS_H_

#include "ffi.h"

#define WEFT_INLINE __attribute__((always_inline)) inline

namespace weft {

// A size that axes of several buffers have: the first axis decides it.
class Size {
 public:
  Size() = default;
  Size(int64_t value) : is_known_(true), value_(value) {}
  operator int64_t() const { return value_; }
  WEFT_INLINE bool Is(int64_t size) {
    if (!is_known_) *this = Size(size);
    return value_ == size;
  }

 private:
  bool is_known_ = false;
  int64_t value_ = 0;
};

// The sizes of leading axes that several buffers share.
class Leading {
 public:
  int64_t count() const {
    int64_t count = 1;
    for (const int64_t size : sizes_) count *= size;
    return count;
  }
  WEFT_INLINE bool Is(ffi::Span<const int64_t> sizes) {
    if (!is_known_) is_known_ = true, sizes_ = sizes;
    return sizes_ == sizes;
  }

 private:
  bool is_known_ = false;
  ffi::Span<const int64_t> sizes_;
};

template <class... Sizes>
WEFT_INLINE bool FitLast(ffi::Span<const int64_t> dims, Sizes&&... sizes) {
  size_t i = dims.size() - sizeof...(sizes);
  return (sizes.Is(dims[i++]) && ...);
}

// Returns true if a buffer has axes of these sizes, and no others.
template <class... Sizes>
WEFT_INLINE bool Fits(const ffi::AnyBuffer& x, Sizes&&... sizes) {
  const auto dims = x.dimensions();
  return dims.size() == sizeof...(sizes) && FitLast(dims, sizes...);
}

// The same if there are other axes before these.
template <class... Sizes>
WEFT_INLINE bool Fits(const ffi::AnyBuffer& x, Leading& leading, Sizes&&... sizes) {
  const auto dims = x.dimensions();
  return dims.size() >= sizeof...(sizes) &&
         leading.Is({dims.begin(), dims.size() - sizeof...(sizes)}) && FitLast(dims, sizes...);
}

// Returns true if buffers have one dtype.
template <class... Buffers>
bool AreAlike(const ffi::AnyBuffer& x, const Buffers&... others) {
  return ((others.element_type() == x.element_type()) && ...);
}

// An integer that remembers an overflow, its own or one of the integers that it is computed from.
class Exact {
 public:
  Exact(int64_t value) : value_(value) {}
  Exact operator+(Exact y) const {
    const bool overflows = __builtin_add_overflow(value_, y.value_, &y.value_);
    return y.Remember(overflows || overflows_);
  }
  Exact operator*(Exact y) const {
    const bool overflows = __builtin_mul_overflow(value_, y.value_, &y.value_);
    return y.Remember(overflows || overflows_);
  }
  bool IsIn(int64_t least, int64_t most) const { return !overflows_ && least <= value_ && value_ <= most; }
  bool Is(int64_t value) const { return IsIn(value, value); }
  int64_t value() const { return value_; }

 private:
  Exact Remember(bool overflows) const {
    Exact x = *this;
    x.overflows_ = overflows_ || overflows;
    return x;
  }
  int64_t value_;
  bool overflows_ = false;
};

// Returns true if the places of all elements of an axis's windows can be computed without overflow. There
// are `count` windows `step` elements apart, the first at -low, of `taps` elements `dilation` apart.
inline bool AreWindows(int64_t count, int64_t step, int64_t taps, int64_t dilation, int64_t low) {
  constexpr int64_t kMost = int64_t{1} << 40;  // no memory has more elements
  const auto is_step = [](int64_t x) { return 1 <= x && x <= kMost; };
  return is_step(step) && is_step(dilation) && -kMost <= low && low <= kMost &&
         (Exact(count) * step + Exact(taps) * dilation).IsIn(0, int64_t{1} << 61);
}

// Returns true if that is so for both axes of planes, and the attributes have a number for each.
inline bool AreWindowsOfPlanes(const Size (&counts)[2], ffi::Span<const int64_t> steps,
                               const Size (&taps)[2], ffi::Span<const int64_t> dilations,
                               ffi::Span<const int64_t> low) {
  bool fits = steps.size() == 2 && dilations.size() == 2 && low.size() == 2;
  for (size_t k = 0; fits && k < 2; ++k) {
    fits = AreWindows(counts[k], steps[k], taps[k], dilations[k], low[k]);
  }
  return fits;
}

}  // namespace weft

#endif  // WEFT_NATIVE_CHECKS_H_
