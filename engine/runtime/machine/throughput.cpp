#include "engine/runtime/machine/throughput.h"

#include "engine/graph/operators/catalogue.h"

#include <algorithm>

namespace planloom {

StepWork stepWorkOf(const ExecutionPlan &plan)
{
    const Graph &graph = *plan.graph;
    const std::int64_t batches = plan.batch.wholeBatches ? batchCuts(plan) : 1;
    StepWork work;
    work.samples = plan.batch.size * batches;
    for (const Operator &op : graph.operators) {
        if (op.direction == Direction::Optimizer)
            continue;
        work.flops += workOf(graph, op).flops * static_cast<double>(batches);
        if (op.kind == OperatorKind::Embedding && op.direction == Direction::Forward && op.inputs.size() > 1
            && op.inputs[1] && graph.at(op.inputs[1]).role == TensorRole::Input)
            work.tokens = std::max(work.tokens, elementCount(graph.at(op.inputs[1]).type.shape) * batches);
    }
    return work;
}

double fastestRate(const MachineProfile &profile)
{
    double fastest = 0;
    for (const auto &[key, kernel] : profile.kernels) {
        // On a machine that does other things, too, what its cores worked is nearer to the truth.
        const double work = kernel.coreSeconds / std::max(profile.cores, 1);
        const double seconds = work > 0 ? std::min(kernel.seconds, work) : kernel.seconds;
        if (seconds > 0)
            fastest = std::max(fastest, kernel.flops / seconds);
    }
    return fastest;
}

double modelFlopsUtilization(const StepWork &work, double seconds, double rate)
{
    return seconds > 0 && rate > 0 ? work.flops / seconds / rate : 0;
}

} // namespace planloom
