#pragma once

#include "engine/base/ids.h"
#include "engine/verify/content.h"

#include <cstdint>
#include <string>
#include <vector>

namespace planloom {

/// One device that carries its program out on masks: how far it is, and what its buffers hold.
///
/// Members that check return why the device may not do what it is at; empty if it may.
class DeviceRun
{
public:
    DeviceRun(const ExecutionPlan &plan, const Specification &specification, std::int32_t device);

    /// Loads what persists, and goes to the first instruction.
    std::string setUp();

    /// The instruction that the device is at; null at the end of its schedule.
    const Instruction *current() const;
    std::int32_t segment() const { return entry().segment; }
    std::int32_t microBatch() const { return entry().microBatch; }
    std::int32_t instruction() const { return static_cast<std::int32_t>(m_instruction); }

    /// What holds before an instruction: its inputs are there, its outputs are free.
    std::string begin() const;
    /// The instruction's inputs and outputs.
    Side side() const { return sideOf(*current()); }
    /// False only the first time that the instruction is asked about with these contents, for this update.
    bool isKnown();
    /// What checks of an instruction depend on beside itself: contents, and which update it is for.
    std::int32_t epoch() const { return m_epoch * m_plan.updates + updateAt(); }
    /// What an instruction that no other device takes part in does to the contents of buffers.
    std::string apply();
    /// The buffer holds what an update made, not what the step's operators were to read.
    bool isUpdated(std::int32_t buffer) const { return updatesOf(buffer) == updateAt() + 1; }
    const BufferInfo &info(std::int32_t buffer) const { return m_program.buffers[at(buffer)]; }
    /// What an instruction leaves behind: outputs alive, deaths dead. Goes to the next one.
    std::string finish();

    /// That everything was updated, and nothing is left of the micro-batches.
    std::string checkEnd() const;

private:
    /// Life of one instance of a buffer.
    enum class Life : std::uint8_t { Unwritten, Alive, Dead };

    struct BufferState {
        std::vector<Life> life{}; ///< One instance, or one for every micro-batch.
        std::vector<std::int64_t> missing{}; ///< Per instance of an accumulator: contributions still to come.
        std::vector<bool> added{}; ///< Of an accumulator: [summand position x micro-batch].
        /// How many of the step's updates what it holds has behind it; below 0 where it is older than the
        /// begin of the step.
        std::int32_t updates = 0;
        std::int32_t madeIn = 0; ///< Of a buffer of the step: the update it was written for last.
    };

    const ScheduleEntry &entry() const { return m_program.schedule[m_entry]; }
    std::size_t instanceOf(std::int32_t buffer) const
    {
        return info(buffer).perMicroBatch ? at(microBatch()) : 0;
    }
    std::string nameOfBuffer(std::int32_t buffer) const; ///< "'x'", its tensor.
    /// The update that the segment at hand belongs to, or its micro-batch adds to.
    std::int32_t updateAt() const;
    std::int32_t updatesOf(std::int32_t buffer) const
    {
        return m_buffers[at(bufferOfVersion(info(buffer), buffer, updateAt()))].updates;
    }
    bool isOfStep(std::int32_t buffer) const;
    Side sideOf(const Instruction &instruction) const;
    Content contentOf(const Instruction &instruction, std::int32_t buffer, bool written) const;
    std::string checkReadable(std::int32_t buffer) const;
    std::string load(const Instruction &instruction);
    std::string accumulate();
    /// `buffer` becomes what an optimizer has made of it.
    std::string update(std::int32_t buffer);
    void goOn();

    const ExecutionPlan &m_plan;
    const Specification &m_specification;
    const DeviceProgram &m_program;
    std::int32_t m_device;
    std::vector<BufferState> m_buffers{};
    /// Per segment and instruction: epoch of its last check.
    std::vector<std::vector<std::int32_t>> m_checkedAt{};
    std::int32_t m_epoch = 1; ///< Grows whenever a persistent buffer changes its tensor.
    std::size_t m_entry = 0; ///< Position in the schedule.
    std::size_t m_instruction = 0;
};

} // namespace planloom
