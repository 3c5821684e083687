#include "engine/graph/annotation/annotation_builder.h"
#include "engine/graph/operator_files/custom_operator.h"
#include "engine/graph/operators/catalogue.h"
#include "engine/graph/operators/weight_update.h"

#include <algorithm>
#include <utility>

namespace planloom {

// --- kinds that keep their elements' places
// --------------------------------------------------------------------

namespace {

bool takes(const AnnotateCall &call, std::size_t inputs, std::size_t outputs)
{
    if (call.outputs.size() < outputs)
        return false;
    for (std::size_t slot = 0; slot < inputs; ++slot) {
        if (!call.has(slot))
            return false;
    }
    return true;
}

std::string annotateElementwise(const AnnotateCall &call, AnnotationBuilder &builder)
{
    using enum OperatorKind;
    if (!takes(call, 1, 1))
        return missing(call);
    const DimensionList dimensions = builder.freshAll(call.out(0));
    for (std::size_t slot = 0; slot < call.inputs.size(); ++slot) {
        if (call.has(slot))
            builder.input(slot, builder.broadcast(dimensions, call.in(slot)));
    }
    builder.output(0, dimensions);
    switch (call.kind) {
    case Identity:
    case Neg:
    case Cast:
    case Mul:
    case Div:
    case Dropout:
        if (isFloating(call.inputs[0].dataType) && isFloating(call.outputs[0].dataType))
            builder.linear({0});
        break;
    case Add:
    case Sub:
        if (isFloating(call.outputs[0].dataType))
            builder.linear({0, 1});
        break;
    case Where:
        if (isFloating(call.outputs[0].dataType))
            builder.linear({1, 2});
        break;
    default:
        break;
    }
    return {};
}

/// Identifiers of x with those that `frozen` says not to be split.
template<typename Predicate>
DimensionList dimensionsWith(
    AnnotationBuilder &builder, const Shape &shape, DimensionMark mark, Predicate &&marked)
{
    DimensionList list;
    list.reserve(shape.size());
    for (std::size_t i = 0; i < shape.size(); ++i)
        list.push_back(builder.fresh(shape[i], marked(i) ? mark : DimensionMark::Spatial));
    return list;
}

std::string annotateAlongAxis(const AnnotateCall &call, AnnotationBuilder &builder, bool following)
{
    if (!takes(call, 1, 1))
        return missing(call);
    const auto axis = static_cast<std::size_t>(call.attributes.integer("axis"));
    const DimensionList dimensions = dimensionsWith(
        builder, call.in(0), kFrozen, [&](std::size_t i) { return following ? i >= axis : i == axis; });
    builder.input(0, dimensions);
    // The scale and bias of a layer norm lie along the normalised dimensions.
    for (std::size_t slot = 1; slot < call.inputs.size(); ++slot) {
        if (call.has(slot))
            builder.input(slot, builder.broadcast(dimensions, call.in(slot)));
    }
    builder.output(0, dimensions);
    return {};
}

/// [n c ..] with the marks of the batch, of the channels and of what follows.
DimensionList channelDimensions(AnnotationBuilder &builder, const Shape &shape, DimensionMark batch,
    DimensionMark channels, DimensionMark rest)
{
    DimensionList list;
    const std::size_t spatial = shape.size() - 2;
    for (std::size_t i = 0; i < shape.size(); ++i) {
        if (i == 0)
            list.push_back(builder.named("n", shape[i], batch));
        else if (i == 1)
            list.push_back(builder.named("c", shape[i], channels));
        else if (spatial <= 3)
            list.push_back(builder.named(kSpatialNames[spatial][i - 2], shape[i], rest));
        else
            list.push_back(builder.fresh(shape[i], rest));
    }
    return list;
}

std::string annotateChannelNorm(const AnnotateCall &call, AnnotationBuilder &builder)
{
    using enum OperatorKind;
    if (!takes(call, 1, 1))
        return missing(call);
    if (call.inRank(0) < 2)
        return std::string(nameOf(call.kind)) + " needs an input of at least two dimensions";
    const bool statistic = call.kind == BatchMean || call.kind == BatchVariance;
    const auto spatial = DimensionMark::Spatial;
    const std::int64_t groups = call.kind == InstanceNorm ? 0 : call.attributes.integer("groups");
    DimensionList x = channelDimensions(builder, call.in(0), statistic && groups == 0 ? kReduce : spatial,
        call.kind == LocalResponseNorm ? kFrozen : spatial,
        statistic                       ? kReduce
            : call.kind == InstanceNorm ? kFrozen
                                        : spatial);
    std::vector<Term> terms;
    for (const std::int32_t dimension : x)
        terms.push_back(Term{{dimension}});
    Term channels = terms[1];
    std::vector<Term> statistics{channels};
    if (groups > 0) { // each of its own channels
        const std::int32_t group = builder.named("g", groups);
        const std::int64_t each = call.in(0)[1] / groups;
        channels = builder.compound({group, builder.named("k", each, kFrozen)});
        terms[1] = channels;
        statistics = {terms[0], Term{{group}}};
    }
    builder.input(0, terms);
    for (std::size_t slot = 1; slot < call.inputs.size(); ++slot) {
        const bool ofStatistics = call.kind != InstanceNorm && call.kind != LocalResponseNorm && slot <= 2;
        if (call.has(slot))
            builder.input(slot, ofStatistics ? statistics : std::vector<Term>{channels});
    }
    builder.output(0, statistic ? statistics : terms);
    if (call.kind == BatchMean)
        builder.linear({0});
    return {};
}

/// The items that labels stand for: [n ..].
DimensionList itemsOf(AnnotationBuilder &builder, const Shape &labels, DimensionMark mark)
{
    DimensionList items;
    for (std::size_t i = 0; i < labels.size(); ++i)
        items.push_back(i == 0 ? builder.named("n", labels[i], mark) : builder.fresh(labels[i], mark));
    return items;
}

std::string annotateLoss(const AnnotateCall &call, AnnotationBuilder &builder)
{
    using enum OperatorKind;
    const bool count = call.kind == CountValid;
    if (!takes(call, count ? 1 : 2, 1))
        return missing(call);
    const std::size_t labelSlot = count ? 0 : 1;
    const bool sum = count || call.attributes.text("reduction", "sum") == "sum";
    const DimensionMark mark = sum ? kReduce : DimensionMark::Spatial;
    const DimensionList labels = itemsOf(builder, call.in(labelSlot), mark);
    if (!count) {
        if (call.inRank(0) == 0)
            return std::string(nameOf(call.kind)) + " needs logits with a class dimension";
        DimensionList logits = labels;
        const std::size_t axis = call.inRank(0) == 1 ? 0 : 1;
        if (axis > logits.size())
            return std::string(nameOf(call.kind)) + "'s labels have too few dimensions";
        logits.insert(logits.begin() + static_cast<std::ptrdiff_t>(axis),
            builder.named("c", call.in(0)[axis], kFrozen));
        builder.input(0, logits);
    }
    builder.input(labelSlot, labels);
    if (call.has(labelSlot + 1)) {
        if (call.inRank(labelSlot + 1) != 1)
            return std::string(nameOf(call.kind)) + "'s class weights must have one dimension";
        builder.input(labelSlot + 1, DimensionList{builder.named("c", call.in(labelSlot + 1)[0], kFrozen)});
    }
    builder.output(0, sum ? DimensionList{} : labels);
    // A log-likelihood is a sum of its inputs' elements; its labels and weights are held fixed.
    if (call.kind == NegativeLogLikelihood)
        builder.linear({0});
    return {};
}

/// Statistics of a range of the classes: where the label is outside, its logit is 0 in the sum.
std::string annotateClassStatistics(const AnnotateCall &call, AnnotationBuilder &builder)
{
    if (!takes(call, 2, 2))
        return missing(call);
    const DimensionList items = itemsOf(builder, call.in(1), DimensionMark::Spatial);
    const std::size_t axis = call.inRank(0) == 1 ? 0 : 1;
    if (call.inRank(0) != items.size() + 1)
        return "ClassStatistics needs logits with one dimension more than its labels";
    DimensionList logits = items;
    logits.insert(
        logits.begin() + static_cast<std::ptrdiff_t>(axis), builder.named("c", call.in(0)[axis], kReduce));
    builder.input(0, logits);
    builder.input(1, items);
    builder.output(0, items);
    builder.output(1, items);
    builder.combines(0, Combination::LogSumExp);
    return {};
}

std::string annotateClassLoss(const AnnotateCall &call, AnnotationBuilder &builder)
{
    if (!takes(call, 3, 1))
        return missing(call);
    const bool sum = call.attributes.text("reduction", "sum") == "sum";
    const DimensionList items = itemsOf(builder, call.in(2), sum ? kReduce : DimensionMark::Spatial);
    for (std::size_t slot = 0; slot < 3; ++slot)
        builder.input(slot, items);
    if (call.has(3))
        builder.input(3, builder.literals(call.in(3)));
    builder.output(0, sum ? DimensionList{} : items);
    return {};
}

std::string annotateReduction(const AnnotateCall &call, AnnotationBuilder &builder)
{
    using enum OperatorKind;
    if (!takes(call, 1, 1))
        return missing(call);
    const bool other = call.kind == ReduceMax || call.kind == ReduceLogSumExp;
    const bool cut = call.kind == ReduceSum || call.kind == ReduceMean || call.kind == ReduceL1
        || call.kind == ReduceSumSquare || other;
    const bool arg = call.kind == ArgMax || call.kind == ArgMin;
    std::vector<std::int64_t> axes =
        arg ? std::vector<std::int64_t>{call.attributes.integer("axis")} : call.attributes.integers("axes");
    const bool all = !arg && !call.attributes.has("axes");
    const auto reduced = [&](std::size_t i) {
        return all || std::find(axes.begin(), axes.end(), static_cast<std::int64_t>(i)) != axes.end();
    };
    const DimensionList x = dimensionsWith(builder, call.in(0), cut ? kReduce : kFrozen, reduced);
    DimensionList y;
    for (std::size_t i = 0; i < x.size(); ++i) {
        if (!reduced(i))
            y.push_back(x[i]);
        else if (call.attributes.integer("keepdims", 1) != 0)
            y.push_back(builder.literal(1));
    }
    builder.input(0, x);
    builder.output(0, y);
    if ((call.kind == ReduceSum || call.kind == ReduceMean) && isFloating(call.inputs[0].dataType))
        builder.linear({0});
    if (other)
        builder.combines(0, call.kind == ReduceMax ? Combination::Max : Combination::LogSumExp);
    return {};
}

std::string annotateRotary(const AnnotateCall &call, AnnotationBuilder &builder)
{
    if (!takes(call, 3, 1))
        return missing(call);
    const std::size_t rank = call.inRank(0);
    const DimensionList x =
        dimensionsWith(builder, call.in(0), kFrozen, [rank](std::size_t i) { return i + 1 == rank; });
    builder.input(0, x);
    builder.input(1, builder.broadcast(x, call.in(1)));
    builder.input(2, builder.broadcast(x, call.in(2)));
    builder.output(0, x);
    builder.linear({0});
    return {};
}

/// Weight, gradient and state are cut alike.
std::string annotateOptimizer(const AnnotateCall &call, AnnotationBuilder &builder)
{
    if (!takes(call, 2, 1))
        return missing(call);
    const DimensionList weight = builder.freshAll(call.in(0));
    for (std::size_t slot = 0; slot < call.inputs.size(); ++slot) {
        if (call.has(slot))
            builder.input(slot, slot == factorSlotOf(call.kind) ? DimensionList{} : weight);
    }
    // The second output of a momentum step is absent where its third input is.
    for (std::size_t slot = 0; slot < call.outputs.size(); ++slot) {
        if (slot == 0 || call.has(slot + 1))
            builder.output(slot, weight);
    }
    return {};
}

/// Parts make summands of the sum; its identifiers are those of the weight's update.
std::string annotateSquareSum(const AnnotateCall &call, AnnotationBuilder &builder)
{
    if (!takes(call, 1, 1))
        return missing(call);
    builder.input(0, builder.freshAll(call.in(0), kReduce));
    builder.output(0, DimensionList{});
    return {};
}

std::string annotateClipFactor(const AnnotateCall &call, AnnotationBuilder &builder)
{
    if (!takes(call, 1, 1))
        return missing(call);
    builder.input(0, DimensionList{});
    builder.output(0, DimensionList{});
    return {};
}

std::string annotateKind(const AnnotateCall &call, AnnotationBuilder &builder)
{
    using enum OperatorKind;
    if (isElementwise(call.kind))
        return annotateElementwise(call, builder);
    switch (call.kind) {
    case MatMul:
        return annotateMatMul(call, builder);
    case Linear:
        return annotateLinear(call, builder);
    case Einsum:
        return annotateEinsum(call, builder);
    case Conv:
    case ConvTranspose:
        return annotateConvolution(call, builder);
    case MaxPool:
    case AveragePool:
    case LpPool:
        return annotatePooling(call, builder);
    case BatchMean:
    case BatchVariance:
    case BatchNormalize:
    case InstanceNorm:
    case LocalResponseNorm:
        return annotateChannelNorm(call, builder);
    case LayerNorm:
    case RmsNorm:
        return annotateAlongAxis(call, builder, true);
    case Softmax:
    case LogSoftmax:
    case LpNormalize:
        return annotateAlongAxis(call, builder, false);
    case CrossEntropy:
    case NegativeLogLikelihood:
    case CountValid:
        return annotateLoss(call, builder);
    case ClassStatistics:
        return annotateClassStatistics(call, builder);
    case ClassLoss:
        return annotateClassLoss(call, builder);
    case ReduceSum:
    case ReduceMean:
    case ReduceMax:
    case ReduceMin:
    case ReduceProd:
    case ReduceL1:
    case ReduceL2:
    case ReduceLogSum:
    case ReduceLogSumExp:
    case ReduceSumSquare:
    case ArgMax:
    case ArgMin:
        return annotateReduction(call, builder);
    case Reshape:
        return takes(call, 1, 1) ? annotateReshape(call, builder) : missing(call);
    case Rotary:
        return annotateRotary(call, builder);
    case Attention:
        return annotateAttention(call, builder);
    case Lstm:
    case Gru:
    case Rnn:
        return annotateRecurrent(call, builder);
    case SgdStep:
    case AdamWStep:
        return annotateOptimizer(call, builder);
    case SquareSum:
        return annotateSquareSum(call, builder);
    case ClipFactor:
        return annotateClipFactor(call, builder);
    case Unknown: {
        const std::string type = call.attributes.text("onnx_type", "this operator");
        return "Planloom does not know how " + type + " may be split";
    }
    default:
        return annotateMoving(call, builder);
    }
}

std::string_view reservedLetters(OperatorKind kind)
{
    using enum OperatorKind;
    switch (kind) {
    case MatMul:
        return "kmn";
    case Linear:
        return "knp";
    case Conv:
    case ConvTranspose:
    case MaxPool:
    case AveragePool:
    case LpPool:
        return "ncohwdlg";
    case BatchMean:
    case BatchVariance:
    case BatchNormalize:
    case InstanceNorm:
    case LocalResponseNorm:
        return "nchwdlgk";
    case CrossEntropy:
    case NegativeLogLikelihood:
    case ClassStatistics:
    case ClassLoss:
    case CountValid:
        return "nc";
    case Embedding:
        return "ve";
    case Attention:
        return "ghrstef";
    default:
        return {};
    }
}

/// Extents whose products cannot overflow; type inference lets no others through.
bool hasCountableElements(const Shape &shape)
{
    std::int64_t product = 1;
    for (const std::int64_t extent : shape) {
        if (extent < 0 || __builtin_mul_overflow(product, std::max<std::int64_t>(extent, 1), &product))
            return false;
    }
    return true;
}

/// The operator in one piece; absent inputs are opaque.
Annotation whole(const AnnotateCall &call)
{
    AnnotationBuilder builder(call);
    for (std::size_t slot = 0; slot < call.inputs.size(); ++slot) {
        if (call.has(slot))
            builder.input(slot, builder.literals(call.in(slot)));
    }
    for (std::size_t slot = 0; slot < call.outputs.size(); ++slot)
        builder.output(slot, builder.literals(call.out(slot)));
    std::string problem;
    return builder.finish(call, problem);
}

} // namespace

AnnotationOutcome annotate(OperatorKind kind, const Attributes &attributes,
    const std::vector<TensorType> &inputs, const std::vector<bool> &present,
    const std::vector<TensorType> &outputs)
{
    if (kind == OperatorKind::Custom)
        return customAnnotation(attributes, inputs, present, outputs);
    const AnnotateCall call{kind, attributes, inputs, present, outputs};
    AnnotationBuilder builder(call, reservedLetters(kind));
    AnnotationOutcome outcome;
    const auto sane = [](const TensorType &type) { return hasCountableElements(type.shape); };
    if (!std::all_of(inputs.begin(), inputs.end(), sane)
        || !std::all_of(outputs.begin(), outputs.end(), sane))
        outcome.problem = std::string(nameOf(kind)) + " has a tensor with impossible extents";
    else
        outcome.problem = annotateKind(call, builder);
    if (outcome.problem.empty())
        outcome.annotation = builder.finish(call, outcome.problem);
    if (!outcome.problem.empty())
        outcome.annotation = whole(call);
    return outcome;
}

} // namespace planloom
