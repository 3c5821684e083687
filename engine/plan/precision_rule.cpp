#include "engine/plan/precision_rule.h"

#include "engine/base/words.h"
#include "engine/graph/operators/weight_update.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

namespace planloom {

void decidePrecisions(PlanDraft &draft, PrecisionPreset fallback)
{
    const Graph &graph = draft.graph();
    const Precision usual = precisionOf(fallback);
    // By tensor: the first forward operator that reads it.
    std::vector<OperatorId> readers(graph.tensors.size());
    const auto followRows = [&](OperatorId op) {
        const OperatorBinding &binding = draft.bindingOf(op);
        OperatorDecision &decision = draft.decisionOf(op);
        decision.precision = binding.allowed.precision ? resolved(*binding.allowed.precision, usual) : usual;
        decision.precisionRows.clear();
        for (const std::int32_t row : binding.precisionRows)
            decision.precisionRows.push_back({row});
        // A default that changes the numbers is said; Float32 is what the model says itself.
        if (binding.precisionRows.empty() && fallback != PrecisionPreset::Float32)
            decision.why += (decision.why.empty() ? "" : "; ") + std::string(nameOf(fallback))
                + " as no row gives it a precision";
    };
    const auto followOperator = [&](OperatorId op, OperatorId leader) {
        OperatorDecision &decision = draft.decisionOf(op);
        decision.precision = draft.decisionOf(leader).precision;
        decision.precisionRows = draft.decisionOf(leader).precisionRows;
    };
    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
        const Operator &op = graph.operators[i];
        const OperatorId id{static_cast<std::int32_t>(i)};
        if (op.direction == Direction::Backward) {
            followOperator(id, op.mirror);
            continue;
        }
        const OperatorId reader =
            updatesWeight(op) ? readers[static_cast<std::size_t>(op.inputs[0].index)] : OperatorId{};
        if (reader && !draft.bindingOf(id).allowed.precision)
            followOperator(id, reader);
        else
            followRows(id);
        if (op.direction != Direction::Forward)
            continue;
        for (const TensorId input : op.inputs)
            if (input && !readers[static_cast<std::size_t>(input.index)])
                readers[static_cast<std::size_t>(input.index)] = id;
    }
}

std::string precisionSummary(const Plan &plan)
{
    std::map<std::string, std::int64_t> counts;
    bool byRow = false;
    for (const OperatorDecision &decision : plan.decisions) {
        ++counts[toString(decision.precision)];
        byRow = byRow || !decision.precisionRows.empty();
    }
    std::vector<std::pair<std::string, std::int64_t>> sorted(counts.begin(), counts.end());
    std::stable_sort(
        sorted.begin(), sorted.end(), [](const auto &a, const auto &b) { return a.second > b.second; });
    std::string text;
    for (const auto &[name, count] : sorted)
        text += (text.empty() ? "" : ", ") + name
            + (sorted.size() > 1 ? " (" + counted(count, "operator") + ")" : "");
    return text + (byRow ? "" : " by default");
}

} // namespace planloom
