#include "engine/gallery/gallery_find.h"

#include "engine/base/words.h"
#include "engine/gallery/gallery_experts.h"
#include "engine/gallery/gallery_passes.h"
#include "engine/gallery/gallery_pipeline.h"
#include "engine/gallery/gallery_rows.h"
#include "engine/gallery/gallery_tensor_parallel.h"
#include "engine/gallery/layer_modules.h"
#include "engine/gallery/usual_rows.h"
#include "engine/table/kinds/order/schedule.h"
#include "engine/table/layer_layout.h"
#include "engine/table/table_text.h"
#include "engine/table/text_cursor.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <iterator>
#include <set>

namespace planloom {

namespace {

Error notFound(std::string message, std::string advice = {})
{
    return {ErrorCode::InvalidInput, std::move(message), std::move(advice), "gallery"};
}

bool hasDimension(const Model &model, OperatorId op, DimensionMeaning meaning)
{
    if (meaning == DimensionMeaning::Batch)
        return model.batch->operatorDimension[static_cast<std::size_t>(op.index)] >= 0;
    return findMeant(model.index->dimensions(), *model.graph, op, meaning).identifier >= 0;
}

/// Two sequences that the queries of an attention lie in: the one that it compares, and one beside it.
bool isAxial(const Model &model, OperatorId id)
{
    const Operator &op = model.graph->at(id);
    if (op.kind != OperatorKind::Attention || op.outputs.empty() || !op.outputs[0])
        return false;
    const DimensionClasses &classes = model.index->dimensions();
    std::set<DimensionClassId> sequences;
    for (const DimensionClassId each : classes.ofTensor[static_cast<std::size_t>(op.outputs[0].index)])
        if (each.valid())
            if (const auto found = leadingWith(classes, each, DimensionMeaning::Sequence); found.valid())
                sequences.insert(found);
    return sequences.size() > 1;
}

bool anyForward(const Model &model, const std::function<bool(OperatorId)> &is)
{
    for (std::size_t i = 0; i < model.graph->operators.size(); ++i)
        if (const OperatorId op{static_cast<std::int32_t>(i)};
            model.graph->at(op).direction == Direction::Forward && is(op))
            return true;
    return false;
}

std::int32_t numberIn(std::string_view text, std::int32_t missing)
{
    std::int32_t number = missing;
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
    return failure == std::errc{} && end == text.data() + text.size() ? number : missing;
}

/// Operators outside of a pipeline's stages: before them, behind them.
struct Outside {
    std::vector<OperatorId> head{};
    std::vector<OperatorId> tail{};
    std::vector<bool> outside{}; ///< By operator: these, and what reads the tail.
};

Outside outsideOf(const SelectorIndex &index, const Selector &among)
{
    Outside found;
    const Graph &graph = index.graph();
    if (among.kind == SelectorKind::All)
        return found;
    found.outside.assign(graph.operators.size(), true);
    for (const OperatorId op : index.select(among))
        found.outside[static_cast<std::size_t>(op.index)] = false;
    const std::vector<bool> without = weightless(index);
    std::vector<bool> isBehind(graph.operators.size(), false); // something that has a stage
    std::vector<bool> isTail(graph.operators.size(), false); // or behind the tail
    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
        if (graph.operators[i].direction != Direction::Forward)
            continue;
        bool tail = false;
        for (const TensorId input : graph.operators[i].inputs) {
            if (!input)
                continue;
            for (const OperatorId maker : index.uses().producers[static_cast<std::size_t>(input.index)]) {
                const auto m = static_cast<std::size_t>(maker.index);
                isBehind[i] = isBehind[i] || isBehind[m] || (!found.outside[m] && !without[m]);
                tail = tail || isTail[m];
            }
        }
        isTail[i] = tail || (found.outside[i] && isBehind[i]);
        if (found.outside[i])
            (isTail[i] ? found.tail : found.head).push_back({static_cast<std::int32_t>(i)});
        found.outside[i] = found.outside[i] || tail;
    }
    return found;
}

/// Consecutive stages, balanced; where they lie, the slowest of their devices counts.
Result<void> appendStages(const FindLine &line, const FindSetting &setting, ConstraintTable &table)
{
    const SelectorIndex &index = *setting.model.index;
    const std::string &axis = line.axis;
    const std::int32_t ranks = setting.sizeOf(axis);
    const std::int32_t count = ranks * line.times;
    std::int32_t outer = 1; // devices beside the axis
    std::int32_t inner = 1;
    bool isBehind = false;
    for (const MeshAxis &each : setting.mesh) {
        if (each.name == axis)
            isBehind = true;
        else
            (isBehind ? inner : outer) *= each.size;
    }
    const auto rankOf = [&](std::int32_t stage) {
        const bool up = line.waves && stage / ranks % 2 == 1;
        return up ? ranks - 1 - stage % ranks : stage % ranks;
    };
    std::vector<std::set<std::int32_t>> classes(static_cast<std::size_t>(count));
    for (std::size_t s = 0; s < classes.size(); ++s)
        for (std::int32_t o = 0; o < outer; ++o)
            for (std::int32_t i = 0; i < inner; ++i)
                classes[s].insert(setting.costs.model().classOf(
                    {(o * ranks + rankOf(static_cast<std::int32_t>(s))) * inner + i}));
    const Outside out = outsideOf(index, line.among);
    // Around these stages, what is outside of them has a first and a last one on the whole mesh.
    const std::int32_t first = out.head.empty() ? 0 : 1;
    TRY(const auto stages, pipelineStages(index, count, setting.costs, classes, out.outside));
    for (const auto &[operators, number] : {std::pair{&out.head, 0}, {&out.tail, first + count}}) {
        if (operators->empty())
            continue;
        const Selector selector = selectAny(selectorsByName(index, *operators));
        table.rows.push_back(templateRow(selector, OpAssignRule{}));
        table.rows.push_back(templateRow(selector, StageRule{number}));
    }
    for (std::size_t s = 0; s < stages.size(); ++s) {
        const Selector selector = stageSelector(index, stages[s]);
        const auto number = static_cast<std::int32_t>(s);
        table.rows.push_back(templateRow(selector, OpAssignRule{{}, {{axis, rankOf(number)}}}));
        table.rows.push_back(templateRow(selector, StageRule{number + first}));
        // So many micro-batches are in flight from here to the end and back (PipeDream, SOSP '19,
        // section 3.3).
        if (line.versions && number + 1 < ranks)
            table.rows.push_back(templateRow(selector, WeightVersionsRule{ranks - number}));
    }
    return {};
}

/// One half of every micro-batch runs through the devices forth, the other back.
Result<void> appendBothWays(const FindLine &line, const FindSetting &setting, ConstraintTable &table)
{
    const SelectorIndex &index = *setting.model.index;
    const std::int32_t ranks = setting.sizeOf(line.axis);
    if (ranks % 2 != 0)
        return notFound(
            "pipelines in both directions need an even number of devices, not " + std::to_string(ranks));
    table.rows.push_back(templateRow({}, LanesRule{}));
    TRY(const auto stages, pipelineStages(index, ranks, setting.costs));
    for (std::size_t s = 0; s < stages.size(); ++s) {
        const Selector selector = stageSelector(index, stages[s]);
        const auto number = static_cast<std::int32_t>(s);
        table.rows.push_back(
            templateRow(selector, OpAssignRule{{DeviceId{number}, DeviceId{ranks - 1 - number}}, {}}));
        table.rows.push_back(templateRow(selector, StageRule{number}));
    }
    return {};
}

} // namespace

std::string foundSetForms()
{
    return "with MEANING, behind MEANING, shared weights";
}

Result<FoundSet> readFoundSet(std::string_view text)
{
    if (text == "shared weights")
        return FoundSet{FoundSet::Kind::SharedWeights, {}};
    for (const auto &[word, kind] :
        {std::pair{std::string_view("with "), FoundSet::Kind::With}, {"behind ", FoundSet::Kind::Behind}})
        if (text.starts_with(word))
            if (const auto meaning = dimensionMeaningNamed(text.substr(word.size())))
                return FoundSet{kind, *meaning};
    return notFound("expected a parameter or a set of operators in braces, found {"
        + std::string(text.substr(0, 60)) + "}");
}

std::vector<OperatorId> membersOf(const FoundSet &set, const Model &model)
{
    const Graph &graph = *model.graph;
    std::vector<OperatorId> members;
    if (set.kind == FoundSet::Kind::SharedWeights) {
        for (std::size_t t = 0; t < graph.tensors.size(); ++t) {
            if (graph.tensors[t].role != TensorRole::Weight)
                continue;
            std::vector<OperatorId> readers = model.index->uses().consumers[t];
            std::erase_if(
                readers, [&](OperatorId op) { return graph.at(op).direction != Direction::Forward; });
            if (readers.size() > 1)
                members.insert(members.end(), readers.begin(), readers.end());
        }
        std::sort(members.begin(), members.end());
        members.erase(std::unique(members.begin(), members.end()), members.end());
        return members;
    }
    std::vector<bool> isBehind(graph.tensors.size(), false);
    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
        const OperatorId op{static_cast<std::int32_t>(i)};
        if (graph.operators[i].direction != Direction::Forward)
            continue;
        const bool has = hasDimension(model, op, set.meaning);
        const bool reads = std::any_of(graph.operators[i].inputs.begin(), graph.operators[i].inputs.end(),
            [&](TensorId input) { return input && isBehind[static_cast<std::size_t>(input.index)]; });
        if (set.kind == FoundSet::Kind::With ? has : reads && !has)
            members.push_back(op);
        for (const TensorId output : graph.operators[i].outputs)
            if (output)
                isBehind[static_cast<std::size_t>(output.index)] = has || reads;
    }
    return members;
}

Result<FindLine> readFindLine(std::string_view text)
{
    const std::string advice = "pairs, sequence between pairs, experts, stages, stages both ways or passes, "
                               "and: over AXIS; or recomputation, offloading";
    using Kind = FindLine::Kind;
    FindLine line;
    for (const auto &[word, kind] : {std::pair{std::string_view("recomputation"), Kind::Recomputation},
             {"offloading", Kind::Offloading}}) {
        if (!text.starts_with(word))
            continue;
        line.kind = kind;
        if (text == word)
            return line;
        const std::string_view rest = text.substr(word.size());
        if (constexpr std::string_view kOf = " of "; rest.starts_with(kOf))
            line.modules = rest.substr(kOf.size());
        if (!line.modules.empty() && line.modules != "full")
            TRY_VOID(readLayerModules(line.modules));
        if (!line.modules.empty())
            return line;
    }
    bool known = false;
    for (const auto &[words, kind] : {std::pair{std::string_view("pairs "), Kind::Pairs},
             {"sequence between pairs ", Kind::BetweenPairs}, {"experts ", Kind::Experts},
             {"stages both ways ", Kind::BothWays}, {"stages ", Kind::Stages}, {"passes ", Kind::Passes}})
        if (!known && text.starts_with(words)) {
            line.kind = kind;
            text.remove_prefix(words.size());
            known = true;
        }
    if (!known)
        return notFound("expected what to find, found '" + std::string(text.substr(0, 60)) + "'", advice);
    TextCursor cursor(text);
    const auto placed = [](Error error) {
        return notFound(std::move(error.message), std::move(error.advice));
    };
    if (!cursor.takeWord("over"))
        return notFound("expected 'over' and an axis of the mesh behind what to find", advice);
    auto axis = cursor.word("the name of an axis");
    if (!axis)
        return placed(axis.error());
    line.axis = *std::move(axis);
    while (!cursor.atEnd()) {
        if (line.kind == Kind::Stages && cursor.takeWord("of")) {
            auto among = parseSelector(cursor);
            if (!among)
                return placed(among.error());
            line.among = *std::move(among);
        } else if (line.kind == Kind::Stages && cursor.takeWord("times")) {
            auto times = cursor.integer("stages on each rank", 1, 65536);
            if (!times)
                return placed(times.error());
            line.times = static_cast<std::int32_t>(*times);
        } else if (line.kind == Kind::Stages && cursor.takeWord("for")) {
            auto name = cursor.word("a schedule");
            if (!name)
                return placed(name.error());
            const auto schedule = scheduleNamed(*name);
            if (!schedule)
                return notFound(
                    "there is no schedule '" + name->substr(0, 60) + "'", "known: " + scheduleNames());
            line.waves = runsInWaves(*schedule);
        } else if (line.kind == Kind::Stages && cursor.takeWord("keeping")) {
            if (!cursor.takeWord("versions"))
                return notFound("expected 'versions' behind 'keeping'");
            line.versions = true;
        } else {
            return notFound(
                "expected nothing more, found '" + std::string(cursor.rest().substr(0, 60)) + "'");
        }
    }
    if (line.waves && line.times == 1)
        line.times = 2;
    return line;
}

Result<std::string> valueOf(const GalleryParameter &parameter, std::string_view text)
{
    using Kind = GalleryParameterKind;
    const std::string found = "found '" + std::string(text.substr(0, 40)) + "'";
    switch (parameter.kind) {
    case Kind::Switch:
        if (text == "0" || text == "1")
            return std::string(text);
        if (text == "on" || text == "off")
            return std::string(text == "on" ? "1" : "0");
        // Any number but 0 is on, as it always was.
        if (numberIn(text, -1) > 0)
            return std::string("1");
        return notFound("expected 0 or 1 for '" + parameter.name + "', " + found);
    case Kind::Word: {
        if (std::find(parameter.words.begin(), parameter.words.end(), text) != parameter.words.end())
            return std::string(text);
        std::string words;
        for (const std::string &word : parameter.words)
            words += (words.empty() ? "" : ", ") + word;
        return notFound(
            "there is no " + parameter.name + " '" + std::string(text.substr(0, 40)) + "'", words);
    }
    case Kind::Layout:
        if (text != kNoneWord)
            TRY_VOID(parseLayout(text));
        return std::string(text);
    case Kind::Modules:
        if (text != kNoneWord && text != "full")
            TRY_VOID(readLayerModules(text));
        return std::string(text);
    case Kind::Layers: {
        auto row = parseRow("stage layer:" + std::string(text) + " : 0");
        if (row && row->selector.kind == SelectorKind::Layer)
            return std::string(text);
        return notFound("expected layers for '" + parameter.name + "', " + found, "0-3, 2 or *");
    }
    case Kind::Count:
    case Kind::MicroBatches:
    case Kind::Updates: {
        const std::int32_t number = numberIn(text, -1);
        if (number < 0 || number > 65536)
            return notFound("expected a number from 0 to 65536 for '" + parameter.name + "', " + found);
        if (number < parameter.least)
            return notFound("'" + parameter.name + "' must be at least " + std::to_string(parameter.least));
        if (number > parameter.most)
            return notFound("'" + parameter.name + "' must be a number from "
                + std::to_string(parameter.least) + " to " + std::to_string(parameter.most));
        return std::to_string(number);
    }
    }
    return notFound("a parameter of no kind");
}

std::string exampleOf(const GalleryParameter &parameter)
{
    using Kind = GalleryParameterKind;
    switch (parameter.kind) {
    case Kind::Switch:
        return "1";
    case Kind::Word:
        return parameter.words.front();
    case Kind::Layers:
        return "0-1";
    case Kind::Layout:
        return "\"EtL\"";
    case Kind::Modules:
        return "core_attn";
    case Kind::Count:
    case Kind::MicroBatches:
    case Kind::Updates:
        break;
    }
    return std::to_string(
        std::clamp<std::int64_t>(2, std::max<std::int64_t>(parameter.least, 1), parameter.most));
}

Result<void> checkNeed(const GalleryNeed &need, const Model &model)
{
    using Kind = GalleryNeed::Kind;
    switch (need.kind) {
    case Kind::Dimension:
        if (!anyForward(model, [&](OperatorId op) { return hasDimension(model, op, need.meaning); }))
            return notFound(std::string("nothing in the model has a dimension '") + nameOf(need.meaning)
                    + "' that can be cut",
                "use another plan of the gallery");
        return {};
    case Kind::AxialAttention:
        if (!anyForward(model, [&](OperatorId op) { return isAxial(model, op); }))
            return notFound(
                "the model has no axial attention: none whose queries lie along a second sequence "
                "beside the one that is compared",
                "use context-parallel");
        return {};
    case Kind::Experts:
        if (!anyForward(
                model, [&](OperatorId op) { return hasDimension(model, op, DimensionMeaning::Expert); }))
            return notFound("the model has no experts among which data choose", "use data-parallel");
        return {};
    case Kind::Passes:
        return findPasses(*model.index) ? Result<void>{} : Result<void>(noPasses());
    case Kind::Weights:
        if (std::none_of(model.graph->tensors.begin(), model.graph->tensors.end(),
                [](const Tensor &tensor) { return tensor.role == TensorRole::Weight; }))
            return notFound("the model has no weights");
        return {};
    case Kind::NoBackward:
        if (std::any_of(model.graph->operators.begin(), model.graph->operators.end(),
                [](const Operator &op) { return op.direction == Direction::Backward; }))
            return notFound("the model is trained: it has a backward pass", "use gpipe or 1f1b");
        return {};
    }
    return {};
}

std::int32_t FindSetting::sizeOf(std::string_view axis) const
{
    const MeshAxis *found = findAxis(mesh, axis);
    return found != nullptr ? found->size : numberIn(axis, 0);
}

Result<void> appendFound(const FindLine &line, const FindSetting &setting, ConstraintTable &table)
{
    using Kind = FindLine::Kind;
    const Model &model = setting.model;
    const std::string &axis = line.axis;
    const std::int32_t parts = setting.sizeOf(axis);
    switch (line.kind) {
    case Kind::Pairs:
        return appendTensorParallel(model, setting.deviceCount, axis, parts, table);
    case Kind::BetweenPairs:
        return appendSequenceParallel(model, setting.deviceCount, axis, parts, table);
    case Kind::Experts:
        return appendExpertParallel(model, axis, parts, table);
    case Kind::Stages:
        return appendStages(line, setting, table);
    case Kind::BothWays:
        return appendBothWays(line, setting, table);
    case Kind::Recomputation: {
        const bool all = line.modules.empty() || line.modules == "full";
        TRY(ConstraintTable rows, all ? recomputeRows(model) : recomputedModuleRows(model, line.modules));
        std::move(rows.rows.begin(), rows.rows.end(), std::back_inserter(table.rows));
        return {};
    }
    case Kind::Offloading: {
        if (line.modules.empty() || line.modules == "full") {
            table.rows.push_back(
                templateRow(Selector{.kind = SelectorKind::All}, OffloadRule{OffloadedKind::Activations}));
            return {};
        }
        TRY(ConstraintTable rows, offloadedModuleRows(model, line.modules));
        std::move(rows.rows.begin(), rows.rows.end(), std::back_inserter(table.rows));
        return {};
    }
    case Kind::Passes:
        return appendPasses(*model.index, axis, parts, setting.costs, table);
    }
    return {};
}

} // namespace planloom
