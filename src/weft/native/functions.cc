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
#define WEFT_HERE_FOR WEFT_FOR("avx2,fma,f16c")
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

const Named* FindFunction(std::string_view name, ffi::DataType type) {
  const Named* f = Functions();
  while (f && f->name && (f->name != name || f->type != type)) ++f;
  return f && f->name ? f : nullptr;
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
  const Named* const f = FindFunction(name, computed);
  if (!f || f->operands != xs.size()) {
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

// --- programs on rows ---------------------------------------------------------------------------

constexpr int64_t kSlots = 16, kSteps = 48, kRow = 4096;  // slots for rows, steps, elements of a row
constexpr int64_t kWorth = 1 << 14;  // elements that are worth a thread

struct Array {
  char* at;
  int64_t count, width;
  Kernel move;  // to float32, or from it
};

struct Step {
  Kernel compute, direct;  // `direct`, where there is such, on arrays of 16 bits
  int out, x, y;
  bool cell, reduces, sums;  // of one number for each row; of what is behind rows
};

// Elements of arrays of 16 bits that are worked on at once, and how many of these.
constexpr int64_t kStep = 1024, kFew = 4;

// Rows of n of `total` elements; of elementwise programs `total` is no multiple, and the last is short.
struct Program {
  Array arrays[kSlots + 1];  // those of the first slots, and the result
  Step steps[kSteps];
  int64_t operands, count, n, total;
  bool direct;  // whether all is of one dtype of 16 bits, and steps can be done in it

  // Moves elements to float32 or from it, those at the end with some before them again.
  static void Move(const Array& x, const char* from, int64_t width, char* to, int64_t wide, int64_t n) {
    x.move(from, nullptr, to, n / 16 * 16);
    if (n % 16 == 0) return;
    if (n > 16) return x.move(from + (n - 16) * width, nullptr, to + (n - 16) * wide, 16);
    alignas(64) char ends[2][64];
    std::memcpy(ends[0], from, n * width);
    x.move(ends[0], nullptr, ends[1], 16);
    std::memcpy(to, ends[1], n * wide);
  }

  // Puts an operand's elements from `first` on into its slot, more of the last one behind them.
  void Load(int64_t k, int64_t first, int64_t count, float* slots, int64_t stride) const {
    const Array& x = arrays[k];
    float* const to = slots + k * stride;
    const int64_t used = std::min(count, x.count);
    Move(x, x.at + first * x.width, x.width, reinterpret_cast<char*>(to), 4, used);
    std::fill(to + used, to + stride, to[used - 1]);
  }

  static void Run(const void* data, int64_t index) {
    const Program& job = *static_cast<const Program*>(data);
    alignas(64) float slots[kSlots * (kRow + 16)];
    uint16_t numbers[kFew][kStep];
    const int64_t n = job.n, stride = (n + 15) / 16 * 16 + 16, rows = (job.total + n - 1) / n;
    const int64_t together = std::max<int64_t>(1, kWorth / n), begin = index * together;
    const Step& last = job.steps[std::max<int64_t>(job.count, 1) - 1];
    const Array& out = job.arrays[kSlots];
    const bool cell = out.count < job.total;
    for (int64_t k = 0; k < job.operands; ++k) {  // what all rows share
      if (job.arrays[k].count < job.total) job.Load(k, 0, n, slots, stride);
      if (job.direct && job.arrays[k].count == 1) {
        std::fill(numbers[k], numbers[k] + kStep, weft::Load<uint16_t>(job.arrays[k].at));
      }
    }
    for (int64_t row = begin; row < std::min(rows, begin + together); ++row) {
      const int64_t count = std::min(n, job.total - row * n), whole = (count + 15) / 16 * 16;
      char* const to = out.at + row * (cell ? 1 : n) * out.width;
      if (job.direct && count == whole && count <= kStep) {
        const void* at[kSlots];
        for (int64_t k = 0; k < job.operands; ++k) {
          const Array& x = job.arrays[k];
          at[k] = x.at + (x.count < job.total ? 0 : row * n * 2);
          if (x.count == 1) at[k] = numbers[k];
        }
        for (int64_t k = 0; k < job.count; ++k) {
          const Step& step = job.steps[k];
          void* const made = k + 1 == job.count ? static_cast<void*>(to) : slots + step.out * stride;
          step.direct(at[step.x], at[step.y], made, count);
          at[step.out] = made;
        }
        continue;
      }
      for (int64_t k = 0; k < job.operands; ++k) {
        if (job.arrays[k].count == job.total) job.Load(k, row * n, count, slots, stride);
      }
      for (int64_t k = 0; k < job.count; ++k) {
        const Step& step = job.steps[k];
        float* const x = slots + step.x * stride;
        for (int64_t j = count; step.reduces && j < whole; ++j) x[j] = step.sums ? 0 : x[0];
        step.compute(x, slots + step.y * stride, slots + step.out * stride, step.cell ? 16 : whole);
      }
      Move(out, reinterpret_cast<const char*>(slots + last.out * stride), 4, to, out.width,
           cell ? 1 : count);
    }
  }
};

// Does the steps of `program`, each a name and letters of the slots of its result and operands, on rows
// of n elements. The slots at first are the operands': all elements, a row or a number.
ffi::Error Rows(ffi::ThreadPool pool, int64_t n, ffi::RemainingArgs xs, ffi::Result<ffi::AnyBuffer> out,
                std::string_view program) {
  Program job{};
  job.operands = xs.size(), job.n = n;
  bool fits = n > 0 && n <= kRow && job.operands > 0 && job.operands <= kSlots;
  job.direct = job.operands <= kFew && ffi::ByteWidth(out->element_type()) == 2 && !program.empty();
  const auto add = [&](const char* name, ffi::AnyBuffer x, int64_t slot) {
    const Named* const f = FindFunction(name, x.element_type());
    if (!(fits = fits && f)) return;
    job.arrays[slot] = {static_cast<char*>(x.untyped_data()), static_cast<int64_t>(x.element_count()),
                        static_cast<int64_t>(ffi::ByteWidth(x.element_type())), f->compute};
    job.total = std::max(job.total, job.arrays[slot].count);
    job.direct = job.direct && x.element_type() == out->element_type();
  };
  for (int64_t k = 0; fits && k < job.operands; ++k) add("load", *xs.get<ffi::AnyBuffer>(k), k);
  add("store", *out, kSlots);
  bool exactly = true;  // whether no step before has a result that would have to be rounded
  while (fits && !program.empty()) {
    const size_t end = std::min(program.find(' '), program.size());
    const std::string_view name = program.substr(0, end - std::min<size_t>(end, 3));
    const Named* const f = FindFunction(name, ffi::F32);
    const char* const slots = program.data() + name.size();
    const auto slot = [&](int k) { return (slots[k] & 31) - 1; };
    if (!(fits = f && job.count < kSteps && end > 3)) break;
    fits = std::max({slot(0), slot(1), slot(2)}) < kSlots && std::min({slot(0), slot(1), slot(2)}) >= 0;
    const Named* const direct = job.direct ? FindFunction(name, out->element_type()) : nullptr;
    const bool exact = name == "max" || name == "min" || name == "neg" || name == "abs";
    job.direct = direct && ((exact && exactly) || (!job.count && program.size() == end));
    exactly = exactly && exact;
    job.steps[job.count++] = {f->compute, direct ? direct->compute : nullptr, slot(0), slot(1), slot(2),
                             slots[0] < 'a', name.substr(0, 6) == "reduce", name == "reduce_sum"};
    program.remove_prefix(std::min(program.size(), end + 1));
  }
  if (!fits) return ffi::Error::InvalidArgument("weft.rows: there is no such program");
  const int64_t rows = (job.total + n - 1) / n, together = std::max<int64_t>(1, kWorth / n);
  ForEach(pool, (rows + together - 1) / together, Program::Run, &job);
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
XLA_FFI_DEFINE_HANDLER_SYMBOL(weft_rows, weft::Rows,
                              xla::ffi::Ffi::Bind()
                                  .Ctx<xla::ffi::ThreadPool>()
                                  .Attr<int64_t>("n")
                                  .RemainingArgs()
                                  .Ret<xla::ffi::AnyBuffer>()
                                  .Attr<std::string_view>("program"));
