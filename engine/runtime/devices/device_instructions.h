#pragma once

#include "engine/runtime/communication/collector.h"
#include "engine/runtime/devices/device_backend.h"
#include "engine/runtime/devices/host_values.h"
#include "engine/runtime/devices/memory_plan.h"
#include "engine/runtime/devices/prepared_kernel.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
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

/// An instruction with all that can be known about it before it runs. One thread at a time uses it: every run
/// of it is in the same queue.
struct PreparedInstruction {
    const Instruction *source = nullptr;
    PreparedKernel kernel{};
    std::vector<Collector::Claim> claims{};
};

/// One run of one instruction.
struct InstructionTurn {
    PreparedInstruction &prepared;
    const MemoryPlan &memory;
    std::span<const StepOperand> operands; ///< Inputs, then outputs.
    std::int32_t microBatch = 0;
    std::int32_t step = 0; ///< Of the run.
    EventId event = 0;
};

/// What each kind of instruction asks of a queue of its device.
class DeviceInstructions
{
public:
    /// A buffer of the program.
    struct Slot {
        std::int64_t elements = 0;
        std::size_t bytes = 0;
        DataType type{};
        Shape shape{};
        std::int32_t shiftDimension = -1; ///< Dimension of the box that moves with the micro-batch,
        std::int64_t shift = 0; ///< and by how much.
    };

    /// Devices must be made in ascending order (see `Collector::claimsOf`).
    DeviceInstructions(RunShared &shared, std::int32_t device);

    PreparedInstruction prepare(const Instruction &instruction);
    /// Does all that the instruction is, but for what it communicates. Nothing once the run has been stopped.
    Result<void> run(const InstructionTurn &turn, DeviceQueue &queue);
    /// What a collective's turn asks of the communicator. @param sequence  collectives of its group before it
    CollectiveCall collectiveCall(const InstructionTurn &turn, std::int64_t sequence) const;

    const BufferInfo &info(std::int32_t buffer) const
    {
        return m_program.buffers[static_cast<std::size_t>(buffer)];
    }
    const Slot &slot(std::int32_t buffer) const { return m_slots[static_cast<std::size_t>(buffer)]; }
    std::byte *addressOf(const MemoryPlan &memory, const StepOperand &operand) const;
    std::byte *input(const InstructionTurn &turn, std::size_t slot) const;
    std::byte *output(const InstructionTurn &turn, std::size_t slot) const;
    /// What NonZeros had no room for since the run began, by operator; of replicas, the first.
    const std::map<OperatorId, std::int64_t> &dropped() const { return m_dropped; }

private:
    using Turn = InstructionTurn;

    IndexMask boxOf(std::int32_t buffer, std::int32_t microBatch) const;
    OperandUse useOf(const Turn &turn, std::size_t output) const;
    bool isMadeElsewhere(const Turn &turn) const;
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

    RunShared &m_shared;
    const ExecutionPlan &m_plan;
    const DeviceProgram &m_program;
    std::int32_t m_device;
    float m_gradientFactor; ///< Undoes the loss scale, and makes a mean over an update's micro-batches.
    std::vector<Slot> m_slots{};
    std::map<OperatorId, std::int64_t> m_dropped{};
    /// Parts of NonZeros with an instruction that counts.
    std::set<std::pair<OperatorId, std::int32_t>> m_counted{};
};

} // namespace planloom
