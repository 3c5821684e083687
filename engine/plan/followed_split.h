#pragma once

#include "engine/binding/followers.h"
#include "engine/graph/annotation/partition.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace planloom {

/// How many parts an identifier is cut into so far; 0 if into uneven ones.
std::int64_t partsAlong(const std::vector<Split> &splits, std::int32_t dimension);

/// The cut of `op` that fits `split` of its leader, or nothing where it would cost communication other than
/// the borders of what windows read. `taken` are the splits that rows already decided for `op`, and those
/// decided for outer axes.
std::optional<Split> followed(const Graph &graph, const Leader &leader, const Operator &op,
    const Split &split, const std::vector<Split> &taken);

} // namespace planloom
