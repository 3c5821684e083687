// What is loaded, cut, put together, added up and passed on.

#include "engine/interop/torch/program_writer.h"
#include "engine/interop/torch/python_text.h"
#include "engine/interop/torch/rank_numbers.h"

#include <algorithm>
#include <utility>

namespace planloom {

Result<void> ProgramWriter::load(const Instruction &instruction)
{
    std::vector<std::string> values;
    BufferList outputs;
    for (const std::int32_t out : instruction.outputs) {
        const BufferInfo &buffer = info(out);
        const bool input = tensor(out).role == TensorRole::Input;
        const std::string from = !input ? "run.stored" : buffer.perMicroBatch ? "m.inputs" : "run.inputs";
        std::string value = from + "[" + pythonText(tensor(out).name) + "]" + loadBox(buffer);
        if (buffer.dataType != tensor(out).type.dataType)
            value += ".to(" + pythonType(buffer.dataType) + ")";
        if (buffer.place == MemoryPlace::Host)
            value = "run.copy.kept_on_host(" + value + ")";
        values.push_back(value);
        outputs.push_back(out);
        memory(out).own = !input;
    }
    if (outputs.size() == 1 && m_names.holderOf(outputs[0]) == BufferHolder::Weights) {
        const std::size_t begin = m_text.size();
        const BufferInfo &weight = info(outputs[0]);
        const std::string &name = m_names.nameOf(outputs[0] - weight.staleness);
        m_text += pythonLines(weight.versions > 1
                ? "run.keep_version(" + pythonText(name) + ", " + std::to_string(weight.staleness) + ", "
                    + std::to_string(weight.versions) + ", " + values[0] + ")"
                : "w." + name + " = " + values[0],
            layoutOf(outputs[0]));
        noteLine(begin);
        return {};
    }
    assignEach(instruction, values, outputs);
    return {};
}

std::string ProgramWriter::loadBox(const BufferInfo &buffer) const
{
    const Shape &whole = m_plan.graph->at(buffer.tensor).type.shape;
    if (whole.empty())
        return "[()]";
    std::string box = pythonBox(buffer.index, wholeMask(whole));
    if (buffer.share != UnitShare::Shard)
        return box.empty() ? "[:]" : box;
    std::vector<std::string> ranges;
    for (std::size_t d = 0; d < whole.size(); ++d) {
        const Range &range = buffer.index.ranges[d];
        if (static_cast<std::int32_t>(d) == buffer.shardDimension)
            ranges.push_back("run.shard(" + rankNumber("part", range.begin) + ", "
                + std::to_string(range.size()) + ", " + rankNumber("part", buffer.shardEnd) + ")");
        else if (range.size() == whole[d])
            ranges.emplace_back(":");
        else
            ranges.push_back(rankNumber("part", range.begin) + ":" + rankNumber("part", range.end));
    }
    return "[" + joinedBy(ranges) + "]";
}

void ProgramWriter::store(const Instruction &instruction)
{
    std::vector<std::string> calls;
    for (const std::int32_t in : instruction.inputs)
        calls.push_back("run.store(" + pythonText(tensor(in).name) + ", " + read(in) + ")");
    assign(instruction, joinedBy(calls), {});
}

void ProgramWriter::accumulate(const Instruction &instruction)
{
    const std::int32_t in = instruction.inputs[0];
    const std::int32_t out = instruction.outputs[0];
    const std::string value = read(in);
    const std::string whole = m_names.expressionOf(out); // "s.d_wte_weight"
    const bool takes = isLeft(instruction, in) && info(in).dataType == info(out).dataType;
    std::string text = takes ? "accumulate_(" : "accumulate(";
    text += whole.substr(0, 1) + ", " + pythonText(m_names.nameOf(out)) + ", " + value;
    if (info(in).dataType != info(out).dataType)
        text += ", " + pythonType(info(out).dataType);
    assign(instruction, text + ")", {});
}

std::string ProgramWriter::subscript(std::int32_t inner, std::int32_t outer) const
{
    const BufferInfo &in = info(inner);
    const BufferInfo &out = info(outer);
    if (in.share == UnitShare::Shard && out.share != UnitShare::Shard) {
        std::vector<std::string> shards;
        for (std::size_t i = 0; i < in.index.ranges.size(); ++i) {
            const Range &own = in.index.ranges[i];
            const Range &all = out.index.ranges[i];
            if (static_cast<std::int32_t>(i) == in.shardDimension)
                shards.push_back("run.shard(" + rankNumber("part", own.begin - all.begin) + ", "
                    + std::to_string(own.size()) + ", " + rankNumber("part", in.shardEnd - all.begin) + ")");
            else if (own.size() == all.size())
                shards.emplace_back(":");
            else
                shards.push_back(rankNumber("part", own.begin - all.begin) + ":"
                    + rankNumber("part", own.end - all.begin));
        }
        return "[" + joinedBy(shards) + "]";
    }
    std::string box = pythonBox(in.index, out.index);
    const std::int32_t dimension = m_plan.batch.tensorDimension.empty()
        ? -1
        : m_plan.batch.tensorDimension[static_cast<std::size_t>(in.tensor.index)];
    if (dimension < 0 || in.perMicroBatch == out.perMicroBatch || !in.perMicroBatch || batchCuts(m_plan) == 1)
        return box;
    const auto d = static_cast<std::size_t>(dimension);
    const std::int64_t step = tensor(inner).type.shape[d] / batchCuts(m_plan);
    std::vector<std::string> ranges;
    for (std::size_t i = 0; i < in.index.ranges.size(); ++i) {
        const Range &own = in.index.ranges[i];
        const Range &all = out.index.ranges[i];
        if (i == d)
            ranges.push_back("m.rows(" + rankNumber("part", own.begin - all.begin) + ", "
                + std::to_string(own.size()) + ", " + std::to_string(step) + ")");
        else if (own.size() == all.size())
            ranges.emplace_back(":");
        else
            ranges.push_back(
                rankNumber("part", own.begin - all.begin) + ":" + rankNumber("part", own.end - all.begin));
    }
    return "[" + joinedBy(ranges) + "]";
}

Result<void> ProgramWriter::select(const Instruction &instruction)
{
    const std::int32_t in = instruction.inputs[0];
    const std::int32_t out = instruction.outputs[0];
    std::string value = read(in) + subscript(out, in);
    const bool whole = value == m_names.expressionOf(in);
    if (instruction.kind == InstructionKind::ValueSelect) {
        memory(out).own = true;
        value = "ops.value_part(" + value + ", " + rankNumber("summand", info(out).valuePart.index) + ")";
    } else if (whole) {
        noteView(instruction, out, in, true);
    } else {
        memory(out).own = true;
        value += ".clone()";
    }
    assign(instruction, value, instruction.outputs);
    return {};
}

Result<void> ProgramWriter::concat(const Instruction &instruction)
{
    const std::int32_t out = instruction.outputs[0];
    std::vector<std::pair<IndexMask, std::string>> pieces;
    for (const std::int32_t in : instruction.inputs)
        pieces.emplace_back(info(in).index, read(in));
    memory(out).own = true;
    // Pieces that differ along one dimension lie behind one another there.
    const IndexMask &whole = info(out).index;
    std::int32_t along = -1;
    bool several = false;
    for (std::size_t d = 0; d < whole.ranges.size(); ++d) {
        const bool cut = std::any_of(pieces.begin(), pieces.end(),
            [&](const auto &piece) { return piece.first.ranges[d] != whole.ranges[d]; });
        several = several || (cut && along >= 0);
        along = cut ? static_cast<std::int32_t>(d) : along;
    }
    if (info(out).perMicroBatch != info(instruction.inputs[0]).perMicroBatch && batchCuts(m_plan) > 1)
        return Error{ErrorCode::NotSupported,
            "pieces of " + tensor(out).name
                + " that micro-batches make cannot be put together in PyTorch yet",
            {}, {}};
    std::vector<std::string> items;
    if (!several && along >= 0) {
        const auto d = static_cast<std::size_t>(along);
        std::stable_sort(pieces.begin(), pieces.end(),
            [d](const auto &a, const auto &b) { return a.first.ranges[d].begin < b.first.ranges[d].begin; });
        for (const auto &[box, text] : pieces)
            items.push_back(text);
        assign(instruction,
            "torch.cat((" + joinedBy(items) + (items.size() == 1 ? ",), " : "), ") + std::to_string(along)
                + ")",
            instruction.outputs);
        return {};
    }
    for (const auto &[box, text] : pieces) {
        std::vector<std::string> begins;
        for (std::size_t d = 0; d < box.ranges.size(); ++d)
            begins.push_back(rankNumber("part", box.ranges[d].begin - whole.ranges[d].begin));
        items.push_back("(" + text + ", (" + joinedBy(begins) + (begins.size() == 1 ? ",))" : "))"));
    }
    assign(instruction, "ops.assembled(" + pythonTuple(shapeOf(whole)) + ", " + joinedBy(items) + ")",
        instruction.outputs);
    return {};
}

void ProgramWriter::combine(const Instruction &instruction)
{
    std::vector<std::string> items;
    for (const std::int32_t in : instruction.inputs)
        items.push_back(read(in));
    for (const std::int32_t out : instruction.outputs)
        memory(out).own = true;
    if (instruction.kind == InstructionKind::Weigh)
        return assign(instruction, callText("ops.weigh", items), instruction.outputs);
    if (instruction.kind == InstructionKind::Merge)
        return assign(instruction, callText("ops.merge", items), instruction.outputs);
    if (instruction.combination != Combination::Sum)
        return assign(instruction,
            "ops.combined((" + joinedBy(items) + ",)" + combinationOption(instruction.combination) + ")",
            instruction.outputs);
    if (items.size() == 1)
        noteView(instruction, instruction.outputs[0], instruction.inputs[0], true);
    assign(instruction, joinedBy(items, " + "), instruction.outputs);
}

void ProgramWriter::passOn(const Instruction &instruction)
{
    const std::int32_t in = instruction.inputs[0];
    const std::int32_t out = instruction.outputs[0];
    std::string value = read(in);
    if (info(out).persistent) {
        if (memory(out).arriving)
            (void)read(out); // written over only once it is there
    } else if (info(in).dataType != info(out).dataType) {
        value += ".to(" + pythonType(info(out).dataType) + ")";
        memory(out).own = true;
    } else {
        noteView(instruction, out, in, true);
    }
    if (info(out).persistent
        && memory(out).arriving) { // not to be called by `assign`, which would take its place
        const std::size_t begin = m_text.size();
        m_text += pythonLines(m_names.expressionOf(out) + ".copy_(" + value + ")", layoutOf(out));
        noteLine(begin);
        if (diesIn(instruction, in)) {
            m_text += "    del " + m_names.expressionOf(in) + "\n";
            m_names.bury(in);
        }
        return;
    }
    assign(instruction, value, instruction.outputs);
}

} // namespace planloom
