// What kernels do with particular values, and how they refuse others.

#include "engine/check/part_runner.h"
#include "engine/graph/operators/places.h"
#include "engine/kernels/elements/narrow_float.h"
#include "engine/kernels/kernel.h"
#include "tests/engine/kernels/output_of.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <numeric>

namespace planloom::testing {

namespace {

using Numbers = std::vector<double>;

ExampleInput given(DataType type, Shape shape, Numbers values)
{
    return {{type, std::move(shape)}, true, 0, 1, std::move(values)};
}

ExampleInput integers(Numbers values)
{
    const auto count = static_cast<std::int64_t>(values.size());
    return given(DataType::Int64, {count}, std::move(values));
}

ExampleInput floats(Numbers values)
{
    const auto count = static_cast<std::int64_t>(values.size());
    return given(DataType::Float32, {count}, std::move(values));
}

OperatorExample example(
    OperatorKind kind, std::vector<ExampleInput> inputs, std::vector<TensorType> outputs = {})
{
    OperatorExample made;
    made.name = nameOf(kind);
    made.kind = kind;
    made.inputs = std::move(inputs);
    made.outputs = std::move(outputs);
    made.optimizer = categoryOf(kind) == OperatorCategory::Optimizer;
    return made;
}

template<typename Value> OperatorExample with(OperatorExample from, std::string_view name, Value value)
{
    from.attributes.set(name, Attribute(std::move(value)));
    return from;
}

Numbers run(const OperatorExample &what, std::size_t slot = 0)
{
    const auto made = outputOf(what, slot);
    EXPECT_TRUE(made) << describe(made.error());
    return made ? *made : Numbers{};
}

/// Gradients of the inputs of an example, all output gradients being the same.
std::vector<Numbers> gradients(const OperatorExample &what, double ofOutputs = 1)
{
    const auto graph = graphOf(what);
    EXPECT_TRUE(graph) << describe(graph.error());
    EXPECT_EQ(graph->operators.size(), 2u);
    OperatorValues values = drawValues(what, *graph, 1);
    const Operator &backward = graph->operators[1];
    for (std::size_t slot = 0; slot < graph->operators[0].outputs.size(); ++slot) {
        const TensorId id = backward.inputs[slot];
        for (std::int64_t i = 0; i < elementCount(graph->at(id).type.shape); ++i)
            setNumber(values[static_cast<std::size_t>(id.index)], graph->at(id).type.dataType, i, ofOutputs);
    }
    for (const Operator &op : graph->operators) {
        const auto ran = runParts(*graph, op, {}, values);
        EXPECT_TRUE(ran) << describe(ran.error());
    }
    std::vector<Numbers> made;
    for (const TensorId id : backward.outputs)
        made.push_back(id.valid() ? numbersOf(*graph, id, values) : Numbers{});
    return made;
}

Error errorOf(const OperatorExample &what)
{
    const auto made = outputOf(what);
    EXPECT_FALSE(made);
    return made ? Error{} : made.error();
}

bool contains(const std::string &text, const std::string &part)
{
    return text.find(part) != std::string::npos;
}

} // namespace

TEST(Integers, FollowTheRulesOfOnnx)
{
    using enum OperatorKind;
    EXPECT_EQ(run(example(Add, {integers({1, -2}), integers({3})})), (Numbers{4, 1}));
    EXPECT_EQ(run(example(Div, {integers({7, -7}), integers({2})})), (Numbers{3, -3}));
    EXPECT_EQ(
        run(example(Mod, {integers({7, -7, 7, -7}), integers({3, 3, -3, -3})})), (Numbers{1, 2, -2, -1}));
    EXPECT_EQ(run(with(example(Mod, {integers({7, -7, 7, -7}), integers({3, 3, -3, -3})}), "fmod",
                  std::int64_t{1})),
        (Numbers{1, -1, 1, -1}));
    EXPECT_EQ(run(example(Pow, {integers({3, -2, 2}), integers({4, 3, 0})})), (Numbers{81, -8, 1}));
    EXPECT_EQ(run(example(Max, {integers({3, -2}), integers({1})})), (Numbers{3, 1}));
    EXPECT_EQ(run(example(Neg, {integers({3, -2})})), (Numbers{-3, 2}));
    EXPECT_EQ(
        run(with(with(example(ReduceProd, {integers({3, -2, 5})}), "axes", std::vector<std::int64_t>{0}),
            "keepdims", std::int64_t{0})),
        (Numbers{-30}));
    EXPECT_EQ(run(example(MatMul,
                  {given(DataType::Int64, {2, 2}, {1, 2, 3, 4}), given(DataType::Int64, {2, 1}, {5, 6})})),
        (Numbers{17, 39}));
    EXPECT_EQ(
        run(with(with(example(OperatorKind::Range, {}, {{DataType::Int64, {3}}}), "start", std::int64_t{5}),
            "delta", std::int64_t{-2})),
        (Numbers{5, 3, 1}));
}

TEST(Integers, RefuseDivisionByZeroNamingTheOperator)
{
    using enum OperatorKind;
    for (const OperatorKind kind : {Div, Mod}) {
        const Error error = errorOf(example(kind, {integers({7, 1}), integers({2, 0})}));
        EXPECT_EQ(error.code, ErrorCode::InvalidInput);
        EXPECT_EQ(error.where, "operator:example");
    }
}

TEST(Casts, TruncateAndMakeOfWhatDoesNotFitWhatProcessorsDo)
{
    using enum OperatorKind;
    const auto cast = [](DataType from, DataType to, Numbers values) {
        const auto count = static_cast<std::int64_t>(values.size());
        return run(example(Cast, {given(from, {count}, std::move(values))}, {{to, {count}}}));
    };
    EXPECT_EQ(cast(DataType::Float32, DataType::Int32, {1.9, -1.9, 1e30, std::nan("")}),
        (Numbers{1, -1, -2147483648.0, -2147483648.0}));
    EXPECT_EQ(cast(DataType::Float64, DataType::Int64, {1.9, -1e19}), (Numbers{1, -9223372036854775808.0}));
    EXPECT_EQ(cast(DataType::Float32, DataType::UInt8, {255.9, 300, -1, 1e10}), (Numbers{255, 44, 255, 0}));
    EXPECT_EQ(cast(DataType::Float32, DataType::Bool, {0, -0.5, 2}), (Numbers{0, 1, 1}));
    EXPECT_EQ(cast(DataType::Int64, DataType::Float32, {3, -4}), (Numbers{3, -4}));
    EXPECT_EQ(cast(DataType::Bool, DataType::Int64, {0, 1}), (Numbers{0, 1}));
}

TEST(Casts, ThroughSixteenBitsKeepWhatThoseCanHold)
{
    using enum OperatorKind;
    const Numbers numbers{0, 1, -2.5, 65504, 6.103515625e-05, 5.9604644775390625e-08, 0.333251953125};
    for (const auto &[type, exact] :
        {std::pair{DataType::Float16, true}, std::pair{DataType::BFloat16, false}}) {
        const auto count = static_cast<std::int64_t>(numbers.size());
        const Operator op{.name = "cast", .kind = Cast};
        std::vector<float> x(numbers.begin(), numbers.end());
        std::vector<std::uint16_t> half(numbers.size());
        std::vector<float> back(numbers.size());
        const auto buffer = [count](auto &of, DataType dataType) {
            return Buffer{
                reinterpret_cast<std::byte *>(of.data()), dataType, {count}, wholeMask({count}), {count}};
        };
        ASSERT_TRUE(runKernel(
            {.op = &op, .inputs = {buffer(x, DataType::Float32)}, .outputs = {buffer(half, type)}}));
        ASSERT_TRUE(runKernel(
            {.op = &op, .inputs = {buffer(half, type)}, .outputs = {buffer(back, DataType::Float32)}}));
        for (std::size_t i = 0; i < x.size(); ++i) {
            if (exact)
                EXPECT_EQ(x[i], back[i]) << nameOf(type);
            else
                EXPECT_NEAR(x[i], back[i], std::fabs(x[i]) / 256) << nameOf(type);
        }
    }
}

TEST(Indices, OutsideTheTensorAreNamed)
{
    using enum OperatorKind;
    const ExampleInput table = given(DataType::Float32, {4, 2}, {0, 1, 2, 3, 4, 5, 6, 7});
    for (const double index : {4.0, -5.0}) {
        const Error gather =
            errorOf(with(example(Gather, {table, integers({1, index})}), "axis", std::int64_t{0}));
        EXPECT_EQ(gather.code, ErrorCode::InvalidInput);
        EXPECT_TRUE(contains(gather.message, std::to_string(static_cast<int>(index)))) << gather.message;
        EXPECT_TRUE(contains(gather.message, "[-4, 4)")) << gather.message;
        EXPECT_TRUE(contains(gather.message, "example")) << gather.message;
        EXPECT_EQ(errorOf(example(Embedding, {table, integers({index})})).code, ErrorCode::InvalidInput);
        const ExampleInput one = given(DataType::Int64, {1, 2}, {0, index});
        EXPECT_EQ(errorOf(with(example(GatherElements, {table, one}), "axis", std::int64_t{0})).code,
            ErrorCode::InvalidInput);
        EXPECT_EQ(errorOf(example(ScatterND,
                              {table, given(DataType::Int64, {1, 1}, {index}),
                                  given(DataType::Float32, {1, 2}, {8, 9})}))
                      .code,
            ErrorCode::InvalidInput);
    }
    EXPECT_EQ(run(with(example(Gather, {table, integers({-1, 0})}), "axis", std::int64_t{0})),
        (Numbers{6, 7, 0, 1}));
}

TEST(CrossEntropy, SkipsTheIgnoredLabelAndRefusesUnknownOnes)
{
    using enum OperatorKind;
    const auto loss = [](Numbers labels, bool ignore) {
        OperatorExample made = example(CrossEntropy,
            {given(DataType::Float64, {2, 3}, {1, 2, 3, 3, 3, 3}), integers(std::move(labels))});
        made.attributes.set("reduction", std::string("sum"));
        if (ignore)
            made.attributes.set("ignore_index", std::int64_t{-100});
        return made;
    };
    const double first = std::log(std::exp(1) + std::exp(2) + std::exp(3)) - 2;
    EXPECT_NEAR(run(loss({1, 2}, false))[0], first + std::log(3), 1e-12);
    EXPECT_NEAR(run(loss({1, -100}, true))[0], first, 1e-12);
    const Error error = errorOf(loss({1, 3}, true));
    EXPECT_EQ(error.code, ErrorCode::InvalidInput);
    EXPECT_TRUE(contains(error.message, "label 3")) << error.message;
    EXPECT_EQ(errorOf(loss({1, -100}, false)).code, ErrorCode::InvalidInput);
    const Numbers gradient = gradients(loss({1, -100}, true))[0];
    EXPECT_NEAR(std::accumulate(gradient.begin(), gradient.begin() + 3, 0.0), 0, 1e-12);
    EXPECT_EQ(Numbers(gradient.begin() + 3, gradient.end()), (Numbers{0, 0, 0}));
}

TEST(Gradients, OfTiesAndKinksFollowPyTorch)
{
    using enum OperatorKind;
    EXPECT_EQ(gradients(example(Max, {floats({1, 2, 3}), floats({1, 5, 0})})),
        (std::vector<Numbers>{{0.5, 0, 1}, {0.5, 1, 0}}));
    EXPECT_EQ(
        gradients(with(with(example(ReduceMax, {floats({4, 1, 4})}), "axes", std::vector<std::int64_t>{0}),
            "keepdims", std::int64_t{0}))[0],
        (Numbers{0.5, 0, 0.5}));
    EXPECT_EQ(gradients(example(Relu, {floats({-1, 0, 2})}))[0], (Numbers{0, 0, 1}));
    EXPECT_EQ(gradients(example(Abs, {floats({-1, 0, 2})}))[0], (Numbers{-1, 0, 1}));
    EXPECT_EQ(
        gradients(with(with(example(ReduceProd, {floats({2, 0, 3})}), "axes", std::vector<std::int64_t>{0}),
            "keepdims", std::int64_t{0}))[0],
        (Numbers{0, 6, 0}));
    EXPECT_EQ(gradients(with(with(example(MaxPool, {given(DataType::Float32, {1, 1, 4}, {1, 1, 0, 2})}),
                                 "kernel_shape", std::vector<std::int64_t>{2}),
                  "strides", std::vector<std::int64_t>{2}))[0],
        (Numbers{1, 0, 0, 1}));
}

TEST(Gradients, ThatAreNoNumbersDoNotComeThroughWhereAFunctionIsConstant)
{
    using enum OperatorKind;
    const OperatorExample bounded = with(example(Clip, {floats({-1, 0.5, 2})}), "min", 0.0);
    const double infinite = std::numeric_limits<double>::infinity();
    EXPECT_EQ(gradients(bounded, infinite)[0], (Numbers{0, infinite, infinite}));
    EXPECT_EQ(gradients(example(Relu, {floats({-1, 2})}), infinite)[0], (Numbers{0, infinite}));
    EXPECT_EQ(gradients(example(Max, {floats({1, 2}), floats({3, 1})}), infinite),
        (std::vector<Numbers>{{0, infinite}, {infinite, 0}}));
}

TEST(MaxPool, IsTheLargestElementOfEveryWindowAndGivesItsGradientToTheFirstOfEquals)
{
    constexpr std::int64_t kPlanes = 2;
    constexpr std::array<std::int64_t, 2> kIn{5, 7};
    constexpr std::array<std::int64_t, 2> kOut{3, 6};
    constexpr std::array<std::int64_t, 2> kWindow{3, 2};
    constexpr std::array<std::int64_t, 2> kStrides{2, 1};
    constexpr std::array<std::int64_t, 2> kDilations{1, 3};
    constexpr std::array<std::int64_t, 2> kPads{1, 1};
    Numbers x;
    for (std::int64_t i = 0; i < kPlanes * kIn[0] * kIn[1]; ++i)
        x.push_back(static_cast<double>(i * 7 % 4 - 3)); // many are equal, none is above padding of zeros
    const double none = std::numeric_limits<double>::quiet_NaN();
    x[17] = none;
    Numbers largest;
    Numbers slopes(x.size(), 0);
    for (std::int64_t plane = 0; plane < kPlanes; ++plane) {
        for (std::int64_t row = 0; row < kOut[0]; ++row) {
            for (std::int64_t column = 0; column < kOut[1]; ++column) {
                std::size_t best = x.size();
                for (std::int64_t tap = 0; tap < kWindow[0] * kWindow[1]; ++tap) {
                    const std::int64_t i = row * kStrides[0] - kPads[0] + tap / kWindow[1] * kDilations[0];
                    const std::int64_t j = column * kStrides[1] - kPads[1] + tap % kWindow[1] * kDilations[1];
                    if (i < 0 || i >= kIn[0] || j < 0 || j >= kIn[1])
                        continue;
                    const auto at = static_cast<std::size_t>((plane * kIn[0] + i) * kIn[1] + j);
                    if (best == x.size() || x[at] > x[best] || std::isnan(x[at]))
                        best = at;
                }
                ASSERT_LT(best, x.size());
                largest.push_back(x[best]);
                if (!std::isnan(x[best])) // nothing equals what is no number
                    slopes[best] += 1;
            }
        }
    }
    OperatorExample pool =
        example(OperatorKind::MaxPool, {given(DataType::Float32, {1, kPlanes, kIn[0], kIn[1]}, x)});
    const auto list = [](const auto &numbers) {
        return std::vector<std::int64_t>(numbers.begin(), numbers.end());
    };
    pool = with(with(pool, "kernel_shape", list(kWindow)), "strides", list(kStrides));
    pool = with(with(pool, "dilations", list(kDilations)), "pads",
        std::vector<std::int64_t>{kPads[0], kPads[1], kPads[0], kPads[1]});
    const Numbers made = run(pool);
    ASSERT_EQ(made.size(), largest.size());
    std::size_t broken = 0;
    for (std::size_t i = 0; i < made.size(); ++i) {
        broken += std::isnan(largest[i]) ? 1 : 0;
        EXPECT_TRUE(made[i] == largest[i] || (std::isnan(made[i]) && std::isnan(largest[i])))
            << "window " << i;
    }
    EXPECT_GT(broken, 0U);
    EXPECT_EQ(gradients(pool)[0], slopes);
}

TEST(Dropout, KeepsTheGivenShareAndScalesIt)
{
    using enum OperatorKind;
    const std::int64_t count = 100000;
    OperatorExample drop = with(
        example(Dropout, {given(DataType::Float32, {count}, Numbers(static_cast<std::size_t>(count), 1))}),
        "ratio", 0.3);
    const Numbers y = run(drop);
    std::int64_t kept = 0;
    for (const double value : y) {
        ASSERT_TRUE(value == 0 || std::fabs(value - 1 / 0.7) < 1e-6);
        kept += value != 0 ? 1 : 0;
    }
    EXPECT_NEAR(static_cast<double>(kept) / static_cast<double>(count), 0.7, 0.01);
    EXPECT_NE(y, run(with(drop, "seed", std::int64_t{1})));
    EXPECT_EQ(y, gradients(drop)[0]); // The gradient of a one is the scaled mask itself.
}

TEST(AdamW, TakesPyTorchsFirstSteps)
{
    using enum OperatorKind;
    // torch.optim.AdamW(lr=0.1, weight_decay=0.01) on w = 1 with gradient 0.5; the test runs step 3.
    OperatorExample step = example(AdamWStep, {floats({1}), floats({0.5}), floats({0.1}), floats({0.02})},
        {{DataType::Float32, {1}}, {DataType::Float32, {1}}, {DataType::Float32, {1}}});
    step =
        with(with(with(with(with(std::move(step), "learning_rate", 0.1), "weight_decay", 0.01), "beta1", 0.9),
                 "beta2", 0.999),
            "epsilon", 1e-8);
    const double m = 0.9 * 0.1 + 0.1 * 0.5;
    const double v = 0.999 * 0.02 + 0.001 * 0.25;
    const double denominator = std::sqrt(v) / std::sqrt(1 - std::pow(0.999, 3)) + 1e-8;
    EXPECT_NEAR(run(step, 0)[0], 1 * (1 - 0.1 * 0.01) - 0.1 / (1 - std::pow(0.9, 3)) * m / denominator, 1e-6);
    EXPECT_NEAR(run(step, 1)[0], m, 1e-7);
    EXPECT_NEAR(run(step, 2)[0], v, 1e-8);
}

TEST(Sgd, AddsDecayToTheGradientBeforeTheMomentum)
{
    using enum OperatorKind;
    OperatorExample step = example(SgdStep, {floats({1}), floats({0.5}), floats({0.2})},
        {{DataType::Float32, {1}}, {DataType::Float32, {1}}});
    step = with(with(with(std::move(step), "learning_rate", 0.1), "weight_decay", 0.01), "momentum", 0.9);
    EXPECT_NEAR(run(step, 1)[0], 0.9 * 0.2 + 0.5 + 0.01, 1e-7);
    EXPECT_NEAR(run(step, 0)[0], 1 - 0.1 * (0.9 * 0.2 + 0.5 + 0.01), 1e-7);
}

TEST(ClipFactor, IsTheNormsShareAboveItsMost)
{
    const auto factor = [](double most, double squares) {
        return run(with(example(OperatorKind::ClipFactor, {given(DataType::Float32, {}, {squares})}),
            "clip_norm", most))[0];
    };
    EXPECT_NEAR(factor(1, 16), 0.25, 1e-6);
    EXPECT_EQ(factor(1, 0.25), 1);
    EXPECT_EQ(factor(1, 0), 1);
    EXPECT_EQ(factor(1, std::numeric_limits<double>::infinity()), 0);
    EXPECT_TRUE(std::isnan(factor(1, std::nan(""))));
}

TEST(SquareSum, HoldsOfLongTensors)
{
    Numbers values(100'000); // several stretches
    double sum = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = static_cast<double>(i % 7) - 3;
        sum += values[i] * values[i];
    }
    EXPECT_EQ(run(example(OperatorKind::SquareSum, {floats(std::move(values))})), Numbers{sum});
}

TEST(Sgd, ScalesTheGradientAlone)
{
    using enum OperatorKind;
    OperatorExample step =
        example(SgdStep, {floats({1}), floats({0.5}), floats({0.2}), given(DataType::Float32, {}, {0.25})},
            {{DataType::Float32, {1}}, {DataType::Float32, {1}}});
    step = with(with(with(std::move(step), "learning_rate", 0.1), "weight_decay", 0.01), "momentum", 0.9);
    EXPECT_NEAR(run(step, 1)[0], 0.9 * 0.2 + 0.125 + 0.01, 1e-7);
}

TEST(TopK, OrdersEqualElementsByIndex)
{
    using enum OperatorKind;
    OperatorExample top = with(
        with(with(example(TopK, {floats({3, 5, 5, 1, 4})}), "axis", std::int64_t{0}), "k", std::int64_t{3}),
        "largest", std::int64_t{1});
    EXPECT_EQ(run(top, 0), (Numbers{5, 5, 4}));
    EXPECT_EQ(run(top, 1), (Numbers{1, 2, 4}));
    EXPECT_EQ(run(with(example(ArgMax, {floats({3, 5, 5})}), "axis", std::int64_t{0})), (Numbers{1}));
    EXPECT_EQ(run(with(with(example(ArgMax, {floats({3, 5, 5})}), "axis", std::int64_t{0}),
                  "select_last_index", std::int64_t{1})),
        (Numbers{2}));
}

TEST(NonZero, FillsEachGroupByItselfAndLeavesOutWhatHasNoRoom)
{
    const double none = static_cast<double>(kNoPlace);
    OperatorExample places =
        with(with(with(with(example(OperatorKind::NonZero,
                                {given(DataType::Bool, {9}, {1, 0, 1, 0, 0, 0, 1, 1, 1})}),
                           "kept", std::int64_t{0}),
                      "group_axis", std::int64_t{0}),
                 "groups", std::int64_t{3}),
            "capacity", std::int64_t{6});
    EXPECT_EQ(run(places), (Numbers{0, 2, none, none, 6, 7}));

    const auto graph = graphOf(places);
    ASSERT_TRUE(graph) << describe(graph.error());
    std::vector<std::uint8_t> mask{1, 0, 1, 0, 0, 0, 1, 1, 1};
    std::vector<std::int64_t> found(6);
    std::int64_t dropped = 5;
    KernelCall call;
    call.op = &graph->operators[0];
    call.inputs = {{reinterpret_cast<std::byte *>(mask.data()), DataType::Bool, {9}, wholeMask({9}), {9}}};
    call.outputs = {
        {reinterpret_cast<std::byte *>(found.data()), DataType::Int64, {1, 6}, wholeMask({1, 6}), {1, 6}}};
    for (const Dimension &dimension : call.op->annotation.dimensions)
        call.ranges.push_back({0, dimension.size});
    call.dropped = &dropped;
    ASSERT_TRUE(runKernel(call));
    EXPECT_EQ(dropped, 6);
}

TEST(Gather, PicksOnesWhereThereIsNoPlaceAndRefusesWrongOnes)
{
    const double none = static_cast<double>(kNoPlace);
    const auto picks = [&](Numbers places) {
        return with(
            with(with(example(OperatorKind::Gather, {floats({1, 2, 3, 4}), integers(std::move(places))}),
                     "axis", std::int64_t{0}),
                "groups", std::int64_t{2}),
            "grouped", std::int64_t{0});
    };
    EXPECT_EQ(run(picks({1, none, 3, -1})), (Numbers{2, 1, 4, 4}));
    // Indices of several dimensions make one, i 7 + j: no place stays none.
    EXPECT_EQ(run(picks({0, none * 7 + none, 2, none / 2})), (Numbers{1, 1, 3, 1}));
    EXPECT_FALSE(outputOf(picks({0, 4, 2, 2}), 0));
    EXPECT_FALSE(outputOf(picks({0, -5, 2, 2}), 0));
}

TEST(Where, SelectsIntegersToo)
{
    using enum OperatorKind;
    EXPECT_EQ(run(example(Where, {given(DataType::Bool, {2}, {1, 0}), integers({7, 8}), integers({9})})),
        (Numbers{7, 9}));
}

TEST(Slice, RunsBackwardsWithNegativeSteps)
{
    using enum OperatorKind;
    OperatorExample slice = example(Slice, {integers({0, 1, 2, 3, 4, 5})}, {{DataType::Int64, {3}}});
    slice = with(with(std::move(slice), "starts", std::vector<std::int64_t>{5}), "steps",
        std::vector<std::int64_t>{-2});
    EXPECT_EQ(run(slice), (Numbers{5, 3, 1}));
}

TEST(Pad, ReflectsAndRepeatsTheEdge)
{
    using enum OperatorKind;
    const auto pad = [](const char *mode) {
        return with(with(example(Pad, {floats({1, 2, 3})}), "pads", std::vector<std::int64_t>{2, 2}), "mode",
            std::string(mode));
    };
    EXPECT_EQ(run(pad("constant")), (Numbers{0, 0, 1, 2, 3, 0, 0}));
    EXPECT_EQ(run(pad("reflect")), (Numbers{3, 2, 1, 2, 3, 2, 1}));
    EXPECT_EQ(run(pad("edge")), (Numbers{1, 1, 1, 2, 3, 3, 3}));
}

TEST(Pooling, CountsPaddingOnlyWhereAsked)
{
    using enum OperatorKind;
    const auto pool = [](std::int64_t countPadding) {
        OperatorExample made = example(AveragePool, {given(DataType::Float32, {1, 1, 3}, {3, 6, 9})});
        made = with(with(std::move(made), "kernel_shape", std::vector<std::int64_t>{3}), "pads",
            std::vector<std::int64_t>{1, 1});
        return with(std::move(made), "count_include_pad", countPadding);
    };
    EXPECT_EQ(run(pool(0)), (Numbers{4.5, 6, 7.5}));
    EXPECT_EQ(run(pool(1)), (Numbers{3, 6, 5}));
}

TEST(Unknown, IsRefusedByItsName)
{
    Operator op;
    op.name = "layer.17";
    op.attributes.set("onnx_type", std::string("MelWeightMatrix"));
    EXPECT_FALSE(hasKernel(op));
    const auto refused = runKernel({.op = &op});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::NotSupported);
    EXPECT_TRUE(contains(refused.error().message, "layer.17"));
    EXPECT_TRUE(contains(refused.error().message, "MelWeightMatrix"));
}

TEST(Types, ThatAKernelCannotTakeAreNamed)
{
    std::vector<std::int32_t> x(4);
    std::vector<std::int32_t> y(4);
    const Operator op{.name = "softmax", .kind = OperatorKind::Softmax};
    const auto buffer = [](auto &of) {
        return Buffer{reinterpret_cast<std::byte *>(of.data()), DataType::Int32, {4}, wholeMask({4}), {4}};
    };
    const auto done = runKernel({.op = &op, .inputs = {buffer(x)}, .outputs = {buffer(y)}});
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code, ErrorCode::NotSupported);
    EXPECT_TRUE(contains(done.error().message, "int32")) << done.error().message;
}

TEST(Types, OfSixteenBitsAreComputedWithAsFloatsAndRoundedOnce)
{
    for (const DataType type : {DataType::Float16, DataType::BFloat16}) {
        const std::vector<float> numbers{0.1F, -2.7F, 3.3F, 0.004F};
        const auto count = static_cast<std::int64_t>(numbers.size());
        std::vector<std::uint16_t> x(numbers.size());
        std::vector<std::uint16_t> y(numbers.size());
        narrow(numbers.data(), type, reinterpret_cast<std::byte *>(x.data()), x.size());
        const Operator op{.name = "softmax", .kind = OperatorKind::Softmax};
        const auto buffer = [count](auto &of, DataType dataType) {
            return Buffer{
                reinterpret_cast<std::byte *>(of.data()), dataType, {count}, wholeMask({count}), {count}};
        };
        const auto done = runKernel({.op = &op, .inputs = {buffer(x, type)}, .outputs = {buffer(y, type)}});
        ASSERT_TRUE(done) << describe(done.error());
        std::vector<float> seen(numbers.size());
        widen(reinterpret_cast<const std::byte *>(x.data()), type, seen.data(), seen.size());
        std::vector<float> expected(numbers.size());
        ASSERT_TRUE(runKernel({.op = &op,
            .inputs = {buffer(seen, DataType::Float32)},
            .outputs = {buffer(expected, DataType::Float32)}}));
        std::vector<std::uint16_t> rounded(numbers.size());
        narrow(expected.data(), type, reinterpret_cast<std::byte *>(rounded.data()), rounded.size());
        EXPECT_EQ(y, rounded) << nameOf(type);
    }
}

} // namespace planloom::testing
