#pragma once

#include "engine/base/result.h"
#include "engine/graph/dimensions/input_dimension.h"
#include "engine/graph/shape.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace planloom {

/// Collects the sizes that a file's inputs leave open, suggests usual ones, and holds them against those that
/// were asked for: what importers of every format do alike.
class OpenDimensions
{
public:
    /// What becomes of dimensions that nobody gave a size.
    enum class Missing : bool { Refused, Left };

    /// An input with its dimensions: the names of the open sizes that each is made of, none where it is
    /// fixed.
    /// @param whole  by dimension: it is such a size itself, not an expression of several
    void addInput(const std::string &input, DataType type, const std::vector<std::vector<std::string>> &names,
        const std::vector<bool> &whole);
    /// The sizes that the file allows; absent bounds are open.
    void setRange(
        const std::string &name, std::optional<std::int64_t> least, std::optional<std::int64_t> most);

    /// All of them with the sizes of `asked`, which go by name or alias.
    /// @param missing  `Left`: sizes that nobody gave are 0; else they are an error
    /// @return InvalidInput: a name that is none of them, a size out of its range, two sizes for one; all
    /// that are missing in one message, with a suggestion each
    Result<std::vector<InputDimension>> resolve(const std::map<std::string, std::int64_t> &asked,
        const std::string &where, Missing missing = Missing::Refused) const;

private:
    std::vector<InputDimension> m_dimensions{};
};

/// The sizes by name.
std::map<std::string, std::int64_t> sizesOf(const std::vector<InputDimension> &dimensions);

} // namespace planloom
