#include "engine/table/kinds/partition/dimension_ref.h"

#include "engine/table/json_members.h"
#include "engine/table/rule_form.h"
#include "engine/table/text_cursor.h"

#include <nlohmann/json.hpp>

#include <charconv>
#include <optional>

namespace planloom {

namespace {

constexpr const char *kKey = "dimension"; ///< Of JSON.

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

Result<DimensionRef> fromJson(const nlohmann::json &object, const std::string &parent)
{
    const std::string where = pathOf(parent, kKey);
    const auto found = object.find(kKey);
    if (found == object.end())
        return wrong(where, "expected a dimension");
    if (found->is_string()) {
        if (const auto meaning = dimensionMeaningNamed(found->get_ref<const std::string &>()))
            return DimensionRef{.kind = DimensionRef::Kind::Meaning, .meaning = *meaning, .name = {}};
    }
    if (!found->is_object())
        return wrong(
            where, "expected a meaning such as \"batch\" or an object with identifier, input or output");
    DimensionRef ref;
    RuleForm form = RuleForm::readJson(*found, where);
    if (form.holds("identifier", true)) {
        form.name("identifier", ref.name, {});
    } else {
        const bool input = form.holds("input", true);
        ref.kind = input ? DimensionRef::Kind::Input : DimensionRef::Kind::Output;
        form.number(input ? "input" : "output", ref.slot, {});
        form.number("dimension", ref.dimension, {{}, -kMostCount});
    }
    TRY_VOID(form.finish());
    return ref;
}

} // namespace

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

void dimensionRef(RuleForm &form, DimensionRef &dimension)
{
    if (form.failed())
        return;
    switch (form.way()) {
    case RuleForm::Way::ReadText:
        return form.keep(dimension, parseDimension(form.cursor()));
    case RuleForm::Way::WriteText:
        return form.say(print(dimension));
    case RuleForm::Way::ReadJson:
        form.knows(kKey);
        return form.keep(dimension, fromJson(form.input(), form.where()));
    case RuleForm::Way::WriteJson:
        form.output()[kKey] = toJson(dimension);
    }
}

void partsAlong(RuleForm &form, DimensionRef &dimension, std::int32_t &parts)
{
    dimensionRef(form, dimension);
    form.word("by", "'by' and a number of parts");
    form.number("parts", parts, {"a number of parts", 1});
}

} // namespace planloom
