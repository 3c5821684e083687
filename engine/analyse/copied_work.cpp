#include "engine/analyse/copied_work.h"

#include "engine/lowering/program/instruction_cost.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace planloom {

namespace {

/// How long each forward and backward operator runs in one step, on all devices of a unit; every part is
/// taken to run as long as those of its first device.
std::vector<double> secondsOf(const ExecutionPlan &plan, const CostModel &costs)
{
    std::vector<double> seconds(plan.graph->operators.size(), 0);
    for (std::size_t d = 0; d < plan.devices.size(); ++d) {
        const DeviceId self{static_cast<std::int32_t>(d)};
        const std::int32_t deviceClass = costs.classOf(self);
        for (const Segment &segment : plan.devices[d].segments) {
            for (const Instruction &instruction : segment.instructions) {
                const auto o = static_cast<std::size_t>(instruction.op.index);
                if (instruction.kind != InstructionKind::Kernel || !instruction.op.valid()
                    || plan.graph->operators[o].direction == Direction::Optimizer)
                    continue;
                const std::vector<DeviceId> &places = plan.placement[o];
                if (places.empty() || places.front() != self)
                    continue;
                const Nanoseconds once =
                    localDuration(plan, plan.devices[d], instruction, costs, {}, deviceClass).usual;
                const auto turns = static_cast<double>(isPass(segment.kind) ? plan.microBatches : 1);
                const auto devices = static_cast<double>(std::set(places.begin(), places.end()).size());
                seconds[o] += static_cast<double>(once.count()) * 1e-9 * turns * devices;
            }
        }
    }
    return seconds;
}

/// Names of the axes along which operators are cut by the batch.
std::set<std::string> batchAxesOf(const ExecutionPlan &plan)
{
    std::set<std::string> axes;
    for (std::size_t o = 0; o < plan.partitions.size(); ++o)
        for (const Split &split : plan.partitions[o].splits)
            if (split.kind == SplitKind::Dimension && split.parts > 1 && !split.axis.empty()
                && split.dimension == plan.batch.operatorDimension[o])
                axes.insert(split.axis);
    return axes;
}

bool isCopied(const Partition &partition, const std::set<std::string> &axes)
{
    return std::any_of(partition.splits.begin(), partition.splits.end(), [&](const Split &split) {
        return split.kind == SplitKind::Replicate && split.over == SplitOver::Devices && split.parts > 1
            && (axes.empty() || axes.contains(split.axis));
    });
}

} // namespace

CopiedWork copiedWork(const ExecutionPlan &plan, const CostModel &costs)
{
    constexpr std::size_t kMostNamed = 8;
    const Graph &graph = *plan.graph;
    const std::vector<double> seconds = secondsOf(plan, costs);
    const std::set<std::string> axes = batchAxesOf(plan);
    double all = 0;
    double copied = 0;
    std::vector<double> own(graph.operators.size(), 0); // by forward operator
    for (std::size_t o = 0; o < seconds.size(); ++o) {
        all += seconds[o];
        if (!isCopied(plan.partitions[o], axes))
            continue;
        copied += seconds[o];
        const Operator &op = graph.operators[o];
        own[op.direction == Direction::Backward && op.mirror ? at(op.mirror) : o] += seconds[o];
    }
    CopiedWork work;
    work.alongBatch = !axes.empty();
    if (all <= 0 || copied <= 0)
        return work;
    work.share = copied / all;
    for (const BatchObstacle &each : plan.batch.obstacles)
        if (isCopied(plan.partitions[at(each.op)], axes))
            work.operators.push_back({each.op, own[at(each.op)] / all, each.reason});
    if (work.operators.empty()) {
        for (std::size_t o = 0; o < own.size(); ++o)
            if (own[o] > 0)
                work.operators.push_back({OperatorId{static_cast<std::int32_t>(o)}, own[o] / all, {}});
        std::stable_sort(work.operators.begin(), work.operators.end(),
            [](const CopiedOperator &a, const CopiedOperator &b) { return a.share > b.share; });
    }
    if (work.operators.size() > kMostNamed)
        work.operators.resize(kMostNamed);
    return work;
}

std::string copiedWords(const CopiedWork &copied, const Graph &graph)
{
    constexpr double kLeastTold = 0.05;
    if (copied.share < (copied.alongBatch ? kLeastTold : kMostCopies) || copied.operators.empty())
        return {};
    const CopiedOperator &first = copied.operators.front();
    return std::to_string(std::lround(copied.share * 100))
        + "% of the computing is the same on several devices"
        + (first.reason.empty() ? ", most of it operator '" : ", because operator '")
        + graph.at(first.op).name + "'" + (first.reason.empty() ? "" : " " + first.reason);
}

} // namespace planloom
