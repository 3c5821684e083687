#pragma once

#include <chrono>
#include <compare>
#include <cstdint>

namespace planloom {

/// Simulated time. Integral, so that equal plans give equal timelines on every machine.
using Nanoseconds = std::chrono::duration<std::int64_t, std::nano>;

/// A size in bytes; never a number of elements.
struct Bytes {
    std::int64_t count = 0;

    friend constexpr auto operator<=>(const Bytes &, const Bytes &) = default;
    constexpr Bytes &operator+=(Bytes other)
    {
        count += other.count;
        return *this;
    }
    constexpr Bytes &operator-=(Bytes other)
    {
        count -= other.count;
        return *this;
    }
    friend constexpr Bytes operator+(Bytes a, Bytes b) { return {a.count + b.count}; }
    friend constexpr Bytes operator-(Bytes a, Bytes b) { return {a.count - b.count}; }
    friend constexpr Bytes operator*(Bytes a, std::int64_t n) { return {a.count * n}; }
};

} // namespace planloom
