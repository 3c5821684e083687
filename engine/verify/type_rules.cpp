#include "engine/verify/type_rules.h"

namespace planloom {

namespace {

std::string quotedName(const ExecutionPlan &plan, TensorId tensor)
{
    return "'" + plan.graph->at(tensor).name + "'";
}

bool isWeightGradientOf(const ExecutionPlan &plan, TensorId tensor)
{
    const Tensor &info = plan.graph->at(tensor);
    return info.role == TensorRole::Gradient && info.of && plan.graph->at(info.of).role == TensorRole::Weight;
}

std::string typesOfKernel(const ExecutionPlan &plan, const StorageTypes &types, const Side &side)
{
    const OperatorId id = side.instruction->op;
    const Operator &op = plan.graph->at(id);
    const auto wrong = [&](const char *does, const Content &content, DataType expected) {
        return op.name + " " + does + " " + quotedName(plan, content.tensor) + " in " + nameOf(expected)
            + ", its buffer is " + nameOf(content.dataType);
    };
    for (std::size_t slot = 0; slot < side.inputs.size(); ++slot)
        if (side.inputs[slot].box && side.inputs[slot].dataType != types.read(id, slot))
            return wrong("reads", side.inputs[slot], types.read(id, slot));
    for (std::size_t slot = 0; slot < side.outputs.size(); ++slot)
        if (side.outputs[slot].box && side.outputs[slot].dataType != types.made(id, slot))
            return wrong("makes", side.outputs[slot], types.made(id, slot));
    return {};
}

/// A cast must start from what was made, or from a sum in its own type, never from a copy that has lost bits;
/// and must end in a type that somebody asks for.
std::string typesOfCast(const ExecutionPlan &plan, const Specification &specification, const Content &input,
    const Content &output)
{
    const StorageTypes &types = specification.types();
    const TensorId tensor = input.tensor;
    const std::string what = std::string("cast of ") + quotedName(plan, tensor) + " from "
        + nameOf(input.dataType) + " to " + nameOf(output.dataType);
    if (input.dataType == output.dataType)
        return what + " changes nothing";
    const DataType kept = types.accumulated(tensor);
    const DataType sent = types.reduced(tensor);
    if (!types.isMade(tensor, input.dataType) && input.dataType != kept && input.dataType != sent)
        return what + " starts from a copy";
    // A value that was made wider than it is kept or sent comes back only where that is its way.
    const bool lost = input.dataType != kept && input.dataType != sent && output.dataType != kept;
    const TensorId old = specification.at(tensor).replaced;
    const bool asked = types.isRead(tensor, output.dataType) || output.dataType == kept
        || output.dataType == sent || (old && types.isRead(old, output.dataType));
    if (lost || !asked)
        return what + " serves nobody";
    return {};
}

} // namespace

std::string checkBufferTypes(const ExecutionPlan &plan, const Specification &specification, const Side &side)
{
    const StorageTypes &types = specification.types();
    const Instruction &instruction = *side.instruction;
    const char *name = nameOf(instruction.kind);
    const auto mismatch = [&](const Content &input, const Content &output) {
        return std::string(name) + " turns " + quotedName(plan, input.tensor) + " of type "
            + nameOf(input.dataType) + " into " + nameOf(output.dataType);
    };
    switch (instruction.kind) {
    case InstructionKind::Kernel:
        return typesOfKernel(plan, types, side);
    case InstructionKind::Load: {
        const Content &output = side.outputs[0];
        if (!types.isRead(output.tensor, output.dataType) && output.dataType != types.carried(output.tensor))
            return "nobody reads " + quotedName(plan, output.tensor) + " in " + nameOf(output.dataType);
        return {};
    }
    case InstructionKind::Store: {
        const Content &input = side.inputs[0];
        if (input.dataType != types.accumulated(input.tensor))
            return quotedName(plan, input.tensor) + " is stored in " + nameOf(input.dataType) + ", not in "
                + nameOf(types.accumulated(input.tensor));
        return {};
    }
    case InstructionKind::Cast:
        return typesOfCast(plan, specification, side.inputs[0], side.outputs[0]);
    case InstructionKind::Accumulate: {
        const Content &input = side.inputs[0];
        const Content &output = side.outputs[0];
        if (output.dataType != types.accumulated(output.tensor))
            return quotedName(plan, output.tensor) + " adds up in " + nameOf(output.dataType) + ", not in "
                + nameOf(types.accumulated(output.tensor));
        if (input.dataType != output.dataType && sizeOf(input.dataType) >= sizeOf(output.dataType))
            return mismatch(input, output);
        return {};
    }
    case InstructionKind::Weigh: {
        const Content &part = side.inputs[0];
        if (part.dataType != side.outputs[0].dataType)
            return mismatch(part, side.outputs[0]);
        for (const std::size_t slot : {1, 2})
            if (side.inputs[slot].dataType != types.accumulated(side.inputs[slot].tensor))
                return mismatch(side.inputs[slot], side.outputs[0]);
        return {};
    }
    case InstructionKind::Merge:
        for (const std::size_t slot : {0, 1, 2, 3}) {
            const Content &output = side.outputs[slot % 2];
            if (side.inputs[slot].dataType != output.dataType)
                return mismatch(side.inputs[slot], output);
            if (slot % 2 == 1 && output.dataType != types.accumulated(output.tensor))
                return mismatch(side.inputs[slot], output);
        }
        return {};
    default:
        for (const Content &input : side.inputs)
            for (const Content &output : side.outputs)
                if (input.dataType != output.dataType)
                    return mismatch(input, output);
        return {};
    }
}

std::string checkSentTypes(
    const ExecutionPlan &plan, const Specification &specification, const std::vector<Side> &sides)
{
    const Content *first = nullptr;
    for (const Side &side : sides)
        for (const auto *list : {&side.inputs, &side.outputs})
            for (const Content &content : *list) {
                if (!content.box)
                    continue;
                if (!first)
                    first = &content;
                if (content.dataType != first->dataType)
                    return std::string(nameOf(sides[0].instruction->kind)) + " of "
                        + quotedName(plan, first->tensor) + " mixes " + nameOf(first->dataType) + " with "
                        + nameOf(content.dataType);
            }
    if (!first || !isWeightGradientOf(plan, first->tensor))
        return {};
    const DataType expected = specification.types().reduced(first->tensor);
    if (first->dataType != expected)
        return "gradient " + quotedName(plan, first->tensor) + " is communicated in "
            + nameOf(first->dataType) + ", not in " + nameOf(expected);
    return {};
}

std::string checkMemoryKind(const ExecutionPlan &plan, const StorageTypes &types, const BufferInfo &buffer)
{
    if (plan.graph->at(buffer.tensor).role != TensorRole::Weight)
        return {};
    const MemoryKind expected =
        types.isMaster(buffer.tensor, buffer.dataType) ? MemoryKind::OptimizerState : MemoryKind::Weight;
    if (buffer.memory == expected)
        return {};
    return "a buffer of " + quotedName(plan, buffer.tensor) + " in " + nameOf(buffer.dataType) + " counts as "
        + nameOf(buffer.memory);
}

} // namespace planloom
