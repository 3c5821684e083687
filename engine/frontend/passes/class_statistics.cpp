#include "engine/frontend/passes/class_statistics.h"

#include "engine/frontend/unique_names.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

namespace planloom {

namespace {

/// The tensors that Reshapes of a graph were made of, by what they made.
using RowsOf = std::map<TensorId, TensorId>;

/// Rows of a loss, as exporters make them of all positions of all sequences ([batch x sequence, classes]),
/// could be cut by the batch alone: the loss reads what they were made of.
///
/// @return the logits and labels as they were before; nothing where they were no rows, or losses of rows are
/// asked for
std::optional<std::pair<TensorId, TensorId>> beforeRows(
    const Graph &graph, const Operator &loss, const RowsOf &rows)
{
    const auto logits = rows.find(loss.inputs[0]);
    const auto labels = rows.find(loss.inputs[1]);
    if (logits == rows.end() || labels == rows.end() || loss.attributes.text("reduction", "sum") != "sum"
        || graph.at(loss.inputs[0]).type.shape.size() != 2)
        return std::nullopt;
    Shape items = graph.at(logits->second).type.shape;
    const Shape &made = graph.at(loss.inputs[0]).type.shape;
    if (items.size() < 3 || items.back() != made.back())
        return std::nullopt;
    items.pop_back();
    if (graph.at(labels->second).type.shape != items)
        return std::nullopt;
    return std::pair(logits->second, labels->second);
}

/// Counts of labels do not care how these stand.
void countBeforeRows(Graph &graph, const RowsOf &rows)
{
    for (Operator &op : graph.operators)
        if (op.kind == OperatorKind::CountValid)
            if (const auto before = rows.find(op.inputs[0]); before != rows.end())
                op.inputs[0] = before->second;
}

} // namespace

void separateClassStatistics(Graph &graph)
{
    const auto isWhole = [](const Operator &op) { return op.kind == OperatorKind::CrossEntropy; };
    if (std::none_of(graph.operators.begin(), graph.operators.end(), isWhole))
        return;
    UniqueNames tensorNames = UniqueNames::ofTensors(graph);
    UniqueNames operatorNames = UniqueNames::ofOperators(graph);
    RowsOf rows;
    for (const Operator &op : graph.operators)
        if (op.kind == OperatorKind::Reshape && op.inputs[0])
            rows[op.outputs[0]] = op.inputs[0];
    countBeforeRows(graph, rows);
    std::vector<Operator> operators;
    operators.reserve(graph.operators.size() + 1);
    for (Operator &op : graph.operators) {
        if (!isWhole(op)) {
            operators.push_back(std::move(op));
            continue;
        }
        const auto before = beforeRows(graph, op, rows);
        if (before)
            std::tie(op.inputs[0], op.inputs[1]) = *before;
        const TensorId labels = op.inputs[1];
        const TensorType statistic{graph.at(op.inputs[0]).type.dataType, graph.at(labels).type.shape};
        Operator statistics;
        statistics.name = operatorNames.take(op.name + ".statistics");
        statistics.kind = OperatorKind::ClassStatistics;
        if (op.attributes.has("ignore_index"))
            statistics.attributes.set("ignore_index", op.attributes.integer("ignore_index"));
        if (before)
            statistics.attributes.set("axis", static_cast<std::int64_t>(graph.at(labels).type.shape.size()));
        statistics.inputs = {op.inputs[0], labels};
        statistics.scope = op.scope;
        statistics.sources = op.sources;
        for (const char *suffix : {".log_sum_exp", ".of_label"}) {
            Tensor tensor;
            tensor.name = tensorNames.take(statistics.name + suffix);
            tensor.type = statistic;
            statistics.outputs.push_back(TensorId{static_cast<std::int32_t>(graph.tensors.size())});
            graph.tensors.push_back(std::move(tensor));
        }
        op.kind = OperatorKind::ClassLoss;
        std::vector<TensorId> inputs{statistics.outputs[0], statistics.outputs[1], labels};
        if (op.inputs.size() > 2)
            inputs.push_back(op.inputs[2]);
        op.inputs = std::move(inputs);
        operators.push_back(std::move(statistics));
        operators.push_back(std::move(op));
    }
    graph.operators = std::move(operators);
}

} // namespace planloom
