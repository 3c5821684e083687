#pragma once

#include "engine/base/result.h"
#include "engine/graph/graph.h"

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

/// A small forward graph of operators of all kinds that models have, in any order: what they read is an
/// activation, a weight, a weight that others read too, an input, a buffer or a constant, whichever chance
/// gives to the slot, brought to the shape that it needs by views, products, slices or broadcasts. Some have
/// layers that repeat, with weights of their own or shared ones; most have a loss, of several parts; values
/// are such that no operator is asked for what it is not defined for (logarithms of negative numbers).
/// Annotated; the same for a seed on every machine.
Result<Graph> randomModel(std::uint64_t seed);

} // namespace planloom
