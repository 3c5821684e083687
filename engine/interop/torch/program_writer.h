#pragma once

// Private to the room: how the text of a program comes about.

#include "engine/interop/torch/buffer_names.h"
#include "engine/interop/torch/operator_text.h"
#include "engine/interop/torch/program_text.h"

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace planloom {

/// Writes the program of one device, block by block and instruction by instruction.
class ProgramWriter
{
public:
    ProgramWriter(const ProgramContext &context, std::int32_t device);
    Result<ProgramText> run();

private:
    /// Where a buffer's memory stands, for what may be changed in place.
    struct Memory {
        bool own = true; ///< Made by what wrote it; no other buffer lies there.
        bool arriving = false; ///< Made on another queue than compute: to be waited for.
    };

    const BufferInfo &info(std::int32_t buffer) const
    {
        return m_program.buffers[static_cast<std::size_t>(buffer)];
    }
    Memory &memory(std::int32_t buffer) { return m_memory[static_cast<std::size_t>(buffer)]; }
    const Tensor &tensor(std::int32_t buffer) const { return m_plan.graph->at(info(buffer).tensor); }

    void findArriving();

    // --- functions

    Result<void> setup();
    Result<void> block(const ProgramBlock &block);
    /// The instruction at hand is the first statement of the text from `begin` on.
    void noteLine(std::size_t begin);
    void function(const std::string &name, const std::string &words, const std::string &body);
    void schedule();

    // --- instructions

    Result<void> instruction(const Instruction &instruction);
    void scopeComment(const Instruction &instruction);

    /// The expression of what the compute queue reads, once it is there.
    std::string read(std::int32_t buffer);
    bool diesIn(const Instruction &instruction, std::int32_t buffer) const;

    /// It dies here, and no other buffer lies where it does: what is made may take its memory.
    bool isLeft(const Instruction &instruction, std::int32_t buffer);

    /// `output` may lie where `input` does.
    void noteView(const Instruction &instruction, std::int32_t output, std::int32_t input, bool alone);

    /// The statement of an instruction: what it makes, and then what is needed no more. Outputs by slot; an
    /// absent one is called `_`, if it is not the only one.
    void assign(const Instruction &instruction, const std::string &value, const BufferList &outputs,
        bool comments = true);
    /// The same where each output has an expression of its own, and a line.
    void assignEach(
        const Instruction &instruction, const std::vector<std::string> &values, const BufferList &outputs);
    std::vector<std::string> release(const Instruction &instruction, const BufferList &outputs);
    std::string target(const Instruction &instruction, std::int32_t output);
    void write(const std::string &target, const std::string &value, std::int32_t output, bool comments);
    void finish(const Instruction &instruction, std::vector<std::string> dying,
        const std::vector<std::string> &targets, const BufferList &outputs);

    // --- what is loaded and stored

    Result<void> load(const Instruction &instruction);
    std::string loadBox(const BufferInfo &buffer) const;
    void store(const Instruction &instruction);

    // --- kernels

    Result<void> kernel(const Instruction &instruction);

    /// Gives the call the boxes of the next micro-batch, of all scale units. @return whether some differ
    bool moveToNextMicroBatch(const Instruction &instruction, KernelCall &call) const;

    /// Numbers that are others in the next micro-batch become those of any.
    static void followMicroBatches(std::string &text, const std::string &next);
    Result<void> assignKernel(const Instruction &instruction, const TorchText &text, DataType widest);
    Result<void> optimizer(const Instruction &instruction);

    // --- pieces and summands

    void accumulate(const Instruction &instruction);

    /// The subscript of `inner` in `outer`, of every micro-batch. @return nothing where it moves with it, but
    /// not along one dimension
    std::string subscript(std::int32_t inner, std::int32_t outer) const;
    Result<void> select(const Instruction &instruction);
    Result<void> concat(const Instruction &instruction);
    void combine(const Instruction &instruction);

    /// Update and Cast.
    void passOn(const Instruction &instruction);

    // --- other queues

    std::string queueOf(const Instruction &instruction) const;
    std::string groupOf(const Instruction &instruction) const;

    /// Where a persistent buffer is written, in its own memory.
    std::string into(std::int32_t out);
    Result<void> collective(const Instruction &instruction);

    /// ", sizes=.." where members' parts are not alike.
    std::string sizes(const Instruction &instruction) const;
    void message(const Instruction &instruction);
    void hostCopy(const Instruction &instruction);

    // --- comments

    /// "[batch 2/8, sequence 64, hidden 768] partial": what of its pTensor a buffer is.
    std::string layoutOf(std::int32_t buffer) const;

    const ProgramContext &m_context;
    const ExecutionPlan &m_plan;
    std::int32_t m_device;
    const DeviceProgram &m_program;
    std::vector<ProgramBlock> m_blocks;
    BufferNames m_names;
    double m_gradientFactor;
    ProgramText m_made{};
    std::string m_text{};
    std::vector<Memory> m_memory; ///< By buffer.
    std::set<std::int32_t> m_there{}; ///< Buffers that this block has waited for.
    std::vector<std::int32_t> m_lines{}; ///< Of the block at hand: by instruction.
    std::int32_t m_segment = 0;
    std::int32_t m_index = 0; ///< Of the instruction in its segment.
    ScopeId m_scope{}; ///< Of the last comment.
    std::string m_behind{}; ///< Of the communication at hand: the rows that it follows from.
};

/// ", op=.." where summands are not summed.
std::string combinationOption(Combination combination);

} // namespace planloom
