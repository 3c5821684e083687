// Attributes of ONNX's operators are carried out as the standard defines them, or refused by name. Expected
// numbers are those of ONNX Runtime; tests/interop/attribute_tests.py has all combinations.

#include "engine/frontend/onnx/import_onnx.h"
#include "engine/frontend/onnx/onnx_attributes.h"

#include "tests/engine/frontend/example_file.h"
#include "tests/engine/frontend/operator_examples.h"
#include "tests/engine/frontend/run_graph.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace planloom {
namespace {

using testing_support::exampleFile;
using testing_support::GraphRunner;
using testing_support::kOperatorExamples;
using testing_support::numbersOf;
using testing_support::OnnxFile;
using testing_support::OperatorExample;
using testing_support::partsOf;

ImportOptions unfused()
{
    ImportOptions options;
    options.fuse = false;
    return options;
}

bool isImported(const OperatorExample &example)
{
    const auto graph = importOnnxBytes(exampleFile(example, false).bytes(), {}, unfused());
    return graph && std::none_of(graph->operators.begin(), graph->operators.end(), [](const Operator &op) {
        return op.kind == OperatorKind::Unknown;
    });
}

/// What is said of an example whose attribute `name` has that value; empty if it is imported.
std::string refusalOf(const OperatorExample &example, const std::string &name, const std::string &value)
{
    std::string attributes;
    for (const std::string &text : partsOf(example.attributes, ';')) {
        if (text.substr(0, text.find(' ')) != name)
            attributes += text + "; ";
    }
    const bool listed = name.find("scan_") == 0;
    if (!listed)
        attributes += name + " " + value;
    OperatorExample changed = example;
    changed.attributes = attributes.c_str();
    OnnxFile file = exampleFile(changed, false);
    for (onnx::NodeProto &node : *file.graph().mutable_node()) {
        if (listed && node.op_type() == example.type)
            OnnxFile::Node{&node}.set(name, std::vector<std::int64_t>{std::stoll(value)});
    }
    const auto graph = importOnnxBytes(file.bytes(), {}, unfused());
    return graph ? std::string() : describe(graph.error());
}

TEST(OnnxAttributes, UnknownOnesAreRefusedByName)
{
    for (const OperatorExample &example : kOperatorExamples) {
        if (!isImported(example))
            continue;
        SCOPED_TRACE(example.type);
        const std::string refusal = refusalOf(example, "foreign", "1");
        EXPECT_NE(refusal.find("'foreign'"), std::string::npos) << refusal;
        for (const OnnxAttributeRule &rule : onnxAttributeRules(example.type)) {
            if (!rule.isRefused) {
                EXPECT_NE(refusal.find(rule.name), std::string::npos) << rule.name << " in: " << refusal;
            }
        }
    }
}

TEST(OnnxAttributes, ValuesAreTakenOrRefusedByName)
{
    for (const OperatorExample &example : kOperatorExamples) {
        if (!isImported(example))
            continue;
        for (const OnnxAttributeRule &rule : onnxAttributeRules(example.type)) {
            SCOPED_TRACE(std::string(example.type) + "." + rule.name);
            const std::string quoted = "'" + rule.name + "'";
            if (rule.name == "scan_output_directions") // the example has no such outputs
                continue;
            for (const std::string &value : rule.taken)
                EXPECT_EQ(refusalOf(example, rule.name, value).find(quoted), std::string::npos) << value;
            std::vector<std::string> refused = rule.refused;
            if (rule.isRefused)
                refused.emplace_back("1");
            if (!rule.taken.empty())
                refused.emplace_back("77");
            for (const std::string &value : refused)
                EXPECT_NE(refusalOf(example, rule.name, value).find(quoted), std::string::npos) << value;
        }
    }
}

TEST(OnnxAttributes, AreRefusedWhereTheOperatorSetHasThemNot)
{
    OperatorExample pad{"Pad", "f[2 3]; i[4]=0 1 1 0", "value 2.5f", 13};
    EXPECT_NE(
        refusalOf(pad, "mode", "edge").find("'value', which operator set 13 has not"), std::string::npos);
    OperatorExample norm{"BatchNormalization", "f[1 2 5 5]; f[2]; f[2]; f[2]; f[2]=1 1", "", 9};
    EXPECT_NE(refusalOf(norm, "training_mode", "1").find("'training_mode'"), std::string::npos);
}

/// A node with given inputs, and what it makes of them. Inputs as in `OperatorExample`; those that are fed
/// have their values behind a colon.
struct NumberCase {
    OperatorExample node;
    const char *expected; ///< "f[2 3]: .."
};

void expectNumbers(const NumberCase &one)
{
    SCOPED_TRACE(std::string(one.node.type) + " " + one.node.inputs + " " + one.node.attributes);
    const auto graph = importOnnxBytes(exampleFile(one.node, false).bytes(), {}, unfused());
    ASSERT_TRUE(graph) << describe(graph.error());
    GraphRunner runner(*graph);
    std::size_t fed = 0;
    for (const std::string &text : partsOf(one.node.inputs, ';')) {
        const std::size_t colon = text.find(':');
        if (colon == std::string::npos)
            continue;
        std::int64_t element = 0;
        for (const double value : numbersOf(text.substr(colon + 1)))
            runner.set(graph->inputs[fed], element++, value);
        ++fed;
    }
    ASSERT_TRUE(runner.run());
    const std::string expected = one.expected;
    const TensorId made = graph->outputs.front();
    Shape shape;
    for (const double extent : numbersOf(expected.substr(2, expected.find(']') - 2)))
        shape.push_back(static_cast<std::int64_t>(extent));
    EXPECT_EQ(graph->at(made).type.shape, shape);
    const std::vector<double> wanted = numbersOf(expected.substr(expected.find(':') + 1));
    const std::vector<double> found = runner.all(made);
    ASSERT_EQ(found.size(), wanted.size());
    for (std::size_t i = 0; i < found.size(); ++i)
        EXPECT_NEAR(found[i], wanted[i], 1e-5 * std::max(1.0, std::abs(wanted[i]))) << "element " << i;
}

TEST(OnnxAttributes, ResizeFromTheMiddlesOfPixelsAsTensorFlowHasIt)
{
    const char *coordinates = "coordinate_transformation_mode tf_half_pixel_for_nn; ";
    const auto attributes = [&](const char *more) { return std::string(coordinates) + more; };
    const std::string down = attributes("nearest_mode floor");
    const std::string up = attributes("nearest_mode ceil");
    const std::string linear = attributes("mode linear");
    const char *twice = "f[1 1 2 3]: 1 2 3 4 5 6; -; f[4]=1 1 1 2";
    const char *less = "f[1 1 1 5]: 1 2 3 4 5; -; f[4]=1 1 1 0.6";
    expectNumbers({{"Resize", twice, down.c_str(), 11}, "f[1 1 2 6]: 1 1 2 2 3 3 4 4 5 5 6 6"});
    expectNumbers({{"Resize", twice, up.c_str(), 11}, "f[1 1 2 6]: 2 2 3 3 3 3 5 5 6 6 6 6"});
    expectNumbers({{"Resize", less, down.c_str(), 11}, "f[1 1 1 3]: 1 3 5"});
    expectNumbers({{"Resize", twice, linear.c_str(), 11},
        "f[1 1 2 6]: 1.25 1.75 2.25 2.75 3 3 4.25 4.75 5.25 5.75 6 6"});
}

TEST(OnnxAttributes, CastsOfNumbersThatDoNotFit)
{
    // Fed and known values go different ways.
    for (const char *sign : {":", "="}) {
        const std::string numbers = std::string("f[7]") + sign + " 1.7 -1.7 300 -200 70000 3e9 1e10";
        const auto cast = [&](const char *to, const char *expected) {
            expectNumbers({{"Cast", numbers.c_str(), to, 13}, expected});
        };
        cast("to 2", "u[7]: 1 255 44 56 112 0 0");
        cast("to 6", "j[7]: 1 -1 300 -200 70000 -2147483648 -2147483648");
        cast("to 7", "i[7]: 1 -1 300 -200 70000 3e9 1e10");
        const std::string large = std::string("f[2]") + sign + " 1e19 -1e30";
        expectNumbers(
            {{"Cast", large.c_str(), "to 7", 13}, "i[2]: -9223372036854775808 -9223372036854775808"});
    }
}

TEST(OnnxAttributes, PowersOfIntegers)
{
    for (const char *sign : {":", "="}) {
        const auto power = [&](const char *base, const char *exponent, const char *expected) {
            const std::string inputs = std::string(base) + sign + " 3 2 0 5; " + exponent;
            expectNumbers({{"Pow", inputs.c_str(), "", 15}, expected});
        };
        power("i[4]", "f[1]=2.7", "i[4]: 19 6 0 77");
        power("j[4]", "f[1]=0.5", "j[4]: 1 1 0 2");
        power("i[4]", "f[1]=2", "i[4]: 9 4 0 25");
        power("f[4]", "i[1]=3", "f[4]: 27 8 0 125");
        power("j[4]", "i[4]=0 1 2 3", "j[4]: 1 2 0 125");
    }
    expectNumbers({{"Pow", "i[2]: 2 9; f[2]: 0.5 1.5", "", 15}, "i[2]: 1 27"});
}

TEST(OnnxAttributes, ClipWithBoundsThatCrossIsTheUpperOne)
{
    expectNumbers({{"Clip", "f[3]: -4 0 4; f[]=3; f[]=2", "", 13}, "f[3]: 2 2 2"});
    expectNumbers({{"Clip", "f[3]: -4 0 4; f[]=3; f[]: 2", "", 13}, "f[3]: 2 2 2"});
    expectNumbers({{"Clip", "f[3]: -4 0 4; f[]: 3; f[]=2", "", 13}, "f[3]: 2 2 2"});
    expectNumbers({{"Clip", "f[3]: -4 0 4; f[]=-1; f[]: 2", "", 13}, "f[3]: -1 0 2"});
    expectNumbers({{"Clip", "u[4]: 0 9 100 200; u[]=7; u[]=120", "", 13}, "u[4]: 7 9 100 120"});
}

TEST(OnnxAttributes, IntegersThatNoFractionHoldsStayExact)
{
    constexpr std::int64_t kOdd = (std::int64_t{1} << 53) + 1;
    const auto attributeOf = [](OnnxFile &file, const char *name) {
        file.output("y");
        const auto graph = importOnnxBytes(file.bytes(), {}, unfused());
        EXPECT_TRUE(graph) << describe(graph.error());
        return graph ? graph->operators.front().attributes.integer(name) : 0;
    };
    OnnxFile pad(13);
    *pad.graph().add_initializer() = OnnxFile::integers("value", {}, {kOdd});
    pad.input("x", {2}, OnnxFile::kInt64).list("pads", {1, 1}).node("Pad", {"x", "pads", "value"}, {"y"});
    EXPECT_EQ(attributeOf(pad, "value"), kOdd);
    OnnxFile clip(13);
    *clip.graph().add_initializer() = OnnxFile::integers("high", {}, {kOdd});
    clip.input("x", {2}, OnnxFile::kInt64).node("Clip", {"x", "", "high"}, {"y"});
    EXPECT_EQ(attributeOf(clip, "max"), kOdd);
    OnnxFile range(11);
    const std::pair<const char *, std::int64_t> numbers[] = {
        {"start", kOdd - 1}, {"limit", kOdd + 2}, {"step", 1}};
    for (const auto &[name, value] : numbers)
        *range.graph().add_initializer() = OnnxFile::integers(name, {}, {value});
    range.node("Range", {"start", "limit", "step"}, {"y"});
    range.output("y");
    const auto counted = importOnnxBytes(range.bytes(), {}, unfused());
    ASSERT_TRUE(counted) << describe(counted.error());
    EXPECT_EQ(counted->at(counted->outputs.front()).type.shape, Shape{3});
}

TEST(OnnxAttributes, HardmaxOverSeveralDimensionsBeforeOperatorSet13)
{
    const char *x = "f[2 2 2]: 1 5 2 3 4 0 4 1";
    expectNumbers({{"Hardmax", x, "", 11}, "f[2 2 2]: 0 1 0 0 1 0 0 0"});
    expectNumbers({{"Hardmax", x, "axis 0", 7}, "f[2 2 2]: 0 1 0 0 0 0 0 0"});
    expectNumbers({{"Hardmax", x, "", 13}, "f[2 2 2]: 0 1 0 1 1 0 1 0"});
}

TEST(OnnxAttributes, BatchNormalizationOfEveryElement)
{
    expectNumbers(
        {{"BatchNormalization", "f[2 1 2]: 1 2 3 6; f[1 2]=1 2; f[1 2]=0 1; f[1 2]=1 2; f[1 2]=4 0.25",
             "spatial 0; epsilon 0f", 7},
            "f[2 1 2]: 0 1 1 17"});
}

TEST(OnnxAttributes, OutputShapeOfConvTransposeDecidesItsPadding)
{
    // One more is cut off in front, unless SAME_UPPER says behind.
    const char *inputs = "f[1 1 1 3]: 1 2 3; f[1 1 1 2]=1 10";
    const auto transposed = [&](const char *attributes, const char *expected) {
        expectNumbers({{"ConvTranspose", inputs, attributes, 11}, expected});
    };
    transposed("output_shape 1 3", "f[1 1 1 3]: 12 23 30");
    transposed("output_shape 1 3; auto_pad SAME_UPPER", "f[1 1 1 3]: 1 12 23");
    transposed("output_shape 1 3; auto_pad SAME_LOWER", "f[1 1 1 3]: 12 23 30");
}

TEST(OnnxAttributes, QuantizationInTheTypesThatAreAskedFor)
{
    // 2049 is no half: divided in halves, it is 2048.
    const char *x = "f[3]: 2049 4.5 -3; f[]=1; u[]=1";
    expectNumbers(
        {{"QuantizeLinear", "f[3]: 204.9 4.5 -3; f[]=0.1; u[]=0", "precision 1", 23}, "u[3]: 255 45 0"});
    expectNumbers({{"QuantizeLinear", x, "precision 10", 23}, "u[3]: 255 5 0"});
    expectNumbers(
        {{"DequantizeLinear", "u[2]: 3 250; f[]=0.5; u[]=1", "output_dtype 1", 23}, "f[2]: 1 124.5"});
    const auto graph = importOnnxBytes(
        exampleFile({"DequantizeLinear", "u[2]; f[]=0.5", "output_dtype 10", 23}, false).bytes(), {},
        unfused());
    ASSERT_TRUE(graph) << describe(graph.error());
    EXPECT_EQ(graph->at(graph->outputs.front()).type.dataType, DataType::Float16);
}

TEST(OnnxAttributes, StatisticsOfHalvesAreFloats)
{
    const auto graph = importOnnxBytes(
        exampleFile({"LayerNormalization", "h[2 3]; h[3]; h[3]", "stash_type 1", 17, 3}, false).bytes(), {},
        unfused());
    ASSERT_TRUE(graph) << describe(graph.error());
    EXPECT_EQ(graph->at(graph->outputs[0]).type.dataType, DataType::Float16);
    EXPECT_EQ(graph->at(graph->outputs[1]).type.dataType, DataType::Float32);
    EXPECT_EQ(graph->at(graph->outputs[2]).type.dataType, DataType::Float32);
}

} // namespace
} // namespace planloom
