#include "engine/check/part_runner.h"

#include "engine/kernels/kernel.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <random>

namespace planloom {

namespace {

/// A part's place in its tensor, as offsets of its elements.
std::vector<std::int64_t> offsetsOf(const Shape &whole, const IndexMask &mask)
{
    std::vector<std::int64_t> offsets{0};
    for (std::size_t d = 0; d < whole.size(); ++d) {
        std::vector<std::int64_t> next;
        for (const std::int64_t offset : offsets) {
            for (std::int64_t i = mask.ranges[d].begin; i < mask.ranges[d].end; ++i)
                next.push_back(offset * whole[d] + i);
        }
        offsets = std::move(next);
    }
    return offsets;
}

/// Summand `index` of `count` of a number: arbitrary shares that add up to it.
double summandOf(double value, std::int64_t element, ValueMask mask)
{
    const auto share = [element](std::int32_t i) {
        return 1.5 * std::sin(static_cast<double>(element) * 0.7 + static_cast<double>(i) * 1.3);
    };
    if (mask.index + 1 < mask.count)
        return value * share(mask.index);
    double rest = value;
    for (std::int32_t i = 0; i + 1 < mask.count; ++i)
        rest -= value * share(i);
    return rest;
}

/// What the parts have made of one output so far.
struct Assembly {
    std::vector<double> sum{};
    std::vector<std::int32_t> summands{}; ///< Per element, how many summands are in.
    std::int32_t expected = 1;
    Combination combination = Combination::Sum;
    std::map<std::pair<IndexMask, std::int32_t>, std::vector<double>> seen{};
};

Buffer bufferOf(const Tensor &tensor, const IndexMask &mask, std::vector<std::byte> &bytes)
{
    Buffer buffer;
    buffer.dataType = tensor.type.dataType;
    buffer.shape = shapeOf(mask);
    buffer.mask = mask;
    buffer.wholeShape = tensor.type.shape;
    // Never empty, since a buffer without data means an absent tensor.
    bytes.resize(static_cast<std::size_t>(
        std::max<std::int64_t>(1, elementCount(buffer.shape)) * sizeOf(buffer.dataType)));
    buffer.data = bytes.data();
    return buffer;
}

Error failed(std::string message)
{
    return {ErrorCode::CheckFailed, std::move(message), {}, {}};
}

void add(Assembly &assembly, std::size_t at, double number)
{
    double &value = assembly.sum[at];
    const bool first = assembly.summands[at]++ == 0;
    if (first) {
        value = number;
    } else if (assembly.combination == Combination::Max) {
        value = std::max(value, number);
    } else if (assembly.combination == Combination::LogSumExp) {
        const double largest = std::max(value, number);
        if (std::isfinite(largest))
            value = largest + std::log(std::exp(value - largest) + std::exp(number - largest));
    } else {
        value += number;
    }
}

Result<void> merge(
    Assembly &assembly, const Tensor &tensor, const TensorView &view, const std::vector<std::byte> &bytes)
{
    const std::vector<std::int64_t> offsets = offsetsOf(tensor.type.shape, view.index);
    std::vector<double> numbers;
    for (std::size_t i = 0; i < offsets.size(); ++i)
        numbers.push_back(numberAt(bytes, tensor.type.dataType, static_cast<std::int64_t>(i)));
    const auto [found, isNew] = assembly.seen.emplace(std::pair{view.index, view.value.index}, numbers);
    if (!isNew) {
        for (std::size_t i = 0; i < numbers.size(); ++i) {
            if (std::fabs(found->second[i] - numbers[i]) > 1e-12 * (1 + std::fabs(numbers[i])))
                return failed("parts disagree about the same view of " + tensor.name);
        }
        return {};
    }
    assembly.expected = view.value.count;
    if (assembly.combination == Combination::Weighted && view.value.count > 1)
        return {}; // once all are there
    for (std::size_t i = 0; i < offsets.size(); ++i)
        add(assembly, static_cast<std::size_t>(offsets[i]), numbers[i]);
    return {};
}

/// The parts of a weighted output, each multiplied by exp(its log-sum-exp - that of all).
void addWeighed(Assembly &assembly, const Tensor &tensor, const Assembly &logarithms, const Tensor &rows)
{
    for (const auto &[key, numbers] : assembly.seen) {
        IndexMask box = key.first;
        box.ranges.resize(rows.type.shape.size());
        const std::vector<double> &own = logarithms.seen.at({box, key.second});
        const std::vector<std::int64_t> rowOffsets = offsetsOf(rows.type.shape, box);
        const std::vector<std::int64_t> offsets = offsetsOf(tensor.type.shape, key.first);
        const std::size_t width = offsets.size() / std::max<std::size_t>(rowOffsets.size(), 1);
        for (std::size_t i = 0; i < offsets.size(); ++i) {
            const double all = logarithms.sum[static_cast<std::size_t>(rowOffsets[i / width])];
            const double weight = std::isinf(own[i / width]) ? 0 : std::exp(own[i / width] - all);
            add(assembly, static_cast<std::size_t>(offsets[i]), numbers[i] * weight);
        }
    }
}

/// What has a cut identifier along which another output's parts are weighed is right within its part alone:
/// probabilities.
bool isOfPartAlone(const Annotation &annotation, const Partition &partition, std::size_t slot)
{
    for (const Split &split : partition.splits)
        for (std::size_t other = 0; other < annotation.outputs.size(); ++other)
            if (split.kind == SplitKind::Dimension && split.parts > 1
                && combinationOf(annotation, other) == Combination::Weighted
                && !mentions(annotation.outputs[other], split.dimension)
                && mentions(annotation.outputs[slot], split.dimension))
                return true;
    return false;
}

} // namespace

double numberAt(const std::vector<std::byte> &bytes, DataType type, std::int64_t i)
{
    const auto read = [&](auto zero) {
        std::memcpy(&zero, bytes.data() + static_cast<std::size_t>(i) * sizeof(zero), sizeof(zero));
        return static_cast<double>(zero);
    };
    switch (type) {
    case DataType::Float32:
        return read(float{});
    case DataType::Float64:
        return read(double{});
    case DataType::Int64:
        return read(std::int64_t{});
    case DataType::Int32:
        return read(std::int32_t{});
    default:
        return read(std::uint8_t{});
    }
}

void setNumber(std::vector<std::byte> &bytes, DataType type, std::int64_t i, double value)
{
    const auto write = [&](auto converted) {
        std::memcpy(
            bytes.data() + static_cast<std::size_t>(i) * sizeof(converted), &converted, sizeof(converted));
    };
    switch (type) {
    case DataType::Float32:
        return write(static_cast<float>(value));
    case DataType::Float64:
        return write(value);
    case DataType::Int64:
        return write(static_cast<std::int64_t>(value));
    case DataType::Int32:
        return write(static_cast<std::int32_t>(value));
    default:
        return write(static_cast<std::uint8_t>(value));
    }
}

OperatorValues drawValues(const OperatorExample &example, const Graph &graph, std::uint64_t seed)
{
    std::mt19937_64 random(seed);
    OperatorValues values(graph.tensors.size());
    const auto draw = [&](TensorId id, double low, double high, const std::vector<double> &given) {
        const TensorType &type = graph.at(id).type;
        const std::int64_t count = elementCount(type.shape);
        auto &bytes = values[static_cast<std::size_t>(id.index)];
        bytes.resize(static_cast<std::size_t>(count * sizeOf(type.dataType)));
        for (std::int64_t i = 0; i < count; ++i) {
            double number = low + (high - low) * std::uniform_real_distribution<double>(0, 1)(random);
            if (!isFloating(type.dataType))
                number = std::floor(number);
            setNumber(bytes, type.dataType, i, given.empty() ? number : given[static_cast<std::size_t>(i)]);
        }
    };
    const Operator &forward = graph.operators[0];
    for (std::size_t slot = 0; slot < forward.inputs.size(); ++slot) {
        const ExampleInput &input = example.inputs[slot];
        if (input.present)
            draw(forward.inputs[slot], input.low, input.high, input.values);
    }
    if (graph.operators.size() > 1) {
        for (std::size_t slot = 0; slot < forward.outputs.size(); ++slot) {
            if (graph.operators[1].inputs[slot].valid())
                draw(graph.operators[1].inputs[slot], -1, 1, {});
        }
    }
    return values;
}

Result<void> runParts(const Graph &graph, const Operator &op, const Partition &partition,
    OperatorValues &values, const OperatorLibraries *libraries,
    const std::function<Result<void>(const KernelCall &)> &run)
{
    std::vector<Assembly> assemblies(op.outputs.size());
    for (std::size_t slot = 0; slot < op.outputs.size(); ++slot) {
        if (op.outputs[slot].valid()) {
            const auto count = static_cast<std::size_t>(elementCount(graph.at(op.outputs[slot]).type.shape));
            assemblies[slot].sum.assign(count, 0.0);
            assemblies[slot].summands.assign(count, 0);
            assemblies[slot].combination = combinationOf(op.annotation, slot);
        }
    }
    for (std::int32_t part = 0; part < partCount(partition); ++part) {
        const PartBox box = partBox(op, partition, part);
        KernelCall call;
        call.op = &op;
        call.ranges = box.ranges;
        call.value = box.value;
        call.seed = 42;
        call.step = 3;
        call.libraries = libraries;
        std::vector<std::vector<std::byte>> storage(op.inputs.size() + op.outputs.size());
        for (std::size_t slot = 0; slot < op.inputs.size(); ++slot) {
            call.inputs.emplace_back();
            if (!op.inputs[slot].valid())
                continue;
            const TensorView view = inputView(graph, op, partition, part, slot);
            const Tensor &tensor = graph.at(view.tensor);
            call.inputs.back() = bufferOf(tensor, view.index, storage[slot]);
            const auto offsets = offsetsOf(tensor.type.shape, view.index);
            const auto &whole = values[static_cast<std::size_t>(view.tensor.index)];
            for (std::size_t i = 0; i < offsets.size(); ++i) {
                const double number = numberAt(whole, tensor.type.dataType, offsets[i]);
                setNumber(storage[slot], tensor.type.dataType, static_cast<std::int64_t>(i),
                    view.value.complete() ? number : summandOf(number, offsets[i], view.value));
            }
        }
        for (std::size_t slot = 0; slot < op.outputs.size(); ++slot) {
            call.outputs.emplace_back();
            if (!op.outputs[slot].valid() || isOfPartAlone(op.annotation, partition, slot))
                continue;
            const TensorView view = outputView(graph, op, partition, part, slot);
            auto &bytes = storage[op.inputs.size() + slot];
            call.outputs.back() = bufferOf(graph.at(view.tensor), view.index, bytes);
            std::fill(bytes.begin(), bytes.end(), std::byte{0x7f}); // So that what is not written shows.
        }
        TRY_VOID(run ? run(call) : runKernel(call));
        for (std::size_t slot = 0; slot < op.outputs.size(); ++slot) {
            if (!op.outputs[slot].valid() || isOfPartAlone(op.annotation, partition, slot))
                continue;
            const TensorView view = outputView(graph, op, partition, part, slot);
            TRY_VOID(merge(assemblies[slot], graph.at(view.tensor), view, storage[op.inputs.size() + slot]));
        }
    }
    for (std::size_t slot = 0; slot < op.outputs.size(); ++slot) {
        if (!op.outputs[slot].valid() || isOfPartAlone(op.annotation, partition, slot))
            continue;
        const Tensor &tensor = graph.at(op.outputs[slot]);
        Assembly &assembly = assemblies[slot];
        if (const std::int32_t by = weightsOf(op.annotation, slot); by >= 0 && assembly.expected > 1) {
            const auto rows = static_cast<std::size_t>(by);
            addWeighed(assembly, tensor, assemblies[rows], graph.at(op.outputs[rows]));
        }
        auto &bytes = values[static_cast<std::size_t>(op.outputs[slot].index)];
        bytes.resize(assembly.sum.size() * static_cast<std::size_t>(sizeOf(tensor.type.dataType)));
        for (std::size_t i = 0; i < assembly.sum.size(); ++i) {
            if (assembly.summands[i] != assembly.expected)
                return failed("element " + std::to_string(i) + " of " + tensor.name + " has "
                    + std::to_string(assembly.summands[i]) + " of " + std::to_string(assembly.expected)
                    + " summands");
            setNumber(bytes, tensor.type.dataType, static_cast<std::int64_t>(i), assembly.sum[i]);
        }
    }
    return {};
}

std::vector<double> numbersOf(const Graph &graph, TensorId tensor, const OperatorValues &values)
{
    const TensorType &type = graph.at(tensor).type;
    std::vector<double> numbers;
    for (std::int64_t i = 0; i < elementCount(type.shape); ++i)
        numbers.push_back(numberAt(values[static_cast<std::size_t>(tensor.index)], type.dataType, i));
    return numbers;
}

std::vector<Partition> partitionsOf(const Operator &op)
{
    std::vector<Split> singles;
    for (const std::int32_t dimension : splittableDimensions(op.annotation)) {
        const std::int64_t size = op.annotation.dimensions[static_cast<std::size_t>(dimension)].size;
        if (op.mirror && isLargestOver(op.annotation, dimension))
            continue; // not in training
        for (std::int32_t parts = 2; parts <= 4; ++parts) {
            if (size % parts == 0)
                singles.push_back({SplitKind::Dimension, dimension, parts, {}, {}});
        }
        const Window *window = findWindow(op.annotation, dimension);
        if (window && fewestWindows(*window, size) > 1)
            continue;
        if (size > 2)
            singles.push_back({SplitKind::Dimension, dimension, 2, {size - 1, 1}, {}});
        if (size > 3)
            singles.push_back({SplitKind::Dimension, dimension, 3, {1, size - 2, 1}, {}});
    }
    singles.push_back({SplitKind::Replicate, -1, 2, {}, {}});
    if (!op.annotation.linearInputs.empty()) {
        singles.push_back({SplitKind::Value, -1, 2, {}, {}});
        singles.push_back({SplitKind::Value, -1, 3, {}, {}});
    }
    std::vector<Partition> partitions;
    for (const Split &split : singles)
        partitions.push_back({{split}});
    // Pairs, of which every split is the outer one once.
    for (std::size_t i = 0; i < singles.size(); ++i) {
        const Partition pair{{singles[i], singles[(i * 5 + 3) % singles.size()]}};
        if (checkPartition(op, pair))
            partitions.push_back(pair);
    }
    return partitions;
}

} // namespace planloom
