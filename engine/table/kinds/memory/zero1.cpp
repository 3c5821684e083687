#include "engine/table/kinds/memory/zero1.h"

#include "engine/graph/operators/weight_update.h"
#include "engine/table/kinds/meaning.h"
#include "engine/table/mesh_axes.h"
#include "engine/table/rule_form.h"

#include <algorithm>
#include <iterator>

namespace planloom {

namespace {

constexpr std::int32_t kMostAhead = 64; ///< Layers: more than that is all of them.

/// In text, the row's word has the stage: "zero0" to "zero3", or "zero", which leaves it open.
/// @return whether more may follow
bool stageInText(RuleForm &form, OptimizerShardingRule &rule)
{
    if (form.reads()) {
        rule.chosen = form.rowWord() == RuleTraits<OptimizerShardingRule>::words[4];
        rule.stage = rule.chosen ? 1 : form.rowWord().back() - '0';
    }
    if (rule.chosen && form.takes("never"))
        rule = {.stage = 0};
    if (rule.chosen)
        form.word("solver", "solver or never; else say zero1, zero2 or zero3");
    return !rule.chosen;
}

bool stageInJson(RuleForm &form, OptimizerShardingRule &rule)
{
    rule.chosen = form.holds("when", rule.chosen);
    if (!rule.chosen) {
        if (form.holds("stage", rule.stage != 1))
            form.number("stage", rule.stage, {{}, 0, 3});
        return true;
    }
    std::string when = "solver";
    form.name("when", when, {});
    bool isAlone = when == "solver";
    for (const char *other : {"stage", "axis", "and", "parts", "keep", "prefetch"})
        isAlone = isAlone && !form.holds(other, false);
    if (!isAlone)
        form.expected("when", "solver, and nothing beside it");
    return false;
}

} // namespace

bool sharesOver(const OptimizerShardingRule &rule, const std::string &axis)
{
    return rule.axis == axis
        || std::find(rule.moreAxes.begin(), rule.moreAxes.end(), axis) != rule.moreAxes.end();
}

OptimizerShardingRule withoutAxis(OptimizerShardingRule rule, const std::string &axis)
{
    std::erase(rule.moreAxes, axis);
    if (rule.axis == axis) {
        rule.axis = rule.moreAxes.empty() ? std::string{} : rule.moreAxes.front();
        std::erase(rule.moreAxes, rule.axis);
    }
    return rule;
}

const char *RuleTraits<OptimizerShardingRule>::wordOf(const OptimizerShardingRule &rule)
{
    if (rule.chosen)
        return words[4];
    return rule.stage == 0 ? words[3] : words[static_cast<std::size_t>(std::clamp(rule.stage, 1, 3)) - 1];
}

void RuleTraits<OptimizerShardingRule>::describe(RuleForm &form, OptimizerShardingRule &rule)
{
    if (!(form.isText() ? stageInText(form, rule) : stageInJson(form, rule)))
        return;
    // Text has words for what its stage can have; JSON has members for all of it, which may not be there.
    if (rule.stage > 0 || !form.isText()) {
        if (form.has("over", "axis", !rule.axis.empty()))
            form.axis(rule.axis);
        if (form.has("and", "and", !rule.moreAxes.empty()))
            form.list(
                "and", rule.moreAxes,
                [](RuleForm &part, std::string &axis) { part.name({}, axis, "the name of a mesh axis"); },
                [&](const std::string &, const std::string *next) {
                    return form.takes("and", next != nullptr);
                });
        if (rule.axis.empty() && !rule.moreAxes.empty())
            form.expected("and", "an axis before another one");
        form.numberAfter("by", "parts", rule.parts, {"a number of parts", 1});
    }
    if (rule.stage < 3 && form.isText())
        return;
    form.flag("keep", rule.keep);
    const bool prefetches =
        form.has("prefetch", "prefetch", rule.prefetch != OptimizerShardingRule{}.prefetch);
    if (prefetches)
        form.number("prefetch", rule.prefetch, {"a number of layers", 0, kMostAhead});
    if ((rule.stage < 3 && (rule.keep || prefetches))
        || (rule.stage == 0 && (!rule.axis.empty() || rule.parts > 0)))
        form.expected(
            {}, "axis and parts only with a stage above 0, and keep and prefetch only with stage 3");
}

Result<void> RuleMeaning<OptimizerShardingRule>::check(
    const RowSetting &setting, const OptimizerShardingRule &rule)
{
    const auto checkAxis = [&setting](const std::string &axis) -> Result<void> {
        if (axis.empty() || findAxis(setting.mesh, axis))
            return {};
        return Error{ErrorCode::InvalidInput, "the mesh has no axis '" + axis + "'",
            noSuchAxisAdvice(setting.mesh, axis), ""};
    };
    TRY_VOID(checkAxis(rule.axis));
    for (const std::string &axis : rule.moreAxes)
        TRY_VOID(checkAxis(axis));
    return {};
}

Result<std::vector<OperatorId>> RuleMeaning<OptimizerShardingRule>::actsOn(
    const RowSetting &setting, const OptimizerShardingRule &, const std::vector<OperatorId> &selected)
{
    std::vector<OperatorId> named;
    std::copy_if(selected.begin(), selected.end(), std::back_inserter(named),
        [&](OperatorId op) { return updatesWeight(setting.graph().at(op)); });
    return named.empty() ? optimizersOf(setting.index(), selected) : named;
}

Result<std::optional<OperatorMeaning>> RuleMeaning<OptimizerShardingRule>::of(
    const RowSetting &, const OptimizerShardingRule &rule, OperatorId)
{
    OperatorMeaning meaning;
    if (!rule.chosen)
        meaning.sharding = rule;
    return std::optional(std::move(meaning));
}

} // namespace planloom
