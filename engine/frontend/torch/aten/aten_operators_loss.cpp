#include "engine/frontend/torch/aten/aten_formula.h"

#include <utility>

namespace planloom {

namespace {

constexpr std::int64_t kNoReduction = 0; ///< at::Reduction
constexpr std::int64_t kMean = 1;

/// The dimension of the classes, of which scores come as [c] or [n c ..].
std::int64_t classAxis(AtenContext &context, TensorId scores)
{
    return context.rankOf(scores) == 1 ? 0 : 1;
}

/// Weights of classes [c] beside scores.
Result<TensorId> besideScores(AtenContext &context, TensorId weights, TensorId scores)
{
    Shape shape(context.shapeOf(scores).size(), 1);
    shape[axisIndex(classAxis(context, scores))] = elementCount(context.shapeOf(weights));
    return context.reshape(weights, std::move(shape), "class_weights");
}

/// (1 - s) of the cross-entropy, and s of its mean over all classes as labels; both of items that count.
Result<void> smoothedLoss(AtenContext &context, const std::vector<TensorId> &inputs, double smoothing,
    std::int64_t ignored, std::int64_t reduction)
{
    AtenFormula f(context);
    const TensorId scores = inputs[0];
    const TensorId labels = inputs[1];
    const auto classes = static_cast<double>(context.shapeOf(scores)[1]);
    const Attributes ignore = attributesFrom({{"ignore_index", ignored}});
    Attributes attributes = ignore;
    attributes.set("reduction", std::string("none"));
    const auto plain = f.make(OperatorKind::CrossEntropy, std::vector<AtenTerm>(inputs.begin(), inputs.end()),
        std::move(attributes));
    TRY(TensorId logarithms,
        f.make(OperatorKind::LogSoftmax, {scores}, attributesFrom({{"axis", std::int64_t{1}}})));
    if (inputs.size() > 2) {
        TRY(const TensorId weights, besideScores(context, inputs[2], scores));
        TRY(logarithms, f.mul(logarithms, weights));
    }
    const auto counted = f.where(f.equal(labels, static_cast<double>(ignored)),
        f.number(context.typeOf(scores).dataType, 0), f.sum(logarithms, {1}));
    TRY(const TensorId each, f.sub(f.mul(plain, 1 - smoothing), f.mul(counted, smoothing / classes)));
    if (reduction == kNoReduction)
        return f.finish(each);
    const auto total = f.sum(each, f.allOf(each));
    if (reduction != kMean)
        return f.finish(total);
    const auto count =
        f.make(OperatorKind::CountValid, std::vector<AtenTerm>(inputs.begin() + 1, inputs.end()), ignore);
    return f.finish(f.div(total, f.cast(count, context.typeOf(each).dataType)));
}

/// The cross-entropy with probabilities of classes; a mean is of the items, whatever the classes weigh.
Result<void> probableLoss(
    AtenContext &context, TensorId scores, TensorId target, TensorId weights, double smoothing)
{
    AtenFormula f(context);
    const std::int64_t axis = classAxis(context, scores);
    const auto classes = static_cast<double>(context.shapeOf(scores)[axisIndex(axis)]);
    AtenTerm share = target;
    if (smoothing != 0)
        share = f.add(f.mul(target, 1 - smoothing), smoothing / classes);
    if (weights)
        share = f.mul(share, besideScores(context, weights, scores));
    const auto logarithms = f.make(OperatorKind::LogSoftmax, {scores}, attributesFrom({{"axis", axis}}));
    return finishAtenLoss(context, f.of(OperatorKind::Neg, f.sum(f.mul(logarithms, share), {axis})));
}

/// Losses of classes: the labels are indices, and one of them may count for nothing.
Result<void> classLoss(AtenContext &context, OperatorKind kind)
{
    TRY(TensorId scores, context.tensor("self"));
    TRY(TensorId labels, context.tensor("target"));
    TRY(const TensorId weights, context.optionalTensor("weight"));
    TRY(const std::int64_t reduction, context.integer("reduction", kMean));
    TRY(const std::int64_t ignored, context.integer("ignore_index", -100));
    TRY(const double smoothing, context.real("label_smoothing", 0));
    if (isFloating(context.typeOf(labels).dataType))
        return probableLoss(context, scores, labels, weights, smoothing);
    if (context.rankOf(scores) == 1) { // one item without a batch
        Shape batched = context.shapeOf(scores);
        batched.insert(batched.begin(), 1);
        TRY(scores, context.reshape(scores, std::move(batched), "scores"));
        TRY(labels, context.reshape(labels, {1}, "labels"));
    }
    std::vector<TensorId> inputs{scores, labels};
    std::vector<TensorId> counted{labels};
    if (weights) {
        inputs.push_back(weights);
        counted.push_back(weights);
    }
    if (smoothing != 0)
        return smoothedLoss(context, inputs, smoothing, ignored, reduction);
    const Attributes ignore = attributesFrom({{"ignore_index", ignored}});
    Attributes attributes = ignore;
    attributes.set("reduction", std::string(reduction == kNoReduction ? "none" : "sum"));
    if (reduction != kMean)
        return context.finish(kind, std::move(inputs), std::move(attributes));
    TRY(const TensorId sum, context.make(kind, std::move(inputs), std::move(attributes), {}, "sum"));
    TRY(TensorId count, context.make(OperatorKind::CountValid, std::move(counted), ignore, {}, "count"));
    TRY(count, context.cast(count, context.typeOf(sum).dataType, "count_cast"));
    if (context.resultCount() > 1 && context.wants(1))
        TRY_VOID(context.bind(1, count)); // nll_loss_forward's total weight
    return context.finish(OperatorKind::Div, {sum, count});
}
Result<void> atenLikelihood(AtenContext &context)
{
    return classLoss(context, OperatorKind::NegativeLogLikelihood);
}

Result<void> atenSquaredError(AtenContext &context, TensorId x)
{
    TRY(const TensorId target, context.tensor("target"));
    TRY(const TensorId distance, context.make(OperatorKind::Sub, {x, target}, {}, {}, "distance"));
    TRY(const TensorId square, context.make(OperatorKind::Mul, {distance, distance}, {}, {}, "square"));
    return finishAtenLoss(context, square);
}

Result<void> atenAbsoluteError(AtenContext &context, TensorId x)
{
    TRY(const TensorId target, context.tensor("target"));
    TRY(const TensorId distance, context.make(OperatorKind::Sub, {x, target}, {}, {}, "distance"));
    TRY(const TensorId magnitude, context.make(OperatorKind::Abs, {distance}, {}, {}, "abs"));
    return finishAtenLoss(context, magnitude);
}

/// Squared below a bound, linear above it: smooth_l1 divides what huber has by the bound.
Result<void> boundedError(AtenContext &context, const char *name, bool divides)
{
    TRY(const TensorId x, context.tensor("self"));
    TRY(const TensorId target, context.tensor("target"));
    TRY(const double bound, context.real(name, 1));
    const DataType type = context.typeOf(x).dataType;
    TRY(const TensorId distance, context.make(OperatorKind::Sub, {x, target}, {}, {}, "distance"));
    TRY(const TensorId magnitude, context.make(OperatorKind::Abs, {distance}, {}, {}, "abs"));
    if (bound == 0 && divides)
        return finishAtenLoss(context, magnitude);
    // With c = min(|d|, bound): c (|d| - c / 2).
    TRY(const TensorId small,
        context.make(OperatorKind::Clip, {magnitude}, attributesFrom({{"max", bound}}), {}, "small"));
    TRY(const TensorId half,
        context.make(OperatorKind::Mul, {small, context.scalar(type, 0.5)}, {}, {}, "half"));
    TRY(const TensorId rest, context.make(OperatorKind::Sub, {magnitude, half}, {}, {}, "rest"));
    TRY(TensorId each, context.make(OperatorKind::Mul, {small, rest}, {}, {}, "each"));
    if (divides && bound != 1) {
        TRY(each, context.make(OperatorKind::Div, {each, context.scalar(type, bound)}, {}, {}, "smooth"));
    }
    return finishAtenLoss(context, each);
}

Result<void> finishWeighted(AtenContext &context, TensorId each)
{
    TRY(const TensorId weight, context.optionalTensor("weight"));
    if (weight) {
        TRY(each, context.make(OperatorKind::Mul, {each, weight}, {}, {}, "weighted"));
    }
    return finishAtenLoss(context, each);
}

/// softplus(x) - x target; with the weight p of positive items
/// (1 - target) x + (1 + (p - 1) target) softplus(-x)
Result<void> atenBinaryLogits(AtenContext &context, TensorId x)
{
    TRY(const TensorId target, context.tensor("target"));
    TRY(const TensorId positive, context.optionalTensor("pos_weight"));
    const DataType type = context.typeOf(x).dataType;
    const TensorId one = context.scalar(type, 1);
    if (!positive) {
        TRY(const TensorId soft, context.make(OperatorKind::Softplus, {x}, {}, {}, "softplus"));
        TRY(const TensorId part, context.make(OperatorKind::Mul, {x, target}, {}, {}, "hit"));
        TRY(const TensorId each, context.make(OperatorKind::Sub, {soft, part}, {}, {}, "each"));
        return finishWeighted(context, each);
    }
    TRY(const TensorId negative, context.make(OperatorKind::Neg, {x}, {}, {}, "neg"));
    TRY(const TensorId soft, context.make(OperatorKind::Softplus, {negative}, {}, {}, "softplus"));
    TRY(const TensorId more, context.make(OperatorKind::Sub, {positive, one}, {}, {}, "more"));
    TRY(const TensorId scaled, context.make(OperatorKind::Mul, {more, target}, {}, {}, "scaled"));
    TRY(const TensorId factor, context.make(OperatorKind::Add, {scaled, one}, {}, {}, "factor"));
    TRY(const TensorId right, context.make(OperatorKind::Mul, {factor, soft}, {}, {}, "right"));
    TRY(const TensorId missing, context.make(OperatorKind::Sub, {one, target}, {}, {}, "missing"));
    TRY(const TensorId left, context.make(OperatorKind::Mul, {missing, x}, {}, {}, "left"));
    TRY(const TensorId each, context.make(OperatorKind::Add, {left, right}, {}, {}, "each"));
    return finishWeighted(context, each);
}

/// -(target log x + (1 - target) log(1 - x)), whose logarithms PyTorch bounds by -100
Result<void> atenBinaryEntropy(AtenContext &context, TensorId x)
{
    TRY(const TensorId target, context.tensor("target"));
    const TensorId one = context.scalar(context.typeOf(x).dataType, 1);
    const Attributes bound = attributesFrom({{"min", -100.0}});
    const auto logarithm = [&](TensorId of, const char *name) -> Result<TensorId> {
        TRY(const TensorId plain, context.make(OperatorKind::Log, {of}, {}, {}, name));
        return context.make(OperatorKind::Clip, {plain}, bound, {}, std::string(name) + "_bounded");
    };
    TRY(const TensorId hit, logarithm(x, "log"));
    TRY(const TensorId rest, context.make(OperatorKind::Sub, {one, x}, {}, {}, "rest"));
    TRY(const TensorId miss, logarithm(rest, "log_rest"));
    TRY(const TensorId other, context.make(OperatorKind::Sub, {one, target}, {}, {}, "other"));
    TRY(const TensorId left, context.make(OperatorKind::Mul, {target, hit}, {}, {}, "left"));
    TRY(const TensorId right, context.make(OperatorKind::Mul, {other, miss}, {}, {}, "right"));
    TRY(const TensorId sum, context.make(OperatorKind::Add, {left, right}, {}, {}, "sum"));
    TRY(const TensorId each, context.make(OperatorKind::Neg, {sum}, {}, {}, "each"));
    return finishWeighted(context, each);
}

/// target (log target - x), which is 0 where the target is; or exp(target) (target - x) of logarithms
Result<void> atenDivergence(AtenContext &context, TensorId x)
{
    TRY(const TensorId target, context.tensor("target"));
    TRY(const bool logarithms, context.flag("log_target", false));
    TensorId weight = target;
    TensorId logarithm = target;
    if (logarithms) {
        TRY(weight, context.make(OperatorKind::Exp, {target}, {}, {}, "exp"));
    } else {
        constexpr double kTiny = 1e-37; // above 0 in float32, so that its logarithm is finite
        TRY(const TensorId safe,
            context.make(OperatorKind::Clip, {target}, attributesFrom({{"min", kTiny}}), {}, "safe"));
        TRY(logarithm, context.make(OperatorKind::Log, {safe}, {}, {}, "log"));
    }
    TRY(const TensorId distance, context.make(OperatorKind::Sub, {logarithm, x}, {}, {}, "distance"));
    TRY(const TensorId each, context.make(OperatorKind::Mul, {weight, distance}, {}, {}, "each"));
    return finishAtenLoss(context, each);
}

} // namespace

const AtenHandlers &atenLossHandlers()
{
    static const AtenHandlers kHandlers = {
        {"cross_entropy_loss",
            [](AtenContext &context) { return classLoss(context, OperatorKind::CrossEntropy); }},
        {"nll_loss", atenLikelihood}, {"nll_loss2d", atenLikelihood}, {"nll_loss_nd", atenLikelihood},
        {"nll_loss_forward", atenLikelihood}, {"nll_loss2d_forward", atenLikelihood},
        {"mse_loss", ofSelf<atenSquaredError>}, {"l1_loss", ofSelf<atenAbsoluteError>},
        {"smooth_l1_loss", [](AtenContext &context) { return boundedError(context, "beta", true); }},
        {"huber_loss", [](AtenContext &context) { return boundedError(context, "delta", false); }},
        {"binary_cross_entropy_with_logits", ofSelf<atenBinaryLogits>},
        {"binary_cross_entropy", ofSelf<atenBinaryEntropy>}, {"kl_div", ofSelf<atenDivergence>}};
    return kHandlers;
}

} // namespace planloom
