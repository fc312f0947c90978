// Attention, block by block: means of values, weighted by the softmax of products of queries and keys,
// which are not kept; and its derivatives, for which they are computed again.

#include <cfloat>
#include <cmath>

#include "common.h"

namespace weft {
namespace {

constexpr int64_t kQueries = 64, kKeys = 64;  // of a block
constexpr int64_t kPieces = 8;                // that are cut at least, where there is as much

struct Attention {
  const float *q, *k, *v;    // [batch, queries, heads, size], [batch, keys, heads / groups, size]
  float *out, *logs;         // as q; of the sums of weights, [batch, heads, queries]
  const float *ct, *ct_logs;
  float *dq, *dk, *dv;       // null where not wanted
  float scale;
  int64_t left, right;       // how many keys before and behind a query's own place count
  int64_t batch, queries, heads, size, keys, groups;
  int64_t parts, wide;       // of the keys, each with a dq of its own; the size as whole tiles
};

}  // namespace
}  // namespace weft

#define WEFT_LANES "attention_lanes.h"
#include "widths.h"

namespace weft {
namespace {

using Floats = ffi::Buffer<ffi::F32, 4>;
using Sums = ffi::Buffer<ffi::F32, 3>;

// Calls work(job, i, room) for all i, as much at a time as is worth a thread.
ffi::Error Run(ffi::ThreadPool& pool, const Attention& job, int64_t count, int64_t together, int64_t size,
               void (*work)(const Attention&, int64_t, float*)) {
  std::atomic<bool> done{true};
  ForEach(pool, (count + together - 1) / together, [&](int64_t piece) {
    const auto room = Allocate<float>(size + 16);
    if (!room) return void(done = false);
    float* const start = room.get() + (64 - reinterpret_cast<uintptr_t>(room.get()) % 64) / 4;
    std::memset(start, 0, size * sizeof(float));  // what is no number may take long
    for (int64_t i = piece * together; i < std::min(count, (piece + 1) * together); ++i) {
      work(job, i, start);
    }
  });
  return done ? ffi::Error::Success() : OutOfMemory("weft.attention");
}

bool Fill(Attention& job, const Floats& q, const Floats& k, const Floats& v) {
  const auto x = q.dimensions(), y = k.dimensions();
  if (x[0] != y[0] || x[3] != y[3] || y != v.dimensions() || !y[2] || x[2] % y[2]) return false;
  job.q = q.typed_data(), job.k = k.typed_data(), job.v = v.typed_data();
  job.batch = x[0], job.queries = x[1], job.heads = x[2], job.size = x[3], job.keys = y[1];
  const int64_t panel = 2 * LaneBytes() / sizeof(float);
  job.groups = x[2] / y[2], job.wide = (x[3] + panel - 1) / panel * panel;
  return true;
}

ffi::Error AttendAll(ffi::ThreadPool pool, Floats q, Floats k, Floats v, ffi::Result<Floats> out,
                     ffi::Result<Sums> logs, float scale, int64_t left, int64_t right) {
  Attention job{};
  if (!Fill(job, q, k, v) || out->dimensions() != q.dimensions() ||
      static_cast<int64_t>(logs->element_count()) != job.batch * job.heads * job.queries) {
    return ffi::Error::InvalidArgument("weft.attention: sizes do not fit together");
  }
  job.out = out->typed_data(), job.logs = logs->typed_data();
  job.scale = scale, job.left = left, job.right = right;
  const int64_t blocks = job.batch * job.heads * ((job.queries + kQueries - 1) / kQueries);
  const int64_t size = kKeys * kQueries + (kQueries + kKeys) * 2 * job.wide;
  return Run(pool, job, blocks, 1 + blocks / (4 * kPieces), size, WEFT_PICK(Attend));
}

// Of what is not wanted the result is empty.
ffi::Error DifferentiateAll(ffi::ThreadPool pool, Floats q, Floats k, Floats v, Floats out, Sums logs,
                            Floats ct, Sums ct_logs, ffi::Result<Floats> dq, ffi::Result<Floats> dk,
                            ffi::Result<Floats> dv, float scale, int64_t left, int64_t right) {
  Attention job{};
  const int64_t count = q.element_count();
  const auto fits = [](const Floats& x, const Floats& y) {
    return !x.element_count() || x.dimensions() == y.dimensions();
  };
  if (!Fill(job, q, k, v) || out.dimensions() != q.dimensions() || ct.dimensions() != q.dimensions() ||
      logs.dimensions() != ct_logs.dimensions() || !fits(*dq, q) || !fits(*dk, k) || !fits(*dv, v) ||
      static_cast<int64_t>(logs.element_count()) != job.batch * job.heads * job.queries) {
    return ffi::Error::InvalidArgument("weft.attention_grad: sizes do not fit together");
  }
  job.out = out.typed_data(), job.logs = logs.typed_data();
  job.ct = ct.typed_data(), job.ct_logs = ct_logs.typed_data();
  job.scale = scale, job.left = left, job.right = right;
  const auto wanted = [](const Floats& x) { return x.element_count() ? x.typed_data() : nullptr; };
  job.dq = wanted(*dq), job.dk = wanted(*dk), job.dv = wanted(*dv);
  const int64_t lines = job.batch * job.heads / job.groups, blocks = (job.keys + kKeys - 1) / kKeys;
  job.parts = std::max<int64_t>(1, std::min(blocks, kPieces / lines));
  const auto parted = Allocate<float>(job.parts > 1 && job.dq ? job.parts * count : 1);
  if (!parted) return OutOfMemory("weft.attention_grad");
  if (job.parts > 1 && job.dq) job.dq = parted.get();
  const int64_t part = (blocks + job.parts - 1) / job.parts * kKeys;
  const int64_t size = 2 * kKeys * kQueries + (5 * kQueries + 4 * part) * job.wide;
  const auto error = Run(pool, job, lines * job.parts, 1, size, WEFT_PICK(Differentiate));
  if (job.dq != parted.get() || !error.success()) return error;
  ForEach(pool, (count + kPiece - 1) / kPiece, [&](int64_t piece) {
    float* const to = dq->typed_data();
    for (int64_t i = piece * kPiece; i < std::min(count, (piece + 1) * kPiece); ++i) {
      to[i] = job.dq[i];
      for (int64_t p = 1; p < job.parts; ++p) to[i] += job.dq[p * count + i];
    }
  });
  return error;
}

}  // namespace
}  // namespace weft

XLA_FFI_DEFINE_HANDLER_SYMBOL(weft_attention, weft::AttendAll,
                              xla::ffi::Ffi::Bind()
                                  .Ctx<xla::ffi::ThreadPool>()
                                  .Attr<float>("scale")
                                  .Attr<int64_t>("left")
                                  .Attr<int64_t>("right"));
XLA_FFI_DEFINE_HANDLER_SYMBOL(weft_attention_grad, weft::DifferentiateAll,
                              xla::ffi::Ffi::Bind()
                                  .Ctx<xla::ffi::ThreadPool>()
                                  .Attr<float>("scale")
                                  .Attr<int64_t>("left")
                                  .Attr<int64_t>("right"));
