// Single steps, and the general way that is made of them: select, move, concat, sum.

#include "engine/lowering/layout/materialize.h"

#include "engine/lowering/layout/box_algebra.h"

#include <algorithm>
#include <cassert>

namespace planloom {

// ------------------------------------------------------------------------------------------

Holding Materializer::select(const Holding &from, const IndexMask &box, const Task &task)
{
    if (from.box == box)
        return from;
    Holding result{from.device, box, canonical(task.tensor, from.summands, box),
        newBuffer(task, from.device, box, from.summands, memoryOf(task.tensor), from.valuePart),
        from.valuePart};
    m_builder.emit(from.device, task.block,
        {.kind = InstructionKind::Select,
            .op = task.op,
            .inputs = {from.buffer},
            .outputs = {result.buffer}});
    return result;
}

/// One of the parts of a Value split of what `from` holds, cut to `box`.
Holding Materializer::selectPart(const Holding &from, const IndexMask &box, ValueMask part, const Task &task)
{
    if (part.complete())
        return select(from, box, task);
    Holding result{from.device, box, from.summands,
        newBuffer(task, from.device, box, from.summands, memoryOf(task.tensor), part), part};
    m_builder.emit(from.device, task.block,
        {.kind = InstructionKind::ValueSelect,
            .op = task.op,
            .inputs = {from.buffer},
            .outputs = {result.buffer}});
    return result;
}

Holding Materializer::move(const Holding &from, DeviceId to, const Task &task)
{
    if (from.device == to)
        return from;
    Holding result{to, from.box, from.summands,
        newBuffer(task, to, from.box, from.summands, MemoryKind::Communication, from.valuePart),
        from.valuePart};
    const std::int32_t tag = m_builder.newTag();
    m_builder.emit(from.device, task.block,
        {.kind = InstructionKind::Send, .op = task.op, .peer = to, .tag = tag, .inputs = {from.buffer}});
    m_builder.emit(to, task.block,
        {.kind = InstructionKind::Recv,
            .op = task.op,
            .peer = from.device,
            .tag = tag,
            .outputs = {result.buffer}});
    m_sent[at(from.device)] += volumeOf(from.box) * sizeOf(task.dataType);
    return result;
}

/// Passes on what the first of `members` holds; appends what each of them has then.
void Materializer::broadcast(const Holding &from, const std::vector<DeviceId> &members, const Task &task,
    std::vector<Holding> &received)
{
    const std::int32_t group = m_builder.groupOf(members);
    for (const DeviceId member : members) {
        Instruction instruction{.kind = InstructionKind::Broadcast, .op = task.op, .group = group};
        if (member == from.device) {
            instruction.inputs = {from.buffer};
            received.push_back(from);
        } else {
            received.push_back({member, from.box, from.summands,
                newBuffer(task, member, from.box, from.summands, MemoryKind::Communication, from.valuePart),
                from.valuePart});
            instruction.outputs = {received.back().buffer};
        }
        m_builder.emit(member, task.block, std::move(instruction));
    }
    m_sent[at(from.device)] += volumeOf(from.box) * sizeOf(task.dataType);
}

Holding Materializer::concat(const std::vector<Holding> &pieces, const IndexMask &box, const Task &task)
{
    if (pieces.size() == 1 && pieces.front().box == box)
        return pieces.front();
    const Holding &first = pieces.front();
    Holding result{first.device, box, first.summands,
        newBuffer(task, first.device, box, first.summands, memoryOf(task.tensor))};
    Instruction instruction{.kind = InstructionKind::Concat, .op = task.op, .outputs = {result.buffer}};
    for (const Holding &piece : pieces)
        instruction.inputs.push_back(piece.buffer);
    m_builder.emit(first.device, task.block, std::move(instruction));
    return result;
}

Holding Materializer::sum(const std::vector<Holding> &pieces, const Task &task)
{
    if (pieces.size() == 1)
        return pieces.front();
    Holding result = pieces.front();
    Instruction instruction{.kind = InstructionKind::Sum, .op = task.op, .combination = task.combination};
    for (std::size_t i = 0; i < pieces.size(); ++i) {
        instruction.inputs.push_back(pieces[i].buffer);
        if (i > 0)
            result.summands = unionOf(result.summands, pieces[i].summands);
    }
    result.buffer = newBuffer(task, result.device, result.box, result.summands, memoryOf(task.tensor));
    result.summands = canonical(task.tensor, std::move(result.summands), result.box);
    instruction.outputs = {result.buffer};
    m_builder.emit(result.device, task.block, std::move(instruction));
    return result;
}

// ----------------------------------------------------------------------------------------

/// Collects the pieces of a box from sources that all hold the same summands: local ones first, then from the
/// device that has sent least. The sources must cover the box.
std::vector<Holding> Materializer::fetch(
    const std::vector<const Holding *> &sources, const Need &need, const Task &task)
{
    std::vector<const Holding *> byPreference = sources;
    const auto cost = [&](const Holding *h) {
        const bool local = h->device == need.device;
        const bool near = m_cluster.nodeOf(h->device) == m_cluster.nodeOf(need.device);
        return std::make_tuple(local ? 0 : near ? 1 : 2, local ? 0 : m_sent[at(h->device)], h->device.index);
    };
    std::stable_sort(byPreference.begin(), byPreference.end(),
        [&](const Holding *a, const Holding *b) { return cost(a) < cost(b); });
    std::vector<IndexMask> missing{need.box};
    std::vector<Holding> pieces;
    for (const Holding *source : byPreference) {
        std::vector<IndexMask> still;
        for (const IndexMask &box : missing) {
            const auto piece = intersection(source->box, box);
            if (!piece || volumeOf(*piece) == 0) {
                still.push_back(box);
                continue;
            }
            pieces.push_back(move(select(*source, *piece, task), need.device, task));
            subtract(box, *piece, still);
        }
        missing = std::move(still);
        if (missing.empty())
            break;
    }
    assert(missing.empty() && "the sources do not cover the box");
    return pieces;
}

/// Collects a box from sources with any boxes and summands: cut in cells by the sources' borders, every cell
/// the sum of disjoint sets of summands.
Holding Materializer::fetchGeneral(const std::vector<Holding> &sources, const Need &need, const Task &task)
{
    std::vector<IndexMask> cells{need.box};
    for (std::size_t d = 0; d < need.box.ranges.size(); ++d) {
        std::vector<std::int64_t> borders;
        for (const Holding &h : sources)
            for (const std::int64_t at : {h.box.ranges[d].begin, h.box.ranges[d].end})
                if (at > need.box.ranges[d].begin && at < need.box.ranges[d].end)
                    borders.push_back(at);
        std::sort(borders.begin(), borders.end());
        borders.erase(std::unique(borders.begin(), borders.end()), borders.end());
        std::vector<IndexMask> cut;
        for (const IndexMask &cell : cells) {
            std::int64_t begin = cell.ranges[d].begin;
            for (std::size_t i = 0; i <= borders.size(); ++i) {
                IndexMask part = cell;
                part.ranges[d] = {begin, i < borders.size() ? borders[i] : cell.ranges[d].end};
                begin = part.ranges[d].end;
                cut.push_back(std::move(part));
            }
        }
        cells = std::move(cut);
    }
    std::vector<Holding> done;
    for (const IndexMask &cell : cells) {
        std::vector<const Holding *> candidates;
        for (const Holding &h : sources)
            if (contains(h.box, cell))
                candidates.push_back(&h);
        std::stable_sort(candidates.begin(), candidates.end(), [&](const Holding *a, const Holding *b) {
            const auto cost = [&](const Holding *h) {
                const bool local = h->device == need.device;
                return std::make_tuple(local ? 0 : 1, local ? 0 : m_sent[at(h->device)]);
            };
            return cost(a) < cost(b);
        });
        SummandSet covered;
        std::vector<Holding> summands;
        for (const Holding *h : candidates) {
            if (!summands.empty() && (h->summands.empty() || !disjointSets(covered, h->summands)))
                continue;
            covered = unionOf(covered, h->summands);
            summands.push_back(move(select(*h, cell, task), need.device, task));
            if (h->summands.empty())
                break;
        }
        assert(!summands.empty()
            && (summands.front().summands.empty() || covered == task.summands
                || m_summands.complete(task.tensor, covered, cell)));
        done.push_back(sum(summands, task));
    }
    return concat(done, need.box, task);
}

/// What blocks made, each its boxes and summands, put together on one device.
Holding Materializer::assemble(const std::vector<Holding> &pieces, const Need &need, const Task &task)
{
    const bool alike = std::all_of(
        pieces.begin(), pieces.end(), [&](const Holding &piece) { return piece.box == need.box; });
    return alike ? sum(pieces, task) : fetchGeneral(pieces, need, task);
}

} // namespace planloom
