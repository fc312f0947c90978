// Included once for each vector width: quicksort of unsigned integers, with the operations of V,
// such as Lanes32. WEFT_SORT names the instruction set.

// Compares lanes i and i ^ by; those with the highest bit of `by` keep the larger.
template <class V, int by, int bit>
WEFT_SORT_INLINE Vec Exchange(Vec x) {
  return V::template MinOrMax<MaskOf(bit)>(x, V::template Swap<by>(x));
}

// Sorts each vector, given that its halves form a bitonic sequence.
template <class V>
WEFT_SORT_INLINE Vec MergeLanes(Vec x) {
  if constexpr (V::kLanes > 8) x = Exchange<V, 8, 8>(x);
  if constexpr (V::kLanes > 4) x = Exchange<V, 4, 4>(x);
  x = Exchange<V, 2, 2>(x);
  return Exchange<V, 1, 1>(x);
}

template <class V>
WEFT_SORT_INLINE Vec SortLanes(Vec x) {
  x = Exchange<V, 1, 1>(x);
  x = Exchange<V, 3, 2>(x);
  x = Exchange<V, 1, 1>(x);
  if constexpr (V::kLanes > 4) {
    x = Exchange<V, 7, 4>(x);
    x = Exchange<V, 2, 2>(x);
    x = Exchange<V, 1, 1>(x);
  }
  if constexpr (V::kLanes > 8) {
    x = Exchange<V, 15, 8>(x);
    x = Exchange<V, 4, 4>(x);
    x = Exchange<V, 2, 2>(x);
    x = Exchange<V, 1, 1>(x);
  }
  return x;
}

// Sorts `count` vectors as one row.
template <class V, int count>
WEFT_SORT_INLINE void SortVectors(Vec* v) {
  if constexpr (count == 1) {
    v[0] = SortLanes<V>(v[0]);
  } else {
    constexpr int half = count / 2;
    SortVectors<V, half>(v);
    SortVectors<V, half>(v + half);
    Vec backward[half];  // the second half
#pragma GCC unroll 8
    for (int i = 0; i < half; ++i) backward[i] = V::template Swap<V::kLanes - 1>(v[count - 1 - i]);
#pragma GCC unroll 8
    for (int i = 0; i < half; ++i) {
      v[half + i] = V::Max(v[i], backward[i]);
      v[i] = V::Min(v[i], backward[i]);
    }
#pragma GCC unroll 8
    for (int stride = half / 2; stride > 0; stride /= 2) {
#pragma GCC unroll 8
      for (int i = 0; i < count; ++i) {
        if (i & stride) continue;
        const Vec x = v[i], y = v[i + stride];
        v[i] = V::Min(x, y);
        v[i + stride] = V::Max(x, y);
      }
    }
#pragma GCC unroll 8
    for (int i = 0; i < count; ++i) v[i] = MergeLanes<V>(v[i]);
  }
}

// Sorts up to `count` vectors of keys from one place into another.
template <class V, int count>
WEFT_SORT void SortFew(const typename V::Key* from, typename V::Key* to, int64_t n) {
  constexpr int kLanes = V::kLanes;
  Vec v[count];
#pragma GCC unroll 8
  for (int i = 0; i < count; ++i) v[i] = V::Load(from + i * kLanes, n - i * kLanes);
  SortVectors<V, count>(v);
#pragma GCC unroll 8
  for (int i = 0; i < count; ++i) V::Store(to + i * kLanes, n - i * kLanes, v[i]);
}

// Moves keys below `pivot` to the front; returns their number.
template <class V>
WEFT_SORT int64_t Split(const typename V::Key* from, typename V::Key* to, int64_t n,
                          typename V::Key pivot) {
  const Vec bound = V::Spread(pivot);
  int64_t low = 0, high = n, i = 0;
  const auto part = [&](int64_t count) WEFT_SORT {
    const int64_t below = V::Part(V::Load(from + i, count), bound, count, to + low, to + high);
    low += below;
    high -= count - below;
  };
  for (; i + V::kRoom <= n; i += V::kLanes) part(V::kLanes);
  if constexpr (V::kRoom == V::kLanes) {
    part(n - i);
  } else {
    for (; i < n; ++i) {
      const bool less = from[i] < pivot;
      to[less ? low : high - 1] = from[i];
      low += less;
      high -= !less;
    }
  }
  return low;
}

// Sorts n keys from `a` into `out`, which is `a` or `b`. Both are used as scratch memory. After
// `depth` bad pivots, as with an adversarial row, otherwise(a, b, n) sorts and returns the array
// with the result.
template <class V, class Otherwise>
WEFT_SORT void SortKeys(typename V::Key* a, typename V::Key* b, typename V::Key* out, int64_t n,
                          int depth, const Otherwise& otherwise) {
  using Key = typename V::Key;
  constexpr int kLanes = V::kLanes;
  while (n > 8 * kLanes) {
    if (depth-- == 0) {
      const Key* const found = otherwise(a, b, n);
      for (int64_t i = 0; i < n; ++i) out[i] = found[i];
      return;
    }
    Key some[kLanes];
    for (int i = 0; i < kLanes; ++i) some[i] = a[(2 * i + 1) * n / (2 * kLanes)];
    SortFew<V, 1>(some, some, kLanes);
    const Key pivot = some[kLanes / 2];
    int64_t low = Split<V>(a, b, n, pivot);
    if (low == 0) {  // the pivot is the minimum: its equals are in place
      if (pivot == static_cast<Key>(~Key{0})) {
        for (int64_t i = 0; i < n; ++i) out[i] = pivot;
        return;
      }
      low = Split<V>(a, b, n, pivot + 1);
      for (int64_t i = 0; i < low; ++i) out[i] = pivot;
    } else {
      SortKeys<V>(b, a, out, low, depth, otherwise);
    }
    Key* const other = a + low;
    a = b + low;
    b = other;
    out += low;
    n -= low;
  }
  if (n <= kLanes) {
    SortFew<V, 1>(a, out, n);
  } else if (n <= 2 * kLanes) {
    SortFew<V, 2>(a, out, n);
  } else if (n <= 4 * kLanes) {
    SortFew<V, 4>(a, out, n);
  } else {
    SortFew<V, 8>(a, out, n);
  }
}
