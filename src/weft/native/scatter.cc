// Scatter: updates are stored to, or combined with, elements of the axis n of [rows, n, lanes].
// Also finds the indices of the true elements of a row.
//
// Updates are combined in the order of their indices, as in XLA, so results are equal bit for bit.

#include <string_view>

#include "common.h"

namespace weft {
namespace {

constexpr int64_t kMany = 8;  // lanes that are worth vectors
constexpr int kTogether = 4;  // rows with the same indices that are written side by side
constexpr int kCopies = 4;    // of sums with few places, which are added to in turn
constexpr int64_t kFewPlaces = 1 << 11;

struct Put {
  template <class T>
  WEFT_INLINE static T Apply(T, T y) { return y; }
};

struct Add {
  template <class T>
  WEFT_INLINE static T Apply(T x, T y) { return x + y; }
};

struct Subtract {
  template <class T>
  WEFT_INLINE static T Apply(T x, T y) { return x - y; }
};

struct Multiply {
  template <class T>
  WEFT_INLINE static T Apply(T x, T y) { return x * y; }
};

struct Largest {
  template <class T>
  WEFT_INLINE static T Apply(T x, T y) { return x != x || x >= y ? x : y; }
};

struct Smallest {
  template <class T>
  WEFT_INLINE static T Apply(T x, T y) { return x != x || x <= y ? x : y; }
};

// Of one update of many lanes.
template <class Op, class T>
WEFT_WIDE void WriteLanes(T* to, const T* from, int64_t lanes) {
  for (int64_t j = 0; j < lanes; ++j) to[j] = Op::template Apply<T>(to[j], from[j]);
}

// Writes `count` updates to a row of n elements. Indices outside of the row, including negative
// ones, are skipped. If there is one lane, kTogether rows may be written in turn, one element each.
// An update then seldom waits for the store before it.
using Write = void (*)(void* row, const void* updates, const void* indices, int64_t count, int64_t n,
                       int64_t lanes, bool together);

template <class Op, class T, class I>
WEFT_SCALAR void WriteRow(void* row, const void* updates, const void* indices, int64_t count, int64_t n,
                          int64_t lanes, bool together) {
  T* const to = static_cast<T*>(row);
  const T* from = static_cast<const T*>(updates);
  const I* const at = static_cast<const I*>(indices);
  if (together) {
    for (int64_t k = 0; k < count; ++k) {
      const uint64_t i = static_cast<int64_t>(at[k]);
      if (i >= static_cast<uint64_t>(n)) continue;
      for (int r = 0; r < kTogether; ++r) {
        to[r * n + i] = Op::template Apply<T>(to[r * n + i], from[r * count + k]);
      }
    }
    return;
  }
  if (lanes == 1) {
    for (int64_t k = 0; k < count; ++k) {
      const uint64_t i = static_cast<int64_t>(at[k]);
      if (__builtin_expect(i < static_cast<uint64_t>(n), 1)) to[i] = Op::template Apply<T>(to[i], from[k]);
    }
    return;
  }
  for (int64_t k = 0; k < count; ++k, from += lanes) {
    const uint64_t i = static_cast<int64_t>(at[k]);
    if (i >= static_cast<uint64_t>(n)) continue;
    T* const x = to + i * lanes;
    if (lanes >= kMany) WriteLanes<Op>(x, from, lanes);
    else for (int64_t j = 0; j < lanes; ++j) x[j] = Op::template Apply<T>(x[j], from[j]);
  }
}

ffi::Error NoSuchScatter() {
  return ffi::Error::InvalidArgument(
      "kind must be scatter, scatter-add, scatter-sub, scatter-mul, scatter-max or scatter-min of 32 or "
      "64 bits with indices of i32 or i64, or count of integers of one axis, with these indices or of u8");
}

// Indices are [count], of all rows, or [rows, count]. `out` holds x already, mostly: it is its buffer.
ffi::Error WriteAll(ffi::ThreadPool& pool, Write write, int64_t rows, int64_t n, int64_t lanes,
                    ffi::AnyBuffer& x, ffi::AnyBuffer& indices, ffi::AnyBuffer& updates,
                    ffi::Result<ffi::AnyBuffer>& out) {
  if (!write) return NoSuchScatter();
  Size given;
  const bool fits = Fits(indices, given) || Fits(indices, Size(rows), given);
  const int64_t count = given;
  if (!fits || !(Exact(rows * lanes) * count).Is(updates.element_count())) {
    return ffi::Error::InvalidArgument(
        "indices must be [count] or [rows, count], and there must be rows * count * lanes updates, of "
        "the rows before the axis and the lanes behind it");
  }
  const int64_t width = ffi::ByteWidth(x.element_type()), size = n * lanes * width;
  const int64_t stride = indices.dimensions().size() == 2
                             ? count * ffi::ByteWidth(indices.element_type()) : 0;
  const char* const before = static_cast<const char*>(x.untyped_data());
  const char* const from = static_cast<const char*>(updates.untyped_data());
  const char* const at = static_cast<const char*>(indices.untyped_data());
  char* const to = static_cast<char*>(out->untyped_data());
  const int64_t together = std::max<int64_t>(1, kPiece / std::max<int64_t>(1, count * lanes));
  ForEach(pool, (rows + together - 1) / together, [&](int64_t piece) {
    const int64_t last = std::min(rows, (piece + 1) * together);
    for (int64_t row = piece * together; row < last;) {
      const bool many = lanes == 1 && stride == 0 && row + kTogether <= last;
      const int64_t rows_now = many ? kTogether : 1;
      char* const y = to + row * size;
      if (to != before && size) std::memcpy(y, before + row * size, rows_now * size);
      write(y, from + row * count * lanes * width, at + row * stride, count, n, lanes, many);
      row += rows_now;
    }
  });
  return ffi::Error::Success();
}

// Sums of integers in one row, whose order does not matter. Each thread adds to its own copy of the
// row. Where rows are short, it takes several copies in turn, so that an addition does not wait for
// the preceding store to the same index. The last element of a copy collects indices outside of the
// row. `from` is one update, or one for each index.
template <bool kEach, class T, class I>
void AddPart(T* sums, int64_t width, int64_t copies, const T* from, const I* at, int64_t count) {
  const auto add = [=](T* to, int64_t k) {
    to[std::min<uint64_t>(static_cast<int64_t>(at[k]), width - 1)] += from[kEach ? k : 0];
  };
  int64_t k = 0;
  for (; copies == kCopies && k + kCopies <= count; k += kCopies) {
    for (int c = 0; c < kCopies; ++c) add(sums + c * width, k + c);
  }
  for (; k < count; ++k) add(sums, k);
}

template <class T, class I>
ffi::Error AddApart(ffi::ThreadPool& pool, ffi::AnyBuffer& x, ffi::AnyBuffer& indices,
                    ffi::AnyBuffer& updates, ffi::Result<ffi::AnyBuffer>& out) {
  const int64_t n = x.element_count(), count = indices.element_count(), width = n + 1;
  const bool each = updates.element_count() != 1;
  if (each && static_cast<int64_t>(updates.element_count()) != count) {
    return ffi::Error::InvalidArgument("updates must be one, or one for each index");
  }
  const int64_t copies = n <= kFewPlaces ? kCopies : 1;
  const int64_t worth = count / std::max(kPiece, 2 * width * copies);
  const int64_t parts = std::clamp<int64_t>(worth, 1, pool.num_threads());
  const auto sums = Allocate<T>(parts * copies * width);
  if (!sums) return OutOfMemory();
  const T* const before = static_cast<const T*>(x.untyped_data());
  const T* const from = static_cast<const T*>(updates.untyped_data());
  const I* const at = static_cast<const I*>(indices.untyped_data());
  T* const to = static_cast<T*>(out->untyped_data());
  ForEach(pool, parts, [&](int64_t part) {
    T* const mine = sums.get() + part * copies * width;
    const int64_t begin = count * part / parts, size = count * (part + 1) / parts - begin;
    std::fill_n(mine, copies * width, T{0});
    if (each) {
      AddPart<true>(mine, width, copies, from + begin, at + begin, size);
    } else {
      AddPart<false>(mine, width, copies, from, at + begin, size);
    }
  });
  ForEach(pool, (n + kPiece - 1) / kPiece, [&](int64_t piece) {
    const int64_t first = piece * kPiece, last = std::min(n, first + kPiece);
    if (to != before) std::copy(before + first, before + last, to + first);
    for (int64_t p = 0; p < parts * copies; ++p) {
      for (int64_t i = first; i < last; ++i) to[i] += sums[p * width + i];
    }
  });
  return ffi::Error::Success();
}

template <class T>
ffi::Error OfCounts(ffi::ThreadPool& pool, ffi::AnyBuffer& x, ffi::AnyBuffer& indices,
                    ffi::AnyBuffer& updates, ffi::Result<ffi::AnyBuffer>& out) {
  switch (indices.element_type()) {
    case ffi::U8: return AddApart<T, uint8_t>(pool, x, indices, updates, out);
    case ffi::S32: return AddApart<T, int32_t>(pool, x, indices, updates, out);
    case ffi::S64: return AddApart<T, int64_t>(pool, x, indices, updates, out);
    default: return NoSuchScatter();
  }
}

template <class Op, class T>
Write OfIndices(ffi::DataType indices) {
  if (indices == ffi::S32) return WriteRow<Op, T, int32_t>;
  return indices == ffi::S64 ? WriteRow<Op, T, int64_t> : nullptr;
}

// Sums and products of signed integers wrap, so they are computed with unsigned integers. `Put`
// copies bits.
template <class Op>
Write OfNumbers(ffi::DataType x, ffi::DataType indices) {
  constexpr bool is_bits = std::is_same_v<Op, Put>;
  switch (x) {
    case ffi::S32:
    case ffi::U32: return OfIndices<Op, uint32_t>(indices);
    case ffi::S64:
    case ffi::U64: return OfIndices<Op, uint64_t>(indices);
    case ffi::F32: return OfIndices<Op, std::conditional_t<is_bits, uint32_t, float>>(indices);
    case ffi::F64: return OfIndices<Op, std::conditional_t<is_bits, uint64_t, double>>(indices);
    default: return nullptr;
  }
}

template <class Op>
Write OfOrdered(ffi::DataType x, ffi::DataType indices) {
  if (x == ffi::S32) return OfIndices<Op, int32_t>(indices);
  if (x == ffi::S64) return OfIndices<Op, int64_t>(indices);
  return OfNumbers<Op>(x, indices);
}

Write FindWrite(std::string_view kind, ffi::DataType x, ffi::DataType indices) {
  if (kind == "scatter") return OfNumbers<Put>(x, indices);
  if (kind == "scatter-add") return OfNumbers<Add>(x, indices);
  if (kind == "scatter-sub") return OfNumbers<Subtract>(x, indices);
  if (kind == "scatter-mul") return OfNumbers<Multiply>(x, indices);
  if (kind == "scatter-max") return OfOrdered<Largest>(x, indices);
  if (kind == "scatter-min") return OfOrdered<Smallest>(x, indices);
  return nullptr;
}

ffi::Error Scatter(ffi::ThreadPool pool, std::string_view kind, int64_t axis, ffi::AnyBuffer x,
                   ffi::AnyBuffer indices, ffi::AnyBuffer updates, ffi::Result<ffi::AnyBuffer> out) {
  if (axis < 0 || axis >= static_cast<int64_t>(x.dimensions().size()) || !AreAlike(x, updates, *out) ||
      x.dimensions() != out->dimensions()) {
    return ffi::Error::InvalidArgument(
        "axis must be one of the operand, the result like it, and updates of its dtype");
  }
  const auto dims = x.dimensions();
  int64_t rows = 1, lanes = 1;
  for (int64_t i = 0; i < axis; ++i) rows *= dims[i];
  for (size_t i = axis + 1; i < dims.size(); ++i) lanes *= dims[i];
  if (kind == "count" && rows == 1 && lanes == 1) {
    switch (x.element_type()) {
      case ffi::S32:
      case ffi::U32: return OfCounts<uint32_t>(pool, x, indices, updates, out);
      case ffi::S64:
      case ffi::U64: return OfCounts<uint64_t>(pool, x, indices, updates, out);
      default: return NoSuchScatter();
    }
  }
  const Write write = FindWrite(kind, x.element_type(), indices.element_type());
  return WriteAll(pool, write, rows, dims[axis], lanes, x, indices, updates, out);
}

// --- places -----------------------------------------------------------------------------------

constexpr int64_t kBlock = 1024;
constexpr int64_t kShare = 1 << 16;  // bytes that are worth a thread

int64_t Count(const uint8_t* mask, int64_t first, int64_t last) {
  int64_t count = 0;
  while (first < last) {  // sums of bytes that hold no more than 255, which go by vectors
    const int64_t end = std::min(last, first + 255 * 16);
    uint8_t sums[16] = {};
    for (; first + 16 <= end; first += 16) {
      for (int j = 0; j < 16; ++j) sums[j] += mask[first + j];
    }
    for (int j = 0; j < 16; ++j) count += sums[j];
    for (; first < end; ++first) count += mask[first];
  }
  return count;
}

// Writes the indices of true elements from `first` to `last` to `out`, as far as it has space.
void FindPart(const uint8_t* mask, int64_t first, int64_t last, int32_t* out, int64_t room) {
  int32_t found[kBlock + 8];
  while (first < last && room > 0) {
    const int64_t end = std::min(last, first + kBlock);
    int64_t count = 0;
    for (; first + 8 <= end; first += 8) {
      uint64_t word;
      std::memcpy(&word, mask + first, 8);
      if (word == 0) continue;
      // Store always: the branch on the mask would be mispredicted.
      for (int64_t j = 0; j < 8; ++j) {
        found[count] = static_cast<int32_t>(first + j);
        count += mask[first + j];
      }
    }
    for (; first < end; ++first) {
      found[count] = static_cast<int32_t>(first);
      count += mask[first];
    }
    count = std::min(count, room);
    std::memcpy(out, found, count * sizeof(int32_t));
    out += count, room -= count;
  }
}

ffi::Error FindPlaces(ffi::ThreadPool pool, ffi::Buffer<ffi::PRED> mask,
                      ffi::ResultBuffer<ffi::S32> out) {
  Size lines, length, room;
  if (!Fits(mask, lines, length) || !Fits(*out, lines, room) || length > INT32_MAX) {
    return ffi::Error::InvalidArgument(
        "the operand must be [rows, n] with n less than 2**31, and the result [rows, size]");
  }
  const int64_t rows = lines, n = length, size = room;
  const uint8_t* const from = reinterpret_cast<const uint8_t*>(mask.typed_data());
  int32_t* const to = out->typed_data();
  const int64_t parts = std::max<int64_t>(1, n / kShare);
  const int64_t together = std::max<int64_t>(1, kShare / std::max<int64_t>(1, n));
  const auto totals = Allocate<int64_t>(rows * parts);
  if (!totals) return OutOfMemory();
  auto bound = [&](int64_t part) { return n * part / parts; };
  if (parts > 1) {
    ForEach(pool, rows * parts, [&](int64_t piece) {
      const int64_t part = piece % parts;
      totals[piece] = Count(from + piece / parts * n, bound(part), bound(part + 1));
    });
  }
  ForEach(pool, (rows + together - 1) / together * parts, [&](int64_t piece) {
    const int64_t part = piece % parts, begin = piece / parts * together;
    for (int64_t row = begin; row < std::min(rows, begin + together); ++row) {
      int64_t before = 0;
      for (int64_t p = 0; p < part; ++p) before += totals[row * parts + p];
      const int64_t first = bound(part), last = bound(part + 1);
      int32_t* const mine = to + row * size;
      if (before < size) FindPart(from + row * n, first, last, mine + before, size - before);
      if (part + 1 < parts) continue;
      const int64_t all = before + Count(from + row * n, first, last);
      if (all < size) std::fill(mine + all, mine + size, static_cast<int32_t>(n));
    }
  });
  return ffi::Error::Success();
}

}  // namespace
}  // namespace weft

XLA_FFI_DEFINE_HANDLER_SYMBOL(weft_scatter, weft::Scatter,
                              xla::ffi::Ffi::Bind()
                                  .Ctx<xla::ffi::ThreadPool>()
                                  .Attr<std::string_view>("kind")
                                  .Attr<int64_t>("axis")
                                  .Arg<xla::ffi::AnyBuffer>()
                                  .Arg<xla::ffi::AnyBuffer>()
                                  .Arg<xla::ffi::AnyBuffer>()
                                  .Ret<xla::ffi::AnyBuffer>());
XLA_FFI_DEFINE_HANDLER_SYMBOL(weft_find_places, weft::FindPlaces,
                              xla::ffi::Ffi::Bind()
                                  .Ctx<xla::ffi::ThreadPool>()
                                  .Arg<xla::ffi::Buffer<xla::ffi::PRED>>()
                                  .Ret<xla::ffi::Buffer<xla::ffi::S32>>());
