#pragma once

#include "engine/base/result.h"
#include "engine/graph/graph.h"

#include <nlohmann/json_fwd.hpp>

namespace planloom {

/// A graph without the values of its tensors, as part of an execution plan's document.
nlohmann::json graphToJson(const Graph &graph);

/// True if the document has attributes that say their type, as JSON alone does not: infinite ones, NaN, empty
/// lists of reals or texts. Readers of plans before version 6 do not know these.
bool hasTypedAttributes(const Graph &graph);

/// Inverse of `graphToJson`. The graph is validated.
/// @return InvalidInput with the JSON pointer of what is wrong in `where`
Result<Graph> graphFromJson(const nlohmann::json &value);

} // namespace planloom
