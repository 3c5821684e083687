#include "engine/search/memory/operator_memory.h"

#include "engine/graph/operators/catalogue.h"
#include "engine/search/memory/turn_units.h"
#include "engine/table/selector_index.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

namespace planloom {

bool defers(const PartitionProblem &problem, std::size_t op, const OperatorChoice &choice, std::size_t slot)
{
    const TensorId input = problem.graph().operators[op].inputs[slot];
    return input && problem.graph().at(input).role == TensorRole::Activation && choice.weightGradients > 0
        && (!problem.makesWeightsAlone(op) || choice.kept[slot] > 0);
}

bool defersGradient(const PartitionProblem &problem, std::size_t op, std::size_t slot)
{
    const TensorId output = problem.graph().operators[op].outputs[slot];
    if (!output || !problem.gradientOf(output))
        return false;
    if (!problem.makesWeightsAlone(op))
        return true;
    // That pass makes it itself if all do that read what it is the gradient of.
    const auto &readers = problem.setting().model->index->uses().consumers[at(output)];
    return std::any_of(readers.begin(), readers.end(), [&problem](OperatorId reader) {
        const auto r = at(reader);
        return r < problem.operatorCount() && !problem.makesWeightsAlone(r);
    });
}

KeptPlace keptPlace(const PartitionProblem &problem, std::size_t op, std::size_t slot, const StagePlan &plan)
{
    const Operator &own = problem.graph().operators[op];
    const bool isInput = slot < own.inputs.size();
    const TensorId tensor = isInput ? own.inputs[slot] : own.outputs[slot - own.inputs.size()];
    if (!tensor || problem.isAside(op))
        return {};
    KeptPlace place{problem.storageOf(tensor)};
    const TensorRole role = problem.graph().at(place.storage).role;
    if (role != TensorRole::Activation && role != TensorRole::Input)
        return {};
    place.isReadAgain = isInput && plan.recomputed[op] && own.mirror;
    const auto &makers = problem.setting().model->index->uses().producers[at(place.storage)];
    if (makers.empty())
        return place;
    const std::size_t maker = at(makers.front());
    // What runs again with others starts from what those before it made in the forward pass.
    const bool isBeginning = plan.recomputed[op]
        && (plan.recomputedWith[op] < 0 ? op != maker
                                        : plan.recomputedWith[op] != plan.recomputedWith[maker]);
    place.again = plan.recomputed[maker] && !isBeginning
        && (plan.stageOf.empty() || plan.stageOf[maker] == plan.stageOf[op]);
    return place;
}

std::int64_t keptBytes(const PartitionProblem &problem, std::size_t op, const OperatorChoice &choice,
    std::size_t slot, const KeptPlace &place)
{
    if (!place.storage || choice.kept[slot] > 0 || !place.isReadAgain)
        return place.storage ? choice.kept[slot] : 0;
    return problem.localBytes(problem.graph().operators[op].inputs[slot], choice.inputs[slot]);
}

namespace {

/// By slot, what is kept and not computed again under some choice.
std::vector<KeptPlace> keptPlaces(const PartitionProblem &problem, std::size_t op, const StagePlan &plan)
{
    std::vector<KeptPlace> places;
    const auto &choices = problem.choicesOf(op);
    for (std::size_t slot = 0; slot < choices.front().kept.size(); ++slot) {
        KeptPlace place = keptPlace(problem, op, slot, plan);
        const bool isKept = place.storage && !place.again
            && (place.isReadAgain
                || std::any_of(choices.begin(), choices.end(),
                    [&](const OperatorChoice &each) { return each.kept[slot] > 0; }));
        places.push_back(isKept ? place : KeptPlace{});
    }
    return places;
}

/// By tensor: inputs and outputs of operators, under any choice, of which it is kept.
std::vector<std::int32_t> keepersOf(const PartitionProblem &problem, const StagePlan &plan)
{
    std::vector<std::int32_t> keepers(problem.graph().tensors.size(), 0);
    for (std::size_t i = 0; i < problem.operatorCount(); ++i)
        for (const KeptPlace &place : keptPlaces(problem, i, plan))
            if (place.storage)
                ++keepers[at(place.storage)];
    return keepers;
}

/// Of weights that several stages read: how many operators of a stage do. Each of them holds it.
std::map<std::pair<TensorId, std::int32_t>, std::int32_t> readersByStage(
    const PartitionProblem &problem, const StagePlan &plan)
{
    std::map<std::pair<TensorId, std::int32_t>, std::int32_t> readers;
    std::map<TensorId, std::set<std::int32_t>> stages;
    for (std::size_t i = 0; i < problem.operatorCount(); ++i)
        for (const TensorId input : problem.graph().operators[i].inputs)
            if (input && !problem.isAside(i) && problem.weights().bytesOf(input).all() > 0) {
                ++readers[{input, plan.stageOf[i]}];
                stages[input].insert(plan.stageOf[i]);
            }
    std::erase_if(readers, [&](const auto &each) { return stages.at(each.first.first).size() < 2; });
    return readers;
}

/// By tensor: inputs of operators, under any choice, that read it again to make gradients of their weights.
std::vector<std::int32_t> deferrersOf(const PartitionProblem &problem)
{
    std::vector<std::int32_t> deferrers(problem.graph().tensors.size(), 0);
    for (std::size_t i = 0; i < problem.operatorCount(); ++i) {
        const std::vector<TensorId> &inputs = problem.graph().operators[i].inputs;
        for (std::size_t slot = 0; slot < inputs.size() && !problem.isAside(i); ++slot)
            if (std::any_of(problem.choicesOf(i).begin(), problem.choicesOf(i).end(),
                    [&](const OperatorChoice &choice) { return defers(problem, i, choice, slot); }))
                ++deferrers[at(problem.storageOf(inputs[slot]))];
    }
    return deferrers;
}

/// What an operator holds back to make gradients of its weights later.
double deferredBytes(const PartitionProblem &problem, std::size_t op, const OperatorChoice &choice,
    const std::vector<std::int32_t> &deferrers)
{
    const Operator &own = problem.graph().operators[op];
    double bytes = 0;
    for (std::size_t slot = 0; slot < own.inputs.size(); ++slot)
        if (defers(problem, op, choice, slot))
            bytes += static_cast<double>(problem.localBytes(own.inputs[slot], choice.inputs[slot]))
                / std::max(1, deferrers[at(problem.storageOf(own.inputs[slot]))]);
    for (std::size_t slot = 0; slot < own.outputs.size(); ++slot)
        if (defersGradient(problem, op, slot))
            bytes += static_cast<double>(problem.localBytes(own.outputs[slot], choice.outputGradients[slot]));
    return bytes;
}

} // namespace

HeldPricing::HeldPricing(
    const PartitionProblem &problem, std::shared_ptr<const StagePlan> stagePlan, bool splitsBackward)
    : plan(std::move(stagePlan))
    , keepers(keepersOf(problem, *plan))
    , deferrers(splitsBackward ? deferrersOf(problem) : std::vector<std::int32_t>{})
    , readers(readersByStage(problem, *plan))
{
}

std::int64_t passingBytes(const PartitionProblem &problem, std::size_t op, const OperatorChoice &choice)
{
    const Operator &own = problem.graph().operators[op];
    if (isView(own) || problem.isAside(op))
        return 0;
    std::int64_t bytes = 0;
    for (std::size_t slot = 0; slot < own.inputs.size(); ++slot)
        if (own.inputs[slot] && !choice.inputGradients[slot].isAbsent()
            && problem.graph().at(own.inputs[slot]).role == TensorRole::Activation)
            bytes += problem.localBytes(own.inputs[slot], choice.inputGradients[slot]);
    for (std::size_t slot = 0; slot < own.outputs.size(); ++slot)
        if (own.outputs[slot] && problem.gradientOf(own.outputs[slot]))
            bytes += problem.localBytes(own.outputs[slot], choice.outputGradients[slot]);
    return bytes;
}

double heldBytes(
    const PartitionProblem &problem, std::size_t op, const OperatorChoice &choice, const HeldPricing &held)
{
    const Operator &own = problem.graph().operators[op];
    const std::vector<std::int32_t> &stageOf = held.plan->stageOf;
    const HeldPricing::Stage &stage = held.stages[at(stageOf[op])];
    double bytes = 0;
    for (std::size_t slot = 0; slot < own.inputs.size(); ++slot) {
        const TensorId tensor = own.inputs[slot];
        if (!tensor || problem.graph().at(tensor).role == TensorRole::Activation
            || choice.inputs[slot].isAbsent())
            continue;
        const WeightBytes &whole = problem.weights().bytesOf(tensor);
        if (whole.all() == 0)
            continue;
        const std::int32_t readers = std::max(1, problem.weights().readersOf(tensor));
        const auto accumulation = problem.accumulationOf(op, slot, choice);
        // Of several readers one may have it summed over axes, and then states are cut over them.
        const double states = readers > 1
            ? *std::min_element(held.states.begin(), held.states.end())
            : held.states[indexOf(accumulation ? accumulation->sums : ShardAxes::None)];
        const auto here = held.readers.find({tensor, stageOf[op]});
        bytes += (static_cast<double>(whole.model) * held.model + static_cast<double>(whole.state) * states
                     + static_cast<double>(whole.gradient) * stage.held.gradients)
            / problem.setting().partsOf(choice.inputs[slot])
            / (here == held.readers.end() ? readers : here->second);
    }
    for (std::size_t slot = 0; slot < choice.kept.size(); ++slot)
        if (const KeptPlace place = keptPlace(problem, op, slot, *held.plan); place.storage && !place.again)
            if (const std::int64_t kept = keptBytes(problem, op, choice, slot, place); kept > 0)
                bytes +=
                    stage.held.microBatches * static_cast<double>(kept) / held.keepers[at(place.storage)];
    if (stage.held.deferred > 0 && choice.weightGradients > 0)
        bytes += stage.held.deferred * deferredBytes(problem, op, choice, held.deferrers);
    return bytes;
}

double heldSeconds(
    const PartitionProblem &problem, std::size_t op, const OperatorChoice &choice, const HeldPricing &held)
{
    const HeldPricing::Stage &stage = held.stages[at(held.plan->stageOf[op])];
    // What can take turns passes less.
    const bool isWhole = !held.plan->units || held.plan->units->unitOf[op] < 0;
    if (isWhole && std::isfinite(stage.mostPassing)
        && static_cast<double>(passingBytes(problem, op, choice)) > stage.mostPassing)
        return std::numeric_limits<double>::infinity();
    return stage.secondsPerByte > 0 ? stage.secondsPerByte * heldBytes(problem, op, choice, held) : 0;
}

std::vector<double> leastKeptBytes(const PartitionProblem &problem, const StagePlan &plan)
{
    const std::vector<std::int32_t> keepers = keepersOf(problem, plan);
    std::vector<double> bytes;
    for (std::size_t i = 0; i < problem.operatorCount(); ++i) {
        const std::vector<KeptPlace> places = keptPlaces(problem, i, plan);
        double least = std::numeric_limits<double>::infinity();
        for (const OperatorChoice &choice : problem.choicesOf(i)) {
            double own = 0;
            for (std::size_t slot = 0; slot < places.size(); ++slot)
                if (const KeptPlace &place = places[slot]; place.storage)
                    own += static_cast<double>(keptBytes(problem, i, choice, slot, place))
                        / keepers[at(place.storage)];
            least = std::min(least, own);
        }
        bytes.push_back(std::isfinite(least) ? least : 0);
    }
    return bytes;
}

} // namespace planloom
