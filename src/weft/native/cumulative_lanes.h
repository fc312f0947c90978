// Included once for each width of vectors: running reductions of rows, one in each lane.

template <class V>
WEFT_INLINE V Apply(Add, V x, V y) {
  return x + y;
}

template <class V>
WEFT_INLINE V Apply(Multiply, V x, V y) {
  return x * y;
}

template <bool largest, class V>
WEFT_INLINE V Apply(Extremum<largest>, V x, V y) {
  const V better = (largest ? x >= y : x <= y) ? x : y;  // y where one is NaN
  return x != x ? x : better;
}

// The type in which elements of a size are moved, whatever their dtype.
template <class T>
using Moved = std::conditional_t<sizeof(T) == 8, double, float>;

// A vector of T, stored as vectors of A of the same total size.
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

// Walks along rows side by side.
template <class Op, class T>
void RunGroup(const RunJob& job, int64_t group) {
  using M = Moved<T>;
  const int64_t n = job.n, lanes = job.lanes, depth = kBlock / lanes, stride = n * lanes;
  const int64_t first = group * kLanes<T>, used = std::min(kLanes<T>, job.rows - first);
  const int64_t step = job.reverse ? -lanes : lanes;
  Lanes<M> block[kBlock];
  Wide<typename Op::template Of<T>, T> sums[kFewLanes], next;
  for (int64_t done = 0; done < n; done += depth) {
    const int64_t count = std::min(depth, n - done);
    const int64_t start = job.reverse ? n - done - count : done, offset = first * stride + start * lanes;
    LoadLanes(job.From<M>(offset), stride, count * lanes, used, block);
    for (int64_t j = 0; j < lanes; ++j) {
      Lanes<M>* at = block + (job.reverse ? count - 1 : 0) * lanes + j;
      auto sum = sums[j];
      int64_t i = 0;
      if (done == 0) sum.Set((Lanes<T>)*at), at += step, ++i;
      for (; i < count; ++i, at += step) {
        next.Set((Lanes<T>)*at);
        sum = sum.template Joined<Op>(next);
        *at = (Lanes<M>)sum.Get();
      }
      sums[j] = sum;
    }
    StoreLanes(block, stride, count * lanes, used, job.To<M>(offset));
  }
}

// Walks along a row of many lanes, in vectors, over the lanes from `first` to `last`. Returns the
// first lane that is left.
template <class Op, class T>
int64_t RunStrip(const RunJob& job, int64_t row, int64_t first, int64_t last) {
  const int64_t step = job.reverse ? -job.lanes : job.lanes;
  const int64_t start = (row * job.n + (job.reverse ? job.n - 1 : 0)) * job.lanes;
  while (last - first >= kLanes<T>) {
    Wide<typename Op::template Of<T>, T> sums[kStrip / kLanes<T>], next;
    const int64_t count = std::min(kStrip, last - first) / kLanes<T>;
    const T* from = job.From<T>(start + first);
    T* to = job.To<T>(start + first);
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

// Adds up each lane's elements of a row from `begin` to `end`.
template <class T, class A = typename Add::Of<T>>
void AddSpan(const RunJob& job, int64_t begin, int64_t end, A* totals) {
  const int64_t lanes = job.lanes, count = kFewLanes / lanes * lanes;  // vectors at once
  Wide<A, T> sums[kFewLanes], next;
  A values[kFewLanes * kLanes<T>];
  std::fill(values, values + kFewLanes * kLanes<T>, static_cast<A>(-0.0));
  std::memcpy(sums, values, sizeof(sums));
  const T *from = job.From<T>(begin * lanes), *const to = job.From<T>(end * lanes);
  for (; from + count * kLanes<T> <= to; from += count * kLanes<T>) {
    for (int64_t j = 0; j < count; ++j) {
      Lanes<T> x;
      std::memcpy(&x, from + j * kLanes<T>, sizeof(x));
      next.Set(x);
      sums[j] = sums[j].template Joined<Add>(next);
    }
  }
  std::memcpy(values, sums, sizeof(sums));
  std::fill(totals, totals + lanes, static_cast<A>(-0.0));
  for (int64_t i = 0; i < count * kLanes<T>; ++i) totals[i % lanes] += values[i];
  for (int64_t i = 0; from + i < to; ++i) totals[i % lanes] += from[i];
}

// Computes the running sums of a row from `begin` to `end`. Consecutive parts of the row are in
// different vector lanes. `sums` holds the sums of all elements before.
template <class T, class A = typename Add::Of<T>>
void RunSpan(const RunJob& job, int64_t begin, int64_t end, A* sums) {
  using M = Moved<T>;
  const int64_t lanes = job.lanes, depth = kBlock * 4 / sizeof(T) / lanes, size = depth * lanes;
  const int64_t step = job.reverse ? -lanes : lanes, chunk = depth * kLanes<T>;
  Lanes<M> block[kBlock];
  for (; end - begin >= chunk; (job.reverse ? end : begin) += job.reverse ? -chunk : chunk) {
    const int64_t offset = (job.reverse ? end - chunk : begin) * lanes;
    LoadLanes(job.From<M>(offset), size, size, kLanes<T>, block);
    for (int64_t j = 0; j < lanes; ++j) {
      Lanes<M>* const at = block + (job.reverse ? depth - 1 : 0) * lanes + j;
      Wide<A, T> sum, next;
      sum.Set((Lanes<T>)*at);
      for (int64_t i = 1; i < depth; ++i) {
        next.Set((Lanes<T>)at[i * step]);
        sum = sum.template Joined<Add>(next);
      }
      A values[kLanes<T>];
      std::memcpy(values, &sum, sizeof(sum));
      for (int64_t k = 0; k < kLanes<T>; ++k) {
        const int64_t lane = job.reverse ? kLanes<T> - 1 - k : k;
        const A total = values[lane];
        values[lane] = sums[j];
        sums[j] += total;
      }
      std::memcpy(&sum, values, sizeof(sum));
      for (int64_t i = 0; i < depth; ++i) {
        next.Set((Lanes<T>)at[i * step]);
        sum = sum.template Joined<Add>(next);
        at[i * step] = (Lanes<M>)sum.Get();
      }
    }
    StoreLanes(block, size, size, kLanes<T>, job.To<M>(offset));
  }
  for (int64_t i = 0; i < end - begin; ++i) {
    const int64_t at = (job.reverse ? end - 1 - i : begin + i) * lanes;
    for (int64_t j = 0; j < lanes; ++j) {
      *job.To<T>(at + j) = static_cast<T>(sums[j] += static_cast<A>(*job.From<T>(at + j)));
    }
  }
}
