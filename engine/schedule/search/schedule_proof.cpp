#include "engine/schedule/search/schedule_proof.h"

#include "engine/base/ids.h"
#include "engine/base/words.h"

#include <cstdio>
#include <map>
#include <utility>

namespace planloom {

namespace {

std::string percent(double share)
{
    char text[32];
    std::snprintf(text, sizeof text, "%.*f%%", share > 0 && share < 0.1 ? 1 : 0, 100 * share);
    return text;
}

/// How much less a bound is than what was found.
double gapOf(std::int64_t found, std::int64_t bound)
{
    return found > 0 ? 1 - static_cast<double>(bound) / static_cast<double>(found) : 0;
}

/// The queue with the most work for one micro-batch: its device, whether it computes, and how long it takes.
struct Busiest {
    std::int32_t device = 0;
    bool computes = true;
    std::int64_t time = 0;
};

Busiest busiestOf(const Placement &placement)
{
    std::map<std::pair<std::int32_t, std::int32_t>, std::int64_t> busy; // by queue and device
    for (const PlacementBlock &block : placement.blocks)
        for (const std::int32_t device : block.devices)
            if (!block.once)
                busy[{block.queue, device}] += block.time;
    Busiest most;
    for (const auto &[queue, time] : busy)
        if (time > most.time)
            most = {queue.second, queue.first == 0, time};
    return most;
}

std::string periodProof(const Placement &placement, const PeriodAnswer &period,
    const std::vector<std::string> &devices, const std::function<std::string(std::int64_t)> &time)
{
    if (period.none)
        return "No steady state keeps within the memory.";
    if (!period.schedule)
        return period.bound > 0 ? "No schedule has a period below " + time(period.bound) + "." : "";
    const std::int64_t own = period.schedule->period;
    if (!period.proven())
        return "The period is " + time(own) + "; none is below " + time(period.bound) + ": at most "
            + percent(gapOf(own, period.bound)) + " less.";
    // Recomputation may keep a device busy that could do without.
    const Busiest busiest = busiestOf(withOptions(placement, openOptions(placement)));
    const std::string device = devices[at(busiest.device)];
    if (busiest.time == own)
        return (busiest.computes ? device + " is busy" : "The transfers of " + device + " take")
            + " 100% of the period of " + time(own) + ": no schedule has a shorter one.";
    return "No schedule that repeats with every micro-batch has a period below " + time(own)
        + ": what blocks wait for, or memory, forbids it (" + device + " is busy "
        + percent(static_cast<double>(busiest.time) / static_cast<double>(own)) + " of it, the most).";
}

} // namespace

std::string proofOf(const Placement &placement, const ScheduleAnswer &answer,
    const std::vector<std::string> &devices, const std::function<std::string(std::int64_t)> &time)
{
    std::string text = periodProof(placement, answer.period, devices, time);
    if (answer.unit)
        text += " One that repeats after " + counted(answer.unit->microBatches, "micro-batch") + " takes "
            + time(answer.unit->period) + " for them, "
            + percent(1
                - static_cast<double>(answer.unit->period)
                    / static_cast<double>(answer.unit->microBatches * answer.period.schedule->period))
            + " less.";
    const MakespanAnswer &makespan = answer.makespan;
    if (makespan.bound <= 0 && makespan.starts.empty())
        return text;
    text += text.empty() ? "" : " ";
    const std::string batches = counted(answer.microBatches, "micro-batch");
    if (makespan.starts.empty())
        return text
            + (makespan.none ? "No schedule of " + batches + " keeps within the memory."
                             : "No schedule of " + batches + " is below " + time(makespan.bound) + ".");
    text += batches + (answer.microBatches == 1 ? " takes " : " take ") + time(makespan.makespan);
    if (makespan.proven())
        return text + ": no schedule is shorter.";
    return text + "; none is below " + time(makespan.bound) + ": at most "
        + percent(gapOf(makespan.makespan, makespan.bound)) + " less.";
}

} // namespace planloom
