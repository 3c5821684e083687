#include "engine/table/kinds/partition/count_bound.h"

#include "engine/table/rule_form.h"
#include "engine/table/text_cursor.h"

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

/// @return whether it is "exactly" one number: "exactly 4" is "one of 4"
bool kindInText(RuleForm &form, CountBound::Kind &kind)
{
    using Kind = CountBound::Kind;
    if (form.takes("at", kind != Kind::OneOf)) {
        kind = form.takes("least", kind == Kind::AtLeast) ? Kind::AtLeast : Kind::AtMost;
        if (kind == Kind::AtMost)
            form.word("most", "most or least");
        return false;
    }
    kind = Kind::OneOf;
    if (form.takes("exactly"))
        return true;
    for (const char *word : {"one", "of"})
        form.word(word, "at most 4, at least 2, exactly 4, or one of 2 4 8");
    return false;
}

void kindInJson(RuleForm &form, CountBound::Kind &kind)
{
    int found = 0;
    for (const auto each : kBoundKinds)
        if (form.holds(keyOf(each), each == kind)) {
            kind = each;
            ++found;
        }
    if (found != 1)
        form.expected({}, "one of at_most, at_least and one_of");
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

void countBound(RuleForm &form, CountBound &bound)
{
    bool isExact = false;
    if (form.isText())
        isExact = kindInText(form, bound.kind);
    else
        kindInJson(form, bound.kind);
    const auto number = [&](RuleForm &part, std::int32_t &value, const std::string &key = {}) {
        if (bound.values.size() > kMostValues)
            part.expected({}, "at most " + std::to_string(kMostValues) + " numbers");
        part.number(key, value, {"a number of parts", 1});
    };
    const std::string key = keyOf(bound.kind);
    if (bound.kind != CountBound::Kind::OneOf || isExact)
        number(form, bound.values.front(), key);
    else
        form.list(key, bound.values, number, [&](std::int32_t, const std::int32_t *next) {
            return next || std::isdigit(static_cast<unsigned char>(form.cursor().peek())) != 0;
        });
    if (form.reads())
        bound.values = inOrder(std::move(bound.values));
}

std::string print(const CountBound &bound)
{
    return textOf(countBound, bound);
}

} // namespace planloom
