#include "engine/table/kinds/partition/split.h"

#include "engine/table/kinds/meaning.h"
#include "engine/table/rule_form.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

namespace planloom {

namespace {

const char *wordOf(SplitKind kind)
{
    constexpr std::array kWords{"dimension", "replicate", "value"};
    return kWords[static_cast<std::size_t>(kind)];
}

/// "[by N | into N,N,..] [over AXIS [zigzag]]"
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
    if (cuts && !step.axis.empty() && !isUneven)
        form.flag("zigzag", step.zigzag);
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

/// A step by a meaning other than the batch, which not every model has.
bool isByMeaning(const SplitStep &step)
{
    return step.kind == SplitKind::Dimension && step.dimension.kind == DimensionRef::Kind::Meaning
        && !isBatch(step);
}

/// What the operators can be cut by: "batch (8), heads (4, 16)".
std::string meaningsOf(const SelectorIndex &index, const std::vector<OperatorId> &operators)
{
    std::map<DimensionMeaning, std::set<std::int64_t>> found;
    for (const OperatorId op : operators) {
        for (int i = 1; i < kDimensionMeaningCount; ++i) {
            const auto meaning = static_cast<DimensionMeaning>(i);
            const auto meant = findMeant(index.dimensions(), index.graph(), op, meaning);
            if (meant.identifier >= 0)
                found[meaning].insert(meant.extent);
        }
    }
    std::string text;
    for (const auto &[meaning, extents] : found) {
        std::string sizes;
        for (const std::int64_t extent : extents)
            sizes += (sizes.empty() ? "" : ", ") + std::to_string(extent);
        text += (text.empty() ? "" : ", ") + std::string(nameOf(meaning)) + " (" + sizes + ")";
    }
    return text;
}

/// For a meaning that none of the operators can be cut by.
Error noSuchMeaning(
    const RowSetting &setting, const DimensionRef &ref, const std::vector<OperatorId> &operators)
{
    const std::string name = nameOf(ref.meaning);
    bool frozen = false;
    bool called = false;
    for (const OperatorId op : operators) {
        frozen = frozen || findMeant(setting.index().dimensions(), setting.graph(), op, ref.meaning).frozen;
        called = called || findDimension(setting.graph().at(op).annotation, name).has_value();
    }
    const std::string others = meaningsOf(setting.index(), operators);
    return {ErrorCode::InvalidInput,
        frozen ? "what is selected needs " + name + " whole"
               : "nothing selected has a dimension that is " + name,
        (called ? "write \"" + name + "\" in quotes for the identifier of that name; " : "")
            + (others.empty() ? "nothing selected has a dimension that is known" : "there is " + others),
        ""};
}

/// What `op` may be cut by of the steps over one axis: of several, each is a way, and those that `op` does
/// not have, or cannot be cut by, are none. Empty where it has no such dimension.
/// @return InvalidInput if none of them can be
Result<std::vector<Split>> splitsOf(
    const RowSetting &setting, OperatorId op, std::span<const SplitStep> steps)
{
    std::vector<Split> splits;
    std::optional<Error> failure;
    for (const SplitStep &step : steps) {
        auto split = splitOf(setting, op, step);
        auto legal = split ? checkPartition(setting.graph().at(op), {{*split}}) : Result<void>(split.error());
        if (split && step.kind == SplitKind::Dimension && split->parts == 0)
            continue;
        if (!legal)
            failure = failure ? failure : std::move(legal).error();
        else if (std::find(splits.begin(), splits.end(), *split) == splits.end())
            splits.push_back(*std::move(split));
    }
    if (splits.empty() && failure)
        return *std::move(failure);
    return splits;
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

Result<void> RuleMeaning<OpTransRule>::check(const RowSetting &setting, const OpTransRule &rule)
{
    for (std::size_t i = 0; i < rule.steps.size(); ++i) {
        const SplitStep &step = rule.steps[i];
        TRY_VOID(splitOf(setting, {}, step));
        const auto same = [&](const SplitStep &other) { return other.axis == step.axis; };
        const auto before = rule.steps.begin() + static_cast<std::ptrdiff_t>(i);
        if (!step.axis.empty() && std::any_of(rule.steps.begin(), before, same)
            && rule.steps[i - 1].axis != step.axis) {
            return Error{ErrorCode::InvalidInput, "two steps run over mesh axis '" + step.axis + "'",
                "give each step an axis of its own, or write those of one axis side by side with 'or'", ""};
        }
        if (isBatch(step) && setting.batch().size == 0)
            return Error{
                ErrorCode::InvalidInput, "the model has no batch dimension", setting.batch().limitedBy, ""};
    }
    return {};
}

Result<std::vector<OperatorId>> RuleMeaning<OpTransRule>::actsOn(
    const RowSetting &setting, const OpTransRule &rule, const std::vector<OperatorId> &selected)
{
    auto acted = actedOn(setting.graph(), selected);
    if (acted.empty() && !selected.empty()) {
        return Error{ErrorCode::InvalidInput, "backward operators are split as their forward operators",
            "select forward operators", ""};
    }
    for (const SplitStep &step : rule.steps) {
        const auto has = [&](OperatorId op) {
            const auto dimension = resolveDimension(setting, op, step.dimension);
            return !dimension || *dimension >= 0;
        };
        if (isByMeaning(step) && !acted.empty() && std::none_of(acted.begin(), acted.end(), has))
            return noSuchMeaning(setting, step.dimension, acted);
    }
    return acted;
}

Result<std::optional<OperatorMeaning>> RuleMeaning<OpTransRule>::of(
    const RowSetting &setting, const OpTransRule &rule, OperatorId op)
{
    OperatorMeaning meaning;
    std::vector<Split> within;
    bool applies = false;
    for (std::size_t i = 0; i < rule.steps.size();) {
        const std::size_t begin = i;
        for (++i; i < rule.steps.size() && !rule.steps[i].axis.empty()
             && rule.steps[i].axis == rule.steps[begin].axis;)
            ++i;
        TRY(std::vector<Split> splits, splitsOf(setting, op, {&rule.steps[begin], i - begin}));
        applies = applies || !splits.empty();
        if (splits.empty() || splits.front().parts <= 1)
            continue;
        if (splits.front().axis.empty()) {
            within.push_back(std::move(splits.front()));
        } else {
            std::string axis = splits.front().axis;
            meaning.axes.push_back({std::move(axis), Allowed<Split>::oneOf(std::move(splits))});
        }
    }
    if (!applies)
        return std::optional<OperatorMeaning>{};
    if (!within.empty())
        meaning.within = Allowed<std::vector<Split>>::only(std::move(within));
    std::stable_sort(
        meaning.axes.begin(), meaning.axes.end(), [&](const AxisMeaning &a, const AxisMeaning &b) {
            return meshPosition(setting.mesh, a.axis) < meshPosition(setting.mesh, b.axis);
        });
    return std::optional(std::move(meaning));
}

} // namespace planloom
