// Stable sorting along the last axis, of several arrays by the first of them: radix sort.
//
// The digits of the elements' keys (keys.h) are processed from the lowest to the highest: they are
// counted, and the items are moved to their places (Knuth, The Art of Computer Programming 3,
// 5.2.5). Digits that are equal in all keys are skipped. If the upper digits order nearly all
// elements, as with random integers, the lower digits are skipped as well, and insertion sort
// finishes. Short rows are sorted by insertion. A long row is first split into buckets by its
// highest digit, and threads sort the buckets. Elements that are their own keys are sorted with
// vector instructions (vector_sort.h).

#include <numeric>
#include <utility>
#include <vector>

#include "common.h"
#include "keys.h"
#include "vector_sort.h"

namespace weft {
namespace {

constexpr int64_t kShort = 48;      // rows up to this length are sorted by insertion
constexpr int64_t kLong = 1 << 11;  // from this length on digits have 11 bits, else 8
constexpr int64_t kHuge = 1 << 17;  // from this length on a row is cut into buckets,
constexpr int64_t kBucket = 1 << 10;  // of about this length where keys are at random

// Lower digits are left to insertion if fewer items than this, on the average, share the upper ones.
constexpr double kTogether = 0.5;
constexpr int kWidest = 11;  // bits of a digit at most

std::atomic<bool> by_vectors{HasVectors()};
// Up to this length keys and their places are sorted by vectors.
const int64_t kPlaced = HasWideVectors() ? 1 << 8 : 1 << 11;

// --- sorting one row ---------------------------------------------------------------------------

// Returns how many of the lowest digits need no pass, because the upper digits leave few elements
// equal. The estimate assumes independent digits, and takes the most frequent value of each.
template <int kDigits, int kBuckets>
int CountNeedless(const uint32_t (&counts)[kDigits][kBuckets], int64_t n) {
  double together = n;
  int d = kDigits;
  while (d > 0 && together > kTogether) {
    --d;
    together *= static_cast<double>(*std::max_element(counts[d], counts[d] + kBuckets)) / n;
  }
  return d;
}

// Sorts n items in `a`; `b` is scratch memory of the same size. Returns the one of the two that
// holds the result. `by_all` uses all digits, for a row that the upper digits do not order.
template <int kDigit, class Item>
Item* SortByDigits(Item* a, Item* b, int64_t n, bool by_all = false) {
  using Key = KeyType<Item>;
  constexpr int kDigits = (sizeof(Key) * 8 + kDigit - 1) / kDigit;
  constexpr int kBuckets = 1 << kDigit;
  uint32_t counts[kDigits][kBuckets] = {};
  bool sorted = true;
  Key last = 0;
  for (int64_t i = 0; i < n; ++i) {
    const Key key = KeyOf(a[i]);
    sorted &= last <= key;
    last = key;
    for (int d = 0; d < kDigits; ++d) ++counts[d][(key >> (d * kDigit)) & (kBuckets - 1)];
  }
  if (sorted) return a;
  const int first = by_all ? 0 : CountNeedless(counts, n);
  for (int d = first; d < kDigits; ++d) {
    uint32_t* count = counts[d];
    const int shift = d * kDigit;
    if (count[(KeyOf(a[0]) >> shift) & (kBuckets - 1)] == n) continue;
    uint32_t start = 0;
    for (int i = 0; i < kBuckets; ++i) {
      const uint32_t size = count[i];
      count[i] = start;
      start += size;
    }
    for (int64_t i = 0; i < n; ++i) b[count[(KeyOf(a[i]) >> shift) & (kBuckets - 1)]++] = a[i];
    std::swap(a, b);
  }
  if (first > 0 && !SortByInsertion(a, n, n)) {
    return SortByDigits<kDigit>(a, b, n, true);  // equal keys are in their order still
  }
  return a;
}

// Sorts n items as SortByDigits does, with the method that is fastest for this n. `alike` says that
// the highest digits are equal, so that few passes are left.
template <class Item>
Item* SortItems(Item* a, Item* b, int64_t n, bool alike = false) {
  constexpr int kSize = sizeof(KeyType<Item>);
  if constexpr (std::is_same_v<Item, KeyType<Item>> && (kSize == 4 || kSize == 8)) {
    if (by_vectors && (!alike || n < kLong || HasWideVectors())) {
      SortByVectors(a, b, n, [](Item* x, Item* y, int64_t m) { return SortByDigits<8>(x, y, m); });
      return a;
    }
  }
  if (n > kShort) return n >= kLong && kSize >= 4 ? SortByDigits<11>(a, b, n) : SortByDigits<8>(a, b, n);
  SortByInsertion(a, n, n * n);
  return a;
}

// Sorts n items whose keys differ only below bit `shift`: by one digit with about n values, and then by
// insertion, which takes few moves if keys are random.
template <class Item>
Item* SortScattered(Item* a, Item* b, int64_t n, int shift) {
  int bits = 1;
  while (bits < kWidest && int64_t{1} << bits < n) ++bits;
  if (n <= kShort || n > int64_t{2} << kWidest || bits > shift) return SortItems(a, b, n, true);
  const int64_t buckets = int64_t{1} << bits;
  const auto digit = [=](const Item& x) { return (KeyOf(x) >> (shift - bits)) & (buckets - 1); };
  uint32_t places[1 << kWidest];
  std::fill(places, places + buckets, 0);
  for (int64_t i = 0; i < n; ++i) ++places[digit(a[i])];
  uint32_t start = 0;
  for (int64_t i = 0; i < buckets; ++i) start += std::exchange(places[i], start);
  for (int64_t i = 0; i < n; ++i) b[places[digit(a[i])]++] = a[i];
  return SortByInsertion(b, n, n) ? b : SortItems(b, a, n, true);
}

// A row of n items, and how many threads may work on it.
struct Row {
  ffi::ThreadPool& pool;
  int64_t n, threads;

  // Calls work(p, begin, end) for the part of each thread.
  template <class Work>
  void ForEachPart(const Work& work) const {
    ForEach(pool, threads, [&](int64_t p) { work(p, n * p / threads, n * (p + 1) / threads); });
  }
};

// Sorts a long row of the items get(i), which may be those in `a`; `b` is scratch memory. The highest
// bits that differ between keys assign the items to buckets. Each bucket is then sorted separately and
// fits into the caches of one core.
template <class Item, class Get, class Finish>
bool SortByBuckets(const Row& row, const Get& get, Item* a, Item* b, const Finish& finish) {
  using Key = KeyType<Item>;
  constexpr int kMost = 1 << kWidest;
  struct Part {
    Key differing;
    bool sorted;
    uint32_t places[kMost];  // the count of a bucket in this part, then its next position
  };
  const int64_t n = row.n;
  const auto parts = Allocate<Part>(row.threads);
  if (!parts) return false;
  const Key some = KeyOf(get(0));
  row.ForEachPart([&](int64_t p, int64_t begin, int64_t end) {
    Key differing = 0, last = KeyOf(get(std::max<int64_t>(begin - 1, 0)));
    bool sorted = true;
    for (int64_t i = begin; i < end; ++i) {
      const Key key = KeyOf(get(i));
      differing |= key ^ some;
      sorted &= last <= key;
      last = key;
    }
    parts[p].differing = differing;
    parts[p].sorted = sorted;
  });
  Key differing = 0;
  bool sorted = true;
  for (int64_t p = 0; p < row.threads; ++p) {
    differing |= parts[p].differing;
    sorted &= parts[p].sorted;
  }
  if (sorted) {
    row.ForEachPart([&](int64_t, int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) a[i] = get(i);
    });
    finish(0, a, n);
    return true;
  }
  int64_t buckets = 1;
  while (buckets < kMost && buckets * kBucket < n) buckets *= 2;
  int shift = 0;
  while (differing >> shift >= static_cast<Key>(buckets - 1) + 1) ++shift;
  const auto bucket_of = [=](const Item& item) { return (KeyOf(item) >> shift) & (buckets - 1); };
  row.ForEachPart([&](int64_t p, int64_t begin, int64_t end) {
    uint32_t* const counts = parts[p].places;
    std::fill(counts, counts + buckets, 0);
    for (int64_t i = begin; i < end; ++i) ++counts[bucket_of(get(i))];
  });
  uint32_t start = 0;
  for (int64_t i = 0; i < buckets; ++i) {
    for (int64_t p = 0; p < row.threads; ++p) start += std::exchange(parts[p].places[i], start);
  }
  row.ForEachPart([&](int64_t p, int64_t begin, int64_t end) {
    uint32_t* const next = parts[p].places;
    for (int64_t i = begin; i < end; ++i) {
      const Item item = get(i);
      b[next[bucket_of(item)]++] = item;
    }
  });
  const uint32_t* const ends = parts[row.threads - 1].places;
  ForEach(row.pool, buckets, [&](int64_t i) {
    const int64_t begin = i > 0 ? ends[i - 1] : 0, size = ends[i] - begin;
    if (size == 0) return;
    Item *const from = b + begin, *const other = a + begin;
    if constexpr (std::is_same_v<Item, Key>) {
      finish(begin, SortItems(from, other, size, true), size);
    } else {
      finish(begin, SortScattered(from, other, size, shift), size);
    }
  });
  return true;
}

// Sorts the items in `a`. Calls finish(i, found, m) for runs of m sorted items: found[0] to found[m
// - 1] are the items of ranks i to i + m - 1. Returns false if allocation fails.
template <class Item, class Finish>
bool SortRow(const Row& row, Item* a, Item* b, const Finish& finish) {
  if (row.n >= kHuge && sizeof(KeyType<Item>) > 1) {
    return SortByBuckets(row, [=](int64_t i) { return a[i]; }, a, b, finish);
  }
  finish(0, SortItems(a, b, row.n), row.n);
  return true;
}

// The same for items that are made, get(i), with the memory of 2 n items.
template <class Get, class Item, class Finish>
bool SortMade(const Row& row, const Get& get, Item* memory, const Finish& finish) {
  Item* const other = memory + row.n;
  if (row.n >= kHuge) return SortByBuckets(row, get, memory, other, finish);
  for (int64_t i = 0; i < row.n; ++i) memory[i] = get(i);
  finish(0, SortItems(memory, other, row.n), row.n);
  return true;
}

// The elements of a kind, and their keys. This part is separate, so that the sort of keys is
// compiled once for all kinds of a size.
template <class Bits>
struct Coder {
  bool (*encode)(const Bits* x, Bits* keys, int64_t n);  // whether Decode takes all keys back
  void (*decode)(const Bits* keys, Bits* x, int64_t n);
  Bits (*key)(Bits x);
};

template <class Kind, class Bits = typename Kind::Bits>
WEFT_WIDE bool Encode(const Bits* x, Bits* keys, int64_t n) {
  Bits plain = 1;
  for (int64_t i = 0; i < n; ++i) {
    keys[i] = Kind::Key(x[i]);
    plain &= Kind::IsPlain(x[i]);
  }
  return plain != 0;
}

template <class Kind, class Bits = typename Kind::Bits>
void Decode(const Bits* keys, Bits* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) x[i] = Kind::Decode(keys[i]);
}

template <class Kind>
constexpr Coder<typename Kind::Bits> kCoder = {Encode<Kind>, Decode<Kind>, Kind::Key};

// Sorts the elements of one row, which are real.
template <class Bits>
bool SortKeys(const Row& row, const Coder<Bits>& coder, const Bits* x, Bits* y, Bits* room) {
  std::atomic<bool> plain{true};
  row.ForEachPart([&](int64_t, int64_t begin, int64_t end) {
    if (!coder.encode(x + begin, y + begin, end - begin)) plain = false;
  });
  const bool done = SortRow(row, y, room, [&](int64_t i, const Bits* keys, int64_t n) {
    coder.decode(keys, y + i, n);
  });
  if (plain || !done) return done;
  // Elements with equal keys (0 and -0, or all NaN) are put back in their original order.
  const auto find = [&](Bits key) {
    return std::lower_bound(y, y + row.n, key, [&](Bits e, Bits k) { return coder.key(e) < k; });
  };
  Bits *zero = find(kHighest<Bits>), *nan = find(static_cast<Bits>(~Bits{0}));
  for (int64_t i = 0; i < row.n; ++i) {
    const Bits key = coder.key(x[i]);
    if (key == kHighest<Bits>) *zero++ = x[i];
    if (key == static_cast<Bits>(~Bits{0})) *nan++ = x[i];
  }
  return true;
}

template <class Kind>
bool SortElements(const Row& row, const void* x, void* out, void* room) {
  using Bits = typename Kind::Bits;
  if constexpr (Kind::kIsReal) {
    return SortKeys<Bits>(row, kCoder<Kind>, static_cast<const Bits*>(x), static_cast<Bits*>(out),
                          static_cast<Bits*>(room));
  }
  return false;
}

// Sorts a row by 32-bit keys, key(i), with vectors of keys and indices. Calls store(i, key, j) for
// the i-th item in order; its original index is j.
template <class KeyAt, class Store>
bool SortWithPlaces(const Row& row, void* room, const KeyAt& key, const Store& store) {
  uint64_t* const items = static_cast<uint64_t*>(room);
  for (int64_t i = 0; i < row.n; ++i) items[i] = uint64_t{key(i)} << 32 | i;
  const uint64_t* const found = SortItems(items, items + row.n, row.n);
  for (int64_t i = 0; i < row.n; ++i) store(i, found[i] >> 32, static_cast<uint32_t>(found[i]));
  return true;
}

template <class Key>
bool SortPlaced(const Row& row, Placed<Key>* items, uint32_t* places) {
  return SortRow(row, items, items + row.n, [=](int64_t i, const Placed<Key>* found, int64_t n) {
    for (int64_t j = 0; j < n; ++j) places[i + j] = found[j].place;
  });
}

// Finds the order of a long row whose keys have few values in a small range, by counting, without
// writing items to memory. Returns true if that was possible.
template <class Key, class KeyAt>
bool CountPlaces(const Row& row, const KeyAt& key, uint32_t* places) {
  constexpr int kMost = 1 << 11;
  struct Part {
    Key least, most;
    uint32_t places[kMost];
  };
  Key least = key(0), most = least;
  const auto is_far = [&] { return static_cast<Key>(most - least) >= kMost; };
  for (int64_t i = 0; i < row.n; i += row.n / 64) {
    least = std::min(least, key(i)), most = std::max(most, key(i));
  }
  if (is_far()) return false;
  const auto parts = Allocate<Part>(row.threads);
  if (!parts) return false;
  row.ForEachPart([&](int64_t p, int64_t begin, int64_t end) {
    Key low = key(begin), high = low;
    for (int64_t i = begin; i < end; ++i) {
      const Key k = key(i);
      low = std::min(low, k), high = std::max(high, k);
    }
    parts[p].least = low, parts[p].most = high;
  });
  for (int64_t p = 0; p < row.threads; ++p) {
    least = std::min(least, parts[p].least), most = std::max(most, parts[p].most);
  }
  if (is_far()) return false;
  const int64_t count = static_cast<int64_t>(most - least) + 1;
  row.ForEachPart([&](int64_t p, int64_t begin, int64_t end) {
    uint32_t* const counts = parts[p].places;
    std::fill(counts, counts + count, 0);
    for (int64_t i = begin; i < end; ++i) ++counts[static_cast<Key>(key(i) - least)];
  });
  uint32_t start = 0;
  for (int64_t k = 0; k < count; ++k) {
    for (int64_t p = 0; p < row.threads; ++p) start += std::exchange(parts[p].places[k], start);
  }
  row.ForEachPart([&](int64_t p, int64_t begin, int64_t end) {
    uint32_t* const next = parts[p].places;
    for (int64_t i = begin; i < end; ++i) places[next[static_cast<Key>(key(i) - least)]++] = i;
  });
  return true;
}

// Sorts the indices of one row by a key, x.
template <class Kind>
bool SortPlaces(const Row& row, const void* x, uint32_t* places, bool in_order, void* room) {
  using Bits = typename Kind::Bits;
  const Bits* const values = static_cast<const Bits*>(x);
  if constexpr (sizeof(Bits) == 4) {
    if (in_order && by_vectors && row.n <= kPlaced) {
      return SortWithPlaces(
          row, room, [=](int64_t i) { return Kind::Key(values[i]); },
          [=](int64_t i, uint32_t, uint32_t j) { places[i] = j; });
    }
  }
  if constexpr (Kind::kIsReal) {
    const auto key = [=](int64_t i) { return Kind::Key(values[i]); };
    if (in_order && row.n >= kHuge && CountPlaces<Bits>(row, key, places)) return true;
  }
  auto* const items = static_cast<Placed<Bits>*>(room);
  row.ForEachPart([=](int64_t, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) items[i] = {Kind::Key(values[places[i]]), places[i]};
  });
  return SortPlaced(row, items, places);
}

// Sorts n keys and what of 4 bytes each is carried with it: as a permutation at random does.
bool SortPairs(const Row& row, const void* keys, const void* carried, void* out, void* out_carried,
               void* room) {
  const auto* const from = static_cast<const uint32_t*>(keys);
  const auto* const values = static_cast<const uint32_t*>(carried);
  auto* const y = static_cast<uint32_t*>(out);
  auto* const z = static_cast<uint32_t*>(out_carried);
  if (by_vectors && row.n <= kPlaced) {
    return SortWithPlaces(
        row, room, [=](int64_t i) { return from[i]; },
        [=](int64_t i, uint32_t key, uint32_t j) { y[i] = key, z[i] = values[j]; });
  }
  using Item = Placed<uint32_t>;
  return SortMade(
      row, [=](int64_t i) { return Item{from[i], values[i]}; }, static_cast<Item*>(room),
      [=](int64_t i, const Item* found, int64_t n) {
        for (int64_t j = 0; j < n; ++j) y[i + j] = found[j].key, z[i + j] = found[j].place;
      });
}

template <class T>
void Permute(const Row& row, const void* x, void* out, const uint32_t* places) {
  const T* const values = static_cast<const T*>(x);
  T* const y = static_cast<T*>(out);
  row.ForEachPart([=](int64_t, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) y[i] = values[places[i]];
  });
}

void PermuteBytes(const Row& row, const void* x, void* out, const uint32_t* places, int64_t size) {
  struct Wide {
    uint64_t words[2];
  };
  switch (size) {
    case 1: return Permute<uint8_t>(row, x, out, places);
    case 2: return Permute<uint16_t>(row, x, out, places);
    case 4: return Permute<uint32_t>(row, x, out, places);
    case 8: return Permute<uint64_t>(row, x, out, places);
    default: return Permute<Wide>(row, x, out, places);
  }
}

// --- dtypes ------------------------------------------------------------------------------------

struct Sorter {
  bool (*elements)(const Row&, const void*, void*, void*);
  bool (*places)(const Row&, const void*, uint32_t*, bool, void*);
  int64_t room;   // bytes that `places` needs for an element
  bool is_real;  // as `elements` needs it
};

template <class Kind>
constexpr Sorter kSorter = {SortElements<Kind>, SortPlaces<Kind>,
                            2 * sizeof(Placed<typename Kind::Bits>), Kind::kIsReal};

const Sorter* FindSorter(ffi::DataType dtype) {
  return VisitKind(dtype, [](auto kind) { return &kSorter<decltype(kind)>; });
}

// --- the handler -------------------------------------------------------------------------------

struct Operand {
  const char* in;
  char* out;
  int64_t size;  // bytes of an element
  const Sorter* sorter;
};

ffi::Error Sort(ffi::ThreadPool pool, int64_t num_keys, ffi::RemainingArgs args,
                ffi::RemainingRets rets) {
  const int64_t count = args.size();
  if (num_keys < 1 || num_keys > count || rets.size() != args.size()) {
    return ffi::Error::InvalidArgument(
        "there must be as many results as operands, and from 1 to as many keys");
  }
  std::vector<Operand> operands;
  Leading leading;
  Size length;
  int64_t room = 0;
  for (int64_t i = 0; i < count; ++i) {
    const auto x = args.get<ffi::AnyBuffer>(i);
    auto y = rets.get<ffi::AnyBuffer>(i);
    if (!x || !y || !AreAlike(*x, **y) || !Fits(*x, leading, length) || !Fits(**y, leading, length)) {
      return ffi::Error::InvalidArgument(
          "operands must have one shape, of an axis at least, and each result must be like its operand");
    }
    const Sorter* sorter = FindSorter(x->element_type());
    if (i < num_keys) {
      if (sorter == nullptr) return ffi::Error::InvalidArgument("keys must have an order");
      room = std::max(room, sorter->room);
    }
    operands.push_back({static_cast<const char*>(x->untyped_data()),
                        static_cast<char*>((*y)->untyped_data()),
                        static_cast<int64_t>(ffi::ByteWidth(x->element_type())), sorter});
  }
  const int64_t n = length, rows = leading.count();
  if (n >= int64_t{1} << 32) {
    return ffi::Error::InvalidArgument("the last axis must be shorter than 2**32");
  }
  if (n == 0 || rows == 0) return ffi::Error::Success();

  const bool pairs = operands.size() == 2 && num_keys == 1 && operands[1].size == 4 &&
                     operands[0].sorter == &kSorter<Unsigned<uint32_t>>;
  const bool alone = operands.size() == 1 && operands[0].sorter->is_real;
  const int64_t bytes = alone ? operands[0].size : room + sizeof(uint32_t);
  const int64_t together = std::max<int64_t>(1, kPiece / n);  // rows of one piece of work
  const int64_t threads = n < kHuge ? 1 : std::max<int64_t>(1, pool.num_threads() / rows);
  const Row row{pool, n, threads};
  // Sorts row r. Returns false if allocation fails.
  const auto sort = [&](int64_t r, uint64_t* memory) {
    const auto in = [&](const Operand& x) { return x.in + r * n * x.size; };
    const auto out = [&](const Operand& x) { return x.out + r * n * x.size; };
    const Operand& first = operands[0];
    if (alone) return first.sorter->elements(row, in(first), out(first), memory);
    if (pairs) {
      const Operand& second = operands[1];
      return SortPairs(row, in(first), in(second), out(first), out(second), memory);
    }
    auto* const places = reinterpret_cast<uint32_t*>(reinterpret_cast<char*>(memory) + n * room);
    std::iota(places, places + n, 0);
    for (int64_t k = num_keys - 1; k >= 0; --k) {
      const Operand& x = operands[k];
      if (!x.sorter->places(row, in(x), places, k == num_keys - 1, memory)) return false;
    }
    for (const Operand& x : operands) PermuteBytes(row, in(x), out(x), places, x.size);
    return true;
  };
  std::atomic<bool> failed{false};
  ForEach(pool, (rows + together - 1) / together, [&](int64_t piece) {
    const auto memory = Allocate<uint64_t>((n * bytes + 7) / 8);
    if (!memory) failed = true;
    for (int64_t r = piece * together; r < std::min(rows, (piece + 1) * together); ++r) {
      if (failed || !sort(r, memory.get())) failed = true;
    }
  });
  return failed ? OutOfMemory() : ffi::Error::Success();
}

}  // namespace
}  // namespace weft

// Turns vector instructions on or off, for tests. Returns true if they are on afterwards.
extern "C" bool weft_sort_by_vectors(bool wanted) {
  return weft::by_vectors = wanted && weft::HasVectors();
}

XLA_FFI_DEFINE_HANDLER_SYMBOL(weft_sort, weft::Sort,
                              xla::ffi::Ffi::Bind()
                                  .Ctx<xla::ffi::ThreadPool>()
                                  .Attr<int64_t>("num_keys")
                                  .RemainingArgs()
                                  .RemainingRets());
