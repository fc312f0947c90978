// What common.h and ffi.h declare.

#include "common.h"

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <sched.h>
#include <sys/mman.h>

namespace weft {
namespace {

// The processor that this thread runs on; -1 where that is not known.
int FindProcessor() {
#ifdef __linux__
  return sched_getcpu();
#else
  return -1;
#endif
}

}  // namespace

void ForEach(ffi::ThreadPool& pool, int64_t count, void (*work)(const void*, int64_t),
             const void* data) {
  // Each thread begins with pieces of its own, the same ones in every call, so that it finds in its
  // processor's cache what it worked with before; then it takes those of others.
  struct alignas(64) Range {
    std::atomic<int64_t> next;
    int64_t end;
  };
  struct Shared {
    std::vector<Range> ranges;
    std::mutex mutex;
    std::condition_variable idle;
    std::atomic<int64_t> busy{0};
    bool closed = false;
  };
  const int64_t helpers = std::min(count, pool.num_threads()) - 1;
  if (helpers <= 0) {
    for (int64_t i = 0; i < count; ++i) work(data, i);
    return;
  }
  auto shared = std::make_shared<Shared>();
  const int64_t threads = helpers + 1;
  shared->ranges = std::vector<Range>(threads);
  for (int64_t t = 0; t < threads; ++t) {
    shared->ranges[t].next = count * t / threads;
    shared->ranges[t].end = count * (t + 1) / threads;
  }
  auto take = [shared, threads, work, data](int64_t own) {
    for (int64_t t = own; t < own + threads; ++t) {
      Range& range = shared->ranges[t % threads];
      for (int64_t i; (i = range.next.fetch_add(1)) < range.end;) work(data, i);
    }
  };
  const int from = FindProcessor();
  for (int64_t h = 0; h < helpers; ++h) {
    pool.Schedule([shared, take, from, h] {
      // Woken where all processors are busy, it may have taken the caller's, which would wait for it
      // until all is done, and some time more in which the engine looks for other work.
      if (from >= 0 && FindProcessor() == from) sched_yield();
      {
        std::lock_guard<std::mutex> lock(shared->mutex);
        if (shared->closed) return;  // what `data` is may be gone
        ++shared->busy;
      }
      take(h + 1);
      std::lock_guard<std::mutex> lock(shared->mutex);
      if (--shared->busy == 0) shared->idle.notify_all();
    });
  }
  take(0);
  std::unique_lock<std::mutex> lock(shared->mutex);
  shared->closed = true;
  lock.unlock();
  // To be woken takes up to 60 us, in a virtual machine above all; pieces are shorter.
  const auto last = std::chrono::steady_clock::now() + std::chrono::microseconds(50);
  while (shared->busy > 0 && std::chrono::steady_clock::now() < last) {
  }
  lock.lock();
  shared->idle.wait(lock, [&] { return shared->busy == 0; });
}

void Copy(char* to, const char* from, int64_t size) {
  typedef char Vector __attribute__((vector_size(32), aligned(1), may_alias));
  int64_t i = 0;
  for (; i + 128 <= size; i += 128) {
    for (int64_t j = 0; j < 128; j += 32) {
      *reinterpret_cast<Vector*>(to + i + j) = *reinterpret_cast<const Vector*>(from + i + j);
    }
  }
  std::memcpy(to + i, from + i, size - i);
}

void* AllocateBytes(size_t size) {
  constexpr size_t kPage = size_t{1} << 21;
  if (size < 2 * kPage) return std::aligned_alloc(64, (size + 63) / 64 * 64);
  const size_t pages = (size + kPage - 1) / kPage * kPage;
  void* const memory = std::aligned_alloc(kPage, pages);
#ifdef MADV_HUGEPAGE
  if (memory) madvise(memory, pages, MADV_HUGEPAGE);
#endif
  return memory;
}

// --- calls -------------------------------------------------------------------------------------

namespace ffi {

const XLA_FFI_Buffer* Call::NextBuffer(void** all, int64_t size, int64_t& next, int dtype,
                                       int rank) {
  static XLA_FFI_Buffer none{};
  const int64_t i = next++;
  if (i < size && IsOf(static_cast<XLA_FFI_Buffer*>(all[i]), dtype, rank)) {
    return static_cast<XLA_FFI_Buffer*>(all[i]);
  }
  missing = all == frame->args.args ? "an operand" : "a result";
  return &none;
}

const void* Call::NextAttribute(XLA_FFI_AttrType type, XLA_FFI_DataType dtype) {
  const std::string_view name = binding.names[attributes++];
  const XLA_FFI_Attrs& all = frame->attrs;
  for (int64_t i = 0; i < all.size; ++i) {
    if (name != std::string_view(all.names[i]->ptr, all.names[i]->len)) continue;
    if (all.types[i] != type) break;
    const void* const found = all.attrs[i];
    if (type == XLA_FFI_AttrType_SCALAR &&
        static_cast<const XLA_FFI_Scalar*>(found)->dtype != dtype) break;
    if (type == XLA_FFI_AttrType_ARRAY && static_cast<const XLA_FFI_Array*>(found)->size > 0 &&
        static_cast<const XLA_FFI_Array*>(found)->dtype != dtype) break;
    return found;
  }
  missing = name.data();
  return nullptr;
}

const char* Call::FindFault() const {
  if (missing) return missing;
  if (args != frame->args.size) return "the number of operands";
  if (rets != frame->rets.size) return "the number of results";
  return attributes == frame->attrs.size ? nullptr : "the number of attributes";
}

XLA_FFI_Error* MakeError(const XLA_FFI_CallFrame* frame, const Error& error) {
  const std::string message = (error.of() ? std::string(error.of()) + ": " : "") + error.message();
  XLA_FFI_Error_Create_Args args{XLA_FFI_Error_Create_Args_STRUCT_SIZE, nullptr, message.c_str(),
                                 static_cast<XLA_FFI_Error_Code>(error.errc())};
  return frame->api->XLA_FFI_Error_Create(&args);
}

XLA_FFI_Error* Answer(XLA_FFI_CallFrame* frame) {
#ifdef __AVX2__
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) {
    return MakeError(frame, Error(ErrorCode::kUnimplemented, "the processor has no AVX2"));
  }
#endif
  XLA_FFI_Metadata* const metadata =
      reinterpret_cast<XLA_FFI_Metadata_Extension*>(frame->extension_start)->metadata;
  metadata->api_version = {XLA_FFI_Api_Version_STRUCT_SIZE, nullptr, XLA_FFI_API_MAJOR,
                           XLA_FFI_API_MINOR};
  metadata->traits = 0;
  metadata->state_type_id = XLA_FFI_UNKNOWN_TYPE_ID;
  return nullptr;
}

}  // namespace ffi
}  // namespace weft
