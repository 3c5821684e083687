#include "widgets/timeline/timeline_proposals.h"

#include "engine/table/table_text.h"

#include <algorithm>

namespace planloom {

namespace {

Proposal refused(std::string words, std::string sentence, std::string advice = {})
{
    Proposal proposal;
    proposal.words = std::move(words);
    proposal.refusal = Error{ErrorCode::InvalidInput, std::move(sentence), std::move(advice), {}};
    return proposal;
}

std::string nameOf(const GestureContext &context, OperatorId op)
{
    return context.graph().at(op).name;
}

} // namespace

std::vector<OperatorId> forwardOperators(const Graph &graph, const std::vector<OperatorId> &operators)
{
    std::vector<OperatorId> forward;
    for (const OperatorId id : operators) {
        if (!id.valid() || static_cast<std::size_t>(id.index) >= graph.operators.size())
            continue;
        const Operator &op = graph.at(id);
        if (op.direction == Direction::Forward)
            forward.push_back(id);
        else if (op.direction == Direction::Backward && op.mirror.valid())
            forward.push_back(op.mirror);
    }
    std::sort(forward.begin(), forward.end());
    forward.erase(std::unique(forward.begin(), forward.end()), forward.end());
    return forward;
}

Proposal joinedProposal(const GestureContext &context, const Proposal &first,
    const std::function<Proposal(const GestureContext &)> &second)
{
    if (first.refusal)
        return first;
    GestureContext between = context;
    if (auto applied = between.document.apply(first.edit); !applied) {
        Proposal proposal = first;
        proposal.refusal = std::move(applied).error();
        return proposal;
    }
    Proposal last = second(between);
    if (last.refusal || first.edit.empty())
        return last;
    Proposal both = first;
    both.words += ", " + last.words;
    both.edit = joined(both.edit, last.edit);
    both.rows.insert(both.rows.end(), last.rows.begin(), last.rows.end());
    both.operators.insert(both.operators.end(), last.operators.begin(), last.operators.end());
    std::sort(both.operators.begin(), both.operators.end());
    both.operators.erase(std::unique(both.operators.begin(), both.operators.end()), both.operators.end());
    // Lines of the second count in the document that the first leaves: only those before it changed it are
    // known by number.
    both.yielding.insert(both.yielding.end(), last.yielding.begin(), last.yielding.end());
    std::sort(both.yielding.begin(), both.yielding.end());
    both.yielding.erase(std::unique(both.yielding.begin(), both.yielding.end()), both.yielding.end());
    for (std::string &sentence : last.yieldingWords) {
        if (std::find(both.yieldingWords.begin(), both.yieldingWords.end(), sentence)
            == both.yieldingWords.end())
            both.yieldingWords.push_back(std::move(sentence));
    }
    return both;
}

std::vector<DimensionChip> splitChoices(const GestureContext &context, OperatorId op, std::int32_t parts)
{
    std::vector<DimensionChip> choices;
    for (DimensionChip &chip : chipsOf(context, op)) {
        if (!chip.locked.empty() || !std::binary_search(chip.counts.begin(), chip.counts.end(), parts))
            continue;
        const bool known = std::any_of(choices.begin(), choices.end(),
            [&chip](const DimensionChip &other) { return other.dimension == chip.dimension; });
        if (!known)
            choices.push_back(std::move(chip));
    }
    return choices;
}

namespace {

/// Writes the place row of exactly these operators as a list of the devices; nothing if it is one.
Proposal devicesByName(const GestureContext &context, const SpreadGesture &gesture)
{
    Proposal proposal;
    const std::vector<std::int32_t> lines = context.document.rowLines();
    for (auto line = lines.rbegin(); line != lines.rend(); ++line) { // the newest stands last
        const Row &row = *context.document.lines()[static_cast<std::size_t>(*line)]->row;
        const auto *assign = std::get_if<OpAssignRule>(&row.rule);
        if (!assign || !row.enabled)
            continue;
        if (forwardOperators(context.graph(), context.index().select(row.selector)) != gesture.operators)
            continue;
        if (assign->devices == gesture.devices)
            break;
        Row named = row;
        named.rule = OpAssignRule{gesture.devices, {}};
        proposal.edit = replaceRow(context.document, *line, named);
        proposal.rows = {print(named)};
        break;
    }
    return proposal;
}

} // namespace

Proposal proposeSpread(const GestureContext &context, const SpreadGesture &gesture)
{
    const auto parts = static_cast<std::int32_t>(gesture.devices.size());
    SplitGesture split{.operators = gesture.operators, .on = gesture.on, .parts = parts};
    const auto place = [&gesture](const GestureContext &after) {
        return proposePlace(after, {.operators = gesture.operators, .devices = gesture.devices});
    };
    if (parts <= 1) {
        // Back on one device: by whichever dimension it is split now.
        const auto choices = chipsOf(context, gesture.on);
        for (const DimensionChip &chip : choices) {
            split.dimension = chip.dimension;
            const Proposal undone = proposeSplit(context, split);
            if (undone.accepted())
                return joinedProposal(context, undone, place);
        }
        return place(context);
    }
    const auto choices = splitChoices(context, gesture.on, parts);
    if (choices.empty()) {
        const auto chips = chipsOf(context, gesture.on);
        if (chips.empty()) {
            return refused("split over " + std::to_string(parts) + " devices",
                nameOf(context, gesture.on) + " has no dimension that can be split");
        }
        // The engine says best why the most natural one can't.
        const auto open = std::find_if(
            chips.begin(), chips.end(), [](const DimensionChip &chip) { return chip.locked.empty(); });
        split.dimension = (open == chips.end() ? chips.front() : *open).dimension;
        return proposeSplit(context, split);
    }
    split.dimension = choices[static_cast<std::size_t>(std::clamp<std::int32_t>(
                                  gesture.choice, 0, static_cast<std::int32_t>(choices.size()) - 1))]
                          .dimension;
    // The devices are named one by one and nothing else splits the operators, so that there is a part for
    // each device.
    const auto spread = [&gesture, &split](const GestureContext &freed) {
        const Proposal placed =
            proposePlace(freed, {.operators = gesture.operators, .devices = gesture.devices});
        return joinedProposal(freed, placed, [&gesture, &split](const GestureContext &after) {
            return joinedProposal(after, devicesByName(after, gesture),
                [&split](const GestureContext &named) { return proposeSplit(named, split); });
        });
    };
    Proposal whole = joinedProposal(context, proposeFree(context, gesture.operators), spread);
    if (!whole.accepted())
        whole = joinedProposal(context, proposeSplit(context, split), place);
    if (whole.accepted())
        whole.words = proposeSplit(context, split).words + " over " + std::to_string(parts) + " devices";
    return whole;
}

Proposal proposeSwap(const GestureContext &context, const std::vector<BlockRef> &between, bool onlyThis)
{
    if (between.size() < 2)
        return {};
    const BlockRef first = between.front();
    const BlockRef last = between.back();
    if (between.size() == 2)
        return proposeBlockOrder(context, last, first, onlyThis);
    // The last goes before all that are between them, the first behind them.
    const Proposal earlier = proposeBlockOrder(context, last, between[1], onlyThis);
    return joinedProposal(context, earlier, [&](const GestureContext &after) {
        return proposeBlockOrder(after, between[between.size() - 2], first, onlyThis);
    });
}

Proposal proposeAxis(
    const GestureContext &context, const std::vector<OperatorId> &operators, const std::string &axis)
{
    const auto found = std::find_if(context.mesh.begin(), context.mesh.end(),
        [&axis](const MeshAxis &each) { return each.name == axis; });
    if (operators.empty())
        return refused("split over " + axis, "there is no operator here to split over " + axis);
    if (found == context.mesh.end()) {
        return refused("split over " + axis, "the mesh has no axis \"" + axis + "\"",
            "add a mesh row with this axis, for instance mesh " + axis + "=2");
    }
    SplitGesture split{.operators = operators, .on = operators.front(), .parts = found->size, .axis = axis};
    for (const OperatorId op : operators) {
        const auto choices = splitChoices(context, op, found->size);
        if (choices.empty())
            continue;
        split.on = op;
        for (const DimensionChip &chip : choices) {
            split.dimension = chip.dimension;
            Proposal proposal = proposeSplit(context, split);
            if (!proposal.refusal || &chip == &choices.back())
                return proposal;
        }
    }
    return refused("split over " + axis,
        operators.size() == 1
            ? nameOf(context, operators.front()) + " has no dimension that can be split by "
                + std::to_string(found->size)
            : "none of these operators has a dimension that can be split by " + std::to_string(found->size));
}

Proposal proposeRemovingRows(const GestureContext &context, const std::vector<OperatorId> &operators)
{
    std::vector<std::int32_t> lines;
    for (const OperatorId op : operators) {
        for (const std::int32_t line : rowsActingOn(context, op)) {
            const auto &row = context.document.lines()[static_cast<std::size_t>(line)]->row;
            if (row && hasSelector(row->rule) && row->selector.kind != SelectorKind::All)
                lines.push_back(line);
        }
    }
    std::sort(lines.begin(), lines.end());
    lines.erase(std::unique(lines.begin(), lines.end()), lines.end());
    Proposal proposal;
    proposal.operators = operators;
    if (lines.empty())
        return refused("remove rows", "no row acts on " + wordsFor(context.index(), operators));
    proposal.words = "remove " + std::to_string(lines.size()) + (lines.size() == 1 ? " row" : " rows")
        + " acting on " + wordsFor(context.index(), operators);
    proposal.edit = removeLines(context.document, lines);
    return proposal;
}

} // namespace planloom
