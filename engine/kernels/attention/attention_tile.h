#pragma once

#include "engine/kernels/attention/attention_plan.h"
#include "engine/kernels/kernel_call.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace planloom {

/// Queries and keys of one tile of scores. Together with a tile of values they stay in a core's second cache.
constexpr std::int64_t kTileQueries = 128;
constexpr std::int64_t kTileKeys = 128;

/// What the forward and the backward pass of an Attention ask about its scores, head by head and tile by
/// tile.
template<typename T> class AttentionTiles
{
public:
    /// @param plan  outlives the tiles
    explicit AttentionTiles(const AttentionPlan &plan);

    std::int64_t keyHeadOf(std::int64_t head) const { return head / m_plan.group; }
    T scale() const { return m_scale; }
    bool drops() const { return m_plan.dropped.ratio > 0; }

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
        const AttentionPlan::Mask &planned;
        std::vector<std::int64_t> first{}; ///< By head.

        bool isBoolean() const { return planned.buffer->dataType == DataType::Bool; }
        std::int64_t at(std::int64_t head, std::int64_t query) const
        {
            return first[static_cast<std::size_t>(head)] + query * planned.row;
        }
        template<typename M> const M *rowOf(std::int64_t head, std::int64_t query) const
        {
            return elements<const M>(*planned.buffer) + at(head, query);
        }
    };
    /// Of each head, where it begins in a tensor of its own with these strides of leading dimensions.
    std::vector<std::int64_t> firstsOf(const Shape &strides) const;
    std::int64_t drawnAt(std::int64_t head, std::int64_t query, std::int64_t key) const;
    /// Products of queries and keys, row by row; with a soft cap, tanh(scale q k / softcap).
    void multiplyKeys(std::int64_t head, Range queries, Range keys, T *tile) const;

    const AttentionPlan &m_plan;
    std::vector<std::optional<Mask>> m_masks{}; ///< Nothing where one is absent.
    std::vector<std::int64_t> m_drawn; ///< By head: its first score among those of the whole operator.
    T m_scale;
    T m_softcap; ///< 0: none.
    T m_maskedScore;
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
