#include "engine/search/memory/turn_planner.h"

#include "engine/search/memory/operator_memory.h"
#include "engine/search/time/runs_again.h"
#include "engine/table/selector_index.h"

#include <algorithm>
#include <set>

namespace planloom {

namespace {

/// Of more a part is hardly worth a kernel.
constexpr std::int32_t kMostTurns = 16;

} // namespace

TurnPlanner::TurnPlanner(const PartitionProblem &problem, const TurnUnits &units)
    : m_problem(problem)
    , m_units(units)
    , m_graph(*problem.setting().model->graph)
{
}

const OperatorInTurns *TurnPlanner::inTurns(std::size_t op, std::int32_t choice, std::int32_t turns)
{
    Split split = m_units.splits[op];
    split.parts = turns;
    const auto [known, fresh] = m_known.try_emplace({m_problem.kindOf(op), choice, split.dimension, turns});
    if (fresh)
        known->second = m_problem.inTurns(op, choice, split);
    return known->second ? &*known->second : nullptr;
}

bool TurnPlanner::staysInPlace(const std::vector<std::int32_t> &choice, std::int32_t unit) const
{
    const Uses &uses = m_problem.setting().model->index->uses();
    for (const OperatorId op : m_units.units[at(unit)].operators) {
        const OperatorChoice &own = m_problem.choiceOf(at(op), choice[at(op)]);
        const auto &inputs = m_graph.at(op).inputs;
        for (std::size_t slot = 0; slot < inputs.size(); ++slot)
            for (const OperatorId maker :
                inputs[slot] ? uses.producers[at(inputs[slot])] : std::vector<OperatorId>{}) {
                if (at(maker) >= m_problem.operatorCount() || m_units.regionOf[at(op)] < 0
                    || m_units.regionOf[at(maker)] != m_units.regionOf[at(op)])
                    continue;
                const OperatorChoice &made = m_problem.choiceOf(at(maker), choice[at(maker)]);
                const auto &outputs = m_graph.at(maker).outputs;
                const auto output = static_cast<std::size_t>(
                    std::find(outputs.begin(), outputs.end(), inputs[slot]) - outputs.begin());
                if (made.outputs[output] != own.inputs[slot]
                    || (!own.inputGradients[slot].isAbsent()
                        && made.outputGradients[output] != own.inputGradients[slot]))
                    return false;
            }
    }
    return true;
}

std::optional<std::int32_t> TurnPlanner::moreTurns(
    const std::vector<std::int32_t> &choice, std::int32_t unit, std::int32_t turns)
{
    const auto &operators = m_units.units[at(unit)].operators;
    if (!staysInPlace(choice, unit))
        return std::nullopt;
    while (++turns <= kMostTurns)
        if (std::all_of(operators.begin(), operators.end(),
                [&](OperatorId op) { return inTurns(at(op), choice[at(op)], turns) != nullptr; }))
            return turns;
    return std::nullopt;
}

std::vector<std::int32_t> TurnPlanner::turnsOf(const StagePlan &plan) const
{
    std::vector<std::int32_t> turns;
    for (const TurnUnit &unit : m_units.units)
        turns.push_back(plan.turns.empty() ? 1 : plan.turns[at(unit.operators.front())]);
    return turns;
}

/// A layer's backward operators run while what they read of it is there, other layers' is not.
std::vector<TurnPlanner::Layer> TurnPlanner::layersOf(
    const std::vector<std::int32_t> &choice, const StagePlan &plan) const
{
    using Key = std::pair<std::int32_t, std::int32_t>; // stage, and group of what is dropped
    const auto keyOf = [&](std::size_t op) {
        return Key{plan.stageOf[op], againWith(plan, static_cast<std::int32_t>(op))};
    };
    std::map<Key, Layer> layers;
    std::map<std::tuple<Key, TensorId, ShardLayout>, Again> again;
    for (std::size_t i = 0; i < m_problem.operatorCount(); ++i) {
        Layer &own = layers[keyOf(i)];
        own.stage = plan.stageOf[i];
        own.operators.push_back(i);
        const OperatorChoice &chosen = m_problem.choiceOf(i, choice[i]);
        const std::size_t inputs = m_graph.operators[i].inputs.size();
        for (std::size_t slot = 0; slot < chosen.kept.size(); ++slot) {
            const auto place = keptPlace(m_problem, i, slot, plan);
            const std::int64_t bytes = chosen.kept[slot]; // what running again needs alone dies before
            if (bytes == 0 || !place.storage || !place.again)
                continue;
            const std::size_t maker =
                at(m_problem.setting().model->index->uses().producers[at(place.storage)].front());
            if (Layer &read = layers[keyOf(maker)];
                keyOf(maker) != keyOf(i) && (read.operators.empty() || read.operators.back() != i))
                read.operators.push_back(i);
            const ShardLayout layout = slot < inputs ? chosen.inputs[slot] : chosen.outputs[slot - inputs];
            Again &item = again[{keyOf(maker), place.storage, formOf(layout)}];
            item.bytes = std::max(item.bytes, bytes);
            item.maker = maker;
            item.readers.emplace_back(i, slot);
        }
    }
    for (auto &[where, item] : again)
        layers[std::get<0>(where)].again.push_back(std::move(item));
    const std::vector<std::int64_t> waiting = gradientsWaiting(choice, plan);
    std::vector<Layer> all;
    for (auto &[key, layer] : layers) {
        for (const std::size_t op : layer.operators)
            layer.waiting.push_back(waiting[op]);
        all.push_back(std::move(layer));
    }
    return all;
}

std::vector<std::int64_t> TurnPlanner::gradientsWaiting(
    const std::vector<std::int32_t> &choice, const StagePlan &plan) const
{
    const Uses &uses = m_problem.setting().model->index->uses();
    std::vector<std::int64_t> waiting(m_problem.operatorCount(), 0);
    for (std::size_t maker = 0; maker < waiting.size(); ++maker)
        for (const TensorId output : m_graph.operators[maker].outputs) {
            if (!output || !m_problem.gradientOf(output))
                continue;
            bool isFirst = true; // of the pieces that the maker's backward operator reads, which counts one
            for (const OperatorId reader : uses.consumers[at(output)]) {
                const std::size_t r = at(reader);
                if (r >= waiting.size() || plan.stageOf[r] != plan.stageOf[maker]
                    || (m_units.regionOf[r] >= 0 && m_units.regionOf[r] == m_units.regionOf[maker]))
                    continue;
                // The gradients of a sum are those of its terms: no piece of its own.
                const OperatorKind kind = m_graph.operators[r].kind;
                if (kind == OperatorKind::Add || isView(m_graph.operators[r]))
                    continue;
                const auto &inputs = m_graph.operators[r].inputs;
                const auto slot = static_cast<std::size_t>(
                    std::find(inputs.begin(), inputs.end(), output) - inputs.begin());
                const ShardLayout layout = m_problem.choiceOf(r, choice[r]).inputGradients[slot];
                if (layout.isAbsent())
                    continue;
                const std::int64_t bytes = m_problem.localBytes(output, layout);
                for (std::size_t i = maker + (std::exchange(isFirst, false) ? 1 : 0); i < r; ++i)
                    if (plan.stageOf[i] == plan.stageOf[maker])
                        waiting[i] += bytes;
            }
        }
    return waiting;
}

TurnPlanner::Moment TurnPlanner::fullest(
    const std::vector<std::int32_t> &choice, const Layer &layer, const std::vector<std::int32_t> &turns)
{
    double whole = 0;
    std::map<std::int32_t, double> atOnce; // by unit
    for (const Again &item : layer.again) {
        const std::int32_t region = regionOf(item.maker, turns);
        const bool stays = region < 0
            || std::any_of(item.readers.begin(), item.readers.end(),
                [&](const auto &reader) { return regionOf(reader.first, turns) != region; });
        if (!stays)
            continue;
        whole += static_cast<double>(item.bytes);
        if (const std::int32_t unit = unitOf(item.maker); unit >= 0 && turns[at(unit)] == 1)
            atOnce[unit] += static_cast<double>(item.bytes);
    }
    Moment most;
    std::set<std::int32_t> regions;
    for (std::size_t o = 0; o < layer.operators.size(); ++o) {
        const std::size_t op = layer.operators[o];
        if (const std::int32_t region = regionOf(op, turns); region >= 0) {
            regions.insert(region);
            continue;
        }
        const double bytes = whole
            + static_cast<double>(
                passingBytes(m_problem, op, m_problem.choiceOf(op, choice[op])) + layer.waiting[o]);
        if (bytes > most.bytes)
            most = {bytes, unitOf(op)};
    }
    for (const std::int32_t region : regions)
        addRegion(choice, layer, region, turns, whole, most);
    double largest = 0;
    for (const auto &[unit, bytes] : atOnce)
        if (bytes > largest) {
            largest = bytes;
            most.largest = unit;
        }
    return most;
}

/// The gradients at a region's end stay until its last turn, those at its beginning add up from the first on;
/// what a turn computes again dies as its backward operators go through it.
void TurnPlanner::addRegion(const std::vector<std::int32_t> &choice, const Layer &layer, std::int32_t region,
    const std::vector<std::int32_t> &turns, double whole, Moment &most)
{
    const Uses &uses = m_problem.setting().model->index->uses();
    const auto isInside = [&](OperatorId op) {
        return m_graph.at(op).direction == Direction::Forward && regionOf(at(op), turns) == region;
    };
    const auto shares = [&](std::size_t op) -> const OperatorInTurns & {
        return *inTurns(op, choice[op], turns[at(unitOf(op))]);
    };
    std::vector<std::pair<std::size_t, double>> again; // by the forward operator whose backward one is last
    for (const Again &item : layer.again) {
        if (regionOf(item.maker, turns) != region)
            continue;
        std::size_t last = m_graph.operators.size();
        double share = 0;
        for (const auto &[reader, slot] : item.readers)
            if (regionOf(reader, turns) == region) {
                last = std::min(last, reader);
                share = std::max(share, shares(reader).kept[slot]);
            }
        if (share > 0)
            again.emplace_back(last, share * static_cast<double>(item.bytes));
    }
    double ends = 0;
    std::set<TensorId> sums;
    for (const std::size_t op : layer.operators) {
        if (regionOf(op, turns) != region)
            continue;
        const Operator &own = m_graph.operators[op];
        const OperatorChoice &chosen = m_problem.choiceOf(op, choice[op]);
        for (std::size_t slot = 0; slot < own.outputs.size(); ++slot) {
            if (!own.outputs[slot] || !m_problem.gradientOf(own.outputs[slot]))
                continue;
            const auto &readers = uses.consumers[at(own.outputs[slot])];
            if (std::any_of(readers.begin(), readers.end(), [&](OperatorId reader) {
                    return m_graph.at(reader).direction == Direction::Forward && !isInside(reader);
                }))
                ends += static_cast<double>(
                    m_problem.localBytes(own.outputs[slot], chosen.outputGradients[slot]));
        }
        for (std::size_t slot = 0; slot < own.inputs.size(); ++slot) {
            const TensorId input = own.inputs[slot];
            if (!input || chosen.inputGradients[slot].isAbsent()
                || m_graph.at(input).role != TensorRole::Activation)
                continue;
            const auto &makers = uses.producers[at(input)];
            if (std::none_of(makers.begin(), makers.end(), isInside) && sums.insert(input).second)
                ends += static_cast<double>(m_problem.localBytes(input, chosen.inputGradients[slot]));
        }
    }
    for (std::size_t o = 0; o < layer.operators.size(); ++o) {
        const std::size_t op = layer.operators[o];
        if (regionOf(op, turns) != region || isView(m_graph.operators[op]))
            continue;
        const Operator &own = m_graph.operators[op];
        const OperatorChoice &chosen = m_problem.choiceOf(op, choice[op]);
        double bytes = whole + ends + static_cast<double>(layer.waiting[o]);
        for (const auto &[last, held] : again)
            bytes += last <= op ? held : 0;
        for (std::size_t slot = 0; slot < own.outputs.size(); ++slot)
            if (const TensorId output = own.outputs[slot]; output && m_problem.gradientOf(output)) {
                const auto &readers = uses.consumers[at(output)];
                if (std::any_of(readers.begin(), readers.end(), isInside))
                    bytes += shares(op).outputGradients[slot]
                        * static_cast<double>(m_problem.localBytes(output, chosen.outputGradients[slot]));
            }
        for (std::size_t slot = 0; slot < own.inputs.size(); ++slot)
            if (own.inputs[slot] && !chosen.inputGradients[slot].isAbsent()
                && m_graph.at(own.inputs[slot]).role == TensorRole::Activation)
                bytes += shares(op).inputGradients[slot]
                    * static_cast<double>(
                        m_problem.localBytes(own.inputs[slot], chosen.inputGradients[slot]));
        if (bytes > most.bytes)
            most = {bytes, unitOf(op)};
    }
}

StagePlan TurnPlanner::within(
    const std::vector<std::int32_t> &choice, const StagePlan &plan, const std::vector<double> &room)
{
    std::vector<std::int32_t> turns(m_units.units.size(), 1);
    for (const Layer &layer : layersOf(choice, plan)) {
        Moment most = fullest(choice, layer, turns);
        while (most.bytes > room[at(layer.stage)]) {
            // Of what is fullest itself, or else of most that is there meanwhile.
            std::int32_t unit = most.unit;
            auto more = unit < 0 ? std::nullopt : moreTurns(choice, unit, turns[at(unit)]);
            if (!more && most.largest >= 0 && most.largest != unit) {
                unit = most.largest;
                more = moreTurns(choice, unit, 1);
            }
            if (!more)
                break;
            const std::int32_t before = std::exchange(turns[at(unit)], *more);
            const Moment after = fullest(choice, layer, turns);
            if (after.bytes >= most.bytes) {
                turns[at(unit)] = before;
                break;
            }
            most = after;
        }
    }
    StagePlan taken = plan;
    taken.turns.assign(m_problem.operatorCount(), 1);
    taken.regionOf.assign(m_problem.operatorCount(), -1);
    for (std::size_t u = 0; u < turns.size(); ++u)
        for (const OperatorId op : m_units.units[u].operators) {
            taken.turns[at(op)] = turns[u];
            taken.regionOf[at(op)] = regionOf(at(op), turns);
        }
    taken.runsAgain = runsAgain(*m_problem.setting().model, taken);
    return taken;
}

std::vector<std::int64_t> TurnPlanner::passing(const std::vector<std::int32_t> &choice, const StagePlan &plan)
{
    const std::vector<std::int32_t> turns = turnsOf(plan);
    std::vector<std::int64_t> most(at(plan.stages), 0);
    for (const Layer &layer : layersOf(choice, plan)) {
        std::int64_t &own = most[at(layer.stage)];
        own = std::max(own, static_cast<std::int64_t>(fullest(choice, layer, turns).bytes));
    }
    return most;
}

OperatorTimes TurnPlanner::timesOf(
    const std::vector<std::int32_t> &choice, const StagePlan &plan, OperatorTimes times)
{
    for (std::size_t i = 0; i < plan.turns.size(); ++i)
        if (plan.turns[i] > 1)
            if (const OperatorInTurns *turned = inTurns(i, choice[i], plan.turns[i])) {
                const OperatorChoice &atOnce = m_problem.choiceOf(i, choice[i]);
                times.forward[i] += turned->forward - atOnce.forward;
                times.backward[i] += turned->backward - atOnce.backward;
            }
    return times;
}

} // namespace planloom
