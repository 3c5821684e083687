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
        const Combination expected = onceWeighed(specification.at(tensor).combination);
        if (instruction.combination != expected)
            return std::string(name) + " takes the " + nameOf(instruction.combination) + " of the parts of '"
                + plan.graph->at(tensor).name + "', which are combined by " + nameOf(expected);
    }
    const auto unweighed = [](const std::vector<Content> &list, const std::vector<std::size_t> &but) {
        for (std::size_t slot = 0; slot < list.size(); ++slot)
            if (list[slot].box && list[slot].unweighed
                && std::find(but.begin(), but.end(), slot) == but.end())
                return true;
        return false;
    };
    const bool merges = instruction.kind == InstructionKind::Merge;
    std::vector<std::size_t> readable; // inputs that may be unweighed
    if (merges)
        readable = {0, 2};
    else if (instruction.kind == InstructionKind::Weigh)
        readable = {0};
    if (unweighed(side.inputs, readable)
        || (instruction.kind != InstructionKind::Kernel
            && unweighed(side.outputs, merges ? std::vector<std::size_t>{0} : std::vector<std::size_t>{})))
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
    if (!part.unweighed || part.summands->empty())
        return "weigh reads something of " + name + " that is no part of it as its operator made it";
    const TensorId by = specification.at(part.tensor).weightTensor;
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

std::string checkMerge(const ExecutionPlan &plan, const Specification &specification, const Side &side)
{
    const auto present = [](const Content &content) { return content.box != nullptr; };
    if (side.inputs.size() != 4 || side.outputs.size() != 2
        || !std::all_of(side.inputs.begin(), side.inputs.end(), present)
        || !std::all_of(side.outputs.begin(), side.outputs.end(), present))
        return "merge expects two parts with their log-sum-exps, and makes a part with its own";
    const Content &both = side.outputs[0];
    const Content &ofBoth = side.outputs[1];
    const std::string name = "'" + plan.graph->at(both.tensor).name + "'";
    const TensorId by = specification.at(both.tensor).weightTensor;
    if (!by || ofBoth.tensor != by)
        return name + " is merged by what is not its log-sum-exp";
    const IndexMask rows = rowsOf(*both.box, plan.graph->at(by).type.shape.size());
    SummandSet all;
    for (const std::size_t slot : {0, 2}) {
        const Content &part = side.inputs[slot];
        const Content &own = side.inputs[slot + 1];
        if (part.tensor != both.tensor || !part.unweighed || part.summands->empty())
            return "merge reads something of " + name + " that is no part of it as its operator made it";
        if (own.tensor != by || *own.summands != *part.summands)
            return name + " is merged by the log-sum-exp of another part";
        if (*part.box != *both.box || *own.box != rows)
            return "merge mixes other rows of " + name;
        all.insert(all.end(), part.summands->begin(), part.summands->end());
    }
    std::sort(all.begin(), all.end());
    if (std::adjacent_find(all.begin(), all.end()) != all.end())
        return "merge counts a part of " + name + " twice";
    const std::int32_t count = specification.at(both.tensor).summandCount;
    if (all.front() < 0 || all.back() >= count)
        return "merge reads a part of " + name + " that there is not";
    if (static_cast<std::int32_t>(all.size()) == count)
        all.clear();
    if (all != *both.summands || *ofBoth.summands != *both.summands || *ofBoth.box != rows
        || both.unweighed == both.summands->empty())
        return "merge makes something else of " + name + " than both its parts";
    for (const auto *list : {&side.inputs, &side.outputs})
        for (const Content &content : *list)
            if (!content.valuePart.complete() || content.persistent || content.share != UnitShare::Same
                || content.perMicroBatch != both.perMicroBatch)
                return "merge mixes parts of " + name + " that do not belong together";
    return {};
}

} // namespace planloom
