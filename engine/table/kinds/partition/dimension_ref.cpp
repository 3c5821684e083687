#include "engine/table/kinds/partition/dimension_ref.h"

#include "engine/table/json_members.h"
#include "engine/table/kinds/rule_traits.h"
#include "engine/table/text_cursor.h"

#include <nlohmann/json.hpp>

#include <charconv>
#include <optional>

namespace planloom {

namespace {

/// "in0.1" or "out0.-1"; nothing if `word` is another word.
std::optional<DimensionRef> positionOf(std::string_view word)
{
    DimensionRef ref;
    if (word.substr(0, 2) == "in") {
        ref.kind = DimensionRef::Kind::Input;
        word.remove_prefix(2);
    } else if (word.substr(0, 3) == "out") {
        ref.kind = DimensionRef::Kind::Output;
        word.remove_prefix(3);
    } else {
        return std::nullopt;
    }
    const char *end = word.data() + word.size();
    const auto [dot, slotFailure] = std::from_chars(word.data(), end, ref.slot);
    if (slotFailure != std::errc{} || ref.slot < 0 || dot == end || *dot != '.')
        return std::nullopt;
    const auto [last, failure] = std::from_chars(dot + 1, end, ref.dimension);
    if (failure != std::errc{} || last != end)
        return std::nullopt;
    return ref;
}

bool isReserved(std::string_view word)
{
    return dimensionMeaningNamed(word) || word == "value" || word == "replicate" || positionOf(word);
}

} // namespace

Result<DimensionRef> parseDimension(TextCursor &cursor)
{
    bool wasQuoted = false;
    TRY(std::string word,
        cursor.word(
            "a dimension: an identifier, a meaning as batch or heads, or a position as in0.1 or out0.-1",
            wasQuoted));
    if (!wasQuoted) {
        if (const auto meaning = dimensionMeaningNamed(word))
            return DimensionRef{.kind = DimensionRef::Kind::Meaning, .meaning = *meaning, .name = {}};
        if (const auto position = positionOf(word))
            return *position;
    }
    return DimensionRef{.kind = DimensionRef::Kind::Identifier, .name = std::move(word)};
}

std::string print(const DimensionRef &dimension)
{
    switch (dimension.kind) {
    case DimensionRef::Kind::Identifier:
        return isReserved(dimension.name) ? inQuotes(dimension.name) : asWord(dimension.name);
    case DimensionRef::Kind::Input:
        return "in" + std::to_string(dimension.slot) + "." + std::to_string(dimension.dimension);
    case DimensionRef::Kind::Output:
        return "out" + std::to_string(dimension.slot) + "." + std::to_string(dimension.dimension);
    case DimensionRef::Kind::Meaning:
        return nameOf(dimension.meaning);
    }
    return "";
}

nlohmann::json toJson(const DimensionRef &ref)
{
    switch (ref.kind) {
    case DimensionRef::Kind::Identifier:
        return {{"identifier", ref.name}};
    case DimensionRef::Kind::Input:
        return {{"input", ref.slot}, {"dimension", ref.dimension}};
    case DimensionRef::Kind::Output:
        return {{"output", ref.slot}, {"dimension", ref.dimension}};
    case DimensionRef::Kind::Meaning:
        return nameOf(ref.meaning);
    }
    return nullptr;
}

Result<DimensionRef> dimensionAt(const nlohmann::json &object, const std::string &parent)
{
    const std::string where = parent + "/dimension";
    const auto found = object.find("dimension");
    if (found == object.end())
        return wrong(where, "expected a dimension");
    if (found->is_string()) {
        if (const auto meaning = dimensionMeaningNamed(found->get_ref<const std::string &>()))
            return DimensionRef{.kind = DimensionRef::Kind::Meaning, .meaning = *meaning, .name = {}};
    }
    if (!found->is_object())
        return wrong(
            where, "expected a meaning such as \"batch\" or an object with identifier, input or output");
    TRY_VOID(requireMembers(*found, {"identifier", "input", "output", "dimension"}, where));
    DimensionRef ref;
    if (found->contains("identifier")) {
        TRY(ref.name, textAt(*found, "identifier", where));
        return ref;
    }
    const bool input = found->contains("input");
    ref.kind = input ? DimensionRef::Kind::Input : DimensionRef::Kind::Output;
    TRY(ref.slot, countAt(*found, input ? "input" : "output", where, 0));
    TRY(ref.dimension, countAt(*found, "dimension", where, -kMostCount));
    return ref;
}

Result<PartsAlong> parsePartsAlong(TextCursor &cursor)
{
    PartsAlong rule;
    TRY(rule.dimension, parseDimension(cursor));
    if (!cursor.takeWord("by"))
        return cursor.expected("'by' and a number of parts");
    TRY(const auto parts, cursor.integer("a number of parts", 1, kMostCount));
    rule.parts = static_cast<std::int32_t>(parts);
    return rule;
}

std::string print(const PartsAlong &rule)
{
    return print(rule.dimension) + " by " + std::to_string(rule.parts);
}

void write(const PartsAlong &rule, nlohmann::json &json)
{
    json["dimension"] = toJson(rule.dimension);
    json["parts"] = rule.parts;
}

Result<PartsAlong> partsAlongAt(const nlohmann::json &json, const std::string &where)
{
    PartsAlong rule;
    TRY(rule.dimension, dimensionAt(json, where));
    TRY(rule.parts, countAt(json, "parts", where, 1));
    return rule;
}

} // namespace planloom
