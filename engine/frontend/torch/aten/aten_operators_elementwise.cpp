#include "engine/frontend/torch/aten/aten_formula.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace planloom {

namespace {

/// A function of one tensor; of integers it makes floating numbers.
template<OperatorKind kind> Result<void> floatFunction(AtenContext &context)
{
    TRY(TensorId x, context.tensor("self"));
    TRY(x, context.cast(x, floatingTypeOf(context.typeOf(x).dataType)));
    return context.finish(kind, {x});
}

/// A function of one tensor that keeps its type.
template<OperatorKind kind> Result<void> sameFunction(AtenContext &context)
{
    TRY(const TensorId x, context.tensor("self"));
    return context.finish(kind, {x});
}

/// Rounding and signs: integers and truth values are what they are.
template<OperatorKind kind> Result<void> roundingFunction(AtenContext &context)
{
    TRY(const TensorId x, context.tensor("self"));
    const bool isSign = kind == OperatorKind::Sign && context.typeOf(x).dataType != DataType::Bool;
    if (!isFloating(context.typeOf(x).dataType) && !isSign)
        return context.bind(0, x);
    TRY(const std::int64_t decimals, context.integer("decimals", 0));
    if (decimals == 0)
        return context.finish(kind, {x});
    const TensorId power = context.scalar(context.typeOf(x).dataType, std::pow(10.0, decimals));
    TRY(const TensorId scaled, context.make(OperatorKind::Mul, {x, power}, {}, {}, "scaled"));
    TRY(const TensorId rounded, context.make(kind, {scaled}, {}, {}, "rounded"));
    return context.finish(OperatorKind::Div, {rounded, power});
}

Result<void> unchanged(AtenContext &context)
{
    TRY(const TensorId x, context.tensor(context.given("self") ? "self" : "input"));
    return context.bind(0, x);
}

/// No gradient flows through: its value alone counts.
Result<void> detached(AtenContext &context)
{
    TRY(const TensorId x, context.tensor("self"));
    if (!isFloating(context.typeOf(x).dataType))
        return context.bind(0, x);
    return context.finish(OperatorKind::Identity, {x}, attributesFrom({{"detached", std::int64_t{1}}}));
}

// --- arithmetic of two operands ----------------------------------------------------------------------------

Result<void> binary(AtenContext &context, OperatorKind kind)
{
    TRY(const DataType type, context.promotedType({"self", "other"}));
    TRY(auto operands, context.operands({"self", "other"}, type));
    return context.finish(kind, std::move(operands));
}

template<OperatorKind kind> Result<void> arithmetic(AtenContext &context)
{
    return binary(context, kind);
}

/// self + alpha other, self - alpha other, and rsub: other - alpha self.
Result<void> sumOrDifference(AtenContext &context, OperatorKind kind, bool reversed)
{
    TRY(const DataType promoted, context.promotedType({"self", "other"}));
    TRY(auto operands, context.operands({"self", "other"}, promoted));
    if (reversed)
        std::swap(operands[0], operands[1]);
    TRY(const double alpha, context.real("alpha", 1));
    if (alpha != 1) {
        TRY(operands[1],
            context.make(OperatorKind::Mul, {operands[1], context.scalar(promoted, alpha)}, {}, {}, "alpha"));
    }
    if (promoted == DataType::Bool && kind == OperatorKind::Add)
        return context.finish(OperatorKind::Or, std::move(operands));
    return context.finish(kind, std::move(operands));
}
Result<void> atenSub(AtenContext &context)
{
    return sumOrDifference(context, OperatorKind::Sub, false);
}

Result<void> atenMul(AtenContext &context)
{
    TRY(const DataType type, context.promotedType({"self", "other"}));
    return binary(context, type == DataType::Bool ? OperatorKind::And : OperatorKind::Mul);
}

/// The quotient rounded down; of integers this is exact.
Result<void> floorQuotient(AtenContext &context, DataType type)
{
    TRY(auto operands, context.operands({"self", "other"}, type));
    if (isFloating(type)) {
        TRY(const TensorId quotient, context.make(OperatorKind::Div, operands, {}, {}, "quotient"));
        return context.finish(OperatorKind::Floor, {quotient});
    }
    // ONNX's Div rounds towards zero: take away what is over first.
    TRY(const TensorId rest, context.make(OperatorKind::Mod, operands, {}, {}, "rest"));
    TRY(const TensorId whole, context.make(OperatorKind::Sub, {operands[0], rest}, {}, {}, "whole"));
    return context.finish(OperatorKind::Div, {whole, operands[1]});
}

Result<void> atenDiv(AtenContext &context)
{
    TRY(const DataType promoted, context.promotedType({"self", "other"}));
    TRY(const std::string rounding, context.text("rounding_mode", ""));
    if (rounding == "floor")
        return floorQuotient(context, promoted);
    if (rounding == "trunc" && !isFloating(promoted)) {
        TRY(auto operands, context.operands({"self", "other"}, promoted));
        return context.finish(OperatorKind::Div, std::move(operands));
    }
    TRY(auto operands, context.operands({"self", "other"}, floatingTypeOf(promoted)));
    if (rounding != "trunc")
        return context.finish(OperatorKind::Div, std::move(operands));
    return context.keepUnknown("division that rounds towards zero is not computed for floating numbers");
}

Result<void> atenFloorDivide(AtenContext &context)
{
    TRY(const DataType promoted, context.promotedType({"self", "other"}));
    return floorQuotient(context, promoted);
}

Result<void> remainderOf(AtenContext &context, bool signOfDividend)
{
    TRY(const DataType type, context.promotedType({"self", "other"}));
    TRY(auto operands, context.operands({"self", "other"}, type));
    if (signOfDividend)
        return context.finish(
            OperatorKind::Mod, std::move(operands), attributesFrom({{"fmod", std::int64_t{1}}}));
    if (!isFloating(type))
        return context.finish(OperatorKind::Mod, std::move(operands));
    // a - b floor(a / b)
    TRY(const TensorId quotient, context.make(OperatorKind::Div, operands, {}, {}, "quotient"));
    TRY(const TensorId whole, context.make(OperatorKind::Floor, {quotient}, {}, {}, "floor"));
    TRY(const TensorId taken, context.make(OperatorKind::Mul, {whole, operands[1]}, {}, {}, "taken"));
    return context.finish(OperatorKind::Sub, {operands[0], taken});
}

Result<void> atenPow(AtenContext &context)
{
    TRY(const DataType type, context.promotedType({"self", "exponent"}));
    TRY(auto operands, context.operands({"self", "exponent"}, type));
    if (const auto *exponent = std::get_if<std::int64_t>(&context.value("exponent"));
        exponent && *exponent == 1)
        return context.bind(0, operands[0]);
    return context.finish(OperatorKind::Pow, std::move(operands));
}

Result<void> atenSquare(AtenContext &context, TensorId x)
{
    return context.finish(OperatorKind::Mul, {x, x});
}

template<OperatorKind kind, bool negated = false> Result<void> comparison(AtenContext &context)
{
    TRY(const DataType type, context.promotedType({"self", "other"}));
    TRY(auto operands, context.operands({"self", "other"}, type));
    if (!negated)
        return context.finish(kind, std::move(operands));
    TRY(const TensorId equal, context.make(kind, std::move(operands), {}, {}, "equal"));
    return context.finish(OperatorKind::Not, {equal});
}

template<OperatorKind kind> Result<void> logical(AtenContext &context)
{
    TRY(auto operands, context.operands({"self", "other"}, DataType::Bool));
    return context.finish(kind, std::move(operands));
}

Result<void> logicalNot(AtenContext &context)
{
    TRY(TensorId x, context.tensor("self"));
    TRY(x, context.cast(x, DataType::Bool));
    return context.finish(OperatorKind::Not, {x});
}

/// Of truth values a logical operator; else the bitwise one.
Result<void> bitwiseOf(AtenContext &context, OperatorKind logical, OperatorKind bitwise)
{
    TRY(const DataType promoted, context.promotedType({"self", "other"}));
    TRY(auto operands, context.operands({"self", "other"}, promoted));
    return context.finish(promoted == DataType::Bool ? logical : bitwise, std::move(operands));
}
Result<void> bitwiseAnd(AtenContext &context)
{
    return bitwiseOf(context, OperatorKind::And, OperatorKind::BitwiseAnd);
}
Result<void> bitwiseOr(AtenContext &context)
{
    return bitwiseOf(context, OperatorKind::Or, OperatorKind::BitwiseOr);
}
Result<void> bitwiseNot(AtenContext &context, TensorId x)
{
    if (context.typeOf(x).dataType == DataType::Bool)
        return context.finish(OperatorKind::Not, {x});
    return context.finishWith(emitBitwiseNot, x);
}

Result<void> atenWhere(AtenContext &context)
{
    if (!context.given("self")) { // torch.where(condition): where it is true
        TRY(const TensorId mask, context.tensor("condition"));
        TRY(const auto lists, context.placesIn(mask));
        for (std::size_t slot = 0; slot < lists.size(); ++slot)
            TRY_VOID(context.bind(slot, lists[slot]));
        return {};
    }
    TRY(const DataType type, context.promotedType({"self", "other"}));
    TRY(const TensorId condition, context.tensor("condition"));
    TRY(const TensorId chosen, context.cast(condition, DataType::Bool, "condition"));
    TRY(const auto operands, context.operands({"self", "other"}, type));
    return context.finish(OperatorKind::Where, {chosen, operands[0], operands[1]});
}

Result<void> maskedFill(AtenContext &context, TensorId x)
{
    TRY(const TensorId mask, context.tensor("mask"));
    TRY(const auto value, context.operands({"value"}, context.typeOf(x).dataType));
    return context.finish(OperatorKind::Where, {mask, value[0], x});
}

/// self + value tensor1 tensor2, or self + value tensor1 / tensor2
template<OperatorKind kind> Result<void> addCombined(AtenContext &context)
{
    TRY(const DataType type, context.promotedType({"self", "tensor1", "tensor2"}));
    TRY(const auto operands, context.operands({"self", "tensor1", "tensor2"}, type));
    TRY(const double factor, context.real("value", 1));
    TRY(TensorId term, context.make(kind, {operands[1], operands[2]}, {}, {}, "term"));
    if (factor != 1) {
        TRY(term, context.make(OperatorKind::Mul, {term, context.scalar(type, factor)}, {}, {}, "scaled"));
    }
    return context.finish(OperatorKind::Add, {operands[0], term});
}

/// The angle of the point (other, self), in (-pi, pi]: by the smaller of its two quotients.
Result<void> arcTangentOfTwo(AtenContext &context)
{
    constexpr double kPi = 3.14159265358979323846;
    TRY(const DataType promoted, context.promotedType({"self", "other"}));
    const DataType type = floatingTypeOf(promoted);
    TRY(const auto operands, context.operands({"self", "other"}, type));
    const TensorId y = operands[0];
    const TensorId x = operands[1];
    const TensorId zero = context.scalar(type, 0);
    const auto make = [&](OperatorKind kind, std::vector<TensorId> inputs, std::string_view suffix) {
        return context.make(kind, std::move(inputs), {}, {}, suffix);
    };
    TRY(const TensorId height, make(OperatorKind::Abs, {y}, "height"));
    TRY(const TensorId width, make(OperatorKind::Abs, {x}, "width"));
    TRY(const TensorId isSteep, make(OperatorKind::Greater, {height, width}, "is_steep"));
    TRY(const TensorId dividend, make(OperatorKind::Where, {isSteep, x, y}, "dividend"));
    TRY(TensorId divisor, make(OperatorKind::Where, {isSteep, y, x}, "larger"));
    TRY(const TensorId isZero, make(OperatorKind::Equal, {divisor, zero}, "is_zero"));
    TRY(divisor, make(OperatorKind::Where, {isZero, context.scalar(type, 1), divisor}, "divisor"));
    TRY(const TensorId quotient, make(OperatorKind::Div, {dividend, divisor}, "quotient"));
    TRY(const TensorId angle, make(OperatorKind::Atan, {quotient}, "angle"));
    TRY(const TensorId isBelow, make(OperatorKind::Less, {y, zero}, "is_below"));
    const auto half = [&](double turn, std::string_view suffix) {
        return make(
            OperatorKind::Where, {isBelow, context.scalar(type, -turn), context.scalar(type, turn)}, suffix);
    };
    TRY(const TensorId quarter, half(kPi / 2, "quarter"));
    TRY(const TensorId straight, half(kPi, "straight"));
    TRY(const TensorId isLeft, make(OperatorKind::Less, {x, zero}, "is_left"));
    TRY(const TensorId behind, make(OperatorKind::Where, {isLeft, straight, zero}, "behind"));
    TRY(const TensorId steep, make(OperatorKind::Sub, {quarter, angle}, "steep"));
    TRY(const TensorId flat, make(OperatorKind::Add, {angle, behind}, "flat"));
    return context.finish(OperatorKind::Where, {isSteep, steep, flat});
}

/// self + weight (end - self)
Result<void> atenLerp(AtenContext &context)
{
    TRY(const DataType type, context.promotedType({"self", "end"}));
    TRY(const auto operands, context.operands({"self", "end", "weight"}, type));
    TRY(const TensorId way, context.make(OperatorKind::Sub, {operands[1], operands[0]}, {}, {}, "way"));
    TRY(const TensorId part, context.make(OperatorKind::Mul, {operands[2], way}, {}, {}, "part"));
    return context.finish(OperatorKind::Add, {operands[0], part});
}

// --- types and dropout -------------------------------------------------------------------------------------

Result<void> castToType(AtenContext &context, TensorId x)
{
    DataType type = context.typeOf(x).dataType;
    if (context.given("other")) {
        TRY(const TensorId other, context.tensor("other"));
        type = context.typeOf(other).dataType;
    } else {
        TRY(type, context.dataType(type));
    }
    if (type == context.typeOf(x).dataType)
        return context.bind(0, x);
    return context.finish(OperatorKind::Cast, {x}, {}, TensorType{type, context.shapeOf(x)});
}

Result<void> atenDropout(AtenContext &context)
{
    TRY(const TensorId x, context.tensor(context.given("self") ? "self" : "input")); // in place: "self"
    TRY(const double ratio, context.real("p", 0.5));
    TRY(const bool training, context.flag("train", true));
    return context.finishWith(emitDropout, x, ratio, training);
}

/// True where nothing is left out.
Result<bool> leavesNothingOut(AtenContext &context)
{
    TRY(const double ratio, context.real("p", 0.5));
    TRY(const bool training, context.flag("train", true));
    return !training || ratio == 0;
}

/// Channels are left out whole: dropout of one number for each channel of each sample.
Result<void> featureDropout(AtenContext &context)
{
    TRY(const TensorId x, context.tensor(context.given("self") ? "self" : "input"));
    TRY(const bool whole, leavesNothingOut(context));
    if (whole)
        return context.bind(0, x);
    TRY(const double ratio, context.real("p", 0.5));
    TensorType channels = context.typeOf(x);
    if (channels.shape.size() < 2)
        return context.invalid("it leaves out channels, of which " + toString(channels.shape) + " has none");
    std::fill(channels.shape.begin() + 2, channels.shape.end(), 1);
    TRY(const TensorId ones, context.filled(channels, 1.0, "ones"));
    TRY(const TensorId kept, context.part("kept", emitDropout, ones, ratio, true));
    return context.finish(OperatorKind::Mul, {x, kept});
}

Result<void> alphaDropout(AtenContext &context)
{
    TRY(const TensorId x, context.tensor(context.given("self") ? "self" : "input"));
    TRY(const bool whole, leavesNothingOut(context));
    return whole ? context.bind(0, x)
                 : context.keepUnknown("what it puts in place of what it leaves out is not drawn");
}

Result<void> nativeDropout(AtenContext &context)
{
    if (context.wants(1))
        return context.unsupported("the mask it returns is used, which Planloom does not make");
    return atenDropout(context);
}

} // namespace

const AtenHandlers &atenElementwiseHandlers()
{
    using enum OperatorKind;
    static const AtenHandlers kHandlers = {{"abs", sameFunction<Abs>}, {"absolute", sameFunction<Abs>},
        {"neg", sameFunction<Neg>}, {"relu", sameFunction<Relu>}, {"silu", sameFunction<Silu>},
        {"mish", sameFunction<Mish>}, {"hardswish", sameFunction<HardSwish>}, {"isnan", sameFunction<IsNaN>},
        {"isinf", sameFunction<IsInf>}, {"acos", floatFunction<Acos>}, {"acosh", floatFunction<Acosh>},
        {"asin", floatFunction<Asin>}, {"asinh", floatFunction<Asinh>}, {"atan", floatFunction<Atan>},
        {"atanh", floatFunction<Atanh>}, {"cos", floatFunction<Cos>}, {"cosh", floatFunction<Cosh>},
        {"erf", floatFunction<Erf>}, {"exp", floatFunction<Exp>}, {"log", floatFunction<Log>},
        {"reciprocal", floatFunction<Reciprocal>}, {"sigmoid", floatFunction<Sigmoid>},
        {"sin", floatFunction<Sin>}, {"sinh", floatFunction<Sinh>}, {"softsign", floatFunction<Softsign>},
        {"sqrt", floatFunction<Sqrt>}, {"tan", floatFunction<Tan>}, {"tanh", floatFunction<Tanh>},
        {"ceil", roundingFunction<Ceil>}, {"floor", roundingFunction<Floor>},
        {"round", roundingFunction<Round>}, {"sign", roundingFunction<Sign>}, {"sgn", roundingFunction<Sign>},
        {"alias", unchanged}, {"clone", unchanged}, {"contiguous", unchanged}, {"lift_fresh", unchanged},
        {"lift_fresh_copy", unchanged}, {"positive", unchanged}, {"real", unchanged}, {"conj", unchanged},
        {"_conj", unchanged}, {"conj_physical", unchanged}, {"resolve_conj", unchanged},
        {"resolve_neg", unchanged}, {"detach", detached}, {"detach_copy", detached},
        {"add", [](AtenContext &context) { return sumOrDifference(context, OperatorKind::Add, false); }},
        {"sub", atenSub}, {"subtract", atenSub},
        {"rsub", [](AtenContext &context) { return sumOrDifference(context, OperatorKind::Sub, true); }},
        {"mul", atenMul}, {"multiply", atenMul}, {"div", atenDiv}, {"divide", atenDiv},
        {"true_divide", atenDiv}, {"floor_divide", atenFloorDivide},
        {"remainder", [](AtenContext &context) { return remainderOf(context, false); }},
        {"fmod", [](AtenContext &context) { return remainderOf(context, true); }}, {"pow", atenPow},
        {"square", ofSelf<atenSquare>}, {"maximum", arithmetic<Max>}, {"minimum", arithmetic<Min>},
        {"eq", comparison<Equal>}, {"ne", comparison<Equal, true>}, {"not_equal", comparison<Equal, true>},
        {"gt", comparison<Greater>}, {"ge", comparison<GreaterOrEqual>}, {"lt", comparison<Less>},
        {"le", comparison<LessOrEqual>}, {"logical_and", logical<And>}, {"logical_or", logical<Or>},
        {"logical_xor", logical<Xor>}, {"logical_not", logicalNot}, {"bitwise_and", bitwiseAnd},
        {"__and__", bitwiseAnd}, {"bitwise_or", bitwiseOr}, {"__or__", bitwiseOr},
        {"bitwise_xor",
            [](AtenContext &context) {
                return bitwiseOf(context, OperatorKind::Xor, OperatorKind::BitwiseXor);
            }},
        {"bitwise_not", ofSelf<bitwiseNot>}, {"where", atenWhere}, {"masked_fill", ofSelf<maskedFill>},
        {"addcmul", addCombined<Mul>}, {"addcdiv", addCombined<Div>}, {"atan2", arcTangentOfTwo},
        {"arctan2", arcTangentOfTwo}, {"lerp", atenLerp}, {"to", ofSelf<castToType>},
        {"_to_copy", ofSelf<castToType>}, {"type_as", ofSelf<castToType>}, {"dropout", atenDropout},
        {"native_dropout", nativeDropout}, {"feature_dropout", featureDropout},
        {"alpha_dropout", alphaDropout}, {"feature_alpha_dropout", alphaDropout}};
    return kHandlers;
}

} // namespace planloom
