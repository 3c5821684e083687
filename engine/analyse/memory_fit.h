#pragma once

#include "engine/hardware/cluster.h"
#include "engine/lowering/program/execution_plan.h"
#include "engine/simulate/timeline.h"

#include <array>
#include <cstdint>
#include <vector>

namespace planloom {

/// What a rank's memory is held by, in the words of those who train.
enum class HeldAs : std::uint8_t {
    Parameters, ///< That operators read: weights and buffers.
    MainParameters, ///< Of the optimizer, where operators read copies in a shorter format.
    Gradients, ///< Of parameters.
    OptimizerStates,
    SavedActivations, ///< That a backward operator reads.
    Logits, ///< What runs over a vocabulary, and its gradients.
    OtherActivations, ///< Gradients of activations, and what only forward operators read.
    Workspaces, ///< Of kernels, while they run.
    Inputs,
    CommunicationBuffers,
};
constexpr std::size_t kHeldAsCount = static_cast<std::size_t>(HeldAs::CommunicationBuffers) + 1;

const char *nameOf(HeldAs held); ///< "saved activations"
const char *keyOf(HeldAs held); ///< "saved_activations"

/// What one rank holds at its peak.
struct RankMemory {
    DeviceId rank{}; ///< In the cluster.
    std::int64_t peak = 0; ///< Bytes.
    std::int64_t limit = 0; ///< What the rank's device has.
    std::array<std::int64_t, kHeldAsCount> held{}; ///< Bytes; together they are the peak.
    bool fits() const { return peak <= limit; }
    /// Of what the device has.
    double share() const { return static_cast<double>(peak) / static_cast<double>(limit > 0 ? limit : 1); }
};

/// All ranks of a plan, those of every scale unit, in their order.
///
/// Adds up the lifetimes that the memory view shows (memory_at.h), at the first moment of the peak; what the
/// memory curve has beyond them are workspaces.
/// @param timeline  with spans
/// @return empty where the plan has no devices. O(spans + buffers of devices that differ + ranks)
std::vector<RankMemory> memoryOfRanks(
    const ExecutionPlan &plan, const Timeline &timeline, const Cluster &cluster);

/// The rank whose peak is the largest share of what it has; null without ranks.
const RankMemory *fullestOf(const std::vector<RankMemory> &ranks);

} // namespace planloom
