// The table of what Planloom does with every operator of ONNX's sets 7 to 25, resources/operators.txt, is
// what the code does with a small node of each.

#include "engine/frontend/autodiff.h"
#include "engine/frontend/import_onnx.h"
#include "engine/kernels/kernel.h"

#include "planloom_paths.h"

#include "tests/engine/frontend/onnx_file.h"
#include "tests/engine/frontend/operator_examples.h"
#include "tests/engine/frontend/run_graph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>

namespace planloom {
namespace {

using testing_support::GraphRunner;
using testing_support::kOperatorExamples;
using testing_support::OnnxFile;
using testing_support::OperatorExample;

/// Words of `text` between separators, without blanks at their ends.
std::vector<std::string> partsOf(const std::string &text, char separator)
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

std::vector<double> numbersOf(const std::string &text)
{
    std::vector<double> numbers;
    std::istringstream stream(text);
    for (double number = 0; stream >> number;)
        numbers.push_back(number);
    return numbers;
}

int typeOf(char letter)
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
    default:
        return onnx::TensorProto::FLOAT;
    }
}

/// Adds input `name`, "f[2 3]" or "i[2]=0 1": a value that is fed, or one that is known.
void addExampleInput(OnnxFile &file, const std::string &name, const std::string &text)
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
void setExampleAttribute(OnnxFile::Node &node, const std::string &text)
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
void addBodies(OnnxFile::Node &node, const std::string &type)
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
OnnxFile exampleFile(const OperatorExample &example, bool loss)
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

struct Support {
    bool imported = false;
    bool annotated = false;
    bool differentiated = false;
    bool run = false;
};

bool runs(const Graph &graph)
{
    const bool kernels = std::all_of(
        graph.operators.begin(), graph.operators.end(), [](const Operator &op) { return hasKernel(op); });
    return kernels && GraphRunner(graph, 1, 2).run();
}

/// Whether the gradient of the first floating input can be computed.
bool isDifferentiated(const OperatorExample &example, const ImportOptions &options)
{
    auto graph = importOnnxBytes(exampleFile(example, true).bytes(), {}, options);
    if (!graph || !graph->loss)
        return false;
    const auto x = std::find_if(graph->inputs.begin(), graph->inputs.end(),
        [&](TensorId id) { return isFloating(graph->at(id).type.dataType); });
    if (x != graph->inputs.end()) {
        graph->at(*x).role = TensorRole::Weight;
        graph->inputs.erase(x);
    }
    return appendBackward(*graph) && runs(*graph);
}

Support supportOf(const OperatorExample &example)
{
    ImportOptions options;
    options.fuse = false;
    Support support;
    const auto graph = importOnnxBytes(exampleFile(example, false).bytes(), {}, options);
    if (!graph || std::any_of(graph->operators.begin(), graph->operators.end(), [](const Operator &op) {
            return op.kind == OperatorKind::Unknown;
        }))
        return support;
    support.imported = true;
    support.annotated = std::all_of(graph->operators.begin(), graph->operators.end(),
        [](const Operator &op) { return op.annotationProblem.empty(); });
    support.run = runs(*graph);
    support.differentiated = isDifferentiated(example, options);
    return support;
}

std::string tableText()
{
    std::string text = "# What Planloom does with the operators of ONNX's operator sets 7 to 25.\n"
                       "# Made by the test OperatorTable from the code; tests/interop/onnx_node_tests.py "
                       "compares it with ONNX's own tests.\n"
                       "# imported: becomes operators of the graph; annotated: these can be split;\n"
                       "# differentiated: trains; run: on CPU devices.\n";
    for (const OperatorExample &example : kOperatorExamples) {
        const Support support = supportOf(example);
        std::string line = example.type;
        line.resize(std::max<std::size_t>(28, line.size() + 1), ' ');
        line += support.imported ? "imported " : "- ";
        line += support.annotated ? "annotated " : "- ";
        line += support.differentiated ? "differentiated " : "- ";
        line += support.run ? "run" : "-";
        text += line + "\n";
    }
    return text;
}

TEST(OperatorTable, NamesEveryOperatorOnceInOrder)
{
    const auto before = [](const OperatorExample &a, const OperatorExample &b) {
        return std::string_view(a.type) < std::string_view(b.type);
    };
    EXPECT_TRUE(std::is_sorted(std::begin(kOperatorExamples), std::end(kOperatorExamples), before));
    EXPECT_EQ(std::size(kOperatorExamples), 198U); // of ONNX 1.23, without what came after set 25
}

TEST(OperatorTable, IsWhatTheCodeDoes)
{
    const std::string path = PLANLOOM_SOURCE_DIR "/resources/operators.txt";
    std::ifstream file(path);
    std::ostringstream found;
    found << file.rdbuf();
    const std::string made = tableText();
    if (found.str() == made)
        return;
    const std::string fresh = ::testing::TempDir() + "operators.txt";
    std::ofstream(fresh) << made;
    std::istringstream left(found.str());
    std::istringstream right(made);
    std::string was;
    std::string is;
    while (std::getline(right, is)) {
        std::getline(left, was);
        if (was != is)
            break;
    }
    FAIL() << "resources/operators.txt says '" << was << "', but the code does '" << is
           << "'. What it should be is in " << fresh << ": look at what changed, then copy it.";
}

} // namespace
} // namespace planloom
