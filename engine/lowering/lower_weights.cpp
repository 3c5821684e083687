#include "engine/base/in_parallel.h"
#include "engine/lowering/lowering.h"

#include <algorithm>

namespace planloom {

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

void Lowering::collectPersistentBoxes()
{
    for (std::size_t o = 0; o < m_graph.operators.size(); ++o) {
        const auto &inputs = m_graph.operators[o].inputs;
        const auto &parts = m_transformed.operators[o];
        for (std::size_t slot = 0; slot < inputs.size(); ++slot) {
            if (!inputs[slot] || !isPersistent(inputs[slot]))
                continue;
            const auto [weight, staleness] = versionOf(inputs[slot]);
            auto &boxes = m_persistentBoxes[static_cast<std::size_t>(weight.index)];
            const DataType type = m_types.read(OperatorId{static_cast<std::int32_t>(o)}, slot);
            for (const TransformedPart &part : parts)
                boxes.push_back({part.device, part.inputs[slot].index, -1, type, staleness});
        }
    }
    // By device, in which the first of equals stays: they are looked up by it.
    const auto sortByDevice = [](std::vector<Persistent> &boxes) {
        std::stable_sort(boxes.begin(), boxes.end(),
            [](const Persistent &a, const Persistent &b) { return a.device < b.device; });
        std::vector<Persistent> distinct;
        std::size_t own = 0; // where the device's begin
        for (const Persistent &p : boxes) {
            if (!distinct.empty() && distinct.back().device != p.device)
                own = distinct.size();
            if (std::none_of(distinct.begin() + static_cast<std::ptrdiff_t>(own), distinct.end(),
                    [&](const Persistent &other) {
                        return other.box == p.box && other.dataType == p.dataType
                            && other.staleness == p.staleness;
                    }))
                distinct.push_back(p);
        }
        boxes = std::move(distinct);
    };
    constexpr std::size_t kFewTensors = 256; // not worth another thread
    inParallel(m_persistentBoxes.size(), kFewTensors, [&](std::size_t begin, std::size_t end) {
        for (std::size_t tensor = begin; tensor < end; ++tensor)
            sortByDevice(m_persistentBoxes[tensor]);
    });
}

StorageTypes Lowering::typesOf(const VersionedPlan &versioned, const std::vector<Precision> &precisions)
{
    if (versioned.versions.empty())
        return StorageTypes(*versioned.plan.graph, precisions);
    // Who reads a version reads the weight: the types follow from all of its readers together.
    Graph graph = *versioned.plan.graph;
    const std::size_t tensors = graph.tensors.size() - versioned.versions.size();
    for (Operator &op : graph.operators)
        for (TensorId &input : op.inputs)
            if (input && static_cast<std::size_t>(input.index) >= tensors)
                input = versioned.versions[static_cast<std::size_t>(input.index) - tensors].weight;
    graph.tensors.resize(tensors);
    StorageTypes types(graph, precisions);
    for (const WeightVersion &version : versioned.versions)
        types.addVersion(version.weight);
    return types;
}

WeightVersion Lowering::versionOf(TensorId tensor) const
{
    const auto index = static_cast<std::size_t>(tensor.index);
    return index < firstVersion() ? WeightVersion{tensor, 0} : m_versions[index - firstVersion()];
}

/// How many versions of a weight `device` needs, of one type or any: up to the oldest that it reads.
std::int32_t Lowering::versionsOn(TensorId weight, DeviceId device, std::optional<DataType> type) const
{
    std::int32_t versions = 1;
    for (const Persistent &box : m_persistentBoxes[static_cast<std::size_t>(weight.index)])
        if (box.device == device && (!type || box.dataType == *type))
            versions = std::max(versions, box.staleness + 1);
    return versions;
}

/// Adds the persistent buffers of all versions of what `info` says of the newest. Each is loaded with the
/// weight as it is at first.
/// @param readInPlace  operators may read them, or cut what they read from them
/// @return that of the newest; the others follow
std::int32_t Lowering::addVersions(BufferInfo info, DeviceId device, std::int32_t versions, bool readInPlace)
{
    std::int32_t first = -1;
    info.versions = static_cast<std::int16_t>(versions);
    for (std::int32_t staleness = 0; staleness < versions; ++staleness) {
        info.staleness = static_cast<std::int16_t>(staleness);
        const std::int32_t buffer = m_builder.addBuffer(device, info);
        m_builder.emitSetup(device, {.kind = InstructionKind::Load, .outputs = {buffer}});
        first = first < 0 ? buffer : first;
        const auto tensor = m_versionTensors.find({info.tensor, staleness});
        if (readInPlace && (staleness == 0 || tensor != m_versionTensors.end()))
            m_materializer.available(
                staleness == 0 ? info.tensor : tensor->second, {device, info.index, {}, buffer}, m_prologue);
    }
    return first;
}

/// The buffer that an update of `buffer`, the newest version, writes: over the oldest.
std::int32_t Lowering::oldestVersion(DeviceId device, std::int32_t buffer) const
{
    return buffer + m_builder.buffer(device, buffer).versions - 1;
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
    const TensorId weight = versionOf(tensor).weight;
    for (const OperatorId user : m_uses.consumers[static_cast<std::size_t>(weight.index)]) {
        const Operator &op = m_graph.at(user);
        if (op.direction != Direction::Optimizer || op.inputs.front() != weight)
            continue;
        const auto shard = unitShardOf(user);
        const DataType master = m_types.read(user, 0);
        // A copy wider than the master is no working copy: who reads it keeps it.
        if (!shard || sizeOf(type) >= sizeOf(master) || !m_types.isMaster(tensor, master))
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

/// The largest box that any operator of a device reads, of any version: it serves all that lie inside it.
IndexMask Lowering::largestBox(TensorId tensor, DeviceId device, const IndexMask &box, DataType type) const
{
    IndexMask largest = box;
    const auto &boxes = m_persistentBoxes[static_cast<std::size_t>(versionOf(tensor).weight.index)];
    for (auto p = std::lower_bound(boxes.begin(), boxes.end(), device,
             [](const Persistent &a, DeviceId b) { return a.device < b; });
         p != boxes.end() && p->device == device; ++p)
        if (p->dataType == type && contains(p->box, largest))
            largest = p->box;
    return largest;
}

/// @param shard  where every unit has a box of its own; null if all have the same
std::int32_t Lowering::persistentBuffer(
    TensorId tensor, DeviceId device, const IndexMask &box, DataType type, const UnitShard *shard)
{
    const auto [weight, staleness] = versionOf(tensor);
    const auto index = static_cast<std::size_t>(weight.index);
    const IndexMask largest = largestBox(weight, device, box, type);
    for (const Persistent &p : m_persistent[index])
        if (p.device == device && p.dataType == type && contains(p.box, largest))
            return p.buffer + staleness;
    if (!shard && !m_plan.units.isOne() && m_plan.updates == 1) // else it is another one behind each update
        if (const auto copy = gatheredAhead(tensor, device, largest, type))
            return *copy;
    const bool isMaster = m_graph.at(weight).role == TensorRole::Weight && m_types.isMaster(weight, type);
    BufferInfo info{.tensor = weight,
        .dataType = type,
        .index = largest,
        .perMicroBatch = false,
        .persistent = true,
        .memory = isMaster ? MemoryKind::OptimizerState : memoryOf(weight)};
    if (shard)
        markShard(info, *shard);
    // Of shards of a master, all that is read is gathered.
    const std::int32_t versions =
        versionsOn(weight, device, shard && isMaster ? std::optional<DataType>{} : type);
    const std::int32_t buffer = addVersions(std::move(info), device, versions, true);
    m_persistent[index].push_back({device, largest, buffer, type});
    return buffer + staleness;
}

Result<std::vector<std::int32_t>> Lowering::inputBuffers(
    TensorId tensor, const std::vector<Need> &needs, DataType type, std::int32_t block, OperatorId op)
{
    if (isPersistent(tensor)) {
        if (const ShardedWeight *sharded = shardedWeight(tensor, 3)) {
            gatherWeight(*sharded, tensor, needs, type, block, op);
            return m_materializer.ensure(tensor, needs, type, block, op);
        }
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
        info.perMicroBatch = isPass(kind);
        const std::int32_t buffer = m_builder.addBuffer(need.device, std::move(info));
        m_builder.emit(need.device, block, {.kind = InstructionKind::Load, .op = op, .outputs = {buffer}});
        loaded.push_back({need.device, need.box, buffer, type});
        buffers.push_back(buffer);
    }
    return buffers;
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
            info.staleness = 0;
            info.versions = 1;
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

} // namespace planloom
