#include "widgets/table/selector_completions.h"

#include "engine/base/divisors.h"
#include "engine/base/text.h"
#include "engine/table/text_cursor.h"
#include "widgets/table/kinds/rule_cells.h"

#include <algorithm>
#include <set>

namespace planloom {

namespace {

bool startsWith(std::string_view text, std::string_view start)
{
    return text.substr(0, start.size()) == start;
}

/// How many parts are proposed of a dimension: its divisors from 2 on, the smallest of them.
std::vector<std::int32_t> countsOf(std::int64_t size)
{
    constexpr std::int64_t kMostParts = 1024;
    constexpr std::size_t kMostProposed = 32;
    std::vector<std::int32_t> counts;
    for (const std::int64_t count : divisorsOf(size))
        if (count > 1 && count <= kMostParts && counts.size() < kMostProposed)
            counts.push_back(static_cast<std::int32_t>(count));
    return counts;
}

} // namespace

SelectorCompletions::SelectorCompletions(const OpenedModel &model, const std::stop_token &stop)
{
    std::set<std::string> tokens{"all", "forward", "backward", "optimizer"};
    const Graph &graph = *model.graph;
    const SelectorIndex &index = *model.index;
    const auto layers = static_cast<std::int32_t>(index.layers().scopes.size());
    for (std::int32_t layer = 0; layer < layers; ++layer)
        tokens.insert("layer:" + std::to_string(layer));
    if (layers > 0)
        tokens.insert("layer:*");
    if (layers > 1) {
        tokens.insert("layer:0-" + std::to_string(layers / 2 - 1));
        tokens.insert("layer:" + std::to_string(layers / 2) + "-" + std::to_string(layers - 1));
    }
    for (std::size_t i = 1; i < graph.scopes.size(); ++i)
        tokens.insert("in:" + asWord(index.pathOf(ScopeId{static_cast<std::int32_t>(i)})));
    for (std::size_t i = 0; i < graph.operators.size() && !stop.stop_requested(); ++i) {
        const Operator &op = graph.operators[i];
        if (op.direction != Direction::Forward)
            continue;
        tokens.insert("name:" + asWord(globOf(op.name)));
        tokens.insert("kind:" + asWord(typeNameOf(op)));
        // The same operator of all layers: "h.3.attn" is "h.*.attn".
        const std::int32_t layer =
            op.scope.valid() ? index.layers().ofScope[static_cast<std::size_t>(op.scope.index)] : -1;
        if (layer < 0)
            continue;
        const std::string &path = index.pathOf(index.layers().scopes[static_cast<std::size_t>(layer)]);
        const std::size_t dot = path.rfind('.');
        if (dot != std::string::npos && op.name.size() > path.size() && startsWith(op.name, path)
            && op.name[path.size()] == '.')
            tokens.insert("name:" + asWord(path.substr(0, dot) + ".*" + op.name.substr(path.size())));
    }
    for (const Tensor &tensor : graph.tensors) {
        if (tensor.role == TensorRole::Weight && !tensor.of.valid())
            tokens.insert("weight:" + asWord(globOf(tensor.name)));
    }
    m_tokens.assign(tokens.begin(), tokens.end());
    for (std::size_t i = 0; i < m_tokens.size(); ++i) {
        const std::string text = lowerCase(m_tokens[i]);
        const auto token = static_cast<std::int32_t>(i);
        m_whole.push_back({text, token});
        const std::size_t colon = text.find(':');
        if (colon == std::string::npos)
            continue;
        m_tails.push_back({text.substr(colon + 1), token});
        if (const std::size_t dot = text.rfind('.'); dot != std::string::npos && dot > colon)
            m_tails.push_back({text.substr(dot + 1), token});
    }
    const auto byText = [](const Key &a, const Key &b) {
        return a.text != b.text ? a.text < b.text : a.token < b.token;
    };
    std::sort(m_whole.begin(), m_whole.end(), byText);
    std::sort(m_tails.begin(), m_tails.end(), byText);
}

void SelectorCompletions::collect(const std::vector<Key> &keys, std::string_view typed, std::size_t most,
    std::vector<std::int32_t> &found) const
{
    auto key = std::lower_bound(keys.begin(), keys.end(), typed,
        [](const Key &a, std::string_view wanted) { return a.text < wanted; });
    for (; key != keys.end() && startsWith(key->text, typed) && found.size() < most; ++key) {
        if (std::find(found.begin(), found.end(), key->token) == found.end())
            found.push_back(key->token);
    }
}

std::vector<std::string> SelectorCompletions::find(std::string_view typed, std::size_t most) const
{
    const std::string wanted = lowerCase(typed);
    std::vector<std::int32_t> found;
    if (wanted.empty()) {
        static constexpr std::string_view kStarts[] = {
            "all", "layer:", "in:", "kind:", "name:", "weight:", "forward", "optimizer"};
        return {std::begin(kStarts), std::end(kStarts)};
    }
    collect(m_whole, wanted, most, found);
    if (wanted.find(':') == std::string::npos)
        collect(m_tails, wanted, most, found);
    // Within a kind, parts of paths as well: "name:c_attn" finds "name:h.*.attn.c_attn".
    const std::size_t colon = wanted.find(':');
    if (colon != std::string::npos && colon + 1 < wanted.size()) {
        std::vector<std::int32_t> tails;
        collect(m_tails, std::string_view(wanted).substr(colon + 1), most * 4, tails);
        for (const std::int32_t token : tails) {
            if (found.size() < most
                && startsWith(
                    lowerCase(m_tokens[static_cast<std::size_t>(token)]), wanted.substr(0, colon + 1))
                && std::find(found.begin(), found.end(), token) == found.end())
                found.push_back(token);
        }
    }
    std::vector<std::string> texts;
    for (const std::int32_t token : found)
        texts.push_back(m_tokens[static_cast<std::size_t>(token)]);
    return texts;
}

TypedWord wordAt(std::string_view text, std::size_t cursor)
{
    cursor = std::min(cursor, text.size());
    const auto isPart = [](char c) { return isWordCharacter(c) || c == ':' || c == '='; };
    TypedWord word{cursor, cursor};
    while (word.begin > 0 && isPart(text[word.begin - 1]))
        --word.begin;
    while (word.end < text.size() && isPart(text[word.end]))
        ++word.end;
    return word;
}

ValueChoices valueChoices(const OpenedModel &model, const Selector &selector,
    const std::vector<MeshAxis> &mesh, std::int32_t deviceCount, const std::stop_token &stop)
{
    ValueChoices choices;
    choices.mesh = mesh;
    choices.deviceCount = deviceCount;
    choices.inputDimensions = model.graph->dimensions;
    choices.rooms = model.graph->rooms;
    for (const auto &[name, choice] : model.graph->recurrences) {
        if (choice.problem.empty())
            choices.recurrences.push_back(name);
    }
    for (std::int64_t count = 1; count <= std::min<std::int64_t>(model.batch->mostMicroBatches, 4096);
         ++count) {
        if (model.batch->size > 0 && model.batch->size % count == 0)
            choices.microBatches.push_back(static_cast<std::int32_t>(count));
    }
    const Graph &graph = *model.graph;
    std::map<std::string, DimensionChoice> byName;
    std::map<std::string, std::int64_t> sizes; // what all counts must divide
    const auto add = [&](const std::string &name, const Dimension &dimension) {
        DimensionChoice &choice = byName[name];
        std::int64_t &size = sizes[name];
        if (choice.operators++ == 0) {
            choice.name = name;
            choice.marked = name + (dimension.mark == DimensionMark::Reduce ? "+" : "") + " ("
                + std::to_string(dimension.size) + ")";
            choice.counts = countsOf(dimension.size);
            size = dimension.size;
            return;
        }
        if (size == dimension.size)
            return;
        size = dimension.size;
        const auto divides = countsOf(dimension.size);
        std::vector<std::int32_t> both;
        std::set_intersection(choice.counts.begin(), choice.counts.end(), divides.begin(), divides.end(),
            std::back_inserter(both));
        choice.counts = std::move(both);
        choice.marked = name + (dimension.mark == DimensionMark::Reduce ? "+" : "");
    };
    for (const OperatorId op : model.index->select(selector)) {
        if (stop.stop_requested())
            return choices;
        const Operator &itself = graph.at(op);
        if (itself.direction != Direction::Forward)
            continue;
        choices.valueSplit = choices.valueSplit || !itself.annotation.linearInputs.empty();
        const std::int32_t batch = model.batch->operatorDimension.empty()
            ? -1
            : model.batch->operatorDimension[static_cast<std::size_t>(op.index)];
        for (const std::int32_t dimension : splittableDimensions(itself.annotation)) {
            const Dimension &it = itself.annotation.dimensions[static_cast<std::size_t>(dimension)];
            if (dimension == batch)
                add("batch", it);
            if (!it.name.empty() && (it.name.front() < '0' || it.name.front() > '9'))
                add(it.name, it);
        }
        for (int i = 1; i < kDimensionMeaningCount; ++i) {
            const auto meaning = static_cast<DimensionMeaning>(i);
            const MeantDimension meant = findMeant(model.index->dimensions(), graph, op, meaning);
            if (meaning == DimensionMeaning::Batch || meant.identifier < 0 || meant.piece)
                continue;
            Dimension counted = itself.annotation.dimensions[static_cast<std::size_t>(meant.identifier)];
            counted.size = meant.extent; // heads, not what they lie in
            add(nameOf(meaning), counted);
        }
    }
    for (auto &[name, choice] : byName)
        choices.dimensions.push_back(std::move(choice));
    std::stable_sort(choices.dimensions.begin(), choices.dimensions.end(),
        [](const DimensionChoice &a, const DimensionChoice &b) {
            const bool firstIsBatch = a.name == "batch";
            const bool secondIsBatch = b.name == "batch";
            return firstIsBatch != secondIsBatch ? firstIsBatch : a.operators > b.operators;
        });
    return choices;
}

std::vector<std::string> valueSuggestions(
    std::string_view rule, const ValueChoices &choices, std::string_view typed, std::size_t most)
{
    std::vector<std::string> all;
    if (const RuleCells *cells = findRuleCells(rule); cells && cells->suggest)
        cells->suggest(choices, all);
    const std::string wanted = lowerCase(typed);
    std::vector<std::string> fitting;
    for (std::string &text : all) {
        if (fitting.size() < most && startsWith(lowerCase(text), wanted) && text != typed)
            fitting.push_back(std::move(text));
    }
    return fitting;
}

} // namespace planloom
