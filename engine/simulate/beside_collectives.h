#pragma once

#include <cstdint>
#include <vector>

namespace planloom {

/// When collectives run on a device, whose kernels hold some of its multiprocessors: what is computed
/// meanwhile has the others. Of collectives that stand before a computation in the program; what comes behind
/// it and runs with it after all is left out.
class BesideCollectives
{
public:
    /// A collective runs in [begin, end), and what is computed meanwhile runs at `speed` (above 0, at most
    /// 1). Where several run, at the lowest: they hold the same channels in turn. O(stretches that are kept)
    void add(std::int64_t begin, std::int64_t end, double speed);

    /// Nothing is asked of before `time` any more.
    void forgetBefore(std::int64_t time);

    bool meets(std::int64_t begin, std::int64_t end) const;

    /// What a computation that takes `duration` alone takes from `start` on. O(stretches that are kept)
    std::int64_t stretched(std::int64_t start, std::int64_t duration) const;

private:
    struct Stretch {
        std::int64_t begin = 0;
        std::int64_t end = 0;
        double speed = 1;
    };
    static void append(std::vector<Stretch> &stretches, Stretch stretch);

    std::vector<Stretch> m_stretches{}; ///< Apart, in the order of time.
};

} // namespace planloom
