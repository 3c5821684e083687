#include "engine/verify/communication_rules.h"

#include "engine/verify/combination_rules.h"

#include <algorithm>
#include <optional>

namespace planloom {

namespace {

/// Chunk `i` of `count` along a dimension; nothing if it does not divide.
std::optional<IndexMask> chunkOf(
    const IndexMask &box, std::int32_t dimension, std::size_t i, std::size_t count)
{
    IndexMask result = box;
    Range &range = result.ranges[static_cast<std::size_t>(dimension)];
    const auto parts = static_cast<std::int64_t>(count);
    if (range.size() % parts != 0)
        return std::nullopt;
    const std::int64_t extent = range.size() / parts;
    range.begin += extent * static_cast<std::int64_t>(i);
    range.end = range.begin + extent;
    return result;
}

/// What a collective of all `sides` means. Its members have been found to be at the same instruction, with
/// the buffers it needs.
class CollectiveRules : RuleContext
{
public:
    CollectiveRules(const ExecutionPlan &of, const Specification &by, const std::vector<Side> &sides)
        : RuleContext{of, by}
        , m_sides(sides)
        , m_first(*sides.front().instruction)
        , m_name(nameOf(m_first.kind))
        , m_source(sides.front().inputs[0])
    {
        for (const Side &side : sides)
            if (!side.inputs.empty() && side.inputs[0].box)
                m_sets.push_back(side.inputs[0].summands);
    }

    std::string check() const
    {
        for (const Side &side : m_sides)
            for (const auto *list : {&side.inputs, &side.outputs})
                for (const Content &content : *list)
                    if (content.box && !goesTogether(content, list == &side.outputs))
                        return m_name + " mixes " + textOf(m_source) + " with " + textOf(content);
        if (m_first.acrossUnits)
            return checkAcrossUnits();
        switch (m_first.kind) {
        case InstructionKind::AllReduce:
        case InstructionKind::ReduceScatter:
            return checkReduction();
        case InstructionKind::AllGather:
            return checkAllGather();
        case InstructionKind::AllToAll:
            return checkAllToAll();
        case InstructionKind::Shift:
            return checkShift();
        case InstructionKind::Broadcast:
            return checkBroadcast();
        default:
            return m_name + " is no communication";
        }
    }

private:
    std::size_t count() const { return m_sides.size(); }
    bool hasDimension(std::int32_t dimension) const
    {
        return dimension >= 0 && dimension < static_cast<std::int32_t>(m_source.box->ranges.size());
    }
    /// Same tensor, same version, and what goes with the source's.
    bool goesTogether(const Content &content, bool isOutput) const;
    /// A collective among one device of all units: what each has follows from what one has.
    std::string checkAcrossUnits() const
    {
        const Content &in = m_source;
        const Content &out = m_sides.front().outputs[0];
        const auto wrong = [&] {
            return std::string(nameOf(m_first.kind)) + " across units cannot make " + textOf(out) + " of "
                + textOf(in);
        };
        const std::int32_t dimension = m_first.dimension;
        const bool scatters = m_first.kind == InstructionKind::ReduceScatter;
        const bool gathers = m_first.kind == InstructionKind::AllGather;
        if (*in.summands != *out.summands)
            return wrong();
        if ((scatters || gathers)
            && (dimension < 0 || dimension >= static_cast<std::int32_t>(in.box->ranges.size())))
            return std::string(nameOf(m_first.kind)) + " has no such dimension";
        if (m_first.kind == InstructionKind::AllReduce)
            return !in.perMicroBatch && !out.perMicroBatch && in.share == UnitShare::Partial
                    && out.share == UnitShare::Same && *in.box == *out.box
                ? std::string{}
                : wrong();
        if (scatters) {
            // Of the step's sums; or of one micro-batch of each unit, if what it makes is a sum over
            // micro-batches.
            const bool sums = in.perMicroBatch
                ? out.perMicroBatch && in.share == UnitShare::Same && roleOf(in.tensor) == BatchRole::Summand
                : !out.perMicroBatch && in.share == UnitShare::Partial;
            return sums && out.share == UnitShare::Shard && out.shardDimension == dimension
                    && ofAllUnits(out) == *in.box
                ? std::string{}
                : wrong();
        }
        if (gathers) {
            // A sum over the units' micro-batches is none for a micro-batch of one unit.
            const bool same = in.perMicroBatch == out.perMicroBatch || in.persistent;
            return same && !(in.perMicroBatch && differs(in.tensor)) && in.share == UnitShare::Shard
                    && in.shardDimension == dimension && out.share == UnitShare::Same
                    && ofAllUnits(in) == *out.box
                ? std::string{}
                : wrong();
        }
        return wrong();
    }

    /// All-reduce, reduce-scatter.
    std::string checkReduction() const
    {
        const bool scatters = m_first.kind == InstructionKind::ReduceScatter;
        if (scatters && !hasDimension(m_first.dimension))
            return "reduce-scatter has no such dimension";
        const auto all = unionOf(m_sets, specification.at(m_source.tensor).summandCount);
        if (!all)
            return m_name + " would count summands of " + nameOfTensor(m_source.tensor) + " twice";
        for (std::size_t i = 0; i < count(); ++i) {
            const Content &to = m_sides[i].outputs[0];
            if (*m_sides[i].inputs[0].box != *m_source.box)
                return m_name + " adds different boxes: " + textOf(m_source) + " and "
                    + textOf(m_sides[i].inputs[0]);
            const auto expected = scatters ? chunkOf(*m_source.box, m_first.dimension, i, count())
                                           : std::optional(*m_source.box);
            if (!expected || *to.box != *expected
                || !specification.isSame(m_source.tensor, *to.summands, *all, *to.box))
                return m_name + " does not give device " + std::to_string(m_sides[i].device.index) + " "
                    + textOf(to);
        }
        return {};
    }

    std::string checkAllGather() const
    {
        if (!hasDimension(m_first.dimension))
            return "all-gather has no such dimension";
        const auto d = static_cast<std::size_t>(m_first.dimension);
        IndexMask gathered = *m_source.box;
        for (std::size_t i = 1; i < count(); ++i) {
            IndexMask next = *m_sides[i].inputs[0].box;
            if (next.ranges[d].begin != gathered.ranges[d].end
                || next.ranges[d].size() != m_source.box->ranges[d].size())
                return "all-gather's pieces do not follow one another";
            gathered.ranges[d].end = next.ranges[d].end;
            next.ranges[d] = gathered.ranges[d];
            if (next != gathered)
                return "all-gather's pieces differ in more than its dimension";
        }
        for (const Side &side : m_sides)
            for (std::size_t i = 0; i < count(); ++i)
                if (!specification.isSame(
                        m_source.tensor, *m_sets[i], *side.outputs[0].summands, *m_sides[i].inputs[0].box))
                    return "all-gather's pieces differ in more than its dimension";
        for (const Side &side : m_sides)
            if (*side.outputs[0].box != gathered)
                return "all-gather does not make " + textOf(side.outputs[0]);
        return {};
    }

    std::string checkAllToAll() const
    {
        if (!hasDimension(m_first.dimension) || !hasDimension(m_first.gatherDimension)
            || m_first.dimension == m_first.gatherDimension)
            return "all-to-all has no such dimensions";
        const auto g = static_cast<std::size_t>(m_first.gatherDimension);
        for (std::size_t i = 0; i < count(); ++i) {
            std::optional<IndexMask> expected;
            for (std::size_t j = 0; j < count(); ++j) {
                const auto piece = chunkOf(*m_sides[j].inputs[0].box, m_first.dimension, i, count());
                if (!piece
                    || !specification.isSame(
                        m_source.tensor, *m_sets[j], *m_sides[i].outputs[0].summands, *piece))
                    return "all-to-all's pieces do not divide";
                if (!expected) {
                    expected = piece;
                    continue;
                }
                IndexMask next = *piece;
                if (next.ranges[g].begin != expected->ranges[g].end
                    || next.ranges[g].size() != m_source.box->ranges[g].size())
                    return "all-to-all's pieces do not follow one another";
                expected->ranges[g].end = next.ranges[g].end;
                next.ranges[g] = expected->ranges[g];
                if (next != *expected)
                    return "all-to-all's pieces do not fit together";
            }
            if (*m_sides[i].outputs[0].box != *expected)
                return "all-to-all does not give device " + std::to_string(m_sides[i].device.index) + " "
                    + textOf(m_sides[i].outputs[0]);
        }
        return {};
    }

    std::string checkShift() const
    {
        for (std::size_t i = 0; i < count(); ++i) {
            const Content &from = m_sides[(i + count() - 1) % count()].inputs[0];
            const Content &to = m_sides[i].outputs[0];
            if (*from.box != *to.box || *from.summands != *to.summands)
                return "shift of " + textOf(from) + " is received as " + textOf(to);
        }
        return {};
    }

    std::string checkBroadcast() const
    {
        for (const Side &side : m_sides)
            for (const Content &to : side.outputs) // the first member's is its own affair, but must be right
                if (to.box && (*to.box != *m_source.box || *to.summands != *m_source.summands))
                    return "broadcast of " + textOf(m_source) + " is received as " + textOf(to);
        return {};
    }

    const std::vector<Side> &m_sides;
    const Instruction &m_first;
    std::string m_name;
    const Content &m_source;
    std::vector<const SummandSet *> m_sets{}; ///< Of the inputs.
};

bool CollectiveRules::goesTogether(const Content &content, bool isOutput) const
{
    const bool matches = alike(content, m_source) && (m_first.acrossUnits || sharedAlike(content, m_source))
        && (content.perMicroBatch == m_source.perMicroBatch || stays(m_source))
        && !(isOutput && content.persistent);
    return matches
        || (content.tensor == m_source.tensor && content.staleness == m_source.staleness && content.persistent
            && !isOutput && !moves(m_source.tensor));
}

/// Whether the members of a collective are at the same instruction, each with its buffers.
std::string checkMembers(const std::vector<Side> &sides)
{
    const Instruction &first = *sides.front().instruction;
    const std::string name = nameOf(first.kind);
    const auto hasBuffer = [](const Content &content) { return content.box != nullptr; };
    for (const Side &side : sides) {
        const Instruction &own = *side.instruction;
        if (own.kind != first.kind || own.dimension != first.dimension
            || own.gatherDimension != first.gatherDimension)
            return name + " meets " + nameOf(own.kind) + " on device " + std::to_string(side.device.index);
        const bool wantsInput = first.kind != InstructionKind::Broadcast || &side == &sides.front();
        const bool wantsOutput = first.kind != InstructionKind::Broadcast || &side != &sides.front();
        if ((wantsInput && (side.inputs.size() != 1 || !side.inputs[0].box))
            || (wantsOutput && (side.outputs.size() != 1 || !side.outputs[0].box)) || side.outputs.size() > 1
            || (!wantsInput && std::any_of(side.inputs.begin(), side.inputs.end(), hasBuffer)))
            return name + " lacks a buffer on device " + std::to_string(side.device.index);
    }
    return {};
}

std::string checkSend(const RuleContext &context, const Side &sender, const Side &receiver)
{
    if (sender.inputs.size() != 1 || !sender.inputs[0].box || !sender.outputs.empty()
        || receiver.outputs.size() != 1 || !receiver.outputs[0].box || !receiver.inputs.empty())
        return "send expects one input, recv one output";
    const Content &from = sender.inputs[0];
    const Content &to = receiver.outputs[0];
    if (!alike(from, to) || !sharedAlike(from, to) || *from.box != *to.box || *from.summands != *to.summands
        || (from.perMicroBatch != to.perMicroBatch && !context.stays(from)) || to.persistent)
        return "send of " + context.textOf(from) + " is received as " + context.textOf(to);
    return {};
}

} // namespace

std::string checkCommunication(
    const ExecutionPlan &plan, const Specification &specification, const std::vector<Side> &sides)
{
    for (const Side &side : sides)
        if (auto reason = checkCombination(plan, specification, side); !reason.empty())
            return reason;
    const InstructionKind kind = sides.front().instruction->kind;
    if (kind == InstructionKind::Send || kind == InstructionKind::Recv)
        return checkSend({plan, specification}, sides[0], sides[1]);
    if (std::string reason = checkMembers(sides); !reason.empty())
        return reason;
    return CollectiveRules(plan, specification, sides).check();
}

} // namespace planloom
