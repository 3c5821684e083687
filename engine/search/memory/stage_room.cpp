#include "engine/search/memory/stage_room.h"

#include "engine/gallery/gallery_pipeline.h"

#include <cmath>
#include <numeric>

namespace planloom {

StageRoom::StageRoom(const PartitionProblem &problem, const HeldPricing &held,
    const std::vector<std::int32_t> &choice, const OperatorTimes &times, std::int32_t ranks)
    : m_problem(problem)
    , m_before(*held.plan)
    , m_ranks(static_cast<std::size_t>(ranks))
{
    const std::size_t operators = problem.operatorCount();
    const std::size_t all = problem.setting().model->graph->operators.size();
    m_nanoseconds.assign(all, 0);
    for (std::size_t i = 0; i < operators; ++i)
        m_nanoseconds[i] =
            std::llround(1e9 * (times.backward[i] + times.forward[i] * (1 + m_before.runsAgain[i])));

    // What operators hold is a sum over what moments count: of a micro-batch, of gradients and the rest.
    const auto bytesAt = [&](const MixedHeld &moment) {
        HeldPricing same = held;
        for (HeldPricing::Stage &stage : same.stages)
            stage.held = moment;
        std::vector<double> bytes(operators);
        for (std::size_t i = 0; i < operators; ++i)
            bytes[i] = heldBytes(problem, i, problem.choiceOf(i, choice[i]), same);
        return bytes;
    };
    const std::vector<double> weights = bytesAt({});
    const double ofWeights = std::accumulate(weights.begin(), weights.end(), 0.0);
    MixedHeld mean;
    const auto count = static_cast<double>(held.stages.size());
    for (const HeldPricing::Stage &stage : held.stages) {
        mean.microBatches += stage.held.microBatches / count;
        mean.deferred += stage.held.deferred / count;
        mean.gradients += stage.held.gradients / count;
    }
    const auto sumOf = [&](const MixedHeld &moment) {
        const std::vector<double> bytes = bytesAt(moment);
        return std::accumulate(bytes.begin(), bytes.end(), 0.0) - ofWeights;
    };
    const double kept = sumOf({1, 0, 0});
    const double deferred = mean.deferred > 0 ? sumOf({0, 1, 0}) : 0; // else it is not known
    const double gradients = sumOf({0, 0, 1});
    const auto ofAll = [&](const MixedHeld &moment) {
        return ofWeights + moment.microBatches * kept + moment.deferred * deferred
            + moment.gradients * gradients;
    };
    for (const HeldPricing::Stage &stage : held.stages)
        m_ofStages.push_back(ofAll(stage.held));
    m_bytesOfAll = ofAll(mean);
    m_bytes.assign(all, 0);
    const std::vector<double> bytes = bytesAt(mean);
    for (std::size_t i = 0; i < operators; ++i)
        m_bytes[i] = std::llround(bytes[i]);
}

std::optional<StagePlan> StageRoom::within(const std::vector<double> &room) const
{
    StageMeasure measure;
    measure.nanoseconds = m_nanoseconds;
    measure.bytes = m_bytes;
    const auto stages = static_cast<std::size_t>(m_before.stages);
    const auto perRank = static_cast<double>(stages / m_ranks);
    for (std::size_t s = 0; s < stages; ++s)
        measure.room.push_back(std::llround(room[s % m_ranks] / perRank * m_bytesOfAll / m_ofStages[s]));
    const auto found = pipelineStages(*m_problem.setting().model->index, m_before.stages, measure);
    if (!found)
        return std::nullopt;
    StagePlan plan = m_before;
    for (std::size_t s = 0; s < found->size(); ++s)
        for (const OperatorId op : (*found)[s])
            plan.stageOf[at(op)] = static_cast<std::int32_t>(s);
    if (plan.stageOf == m_before.stageOf)
        return std::nullopt;
    return plan;
}

} // namespace planloom
