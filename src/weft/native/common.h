// What the kernels share: work spread over the engine's threads, memory that may be refused.

#ifndef WEFT_NATIVE_COMMON_H_
#define WEFT_NATIVE_COMMON_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "checks.h"

// For what would take the compiler long in each place that it is called from.
#define WEFT_WIDE __attribute__((noinline))

// For loops too short for vectors, which the compiler would make of them; what they call is WEFT_INLINE.
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

// Calls work(data, i) for i from 0 to count - 1, on the engine's threads and on this one.
//
// This thread takes pieces too, and waits for none that nobody has begun: so it comes to an end
// also where all of the engine's threads are taken, as they are inside of other kernels.
void ForEach(ffi::ThreadPool& pool, int64_t count, void (*work)(const void*, int64_t),
             const void* data);

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

// Copies bytes. The C library's memcpy takes up to twice the time for what the caches hold.
void Copy(char* to, const char* from, int64_t size);

// Uninitialized, from the beginning of a line of the caches. Where blocks are kept (blocks.cc), much of it
// is in huge pages, which are quicker to get, and to write at random. Null where there is none.
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
