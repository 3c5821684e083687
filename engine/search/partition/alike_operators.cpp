#include "engine/search/partition/alike_operators.h"

#include "engine/graph/operators/catalogue.h"
#include "engine/graph/operators/gradient_flow.h"
#include "engine/table/selector_index.h"

#include <algorithm>
#include <sstream>
#include <string>
#include <unordered_map>

namespace planloom {

namespace {

bool fuses(const Operator &op)
{
    const OperatorCategory category = categoryOf(op);
    return category == OperatorCategory::Elementwise || category == OperatorCategory::Activation;
}

void write(std::ostream &out, const Attribute &value)
{
    std::visit(
        [&](const auto &each) {
            if constexpr (requires { each.begin(), each.front(), each.data(); }
                && !std::is_same_v<std::decay_t<decltype(each)>, std::string>) {
                for (const auto &element : each)
                    out << element << ',';
            } else {
                out << each;
            }
        },
        value);
}

} // namespace

LaunchNeighbours::LaunchNeighbours(const Graph &graph)
    : m_graph(graph)
{
    m_before.resize(m_graph.operators.size());
    OperatorId last;
    for (std::size_t i = 0; i < m_graph.operators.size(); ++i) {
        if (isView(m_graph.operators[i]))
            continue;
        m_before[i] = last;
        last = {static_cast<std::int32_t>(i)};
    }
}

/// As launches are shared (lowering/program/program_builder.cpp): element by element, with what was just
/// made.
bool LaunchNeighbours::joins(OperatorId op) const
{
    const OperatorId before = this->before(op);
    const Operator &own = m_graph.at(op);
    if (!before || !fuses(own) || own.direction == Direction::Optimizer)
        return false;
    const Operator &mate = m_graph.at(before);
    if (!fuses(mate) || mate.direction != own.direction || mate.outputs.empty() || own.outputs.empty())
        return false;
    const bool reads = std::any_of(own.inputs.begin(), own.inputs.end(), [&](TensorId input) {
        return input && std::find(mate.outputs.begin(), mate.outputs.end(), input) != mate.outputs.end();
    });
    const auto elements = [&](const Operator &of) {
        std::int64_t most = 0;
        for (const TensorId output : of.outputs)
            if (output)
                most = std::max(most, elementCount(m_graph.at(output).type.shape));
        return most;
    };
    return reads && elements(own) == elements(mate);
}

std::vector<std::int32_t> alikeOperators(const Model &model, const Plan &plan, const StorageTypes &types)
{
    const Graph &graph = *model.graph;
    const LaunchNeighbours neighbours(graph);
    const std::vector<bool> ofWeights = gradientsOfWeights(graph);
    const auto describe = [&](std::ostream &key, OperatorId each) {
        const Operator &op = graph.at(each);
        const auto i = at(each);
        key << static_cast<int>(op.kind) << ' ' << toString(op.annotation) << ' '
            << model.batch->operatorDimension[i] << ' ' << neighbours.joins(each) << ' ';
        for (const Dimension &dimension : op.annotation.dimensions)
            key << dimension.size << ':' << static_cast<int>(dimension.mark) << ' ';
        for (std::size_t slot = 0; slot < op.inputs.size(); ++slot)
            key << (op.inputs[slot] ? static_cast<int>(types.read(each, slot)) : -1) << ',';
        for (std::size_t slot = 0; slot < op.outputs.size(); ++slot)
            key << (op.outputs[slot] ? static_cast<int>(types.made(each, slot)) : -1)
                << (op.outputs[slot] && ofWeights[at(op.outputs[slot])] ? 'w' : ';');
        const OperatorDecision &decision = plan.decisions[i];
        key << static_cast<int>(arithmeticOf(graph, op, decision.precision))
            << static_cast<int>(decision.attention) << '|';
    };
    std::vector<std::int32_t> numbers(graph.operators.size(), -1);
    std::unordered_map<std::string, std::int32_t> known;
    for (std::size_t i = 0; i < model.index->forwardCount(); ++i) {
        const Operator &op = graph.operators[i];
        std::ostringstream key;
        describe(key, {static_cast<std::int32_t>(i)});
        for (const auto &[name, value] : op.attributes.all()) {
            key << name << '=';
            write(key, value);
            key << ' ';
        }
        key << op.attributes.definition().get();
        if (op.mirror)
            describe(key, op.mirror);
        numbers[i] = known.try_emplace(key.str(), static_cast<std::int32_t>(known.size())).first->second;
    }
    return numbers;
}

} // namespace planloom
