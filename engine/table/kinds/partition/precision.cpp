#include "engine/table/kinds/partition/precision.h"

#include "engine/graph/operators/weight_update.h"
#include "engine/table/kinds/meaning.h"
#include "engine/table/rule_form.h"

#include <algorithm>
#include <iterator>
#include <span>

namespace planloom {

namespace {

constexpr std::array kComputeTypes{
    DataType::Float32, DataType::TensorFloat32, DataType::BFloat16, DataType::Float16, DataType::Float8E4M3};
constexpr std::array kStorageTypes{DataType::Float32, DataType::BFloat16, DataType::Float16};

/// A setting that is a type.
struct TypeSetting {
    const char *name;
    std::optional<DataType> PrecisionRule::*member;
    DataType Precision::*target;
    std::span<const DataType> types;
};

constexpr std::array kTypeSettings{
    TypeSetting{"compute", &PrecisionRule::compute, &Precision::compute, kComputeTypes},
    TypeSetting{"storage", &PrecisionRule::storage, &Precision::storage, kStorageTypes},
    TypeSetting{"gradient", &PrecisionRule::gradient, &Precision::gradient, kStorageTypes},
    TypeSetting{"reduction", &PrecisionRule::reduction, &Precision::reduction, kStorageTypes},
    TypeSetting{"optimizer", &PrecisionRule::optimizer, &Precision::optimizer, kStorageTypes},
};

bool isPowerOfTwo(std::int64_t number)
{
    return number > 0 && (number & (number - 1)) == 0;
}

/// "compute=bf16". @return whether it is there
bool describeType(RuleForm &form, PrecisionRule &rule, const TypeSetting &setting)
{
    std::optional<DataType> &type = rule.*setting.member;
    const std::size_t place = form.place();
    if (!form.has(setting.name, setting.name, type.has_value()))
        return false;
    if (type)
        form.expected({}, "every setting once", place);
    form.symbol('=', "a setting is NAME=TYPE", true);
    DataType said = type.value_or(DataType::Float32);
    form.choice(setting.name, said, setting.types, {}, shortNameOf);
    type = said;
    return true;
}

/// "scale=1024". @return whether it is there
bool describeScale(RuleForm &form, PrecisionRule &rule)
{
    if (!form.has("scale", "scale", rule.scale.has_value()))
        return false;
    form.symbol('=', "a setting is NAME=VALUE", true);
    const std::size_t place = form.place();
    std::int32_t scale = rule.scale.value_or(1);
    form.number("scale", scale, {"a loss scale", 1, kMostLossScale});
    if (!isPowerOfTwo(scale))
        form.expected("scale", "a power of two, which scales exactly", place);
    rule.scale = scale;
    return true;
}

} // namespace

void RuleTraits<PrecisionRule>::describe(RuleForm &form, PrecisionRule &rule)
{
    form.maybe("preset", rule.preset, kAllPrecisionPresets);
    // Text that is read has the settings in any order.
    bool again = true;
    while (again && !form.failed()) {
        again = false;
        for (const TypeSetting &setting : kTypeSettings)
            again |= describeType(form, rule, setting);
        again |= describeScale(form, rule);
        again = again && form.way() == RuleForm::Way::ReadText;
    }
    if (rule == PrecisionRule{})
        form.expected({},
            form.isText() ? "fp32, tf32, bf16, fp16 or fp8, or settings such as compute=fp32 storage=bf16"
                          : "a preset or at least one setting");
}

bool sets(const PrecisionRule &rule, int setting)
{
    if (setting == 0)
        return rule.preset.has_value();
    if (setting <= static_cast<int>(kTypeSettings.size()))
        return (rule.*kTypeSettings[static_cast<std::size_t>(setting - 1)].member).has_value();
    return rule.scale.has_value();
}

std::optional<int> clashingSetting(const PrecisionRule &a, const PrecisionRule &b)
{
    const auto differ = [](const auto &x, const auto &y) { return x && y && *x != *y; };
    int setting = 0;
    if (differ(a.preset, b.preset))
        return setting;
    for (const TypeSetting &each : kTypeSettings) {
        ++setting;
        if (differ(a.*each.member, b.*each.member))
            return setting;
    }
    return differ(a.scale, b.scale) ? std::optional(setting + 1) : std::nullopt;
}

PrecisionRule joined(const PrecisionRule &a, const PrecisionRule &b)
{
    PrecisionRule both = a;
    if (!both.preset)
        both.preset = b.preset;
    for (const TypeSetting &each : kTypeSettings)
        if (!(both.*each.member))
            both.*each.member = b.*each.member;
    if (!both.scale)
        both.scale = b.scale;
    return both;
}

Precision resolved(const PrecisionRule &rule, const Precision &fallback)
{
    Precision precision = rule.preset ? precisionOf(*rule.preset) : fallback;
    for (const TypeSetting &each : kTypeSettings)
        if (const auto &type = rule.*each.member)
            precision.*each.target = *type;
    if (rule.scale)
        precision.lossScale = *rule.scale;
    return precision;
}

Result<std::vector<OperatorId>> RuleMeaning<PrecisionRule>::actsOn(
    const RowSetting &setting, const PrecisionRule &, const std::vector<OperatorId> &selected)
{
    const auto forward = forwardOnes(setting.graph(), selected);
    std::vector<OperatorId> updates;
    std::copy_if(selected.begin(), selected.end(), std::back_inserter(updates),
        [&](OperatorId op) { return updatesWeight(setting.graph().at(op)); });
    std::vector<OperatorId> both;
    std::set_union(forward.begin(), forward.end(), updates.begin(), updates.end(), std::back_inserter(both));
    return both;
}

Result<std::optional<OperatorMeaning>> RuleMeaning<PrecisionRule>::of(
    const RowSetting &, const PrecisionRule &rule, OperatorId)
{
    return std::optional(OperatorMeaning{.precision = rule});
}

} // namespace planloom
