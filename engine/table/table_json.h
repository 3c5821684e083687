#pragma once

#include "engine/base/result.h"
#include "engine/table/table.h"

#include <nlohmann/json_fwd.hpp>

#include <string_view>

namespace planloom {

/// The table as JSON, version 1; schema in resources/schema/table.json. Selectors are in their text form.
nlohmann::json toJson(const ConstraintTable &table);

/// Adds nothing, loses nothing: `tableFromJson(toJson(t))` equals `t`, as does its text if `t`'s are UTF-8.
///
/// Memory: a small multiple of `text`.
/// @return InvalidInput with `where` "rows/3/rule" (a path into the document) and what was expected there;
///   NotSupported for a newer version
Result<ConstraintTable> tableFromJson(std::string_view text);

/// The same as part of a larger document (sessions, plans).
Result<ConstraintTable> tableFromJson(const nlohmann::json &document);

} // namespace planloom
