#include "engine/gesture/row_steps.h"

#include "engine/table/kinds/meaning.h"

#include <algorithm>

namespace planloom {

Result<std::optional<Split>> madeBy(const GestureContext &context, OperatorId op, const SplitStep &step)
{
    TRY(Split split, splitOf(context, op, step));
    return split.parts > 1 ? std::optional(std::move(split)) : std::nullopt;
}

std::vector<std::vector<BoundStep>> boundSteps(const GestureContext &context, const Subset &subset)
{
    std::vector<std::vector<BoundStep>> steps(subset.operators().size());
    forEachRule<OpTransRule>(context, [&](std::int32_t line, const Row &row, const OpTransRule &rule) {
        for (const OperatorId op : subset.selected(row.selector)) {
            for (const SplitStep &step : rule.steps) {
                auto split = madeBy(context, op, step);
                if (split && *split)
                    steps[static_cast<std::size_t>(subset.positionOf(op))].push_back(
                        {line, step, **std::move(split)});
            }
        }
    });
    return steps;
}

void sortSteps(const GestureContext &context, std::vector<BoundStep> &steps)
{
    std::stable_sort(steps.begin(), steps.end(), [&](const BoundStep &a, const BoundStep &b) {
        return meshPosition(context.mesh, a.split.axis) < meshPosition(context.mesh, b.split.axis);
    });
    steps.erase(std::unique(steps.begin(), steps.end(),
                    [](const BoundStep &a, const BoundStep &b) {
                        return !a.split.axis.empty() && a.split.axis == b.split.axis;
                    }),
        steps.end());
}

std::vector<Split> coshardSteps(const GestureContext &context, const Subset &subset)
{
    std::vector<Split> steps(subset.operators().size());
    forEachRule<CoshardRule>(context, [&](std::int32_t, const Row &row, const CoshardRule &rule) {
        for (const OperatorId op : subset.selected(row.selector)) {
            const auto meaning = RuleMeaning<CoshardRule>::of(context, rule, op);
            if (const Split *split = meaning && *meaning ? (*meaning)->coshard.preferred() : nullptr)
                steps[static_cast<std::size_t>(subset.positionOf(op))] = *split;
        }
    });
    return steps;
}

bool spans(const Domain &domain, const std::vector<BoundStep> &steps)
{
    return !domain.onMesh || std::all_of(steps.begin(), steps.end(), [&](const BoundStep &step) {
        return step.split.axis.empty()
            || std::any_of(domain.axes.begin(), domain.axes.end(),
                [&](const MeshAxis &axis) { return axis.name == step.split.axis; });
    });
}

void StepWriter::add(OperatorId op, const std::vector<BoundStep> &steps)
{
    if (steps.empty())
        return;
    std::vector<SplitStep> written;
    for (const BoundStep &step : steps)
        written.push_back(step.step);
    for (auto &[known, operators] : m_groups) {
        if (known == written) {
            operators.push_back(op);
            return;
        }
    }
    m_groups.push_back({std::move(written), {op}});
}

void StepWriter::finish(RowEdits &edits)
{
    for (auto &[steps, operators] : m_groups)
        edits.append(gestureRow(edits.selectorOf(operators), OpTransRule{steps}));
    m_groups.clear();
}

} // namespace planloom
