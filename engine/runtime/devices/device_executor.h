#pragma once

#include "engine/runtime/devices/device_instructions.h"
#include "engine/runtime/devices/shared_values.h"
#include "engine/runtime/devices/step_log.h"

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

namespace planloom {

/// What a device took and did in the last step that was measured.
struct DeviceMeasure {
    std::vector<LiveSpan> spans{}; ///< In the order of the program.
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
    const std::map<OperatorId, std::int64_t> &dropped() const { return m_instructions.dropped(); }

    DeviceMeasure measure() const;
    /// Tells spans as they end from now on, see `takeLive`.
    void setLive(bool live) { m_log.setLive(live); }
    /// What has ended since the last call. May be called by another thread while the device runs.
    std::vector<LiveSpan> takeLive() { return m_log.takeLive(); }

private:
    /// A step whose weights' versions lie as they do after so many updates.
    struct Phase {
        MemoryPlan memory{};
        StepWaits waits{};
        std::vector<std::vector<std::int32_t>> ends{}; ///< `endingBlocks`; may be empty.
    };

    Result<void> planSetup();
    void layArenas();
    const Phase &phaseOf(std::int32_t step) const
    {
        return m_phases[static_cast<std::size_t>(step) % m_phases.size()];
    }
    PreparedInstruction &preparedAt(const StepInstruction &at);
    void issue(const InstructionTurn &turn, std::vector<EventId> waits,
        std::vector<DeviceEvent> waitsElsewhere, std::span<const std::int32_t> ends = {});
    Error placed(Error error, const Instruction &instruction) const;
    void finished(
        EventId event, const Result<void> &outcome, Clock::time_point start, Clock::time_point end) override;

    RunShared &m_shared;
    const ExecutionPlan &m_plan;
    const DeviceProgram &m_program;
    std::int32_t m_device;
    std::unique_ptr<DeviceBackend> m_backend;
    DeviceInstructions m_instructions;
    std::vector<PreparedInstruction> m_setup{};
    std::vector<std::vector<PreparedInstruction>> m_segments{};
    std::vector<Phase> m_phases{}; ///< That steps go through in turn.
    std::int32_t m_cycle; ///< Steps until all devices of the plan are through theirs.
    MemoryPlan m_setupMemory{}; ///< The setup's, in the blocks of the first phase.
    std::vector<std::vector<DeviceEvent>> m_setupWaits{}; ///< By its instruction; may be empty.
    std::array<std::int64_t, 2> m_arenaBytes{};
    std::array<std::int64_t, 2> m_peak{};
    std::map<std::int32_t, std::int64_t> m_sequences{}; ///< By group: collectives issued so far.
    std::int32_t m_step = -1; ///< That runs; -1: the setup.
    StepLog m_log;
};

} // namespace planloom
