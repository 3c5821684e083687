#pragma once

#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>

namespace planloom {

/// The seeds that a random test tries: the first, and one behind the last. The environment variable asks for
/// more than the sample of every test run: VARIABLE=count or count@first.
inline std::pair<std::uint32_t, std::uint32_t> seedsToTry(const char *variable, std::uint32_t usual)
{
    const char *asked = std::getenv(variable);
    if (!asked)
        return {0, usual};
    const std::string text = asked;
    const auto at = text.find('@');
    const auto first = at == text.npos ? 0u : static_cast<std::uint32_t>(std::stoul(text.substr(at + 1)));
    return {first, first + static_cast<std::uint32_t>(std::stoul(text.substr(0, at)))};
}

} // namespace planloom
