#pragma once

#include "engine/plan/plan.h"
#include "engine/table/table.h"

#include <cstdint>
#include <vector>

namespace planloom {

/// What a plan has of a degree, whatever it was made from: of `Degree::Data` the most parts into which
/// devices cut an operator's batch; of `Degree::Tensor` the most that they cut and add up of one part of the
/// batch; of `Degree::Pipeline` the groups of devices that its stages are on. 0 for `Degree::Sequence` and
/// `Degree::Expert`, which are bounds of operators. O(operators x their parts).
std::int64_t degreeOf(const Plan &plan, Degree degree);

/// Rows of `table` about degrees, of those that are on and must hold, that `plan` does not keep to,
/// ascending. Completing a plan holds degrees against rows that give them (mesh, micro-batches), and leaves
/// the others to a search: a plan that none has made may break them.
/// @param plan  of the rows of `table`
std::vector<RowId> brokenDegrees(const Plan &plan, const ConstraintTable &table);

} // namespace planloom
