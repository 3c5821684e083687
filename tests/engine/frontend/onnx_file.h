#pragma once

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

namespace planloom::testing_support {

/// Writes small ONNX models for tests.
class OnnxFile
{
public:
    static constexpr int kFloat = onnx::TensorProto::FLOAT;
    static constexpr int kInt64 = onnx::TensorProto::INT64;
    static constexpr int kBool = onnx::TensorProto::BOOL;

    explicit OnnxFile(std::int64_t opset = 17)
    {
        model.set_ir_version(8);
        auto *set = model.add_opset_import();
        set->set_domain("");
        set->set_version(opset);
        model.mutable_graph()->set_name("test");
    }

    onnx::GraphProto &graph() { return *model.mutable_graph(); }

    /// Sizes; a negative one is a dimension without a size or name.
    static void declare(onnx::ValueInfoProto &value, const std::string &name, int type,
        const std::vector<std::int64_t> &shape)
    {
        value.set_name(name);
        auto *tensor = value.mutable_type()->mutable_tensor_type();
        tensor->set_elem_type(type);
        tensor->mutable_shape();
        for (const std::int64_t extent : shape) {
            auto *dimension = tensor->mutable_shape()->add_dim();
            if (extent >= 0)
                dimension->set_dim_value(extent);
        }
    }
    OnnxFile &input(const std::string &name, const std::vector<std::int64_t> &shape, int type = kFloat)
    {
        declare(*graph().add_input(), name, type, shape);
        return *this;
    }
    OnnxFile &output(const std::string &name)
    {
        auto *value = graph().add_output();
        value->set_name(name);
        value->mutable_type()->mutable_tensor_type()->set_elem_type(kFloat);
        return *this;
    }
    static onnx::TensorProto floats(
        const std::string &name, const std::vector<std::int64_t> &shape, const std::vector<float> &values)
    {
        onnx::TensorProto tensor;
        tensor.set_name(name);
        tensor.set_data_type(kFloat);
        for (const std::int64_t extent : shape)
            tensor.add_dims(extent);
        for (const float value : values)
            tensor.add_float_data(value);
        return tensor;
    }
    static onnx::TensorProto integers(const std::string &name, const std::vector<std::int64_t> &shape,
        const std::vector<std::int64_t> &values)
    {
        onnx::TensorProto tensor;
        tensor.set_name(name);
        tensor.set_data_type(kInt64);
        for (const std::int64_t extent : shape)
            tensor.add_dims(extent);
        for (const std::int64_t value : values)
            tensor.add_int64_data(value);
        return tensor;
    }
    /// A list of integers as initializer.
    OnnxFile &list(const std::string &name, const std::vector<std::int64_t> &values)
    {
        *graph().add_initializer() = integers(name, {static_cast<std::int64_t>(values.size())}, values);
        return *this;
    }
    OnnxFile &weight(
        const std::string &name, const std::vector<std::int64_t> &shape, const std::vector<float> &values)
    {
        *graph().add_initializer() = floats(name, shape, values);
        return *this;
    }
    /// A weight of alternating small numbers.
    OnnxFile &weight(const std::string &name, const std::vector<std::int64_t> &shape)
    {
        std::int64_t count = 1;
        for (const std::int64_t extent : shape)
            count *= extent;
        std::vector<float> values;
        for (std::int64_t i = 0; i < count; ++i)
            values.push_back(0.25F * static_cast<float>((i * 7) % 11 - 5));
        return weight(name, shape, values);
    }

    /// Returned by `node` to add attributes.
    struct Node {
        onnx::NodeProto *proto;
        Node &set(const std::string &name, std::int64_t value)
        {
            auto *attribute = add(name, onnx::AttributeProto::INT);
            attribute->set_i(value);
            return *this;
        }
        Node &set(const std::string &name, int value) { return set(name, static_cast<std::int64_t>(value)); }
        Node &set(const std::string &name, float value)
        {
            add(name, onnx::AttributeProto::FLOAT)->set_f(value);
            return *this;
        }
        Node &set(const std::string &name, const char *value)
        {
            add(name, onnx::AttributeProto::STRING)->set_s(value);
            return *this;
        }
        Node &set(const std::string &name, const std::vector<std::int64_t> &values)
        {
            auto *attribute = add(name, onnx::AttributeProto::INTS);
            for (const std::int64_t value : values)
                attribute->add_ints(value);
            return *this;
        }
        Node &set(const std::string &name, const onnx::TensorProto &value)
        {
            *add(name, onnx::AttributeProto::TENSOR)->mutable_t() = value;
            return *this;
        }
        Node &set(const std::string &name, const onnx::GraphProto &value)
        {
            *add(name, onnx::AttributeProto::GRAPH)->mutable_g() = value;
            return *this;
        }

    private:
        onnx::AttributeProto *add(const std::string &name, onnx::AttributeProto::AttributeType type)
        {
            auto *attribute = proto->add_attribute();
            attribute->set_name(name);
            attribute->set_type(type);
            return attribute;
        }
    };
    static Node addNode(onnx::GraphProto &graph, const std::string &type,
        const std::vector<std::string> &inputs, const std::vector<std::string> &outputs,
        const std::string &name = {})
    {
        auto *proto = graph.add_node();
        proto->set_op_type(type);
        proto->set_name(name);
        for (const std::string &input : inputs)
            proto->add_input(input);
        for (const std::string &output : outputs)
            proto->add_output(output);
        return Node{proto};
    }
    Node node(const std::string &type, const std::vector<std::string> &inputs,
        const std::vector<std::string> &outputs, const std::string &name = {})
    {
        return addNode(graph(), type, inputs, outputs, name);
    }

    std::string bytes() const { return model.SerializeAsString(); }

    onnx::ModelProto model{};
};

} // namespace planloom::testing_support
