#include "engine/search/bounds/way_weights.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace planloom {

WeightCounts::WeightCounts(std::size_t tensors)
    : shared(tensors, 0)
    , sharedUpdate(tensors, 0)
    , gathered(tensors, 0)
{
    reduced.fill(std::vector<double>(tensors, 0));
}

bool WeightCounts::hasTraffic(TensorId weight) const
{
    const std::size_t t = at(weight);
    return shared[t] + gathered[t] > 0
        || std::any_of(reduced.begin(), reduced.end(), [t](const auto &each) { return each[t] > 0; });
}

WayWeights::WayWeights(const BoundedStep &step)
    : m_step(step)
    , m_read(step.least.size())
    , m_sharedBy(step.problem.graph().tensors.size(), -1)
{
    for (const Meeting &meeting : step.problem.meetings()) {
        if (meeting.producer >= 0)
            continue;
        std::map<std::int32_t, std::int32_t> readBy; // first reader by stage
        for (const auto &[reader, slot] : meeting.readers) {
            const auto [own, fresh] = readBy.try_emplace(step.stageOf(at(reader)), reader);
            own->second = std::min(own->second, reader);
        }
        // Where the backward pass is split, products alone make gradients of weights in the last pass.
        const bool isLast =
            !step.splits || step.problem.choiceOf(at(meeting.firstReader()), 0).weightGradients > 0;
        if (readBy.size() > 1 && step.trains && step.problem.gradientOf(meeting.tensor)) {
            m_sharedBy[at(meeting.tensor)] = static_cast<std::int32_t>(m_shared.size());
            Shared &shared = m_shared.emplace_back(Shared{.weight = meeting.tensor});
            for (const auto &[stage, reader] : readBy)
                shared.stages.push_back(stage);
            for (const auto &[reader, slot] : meeting.readers)
                ++m_readersIn[{meeting.tensor, step.stageOf(at(reader))}];
        }
        for (const auto &[stage, reader] : readBy)
            m_read[at(stage)].push_back({reader, meeting.tensor, isLast && readBy.size() == 1});
    }
    if (step.configuration.zero >= 2)
        findAtEnds();
}

void WayWeights::findAtEnds()
{
    m_atEnds.resize(m_sharedBy.size());
    for (const std::vector<Read> &read : m_read) {
        std::int32_t first = std::numeric_limits<std::int32_t>::max();
        std::int32_t last = -1;
        for (const Read &each : read)
            if (m_step.problem.gradientOf(each.weight)) {
                first = std::min(first, each.reader);
                last = std::max(last, each.reader);
            }
        for (const Read &each : read)
            m_atEnds[at(each.weight)] = {each.reader == first, each.reader == last};
    }
}

void WayWeights::addReductions(const StepWay &way, double counts, WeightCounts &weights) const
{
    const auto add = [&](std::int32_t stage, std::int32_t until) {
        for (const Read &read : m_read[at(stage)])
            if (read.isLast && read.reader <= until)
                weights.reduced[static_cast<std::size_t>(way.as)][at(read.weight)] += counts;
    };
    if (way.behind >= 0)
        add(m_step.stageOf(at(way.behind)), way.behind);
    for (const std::int32_t later : way.later)
        add(later, std::numeric_limits<std::int32_t>::max());
    for (const Shared &shared : m_shared)
        if (way.shared && std::any_of(shared.stages.begin(), shared.stages.end(), [&](std::int32_t s) {
                return at(s % m_step.configuration.ranks) == way.rank;
            })) {
            weights.shared[at(shared.weight)] += counts;
            weights.sharedUpdate[at(shared.weight)] += way.sharedUpdate ? counts : 0;
        }
}

void WayWeights::addGathering(std::int32_t reader, double counts, WeightCounts &weights) const
{
    for (const Read &read : m_read[at(m_step.stageOf(at(reader)))])
        if (read.reader <= reader)
            weights.gathered[at(read.weight)] += counts;
}

void WayWeights::addSeconds(std::size_t op, const OperatorChoice &choice, const StageCounts &stage,
    const WeightCounts &weights, double &seconds) const
{
    const PartitionProblem &problem = m_step.problem;
    const ModelWeights &all = problem.weights();
    const Reductions &reductions = m_step.reductions;
    const std::vector<TensorId> &inputs = problem.graph().operators[op].inputs;
    if (m_step.configuration.zero < 2 && !stage.hasTraffic()
        && std::none_of(
            inputs.begin(), inputs.end(), [&](TensorId input) { return input && weights.hasTraffic(input); }))
        return;
    for (std::size_t slot = 0; slot < inputs.size(); ++slot) {
        const TensorId weight = inputs[slot];
        const auto adds = problem.accumulationOf(op, slot, choice);
        if (!adds)
            continue;
        // Each stage that reads a weight has it, and shares in what is done for it.
        const std::size_t w = at(weight);
        const bool isShared = m_sharedBy[w] >= 0;
        const double readersOfAll = std::max(1, all.readersOf(weight));
        const double readers = isShared ? m_readersIn.at({weight, m_step.stageOf(op)}) : readersOfAll;
        const double whole = 1.0 / problem.setting().partsOf(choice.inputs[slot]);
        const double share = whole / readers;
        const auto traffic = [&](double times, const WeightTraffic &each) {
            return times > 0 ? times * all.secondsOf(weight, each, share, readers) : 0;
        };
        const WeightTraffic again = reductions.leastGatheringAgain(adds->sums, all.layerWith(weight));
        const WeightTraffic reducing = reductions.leastReducing(adds->sums, all.layerWith(weight));
        if (!m_atEnds.empty() && !isShared) {
            const double passes = m_step.splits ? stage.weights : stage.backward;
            const AtEnds &ends = m_atEnds[w];
            if (passes > 0)
                seconds += passes * reductions.inPassSeconds(weight, adds->sums, share, readers);
            seconds += traffic((ends.first ? stage.forward : 0) + (ends.last ? stage.backward : 0), again)
                + traffic(ends.first ? passes : 0, reducing);
        }
        for (std::size_t as = 0; as < kReducedAs; ++as)
            if (const double times = (isShared ? 0 : stage.reductions[as]) + weights.reduced[as][w];
                times > 0)
                seconds += traffic(times, reductions.leastReduction(adds->sums, static_cast<ReducedAs>(as)));
        if (weights.shared[w] > 0)
            seconds += weights.shared[w] / readersOfAll
                * reductions.sharedSeconds(m_shared[at(m_sharedBy[w])].stages,
                    std::floor(all.secondsOf(weight, {.perReducedByte = 1}, whole, 1)), adds->sums);
        if (!isShared)
            seconds += traffic(stage.gathering + stage.reducing, again) + traffic(stage.reducing, reducing);
        seconds += weights.gathered[w]
                * all.secondsOf(
                    weight, reductions.leastGatheringAhead(adds->sums), whole / readersOfAll, readersOfAll)
            + traffic(stage.gather, reductions.leastGathering(adds->sums))
            + (stage.update * share + weights.sharedUpdate[w] * whole / readersOfAll)
                * all.updateSeconds(weight) / reductions.updaters(adds->sums);
    }
}

} // namespace planloom
