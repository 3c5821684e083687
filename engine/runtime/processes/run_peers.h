#pragma once

#include "engine/runtime/communication/collector.h"
#include "engine/runtime/devices/device_executor.h"
#include "engine/runtime/machine/free_memory.h"
#include "engine/runtime/processes/process_world.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace planloom {

/// What the ranks of a run tell each other beside the plan's communication, so that rank 0 puts its outcome
/// together. In a run of one process nobody is told anything, and all is known at once.
///
/// All ranks call the same functions in the same order, on their driving threads. @return Cancelled if the
/// run was stopped meanwhile
class RunPeers
{
public:
    /// @param end  of this rank; null in a run of one process
    RunPeers(RankEnd *end, std::int32_t devices)
        : m_end(end)
        , m_layout(end == nullptr ? RankLayout{devices, 1} : end->layout())
        , m_rank(end == nullptr ? 0 : end->rank())
    {
    }

    bool isFirst() const { return m_rank == 0; }
    /// The devices of this rank: [first, end).
    std::int32_t first() const { return m_layout.first(m_rank); }
    std::int32_t end() const { return m_layout.end(m_rank); }

    /// As free_memory.h's, of what all ranks need together. At rank 0, which has to end the run if it fails.
    Result<void> requireMemory(const std::vector<MemoryNeed> &mine);
    /// Waits for all ranks. @return rank 0's `now`: all processes of a machine read one clock
    Result<DeviceExecutor::Clock::time_point> begin(DeviceExecutor::Clock::time_point now);
    /// @return rank 0's answer, at all ranks
    Result<bool> decidedByFirst(bool mine);
    /// Waits for all ranks. @return at rank 0 the sums, elsewhere nothing
    Result<std::map<OperatorId, std::int64_t>> sumAtFirst(const std::map<OperatorId, std::int64_t> &mine);
    /// @return at rank 0 the measures of all devices, elsewhere nothing
    Result<std::vector<DeviceMeasure>> gather(std::vector<DeviceMeasure> mine);

    /// Sends what `Collector::put` was given at another rank than 0 to rank 0's collector,
    Result<void> post(const Collector::Claim &claim, const IndexMask &box, const std::byte *data,
        const Collector::Turn &turn);
    /// which puts it.
    static void put(Collector &collector, std::span<const std::byte> posted);

private:
    RankEnd *m_end;
    RankLayout m_layout;
    std::int32_t m_rank;
};

} // namespace planloom
