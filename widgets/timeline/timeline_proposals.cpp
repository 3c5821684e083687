#include "widgets/timeline/timeline_proposals.h"

#include "engine/table/table_text.h"

#include <algorithm>
#include <charconv>

namespace planloom {

namespace {

constexpr std::size_t kMostDevices = 1u << 20;

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

Error notAPlace(std::string_view text)
{
    return {ErrorCode::InvalidInput, "\"" + std::string(text) + "\" names no device",
        "write a device (3), several (0-3, 5), a node (h0), a part of the mesh (tp:2), or free", {}};
}

std::optional<std::int32_t> numberIn(std::string_view text)
{
    std::int32_t number = 0;
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (failure != std::errc{} || end != text.data() + text.size() || number < 0)
        return {};
    return number;
}

std::string_view trimmed(std::string_view text)
{
    while (!text.empty() && (text.front() == ' ' || text.front() == '\t'))
        text.remove_prefix(1);
    while (!text.empty() && (text.back() == ' ' || text.back() == '\t'))
        text.remove_suffix(1);
    return text;
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
    // Lines of the second count in the document that the first leaves: only those before it changed it are known by number.
    both.yielding.insert(both.yielding.end(), last.yielding.begin(), last.yielding.end());
    std::sort(both.yielding.begin(), both.yielding.end());
    both.yielding.erase(std::unique(both.yielding.begin(), both.yielding.end()), both.yielding.end());
    for (std::string &sentence : last.yieldingWords) {
        if (std::find(both.yieldingWords.begin(), both.yieldingWords.end(), sentence) == both.yieldingWords.end())
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
        if (forwardOperators(context.graph(), context.index->select(row.selector)) != gesture.operators)
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
    split.dimension
        = choices[static_cast<std::size_t>(std::clamp<std::int32_t>(
                      gesture.choice, 0, static_cast<std::int32_t>(choices.size()) - 1))]
              .dimension;
    // The devices are named one by one and nothing else splits the operators, so that there is a part for each device.
    const auto spread = [&gesture, &split](const GestureContext &freed) {
        const Proposal placed = proposePlace(freed, {.operators = gesture.operators, .devices = gesture.devices});
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

Proposal proposeAxis(const GestureContext &context, const std::vector<OperatorId> &operators, const std::string &axis)
{
    const auto found = std::find_if(
        context.mesh.begin(), context.mesh.end(), [&axis](const MeshAxis &each) { return each.name == axis; });
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
        operators.size() == 1 ? nameOf(context, operators.front()) + " has no dimension that can be split by "
                + std::to_string(found->size)
                              : "none of these operators has a dimension that can be split by "
                + std::to_string(found->size));
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
        return refused("remove rows", "no row acts on " + wordsFor(*context.index, operators));
    proposal.words = "remove " + std::to_string(lines.size()) + (lines.size() == 1 ? " row" : " rows") + " acting on "
        + wordsFor(*context.index, operators);
    proposal.edit = removeLines(context.document, lines);
    return proposal;
}

Result<PlaceGesture> placeFromText(const GestureContext &context, std::string_view text)
{
    PlaceGesture gesture;
    text = trimmed(text);
    if (text.empty())
        return notAPlace(text);
    if (text == "free")
        return gesture;
    const auto addDevices = [&](std::int32_t first, std::int32_t last) -> Result<void> {
        if (first > last || last >= context.deviceCount) {
            return Error{ErrorCode::InvalidInput,
                "there is no device " + std::to_string(std::max(first, last)) + ": devices are 0 to "
                    + std::to_string(context.deviceCount - 1)};
        }
        for (std::int32_t device = first; device <= last && gesture.devices.size() < kMostDevices; ++device)
            gesture.devices.push_back(DeviceId{device});
        return {};
    };
    std::size_t begin = 0;
    while (begin <= text.size()) {
        const std::size_t end = std::min(text.find(',', begin), text.size());
        const std::string_view part = trimmed(text.substr(begin, end - begin));
        begin = end + 1;
        if (const std::size_t colon = part.find_first_of(":="); colon != std::string_view::npos) {
            const std::string axis(trimmed(part.substr(0, colon)));
            const auto index = numberIn(trimmed(part.substr(colon + 1)));
            const auto found = std::find_if(context.mesh.begin(), context.mesh.end(),
                [&axis](const MeshAxis &each) { return each.name == axis; });
            if (found == context.mesh.end())
                return Error{ErrorCode::InvalidInput, "the mesh has no axis \"" + axis + "\""};
            if (!index || *index >= found->size) {
                return Error{ErrorCode::InvalidInput,
                    "places along " + axis + " are 0 to " + std::to_string(found->size - 1)};
            }
            gesture.coordinates.push_back({axis, *index});
        } else if (!part.empty() && part.front() == 'h') {
            const auto node = numberIn(part.substr(1));
            const std::int32_t perNode = std::max(context.cluster.links.devicesPerNode, 1);
            if (!node)
                return notAPlace(part);
            if (*node > (context.deviceCount - 1) / perNode)
                return Error{ErrorCode::InvalidInput, "there is no node " + std::to_string(*node)};
            TRY_VOID(addDevices(*node * perNode, std::min((*node + 1) * perNode, context.deviceCount) - 1));
        } else {
            const std::size_t dash = part.find('-');
            const auto first = numberIn(trimmed(part.substr(0, dash)));
            const auto last = dash == std::string_view::npos ? first : numberIn(trimmed(part.substr(dash + 1)));
            if (!first || !last)
                return notAPlace(part);
            TRY_VOID(addDevices(*first, *last));
        }
        if (end == text.size())
            break;
    }
    if (!gesture.devices.empty() && !gesture.coordinates.empty())
        return Error{ErrorCode::InvalidInput, "name devices or a part of the mesh, not both"};
    return gesture;
}

} // namespace planloom
