#include "engine/frontend/passes/class_statistics.h"

#include "engine/frontend/unique_names.h"

#include <algorithm>
#include <utility>

namespace planloom {

void separateClassStatistics(Graph &graph)
{
    const auto isWhole = [](const Operator &op) { return op.kind == OperatorKind::CrossEntropy; };
    if (std::none_of(graph.operators.begin(), graph.operators.end(), isWhole))
        return;
    UniqueNames tensorNames = UniqueNames::ofTensors(graph);
    UniqueNames operatorNames = UniqueNames::ofOperators(graph);
    std::vector<Operator> operators;
    operators.reserve(graph.operators.size() + 1);
    for (Operator &op : graph.operators) {
        if (!isWhole(op)) {
            operators.push_back(std::move(op));
            continue;
        }
        const TensorId labels = op.inputs[1];
        const TensorType statistic{graph.at(op.inputs[0]).type.dataType, graph.at(labels).type.shape};
        Operator statistics;
        statistics.name = operatorNames.take(op.name + ".statistics");
        statistics.kind = OperatorKind::ClassStatistics;
        if (op.attributes.has("ignore_index"))
            statistics.attributes.set("ignore_index", op.attributes.integer("ignore_index"));
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
