// What common.h and ffi.h declare.

#include "common.h"

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#ifdef __linux__
#include <sched.h>
#endif
#ifdef _WIN32
#include <windows.h>
#endif

// __builtin_cpu_supports reads this table. The run-time library that Zig links has the table and
// leaves it empty, so that no kernel would run. Its layout is part of the ABI of libgcc and LLVM.
#if defined(__clang__) && defined(__x86_64__) && !defined(__APPLE__)
#include <cpuid.h>

extern "C" {
__attribute__((visibility("hidden"))) struct {
  unsigned vendor, type, subtype, features[1];
} __cpu_model = {};
__attribute__((visibility("hidden"))) unsigned __cpu_features2[4] = {};

__attribute__((constructor)) static void FillProcessorTable() {
  unsigned eax, ebx, ecx, edx;
  if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx)) return;
  const bool fma = ecx >> 12 & 1, popcnt = ecx >> 23 & 1, saves = ecx >> 27 & 1, avx = ecx >> 28 & 1;
  unsigned kept = 0, high = 0;  // the registers that the system keeps for a thread
  if (saves) __asm__("xgetbv" : "=a"(kept), "=d"(high) : "c"(0));
  if (!avx || (kept & 6) != 6 || !__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx)) return;
  const unsigned wide = (kept & 0xE6) == 0xE6 ? ebx : 0;
  const auto put = [](bool found, int bit) { __cpu_model.features[0] |= unsigned{found} << bit; };
  put(popcnt, 2), put(avx, 9), put(ebx >> 5 & 1, 10), put(fma, 14);  // AVX2 is bit 10
  put(wide >> 16 & 1, 15), put(ebx >> 3 & 1, 16), put(ebx >> 8 & 1, 17);  // AVX-512F, BMI, BMI2
  put(wide >> 31 & 1, 20), put(wide >> 30 & 1, 21), put(wide >> 17 & 1, 22);  // VL, BW, DQ
}
}
#endif

namespace weft {
namespace {

// Returns the processor that this thread runs on, or -1 if it is not known.
int FindProcessor() {
#ifdef __linux__
  return sched_getcpu();
#elif defined(_WIN32)
  return static_cast<int>(GetCurrentProcessorNumber());
#else
  return -1;
#endif
}

}  // namespace

void ForEach(ffi::ThreadPool& pool, int64_t count, void (*work)(const void*, int64_t),
             const void* data) {
  // Each thread begins with its own range of pieces. The range is the same in every call, so the
  // data is likely to be in the cache of its processor. Then the thread takes pieces from the
  // ranges of others.
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
  const int64_t helpers = count > 1 ? std::min(count, pool.num_threads()) - 1 : 0;
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
      // A helper may wake on the caller's processor when all processors are busy. It would keep the
      // caller waiting until all pieces are done, and XLA's thread would then spin while it looks
      // for other work. So the helper yields first.
      if (from >= 0 && FindProcessor() == from) std::this_thread::yield();
      {
        std::lock_guard<std::mutex> lock(shared->mutex);
        if (shared->closed) return;  // the call has ended: `data` may be gone
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

// --- calls -------------------------------------------------------------------------------------

namespace ffi {

bool HasFewElements(const XLA_FFI_Buffer* buffer) {
  int64_t count = 1;
  for (int64_t i = 0; i < buffer->rank; ++i) {
    const int64_t size = buffer->dims[i];
    if (size && __builtin_mul_overflow(count, size, &count)) return false;
  }
  return count <= kMostElements;
}

const XLA_FFI_Buffer* Call::NextBuffer(void** all, int64_t size, int64_t& next, int dtype,
                                       int rank) {
  static XLA_FFI_Buffer none{};
  const int64_t i = next++;
  if (i < size && IsOf(static_cast<XLA_FFI_Buffer*>(all[i]), dtype, rank)) {
    return static_cast<XLA_FFI_Buffer*>(all[i]);
  }
  if (missing == kNothing) {
    missing = all == frame->args.args ? kOperand : kResult, number = i;
    this->dtype = dtype, this->rank = rank;
  }
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
  if (missing == kNothing) {
    missing = kAttribute, number = attributes - 1;
    this->type = type, this->dtype = dtype;
  }
  return nullptr;
}

// --- errors ------------------------------------------------------------------------------------

namespace {

const char* NameOf(int dtype) {
  switch (dtype) {
    case PRED: return "bool";
    case S8: return "i8";
    case S16: return "i16";
    case S32: return "i32";
    case S64: return "i64";
    case U8: return "u8";
    case U16: return "u16";
    case U32: return "u32";
    case U64: return "u64";
    case F16: return "f16";
    case BF16: return "bf16";
    case F32: return "f32";
    case F64: return "f64";
    case C64: return "c64";
    case C128: return "c128";
    default: return ByteWidth(dtype) ? "f8" : "packed";  // which of them does not matter to a kernel
  }
}

// Numbers one after another, the first of them where there are many.
template <class T>
std::string WriteAll(const T* numbers, int64_t count) {
  constexpr int64_t kMost = 32;
  std::string text;
  for (int64_t i = 0; i < std::min(count, kMost); ++i) {
    text += (i ? "," : "") + std::to_string(numbers[i]);
  }
  return "[" + text + (count > kMost ? ",...]" : "]");
}

std::string WriteNumbers(int dtype, const void* numbers, int64_t count) {
  switch (dtype) {
    case PRED: return WriteAll(static_cast<const bool*>(numbers), count);
    case S32: return WriteAll(static_cast<const int32_t*>(numbers), count);
    case S64: return WriteAll(static_cast<const int64_t*>(numbers), count);
    case F32: return WriteAll(static_cast<const float*>(numbers), count);
    case F64: return WriteAll(static_cast<const double*>(numbers), count);
    default: return std::to_string(count) + " of " + NameOf(dtype);
  }
}

std::string WriteAttribute(XLA_FFI_AttrType type, const void* attribute) {
  if (type == XLA_FFI_AttrType_STRING) {
    const auto& text = *static_cast<const XLA_FFI_ByteSpan*>(attribute);
    return '"' + std::string(text.ptr, text.len) + '"';
  }
  if (type == XLA_FFI_AttrType_ARRAY) {
    const auto& array = *static_cast<const XLA_FFI_Array*>(attribute);
    return WriteNumbers(array.dtype, array.data, array.size);
  }
  if (type != XLA_FFI_AttrType_SCALAR) return "a dictionary";
  const auto& scalar = *static_cast<const XLA_FFI_Scalar*>(attribute);
  const std::string text = WriteNumbers(scalar.dtype, scalar.value, 1);
  return text[0] == '[' ? text.substr(1, text.size() - 2) : text;
}

std::string WriteBuffers(void** all, int64_t count) {
  std::string text;
  for (int64_t i = 0; i < count; ++i) {
    const auto& x = *static_cast<const XLA_FFI_Buffer*>(all[i]);
    text += (i ? ", " : "") + (NameOf(x.dtype) + WriteAll(x.dims, x.rank));
  }
  return count ? text : "nothing";
}

// Returns the text of a call's operands, results and attributes: "f32[3,4] -> f32[3] with axis=1".
std::string WriteCall(const XLA_FFI_CallFrame& frame) {
  std::string text = WriteBuffers(frame.args.args, frame.args.size) + " -> " +
                     WriteBuffers(frame.rets.rets, frame.rets.size);
  for (int64_t i = 0; i < frame.attrs.size; ++i) {
    const XLA_FFI_ByteSpan& name = *frame.attrs.names[i];
    text += (i ? ", " : " with ") + std::string(name.ptr, name.len) + "=" +
            WriteAttribute(frame.attrs.types[i], frame.attrs.attrs[i]);
  }
  return text;
}

XLA_FFI_Error* NewError(const XLA_FFI_CallFrame* frame, ErrorCode code, const std::string& text) {
  XLA_FFI_Error_Create_Args args{XLA_FFI_Error_Create_Args_STRUCT_SIZE, nullptr, text.c_str(),
                                 static_cast<XLA_FFI_Error_Code>(code)};
  return frame->api->XLA_FFI_Error_Create(&args);
}

}  // namespace

XLA_FFI_Error* MakeError(const XLA_FFI_CallFrame* frame, const char* name, const Error& error) {
  return NewError(frame, error.errc(),
                  std::string(name) + ": " + error.message() + "; got " + WriteCall(*frame));
}

XLA_FFI_Error* Call::MakeError(const char* name) const {
  std::string wanted = std::to_string(args) + " operands, " + std::to_string(rets) +
                       " results and " + std::to_string(attributes) + " attributes must be given";
  if (missing == kAttribute) {
    const char* const kind = type == XLA_FFI_AttrType_STRING  ? "a text"
                             : type == XLA_FFI_AttrType_ARRAY ? "an array of "
                                                              : "a number of dtype ";
    wanted = binding.names[number] + (" must be " + std::string(kind)) +
             (type == XLA_FFI_AttrType_STRING ? "" : NameOf(dtype));
  } else if (missing != kNothing) {
    wanted = (missing == kOperand ? "operand " : "result ") + std::to_string(number) + " must be " +
             (dtype < 0 ? "an array whose elements have whole bytes"
                        : std::string("an array of ") + NameOf(dtype)) +
             (rank < 0 ? "" : " with " + std::to_string(rank) + " axes");
  } else if (frame->stage != XLA_FFI_ExecutionStage_EXECUTE) {
    wanted = "the call must be executed";
  }
  return ffi::MakeError(frame, name, Error::InvalidArgument(wanted.c_str()));
}

XLA_FFI_Error* Answer(XLA_FFI_CallFrame* frame) {
#ifdef __AVX2__
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) {
    return NewError(frame, ErrorCode::kUnimplemented, "the processor has no AVX2");
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
