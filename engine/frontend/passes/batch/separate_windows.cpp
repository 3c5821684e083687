#include "engine/frontend/passes/batch/separate_windows.h"

#include "engine/frontend/passes/dead_code.h"
#include "engine/graph/operators/catalogue.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace planloom {

namespace {

/// Whether an operator of this kind may work on every window by itself, its dimension 0.
bool mayWorkByWindow(OperatorKind kind)
{
    using enum OperatorKind;
    switch (kind) {
    case MatMul:
    case Linear:
    case LayerNorm:
    case RmsNorm:
    case Softmax:
    case Reshape:
    case Transpose:
    case Expand:
    case Concat:
    case Split:
    case Slice:
    case Rotary:
    case Attention:
        return true;
    default:
        return isElementwise(kind) || (kind >= ReduceSum && kind <= ReduceSumSquare);
    }
}

/// What may come in windows; all further inputs belong to all of them.
std::size_t windowedSlots(const Operator &op)
{
    using enum OperatorKind;
    return op.kind == Linear || op.kind == LayerNorm || op.kind == RmsNorm ? 1 : op.inputs.size();
}

/// Counts dimension `axis` from one further on. @return false for dimension 0
bool shiftAxis(std::int64_t &axis)
{
    return axis++ > 0;
}

/// An operator's attributes where dimension 0 of what it reads and makes has become two.
std::optional<Attributes> separatedAttributes(const Operator &op)
{
    Attributes attributes = op.attributes;
    if (attributes.has("axis")) {
        std::int64_t axis = attributes.integer("axis");
        if (!shiftAxis(axis))
            return std::nullopt;
        attributes.set("axis", axis);
    }
    if (attributes.has("axes")) {
        std::vector<std::int64_t> axes = attributes.integers("axes");
        if (!std::all_of(axes.begin(), axes.end(), shiftAxis))
            return std::nullopt;
        attributes.set("axes", std::move(axes));
    }
    if (op.kind == OperatorKind::Transpose) {
        const std::vector<std::int64_t> before = attributes.integers("permutation");
        if (before.empty() || before.front() != 0)
            return std::nullopt;
        std::vector<std::int64_t> after{0};
        for (const std::int64_t dimension : before)
            after.push_back(dimension + 1);
        attributes.set("permutation", std::move(after));
    }
    if (op.kind == OperatorKind::Slice) {
        std::vector<std::int64_t> starts = attributes.integers("starts");
        std::vector<std::int64_t> steps = attributes.integers("steps");
        if (starts.empty() || steps.empty() || starts.front() != 0 || steps.front() != 1)
            return std::nullopt;
        starts.insert(starts.begin(), 0);
        steps.insert(steps.begin(), 1);
        attributes.set("starts", std::move(starts));
        attributes.set("steps", std::move(steps));
    }
    return attributes;
}

/// All that works on the windows which one Reshape makes of an image.
class WindowRegion
{
public:
    WindowRegion(const Graph &graph, const Uses &uses, const std::vector<bool> &isOutput,
        std::int64_t samples, std::int64_t counted)
        : m_graph(graph)
        , m_uses(uses)
        , m_isOutput(isOutput)
        , m_samples(samples)
        , m_counted(counted)
    {
    }

    /// Finds the region of `start`. @return false if it has what does not work by window, or no attention
    bool grow(TensorId start)
    {
        add(start);
        while (!m_open.empty()) {
            const TensorId id = m_open.back();
            m_open.pop_back();
            if (m_isOutput[at(id)] || !takeMaker(id))
                return false;
            for (const OperatorId user : m_uses.consumers[at(id)])
                if (!takeOperator(user))
                    return false;
        }
        return m_attends;
    }

    /// New types and attributes. @return false if an operator does not take them so
    bool separate()
    {
        for (const TensorId id : m_tensors)
            m_types.emplace(id, separated(m_graph.at(id).type));
        for (const OperatorId id : m_operators) {
            const Operator &op = m_graph.at(id);
            auto attributes = separatedAttributes(op);
            if (!attributes)
                return false;
            std::vector<TensorType> inputs;
            std::vector<bool> present;
            for (const TensorId input : op.inputs) {
                inputs.push_back(input ? typeOf(input) : TensorType{});
                present.push_back(input.valid());
            }
            std::vector<TensorType> outputs;
            for (const TensorId output : op.outputs)
                outputs.push_back(output ? typeOf(output) : TensorType{});
            const auto inferred = inferTypes(op.kind, *attributes, inputs, present, outputs);
            if (!inferred || inferred->size() < outputs.size())
                return false;
            for (std::size_t slot = 0; slot < outputs.size(); ++slot)
                if (op.outputs[slot] && (*inferred)[slot] != outputs[slot])
                    return false;
            m_attributes.emplace(id, *std::move(attributes));
        }
        return true;
    }

    void apply(Graph &graph)
    {
        for (auto &[id, type] : m_types) {
            Tensor &tensor = graph.at(id);
            if (tensor.role == TensorRole::Weight || tensor.role == TensorRole::Buffer)
                tensor.fileShape = tensor.type.shape;
            if (tensor.data) {
                auto data = std::make_shared<TensorData>(*tensor.data);
                data->type = type;
                tensor.data = std::move(data);
            }
            tensor.type = std::move(type);
        }
        for (auto &[id, attributes] : m_attributes)
            graph.at(id).attributes = std::move(attributes);
    }

private:
    static std::size_t at(TensorId id) { return static_cast<std::size_t>(id.index); }
    const TensorType &typeOf(TensorId id) const
    {
        const auto found = m_types.find(id);
        return found == m_types.end() ? m_graph.at(id).type : found->second;
    }
    TensorType separated(TensorType type) const
    {
        type.shape.front() = m_counted / m_samples;
        type.shape.insert(type.shape.begin(), m_samples);
        return type;
    }
    bool comesInWindows(TensorId id) const
    {
        const Shape &shape = m_graph.at(id).type.shape;
        return !shape.empty() && shape.front() == m_counted;
    }
    /// Whether windows have a dimension of their own there, beside heads and places, as masks that differ
    /// from window to window need it.
    bool hasWindows(TensorId id) const
    {
        const Shape &shape = m_graph.at(id).type.shape;
        return shape.size() >= 5 && shape[0] == m_samples && shape[0] * shape[1] == m_counted;
    }
    void add(TensorId id)
    {
        if (m_tensors.insert(id).second)
            m_open.push_back(id);
    }

    /// Whoever makes a value of the region is of it, but for the Reshapes that windows begin with; what is
    /// stored for every window is regrouped.
    bool takeMaker(TensorId id)
    {
        const auto &makers = m_uses.producers[at(id)];
        const Tensor &tensor = m_graph.at(id);
        if (tensor.role == TensorRole::Weight || tensor.role == TensorRole::Buffer) // masks of every window
            return tensor.fileShape.empty();
        if (makers.size() != 1)
            return false;
        const Operator &maker = m_graph.at(makers.front());
        if (maker.kind == OperatorKind::Reshape && !comesInWindows(maker.inputs.front())) {
            m_attends = m_attends || hasWindows(maker.inputs.front());
            return true;
        }
        return takeOperator(makers.front());
    }

    bool takeOperator(OperatorId id)
    {
        const Operator &op = m_graph.at(id);
        if (op.kind == OperatorKind::Reshape && !comesInWindows(op.outputs.front())) {
            m_attends = m_attends || hasWindows(op.outputs.front());
            return true;
        }
        if (m_operators.count(id) != 0)
            return true;
        if (!mayWorkByWindow(op.kind))
            return false;
        m_operators.insert(id);
        std::size_t rank = 0;
        for (const TensorId output : op.outputs) {
            if (!output)
                continue;
            if (!comesInWindows(output))
                return false;
            rank = std::max(rank, m_graph.at(output).type.shape.size());
            add(output);
        }
        // Inputs of fewer dimensions are broadcast to every window.
        const bool broadcasts = isElementwise(op.kind) || op.kind == OperatorKind::MatMul
            || op.kind == OperatorKind::Attention || op.kind == OperatorKind::Rotary;
        for (std::size_t slot = 0; slot < std::min(op.inputs.size(), windowedSlots(op)); ++slot) {
            const TensorId input = op.inputs[slot];
            if (input && comesInWindows(input)
                && (!broadcasts || m_graph.at(input).type.shape.size() == rank))
                add(input);
        }
        // Heads and places, beside the windows and what a place has.
        m_attends = m_attends
            || ((op.kind == OperatorKind::Attention || op.kind == OperatorKind::Softmax) && rank >= 4);
        return true;
    }

    const Graph &m_graph;
    const Uses &m_uses;
    const std::vector<bool> &m_isOutput;
    std::int64_t m_samples;
    std::int64_t m_counted; ///< The windows of all samples.
    std::set<TensorId> m_tensors;
    std::set<OperatorId> m_operators;
    std::vector<TensorId> m_open;
    bool m_attends = false;
    std::map<TensorId, TensorType> m_types;
    std::map<OperatorId, Attributes> m_attributes;
};

/// Whether a Reshape joins dimension 0, of several samples, with some that follow it.
bool countsThroughSamples(const Shape &before, const Shape &after)
{
    if (before.size() < 3 || after.size() < 2 || before.front() <= 1 || after.front() <= before.front())
        return false;
    std::int64_t counted = before.front();
    for (std::size_t d = 1; d < before.size() && counted < after.front(); ++d)
        counted *= before[d];
    return counted == after.front();
}

/// Lets users of Reshapes that change nothing read what these read.
void passBy(Graph &graph, const std::vector<bool> &isOutput)
{
    std::map<TensorId, TensorId> instead;
    for (Operator &op : graph.operators) {
        for (TensorId &input : op.inputs)
            if (const auto found = instead.find(input); found != instead.end())
                input = found->second;
        const TensorId made = op.outputs.empty() ? TensorId{} : op.outputs.front();
        if (op.kind == OperatorKind::Reshape && made && !isOutput[static_cast<std::size_t>(made.index)]
            && graph.at(made).type == graph.at(op.inputs.front()).type)
            instead[made] = op.inputs.front();
    }
    removeDeadCode(graph);
}

} // namespace

std::int32_t separateWindows(Graph &graph)
{
    const Uses uses = usesOf(graph);
    std::vector<bool> isOutput(graph.tensors.size(), false);
    for (const TensorId id : graph.outputs)
        isOutput[static_cast<std::size_t>(id.index)] = true;
    std::int32_t changed = 0;
    for (const Operator &op : graph.operators) {
        if (op.kind != OperatorKind::Reshape)
            continue;
        const Shape &before = graph.at(op.inputs.front()).type.shape;
        const Shape &after = graph.at(op.outputs.front()).type.shape;
        if (!countsThroughSamples(before, after))
            continue;
        WindowRegion region(graph, uses, isOutput, before.front(), after.front());
        if (!region.grow(op.outputs.front()) || !region.separate())
            continue;
        region.apply(graph);
        ++changed;
    }
    if (changed > 0)
        passBy(graph, isOutput);
    return changed;
}

} // namespace planloom
