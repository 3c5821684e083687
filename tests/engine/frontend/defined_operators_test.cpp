// Operators that operator files define, in models of both formats.

#include "engine/frontend/onnx/import_onnx.h"
#include "engine/frontend/torch/import_pt2.h"
#include "engine/graph/operator_files/operator_file.h"
#include "tests/engine/frontend/onnx_file.h"
#include "tests/engine/frontend/pt2_for_tests.h"

#include <gtest/gtest.h>

namespace planloom {
namespace {

using testing_support::OnnxFile;

ImportOptions withOperators(const std::string &text)
{
    const auto read = readOperatorFile("planloom-operators 1\n" + text, "my.ops");
    EXPECT_TRUE(read) << describe(read.error());
    auto definitions = std::make_shared<OperatorDefinitions>();
    for (const auto &definition : *read)
        EXPECT_TRUE(definitions->add(definition));
    ImportOptions options;
    options.operators = std::move(definitions);
    return options;
}

/// y = Twist(x, w) with attributes; both outputs if asked for.
OnnxFile twisted(const std::string &type, const std::string &domain, bool second = false)
{
    OnnxFile file;
    file.input("x", {4, 6}).weight("twist.weight", {6}).output("y");
    auto node = file.node(type, {"x", "twist.weight"},
        second ? std::vector<std::string>{"y", "z"} : std::vector<std::string>{"y"});
    node.proto->set_domain(domain);
    node.set("alpha", 0.5F).set("steps", 3);
    if (second)
        file.output("z");
    return file;
}

constexpr const char *kTwoOutputs =
    "operator mine::Twist\nalso mine::twist\ninputs self, [other]\noutputs y, z: int64\n"
    "attribute alpha = 1.0\nannotation n c, c -> n c, n\nlibrary \"t.so\" twist\n";

TEST(DefinedOperators, HaveSlotsAttributesAndTypesOfTheirFile)
{
    const auto graph = importOnnxBytes(twisted("Twist", "mine").bytes(), {}, withOperators(kTwoOutputs));
    ASSERT_TRUE(graph) << describe(graph.error());
    ASSERT_EQ(graph->operators.size(), 1u);
    const Operator &op = graph->operators[0];
    EXPECT_EQ(op.kind, OperatorKind::Custom);
    EXPECT_EQ(typeNameOf(op), "mine::Twist");
    EXPECT_EQ(op.attributes.real("alpha"), 0.5);
    EXPECT_EQ(op.attributes.integer("steps"), 3);
    ASSERT_EQ(op.outputs.size(), 2u); // the second one is made, though the model does not name it
    EXPECT_EQ(graph->at(op.outputs[1]).type, (TensorType{DataType::Int64, {4}}));
    EXPECT_EQ(toString(op.annotation), "n c, c -> n c, n");
    EXPECT_EQ(graph->outputs, std::vector<TensorId>{op.outputs[0]});
    ASSERT_FALSE(graph->notes.empty());
    EXPECT_NE(graph->notes.front().find("mine::Twist are as my.ops, line 2"), std::string::npos);
    EXPECT_TRUE(importOnnxBytes(twisted("Twist", "mine", true).bytes(), {}, withOperators(kTwoOutputs)));
}

TEST(DefinedOperators, GoBeforeFunctionsOfTheModelAndWhatPlanloomKnows)
{
    OnnxFile file = twisted("Gelu", "com.microsoft");
    file.graph().mutable_node(0)->mutable_input()->RemoveLast();
    file.graph().mutable_node(0)->clear_attribute();
    const std::string gelu = "operator com.microsoft::Gelu\ninputs x\noutputs y\nannotation n c -> n c\n"
                             "body\n  y = Gelu(x)\nend\n";
    EXPECT_EQ(importOnnxBytes(file.bytes(), {})->operators[0].kind, OperatorKind::Gelu);
    EXPECT_EQ(
        importOnnxBytes(file.bytes(), {}, withOperators(gelu))->operators[0].kind, OperatorKind::Custom);

    OnnxFile calls = twisted("Twist", "mine");
    auto *function = calls.model.add_functions();
    function->set_name("Twist");
    function->set_domain("mine");
    function->add_input("a");
    function->add_input("b");
    function->add_output("c");
    auto *node = function->add_node();
    node->set_op_type("Mul");
    node->add_input("a");
    node->add_input("b");
    node->add_output("c");
    EXPECT_EQ(importOnnxBytes(calls.bytes(), {})->operators[0].kind, OperatorKind::Mul);
    EXPECT_EQ(importOnnxBytes(calls.bytes(), {}, withOperators(kTwoOutputs))->operators[0].kind,
        OperatorKind::Custom);
}

TEST(DefinedOperators, StandForCallsOfPyTorchsLibraries)
{
    auto members = testing_support::linearMembers();
    const std::string from = "aten.relu.default";
    members[2].content.replace(members[2].content.find(from), from.size(), "mine.twist.default");
    const auto graph = importPt2Bytes(testing_support::zipOf(members),
        withOperators("operator mine::twist\ninputs self\noutputs y\nannotation n c -> n c\nbody\n  y = "
                      "Relu(self)\nend\n"));
    ASSERT_TRUE(graph) << describe(graph.error());
    EXPECT_EQ(graph->operators.back().kind, OperatorKind::Custom);
    // What PyTorch traced must be what the file says.
    const auto wrong = importPt2Bytes(testing_support::zipOf(members),
        withOperators(
            "operator mine::twist\ninputs self\noutputs y\nannotation n c -> n\nlibrary \"t.so\" f\n"));
    ASSERT_FALSE(wrong);
    EXPECT_NE(wrong.error().message.find("where the program declares"), std::string::npos);
}

TEST(DefinedOperators, ThatDoNotFitANodeSayWhy)
{
    const auto errorOf = [](const std::string &text) {
        const auto graph = importOnnxBytes(twisted("Twist", "mine").bytes(), {}, withOperators(text));
        return graph ? std::string("none") : describe(graph.error());
    };
    EXPECT_NE(errorOf("operator mine::Twist\ninputs x\noutputs y\nlibrary \"t.so\" f\n")
                  .find("2 inputs and 1 outputs"),
        std::string::npos);
    EXPECT_NE(errorOf("operator mine::Twist\ninputs x, w\noutputs y\nlibrary \"t.so\" f\n")
                  .find("nothing says the shape of 'y'"),
        std::string::npos);
    EXPECT_NE(
        errorOf("operator mine::Twist\ninputs x, w\noutputs y\nattribute steps = \"a\"\nlibrary \"t.so\" f\n")
            .find("'steps' of the model is of another type"),
        std::string::npos);
}

} // namespace
} // namespace planloom
