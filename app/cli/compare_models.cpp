#include "app/cli/compare_models.h"
#include "app/cli/model.h"
#include "app/cli/without_effect.h"

#include "engine/analyse/graph_difference.h"
#include "engine/base/words.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <iostream>

namespace planloom::cli {

namespace {

using nlohmann::json;

constexpr std::size_t kMostListed = 20; ///< Of each kind of difference in the text; JSON has all of them.

Result<GraphSnapshot> forwardOf(const Arguments &arguments, const std::string &model)
{
    TRY(const ModelSource source, modelSource(arguments, model));
    auto graph = openForward(source);
    if (graph)
        return std::make_shared<const Graph>(*std::move(graph));
    Error error = std::move(graph).error();
    if (error.where.empty())
        error.where = model;
    return error;
}

std::int64_t parametersOf(const Graph &graph)
{
    std::int64_t count = 0;
    for (const Tensor &tensor : graph.tensors)
        count += tensor.role == TensorRole::Weight ? elementCount(tensor.type.shape) : 0;
    return count;
}

/// The lines of one kind of difference, or nothing.
void printList(const char *title, const std::vector<std::string> &lines)
{
    if (lines.empty())
        return;
    std::printf("%s: %zu\n", title, lines.size());
    for (std::size_t i = 0; i < lines.size() && i < kMostListed; ++i)
        std::printf("  %s\n", lines[i].c_str());
    if (lines.size() > kMostListed)
        std::printf("  and %zu more\n", lines.size() - kMostListed);
}

std::vector<std::string> namesOf(const Graph &graph, const std::vector<OperatorId> &operators)
{
    std::vector<std::string> names;
    for (const OperatorId op : operators)
        names.push_back(graph.at(op).name + "  " + typeNameOf(graph.at(op)));
    return names;
}

void printDifference(const GraphDifference &difference, const Graph &a, const Graph &b)
{
    std::vector<std::string> renamed;
    std::vector<std::string> changed;
    for (const ChangedOperator &change : difference.changed) {
        const std::string words = wordsOf(change, a, b);
        const std::string name =
            change.renamed ? a.at(change.a).name + " -> " + b.at(change.b).name : a.at(change.a).name;
        (words.empty() ? renamed : changed).push_back(words.empty() ? name : name + ": " + words);
    }
    std::printf(
        "operators   A %zu, B %zu; %d the same\n", a.operators.size(), b.operators.size(), difference.same);
    std::printf("parameters  A %s, B %s\n", formatCount(parametersOf(a)).c_str(),
        formatCount(parametersOf(b)).c_str());
    printList("only in A", namesOf(a, difference.removed));
    printList("only in B", namesOf(b, difference.added));
    printList("changed", changed);
    printList("renamed alone", renamed);
    if (difference.empty())
        std::printf("the models are the same\n");
}

json differenceJson(const GraphDifference &difference, const Graph &a, const Graph &b)
{
    const auto list = [](const Graph &graph, const std::vector<OperatorId> &operators) {
        json entries = json::array();
        for (const OperatorId op : operators)
            entries.push_back({{"name", graph.at(op).name}, {"kind", typeNameOf(graph.at(op))}});
        return entries;
    };
    json changed = json::array();
    for (const ChangedOperator &change : difference.changed)
        changed.push_back({{"a", a.at(change.a).name}, {"b", b.at(change.b).name},
            {"renamed", change.renamed}, {"kind", change.kind}, {"shapes", change.shapes},
            {"attributes", change.attributes}, {"wiring", change.wiring}, {"how", wordsOf(change, a, b)}});
    return {{"same", difference.same}, {"removed", list(a, difference.removed)},
        {"added", list(b, difference.added)}, {"changed", std::move(changed)},
        {"parameters", {{"a", parametersOf(a)}, {"b", parametersOf(b)}}}};
}

} // namespace

bool comparesModels(const Arguments &arguments)
{
    return !isPlanFile(arguments.positional(0)) && !isPlanFile(arguments.positional(1));
}

Result<int> compareModels(const Arguments &arguments)
{
    TRY(const GraphSnapshot a, forwardOf(arguments, arguments.positional(0)));
    TRY(const GraphSnapshot b, forwardOf(arguments, arguments.positional(1)));
    const GraphDifference difference = differenceOf(SelectorIndex(a), SelectorIndex(b));
    if (arguments.has("json")) {
        std::cout << differenceJson(difference, *a, *b).dump(-1, ' ', false, json::error_handler_t::replace)
                  << "\n";
        return 0;
    }
    std::printf("A  %s\nB  %s\n", arguments.positional(0).c_str(), arguments.positional(1).c_str());
    printDifference(difference, *a, *b);
    return 0;
}

} // namespace planloom::cli
