// The k largest elements along the last axis, descending, and their indices; the first ones on
// ties.
//
// Floats are in IEEE 754's totalOrder: NaN first, -0 after 0, -NaN last. Elements are compared with
// the smallest candidate for the k largest, and few of them become candidates.

#include <type_traits>

#include "common.h"

namespace weft {
namespace {

constexpr int64_t kBlock = 64;  // elements that are compared together

enum class Kind { kUnsigned, kSigned, kFloat };

// Maps the bits of an element to a signed integer with the same order.
template <Kind kKind, class S>
S KeyOf(S x) {
  constexpr int kBits = sizeof(S) * 8;
  constexpr S kLowest = static_cast<S>(std::make_unsigned_t<S>{1} << (kBits - 1));
  if constexpr (kKind == Kind::kUnsigned) return x ^ kLowest;
  if constexpr (kKind == Kind::kFloat) return x ^ ((x >> (kBits - 1)) & ~kLowest);
  return x;
}

template <class S>
struct Candidate {
  S key;
  uint32_t place;
  bool operator<(const Candidate& y) const {  // whether it comes first
    return key != y.key ? key > y.key : place < y.place;
  }
};

// Whether any of kBlock elements is larger than `least`.
template <Kind kKind, class S>
WEFT_WIDE bool IsAnyLarger(const S* x, S least) {
  S any = 0;
  for (int64_t i = 0; i < kBlock; ++i) any |= -static_cast<S>(KeyOf<kKind>(x[i]) > least);
  return any != 0;
}

// Moves the k best of `count` candidates to the front; returns the number kept.
template <class S>
int64_t Keep(Candidate<S>* found, int64_t count, int64_t k) {
  if (count <= k) return count;
  std::nth_element(found, found + k - 1, found + count);
  return k;
}

// How many candidates Find needs memory for.
constexpr int64_t Room(int64_t k) { return 3 * k + 8; }

// Writes the k largest elements from `begin` to `end` to `found`, in no order, or all if there are
// fewer. Returns their number.
template <Kind kKind, class S>
int64_t Find(const S* x, int64_t begin, int64_t end, int64_t k, Candidate<S>* found) {
  int64_t count = 0;
  S least = 0;
  bool full = false;  // k elements were found; none is less than `least`
  for (int64_t i = begin; i < end; i += kBlock) {
    const int64_t size = std::min(kBlock, end - i);
    if (full && size == kBlock && !IsAnyLarger<kKind>(x + i, least)) continue;
    for (int64_t j = i; j < i + size; ++j) {
      const S key = KeyOf<kKind>(x[j]);
      if (full && key <= least) continue;
      found[count++] = {key, static_cast<uint32_t>(j)};
      if (count < Room(k)) continue;
      count = Keep(found, count, k);
      least = found[k - 1].key;
      full = true;
    }
  }
  return Keep(found, count, k);
}

template <class S>
ffi::Error FindAll(ffi::ThreadPool& pool, decltype(&Find<Kind::kSigned, S>) find, ffi::AnyBuffer x,
                   ffi::Result<ffi::AnyBuffer> values, ffi::Result<ffi::BufferR2<ffi::S32>> places) {
  const int64_t rows = x.dimensions()[0], n = x.dimensions()[1], k = places->dimensions()[1];
  if (rows == 0 || k == 0) return ffi::Error::Success();
  const S* const from = static_cast<const S*>(x.untyped_data());
  S* const to = static_cast<S*>(values->untyped_data());
  int32_t* const to_places = places->typed_data();
  const int64_t together = std::max<int64_t>(1, kPiece / n);  // rows of one piece of work
  // A long row is searched in parts, by a thread each.
  const int64_t parts = std::clamp<int64_t>(n / std::max(kPiece, 8 * k), 1, pool.num_threads());
  std::atomic<bool> failed{false};
  ForEach(pool, (rows + together - 1) / together, [&](int64_t piece) {
    const auto found = Allocate<Candidate<S>>(parts * Room(k));
    const auto counts = Allocate<int64_t>(parts);
    if (!found || !counts) {
      failed = true;
      return;
    }
    for (int64_t row = piece * together; row < std::min(rows, (piece + 1) * together); ++row) {
      const S* const start = from + row * n;
      ForEach(pool, parts, [&](int64_t p) {
        counts[p] = find(start, n * p / parts, n * (p + 1) / parts, k, &found[p * Room(k)]);
      });
      int64_t count = counts[0];
      for (int64_t p = 1; p < parts; ++p) {
        std::copy_n(&found[p * Room(k)], counts[p], &found[count]);
        count += counts[p];
      }
      Keep(found.get(), count, k);
      std::sort(&found[0], &found[k]);
      for (int64_t i = 0; i < k; ++i) {
        to[row * k + i] = start[found[i].place];
        to_places[row * k + i] = found[i].place;
      }
    }
  });
  return failed ? OutOfMemory() : ffi::Error::Success();
}

template <Kind kKind>
ffi::Error FindOfSize(ffi::ThreadPool& pool, ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> values,
                      ffi::Result<ffi::BufferR2<ffi::S32>> places) {
  switch (ffi::ByteWidth(x.element_type())) {
    case 1: return FindAll<int8_t>(pool, Find<kKind, int8_t>, x, values, places);
    case 2: return FindAll<int16_t>(pool, Find<kKind, int16_t>, x, values, places);
    case 4: return FindAll<int32_t>(pool, Find<kKind, int32_t>, x, values, places);
    default: return FindAll<int64_t>(pool, Find<kKind, int64_t>, x, values, places);
  }
}

ffi::Error TopK(ffi::ThreadPool pool, ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> values,
                ffi::Result<ffi::BufferR2<ffi::S32>> places) {
  Size rows, n, k;
  if (!Fits(x, rows, n) || !Fits(*values, rows, k) || !Fits(*places, rows, k) || k > n ||
      n >= int64_t{1} << 31 || !AreAlike(x, *values)) {
    return ffi::Error::InvalidArgument(
        "the operand must be [rows, n] with n less than 2**31, and results [rows, k] with k at most n, "
        "of the operand's dtype and of i32");
  }
  switch (x.element_type()) {
    case ffi::C64:
    case ffi::C128: return ffi::Error::InvalidArgument("the operand must have an order");
    case ffi::PRED:
    case ffi::U8:
    case ffi::U16:
    case ffi::U32:
    case ffi::U64: return FindOfSize<Kind::kUnsigned>(pool, x, values, places);
    case ffi::S8:
    case ffi::S16:
    case ffi::S32:
    case ffi::S64: return FindOfSize<Kind::kSigned>(pool, x, values, places);
    default: return FindOfSize<Kind::kFloat>(pool, x, values, places);
  }
}

}  // namespace
}  // namespace weft

XLA_FFI_DEFINE_HANDLER_SYMBOL(weft_top_k, weft::TopK,
                              xla::ffi::Ffi::Bind()
                                  .Ctx<xla::ffi::ThreadPool>()
                                  .Arg<xla::ffi::AnyBuffer>()
                                  .Ret<xla::ffi::AnyBuffer>()
                                  .Ret<xla::ffi::BufferR2<xla::ffi::S32>>());
