#include "engine/graph/annotation/combination.h"

#include <array>

namespace planloom {

namespace {

constexpr std::array<const char *, kCombinationCount> kNames{"sum", "max", "log-sum-exp", "weighted"};

} // namespace

const char *nameOf(Combination combination)
{
    return kNames[static_cast<std::size_t>(combination)];
}

std::optional<Combination> combinationNamed(std::string_view name)
{
    for (std::size_t i = 0; i < kNames.size(); ++i)
        if (name == kNames[i])
            return static_cast<Combination>(i);
    return std::nullopt;
}

} // namespace planloom
