#pragma once

#include "engine/cuda/kernels/matrix_attention_pass.h"

// The kernels of attention on tensor cores: matrix_attention_pass.h says how they do it.

namespace planloom {

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

} // namespace planloom
