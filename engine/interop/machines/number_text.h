#pragma once

#include "engine/base/result.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace planloom {

// Numbers and names as files of machines write them.

/// A name that files of clusters can hold: what is no letter, digit or sign of ASCII is a question mark, and
/// what is behind 80 letters is left out.
std::string asName(std::string text);

/// A whole number with nothing beside it, "18", or in base 16, "0x068000". Nothing for all else.
std::optional<std::int64_t> wholeNumber(std::string_view text);

/// A finite number with nothing beside it, "32.0", "8e11". Nothing for all else.
std::optional<double> realNumber(std::string_view text);

/// The number that a text begins with: "32.0" of "32.0 GT/s PCIe". Nothing where it begins with none.
std::optional<double> leadingNumber(std::string_view text);

/// InvalidInput at a line, from 1.
Error atLine(std::int32_t line, std::string message, std::string advice = {});

} // namespace planloom
