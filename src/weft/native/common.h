// Helpers of all kernels: loops over XLA's thread pool, allocation that may fail.

#ifndef WEFT_NATIVE_COMMON_H_
#define WEFT_NATIVE_COMMON_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "checks.h"

// For functions that are slow to compile, which should not be inlined at each call.
#define WEFT_WIDE __attribute__((noinline))

// For loops that are too short to vectorize, although the compiler would. Functions that they call
// must be WEFT_INLINE.
#if defined(__GNUC__) && !defined(__clang__)
#define WEFT_SCALAR __attribute__((optimize("no-tree-loop-vectorize")))
#else
#define WEFT_SCALAR
#endif

// Loops for AVX-512 beside those for AVX2. A quick build has only the latter (hatch_build.py).
#if defined(__x86_64__) && !defined(WEFT_AVX2_ONLY)
#define WEFT_AVX512
#endif

namespace weft {

constexpr int64_t kPiece = 1 << 15;  // elements, or products, that are worth a thread

// Calls work(data, i) for i from 0 to count - 1, on the threads of XLA's pool and on this one.
//
// This thread takes pieces too and never waits for a piece that no thread has begun. So the call
// ends even if all threads of the pool are busy, for example inside other kernels.
void ForEach(ffi::ThreadPool& pool, int64_t count, void (*work)(const void*, int64_t),
             const void* data);

// The same for work(i).
template <class Work>
void ForEach(ffi::ThreadPool& pool, int64_t count, const Work& work) {
  const auto call = [](const void* data, int64_t i) { (*static_cast<const Work*>(data))(i); };
  ForEach(pool, count, call, &work);
}

// Calls work(row, first, last) so that all lanes of all rows of [rows, n, lanes] are covered:
// several rows in one task if they are short, otherwise at most `width` lanes of one row. The
// division depends on the shape only.
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

// Copies bytes. glibc's memcpy takes up to twice as long for data in the caches.
void Copy(char* to, const char* from, int64_t size);

// Allocates uninitialized memory, aligned to a cache line. If blocks are kept (blocks.cc), much of
// it is in huge pages, which are faster to get and to write at random. Returns null if allocation
// fails.
void* AllocateBytes(size_t size);
void FreeBytes(void* memory);

// Memory of AllocateBytes, which it frees.
template <class T>
class Memory {
 public:
  explicit Memory(void* at) : at_(static_cast<T*>(at)) {}
  Memory(const Memory&) = delete;
  ~Memory() { FreeBytes(at_); }
  explicit operator bool() const { return at_ != nullptr; }
  T* get() const { return at_; }
  T& operator[](int64_t i) const { return at_[i]; }

 private:
  T* const at_;
};

template <class T>
Memory<T> Allocate(int64_t count) {
  return Memory<T>(AllocateBytes(count * sizeof(T)));
}

inline ffi::Error OutOfMemory() {
  return ffi::Error(ffi::ErrorCode::kResourceExhausted, "must find memory for intermediate values");
}

}  // namespace weft

#endif  // WEFT_NATIVE_COMMON_H_
