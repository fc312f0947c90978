// Included once for each vector width. Queries are in vector lanes, keys in rows.
//
// Buffers are padded to whole tiles. The results of the padding are discarded.

using F = Lanes<float>;
using UJ = Lanes<uint32_t>;  // sums of bits, which wrap
constexpr int64_t kRows = kBytes == 64 ? 8 : 4, kPanel = 2 * kLanes<float>;  // of a tile
constexpr int64_t kStep = kQueries / kLanes<float>;  // from key to key of a block

// e**x for x up to 88 and NaN, as in singles.h; below -87 it is 0.
WEFT_INLINE F Exponential(F x) {
  constexpr float kExp[] = {1, 1, 0.5f, 0.166666672f, 0.041666314f, 0.00833321549f, 0.00139443402f,
                            0.000199647795f};
  const F held = x < -87 ? F{} - 87 : x, k = held * 1.44269502f + 0x1.8p23f, m = k - 0x1.8p23f;
  const F r = m * -1.42860677e-6f + (m * -0.693145752f + held);
  F y = F{} + kExp[7];
  for (int i = 6; i >= 0; --i) y = y * r + kExp[i];
  y = (F)((UJ)y + ((UJ)k << 23));
  return x < -87 ? F{} : x == x ? y : x;
}

// Stores in `to`, or adds to it, the sums over i of left[row, i] right[i, column], as whole tiles. The sums
// are added up by themselves first, which rounds less.
// `row` and `step` are the strides of `left`.
WEFT_WIDE void Multiply(const float* left, int64_t row, int64_t step, const float* right,
                        int64_t width, int64_t depth, int64_t rows, int64_t columns, float* to,
                        int64_t stride, bool add) {
  for (int64_t column = 0; column < columns; column += kPanel) {
    for (int64_t first = 0; first < rows; first += kRows) {
      F sums[kRows][2] = {};
      const float *x = left + first * row, *y = right + column;
      float* out = to + first * stride + column;
      for (int64_t i = 0; i < depth; ++i, x += step, y += width) {
        F a, b;
        std::memcpy(&a, y, kBytes);
        std::memcpy(&b, y + kLanes<float>, kBytes);
        for (int64_t r = 0; r < kRows; ++r) {
          sums[r][0] += x[r * row] * a;
          sums[r][1] += x[r * row] * b;
        }
      }
      for (int64_t r = 0; r < kRows; ++r, out += stride) {
        for (int64_t j = 0; add && j < 2; ++j) sums[r][j] += Load<F>(out + j * kLanes<float>);
        std::memcpy(out, sums[r], 2 * kBytes);
      }
    }
  }
}

// Copies rows, times a number, to rows that are `wide` apart; and back.
void Pack(const float* from, const Rows& rows, int64_t first, int64_t count, float scale, float* to,
          int64_t wide) {
  for (int64_t i = 0; i < count; ++i, to += wide) {
    for (int64_t j = 0; j < rows.size; ++j) to[j] = from[rows[first + i] + j] * scale;
  }
}
void Unpack(const float* from, int64_t wide, const Rows& rows, int64_t first, int64_t count,
            float scale, float* to) {
  for (int64_t i = 0; i < count; ++i, from += wide) {
    for (int64_t j = 0; j < rows.size; ++j) to[rows[first + i] + j] = from[j] * scale;
  }
}

// Some queries that share keys: times `early` to `late`, and their keys, `begin` to `end`.
struct Block {
  Rows q, k, logs;
  int64_t first, used, columns, rows, early, late, begin, end;
  Block(const Attention& job, int64_t line, int64_t index) {
    const int64_t kept = job.heads / job.groups, batch = line / kept, row = kept * job.size;
    const int64_t at = batch * job.queries * job.heads + line % kept * job.groups;
    q = {at * job.size, job.heads * job.size, job.groups, job.size};
    k = {batch * job.keys * row + line % kept * job.size, row, 1, job.size};
    logs = {at, job.heads, job.groups, 1};
    first = index * kQueries, used = std::min(kQueries, job.queries * job.groups - first);
    columns = Whole(used, kPanel), rows = Whole(used, kRows);
    early = first / job.groups, late = (first + used - 1) / job.groups;
    begin = std::max<int64_t>(0, early - job.left) / kKeys * kKeys;
    end = std::min(job.keys, late + job.right + 1);
  }
};

// Transposes rows into lanes; missing rows repeat the last one. `turned` has a vector per element.
void Turn(const Attention& job, const Block& at, const float* from, float* turned, float* to) {
  F *const vectors = reinterpret_cast<F*>(turned), *out = reinterpret_cast<F*>(to);
  for (int64_t first = 0; first < at.columns; first += kLanes<float>, ++out) {
    const int64_t start = std::min(first, at.used - 1);
    const int64_t count = std::min(kLanes<float>, at.used - start);
    LoadLanes(from + start * job.wide, job.wide, job.size, count, vectors);
    for (int64_t i = 0; i < job.size; ++i) out[i * kStep] = vectors[i];
  }
}

// Computes the scores of a block of keys, [keys, queries]. Masked pairs get -inf.
void Score(const Attention& job, const Block& at, int64_t key, int64_t count, const float* keys,
           const float* queries, float* scores) {
  const int64_t rows = Whole(count, kRows), size = job.size;
  Multiply(keys, job.wide, 1, queries, kQueries, size, rows, at.columns, scores, kQueries, false);
  if (count == rows && at.late - key <= job.left && key + count - 1 - at.early <= job.right) return;
  F places[kStep];
  for (int64_t i = 0; i < kQueries; ++i) {
    places[i / kLanes<float>][i % kLanes<float>] = (at.first + i) / job.groups - key;
  }
  for (int64_t s = 0; s < rows; ++s, scores += kQueries) {
    const float least = s < count ? s - job.right : INFINITY, most = s + job.left;
    for (int64_t c = 0; c < at.columns / kLanes<float>; ++c) {
      F& x = reinterpret_cast<F*>(scores)[c];
      x = (places[c] >= least) & (places[c] <= most) ? x : F{} - INFINITY;
    }
  }
}

// Which of `count` keys the queries of a block see.
enum class Seen { kNone, kSome, kAll };
Seen FindSeen(const Attention& job, const uint8_t* mask, int64_t used, int64_t count) {
  constexpr uint64_t kOnes = 0x0101010101010101;
  uint64_t any = 0, all = kOnes;  // of 8 keys at a time
  for (int64_t i = 0; i < (job.mask.query ? used : 1); ++i, mask += job.mask.query) {
    int64_t s = 0;
    for (; s + 8 <= count; s += 8) {
      uint64_t bytes;
      std::memcpy(&bytes, mask + s, 8);
      any |= bytes, all &= bytes;
    }
    for (; s < count; ++s) any |= mask[s], all &= mask[s] * kOnes;
  }
  return all == kOnes ? Seen::kAll : any ? Seen::kSome : Seen::kNone;
}

// Sets elements [keys, queries] of masked pairs to `fill`. A query has a bit for each key.
void Mask(const Attention& job, const uint8_t* mask, const Block& at, int64_t count, float fill,
          float* scores) {
  UJ bits[kKeys / 32][kStep] = {};
  for (int64_t i = 0; i < at.used; ++i, mask += job.mask.query) {
    uint64_t all = 0, bytes;
    const auto gather = [&] { return bytes * 0x0102040810204080 >> 56; };  // a bit from each byte
    int64_t s = 0;
    for (; s + 8 <= count; s += 8) {
      std::memcpy(&bytes, mask + s, 8);
      all |= gather() << s;
    }
    bytes = 0;
    for (int64_t j = s; j < count; ++j) bytes |= uint64_t(mask[j]) << 8 * (j - s);
    if (s < count) all |= gather() << s;
    reinterpret_cast<uint32_t*>(bits[0])[i] = all;
    reinterpret_cast<uint32_t*>(bits[1])[i] = all >> 32;
  }
  for (int64_t s = 0; s < count; ++s, scores += kQueries) {
    const UJ bit = UJ{} + (1u << s % 32);
    for (int64_t c = 0; c < at.columns / kLanes<float>; ++c) {
      F& x = reinterpret_cast<F*>(scores)[c];
      x = (bits[s / 32][c] & bit) != 0 ? x : F{} + fill;
    }
  }
}

// Completes products [keys, queries] to scores of attention that is written by operations. The steps are
// those of the operations, in their order.
void Complete(const Attention& job, const Block& at, const uint8_t* mask, const float* bias, int64_t count,
              Seen seen, float* scores) {
  F* const x = reinterpret_cast<F*>(scores);
  for (int64_t c = 0; c < at.columns / kLanes<float>; ++c) {
    for (int64_t s = 0; s < count; ++s) x[s * kStep + c] *= job.scale;
    if (!bias) continue;
    F values[kKeys];
    const int64_t start = std::min(c * kLanes<float>, at.used - 1);
    const int64_t used = std::min(kLanes<float>, at.used - start), step = job.bias.query;
    LoadLanes(bias + start * step, step, count, used, values);
    for (int64_t s = 0; s < count; ++s) x[s * kStep + c] += values[s];
  }
  if (seen != Seen::kAll) Mask(job, mask, at, count, job.fill, scores);
}

// Means for a block of queries. If `skips`, blocks of keys that no query sees are skipped. Returns true
// if the weights of these keys are 0.
bool AttendBlock(const Attention& job, int64_t index, bool skips, float* room) {
  const Block at(job, index / job.blocks, index % job.blocks);
  const int64_t wide = job.wide, line = index / job.blocks;
  const uint8_t* const mask = job.mask.Find(line, job.heads, at.first);
  const float* const bias = job.bias.Find(line, job.heads, at.first);
  float *queries = room, *turned = queries + kQueries * wide, *keys = turned + 16 * wide;
  float *values = keys + job.deep * wide, *sums = values + job.deep * wide;
  float* scores = sums + job.tall * wide;
  F most[kStep], total[kStep] = {}, factor[kStep];
  bool skipped = false;
  Pack(job.q, at.q, at.first, at.used, mask ? 1 : job.scale, sums, wide);
  Turn(job, at, sums, turned, queries);
  std::memset(sums, 0, at.rows * wide * sizeof(float));
  for (F& x : most) x = F{} - FLT_MAX;
  for (int64_t key = at.begin; key < at.end; key += kKeys) {
    const int64_t count = std::min(kKeys, at.end - key);
    const Seen seen = mask ? FindSeen(job, mask + key, at.used, count) : Seen::kAll;
    if (seen == Seen::kNone && skips) {
      skipped = true;
      continue;
    }
    Pack(job.k, at.k, key, count, 1, keys, wide);
    Pack(job.v, at.k, key, count, 1, values, wide);
    Score(job, at, key, count, keys, queries, scores);
    if (mask) Complete(job, at, mask + key, bias ? bias + key : bias, count, seen, scores);
    for (int64_t c = 0; c < at.columns / kLanes<float>; ++c) {
      F *const x = reinterpret_cast<F*>(scores) + c, sum{}, now = most[c];
      const int64_t end = Whole(count, kRows) * kStep;
      for (int64_t i = 0; i < end; i += kStep) now = x[i] > now ? x[i] : now;
      for (int64_t i = 0; i < end; i += kStep) sum += x[i] = Exponential(x[i] - now);
      factor[c] = Exponential(most[c] - now), most[c] = now;
      total[c] = total[c] * factor[c] + sum;
    }
    for (int64_t i = 0; key > at.begin && i < at.used; ++i) {
      const float times = reinterpret_cast<float*>(factor)[i];
      for (int64_t j = 0; j < wide; ++j) sums[i * wide + j] *= times;
    }
    Multiply(scores, 1, kQueries, values, wide, count, at.rows, wide, sums, wide, true);
  }
  bool exact = true;
  for (int64_t i = 0; i < at.used; ++i) {
    exact = exact && (!skipped || job.fill - reinterpret_cast<float*>(most)[i] < -87);
    const float all = reinterpret_cast<float*>(total)[i];
    for (int64_t j = 0; j < wide; ++j) sums[i * wide + j] /= all;
    Unpack(sums + i * wide, wide, at.q, at.first + i, 1, 1, job.out);
    float* const log = job.logs ? job.logs + at.logs[at.first + i] : nullptr;
    const float largest = reinterpret_cast<float*>(most)[i];
    if (log) *log = mask ? largest : largest + std::log(all);
    if (log && mask) log[job.totals] = all;
  }
  return exact;
}

void Attend(const Attention& job, int64_t index, float* room) {
  const bool skips = job.mask.first && job.finite;
  if (!AttendBlock(job, index, skips, room) && skips) AttendBlock(job, index, false, room);
}

// Computes the cotangents of a part of the keys and values of a line, and their contributions to
// the cotangents of the queries.
void Pull(const Attention& job, int64_t index, float* room) {
  const int64_t line = index / job.parts, part = index % job.parts, wide = job.wide;
  const int64_t blocks = (job.keys + kKeys - 1) / kKeys, start = blocks * part / job.parts * kKeys;
  const int64_t held = std::min(job.keys, blocks * (part + 1) / job.parts * kKeys) - start;
  const int64_t tall = job.tall * wide, deep = job.deep * kQueries, all = Whole(held, 8) * wide;
  float *queries = room, *cts = queries + kQueries * wide, *turned = cts + kQueries * wide;
  float *q = turned + 16 * wide, *ct = q + tall, *sums = ct + tall, *scores = sums + tall;
  float *moves = scores + deep, *keys = moves + deep, *values = keys + all, *dk = values + all;
  float* dv = dk + all;
  const Rows k = Block(job, line, 0).k;
  const bool written = job.mask.first;
  Pack(job.k, k, start, held, 1, keys, wide);
  Pack(job.v, k, start, held, 1, values, wide);
  std::memset(dk, 0, 2 * all * sizeof(float));
  for (int64_t block = 0; block < job.blocks; ++block) {
    const Block at(job, line, block);
    const int64_t end = std::min(start + held, at.end), step = at.columns / kLanes<float>;
    const uint8_t* const mask = job.mask.Find(line, job.heads, at.first);
    const float* const bias = job.bias.Find(line, job.heads, at.first);
    Pack(job.q, at.q, at.first, at.used, written ? 1 : job.scale, q, wide);
    Pack(job.ct, at.q, at.first, at.used, 1, ct, wide);
    Pack(job.out, at.q, at.first, at.used, 1, sums, wide);
    Turn(job, at, ct, turned, cts);
    Turn(job, at, sums, turned, queries);
    F logs[kStep] = {}, totals[kStep], mean[kStep] = {};  // of cotangents of weights
    for (F& total : totals) total = F{} + 1;
    bool skips = written && job.finite;
    F *const x = reinterpret_cast<F*>(scores), *const y = reinterpret_cast<F*>(moves);
    for (int64_t i = 0; i < job.size * kStep; i += kStep) {
      for (int64_t c = 0; c < step; ++c) {
        mean[c] += reinterpret_cast<F*>(queries)[i + c] * reinterpret_cast<F*>(cts)[i + c];
      }
    }
    for (int64_t i = 0; i < at.used; ++i) {
      const int64_t row = at.logs[at.first + i];
      const float log = job.logs[row], total = written ? job.logs[row + job.totals] : 1;
      if (!written) reinterpret_cast<float*>(mean)[i] -= job.ct_logs[row];
      reinterpret_cast<float*>(logs)[i] = log, reinterpret_cast<float*>(totals)[i] = total;
      skips = skips && job.fill - log < -87 && total > 0;
    }
    Turn(job, at, q, turned, queries);
    std::memset(sums, 0, tall * sizeof(float));
    for (int64_t key = std::max(start, at.begin); key < end; key += kKeys) {
      const int64_t count = std::min(kKeys, end - key), rows = Whole(count, kRows);
      const int64_t to = (key - start) * wide, size = job.size;
      const Seen seen = written ? FindSeen(job, mask + key, at.used, count) : Seen::kAll;
      if (seen == Seen::kNone && skips) continue;
      Score(job, at, key, count, keys + to, queries, scores);
      if (written) Complete(job, at, mask + key, bias ? bias + key : bias, count, seen, scores);
      Multiply(values + to, wide, 1, cts, kQueries, size, rows, at.columns, moves, kQueries, false);
      for (int64_t i = 0; i < rows * kStep; i += kStep) {
        for (int64_t c = 0; c < step; ++c) {
          const F power = Exponential(x[i + c] - logs[c]);
          x[i + c] = written ? power / totals[c] : power;
          y[i + c] = x[i + c] * (y[i + c] - mean[c]);
        }
      }
      if (seen != Seen::kAll && !skips) Mask(job, mask + key, at, count, 0, moves);  // else they are 0
      if (job.dq) {
        Multiply(moves, 1, kQueries, keys + to, wide, count, at.rows, wide, sums, wide, true);
      }
      if (job.dk) Multiply(moves, kQueries, 1, q, wide, at.used, rows, wide, dk + to, wide, true);
      if (job.dv) Multiply(scores, kQueries, 1, ct, wide, at.used, rows, wide, dv + to, wide, true);
    }
    float* const dq = job.dq + part * job.count;
    if (job.dq) Unpack(sums, wide, at.q, at.first, at.used, job.scale, dq);
  }
  if (job.dk) Unpack(dk, wide, k, start, held, written ? job.scale : 1, job.dk);
  if (job.dv) Unpack(dv, wide, k, start, held, 1, job.dv);
}
