// Products of matrices, optionally batched: [m, k] or [k, m] times [k, n] or [n, k], all with
// [batch] first if there is a batch.

#include "products.h"

#define WEFT_LANES "dot_lanes.h"
#include "widths.h"

namespace weft {
namespace {

constexpr int64_t kDepth = 256;         // rows of a packed panel; fits the L1 cache
constexpr int64_t kLeft = 1 << 18;      // bytes of the left operand that fit the L2 cache
constexpr int64_t kParts = 16;  // parts to divide the work into, if there are kFewest rows for each
// Bounds of the rows of a block. A panel is worth packing for kFewest rows.
constexpr int64_t kFewest = 48, kMost = 192;
constexpr int64_t kProducts = 3 << 17;  // products that are worth a thread
// Products of at least this many rows, terms and multiplications have both operands packed: a fourth of
// these multiplications if rows of the left operand take the same places of the L1 cache.
constexpr int64_t kManyRows = 96, kManyTerms = 48, kMuch = 1 << 24, kAlike = 2048;
// A symmetric product has them packed if an operand has more bytes than this.
constexpr int64_t kHalf = 1 << 19;
constexpr int64_t kPacked = 1 << 20;  // bytes of chunks that are packed before they are multiplied

// Multiplies `kRows` rows by one packed panel, over `begin` to `end` of the contracted axis.
template <class T, int kBytes, int kColumns, int kRows>
WEFT_INLINE void MultiplyTile(const Dot<T>& job, int64_t column, int64_t row, int64_t begin,
                              int64_t end, const T* panel) {
  using V = typename Vector<T, kBytes>::V;
  const T* from[kRows];
  for (int64_t r = 0; r < kRows; ++r) {
    from[r] = job.left + (row + r) * job.left_row + begin * job.left_step;
  }
  StoreTile<V, kColumns, kRows>(from, 1, end - begin, panel, job.out + row * job.out_row + column,
                                job.out_row, kRows, job.n - column, job.left_step,
                                job.subtract ? -1 : begin > 0);
}

// Multiplies rows `first` to `last` by one packed panel, in tiles of nearly equal numbers of rows: 32
// rows are two tiles of 6 and four of 5, where five of 6 would leave one of 2.
template <class T, int kBytes, int kColumns>
WEFT_INLINE void MultiplyRows(const Dot<T>& job, int64_t column, int64_t first, int64_t last,
                              int64_t begin, int64_t end, const T* panel) {
  const int64_t rows = last - first, tiles = (rows + kPixels - 1) / kPixels;
  for (int64_t tile = 0, row = first; tile < tiles; ++tile) {
    const int64_t next = first + rows * (tile + 1) / tiles;
    const auto run = [&](auto count) {
      MultiplyTile<T, kBytes, kColumns, count>(job, column, row, begin, end, panel);
    };
    switch (next - row) {
      case 6: run(std::integral_constant<int, 6>{}); break;
      case 5: run(std::integral_constant<int, 5>{}); break;
      case 4: run(std::integral_constant<int, 4>{}); break;
      case 3: run(std::integral_constant<int, 3>{}); break;
      case 2: run(std::integral_constant<int, 2>{}); break;
      default: run(std::integral_constant<int, 1>{});
    }
    row = next;
  }
}

template <class T, int kBytes>
WEFT_INLINE void MultiplyPanel(const Dot<T>& job, int64_t column, int64_t first, int64_t last,
                               int64_t begin, int64_t end, const T* panel) {
  if (job.n - column <= Vector<T, kBytes>::kLanes) {
    MultiplyRows<T, kBytes, 1>(job, column, first, last, begin, end, panel);
  } else {
    MultiplyRows<T, kBytes, kVectors>(job, column, first, last, begin, end, panel);
  }
}

// Bounds the rows of a part of a symmetric product, for a panel of columns from `column` to `end`. A
// square on the diagonal is computed by the part that has its first row.
WEFT_INLINE void BoundRows(int64_t column, int64_t end, int64_t& first, int64_t& last) {
  const bool has = first <= column && column < last;
  first = has ? column : std::max(first, end);
  if (has) last = std::max(last, end);
}

// Completes a panel of columns, which is stored, in rows `first` to `last`. Elements of a symmetric
// product are copied to the other side of the diagonal before.
template <class T, int kBytes>
WEFT_INLINE void CompletePanel(const Dot<T>& job, int64_t column, int64_t columns, int64_t first, int64_t last) {
  const int64_t end = column + columns, below = std::max(first, end);
  if (job.mirrored) WEFT_PICK(Mirror<T>)(job.out, job.out_row, column, columns, first, last);
  job.extras.Complete(job.out, job.out_row, first, last, column, columns);
  if (job.mirrored && below < last) {
    job.extras.Complete(job.out, job.out_row, column, end, below, last - below);
  }
}

}  // namespace

// Computes one panel of columns for one block of rows of one matrix. The panel is packed in chunks
// of at most kDepth rows.
template <class T>
template <int kBytes>
WEFT_INLINE void Dot<T>::Run(int64_t part) const {
  constexpr int64_t kLanes = Vector<T, kBytes>::kLanes, kWide = kVectors * kLanes;
  const int64_t matrix = part / panels / blocks, column = part % panels * kWide;
  const int64_t above = part / panels % blocks * rows;
  int64_t first = above, last = std::min(m, above + rows);
  if (lower) first = std::max(above, column);
  if (mirrored) BoundRows(column, std::min(n, column + kWide), first, last);
  if (first >= last) return;
  const int64_t columns = std::min(kWide, n - column), wide = columns <= kLanes ? kLanes : kWide;
  const T* const from = right + matrix * n * k;
  Dot<T> one = *this;
  one.left += matrix * m * k, one.out += matrix * m * n, one.extras.addend += matrix * extras.matrix;
  const int64_t chunks = (k + kDepth - 1) / kDepth, depth = (k + chunks - 1) / chunks;
  alignas(64) T panel[kDepth * kWide];
  for (int64_t begin = 0; begin < k; begin += depth) {
    const int64_t end = std::min(k, begin + depth);
    if (right_turned) {
      WEFT_PICK(PackColumns<T>)(from + column * right_row + begin, right_row, end - begin, columns,
                                wide, panel);
    } else {
      PackPanel(from + begin * right_row + column, right_row, end - begin, columns, wide, panel);
    }
    if (extras.right != 1) Scale(panel, (end - begin) * wide, extras.right, panel);
    for (int64_t at = begin; at < end; at += terms) {
      MultiplyPanel<T, kBytes>(one, column, first, last, at, std::min(end, at + terms),
                               panel + (at - begin) * wide);
    }
  }
  CompletePanel<T, kBytes>(one, column, columns, first, last);
}

namespace {

// A product of many rows and columns, both of whose operands are packed, for `chunks` times `depth` terms
// from `begin` on. So they are read in the order of memory, whatever the strides are.
template <class T>
struct Packed {
  Dot<T> job;
  int64_t begin, end, depth;   // terms: the last chunk may have fewer than `depth`
  int64_t wide;                // columns of a panel
  int64_t tiles, panels;       // of kPixels rows, and of columns
  int64_t together;            // tiles of a part, which fit the L2 cache
  int64_t groups;              // of panels, for each of these
  T *left, *right;             // for each chunk: [tiles, depth, kPixels] and [panels, depth, wide]

  template <int kBytes>
  WEFT_INLINE void Run(int64_t part) const;
  template <int kBytes>
  WEFT_INLINE void RunChunk(int64_t part, int64_t from, int64_t terms) const;
  void Pack(int64_t part) const;
};

// Packs a panel, or a tile of rows, of a chunk.
template <class T>
void Packed<T>::Pack(int64_t part) const {
  const int64_t from = begin + part / (tiles + panels) * depth, terms = std::min(depth, end - from);
  part %= tiles + panels;
  if (part < panels) {
    const int64_t column = part * wide, columns = std::min(wide, job.n - column);
    T* const to = right + (from - begin) * panels * wide + column * terms;
    if (job.right_turned) {
      const T* const first = job.right + column * job.right_row + from;
      WEFT_PICK(PackColumns<T>)(first, job.right_row, terms, columns, wide, to);
    } else {
      PackPanel(job.right + from * job.right_row + column, job.right_row, terms, columns, wide, to);
    }
    if (job.extras.right != 1) Scale(to, terms * wide, job.extras.right, to);
    return;
  }
  const int64_t row = (part - panels) * kPixels;
  const T* rows[kPixels];
  for (int64_t r = 0; r < kPixels; ++r) {
    rows[r] = job.left + std::min(row + r, job.m - 1) * job.left_row + from * job.left_step;
  }
  T* const to = left + (from - begin) * tiles * kPixels + row * terms;
  if (job.left_row == 1 && row + kPixels <= job.m) {
    CopyRows<kPixels * sizeof(T)>(rows[0], job.left_step, terms, to);
  } else {
    for (int64_t i = 0; i < terms; ++i) {
      for (int64_t r = 0; r < kPixels; ++r) to[i * kPixels + r] = rows[r][i * job.left_step];
    }
  }
  if (job.extras.left != 1) Scale(to, terms * kPixels, job.extras.left, to);
}

template <class T>
template <int kBytes>
WEFT_INLINE void Packed<T>::Run(int64_t part) const {
  for (int64_t from = begin; from < end; from += depth) RunChunk<kBytes>(part, from, std::min(depth, end - from));
}

template <class T>
template <int kBytes>
WEFT_INLINE void Packed<T>::RunChunk(int64_t part, int64_t from, int64_t terms) const {
  using V = typename Vector<T, kBytes>::V;
  const T* const x = left + (from - begin) * tiles * kPixels;
  const T* const y = right + (from - begin) * panels * wide;
  const int64_t first = part / groups * together * kPixels, last = std::min(job.m, first + together * kPixels);
  const int64_t used = job.mirrored ? (last + wide - 1) / wide : panels;
  const int64_t group = part % groups, limit = used * (group + 1) / groups;
  for (int64_t panel = used * group / groups; panel < limit; ++panel) {
    const int64_t column = panel * wide, columns = std::min(wide, job.n - column);
    int64_t top = job.lower ? std::max(first, column / kPixels * kPixels) : first, bottom = last;
    if (job.mirrored) BoundRows(column, column + columns, top, bottom);
    for (int64_t row = top, next; row < bottom; row = next) {
      const int64_t skip = row % kPixels;  // rows of the tile that another panel or part has
      next = std::min(bottom, row - skip + kPixels);
      const T* rows[kPixels];
      for (int64_t r = 0; r < kPixels; ++r) rows[r] = x + (row - skip) * terms + std::min(skip + r, kPixels - 1);
      StoreTile<V, kVectors>(rows, 1, terms, y + column * terms, job.out + row * job.out_row + column, job.out_row,
                             next - row, columns, kPixels, job.subtract ? -1 : from > 0);
    }
    if (from + terms >= job.k) CompletePanel<T, kBytes>(job, column, columns, top, bottom);
  }
}

// Returns false without memory to pack the operands.
template <class T>
bool MultiplyPacked(ffi::ThreadPool* pool, const Dot<T>& job, int bytes) {
  const auto run = RunWith<Packed<T>>(bytes);
  const int64_t chunks = (job.k + kDepth - 1) / kDepth, depth = (job.k + chunks - 1) / chunks;
  const int64_t wide = kVectors * bytes / sizeof(T);
  const int64_t tiles = (job.m + kPixels - 1) / kPixels, panels = (job.n + wide - 1) / wide;
  const int64_t most = kLeft * 3 / 4 / (depth * kPixels * static_cast<int64_t>(sizeof(T)));
  const int64_t blocks = (tiles + most - 1) / most, together = (tiles + blocks - 1) / blocks;
  const int64_t parts = job.mirrored ? 2 * kParts : kParts;  // some are much smaller than others
  const int64_t groups = std::clamp<int64_t>(parts / blocks, 1, panels);
  const int64_t size = (tiles * kPixels + panels * wide) * depth, bytes_of_chunk = size * sizeof(T);
  const int64_t at_once = std::clamp<int64_t>(kPacked / bytes_of_chunk, 1, chunks);
  const auto memory = Allocate<T>(size * at_once);
  if (!memory) return false;
  const auto for_each = [&](int64_t count, const auto& work) {
    if (pool) return ForEach(*pool, count, work);
    for (int64_t i = 0; i < count; ++i) work(i);
  };
  for (int64_t begin = 0, end; begin < job.k; begin = end) {
    end = std::min(job.k, begin + depth * at_once);
    const Packed<T> part{job, begin, end, depth, wide, tiles, panels, together, groups,
                         memory.get(), memory.get() + tiles * kPixels * depth * at_once};
    constexpr int64_t kAtOnce = 8;  // tiles and panels that are worth a thread
    const int64_t packs = (tiles + panels) * ((end - begin + depth - 1) / depth);
    for_each((packs + kAtOnce - 1) / kAtOnce, [&](int64_t i) {
      const int64_t last = std::min(packs, (i + 1) * kAtOnce);
      for (int64_t p = i * kAtOnce; p < last; ++p) part.Pack(p);
    });
    // the last rows of a symmetric product are the most work, and come first
    const int64_t count = blocks * groups;
    for_each(count, [&](int64_t i) { run(part, job.mirrored ? count - 1 - i : i); });
  }
  return true;
}

// Multiplies both operands of all products. Returns false without memory for scaled elements.
template <class T>
bool MultiplyAll(ffi::ThreadPool* pool, Dot<T> job) {
  static const int bytes = VectorBytes();
  const int64_t wide = kVectors * bytes / sizeof(T), products = job.m * job.n * job.k;
  const int64_t left = job.m * job.k * static_cast<int64_t>(sizeof(T));
  const bool alike = job.left_row * static_cast<int64_t>(sizeof(T)) % kAlike == 0;
  const bool much = job.mirrored ? job.m >= kFewest && left > (alike ? kHalf / 4 : kHalf)
                                 : job.batch == 1 && job.m >= kManyRows && products > (alike ? kMuch / 4 : kMuch);
  bool packed = much && job.k >= kManyTerms && job.n >= 2 * wide;
  Dot<T> one = job;
  for (int64_t i = 0; packed && i < job.batch; ++i) {
    packed = MultiplyPacked(pool, one, bytes);
    one.left += job.m * job.k, one.right += job.k * job.n, one.out += job.m * job.n;
    one.extras.addend += job.extras.matrix;
  }
  if (packed) return true;
  // rows of the left operand are read again for each panel, so they are multiplied before
  const int64_t elements = job.extras.left != 1 ? job.batch * job.m * job.k : 0;
  const auto scaled = Allocate<T>(elements);
  if (elements > 0) {
    if (!scaled) return false;
    ForEach(*pool, (elements + kPiece - 1) / kPiece, [&](int64_t i) {
      const int64_t at = i * kPiece;
      Scale(job.left + at, std::min(kPiece, elements - at), job.extras.left, scaled.get() + at);
    });
    job.left = scaled.get();
  }
  const auto run = RunWith<Dot<T>>(bytes);
  job.panels = (job.n + wide - 1) / wide;
  const int64_t wanted = std::min(kParts / (job.panels * job.batch), job.m / kFewest);
  job.blocks = std::max({wanted, (left + kLeft - 1) / kLeft, (job.m + kMost - 1) / kMost});
  job.rows = ((job.m + job.blocks - 1) / job.blocks + kPixels - 1) / kPixels * kPixels;
  job.blocks = (job.m + job.rows - 1) / job.rows;
  const int64_t parts = job.batch * job.blocks * job.panels;
  const int64_t together = std::max<int64_t>(1, kProducts / (job.rows * job.k * wide));
  // A thread takes as long to wake as half of the least work that is divided.
  const bool divided = pool && job.batch * products >= 2 * kProducts;
  const int64_t pieces = divided ? (parts + together - 1) / together : 1;
  const auto run_piece = [&](int64_t piece) {
    for (int64_t i = parts * piece / pieces; i < parts * (piece + 1) / pieces; ++i) {
      run(job, job.mirrored ? parts - 1 - i : i);
    }
  };
  if (pieces == 1) {
    run_piece(0);
  } else {
    ForEach(*pool, pieces, run_piece);
  }
  return true;
}

template <bool kMirrored>
ffi::Error DotAll(ffi::ThreadPool pool, ffi::AnyBuffer left, ffi::AnyBuffer right, ffi::RemainingArgs more,
                  ffi::Result<ffi::AnyBuffer> out, bool left_turned, bool right_turned, std::string_view extras) {
  Leading leading;
  Size m, n, k;
  if (!Fits(*out, leading, m, n) || !AreAlike(left, right, *out) ||
      !(left_turned ? Fits(left, leading, k, m) : Fits(left, leading, m, k)) ||
      !(right_turned ? Fits(right, leading, n, k) : Fits(right, leading, k, n)) || k == 0 || (kMirrored && m != n)) {
    return ffi::Error::InvalidArgument(
        "operands must be [.., m, k], or [.., k, m] if `left_turned`, and [.., k, n], or [.., n, k] if "
        "`right_turned`, with k above 0, and the result [.., m, n], of one dtype, with n equal to m if it is symmetric");
  }
  const int64_t batch = leading.count();
  const auto run = [&](auto zero) {
    using T = decltype(zero);
    Dot<T> job{batch, m, n, k, static_cast<const T*>(left.untyped_data()),
               static_cast<const T*>(right.untyped_data()), static_cast<T*>(out->untyped_data()),
               left_turned ? 1 : int64_t{k}, left_turned ? int64_t{m} : 1, right_turned ? k : n, n, right_turned};
    job.mirrored = kMirrored;
    if (!job.extras.Read(more, 0, extras, *out) || job.extras.count != more.size()) return WrongExtras();
    const bool is_done = out->element_count() == 0 || MultiplyAll(&pool, job);
    return is_done ? ffi::Error::Success() : OutOfMemory();
  };
  switch (left.element_type()) {
    case ffi::F32: return run(float{});
    case ffi::F64: return run(double{});
    default: return ffi::Error::InvalidArgument("operands must be f32 or f64");
  }
}

}  // namespace

void Multiply(ffi::ThreadPool* pool, Dot<float> job) { MultiplyAll(pool, job); }
void Multiply(ffi::ThreadPool* pool, Dot<double> job) { MultiplyAll(pool, job); }

}  // namespace weft

#define WEFT_DOT(name, mirrored)                                     \
  XLA_FFI_DEFINE_HANDLER_SYMBOL(name, weft::DotAll<mirrored>,        \
                                xla::ffi::Ffi::Bind()                \
                                    .Ctx<xla::ffi::ThreadPool>()     \
                                    .Arg<xla::ffi::AnyBuffer>()      \
                                    .Arg<xla::ffi::AnyBuffer>()      \
                                    .RemainingArgs()                 \
                                    .Ret<xla::ffi::AnyBuffer>()      \
                                    .Attr<bool>("left_turned")       \
                                    .Attr<bool>("right_turned")      \
                                    .Attr<std::string_view>("extras"))

WEFT_DOT(weft_dot, false);
// The same for a product that is symmetric, which takes half of the operations. Only the elements on
// and below the diagonal are computed.
WEFT_DOT(weft_dot_symmetric, true);
