#include "engine/plan/block_places.h"

#include "engine/base/words.h"

#include <algorithm>
#include <memory>

namespace planloom {

namespace {

class BlockFinder
{
public:
    explicit BlockFinder(const Plan &plan)
        : m_plan(plan)
        , m_graph(*plan.graph)
        , m_batch(
              plan.wholeBatches ? std::make_shared<const BatchInfo>(wholeBatchInfo(m_graph)) : batchOf(plan))
        , m_uses(usesOf(m_graph))
        , m_views(m_graph.operators.size())
    {
    }

    Result<BlockPlaces> run();

private:
    const OperatorDecision &decisionOf(OperatorId op) const
    {
        return m_plan.decisions[static_cast<std::size_t>(op.index)];
    }
    std::int32_t slicesOf(OperatorId op) const { return sliceCount(decisionOf(op).partition); }
    std::int32_t lanesOf(OperatorId op) const { return laneCount(decisionOf(op).partition); }
    Result<void> countBlocks();
    Result<void> count(OperatorId op, std::int32_t asked, const char *what, std::int32_t &known) const;
    Result<void> placeWhole(const std::vector<std::int32_t> &countOf,
        const std::vector<std::int32_t> &cutInto, std::vector<std::int32_t> &placeOf, const char *what);
    Result<void> checkReads(OperatorId op);
    Result<void> checkLanes(OperatorId op);
    Result<void> checkRegions(const std::vector<std::int32_t> &placeOf, const char *what) const;
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
    BlockPlaces m_result{};
};

/// How many slices and lanes every stage has.
Result<void> BlockFinder::countBlocks()
{
    const auto stages = static_cast<std::size_t>(std::max(m_plan.stageCount, 1));
    m_result.slices.assign(stages, 1);
    m_result.lanes.assign(stages, 1);
    for (std::size_t o = 0; o < m_graph.operators.size(); ++o) {
        const OperatorId op{static_cast<std::int32_t>(o)};
        const auto stage = static_cast<std::size_t>(decisionOf(op).stage.index);
        const bool once = m_graph.at(op).direction == Direction::Optimizer || m_batch->oncePerStep[o];
        if (const std::int32_t lanes = lanesOf(op); lanes > 1) {
            const Split &split = decisionOf(op).partition.splits.front();
            if (once)
                return refused(op, "runs once per step, and cannot be in lanes", "select other operators");
            if (split.kind == SplitKind::Dimension && split.dimension != m_batch->operatorDimension[o])
                return refused(
                    op, "would be cut into lanes of what is not the batch", "use a split row for that");
            TRY_VOID(count(op, lanes, "lane", m_result.lanes[stage]));
        }
        const std::int32_t slices = slicesOf(op);
        if (slices == 1)
            continue;
        const Partition &partition = decisionOf(op).partition;
        if (once)
            return refused(op, "runs once per step, and cannot be cut into slices", "select other operators");
        if (partition.splits[blockSplits(partition) - 1].dimension == m_batch->operatorDimension[o])
            return refused(op, "would be cut into slices of the batch", "use a micro-batches row for that");
        if (decisionOf(op).coshardRegion >= 0)
            return refused(op, "cannot run in slices and take turns in a coshard region, too",
                "switch one of the rows off");
        TRY_VOID(count(op, slices, "slice", m_result.slices[stage]));
    }
    return {};
}

/// Notes that `op` asks for so many slices or lanes of its stage, where `known` do so far.
Result<void> BlockFinder::count(
    OperatorId op, std::int32_t asked, const char *what, std::int32_t &known) const
{
    if (known > 1 && known != asked)
        return refused(op,
            "is cut into " + counted(asked, what) + ", others of its stage into " + std::to_string(known),
            std::string("cut all operators of a stage into as many ") + what + "s");
    known = asked;
    return {};
}

/// Forward operators that are cut into no slices, or no lanes, in the order of the data flow, and their
/// backward ones.
Result<void> BlockFinder::placeWhole(const std::vector<std::int32_t> &countOf,
    const std::vector<std::int32_t> &cutInto, std::vector<std::int32_t> &placeOf, const char *what)
{
    placeOf.assign(m_graph.operators.size(), -1);
    const auto isCut = [&](OperatorId op) { return cutInto[static_cast<std::size_t>(op.index)] > 1; };
    for (std::size_t o = 0; o < m_graph.operators.size(); ++o) {
        const OperatorId op{static_cast<std::int32_t>(o)};
        const Operator &itself = m_graph.at(op);
        if (itself.direction == Direction::Optimizer || m_batch->oncePerStep[o])
            continue;
        const StageId stage = decisionOf(op).stage;
        const std::int32_t last = countOf[static_cast<std::size_t>(stage.index)] - 1;
        if (last == 0) {
            placeOf[o] = 0;
            continue;
        }
        if (itself.direction == Direction::Backward) {
            const std::int32_t theirs = placeOf[static_cast<std::size_t>(itself.mirror.index)];
            placeOf[o] = isCut(op) ? -1 : std::max(theirs, 0);
            continue;
        }
        std::int32_t place = 0;
        OperatorId behind; // what makes it wait for the last one
        for (const TensorId input : itself.inputs)
            if (input)
                for (const OperatorId producer : m_uses.producers[static_cast<std::size_t>(input.index)]) {
                    const auto p = static_cast<std::size_t>(producer.index);
                    if (m_graph.at(producer).direction != Direction::Forward || m_batch->oncePerStep[p]
                        || decisionOf(producer).stage != stage)
                        continue;
                    if (isCut(producer) && isCut(op))
                        continue; // slice by slice: `checkReads`; lane by lane
                    if ((isCut(producer) ? last : placeOf[p]) > place) {
                        place = isCut(producer) ? last : placeOf[p];
                        behind = producer;
                    }
                }
        if (!isCut(op))
            placeOf[o] = place;
        else if (place > 0)
            return refused(op,
                std::string("is to run ") + what + " by " + what + ", but reads what '"
                    + m_graph.at(behind).name + "' makes of all " + what + "s",
                std::string("select fewer operators, or begin a stage between the two"));
    }
    return {};
}

const std::vector<PartViews> &BlockFinder::viewsOf(OperatorId op)
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
Result<void> BlockFinder::checkReads(OperatorId op)
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
                        if (laneOf(partition, static_cast<std::int32_t>(p))
                            != laneOf(theirs, static_cast<std::int32_t>(q)))
                            continue; // which reads what its own lane makes
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

/// No lane of `op` reads what another lane of its stage makes alone: each would wait for the other.
Result<void> BlockFinder::checkLanes(OperatorId op)
{
    const Operator &itself = m_graph.at(op);
    const Partition &partition = decisionOf(op).partition;
    for (std::size_t slot = 0; slot < itself.inputs.size(); ++slot) {
        const TensorId tensor = itself.inputs[slot];
        if (!tensor)
            continue;
        for (const OperatorId producer : m_uses.producers[static_cast<std::size_t>(tensor.index)]) {
            const Partition &theirs = decisionOf(producer).partition;
            if (lanesOf(producer) == 1 || theirs.splits.front().kind == SplitKind::Replicate
                || m_graph.at(producer).direction != itself.direction
                || decisionOf(producer).stage != decisionOf(op).stage)
                continue;
            const auto &mine = viewsOf(op);
            const auto &made = viewsOf(producer);
            const auto &outputs = m_graph.at(producer).outputs;
            const auto out =
                static_cast<std::size_t>(std::find(outputs.begin(), outputs.end(), tensor) - outputs.begin());
            for (std::size_t p = 0; p < mine.size(); ++p)
                for (std::size_t q = 0; q < made.size(); ++q) {
                    if (laneOf(partition, static_cast<std::int32_t>(p))
                        == laneOf(theirs, static_cast<std::int32_t>(q)))
                        continue;
                    const auto both = intersection(mine[p].inputs[slot].index, made[q].outputs[out].index);
                    if (!both || (elementCount(shapeOf(*both)) == 0))
                        continue;
                    return refused(itself.direction == Direction::Forward ? op : itself.mirror,
                        "cannot run lane by lane: it reads what all lanes of '"
                            + m_graph
                                  .at(itself.direction == Direction::Forward ? producer
                                                                             : m_graph.at(producer).mirror)
                                  .name
                            + "' make together",
                        "select fewer operators, or begin a stage between the two");
                }
        }
    }
    return {};
}

/// A region's operators run together, so all in one slice, and in the same lanes.
Result<void> BlockFinder::checkRegions(const std::vector<std::int32_t> &placeOf, const char *what) const
{
    constexpr std::int32_t kUnknown = -2;
    std::vector<std::int32_t> placeOfRegion;
    for (std::size_t o = 0; o < m_plan.decisions.size(); ++o) {
        const std::int32_t region = m_plan.decisions[o].coshardRegion;
        if (region < 0 || m_graph.operators[o].direction != Direction::Forward)
            continue;
        if (placeOfRegion.size() <= static_cast<std::size_t>(region))
            placeOfRegion.resize(static_cast<std::size_t>(region) + 1, kUnknown);
        std::int32_t &place = placeOfRegion[static_cast<std::size_t>(region)];
        if (place != kUnknown && place != placeOf[o])
            return refused({static_cast<std::int32_t>(o)},
                std::string("is in a coshard region that ") + what + " of its stage would cut apart",
                "coshard fewer operators together");
        place = placeOf[o];
    }
    return {};
}

Result<BlockPlaces> BlockFinder::run()
{
    TRY_VOID(countBlocks());
    std::vector<std::int32_t> slices;
    std::vector<std::int32_t> lanes;
    for (const OperatorDecision &decision : m_plan.decisions) {
        slices.push_back(sliceCount(decision.partition));
        lanes.push_back(laneCount(decision.partition));
    }
    TRY_VOID(placeWhole(m_result.slices, slices, m_result.sliceOf, "slice"));
    TRY_VOID(placeWhole(m_result.lanes, lanes, m_result.laneOf, "lane"));
    const bool sliced = std::any_of(slices.begin(), slices.end(), [](std::int32_t n) { return n > 1; });
    for (std::size_t o = 0; sliced && o < m_graph.operators.size(); ++o)
        if (const OperatorId op{static_cast<std::int32_t>(o)}; slicesOf(op) > 1)
            TRY_VOID(checkReads(op));
    for (std::size_t o = 0; o < m_graph.operators.size(); ++o)
        if (const OperatorId op{static_cast<std::int32_t>(o)}; lanesOf(op) > 1)
            TRY_VOID(checkLanes(op));
    TRY_VOID(checkRegions(m_result.sliceOf, "slices"));
    TRY_VOID(checkRegions(m_result.laneOf, "lanes"));
    return std::move(m_result);
}

} // namespace

Result<BlockPlaces> placeBlocks(const Plan &plan)
{
    if (std::any_of(plan.decisions.begin(), plan.decisions.end(),
            [](const OperatorDecision &decision) { return blockSplits(decision.partition) > 0; }))
        return BlockFinder(plan).run();
    BlockPlaces whole;
    whole.slices.assign(static_cast<std::size_t>(std::max(plan.stageCount, 1)), 1);
    whole.lanes = whole.slices;
    whole.sliceOf.assign(plan.decisions.size(), 0);
    whole.laneOf = whole.sliceOf;
    return whole;
}

} // namespace planloom
