#include "engine/plan/slices.h"

#include "engine/base/words.h"

#include <algorithm>
#include <memory>

namespace planloom {

namespace {

class SliceFinder
{
public:
    explicit SliceFinder(const Plan &plan)
        : m_plan(plan)
        , m_graph(*plan.graph)
        , m_batch(
              plan.wholeBatches ? std::make_shared<const BatchInfo>(wholeBatchInfo(m_graph)) : batchOf(plan))
        , m_uses(usesOf(m_graph))
        , m_views(m_graph.operators.size())
    {
    }

    Result<SlicePlacement> run();

private:
    const OperatorDecision &decisionOf(OperatorId op) const
    {
        return m_plan.decisions[static_cast<std::size_t>(op.index)];
    }
    std::int32_t slicesOf(OperatorId op) const { return sliceCount(decisionOf(op).partition); }
    Result<void> countSlices();
    Result<void> placeWhole();
    Result<void> checkReads(OperatorId op);
    Result<void> checkRegions() const;
    const std::vector<PartViews> &viewsOf(OperatorId op);
    Error refused(OperatorId op, std::string message, std::string advice) const
    {
        const std::string &name = m_graph.at(op).name;
        return {ErrorCode::InvalidInput, "operator '" + name + "' " + std::move(message), std::move(advice),
            "operator:" + name};
    }

    const Plan &m_plan;
    const Graph &m_graph;
    std::shared_ptr<const BatchInfo> m_batch;
    Uses m_uses;
    std::vector<std::vector<PartViews>> m_views; ///< By operator and part, once asked.
    SlicePlacement m_result{};
};

Result<void> SliceFinder::countSlices()
{
    m_result.count.assign(static_cast<std::size_t>(std::max(m_plan.stageCount, 1)), 1);
    for (std::size_t o = 0; o < m_graph.operators.size(); ++o) {
        const OperatorId op{static_cast<std::int32_t>(o)};
        const std::int32_t slices = slicesOf(op);
        if (slices == 1)
            continue;
        const Split &split = decisionOf(op).partition.splits.front();
        if (m_graph.at(op).direction == Direction::Optimizer || m_batch->oncePerStep[o])
            return refused(op, "runs once per step, and cannot be cut into slices", "select other operators");
        if (split.dimension == m_batch->operatorDimension[o])
            return refused(op, "would be cut into slices of the batch", "use a micro-batches row for that");
        if (decisionOf(op).coshardRegion >= 0)
            return refused(op, "cannot run in slices and take turns in a coshard region, too",
                "switch one of the rows off");
        std::int32_t &count = m_result.count[static_cast<std::size_t>(decisionOf(op).stage.index)];
        if (count > 1 && count != slices)
            return refused(op,
                "is cut into " + counted(slices, "slice") + ", others of its stage into "
                    + std::to_string(count),
                "cut all operators of a stage into as many slices");
        count = slices;
    }
    return {};
}

/// Forward operators that are cut into no slices, in the order of the data flow, and their backward ones.
Result<void> SliceFinder::placeWhole()
{
    m_result.sliceOf.assign(m_graph.operators.size(), -1);
    for (std::size_t o = 0; o < m_graph.operators.size(); ++o) {
        const OperatorId op{static_cast<std::int32_t>(o)};
        const Operator &itself = m_graph.at(op);
        if (itself.direction == Direction::Optimizer || m_batch->oncePerStep[o])
            continue;
        const StageId stage = decisionOf(op).stage;
        const std::int32_t last = m_result.count[static_cast<std::size_t>(stage.index)] - 1;
        if (last == 0) {
            m_result.sliceOf[o] = 0;
            continue;
        }
        if (itself.direction == Direction::Backward) {
            m_result.sliceOf[o] = m_result.sliceOf[static_cast<std::size_t>(itself.mirror.index)];
            continue;
        }
        std::int32_t slice = 0;
        OperatorId behind; // what makes it wait for the last slice
        for (const TensorId input : itself.inputs)
            if (input)
                for (const OperatorId producer : m_uses.producers[static_cast<std::size_t>(input.index)]) {
                    const auto p = static_cast<std::size_t>(producer.index);
                    if (m_graph.at(producer).direction != Direction::Forward || m_batch->oncePerStep[p]
                        || decisionOf(producer).stage != stage)
                        continue;
                    const bool sliced = slicesOf(producer) > 1;
                    if (sliced && slicesOf(op) > 1)
                        continue; // slice by slice: `checkReads`
                    if ((sliced ? last : m_result.sliceOf[p]) > slice) {
                        slice = sliced ? last : m_result.sliceOf[p];
                        behind = producer;
                    }
                }
        if (slicesOf(op) == 1)
            m_result.sliceOf[o] = slice;
        else if (slice > 0)
            return refused(op,
                "is to run slice by slice, but reads what '" + m_graph.at(behind).name
                    + "' makes of all slices",
                "slice fewer operators, or begin a stage between the two");
    }
    return {};
}

const std::vector<PartViews> &SliceFinder::viewsOf(OperatorId op)
{
    auto &views = m_views[static_cast<std::size_t>(op.index)];
    if (views.empty()) {
        const auto outer = microBatchRanges(*m_batch, m_graph, op, 0, batchCuts(m_plan));
        for (std::int32_t p = 0; p < partCount(decisionOf(op).partition); ++p)
            views.push_back(partViews(m_graph, m_graph.at(op), decisionOf(op).partition, p, outer));
    }
    return views;
}

/// No slice of `op` reads what a slice that runs later makes.
Result<void> SliceFinder::checkReads(OperatorId op)
{
    const Operator &itself = m_graph.at(op);
    const Partition &partition = decisionOf(op).partition;
    const bool forward = itself.direction == Direction::Forward;
    const auto isEmpty = [](const TensorView &view) {
        return view.tensor
            && std::any_of(view.index.ranges.begin(), view.index.ranges.end(),
                [](const Range &range) { return range.size() <= 0; });
    };
    const auto &mine = viewsOf(op);
    for (const PartViews &part : mine)
        if (std::any_of(part.inputs.begin(), part.inputs.end(), isEmpty))
            return refused(
                op, "has slices that are too small for their parts", "cut into fewer slices, or fewer parts");
    for (std::size_t slot = 0; slot < itself.inputs.size(); ++slot) {
        const TensorId tensor = itself.inputs[slot];
        if (!tensor)
            continue;
        for (const OperatorId producer : m_uses.producers[static_cast<std::size_t>(tensor.index)]) {
            if (slicesOf(producer) == 1 || m_graph.at(producer).direction != itself.direction
                || decisionOf(producer).stage != decisionOf(op).stage)
                continue;
            const Partition &theirs = decisionOf(producer).partition;
            const auto &made = viewsOf(producer);
            const auto &outputs = m_graph.at(producer).outputs;
            for (std::size_t out = 0; out < outputs.size(); ++out)
                for (std::size_t p = 0; p < mine.size() && outputs[out] == tensor; ++p)
                    for (std::size_t q = 0; q < made.size(); ++q) {
                        const std::int32_t reader = sliceOf(partition, static_cast<std::int32_t>(p));
                        const std::int32_t maker = sliceOf(theirs, static_cast<std::int32_t>(q));
                        if (forward ? maker <= reader : maker >= reader)
                            continue;
                        const auto both =
                            intersection(mine[p].inputs[slot].index, made[q].outputs[out].index);
                        if (!both || elementCount(shapeOf(*both)) == 0)
                            continue;
                        const OperatorId shown = forward ? op : itself.mirror;
                        return refused(shown,
                            "cannot run slice by slice: slice " + std::to_string(reader)
                                + (forward ? "" : " of its backward pass") + " reads what slice "
                                + std::to_string(maker) + " of '"
                                + m_graph.at(forward ? producer : m_graph.at(producer).mirror).name
                                + "' makes",
                            m_graph.at(shown).kind == OperatorKind::Attention
                                ? "only causal attention runs in slices of its queries: slice other operators"
                                : "slice fewer operators, or along another dimension");
                    }
        }
    }
    return {};
}

/// A region's operators run together, so all in one slice.
Result<void> SliceFinder::checkRegions() const
{
    std::vector<std::int32_t> sliceOfRegion;
    for (std::size_t o = 0; o < m_plan.decisions.size(); ++o) {
        const std::int32_t region = m_plan.decisions[o].coshardRegion;
        if (region < 0 || m_graph.operators[o].direction != Direction::Forward)
            continue;
        if (sliceOfRegion.size() <= static_cast<std::size_t>(region))
            sliceOfRegion.resize(static_cast<std::size_t>(region) + 1, -1);
        std::int32_t &slice = sliceOfRegion[static_cast<std::size_t>(region)];
        if (slice >= 0 && slice != m_result.sliceOf[o])
            return refused({static_cast<std::int32_t>(o)},
                "is in a coshard region that slices of its stage would cut apart",
                "coshard fewer operators together");
        slice = m_result.sliceOf[o];
    }
    return {};
}

Result<SlicePlacement> SliceFinder::run()
{
    TRY_VOID(countSlices());
    TRY_VOID(placeWhole());
    for (std::size_t o = 0; m_result.any() && o < m_graph.operators.size(); ++o)
        if (const OperatorId op{static_cast<std::int32_t>(o)}; slicesOf(op) > 1)
            TRY_VOID(checkReads(op));
    if (m_result.any())
        TRY_VOID(checkRegions());
    return std::move(m_result);
}

} // namespace

bool SlicePlacement::any() const
{
    return std::any_of(count.begin(), count.end(), [](std::int32_t slices) { return slices > 1; });
}

Result<SlicePlacement> placeSlices(const Plan &plan)
{
    if (std::any_of(plan.decisions.begin(), plan.decisions.end(),
            [](const OperatorDecision &decision) { return sliceCount(decision.partition) > 1; }))
        return SliceFinder(plan).run();
    SlicePlacement whole;
    whole.count.assign(static_cast<std::size_t>(std::max(plan.stageCount, 1)), 1);
    whole.sliceOf.assign(plan.decisions.size(), 0);
    return whole;
}

} // namespace planloom
