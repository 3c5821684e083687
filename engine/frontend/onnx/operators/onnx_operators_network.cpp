#include "engine/frontend/onnx/onnx_operators.h"

#include "engine/frontend/writer/emit_windows.h"

#include <algorithm>
#include <map>
#include <utility>

namespace planloom {

namespace {

using Context = OnnxNodeContext;

/// The window attributes that convolutions and poolings share.
Result<WrittenWindows> windowsOf(Context &context)
{
    WrittenWindows windows;
    TRY(windows.kernel, context.integers("kernel_shape"));
    TRY(windows.strides, context.integers("strides"));
    TRY(windows.dilations, context.integers("dilations"));
    TRY(windows.pads, context.integers("pads"));
    TRY(windows.autoPad, context.text("auto_pad", "NOTSET"));
    return windows;
}

Result<void> importConv(Context &context)
{
    TRY(const WrittenWindows windows, windowsOf(context));
    TRY(const std::int64_t group, context.integer("group", 1));
    return context.finish(
        emitConv(context, {context.input(0), context.input(1), context.input(2)}, windows, group));
}

Result<void> importConvTranspose(Context &context)
{
    TRY(const WrittenWindows windows, windowsOf(context));
    TRY(const std::int64_t group, context.integer("group", 1));
    TRY(const auto extra, context.integers("output_padding"));
    TRY(const auto outputs, context.integers("output_shape"));
    return context.finish(emitConvTranspose(
        context, {context.input(0), context.input(1), context.input(2)}, windows, group, extra, outputs));
}

Result<Attributes> poolAttributesOf(Context &context)
{
    TRY_VOID(context.require(1));
    TRY(const WrittenWindows windows, windowsOf(context));
    TRY(const std::int64_t ceilMode, context.integer("ceil_mode", 0));
    return poolAttributes(context, context.input(0), windows, ceilMode != 0);
}

Result<void> importMaxPool(Context &context)
{
    TRY(Attributes attributes, poolAttributesOf(context));
    if (context.wants(1))
        return context.keepUnknown("the indices of MaxPool are not computed");
    return context.finish(OperatorKind::MaxPool, {context.input(0)}, std::move(attributes));
}

Result<void> importAveragePool(Context &context)
{
    TRY(Attributes attributes, poolAttributesOf(context));
    TRY(const std::int64_t include, context.integer("count_include_pad", 0));
    attributes.set("count_include_pad", std::int64_t{include != 0 ? 1 : 0});
    return context.finish(OperatorKind::AveragePool, {context.input(0)}, std::move(attributes));
}

Result<void> importLpPool(Context &context)
{
    TRY(Attributes attributes, poolAttributesOf(context));
    TRY(const std::int64_t p, context.integer("p", 2));
    if (p < 1)
        return context.invalid("attribute 'p' is " + std::to_string(p) + ", where at least 1 was expected");
    attributes.set("p", p);
    return context.finish(OperatorKind::LpPool, {context.input(0)}, std::move(attributes));
}

// --- normalisation -----------------------------------------------------------------------------------------

/// momentum * old + (1 - momentum) * current
Result<void> bindRunning(
    Context &context, std::size_t slot, TensorId old, TensorId current, double momentum, const char *what)
{
    if (!context.wants(slot))
        return {};
    const DataType type = context.graph().typeOf(current).dataType;
    const std::string name = what;
    TRY(const TensorId kept,
        context.make(OperatorKind::Mul, {old, context.scalar(type, momentum)}, {}, {}, name + "_kept"));
    TRY(const TensorId added,
        context.make(
            OperatorKind::Mul, {current, context.scalar(type, 1.0 - momentum)}, {}, {}, name + "_added"));
    TRY(const TensorId result, context.make(OperatorKind::Add, {kept, added}, {}, {}, name));
    return context.bind(slot, result);
}

/// (x - mean) / sqrt(variance + epsilon) * scale + bias with statistics of every element of a sample.
Result<void> normalizeElements(Context &context, double epsilon)
{
    using enum OperatorKind;
    const TensorId safe = context.scalar(context.type(4).dataType, epsilon);
    TRY(const TensorId distance, context.make(Sub, {context.input(0), context.input(3)}, {}, {}, "distance"));
    TRY(const TensorId variance, context.make(Add, {context.input(4), safe}, {}, {}, "safe"));
    TRY(const TensorId deviation, context.make(Sqrt, {variance}, {}, {}, "deviation"));
    TRY(const TensorId normal, context.make(Div, {distance, deviation}, {}, {}, "normal"));
    TRY(const TensorId scaled, context.make(Mul, {normal, context.input(1)}, {}, {}, "scaled"));
    return context.finish(Add, {scaled, context.input(2)});
}

Result<void> importBatchNormalization(Context &context)
{
    TRY(const double epsilon, context.real("epsilon", 1e-5));
    TRY(const double momentum, context.real("momentum", 0.9));
    TRY(const std::int64_t mode, context.integer("training_mode", 0));
    TRY(const std::int64_t spatial, context.integer("spatial", 1));
    const auto &written = context.node().outputs;
    // Before opset 14, a node that returns statistics trains.
    const bool returnsMore = std::any_of(
        written.begin() + std::min<std::ptrdiff_t>(1, static_cast<std::ptrdiff_t>(written.size())),
        written.end(), [](const std::string &output) { return !output.empty(); });
    const bool training = context.opset() >= 14 ? mode != 0 : returnsMore;
    const TensorId x = context.input(0);
    TensorId mean = context.input(3);
    TensorId variance = context.input(4);
    if (context.rank(0) < 2)
        return context.invalid(
            "its input has the shape " + toString(context.shape(0)) + ", where [n c ..] was expected");
    if (spatial == 0)
        return training ? Result<void>(context.unsupported(
                   "attribute 'spatial' is '0' of a node that trains, where 1 was expected"))
                        : normalizeElements(context, epsilon);
    if (training) {
        const std::int64_t channels = std::max<std::int64_t>(1, context.shape(0)[1]);
        const Attributes count = attributesFrom({{"count", elementCount(context.shape(0)) / channels}});
        TRY(mean, context.make(OperatorKind::BatchMean, {x}, count, {}, "mean"));
        TRY(variance, context.make(OperatorKind::BatchVariance, {x, mean}, count, {}, "variance"));
        TRY_VOID(bindRunning(context, 1, context.input(3), mean, momentum, "running_mean"));
        TRY_VOID(bindRunning(context, 2, context.input(4), variance, momentum, "running_variance"));
        if (context.wants(3))
            TRY_VOID(context.bind(3, mean));
        if (context.wants(4))
            TRY_VOID(context.bind(4, variance));
    }
    return context.finish(OperatorKind::BatchNormalize,
        {x, mean, variance, context.input(1), context.input(2)}, attributesFrom({{"epsilon", epsilon}}));
}

/// Normalises each group of channels of every sample of [n c ..], then scales every channel.
Result<void> finishGroupNorm(Context &context, std::int64_t groups, double epsilon)
{
    const TensorId x = context.input(0);
    const Shape shape = context.shape(0);
    const Attributes attributes = attributesFrom(
        {{"groups", groups}, {"count", elementCount(shape) / std::max<std::int64_t>(1, shape[0] * groups)}});
    TRY(const TensorId mean, context.make(OperatorKind::BatchMean, {x}, attributes, {}, "mean"));
    TRY(const TensorId variance,
        context.make(OperatorKind::BatchVariance, {x, mean}, attributes, {}, "variance"));
    return context.finish(OperatorKind::BatchNormalize,
        {x, mean, variance, context.input(1), context.input(2)},
        attributesFrom({{"groups", groups}, {"epsilon", epsilon}}));
}

Result<void> importInstanceNormalization(Context &context)
{
    TRY(const double epsilon, context.real("epsilon", 1e-5));
    const Shape shape = context.shape(0);
    if (shape.size() < 2 || shape[1] < 1)
        return context.invalid(
            "its input has the shape " + toString(shape) + ", where [n c ..] was expected");
    return finishGroupNorm(context, shape[1], epsilon);
}

/// Multiplies by a scale and adds a bias, each if it is there; the last operator is the node's own.
Result<void> finishScaled(Context &context, TensorId y, TensorId scale, TensorId bias)
{
    if (scale) {
        if (!bias)
            return context.finish(OperatorKind::Mul, {y, scale});
        TRY(y, context.make(OperatorKind::Mul, {y, scale}, {}, {}, "scaled"));
    }
    if (bias)
        return context.finish(OperatorKind::Add, {y, bias});
    return context.bind(0, y);
}

Result<void> importLayerNormalization(Context &context)
{
    TRY(const std::int64_t axis, context.axisAttribute(-1));
    TRY(const double epsilon, context.real("epsilon", 1e-5));
    const TensorId x = context.input(0);
    const Shape shape = context.shape(0);
    const Shape normalised(shape.begin() + axis, shape.end());
    if (context.wants(1) || context.wants(2)) {
        std::vector<std::int64_t> axes;
        for (std::int64_t a = axis; a < context.rank(0); ++a)
            axes.push_back(a);
        const Attributes attributes = attributesFrom(
            {{"axes", axes}, {"keepdims", std::int64_t{1}}, {"count", elementCount(normalised)}});
        // Statistics of halves are floats (stash_type).
        const DataType own = context.type(0).dataType;
        const DataType type = own == DataType::Float64 ? own : DataType::Float32;
        TensorId wide = x;
        if (own != type) {
            TRY(wide, context.make(OperatorKind::Cast, {x}, {}, TensorType{type, shape}, "wide"));
        }
        TRY(const TensorId mean, context.make(OperatorKind::ReduceMean, {wide}, attributes, {}, "mean"));
        TRY(const TensorId distance, context.make(OperatorKind::Sub, {wide, mean}, {}, {}, "distance"));
        TRY(const TensorId square, context.make(OperatorKind::Mul, {distance, distance}, {}, {}, "square"));
        TRY(const TensorId variance,
            context.make(OperatorKind::ReduceMean, {square}, attributes, {}, "variance"));
        TRY(const TensorId safe,
            context.make(OperatorKind::Add, {variance, context.scalar(type, epsilon)}, {}, {}, "safe"));
        TRY(const TensorId root, context.make(OperatorKind::Sqrt, {safe}, {}, {}, "deviation"));
        TRY(const TensorId inverse, context.make(OperatorKind::Reciprocal, {root}, {}, {}, "inverse"));
        if (context.wants(1))
            TRY_VOID(context.bind(1, mean));
        if (context.wants(2))
            TRY_VOID(context.bind(2, inverse));
    }
    const Attributes attributes = attributesFrom({{"axis", axis}, {"epsilon", epsilon}});
    const bool plain = (!context.has(1) || context.shape(1) == normalised)
        && (!context.has(2) || context.shape(2) == normalised);
    if (plain) {
        std::vector<TensorId> inputs{x};
        if (context.has(1) || context.has(2))
            inputs.push_back(context.input(1));
        if (context.has(2))
            inputs.push_back(context.input(2));
        return context.finish(OperatorKind::LayerNorm, std::move(inputs), attributes);
    }
    TRY(const TensorId y, context.make(OperatorKind::LayerNorm, {x}, attributes, {}, "norm"));
    return finishScaled(context, y, context.input(1), context.input(2));
}

Result<void> importRmsNormalization(Context &context)
{
    TRY(const std::int64_t axis, context.axisAttribute(-1));
    TRY(const double epsilon, context.real("epsilon", 1e-5));
    const Attributes attributes = attributesFrom({{"axis", axis}, {"epsilon", epsilon}});
    const Shape normalised(context.shape(0).begin() + axis, context.shape(0).end());
    if (context.has(1) && context.shape(1) == normalised)
        return context.finish(OperatorKind::RmsNorm, {context.input(0), context.input(1)}, attributes);
    TRY(const TensorId y, context.make(OperatorKind::RmsNorm, {context.input(0)}, attributes, {}, "norm"));
    return finishScaled(context, y, context.input(1), {});
}

/// Normalises [n g c/g ..] over all but n and g, then scales per group (opset 18) or per channel (21).
Result<void> importGroupNormalization(Context &context)
{
    TRY(const double epsilon, context.real("epsilon", 1e-5));
    TRY(const std::int64_t groups, context.integer("num_groups", 0));
    const Shape shape = context.shape(0);
    if (shape.size() < 2 || groups < 1 || shape[1] % groups != 0 || shape[0] < 1)
        return context.invalid("it forms " + std::to_string(groups) + " groups of the channels of "
            + toString(shape) + ", which they do not divide");
    if (context.shape(1) == Shape{shape[1]} && context.shape(2) == context.shape(1))
        return finishGroupNorm(context, groups, epsilon);
    const std::int64_t rest = elementCount(shape) / (shape[0] * groups);
    TRY(const TensorId grouped, context.reshape(context.input(0), {shape[0], groups, rest}, "grouped"));
    TRY(TensorId y,
        context.make(OperatorKind::LayerNorm, {grouped},
            attributesFrom({{"axis", std::int64_t{2}}, {"epsilon", epsilon}}), {}, "norm"));
    const Shape factors{groups, 1};
    if (elementCount(context.shape(1)) != elementCount(factors) || context.shape(2) != context.shape(1))
        return context.invalid("its scale has the shape " + toString(context.shape(1)) + " and its bias "
            + toString(context.shape(2)) + ", where one number per group or channel was expected");
    TRY(const TensorId scale, context.reshape(context.input(1), factors, "scale"));
    TRY(const TensorId bias, context.reshape(context.input(2), factors, "bias"));
    TRY(y, context.make(OperatorKind::Mul, {y, scale}, {}, {}, "scaled"));
    TRY(y, context.make(OperatorKind::Add, {y, bias}, {}, {}, "shifted"));
    return context.finish(OperatorKind::Reshape, {y}, {}, TensorType{context.type(0).dataType, shape});
}

Result<void> importLrn(Context &context)
{
    TRY(const std::int64_t size, context.integer("size", 0));
    TRY(const double alpha, context.real("alpha", 1e-4));
    TRY(const double beta, context.real("beta", 0.75));
    TRY(const double bias, context.real("bias", 1.0));
    if (size < 1)
        return context.invalid(
            "attribute 'size' is " + std::to_string(size) + ", where at least 1 was expected");
    return context.finish(OperatorKind::LocalResponseNorm, {context.input(0)},
        attributesFrom({{"size", size}, {"alpha", alpha}, {"beta", beta}, {"bias", bias}}));
}

Result<void> importLpNormalization(Context &context)
{
    TRY(const std::int64_t axis, context.axisAttribute(-1));
    TRY(const std::int64_t p, context.integer("p", 2));
    return context.finish(
        OperatorKind::LpNormalize, {context.input(0)}, attributesFrom({{"axis", axis}, {"p", p}}));
}

/// (x - mean) / (deviation + 1e-9), as ONNX defines it.
Result<void> importMeanVarianceNormalization(Context &context)
{
    TRY(const auto given, context.integers("axes"));
    std::vector<std::int64_t> axes;
    std::int64_t count = 1;
    for (const std::int64_t value : given.value_or(std::vector<std::int64_t>{0, 2, 3})) {
        TRY(const std::int64_t axis, context.axis(value, context.rank(0)));
        axes.push_back(axis);
    }
    std::sort(axes.begin(), axes.end());
    axes.erase(std::unique(axes.begin(), axes.end()), axes.end());
    for (const std::int64_t axis : axes)
        count *= context.shape(0)[static_cast<std::size_t>(axis)];
    const Attributes attributes =
        attributesFrom({{"axes", axes}, {"keepdims", std::int64_t{1}}, {"count", count}});
    const TensorId x = context.input(0);
    TRY(const TensorId mean, context.make(OperatorKind::ReduceMean, {x}, attributes, {}, "mean"));
    TRY(const TensorId distance, context.make(OperatorKind::Sub, {x, mean}, {}, {}, "distance"));
    TRY(const TensorId square, context.make(OperatorKind::Mul, {distance, distance}, {}, {}, "square"));
    TRY(const TensorId variance,
        context.make(OperatorKind::ReduceMean, {square}, attributes, {}, "variance"));
    TRY(const TensorId root, context.make(OperatorKind::Sqrt, {variance}, {}, {}, "deviation"));
    const TensorId epsilon = context.scalar(context.type(0).dataType, 1e-9);
    TRY(const TensorId safe, context.make(OperatorKind::Add, {root, epsilon}, {}, {}, "safe"));
    return context.finish(OperatorKind::Div, {distance, safe});
}

// --- losses ------------------------------------------------------------------------------------------------

Result<void> importLoss(Context &context, OperatorKind kind)
{
    TRY_VOID(context.require(2));
    TRY(const std::string reduction, context.text("reduction", "mean"));
    std::vector<TensorId> inputs{context.input(0), context.input(1)};
    std::vector<TensorId> counted{context.input(1)};
    if (context.has(2)) {
        inputs.push_back(context.input(2));
        counted.push_back(context.input(2));
    }
    Attributes ignore;
    if (context.hasAttribute("ignore_index")) {
        TRY(const std::int64_t index, context.integer("ignore_index", 0));
        ignore.set("ignore_index", index);
    }
    if (kind == OperatorKind::CrossEntropy && context.wants(1)) {
        if (context.rank(0) < 2)
            return context.invalid(
                "its scores have the shape " + toString(context.shape(0)) + ", where [n c ..] was expected");
        TRY(const TensorId probabilities,
            context.make(OperatorKind::LogSoftmax, {context.input(0)},
                attributesFrom({{"axis", std::int64_t{1}}}), {}, "log_prob"));
        TRY_VOID(context.bind(1, probabilities));
    }
    Attributes attributes = ignore;
    attributes.set("reduction", std::string(reduction == "none" ? "none" : "sum"));
    if (reduction != "mean")
        return context.finish(kind, std::move(inputs), std::move(attributes));
    TRY(const TensorId sum, context.make(kind, std::move(inputs), std::move(attributes), {}, "sum"));
    TRY(TensorId count, context.make(OperatorKind::CountValid, std::move(counted), ignore, {}, "count"));
    const DataType type = context.graph().typeOf(sum).dataType;
    if (context.graph().typeOf(count).dataType != type) {
        TRY(count, context.make(OperatorKind::Cast, {count}, {}, TensorType{type, {}}, "count_cast"));
    }
    return context.finish(OperatorKind::Div, {sum, count});
}

// --- recurrent ---------------------------------------------------------------------------------------------

/// Refuses activations whose parameters are not written and for which ONNX's definition and its
/// implementations have no common default.
Result<void> checkActivations(Context &context)
{
    static const std::map<std::string, bool, std::less<>> kDefaultsDiffer = {{"Affine", true},
        {"ThresholdedRelu", true}, {"ScaledTanh", true}, {"LeakyRelu", false}, {"HardSigmoid", false},
        {"Elu", false}};
    const auto &attributes = context.node().attributes;
    const auto found = attributes.find("activations");
    const auto *names =
        found == attributes.end() ? nullptr : std::get_if<std::vector<std::string>>(&found->second);
    if (names == nullptr)
        return {};
    const auto given = attributes.find("activation_alpha");
    const auto *alphas =
        given == attributes.end() ? nullptr : std::get_if<std::vector<float>>(&given->second);
    std::size_t left = alphas == nullptr ? 0 : alphas->size();
    for (const std::string &name : *names) {
        const auto parametric = kDefaultsDiffer.find(name);
        if (parametric == kDefaultsDiffer.end())
            continue;
        if (left == 0 && parametric->second)
            return context.unsupported("attribute 'activations' names " + name
                    + ", but 'activation_alpha' has no number for it, and ONNX no default",
                "write its parameters");
        left -= left > 0 ? 1 : 0;
    }
    return {};
}

template<OperatorKind kind> Result<void> importRecurrent(Context &context)
{
    TRY_VOID(checkActivations(context));
    TRY(const std::string direction, context.text("direction", "forward"));
    TRY(const std::int64_t layout, context.integer("layout", 0));
    if (context.rank(0) != 3 || context.rank(1) != 3 || context.rank(2) != 3)
        return context.invalid("its input and weights have the shapes " + toString(context.shape(0)) + ", "
            + toString(context.shape(1)) + " and " + toString(context.shape(2))
            + ", where three dimensions each were expected");
    Attributes attributes = context.writtenAttributes();
    attributes.set("direction", direction);
    attributes.set("layout", layout);
    TRY(const std::int64_t hidden, context.integer("hidden_size", context.shape(2)[2]));
    attributes.set("hidden_size", hidden);
    // What W makes of the input does not wait for the step before: a product of its own, which can be split.
    TRY(const TensorId projected,
        context.make(OperatorKind::Linear, {context.input(0), context.input(1)},
            attributesFrom({{"transposed", std::int64_t{1}}}), {}, "projection"));
    std::vector<TensorId> inputs = context.inputs();
    inputs[0] = projected;
    inputs[1] = {};
    return context.finishMany(kind, std::move(inputs), std::move(attributes));
}

} // namespace

const OnnxHandlers &onnxNetworkHandlers()
{
    static const OnnxHandlers kHandlers = {{"Conv", needs<2, importConv>},
        {"ConvTranspose", needs<2, importConvTranspose>}, {"MaxPool", importMaxPool},
        {"AveragePool", importAveragePool}, {"LpPool", importLpPool},
        {"BatchNormalization", needs<5, importBatchNormalization>},
        {"InstanceNormalization", needs<3, importInstanceNormalization>},
        {"LayerNormalization", importLayerNormalization}, {"RMSNormalization", importRmsNormalization},
        {"GroupNormalization", needs<3, importGroupNormalization>}, {"LRN", needs<1, importLrn>},
        {"LpNormalization", importLpNormalization},
        {"MeanVarianceNormalization", needs<1, importMeanVarianceNormalization>},
        {"SoftmaxCrossEntropyLoss",
            [](Context &context) { return importLoss(context, OperatorKind::CrossEntropy); }},
        {"NegativeLogLikelihoodLoss",
            [](Context &context) { return importLoss(context, OperatorKind::NegativeLogLikelihood); }},
        {"LSTM", needs<3, importRecurrent<OperatorKind::Lstm>>},
        {"GRU", needs<3, importRecurrent<OperatorKind::Gru>>},
        {"RNN", needs<3, importRecurrent<OperatorKind::Rnn>>}};
    return kHandlers;
}

} // namespace planloom
