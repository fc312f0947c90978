// The interpreter of programs: steps on each element of arrays, or along their rows.
//
// cpu/opcodes.py says what a program is and how it is written; opcodes.h has its tables. Kernels
// Kernels compute whole groups of elements, and slots have space for whole groups. If the length of
// a row is not a multiple of the group, the kernel reads beyond its end if the array continues
// there; otherwise it reads a padded copy. The results of such a row go through a slot.

#include "programs.h"

namespace weft {
namespace {

constexpr int64_t kMostOperands = 4;              // operands of a step
// Bounds that exclude overflow of products: elements, elements of a row, rows of a piece.
constexpr int64_t kMostCount = int64_t{1} << 40, kMostRow = 1 << 20, kMostPiece = 1 << 30;
constexpr int64_t kGap = 64;  // bytes between slots, so that they map to different cache sets
// Elements of short rows that a step computes at once: the call of a step takes as long as some 100 elements.
// Several blocks of 2,048 would fill the L1 cache; they were not faster.
constexpr int64_t kTogether = kMaxRow / 8;
constexpr int64_t kMemory = kMaxSlots * (kMaxRow * 4 + kGap);

int64_t RoundUp(int64_t count) { return (count + kGroup - 1) / kGroup * kGroup; }

// Integers that programs count rows and elements of rows by.
constexpr struct Counts {
  int32_t at[kMaxRow];
  constexpr Counts() : at() {
    for (int32_t i = 0; i < kMaxRow; ++i) at[i] = i;
  }
} kCounts;

bool IsShared(Kind kind) { return kind == Kind::kScalar || kind == Kind::kSharedRow; }

// Repeats the last of `count` elements up to the end of a group.
template <class T>
void PadAs(char* x, int64_t count) {
  T last;
  std::memcpy(&last, x + (count - 1) * sizeof(T), sizeof(T));
  for (int64_t i = count; i < RoundUp(count); ++i) std::memcpy(x + i * sizeof(T), &last, sizeof(T));
}
void PadGroup(char* x, int64_t count, int64_t width) {
  switch (width) {
    case 1: return PadAs<uint8_t>(x, count);
    case 2: return PadAs<uint16_t>(x, count);
    case 4: return PadAs<uint32_t>(x, count);
    default: return PadAs<uint64_t>(x, count);
  }
}

void CopyGroups(char* to, const char* from, int64_t count, int64_t width) {
  std::memcpy(to, from, count * width);
  PadGroup(to, count, width);
}

// Fills `size` bytes with copies of an element.
template <class T>
void FillAs(char* to, const char* from, int64_t size) {
  T x;
  std::memcpy(&x, from, sizeof(T));
  std::fill_n(reinterpret_cast<T*>(to), size / static_cast<int64_t>(sizeof(T)), x);
}
void Fill(char* to, const char* from, int64_t size, int64_t width) {
  switch (width) {
    case 1: return FillAs<uint8_t>(to, from, size);
    case 2: return FillAs<uint16_t>(to, from, size);
    case 4: return FillAs<uint32_t>(to, from, size);
    default: return FillAs<uint64_t>(to, from, size);
  }
}

struct Operand {
  const char* at;
  int64_t width;  // bytes of an element
  Kind kind;
  int64_t size;   // elements from `at` on
  bool copied;    // to its slot wherever a row does not end with a group
};

struct Step {
  Kernel kernel;
  Kind kind;
  int64_t slot, width, operands;
  struct {
    int64_t slot, width, array;  // `array`: the number of an operand, -1 for the result of a step
  } reads[kMostOperands];
  bool reduces;
  bool reads_on;  // it reads arrays beyond the end of a row
};

// One thread's step: the addresses of its operands, and of its result.
struct Call {
  Compute compute;
  const void* from[kMostOperands];
  char* to;
  bool of_one;  // of one element for each row
  bool by_row;  // of one row at a time: it reads or writes one element for each row
};

// An operand of a step that is an array, so that its address changes with each row.
struct Use {
  int64_t step, read, array;
};

class Program {
 public:
  // Reads a program, and checks it: no step reads or writes beyond an array or a slot then.
  bool Read(ffi::Span<const int64_t> code, ffi::RemainingArgs& xs, ffi::AnyBuffer& y);
  int64_t CountPieces() const { return (rows_ + piece_ - 1) / piece_; }
  void Run(int64_t piece) const;

 private:
  // The value that a slot has while a program is read.
  struct Value {
    bool known = false;
    bool kept = false;  // shared by rows, and read by each
    ffi::DataType type = ffi::PRED;
    Kind kind = Kind::kFull;
    int64_t array = -1;
  };
  bool AddStep(const int64_t* code);
  bool ReadOperand(int64_t k, int64_t kind, ffi::RemainingArgs& xs, int64_t& start);
  bool FitArrays(ffi::AnyBuffer& y, const int64_t* starts);
  bool FitSlots();
  void RunRow(int64_t first, int64_t count, char* memory, Call* calls) const;
  void CopyEnds(int64_t first, int64_t count, char* memory, Call* calls) const;
  void RunInParts(const Call& call, int64_t count) const;
  void RunByRow(const Step& step, const Call& call, int64_t rows) const;

  Operand operands_[kMaxSlots];
  Step steps_[kMaxSteps];
  Value values_[kMaxSlots];
  int64_t numbers_[kMaxSlots];  // the bits of operands that are part of the program
  int64_t given_ = 0, count_ = 0, shared_ = 0;  // operands; steps, and steps on shared values
  int64_t arrays_ = 0;  // operands of the call
  int64_t row_ = 0, piece_ = 0, rows_ = 0, total_ = 0, stride_ = 0;
  int64_t together_ = 1;  // rows that a step computes at once
  Use uses_[kMaxSteps * kMostOperands];
  int64_t used_ = 0;
  bool splits_ = true;  // elements are independent of each other: a block may be split
  bool keeps_ = true;   // slots hold rows, not only the incomplete groups at their ends
  bool pads_ = false;   // a function chooses a formula for all elements of a row
  bool repeats_ = false;  // operands have one element for each row
  char* out_ = nullptr;
};

bool Program::Read(ffi::Span<const int64_t> code, ffi::RemainingArgs& xs, ffi::AnyBuffer& y) {
  const int64_t size = code.size();
  int64_t next = 3, starts[kMaxSlots];
  if (size < next) return false;
  row_ = code[0], piece_ = code[1], given_ = code[2];
  if (row_ < 1 || row_ > kMostRow || piece_ < 1 || piece_ > kMostPiece || given_ < 0 ||
      given_ > kMaxSlots || size < next + 2 * given_) {
    return false;
  }
  for (int64_t k = 0; k < given_; ++k, next += 2) {
    starts[k] = code[next + 1];
    if (!ReadOperand(k, code[next], xs, starts[k])) return false;
  }
  if (arrays_ != static_cast<int64_t>(xs.size())) return false;
  while (next < size) {
    const int64_t op = code[next];
    if (op < 0 || op >= kOpcodes || size < next + 4 + kOperands[op] || !AddStep(&code[next])) return false;
    next += 4 + kOperands[op];
  }
  return FitArrays(y, starts) && FitSlots();
}

// Reads an operand: an array or a number of the call, or what the program holds.
bool Program::ReadOperand(int64_t k, int64_t code, ffi::RemainingArgs& xs, int64_t& start) {
  constexpr int64_t kKinds = static_cast<int64_t>(Kind::kFull) + 1;
  if (code < 0 || code > 1000) return false;
  const Kind kind = static_cast<Kind>(code % kKinds);
  ffi::DataType type = static_cast<ffi::DataType>(code / kKinds);
  const char* at = nullptr;
  int64_t size = 1;
  if (code < kKinds) {
    if (arrays_ == static_cast<int64_t>(xs.size())) return false;
    const auto x = xs.get<ffi::AnyBuffer>(arrays_++);
    if (!x) return false;  // it has no whole bytes
    type = x->element_type(), size = x->element_count(), at = static_cast<const char*>(x->untyped_data());
  } else if (kind == Kind::kScalar) {
    numbers_[k] = start, start = 0, at = reinterpret_cast<const char*>(&numbers_[k]);
    if (ffi::ByteWidth(type) < 1 || ffi::ByteWidth(type) > 8) return false;
  } else if (kind != Kind::kFull && type == ffi::S32) {
    at = reinterpret_cast<const char*>(kCounts.at), size = kMaxRow;
  } else {
    return false;
  }
  const bool repeated = kind == Kind::kPerRow;  // on each row, in its slot
  operands_[k] = {at, ffi::ByteWidth(type), kind, size, false};
  values_[k] = {true, false, type, repeated ? Kind::kFull : kind, repeated ? -1 : k};
  repeats_ = repeats_ || repeated;
  return true;
}

bool Reduces(int64_t op) {
  return op == op::kReduceSum || op == op::kReduceMax || op == op::kReduceSquares;
}

// Returns true if a step of this kind may read the value as its operand `i`. A step on rows cannot
// read one element a row, except where it broadcasts. A shared step reads shared values only.
bool MayRead(Kind step, int64_t op, int64_t i, Kind value) {
  if (IsShared(step)) return IsShared(value) && !Reduces(op);
  const bool of_row = value == Kind::kPerRow;
  if (op == op::kReduceSquares && i == 0) return step == Kind::kPerRow && (of_row || value == Kind::kScalar);
  if (Reduces(op)) return step == Kind::kPerRow && !of_row;
  if (op == op::kSpread) return step == Kind::kFull && value == Kind::kPerRow;
  return step == Kind::kFull ? value != Kind::kPerRow : value == Kind::kPerRow || value == Kind::kScalar;
}

// Adds a step: its opcode, the kind, dtype and slot of its result, the slots of its operands.
bool Program::AddStep(const int64_t* code) {
  const auto is_slot = [](int64_t slot) { return slot >= 0 && slot < kMaxSlots; };
  const int64_t op = code[0], count = kOperands[op], *const reads = code + 4;
  const ffi::DataType to = static_cast<ffi::DataType>(code[2]);
  if (count_ == kMaxSteps || code[1] < 0 || code[1] > static_cast<int64_t>(Kind::kFull)) return false;
  for (int64_t i = 0; i < count; ++i) {
    if (!is_slot(reads[i]) || !values_[reads[i]].known) return false;
  }
  const ffi::DataType from = values_[reads[count - 1]].type;
  Step& step = steps_[count_];
  step.kernel = FindArithmetic(op, from, to);
  if (!step.kernel.compute) step.kernel = FindFunction(op, from, to);
  step.kind = static_cast<Kind>(code[1]), step.slot = code[3], step.operands = count;
  step.width = ffi::ByteWidth(to);
  step.reduces = Reduces(op);
  step.reads_on = false;
  if (!step.kernel.compute || !is_slot(step.slot) || (IsShared(step.kind) && shared_ != count_)) return false;
  for (int64_t i = 0; i < count; ++i) {
    Value& x = values_[reads[i]];
    const int64_t width = ffi::ByteWidth(x.type);
    const bool in_memory = x.array >= 0 && x.kind == Kind::kFull;
    const bool first = i == 0;
    const ffi::DataType wanted = first && op == op::kSelectN         ? ffi::PRED
                                 : first && op == op::kReduceSquares ? ffi::F32
                                                                     : from;
    if (x.type != wanted) return false;
    if (!MayRead(step.kind, op, i, x.kind) || (reads[i] == step.slot && width != step.width)) return false;
    step.reads[i] = {reads[i], width, x.array};
    if (in_memory) uses_[used_++] = {count_, i, x.array};
    step.reads_on = step.reads_on || (in_memory && !step.kernel.whole);
    if (in_memory && step.kernel.whole && !step.reduces) operands_[x.array].copied = true;
    x.kept = x.kept || (IsShared(x.kind) && !IsShared(step.kind));
  }
  if (values_[step.slot].kept) return false;
  values_[step.slot] = {true, false, to, step.kind, -1};
  ++count_;
  if (IsShared(step.kind)) ++shared_;
  return true;
}

// Checks that all arrays have enough elements for the rows.
bool Program::FitArrays(ffi::AnyBuffer& y, const int64_t* starts) {
  if (count_ == shared_) return false;  // no step computes the result
  const Step& last = steps_[count_ - 1];
  const int64_t results = y.element_count();
  if (y.element_type() != values_[last.slot].type || results > kMostCount) return false;
  out_ = static_cast<char*>(y.untyped_data());
  total_ = last.kind == Kind::kFull ? results : results * row_;
  rows_ = (total_ + row_ - 1) / row_;
  bool in_rows = repeats_;
  for (int64_t s = 0; s < count_; ++s) {
    in_rows = in_rows || steps_[s].kind == Kind::kPerRow;
    pads_ = pads_ || (steps_[s].kernel.whole && !steps_[s].reduces);
  }
  for (int64_t k = 0; k < given_; ++k) {
    Operand& x = operands_[k];
    const int64_t size = x.size;
    const int64_t wanted = x.kind == Kind::kScalar   ? 1
                           : x.kind == Kind::kFull   ? total_
                           : x.kind == Kind::kPerRow ? rows_
                                                     : row_;
    if (starts[k] < 0 || starts[k] > size || wanted > size - starts[k]) return false;
    x.at += starts[k] * x.width, x.size = size - starts[k];
    in_rows = in_rows || x.kind == Kind::kSharedRow;
  }
  splits_ = !in_rows && !pads_;
  // An element for each row is stored as a group, so that there are no more rows than that.
  const bool groups = in_rows && row_ % kGroup == 0 && row_ > kGroup;
  if (groups) together_ = std::clamp<int64_t>(kTogether / row_, 1, kGroup);
  return !in_rows || total_ % row_ == 0;
}

// Checks that the slots fit into kMemory.
bool Program::FitSlots() {
  int64_t width = 1, slots = given_;
  keeps_ = !splits_ || count_ > 1;
  for (int64_t k = 0; k < given_; ++k) {
    width = std::max(width, operands_[k].width), keeps_ = keeps_ || IsShared(operands_[k].kind);
  }
  for (int64_t s = 0; s < count_; ++s) {
    width = std::max(width, steps_[s].width), slots = std::max(slots, steps_[s].slot + 1);
  }
  stride_ = (keeps_ ? RoundUp(std::min(row_ * together_, total_)) : kGroup) * width + kGap;
  return slots * stride_ <= kMemory;
}

// Computes `count` elements: rows, a row or a part of one.
void Program::RunRow(int64_t first, int64_t count, char* memory, Call* calls) const {
  const int64_t padded = RoundUp(count);
  const Step& last = steps_[count_ - 1];
  Call& end = calls[count_ - 1];
  const bool is_full = last.kind == Kind::kFull;
  char* const out = out_ + (is_full ? first : first / row_) * last.width;
  char* const slot = memory + last.slot * stride_;
  const bool in_parts = is_full && !last.kernel.whole && count < padded && count > kGroup;
  end.to = is_full && (in_parts || count == padded) ? out : slot;
  for (const Use* use = uses_; use < uses_ + used_; ++use) {
    const Operand& x = operands_[use->array];
    calls[use->step].from[use->read] = x.at + first * x.width;
  }
  for (int64_t k = 0; repeats_ && k < given_; ++k) {
    const Operand& x = operands_[k];
    if (x.kind != Kind::kPerRow) continue;
    char* const slot = memory + k * stride_;
    const char* const from = x.at + first / row_ * x.width;
    for (int64_t i = 0; i < count; i += row_) {
      Fill(slot + i * x.width, from + i / row_ * x.width, (i + row_ < count ? row_ : padded - i) * x.width, x.width);
    }
  }
  if (count < padded && !(in_parts && shared_ + 1 == count_)) CopyEnds(first, count, memory, calls);
  for (int64_t s = shared_; s < count_ - in_parts; ++s) {
    Call& call = calls[s];
    if (call.by_row) {
      RunByRow(steps_[s], call, count / row_);
    } else {
      call.compute(call.from, call.to, call.of_one ? kGroup : steps_[s].reduces ? count : padded);
    }
    if (count < padded && pads_ && steps_[s].reads_on) PadGroup(call.to, count, steps_[s].width);
  }
  if (in_parts) RunInParts(end, count);
  if (end.to == slot) std::memcpy(out, slot, (is_full ? count : count / row_) * last.width);
}

// Runs a step that reduces rows, or one that repeats an element along each row. The result may be in the
// place of an operand, so that elements are repeated from the last row on. A reduction writes a group of
// equal elements, so that those behind the last row are numbers of this program.
void Program::RunByRow(const Step& step, const Call& call, int64_t rows) const {
  const int64_t last = step.operands - 1;  // the operand that has rows
  const int64_t read = step.reads[last].width * (step.reduces ? row_ : 1);
  const int64_t written = step.width * (step.reduces ? 1 : row_);
  float ones[kGroup];  // of the other operand, one for each row
  if (last) std::memcpy(ones, call.from[0], rows * sizeof(float));
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t r = step.reduces ? i : rows - 1 - i;
    const void* from[] = {&ones[r], static_cast<const char*>(call.from[last]) + r * read};
    call.compute(from + (last ? 0 : 1), call.to + r * written, row_);
  }
}

// Copies operands that end before the last group does, or whose elements behind the row would
// count.
void Program::CopyEnds(int64_t first, int64_t count, char* memory, Call* calls) const {
  for (int64_t k = 0; k < given_; ++k) {
    const Operand& x = operands_[k];
    if (x.kind != Kind::kFull || !(x.copied || RoundUp(count) > x.size - first)) continue;
    char* const slot = memory + k * stride_;
    CopyGroups(slot, x.at + first * x.width, count, x.width);
    for (const Use* use = uses_; use < uses_ + used_; ++use) {
      if (use->array == k) calls[use->step].from[use->read] = slot;
    }
  }
}

// Runs the last step of a row on all whole groups; the last group overlaps the one before it.
void Program::RunInParts(const Call& call, int64_t count) const {
  const Step& step = steps_[count_ - 1];
  const int64_t again = count - kGroup;
  const void* from[kMostOperands];
  for (int64_t i = 0; i < step.operands; ++i) {
    from[i] = static_cast<const char*>(call.from[i]) + again * step.reads[i].width;
  }
  call.compute(call.from, call.to, count / kGroup * kGroup);
  call.compute(from, call.to + again * step.width, kGroup);
}

void Program::Run(int64_t piece) const {
  alignas(64) char memory[kMemory];
  const char* at[kMaxSlots];
  Call calls[kMaxSteps];
  const int64_t length = std::min(row_ * together_, total_);
  for (int64_t k = 0; k < given_; ++k) {
    const Operand& x = operands_[k];
    char* const slot = memory + k * stride_;
    at[k] = x.kind == Kind::kSharedRow && row_ % kGroup == 0 && together_ == 1 ? x.at : slot;
    if (x.kind == Kind::kScalar) Fill(slot, x.at, RoundUp(length) * x.width, x.width);
    for (int64_t i = 0; x.kind == Kind::kSharedRow && at[k] == slot && i < length; i += row_) {
      CopyGroups(slot + i * x.width, x.at, row_, x.width);
    }
  }
  for (int64_t s = 0; s < count_; ++s) {
    const Step& step = steps_[s];
    Call& call = calls[s];
    call.compute = step.kernel.compute, call.to = memory + step.slot * stride_;
    call.of_one = step.kind == Kind::kPerRow && !step.reduces;
    call.by_row = together_ > 1 && (step.reduces || step.kernel.op == op::kSpread);
    for (int64_t i = 0; i < step.operands; ++i) {
      const auto& x = step.reads[i];
      call.from[i] = x.array >= 0 ? at[x.array] : memory + x.slot * stride_;
    }
    if (s < shared_) call.compute(call.from, call.to, RoundUp(length));
  }
  const int64_t size = piece_ * row_, end = std::min(total_, (piece + 1) * size);
  for (int64_t first = piece * size; first < end;) {
    int64_t count = std::min(keeps_ ? row_ * together_ : size, end - first);
    if (splits_ && shared_ + 1 < count_ && count > kGroup) count = count / kGroup * kGroup;
    RunRow(first, count, memory, calls);
    first += count;
  }
}

ffi::Error RunProgram(ffi::ThreadPool pool, ffi::Span<const int64_t> program, ffi::RemainingArgs xs,
                      ffi::Result<ffi::AnyBuffer> y) {
  Program job;
  if (!job.Read(program, xs, *y)) {
    return ffi::Error::InvalidArgument("the program must be one for such operands and such a result");
  }
  ForEach(pool, job.CountPieces(), [&](int64_t piece) { job.Run(piece); });
  return ffi::Error::Success();
}

}  // namespace
}  // namespace weft

XLA_FFI_DEFINE_HANDLER_SYMBOL(weft_program, weft::RunProgram,
                              xla::ffi::Ffi::Bind()
                                  .Ctx<xla::ffi::ThreadPool>()
                                  .Attr<xla::ffi::Span<const int64_t>>("program")
                                  .RemainingArgs()
                                  .Ret<xla::ffi::AnyBuffer>());
