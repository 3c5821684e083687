// Bodies of operators that stand in ONNX files, as functions: the steps they become, and what is refused.

#include "engine/frontend/onnx/functions/function_body.h"

#include "engine/frontend/onnx/import_onnx.h"
#include "engine/graph/operator_files/custom_operator.h"
#include "tests/engine/frontend/onnx_file.h"

#include <gtest/gtest.h>

#include <functional>

namespace planloom {
namespace {

using testing_support::OnnxFile;

using Nodes = std::vector<std::vector<std::string>>;

/// Adds a function: of each node its type, output, and inputs.
onnx::FunctionProto &addFunction(OnnxFile &file, const std::string &name,
    const std::vector<std::string> &inputs, const std::vector<std::string> &outputs, const Nodes &nodes)
{
    auto &function = *file.model.add_functions();
    function.set_domain("f");
    function.set_name(name);
    auto *set = function.add_opset_import();
    set->set_domain("");
    set->set_version(17);
    for (const std::string &input : inputs)
        function.add_input(input);
    for (const std::string &output : outputs)
        function.add_output(output);
    for (const auto &written : nodes) {
        auto &node = *function.add_node();
        node.set_op_type(written.at(0));
        node.set_domain(written.at(0) == "Inner" || written.at(0) == name ? "f" : "");
        node.add_output(written.at(1));
        for (std::size_t i = 2; i < written.size(); ++i)
            node.add_input(written[i]);
    }
    return function;
}

void addAttribute(
    onnx::FunctionProto &function, int node, const std::string &name, const std::string &refersTo)
{
    auto &attribute = *function.mutable_node(node)->add_attribute();
    attribute.set_name(name);
    attribute.set_type(onnx::AttributeProto::FLOAT);
    attribute.set_ref_attr_name(refersTo);
}

onnx::NodeProto &constant(
    onnx::FunctionProto &function, const std::string &name, const onnx::TensorProto &value)
{
    auto &node = *function.add_node();
    node.set_op_type("Constant");
    node.add_output(name);
    auto &attribute = *node.add_attribute();
    attribute.set_name("value");
    attribute.set_type(onnx::AttributeProto::TENSOR);
    *attribute.mutable_t() = value;
    return node;
}

/// Reads an operator whose body is in `file`.
Result<std::vector<std::shared_ptr<const OperatorDefinition>>> withBody(
    const OnnxFile &file, const std::string &lines, const std::string &body = "body \"b.onnx\"")
{
    const std::string bytes = file.bytes();
    return readOperatorFile("planloom-operators 1\noperator t::A\n" + lines + "\n" + body + "\n", "t.ops", {},
        [&](const OperatorDefinition &definition, const BodySource &source) {
            EXPECT_EQ(source.path, "b.onnx");
            return functionBody(definition, bytes, source.path, source.function);
        });
}

/// The steps as an operator file has them, one a line.
std::string stepsOf(
    const OnnxFile &file, const std::string &lines, const std::string &body = "body \"b.onnx\"")
{
    const auto read = withBody(file, lines, body);
    if (!read)
        return read.error().where + " " + describe(read.error());
    EXPECT_EQ(read->front()->derivative.way, DefinedDerivative::Way::Body);
    const std::string text = printOperatorFile(*read);
    const auto again = readOperatorFile(text, "t.ops");
    EXPECT_TRUE(again && *again->front() == *read->front()) << text;
    const std::size_t begin = text.find("body\n", text.find("derivative body") + 15) + 5;
    return text.substr(begin, text.find("end\n") - begin);
}

constexpr const char *kRows = "inputs x\noutputs y\nannotation b s h^ -> b s h^";

TEST(FunctionBody, IsTheStepsOfTheFunction)
{
    OnnxFile file;
    addFunction(file, "Gate", {"p", "q"}, {"r"}, {{"Sigmoid", "a", "q"}, {"Mul", "r", "p", "a"}});
    EXPECT_EQ(stepsOf(file, "inputs x, gate\noutputs y\nannotation b h, b h -> b h"),
        "    v1 = Sigmoid(gate)\n    y = Mul(x, v1)\n");
    EXPECT_EQ(
        stepsOf(file, "inputs v1, gate\noutputs y\nannotation b h, b h -> b h", "body \"b.onnx\" f::Gate"),
        "    v2 = Sigmoid(gate)\n    y = Mul(v1, v2)\n"); // names of the operator go before
}

TEST(FunctionBody, HasExpressionsForWhatDependsOnSizes)
{
    OnnxFile file;
    auto &function = addFunction(file, "Heads", {"x"}, {"y"}, {});
    constant(function, "shape", OnnxFile::integers("", {4}, {0, 0, 4, -1}));
    for (const auto &[type, output, inputs] : std::vector<std::tuple<std::string, std::string, std::string>>{
             {"Reshape", "heads", "shape"}, {"Softmax", "soft", ""}, {"Flatten", "flat", ""}}) {
        auto &node = *function.add_node();
        node.set_op_type(type);
        node.add_output(output);
        node.add_input(type == "Reshape" ? "x" : type == "Softmax" ? "heads" : "soft");
        if (!inputs.empty())
            node.add_input(inputs);
    }
    function.set_output(0, "flat");
    EXPECT_EQ(stepsOf(file, "inputs x\noutputs y\nannotation b s h -> ?"),
        "    v1 = Reshape(x) : float32 [b, s, 4, h / 4]\n    v2 = Softmax(v1, axis=3)\n"
        "    y = Reshape(v2) : float32 [b, h * s]\n");
}

TEST(FunctionBody, ReadsAttributesAndTheirUsualValues)
{
    OnnxFile file;
    auto &function = addFunction(file, "Leak", {"x"}, {"y"}, {{"LeakyRelu", "y", "x"}});
    addAttribute(function, 0, "alpha", "slope");
    EXPECT_EQ(
        stepsOf(file, std::string(kRows) + "\nattribute slope = 0.2"), "    y = LeakyRelu(x, alpha=slope)\n");
    const std::string refused = stepsOf(file, kRows);
    EXPECT_NE(refused.find("t.ops:6:1 "), std::string::npos) << refused;
    EXPECT_NE(
        refused.find("has an attribute 'slope', of which the operator file says nothing"), std::string::npos);
}

TEST(FunctionBody, IsTheFilesGraphWhereItHasNoFunction)
{
    OnnxFile file;
    file.input("a", {7, 7}).weight("two", {}, {2}).output("b");
    file.node("Mul", {"a", "two"}, {"b"});
    EXPECT_EQ(stepsOf(file, "inputs x\noutputs y\nannotation n m -> n m"), "    y = Mul(x, 2)\n");
}

TEST(FunctionBody, InlinesFunctionsThatItCalls)
{
    OnnxFile file;
    addFunction(file, "Inner", {"x"}, {"y"}, {{"Exp", "y", "x"}});
    addFunction(file, "Outer", {"x"}, {"y"}, {{"Inner", "a", "x"}, {"Neg", "y", "a"}});
    EXPECT_EQ(stepsOf(file, kRows, "body \"b.onnx\" f::Outer"), "    v1 = Exp(x)\n    y = Neg(v1)\n");
    EXPECT_NE(stepsOf(file, kRows).find("the file has 2 functions: f::Inner, f::Outer"), std::string::npos);
    EXPECT_NE(
        stepsOf(file, kRows, "body \"b.onnx\" f::None").find("no function f::None, but"), std::string::npos);
}

TEST(FunctionBody, ComputesWhatTheFunctionDoesForAllParts)
{
    OnnxFile file;
    auto &function = addFunction(file, "Norm", {"x", "w"}, {"y"}, {{"Mul", "q", "x", "x"}});
    constant(function, "axes", OnnxFile::integers("", {1}, {-1}));
    for (const auto &written : Nodes{{"ReduceSum", "m", "q", "axes"}, {"Sqrt", "r", "m"},
             {"Div", "n", "x", "r"}, {"Mul", "y", "n", "w"}}) {
        auto &node = *function.add_node();
        node.set_op_type(written[0]);
        node.add_output(written[1]);
        for (std::size_t i = 2; i < written.size(); ++i)
            node.add_input(written[i]);
    }
    const auto read = withBody(file, "inputs x, w\noutputs y\nannotation b h^, h^ -> b h^");
    ASSERT_TRUE(read) << describe(read.error());
    for (const Shape &shape : {Shape{2, 4}, Shape{1, 6}, Shape{5, 3}}) {
        const auto attributes = completedAttributes(read->front(), {});
        ASSERT_TRUE(attributes);
        const auto body = bodyOf(*read->front(), *attributes,
            {{DataType::Float64, shape}, {DataType::Float64, {shape[1]}}}, {true, true});
        ASSERT_TRUE(body) << describe(body.error());
        EXPECT_EQ(body->at(body->outputs[0]).type, (TensorType{DataType::Float64, shape}));
    }
}

TEST(FunctionBody, RefusesWhatABodyCannotSay)
{
    const auto refusal = [](const std::function<void(OnnxFile &)> &write, const std::string &lines) {
        OnnxFile file;
        write(file);
        return stepsOf(file, lines);
    };
    const auto one = [](const std::string &type) {
        return [type](OnnxFile &file) { addFunction(file, "A", {"x"}, {"y"}, {{type, "y", "x"}}); };
    };
    EXPECT_NE(refusal(one("Exp"), "inputs x, z\noutputs y\nannotation b, b -> b")
                  .find("1 input and 1 output, where the operator has 2 and 1"),
        std::string::npos);
    EXPECT_NE(refusal(one("Exp"), "inputs [x]\noutputs y\nannotation b -> b").find("may be absent"),
        std::string::npos);
    for (const char *annotation : {"annotation * -> *", ""})
        EXPECT_NE(refusal(one("Exp"), std::string("inputs x\noutputs y\n") + annotation)
                      .find("does not name every dimension"),
            std::string::npos);
    EXPECT_NE(refusal(one("Exp"), "inputs x\noutputs y\nannotation b s -> b").find("makes 'y' as"),
        std::string::npos);
    EXPECT_NE(refusal(one("NoSuchOperator"), kRows).find("NoSuchOperator"), std::string::npos);
    EXPECT_NE(refusal(one("A"), kRows).find("deeper than"), std::string::npos); // itself, for ever
    EXPECT_NE(refusal(one("Size"), "inputs x\noutputs y: int64\nannotation b s -> 1").find("b * s"),
        std::string::npos); // no refusal: a number of elements is an expression
    const auto table = [](OnnxFile &file) {
        auto &function = addFunction(file, "A", {"x"}, {"y"}, {});
        constant(function, "c", OnnxFile::floats("", {2}, {1, 2}));
        auto &node = *function.add_node();
        node.set_op_type("Add");
        node.add_input("x");
        node.add_input("c");
        node.add_output("y");
    };
    EXPECT_NE(
        refusal(table, "inputs x\noutputs y\nannotation b 2 -> b 2").find("a constant of several numbers"),
        std::string::npos);
}

TEST(FunctionBody, RefusesBytesThatAreNoModel)
{
    const auto read =
        readOperatorFile(std::string("planloom-operators 1\noperator t::A\n") + kRows + "\nbody \"b.onnx\"\n",
            "t.ops", {}, [](const OperatorDefinition &definition, const BodySource &source) {
                return functionBody(definition, "PK no model", source.path, {});
            });
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().where, "t.ops:6:1");
    EXPECT_NE(read.error().message.find("b.onnx: "), std::string::npos) << read.error().message;
    const auto nowhere = readOperatorFile(
        std::string("planloom-operators 1\noperator t::A\n") + kRows + "\nbody \"/no/such/file.onnx\"\n",
        "t.ops", {}, readFunctionBody);
    ASSERT_FALSE(nowhere);
    EXPECT_EQ(nowhere.error().where, "t.ops:6:1");
    EXPECT_FALSE(
        readOperatorFile(std::string("planloom-operators 1\noperator t::A\n") + kRows + "\nbody \"b.onnx\"\n",
            "t.ops")); // nobody reads other files there
}

TEST(Functions, HaveUsualValuesOfTheirAttributes)
{
    OnnxFile file;
    file.input("x", {2, 3}).output("y");
    file.node("Leak", {"x"}, {"y"}).proto->set_domain("f");
    auto &function = addFunction(file, "Leak", {"x"}, {"y"}, {{"LeakyRelu", "y", "x"}});
    addAttribute(function, 0, "alpha", "slope");
    // FunctionProto.attribute_proto, field 11, which older versions of onnx.proto do not know.
    onnx::AttributeProto usual;
    usual.set_name("slope");
    usual.set_type(onnx::AttributeProto::FLOAT);
    usual.set_f(0.25F);
    function.mutable_unknown_fields()->AddLengthDelimited(11, usual.SerializeAsString());
    const auto graph = importOnnxBytes(file.bytes(), {});
    ASSERT_TRUE(graph) << describe(graph.error());
    EXPECT_EQ(graph->operators.front().attributes.real("alpha"), 0.25);
}

} // namespace
} // namespace planloom
