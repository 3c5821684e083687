#include "engine/base/text.h"
#include "engine/base/words.h"
#include "engine/gesture/acting.h"
#include "engine/gesture/hold_free.h"
#include "engine/gesture/narrow.h"
#include "engine/gesture/order_gesture.h"
#include "engine/gesture/split_gesture.h"
#include "engine/gesture/split_refusal.h"
#include "engine/table/kinds/all_kinds.h"
#include "engine/table/kinds/beside.h"
#include "engine/table/kinds/meaning.h"
#include "engine/table/table_text.h"

#include <algorithm>
#include <optional>

namespace planloom {

namespace {

constexpr std::string_view kSpaces = " \t\r\n";

/// How rows that begin with `word` go on, if they name operators.
std::optional<RuleShape> rowShapeOf(std::string_view word)
{
    std::optional<RuleShape> shape;
    anyKind([&]<typename RuleType>(std::type_identity<RuleType>) {
        const auto &words = RuleTraits<RuleType>::words;
        const bool known = RuleTraits<RuleType>::shape != RuleShape::Plain
            && std::any_of(words.begin(), words.end(), [&](std::string_view each) { return each == word; });
        if (known)
            shape = RuleTraits<RuleType>::shape;
        return known;
    });
    return shape;
}

/// Where the word "where" stands outside quotes; npos if nowhere.
std::size_t findWhere(std::string_view text)
{
    bool inside = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '"')
            inside = !inside;
        if (inside || text.substr(i, 5) != "where")
            continue;
        const bool starts = i == 0 || text[i - 1] == ' ' || text[i - 1] == '\t';
        const bool ends = i + 5 == text.size() || text[i + 5] == ' ' || text[i + 5] == '\t';
        if (starts && ends)
            return i;
    }
    return std::string_view::npos;
}

/// A selector as typed: one of the language, or a single word for a name, a module, a kind or a part of
/// names.
Result<Selector> typedSelector(const GestureContext &context, std::string_view text)
{
    if (auto selector = parseSelector(text)) {
        TRY_VOID(context.index().check(*selector));
        return *std::move(selector);
    }
    if (text.empty() || text.find_first_of(" \t&|!(){}\"") != std::string_view::npos) {
        auto error = parseSelector(text);
        return error.error();
    }
    const SelectorIndex &index = context.index();
    const std::string word(text);
    if (index.findOperator(word).valid())
        return selectName(globOf(word));
    std::vector<Selector> tries;
    if (isGlob(word))
        tries.push_back(selectName(word));
    tries.push_back(selectIn(word));
    for (int k = 0; k < kOperatorKindCount; ++k) {
        if (sameLetters(word, nameOf(static_cast<OperatorKind>(k))))
            tries.push_back({.kind = SelectorKind::Kind, .text = nameOf(static_cast<OperatorKind>(k))});
    }
    tries.push_back(selectName("*." + globOf(word)));
    tries.push_back({.kind = SelectorKind::In, .text = "*." + globOf(word)});
    tries.push_back(selectName("*" + globOf(word) + "*"));
    for (Selector &selector : tries) {
        if (selectsForwardBeyond(index, selector, {}))
            return std::move(selector);
    }
    return Error{ErrorCode::NotFound, "nothing in the model is called '" + word.substr(0, 60) + "'",
        "give a part of a name, a module, a kind such as Linear, or layer:3", "where"};
}

/// What follows "place" as people type it: "3", "h0", "tp:2".
std::string typedPlace(const GestureContext &context, std::string_view rest)
{
    const auto digits = [](std::string_view text) {
        return !text.empty()
            && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
    };
    if (!rest.empty() && rest.front() >= '0' && rest.front() <= '9')
        return "devices " + std::string(rest);
    if (rest.size() > 1 && rest.size() < 8 && rest.front() == 'h' && digits(rest.substr(1))) {
        const std::int32_t per = std::max(context.cluster.links.devicesPerNode, 1);
        const std::int64_t host = std::stol(std::string(rest.substr(1)));
        std::string text;
        for (std::int64_t d = host * per; d < std::min<std::int64_t>((host + 1) * per, context.deviceCount);
             ++d)
            text += (text.empty() ? "devices " : ",") + std::to_string(d);
        if (!text.empty())
            return text;
    }
    if (const std::size_t colon = rest.find(':');
        colon != std::string_view::npos && digits(rest.substr(colon + 1)))
        return std::string(rest.substr(0, colon)) + "=" + std::string(rest.substr(colon + 1));
    return std::string(rest);
}

/// A row about the whole plan takes the place of those that are about the same thing.
Proposal proposeWhole(const GestureContext &context, const Row &row)
{
    Proposal proposal;
    proposal.words = std::string(nameOf(row.rule)) + " " + print(row.rule);
    if (const auto *inFlight = std::get_if<InFlightRule>(&row.rule))
        return proposeInFlight(context, {inFlight->stage}, inFlight->count);
    if (const auto *mesh = std::get_if<MeshRule>(&row.rule)) {
        std::int64_t devices = 1;
        for (const MeshAxis &axis : mesh->axes)
            devices = std::min<std::int64_t>(devices * axis.size, std::int64_t{1} << 40);
        if (devices > context.deviceCount) {
            proposal.refusal =
                refusalOf("the mesh needs " + countWords(static_cast<std::size_t>(devices), "device")
                        + ", there are " + std::to_string(context.deviceCount),
                    "mesh", "make an axis smaller, or use more devices");
            return proposal;
        }
    }
    RowEdits edits(context);
    bool written = false;
    forEachRow(context, [&](std::int32_t line, const Row &old) {
        if (besides(context.graph(), old.rule, row.rule) == Beside::Apart)
            return;
        if (written)
            return edits.remove(line);
        written = true;
        if (old.rule == row.rule && old.origin != RowOrigin::Solver)
            return; // says so already
        Row changed = row;
        if (changed.note.empty())
            changed.note = old.note;
        edits.replace(line, std::move(changed));
    });
    if (!written)
        edits.append(row);
    edits.finish(proposal);
    return proposal;
}

Proposal proposeCoshard(const GestureContext &context, const Row &row,
    const std::vector<OperatorId> &operators, Proposal proposal)
{
    const auto &rule = std::get<CoshardRule>(row.rule);
    const Subset subset(context.index(), operators);
    const auto bound = boundSteps(context, subset);
    RowEdits edits(context);
    for (std::size_t i = 0; i < operators.size(); ++i) {
        Split cut{.kind = SplitKind::Dimension, .parts = rule.parts};
        const auto dimension = bindDimension(context, operators[i], rule.dimension, cut);
        if (dimension && !*dimension)
            continue;
        auto steps = bound[i];
        sortSteps(context, steps);
        if (!dimension)
            proposal.refusal = refusalOf(dimension.error().message, dimension.error().where);
        else
            proposal.refusal = checkSteps(context, operators[i], steps, cut);
        if (proposal.refusal)
            return proposal;
    }
    forEachRule<CoshardRule>(context, [&](std::int32_t line, const Row &old, const CoshardRule &other) {
        if (const auto hit = subset.selected(old.selector); !hit.empty() && other != rule)
            edits.letGo(line, hit);
    });
    edits.append(row);
    edits.finish(proposal);
    return proposal;
}

/// Any row: others let go of the operators about which they cannot hold together with it.
Proposal proposeTakingOver(const GestureContext &context, const Row &row,
    const std::vector<OperatorId> &operators, Proposal proposal)
{
    const Subset subset(context.index(), operators);
    RowEdits edits(context);
    std::vector<OperatorMeaning> said;
    for (const OperatorId op : operators) {
        auto meaning = meaningOf(context, row.rule, op);
        if (!meaning)
            return withRefusal(std::move(proposal), std::move(meaning).error());
        said.push_back(meaning->value_or(OperatorMeaning{}));
    }
    forEachRow(context, [&](std::int32_t line, const Row &old) {
        const auto acted = hasSelector(old.rule) ? actsOn(context, old.rule, subset.selected(old.selector))
                                                 : Result<std::vector<OperatorId>>(std::vector<OperatorId>{});
        std::vector<OperatorId> clashing;
        for (std::size_t i = 0; acted && i < acted->size(); ++i) {
            const OperatorId op = (*acted)[i];
            const std::int32_t at = subset.positionOf(op);
            const auto theirs = meaningOf(context, old.rule, op);
            if (at >= 0 && theirs && *theirs && clashOf(said[static_cast<std::size_t>(at)], **theirs))
                clashing.push_back(op);
        }
        if (!clashing.empty())
            edits.letGo(line, clashing);
    });
    edits.append(row);
    edits.finish(proposal);
    return proposal;
}

Proposal proposeSharding(const GestureContext &context, const Row &row, Proposal proposal)
{
    const SelectorIndex &index = context.index();
    const auto &rule = std::get<OptimizerShardingRule>(row.rule);
    if (auto check = RuleMeaning<OptimizerShardingRule>::check(context, rule); !check)
        return withRefusal(std::move(proposal), std::move(check).error());
    const auto selected = index.select(row.selector);
    std::vector<OperatorId> readers = forwardOnes(context.graph(), selected);
    for (const OperatorId op : selected) {
        if (context.graph().at(op).direction != Direction::Optimizer)
            continue;
        for (const TensorId input : context.graph().at(op).inputs) {
            if (input.valid() && context.graph().at(input).role == TensorRole::Weight) {
                const auto &users = index.uses().consumers[static_cast<std::size_t>(input.index)];
                readers = united(readers, forwardOnes(context.graph(), users));
            }
        }
    }
    RowEdits edits(context);
    forEachRule<OptimizerShardingRule>(
        context, [&](std::int32_t line, const Row &old, const OptimizerShardingRule &other) {
            if (other != rule)
                freeSharding(context, edits, line, old, readers);
        });
    proposal.operators = std::move(readers);
    edits.append(row);
    edits.finish(proposal);
    return proposal;
}

Proposal proposeTypedOrder(const GestureContext &context, const Row &row, Proposal proposal)
{
    const auto &rule = std::get<OpOrderRule>(row.rule);
    if (const auto known = context.index().check(rule.second); !known)
        return withRefusal(std::move(proposal), known.error());
    const auto first = ofOneDirection(context.graph(), context.index().select(row.selector));
    const auto second = ofOneDirection(context.graph(), context.index().select(rule.second));
    if (first.empty() || second.empty())
        return withRefusal(
            std::move(proposal), refusalOf("one side of the order names no operator", "order"));
    return proposeOrder(context, {first, second, rule.microBatchOffset, rule.microBatch});
}

/// A row about two selections that gives way to no other.
Proposal proposePair(const GestureContext &context, const Row &row, const Selector &second, Proposal proposal)
{
    if (const auto known = context.index().check(second); !known)
        return withRefusal(std::move(proposal), known.error());
    proposal.operators = ofOneDirection(context.graph(), context.index().select(row.selector));
    if (proposal.operators.empty() || ofOneDirection(context.graph(), context.index().select(second)).empty())
        return withRefusal(
            std::move(proposal), refusalOf("one of the two selectors names no operator", nameOf(row.rule)));
    RowEdits edits(context);
    edits.append(row);
    edits.finish(proposal);
    return proposal;
}

/// A row typed in full, with what gives way to it.
Proposal proposeRow(const GestureContext &context, Row row)
{
    row.origin = RowOrigin::Text;
    if (!hasSelector(row.rule))
        return proposeWhole(context, row);
    Proposal proposal;
    proposal.words = std::string(nameOf(row.rule)) + " " + print(row.rule);
    if (const auto known = context.index().check(row.selector); !known)
        return withRefusal(std::move(proposal), known.error());
    if (std::holds_alternative<OpOrderRule>(row.rule))
        return proposeTypedOrder(context, row, std::move(proposal));
    if (const Selector *second = secondSelectorOf(row.rule))
        return proposePair(context, row, *second, std::move(proposal));
    if (std::holds_alternative<OptimizerShardingRule>(row.rule))
        return proposeSharding(context, row, std::move(proposal));
    const auto operators = forwardSelected(context.index(), row.selector);
    if (operators.empty())
        return withRefusal(std::move(proposal),
            refusalOf("the selector names no forward operator", "selector",
                "select forward operators: backward ones follow them"));
    proposal.operators = operators;
    if (print(row.rule).empty() || std::holds_alternative<RecomputeRule>(row.rule))
        proposal.words = std::string(nameOf(row.rule)) + " " + wordsFor(context.index(), operators);
    if (const auto *trans = std::get_if<OpTransRule>(&row.rule))
        return proposeSteps(context, operators, trans->steps, proposal.words, &row.selector);
    if (const auto *assign = std::get_if<OpAssignRule>(&row.rule)) {
        PlaceGesture gesture{operators, assign->devices, assign->coordinates, false};
        if (assign->devices.empty() && assign->coordinates.empty()) {
            if (context.mesh.empty()) {
                proposal.refusal =
                    refusalOf("there is no mesh to place on", "mesh", "add a row such as: mesh dp=2");
                return proposal;
            }
            gesture.devices = domainOnMesh(context.mesh, {}).devices;
        }
        return proposePlaceOf(context, gesture, &row.selector);
    }
    if (const auto *stage = std::get_if<StageRule>(&row.rule))
        return proposeStageOf(context, operators, {stage->index}, &row.selector);
    if (std::holds_alternative<CoshardRule>(row.rule))
        return proposeCoshard(context, row, operators, std::move(proposal));
    return proposeTakingOver(context, row, operators, std::move(proposal));
}

/// Says of each row that the typed one takes the place of that it does, behind what is said of those that
/// give way.
Proposal withReplaced(const GestureContext &context, Proposal proposal)
{
    std::int32_t shift = 0; // splices lie one behind the other
    for (const TableSplice &splice : proposal.edit.splices) {
        for (std::size_t i = 0; i < splice.removed.size(); ++i) {
            const std::int32_t line = splice.line - shift + static_cast<std::int32_t>(i);
            const bool yields = std::find(proposal.yielding.begin(), proposal.yielding.end(), line)
                != proposal.yielding.end();
            if (!yields && context.document.lines()[static_cast<std::size_t>(line)]->row)
                proposal.yieldingWords.push_back("replaces " + rowWords(line));
        }
        shift += static_cast<std::int32_t>(splice.inserted.size())
            - static_cast<std::int32_t>(splice.removed.size());
    }
    return proposal;
}

} // namespace

Proposal proposeText(
    const GestureContext &context, std::string_view text, const std::vector<OperatorId> &selected)
{
    text = trimmed(text);
    if (text == "hold")
        return proposeHold(context, selected);
    if (text == "free")
        return proposeFree(context, selected);
    Proposal proposal;
    proposal.words = std::string(text.substr(0, 80));
    auto row = parseRow(text);
    if (row) {
        if (row->enabled)
            return withReplaced(context, proposeRow(context, *std::move(row)));
        RowEdits edits(context);
        edits.append(*std::move(row));
        edits.finish(proposal);
        return proposal;
    }
    const std::string_view word = text.substr(0, text.find_first_of(kSpaces));
    const auto shape = rowShapeOf(word);
    if (!shape)
        return withRefusal(std::move(proposal), row.error());
    const std::size_t where = findWhere(text);
    const std::string_view given = where == std::string_view::npos ? text : text.substr(0, where);
    Selector selector;
    if (where != std::string_view::npos) {
        auto typed = typedSelector(context, trimmed(text.substr(where + 5)));
        if (!typed)
            return withRefusal(std::move(proposal), std::move(typed).error());
        selector = *std::move(typed);
    } else {
        const auto operators = actingForward(context, selected);
        if (operators.empty()) {
            proposal.refusal = row.error();
            proposal.refusal->advice =
                "select operators first, or name them: " + std::string(word) + " ... where NAME";
            return proposal;
        }
        selector = selectorFor(context.index(), operators);
    }
    const std::string_view rest = trimmed(given.substr(word.size()));
    const std::string written = std::string(word) + " " + toString(selector)
        + (*shape == RuleShape::Colon ? " : " : " ")
        + (word == "place" ? typedPlace(context, rest) : std::string(rest));
    auto meant = parseRow(written);
    if (meant)
        return withReplaced(context, proposeRow(context, *std::move(meant)));
    // The error of the row as typed would point into what the selector stands in.
    proposal.refusal = meant.error();
    proposal.refusal->where = "command";
    return proposal;
}

} // namespace planloom
