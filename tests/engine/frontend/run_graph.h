#pragma once

#include "engine/graph/graph.h"
#include "engine/kernels/kernel.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace planloom::testing_support {

/// The same graph with every float32 tensor in double precision, so that differences of losses are precise.
inline Graph inDouble(Graph graph)
{
    for (Tensor &tensor : graph.tensors) {
        if (tensor.type.dataType != DataType::Float32)
            continue;
        tensor.type.dataType = DataType::Float64;
        if (!tensor.data)
            continue;
        auto data = std::make_shared<TensorData>();
        data->type = tensor.type;
        const std::size_t count = tensor.data->bytes.size() / sizeof(float);
        for (std::size_t i = 0; i < count; ++i) {
            float value = 0;
            std::memcpy(&value, tensor.data->bytes.data() + i * sizeof(float), sizeof value);
            const double wide = value;
            const auto *bytes = reinterpret_cast<const std::byte *>(&wide);
            data->bytes.insert(data->bytes.end(), bytes, bytes + sizeof wide);
        }
        tensor.data = std::move(data);
    }
    return graph;
}

/// Runs graphs whole, one operator after another, on the kernels.
class GraphRunner
{
public:
    /// Tensors without data get random values: floats in [-1, 1), integers in [0, `integerLimit`).
    explicit GraphRunner(Graph graph, std::uint32_t seed = 1, std::int64_t integerLimit = 3)
        : m_graph(std::move(graph))
        , m_values(m_graph.tensors.size())
    {
        std::mt19937 random(seed);
        std::uniform_real_distribution<double> real(-1, 1);
        std::uniform_int_distribution<std::int64_t> whole(0, integerLimit - 1);
        for (std::size_t i = 0; i < m_graph.tensors.size(); ++i) {
            const Tensor &tensor = m_graph.tensors[i];
            if (tensor.role == TensorRole::Activation || tensor.role == TensorRole::Gradient)
                continue;
            if (tensor.data) {
                m_values[i] = tensor.data->bytes;
                continue;
            }
            m_values[i].resize(byteCount(tensor.type));
            if (tensor.role == TensorRole::OptimizerState)
                continue; // zeros
            for (std::int64_t k = 0; k < elementCount(tensor.type.shape); ++k) {
                if (isFloating(tensor.type.dataType))
                    set(id(i), k, real(random));
                else
                    set(id(i), k, static_cast<double>(whole(random)));
            }
        }
    }

    const Graph &graph() const { return m_graph; }

    /// The tensor of that name; fails the test if there is none.
    TensorId find(const std::string &name) const
    {
        for (std::size_t i = 0; i < m_graph.tensors.size(); ++i) {
            if (m_graph.tensors[i].name == name)
                return id(i);
        }
        ADD_FAILURE() << "no tensor " << name;
        return {};
    }

    double get(TensorId tensor, std::int64_t element = 0) const
    {
        const std::vector<std::byte> &bytes = m_values[static_cast<std::size_t>(tensor.index)];
        switch (m_graph.at(tensor).type.dataType) {
        case DataType::Float32:
            return read<float>(bytes, element);
        case DataType::Float64:
            return read<double>(bytes, element);
        case DataType::Int64:
            return static_cast<double>(read<std::int64_t>(bytes, element));
        case DataType::Int32:
            return read<std::int32_t>(bytes, element);
        case DataType::UInt8:
            return read<std::uint8_t>(bytes, element);
        case DataType::Bool:
            return read<std::uint8_t>(bytes, element);
        default:
            ADD_FAILURE() << "type not handled";
            return 0;
        }
    }

    void set(TensorId tensor, std::int64_t element, double value)
    {
        std::vector<std::byte> &bytes = m_values[static_cast<std::size_t>(tensor.index)];
        switch (m_graph.at(tensor).type.dataType) {
        case DataType::Float32:
            write(bytes, element, static_cast<float>(value));
            break;
        case DataType::Float64:
            write(bytes, element, value);
            break;
        case DataType::Int64:
            write(bytes, element, static_cast<std::int64_t>(value));
            break;
        case DataType::Int32:
            write(bytes, element, static_cast<std::int32_t>(value));
            break;
        case DataType::UInt8:
            write(bytes, element, static_cast<std::uint8_t>(value));
            break;
        case DataType::Bool:
            write(bytes, element, static_cast<std::uint8_t>(value != 0));
            break;
        default:
            ADD_FAILURE() << "type not handled";
        }
    }

    std::vector<double> all(TensorId tensor) const
    {
        std::vector<double> values;
        for (std::int64_t i = 0; i < elementCount(m_graph.at(tensor).type.shape); ++i)
            values.push_back(get(tensor, i));
        return values;
    }

    /// Takes the values of all fed and kept tensors that `other` has by the name that files know.
    void takeFrom(const GraphRunner &other)
    {
        std::map<std::string, std::size_t> named;
        for (std::size_t i = 0; i < other.m_graph.tensors.size(); ++i)
            named.emplace(other.m_graph.tensors[i].name, i);
        for (std::size_t i = 0; i < m_graph.tensors.size(); ++i) {
            const TensorRole role = m_graph.tensors[i].role;
            const auto found = named.find(nameInFiles(m_graph.tensors[i]));
            if (found == named.end() || role == TensorRole::Activation || role == TensorRole::Gradient)
                continue;
            const FileRuns runs = runsInFile(m_graph.tensors[i]);
            const TensorId whole = id(found->second);
            for (std::int64_t run = 0; run < runs.count; ++run)
                for (std::int64_t k = 0; k < runs.length; ++k)
                    set(id(i), run * runs.length + k, other.get(whole, runs.first + run * runs.stride + k));
        }
    }

    /// Runs every operator; several producers of a gradient add up.
    ::testing::AssertionResult run()
    {
        std::vector<bool> made(m_graph.tensors.size());
        for (const Operator &op : m_graph.operators) {
            KernelCall call;
            call.op = &op;
            for (const Dimension &dimension : op.annotation.dimensions)
                call.ranges.push_back({0, dimension.size});
            for (const TensorId tensor : op.inputs)
                call.inputs.push_back(tensor ? buffer(tensor, m_values[index(tensor)]) : Buffer{});
            std::vector<std::vector<std::byte>> results(op.outputs.size());
            for (std::size_t slot = 0; slot < op.outputs.size(); ++slot) {
                const TensorId tensor = op.outputs[slot];
                if (!tensor) {
                    call.outputs.emplace_back();
                    continue;
                }
                // One byte more, so that an empty tensor still has an address.
                results[slot].resize(byteCount(m_graph.at(tensor).type) + 1, std::byte{0xA5});
                call.outputs.push_back(buffer(tensor, results[slot]));
            }
            if (const auto done = runKernel(call); !done)
                return ::testing::AssertionFailure() << op.name << ": " << describe(done.error());
            for (std::size_t slot = 0; slot < op.outputs.size(); ++slot) {
                const TensorId tensor = op.outputs[slot];
                if (!tensor)
                    continue;
                results[slot].resize(byteCount(m_graph.at(tensor).type));
                if (!made[index(tensor)]) {
                    m_values[index(tensor)] = std::move(results[slot]);
                    made[index(tensor)] = true;
                    continue;
                }
                const std::vector<double> sum = all(tensor);
                m_values[index(tensor)] = std::move(results[slot]);
                for (std::size_t i = 0; i < sum.size(); ++i) {
                    const auto element = static_cast<std::int64_t>(i);
                    set(tensor, element, sum[i] + get(tensor, element));
                }
            }
        }
        return ::testing::AssertionSuccess();
    }

private:
    static std::size_t index(TensorId tensor) { return static_cast<std::size_t>(tensor.index); }
    static TensorId id(std::size_t i) { return TensorId{static_cast<std::int32_t>(i)}; }
    static std::size_t byteCount(const TensorType &type)
    {
        return static_cast<std::size_t>(elementCount(type.shape) * sizeOf(type.dataType));
    }

    template<typename T> static T read(const std::vector<std::byte> &bytes, std::int64_t element)
    {
        T value{};
        std::memcpy(&value, bytes.data() + static_cast<std::size_t>(element) * sizeof(T), sizeof(T));
        return value;
    }
    template<typename T> static void write(std::vector<std::byte> &bytes, std::int64_t element, T value)
    {
        std::memcpy(bytes.data() + static_cast<std::size_t>(element) * sizeof(T), &value, sizeof(T));
    }

    Buffer buffer(TensorId tensor, std::vector<std::byte> &bytes) const
    {
        const TensorType &type = m_graph.at(tensor).type;
        return {bytes.data(), type.dataType, type.shape, wholeMask(type.shape), type.shape};
    }

    Graph m_graph;
    std::vector<std::vector<std::byte>> m_values;
};

} // namespace planloom::testing_support
