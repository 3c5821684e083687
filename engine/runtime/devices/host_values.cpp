#include "engine/runtime/devices/host_values.h"

#include "engine/graph/operators/storage_types.h"
#include "engine/kernels/elements/narrow_float.h"
#include "engine/runtime/devices/box_copy.h"
#include "engine/runtime/training/step_data.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <fstream>
#include <random>
#include <set>

namespace planloom {

namespace {

std::set<TensorId> loadedTensors(const ExecutionPlan &plan)
{
    std::set<TensorId> loaded;
    for (const DeviceProgram &device : plan.devices) {
        const auto collect = [&](const std::vector<Instruction> &instructions) {
            for (const Instruction &instruction : instructions)
                if (instruction.kind == InstructionKind::Load)
                    for (const std::int32_t output : instruction.outputs)
                        loaded.insert(device.buffers[static_cast<std::size_t>(output)].tensor);
        };
        collect(device.setup);
        for (const Segment &segment : device.segments)
            collect(segment.instructions);
    }
    return loaded;
}

std::size_t bytesOf(const TensorType &type)
{
    return static_cast<std::size_t>(elementCount(type.shape) * sizeOf(type.dataType));
}

} // namespace

Result<TensorData> loadExternal(const Tensor &tensor)
{
    const ExternalData &external = *tensor.external;
    const std::int64_t whole = elementCount(tensor.filePart ? tensor.filePart->shape : tensor.type.shape)
        * sizeOf(tensor.type.dataType);
    if (external.offset < 0 || external.length != whole)
        return Error{ErrorCode::InvalidInput,
            "weight " + nameInFiles(tensor) + " takes " + std::to_string(whole)
                + " bytes, the model says its file holds " + std::to_string(external.length),
            "export the model again", external.path};
    std::ifstream file(external.path, std::ios::binary);
    if (!file)
        return Error{ErrorCode::NotFound, "the file with the values of " + tensor.name + " cannot be opened",
            "put it there, or use --random-weights SEED", external.path};
    TensorData data{tensor.type, std::vector<std::byte>(bytesOf(tensor.type))};
    const FileRuns runs = runsInFile(tensor);
    const std::int64_t size = sizeOf(tensor.type.dataType);
    for (std::int64_t run = 0; run < runs.count; ++run) {
        const std::int64_t length = runs.length * size;
        file.seekg(external.offset + (runs.first + run * runs.stride) * size);
        file.read(reinterpret_cast<char *>(data.bytes.data()) + run * length, length);
        if (file.gcount() != length)
            return Error{ErrorCode::Io, "the file ends before the values of " + tensor.name + " do",
                "copy the file again, or use --random-weights SEED", external.path};
    }
    return data;
}

namespace {

/// One number as a scalar.
TensorData scalarOf(const TensorType &type, double number)
{
    TensorData data{type, std::vector<std::byte>(static_cast<std::size_t>(bytesOf(type)))};
    convertFloats(
        reinterpret_cast<const std::byte *>(&number), DataType::Float64, data.bytes.data(), type.dataType, 1);
    return data;
}

/// The next number away from zero, or towards it. Units in the last place are steps of the bits.
template<typename Bits, typename IsWhole>
void moveBits(std::byte *values, std::size_t count, std::uint64_t seed, IsWhole isWhole)
{
    std::mt19937_64 random(seed);
    for (std::size_t i = 0; i < count; ++i) {
        const bool up = (random() & 1) != 0;
        Bits bits{};
        std::memcpy(&bits, values + i * sizeof bits, sizeof bits);
        if (isWhole(bits))
            continue;
        bits = static_cast<Bits>(up ? bits + 1 : bits - 1);
        std::memcpy(values + i * sizeof bits, &bits, sizeof bits);
    }
}

/// What is not finite counts as whole, too.
template<typename Real> bool isWhole(Real value)
{
    return !std::isfinite(value) || value == std::trunc(value);
}

void moveByOneUnit(DataType type, std::byte *values, std::size_t count, std::uint64_t seed)
{
    if (type == DataType::Float32)
        moveBits<std::uint32_t>(
            values, count, seed, [](std::uint32_t bits) { return isWhole(std::bit_cast<float>(bits)); });
    else if (type == DataType::Float64)
        moveBits<std::uint64_t>(
            values, count, seed, [](std::uint64_t bits) { return isWhole(std::bit_cast<double>(bits)); });
    else if (type == DataType::Float16 || type == DataType::BFloat16)
        moveBits<std::uint16_t>(values, count, seed, [type](std::uint16_t bits) {
            float value = 0;
            widen(reinterpret_cast<const std::byte *>(&bits), type, &value, 1);
            return isWhole(value);
        });
}

} // namespace

Result<HostValues> HostValues::prepare(const ExecutionPlan &plan, const RunOptions &options,
    const HostSources &sources, const std::function<void(const std::string &)> &warning)
{
    const Graph &graph = *plan.graph;
    const auto warn = [&](const std::string &text) {
        if (warning)
            warning(text);
    };
    HostValues values;
    values.m_graph = plan.graph;
    values.m_sources = &sources;
    values.m_seed = options.seed;
    values.m_moved = options.moved;
    values.m_drawsAnew = options.training.batches == BatchSource::Drawn;
    values.m_wholeBatches = plan.batch.wholeBatches;
    values.m_microBatches = plan.microBatches;
    values.m_entries.resize(graph.tensors.size());
    const Uses uses = usesOf(graph);
    std::set<std::string> names;
    for (const TensorId id : graph.inputs)
        names.insert(graph.at(id).name);
    for (const auto &[name, array] : options.inputs)
        if (!names.contains(name))
            warn("the model has no input called " + name);

    const double lossScale = lossScaleOf(graph, plan.precisions);
    std::string drawn;
    for (const TensorId id : loadedTensors(plan)) {
        const Tensor &tensor = graph.at(id);
        Entry &entry = values.m_entries[static_cast<std::size_t>(id.index)];
        const auto given = options.inputs.find(tensor.name);
        if (tensor.role == TensorRole::Input && sources.streamed.contains(tensor.name)) {
            entry.source = Source::Streamed;
        } else if (tensor.role == TensorRole::Input && given != options.inputs.end()) {
            TRY(auto array, fittedInput(tensor, given->second, "input:" + tensor.name));
            values.m_kept.push_back(std::make_shared<const TensorData>(std::move(array)));
            entry = {Source::Array, values.m_kept.back().get(), {}};
        } else if ((plan.batch.wholeBatches || lossScale != 1) && isLossGradient(graph, id)) {
            // The loss of whole batches is a mean over micro-batches, and so are its gradients.
            const double share = plan.batch.wholeBatches ? 1.0 / plan.microBatches : 1.0;
            values.m_kept.push_back(
                std::make_shared<const TensorData>(scalarOf(tensor.type, share * lossScale)));
            entry = {Source::Array, values.m_kept.back().get(), {}};
        } else if (sources.checkpoint != nullptr && sources.places.contains(id)) {
            entry.source = Source::Stored;
        } else if (tensor.data) {
            if (tensor.data->bytes.size() != bytesOf(tensor.type))
                return Error{ErrorCode::InvalidInput,
                    "the values of " + tensor.name + " do not fit its shape " + toString(tensor.type.shape),
                    {}, "tensor:" + tensor.name};
            values.m_kept.push_back(tensor.data);
            entry = {Source::Array, tensor.data.get(), {}};
        } else if (tensor.external && tensor.external->present) {
            entry.source = Source::External;
        } else if (tensor.role == TensorRole::OptimizerState) {
            entry.source = Source::Zeros;
        } else if (tensor.role == TensorRole::Input || options.randomWeights) {
            entry = {Source::Drawn, nullptr, drawRule(graph, uses, id)};
            if (tensor.role == TensorRole::Input && !values.m_drawsAnew)
                drawn += (drawn.empty() ? "" : ", ") + tensor.name;
        } else {
            return Error{ErrorCode::InvalidInput,
                "weight " + tensor.name + " has no values"
                    + (tensor.external ? ": there is no file " + tensor.external->path : std::string{}),
                "put the weights beside the model, or use --random-weights SEED", "tensor:" + tensor.name};
        }
    }
    if (!drawn.empty())
        warn("drawn at random, because no values were given: " + drawn);
    return values;
}

void HostValues::beginStep(std::int64_t step, std::vector<NamedArrays> batches)
{
    m_step = step;
    m_batches = std::move(batches);
}

Result<void> HostValues::load(
    TensorId id, const IndexMask &box, DataType type, std::byte *to, std::int32_t microBatch) const
{
    TRY_VOID(loadAs(type, id, box, to, microBatch));
    const TensorRole role = m_graph->at(id).role;
    if (m_moved != 0 && (role == TensorRole::Input || role == TensorRole::Weight))
        moveByOneUnit(type, to, static_cast<std::size_t>(elementCount(box)),
            m_moved + static_cast<std::uint64_t>(id.index) * 1009);
    return {};
}

Result<void> HostValues::loadAs(
    DataType type, TensorId id, const IndexMask &box, std::byte *to, std::int32_t microBatch) const
{
    const DataType own = m_graph->at(id).type.dataType;
    if (type == own)
        return loadAsGiven(id, box, to, microBatch);
    const std::int64_t count = elementCount(box);
    std::vector<std::byte> given(static_cast<std::size_t>(count * sizeOf(own)));
    TRY_VOID(loadAsGiven(id, box, given.data(), microBatch));
    if (!convertFloats(given.data(), own, to, type, static_cast<std::size_t>(count)))
        return Error{ErrorCode::InvalidInput,
            m_graph->at(id).name + " is " + nameOf(own) + " and cannot be loaded as " + nameOf(type),
            "this plan was not made by Planloom, or is damaged", "tensor:" + m_graph->at(id).name};
    return {};
}

Result<void> HostValues::loadAsGiven(
    TensorId id, const IndexMask &box, std::byte *to, std::int32_t microBatch) const
{
    const Tensor &tensor = m_graph->at(id);
    const Entry &entry = m_entries[static_cast<std::size_t>(id.index)];
    const std::int64_t size = sizeOf(tensor.type.dataType);
    switch (entry.source) {
    case Source::Array:
        copyBox(entry.array->bytes.data(), wholeMask(tensor.type.shape), to, box, box, size);
        return {};
    case Source::External: {
        TRY(const auto data, loadExternal(tensor));
        copyBox(data.bytes.data(), wholeMask(tensor.type.shape), to, box, box, size);
        return {};
    }
    case Source::Zeros:
        std::memset(to, 0, static_cast<std::size_t>(elementCount(box) * size));
        return {};
    case Source::Drawn:
        if (m_drawsAnew && tensor.role == TensorRole::Input) {
            const std::int64_t batch = m_wholeBatches ? m_step * m_microBatches + microBatch : m_step;
            draw(tensor, entry.rule, seedOfBatch(m_seed, batch), box, to);
        } else {
            draw(tensor, entry.rule, m_seed, box, to);
        }
        return {};
    case Source::Streamed: {
        const std::size_t batch = std::min(static_cast<std::size_t>(microBatch), m_batches.size() - 1);
        const TensorData &array = m_batches[batch].at(tensor.name);
        copyBox(array.bytes.data(), wholeMask(tensor.type.shape), to, box, box, size);
        return {};
    }
    case Source::Stored:
        return m_sources->checkpoint->load(m_sources->places.at(id), tensor.type.shape, box, to);
    case Source::None:
        break;
    }
    return Error{
        ErrorCode::Internal, "no source was prepared for " + tensor.name, {}, "tensor:" + tensor.name};
}

} // namespace planloom
