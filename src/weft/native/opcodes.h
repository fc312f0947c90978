// Written by tools/make_opcodes.py from cpu/opcodes.py and the facts of primitives.

#ifndef WEFT_NATIVE_OPCODES_H_
#define WEFT_NATIVE_OPCODES_H_

#include "ffi.h"

namespace weft {

namespace op {
enum Code : int64_t {
  kAbs, kSign, kNeg, kNot, kFloor, kCeil, kRound, kIsFinite, kSquare, kInverse, kConvertElementType,
  kSin, kCos, kTan, kAsin, kAcos, kAtan, kSinh, kCosh, kAsinh, kAcosh, kAtanh, kExp, kExp2, kExpm1,
  kLog, kLog2, kLog1p, kLogistic, kLogit, kTanh, kCbrt, kSqrt, kRsqrt, kErf, kErfc, kErfInv, kGelu,
  kLoadMask, kStoreMask, kRoundFloat16, kRoundBfloat16, kReduceSum, kReduceMax, kSpread, kAdd, kSub,
  kMul, kDiv, kMax, kMin, kAtLeast, kAtMost, kEq, kNe, kGt, kGe, kLt, kLe, kAnd, kOr, kXor, kRem,
  kAtan2, kPow, kPowerOf, kLogaddexp, kIgamma, kIgammac, kZeta, kZetaSingle, kMaskEq, kMaskNe,
  kMaskLt, kMaskLe, kKeep, kDrop, kJoin, kSelectN, kClamp, kChooseEq, kChooseNe, kChooseGt,
  kChooseGe, kChooseLt, kChooseLe, kReplaceEq, kReplaceNe, kReplaceGt, kReplaceGe, kReplaceLt,
  kReplaceLe, kReduceSquares, kMultiplyAdd, kMultiplySubtract, kSubtractProduct
};
}  // namespace op

constexpr int64_t kOpcodes = 96;
// The operands that each opcode has.
constexpr int8_t kOperands[kOpcodes] = {
  1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
  1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2,
  2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3, 3, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 2, 3, 3, 3
};

enum class Kind : int64_t { kScalar, kPerRow, kSharedRow, kFull };

constexpr int64_t kMaxSlots = 16, kMaxSteps = 80, kMaxRow = 4096;

static_assert(ffi::PRED == 1);
static_assert(ffi::S8 == 2);
static_assert(ffi::S32 == 4);
static_assert(ffi::S64 == 5);
static_assert(ffi::U8 == 6);
static_assert(ffi::F16 == 10);
static_assert(ffi::F32 == 11);
static_assert(ffi::F64 == 12);
static_assert(ffi::BF16 == 16);

}  // namespace weft

#endif  // WEFT_NATIVE_OPCODES_H_
