#include "engine/verify/combination_rules.h"

#include <algorithm>

namespace planloom {

namespace {

/// What the instruction is about; none where it has no buffer.
TensorId tensorOf(const Side &side)
{
    for (const auto *list : {&side.inputs, &side.outputs})
        for (const Content &content : *list)
            if (content.box)
                return content.tensor;
    return {};
}

/// The rows of `box` that a log-sum-exp with `rank` dimensions has.
IndexMask rowsOf(const IndexMask &box, std::size_t rank)
{
    IndexMask rows = box;
    rows.ranges.resize(std::min(rank, box.ranges.size()));
    return rows;
}

} // namespace

std::string checkCombination(const ExecutionPlan &plan, const Specification &specification, const Side &side)
{
    const Instruction &instruction = *side.instruction;
    const char *name = nameOf(instruction.kind);
    const TensorId tensor = tensorOf(side);
    const bool combines = combinesSummands(instruction.kind);
    if (!combines && instruction.combination != Combination::Sum)
        return std::string(name) + " combines nothing, by no " + nameOf(instruction.combination);
    if (combines && tensor) {
        const Combination expected = onceWeighed(specification.combination(tensor));
        if (instruction.combination != expected)
            return std::string(name) + " takes the " + nameOf(instruction.combination) + " of the parts of '"
                + plan.graph->at(tensor).name + "', which are combined by " + nameOf(expected);
    }
    const auto unweighed = [](const std::vector<Content> &list, std::size_t from) {
        return std::any_of(list.begin() + static_cast<std::ptrdiff_t>(std::min(from, list.size())),
            list.end(), [](const Content &content) { return content.box && content.unweighed; });
    };
    const bool weighs = instruction.kind == InstructionKind::Weigh;
    if (unweighed(side.inputs, weighs ? 1 : 0)
        || (instruction.kind != InstructionKind::Kernel && unweighed(side.outputs, 0)))
        return std::string(name) + " handles a part of '" + plan.graph->at(tensor).name
            + "' that was not weighed against the others";
    return {};
}

std::string checkWeigh(const ExecutionPlan &plan, const Specification &specification, const Side &side)
{
    const auto present = [](const Content &content) { return content.box != nullptr; };
    if (side.inputs.size() != 3 || side.outputs.size() != 1
        || !std::all_of(side.inputs.begin(), side.inputs.end(), present) || !present(side.outputs[0]))
        return "weigh expects a part, its log-sum-exp and that of all, and one output";
    const Content &part = side.inputs[0];
    const Content &own = side.inputs[1];
    const Content &all = side.inputs[2];
    const Content &out = side.outputs[0];
    const std::string name = "'" + plan.graph->at(part.tensor).name + "'";
    if (!part.unweighed || part.summands->size() != 1)
        return "weigh reads something of " + name + " that is no part of it as its operator made it";
    const TensorId by = specification.weightTensor(part.tensor);
    if (!by || own.tensor != by || all.tensor != by)
        return name + " is weighed by what is not its log-sum-exp";
    const IndexMask rows = rowsOf(*part.box, plan.graph->at(by).type.shape.size());
    if (*own.box != rows || *all.box != rows)
        return name + " is weighed by the log-sum-exp of other rows";
    // Their one producer numbers the parts of both outputs alike.
    if (*own.summands != *part.summands)
        return name + " is weighed by the log-sum-exp of another part";
    if (!all.summands->empty())
        return name + " is weighed by a log-sum-exp that is not complete";
    if (out.tensor != part.tensor || *out.box != *part.box || *out.summands != *part.summands)
        return "weigh makes something else than a summand of " + name;
    for (const Content *content : {&part, &own, &all, &out})
        if (!content->valuePart.complete() || content->persistent || content->share != UnitShare::Same
            || content->perMicroBatch != part.perMicroBatch)
            return "weigh mixes parts of " + name + " that do not belong together";
    return {};
}

} // namespace planloom
