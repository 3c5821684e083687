#include "engine/lowering/layout/materialize.h"

#include "engine/lowering/layout/box_algebra.h"
#include "engine/lowering/layout/shared_summands.h"

#include <algorithm>
#include <cassert>
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
    std::vector<Holding> result;
    if (auto rounds = convertInRounds(made.raw, needs, task, &made))
        result = *std::move(rounds);
    else
        result = convertMerged(made, needs, task);
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

/// What each device made itself is joined first.
std::vector<Holding> Materializer::convertMerged(Made &made, const std::vector<Need> &needs, const Task &task)
{
    const std::vector<Holding> merged = merge(made, task);
    if (auto rounds = convertInRounds(merged, needs, task, nullptr))
        return *std::move(rounds);
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
    if (auto within = convertWithin(merged, joined, task))
        return *std::move(within);
    if (auto among = convertAmongHolders(merged, joined, task))
        return *std::move(among);
    if (auto across = convertAcross(merged, joined, task))
        return *std::move(across);
    if (auto everywhere = spread(merged, joined, task))
        return *std::move(everywhere);
    // Gradients of a step are all there when they are added up: one collective takes those of all blocks. In
    // a micro-batch, what one block made goes on its way while the others still run.
    const bool ofStep = memoryOf(task.tensor) == MemoryKind::Gradient && !perMicroBatch(task.block);
    std::vector<Holding> result;
    if (ofStep)
        result = convertApart(merged, joined, task);
    if (auto byProducers = result.empty() ? convertByProducers(made, joined, task) : std::nullopt)
        return *std::move(byProducers);
    if (!ofStep)
        result = convertApart(merged, joined, task);
    const bool alike = std::all_of(merged.begin(), merged.end(),
        [&](const Holding &h) { return h.summands == merged.front().summands; });
    std::vector<const Holding *> sources;
    for (const Holding &h : merged)
        sources.push_back(&h);
    // What others wait for is sent before anything is put together.
    std::vector<std::vector<Holding>> pieces;
    for (const Need &need : joined)
        pieces.push_back(
            alike ? fetch(sources, need, task) : std::vector{fetchGeneral(castRaw(made, task), need, task)});
    for (std::size_t i = 0; i < joined.size(); ++i)
        result.push_back(concat(pieces[i], joined[i].box, task));
    return result;
}

/// What an axis cuts unevenly is no grid, and yet one along every other axis: boxes that touch no others are
/// converted by themselves. Takes the needs that are met so out of `needs`.
std::vector<Holding> Materializer::convertApart(
    const std::vector<Holding> &from, std::vector<Need> &needs, const Task &task)
{
    std::vector<Holding> result;
    for (const Apart &each : apartOf(from, needs)) {
        Task own = task;
        own.whole = boundingBox(each.from);
        const auto alone = convertWithin(each.from, each.needs, own);
        if (!alone)
            continue;
        result.insert(result.end(), alone->begin(), alone->end());
        for (const Need &need : each.needs)
            needs.erase(std::find(needs.begin(), needs.end(), need));
    }
    return result;
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
    std::vector<std::int32_t> buffers;
    for (const Holding &holding : bringFrom(tensor, std::move(pieces), needs, type, block, op)) {
        gathered(tensor, holding, block, keep);
        buffers.push_back(holding.buffer);
    }
    return buffers;
}

std::vector<Holding> Materializer::bring(TensorId tensor, std::vector<Holding> pieces,
    const std::vector<Need> &needs, DataType type, std::int32_t block, OperatorId op)
{
    std::vector<Holding> holdings = bringFrom(tensor, std::move(pieces), needs, type, block, op);
    for (const Holding &holding : holdings)
        available(tensor, holding, block);
    return holdings;
}

std::vector<Holding> Materializer::bringFrom(TensorId tensor, std::vector<Holding> pieces,
    const std::vector<Need> &needs, DataType type, std::int32_t block, OperatorId op)
{
    const Task task{.tensor = tensor, .op = op, .block = block, .dataType = type, .whole = wholeBox(tensor)};
    Made made{.block = block, .raw = std::move(pieces)};
    return convert(made, needs, task);
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

void Materializer::beginTurn(std::int32_t turn)
{
    m_turn = turn;
}

void Materializer::endTurns(std::int32_t block, const std::vector<TensorId> &read)
{
    m_turn = -1;
    for (const TensorId tensor : m_turnTensors) {
        TensorState &state = m_tensors[static_cast<std::size_t>(tensor.index)];
        Made joined{.block = block};
        const auto take = [&](const Made &made) {
            if (made.block != block)
                return false;
            // What a turn has added up itself stays so, if others can still add it to theirs.
            const auto &holdings =
                made.turn >= 0 && !made.merged.empty() && !shareSome(made.merged) ? made.merged : made.raw;
            joined.raw.insert(joined.raw.end(), holdings.begin(), holdings.end());
            return true;
        };
        const auto first = std::find_if(
            state.made.begin(), state.made.end(), [&](const Made &made) { return made.block == block; });
        const auto at = first - state.made.begin();
        std::erase_if(state.made, take);
        state.made.insert(state.made.begin() + at, std::move(joined));
        for (auto &[type, versions] : state.versions)
            std::erase_if(versions, [block](const Made &made) { return made.block == block; });
    }
    m_turnTensors.clear();
    for (const TensorId tensor : read) {
        auto &available = m_tensors[static_cast<std::size_t>(tensor.index)].available;
        std::vector<std::pair<DeviceId, std::int32_t>> gone; // device, buffer
        available.forEach([&](const auto &own) {
            for (const Available &slice : own) {
                const bool canBeCutAgain =
                    slice.block == block && std::any_of(own.begin(), own.end(), [&](const Available &whole) {
                        return whole.holding.box != slice.holding.box
                            && contains(whole.holding.box, slice.holding.box);
                    });
                if (canBeCutAgain)
                    gone.emplace_back(slice.holding.device, slice.holding.buffer);
            }
        });
        available.eraseIf([&](const Available &entry) {
            return std::find(gone.begin(), gone.end(), std::pair(entry.holding.device, entry.holding.buffer))
                != gone.end();
        });
    }
}

} // namespace planloom
