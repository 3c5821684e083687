#pragma once

#include "engine/analyse/plan_difference.h"
#include "engine/base/result.h"
#include "engine/lowering/program/execution_plan.h"
#include "engine/plan/plan.h"
#include "engine/simulate/timeline.h"
#include "engine/table/table.h"

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace planloom {

/// One of two plans that are held against each other. What is pointed to must outlive the call.
struct TracedPlan {
    const Plan *plan = nullptr; ///< With decisions that name rows of `rows`.
    const ConstraintTable *rows = nullptr;
    /// By operator of the execution plan's graph, as `kernelTimesOf`; null if not known.
    const std::vector<std::int64_t> *kernelNanoseconds = nullptr;
};

/// Operators that differ between two plans for the same reason.
struct DifferenceCause {
    /// Rows of each table that the other does not have and that make the difference, ascending. Both empty:
    /// no row does (other devices, another model).
    std::vector<RowId> a{};
    std::vector<RowId> b{};
    bool inherited = false; ///< No row speaks of these operators: they follow others of which some do.
    std::vector<OperatorDifference> operators{};
    /// By how much longer the kernels of these operators run in the second plan, on all devices together.
    std::optional<std::int64_t> nanoseconds{};
};

/// Every operator of `difference` (`differenceOf` the execution plans), by the rows that make it so: those
/// that decide it in one table and are not in the other, with the mesh where it is split over another one;
/// else those that decide what it follows (its forward operator, its producers, its neighbours); else those
/// about the whole plan, or all. The most operators first.
/// @return nothing if stopped. O(operators + edges + rows log rows)
std::optional<std::vector<DifferenceCause>> traceDifference(const TracedPlan &a, const TracedPlan &b,
    const PlanDifference &difference, const std::stop_token &stop = {});

struct TracedPlans {
    ConstraintTable a{};
    ConstraintTable b{};
    std::vector<DifferenceCause> causes{};
};

/// The same of two execution plans that say of which rows they are (`rowsRemembered`): their models are
/// opened and planned again.
/// @return InvalidInput where a plan does not say it; what planning says; Cancelled. Waits for the disk.
Result<TracedPlans> traceDifference(const ExecutionPlan &a, const Timeline &timelineA, const ExecutionPlan &b,
    const Timeline &timelineB, const PlanDifference &difference, const std::stop_token &stop = {});

/// "split, placed": how operators of a cause differ. "only in A", "only in B" where a plan lacks them.
std::string wordsOf(const OperatorDifference &difference);
std::string wordsOf(const DifferenceCause &cause);

} // namespace planloom
