#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <random>
#include <vector>

namespace planloom {

/// Chance that falls alike on every machine: the distributions of the standard library do not.
class Dice
{
public:
    explicit Dice(std::uint64_t seed)
        : m_random(seed)
    {
    }
    std::int64_t below(std::int64_t count)
    {
        return static_cast<std::int64_t>(m_random() % static_cast<std::uint64_t>(count));
    }
    bool hits(double chance) { return static_cast<double>(m_random() >> 11U) * 0x1p-53 < chance; }
    std::uint64_t seed() { return m_random(); }
    template<typename T> const T &of(const std::vector<T> &values)
    {
        return values[static_cast<std::size_t>(below(static_cast<std::int64_t>(values.size())))];
    }
    template<typename T> T of(std::initializer_list<T> values)
    {
        return values.begin()[below(static_cast<std::int64_t>(values.size()))];
    }

private:
    std::mt19937_64 m_random;
};

} // namespace planloom
