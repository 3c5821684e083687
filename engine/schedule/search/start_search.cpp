#include "engine/schedule/search/start_search.h"

#include "engine/base/hot_loop.h"
#include "engine/base/ids.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace planloom {

namespace {

/// Rounded down; `divisor` is above 0.
std::int64_t floorDivided(std::int64_t value, std::int64_t divisor)
{
    return value >= 0 ? value / divisor : -((-value + divisor - 1) / divisor);
}

std::int64_t ceilDivided(std::int64_t value, std::int64_t divisor)
{
    return -floorDivided(-value, divisor);
}

/// row[k] becomes at least through + behind[k]. Most of a search is this.
PLANLOOM_HOT void raiseRow(std::int64_t *__restrict row, const std::int64_t *__restrict behind,
    std::int64_t through, std::size_t count)
{
    for (std::size_t k = 0; k < count; ++k) {
        const std::int64_t least = through + behind[k];
        row[k] = row[k] < least ? least : row[k];
    }
}

constexpr std::int64_t kFirstNodes = 200; ///< Until the first restart.
constexpr std::size_t kMostNeighbours = 8;

} // namespace

StartSearch::StartSearch(std::int32_t blocks, std::int64_t period, std::int64_t horizon)
    : m_count(blocks + 1)
    , m_period(period)
    , m_longest(at(m_count) * at(m_count), -horizon)
    , m_rowLevels(at(m_count), -1)
    , m_rowClocks(at(m_count), 0)
{
    for (std::int32_t b = 0; b < m_count; ++b) {
        difference(b, b) = 0;
        difference(origin(), b) = 0;
    }
}

void StartSearch::require(std::int32_t earlier, std::int32_t later, std::int64_t least)
{
    m_failed = m_failed || !add(earlier, later, least);
}

std::int32_t StartSearch::addPair(const Pair &pair, double weight)
{
    m_pairs.push_back(pair);
    m_weights.push_back(weight);
    m_pairClocks.push_back(++m_clock);
    m_pairSeen.push_back(0);
    m_eitherSeen.push_back(0);
    return static_cast<std::int32_t>(m_pairs.size()) - 1;
}

std::int64_t StartSearch::leastOf(const Height &height) const
{
    const Pair &pair = m_pairs[at(height.pair)];
    return height.turned ? -1 - pair.most : pair.least;
}

std::int64_t StartSearch::mostOf(const Height &height) const
{
    const Pair &pair = m_pairs[at(height.pair)];
    return height.turned ? -1 - pair.least : pair.most;
}

std::int64_t StartSearch::leastOf(const Count &count) const
{
    std::int64_t sum = count.constant;
    for (const Height &height : count.heights)
        sum += leastOf(height);
    return sum;
}

std::int64_t StartSearch::mostOf(const Count &count) const
{
    std::int64_t sum = count.constant;
    for (const Height &height : count.heights)
        sum += mostOf(height);
    return sum;
}

std::int64_t StartSearch::leastOf(const MemoryTerm &term) const
{
    const std::int64_t apart = leastOf(term.takes) - mostOf(term.gives);
    if (!term.isPair)
        return apart;
    return std::max(apart, term.between.empty() ? 0 : leastOf(term.between.front()));
}

bool StartSearch::setLeast(std::int32_t index, std::int64_t value)
{
    Pair &pair = m_pairs[at(index)];
    if (value <= pair.least)
        return true;
    m_changes.push_back({at(m_count) + 2 * at(index), pair.least});
    pair.least = value;
    m_pairClocks[at(index)] = ++m_clock;
    m_moved = true;
    return pair.least <= pair.most && add(pair.j, pair.i, m_period * pair.least + pair.after);
}

bool StartSearch::setMost(std::int32_t index, std::int64_t value)
{
    Pair &pair = m_pairs[at(index)];
    if (value >= pair.most)
        return true;
    m_changes.push_back({at(m_count) + 2 * at(index) + 1, pair.most});
    pair.most = value;
    m_pairClocks[at(index)] = ++m_clock;
    m_moved = true;
    return pair.least <= pair.most && add(pair.i, pair.j, pair.before - m_period * (pair.most + 1));
}

bool StartSearch::setLeast(const Height &height, std::int64_t value)
{
    return height.turned ? setMost(height.pair, -1 - value) : setLeast(height.pair, value);
}

bool StartSearch::setMost(const Height &height, std::int64_t value)
{
    return height.turned ? setLeast(height.pair, -1 - value) : setMost(height.pair, value);
}

bool StartSearch::setLeast(const Count &count, std::int64_t value)
{
    if (count.heights.empty())
        return count.constant >= value;
    if (count.heights.size() == 1)
        return setLeast(count.heights.front(), value - count.constant);
    const auto all = static_cast<std::int64_t>(count.heights.size());
    const std::int64_t started = value - count.constant + all; // of these, at least
    for (std::int64_t i = 0; i < std::min(started, all); ++i)
        if (!setLeast(count.heights[static_cast<std::size_t>(i)], 0))
            return false;
    return started <= all;
}

bool StartSearch::setMost(const Count &count, std::int64_t value)
{
    if (count.heights.empty())
        return count.constant <= value;
    if (count.heights.size() == 1)
        return setMost(count.heights.front(), value - count.constant);
    const auto all = static_cast<std::int64_t>(count.heights.size());
    const std::int64_t started = value - count.constant + all; // of these, at most
    for (std::int64_t i = std::max<std::int64_t>(started, 0); i < all; ++i)
        if (!setMost(count.heights[static_cast<std::size_t>(i)], -1))
            return false;
    return started >= 0;
}

bool StartSearch::add(std::int32_t i, std::int32_t j, std::int64_t least)
{
    if (difference(i, j) >= least)
        return true;
    if (difference(j, i) + least > 0)
        return false;
    m_moved = true;
    const std::int64_t *behind = &m_longest[cell(j, 0)];
    for (std::int32_t a = 0; a < m_count; ++a) {
        std::int64_t *row = &m_longest[cell(a, 0)];
        const std::int64_t through = row[i] + least;
        if (through <= row[j])
            continue;
        if (m_rowLevels[at(a)] != m_level) {
            m_rowLevels[at(a)] = m_level;
            m_changes.push_back({at(a), 0});
            m_savedRows.insert(m_savedRows.end(), row, row + m_count);
        }
        m_rowClocks[at(a)] = ++m_clock;
        raiseRow(row, behind, through, at(m_count));
    }
    return true;
}

bool StartSearch::isUnchangedPair(std::size_t index)
{
    const Pair &pair = m_pairs[index];
    const std::int64_t seen = std::exchange(m_pairSeen[index], m_clock);
    return m_pairClocks[index] <= seen && m_rowClocks[at(pair.i)] <= seen && m_rowClocks[at(pair.j)] <= seen;
}

bool StartSearch::isUnchangedEither(std::size_t index)
{
    const Pair &pair = m_pairs[index];
    if (pair.most != pair.least + 1)
        return true;
    const std::int64_t seen = std::exchange(m_eitherSeen[index], m_clock);
    return m_pairClocks[index] <= seen && m_rowClocks[at(pair.i)] <= seen && m_rowClocks[at(pair.j)] <= seen
        && std::all_of(m_neighbours[index].begin(), m_neighbours[index].end(),
            [&](std::int32_t block) { return m_rowClocks[at(block)] <= seen; });
}

bool StartSearch::propagatePair(std::size_t index)
{
    const Pair &pair = m_pairs[index];
    const std::int64_t least = difference(pair.j, pair.i); // of t_i - t_j
    const std::int64_t most = -difference(pair.i, pair.j);
    // Divisions are dear: only where a bound moves.
    if (m_period * (pair.least + 1) - pair.before < least
        && !setLeast(static_cast<std::int32_t>(index), ceilDivided(least + pair.before, m_period) - 1))
        return false;
    if (m_period * pair.most + pair.after > most
        && !setMost(static_cast<std::int32_t>(index), floorDivided(most - pair.after, m_period)))
        return false;
    return add(pair.j, pair.i, m_period * pair.least + pair.after)
        && add(pair.i, pair.j, pair.before - m_period * (pair.most + 1));
}

void StartSearch::findNeighbours()
{
    std::vector<std::vector<bool>> paired(at(m_count), std::vector<bool>(at(m_count), false));
    for (const Pair &pair : m_pairs)
        paired[at(pair.i)][at(pair.j)] = paired[at(pair.j)][at(pair.i)] = true;
    m_neighbours.resize(m_pairs.size());
    for (std::size_t p = 0; p < m_pairs.size(); ++p) {
        std::vector<std::int32_t> both;
        for (std::int32_t b = 0; b < m_count; ++b)
            if (paired[at(m_pairs[p].i)][at(b)] && paired[at(m_pairs[p].j)][at(b)])
                both.push_back(b);
        if (both.size() <= kMostNeighbours)
            m_neighbours[p] = std::move(both);
    }
}

bool StartSearch::propagateEither(std::size_t index)
{
    const Pair &pair = m_pairs[index];
    const std::int64_t behind = m_period * pair.most + pair.after; // of t_i - t_j, or
    const std::int64_t before = pair.before - m_period * pair.most; // of t_j - t_i
    const std::int64_t *const fromI = &m_longest[cell(pair.i, 0)];
    const std::int64_t *const fromJ = &m_longest[cell(pair.j, 0)];
    for (const std::int32_t a : m_neighbours[index]) {
        const std::int64_t *const from = &m_longest[cell(a, 0)];
        for (const std::int32_t b : m_neighbours[index]) {
            const std::int64_t least =
                std::min(from[pair.j] + behind + fromI[b], from[pair.i] + before + fromJ[b]);
            if (least > from[b] && !add(a, b, least))
                return false;
        }
    }
    return true;
}

bool StartSearch::propagateRow(std::size_t index)
{
    const MemoryRow &row = m_rows[index];
    std::int64_t left = row.limit;
    for (const MemoryTerm &term : row.terms)
        left -= term.amount * leastOf(term);
    if (left < 0)
        return false;
    for (const MemoryTerm &term : row.terms) {
        const std::int64_t most = leastOf(term) + left / term.amount;
        if (term.isPair && !term.between.empty() && !setMost(term.between.front(), most))
            return false;
        if (!setMost(term.takes, most + mostOf(term.gives))
            || !setLeast(term.gives, leastOf(term.takes) - most))
            return false;
    }
    return true;
}

bool StartSearch::propagate()
{
    if (m_failed)
        return false;
    if (m_neighbours.size() != m_pairs.size())
        findNeighbours();
    const auto allPairs = [this](auto &&holds) {
        m_moved = false;
        for (std::size_t p = 0; p < m_pairs.size(); ++p)
            if (!holds(p)) {
                m_weights[p] += 1;
                return false;
            }
        return true;
    };
    // What is dear waits until nothing else follows.
    do {
        do {
            if (!allPairs([this](std::size_t p) { return isUnchangedPair(p) || propagatePair(p); }))
                return false;
        } while (m_moved);
        for (std::size_t r = 0; r < m_rows.size(); ++r)
            if (!propagateRow(r)) {
                for (const MemoryTerm &term : m_rows[r].terms)
                    for (const Count *count : {&term.takes, &term.gives})
                        for (const Height &height : count->heights)
                            m_weights[at(height.pair)] += 1.0 / static_cast<double>(m_rows[r].terms.size());
                return false;
            }
        if (m_moved)
            continue;
        if (!allPairs([this](std::size_t p) { return isUnchangedEither(p) || propagateEither(p); }))
            return false;
    } while (m_moved);
    return true;
}

std::int64_t StartSearch::heightAt(const Pair &pair, const std::vector<std::int64_t> &starts) const
{
    return ceilDivided(starts[at(pair.i)] - starts[at(pair.j)] + pair.before, m_period) - 1;
}

std::int64_t StartSearch::valueAt(const Count &count, const std::vector<std::int64_t> &starts) const
{
    std::int64_t sum = count.constant;
    for (const Height &height : count.heights) {
        const std::int64_t value = heightAt(m_pairs[at(height.pair)], starts);
        sum += height.turned ? -1 - value : value;
    }
    return sum;
}

std::int64_t StartSearch::memoryAt(const MemoryRow &row, const std::vector<std::int64_t> &starts) const
{
    std::int64_t sum = 0;
    for (const MemoryTerm &term : row.terms)
        sum += term.amount * (valueAt(term.takes, starts) - valueAt(term.gives, starts));
    return sum;
}

bool StartSearch::holdsAt(const std::vector<std::int64_t> &starts) const
{
    for (const Pair &pair : m_pairs) {
        const std::int64_t apart = starts[at(pair.i)] - starts[at(pair.j)];
        if (apart < m_period * heightAt(pair, starts) + pair.after)
            return false;
    }
    return std::all_of(m_rows.begin(), m_rows.end(),
        [&](const MemoryRow &row) { return memoryAt(row, starts) <= row.limit; });
}

StartSearch::Choice StartSearch::choose()
{
    const std::int64_t *earliest = &m_longest[cell(origin(), 0)];
    m_starts.assign(earliest, earliest + origin());
    Choice best;
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t p = 0; p < m_pairs.size(); ++p) {
        const Pair &pair = m_pairs[p];
        if (pair.least == pair.most)
            continue;
        const std::int64_t apart = earliest[pair.i] - earliest[pair.j];
        const std::int64_t height = ceilDivided(apart + pair.before, m_period) - 1;
        if (apart >= m_period * height + pair.after)
            continue;
        // What remains of the room between the two, either way.
        const std::int64_t above = -difference(pair.i, pair.j) - (m_period * height + pair.after);
        const std::int64_t below = m_period * height - pair.before - difference(pair.j, pair.i);
        const double room = (static_cast<double>(std::min(above, below)) + 1) / m_weights[p];
        if (room < least) {
            least = room;
            best = {static_cast<std::int32_t>(p), height - 1, above >= below};
        }
    }
    if (best.pair >= 0)
        return best;
    best = chooseForMemory(m_starts);
    if (best.pair < 0)
        return best;
    std::vector<std::int64_t> latest(m_starts.size());
    std::int64_t first = std::numeric_limits<std::int64_t>::max();
    for (std::size_t b = 0; b < latest.size(); ++b) {
        latest[b] = -m_longest[cell(static_cast<std::int32_t>(b), origin())];
        first = std::min(first, latest[b]);
    }
    if (!holdsAt(latest))
        return best;
    for (std::int64_t &start : latest)
        start -= first;
    m_starts = latest;
    return {};
}

StartSearch::Choice StartSearch::chooseForMemory(const std::vector<std::int64_t> &starts)
{
    Choice best;
    double most = 0;
    for (const MemoryRow &row : m_rows) {
        if (memoryAt(row, starts) <= row.limit)
            continue;
        for (const MemoryTerm &term : row.terms)
            for (const bool gives : {false, true})
                for (const Height &height : (gives ? term.gives : term.takes).heights) {
                    const Pair &pair = m_pairs[at(height.pair)];
                    const std::int64_t value = heightAt(pair, starts);
                    // More of what gives, fewer of what takes.
                    const bool up = gives != height.turned;
                    if (up ? value >= pair.most : value <= pair.least)
                        continue;
                    if (m_weights[at(height.pair)] <= most)
                        continue;
                    most = m_weights[at(height.pair)];
                    best = {height.pair, up ? value : value - 1, up};
                }
    }
    return best;
}

bool StartSearch::branch(const ScheduleLimits &limits)
{
    while (true) {
        ++m_nodes;
        if (--m_nodesLeft < 0 || (m_nodes % 64 == 0 && limits.areOver())) {
            m_stopped = true;
            return false;
        }
        const Choice choice = choose();
        if (choice.pair < 0)
            return true;
        const auto take = [&](bool above) {
            if (above ? setLeast(choice.pair, choice.split + 1) : setMost(choice.pair, choice.split))
                return true;
            m_weights[at(choice.pair)] += 1;
            return false;
        };
        const std::size_t mark = m_changes.size();
        ++m_level;
        if (take(choice.aboveFirst) && propagate() && branch(limits))
            return true;
        if (m_stopped)
            return false;
        undo(mark);
        if (!take(!choice.aboveFirst) || !propagate())
            return false;
    }
}

void StartSearch::undo(std::size_t mark)
{
    while (m_changes.size() > mark) {
        const auto [place, before] = m_changes.back();
        m_changes.pop_back();
        if (place < at(m_count)) {
            const auto saved = m_savedRows.end() - m_count;
            std::copy(
                saved, m_savedRows.end(), m_longest.begin() + static_cast<std::ptrdiff_t>(place) * m_count);
            m_savedRows.erase(saved, m_savedRows.end());
            continue;
        }
        Pair &pair = m_pairs[(place - at(m_count)) / 2];
        ((place - at(m_count)) % 2 == 0 ? pair.least : pair.most) = before;
    }
    ++m_level; // what was saved for it is gone
}

SearchOutcome StartSearch::find(const ScheduleLimits &limits, std::int64_t mostNodes)
{
    if (!propagate())
        return SearchOutcome::None;
    m_changes.clear();
    m_savedRows.clear();
    ++m_level;
    std::int64_t left = mostNodes;
    for (std::int64_t stretch = kFirstNodes;; stretch += stretch / 2) {
        m_nodesLeft = std::min(stretch, left);
        left -= m_nodesLeft;
        m_stopped = false;
        if (branch(limits)) {
            undo(0);
            return SearchOutcome::Found;
        }
        if (!m_stopped)
            return SearchOutcome::None;
        undo(0);
        if (left <= 0 || limits.areOver())
            return SearchOutcome::Stopped;
    }
}

} // namespace planloom
