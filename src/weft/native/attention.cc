// Attention: means of values, weighted by the softmax of products of queries and keys, and cotangents
// of these three. Weights are computed block by block, and again for the cotangents.

#include <cfloat>
#include <cmath>

#include "common.h"

namespace weft {
namespace {

constexpr int64_t kQueries = 64, kKeys = 64;          // of a block
constexpr int64_t kPieces = 8, kWorth = 32 * kPiece;  // that work is cut into, products of one

// Values for pairs of queries and keys: one for each key, and steps from query to query, head to head and
// batch to batch, which are 0 where these share the values. `first` is null if there are no values.
template <class T>
struct Pairs {
  const T* first;
  int64_t query, head, batch;
  const T* Find(int64_t line, int64_t heads, int64_t start) const {
    return first ? first + line / heads * batch + line % heads * head + start * query : nullptr;
  }
};

struct Attention {
  const float *q, *k, *v;  // [batch, queries, heads, size], [batch, keys, heads / groups, size]
  float *out, *logs;       // as q; of the sums of weights, [batch, queries, heads]
  const float *ct, *ct_logs;
  float *dq, *dk, *dv;     // null where not wanted
  float scale;
  int64_t left, right;     // the numbers of keys that count before and after a query's own position
  int64_t heads, queries, keys, groups, size;
  int64_t wide, tall, deep;      // size, queries and keys of a block, rounded up to whole tiles
  int64_t count, blocks, parts;  // of q; of queries that share keys; of keys, each with its dq
  // Attention that is written by operations has a mask, and may have a bias. Scores are products times
  // `scale`, plus the bias, and `fill` where the mask is 0. In place of logs there are the largest score of
  // each query and, behind them all, the sum of its exponentials.
  Pairs<uint8_t> mask;
  Pairs<float> bias;
  float fill;
  bool finite;  // all values, and operands of a gradient, are: a weight of 0 then adds nothing
  int64_t totals;  // the place of the first of these sums
};

// The rows of a line: the queries of all heads that share keys.
struct Rows {
  int64_t at, stride, groups, size;
  int64_t operator[](int64_t i) const { return at + i / groups * stride + i % groups * size; }
};

constexpr int64_t Whole(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }

}  // namespace
}  // namespace weft

#define WEFT_LANES "attention_lanes.h"
#include "widths.h"

namespace weft {
namespace {

using Floats = ffi::Buffer<ffi::F32, 4>;

// Calls work(job, i, room) for each i below `count`, on several threads. Each thread takes
// `together` values of i at a time and has scratch memory (`room`) for `size` floats.
ffi::Error Spread(ffi::ThreadPool& pool, const Attention& job, int64_t count, int64_t together,
                  int64_t size, void (*work)(const Attention&, int64_t, float*)) {
  std::atomic<bool> done{true};
  ForEach(pool, (count + together - 1) / together, [&](int64_t piece) {
    const auto room = Allocate<float>(size);
    if (!room) return void(done = false);
    for (int64_t i = piece * together; i < std::min(count, (piece + 1) * together); ++i) {
      work(job, i, room.get());
    }
  });
  return done ? ffi::Error::Success() : OutOfMemory();
}

ffi::Error PullBack(ffi::ThreadPool& pool, Attention job, int64_t lines) {
  const int64_t blocks = (job.keys + kKeys - 1) / kKeys;
  const int64_t each = 4 * job.groups * job.queries * job.keys * job.size;  // products of a line
  job.parts = std::max<int64_t>(1, std::min({blocks, kPieces / lines, each / kWorth}));
  const int64_t rows = (blocks + job.parts - 1) / job.parts * kKeys;
  const int64_t size = (2 * kQueries + 16 + 3 * job.tall + 4 * std::min(rows, blocks * job.deep)) *
                           job.wide + 2 * job.deep * kQueries;
  const bool cut = job.dq && job.parts > 1;
  const auto room = Allocate<float>(cut ? job.parts * job.count : 1);
  if (!room) return OutOfMemory();
  float* const dq = job.dq;
  if (cut) job.dq = room.get();
  const auto error = Spread(pool, job, lines * job.parts, 1 + kWorth / each, size, WEFT_PICK(Pull));
  if (cut) std::memcpy(dq, job.dq, job.count * sizeof(float));
  for (int64_t part = 1; cut && part < job.parts; ++part) {
    for (int64_t i = 0; i < job.count; ++i) dq[i] += room[part * job.count + i];
  }
  return error;
}

void SetSizes(Attention& job, float scale, int64_t queries, int64_t keys, int64_t heads, int64_t kept,
              int64_t width) {
  const int64_t panel = LaneBytes() / 2;
  job.scale = scale, job.heads = heads, job.queries = queries, job.keys = keys;
  job.groups = heads / kept, job.size = width, job.wide = Whole(width, panel);
  job.blocks = (job.queries * job.groups + kQueries - 1) / kQueries;
  job.tall = std::min(kQueries, Whole(job.queries * job.groups, panel));
  job.deep = std::min(kKeys, Whole(job.keys, 8));
}

ffi::Error AttendAll(ffi::ThreadPool& pool, const Attention& job, int64_t lines) {
  const int64_t all = lines * job.blocks, worth = kWorth / (2 * job.tall * job.keys * job.size);
  const int64_t size = (kQueries + 16 + 2 * job.deep + job.tall) * job.wide + job.deep * kQueries;
  return Spread(pool, job, all, 1 + std::max(worth, all / (4 * kPieces)), size, WEFT_PICK(Attend));
}

// Operands and results beyond those that all calls have.
struct Further {
  const ffi::RemainingArgs& args;
  ffi::RemainingRets& results;
  bool fits;
  const float* Operand(size_t i, size_t count) {
    auto found = args.get<ffi::Buffer<ffi::F32>>(i);
    fits = fits && found && found->element_count() == count;
    return fits ? found->typed_data() : nullptr;
  }
  // Null if the result is empty.
  float* Result(size_t i, size_t count) {
    auto found = results.get<ffi::Buffer<ffi::F32>>(i);
    const size_t size = found ? (*found)->element_count() : 1;
    fits = fits && found && (!size || size == count);
    return fits && size ? (*found)->typed_data() : nullptr;
  }
  // Reads the results of attention, or its results and a cotangent as operands, and the cotangents of q, k
  // and v as results. `logs` is the number of logs.
  void Read(Attention& job, size_t count, size_t pairs, size_t logs) {
    if (args.empty()) {
      job.out = Result(0, count), job.logs = Result(1, logs);
      return;
    }
    job.out = const_cast<float*>(Operand(0, count)), job.logs = const_cast<float*>(Operand(1, logs));
    job.ct = Operand(2, count);
    job.dq = Result(0, count), job.dk = Result(1, pairs), job.dv = Result(2, pairs);
  }
};

// For cotangents, the further operands are out, logs and their cotangents. Empty results are not
// computed.
ffi::Error Run(ffi::ThreadPool pool, Floats q, Floats k, Floats v, ffi::RemainingArgs more,
               ffi::RemainingRets results, float scale, int64_t left, int64_t right) {
  Size batch, queries, keys, heads, kept, width;
  const bool forward = more.empty();
  Further further{more, results,
                  Fits(q, batch, queries, heads, width) && Fits(k, batch, keys, kept, width) &&
                      Fits(v, batch, keys, kept, width) && kept && heads % kept == 0 &&
                      (forward || more.size() == 4) && results.size() == (forward ? 2 : 3)};
  const size_t count = q.element_count(), pairs = k.element_count();
  const size_t rows = further.fits ? batch * queries * heads : 0;
  Attention job{q.typed_data(), k.typed_data(), v.typed_data()};
  further.Read(job, count, pairs, rows);
  if (!forward) job.ct_logs = further.Operand(3, rows);
  if (!further.fits || !pairs || !count) {
    return ffi::Error::InvalidArgument(
        "operands must be q [batch, queries, heads, size], k and v [batch, keys, heads / groups, size], "
        "not empty, and results means like q and logs [batch, queries, heads], or none; or these and "
        "their cotangents operands too, and results cotangents of q, k and v, or none");
  }
  if (forward && !(job.out && job.logs)) {
    return ffi::Error::InvalidArgument("means and logs must be results");
  }
  // A query may be before all keys, and behind them all: there a span ends anyway.
  const auto end = [=](int64_t span) { return std::clamp<int64_t>(span, -queries - keys, queries + keys); };
  job.left = end(left), job.right = end(right), job.count = count;
  SetSizes(job, scale, queries, keys, heads, kept, width);
  return forward ? AttendAll(pool, job, batch * kept) : PullBack(pool, job, batch * kept);
}

bool AreFinite(const float* x, int64_t count) {
  uint32_t carries = 0;  // the highest bit is set if all bits of an exponent are
  for (int64_t i = 0; i < count; ++i) {
    uint32_t bits;
    std::memcpy(&bits, x + i, sizeof(bits));
    carries |= (bits & 0x7FFFFFFF) + 0x00800000;
  }
  return carries >> 31 == 0;
}

// Reads values for pairs, [batch or 1, heads or 1, queries or 1, keys]. Returns false for other shapes.
template <class B, class T>
bool ReadPairs(const B& from, Pairs<T>& to, int64_t batch, int64_t heads, int64_t queries, int64_t keys) {
  const auto shape = from.dimensions();
  to = {reinterpret_cast<const T*>(from.typed_data()), shape[2] == 1 ? 0 : keys,
        shape[1] == 1 ? 0 : shape[2] * keys, shape[0] == 1 ? 0 : shape[1] * shape[2] * keys};
  const auto fits = [&](int i, int64_t size) { return shape[i] == 1 || shape[i] == size; };
  return fits(0, batch) && fits(1, heads) && fits(2, queries) && shape[3] == keys;
}

// Attention that is written by operations. Each query has keys of its own head. Without further operands,
// the results are means and, unless that result is empty, what the cotangents need of each query. Further
// operands are these results and the cotangent of the means. Empty cotangents are not computed.
ffi::Error RunMasked(ffi::ThreadPool pool, Floats q, Floats k, Floats v, ffi::Buffer<ffi::F32, 0> scale,
                     Floats bias, ffi::Buffer<ffi::PRED, 4> mask, ffi::Buffer<ffi::F32, 0> fill,
                     ffi::RemainingArgs more, ffi::RemainingRets results) {
  Size batch, queries, keys, heads, width;
  const bool forward = more.empty();
  const size_t count = q.element_count(), pairs = k.element_count();
  Further further{more, results,
                  Fits(q, batch, queries, heads, width) && Fits(k, batch, keys, heads, width) &&
                      Fits(v, batch, keys, heads, width) && (forward || more.size() == 3) &&
                      results.size() == (forward ? 2 : 3)};
  Attention job{q.typed_data(), k.typed_data(), v.typed_data()};
  const size_t rows = further.fits ? batch * queries * heads : 0;
  further.Read(job, count, pairs, 2 * rows);
  if (!further.fits || !count || !pairs || !job.out ||
      !ReadPairs(mask, job.mask, batch, heads, queries, keys) ||
      (bias.element_count() && !ReadPairs(bias, job.bias, batch, heads, queries, keys))) {
    return ffi::Error::InvalidArgument(
        "operands must be q [batch, queries, heads, size], k and v [batch, keys, heads, size], not empty, a "
        "scale, a bias and a mask [batch or 1, heads or 1, queries or 1, keys] (the bias may be empty) and a "
        "number, and results means like q and [2, batch, queries, heads], or none; or these and the means' "
        "cotangent operands too, and results cotangents of q, k and v, or none");
  }
  job.fill = *fill.typed_data(), job.totals = rows, job.count = count;
  // only blocks of keys that a mask leaves out are skipped
  job.finite = std::memchr(mask.typed_data(), 0, mask.element_count()) && AreFinite(job.v, pairs);
  if (!forward) {
    job.finite = job.finite && AreFinite(job.q, count) && AreFinite(job.k, pairs) && AreFinite(job.ct, count);
  }
  job.left = job.right = queries + keys;
  SetSizes(job, *scale.typed_data(), queries, keys, heads, heads, width);
  return forward ? AttendAll(pool, job, batch * heads) : PullBack(pool, job, batch * heads);
}

}  // namespace
}  // namespace weft

XLA_FFI_DEFINE_HANDLER_SYMBOL(weft_masked_attention, weft::RunMasked,
                              xla::ffi::Ffi::Bind().Ctx<xla::ffi::ThreadPool>());
XLA_FFI_DEFINE_HANDLER_SYMBOL(weft_attention, weft::Run,
                              xla::ffi::Ffi::Bind()
                                  .Ctx<xla::ffi::ThreadPool>()
                                  .Attr<float>("scale")
                                  .Attr<int64_t>("left")
                                  .Attr<int64_t>("right"));
