// Products of a matrix and a vector: [m, k] or [k, m] with [k].

#include "extras.h"
#include "tiles.h"

namespace weft {
namespace {

constexpr int64_t kTerms = 8;         // rows that a pass adds to sums
constexpr int64_t kBoth = 4;          // rows that are multiplied by rows and by columns at once
constexpr int64_t kSumBytes = 1 << 14;  // of sums in a block of columns, which stay in the L1 cache
constexpr int64_t kParts = 8;           // most parts of the rows with sums of their own
constexpr int64_t kLeastRows = 64;      // of a part

// The products of rows [m, k] and a vector [k].
template <class T>
struct Product {
  int64_t m, k;
  const T *matrix, *vector;
  T* out;
  int64_t rows;  // of a part
  Extras<T> extras;

  template <int kBytes>
  WEFT_INLINE void Run(int64_t part) const;
};

// The products of columns [k, m] and a vector [k]. A part of the rows has sums of its own for each
// block of columns, so that rows are read in the order of memory.
template <class T>
struct ColumnSums {
  int64_t m, k;
  const T *matrix, *vector;
  T* sums;                       // [parts, m]
  int64_t columns, parts, rows;  // of a block, of the rows, of a part
  Extras<T> extras;

  template <int kBytes>
  WEFT_INLINE void Run(int64_t part) const;
};

// Both products of a matrix [m, k], which is read once: by rows with `right` [k], and by columns with
// `left` [m], or with the products of the rows if that is null.
template <class T>
struct BothProducts {
  int64_t m, k;
  const T *matrix, *right, *left;
  T *out, *sums;  // [m], [parts, k]
  int64_t rows;   // of a part
  Extras<T> extras;  // of the products of rows

  template <int kBytes>
  WEFT_INLINE void Run(int64_t part) const;
};

// A vector of a row, times the number that the matrix is multiplied by.
template <class V, bool kScaled, class T>
WEFT_INLINE V LoadScaled(const T* from, T number) {
  return kScaled ? number * Load<V>(from) : Load<V>(from);
}

// The sums of some rows' products, four rows at once.
template <class T, int kBytes, bool kScaled = false>
WEFT_INLINE void MultiplyRows(const Product<T>& job, int64_t first, int64_t last) {
  using V = typename Vector<T, kBytes>::V;
  constexpr int64_t kLanes = Vector<T, kBytes>::kLanes, kRows = 4;
  const int64_t whole = job.k / (2 * kLanes) * 2 * kLanes;
  for (int64_t row = first; row < last; row += kRows) {
    const T* from[kRows];
    V sums[kRows][2] = {};
    for (int64_t r = 0; r < kRows; ++r) from[r] = job.matrix + std::min(row + r, last - 1) * job.k;
    for (int64_t i = 0; i < whole; i += 2 * kLanes) {
      const V x = Load<V>(job.vector + i), y = Load<V>(job.vector + i + kLanes);
      for (int64_t r = 0; r < kRows; ++r) {
        sums[r][0] += x * LoadScaled<V, kScaled>(from[r] + i, job.extras.left);
        sums[r][1] += y * LoadScaled<V, kScaled>(from[r] + i + kLanes, job.extras.left);
      }
    }
    for (int64_t r = 0; r < std::min(kRows, last - row); ++r) {
      const V both = sums[r][0] + sums[r][1];
      T sum = 0;
      for (int64_t lane = 0; lane < kLanes; ++lane) sum += both[lane];
      for (int64_t i = whole; i < job.k; ++i) sum += job.vector[i] * (job.extras.left * from[r][i]);
      job.out[row + r] = sum;
    }
  }
}

// Adds the rows of a matrix, times `scale` and a number each, to one row of sums. Each pass adds kTerms
// rows.
template <class T, int kBytes, bool kScaled = false>
WEFT_INLINE void AddRows(const T* matrix, int64_t stride, const T* numbers, int64_t rows,
                         int64_t columns, T* sums, T scale = 1) {
  using V = typename Vector<T, kBytes>::V;
  constexpr int64_t kLanes = Vector<T, kBytes>::kLanes;
  const int64_t whole = columns / kLanes * kLanes;
  int64_t row = 0;
  for (; row + kTerms <= rows; row += kTerms) {
    const T* from[kTerms];
    T x[kTerms];
    for (int64_t r = 0; r < kTerms; ++r) {
      from[r] = matrix + (row + r) * stride;
      x[r] = numbers[row + r];
    }
    for (int64_t j = 0; j < whole; j += kLanes) {
      V sum = Load<V>(sums + j);
      for (int64_t r = 0; r < kTerms; ++r) sum += x[r] * LoadScaled<V, kScaled>(from[r] + j, scale);
      std::memcpy(sums + j, &sum, sizeof(V));
    }
    for (int64_t j = whole; j < columns; ++j) {
      for (int64_t r = 0; r < kTerms; ++r) sums[j] += x[r] * (scale * from[r][j]);
    }
  }
  for (; row < rows; ++row) {
    const T* from = matrix + row * stride;
    for (int64_t j = 0; j < columns; ++j) sums[j] += numbers[row] * (scale * from[j]);
  }
}

// Multiplies kBoth rows, each of which is read once: their products with `right` are stored in `out`,
// and the rows times `left` are added to the sums.
template <class T, int kBytes>
WEFT_INLINE void MultiplyBothWays(const T* matrix, int64_t k, const T* right, const T* left, T* out,
                                  T* sums) {
  using V = typename Vector<T, kBytes>::V;
  constexpr int64_t kLanes = Vector<T, kBytes>::kLanes;
  const int64_t whole = k / kLanes * kLanes;
  V products[kBoth] = {};
  for (int64_t j = 0; j < whole; j += kLanes) {
    const V x = Load<V>(right + j);
    V sum = Load<V>(sums + j);
    for (int64_t r = 0; r < kBoth; ++r) {
      const V row = Load<V>(matrix + r * k + j);
      products[r] += x * row;
      sum += left[r] * row;
    }
    std::memcpy(sums + j, &sum, sizeof(V));
  }
  for (int64_t r = 0; r < kBoth; ++r) {
    T product = 0;
    for (int64_t lane = 0; lane < kLanes; ++lane) product += products[r][lane];
    for (int64_t j = whole; j < k; ++j) {
      product += right[j] * matrix[r * k + j];
      sums[j] += left[r] * matrix[r * k + j];
    }
    out[r] = product;
  }
}

// Adds up the sums of parts, [parts, n], in the order of the parts.
template <class T>
void AddParts(const T* sums, int64_t parts, int64_t n, T* out) {
  std::memcpy(out, sums, n * sizeof(T));
  for (int64_t i = 1; i < parts; ++i) {
    for (int64_t j = 0; j < n; ++j) out[j] += sums[i * n + j];
  }
}

// The number of parts of `rows` rows that have sums of their own. It depends on the shape only.
inline int64_t CountParts(int64_t rows, int64_t products, int64_t most) {
  return std::max<int64_t>(1, std::min({most, rows / kLeastRows, products / kPiece}));
}

template <class T>
template <int kBytes>
WEFT_INLINE void Product<T>::Run(int64_t part) const {
  const int64_t first = part * rows, last = std::min(first + rows, m);
  if (extras.left == 1) {
    MultiplyRows<T, kBytes>(*this, first, last);
  } else {
    MultiplyRows<T, kBytes, true>(*this, first, last);
  }
  extras.Complete(out, 0, 0, 1, first, last - first);
}

template <class T>
template <int kBytes>
WEFT_INLINE void ColumnSums<T>::Run(int64_t part) const {
  const int64_t block = part / parts, first = block * columns, row = part % parts * rows;
  const int64_t count = std::min(columns, m - first), terms = std::min(rows, k - row);
  T* to = sums + part % parts * m + first;
  std::memset(to, 0, count * sizeof(T));
  if (terms <= 0) return;
  const T *from = matrix + row * m + first, *numbers = vector + row;
  if (extras.left == 1) {
    AddRows<T, kBytes>(from, m, numbers, terms, count, to);
  } else {
    AddRows<T, kBytes, true>(from, m, numbers, terms, count, to, extras.left);
  }
}

template <class T>
template <int kBytes>
WEFT_INLINE void BothProducts<T>::Run(int64_t part) const {
  T* to = sums + part * k;
  std::memset(to, 0, k * sizeof(T));
  const Product<T> job{m, k, matrix, right, out, rows, {}};
  const T* numbers = left == nullptr ? out : left;
  const int64_t end = std::min(m, (part + 1) * rows);
  int64_t row = part * rows;
  for (; left != nullptr && row + kBoth <= end; row += kBoth) {
    MultiplyBothWays<T, kBytes>(matrix + row * k, k, right, left + row, out + row, to);
    extras.Complete(out, 0, 0, 1, row, kBoth);
  }
  for (; row < end; row += kTerms) {
    const int64_t count = std::min(kTerms, end - row);
    MultiplyRows<T, kBytes>(job, row, row + count);
    extras.Complete(out, 0, 0, 1, row, count);
    AddRows<T, kBytes>(matrix + row * k, k, numbers + row, count, k, to);
  }
}

ffi::Error Multiply(ffi::ThreadPool pool, ffi::AnyBuffer matrix, ffi::AnyBuffer vector, ffi::RemainingArgs more,
                    ffi::Result<ffi::AnyBuffer> out, bool turned, std::string_view names) {
  Size m, k;
  if (!Fits(*out, m) || !Fits(vector, k) || k == 0 || !AreAlike(matrix, vector, *out) ||
      !(turned ? Fits(matrix, k, m) : Fits(matrix, m, k))) {
    return ffi::Error::InvalidArgument(
        "operands must be [m, k], or [k, m] if `turned`, and [k] with k above 0, and the result [m], of "
        "one dtype");
  }
  const auto run = [&](auto zero) {
    using T = decltype(zero);
    const T* a = static_cast<const T*>(matrix.untyped_data());
    const T* x = static_cast<const T*>(vector.untyped_data());
    T* y = static_cast<T*>(out->untyped_data());
    Extras<T> extras;
    if (!extras.Read(more, 0, names, *out) || extras.count != more.size()) return WrongExtras();
    if (m == 0) return ffi::Error::Success();
    const Memory<T> scaled = Allocate<T>(extras.right != 1 ? int64_t{k} : 0);
    if (extras.right != 1) {
      if (!scaled) return OutOfMemory();
      Scale(x, k, extras.right, scaled.get());
      x = scaled.get();
    }
    if (!turned) {
      static const auto part = RunWith<Product<T>>(VectorBytes());
      const int64_t rows = std::max<int64_t>(4, kPiece / k / 4 * 4);
      const Product<T> job{m, k, a, x, y, rows, extras};
      ForEach(pool, (m + rows - 1) / rows, [&](int64_t i) { part(job, i); });
      return ffi::Error::Success();
    }
    static const auto part = RunWith<ColumnSums<T>>(VectorBytes());
    const int64_t columns = kSumBytes / sizeof(T), blocks = (m + columns - 1) / columns;
    const int64_t parts = CountParts(k, m * k, (kParts + blocks - 1) / blocks);
    const Memory<T> sums = Allocate<T>(parts > 1 ? parts * m : 0);
    if (parts > 1 && !sums) return OutOfMemory();
    const int64_t rows = (k + parts * kTerms - 1) / (parts * kTerms) * kTerms;
    const ColumnSums<T> job{m, k, a, x, parts > 1 ? sums.get() : y, columns, parts, rows, extras};
    ForEach(pool, blocks * parts, [&](int64_t i) { part(job, i); });
    if (parts > 1) AddParts(sums.get(), parts, m, y);
    extras.Complete(y, 0, 0, 1, 0, m);
    return ffi::Error::Success();
  };
  switch (matrix.element_type()) {
    case ffi::F32: return run(float{});
    case ffi::F64: return run(double{});
    default: return ffi::Error::InvalidArgument("operands must be f32 or f64");
  }
}

ffi::Error MultiplyBoth(ffi::ThreadPool pool, ffi::AnyBuffer matrix, ffi::AnyBuffer right,
                        ffi::AnyBuffer left, ffi::RemainingArgs more, ffi::Result<ffi::AnyBuffer> out,
                        ffi::Result<ffi::AnyBuffer> turned_out, bool chained, std::string_view names,
                        std::string_view turned_names) {
  Size m, k;
  if (!Fits(matrix, m, k) || !Fits(right, k) || !Fits(*out, m) || !Fits(*turned_out, k) ||
      !(chained ? Fits(left, k) : Fits(left, m)) || k == 0 ||
      !AreAlike(matrix, right, left, *out, *turned_out)) {
    return ffi::Error::InvalidArgument(
        "operands must be [m, k], [k] with k above 0, and [m], or [k] if `chained`, and results [m] and "
        "[k], of one dtype");
  }
  const auto run = [&](auto zero) {
    using T = decltype(zero);
    static const auto part = RunWith<BothProducts<T>>(VectorBytes());
    Extras<T> extras, turned;
    if (!extras.Read(more, 0, names, *out, false) || !turned.Read(more, extras.count, turned_names, *turned_out, false) ||
        extras.count + turned.count != more.size()) {
      return WrongExtras();
    }
    const int64_t parts = CountParts(m, m * k, kParts);
    T* z = static_cast<T*>(turned_out->untyped_data());
    const Memory<T> sums = Allocate<T>(parts > 1 ? parts * k : 0);
    if (parts > 1 && !sums) return OutOfMemory();
    const int64_t rows = (m + parts * kTerms - 1) / (parts * kTerms) * kTerms;
    const BothProducts<T> job{m,
                              k,
                              static_cast<const T*>(matrix.untyped_data()),
                              static_cast<const T*>(right.untyped_data()),
                              chained ? nullptr : static_cast<const T*>(left.untyped_data()),
                              static_cast<T*>(out->untyped_data()),
                              parts > 1 ? sums.get() : z,
                              rows,
                              extras};
    ForEach(pool, parts, [&](int64_t i) { part(job, i); });
    if (parts > 1) AddParts(sums.get(), parts, k, z);
    turned.Complete(z, 0, 0, 1, 0, k);
    return ffi::Error::Success();
  };
  switch (matrix.element_type()) {
    case ffi::F32: return run(float{});
    case ffi::F64: return run(double{});
    default: return ffi::Error::InvalidArgument("operands must be f32 or f64");
  }
}

}  // namespace
}  // namespace weft

XLA_FFI_DEFINE_HANDLER_SYMBOL(weft_matvec, weft::Multiply,
                              xla::ffi::Ffi::Bind()
                                  .Ctx<xla::ffi::ThreadPool>()
                                  .Arg<xla::ffi::AnyBuffer>()
                                  .Arg<xla::ffi::AnyBuffer>()
                                  .RemainingArgs()
                                  .Ret<xla::ffi::AnyBuffer>()
                                  .Attr<bool>("turned")
                                  .Attr<std::string_view>("extras"));

XLA_FFI_DEFINE_HANDLER_SYMBOL(weft_matvec_pair, weft::MultiplyBoth,
                              xla::ffi::Ffi::Bind()
                                  .Ctx<xla::ffi::ThreadPool>()
                                  .Arg<xla::ffi::AnyBuffer>()
                                  .Arg<xla::ffi::AnyBuffer>()
                                  .Arg<xla::ffi::AnyBuffer>()
                                  .RemainingArgs()
                                  .Ret<xla::ffi::AnyBuffer>()
                                  .Ret<xla::ffi::AnyBuffer>()
                                  .Attr<bool>("chained")
                                  .Attr<std::string_view>("extras")
                                  .Attr<std::string_view>("turned_extras"));
