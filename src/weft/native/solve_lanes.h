// Included once for each width of vectors: triangular equations for a panel of right sides. Row i of a
// panel holds unknown i, in kColumns vectors.

// Calls run(count, row) for `rows` rows, kPixels of them at once and fewer at the end.
template <class Run>
WEFT_INLINE void ForRows(int64_t rows, const Run& run) {
  int64_t row = 0;
  for (; row + kPixels <= rows; row += kPixels) run(std::integral_constant<int, kPixels>{}, row);
  if (rows - row >= 4) run(std::integral_constant<int, 4>{}, row), row += 4;
  if (rows - row >= 2) run(std::integral_constant<int, 2>{}, row), row += 2;
  if (rows > row) run(std::integral_constant<int, 1>{}, row);
}

// Subtracts rows `begin` to `end` of a panel from kRows rows at `to`, times factors at `from` that are
// `step` apart. Of each kTerms products the sum is subtracted: small sums are more exact.
template <int kRows, int kColumns, class T>
WEFT_INLINE void SubtractRows(const T* const* from, int64_t step, int64_t begin, int64_t end,
                              const T* panel, T* to) {
  using V = Lanes<T>;
  constexpr int64_t kWide = kColumns * kLanes<T>, kTerms = 64;
  for (int64_t p = begin; p < end;) {
    const int64_t last = std::min(end, p + kTerms);
    V sums[kRows][kColumns] = {};
    for (; p < last; ++p) {
      V y[kColumns];
      for (int j = 0; j < kColumns; ++j) y[j] = Load<V>(panel + p * kWide + j * kLanes<T>);
      for (int r = 0; r < kRows; ++r) {
        const T factor = from[r][p * step];
        for (int j = 0; j < kColumns; ++j) sums[r][j] += factor * y[j];
      }
    }
    for (int r = 0; r < kRows; ++r) {
      for (int j = 0; j < kColumns; ++j) {
        T* const at = to + r * kWide + j * kLanes<T>;
        const V rest = Load<V>(at) - sums[r][j];
        std::memcpy(at, &rest, sizeof(rest));
      }
    }
  }
}

// Solves equations `first` to `first + kRows`. Those before them, in the order of the solution, are
// solved.
template <int kColumns, bool kLower, int kRows, class T>
WEFT_INLINE void SolveRows(const System& s, const T* e, int64_t first, T* panel) {
  using V = Lanes<T>;
  constexpr int64_t kWide = kColumns * kLanes<T>;
  constexpr T kLeast = std::numeric_limits<T>::min();  // of normal numbers
  T* const to = panel + first * kWide;
  const T* from[kRows];
  for (int r = 0; r < kRows; ++r) from[r] = e + (first + r) * s.row;
  SubtractRows<kRows, kColumns>(from, s.column, kLower ? 0 : first + kRows, kLower ? first : s.n, panel, to);
  V x[kRows][kColumns];
  std::memcpy(x, to, sizeof(x));
#pragma GCC unroll 6
  for (int t = 0; t < kRows; ++t) {
    const int r = kLower ? t : kRows - 1 - t;
    if (!s.unit) {
      const T head = from[r][(first + r) * s.column], inverse = 1 / head;
      if (std::fabs(inverse) >= kLeast && std::fabs(head) >= kLeast) {
        for (int j = 0; j < kColumns; ++j) x[r][j] *= inverse;
      } else {  // the inverse is not exact, or infinite
        for (int j = 0; j < kColumns; ++j) x[r][j] /= head;
      }
    }
#pragma GCC unroll 6
    for (int i = t + 1; i < kRows; ++i) {
      const int q = kLower ? i : kRows - 1 - i;
      const T factor = from[q][(first + r) * s.column];
      for (int j = 0; j < kColumns; ++j) x[q][j] -= factor * x[r][j];
    }
    std::memcpy(to + r * kWide, x[r], sizeof(x[r]));
  }
}

template <int kColumns, bool kLower, class T>
WEFT_WIDE void SolvePanel(const System& s, const T* e, T* panel) {
  ForRows(s.n, [&](auto rows, int64_t row) {
    SolveRows<kColumns, kLower, rows>(s, e, kLower ? row : s.n - rows - row, panel);
  });
}
