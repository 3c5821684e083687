#pragma once

#include "engine/cuda/kernels/row_kernels.h"
#include "engine/kernels/attention/attention_sizes.h"

// Attention in tiles, without scores in memory (FlashAttention-2, arXiv:2307.08691), as attention.cpp has it:
// a team makes a tile of queries, or of keys, going through those on the other side tile by tile.

namespace planloom {

constexpr std::int64_t kCudaTileRows = 16; ///< Of what a team makes.
constexpr std::int64_t kCudaTileColumns = 64; ///< Of what it goes through at a time.
constexpr std::int64_t kMostHeadWidth = 256; ///< Of queries, keys and values.
constexpr std::int32_t kMostMasks = 3;

/// What all passes ask about scores; AttentionTiles of attention_tile.h, for one score at a time.
struct AttentionScores : AttentionSizes {
    struct Mask {
        Elements elements{}; ///< No data: absent.
        std::int64_t row = 0;
        std::int64_t column = 0;
        Nest<1> heads{}; ///< Where a head begins.
    };
    Elements q{};
    Elements k{};
    Mask masks[kMostMasks] = {};
    DataType compute = DataType::Float32; ///< What is seen of operands.
    bool causal = false;
    std::int64_t offset = 0;
    std::int64_t window = 0;
    float scale = 1;
    float softcap = 0;
    float maskedScore = 0;
    bool drops = false;
    std::uint64_t dropKey = 0;
    std::uint64_t dropBound = 0;
    float enlarged = 1; ///< What is kept.
    std::int64_t firstDrawn = 0;
    Nest<1> drawn{}; ///< Of a head's first score among those of the whole operator.

    /// An operand's element as products see it.
    PLANLOOM_INLINE float seen(const Elements &from, std::int64_t i) const
    {
        return roundedFor(compute, at(from, i));
    }
    PLANLOOM_INLINE std::int64_t keyHead(std::int64_t head) const { return head / group; }

    PLANLOOM_INLINE bool reaches(std::int64_t query, std::int64_t key) const
    {
        const std::int64_t centre = firstQuery + query + offset;
        const std::int64_t there = firstKey + key;
        if (causal && there > centre)
            return false;
        if (window <= 0)
            return true;
        const std::int64_t distance = there < centre ? centre - there : there - centre;
        return distance < window;
    }
    /// tanh(scale q k / softcap), or the product alone.
    PLANLOOM_INLINE float productAt(std::int64_t head, std::int64_t query, std::int64_t key) const
    {
        const std::int64_t fromQ = (head * queries + query) * width;
        const std::int64_t fromK = (keyHead(head) * keys + key) * width;
        float sum = 0;
        for (std::int64_t e = 0; e < width; ++e)
            sum += seen(q, fromQ + e) * seen(k, fromK + e);
        return softcap > 0 ? tanhf(sum * (scale / softcap)) : sum;
    }
    PLANLOOM_INLINE bool hasMasks() const
    {
        return masks[0].elements.data != nullptr || masks[1].elements.data != nullptr
            || masks[2].elements.data != nullptr;
    }
    /// One that is not of booleans.
    PLANLOOM_INLINE bool hasAddedMasks() const
    {
        bool has = false;
        for (const Mask &mask : masks)
            has = has || (mask.elements.data != nullptr && mask.elements.type != DataType::Bool);
        return has;
    }
    /// Where a head begins in the masks, and among what a dropout draws.
    struct HeadPlaces {
        std::int64_t masks[kMostMasks] = {};
        std::int64_t drawn = 0;
    };
    PLANLOOM_INLINE HeadPlaces placesOf(std::int64_t head) const
    {
        HeadPlaces places;
        for (std::int32_t i = 0; i < kMostMasks; ++i)
            if (masks[i].elements.data != nullptr)
                masks[i].heads.find(head, &places.masks[i]);
        if (drops) {
            places.drawn = firstDrawn;
            drawn.find(head, &places.drawn);
        }
        return places;
    }
    /// What masks make of a score, wherever the query's reach ends. `fixed`: it is the same whatever both
    /// are.
    PLANLOOM_INLINE float masked(
        const HeadPlaces &places, std::int64_t query, std::int64_t key, float value, bool &fixed) const
    {
        fixed = false;
        for (std::int32_t i = 0; i < kMostMasks; ++i)
            if (masks[i].elements.data != nullptr && masks[i].elements.type != DataType::Bool)
                value +=
                    at(masks[i].elements, places.masks[i] + query * masks[i].row + key * masks[i].column);
        for (std::int32_t i = 0; i < kMostMasks; ++i)
            if (masks[i].elements.data != nullptr && masks[i].elements.type == DataType::Bool
                && static_cast<const std::uint8_t *>(
                       masks[i].elements.data)[places.masks[i] + query * masks[i].row + key * masks[i].column]
                    == 0) {
                value = maskedScore;
                fixed = true;
            }
        return value;
    }
    /// The score; minus infinity where the query does not see the key. `fixed` as above.
    PLANLOOM_INLINE float score(
        std::int64_t head, std::int64_t query, std::int64_t key, float product, bool &fixed) const
    {
        const float value =
            masked(placesOf(head), query, key, product * (softcap > 0 ? softcap : scale), fixed);
        return reaches(query, key) ? value : minusInfinity();
    }
    /// Whether the dropout, if there is one, leaves nothing of a probability.
    PLANLOOM_INLINE bool loses(const HeadPlaces &places, std::int64_t query, std::int64_t key) const
    {
        const std::int64_t place = places.drawn + (firstQuery + query) * allKeys + firstKey + key;
        return !keeps(dropKey, dropBound, static_cast<std::uint64_t>(place));
    }
    /// What it makes of a probability, or of its gradient.
    PLANLOOM_INLINE float dropped(std::int64_t head, std::int64_t query, std::int64_t key, float value) const
    {
        if (!drops)
            return value;
        return loses(placesOf(head), query, key) ? 0.0f : value * enlarged;
    }
    /// The keys that some query in [query, query + count) may see: from the one returned to `end`.
    PLANLOOM_INLINE std::int64_t keysMet(std::int64_t query, std::int64_t count, std::int64_t &end) const
    {
        const std::int64_t least = firstQuery + query + offset - firstKey; // counted from the first key here
        const std::int64_t most = least + count - 1;
        const std::int64_t begin = window > 0 ? least - window + 1 : 0;
        end = causal ? most + 1 : window > 0 ? most + window : keys;
        end = end < keys ? end : keys;
        return begin > 0 ? begin : 0;
    }
    /// The queries of which some may see a key in [key, key + count), likewise.
    PLANLOOM_INLINE std::int64_t queriesMet(std::int64_t key, std::int64_t count, std::int64_t &end) const
    {
        const std::int64_t least = firstKey + key - offset - firstQuery;
        const std::int64_t most = least + count - 1;
        const std::int64_t begin = causal ? least : window > 0 ? least - window + 1 : 0;
        end = window > 0 && most + window < queries ? most + window : queries;
        return begin > 0 ? begin : 0;
    }
    /// Whether some query in [query, query + count) may see some of these keys: else they are passed over.
    PLANLOOM_INLINE bool mayMeet(
        std::int64_t query, std::int64_t count, std::int64_t key, std::int64_t keyCount) const
    {
        std::int64_t end = 0;
        const std::int64_t begin = keysMet(query, count, end);
        return begin < key + keyCount && key < end;
    }
};

/// y and the log-sum-exps of a tile of queries of one head.
struct AttentionKernel {
    AttentionScores scores{};
    Elements v{};
    Elements y{}; ///< No data: not wanted.
    Elements logSum{};
    std::int64_t valueWidth = 0;

    template<typename Team> PLANLOOM_INLINE void operator()(const Team &team, std::int64_t item) const
    {
        const AttentionScores &s = scores;
        const std::int64_t tiles = (s.queries + kCudaTileRows - 1) / kCudaTileRows;
        const std::int64_t head = item / tiles;
        const std::int64_t query = item % tiles * kCudaTileRows;
        const std::int64_t rows = s.queries - query < kCudaTileRows ? s.queries - query : kCudaTileRows;
        float *tile = team.shared(); // [16 64]
        float *largest = tile + kCudaTileRows * kCudaTileColumns; // then of each row:
        float *sums = largest + kCudaTileRows;
        float *shrunk = sums + kCudaTileRows;
        float *made = shrunk + kCudaTileRows; // [16 f]
        for (std::int64_t i = team.index(); i < rows; i += team.size()) {
            largest[i] = minusInfinity();
            sums[i] = 0;
        }
        for (std::int64_t i = team.index(); i < rows * valueWidth; i += team.size())
            made[i] = 0;
        for (std::int64_t key = 0; key < s.keys; key += kCudaTileColumns) {
            const std::int64_t columns = s.keys - key < kCudaTileColumns ? s.keys - key : kCudaTileColumns;
            if (!s.mayMeet(query, rows, key, columns))
                continue;
            team.meet();
            for (std::int64_t i = team.index(); i < rows * columns; i += team.size()) {
                const std::int64_t to = query + i / columns;
                const std::int64_t from = key + i % columns;
                bool fixed = false;
                tile[i] =
                    s.score(head, to, from, s.reaches(to, from) ? s.productAt(head, to, from) : 0, fixed);
            }
            team.meet();
            for (std::int64_t row = team.index(); row < rows; row += team.size())
                addRow(head, query + row, key, columns, tile + row * columns, largest[row], sums[row],
                    shrunk[row]);
            team.meet();
            for (std::int64_t i = team.index(); i < rows * valueWidth; i += team.size()) {
                const std::int64_t row = i / valueWidth;
                const std::int64_t from = (s.keyHead(head) * s.keys + key) * valueWidth + i % valueWidth;
                float sum = made[i] * shrunk[row];
                for (std::int64_t j = 0; j < columns; ++j)
                    sum += tile[row * columns + j] * s.seen(v, from + j * valueWidth);
                made[i] = sum;
            }
        }
        team.meet();
        const std::int64_t first = head * s.queries + query;
        for (std::int64_t i = team.index(); i < rows * valueWidth && y.data != nullptr; i += team.size()) {
            const float sum = sums[i / valueWidth];
            store(y, first * valueWidth + i, made[i] * (sum == 0 ? 0.0f : 1 / sum));
        }
        for (std::int64_t i = team.index(); i < rows && logSum.data != nullptr; i += team.size())
            store(logSum, first + i, sums[i] == 0 ? minusInfinity() : largest[i] + logf(sums[i]));
        team.meet(); // the next item begins with the same memory
    }

    /// A row of scores to probabilities before they are divided; what was summed so far is to be shrunk.
    PLANLOOM_INLINE void addRow(std::int64_t head, std::int64_t query, std::int64_t key, std::int64_t columns,
        float *row, float &largest, float &sum, float &shrunk) const
    {
        float highest = largest;
        bool isNumber = true;
        for (std::int64_t j = 0; j < columns; ++j) {
            highest = row[j] > highest ? row[j] : highest;
            isNumber = isNumber && row[j] == row[j];
        }
        shrunk = 1;
        if (highest == minusInfinity()) { // nothing is seen; or it is no number, which must not be lost
            if (!isNumber)
                sum = std::numeric_limits<float>::quiet_NaN();
            for (std::int64_t j = 0; j < columns; ++j)
                row[j] = 0;
            return;
        }
        if (highest > largest) {
            shrunk = expf(largest - highest);
            sum *= shrunk;
            largest = highest;
        }
        double part = 0;
        for (std::int64_t j = 0; j < columns; ++j) {
            const float value = expOf(row[j] - largest);
            part += static_cast<double>(value);
            row[j] = scores.dropped(head, query, key + j, value);
        }
        sum += static_cast<float>(part);
    }
};

/// Of each query: what probabilities are made of scores with (e^(score - shift) share), and D, the sum of dy
/// y.
struct AttentionRowsKernel {
    AttentionScores scores{};
    Elements dy{};
    Elements y{};
    Elements logSum{};
    float *rows = nullptr; ///< [heads queries 3]: shift, share, D.
    std::int64_t valueWidth = 0;
    bool allKeys = false; ///< The part has every key that its queries see.

    /// Beyond this, a log-sum-exp has lost the digits that tell how many keys share the weight
    /// (attention.cpp).
    static constexpr float kExactLogSum = 128;

    template<typename Team> PLANLOOM_INLINE void operator()(const Team &team, std::int64_t row) const
    {
        const std::int64_t head = row / scores.queries;
        const std::int64_t query = row % scores.queries;
        double part = 0;
        for (std::int64_t f = team.index(); f < valueWidth; f += team.size())
            part += static_cast<double>(scores.seen(dy, row * valueWidth + f))
                * static_cast<double>(y.data == nullptr ? 0.0f : at(y, row * valueWidth + f));
        const double dot = team.sum(part);
        float shift = at(logSum, row);
        float share = 1;
        const float size = shift < 0 ? -shift : shift;
        if (allKeys && size > kExactLogSum && size < std::numeric_limits<float>::infinity()) {
            float largest = minusInfinity();
            for (std::int64_t key = team.index(); key < scores.keys; key += team.size()) {
                const float value = scoreAt(head, query, key);
                largest = value > largest ? value : largest;
            }
            largest = team.largest(largest);
            double sum = 0;
            for (std::int64_t key = team.index(); key < scores.keys; key += team.size())
                sum += static_cast<double>(expOf(scoreAt(head, query, key) - largest));
            sum = team.sum(sum);
            if (sum > 0) {
                shift = largest;
                share = static_cast<float>(1 / sum);
            }
        }
        if (team.index() == 0) {
            rows[3 * row] = shift;
            rows[3 * row + 1] = share;
            rows[3 * row + 2] = static_cast<float>(dot);
        }
    }
    PLANLOOM_INLINE float scoreAt(std::int64_t head, std::int64_t query, std::int64_t key) const
    {
        bool fixed = false;
        return scores.reaches(query, key)
            ? scores.score(head, query, key, scores.productAt(head, query, key), fixed)
            : minusInfinity();
    }
};

/// dq of a tile of queries, or (`ofKeys`) dk and dv of a tile of keys.
struct AttentionSlopeKernel {
    AttentionScores scores{};
    Elements v{}; ///< No data: only dv is wanted.
    Elements dy{};
    const float *rows = nullptr; ///< Of AttentionRowsKernel.
    Elements dq{};
    Elements dk{};
    Elements dv{};
    std::int64_t valueWidth = 0;
    bool ofKeys = false;

    /// The probability of a score, and the slope of the product behind it.
    PLANLOOM_INLINE void slopeAt(
        std::int64_t head, std::int64_t query, std::int64_t key, float &probability, float &slope) const
    {
        const AttentionScores &s = scores;
        probability = slope = 0;
        const std::int64_t row = head * s.queries + query;
        const float shift = rows[3 * row];
        if (!s.reaches(query, key) || shift == minusInfinity())
            return;
        bool fixed = false;
        const float product = s.productAt(head, query, key);
        const float score = s.score(head, query, key, product, fixed);
        const float whole = expOf(score - shift) * rows[3 * row + 1];
        probability = s.dropped(head, query, key, whole);
        if (v.data == nullptr || fixed)
            return;
        float sum = 0;
        const std::int64_t fromV = (s.keyHead(head) * s.keys + key) * valueWidth;
        for (std::int64_t f = 0; f < valueWidth; ++f)
            sum += s.seen(dy, row * valueWidth + f) * s.seen(v, fromV + f);
        slope = whole * (s.dropped(head, query, key, sum) - rows[3 * row + 2]);
        if (s.softcap > 0)
            slope *= 1 - product * product;
        slope *= s.scale;
    }

    template<typename Team> PLANLOOM_INLINE void operator()(const Team &team, std::int64_t item) const
    {
        if (ofKeys)
            keyTile(team, item);
        else
            queryTile(team, item);
        team.meet(); // the next item begins with the same memory
    }
    template<typename Team> PLANLOOM_INLINE void queryTile(const Team &team, std::int64_t item) const
    {
        const AttentionScores &s = scores;
        const std::int64_t tiles = (s.queries + kCudaTileRows - 1) / kCudaTileRows;
        const std::int64_t head = item / tiles;
        const std::int64_t query = item % tiles * kCudaTileRows;
        const std::int64_t count = s.queries - query < kCudaTileRows ? s.queries - query : kCudaTileRows;
        float *tile = team.shared();
        float *made = tile + kCudaTileRows * kCudaTileColumns;
        for (std::int64_t i = team.index(); i < count * s.width; i += team.size())
            made[i] = 0;
        for (std::int64_t key = 0; key < s.keys; key += kCudaTileColumns) {
            const std::int64_t columns = s.keys - key < kCudaTileColumns ? s.keys - key : kCudaTileColumns;
            if (!s.mayMeet(query, count, key, columns))
                continue;
            team.meet();
            for (std::int64_t i = team.index(); i < count * columns; i += team.size()) {
                float probability = 0;
                slopeAt(head, query + i / columns, key + i % columns, probability, tile[i]);
            }
            team.meet();
            for (std::int64_t i = team.index(); i < count * s.width; i += team.size()) {
                const std::int64_t from = (s.keyHead(head) * s.keys + key) * s.width + i % s.width;
                float sum = made[i];
                for (std::int64_t j = 0; j < columns; ++j)
                    sum += tile[i / s.width * columns + j] * s.seen(s.k, from + j * s.width);
                made[i] = sum;
            }
        }
        team.meet();
        for (std::int64_t i = team.index(); i < count * s.width; i += team.size())
            store(dq, (head * s.queries + query) * s.width + i, made[i]);
    }
    template<typename Team> PLANLOOM_INLINE void keyTile(const Team &team, std::int64_t item) const
    {
        // Two of these fit into the memory of a team only up to a width of 128: dk and dv are made one after
        // the other.
        for (const bool values : {false, true})
            if ((values ? dv : dk).data != nullptr)
                keyTileOf(team, item, values);
    }
    template<typename Team>
    PLANLOOM_INLINE void keyTileOf(const Team &team, std::int64_t item, bool values) const
    {
        const AttentionScores &s = scores;
        const std::int64_t tiles = (s.keys + kCudaTileRows - 1) / kCudaTileRows;
        const std::int64_t keyHead = item / tiles;
        const std::int64_t key = item % tiles * kCudaTileRows;
        const std::int64_t count = s.keys - key < kCudaTileRows ? s.keys - key : kCudaTileRows;
        const std::int64_t wide = values ? valueWidth : s.width;
        float *tile = team.shared();
        float *made = tile + kCudaTileRows * kCudaTileColumns;
        for (std::int64_t i = team.index(); i < count * wide; i += team.size())
            made[i] = 0;
        for (std::int64_t head = keyHead * s.group; head < (keyHead + 1) * s.group; ++head) {
            for (std::int64_t query = 0; query < s.queries; query += kCudaTileColumns) {
                const std::int64_t columns =
                    s.queries - query < kCudaTileColumns ? s.queries - query : kCudaTileColumns;
                if (!s.mayMeet(query, columns, key, count))
                    continue;
                team.meet();
                for (std::int64_t i = team.index(); i < count * columns; i += team.size()) {
                    float probability = 0;
                    float slope = 0;
                    slopeAt(head, query + i % columns, key + i / columns, probability, slope);
                    tile[i] = values ? probability : slope;
                }
                team.meet();
                for (std::int64_t i = team.index(); i < count * wide; i += team.size()) {
                    const std::int64_t from = (head * s.queries + query) * wide + i % wide;
                    float sum = made[i];
                    for (std::int64_t j = 0; j < columns; ++j)
                        sum += tile[i / wide * columns + j] * s.seen(values ? dy : s.q, from + j * wide);
                    made[i] = sum;
                }
            }
        }
        team.meet();
        for (std::int64_t i = team.index(); i < count * wide; i += team.size())
            store(values ? dv : dk, (keyHead * s.keys + key) * wide + i, made[i]);
        team.meet();
    }
};

} // namespace planloom
