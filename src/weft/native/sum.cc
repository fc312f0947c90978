// The sum along the middle axis of [rows, n, lanes], or of the products of two such arrays of one lane.
//
// Blocks are summed in as many places as vectors need, and their sums added in float64: the error
// does not grow with n. Work is cut by shape alone, so that threads do not decide the result.

#include "common.h"

namespace weft {
namespace {

constexpr int64_t kWidth = 64;       // elements added at once
constexpr int64_t kBlock = 4096;     // those of a block
constexpr int64_t kLanes = 512;      // lanes worked on together
constexpr int64_t kRows = 4;
constexpr int64_t kDeep = 64;        // rows of a block of lanes
constexpr int64_t kPieces = 64;      // of a long row, at most

// What is added: elements, or products.
template <class T>
struct Elements {
  const T* x;
  T operator[](int64_t i) const { return x[i]; }
  Elements operator+(int64_t i) const { return {x + i}; }
};

template <class T>
struct Products {
  const T *x, *y;
  T operator[](int64_t i) const { return x[i] * y[i]; }
  Products operator+(int64_t i) const { return {x + i, y + i}; }
};

template <class T, template <class> class Terms>
WEFT_WIDE double AddBlock(Terms<T> x, int64_t n) {
  T sums[kWidth] = {};
  int64_t i = 0;
  for (; i + kWidth <= n; i += kWidth) {
    for (int64_t j = 0; j < kWidth; ++j) sums[j] += x[i + j];
  }
  for (int64_t j = 0; i < n; ++i, ++j) sums[j] += x[i];
  for (int64_t width = kWidth / 2; width > 0; width /= 2) {
    for (int64_t j = 0; j < width; ++j) sums[j] += sums[j + width];
  }
  return sums[0];
}

template <class Terms>
double AddRow(Terms x, int64_t n) {
  double sum = 0;
  for (int64_t start = 0; start < n; start += kBlock) {
    sum += AddBlock(x + start, std::min(n - start, kBlock));
  }
  return sum;
}

// Lanes from `first` to `last`, whose elements are `lanes` apart.
template <class T>
WEFT_WIDE void AddLanes(const T* x, T* out, int64_t n, int64_t lanes, int64_t first, int64_t last) {
  for (; first < last; first += kLanes) {
    const int64_t width = std::min(kLanes, last - first);
    double sums[kLanes] = {};
    for (int64_t start = 0; start < n; start += kDeep) {
      const int64_t end = std::min(n, start + kDeep);
      T block[kLanes] = {};
      int64_t i = start;
      for (; i + kRows <= end; i += kRows) {  // rows together, so that `block` is kept less often
        const T* const from = x + i * lanes + first;
        for (int64_t j = 0; j < width; ++j) {
          block[j] += (from[j] + from[lanes + j]) + (from[2 * lanes + j] + from[3 * lanes + j]);
        }
      }
      for (; i < end; ++i) {
        const T* const from = x + i * lanes + first;
        for (int64_t j = 0; j < width; ++j) block[j] += from[j];
      }
      for (int64_t j = 0; j < width; ++j) sums[j] += block[j];
    }
    for (int64_t j = 0; j < width; ++j) out[first + j] = static_cast<T>(sums[j]);
  }
}

// The sums of rows that follow each other.
template <class T, template <class> class Terms>
void SumRows(ffi::ThreadPool& pool, Terms<T> from, T* to, int64_t rows, int64_t n) {
  if (rows == 1 && n >= 2 * kPiece) {
    double sums[kPieces];
    const int64_t pieces = std::min(n / kPiece, kPieces);
    ForEach(pool, pieces, [&](int64_t p) {
      const int64_t first = n * p / pieces;
      sums[p] = AddRow(from + first, n * (p + 1) / pieces - first);
    });
    double sum = 0;
    for (int64_t p = 0; p < pieces; ++p) sum += sums[p];
    *to = static_cast<T>(sum);
    return;
  }
  ForEachLane(pool, rows, n, 1, kLanes, [&](int64_t row, int64_t, int64_t) {
    to[row] = static_cast<T>(AddRow(from + row * n, n));
  });
}

template <class T>
ffi::Error SumAll(ffi::ThreadPool& pool, ffi::AnyBuffer x, const ffi::AnyBuffer* y,
                  ffi::Result<ffi::AnyBuffer> out) {
  const auto dims = x.dimensions();
  const int64_t rows = dims[0], n = dims[1], lanes = dims[2];
  const T* const from = static_cast<const T*>(x.untyped_data());
  T* const to = static_cast<T*>(out->untyped_data());
  if (y) {
    SumRows(pool, Products<T>{from, static_cast<const T*>(y->untyped_data())}, to, rows, n);
  } else if (lanes == 1) {
    SumRows(pool, Elements<T>{from}, to, rows, n);
  } else {
    ForEachLane(pool, rows, n, lanes, kLanes, [&](int64_t row, int64_t first, int64_t last) {
      AddLanes(from + row * n * lanes, to + row * lanes, n, lanes, first, last);
    });
  }
  return ffi::Error::Success();
}

ffi::Error Sum(ffi::ThreadPool pool, ffi::AnyBuffer x, ffi::RemainingArgs rest,
               ffi::Result<ffi::AnyBuffer> out) {
  const auto y = rest.get<ffi::AnyBuffer>(0);
  const bool alike = !y || (y->dimensions() == x.dimensions() && x.dimensions().back() == 1);
  if (x.dimensions().size() != 3 || !alike) {
    return ffi::Error::InvalidArgument("weft.sum: must be of [rows, n, lanes], or two of one lane");
  }
  const ffi::AnyBuffer* const other = y ? &*y : nullptr;
  switch (x.element_type()) {
    case ffi::F32: return SumAll<float>(pool, x, other, out);
    case ffi::F64: return SumAll<double>(pool, x, other, out);
    default: return ffi::Error::InvalidArgument("weft.sum: no such dtype");
  }
}

}  // namespace
}  // namespace weft

XLA_FFI_DEFINE_HANDLER_SYMBOL(weft_sum, weft::Sum,
                              xla::ffi::Ffi::Bind()
                                  .Ctx<xla::ffi::ThreadPool>()
                                  .Arg<xla::ffi::AnyBuffer>()
                                  .RemainingArgs()
                                  .Ret<xla::ffi::AnyBuffer>());
