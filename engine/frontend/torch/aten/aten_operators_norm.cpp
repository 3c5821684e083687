#include "engine/frontend/torch/aten/aten_operators.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace planloom {

namespace {

using Integers = std::vector<std::int64_t>;

// --- normalisation -----------------------------------------------------------------------------------------

/// Results that only PyTorch's own backward pass reads.
Result<void> refuseFurtherResults(AtenContext &context, const char *what)
{
    for (std::size_t slot = 1; slot < context.resultCount(); ++slot) {
        if (context.wants(slot))
            return context.unsupported(
                std::string("the ") + what + " it returns are used, which Planloom does not make");
    }
    return {};
}

Result<std::int64_t> firstNormalised(AtenContext &context, TensorId x)
{
    TRY(const Integers normalised, context.integers("normalized_shape"));
    const Shape &shape = context.shapeOf(x);
    const bool fits = !normalised.empty() && normalised.size() <= shape.size()
        && std::equal(normalised.rbegin(), normalised.rend(), shape.rbegin());
    if (!fits)
        return context.invalid(
            "it normalises " + toString(normalised) + " of a value of shape " + toString(shape));
    return static_cast<std::int64_t>(shape.size() - normalised.size());
}

Result<void> atenLayerNorm(AtenContext &context)
{
    TRY(const TensorId x, context.tensor("input"));
    TRY(const std::int64_t axis, firstNormalised(context, x));
    TRY(const TensorId scale, context.optionalTensor("weight"));
    TRY(const TensorId bias, context.optionalTensor("bias"));
    TRY(const double epsilon, context.real("eps", 1e-5));
    TRY_VOID(refuseFurtherResults(context, "statistics"));
    std::vector<TensorId> inputs{x};
    if (scale || bias)
        inputs.push_back(scale);
    if (bias)
        inputs.push_back(bias);
    return context.finish(
        OperatorKind::LayerNorm, std::move(inputs), attributesFrom({{"axis", axis}, {"epsilon", epsilon}}));
}

Result<void> atenRmsNorm(AtenContext &context)
{
    TRY(const TensorId x, context.tensor("input"));
    TRY(const std::int64_t axis, firstNormalised(context, x));
    TRY(const TensorId scale, context.optionalTensor("weight"));
    const DataType type = context.typeOf(x).dataType;
    const double fallback = type == DataType::Float64 ? 2.220446049250313e-16
        : type == DataType::Float16                   ? 0.0009765625
        : type == DataType::BFloat16                  ? 0.0078125
                                                      : 1.1920928955078125e-07;
    TRY(const double epsilon, context.real("eps", fallback)); // PyTorch takes the type's own
    TRY_VOID(refuseFurtherResults(context, "statistics"));
    std::vector<TensorId> inputs{x};
    if (scale)
        inputs.push_back(scale);
    return context.finish(
        OperatorKind::RmsNorm, std::move(inputs), attributesFrom({{"axis", axis}, {"epsilon", epsilon}}));
}

/// A vector of `count` equal numbers where the module has no scale, bias or statistics of its own.
Result<TensorId> orFilled(
    AtenContext &context, const char *name, std::int64_t count, DataType type, double value)
{
    TRY(const TensorId own, context.optionalTensor(name));
    return own ? Result<TensorId>(own) : context.filled({type, {count}}, AtenValue(value), name);
}

/// Batch normalisation in all of PyTorch's spellings. In training the running statistics are changed as well:
/// that is a state of the module, no part of the loss, and left out.
Result<void> batchNorm(AtenContext &context, bool training)
{
    TRY(const TensorId x, context.tensor("input"));
    TRY(const double epsilon, context.real("eps", 1e-5));
    const Shape shape = context.shapeOf(x);
    if (shape.size() < 2)
        return context.invalid(
            "its input has the shape " + toString(shape) + ", where [n c ..] was expected");
    const DataType type = context.typeOf(x).dataType;
    TRY(const TensorId scale, orFilled(context, "weight", shape[1], type, 1));
    TRY(const TensorId bias, orFilled(context, "bias", shape[1], type, 0));
    TRY(TensorId mean, orFilled(context, "running_mean", shape[1], type, 0));
    TRY(TensorId variance, orFilled(context, "running_var", shape[1], type, 1));
    if (training) {
        context.graph().note("running statistics of batch normalisation are not updated: the loss and its "
                             "gradients do not depend on them");
        const Attributes count =
            attributesFrom({{"count", elementCount(shape) / std::max<std::int64_t>(1, shape[1])}});
        TRY(mean, context.make(OperatorKind::BatchMean, {x}, count, {}, "mean"));
        TRY(variance, context.make(OperatorKind::BatchVariance, {x, mean}, count, {}, "variance"));
    }
    return context.finish(OperatorKind::BatchNormalize, {x, mean, variance, scale, bias},
        attributesFrom({{"epsilon", epsilon}}));
}
Result<void> atenBatchNorm(AtenContext &context)
{
    TRY(const bool training, context.flag("training", false));
    return batchNorm(context, training);
}
Result<void> batchNormInference(AtenContext &context)
{
    return batchNorm(context, false);
}
Result<void> batchNormTraining(AtenContext &context)
{
    return batchNorm(context, true);
}

/// Each group of channels of every sample of [n c ..] normalised for itself.
Result<void> groupNorm(AtenContext &context, TensorId x, std::int64_t groups)
{
    TRY(const double epsilon, context.real("eps", 1e-5));
    const Shape shape = context.shapeOf(x);
    const DataType type = context.typeOf(x).dataType;
    TRY(const TensorId scale, orFilled(context, "weight", shape[1], type, 1));
    TRY(const TensorId bias, orFilled(context, "bias", shape[1], type, 0));
    const Attributes attributes = attributesFrom(
        {{"groups", groups}, {"count", elementCount(shape) / std::max<std::int64_t>(1, shape[0] * groups)}});
    TRY(const TensorId mean, context.make(OperatorKind::BatchMean, {x}, attributes, {}, "mean"));
    TRY(const TensorId variance,
        context.make(OperatorKind::BatchVariance, {x, mean}, attributes, {}, "variance"));
    return context.finish(OperatorKind::BatchNormalize, {x, mean, variance, scale, bias},
        attributesFrom({{"groups", groups}, {"epsilon", epsilon}}));
}

Result<void> atenGroupNorm(AtenContext &context)
{
    TRY(const TensorId x, context.tensor("input"));
    TRY(const std::int64_t groups, context.integer(context.given("group") ? "group" : "num_groups"));
    TRY_VOID(refuseFurtherResults(context, "statistics"));
    const Shape shape = context.shapeOf(x);
    if (shape.size() < 2 || groups < 1 || shape[1] % groups != 0)
        return context.invalid(
            "it makes " + std::to_string(groups) + " groups of the channels of " + toString(shape));
    return groupNorm(context, x, groups);
}

Result<void> atenInstanceNorm(AtenContext &context)
{
    TRY(const TensorId x, context.tensor("input"));
    TRY(const bool own, context.flag("use_input_stats", true));
    const Shape shape = context.shapeOf(x);
    if (!own || shape.size() < 3)
        return context.keepUnknown("instance normalisation with stored statistics is not computed");
    return groupNorm(context, x, shape[1]);
}

/// Softmax in float32 of a narrower type, where the call says so.
template<OperatorKind kind> Result<void> atenSoftmax(AtenContext &context)
{
    TRY(TensorId x, context.tensor("self"));
    TRY(DataType type, context.dataType(context.typeOf(x).dataType));
    TRY(const bool widens, context.flag("half_to_float", false));
    type = widens ? DataType::Float32 : type;
    TRY(const std::int64_t axis, context.dimension("dim", context.rankOf(x), -1));
    TRY(x, context.cast(x, type));
    return context.finish(kind, {x}, attributesFrom({{"axis", axis}}));
}

// --- resizing ----------------------------------------------------------------------------------------------

/// To a size, or by factors; of [n c ..] the last dimensions.
Result<void> resized(AtenContext &context, const std::string &mode)
{
    TRY(const TensorId x, context.tensor(context.given("self") ? "self" : "input"));
    TRY(const bool corners, context.flag("align_corners", false));
    const Shape from = context.shapeOf(x);
    const auto count = from.size() < 2 ? 0 : from.size() - 2;
    Shape shape = from;
    std::vector<double> scales(from.size(), 1.0);
    TRY(const Integers size, context.integers("output_size", {}));
    const auto *factors = std::get_if<std::vector<double>>(&context.value("scale_factors"));
    if (size.size() != count && (factors == nullptr || factors->size() != count))
        return context.invalid(
            "it has neither sizes nor factors for the " + std::to_string(count) + " dimensions");
    static constexpr const char *kScales[] = {"scales_d", "scales_h", "scales_w"};
    for (std::size_t i = 0; i < count; ++i) {
        std::int64_t &extent = shape[i + 2];
        if (!size.empty())
            extent = size[i];
        else
            extent = static_cast<std::int64_t>(std::floor(static_cast<double>(extent) * (*factors)[i]));
        if (extent < 1 || from[i + 2] < 1)
            return context.invalid(
                "it resizes a dimension of " + std::to_string(from[i + 2]) + " to " + std::to_string(extent));
        const double ratio = static_cast<double>(extent) / static_cast<double>(from[i + 2]);
        TRY(const double named, context.real(count == 1 ? "scales" : kScales[3 - count + i], ratio));
        scales[i + 2] = factors != nullptr && size.empty() ? (*factors)[i] : named;
    }
    if (shape == from)
        return context.bind(0, x);
    const bool nearest = mode == "nearest";
    const std::string coordinates = nearest ? "asymmetric" : corners ? "align_corners" : "half_pixel";
    return context.finish(OperatorKind::Resize, {x},
        attributesFrom({{"mode", mode}, {"coordinate_transformation_mode", coordinates},
            {"nearest_mode", std::string("floor")}, {"cubic_coeff_a", -0.75}, {"scales", scales}}),
        TensorType{context.typeOf(x).dataType, std::move(shape)});
}
Result<void> nearestResize(AtenContext &context)
{
    return resized(context, "nearest");
}
Result<void> linearResize(AtenContext &context)
{
    return resized(context, "linear");
}

} // namespace

const AtenHandlers &atenNormHandlers()
{
    using enum OperatorKind;
    static const AtenHandlers kHandlers = {{"layer_norm", atenLayerNorm},
        {"native_layer_norm", atenLayerNorm}, {"rms_norm", atenRmsNorm}, {"_fused_rms_norm", atenRmsNorm},
        {"group_norm", atenGroupNorm}, {"native_group_norm", atenGroupNorm}, {"batch_norm", atenBatchNorm},
        {"native_batch_norm", atenBatchNorm}, {"_native_batch_norm_legit", atenBatchNorm},
        {"_native_batch_norm_legit_functional", atenBatchNorm},
        {"_native_batch_norm_legit_no_training", batchNormInference},
        {"_batch_norm_no_update", batchNormInference}, {"_batch_norm_with_update", batchNormTraining},
        {"_batch_norm_with_update_functional", batchNormTraining}, {"instance_norm", atenInstanceNorm},
        {"softmax", atenSoftmax<Softmax>}, {"_softmax", atenSoftmax<Softmax>},
        {"_safe_softmax", atenSoftmax<Softmax>}, {"log_softmax", atenSoftmax<LogSoftmax>},
        {"_log_softmax", atenSoftmax<LogSoftmax>}, {"upsample_nearest1d", nearestResize},
        {"upsample_nearest2d", nearestResize}, {"upsample_nearest3d", nearestResize},
        {"upsample_linear1d", linearResize}, {"upsample_bilinear2d", linearResize},
        {"upsample_trilinear3d", linearResize},
        {"upsample_bicubic2d", [](AtenContext &context) { return resized(context, "cubic"); }}};
    return kHandlers;
}

} // namespace planloom
