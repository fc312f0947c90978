// Includes WEFT_FILE once for each kind of processor, in a namespace of its own, with vectors of
// WEFT_BYTES.
//
// The compiler splits vectors in functions that may not use a processor's instructions, and only then
// inlines them into functions that may. So all functions of such a file are compiled for each kind:
// WEFT_HERE are inlined, WEFT_HERE_MEMBER too, WEFT_HERE_CALLED are not.

#define WEFT_HERE_CALLED WEFT_HERE_FOR
#define WEFT_HERE WEFT_HERE_FOR static WEFT_INLINE
#define WEFT_HERE_MEMBER WEFT_HERE_FOR WEFT_INLINE

namespace weft {
namespace {

#ifdef WEFT_AVX512
namespace by512 {
#define WEFT_BYTES 64
#define WEFT_HERE_FOR WEFT_FOR("avx512f,avx512dq,avx512vl,avx2,fma")
#include WEFT_FILE
#undef WEFT_BYTES
#undef WEFT_HERE_FOR
}  // namespace by512
#endif

#ifdef __x86_64__
namespace by256 {
#define WEFT_BYTES 32
#define WEFT_HERE_FOR WEFT_FOR("avx2,fma,f16c")
#include WEFT_FILE
}  // namespace by256
#else
namespace by128 {
#define WEFT_BYTES 16
#define WEFT_HERE_FOR
#include WEFT_FILE
}  // namespace by128
#endif

// A name of the namespace for this processor.
#ifdef WEFT_AVX512
bool HasLongVectors() {
  static const bool found = VectorBytes() == 64 && __builtin_cpu_supports("avx512dq") &&
                            __builtin_cpu_supports("avx512vl");
  return found;
}
#define WEFT_BEST(name) (HasLongVectors() ? by512::name : by256::name)
#elif defined(__x86_64__)
#define WEFT_BEST(name) by256::name
#else
#define WEFT_BEST(name) by128::name
#endif

}  // namespace
}  // namespace weft
