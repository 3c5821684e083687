#pragma once

#include "engine/base/result.h"

#include <cstdint>
#include <optional>

namespace planloom {

/// A place in a text, from 1.
struct TextPlace {
    std::int32_t line = 0;
    std::int32_t column = 0;
    friend bool operator==(const TextPlace &, const TextPlace &) = default;
};

/// "line:3:7" -> {3, 7}; nothing for errors of other places.
std::optional<TextPlace> textPlaceOf(const Error &error);

} // namespace planloom
