// Stable sorting along the last axis, of several arrays by the first of them: radix sort.
//
// Each element has a key, an unsigned integer whose order is that of the elements: floats as numbers,
// -0 equal to 0, NaN last. Digits of the keys, the lowest first, are counted and the elements put in
// their order (Knuth, The Art of Computer Programming 3, 5.2.5); digits that are all equal are
// skipped. Where the upper digits alone set nearly all elements apart, as of random integers, the lower
// ones are skipped too, and insertion ends the work. Rows that are short are sorted by insertion. A
// long row is first cut into buckets by its highest digit, which threads sort side by side. What is its
// own key is sorted by vectors where the machine has AVX-512 (vector_sort.h).

#include <numeric>
#include <string>
#include <utility>

#include "common.h"
#include "vector_sort.h"

namespace weft {
namespace {

constexpr int64_t kShort = 48;      // rows up to this length are sorted by insertion
constexpr int64_t kLong = 1 << 11;  // from this length on digits have 11 bits, else 8
constexpr int64_t kHuge = 1 << 17;  // from this length on a row is cut into buckets,
constexpr int64_t kBucket = 1 << 10;  // of about this length where keys are at random
constexpr int64_t kPlaced = 1 << 8;   // up to this length keys and their places are sorted by vectors

// --- keys --------------------------------------------------------------------------------------

template <class U>
constexpr U kHighest = U{1} << (sizeof(U) * 8 - 1);

template <class U>
struct Unsigned {
  using Bits = U;
  static constexpr bool kIsFloat = false;
  static U Key(U x) { return x; }
  static U Encode(U x) { return x; }
  static U Decode(U key) { return key; }
};

template <class U>
struct Signed {
  using Bits = U;
  static constexpr bool kIsFloat = false;
  static U Key(U x) { return x ^ kHighest<U>; }
  static U Encode(U x) { return x ^ kHighest<U>; }
  static U Decode(U key) { return key ^ kHighest<U>; }
};

// A float with this many bits of mantissa.
template <class U, int kMantissa>
struct Float {
  using Bits = U;
  static constexpr bool kIsFloat = true;
  static constexpr U kInfinity = (kHighest<U> - 1) >> kMantissa << kMantissa;
  static U Key(U x) {
    const U magnitude = x & (kHighest<U> - 1);
    if (magnitude > kInfinity) return ~U{0};  // NaN
    if (magnitude == 0) return kHighest<U>;
    return Encode(x);
  }
  // The key of all but NaN and -0, which Decode takes back.
  static U Encode(U x) { return static_cast<U>(x & kHighest<U> ? ~x : x | kHighest<U>); }
  static U Decode(U key) { return static_cast<U>(key & kHighest<U> ? key ^ kHighest<U> : ~key); }
  static bool IsPlain(U x) {
    return ((x & (kHighest<U> - 1)) <= kInfinity) & (x != kHighest<U>);
  }
};

std::atomic<bool> by_vectors{HasVectors()};

// The key of an item that is one itself.
struct Itself {
  template <class Key>
  Key operator()(Key key) const {
    return key;
  }
};

// --- sorting one row ---------------------------------------------------------------------------

// Sorts n items by key(item) by insertion, unless it takes more moves than `most`.
template <class Key, class Item, class KeyOf>
bool SortByInsertion(Item* a, int64_t n, int64_t most, const KeyOf& key) {
  Key last = key(a[0]);
  for (int64_t i = 1; i < n; ++i) {
    const Item item = a[i];
    const Key k = key(item);
    if (last <= k) {
      last = k;
      continue;
    }
    int64_t j = i;
    for (; j > 0 && key(a[j - 1]) > k; --j) a[j] = a[j - 1];
    a[j] = item;
    most -= i - j;
    if (most < 0) return false;
  }
  return true;
}

// How many of the lowest digits need no pass: as if digits were independent, and each as often its
// commonest value as it can be, the others leave few elements beside an equal one.
template <int kDigits, int kBuckets>
int CountNeedless(const uint32_t (&counts)[kDigits][kBuckets], int64_t n) {
  double together = n;
  int d = kDigits;
  while (d > 0 && together > 0.03) {
    --d;
    together *= static_cast<double>(*std::max_element(counts[d], counts[d] + kBuckets)) / n;
  }
  return d;
}

// Sorts n items by key(item), of type Key, in `a`, with room for as many in `b`; gives the one of
// the two that holds the result. `by_all` digits, if the upper ones were tried in vain.
template <int kDigit, class Key, class Item, class KeyOf>
Item* SortByDigits(Item* a, Item* b, int64_t n, const KeyOf& key, bool by_all = false) {
  constexpr int kDigits = (sizeof(Key) * 8 + kDigit - 1) / kDigit;
  constexpr int kBuckets = 1 << kDigit;
  uint32_t counts[kDigits][kBuckets] = {};
  bool sorted = true;
  Key last = 0;
  for (int64_t i = 0; i < n; ++i) {
    const Key k = key(a[i]);
    sorted &= last <= k;
    last = k;
    for (int d = 0; d < kDigits; ++d) ++counts[d][(k >> (d * kDigit)) & (kBuckets - 1)];
  }
  if (sorted) return a;
  const int first = by_all ? 0 : CountNeedless(counts, n);
  for (int d = first; d < kDigits; ++d) {
    uint32_t* count = counts[d];
    const int shift = d * kDigit;
    if (count[(key(a[0]) >> shift) & (kBuckets - 1)] == n) continue;
    uint32_t start = 0;
    for (int i = 0; i < kBuckets; ++i) {
      const uint32_t size = count[i];
      count[i] = start;
      start += size;
    }
    for (int64_t i = 0; i < n; ++i) b[count[(key(a[i]) >> shift) & (kBuckets - 1)]++] = a[i];
    std::swap(a, b);
  }
  if (first > 0 && !SortByInsertion<Key>(a, n, n, key)) {
    return SortByDigits<kDigit, Key>(a, b, n, key, true);  // equal keys are in their order still
  }
  return a;
}

// Sorts n items as SortByDigits does, in the way that is quickest for so many.
template <class Key, class Item, class KeyOf>
Item* SortItems(Item* a, Item* b, int64_t n, const KeyOf& key) {
  if constexpr (std::is_same_v<KeyOf, Itself> && sizeof(Key) >= 4) {
    if (by_vectors) {
      SortByVectors(a, b, n, [&](Key* x, Key* y, int64_t m) {
        return SortByDigits<8, Key>(x, y, m, key);
      });
      return a;
    }
  }
  if (n > kShort) {
    const bool wide = n >= kLong && sizeof(Key) >= 4;
    return wide ? SortByDigits<11, Key>(a, b, n, key) : SortByDigits<8, Key>(a, b, n, key);
  }
  SortByInsertion<Key>(a, n, n * n, key);
  return a;
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

// Sorts a long row: its items are put into buckets by the highest bits in which keys differ, and each
// bucket is sorted by itself, which a core's own caches hold.
template <class Key, class Item, class Load, class KeyOf, class Store>
bool SortByBuckets(const Row& row, Item* a, Item* b, const Load& load, const KeyOf& key,
                   const Store& store) {
  constexpr int kMost = 1 << 11;
  struct Part {
    Key differing;
    bool sorted;
    uint32_t places[kMost];  // how many items of the part a bucket has, then where the next is put
  };
  const int64_t n = row.n;
  const auto parts = Allocate<Part>(row.threads);
  if (!parts) return false;
  const Key some = key(load(0));
  row.ForEachPart([&](int64_t p, int64_t begin, int64_t end) {
    Key differing = 0, last = key(load(std::max<int64_t>(begin - 1, 0)));
    bool sorted = true;
    for (int64_t i = begin; i < end; ++i) {
      const Item item = load(i);
      const Key k = key(item);
      differing |= k ^ some;
      sorted &= last <= k;
      last = k;
      a[i] = item;
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
    for (int64_t i = 0; i < n; ++i) store(i, a[i]);
    return true;
  }
  int64_t buckets = 1;
  while (buckets < kMost && buckets * kBucket < n) buckets *= 2;
  int shift = 0;
  while (differing >> shift >= static_cast<Key>(buckets - 1) + 1) ++shift;
  const auto bucket_of = [=](const Item& item) { return (key(item) >> shift) & (buckets - 1); };
  row.ForEachPart([&](int64_t p, int64_t begin, int64_t end) {
    uint32_t* const counts = parts[p].places;
    std::fill(counts, counts + buckets, 0);
    for (int64_t i = begin; i < end; ++i) ++counts[bucket_of(a[i])];
  });
  uint32_t start = 0;
  for (int64_t i = 0; i < buckets; ++i) {
    for (int64_t p = 0; p < row.threads; ++p) start += std::exchange(parts[p].places[i], start);
  }
  row.ForEachPart([&](int64_t p, int64_t begin, int64_t end) {
    uint32_t* const next = parts[p].places;
    for (int64_t i = begin; i < end; ++i) b[next[bucket_of(a[i])]++] = a[i];
  });
  const uint32_t* const ends = parts[row.threads - 1].places;
  ForEach(row.pool, buckets, [&](int64_t i) {
    const int64_t begin = i > 0 ? ends[i - 1] : 0, size = ends[i] - begin;
    if (size == 0) return;
    const Item* const found = SortItems<Key>(b + begin, a + begin, size, key);
    for (int64_t j = 0; j < size; ++j) store(begin + j, found[j]);
  });
  return true;
}

// Sorts the items load(i) by key(item) and calls store(i, item) for each; false if there is no memory.
template <class Key, class Item, class Load, class KeyOf, class Store>
bool SortRow(const Row& row, Item* a, Item* b, const Load& load, const KeyOf& key,
             const Store& store) {
  if (row.n >= kHuge && sizeof(Key) > 1) {
    return SortByBuckets<Key>(row, a, b, load, key, store);
  }
  for (int64_t i = 0; i < row.n; ++i) a[i] = load(i);
  const Item* const found = SortItems<Key>(a, b, row.n, key);
  for (int64_t i = 0; i < row.n; ++i) store(i, found[i]);
  return true;
}

// The elements of one row in order.
template <class Kind>
bool SortElements(const Row& row, const void* x, void* out, void* room) {
  using Bits = typename Kind::Bits;
  const Bits* const from = static_cast<const Bits*>(x);
  Bits* const y = static_cast<Bits*>(out);
  Bits* const other = static_cast<Bits*>(room);
  if constexpr (Kind::kIsFloat) {
    std::atomic<bool> all_plain{true};
    row.ForEachPart([&](int64_t, int64_t begin, int64_t end) {
      bool plain = true;
      for (int64_t i = begin; i < end; ++i) plain &= Kind::IsPlain(from[i]);
      if (!plain) all_plain = false;
    });
    if (!all_plain) {
      return SortRow<Bits>(
          row, y, other, [=](int64_t i) { return from[i]; },
          [](Bits bits) { return Kind::Key(bits); }, [=](int64_t i, Bits bits) { y[i] = bits; });
    }
  }
  // Keys in place of elements, which need not be made each time.
  return SortRow<Bits>(
      row, y, other, [=](int64_t i) { return Kind::Encode(from[i]); }, Itself(),
      [=](int64_t i, Bits key) { y[i] = Kind::Decode(key); });
}

template <class Key>
struct Placed {
  Key key;
  uint32_t place;
};

// Sorts a row by keys of 32 bits, key(i), by vectors of these and where they stand; store(i, key, j) is
// called for the i-th in order, which was the j-th.
template <class KeyAt, class Store>
bool SortWithPlaces(const Row& row, void* room, const KeyAt& key, const Store& store) {
  uint64_t* const items = static_cast<uint64_t*>(room);
  return SortRow<uint64_t>(
      row, items, items + row.n, [=](int64_t i) { return uint64_t{key(i)} << 32 | i; }, Itself(),
      [=](int64_t i, uint64_t item) { store(i, item >> 32, static_cast<uint32_t>(item)); });
}

// Reorders the places of one row by a key: element i of it is x[i * stride].
template <class Kind>
bool SortPlaces(const Row& row, const void* x, int64_t stride, uint32_t* places, bool in_order,
                void* room) {
  using Bits = typename Kind::Bits;
  using Item = Placed<Bits>;
  const Bits* const values = static_cast<const Bits*>(x);
  if constexpr (sizeof(Bits) == 4) {
    if (in_order && by_vectors && row.n <= kPlaced) {
      return SortWithPlaces(
          row, room, [=](int64_t i) { return Kind::Key(values[i * stride]); },
          [=](int64_t i, uint32_t, uint32_t j) { places[i] = j; });
    }
  }
  Item* const items = static_cast<Item*>(room);
  return SortRow<Bits>(
      row, items, items + row.n,
      [=](int64_t i) { return Item{Kind::Key(values[places[i] * stride]), places[i]}; },
      [](const Item& item) { return item.key; },
      [=](int64_t i, const Item& item) { places[i] = item.place; });
}

// Sorts n keys and what of 4 bytes each is carried with it: as a permutation at random does.
bool SortPairs(const Row& row, const void* keys, const void* carried, void* out, void* out_carried,
               void* room) {
  using Item = Placed<uint32_t>;
  Item* const items = static_cast<Item*>(room);
  const auto* const from = static_cast<const uint32_t*>(keys);
  const auto* const values = static_cast<const uint32_t*>(carried);
  auto* const y = static_cast<uint32_t*>(out);
  auto* const z = static_cast<uint32_t*>(out_carried);
  if (by_vectors && row.n <= kPlaced) {
    return SortWithPlaces(
        row, room, [=](int64_t i) { return from[i]; },
        [=](int64_t i, uint32_t key, uint32_t j) { y[i] = key, z[i] = values[j]; });
  }
  return SortRow<uint32_t>(
      row, items, items + row.n, [=](int64_t i) { return Item{from[i], values[i]}; },
      [](const Item& item) { return item.key; },
      [=](int64_t i, const Item& item) { y[i] = item.key, z[i] = item.place; });
}

template <class T>
void Permute(const void* x, void* out, const uint32_t* places, int64_t n) {
  const T* const values = static_cast<const T*>(x);
  T* const y = static_cast<T*>(out);
  for (int64_t i = 0; i < n; ++i) y[i] = values[places[i]];
}

void PermuteBytes(const void* x, void* out, const uint32_t* places, int64_t n, int64_t size) {
  struct Wide {
    uint64_t words[2];
  };
  switch (size) {
    case 1: return Permute<uint8_t>(x, out, places, n);
    case 2: return Permute<uint16_t>(x, out, places, n);
    case 4: return Permute<uint32_t>(x, out, places, n);
    case 8: return Permute<uint64_t>(x, out, places, n);
    default: return Permute<Wide>(x, out, places, n);
  }
}

// --- dtypes ------------------------------------------------------------------------------------

struct Sorter {
  bool (*elements)(const Row&, const void*, void*, void*);
  bool (*places)(const Row&, const void*, int64_t, uint32_t*, bool, void*);
  int64_t room;  // bytes that `places` needs for an element
};

template <class Kind>
constexpr Sorter kSorter = {SortElements<Kind>, SortPlaces<Kind>,
                            2 * sizeof(Placed<typename Kind::Bits>)};

// Of a complex dtype it is that of its parts.
const Sorter* FindSorter(ffi::DataType dtype) {
  switch (dtype) {
    case ffi::PRED:
    case ffi::U8: return &kSorter<Unsigned<uint8_t>>;
    case ffi::U16: return &kSorter<Unsigned<uint16_t>>;
    case ffi::U32: return &kSorter<Unsigned<uint32_t>>;
    case ffi::U64: return &kSorter<Unsigned<uint64_t>>;
    case ffi::S8: return &kSorter<Signed<uint8_t>>;
    case ffi::S16: return &kSorter<Signed<uint16_t>>;
    case ffi::S32: return &kSorter<Signed<uint32_t>>;
    case ffi::S64: return &kSorter<Signed<uint64_t>>;
    case ffi::F16: return &kSorter<Float<uint16_t, 10>>;
    case ffi::BF16: return &kSorter<Float<uint16_t, 7>>;
    case ffi::F32:
    case ffi::C64: return &kSorter<Float<uint32_t, 23>>;
    case ffi::F64:
    case ffi::C128: return &kSorter<Float<uint64_t, 52>>;
    default: return nullptr;
  }
}

bool IsComplex(ffi::DataType dtype) { return dtype == ffi::C64 || dtype == ffi::C128; }

// --- the handler -------------------------------------------------------------------------------

struct Operand {
  const char* in;
  char* out;
  int64_t size;  // bytes of an element
  bool complex;
  const Sorter* sorter;
};

ffi::Error Sort(ffi::ThreadPool pool, int64_t num_keys, ffi::RemainingArgs args,
                ffi::RemainingRets rets) {
  std::vector<Operand> operands;
  int64_t n = 0, rows = 0, room = 0;
  for (size_t i = 0; i < args.size(); ++i) {
    auto x = args.get<ffi::AnyBuffer>(i);
    auto y = rets.get<ffi::AnyBuffer>(i);
    if (!x.has_value() || !y.has_value() || x->dimensions().size() == 0) {
      return ffi::Error::InvalidArgument("weft.sort: operands must be arrays");
    }
    const auto dims = x->dimensions();
    n = dims.back();
    if (n == 0 || x->element_count() == 0) return ffi::Error::Success();
    rows = x->element_count() / n;
    const Sorter* sorter = FindSorter(x->element_type());
    if (static_cast<int64_t>(i) < num_keys) {
      if (sorter == nullptr) return ffi::Error::InvalidArgument("weft.sort: no order of a dtype");
      room = std::max(room, sorter->room);
    }
    operands.push_back({static_cast<const char*>(x->untyped_data()),
                        static_cast<char*>((*y)->untyped_data()),
                        static_cast<int64_t>(x->size_bytes() / x->element_count()),
                        IsComplex(x->element_type()), sorter});
  }
  if (n >= int64_t{1} << 32) return ffi::Error::InvalidArgument("weft.sort: the axis is too long");

  const bool pairs = operands.size() == 2 && num_keys == 1 && operands[1].size == 4 &&
                     operands[0].sorter == &kSorter<Unsigned<uint32_t>>;
  const bool alone = operands.size() == 1 && !operands[0].complex;
  const int64_t bytes = alone ? operands[0].size : room + sizeof(uint32_t);
  const int64_t together = std::max<int64_t>(1, kPiece / n);  // rows of one piece of work
  const int64_t threads = n < kHuge ? 1 : std::max<int64_t>(1, pool.num_threads() / rows);
  const Row row{pool, n, threads};
  // Sorts row r; false if there is no memory.
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
    bool in_order = true;
    const auto sort_by = [&](const Operand& x, const char* from) {
      const int64_t stride = x.complex ? 2 : 1;
      return x.sorter->places(row, from, stride, places, std::exchange(in_order, false), memory);
    };
    for (int64_t k = num_keys - 1; k >= 0; --k) {
      const Operand& x = operands[k];
      if (x.complex && !sort_by(x, in(x) + x.size / 2)) return false;
      if (!sort_by(x, in(x))) return false;
    }
    for (const Operand& x : operands) PermuteBytes(in(x), out(x), places, n, x.size);
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
  return failed ? OutOfMemory("sort") : ffi::Error::Success();
}

}  // namespace
}  // namespace weft

// Has sorts go by vectors, or by digits alone, for tests; gives whether they do from now on.
extern "C" bool weft_sort_by_vectors(bool wanted) {
  return weft::by_vectors = wanted && weft::HasVectors();
}

XLA_FFI_DEFINE_HANDLER_SYMBOL(weft_sort, weft::Sort,
                              xla::ffi::Ffi::Bind()
                                  .Ctx<xla::ffi::ThreadPool>()
                                  .Attr<int64_t>("num_keys")
                                  .RemainingArgs()
                                  .RemainingRets());
