// Products of a sparse matrix and a dense one, and dense products at the places of a sparse one.
//
// A matrix [rows, cols] is given by the values of its entries and their places. Entries whose place
// Entries outside of the matrix are skipped. The entries of a row are added in their order, so the
// result does not depend on the number of threads.

#include <algorithm>
#include <vector>

#include "common.h"

namespace weft {
namespace {

constexpr int64_t kAhead = 16;  // entries ahead whose row of the dense matrix is prefetched

// std::complex checks each product for NaN.
template <class T>
struct Complex {
  T re = 0, im = 0;
  Complex& operator+=(const Complex& y) {
    re += y.re, im += y.im;
    return *this;
  }
};
template <class T>
Complex<T> operator*(const Complex<T>& x, const Complex<T>& y) {
  return {x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re};
}

// The row and column indices of `count` entries.
template <class I, int kStride>
struct Places {
  const I* row;
  const I* col;
  int64_t rows, cols, count;
  int64_t Row(int64_t k) const { return row[k * kStride]; }
  // at least `cols` where it is outside
  uint64_t Col(int64_t k) const { return static_cast<int64_t>(col[k * kStride]); }
};

// to[0 .. L) = the sum over entries from k to end of data * dense[col][0 .. L)
template <int L, class T, class P>
void SumEntries(const P& places, const T* data, const T* dense, int64_t lanes, int64_t k,
                int64_t end, T* to) {
  const uint64_t cols = places.cols;
  T total[L] = {};
  for (; k < end; ++k) {
    if constexpr (L * sizeof(T) >= 64) {
      const uint64_t next = k + kAhead < places.count ? places.Col(k + kAhead) : cols;
      if (next < cols) {
        const char* const from = reinterpret_cast<const char*>(dense + next * lanes);
        for (size_t line = 0; line < L * sizeof(T); line += 64) __builtin_prefetch(from + line);
      }
    }
    const uint64_t col = places.Col(k);
    if (col >= cols) continue;
    const T value = data[k];
    const T* const x = dense + col * lanes;
    for (int j = 0; j < L; ++j) total[j] += value * x[j];
  }
  for (int j = 0; j < L; ++j) to[j] = total[j];
}

// The same for a vector, of even entries and of odd ones, which need not wait for each other.
template <class T, class P>
inline T SumOne(const P& places, const T* data, const T* dense, int64_t k, int64_t end) {
  const uint64_t cols = places.cols;
  T even{}, odd{};
  for (; k + 1 < end; k += 2) {
    const uint64_t c = places.Col(k), d = places.Col(k + 1);
    if (c < cols) even += data[k] * dense[c];
    if (d < cols) odd += data[k + 1] * dense[d];
  }
  if (k < end && places.Col(k) < cols) even += data[k] * dense[places.Col(k)];
  even += odd;
  return even;
}

template <class T, class P>
inline void SumRow(const P& places, const T* data, const T* dense, int64_t lanes, int64_t k,
                   int64_t end, T* to) {
  constexpr int kWide = 128 / sizeof(T);
  if (lanes == 1) {
    *to = SumOne(places, data, dense, k, end);
    return;
  }
  int64_t j = 0;
  for (; j + kWide <= lanes; j += kWide)
    SumEntries<kWide>(places, data, dense + j, lanes, k, end, to + j);
  for (; j + 4 <= lanes; j += 4) SumEntries<4>(places, data, dense + j, lanes, k, end, to + j);
  for (; j < lanes; ++j) SumEntries<1>(places, data, dense + j, lanes, k, end, to + j);
}

template <class T>
void Clear(T* to, int64_t lanes, int64_t first, int64_t last) {
  if (first < last) std::fill(to + first * lanes, to + last * lanes, T{});
}

// Products for entries that are grouped by row, in ascending order.
template <class T, class P>
void MultiplySorted(ffi::ThreadPool& pool, const P& places, const T* data, const T* dense,
                    int64_t count, int64_t lanes, T* to) {
  const int64_t rows = places.rows;
  const int64_t size = std::max<int64_t>(1, kPiece / lanes);
  const int64_t pieces = std::max<int64_t>(1, count / size);
  auto clamped = [&](int64_t k) { return std::clamp<int64_t>(places.Row(k), 0, rows); };
  auto begin = [&](int64_t piece) {  // at the first entry of a row
    int64_t k = piece * size;
    while (k > 0 && k < count && places.Row(k) == places.Row(k - 1)) ++k;
    return k;
  };
  ForEach(pool, pieces, [&](int64_t piece) {
    const bool last = piece + 1 == pieces;
    int64_t k = begin(piece);
    const int64_t end = last ? count : begin(piece + 1);
    int64_t row = piece == 0 ? 0 : k < count ? clamped(k) : rows;
    const int64_t stop = last || end >= count ? rows : clamped(end);
    while (k < end) {
      const int64_t mine = places.Row(k);
      int64_t next = k + 1;
      while (next < end && places.Row(next) == mine) ++next;
      if (mine >= 0 && mine < rows) {
        Clear(to, lanes, row, mine);
        SumRow(places, data, dense, lanes, k, next, to + mine * lanes);
        row = mine + 1;
      }
      k = next;
    }
    Clear(to, lanes, row, stop);
  });
}

// Products for entries in any order: each piece has some of the rows, and reads all entries.
template <class T, class P>
void MultiplyUnsorted(ffi::ThreadPool& pool, const P& places, const T* data,
                      const T* dense, int64_t count, int64_t lanes, T* to) {
  const int64_t rows = places.rows;
  const uint64_t cols = places.cols;
  const int64_t worth = std::max<int64_t>(1, count * lanes / kPiece);
  const int64_t pieces = std::min({worth, rows, pool.num_threads(), int64_t{8}});
  const int64_t width = (rows + pieces - 1) / std::max<int64_t>(1, pieces);
  ForEach(pool, pieces, [&](int64_t piece) {
    const int64_t first = piece * width, last = std::min(rows, first + width);
    Clear(to, lanes, first, last);
    for (int64_t k = 0; k < count; ++k) {
      const int64_t row = places.Row(k);
      const uint64_t col = places.Col(k);
      if (row < first || row >= last || col >= cols) continue;
      const T value = data[k];
      const T* const x = dense + col * lanes;
      T* const y = to + row * lanes;
      for (int64_t j = 0; j < lanes; ++j) y[j] += value * x[j];
    }
  });
}

template <class T, class I>
struct MultiplyCoordinates {
  static ffi::Error Run(ffi::ThreadPool& pool, bool transpose, ffi::AnyBuffer& data,
                        ffi::AnyBuffer& dense, ffi::AnyBuffer& indices, ffi::AnyBuffer*,
                        ffi::Result<ffi::AnyBuffer>& out) {
    const int64_t count = data.element_count(), lanes = dense.dimensions()[1];
    const int64_t rows = out->dimensions()[0], cols = dense.dimensions()[0];
    if (rows * lanes == 0) return ffi::Error::Success();
    const I* const at = static_cast<const I*>(indices.untyped_data());
    const Places<I, 2> places{at + transpose, at + !transpose, rows, cols, count};
    const T* const values = static_cast<const T*>(data.untyped_data());
    const T* const x = static_cast<const T*>(dense.untyped_data());
    T* const y = static_cast<T*>(out->untyped_data());
    bool sorted = true;
    for (int64_t k = 1; k < count && sorted; ++k) sorted = places.Row(k - 1) <= places.Row(k);
    if (sorted) {
      MultiplySorted(pool, places, values, x, count, lanes, y);
    } else {
      MultiplyUnsorted(pool, places, values, x, count, lanes, y);
    }
    return ffi::Error::Success();
  }
};

template <class T, class I>
struct MultiplyRows {
  static ffi::Error Run(ffi::ThreadPool& pool, bool, ffi::AnyBuffer& data, ffi::AnyBuffer& dense,
                        ffi::AnyBuffer& indices, ffi::AnyBuffer* starts,
                        ffi::Result<ffi::AnyBuffer>& out) {
    const int64_t count = data.element_count(), lanes = dense.dimensions()[1];
    const int64_t rows = out->dimensions()[0], cols = dense.dimensions()[0];
    if (rows * lanes == 0) return ffi::Error::Success();
    const I* const at = static_cast<const I*>(indices.untyped_data());
    const I* const start = static_cast<const I*>(starts->untyped_data());
    const Places<I, 1> places{nullptr, at, rows, cols, count};
    const T* const values = static_cast<const T*>(data.untyped_data());
    const T* const x = static_cast<const T*>(dense.untyped_data());
    T* const y = static_cast<T*>(out->untyped_data());
    const int64_t together = std::max<int64_t>(1, rows * kPiece / (count * lanes + rows));
    ForEach(pool, (rows + together - 1) / together, [&](int64_t piece) {
      const int64_t first = piece * together, last = std::min(rows, first + together);
      for (int64_t row = first; row < last; ++row) {
        const int64_t k = std::clamp<int64_t>(start[row], 0, count);
        const int64_t end = std::clamp<int64_t>(start[row + 1], 0, count);
        SumRow(places, values, x, lanes, k, end, y + row * lanes);
      }
    });
    return ffi::Error::Success();
  }
};

// out[k] = the sum over j of lhs[row k][j] * rhs[col k][j]
template <class T, class I>
struct Sample {
  static ffi::Error Run(ffi::ThreadPool& pool, bool, ffi::AnyBuffer& lhs, ffi::AnyBuffer& rhs,
                        ffi::AnyBuffer& indices, ffi::AnyBuffer*,
                        ffi::Result<ffi::AnyBuffer>& out) {
    const int64_t count = out->element_count(), lanes = lhs.dimensions()[1];
    const I* const at = static_cast<const I*>(indices.untyped_data());
    const int64_t rows = lhs.dimensions()[0], cols = rhs.dimensions()[0];
    const Places<I, 2> places{at, at + 1, rows, cols, count};
    const T* const x = static_cast<const T*>(lhs.untyped_data());
    const T* const y = static_cast<const T*>(rhs.untyped_data());
    T* const to = static_cast<T*>(out->untyped_data());
    const int64_t together = std::max<int64_t>(1, kPiece / std::max<int64_t>(1, lanes));
    ForEach(pool, (count + together - 1) / together, [&](int64_t piece) {
      const int64_t last = std::min(count, (piece + 1) * together);
      for (int64_t k = piece * together; k < last; ++k) {
        const int64_t row = places.Row(k), col = places.Col(k);
        T total[4] = {};
        if (row >= 0 && row < rows && col >= 0 && col < cols) {
          const T *const a = x + row * lanes, *const b = y + col * lanes;
          int64_t j = 0;
          for (; j + 4 <= lanes; j += 4)
            for (int i = 0; i < 4; ++i) total[i] += a[j + i] * b[j + i];
          for (; j < lanes; ++j) total[0] += a[j] * b[j];
        }
        total[0] += total[1], total[2] += total[3], total[0] += total[2];
        to[k] = total[0];
      }
    });
    return ffi::Error::Success();
  }
};

template <template <class, class> class Op, class T, class... Args>
ffi::Error RunIndices(ffi::ThreadPool& pool, bool transpose, ffi::AnyBuffer& x, ffi::AnyBuffer& y,
                      ffi::AnyBuffer& indices, Args&... rest) {
  switch (indices.element_type()) {
    case ffi::S32: return Op<T, int32_t>::Run(pool, transpose, x, y, indices, rest...);
    case ffi::S64: return Op<T, int64_t>::Run(pool, transpose, x, y, indices, rest...);
    default: return ffi::Error::InvalidArgument("indices must be i32 or i64");
  }
}

// The sums of signed integers wrap, so they are computed with unsigned integers.
template <template <class, class> class Op, class... Args>
ffi::Error RunDtype(ffi::ThreadPool& pool, bool transpose, ffi::AnyBuffer& x, Args&... rest) {
  switch (x.element_type()) {
    case ffi::S32:
    case ffi::U32: return RunIndices<Op, uint32_t>(pool, transpose, x, rest...);
    case ffi::S64:
    case ffi::U64: return RunIndices<Op, uint64_t>(pool, transpose, x, rest...);
    case ffi::F32: return RunIndices<Op, float>(pool, transpose, x, rest...);
    case ffi::F64: return RunIndices<Op, double>(pool, transpose, x, rest...);
    case ffi::C64: return RunIndices<Op, Complex<float>>(pool, transpose, x, rest...);
    case ffi::C128: return RunIndices<Op, Complex<double>>(pool, transpose, x, rest...);
    default: return ffi::Error::InvalidArgument("operands must be of 32 or 64 bits, or complex");
  }
}

ffi::Error CooDot(ffi::ThreadPool pool, bool transpose, ffi::AnyBuffer data, ffi::AnyBuffer dense,
                  ffi::AnyBuffer indices, ffi::Result<ffi::AnyBuffer> out) {
  Size entries, rows, cols, lanes;
  if (!Fits(data, entries) || !Fits(dense, cols, lanes) || !Fits(indices, entries, Size(2)) ||
      !Fits(*out, rows, lanes) || !AreAlike(data, dense, *out)) {
    return ffi::Error::InvalidArgument(
        "operands must be [entries], [cols, lanes] and [entries, 2], and the result [rows, lanes], of one "
        "dtype");
  }
  ffi::AnyBuffer* none = nullptr;
  return RunDtype<MultiplyCoordinates>(pool, transpose, data, dense, indices, none, out);
}

ffi::Error CsrDot(ffi::ThreadPool pool, ffi::AnyBuffer data, ffi::AnyBuffer dense,
                  ffi::AnyBuffer indices, ffi::AnyBuffer starts, ffi::Result<ffi::AnyBuffer> out) {
  Size entries, rows, cols, lanes;
  if (!Fits(data, entries) || !Fits(dense, cols, lanes) || !Fits(indices, entries) ||
      !Fits(*out, rows, lanes) || !Fits(starts, Size(rows + 1)) || !AreAlike(data, dense, *out) ||
      !AreAlike(indices, starts)) {
    return ffi::Error::InvalidArgument(
        "operands must be [entries], [cols, lanes], [entries] and [rows + 1], and the result [rows, "
        "lanes]; data of one dtype, and indices of one");
  }
  ffi::AnyBuffer* at = &starts;
  return RunDtype<MultiplyRows>(pool, false, data, dense, indices, at, out);
}

ffi::Error CooSample(ffi::ThreadPool pool, ffi::AnyBuffer lhs, ffi::AnyBuffer rhs,
                     ffi::AnyBuffer indices, ffi::Result<ffi::AnyBuffer> out) {
  Size entries, rows, cols, lanes;
  if (!Fits(lhs, rows, lanes) || !Fits(rhs, cols, lanes) || !Fits(indices, entries, Size(2)) ||
      !Fits(*out, entries) || !AreAlike(lhs, rhs, *out)) {
    return ffi::Error::InvalidArgument(
        "operands must be [rows, lanes], [cols, lanes] and [entries, 2], and the result [entries], of one "
        "dtype");
  }
  ffi::AnyBuffer* none = nullptr;
  return RunDtype<Sample>(pool, false, lhs, rhs, indices, none, out);
}

}  // namespace
}  // namespace weft

XLA_FFI_DEFINE_HANDLER_SYMBOL(weft_coo_dot, weft::CooDot,
                              xla::ffi::Ffi::Bind()
                                  .Ctx<xla::ffi::ThreadPool>()
                                  .Attr<bool>("transpose")
                                  .Arg<xla::ffi::AnyBuffer>()
                                  .Arg<xla::ffi::AnyBuffer>()
                                  .Arg<xla::ffi::AnyBuffer>()
                                  .Ret<xla::ffi::AnyBuffer>());
XLA_FFI_DEFINE_HANDLER_SYMBOL(weft_csr_dot, weft::CsrDot,
                              xla::ffi::Ffi::Bind()
                                  .Ctx<xla::ffi::ThreadPool>()
                                  .Arg<xla::ffi::AnyBuffer>()
                                  .Arg<xla::ffi::AnyBuffer>()
                                  .Arg<xla::ffi::AnyBuffer>()
                                  .Arg<xla::ffi::AnyBuffer>()
                                  .Ret<xla::ffi::AnyBuffer>());
XLA_FFI_DEFINE_HANDLER_SYMBOL(weft_coo_sample, weft::CooSample,
                              xla::ffi::Ffi::Bind()
                                  .Ctx<xla::ffi::ThreadPool>()
                                  .Arg<xla::ffi::AnyBuffer>()
                                  .Arg<xla::ffi::AnyBuffer>()
                                  .Arg<xla::ffi::AnyBuffer>()
                                  .Ret<xla::ffi::AnyBuffer>());
