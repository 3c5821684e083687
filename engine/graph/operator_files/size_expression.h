#pragma once

#include "engine/base/result.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace planloom {

/// Arithmetic over numbers that have names: "14 * b * s + ceil(h / 64)". What operator files say of sizes,
/// of work and of attributes (operator_file.h).
struct SizeExpression {
    enum class Action : std::uint8_t {
        Number,
        Name, ///< An identifier's size in the part at hand, or a number that an attribute has.
        Whole, ///< "whole(k)": an identifier's size in the whole operator.
        Add,
        Subtract,
        Multiply,
        Divide,
        Negate,
        Minimum,
        Maximum,
        Ceil,
        Floor,
        Sqrt,
        Log2,
    };
    struct Step {
        Action action = Action::Number;
        double number = 0;
        std::string name{};
        friend bool operator==(const Step &, const Step &) = default;
    };
    std::vector<Step> steps{}; ///< In postfix order, so that no tree has to be walked.
    friend bool operator==(const SizeExpression &, const SizeExpression &) = default;
};

/// The number that a name stands for; `whole` asks for its size in the whole operator.
using NumberLookup = std::function<std::optional<double>(const std::string &name, bool whole)>;

/// Reads an expression that begins at `at`, and moves `at` behind it.
/// @return InvalidInput whose `where` is "position:N", a byte of `text`
Result<SizeExpression> parseSizeExpression(std::string_view text, std::size_t &at);

/// `parseSizeExpression` reads the same expression back.
std::string toString(const SizeExpression &expression);

/// @return InvalidInput that names what has no number, or what came out where it is not finite
Result<double> evaluate(const SizeExpression &expression, const NumberLookup &numberOf);
/// The same as a number of things: whole, from 0 to 2^48.
Result<std::int64_t> evaluateSize(const SizeExpression &expression, const NumberLookup &numberOf);

/// "0.044715", "2": the shortest text that reads back as `number`.
std::string textOfNumber(double number);

} // namespace planloom
