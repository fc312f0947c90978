// Included once for each width of vectors: rows resampled, one in each lane.

// Resamples the rows of a group. `room` is scratch memory for a row, with a vector per element.
template <class T>
void ResampleGroup(const ResampleJob<T>& job, int64_t group, void* room) {
  const int64_t lanes = job.lanes, depth = kBlock / lanes, taps = job.taps;
  const int64_t first = group * kLanes<T>, used = std::min(kLanes<T>, job.rows - first);
  Lanes<T> *const from = static_cast<Lanes<T>*>(room), block[kBlock];
  LoadLanes(job.x + first * job.n * lanes, job.n * lanes, job.n * lanes, used, from);
  for (int64_t done = 0; done < job.m; done += depth) {
    const int64_t count = std::min(depth, job.m - done);
    for (int64_t i = 0; i < count; ++i) {
      const T* const weights = job.weights + (done + i) * taps;
      const Lanes<T>* const near = from + job.starts[done + i] * lanes;
      for (int64_t j = 0; j < lanes; ++j) {
        Lanes<T> sum = weights[0] * near[j];
        for (int64_t k = 1; k < taps; ++k) sum += weights[k] * near[k * lanes + j];
        block[i * lanes + j] = sum;
      }
    }
    T* const to = job.y + first * job.m * lanes + done * lanes;
    StoreLanes(block, job.m * lanes, count * lanes, used, to);
  }
}

// Resamples a row of many lanes at the places from `begin` to `end`.
template <class T>
void ResampleRow(const ResampleJob<T>& job, int64_t row, int64_t begin, int64_t end) {
  const int64_t lanes = job.lanes, taps = job.taps, whole = lanes / kLanes<T> * kLanes<T>;
  for (int64_t i = begin; i < end; ++i) {
    const T* const weights = job.weights + i * taps;
    const T* const from = job.x + (row * job.n + job.starts[i]) * lanes;
    T* const to = job.y + (row * job.m + i) * lanes;
    for (int64_t j = 0; j < whole; j += kLanes<T>) {
      Lanes<T> sum = {}, x;
      for (int64_t k = 0; k < taps; ++k) {
        std::memcpy(&x, from + k * lanes + j, sizeof(x));
        sum += weights[k] * x;
      }
      std::memcpy(to + j, &sum, sizeof(sum));
    }
    for (int64_t j = whole; j < lanes; ++j) {
      T sum = 0;
      for (int64_t k = 0; k < taps; ++k) sum += weights[k] * from[k * lanes + j];
      to[j] = sum;
    }
  }
}
