#include "engine/table/kinds/degree.h"

#include "engine/table/json_members.h"
#include "engine/table/text_cursor.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cctype>

namespace planloom {

namespace {

constexpr std::array kDegrees{
    Degree::Data, Degree::Tensor, Degree::Pipeline, Degree::Stages, Degree::MicroBatches};
constexpr std::array kKinds{DegreeRule::Kind::AtMost, DegreeRule::Kind::AtLeast, DegreeRule::Kind::OneOf};
constexpr std::size_t kMostValues = 64;

/// Of JSON.
const char *keyOf(DegreeRule::Kind kind)
{
    constexpr std::array kKeys{"at_most", "at_least", "one_of"};
    return kKeys[static_cast<std::size_t>(kind)];
}

std::vector<std::int32_t> inOrder(std::vector<std::int32_t> values)
{
    std::sort(values.begin(), values.end());
    values.erase(std::unique(values.begin(), values.end()), values.end());
    return values;
}

} // namespace

const char *nameOf(Degree degree)
{
    constexpr std::array kNames{"data", "tensor", "pipeline", "stages", "micro-batches"};
    return kNames[static_cast<std::size_t>(degree)];
}

bool DegreeRule::allows(std::int64_t value) const
{
    switch (kind) {
    case Kind::AtMost:
        return value <= values.front();
    case Kind::AtLeast:
        return value >= values.front();
    case Kind::OneOf:
        break;
    }
    return std::find(values.begin(), values.end(), value) != values.end();
}

Result<DegreeRule> RuleTraits<DegreeRule>::parse(TextCursor &cursor, std::string_view)
{
    DegreeRule rule;
    const auto degree =
        std::find_if(kDegrees.begin(), kDegrees.end(), [&](Degree d) { return cursor.takeWord(nameOf(d)); });
    if (degree == kDegrees.end())
        return cursor.expected("data, tensor, pipeline, stages or micro-batches");
    rule.degree = *degree;
    const auto number = [&] { return cursor.integer("a number of parts", 1, kMostCount); };
    if (cursor.takeWord("at")) {
        if (cursor.takeWord("least"))
            rule.kind = DegreeRule::Kind::AtLeast;
        else if (!cursor.takeWord("most"))
            return cursor.expected("most or least");
        TRY(const auto value, number());
        rule.values = {static_cast<std::int32_t>(value)};
        return rule;
    }
    if (!cursor.takeWord("one") || !cursor.takeWord("of"))
        return cursor.expected("at most 4, at least 2, or one of 2 4 8");
    rule.kind = DegreeRule::Kind::OneOf;
    rule.values.clear();
    do {
        if (rule.values.size() == kMostValues)
            return cursor.expected("at most " + std::to_string(kMostValues) + " numbers");
        TRY(const auto value, number());
        rule.values.push_back(static_cast<std::int32_t>(value));
    } while (std::isdigit(static_cast<unsigned char>(cursor.peek())) != 0);
    rule.values = inOrder(std::move(rule.values));
    return rule;
}

std::string RuleTraits<DegreeRule>::print(const DegreeRule &rule)
{
    constexpr std::array kWords{" at most", " at least", " one of"};
    std::string text = std::string(nameOf(rule.degree)) + kWords[static_cast<std::size_t>(rule.kind)];
    for (const std::int32_t value : rule.values)
        text += ' ' + std::to_string(value);
    return text;
}

void RuleTraits<DegreeRule>::write(const DegreeRule &rule, nlohmann::json &json)
{
    json["degree"] = nameOf(rule.degree);
    if (rule.kind == DegreeRule::Kind::OneOf)
        json[keyOf(rule.kind)] = rule.values;
    else
        json[keyOf(rule.kind)] = rule.values.front();
}

Result<DegreeRule> RuleTraits<DegreeRule>::read(const nlohmann::json &json, const std::string &where)
{
    TRY_VOID(requireMembers(json, {"type", "degree", "at_most", "at_least", "one_of"}, where));
    TRY(const std::string name, textAt(json, "degree", where));
    const auto degree =
        std::find_if(kDegrees.begin(), kDegrees.end(), [&](Degree d) { return name == nameOf(d); });
    if (degree == kDegrees.end())
        return wrong(where + "/degree", "expected data, tensor, pipeline, stages or micro-batches");
    if (std::count_if(kKinds.begin(), kKinds.end(), [&](auto kind) { return json.contains(keyOf(kind)); })
        != 1)
        return wrong(where, "expected one of at_most, at_least and one_of");
    DegreeRule rule{.degree = *degree};
    rule.kind =
        *std::find_if(kKinds.begin(), kKinds.end(), [&](auto kind) { return json.contains(keyOf(kind)); });
    const std::string key = keyOf(rule.kind);
    if (rule.kind != DegreeRule::Kind::OneOf) {
        TRY(const auto value, countAt(json, key.c_str(), where, 1));
        rule.values = {value};
        return rule;
    }
    TRY(const nlohmann::json *list, listAt(json, key.c_str(), where));
    if (list->size() > kMostValues)
        return wrong(where + "/" + key, "expected at most " + std::to_string(kMostValues) + " numbers");
    rule.values.clear();
    for (const nlohmann::json &value : *list) {
        if (!value.is_number_integer() || value.get<std::int64_t>() < 1
            || value.get<std::int64_t>() > kMostCount)
            return wrong(where + "/" + key, "expected integers of 1 to " + std::to_string(kMostCount));
        rule.values.push_back(value.get<std::int32_t>());
    }
    rule.values = inOrder(std::move(rule.values));
    return rule;
}

} // namespace planloom
