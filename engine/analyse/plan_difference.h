#pragma once

#include "engine/lowering/program/execution_plan.h"
#include "engine/simulate/timeline.h"
#include "engine/table/table.h"

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace planloom {

/// How the plans differ about one operator.
struct OperatorDifference {
    OperatorId a{}; ///< In the first plan's graph; invalid if only the second one has it.
    OperatorId b{};
    std::string name{};
    bool split = false; ///< Cut differently.
    bool placed = false; ///< On other devices, or its parts dealt out differently.
    /// At another place in the order of its devices: it is not among the most kernels that both plans run in
    /// the same order. Only for operators that are neither split nor placed differently.
    bool ordered = false;
    bool computed = false; ///< An attention that keeps its probabilities in one plan only.
    friend bool operator==(const OperatorDifference &, const OperatorDifference &) = default;
};

/// How the tables differ about one row.
struct RowDifference {
    enum class Kind : std::uint8_t { OnlyInA, OnlyInB, Changed };
    Kind kind = Kind::Changed;
    RowId a{}; ///< Invalid for OnlyInB.
    RowId b{}; ///< Invalid for OnlyInA.
    friend bool operator==(const RowDifference &, const RowDifference &) = default;
};

/// One figure of both plans.
struct MetricDifference {
    enum class Unit : std::uint8_t { Seconds, Bytes, Ratio };
    std::string name{}; ///< "step", "peak", "bubble", "sent", "exposed communication"
    Unit unit = Unit::Seconds;
    double a = 0;
    double b = 0;
    double delta = 0; ///< b - a
    std::optional<double> percent{}; ///< 100 delta / a; nothing if a is 0.
    bool lowerIsBetter = true;
    friend bool operator==(const MetricDifference &, const MetricDifference &) = default;
};

/// Operator by operator.
struct PlanDifference {
    std::vector<OperatorDifference>
        operators{}; ///< Only those that differ: by a's operators, then those only b has.
    std::int32_t same = 0; ///< Operators that do not.
    bool empty() const { return operators.empty(); }
};

/// Matches operators by name, so that plans of one model match whole, and those of others as far as they go.
/// Two operators of one name match in their order. The other way round is the mirror image.
/// @return nothing if stopped. O(operators + kernels log kernels)
std::optional<PlanDifference> differenceOf(
    const ExecutionPlan &a, const ExecutionPlan &b, std::stop_token stop = {});

/// Rows that are equal (apart from origin and note) in one table and the other are left out, wherever they
/// stand. Of the others, two of one kind and selector are Changed. By a's rows, then those only b has. O(rows
/// log rows).
std::vector<RowDifference> differenceOf(const ConstraintTable &a, const ConstraintTable &b);

/// Step, largest peak, bubble, bytes sent by all, and exposed communication, the mean over devices as in a
/// waterfall.
std::vector<MetricDifference> metricsOf(const Timeline &a, const Timeline &b);

} // namespace planloom
