// Functions of each element: circular and hyperbolic ones, their inverses, exponentials, powers,
// roots.
//
// Those of float32 in singles.h are computed in float32, to 1.5 units; the others in float64, and
// rounded once. A block of elements that are not all usual, as where one is a huge angle, is
// computed in another way.

#include <cmath>
#include <type_traits>

#include "halves.h"
#include "tiles.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace weft {
namespace {

constexpr int64_t kBlock = 256;  // elements that are looked at at once
constexpr double kMagic = 0x1.8p52, kPi = 3.14159265358979323846;

// A function of `count` elements, whole vectors, at most kBlock.
using Kernel = void (*)(const void* x, const void* y, void* out, int64_t count);

struct Named {
  const char* name;
  ffi::DataType type;
  size_t operands;
  Kernel compute;
  int64_t piece = 4096;      // elements that are worth a thread
  Kernel of_one = nullptr;  // where x is one number
};

// Vectors are taken apart in what may not use a processor's instructions, before that is inlined in
// what may. So all is compiled for each kind.
#define WEFT_HERE_CALLED WEFT_HERE_FOR
#define WEFT_HERE WEFT_HERE_FOR static WEFT_INLINE
#define WEFT_HERE_MEMBER WEFT_HERE_FOR WEFT_INLINE

#ifdef __x86_64__
namespace by512 {
#define WEFT_BYTES 64
#define WEFT_HERE_FOR WEFT_FOR("avx512f,avx512dq,avx512vl,avx2,fma")
#include "formulas.h"
#undef WEFT_BYTES
#undef WEFT_HERE_FOR
}  // namespace by512
namespace by256 {
#define WEFT_BYTES 32
#define WEFT_HERE_FOR WEFT_FOR("avx2,fma")
#include "formulas.h"
}  // namespace by256
#else
namespace by128 {
#define WEFT_BYTES 16
#define WEFT_HERE_FOR
#include "formulas.h"
}  // namespace by128
#endif

// The functions, by what the processor has; none where it has no product and sum in one.
const Named* Functions() {
#ifdef __x86_64__
  const bool most = __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  if (VectorBytes() == 64 && most) return by512::kFunctions;
  return VectorBytes() >= 32 ? by256::kFunctions : nullptr;
#else
  return by128::kFunctions;
#endif
}

struct Job {
  const Named* function;
  const char* from[2];
  char* out;
  int64_t n, width;  // elements, and bytes of one
  bool one[2];       // whether an operand is one number
  bool half;         // of bfloat16, by a function of float32

  // Puts `count` elements to where a function takes them.
  void Load(int k, int64_t first, int64_t count, char* to) const {
    const char* const x = from[k] + (one[k] ? 0 : first * width);
    if (half) {
      Widen(reinterpret_cast<const uint16_t*>(x), reinterpret_cast<float*>(to), count);
    } else {
      std::memcpy(to, x, count * width);
    }
  }

  static void Run(const void* data, int64_t index) {
    const Job& job = *static_cast<const Job*>(data);
    alignas(64) char held[3][kBlock * 8];
    const int64_t width = job.half ? sizeof(float) : job.width, piece = job.function->piece;
    const int64_t first = index * piece, last = std::min(job.n, first + piece);
    const bool of_one = job.one[0] && job.function->of_one;
    const Kernel compute = of_one ? job.function->of_one : job.function->compute;
    for (int k = 0; k < 2; ++k) {
      if (!job.one[k]) continue;
      job.Load(k, 0, 1, held[k]);
      for (int64_t j = 1; j < kBlock; j *= 2) std::memcpy(held[k] + j * width, held[k], j * width);
    }
    for (int64_t i = first; i < last; i += kBlock) {
      const int64_t count = std::min(kBlock, last - i), whole = (count + 15) / 16 * 16;
      const bool in_place = count == whole && !job.half;
      const char* from[2];
      for (int k = 0; k < 2; ++k) {
        from[k] = job.one[k] || !in_place ? held[k] : job.from[k] + i * width;
        if (job.one[k] || in_place) continue;
        job.Load(k, i, count, held[k]);
        for (int64_t j = count; j < whole; ++j) {  // more of the last one
          std::memcpy(held[k] + j * width, held[k] + (count - 1) * width, width);
        }
      }
      char* const out = job.out + i * job.width;
      compute(from[0], from[1], in_place ? out : held[2], whole);
      if (job.half) {
        Narrow(reinterpret_cast<const float*>(held[2]), reinterpret_cast<uint16_t*>(out), count);
      } else if (!in_place) {
        std::memcpy(out, held[2], count * width);
      }
    }
  }
};

ffi::Error Function(ffi::ThreadPool pool, ffi::RemainingArgs xs, ffi::Result<ffi::AnyBuffer> out,
                    std::string_view name) {
  const ffi::DataType type = out->element_type();
  const bool half = type == ffi::BF16;
  const ffi::DataType computed = half ? ffi::F32 : type;
  const Named* f = Functions();
  while (f && f->name && (f->name != name || f->type != computed || f->operands != xs.size())) ++f;
  if (!f || !f->name) {
    return ffi::Error::InvalidArgument("weft.function: there is no such function");
  }
  const int64_t n = out->element_count();
  Job job{f, {}, static_cast<char*>(out->untyped_data()), n,
          static_cast<int64_t>(ffi::ByteWidth(type)), {}, half};
  for (size_t i = 0; i < 2; ++i) {  // of one operand, twice
    const auto x = xs.get<ffi::AnyBuffer>(std::min(i, xs.size() - 1));
    const int64_t count = x ? x->element_count() : 0;
    job.one[i] = count == 1 && n > 1;
    if (!x || x->element_type() != type || !(job.one[i] || count == n)) {
      return ffi::Error::InvalidArgument("weft.function: operands must be like the result");
    }
    job.from[i] = static_cast<const char*>(x->untyped_data());
  }
  ForEach(pool, (n + f->piece - 1) / f->piece, Job::Run, &job);
  return ffi::Error::Success();
}

}  // namespace
}  // namespace weft

XLA_FFI_DEFINE_HANDLER_SYMBOL(weft_function, weft::Function,
                              xla::ffi::Ffi::Bind()
                                  .Ctx<xla::ffi::ThreadPool>()
                                  .RemainingArgs()
                                  .Ret<xla::ffi::AnyBuffer>()
                                  .Attr<std::string_view>("name"));
