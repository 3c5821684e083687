#pragma once

#include "engine/graph/shape.h"
#include "engine/hardware/cluster.h"
#include "engine/lowering/program/execution_plan.h"
#include "engine/plan/plan.h"
#include "engine/simulate/timeline.h"

#include <cstdint>
#include <optional>
#include <stop_token>
#include <vector>

namespace planloom {

/// What one device sends to another in one step by one kind of instruction. Collectives send to the next
/// member of their group, as rings do; all-to-all sends to every other member; a broadcast's last member
/// sends nothing. What goes to other scale units goes to the device that stands for them: the sender itself.
struct Flow {
    InstructionKind kind{};
    DeviceId from{};
    DeviceId to{};
    Bytes bytes{};
    Nanoseconds
        time{}; ///< Durations of the sender's spans; of an all-to-all, an equal share for each receiver.
    std::int64_t count = 0; ///< Spans.
    std::vector<OperatorId> operators{}; ///< That it serves, ascending.
    friend bool operator==(const Flow &, const Flow &) = default;
};

/// How much a link carries: what a device sends inside its node, or what a node sends to others.
struct LinkLoad {
    bool betweenNodes = false;
    std::int32_t index = 0; ///< Device, or node.
    Bytes bytes{};
    double share = 0; ///< Of what it could carry in the step; 0 without a step.
    friend bool operator==(const LinkLoad &, const LinkLoad &) = default;
};

/// Device x device matrix of one step, as its cells that are not empty.
struct CommunicationMatrix {
    std::int32_t deviceCount = 0;
    std::vector<Flow> flows{}; ///< By (from, to, kind).
    std::vector<LinkLoad> links{}; ///< All devices, then all nodes if there are several.

    /// Bytes from one device to another over all kinds, or of one. O(log flows + kinds).
    Bytes bytesBetween(DeviceId from, DeviceId to, std::optional<InstructionKind> kind = {}) const;
    /// Nanoseconds, likewise.
    Nanoseconds timeBetween(DeviceId from, DeviceId to, std::optional<InstructionKind> kind = {}) const;
    /// All that a device sends: the sum of its row.
    Bytes sentBy(DeviceId from) const;
};

/// From the spans of `timeline`, predicted or measured.
/// @return nothing if stopped. O(communication spans + flows)
std::optional<CommunicationMatrix> communicationMatrix(
    const ExecutionPlan &plan, const Timeline &timeline, const Cluster &cluster, std::stop_token stop = {});

/// Traffic that rows of the table are behind.
struct RowTraffic {
    RowId row{}; ///< Invalid for operators that no row speaks of.
    Bytes bytes{};
    Nanoseconds time{};
    friend bool operator==(const RowTraffic &, const RowTraffic &) = default;
};

/// Flows by the rows that decided the operators they serve. A flow of several operators counts for each of
/// their rows, so that sums can be larger than the flow. `flow` null means all of them. By row, the invalid
/// one last.
std::vector<RowTraffic> rowsBehind(
    const Plan &plan, const CommunicationMatrix &matrix, const Flow *flow = nullptr);

/// Nanoseconds that a communication would take if nobody else used its links; nothing for what one device
/// does alone, and for what is launched with others or runs beside a product, whose share is not its own.
/// @param cluster  the whole one; `device`, of the plan, runs `instruction`
std::optional<std::int64_t> durationAlone(
    const ExecutionPlan &plan, const Cluster &cluster, DeviceId device, const Instruction &instruction);

} // namespace planloom
