// Products of floats for processors with vectors of 512 bits, where oneDNN's leave time lying: see
// `isWideFaster`. Blocked as in gemm_portable.cpp:
//
//        n ->                        a panel of b: k x 48, in order, read once for all rows;
//      +----+----+----+----+         while it is multiplied, the next one comes into the cache
//    k |    |next|    |    |  b
//      +----+----+----+----+
//    +-+ +-+-----+
//    |a| |c|tile |                   strips of a: k x 8, in order; a tile of c, 8 x 48, is 24 registers
//    +-+ +-+-----+

#include "engine/kernels/elements/vector_math.h"
#include "engine/kernels/products/gemm.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))

namespace planloom {

namespace {

#define PLANLOOM_WIDE __attribute__((target("arch=x86-64-v4")))

constexpr std::int64_t kLanes = 16;
constexpr std::int64_t kTileRows = 8;
constexpr std::int64_t kTileVectors = 3;
constexpr std::int64_t kTileColumns = kTileVectors * kLanes;
constexpr std::int64_t kDepth = 640; ///< Of a panel: it and the strips beside it fit into a second cache.
constexpr std::int64_t kRows = 128; ///< That a panel is multiplied with while it is there.
constexpr std::int64_t kPanels = 32; ///< Kept for further rows.
constexpr std::int64_t kUnrolled = 4;
constexpr std::int64_t kFetched = 256; ///< Bytes that are fetched at once.

typedef float Vector __attribute__((vector_size(64), may_alias));
typedef float LooseVector __attribute__((vector_size(64), aligned(4), may_alias)); // anywhere
typedef double PairVector __attribute__((vector_size(64)));

/// What comes into the cache while something else is computed: rows of a panel, as they lie.
struct Ahead {
    const char *first = nullptr;
    std::int64_t rowBytes = 0; ///< From one row to the next.
    std::int64_t perRow = 1; ///< Stretches of kFetched bytes.
    std::int64_t at = 0;
    std::int64_t end = 0;
};

PLANLOOM_INLINE void fetchSome(Ahead &ahead)
{
    if (ahead.at >= ahead.end)
        return;
    const char *from =
        ahead.first + ahead.at / ahead.perRow * ahead.rowBytes + ahead.at % ahead.perRow * kFetched;
    for (std::int64_t line = 0; line < kFetched; line += 64)
        __builtin_prefetch(from + line);
    ++ahead.at;
}

/// Where a tile goes: each row is what `base` has there, if anything, and the tile's.
struct TileTarget {
    float *c = nullptr;
    std::int64_t cRow = 0;
    const float *base = nullptr;
    std::int64_t baseRow = 0;
};

/// The panel's rows from `p` on, times the strip's.
PLANLOOM_INLINE void addStep(
    const float *strip, const float *panel, std::int64_t p, Vector (&sums)[kTileRows][kTileVectors])
{
    const auto *const b = reinterpret_cast<const Vector *>(panel + p * kTileColumns);
#pragma GCC unroll 8
    for (std::int64_t i = 0; i < kTileRows; ++i) {
        const float a = strip[p * kTileRows + i];
#pragma GCC unroll 3
        for (std::int64_t j = 0; j < kTileVectors; ++j)
            sums[i][j] += a * b[j];
    }
}

PLANLOOM_WIDE void tileProduct(
    const float *strip, const float *panel, std::int64_t depth, const TileTarget &target, Ahead &ahead)
{
    for (std::int64_t i = 0; i < kTileRows; ++i) { // it is there by the time it is written
        const float *row = target.c + i * target.cRow;
        for (std::int64_t line = 0; line < kTileColumns; line += kLanes)
            __builtin_prefetch(row + line, 1);
        __builtin_prefetch(row + kTileColumns - 1, 1);
    }
    Vector sums[kTileRows][kTileVectors];
#pragma GCC unroll 8
    for (std::int64_t i = 0; i < kTileRows; ++i)
#pragma GCC unroll 3
        for (std::int64_t j = 0; j < kTileVectors; ++j)
            sums[i][j] = Vector{};
    std::int64_t p = 0;
    for (; p + kUnrolled <= depth; p += kUnrolled) {
        if (p % (2 * kUnrolled) == 0)
            fetchSome(ahead);
#pragma GCC unroll 4
        for (std::int64_t u = 0; u < kUnrolled; ++u)
            addStep(strip, panel, p + u, sums);
    }
    for (; p < depth; ++p)
        addStep(strip, panel, p, sums);
#pragma GCC unroll 8
    for (std::int64_t i = 0; i < kTileRows; ++i) {
        // Not by `auto`, which would forget that they may lie anywhere.
        LooseVector *const to = reinterpret_cast<LooseVector *>(target.c + i * target.cRow);
        const LooseVector *const base =
            reinterpret_cast<const LooseVector *>(target.base + i * target.baseRow);
#pragma GCC unroll 3
        for (std::int64_t j = 0; j < kTileVectors; ++j)
            to[j] = target.base == nullptr ? sums[i][j] : base[j] + sums[i][j];
    }
}

/// 16 rows of 16 numbers, `row` apart, into columns that are those of a panel.
PLANLOOM_INLINE void transpose(const float *from, std::int64_t row, float *to)
{
    Vector rows[kLanes];
    Vector pairs[kLanes];
#pragma GCC unroll 16
    for (std::int64_t i = 0; i < kLanes; ++i)
        rows[i] = *reinterpret_cast<const LooseVector *>(from + i * row);
        // In each quarter of a vector, columns of two rows, then of four, side by side.
#pragma GCC unroll 8
    for (std::int64_t i = 0; i < kLanes; i += 2) {
        pairs[i] = __builtin_shufflevector(
            rows[i], rows[i + 1], 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29);
        pairs[i + 1] = __builtin_shufflevector(
            rows[i], rows[i + 1], 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31);
    }
    PairVector fours[kLanes]; // fours[i + q]: columns q, 4 + q, 8 + q and 12 + q of rows i to i + 3
#pragma GCC unroll 4
    for (std::int64_t i = 0; i < kLanes; i += 4) {
#pragma GCC unroll 2
        for (std::int64_t half = 0; half < 2; ++half) {
            const auto upper = reinterpret_cast<PairVector>(pairs[i + half]);
            const auto lower = reinterpret_cast<PairVector>(pairs[i + half + 2]);
            fours[i + 2 * half] = __builtin_shufflevector(upper, lower, 0, 8, 2, 10, 4, 12, 6, 14);
            fours[i + 2 * half + 1] = __builtin_shufflevector(upper, lower, 1, 9, 3, 11, 5, 13, 7, 15);
        }
    }
    // Then whole quarters.
#pragma GCC unroll 4
    for (std::int64_t q = 0; q < 4; ++q) {
        const PairVector even0 = __builtin_shufflevector(fours[q], fours[4 + q], 0, 1, 4, 5, 8, 9, 12, 13);
        const PairVector even1 =
            __builtin_shufflevector(fours[8 + q], fours[12 + q], 0, 1, 4, 5, 8, 9, 12, 13);
        const PairVector odd0 = __builtin_shufflevector(fours[q], fours[4 + q], 2, 3, 6, 7, 10, 11, 14, 15);
        const PairVector odd1 =
            __builtin_shufflevector(fours[8 + q], fours[12 + q], 2, 3, 6, 7, 10, 11, 14, 15);
        const auto store = [&](std::int64_t column, const PairVector &upper, const PairVector &lower,
            bool second) __attribute__((always_inline))
        {
            *reinterpret_cast<Vector *>(to + column * kTileColumns) = reinterpret_cast<Vector>(second
                    ? __builtin_shufflevector(upper, lower, 2, 3, 6, 7, 10, 11, 14, 15)
                    : __builtin_shufflevector(upper, lower, 0, 1, 4, 5, 8, 9, 12, 13));
        };
        store(q, even0, even1, false);
        store(8 + q, even0, even1, true);
        store(4 + q, odd0, odd1, false);
        store(12 + q, odd0, odd1, true);
    }
}

/// A whole panel whose columns lie one behind another, `column` apart.
PLANLOOM_WIDE void packTransposed(const float *from, std::int64_t column, std::int64_t depth, float *to)
{
    std::int64_t p = 0;
    for (; p + kLanes <= depth; p += kLanes)
        for (std::int64_t j = 0; j < kTileColumns; j += kLanes)
            transpose(from + j * column + p, column, to + p * kTileColumns + j);
    for (; p < depth; ++p)
        for (std::int64_t j = 0; j < kTileColumns; ++j)
            to[p * kTileColumns + j] = from[j * column + p];
}

/// `count` numbers beside each other, zeros up to `width`, for each of `depth` steps.
PLANLOOM_INLINE void pack(const float *from, std::int64_t step, std::int64_t beside, std::int64_t depth,
    std::int64_t count, std::int64_t width, float *to)
{
    for (std::int64_t p = 0; p < depth; ++p) {
        for (std::int64_t j = 0; j < count; ++j)
            to[p * width + j] = from[p * step + j * beside];
        for (std::int64_t j = count; j < width; ++j)
            to[p * width + j] = 0;
    }
}

PLANLOOM_WIDE void packPanel(const MatrixProduct<float> &p, std::int64_t k0, std::int64_t depth,
    std::int64_t n0, std::int64_t columns, float *to)
{
    const float *from = p.b + k0 * p.bRow + n0 * p.bColumn;
    if (columns < kTileColumns)
        pack(from, p.bRow, p.bColumn, depth, columns, kTileColumns, to);
    else if (p.bColumn == 1)
        pack(from, p.bRow, 1, depth, kTileColumns, kTileColumns, to);
    else
        packTransposed(from, p.bColumn, depth, to);
}

PLANLOOM_WIDE void packStrips(const MatrixProduct<float> &p, std::int64_t k0, std::int64_t depth,
    std::int64_t m0, std::int64_t rows, float *to)
{
    for (std::int64_t i = 0; i < rows; i += kTileRows) {
        const float *from = p.a + (m0 + i) * p.aRow + k0 * p.aColumn;
        const std::int64_t count = std::min(kTileRows, rows - i);
        if (count < kTileRows)
            pack(from, p.aColumn, p.aRow, depth, count, kTileRows, to + i * depth);
        else if (p.aRow == 1)
            pack(from, p.aColumn, 1, depth, kTileRows, kTileRows, to + i * depth);
        else
            pack(from, 1, p.aRow, depth, kTileRows, kTileRows, to + i * depth);
    }
}

/// The part of a panel's source that the next one is made of.
Ahead panelAt(const MatrixProduct<float> &p, std::int64_t k0, std::int64_t depth, std::int64_t n0)
{
    constexpr auto kSize = static_cast<std::int64_t>(sizeof(float));
    Ahead ahead;
    ahead.first = reinterpret_cast<const char *>(p.b + k0 * p.bRow + n0 * p.bColumn);
    const bool byRows = p.bColumn == 1;
    ahead.rowBytes = kSize * (byRows ? p.bRow : p.bColumn);
    ahead.perRow = (kSize * (byRows ? kTileColumns : depth) + kFetched - 1) / kFetched;
    ahead.end = ahead.perRow * (byRows ? depth : kTileColumns);
    return ahead;
}

/// Memory in which panels and strips are brought into order; each thread keeps its own.
class Workplace
{
public:
    float *panel(std::int64_t number) { return aligned(m_panels) + number * kDepth * kTileColumns; }
    float *strips() { return aligned(m_strips); }
    void makeRoom(std::int64_t panels)
    {
        constexpr std::int64_t kSpare = kLanes; // to begin at a whole vector
        m_strips.resize(static_cast<std::size_t>(kRows * kDepth + kSpare));
        m_panels.resize(
            std::max(m_panels.size(), static_cast<std::size_t>(panels * kDepth * kTileColumns + kSpare)));
    }

private:
    static float *aligned(std::vector<float> &memory)
    {
        const auto at = reinterpret_cast<std::uintptr_t>(memory.data());
        return memory.data() + (64 - at % 64) % 64 / sizeof(float);
    }
    std::vector<float> m_panels{};
    std::vector<float> m_strips{};
};

/// One panel with the strips of some rows.
void multiplyPanel(const MatrixProduct<float> &p, const TileTarget &target, std::int64_t rows,
    std::int64_t columns, std::int64_t depth, const float *strips, const float *panel, Ahead ahead)
{
    alignas(64) std::array<float, kTileRows * kTileColumns> tile;
    for (std::int64_t i = 0; i < rows; i += kTileRows) {
        TileTarget at = target;
        at.c += i * target.cRow;
        if (at.base != nullptr)
            at.base += i * target.baseRow;
        const std::int64_t height = std::min(kTileRows, rows - i);
        if (height == kTileRows && columns == kTileColumns) {
            tileProduct(strips + i * depth, panel, depth, at, ahead);
            continue;
        }
        tileProduct(strips + i * depth, panel, depth, {tile.data(), kTileColumns}, ahead);
        for (std::int64_t r = 0; r < height; ++r)
            for (std::int64_t j = 0; j < columns; ++j)
                at.c[r * p.cRow + j] = (at.base == nullptr ? 0.0f : at.base[r * at.baseRow + j])
                    + tile[static_cast<std::size_t>(r * kTileColumns + j)];
    }
}

void multiplyBlocks(const MatrixProduct<float> &p, bool accumulate)
{
    static thread_local Workplace place;
    const bool keeps = p.m > kRows;
    place.makeRoom(keeps ? kPanels : 1);
    const std::int64_t width = keeps ? kPanels * kTileColumns : p.n;
    for (std::int64_t n0 = 0; n0 < p.n; n0 += width) {
        const std::int64_t n1 = std::min(n0 + width, p.n);
        for (std::int64_t k0 = 0; k0 < p.k; k0 += kDepth) {
            const std::int64_t depth = std::min(kDepth, p.k - k0);
            for (std::int64_t m0 = 0; m0 < p.m; m0 += kRows) {
                const std::int64_t rows = std::min(kRows, p.m - m0);
                packStrips(p, k0, depth, m0, rows, place.strips());
                for (std::int64_t j = n0; j < n1; j += kTileColumns) {
                    const std::int64_t columns = std::min(kTileColumns, n1 - j);
                    float *const panel = place.panel(keeps ? (j - n0) / kTileColumns : 0);
                    Ahead ahead;
                    if (m0 == 0) {
                        packPanel(p, k0, depth, j, columns, panel);
                        if (j + 2 * kTileColumns <= n1)
                            ahead = panelAt(p, k0, depth, j + kTileColumns);
                    }
                    TileTarget target{p.c + m0 * p.cRow + j, p.cRow};
                    if (accumulate || k0 > 0) {
                        target.base = target.c;
                        target.baseRow = p.cRow;
                    } else if (p.bias != nullptr) {
                        target.base = p.bias + j; // for every row
                    }
                    multiplyPanel(p, target, rows, columns, depth, place.strips(), panel, ahead);
                }
            }
        }
    }
}

} // namespace

bool multiplyWide(const ProductStep<float> &step)
{
    static const bool has = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw")
        && __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq")
        && __builtin_cpu_supports("avx512vl");
    const MatrixProduct<float> &p = step.product;
    const bool isInOrder = (p.aRow == 1 || p.aColumn == 1) && (p.bRow == 1 || p.bColumn == 1);
    // The last panel is as wide as the others, however few columns it has.
    const std::int64_t computed = (p.n + kTileColumns - 1) / kTileColumns * kTileColumns;
    const bool isWasteful = computed - p.n > p.n / 8;
    if (!has || !isInOrder || step.repeats != 1 || p.m < 2 * kTileRows || p.n < kTileColumns || isWasteful
        || p.k < kLanes || (step.accumulate && p.bias != nullptr))
        return false;
    multiplyBlocks(p, step.accumulate);
    return true;
}

/// oneDNN was measured to be slower on AMD's processors where it has to transpose the larger operand for few
/// rows, of which it does a fifteenth to a third less in the same time (512 rows, 64 rows); and where so
/// little is added to each number of a large c that c itself is what takes time, which it does not fetch
/// ahead. On others it was not measured: it has the products there. Portable loops always are slower.
bool isWideFaster([[maybe_unused]] const ProductStep<float> &step)
{
#ifdef PLANLOOM_HAVE_ONEDNN
    constexpr std::int64_t kFewRows = 512;
    constexpr std::int64_t kLittle = 96;
    static const bool measured = __builtin_cpu_is("amd");
    const MatrixProduct<float> &p = step.product;
    return measured && ((p.bColumn != 1 && p.m <= kFewRows) || (step.accumulate && p.k <= kLittle));
#else
    return true;
#endif
}

} // namespace planloom

#else

namespace planloom {

bool multiplyWide(const ProductStep<float> &)
{
    return false;
}

bool isWideFaster(const ProductStep<float> &)
{
    return false;
}

} // namespace planloom

#endif
