#pragma once

#include "engine/plan/complete.h"
#include "engine/plan/domain.h"
#include "engine/plan/selector_index.h"
#include "engine/plan/table.h"

#include <cstdint>
#include <string>
#include <vector>

namespace planloom {

/// What the rows say about one forward or optimizer operator; row indices are -1 where none does.
struct OperatorBinding {
    struct Step {
        Split split {};
        std::int32_t row = -1;
    };
    std::vector<Step> steps {}; ///< Those over mesh axes in mesh order, then those over none.
    std::int32_t placeRow = -1;
    std::int32_t domain = -1; ///< Index into `CompletionState::domains`; -1 if no row places it.
    std::int32_t coshardRow = -1;
    std::int32_t coshardDimension = -1;
    std::int32_t coshardParts = 1;
    std::int32_t stageRow = -1;
    std::int32_t stage = -1;
    std::int32_t recomputeRow = -1;
    std::int32_t shardingRow = -1; ///< Optimizer operators only.
};

/// A plan on its way from rows to decisions. Rules of completion fill in `plan` one after the other.
struct CompletionState {
    const SelectorIndex &index;
    const ConstraintTable &table;
    BatchInfo batch {};
    Plan plan {};
    std::vector<RowReport> reports {};
    bool failed = false;

    std::vector<MeshAxis> mesh {}; ///< Empty if no row makes one.
    std::int32_t microBatchRow = -1;
    std::int32_t scheduleRow = -1;
    std::vector<std::string> batchAxes {}; ///< Mesh axes over which a row splits the batch.
    std::vector<Domain> domains {}; ///< 0: where operators without any placement run.
    std::vector<OperatorBinding> bindings {}; ///< By operator.

    const Graph &graph() const { return index.graph(); }
    OperatorDecision &decisionOf(OperatorId op) { return plan.decisions[static_cast<std::size_t>(op.index)]; }
    OperatorBinding &bindingOf(OperatorId op) { return bindings[static_cast<std::size_t>(op.index)]; }

    /// Keeps the first error of each row.
    void fail(std::int32_t row, std::string message, std::string advice = {}, const char *field = "rule");
    /// As `fail`, for two rows that contradict each other about an operator.
    void failBoth(std::int32_t row, std::int32_t other, const Operator &op, const std::string &what);
    /// The same, about something else: "this row and row:3 ('...') `what`". @param advice  what would help
    void failBoth(
        std::int32_t row, std::int32_t other, const std::string &what, const std::string &advice);
    std::int32_t domainNumber(Domain domain);
};

/// Binds every enabled row to the operators it speaks of.
void bindRows(CompletionState &state);

// Parts of bindRows (bind_rules.cpp): what single rules do to the operators `selected`; they return how many
// bind.

std::int32_t bindOpTrans(CompletionState &state, std::int32_t row, const OpTransRule &rule,
    const std::vector<OperatorId> &selected);
std::int32_t bindCoshard(CompletionState &state, std::int32_t row, const CoshardRule &rule,
    const std::vector<OperatorId> &selected);
std::int32_t bindOpAssign(CompletionState &state, std::int32_t row, const OpAssignRule &rule,
    const std::vector<OperatorId> &selected);
std::int32_t bindOpOrder(CompletionState &state, std::int32_t row, const OpOrderRule &rule,
    const std::vector<OperatorId> &selected);

/// Binds the in-flight rows to the plan's stages, once they are known: `Plan::inFlight`.
void bindInFlight(CompletionState &state);

/// The operators of `selected` that a rule about forward operators acts on: the forward ones; if there are
/// none, the optimizer ones; if there are only backward ones, none.
std::vector<OperatorId> actedOn(const Graph &graph, const std::vector<OperatorId> &selected);

/// The identifier that `ref` names in `op`; -1 if the operator has no such identifier, position or batch, or
/// none of that meaning that may be cut.
/// @return InvalidInput if it has the position, but cannot be split there
Result<std::int32_t> resolveDimension(
    const SelectorIndex &index, const BatchInfo &batch, OperatorId op, const DimensionRef &ref);

/// Gives `split` the identifier that `ref` names in `op`; false if it names none. By meaning, the parts divide
/// what is meant, not what it lies in: 4 heads of 16 are cut into 2 or 4 parts, although the identifier has 64.
/// Sizes count heads then, too. A mere piece of what is meant (a sequence without its last token) that does not
/// divide is passed by.
/// @return InvalidInput as `resolveDimension`, and if the parts do not divide the heads
Result<bool> bindDimension(
    const SelectorIndex &index, const BatchInfo &batch, OperatorId op, const DimensionRef &ref, Split &split);

} // namespace planloom
