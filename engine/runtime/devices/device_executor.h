#pragma once

#include "engine/base/result.h"
#include "engine/runtime/communication/collector.h"
#include "engine/runtime/devices/device_backend.h"
#include "engine/runtime/devices/host_values.h"
#include "engine/runtime/devices/memory_plan.h"
#include "engine/runtime/devices/prepared_kernel.h"
#include "engine/runtime/devices/shared_values.h"

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

namespace planloom {

/// What the devices of one run share. Outlives them.
struct RunShared {
    const ExecutionPlan &plan;
    const RunOptions &options;
    const HostValues &values;
    Collector &collector;
    const CheckpointState &begin; ///< Where training is before the first step.
    const OperatorLibraries &libraries; ///< What computes operators of files.
    const std::atomic<bool> &stopped; ///< Set once the run is to end early.
    std::function<void(Error)> fail; ///< Ends the run; the first error is kept. Thread-safe.
    /// By device and place: what the devices of this process have reserved.
    std::vector<std::array<std::byte *, 2>> arenas{};
};

/// When an instruction ran, in nanoseconds from the start of its step.
struct MeasuredSpan {
    std::int32_t segment = 0;
    std::int32_t instruction = 0;
    std::int32_t microBatch = 0;
    std::int64_t start = 0;
    std::int64_t duration = 0;
};

/// What a device took and did in the last step that was measured.
struct DeviceMeasure {
    std::vector<MeasuredSpan> spans{}; ///< In the order of the program.
    MemoryCurve memory{};
    Bytes peak{}; ///< Most bytes of buffers that live at once, in the order of the program.
    Bytes hostPeak{};
};

/// Issues one device's program to its backend. All memory is planned before the run; a step issues every
/// instruction at once, each with what it has to wait for, and the backend runs them.
class DeviceExecutor final : private TaskListener
{
public:
    using Clock = TaskListener::Clock;

    /// Reads the program once, so that running an instruction needs no search. Devices must be made in
    /// ascending order (see `Collector::claimsOf`).
    DeviceExecutor(RunShared &shared, std::int32_t device, DeviceProgress &progress,
        std::unique_ptr<DeviceBackend> backend);

    /// Lays its memory out. @return as `planMemory`
    Result<void> planMemory();
    /// How all its steps are laid out, once that is planned; null if they differ.
    const MemoryPlan *stepMemory() const { return m_phases.size() == 1 ? &m_phases.front().memory : nullptr; }
    std::int64_t alignment() const { return m_backend->alignment(); }
    /// Does its step as `step` says of this device, whose devices are those of the process. Before `reserve`.
    void share(SharedStep &step);
    /// What the device takes, once its memory is planned.
    std::int64_t arenaBytes(MemoryPlace place) const { return m_arenaBytes[static_cast<std::size_t>(place)]; }

    /// Reserves the memory that was planned. @return ResourceLimit
    Result<void> reserve();

    /// Issues the setup, which fills the persistent buffers.
    void issueSetup();
    /// Issues the schedule once.
    /// @param step     0-based
    /// @param origin   start of the step, common to all devices
    /// @param measure  keep spans and the memory curve
    void issueStep(std::int32_t step, Clock::time_point origin, bool measure);
    /// Issues that `take` is shown each of `pieces`, as it is before step `step`; in place of a step.
    void issueSave(std::int32_t step, const std::vector<SavedPiece> &pieces,
        const std::function<void(const SavedPiece &, const BufferInfo &, const std::byte *)> &take,
        TaskListener &listener);
    /// Waits for what was issued. Errors of kernels and collectives, with the instruction in `where`, went to
    /// `RunShared::fail`.
    void finish();

    /// What NonZeros of this device had no room for since the run began, by operator
    /// (engine/graph/operators/places.h); of replicas, the first. Not while a step runs.
    const std::map<OperatorId, std::int64_t> &dropped() const { return m_dropped; }

    DeviceMeasure measure() const;
    /// Tells spans as they end from now on, see `takeLive`.
    void setLive(bool live) { m_tellsSpans = live; }
    /// What has ended since the last call. May be called by another thread while the device runs.
    std::vector<LiveSpan> takeLive();

private:
    /// An instruction with all that can be known about it before it runs. One thread at a time uses it: every
    /// run of it is in the same queue.
    struct Prepared {
        const Instruction *source = nullptr;
        PreparedKernel kernel{};
        std::vector<Collector::Claim> claims{};
    };

    /// A buffer of the program.
    struct Slot {
        std::int64_t elements = 0;
        std::size_t bytes = 0;
        DataType type{};
        Shape shape{};
        std::int32_t shiftDimension = -1; ///< Dimension of the box that moves with the micro-batch,
        std::int64_t shift = 0; ///< and by how much.
    };

    /// A step whose weights' versions lie as they do after so many updates.
    struct Phase {
        MemoryPlan memory{};
        StepWaits waits{};
        std::vector<std::vector<std::int32_t>> ends{}; ///< `endingBlocks`; may be empty.
    };

    /// One run of one instruction.
    struct Turn {
        Prepared &prepared;
        const MemoryPlan &memory;
        std::span<const StepOperand> operands; ///< Inputs, then outputs.
        std::int32_t microBatch = 0;
        std::int32_t step = 0; ///< Of the run.
        EventId event = 0;
    };

    Prepared prepare(const Instruction &instruction);
    Result<void> planSetup();
    void layArenas();

    const BufferInfo &info(std::int32_t buffer) const
    {
        return m_program.buffers[static_cast<std::size_t>(buffer)];
    }
    const Slot &slot(std::int32_t buffer) const { return m_slots[static_cast<std::size_t>(buffer)]; }
    IndexMask boxOf(std::int32_t buffer, std::int32_t microBatch) const;
    std::byte *addressOf(const MemoryPlan &memory, const StepOperand &operand) const;
    std::byte *input(const Turn &turn, std::size_t slot) const;
    std::byte *output(const Turn &turn, std::size_t slot) const;
    OperandUse useOf(const Turn &turn, std::size_t output) const;
    bool isMadeElsewhere(const Turn &turn) const;
    Prepared &preparedAt(const StepInstruction &at);

    void issue(const Turn &turn, std::vector<EventId> waits, std::vector<DeviceEvent> waitsElsewhere,
        std::span<const std::int32_t> ends = {});
    bool isCollective(const Instruction &instruction) const;
    bool isOptimizer(const Instruction &instruction) const;
    CollectiveCall collectiveCall(const Turn &turn);
    Result<void> run(const Turn &turn, DeviceQueue &queue);
    Result<void> execute(const Turn &turn, DeviceQueue &queue);
    Result<void> kernel(const Turn &turn, DeviceQueue &queue);
    Result<void> accumulate(const Turn &turn, DeviceQueue &queue);
    Result<void> copyPieces(const Turn &turn, DeviceQueue &queue);
    Result<void> sum(const Turn &turn, DeviceQueue &queue);
    Result<void> weigh(const Turn &turn, DeviceQueue &queue);
    Result<void> merge(const Turn &turn, DeviceQueue &queue);
    Result<void> cast(const Turn &turn, DeviceQueue &queue);
    Result<void> moveWhole(const Turn &turn, DeviceQueue &queue);
    Result<void> checkNumbers(const PreparedKernel &prepared, DeviceQueue &queue) const;
    Error placed(Error error, const Instruction &instruction) const;

    void finished(
        EventId event, const Result<void> &outcome, Clock::time_point start, Clock::time_point end) override;

    RunShared &m_shared;
    const ExecutionPlan &m_plan;
    const DeviceProgram &m_program;
    std::int32_t m_device;
    DeviceProgress &m_progress;
    std::unique_ptr<DeviceBackend> m_backend;
    float m_gradientFactor; ///< Undoes the loss scale, and makes a mean over an update's micro-batches.
    std::vector<Slot> m_slots;
    std::vector<Prepared> m_setup;
    std::vector<std::vector<Prepared>> m_segments;
    std::vector<Phase> m_phases{}; ///< That steps go through in turn.
    MemoryPlan m_setupMemory{}; ///< The setup's, in the blocks of the first phase.
    std::vector<std::vector<DeviceEvent>> m_setupWaits{}; ///< By its instruction; may be empty.
    std::array<std::int64_t, 2> m_arenaBytes{};
    std::array<std::int64_t, 2> m_peak{};
    std::map<std::int32_t, std::int64_t> m_sequences{}; ///< By group: collectives issued so far.
    std::map<OperatorId, std::int64_t> m_dropped{};
    std::set<std::pair<OperatorId, std::int32_t>>
        m_counted{}; ///< Parts of NonZeros with an instruction that counts.

    // Of the step that runs.
    std::int32_t m_step = -1; ///< -1: the setup.
    Clock::time_point m_origin{};
    bool m_measure = false;
    std::vector<MeasuredSpan> m_spans{};
    bool m_tellsSpans = false;
    std::mutex m_mutex{}; ///< Of what follows.
    std::vector<bool> m_done{}; ///< By event.
    std::size_t m_doneUpTo = 0; ///< All events before it are done.
    std::int64_t m_doneBefore = 0; ///< Instructions of earlier steps.
    std::vector<LiveSpan> m_liveSpans{};
};

} // namespace planloom
