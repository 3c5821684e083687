// Kernels: of the model, and of the optimizer.

#include "engine/graph/operators/weight_update.h"
#include "engine/interop/torch/program_writer.h"
#include "engine/interop/torch/python_text.h"
#include "engine/interop/torch/rank_numbers.h"
#include "engine/runtime/devices/prepared_kernel.h"

#include <algorithm>
#include <utility>

namespace planloom {

Result<void> ProgramWriter::kernel(const Instruction &instruction)
{
    PreparedKernel prepared = prepareKernel(m_plan, m_program, instruction, m_gradientFactor);
    KernelCall &call = prepared.call;
    std::byte here{};
    std::vector<std::string> inputs;
    std::vector<DataType> types;
    DataType widest = DataType::BFloat16;
    for (std::size_t i = 0; i < instruction.inputs.size(); ++i) {
        const std::int32_t in = instruction.inputs[i];
        if (in < 0) {
            inputs.emplace_back("None");
            continue;
        }
        call.inputs[i].data = &here; // only shapes are looked at
        inputs.push_back(read(in));
        if (isFloating(info(in).dataType) && sizeOf(info(in).dataType) >= sizeOf(widest))
            widest = info(in).dataType;
    }
    // Attention takes several types as they are: its log-sum-exps are wide.
    const bool mixed = m_plan.graph->at(instruction.op).kind != OperatorKind::Attention
        && std::any_of(instruction.inputs.begin(), instruction.inputs.end(), [&](std::int32_t in) {
               return in >= 0 && isFloating(info(in).dataType) && info(in).dataType != widest;
           });
    for (std::size_t i = 0; mixed && i < inputs.size(); ++i)
        if (const std::int32_t in = instruction.inputs[i];
            in >= 0 && isFloating(info(in).dataType) && info(in).dataType != widest)
            inputs[i] += ".to(" + pythonType(widest) + ")";
    for (std::size_t o = 0; o < instruction.outputs.size(); ++o) {
        const std::int32_t out = instruction.outputs[o];
        types.push_back(out < 0 ? DataType::Float32 : info(out).dataType);
        if (out >= 0)
            call.outputs[o].data = &here;
    }
    TRY(TorchText text, torchText(OperatorSlots(call, inputs, types)));
    if (batchCuts(m_plan) > 1 && moveToNextMicroBatch(instruction, call)) {
        TRY(const TorchText next, torchText(OperatorSlots(call, inputs, types)));
        followMicroBatches(text.all, next.all);
        for (std::size_t i = 0; i < text.each.size(); ++i)
            followMicroBatches(text.each[i], next.each[i]);
    }
    return assignKernel(instruction, text, widest);
}

bool ProgramWriter::moveToNextMicroBatch(const Instruction &instruction, KernelCall &call) const
{
    const bool units = m_plan.units.count > 1;
    bool moved = false;
    const auto move = [&](const BufferList &buffers, std::vector<Buffer> &to) {
        for (std::size_t i = 0; i < buffers.size(); ++i)
            if (buffers[i] >= 0 && info(buffers[i]).perMicroBatch) {
                const IndexMask next = boxOf(m_plan, info(buffers[i]), units ? 0 : 1, units ? 1 : 0);
                moved = moved || next != to[i].mask;
                to[i].mask = next;
            }
    };
    move(instruction.inputs, call.inputs);
    move(instruction.outputs, call.outputs);
    return moved;
}

void ProgramWriter::followMicroBatches(std::string &text, const std::string &next)
{
    if (text == next)
        return;
    std::string made;
    std::size_t at = 0;
    std::size_t other = 0;
    while (true) {
        const std::size_t begin = text.find('\1', at);
        const std::size_t begin2 = next.find('\1', other);
        made += text.substr(at, begin - at);
        if (begin == std::string::npos || begin2 == std::string::npos)
            break;
        const std::size_t end = text.find('\3', begin) + 1;
        const std::size_t end2 = next.find('\3', begin2) + 1;
        const std::string mark = text.substr(begin, end - begin);
        made += mark;
        if (const std::int64_t step = markedNumber(next.substr(begin2, end2 - begin2)) - markedNumber(mark);
            step != 0 && mark[1] == 'n')
            made += " + " + std::to_string(step) + " * m.number";
        at = end;
        other = end2;
    }
    text = std::move(made);
}

Result<void> ProgramWriter::assignKernel(
    const Instruction &instruction, const TorchText &text, DataType widest)
{
    const bool readsFloats = std::any_of(instruction.inputs.begin(), instruction.inputs.end(),
        [&](std::int32_t in) { return in >= 0 && isFloating(info(in).dataType); });
    const bool mixes = m_plan.graph->at(instruction.op).kind == OperatorKind::Attention;
    const auto isOther = [&](std::int32_t out) {
        return out >= 0 && readsFloats && !mixes && isFloating(info(out).dataType)
            && info(out).dataType != widest;
    };
    std::vector<std::string> values;
    BufferList outputs;
    for (std::size_t o = 0; o < instruction.outputs.size(); ++o) {
        const std::int32_t out = instruction.outputs[o];
        if (out >= 0) {
            const std::int32_t view = o < text.viewOf.size() ? text.viewOf[o] : -1;
            const std::int32_t from = view < 0 ? -1 : instruction.inputs[static_cast<std::size_t>(view)];
            memory(out).own = true;
            if (from >= 0 && !isOther(out))
                noteView(instruction, out, from,
                    std::count_if(text.viewOf.begin(), text.viewOf.end(), [&](auto each) {
                        return each == view;
                    }) == 1);
        }
        if (!text.all.empty()) {
            outputs.push_back(out);
        } else if (out >= 0) {
            outputs.push_back(out);
            values.push_back(isOther(out)
                    ? "(" + text.each[o] + ").to(" + pythonType(info(out).dataType) + ")"
                    : text.each[o]);
        }
    }
    if (text.all.empty() && values.size() != 1) {
        assignEach(instruction, values, outputs);
        return {};
    }
    std::string value = text.all.empty() ? values[0] : text.all;
    if (!text.all.empty()) {
        if (std::any_of(outputs.begin(), outputs.end(), isOther)) {
            std::vector<std::string> types;
            for (const std::int32_t out : outputs)
                types.push_back(out < 0 ? "None" : pythonType(info(out).dataType));
            value = "ops.cast(" + value + ", (" + joinedBy(types) + (types.size() == 1 ? ",))" : "))");
        }
        if (outputs.size() == 1)
            value += "[0]";
    }
    assign(instruction, value, outputs);
    return {};
}

Result<void> ProgramWriter::optimizer(const Instruction &instruction)
{
    const Operator &op = m_plan.graph->at(instruction.op);
    const Attributes &a = op.attributes;
    const std::string factor =
        m_gradientFactor == 1 ? "" : ", gradient_factor=" + pythonNumber(m_gradientFactor);
    if (op.kind == OperatorKind::SquareSum || op.kind == OperatorKind::ClipFactor) {
        const bool sum = op.kind == OperatorKind::SquareSum;
        assign(instruction,
            sum ? "ops.square_sum(" + read(instruction.inputs[0]) + factor + ")"
                : "ops.clip_factor(" + read(instruction.inputs[0]) + ", " + pythonNumber(a.real("clip_norm"))
                    + ")",
            instruction.outputs);
        return {};
    }
    std::vector<std::string> arguments{"m.parameter[" + pythonText(m_plan.graph->at(op.inputs[0]).name) + "]"
        + loadBox(info(instruction.inputs[0]))};
    BufferList outputs;
    const std::size_t slots = factorSlotOf(op.kind);
    for (std::size_t i = 0; i < std::min(slots, instruction.inputs.size()); ++i) {
        const std::int32_t in = instruction.inputs[i];
        arguments.push_back(in < 0 ? "None" : read(in));
        const std::size_t o = i == 0 ? 0 : i - 1; // output 0 is the weight, then come the states
        if (i == 1 || in < 0 || o >= instruction.outputs.size() || instruction.outputs[o] < 0)
            continue;
        if (instruction.outputs[o] != in) {
            if (!isLeft(instruction, in))
                arguments.back() += ".clone()";
            memory(instruction.outputs[o]).own = true;
            outputs.push_back(instruction.outputs[o]);
        }
    }
    const bool adam = op.kind == OperatorKind::AdamWStep;
    if (const auto slot = factorSlot(op);
        slot && *slot < instruction.inputs.size() && instruction.inputs[*slot] >= 0)
        arguments.push_back("clip=" + read(instruction.inputs[*slot]));
    arguments.push_back("lr=" + pythonNumber(a.real("learning_rate", 1e-3)));
    if (adam) {
        arguments.push_back("betas=(" + pythonNumber(a.real("beta1", 0.9)) + ", "
            + pythonNumber(a.real("beta2", 0.999)) + ")");
        arguments.push_back("eps=" + pythonNumber(a.real("epsilon", 1e-8)));
    } else if (a.real("momentum") != 0) {
        arguments.push_back("momentum=" + pythonNumber(a.real("momentum")));
    }
    arguments.push_back("weight_decay=" + pythonNumber(a.real("weight_decay", adam ? 0.01 : 0.0)) + factor);
    // In place all but what is given back somewhere else: mostly nothing, of weights in versions the weight.
    std::string value = callText(adam ? "ops.adamw" : "ops.sgd", arguments);
    const auto states = std::count_if(
        instruction.outputs.begin(), instruction.outputs.end(), [](std::int32_t out) { return out >= 0; });
    if (outputs.size() == 1 && states > 1)
        value += "[0]";
    else if (!outputs.empty() && outputs.size() != static_cast<std::size_t>(states))
        return Error{ErrorCode::NotSupported,
            "the update of " + m_plan.graph->at(op.inputs[0]).name + " cannot be written for PyTorch", {},
            {}};
    assign(instruction, value, outputs, false);
    return {};
}

} // namespace planloom
