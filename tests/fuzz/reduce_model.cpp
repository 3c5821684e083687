#include "tests/fuzz/reduce_model.h"

#include "engine/frontend/passes/dead_code.h"
#include "engine/frontend/passes/fuse/fuse.h"
#include "engine/graph/operators/catalogue.h"

#include <algorithm>
#include <sstream>
#include <utility>
#include <variant>

namespace planloom {

namespace {

void remove(std::vector<TensorId> &from, TensorId id)
{
    from.erase(std::remove(from.begin(), from.end(), id), from.end());
}

/// What it makes is fed.
Graph withInputFor(Graph graph, std::size_t o)
{
    for (const TensorId id : graph.operators[o].outputs) {
        remove(graph.outputs, id);
        graph.at(id).role = TensorRole::Input;
        graph.inputs.push_back(id);
    }
    graph.operators.erase(graph.operators.begin() + static_cast<std::ptrdiff_t>(o));
    return graph;
}

/// Those behind it read what it reads, or nothing if that has another type.
std::vector<Graph> withoutOperator(const Graph &graph, std::size_t o)
{
    std::vector<Graph> made;
    const Operator &op = graph.operators[o];
    if (op.outputs.size() != 1)
        return made;
    for (const TensorId input : op.inputs) {
        if (!input || graph.at(input).type != graph.at(op.outputs[0]).type)
            continue;
        Graph other = graph;
        for (Operator &each : other.operators)
            std::replace(each.inputs.begin(), each.inputs.end(), op.outputs[0], input);
        remove(other.outputs, op.outputs[0]);
        if (other.loss == op.outputs[0])
            other.loss = input;
        if (other.loss
            && std::find(other.outputs.begin(), other.outputs.end(), other.loss) == other.outputs.end())
            other.outputs.push_back(other.loss);
        other.operators.erase(other.operators.begin() + static_cast<std::ptrdiff_t>(o));
        made.push_back(std::move(other));
    }
    return made;
}

std::vector<Graph> smallerThan(const Graph &graph)
{
    std::vector<Graph> smaller;
    for (const TensorId id : graph.outputs) {
        if (id == graph.loss)
            continue;
        smaller.push_back(graph);
        remove(smaller.back().outputs, id);
    }
    for (std::size_t o = graph.operators.size(); o-- > 0;) {
        const Operator &op = graph.operators[o];
        for (Graph &each : withoutOperator(graph, o))
            smaller.push_back(std::move(each));
        if (std::find(op.outputs.begin(), op.outputs.end(), graph.loss) == op.outputs.end())
            smaller.push_back(withInputFor(graph, o));
    }
    return smaller;
}

bool prepare(Graph &graph)
{
    if (graph.outputs.empty())
        return false;
    removeDeadCode(graph);
    const Uses uses = usesOf(graph);
    std::erase_if(graph.inputs, [&](TensorId id) { return uses.consumers[at(id)].empty(); });
    annotateOperators(graph);
    return !graph.operators.empty();
}

template<typename T> void write(std::ostream &to, const T &value)
{
    to << value;
}
template<typename T> void write(std::ostream &to, const std::vector<T> &values)
{
    const char *between = "";
    for (const T &value : values)
        to << std::exchange(between, " ") << value;
}

std::string textOf(const Attribute &attribute)
{
    std::ostringstream text;
    std::visit([&](const auto &value) { write(text, value); }, attribute);
    return text.str();
}

std::string textOf(const Graph &graph, TensorId id)
{
    if (!id)
        return "-";
    const Tensor &tensor = graph.at(id);
    std::string text = tensor.name + " " + toString(tensor.type.shape);
    if (tensor.type.dataType != DataType::Float32)
        text += std::string(" ") + nameOf(tensor.type.dataType);
    if (tensor.role == TensorRole::Input)
        text += " input";
    else if (tensor.role == TensorRole::Weight)
        text += " weight";
    else if (tensor.role == TensorRole::Buffer)
        text += tensor.data ? " constant" : " buffer";
    return text;
}

} // namespace

Graph reducedModel(Graph graph, const std::function<bool(const Graph &)> &fails)
{
    for (bool found = true; found;) {
        found = false;
        for (Graph &smaller : smallerThan(graph)) {
            if (!prepare(smaller) || !fails(smaller))
                continue;
            graph = std::move(smaller);
            found = true;
            break;
        }
    }
    return graph;
}

std::string textOf(const Graph &graph)
{
    std::string text;
    for (const Operator &op : graph.operators) {
        for (const TensorId id : op.outputs)
            text += (id == op.outputs[0] ? "" : ", ") + textOf(graph, id);
        text += std::string(" = ") + nameOf(op.kind) + "(";
        for (std::size_t i = 0; i < op.inputs.size(); ++i)
            text += (i == 0 ? "" : ", ") + textOf(graph, op.inputs[i]);
        text += ")";
        for (const auto &[name, value] : op.attributes.all())
            text += " " + name + "=" + textOf(value);
        text += "\n";
    }
    text += "outputs:";
    for (const TensorId id : graph.outputs)
        text += " " + graph.at(id).name;
    text += graph.loss ? "; loss: " + graph.at(graph.loss).name + "\n" : "\n";
    return text;
}

} // namespace planloom
