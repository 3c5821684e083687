#pragma once

#include "engine/simulate/compiled_program.h"
#include "engine/simulate/compute_chain.h"
#include "engine/simulate/meetings.h"
#include "engine/simulate/memory_log.h"

#include <array>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <vector>

namespace planloom {

/// Instructions that ran one after another, all of a chain's or a single one.
struct TraceRun {
    const ComputeChain *chain = nullptr; ///< Null: one instruction.
    std::int32_t segment = 0;
    std::int32_t instruction = 0; ///< The first, within the segment, hidden stores not counted.
    std::int32_t microBatch = 0;
    std::int64_t start = 0;
    std::int64_t duration = 0; ///< Of all.
};

/// When the instructions of one queue ran, in order: columns, as in `SpanColumns`.
struct QueueTrace {
    std::vector<std::int32_t> segment{};
    std::vector<std::int32_t> instruction{}; ///< As in `TraceRun`.
    std::vector<std::int32_t> microBatch{};
    std::vector<std::int64_t> start{};
    std::vector<std::int64_t> duration{};
};
/// Instruction by instruction.
QueueTrace spelledOut(const std::vector<TraceRun> &runs);

/// What one device class did.
struct DeviceTrace {
    std::vector<std::unique_ptr<const ComputeChain>> chains{}; ///< That the others refer to.
    std::array<std::vector<TraceRun>, kQueueCount> queues{}; ///< By QueueKind, in order.
    std::array<MemoryLog, kQueueCount> memory{}; ///< By QueueKind.
    std::vector<MemoryEvent> hostMemory{}; ///< Of its host, in no order.
    std::int64_t end = 0;
};

/// Runs the compiled programs of all device classes against one another.
///
/// Since all queues of a device are in order, an instruction depends only on those before it in its
/// program: a device is run in program order until it meets a channel whose other ends have not come yet. No
/// heap of events is needed, and a device that waits for ever here waits for ever with any order of
/// evaluation.
/// @param durations  of meetings; empty where they take as long as is compiled
/// @param chains  whether what runs as it did for the micro-batch before is booked as a whole
/// (compute_chain.h)
/// @return by class; InvalidInput on a deadlock, a mismatch, or a read of what was never written; Cancelled
/// O(instructions of the unrolled schedules of all classes).
Result<std::vector<DeviceTrace>> runPrograms(const std::vector<CompiledProgram> &programs,
    const Symmetry &symmetry, const MeetingPlaces &places, std::int32_t microBatches,
    const MeetingDurations &durations, bool chains, std::stop_token stop);

} // namespace planloom
