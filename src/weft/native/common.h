// What the kernels share: work spread over the engine's threads, memory that may be refused.

#ifndef WEFT_NATIVE_COMMON_H_
#define WEFT_NATIVE_COMMON_H_

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>

#include <sched.h>
#include <sys/mman.h>

#include "ffi.h"

// Compiled for AVX2 too, which is chosen when the library is loaded.
#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__GNUC__) && !defined(__clang__)
#define WEFT_WIDE __attribute__((target_clones("avx2", "default")))
#else
#define WEFT_WIDE
#endif

namespace weft {

constexpr int64_t kPiece = 1 << 15;  // elements, or products, that are worth a thread

// The processor that this thread runs on; -1 where that is not known.
inline int FindProcessor() {
#ifdef __linux__
  return sched_getcpu();
#else
  return -1;
#endif
}

// Calls work(data, i) for i from 0 to count - 1, on the engine's threads and on this one.
//
// This thread takes pieces too, and waits for none that nobody has begun: so it comes to an end
// also where all of the engine's threads are taken, as they are inside of other kernels.
__attribute__((noinline)) inline void ForEach(ffi::ThreadPool& pool, int64_t count,
                                              void (*work)(const void*, int64_t),
                                              const void* data) {
  struct Shared {
    std::atomic<int64_t> next{0};
    std::mutex mutex;
    std::condition_variable idle;
    int64_t busy = 0;
    bool closed = false;
  };
  const int64_t helpers = std::min(count, pool.num_threads()) - 1;
  if (helpers <= 0) {
    for (int64_t i = 0; i < count; ++i) work(data, i);
    return;
  }
  auto shared = std::make_shared<Shared>();
  auto take = [shared, count, work, data] {
    for (int64_t i; (i = shared->next.fetch_add(1)) < count;) work(data, i);
  };
  const int from = FindProcessor();
  for (int64_t h = 0; h < helpers; ++h) {
    pool.Schedule([shared, take, from] {
      // Woken where all processors are busy, it may have taken the caller's, which would wait for it
      // until all is done, and some time more in which the engine looks for other work.
      if (from >= 0 && FindProcessor() == from) sched_yield();
      {
        std::lock_guard<std::mutex> lock(shared->mutex);
        if (shared->closed) return;  // what `data` is may be gone
        ++shared->busy;
      }
      take();
      std::lock_guard<std::mutex> lock(shared->mutex);
      if (--shared->busy == 0) shared->idle.notify_all();
    });
  }
  take();
  std::unique_lock<std::mutex> lock(shared->mutex);
  shared->closed = true;
  shared->idle.wait(lock, [&] { return shared->busy == 0; });
}

// The same for work(i).
template <class Work>
void ForEach(ffi::ThreadPool& pool, int64_t count, const Work& work) {
  const auto call = [](const void* data, int64_t i) { (*static_cast<const Work*>(data))(i); };
  ForEach(pool, count, call, &work);
}

// Calls work(row, first, last) for all lanes of all rows of [rows, n, lanes], from `first` to `last`:
// some rows at once where they are short, else at most `width` lanes of one. The shape alone decides.
template <class Work>
void ForEachLane(ffi::ThreadPool& pool, int64_t rows, int64_t n, int64_t lanes, int64_t width,
                 const Work& work) {
  const int64_t together = std::max<int64_t>(1, kPiece / std::max<int64_t>(1, n * lanes));
  const int64_t parts = together > 1 ? 1 : (lanes + width - 1) / width;
  ForEach(pool, (rows + together - 1) / together * parts, [&](int64_t piece) {
    const int64_t begin = piece / parts * together, first = piece % parts * width;
    const int64_t last = parts == 1 ? lanes : std::min(lanes, first + width);
    for (int64_t row = begin; row < std::min(rows, begin + together); ++row) work(row, first, last);
  });
}

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};

// Uninitialized memory for `count` elements; null where there is none. Much of it is asked for in
// large pages, which are quicker to get, and to write at random.
template <class T>
__attribute__((noinline)) std::unique_ptr<T[], Free> Allocate(int64_t count) {
  constexpr size_t kPage = size_t{1} << 21;
  const size_t size = count * sizeof(T);
  if (size < 2 * kPage) return std::unique_ptr<T[], Free>(static_cast<T*>(std::malloc(size)));
  const size_t pages = (size + kPage - 1) / kPage * kPage;
  void* const memory = std::aligned_alloc(kPage, pages);
#ifdef MADV_HUGEPAGE
  if (memory) madvise(memory, pages, MADV_HUGEPAGE);
#endif
  return std::unique_ptr<T[], Free>(static_cast<T*>(memory));
}

inline ffi::Error OutOfMemory(const char* name) {
  return ffi::Error(ffi::ErrorCode::kResourceExhausted, "no memory for intermediate values", name);
}

}  // namespace weft

#endif  // WEFT_NATIVE_COMMON_H_
