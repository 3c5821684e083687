#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace planloom {

/// When collectives run on a device, whose kernels hold some of its multiprocessors: what is computed
/// meanwhile has the others. Of collectives that stand before a computation in the program; what comes behind
/// it and runs with it after all is left out.
class BesideCollectives
{
public:
    /// A collective runs in [begin, end).
    void add(std::int64_t begin, std::int64_t end);

    /// Nothing is asked of before `time` any more.
    void forgetBefore(std::int64_t time);

    bool meets(std::int64_t begin, std::int64_t end) const;

    /// What a computation of `duration` takes from `start` on if it runs at `speed` (above 0, at most 1)
    /// beside collectives. O(stretches that are not forgotten)
    std::int64_t stretched(std::int64_t start, std::int64_t duration, double speed) const;

private:
    std::vector<std::pair<std::int64_t, std::int64_t>> m_stretches{}; ///< Apart, in the order of time.
};

} // namespace planloom
