// Included once for each width of vectors, by dot.cc: right factors whose columns follow each other.

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
