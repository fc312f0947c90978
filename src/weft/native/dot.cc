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

}  // namespace

// Computes one panel of columns for one block of rows of one matrix. The panel is packed in chunks
// of at most kDepth rows.
template <class T>
template <int kBytes>
WEFT_INLINE void Dot<T>::Run(int64_t part) const {
  constexpr int64_t kLanes = Vector<T, kBytes>::kLanes, kWide = kVectors * kLanes;
  const int64_t matrix = part / panels / blocks, column = part % panels * kWide;
  const int64_t above = part / panels % blocks * rows, last = std::min(m, above + rows);
  const int64_t first = lower ? std::max(above, column) : above;
  if (first >= last) return;
  const int64_t columns = std::min(kWide, n - column), wide = columns <= kLanes ? kLanes : kWide;
  const T* const from = right + matrix * n * k;
  Dot<T> one = *this;
  one.left += matrix * m * k, one.out += matrix * m * n;
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
    for (int64_t at = begin; at < end; at += terms) {
      MultiplyPanel<T, kBytes>(one, column, first, last, at, std::min(end, at + terms),
                               panel + (at - begin) * wide);
    }
  }
}

namespace {

// A product of many rows and columns, both of whose operands are packed, for `depth` terms from `begin`
// on. So they are read in the order of memory, whatever the strides are.
template <class T>
struct Packed {
  Dot<T> job;
  int64_t begin, depth, wide;  // columns of a panel
  int64_t tiles, panels;       // of kPixels rows, and of columns
  int64_t together;            // tiles of a part, which fit the L2 cache
  int64_t groups;              // of panels, for each of these
  T *left, *right;             // [tiles, depth, kPixels] and [panels, depth, wide]

  template <int kBytes>
  WEFT_INLINE void Run(int64_t part) const;
  void Pack(int64_t part) const;
};

// Packs a panel, or a tile of rows.
template <class T>
void Packed<T>::Pack(int64_t part) const {
  if (part < panels) {
    const int64_t column = part * wide, columns = std::min(wide, job.n - column);
    T* const to = right + part * depth * wide;
    if (job.right_turned) {
      const T* const from = job.right + column * job.right_row + begin;
      WEFT_PICK(PackColumns<T>)(from, job.right_row, depth, columns, wide, to);
    } else {
      PackPanel(job.right + begin * job.right_row + column, job.right_row, depth, columns, wide, to);
    }
    return;
  }
  const int64_t row = (part - panels) * kPixels;
  const T* from[kPixels];
  for (int64_t r = 0; r < kPixels; ++r) {
    from[r] = job.left + std::min(row + r, job.m - 1) * job.left_row + begin * job.left_step;
  }
  T* to = left + row * depth;
  for (int64_t i = 0; i < depth; ++i, to += kPixels) {
    for (int64_t r = 0; r < kPixels; ++r) to[r] = from[r][i * job.left_step];
  }
}

template <class T>
template <int kBytes>
WEFT_INLINE void Packed<T>::Run(int64_t part) const {
  using V = typename Vector<T, kBytes>::V;
  const int64_t first = part / groups * together, last = std::min(tiles, first + together);
  const int64_t group = part % groups, end = panels * (group + 1) / groups;
  for (int64_t panel = panels * group / groups; panel < end; ++panel) {
    const int64_t column = panel * wide;
    for (int64_t tile = job.lower ? std::max(first, column / kPixels) : first; tile < last; ++tile) {
      const int64_t row = tile * kPixels;
      const T* from[kPixels];
      for (int64_t r = 0; r < kPixels; ++r) from[r] = left + row * depth + r;
      StoreTile<V, kVectors>(from, 1, depth, right + column * depth, job.out + row * job.out_row + column,
                             job.out_row, job.m - row, job.n - column, kPixels,
                             job.subtract ? -1 : begin > 0);
    }
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
  const int64_t groups = std::clamp<int64_t>(kParts / blocks, 1, panels);
  const auto memory = Allocate<T>((tiles * kPixels + panels * wide) * depth);
  if (!memory) return false;
  const auto for_each = [&](int64_t count, const auto& work) {
    if (pool) return ForEach(*pool, count, work);
    for (int64_t i = 0; i < count; ++i) work(i);
  };
  for (int64_t begin = 0; begin < job.k; begin += depth) {
    const Packed<T> part{job, begin, std::min(depth, job.k - begin), wide, tiles, panels, together, groups,
                         memory.get(), memory.get() + tiles * kPixels * depth};
    constexpr int64_t kAtOnce = 8;  // tiles and panels that are worth a thread
    for_each((tiles + panels + kAtOnce - 1) / kAtOnce, [&](int64_t i) {
      const int64_t last = std::min(tiles + panels, (i + 1) * kAtOnce);
      for (int64_t p = i * kAtOnce; p < last; ++p) part.Pack(p);
    });
    for_each(blocks * groups, [&](int64_t i) { run(part, i); });
  }
  return true;
}

template <class T>
void MultiplyAll(ffi::ThreadPool* pool, Dot<T> job) {
  static const int bytes = VectorBytes();
  const int64_t wide = kVectors * bytes / sizeof(T), products = job.m * job.n * job.k;
  const bool alike = job.left_row * static_cast<int64_t>(sizeof(T)) % kAlike == 0;
  const bool large = job.batch == 1 && job.m >= kManyRows && job.k >= kManyTerms &&
                     job.n >= 2 * wide && products > (alike ? kMuch / 4 : kMuch);
  if (large && MultiplyPacked(pool, job, bytes)) return;
  const auto run = RunWith<Dot<T>>(bytes);
  job.panels = (job.n + wide - 1) / wide;
  const int64_t wanted = std::min(kParts / (job.panels * job.batch), job.m / kFewest);
  const int64_t left = job.m * job.k * static_cast<int64_t>(sizeof(T));
  job.blocks = std::max({wanted, (left + kLeft - 1) / kLeft, (job.m + kMost - 1) / kMost});
  job.rows = ((job.m + job.blocks - 1) / job.blocks + kPixels - 1) / kPixels * kPixels;
  job.blocks = (job.m + job.rows - 1) / job.rows;
  const int64_t parts = job.batch * job.blocks * job.panels;
  const int64_t together = std::max<int64_t>(1, kProducts / (job.rows * job.k * wide));
  // A thread takes as long to wake as half of the least work that is divided.
  const bool divided = pool && job.batch * products >= 2 * kProducts;
  const int64_t pieces = divided ? (parts + together - 1) / together : 1;
  const auto run_piece = [&](int64_t piece) {
    for (int64_t i = parts * piece / pieces; i < parts * (piece + 1) / pieces; ++i) run(job, i);
  };
  if (pieces == 1) return run_piece(0);
  ForEach(*pool, pieces, run_piece);
}

ffi::Error DotAll(ffi::ThreadPool pool, ffi::AnyBuffer left, ffi::AnyBuffer right,
                  ffi::Result<ffi::AnyBuffer> out, bool left_turned, bool right_turned) {
  Leading leading;
  Size m, n, k;
  if (!Fits(*out, leading, m, n) || !AreAlike(left, right, *out) ||
      !(left_turned ? Fits(left, leading, k, m) : Fits(left, leading, m, k)) ||
      !(right_turned ? Fits(right, leading, n, k) : Fits(right, leading, k, n)) || k == 0) {
    return ffi::Error::InvalidArgument(
        "operands must be [.., m, k], or [.., k, m] if `left_turned`, and [.., k, n], or [.., n, k] if "
        "`right_turned`, with k above 0, and the result [.., m, n], of one dtype");
  }
  if (out->element_count() == 0) return ffi::Error::Success();
  const int64_t batch = leading.count();
  const auto run = [&](auto zero) {
    using T = decltype(zero);
    MultiplyAll(&pool, Dot<T>{batch, m, n, k, static_cast<const T*>(left.untyped_data()),
                              static_cast<const T*>(right.untyped_data()),
                              static_cast<T*>(out->untyped_data()), left_turned ? 1 : int64_t{k},
                              left_turned ? int64_t{m} : 1, right_turned ? k : n, n, right_turned});
    return ffi::Error::Success();
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

XLA_FFI_DEFINE_HANDLER_SYMBOL(weft_dot, weft::DotAll,
                              xla::ffi::Ffi::Bind()
                                  .Ctx<xla::ffi::ThreadPool>()
                                  .Arg<xla::ffi::AnyBuffer>()
                                  .Arg<xla::ffi::AnyBuffer>()
                                  .Ret<xla::ffi::AnyBuffer>()
                                  .Attr<bool>("left_turned")
                                  .Attr<bool>("right_turned"));
