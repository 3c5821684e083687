#pragma once

#include "engine/analyse/block_label.h"
#include "engine/analyse/critical_path.h"
#include "engine/hardware/cluster.h"

#include <cstdint>
#include <string>
#include <vector>

namespace planloom {

/// One thing that ran somewhere while a device waited: spans of the chain behind a bubble that are of one
/// block, or of one kind of communication for one block.
///
///     spans   ... [ b b b all-reduce b b ] [send B1] [ f f f ] | bubble of GPU 0 ends
///     links        B1 on GPU 2              send      F3         (the nearest one first)
struct WaitLink {
    std::int32_t firstWait = 0; ///< Of the chain's `Wait`s that lead to its spans: [firstWait, endWait).
    std::int32_t endWait = 0;
    std::int32_t span = -1; ///< Of it, the one nearest to the bubble.
    std::int64_t begin = 0; ///< Nanoseconds: what of the bubble it takes.
    std::int64_t end = 0;
    bool communicates = false; ///< It is a communication or a copy, none that is part of another block.
    WaitKind kind = WaitKind::Order; ///< Why what is nearer to the bubble waits for it.
    /// The device whose end of the nearer communication came last, if that is not its own; else invalid.
    DeviceId last{};
    RowId row{}; ///< That puts it before what is nearer; invalid if none does.
    friend bool operator==(const WaitLink &, const WaitLink &) = default;
};

/// The chain of `bubble` by blocks, the nearest first: times follow one another without gaps (in predicted
/// timelines) from the bubble's end back to its begin. Empty for a step without spans.
/// O(chain).
std::vector<WaitLink> blocksBehind(const ExecutionPlan &plan, const Timeline &timeline, const Bubble &bubble);

/// What a span is called among blocks: "F3", "B0 on GPU 2", "the send of F2 to GPU 1", "the all-reduce of
/// gradients".
/// @param on  the device that needs no naming
std::string blockWords(const ExecutionPlan &plan, const StagesInParts &stages, const std::string &deviceWord,
    const Timeline &timeline, std::int32_t span, DeviceId on, bool communicates);

/// Why a device waits, in one sentence: "GPU 0 waits 5.96 ms: its B0 needs the receive of B0 from GPU 1,
/// which GPU 1 sends only after B0, which needs ..." As many links as are read in one breath, then how many
/// more.
std::string sentenceOf(const ExecutionPlan &plan, const Cluster &cluster, const Timeline &timeline,
    const Bubble &bubble, const std::vector<WaitLink> &links);

} // namespace planloom
