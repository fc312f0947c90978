// Partition of rows: elements are rearranged so that chosen ranks hold the elements that sorting
// would put there.
//
// Two bounds around a chosen rank are taken from a sample of the elements. The elements are split
// by these bounds, and the same is done with those between, until they are few or equal (Floyd and
// Rivest, Expected time bounds for selection, 1975). A row with adversarial samples is sorted after
// a number of splits.

#include "common.h"
#include "keys.h"

#ifdef __AVX2__
#include <immintrin.h>
#endif

namespace weft {
namespace {

constexpr int64_t kShort = 48;      // elements up to this many are sorted by insertion
constexpr int64_t kSample = 512;    // a sample has this many at most
constexpr int kDepth = 24;          // how often elements are split at most
constexpr int64_t kParts = 64;      // threads that split a row at most
constexpr int64_t kBlock = 1024;    // items that are looked at together

// A sequence of items. They are stored at `items`, or `make` computes them from the elements x of a
// row.
template <class Item>
struct Source {
  const Item* items;
  const void* x;
  void (*make)(const void* x, int64_t begin, int64_t n, Item* items);

  // The n items from `begin` on; `block` has room for them.
  const Item* Get(int64_t begin, int64_t n, Item* block) const {
    if (items) return items + begin;
    make(x, begin, n, block);
    return block;
  }
};

// A range of keys, both ends included.
template <class Key>
struct Bounds {
  Key low, high;
};

// Returns bounds that contain few keys and very likely the key of rank `place`. If `tight`, both
// bounds are equal. Then many keys are equal, and those outside the bounds shrink in both
// directions.
template <class Item, class Key = KeyType<Item>>
Bounds<Key> FindBounds(const Source<Item>& from, int64_t n, int64_t place, bool tight) {
  Key sample[kSample];
  int64_t size = 16, root = 4;
  for (; size < kSample && size * size < n; size *= 4) root *= 2;
  size = std::min(size, kSample);
  for (int64_t i = 0; i < size; ++i) {
    Item item;
    sample[i] = KeyOf(*from.Get((2 * i + 1) * n / (2 * size), 1, &item));
  }
  std::sort(sample, sample + size);
  const int64_t rank = place * size / n, off = tight ? 0 : root;
  return {rank < off ? Key{0} : sample[rank - off],
          rank + off >= size ? static_cast<Key>(~Key{0}) : sample[rank + off]};
}

struct Counts {
  int64_t below = 0, above = 0;
};

template <class Key, class Item>
WEFT_WIDE Counts CountOutside(const Item* items, int64_t n, Bounds<Key> bounds) {
  uint32_t below = 0, above = 0;
  for (int64_t i = 0; i < n; ++i) {
    const Key key = KeyOf(items[i]);
    below += key < bounds.low;
    above += key > bounds.high;
  }
  return {below, above};
}

// Where the next items below, between and above bounds are put.
template <class Item>
struct Next {
  Item* at[3];
};

template <class Key, class Item>
void PutAbout(const Item* items, int64_t n, Bounds<Key> bounds, Next<Item>& next) {
  Item *low = next.at[0], *between = next.at[1], *high = next.at[2];
  for (int64_t i = 0; i < n; ++i) {
    const Item item = items[i];
    const Key key = KeyOf(item);
    // Computes masks: the compiler makes conditions branches, which would be mispredicted.
    const int64_t below = key < bounds.low, above = key > bounds.high;
    between[((low - between) & -below) + ((high - between) & -above)] = item;
    low += below;
    high += above;
    between += 1 - below - above;
  }
  next = {low, between, high};
}

#ifdef __AVX2__
#define WEFT_PACKS

// The same for keys of 32 or 64 bits, in vectors of eight words. The items of a block are written
// to separate memory first, since each vector is packed to the front.
template <class Key>
__attribute__((target("avx2,popcnt"))) void PackAbout(const Key* items, int64_t n, Bounds<Key> bounds,
                                                      Next<Key>& next) {
  constexpr int kWords = sizeof(Key) / 4;
  typedef Key Keys __attribute__((vector_size(32)));
  const auto find = [](auto mask) -> uint32_t {  // a bit for each 32-bit word of the mask
    return _mm256_movemask_ps((__m256)mask);
  };
  using Signed = std::make_signed_t<Key>;
  typedef Signed Numbers __attribute__((vector_size(32)));  // AVX2 compares signed only
  const Signed low = bounds.low ^ kHighest<Key>, high = bounds.high ^ kHighest<Key>;
  Key packed[3][kBlock + 8];
  int64_t counts[3] = {}, i = 0;
  for (; i + 8 / kWords <= n; i += 8 / kWords) {
    Keys x;
    std::memcpy(&x, items + i, sizeof(x));
    const Numbers y = (Numbers)(x ^ kHighest<Key>);
    const uint32_t below = find(low > y), above = find(y > high);
    const uint32_t sets[3] = {below, ~(below | above) & 255, above};
    for (int part = 0; part < 3; ++part) {
      int64_t numbers;
      std::memcpy(&numbers, kOrders.numbers[sets[part]], sizeof(numbers));
      const __m256i lanes = _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(numbers));
      const __m256i found = _mm256_permutevar8x32_epi32((__m256i)x, lanes);
      std::memcpy(packed[part] + counts[part], &found, sizeof(found));
      counts[part] += __builtin_popcount(sets[part]) / kWords;
    }
  }
  for (int part = 0; part < 3; ++part) {
    next.at[part] = std::copy_n(packed[part], counts[part], next.at[part]);
  }
  PutAbout(items + i, n - i, bounds, next);
}

#endif

// Splits n items into those below, between and above bounds, each in their order.
template <class Key, class Item>
Counts Split(ffi::ThreadPool& pool, int64_t threads, const Source<Item>& from, Item* to, int64_t n,
             Bounds<Key> bounds) {
  const int64_t parts = std::clamp<int64_t>(n / kPiece, 1, std::min(threads, kParts));
  // Calls work(p, items, count) for blocks of the items of each part p.
  const auto for_each_block = [&](const auto& work) {
    ForEach(pool, parts, [&](int64_t p) {
      Item block[kBlock];
      const int64_t end = n * (p + 1) / parts;
      for (int64_t i = n * p / parts; i < end; i += kBlock) {
        const int64_t count = std::min(kBlock, end - i);
        work(p, from.Get(i, count, block), count);
      }
    });
  };
  Counts counts[kParts] = {}, all;
  for_each_block([&](int64_t p, const Item* items, int64_t count) {
    const Counts more = CountOutside(items, count, bounds);
    counts[p].below += more.below;
    counts[p].above += more.above;
  });
  for (int64_t p = 0; p < parts; ++p) all.below += counts[p].below, all.above += counts[p].above;
  Next<Item> next[kParts];
  int64_t below = 0, above = 0;
  for (int64_t p = 0; p < parts; ++p) {
    next[p] = {to + below, to + all.below + n * p / parts - below - above,
               to + n - all.above + above};
    below += counts[p].below;
    above += counts[p].above;
  }
  for_each_block([&](int64_t p, const Item* items, int64_t count) {
#ifdef WEFT_PACKS
    if constexpr (std::is_same_v<Item, uint32_t> || std::is_same_v<Item, uint64_t>) {
      return PackAbout(items, count, bounds, next[p]);
    }
#endif
    PutAbout(items, count, bounds, next[p]);
  });
  return all;
}

// Ranks of a row whose items have to be correct after the partition, in increasing order.
struct Places {
  const int64_t* begin;
  const int64_t* end;
  // Returns the ranks in [first, last).
  Places Within(int64_t first, int64_t last) const {
    return {std::lower_bound(begin, end, first), std::lower_bound(begin, end, last)};
  }
};

// Partitions n items about the ranks in `places` and writes them to `out`, which may be the source.
// `start` is the rank of the first item in its row. Returns false if allocation fails.
template <class Item>
bool Arrange(ffi::ThreadPool& pool, int64_t threads, const Source<Item>& from, Item* out, int64_t n,
             Places places, int64_t start = 0, int depth = kDepth, bool tight = false) {
  const bool in_place = from.items == out;
  const int64_t count = places.end - places.begin;
  if (count == 0 || n <= kShort || depth == 0) {
    if (!in_place) from.make(from.x, 0, n, out);
    if (count == 0) return true;
    if (n <= kShort) {
      SortByInsertion(out, n, n * n);
    } else {
      const auto comes_first = [](const Item& x, const Item& y) { return KeyOf(x) < KeyOf(y); };
      std::make_heap(out, out + n, comes_first);
      std::sort_heap(out, out + n, comes_first);
    }
    return true;
  }
  const auto bounds = FindBounds(from, n, places.begin[count / 2] - start, tight);
  Counts counts;
  if (in_place) {
    const auto room = Allocate<Item>(n);
    if (!room) return false;
    counts = Split(pool, threads, from, room.get(), n, bounds);
    std::copy_n(room.get(), n, out);
  } else {
    counts = Split(pool, threads, from, out, n, bounds);
  }
  const int64_t ends[] = {0, counts.below, n - counts.above, n};
  for (int part = 0; part < 3; ++part) {
    const int64_t i = ends[part], size = ends[part + 1] - i;
    const bool equal = part == 1 && bounds.low == bounds.high;
    const Places within = equal ? Places{} : places.Within(start + i, start + i + size);
    const Source<Item> found{out + i};
    if (!Arrange(pool, threads, found, out + i, size, within, start + i, depth - 1, size > n / 2)) {
      return false;
    }
  }
  return true;
}

// --- rows --------------------------------------------------------------------------------------

// Makes items from the elements of a kind.
template <class Kind, class Bits = typename Kind::Bits>
void MakeKeys(const void* x, int64_t begin, int64_t n, Bits* keys) {
  const Bits* const from = static_cast<const Bits*>(x) + begin;
  for (int64_t i = 0; i < n; ++i) keys[i] = Kind::EncodeEach(from[i]);
}

// A key and its original index, as one integer if that is wide enough.
template <class Kind, class Bits = typename Kind::Bits>
using WithPlace = std::conditional_t<sizeof(Bits) <= 4, uint64_t,
                                     std::conditional_t<sizeof(Bits) == 8, Wide, Placed<Bits>>>;

template <class Kind, class Item = WithPlace<Kind>>
void MakePlaced(const void* x, int64_t begin, int64_t n, Item* items) {
  using Bits = typename Kind::Bits;
  const Bits* const from = static_cast<const Bits*>(x) + begin;
  for (int64_t i = 0; i < n; ++i) {
    Bits key;
    if constexpr (Kind::kIsReal) {
      key = Kind::EncodeEach(from[i]);  // faster: it has no condition on the element
    } else {
      key = Kind::Key(from[i]);
    }
    const uint32_t place = begin + i;
    if constexpr (std::is_same_v<Item, KeyType<Item>>) {
      items[i] = Item{key} << sizeof(Item) * 4 | place;
    } else {
      items[i] = {key, place};
    }
  }
}

template <class Item>
uint32_t PlaceOf(const Item& item) {
  if constexpr (std::is_same_v<Item, KeyType<Item>>) {
    return static_cast<uint32_t>(item);
  } else {
    return item.place;
  }
}

// Partitions the elements x of a row about the ranks in `places` and writes the elements, or their
// original indices if `want_places`. Returns false if allocation fails.
template <class Kind>
bool PartitionRow(ffi::ThreadPool& pool, int64_t threads, const void* x, int64_t n, Places places,
                  bool want_places, void* out) {
  using Bits = typename Kind::Bits;
  const auto* const from = static_cast<const Bits*>(x);
  auto* const y = static_cast<Bits*>(out);
  if constexpr (Kind::kIsReal) {
    if (!want_places) {
      const Source<Bits> keys{nullptr, x, MakeKeys<Kind>};
      if (!Arrange(pool, threads, keys, y, n, places)) return false;
      for (int64_t i = 0; i < n; ++i) y[i] = Kind::DecodeEach(y[i]);
      return true;
    }
  }
  using Item = WithPlace<Kind>;
  const auto items = Allocate<Item>(n);
  const Source<Item> placed{nullptr, x, MakePlaced<Kind>};
  if (!items || !Arrange(pool, threads, placed, items.get(), n, places)) return false;
  auto* const found = static_cast<uint32_t*>(out);
  for (int64_t i = 0; i < n; ++i) {
    const uint32_t place = PlaceOf(items[i]);
    if (want_places) found[i] = place;
    else y[i] = from[place];
  }
  return true;
}

// Partitions the rows of x about the ranks in `kth`. Ranks outside of the row are ignored.
ffi::Error Partition(ffi::ThreadPool pool, bool want_places, ffi::AnyBuffer x,
                     ffi::Buffer<ffi::S32> kth, ffi::Result<ffi::AnyBuffer> result) {
  const auto partition =
      VisitKind(x.element_type(), [](auto kind) { return &PartitionRow<decltype(kind)>; });
  Leading leading;
  Size length, places;
  if (partition == nullptr || !Fits(x, leading, length) || !Fits(kth, leading, places) ||
      !Fits(*result, leading, length) || length >= int64_t{1} << 31 ||
      !(want_places ? result->element_type() == ffi::S32 : AreAlike(x, *result))) {
    return ffi::Error::InvalidArgument(
        "operands must be [.., n] with an order and n less than 2**31, and [.., places], and the result "
        "like the former, or of i32 if it is for places");
  }
  const int64_t n = length, m = places, rows = leading.count();
  const int64_t size = ffi::ByteWidth(x.element_type());
  if (n == 0 || rows == 0) return ffi::Error::Success();
  const int64_t together = std::max<int64_t>(1, kPiece / n);  // rows of one piece of work
  const int64_t threads = std::max<int64_t>(1, pool.num_threads() / rows);
  std::atomic<bool> failed{false};
  ForEach(pool, (rows + together - 1) / together, [&](int64_t piece) {
    const auto chosen = Allocate<int64_t>(std::max<int64_t>(m, 1));
    if (!chosen) failed = true;
    for (int64_t r = piece * together; r < std::min(rows, (piece + 1) * together); ++r) {
      if (failed) return;
      const int32_t* const wanted = kth.typed_data() + r * m;
      int64_t* const end = std::copy_if(wanted, wanted + m, chosen.get(),
                                        [=](int32_t k) { return k >= 0 && k < n; });
      std::sort(chosen.get(), end);
      const char* const in = static_cast<const char*>(x.untyped_data()) + r * n * size;
      char* const out = static_cast<char*>(result->untyped_data()) + r * n * (want_places ? 4 : size);
      if (!partition(pool, threads, in, n, {chosen.get(), end}, want_places, out)) failed = true;
    }
  });
  return failed ? OutOfMemory() : ffi::Error::Success();
}

}  // namespace
}  // namespace weft

XLA_FFI_DEFINE_HANDLER_SYMBOL(weft_partition, weft::Partition,
                              xla::ffi::Ffi::Bind()
                                  .Ctx<xla::ffi::ThreadPool>()
                                  .Attr<bool>("want_places")
                                  .Arg<xla::ffi::AnyBuffer>()
                                  .Arg<xla::ffi::Buffer<xla::ffi::S32>>()
                                  .Ret<xla::ffi::AnyBuffer>());
