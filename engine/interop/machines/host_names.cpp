#include "engine/interop/machines/host_names.h"

#include "engine/base/text.h"
#include "engine/interop/machines/number_text.h"

#include <algorithm>
#include <optional>

namespace planloom {

namespace {

constexpr std::size_t kMostBrackets = 4; ///< In one name.
constexpr std::size_t kMostDigits = 9; ///< Of a number in brackets.

Error invalid(std::string message)
{
    return {ErrorCode::InvalidInput, std::move(message), "as in node[01-16,20]", {}};
}

Error tooMany()
{
    return {ErrorCode::ResourceLimit,
        "the expression names more than " + std::to_string(kMostHosts) + " hosts",
        "a cluster has at most 16384 devices", {}};
}

/// Numbers of a range that are written with `digits` digits at least.
struct NameRange {
    std::int64_t first = 0;
    std::int64_t last = 0;
    std::size_t digits = 1;
};

std::string numbered(std::int64_t number, std::size_t digits)
{
    const std::string text = std::to_string(number);
    return text.size() < digits ? std::string(digits - text.size(), '0') + text : text;
}

Result<NameRange> rangeOf(std::string_view text)
{
    const std::size_t dash = text.find('-');
    const std::string_view first = text.substr(0, dash);
    const std::string_view last = dash == std::string_view::npos ? first : text.substr(dash + 1);
    for (const std::string_view each : {first, last})
        if (each.empty() || !std::all_of(each.begin(), each.end(), isDigit))
            return invalid("\"" + std::string(text.substr(0, 40)) + "\" in brackets is no range of numbers");
    if (first.size() > kMostDigits || last.size() > kMostDigits)
        return tooMany();
    const NameRange range{*wholeNumber(first), *wholeNumber(last), first.size()};
    if (range.last < range.first)
        return invalid("the range " + std::string(text) + " goes backwards");
    return range;
}

Result<std::vector<NameRange>> rangesIn(std::string_view brackets)
{
    std::vector<NameRange> ranges;
    for (std::size_t begin = 0; begin <= brackets.size();) {
        const std::size_t end = std::min(brackets.find(',', begin), brackets.size());
        TRY(const NameRange range, rangeOf(brackets.substr(begin, end - begin)));
        ranges.push_back(range);
        begin = end + 1;
    }
    return ranges;
}

/// All of `before`, with each of the numbers behind it.
Result<std::vector<std::string>> extended(
    const std::vector<std::string> &before, const std::vector<NameRange> &ranges)
{
    std::size_t count = 0;
    for (const NameRange &range : ranges) {
        count += static_cast<std::size_t>(range.last - range.first) + 1;
        if (count > kMostHosts || count * before.size() > kMostHosts)
            return tooMany();
    }
    std::vector<std::string> names;
    for (const std::string &name : before)
        for (const NameRange &range : ranges)
            for (std::int64_t number = range.first; number <= range.last; ++number)
                names.push_back(name + numbered(number, range.digits));
    return names;
}

/// The names of one part between commas.
Result<std::vector<std::string>> namesOfPart(std::string_view part)
{
    std::vector<std::string> names{""};
    std::size_t brackets = 0;
    for (std::size_t at = 0; at < part.size();) {
        if (part[at] != '[') {
            const std::size_t end = std::min(part.find('[', at), part.size());
            const std::string_view text = part.substr(at, end - at);
            if (text.find_first_of("] \t=") != std::string_view::npos)
                return invalid("\"" + std::string(text.substr(0, 40)) + "\" is no part of a host's name");
            for (std::string &name : names)
                name += text;
            at = end;
            continue;
        }
        const std::size_t end = part.find(']', at);
        if (end == std::string_view::npos)
            return invalid("a bracket does not close");
        if (++brackets > kMostBrackets)
            return invalid("a name has more than " + std::to_string(kMostBrackets) + " brackets");
        TRY(const auto ranges, rangesIn(part.substr(at + 1, end - at - 1)));
        TRY(names, extended(names, ranges));
        at = end + 1;
    }
    if (names.front().empty() || names.front().size() > kMostNameLength)
        return invalid("a name is empty, or longer than " + std::to_string(kMostNameLength) + " letters");
    return names;
}

} // namespace

Result<std::vector<std::string>> hostNames(std::string_view expression)
{
    std::vector<std::string> all;
    for (std::size_t begin = 0; begin <= expression.size();) {
        bool isInBrackets = false;
        std::size_t end = begin;
        for (; end < expression.size() && (isInBrackets || expression[end] != ','); ++end)
            isInBrackets = expression[end] == '[' || (isInBrackets && expression[end] != ']');
        TRY(const auto names, namesOfPart(trimmed(expression.substr(begin, end - begin))));
        if (all.size() + names.size() > kMostHosts)
            return tooMany();
        all.insert(all.end(), names.begin(), names.end());
        begin = end + 1;
    }
    return all;
}

} // namespace planloom
