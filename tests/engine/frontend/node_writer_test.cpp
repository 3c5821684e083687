#include "engine/frontend/writer/node_writer.h"

#include "engine/frontend/writer/emit_functions.h"
#include "engine/frontend/writer/emit_movement.h"
#include "engine/frontend/writer/emit_windows.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

namespace planloom {

namespace {

using Integers = std::vector<std::int64_t>;

/// A file of which all values are used, and some returned.
class FakeScope final : public ValueScope
{
public:
    bool isUsed(const std::string &) const override { return true; }
    bool isOutput(const std::string &value) const override { return outputs.count(value) != 0; }
    std::optional<TensorType> declaredType(const std::string &value) const override
    {
        const auto found = declared.find(value);
        return found == declared.end() ? std::nullopt : std::optional(found->second);
    }
    Result<void> bind(const std::string &value, TensorId tensor) override
    {
        bound[value] = tensor;
        return {};
    }

    std::set<std::string> outputs{};
    std::map<std::string, TensorType> declared{};
    std::map<std::string, TensorId> bound{};
};

class NodeWriterTest : public testing::Test
{
protected:
    TensorId input(Shape shape) { return graph.addInput("x", {DataType::Float32, std::move(shape)}); }
    const Operator &last() const { return graph.written().operators.back(); }
    /// The message of an error; "none" if there is none.
    static std::string messageOf(const Result<TensorId> &made)
    {
        return made ? std::string("none") : made.error().message;
    }

    ImportOptions options{};
    GraphWriter graph{options};
    FakeScope scope{};
    NodeWriter writer{graph, scope, {"/block/0/Step", "Step"}, {"y"}};
};

TEST_F(NodeWriterTest, NamesOperatorsAndValuesByTheNodeAndItsParts)
{
    const TensorId x = input({2, 3});
    ASSERT_TRUE(writer.make(OperatorKind::Exp, {x}));
    EXPECT_EQ(last().name, "block.0.Step");
    EXPECT_EQ(last().sources, (std::vector<SourceNode>{{"/block/0/Step", "Step"}}));
    NodeWriter part = writer.part("rows", 1);
    ASSERT_TRUE(part.make(OperatorKind::Exp, {x}, {}, {}, "inner"));
    EXPECT_EQ(last().name, "block.0.Step_rows_inner");
    ASSERT_TRUE(part.bind(0, last().outputs.front()));
    EXPECT_EQ(graph.at(last().outputs.front()).name, "y_rows");
    EXPECT_EQ(part.bound().at(0), last().outputs.front());
    EXPECT_TRUE(scope.bound.empty());
}

TEST_F(NodeWriterTest, ReturnsAValueOfAnotherNameThroughAnIdentity)
{
    scope.outputs = {"y"};
    ASSERT_TRUE(writer.bind(0, input({2})));
    EXPECT_EQ(last().kind, OperatorKind::Identity);
    EXPECT_EQ(graph.at(scope.bound.at("y")).name, "y");
}

TEST_F(NodeWriterTest, KeepsAnUnknownNodeOnlyIfTheFileDeclaresItsResults)
{
    const TensorId x = input({2});
    const auto refused = writer.keepUnknown("my.Step", {x}, {}, "nobody knows it");
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::NotSupported);
    EXPECT_EQ(refused.error().message,
        "node 'block.0.Step' (Step): nobody knows it, and the file does not say what type 'y' has");
    scope.declared["y"] = {DataType::Int64, {4}};
    ASSERT_TRUE(writer.keepUnknown("my.Step", {x}, {}, "nobody knows it"));
    EXPECT_EQ(last().attributes.text("onnx_type"), "my.Step");
    EXPECT_EQ(graph.typeOf(scope.bound.at("y")), (TensorType{DataType::Int64, {4}}));
}

TEST_F(NodeWriterTest, EmitsNoOperatorForWhatChangesNothing)
{
    const TensorId x = input({2, 3});
    EXPECT_EQ(*emitReshape(writer, x, {-1, 3}), x);
    EXPECT_EQ(*emitReshape(writer, x, {0, 0}, true), x);
    EXPECT_EQ(*emitTranspose(writer, x, {0, 1}), x);
    EXPECT_EQ(*emitExpand(writer, x, {1, 3}), x);
    EXPECT_EQ(*emitTile(writer, x, {1, 1}), x);
    EXPECT_EQ(*emitConcat(writer, {x}, -1), x);
    EXPECT_EQ(emitSplit(writer, x, 1, {3})->front(), x);
    EXPECT_EQ(*emitSlice(writer, x, {{0}, {100}, Integers{-1}, {}}), x);
    EXPECT_EQ(*emitPad(writer, x, {0, 0, 0, 0}), x);
    EXPECT_EQ(*emitDropout(writer, x, 0.5, false), x);
    EXPECT_TRUE(graph.written().operators.empty());
}

TEST_F(NodeWriterTest, EmitsSlicesAsFirstPlacesAndSteps)
{
    const TensorId x = input({2, 7});
    ASSERT_TRUE(emitSlice(writer, x, {{-1}, {INT64_MIN}, Integers{1}, Integers{-2}}));
    EXPECT_EQ(last().attributes.integers("starts"), (Integers{0, 6}));
    EXPECT_EQ(last().attributes.integers("steps"), (Integers{1, -2}));
    EXPECT_EQ(graph.typeOf(last().outputs[0]).shape, (Shape{2, 4}));
    EXPECT_EQ(messageOf(emitSlice(writer, x, {{0, 0}, {1, 1}, Integers{1, -1}, {}})),
        "node 'block.0.Step' (Step): its axes name dimension 1 twice");
}

TEST_F(NodeWriterTest, EmitsConvolutionsWithPadsThatKeepTheExtent)
{
    const TensorId x = input({1, 2, 5});
    const TensorId w = graph.addInput("w", {DataType::Float32, {4, 2, 2}});
    WrittenWindows windows;
    windows.autoPad = "SAME_LOWER";
    const auto y = emitConv(writer, {x, w, {}}, windows, 1);
    ASSERT_TRUE(y) << y.error().message;
    EXPECT_EQ(last().attributes.integers("pads"), (Integers{1, 0}));
    EXPECT_EQ(graph.typeOf(*y).shape, (Shape{1, 4, 5}));
    windows = {.kernel = Integers{3}};
    EXPECT_EQ(messageOf(emitConv(writer, {x, w, {}}, windows, 1)),
        "node 'block.0.Step' (Step): its kernel_shape [3] is not that of its weight, [2]");
}

TEST_F(NodeWriterTest, EmitsEquationsWithLettersForEveryDimension)
{
    const TensorId x = input({2, 3, 4});
    const TensorId w = graph.addInput("w", {DataType::Float32, {4, 5}});
    const auto y = emitEinsum(writer, {x, w}, "...i, ij");
    ASSERT_TRUE(y) << y.error().message;
    EXPECT_EQ(last().attributes.text("equation"), "ABi,ij->ABj");
    EXPECT_EQ(messageOf(emitEinsum(writer, {x, w}, "i,ij")),
        "node 'block.0.Step' (Step): its equation 'i,ij' does not fit its inputs");
}

} // namespace

} // namespace planloom
