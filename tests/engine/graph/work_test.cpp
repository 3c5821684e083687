#include "engine/graph/operators/catalogue.h"

#include <gtest/gtest.h>

namespace planloom {

namespace {

/// Work of a forward operator with tensors of these shapes, all float32; a missing shape is an empty slot.
using Slots = std::vector<std::optional<Shape>>;

Work work(Operator op, const Slots &inputs, const Slots &outputs)
{
    std::int32_t next = 0;
    const auto fill = [&next](const Slots &slots, std::vector<TensorId> &ids) {
        std::vector<TensorType> types;
        for (const auto &slot : slots) {
            ids.push_back(slot ? TensorId{next++} : TensorId{});
            types.push_back({DataType::Float32, slot.value_or(Shape{})});
        }
        return types;
    };
    const auto inputTypes = fill(inputs, op.inputs);
    const auto outputTypes = fill(outputs, op.outputs);
    return workOf(op, inputTypes, outputTypes);
}

Operator forward(OperatorKind kind)
{
    Operator op;
    op.kind = kind;
    return op;
}

Operator backward(OperatorKind kind)
{
    Operator op = forward(kind);
    op.direction = Direction::Backward;
    return op;
}

const std::nullopt_t none = std::nullopt;

} // namespace

TEST(WorkOf, ProductsCountMultiplicationsAndAdditions)
{
    using enum OperatorKind;
    const Work matmul = work(forward(MatMul), {Shape{2, 3, 5}, Shape{5, 7}}, {Shape{2, 3, 7}});
    EXPECT_EQ(matmul.flops, 2 * 2 * 3 * 5 * 7);
    EXPECT_EQ(matmul.bytes, 4 * (30 + 35 + 42));
    Operator linear = forward(Linear);
    linear.attributes.set("transposed", std::int64_t{1});
    EXPECT_EQ(
        work(linear, {Shape{4, 8}, Shape{16, 8}, Shape{16}}, {Shape{4, 16}}).flops, 2 * 4 * 8 * 16 + 4 * 16);
    EXPECT_EQ(work(linear, {Shape{4, 8}, Shape{2, 8, 8}, Shape{2, 8}}, {Shape{4, 2, 8}}).flops,
        2 * 4 * 8 * 16 + 4 * 16);
    Operator einsum = forward(Einsum);
    einsum.attributes.set("equation", std::string("bid,bjd->bij"));
    EXPECT_EQ(work(einsum, {Shape{2, 3, 4}, Shape{2, 5, 4}}, {Shape{2, 3, 5}}).flops, 2 * 2 * 3 * 4 * 5);
    // A grouped convolution joins c / g channels.
    EXPECT_EQ(work(forward(Conv), {Shape{2, 4, 8, 8}, Shape{6, 2, 3, 3}, none}, {Shape{2, 6, 6, 6}}).flops,
        2.0 * (2 * 6 * 6 * 6) * (2 * 3 * 3));
    EXPECT_EQ(work(forward(ConvTranspose), {Shape{2, 4, 8, 8}, Shape{4, 6, 2, 2}}, {Shape{2, 6, 9, 9}}).flops,
        2.0 * (2 * 4 * 8 * 8) * (6 * 2 * 2));
}

TEST(WorkOf, BackwardOfAProductIsOneProductPerWantedGradient)
{
    using enum OperatorKind;
    const double one = 2 * 3 * 5 * 7;
    // Slots: gradient of y; a, b, y; gradients of a and b.
    EXPECT_EQ(
        work(backward(MatMul), {Shape{3, 7}, Shape{3, 5}, Shape{5, 7}, none}, {Shape{3, 5}, Shape{5, 7}})
            .flops,
        2 * one);
    EXPECT_EQ(work(backward(MatMul), {Shape{3, 7}, Shape{3, 5}, none, none}, {none, Shape{5, 7}}).flops, one);
    EXPECT_EQ(work(backward(MatMul), {Shape{3, 7}, none, Shape{5, 7}, none}, {Shape{3, 5}, none}).flops, one);
    const Work linear =
        work(backward(Linear), {Shape{3, 7}, Shape{3, 5}, none, none, none}, {none, Shape{5, 7}, Shape{7}});
    EXPECT_EQ(linear.flops, one + 3 * 7);
    EXPECT_EQ(linear.bytes, 4 * (21 + 15 + 35 + 7));
}

TEST(WorkOf, BytesAreThoseOfWhatIsThere)
{
    using enum OperatorKind;
    EXPECT_EQ(
        work(forward(LayerNorm), {Shape{4, 8}, none, Shape{8}}, {Shape{4, 8}}).bytes, 4 * (32 + 8 + 32));
    // An embedding reads the rows it is asked for.
    EXPECT_EQ(work(forward(Embedding), {Shape{50000, 8}, Shape{3}}, {Shape{3, 8}}).bytes, 4 * (3 + 24 + 24));
    EXPECT_EQ(work(forward(Reshape), {Shape{4, 8}}, {Shape{32}}).flops, 0);
    EXPECT_EQ(work(forward(Add), {Shape{4, 8}, Shape{8}}, {Shape{4, 8}}).flops, 32);
    EXPECT_GT(work(forward(Gelu), {Shape{4, 8}}, {Shape{4, 8}}).flops, 32);
    EXPECT_EQ(work(backward(Relu), {Shape{4, 8}, none, Shape{4, 8}}, {none}).flops, 0);
}

TEST(WorkOf, AHalfOfAnOperatorIsHalfTheWork)
{
    using enum OperatorKind;
    const Work whole = work(forward(Softmax), {Shape{4, 8}}, {Shape{4, 8}});
    const Work half = work(forward(Softmax), {Shape{2, 8}}, {Shape{2, 8}});
    EXPECT_EQ(half.flops * 2, whole.flops);
    EXPECT_EQ(half.bytes * 2, whole.bytes);
    Operator adam = forward(AdamWStep);
    adam.direction = Direction::Optimizer;
    const Slots four(4, Shape{8});
    const Slots three(3, Shape{8});
    EXPECT_EQ(work(adam, four, three).bytes, 4 * 8 * 7);
    EXPECT_GT(work(adam, four, three).flops, 0);
}

TEST(MatrixProductsOf, ALinearInPartsAreThoseOfAllItsColumns)
{
    using enum OperatorKind;
    const auto products = [](Operator op, const std::vector<Shape> &in, const std::vector<Shape> &out) {
        std::vector<TensorType> inputs;
        std::vector<TensorType> outputs;
        std::int32_t next = 0;
        for (const Shape &shape : in) {
            inputs.push_back({DataType::Float32, shape});
            op.inputs.push_back(shape.empty() ? TensorId{} : TensorId{next++});
        }
        for (const Shape &shape : out) {
            outputs.push_back({DataType::Float32, shape});
            op.outputs.push_back(shape.empty() ? TensorId{} : TensorId{next++});
        }
        return matrixProductsOf(op, inputs, outputs);
    };
    for (const bool transposed : {false, true}) {
        Operator linear = forward(Linear);
        linear.attributes.set("transposed", std::int64_t{transposed ? 1 : 0});
        const Shape w = transposed ? Shape{3, 16, 8} : Shape{8, 3, 16};
        const Shape flat = transposed ? Shape{48, 8} : Shape{8, 48};
        const Shape x{2, 5, 8};
        const Shape y{2, 5, 3, 16};
        const std::vector<MatrixProduct> one{{.m = 10, .n = 48, .k = 8, .count = 1}};
        EXPECT_EQ(products(linear, {x, w}, {y}), one);
        EXPECT_EQ(products(linear, {x, flat}, {Shape{2, 5, 48}}), one);
        linear.direction = Direction::Backward;
        EXPECT_EQ(products(linear, {y, x, w, {}, {}}, {x, w, Shape{3, 16}}),
            products(linear, {Shape{2, 5, 48}, x, flat, {}, {}}, {x, flat, Shape{48}}));
        EXPECT_EQ(products(linear, {y, x, {}, {}, {}}, {{}, w, Shape{3, 16}}),
            (std::vector<MatrixProduct>{{.m = 8, .n = 48, .k = 10, .count = 1}}));
        EXPECT_EQ(products(linear, {y, {}, w, {}, {}}, {x, {}, {}}),
            (std::vector<MatrixProduct>{{.m = 10, .n = 8, .k = 48, .count = 1}}));
    }
}

/// Where neither factor has a gradient here, the backward operator knows the extents of neither.
TEST(WorkOf, GradientsOfBiasesAloneAreSums)
{
    using enum OperatorKind;
    EXPECT_EQ(work(backward(Linear), {Shape{4, 16}, none, none, none, none}, {none, none, Shape{16}}).flops,
        4 * 16);
    EXPECT_EQ(work(backward(Conv), {Shape{2, 6, 4, 4}, none, none, none, none}, {none, none, Shape{6}}).flops,
        2 * 6 * 4 * 4);
}

TEST(IsView, OfReshapesAndIdentitiesInBothDirections)
{
    using enum OperatorKind;
    EXPECT_TRUE(isView(forward(Reshape)));
    EXPECT_TRUE(isView(forward(Identity)));
    EXPECT_TRUE(isView(backward(Reshape))); // of the gradient
    EXPECT_TRUE(isView(backward(Identity)));
    EXPECT_FALSE(isView(forward(Transpose)));
}

TEST(WorkOf, AttentionsCountWhatIsSeenAndProbabilitiesOnlyWhereTheyAreInMemory)
{
    using enum OperatorKind;
    const Shape q{2, 6, 5, 8};
    const Shape k{2, 3, 7, 8};
    const Shape v{2, 3, 7, 4};
    const Shape y{2, 6, 5, 4};
    const Shape sums{2, 6, 5};
    const Shape scores{2, 6, 5, 7};
    const Work fused = work(forward(Attention), {q, k, v}, {y, sums, scores});
    const double flops = 2 * 2 * 6 * 5 * 7 * (8 + 4);
    EXPECT_EQ(fused.flops, flops);
    EXPECT_EQ(fused.bytes, 4 * (480 + 336 + 168 + 240 + 60));

    const auto plain = [](Operator op, const std::vector<Shape> &in, const std::vector<Shape> &out) {
        std::vector<TensorType> inputs;
        std::vector<TensorType> outputs;
        std::int32_t next = 0;
        for (const Shape &shape : in) {
            inputs.push_back({DataType::Float32, shape});
            op.inputs.push_back(shape.empty() ? TensorId{} : TensorId{next++});
        }
        for (const Shape &shape : out) {
            outputs.push_back({DataType::Float32, shape});
            op.outputs.push_back(TensorId{next++});
        }
        return workOf(op, inputs, outputs, AttentionMode::Plain);
    };
    EXPECT_EQ(plain(forward(Attention), {q, k, v}, {y, sums, scores}).bytes, fused.bytes + 4 * 420);
    EXPECT_EQ(plain(forward(Attention), {q, k, v}, {y, sums, scores}).flops, flops);

    const Work back = work(backward(Attention), {y, none, none, q, k, v, y, sums, scores}, {q, k, v});
    EXPECT_EQ(back.flops, 2.5 * flops);
    EXPECT_EQ(back.bytes, 4 * (2 * (480 + 336 + 168) + 2 * 240 + 60));
    EXPECT_EQ(plain(backward(Attention), {y, {}, {}, q, k, v, y, sums, scores}, {q, k, v}).bytes,
        back.bytes + 4 * 420);

    // Causal queries see half of the keys on average, however they are cut; a window limits what they see.
    Operator causal = forward(Attention);
    causal.attributes.set("causal", std::int64_t{1});
    const Shape all{4, 8, 16};
    EXPECT_EQ(work(causal, {all, all, all}, {all, Shape{4, 8}, Shape{4, 8, 8}}).flops, 2 * 4 * 8 * 4 * 32);
    const Shape half{4, 4, 16};
    EXPECT_EQ(work(causal, {half, all, all}, {half, Shape{4, 4}, Shape{4, 4, 8}}).flops, 2 * 4 * 4 * 4 * 32);
    causal.attributes.set("window", std::int64_t{2});
    EXPECT_EQ(work(causal, {all, all, all}, {all, Shape{4, 8}, Shape{4, 8, 8}}).flops, 2 * 4 * 8 * 1.75 * 32);
}

} // namespace planloom
