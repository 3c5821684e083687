#pragma once

#include "engine/base/result.h"
#include "engine/graph/batch.h"
#include "engine/graph/mask.h"
#include "engine/lowering/execution_plan.h"
#include "engine/plan/block_places.h"
#include "engine/plan/plan.h"

#include <cstdint>
#include <map>
#include <vector>

namespace planloom {

/// One part of an operator, in micro-batch 0 of unit 0: where it runs and which views it reads and makes.
struct TransformedPart {
    DeviceId device{};
    std::vector<TensorView> inputs{}; ///< By slot; invalid tensors where absent.
    std::vector<TensorView> outputs{};
};

/// Which summands make up a tensor's value. A slice of a causal Attention makes the gradients of the keys
/// that its queries see: of all others its summand is zero, and nobody makes it. A box that it does not reach
/// is complete without it.
class SummandSets
{
public:
    void resize(std::size_t tensors)
    {
        m_count.assign(tensors, 0);
        m_firsts.assign(tensors, {});
    }
    /// Numbers `count` summands more; the first's number.
    std::int32_t append(TensorId tensor, std::int32_t count);
    /// Says that a summand is zero outside `box` and what was said of it before.
    void reachTo(TensorId tensor, std::int32_t summand, const IndexMask &box);

    /// All that make its value; 0 if nobody makes it.
    std::int32_t count(TensorId tensor) const { return m_count[static_cast<std::size_t>(tensor.index)]; }
    /// Which of its producers makes a summand, in their order.
    std::size_t producerOf(TensorId tensor, std::int32_t summand) const;
    /// Whether `summands`, empty for all, are all there is of `box`.
    bool complete(TensorId tensor, const SummandSet &summands, const IndexMask &box) const;

private:
    std::vector<std::int32_t> m_count{}; ///< By tensor.
    /// By tensor: each producer's first number, but for the first one's, which is 0.
    std::vector<InlineVector<std::int32_t, 2>> m_firsts{};
    /// By tensor, where they do not all reach everywhere, and summand: the boxes it is made of.
    std::map<TensorId, std::map<std::int32_t, std::vector<IndexMask>>> m_reach{};
};

/// The first phase of lowering (SuperScaler, arXiv:2301.08984, section 3.2): every operator as its parts.
struct TransformedGraph {
    BatchInfo batch{};
    std::vector<std::vector<TransformedPart>> operators{}; ///< By operator index.
    /// Per operator and output slot: number of its first summand (see `BufferInfo`).
    std::vector<std::vector<std::int32_t>> summandBase{};
    SummandSets summands{};
    BlockPlaces places{};
};

/// @return InvalidInput if the micro-batches do not divide the batch, or the plan is not valid for its graph
Result<TransformedGraph> transform(const Plan &plan);

} // namespace planloom
