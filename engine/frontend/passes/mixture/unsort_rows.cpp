#include "engine/frontend/passes/mixture/unsort_rows.h"

#include "engine/frontend/passes/mixture/chosen_rows.h"
#include "engine/frontend/unique_names.h"
#include "engine/frontend/writer/fold_operator.h"
#include "engine/frontend/writer/tensor_values.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace planloom {

namespace {

using Integers = std::vector<std::int64_t>;
using Known = std::shared_ptr<const TensorData>;

constexpr int kMostSorts = 4096; ///< Each is followed through the whole graph.

/// One sort of a list, and what follows from taking it for none.
class Sort
{
public:
    /// @param position  of a TopK with as many results as its input has elements
    Sort(Graph &graph, std::size_t position)
        : m_graph(graph)
        , m_position(position)
        , m_count(graph.at(graph.operators[position].inputs[0]).type.shape[0])
    {
    }

    /// @return false if something depends on the order
    bool follow();
    /// Everything reads rows where they are.
    void remove();

private:
    const Operator &sort() const { return m_graph.operators[m_position]; }
    bool isSorted(TensorId id) const { return id && m_sorted.count(id) != 0; }
    bool isCounting(TensorId id) const;
    bool followOperator(std::size_t position);
    bool goesByRow(const Operator &op) const;
    void noteOrder(const Operator &op);
    std::optional<std::int64_t> repeatsOf(const Operator &op) const;

    Graph &m_graph;
    std::size_t m_position;
    std::int64_t m_count;
    std::set<TensorId> m_sorted{}; ///< Values whose dimension 0 is in the sort's order.
    std::map<TensorId, Known> m_order{}; ///< Of those computed of the order alone: what they are without it.
    std::set<TensorId> m_inverse{};
    std::map<TensorId, TensorId> m_instead{}; ///< What is read in the place of values.
    std::map<std::size_t, std::int64_t> m_repeats{}; ///< By position of a pick: how often it takes every row.
};

bool isCountingUp(const TensorData &data)
{
    const Integers values = integersOf(data);
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (values[i] != static_cast<std::int64_t>(i))
            return false;
    }
    return true;
}

/// True for 0, 1, 2 ... up to the number of rows.
bool Sort::isCounting(TensorId id) const
{
    const Tensor &tensor = m_graph.at(id);
    if (elementCount(tensor.type.shape) != m_count)
        return false;
    if (tensor.data)
        return isCountingUp(*tensor.data);
    return std::any_of(m_graph.operators.begin(), m_graph.operators.end(), [id](const Operator &op) {
        return op.kind == OperatorKind::Range && op.outputs[0] == id && op.attributes.integer("start") == 0
            && op.attributes.integer("delta", 1) == 1;
    });
}

bool Sort::goesByRow(const Operator &op) const
{
    std::vector<ChosenRows> own(op.inputs.size());
    std::vector<const ChosenRows *> rows;
    for (std::size_t slot = 0; slot < op.inputs.size(); ++slot) {
        own[slot].places = sort().outputs[1];
        rows.push_back(isSorted(op.inputs[slot]) ? &own[slot] : nullptr);
    }
    const RowFlow flow = followRows(m_graph, op, rows);
    return flow.problem.empty()
        && std::all_of(flow.dimensions.begin(), flow.dimensions.end(), [](std::int32_t d) { return d == 0; });
}

/// Works out what an operator makes of the order alone.
void Sort::noteOrder(const Operator &op)
{
    std::vector<Known> inputs;
    for (const TensorId id : op.inputs) {
        const auto found = m_order.find(id);
        inputs.push_back(found != m_order.end() ? found->second : id ? m_graph.at(id).data : nullptr);
        if (!inputs.back())
            return;
    }
    std::vector<TensorType> types;
    for (const TensorId id : op.outputs)
        types.push_back(m_graph.at(id).type);
    auto made = foldOperator(op.kind, op.attributes, inputs, types);
    for (std::size_t slot = 0; made && slot < op.outputs.size(); ++slot)
        m_order[op.outputs[slot]] = std::make_shared<const TensorData>(std::move((*made)[slot]));
}

/// How often a pick by the order takes every row of its input, one after the other; nothing for other picks.
std::optional<std::int64_t> Sort::repeatsOf(const Operator &op) const
{
    const auto found = op.kind == OperatorKind::Gather ? m_order.find(op.inputs[1]) : m_order.end();
    if (found == m_order.end() || op.attributes.integer("axis") != 0 || isSorted(op.inputs[0])
        || m_graph.at(op.inputs[1]).type.shape.size() != 1)
        return std::nullopt;
    const std::int64_t rows = m_graph.at(op.inputs[0]).type.shape[0];
    if (rows < 1 || m_count % rows != 0)
        return std::nullopt;
    const std::int64_t times = m_count / rows;
    const Integers picked = integersOf(*found->second);
    for (std::size_t i = 0; i < picked.size(); ++i) {
        if (picked[i] != static_cast<std::int64_t>(i) / times)
            return std::nullopt;
    }
    return times;
}

bool Sort::followOperator(std::size_t position)
{
    const Operator &op = m_graph.operators[position];
    const bool reads = std::any_of(op.inputs.begin(), op.inputs.end(),
        [&](TensorId id) { return isSorted(id) || (id && m_inverse.count(id) != 0); });
    if (!reads)
        return true;
    if (op.kind == OperatorKind::Gather && m_inverse.count(op.inputs[1]) != 0) {
        m_instead[op.outputs[0]] = op.inputs[0]; // back in their places
        return op.attributes.integer("axis") == 0 && isSorted(op.inputs[0]);
    }
    if (op.kind == OperatorKind::ScatterND && m_order.count(op.inputs[1]) != 0) {
        m_inverse.insert(op.outputs[0]);
        return op.attributes.text("reduction", "none") == "none" && isCountingUp(*m_order.at(op.inputs[1]))
            && isCounting(op.inputs[2]) && m_graph.at(op.outputs[0]).type.shape == Shape{m_count};
    }
    if (const auto times = repeatsOf(op)) {
        m_repeats[position] = *times;
        m_sorted.insert(op.outputs[0]);
        return true;
    }
    if (!goesByRow(op))
        return false;
    noteOrder(op);
    m_sorted.insert(op.outputs.begin(), op.outputs.end());
    return true;
}

bool Sort::follow()
{
    const Operator &op = sort();
    m_sorted.insert(op.outputs.begin(), op.outputs.end());
    m_instead[op.outputs[0]] = op.inputs[0];
    Integers numbers(static_cast<std::size_t>(m_count));
    std::iota(numbers.begin(), numbers.end(), 0);
    m_order[op.outputs[1]] = integerTensor(std::move(numbers), {m_count});
    for (std::size_t i = m_position + 1; i < m_graph.operators.size(); ++i) {
        if (!followOperator(i))
            return false;
    }
    return !m_inverse.empty()
        && std::none_of(m_graph.outputs.begin(), m_graph.outputs.end(),
            [&](TensorId id) { return isSorted(id) || m_inverse.count(id) != 0; });
}

void Sort::remove()
{
    UniqueNames tensorNames = UniqueNames::ofTensors(m_graph);
    UniqueNames operatorNames = UniqueNames::ofOperators(m_graph);
    std::vector<Operator> operators;
    for (std::size_t i = 0; i < m_graph.operators.size(); ++i) {
        Operator &op = m_graph.operators[i];
        const auto repeated = m_repeats.find(i);
        if (repeated == m_repeats.end()) {
            operators.push_back(std::move(op));
            continue;
        }
        const std::int64_t times = repeated->second;
        if (times == 1) {
            m_instead[op.outputs[0]] = op.inputs[0];
            continue;
        }
        // [t ..] -> [t 1 ..] -> [t times ..] -> [n ..]
        TensorId from = op.inputs[0];
        const TensorType rows = m_graph.at(from).type;
        for (const auto &[kind, width, suffix] : {std::tuple(OperatorKind::Reshape, std::int64_t{1}, "_each"),
                 {OperatorKind::Expand, times, "_repeated"}}) {
            Operator step;
            step.name = operatorNames.take(op.name + suffix);
            step.kind = kind;
            step.inputs = {from};
            step.scope = op.scope;
            step.sources = op.sources;
            Tensor made;
            made.name = tensorNames.take(step.name + "_output_0");
            made.type = rows;
            made.type.shape.insert(made.type.shape.begin() + 1, width);
            from = TensorId{static_cast<std::int32_t>(m_graph.tensors.size())};
            m_graph.tensors.push_back(std::move(made));
            step.outputs = {from};
            operators.push_back(std::move(step));
        }
        op.kind = OperatorKind::Reshape;
        op.attributes = {};
        op.inputs = {from};
        operators.push_back(std::move(op));
    }
    m_graph.operators = std::move(operators);
    const auto read = [&](TensorId id) {
        for (auto found = m_instead.find(id); found != m_instead.end(); found = m_instead.find(id))
            id = found->second;
        return id;
    };
    for (Operator &op : m_graph.operators) {
        for (TensorId &input : op.inputs)
            input = input ? read(input) : input;
    }
}

} // namespace

void unsortRows(Graph &graph)
{
    int followed = 0;
    for (std::size_t i = 0; i < graph.operators.size() && followed < kMostSorts; ++i) {
        const Operator &op = graph.operators[i];
        const bool sorts = op.kind == OperatorKind::TopK && op.outputs.size() == 2
            && graph.at(op.inputs[0]).type.shape.size() == 1
            && graph.at(op.inputs[0]).type.shape[0] == op.attributes.integer("k");
        if (!sorts)
            continue;
        ++followed;
        Sort sort(graph, i);
        if (sort.follow())
            sort.remove();
    }
}

} // namespace planloom
