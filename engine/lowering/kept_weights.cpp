#include "engine/lowering/kept_weights.h"

#include "engine/base/in_parallel.h"

#include <algorithm>

namespace planloom {

KeptWeights::KeptWeights(LoweringWork &work, const LoweredBlocks &blocks)
    : m_work(work)
    , m_blocks(blocks)
    , m_held(work.graph.tensors.size())
    , m_gathered(work.graph.tensors.size())
    , m_boxes(work.graph.tensors.size())
{
    for (std::size_t v = 0; v < work.versions.size(); ++v)
        m_versionTensors.emplace(work.versions[v], static_cast<std::int32_t>(work.firstVersion() + v));
    collectBoxes();
}

void KeptWeights::collectBoxes()
{
    for (std::size_t o = 0; o < m_work.graph.operators.size(); ++o) {
        const auto &inputs = m_work.graph.operators[o].inputs;
        const auto &parts = m_work.transformed.operators[o];
        for (std::size_t slot = 0; slot < inputs.size(); ++slot) {
            if (!inputs[slot] || !m_work.isPersistent(inputs[slot]))
                continue;
            const auto [weight, staleness] = m_work.versionOf(inputs[slot]);
            auto &boxes = m_boxes[at(weight)];
            const DataType type = m_work.types.read(OperatorId{static_cast<std::int32_t>(o)}, slot);
            for (const TransformedPart &part : parts)
                boxes.push_back({part.device, part.inputs[slot].index, -1, type, staleness});
        }
    }
    // By device, in which the first of equals stays: they are looked up by it.
    const auto sortByDevice = [](std::vector<KeptBox> &boxes) {
        std::stable_sort(boxes.begin(), boxes.end(),
            [](const KeptBox &a, const KeptBox &b) { return a.device < b.device; });
        std::vector<KeptBox> distinct;
        std::size_t own = 0; // where the device's begin
        for (const KeptBox &p : boxes) {
            if (!distinct.empty() && distinct.back().device != p.device)
                own = distinct.size();
            if (std::none_of(distinct.begin() + static_cast<std::ptrdiff_t>(own), distinct.end(),
                    [&](const KeptBox &other) {
                        return other.box == p.box && other.dataType == p.dataType
                            && other.staleness == p.staleness;
                    }))
                distinct.push_back(p);
        }
        boxes = std::move(distinct);
    };
    constexpr std::size_t kFewTensors = 256; // not worth another thread
    inParallel(m_boxes.size(), kFewTensors, [&](std::size_t begin, std::size_t end) {
        for (std::size_t tensor = begin; tensor < end; ++tensor)
            sortByDevice(m_boxes[tensor]);
    });
}

/// How many versions of a weight `device` needs, of one type or any: up to the oldest that it reads.
std::int32_t KeptWeights::versionsOn(TensorId weight, DeviceId device, std::optional<DataType> type) const
{
    std::int32_t versions = 1;
    for (const KeptBox &box : m_boxes[at(weight)])
        if (box.device == device && (!type || box.dataType == *type))
            versions = std::max(versions, box.staleness + 1);
    return versions;
}

/// Adds the persistent buffers of all versions of what `info` says of the newest. Each is loaded with the
/// weight as it is at first.
/// @param readInPlace  operators may read them, or cut what they read from them
/// @return that of the newest; the others follow
std::int32_t KeptWeights::addVersions(
    BufferInfo info, DeviceId device, std::int32_t versions, bool readInPlace)
{
    std::int32_t first = -1;
    info.versions = static_cast<std::int16_t>(versions);
    for (std::int32_t staleness = 0; staleness < versions; ++staleness) {
        info.staleness = static_cast<std::int16_t>(staleness);
        const std::int32_t buffer = m_work.builder.addBuffer(device, info);
        m_work.builder.emitSetup(device, {.kind = InstructionKind::Load, .outputs = {buffer}});
        first = first < 0 ? buffer : first;
        const auto tensor = m_versionTensors.find({info.tensor, staleness});
        if (readInPlace && (staleness == 0 || tensor != m_versionTensors.end()))
            m_work.materializer.available(staleness == 0 ? info.tensor : tensor->second,
                {device, info.index, {}, buffer}, m_blocks.prologue());
    }
    return first;
}

std::int32_t KeptWeights::oldestVersion(DeviceId device, std::int32_t buffer) const
{
    return buffer + m_work.builder.buffer(device, buffer).versions - 1;
}

/// A working copy of a weight whose master the units share out, gathered at the begin of the step: ahead of
/// its use, beside what is computed first, in the order in which the forward pass asks. Nothing is sent
/// behind the update then.
/// @return nothing where the device has no part in it
std::optional<std::int32_t> KeptWeights::gatheredAhead(
    TensorId tensor, DeviceId device, const IndexMask &box, DataType type)
{
    const auto known = [&]() -> std::optional<std::int32_t> {
        for (const KeptBox &copy : m_gathered[at(tensor)])
            if (copy.device == device && copy.dataType == type && contains(copy.box, box))
                return copy.buffer;
        return std::nullopt;
    };
    if (const auto copy = known())
        return copy;
    const TensorId weight = m_work.versionOf(tensor).weight;
    for (const OperatorId user : m_work.uses.consumers[at(weight)]) {
        const Operator &op = m_work.graph.at(user);
        if (op.direction != Direction::Optimizer || op.inputs.front() != weight)
            continue;
        const auto shard = m_work.unitShardOf(user);
        const DataType master = m_work.types.read(user, 0);
        // A copy wider than the master is no working copy: who reads it keeps it.
        if (!shard || sizeOf(type) >= sizeOf(master) || !m_work.types.isMaster(tensor, master))
            continue;
        const auto pieceOf = [&](const TransformedPart &part) {
            const IndexMask &own = part.inputs.front().index;
            const std::int32_t kept = buffer(tensor, part.device, own, master, &*shard);
            const std::int32_t sent = m_work.castBuffer(part.device, m_blocks.prologue(), user, kept, type);
            return m_work.gatherAcrossUnits(
                tensor, type, *shard, {part.device, own, {}, sent}, m_blocks.prologue(), user);
        };
        const auto &parts = m_work.partsOf(user);
        const auto alone = std::find_if(parts.begin(), parts.end(), [&](const TransformedPart &part) {
            return part.device == device && contains(shard->joined(part.inputs.front().index), box);
        });
        std::vector<Holding> copies;
        if (alone != parts.end()) {
            copies.push_back(pieceOf(*alone));
            m_work.materializer.available(tensor, copies.front(), m_blocks.prologue());
        } else if (std::any_of(parts.begin(), parts.end(),
                       [&](const TransformedPart &part) { return part.device == device; })) {
            // First the units' shares come together, then those of the devices that share what a unit reads.
            std::vector<Holding> pieces;
            for (const TransformedPart &part : parts)
                pieces.push_back(pieceOf(part));
            const BesideCompute queue(m_work.builder, false);
            copies = m_work.materializer.bring(
                tensor, std::move(pieces), readBy(parts, weight, type), type, m_blocks.prologue(), user);
        }
        for (const Holding &copy : copies)
            m_gathered[at(tensor)].push_back({copy.device, copy.box, copy.buffer, type});
        if (const auto copy = known())
            return copy;
    }
    return std::nullopt;
}

/// What the devices of these parts read of a weight in a type.
std::vector<Need> KeptWeights::readBy(
    const std::vector<TransformedPart> &parts, TensorId weight, DataType type) const
{
    std::vector<Need> needs;
    for (const TransformedPart &part : parts)
        for (const KeptBox &read : m_boxes[at(weight)]) {
            if (read.device != part.device || read.dataType != type)
                continue;
            Need need{part.device, largestBox(weight, part.device, read.box, type), {}};
            if (std::find(needs.begin(), needs.end(), need) == needs.end())
                needs.push_back(std::move(need));
        }
    return needs;
}

IndexMask KeptWeights::largestBox(TensorId tensor, DeviceId device, const IndexMask &box, DataType type) const
{
    IndexMask largest = box;
    const auto &boxes = m_boxes[static_cast<std::size_t>(m_work.versionOf(tensor).weight.index)];
    for (auto p = std::lower_bound(
             boxes.begin(), boxes.end(), device, [](const KeptBox &a, DeviceId b) { return a.device < b; });
         p != boxes.end() && p->device == device; ++p)
        if (p->dataType == type && contains(p->box, largest))
            largest = p->box;
    return largest;
}

std::int32_t KeptWeights::buffer(
    TensorId tensor, DeviceId device, const IndexMask &box, DataType type, const UnitShard *shard)
{
    const auto [weight, staleness] = m_work.versionOf(tensor);
    const auto index = at(weight);
    const IndexMask largest = largestBox(weight, device, box, type);
    for (const KeptBox &p : m_held[index])
        if (p.device == device && p.dataType == type && contains(p.box, largest))
            return p.buffer + staleness;
    if (!shard && !m_work.plan.units.isOne()
        && m_work.plan.updates == 1) // else it is another one behind each update
        if (const auto copy = gatheredAhead(tensor, device, largest, type))
            return *copy;
    const bool isMaster =
        m_work.graph.at(weight).role == TensorRole::Weight && m_work.types.isMaster(weight, type);
    BufferInfo info{.tensor = weight,
        .dataType = type,
        .index = largest,
        .perMicroBatch = false,
        .persistent = true,
        .memory = isMaster ? MemoryKind::OptimizerState : m_work.memoryOf(weight)};
    if (shard)
        shard->mark(info);
    // Of shards of a master, all that is read is gathered.
    const std::int32_t versions =
        versionsOn(weight, device, shard && isMaster ? std::optional<DataType>{} : type);
    const std::int32_t buffer = addVersions(std::move(info), device, versions, true);
    m_held[index].push_back({device, largest, buffer, type});
    return buffer + staleness;
}

std::int32_t KeptWeights::shardBuffer(
    const ShardedWeight &sharded, TensorId weight, DeviceId device, const IndexMask &box, DataType type)
{
    const auto [newest, staleness] = m_work.versionOf(weight);
    auto &held = m_held[at(newest)];
    for (const KeptBox &p : held)
        if (p.device == device && p.dataType == type && p.box == box)
            return p.buffer + staleness;
    const bool isMaster = m_work.types.isMaster(newest, type);
    BufferInfo info{.tensor = newest,
        .dataType = type,
        .index = box,
        .perMicroBatch = false,
        .persistent = true,
        .memory = isMaster ? MemoryKind::OptimizerState : m_work.memoryOf(newest)};
    if (sharded.shard)
        sharded.shard->mark(info);
    std::int32_t versions = 1; // whoever reads the weight has a piece of it from here
    for (const auto &[reader, boxes] : sharded.places)
        versions = std::max(versions, versionsOn(newest, reader, type));
    const std::int32_t buffer = addVersions(std::move(info), device, versions, !sharded.shard);
    held.push_back({device, box, buffer, type});
    return buffer + staleness;
}

} // namespace planloom
