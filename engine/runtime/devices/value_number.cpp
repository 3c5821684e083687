#include "engine/runtime/devices/value_number.h"

#include "engine/graph/operators/catalogue.h"
#include "engine/runtime/devices/prepared_kernel.h"

namespace planloom {

void addBox(ValueNumber &number, const IndexMask &box)
{
    number.add(static_cast<std::int64_t>(box.ranges.size()));
    for (const Range &range : box.ranges)
        number.add(range.begin).add(range.end);
}

namespace {

bool keepsBytes(const ExecutionPlan &plan, const DeviceProgram &program, const Instruction &instruction)
{
    if (instruction.inputs.empty() || instruction.outputs.size() != 1 || instruction.inputs[0] < 0
        || instruction.outputs[0] < 0)
        return false;
    const BufferInfo &in = program.buffers[static_cast<std::size_t>(instruction.inputs[0])];
    const BufferInfo &out = program.buffers[static_cast<std::size_t>(instruction.outputs[0])];
    if (in.dataType != out.dataType || sizeOf(in) != sizeOf(out))
        return false;
    switch (instruction.kind) {
    case InstructionKind::Kernel:
        return isView(plan.graph->at(instruction.op));
    case InstructionKind::Select:
        return in.index == out.index;
    case InstructionKind::Concat:
        return in.index == out.index && instruction.inputs.size() == 1;
    case InstructionKind::ValueSelect:
        return in.index == out.index && out.valuePart.index == 0;
    case InstructionKind::Update:
    case InstructionKind::Offload:
    case InstructionKind::Fetch:
        return true;
    default:
        return false;
    }
}

} // namespace

Deed deedOf(const ExecutionPlan &plan, const DeviceProgram &program, const Instruction &instruction)
{
    Deed deed;
    ValueNumber &number = deed.number;
    number.add(instruction.kind).add(instruction.combination);
    number.add(instruction.dimension).add(instruction.gatherDimension);
    const bool isKernel = instruction.kind == InstructionKind::Kernel;
    const bool namesTensors = isKernel || instruction.kind == InstructionKind::Load;
    for (const BufferList *const list : {&instruction.inputs, &instruction.outputs}) {
        number.add(static_cast<std::int64_t>(list->size()));
        for (const std::int32_t buffer : *list) {
            if (buffer < 0) {
                number.add(std::int64_t{-1});
                continue;
            }
            const BufferInfo &info = program.buffers[static_cast<std::size_t>(buffer)];
            number.add(namesTensors ? info.tensor.index : 0).add(info.dataType).add(info.place);
            number.add(info.valuePart.index).add(info.valuePart.count);
            addBox(number, info.index);
        }
    }
    deed.mayBeShared = !isCommunication(instruction.kind) && !instruction.outputs.empty();
    deed.keepsBytes = keepsBytes(plan, program, instruction);
    if (isKernel) {
        const Operator &op = plan.graph->at(instruction.op);
        const PreparedKernel prepared = prepareKernel(plan, program, instruction);
        number.add(instruction.op.index);
        number.add(prepared.call.value.index).add(prepared.call.value.count);
        for (const Range &range : prepared.call.ranges)
            number.add(range.begin).add(range.end);
        // What a NonZero had no room for is counted where it runs; a file's code may do anything.
        deed.mayBeShared = deed.mayBeShared && op.kind != OperatorKind::NonZero && !isNamedByFile(op);
    }
    return deed;
}

} // namespace planloom
