// Copies in pieces: parts of arrays one after another along an axis, an array within a frame, and an
// array rolled along its axes.
//
// Elements are copied as bytes, whatever their dtype. The work is divided among threads by bytes.

#include <vector>

#include "common.h"

namespace weft {
namespace {

constexpr int64_t kBytes = 1 << 17;  // bytes of the result that are worth a thread

// One operand of a concatenation: its first byte, the bytes of one of its rows, and the total
// bytes.
struct Part {
  const char* from;
  int64_t row, size;
};

// Writes elements of `width` bytes, a power of two that 16 bytes can hold, all alike.
void Fill(char* to, const char* value, int64_t width, int64_t size) {
  const int64_t first = std::min(size, int64_t{64});
  for (int64_t i = 0; i < first; i += width) std::memcpy(to + i, value, width);
  for (int64_t i = first; i < size; i += first) std::memcpy(to + i, to, std::min(first, size - i));
}

// Writes `rows` rows, of each the parts one after another.
void Join(ffi::ThreadPool& pool, const std::vector<Part>& parts, char* to, int64_t rows,
          int64_t width) {
  const int64_t total = rows * width, pieces = (total + kBytes - 1) / kBytes;
  ForEach(pool, pieces, [&](int64_t piece) {
    const int64_t begin = piece * kBytes, end = std::min(total, begin + kBytes);
    for (int64_t row = begin / width; row * width < end; ++row) {
      int64_t at = row * width;  // where the part begins in the result
      for (const Part& part : parts) {
        const int64_t first = std::max(begin, at), last = std::min(end, at + part.size);
        if (first < last) Copy(to + first, part.from + row * part.row + first - at, last - first);
        at += part.size;
      }
    }
  });
}

ffi::Error Concatenate(ffi::ThreadPool pool, ffi::Span<const int64_t> starts,
                       ffi::Span<const int64_t> sizes, ffi::RemainingArgs xs,
                       ffi::Result<ffi::AnyBuffer> out) {
  Size rows, n, lanes;
  bool fits = Fits(*out, rows, n, lanes) && starts.size() == xs.size() && sizes.size() == xs.size();
  const int64_t lane = ffi::ByteWidth(out->element_type()) * lanes;
  std::vector<Part> parts;
  int64_t total = 0;
  for (size_t i = 0; fits && i < xs.size(); ++i) {
    const auto x = xs.get<ffi::AnyBuffer>(i);
    Size given;
    fits = x && AreAlike(*x, *out) && Fits(*x, rows, given, lanes) && sizes[i] >= 0 &&
           starts[i] >= 0 && starts[i] <= given && sizes[i] <= given - starts[i];
    if (!fits) break;
    const char* const from = static_cast<const char*>(x->untyped_data()) + starts[i] * lane;
    parts.push_back({from, given * lane, sizes[i] * lane});
    total += sizes[i];
  }
  if (!fits || total != n) {
    return ffi::Error::InvalidArgument(
        "the result must be [rows, n, lanes], of parts [rows, size, lanes] of the operands");
  }
  Join(pool, parts, static_cast<char*>(out->untyped_data()), rows, n * lane);
  return ffi::Error::Success();
}

// Writes x into the result from index `low` on, and `fill` around it. A row is one run along the
// last axis.
ffi::Error Pad(ffi::ThreadPool pool, ffi::Span<const int64_t> low, ffi::AnyBuffer x,
               ffi::AnyBuffer fill, ffi::Result<ffi::AnyBuffer> out) {
  const auto inner = x.dimensions(), outer = out->dimensions();
  const size_t rank = outer.size();
  bool fits = rank > 0 && inner.size() == rank && low.size() == rank && Fits(fill) &&
              AreAlike(x, fill, *out);
  for (size_t i = 0; fits && i < rank; ++i) {
    fits = 0 <= low[i] && inner[i] <= outer[i] && low[i] <= outer[i] - inner[i];
  }
  if (!fits) {
    return ffi::Error::InvalidArgument(
        "the operand must lie in the result from `low` on, and be followed by a number of its dtype");
  }
  const int64_t bytes = ffi::ByteWidth(x.element_type());
  const char* const from = static_cast<const char*>(x.untyped_data());
  const char* const value = static_cast<const char*>(fill.untyped_data());
  char* const to = static_cast<char*>(out->untyped_data());
  const int64_t width = outer.back() * bytes, before = low[rank - 1] * bytes;
  const int64_t size = inner.back() * bytes, total = out->element_count() * bytes;
  ForEach(pool, (total + kBytes - 1) / kBytes, [&](int64_t piece) {
    const int64_t begin = piece * kBytes, end = std::min(total, begin + kBytes);
    for (int64_t row = begin / width; row * width < end; ++row) {
      const int64_t at = row * width, first = std::max(begin, at), last = std::min(end, at + width);
      int64_t rest = row, place = 0, stride = 1;  // of the row in x, if it is there
      bool inside = true;
      for (int64_t i = static_cast<int64_t>(rank) - 2; i >= 0; --i) {
        const int64_t k = rest % outer[i] - low[i];
        inside = inside && k >= 0 && k < inner[i];
        place += k * stride;
        stride *= inner[i];
        rest /= outer[i];
      }
      const int64_t start = inside ? std::clamp(at + before, first, last) : last;
      const int64_t stop = inside ? std::clamp(at + before + size, first, last) : last;
      Fill(to + first, value, bytes, start - first);
      if (start < stop) Copy(to + start, from + place * size + start - at - before, stop - start);
      Fill(to + stop, value, bytes, last - stop);
    }
  });
  return ffi::Error::Success();
}

// Writes x[(i + starts) mod sizes] to the element i of the result. A row is one run along the last
// axis, copied in two parts.
ffi::Error Roll(ffi::ThreadPool pool, ffi::Span<const int64_t> starts, ffi::AnyBuffer x,
                ffi::Result<ffi::AnyBuffer> out) {
  const auto dims = x.dimensions();
  const size_t rank = dims.size();
  bool fits = rank > 0 && starts.size() == rank && out->dimensions() == dims && AreAlike(x, *out);
  for (size_t i = 0; fits && i < rank; ++i) fits = 0 <= starts[i] && starts[i] < dims[i];
  if (!fits) {
    return ffi::Error::InvalidArgument(
        "the result must be like the operand, and `starts` a place in each axis");
  }
  const int64_t bytes = ffi::ByteWidth(x.element_type());
  const char* const from = static_cast<const char*>(x.untyped_data());
  char* const to = static_cast<char*>(out->untyped_data());
  const int64_t width = dims.back() * bytes, total = out->element_count() * bytes;
  const int64_t start = starts[rank - 1] * bytes, split = width - start;
  ForEach(pool, (total + kBytes - 1) / kBytes, [&](int64_t piece) {
    const int64_t begin = piece * kBytes, end = std::min(total, begin + kBytes);
    for (int64_t row = begin / width; row * width < end; ++row) {
      int64_t rest = row, place = 0, stride = width;  // of the row in x
      for (int64_t i = static_cast<int64_t>(rank) - 2; i >= 0; --i) {
        const int64_t k = rest % dims[i] + starts[i];
        place += (k < dims[i] ? k : k - dims[i]) * stride;
        stride *= dims[i];
        rest /= dims[i];
      }
      const int64_t at = row * width, first = std::max(begin, at) - at;
      const int64_t last = std::min(end, at + width) - at, middle = std::clamp(split, first, last);
      const char* const source = from + place;
      if (first < middle) Copy(to + at + first, source + start + first, middle - first);
      if (middle < last) Copy(to + at + middle, source + middle - split, last - middle);
    }
  });
  return ffi::Error::Success();
}

}  // namespace
}  // namespace weft

XLA_FFI_DEFINE_HANDLER_SYMBOL(weft_concatenate, weft::Concatenate,
                              xla::ffi::Ffi::Bind()
                                  .Ctx<xla::ffi::ThreadPool>()
                                  .Attr<xla::ffi::Span<const int64_t>>("starts")
                                  .Attr<xla::ffi::Span<const int64_t>>("sizes")
                                  .RemainingArgs()
                                  .Ret<xla::ffi::AnyBuffer>());
XLA_FFI_DEFINE_HANDLER_SYMBOL(weft_pad, weft::Pad,
                              xla::ffi::Ffi::Bind()
                                  .Ctx<xla::ffi::ThreadPool>()
                                  .Attr<xla::ffi::Span<const int64_t>>("low")
                                  .Arg<xla::ffi::AnyBuffer>()
                                  .Arg<xla::ffi::AnyBuffer>()
                                  .Ret<xla::ffi::AnyBuffer>());
XLA_FFI_DEFINE_HANDLER_SYMBOL(weft_roll, weft::Roll,
                              xla::ffi::Ffi::Bind()
                                  .Ctx<xla::ffi::ThreadPool>()
                                  .Attr<xla::ffi::Span<const int64_t>>("starts")
                                  .Arg<xla::ffi::AnyBuffer>()
                                  .Ret<xla::ffi::AnyBuffer>());
