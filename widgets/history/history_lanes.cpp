#include "widgets/history/history_lanes.h"

#include <algorithm>

namespace planloom {

namespace {

std::size_t rowOf(StepId id)
{
    return static_cast<std::size_t>(id);
}

StepId parentOf(const History &history, StepId id)
{
    return history.steps()[static_cast<std::size_t>(id - 1)].parent;
}

} // namespace

HistoryLanes::HistoryLanes(const History &history)
{
    const std::size_t rows = history.steps().size() + 1;
    m_branch.assign(rows, -1);
    m_branch[0] = 0;
    // A step belongs to the oldest branch that holds it: branches begin at steps of older ones.
    for (const Branch &branch : history.branches()) {
        for (StepId id = branch.head; m_branch[rowOf(id)] < 0; id = parentOf(history, id))
            m_branch[rowOf(id)] = branch.id;
    }
    m_place.assign(rows, StepPlace::Elsewhere);
    for (StepId id = history.branches()[static_cast<std::size_t>(history.branch())].head;
         id > history.current(); id = parentOf(history, id))
        m_place[rowOf(id)] = StepPlace::Redo;
    for (StepId id = history.current(); id != 0; id = parentOf(history, id))
        m_place[rowOf(id)] = StepPlace::Past;
    m_place[0] = StepPlace::Past;
    m_place[rowOf(history.current())] = StepPlace::Current;

    m_lineOf.assign(history.branches().size(), -1);
    for (std::size_t row = 0; row < rows; ++row) {
        const std::int32_t branch = m_branch[row];
        std::int32_t &line = m_lineOf[static_cast<std::size_t>(branch)];
        if (line < 0) {
            line = static_cast<std::int32_t>(m_lines.size());
            const std::size_t fork = row == 0 ? 0 : rowOf(parentOf(history, static_cast<StepId>(row)));
            m_lines.push_back({branch, 0, fork, row, row});
        }
        m_lines[static_cast<std::size_t>(line)].last = row;
    }
    // Each takes the leftmost lane that is free from its fork on. Lines are placed in the order of their
    // forks, so a lane is free once its last line ended above.
    std::vector<std::size_t> order(m_lines.size());
    for (std::size_t i = 0; i < order.size(); ++i)
        order[i] = i;
    std::stable_sort(order.begin(), order.end(),
        [this](std::size_t a, std::size_t b) { return m_lines[a].fork < m_lines[b].fork; });
    std::vector<std::size_t> ends; // by lane: the last row that is taken
    for (const std::size_t i : order) {
        BranchLine &line = m_lines[i];
        std::size_t lane = 0;
        while (lane < ends.size() && ends[lane] >= line.fork)
            ++lane;
        if (lane == ends.size())
            ends.push_back(0);
        // The first branch keeps its lane to itself: it stays where it is when it grows.
        ends[lane] = line.branch == 0 ? rows : line.last;
        line.lane = static_cast<std::int32_t>(lane);
    }
    m_laneCount = static_cast<std::int32_t>(ends.size());
}

LaneRow HistoryLanes::row(std::size_t row) const
{
    LaneRow result;
    result.branch = m_branch[row];
    const BranchLine &own =
        m_lines[static_cast<std::size_t>(m_lineOf[static_cast<std::size_t>(result.branch)])];
    result.lane = own.lane;
    // A branch's line runs in its own lane from below the fork on, so its first step has it above, too.
    result.above = row > 0;
    result.below = row < own.last;
    for (const BranchLine &line : m_lines) {
        if (line.branch == own.branch)
            continue;
        if (line.fork == row)
            result.forks.push_back(line);
        else if (line.fork < row && row < line.last && line.branch != result.branch)
            result.through.push_back(line);
    }
    return result;
}

} // namespace planloom
