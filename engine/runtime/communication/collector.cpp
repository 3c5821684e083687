#include "engine/runtime/communication/collector.h"

#include "engine/graph/operators/storage_types.h"
#include "engine/graph/operators/weight_update.h"
#include "engine/kernels/elements/narrow_float.h"
#include "engine/runtime/devices/box_copy.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace planloom {

Collector::Collector(const ExecutionPlan &plan, const RunOptions &options, Forward forward)
    : m_plan(plan)
    , m_forward(std::move(forward))
    , m_gradientFactor(static_cast<float>(plan.updates / lossScaleOf(*plan.graph, plan.precisions)))
    , m_keepGradients(options.keepGradients)
    , m_keepAll(options.keepAll)
{
}

std::size_t Collector::arrayOf(Kind kind, TensorId tensor, bool sum)
{
    const auto [found, fresh] = m_index.try_emplace({kind, tensor}, m_arrays.size());
    if (fresh) {
        Array &array = m_arrays.emplace_back();
        array.kind = kind;
        array.tensor = tensor;
        array.data.type = m_plan.graph->at(tensor).type;
    }
    Array &array = m_arrays[found->second];
    array.sum = array.sum || (sum && canAdd(array.data.type.dataType));
    return found->second;
}

void Collector::claim(std::vector<Claim> &claims, Kind kind, TensorId tensor, const Maker &maker,
    const DeviceProgram &program, std::int32_t buffer)
{
    if (buffer < 0)
        return;
    const BufferInfo &info = program.buffers[static_cast<std::size_t>(buffer)];
    const BatchRole role = m_plan.batch.tensorRole.empty()
        ? BatchRole::Same
        : m_plan.batch.tensorRole[static_cast<std::size_t>(info.tensor.index)];
    const bool overMicroBatches = info.perMicroBatch && role == BatchRole::Summand;
    const std::size_t array = arrayOf(kind, tensor, !info.summands.empty() || overMicroBatches);
    // A plan stores every box once a micro-batch, but perhaps by another instruction in each.
    if (kind != Kind::Output
        && m_claimed.try_emplace({array, maker.op.index, info.index, info.summands}, maker).first->second
            != maker)
        return;
    claims.push_back({array, buffer, kind != Kind::Output, info.dataType,
        kind == Kind::Gradient ? m_gradientFactor : 1.0f});
}

std::vector<Collector::Claim> Collector::claimsOf(std::int32_t device, const Instruction &instruction)
{
    const DeviceProgram &program = m_plan.devices[static_cast<std::size_t>(device)];
    const auto tensorOf = [&](std::int32_t buffer) {
        return program.buffers[static_cast<std::size_t>(buffer)].tensor;
    };
    std::vector<Claim> claims;
    if (instruction.kind == InstructionKind::Store) {
        for (const std::int32_t buffer : instruction.inputs)
            claim(claims, Kind::Output, tensorOf(buffer), {}, program, buffer);
        return claims;
    }
    if (instruction.kind != InstructionKind::Kernel || instruction.recompute)
        return claims;
    const Operator &op = m_plan.graph->at(instruction.op);
    const Maker maker{instruction.op, instruction.part};
    if (op.direction == Direction::Optimizer) {
        // Inputs (weight, gradient, ...), outputs (weight, ...): operator_kind.h.
        if (m_keepGradients && updatesWeight(op) && instruction.inputs.size() > 1
            && !instruction.outputs.empty()) {
            const TensorId weight = op.inputs[0];
            claim(claims, Kind::Gradient, weight, maker, program, instruction.inputs[1]);
            claim(claims, Kind::Weight, weight, maker, program, instruction.outputs[0]);
        }
    } else if (m_keepAll) {
        for (const std::int32_t buffer : instruction.outputs)
            if (buffer >= 0)
                claim(claims, Kind::Trace, tensorOf(buffer), maker, program, buffer);
    }
    return claims;
}

Bytes Collector::bytes() const
{
    std::int64_t count = 0;
    for (const Array &array : m_arrays)
        count += elementCount(array.data.type.shape) * sizeOf(array.data.type.dataType);
    return {m_forward ? 0 : count};
}

void Collector::reserve()
{
    for (Array &array : m_arrays)
        if (!m_forward)
            array.data.bytes.resize(static_cast<std::size_t>(
                elementCount(array.data.type.shape) * sizeOf(array.data.type.dataType)));
}

void Collector::beginStep()
{
    for (Array &array : m_arrays)
        if (array.sum)
            std::fill(array.data.bytes.begin(), array.data.bytes.end(), std::byte{0});
}

void Collector::put(const Claim &claim, const IndexMask &box, const std::byte *data, const Turn &turn)
{
    if (m_forward)
        return m_forward(claim, box, data, turn);
    Array &array = m_arrays[claim.array];
    const TensorType &type = array.data.type;
    const IndexMask whole = wholeMask(type.shape);
    std::vector<std::byte> converted;
    if (claim.dataType != type.dataType || claim.factor != 1) {
        const auto count = static_cast<std::size_t>(elementCount(box));
        converted.resize(count * static_cast<std::size_t>(sizeOf(type.dataType)));
        if (claim.factor == 1) {
            convertFloats(data, claim.dataType, converted.data(), type.dataType, count);
        } else { // rounded once, behind the product
            std::vector<double> wide(count);
            auto *const bytes = reinterpret_cast<std::byte *>(wide.data());
            convertFloats(data, claim.dataType, bytes, DataType::Float64, count);
            for (double &value : wide)
                value *= claim.factor;
            convertFloats(bytes, DataType::Float64, converted.data(), type.dataType, count);
        }
        data = converted.data();
    }
    if (array.sum && converted.empty())
        converted.assign(data, data + elementCount(box) * sizeOf(type.dataType));
    const std::lock_guard lock{array.mutex};
    if (array.sum)
        array.summands.insert_or_assign({turn, claim.buffer}, Summand{box, std::move(converted)});
    else
        copyBox(data, box, array.data.bytes.data(), whole, box, sizeOf(type.dataType));
}

double Collector::loss() const
{
    const auto found = m_index.find({Kind::Output, m_plan.graph->loss});
    if (!m_plan.graph->loss.valid() || found == m_index.end())
        return std::numeric_limits<double>::quiet_NaN();
    const TensorData &data = m_arrays[found->second].data;
    double value = std::numeric_limits<double>::quiet_NaN();
    convertFloats(
        data.bytes.data(), data.type.dataType, reinterpret_cast<std::byte *>(&value), DataType::Float64, 1);
    return value;
}

void Collector::endStep()
{
    for (Array &array : m_arrays) {
        const TensorType &type = array.data.type;
        for (const auto &[turn, summand] : array.summands) // only types that can be added
            (void)addBox(summand.data.data(), summand.box, array.data.bytes.data(), wholeMask(type.shape),
                summand.box, type.dataType);
        array.summands.clear();
    }
    const auto found = m_index.find({Kind::Output, m_plan.graph->loss});
    if (!m_plan.batch.wholeBatches || !m_plan.graph->loss.valid() || found == m_index.end())
        return;
    TensorData &data = m_arrays[found->second].data;
    double value = loss() / m_plan.microBatches;
    convertFloats(reinterpret_cast<const std::byte *>(&value), DataType::Float64, data.bytes.data(),
        data.type.dataType, 1);
}

namespace {

/// Puts what is known of parts of one tensor together, under the name by which files know it.
class FileParts
{
public:
    void add(const Tensor &tensor, TensorData data)
    {
        m_parts[nameInFiles(tensor)].push_back({&tensor, std::move(data)});
    }

    /// Where a part is missing, the others keep their own names.
    void addTo(NamedArrays &arrays)
    {
        for (auto &[name, parts] : m_parts) {
            const FilePart &first = *parts.front().tensor->filePart;
            TensorData whole{{parts.front().data.type.dataType, first.shape}, {}};
            const std::int64_t size = sizeOf(whole.type.dataType);
            std::int64_t left = elementCount(first.shape);
            for (const Part &part : parts)
                left -= elementCount(part.data.type.shape);
            if (left != 0) {
                for (Part &part : parts)
                    arrays.insert_or_assign(part.tensor->name, std::move(part.data));
                continue;
            }
            whole.bytes.resize(static_cast<std::size_t>(elementCount(first.shape) * size));
            for (const Part &part : parts) {
                const FileRuns runs = runsInFile(*part.tensor);
                for (std::int64_t run = 0; run < runs.count; ++run)
                    std::memcpy(whole.bytes.data() + (runs.first + run * runs.stride) * size,
                        part.data.bytes.data() + run * runs.length * size,
                        static_cast<std::size_t>(runs.length * size));
            }
            arrays.insert_or_assign(name, std::move(whole));
        }
    }

private:
    struct Part {
        const Tensor *tensor = nullptr;
        TensorData data{};
    };
    std::map<std::string, std::vector<Part>> m_parts{}; ///< By the file's name.
};

} // namespace

void Collector::finish(RunOutcome &outcome)
{
    std::map<NamedArrays *, FileParts> parted;
    for (Array &array : m_arrays) {
        NamedArrays *to = nullptr;
        switch (array.kind) {
        case Kind::Output:
            to = &outcome.outputs;
            break;
        case Kind::Gradient:
            to = &outcome.gradients;
            break;
        case Kind::Weight:
            to = &outcome.weights;
            break;
        case Kind::Trace:
            to = &outcome.tensors;
            break;
        }
        array.data.type.shape = shapeInFiles(*m_plan.graph, array.tensor);
        const Tensor &tensor = m_plan.graph->at(array.tensor);
        if (tensor.filePart)
            parted[to].add(tensor, std::move(array.data));
        else
            to->insert_or_assign(tensor.name, std::move(array.data));
    }
    for (auto &[to, parts] : parted)
        parts.addTo(*to);
    m_arrays.clear();
    m_index.clear();
    m_claimed.clear();
}

} // namespace planloom
