#include "engine/table/kinds/partition/spread.h"

#include "engine/graph/operators/catalogue.h"
#include "engine/table/kinds/meaning.h"
#include "engine/table/mesh_axes.h"
#include "engine/table/rule_form.h"

#include <algorithm>

namespace planloom {

namespace {

/// What a run has of an operator.
std::int64_t weightOf(const Graph &graph, OperatorId id, SpreadBy by)
{
    if (by == SpreadBy::Count)
        return 1;
    const Operator &op = graph.at(id);
    std::int64_t held = 0;
    for (const TensorId input : op.inputs) {
        if (input && graph.at(input).role == TensorRole::Weight)
            held += elementCount(graph.at(input).type.shape) * sizeOf(graph.at(input).type.dataType);
    }
    for (const TensorId output : op.outputs) {
        if (output && !isView(op))
            held += elementCount(graph.at(output).type.shape) * sizeOf(graph.at(output).type.dataType);
    }
    if (by == SpreadBy::Memory)
        return held;
    constexpr double kMost = 1e15; // of one operator, so that sums stay within 64 bits
    return static_cast<std::int64_t>(std::min(workOf(graph, op).flops, kMost));
}

/// How many runs a chain takes if none may be above `most`.
std::int64_t runsWithin(const std::vector<std::int64_t> &weights, std::int64_t most)
{
    std::int64_t runs = 1;
    std::int64_t sum = 0;
    for (const std::int64_t weight : weights) {
        if (sum + weight > most) {
            ++runs;
            sum = 0;
        }
        sum += weight;
    }
    return runs;
}

} // namespace

const char *nameOf(SpreadBy by)
{
    constexpr std::array kNames{"time", "memory", "count"};
    return kNames[static_cast<std::size_t>(by)];
}

void RuleTraits<SpreadRule>::describe(RuleForm &form, SpreadRule &rule)
{
    form.word("over", "'over' and a mesh axis");
    form.axis(rule.axis);
    if (form.has("by", "by", !form.isText() || rule.by != SpreadBy::Time))
        form.choice("by", rule.by, std::array{SpreadBy::Time, SpreadBy::Memory, SpreadBy::Count});
}

Result<void> RuleMeaning<SpreadRule>::check(const RowSetting &setting, const SpreadRule &rule)
{
    if (!findAxis(setting.mesh, rule.axis))
        return Error{ErrorCode::InvalidInput,
            setting.mesh.empty() ? "there is no mesh with an axis '" + rule.axis + "'"
                                 : "the mesh has no axis '" + rule.axis + "'",
            noSuchAxisAdvice(setting.mesh, rule.axis), "mesh"};
    return {};
}

std::vector<OperatorMeaning> RuleMeaning<SpreadRule>::ofEach(
    const RowSetting &setting, const SpreadRule &rule, const std::vector<OperatorId> &acted)
{
    const MeshAxis &axis = *findAxis(setting.mesh, rule.axis);
    std::vector<std::int64_t> weights;
    std::int64_t least = 0;
    std::int64_t most = 0;
    for (const OperatorId op : acted) {
        weights.push_back(weightOf(setting.graph(), op, rule.by));
        least = std::max(least, weights.back());
        most += weights.back();
    }
    while (least < most) {
        const std::int64_t middle = least + (most - least) / 2;
        if (runsWithin(weights, middle) <= axis.size)
            most = middle;
        else
            least = middle + 1;
    }
    std::vector<AllowedPlaceSnapshot> places; // by run: shared
    for (std::int32_t run = 0; run < axis.size; ++run)
        places.push_back(std::make_shared<const AllowedPlace>(
            AllowedPlace::only(domainOnMesh(setting.mesh, {{axis.name, run}}))));
    std::vector<OperatorMeaning> meanings(acted.size());
    std::size_t run = 0;
    std::size_t inRun = 0;
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < acted.size(); ++i) {
        // Places behind get one operator each at least, where there are as many.
        const bool mustLeave = acted.size() - i <= places.size() - 1 - run;
        if (inRun > 0 && run + 1 < places.size() && (sum + weights[i] > most || mustLeave)) {
            ++run;
            inRun = 0;
            sum = 0;
        }
        ++inRun;
        sum += weights[i];
        meanings[i].place = places[run];
    }
    return meanings;
}

} // namespace planloom
