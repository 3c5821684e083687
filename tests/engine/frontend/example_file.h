#pragma once

#include "tests/engine/frontend/onnx_file.h"
#include "tests/engine/frontend/operator_examples.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <sstream>
#include <string>
#include <vector>

// Models of one node, from an example's few words.

namespace planloom::testing_support {

/// Words of `text` between separators, without blanks at their ends.
inline std::vector<std::string> partsOf(const std::string &text, char separator)
{
    std::vector<std::string> parts;
    std::istringstream stream(text);
    for (std::string part; std::getline(stream, part, separator);) {
        const std::size_t first = part.find_first_not_of(' ');
        if (first != std::string::npos)
            parts.push_back(part.substr(first, part.find_last_not_of(' ') - first + 1));
    }
    return parts;
}

inline std::vector<double> numbersOf(const std::string &text)
{
    std::vector<double> numbers;
    std::istringstream stream(text);
    for (double number = 0; stream >> number;)
        numbers.push_back(number);
    return numbers;
}

inline int typeOf(char letter)
{
    switch (letter) {
    case 'i':
        return onnx::TensorProto::INT64;
    case 'j':
        return onnx::TensorProto::INT32;
    case 'u':
        return onnx::TensorProto::UINT8;
    case 'b':
        return onnx::TensorProto::BOOL;
    case 'h':
        return onnx::TensorProto::FLOAT16;
    default:
        return onnx::TensorProto::FLOAT;
    }
}

/// Adds input `name`, "f[2 3]" or "i[2]=0 1": a value that is fed, or one that is known. What stands behind a
/// colon is fed, "f[2]: 0.5 1".
inline void addExampleInput(OnnxFile &file, const std::string &name, const std::string &text)
{
    std::vector<std::int64_t> shape;
    const std::size_t end = text.find(']');
    for (const double extent : numbersOf(text.substr(2, end - 2)))
        shape.push_back(static_cast<std::int64_t>(extent));
    const int type = typeOf(text[0]);
    if (text.find('=') == std::string::npos) {
        file.input(name, shape, type);
        return;
    }
    onnx::TensorProto tensor;
    tensor.set_name(name);
    tensor.set_data_type(type);
    for (const std::int64_t extent : shape)
        tensor.add_dims(extent);
    for (const double value : numbersOf(text.substr(text.find('=') + 1))) {
        if (type == onnx::TensorProto::INT64)
            tensor.add_int64_data(static_cast<std::int64_t>(value));
        else if (type == onnx::TensorProto::FLOAT)
            tensor.add_float_data(static_cast<float>(value));
        else
            tensor.add_int32_data(static_cast<std::int32_t>(value));
    }
    *file.graph().add_initializer() = tensor;
}

/// "axis 1", "alpha 0.5f", "pads 0 1 1 0", "scales 1 2.5f", "mode linear".
inline void setExampleAttribute(OnnxFile::Node &node, const std::string &text)
{
    const std::size_t blank = text.find(' ');
    const std::string name = text.substr(0, blank);
    const std::string value = text.substr(blank + 1);
    const std::vector<double> numbers = numbersOf(value);
    if (numbers.empty()) {
        node.set(name, value.c_str());
    } else if (value.back() == 'f') {
        node.set(name, static_cast<float>(numbers.front()));
    } else if (numbers.size() == 1) {
        node.set(name, static_cast<std::int64_t>(numbers.front()));
    } else {
        node.set(name, std::vector<std::int64_t>(numbers.begin(), numbers.end()));
    }
}

/// The graphs that If, Loop and Scan have inside.
inline void addBodies(OnnxFile::Node &node, const std::string &type)
{
    onnx::GraphProto body;
    if (type == "If") {
        OnnxFile::addNode(body, "Abs", {"x1"}, {"t"});
        body.add_output()->set_name("t");
        node.set("then_branch", body).set("else_branch", body);
        node.proto->mutable_input()->RemoveLast(); // which the branches read
    } else if (type == "Loop") {
        OnnxFile::addNode(body, "Abs", {"state"}, {"next"});
        OnnxFile::addNode(body, "Identity", {"goes_on"}, {"still"});
        for (const char *name : {"count", "goes_on", "state"})
            body.add_input()->set_name(name);
        for (const char *name : {"still", "next"})
            body.add_output()->set_name(name);
        node.set("body", body);
    } else if (type == "Scan") {
        OnnxFile::addNode(body, "Add", {"state", "step"}, {"next"});
        for (const char *name : {"state", "step"})
            body.add_input()->set_name(name);
        body.add_output()->set_name("next");
        node.set("body", body);
    }
}

/// The model of one node; with `loss`, the sum of its first output is that.
inline OnnxFile exampleFile(const OperatorExample &example, bool loss)
{
    OnnxFile file(example.opset);
    std::vector<std::string> inputs;
    for (const std::string &text : partsOf(example.inputs, ';')) {
        inputs.push_back(text == "-" ? "" : "x" + std::to_string(inputs.size()));
        if (text != "-")
            addExampleInput(file, inputs.back(), text);
    }
    const std::string type = example.type;
    const bool sequence = type.find("Sequence") == 0;
    if (sequence && type != "SequenceConstruct" && type != "SequenceEmpty") {
        file.node("SequenceConstruct", {"x0", "x0"}, {"list"});
        inputs[0] = "list";
    } else if (type == "ConcatFromSequence") {
        file.node("SequenceConstruct", {"x0", "x0"}, {"list"});
        inputs = {"list"};
    }
    std::vector<std::string> outputs;
    for (int i = 0; i < example.outputs; ++i)
        outputs.push_back("y" + std::to_string(i));
    auto node = file.node(type, inputs, outputs, "node");
    for (const std::string &text : partsOf(example.attributes, ';'))
        setExampleAttribute(node, text);
    addBodies(node, type);
    if (type == "NonZero") { // as many as data choose: of use inside of a model
        file.node("Cast", {"y0"}, {"numbers"}).set("to", OnnxFile::kFloat);
        file.node("ReduceSum", {"numbers"}, {"made"}).set("keepdims", 0);
        outputs = {"made"};
    }
    const std::set<std::string> makesSequence{
        "SequenceConstruct", "SequenceEmpty", "SequenceInsert", "SequenceErase", "SplitToSequence"};
    if (makesSequence.count(type) != 0) {
        const bool counted = type == "SequenceEmpty";
        if (!counted)
            *file.graph().add_initializer() = OnnxFile::integers("place", {}, {0});
        file.node(counted ? "SequenceLength" : "SequenceAt",
            counted ? std::vector<std::string>{"y0"} : std::vector<std::string>{"y0", "place"}, {"made"});
        outputs = {"made"};
    }
    if (loss) {
        file.node("ReduceSum", {outputs[0]}, {"loss"}).set("keepdims", 0);
        file.output("loss");
    } else {
        for (const std::string &output : outputs)
            file.output(output);
    }
    return file;
}

} // namespace planloom::testing_support
