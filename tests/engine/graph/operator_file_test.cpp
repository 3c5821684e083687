// Operator files: what they say, what is wrong in them and where, and that they print as they read.

#include "engine/graph/operator_files/custom_operator.h"
#include "engine/graph/operator_files/operator_file.h"

#include <gtest/gtest.h>

#include <random>

namespace planloom {
namespace {

constexpr const char *kSwish = R"op(planloom-operators 1

# y = x * sigmoid(beta x)
operator    my.ops::Swish
also        my_ops::swish
inputs      x, [mask: bool], index: int64   # three
outputs     y, count: int64
saves       kept: like x
attribute   beta = 1
attribute   name = "a \"quoted\" # text"
attribute   sizes = [1, 2.5]
attribute   needed
annotation  b (h d) k+, b h, 4 -> b (h d), b, b
linear      x
where       d = 2 * beta
shape       count = [b, ceil(b / 2)]
flops       14 * b * h * whole(k)
backward_flops 3 + -b * (h - 1)
units       matrix
workspace   8 * max(b, h)
library     "lib/libswish.so" swish
torch       "x * torch.sigmoid(beta * x), torch.ones_like(x[..., 0:1, :]), F.gelu(x, approximate='tanh').sum((0, -1), keepdim=True)"
derivative  my.ops::SwishGrad(d.y, x, kept) -> d.x

operator    my.ops::SwishGrad
inputs      dy, x, kept
outputs     dx: like x
annotation  b^, b^, b^ -> b^
body
    a, c = Split(x, axis=-1, sizes=[b - 1, 1])
    r = Reshape(a) : [b, 1]
    i = Cast(r) : int64
    s = Softmax(kept, axis=-1)
    dx = Mul(s, 0.5)
end
)op";

std::vector<std::shared_ptr<const OperatorDefinition>> read(const std::string &text)
{
    auto definitions = readOperatorFile(text, "my.ops", "/models");
    EXPECT_TRUE(definitions) << describe(definitions.error());
    return definitions.value_or(std::vector<std::shared_ptr<const OperatorDefinition>>{});
}

/// "LINE:COLUMN message" of the error that reading `text` behind the header gives.
std::string errorOf(const std::string &text)
{
    const auto definitions = readOperatorFile("planloom-operators 1\n" + text, "f");
    if (definitions)
        return "none";
    EXPECT_EQ(definitions.error().code, ErrorCode::InvalidInput);
    EXPECT_EQ(definitions.error().where.substr(0, 2), "f:");
    return definitions.error().where.substr(2) + " " + definitions.error().message;
}

std::string operatorWith(const std::string &lines)
{
    return "operator t::A\ninputs x, w\noutputs y\n" + lines;
}

TEST(OperatorFile, SaysEverythingOfAnOperator)
{
    const auto definitions = read(kSwish);
    ASSERT_EQ(definitions.size(), 2u);
    const OperatorDefinition &swish = *definitions[0];
    EXPECT_EQ(swish.name, (DefinedName{"my.ops", "Swish"}));
    EXPECT_EQ(swish.alsoNamed, (std::vector<DefinedName>{{"my_ops", "swish"}}));
    EXPECT_EQ(swish.inputs,
        (std::vector<DefinedTensor>{{"x", false, {}, {}}, {"mask", true, DataType::Bool, {}},
            {"index", false, DataType::Int64, {}}}));
    EXPECT_EQ(swish.saved, (std::vector<DefinedTensor>{{"kept", false, {}, "x"}}));
    EXPECT_EQ(swish.attributes[0].fallback, Attribute(std::int64_t{1}));
    EXPECT_EQ(swish.attributes[1].fallback, Attribute(std::string("a \"quoted\" # text")));
    EXPECT_EQ(swish.attributes[2].fallback, Attribute(std::vector<double>{1, 2.5}));
    EXPECT_FALSE(swish.attributes[3].fallback);
    EXPECT_EQ(swish.annotation, "b (h d) k+, b h, 4 -> b (h d), b, b");
    EXPECT_EQ(toString(*swish.flops), "14 * b * h * whole(k)");
    EXPECT_EQ(toString(*swish.backwardFlops), "3 + -b * (h - 1)");
    EXPECT_TRUE(swish.matrixUnits);
    EXPECT_EQ(swish.library, (DefinedLibrary{"/models/lib/libswish.so", "swish"}));
    EXPECT_EQ(swish.line, 4);
    ASSERT_EQ(swish.derivative.way, DefinedDerivative::Way::Operator);
    EXPECT_EQ(swish.derivative.definition->name.type, "SwishGrad");
    EXPECT_EQ(
        swish.derivative.reads, (std::vector<DerivativeValue>{{"y", true}, {"x", false}, {"kept", false}}));
    EXPECT_EQ(definitions[1]->body.size(), 5u);
    EXPECT_EQ(definitions[1]->derivative.way, DefinedDerivative::Way::Body); // a body is differentiated
}

TEST(OperatorFile, PrintsAsItReads)
{
    const auto definitions = read(kSwish);
    const std::string printed = printOperatorFile(definitions);
    const auto again = read(printed);
    ASSERT_EQ(again.size(), definitions.size());
    for (std::size_t i = 0; i < again.size(); ++i)
        EXPECT_EQ(*again[i], *definitions[i]) << printed;
    EXPECT_EQ(printOperatorFile(again), printed);
    EXPECT_EQ(
        *read(printOperatorFile({definitions[0]})).at(0), *definitions[0]); // with its derivative's operator
}

TEST(OperatorFile, PointsAtWhatIsWrong)
{
    EXPECT_EQ(errorOf("flops 3\n"), "2:1 'flops' stands before the first operator");
    EXPECT_EQ(errorOf("operator t::A\n"), "2:10 t::A has no inputs");
    EXPECT_EQ(errorOf(operatorWith("frob 3\n")), "5:1 expected a statement, found 'frob'");
    EXPECT_EQ(errorOf(operatorWith("flops 3 *\n")), "5:10 expected a number, a name or '(', found the end");
    EXPECT_EQ(
        errorOf(operatorWith("flops 3 * q\n")), "5:7 'q' is no dimension of the annotation and no attribute");
    EXPECT_EQ(errorOf(operatorWith("annotation a, b ->\n")),
        "5:12 annotation 'a, b ->': has 0 outputs, but the operator has 1");
    EXPECT_EQ(errorOf(operatorWith("annotation a, b+ -> a, b\n")),
        "5:24 annotation 'a, b+ -> a, b': identifier 'b' has different marks");
    EXPECT_EQ(errorOf(operatorWith("annotation a -> a\n")),
        "5:12 annotation 'a -> a': has 1 inputs, but the operator has 2");
    EXPECT_EQ(errorOf(operatorWith("annotation a, b -> max: a\n")),
        "5:12 parts of outputs of operators from files are summed, not combined otherwise");
    EXPECT_NE(errorOf(operatorWith("annotation a[windows], b -> a ; a: 3\n")), "none");
    EXPECT_EQ(errorOf(operatorWith("linear z\n")), "5:8 'z' is no input of this operator");
    EXPECT_EQ(errorOf(operatorWith("flops 1\nflops 2\n")), "6:1 'flops' stands twice in this operator");
    EXPECT_EQ(
        errorOf(operatorWith("attribute x = 1\n")), "5:11 'x' is a name that this operator has already");
    EXPECT_EQ(errorOf(operatorWith("library libx.so f\n")), "5:9 expected a text in quotes, found 'libx'");
    EXPECT_EQ(
        errorOf(operatorWith("operator t::A\n")), "5:10 the operator t::A is defined in line 2 already");
    EXPECT_EQ(errorOf(operatorWith("units tensor\n")), "5:7 expected 'matrix' or 'vector', found 'tensor'");
}

TEST(OperatorFile, PointsAtWhatIsWrongInBodiesAndDerivatives)
{
    EXPECT_EQ(errorOf(operatorWith("body\n  y = Mul(x, q)\nend\n")),
        "6:14 'q' is no input or attribute, and no line above makes it");
    EXPECT_EQ(errorOf(operatorWith("body\n  y = Frob(x)\nend\n")),
        "6:7 'Frob' is no operator that Planloom computes");
    EXPECT_EQ(errorOf(operatorWith("body\n  y = Dropout(x)\nend\n")),
        "6:7 Dropout cannot stand in a body: it draws by an element's place in the whole tensor, which a "
        "body does "
        "not know");
    EXPECT_EQ(errorOf(operatorWith("body\n  z = Mul(x, w)\nend\n")), "5:1 the body does not make 'y'");
    EXPECT_EQ(errorOf(operatorWith("body\n  y = Mul(x, w)\n  y = Neg(x)\nend\n")), "7:3 'y' is made twice");
    EXPECT_EQ(errorOf(operatorWith("body\n  x = Mul(x, w)\nend\n")), "6:3 'x' is made twice");
    EXPECT_EQ(errorOf(operatorWith("body\n  y = Mul(x w)\nend\n")), "6:13 expected ',', found 'w'");
    EXPECT_EQ(errorOf(operatorWith("body\n  y = Mul(y, w)\nend\n")),
        "6:11 'y' is no input or attribute, and no line above makes it");
    EXPECT_EQ(errorOf(operatorWith("body\n  y = Mul(x, w)\n")), "5:5 this body has no 'end'");
    EXPECT_EQ(errorOf(operatorWith("derivative body\n")), "5:12 there is no body to differentiate");
    EXPECT_EQ(
        errorOf(operatorWith("derivative t::G(d.y) -> d.x\n")), "5:12 this file defines no operator t::G");
    EXPECT_EQ(errorOf(operatorWith("derivative t::A(d.x) -> d.x\n")),
        "5:17 expected the gradient of an output, as in d.y");
    EXPECT_EQ(errorOf(operatorWith("derivative t::A(d.y) -> x\n")),
        "5:25 expected the gradient of an input, as in d.x");
    EXPECT_EQ(
        errorOf(operatorWith("derivative t::A(d.y) -> d.x\n")), "5:12 t::A has 2 inputs, but is given 1");
}

TEST(OperatorFile, RefusesOtherFilesAndVersions)
{
    for (const char *text : {"", "hello", "planloom-operators 2\n", "planloom-operators\n"}) {
        const auto read = readOperatorFile(text, "f");
        ASSERT_FALSE(read) << text;
        EXPECT_NE(read.error().advice.find("planloom-operators 1"), std::string::npos) << text;
    }
    const auto large = readOperatorFile(std::string(kMostOperatorFileBytes + 1, '\n'), "f");
    ASSERT_FALSE(large);
    EXPECT_EQ(large.error().code, ErrorCode::ResourceLimit);
}

TEST(OperatorFile, TakesDeepAndDamagedTextsAsErrors)
{
    const std::string deep = "flops " + std::string(100'000, '(') + "1" + std::string(100'000, ')') + "\n";
    EXPECT_NE(errorOf(operatorWith(deep)).find("brackets at most"), std::string::npos);
    const std::string minus = "flops " + std::string(100'000, '-') + "1\n";
    EXPECT_NE(errorOf(operatorWith(minus)).find("brackets at most"), std::string::npos);
    // Whatever single byte is lost or changed, reading ends, and what still reads prints as it reads.
    std::mt19937 random(7);
    const std::string whole = kSwish;
    for (int trial = 0; trial < 3'000; ++trial) {
        std::string text = whole;
        const std::size_t at = random() % text.size();
        if (trial % 2 == 0)
            text.erase(at, 1 + random() % 3);
        else
            text[at] = static_cast<char>(random() % 128);
        const auto definitions = readOperatorFile(text, "f");
        if (!definitions)
            continue;
        const std::string printed = printOperatorFile(*definitions);
        const auto again = readOperatorFile(printed, "f");
        ASSERT_TRUE(again) << describe(again.error()) << "\n" << printed;
        ASSERT_EQ(printOperatorFile(*again), printed);
    }
}

TEST(CustomOperator, HasShapesByItsAnnotation)
{
    const auto definitions = read("planloom-operators 1\noperator t::A\ninputs x, [bias]\noutputs y, total\n"
                                  "annotation b * k, k -> b * (2 n), 1\nwhere n = k / 4\n"
                                  "library \"a.so\" f\n");
    Attributes attributes;
    attributes.setDefinition(definitions.at(0));
    const std::vector<TensorType> inputs{{DataType::Float64, {3, 5, 7, 8}}, {DataType::Float64, {8}}};
    const auto types = customTypes(attributes, inputs, {true, true});
    ASSERT_TRUE(types) << describe(types.error());
    EXPECT_EQ(*types, (std::vector<TensorType>{{DataType::Float64, {3, 5, 7, 4}}, {DataType::Float64, {}}}));
    EXPECT_TRUE(customTypes(attributes, {inputs[0], {}}, {true, false}));
    EXPECT_FALSE(customTypes(attributes, {inputs[0], {DataType::Float64, {9}}}, {true, true}));
    EXPECT_FALSE(customTypes(attributes, {{DataType::Float64, {3, 5, 7, 6}}, {}}, {true, false})); // 6 / 4
    const auto absent = customAnnotation(attributes, {inputs[0], {}}, {true, false}, *types);
    EXPECT_EQ(absent.problem, "");
    EXPECT_EQ(toString(absent.annotation), "b a c k, ? -> b a c (2 n^), 1");
}

TEST(CustomOperator, CountsTheWorkOfItsPart)
{
    const auto definitions = read("planloom-operators 1\noperator t::A\ninputs x, w\noutputs y\n"
                                  "annotation m k+, k+ n -> m n\nflops 2 * m * k * n\nlibrary \"a.so\" f\n"
                                  "derivative none\n");
    Operator op;
    op.kind = OperatorKind::Custom;
    op.attributes.setDefinition(definitions.at(0));
    op.inputs = {TensorId{0}, TensorId{1}};
    op.outputs = {TensorId{2}};
    const auto type = [](Shape shape) { return TensorType{DataType::Float32, std::move(shape)}; };
    op.annotation =
        customAnnotation(op.attributes, {type({4, 6}), type({6, 8})}, {true, true}, {type({4, 8})})
            .annotation;
    EXPECT_EQ(workOf(op, {type({4, 6}), type({6, 8})}, {type({4, 8})}).flops, 2 * 4 * 6 * 8);
    EXPECT_EQ(workOf(op, {type({2, 3}), type({3, 8})}, {type({2, 8})}).flops, 2 * 2 * 3 * 8);
    EXPECT_EQ(categoryOf(op), OperatorCategory::Other);
    EXPECT_EQ(typeNameOf(op), "t::A");
}

TEST(CustomOperator, TakesAttributesOfTheModelAndFillsInTheRest)
{
    const auto definitions =
        read("planloom-operators 1\noperator t::A\ninputs x\noutputs y\nattribute beta = 1.0\n"
             "attribute k\nannotation n -> n\nlibrary \"a.so\" f\n");
    Attributes given;
    EXPECT_NE(
        completedAttributes(definitions[0], given).error().message.find("'k' is missing"), std::string::npos);
    given.set("k", std::int64_t{3});
    EXPECT_EQ(completedAttributes(definitions[0], given)->real("beta"), 1.0);
    given.set("beta", std::int64_t{2});
    EXPECT_EQ(completedAttributes(definitions[0], given)->real("beta"), 2.0); // a whole number is a number
    given.set("beta", std::string("two"));
    EXPECT_FALSE(completedAttributes(definitions[0], given));
}

TEST(OperatorFile, TakesTorchExpressionsThatComputeAlone)
{
    const auto said = [](const std::string &expression) {
        return errorOf(
            "operator a::B\ninputs x\noutputs y\nattribute beta = 2\ntorch \"" + expression + "\"");
    };
    for (const char *const good : {"x", "-x ** 2 @ x.mT", "torch.ops.my_ops.swish(x, beta)",
             "(x, x[:, 1:-1], [1, 2.5e-3])", "torch.special.expit(x).to(torch.float32)",
             "torch.where(x > 0, x, beta * x)", "torch.nansum(x, dim=(0, 1), keepdim=True)",
             "F.interpolate(x, scale_factor=2.0, mode='nearest')"})
        EXPECT_EQ(said(good), "none") << good;
    EXPECT_EQ(said("x + gamma"),
        "6:12 'gamma', which is no value or attribute of the operator, cannot stand in a torch expression");
    EXPECT_EQ(said("torch.exp(x"), "6:19 expected ')', found nothing more");
    for (const char *const bad :
        {"torch.load(x)", "torch.hub.load(x)", "torch.ops.load_library('a.so')", "__import__('os')",
            "x.__class__", "x.add_(1)", "torch.exp(x, out=x)", "F.relu(x, inplace=True)", "torch.exp",
            "x.numpy()", "F.gelu(x, approximate='a b')", "torch.sum(x, dtype='float')", "[x for x in x]",
            "lambda: x", "x; x", "x[, 1]", "torch._C.f(x)", "x if x else x", "print(x)", "", "x +"})
        EXPECT_NE(said(bad), "") << bad;
    EXPECT_NE(said(std::string(5000, '(')), "");
    EXPECT_NE(said(std::string(2000, '(') + "x" + std::string(2000, ')')), "");
}

} // namespace
} // namespace planloom
