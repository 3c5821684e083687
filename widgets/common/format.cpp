#include "widgets/common/format.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace planloom {

namespace {

/// `value` with three significant digits, but no exponent: "0.125", "4.20", "63.2", "768".
std::string threeDigits(double value)
{
    const double size = std::abs(value);
    int decimals = 0;
    if (size < 0.9995)
        decimals = 3;
    else if (size < 9.995)
        decimals = 2;
    else if (size < 99.95)
        decimals = 1;
    std::array<char, 64> buffer {};
    std::snprintf(buffer.data(), buffer.size(), "%.*f", decimals, value);
    return buffer.data();
}

struct Prefix {
    double size;
    const char *name;
};

/// The largest prefix whose unit is not above the value as it would be printed.
template<std::size_t n> std::string withPrefix(double value, const std::array<Prefix, n> &descending)
{
    for (const auto &prefix : descending) {
        if (std::abs(value) >= prefix.size * 0.9995)
            return threeDigits(value / prefix.size) + prefix.name;
    }
    return threeDigits(value / descending.back().size) + descending.back().name;
}

} // namespace

std::string formatBytes(Bytes bytes)
{
    static constexpr std::array<Prefix, 5> kPrefixes {{{1125899906842624.0, " PiB"},
        {1099511627776.0, " TiB"}, {1073741824.0, " GiB"}, {1048576.0, " MiB"}, {1024.0, " KiB"}}};
    if (std::abs(bytes.count) < 1024)
        return std::to_string(bytes.count) + " B";
    return withPrefix(static_cast<double>(bytes.count), kPrefixes);
}

std::string formatSeconds(double seconds)
{
    static constexpr std::array<Prefix, 4> kPrefixes {
        {{1.0, " s"}, {1e-3, " ms"}, {1e-6, " µs"}, {1e-9, " ns"}}};
    if (!std::isfinite(seconds))
        return "-";
    if (seconds == 0)
        return "0 s";
    return withPrefix(seconds, kPrefixes);
}

TimeUnit timeUnitFor(double extentSeconds)
{
    const double extent = std::abs(extentSeconds);
    if (extent >= 1 || !(extent > 0))
        return {1, "s"};
    if (extent >= 1e-3)
        return {1e-3, "ms"};
    if (extent >= 1e-6)
        return {1e-6, "µs"};
    return {1e-9, "ns"};
}

std::string formatInUnit(double seconds, TimeUnit unit, double stepSeconds)
{
    const double step = std::abs(stepSeconds) / unit.seconds;
    int decimals = 0;
    if (step > 0 && step < 1)
        decimals = std::min(9, static_cast<int>(std::ceil(-std::log10(step) - 1e-9)));
    std::array<char, 64> buffer {};
    std::snprintf(buffer.data(), buffer.size(), "%.*f", decimals, seconds / unit.seconds);
    return buffer.data();
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
    static constexpr std::array<Prefix, 4> kPrefixes {{{1e12, " T"}, {1e9, " B"}, {1e6, " M"}, {1e3, " k"}}};
    if (!std::isfinite(quantity))
        return "-";
    if (std::abs(quantity) < 999.5) {
        if (quantity == std::floor(quantity))
            return std::to_string(static_cast<long long>(quantity));
        return threeDigits(quantity);
    }
    return withPrefix(quantity, kPrefixes);
}

std::string formatShape(const Shape &shape)
{
    if (shape.empty())
        return "scalar";
    std::string text;
    for (const auto extent : shape) {
        if (!text.empty())
            text += " × ";
        text += std::to_string(extent);
    }
    return text;
}

std::string formatType(const TensorType &type)
{
    return std::string(nameOf(type.dataType)) + " " + formatShape(type.shape);
}

std::string shortName(const Graph &graph, const Operator &op)
{
    if (!op.scope.valid())
        return op.name;
    const std::string path = pathOf(graph, op.scope);
    if (!path.empty() && op.name.size() > path.size() + 1 && op.name.compare(0, path.size(), path) == 0
        && op.name[path.size()] == '.')
        return op.name.substr(path.size() + 1);
    return op.name;
}

std::string elided(const std::string &text, std::size_t most)
{
    // Offsets of code points: bytes of the form 10xxxxxx continue one.
    std::vector<std::size_t> starts;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if ((static_cast<unsigned char>(text[i]) & 0xC0U) != 0x80U)
            starts.push_back(i);
    }
    if (starts.size() <= most)
        return text;
    if (most == 0)
        return {};
    const std::size_t kept = most - 1;
    const std::size_t head = (kept + 1) / 2;
    const std::size_t tail = kept - head;
    const std::size_t tailStart = tail == 0 ? text.size() : starts[starts.size() - tail];
    return text.substr(0, starts[head]) + "…" + text.substr(tailStart);
}

} // namespace planloom
