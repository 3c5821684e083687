#include "engine/graph/annotation/partition.h"
#include "engine/graph/operators/catalogue.h"
#include "tests/engine/graph/parts_for_tests.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>
#include <random>

namespace planloom {

namespace {

/// An operator to annotate, its attributes written as a list.
struct Case {
    OperatorKind kind;
    std::vector<std::pair<std::string, Attribute>> attributes{};
    std::vector<TensorType> inputs{};
    std::vector<TensorType> declared{}; ///< Output types, where they cannot be inferred.
    std::vector<bool> present{};
};

struct Annotated {
    Attributes attributes{};
    std::vector<TensorType> outputs{};
    AnnotationOutcome outcome{};
};

Annotated annotated(const Case &item)
{
    Annotated result;
    for (const auto &[name, value] : item.attributes)
        result.attributes.set(name, value);
    std::vector<bool> present = item.present;
    present.resize(item.inputs.size(), true);
    const auto outputs = inferTypes(item.kind, result.attributes, item.inputs, present, item.declared);
    if (!outputs) {
        ADD_FAILURE() << describe(outputs.error());
        return result;
    }
    result.outputs = *outputs;
    result.outcome = annotate(item.kind, result.attributes, item.inputs, present, *outputs);
    // Whatever the kind, the text form says all there is but for the linear inputs.
    if (result.outcome.problem.empty()) {
        std::vector<Shape> in;
        std::vector<Shape> out;
        for (const TensorType &type : item.inputs)
            in.push_back(type.shape);
        for (const TensorType &type : *outputs)
            out.push_back(type.shape);
        const std::string text = toString(result.outcome.annotation);
        auto parsed = parseAnnotation(text, in, out);
        if (!parsed) {
            ADD_FAILURE() << text << ": " << describe(parsed.error());
        } else {
            parsed->linearInputs = result.outcome.annotation.linearInputs;
            EXPECT_EQ(*parsed, result.outcome.annotation) << text;
        }
    }
    return result;
}

std::string textOf(const Case &item)
{
    const Annotated result = annotated(item);
    EXPECT_EQ(result.outcome.problem, "");
    return toString(result.outcome.annotation);
}

} // namespace

TEST(Annotate, ElementwiseSharesLettersAndBroadcastsByLiterals)
{
    using enum OperatorKind;
    EXPECT_EQ(textOf({Relu, {}, {floats({2, 3, 4})}}), "a b c -> a b c");
    EXPECT_EQ(textOf({Add, {}, {floats({2, 6, 4}), floats({4})}}), "a b c, c -> a b c");
    EXPECT_EQ(textOf({Mul, {}, {floats({2, 1, 4}), floats({3, 1})}}), "a 1 c, b 1 -> a b c");
    EXPECT_EQ(textOf({Add, {}, {floats({2, 3}), floats({})}}), "a b, 1 -> a b");
    EXPECT_EQ(
        textOf({Where, {}, {{DataType::Bool, {1, 5}}, floats({}), floats({3, 5})}}), "1 b, 1, a b -> a b");
    EXPECT_EQ(textOf({Sqrt, {}, {floats({})}}), "1 -> 1");
}

TEST(Annotate, MatMulTakesEveryBroadcastForm)
{
    using enum OperatorKind;
    EXPECT_EQ(textOf({MatMul, {}, {floats({5}), floats({5})}}), "k+, k+ -> 1");
    EXPECT_EQ(textOf({MatMul, {}, {floats({3, 5}), floats({5, 7})}}), "m k+, k+ n -> m n");
    EXPECT_EQ(textOf({MatMul, {}, {floats({5}), floats({5, 7})}}), "k+, k+ n -> n");
    EXPECT_EQ(textOf({MatMul, {}, {floats({3, 5}), floats({5})}}), "m k+, k+ -> m");
    EXPECT_EQ(textOf({MatMul, {}, {floats({2, 3, 5}), floats({5, 7})}}), "a m k+, k+ n -> a m n");
    EXPECT_EQ(textOf({MatMul, {}, {floats({3, 5}), floats({2, 5, 7})}}), "m k+, a k+ n -> a m n");
    EXPECT_EQ(textOf({MatMul, {}, {floats({2, 4, 3, 5}), floats({4, 5, 7})}}), "a b m k+, b k+ n -> a b m n");
    EXPECT_EQ(
        textOf({MatMul, {}, {floats({2, 1, 3, 5}), floats({1, 4, 5, 7})}}), "a 1 m k+, 1 b k+ n -> a b m n");
}

TEST(Annotate, LinearKeepsTheInnerDimensionSplittableBesideABias)
{
    using enum OperatorKind;
    EXPECT_EQ(textOf({Linear, {{"transposed", number(1)}}, {floats({2, 4, 8}), floats({16, 8})}}),
        "a b k+, n k+ -> a b n");
    EXPECT_EQ(textOf({Linear, {}, {floats({4, 8}), floats({8, 16}), floats({16})}}), "a k+, k+ n, n -> a n");
    EXPECT_EQ(textOf({Linear, {}, {floats({2, 4, 8}), floats({8, 3, 16}), floats({3, 16})}}),
        "a b k+, k+ p n, p n -> a b p n");
    EXPECT_EQ(textOf({Linear, {{"transposed", number(1)}}, {floats({4, 8}), floats({3, 16, 8})}}),
        "a k+, p n k+ -> a p n");
}

TEST(Annotate, EinsumReducesWhatTheOutputLacksAndFreezesDiagonals)
{
    using enum OperatorKind;
    const auto einsum = [](const char *equation, std::vector<TensorType> inputs) {
        return textOf({Einsum, {{"equation", std::string(equation)}}, std::move(inputs)});
    };
    EXPECT_EQ(einsum("bid,bjd->bij", {floats({2, 3, 4}), floats({2, 5, 4})}), "b i d+, b j d+ -> b i j");
    EXPECT_EQ(einsum("ii -> i", {floats({3, 3})}), "i^ i^ -> i^");
    EXPECT_EQ(einsum("ij->", {floats({3, 4})}), "i+ j+ -> 1");
    EXPECT_EQ(einsum("ij,jk->ik", {floats({3, 1}), floats({4, 5})}), "i 1, j+ k -> i k");
}

TEST(Annotate, ConvolutionsAndPoolsSplitChannelsGroupsAndSpace)
{
    using enum OperatorKind;
    const Attribute pads = list({1, 1, 1, 1});
    EXPECT_EQ(textOf({Conv, {{"pads", pads}}, {floats({2, 4, 8, 8}), floats({6, 4, 3, 3}), floats({6})}}),
        "n c+ h[windows] w[windows], o c+ 3 3, o -> n o h w; h: 3 by 1 at -1 of 8; w: 3 by 1 at -1 of 8");
    EXPECT_EQ(
        textOf({Conv, {{"pads", pads}, {"group", number(2)}}, {floats({2, 4, 8, 8}), floats({6, 2, 3, 3})}}),
        "n (g c^) h[windows] w[windows], (g o^) c^ 3 3 -> n (g o^) h w; h: 3 by 1 at -1 of 8; w: 3 by 1 at "
        "-1 of 8");
    EXPECT_EQ(
        textOf({Conv, {{"pads", pads}, {"group", number(4)}}, {floats({2, 4, 8, 8}), floats({4, 1, 3, 3})}}),
        "n g h[windows] w[windows], g 1 3 3 -> n g h w; h: 3 by 1 at -1 of 8; w: 3 by 1 at -1 of 8");
    EXPECT_EQ(
        textOf({Conv, {}, {floats({2, 4, 8, 9}), floats({6, 4, 1, 1})}}), "n c+ h w, o c+ 1 1 -> n o h w");
    EXPECT_EQ(textOf({Conv, {{"strides", list({2, 1})}}, {floats({2, 4, 8, 9}), floats({6, 4, 1, 1})}}),
        "n c+ (h 2) w, o c+ 1 1 -> n o h w");
    EXPECT_EQ(textOf({ConvTranspose, {}, {floats({2, 4, 8, 8}), floats({4, 6, 2, 2}), floats({6})}}),
        "n c+ h[met] w[met], c+ o 2 2, o -> n o h[share] w[share]; h: 2 by 1 at 0 of 9; w: 2 by 1 at 0 of "
        "9");
    EXPECT_EQ(textOf({ConvTranspose, {{"group", number(2)}},
                  {floats({3, 4, 8, 8}), floats({4, 3, 2, 2}), floats({6})}}),
        "n (g c^) h[met] w[met], (g c^) o^ 2 2, (g o^) -> n (g o^) h[share] w[share]; h: 2 by 1 at 0 of 9; "
        "w: 2 by 1 at 0 of 9");
    EXPECT_EQ(textOf({MaxPool, {{"kernel_shape", list({2, 2})}, {"strides", list({2, 2})}},
                  {floats({2, 4, 8, 8})}}),
        "n c (h 2) (w 2) -> n c h w");
    // Where windows overlap, leave a rest, or reach over the border, parts read those of their neighbours.
    EXPECT_EQ(textOf({MaxPool, {{"kernel_shape", list({3, 2})}, {"strides", list({2, 2})}},
                  {floats({2, 4, 8, 9})}}),
        "n c h[windows] w[windows] -> n c h w; h: 3 by 2 at 0 of 8; w: 2 by 2 at 0 of 9");
    EXPECT_EQ(
        textOf({ConvTranspose, {{"strides", list({2, 2})}}, {floats({2, 4, 8, 8}), floats({4, 6, 2, 2})}}),
        "n c+ h w, c+ o 2 2 -> n o (h 2) (w 2)");
}

TEST(Annotate, NormalisationsFreezeWhatTheyNormaliseOver)
{
    using enum OperatorKind;
    const TensorType x = floats({2, 3, 4, 5});
    const TensorType c = floats({3});
    EXPECT_EQ(textOf({BatchMean, {}, {x}}), "n+ c h+ w+ -> c");
    EXPECT_EQ(textOf({BatchVariance, {}, {x, c}}), "n+ c h+ w+, c -> c");
    EXPECT_EQ(textOf({BatchNormalize, {}, {x, c, c, c, c}}), "n c h w, c, c, c, c -> n c h w");
    EXPECT_EQ(textOf({InstanceNorm, {}, {x, c, c}}), "n c h^ w^, c, c -> n c h^ w^");
    EXPECT_EQ(textOf({LocalResponseNorm, {}, {x}}), "n c^ h w -> n c^ h w");
    EXPECT_EQ(textOf({LayerNorm, {{"axis", number(2)}}, {floats({2, 6, 8}), floats({8}), floats({8})}}),
        "a b c^, c^, c^ -> a b c^");
    EXPECT_EQ(textOf({LayerNorm, {{"axis", number(1)}}, {floats({2, 6, 8}), {}, floats({6, 8})}, {},
                  {true, false, true}}),
        "a b^ c^, ?, b^ c^ -> a b^ c^");
    EXPECT_EQ(textOf({Softmax, {{"axis", number(1)}}, {floats({2, 3, 4})}}), "a b^ c -> a b^ c");
}

TEST(Annotate, LossesReduceOverItems)
{
    using enum OperatorKind;
    EXPECT_EQ(
        textOf({CrossEntropy, {{"reduction", std::string("sum")}}, {floats({2, 7, 3}), integers({2, 3})}}),
        "n+ c^ a+, n+ a+ -> 1");
    EXPECT_EQ(textOf({CrossEntropy, {{"reduction", std::string("none")}},
                  {floats({2, 7}), integers({2}), floats({7})}}),
        "n c^, n, c^ -> n");
    EXPECT_EQ(textOf({CountValid, {}, {integers({4, 3}), floats({7})}}), "n+ a+, c^ -> 1");
}

TEST(Annotate, StatisticsOfClassesAreCombinedEachInItsWay)
{
    using enum OperatorKind;
    EXPECT_EQ(textOf({ClassStatistics, {}, {floats({4, 7}), integers({4})}}), "n c+, n -> log-sum-exp: n, n");
    EXPECT_EQ(textOf({ClassStatistics, {}, {floats({2, 7, 3}), integers({2, 3})}}),
        "n c+ a, n a -> log-sum-exp: n a, n a");
    EXPECT_EQ(textOf({ClassStatistics, {}, {floats({7}), integers({})}}), "c+, 1 -> log-sum-exp: 1, 1");
    EXPECT_EQ(textOf({ClassLoss, {{"reduction", std::string("sum")}},
                  {floats({4}), floats({4}), integers({4}), floats({7})}}),
        "n+, n+, n+, 7 -> 1");
    EXPECT_EQ(
        textOf({ClassLoss, {{"reduction", std::string("none")}}, {floats({4}), floats({4}), integers({4})}}),
        "n, n, n -> n");
}

TEST(Annotate, CombinationsAreReadAsTheyAreWritten)
{
    const std::vector<Shape> inputs{{4, 6}};
    const std::vector<Shape> outputs{{4}, {4}, {4}};
    const auto parsed = parseAnnotation("n c+ -> max: n, n, log-sum-exp: n", inputs, outputs);
    ASSERT_TRUE(parsed) << parsed.error().message;
    EXPECT_EQ(combinationOf(*parsed, 0), Combination::Max);
    EXPECT_EQ(combinationOf(*parsed, 1), Combination::Sum);
    EXPECT_EQ(combinationOf(*parsed, 2), Combination::LogSumExp);
    EXPECT_EQ(toString(*parsed), "n c+ -> max: n, n, log-sum-exp: n");
    const auto summed = parseAnnotation("n c+ -> sum: n, n, n", inputs, outputs);
    ASSERT_TRUE(summed);
    EXPECT_TRUE(summed->combinations.empty());
    EXPECT_FALSE(parseAnnotation("n c+ -> least: n, n, n", inputs, outputs));
}

TEST(BackwardAnnotation, WhatEqualLargestElementsShareIsNotSplit)
{
    using enum OperatorKind;
    const auto backward = [](OperatorKind kind) {
        return toString(backwardAnnotation(annotated(
            {kind, {{"axes", list({1})}, {"keepdims", number(0)}},
                {floats({2, 3})}}).outcome.annotation));
    };
    EXPECT_EQ(backward(ReduceMax), "a+, a+ b^, a+ -> a+ b^");
    EXPECT_EQ(backward(ReduceLogSumExp), "a+, a+ b+, a+ -> a+ b+");
}

TEST(Annotate, SumsAndMaximaAreReduced)
{
    using enum OperatorKind;
    const TensorType x = floats({2, 3, 4});
    EXPECT_EQ(
        textOf({ReduceSum, {{"axes", list({0, 1, 2})}, {"keepdims", number(0)}}, {x}}), "a+ b+ c+ -> 1");
    EXPECT_EQ(textOf({ReduceMean, {{"axes", list({2})}, {"keepdims", number(1)}}, {x}}), "a b c+ -> a b 1");
    EXPECT_EQ(textOf({ReduceMax, {{"axes", list({1})}, {"keepdims", number(0)}}, {x}}), "a b+ c -> max: a c");
    EXPECT_EQ(textOf({ArgMax, {{"axis", number(2)}, {"keepdims", number(0)}}, {x}}), "a b c^ -> a b");
}

TEST(Annotate, ReshapeCutsMinimalGroups)
{
    using enum OperatorKind;
    const auto reshape = [](Shape from, Shape to) {
        return textOf({Reshape, {}, {floats(std::move(from))}, {floats(std::move(to))}});
    };
    EXPECT_EQ(reshape({128, 1024}, {128, 16, 64}), "a (b 64) -> a b 64");
    EXPECT_EQ(reshape({8, 4, 6}, {32, 6}), "a 4 b -> (a 4) b");
    EXPECT_EQ(reshape({6, 4}, {4, 6}), "(a 3) 4 -> (a 2) 6");
    EXPECT_EQ(reshape({3, 4}, {4, 3}), "3 4 -> 4 3");
    EXPECT_EQ(reshape({2, 1, 3}, {1, 2, 3, 1}), "a 1 b -> 1 a b 1");
    EXPECT_EQ(reshape({1}, {}), "1 -> 1");
}

TEST(Annotate, MovesKeepTheDimensionsTheyDoNotTouch)
{
    using enum OperatorKind;
    const TensorType x = floats({2, 6, 4});
    EXPECT_EQ(textOf({Transpose, {{"permutation", list({2, 0, 1})}}, {x}}), "a b c -> c a b");
    EXPECT_EQ(textOf({Expand, {}, {floats({2, 1, 4})}, {floats({3, 2, 5, 4})}}), "b 1 d -> a b c d");
    EXPECT_EQ(textOf({Tile, {{"repeats", list({1, 3, 2})}}, {floats({2, 6, 1})}}), "a b^ 1 -> a (c b^) d");
    EXPECT_EQ(textOf({Concat, {{"axis", number(1)}}, {floats({2, 3, 4}), floats({2, 5, 4})}}),
        "a 3 c, a d[windows] c -> a d c; d: 1 by 1 at -3 of 5");
    EXPECT_EQ(textOf({Concat, {{"axis", number(1)}}, {floats({2, 4, 4}), floats({2, 4, 4})}}),
        "a 4 c, a 4 c -> a 8 c");
    EXPECT_EQ(textOf({OperatorKind::Split, {{"axis", number(1)}, {"sizes", list({2, 4})}}, {x}}),
        "a 6 c -> a 2 c, a 4 c");
    EXPECT_EQ(
        textOf({Slice, {{"starts", list({0, 1, 0})}, {"steps", list({1, 2, 1})}}, {x}, {floats({2, 2, 4})}}),
        "a b[windows] c -> a b c; b: 1 by 2 at 1 of 6");
    EXPECT_EQ(textOf({Slice, {{"starts", list({1, 0, 0})}, {"steps", list({-1, 1, 1})}}, {x}, {x}}),
        "2 a b -> 2 a b");
    EXPECT_EQ(textOf({Pad, {{"pads", list({0, 0, 1, 0, 0, 1})}}, {x}}),
        "a b c[met] -> a b c[share]; c: 1 by 1 at 1 of 6");
    EXPECT_EQ(textOf({Gather, {{"axis", number(1)}}, {x, integers({5})}}), "a b^ c, d -> a d c");
    EXPECT_EQ(textOf({Embedding, {}, {floats({9, 4}), integers({2, 3})}}), "v+ e, a b -> a b e");
    EXPECT_EQ(
        textOf({GatherElements, {{"axis", number(1)}}, {x, integers({2, 3, 2})}}), "a 6 4, a 3 2 -> a 3 2");
    EXPECT_EQ(textOf({ScatterElements, {{"axis", number(1)}}, {x, integers({2, 3, 4}), floats({2, 3, 4})}}),
        "a 6 b, a 3 b, a 3 b -> a 6 b");
    EXPECT_EQ(
        textOf({GatherND, {{"batch_dims", number(1)}}, {x, integers({2, 5, 1})}}), "a 6 b, a c 1 -> a c b");
    EXPECT_EQ(
        textOf({ScatterND, {}, {x, integers({5, 1}), floats({5, 6, 4})}}), "2 a b, 5 1, 5 a b -> 2 a b");
    EXPECT_EQ(
        textOf({OneHot, {{"axis", number(1)}, {"depth", number(7)}}, {integers({2, 3})}}), "a b -> a 7 b");
    EXPECT_EQ(textOf({TopK, {{"axis", number(2)}, {"k", number(3)}}, {x}}), "a b c^ -> a b 3, a b 3");
    EXPECT_EQ(
        textOf({NonZero,
            {{"kept", number(0)}, {"group_axis", number(1)}, {"groups", number(2)}, {"capacity", number(6)}},
            {integers({3, 8})}}),
        "3 (a 4) -> 2 (a 3)");
    EXPECT_EQ(
        textOf({NonZero,
            {{"kept", number(1)}, {"group_axis", number(1)}, {"groups", number(2)}, {"capacity", number(6)}},
            {integers({3, 8})}}),
        "b (a 4) -> b 1 (a 3)");
    EXPECT_EQ(textOf({Gather, {{"axis", number(0)}, {"groups", number(2)}, {"grouped", number(1)}},
                  {floats({8, 5}), integers({3, 6})}}),
        "(a 4) b, c (a 3) -> c (a 3) b");
    EXPECT_EQ(textOf({GatherND, {{"groups", number(2)}, {"grouped", number(0)}},
                  {floats({8, 5, 4}), integers({6, 2})}}),
        "(a 4) 5 b, (a 3) 2 -> (a 3) b");
    EXPECT_EQ(
        textOf({ScatterND, {{"groups", number(2)}, {"grouped", number(1)}, {"reduction", std::string("add")}},
            {floats({8, 5}), integers({3, 6, 1}), floats({3, 6, 5})}}),
        "(a 4) b, c+ (a 3) 1, c+ (a 3) b -> (a 4) b");
    EXPECT_EQ(textOf({CumSum, {{"axis", number(0)}}, {x}}), "a^ b c -> a^ b c");
    EXPECT_EQ(textOf({Trilu, {}, {x}}), "a b^ c^ -> a b^ c^");
    EXPECT_EQ(textOf({DepthToSpace, {{"blocksize", number(2)}, {"mode", std::string("CRD")}},
                  {floats({2, 12, 3, 5})}}),
        "a (b 4) c d -> a b (c 2) (d 2)");
    EXPECT_EQ(textOf({SpaceToDepth, {{"blocksize", number(2)}}, {floats({2, 3, 6, 4})}}),
        "a 3 (b 2) (c 2) -> a 12 b c");
    EXPECT_EQ(textOf({Resize, {}, {floats({2, 3, 4, 4})}, {floats({2, 3, 8, 4})}}), "a b c d -> a b (c 2) d");
    EXPECT_EQ(
        textOf({ReverseSequence, {{"batch_axis", number(1)}, {"time_axis", number(0)}}, {x, integers({6})}}),
        "a^ b c, b -> a^ b c");
    EXPECT_EQ(textOf({OperatorKind::Range, {}, {}, {integers({5})}}), "-> a");
    EXPECT_EQ(textOf({Fill, {}, {}, {floats({5, 2})}}), "-> a b");
}

TEST(Annotate, AttentionsCutLeadingDimensionsHeadsAndQueries)
{
    using enum OperatorKind;
    const auto of = [](TensorType q, TensorType k, TensorType v, std::vector<TensorType> mask = {}) {
        std::vector<TensorType> inputs{std::move(q), std::move(k), std::move(v)};
        inputs.insert(inputs.end(), mask.begin(), mask.end());
        return textOf({Attention, {}, std::move(inputs)});
    };
    EXPECT_EQ(of(floats({2, 6, 5, 8}), floats({2, 6, 7, 8}), floats({2, 6, 7, 4})),
        "a h s e^, a h t+ e^, a h t+ f^ -> weighted: a h s f^, log-sum-exp: a h s, a h s t+");
    // Query heads that share a key head stay together; one key head for all may be read by every part.
    EXPECT_EQ(of(floats({2, 6, 5, 8}), floats({2, 3, 7, 8}), floats({2, 3, 7, 4})),
        "a (g r^) s e^, a g t+ e^, a g t+ f^ -> weighted: a (g r^) s f^, log-sum-exp: a (g r^) s, "
        "a (g r^) s t+");
    EXPECT_EQ(of(floats({6, 5, 8}), floats({1, 7, 8}), floats({1, 7, 4})),
        "h s e^, 1 t+ e^, 1 t+ f^ -> weighted: h s f^, log-sum-exp: h s, h s t+");
    // An additive mask may hide all keys by large negative numbers, beside which parts' weights are lost.
    EXPECT_EQ(
        of(floats({2, 3, 4, 5, 8}), floats({2, 3, 4, 5, 8}), floats({2, 3, 4, 5, 8}), {floats({3, 1, 5, 5})}),
        "a b h s e^, a b h t^ e^, a b h t^ f^, b 1 s t^ -> a b h s f^, a b h s, a b h s t^");
    EXPECT_EQ(of(floats({2, 6, 5, 8}), floats({2, 3, 7, 8}), floats({2, 3, 7, 4}), {floats({6, 1, 7})}),
        "a (g r^) s e^, a g t^ e^, a g t^ f^, (g r^) 1 t^ -> a (g r^) s f^, a (g r^) s, a (g r^) s t^");
}

TEST(BackwardAnnotation, NeedsNoWindowsOfNeighboursWhereNobodyWantsWhatTheyRead)
{
    const Annotation forward =
        annotated({OperatorKind::Conv, {{"pads", list({1, 1})}}, {floats({2, 3, 8}), floats({4, 3, 3})}})
            .outcome.annotation;
    ASSERT_EQ(forward.windows.size(), 1U);
    const auto reachOfGradient = [&](const std::vector<TensorId> &gradients) {
        return backwardAnnotation(forward, gradients).inputs[0].terms.back().reach;
    };
    EXPECT_EQ(reachOfGradient({}), WindowReach::Met);
    EXPECT_EQ(reachOfGradient({TensorId{0}, TensorId{1}}), WindowReach::Met);
    EXPECT_EQ(reachOfGradient({TensorId{}, TensorId{1}}), WindowReach::Own);
}

TEST(BackwardAnnotation, OfAnAttentionMakesSummandsOfWhatItsPartsShare)
{
    using enum OperatorKind;
    const Annotation backward = backwardAnnotation(annotated(
        {Attention, {}, {floats({2, 6, 5, 8}), floats({2, 6, 7, 8}), floats({2, 6, 7, 4}), floats({5, 7})}})
                                                       .outcome.annotation);
    EXPECT_EQ(toString(backward),
        "a+ h+ s+ f^, a+ h+ s+, a+ h+ s+ t^, a+ h+ s+ e^, a+ h+ t^ e^, a+ h+ t^ f^, s+ t^, a+ h+ s+ f^, "
        "a+ h+ s+, a+ h+ s+ t^ -> a+ h+ s+ e^, a+ h+ t^ e^, a+ h+ t^ f^, s+ t^");
}

TEST(Annotate, CompositesAndOptimizerSteps)
{
    using enum OperatorKind;
    EXPECT_EQ(textOf({Rotary, {}, {floats({2, 3, 5, 4}), floats({5, 4}), floats({1, 1, 5, 4})}}),
        "a b c d^, c d^, 1 1 c d^ -> a b c d^");
    EXPECT_EQ(textOf({Lstm, {}, {floats({5, 3, 7}), floats({1, 8, 7}), floats({1, 8, 2})}}),
        "5 b 7, 1 8 7, 1 8 2 -> 5 1 b 2, 1 b 2, 1 b 2");
    EXPECT_EQ(
        textOf({Gru, {{"layout", number(1)}},
            {floats({3, 5, 7}), floats({1, 6, 7}), floats({1, 6, 2}), {}, integers({3}), floats({3, 1, 2})},
            {}, {true, true, true, false, true, true}}),
        "b 5 7, 1 6 7, 1 6 2, ?, b, b 1 2 -> b 5 1 2, b 1 2");
    const TensorType w = floats({3, 4});
    EXPECT_EQ(textOf({AdamWStep, {}, {w, w, w, w}}), "a b, a b, a b, a b -> a b, a b, a b");
    EXPECT_EQ(textOf({SgdStep, {}, {w, w}}), "a b, a b -> a b");
}

TEST(Annotate, UnknownKindsStayWholeAndSayWhy)
{
    using enum OperatorKind;
    const Annotated result = annotated(
        {Unknown, {{"onnx_type", std::string("NonMaxSuppression")}}, {floats({2, 3})}, {floats({4})}});
    EXPECT_NE(result.outcome.problem.find("NonMaxSuppression"), std::string::npos);
    EXPECT_EQ(toString(result.outcome.annotation), "2 3 -> 4");
    EXPECT_TRUE(splittableDimensions(result.outcome.annotation).empty());
}

TEST(Annotate, ShapesThatDoNotFitAreNeverGuessed)
{
    using enum OperatorKind;
    const AnnotationOutcome outcome =
        annotate(MatMul, {}, {floats({2, 3}), floats({4, 5})}, {true, true}, {floats({2, 5})});
    EXPECT_NE(outcome.problem, "");
    EXPECT_EQ(toString(outcome.annotation), "2 3, 4 5 -> 2 5");
}

TEST(Annotate, LinearInputsAreThoseTheOutputIsJointlyLinearIn)
{
    using enum OperatorKind;
    const auto linear = [](const Case &item) { return annotated(item).outcome.annotation.linearInputs; };
    using Slots = std::vector<std::int32_t>;
    EXPECT_EQ(linear({Add, {}, {floats({2}), floats({2})}}), (Slots{0, 1}));
    EXPECT_EQ(linear({Add, {}, {integers({2}), integers({2})}}), Slots{});
    EXPECT_EQ(linear({Mul, {}, {floats({2}), floats({2})}}), Slots{0});
    EXPECT_EQ(linear({Relu, {}, {floats({2})}}), Slots{});
    EXPECT_EQ(linear({Cast, {}, {floats({2})}, {integers({2})}}), Slots{});
    EXPECT_EQ(linear({Where, {}, {{DataType::Bool, {2}}, floats({2}), floats({2})}}), (Slots{1, 2}));
    EXPECT_EQ(linear({Pad, {{"pads", list({1, 0})}, {"value", 2.0}}, {floats({2})}}), Slots{});
    EXPECT_EQ(linear({Concat, {{"axis", number(0)}}, {floats({2}), floats({2})}}), (Slots{0, 1}));
    EXPECT_EQ(linear({Embedding, {}, {floats({9, 4}), integers({2})}}), Slots{0});
    EXPECT_EQ(linear({Softmax, {{"axis", number(0)}}, {floats({2})}}), Slots{});
}

TEST(BackwardAnnotation, SharesIdentifiersAndSumsOverThoseAnInputLacks)
{
    using enum OperatorKind;
    const Annotation forward =
        annotated({Linear, {}, {floats({4, 8}), floats({8, 16}), floats({16})}}).outcome.annotation;
    const Annotation backward = backwardAnnotation(forward);
    EXPECT_EQ(toString(backward), "a+ n+, a+ k+, k+ n+, n+, a+ n+ -> a+ k+, k+ n+, n+");
    EXPECT_EQ(backward.linearInputs, std::vector<std::int32_t>{1});
    for (std::size_t i = 0; i < forward.dimensions.size(); ++i) {
        EXPECT_EQ(backward.dimensions[i].name, forward.dimensions[i].name);
        EXPECT_EQ(backward.dimensions[i].size, forward.dimensions[i].size);
    }
    const Annotation norm =
        backwardAnnotation(annotated({Softmax, {{"axis", number(1)}}, {floats({4, 8})}}).outcome.annotation);
    EXPECT_EQ(toString(norm), "a+ b^, a+ b^, a+ b^ -> a+ b^");
}

// --- splits against the unsplit operator, by plain reference code
// ----------------------------------------------

namespace {

struct Array {
    Shape shape{};
    Integers values{};
    explicit Array(Shape extents)
        : shape(std::move(extents))
        , values(static_cast<std::size_t>(elementCount(shape)), 0)
    {
    }
};

/// Calls `visit(index)` for every index of `shape`, in row-major order.
void forEachIndex(const Shape &shape, const std::function<void(const Integers &)> &visit)
{
    if (elementCount(shape) == 0)
        return;
    Integers index(shape.size(), 0);
    for (;;) {
        visit(index);
        std::size_t i = shape.size();
        while (i > 0 && ++index[i - 1] == shape[i - 1])
            index[--i] = 0;
        if (i == 0)
            return;
    }
}

std::int64_t &at(Array &array, const Integers &index)
{
    std::int64_t offset = 0;
    for (std::size_t i = 0; i < index.size(); ++i)
        offset = offset * array.shape[i] + index[i];
    return array.values[static_cast<std::size_t>(offset)];
}

Array sliceOf(Array &whole, const IndexMask &mask)
{
    Array part(shapeOf(mask));
    forEachIndex(part.shape, [&](const Integers &index) {
        Integers from = index;
        for (std::size_t i = 0; i < from.size(); ++i)
            from[i] += mask.ranges[i].begin;
        at(part, index) = at(whole, from);
    });
    return part;
}

/// Index into an operand that broadcasts to `index`.
Integers broadcastIndex(const Integers &index, const Shape &shape)
{
    Integers result(index.end() - static_cast<std::ptrdiff_t>(shape.size()), index.end());
    for (std::size_t i = 0; i < shape.size(); ++i)
        result[i] = shape[i] == 1 ? 0 : result[i];
    return result;
}

/// `y`, already of the output's (local) shape, computed from (local) inputs by definition.
void evaluate(OperatorKind kind, const Attributes &attributes, std::vector<Array> &x, Array &y)
{
    using enum OperatorKind;
    switch (kind) {
    case Reshape:
        y.values = x[0].values;
        ASSERT_EQ(elementCount(y.shape), elementCount(x[0].shape));
        return;
    case Transpose: {
        const auto permutation = attributes.integers("permutation");
        forEachIndex(y.shape, [&](const Integers &index) {
            Integers from(index.size());
            for (std::size_t i = 0; i < index.size(); ++i)
                from[static_cast<std::size_t>(permutation[i])] = index[i];
            at(y, index) = at(x[0], from);
        });
        return;
    }
    case Tile:
        forEachIndex(y.shape, [&](const Integers &index) {
            Integers from = index;
            for (std::size_t i = 0; i < from.size(); ++i)
                from[i] %= x[0].shape[i];
            at(y, index) = at(x[0], from);
        });
        return;
    case Expand:
        forEachIndex(y.shape,
            [&](const Integers &index) { at(y, index) = at(x[0], broadcastIndex(index, x[0].shape)); });
        return;
    case Add:
        forEachIndex(y.shape, [&](const Integers &index) {
            at(y, index) =
                at(x[0], broadcastIndex(index, x[0].shape)) + at(x[1], broadcastIndex(index, x[1].shape));
        });
        return;
    case DepthToSpace: { // mode CRD
        const std::int64_t b = attributes.integer("blocksize");
        forEachIndex(y.shape, [&](const Integers &i) {
            at(y, i) = at(x[0], {i[0], (i[1] * b + i[2] % b) * b + i[3] % b, i[2] / b, i[3] / b});
        });
        return;
    }
    case SpaceToDepth: {
        const std::int64_t b = attributes.integer("blocksize");
        const std::int64_t c = x[0].shape[1];
        forEachIndex(y.shape, [&](const Integers &i) {
            const std::int64_t block = i[1] / c;
            at(y, i) = at(x[0], {i[0], i[1] % c, i[2] * b + block / b, i[3] * b + block % b});
        });
        return;
    }
    case MaxPool: {
        const auto kernel = attributes.integers("kernel_shape");
        const auto strides = attributes.integers("strides");
        forEachIndex(y.shape, [&](const Integers &i) {
            std::int64_t &most = at(y, i);
            for (std::int64_t row = 0; row < kernel[0]; ++row) {
                for (std::int64_t column = 0; column < kernel[1]; ++column)
                    most = std::max(
                        most, at(x[0], {i[0], i[1], i[2] * strides[0] + row, i[3] * strides[1] + column}));
            }
        });
        return;
    }
    case ReduceSum: {
        const auto axes = attributes.integers("axes");
        forEachIndex(x[0].shape, [&](const Integers &index) {
            Integers to = index; // dimensions are kept
            for (const std::int64_t axis : axes)
                to[static_cast<std::size_t>(axis)] = 0;
            at(y, to) += at(x[0], index);
        });
        return;
    }
    case MatMul: {
        const std::size_t rank = y.shape.size();
        const std::int64_t k = x[0].shape.back();
        const Shape batchA(x[0].shape.begin(), x[0].shape.end() - 2);
        const Shape batchB(x[1].shape.begin(), x[1].shape.end() - 2);
        forEachIndex(y.shape, [&](const Integers &index) {
            const Integers batch(index.begin(), index.end() - 2);
            for (std::int64_t i = 0; i < k; ++i) {
                Integers a = broadcastIndex(batch, batchA);
                a.insert(a.end(), {index[rank - 2], i});
                Integers b = broadcastIndex(batch, batchB);
                b.insert(b.end(), {i, index[rank - 1]});
                at(y, index) += at(x[0], a) * at(x[1], b);
            }
        });
        return;
    }
    default:
        FAIL() << nameOf(kind) << " has no reference";
    }
}

/// Splits the operator along every identifier it allows, in every number of parts, and compares.
void expectSplitsAgree(const Case &item)
{
    const Annotated result = annotated(item);
    ASSERT_EQ(result.outcome.problem, "");
    const Annotation &annotation = result.outcome.annotation;
    SCOPED_TRACE(std::string(nameOf(item.kind)) + ": " + toString(annotation));
    std::vector<Array> inputs;
    std::int64_t next = 1;
    for (const TensorType &type : item.inputs) {
        inputs.emplace_back(type.shape);
        std::generate(inputs.back().values.begin(), inputs.back().values.end(), [&next] { return next++; });
    }
    Array whole(result.outputs[0].shape);
    evaluate(item.kind, result.attributes, inputs, whole);
    for (const std::int32_t dimension : splittableDimensions(annotation)) {
        const std::int64_t size = annotation.dimensions[static_cast<std::size_t>(dimension)].size;
        for (std::int32_t parts = 2; parts <= size; ++parts) {
            const Partition partition{{planloom::Split{SplitKind::Dimension, dimension, parts}}};
            Array sum(whole.shape);
            for (std::int32_t part = 0; part < parts; ++part) {
                Operator op;
                op.kind = item.kind;
                op.annotation = annotation;
                const PartBox box = partBox(op, partition, part);
                std::vector<Array> local;
                for (std::size_t slot = 0; slot < inputs.size(); ++slot) {
                    local.push_back(sliceOf(inputs[slot],
                        maskOf(annotation, annotation.inputs[slot], inputs[slot].shape, box.ranges)));
                }
                const IndexMask mask = maskOf(annotation, annotation.outputs[0], whole.shape, box.ranges);
                Array made(shapeOf(mask));
                evaluate(item.kind, result.attributes, local, made);
                forEachIndex(made.shape, [&](const Integers &index) {
                    Integers to = index;
                    for (std::size_t i = 0; i < to.size(); ++i)
                        to[i] += mask.ranges[i].begin;
                    at(sum, to) += at(made, index);
                });
            }
            ASSERT_EQ(sum.values, whole.values)
                << "split " << annotation.dimensions[static_cast<std::size_t>(dimension)].name << " in "
                << parts;
        }
    }
}

} // namespace

TEST(Annotate, EverySplitOfARandomReshapeMovesTheSameElements)
{
    using enum OperatorKind;
    std::mt19937 random(7);
    int splittable = 0;
    for (int trial = 0; trial < 300; ++trial) {
        // The same prime factors, cut into dimensions in two ways.
        std::vector<std::int64_t> factors;
        for (int i = 0; i < 6; ++i)
            factors.push_back(std::array<std::int64_t, 4>{1, 2, 3, 2}[random() % 4]);
        const auto cut = [&] {
            Shape shape{1};
            for (const std::int64_t factor : factors) {
                if (random() % 2 == 0)
                    shape.push_back(1);
                shape.back() *= factor;
            }
            return shape;
        };
        const Shape from = cut();
        if (trial % 3 == 0)
            std::shuffle(factors.begin(), factors.end(), random);
        const Case item{Reshape, {}, {floats(from)}, {floats(cut())}};
        splittable += splittableDimensions(annotated(item).outcome.annotation).empty() ? 0 : 1;
        expectSplitsAgree(item);
        if (HasFatalFailure())
            return;
    }
    EXPECT_GT(splittable, 150);
}

TEST(Annotate, EverySplitOfMovesSumsAndProductsAgreesWithTheWhole)
{
    using enum OperatorKind;
    const std::vector<Case> cases{
        {Transpose, {{"permutation", list({2, 0, 1})}}, {floats({2, 3, 4})}},
        {Tile, {{"repeats", list({3, 1, 2})}}, {floats({2, 3, 1})}},
        {Tile, {{"repeats", list({4, 2})}}, {floats({3, 2})}},
        {Expand, {}, {floats({2, 1, 4})}, {floats({3, 2, 5, 4})}},
        {Add, {}, {floats({2, 1, 4}), floats({3, 1})}},
        {DepthToSpace, {{"blocksize", number(2)}, {"mode", std::string("CRD")}}, {floats({2, 12, 3, 2})}},
        {SpaceToDepth, {{"blocksize", number(2)}}, {floats({2, 3, 4, 6})}},
        {MaxPool, {{"kernel_shape", list({2, 1})}, {"strides", list({3, 2})}}, {floats({2, 3, 12, 8})}},
        {ReduceSum, {{"axes", list({0, 2})}, {"keepdims", number(1)}}, {floats({3, 4, 5})}},
        {MatMul, {}, {floats({2, 3, 4}), floats({4, 5})}},
        {MatMul, {}, {floats({2, 1, 3, 4}), floats({3, 4, 2})}},
        {MatMul, {}, {floats({3, 1}), floats({2, 1, 2})}},
    };
    for (const Case &item : cases) {
        EXPECT_FALSE(splittableDimensions(annotated(item).outcome.annotation).empty());
        expectSplitsAgree(item);
    }
}

TEST(OperatorKind, NamesRoundTripAndAreUnique)
{
    using enum OperatorKind;
    for (int i = 0; i < kOperatorKindCount; ++i) {
        const auto kind = static_cast<OperatorKind>(i);
        EXPECT_EQ(operatorKindNamed(nameOf(kind)), kind) << nameOf(kind);
    }
    EXPECT_EQ(operatorKindNamed("relu"), std::nullopt);
    EXPECT_EQ(operatorKindNamed(""), std::nullopt);
    EXPECT_EQ(std::string(nameOf(BatchVariance)), "BatchVariance");
    EXPECT_EQ(std::string(nameOf(Fill)), "Fill");
    EXPECT_EQ(std::string(nameOf(LpPool)), "LpPool");
}

TEST(OperatorKind, CategoriesFollowWhatBoundsThem)
{
    using enum OperatorKind;
    EXPECT_EQ(categoryOf(Einsum), OperatorCategory::Product);
    EXPECT_EQ(categoryOf(Softmax), OperatorCategory::Normalization);
    EXPECT_EQ(categoryOf(Gelu), OperatorCategory::Activation);
    EXPECT_EQ(categoryOf(Add), OperatorCategory::Elementwise);
    EXPECT_EQ(categoryOf(ReduceMean), OperatorCategory::Reduction);
    EXPECT_EQ(categoryOf(Embedding), OperatorCategory::Movement);
    EXPECT_EQ(categoryOf(CrossEntropy), OperatorCategory::Loss);
    EXPECT_EQ(categoryOf(Gru), OperatorCategory::Recurrent);
    EXPECT_EQ(categoryOf(Attention), OperatorCategory::Attention);
    EXPECT_EQ(categoryOf(AdamWStep), OperatorCategory::Optimizer);
    EXPECT_EQ(categoryOf(Unknown), OperatorCategory::Other);
}

} // namespace planloom
