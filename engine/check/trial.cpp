#include "engine/check/trial.h"

#include "engine/check/part_runner.h"
#include "engine/kernels/kernel.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

namespace planloom {

namespace {

/// Largest difference over 1 + the largest magnitude.
double differenceOf(
    const Tensor &tensor, const std::vector<std::byte> &whole, const std::vector<std::byte> &parts)
{
    if (whole.size() != parts.size())
        return std::numeric_limits<double>::infinity();
    double largest = 0;
    double difference = 0;
    for (std::int64_t i = 0; i < elementCount(tensor.type.shape); ++i) {
        const double a = numberAt(whole, tensor.type.dataType, i);
        const double b = numberAt(parts, tensor.type.dataType, i);
        if (std::isfinite(a))
            largest = std::max(largest, std::fabs(a));
        if (a == b || (std::isnan(a) && std::isnan(b)))
            continue;
        const double own = std::fabs(a - b);
        difference = std::max(difference, std::isnan(own) ? std::numeric_limits<double>::infinity() : own);
    }
    return difference / (1 + largest);
}

bool madeNaN(const Tensor &tensor, const std::vector<std::byte> &bytes)
{
    for (std::int64_t i = 0; i < elementCount(tensor.type.shape); ++i)
        if (std::isnan(numberAt(bytes, tensor.type.dataType, i)))
            return true;
    return false;
}

/// Tries one operator of the example's graph, which runs whole into `values` first.
Result<void> tryOperator(const Graph &graph, const Operator &op, OperatorValues &values,
    const TrialOptions &options, AnnotationTrial &trial)
{
    TRY_VOID(runParts(graph, op, Partition{}, values, options.libraries));
    for (const TensorId id : op.outputs)
        if (id && op.kind == OperatorKind::Custom && madeNaN(graph.at(id), values[at(id)]))
            return Error{ErrorCode::CheckFailed,
                "the whole operator makes NaN of '" + graph.at(id).name
                    + "', which can be compared with nothing",
                "draw its inputs from where it is defined, as in --range x=0.1:2", {}};
    for (const Partition &partition : partitionsOf(op)) {
        SplitTrial split;
        split.backward = op.direction == Direction::Backward;
        split.partition = toString(op.annotation, partition);
        ++trial.splits;
        OperatorValues again = values;
        auto ran = checkPartition(op, partition);
        if (ran)
            ran = runParts(graph, op, partition, again, options.libraries);
        if (!ran) {
            split.problem = ran.error().message;
            trial.failures.push_back(std::move(split));
            continue;
        }
        for (const TensorId id : op.outputs) {
            if (!id)
                continue;
            const double error = differenceOf(graph.at(id), values[at(id)], again[at(id)]);
            if (error > split.error || split.tensor.empty()) {
                split.error = error;
                split.tensor = graph.at(id).name;
            }
        }
        if (split.error > options.tolerance)
            trial.failures.push_back(std::move(split));
        else
            trial.worst = std::max(trial.worst, split.error);
    }
    return {};
}

} // namespace

std::string describe(const SplitTrial &trial)
{
    const std::string begin = (trial.backward ? "backward, " : "") + trial.partition + ": ";
    if (!trial.problem.empty())
        return begin + trial.problem;
    char number[32];
    std::snprintf(number, sizeof number, "%.2g", trial.error);
    return begin + "'" + trial.tensor + "' differs by " + number;
}

Result<AnnotationTrial> tryAnnotation(const OperatorExample &example, const TrialOptions &options)
{
    TRY(const Graph graph, graphOf(example));
    AnnotationTrial trial;
    trial.annotation = toString(graph.operators[0].annotation);
    trial.whole = graph.operators[0].annotationProblem;
    OperatorValues values = drawValues(example, graph, options.seed);
    for (const Operator &op : graph.operators)
        if (hasKernel(op))
            TRY_VOID(tryOperator(graph, op, values, options, trial));
    return trial;
}

} // namespace planloom
