#pragma once

#include <chrono>
#include <cstdint>
#include <stop_token>
#include <utility>
#include <vector>

namespace planloom {

/// How long a search may go on.
struct ScheduleLimits {
    std::chrono::steady_clock::time_point until = std::chrono::steady_clock::time_point::max();
    std::stop_token stop{};
    bool areOver() const { return stop.stop_requested() || std::chrono::steady_clock::now() >= until; }
};

enum class SearchOutcome : std::uint8_t { Found, None, Stopped };

/// Finds starts of blocks that keep differences, exclude one another and fit memory, or proves that there are
/// none: a branch and bound for both kinds of schedules.
///
/// *Differences* are t_j - t_i >= w. All that follow from one another are kept (the longest paths between all
/// blocks), so that a cycle of positive length is seen at once.
///
/// *Pairs* have t_i - t_j in [P h + after, P (h + 1) - before] for some integer h, their *height* (C. Hanen,
/// A. Munier, Cyclic scheduling on parallel processors, 1995): of two blocks of one queue that repeat every
/// P, h is how many repetitions of j lie between. In a schedule that does not repeat, P is longer than all of
/// it, and h is 0 where j is before i, -1 where it is behind. What is searched are heights: from bounds of a
/// difference follow those of its height, and the other way round.
///
/// *Memory* at the start of a block is a sum of heights, linear: how often each block of the device has
/// started by then. What one block takes and another gives back is one term, which is never less than what
/// lies between these two whenever one looks.
///
/// Of a pair with two heights left, whatever follows from both holds: between two of the blocks that they
/// exclude as well there must be room for both, whichever goes first.
///
/// Where the earliest starts of all differences violate a pair, or memory, the search branches over a height
/// that they violate, lower or higher; pairs that take part in failures first (J. Boussemart et al., Boosting
/// systematic search by weighting constraints, ECAI 2004), from the beginning again after ever more nodes.
class StartSearch
{
public:
    /// @param blocks   they are counted from 0; nothing is known of them
    /// @param period   P, at least 1
    /// @param horizon  the longest that may lie between the first start and any other
    StartSearch(std::int32_t blocks, std::int64_t period, std::int64_t horizon);

    /// t_later - t_earlier >= least; `earlier` may be `origin()`.
    void require(std::int32_t earlier, std::int32_t later, std::int64_t least);
    std::int32_t origin() const { return m_count - 1; } ///< All starts are at or behind it.

    struct Pair {
        std::int32_t i = 0;
        std::int32_t j = 0;
        std::int64_t after = 0;
        std::int64_t before = 0;
        std::int64_t least = 0; ///< Bounds of its height.
        std::int64_t most = 0;
    };
    /// @return its index
    std::int32_t addPair(const Pair &pair, double weight = 1);

    /// The height of a pair, or of the same pair the other way round: -1 - h.
    struct Height {
        std::int32_t pair = 0;
        bool turned = false;
    };
    /// How often something has started: `constant` and the sum of heights. Of several, each is -1 or 0, and
    /// none is less than the next.
    struct Count {
        std::int64_t constant = 0;
        std::vector<Height> heights{};
    };
    /// `amount` for every start in `takes` that is not in `gives`, which is never less than `between`.
    struct MemoryTerm {
        std::int64_t amount = 0;
        Count takes{};
        Count gives{};
        bool isPair = false; ///< Not negative: every start of `gives` has one of `takes` before.
        std::vector<Height> between{}; ///< Of the giving over the taking block; none means 0.
    };
    struct MemoryRow {
        std::int64_t limit = 0;
        std::vector<MemoryTerm> terms{};
    };
    void addMemory(MemoryRow row) { m_rows.push_back(std::move(row)); }

    /// What follows without search. @return false if nothing can hold it all
    bool propagate();

    /// @param mostNodes  after which it stops
    SearchOutcome find(const ScheduleLimits &limits, std::int64_t mostNodes);
    /// Of the last `find` that found some: by block.
    const std::vector<std::int64_t> &starts() const { return m_starts; }
    /// Nodes of all searches so far.
    std::int64_t nodes() const { return m_nodes; }

private:
    struct Choice {
        std::int32_t pair = -1; ///< -1: the starts hold everything.
        std::int64_t split = 0; ///< Heights up to it, or above it.
        bool aboveFirst = false;
    };
    struct Change {
        std::size_t place = 0; ///< A block, whose differences are saved; behind those, bounds of heights.
        std::int64_t before = 0; ///< Of a bound.
    };

    std::int64_t &difference(std::int32_t i, std::int32_t j) { return m_longest[cell(i, j)]; }
    std::size_t cell(std::int32_t i, std::int32_t j) const
    {
        return static_cast<std::size_t>(i) * static_cast<std::size_t>(m_count) + static_cast<std::size_t>(j);
    }
    std::int64_t leastOf(const Height &height) const;
    std::int64_t mostOf(const Height &height) const;
    std::int64_t leastOf(const Count &count) const;
    std::int64_t mostOf(const Count &count) const;
    std::int64_t leastOf(const MemoryTerm &term) const;
    bool setLeast(std::int32_t pair, std::int64_t value);
    bool setMost(std::int32_t pair, std::int64_t value);
    bool setLeast(const Height &height, std::int64_t value);
    bool setMost(const Height &height, std::int64_t value);
    bool setLeast(const Count &count, std::int64_t value);
    bool setMost(const Count &count, std::int64_t value);
    bool add(std::int32_t i, std::int32_t j, std::int64_t least);
    /// Whether nothing that a pair's bounds, or what follows from both of its heights, depend on has changed
    /// since this was asked last. What is undone goes back to where nothing followed any more. Nothing
    /// follows from both heights of a pair that has not just two left.
    bool isUnchangedPair(std::size_t pair);
    bool isUnchangedEither(std::size_t pair);
    bool propagatePair(std::size_t pair);
    bool propagateEither(std::size_t pair); ///< Of a pair with two heights left.
    bool propagateRow(std::size_t row);
    void findNeighbours();
    std::int64_t heightAt(const Pair &pair, const std::vector<std::int64_t> &starts) const;
    bool holdsAt(const std::vector<std::int64_t> &starts) const;
    std::int64_t valueAt(const Count &count, const std::vector<std::int64_t> &starts) const;
    std::int64_t memoryAt(const MemoryRow &row, const std::vector<std::int64_t> &starts) const;
    Choice choose();
    Choice chooseForMemory(const std::vector<std::int64_t> &starts);
    bool branch(const ScheduleLimits &limits);
    void undo(std::size_t mark);

    std::int32_t m_count = 0; ///< Blocks, and the origin.
    std::int64_t m_period = 1;
    std::vector<std::int64_t> m_longest{}; ///< By pair of blocks: t_j - t_i is at least so much.
    std::vector<Pair> m_pairs{};
    /// By pair: blocks that are in pairs with both of its blocks; none where there are too many to look at.
    std::vector<std::vector<std::int32_t>> m_neighbours{};
    std::vector<double> m_weights{}; ///< By pair: failures it took part in.
    std::vector<MemoryRow> m_rows{};
    std::vector<Change> m_changes{};
    std::vector<std::int64_t> m_savedRows{}; ///< Differences of one block after the other, as they were.
    std::int64_t m_level = 0; ///< Of the search: what is changed in it for the first time is saved.
    std::vector<std::int64_t> m_rowLevels; ///< By block: the level in which its differences were saved last.
    std::int64_t m_clock = 0; ///< Counts changes.
    std::vector<std::int64_t> m_rowClocks; ///< By block: the last change of its differences.
    std::vector<std::int64_t> m_pairClocks{}; ///< By pair: of its bounds.
    std::vector<std::int64_t> m_pairSeen{}; ///< By pair: up to when it was looked at.
    std::vector<std::int64_t> m_eitherSeen{};
    std::vector<std::int64_t> m_starts{};
    bool m_moved = false; ///< Something changed since the last look at all pairs and rows.
    bool m_failed = false; ///< Before any search.
    bool m_stopped = false;
    std::int64_t m_nodes = 0;
    std::int64_t m_nodesLeft = 0;
};

} // namespace planloom
