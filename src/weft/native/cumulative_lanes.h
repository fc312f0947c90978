// Included once for each width of vectors: running reductions of rows, one in each lane.

template <class V>
WEFT_INLINE V Apply(Add, V x, V y) {
  return x + y;
}

template <class V>
WEFT_INLINE V Apply(Multiply, V x, V y) {
  return x * y;
}

template <class V>
WEFT_INLINE V Apply(Largest, V x, V y) {
  const V larger = x >= y ? x : y;  // y where one is NaN
  return x != x ? x : larger;
}

template <class V>
WEFT_INLINE V Apply(Smallest, V x, V y) {
  const V smaller = x <= y ? x : y;
  return x != x ? x : smaller;
}

// A vector of T as vectors of A, of the same size.
template <class A, class T>
struct Wide {
  static constexpr int64_t kParts = sizeof(A) / sizeof(T);
  using Part = typename Vector<T, kBytes / kParts>::V;
  Lanes<A> parts[kParts];

  WEFT_INLINE void Set(Lanes<T> x) {
    if constexpr (kParts == 1) {
      parts[0] = x;
    } else {
      Part halves[kParts];
      std::memcpy(halves, &x, sizeof(x));
      for (int64_t p = 0; p < kParts; ++p) parts[p] = __builtin_convertvector(halves[p], Lanes<A>);
    }
  }

  WEFT_INLINE Lanes<T> Get() const {
    if constexpr (kParts == 1) {
      return parts[0];
    } else {
      Part halves[kParts];
      for (int64_t p = 0; p < kParts; ++p) {
        halves[p] = __builtin_convertvector(parts[p], Part);
      }
      Lanes<T> x;
      std::memcpy(&x, halves, sizeof(x));
      return x;
    }
  }

  template <class Op>
  WEFT_INLINE Wide Joined(Wide x) const {
    for (int64_t p = 0; p < kParts; ++p) x.parts[p] = Apply(Op(), parts[p], x.parts[p]);
    return x;
  }
};

// Walks along rows; of so many lanes, or any if kKnown is 0.
template <class Op, class T, int64_t kKnown>
WEFT_INLINE void RunLanes(const RunJob<Op, T>& job, int64_t group) {
  using A = typename Op::template Of<T>;
  const bool reverse = job.reverse, begin = job.begin;
  A* const totals = job.totals;
  const int64_t n = job.n, lanes = kKnown ? kKnown : job.lanes, depth = kBlock / lanes;
  const int64_t first = group * kLanes<T>, used = std::min(kLanes<T>, job.rows - first);
  const int64_t stride = n * lanes;
  Lanes<T> block[kBlock];
  Wide<A, T> sums[kKnown ? kKnown : kFewLanes], next;
  A* const own = totals ? totals + first * lanes : nullptr;
  bool started = begin;
  if (begin) {
    for (int64_t j = 0; j < lanes; ++j) {
      A values[kLanes<T>] = {};
      for (int64_t row = 0; row < used; ++row) values[row] = own[row * lanes + j];
      std::memcpy(&sums[j], values, sizeof(values));
    }
  }
  for (int64_t done = 0; done < n; done += depth) {
    const int64_t count = std::min(depth, n - done), start = reverse ? n - done - count : done;
    const int64_t offset = first * stride + start * lanes;
    LoadLanes(job.x + offset, stride, count * lanes, used, block);
    for (int64_t i = 0; i < count; ++i) {
      auto* const at = block + (reverse ? count - 1 - i : i) * lanes;
      for (int64_t j = 0; j < lanes; ++j) {
        next.Set(at[j]);
        sums[j] = started ? sums[j].template Joined<Op>(next) : next;
        at[j] = sums[j].Get();
      }
      started = true;
    }
    if (!totals || begin) StoreLanes(block, stride, count * lanes, used, job.y + offset);
  }
  if (totals && !begin) {
    for (int64_t j = 0; j < lanes; ++j) {
      A values[kLanes<T>];
      std::memcpy(values, &sums[j], sizeof(values));
      for (int64_t row = 0; row < used; ++row) own[row * lanes + j] = values[row];
    }
  }
}

template <class Op, class T>
void RunGroup(const RunJob<Op, T>& job, int64_t group) {
  if (job.lanes == 1) {
    RunLanes<Op, T, 1>(job, group);
  } else if (job.lanes == 2) {
    RunLanes<Op, T, 2>(job, group);
  } else {
    RunLanes<Op, T, 0>(job, group);
  }
}

// Walks along a row of many lanes, of which it takes vectors from `first` to `last`; says how far it
// came.
template <class Op, class T>
int64_t RunStrip(const RunJob<Op, T>& job, int64_t first, int64_t last) {
  using A = typename Op::template Of<T>;
  const int64_t start = (job.reverse ? job.n - 1 : 0) * job.lanes;
  const int64_t step = job.reverse ? -job.lanes : job.lanes;
  while (last - first >= kLanes<T>) {
    Wide<A, T> sums[kStrip / kLanes<T>], next;
    const int64_t count = std::min(kStrip, last - first) / kLanes<T>;
    const T* from = job.x + start + first;
    T* to = job.y + start + first;
    for (int64_t i = 0; i < job.n; ++i, from += step, to += step) {
      for (int64_t j = 0; j < count; ++j) {
        Lanes<T> x;
        std::memcpy(&x, from + j * kLanes<T>, sizeof(x));
        next.Set(x);
        if (i) next = sums[j].template Joined<Op>(next);
        sums[j] = next;
        x = next.Get();
        std::memcpy(to + j * kLanes<T>, &x, sizeof(x));
      }
    }
    first += count * kLanes<T>;
  }
  return first;
}
