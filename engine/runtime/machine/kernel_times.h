#pragma once

#include <functional>
#include <optional>
#include <vector>

namespace planloom {

/// Where calibration reads time, in seconds from any start. Thread-safe.
struct BenchClock {
    std::function<double()> passed{}; ///< Steady.
    std::function<double()> worked{}; ///< By all threads of this process; other programs do not count.
    std::function<double()> threadWorked{}; ///< By the thread that asks.
};

/// The machine's own.
BenchClock machineClock();

/// Runs of one kernel on a machine where other programs may have made some of them, or all, longer.
///
/// Others take cores away for a few milliseconds at a time. A short kernel runs between such moments soon
/// enough, and its fastest run is what it takes; a long one may never do so. But what cores work for it is
/// the same whoever is beside, and how much of that passes while several cores work is known from its loops
/// (loop_meter.h). A fastest run that is longer than both say was disturbed.
class KernelTimes
{
public:
    /// @param elapsed  from its start to its end; @param cores  that cores worked on it, together
    void add(double elapsed, double cores);
    /// @param share  of the cores' time that passes if nothing keeps them from working
    void setShare(double share) { m_share = share; }

    bool empty() const { return m_elapsed.empty(); }
    double fastest() const; ///< Of the runs.
    /// The kernel is so long that runs may all have been disturbed, and the share is not set.
    bool needShare() const;
    /// All runs took longer than the kernel does on an idle machine.
    bool wereDisturbed() const;
    /// Another run of about the fastest one's time has confirmed it, and it was not disturbed.
    bool areSettled() const;

    double seconds() const; ///< On an idle machine, with all cores.
    double coreSeconds() const; ///< That cores work on it; at least `seconds`.
    double spread() const; ///< How much longer the median run was, as a share of `seconds`.

private:
    std::vector<double> m_elapsed{}; ///< Ascending.
    double m_cores = 0; ///< Least.
    std::optional<double> m_share{};
};

} // namespace planloom
