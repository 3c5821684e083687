#include "widgets/main/selection_commands.h"

#include <algorithm>
#include <set>
#include <string>

namespace planloom {

namespace {

std::size_t at(OperatorId op)
{
    return static_cast<std::size_t>(op.index);
}

OperatorId idOf(std::size_t index)
{
    return OperatorId{static_cast<std::int32_t>(index)};
}

/// Kind, direction and shapes as one text.
std::string signatureOf(const Graph &graph, const Operator &op)
{
    std::string text = std::string(nameOf(op.kind)) + '/' + std::to_string(static_cast<int>(op.direction));
    const auto add = [&](const std::vector<TensorId> &tensors) {
        text += '/';
        for (const TensorId tensor : tensors) {
            if (!tensor.valid()) {
                text += "-;";
                continue;
            }
            for (const std::int64_t size : graph.at(tensor).type.shape)
                text += std::to_string(size) + ',';
            text += ';';
        }
    };
    add(op.inputs);
    add(op.outputs);
    return text;
}

bool allForward(const Graph &graph, const std::vector<OperatorId> &operators)
{
    return std::all_of(operators.begin(), operators.end(),
        [&graph](OperatorId op) { return graph.at(op).direction == Direction::Forward; });
}

std::vector<OperatorId> marked(const std::vector<char> &marks)
{
    std::vector<OperatorId> operators;
    for (std::size_t i = 0; i < marks.size(); ++i) {
        if (marks[i])
            operators.push_back(idOf(i));
    }
    return operators;
}

/// Spreads marks along the data flow, in operator order or against it, which a sorted graph allows in one pass.
std::vector<OperatorId> cone(const SelectorIndex &index, const std::vector<OperatorId> &selected, bool forwards)
{
    const Graph &graph = index.graph();
    const bool onlyForward = allForward(graph, selected);
    std::vector<char> marks(graph.operators.size(), 0);
    for (const OperatorId op : selected)
        marks[at(op)] = 1;
    const auto spread = [&](const std::vector<TensorId> &tensors, const std::vector<std::vector<OperatorId>> &uses) {
        for (const TensorId tensor : tensors) {
            if (!tensor.valid())
                continue;
            for (const OperatorId next : uses[static_cast<std::size_t>(tensor.index)]) {
                if (!onlyForward || graph.at(next).direction == Direction::Forward)
                    marks[at(next)] = 1;
            }
        }
    };
    if (forwards) {
        for (std::size_t i = 0; i < graph.operators.size(); ++i) {
            if (marks[i])
                spread(graph.operators[i].outputs, index.uses().consumers);
        }
    } else {
        for (std::size_t i = graph.operators.size(); i-- > 0;) {
            if (marks[i])
                spread(graph.operators[i].inputs, index.uses().producers);
        }
    }
    return marked(marks);
}

} // namespace

std::vector<OperatorId> similarOperators(const Graph &graph, const std::vector<OperatorId> &selected)
{
    std::set<std::string> wanted;
    std::set<OperatorKind> kinds;
    for (const OperatorId op : selected) {
        wanted.insert(signatureOf(graph, graph.at(op)));
        kinds.insert(graph.at(op).kind);
    }
    std::vector<OperatorId> found;
    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
        const Operator &op = graph.operators[i];
        if (kinds.contains(op.kind) && wanted.contains(signatureOf(graph, op)))
            found.push_back(idOf(i));
    }
    return found;
}

std::vector<OperatorId> operatorsOnDevice(const Plan &plan, DeviceId device)
{
    std::vector<OperatorId> found;
    for (std::size_t i = 0; i < plan.decisions.size(); ++i) {
        const auto &devices = plan.decisions[i].devices;
        if (std::find(devices.begin(), devices.end(), device) != devices.end())
            found.push_back(idOf(i));
    }
    return found;
}

std::vector<OperatorId> operatorsOnSameDevices(const Plan &plan, const std::vector<OperatorId> &selected)
{
    std::set<DeviceId> wanted;
    for (const OperatorId op : selected) {
        if (at(op) < plan.decisions.size())
            wanted.insert(plan.decisions[at(op)].devices.begin(), plan.decisions[at(op)].devices.end());
    }
    std::vector<OperatorId> found;
    for (std::size_t i = 0; i < plan.decisions.size(); ++i) {
        const auto &devices = plan.decisions[i].devices;
        if (std::any_of(devices.begin(), devices.end(), [&](DeviceId device) { return wanted.contains(device); }))
            found.push_back(idOf(i));
    }
    return found;
}

std::vector<OperatorId> operatorsOfSameStages(const Plan &plan, const std::vector<OperatorId> &selected)
{
    std::set<StageId> wanted;
    for (const OperatorId op : selected) {
        if (at(op) < plan.decisions.size() && plan.decisions[at(op)].stage.valid())
            wanted.insert(plan.decisions[at(op)].stage);
    }
    std::vector<OperatorId> found;
    for (std::size_t i = 0; i < plan.decisions.size(); ++i) {
        if (wanted.contains(plan.decisions[i].stage))
            found.push_back(idOf(i));
    }
    return found;
}

std::vector<OperatorId> predecessorsOf(const SelectorIndex &index, const std::vector<OperatorId> &selected)
{
    return cone(index, selected, false);
}

std::vector<OperatorId> successorsOf(const SelectorIndex &index, const std::vector<OperatorId> &selected)
{
    return cone(index, selected, true);
}

std::vector<OperatorId> allForwardOperators(const Graph &graph)
{
    return invertedSelection(graph, {});
}

std::vector<OperatorId> invertedSelection(const Graph &graph, const std::vector<OperatorId> &selected)
{
    std::vector<OperatorId> found;
    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
        if (graph.operators[i].direction == Direction::Forward && !std::binary_search(selected.begin(), selected.end(), idOf(i)))
            found.push_back(idOf(i));
    }
    return found;
}

} // namespace planloom
