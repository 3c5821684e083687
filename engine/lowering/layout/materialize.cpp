#include "engine/lowering/layout/materialize.h"

#include "engine/lowering/layout/box_algebra.h"
#include "engine/lowering/layout/shared_summands.h"

#include <algorithm>
#include <cassert>
#include <unordered_map>
#include <utility>

namespace planloom {

Materializer::Materializer(const Graph &graph, const BatchInfo &batch, const SummandSets &summands,
    const StorageTypes &types, const Cluster &cluster, const CostModel &costs, ScaleUnits units,
    std::int32_t batchCuts, std::shared_ptr<PathMemory> paths, ProgramBuilder &builder)
    : m_graph(graph)
    , m_batch(batch)
    , m_summands(summands)
    , m_types(types)
    , m_cluster(cluster)
    , m_costs(costs)
    , m_units(units)
    , m_batchCuts(batchCuts)
    , m_builder(builder)
    , m_combinations(combinationsOf(graph))
    , m_tensors(graph.tensors.size())
    , m_sent(static_cast<std::size_t>(cluster.deviceCount), 0)
    , m_paths(cluster, costs, std::move(paths))
{
}

SummandSet Materializer::canonical(TensorId tensor, SummandSet summands, const IndexMask &box) const
{
    if (m_summands.complete(tensor, summands, box))
        summands.clear();
    return summands;
}

bool Materializer::perMicroBatch(std::int32_t block) const
{
    const SegmentKind kind = m_builder.block(block).kind;
    return isPass(kind) || kind == SegmentKind::Transfer;
}

IndexMask Materializer::wholeBox(TensorId tensor) const
{
    IndexMask whole = wholeMask(m_graph.at(tensor).type.shape);
    const auto index = static_cast<std::size_t>(tensor.index);
    if (m_batch.tensorRole[index] == BatchRole::Split)
        whole.ranges[static_cast<std::size_t>(m_batch.tensorDimension[index])].end /= m_batchCuts;
    return whole;
}

MemoryKind Materializer::memoryOf(TensorId tensor) const
{
    switch (m_graph.at(tensor).role) {
    case TensorRole::Input:
        return MemoryKind::Input;
    case TensorRole::Weight:
    case TensorRole::Buffer:
        return MemoryKind::Weight;
    case TensorRole::OptimizerState:
        return MemoryKind::OptimizerState;
    case TensorRole::Gradient:
        return m_graph.at(m_graph.at(tensor).of).role == TensorRole::Weight ? MemoryKind::Gradient
                                                                            : MemoryKind::Activation;
    case TensorRole::Activation:
        break;
    }
    return MemoryKind::Activation;
}

std::int32_t Materializer::newBuffer(const Task &task, DeviceId device, const IndexMask &box,
    const SummandSet &summands, MemoryKind memory, ValueMask valuePart)
{
    BufferInfo buffer{.tensor = task.tensor,
        .dataType = task.dataType,
        .index = box,
        .summands = canonical(task.tensor, summands, box),
        .valuePart = valuePart,
        .memory = memory};
    buffer.perMicroBatch = perMicroBatch(task.block);
    // What a step adds up is this unit's share until the units' own reduction.
    if (!m_units.isOne() && !buffer.perMicroBatch && memoryOf(task.tensor) == MemoryKind::Gradient)
        buffer.share = UnitShare::Partial;
    return m_builder.addBuffer(device, std::move(buffer));
}

void Materializer::made(TensorId tensor, std::int32_t block, Holding holding, std::size_t expected)
{
    TensorState &state = m_tensors[static_cast<std::size_t>(tensor.index)];
    const auto isHere = [&](const Made &made) { return made.block == block && made.turn == m_turn; };
    auto it = std::find_if(state.made.begin(), state.made.end(), isHere);
    if (it == state.made.end()) {
        state.made.push_back(Made{.block = block, .turn = m_turn});
        it = state.made.end() - 1;
        if (m_turn >= 0)
            m_turnTensors.insert(tensor);
    }
    if (it->raw.empty())
        it->raw.reserve(expected);
    holding.summands = canonical(tensor, std::move(holding.summands), holding.box);
    if (holding.summands.empty())
        state.available.add({holding, block});
    it->raw.push_back(std::move(holding));
    it->merged.clear();
    for (auto &[type, versions] : state.versions)
        std::erase_if(versions, isHere);
}

void Materializer::available(TensorId tensor, Holding holding, std::int32_t block)
{
    m_tensors[static_cast<std::size_t>(tensor.index)].available.add({std::move(holding), block});
}

void Materializer::forget(TensorId tensor, std::int32_t made, std::int32_t reader)
{
    TensorState &state = m_tensors[static_cast<std::size_t>(tensor.index)];
    std::erase_if(state.made, [made](const Made &entry) { return entry.block == made; });
    for (auto &[type, versions] : state.versions)
        std::erase_if(versions, [made](const Made &entry) { return entry.block == made; });
    const auto transfer = m_transfers.find({made, reader});
    const auto gone = [&](const auto &entry) {
        return entry.block == made || (transfer != m_transfers.end() && entry.block == transfer->second);
    };
    state.available.eraseIf(gone);
    std::erase_if(state.parts, gone);
}

void Materializer::forget(TensorId tensor)
{
    m_tensors[static_cast<std::size_t>(tensor.index)] = {};
}

std::vector<std::int32_t> Materializer::makersOf(TensorId tensor) const
{
    std::vector<std::int32_t> blocks;
    for (const Made &made : m_tensors[static_cast<std::size_t>(tensor.index)].made)
        blocks.push_back(made.block);
    return blocks;
}

const std::vector<Holding> *Materializer::holdingsOf(TensorId tensor, std::int32_t block) const
{
    for (const Made &made : m_tensors[static_cast<std::size_t>(tensor.index)].made)
        if (made.block == block)
            return made.merged.empty() ? &made.raw : &made.merged;
    return nullptr;
}

std::int32_t Materializer::transferBlock(std::int32_t from, std::int32_t to)
{
    const auto [it, fresh] = m_transfers.try_emplace({from, to}, -1);
    if (fresh) {
        const BlockInfo source = m_builder.block(from);
        const BlockInfo target = m_builder.block(to);
        // Just behind its source; transfers of one source in the order of their targets.
        it->second = m_builder.addBlock(
            SegmentKind::Transfer, source.stage, source.rank + 0.25 + 1e-6 * (target.rank - source.rank));
        BlockInfo &transfer = m_builder.blocks()[static_cast<std::size_t>(it->second)];
        transfer.source = from;
        transfer.target = to;
    }
    return it->second;
}

/// Joins what each device made itself: replicas are dropped, equal boxes summed, neighbouring ones
/// concatenated.
const std::vector<Holding> &Materializer::merge(Made &made, Task task)
{
    if (!made.merged.empty())
        return made.merged;
    task.block = made.block;
    std::vector<Holding> sorted = withoutShared(made.raw);
    std::stable_sort(sorted.begin(), sorted.end(), byDevice);
    for (std::size_t begin = 0; begin < sorted.size();) {
        std::size_t end = begin;
        while (end < sorted.size() && sorted[end].device == sorted[begin].device)
            ++end;
        std::vector<Holding> local;
        for (std::size_t i = begin; i < end; ++i)
            if (std::none_of(local.begin(), local.end(), [&](const Holding &h) {
                    return h.box == sorted[i].box && h.summands == sorted[i].summands;
                }))
                local.push_back(sorted[i]);
        if (local.size() > 1) {
            // Sum within each box.
            std::vector<std::vector<Holding>> byBox;
            for (const Holding &h : local) {
                auto it = std::find_if(byBox.begin(), byBox.end(), [&](const auto &list) {
                    return list.front().box == h.box
                        && std::all_of(list.begin(), list.end(), [&](const Holding &other) {
                               return !h.summands.empty() && disjointSets(other.summands, h.summands);
                           });
                });
                if (it == byBox.end())
                    byBox.push_back({h});
                else
                    it->push_back(h);
            }
            local.clear();
            for (const auto &list : byBox)
                local.push_back(sum(list, task));
            // Concatenate boxes that hold the same summands.
            const bool alike = std::all_of(local.begin(), local.end(),
                [&](const Holding &h) { return h.summands == local.front().summands; });
            if (local.size() > 1 && alike) {
                std::vector<IndexMask> boxes;
                for (const Holding &h : local)
                    boxes.push_back(h.box);
                if (const auto box = tiledBox(boxes))
                    local = {concat(local, *box, task)};
            }
        }
        const auto isNew = [&](const Holding &h) {
            return std::none_of(sorted.begin() + static_cast<std::ptrdiff_t>(begin),
                sorted.begin() + static_cast<std::ptrdiff_t>(end),
                [&](const Holding &r) { return r.buffer == h.buffer; });
        };
        for (Holding &h : local) {
            if (h.summands.empty() && isNew(h))
                m_tensors[static_cast<std::size_t>(task.tensor.index)].available.add({h, made.block});
            made.merged.push_back(std::move(h));
        }
        begin = end;
    }
    return made.merged;
}

/// Summands that operators made in different layouts are no layout together; those of each of them may be
/// one. They are brought over on their own, then added up.
/// @return nothing where one operator made all of them, or some are added up already
std::optional<std::vector<Holding>> Materializer::convertByProducers(
    Made &made, const std::vector<Need> &needs, const Task &task)
{
    const auto producerOf = [&](std::int32_t summand) { return m_summands.producerOf(task.tensor, summand); };
    std::set<std::size_t> producers;
    for (const Holding &h : made.raw) {
        if (h.summands.empty() || !h.valuePart.complete()
            || producerOf(h.summands.front()) != producerOf(h.summands.back()))
            return std::nullopt;
        producers.insert(producerOf(h.summands.front()));
    }
    if (producers.size() < 2 || task.combination != Combination::Sum)
        return std::nullopt;
    if (std::all_of(
            made.merged.begin(), made.merged.end(), [](const Holding &h) { return h.summands.empty(); }))
        return std::nullopt; // added up already, on the one device that made them all
    std::map<std::size_t, Made> byProducer;
    for (const Holding &h : castRaw(made, task)) {
        Made &own = byProducer[producerOf(h.summands.front())];
        own.block = made.block;
        own.turn = made.turn;
        own.raw.push_back(h);
    }
    std::vector<std::vector<Holding>> brought(needs.size());
    for (auto &[producer, own] : byProducer) {
        Task some = task;
        some.summands = summandsOf(own.raw);
        const std::vector<Holding> holdings = convert(own, needs, some);
        for (std::size_t i = 0; i < needs.size(); ++i)
            brought[i].push_back(holdings[i]);
    }
    std::vector<Holding> result;
    for (std::size_t i = 0; i < needs.size(); ++i)
        result.push_back(assemble(brought[i], needs[i], task));
    return result;
}

std::vector<Holding> Materializer::convert(Made &made, const std::vector<Need> &needs, const Task &task)
{
    const std::vector<Holding> merged = merge(made, task);
    // Several boxes on one device are asked for as one where they tile.
    std::vector<Need> joined;
    std::vector<std::pair<DeviceId, std::vector<IndexMask>>> asked; // in the order of asking
    std::unordered_map<std::int32_t, std::size_t> askedBy; // device: index into `asked`
    for (const Need &need : needs) {
        const auto [it, fresh] = askedBy.try_emplace(need.device.index, asked.size());
        if (fresh)
            asked.emplace_back(need.device, std::vector<IndexMask>{});
        auto &boxes = asked[it->second].second;
        if (std::find(boxes.begin(), boxes.end(), need.box) == boxes.end())
            boxes.push_back(need.box);
    }
    for (const auto &[device, boxes] : asked) {
        if (const auto box = tiledBox(boxes))
            joined.push_back({device, *box});
        else
            for (const IndexMask &each : boxes)
                joined.push_back({device, each});
    }
    std::vector<Holding> result;
    if (auto within = convertWithin(merged, joined, task))
        result = std::move(*within);
    else if (auto among = convertAmongHolders(merged, joined, task))
        result = std::move(*among);
    else if (auto across = convertAcross(merged, joined, task))
        result = std::move(*across);
    else if (auto everywhere = spread(merged, joined, task))
        result = std::move(*everywhere);
    else if (auto apart = convertByProducers(made, joined, task))
        result = std::move(*apart);
    else {
        const bool alike = std::all_of(merged.begin(), merged.end(),
            [&](const Holding &h) { return h.summands == merged.front().summands; });
        std::vector<const Holding *> sources;
        for (const Holding &h : merged)
            sources.push_back(&h);
        // What others wait for is sent before anything is put together.
        std::vector<std::vector<Holding>> pieces;
        for (const Need &need : joined)
            pieces.push_back(alike ? fetch(sources, need, task)
                                   : std::vector{fetchGeneral(castRaw(made, task), need, task)});
        for (std::size_t i = 0; i < joined.size(); ++i)
            result.push_back(concat(pieces[i], joined[i].box, task));
    }
    // Back to what was asked for, in its order.
    std::unordered_map<std::int32_t, std::vector<Holding>> resultOf; // by device
    for (Holding &h : result)
        resultOf[h.device.index].push_back(std::move(h));
    std::vector<Holding> ordered;
    for (const Need &need : needs) {
        auto &own = resultOf[need.device.index];
        const auto it =
            std::find_if(own.begin(), own.end(), [&](const Holding &h) { return contains(h.box, need.box); });
        assert(it != own.end());
        const bool cut = it->box != need.box;
        ordered.push_back(select(*it, need.box, task));
        if (cut)
            own.push_back(ordered.back());
    }
    return ordered;
}

/// Slices, one per micro-batch, of a value that is computed once per step: the device gets all micro-batches'
/// slices in the prologue, and cuts its own in every micro-batch.
Result<std::vector<std::int32_t>> Materializer::ensureSlices(
    TensorId tensor, const std::vector<Need> &needs, DataType type, std::int32_t block, OperatorId op)
{
    TensorState &state = m_tensors[static_cast<std::size_t>(tensor.index)];
    const auto dimension =
        static_cast<std::size_t>(m_batch.tensorDimension[static_cast<std::size_t>(tensor.index)]);
    std::vector<Need> wide = needs;
    for (Need &need : wide)
        need.box.ranges[dimension] = {0, m_graph.at(tensor).type.shape[dimension]};
    const std::int32_t prologue = state.made.empty() ? block : state.made.front().block;
    TRY(const auto wholes, ensure(tensor, wide, type, prologue, op));
    Task task{.tensor = tensor, .op = op, .block = block, .dataType = type, .whole = wholeBox(tensor)};
    std::vector<std::int32_t> buffers;
    for (std::size_t i = 0; i < needs.size(); ++i) {
        const auto &own = state.available.of(needs[i].device);
        const auto found = std::find_if(own.begin(), own.end(), [&](const Available &entry) {
            return entry.holding.box == needs[i].box && perMicroBatch(entry.block)
                && typeOf(entry.holding) == type;
        });
        if (found != own.end()) {
            buffers.push_back(found->holding.buffer);
            continue;
        }
        Holding slice{needs[i].device, needs[i].box, {},
            newBuffer(task, needs[i].device, needs[i].box, {}, memoryOf(tensor))};
        m_builder.emit(needs[i].device, block,
            {.kind = InstructionKind::Select, .op = op, .inputs = {wholes[i]}, .outputs = {slice.buffer}});
        buffers.push_back(slice.buffer);
        state.available.add({std::move(slice), block});
    }
    return buffers;
}

/// `reader` is the backward block of the forward block `maker`.
bool Materializer::isBackwardOf(std::int32_t maker, std::int32_t reader) const
{
    const BlockInfo &forward = m_builder.block(maker);
    const BlockInfo &backward = m_builder.block(reader);
    return forward.kind == SegmentKind::Forward && isBackward(backward.kind)
        && forward.stage == backward.stage;
}

/// A copy that a forward block gathered from what its devices hold in pieces: it dies there, and the backward
/// pass gathers it again, so that between the two only the pieces take memory (arXiv:2205.05198,
/// section 4.2.2).
bool Materializer::isGatheredAgain(TensorId tensor, const Available &copy, std::int32_t block) const
{
    if (!isBackwardOf(copy.block, block))
        return false;
    for (const Made &made : m_tensors[static_cast<std::size_t>(tensor.index)].made) {
        if (made.block != copy.block)
            continue;
        bool pieces = false;
        for (const auto *list : {&made.raw, &made.merged})
            for (const Holding &h : *list) {
                if (h.device != copy.holding.device)
                    continue;
                if (h.buffer == copy.holding.buffer)
                    return false;
                pieces = pieces || (h.summands.empty() && volumeOf(h.box) < volumeOf(copy.holding.box));
            }
        return pieces;
    }
    return false;
}

std::vector<std::int32_t> Materializer::gather(TensorId tensor, std::vector<Holding> pieces,
    const std::vector<Need> &needs, DataType type, std::int32_t block, OperatorId op, bool keep)
{
    const Task task{.tensor = tensor, .op = op, .block = block, .dataType = type, .whole = wholeBox(tensor)};
    Made made{.block = block, .raw = std::move(pieces)};
    std::vector<std::int32_t> buffers;
    for (const Holding &holding : convert(made, needs, task)) {
        gathered(tensor, holding, block, keep);
        buffers.push_back(holding.buffer);
    }
    return buffers;
}

void Materializer::gathered(TensorId tensor, Holding holding, std::int32_t block, bool keep)
{
    TensorState &state = m_tensors[static_cast<std::size_t>(tensor.index)];
    state.gathered = true;
    state.kept = keep;
    state.available.add({std::move(holding), block});
}

bool Materializer::holds(
    TensorId tensor, const std::vector<Need> &needs, DataType type, std::int32_t block) const
{
    return std::all_of(needs.begin(), needs.end(),
        [&](const Need &need) { return findLocal(tensor, need, type, block) != nullptr; });
}

/// What `need` can be cut from on its own device; null if there is nothing that `block` may read.
const Available *Materializer::findLocal(
    TensorId tensor, const Need &need, DataType type, std::int32_t block) const
{
    const double rank = m_builder.block(block).rank;
    const Available *containing = nullptr;
    const TensorState &state = m_tensors[static_cast<std::size_t>(tensor.index)];
    for (const Available &entry : state.available.of(need.device)) {
        // Outputs are stored by the block that made them: what later blocks made of it comes too late.
        if (m_builder.block(entry.block).rank > rank)
            continue;
        if (perMicroBatch(entry.block) && !perMicroBatch(block))
            continue; // one micro-batch's copy is none for the step
        if (typeOf(entry.holding) != type)
            continue;
        // A wider copy of what is there anyway is made again where it is read: it would take memory in
        // between.
        if (entry.block != block && sizeOf(type) > sizeOf(m_types.accumulated(tensor))
            && !m_builder.buffer(entry.holding.device, entry.holding.buffer).persistent)
            continue;
        if (isGatheredAgain(tensor, entry, block))
            continue;
        if (state.gathered && entry.block != block
            && !m_builder.buffer(entry.holding.device, entry.holding.buffer).persistent
            && !(state.kept && isBackwardOf(entry.block, block)))
            continue;
        if (entry.holding.box == need.box)
            return &entry;
        if (contains(entry.holding.box, need.box)
            && (!containing || volumeOf(entry.holding.box) < volumeOf(containing->holding.box)))
            containing = &entry;
    }
    return containing;
}

/// What blocks made of a tensor, without what others of them made, too: replicas in lanes. Those of the
/// reader's lane come first, and stay.
/// @param all  of which the result may be some themselves; or copies in `kept`
std::vector<Materializer::Made *> Materializer::withoutOtherLanes(
    std::vector<Made> &all, std::int32_t reader, std::deque<Made> &kept) const
{
    std::vector<Made *> result;
    for (Made &made : all)
        if (!isOtherTurns(made))
            result.push_back(&made);
    const auto laneOf = [this](const Made *made) { return m_builder.block(made->block).lane; };
    if (std::all_of(result.begin(), result.end(),
            [&](const Made *made) { return m_builder.block(made->block).lanes == 1; }))
        return result;
    const std::int32_t own = m_builder.block(reader).lane;
    std::stable_sort(result.begin(), result.end(),
        [&](const Made *a, const Made *b) { return laneOf(a) == own && laneOf(b) != own; });
    std::vector<const Holding *> known;
    for (Made *&made : result) {
        const auto isKnown = [&](const Holding &h) {
            return std::any_of(known.begin(), known.end(), [&](const Holding *other) {
                return other->summands == h.summands && contains(other->box, h.box);
            });
        };
        if (std::any_of(made->raw.begin(), made->raw.end(), isKnown)) {
            Made rest = *made;
            std::erase_if(rest.raw, isKnown);
            rest.merged.clear();
            kept.push_back(std::move(rest));
            made = &kept.back();
        }
        for (const Holding &h : made->raw)
            known.push_back(&h);
    }
    std::erase_if(result, [](const Made *made) { return made->raw.empty(); });
    return result;
}

/// What a block made slice by slice or lane by lane, and what it made whole beside that: apart, since each
/// has boxes of its own.
/// @return `made` itself where all is of the same boxes; else copies in `kept`
std::vector<Materializer::Made *> Materializer::byReach(
    TensorId tensor, Made &made, std::deque<Made> &kept) const
{
    const BlockInfo &block = m_builder.block(made.block);
    if (block.slices == 1 && block.lanes == 1)
        return {&made};
    std::map<std::int64_t, Made> byProducer;
    for (const Holding &h : made.raw) {
        const std::int64_t producer = h.summands.empty()
            ? -1
            : static_cast<std::int64_t>(m_summands.producerOf(tensor, h.summands.front()));
        Made &own = byProducer[producer];
        own.block = made.block;
        own.turn = made.turn;
        own.raw.push_back(h);
    }
    const IndexMask whole = boundingBox(made.raw);
    if (std::all_of(byProducer.begin(), byProducer.end(),
            [&](const auto &each) { return boundingBox(each.second.raw) == whole; }))
        return {&made};
    std::vector<Made *> result;
    for (auto &[producer, own] : byProducer) {
        kept.push_back(std::move(own));
        result.push_back(&kept.back());
    }
    return result;
}

Result<std::vector<std::int32_t>> Materializer::ensure(
    TensorId tensor, const std::vector<Need> &needs, DataType type, std::int32_t block, OperatorId op)
{
    TensorState &state = m_tensors[static_cast<std::size_t>(tensor.index)];
    std::vector<std::int32_t> buffers(needs.size(), -1);
    if (perMicroBatch(block) && m_batch.tensorRole[static_cast<std::size_t>(tensor.index)] == BatchRole::Step
        && m_batch.tensorDimension[static_cast<std::size_t>(tensor.index)] >= 0)
        return ensureSlices(tensor, needs, type, block, op);
    Task task{.tensor = tensor,
        .op = op,
        .block = block,
        .dataType = type,
        .combination = onceWeighed(m_combinations[static_cast<std::size_t>(tensor.index)])};
    const auto meetLocally = [&] {
        bool all = true;
        for (std::size_t i = 0; i < needs.size(); ++i) {
            if (buffers[i] >= 0)
                continue;
            const Available *found = findLocal(tensor, needs[i], type, block);
            if (!found) {
                all = false;
                continue;
            }
            if (found->holding.box == needs[i].box) {
                buffers[i] = found->holding.buffer;
                continue;
            }
            const Holding source = found->holding; // what it lies in grows
            const Holding cut = select(source, needs[i].box, task);
            state.available.add({cut, block});
            buffers[i] = cut.buffer;
        }
        return all;
    };
    const bool asMade = type == m_types.accumulated(tensor);
    if (asMade ? meetLocally() : castLocally(needs, task, buffers))
        return buffers;
    if (state.made.empty())
        return Error{ErrorCode::Internal, "nothing makes " + m_graph.at(tensor).name + " before it is read",
            {}, "operator:" + m_graph.at(op).name};
    std::fill(buffers.begin(), buffers.end(), -1);
    if (const DataType wire = wireType(tensor, type); wire != type) {
        TRY(const auto arrived, ensure(tensor, needs, wire, block, op));
        for (std::size_t i = 0; i < needs.size(); ++i) {
            const auto known = std::find_if(needs.begin(), needs.begin() + static_cast<std::ptrdiff_t>(i),
                [&](const Need &need) { return need.device == needs[i].device && need.box == needs[i].box; });
            if (known != needs.begin() + static_cast<std::ptrdiff_t>(i)) {
                buffers[i] = buffers[static_cast<std::size_t>(known - needs.begin())];
                continue;
            }
            // What a device summed up itself is no better than what the others got: replicas stay equal.
            const Holding arrival = cast({needs[i].device, needs[i].box, {}, arrived[i]}, task);
            state.available.add({arrival, block});
            buffers[i] = arrival.buffer;
        }
        return buffers;
    }
    task.whole = wholeBox(tensor);

    // Every block's contributions are brought over on their own, then put together: blocks make summands, and
    // slices make boxes.
    std::vector<std::vector<Holding>> brought(needs.size());
    bool any = false;
    std::deque<Made> kept;
    std::vector<Made *> makers;
    for (Made *maker : withoutOtherLanes(asMade ? state.made : versionsOf(task), block, kept))
        for (Made *each : byReach(tensor, *maker, kept))
            makers.push_back(each);
    for (Made *maker : makers) {
        Made &made = *maker;
        any = true;
        Task own = task;
        std::vector<Need> wanted;
        std::vector<std::size_t> wantedBy;
        const BlockInfo &source = m_builder.block(made.block);
        const bool sliced = source.slices > 1 || source.lanes > 1;
        if (sliced)
            own.whole = boundingBox(made.raw);
        for (std::size_t i = 0; i < needs.size(); ++i) {
            const auto box = sliced ? intersection(needs[i].box, own.whole) : std::optional(needs[i].box);
            if (!box || (sliced && volumeOf(*box) == 0))
                continue;
            wanted.push_back(needs[i]);
            wanted.back().box = *box;
            wantedBy.push_back(i);
        }
        if (wanted.empty())
            continue;
        const BlockInfo &from = m_builder.block(made.block);
        const BlockInfo &to = m_builder.block(block);
        if (made.block == block)
            own.block = block;
        else if (from.kind == SegmentKind::Prologue || !perMicroBatch(block))
            own.block = from.kind == SegmentKind::Prologue ? made.block : block;
        else {
            // Stay inside the block if no other device takes part.
            const auto isLocal = [&] {
                std::unordered_map<std::int32_t, std::vector<const Holding *>> rawOf; // by device
                for (const Holding &h : made.raw)
                    rawOf[h.device.index].push_back(&h);
                for (const Need &need : wanted) {
                    const auto &own = rawOf[need.device.index];
                    if (std::none_of(own.begin(), own.end(),
                            [&](const Holding *h) { return contains(h->box, need.box); }))
                        return false;
                }
                return std::all_of(made.raw.begin(), made.raw.end(), [&](const Holding &h) {
                    return h.summands.size() == made.raw.front().summands.size()
                        && h.summands == made.raw.front().summands;
                });
            };
            // So does what the stage's devices gather again from one another's pieces.
            const auto isGathered = [&] {
                return from.kind == SegmentKind::Forward && isBackward(to.kind)
                    && std::all_of(wanted.begin(), wanted.end(), [&](const Need &need) {
                           return std::any_of(made.raw.begin(), made.raw.end(), [&](const Holding &h) {
                               return h.device == need.device && h.summands.empty()
                                   && contains(need.box, h.box);
                           });
                       });
            };
            own.block = from.stage == to.stage && (isLocal() || isGathered())
                ? block
                : transferBlock(made.block, block);
        }
        own.summands = summandsOf(made.raw);
        const std::vector<Holding> holdings = convert(made, wanted, own);
        for (std::size_t i = 0; i < wanted.size(); ++i)
            brought[wantedBy[i]].push_back(holdings[i]);
    }
    if (!any)
        return Error{ErrorCode::Internal,
            m_graph.at(tensor).name + " is made in other turns than it is read in", {},
            "operator:" + m_graph.at(op).name};
    for (std::size_t i = 0; i < needs.size(); ++i) {
        if (brought[i].empty())
            return Error{ErrorCode::Internal,
                "a slice of " + m_graph.at(tensor).name + " is read before it is made", {},
                "operator:" + m_graph.at(op).name};
        const Holding total = assemble(brought[i], needs[i], task);
        if (!m_summands.complete(tensor, total.summands, total.box))
            return Error{ErrorCode::Internal,
                "only some summands of " + m_graph.at(tensor).name + " are made before it is read", {},
                "operator:" + m_graph.at(op).name};
        buffers[i] = total.buffer;
        const auto &own = state.available.of(needs[i].device);
        if (std::none_of(own.begin(), own.end(), [&](const Available &entry) {
                return entry.holding.box == needs[i].box && typeOf(entry.holding) == type;
            }))
            state.available.add({total, block});
    }
    return buffers;
}

} // namespace planloom
