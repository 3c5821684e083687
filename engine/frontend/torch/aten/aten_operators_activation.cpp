#include "engine/frontend/torch/aten/aten_formula.h"
#include "engine/frontend/torch/aten/aten_operators.h"

#include <cmath>
#include <limits>
#include <utility>

namespace planloom {

namespace {

// --- functions with numbers --------------------------------------------------------------------------------

Result<void> atenRsqrt(AtenContext &context)
{
    TRY(TensorId x, context.tensor("self"));
    TRY(x, context.cast(x, floatingTypeOf(context.typeOf(x).dataType)));
    TRY(const TensorId root, context.make(OperatorKind::Sqrt, {x}, {}, {}, "sqrt"));
    return context.finish(OperatorKind::Reciprocal, {root});
}

/// log(x) scaled, log(1 + x), exp(x) - 1, 2^x
Result<void> atenLogBase(AtenContext &context, double base)
{
    TRY(TensorId x, context.tensor("self"));
    TRY(x, context.cast(x, floatingTypeOf(context.typeOf(x).dataType)));
    TRY(const TensorId natural, context.make(OperatorKind::Log, {x}, {}, {}, "log"));
    return context.finish(
        OperatorKind::Mul, {natural, context.scalar(context.typeOf(x).dataType, 1 / std::log(base))});
}
Result<void> atenLog1p(AtenContext &context)
{
    TRY(TensorId x, context.tensor("self"));
    TRY(x, context.cast(x, floatingTypeOf(context.typeOf(x).dataType)));
    const TensorId one = context.scalar(context.typeOf(x).dataType, 1);
    TRY(const TensorId sum, context.make(OperatorKind::Add, {x, one}, {}, {}, "plus_one"));
    return context.finish(OperatorKind::Log, {sum});
}
Result<void> atenExpm1(AtenContext &context)
{
    TRY(TensorId x, context.tensor("self"));
    TRY(x, context.cast(x, floatingTypeOf(context.typeOf(x).dataType)));
    TRY(const TensorId power, context.make(OperatorKind::Exp, {x}, {}, {}, "exp"));
    return context.finish(OperatorKind::Sub, {power, context.scalar(context.typeOf(x).dataType, 1)});
}
Result<void> atenExp2(AtenContext &context)
{
    TRY(TensorId x, context.tensor("self"));
    TRY(x, context.cast(x, floatingTypeOf(context.typeOf(x).dataType)));
    const TensorId factor = context.scalar(context.typeOf(x).dataType, std::log(2.0));
    TRY(const TensorId scaled, context.make(OperatorKind::Mul, {x, factor}, {}, {}, "scaled"));
    return context.finish(OperatorKind::Exp, {scaled});
}

Result<void> atenGelu(AtenContext &context, TensorId x)
{
    TRY(const std::string approximate, context.text("approximate", "none"));
    if (approximate != "none" && approximate != "tanh")
        return context.unsupported(
            "argument 'approximate' is '" + approximate + "', where none or tanh was expected", kDescribeIt);
    return context.finish(OperatorKind::Gelu, {x}, attributesFrom({{"approximate", approximate}}));
}

/// log(1 + exp(beta x)) / beta; where beta x is above the threshold, x itself.
Result<void> atenSoftplus(AtenContext &context, AtenFormula &f, TensorId x)
{
    TRY(const double beta, context.real("beta", 1));
    TRY(const double threshold, context.real("threshold", 20));
    const auto scaled = beta == 1 ? AtenFormula::Made(x) : f.mul(x, beta);
    const auto soft = f.of(OperatorKind::Softplus, scaled);
    const auto made = beta == 1 ? soft : f.div(soft, beta);
    // Where exp(-threshold) is below half a unit in the last place of 1, both are the same number.
    const double unit = context.typeOf(x).dataType == DataType::Float64 ? 0x1p-53 : 0x1p-24;
    if (std::exp(-threshold) < unit)
        return f.finish(made);
    return f.finish(f.where(f.greater(scaled, threshold), x, made));
}

/// log(1 / (1 + exp(-x)))
Result<void> atenLogSigmoid(AtenContext &context, TensorId x)
{
    TRY(const TensorId negative, context.make(OperatorKind::Neg, {x}, {}, {}, "neg"));
    TRY(const TensorId soft, context.make(OperatorKind::Softplus, {negative}, {}, {}, "softplus"));
    return context.finish(OperatorKind::Neg, {soft});
}

Result<void> atenElu(AtenContext &context, TensorId x)
{
    TRY(const double alpha, context.real("alpha", 1));
    TRY(const double scale, context.real("scale", 1));
    TRY(const double inner, context.real("input_scale", 1));
    if (inner != 1)
        return context.keepUnknown("elu with a scale of its input is not computed");
    if (scale != 1)
        return context.finish(OperatorKind::Selu, {x}, attributesFrom({{"alpha", alpha}, {"gamma", scale}}));
    return context.finish(OperatorKind::Elu, {x}, attributesFrom({{"alpha", alpha}}));
}
Result<void> atenSelu(AtenContext &context, TensorId x)
{
    return context.finish(OperatorKind::Selu, {x},
        attributesFrom({{"alpha", 1.67326319217681884765625}, {"gamma", 1.05070102214813232421875}}));
}
Result<void> atenCelu(AtenContext &context, TensorId x)
{
    TRY(const double alpha, context.real("alpha", 1));
    return context.finish(OperatorKind::Celu, {x}, attributesFrom({{"alpha", alpha}}));
}
Result<void> atenLeakyRelu(AtenContext &context, TensorId x)
{
    TRY(const double slope, context.real("negative_slope", 0.01));
    return context.finish(OperatorKind::LeakyRelu, {x}, attributesFrom({{"alpha", slope}}));
}
Result<void> atenHardSigmoid(AtenContext &context, TensorId x)
{
    return context.finish(
        OperatorKind::HardSigmoid, {x}, attributesFrom({{"alpha", 1.0 / 6}, {"beta", 0.5}}));
}

/// The slope of each channel, [c] or [1], against [n c ..].
Result<void> atenPrelu(AtenContext &context, TensorId x)
{
    TRY(TensorId slope, context.tensor("weight"));
    const std::int64_t count = elementCount(context.shapeOf(slope));
    Shape shape(context.shapeOf(x).size(), 1);
    if (shape.size() > 1)
        shape[1] = count;
    TRY(slope, context.reshape(slope, std::move(shape), "slope"));
    return context.finish(OperatorKind::PRelu, {x, slope});
}

/// The half that passes is scaled by the sigmoid of the other.
Result<void> atenGlu(AtenContext &context, TensorId x)
{
    TRY(const std::int64_t axis, context.dimension("dim", context.rankOf(x), -1));
    const std::int64_t extent = context.shapeOf(x)[static_cast<std::size_t>(axis)];
    TRY(const auto halves,
        context.part(
            "split", emitSplit, x, axis, std::vector<std::int64_t>{extent / 2, extent - extent / 2}));
    TRY(const TensorId gate, context.make(OperatorKind::Sigmoid, {halves[1]}, {}, {}, "gate"));
    return context.finish(OperatorKind::Mul, {halves[0], gate});
}

// --- bounds ------------------------------------------------------------------------------------------------

Result<void> clippedTo(AtenContext &context, const char *least, const char *most)
{
    TRY(TensorId x, context.tensor("self"));
    const auto isNumber = [&](const char *name) {
        return context.given(name) && !std::holds_alternative<TensorId>(context.value(name));
    };
    DataType type = context.typeOf(x).dataType;
    for (const char *name : {least, most}) {
        if (context.given(name)) {
            TRY(const DataType with, context.promotedType({"self", name}));
            type = isFloating(with) && !isFloating(type) ? with : type;
        }
    }
    TRY(x, context.cast(x, type));
    for (const char *name : {least, most}) {
        if (!context.given(name) || isNumber(name))
            continue;
        TRY(const auto bound, context.operands({name}, type));
        TRY(x,
            context.make(name == least ? OperatorKind::Max : OperatorKind::Min, {x, bound[0]}, {}, {}, name));
    }
    Attributes attributes;
    constexpr double kInfinite = std::numeric_limits<double>::infinity();
    if (isNumber(least)) {
        TRY(const double bound, context.real(least, -kInfinite));
        attributes.set("min", bound);
    }
    if (isNumber(most)) {
        TRY(const double bound, context.real(most, kInfinite));
        attributes.set("max", bound);
    }
    if (attributes.all().empty())
        return context.bind(0, x);
    return context.finish(OperatorKind::Clip, {x}, std::move(attributes));
}
Result<void> atenClamp(AtenContext &context)
{
    return clippedTo(context, "min", "max");
}
Result<void> atenHardTanh(AtenContext &context, TensorId x)
{
    TRY(const double least, context.real("min_val", -1));
    TRY(const double most, context.real("max_val", 1));
    return context.finish(OperatorKind::Clip, {x}, attributesFrom({{"min", least}, {"max", most}}));
}
Result<void> atenRelu6(AtenContext &context, TensorId x)
{
    return context.finish(OperatorKind::Clip, {x}, attributesFrom({{"min", 0.0}, {"max", 6.0}}));
}

} // namespace

const AtenHandlers &atenActivationHandlers()
{
    static const AtenHandlers kHandlers = {{"rsqrt", atenRsqrt},
        {"log2", [](AtenContext &context) { return atenLogBase(context, 2); }},
        {"log10", [](AtenContext &context) { return atenLogBase(context, 10); }}, {"log1p", atenLog1p},
        {"expm1", atenExpm1}, {"exp2", atenExp2}, {"gelu", ofSelf<atenGelu>},
        {"softplus", ofSelf<atenSoftplus>}, {"log_sigmoid", ofSelf<atenLogSigmoid>}, {"elu", ofSelf<atenElu>},
        {"selu", ofSelf<atenSelu>}, {"celu", ofSelf<atenCelu>}, {"leaky_relu", ofSelf<atenLeakyRelu>},
        {"hardsigmoid", ofSelf<atenHardSigmoid>}, {"prelu", ofSelf<atenPrelu>},
        {"_prelu_kernel", ofSelf<atenPrelu>}, {"glu", ofSelf<atenGlu>}, {"clamp", atenClamp},
        {"clip", atenClamp}, {"clamp_min", atenClamp}, {"clamp_max", atenClamp},
        {"hardtanh", ofSelf<atenHardTanh>}, {"relu6", ofSelf<atenRelu6>}};
    return kHandlers;
}

} // namespace planloom
