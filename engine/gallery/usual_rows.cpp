#include "engine/gallery/usual_rows.h"

#include "engine/gallery/gallery_rows.h"
#include "engine/graph/operators/catalogue.h"
#include "engine/graph/operators/operator_kind.h"
#include "engine/table/selector_index.h"
#include "engine/table/table_text.h"

#include <algorithm>
#include <map>
#include <set>

namespace planloom {

Result<std::string> recomputeRow(const Model &model, std::string_view word)
{
    const Graph &graph = *model.graph;
    const auto wrong = [](std::string message, std::string advice) {
        return Error{ErrorCode::InvalidInput, std::move(message), std::move(advice), "--recompute"};
    };
    if (word == "none")
        return std::string{};
    if (word == "full") {
        for (std::size_t o = 0; o < graph.operators.size(); ++o)
            if (model.index->layerOf(OperatorId{static_cast<std::int32_t>(o)}) >= 0)
                return std::string("recompute layer:* per layer");
        return wrong("the model has no layers to recompute", "write a row: recompute SELECTOR");
    }
    if (word != "selective")
        return wrong(
            "expected none, selective or full, found \"" + std::string(word.substr(0, 40)) + "\"", {});
    std::set<std::string> kinds;
    for (const Operator &op : graph.operators) {
        const OperatorCategory category = categoryOf(op.kind);
        if (op.direction == Direction::Forward && !isView(op)
            && (category == OperatorCategory::Activation || category == OperatorCategory::Normalization))
            kinds.insert(nameOf(op.kind));
    }
    if (kinds.empty())
        return wrong("the model has no activation or normalisation to recompute", {});
    std::string row = "recompute";
    for (const std::string &kind : kinds)
        row += (row == "recompute" ? " kind:" : " | kind:") + kind;
    return row + " per operator";
}

Result<ConstraintTable> recomputeRows(const Model &model)
{
    const Graph &graph = *model.graph;
    const SelectorIndex &index = *model.index;
    TRY(const std::string layers, recomputeRow(model, "full"));
    TRY(ConstraintTable table, parseTable(layers));
    for (Row &row : table.rows)
        row.origin = RowOrigin::Template;
    std::map<ScopeId, std::vector<OperatorId>> between;
    std::vector<bool> feeds(graph.operators.size(), false); // a layer, with all that it makes
    for (std::size_t i = graph.operators.size(); i-- > 0;) {
        const OperatorId op{static_cast<std::int32_t>(i)};
        if (graph.operators[i].direction != Direction::Forward)
            continue;
        bool any = false;
        bool all = true;
        for (const TensorId output : graph.operators[i].outputs)
            for (const OperatorId reader : output
                    ? index.uses().consumers[static_cast<std::size_t>(output.index)]
                    : std::vector<OperatorId>{}) {
                if (graph.at(reader).direction != Direction::Forward)
                    continue;
                any = true;
                all = all && feeds[static_cast<std::size_t>(reader.index)];
            }
        const bool isInLayer = index.layerOf(op) >= 0;
        feeds[i] = isInLayer || (any && all);
        if (!isInLayer && feeds[i] && graph.operators[i].scope.valid())
            between[graph.operators[i].scope].push_back(op);
    }
    for (auto &[scope, operators] : between) {
        std::sort(operators.begin(), operators.end());
        table.rows.push_back(
            templateRow(stageSelector(index, operators), RecomputeRule{RecomputePer::Selection}));
    }
    return table;
}

Result<std::vector<std::string>> offloadRows(std::string_view word)
{
    const bool both = word == "both";
    if (!both && word != "none" && word != "states" && word != "activations")
        return Error{ErrorCode::InvalidInput,
            "expected none, states, activations or both, found \"" + std::string(word.substr(0, 40)) + "\"",
            {}, "--offload"};
    std::vector<std::string> rows;
    for (const char *what : {"states", "activations"})
        if (both || word == what)
            rows.push_back(std::string("offload all : ") + what);
    return rows;
}

} // namespace planloom
