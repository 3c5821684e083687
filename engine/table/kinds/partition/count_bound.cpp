#include "engine/table/kinds/partition/count_bound.h"

#include "engine/table/json_members.h"
#include "engine/table/kinds/rule_traits.h"
#include "engine/table/text_cursor.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cctype>

namespace planloom {

namespace {

constexpr std::array kBoundKinds{
    CountBound::Kind::AtMost, CountBound::Kind::AtLeast, CountBound::Kind::OneOf};
constexpr std::size_t kMostValues = 64;

/// Of JSON.
const char *keyOf(CountBound::Kind kind)
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

bool CountBound::allows(std::int64_t value) const
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

bool canAgree(const std::vector<CountBound> &bounds)
{
    // The ends of their ranges, or one they name.
    std::vector<std::int32_t> candidates{1};
    for (const CountBound &bound : bounds)
        candidates.insert(candidates.end(), bound.values.begin(), bound.values.end());
    return std::any_of(candidates.begin(), candidates.end(), [&](std::int32_t value) {
        return std::all_of(
            bounds.begin(), bounds.end(), [&](const CountBound &bound) { return bound.allows(value); });
    });
}

Result<CountBound> parseCountBound(TextCursor &cursor)
{
    CountBound bound;
    const auto number = [&] { return cursor.integer("a number of parts", 1, kMostCount); };
    if (cursor.takeWord("at")) {
        if (cursor.takeWord("least"))
            bound.kind = CountBound::Kind::AtLeast;
        else if (!cursor.takeWord("most"))
            return cursor.expected("most or least");
        TRY(const auto value, number());
        bound.values = {static_cast<std::int32_t>(value)};
        return bound;
    }
    bound.kind = CountBound::Kind::OneOf;
    if (cursor.takeWord("exactly")) {
        TRY(const auto value, number());
        bound.values = {static_cast<std::int32_t>(value)};
        return bound;
    }
    if (!cursor.takeWord("one") || !cursor.takeWord("of"))
        return cursor.expected("at most 4, at least 2, exactly 4, or one of 2 4 8");
    bound.values.clear();
    do {
        if (bound.values.size() == kMostValues)
            return cursor.expected("at most " + std::to_string(kMostValues) + " numbers");
        TRY(const auto value, number());
        bound.values.push_back(static_cast<std::int32_t>(value));
    } while (std::isdigit(static_cast<unsigned char>(cursor.peek())) != 0);
    bound.values = inOrder(std::move(bound.values));
    return bound;
}

std::string print(const CountBound &bound)
{
    constexpr std::array kWords{"at most", "at least", "one of"};
    std::string text = kWords[static_cast<std::size_t>(bound.kind)];
    for (const std::int32_t value : bound.values)
        text += ' ' + std::to_string(value);
    return text;
}

void write(const CountBound &bound, nlohmann::json &json)
{
    if (bound.kind == CountBound::Kind::OneOf)
        json[keyOf(bound.kind)] = bound.values;
    else
        json[keyOf(bound.kind)] = bound.values.front();
}

Result<CountBound> countBoundAt(const nlohmann::json &json, const std::string &where)
{
    const auto isThere = [&](auto kind) { return json.contains(keyOf(kind)); };
    if (std::count_if(kBoundKinds.begin(), kBoundKinds.end(), isThere) != 1)
        return wrong(where, "expected one of at_most, at_least and one_of");
    CountBound bound{.kind = *std::find_if(kBoundKinds.begin(), kBoundKinds.end(), isThere)};
    const std::string key = keyOf(bound.kind);
    if (bound.kind != CountBound::Kind::OneOf) {
        TRY(const auto value, countAt(json, key.c_str(), where, 1));
        bound.values = {value};
        return bound;
    }
    TRY(const nlohmann::json *list, listAt(json, key.c_str(), where));
    if (list->size() > kMostValues)
        return wrong(where + "/" + key, "expected at most " + std::to_string(kMostValues) + " numbers");
    bound.values.clear();
    for (const nlohmann::json &value : *list) {
        if (!value.is_number_integer() || value.get<std::int64_t>() < 1
            || value.get<std::int64_t>() > kMostCount)
            return wrong(where + "/" + key, "expected integers of 1 to " + std::to_string(kMostCount));
        bound.values.push_back(value.get<std::int32_t>());
    }
    bound.values = inOrder(std::move(bound.values));
    return bound;
}

} // namespace planloom
