// Losses of margins, and those of counts.
#include "engine/frontend/torch/aten/aten_formula.h"

#include <cmath>

namespace planloom {

namespace {

using Made = AtenFormula::Made;

/// max(0, margin - target (a - b))
Result<void> rankingLoss(AtenContext &context, AtenFormula &f)
{
    TRY(const TensorId a, context.tensor("input1"));
    TRY(const TensorId b, context.tensor("input2"));
    TRY(const TensorId target, context.tensor("target"));
    TRY(const double margin, context.real("margin", 0));
    const auto lead = f.mul(target, f.sub(a, b));
    return finishAtenLoss(context, f.clip(f.sub(margin, lead), 0.0));
}

/// x where the target is 1, and max(0, margin - x) where it is -1; both of any other target.
Result<void> hingeLoss(AtenContext &context, AtenFormula &f, TensorId x)
{
    TRY(const TensorId target, context.tensor("target"));
    TRY(const double margin, context.real("margin", 1));
    const auto apart = f.where(f.equal(target, 1.0), 0.0, f.clip(f.sub(margin, x), 0.0));
    const auto together = f.where(f.equal(target, -1.0), 0.0, x);
    return finishAtenLoss(context, f.add(apart, together));
}

/// log(1 + exp(-target x))
Result<void> softMarginLoss(AtenContext &context, AtenFormula &f, TensorId x)
{
    TRY(const TensorId target, context.tensor("target"));
    const auto agreement = f.of(OperatorKind::Neg, f.mul(target, x));
    return finishAtenLoss(context, f.of(OperatorKind::Softplus, agreement));
}

/// Scores and labels of a batch: one item becomes a batch of one.
Result<void> withBatch(AtenContext &context, TensorId &scores, TensorId &labels, bool &single)
{
    single = context.rankOf(scores) == 1;
    if (!single)
        return {};
    TRY(scores, context.reshape(scores, {1, context.shapeOf(scores)[0]}, "scores"));
    TRY(labels, context.reshape(labels, {1, elementCount(context.shapeOf(labels))}, "labels"));
    return {};
}

/// The loss of each item, which has no batch of its own where `single`.
Result<void> finishItems(AtenContext &context, const Made &each, bool single)
{
    return finishAtenLoss(context, single ? AtenFormula(context).reshape(each, {}) : each);
}

/// Of each item, the mean over classes other than its own of max(0, margin - own score + score)^p.
Result<void> multiMarginLoss(AtenContext &context, AtenFormula &f)
{
    TRY(TensorId scores, context.tensor("self"));
    TRY(TensorId labels, context.tensor("target"));
    TRY(const TensorId weights, context.optionalTensor("weight"));
    TRY(const double p, context.real("p", 1));
    TRY(const double margin, context.real("margin", 1));
    bool single = false;
    TRY_VOID(withBatch(context, scores, labels, single));
    const Shape shape = context.shapeOf(scores);
    TRY(const TensorId column, f.reshape(labels, {shape[0], 1}));
    AtenFormula::Axes classes(axisIndex(shape[1]));
    for (std::size_t c = 0; c < classes.size(); ++c)
        classes[c] = static_cast<std::int64_t>(c);
    const auto own = f.equal(f.cast(column, DataType::Int64), f.integers(classes, {1, shape[1]}));
    TRY(TensorId over, f.clip(f.sub(f.add(scores, margin), f.pick(scores, column, 1)), 0.0));
    if (p == 2) {
        TRY(over, f.mul(over, over));
    }
    if (weights) {
        TRY(over, f.mul(over, f.gather(weights, column, 0)));
    }
    return finishItems(context, f.reduce(OperatorKind::ReduceMean, f.where(own, 0.0, over), {1}), single);
}

/// Labels are listed up to the first -1: of each item, the sum over listed labels y and unlisted classes c of
/// max(0, 1 - score y + score c), divided by the number of classes.
Result<void> multiLabelMarginLoss(AtenContext &context, AtenFormula &f)
{
    TRY(TensorId scores, context.tensor("self"));
    TRY(TensorId labels, context.tensor("target"));
    bool single = false;
    TRY_VOID(withBatch(context, scores, labels, single));
    const Shape shape = context.shapeOf(scores);
    const DataType type = context.typeOf(scores).dataType;
    const auto ends = f.cast(f.make(OperatorKind::Less, {labels, 0.0}), DataType::Int64);
    TRY(const TensorId listed, f.equal(f.runningSum(ends, 1), 0.0));
    TRY(const TensorId label, f.clip(f.cast(labels, DataType::Int64), 0.0));
    const auto zeros = f.filled({type, shape}, 0);
    const auto marks = f.make(OperatorKind::ScatterElements, {zeros, label, f.cast(listed, type)},
        attributesFrom({{"axis", std::int64_t{1}}, {"reduction", std::string("add")}}));
    TRY(const TensorId unlisted, f.cast(f.equal(marks, 0.0), type));
    const auto own = f.unsqueeze(f.pick(scores, label, 1), 2); // [n label 1]
    const auto over = f.clip(f.sub(f.add(f.unsqueeze(scores, 1), 1.0), own), 0.0); // [n label class]
    const auto counted = f.mul(f.mul(over, f.unsqueeze(unlisted, 1)), f.unsqueeze(f.cast(listed, type), 2));
    const auto each = f.div(f.sum(counted, {1, 2}), static_cast<double>(shape[1]));
    return finishItems(context, each, single);
}

/// exp(x) - target x, or x - target log(x + epsilon); `full` adds Stirling's formula for log(target!).
Result<void> poissonLoss(AtenContext &context, AtenFormula &f)
{
    TRY(const TensorId x, context.tensor("input"));
    TRY(const TensorId target, context.tensor("target"));
    TRY(const bool logarithms, context.flag("log_input", true));
    TRY(const bool full, context.flag("full", false));
    TRY(const double epsilon, context.real("eps", 1e-8));
    AtenTerm each = logarithms ? f.sub(f.of(OperatorKind::Exp, x), f.mul(target, x))
                               : f.sub(x, f.mul(target, f.of(OperatorKind::Log, f.add(x, epsilon))));
    if (full) {
        TRY(const TensorId many, f.greater(target, 1.0));
        TRY(const TensorId count, f.where(many, target, 1.0));
        const auto product = f.sub(f.mul(count, f.of(OperatorKind::Log, count)), count);
        const auto root = f.mul(f.of(OperatorKind::Log, f.mul(count, 2 * std::acos(-1.0))), 0.5);
        each = f.add(each, f.where(many, f.add(product, root), 0.0));
    }
    return finishAtenLoss(context, each);
}

} // namespace

const AtenHandlers &atenMarginHandlers()
{
    static const AtenHandlers kHandlers = {{"margin_ranking_loss", formula<rankingLoss>},
        {"hinge_embedding_loss", ofSelf<hingeLoss>}, {"soft_margin_loss", ofSelf<softMarginLoss>},
        {"multi_margin_loss", formula<multiMarginLoss>},
        {"multilabel_margin_loss", formula<multiLabelMarginLoss>},
        {"multilabel_margin_loss_forward", formula<multiLabelMarginLoss>},
        {"poisson_nll_loss", formula<poissonLoss>}};
    return kHandlers;
}

} // namespace planloom
