#pragma once

#include "engine/base/result.h"

#include <cstdint>
#include <string>
#include <vector>

namespace planloom {

/// A block of a micro-batch, or one that runs once a step, as the search for schedules sees it: computation,
/// or communication on a queue of its own.
struct PlacementBlock {
    std::int64_t id = 0; ///< Unique; for people and files. The engine counts blocks by their index.
    std::string kind{}; ///< "forward", "backward", "send", ...: for people alone.
    std::vector<std::int32_t> devices{}; ///< That it keeps busy; ascending, at least one.
    /// Of each of its devices. Blocks of one queue run one at a time, those of different queues beside one
    /// another; 0 computes.
    std::int32_t queue = 0;
    std::int64_t time = 1; ///< At least 1, in steps or nanoseconds: whatever all blocks are measured in.
    /// Taken on each of its devices when it starts; below 0 it is given back.
    std::int64_t memory = 0;
    bool givesBackAtEnd = false; ///< What it gives back, it gives back when it ends, not when it starts.
    std::int64_t workspace = 0; ///< Held on each of its devices while it runs, beside `memory`; at least 0.
    /// It runs once a step, before the micro-batches (weights are gathered) or behind them (gradients are
    /// reduced): what waits for it does so for every micro-batch, and it waits for all of them.
    bool once = false;
    friend bool operator==(const PlacementBlock &, const PlacementBlock &) = default;
};

/// `after` of micro-batch i + `distance` starts once `before` of micro-batch i has ended. Of a block that
/// runs once the distance is 0.
struct PlacementEdge {
    std::int32_t before = 0; ///< Index of a block.
    std::int32_t after = 0;
    std::int32_t distance = 0;
    friend auto operator<=>(const PlacementEdge &, const PlacementEdge &) = default;
};

enum class OptionKind : std::uint8_t {
    /// Dropped when `block` has run, and computed again at the begin of `until`, which takes `time` longer
    /// (T. Chen et al., Training deep nets with sublinear memory cost, arXiv:1604.06174).
    Recompute,
    /// Copied to the host behind `block`, which takes `time` on `queue`, and back before `until`, which takes
    /// `backTime` on `backQueue`: two more blocks of the same devices (vDNN, MICRO 2016).
    Offload,
};
const char *nameOf(OptionKind kind); ///< "recompute", "offload"

/// A way to hold less between a block, which takes memory, and a later one, which needs it again. Of the
/// options of a block, which all have one `until`, at most one is taken, for all its micro-batches alike.
/// What gives the memory back for good is `until` itself, or waits for it.
struct MemoryOption {
    OptionKind kind = OptionKind::Recompute;
    std::int32_t block = 0; ///< Index of the block.
    std::int32_t until = 0; ///< Waits for `block` in its own micro-batch, and runs on the same devices.
    std::int64_t memory = 1; ///< That is not held between the two, of what `block` takes: at least 1.
    std::int64_t time = 1; ///< At least 1.
    std::int32_t queue = 0; ///< Of offloads, as the three below.
    std::int64_t backTime = 1; ///< At least 1.
    std::int32_t backQueue = 0;
    friend bool operator==(const MemoryOption &, const MemoryOption &) = default;
};

/// Where the blocks of a micro-batch lie and what they wait for: Tessel's placement (HPCA '24), which knows
/// whole steps, one queue, memory that is given back at starts, and nothing that runs once.
struct Placement {
    std::int32_t devices = 1;
    /// By device: the most its blocks may hold at once. Empty: no limit.
    std::vector<std::int64_t> memoryLimit{};
    std::vector<PlacementBlock> blocks{};
    std::vector<PlacementEdge> edges{}; ///< Those of distance 0 form no cycle.
    std::vector<MemoryOption> options{}; ///< That a search decides on.
    friend bool operator==(const Placement &, const Placement &) = default;
};

/// What `validate` takes as the most of anything, so that sums stay exact.
constexpr std::int64_t kMostPlacementTime = std::int64_t{1} << 50;
constexpr std::int32_t kMostPlacementBlocks = 4096;

/// @return InvalidInput naming the block ("block:ID") or edge ("edge:INDEX") that breaks what is said above;
///   of an option, the block that it belongs to
Result<void> validate(const Placement &placement);

/// Indices of the blocks, each behind those it waits for in its own micro-batch. Of a valid placement.
std::vector<std::int32_t> topologicalOrder(const Placement &placement);

/// How long the longest chain of dependencies of one micro-batch takes that ends with each block (itself
/// included), and that begins with it. Of a valid placement.
struct ChainLengths {
    std::vector<std::int64_t> upTo{};
    std::vector<std::int64_t> from{};
};
ChainLengths chainLengths(const Placement &placement);

/// Time that each (device, queue) is busy for one micro-batch, without what runs once, the largest of them:
/// no period is shorter (ResMII, B. R. Rau, Iterative Modulo Scheduling, MICRO 1994, section 2).
std::int64_t busiestQueue(const Placement &placement);

/// It takes memory of its devices when it starts, be it for as long as it runs.
inline bool takesMemory(const PlacementBlock &block)
{
    return block.memory > 0 || block.workspace > 0;
}

/// Two blocks share a queue of a device, so that they cannot overlap.
bool shareQueue(const PlacementBlock &a, const PlacementBlock &b);

/// "forward block 3"
std::string wordsOf(const PlacementBlock &block);

} // namespace planloom
