#pragma once

#include <cstdint>

namespace planloom {

enum class Pooling : std::int32_t { Largest, Average, Norm };

/// What is made of the elements of a window.
struct PoolRule {
    Pooling pooling{};
    bool countPadding = false; ///< An average is over the padding's elements, too.
    double p = 2; ///< Of the norm.
};

} // namespace planloom
