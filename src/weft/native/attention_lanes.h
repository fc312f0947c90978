// Included once for each width of vectors: queries lie in lanes, and keys in rows.
//
// What is copied to has room for whole tiles; what the rest of that has goes to no result.

using F = Lanes<float>;
using J = Lanes<int32_t>;
constexpr int64_t kRows = kBytes == 64 ? 8 : 4, kPanel = 2 * kLanes<float>;  // of a tile

// e**x for x up to 88, as in singles.h; below -87 it is 0.
WEFT_INLINE F Exponential(F x) {
  constexpr float kExp[] = {1, 1, 0.5f, 0.166666672f, 0.041666314f, 0.00833321549f, 0.00139443402f,
                            0.000199647795f};
  const F held = x < -87 ? F{} - 87 : x, k = held * 1.44269502f + 0x1.8p23f, m = k - 0x1.8p23f;
  const F r = m * -1.42860677e-6f + (m * -0.693145752f + held);
  F y = F{} + kExp[7];
  for (int i = 6; i >= 0; --i) y = y * r + kExp[i];
  return x < -87 ? F{} : (F)((J)y + ((J)k << 23));
}

// Puts into `to`, or adds to it, sums over i of left[row, i] right[i, column]: whole tiles, `row` and
// `step` being how far rows of left factors and their elements are from each other.
WEFT_WIDE void Multiply(const float* left, int64_t row, int64_t step, const float* right,
                        int64_t width, int64_t depth, int64_t rows, int64_t columns, float* to,
                        int64_t stride, bool add) {
  for (int64_t column = 0; column < columns; column += kPanel) {
    for (int64_t first = 0; first < rows; first += kRows) {
      F sums[kRows][2] = {};
      const float *x = left + first * row, *y = right + column;
      float* const out = to + first * stride + column;
      for (int64_t r = 0; add && r < kRows; ++r) std::memcpy(sums[r], out + r * stride, 2 * kBytes);
      for (int64_t i = 0; i < depth; ++i, x += step, y += width) {
        const F a = Load<F>(y), b = Load<F>(y + kLanes<float>);
        for (int64_t r = 0; r < kRows; ++r) {
          sums[r][0] += x[r * row] * a;
          sums[r][1] += x[r * row] * b;
        }
      }
      for (int64_t r = 0; r < kRows; ++r) std::memcpy(out + r * stride, sums[r], 2 * kBytes);
    }
  }
}

// Copies rows, times a number, to rows that are `wide` apart; and back.
void Pack(const float* from, const Rows& rows, int64_t first, int64_t count, float scale, float* to,
          int64_t wide) {
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t j = 0; j < rows.size; ++j) to[i * wide + j] = from[rows[first + i] + j] * scale;
  }
}
void Unpack(const float* from, int64_t wide, const Rows& rows, int64_t first, int64_t count,
            float scale, float* to) {
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t j = 0; j < rows.size; ++j) to[rows[first + i] + j] = from[i * wide + j] * scale;
  }
}

// Some queries that share keys: times `early` to `late`, and their keys, `begin` to `end`.
struct Block {
  Rows q, k, logs;
  int64_t first, used, columns, rows, early, late, begin, end;
  Block(const Attention& job, int64_t line, int64_t index) {
    const int64_t kept = job.heads / job.groups, batch = line / kept, head = line % kept * job.groups;
    const int64_t at = batch * job.queries * job.heads + head, row = kept * job.size;
    q = {at * job.size, job.heads * job.size, job.groups, job.size};
    k = {batch * job.keys * row + line % kept * job.size, row, 1, job.size};
    logs = {at, job.heads, job.groups, 1};
    first = index * kQueries, used = std::min(kQueries, job.queries * job.groups - first);
    columns = (used + kPanel - 1) / kPanel * kPanel, rows = (used + kRows - 1) / kRows * kRows;
    early = first / job.groups, late = (first + used - 1) / job.groups;
    begin = std::max<int64_t>(0, early - job.left) / kKeys * kKeys;
    end = std::min(job.keys, late + job.right + 1);
  }
};

// Puts rows into lanes; lanes without a row have the last. `room` is for a vector of each element.
void Turn(const Attention& job, const Block& at, const float* from, float* room, float* to) {
  F* const turned = reinterpret_cast<F*>(room);
  for (int64_t first = 0; first < at.columns; first += kLanes<float>) {
    const int64_t start = std::min(first, at.used - 1);
    const int64_t count = std::min(kLanes<float>, at.used - start);
    LoadLanes(from + start * job.wide, job.wide, job.size, count, turned);
    for (int64_t i = 0; i < job.size; ++i) std::memcpy(to + i * kQueries + first, turned + i, kBytes);
  }
}

// Scores of a block of keys, [keys, queries]; those of pairs that do not count are -inf.
void Score(const Attention& job, const Block& at, int64_t key, int64_t count, int64_t rows,
           const float* keys, const float* queries, float* scores) {
  Multiply(keys, job.wide, 1, queries, kQueries, job.size, rows, at.columns, scores, kQueries, false);
  if (count == rows && at.late - key <= job.left && key + count - 1 - at.early <= job.right) return;
  float places[kQueries];
  for (int64_t i = 0; i < at.columns; ++i) places[i] = (at.first + i) / job.groups - key;
  for (int64_t s = 0; s < rows; ++s) {
    const float least = s < count ? s - job.right : INFINITY, most = s + job.left;
    for (int64_t c = 0; c < at.columns; c += kLanes<float>) {
      const F place = Load<F>(places + c);
      F x = Load<F>(scores + s * kQueries + c);
      x = (place >= least) & (place <= most) ? x : F{} - INFINITY;
      std::memcpy(scores + s * kQueries + c, &x, kBytes);
    }
  }
}

// Turns scores into powers, and adds these up; sums before this are to be multiplied by `factor`.
void Raise(int64_t rows, int64_t columns, float* scores, float* most, float* total, float* factor) {
  for (int64_t c = 0; c < columns; c += kLanes<float>) {
    const F before = Load<F>(most + c);
    F now = before, sum{};
    for (int64_t s = c; s < rows * kQueries; s += kQueries) {
      const F x = Load<F>(scores + s);
      now = x > now ? x : now;
    }
    for (int64_t s = c; s < rows * kQueries; s += kQueries) {
      const F x = Exponential(Load<F>(scores + s) - now);
      std::memcpy(scores + s, &x, kBytes);
      sum += x;
    }
    const F times = Exponential(before - now), all = Load<F>(total + c) * times + sum;
    std::memcpy(most + c, &now, kBytes);
    std::memcpy(total + c, &all, kBytes);
    std::memcpy(factor + c, &times, kBytes);
  }
}

// Means for a block of queries.
void Attend(const Attention& job, int64_t index, float* room) {
  const Block at(job, index / job.blocks, index % job.blocks);
  const int64_t wide = job.wide;
  float *queries = room, *turned = queries + kQueries * wide, *keys = turned + 16 * wide;
  float *values = keys + job.deep * wide, *sums = values + job.deep * wide;
  float *scores = sums + job.tall * wide, most[kQueries], total[kQueries] = {}, factor[kQueries];
  Pack(job.q, at.q, at.first, at.used, job.scale, sums, wide);
  Turn(job, at, sums, turned, queries);
  std::memset(sums, 0, at.rows * wide * sizeof(float));
  for (float& x : most) x = -FLT_MAX;
  for (int64_t key = at.begin; key < at.end; key += kKeys) {
    const int64_t count = std::min(kKeys, at.end - key), rows = (count + kRows - 1) / kRows * kRows;
    Pack(job.k, at.k, key, count, 1, keys, wide);
    Pack(job.v, at.k, key, count, 1, values, wide);
    Score(job, at, key, count, rows, keys, queries, scores);
    Raise(rows, at.columns, scores, most, total, factor);
    for (int64_t i = 0; key > at.begin && i < at.used; ++i) {
      for (int64_t j = 0; j < wide; ++j) sums[i * wide + j] *= factor[i];
    }
    Multiply(scores, 1, kQueries, values, wide, count, at.rows, wide, sums, wide, true);
  }
  for (int64_t i = 0; i < at.used; ++i) {
    Unpack(sums + i * wide, wide, at.q, at.first + i, 1, 1 / total[i], job.out);
    job.logs[at.logs[at.first + i]] = most[i] + std::log(total[i]);
  }
}

// Turns scores into weights, and cotangents of weights into those of scores.
void Weigh(int64_t rows, int64_t columns, const float* logs, const float* mean, float* scores,
           float* moves) {
  for (int64_t c = 0; c < columns; c += kLanes<float>) {
    const F log = Load<F>(logs + c), less = Load<F>(mean + c);
    for (int64_t s = c; s < rows * kQueries; s += kQueries) {
      const F x = Exponential(Load<F>(scores + s) - log), y = x * (Load<F>(moves + s) - less);
      std::memcpy(scores + s, &x, kBytes);
      std::memcpy(moves + s, &y, kBytes);
    }
  }
}

// Cotangents of a part of the keys and values of a line, and what these give to those of queries.
void Pull(const Attention& job, int64_t index, float* room) {
  const int64_t line = index / job.parts, part = index % job.parts, wide = job.wide;
  const int64_t blocks = (job.keys + kKeys - 1) / kKeys, start = blocks * part / job.parts * kKeys;
  const int64_t held = std::min(job.keys, blocks * (part + 1) / job.parts * kKeys) - start;
  const int64_t tall = job.tall * wide, deep = job.deep * kQueries, all = (held + 7) / 8 * 8 * wide;
  float *queries = room, *cts = queries + kQueries * wide, *turned = cts + kQueries * wide;
  float *q = turned + 16 * wide, *ct = q + tall, *sums = ct + tall, *scores = sums + tall;
  float *moves = scores + deep, *keys = moves + deep, *values = keys + all, *dk = values + all;
  float *dv = dk + all, logs[kQueries], mean[kQueries];
  const Rows k = Block(job, line, 0).k;
  Pack(job.k, k, start, held, 1, keys, wide);
  Pack(job.v, k, start, held, 1, values, wide);
  std::memset(dk, 0, 2 * all * sizeof(float));
  for (int64_t block = 0; block < job.blocks; ++block) {
    const Block at(job, line, block);
    Pack(job.q, at.q, at.first, at.used, job.scale, q, wide);
    Pack(job.ct, at.q, at.first, at.used, 1, ct, wide);
    Pack(job.out, at.q, at.first, at.used, 1, sums, wide);
    Turn(job, at, ct, turned, cts);
    Turn(job, at, sums, turned, queries);
    for (int64_t c = 0; c < at.columns; c += kLanes<float>) {
      F sum{};
      for (int64_t j = c; j < job.size * kQueries; j += kQueries) {
        sum += Load<F>(queries + j) * Load<F>(cts + j);
      }
      std::memcpy(mean + c, &sum, kBytes);
    }
    for (int64_t j = 0; j < at.columns; ++j) {
      const int64_t row = at.logs[at.first + std::min(j, at.used - 1)];
      mean[j] -= job.ct_logs[row], logs[j] = job.logs[row];
    }
    Turn(job, at, q, turned, queries);
    std::memset(sums, 0, tall * sizeof(float));
    const int64_t end = std::min(start + held, at.end);
    for (int64_t key = std::max(start, at.begin); key < end; key += kKeys) {
      const int64_t count = std::min(kKeys, end - key), rows = (count + kRows - 1) / kRows * kRows;
      const int64_t to = (key - start) * wide;
      Score(job, at, key, count, rows, keys + to, queries, scores);
      Multiply(values + to, wide, 1, cts, kQueries, job.size, rows, at.columns, moves, kQueries, false);
      Weigh(rows, at.columns, logs, mean, scores, moves);
      if (job.dq) Multiply(moves, 1, kQueries, keys + to, wide, count, at.rows, wide, sums, wide, true);
      if (job.dk) Multiply(moves, kQueries, 1, q, wide, at.used, rows, wide, dk + to, wide, true);
      if (job.dv) Multiply(scores, kQueries, 1, ct, wide, at.used, rows, wide, dv + to, wide, true);
    }
    if (job.dq) Unpack(sums, wide, at.q, at.first, at.used, job.scale, job.dq + part * job.count);
  }
  if (job.dk) Unpack(dk, wide, k, start, held, 1, job.dk);
  if (job.dv) Unpack(dv, wide, k, start, held, 1, job.dv);
}
