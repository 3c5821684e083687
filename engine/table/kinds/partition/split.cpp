#include "engine/table/kinds/partition/split.h"

#include "engine/table/rule_form.h"

namespace planloom {

namespace {

const char *wordOf(SplitKind kind)
{
    constexpr std::array kWords{"dimension", "replicate", "value"};
    return kWords[static_cast<std::size_t>(kind)];
}

/// "[by N | into N,N,..] [over AXIS]"
void describeAmount(RuleForm &form, SplitStep &step)
{
    const bool cuts = step.kind == SplitKind::Dimension;
    const bool isUneven = (cuts || !form.isText()) && form.has("into", "sizes", !step.sizes.empty());
    if (isUneven && (!cuts || (!form.isText() && form.holds("parts", false))))
        form.expected("sizes", "sizes only for a dimension, and without parts");
    if (isUneven)
        form.list(
            "sizes", step.sizes,
            [](RuleForm &part, std::int64_t &size) {
                part.number({}, size, {"the size of a part", 1, kMostExtent});
            },
            [&](auto, const auto *) { return form.another(',', true); });
    else
        form.numberAfter("by", "parts", step.parts, {"a number of parts", 1});
    if (form.has("over", "axis", !step.axis.empty()))
        form.axis(step.axis);
    if (step.parts == 0 && step.sizes.empty() && step.axis.empty())
        form.expected({},
            !form.isText() ? "parts, sizes or an axis"
                : cuts     ? "'by' and a number of parts, 'into' and sizes, or 'over' and a mesh axis"
                           : "'by' and a number of parts, or 'over' and a mesh axis");
}

void describeStep(RuleForm &form, SplitStep &step)
{
    if (!form.isText())
        form.choice("split", step.kind,
            std::array{SplitKind::Dimension, SplitKind::Replicate, SplitKind::Value}, {}, wordOf);
    else
        for (const SplitKind kind : {SplitKind::Value, SplitKind::Replicate})
            if (form.takes(wordOf(kind), step.kind == kind)) {
                step.kind = kind;
                break;
            }
    if (step.kind == SplitKind::Dimension)
        dimensionRef(form, step.dimension);
    describeAmount(form, step);
}

/// "replicate SELECTOR : by 2" is "split SELECTOR : replicate by 2".
bool isReplicate(const OpTransRule &rule)
{
    return rule.steps.size() == 1 && rule.steps.front().kind == SplitKind::Replicate;
}

} // namespace

const char *RuleTraits<OpTransRule>::wordOf(const OpTransRule &rule)
{
    return isReplicate(rule) ? "replicate" : "split";
}

void RuleTraits<OpTransRule>::describe(RuleForm &form, OpTransRule &rule)
{
    if (form.way() == RuleForm::Way::ReadText && form.rowWord() == words[1])
        rule.steps = {{.kind = SplitKind::Replicate}};
    if (form.isText() && isReplicate(rule))
        return describeAmount(form, rule.steps.front());
    const auto next = [&](const SplitStep &step, const SplitStep *after) {
        if (after)
            return form.takes(!after->axis.empty() && after->axis == step.axis ? "or" : "then", true);
        if (form.takes("then"))
            return true;
        if (!form.takes("or"))
            return false;
        if (step.axis.empty())
            form.expected({}, "'over' and a mesh axis before 'or'");
        return true;
    };
    form.list("steps", rule.steps, describeStep, next, true);
}

} // namespace planloom
