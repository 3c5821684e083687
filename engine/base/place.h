#pragma once

#include "engine/base/ids.h"
#include "engine/base/result.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

namespace planloom {

struct RowTag;

/// A place in a text, from 1.
struct TextPlace {
    std::int32_t line = 0;
    std::int32_t column = 0; ///< 0 if it is the whole line.
    friend bool operator==(const TextPlace &, const TextPlace &) = default;
};

/// A row of a table, or a part of it.
struct RowPlace {
    Id<RowTag> row{}; ///< A `RowId` (engine/table/table.h).
    std::string field{}; ///< "selector", "rule"; empty for the whole row.
    friend bool operator==(const RowPlace &, const RowPlace &) = default;
};

/// An operator of the model, or a part of it.
struct OperatorPlace {
    std::string name{};
    std::string part{}; ///< "k": a dimension; empty for the operator itself.
    friend bool operator==(const OperatorPlace &, const OperatorPlace &) = default;
};

/// Files, options and whatever else is for people to read.
struct NamedPlace {
    std::string name{};
    friend bool operator==(const NamedPlace &, const NamedPlace &) = default;
};

/// What an error is about; `std::monostate` if it does not say.
using Place = std::variant<std::monostate, TextPlace, RowPlace, OperatorPlace, NamedPlace>;

/// `Error::where` taken apart, in the one place that knows its forms: "line:3:7", "row:5/rule",
/// "operator:NAME/k". What has none of these is a `NamedPlace`, also "FILE:line:3:7". Names of operators may
/// hold a '/' themselves: the part is what stands behind the last one.
Place placeOf(const Error &error);

/// As `Error::where` writes it: `toString(placeOf(e)) == e.where`.
std::string toString(const Place &place);

/// As people read it: "row 6" for row 5, all others as `toString` writes them.
std::string placeWords(const Place &place);

} // namespace planloom
