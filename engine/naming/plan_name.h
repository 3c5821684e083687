#pragma once

#include "engine/naming/plan_shape.h"
#include "engine/plan/plan.h"
#include "engine/table/model.h"

#include <cstdint>
#include <string>

namespace planloom {

/// The letters that a plan's short name has at most.
constexpr std::size_t kLongestPlanTitle = 60;

/// What a plan is called. Equal decisions have equal names.
struct PlanName {
    /// "1F1B over 4, tensor 2, ZeRO-1 on 8": at most `kLongestPlanTitle` letters; what has no room is three
    /// dots.
    std::string title{};
    /// "1F1B over 4 stages, tensor parallel 2 with sequence parallelism, ZeRO-1 on 8, 8 micro-batches;
    /// lm_head copied on 2".
    std::string sentence{};
    friend bool operator==(const PlanName &, const PlanName &) = default;
};

/// What the field calls a schedule: "1F1B", "GPipe", "interleaved 1F1B", "ZB-H1".
const char *titleOf(ScheduleKind kind);

/// The name of a shape. @param index  of the plan's graph
PlanName nameOf(const PlanShape &shape, const Plan &plan, const SelectorIndex &index);

/// Says what `plan` is from its decisions: degrees of parallelism, stages and schedule, the sharing of
/// updates, what is computed again, offloaded or run in turns; then, behind a semicolon, at most two groups
/// of operators that are cut or placed otherwise, how many more there are, and how many rows order something
/// by themselves. Where the plan came from is not asked: two tables that decide the same have one name.
/// @param model  that the plan is of, or that its graph was made from (capacities, unrolled recurrences)
/// O(operators x their parts). Thread-safe.
PlanName planNameOf(const Plan &plan, const Model &model);

} // namespace planloom
