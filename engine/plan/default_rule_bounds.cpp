// What the default rule does about rows that bound parts, and about operators that are cut alike or follow.
#include "engine/base/words.h"
#include "engine/binding/alike.h"
#include "engine/plan/default_rule_steps.h"
#include "engine/plan/followed_split.h"
#include "engine/plan/part_counts.h"

#include <algorithm>

namespace planloom {

/// Whether splits are legal for an operator, and for all that are cut alike with it.
bool DefaultRule::mayBe(OperatorId op, const std::vector<Split> &splits) const
{
    const auto isLegal = [&](OperatorId each) {
        std::vector<Split> own;
        for (const Split &split : splits) {
            const auto mine = splitAlike(m_graph, op, each, split);
            if (!mine)
                return false;
            own.push_back(*mine);
        }
        return checkPartition(m_graph.at(each), {own})
            && (m_draft.plan.wholeBatches || m_draft.batch().oncePerStep[at(each)]
                || leavesBatchWhole(
                    m_graph.at(each), m_draft.bound.setting.batchOf(each), batchCuts(m_draft.plan), own));
    };
    const auto alike = m_alikes.find(op);
    return alike == m_alikes.end() ? isLegal(op)
                                   : std::all_of(alike->second.begin(), alike->second.end(), isLegal);
}

/// Has what no row decided keep to the numbers of parts that rows allow: over axes of the mesh, or over the
/// devices of a list.
/// @param besides  what rows decided apart from axes
void DefaultRule::keepToParts(OperatorId op, const Domain &domain, const std::vector<Split> &besides)
{
    const OperatorBinding &binding = m_draft.bindingOf(op);
    const BoundTable::AlikeWith alike = m_draft.bound.alikeOf(op);
    if (!domain.onMesh && alike.leader && alike.leader != op) { // on a list: as the first of them
        for (const Split &split : insideBlocks(m_draft.decisionOf(alike.leader).partition))
            if (const auto mine = splitAlike(m_graph, alike.leader, op, split))
                m_splits.push_back(*mine);
        std::int64_t parts = 1;
        for (const Split &split : m_splits)
            parts *= split.parts;
        if (parts != static_cast<std::int64_t>(distinct(domain.devices).size()))
            m_draft.fail(alike.row,
                "operators '" + m_graph.at(alike.leader).name + "' and '" + m_graph.at(op).name
                    + "' are to be cut alike, and run on different numbers of devices",
                "place them on as many devices each");
        return;
    }
    std::vector<Split> taken = besides;
    for (const Allowed<Split> *each : {&binding.allowed.coshard, &binding.allowed.slices})
        if (const Split *split = each->preferred(); split && split->parts > 1)
            taken.push_back(*split);
    if (m_inLanes)
        taken.push_back(*m_inLanes);
    std::vector<FreeAxis> free;
    if (domain.onMesh) {
        for (std::size_t a = 0; a < m_splits.size(); ++a) {
            if (!m_isFree[a]) {
                taken.push_back(m_splits[a]);
                continue;
            }
            const auto said = std::find_if(binding.allowed.axes.begin(), binding.allowed.axes.end(),
                [&](const AxisMeaning &each) { return each.axis == m_splits[a].axis; });
            free.push_back({m_splits[a], said == binding.allowed.axes.end() ? nullptr : &said->allowed});
        }
        if (alike.leader && alike.leader != op) // as the first of them
            free.clear();
    } else {
        free = axesOfList(static_cast<std::int64_t>(distinct(domain.devices).size()));
    }
    std::vector<Split> all = taken;
    for (const FreeAxis &axis : free)
        all.push_back(axis.byDefault);
    const auto mends = [&] {
        return splitsKeepingTo(m_graph.at(op), binding.allowed.parts, taken, free,
            [&](const std::vector<Split> &splits) { return mayBe(op, splits); });
    };
    if (keepTo(binding.allowed.parts, all) || binding.allowed.follows || free.empty()) {
        if (!domain.onMesh)
            for (const FreeAxis &axis : free)
                m_splits.push_back(axis.byDefault);
        return; // what does not keep to them is refused with all splits known
    }
    const auto found = mends();
    if (!found)
        return;
    explain(m_draft.decisionOf(op).why, "cut as rows bound its parts");
    if (!domain.onMesh) {
        m_splits = *found;
        return;
    }
    std::size_t next = 0;
    for (std::size_t a = 0; a < m_splits.size(); ++a)
        if (m_isFree[a])
            m_splits[a] = (*found)[next++];
}

/// The cut of the first of those that are cut alike, if that was decided and has this axis.
bool DefaultRule::asItsLeader(OperatorId op, const MeshAxis &axis, Split &split)
{
    const BoundTable::AlikeWith alike = m_draft.bound.alikeOf(op);
    if (!alike.leader || alike.leader == op)
        return false;
    const auto &theirs = m_draft.decisionOf(alike.leader).partition.splits;
    const auto found =
        std::find_if(theirs.begin(), theirs.end(), [&](const Split &each) { return each.axis == axis.name; });
    if (found == theirs.end())
        return false;
    const auto mine = splitAlike(m_graph, alike.leader, op, *found);
    if (!mine)
        m_draft.fail(alike.row,
            "'" + m_graph.at(alike.leader).name + "' is cut over " + axis.name + " along a dimension that '"
                + m_graph.at(op).name + "' does not have",
            "say how they are to be cut");
    split = mine.value_or(Split{.kind = SplitKind::Replicate, .parts = axis.size, .axis = axis.name});
    return true;
}

/// Refuses what keeps to no number of parts that rows allow.
void DefaultRule::checkParts(OperatorId op)
{
    const OperatorBinding &binding = m_draft.bindingOf(op);
    const Operator &itself = m_graph.at(op);
    for (std::size_t p = 0; p < binding.allowed.parts.size(); ++p) {
        const PartsMeaning &parts = binding.allowed.parts[p];
        if (parts.bound.allows(partsOf(m_splits, parts.dimension)))
            continue;
        const std::string along = parts.dimension < 0
            ? "in all"
            : "along " + itself.annotation.dimensions[static_cast<std::size_t>(parts.dimension)].name;
        m_draft.fail(binding.partsRows[p],
            "operator '" + itself.name + "' would be cut into "
                + counted(partsOf(m_splits, parts.dimension), "part") + " " + along + ", and the row says "
                + print(parts.bound),
            "allow other numbers, use another mesh, or switch off what cuts it");
        if (binding.splitRow() >= 0)
            m_draft.bound.failBoth(m_draft.table, binding.partsRows[p], binding.splitRow(),
                std::string(clashWords(Aspect::Parts)) + " '" + itself.name + "'",
                "switch one of the rows off, or narrow its selector");
    }
}

/// Refuses rows that cut otherwise what another row has follow its producer.
void DefaultRule::checkFollowing(OperatorId op)
{
    const OperatorBinding &binding = m_draft.bindingOf(op);
    if (!binding.allowed.follows || !m_leader.op.valid())
        return;
    for (const Split &split : m_splits) {
        const auto &theirs = m_draft.decisionOf(m_leader.op).partition.splits;
        const auto led = std::find_if(theirs.begin(), theirs.end(), [&](const Split &each) {
            return !split.axis.empty() && each.axis == split.axis && each.over == split.over;
        });
        if (led == theirs.end())
            continue;
        std::vector<Split> others = m_splits;
        others.erase(others.begin() + (&split - m_splits.data()));
        const auto mine = followed(m_graph, m_leader, m_graph.at(op), *led, others);
        std::vector<Split> all = others;
        all.push_back(mine.value_or(split));
        const bool follows = mine ? mine->kind == split.kind && mine->dimension == split.dimension
                                  : split.kind == SplitKind::Replicate;
        if (follows || (mine && split.kind == SplitKind::Replicate && !mayBe(op, all)))
            continue;
        const std::string what = "operator '" + m_graph.at(op).name + "' is to follow '"
            + m_graph.at(m_leader.op).name + "' over " + split.axis + ", and is cut otherwise";
        m_draft.fail(binding.rowOf(Aspect::Follow), what, "let it follow, or say how it is to be split");
        if (binding.splitRow() >= 0)
            m_draft.bound.failBoth(m_draft.table, binding.rowOf(Aspect::Follow), binding.splitRow(),
                "cut '" + m_graph.at(op).name + "' otherwise than its producer",
                "switch one of the rows off, or narrow its selector");
        return;
    }
}

} // namespace planloom
