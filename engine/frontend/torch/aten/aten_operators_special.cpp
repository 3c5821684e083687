// Functions element by element that are made of others, sums, and products.
#include "engine/frontend/torch/aten/aten_formula.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

namespace planloom {

namespace {

using Made = AtenFormula::Made;
using Axes = AtenFormula::Axes;

const double kPi = std::acos(-1.0);

/// Arguments of floating type, of which one may be a number.
Result<std::vector<TensorId>> realOperands(
    AtenContext &context, std::initializer_list<std::string_view> names)
{
    TRY(const DataType type, context.promotedType(names));
    return context.operands(names, floatingTypeOf(type));
}

// --- of one value ------------------------------------------------------------------------------------------

/// Finishes what `function(formula, x)` makes of argument "self", as a floating value.
template<typename Function> Result<void> ofOneValue(AtenContext &context, const Function &function)
{
    AtenFormula f(context);
    TRY(const auto x, realOperands(context, {"self"}));
    return f.finish(function(f, x.front()));
}

/// Toward zero.
Made cutOff(AtenFormula &f, TensorId x)
{
    return f.mul(f.of(OperatorKind::Sign, x), f.of(OperatorKind::Floor, f.of(OperatorKind::Abs, x)));
}

Result<void> atenTrunc(AtenContext &context)
{
    return ofOneValue(context, [](AtenFormula &f, TensorId x) { return cutOff(f, x); });
}
Result<void> atenFrac(AtenContext &context)
{
    return ofOneValue(context, [](AtenFormula &f, TensorId x) { return f.sub(x, f.detached(cutOff(f, x))); });
}
Result<void> atenErfc(AtenContext &context)
{
    return ofOneValue(
        context, [](AtenFormula &f, TensorId x) { return f.sub(1.0, f.of(OperatorKind::Erf, x)); });
}
Result<void> atenNdtr(AtenContext &context)
{
    return ofOneValue(context, [](AtenFormula &f, TensorId x) {
        return f.mul(f.add(f.of(OperatorKind::Erf, f.mul(x, std::sqrt(0.5))), 1.0), 0.5);
    });
}
/// sin(pi x) / (pi x), which is 1 at 0.
Result<void> atenSinc(AtenContext &context)
{
    return ofOneValue(context, [](AtenFormula &f, TensorId x) -> Made {
        TRY(const TensorId none, f.equal(x, 0.0));
        TRY(const TensorId angle, f.mul(f.where(none, 1.0, x), kPi));
        return f.where(none, 1.0, f.div(f.of(OperatorKind::Sin, angle), angle));
    });
}
/// -x log(x)
Result<void> atenEntropy(AtenContext &context)
{
    return ofOneValue(context, [](AtenFormula &f, TensorId x) -> Made {
        TRY(const TensorId some, f.greater(x, 0.0));
        const auto entropy =
            f.mul(f.of(OperatorKind::Neg, x), f.of(OperatorKind::Log, f.where(some, x, 1.0)));
        const double outside = -std::numeric_limits<double>::infinity();
        return f.where(some, entropy, f.where(f.equal(x, 0.0), x, outside));
    });
}
/// log(x / (1 - x)) of x within [eps, 1 - eps].
Result<void> atenLogit(AtenContext &context)
{
    TRY(const double epsilon, context.real("eps", -1));
    return ofOneValue(context, [&](AtenFormula &f, TensorId x) -> Made {
        TRY(const TensorId share, epsilon < 0 ? Made(x) : f.clip(x, epsilon, 1 - epsilon));
        return f.of(OperatorKind::Log, f.div(share, f.sub(1.0, share)));
    });
}
Result<void> atenHardShrink(AtenContext &context)
{
    TRY(const double bound, context.real("lambd", 0.5));
    return ofOneValue(context, [&](AtenFormula &f, TensorId x) {
        return f.where(f.greater(f.of(OperatorKind::Abs, x), bound), x, 0.0);
    });
}
Result<void> atenSoftShrink(AtenContext &context)
{
    TRY(const double bound, context.real("lambd", 0.5));
    return ofOneValue(context, [&](AtenFormula &f, TensorId x) -> Made {
        TRY(const TensorId size, f.sub(f.of(OperatorKind::Abs, x), bound));
        return f.where(f.greater(size, 0.0), f.mul(f.of(OperatorKind::Sign, x), size), 0.0);
    });
}
Result<void> atenThreshold(AtenContext &context)
{
    TRY(const double bound, context.real("threshold", 0));
    TRY(const double value, context.real("value", 0));
    return ofOneValue(
        context, [&](AtenFormula &f, TensorId x) { return f.where(f.greater(x, bound), x, value); });
}
/// Without training, the slope below 0 is that in the middle.
Result<void> atenRandomRelu(AtenContext &context)
{
    TRY(const double lower, context.real("lower", 1.0 / 8));
    TRY(const double upper, context.real("upper", 1.0 / 3));
    TRY(const bool training, context.flag("training", false));
    TRY(const TensorId x, context.tensor("self"));
    if (training && lower != upper)
        return context.keepUnknown("slopes that are drawn are not computed");
    return context.finish(OperatorKind::LeakyRelu, {x}, attributesFrom({{"alpha", (lower + upper) / 2}}));
}
Result<void> nanToNumber(AtenContext &context, AtenFormula &f, TensorId x)
{
    const DataType type = context.typeOf(x).dataType;
    const double largest = type == DataType::Float16 ? 65504.0
        : type == DataType::Float64                  ? std::numeric_limits<double>::max()
        : type == DataType::BFloat16                 ? 3.3895313892515355e38
                                                     : static_cast<double>(std::numeric_limits<float>::max());
    if (!isFloating(type))
        return context.bind(0, x);
    TRY(const double missing, context.real("nan", 0));
    TRY(const double high, context.real("posinf", largest));
    TRY(const double low, context.real("neginf", -largest));
    const auto below = f.where(f.greater(-largest, x), low, x);
    return f.finish(
        f.where(f.of(OperatorKind::IsNaN, x), missing, f.where(f.greater(x, largest), high, below)));
}
Result<void> atenSignBit(AtenContext &, AtenFormula &f, TensorId x)
{
    return f.finish(f.greater(0.0, x));
}

// --- of two values -----------------------------------------------------------------------------------------

/// log(exp(a) + exp(b)) as a + log(1 + exp(b - a)), in logarithms of a base.
Result<void> addedLogarithms(AtenContext &context, double base)
{
    AtenFormula f(context);
    TRY(const auto x, realOperands(context, {"self", "other"}));
    const double scale = std::log(base);
    const auto apart = f.mul(f.sub(x[1], x[0]), scale);
    return f.finish(f.add(x[0], f.mul(f.of(OperatorKind::Softplus, apart), 1 / scale)));
}

/// x log(y + shift), which is 0 where x is and the logarithm is none.
Result<void> timesLogarithm(AtenContext &context, double shift)
{
    AtenFormula f(context);
    TRY(const auto x, realOperands(context, {"self", "other"}));
    TRY(const TensorId y, f.add(x[1], shift));
    const auto none = f.both(f.equal(x[0], 0.0), f.atLeast(0.0, y));
    return f.finish(f.mul(x[0], f.of(OperatorKind::Log, f.where(none, 1.0, y))));
}
Result<void> atenXlogY(AtenContext &context)
{
    return timesLogarithm(context, 0);
}

Result<void> atenHypot(AtenContext &context, AtenFormula &f)
{
    TRY(const auto x, realOperands(context, {"self", "other"}));
    return f.finish(f.of(OperatorKind::Sqrt, f.add(f.mul(x[0], x[0]), f.mul(x[1], x[1]))));
}

/// The angle of the point (x, y): by y / x where x is the larger, by x / y where y is.
Result<void> atenAtan2(AtenContext &context, AtenFormula &f)
{
    TRY(const auto both, realOperands(context, {"self", "other"}));
    const TensorId y = both[0];
    const TensorId x = both[1];
    const auto size = [&](TensorId of) { return f.of(OperatorKind::Abs, of); };
    TRY(const TensorId flat, f.atLeast(size(x), size(y)));
    const auto ratio = [&](TensorId a, TensorId b, const Made &used) {
        const auto safe = f.where(f.both(used, f.greater(size(b), 0.0)), b, 1.0);
        return f.of(OperatorKind::Atan, f.div(a, safe));
    };
    const auto half = f.where(f.atLeast(y, 0.0), f.number(context.typeOf(y).dataType, kPi),
        f.number(context.typeOf(y).dataType, -kPi));
    const auto nearX = f.add(ratio(y, x, flat), f.where(f.greater(0.0, x), half, 0.0));
    const auto nearY = f.sub(f.mul(half, 0.5), ratio(x, y, f.of(OperatorKind::Not, flat)));
    return f.finish(f.where(flat, nearX, nearY));
}

/// The size of a with the sign of b.
Result<void> copySign(AtenContext &context, AtenFormula &f)
{
    TRY(const auto x, realOperands(context, {"self", "other"}));
    TRY(const TensorId size, f.of(OperatorKind::Abs, x[0]));
    return f.finish(f.where(f.greater(0.0, x[1]), f.of(OperatorKind::Neg, size), size));
}

Result<void> floatPower(AtenContext &context, AtenFormula &f)
{
    TRY(const auto x, context.operands({"self", "exponent"}, DataType::Float64));
    return f.finish(f.pow(x[0], x[1]));
}

/// x times 2 to the power of n.
Result<void> atenLdexp(AtenContext &context, AtenFormula &f)
{
    TRY(const auto x, realOperands(context, {"self", "other"}));
    return f.finish(f.mul(x[0], f.pow(2.0, x[1])));
}

/// 0 below 0, 1 above it, and the second value at it.
Result<void> atenHeaviside(AtenContext &context, AtenFormula &f, TensorId x)
{
    TRY(const TensorId values, context.tensor("values"));
    const auto step = f.cast(f.greater(x, 0.0), context.typeOf(x).dataType);
    return f.finish(f.where(f.equal(x, 0.0), values, step));
}

/// The cross product of vectors of three numbers.
Result<void> crossProduct(AtenContext &context, AtenFormula &f)
{
    TRY(const auto x, realOperands(context, {"self", "other"}));
    const auto rank = static_cast<std::int64_t>(context.broadcastShape({x[0], x[1]}).size());
    TRY(const std::int64_t axis, context.dimension("dim", rank, -1));
    const auto turned = [&](TensorId v, Axes places) {
        return f.gather(v, f.integers(std::move(places), {3}), axis - rank + context.rankOf(v));
    };
    const auto left = f.mul(turned(x[0], {1, 2, 0}), turned(x[1], {2, 0, 1}));
    return f.finish(f.sub(left, f.mul(turned(x[0], {2, 0, 1}), turned(x[1], {1, 2, 0}))));
}

// --- sums and counts ---------------------------------------------------------------------------------------

/// Sums of what is a number.
Result<void> nanSum(AtenContext &context, AtenFormula &f, TensorId x)
{
    TRY(const DataType type, context.dataType(context.typeOf(x).dataType));
    TRY(const Axes axes, context.dimensions("dim", context.rankOf(x), f.allOf(x)));
    TRY(const bool keeps, context.flag("keepdim", false));
    TRY(const TensorId clean, f.where(f.of(OperatorKind::IsNaN, x), 0.0, x));
    return f.finish(f.sum(f.cast(clean, type), axes, keeps));
}

Result<void> countNonZero(AtenContext &context, AtenFormula &f, TensorId x)
{
    TRY(const Axes axes, context.dimensions("dim", context.rankOf(x), f.allOf(x)));
    return f.finish(f.sum(f.cast(f.cast(x, DataType::Bool), DataType::Int64), axes));
}

/// How many of known or given boundaries lie below each value, or not above it.
Result<void> countBelow(AtenContext &context, std::string_view values, std::string_view boundaries)
{
    AtenFormula f(context);
    TRY(const DataType type, context.promotedType({values, boundaries}));
    TRY(const auto both, context.operands({values, boundaries}, type));
    TRY(bool right, context.flag("right", false));
    TRY(const std::string side, context.text("side", right ? "right" : "left"));
    TRY(const bool narrow, context.flag("out_int32", false));
    if (context.rankOf(both[1]) != 1 || context.given("sorter"))
        return context.keepUnknown("a search among several lists, or in another order, is not computed");
    right = side == "right";
    TRY(const TensorId column, f.unsqueeze(both[0], context.rankOf(both[0])));
    const auto below = right ? f.atLeast(column, both[1]) : f.greater(column, both[1]);
    const auto ones = f.cast(below, narrow ? DataType::Int32 : DataType::Int64);
    return f.finish(f.sum(ones, {context.rankOf(both[0])}));
}

// --- known places ------------------------------------------------------------------------------------------

/// The area below the line through the values of a dimension, evenly `dx` apart: all of it, or up to each
/// value but the first.
template<bool Running> Result<void> atenTrapezoid(AtenContext &context, AtenFormula &f)
{
    if (context.given("x"))
        return context.keepUnknown("areas below values that are unevenly apart are not computed");
    TRY(const TensorId y, context.tensor("y"));
    TRY(const double apart, context.real("dx", 1));
    TRY(const std::int64_t axis, context.dimension("dim", context.rankOf(y), -1));
    const std::int64_t count = context.shapeOf(y)[axisIndex(axis)];
    if (count < 2)
        return context.keepUnknown("the area below a single value is not computed");
    const auto ends = f.add(f.slice(y, axis, 1, count), f.slice(y, axis, 0, count - 1));
    const auto areas = f.mul(ends, apart / 2);
    return f.finish(Running ? f.runningSum(areas, axis) : f.sum(areas, {axis}));
}

/// Elements of all of x as one list.
Result<void> atenTake(AtenContext &context, AtenFormula &f, TensorId x)
{
    TRY(const TensorId indices, context.tensor("index"));
    return f.finish(f.gather(f.reshape(x, {elementCount(context.shapeOf(x))}), indices, 0));
}

/// Numbers from one to another, as far from each other.
Result<void> atenLinspace(AtenContext &context, AtenFormula &f)
{
    TRY(const double start, context.real("start", 0));
    TRY(const double end, context.real("end", 1));
    TRY(const std::int64_t steps, context.integer("steps", 100));
    TRY(const DataType type, context.dataType(DataType::Float32));
    if (steps < 0 || !isFloating(type))
        return context.keepUnknown("such numbers are not computed");
    std::vector<double> values(axisIndex(steps), start);
    const double width = steps > 1 ? (end - start) / static_cast<double>(steps - 1) : 0;
    for (std::int64_t i = 0; i < steps; ++i) // from the nearer end, as PyTorch does
        values[axisIndex(i)] = 2 * i < steps ? start + width * static_cast<double>(i)
                                             : end - width * static_cast<double>(steps - 1 - i);
    return f.finish(f.reals(type, values, {steps}));
}

// --- products ----------------------------------------------------------------------------------------------

/// beta self + alpha product
Result<void> finishAdded(AtenContext &context, const Made &product)
{
    AtenFormula f(context);
    TRY(const TensorId x, context.tensor("self"));
    TRY(const double beta, context.real("beta", 1));
    TRY(const double alpha, context.real("alpha", 1));
    TRY(const TensorId scaled, alpha == 1 ? product : f.mul(product, alpha));
    if (beta == 0)
        return f.finish(scaled);
    return f.finish(f.add(beta == 1 ? Made(x) : f.mul(x, beta), scaled));
}

Result<void> atenAddbmm(AtenContext &context, AtenFormula &f)
{
    TRY(const TensorId a, context.tensor("batch1"));
    TRY(const TensorId b, context.tensor("batch2"));
    return finishAdded(context,
        f.make(OperatorKind::Einsum, {a, b}, attributesFrom({{"equation", std::string("bij,bjk->ik")}})));
}

Result<void> atenAddr(AtenContext &context, AtenFormula &f)
{
    TRY(const TensorId a, context.tensor("vec1"));
    TRY(const TensorId b, context.tensor("vec2"));
    return finishAdded(context, f.mul(f.unsqueeze(a, 1), f.unsqueeze(b, 0)));
}

/// x1 W x2 for each matrix of W, over the last dimensions.
Result<void> atenBilinear(AtenContext &context, AtenFormula &f)
{
    TRY(const TensorId a, context.tensor("input1"));
    TRY(const TensorId b, context.tensor("input2"));
    TRY(const TensorId weight, context.tensor("weight"));
    TRY(const TensorId bias, context.optionalTensor("bias"));
    std::string rows;
    for (std::int64_t d = 0; d + 1 < context.rankOf(a); ++d)
        rows += static_cast<char>('a' + d);
    const std::string equation = rows + "y," + rows + "z,xyz->" + rows + "x";
    const auto product =
        f.make(OperatorKind::Einsum, {a, b, weight}, attributesFrom({{"equation", equation}}));
    return f.finish(bias ? f.add(product, bias) : product);
}

/// The product of three tensors, each with dimensions of 1 put in, summed over some: what a bilinear layer is
/// in core ATen.
Result<void> trilinear(AtenContext &context, AtenFormula &f)
{
    std::vector<AtenTerm> inputs;
    std::string equation;
    std::size_t rank = 0;
    for (const char *number : {"1", "2", "3"}) {
        TRY(const TensorId x, context.tensor(std::string("i") + number));
        TRY(const Axes added, context.integers(std::string("expand") + number, {}));
        rank = context.shapeOf(x).size() + added.size();
        equation += equation.empty() ? "" : ",";
        for (std::size_t d = 0; d < rank; ++d) {
            if (std::find(added.begin(), added.end(), static_cast<std::int64_t>(d)) == added.end())
                equation += static_cast<char>('a' + static_cast<int>(d));
        }
        inputs.push_back(x);
    }
    TRY(const Axes summed, context.integers("sumdim", {}));
    equation += "->";
    for (std::size_t d = 0; d < rank; ++d) {
        if (std::find(summed.begin(), summed.end(), static_cast<std::int64_t>(d)) == summed.end())
            equation += static_cast<char>('a' + static_cast<int>(d));
    }
    return f.finish(f.make(OperatorKind::Einsum, inputs, attributesFrom({{"equation", equation}})));
}

/// Of vectors along a dimension.
Result<void> vectorProduct(AtenContext &context, AtenFormula &f)
{
    const bool ofLists = context.given("self"); // vdot
    TRY(const TensorId a, context.tensor(ofLists ? "self" : "x"));
    TRY(const TensorId b, context.tensor(ofLists ? "other" : "y"));
    TRY(const TensorId product, f.mul(a, b));
    TRY(const std::int64_t axis, context.dimension("dim", context.rankOf(product), -1));
    return f.finish(f.sum(product, {axis}));
}

} // namespace

const AtenHandlers &atenSpecialHandlers()
{
    static const AtenHandlers kHandlers = {{"trunc", atenTrunc}, {"fix", atenTrunc}, {"frac", atenFrac},
        {"erfc", atenErfc}, {"special_erfc", atenErfc}, {"special_ndtr", atenNdtr},
        {"deg2rad",
            [](AtenContext &context) {
                return ofOneValue(context, [](AtenFormula &f, TensorId x) { return f.mul(x, kPi / 180); });
            }},
        {"rad2deg",
            [](AtenContext &context) {
                return ofOneValue(context, [](AtenFormula &f, TensorId x) { return f.mul(x, 180 / kPi); });
            }},
        {"sinc", atenSinc}, {"special_sinc", atenSinc}, {"special_entr", atenEntropy}, {"logit", atenLogit},
        {"special_logit", atenLogit}, {"hardshrink", atenHardShrink}, {"softshrink", atenSoftShrink},
        {"threshold", atenThreshold}, {"rrelu", atenRandomRelu}, {"rrelu_with_noise", atenRandomRelu},
        {"rrelu_with_noise_functional", atenRandomRelu}, {"nan_to_num", ofSelf<nanToNumber>},
        {"signbit", ofSelf<atenSignBit>},
        {"logaddexp", [](AtenContext &context) { return addedLogarithms(context, std::exp(1.0)); }},
        {"logaddexp2", [](AtenContext &context) { return addedLogarithms(context, 2); }},
        {"xlogy", atenXlogY}, {"special_xlogy", atenXlogY},
        {"special_xlog1py", [](AtenContext &context) { return timesLogarithm(context, 1); }},
        {"hypot", formula<atenHypot>}, {"atan2", formula<atenAtan2>}, {"arctan2", formula<atenAtan2>},
        {"copysign", formula<copySign>}, {"float_power", formula<floatPower>}, {"ldexp", formula<atenLdexp>},
        {"heaviside", ofSelf<atenHeaviside>}, {"linalg_cross", formula<crossProduct>},
        {"cross", formula<crossProduct>}, {"nansum", ofSelf<nanSum>}, {"count_nonzero", ofSelf<countNonZero>},
        {"bucketize", [](AtenContext &context) { return countBelow(context, "self", "boundaries"); }},
        {"searchsorted", [](AtenContext &context) { return countBelow(context, "self", "sorted_sequence"); }},
        {"cumulative_trapezoid", formula<atenTrapezoid<true>>}, {"trapezoid", formula<atenTrapezoid<false>>},
        {"take", ofSelf<atenTake>}, {"linspace", formula<atenLinspace>}, {"addbmm", formula<atenAddbmm>},
        {"addr", formula<atenAddr>}, {"bilinear", formula<atenBilinear>}, {"_trilinear", formula<trilinear>},
        {"linalg_vecdot", formula<vectorProduct>}, {"vdot", formula<vectorProduct>}};
    return kHandlers;
}

} // namespace planloom
