// Handlers for test_ffi.py, which compiles this file.
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;
using Floats = ffi::Buffer<ffi::F32>;
using FloatResult = ffi::ResultBuffer<ffi::F32>;

// The sum of each row; `sums` has one element for each row.
static ffi::Error RowSums(float scale, Floats x, FloatResult sums) {
  const size_t rows = sums->element_count();
  const size_t width = rows ? x.element_count() / rows : 0;
  for (size_t i = 0; i < rows; ++i) {
    float total = 0;
    for (size_t j = 0; j < width; ++j) total += x.typed_data()[i * width + j];
    sums->typed_data()[i] = scale * total;
  }
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(
    row_sums, RowSums,
    ffi::Ffi::Bind().Attr<float>("scale").Arg<Floats>().Ret<Floats>());

// x + y, where x may have fewer rows than y.
static ffi::Error AddRows(Floats x, Floats y, FloatResult out) {
  const size_t n = out->element_count();
  for (size_t i = 0; i < n; ++i) {
    out->typed_data()[i] =
        x.typed_data()[i % x.element_count()] + y.typed_data()[i % y.element_count()];
  }
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(
    add_rows, AddRows, ffi::Ffi::Bind().Arg<Floats>().Arg<Floats>().Ret<Floats>());

// The elements in memory order.
static ffi::Error InMemory(Floats x, FloatResult out) {
  std::memcpy(out->typed_data(), x.typed_data(), x.size_bytes());
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(in_memory, InMemory,
                              ffi::Ffi::Bind().Arg<Floats>().Ret<Floats>());

// x + 1, where the result has the buffer of the argument.
static ffi::Error AddInPlace(Floats x, FloatResult out) {
  if (x.typed_data() != out->typed_data()) {
    return ffi::Error::InvalidArgument("the buffers differ");
  }
  for (size_t i = 0; i < x.element_count(); ++i) out->typed_data()[i] += 1;
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(add_in_place, AddInPlace,
                              ffi::Ffi::Bind().Arg<Floats>().Ret<Floats>());

// How often it was called.
static int32_t calls = 0;
static ffi::Error Count(ffi::RemainingArgs, ffi::RemainingRets) {
  ++calls;
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(count, Count,
                              ffi::Ffi::Bind().RemainingArgs().RemainingRets());
extern "C" int32_t count_calls() { return calls; }

static ffi::Error Fail(ffi::RemainingArgs, ffi::RemainingRets) {
  return ffi::Error::InvalidArgument("the handler says no");
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(fail, Fail, ffi::Ffi::Bind().RemainingArgs().RemainingRets());

// The type and value of the attribute `a`, as text.
static ffi::Error Describe(ffi::Dictionary attrs, ffi::ResultBuffer<ffi::U8> out) {
  std::string text;
  auto number = [&](auto zero, const char* type) {
    using T = decltype(zero);
    if (auto v = attrs.get<T>("a"); v.has_value()) {
      text += std::string(type) + " " + std::to_string(*v);
    }
    if (auto v = attrs.get<ffi::Span<const T>>("a"); v.has_value()) {
      text += type;
      for (T x : *v) text += " " + std::to_string(x);
      text += " end";
    }
  };
  number(int8_t{}, "i8"), number(int16_t{}, "i16"), number(int32_t{}, "i32");
  number(int64_t{}, "i64"), number(uint8_t{}, "u8"), number(uint16_t{}, "u16");
  number(uint32_t{}, "u32"), number(uint64_t{}, "u64"), number(float{}, "f32");
  number(double{}, "f64");
  if (auto v = attrs.get<bool>("a"); v.has_value()) text += *v ? "true" : "false";
  if (auto v = attrs.get<std::string_view>("a"); v.has_value()) text += *v;
  if (auto v = attrs.get<ffi::Dictionary>("a"); v.has_value()) {
    text += "dict " + std::to_string(v->get<int64_t>("b").value());
  }
  std::memset(out->typed_data(), 0, out->element_count());
  std::memcpy(out->typed_data(), text.data(), text.size());
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(describe, Describe,
                              ffi::Ffi::Bind().Attrs().Ret<ffi::Buffer<ffi::U8>>());

// A handler with a stage before the first run, which makes what the others are given.
struct State {
  static ffi::TypeId id;
  static ffi::TypeInfo info;
  explicit State(int32_t value) : value(value) {}
  int32_t value;
};
ffi::TypeId State::id = {};
ffi::TypeInfo State::info = ffi::MakeTypeInfo<State>();
extern "C" {
void* state_id() { return &State::id; }
void* state_info() { return &State::info; }
}

static ffi::ErrorOr<std::unique_ptr<State>> Instantiate() {
  return std::make_unique<State>(42);
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(instantiate, Instantiate, ffi::Ffi::BindInstantiate());
static ffi::Error Execute(State* state, ffi::ResultBuffer<ffi::S32> out) {
  out->typed_data()[0] = state->value;
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(
    execute, Execute,
    ffi::Ffi::Bind().Ctx<ffi::State<State>>().Ret<ffi::Buffer<ffi::S32>>());

// XLA's older custom calls: of three floats, twice x; and x plus the length of the string.
extern "C" {
void older(void* out, const void** in) {
  for (int i = 0; i < 3; ++i) ((float*)out)[i] = 2 * ((const float*)in[0])[i];
}
void older_with_text(void* out, const void** in, const char* text, size_t length, void* status) {
  for (int i = 0; i < 3; ++i) ((float*)out)[i] = ((const float*)in[0])[i] + length;
}
}
