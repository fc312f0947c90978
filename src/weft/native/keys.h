// The order of elements. Each element has a key: an unsigned integer in the same order.
//
// Floats are ordered as numbers, -0 equal to 0, NaN last; complex numbers by real part, then imaginary
// part.

#ifndef WEFT_NATIVE_KEYS_H_
#define WEFT_NATIVE_KEYS_H_

#include <cstdint>
#include <type_traits>

#include "ffi.h"

namespace weft {
namespace {

template <class U>
constexpr U kHighest = U{1} << (sizeof(U) * 8 - 1);

template <class U>
struct Unsigned {
  using Bits = U;
  static constexpr bool kIsReal = true;
  static U Key(U x) { return x; }
  static U Decode(U key) { return key; }
  static bool IsPlain(U) { return true; }
  static U EncodeEach(U x) { return x; }
  static U DecodeEach(U key) { return key; }
};

template <class U>
struct Signed {
  using Bits = U;
  static constexpr bool kIsReal = true;
  static U Key(U x) { return x ^ kHighest<U>; }
  static U Decode(U key) { return key ^ kHighest<U>; }
  static bool IsPlain(U) { return true; }
  static U EncodeEach(U x) { return Key(x); }
  static U DecodeEach(U key) { return Decode(key); }
};

// A float with this many bits of mantissa.
template <class U, int kMantissa>
struct Float {
  using Bits = U;
  static constexpr bool kIsReal = true;
  static constexpr U kInfinity = (kHighest<U> - 1) >> kMantissa << kMantissa;
  static constexpr U kNaNs = (U{1} << kMantissa) - 1;  // of each sign
  static U Key(U x) {
    const U magnitude = x & (kHighest<U> - 1);
    if (magnitude > kInfinity) return ~U{0};  // NaN
    if (magnitude == 0) return kHighest<U>;
    return Encode(x);
  }
  // Returns true if Decode inverts the key of the element: neither NaN nor -0.
  static bool IsPlain(U x) {
    return ((x & (kHighest<U> - 1)) <= kInfinity) & (x != kHighest<U>);
  }
  // All bits of negative numbers are flipped, of others the highest; without a condition to guess.
  static U Encode(U x) { return x ^ (static_cast<U>(-(x / kHighest<U>)) | kHighest<U>); }
  static U Decode(U key) { return key ^ (static_cast<U>(key / kHighest<U> - 1) | kHighest<U>); }
  // A distinct key for each bit pattern, also for -0 and each NaN. Keys of negative NaN wrap
  // around.
  static U EncodeEach(U x) { return Encode(x) - kNaNs; }
  static U DecodeEach(U key) { return Decode(key + kNaNs); }
};

// Two floats, the real part first in memory, and so in the lower half of the bits. They have no keys of
// their own: real parts of 0 and -0 are equal, and the imaginary parts decide.
template <class Part, class Both>
struct Complex {
  using Bits = Both;
  using Half = typename Part::Bits;
  static constexpr bool kIsReal = false;
  static Both Key(Both x) {
    constexpr int kShift = sizeof(Half) * 8;
    return Both{Part::Key(Half(x))} << kShift | Part::Key(Half(x >> kShift));
  }
};

__extension__ using Wide = unsigned __int128;

// Calls visit(kind) with the kind of the dtype. Returns the default value for a dtype without
// order.
template <class Visit>
auto VisitKind(ffi::DataType dtype, const Visit& visit) {
  using Single = Float<uint32_t, 23>;
  using Double = Float<uint64_t, 52>;
  switch (dtype) {
    case ffi::PRED:
    case ffi::U8: return visit(Unsigned<uint8_t>());
    case ffi::U16: return visit(Unsigned<uint16_t>());
    case ffi::U32: return visit(Unsigned<uint32_t>());
    case ffi::U64: return visit(Unsigned<uint64_t>());
    case ffi::S8: return visit(Signed<uint8_t>());
    case ffi::S16: return visit(Signed<uint16_t>());
    case ffi::S32: return visit(Signed<uint32_t>());
    case ffi::S64: return visit(Signed<uint64_t>());
    case ffi::F16: return visit(Float<uint16_t, 10>());
    case ffi::BF16: return visit(Float<uint16_t, 7>());
    case ffi::F32: return visit(Single());
    case ffi::F64: return visit(Double());
    case ffi::C64: return visit(Complex<Single, uint64_t>());
    case ffi::C128: return visit(Complex<Double, Wide>());
    default: return decltype(visit(Single())){};
  }
}

// An item with its key and its original index.
template <class Key>
struct Placed {
  Key key;
  uint32_t place;
};

// Returns the key of an item, which is a key itself or a Placed item.
template <class Key>
Key KeyOf(Key key) {
  return key;
}

template <class Key>
Key KeyOf(const Placed<Key>& item) {
  return item.key;
}

template <class Item>
using KeyType = decltype(KeyOf(Item()));

// Sorts n items by insertion, unless it takes more moves than `most`.
template <class Item>
bool SortByInsertion(Item* a, int64_t n, int64_t most) {
  KeyType<Item> last = KeyOf(a[0]);
  for (int64_t i = 1; i < n; ++i) {
    const Item item = a[i];
    const KeyType<Item> key = KeyOf(item);
    if (last <= key) {
      last = key;
      continue;
    }
    int64_t j = i;
    for (; j > 0 && KeyOf(a[j - 1]) > key; --j) a[j] = a[j - 1];
    a[j] = item;
    most -= i - j;
    if (most < 0) return false;
  }
  return true;
}

// For each mask of the eight words: the numbers of the words in it, and then of the others.
struct Orders {
  uint8_t numbers[256][8] = {};
  constexpr Orders() {
    for (int set = 0; set < 256; ++set) {
      int count = 0;
      for (int lane = 0; lane < 8; ++lane) {
        if (set >> lane & 1) numbers[set][count++] = lane;
      }
      for (int lane = 0; lane < 8; ++lane) {
        if (!(set >> lane & 1)) numbers[set][count++] = lane;
      }
    }
  }
};

constexpr Orders kOrders;

}  // namespace
}  // namespace weft

#endif  // WEFT_NATIVE_KEYS_H_
