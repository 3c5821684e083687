#include "engine/lowering/lower.h"

#include "engine/base/background_disposal.h"
#include "engine/base/words.h"
#include "engine/graph/catalogue.h"
#include "engine/lowering/materialize.h"
#include "engine/lowering/order.h"
#include "engine/lowering/order_rows.h"
#include "engine/lowering/program_builder.h"
#include "engine/lowering/transform.h"
#include "engine/table/table.h"

#include <algorithm>
#include <cassert>
#include <map>
#include <set>
#include <tuple>

namespace planloom {

namespace {

/// A buffer that lives across steps.
struct Persistent {
    DeviceId device{};
    IndexMask box{};
    std::int32_t buffer = -1;
};

/// Carries one plan out; used once.
class Lowering
{
public:
    Lowering(const Plan &plan, const Cluster &cluster, const CostModel &costs, TransformedGraph transformed,
        std::stop_token stop)
        : m_plan(plan)
        , m_graph(*plan.graph)
        , m_costs(costs)
        , m_transformed(std::move(transformed))
        , m_stop(std::move(stop))
        , m_uses(usesOf(m_graph))
        , m_builder(plan.deviceCount)
        , m_materializer(m_graph, m_transformed.batch, m_transformed.summandCount, cluster, costs,
              plan.microBatches, m_builder)
        , m_persistent(m_graph.tensors.size())
        , m_persistentBoxes(m_graph.tensors.size())
        , m_blockOf(m_graph.operators.size(), -1)
        , m_accumulators(m_graph.tensors.size())
    {
    }

    Result<ExecutionPlan> run();

private:
    void makeBlocks();
    Result<void> sequenceOperators();
    void collectPersistentBoxes();
    void estimateBlocks();

    Result<void> emitOperator(OperatorId id, std::int32_t block, bool recompute);
    Result<std::vector<BufferList>> gatherInputs(OperatorId id, std::int32_t block);
    Result<std::vector<std::int32_t>> inputBuffers(
        TensorId tensor, const std::vector<Need> &needs, std::int32_t block, OperatorId op);
    std::int32_t persistentBuffer(TensorId tensor, DeviceId device, const IndexMask &box);
    void accumulate(TensorId tensor, DeviceId device, std::int32_t block, OperatorId op, const IndexMask &box,
        std::int32_t summand, std::int32_t buffer);
    bool joinsAccumulators(TensorId tensor);
    void reduceAccumulators();
    Result<void> recomputeFor(OperatorId backward, std::int32_t block);
    Result<void> emitOptimizer(OperatorId id);
    Result<void> storeOutputs();
    Result<void> storeOutput(TensorId tensor);

    const TransformedGraph &transformed() const { return m_transformed; }
    bool isPersistent(TensorId tensor) const;
    bool isWeightGradient(TensorId tensor) const;
    bool isWanted(TensorId tensor) const;
    MemoryKind memoryOf(TensorId tensor) const;

    const Plan &m_plan;
    const Graph &m_graph;
    const CostModel &m_costs;
    TransformedGraph m_transformed;
    std::stop_token m_stop;
    Uses m_uses;
    ProgramBuilder m_builder;
    Materializer m_materializer;

    std::int32_t m_prologue = -1;
    std::vector<std::int32_t> m_forward{}; ///< Block by stage.
    std::vector<std::int32_t> m_backward{};
    std::int32_t m_reduce = -1;
    std::int32_t m_optimizer = -1;
    std::vector<std::vector<OperatorId>> m_sequence{}; ///< Operators by block, in order.

    std::vector<std::vector<Persistent>> m_persistent; ///< By tensor.
    std::vector<std::vector<Persistent>>
        m_persistentBoxes; ///< By tensor: every box that is read, per device.
    std::vector<std::int32_t> m_blockOf; ///< By operator.
    /// Where a device adds a weight's gradient up.
    struct Accumulator {
        DeviceId device{};
        IndexMask box{};
        std::int32_t summand = -1; ///< The only one it holds; -1 where it holds them all.
        std::int32_t buffer = -1;
        SummandSet summands{};
    };
    std::vector<std::vector<Accumulator>> m_accumulators; ///< By tensor.
    std::map<std::int32_t, bool> m_joinsAccumulators{}; ///< By tensor, once asked.
    std::set<std::pair<std::int32_t, std::int32_t>> m_recomputed{}; ///< (group, stage)
    std::vector<BlockDependency> m_dependencies{};
};

bool Lowering::isPersistent(TensorId tensor) const
{
    const auto index = static_cast<std::size_t>(tensor.index);
    if (!m_uses.producers[index].empty())
        return false;
    switch (m_graph.at(tensor).role) {
    case TensorRole::Weight:
    case TensorRole::OptimizerState:
        return true;
    case TensorRole::Buffer:
        return m_transformed.batch.tensorRole[index] != BatchRole::Split;
    default:
        return false;
    }
}

bool Lowering::isWeightGradient(TensorId tensor) const
{
    const Tensor &info = m_graph.at(tensor);
    return info.role == TensorRole::Gradient && info.of && m_graph.at(info.of).role == TensorRole::Weight;
}

bool Lowering::isWanted(TensorId tensor) const
{
    return !m_uses.consumers[static_cast<std::size_t>(tensor.index)].empty()
        || std::find(m_graph.outputs.begin(), m_graph.outputs.end(), tensor) != m_graph.outputs.end();
}

MemoryKind Lowering::memoryOf(TensorId tensor) const
{
    if (isWeightGradient(tensor))
        return MemoryKind::Gradient;
    switch (m_graph.at(tensor).role) {
    case TensorRole::Input:
        return MemoryKind::Input;
    case TensorRole::Weight:
    case TensorRole::Buffer:
        return MemoryKind::Weight;
    case TensorRole::OptimizerState:
        return MemoryKind::OptimizerState;
    default:
        return MemoryKind::Activation;
    }
}

void Lowering::makeBlocks()
{
    m_prologue = m_builder.addBlock(SegmentKind::Prologue, StageId{0}, 0);
    for (std::int32_t s = 0; s < m_plan.stageCount; ++s)
        m_forward.push_back(m_builder.addBlock(SegmentKind::Forward, StageId{s}, 1 + s));
    for (std::int32_t s = 0; s < m_plan.stageCount; ++s)
        m_backward.push_back(
            m_builder.addBlock(SegmentKind::Backward, StageId{s}, 1e4 + (m_plan.stageCount - 1 - s)));
    m_reduce = m_builder.addBlock(SegmentKind::Reduce, StageId{0}, 1e6);
    m_optimizer = m_builder.addBlock(SegmentKind::Optimizer, StageId{0}, 1e6 + 1);
}

Result<void> Lowering::sequenceOperators()
{
    m_sequence.resize(m_builder.blocks().size());
    for (std::size_t o = 0; o < m_graph.operators.size(); ++o) {
        const Operator &op = m_graph.operators[o];
        const OperatorId id{static_cast<std::int32_t>(o)};
        const auto stage = static_cast<std::size_t>(std::max(m_plan.decisions[o].stage.index, 0));
        std::int32_t block = m_optimizer;
        if (op.direction == Direction::Forward)
            block = m_transformed.batch.oncePerStep[o] ? m_prologue : m_forward[stage];
        else if (op.direction == Direction::Backward)
            block = m_backward[stage];
        m_blockOf[o] = block;
        m_sequence[static_cast<std::size_t>(block)].push_back(id);
    }
    TRY(auto orders, sortOrders(m_plan, m_builder.blocks(), m_blockOf));
    m_dependencies = std::move(orders.between);
    for (std::size_t block = 0; block < orders.inside.size(); ++block) {
        if (orders.inside[block].empty())
            continue;
        TRY(auto ordered, orderInBlock(m_graph, m_uses, m_sequence[block], orders.inside[block]));
        m_sequence[block] = std::move(ordered);
    }
    return {};
}

void Lowering::collectPersistentBoxes()
{
    for (std::size_t o = 0; o < m_graph.operators.size(); ++o) {
        const auto &inputs = m_graph.operators[o].inputs;
        const auto &parts = m_transformed.operators[o];
        for (std::size_t slot = 0; slot < inputs.size(); ++slot) {
            if (!inputs[slot] || !isPersistent(inputs[slot]))
                continue;
            auto &boxes = m_persistentBoxes[static_cast<std::size_t>(inputs[slot].index)];
            for (const TransformedPart &part : parts)
                boxes.push_back({part.device, part.inputs[slot].index, -1});
        }
    }
    // By device, in which the first of equals stays: they are looked up by it.
    for (auto &boxes : m_persistentBoxes) {
        std::stable_sort(boxes.begin(), boxes.end(),
            [](const Persistent &a, const Persistent &b) { return a.device < b.device; });
        std::vector<Persistent> distinct;
        std::size_t own = 0; // where the device's begin
        for (const Persistent &p : boxes) {
            if (!distinct.empty() && distinct.back().device != p.device)
                own = distinct.size();
            if (std::none_of(distinct.begin() + static_cast<std::ptrdiff_t>(own), distinct.end(),
                    [&](const Persistent &other) { return other.box == p.box; }))
                distinct.push_back(p);
        }
        boxes = std::move(distinct);
    }
}

void Lowering::estimateBlocks()
{
    std::vector<TensorType> inputs;
    std::vector<TensorType> outputs;
    const auto typeInto = [this](TensorType &type, const TensorView &view) {
        type.shape.clear();
        type.dataType = view.tensor ? m_graph.at(view.tensor).type.dataType : TensorType{}.dataType;
        for (const Range &range : view.index.ranges)
            type.shape.push_back(range.size());
    };
    for (std::size_t block = 0; block < m_sequence.size(); ++block) {
        std::vector<double> busy(static_cast<std::size_t>(m_plan.deviceCount), 0);
        for (const OperatorId id : m_sequence[block]) {
            const Operator &op = m_graph.at(id);
            const auto &parts = m_transformed.operators[static_cast<std::size_t>(id.index)];
            // One part stands for all: they are equal, or nearly so.
            const TransformedPart &part = parts.front();
            inputs.resize(part.inputs.size());
            for (std::size_t slot = 0; slot < inputs.size(); ++slot)
                typeInto(inputs[slot], part.inputs[slot]);
            outputs.resize(part.outputs.size());
            for (std::size_t slot = 0; slot < outputs.size(); ++slot)
                typeInto(outputs[slot], part.outputs[slot]);
            const double seconds = m_costs.kernel({op, inputs, outputs, computeTypeOf(inputs, outputs)});
            for (const TransformedPart &p : parts)
                busy[static_cast<std::size_t>(p.device.index)] += seconds;
        }
        // Never zero: what follows a block must come after it in time.
        m_builder.blocks()[block].seconds = 1e-9 + *std::max_element(busy.begin(), busy.end());
    }
}

std::int32_t Lowering::persistentBuffer(TensorId tensor, DeviceId device, const IndexMask &box)
{
    // The largest box that any operator of this device reads serves all that lie inside it.
    const auto index = static_cast<std::size_t>(tensor.index);
    IndexMask largest = box;
    const auto &boxes = m_persistentBoxes[index];
    for (auto p = std::lower_bound(boxes.begin(), boxes.end(), device,
             [](const Persistent &a, DeviceId b) { return a.device < b; });
         p != boxes.end() && p->device == device; ++p)
        if (contains(p->box, largest))
            largest = p->box;
    for (const Persistent &p : m_persistent[index])
        if (p.device == device && contains(p.box, largest))
            return p.buffer;
    BufferInfo info{.tensor = tensor,
        .index = largest,
        .perMicroBatch = false,
        .persistent = true,
        .memory = memoryOf(tensor)};
    const std::int32_t buffer = m_builder.addBuffer(device, std::move(info));
    m_builder.emitSetup(device, {.kind = InstructionKind::Load, .outputs = {buffer}});
    m_persistent[index].push_back({device, largest, buffer});
    m_materializer.available(tensor, {device, largest, {}, buffer}, m_prologue);
    return buffer;
}

Result<std::vector<std::int32_t>> Lowering::inputBuffers(
    TensorId tensor, const std::vector<Need> &needs, std::int32_t block, OperatorId op)
{
    if (isPersistent(tensor)) {
        for (const Need &need : needs)
            persistentBuffer(tensor, need.device, need.box);
        return m_materializer.ensure(tensor, needs, block, op);
    }
    if (!m_uses.producers[static_cast<std::size_t>(tensor.index)].empty())
        return m_materializer.ensure(tensor, needs, block, op);
    // Fed from the host: every block loads what it reads, so that nothing is held in between.
    std::vector<std::int32_t> buffers;
    const SegmentKind kind = m_builder.block(block).kind;
    for (const Need &need : needs) {
        auto &loaded = m_persistent[static_cast<std::size_t>(tensor.index)];
        const auto it = std::find_if(loaded.begin(), loaded.end(),
            [&](const Persistent &p) { return p.device == need.device && p.box == need.box; });
        if (it != loaded.end()) {
            buffers.push_back(it->buffer);
            continue;
        }
        BufferInfo info{.tensor = tensor, .index = need.box, .memory = MemoryKind::Input};
        info.perMicroBatch = kind == SegmentKind::Forward || kind == SegmentKind::Backward;
        const std::int32_t buffer = m_builder.addBuffer(need.device, std::move(info));
        m_builder.emit(need.device, block, {.kind = InstructionKind::Load, .op = op, .outputs = {buffer}});
        loaded.push_back({need.device, need.box, buffer});
        buffers.push_back(buffer);
    }
    return buffers;
}

/// Buffers of every part by slot; -1 where absent.
Result<std::vector<BufferList>> Lowering::gatherInputs(OperatorId id, std::int32_t block)
{
    const auto &parts = m_transformed.operators[static_cast<std::size_t>(id.index)];
    const std::size_t slots = m_graph.at(id).inputs.size();
    std::vector<BufferList> inputs(parts.size());
    for (BufferList &list : inputs)
        list.resize(slots, -1);
    std::vector<Need> needs;
    for (std::size_t slot = 0; slot < slots; ++slot) {
        const TensorId tensor = m_graph.at(id).inputs[slot];
        if (!tensor)
            continue;
        needs.clear();
        needs.reserve(parts.size());
        bool divided = false;
        for (const TransformedPart &part : parts) {
            needs.push_back({part.device, part.inputs[slot].index, part.inputs[slot].value});
            divided = divided || !needs.back().value.complete();
        }
        if (divided) {
            if (const auto found = m_materializer.ensureParts(tensor, needs, block, id)) {
                for (std::size_t p = 0; p < parts.size(); ++p)
                    inputs[p][slot] = (*found)[p];
                continue;
            }
            for (Need &need : needs)
                need.value = {};
        }
        TRY(const auto buffers, inputBuffers(tensor, needs, block, id));
        for (std::size_t p = 0; p < parts.size(); ++p) {
            inputs[p][slot] = buffers[p];
            const ValueMask value = parts[p].inputs[slot].value;
            if (value.complete())
                continue;
            BufferInfo info{.tensor = tensor, .index = parts[p].inputs[slot].index, .valuePart = value};
            const SegmentKind kind = m_builder.block(block).kind;
            info.perMicroBatch = kind == SegmentKind::Forward || kind == SegmentKind::Backward;
            inputs[p][slot] = m_builder.addBuffer(parts[p].device, std::move(info));
            m_builder.emit(parts[p].device, block,
                {.kind = InstructionKind::ValueSelect,
                    .op = id,
                    .inputs = {buffers[p]},
                    .outputs = {inputs[p][slot]}});
        }
    }
    return inputs;
}

/// Whether each device may add all its summands of a weight's gradient up in one accumulator: not if the sets
/// that result would overlap without being equal, since such sums cannot be added to a whole any more.
bool Lowering::joinsAccumulators(TensorId tensor)
{
    if (m_transformed.summandCount[static_cast<std::size_t>(tensor.index)] <= 1)
        return true; // all make the same one
    const auto [it, fresh] = m_joinsAccumulators.try_emplace(tensor.index, true);
    if (!fresh)
        return it->second;
    std::map<std::pair<DeviceId, IndexMask>, std::set<std::int32_t>> sets;
    for (const OperatorId producer : m_uses.producers[static_cast<std::size_t>(tensor.index)]) {
        const auto o = static_cast<std::size_t>(producer.index);
        for (std::size_t slot = 0; slot < m_graph.at(producer).outputs.size(); ++slot)
            if (m_graph.at(producer).outputs[slot] == tensor)
                for (const TransformedPart &part : m_transformed.operators[o])
                    sets[{part.device, part.outputs[slot].index}].insert(
                        m_transformed.summandBase[o][slot] + part.outputs[slot].value.index);
    }
    for (auto a = sets.begin(); a != sets.end(); ++a)
        for (auto b = std::next(a); b != sets.end(); ++b) {
            if (a->second == b->second || !intersection(a->first.second, b->first.second))
                continue;
            for (const std::int32_t summand : a->second)
                if (b->second.count(summand) > 0)
                    return it->second = false;
        }
    return true;
}

void Lowering::accumulate(TensorId tensor, DeviceId device, std::int32_t block, OperatorId op,
    const IndexMask &box, std::int32_t summand, std::int32_t buffer)
{
    auto &accumulators = m_accumulators[static_cast<std::size_t>(tensor.index)];
    const std::int32_t alone = joinsAccumulators(tensor) ? -1 : summand;
    auto found = std::find_if(accumulators.begin(), accumulators.end(),
        [&](const Accumulator &a) { return a.device == device && a.summand == alone && a.box == box; });
    if (found == accumulators.end()) {
        accumulators.push_back({.device = device, .box = box, .summand = alone});
        found = accumulators.end() - 1;
    }
    Accumulator &accumulator = *found;
    const auto at = std::lower_bound(accumulator.summands.begin(), accumulator.summands.end(), summand);
    if (at != accumulator.summands.end() && *at == summand)
        return; // a replica on the same device made the same summand already
    accumulator.summands.insert(at, summand);
    if (accumulator.buffer < 0)
        accumulator.buffer = m_builder.addBuffer(
            device, {.tensor = tensor, .index = box, .perMicroBatch = false, .memory = MemoryKind::Gradient});
    m_builder.emit(device, block,
        {.kind = InstructionKind::Accumulate, .op = op, .inputs = {buffer}, .outputs = {accumulator.buffer}});
}

Result<void> Lowering::emitOperator(OperatorId id, std::int32_t block, bool recompute)
{
    const Operator &op = m_graph.at(id);
    const auto o = static_cast<std::size_t>(id.index);
    TRY(const auto inputs, gatherInputs(id, block));
    const bool noneWanted = std::none_of(
        op.outputs.begin(), op.outputs.end(), [this](TensorId tensor) { return tensor && isWanted(tensor); });
    const SegmentKind kind = m_builder.block(block).kind;
    const auto &parts = m_transformed.operators[o];
    for (std::size_t p = 0; p < parts.size(); ++p) {
        const TransformedPart &part = parts[p];
        Instruction kernel{.kind = InstructionKind::Kernel,
            .op = id,
            .part = static_cast<std::int32_t>(p),
            .recompute = recompute,
            .inputs = inputs[p]};
        for (std::size_t slot = 0; slot < op.outputs.size(); ++slot) {
            const TensorView &view = part.outputs[slot];
            if (!view.tensor || (!isWanted(view.tensor) && !noneWanted)) {
                kernel.outputs.push_back(-1);
                continue;
            }
            BufferInfo info{.tensor = view.tensor, .index = view.index, .memory = memoryOf(view.tensor)};
            info.perMicroBatch = kind == SegmentKind::Forward || kind == SegmentKind::Backward;
            if (m_transformed.summandCount[static_cast<std::size_t>(view.tensor.index)] > 1)
                info.summands = {m_transformed.summandBase[o][slot] + view.value.index};
            kernel.outputs.push_back(m_builder.addBuffer(part.device, std::move(info)));
        }
        const BufferList outputs = kernel.outputs;
        m_builder.emit(part.device, block, std::move(kernel));
        for (std::size_t slot = 0; slot < op.outputs.size(); ++slot) {
            if (outputs[slot] < 0)
                continue;
            const TensorView &view = part.outputs[slot];
            const std::int32_t summand = m_transformed.summandBase[o][slot] + view.value.index;
            if (isWeightGradient(view.tensor))
                accumulate(view.tensor, part.device, block, id, view.index, summand, outputs[slot]);
            else
                m_materializer.made(
                    view.tensor, block, {part.device, view.index, {summand}, outputs[slot]}, parts.size());
        }
    }
    return {};
}

/// Runs again, in `block`, the forward operators whose dropped outputs this backward operator reads.
Result<void> Lowering::recomputeFor(OperatorId backward, std::int32_t block)
{
    const std::int32_t stage = m_builder.block(block).stage.index;
    for (const TensorId input : m_graph.at(backward).inputs) {
        if (!input)
            continue;
        for (const OperatorId producer : m_uses.producers[static_cast<std::size_t>(input.index)]) {
            const OperatorDecision &decision = m_plan.decisions[static_cast<std::size_t>(producer.index)];
            if (m_graph.at(producer).direction != Direction::Forward || decision.recomputeGroup < 0
                || m_blockOf[static_cast<std::size_t>(producer.index)]
                    != m_forward[static_cast<std::size_t>(stage)]
                || !m_recomputed.insert({decision.recomputeGroup, stage}).second)
                continue;
            const std::int32_t forward = m_forward[static_cast<std::size_t>(stage)];
            const auto inGroup = [&](OperatorId id) {
                return m_plan.decisions[static_cast<std::size_t>(id.index)].recomputeGroup
                    == decision.recomputeGroup;
            };
            // Only what some backward operator of this stage reads, and what that is made from.
            std::vector<OperatorId> group;
            for (const OperatorId id : m_sequence[static_cast<std::size_t>(forward)])
                if (inGroup(id))
                    group.push_back(id);
            std::set<TensorId> needed;
            std::vector<OperatorId> again;
            for (auto it = group.rbegin(); it != group.rend(); ++it) {
                bool wanted = false;
                for (const TensorId output : m_graph.at(*it).outputs) {
                    if (!output)
                        continue;
                    for (const OperatorId consumer : m_uses.consumers[static_cast<std::size_t>(output.index)])
                        wanted = wanted
                            || (m_graph.at(consumer).direction == Direction::Backward
                                && m_blockOf[static_cast<std::size_t>(consumer.index)] == block);
                    wanted = wanted || needed.count(output) > 0;
                }
                if (!wanted)
                    continue;
                again.push_back(*it);
                for (const TensorId read : m_graph.at(*it).inputs)
                    if (read)
                        needed.insert(read);
            }
            std::reverse(again.begin(), again.end());
            for (const OperatorId id : again)
                for (const TensorId output : m_graph.at(id).outputs)
                    if (output)
                        m_materializer.forget(output, forward, block);
            for (const OperatorId id : again)
                TRY_VOID(emitOperator(id, block, true));
        }
    }
    return {};
}

Result<void> Lowering::emitOptimizer(OperatorId id)
{
    const Operator &op = m_graph.at(id);
    const auto &parts = m_transformed.operators[static_cast<std::size_t>(id.index)];
    for (std::size_t a = 0; a < parts.size(); ++a)
        for (std::size_t b = a + 1; b < parts.size(); ++b)
            if (parts[a].device == parts[b].device && parts[a].inputs[0].index == parts[b].inputs[0].index)
                return Error{ErrorCode::InvalidInput,
                    "operator '" + op.name + "' would update the same weight twice on device "
                        + std::to_string(parts[a].device.index),
                    "place its replicas on different devices", "operator:" + op.name};

    std::vector<BufferList> inputs(parts.size());
    for (BufferList &list : inputs)
        list.resize(op.inputs.size(), -1);
    for (std::size_t slot = 0; slot < op.inputs.size(); ++slot) {
        if (!op.inputs[slot])
            continue;
        std::vector<Need> needs;
        needs.reserve(parts.size());
        for (const TransformedPart &part : parts)
            needs.push_back({part.device, part.inputs[slot].index});
        const bool gradient = isWeightGradient(op.inputs[slot]);
        TRY(const auto buffers, inputBuffers(op.inputs[slot], needs, gradient ? m_reduce : m_optimizer, id));
        for (std::size_t p = 0; p < parts.size(); ++p)
            inputs[p][slot] = buffers[p];
    }
    std::set<std::pair<DeviceId, std::int32_t>> inPlace;
    for (std::size_t p = 0; p < parts.size(); ++p) {
        const TransformedPart &part = parts[p];
        Instruction kernel{.kind = InstructionKind::Kernel,
            .op = id,
            .part = static_cast<std::int32_t>(p),
            .inputs = inputs[p]};
        for (std::size_t slot = 0; slot < op.outputs.size(); ++slot) {
            if (!op.outputs[slot]) {
                kernel.outputs.push_back(-1);
                continue;
            }
            // In place where the persistent buffer is just this box.
            const std::int32_t old = inputs[p][slot == 0 ? 0 : slot + 1];
            std::int32_t buffer = old;
            if (m_builder.buffer(part.device, old).persistent)
                inPlace.insert({part.device, old});
            else
                buffer = m_builder.addBuffer(part.device,
                    {.tensor = op.outputs[slot],
                        .index = part.outputs[slot].index,
                        .perMicroBatch = false,
                        .memory = memoryOf(op.outputs[slot])});
            kernel.outputs.push_back(buffer);
            m_materializer.made(op.outputs[slot], m_optimizer,
                {part.device, part.outputs[slot].index, {}, buffer}, parts.size());
        }
        m_builder.emit(part.device, m_optimizer, std::move(kernel));
    }
    // Everywhere the old value is held, the new one must arrive.
    for (std::size_t slot = 0; slot < op.outputs.size(); ++slot) {
        if (!op.outputs[slot])
            continue;
        const TensorId old = op.inputs[slot == 0 ? 0 : slot + 1];
        std::vector<Persistent> held = m_persistent[static_cast<std::size_t>(old.index)];
        std::erase_if(held, [&](const Persistent &p) { return inPlace.count({p.device, p.buffer}) > 0; });
        std::vector<Need> needs;
        for (const Persistent &p : held)
            needs.push_back({p.device, p.box});
        TRY(const auto buffers, m_materializer.ensure(op.outputs[slot], needs, m_optimizer, id));
        for (std::size_t i = 0; i < held.size(); ++i)
            if (buffers[i] != held[i].buffer)
                m_builder.emit(held[i].device, m_optimizer,
                    {.kind = InstructionKind::Update,
                        .op = id,
                        .inputs = {buffers[i]},
                        .outputs = {held[i].buffer}});
    }
    return {};
}

Result<void> Lowering::storeOutput(TensorId tensor)
{
    const auto makers = m_materializer.makersOf(tensor);
    const auto store = [&](const std::vector<Need> &needs, std::int32_t block) -> Result<void> {
        const auto &producers = m_uses.producers[static_cast<std::size_t>(tensor.index)];
        const OperatorId op = producers.empty() ? OperatorId{} : producers.front();
        TRY(const auto buffers, inputBuffers(tensor, needs, block, op));
        for (std::size_t i = 0; i < needs.size(); ++i)
            m_builder.emit(
                needs[i].device, block, {.kind = InstructionKind::Store, .op = op, .inputs = {buffers[i]}});
        return {};
    };
    IndexMask whole = wholeMask(m_graph.at(tensor).type.shape);
    const auto index = static_cast<std::size_t>(tensor.index);
    if (m_transformed.batch.tensorRole[index] == BatchRole::Split)
        whole.ranges[static_cast<std::size_t>(m_transformed.batch.tensorDimension[index])].end /=
            m_plan.microBatches;
    if (makers.empty())
        return store({{DeviceId{0}, whole}}, m_forward.front());
    const std::int32_t block = makers.front();
    // Every distinct box once, from the first device that made it, if they tile the tensor.
    std::vector<Need> needs;
    std::int64_t volume = 0;
    bool overlap = false;
    for (const Holding &h : *m_materializer.holdingsOf(tensor, block)) {
        if (std::any_of(needs.begin(), needs.end(), [&](const Need &n) { return n.box == h.box; }))
            continue;
        for (const Need &need : needs)
            overlap = overlap || intersection(need.box, h.box).has_value();
        needs.push_back({h.device, h.box});
        volume += elementCount(shapeOf(h.box));
    }
    if (overlap || volume != elementCount(shapeOf(whole)))
        needs = {{needs.front().device, whole}};
    return store(needs, block);
}

Result<void> Lowering::storeOutputs()
{
    const auto &outputs = m_graph.outputs;
    for (auto tensor = outputs.begin(); tensor != outputs.end(); ++tensor)
        if (std::find(outputs.begin(), tensor, *tensor)
            == tensor) // one that is listed twice reaches the host once
            TRY_VOID(storeOutput(*tensor));
    return {};
}

/// Hands what was added up to the reductions of the step.
void Lowering::reduceAccumulators()
{
    for (std::size_t tensor = 0; tensor < m_accumulators.size(); ++tensor) {
        auto &accumulators = m_accumulators[tensor];
        std::sort(accumulators.begin(), accumulators.end(), [](const Accumulator &a, const Accumulator &b) {
            return std::tie(a.device, a.box, a.summand) < std::tie(b.device, b.box, b.summand);
        });
        for (const auto &[device, box, alone, buffer, summands] : accumulators) {
            const bool all = static_cast<std::int32_t>(summands.size()) == m_transformed.summandCount[tensor];
            m_builder.setSummands(device, buffer, all ? SummandSet{} : summands);
            m_materializer.made(
                TensorId{static_cast<std::int32_t>(tensor)}, m_reduce, {device, box, summands, buffer});
        }
    }
}

Result<ExecutionPlan> Lowering::run()
{
    makeBlocks();
    TRY_VOID(sequenceOperators());
    collectPersistentBoxes();
    estimateBlocks();

    std::vector<std::size_t> fed; // from the host, tensors
    for (std::size_t t = 0; t < m_graph.tensors.size(); ++t)
        if (m_uses.producers[t].empty() && !isPersistent(TensorId{static_cast<std::int32_t>(t)}))
            fed.push_back(t);
    const auto emitBlock = [this, &fed](std::int32_t block) -> Result<void> {
        // What the host fed to other blocks is not at hand in this one.
        for (const std::size_t tensor : fed)
            m_persistent[tensor].clear();
        for (const OperatorId id : m_sequence[static_cast<std::size_t>(block)]) {
            if (m_stop.stop_requested())
                return cancelled("lowering was stopped");
            if (m_graph.at(id).direction == Direction::Backward)
                TRY_VOID(recomputeFor(id, block));
            TRY_VOID(emitOperator(id, block, false));
        }
        return {};
    };
    TRY_VOID(emitBlock(m_prologue));
    for (const std::int32_t block : m_forward)
        TRY_VOID(emitBlock(block));
    TRY_VOID(storeOutputs());
    for (std::size_t s = m_backward.size(); s-- > 0;)
        TRY_VOID(emitBlock(m_backward[s]));
    reduceAccumulators();
    for (const OperatorId id : m_sequence[static_cast<std::size_t>(m_optimizer)]) {
        if (m_stop.stop_requested())
            return cancelled("lowering was stopped");
        TRY_VOID(emitOptimizer(id));
    }

    for (const auto &[earlier, later] : m_builder.sharedBufferDependencies())
        m_dependencies.push_back({earlier, later, 0, RowId{}});
    for (std::size_t b = 0; b < m_builder.blocks().size(); ++b)
        if (const BlockInfo &block = m_builder.blocks()[b]; block.kind == SegmentKind::Transfer)
            m_dependencies.push_back({block.source, block.target, 0, RowId{}});
    TRY(const auto order,
        orderBlocks(m_builder.blocks(), m_dependencies, m_plan.microBatches, m_plan.stageCount,
            m_plan.schedule, m_plan.inFlight));

    ExecutionPlan result;
    result.graph = m_plan.graph;
    result.microBatches = m_plan.microBatches;
    result.stageCount = m_plan.stageCount;
    result.partitions.reserve(m_plan.decisions.size());
    result.placement.reserve(m_plan.decisions.size());
    for (const OperatorDecision &decision : m_plan.decisions) {
        result.partitions.push_back(decision.partition);
        result.placement.push_back(decision.devices);
    }
    m_builder.finish(order, result);
    result.batch = std::move(m_transformed.batch);
    return result;
}

} // namespace

Result<ExecutionPlan> lower(const Plan &plan, const Cluster &cluster, std::stop_token stop)
{
    return lower(plan, cluster, costModelOf(cluster), std::move(stop));
}

Result<ExecutionPlan> lower(
    const Plan &plan, const Cluster &cluster, const CostModel &costs, std::stop_token stop)
{
    if (plan.deviceCount > cluster.deviceCount)
        return Error{ErrorCode::InvalidInput,
            "the plan uses " + counted(plan.deviceCount, "device") + ", the cluster has "
                + std::to_string(cluster.deviceCount),
            "choose a larger cluster", "cluster"};
    TRY_VOID(validate(plan));
    TRY(auto transformed, transform(plan));
    auto lowering = std::make_shared<Lowering>(plan, cluster, costs, std::move(transformed), std::move(stop));
    auto lowered = lowering->run();
    disposeInBackground([lowering = std::move(lowering)] {}); // millions of small parts
    return lowered;
}

} // namespace planloom
