#pragma once

#include "engine/base/result.h"
#include "engine/graph/dimensions/batch.h"
#include "engine/graph/operators/mask.h"
#include "engine/lowering/program/execution_plan.h"
#include "engine/plan/block_places.h"
#include "engine/plan/plan.h"

#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace planloom {

/// One part of an operator, in micro-batch 0 of unit 0: where it runs and which views it reads and makes.
struct TransformedPart {
    DeviceId device{};
    std::span<const TensorView> inputs{}; ///< By slot; invalid tensors where absent.
    std::span<const TensorView> outputs{};
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
class TransformedGraph
{
public:
    TransformedGraph() = default;
    TransformedGraph(TransformedGraph &&) = default;
    TransformedGraph &operator=(TransformedGraph &&) = default;
    TransformedGraph(const TransformedGraph &) = delete; ///< Its parts are views into it.
    TransformedGraph &operator=(const TransformedGraph &) = delete;
    ~TransformedGraph() = default;

    BatchInfo batch{};
    std::vector<std::vector<TransformedPart>> operators{}; ///< By operator index.
    /// Per operator and output slot: number of its first summand (see `BufferInfo`).
    std::vector<std::vector<std::int32_t>> summandBase{};
    SummandSets summands{};
    BlockPlaces places{};

    /// All operators of a plan that is valid for its graph; `batch` is the plan's.
    void takeApart(const Plan &plan);
    /// Only the optimizer's parts are still needed.
    void forgetPasses(const Graph &graph);

private:
    /// Of all operators of the passes, and of the optimizer: there are very many, and those of the passes are
    /// to be given back as one.
    std::vector<TensorView> m_passViews{};
    std::vector<TensorView> m_optimizerViews{};
};

/// @return InvalidInput if the micro-batches do not divide the batch, or the plan is not valid for its graph
Result<TransformedGraph> transform(const Plan &plan);

} // namespace planloom
