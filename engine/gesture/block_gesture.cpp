#include "engine/gesture/acting.h"
#include "engine/gesture/order_gesture.h"
#include "engine/gesture/row_edits.h"
#include "engine/graph/operators/gradient_flow.h"

#include <algorithm>

namespace planloom {

namespace {

constexpr std::int32_t kMostInFlight = 1 << 24;

std::vector<OperatorId> operatorsOfBlock(const GestureContext &context, const BlockRef &block)
{
    std::vector<OperatorId> found;
    std::vector<bool> ofWeights; // by tensor; empty while no backward pass is split
    const auto runsBehind =
        [&](OperatorId op) { // among the gradients of weights, which have no order of their own
            if (!context.plan->decisions[static_cast<std::size_t>(op.index)].splitBackward)
                return false;
            if (ofWeights.empty())
                ofWeights = gradientsOfWeights(context.graph());
            const auto &outputs = context.graph().at(op).outputs;
            return std::all_of(outputs.begin(), outputs.end(), [&](TensorId output) {
                return !output || ofWeights[static_cast<std::size_t>(output.index)];
            });
        };
    for (const OperatorId op : operatorsOfStage(context, block.stage)) {
        if (context.batch().oncePerStep[static_cast<std::size_t>(op.index)])
            continue; // of no micro-batch, and so of no block
        const OperatorId mirror = context.graph().at(op).mirror;
        if (block.direction == Direction::Forward)
            found.push_back(op);
        else if (block.direction == Direction::Backward && mirror.valid() && !runsBehind(mirror))
            found.push_back(mirror);
    }
    std::sort(found.begin(), found.end());
    return found;
}

/// Why a block can't run before another: by which blocks in between it waits for it.
/// @param cycle  from the first block's operators, over the second's, back to it
std::string waitingWords(const GestureContext &context, const BlockRef &first, const BlockRef &second,
    const std::vector<OperatorId> &cycle)
{
    constexpr std::size_t kMostNamed = 3;
    std::vector<std::string> between; // blocks on the way, each once
    const auto kindOf = [](Direction direction, StageId stage) {
        return std::string(direction == Direction::Backward ? "B" : "F") + " of stage "
            + std::to_string(stage.index);
    };
    for (const OperatorId op : cycle) {
        const Operator &own = context.graph().at(op);
        const OperatorId forward = own.direction == Direction::Backward ? own.mirror : op;
        if (!forward.valid() || own.direction == Direction::Optimizer)
            continue;
        const StageId stage = context.plan->decisions[static_cast<std::size_t>(forward.index)].stage;
        const bool end = (stage == first.stage && own.direction == first.direction)
            || (stage == second.stage && own.direction == second.direction);
        const std::string words = kindOf(own.direction, stage);
        if (!end && (between.empty() || between.back() != words))
            between.push_back(words);
    }
    std::string sentence = wordsOf(first) + " can't run before " + wordsOf(second) + ": it waits for it";
    for (std::size_t i = 0; i < between.size() && i < kMostNamed; ++i)
        sentence += (i == 0 ? ", over " : " and ") + between[i];
    return sentence + (between.size() > kMostNamed ? " and others" : "");
}

} // namespace

std::string wordsOf(const BlockRef &block)
{
    return std::string(block.direction == Direction::Backward ? "B" : "F") + std::to_string(block.microBatch)
        + " of stage " + std::to_string(block.stage.index) + toString(block.part);
}

std::vector<OperatorId> operatorsOfStage(const GestureContext &context, StageId stage)
{
    std::vector<OperatorId> found;
    if (!context.plan)
        return found;
    const auto &decisions = context.plan->decisions;
    for (std::size_t i = 0; i < decisions.size() && i < context.graph().operators.size(); ++i) {
        if (context.graph().operators[i].direction == Direction::Forward && decisions[i].stage == stage)
            found.push_back({static_cast<std::int32_t>(i)});
    }
    return found;
}

Proposal proposeBlockOrder(const GestureContext &context, BlockRef moved, BlockRef before, bool onlyThis)
{
    Proposal proposal;
    proposal.words = "move " + wordsOf(moved) + " before " + wordsOf(before);
    const auto refuse = [&](std::string sentence, std::string advice = {}) {
        return withRefusal(std::move(proposal), refusalOf(std::move(sentence), "block", std::move(advice)));
    };
    if (!context.plan)
        return refuse("blocks can be moved once there is a plan");
    if (moved == before)
        return proposal;
    if (moved.direction == Direction::Optimizer || before.direction == Direction::Optimizer)
        return refuse("the optimizer runs once the gradients of its weights are complete");
    const bool sameLane = moved.part.lane == before.part.lane;
    if (moved.stage == before.stage && moved.direction == before.direction && sameLane
        && moved.part != before.part && moved.microBatch == before.microBatch)
        return refuse(
            "the slices of a micro-batch run in their order", "move it before another stage's block");
    if (moved.stage == before.stage && moved.direction == before.direction && sameLane)
        return refuse("the micro-batches of a block run in their order",
            "move it before a block of the other direction");
    if (moved.stage == before.stage && moved.microBatch == before.microBatch && sameLane
        && moved.direction == Direction::Backward)
        return refuse(wordsOf(moved) + " needs what " + wordsOf(before) + " keeps for it");
    const auto first = operatorsOfBlock(context, moved);
    const auto second = operatorsOfBlock(context, before);
    if (first.empty() || second.empty())
        return refuse("there is no " + wordsOf(first.empty() ? moved : before) + " in this plan");
    if (onlyThis)
        proposal.words += ", only this once";
    proposal = proposeOrderOf(context,
        {first, second, before.microBatch - moved.microBatch, onlyThis ? moved.microBatch : -1, moved.part,
            before.part},
        proposal.words, true);
    if (proposal.refusal && !proposal.cycle.empty())
        proposal.refusal->message = waitingWords(context, moved, before, proposal.cycle);
    return proposal;
}

Proposal proposeInFlight(const GestureContext &context, StageId stage, std::int32_t count)
{
    Proposal proposal;
    const std::string of =
        stage.valid() ? "stage " + std::to_string(stage.index) : std::string("every stage");
    proposal.words = "at most " + std::to_string(count) + (count == 1 ? " micro-batch" : " micro-batches")
        + " in flight on " + of;
    proposal.operators = operatorsOfStage(context, stage);
    const std::int32_t stages = context.plan ? context.plan->stageCount : 0;
    if (count < 1 || count > kMostInFlight)
        return withRefusal(
            std::move(proposal), refusalOf("a stage holds at least one micro-batch in flight", "stage"));
    if (context.plan && stage.index >= stages)
        return withRefusal(std::move(proposal),
            refusalOf("there is no stage " + std::to_string(stage.index) + ": the plan has "
                    + countWords(static_cast<std::size_t>(stages), "stage"),
                "stage"));
    RowEdits edits(context);
    Row row = gestureRow(selectAll(), InFlightRule{count, stage.valid() ? stage.index : -1});
    bool written = false;
    forEachRule<InFlightRule>(context, [&](std::int32_t line, const Row &, const InFlightRule &rule) {
        const bool same = rule.stage == stage.index || !stage.valid();
        if (same && !written) {
            edits.replace(line, row);
            written = true;
        } else if (same) {
            edits.remove(line);
        } else if (rule.stage < 0 && rule.count != count) {
            // The others keep the number that they share.
            edits.remove(line);
            for (std::int32_t s = 0; s < stages; ++s) {
                if (s != stage.index)
                    edits.append(gestureRow(selectAll(), InFlightRule{rule.count, s}));
            }
        } else if (rule.stage < 0) {
            written = true; // says so already
        }
    });
    if (!written)
        edits.append(std::move(row));
    edits.finish(proposal);
    return proposal;
}

} // namespace planloom
