#pragma once

#include "engine/cuda/kernels/attention_kernels.h"
#include "engine/cuda/kernels/warp_matrices.h"

// Attention whose products run on tensor cores: FlashAttention-2 (arXiv:2307.08691, algorithms 1 and 2), of
// operands of 16 bits, with sums of 32 bits. A block of four warps makes a tile of queries, or of keys; a
// warp has 16 of its rows, and what is made of them in registers:
//
//                keys, or queries, tile by tile          s = a b^T: what a warp's lanes hold of it is what
//                they
//              +---------+---------+-- ..                hold of an operand of the next product, so that
//              neither
//       warp 0 | 16 rows |         |                     scores nor probabilities are ever in memory.
//       warp 1 | 16 rows |  next   |
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

/// y and the log-sum-exps of a tile of queries of one head.
struct MatrixAttentionKernel {
    AttentionScores scores{}; ///< `compute` says which operands.
    Elements v{};
    Elements y{}; ///< No data: not wanted.
    Elements logSum{};
    std::int64_t valueWidth = 0;

    std::int64_t widest() const { return valueWidth > scores.width ? valueWidth : scores.width; }
    DataType operands() const { return scores.compute; }

    static constexpr int kQueries = 16 * kMatrixWarps; ///< Of a tile: one of them is an item.
    static constexpr int keysOf(int width) { return width > 128 ? 32 : 64; }
    template<typename Operands, int kWidth, typename Block>
    using Pass = MatrixPass<Operands, kWidth, keysOf(kWidth), false, Block>;
    template<int kWidth> std::size_t sharedBytes() const
    {
        return (kQueries + 2 * keysOf(kWidth)) * kWidth * sizeof(std::uint16_t)
            + MatrixNotes::bytesWith(scores.hasAddedMasks(), keysOf(kWidth));
    }

    template<typename Operands, int kWidth, typename Block>
    PLANLOOM_INLINE void run(const Block &block, std::int64_t item) const
    {
        constexpr int kKeys = keysOf(kWidth);
        const AttentionScores &s = scores;
        const std::int64_t tiles = (s.queries + kQueries - 1) / kQueries;
        const std::int64_t head = item / tiles;
        // Where reach is causal, the last tiles take longest: those are begun with.
        const std::int64_t query = (tiles - 1 - item % tiles) * kQueries;
        const std::int64_t rows = s.queries - query < kQueries ? s.queries - query : kQueries;
        const std::int64_t own = query + block.warp() * 16; // of this warp

        const SharedRows<kWidth> q{block.shared()};
        const SharedRows<kWidth> k{q.elements + kQueries * kWidth};
        const SharedRows<kWidth> values{k.elements + kKeys * kWidth};
        Pass<Operands, kWidth, Block> pass(s, block, values.elements + kKeys * kWidth);
        pass.begin(head);
        const std::int64_t allKeys = s.keyHead(head) * s.keys;
        const auto bringKeys = [&](std::int64_t key) {
            pass.template bring<kKeys>(k, s.k, (allKeys + key) * s.width, s.keys - key, s.width);
        };

        WarpFloats<kWidth / 2> made;
        WarpFloats<2> largest; // of the two rows that a lane has elements of
        WarpFloats<2> sums; // this lane's part of them
        for (const int lane : Lanes{}) {
            PLANLOOM_UNROLL
            for (int i = 0; i < kWidth / 2; ++i)
                made[lane][i] = 0;
            PLANLOOM_UNROLL
            for (int i = 0; i < 2; ++i) {
                largest[lane][i] = minusInfinity();
                sums[lane][i] = 0;
            }
        }

        std::int64_t end = 0;
        std::int64_t key = tileBegin(s.keysMet(query, rows, end), kKeys);
        pass.template bring<kQueries>(q, s.q, (head * s.queries + query) * s.width, rows, s.width);
        if (key < end)
            bringKeys(key);
        for (; key < end; key += kKeys) {
            block.arrive();
            block.meet(); // keys are there; the values before them have been read
            pass.template bring<kKeys>(values, v, (allKeys + key) * valueWidth, s.keys - key, valueWidth);
            WarpFloats<kKeys / 2> tile;
            pass.multiply(tile, q, block.warp() * 16, k, s.width);
            pass.see(own, key);
            toProbabilities(pass, tile, largest, sums, made);
            WarpPairs<kKeys / 4> probabilities;
            pass.pack(tile, probabilities);
            block.arrive();
            block.meet(); // values are there; the keys have been read
            if (key + kKeys < end)
                bringKeys(key + kKeys);
            pass.template multiplyAddRows<kWidth>(made, probabilities, values, 0, valueWidth);
        }

        joinRows(sums, [](float a, float b) { return a + b; });
        WarpFloats<2> factors;
        for (const int lane : Lanes{}) {
            PLANLOOM_UNROLL
            for (int i = 0; i < 2; ++i) {
                const float sum = sums[lane][i];
                factors[lane][i] = sum == 0 ? 0.0f : 1 / sum;
                const std::int64_t row = own + placeInC(lane, 2 * i).row;
                if (lane % 4 == 0 && row < s.queries && logSum.data != nullptr)
                    static_cast<float *>(logSum.data)[head * s.queries + row] =
                        sum == 0 ? minusInfinity() : largest[lane][i] + logf(sum);
            }
        }
        if (y.data != nullptr)
            pass.template storeRows<kWidth>(
                y, head * s.queries * valueWidth, own, s.queries, 0, valueWidth, made, factors);
        block.arrive();
        block.meet(); // the next item begins with the same memory
    }

private:
    /// Sums of q k to probabilities before they are divided; what was summed and made so far shrinks to them.
    template<typename OwnPass, int kTile, int kMade>
    PLANLOOM_INLINE static void toProbabilities(const OwnPass &pass, WarpFloats<kTile> &tile,
        WarpFloats<2> &largest, WarpFloats<2> &sums, WarpFloats<kMade> &made)
    {
        WarpFloats<2> highest = largest;
        for (const int lane : Lanes{}) {
            PLANLOOM_UNROLL
            for (int i = 0; i < kTile; ++i) {
                const float value = pass.score(lane, i, tile[lane][i]);
                tile[lane][i] = value;
                float &high = highest[lane][i % 4 / 2];
                high = value > high ? value : high;
            }
        }
        joinRows(highest, [](float a, float b) { return b > a ? b : a; });
        for (const int lane : Lanes{}) {
            float shift[2];
            PLANLOOM_UNROLL
            for (int i = 0; i < 2; ++i) {
                // Of nothing but minus infinity any finite shift makes zeros; what is no number remains so.
                shift[i] = highest[lane][i] == minusInfinity() ? 0.0f : highest[lane][i];
                const float shrunk = fastPowerOfTwo((largest[lane][i] - shift[i]) * kLog2E);
                largest[lane][i] = highest[lane][i];
                sums[lane][i] *= shrunk;
                PLANLOOM_UNROLL
                for (int n = 2 * i; n < kMade; n += 4) {
                    made[lane][n] *= shrunk;
                    made[lane][n + 1] *= shrunk;
                }
            }
            PLANLOOM_UNROLL
            for (int i = 0; i < kTile; ++i) {
                const float value = fastPowerOfTwo((tile[lane][i] - shift[i % 4 / 2]) * kLog2E);
                sums[lane][i % 4 / 2] += value;
                tile[lane][i] = pass.dropped(lane, i, value);
            }
        }
    }
};

/// What both kernels of the backward pass are given.
struct MatrixSlopes {
    AttentionScores scores{};
    Elements v{}; ///< No data: only dv is wanted.
    Elements dy{};
    const float *rows = nullptr; ///< Of AttentionRowsKernel.
    std::int64_t valueWidth = 0;

    std::int64_t widest() const { return valueWidth > scores.width ? valueWidth : scores.width; }

    /// A sum of q k, and one of dy v, to the probability as the dropout leaves it, and to the slope of the
    /// sum, but for the scale. `facts`, of the query: shift, share and D.
    template<typename Pass>
    PLANLOOM_INLINE static void turn(
        const Pass &pass, int lane, int i, const float *facts, float &product, float &slope)
    {
        float capped = product;
        const float score = pass.score(lane, i, capped);
        // Where the key, or all keys, are not seen, nothing is made of what is no number either.
        const bool isSeen = score != minusInfinity() && facts[0] != minusInfinity();
        const float whole = fastPowerOfTwo((score - facts[0]) * kLog2E) * facts[1];
        float made = whole * (pass.dropped(lane, i, slope) - facts[2]);
        if (pass.scores.softcap > 0)
            made *= 1 - capped * capped;
        product = isSeen ? pass.dropped(lane, i, whole) : 0.0f;
        slope = isSeen && !pass.isFixed(lane, i) ? made : 0.0f;
    }
};

/// dk and dv of a tile of keys.
struct MatrixAttentionKeysKernel {
    MatrixSlopes slopes{};
    Elements dk{}; ///< No data: not wanted.
    Elements dv{};

    std::int64_t widest() const { return slopes.widest(); }
    DataType operands() const { return slopes.scores.compute; }

    /// Warps that share 16 keys, each with a part of the columns of dk and dv: registers end there.
    static constexpr int partsOf(int width) { return width > 128 ? 2 : 1; }
    static constexpr int keysOf(int width) { return 16 * kMatrixWarps / partsOf(width); }
    static constexpr int queriesOf(int width) { return width > 128 ? 16 : width > 64 ? 32 : 64; }
    std::int64_t rowsOfTile() const { return keysOf(static_cast<int>(widest())); } ///< One is an item.
    template<typename Operands, int kWidth, typename Block>
    using Pass = MatrixPass<Operands, kWidth, queriesOf(kWidth), true, Block>;
    template<int kWidth> std::size_t sharedBytes() const
    {
        return (keysOf(kWidth) + queriesOf(kWidth)) * kWidth * 2 * sizeof(std::uint16_t)
            + queriesOf(kWidth) * 3 * sizeof(float)
            + MatrixNotes::bytesWith(slopes.scores.hasAddedMasks(), queriesOf(kWidth));
    }

    template<typename Operands, int kWidth, typename Block>
    PLANLOOM_INLINE void run(const Block &block, std::int64_t item) const
    {
        constexpr int kParts = partsOf(kWidth);
        constexpr int kKeys = keysOf(kWidth);
        constexpr int kQueries = queriesOf(kWidth);
        constexpr int kMade = kWidth / kParts; // columns of a warp
        const AttentionScores &s = slopes.scores;
        const std::int64_t valueWidth = slopes.valueWidth;
        const std::int64_t tiles = (s.keys + kKeys - 1) / kKeys;
        const std::int64_t keyHead = item / tiles;
        const std::int64_t key = item % tiles * kKeys;
        const std::int64_t rows = s.keys - key < kKeys ? s.keys - key : kKeys;
        const int group = block.warp() / kParts * 16;
        const int column = block.warp() % kParts * kMade;
        const bool hasSlopes = slopes.v.data != nullptr;

        const SharedRows<kWidth> k{block.shared()};
        const SharedRows<kWidth> v{k.elements + kKeys * kWidth};
        const SharedRows<kWidth> q{v.elements + kKeys * kWidth};
        const SharedRows<kWidth> dy{q.elements + kQueries * kWidth};
        auto *const facts = reinterpret_cast<float *>(dy.elements + kQueries * kWidth);
        Pass<Operands, kWidth, Block> pass(s, block, dy.elements + kQueries * (kWidth + 6));

        WarpFloats<kMade / 2> madeKeys;
        WarpFloats<kMade / 2> madeValues;
        WarpFloats<2> ones;
        WarpFloats<2> scales;
        for (const int lane : Lanes{}) {
            PLANLOOM_UNROLL
            for (int i = 0; i < kMade / 2; ++i)
                madeKeys[lane][i] = madeValues[lane][i] = 0;
            ones[lane] = {{1, 1}};
            scales[lane] = {{s.scale, s.scale}};
        }

        const std::int64_t first = keyHead * s.keys + key;
        pass.template bring<kKeys>(k, s.k, first * s.width, rows, s.width);
        if (hasSlopes)
            pass.template bring<kKeys>(v, slopes.v, first * valueWidth, rows, valueWidth);
        std::int64_t end = 0;
        const std::int64_t begin = tileBegin(s.queriesMet(key, rows, end), kQueries);
        for (std::int64_t head = keyHead * s.group; head < (keyHead + 1) * s.group; ++head) {
            pass.begin(head);
            for (std::int64_t query = begin; query < end; query += kQueries) {
                const std::int64_t from = head * s.queries + query;
                pass.template bring<kQueries>(q, s.q, from * s.width, s.queries - query, s.width);
                pass.template bring<kQueries>(
                    dy, slopes.dy, from * valueWidth, s.queries - query, valueWidth);
                for (const int lane : Lanes{})
                    for (int i = block.warp() * kLanes + lane; i < 3 * kQueries; i += kMatrixThreads)
                        facts[i] = query + i / 3 < s.queries ? slopes.rows[3 * from + i] : minusInfinity();
                block.arrive();
                block.meet();
                WarpFloats<kQueries / 2> tile; // [16 keys, queries]
                WarpFloats<kQueries / 2> slope;
                pass.multiply(tile, k, group, q, s.width);
                if (hasSlopes)
                    pass.multiply(slope, v, group, dy, valueWidth);
                pass.see(query, key + group);
                for (const int lane : Lanes{}) {
                    PLANLOOM_UNROLL
                    for (int i = 0; i < kQueries / 2; ++i) {
                        float gradient = hasSlopes ? slope[lane][i] : 0.0f;
                        slopes.turn(pass, lane, i, facts + 3 * pass.rowOf(lane, i), tile[lane][i], gradient);
                        slope[lane][i] = gradient;
                    }
                }
                WarpPairs<kQueries / 4> packed;
                pass.pack(tile, packed);
                pass.template multiplyAddRows<kMade>(madeValues, packed, dy, column, valueWidth);
                if (hasSlopes) {
                    pass.pack(slope, packed);
                    pass.template multiplyAddRows<kMade>(madeKeys, packed, q, column, s.width);
                }
                block.meet(); // all have read
            }
        }
        const std::int64_t own = key + group;
        if (dv.data != nullptr)
            pass.template storeRows<kMade>(
                dv, keyHead * s.keys * valueWidth, own, s.keys, column, valueWidth, madeValues, ones);
        if (dk.data != nullptr)
            pass.template storeRows<kMade>(
                dk, keyHead * s.keys * s.width, own, s.keys, column, s.width, madeKeys, scales);
        block.arrive();
        block.meet(); // the next item begins with the same memory
    }
};

/// dq of a tile of queries.
struct MatrixAttentionQueriesKernel {
    MatrixSlopes slopes{};
    Elements dq{};

    std::int64_t widest() const { return slopes.widest(); }
    DataType operands() const { return slopes.scores.compute; }

    static constexpr int partsOf(int width) { return width > 128 ? 2 : 1; } ///< As of keys.
    static constexpr int queriesOf(int width) { return 16 * kMatrixWarps / partsOf(width); }
    std::int64_t rowsOfTile() const { return queriesOf(static_cast<int>(widest())); } ///< One is an item.
    static constexpr int keysOf(int width) { return width > 64 ? 32 : 64; }
    template<typename Operands, int kWidth, typename Block>
    using Pass = MatrixPass<Operands, kWidth, keysOf(kWidth), false, Block>;
    template<int kWidth> std::size_t sharedBytes() const
    {
        return (keysOf(kWidth) + queriesOf(kWidth)) * kWidth * 2 * sizeof(std::uint16_t)
            + MatrixNotes::bytesWith(slopes.scores.hasAddedMasks(), keysOf(kWidth));
    }

    template<typename Operands, int kWidth, typename Block>
    PLANLOOM_INLINE void run(const Block &block, std::int64_t item) const
    {
        constexpr int kParts = partsOf(kWidth);
        constexpr int kKeys = keysOf(kWidth);
        constexpr int kQueries = queriesOf(kWidth);
        constexpr int kMade = kWidth / kParts;
        const AttentionScores &s = slopes.scores;
        const std::int64_t valueWidth = slopes.valueWidth;
        const std::int64_t tiles = (s.queries + kQueries - 1) / kQueries;
        const std::int64_t head = item / tiles;
        const std::int64_t query = (tiles - 1 - item % tiles) * kQueries; // the longest first
        const std::int64_t rows = s.queries - query < kQueries ? s.queries - query : kQueries;
        const int group = block.warp() / kParts * 16;
        const int column = block.warp() % kParts * kMade;
        const std::int64_t own = query + group;

        const SharedRows<kWidth> q{block.shared()};
        const SharedRows<kWidth> dy{q.elements + kQueries * kWidth};
        const SharedRows<kWidth> k{dy.elements + kQueries * kWidth};
        const SharedRows<kWidth> v{k.elements + kKeys * kWidth};
        Pass<Operands, kWidth, Block> pass(s, block, v.elements + kKeys * kWidth);
        pass.begin(head);

        WarpFloats<kMade / 2> made;
        WarpFloats<2> scales;
        WarpFloats<6> facts; // shift, share and D of two rows
        for (const int lane : Lanes{}) {
            PLANLOOM_UNROLL
            for (int i = 0; i < kMade / 2; ++i)
                made[lane][i] = 0;
            scales[lane] = {{s.scale, s.scale}};
            PLANLOOM_UNROLL
            for (int i = 0; i < 6; ++i) {
                const std::int64_t row = own + placeInC(lane, i / 3 * 2).row;
                facts[lane][i] =
                    row < s.queries ? slopes.rows[3 * (head * s.queries + row) + i % 3] : minusInfinity();
            }
        }

        const std::int64_t first = head * s.queries + query;
        pass.template bring<kQueries>(q, s.q, first * s.width, rows, s.width);
        pass.template bring<kQueries>(dy, slopes.dy, first * valueWidth, rows, valueWidth);
        std::int64_t end = 0;
        const std::int64_t begin = tileBegin(s.keysMet(query, rows, end), kKeys);
        for (std::int64_t key = begin; key < end; key += kKeys) {
            const std::int64_t from = s.keyHead(head) * s.keys + key;
            pass.template bring<kKeys>(k, s.k, from * s.width, s.keys - key, s.width);
            pass.template bring<kKeys>(v, slopes.v, from * valueWidth, s.keys - key, valueWidth);
            block.arrive();
            block.meet();
            WarpFloats<kKeys / 2> tile; // [16 queries, keys]
            WarpFloats<kKeys / 2> slope;
            pass.multiply(tile, q, group, k, s.width);
            pass.multiply(slope, dy, group, v, valueWidth);
            pass.see(own, key);
            for (const int lane : Lanes{}) {
                PLANLOOM_UNROLL
                for (int i = 0; i < kKeys / 2; ++i) {
                    slopes.turn(pass, lane, i, &facts[lane][i % 4 / 2 * 3], tile[lane][i], slope[lane][i]);
                }
            }
            WarpPairs<kKeys / 4> packed;
            pass.pack(slope, packed);
            pass.template multiplyAddRows<kMade>(made, packed, k, column, s.width);
            block.meet(); // all have read
        }
        pass.template storeRows<kMade>(
            dq, head * s.queries * s.width, own, s.queries, column, s.width, made, scales);
        block.arrive();
        block.meet(); // the next item begins with the same memory
    }
};

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
