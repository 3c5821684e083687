#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace planloom {

/// In what a figure is measured.
enum class FigureUnit : std::uint8_t { Time, Bytes, Share, Count, Number, Word, Truth };

/// A value with its unit: nanoseconds, bytes, a share (0.34), a count or a plain number; or a word.
struct FigureValue {
    FigureUnit unit = FigureUnit::Number;
    double number = 0; ///< Of `Truth` 0 or 1.
    std::string word{};
    bool asPercent = false; ///< As a text says it.
};

/// "41.3 ms", "12.6 GiB", "34%", "4", "1.42", "1f1b", "yes": as the window writes such values.
std::string toString(const FigureValue &value);

/// What a lesson can say of a plan (resources/lessons.md has the list with its meanings).
enum class Figure : std::uint16_t;

} // namespace planloom
