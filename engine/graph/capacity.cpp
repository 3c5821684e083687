#include "engine/graph/capacity.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace planloom {

namespace {

constexpr std::int64_t kLeastRoom = 64; ///< Of the expected load.
constexpr double kMostFactor = 1e6;

} // namespace

std::string toString(const Capacity &capacity)
{
    switch (capacity.kind) {
    case Capacity::Kind::All:
        return "all";
    case Capacity::Kind::Rows:
        return std::to_string(capacity.rows);
    case Capacity::Kind::Expected:
        break;
    }
    std::array<char, 32> text;
    const auto [end, failure] = std::to_chars(text.data(), text.data() + text.size(), capacity.factor);
    return (failure == std::errc{} ? std::string(text.data(), end) : std::string("1")) + "x";
}

Result<Capacity> capacityNamed(std::string_view text)
{
    Capacity capacity;
    const Error wrong{ErrorCode::InvalidInput,
        "expected room for what data choose, found \"" + std::string(text.substr(0, 40)) + "\"",
        "1.25x is 1.25 times the expected load, 128 is so many in every sample, all as many as there can be",
        "--capacity"};
    if (text == "all") {
        capacity.kind = Capacity::Kind::All;
        return capacity;
    }
    const bool times = !text.empty() && text.back() == 'x';
    const char *end = text.data() + text.size() - (times ? 1 : 0);
    if (times) {
        const auto [last, failure] = std::from_chars(text.data(), end, capacity.factor);
        if (failure != std::errc{} || last != end || !(capacity.factor > 0 && capacity.factor <= kMostFactor))
            return wrong;
        return capacity;
    }
    capacity.kind = Capacity::Kind::Rows;
    const auto [last, failure] = std::from_chars(text.data(), end, capacity.rows);
    if (failure != std::errc{} || last != end || capacity.rows < 1)
        return wrong;
    return capacity;
}

Capacity capacityOf(const Capacities &capacities, std::string_view name, const Capacity &usual)
{
    auto found = capacities.find(name);
    if (found == capacities.end())
        found = capacities.find("*");
    return found == capacities.end() ? usual : found->second;
}

std::int64_t roomOf(const Capacity &capacity, double expected, std::int64_t most)
{
    switch (capacity.kind) {
    case Capacity::Kind::All:
        return most;
    case Capacity::Kind::Rows:
        return std::min(capacity.rows, most);
    case Capacity::Kind::Expected:
        break;
    }
    const double wanted = std::ceil(std::min(expected * capacity.factor, static_cast<double>(most)));
    return std::min(std::max(static_cast<std::int64_t>(wanted), kLeastRoom), most);
}

} // namespace planloom
