#include "engine/frontend/onnx/onnx_operators.h"

#include "engine/frontend/writer/emit_functions.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace planloom {

namespace {

using Context = OnnxNodeContext;

/// Operators whose ONNX name is the kind's and that have no attributes.
template<OperatorKind kind, std::size_t count> Result<void> plain(Context &context)
{
    TRY_VOID(context.require(count));
    const auto &inputs = context.inputs();
    return context.finish(kind, {inputs.begin(), inputs.begin() + static_cast<std::ptrdiff_t>(count)});
}

Result<void> withAlpha(Context &context, OperatorKind kind, double fallback)
{
    TRY_VOID(context.require(1));
    TRY(const double alpha, context.real("alpha", fallback));
    return context.finish(kind, {context.input(0)}, attributesFrom({{"alpha", alpha}}));
}

Result<void> importSelu(Context &context)
{
    TRY(const double alpha, context.real("alpha", 1.67326319217681884765625));
    TRY(const double gamma, context.real("gamma", 1.05070102214813232421875));
    return context.finish(
        OperatorKind::Selu, {context.input(0)}, attributesFrom({{"alpha", alpha}, {"gamma", gamma}}));
}

Result<void> importHardSigmoid(Context &context)
{
    TRY(const double alpha, context.real("alpha", 0.2));
    TRY(const double beta, context.real("beta", 0.5));
    return context.finish(
        OperatorKind::HardSigmoid, {context.input(0)}, attributesFrom({{"alpha", alpha}, {"beta", beta}}));
}

Result<void> importGelu(Context &context)
{
    TRY(const std::string approximate, context.text("approximate", "none"));
    return context.finish(
        OperatorKind::Gelu, {context.input(0)}, attributesFrom({{"approximate", approximate}}));
}

Result<void> importSwish(Context &context)
{
    TRY(const double alpha, context.real("alpha", 1.0));
    if (alpha == 1.0)
        return context.finish(OperatorKind::Silu, {context.input(0)});
    const TensorId factor = context.scalar(context.type(0).dataType, alpha);
    TRY(const TensorId scaled, context.make(OperatorKind::Mul, {context.input(0), factor}, {}, {}, "scale"));
    TRY(const TensorId gate, context.make(OperatorKind::Sigmoid, {scaled}, {}, {}, "gate"));
    return context.finish(OperatorKind::Mul, {context.input(0), gate});
}

Result<void> importIsInf(Context &context)
{
    TRY(const std::int64_t negative, context.integer("detect_negative", 1));
    TRY(const std::int64_t positive, context.integer("detect_positive", 1));
    if (negative != 0 && positive != 0)
        return plain<OperatorKind::IsInf, 1>(context);
    TRY_VOID(context.require(1));
    if (negative == 0 && positive == 0)
        return context.finish(OperatorKind::Fill, {}, attributesFrom({{"value", 0.0}}),
            TensorType{DataType::Bool, context.shape(0)});
    const TensorId x = context.input(0);
    const TensorId zero = context.scalar(context.type(0).dataType, 0);
    TRY(const TensorId infinite, context.make(OperatorKind::IsInf, {x}, {}, {}, "infinite"));
    TRY(const TensorId side,
        context.make(positive != 0 ? OperatorKind::Greater : OperatorKind::Less, {x, zero}, {}, {}, "side"));
    return context.finish(OperatorKind::And, {infinite, side});
}

Result<void> importIdentity(Context &context)
{
    return context.bind(0, context.input(0));
}

Result<void> castTo(Context &context, DataType type)
{
    if (context.type(0).dataType == type)
        return context.bind(0, context.input(0));
    return context.finish(OperatorKind::Cast, {context.input(0)}, {}, TensorType{type, context.shape(0)});
}

Result<void> importCast(Context &context)
{
    TRY(const std::int64_t to, context.integer("to", 0));
    const auto type = onnxElementType(to);
    if (!type)
        return context.invalid("attribute 'to' is missing");
    return castTo(context, *type);
}

Result<void> importCastLike(Context &context)
{
    return castTo(context, context.type(1).dataType);
}

/// A bound of Clip: an attribute before operator set 11, which then is the largest float unless it is
/// written, and a scalar input since.
struct ClipBound {
    std::optional<Number> value{}; ///< If it is known.
    bool isDynamic = false; ///< An input that is not known.
};

Result<ClipBound> clipBound(Context &context, const char *name, std::size_t slot, double unbounded)
{
    if (context.hasAttribute(name) || context.opset() < 11) {
        TRY(const double value,
            context.real(name, std::copysign(std::numeric_limits<float>::max(), unbounded)));
        return ClipBound{Number::ofReal(value)};
    }
    if (!context.has(slot))
        return ClipBound{};
    const auto data = context.graph().valuesOf(context.input(slot));
    if (!data || elementCount(data->type.shape) != 1)
        return ClipBound{{}, true};
    const Number value = readNumber(data->type.dataType, data->bytes.data(), 0);
    return value.floating && value.real == unbounded ? ClipBound{} : ClipBound{value};
}

/// min(max(x, low), high): where the bounds cross, all elements are the upper one.
Result<void> importClip(Context &context)
{
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    TRY(ClipBound low, clipBound(context, "min", 1, -kInfinity));
    TRY(const ClipBound high, clipBound(context, "max", 2, kInfinity));
    if (low.value && high.value
        && (low.value->floating ? low.value->real > high.value->real
                                : low.value->integer > high.value->integer))
        low = high;
    Attributes attributes;
    if (low.value)
        attributes.set("min", numberAttribute(*low.value));
    TensorId x = context.input(0);
    if (low.isDynamic) {
        TRY(x, context.make(OperatorKind::Max, {x, context.input(1)}, {}, {}, "min"));
    }
    if (high.isDynamic) {
        if (low.value) {
            TRY(x, context.make(OperatorKind::Clip, {x}, std::move(attributes), {}, "min"));
        }
        return context.finish(OperatorKind::Min, {x, context.input(2)});
    }
    if (high.value)
        attributes.set("max", numberAttribute(*high.value));
    if (!low.value && !high.value)
        return context.bind(0, x);
    return context.finish(OperatorKind::Clip, {x}, std::move(attributes));
}

Result<void> importMod(Context &context)
{
    TRY(const std::int64_t fmod, context.integer("fmod", 0));
    return context.finish(OperatorKind::Mod, {context.input(0), context.input(1)},
        fmod != 0 ? attributesFrom({{"fmod", std::int64_t{1}}}) : Attributes{});
}

Result<void> importBitShift(Context &context)
{
    TRY(const std::string direction, context.text("direction", ""));
    if (direction.empty())
        return context.invalid("attribute 'direction' is missing");
    return context.finish(OperatorKind::BitShift, {context.input(0), context.input(1)},
        attributesFrom({{"direction", direction}}));
}

Result<void> importBitwiseNot(Context &context)
{
    return context.finish(emitBitwiseNot(context, context.input(0)));
}

/// x + bias below -lambd, x - bias above lambd, 0 between.
Result<void> importShrink(Context &context)
{
    using enum OperatorKind;
    TRY_VOID(context.require(1));
    TRY(const double bias, context.real("bias", 0.0));
    TRY(const double limit, context.real("lambd", 0.5));
    const DataType type = context.type(0).dataType;
    const TensorId x = context.input(0);
    TRY(const TensorId isLow, context.make(Less, {x, context.scalar(type, -limit)}, {}, {}, "is_low"));
    TRY(const TensorId isHigh, context.make(Greater, {x, context.scalar(type, limit)}, {}, {}, "is_high"));
    TRY(const TensorId low, context.make(Add, {x, context.scalar(type, bias)}, {}, {}, "low"));
    TRY(const TensorId high, context.make(Sub, {x, context.scalar(type, bias)}, {}, {}, "high"));
    TRY(const TensorId rest, context.make(Where, {isHigh, high, context.scalar(type, 0)}, {}, {}, "rest"));
    return context.finish(Where, {isLow, low, rest});
}

/// True if all elements of a value are known, and whole numbers.
bool isKnownWhole(Context &context, TensorId id)
{
    const auto data = context.graph().valuesOf(id);
    if (!data)
        return false;
    const auto values = realsOf(*data);
    return std::all_of(values.begin(), values.end(), [](double value) { return std::trunc(value) == value; });
}

/// The result has the base's type; the exponent may have another one since operator set 12. Where integers
/// have fractions as exponents, the powers are computed as fractions, and cut.
Result<void> importPow(Context &context)
{
    const DataType own = context.type(0).dataType;
    const DataType given = context.type(1).dataType;
    TensorId base = context.input(0);
    TensorId exponent = context.input(1);
    const bool widens = !isFloating(own) && isFloating(given) && !isKnownWhole(context, exponent);
    const DataType type = widens ? DataType::Float64 : own;
    if (own != type) {
        TRY(base, context.make(OperatorKind::Cast, {base}, {}, TensorType{type, context.shape(0)}, "base"));
    }
    if (given != type) {
        TRY(exponent,
            context.make(OperatorKind::Cast, {exponent}, {}, TensorType{type, context.shape(1)}, "exponent"));
    }
    if (!widens)
        return context.finish(OperatorKind::Pow, {base, exponent});
    TRY(const TensorId power, context.make(OperatorKind::Pow, {base, exponent}, {}, {}, "power"));
    const Shape shape = context.graph().typeOf(power).shape;
    return context.finish(OperatorKind::Cast, {power}, {}, TensorType{own, shape});
}

/// Any number of inputs becomes a chain of binary operators, from the left.
Result<void> chain(Context &context, OperatorKind kind, bool mean)
{
    TRY_VOID(context.require(std::max<std::size_t>(1, context.inputCount())));
    const auto &inputs = context.inputs();
    TensorId sum = inputs.front();
    for (std::size_t i = 1; i < inputs.size(); ++i) {
        const bool last = i + 1 == inputs.size() && !mean;
        TRY(sum, context.make(kind, {sum, inputs[i]}, {}, {}, last ? "" : std::to_string(i)));
    }
    if (mean && inputs.size() > 1) {
        const TensorId count = context.scalar(context.type(0).dataType, static_cast<double>(inputs.size()));
        return context.finish(OperatorKind::Div, {sum, count});
    }
    return context.bind(0, sum);
}

Result<void> importDropout(Context &context)
{
    bool training = false;
    double ratio = 0.5;
    if (context.opset() >= 12) {
        if (context.has(1)) {
            TRY(const auto given, context.constantReals(1, "ratio"));
            if (given.size() != 1)
                return context.invalid(
                    "its ratio has " + std::to_string(given.size()) + " elements, where one was expected");
            ratio = given.front();
        }
        if (context.has(2)) {
            TRY(const auto mode, context.values(2, "training_mode"));
            if (elementCount(mode->type.shape) != 1)
                return context.invalid("its training_mode is not a single value");
            training = integersOf(*mode).front() != 0;
        }
    } else {
        TRY(ratio, context.real("ratio", 0.5));
        context.graph().note(
            "Dropout nodes are left out: before operator set 12 they do not say whether they train");
    }
    const TensorId x = context.input(0);
    TRY(const TensorId y, emitDropout(context, x, ratio, training));
    if (context.wants(1)) {
        if (y != x)
            return context.unsupported("the mask it returns is used, which Planloom does not make");
        TRY(const TensorId mask,
            context.make(OperatorKind::Fill, {}, attributesFrom({{"value", 1.0}}),
                TensorType{DataType::Bool, context.shape(0)}, "mask"));
        TRY_VOID(context.bind(1, mask));
    }
    return context.bind(0, y);
}

} // namespace

const OnnxHandlers &onnxElementwiseHandlers()
{
    using enum OperatorKind;
    static const OnnxHandlers kHandlers = {{"Abs", plain<Abs, 1>}, {"Acos", plain<Acos, 1>},
        {"Acosh", plain<Acosh, 1>}, {"Asin", plain<Asin, 1>}, {"Asinh", plain<Asinh, 1>},
        {"Atan", plain<Atan, 1>}, {"Atanh", plain<Atanh, 1>}, {"Ceil", plain<Ceil, 1>},
        {"Cos", plain<Cos, 1>}, {"Cosh", plain<Cosh, 1>}, {"Erf", plain<Erf, 1>}, {"Exp", plain<Exp, 1>},
        {"Floor", plain<Floor, 1>}, {"IsNaN", plain<IsNaN, 1>}, {"Log", plain<Log, 1>},
        {"Neg", plain<Neg, 1>}, {"Not", plain<Not, 1>}, {"Reciprocal", plain<Reciprocal, 1>},
        {"Relu", plain<Relu, 1>}, {"Round", plain<Round, 1>}, {"Sigmoid", plain<Sigmoid, 1>},
        {"Sign", plain<Sign, 1>}, {"Sin", plain<Sin, 1>}, {"Sinh", plain<Sinh, 1>},
        {"Softplus", plain<Softplus, 1>}, {"Softsign", plain<Softsign, 1>}, {"Sqrt", plain<Sqrt, 1>},
        {"Tan", plain<Tan, 1>}, {"Tanh", plain<Tanh, 1>}, {"Mish", plain<Mish, 1>},
        {"HardSwish", plain<HardSwish, 1>}, {"Add", plain<Add, 2>}, {"Sub", plain<Sub, 2>},
        {"Mul", plain<Mul, 2>}, {"Div", plain<Div, 2>}, {"And", plain<And, 2>}, {"Or", plain<Or, 2>},
        {"Xor", plain<Xor, 2>}, {"Equal", plain<Equal, 2>}, {"Greater", plain<Greater, 2>},
        {"GreaterOrEqual", plain<GreaterOrEqual, 2>}, {"Less", plain<Less, 2>},
        {"LessOrEqual", plain<LessOrEqual, 2>}, {"PRelu", plain<PRelu, 2>}, {"Where", plain<Where, 3>},
        {"Identity", needs<1, importIdentity>}, {"IsInf", importIsInf},
        {"Elu", [](Context &context) { return withAlpha(context, OperatorKind::Elu, 1.0); }},
        {"Celu", [](Context &context) { return withAlpha(context, OperatorKind::Celu, 1.0); }},
        {"LeakyRelu", [](Context &context) { return withAlpha(context, OperatorKind::LeakyRelu, 0.01); }},
        {"ThresholdedRelu",
            [](Context &context) { return withAlpha(context, OperatorKind::ThresholdedRelu, 1.0); }},
        {"Selu", needs<1, importSelu>}, {"HardSigmoid", needs<1, importHardSigmoid>},
        {"Gelu", needs<1, importGelu>}, {"Swish", needs<1, importSwish>}, {"Cast", needs<1, importCast>},
        {"CastLike", needs<2, importCastLike>}, {"Clip", needs<1, importClip>}, {"Mod", needs<2, importMod>},
        {"BitShift", needs<2, importBitShift>}, {"BitwiseAnd", plain<BitwiseAnd, 2>},
        {"BitwiseOr", plain<BitwiseOr, 2>}, {"BitwiseXor", plain<BitwiseXor, 2>},
        {"BitwiseNot", needs<1, importBitwiseNot>}, {"Shrink", importShrink}, {"Pow", needs<2, importPow>},
        {"Sum", [](Context &context) { return chain(context, OperatorKind::Add, false); }},
        {"Mean", [](Context &context) { return chain(context, OperatorKind::Add, true); }},
        {"Min", [](Context &context) { return chain(context, OperatorKind::Min, false); }},
        {"Max", [](Context &context) { return chain(context, OperatorKind::Max, false); }},
        {"Dropout", needs<1, importDropout>}};
    return kHandlers;
}

} // namespace planloom
