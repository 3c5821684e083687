#include "engine/frontend/onnx/onnx_order.h"

#include "engine/frontend/onnx/parameters/onnx_parameters.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace planloom {

namespace {

constexpr std::size_t kNamedInCircle = 5;

std::string labelOf(const OnnxNode &node)
{
    const std::string name = !node.name.empty() ? node.name
        : node.outputs.empty()                  ? ""
                                                : node.outputs.front();
    return "'" + name + "' (" + node.type + ")";
}

Error broken(std::string message, const std::string &where)
{
    return Error{ErrorCode::InvalidInput, std::move(message), "export the model anew", "node:" + where};
}

/// The nodes of one circle among those that were never ready.
std::string circleAmong(const OnnxGraph &graph, const std::vector<std::vector<std::size_t>> &readers,
    const std::vector<std::size_t> &waiting)
{
    // From any waiting node, walking to a waiting reader's producer must come round in the end.
    std::vector<std::size_t> producerOf(graph.nodes.size(), graph.nodes.size());
    for (std::size_t node = 0; node < graph.nodes.size(); ++node) {
        for (const std::size_t reader : readers[node]) {
            if (waiting[node] > 0 && waiting[reader] > 0)
                producerOf[reader] = node;
        }
    }
    std::size_t at = 0;
    while (at < waiting.size() && (waiting[at] == 0 || producerOf[at] == graph.nodes.size()))
        ++at;
    std::vector<std::size_t> seenAt(graph.nodes.size(), 0);
    std::vector<std::size_t> path;
    while (at < graph.nodes.size() && seenAt[at] == 0) {
        path.push_back(at);
        seenAt[at] = path.size();
        at = producerOf[at];
    }
    if (at >= graph.nodes.size())
        return {};
    path.erase(path.begin(), path.begin() + static_cast<std::ptrdiff_t>(seenAt[at] - 1));
    std::reverse(path.begin(), path.end());
    std::string names;
    for (std::size_t i = 0; i < std::min(path.size(), kNamedInCircle); ++i)
        names += (i == 0 ? "" : ", ") + labelOf(graph.nodes[path[i]]);
    if (path.size() > kNamedInCircle)
        names += " and " + std::to_string(path.size() - kNamedInCircle) + " more";
    return names;
}

} // namespace

Result<std::vector<std::size_t>> orderOfNodes(const OnnxGraph &graph)
{
    constexpr std::size_t kGiven = static_cast<std::size_t>(-1);
    std::unordered_map<std::string_view, std::size_t> makers;
    makers.reserve(graph.nodes.size() + graph.initializers.size());
    for (const OnnxValue &input : graph.inputs) {
        if (!makers.emplace(input.name, kGiven).second)
            return broken("the graph has two inputs called '" + input.name + "'", input.name);
    }
    std::unordered_set<std::string_view> stored;
    for (const StoredTensor &tensor : graph.initializers) {
        if (!stored.insert(tensor.name).second)
            return broken("the graph has two initializers called '" + tensor.name + "'", tensor.name);
        makers.emplace(tensor.name, kGiven);
    }
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
        for (const std::string &output : graph.nodes[i].outputs) {
            if (output.empty())
                continue;
            const auto [maker, isNew] = makers.emplace(output, i);
            if (!isNew)
                return broken("node " + labelOf(graph.nodes[i]) + " makes '" + output + "', which "
                        + (maker->second == kGiven
                                ? std::string("is an input or initializer")
                                : "node " + labelOf(graph.nodes[maker->second]) + " makes too"),
                    graph.nodes[i].name);
        }
    }
    std::vector<std::vector<std::size_t>> readers(graph.nodes.size());
    std::vector<std::size_t> waiting(graph.nodes.size(), 0);
    bool sorted = true;
    const auto connect = [&](std::string_view value, std::size_t reader) {
        const auto maker = makers.find(value);
        if (value.empty() || maker == makers.end() || maker->second == kGiven)
            return;
        readers[maker->second].push_back(reader);
        ++waiting[reader];
        sorted = sorted && maker->second < reader;
    };
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
        for (const std::string &input : graph.nodes[i].inputs)
            connect(input, i);
        for (const auto &[name, attribute] : graph.nodes[i].attributes) {
            if (const auto *inner = std::get_if<std::shared_ptr<const OnnxGraph>>(&attribute)) {
                std::unordered_set<std::string_view> names;
                collectNamesRead(**inner, names);
                for (const OnnxNode &node : (*inner)->nodes) {
                    for (const std::string &output : node.outputs)
                        names.erase(output); // made inside; a graph of its own may use the name again
                }
                for (const std::string_view value : names)
                    connect(value, i);
            }
        }
    }
    std::vector<std::size_t> order;
    order.reserve(graph.nodes.size());
    if (sorted) {
        for (std::size_t i = 0; i < graph.nodes.size(); ++i)
            order.push_back(i);
        return order;
    }
    std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> ready;
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
        if (waiting[i] == 0)
            ready.push(i);
    }
    while (!ready.empty()) {
        const std::size_t next = ready.top();
        ready.pop();
        order.push_back(next);
        for (const std::size_t reader : readers[next]) {
            if (--waiting[reader] == 0)
                ready.push(reader);
        }
    }
    if (order.size() != graph.nodes.size())
        return broken(
            "these nodes depend on one another in a circle: " + circleAmong(graph, readers, waiting),
            "circle");
    return order;
}

} // namespace planloom
