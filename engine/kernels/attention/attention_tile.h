#pragma once

#include "engine/graph/operators/attention.h"
#include "engine/kernels/kernel_call.h"
#include "engine/kernels/movement/draw.h"

#include <cstdint>
#include <vector>

namespace planloom {

/// Queries and keys of one tile of scores. Together with a tile of values they stay in a core's second cache.
constexpr std::int64_t kTileQueries = 128;
constexpr std::int64_t kTileKeys = 128;

/// What the forward and the backward pass of an Attention ask about its scores, head by head and tile by
/// tile. Heads are counted over all leading dimensions; queries and keys as they lie in this part.
template<typename T> class AttentionTiles
{
public:
    /// @param masks  of the call, in the order of its slots; null where one is absent
    AttentionTiles(
        const KernelCall &call, const Buffer &q, const Buffer &k, const std::vector<const Buffer *> &masks);

    std::int64_t heads() const { return m_heads; }
    std::int64_t queries() const { return m_queries; }
    std::int64_t keys() const { return m_keys; }
    /// The part has every key that any of its queries sees.
    bool hasAllKeys() const
    {
        const std::int64_t last = m_firstQuery + m_queries - 1;
        return m_queries > 0 && m_firstKey <= m_reach.keysOf(m_firstQuery, m_allKeys).begin
            && m_reach.keysOf(last, m_allKeys).end <= m_firstKey + m_keys;
    }
    std::int64_t keyHeadOf(std::int64_t head) const { return head / m_group; }
    /// Heads that attend to the same keys, which follow one another.
    std::int64_t headsByKeys() const { return m_group; }
    T scale() const { return m_scale; }
    bool drops() const { return m_ratio > 0; }

    /// The keys that at least one of these queries sees.
    Range keysOf(Range queries) const;
    /// The scores of one head into `tile`, row by row; minus infinity where a query does not see a key.
    /// `highest` receives the largest of each row.
    void score(std::int64_t head, Range queries, Range keys, T *tile, T *highest) const;
    bool isCapped() const { return m_softcap > 0; }
    /// slope *= the derivative of the soft-capping of this tile's scores. `scratch` is as large as the tile.
    void slopeOfCap(std::int64_t head, Range queries, Range keys, T *scratch, T *slope) const;
    /// Makes what the dropout does not keep 0, and enlarges the rest.
    void drop(std::int64_t head, Range queries, Range keys, T *tile) const;
    /// Makes 0 what belongs to scores that are the same whatever queries and keys are.
    void clearFixed(std::int64_t head, Range queries, Range keys, T *tile) const;
    /// Adds the tile to the gradient of additive mask `mask`, whose elements `sums` has.
    void addToMask(
        std::size_t mask, std::int64_t head, Range queries, Range keys, const T *tile, double *sums) const;

private:
    struct Mask {
        const Buffer *buffer = nullptr; ///< Null if it is absent.
        std::int64_t row = 0; ///< Strides, in elements; 0 where it has one for all.
        std::int64_t column = 0;
        std::vector<std::int64_t> first{}; ///< By head.

        bool isBoolean() const { return buffer != nullptr && buffer->dataType == DataType::Bool; }
        bool isAdditive() const { return buffer != nullptr && buffer->dataType != DataType::Bool; }
        std::int64_t at(std::int64_t head, std::int64_t query) const
        {
            return first[static_cast<std::size_t>(head)] + query * row;
        }
    };
    /// Of each head, where it begins in a tensor of its own with these strides of leading dimensions.
    static std::vector<std::int64_t> firstsOf(const Shape &q, const Shape &strides);
    std::int64_t drawnAt(std::int64_t head, std::int64_t query, std::int64_t key) const;
    /// Products of queries and keys, row by row; with a soft cap, tanh(scale q k / softcap).
    void multiplyKeys(std::int64_t head, Range queries, Range keys, T *tile) const;

    const T *m_q = nullptr;
    const T *m_k = nullptr;
    std::int64_t m_heads = 1;
    std::int64_t m_group = 1; ///< Query heads by key head.
    std::int64_t m_queries = 0;
    std::int64_t m_keys = 0;
    std::int64_t m_width = 0;
    std::int64_t m_firstQuery = 0; ///< In the whole operator.
    std::int64_t m_firstKey = 0;
    std::int64_t m_allKeys = 0;
    std::vector<Mask> m_masks{};
    std::vector<std::int64_t> m_drawn{}; ///< By head: its first score among those of the whole operator.
    AttentionReach m_reach{};
    T m_scale = 1;
    T m_softcap = 0; ///< 0: none.
    T m_maskedScore = 0;
    double m_ratio = 0;
    DropoutDraw m_draw;
};

extern template class AttentionTiles<float>;
extern template class AttentionTiles<double>;

// Rows of a tile.

/// x = e^(x - shift) * factor; their sum without the factor.
double exponentials(float *x, std::int64_t count, float shift, float factor);
double exponentials(double *x, std::int64_t count, double shift, double factor);
/// x *= factor
void scaleRow(float *x, std::int64_t count, float factor);
void scaleRow(double *x, std::int64_t count, double factor);
/// The sum of products of numbers at one place, in double.
double dot(const float *a, const float *b, std::int64_t count);
double dot(const double *a, const double *b, std::int64_t count);
/// slope = probabilities * (slope - shift)
void slopeRow(const float *probabilities, float *slope, std::int64_t count, float shift);
void slopeRow(const double *probabilities, double *slope, std::int64_t count, double shift);

} // namespace planloom
