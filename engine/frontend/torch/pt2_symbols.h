#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace planloom {

/// The size of a symbol, or nothing if it is not known.
using Pt2SymbolLookup = std::function<std::optional<std::int64_t>(const std::string &)>;

/// Computes a size as exported programs write it: SymPy's text ("4*s0 + 1") or its structural form
/// ("Mul(Integer(4), Symbol('s0', positive=True))"), with FloorDiv, Mod, Max, Min and their like.
/// @return nothing if a symbol is not known, the text is none of these, or the value is no integer below 2^53
std::optional<std::int64_t> evaluatePt2Size(std::string_view expression, const Pt2SymbolLookup &sizeOf);

/// The names of the symbols in an expression; empty if it cannot be read. O(length).
std::set<std::string> symbolsOfPt2Size(std::string_view expression);

} // namespace planloom
