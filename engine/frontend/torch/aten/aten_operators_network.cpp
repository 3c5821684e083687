#include "engine/frontend/torch/aten/aten_operators.h"

#include "engine/frontend/writer/emit_windows.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace planloom {

namespace {

using Integers = std::vector<std::int64_t>;

// --- products ----------------------------------------------------------------------------------------------

Result<void> matrixProduct(AtenContext &context)
{
    TRY(const TensorId a, context.tensor(context.given("tensor") ? "tensor" : "self"));
    const char *second = context.given("mat2") ? "mat2" : context.given("vec") ? "vec" : "other";
    TRY(const TensorId b, context.tensor(context.given("tensor") ? "self" : second));
    return context.finish(OperatorKind::MatMul, {a, b});
}

/// x weight' + bias
Result<void> atenLinear(AtenContext &context)
{
    TRY(const TensorId x, context.tensor("input"));
    TRY(const TensorId weight, context.tensor("weight"));
    TRY(const TensorId bias, context.optionalTensor("bias"));
    std::vector<TensorId> inputs{x, weight};
    if (context.shapeOf(weight).size() != 2 || context.shapeOf(x).empty())
        return context.invalid("its weight has the shape " + toString(context.shapeOf(weight))
            + ", where a matrix was expected");
    if (bias)
        inputs.push_back(bias);
    return context.finish(
        OperatorKind::Linear, std::move(inputs), attributesFrom({{"transposed", std::int64_t{1}}}));
}

/// beta self + alpha a b
Result<void> sumOfProduct(AtenContext &context, const char *left, const char *right)
{
    TRY(TensorId added, context.tensor("self"));
    TRY(const TensorId a, context.tensor(left));
    TRY(const TensorId b, context.tensor(right));
    TRY(const double alpha, context.real("alpha", 1));
    TRY(const double beta, context.real("beta", 1));
    const DataType type = context.typeOf(a).dataType;
    const bool isLinear = alpha == 1 && beta == 1 && context.shapeOf(a).size() == 2
        && context.shapeOf(b).size() == 2 && context.shapeOf(added) == Shape{context.shapeOf(b)[1]};
    if (isLinear)
        return context.finish(
            OperatorKind::Linear, {a, b, added}, attributesFrom({{"transposed", std::int64_t{0}}}));
    TRY(TensorId product, context.make(OperatorKind::MatMul, {a, b}, {}, {}, "product"));
    if (alpha != 1) {
        TRY(product,
            context.make(OperatorKind::Mul, {product, context.scalar(type, alpha)}, {}, {}, "alpha"));
    }
    if (beta == 0)
        return context.bind(0, product);
    if (beta != 1) {
        TRY(added, context.make(OperatorKind::Mul, {added, context.scalar(type, beta)}, {}, {}, "beta"));
    }
    return context.finish(OperatorKind::Add, {product, added});
}

/// [n] [m] -> [n m]
Result<void> outerProduct(AtenContext &context)
{
    TRY(const TensorId a, context.tensor("self"));
    TRY(const TensorId b, context.tensor("vec2"));
    TRY(const TensorId column, context.reshape(a, {elementCount(context.shapeOf(a)), 1}, "column"));
    return context.finish(OperatorKind::Mul, {column, b});
}

/// Sums over the last dimensions of both.
Result<void> innerProduct(AtenContext &context)
{
    TRY(TensorId a, context.tensor("self"));
    TRY(TensorId b, context.tensor("other"));
    if (context.rankOf(a) == 0 || context.rankOf(b) == 0)
        return context.finish(OperatorKind::Mul, {a, b});
    Shape shape = context.shapeOf(a);
    const std::int64_t summed = shape.back();
    shape.pop_back();
    const Shape &other = context.shapeOf(b);
    if (other.back() != summed)
        return context.invalid(
            toString(context.shapeOf(a)) + " and " + toString(other) + " end in different sizes");
    const std::int64_t rows = elementCount(shape);
    shape.insert(shape.end(), other.begin(), other.end() - 1);
    TRY(a, context.reshape(a, {rows, summed}, "rows"));
    TRY(b, context.reshape(b, {elementCount(other) / std::max<std::int64_t>(1, summed), summed}, "columns"));
    TRY(b, context.permute(b, {1, 0}, "transposed"));
    TRY(const TensorId product, context.make(OperatorKind::MatMul, {a, b}, {}, {}, "product"));
    TRY(const TensorId y, context.reshape(product, std::move(shape), ""));
    return context.bind(0, y);
}

Result<void> atenEinsum(AtenContext &context)
{
    TRY(const std::string equation, context.text("equation", ""));
    TRY(const auto tensors, context.tensors("tensors"));
    return context.finishWith(emitEinsum, tensors, equation);
}

/// All of PyTorch's scaled dot products: they differ in what else they return.
Result<void> atenAttention(AtenContext &context)
{
    TRY(const TensorId q, context.tensor("query"));
    TRY(const TensorId k, context.tensor("key"));
    TRY(const TensorId v, context.tensor("value"));
    TRY(const TensorId mask, context.optionalTensor(context.given("attn_bias") ? "attn_bias" : "attn_mask"));
    TRY(double dropout, context.real("dropout_p", 0));
    TRY(const bool causal, context.flag("is_causal", false));
    const Shape shape = context.shapeOf(q);
    if (shape.size() < 3)
        return context.keepUnknown("attention of queries without heads is not computed");
    TRY(const double scale, context.real("scale", 1 / std::sqrt(static_cast<double>(shape.back()))));
    if (dropout > 0 && context.graph().options().dropoutRatio)
        dropout = *context.graph().options().dropoutRatio;
    if (!(dropout >= 0 && dropout < 1))
        return context.invalid("argument 'dropout_p' is " + std::to_string(dropout)
            + ", where at least 0 and less than 1 was expected");
    Attributes attributes = attributesFrom({{"scale", scale}});
    if (causal)
        attributes.set("causal", std::int64_t{1});
    if (dropout > 0) {
        attributes.set("dropout", dropout);
        attributes.set("seed", context.graph().nextSeed());
    }
    std::vector<TensorId> inputs{q, k, v};
    if (mask)
        inputs.push_back(mask);
    TRY(const auto made,
        context.makeMany(OperatorKind::Attention, std::move(inputs), std::move(attributes), ""));
    TRY_VOID(context.bind(0, made[0]));
    for (std::size_t slot = 1; slot < context.resultCount(); ++slot) {
        if (context.wants(slot))
            return context.unsupported(
                "its result " + std::to_string(slot) + " is used, which Planloom does not make",
                "use torch.nn.functional.scaled_dot_product_attention");
    }
    return {};
}

// --- convolutions -----------------------------------------------------------------------------------------

/// The windows of a convolution over `count` dimensions.
Result<WrittenWindows> windowsOf(AtenContext &context, std::size_t count)
{
    WrittenWindows windows;
    TRY(windows.strides, context.perDimension("stride", count, 1));
    TRY(windows.dilations, context.perDimension("dilation", count, 1));
    if (const auto *padding = std::get_if<std::string>(&context.value("padding"))) {
        windows.autoPad = *padding == "same" ? "SAME_UPPER" : "VALID";
        return windows;
    }
    TRY(const Integers pads, context.perDimension("padding", count, 0));
    windows.pads = pads;
    windows.pads->insert(windows.pads->end(), pads.begin(), pads.end());
    return windows;
}

/// convolution, conv1d to conv3d and conv_transpose1d to 3d; without a batch one is put in front.
Result<void> convolve(AtenContext &context, bool transposed)
{
    TRY(TensorId x, context.tensor("input"));
    TRY(const TensorId weight, context.tensor("weight"));
    TRY(const TensorId bias, context.optionalTensor("bias"));
    const std::size_t rank = context.shapeOf(weight).size();
    if (rank < 3)
        return context.invalid("its weight has the shape " + toString(context.shapeOf(weight)));
    const std::size_t count = rank - 2;
    const bool single = context.shapeOf(x).size() + 1 == rank;
    if (single) {
        Shape batched = context.shapeOf(x);
        batched.insert(batched.begin(), 1);
        TRY(x, context.reshape(x, std::move(batched), "batch"));
    }
    TRY(const WrittenWindows windows, windowsOf(context, count));
    TRY(const std::int64_t groups, context.integer("groups", 1));
    const ConvolutionInputs inputs{x, weight, bias};
    const char *suffix = single ? "batched" : "";
    TensorId y;
    if (transposed) {
        TRY(const Integers extra, context.perDimension("output_padding", count, 0));
        TRY(y, context.part(suffix, emitConvTranspose, inputs, windows, groups, extra, std::nullopt));
    } else {
        TRY(y, context.part(suffix, emitConv, inputs, windows, groups));
    }
    if (single) {
        TRY(y, context.reshape(y, Shape(context.shapeOf(y).begin() + 1, context.shapeOf(y).end()), ""));
    }
    return context.bind(0, y);
}
Result<void> atenConvolution(AtenContext &context)
{
    TRY(const bool transposed, context.flag("transposed", false));
    return convolve(context, transposed);
}
Result<void> atenConv(AtenContext &context)
{
    return convolve(context, false);
}
Result<void> atenConvTranspose(AtenContext &context)
{
    return convolve(context, true);
}

/// What is in order where `ends` are the sums of how often each of its values occurs: the result of a sort;
/// invalid if that is not known.
TensorId sortedOf(AtenContext &context, TensorId ends)
{
    const Graph &graph = context.graph().written();
    const auto before = [&](TensorId id, OperatorKind kind) -> TensorId {
        const OperatorId maker = context.graph().producerOf(id);
        return maker && graph.at(maker).kind == kind ? graph.at(maker).inputs[0] : TensorId{};
    };
    const auto withoutCasts = [&](TensorId id) {
        for (TensorId from = before(id, OperatorKind::Cast); from; from = before(from, OperatorKind::Cast))
            id = from;
        return id;
    };
    const TensorId counts = before(withoutCasts(ends), OperatorKind::CumSum);
    const TensorId counted = counts ? context.graph().chosen().countedBy(withoutCasts(counts)) : TensorId{};
    const TensorId list = counted ? withoutCasts(counted) : TensorId{};
    const OperatorId maker = list ? context.graph().producerOf(list) : OperatorId{};
    const bool ascends = maker && graph.at(maker).kind == OperatorKind::TopK
        && graph.at(maker).outputs[0] == list && graph.at(maker).attributes.integer("largest", 1) == 0
        && graph.at(maker).attributes.integer("k") == elementCount(context.shapeOf(list));
    return ascends && context.rankOf(list) == 1 ? list : TensorId{};
}

/// Products of runs of rows with a matrix each: rows up to `offs[0]` with the first, and so on. As picks of a
/// matrix for each row, which become products by matrix again (route_experts.h).
Result<void> groupedProduct(AtenContext &context)
{
    const bool own = context.given("self"); // aten's; else that of transformers
    TRY(const TensorId x, context.tensor(own ? "self" : "input"));
    TRY(const TensorId weights, context.tensor(own ? "mat2" : "weight"));
    TRY(const TensorId ends, context.optionalTensor("offs"));
    if (!ends || context.given("bias") || context.rankOf(x) != 2 || context.rankOf(weights) != 3)
        return context.keepUnknown(
            "grouped products are computed of rows with a matrix for each group alone");
    const std::int64_t rows = context.shapeOf(x)[0];
    const Shape matrices = context.shapeOf(weights);
    TensorId group = sortedOf(context, ends);
    if (!group || context.shapeOf(group) != Shape{rows}) { // as many as end before the row
        TRY(const TensorId last, context.cast(ends, DataType::Int64, "ends"));
        TRY(const TensorId list, context.reshape(last, {1, matrices[0]}, "ends"));
        std::vector<std::int64_t> numbers;
        for (std::int64_t i = 0; i < rows; ++i)
            numbers.push_back(i);
        TRY(const TensorId row, context.reshape(context.list(std::move(numbers)), {rows, 1}, "row"));
        TRY(const TensorId behind, context.make(OperatorKind::GreaterOrEqual, {row, list}, {}, {}, "behind"));
        TRY(const TensorId ones, context.cast(behind, DataType::Int64, "ones"));
        TRY(const TensorId count,
            context.make(OperatorKind::ReduceSum, {ones},
                attributesFrom({{"axes", std::vector<std::int64_t>{1}}, {"keepdims", std::int64_t{0}}}), {},
                "count"));
        TRY(group,
            context.make(
                OperatorKind::Min, {count, context.integerScalar(matrices[0] - 1)}, {}, {}, "group"));
    }
    TRY(const TensorId picked,
        context.make(OperatorKind::Gather, {weights, group}, attributesFrom({{"axis", std::int64_t{0}}}), {},
            "picked"));
    TRY(const TensorId vectors, context.reshape(x, {rows, 1, matrices[1]}, "vectors"));
    TRY(const TensorId made, context.make(OperatorKind::MatMul, {vectors, picked}, {}, {}, "products"));
    TRY(const TensorId y, context.reshape(made, {rows, matrices[2]}, "rows"));
    return context.bind(0, y);
}

} // namespace

const AtenHandlers &atenNetworkHandlers()
{
    static const AtenHandlers kHandlers = {{"mm", matrixProduct}, {"_grouped_mm", groupedProduct},
        {"bmm", matrixProduct}, {"matmul", matrixProduct}, {"mv", matrixProduct}, {"dot", matrixProduct},
        {"linear", atenLinear},
        {"addmm", [](AtenContext &context) { return sumOfProduct(context, "mat1", "mat2"); }},
        {"baddbmm", [](AtenContext &context) { return sumOfProduct(context, "batch1", "batch2"); }},
        {"addmv", [](AtenContext &context) { return sumOfProduct(context, "mat", "vec"); }},
        {"outer", outerProduct}, {"inner", innerProduct}, {"einsum", atenEinsum},
        {"scaled_dot_product_attention", atenAttention},
        {"_scaled_dot_product_flash_attention_for_cpu", atenAttention},
        {"_scaled_dot_product_flash_attention", atenAttention},
        {"_scaled_dot_product_efficient_attention", atenAttention},
        {"_scaled_dot_product_cudnn_attention", atenAttention}, {"convolution", atenConvolution},
        {"_convolution", atenConvolution}, {"conv1d", atenConv}, {"conv2d", atenConv}, {"conv3d", atenConv},
        {"conv_transpose1d", atenConvTranspose}, {"conv_transpose2d", atenConvTranspose},
        {"conv_transpose3d", atenConvTranspose}};
    return kHandlers;
}

} // namespace planloom
