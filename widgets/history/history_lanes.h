#pragma once

#include "sessions/history.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace planloom {

/// Where a step stands, seen from the current one.
enum class StepPlace : std::uint8_t {
    Past, ///< On the way to the current one: undo leads there.
    Current,
    Redo, ///< After it on the current branch.
    Elsewhere, ///< On another branch.
};

/// A branch's line in the drawn tree: from the row it forks off, down to its last own step. Other branches'
/// rows may lie between: rows are in the order of time.
struct BranchLine {
    std::int32_t branch = 0; ///< Id.
    std::int32_t lane = 0; ///< Column, from 0.
    std::size_t fork = 0; ///< Row of the step it forks off; for the first branch, its first row.
    std::size_t first = 0; ///< Row of its first own step.
    std::size_t last = 0; ///< Row of its last own step.
    friend bool operator==(const BranchLine &, const BranchLine &) = default;
};

/// What the tree shows in one row.
struct LaneRow {
    std::int32_t lane = 0; ///< Of the row's own step.
    std::int32_t branch = 0; ///< That the step was made on.
    bool above = false; ///< Its line comes from above, in its own lane.
    bool below = false; ///< Its line goes on below, in its own lane.
    std::vector<BranchLine> through{}; ///< Lines that pass by.
    std::vector<BranchLine> forks{}; ///< Lines that leave this step for lanes of their own.
    friend bool operator==(const LaneRow &, const LaneRow &) = default;
};

/// A history laid out as rows with lane numbers: row i is step i, row 0 the state the session began with.
/// Branches share a lane where their lines do not meet.
class HistoryLanes
{
public:
    HistoryLanes() = default;
    /// O(steps + branches x lanes).
    explicit HistoryLanes(const History &history);

    std::size_t rowCount() const { return m_branch.size(); }
    std::int32_t laneCount() const { return m_laneCount; }
    std::int32_t branchOf(std::size_t row) const { return m_branch[row]; }
    StepPlace placeOf(std::size_t row) const { return m_place[row]; }
    /// Lines of branches that have steps of their own, by branch.
    const std::vector<BranchLine> &lines() const { return m_lines; }
    LaneRow row(std::size_t row) const; ///< O(branches).

private:
    std::vector<std::int32_t> m_branch; ///< By row.
    std::vector<StepPlace> m_place; ///< By row.
    std::vector<BranchLine> m_lines;
    std::vector<std::int32_t> m_lineOf; ///< By branch; -1 for those without steps of their own.
    std::int32_t m_laneCount = 1;
};

} // namespace planloom
