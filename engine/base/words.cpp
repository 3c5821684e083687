#include "engine/base/words.h"

#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace planloom {

namespace {

/// `value` with so many significant digits, but no exponent: "0.125", "4.20", "63.2", "768".
std::string significant(double value, int digits)
{
    // As few decimals as leave that many digits in what is printed, which is rounded.
    int decimals = digits;
    for (double next = 1; decimals > 0 && std::abs(value) >= next - 0.5 * std::pow(10, -decimals); next *= 10)
        --decimals;
    std::array<char, 64> buffer{};
    std::snprintf(buffer.data(), buffer.size(), "%.*f", decimals, value);
    return buffer.data();
}

struct Prefix {
    double size;
    const char *name;
};

/// The largest prefix whose unit is not above the value as it would be printed.
template<std::size_t n>
std::string withPrefix(double value, const std::array<Prefix, n> &descending, int digits)
{
    for (const auto &prefix : descending) {
        if (std::abs(value) >= prefix.size * (1 - 0.5 * std::pow(10, -digits)))
            return significant(value / prefix.size, digits) + prefix.name;
    }
    return significant(value / descending.back().size, digits) + descending.back().name;
}

} // namespace

std::string formatBytes(Bytes bytes, int digits)
{
    static constexpr std::array<Prefix, 5> kPrefixes{{{1125899906842624.0, " PiB"}, {1099511627776.0, " TiB"},
        {1073741824.0, " GiB"}, {1048576.0, " MiB"}, {1024.0, " KiB"}}};
    if (std::abs(bytes.count) < 1024)
        return std::to_string(bytes.count) + " B";
    return withPrefix(static_cast<double>(bytes.count), kPrefixes, digits);
}

std::string formatSeconds(double seconds, int digits)
{
    static constexpr std::array<Prefix, 4> kPrefixes{
        {{1.0, " s"}, {1e-3, " ms"}, {1e-6, " µs"}, {1e-9, " ns"}}};
    if (!std::isfinite(seconds))
        return "-";
    if (seconds == 0)
        return "0 s";
    return withPrefix(seconds, kPrefixes, digits);
}

std::string formatNanoseconds(std::int64_t nanoseconds, int digits)
{
    return formatSeconds(static_cast<double>(nanoseconds) * 1e-9, digits);
}

std::string formatCount(std::int64_t count)
{
    std::string digits = std::to_string(count);
    const std::size_t first = count < 0 ? 1 : 0;
    for (std::size_t at = digits.size(); at > first + 3;) {
        at -= 3;
        digits.insert(at, ",");
    }
    return digits;
}

std::string formatQuantity(double quantity)
{
    static constexpr std::array<Prefix, 4> kPrefixes{{{1e12, " T"}, {1e9, " B"}, {1e6, " M"}, {1e3, " k"}}};
    if (!std::isfinite(quantity))
        return "-";
    if (std::abs(quantity) < 999.5) {
        if (quantity == std::floor(quantity))
            return std::to_string(static_cast<long long>(quantity));
        return significant(quantity, 3);
    }
    return withPrefix(quantity, kPrefixes, 3);
}

std::string rangesOf(const std::vector<std::int32_t> &indices, std::size_t mostRuns)
{
    std::string text;
    std::size_t runs = 0;
    for (std::size_t begin = 0; begin < indices.size();) {
        std::size_t end = begin + 1;
        while (end < indices.size() && indices[end] == indices[end - 1] + 1)
            ++end;
        if (++runs > mostRuns)
            return text + ", ...";
        if (!text.empty())
            text += ", ";
        text += std::to_string(indices[begin]);
        if (end - begin > 1)
            text += "-" + std::to_string(indices[end - 1]);
        begin = end;
    }
    return text;
}

std::string rangesOf(const std::vector<DeviceId> &devices, std::size_t mostRuns)
{
    std::vector<std::int32_t> indices;
    indices.reserve(devices.size());
    for (const DeviceId device : devices)
        indices.push_back(device.index);
    return rangesOf(indices, mostRuns);
}

std::string indexAmong(std::int32_t index, std::int32_t count)
{
    std::string text = std::to_string(index);
    if (count > 1)
        text += " (0-" + std::to_string(count - 1) + ")";
    return text;
}

std::string pluralOf(const std::string &noun)
{
    for (const char *const hiss : {"s", "x", "z", "ch", "sh"})
        if (noun.ends_with(hiss))
            return noun + "es";
    const bool isSpokenY = noun.size() > 1 && noun.ends_with("y")
        && std::string_view("aeiou").find(noun[noun.size() - 2]) == std::string_view::npos;
    return isSpokenY ? noun.substr(0, noun.size() - 1) + "ies" : noun + "s";
}

} // namespace planloom
