// Included once for each width of vectors: sums of products of images and results, for each element of
// a channel's kernel.

template <class T>
WEFT_INLINE Lanes<T> Times(const T* x, const T* y) {
  Lanes<T> a, b;
  std::memcpy(&a, x, sizeof(a));
  std::memcpy(&b, y, sizeof(b));
  return a * b;
}

// Adds the products of two rows to lanes in turn. `place` has the numbers of the lanes.
template <class T>
WEFT_INLINE void DotRow(const T* x, int64_t step, const T* y, int64_t count,
                        const Lanes<Mask<T>>& place, Lanes<T>& sums) {
  if (step != 1 || count < kLanes<T>) {
    T total = 0;
    for (int64_t i = 0; i < count; ++i) total += x[i * step] * y[i];
    sums[0] += total;
    return;
  }
  int64_t i = 0;
  for (; i + kLanes<T> <= count; i += kLanes<T>) sums += Times(x + i, y + i);
  if (i == count) return;
  const Lanes<T> last = Times(x + count - kLanes<T>, y + count - kLanes<T>), none = {};
  sums += place >= static_cast<Mask<T>>(kLanes<T> - (count - i)) ? last : none;
}

// Adds to to[tap] the products of images [begin, end) for channels [channel, channel + lanes) side
// by side, or into the first lane for one channel. The products of an image are summed by lanes
// first.
template <class T>
void SumImages(const DepthwiseJob& job, int64_t begin, int64_t end, int64_t channel, int64_t lanes,
               double* to) {
  const Axis &rows = job.rows, &columns = job.columns;
  const int64_t area = rows.size * columns.size, places = rows.results * columns.results;
  const int64_t c = job.channels, along = job.last ? c : 1;  // from element to element of a row
  const int64_t step = columns.step * along;
  Lanes<Mask<T>> place;
  for (int64_t l = 0; l < kLanes<T>; ++l) place[l] = static_cast<Mask<T>>(l);
  const auto image = [&](const void* all, int64_t n, int64_t size) {
    return static_cast<const T*>(all) + (job.last ? n * size * c + channel : (n * c + channel) * size);
  };
  for (int64_t n = begin; n < end; ++n) {
    const T *const x = image(job.x, n, area), *const y = image(job.y, n, places);
    for (int64_t tap = 0; tap < rows.taps * columns.taps; ++tap) {
      const int64_t u = tap / columns.taps, v = tap % columns.taps;
      const auto [top, bottom] = rows.Range(u);
      const auto [left, right] = columns.Range(v);
      const int64_t count = right - left;
      if (count <= 0) continue;
      const int64_t column = left * columns.step + v * columns.dilation - columns.low;
      Lanes<T> sums = {};
      for (int64_t i = top; i < bottom; ++i) {
        const int64_t row = i * rows.step + u * rows.dilation - rows.low;
        const T* from = x + (row * columns.size + column) * along;
        const T* with = y + (i * columns.results + left) * along;
        if (!job.last) {
          DotRow(from, step, with, count, place, sums);
        } else if (lanes == kLanes<T>) {
          for (int64_t j = 0; j < count; ++j, from += step, with += c) sums += Times(from, with);
        } else {
          for (int64_t j = 0; j < count; ++j, from += step, with += c) {
            for (int64_t l = 0; l < lanes; ++l) sums[l] += from[l] * with[l];
          }
        }
      }
      for (int64_t l = 0; l < kLanes<T>; ++l) to[tap * kLanes<T> + (job.last ? l : 0)] += sums[l];
    }
  }
}
