// Kernels whose definition is intricate, against that definition written out loop by loop.

#include "engine/base/work_pool.h"
#include "engine/check/part_runner.h"
#include "tests/engine/kernels/output_of.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <future>
#include <random>

namespace planloom::testing {

namespace {

ExampleInput real(Shape shape)
{
    return {{DataType::Float64, std::move(shape)}, true, -1, 1, {}};
}

std::vector<double> inputOf(const OperatorValues &values, std::size_t slot, std::int64_t count)
{
    std::vector<double> numbers;
    for (std::int64_t i = 0; i < count; ++i)
        numbers.push_back(numberAt(values[slot], DataType::Float64, i));
    return numbers;
}

void expectNear(const std::vector<double> &expected, const std::vector<double> &found)
{
    ASSERT_EQ(expected.size(), found.size());
    for (std::size_t i = 0; i < expected.size(); ++i)
        ASSERT_NEAR(expected[i], found[i], 1e-10 * (1 + std::fabs(expected[i]))) << "element " << i;
}

/// Extents and parameters of a two-dimensional convolution.
struct Conv2d {
    std::int64_t n, groups, c, o, h, w, kh, kw; ///< c and o are per group.
    std::array<std::int64_t, 2> strides, dilations;
    std::array<std::int64_t, 4> pads;

    std::int64_t outExtent(std::size_t d) const
    {
        const std::int64_t in = d == 0 ? h : w;
        const std::int64_t kernel = d == 0 ? kh : kw;
        return (in + pads[d] + pads[d + 2] - dilations[d] * (kernel - 1) - 1) / strides[d] + 1;
    }
};

Conv2d drawConv(std::mt19937_64 &random)
{
    const auto pick = [&random](std::int64_t from, std::int64_t to) {
        return std::uniform_int_distribution<std::int64_t>(from, to)(random);
    };
    Conv2d conv{};
    conv.n = pick(1, 2);
    conv.groups = pick(1, 3);
    conv.c = pick(1, 3);
    conv.o = pick(1, 3);
    conv.kh = pick(1, 3);
    conv.kw = pick(1, 3);
    conv.strides = {pick(1, 3), pick(1, 2)};
    conv.dilations = {pick(1, 2), pick(1, 2)};
    conv.pads = {pick(0, 2), pick(0, 2), pick(0, 2), pick(0, 2)};
    conv.h = pick(5, 7);
    conv.w = pick(5, 7);
    return conv;
}

OperatorExample exampleOf(const Conv2d &conv, bool transposed)
{
    OperatorExample example;
    example.name = "conv";
    example.kind = transposed ? OperatorKind::ConvTranspose : OperatorKind::Conv;
    example.attributes.set("group", conv.groups);
    example.attributes.set("strides", std::vector<std::int64_t>(conv.strides.begin(), conv.strides.end()));
    example.attributes.set(
        "dilations", std::vector<std::int64_t>(conv.dilations.begin(), conv.dilations.end()));
    example.attributes.set("pads", std::vector<std::int64_t>(conv.pads.begin(), conv.pads.end()));
    const Shape y{conv.n, conv.groups * conv.o, conv.outExtent(0), conv.outExtent(1)};
    const Shape x{conv.n, conv.groups * conv.c, conv.h, conv.w};
    if (transposed) {
        // What is left over where strides do not meet the end.
        std::vector<std::int64_t> padding;
        for (std::size_t d = 0; d < 2; ++d) {
            const std::int64_t kernel = d == 0 ? conv.kh : conv.kw;
            padding.push_back((d == 0 ? conv.h : conv.w)
                - ((conv.outExtent(d) - 1) * conv.strides[d] + conv.dilations[d] * (kernel - 1) + 1
                    - conv.pads[d] - conv.pads[d + 2]));
        }
        example.attributes.set("output_padding", padding);
    }
    example.inputs = {real(transposed ? y : x), real({conv.groups * conv.o, conv.c, conv.kh, conv.kw}),
        real({conv.groups * (transposed ? conv.c : conv.o)})};
    return example;
}

/// Calls visit(x index, w index, y index, output channel) for every term of the convolution.
template<typename Visit> void forEachTerm(const Conv2d &v, Visit visit)
{
    for (std::int64_t n = 0; n < v.n; ++n)
        for (std::int64_t g = 0; g < v.groups; ++g)
            for (std::int64_t o = 0; o < v.o; ++o)
                for (std::int64_t i = 0; i < v.outExtent(0); ++i)
                    for (std::int64_t j = 0; j < v.outExtent(1); ++j)
                        for (std::int64_t c = 0; c < v.c; ++c)
                            for (std::int64_t a = 0; a < v.kh; ++a)
                                for (std::int64_t b = 0; b < v.kw; ++b) {
                                    const std::int64_t h = i * v.strides[0] - v.pads[0] + a * v.dilations[0];
                                    const std::int64_t w = j * v.strides[1] - v.pads[1] + b * v.dilations[1];
                                    if (h < 0 || w < 0 || h >= v.h || w >= v.w)
                                        continue;
                                    const std::int64_t x =
                                        ((n * v.groups + g) * v.c + c) * v.h * v.w + h * v.w + w;
                                    const std::int64_t y =
                                        ((n * v.groups + g) * v.o + o) * v.outExtent(0) * v.outExtent(1)
                                        + i * v.outExtent(1) + j;
                                    const std::int64_t weight =
                                        (((g * v.o + o) * v.c + c) * v.kh + a) * v.kw + b;
                                    visit(static_cast<std::size_t>(x), static_cast<std::size_t>(weight),
                                        static_cast<std::size_t>(y));
                                }
}

} // namespace

TEST(Conv, EqualsItsDefinition)
{
    std::mt19937_64 random(7);
    for (int round = 0; round < 60; ++round) {
        SCOPED_TRACE(round);
        const Conv2d conv = drawConv(random);
        OperatorValues values;
        const auto y = outputOf(exampleOf(conv, false), 0, static_cast<std::uint64_t>(round), &values);
        ASSERT_TRUE(y) << describe(y.error());
        const auto x = inputOf(values, 0, conv.n * conv.groups * conv.c * conv.h * conv.w);
        const auto w = inputOf(values, 1, conv.groups * conv.o * conv.c * conv.kh * conv.kw);
        const auto bias = inputOf(values, 2, conv.groups * conv.o);
        const auto plane = static_cast<std::size_t>(conv.outExtent(0) * conv.outExtent(1));
        std::vector<double> expected(y->size());
        for (std::size_t i = 0; i < expected.size(); ++i)
            expected[i] = bias[i / plane % bias.size()];
        forEachTerm(
            conv, [&](std::size_t xi, std::size_t wi, std::size_t yi) { expected[yi] += x[xi] * w[wi]; });
        expectNear(expected, *y);
    }
}

/// As models have them: cut into blocks of windows, of several images where these are small, and into parts
/// of channels.
TEST(Conv, OfAnySizeAndItsGradientsEqualTheirDefinition)
{
    const std::array<Conv2d, 9> sizes{{
        {3, 1, 24, 5, 23, 29, 3, 3, {1, 1}, {1, 1}, {1, 1, 1, 1}}, // several blocks of an image
        {9, 1, 40, 6, 7, 7, 3, 3, {1, 1}, {1, 1}, {1, 1, 1, 1}}, // of five images each, and a rest
        {2, 1, 3, 8, 37, 31, 7, 7, {2, 2}, {1, 1}, {3, 3, 3, 3}}, // channels too few to be parts
        {5, 1, 300, 7, 6, 5, 1, 1, {1, 1}, {1, 1}, {0, 0, 0, 0}}, // pointwise, joined
        {2, 1, 270, 7, 19, 17, 1, 1, {1, 1}, {1, 1}, {0, 0, 0, 0}}, // pointwise, in place
        {3, 1, 17, 9, 21, 23, 1, 1, {2, 3}, {1, 1}, {0, 0, 0, 0}}, // leaves elements out
        {2, 21, 1, 2, 18, 20, 3, 3, {1, 2}, {2, 1}, {2, 0, 1, 2}}, // of each channel alone
        {4, 3, 50, 2, 4, 9, 2, 3, {1, 1}, {1, 2}, {0, 4, 3, 4}},
        {1, 1, 140, 3, 5, 6, 5, 1, {1, 1}, {2, 1}, {4, 0, 4, 0}}, // taps that are outside everywhere
    }};
    for (std::size_t round = 0; round < sizes.size(); ++round) {
        SCOPED_TRACE(round);
        const Conv2d &conv = sizes[round];
        const OperatorExample example = exampleOf(conv, false);
        const auto graph = graphOf(example);
        ASSERT_TRUE(graph) << describe(graph.error());
        const Operator &forward = graph->operators[0];
        const Operator &backward = graph->operators[1];
        OperatorValues values = drawValues(example, *graph, round);
        ASSERT_TRUE(runParts(*graph, forward, {}, values));
        ASSERT_TRUE(runParts(*graph, backward, {}, values));
        const auto x = numbersOf(*graph, forward.inputs[0], values);
        const auto w = numbersOf(*graph, forward.inputs[1], values);
        const auto bias = numbersOf(*graph, forward.inputs[2], values);
        const auto dy = numbersOf(*graph, backward.inputs[0], values);
        const auto plane = static_cast<std::size_t>(conv.outExtent(0) * conv.outExtent(1));
        std::vector<double> y(dy.size());
        std::vector<double> dx(x.size());
        std::vector<double> dw(w.size());
        std::vector<double> dbias(bias.size());
        for (std::size_t i = 0; i < y.size(); ++i) {
            y[i] = bias[i / plane % bias.size()];
            dbias[i / plane % bias.size()] += dy[i];
        }
        forEachTerm(conv, [&](std::size_t xi, std::size_t wi, std::size_t yi) {
            y[yi] += x[xi] * w[wi];
            dx[xi] += dy[yi] * w[wi];
            dw[wi] += dy[yi] * x[xi];
        });
        expectNear(y, numbersOf(*graph, forward.outputs[0], values));
        expectNear(dx, numbersOf(*graph, backward.outputs[0], values));
        expectNear(dw, numbersOf(*graph, backward.outputs[1], values));
        expectNear(dbias, numbersOf(*graph, backward.outputs[2], values));

        // The same bits on several threads.
        OperatorValues again = drawValues(example, *graph, round);
        WorkPool pool(3);
        std::promise<void> ran;
        pool.submit([&] {
            EXPECT_TRUE(runParts(*graph, forward, {}, again));
            EXPECT_TRUE(runParts(*graph, backward, {}, again));
            ran.set_value();
        });
        ran.get_future().wait();
        EXPECT_EQ(values, again);
    }
}

TEST(ConvTranspose, EqualsItsDefinition)
{
    std::mt19937_64 random(8);
    int tried = 0;
    for (int round = 0; round < 80; ++round) {
        SCOPED_TRACE(round);
        const Conv2d conv = drawConv(random);
        const OperatorExample example = exampleOf(conv, true);
        const auto padding = example.attributes.integers("output_padding");
        if (padding[0] < 0 || padding[1] < 0)
            continue;
        ++tried;
        OperatorValues values;
        const auto made = outputOf(example, 0, static_cast<std::uint64_t>(round), &values);
        ASSERT_TRUE(made) << describe(made.error());
        const auto from =
            inputOf(values, 0, conv.n * conv.groups * conv.o * conv.outExtent(0) * conv.outExtent(1));
        const auto w = inputOf(values, 1, conv.groups * conv.o * conv.c * conv.kh * conv.kw);
        const auto bias = inputOf(values, 2, conv.groups * conv.c);
        std::vector<double> expected(made->size());
        ASSERT_EQ(
            static_cast<std::int64_t>(expected.size()), conv.n * conv.groups * conv.c * conv.h * conv.w);
        for (std::size_t i = 0; i < expected.size(); ++i)
            expected[i] = bias[i / static_cast<std::size_t>(conv.h * conv.w) % bias.size()];
        forEachTerm(
            conv, [&](std::size_t xi, std::size_t wi, std::size_t yi) { expected[xi] += from[yi] * w[wi]; });
        expectNear(expected, *made);
    }
    EXPECT_GT(tried, 40);
}

TEST(Einsum, EqualsItsDefinition)
{
    // Random equations over few letters; extents by letter.
    std::mt19937_64 random(9);
    const auto pick = [&random](
                          int bound) { return std::uniform_int_distribution<int>(0, bound - 1)(random); };
    const std::string letters = "abcde";
    const std::array<std::int64_t, 5> extents{2, 3, 4, 1, 2};
    for (int round = 0; round < 300; ++round) {
        std::vector<std::string> operands(static_cast<std::size_t>(1 + pick(3)));
        std::string result;
        for (std::string &operand : operands) {
            for (int i = pick(4); i >= 0; --i)
                operand += letters[static_cast<std::size_t>(pick(5))];
        }
        for (const std::string &operand : operands) {
            for (const char letter : operand) {
                if (pick(2) == 0 && result.find(letter) == std::string::npos)
                    result += letter;
            }
        }
        std::string equation;
        OperatorExample example;
        example.name = "einsum";
        example.kind = OperatorKind::Einsum;
        for (const std::string &operand : operands) {
            equation += (equation.empty() ? "" : ",") + operand;
            Shape shape;
            for (const char letter : operand)
                shape.push_back(extents[static_cast<std::size_t>(letter - 'a')]);
            example.inputs.push_back(real(shape));
        }
        equation += "->" + result;
        SCOPED_TRACE(equation);
        example.attributes.set("equation", equation);
        OperatorValues values;
        const auto found = outputOf(example, 0, static_cast<std::uint64_t>(round), &values);
        ASSERT_TRUE(found) << describe(found.error());
        std::vector<double> expected(found->size(), 0.0);
        // Letters that no operand has are not summed over.
        std::array<std::int64_t, 5> bound{1, 1, 1, 1, 1};
        for (const std::string &operand : operands) {
            for (const char letter : operand)
                bound[static_cast<std::size_t>(letter - 'a')] =
                    extents[static_cast<std::size_t>(letter - 'a')];
        }
        std::array<std::int64_t, 5> at{};
        const auto offset = [&](const std::string &labels) {
            std::int64_t index = 0;
            for (const char letter : labels)
                index = index * extents[static_cast<std::size_t>(letter - 'a')]
                    + at[static_cast<std::size_t>(letter - 'a')];
            return index;
        };
        for (at[0] = 0; at[0] < bound[0]; ++at[0])
            for (at[1] = 0; at[1] < bound[1]; ++at[1])
                for (at[2] = 0; at[2] < bound[2]; ++at[2])
                    for (at[3] = 0; at[3] < bound[3]; ++at[3])
                        for (at[4] = 0; at[4] < bound[4]; ++at[4]) {
                            double product = 1;
                            for (std::size_t i = 0; i < operands.size(); ++i)
                                product *= numberAt(values[i], DataType::Float64, offset(operands[i]));
                            expected[static_cast<std::size_t>(offset(result))] += product;
                        }
        expectNear(expected, *found);
    }
}

namespace {

std::vector<double> resized(std::vector<double> x, std::int64_t out, const char *mode,
    const char *coordinates, const char *rounding, double scale)
{
    OperatorExample example;
    example.name = "resize";
    example.kind = OperatorKind::Resize;
    example.attributes.set("mode", std::string(mode));
    example.attributes.set("coordinate_transformation_mode", std::string(coordinates));
    example.attributes.set("nearest_mode", std::string(rounding));
    example.attributes.set("scales", std::vector<double>{1, 1, scale});
    const auto count = static_cast<std::int64_t>(x.size());
    ExampleInput input{{DataType::Float64, {1, 1, count}}, true, 0, 1, std::move(x)};
    example.inputs = {input};
    example.outputs = {{DataType::Float64, {1, 1, out}}};
    const auto made = outputOf(example);
    EXPECT_TRUE(made) << describe(made.error());
    return made ? *made : std::vector<double>{};
}

} // namespace

TEST(Resize, GivesTheValuesOfTheOnnxDefinition)
{
    // Worked out by hand from the coordinate formulas of ONNX's Resize.
    expectNear({1, 1, 1, 2, 2, 2}, resized({1, 2}, 6, "nearest", "half_pixel", "round_prefer_floor", 3));
    expectNear({1, 1, 2, 3}, resized({1, 2, 3}, 4, "nearest", "asymmetric", "floor", 4.0 / 3));
    expectNear({1, 2, 3, 3}, resized({1, 2, 3}, 4, "nearest", "asymmetric", "ceil", 4.0 / 3));
    expectNear({1, 1.25, 1.75, 2}, resized({1, 2}, 4, "linear", "half_pixel", "floor", 2));
    expectNear({1, 4.0 / 3, 5.0 / 3, 2}, resized({1, 2}, 4, "linear", "align_corners", "floor", 2));
    expectNear({1, 1.5, 2, 2}, resized({1, 2}, 4, "linear", "asymmetric", "floor", 2));
    expectNear({2.5}, resized({1, 2, 3, 4}, 1, "linear", "half_pixel", "floor", 0.25));
    expectNear({1}, resized({1, 2, 3, 4}, 1, "linear", "pytorch_half_pixel", "floor", 0.25));
    // Cubic with a = -0.75 half way between 2 and 3: (-3/32)(1 + 4) + (19/32)(2 + 3).
    expectNear({1, 2.5, 4}, resized({1, 2, 3, 4}, 3, "cubic", "align_corners", "floor", 0.75));
}

TEST(Lstm, EqualsTheEquationsOfOnnx)
{
    OperatorExample example;
    example.name = "lstm";
    example.kind = OperatorKind::Lstm;
    example.attributes.set("hidden_size", std::int64_t{1});
    example.attributes.set("direction", std::string("bidirectional"));
    example.inputs = {real({3, 1, 1}), real({2, 4, 1}), real({2, 4, 1}), real({2, 8})};
    example.outputs = {
        {DataType::Float64, {3, 2, 1, 1}}, {DataType::Float64, {2, 1, 1}}, {DataType::Float64, {2, 1, 1}}};
    OperatorValues values;
    const auto y = outputOf(example, 0, 4, &values);
    ASSERT_TRUE(y) << describe(y.error());
    const auto x = inputOf(values, 0, 3);
    const auto w = inputOf(values, 1, 8);
    const auto r = inputOf(values, 2, 8);
    const auto b = inputOf(values, 3, 16);
    const auto sigmoid = [](double v) { return 1 / (1 + std::exp(-v)); };
    std::vector<double> expected(6);
    for (std::size_t d = 0; d < 2; ++d) {
        double h = 0;
        double c = 0;
        for (std::size_t step = 0; step < 3; ++step) {
            const std::size_t t = d == 0 ? step : 2 - step;
            const auto gate = [&](std::size_t g) {
                return w[d * 4 + g] * x[t] + r[d * 4 + g] * h + b[d * 8 + g] + b[d * 8 + 4 + g];
            };
            const double in = sigmoid(gate(0));
            const double out = sigmoid(gate(1));
            const double forget = sigmoid(gate(2));
            c = forget * c + in * std::tanh(gate(3));
            h = out * std::tanh(c);
            expected[t * 2 + d] = h;
        }
    }
    expectNear(expected, *y);
}

} // namespace planloom::testing
