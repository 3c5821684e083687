#include "engine/plan/decided_by.h"

#include <algorithm>

namespace planloom {

namespace {

/// Tells decisions apart that are as in a plan without rows.
class Defaults
{
public:
    explicit Defaults(std::int32_t deviceCount)
        : m_lastSeen(static_cast<std::size_t>(deviceCount), -1)
    {
    }

    bool include(const OperatorDecision &decision)
    {
        const auto &splits = decision.partition.splits;
        const bool whole = std::all_of(splits.begin(), splits.end(),
            [](const Split &split) { return split.kind == SplitKind::Replicate; });
        return whole && decision.recomputeGroup < 0 && isOnEveryDevice(decision.devices);
    }

private:
    bool isOnEveryDevice(const std::vector<DeviceId> &devices)
    {
        if (devices.size() < m_lastSeen.size())
            return false;
        ++m_round;
        std::size_t different = 0;
        for (const DeviceId device : devices) {
            std::int32_t &last = m_lastSeen[static_cast<std::size_t>(device.index)];
            different += last != m_round ? 1 : 0;
            last = m_round;
        }
        return different == m_lastSeen.size();
    }

    std::vector<std::int32_t> m_lastSeen; ///< By device: the round in which it was met.
    std::int32_t m_round = -1;
};

} // namespace

std::vector<DecidedBy> decidedBy(const Plan &plan)
{
    std::vector<DecidedBy> result;
    result.reserve(plan.decisions.size());
    Defaults defaults(plan.deviceCount);
    for (const OperatorDecision &decision : plan.decisions) {
        const bool held = !decision.rows.empty();
        result.push_back(held                ? DecidedBy::Row
                : defaults.include(decision) ? DecidedBy::Default
                                             : DecidedBy::Implied);
    }
    for (const OrderConstraint &order : plan.orders) {
        for (const OperatorId op : {order.first, order.second})
            result[static_cast<std::size_t>(op.index)] = DecidedBy::Row;
    }
    return result;
}

} // namespace planloom
