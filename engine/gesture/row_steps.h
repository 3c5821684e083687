#pragma once

#include "engine/gesture/row_edits.h"

#include <vector>

namespace planloom {

/// A split that a row makes of an operator.
struct BoundStep {
    std::int32_t line = -1; ///< -1 for one that is to be written.
    SplitStep step{}; ///< As the row says it.
    Split split{}; ///< What it means for this operator; more than one part.
    friend bool operator==(const BoundStep &, const BoundStep &) = default;
};

/// What `step` makes of an operator (`splitOf`): nothing if it passes the operator by or is a single part.
Result<std::optional<Split>> madeBy(const GestureContext &context, OperatorId op, const SplitStep &step);

/// What rows that are on make of each operator of `subset` (forward ones), by position, in the order of the
/// table.
std::vector<std::vector<BoundStep>> boundSteps(const GestureContext &context, const Subset &subset);

/// Steps over mesh axes in mesh order, then those over none; of those over the same axis one.
void sortSteps(const GestureContext &context, std::vector<BoundStep> &steps);

/// Parts that coshard rows cut each operator of `subset` into besides; dimension -1 where none does.
std::vector<Split> coshardSteps(const GestureContext &context, const Subset &subset);

/// True if every step over an axis has that axis in `domain`, or `domain` is a list.
bool spans(const Domain &domain, const std::vector<BoundStep> &steps);

/// Writes the steps of each operator as rows, operators with equal steps together.
class StepWriter
{
public:
    void add(OperatorId op, const std::vector<BoundStep> &steps);
    void finish(RowEdits &edits);

private:
    std::vector<std::pair<std::vector<SplitStep>, std::vector<OperatorId>>> m_groups{};
};

/// Places operators and keeps others where they are: takes them out of other place rows, writes a place row,
/// and pins neighbours that would follow. Those that are there already are left alone.
void movePlacement(const GestureContext &context, RowEdits &edits, const std::vector<OperatorId> &operators,
    const OpAssignRule &rule);

} // namespace planloom
