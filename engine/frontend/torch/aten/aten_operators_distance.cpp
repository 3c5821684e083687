// Norms, distances between rows, and what is made of them.
#include "engine/frontend/torch/aten/aten_formula.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace planloom {

namespace {

using Made = AtenFormula::Made;
using Axes = AtenFormula::Axes;

// --- norms -------------------------------------------------------------------------------------------------

/// (sum of |x|^p)^(1/p), whose derivative PyTorch takes as 0 where the sum is 0, and in elements that are 0.
Made generalNorm(AtenFormula &f, TensorId x, double p, const Axes &axes, bool keeps)
{
    TRY(const TensorId size, f.of(OperatorKind::Abs, x));
    TRY(TensorId power, f.pow(size, p));
    if (p < 1) {
        TRY(const TensorId some, f.greater(size, 0.0));
        TRY(power, f.where(some, f.pow(f.where(some, size, 1.0), p), 0.0));
    }
    TRY(const TensorId sum, f.sum(power, axes, keeps));
    TRY(const TensorId some, f.greater(sum, 0.0));
    return f.where(some, f.pow(f.where(some, sum, 1.0), 1 / p), 0.0);
}

Made normOf(AtenFormula &f, const AtenTerm &term, double p, const Axes &axes, bool keeps = false)
{
    TRY(const TensorId x, AtenFormula::tensorOf(term));
    if (axes.empty())
        return f.of(OperatorKind::Abs, x);
    if (p == 2 || p == 1)
        return f.reduce(p == 2 ? OperatorKind::ReduceL2 : OperatorKind::ReduceL1, x, axes, keeps);
    if (std::isinf(p))
        return f.reduce(p > 0 ? OperatorKind::ReduceMax : OperatorKind::ReduceMin, f.of(OperatorKind::Abs, x),
            axes, keeps);
    if (p == 0) {
        const DataType type = f.typeOf(x).dataType;
        return f.sum(f.where(f.equal(x, 0.0), f.number(type, 0), f.number(type, 1)), axes, keeps);
    }
    return generalNorm(f, x, p, axes, keeps);
}

/// What a norm is taken of: `dim`, or all dimensions where none is named.
struct Normed {
    TensorId x{};
    Axes axes{};
    bool keeps = false;
};

Result<Normed> normedOf(AtenContext &context, const Axes &fallback)
{
    Normed normed;
    TRY(normed.x, context.tensor("self"));
    TRY(const DataType type, context.dataType(floatingTypeOf(context.typeOf(normed.x).dataType)));
    TRY(normed.x, context.cast(normed.x, type));
    TRY(normed.axes, context.dimensions("dim", context.rankOf(normed.x), fallback));
    TRY(normed.keeps, context.flag("keepdim", false));
    return normed;
}

Axes allAxes(AtenContext &context)
{
    const auto self = context.tensor("self");
    return self ? AtenFormula(context).allOf(*self) : Axes{};
}

/// Norms of vectors.
Result<void> atenNorm(AtenContext &context)
{
    AtenFormula f(context);
    TRY(const Normed normed, normedOf(context, allAxes(context)));
    TRY(const double p, context.real(context.given("ord") ? "ord" : "p", 2));
    return f.finish(normOf(f, normed.x, p, normed.axes, normed.keeps));
}

/// Sums of columns or rows, the largest or least of them; or the norm of all elements.
Result<void> matrixNorm(AtenContext &context, const Normed &normed, const std::string &name, double order)
{
    AtenFormula f(context);
    if (normed.axes.size() != 2)
        return context.invalid("a norm of matrices has two dimensions, not " + toString(normed.axes));
    if (name == "fro")
        return f.finish(normOf(f, normed.x, 2, normed.axes, normed.keeps));
    if (name == "nuc" || std::abs(order) == 2)
        return context.keepUnknown("norms by singular values are not computed");
    const bool columns = std::abs(order) == 1;
    if (!columns && !std::isinf(order))
        return context.invalid("matrices have no norm of order " + std::to_string(order));
    const std::int64_t summed = normed.axes[columns ? 0 : 1];
    const std::int64_t chosen = normed.axes[columns ? 1 : 0];
    const auto chosenKind = order > 0 ? OperatorKind::ReduceMax : OperatorKind::ReduceMin;
    TRY(const TensorId kept, f.reduce(chosenKind, normOf(f, normed.x, 1, {summed}, true), {chosen}, true));
    if (normed.keeps)
        return f.finish(kept);
    Shape shape;
    for (std::int64_t axis = 0; axis < context.rankOf(normed.x); ++axis) {
        if (axis != summed && axis != chosen)
            shape.push_back(context.shapeOf(normed.x)[axisIndex(axis)]);
    }
    return f.finish(f.reshape(kept, std::move(shape)));
}

Result<void> atenMatrixNorm(AtenContext &context)
{
    const auto rank = static_cast<std::int64_t>(allAxes(context).size());
    TRY(const Normed normed, normedOf(context, {rank - 2, rank - 1}));
    const bool named = std::holds_alternative<std::string>(context.value("ord")) || !context.given("ord");
    TRY(const std::string name, named ? context.text("ord", "fro") : Result<std::string>(std::string()));
    TRY(const double order, named ? Result<double>(0.0) : context.real("ord", 0));
    return matrixNorm(context, normed, name, order);
}

/// Of vectors or matrices, as the number of dimensions says.
Result<void> atenLinalgNorm(AtenContext &context)
{
    const std::size_t named = context.given("dim") ? 0 : allAxes(context).size();
    TRY(const Normed normed, normedOf(context, allAxes(context)));
    const bool ofMatrix =
        context.given("ord") && (context.given("dim") ? normed.axes.size() == 2 : named == 2);
    if (ofMatrix)
        return atenMatrixNorm(context);
    return atenNorm(context);
}

Result<void> frobeniusNorm(AtenContext &context, AtenFormula &f)
{
    TRY(const Normed normed, normedOf(context, allAxes(context)));
    return f.finish(normOf(f, normed.x, 2, normed.axes, normed.keeps));
}

/// All dimensions but one; all where that is -1.
Axes axesExcept(std::int64_t rank, std::int64_t axis)
{
    Axes axes;
    for (std::int64_t d = 0; d < rank; ++d) {
        if (d != axis)
            axes.push_back(d);
    }
    return axes;
}

/// v scaled to the norms g. Dimension -1 means one norm of all.
Result<void> weightNorm(AtenContext &context, AtenFormula &f)
{
    TRY(const TensorId v, context.tensor("v"));
    TRY(const TensorId g, context.tensor("g"));
    TRY(const std::int64_t axis, context.integer("dim", 0));
    TRY(const TensorId norm, normOf(f, v, 2, axesExcept(context.rankOf(v), axis), true));
    if (context.wants(1))
        TRY_VOID(f.finish(f.reshape(norm, Shape(context.shapeOf(g))), 1));
    return f.finish(f.mul(v, f.div(g, norm)));
}

Result<void> normExceptDimension(AtenContext &context, AtenFormula &f)
{
    TRY(const TensorId v, context.tensor("v"));
    TRY(const double p, context.real("pow", 2));
    TRY(const std::int64_t axis, context.integer("dim", 0));
    return f.finish(normOf(f, v, p, axesExcept(context.rankOf(v), axis), axis != -1));
}

/// Parts along a dimension, scaled down to a norm where theirs is larger.
Result<void> atenRenorm(AtenContext &context, AtenFormula &f)
{
    constexpr double kEpsilon = 1e-7; // PyTorch's
    TRY(const TensorId x, context.tensor("self"));
    TRY(const double p, context.real("p", 2));
    TRY(const double most, context.real("maxnorm", 1));
    TRY(const std::int64_t axis, context.dimension("dim", context.rankOf(x), 0));
    TRY(const TensorId norm, normOf(f, x, p, axesExcept(context.rankOf(x), axis), true));
    TRY(const TensorId factor, f.div(most, f.add(norm, kEpsilon)));
    return f.finish(f.mul(x, f.where(f.greater(norm, most), factor, 1.0)));
}

// --- distances ---------------------------------------------------------------------------------------------

/// The norm of a - b + epsilon over the last dimension.
Made pairDistance(AtenFormula &f, TensorId a, TensorId b, double p, double epsilon, bool keeps)
{
    TRY(const TensorId difference, f.add(f.sub(a, b), epsilon));
    return normOf(f, difference, p, {f.rankOf(difference) - 1}, keeps);
}

Result<void> pairwiseDistance(AtenContext &context, AtenFormula &f)
{
    TRY(const TensorId a, context.tensor("x1"));
    TRY(const TensorId b, context.tensor("x2"));
    TRY(const double p, context.real("p", 2));
    TRY(const double epsilon, context.real("eps", 1e-6));
    TRY(const bool keeps, context.flag("keepdim", false));
    return f.finish(pairDistance(f, a, b, p, epsilon, keeps));
}

/// sqrt(|a|^2 + |b|^2 - 2 a b) of all rows of a [.. p m] with all of b [.. r m].
Made distancesByProduct(AtenFormula &f, TensorId a, TensorId b)
{
    const auto turned = [&](TensorId x) {
        Axes order = f.allOf(x);
        std::swap(order[order.size() - 1], order[order.size() - 2]);
        return f.permute(x, order);
    };
    const auto squares = [&](TensorId x) {
        return f.reduce(OperatorKind::ReduceSumSquare, x, {f.rankOf(x) - 1}, true);
    };
    TRY(const TensorId ofB, squares(b));
    TRY(const TensorId product, f.make(OperatorKind::MatMul, {a, turned(b)}));
    TRY(const TensorId square, f.add(f.sub(squares(a), f.mul(product, 2.0)), turned(ofB)));
    TRY(const TensorId some, f.greater(square, 0.0));
    return f.where(some, f.of(OperatorKind::Sqrt, f.where(some, square, 1.0)), 0.0);
}

/// Distances of all rows of one matrix to all of another, [.. p m], [.. r m] -> [.. p r]. Where PyTorch finds
/// Euclidean ones by a product, so is done here: else all differences are in memory.
Result<void> crossDistance(AtenContext &context, AtenFormula &f)
{
    constexpr std::int64_t kNeverByProduct = 2; // of "compute_mode"
    constexpr std::int64_t kRowsForProduct = 25;
    TRY(const TensorId a, context.tensor("x1"));
    TRY(const TensorId b, context.tensor("x2"));
    TRY(const double p, context.real("p", 2));
    TRY(const std::int64_t mode, context.integer("compute_mode", 0));
    if (context.rankOf(a) < 2 || context.rankOf(b) < 2)
        return context.invalid("its inputs have the shapes " + toString(context.shapeOf(a)) + " and "
            + toString(context.shapeOf(b)) + ", where matrices were expected");
    const auto rows = [&](TensorId x) { return context.shapeOf(x)[axisIndex(context.rankOf(x) - 2)]; };
    const bool large = rows(a) > kRowsForProduct || rows(b) > kRowsForProduct;
    if (p == 2 && mode != kNeverByProduct && (mode == 1 || large))
        return f.finish(distancesByProduct(f, a, b));
    TRY(const TensorId left, f.unsqueeze(a, context.rankOf(a) - 1));
    TRY(const TensorId right, f.unsqueeze(b, context.rankOf(b) - 2));
    TRY(const TensorId difference, f.sub(left, right));
    return f.finish(normOf(f, difference, p, {context.rankOf(difference) - 1}));
}

Result<void> euclideanDistance(AtenContext &context, AtenFormula &f)
{
    TRY(const TensorId a, context.tensor("x1"));
    TRY(const TensorId b, context.tensor("x2"));
    return f.finish(distancesByProduct(f, a, b));
}

/// Distances of every two rows of a matrix, each pair once.
Result<void> distancesWithin(AtenContext &context, AtenFormula &f, TensorId x)
{
    TRY(const double p, context.real("p", 2));
    if (context.rankOf(x) != 2)
        return context.invalid(
            "its input has the shape " + toString(context.shapeOf(x)) + ", not a matrix's");
    Axes first;
    Axes second;
    for (std::int64_t i = 0; i < context.shapeOf(x)[0]; ++i) {
        for (std::int64_t j = i + 1; j < context.shapeOf(x)[0]; ++j) {
            first.push_back(i);
            second.push_back(j);
        }
    }
    const Shape count{static_cast<std::int64_t>(first.size())};
    TRY(const TensorId left, f.gather(x, f.integers(first, count), 0));
    TRY(const TensorId right, f.gather(x, f.integers(second, count), 0));
    return f.finish(normOf(f, f.sub(left, right), p, {1}));
}

/// The norm of the difference of two tensors.
Result<void> atenDist(AtenContext &context, AtenFormula &f)
{
    TRY(const TensorId a, context.tensor("self"));
    TRY(const TensorId b, context.tensor("other"));
    TRY(const double p, context.real("p", 2));
    TRY(const TensorId difference, f.sub(a, b));
    return f.finish(normOf(f, difference, p, f.allOf(difference)));
}

/// The cosine of the angle between rows; norms count as `eps` at least, and as themselves in derivatives.
Result<void> cosineSimilarity(AtenContext &context, AtenFormula &f)
{
    TRY(const TensorId a, context.tensor("x1"));
    TRY(const TensorId b, context.tensor("x2"));
    TRY(const double epsilon, context.real("eps", 1e-8));
    const Shape shape = context.broadcastShape({a, b});
    TRY(const std::int64_t axis, context.dimension("dim", static_cast<std::int64_t>(shape.size()), 1));
    const auto direction = [&](TensorId x) -> Made {
        TRY(const TensorId whole, f.expand(x, shape));
        TRY(const TensorId norm, normOf(f, whole, 2, {axis}, true));
        TRY(const TensorId more, f.clip(f.sub(epsilon, norm), 0.0));
        return f.div(whole, f.add(norm, f.detached(more)));
    };
    return f.finish(f.sum(f.mul(direction(a), direction(b)), {axis}));
}

// --- losses of distances -----------------------------------------------------------------------------------

/// 1 - cosine of what belongs together, and the cosine above the margin of what does not.
Result<void> cosineEmbeddingLoss(AtenContext &context, AtenFormula &f)
{
    constexpr double kEpsilon = 1e-12; // PyTorch's
    TRY(const TensorId a, context.tensor("input1"));
    TRY(const TensorId b, context.tensor("input2"));
    TRY(const TensorId target, context.tensor("target"));
    TRY(const double margin, context.real("margin", 0));
    const Axes last{context.rankOf(a) - 1};
    const auto square = [&](TensorId x) {
        return f.add(f.reduce(OperatorKind::ReduceSumSquare, x, last), kEpsilon);
    };
    TRY(const TensorId length, f.of(OperatorKind::Sqrt, f.mul(square(a), square(b))));
    TRY(const TensorId cosine, f.div(f.sum(f.mul(a, b), last), length));
    TRY(const TensorId apart, f.clip(f.sub(cosine, margin), 0.0));
    TRY(const TensorId other, f.where(f.equal(target, -1.0), apart, 0.0));
    return finishAtenLoss(context, f.where(f.equal(target, 1.0), f.sub(1.0, cosine), other));
}

/// max(0, margin + distance to the positive - distance to the negative)
Result<void> tripletLoss(AtenContext &context, AtenFormula &f)
{
    TRY(const TensorId anchor, context.tensor("anchor"));
    TRY(const TensorId positive, context.tensor("positive"));
    TRY(const TensorId negative, context.tensor("negative"));
    TRY(const double margin, context.real("margin", 1));
    TRY(const double p, context.real("p", 2));
    TRY(const double epsilon, context.real("eps", 1e-6));
    TRY(const bool swap, context.flag("swap", false));
    TRY(const TensorId near, pairDistance(f, anchor, positive, p, epsilon, false));
    TRY(TensorId far, pairDistance(f, anchor, negative, p, epsilon, false));
    if (swap) {
        TRY(far, f.make(OperatorKind::Min, {far, pairDistance(f, positive, negative, p, epsilon, false)}));
    }
    return finishAtenLoss(context, f.clip(f.sub(f.add(near, margin), far), 0.0));
}

} // namespace

const AtenHandlers &atenDistanceHandlers()
{
    static const AtenHandlers kHandlers = {{"norm", atenNorm}, {"linalg_vector_norm", atenNorm},
        {"linalg_norm", atenLinalgNorm}, {"linalg_matrix_norm", atenMatrixNorm},
        {"frobenius_norm", formula<frobeniusNorm>}, {"_weight_norm", formula<weightNorm>},
        {"_weight_norm_interface", formula<weightNorm>}, {"norm_except_dim", formula<normExceptDimension>},
        {"renorm", formula<atenRenorm>}, {"pairwise_distance", formula<pairwiseDistance>},
        {"cdist", formula<crossDistance>}, {"_cdist_forward", formula<crossDistance>},
        {"_euclidean_dist", formula<euclideanDistance>}, {"pdist", ofSelf<distancesWithin>},
        {"_pdist_forward", ofSelf<distancesWithin>}, {"dist", formula<atenDist>},
        {"cosine_similarity", formula<cosineSimilarity>},
        {"cosine_embedding_loss", formula<cosineEmbeddingLoss>},
        {"triplet_margin_loss", formula<tripletLoss>}};
    return kHandlers;
}

} // namespace planloom
