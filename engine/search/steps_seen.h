#pragma once

#include "engine/plan/plan.h"
#include "engine/simulate/timeline.h"

#include <cstddef>
#include <list>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace planloom {

/// What a plan takes, simulated.
struct TimedStep {
    double seconds = 0;
    std::int64_t peak = 0; ///< Bytes, of the fullest device.
    std::int64_t sent = 0; ///< Bytes, by the device that sends most.
    std::vector<LevelTraffic> links{}; ///< As the timeline's.
};

/// Steps of plans of one cluster, whatever meshes they were written over: a batch cut over 4 and then 2
/// devices is cut over 8. It forgets those that were not asked for for long. Thread-safe.
class StepsSeen
{
public:
    /// O(operators x plans seen).
    std::optional<TimedStep> find(const Plan &plan);
    void add(const Plan &plan, const TimedStep &step);
    std::size_t size() const;

    static constexpr std::size_t kMostPlans = 64;
    static constexpr std::size_t kMostDecisions = 1'000'000; ///< Of all plans together,
    static constexpr std::size_t kLeastPlans = 12; ///< but for so many.

private:
    using Seen = std::list<std::pair<Plan, TimedStep>>;
    Seen::iterator found(const Plan &own);

    mutable std::mutex m_mutex{};
    Seen m_seen{}; ///< With partitions as `withoutMesh` has them; the last asked for first.
};

/// Whether plans that are the same but for the order (`isSameButForOrder`) have the same order, too.
bool isSameOrder(const Plan &a, const Plan &b);

/// Neighbouring splits of one kind and dimension are one, without names of axes; as far as that changes no
/// part, and nothing is said of one of them.
Partition withoutMesh(const OperatorDecision &decision);

} // namespace planloom
