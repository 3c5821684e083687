#include "engine/verify/instruction_rules.h"

#include "engine/base/words.h"
#include "engine/graph/operators/gradient_flow.h"
#include "engine/verify/combination_rules.h"

#include <algorithm>
#include <optional>

namespace planloom {

namespace {

std::int64_t volumeOf(const IndexMask &box)
{
    std::int64_t volume = 1;
    for (const Range &range : box.ranges)
        volume *= range.size();
    return volume;
}

std::string nameOfTensor(const ExecutionPlan &plan, TensorId tensor)
{
    return tensor ? "'" + plan.graph->at(tensor).name + "'" : "no tensor";
}

std::string textOf(const ExecutionPlan &plan, const Content &content)
{
    std::string text = nameOfTensor(plan, content.tensor) + " " + toString(*content.box);
    if (!content.summands->empty()) {
        text += " summands";
        for (const std::int32_t summand : *content.summands)
            text += " " + std::to_string(summand);
    }
    if (!content.valuePart.complete())
        text += " part " + std::to_string(content.valuePart.index) + "/"
            + std::to_string(content.valuePart.count);
    if (content.unweighed)
        text += " unweighed";
    if (content.staleness != 0)
        text += " of " + counted(content.staleness, "update") + " ago";
    if (content.share == UnitShare::Partial)
        text += " of one unit alone";
    if (content.share == UnitShare::Shard)
        text += " as a unit's share of dimension " + std::to_string(content.shardDimension);
    return text;
}

/// Same tensor, same version, same part of a Value split, on every content.
bool alike(const Content &a, const Content &b)
{
    return a.tensor == b.tensor && a.staleness == b.staleness && a.valuePart == b.valuePart;
}

/// Scale units have the same of both.
bool sharedAlike(const Content &a, const Content &b)
{
    return a.share == b.share && a.shardDimension == b.shardDimension && a.shardEnd == b.shardEnd;
}

/// `content` is what a kernel may read or write in a slot whose view `shard` shares out.
bool isShard(const Content &content, const ShardSpecification &shard)
{
    return content.share
        == (shard.partial             ? UnitShare::Partial
                : shard.dimension < 0 ? UnitShare::Same
                                      : UnitShare::Shard)
        && content.shardDimension == shard.dimension
        && (shard.dimension < 0
            || content.shardEnd
                == content.box->ranges[static_cast<std::size_t>(shard.dimension)].begin + shard.extent);
}

/// The boxes that all units have of `content` together.
IndexMask ofAllUnits(const Content &content)
{
    IndexMask box = *content.box;
    box.ranges[static_cast<std::size_t>(content.shardDimension)].end = content.shardEnd;
    return box;
}

/// The union of disjoint summand sets, in the form of `BufferInfo::summands`; nothing if they overlap.
std::optional<SummandSet> unionOf(const std::vector<const SummandSet *> &sets, std::int32_t count)
{
    SummandSet all;
    for (const auto *set : sets) {
        if (set->empty())
            return std::nullopt; // a complete value and anything else would count twice
        all.insert(all.end(), set->begin(), set->end());
    }
    std::sort(all.begin(), all.end());
    if (std::adjacent_find(all.begin(), all.end()) != all.end())
        return std::nullopt;
    if (!all.empty() && (all.front() < 0 || all.back() >= count))
        return std::nullopt;
    if (static_cast<std::int32_t>(all.size()) == count)
        all.clear();
    return all;
}

/// True if the boxes are disjoint and together are `whole`.
bool tiles(const std::vector<const IndexMask *> &boxes, const IndexMask &whole)
{
    std::int64_t volume = 0;
    for (std::size_t i = 0; i < boxes.size(); ++i) {
        if (!contains(whole, *boxes[i]))
            return false;
        volume += volumeOf(*boxes[i]);
        for (std::size_t j = 0; j < i; ++j)
            if (const auto both = intersection(*boxes[i], *boxes[j]); both && volumeOf(*both) > 0)
                return false;
    }
    return volume == volumeOf(whole);
}

/// What is computed for the step must not come from one micro-batch.
bool outlives(const Content &input, const Content &output)
{
    return input.perMicroBatch && !output.perMicroBatch;
}

BatchRole roleOf(const ExecutionPlan &plan, TensorId tensor)
{
    return plan.batch.tensorRole[static_cast<std::size_t>(tensor.index)];
}

/// Buffers of the tensor lie elsewhere in every micro-batch.
bool moves(const ExecutionPlan &plan, TensorId tensor)
{
    return batchCuts(plan) > 1 && plan.batch.tensorDimension[static_cast<std::size_t>(tensor.index)] >= 0;
}

/// Every micro-batch has a value of its own: one buffer for the step holds none of them, or all together.
bool differs(const ExecutionPlan &plan, TensorId tensor)
{
    return roleOf(plan, tensor) == BatchRole::Summand || roleOf(plan, tensor) == BatchRole::Local;
}

/// What is the same in all micro-batches may be brought together anew for each.
bool stays(const ExecutionPlan &plan, const Content &content)
{
    return content.persistent && !moves(plan, content.tensor) && !differs(plan, content.tensor);
}

std::string checkLoad(const ExecutionPlan &plan, const Specification &specification, const Content &output)
{
    const std::string name = nameOfTensor(plan, output.tensor);
    const TensorRole role = plan.graph->at(output.tensor).role;
    if (specification.isMade(output.tensor))
        return name + " is made by an operator and cannot be loaded";
    if (role == TensorRole::Activation)
        return name + " is not on the host and cannot be loaded";
    if (!output.summands->empty() || !output.valuePart.complete())
        return "load gives complete values, its buffer is " + textOf(plan, output);
    // The host has what a weight was before the first step.
    if ((role == TensorRole::Weight || role == TensorRole::OptimizerState) && !output.persistent)
        return name + " lives across steps, its buffer does not";
    if (!output.perMicroBatch && differs(plan, output.tensor))
        return name + " is fed anew to every micro-batch, its buffer is one for the step";
    return {};
}

std::string checkStore(const ExecutionPlan &plan, const Content &input)
{
    if (!input.summands->empty() || !input.valuePart.complete() || input.share != UnitShare::Same)
        return "store expects a complete value, found " + textOf(plan, input);
    const auto &outputs = plan.graph->outputs;
    if (std::find(outputs.begin(), outputs.end(), input.tensor) == outputs.end())
        return nameOfTensor(plan, input.tensor) + " is not an output of the graph";
    const BatchRole role = roleOf(plan, input.tensor);
    if (role == BatchRole::Step && !plan.units.isOne())
        return nameOfTensor(plan, input.tensor) + " is of the step: every unit would store it";
    if (role != BatchRole::Same && input.perMicroBatch != (role != BatchRole::Step))
        return nameOfTensor(plan, input.tensor)
            + (role == BatchRole::Step ? " is of the step, what is stored is of a micro-batch"
                                       : " is of every micro-batch, what is stored is of the step");
    return {};
}

/// What a kernel with these outputs has to do of a backward operator.
Operator madeOf(const Graph &graph, const Operator &backward, const std::vector<Content> &outputs)
{
    std::vector<bool> made;
    for (const Content &output : outputs)
        made.push_back(output.box != nullptr);
    return partOfBackward(graph, backward, made);
}

std::string checkKernel(const ExecutionPlan &plan, const Specification &specification, const Side &side)
{
    const Instruction &instruction = *side.instruction;
    const Graph &graph = *plan.graph;
    if (!instruction.op || instruction.op.index >= static_cast<std::int32_t>(graph.operators.size()))
        return "the kernel names no operator of the graph";
    const Operator &op = graph.at(instruction.op);
    if (instruction.part < 0 || instruction.part >= specification.partCount(instruction.op))
        return op.name + " has no part " + std::to_string(instruction.part);
    const DeviceId placed = plan.placement[static_cast<std::size_t>(instruction.op.index)]
                                          [static_cast<std::size_t>(instruction.part)];
    if (placed != side.device)
        return "part " + std::to_string(instruction.part) + " of " + op.name + " belongs on device "
            + std::to_string(placed.index);
    if (instruction.recompute && op.direction != Direction::Forward)
        return op.name + " is not a forward operator and cannot be recomputed";
    if (instruction.inputs.size() != op.inputs.size() || instruction.outputs.size() != op.outputs.size())
        return op.name + " has " + std::to_string(op.inputs.size()) + " inputs and "
            + std::to_string(op.outputs.size()) + " outputs";
    const PartSpecification &part = specification.part(instruction.op, instruction.part);
    const bool once = specification.oncePerStep(instruction.op);
    const bool keepsProbabilities = attentionOf(plan, instruction.op) == AttentionMode::Plain;
    for (std::size_t slot = 0; slot < op.inputs.size(); ++slot) {
        const Content &input = side.inputs[slot];
        const bool leftOut = static_cast<std::int32_t>(slot) == probabilitiesInput(op) && !keepsProbabilities;
        if (!op.inputs[slot] || leftOut) {
            if (input.box)
                return "input " + std::to_string(slot) + " of " + op.name + " should be absent";
            continue;
        }
        if (!input.box && op.direction == Direction::Backward
            && !madeOf(graph, op, side.outputs).inputs[slot])
            continue; // this half of it does without
        if (!input.box)
            return "input " + std::to_string(slot) + " of " + op.name + " is missing";
        const TensorView &view = part.inputs[slot];
        // Which share of a divided value this is, is held against those of the other parts (value_parts.h).
        const bool whole = input.summands->empty() && input.valuePart.complete();
        if (input.tensor != view.tensor || *input.box != view.index || (view.value.complete() && !whole)
            || !isShard(input, specification.inputShard(instruction.op, slot)))
            return op.name + " needs " + toString(view) + " of " + nameOfTensor(plan, view.tensor)
                + ", found " + textOf(plan, input);
        if (const std::int32_t staleness = specification.staleness(instruction.op, slot);
            input.staleness != staleness)
            return op.name + " reads " + nameOfTensor(plan, view.tensor) + " as it was "
                + counted(staleness, "update") + " ago, found that of " + counted(input.staleness, "update")
                + " ago";
        if (once && input.perMicroBatch)
            return op.name + " runs once per step, but reads one micro-batch of "
                + nameOfTensor(plan, view.tensor);
        if (!once && !input.perMicroBatch
            && (specification.inputMoves(instruction.op, slot) || differs(plan, view.tensor)))
            return op.name + " would read the same slice of " + nameOfTensor(plan, view.tensor)
                + " in every micro-batch";
    }
    bool makesAny = false;
    for (std::size_t slot = 0; slot < op.outputs.size(); ++slot) {
        const Content &output = side.outputs[slot];
        const bool probabilities = static_cast<std::int32_t>(slot) == probabilitiesOutput(op);
        if (!output.box && probabilities && keepsProbabilities)
            return op.name + " keeps its probabilities, but has no buffer for them";
        if (!output.box)
            continue; // not wanted; what is read must have been written by somebody
        makesAny = true;
        if (!op.outputs[slot] || (probabilities && !keepsProbabilities))
            return "output " + std::to_string(slot) + " of " + op.name + " should be absent";
        const TensorView &view = part.outputs[slot];
        const std::int32_t count = specification.summandCount(view.tensor);
        SummandSet summands;
        if (count > 1)
            summands.push_back(specification.summandBase(instruction.op, slot) + view.value.index);
        const bool inPlace = (output.persistent || output.inPlace) && op.direction == Direction::Optimizer
            && specification.updateOf(output.tensor) == view.tensor;
        if ((output.tensor != view.tensor && !inPlace) || *output.box != view.index
            || !(specification.holdsAs(view.tensor, view.index, summands, *output.summands)
                || specification.isSame(view.tensor, *output.summands, summands, view.index))
            || !output.valuePart.complete() || output.staleness != 0
            || output.unweighed
                != (!output.summands->empty() && specification.weightTensor(view.tensor).valid())
            || !isShard(output, specification.outputShard(instruction.op, slot)))
            return op.name + " makes " + toString(view) + " of " + nameOfTensor(plan, view.tensor)
                + ", its buffer is " + textOf(plan, output);
        if (output.persistent && !inPlace)
            return op.name + " writes into a persistent buffer";
        if (output.perMicroBatch == once)
            return op.name
                + (once ? " runs once per step, its output does not"
                        : " runs in every micro-batch, its output does not");
    }
    if (!makesAny && !op.outputs.empty())
        return op.name + " makes nothing";
    return {};
}

/// A collective among one device of all units: what each has follows from what one has.
std::string checkAcrossUnits(const ExecutionPlan &plan, const Side &side)
{
    const Instruction &instruction = *side.instruction;
    const Content &in = side.inputs[0];
    const Content &out = side.outputs[0];
    const auto wrong = [&] {
        return std::string(nameOf(instruction.kind)) + " across units cannot make " + textOf(plan, out)
            + " of " + textOf(plan, in);
    };
    const std::int32_t dimension = instruction.dimension;
    const bool scatters = instruction.kind == InstructionKind::ReduceScatter;
    const bool gathers = instruction.kind == InstructionKind::AllGather;
    if (*in.summands != *out.summands)
        return wrong();
    if ((scatters || gathers)
        && (dimension < 0 || dimension >= static_cast<std::int32_t>(in.box->ranges.size())))
        return std::string(nameOf(instruction.kind)) + " has no such dimension";
    if (instruction.kind == InstructionKind::AllReduce)
        return !in.perMicroBatch && !out.perMicroBatch && in.share == UnitShare::Partial
                && out.share == UnitShare::Same && *in.box == *out.box
            ? std::string{}
            : wrong();
    if (scatters) {
        // Of the step's sums; or of one micro-batch of each unit, if what it makes is a sum over
        // micro-batches.
        const bool sums = in.perMicroBatch ? out.perMicroBatch && in.share == UnitShare::Same
                && roleOf(plan, in.tensor) == BatchRole::Summand
                                           : !out.perMicroBatch && in.share == UnitShare::Partial;
        return sums && out.share == UnitShare::Shard && out.shardDimension == dimension
                && ofAllUnits(out) == *in.box
            ? std::string{}
            : wrong();
    }
    if (gathers) {
        // A sum over the units' micro-batches is none for a micro-batch of one unit.
        const bool same = in.perMicroBatch == out.perMicroBatch || in.persistent;
        return same && !(in.perMicroBatch && differs(plan, in.tensor)) && in.share == UnitShare::Shard
                && in.shardDimension == dimension && out.share == UnitShare::Same
                && ofAllUnits(in) == *out.box
            ? std::string{}
            : wrong();
    }
    return wrong();
}

} // namespace

std::string checkLocal(const ExecutionPlan &plan, const Specification &specification, const Side &side)
{
    const Instruction &instruction = *side.instruction;
    const char *name = nameOf(instruction.kind);
    const auto count = [&](std::size_t inputs, std::size_t outputs) {
        const auto present = [](const std::vector<Content> &list) {
            return std::all_of(list.begin(), list.end(), [](const Content &c) { return c.box != nullptr; });
        };
        return side.inputs.size() == inputs && side.outputs.size() == outputs && present(side.inputs)
            && present(side.outputs);
    };
    if (auto reason = checkCombination(plan, specification, side); !reason.empty())
        return reason;
    if (instruction.kind == InstructionKind::Weigh)
        return checkWeigh(plan, specification, side);
    if (instruction.kind == InstructionKind::Merge)
        return checkMerge(plan, specification, side);
    if (instruction.kind == InstructionKind::Kernel)
        return checkKernel(plan, specification, side);

    if (instruction.kind == InstructionKind::Load) {
        if (!count(0, 1))
            return "load expects one output";
        return checkLoad(plan, specification, side.outputs[0]);
    }
    if (instruction.kind == InstructionKind::Store)
        return count(1, 0) ? checkStore(plan, side.inputs[0]) : "store expects one input";

    const bool joins =
        instruction.kind == InstructionKind::Concat || instruction.kind == InstructionKind::Sum;
    if (!count(joins ? std::max<std::size_t>(side.inputs.size(), 1) : 1, 1))
        return std::string(name)
            + (joins ? " expects inputs and one output" : " expects one input and one output");
    const Content &output = side.outputs[0];
    const bool updates = instruction.kind == InstructionKind::Update
        || (instruction.kind == InstructionKind::Offload && output.persistent);
    if (output.persistent && !updates)
        return std::string(name) + " writes into a persistent buffer";
    for (const Content &input : side.inputs) {
        const bool sameTensor =
            updates ? specification.updateOf(output.tensor) == input.tensor : input.tensor == output.tensor;
        if (!sameTensor || input.staleness != output.staleness
            || (instruction.kind != InstructionKind::ValueSelect && input.valuePart != output.valuePart))
            return std::string(name) + " turns " + textOf(plan, input) + " into " + textOf(plan, output);
        if (outlives(input, output) && instruction.kind != InstructionKind::Accumulate)
            return std::string(name) + " keeps one micro-batch of " + nameOfTensor(plan, input.tensor)
                + " for the whole step";
        // A select moves in its source; nothing else follows the micro-batch out of one that stays.
        if (!input.perMicroBatch && output.perMicroBatch
            && (differs(plan, input.tensor)
                || (moves(plan, input.tensor) && instruction.kind != InstructionKind::Select)))
            return std::string(name) + " gives every micro-batch the " + nameOfTensor(plan, input.tensor)
                + " of the step";
    }
    const Content &input = side.inputs[0];
    const bool reshares =
        instruction.kind == InstructionKind::Accumulate || instruction.kind == InstructionKind::Select;
    for (const Content &each : side.inputs)
        if (!reshares && !sharedAlike(each, output))
            return std::string(name) + " cannot make " + textOf(plan, output) + " of " + textOf(plan, each);
    const auto wrong = [&] {
        return std::string(name) + " cannot make " + textOf(plan, output) + " of " + textOf(plan, input);
    };
    switch (instruction.kind) {
    case InstructionKind::Accumulate: {
        // Parts add up within a micro-batch, or once per step. Else what a unit adds up is its own
        // micro-batches' share, or a shard of what all units' come to.
        const bool within = output.perMicroBatch == input.perMicroBatch;
        const UnitShare expected = within || input.share == UnitShare::Shard ? input.share
            : plan.units.isOne()                                             ? UnitShare::Same
                                                                             : UnitShare::Partial;
        if (*input.box != *output.box || (!within && !input.perMicroBatch)
            || (!within && input.share == UnitShare::Partial) || output.share != expected
            || (input.share == UnitShare::Shard && !sharedAlike(input, output)))
            return wrong();
        if ((!within && roleOf(plan, input.tensor) != BatchRole::Summand)
            || onceWeighed(specification.combination(input.tensor)) != Combination::Sum)
            return nameOfTensor(plan, input.tensor)
                + " is not a sum over micro-batches, and cannot be accumulated";
        // The accumulator's set must name every summand that is added to it.
        const SummandSet &added = *input.summands; // empty: all of them
        if (!output.summands->empty()
            && (added.empty()
                || !std::includes(
                    output.summands->begin(), output.summands->end(), added.begin(), added.end())))
            return wrong();
        return {};
    }
    case InstructionKind::Select: {
        if (!specification.isSame(output.tensor, *input.summands, *output.summands, *output.box)
            || !contains(*input.box, *output.box))
            return wrong();
        if (!sharedAlike(input, output)) { // each unit may take its own share of what all have
            if (input.share != UnitShare::Same || output.share != UnitShare::Shard || input.perMicroBatch
                || !contains(*input.box, ofAllUnits(output)))
                return wrong();
        } else if (input.share == UnitShare::Shard && *input.box != *output.box) {
            return wrong();
        }
        if (output.perMicroBatch && !input.perMicroBatch) {
            // The slice moves while its source does not.
            BufferInfo moved;
            moved.tensor = output.tensor;
            moved.index = *output.box;
            if (!contains(*input.box, boxOf(plan, moved, plan.microBatches - 1, plan.units.count - 1)))
                return wrong();
        }
        return {};
    }
    case InstructionKind::Concat: {
        std::vector<const IndexMask *> boxes;
        for (const Content &piece : side.inputs) {
            boxes.push_back(piece.box);
            if (!specification.isSame(output.tensor, *piece.summands, *output.summands, *piece.box))
                return wrong();
            if (piece.perMicroBatch != output.perMicroBatch && !stays(plan, piece))
                return "concat joins pieces of the step and of a micro-batch";
        }
        return tiles(boxes, *output.box) ? std::string{}
                                         : "concat's pieces do not tile " + textOf(plan, output);
    }
    case InstructionKind::Sum: {
        std::vector<const SummandSet *> sets;
        for (const Content &piece : side.inputs) {
            sets.push_back(piece.summands);
            if (*piece.box != *output.box || piece.perMicroBatch != output.perMicroBatch)
                return wrong();
        }
        const auto all = unionOf(sets, specification.summandCount(output.tensor));
        return all && specification.isSame(output.tensor, *all, *output.summands, *output.box)
            ? std::string{}
            : "sum's inputs do not add up to " + textOf(plan, output);
    }
    case InstructionKind::Offload:
    case InstructionKind::Fetch:
    case InstructionKind::Cast:
        return *input.box == *output.box && *input.summands == *output.summands
                && input.perMicroBatch == output.perMicroBatch
            ? std::string{}
            : wrong();
    case InstructionKind::ValueSelect:
        // Parts of a value add up to it, and so do its own summands only where it is their sum.
        return contains(*input.box, *output.box) && *input.summands == *output.summands
                && (input.summands->empty()
                    || onceWeighed(specification.combination(input.tensor)) == Combination::Sum)
                && input.valuePart.complete() && !output.valuePart.complete() && output.valuePart.index >= 0
                && output.valuePart.index < output.valuePart.count
            ? std::string{}
            : wrong();
    case InstructionKind::Update:
        return *input.box == *output.box && input.summands->empty() && output.persistent && !input.persistent
            ? std::string{}
            : wrong();
    default:
        return std::string(name) + " is out of place";
    }
}

std::string checkCommunication(
    const ExecutionPlan &plan, const Specification &specification, const std::vector<Side> &sides)
{
    const Instruction &first = *sides.front().instruction;
    const char *name = nameOf(first.kind);
    for (const Side &side : sides)
        if (auto reason = checkCombination(plan, specification, side); !reason.empty())
            return reason;
    if (first.kind == InstructionKind::Send || first.kind == InstructionKind::Recv) {
        const Side &sender = sides[0];
        const Side &receiver = sides[1];
        if (sender.inputs.size() != 1 || !sender.inputs[0].box || !sender.outputs.empty()
            || receiver.outputs.size() != 1 || !receiver.outputs[0].box || !receiver.inputs.empty())
            return "send expects one input, recv one output";
        const Content &from = sender.inputs[0];
        const Content &to = receiver.outputs[0];
        if (!alike(from, to) || !sharedAlike(from, to) || *from.box != *to.box
            || *from.summands != *to.summands
            || (from.perMicroBatch != to.perMicroBatch && !stays(plan, from)) || to.persistent)
            return "send of " + textOf(plan, from) + " is received as " + textOf(plan, to);
        return {};
    }

    const std::size_t n = sides.size();
    const auto hasBuffer = [](const Content &content) { return content.box != nullptr; };
    std::vector<const SummandSet *> sets;
    for (const Side &side : sides) {
        const Instruction &own = *side.instruction;
        if (own.kind != first.kind || own.dimension != first.dimension
            || own.gatherDimension != first.gatherDimension)
            return std::string(name) + " meets " + nameOf(own.kind) + " on device "
                + std::to_string(side.device.index);
        const bool wantsInput = first.kind != InstructionKind::Broadcast || &side == &sides.front();
        const bool wantsOutput = first.kind != InstructionKind::Broadcast || &side != &sides.front();
        if ((wantsInput && (side.inputs.size() != 1 || !side.inputs[0].box))
            || (wantsOutput && (side.outputs.size() != 1 || !side.outputs[0].box)) || side.outputs.size() > 1
            || (!wantsInput && std::any_of(side.inputs.begin(), side.inputs.end(), hasBuffer)))
            return std::string(name) + " lacks a buffer on device " + std::to_string(side.device.index);
        if (wantsInput)
            sets.push_back(side.inputs[0].summands);
    }
    const Content &source = sides[0].inputs[0];
    for (const Side &side : sides)
        for (const auto *list : {&side.inputs, &side.outputs})
            for (const Content &content : *list)
                if (content.box
                    && (!alike(content, source) || (!first.acrossUnits && !sharedAlike(content, source))
                        || (content.perMicroBatch != source.perMicroBatch && !stays(plan, source))
                        || (list == &side.outputs && content.persistent))
                    && !(content.tensor == source.tensor && content.staleness == source.staleness
                        && content.persistent && list == &side.inputs && !moves(plan, source.tensor)))
                    return std::string(name) + " mixes " + textOf(plan, source) + " with "
                        + textOf(plan, content);

    if (first.acrossUnits)
        return checkAcrossUnits(plan, sides.front());

    const auto rank = static_cast<std::int32_t>(source.box->ranges.size());
    const auto valid = [rank](std::int32_t dimension) { return dimension >= 0 && dimension < rank; };
    /// Chunk i of n along a dimension; nothing if it does not divide.
    const auto chunk = [n](const IndexMask &box, std::int32_t dimension,
                           std::size_t i) -> std::optional<IndexMask> {
        IndexMask result = box;
        Range &range = result.ranges[static_cast<std::size_t>(dimension)];
        const auto parts = static_cast<std::int64_t>(n);
        if (range.size() % parts != 0)
            return std::nullopt;
        const std::int64_t extent = range.size() / parts;
        range.begin += extent * static_cast<std::int64_t>(i);
        range.end = range.begin + extent;
        return result;
    };
    switch (first.kind) {
    case InstructionKind::AllReduce:
    case InstructionKind::ReduceScatter: {
        const bool scatters = first.kind == InstructionKind::ReduceScatter;
        if (scatters && !valid(first.dimension))
            return "reduce-scatter has no such dimension";
        const auto all = unionOf(sets, specification.summandCount(source.tensor));
        if (!all)
            return std::string(name) + " would count summands of " + nameOfTensor(plan, source.tensor)
                + " twice";
        for (std::size_t i = 0; i < n; ++i) {
            const Content &to = sides[i].outputs[0];
            if (*sides[i].inputs[0].box != *source.box)
                return std::string(name) + " adds different boxes: " + textOf(plan, source) + " and "
                    + textOf(plan, sides[i].inputs[0]);
            const auto expected =
                scatters ? chunk(*source.box, first.dimension, i) : std::optional(*source.box);
            if (!expected || *to.box != *expected
                || !specification.isSame(source.tensor, *to.summands, *all, *to.box))
                return std::string(name) + " does not give device " + std::to_string(sides[i].device.index)
                    + " " + textOf(plan, to);
        }
        return {};
    }
    case InstructionKind::AllGather: {
        if (!valid(first.dimension))
            return "all-gather has no such dimension";
        const auto d = static_cast<std::size_t>(first.dimension);
        IndexMask gathered = *source.box;
        for (std::size_t i = 1; i < n; ++i) {
            IndexMask next = *sides[i].inputs[0].box;
            if (next.ranges[d].begin != gathered.ranges[d].end
                || next.ranges[d].size() != source.box->ranges[d].size())
                return "all-gather's pieces do not follow one another";
            gathered.ranges[d].end = next.ranges[d].end;
            next.ranges[d] = gathered.ranges[d];
            if (next != gathered)
                return "all-gather's pieces differ in more than its dimension";
        }
        for (const Side &side : sides)
            for (std::size_t i = 0; i < n; ++i)
                if (!specification.isSame(
                        source.tensor, *sets[i], *side.outputs[0].summands, *sides[i].inputs[0].box))
                    return "all-gather's pieces differ in more than its dimension";
        for (const Side &side : sides)
            if (*side.outputs[0].box != gathered)
                return "all-gather does not make " + textOf(plan, side.outputs[0]);
        return {};
    }
    case InstructionKind::AllToAll: {
        if (!valid(first.dimension) || !valid(first.gatherDimension)
            || first.dimension == first.gatherDimension)
            return "all-to-all has no such dimensions";
        const auto g = static_cast<std::size_t>(first.gatherDimension);
        for (std::size_t i = 0; i < n; ++i) {
            std::optional<IndexMask> expected;
            for (std::size_t j = 0; j < n; ++j) {
                const auto piece = chunk(*sides[j].inputs[0].box, first.dimension, i);
                if (!piece
                    || !specification.isSame(source.tensor, *sets[j], *sides[i].outputs[0].summands, *piece))
                    return "all-to-all's pieces do not divide";
                if (!expected) {
                    expected = piece;
                    continue;
                }
                IndexMask next = *piece;
                if (next.ranges[g].begin != expected->ranges[g].end
                    || next.ranges[g].size() != source.box->ranges[g].size())
                    return "all-to-all's pieces do not follow one another";
                expected->ranges[g].end = next.ranges[g].end;
                next.ranges[g] = expected->ranges[g];
                if (next != *expected)
                    return "all-to-all's pieces do not fit together";
            }
            if (*sides[i].outputs[0].box != *expected)
                return "all-to-all does not give device " + std::to_string(sides[i].device.index) + " "
                    + textOf(plan, sides[i].outputs[0]);
        }
        return {};
    }
    case InstructionKind::Shift:
        for (std::size_t i = 0; i < n; ++i) {
            const Content &from = sides[(i + n - 1) % n].inputs[0];
            const Content &to = sides[i].outputs[0];
            if (*from.box != *to.box || *from.summands != *to.summands)
                return "shift of " + textOf(plan, from) + " is received as " + textOf(plan, to);
        }
        return {};
    case InstructionKind::Broadcast:
        for (const Side &side : sides)
            for (const Content &to : side.outputs) // the first member's is its own affair, but must be right
                if (to.box && (*to.box != *source.box || *to.summands != *source.summands))
                    return "broadcast of " + textOf(plan, source) + " is received as " + textOf(plan, to);
        return {};
    default:
        return std::string(name) + " is no communication";
    }
}

} // namespace planloom
