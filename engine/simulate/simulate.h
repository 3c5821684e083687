#pragma once

#include "engine/base/result.h"
#include "engine/lowering/program/instruction_cost.h"
#include "engine/simulate/timeline.h"

#include <functional>
#include <memory>
#include <stop_token>

namespace planloom {

struct KnownPrograms;

struct SimulateOptions {
    bool spans = true; ///< Off: only totals, memory peaks and traffic.
    bool mergeSymmetric = true; ///< Off: every device on its own; for tests, the result is the same.
    bool chains = true; ///< Off: instruction by instruction; for tests, the result is the same.
    bool sharedLinks = true; ///< Off: communication is as fast as if it had all links for itself.
    /// If set, what is known of the plan's programs whatever their order: taken from an earlier simulation,
    /// with the same cluster and costs, of a plan that shared them, and left as this simulation knows them.
    /// Null is nothing. The result is the same, sooner.
    std::shared_ptr<const KnownPrograms> *programs = nullptr;
    /// If set, called with all but the spans and the points of memory curves before these are written out,
    /// which takes longer than the simulation itself: for those who wait for the step time and the peaks.
    std::function<void(const Timeline &)> onFigures{};
};

/// Discrete-event simulation of one training step: each device has several queues, each in order; an
/// instruction starts when it heads its queue, its inputs are there and, for communication, all
/// members have reached it. Devices whose programs are equal up to renaming are simulated once. What is sent
/// over the same links at the same time is slowed down, if the costs say what it asks of them (contention.h).
/// What is computed while a collective runs has the multiprocessors that this leaves
/// (`DeviceModel::besideCollectives`).
/// Whether communication waits in several queues or in one says `Cluster::communicationQueues`, whether
/// sends hold up computation `Cluster::blockingSends`.
///
/// @return InvalidInput if the plan cannot make progress (a deadlock; `verify` says where); Cancelled if
/// stopped
Result<Timeline> simulate(const ExecutionPlan &plan, const Cluster &cluster,
    const SimulateOptions &options = {}, std::stop_token stop = {});

/// The same with durations from elsewhere (measured, or made up by a test); `cluster` gives nodes, classes
/// and what links can carry.
Result<Timeline> simulate(const ExecutionPlan &plan, const Cluster &cluster, const CostModel &costs,
    const SimulateOptions &options = {}, std::stop_token stop = {});

} // namespace planloom
