// Functions of each element: circular and hyperbolic ones, their inverses, powers, roots.
//
// Those of float32 are computed in float64 and rounded once, to 0.51 units. A block of elements that
// are not all usual, as where one is a huge angle, is computed in another way.

#include <cmath>

#include "halves.h"
#include "tiles.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace weft {
namespace {

constexpr int64_t kBlock = 256;  // elements that are looked at at once
constexpr double kMagic = 0x1.8p52, kPi = 3.14159265358979323846;

struct Named {
  const char* name;
  ffi::DataType type;
  size_t operands;
  ffi::Error (*apply)(ffi::ThreadPool&, const void*, const void*, void*, int64_t, bool,
                      bool);
};

// Vectors are taken apart in what may not use a processor's instructions, before that is inlined in
// what may. So all is compiled for each kind.
#define WEFT_HERE_CALLED WEFT_HERE_FOR
#define WEFT_HERE WEFT_HERE_FOR static WEFT_INLINE
#define WEFT_HERE_MEMBER WEFT_HERE_FOR WEFT_INLINE

#if defined(__x86_64__) && defined(__GNUC__)
namespace by512 {
#define WEFT_BYTES 64
#define WEFT_FUSED true
#define WEFT_HERE_FOR WEFT_FOR("avx512f,avx512dq,avx512vl,avx2,fma")
#include "formulas.h"
#undef WEFT_BYTES
#undef WEFT_FUSED
#undef WEFT_HERE_FOR
}  // namespace by512
namespace by256 {
#define WEFT_BYTES 32
#define WEFT_FUSED true
#define WEFT_HERE_FOR WEFT_FOR("avx2,fma")
#include "formulas.h"
#undef WEFT_BYTES
#undef WEFT_FUSED
#undef WEFT_HERE_FOR
}  // namespace by256
#endif
namespace by128 {
#define WEFT_BYTES 16
#ifdef __x86_64__
#define WEFT_FUSED false
#else
#define WEFT_FUSED true
#endif
#define WEFT_HERE_FOR
#include "formulas.h"
}  // namespace by128

// The functions, by what the processor has.
const Named* Functions() {
#if defined(__x86_64__) && defined(__GNUC__)
  const int bytes = VectorBytes();
  if (bytes == 64 && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
    return by512::kFunctions;
  }
  if (bytes >= 32) return by256::kFunctions;
#endif
  return by128::kFunctions;
}

// A function of float32 for bfloat16.
ffi::Error ApplyWidened(const Named& f, ffi::ThreadPool& pool, const void* const* from,
                        const bool* one, void* out, int64_t n) {
  ForEach(pool, (n + kHalves - 1) / kHalves, [&](int64_t piece) {
    const int64_t first = piece * kHalves, count = std::min(kHalves, n - first);
    float x[2][kHalves], y[kHalves];
    for (size_t i = 0; i < f.operands; ++i) {
      const uint16_t* const at = static_cast<const uint16_t*>(from[i]);
      Widen(one[i] ? at : at + first, x[i], one[i] ? 1 : count);
    }
    f.apply(pool, x[0], x[f.operands - 1], y, count, one[0], one[f.operands - 1]);
    Narrow(y, static_cast<uint16_t*>(out) + first, count);
  });
  return ffi::Error::Success();
}

ffi::Error Function(ffi::ThreadPool pool, ffi::RemainingArgs xs, ffi::Result<ffi::AnyBuffer> out,
                    std::string_view name) {
  const ffi::DataType type = out->element_type();
  const bool half = type == ffi::BF16;
  for (const Named* at = Functions(); at->name; ++at) {
    const Named& f = *at;
    if (f.name != name || f.type != (half ? ffi::F32 : type) || f.operands != xs.size()) continue;
    const void* from[2];
    bool one[2];
    for (size_t i = 0; i < xs.size(); ++i) {
      const auto x = xs.get<ffi::AnyBuffer>(i);
      one[i] = x && x->element_count() == 1 && out->element_count() > 1;
      if (!x || x->element_type() != type ||
          (!one[i] && x->element_count() != out->element_count())) {
        return ffi::Error::InvalidArgument("weft.function: operands must be like the result");
      }
      from[i] = x->untyped_data();
    }
    if (xs.size() == 1) from[1] = from[0], one[1] = one[0];
    if (half) {
      return ApplyWidened(f, pool, from, one, out->untyped_data(), out->element_count());
    }
    return f.apply(pool, from[0], from[1], out->untyped_data(), out->element_count(), one[0],
                   one[1]);
  }
  return ffi::Error::InvalidArgument("weft.function: there is no such function");
}

}  // namespace
}  // namespace weft

XLA_FFI_DEFINE_HANDLER_SYMBOL(weft_function, weft::Function,
                              xla::ffi::Ffi::Bind()
                                  .Ctx<xla::ffi::ThreadPool>()
                                  .RemainingArgs()
                                  .Ret<xla::ffi::AnyBuffer>()
                                  .Attr<std::string_view>("name"));
