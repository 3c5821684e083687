#include "engine/lowering/lowered_blocks.h"

#include "engine/lowering/order/order_rows.h"

#include <algorithm>
#include <array>
#include <set>

namespace planloom {

LoweredBlocks::LoweredBlocks(LoweringWork &work)
    : m_work(work)
    , m_blocksOf(work.graph.operators.size())
{
    for (const OperatorDecision &decision : work.plan.decisions)
        m_regionOf.push_back(decision.coshardRegion);
    addBlocks();
    findTurns();
}

/// Adds a block of a stage: that of one lane and slice.
std::int32_t LoweredBlocks::addBlockOf(SegmentKind kind, std::int32_t stage, std::int32_t cell, double rank)
{
    const std::int32_t added = m_work.builder.addBlock(kind, StageId{stage}, rank);
    BlockInfo &block = m_work.builder.blocks()[static_cast<std::size_t>(added)];
    const auto s = static_cast<std::size_t>(stage);
    block.slices = m_work.transformed.places.slices[s];
    block.lanes = m_work.transformed.places.lanes[s];
    block.slice = cell % block.slices;
    block.lane = cell / block.slices;
    return added;
}

/// Which block of its stage and pass it is: lanes one after the other, each in the order of its slices.
std::size_t LoweredBlocks::cellOf(std::int32_t block) const
{
    const BlockInfo &info = m_work.builder.block(block);
    return static_cast<std::size_t>(info.lane * info.slices + info.slice);
}

void LoweredBlocks::addBlocks()
{
    m_prologue = m_work.builder.addBlock(SegmentKind::Prologue, StageId{0}, 0);
    const auto cellsOf = [this](std::int32_t stage) {
        const auto s = static_cast<std::size_t>(stage);
        return m_work.transformed.places.slices[s] * m_work.transformed.places.lanes[s];
    };
    double rank = 1;
    for (std::int32_t s = 0; s < m_work.plan.stageCount; ++s) {
        auto &blocks = m_forward.emplace_back();
        for (std::int32_t i = 0; i < cellsOf(s); ++i)
            blocks.push_back(addBlockOf(SegmentKind::Forward, s, i, rank++));
    }
    const double backward = std::max(1e4, rank);
    double behind = backward + rank;
    for (std::int32_t s = 0; s < m_work.plan.stageCount; ++s) {
        auto &blocks = m_backward.emplace_back();
        for (std::int32_t i = 0; i < cellsOf(s); ++i)
            blocks.push_back(addBlockOf(SegmentKind::Backward, s, i, --behind));
    }
    splitBackwardPasses();
    for (std::int32_t s = 0; s <= m_work.plan.stageCount; ++s)
        m_optimizer.push_back(m_work.builder.addBlock(
            SegmentKind::Optimizer, StageId{std::min(s, m_work.plan.stageCount - 1)}, 2e6 + s));
}

/// In which blocks of its stage an operator runs (`cellOf`), in the order in which they are made: forward
/// ones ascending.
std::vector<std::size_t> LoweredBlocks::cellsOf(OperatorId id) const
{
    const auto o = at(id);
    const BlockPlaces &places = m_work.transformed.places;
    const auto stage = static_cast<std::size_t>(m_work.plan.decisions[o].stage.index);
    std::vector<std::size_t> cells;
    for (std::int32_t lane = 0; lane < places.lanes[stage]; ++lane)
        for (std::int32_t slice = 0; slice < places.slices[stage]; ++slice)
            if ((places.laneOf[o] < 0 || places.laneOf[o] == lane)
                && (places.sliceOf[o] < 0 || places.sliceOf[o] == slice))
                cells.push_back(static_cast<std::size_t>(lane * places.slices[stage] + slice));
    if (m_work.graph.at(id).direction == Direction::Backward)
        std::reverse(cells.begin(), cells.end());
    return cells;
}

bool LoweredBlocks::isInStage(OperatorId id, Direction direction, StageId stage) const
{
    const BlockInfo &block = m_work.builder.block(m_blocksOf[at(id)].front());
    return m_work.graph.at(id).direction == direction && isPass(block.kind) && block.stage == stage;
}

std::vector<OperatorId> LoweredBlocks::forwardOperators(std::int32_t block) const
{
    const BlockInfo &info = m_work.builder.block(block);
    std::vector<OperatorId> operators;
    std::set<OperatorId> known;
    for (const std::int32_t forward : m_forward[static_cast<std::size_t>(info.stage.index)]) {
        if (m_work.builder.block(forward).lane != info.lane)
            continue;
        for (const OperatorId id : m_sequence[at(forward)])
            if (info.slices == 1 || known.insert(id).second)
                operators.push_back(id);
    }
    return operators;
}

/// Finds the recompute groups that are one region each.
void LoweredBlocks::findTurns()
{
    std::map<std::int32_t, std::int32_t> regionOfGroup; // -1: not one
    for (std::size_t o = 0; o < m_regionOf.size(); ++o) {
        const std::int32_t group = m_work.plan.decisions[o].recomputeGroup;
        if (group < 0)
            continue;
        const auto [it, fresh] = regionOfGroup.emplace(group, m_regionOf[o]);
        if (!fresh && it->second != m_regionOf[o])
            it->second = -1;
    }
    m_takesTurns.assign(m_work.graph.operators.size(), false); // groups are numbered below
    for (const auto &[group, region] : regionOfGroup)
        m_takesTurns[static_cast<std::size_t>(group)] = region >= 0;
}

Result<void> LoweredBlocks::assign()
{
    m_sequence.resize(m_work.builder.blocks().size());
    for (std::size_t o = 0; o < m_work.graph.operators.size(); ++o) {
        const Operator &op = m_work.graph.operators[o];
        const OperatorId id{static_cast<std::int32_t>(o)};
        const auto stage = static_cast<std::size_t>(std::max(m_work.plan.decisions[o].stage.index, 0));
        const bool halves = m_halves.contains(id.index);
        if (op.direction == Direction::Optimizer)
            m_blocksOf[o] = {m_optimizer.back()};
        else if (m_work.transformed.batch.oncePerStep[o])
            m_blocksOf[o] = {m_prologue};
        else
            for (const std::size_t i : cellsOf(id)) {
                m_blocksOf[o].push_back(op.direction == Direction::Forward ? m_forward[stage][i]
                        : m_inWeightGradient[o] && !halves                 ? m_weightGradient[stage][i]
                                                                           : m_backward[stage][i]);
                if (halves)
                    m_sequence[static_cast<std::size_t>(m_weightGradient[stage][i])].push_back(id);
            }
        for (const std::int32_t block : m_blocksOf[o])
            m_sequence[at(block)].push_back(id);
    }
    TRY(auto orders, sortOrders(m_work.plan, m_work.builder.blocks(), m_blocksOf));
    const bool regions = std::any_of(m_regionOf.begin(), m_regionOf.end(), [](auto r) { return r >= 0; });
    orders.inside.resize(m_sequence.size());
    for (std::size_t block = 0; block < orders.inside.size(); ++block) {
        const auto &rows = orders.inside[block];
        if (!rows.empty()) {
            TRY(m_sequence[block], orderInBlock(m_work.graph, m_work.uses, m_sequence[block], rows));
        }
        if (regions) {
            TRY(m_sequence[block],
                orderInBlock(m_work.graph, m_work.uses, m_sequence[block], rows, m_regionOf));
        }
    }
    m_ordersInside = std::move(orders.inside);
    return {};
}

bool LoweredBlocks::isDue(
    OperatorId id, std::int32_t part, std::int32_t block, bool recompute, std::int32_t turn) const
{
    const OperatorDecision &decision = m_work.decisionOf(id);
    if (turn >= 0 && turnOf(decision, part) != turn)
        return false;
    const BlockInfo &info = m_work.builder.block(block);
    if (laneCount(decision.partition) > 1 && laneOf(decision.partition, part) != info.lane)
        return false;
    return recompute || sliceCount(decision.partition) == 1
        || sliceOf(decision.partition, part) == info.slice;
}

void LoweredBlocks::estimate()
{
    m_seconds.assign(m_work.graph.operators.size(), 0);
    std::vector<TensorType> inputs;
    std::vector<TensorType> outputs;
    const auto typeInto = [](TensorType &type, const TensorView &view, DataType dataType) {
        type.shape.clear();
        type.dataType = view.tensor ? dataType : TensorType{}.dataType;
        for (const Range &range : view.index.ranges)
            type.shape.push_back(range.size());
    };
    for (std::size_t block = 0; block < m_sequence.size(); ++block) {
        std::vector<double> busy(static_cast<std::size_t>(m_work.plan.deviceCount), 0);
        for (const OperatorId id : m_sequence[block]) {
            const Operator &op = shareOf(id, static_cast<std::int32_t>(block));
            const auto &parts = m_work.partsOf(id);
            // One part stands for all of its block: they are equal, or nearly so.
            const Partition &partition = m_work.decisionOf(id).partition;
            const std::int32_t slices = sliceCount(partition);
            const std::int32_t lanes = laneCount(partition);
            const std::size_t inBlock = parts.size() / static_cast<std::size_t>(slices * lanes);
            const BlockInfo &info = m_work.builder.block(static_cast<std::int32_t>(block));
            const std::size_t first = inBlock
                * static_cast<std::size_t>(
                    (lanes > 1 ? info.lane * slices : 0) + (slices > 1 ? info.slice : 0));
            const TransformedPart &part = parts[first];
            inputs.resize(part.inputs.size());
            for (std::size_t slot = 0; slot < inputs.size(); ++slot)
                typeInto(inputs[slot], op.inputs[slot] ? part.inputs[slot] : TensorView{},
                    m_work.types.read(id, slot));
            outputs.resize(part.outputs.size());
            for (std::size_t slot = 0; slot < outputs.size(); ++slot)
                typeInto(outputs[slot], op.outputs[slot] ? part.outputs[slot] : TensorView{},
                    m_work.types.made(id, slot));
            const OperatorDecision &decision = m_work.decisionOf(id);
            std::array<double, kMostDeviceClasses> seconds{}; // by class
            const auto sliced = operatorOfSlice(op, partition, static_cast<std::int32_t>(first));
            const Operator &local = sliced ? *sliced : op;
            for (std::size_t i = first; i < first + inBlock; ++i) {
                const DeviceId device = parts[i].device;
                const std::int32_t c = m_work.cluster.classOf(device);
                double &own = seconds[static_cast<std::size_t>(c)];
                if (own == 0)
                    own = m_work.costs.kernel(
                        {local, inputs, outputs, arithmeticOf(m_work.graph, op, decision.precision), false,
                            {}, decision.attention, c});
                busy[at(device)] += own;
            }
            double &most = m_seconds[at(id)];
            most = std::max(most, *std::max_element(seconds.begin(), seconds.end()));
        }
        // Never zero: what follows a block must come after it in time.
        m_work.builder.blocks()[block].seconds = 1e-9 + *std::max_element(busy.begin(), busy.end());
    }
}

/// Slices of a stage run one behind the other in every micro-batch, lane by lane: those of the forward pass
/// ascending, then those of the backward pass descending.
void LoweredBlocks::addSliceOrder(MaterializedPlan &materialized) const
{
    const auto chain = [&](const std::vector<std::int32_t> &order, std::int32_t lane) {
        std::int32_t before = -1;
        for (const std::int32_t block : order) {
            if (m_work.builder.block(block).lane != lane || m_work.builder.block(block).devices.empty())
                continue;
            if (before >= 0)
                materialized.dataFlow.push_back({before, block, 0, RowId{}});
            before = block;
        }
    };
    for (std::size_t s = 0; s < m_forward.size(); ++s) {
        if (m_work.transformed.places.slices[s] == 1)
            continue;
        std::vector<std::int32_t> passes = m_forward[s];
        passes.insert(passes.end(), m_backward[s].rbegin(), m_backward[s].rend());
        for (std::int32_t lane = 0; lane < m_work.transformed.places.lanes[s]; ++lane) {
            chain(passes, lane);
            chain({m_weightGradient[s].rbegin(), m_weightGradient[s].rend()}, lane);
        }
    }
}

void LoweredBlocks::handOver(MaterializedPlan &materialized)
{
    for (std::size_t s = 0; s < m_weightGradient.size(); ++s)
        for (std::size_t i = 0; i < m_weightGradient[s].size(); ++i)
            materialized.dataFlow.push_back({m_backward[s][i], m_weightGradient[s][i], 0, RowId{}});
    addSliceOrder(materialized);
    materialized.optimizers = m_optimizer;
    materialized.blocksOf = std::move(m_blocksOf);
    materialized.inside = std::move(m_ordersInside);
}

} // namespace planloom
