// Elements of an array that are steps apart along each axis: slices, reverses, repeats, transposes.
//
// Where the last axis changes, square blocks with the side of a cache line are transposed in
// registers, and each cache line of the result is written at once. So cache conflicts do no harm,
// as between rows whose size is a power of two.

#include <array>
#include <utility>
#include <vector>

#include "common.h"

namespace weft {
namespace {

constexpr int64_t kBytes = 1 << 17;  // that are worth a thread
constexpr int64_t kAlone = 1 << 19;  // bytes; below this, one thread is as fast
constexpr int64_t kLine = 64;

template <class T>
struct Vector {
  typedef T V __attribute__((vector_size(16), aligned(1), may_alias));
};

// Interleaves the lower or the upper halves of two vectors.
template <class V, class T, bool kUpper, int... kLane>
inline V Interleave(V x, V y, std::integer_sequence<int, kLane...>) {
  constexpr int kCount = sizeof...(kLane), kFrom = kUpper ? kCount / 2 : 0;
#if defined(__clang__)
  return __builtin_shufflevector(x, y, (kFrom + kLane / 2 + kLane % 2 * kCount)...);
#else
  return __builtin_shuffle(x, y, V{static_cast<T>(kFrom + kLane / 2 + kLane % 2 * kCount)...});
#endif
}

// Transposes a square tile with the side of one vector.
template <class T>
inline void TurnTile(const T* from, int64_t row, T* to, int64_t out) {
  if constexpr (sizeof(T) == 16) {
    *to = *from;
  } else {
    typedef typename Vector<T>::V V;
    constexpr int kCount = 16 / sizeof(T);
    constexpr auto lanes = std::make_integer_sequence<int, kCount>();
    V x[kCount], y[kCount];
    for (int i = 0; i < kCount; ++i) x[i] = *reinterpret_cast<const V*>(from + i * row);
    for (int step = 1; step < kCount; step *= 2) {
      for (int i = 0; i < kCount / 2; ++i) {
        y[2 * i] = Interleave<V, T, false>(x[i], x[i + kCount / 2], lanes);
        y[2 * i + 1] = Interleave<V, T, true>(x[i], x[i + kCount / 2], lanes);
      }
      for (int i = 0; i < kCount; ++i) x[i] = y[i];
    }
    for (int i = 0; i < kCount; ++i) *reinterpret_cast<V*>(to + i * out) = x[i];
  }
}

// Transposes `rows` rows of `count` elements. Both are at most the elements of a cache line.
template <class T>
void TurnBlock(const T* from, int64_t row, T* to, int64_t out, int64_t rows, int64_t count) {
  constexpr int64_t kSide = kLine / sizeof(T), kTile = 16 / sizeof(T);
  alignas(kLine) T block[kSide * kSide], turned[kSide * kSide];
  const bool whole = rows == kSide && count == kSide;
  if (!whole) {
    for (int64_t i = 0; i < rows; ++i) std::memcpy(block + i * kSide, from + i * row, count * sizeof(T));
    from = block;
    row = kSide;
  }
  for (int64_t i = 0; i < rows; i += kTile) {
    for (int64_t j = 0; j < count; j += kTile) {
      TurnTile(from + i * row + j, row, turned + j * kSide + i, kSide);
    }
  }
  if (whole) {
    for (int64_t j = 0; j < kSide; ++j) std::memcpy(to + j * out, turned + j * kSide, kLine);
    return;
  }
  for (int64_t j = 0; j < count; ++j) {
    std::memcpy(to + j * out, turned + j * kSide, rows * sizeof(T));
  }
}

// An axis: its size, and its strides in the operand and in the result.
struct Axis {
  int64_t size, in, out;
};

// `side` is the operand's last axis, `last` the result's, and `rest` all others.
template <class T>
void Turn(ffi::ThreadPool& pool, const T* from, T* to, Axis side, Axis last,
          const std::vector<Axis>& rest) {
  constexpr int64_t kSide = kLine / sizeof(T);
  const int64_t across = (side.size + kSide - 1) / kSide, down = (last.size + kSide - 1) / kSide;
  constexpr int64_t kBlocks = kBytes / (kSide * kLine);
  int64_t total = across * down;
  for (const Axis& axis : rest) total *= axis.size;
  ForEach(pool, (total + kBlocks - 1) / kBlocks, [&](int64_t piece) {
    const int64_t end = std::min(total, (piece + 1) * kBlocks);
    for (int64_t block = piece * kBlocks; block < end;) {
      const int64_t i = block / across % down * kSide, rows = std::min(kSide, last.size - i);
      int64_t place = block / across / down, j = block % across;
      const T* x = from + i * last.in;
      T* y = to + i;
      for (const Axis& axis : rest) {
        x += place % axis.size * axis.in;
        y += place % axis.size * axis.out;
        place /= axis.size;
      }
      for (; j < across && block < end; ++j, ++block) {
        const int64_t begin = j * kSide, count = std::min(kSide, side.size - begin);
        TurnBlock(x + begin, last.in, y + begin * side.out, side.out, rows, count);
      }
    }
  });
}

// Steps that are known go by vectors.
template <class T, int64_t kStep>
WEFT_WIDE void CopySteps(const T* from, T* __restrict to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = from[i * kStep];
}

template <class T>
WEFT_WIDE void CopyRow(const T* from, int64_t step, T* __restrict to, int64_t n) {
  if (step == 1) {
    Copy(reinterpret_cast<char*>(to), reinterpret_cast<const char*>(from), n * sizeof(T));
  } else if (step == 0) {
    std::fill_n(to, n, *from);
  } else if (step == -1) {
    CopySteps<T, -1>(from, to, n);
  } else if (step == 2) {
    CopySteps<T, 2>(from, to, n);
  } else if (step == 3) {
    CopySteps<T, 3>(from, to, n);
  } else if (step == 4) {
    CopySteps<T, 4>(from, to, n);
  } else {
    for (int64_t i = 0; i < n; ++i) to[i] = from[i * step];
  }
}

// Writes the rows along the last axis of the result in order.
template <class T>
void CopyRows(ffi::ThreadPool& pool, const T* from, T* to, Axis last, const std::vector<Axis>& rest,
              int64_t total) {
  const int64_t bytes = total * sizeof(T), size = bytes <= kAlone ? total : kBytes / sizeof(T);
  ForEach(pool, (total + size - 1) / size, [&](int64_t piece) {
    const int64_t end = std::min(total, (piece + 1) * size);
    int64_t at = piece * size, j = at % last.size, row = at / last.size;
    const T* x = from;
    std::vector<int64_t> index;
    for (const Axis& axis : rest) {
      index.push_back(row % axis.size);
      x += index.back() * axis.in;
      row /= axis.size;
    }
    while (at < end) {
      const int64_t n = std::min(last.size - j, end - at);
      CopyRow(x + j * last.in, last.in, to + at, n);
      at += n;
      j = 0;
      for (size_t k = 0; k < rest.size(); ++k) {  // to the next row, without divisions
        x += rest[k].in;
        if (++index[k] < rest[k].size) break;
        x -= rest[k].size * rest[k].in;
        index[k] = 0;
      }
    }
  });
}

// Writes the elements of x at start + sum(i * steps), for all indices i below `sizes`, in row-major
// order.
ffi::Error View(ffi::ThreadPool pool, int64_t start, ffi::Span<const int64_t> sizes,
                ffi::Span<const int64_t> steps, ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> out) {
  const size_t rank = sizes.size();
  const int64_t given = x.element_count(), total = out->element_count();
  bool fits = rank > 0 && steps.size() == rank && AreAlike(x, *out);
  std::vector<Axis> rest;  // the last one first
  Exact count = 1, least = start, most = start;
  int64_t in = start, at = 0;
  for (size_t k = rank; fits && k-- > 0;) {
    rest.push_back({sizes[k], steps[k], count.value()});
    Exact& end = steps[k] < 0 ? least : most;
    end = end + (Exact(sizes[k]) + -1) * steps[k];
    count = count * sizes[k];
    fits = sizes[k] > 0 && count.IsIn(1, total);
  }
  if (!fits || !count.Is(total) || !least.IsIn(0, given - 1) || !most.IsIn(0, given - 1)) {
    return ffi::Error::InvalidArgument(
        "the result must be elements of the operand, as many as the sizes are of");
  }
  const auto is_side = [](const Axis& axis) { return axis.in == 1 || axis.in == -1; };
  const Axis last = rest.front();
  rest.erase(rest.begin());
  auto found = std::find_if(rest.begin(), rest.end(), is_side);
  const bool turns = !is_side(last) && last.in != 0 && found != rest.end();
  Axis side = turns ? *found : last;
  if (turns) rest.erase(found);
  if (turns && side.in < 0) {  // read forward, and written backward
    side.in = 1;
    side.out = -side.out;
    in -= side.size - 1;
    at -= (side.size - 1) * side.out;
  }
  const auto turn = [&](auto zero) {
    using T = decltype(zero);
    const T* const from = static_cast<const T*>(x.untyped_data()) + in;
    T* const to = static_cast<T*>(out->untyped_data()) + at;
    if (turns) Turn(pool, from, to, side, last, rest);
    else CopyRows(pool, from, to, last, rest, total);
    return ffi::Error::Success();
  };
  switch (ffi::ByteWidth(x.element_type())) {
    case 1: return turn(int8_t{0});
    case 2: return turn(int16_t{0});
    case 4: return turn(int32_t{0});
    case 8: return turn(int64_t{0});
    case 16: return turn(std::array<int64_t, 2>{});
    default: return ffi::Error::InvalidArgument("elements must have whole bytes");
  }
}

}  // namespace
}  // namespace weft

XLA_FFI_DEFINE_HANDLER_SYMBOL(weft_view, weft::View,
                              xla::ffi::Ffi::Bind()
                                  .Ctx<xla::ffi::ThreadPool>()
                                  .Attr<int64_t>("start")
                                  .Attr<xla::ffi::Span<const int64_t>>("sizes")
                                  .Attr<xla::ffi::Span<const int64_t>>("steps")
                                  .Arg<xla::ffi::AnyBuffer>()
                                  .Ret<xla::ffi::AnyBuffer>());
