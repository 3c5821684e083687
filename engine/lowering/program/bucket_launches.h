#pragma once

#include "engine/lowering/program/execution_plan.h"

#include <array>
#include <vector>

namespace planloom {

/// Which collectives of a segment can be one launch with the one before in their queue: those of one kind, by
/// the same devices (what ncclGroupStart and ncclGroupEnd enclose, or a flat bucket of gradients). What
/// brings others of the launch into shape between them runs behind it, so none may read what came of that.
class BucketLaunches
{
public:
    /// Whether it can be one launch with the last collective of its queue.
    bool continues(const Instruction &collective) const;
    /// The next instruction of the segment; must outlive it.
    void add(const Instruction &instruction);

private:
    struct Launch {
        const Instruction *last = nullptr;
        std::int32_t number = 0;
    };
    std::array<Launch, kQueueCount> m_launches{};
    std::int32_t m_begun = 0;
    std::vector<std::int32_t> m_madeIn{}; ///< By buffer: in the queue of which launch, since it began.
};

} // namespace planloom
