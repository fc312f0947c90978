// Loops over stacks of matrices.

#ifndef WEFT_NATIVE_MATRICES_H_
#define WEFT_NATIVE_MATRICES_H_

#include "common.h"

namespace weft {

// Calls run(group) for groups of `lanes` matrices, which are computed side by side. `products` is the
// work for one matrix.
template <class Run>
void ForEachGroup(ffi::ThreadPool& pool, int64_t lanes, int64_t count, int64_t products, const Run& run) {
  const int64_t groups = (count + lanes - 1) / lanes;
  const int64_t together = std::max<int64_t>(1, kPiece / std::max<int64_t>(1, lanes * products));
  ForEach(pool, (groups + together - 1) / together, [&](int64_t piece) {
    const int64_t end = std::min(groups, (piece + 1) * together);
    for (int64_t group = piece * together; group < end; ++group) run(group);
  });
}

// Calls run(pool, i) for each matrix. If there are enough matrices for the threads, each thread takes
// some, and the pool for one of them is null. Otherwise all threads share the work for one.
template <class Run>
void ForEachMatrix(ffi::ThreadPool& pool, int64_t count, int64_t products, const Run& run) {
  if (count < pool.num_threads()) {
    for (int64_t i = 0; i < count; ++i) run(&pool, i);
    return;
  }
  const int64_t together = std::max<int64_t>(1, kPiece / std::max<int64_t>(1, products));
  ForEach(pool, (count + together - 1) / together, [&](int64_t piece) {
    const int64_t last = std::min(count, (piece + 1) * together);
    for (int64_t i = piece * together; i < last; ++i) run(nullptr, i);
  });
}

}  // namespace weft

#endif  // WEFT_NATIVE_MATRICES_H_
