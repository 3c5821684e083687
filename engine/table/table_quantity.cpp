#include "engine/table/table_quantity.h"

#include "engine/base/text.h"

#include <algorithm>
#include <array>

namespace planloom {

namespace {

struct Unit {
    std::string_view name{};
    std::int64_t size = 1;
};

constexpr std::array<Unit, 9> kMemoryUnits{{{"B", 1}, {"KiB", std::int64_t{1} << 10},
    {"MiB", std::int64_t{1} << 20}, {"GiB", std::int64_t{1} << 30}, {"TiB", std::int64_t{1} << 40},
    {"KB", 1'000}, {"MB", 1'000'000}, {"GB", 1'000'000'000}, {"TB", 1'000'000'000'000}}};
constexpr std::array<Unit, 4> kTimeUnits{{{"ns", 1}, {"us", 1'000}, {"ms", 1'000'000}, {"s", 1'000'000'000}}};

constexpr std::size_t kMostDecimals = 6; ///< So that decimals times the largest unit stay within 64 bits.

std::pair<const Unit *, const Unit *> unitsOf(LimitRule::Kind kind)
{
    if (kind != LimitRule::Kind::Time)
        return {kMemoryUnits.data(), kMemoryUnits.data() + kMemoryUnits.size()};
    return {kTimeUnits.data(), kTimeUnits.data() + kTimeUnits.size()};
}

bool isUnitCharacter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || static_cast<unsigned char>(c) >= 0x80;
}

/// What was found instead, as far as the next space; never a byte that is not printable ASCII.
std::string foundAt(std::string_view text)
{
    std::string found;
    for (const char c : text.substr(0, 24)) {
        if (c == ' ' || c == '\t')
            break;
        found += c > 0x20 && c < 0x7f ? c : '?';
    }
    return found.empty() ? "nothing" : "'" + found + "'";
}

Error invalidQuantity(LimitRule::Kind kind, const std::string &message)
{
    return {ErrorCode::InvalidInput, message,
        kind != LimitRule::Kind::Time
            ? "write it as 40GiB; units are B, KiB, MiB, GiB, TiB, KB, MB, GB and TB"
            : "write it as 50ms; units are ns, us, ms and s"};
}

} // namespace

Result<Quantity> readQuantity(LimitRule::Kind kind, std::string_view text)
{
    const char *what = kind == LimitRule::Kind::Memory ? "an amount of memory as 40GiB"
        : kind == LimitRule::Kind::Traffic             ? "an amount of traffic as 2GiB"
                                                       : "a time as 50ms";
    const auto expected = [&] {
        return invalidQuantity(kind, std::string("expected ") + what + ", found " + foundAt(text));
    };
    const std::string tooLarge = kind != LimitRule::Kind::Time ? "expected at most 1024TiB, found "
                                                               : "expected at most 13 days, found ";
    std::size_t i = 0;
    std::int64_t whole = 0;
    for (; i < text.size() && isDigit(text[i]); ++i) {
        whole = whole * 10 + (text[i] - '0');
        if (whole > kMostQuantity)
            return invalidQuantity(kind, tooLarge + foundAt(text));
    }
    if (i == 0)
        return expected();
    std::int64_t decimals = 0;
    std::int64_t scale = 1;
    if (i < text.size() && text[i] == '.') {
        const std::size_t begin = ++i;
        while (i < text.size() && isDigit(text[i]))
            ++i;
        std::string_view digits = text.substr(begin, i - begin);
        if (digits.empty())
            return expected();
        while (!digits.empty() && digits.back() == '0')
            digits.remove_suffix(1);
        if (digits.size() > kMostDecimals)
            return invalidQuantity(kind, "expected at most 6 decimals, found " + foundAt(text));
        for (const char digit : digits) {
            decimals = decimals * 10 + (digit - '0');
            scale *= 10;
        }
    }
    while (i < text.size() && (text[i] == ' ' || text[i] == '\t'))
        ++i;
    const std::size_t unitBegin = i;
    while (i < text.size() && isUnitCharacter(text[i]))
        ++i;
    std::string_view name = text.substr(unitBegin, i - unitBegin);
    if (name == "\xc2\xb5s" || name == "\xce\xbcs") // the micro sign, and the Greek letter
        name = "us";
    const auto [begin, end] = unitsOf(kind);
    const Unit *unit = std::find_if(begin, end, [&](const Unit &one) { return one.name == name; });
    if (unit == end)
        return expected();
    if (whole > kMostQuantity / unit->size)
        return invalidQuantity(kind, tooLarge + foundAt(text));
    if (decimals * unit->size % scale != 0)
        return invalidQuantity(kind,
            std::string("expected a whole number of ")
                + (kind != LimitRule::Kind::Time ? "bytes" : "nanoseconds") + ", found " + foundAt(text));
    const std::int64_t value = whole * unit->size + decimals * unit->size / scale;
    if (value > kMostQuantity)
        return invalidQuantity(kind, tooLarge + foundAt(text));
    if (value < 1)
        return invalidQuantity(kind, "expected more than nothing, found " + foundAt(text));
    return Quantity{value, i};
}

std::string printQuantity(LimitRule::Kind kind, std::int64_t value)
{
    const auto [begin, end] = unitsOf(kind);
    const Unit *best = begin;
    for (const Unit *unit = begin; unit != end; ++unit)
        if (value % unit->size == 0 && unit->size > best->size)
            best = unit;
    return std::to_string(value / best->size) + std::string(best->name);
}

} // namespace planloom
