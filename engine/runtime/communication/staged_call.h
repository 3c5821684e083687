#pragma once

#include "engine/runtime/communication/communicator.h"
#include "engine/runtime/communication/parcels.h"
#include "engine/runtime/communication/shared_memory.h"

#include <utility>

namespace planloom {

/// A member's part in a collective with buffers that all ranks reach: its own, or copies of those that do not
/// lie in shared memory.
class StagedCall
{
public:
    StagedCall() = default;
    /// One whose buffers all ranks reach.
    explicit StagedCall(CollectiveCall call)
        : m_call(std::move(call))
    {
    }

    /// Copies what has to be. @return false if memory is exhausted
    bool stage(const CollectiveCall &call, const SharedMemory &memory, Parcels &parcels);
    /// Gives copies back, once all members have done their parts.
    /// @param copyBack  what was made goes to where the call wanted it
    void unstage(bool copyBack);

    const CollectiveCall &call() const { return m_call; }

private:
    CollectiveCall m_call{};
    CollectiveBuffer m_source{}; ///< Of which `m_call` has a copy; no data where it has the buffer itself.
    CollectiveBuffer m_target{};
};

} // namespace planloom
