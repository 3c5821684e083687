// Complex numbers as pairs of real tensors: what is linear and moves elements is done to either part,
// products and functions are written out. Gradients of the parts are then what PyTorch calls the gradient of
// the whole.
#include "engine/frontend/torch/aten/aten_parts.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace planloom {

namespace {

// --- parts -------------------------------------------------------------------------------------------------

/// The type of the parts that PyTorch's arithmetic has of these arguments.
DataType partTypeOf(AtenContext &context, std::initializer_list<std::string_view> names)
{
    bool isDouble = false;
    bool isHalf = true;
    const auto take = [&](DataType type) {
        isDouble = isDouble || type == DataType::Float64;
        isHalf = isHalf && type == DataType::Float16;
    };
    for (const std::string_view name : names) {
        const AtenValue &value = context.value(name);
        if (const auto *complex = std::get_if<AtenComplex>(&value))
            take(context.typeOf(complex->real).dataType);
        else if (const auto *id = std::get_if<TensorId>(&value);
                 id != nullptr && isFloating(context.typeOf(*id).dataType) && !context.shapeOf(*id).empty())
            take(context.typeOf(*id).dataType);
    }
    return isDouble ? DataType::Float64 : isHalf ? DataType::Float16 : DataType::Float32;
}

/// An argument as complex numbers with parts of `type`; a real one has no imaginary part.
Result<AtenComplex> operandOf(AtenContext &context, std::string_view name, DataType type)
{
    const AtenValue &value = context.value(name);
    if (const auto *number = std::get_if<std::complex<double>>(&value)) {
        AtenComplex made{context.scalar(type, number->real()), {}};
        if (number->imag() != 0)
            made.imaginary = context.scalar(type, number->imag());
        return made;
    }
    if (const auto *complex = std::get_if<AtenComplex>(&value)) {
        TRY(const TensorId real, context.cast(complex->real, type, "real"));
        TRY(const TensorId imaginary, context.cast(complex->imaginary, type, "imaginary"));
        return AtenComplex{real, imaginary};
    }
    TRY(const TensorId plain, context.operand(name, type));
    TRY(const TensorId real, context.cast(plain, type, name));
    return AtenComplex{real, {}};
}

Result<AtenComplex> complexOperand(AtenContext &context, std::string_view name = "self")
{
    return operandOf(context, name, partTypeOf(context, {name}));
}

Result<TensorId> pairwise(
    AtenContext &context, OperatorKind kind, TensorId a, TensorId b, std::string_view suffix)
{
    return context.make(kind, {a, b}, {}, {}, suffix);
}

/// a + b or a - b, where an invalid one is 0; invalid if both are.
Result<TensorId> joined(
    AtenContext &context, OperatorKind kind, TensorId a, TensorId b, std::string_view suffix)
{
    if (!b)
        return a;
    if (a)
        return pairwise(context, kind, a, b, suffix);
    return kind == OperatorKind::Sub ? context.make(OperatorKind::Neg, {b}, {}, {}, suffix)
                                     : Result<TensorId>(b);
}

/// Gives result 0 complex numbers whose parts may still have to be broadcast, or to be made.
Result<void> finishComplex(AtenContext &context, AtenComplex value)
{
    if (!value.imaginary) {
        TRY(value.imaginary, context.filled(context.typeOf(value.real), AtenValue(0.0), "zero"));
    }
    const Shape shape = context.broadcastShape({value.real, value.imaginary});
    TRY(value.real, context.expand(value.real, shape, "real_whole"));
    TRY(value.imaginary, context.expand(value.imaginary, shape, "imaginary_whole"));
    return context.bindComplex(0, value);
}

// --- making and taking apart -------------------------------------------------------------------------------

/// Two planes of the last dimension, which has an extent of 2.
Result<AtenComplex> fromPairs(AtenContext &context, TensorId x)
{
    const Shape shape = context.shapeOf(x);
    if (shape.empty() || shape.back() != 2)
        return context.invalid("its pairs have the shape " + toString(shape));
    const std::int64_t axis = context.rankOf(x) - 1;
    AtenComplex made;
    TRY(made.real, context.part("real", emitGather, x, context.integerScalar(0), axis));
    TRY(made.imaginary, context.part("imaginary", emitGather, x, context.integerScalar(1), axis));
    return made;
}

Result<void> viewAsComplex(AtenContext &context)
{
    TRY(const TensorId x, context.tensor("self"));
    TRY(const AtenComplex made, fromPairs(context, x));
    return context.bindComplex(0, made);
}

Result<void> viewAsReal(AtenContext &context)
{
    TRY(const AtenComplex z, complexOperand(context));
    TRY(const TensorId pairs,
        context.other("stack",
            {{"tensors", std::vector<TensorId>{z.real, z.imaginary}}, {"dim", std::int64_t{-1}}}, "pairs"));
    return context.bind(0, pairs);
}

Result<void> complexOf(AtenContext &context)
{
    TRY(const TensorId real, context.tensor("real"));
    TRY(const TensorId imaginary, context.tensor("imag"));
    return finishComplex(context, {real, imaginary});
}

/// r (cos a + i sin a)
Result<AtenComplex> fromPolar(AtenContext &context, TensorId radius, TensorId angle)
{
    TRY(const TensorId cosine, context.make(OperatorKind::Cos, {angle}, {}, {}, "cos"));
    TRY(const TensorId sine, context.make(OperatorKind::Sin, {angle}, {}, {}, "sin"));
    AtenComplex made;
    TRY(made.real, pairwise(context, OperatorKind::Mul, radius, cosine, "real"));
    TRY(made.imaginary, pairwise(context, OperatorKind::Mul, radius, sine, "imaginary"));
    return made;
}

Result<void> complexOfPolar(AtenContext &context)
{
    TRY(const TensorId radius, context.tensor("abs"));
    TRY(const TensorId angle, context.tensor("angle"));
    TRY(const AtenComplex made, fromPolar(context, radius, angle));
    return finishComplex(context, made);
}

template<ComplexPart part> Result<void> takePart(AtenContext &context)
{
    TRY(const AtenComplex z, complexOperand(context));
    return context.bind(0, part == ComplexPart::Real ? z.real : z.imaginary);
}

Result<void> complexConjugate(AtenContext &context)
{
    TRY(AtenComplex z, complexOperand(context));
    TRY(z.imaginary, context.make(OperatorKind::Neg, {z.imaginary}, {}, {}, "imaginary"));
    return context.bindComplex(0, z);
}

Result<void> unchangedComplex(AtenContext &context)
{
    TRY(const AtenComplex z, complexOperand(context));
    return context.bindComplex(0, z);
}

/// To another type: of real numbers the imaginary part is 0; where real numbers are asked for it is left out.
Result<void> complexConverted(AtenContext &context)
{
    const auto *wanted = std::get_if<Pt2DataType>(&context.value("dtype"));
    const auto *like = std::get_if<AtenComplex>(&context.value("other"));
    const bool toReal =
        (wanted != nullptr && !wanted->partType) || std::holds_alternative<TensorId>(context.value("other"));
    const DataType type = wanted != nullptr && wanted->partType ? *wanted->partType
        : like != nullptr                                       ? context.typeOf(like->real).dataType
                                                                : partTypeOf(context, {"self"});
    TRY(const AtenComplex z, operandOf(context, "self", type));
    if (!toReal)
        return finishComplex(context, z);
    DataType real = wanted != nullptr ? wanted->type.value_or(type) : type;
    if (const auto *other = std::get_if<TensorId>(&context.value("other")))
        real = context.typeOf(*other).dataType;
    TRY(const TensorId y, context.cast(z.real, real));
    return context.bind(0, y);
}

Result<void> complexOnes(AtenContext &context)
{
    TRY(const auto real, ofPart(context, context.name(), ComplexPart::Real));
    const auto *id = std::get_if<TensorId>(&real.front());
    return id == nullptr ? Result<void>(context.unsupported("it makes no tensor"))
                         : finishComplex(context, {*id, {}});
}

// --- arithmetic --------------------------------------------------------------------------------------------

/// self + alpha other, self - alpha other; reversed: other - alpha self.
template<OperatorKind kind, bool reversed = false> Result<void> complexSum(AtenContext &context)
{
    const DataType type = partTypeOf(context, {"self", "other"});
    TRY(AtenComplex a, operandOf(context, "self", type));
    TRY(AtenComplex b, operandOf(context, "other", type));
    if (reversed)
        std::swap(a, b);
    TRY(const double alpha, context.real("alpha", 1));
    for (TensorId *part : {&b.real, &b.imaginary}) {
        if (alpha != 1 && *part) {
            TRY(*part, pairwise(context, OperatorKind::Mul, *part, context.scalar(type, alpha), "alpha"));
        }
    }
    AtenComplex made;
    TRY(made.real, joined(context, kind, a.real, b.real, "real"));
    TRY(made.imaginary, joined(context, kind, a.imaginary, b.imaginary, "imaginary"));
    return finishComplex(context, made);
}

/// A product that is linear in both factors, made of real ones.
template<typename Product>
Result<AtenComplex> productOf(
    AtenContext &context, const AtenComplex &a, const AtenComplex &b, Product product)
{
    const auto of = [&](TensorId x, TensorId y, std::string_view suffix) -> Result<TensorId> {
        return x && y ? product(x, y, suffix) : Result<TensorId>(TensorId{});
    };
    TRY(const TensorId both, of(a.real, b.real, "real_real"));
    TRY(const TensorId neither, of(a.imaginary, b.imaginary, "imaginary_imaginary"));
    TRY(const TensorId second, of(a.real, b.imaginary, "real_imaginary"));
    TRY(const TensorId first, of(a.imaginary, b.real, "imaginary_real"));
    AtenComplex made;
    TRY(made.real, joined(context, OperatorKind::Sub, both, neither, "real"));
    TRY(made.imaginary, joined(context, OperatorKind::Add, second, first, "imaginary"));
    return made;
}

Result<AtenComplex> times(AtenContext &context, const AtenComplex &a, const AtenComplex &b)
{
    return productOf(context, a, b, [&](TensorId x, TensorId y, std::string_view suffix) {
        return pairwise(context, OperatorKind::Mul, x, y, suffix);
    });
}

Result<void> complexProduct(AtenContext &context)
{
    const DataType type = partTypeOf(context, {"self", "other"});
    TRY(const AtenComplex a, operandOf(context, "self", type));
    TRY(const AtenComplex b, operandOf(context, "other", type));
    TRY(const AtenComplex made, times(context, a, b));
    return finishComplex(context, made);
}

/// re^2 + im^2
Result<TensorId> squareOf(AtenContext &context, const AtenComplex &z)
{
    TRY(const TensorId real, pairwise(context, OperatorKind::Mul, z.real, z.real, "real_square"));
    TRY(const TensorId imaginary,
        pairwise(context, OperatorKind::Mul, z.imaginary, z.imaginary, "imaginary_square"));
    return pairwise(context, OperatorKind::Add, real, imaginary, "square");
}

/// a / b = a conj(b) / |b|^2
Result<AtenComplex> quotientOf(AtenContext &context, const AtenComplex &a, AtenComplex b)
{
    AtenComplex made = a;
    TensorId divisor = b.real;
    if (b.imaginary) {
        TRY(divisor, squareOf(context, b));
        TRY(b.imaginary, context.make(OperatorKind::Neg, {b.imaginary}, {}, {}, "conjugate"));
        TRY(made, times(context, a, b));
    }
    for (TensorId *part : {&made.real, &made.imaginary}) {
        if (*part) {
            TRY(*part, pairwise(context, OperatorKind::Div, *part, divisor, "quotient"));
        }
    }
    return made;
}

Result<void> complexQuotient(AtenContext &context)
{
    const DataType type = partTypeOf(context, {"self", "other"});
    TRY(const AtenComplex a, operandOf(context, "self", type));
    TRY(const AtenComplex b, operandOf(context, "other", type));
    TRY(const AtenComplex made, quotientOf(context, a, b));
    return finishComplex(context, made);
}

/// The length of each number, and the same with 1 in the place of 0: roots have no slope at 0, where PyTorch
/// takes 0 for it.
struct Lengths {
    TensorId plain{};
    TensorId divisor{};
};
Result<Lengths> lengthsOf(AtenContext &context, const AtenComplex &z)
{
    const DataType type = context.typeOf(z.real).dataType;
    TRY(const TensorId square, squareOf(context, z));
    TRY(const TensorId isZero,
        pairwise(context, OperatorKind::Equal, square, context.scalar(type, 0), "is_zero"));
    TRY(const TensorId safe,
        context.make(OperatorKind::Where, {isZero, context.scalar(type, 1), square}, {}, {}, "safe"));
    Lengths lengths;
    TRY(lengths.divisor, context.make(OperatorKind::Sqrt, {safe}, {}, {}, "root"));
    TRY(lengths.plain,
        context.make(OperatorKind::Where, {isZero, context.scalar(type, 0), lengths.divisor}, {}, {}, "abs"));
    return lengths;
}

Result<void> complexAbsolute(AtenContext &context)
{
    TRY(const AtenComplex z, complexOperand(context));
    TRY(const Lengths lengths, lengthsOf(context, z));
    return context.bind(0, lengths.plain);
}

Result<void> complexSign(AtenContext &context)
{
    TRY(const AtenComplex z, complexOperand(context));
    TRY(const Lengths lengths, lengthsOf(context, z));
    TRY(const AtenComplex made, quotientOf(context, z, {lengths.divisor, {}}));
    return context.bindComplex(0, made);
}

Result<TensorId> angleOf(AtenContext &context, const AtenComplex &z)
{
    return context.other("atan2", {{"self", z.imaginary}, {"other", z.real}}, "angle");
}

Result<void> complexAngle(AtenContext &context)
{
    TRY(const AtenComplex z, complexOperand(context));
    TRY(const TensorId y, angleOf(context, z));
    return context.bind(0, y);
}

Result<AtenComplex> exponentialOf(AtenContext &context, const AtenComplex &z)
{
    TRY(const TensorId radius, context.make(OperatorKind::Exp, {z.real}, {}, {}, "radius"));
    return fromPolar(context, radius, z.imaginary);
}

Result<void> complexExponential(AtenContext &context)
{
    TRY(const AtenComplex z, complexOperand(context));
    TRY(const AtenComplex made, exponentialOf(context, z));
    return context.bindComplex(0, made);
}

Result<AtenComplex> logarithmOf(AtenContext &context, const AtenComplex &z)
{
    TRY(const TensorId square, squareOf(context, z));
    TRY(const TensorId logarithm, context.make(OperatorKind::Log, {square}, {}, {}, "logarithm"));
    const DataType type = context.typeOf(z.real).dataType;
    AtenComplex made;
    TRY(made.real, pairwise(context, OperatorKind::Mul, logarithm, context.scalar(type, 0.5), "log_real"));
    TRY(made.imaginary, angleOf(context, z));
    return made;
}

Result<void> complexLogarithm(AtenContext &context)
{
    TRY(const AtenComplex z, complexOperand(context));
    TRY(const AtenComplex made, logarithmOf(context, z));
    return context.bindComplex(0, made);
}

/// Small whole exponents are products; others go through the logarithm.
Result<AtenComplex> powerOf(AtenContext &context, const AtenComplex &z, double exponent)
{
    constexpr double kMostFactors = 16;
    const DataType type = context.typeOf(z.real).dataType;
    if (exponent == std::floor(exponent) && std::abs(exponent) <= kMostFactors) {
        AtenComplex made{context.scalar(type, 1), {}};
        for (double i = 0; i < std::abs(exponent); ++i) {
            TRY(made, i == 0 ? Result<AtenComplex>(z) : times(context, made, z));
        }
        return exponent >= 0 ? Result<AtenComplex>(made)
                             : quotientOf(context, {context.scalar(type, 1), {}}, made);
    }
    TRY(AtenComplex logarithm, logarithmOf(context, z));
    TRY(logarithm, times(context, logarithm, {context.scalar(type, exponent), {}}));
    return exponentialOf(context, logarithm);
}

Result<void> complexPower(AtenContext &context)
{
    if (!std::holds_alternative<AtenComplex>(context.value("self")))
        return context.unsupported(
            "complex exponents are not computed", "write it as exp(exponent * log(base))");
    TRY(const AtenComplex z, complexOperand(context));
    const bool isNumber = std::holds_alternative<double>(context.value("exponent"))
        || std::holds_alternative<std::int64_t>(context.value("exponent"));
    if (!isNumber)
        return context.unsupported("exponents of complex numbers are computed if they are numbers",
            "write it as exp(exponent * log(base))");
    TRY(const double exponent, context.real("exponent", 1));
    TRY(const AtenComplex made, powerOf(context, z, exponent));
    return finishComplex(context, made);
}

template<int exponent, int divisor> Result<void> complexFixedPower(AtenContext &context)
{
    TRY(const AtenComplex z, complexOperand(context));
    TRY(const AtenComplex made, powerOf(context, z, static_cast<double>(exponent) / divisor));
    return finishComplex(context, made);
}

template<bool negated> Result<void> complexEquality(AtenContext &context)
{
    const DataType type = partTypeOf(context, {"self", "other"});
    TRY(const AtenComplex a, operandOf(context, "self", type));
    TRY(const AtenComplex b, operandOf(context, "other", type));
    const TensorId zero = context.scalar(type, 0);
    TRY(const TensorId real, pairwise(context, OperatorKind::Equal, a.real, b.real, "real"));
    TRY(const TensorId imaginary,
        pairwise(context, OperatorKind::Equal, a.imaginary ? a.imaginary : zero,
            b.imaginary ? b.imaginary : zero, "imaginary"));
    if (!negated)
        return context.finish(OperatorKind::And, {real, imaginary});
    TRY(const TensorId equal, pairwise(context, OperatorKind::And, real, imaginary, "equal"));
    return context.finish(OperatorKind::Not, {equal});
}

// --- products ----------------------------------------------------------------------------------------------

/// An operator of two tensors that is linear in both, by the names of its arguments.
Result<void> complexBilinear(AtenContext &context, const char *first, const char *second)
{
    const DataType type = partTypeOf(context, {first, second});
    TRY(const AtenComplex a, operandOf(context, first, type));
    TRY(const AtenComplex b, operandOf(context, second, type));
    const std::string name = context.name();
    TRY(const AtenComplex made,
        productOf(context, a, b, [&](TensorId x, TensorId y, std::string_view suffix) {
            AtenArguments arguments = context.arguments();
            arguments[first] = x;
            arguments[second] = y;
            return context.other(name, std::move(arguments), suffix);
        }));
    return finishComplex(context, made);
}
Result<void> complexMatrixProduct(AtenContext &context)
{
    return complexBilinear(context, "self",
        context.given("mat2")       ? "mat2"
            : context.given("vec")  ? "vec"
            : context.given("vec2") ? "vec2"
                                    : "other");
}

/// Of one or two factors.
Result<void> complexEinsum(AtenContext &context)
{
    const auto *factors = std::get_if<std::vector<AtenComplex>>(&context.value("tensors"));
    if (factors == nullptr || factors->empty() || factors->size() > 2)
        return context.unsupported("complex products of more than two factors are not computed",
            "multiply two at a time: torch.einsum of two operands, then the next");
    if (factors->size() == 1)
        return partByPart(context);
    TRY(const AtenComplex made,
        productOf(
            context, (*factors)[0], (*factors)[1], [&](TensorId x, TensorId y, std::string_view suffix) {
                AtenArguments arguments = context.arguments();
                arguments["tensors"] = std::vector<TensorId>{x, y};
                return context.other("einsum", std::move(arguments), suffix);
            }));
    return finishComplex(context, made);
}

/// x w^T + b
Result<void> complexLinear(AtenContext &context)
{
    const DataType type = partTypeOf(context, {"input", "weight"});
    TRY(const AtenComplex x, operandOf(context, "input", type));
    TRY(const AtenComplex w, operandOf(context, "weight", type));
    TRY(AtenComplex made, productOf(context, x, w, [&](TensorId a, TensorId b, std::string_view suffix) {
        return context.other("linear", {{"input", a}, {"weight", b}}, suffix);
    }));
    if (context.given("bias")) {
        TRY(const AtenComplex bias, operandOf(context, "bias", type));
        TRY(made.real, joined(context, OperatorKind::Add, made.real, bias.real, "biased_real"));
        TRY(made.imaginary,
            joined(context, OperatorKind::Add, made.imaginary, bias.imaginary, "biased_imaginary"));
    }
    return finishComplex(context, made);
}

} // namespace

const AtenHandlers &atenMakingComplexHandlers()
{
    static const AtenHandlers kHandlers = {{"view_as_complex", viewAsComplex},
        {"view_as_complex_copy", viewAsComplex}, {"complex", complexOf}, {"polar", complexOfPolar}};
    return kHandlers;
}

AtenHandler findAtenComplex(std::string_view name)
{
    using enum OperatorKind;
    static const AtenHandlers kHandlers = {{"view_as_real", viewAsReal}, {"view_as_real_copy", viewAsReal},
        {"real", takePart<ComplexPart::Real>}, {"imag", takePart<ComplexPart::Imaginary>},
        {"conj", complexConjugate}, {"_conj", complexConjugate}, {"conj_physical", complexConjugate},
        {"_conj_physical", complexConjugate}, {"_conj_copy", complexConjugate},
        {"resolve_conj", unchangedComplex}, {"resolve_neg", unchangedComplex}, {"to", complexConverted},
        {"_to_copy", complexConverted}, {"type_as", complexConverted}, {"ones", complexOnes},
        {"ones_like", complexOnes}, {"new_ones", complexOnes}, {"add", complexSum<Add>},
        {"sub", complexSum<Sub>}, {"subtract", complexSum<Sub>}, {"rsub", complexSum<Sub, true>},
        {"mul", complexProduct}, {"multiply", complexProduct}, {"div", complexQuotient},
        {"divide", complexQuotient}, {"true_divide", complexQuotient},
        {"reciprocal", complexFixedPower<-1, 1>}, {"abs", complexAbsolute}, {"absolute", complexAbsolute},
        {"sgn", complexSign}, {"angle", complexAngle}, {"exp", complexExponential}, {"log", complexLogarithm},
        {"pow", complexPower}, {"square", complexFixedPower<2, 1>}, {"sqrt", complexFixedPower<1, 2>},
        {"rsqrt", complexFixedPower<-1, 2>}, {"eq", complexEquality<false>}, {"ne", complexEquality<true>},
        {"matmul", complexMatrixProduct}, {"mm", complexMatrixProduct}, {"bmm", complexMatrixProduct},
        {"mv", complexMatrixProduct}, {"outer", complexMatrixProduct},
        {"dot",
            [](AtenContext &context) {
                return complexBilinear(context, "self", context.given("tensor") ? "tensor" : "vec2");
            }},
        {"einsum", complexEinsum}, {"linear", complexLinear}};
    if (const AtenHandler handler = findIn(kHandlers, name))
        return handler;
    return isAtenByPart(name) ? partByPart : findIn(atenFourierHandlers(), name);
}

} // namespace planloom
