#include "engine/search/memory/held_limits.h"

#include "engine/table/selector_index.h"

#include <algorithm>
#include <limits>

namespace planloom {

namespace {

/// What passes nearly as many bytes passes as many.
constexpr double kAsMuch = 1 - 1e-3;

} // namespace

HeldLimits::HeldLimits(
    const PartitionProblem &problem, HeldPricing held, double gradients, std::int32_t ranks, Room room)
    : m_problem(problem)
    , m_held(std::move(held))
    , m_gradients(gradients)
    , m_ranks(static_cast<std::size_t>(ranks))
    , m_room(std::move(room))
{
    // Parts of weights, of their gradients and of what the optimizer keeps are whole bytes, rounded down.
    for (const Operator &op : problem.setting().model->graph->operators)
        m_room.limit += op.direction == Direction::Forward ? 4.0 * static_cast<double>(op.inputs.size()) : 0;
    for (std::size_t i = 0; i < problem.operatorCount(); ++i)
        for (std::size_t slot = 0; slot < problem.choiceOf(i, 0).kept.size(); ++slot)
            if (const auto place = keptPlace(problem, i, slot, *m_held.plan); place.storage && place.again)
                ++m_keptAgain[{place.storage, stageOf(i)}];
}

bool HeldLimits::add(
    std::size_t rank, const std::vector<std::int32_t> &choice, const std::vector<StageHeld> &heldBy)
{
    Limit limit{.rank = rank};
    for (std::size_t s = rank; s < heldBy.size(); s += m_ranks)
        limit.held.push_back({static_cast<double>(heldBy[s].microBatches),
            static_cast<double>(heldBy[s].deferred), heldBy[s].gradients ? m_gradients : 0});
    struct Passing {
        double bytes = 0;
        std::vector<std::int32_t> operators{};
        std::map<std::int32_t, double> again{};
        double all = 0;
    };
    std::map<std::int32_t, Passing> passing; // by stage
    for (std::size_t i = 0; i < choice.size(); ++i) {
        if (static_cast<std::size_t>(stageOf(i)) % m_ranks != rank)
            continue;
        const OperatorChoice &chosen = m_problem.choiceOf(i, choice[i]);
        Passing &own = passing[stageOf(i)];
        if (const auto bytes = static_cast<double>(passingBytes(m_problem, i, chosen)); bytes >= own.bytes) {
            if (bytes > own.bytes)
                own.operators.clear();
            own.bytes = bytes;
            own.operators.push_back(static_cast<std::int32_t>(i));
        }
        addAgain(i, chosen, own.again);
    }
    double most = 0;
    for (auto &[s, own] : passing) {
        double again = 0;
        for (const auto &[group, bytes] : own.again)
            again = std::max(again, bytes);
        std::erase_if(own.again, [again](const auto &each) { return each.second < again * kAsMuch; });
        own.all = own.bytes + again + m_room.beside[static_cast<std::size_t>(s)];
        most = std::max(most, own.all);
    }
    std::erase_if(passing, [most](const auto &each) { return each.second.all < most * kAsMuch; });
    for (const auto &[s, own] : passing) {
        const double part = 1 / static_cast<double>(passing.size());
        for (const std::int32_t op : own.operators)
            limit.passing[op] = part / static_cast<double>(own.operators.size());
        for (const auto &[group, bytes] : own.again)
            limit.again[{s, group}] = part / static_cast<double>(own.again.size());
        limit.beside += part * m_room.beside[static_cast<std::size_t>(s)];
    }
    if (std::find(m_limits.begin(), m_limits.end(), limit) != m_limits.end())
        return false;
    m_limits.push_back(std::move(limit));
    return true;
}

double HeldLimits::beyond(std::size_t limit, const std::vector<std::int32_t> &choice) const
{
    std::vector<double> alone(m_limits.size(), 0);
    alone[limit] = 1;
    const Prices prices = at(alone);
    double bytes = -prices.room;
    for (std::size_t i = 0; i < choice.size(); ++i)
        if (static_cast<std::size_t>(stageOf(i)) % m_ranks == m_limits[limit].rank)
            bytes += seconds(i, m_problem.choiceOf(i, choice[i]), prices);
    return bytes;
}

HeldLimits::Prices HeldLimits::at(const std::vector<double> &prices) const
{
    Prices all{.held = m_held, .passing = std::vector<double>(m_problem.operatorCount(), 0)};
    for (std::size_t s = 0; s < m_room.beside.size(); ++s)
        all.held.stages.push_back({.mostPassing = m_room.mostPassing[s % m_ranks]});
    for (std::size_t l = 0; l < m_limits.size(); ++l) {
        const Limit &limit = m_limits[l];
        if (prices[l] <= 0)
            continue;
        for (std::size_t i = 0; i < limit.held.size(); ++i) {
            HeldPricing::Stage &stage = all.held.stages[limit.rank + i * m_ranks];
            stage.secondsPerByte += prices[l];
            stage.held.microBatches += prices[l] * limit.held[i].microBatches; // divided below
            stage.held.deferred += prices[l] * limit.held[i].deferred;
            stage.held.gradients += prices[l] * limit.held[i].gradients;
        }
        for (const auto &[op, part] : limit.passing)
            all.passing[static_cast<std::size_t>(op)] += prices[l] * part;
        for (const auto &[group, part] : limit.again)
            all.again[group] += prices[l] * part;
        all.room += prices[l] * (m_room.limit - limit.beside);
    }
    for (HeldPricing::Stage &stage : all.held.stages)
        if (stage.secondsPerByte > 0)
            stage.held = {stage.held.microBatches / stage.secondsPerByte,
                stage.held.deferred / stage.secondsPerByte, stage.held.gradients / stage.secondsPerByte};
    return all;
}

double HeldLimits::seconds(std::size_t op, const OperatorChoice &choice, const Prices &prices) const
{
    double seconds = heldSeconds(m_problem, op, choice, prices.held);
    if (prices.passing[op] > 0)
        seconds += prices.passing[op] * static_cast<double>(passingBytes(m_problem, op, choice));
    if (prices.again.empty())
        return seconds;
    std::map<std::int32_t, double> again;
    addAgain(op, choice, again);
    for (const auto &[group, bytes] : again)
        if (const auto price = prices.again.find({stageOf(op), group}); price != prices.again.end())
            seconds += price->second * bytes;
    return seconds;
}

std::int32_t HeldLimits::groupOf(TensorId storage) const
{
    const OperatorId maker =
        m_problem.setting().model->index->uses().producers[static_cast<std::size_t>(storage.index)].front();
    return againWith(*m_held.plan, maker.index);
}

void HeldLimits::addAgain(
    std::size_t op, const OperatorChoice &choice, std::map<std::int32_t, double> &bytes) const
{
    for (std::size_t slot = 0; slot < choice.kept.size() && !m_keptAgain.empty(); ++slot) {
        const auto place = keptPlace(m_problem, op, slot, *m_held.plan);
        if (!place.storage || !place.again)
            continue;
        // Where several keep it in one layout it is there once.
        if (const std::int64_t kept = keptBytes(m_problem, op, choice, slot, place); kept > 0)
            bytes[groupOf(place.storage)] +=
                static_cast<double>(kept) / m_keptAgain.at({place.storage, stageOf(op)});
    }
}

} // namespace planloom
