// The identity of its operands, as a barrier: XLA does not fuse the operands' computations with
// later ones. Nothing is copied if the results share the buffers of the operands.

#include "common.h"

namespace weft {
namespace {

ffi::Error Keep(ffi::RemainingArgs xs, ffi::RemainingRets ys) {
  bool fits = xs.size() == ys.size();
  for (size_t i = 0; fits && i < xs.size(); ++i) {
    const auto x = xs.get<ffi::AnyBuffer>(i);
    auto y = ys.get<ffi::AnyBuffer>(i);
    fits = x && y && AreAlike(*x, **y) && x->dimensions() == (*y)->dimensions();
  }
  if (!fits) return ffi::Error::InvalidArgument("results must be like the operands");
  for (size_t i = 0; i < xs.size(); ++i) {
    const auto x = xs.get<ffi::AnyBuffer>(i);
    auto y = ys.get<ffi::AnyBuffer>(i);
    void* const to = (*y)->untyped_data();
    if (to != x->untyped_data()) std::memcpy(to, x->untyped_data(), x->size_bytes());
  }
  return ffi::Error::Success();
}

}  // namespace
}  // namespace weft

XLA_FFI_DEFINE_HANDLER_SYMBOL(weft_keep, weft::Keep,
                              xla::ffi::Ffi::Bind().RemainingArgs().RemainingRets());
