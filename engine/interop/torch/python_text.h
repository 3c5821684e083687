#pragma once

#include "engine/graph/operators/mask.h"
#include "engine/graph/shape.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace planloom {

// Python as people write it.

/// "h_0_attn_weight" for "h.0.attn.weight": letters, digits and underscores, not beginning with a digit, no
/// keyword.
std::string pythonName(std::string_view name);
/// A string literal.
std::string pythonText(std::string_view text);
/// The shortest literal that reads as the same number; float("inf") and the like for those that have none.
std::string pythonNumber(double value);
/// "(2, 64)", "(2,)", "()"
std::string pythonTuple(const std::vector<std::int64_t> &values);
/// "torch.float32"
std::string pythonType(DataType type);
/// "True", "False"
inline const char *pythonFlag(bool value)
{
    return value ? "True" : "False";
}

/// "a, b, c"
std::string joinedBy(const std::vector<std::string> &items, std::string_view between = ", ");

/// True if Python code uses a variable, or module, `name`.
bool usesName(std::string_view code, std::string_view name);

/// The subscript that cuts `box` out of what covers `outer`: "[:, 64:128]", with its bounds as numbers of the
/// rank (rank_numbers.h); empty where it is all of it.
std::string pythonBox(const IndexMask &box, const IndexMask &outer);

/// Lines of a block: `statement`, broken behind commas where it is too long for one, with `comment` behind
/// it, or before it where it does not fit. Marks (rank_numbers.h) count as what they will be, about.
std::string pythonLines(std::string_view statement, std::string_view comment);

} // namespace planloom
