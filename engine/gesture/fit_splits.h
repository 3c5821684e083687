#pragma once

#include "engine/gesture/row_edits.h"

#include <optional>
#include <vector>

namespace planloom {

/// Takes operators out of split rows over axes along which they run no more once `edits` are made, and of
/// those whose parts could not be dealt out. For edits that give choices back.
void fitFollowers(const GestureContext &context, RowEdits &edits);

/// Takes operators that are to run in `domain` out of split rows over axes along which they will not run.
/// @return why the parts that are left can't be dealt out to its devices
std::optional<Error> fitSplits(const GestureContext &context, RowEdits &edits,
    const std::vector<OperatorId> &operators, const Domain &domain, bool dropUndealt = false);

} // namespace planloom
