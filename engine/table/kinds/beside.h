#pragma once

#include "engine/base/result.h"
#include "engine/graph/graph.h"
#include "engine/table/table.h"

#include <cstdint>

namespace planloom {

/// How a row about the whole plan stands to another one of its kind.
enum class Beside : std::uint8_t {
    Apart, ///< They are about different things: other axes, dimensions, stages, numbers of micro-batches.
    Same, ///< They are about the same thing and can both hold; the newer one says all that is meant.
    Clash, ///< They are about the same thing and cannot both hold.
};

/// How `a` and `b` stand to one another, in either order. Rules of different kinds, and rules about
/// operators, are apart: what these say of an operator is compared operator by operator (`clashOf`).
///
/// Whoever asks whether a table can have both rows asks here: reading the rows (`planMeaning`) and looking
/// for conflicts refuse two that clash; a row that is typed takes the place of all that are not apart from
/// it.
/// @param graph  of the model: a dimension of its inputs has several names
Beside besides(const Graph &graph, const Rule &a, const Rule &b);

/// What is wrong with `rule` beside the rule of a row before it, `earlier`, with which it clashes.
Error clashError(const Graph &graph, const Rule &rule, const Rule &earlier, RowId row);

} // namespace planloom
