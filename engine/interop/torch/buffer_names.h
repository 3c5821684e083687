#pragma once

#include "engine/lowering/program/execution_plan.h"

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace planloom {

/// A run of instructions of a segment that no order cuts: one function of the module.
struct ProgramBlock {
    std::int32_t segment = 0;
    std::int32_t begin = 0;
    std::int32_t end = 0;
    std::string name{}; ///< "forward_stage1"
    std::string words{}; ///< "The forward pass of stage 1, of one micro-batch."
};

/// The blocks of a program, in the order of its segments, with names of their own.
std::vector<ProgramBlock> blocksOf(const DeviceProgram &program);
/// Of which blocks, in their order, each entry of the schedule consists.
std::vector<std::pair<std::int32_t, std::int32_t>> blockRuns(
    const DeviceProgram &program, const std::vector<ProgramBlock> &blocks); ///< (block, micro-batch)

/// Where the code keeps a buffer.
enum class BufferHolder : std::uint8_t {
    Weights, ///< "w.": across steps.
    Sums, ///< "s.": for a step.
    MicroBatch, ///< "m.": from one block to another.
    Local, ///< In one run of one block.
};

/// What each buffer of a program is called. Values that stay inside a block are called as people call them
/// there, and share their names with those that are no more; all others have one name each.
class BufferNames
{
public:
    BufferNames(const ExecutionPlan &plan, std::int32_t device, const std::vector<ProgramBlock> &blocks);

    BufferHolder holderOf(std::int32_t buffer) const { return m_holders[static_cast<std::size_t>(buffer)]; }
    /// "w.h_0_ln_1_weight", "c_attn"; of a local one, as it is called now; of a weight that is kept in
    /// versions, the one that is as old: "w.h_0_ln_1_weight.of(m, 1)".
    std::string expressionOf(std::int32_t buffer) const;
    /// Without its holder.
    const std::string &nameOf(std::int32_t buffer) const { return m_names[static_cast<std::size_t>(buffer)]; }

    void beginBlock();
    /// A local value comes to be, in the scope of `op`.
    void bear(std::int32_t buffer, OperatorId op);
    void bury(std::int32_t buffer);

private:
    std::string longName(std::int32_t buffer) const;

    const ExecutionPlan &m_plan;
    const DeviceProgram &m_program;
    std::vector<BufferHolder> m_holders{};
    std::vector<std::string> m_names{};
    std::set<std::string> m_live{}; ///< Names of local values that are there.
};

} // namespace planloom
