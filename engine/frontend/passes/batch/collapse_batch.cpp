#include "engine/frontend/passes/batch/collapse_batch.h"

#include "engine/base/ids.h"
#include "engine/frontend/unique_names.h"
#include "engine/frontend/writer/stored_tensor.h"
#include "engine/graph/dimensions/batch.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <utility>

namespace planloom {

namespace {

constexpr std::int64_t kMostCollapsedBytes = std::int64_t{1} << 20; ///< Of values beside the file.

/// A stored tensor's reading by an operator.
struct Reading {
    OperatorId op{};
    std::size_t slot = 0;
};

/// True if the operator broadcasts that input against others.
bool broadcasts(const Operator &op, std::size_t slot)
{
    if (op.kind == OperatorKind::Attention)
        return slot >= 3; // masks
    if (op.kind == OperatorKind::Rotary)
        return slot >= 1;
    return op.kind >= OperatorKind::Add && op.kind <= OperatorKind::Where;
}

/// One of `count` equal slices along a dimension; empty if they are not equal. NaNs differ by their bits.
std::vector<std::byte> equalSlice(const TensorData &data, std::size_t axis)
{
    const Shape &shape = data.type.shape;
    auto run = static_cast<std::size_t>(sizeOf(data.type.dataType)); // bytes of one slice that lie together
    for (std::size_t d = axis + 1; d < shape.size(); ++d)
        run *= static_cast<std::size_t>(shape[d]);
    const std::size_t block = run * static_cast<std::size_t>(shape[axis]);
    std::vector<std::byte> slice;
    for (std::size_t begin = 0; begin < data.bytes.size(); begin += block) {
        const std::byte *first = data.bytes.data() + begin;
        if (std::memcmp(first, first + run, block - run) != 0)
            return {};
        slice.insert(slice.end(), first, first + run);
    }
    return slice;
}

class BatchCollapser
{
public:
    explicit BatchCollapser(Graph &graph)
        : m_graph(graph)
        , m_batch(batchSize(graph))
        , m_readings(graph.tensors.size())
        , m_isOutput(graph.tensors.size())
    {
    }

    void run();

private:
    bool mayCollapse(TensorId id, std::size_t axis);
    bool keepsItsExtent(const Reading &reading, std::size_t axis) const;
    void collapse(TensorId id, std::size_t axis, std::vector<std::byte> slice);
    void insertExpands();

    Graph &m_graph;
    std::int64_t m_batch;
    std::vector<std::vector<Reading>> m_readings; ///< By tensor.
    std::vector<bool> m_isOutput; ///< By tensor.
    std::vector<Reading> m_expanding{}; ///< Of the parameter looked at: those that need the batch's extent.
    std::map<std::int32_t, std::vector<std::size_t>> m_expands{}; ///< By operator: slots that get an Expand.
};

/// True if the operator's output is as long as ever without the extent of this input's dimension.
bool BatchCollapser::keepsItsExtent(const Reading &reading, std::size_t axis) const
{
    const Operator &op = m_graph.at(reading.op);
    if (!broadcasts(op, reading.slot))
        return false;
    if (op.kind == OperatorKind::Attention || op.kind == OperatorKind::Rotary)
        return true; // the outputs are as long as the input 0
    const std::size_t fromEnd = m_graph.at(op.inputs[reading.slot]).type.shape.size() - axis;
    for (std::size_t slot = 0; slot < op.inputs.size(); ++slot) {
        if (!op.inputs[slot] || op.inputs[slot] == op.inputs[reading.slot])
            continue;
        const Shape &other = m_graph.at(op.inputs[slot]).type.shape;
        if (other.size() >= fromEnd && other[other.size() - fromEnd] == m_batch)
            return true;
    }
    return false;
}

bool BatchCollapser::mayCollapse(TensorId id, std::size_t axis)
{
    const Tensor &tensor = m_graph.at(id);
    m_expanding.clear();
    const bool isParameter = tensor.role == TensorRole::Weight;
    const bool folded = tensor.classification && tensor.classification->folded;
    if (isParameter && (!folded || axis != 0 || tensor.type.shape.size() < 2))
        return false;
    return std::all_of(m_readings[at(id)].begin(), m_readings[at(id)].end(), [&](const Reading &reading) {
        if (keepsItsExtent(reading, axis))
            return true;
        const Operator &op = m_graph.at(reading.op);
        m_expanding.push_back(reading);
        return isParameter && op.kind == OperatorKind::Concat
            && op.attributes.integer("axis") != static_cast<std::int64_t>(axis);
    });
}

void BatchCollapser::collapse(TensorId id, std::size_t axis, std::vector<std::byte> slice)
{
    Tensor &tensor = m_graph.at(id);
    tensor.filePart = FilePart{nameInFiles(tensor), tensor.type.shape, static_cast<std::int32_t>(axis), 0};
    tensor.type.shape[axis] = 1;
    tensor.data = std::make_shared<const TensorData>(TensorData{tensor.type, std::move(slice)});
    tensor.external.reset();
    for (const Reading &reading : m_expanding)
        m_expands[reading.op.index].push_back(reading.slot);
}

/// The operators that still need the batch's extent read it from an Expand.
void BatchCollapser::insertExpands()
{
    if (m_expands.empty())
        return;
    UniqueNames tensorNames = UniqueNames::ofTensors(m_graph);
    UniqueNames operatorNames = UniqueNames::ofOperators(m_graph);
    std::vector<Operator> operators;
    operators.reserve(m_graph.operators.size() + m_expands.size());
    for (std::size_t i = 0; i < m_graph.operators.size(); ++i) {
        Operator &op = m_graph.operators[i];
        const auto found = m_expands.find(static_cast<std::int32_t>(i));
        for (const std::size_t slot : found == m_expands.end() ? std::vector<std::size_t>{} : found->second) {
            Operator expand;
            expand.name = operatorNames.take(op.name + "_expand");
            expand.kind = OperatorKind::Expand;
            expand.inputs = {op.inputs[slot]};
            expand.scope = op.scope;
            expand.sources = op.sources;
            Tensor wide;
            wide.name = tensorNames.take(m_graph.at(op.inputs[slot]).name + ".expanded");
            wide.type = m_graph.at(op.inputs[slot]).type;
            wide.type.shape[0] = m_batch;
            op.inputs[slot] = TensorId{static_cast<std::int32_t>(m_graph.tensors.size())};
            expand.outputs = {op.inputs[slot]};
            m_graph.tensors.push_back(std::move(wide));
            operators.push_back(std::move(expand));
        }
        operators.push_back(std::move(op));
    }
    m_graph.operators = std::move(operators);
}

void BatchCollapser::run()
{
    if (m_batch < 2)
        return;
    for (std::size_t i = 0; i < m_graph.operators.size(); ++i) {
        const Operator &op = m_graph.operators[i];
        for (std::size_t slot = 0; slot < op.inputs.size(); ++slot) {
            if (op.inputs[slot])
                m_readings[at(op.inputs[slot])].push_back({OperatorId{static_cast<std::int32_t>(i)}, slot});
        }
    }
    for (const TensorId id : m_graph.outputs)
        m_isOutput[at(id)] = true;
    for (std::size_t i = 0; i < m_isOutput.size(); ++i) {
        const TensorId id{static_cast<std::int32_t>(i)};
        const TensorRole role = m_graph.at(id).role;
        if ((role != TensorRole::Weight && role != TensorRole::Buffer) || m_isOutput[i]
            || m_readings[i].empty())
            continue;
        for (std::size_t axis = 0; axis < m_graph.at(id).type.shape.size(); ++axis) {
            // A part of the file's tensor is one along one dimension: what else is as long as the batch (the
            // heads, for one) stays.
            const auto &part = m_graph.at(id).filePart;
            if (part && part->shape != m_graph.at(id).type.shape)
                break;
            if (m_graph.at(id).type.shape[axis] != m_batch || !mayCollapse(id, axis))
                continue;
            const auto data = valuesUpTo(m_graph.at(id), kMostCollapsedBytes);
            std::vector<std::byte> slice = data ? equalSlice(*data, axis) : std::vector<std::byte>{};
            if (!slice.empty())
                collapse(id, axis, std::move(slice));
        }
    }
    insertExpands();
}

} // namespace

void collapseBatch(Graph &graph)
{
    BatchCollapser(graph).run();
}

} // namespace planloom
