// A small implementation of the C++ interface of XLA's foreign function interface, over its C
// header. It has the names that the kernels use. "xla/ffi/api/ffi.h" and its templates cost a
// compiler 1.5 s for each file.
//
// The types of a function's parameters say which operands a handler takes; of a binding only the
// names of attributes are stored. Including XLA's header in place of this one gives the same
// handlers.

#ifndef WEFT_NATIVE_FFI_H_
#define WEFT_NATIVE_FFI_H_
#define XLA_FFI_API_FFI_H_  // both cannot be included

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "xla/ffi/api/c_api.h"

namespace weft {
namespace ffi {

enum DataType {
  PRED = XLA_FFI_DataType_PRED,
  S8 = XLA_FFI_DataType_S8,
  S16 = XLA_FFI_DataType_S16,
  S32 = XLA_FFI_DataType_S32,
  S64 = XLA_FFI_DataType_S64,
  U8 = XLA_FFI_DataType_U8,
  U16 = XLA_FFI_DataType_U16,
  U32 = XLA_FFI_DataType_U32,
  U64 = XLA_FFI_DataType_U64,
  F16 = XLA_FFI_DataType_F16,
  BF16 = XLA_FFI_DataType_BF16,
  F32 = XLA_FFI_DataType_F32,
  F64 = XLA_FFI_DataType_F64,
  C64 = XLA_FFI_DataType_C64,
  C128 = XLA_FFI_DataType_C128,
};

// The bytes of an element; 0 for types with fractional bytes, such as int4, which XLA packs.
constexpr size_t ByteWidth(int dtype) {
  switch (dtype) {
    case PRED:
    case S8:
    case U8:
    case XLA_FFI_DataType_F8E3M4:
    case XLA_FFI_DataType_F8E4M3:
    case XLA_FFI_DataType_F8E4M3B11FNUZ:
    case XLA_FFI_DataType_F8E4M3FN:
    case XLA_FFI_DataType_F8E4M3FNUZ:
    case XLA_FFI_DataType_F8E5M2:
    case XLA_FFI_DataType_F8E5M2FNUZ:
    case XLA_FFI_DataType_F8E8M0FNU: return 1;
    case S16:
    case U16:
    case F16:
    case BF16: return 2;
    case S32:
    case U32:
    case F32: return 4;
    case S64:
    case U64:
    case F64:
    case C64: return 8;
    case C128: return 16;
    default: return 0;
  }
}

template <class T>
class Span {
 public:
  constexpr Span() = default;
  constexpr Span(T* data, size_t size) : data_(data), size_(size) {}
  T& operator[](size_t i) const { return data_[i]; }
  T& front() const { return data_[0]; }
  T& back() const { return data_[size_ - 1]; }
  T* begin() const { return data_; }
  T* end() const { return data_ + size_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  bool operator==(const Span& other) const {
    if (size_ != other.size_) return false;
    for (size_t i = 0; i < size_; ++i) {
      if (!(data_[i] == other.data_[i])) return false;
    }
    return true;
  }
  bool operator!=(const Span& other) const { return !(*this == other); }

 private:
  T* data_ = nullptr;
  size_t size_ = 0;
};

// --- errors ------------------------------------------------------------------------------------

enum class ErrorCode {
  kOk = XLA_FFI_Error_Code_OK,
  kInvalidArgument = XLA_FFI_Error_Code_INVALID_ARGUMENT,
  kResourceExhausted = XLA_FFI_Error_Code_RESOURCE_EXHAUSTED,
  kUnimplemented = XLA_FFI_Error_Code_UNIMPLEMENTED,
};

// The result of a kernel: success, or an error message that says what must hold. The name of the
// handler and the operands are added to the message. The message is a literal, not a string: each
// exit would have to destroy a string.
class Error {
 public:
  Error() = default;
  Error(ErrorCode code, const char* message) : code_(code), message_(message) {}
  static Error Success() { return Error(); }
  static Error InvalidArgument(const char* message) {
    return Error(ErrorCode::kInvalidArgument, message);
  }
  bool success() const { return code_ == ErrorCode::kOk; }
  ErrorCode errc() const { return code_; }
  const char* message() const { return message_; }

 private:
  ErrorCode code_ = ErrorCode::kOk;
  const char* message_ = "";
};

// --- operands and results ----------------------------------------------------------------------

class AnyBuffer {
 public:
  static constexpr int kDtype = -1, kRank = -1;  // any, of whole bytes
  explicit AnyBuffer(const XLA_FFI_Buffer* buffer = nullptr) : buffer_(buffer) {}
  DataType element_type() const { return static_cast<DataType>(buffer_->dtype); }
  Span<const int64_t> dimensions() const {
    return {buffer_->dims, static_cast<size_t>(buffer_->rank)};
  }
  size_t element_count() const {
    int64_t count = 1;
    for (int64_t i = 0; i < buffer_->rank; ++i) count *= buffer_->dims[i];
    return count;
  }
  size_t size_bytes() const { return ByteWidth(element_type()) * element_count(); }
  void* untyped_data() const { return buffer_->data; }
  template <class T>
  T* typed_data() const { return static_cast<T*>(buffer_->data); }

 protected:
  const XLA_FFI_Buffer* buffer_;
};

template <DataType dtype>
struct Native {};
template <> struct Native<PRED> { using Type = bool; };
template <> struct Native<S8> { using Type = int8_t; };
template <> struct Native<S16> { using Type = int16_t; };
template <> struct Native<S32> { using Type = int32_t; };
template <> struct Native<S64> { using Type = int64_t; };
template <> struct Native<U8> { using Type = uint8_t; };
template <> struct Native<U16> { using Type = uint16_t; };
template <> struct Native<U32> { using Type = uint32_t; };
template <> struct Native<U64> { using Type = uint64_t; };
template <> struct Native<F16> { using Type = uint16_t; };
template <> struct Native<BF16> { using Type = uint16_t; };
template <> struct Native<F32> { using Type = float; };
template <> struct Native<F64> { using Type = double; };

template <DataType dtype, int rank = -1>
class Buffer : public AnyBuffer {
 public:
  static constexpr int kDtype = dtype, kRank = rank;
  using AnyBuffer::AnyBuffer;
  typename Native<dtype>::Type* typed_data() const {
    return static_cast<typename Native<dtype>::Type*>(buffer_->data);
  }
};

template <DataType dtype> using BufferR0 = Buffer<dtype, 0>;
template <DataType dtype> using BufferR1 = Buffer<dtype, 1>;
template <DataType dtype> using BufferR2 = Buffer<dtype, 2>;
template <DataType dtype> using BufferR3 = Buffer<dtype, 3>;
template <DataType dtype> using BufferR4 = Buffer<dtype, 4>;

template <class T>
class Result {
 public:
  Result(T value) : value_(value) {}
  T& operator*() { return value_; }
  T* operator->() { return &value_; }

 private:
  T value_;
};

template <DataType dtype, int rank = -1>
using ResultBuffer = Result<Buffer<dtype, rank>>;

// One of several operands or results; there may be none.
template <class T>
class Maybe {
 public:
  explicit Maybe(bool is_there = false, T value = T{}) : is_there_(is_there), value_(value) {}
  bool has_value() const { return is_there_; }
  explicit operator bool() const { return is_there_; }
  T& value() { return value_; }
  T& operator*() { return value_; }
  T* operator->() { return &value_; }
  const T& operator*() const { return value_; }
  const T* operator->() const { return &value_; }

 private:
  bool is_there_;
  T value_;
};

// More elements than memory holds. Axes of size 0 do not count, so that no product of a buffer's sizes
// is more, in any order.
constexpr int64_t kMostElements = int64_t{1} << 48;

bool HasFewElements(const XLA_FFI_Buffer* buffer);

inline bool IsOf(const XLA_FFI_Buffer* buffer, int dtype, int rank) {
  if (dtype < 0 ? ByteWidth(buffer->dtype) == 0 : buffer->dtype != dtype) return false;
  if (rank >= 0 && buffer->rank != rank) return false;
  int64_t bits = 0;  // sizes below 2**16 on up to three axes need no slower products
  for (int64_t i = 0; i < buffer->rank; ++i) bits |= buffer->dims[i];
  return (buffer->rank <= 3 && bits >> 16 == 0) || HasFewElements(buffer);
}

// The remaining operands or results, from number `begin` on.
class Remaining {
 public:
  Remaining(void** all, int64_t count, int64_t begin) : all_(all + begin), size_(count - begin) {}
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

 protected:
  template <class T>
  const XLA_FFI_Buffer* Find(size_t i) const {
    if (i >= size_) return nullptr;
    const auto* const buffer = static_cast<const XLA_FFI_Buffer*>(all_[i]);
    return IsOf(buffer, T::kDtype, T::kRank) ? buffer : nullptr;
  }

 private:
  void** all_;
  size_t size_;
};

class RemainingArgs : public Remaining {
 public:
  using Remaining::Remaining;
  template <class T>
  Maybe<T> get(size_t i) const {
    const auto* const buffer = Find<T>(i);
    return Maybe<T>(buffer != nullptr, T(buffer));
  }
};

class RemainingRets : public Remaining {
 public:
  using Remaining::Remaining;
  template <class T>
  Maybe<Result<T>> get(size_t i) const {
    const auto* const buffer = Find<T>(i);
    return Maybe<Result<T>>(buffer != nullptr, T(buffer));
  }
};

// --- threads -----------------------------------------------------------------------------------

class ThreadPool {
 public:
  ThreadPool(const XLA_FFI_Api* api, XLA_FFI_ExecutionContext* ctx) : api_(api), ctx_(ctx) {}

  // Calls work() on a thread of XLA's pool, or on this thread without a pool.
  template <class Work>
  void Schedule(Work work) {
    XLA_FFI_Task* const task = [](void* data) {
      Work* const work = static_cast<Work*>(data);
      (*work)();
      delete work;
    };
    void* const data = new Work(std::move(work));
    XLA_FFI_ThreadPool_Schedule_Args args{XLA_FFI_ThreadPool_Schedule_Args_STRUCT_SIZE, nullptr,
                                          ctx_, task, data};
    if (IsError(api_->XLA_FFI_ThreadPool_Schedule(&args))) task(data);
  }

  // At least 1.
  int64_t num_threads() const {
    int64_t count = 0;
    XLA_FFI_ThreadPool_NumThreads_Args args{XLA_FFI_ThreadPool_NumThreads_Args_STRUCT_SIZE, nullptr,
                                            ctx_, &count};
    // An error means that the pool is missing: count stays 0.
    IsError(api_->XLA_FFI_ThreadPool_NumThreads(&args));
    return count > 1 ? count : 1;
  }

 private:
  bool IsError(XLA_FFI_Error* error) const {
    if (!error) return false;
    XLA_FFI_Error_Destroy_Args args{XLA_FFI_Error_Destroy_Args_STRUCT_SIZE, nullptr, error};
    api_->XLA_FFI_Error_Destroy(&args);
    return true;
  }

  const XLA_FFI_Api* api_;
  XLA_FFI_ExecutionContext* ctx_;
};

// --- handlers ----------------------------------------------------------------------------------

// The names of a handler's attributes, in the order of its parameters.
struct Binding {
  const char* names[16] = {};
  int count = 0;
  template <class T> constexpr Binding Ctx() const { return *this; }
  template <class T> constexpr Binding Arg() const { return *this; }
  template <class T> constexpr Binding Ret() const { return *this; }
  constexpr Binding RemainingArgs() const { return *this; }
  constexpr Binding RemainingRets() const { return *this; }
  template <class T>
  constexpr Binding Attr(const char* name) const {
    Binding more = *this;
    more.names[more.count++] = name;
    return more;
  }
};

struct Ffi {
  static constexpr Binding Bind() { return {}; }
};

// A call's operands, results and attributes, and the number of those read so far.
struct Call {
  XLA_FFI_CallFrame* frame;
  Binding binding;
  int64_t args = 0, rets = 0, attributes = 0;
  // The first operand, result or attribute that is missing or has a wrong type, and its number.
  enum { kNothing, kOperand, kResult, kAttribute } missing = kNothing;
  int64_t number = 0;
  int type = 0, dtype = 0, rank = 0;  // that it must have

  const XLA_FFI_Buffer* NextBuffer(void** all, int64_t size, int64_t& next, int dtype, int rank);
  // The next attribute, if it is of this type, and if a scalar or an array of this dtype.
  const void* NextAttribute(XLA_FFI_AttrType type, XLA_FFI_DataType dtype);
  // Returns true if all operands, results and attributes were read, at the stage of execution.
  bool IsWhole() const {
    return missing == kNothing && args == frame->args.size && rets == frame->rets.size &&
           attributes == frame->attrs.size && frame->stage == XLA_FFI_ExecutionStage_EXECUTE;
  }
  // Makes the error of a call if IsWhole is false.
  XLA_FFI_Error* MakeError(const char* name) const;
};

template <class T>
constexpr XLA_FFI_DataType kScalarType = std::is_same_v<T, bool>      ? XLA_FFI_DataType_PRED
                                         : std::is_same_v<T, int32_t> ? XLA_FFI_DataType_S32
                                         : std::is_same_v<T, int64_t> ? XLA_FFI_DataType_S64
                                         : std::is_same_v<T, float>   ? XLA_FFI_DataType_F32
                                         : std::is_same_v<T, double>  ? XLA_FFI_DataType_F64
                                                                      : XLA_FFI_DataType_INVALID;

// Reads the parameter of a type from a call. This one is for scalars.
template <class T>
struct Take {
  static T From(Call& call) {
    static_assert(kScalarType<T> != XLA_FFI_DataType_INVALID, "no such parameter of a handler");
    const auto* const found = static_cast<const XLA_FFI_Scalar*>(
        call.NextAttribute(XLA_FFI_AttrType_SCALAR, kScalarType<T>));
    return found ? *static_cast<const T*>(found->value) : T{};
  }
};

template <class T>
struct Take<Span<const T>> {
  static Span<const T> From(Call& call) {
    const auto* const found = static_cast<const XLA_FFI_Array*>(
        call.NextAttribute(XLA_FFI_AttrType_ARRAY, kScalarType<T>));
    if (!found) return {};
    return {static_cast<const T*>(found->data), found->size};
  }
};

template <>
struct Take<std::string_view> {
  static std::string_view From(Call& call) {
    const auto* const found = static_cast<const XLA_FFI_ByteSpan*>(
        call.NextAttribute(XLA_FFI_AttrType_STRING, XLA_FFI_DataType_INVALID));
    return found ? std::string_view(found->ptr, found->len) : std::string_view();
  }
};

template <>
struct Take<ThreadPool> {
  static ThreadPool From(Call& call) { return {call.frame->api, call.frame->ctx}; }
};

template <class T>
T TakeBuffer(Call& call) {
  const XLA_FFI_Args& all = call.frame->args;
  return T(call.NextBuffer(all.args, all.size, call.args, T::kDtype, T::kRank));
}

template <>
struct Take<AnyBuffer> {
  static AnyBuffer From(Call& call) { return TakeBuffer<AnyBuffer>(call); }
};

template <DataType dtype, int rank>
struct Take<Buffer<dtype, rank>> {
  static Buffer<dtype, rank> From(Call& call) { return TakeBuffer<Buffer<dtype, rank>>(call); }
};

template <class T>
struct Take<Result<T>> {
  static Result<T> From(Call& call) {
    const XLA_FFI_Rets& all = call.frame->rets;
    return T(call.NextBuffer(all.rets, all.size, call.rets, T::kDtype, T::kRank));
  }
};

template <>
struct Take<RemainingArgs> {
  static RemainingArgs From(Call& call) {
    const XLA_FFI_Args& all = call.frame->args;
    return {all.args, all.size, std::exchange(call.args, all.size)};
  }
};

template <>
struct Take<RemainingRets> {
  static RemainingRets From(Call& call) {
    const XLA_FFI_Rets& all = call.frame->rets;
    return {all.rets, all.size, std::exchange(call.rets, all.size)};
  }
};

// Makes the error of a handler: the condition that must hold, and the operands of the call.
XLA_FFI_Error* MakeError(const XLA_FFI_CallFrame* frame, const char* name, const Error& error);

// Returns true if XLA asks for the handler's metadata, as it does at registration.
inline bool IsQuestion(const XLA_FFI_CallFrame* frame) {
  return frame->extension_start && frame->extension_start->type == XLA_FFI_Extension_Metadata;
}

// Answers with the API version of the handlers. Returns an error if they cannot run.
XLA_FFI_Error* Answer(XLA_FFI_CallFrame* frame);

template <class... Parameters>
__attribute__((cold)) XLA_FFI_Error* Handle(XLA_FFI_CallFrame* frame,
                                            Error (*function)(Parameters...),
                                            const Binding& binding, const char* name) {
  if (IsQuestion(frame)) return Answer(frame);
  Call call{frame, binding};
  std::tuple<std::decay_t<Parameters>...> taken{Take<std::decay_t<Parameters>>::From(call)...};
  if (!call.IsWhole()) return call.MakeError(name);
  const Error error = std::apply(function, taken);
  return error.success() ? nullptr : MakeError(frame, name, error);
}

}  // namespace ffi
}  // namespace weft

namespace xla {
namespace ffi = weft::ffi;
}

#define XLA_FFI_DEFINE_HANDLER_SYMBOL(symbol, function, binding)              \
  extern "C" XLA_FFI_Error* symbol(XLA_FFI_CallFrame* frame) {                \
    return weft::ffi::Handle(frame, function, binding, #symbol);              \
  }                                                                           \
  static_assert(true, "takes the semicolon")

#endif  // WEFT_NATIVE_FFI_H_
