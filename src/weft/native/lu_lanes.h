// Included once for each width of vectors: matrices, one in each lane, factored and solved.

// Factors what the lanes of `a` hold.
template <class T>
WEFT_INLINE void FactorLanes(Lanes<T>* a, Lanes<Mask<T>>* places, Lanes<Mask<T>>* rows, int64_t m,
                             int64_t n) {
  using V = Lanes<T>;
  using M = Lanes<Mask<T>>;
  for (int64_t i = 0; i < m; ++i) rows[i] = M{} + Mask<T>(i);
  for (int64_t k = 0; k < std::min(m, n); ++k) {
    V* const top = a + k * n;
    M place = M{} + Mask<T>(k);
    V largest = top[k] < 0 ? -top[k] : top[k];
    for (int64_t i = k + 1; i < m; ++i) {
      const V x = a[i * n + k], size = x < 0 ? -x : x;
      const M larger = size > largest;
      largest = larger ? size : largest;
      place = larger ? M{} + Mask<T>(i) : place;
    }
    places[k] = place;
    for (int64_t i = k + 1; i < m; ++i) {
      const M here = place == Mask<T>(i);
      V* const row = a + i * n;
      const M before = rows[k];
      rows[k] = here ? rows[i] : before;
      rows[i] = here ? before : rows[i];
      for (int64_t j = 0; j < n; ++j) {
        const V x = top[j], y = row[j];
        top[j] = here ? y : x;
        row[j] = here ? x : y;
      }
    }
    const V head = top[k];
    const M zero = head == 0;
    const M none = {};
    const bool some = std::memcmp(&zero, &none, sizeof(M)) != 0;
    for (int64_t i = k + 1; i < m; ++i) {
      V* const row = a + i * n;
      const V factor = row[k] = zero ? row[k] : row[k] / head;
      if (some) {
        for (int64_t j = k + 1; j < n; ++j) row[j] = zero ? row[j] : row[j] - factor * top[j];
      } else {
        for (int64_t j = k + 1; j < n; ++j) row[j] -= factor * top[j];
      }
    }
  }
}

template <class T>
void FactorGroup(const FactorJob<T>& job, int64_t group) {
  Lanes<T> a[kBeside * kBeside];
  Lanes<Mask<T>> places[kBeside], rows[kBeside];
  const int64_t first = group * kLanes<T>, used = std::min(kLanes<T>, job.count - first);
  const int64_t m = job.m, n = job.n, size = m * n, k = std::min(m, n);
  LoadLanes(job.x + first * size, size, size, used, a);
  FactorLanes<T>(a, places, rows, m, n);
  StoreLanes(a, size, size, used, job.out + first * size);
  for (int64_t lane = 0; lane < used; ++lane) {
    int32_t* const pivots = job.pivots + (first + lane) * k;
    int32_t* const order = job.order + (first + lane) * m;
    for (int64_t i = 0; i < k; ++i) pivots[i] = static_cast<int32_t>(places[i][lane]);
    for (int64_t i = 0; i < m; ++i) order[i] = static_cast<int32_t>(rows[i][lane]);
  }
}

template <class V>
WEFT_INLINE void SolveLanes(const System& s, const V* e, V* x) {
  for (int64_t c = 0; c < s.k; ++c, x += s.step) {
    for (int64_t t = 0; t < s.n; ++t) {
      const int64_t i = s.lower ? t : s.n - 1 - t, end = s.lower ? i : s.n;
      const V* const equation = e + i * s.row;
      V sum = x[i * s.line];
      for (int64_t j = s.lower ? 0 : i + 1; j < end; ++j) {
        sum -= equation[j * s.column] * x[j * s.line];
      }
      x[i * s.line] = s.unit ? sum : sum / equation[i * s.column];
    }
  }
}

template <class T>
void SolveGroup(const SolveJob<T>& job, int64_t group) {
  Lanes<T> e[kBeside * kBeside], x[kBeside * kBeside];
  const int64_t first = group * kLanes<T>, used = std::min(kLanes<T>, job.count - first);
  const int64_t square = job.system.n * job.system.n, size = job.system.n * job.system.k;
  LoadLanes(job.a + first * square, square, square, used, e);
  LoadLanes(job.b + first * size, size, size, used, x);
  SolveLanes(job.system, e, x);
  StoreLanes(x, size, size, used, job.out + first * size);
}
