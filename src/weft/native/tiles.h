// Sums of products, a tile of them at once, which stays in registers while it is added up.

#ifndef WEFT_NATIVE_TILES_H_
#define WEFT_NATIVE_TILES_H_

#include "common.h"

#if defined(__x86_64__) && defined(__GNUC__)
#define WEFT_FOR(isa) __attribute__((target(isa)))
#else
#define WEFT_FOR(isa)
#endif

namespace weft {

// Rows of a tile with left factors adjacent along the contracted axis.
constexpr int64_t kPixels = 6;
constexpr int64_t kInputs = 4;   // rows of a tile with left factors adjacent along the rows
constexpr int64_t kVectors = 2;  // column vectors of both kinds of tile

// Vectors as wide as registers, of any element.
template <class T, int kBytes>
struct Vector {
  typedef T V __attribute__((vector_size(kBytes)));
  static constexpr int64_t kLanes = kBytes / sizeof(T);
};

template <class V, class T>
WEFT_INLINE V Load(const T* from) {
  V x;
  std::memcpy(&x, from, sizeof(V));
  return x;
}

// Those that all processors have that the kernels run on.
#ifdef __AVX2__
constexpr int kLeastBytes = 32;
#else
constexpr int kLeastBytes = 16;
#endif

// The bytes of its vectors that have a product and a sum in one.
inline int VectorBytes() {
#ifdef WEFT_AVX512
  if (__builtin_cpu_supports("avx512f")) return 64;
#endif
  return kLeastBytes;
}

// Copies rows of kBytes, a constant for the compiler.
template <int kBytes, class T>
void CopyRows(const T* from, int64_t row, int64_t depth, T* to) {
  constexpr int64_t kCount = kBytes / sizeof(T);
  for (int64_t i = 0; i < depth; ++i) std::memcpy(to + i * kCount, from + i * row, kBytes);
}

// Copies `depth` rows of `width` right factors, `row` elements apart, to rows of `wide`, with zeros at
// the end.
template <class T>
void PackPanel(const T* from, int64_t row, int64_t depth, int64_t width, int64_t wide, T* to) {
  const int64_t bytes = width == wide ? wide * sizeof(T) : 0;
  if (bytes == 128) return CopyRows<128>(from, row, depth, to);
  if (bytes == 64) return CopyRows<64>(from, row, depth, to);
  if (bytes == 32) return CopyRows<32>(from, row, depth, to);
  for (int64_t i = 0; i < depth; ++i, to += wide, from += row) {
    for (int64_t j = 0; j < width; ++j) to[j] = from[j];
    for (int64_t j = width; j < wide; ++j) to[j] = 0;
  }
}

// Computes a tile of at most `rows` rows (up to kRows) and `columns` columns. Stores it, adds it to
// `out` if `sign` is 1, or subtracts it from `out` if that is -1. Each row is the sum over taps of the
// `depth` elements at its pointer in `from`, `step` apart, times the rows of `right`.
template <class V, int kColumns, int kRows = kPixels, class T>
WEFT_INLINE void StoreTile(const T* const* from, int64_t taps, int64_t depth, const T* right,
                           T* out, int64_t stride, int64_t rows, int64_t columns, int64_t step = 1,
                           int sign = 0) {
  constexpr int64_t kLanes = sizeof(V) / sizeof(T);
  V sums[kRows][kColumns] = {};
  for (int r = 0; r < kRows; ++r) __builtin_prefetch(out + std::min<int64_t>(r, rows - 1) * stride, 1);
  for (int64_t tap = 0; tap < taps; ++tap, from += kRows) {
    const T* left[kRows];
    for (int r = 0; r < kRows; ++r) left[r] = from[r];
    for (int64_t i = 0; i < depth * step; i += step, right += kColumns * kLanes) {
      V y[kColumns];
      for (int j = 0; j < kColumns; ++j) y[j] = Load<V>(right + j * kLanes);
      for (int r = 0; r < kRows; ++r) {
        for (int j = 0; j < kColumns; ++j) sums[r][j] += left[r][i] * y[j];
      }
    }
  }
  if (sign < 0) {
    for (int r = 0; r < kRows; ++r) {
      for (int j = 0; j < kColumns; ++j) sums[r][j] = -sums[r][j];
    }
  }
  const int64_t bytes = std::min<int64_t>(columns * sizeof(T), sizeof(sums[0]));
  for (int64_t r = 0; r < std::min<int64_t>(kRows, rows); ++r, out += stride) {
    if (bytes == sizeof(sums[r])) {
      for (int j = 0; sign && j < kColumns; ++j) sums[r][j] += Load<V>(out + j * kLanes);
      std::memcpy(out, sums[r], sizeof(sums[r]));
    } else {
      V old[kColumns] = {};
      if (sign) std::memcpy(old, out, bytes);
      for (int j = 0; j < kColumns; ++j) sums[r][j] += old[j];
      std::memcpy(out, sums[r], bytes);
    }
  }
}

// Adjacent rows of right factors, and the corresponding left factors.
template <class T>
struct Segment {
  const T *left, *right;
  int64_t count;
};

// Adds the products of all segments to `kRows` rows of `to`, at most `columns` columns. `step` and
// `width` are the strides of the segments' rows.
template <class V, int kRows, int kColumns, class T>
WEFT_INLINE void AddTile(const Segment<T>* segments, int64_t count, int64_t step, int64_t width,
                         T* to, int64_t stride, int64_t columns) {
  constexpr int64_t kLanes = sizeof(V) / sizeof(T);
  V sums[kRows][kColumns] = {};
  for (const Segment<T>* s = segments; s < segments + count; ++s) {
    const T *x = s->left, *right = s->right;
    for (int64_t i = 0; i < s->count; ++i, x += step, right += width) {
      V y[kColumns];
      for (int j = 0; j < kColumns; ++j) y[j] = Load<V>(right + j * kLanes);
      for (int r = 0; r < kRows; ++r) {
        for (int j = 0; j < kColumns; ++j) sums[r][j] += x[r] * y[j];
      }
    }
  }
  T values[kRows][kColumns * kLanes];
  std::memcpy(values, sums, sizeof(sums));
  for (int r = 0; r < kRows; ++r) {
    for (int64_t j = 0; j < std::min<int64_t>(columns, kColumns * kLanes); ++j) {
      to[r * stride + j] += values[r][j];
    }
  }
}

// The same for all of `rows`, some at a time.
template <class V, int kColumns, class T>
WEFT_INLINE void AddTiles(Segment<T>* segments, int64_t count, int64_t step, int64_t width,
                          int64_t rows, T* to, int64_t stride, int64_t columns) {
  int64_t row = 0;
  const auto advance = [&](int64_t by) {
    for (int64_t i = 0; i < count; ++i) segments[i].left += by;
    row += by;
  };
  for (; row + kInputs <= rows; advance(kInputs)) {
    AddTile<V, kInputs, kColumns>(segments, count, step, width, to + row * stride, stride, columns);
  }
  T* const end = to + row * stride;
  const int64_t left = rows - row;
  if (left == 3) AddTile<V, 3, kColumns>(segments, count, step, width, end, stride, columns);
  if (left == 2) AddTile<V, 2, kColumns>(segments, count, step, width, end, stride, columns);
  if (left == 1) AddTile<V, 1, kColumns>(segments, count, step, width, end, stride, columns);
  advance(-row);
}

// --- for what the processor has ----------------------------------------------------------------

#ifdef WEFT_AVX512
template <class Job>
WEFT_FOR("avx512f,fma") void RunWide(const Job& job, int64_t index) {
  job.template Run<64>(index);
}
#endif
template <class Job>
WEFT_FOR("avx2,fma") void RunNarrow(const Job& job, int64_t index) {
  job.template Run<kLeastBytes>(index);
}

// Returns the function that computes a piece of a job with vectors of `bytes` bytes.
template <class Job>
auto RunWith([[maybe_unused]] int bytes) {
#ifdef WEFT_AVX512
  if (bytes == 64) return RunWide<Job>;
#endif
  return RunNarrow<Job>;
}

// The packing of right factors: panels of one vector if that holds all columns, else of kVectors.
struct Panels {
  int64_t wide, count;
  bool narrow;
  Panels(int64_t columns, int64_t lanes)
      : wide(columns <= lanes ? lanes : kVectors * lanes),
        count((columns + wide - 1) / wide),
        narrow(columns <= lanes) {}
};

}  // namespace weft

#endif  // WEFT_NATIVE_TILES_H_
