// Included once for each vector width, by moves.cc: moves arrays into lanes, and back.

// The lane of two vectors that becomes a lane of PairGroups' result.
template <int64_t kCount, int64_t kHalf, bool kUpper>
constexpr int Paired(int lane) {
  const int64_t from = (lane & ~kHalf) + (kUpper ? kHalf : 0);
  return static_cast<int>(lane & kHalf ? kCount + from : from);
}

// Takes the lower or upper group of each pair of groups of kHalf lanes, from x and y in turn.
template <class V, class M, int64_t kHalf, bool kUpper, int... kLane>
WEFT_INLINE V PairGroups(V x, V y, std::integer_sequence<int, kLane...>) {
  constexpr int64_t kCount = sizeof...(kLane);
#if defined(__clang__)
  return __builtin_shufflevector(x, y, Paired<kCount, kHalf, kUpper>(kLane)...);
#else
  return __builtin_shuffle(x, y, M{Paired<kCount, kHalf, kUpper>(kLane)...});
#endif
}

template <class V, class M, int64_t kCount, int64_t kHalf>
WEFT_INLINE void TransposeBy(V* x) {
  if constexpr (kHalf > 0) {
    constexpr auto lanes = std::make_integer_sequence<int, kCount>();
    for (int64_t i = 0; i < kCount; ++i) {
      if (i & kHalf) continue;
      const V low = x[i], high = x[i + kHalf];
      x[i] = PairGroups<V, M, kHalf, false>(low, high, lanes);
      x[i + kHalf] = PairGroups<V, M, kHalf, true>(low, high, lanes);
    }
    TransposeBy<V, M, kCount, kHalf / 2>(x);
  }
}

// Transposes a square of vectors, one vector for each lane.
template <class T>
WEFT_INLINE void Transpose(Lanes<T>* x) {
  TransposeBy<Lanes<T>, Lanes<Mask<T>>, kLanes<T>, kLanes<T> / 2>(x);
}

// Copies fewer elements than a vector has, without a call.
template <class T, int64_t kCount = kLanes<T> / 2>
WEFT_INLINE void CopyFew(T* to, const T* from, int64_t count) {
  if constexpr (kCount > 0) {
    if (count >= kCount) {
      T low[kCount], high[kCount];
      std::memcpy(low, from, sizeof(low));
      std::memcpy(high, from + count - kCount, sizeof(high));
      std::memcpy(to, low, sizeof(low));
      std::memcpy(to + count - kCount, high, sizeof(high));
    } else {
      CopyFew<T, kCount / 2>(to, from, count);
    }
  }
}

template <class T>
WEFT_INLINE void LoadAny(const T* from, int64_t stride, int64_t count,
                         int64_t used, Lanes<T>* to) {
  if (count < kLanes<T>) {
    const int64_t end = (used - 1) * stride + count;
    for (int64_t lane = 0; lane < kLanes<T>; ++lane) {
      const int64_t at = std::min(lane, used - 1) * stride;
      if (at + kLanes<T> <= end) {  // what belongs to the arrays that follow is not looked at
        std::memcpy(to + lane, from + at, sizeof(Lanes<T>));
      } else {
        CopyFew(reinterpret_cast<T*>(to + lane), from + at, count);
      }
    }
    Transpose<T>(to);
    return;
  }
  for (int64_t i = 0; i < count; i += kLanes<T>) {
    i = std::min(i, count - kLanes<T>);  // the last ones are written twice
    for (int64_t lane = 0; lane < kLanes<T>; ++lane) {
      const int64_t at = std::min(lane, used - 1) * stride + i;
      std::memcpy(to + i + lane, from + at, sizeof(Lanes<T>));
    }
    Transpose<T>(to + i);
  }
}

template <class T>
WEFT_INLINE void StoreAny(const Lanes<T>* from, int64_t stride, int64_t count,
                          int64_t used, T* to) {
  // Of short arrays that follow each other the next ones are written over, and stored after that.
  const int64_t covered = count >= kLanes<T> ? 0 : stride == count ? (kLanes<T> - 1) / count : used;
  const int64_t whole = std::max<int64_t>(0, used - covered);
  for (int64_t i = 0; i < count; i += kLanes<T>) {
    if (count >= kLanes<T>) i = std::min(i, count - kLanes<T>);
    Lanes<T> block[kLanes<T>];
    for (int64_t lane = 0; lane < kLanes<T>; ++lane) block[lane] = from[i + lane];
    Transpose<T>(block);
    for (int64_t lane = 0; lane < whole; ++lane) {
      std::memcpy(to + lane * stride + i, block + lane, sizeof(Lanes<T>));
    }
    for (int64_t lane = whole; lane < used; ++lane) {
      CopyFew(to + lane * stride + i, reinterpret_cast<const T*>(block + lane), count);
    }
  }
}

void LoadLanes(const float* from, int64_t stride, int64_t count, int64_t used, Lanes<float>* to) {
  LoadAny(from, stride, count, used, to);
}
void LoadLanes(const double* from, int64_t stride, int64_t count, int64_t used, Lanes<double>* to) {
  LoadAny(from, stride, count, used, to);
}
void StoreLanes(const Lanes<float>* from, int64_t stride, int64_t count, int64_t used, float* to) {
  StoreAny(from, stride, count, used, to);
}
void StoreLanes(const Lanes<double>* from, int64_t stride, int64_t count, int64_t used, double* to) {
  StoreAny(from, stride, count, used, to);
}
