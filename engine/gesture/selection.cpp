#include "engine/gesture/selection.h"

#include "engine/base/ids.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

namespace planloom {

namespace {

OperatorId idOf(std::size_t index)
{
    return OperatorId{static_cast<std::int32_t>(index)};
}

/// The shapes of an operator as text.
std::string shapesOf(const Graph &graph, const Operator &op)
{
    std::string text;
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

/// "denselayer#" of "denselayer12".
std::string withoutNumbers(const std::string &name)
{
    std::string text;
    for (std::size_t i = 0; i < name.size(); ++i) {
        const bool digit = std::isdigit(static_cast<unsigned char>(name[i])) != 0;
        if (!digit)
            text += name[i];
        else if (text.empty() || text.back() != '#')
            text += '#';
    }
    return text;
}

/// Places in the model, in which the copies of a module are one.
class ModulePlaces
{
public:
    explicit ModulePlaces(const Graph &graph)
        : m_paths(graph.scopes.size())
        , m_places(graph.scopes.size())
        , m_repeated(graph.scopes.size(), 0)
    {
        using Siblings = std::tuple<std::int32_t, std::int32_t, std::string>;
        std::map<Siblings, std::int32_t> copies;
        const auto siblings = [](const Scope &scope) {
            return Siblings{scope.parent.index, scope.copyClass, withoutNumbers(scope.name)};
        };
        for (const Scope &scope : graph.scopes) {
            if (scope.copyClass >= 0)
                ++copies[siblings(scope)];
        }
        // Parents stand before their children.
        for (std::size_t i = 1; i < graph.scopes.size(); ++i) {
            const Scope &scope = graph.scopes[i];
            const auto parent = static_cast<std::size_t>(std::max(scope.parent.index, 0));
            const bool copy = scope.copyClass >= 0 && copies[siblings(scope)] > 1;
            m_paths[i] = m_paths[parent] + scope.name + '.';
            m_places[i] = m_places[parent] + '.'
                + (copy ? withoutNumbers(scope.name) + '/' + std::to_string(scope.copyClass) : scope.name);
            m_repeated[i] = copy || m_repeated[parent] != 0 ? 1 : 0;
        }
    }

    bool isRepeated(const Operator &op) const { return op.scope.valid() && m_repeated[at(op.scope)] != 0; }
    /// "c_fc": the name within the module.
    std::string_view shortNameOf(const Operator &op) const
    {
        const std::string_view path =
            op.scope.valid() ? std::string_view(m_paths[at(op.scope)]) : std::string_view{};
        const std::string_view name = op.name;
        return name.starts_with(path) ? name.substr(path.size()) : name;
    }
    std::string of(const Operator &op) const
    {
        return (op.scope.valid() ? m_places[at(op.scope)] : std::string{}) + ':'
            + std::string(shortNameOf(op));
    }

private:
    std::vector<std::string> m_paths; ///< By scope: "transformer.h.3.attn."
    std::vector<std::string> m_places; ///< By scope: the same with one name for all copies.
    std::vector<char> m_repeated; ///< By scope: it or one around it has copies.
};

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

/// Spreads marks along the data flow, in operator order or against it, which a sorted graph allows in one
/// pass.
std::vector<OperatorId> cone(
    const SelectorIndex &index, const std::vector<OperatorId> &selected, bool forwards)
{
    const Graph &graph = index.graph();
    const bool onlyForward = allForward(graph, selected);
    std::vector<char> marks(graph.operators.size(), 0);
    for (const OperatorId op : selected)
        marks[at(op)] = 1;
    const auto spread = [&](const std::vector<TensorId> &tensors,
                            const std::vector<std::vector<OperatorId>> &uses) {
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

std::vector<OperatorId> similarOperators(
    const Graph &graph, const std::vector<OperatorId> &selected, std::stop_token stop)
{
    using Kind = std::pair<OperatorKind, Direction>;
    const auto kindOf = [](const Operator &op) { return Kind{op.kind, op.direction}; };
    std::set<Kind> kinds; // only operators of these kinds are looked at closely
    for (const OperatorId op : selected)
        kinds.insert(kindOf(graph.at(op)));
    const ModulePlaces places(graph);
    const auto keyOf = [&](const Operator &op) {
        return std::tuple{op.kind, op.direction,
            places.isRepeated(op) ? places.of(op) : std::string(places.shortNameOf(op)),
            places.isRepeated(op)};
    };
    using Key = decltype(keyOf(graph.operators.front()));
    std::map<Key, std::vector<OperatorId>> alike;
    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
        if (i % 1024 == 0 && stop.stop_requested())
            return {};
        if (kinds.contains(kindOf(graph.operators[i])))
            alike[keyOf(graph.operators[i])].push_back(idOf(i));
    }
    std::vector<char> marks(graph.operators.size(), 0);
    std::set<std::tuple<OperatorKind, Direction, std::string>> shapes; // of those that nothing else tells
    for (const OperatorId op : selected) {
        const Operator &itself = graph.at(op);
        const auto &found = alike[keyOf(itself)];
        for (const OperatorId other : found)
            marks[at(other)] = 1;
        if (found.size() == 1)
            shapes.emplace(itself.kind, itself.direction, shapesOf(graph, itself));
    }
    for (std::size_t i = 0; i < graph.operators.size() && !shapes.empty(); ++i) {
        const Operator &op = graph.operators[i];
        // Those that their place or name tells are like their own.
        if (kinds.contains(kindOf(op)) && alike[keyOf(op)].size() == 1
            && shapes.contains({op.kind, op.direction, shapesOf(graph, op)}))
            marks[i] = 1;
    }
    return marked(marks);
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

std::vector<DeviceId> devicesOf(const Plan &plan, OperatorId op)
{
    std::vector<DeviceId> devices;
    if (op.valid() && at(op) < plan.decisions.size())
        devices = plan.decisions[at(op)].devices;
    std::sort(devices.begin(), devices.end());
    devices.erase(std::unique(devices.begin(), devices.end()), devices.end());
    return devices;
}

std::vector<OperatorId> operatorsOnSameDevices(const Plan &plan, const std::vector<OperatorId> &selected)
{
    std::set<std::vector<DeviceId>> wanted;
    for (const OperatorId op : selected) {
        if (auto devices = devicesOf(plan, op); !devices.empty())
            wanted.insert(std::move(devices));
    }
    std::vector<OperatorId> found;
    for (std::size_t i = 0; i < plan.decisions.size(); ++i) {
        if (wanted.contains(devicesOf(plan, idOf(i))))
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

std::vector<OperatorId> allOperators(const Graph &graph)
{
    return invertedSelection(graph, {});
}

std::vector<OperatorId> invertedSelection(const Graph &graph, const std::vector<OperatorId> &selected)
{
    std::vector<OperatorId> found;
    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
        if (!std::binary_search(selected.begin(), selected.end(), idOf(i)))
            found.push_back(idOf(i));
    }
    return found;
}

} // namespace planloom
