#include "engine/table/kinds/partition/precision.h"

#include "engine/table/json_members.h"
#include "engine/table/text_cursor.h"

#include <nlohmann/json.hpp>

namespace planloom {

namespace {

/// A setting that is a type.
struct TypeSetting {
    const char *name;
    std::optional<DataType> PrecisionRule::*member;
    DataType Precision::*target;
    bool (*fits)(DataType);
    const char *types; ///< Those that fit, in words.
};

constexpr const char *kStorageTypes = "fp32, bf16 or fp16";
constexpr std::array kTypeSettings{
    TypeSetting{"compute", &PrecisionRule::compute, &Precision::compute, isComputeType,
        "fp32, tf32, bf16, fp16 or fp8"},
    TypeSetting{"storage", &PrecisionRule::storage, &Precision::storage, isStorageType, kStorageTypes},
    TypeSetting{"gradient", &PrecisionRule::gradient, &Precision::gradient, isStorageType, kStorageTypes},
    TypeSetting{"reduction", &PrecisionRule::reduction, &Precision::reduction, isStorageType, kStorageTypes},
    TypeSetting{"optimizer", &PrecisionRule::optimizer, &Precision::optimizer, isStorageType, kStorageTypes},
};

constexpr const char *kPresets = "fp32, tf32, bf16, fp16 or fp8";

std::optional<DataType> typeNamed(const TypeSetting &setting, std::string_view name)
{
    const auto type = dataTypeOfShortName(name);
    return type && setting.fits(*type) ? type : std::nullopt;
}

bool isPowerOfTwo(std::int64_t number)
{
    return number > 0 && (number & (number - 1)) == 0;
}

} // namespace

Result<PrecisionRule> RuleTraits<PrecisionRule>::parse(TextCursor &cursor, std::string_view)
{
    PrecisionRule rule;
    if (const auto preset = precisionPresetNamed(cursor.peekWord())) {
        rule.preset = preset;
        cursor.takeWord(nameOf(*preset));
    }
    for (;;) {
        const std::size_t before = cursor.position();
        bool taken = false;
        for (const TypeSetting &setting : kTypeSettings) {
            if (!cursor.takeWord(setting.name))
                continue;
            if (rule.*setting.member) {
                cursor.rewind(before);
                return cursor.expected("every setting once");
            }
            TRY_VOID(cursor.require('=', "a setting is NAME=TYPE"));
            const auto type = typeNamed(setting, cursor.peekWord());
            if (!type)
                return cursor.expected(setting.types);
            cursor.takeWord(shortNameOf(*type));
            rule.*setting.member = type;
            taken = true;
            break;
        }
        if (!taken && cursor.takeWord("scale")) {
            TRY_VOID(cursor.require('=', "a setting is NAME=VALUE"));
            const std::size_t at = cursor.position();
            TRY(const auto scale, cursor.integer("a loss scale", 1, kMostLossScale));
            if (!isPowerOfTwo(scale)) {
                cursor.rewind(at);
                return cursor.expected("a power of two, which scales exactly");
            }
            rule.scale = static_cast<std::int32_t>(scale);
            taken = true;
        }
        if (!taken)
            break;
    }
    if (rule == PrecisionRule{})
        return cursor.expected(std::string(kPresets) + ", or settings such as compute=fp32 storage=bf16");
    return rule;
}

std::string RuleTraits<PrecisionRule>::print(const PrecisionRule &rule)
{
    std::string text = rule.preset ? nameOf(*rule.preset) : "";
    const auto add = [&](const char *name, const std::string &value) {
        text += (text.empty() ? "" : " ") + std::string(name) + "=" + value;
    };
    for (const TypeSetting &setting : kTypeSettings)
        if (const auto &type = rule.*setting.member)
            add(setting.name, shortNameOf(*type));
    if (rule.scale)
        add("scale", std::to_string(*rule.scale));
    return text;
}

void RuleTraits<PrecisionRule>::write(const PrecisionRule &rule, nlohmann::json &json)
{
    if (rule.preset)
        json["preset"] = nameOf(*rule.preset);
    for (const TypeSetting &setting : kTypeSettings)
        if (const auto &type = rule.*setting.member)
            json[setting.name] = shortNameOf(*type);
    if (rule.scale)
        json["scale"] = *rule.scale;
}

Result<PrecisionRule> RuleTraits<PrecisionRule>::read(const nlohmann::json &json, const std::string &where)
{
    TRY_VOID(requireMembers(json,
        {"type", "preset", "compute", "storage", "gradient", "reduction", "optimizer", "scale"}, where));
    PrecisionRule rule;
    if (json.contains("preset")) {
        TRY(const std::string name, textAt(json, "preset", where));
        rule.preset = precisionPresetNamed(name);
        if (!rule.preset)
            return wrong(where + "/preset", std::string("expected ") + kPresets);
    }
    for (const TypeSetting &setting : kTypeSettings) {
        if (!json.contains(setting.name))
            continue;
        TRY(const std::string name, textAt(json, setting.name, where));
        rule.*setting.member = typeNamed(setting, name);
        if (!(rule.*setting.member))
            return wrong(where + "/" + setting.name, std::string("expected ") + setting.types);
    }
    if (json.contains("scale")) {
        TRY(const auto scale, integerAt(json, "scale", where, 1, kMostLossScale));
        if (!isPowerOfTwo(scale))
            return wrong(where + "/scale", "expected a power of two");
        rule.scale = static_cast<std::int32_t>(scale);
    }
    if (rule == PrecisionRule{})
        return wrong(where, "expected a preset or at least one setting");
    return rule;
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

} // namespace planloom
