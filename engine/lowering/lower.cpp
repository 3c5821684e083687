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
#include <optional>
#include <set>
#include <tuple>

namespace planloom {

namespace {

/// A buffer that lives across steps.
struct Persistent {
    DeviceId device{};
    IndexMask box{};
    std::int32_t buffer = -1;
    DataType dataType = DataType::Float32;
};

/// By operator; empty if all work in Float32.
std::vector<Precision> precisionsOf(const Plan &plan)
{
    if (std::all_of(plan.decisions.begin(), plan.decisions.end(),
            [](const OperatorDecision &decision) { return decision.precision == Precision{}; }))
        return {};
    std::vector<Precision> precisions;
    precisions.reserve(plan.decisions.size());
    for (const OperatorDecision &decision : plan.decisions)
        precisions.push_back(decision.precision);
    return precisions;
}

/// Carries one plan out; used once.
class Lowering
{
public:
    Lowering(const Plan &plan, const Cluster &cluster, const CostModel &costs, TransformedGraph transformed,
        std::stop_token stop)
        : m_plan(plan)
        , m_graph(*plan.graph)
        , m_cluster(unitOf(cluster, plan.units))
        , m_costs(costs)
        , m_transformed(std::move(transformed))
        , m_stop(std::move(stop))
        , m_uses(usesOf(m_graph))
        , m_precisions(precisionsOf(plan))
        , m_types(m_graph, m_precisions)
        , m_builder(plan.deviceCount)
        , m_materializer(m_graph, m_transformed.batch, m_transformed.summandCount, m_types, m_cluster, costs,
              plan.units, batchCuts(plan), m_builder)
        , m_persistent(m_graph.tensors.size())
        , m_gathered(m_graph.tensors.size())
        , m_persistentBoxes(m_graph.tensors.size())
        , m_blockOf(m_graph.operators.size(), -1)
        , m_accumulators(m_graph.tensors.size())
    {
    }

    Result<ExecutionPlan> run();

private:
    /// What units share out among them.
    struct UnitShard {
        std::int32_t dimension = -1; ///< Of the weight.
        std::int64_t extent = 0; ///< Of all units' shares together, along it.
    };

    void makeBlocks();
    Result<void> sequenceOperators();
    void collectPersistentBoxes();
    void estimateBlocks();

    Result<void> emitOperator(OperatorId id, std::int32_t block, bool recompute);
    Result<std::vector<BufferList>> gatherInputs(OperatorId id, std::int32_t block);
    Result<std::vector<std::int32_t>> inputBuffers(
        TensorId tensor, const std::vector<Need> &needs, DataType type, std::int32_t block, OperatorId op);
    std::int32_t persistentBuffer(TensorId tensor, DeviceId device, const IndexMask &box, DataType type,
        const UnitShard *shard = nullptr);
    std::optional<std::int32_t> gatheredAhead(
        TensorId tensor, DeviceId device, const IndexMask &box, DataType type);
    std::int32_t castBuffer(
        DeviceId device, std::int32_t block, OperatorId op, std::int32_t buffer, DataType type);
    void accumulate(TensorId tensor, DeviceId device, std::int32_t block, OperatorId op, const IndexMask &box,
        std::int32_t summand, std::int32_t buffer);
    bool joinsAccumulators(TensorId tensor);
    void fillBuckets();
    double gradientSeconds(TensorId tensor, Bytes bytes) const;
    void reduceAccumulators();
    std::int32_t optimizerBlockOf(const Operator &op) const;
    void sliceForReductions(std::vector<BlockRun> &order) const;
    void markCompletions(OperatorId id, std::int32_t block);
    Result<void> recomputeFor(OperatorId backward, std::int32_t block);
    Result<void> emitOptimizer(OperatorId id);
    Result<std::vector<BufferList>> optimizerInputs(OperatorId id, std::int32_t block);
    std::optional<UnitShard> unitShardOf(OperatorId id) const;
    static IndexMask joinedUnits(IndexMask box, const UnitShard &shard);
    static void markShard(BufferInfo &info, const UnitShard &shard);
    void gatherAcrossUnits(OperatorId id, std::int32_t block, const Holding &own, const UnitShard &shard);
    Result<void> storeOutputs();
    Result<void> storeOutput(TensorId tensor);

    const TransformedGraph &transformed() const { return m_transformed; }
    bool isPersistent(TensorId tensor) const;
    bool isWeightGradient(TensorId tensor) const;
    bool isWanted(TensorId tensor) const;
    /// True for probabilities that the plan does not keep: neither made nor read.
    bool isLeftOut(OperatorId op, bool output, std::size_t slot) const;
    MemoryKind memoryOf(TensorId tensor) const;

    const Plan &m_plan;
    const Graph &m_graph;
    const Cluster m_cluster; ///< Of one unit.
    const CostModel &m_costs;
    TransformedGraph m_transformed;
    std::stop_token m_stop;
    Uses m_uses;
    std::vector<Precision> m_precisions;
    StorageTypes m_types;
    ProgramBuilder m_builder;
    Materializer m_materializer;

    std::int32_t m_prologue = -1;
    std::vector<std::int32_t> m_forward{}; ///< Block by stage.
    std::vector<std::int32_t> m_backward{};
    std::vector<std::int32_t> m_optimizer{}; ///< Block by stage, and one for weights of several stages.
    std::vector<std::vector<OperatorId>> m_sequence{}; ///< Operators by block, in order.

    std::vector<std::vector<Persistent>> m_persistent; ///< By tensor.
    std::vector<std::vector<Persistent>> m_gathered; ///< By tensor: copies made anew in every step.
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
    /// Where a weight's gradient is complete: behind this mark of this block in its last micro-batch.
    struct Completion {
        std::int32_t block = -1; ///< -1: several blocks add to it.
        std::int32_t mark = -1;
    };
    std::map<TensorId, Completion> m_complete{};
    /// Gradients that are reduced together, as soon as all are complete.
    struct Bucket {
        std::int32_t block = -1; ///< The reduction's own.
        Completion after{};
    };
    std::vector<Bucket> m_buckets{};
    std::map<TensorId, std::int32_t> m_bucketOf{};
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

bool Lowering::isLeftOut(OperatorId id, bool output, std::size_t slot) const
{
    const Operator &op = m_graph.at(id);
    const std::int32_t probabilities = output ? probabilitiesOutput(op) : probabilitiesInput(op);
    return static_cast<std::int32_t>(slot) == probabilities
        && m_plan.decisions[static_cast<std::size_t>(id.index)].attention == AttentionMode::Fused;
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
    for (std::int32_t s = 0; s <= m_plan.stageCount; ++s)
        m_optimizer.push_back(
            m_builder.addBlock(SegmentKind::Optimizer, StageId{std::min(s, m_plan.stageCount - 1)}, 2e6 + s));
}

Result<void> Lowering::sequenceOperators()
{
    m_sequence.resize(m_builder.blocks().size());
    for (std::size_t o = 0; o < m_graph.operators.size(); ++o) {
        const Operator &op = m_graph.operators[o];
        const OperatorId id{static_cast<std::int32_t>(o)};
        const auto stage = static_cast<std::size_t>(std::max(m_plan.decisions[o].stage.index, 0));
        std::int32_t block = m_optimizer.back();
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
            const DataType type = m_types.read(OperatorId{static_cast<std::int32_t>(o)}, slot);
            for (const TransformedPart &part : parts)
                boxes.push_back({part.device, part.inputs[slot].index, -1, type});
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
                    [&](const Persistent &other) {
                        return other.box == p.box && other.dataType == p.dataType;
                    }))
                distinct.push_back(p);
        }
        boxes = std::move(distinct);
    }
}

void Lowering::estimateBlocks()
{
    std::vector<TensorType> inputs;
    std::vector<TensorType> outputs;
    const auto typeInto = [](TensorType &type, const TensorView &view, DataType dataType) {
        type.shape.clear();
        type.dataType = view.tensor ? dataType : TensorType{}.dataType;
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
                typeInto(inputs[slot], part.inputs[slot], m_types.read(id, slot));
            outputs.resize(part.outputs.size());
            for (std::size_t slot = 0; slot < outputs.size(); ++slot)
                typeInto(outputs[slot], part.outputs[slot], m_types.made(id, slot));
            const OperatorDecision &decision = m_plan.decisions[static_cast<std::size_t>(id.index)];
            const double seconds = m_costs.kernel({op, inputs, outputs,
                arithmeticOf(m_graph, op, decision.precision), false, {}, decision.attention});
            for (const TransformedPart &p : parts)
                busy[static_cast<std::size_t>(p.device.index)] += seconds;
        }
        // Never zero: what follows a block must come after it in time.
        m_builder.blocks()[block].seconds = 1e-9 + *std::max_element(busy.begin(), busy.end());
    }
}

/// A working copy of a weight whose master the units share out, gathered at the begin of the step: ahead of
/// its use, beside what is computed first, in the order in which the forward pass asks. Nothing is sent
/// behind the update then.
/// @return nothing where no share of it is on this device
std::optional<std::int32_t> Lowering::gatheredAhead(
    TensorId tensor, DeviceId device, const IndexMask &box, DataType type)
{
    auto &gathered = m_gathered[static_cast<std::size_t>(tensor.index)];
    for (const Persistent &copy : gathered)
        if (copy.device == device && copy.dataType == type && contains(copy.box, box))
            return copy.buffer;
    for (const OperatorId user : m_uses.consumers[static_cast<std::size_t>(tensor.index)]) {
        const Operator &op = m_graph.at(user);
        if (op.direction != Direction::Optimizer || op.inputs.front() != tensor)
            continue;
        const auto shard = unitShardOf(user);
        const DataType master = m_types.read(user, 0);
        if (!shard || master == type || !m_types.isMaster(tensor, master))
            continue;
        for (const TransformedPart &part : m_transformed.operators[static_cast<std::size_t>(user.index)]) {
            const IndexMask &own = part.inputs.front().index;
            if (part.device != device || !contains(joinedUnits(own, *shard), box))
                continue;
            const std::int32_t kept = persistentBuffer(tensor, device, own, master, &*shard);
            const std::int32_t sent = castBuffer(device, m_prologue, user, kept, type);
            Persistent copy{device, joinedUnits(own, *shard), -1, type};
            copy.buffer = m_builder.addBuffer(device,
                {.tensor = tensor,
                    .dataType = type,
                    .index = copy.box,
                    .perMicroBatch = false,
                    .memory = memoryOf(tensor)});
            m_builder.emit(device, m_prologue,
                {.kind = InstructionKind::AllGather,
                    .op = user,
                    .acrossUnits = true,
                    .dimension = shard->dimension,
                    .inputs = {sent},
                    .outputs = {copy.buffer}});
            m_materializer.available(tensor, {device, copy.box, {}, copy.buffer}, m_prologue);
            gathered.push_back(copy);
            return copy.buffer;
        }
    }
    return std::nullopt;
}

/// @param shard  where every unit has a box of its own; null if all have the same
std::int32_t Lowering::persistentBuffer(
    TensorId tensor, DeviceId device, const IndexMask &box, DataType type, const UnitShard *shard)
{
    // The largest box that any operator of this device reads serves all that lie inside it.
    const auto index = static_cast<std::size_t>(tensor.index);
    IndexMask largest = box;
    const auto &boxes = m_persistentBoxes[index];
    for (auto p = std::lower_bound(boxes.begin(), boxes.end(), device,
             [](const Persistent &a, DeviceId b) { return a.device < b; });
         p != boxes.end() && p->device == device; ++p)
        if (p->dataType == type && contains(p->box, largest))
            largest = p->box;
    for (const Persistent &p : m_persistent[index])
        if (p.device == device && p.dataType == type && contains(p.box, largest))
            return p.buffer;
    if (!shard && !m_plan.units.isOne())
        if (const auto copy = gatheredAhead(tensor, device, largest, type))
            return *copy;
    BufferInfo info{.tensor = tensor,
        .dataType = type,
        .index = largest,
        .perMicroBatch = false,
        .persistent = true,
        .memory = m_graph.at(tensor).role == TensorRole::Weight && m_types.isMaster(tensor, type)
            ? MemoryKind::OptimizerState
            : memoryOf(tensor)};
    if (shard)
        markShard(info, *shard);
    const std::int32_t buffer = m_builder.addBuffer(device, std::move(info));
    m_builder.emitSetup(device, {.kind = InstructionKind::Load, .outputs = {buffer}});
    m_persistent[index].push_back({device, largest, buffer, type});
    m_materializer.available(tensor, {device, largest, {}, buffer}, m_prologue);
    return buffer;
}

Result<std::vector<std::int32_t>> Lowering::inputBuffers(
    TensorId tensor, const std::vector<Need> &needs, DataType type, std::int32_t block, OperatorId op)
{
    if (isPersistent(tensor)) {
        for (const Need &need : needs)
            persistentBuffer(tensor, need.device, need.box, type);
        return m_materializer.ensure(tensor, needs, type, block, op);
    }
    if (!m_uses.producers[static_cast<std::size_t>(tensor.index)].empty())
        return m_materializer.ensure(tensor, needs, type, block, op);
    // Fed from the host: every block loads what it reads, so that nothing is held in between.
    std::vector<std::int32_t> buffers;
    const SegmentKind kind = m_builder.block(block).kind;
    for (const Need &need : needs) {
        auto &loaded = m_persistent[static_cast<std::size_t>(tensor.index)];
        const auto it = std::find_if(loaded.begin(), loaded.end(), [&](const Persistent &p) {
            return p.device == need.device && p.box == need.box && p.dataType == type;
        });
        if (it != loaded.end()) {
            buffers.push_back(it->buffer);
            continue;
        }
        BufferInfo info{.tensor = tensor, .dataType = type, .index = need.box, .memory = MemoryKind::Input};
        info.perMicroBatch = kind == SegmentKind::Forward || kind == SegmentKind::Backward;
        const std::int32_t buffer = m_builder.addBuffer(need.device, std::move(info));
        m_builder.emit(need.device, block, {.kind = InstructionKind::Load, .op = op, .outputs = {buffer}});
        loaded.push_back({need.device, need.box, buffer, type});
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
        if (!tensor || isLeftOut(id, false, slot))
            continue;
        needs.clear();
        needs.reserve(parts.size());
        bool divided = false;
        for (const TransformedPart &part : parts) {
            needs.push_back({part.device, part.inputs[slot].index, part.inputs[slot].value});
            divided = divided || !needs.back().value.complete();
        }
        const DataType type = m_types.read(id, slot);
        // What is sent as it was made can be divided as it was made.
        if (divided && type == m_types.accumulated(tensor)) {
            if (const auto found = m_materializer.ensureParts(tensor, needs, block, id)) {
                for (std::size_t p = 0; p < parts.size(); ++p)
                    inputs[p][slot] = (*found)[p];
                continue;
            }
        }
        for (Need &need : needs)
            need.value = {};
        TRY(const auto buffers, inputBuffers(tensor, needs, type, block, id));
        for (std::size_t p = 0; p < parts.size(); ++p) {
            inputs[p][slot] = buffers[p];
            const ValueMask value = parts[p].inputs[slot].value;
            if (value.complete())
                continue;
            BufferInfo info{
                .tensor = tensor, .dataType = type, .index = parts[p].inputs[slot].index, .valuePart = value};
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
        accumulator.buffer = m_builder.addBuffer(device,
            {.tensor = tensor,
                .dataType = m_types.accumulated(tensor),
                .index = box,
                .perMicroBatch = false,
                .memory = MemoryKind::Gradient,
                .share = m_plan.units.isOne() ? UnitShare::Same : UnitShare::Partial});
    m_builder.emit(device, block,
        {.kind = InstructionKind::Accumulate, .op = op, .inputs = {buffer}, .outputs = {accumulator.buffer}});
    const auto [complete, first] = m_complete.try_emplace(tensor, Completion{block, -1});
    if (!first && complete->second.block != block)
        complete->second.block = -1;
    complete->second.mark = -1; // not yet: the operator at hand makes it, and is not done
}

/// A copy of `buffer` in another type.
std::int32_t Lowering::castBuffer(
    DeviceId device, std::int32_t block, OperatorId op, std::int32_t buffer, DataType type)
{
    BufferInfo info = m_builder.buffer(device, buffer);
    info.dataType = type;
    info.persistent = false;
    info.memory = memoryOf(info.tensor);
    const std::int32_t copy = m_builder.addBuffer(device, std::move(info));
    m_builder.emit(
        device, block, {.kind = InstructionKind::Cast, .op = op, .inputs = {buffer}, .outputs = {copy}});
    return copy;
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
            // Plain attention has its probabilities in memory even where nobody reads them again.
            const bool kept = (view.tensor && isWanted(view.tensor))
                || static_cast<std::int32_t>(slot) == probabilitiesOutput(op) || noneWanted;
            if (!view.tensor || !kept || isLeftOut(id, true, slot)) {
                kernel.outputs.push_back(-1);
                continue;
            }
            BufferInfo info{.tensor = view.tensor,
                .dataType = m_types.made(id, slot),
                .index = view.index,
                .memory = memoryOf(view.tensor)};
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
            const DataType made = m_types.made(id, slot);
            const DataType kept = m_types.accumulated(view.tensor);
            std::int32_t buffer = outputs[slot];
            if (isWeightGradient(view.tensor)) { // adding widens by itself
                if (made != kept && sizeOf(made) >= sizeOf(kept))
                    buffer = castBuffer(part.device, block, id, buffer, kept);
                accumulate(view.tensor, part.device, block, id, view.index, summand, buffer);
                continue;
            }
            if (made != kept) // another operator makes summands of it in another type
                buffer = castBuffer(part.device, block, id, buffer, kept);
            m_materializer.made(
                view.tensor, block, {part.device, view.index, {summand}, buffer}, parts.size());
        }
    }
    return {};
}

/// The gradients that this operator adds to are complete behind it, unless another one adds to them too.
void Lowering::markCompletions(OperatorId id, std::int32_t block)
{
    std::int32_t mark = -1;
    for (const TensorId output : m_graph.at(id).outputs) {
        const auto complete = output ? m_complete.find(output) : m_complete.end();
        if (complete == m_complete.end())
            continue;
        if (mark < 0)
            mark = m_builder.mark(block);
        complete->second.mark = mark;
    }
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

/// How an optimizer operator is shared out over the units; nothing if all units do the same.
std::optional<Lowering::UnitShard> Lowering::unitShardOf(OperatorId id) const
{
    const Partition &partition = m_plan.decisions[static_cast<std::size_t>(id.index)].partition;
    if (unitParts(partition) == 1)
        return std::nullopt;
    const Operator &op = m_graph.at(id);
    const auto &terms = op.annotation.inputs.front().terms;
    for (std::size_t d = 0; d < terms.size(); ++d)
        if (splittableFactor(op.annotation, terms[d]) == partition.splits.back().dimension) {
            Partition whole = partition;
            whole.splits.pop_back();
            const TensorView view = inputView(m_graph, op, whole, 0, 0);
            return UnitShard{static_cast<std::int32_t>(d), view.index.ranges[d].size()};
        }
    return std::nullopt;
}

/// `box` of unit 0, made the box that all units have together.
IndexMask Lowering::joinedUnits(IndexMask box, const UnitShard &shard)
{
    // The units' split is the innermost: theirs lie side by side, unit 0's first.
    Range &range = box.ranges[static_cast<std::size_t>(shard.dimension)];
    range.end = range.begin + shard.extent;
    return box;
}

/// Says in `info`, a buffer of unit 0's share, that it is one.
void Lowering::markShard(BufferInfo &info, const UnitShard &shard)
{
    info.share = UnitShare::Shard;
    info.shardDimension = static_cast<std::int8_t>(shard.dimension);
    info.shardEnd = info.index.ranges[static_cast<std::size_t>(shard.dimension)].begin + shard.extent;
}

/// Buffers by part and slot of what an optimizer operator reads: weight, gradient over all micro-batches of
/// all units, states.
Result<std::vector<BufferList>> Lowering::optimizerInputs(OperatorId id, std::int32_t block)
{
    const Operator &op = m_graph.at(id);
    const auto &parts = m_transformed.operators[static_cast<std::size_t>(id.index)];
    const auto shard = unitShardOf(id);
    std::vector<BufferList> inputs(parts.size());
    for (BufferList &list : inputs)
        list.resize(op.inputs.size(), -1);
    for (std::size_t slot = 0; slot < op.inputs.size(); ++slot) {
        const TensorId tensor = op.inputs[slot];
        if (!tensor)
            continue;
        const DataType type = m_types.read(id, slot);
        const bool gradient = isWeightGradient(tensor);
        // Every unit keeps its own share of states, and of weights that nobody else reads so.
        if (shard && !gradient && (slot > 0 || m_types.isMaster(tensor, type))) {
            for (std::size_t p = 0; p < parts.size(); ++p)
                inputs[p][slot] =
                    persistentBuffer(tensor, parts[p].device, parts[p].inputs[slot].index, type, &*shard);
            continue;
        }
        std::vector<Need> needs;
        needs.reserve(parts.size());
        for (const TransformedPart &part : parts)
            needs.push_back({part.device,
                shard ? joinedUnits(part.inputs[slot].index, *shard) : part.inputs[slot].index});
        const std::int32_t where =
            gradient ? m_buckets[static_cast<std::size_t>(m_bucketOf.at(tensor))].block : block;
        const bool acrossUnits = gradient && !m_plan.units.isOne();
        TRY(const auto buffers,
            inputBuffers(tensor, needs, acrossUnits ? m_types.reduced(tensor) : type, where, id));
        for (std::size_t p = 0; p < parts.size(); ++p) {
            inputs[p][slot] = buffers[p];
            if (!acrossUnits && !shard)
                continue;
            BufferInfo info = m_builder.buffer(parts[p].device, buffers[p]);
            info.index = parts[p].inputs[slot].index;
            info.persistent = false;
            info.memory = memoryOf(tensor);
            info.share = UnitShare::Same;
            if (shard)
                markShard(info, *shard);
            inputs[p][slot] = m_builder.addBuffer(parts[p].device, std::move(info));
            Instruction instruction{
                .op = id, .acrossUnits = acrossUnits, .inputs = {buffers[p]}, .outputs = {inputs[p][slot]}};
            instruction.kind = !acrossUnits ? InstructionKind::Select
                : !shard                    ? InstructionKind::AllReduce
                                            : InstructionKind::ReduceScatter;
            instruction.dimension = acrossUnits && shard ? shard->dimension : -1;
            m_builder.emit(parts[p].device, where, std::move(instruction));
            if (acrossUnits && m_types.reduced(tensor) != type)
                inputs[p][slot] = castBuffer(parts[p].device, where, id, inputs[p][slot], type);
        }
    }
    return inputs;
}

/// Brings the units' shares of a new weight together on every one of them, in each of the types that somebody
/// keeps it in.
void Lowering::gatherAcrossUnits(
    OperatorId id, std::int32_t block, const Holding &own, const UnitShard &shard)
{
    const TensorId tensor = m_graph.at(id).outputs[0];
    const TensorId old = m_graph.at(id).inputs[0];
    std::set<DataType> types;
    for (const Persistent &p : m_persistent[static_cast<std::size_t>(old.index)])
        if (m_builder.buffer(p.device, p.buffer).share != UnitShare::Shard)
            types.insert(p.dataType);
    for (const DataType type : types) {
        std::int32_t sent = own.buffer;
        if (BufferInfo info = m_builder.buffer(own.device, sent); info.dataType != type) {
            info.tensor = tensor;
            info.persistent = false;
            info.memory = memoryOf(tensor);
            info.dataType = type;
            sent = m_builder.addBuffer(own.device, std::move(info));
            m_builder.emit(own.device, block,
                {.kind = InstructionKind::Cast, .op = id, .inputs = {own.buffer}, .outputs = {sent}});
        }
        Holding whole{own.device, joinedUnits(own.box, shard), {}, -1};
        whole.buffer = m_builder.addBuffer(own.device,
            {.tensor = tensor,
                .dataType = type,
                .index = whole.box,
                .perMicroBatch = false,
                .memory = memoryOf(tensor)});
        m_builder.emit(own.device, block,
            {.kind = InstructionKind::AllGather,
                .op = id,
                .acrossUnits = true,
                .dimension = shard.dimension,
                .inputs = {sent},
                .outputs = {whole.buffer}});
        if (type == m_types.accumulated(tensor))
            m_materializer.made(tensor, block, std::move(whole));
        else
            m_materializer.available(tensor, std::move(whole), block);
    }
}

Result<void> Lowering::emitOptimizer(OperatorId id)
{
    const Operator &op = m_graph.at(id);
    const auto &parts = m_transformed.operators[static_cast<std::size_t>(id.index)];
    const std::int32_t block = optimizerBlockOf(op);
    for (std::size_t a = 0; a < parts.size(); ++a)
        for (std::size_t b = a + 1; b < parts.size(); ++b)
            if (parts[a].device == parts[b].device && parts[a].inputs[0].index == parts[b].inputs[0].index)
                return Error{ErrorCode::InvalidInput,
                    "operator '" + op.name + "' would update the same weight twice on device "
                        + std::to_string(parts[a].device.index),
                    "place its replicas on different devices", "operator:" + op.name};

    TRY(const auto inputs, optimizerInputs(id, block));
    const auto shard = unitShardOf(id);
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
            else {
                BufferInfo info{.tensor = op.outputs[slot],
                    .dataType = m_types.made(id, slot),
                    .index = part.outputs[slot].index,
                    .perMicroBatch = false,
                    .memory = memoryOf(op.outputs[slot])};
                if (shard)
                    markShard(info, *shard);
                buffer = m_builder.addBuffer(part.device, std::move(info));
            }
            kernel.outputs.push_back(buffer);
        }
        const BufferList outputs = kernel.outputs;
        m_builder.emit(part.device, block, std::move(kernel));
        for (std::size_t slot = 0; slot < op.outputs.size(); ++slot) {
            if (outputs[slot] < 0)
                continue;
            Holding made{part.device, part.outputs[slot].index, {}, outputs[slot]};
            if (!shard)
                m_materializer.made(op.outputs[slot], block, std::move(made), parts.size());
            else if (slot == 0) // each unit keeps its own share of the states, in place
                gatherAcrossUnits(id, block, made, *shard);
        }
    }
    // Everywhere the old value is held, the new one must arrive.
    for (std::size_t slot = 0; slot < op.outputs.size(); ++slot) {
        if (!op.outputs[slot] || (shard && slot > 0))
            continue;
        const TensorId old = op.inputs[slot == 0 ? 0 : slot + 1];
        std::vector<Persistent> held = m_persistent[static_cast<std::size_t>(old.index)];
        std::erase_if(held, [&](const Persistent &p) { return inPlace.count({p.device, p.buffer}) > 0; });
        std::map<DataType, std::vector<Persistent>> byType;
        for (Persistent &p : held)
            byType[p.dataType].push_back(std::move(p));
        for (const auto &[type, holders] : byType) {
            std::vector<Need> needs;
            for (const Persistent &p : holders)
                needs.push_back({p.device, p.box});
            TRY(const auto buffers, m_materializer.ensure(op.outputs[slot], needs, type, block, id));
            for (std::size_t i = 0; i < holders.size(); ++i)
                if (buffers[i] != holders[i].buffer)
                    m_builder.emit(holders[i].device, block,
                        {.kind = InstructionKind::Update,
                            .op = id,
                            .inputs = {buffers[i]},
                            .outputs = {holders[i].buffer}});
        }
    }
    return {};
}

Result<void> Lowering::storeOutput(TensorId tensor)
{
    const auto makers = m_materializer.makersOf(tensor);
    const auto store = [&](const std::vector<Need> &needs, std::int32_t block) -> Result<void> {
        const auto &producers = m_uses.producers[static_cast<std::size_t>(tensor.index)];
        const OperatorId op = producers.empty() ? OperatorId{} : producers.front();
        TRY(const auto buffers, inputBuffers(tensor, needs, m_types.accumulated(tensor), block, op));
        for (std::size_t i = 0; i < needs.size(); ++i)
            m_builder.emit(
                needs[i].device, block, {.kind = InstructionKind::Store, .op = op, .inputs = {buffers[i]}});
        return {};
    };
    IndexMask whole = wholeMask(m_graph.at(tensor).type.shape);
    const auto index = static_cast<std::size_t>(tensor.index);
    if (m_transformed.batch.tensorRole[index] == BatchRole::Split)
        whole.ranges[static_cast<std::size_t>(m_transformed.batch.tensorDimension[index])].end /=
            batchCuts(m_plan);
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

/// Seconds that the replicas take to add `bytes` of this gradient up: what decides when a bucket is full.
double Lowering::gradientSeconds(TensorId tensor, Bytes bytes) const
{
    const auto &accumulators = m_accumulators[static_cast<std::size_t>(tensor.index)];
    if (!m_plan.units.isOne())
        return m_costs.collective(
            CollectiveKind::AllReduce, bytes, shapeAcrossUnits(m_cluster, accumulators.front().device));
    std::vector<DeviceId> group; // those that hold other summands of the same box
    for (const Accumulator &accumulator : accumulators)
        if (accumulator.box == accumulators.front().box
            && (group.empty() || accumulator.summands != accumulators.front().summands))
            group.push_back(accumulator.device);
    return group.size() < 2
        ? 0
        : m_costs.collective(CollectiveKind::AllReduce, bytes, groupShape(m_cluster, group));
}

/// Sorts gradients into buckets, in the order in which the backward pass completes them. As every framework
/// does (PyTorch DDP, arXiv:2006.15704, section 3.2.3), a bucket is closed once it is large enough to use the
/// links well: here, once its latency is below a tenth of its time.
void Lowering::fillBuckets()
{
    std::vector<TensorId> inOrder;
    for (const auto &[tensor, complete] : m_complete)
        inOrder.push_back(tensor);
    std::stable_sort(inOrder.begin(), inOrder.end(), [this](TensorId a, TensorId b) {
        const Completion &x = m_complete.at(a);
        const Completion &y = m_complete.at(b);
        return std::pair(x.block < 0, std::pair(x.block, x.mark))
            < std::pair(y.block < 0, std::pair(y.block, y.mark));
    });
    constexpr double kLatencyShare = 0.1;
    Bytes filled{};
    bool open = false;
    for (const TensorId tensor : inOrder) {
        const Completion &complete = m_complete.at(tensor);
        if (!open || m_buckets.back().after.block != complete.block) {
            const StageId stage =
                complete.block < 0 ? StageId{m_plan.stageCount - 1} : m_builder.block(complete.block).stage;
            m_buckets.push_back({m_builder.addBlock(
                SegmentKind::Reduce, stage, 1e6 + static_cast<double>(m_buckets.size()))});
            filled = {};
        }
        m_buckets.back().after = complete;
        m_bucketOf[tensor] = static_cast<std::int32_t>(m_buckets.size()) - 1;
        const Accumulator &accumulator = m_accumulators[static_cast<std::size_t>(tensor.index)].front();
        filled += sizeOf(m_builder.buffer(accumulator.device, accumulator.buffer));
        const double latency = gradientSeconds(tensor, {});
        open = complete.block < 0 || latency >= kLatencyShare * gradientSeconds(tensor, filled);
    }
}

/// Hands what was added up to the reductions of the step.
void Lowering::reduceAccumulators()
{
    for (std::size_t index = 0; index < m_accumulators.size(); ++index) {
        auto &accumulators = m_accumulators[index];
        std::sort(accumulators.begin(), accumulators.end(), [](const Accumulator &a, const Accumulator &b) {
            return std::tie(a.device, a.box, a.summand) < std::tie(b.device, b.box, b.summand);
        });
        const TensorId tensor{static_cast<std::int32_t>(index)};
        for (const auto &[device, box, alone, buffer, summands] : accumulators) {
            const bool all = static_cast<std::int32_t>(summands.size()) == m_transformed.summandCount[index];
            m_builder.setSummands(device, buffer, all ? SummandSet{} : summands);
            m_materializer.made(tensor, m_buckets[static_cast<std::size_t>(m_bucketOf.at(tensor))].block,
                {device, box, summands, buffer});
        }
    }
}

/// Weights that one stage alone trains are updated by it; the others when all is done.
std::int32_t Lowering::optimizerBlockOf(const Operator &op) const
{
    std::int32_t stage = -1;
    for (const TensorId input : op.inputs) {
        const auto complete = input ? m_complete.find(input) : m_complete.end();
        if (complete == m_complete.end())
            continue;
        const std::int32_t its = complete->second.block < 0
            ? m_plan.stageCount
            : m_builder.block(complete->second.block).stage.index;
        stage = stage < 0 || stage == its ? its : m_plan.stageCount;
    }
    return m_optimizer[static_cast<std::size_t>(stage < 0 ? m_plan.stageCount : stage)];
}

/// Cuts the last run of every backward block where its buckets are complete, and lets them be reduced there;
/// what runs when all is done comes last.
void Lowering::sliceForReductions(std::vector<BlockRun> &order) const
{
    std::map<std::int32_t, std::vector<const Bucket *>> inside; // by block
    for (const Bucket &bucket : m_buckets)
        if (bucket.after.block >= 0 && !m_builder.block(bucket.block).devices.empty())
            inside[bucket.after.block].push_back(&bucket);
    std::map<std::int32_t, std::size_t> last; // by block: its last run
    for (std::size_t i = 0; i < order.size(); ++i)
        last[order[i].block] = i;
    std::vector<BlockRun> sliced;
    for (std::size_t i = 0; i < order.size(); ++i) {
        const auto buckets = inside.find(order[i].block);
        if (buckets == inside.end() || last.at(order[i].block) != i) {
            sliced.push_back(order[i]);
            continue;
        }
        BlockRun rest = order[i];
        for (const Bucket *bucket : buckets->second) {
            sliced.push_back({rest.block, rest.microBatch, rest.from, bucket->after.mark});
            sliced.push_back({bucket->block, 0});
            rest.from = bucket->after.mark;
        }
        sliced.push_back(rest);
    }
    for (const Bucket &bucket : m_buckets)
        if (bucket.after.block < 0)
            sliced.push_back({bucket.block, 0});
    // Stages update in the order in which their backward passes end.
    std::vector<std::pair<std::size_t, std::int32_t>> updates;
    for (std::size_t s = 0; s < m_backward.size(); ++s) {
        const auto end = last.find(m_backward[s]);
        updates.emplace_back(end == last.end() ? 0 : end->second, m_optimizer[s]);
    }
    std::sort(updates.begin(), updates.end());
    for (const auto &[end, block] : updates)
        sliced.push_back({block, 0});
    sliced.push_back({m_optimizer.back(), 0});
    std::erase_if(sliced, [this](const BlockRun &run) { return m_builder.block(run.block).devices.empty(); });
    order = std::move(sliced);
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
            markCompletions(id, block);
        }
        return {};
    };
    TRY_VOID(emitBlock(m_prologue));
    for (const std::int32_t block : m_forward)
        TRY_VOID(emitBlock(block));
    TRY_VOID(storeOutputs());
    for (std::size_t s = m_backward.size(); s-- > 0;)
        TRY_VOID(emitBlock(m_backward[s]));
    fillBuckets();
    reduceAccumulators();
    for (const OperatorId id : m_sequence[static_cast<std::size_t>(m_optimizer.back())]) {
        if (m_stop.stop_requested())
            return cancelled("lowering was stopped");
        TRY_VOID(emitOptimizer(id));
    }

    for (const auto &[earlier, later] : m_builder.sharedBufferDependencies())
        m_dependencies.push_back({earlier, later, 0, RowId{}});
    for (std::size_t b = 0; b < m_builder.blocks().size(); ++b)
        if (const BlockInfo &block = m_builder.blocks()[b]; block.kind == SegmentKind::Transfer)
            m_dependencies.push_back({block.source, block.target, 0, RowId{}});
    m_builder.join(m_graph, m_plan.overlap);
    TRY(auto order,
        orderBlocks(m_builder.blocks(), m_dependencies, m_plan.microBatches, m_plan.stageCount,
            m_plan.schedule, m_plan.inFlight));
    sliceForReductions(order);

    ExecutionPlan result;
    result.graph = m_plan.graph;
    result.units = m_plan.units;
    result.microBatches = m_plan.microBatches;
    result.precisions = m_precisions;
    result.stageCount = m_plan.stageCount;
    result.partitions.reserve(m_plan.decisions.size());
    result.placement.reserve(m_plan.decisions.size());
    result.attention.reserve(m_plan.decisions.size());
    for (const OperatorDecision &decision : m_plan.decisions) {
        result.partitions.push_back(decision.partition);
        result.placement.push_back(decision.devices);
        result.attention.push_back(decision.attention);
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
    if (std::int64_t{plan.deviceCount} * plan.units.count > cluster.deviceCount)
        return Error{ErrorCode::InvalidInput,
            "the plan uses " + counted(std::int64_t{plan.deviceCount} * plan.units.count, "device")
                + ", the cluster has " + std::to_string(cluster.deviceCount),
            "choose a larger cluster", "cluster"};
    TRY_VOID(validate(plan));
    TRY(auto transformed, transform(plan));
    auto lowering = std::make_shared<Lowering>(plan, cluster, costs, std::move(transformed), std::move(stop));
    auto lowered = lowering->run();
    disposeInBackground([lowering = std::move(lowering)] {}); // millions of small parts
    return lowered;
}

} // namespace planloom
