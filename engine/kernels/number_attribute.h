#pragma once

#include "engine/graph/attributes.h"

#include <cstdint>
#include <string_view>
#include <variant>

namespace planloom {

/// A number that an attribute gives as an integer or as a real.
template<typename T> T numberOf(const Attributes &attributes, std::string_view name, T fallback)
{
    const auto found = attributes.all().find(name);
    if (found == attributes.all().end())
        return fallback;
    if (const auto *integer = std::get_if<std::int64_t>(&found->second))
        return static_cast<T>(*integer);
    if (const auto *real = std::get_if<double>(&found->second))
        return static_cast<T>(*real);
    return fallback;
}

} // namespace planloom
