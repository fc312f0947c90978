// Included once for each width of vectors: matrices stored by columns.

// Copies `depth` elements of `columns` columns, `stride` elements apart, to rows of `wide`.
template <class T>
void PackColumns(const T* from, int64_t stride, int64_t depth, int64_t columns, int64_t wide, T* to) {
  constexpr int64_t kRows = 64;
  Lanes<T> block[kRows];
  for (int64_t column = 0; column < wide; column += kLanes<T>) {
    const int64_t first = std::min(column, columns - 1);  // replaces missing columns
    for (int64_t i = 0; i < depth; i += kRows) {
      const int64_t count = std::min(kRows, depth - i);
      LoadLanes(from + first * stride + i, stride, count, std::min(kLanes<T>, columns - first), block);
      T* const rows = to + i * wide + column;
      for (int64_t j = 0; j < count; ++j) std::memcpy(rows + j * wide, block + j, sizeof(block[j]));
    }
  }
}

// Copies the transpose of `rows` rows of `columns` elements.
template <class T>
void CopyTransposed(const T* from, int64_t from_stride, int64_t rows, int64_t columns, T* to,
                    int64_t to_stride) {
  constexpr int64_t kColumns = 64;
  Lanes<T> block[kColumns];
  const int64_t whole = rows / kLanes<T> * kLanes<T>;
  for (int64_t row = 0; row < whole; row += kLanes<T>) {
    for (int64_t j = 0; j < columns; j += kColumns) {
      const int64_t count = std::min(kColumns, columns - j);
      LoadLanes(from + row * from_stride + j, from_stride, count, kLanes<T>, block);
      for (int64_t c = 0; c < count; ++c) {
        std::memcpy(to + (j + c) * to_stride + row, block + c, sizeof(block[c]));
      }
    }
  }
  for (int64_t row = whole; row < rows; ++row) {
    for (int64_t j = 0; j < columns; ++j) to[j * to_stride + row] = from[row * from_stride + j];
  }
}

// Copies elements of a symmetric matrix, n by n, to the other side of the diagonal: those of `columns`
// columns from `column` on, in the rows from `first` to `last`. All rows are below the square that the
// panel has on the diagonal, unless `first` is the first one of that square.
template <class T>
void Mirror(T* out, int64_t n, int64_t column, int64_t columns, int64_t first, int64_t last) {
  const int64_t end = column + columns, below = std::max(first, end);
  for (int64_t row = first; row < end; ++row) {
    for (int64_t j = column; j < row; ++j) out[j * n + row] = out[row * n + j];
  }
  if (below >= last) return;
  CopyTransposed(out + below * n + column, n, last - below, columns, out + column * n + below, n);
}
