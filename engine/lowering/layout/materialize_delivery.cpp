// One need after the other: see `Materializer::ensure`.

#include "engine/lowering/layout/box_algebra.h"
#include "engine/lowering/layout/materialize.h"

#include <algorithm>
#include <deque>
#include <unordered_map>

namespace planloom {

/// One run of `ensure`: brings a tensor to where it is needed, from all blocks that made something of it.
class Materializer::Delivery
{
public:
    Delivery(Materializer &all, TensorId tensor, const std::vector<Need> &needs, DataType type,
        std::int32_t block, OperatorId op)
        : m_all(all)
        , m_state(all.m_tensors[at(tensor)])
        , m_needs(needs)
        , m_task{.tensor = tensor,
              .op = op,
              .block = block,
              .dataType = type,
              .combination = onceWeighed(all.m_combinations[at(tensor)])}
        , m_asMade(type == all.m_types.accumulated(tensor))
        , m_buffers(needs.size(), -1)
    {
    }

    Result<std::vector<std::int32_t>> run();

private:
    bool meetLocally();
    Result<void> castArrivals(DataType wire);
    Result<void> bringAll();
    void bring(Made &made);
    bool isLocal(const Made &made, const std::vector<Need> &wanted) const;
    bool isGathered(const Made &made, const std::vector<Need> &wanted) const;
    std::int32_t whereFrom(const Made &made, const std::vector<Need> &wanted);
    Result<void> putTogether();
    std::vector<Made *> withoutOtherLanes(std::vector<Made> &all);
    std::vector<Made *> byReach(Made &made);
    Error internal(std::string message) const
    {
        return {ErrorCode::Internal, std::move(message), {}, "operator:" + m_all.m_graph.at(m_task.op).name};
    }
    const std::string &name() const { return m_all.m_graph.at(m_task.tensor).name; }

    Materializer &m_all;
    TensorState &m_state;
    const std::vector<Need> &m_needs;
    Task m_task;
    bool m_asMade; ///< It is wanted in the type that operators make it in.
    std::vector<std::int32_t> m_buffers; ///< By need.
    std::vector<std::vector<Holding>> m_brought{}; ///< By need: blocks make summands, and slices make boxes.
    std::deque<Made> m_copies{}; ///< Of parts of what blocks made.
};

Result<std::vector<std::int32_t>> Materializer::ensure(
    TensorId tensor, const std::vector<Need> &needs, DataType type, std::int32_t block, OperatorId op)
{
    if (perMicroBatch(block) && m_batch.tensorRole[at(tensor)] == BatchRole::Step
        && m_batch.tensorDimension[at(tensor)] >= 0)
        return ensureSlices(tensor, needs, type, block, op);
    return Delivery(*this, tensor, needs, type, block, op).run();
}

Result<std::vector<std::int32_t>> Materializer::Delivery::run()
{
    if (m_asMade ? meetLocally() : m_all.castLocally(m_needs, m_task, m_buffers))
        return std::move(m_buffers);
    if (m_state.made.empty())
        return internal("nothing makes " + name() + " before it is read");
    if (const DataType wire = m_all.wireType(m_task.tensor, m_task.dataType); wire != m_task.dataType) {
        TRY_VOID(castArrivals(wire));
    } else {
        TRY_VOID(bringAll());
        TRY_VOID(putTogether());
    }
    return std::move(m_buffers);
}

/// From what the devices have themselves, as far as they do. @return whether that is all
bool Materializer::Delivery::meetLocally()
{
    bool all = true;
    for (std::size_t i = 0; i < m_needs.size(); ++i) {
        const Available *found = m_all.findLocal(m_task.tensor, m_needs[i], m_task.dataType, m_task.block);
        if (!found) {
            all = false;
        } else if (found->holding.box == m_needs[i].box) {
            m_buffers[i] = found->holding.buffer;
        } else {
            const Holding source = found->holding; // what it lies in grows
            const Holding cut = m_all.select(source, m_needs[i].box, m_task);
            m_state.available.add({cut, m_task.block});
            m_buffers[i] = cut.buffer;
        }
    }
    return all;
}

/// It travels in another type, and is cast where it arrives.
Result<void> Materializer::Delivery::castArrivals(DataType wire)
{
    TRY(const auto arrived, m_all.ensure(m_task.tensor, m_needs, wire, m_task.block, m_task.op));
    for (std::size_t i = 0; i < m_needs.size(); ++i) {
        const auto end = m_needs.begin() + static_cast<std::ptrdiff_t>(i);
        const auto known = std::find_if(m_needs.begin(), end,
            [&](const Need &need) { return need.device == m_needs[i].device && need.box == m_needs[i].box; });
        if (known != end) {
            m_buffers[i] = m_buffers[static_cast<std::size_t>(known - m_needs.begin())];
            continue;
        }
        // What a device summed up itself is no better than what the others got: replicas stay equal.
        const Holding arrival = m_all.cast({m_needs[i].device, m_needs[i].box, {}, arrived[i]}, m_task);
        m_state.available.add({arrival, m_task.block});
        m_buffers[i] = arrival.buffer;
    }
    return {};
}

/// Every block's contributions are brought over on their own.
Result<void> Materializer::Delivery::bringAll()
{
    m_task.whole = m_all.wholeBox(m_task.tensor);
    m_brought.resize(m_needs.size());
    std::vector<Made *> makers;
    for (Made *maker : withoutOtherLanes(m_asMade ? m_state.made : m_all.versionsOf(m_task)))
        for (Made *each : byReach(*maker))
            makers.push_back(each);
    if (makers.empty())
        return internal(name() + " is made in other turns than it is read in");
    for (Made *made : makers)
        bring(*made);
    return {};
}

void Materializer::Delivery::bring(Made &made)
{
    Task own = m_task;
    std::vector<Need> wanted;
    std::vector<std::size_t> wantedBy;
    const BlockInfo &source = m_all.m_builder.block(made.block);
    const bool sliced = source.slices > 1 || source.lanes > 1;
    if (sliced)
        own.whole = boundingBox(made.raw);
    for (std::size_t i = 0; i < m_needs.size(); ++i) {
        const auto box = sliced ? intersection(m_needs[i].box, own.whole) : std::optional(m_needs[i].box);
        if (!box || (sliced && volumeOf(*box) == 0))
            continue;
        wanted.push_back(m_needs[i]);
        wanted.back().box = *box;
        wantedBy.push_back(i);
    }
    if (wanted.empty())
        return;
    own.block = whereFrom(made, wanted);
    own.summands = summandsOf(made.raw);
    const std::vector<Holding> holdings = m_all.convert(made, wanted, own);
    for (std::size_t i = 0; i < wanted.size(); ++i)
        m_brought[wantedBy[i]].push_back(holdings[i]);
}

/// No other device takes part: each has what it wants, of the same summands as all others.
bool Materializer::Delivery::isLocal(const Made &made, const std::vector<Need> &wanted) const
{
    std::unordered_map<std::int32_t, std::vector<const Holding *>> rawOf; // by device
    for (const Holding &h : made.raw)
        rawOf[h.device.index].push_back(&h);
    for (const Need &need : wanted) {
        const auto &own = rawOf[need.device.index];
        if (std::none_of(
                own.begin(), own.end(), [&](const Holding *h) { return contains(h->box, need.box); }))
            return false;
    }
    return std::all_of(made.raw.begin(), made.raw.end(), [&](const Holding &h) {
        return h.summands.size() == made.raw.front().summands.size()
            && h.summands == made.raw.front().summands;
    });
}

/// Devices gather what they want again from one another's pieces.
bool Materializer::Delivery::isGathered(const Made &made, const std::vector<Need> &wanted) const
{
    return std::all_of(wanted.begin(), wanted.end(), [&](const Need &need) {
        return std::any_of(made.raw.begin(), made.raw.end(), [&](const Holding &h) {
            return h.device == need.device && h.summands.empty() && contains(need.box, h.box);
        });
    });
}

/// The block that brings what another one made: the reader where its stage's devices can do so alone, a
/// transfer else; what stands at the step's ends does it there.
std::int32_t Materializer::Delivery::whereFrom(const Made &made, const std::vector<Need> &wanted)
{
    const std::int32_t reader = m_task.block;
    const BlockInfo &from = m_all.m_builder.block(made.block);
    const BlockInfo &to = m_all.m_builder.block(reader);
    if (made.block == reader || from.kind == SegmentKind::Prologue)
        return made.block;
    if (!m_all.perMicroBatch(reader))
        return reader;
    const bool stays = from.stage == to.stage
        && (isLocal(made, wanted)
            || (from.kind == SegmentKind::Forward && isBackward(to.kind) && isGathered(made, wanted)));
    return stays ? reader : m_all.transferBlock(made.block, reader);
}

Result<void> Materializer::Delivery::putTogether()
{
    for (std::size_t i = 0; i < m_needs.size(); ++i) {
        const Need &need = m_needs[i];
        if (m_brought[i].empty())
            return internal("a slice of " + name() + " is read before it is made");
        const Holding total = m_all.assemble(m_brought[i], need, m_task);
        if (!m_all.m_summands.complete(m_task.tensor, total.summands, total.box))
            return internal("only some summands of " + name() + " are made before it is read");
        m_buffers[i] = total.buffer;
        const auto &own = m_state.available.of(need.device);
        if (std::none_of(own.begin(), own.end(), [&](const Available &entry) {
                return entry.holding.box == need.box && m_all.typeOf(entry.holding) == m_task.dataType;
            }))
            m_state.available.add({total, m_task.block});
    }
    return {};
}

/// What blocks made of a tensor, without what others of them made, too: replicas in lanes. Those of the
/// reader's lane come first, and stay.
/// @param all  of which the result may be some themselves; or copies, which live as long as this
std::vector<Materializer::Made *> Materializer::Delivery::withoutOtherLanes(std::vector<Made> &all)
{
    std::vector<Made *> result;
    for (Made &made : all)
        if (!m_all.isOtherTurns(made))
            result.push_back(&made);
    const auto laneOf = [this](const Made *made) { return m_all.m_builder.block(made->block).lane; };
    if (std::all_of(result.begin(), result.end(),
            [&](const Made *made) { return m_all.m_builder.block(made->block).lanes == 1; }))
        return result;
    const std::int32_t own = m_all.m_builder.block(m_task.block).lane;
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
            m_copies.push_back(std::move(rest));
            made = &m_copies.back();
        }
        for (const Holding &h : made->raw)
            known.push_back(&h);
    }
    std::erase_if(result, [](const Made *made) { return made->raw.empty(); });
    return result;
}

/// What a block made slice by slice or lane by lane, and what it made whole beside that: apart, since each
/// has boxes of its own.
/// @return `made` itself where all is of the same boxes; else copies, which live as long as this
std::vector<Materializer::Made *> Materializer::Delivery::byReach(Made &made)
{
    const BlockInfo &block = m_all.m_builder.block(made.block);
    if (block.slices == 1 && block.lanes == 1)
        return {&made};
    std::map<std::int64_t, Made> byProducer;
    for (const Holding &h : made.raw) {
        const std::int64_t producer = h.summands.empty()
            ? -1
            : static_cast<std::int64_t>(m_all.m_summands.producerOf(m_task.tensor, h.summands.front()));
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
        m_copies.push_back(std::move(own));
        result.push_back(&m_copies.back());
    }
    return result;
}

} // namespace planloom
