#include "engine/runtime/devices/draw.h"

#include "engine/graph/operators/class_axis.h"
#include "engine/kernels/elements/narrow_float.h"
#include "engine/runtime/devices/box_copy.h"

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

namespace planloom {

namespace {

// Finalizer of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
std::uint64_t mixed(std::uint64_t z)
{
    z = (z ^ z >> 30U) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ z >> 27U) * 0x94D049BB133111EBULL;
    return z ^ z >> 31U;
}

std::uint64_t streamOf(std::string_view name, std::uint64_t seed)
{
    std::uint64_t hash = 0xCBF29CE484222325ULL; // FNV-1a
    for (const char c : name)
        hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3ULL;
    return mixed(hash ^ mixed(seed + 0x9E3779B97F4A7C15ULL));
}

bool passesValuesOn(OperatorKind kind)
{
    using enum OperatorKind;
    constexpr std::array kThese{Identity, Cast, Reshape, Transpose, Expand, Tile, Concat, Split, Slice};
    return std::find(kThese.begin(), kThese.end(), kind) != kThese.end();
}

/// Number of values that input `slot` of `op` may take as an index; 0 if it is none.
std::int64_t indexExtent(const Graph &graph, const Operator &op, std::size_t slot)
{
    const auto shapeOfInput = [&](std::size_t i) { return graph.at(op.inputs[i]).type.shape; };
    const auto extentAt = [&](const Shape &shape, std::int64_t d) {
        return d >= 0 && static_cast<std::size_t>(d) < shape.size() ? shape[static_cast<std::size_t>(d)] : 0;
    };
    switch (op.kind) {
    case OperatorKind::Embedding:
        return slot == 1 ? extentAt(shapeOfInput(0), 0) : 0;
    case OperatorKind::Gather:
    case OperatorKind::GatherElements:
    case OperatorKind::ScatterElements:
        return slot == 1 ? extentAt(shapeOfInput(0), op.attributes.integer("axis")) : 0;
    case OperatorKind::GatherND:
    case OperatorKind::ScatterND: {
        if (slot != 1)
            return 0;
        const Shape shape = shapeOfInput(0);
        return shape.empty() ? 0 : *std::min_element(shape.begin(), shape.end());
    }
    case OperatorKind::CrossEntropy:
    case OperatorKind::NegativeLogLikelihood:
    case OperatorKind::ClassStatistics:
        return slot == 1 ? extentAt(shapeOfInput(0), static_cast<std::int64_t>(classAxis(op.attributes, 2)))
                         : 0;
    case OperatorKind::OneHot:
        return slot == 0 ? op.attributes.integer("depth") : 0;
    case OperatorKind::ReverseSequence:
        return slot == 1 ? extentAt(shapeOfInput(0), op.attributes.integer("time_axis")) : 0;
    default:
        return 0;
    }
}

DrawRule integerRule(const Graph &graph, const Uses &uses, TensorId tensor)
{
    std::int64_t extent = std::numeric_limits<std::int64_t>::max();
    std::vector<TensorId> open{tensor};
    std::vector<bool> seen(graph.tensors.size(), false);
    seen[static_cast<std::size_t>(tensor.index)] = true;
    while (!open.empty()) {
        const TensorId current = open.back();
        open.pop_back();
        for (const OperatorId id : uses.consumers[static_cast<std::size_t>(current.index)]) {
            const Operator &op = graph.at(id);
            if (op.direction != Direction::Forward)
                continue;
            for (std::size_t slot = 0; slot < op.inputs.size(); ++slot)
                if (op.inputs[slot] == current)
                    if (const std::int64_t found = indexExtent(graph, op, slot); found > 0)
                        extent = std::min(extent, found);
            if (!passesValuesOn(op.kind))
                continue;
            for (const TensorId output : op.outputs) {
                if (output.valid() && !seen[static_cast<std::size_t>(output.index)]) {
                    seen[static_cast<std::size_t>(output.index)] = true;
                    open.push_back(output);
                }
            }
        }
    }
    if (extent == std::numeric_limits<std::int64_t>::max())
        return {0, 0, 1, 1};
    return {0, 0, extent, 0};
}

bool isScale(const Graph &graph, const Uses &uses, TensorId tensor)
{
    for (const OperatorId id : uses.consumers[static_cast<std::size_t>(tensor.index)]) {
        const Operator &op = graph.at(id);
        if (op.direction != Direction::Forward)
            continue;
        for (std::size_t slot = 0; slot < op.inputs.size(); ++slot) {
            if (op.inputs[slot] != tensor)
                continue;
            switch (op.kind) {
            case OperatorKind::LayerNorm:
            case OperatorKind::RmsNorm:
            case OperatorKind::InstanceNorm:
                if (slot == 1)
                    return true;
                break;
            case OperatorKind::BatchNormalize:
                if (slot == 2 || slot == 3)
                    return true;
                break;
            case OperatorKind::Mul: // a norm that was not recognised as one
                if (graph.at(tensor).type.shape.size() == 1)
                    return true;
                break;
            default:
                break;
            }
        }
    }
    return false;
}

template<typename T, typename Make>
void fillBox(const Shape &shape, const IndexMask &box, std::byte *to, Make make)
{
    auto *out = reinterpret_cast<T *>(to);
    const std::size_t rank = shape.size();
    const std::int64_t total = elementCount(box);
    const std::int64_t row = rank == 0 ? 1 : box.ranges[rank - 1].size();
    std::vector<std::int64_t> index(rank, 0);
    for (std::int64_t done = 0; done < total; done += row) {
        std::int64_t at = 0;
        for (std::size_t d = 0; d < rank; ++d)
            at = at * shape[d] + box.ranges[d].begin + index[d];
        for (std::int64_t i = 0; i < row; ++i)
            *out++ = make(static_cast<std::uint64_t>(at + i));
        for (std::size_t d = rank; d-- > 1;) { // next row
            if (++index[d - 1] < box.ranges[d - 1].size())
                break;
            index[d - 1] = 0;
        }
    }
}

} // namespace

DrawRule drawRule(const Graph &graph, const Uses &uses, TensorId tensor)
{
    const Tensor &info = graph.at(tensor);
    if (!isFloating(info.type.dataType))
        return integerRule(graph, uses, tensor);
    if (info.role == TensorRole::Input)
        return {-1, 1, 1, 0};
    if (isScale(graph, uses, tensor))
        return {1, 1, 1, 0};
    return {-0.05, 0.05, 1, 0};
}

std::uint64_t seedOfBatch(std::uint64_t seed, std::int64_t batch)
{
    return batch == 0 ? seed : mixed(mixed(seed) + static_cast<std::uint64_t>(batch));
}

void draw(const Tensor &tensor, const DrawRule &rule, std::uint64_t seed, const IndexMask &box, std::byte *to)
{
    const std::uint64_t stream = streamOf(nameInFiles(tensor), seed);
    const FileRuns runs = runsInFile(tensor);
    const auto bits = [&](std::uint64_t i) {
        const auto own = static_cast<std::int64_t>(i);
        const std::int64_t at =
            runs.first + (runs.count == 1 ? own : own / runs.length * runs.stride + own % runs.length);
        return mixed(stream + (static_cast<std::uint64_t>(at) + 1) * 0x9E3779B97F4A7C15ULL);
    };
    const auto real = [&](std::uint64_t i) {
        return rule.low + (rule.high - rule.low) * static_cast<double>(bits(i) >> 40U) * 0x1p-24;
    };
    const auto integer = [&](std::uint64_t i) {
        return rule.first + static_cast<std::int64_t>(bits(i) % static_cast<std::uint64_t>(rule.count));
    };
    const Shape &shape = tensor.type.shape;
    switch (tensor.type.dataType) {
    case DataType::Float32:
        return fillBox<float>(shape, box, to, [&](std::uint64_t i) { return static_cast<float>(real(i)); });
    case DataType::Float64:
        return fillBox<double>(shape, box, to, real);
    case DataType::Int64:
        return fillBox<std::int64_t>(shape, box, to, integer);
    case DataType::Int32:
        return fillBox<std::int32_t>(
            shape, box, to, [&](std::uint64_t i) { return static_cast<std::int32_t>(integer(i)); });
    case DataType::Int16:
        return fillBox<std::int16_t>(
            shape, box, to, [&](std::uint64_t i) { return static_cast<std::int16_t>(integer(i)); });
    case DataType::Int8:
    case DataType::UInt8:
        return fillBox<std::uint8_t>(
            shape, box, to, [&](std::uint64_t i) { return static_cast<std::uint8_t>(integer(i) & 0x7F); });
    case DataType::Bool:
        return fillBox<std::uint8_t>(shape, box, to,
            [&](std::uint64_t i) { return static_cast<std::uint8_t>(integer(i) != 0 ? 1 : 0); });
    case DataType::Float16:
    case DataType::BFloat16:
        return fillBox<std::uint16_t>(shape, box, to, [&](std::uint64_t i) {
            const auto wide = static_cast<float>(real(i));
            std::uint16_t narrowed = 0;
            narrow(&wide, tensor.type.dataType, reinterpret_cast<std::byte *>(&narrowed), 1);
            return narrowed;
        });
    case DataType::Float8E4M3: // of no pTensor
    case DataType::Float8E5M2:
    case DataType::TensorFloat32:
        return;
    }
}

} // namespace planloom
