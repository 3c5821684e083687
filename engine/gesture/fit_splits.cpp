#include "engine/gesture/fit_splits.h"

#include "engine/binding/followers.h"
#include "engine/gesture/acting.h"
#include "engine/gesture/narrow.h"
#include "engine/gesture/row_steps.h"
#include "engine/gesture/split_refusal.h"

#include <algorithm>
#include <map>

namespace planloom {

namespace {

/// Where every forward operator runs, by place rows and what follows from them.
struct ForwardPlaces {
    std::vector<Domain> domains{};
    std::vector<std::int32_t> number{}; ///< By operator; -1 for others than forward ones.

    const Domain &of(OperatorId op) const
    {
        return domains[static_cast<std::size_t>(number[static_cast<std::size_t>(op.index)])];
    }
};

/// @param edits  changes of rows that count as made; null for the document as it is
/// O(place rows x operators) at most; rows that name operators cost their names.
ForwardPlaces placesOf(const GestureContext &context, RowEdits *edits)
{
    const SelectorIndex &index = context.index();
    ForwardPlaces places;
    places.domains.push_back(everywhere(context.mesh, context.deviceCount));
    places.number.assign(context.graph().operators.size(), -1);
    const auto place = [&](const OpAssignRule &rule, const std::vector<OperatorId> &operators) {
        auto domain = domainOf(context, rule);
        if (operators.empty() || !domain)
            return;
        const auto known = std::find(places.domains.begin(), places.domains.end(), *domain);
        const auto number = static_cast<std::int32_t>(known - places.domains.begin());
        if (known == places.domains.end())
            places.domains.push_back(*std::move(domain));
        for (const OperatorId op : operators)
            places.number[static_cast<std::size_t>(op.index)] = number;
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
    followPlaces(index, places.number);
    return places;
}

} // namespace

std::optional<Error> fitSplits(const GestureContext &context, RowEdits &edits,
    const std::vector<OperatorId> &operators, const Domain &domain, bool dropUndealt)
{
    const Subset subset(context.index(), operators);
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
                   devices == 1 || !canDealOut(parts, devices)) {
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
    const ForwardPlaces before = placesOf(context, nullptr);
    const ForwardPlaces after = placesOf(context, &edits);
    std::map<std::int32_t, std::vector<OperatorId>> moved; // by where they are now
    for (std::size_t i = 0; i < after.number.size(); ++i) {
        if (after.number[i] < 0)
            continue;
        const OperatorId op{static_cast<std::int32_t>(i)};
        if (after.of(op) != before.of(op))
            moved[after.number[i]].push_back(op);
    }
    for (const auto &[number, operators] : moved)
        fitSplits(context, edits, operators, after.domains[static_cast<std::size_t>(number)], true);
}

} // namespace planloom
