// Marks the elements of a vector that are among the elements of another, the members.
//
// Members in a short range are a table of bits, others a hash table. NaN is no member, and -0 is 0.

#include "common.h"

namespace weft {
namespace {

constexpr int64_t kShortRange = 1 << 16;  // of members, for which there is a table in any case
constexpr int64_t kSlots = 4;             // of the hash table for each member

// The key of an element: its bits, so that equal elements have equal keys. Integers are in order.
template <class U, U kFlipped = 0>
struct Whole {
  using Bits = U;
  static bool IsNumber(U) { return true; }
  static U Key(U x) { return x ^ kFlipped; }
};

template <class U>
using Signed = Whole<U, static_cast<U>(U{1} << (sizeof(U) * 8 - 1))>;

// Floats with this many bits of mantissa.
template <class U, int kMantissa>
struct Real {
  using Bits = U;
  static constexpr U kSign = U{1} << (sizeof(U) * 8 - 1);
  static constexpr U kInfinity = static_cast<U>((kSign - 1) >> kMantissa << kMantissa);
  static bool IsNumber(U x) { return static_cast<U>(x & (kSign - 1)) <= kInfinity; }
  static U Key(U x) { return x == kSign ? 0 : x; }
};

// Keys between two integers, a bit for each.
template <class Kind>
struct Table {
  using U = typename Kind::Bits;
  U least, last;
  const uint64_t* bits;
  bool Has(U x) const {
    const U i = Kind::Key(x) - least;
    const U at = std::min(i, last);
    return (i <= last) & (bits[at >> 6] >> (at & 63) & 1);
  }
};

// Keys at the places that their hashes give, or behind; 0 is an empty place.
template <class Kind>
struct Hashed {
  using U = typename Kind::Bits;
  const U* keys;
  int64_t mask;
  int shift;
  bool has_zero;
  int64_t Place(U key) const { return (uint64_t{key} * 0x9E3779B97F4A7C15u) >> shift; }
  bool Has(U x) const {
    const U key = Kind::Key(x);
    if (key == 0) return has_zero;
    int64_t at = Place(key);
    while (keys[at] != key && keys[at] != 0) at = (at + 1) & mask;
    return keys[at] == key;
  }
};

template <class U, class Members>
void Mark(ffi::ThreadPool& pool, const Members& members, const U* from, uint8_t* to, int64_t n) {
  ForEach(pool, (n + kPiece - 1) / kPiece, [&](int64_t piece) {
    const int64_t end = std::min(n, (piece + 1) * kPiece);
    for (int64_t i = piece * kPiece; i < end; ++i) to[i] = members.Has(from[i]);
  });
}

template <class Kind>
ffi::Error Find(ffi::ThreadPool& pool, ffi::AnyBuffer x, ffi::AnyBuffer members, uint8_t* to) {
  using U = typename Kind::Bits;
  const int64_t n = x.element_count(), count = members.element_count();
  const U* const from = static_cast<const U*>(x.untyped_data());
  const U* const given = static_cast<const U*>(members.untyped_data());
  U least = ~U{0}, most = 0;
  for (int64_t i = 0; i < count; ++i) {
    if (!Kind::IsNumber(given[i])) continue;
    least = std::min(least, Kind::Key(given[i])), most = std::max(most, Kind::Key(given[i]));
  }
  if (least > most) {
    std::fill_n(to, n, 0);
    return ffi::Error::Success();
  }
  const U last = most - least;
  const int64_t range = std::max<int64_t>(kShortRange, kSlots * count * 8 * sizeof(U));
  if (last < static_cast<uint64_t>(range)) {
    const int64_t words = static_cast<int64_t>(last) / 64 + 1;
    const auto bits = Allocate<uint64_t>(words);
    if (!bits) return OutOfMemory();
    std::fill_n(bits.get(), words, 0);
    for (int64_t i = 0; i < count; ++i) {
      const U at = Kind::Key(given[i]) - least;
      if (Kind::IsNumber(given[i])) bits[at >> 6] |= uint64_t{1} << (at & 63);
    }
    Mark(pool, Table<Kind>{least, last, bits.get()}, from, to, n);
    return ffi::Error::Success();
  }
  int64_t size = 1024;
  int shift = 54;
  while (size < kSlots * count) size *= 2, --shift;
  const auto keys = Allocate<U>(size);
  if (!keys) return OutOfMemory();
  std::fill_n(keys.get(), size, 0);
  Hashed<Kind> table{keys.get(), size - 1, shift, false};
  for (int64_t i = 0; i < count; ++i) {
    if (!Kind::IsNumber(given[i])) continue;
    const U key = Kind::Key(given[i]);
    if (key == 0) {
      table.has_zero = true;
      continue;
    }
    int64_t at = table.Place(key);
    while (keys[at] != key && keys[at] != 0) at = (at + 1) & table.mask;
    keys[at] = key;
  }
  Mark(pool, table, from, to, n);
  return ffi::Error::Success();
}

ffi::Error FindMembers(ffi::ThreadPool pool, ffi::AnyBuffer x, ffi::AnyBuffer members,
                       ffi::Result<ffi::AnyBuffer> out) {
  Size n, count;
  if (!Fits(x, n) || !Fits(members, count) || !Fits(*out, n) || !AreAlike(x, members) ||
      out->element_type() != ffi::PRED) {
    return ffi::Error::InvalidArgument(
        "operands must be vectors of one dtype, and the result of bool, as long as the first");
  }
  uint8_t* const to = static_cast<uint8_t*>(out->untyped_data());
  switch (x.element_type()) {
    case ffi::S8: return Find<Signed<uint8_t>>(pool, x, members, to);
    case ffi::PRED:
    case ffi::U8: return Find<Whole<uint8_t>>(pool, x, members, to);
    case ffi::S16: return Find<Signed<uint16_t>>(pool, x, members, to);
    case ffi::U16: return Find<Whole<uint16_t>>(pool, x, members, to);
    case ffi::S32: return Find<Signed<uint32_t>>(pool, x, members, to);
    case ffi::U32: return Find<Whole<uint32_t>>(pool, x, members, to);
    case ffi::S64: return Find<Signed<uint64_t>>(pool, x, members, to);
    case ffi::U64: return Find<Whole<uint64_t>>(pool, x, members, to);
    case ffi::F16: return Find<Real<uint16_t, 10>>(pool, x, members, to);
    case ffi::BF16: return Find<Real<uint16_t, 7>>(pool, x, members, to);
    case ffi::F32: return Find<Real<uint32_t, 23>>(pool, x, members, to);
    case ffi::F64: return Find<Real<uint64_t, 52>>(pool, x, members, to);
    default: return ffi::Error::InvalidArgument("operands must be bool, integers or floats");
  }
}

}  // namespace
}  // namespace weft

XLA_FFI_DEFINE_HANDLER_SYMBOL(weft_members, weft::FindMembers,
                              xla::ffi::Ffi::Bind()
                                  .Ctx<xla::ffi::ThreadPool>()
                                  .Arg<xla::ffi::AnyBuffer>()
                                  .Arg<xla::ffi::AnyBuffer>()
                                  .Ret<xla::ffi::AnyBuffer>());
