// Included once for each width of vectors: queries lie in lanes, and keys in rows.
//
// What is copied to has room for whole tiles; what the rest of that has goes to no result.

using F = Lanes<float>;
using J = Lanes<int32_t>;
constexpr int64_t kRows = kBytes == 64 ? 8 : 4, kPanel = 2 * kLanes<float>;  // of a tile

inline int64_t RoundUp(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }

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

void Copy(const float* from, int64_t stride, int64_t rows, int64_t size, float scale, float* to,
          int64_t wide) {
  for (int64_t i = 0; i < rows; ++i, from += stride, to += wide) {
    for (int64_t j = 0; j < size; ++j) to[j] = from[j] * scale;
  }
}

// Puts rows into lanes, times a number; rows that are none have the last. `room` is for one vector of
// each element.
void Turn(const float* from, int64_t stride, int64_t rows, int64_t size, float scale, float* room,
          float* to) {
  F* const turned = reinterpret_cast<F*>(room);
  for (int64_t first = 0; first < RoundUp(rows, kPanel); first += kLanes<float>) {
    const int64_t start = std::min(first, rows - 1);
    LoadLanes(from + start * stride, stride, size, std::min(kLanes<float>, rows - start), turned);
    for (int64_t i = 0; i < size; ++i) {
      const F x = turned[i] * scale;
      std::memcpy(to + i * kQueries + first, &x, kBytes);
    }
  }
}

// A block of queries of a head, and its keys: from the first block that counts to `end`.
struct Place {
  int64_t first, used, columns, rows, begin, end, q_row, q_at, k_row, k_at, log_at;
  Place(const Attention& job, int64_t batch, int64_t head, int64_t first)
      : first(first), used(std::min(kQueries, job.queries - first)), columns(RoundUp(used, kPanel)),
        rows(RoundUp(used, kRows)), begin(std::max<int64_t>(0, first - job.left) / kKeys * kKeys),
        end(std::min(job.keys, first + used + job.right)), q_row(job.heads * job.size),
        q_at((batch * job.queries + first) * q_row + head * job.size), k_row(q_row / job.groups),
        k_at(batch * job.keys * k_row + head / job.groups * job.size),
        log_at((batch * job.heads + head) * job.queries + first) {}
};

// Scores of a block of keys, [keys, queries]; those of pairs that do not count are -inf.
void Score(const Attention& job, const Place& at, int64_t key, int64_t count, const float* keys,
           const float* queries, float* scores) {
  const int64_t rows = RoundUp(count, kRows), behind = at.first - key;
  Multiply(keys, job.wide, 1, queries, kQueries, job.size, rows, at.columns, scores, kQueries, false);
  if (count == rows && behind + at.used - 1 <= job.left && count - 1 - behind <= job.right) return;
  F lane;
  for (int i = 0; i < kLanes<float>; ++i) lane[i] = i;
  for (int64_t s = 0; s < rows; ++s) {
    const float least = s < count ? -static_cast<float>(job.right) : INFINITY;
    for (int64_t c = 0; c < at.columns; c += kLanes<float>) {
      const F place = lane + static_cast<float>(behind + c - s);  // of the query after the key
      F x = Load<F>(scores + s * kQueries + c);
      x = (place >= least) & (place <= static_cast<float>(job.left)) ? x : F{} - INFINITY;
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
  const int64_t blocks = (job.queries + kQueries - 1) / kQueries, line = index / blocks;
  const int64_t wide = job.wide, block = kQueries * wide;
  const Place at(job, line / job.heads, line % job.heads, index % blocks * kQueries);
  float *queries = room, *keys = queries + block, *values = keys + block, *sums = values + block;
  float *scores = sums + block, most[kQueries], total[kQueries] = {}, factor[kQueries];
  Turn(job.q + at.q_at, at.q_row, at.used, job.size, job.scale, keys, queries);
  std::memset(sums, 0, block * sizeof(float));
  for (float& x : most) x = -FLT_MAX;
  for (int64_t key = at.begin; key < at.end; key += kKeys) {
    const int64_t count = std::min(kKeys, at.end - key), from = at.k_at + key * at.k_row;
    Copy(job.k + from, at.k_row, count, job.size, 1, keys, wide);
    Copy(job.v + from, at.k_row, count, job.size, 1, values, wide);
    Score(job, at, key, count, keys, queries, scores);
    Raise(RoundUp(count, kRows), at.columns, scores, most, total, factor);
    for (int64_t i = 0; key > at.begin && i < at.used; ++i) {
      for (int64_t j = 0; j < wide; ++j) sums[i * wide + j] *= factor[i];
    }
    Multiply(scores, 1, kQueries, values, wide, count, at.rows, wide, sums, wide, true);
  }
  for (int64_t i = 0; i < at.used; ++i) {
    Copy(sums + i * wide, wide, 1, job.size, 1 / total[i], job.out + at.q_at + i * at.q_row, 0);
    job.logs[at.log_at + i] = most[i] + std::log(total[i]);
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

// Cotangents of a part of the keys and values of a head, and what these give to those of queries.
void Differentiate(const Attention& job, int64_t index, float* room) {
  const int64_t wide = job.wide, size = job.size, part = index % job.parts, line = index / job.parts;
  const int64_t heads = job.heads / job.groups, key_blocks = (job.keys + kKeys - 1) / kKeys;
  const int64_t start = key_blocks * part / job.parts * kKeys;
  const int64_t stop = std::min(job.keys, key_blocks * (part + 1) / job.parts * kKeys);
  const int64_t block = kQueries * wide, whole = RoundUp(stop - start, kKeys) * wide;
  float *queries = room, *cts = queries + block, *q = cts + block, *ct = q + block, *sums = ct + block;
  float *scores = sums + block, *moves = scores + kKeys * kQueries, *keys = moves + kKeys * kQueries;
  float *values = keys + whole, *dk = values + whole, *dv = dk + whole;
  const Place base(job, line / heads, line % heads * job.groups, 0);
  const int64_t from = base.k_at + start * base.k_row;
  Copy(job.k + from, base.k_row, stop - start, size, 1, keys, wide);
  Copy(job.v + from, base.k_row, stop - start, size, 1, values, wide);
  std::memset(dk, 0, 2 * whole * sizeof(float));
  const int64_t blocks = (job.queries + kQueries - 1) / kQueries;
  for (int64_t i = 0; i < job.groups * blocks; ++i) {
    const int64_t head = line % heads * job.groups + i / blocks;
    const Place at(job, line / heads, head, i % blocks * kQueries);
    float logs[kQueries], mean[kQueries] = {};
    Turn(job.out + at.q_at, at.q_row, at.used, size, 1, sums, queries);
    Turn(job.ct + at.q_at, at.q_row, at.used, size, 1, sums, cts);
    for (int64_t j = 0; j < size * kQueries; ++j) mean[j % kQueries] += queries[j] * cts[j];
    for (int64_t j = 0; j < at.columns; ++j) {
      const int64_t row = at.log_at + std::min(j, at.used - 1);
      mean[j] -= job.ct_logs[row], logs[j] = job.logs[row];
    }
    Turn(job.q + at.q_at, at.q_row, at.used, size, job.scale, sums, queries);
    if (job.dk) Copy(job.q + at.q_at, at.q_row, at.used, size, job.scale, q, wide);
    if (job.dv) Copy(job.ct + at.q_at, at.q_row, at.used, size, 1, ct, wide);
    std::memset(sums, 0, block * sizeof(float));
    for (int64_t key = std::max(start, at.begin), end = std::min(stop, at.end); key < end; key += kKeys) {
      const int64_t count = std::min(kKeys, end - key), rows = RoundUp(count, kRows);
      const int64_t to = (key - start) * wide;
      Score(job, at, key, count, keys + to, queries, scores);
      Multiply(values + to, wide, 1, cts, kQueries, size, rows, at.columns, moves, kQueries, false);
      Weigh(rows, at.columns, logs, mean, scores, moves);
      if (job.dq) Multiply(moves, 1, kQueries, keys + to, wide, count, at.rows, wide, sums, wide, true);
      if (job.dk) Multiply(moves, kQueries, 1, q, wide, at.used, rows, wide, dk + to, wide, true);
      if (job.dv) Multiply(scores, kQueries, 1, ct, wide, at.used, rows, wide, dv + to, wide, true);
    }
    float* const dq = job.dq + part * job.batch * job.queries * at.q_row + at.q_at;
    if (job.dq) Copy(sums, wide, at.used, size, job.scale, dq, at.q_row);
  }
  if (job.dk) Copy(dk, wide, stop - start, size, 1, job.dk + from, base.k_row);
  if (job.dv) Copy(dv, wide, stop - start, size, 1, job.dv + from, base.k_row);
}
