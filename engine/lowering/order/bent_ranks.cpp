#include "engine/lowering/order/bent_ranks.h"

namespace planloom {

namespace {

class Bender
{
public:
    Bender(const std::vector<std::vector<std::size_t>> &ranks,
        const std::vector<std::vector<std::int32_t>> &next)
        : m_next(next)
        , m_left(ranks)
        , m_done(ranks.size())
        , m_waitingFor(next.size(), 0)
        , m_isRanked(next.size(), false)
    {
        m_before.resize(next.size());
        for (std::size_t item = 0; item < next.size(); ++item)
            for (const std::int32_t target : next[item]) {
                ++m_waitingFor[static_cast<std::size_t>(target)];
                m_before[static_cast<std::size_t>(target)].push_back(item);
            }
        for (const auto &rank : ranks)
            for (const std::size_t item : rank)
                m_isRanked[item] = true;
    }

    std::vector<std::vector<std::size_t>> run()
    {
        for (std::size_t item = 0; item < m_next.size(); ++item)
            if (!m_isRanked[item] && m_waitingFor[item] == 0)
                letGo(item);
        while (runHeads() || runNearest()) { }
        for (std::size_t r = 0; r < m_left.size(); ++r) // a circle: whoever asks finds it
            m_done[r].insert(m_done[r].end(), m_left[r].begin(), m_left[r].end());
        return std::move(m_done);
    }

private:
    /// What waits only for `item` may run; what no rank orders does so at once.
    void letGo(std::size_t item)
    {
        std::vector<std::size_t> open{item};
        while (!open.empty()) {
            const std::size_t done = open.back();
            open.pop_back();
            for (const std::int32_t target : m_next[done]) {
                const auto waiting = static_cast<std::size_t>(target);
                if (--m_waitingFor[waiting] == 0 && !m_isRanked[waiting])
                    open.push_back(waiting);
            }
        }
    }

    void take(std::size_t rank, std::size_t place)
    {
        auto &left = m_left[rank];
        const std::size_t item = left[place];
        left.erase(left.begin() + static_cast<std::ptrdiff_t>(place));
        m_done[rank].push_back(item);
        letGo(item);
    }

    bool runHeads()
    {
        bool any = false;
        for (std::size_t r = 0; r < m_left.size(); ++r)
            while (!m_left[r].empty() && m_waitingFor[m_left[r].front()] == 0) {
                take(r, 0);
                any = true;
            }
        return any;
    }

    /// By item: what comes next in some rank waits for it, directly or not.
    std::vector<bool> waitedFor() const
    {
        std::vector<bool> waited(m_next.size(), false);
        std::vector<std::size_t> open;
        for (const auto &left : m_left)
            if (!left.empty())
                open.push_back(left.front());
        while (!open.empty()) {
            const std::size_t item = open.back();
            open.pop_back();
            for (const std::size_t before : m_before[item])
                if (!waited[before]) {
                    waited[before] = true;
                    open.push_back(before);
                }
        }
        return waited;
    }

    bool runNearest()
    {
        const auto waited = waitedFor();
        std::size_t rank = m_left.size();
        std::size_t place = 0;
        for (std::size_t r = 0; r < m_left.size(); ++r)
            for (std::size_t p = 1; p < m_left[r].size() && (rank == m_left.size() || p < place); ++p)
                if (m_waitingFor[m_left[r][p]] == 0 && waited[m_left[r][p]]) {
                    rank = r;
                    place = p;
                }
        if (rank == m_left.size())
            return false;
        take(rank, place);
        return true;
    }

    const std::vector<std::vector<std::int32_t>> &m_next;
    std::vector<std::vector<std::size_t>> m_left; ///< By rank: what has not run.
    std::vector<std::vector<std::size_t>> m_done;
    std::vector<std::int32_t> m_waitingFor; ///< By item.
    std::vector<bool> m_isRanked; ///< By item.
    std::vector<std::vector<std::size_t>> m_before{}; ///< By item: those that it waits for.
};

} // namespace

std::vector<std::vector<std::size_t>> bentRanks(
    const std::vector<std::vector<std::size_t>> &ranks, const std::vector<std::vector<std::int32_t>> &next)
{
    return Bender(ranks, next).run();
}

} // namespace planloom
