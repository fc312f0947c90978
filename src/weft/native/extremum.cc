// The largest or smallest element, or its place, along the middle axis of [rows, n, lanes].
//
// A NaN counts as the extremum, and the first one does on ties. Elements that follow each other are
// compared by value alone, and only the block that holds the result is searched for its place.

#include <type_traits>

#include "common.h"

namespace weft {
namespace {

constexpr int64_t kWidth = 32;       // elements compared at once
constexpr int64_t kBlock = 1024;     // those of a block
constexpr int64_t kLanes = 512;      // lanes worked on together
constexpr int64_t kRows = 4;

struct Largest {
  template <class T>
  static bool Better(T x, T y) { return x > y; }
};

struct Smallest {
  template <class T>
  static bool Better(T x, T y) { return x < y; }
};

// The best of `best` and of n elements, if none is NaN; else `nan` is set.
template <class Order, class T>
WEFT_WIDE T ScanBlock(const T* x, int64_t n, T best, bool& nan) {
  T tops[kWidth], differs[kWidth] = {};
  for (T& top : tops) top = best;
  int64_t i = 0;
  for (; i + kWidth <= n; i += kWidth) {
    for (int64_t j = 0; j < kWidth; ++j) {
      const T y = x[i + j];
      tops[j] = Order::Better(y, tops[j]) ? y : tops[j];
      differs[j] = y == y ? differs[j] : T{1};
    }
  }
  for (; i < n; ++i) {
    best = Order::Better(x[i], best) ? x[i] : best;
    nan |= x[i] != x[i];
  }
  for (int64_t j = 0; j < kWidth; ++j) {
    best = Order::Better(tops[j], best) ? tops[j] : best;
    nan |= differs[j] != T{0};
  }
  return best;
}

// The place of the extremum of n elements that follow each other, or if R is T the extremum.
template <class Order, class R, class T>
R FindInRow(const T* x, int64_t n) {
  T best = x[0];
  int64_t found = 0;
  bool nan = false;
  for (int64_t start = 0; start < n && !nan; start += kBlock) {
    const T top = ScanBlock<Order>(x + start, std::min(n - start, kBlock), best, nan);
    if (nan || Order::Better(top, best)) best = top, found = start;
  }
  if (std::is_same_v<R, T> && !nan) return static_cast<R>(best);
  while (nan ? x[found] == x[found] : x[found] != best) ++found;
  return std::is_same_v<R, T> ? static_cast<R>(x[found]) : static_cast<R>(found);
}

// The same of lanes from `first` to `last`, whose elements are `lanes` apart.
template <class Order, class R, class T>
WEFT_WIDE void FindInLanes(const T* x, R* out, int64_t n, int64_t lanes, int64_t first, int64_t last) {
  T best[kLanes];
  R found[kLanes];
  for (; first < last; first += kLanes) {
    const int64_t width = std::min(kLanes, last - first);
    for (int64_t j = 0; j < width; ++j) best[j] = x[first + j], found[j] = R{0};
    int64_t i = 1;
    if constexpr (std::is_same_v<R, T>) {  // rows together, so that `best` is kept less often
      for (; i + kRows <= n; i += kRows) {
        const T* from = x + i * lanes + first;
        for (int64_t j = 0; j < width; ++j) {
          T b = best[j];
          for (int64_t k = 0; k < kRows; ++k) {
            const T y = from[k * lanes + j], top = Order::Better(b, y) ? b : y;
            b = b == b ? top : b;  // `top` is y where that is NaN
          }
          best[j] = b;
        }
      }
    }
    for (; i < n; ++i) {
      const T* from = x + i * lanes + first;
      for (int64_t j = 0; j < width; ++j) {
        const T y = from[j], b = best[j];
        const bool takes = Order::Better(y, b) | ((y != y) & (b == b));  // nothing beats NaN
        best[j] = takes ? y : b;
        if constexpr (!std::is_same_v<R, T>) found[j] = takes ? static_cast<R>(i) : found[j];
      }
    }
    const void* result = std::is_same_v<R, T> ? static_cast<void*>(best) : found;
    std::memcpy(out + first, result, width * sizeof(R));
  }
}

// FindInRow by pieces of a long row on several threads, which are compared after that.
template <class Order, class R, class T>
R FindInPieces(ffi::ThreadPool& pool, const T* x, int64_t n) {
  constexpr int64_t kPieces = 64;
  uint32_t places[kPieces];
  const int64_t pieces = std::min(n / kPiece, kPieces);
  ForEach(pool, pieces, [&](int64_t p) {
    const int64_t first = n * p / pieces;
    places[p] = first + FindInRow<Order, uint32_t>(x + first, n * (p + 1) / pieces - first);
  });
  uint32_t found = places[0];
  for (int64_t p = 1; p < pieces && x[found] == x[found]; ++p) {
    const T y = x[places[p]];
    if (Order::Better(y, x[found]) || y != y) found = places[p];
  }
  return std::is_same_v<R, T> ? static_cast<R>(x[found]) : static_cast<R>(found);
}

template <class Order, class R, class T>
ffi::Error FindAll(ffi::ThreadPool& pool, ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> out) {
  const auto dims = x.dimensions();
  const int64_t rows = dims[0], n = dims[1], lanes = dims[2];
  const T* const from = static_cast<const T*>(x.untyped_data());
  R* const to = static_cast<R*>(out->untyped_data());
  if (rows == 1 && lanes == 1 && n >= 2 * kPiece && n < int64_t{1} << 32) {
    *to = FindInPieces<Order, R>(pool, from, n);
    return ffi::Error::Success();
  }
  if (n == 0) return ffi::Error::Success();
  ForEachLane(pool, rows, n, lanes, kLanes, [&](int64_t row, int64_t first, int64_t last) {
    const T* const start = from + row * n * lanes;
    if (lanes == 1) {
      to[row] = FindInRow<Order, R>(start, n);
    } else {
      FindInLanes<Order>(start, to + row * lanes, n, lanes, first, last);
    }
  });
  return ffi::Error::Success();
}

template <class R, class T>
ffi::Error Find(ffi::ThreadPool& pool, bool largest, ffi::AnyBuffer x,
                ffi::Result<ffi::AnyBuffer> out) {
  return largest ? FindAll<Largest, R, T>(pool, x, out) : FindAll<Smallest, R, T>(pool, x, out);
}

ffi::Error Extremum(ffi::ThreadPool pool, bool largest, ffi::AnyBuffer x,
                    ffi::Result<ffi::AnyBuffer> out) {
  if (x.dimensions().size() != 3) {
    return ffi::Error::InvalidArgument("weft.extremum: must be of [rows, n, lanes]");
  }
  if (out->element_type() == ffi::F32) return Find<float, float>(pool, largest, x, out);
  if (out->element_type() == ffi::F64) return Find<double, double>(pool, largest, x, out);
  switch (x.element_type()) {
    case ffi::S32: return Find<uint32_t, int32_t>(pool, largest, x, out);
    case ffi::S64: return Find<uint32_t, int64_t>(pool, largest, x, out);
    case ffi::F32: return Find<uint32_t, float>(pool, largest, x, out);
    case ffi::F64: return Find<uint32_t, double>(pool, largest, x, out);
    default: return ffi::Error::InvalidArgument("weft.extremum: no such dtype");
  }
}

}  // namespace
}  // namespace weft

XLA_FFI_DEFINE_HANDLER_SYMBOL(weft_extremum, weft::Extremum,
                              xla::ffi::Ffi::Bind()
                                  .Ctx<xla::ffi::ThreadPool>()
                                  .Attr<bool>("largest")
                                  .Arg<xla::ffi::AnyBuffer>()
                                  .Ret<xla::ffi::AnyBuffer>());
