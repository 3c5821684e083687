#include "engine/gesture/domain_map.h"

#include "engine/gesture/acting.h"
#include "engine/gesture/narrow.h"
#include "engine/gesture/split_steps.h"

#include <algorithm>
#include <map>

namespace planloom {

DomainMap domainMap(const GestureContext &context, RowEdits *edits)
{
    const Graph &graph = context.graph();
    const SelectorIndex &index = *context.index;
    DomainMap map;
    if (context.mesh.empty()) {
        std::vector<DeviceId> all;
        for (std::int32_t d = 0; d < context.deviceCount; ++d)
            all.push_back({d});
        map.domains.push_back(domainOfList(std::move(all)));
    } else {
        map.domains.push_back(domainOnMesh(context.mesh, {}));
    }
    map.number.assign(graph.operators.size(), -1);
    const auto place = [&](const OpAssignRule &rule, const std::vector<OperatorId> &operators) {
        if (operators.empty())
            return;
        auto domain = domainOf(context, rule);
        if (!domain)
            return;
        const auto known = std::find(map.domains.begin(), map.domains.end(), *domain);
        const auto number = static_cast<std::int32_t>(known - map.domains.begin());
        if (known == map.domains.end())
            map.domains.push_back(*std::move(domain));
        for (const OperatorId op : operators)
            map.number[static_cast<std::size_t>(op.index)] = number;
    };
    forEachRule<OpAssignRule>(context, [&](std::int32_t line, const Row &row, const OpAssignRule &rule) {
        const auto selected = forwardSelected(index, row.selector);
        place(rule, edits ? subtracted(selected, edits->dropped(line, selected)) : selected);
    });
    if (edits) {
        for (const Row &row : edits->appended()) {
            if (const auto *rule = std::get_if<OpAssignRule>(&row.rule))
                place(*rule, forwardSelected(index, row.selector));
        }
    }
    std::size_t count = 0;
    for (; count < graph.operators.size() && graph.operators[count].direction == Direction::Forward;
         ++count) {
        if (map.number[count] >= 0)
            continue;
        if (const OperatorId leader = leaderOf(index, {static_cast<std::int32_t>(count)}); leader.valid())
            map.number[count] = map.number[static_cast<std::size_t>(leader.index)];
    }
    for (std::size_t i = count; i-- > 0;) {
        if (map.number[i] >= 0)
            continue;
        OperatorId first;
        for (const OperatorId user : forwardConsumers(index, {static_cast<std::int32_t>(i)})) {
            if (map.number[static_cast<std::size_t>(user.index)] >= 0 && (!first.valid() || user < first))
                first = user;
        }
        if (first.valid())
            map.number[i] = map.number[static_cast<std::size_t>(first.index)];
    }
    for (std::size_t i = 0; i < count; ++i)
        map.number[i] = std::max(map.number[i], 0);
    return map;
}

std::optional<Error> fitSplits(const GestureContext &context, RowEdits &edits,
    const std::vector<OperatorId> &operators, const Domain &domain, bool dropUndealt)
{
    const Subset subset(*context.index, operators);
    const auto bound = boundSteps(context, subset);
    StepWriter writer;
    for (std::size_t i = 0; i < operators.size(); ++i) {
        std::vector<BoundStep> steps = bound[i];
        std::erase_if(steps, [&](const BoundStep &step) { return edits.letsGo(step.line, operators[i]); });
        sortSteps(context, steps);
        std::int64_t parts = 1;
        for (const BoundStep &step : steps)
            parts *= step.split.parts;
        const auto onAxis = [](const BoundStep &step) { return !step.split.axis.empty(); };
        std::vector<BoundStep> kept = steps;
        if (domain.onMesh) {
            std::erase_if(kept, [&](const BoundStep &step) { return !spans(domain, {step}); });
        } else if (const auto devices = static_cast<std::int64_t>(domain.devices.size());
                   devices == 1 || (parts % devices != 0 && devices % parts != 0)) {
            std::erase_if(kept, onAxis);
        }
        if (auto refusal = checkDealing(context, operators[i], kept, domain)) {
            if (!dropUndealt)
                return refusal;
            kept.clear();
        }
        if (kept.size() == steps.size())
            continue;
        std::vector<std::int32_t> lines;
        for (const BoundStep &step : bound[i]) {
            const bool stays = std::any_of(kept.begin(), kept.end(),
                [&](const BoundStep &k) { return k.split == step.split && k.line == step.line; });
            if (!stays) {
                edits.letGo(step.line, {operators[i]});
                lines.push_back(step.line);
            }
        }
        // What the same rows say besides stays said.
        std::vector<BoundStep> written;
        std::copy_if(kept.begin(), kept.end(), std::back_inserter(written), [&](const BoundStep &step) {
            return std::find(lines.begin(), lines.end(), step.line) != lines.end();
        });
        writer.add(operators[i], written);
    }
    writer.finish(edits);
    return std::nullopt;
}

void fitFollowers(const GestureContext &context, RowEdits &edits)
{
    bool anySplit = false;
    forEachRule<OpTransRule>(
        context, [&](std::int32_t, const Row &, const OpTransRule &) { anySplit = true; });
    if (!anySplit)
        return;
    const DomainMap before = domainMap(context);
    const DomainMap after = domainMap(context, &edits);
    std::map<std::int32_t, std::vector<OperatorId>> moved; // by where they are now
    for (std::size_t i = 0; i < after.number.size() && after.number[i] >= 0; ++i) {
        const OperatorId op{static_cast<std::int32_t>(i)};
        if (after.of(op) != before.of(op))
            moved[after.number[i]].push_back(op);
    }
    for (const auto &[number, operators] : moved)
        fitSplits(context, edits, operators, after.domains[static_cast<std::size_t>(number)], true);
}

} // namespace planloom
