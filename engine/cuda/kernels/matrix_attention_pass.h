#pragma once

#include "engine/cuda/kernels/attention_kernels.h"
#include "engine/cuda/kernels/warp_matrices.h"

// Attention whose products run on tensor cores: FlashAttention-2 (arXiv:2307.08691, algorithms 1 and 2), of
// operands of 16 bits, with sums of 32 bits. A block of four warps makes a tile of queries, or of keys; a
// warp has 16 of its rows, and what is made of them in registers:
//
//                keys, or queries, tile by tile          s = a b^T: what a warp's lanes hold of it is
//              +---------+---------+-- ..                what they hold of an operand of the next
//       warp 0 | 16 rows |         |                     product, so that neither scores nor
//       warp 1 | 16 rows |  next   |                     probabilities are ever in memory.
//       ..     |         |         |
//
// The backward pass makes dk and dv of a tile of keys in one launch and dq of a tile of queries in another
// one: nobody adds to what another block has made, and two runs give the same bits.

namespace planloom {

constexpr int kMatrixWarps = 4; ///< Of a block.
constexpr int kMatrixThreads = kMatrixWarps * kLanes;
constexpr float kLog2E = 1.44269504f;

/// What a block keeps in its memory beside its tiles.
struct MatrixNotes {
    AttentionScores::HeadPlaces places{};

    /// Of these, and of what masks add to scores [16 columns] of each warp.
    static constexpr std::size_t bytesWith(bool addedMasks, int columns)
    {
        return sizeof(AttentionScores::HeadPlaces)
            + (addedMasks ? static_cast<std::size_t>(kMatrixWarps * 16 * columns) * sizeof(float) : 0);
    }
};

/// What the passes of a block have in common. `Block` is the block's four warps, of which this one is number
/// `warp()`: `copy` puts 16 bytes, or zeros, into their memory, later, but before `arrive` has returned to
/// the warp that asked for it; `meet` waits for all warps. kColumns: of a warp's scores, [16 kColumns]; those
/// are keys, or (kOfKeys) queries, and the rows the others.
template<typename Operands, int kWidth, int kColumns, bool kOfKeys, typename Block> struct MatrixPass {
    const AttentionScores &scores;
    const Block &block;
    MatrixNotes *notes = nullptr;
    float *added = nullptr; ///< What masks add to the scores of a warp, by lane.
    bool hasMasks = false;
    bool hasAdded = false;

    // Of a warp's scores: what the first query and the first key are, how many there are of both, and how far
    // a key may be from a query.
    std::int64_t query = 0;
    std::int64_t key = 0;
    std::int32_t queriesHere = 0;
    std::int32_t keysHere = 0;
    std::int32_t least = 0; ///< Key - query, counted here, from here on,
    std::int32_t most = 0; ///< up to here.
    bool all = false; ///< Every query sees every key.
    PerLane<std::uint32_t> hidden; ///< A bit for each of a lane's scores: by boolean masks.
    PerLane<std::uint32_t> lost; ///< Likewise: by the dropout.

    /// @param shared  16 bytes' multiple: notes, and what masks add
    PLANLOOM_INLINE MatrixPass(const AttentionScores &ofAll, const Block &own, std::uint16_t *shared)
        : scores(ofAll)
        , block(own)
        , notes(reinterpret_cast<MatrixNotes *>(shared))
        , added(reinterpret_cast<float *>(notes + 1) + own.warp() * 16 * kColumns)
        , hasMasks(ofAll.hasMasks())
        , hasAdded(ofAll.hasAddedMasks())
    {
    }

    /// The next scores are of this head. All warps have to meet before they are made.
    PLANLOOM_INLINE void begin(std::int64_t head) const
    {
        if (!hasMasks && !scores.drops)
            return;
        for (const int lane : Lanes{})
            if (block.warp() == 0 && lane == 0)
                notes->places = scores.placesOf(head);
    }
    /// The next scores are those of these queries and keys.
    PLANLOOM_INLINE void see(std::int64_t firstQuery, std::int64_t firstKey)
    {
        constexpr std::int32_t kQueries = kOfKeys ? kColumns : 16;
        constexpr std::int32_t kKeys = kOfKeys ? 16 : kColumns;
        query = firstQuery;
        key = firstKey;
        queriesHere = within(scores.queries - query, 0, kQueries);
        keysHere = within(scores.keys - key, 0, kKeys);
        const std::int64_t centre = scores.firstQuery + query + scores.offset - scores.firstKey - key;
        least = within(scores.window > 0 ? centre - scores.window + 1 : -kQueries, -kQueries, kKeys);
        const std::int64_t beyond = scores.window > 0 ? centre + scores.window - 1 : kKeys;
        most = within(scores.causal ? centre : beyond, -kQueries, kKeys);
        all = queriesHere == kQueries && keysHere == kKeys && 1 - kQueries >= least && kKeys - 1 <= most;
        if (hasMasks || scores.drops)
            note();
    }
    /// What masks and the dropout do to the scores. Once for all, so that the loops over registers, which are
    /// unrolled, need not have it in them.
    PLANLOOM_INLINE void note()
    {
        for (const int lane : Lanes{}) {
            std::uint32_t hides = 0;
            std::uint32_t loses = 0;
            PLANLOOM_ROLLED
            for (int i = 0; i < kColumns / 2; ++i) {
                const std::int32_t row = rowOf(lane, i);
                const std::int32_t column = columnOf(lane, i);
                bool fixed = false;
                float sum = 0;
                if (sees(row, column)) {
                    if (hasMasks)
                        sum = scores.masked(notes->places, query + row, key + column, 0, fixed);
                    if (scores.drops && scores.loses(notes->places, query + row, key + column))
                        loses |= 1u << i;
                }
                hides |= (fixed ? 1u : 0u) << i;
                if (hasAdded)
                    added[i * kLanes + lane] = sum;
            }
            hidden[lane] = hides;
            lost[lane] = loses;
        }
    }
    /// Which query, and which key, a lane's score number `i` is of, from the first on.
    PLANLOOM_INLINE static std::int32_t rowOf(int lane, int i)
    {
        const MatrixPlace place = placeInC(lane, i % 4);
        return kOfKeys ? i / 4 * 8 + place.column : place.row;
    }
    PLANLOOM_INLINE static std::int32_t columnOf(int lane, int i)
    {
        const MatrixPlace place = placeInC(lane, i % 4);
        return kOfKeys ? place.row : i / 4 * 8 + place.column;
    }
    PLANLOOM_INLINE static std::int32_t within(std::int64_t value, std::int32_t low, std::int32_t high)
    {
        return value < low ? low : value > high ? high : static_cast<std::int32_t>(value);
    }
    PLANLOOM_INLINE bool sees(std::int32_t row, std::int32_t column) const
    {
        return row < queriesHere && column < keysHere && column - row >= least && column - row <= most;
    }

    /// Brings kRows rows of `from`, whose elements begin at `first`, to `to`: zeros behind `rows`, and behind
    /// `width` elements of each.
    template<int kRows>
    PLANLOOM_INLINE void bring(const SharedRows<kWidth> &to, const Elements &from, std::int64_t first,
        std::int64_t rows, std::int64_t width) const
    {
        constexpr int kChunks = kWidth / 8; // of a row
        if (from.type == Operands::kType) {
            for (const int lane : Lanes{}) {
                PLANLOOM_UNROLL
                for (int n = 0; n < kRows * kChunks / kMatrixThreads; ++n) {
                    const int i = n * kMatrixThreads + block.warp() * kLanes + lane;
                    const int row = i / kChunks;
                    const int chunk = i % kChunks;
                    const bool isThere = row < rows && chunk * 8 < width;
                    const std::int64_t place = first + (isThere ? row * width + chunk * 8 : 0);
                    block.copy(
                        to.chunk(row, chunk), static_cast<const std::uint16_t *>(from.data) + place, isThere);
                }
            }
            return;
        }
        for (const int lane : Lanes{}) {
            PLANLOOM_ROLLED
            for (int i = block.warp() * kLanes + lane; i < kRows * kWidth / 2; i += kMatrixThreads) {
                const int row = i / (kWidth / 2);
                const int column = i % (kWidth / 2) * 2;
                const bool isThere = row < rows && column < width;
                const std::int64_t place = first + row * width + column;
                const std::uint32_t pair =
                    isThere ? Operands::pair(at(from, place), at(from, place + 1)) : 0u;
                *reinterpret_cast<std::uint32_t *>(to.chunk(row, column / 8) + column % 8) = pair;
            }
        }
    }

    /// The warp's scores: sums of a b^T, where a is the rows of `a` from `row` on, b the first kColumns rows
    /// of `b`; both `width` wide.
    PLANLOOM_INLINE void multiply(WarpFloats<kColumns / 2> &c, const SharedRows<kWidth> &a, int row,
        const SharedRows<kWidth> &b, std::int64_t width) const
    {
        for (const int lane : Lanes{}) {
            PLANLOOM_UNROLL
            for (int i = 0; i < kColumns / 2; ++i)
                c[lane][i] = 0;
        }
        PLANLOOM_UNROLL
        for (int column = 0; column < kWidth; column += 16) {
            if (column >= width)
                break;
            WarpPairs<4> left;
            a.loadA(left, row, column);
            PLANLOOM_UNROLL
            for (int n = 0; n < kColumns; n += 16) {
                WarpPairs<4> right;
                b.loadColumns(right, n, column);
                multiplyAdd<Operands>(c, n / 2, left, 0, right, 0);
                multiplyAdd<Operands>(c, n / 2 + 4, left, 0, right, 2);
            }
        }
    }

    /// c [16 kMade] += a b: a [16 kColumns] is the warp's scores, packed, b the first kColumns rows of `b`
    /// from `column` on.
    template<int kMade>
    PLANLOOM_INLINE void multiplyAddRows(WarpFloats<kMade / 2> &c, const WarpPairs<kColumns / 4> &a,
        const SharedRows<kWidth> &b, int column, std::int64_t width) const
    {
        PLANLOOM_UNROLL
        for (int n = 0; n < kMade; n += 16) {
            if (column + n >= width)
                break;
            PLANLOOM_UNROLL
            for (int row = 0; row < kColumns; row += 16) {
                WarpPairs<4> right;
                b.loadRows(right, row, column + n);
                multiplyAdd<Operands>(c, n / 2, a, row / 4, right, 0);
                multiplyAdd<Operands>(c, n / 2 + 4, a, row / 4, right, 2);
            }
        }
    }
    PLANLOOM_INLINE static void pack(const WarpFloats<kColumns / 2> &c, WarpPairs<kColumns / 4> &a)
    {
        PLANLOOM_UNROLL
        for (int n = 0; n < kColumns / 2; n += 8)
            packAsA<Operands>(c, n, a, n / 2);
    }

    /// The score behind the sum `product`, which becomes tanh of what it was where scores are capped.
    PLANLOOM_INLINE float score(int lane, int i, float &product) const
    {
        float value = product * scores.scale;
        if (scores.softcap > 0) {
            const float power = fastPowerOfTwo(2 * kLog2E * product * (scores.scale / scores.softcap));
            product = 1 - fastQuotient(2, power + 1);
            value = product * scores.softcap;
        }
        if (hasAdded)
            value += added[i * kLanes + lane];
        if (isFixed(lane, i))
            value = scores.maskedScore;
        return all || sees(rowOf(lane, i), columnOf(lane, i)) ? value : minusInfinity();
    }
    /// The score is the same whatever query and key are.
    PLANLOOM_INLINE bool isFixed(int lane, int i) const { return hasMasks && (hidden[lane] >> i & 1u) != 0; }
    PLANLOOM_INLINE float dropped(int lane, int i, float value) const
    {
        if (!scores.drops)
            return value;
        return (lost[lane] >> i & 1u) != 0 ? 0.0f : value * scores.enlarged;
    }
    /// Elements of `to` from `place` on, which are next to each other; `place` is even.
    PLANLOOM_INLINE static void storePair(const Elements &to, std::int64_t place, float first, float second)
    {
        if (to.type == Operands::kType) {
            static_cast<std::uint32_t *>(to.data)[place / 2] = Operands::pair(first, second);
        } else { // Float32
            static_cast<float *>(to.data)[place] = first;
            static_cast<float *>(to.data)[place + 1] = second;
        }
    }
    /// A warp's c [16 kMade] becomes rows of `to` from `row` on, of `rows`, times `factors`: those of the two
    /// rows that a lane has elements of.
    template<int kMade>
    PLANLOOM_INLINE void storeRows(const Elements &to, std::int64_t first, std::int64_t row,
        std::int64_t rows, int column, std::int64_t width, const WarpFloats<kMade / 2> &c,
        const WarpFloats<2> &factors) const
    {
        for (const int lane : Lanes{}) {
            PLANLOOM_UNROLL
            for (int i = 0; i < kMade / 2; i += 2) {
                const MatrixPlace place = placeInC(lane, i % 4);
                const std::int64_t e = column + i / 4 * 8 + place.column;
                if (row + place.row < rows && e < width)
                    storePair(to, first + (row + place.row) * width + e,
                        c[lane][i] * factors[lane][i % 4 / 2], c[lane][i + 1] * factors[lane][i % 4 / 2]);
            }
        }
    }
};

/// The first of a tile's rows that holds `begin`.
PLANLOOM_INLINE std::int64_t tileBegin(std::int64_t begin, std::int64_t tile)
{
    return begin / tile * tile;
}

/// Calls `run.template operator()<Operands, kWidth>()` with what `kernel` asks for: heads of queries, keys
/// and values are rounded up to a width that there is a kernel for. False if there is none.
template<typename Kernel, typename Run> bool withMatrixWidth(const Kernel &kernel, Run run)
{
    const std::int64_t width = kernel.widest();
    const auto ofType = [&]<typename Operands>(Operands) {
        if (width <= 64)
            run.template operator()<Operands, 64>();
        else if (width <= 128)
            run.template operator()<Operands, 128>();
        else
            run.template operator()<Operands, 256>();
        return true;
    };
    if (width > kMostHeadWidth)
        return false;
    if (kernel.operands() == DataType::BFloat16)
        return ofType(BFloat16Operands{});
    return kernel.operands() == DataType::Float16 && ofType(Float16Operands{});
}

/// Bytes of memory that a block of `kernel` needs.
template<typename Kernel> std::size_t matrixSharedBytes(const Kernel &kernel)
{
    std::size_t bytes = 0;
    (void)withMatrixWidth(
        kernel, [&]<typename Operands, int kWidth>() { bytes = kernel.template sharedBytes<kWidth>(); });
    return bytes;
}
/// Bytes of memory that devices with code of this architecture all let a block have.
constexpr std::size_t mostSharedBytes(std::int32_t architecture)
{
    return (architecture < 80 ? 64 : 99) * std::size_t{1024};
}

} // namespace planloom
