#pragma once

#include "engine/base/result.h"
#include "engine/kernels/rounded_kernel.h"
#include "engine/runtime/collector.h"
#include "engine/runtime/communicator.h"
#include "engine/runtime/host_values.h"
#include "engine/runtime/memory_pool.h"

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace planloom {

/// What the devices of one run share. Outlives them.
struct RunShared {
    const ExecutionPlan &plan;
    const RunOptions &options;
    const HostValues &values;
    Collector &collector;
    MemoryPool &pool;
    MemoryPool &hostPool; ///< Host memory that devices offload to.
    const OperatorLibraries &libraries; ///< What computes operators of files.
    const std::atomic<bool> &stopped; ///< Set once the run is to end early.
};

/// When an instruction ran, in nanoseconds from the start of its step.
struct MeasuredSpan {
    std::int32_t segment = 0;
    std::int32_t instruction = 0;
    std::int32_t microBatch = 0;
    std::int64_t start = 0;
    std::int64_t duration = 0;
};

/// One device: its memory, and the thread's work of running its program in order. One thread at a time uses
/// it.
class DeviceExecutor
{
public:
    using Clock = std::chrono::steady_clock;

    /// Reads the program once, so that running an instruction needs no search. Devices must be made in
    /// ascending order (see `Collector::claimsOf`).
    DeviceExecutor(RunShared &shared, std::int32_t device, DeviceProgress &progress);

    /// Runs the setup: fills the persistent buffers. @return Cancelled, ResourceLimit, errors of loading
    Result<void> load(Communicator &communicator);

    /// Runs the schedule once.
    /// @param step     0-based
    /// @param origin   start of the step, common to all devices
    /// @param measure  keep spans and the memory curve
    /// @return Cancelled; ResourceLimit; errors of kernels and collectives, with the instruction in `where`
    Result<void> runStep(
        Communicator &communicator, std::int32_t step, Clock::time_point origin, bool measure);

    /// What NonZeros of this device had no room for since the run began, by operator (engine/graph/places.h);
    /// of replicas, the first. Not while a step runs.
    const std::map<OperatorId, std::int64_t> &dropped() const { return m_dropped; }

    Bytes peak() const { return {m_peak}; }
    Bytes hostPeak() const { return {m_hostPeak}; }
    const std::vector<MeasuredSpan> &spans() const { return m_spans; }
    /// Tells spans as they end from now on, see `takeLive`.
    void setLive(bool live) { m_tellsSpans = live; }
    /// What has ended since the last call. May be called by another thread while the device runs.
    std::vector<LiveSpan> takeLive();
    const MemoryCurve &memory() const { return m_curve; }

private:
    /// An instruction with all that can be known about it before it runs.
    struct Prepared {
        const Instruction *source = nullptr;
        std::unique_ptr<Operator>
            adapted{}; ///< The operator with its `count` of one micro-batch, where that differs.
        KernelCall call{}; ///< Kernel: all but data pointers and what depends on the micro-batch.
        std::int32_t batchIdentifier = -1; ///< Range that moves with the micro-batch,
        std::int64_t batchShift = 0; ///< and by how much.
        std::vector<Collector::Claim> claims{};
        std::optional<KernelRounding>
            rounding{}; ///< Kernel: set where memory holds other types than it computes with.
        bool takesInput = false; ///< Output 0 takes over the memory of input 0, which dies here.
    };

    /// A buffer of the program.
    struct Slot {
        std::size_t first = 0; ///< Its instances in `m_blocks`.
        std::int64_t elements = 0;
        std::size_t bytes = 0;
        DataType type{};
        Shape shape{};
        std::int32_t shiftDimension = -1; ///< Dimension of the box that moves with the micro-batch,
        std::int64_t shift = 0; ///< and by how much.
    };

    Prepared prepare(const Instruction &instruction);
    void prepareKernel(const Instruction &instruction, Prepared &prepared);

    const BufferInfo &info(std::int32_t buffer) const
    {
        return m_program.buffers[static_cast<std::size_t>(buffer)];
    }
    const Slot &slot(std::int32_t buffer) const { return m_slots[static_cast<std::size_t>(buffer)]; }
    MemoryBlock &block(std::int32_t buffer, std::int32_t microBatch);
    IndexMask boxOf(std::int32_t buffer, std::int32_t microBatch) const;
    CollectiveBuffer collectiveBuffer(std::int32_t buffer, std::int32_t microBatch);

    Result<void> run(
        Prepared &prepared, std::int32_t microBatch, std::int32_t step, Communicator &communicator);
    Result<void> execute(
        Prepared &prepared, std::int32_t microBatch, std::int32_t step, Communicator &communicator);
    Result<void> kernel(Prepared &prepared, std::int32_t microBatch, std::int32_t step);
    Result<void> accumulate(const Prepared &prepared, std::int32_t microBatch);
    Result<void> copyPieces(const Prepared &prepared, std::int32_t microBatch);
    Result<void> sum(const Prepared &prepared, std::int32_t microBatch);
    Result<void> weigh(const Prepared &prepared, std::int32_t microBatch);
    Result<void> merge(const Prepared &prepared, std::int32_t microBatch);
    Result<void> valueSelect(const Prepared &prepared, std::int32_t microBatch);
    Result<void> collective(const Prepared &prepared, std::int32_t microBatch, Communicator &communicator);
    Result<void> message(const Prepared &prepared, std::int32_t microBatch, Communicator &communicator);
    Result<void> cast(const Prepared &prepared, std::int32_t microBatch);
    Result<void> checkNumbers(const Prepared &prepared) const;

    Result<std::byte *> acquire(std::int32_t buffer, std::int32_t microBatch);
    void release(std::int32_t buffer, std::int32_t microBatch);
    void take(std::int32_t from, std::int32_t to, std::int32_t microBatch);
    void account(std::int32_t buffer, std::int64_t sign);
    void recordMemory();
    std::int64_t sinceOrigin() const;
    bool diesIn(const Instruction &instruction, std::int32_t buffer) const;

    RunShared &m_shared;
    const ExecutionPlan &m_plan;
    const DeviceProgram &m_program;
    std::int32_t m_device;
    DeviceProgress &m_progress;
    float m_gradientFactor; ///< Undoes the loss scale, and makes a mean over an update's micro-batches.
    std::vector<Slot> m_slots;
    std::vector<MemoryBlock> m_blocks;
    std::vector<Prepared> m_setup;
    std::vector<std::vector<Prepared>> m_segments;
    std::array<std::int64_t, kMemoryKindCount> m_live{};
    std::int64_t m_liveTotal = 0;
    std::int64_t m_peak = 0;
    std::int64_t m_hostLive = 0;
    std::int64_t m_hostPeak = 0;
    std::map<OperatorId, std::int64_t> m_dropped{};
    std::set<std::pair<OperatorId, std::int32_t>>
        m_counted{}; ///< Parts of NonZeros with an instruction that counts.
    std::int64_t m_update = 0; ///< Updates made before the one that gradients at hand go into.
    Clock::time_point m_origin{};
    bool m_measure = false;
    std::vector<MeasuredSpan> m_spans;
    bool m_tellsSpans = false;
    std::mutex m_liveMutex{};
    std::vector<LiveSpan> m_liveSpans{}; ///< Guarded by m_liveMutex.
    MemoryCurve m_curve{};
};

} // namespace planloom
