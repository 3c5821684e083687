#pragma once

#include "engine/analyse/waterfall.h"
#include "engine/design/explain/traced_difference.h"
#include "engine/table/table_document.h"
#include "widgets/common/operator_change.h"
#include "widgets/compare/span_moves.h"
#include "widgets/design/plan_update.h"

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace planloom {

/// One row of two tables beside each other.
struct ComparedRow {
    enum class Kind : std::uint8_t { Same, Changed, OnlyA, OnlyB };
    /// A row's cells as a table shows them; all empty where a plan has no such row.
    struct Cells {
        std::string text{}; ///< The whole row, without note and origin.
        std::string selector{};
        std::string rule{}; ///< With its word: "split batch over dp".
        bool enabled = true;
        friend bool operator==(const Cells &, const Cells &) = default;
    };
    Kind kind = Kind::Same;
    Cells a{};
    Cells b{};
    friend bool operator==(const ComparedRow &, const ComparedRow &) = default;
};

/// Rows of both tables: those that differ first, by a's rows, then those only b has, then equal ones.
/// O(rows log rows)
std::vector<ComparedRow> compareRows(const ConstraintTable &a, const ConstraintTable &b);

/// What takes one side of a compared row over into `table`: its text in place of the other side's, or in
/// place of a row about the same thing, or behind the last row; where that side has no such row, the other
/// side's is taken out. Empty if it is so already. O(rows log rows)
TableEdit takeOver(const TableDocument &table, const ComparedRow &row, bool fromA);

/// Two plans held against each other. Immutable.
struct CompareResult {
    PlanUpdateSnapshot a{};
    PlanUpdateSnapshot b{};
    std::vector<ComparedRow> rows{};
    /// The rest needs the timelines of both.
    std::optional<Waterfall> waterfall{};
    std::vector<std::uint8_t> operators{}; ///< OperatorChange by operator of b's graph.
    std::array<std::int32_t, kOperatorChangeCount> counts{}; ///< By OperatorChange, of b's operators.
    SpanMoves moves{};
    std::vector<DifferenceCause> causes{}; ///< Of the operators that differ.

    /// The plans are equal as far as they can be told apart.
    bool isEmpty() const;
};
using CompareSnapshot = std::shared_ptr<const CompareResult>;

/// Times that differ by less are the same: half a percent of the shorter step, or a tick.
std::int64_t noiseOf(const Timeline &a, const Timeline &b);

/// Neither must be null. Thread-safe. @return null if stopped
CompareSnapshot comparePlans(PlanUpdateSnapshot a, PlanUpdateSnapshot b, std::stop_token stop = {});

} // namespace planloom
