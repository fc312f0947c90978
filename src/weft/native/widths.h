// Includes WEFT_LANES once for each vector width, compiled for processors with these vectors. Each
// width has its own namespace. Baseline functions cannot be used even if they are inlined: the
// compiler lowers their wide vectors before it inlines.

#include <type_traits>
#include <utility>

#include "tiles.h"

namespace weft {

// The integer type of a lane of a comparison's result, as wide as T.
template <class T>
using Mask = std::conditional_t<sizeof(T) == 8, int64_t, int32_t>;

namespace {

#ifdef __AVX2__
#ifdef WEFT_AVX512
// The bytes of vectors.
int LaneBytes() {
  static const bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
  return wide ? 64 : 32;
}
}  // namespace

// What is the same for a width that the processor has.
#define WEFT_PICK(...) (LaneBytes() == 64 ? w64::__VA_ARGS__ : w32::__VA_ARGS__)

#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx512f,avx512dq,avx512bw,avx512vl,avx2,fma"))), \
                             apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512dq,avx512bw,avx512vl,avx2,fma")
#endif
namespace w64 {
constexpr int kBytes = 64;
#include "lanes.h"
#include WEFT_LANES
}  // namespace w64
#ifdef __clang__
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#else
int LaneBytes() { return 32; }
}  // namespace
#define WEFT_PICK(...) w32::__VA_ARGS__
#endif

#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#endif
namespace w32 {
constexpr int kBytes = 32;
#include "lanes.h"
#include WEFT_LANES
}  // namespace w32
#ifdef __clang__
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#else
int LaneBytes() { return 16; }
}  // namespace
#define WEFT_PICK(...) w16::__VA_ARGS__

namespace w16 {
constexpr int kBytes = 16;
#include "lanes.h"
#include WEFT_LANES
}  // namespace w16
#endif

}  // namespace weft
