// Kinds that are computed element by element, with NumPy broadcasting.

#include "engine/graph/operators/kind_entry.h"

#include <algorithm>
#include <utility>

namespace planloom {

namespace {

// --- types

TypesOutcome typesOfFunction(const InferCall &call)
{
    TRY_VOID(checkFloating(call, 1));
    return one(call.type(0).dataType, call.in(0));
}

/// Of a function that is meaningful for integers as well.
TypesOutcome typesOfAnyNumber(const InferCall &call)
{
    return one(call.type(0).dataType, call.in(0));
}

TypesOutcome typesOfNot(const InferCall &call)
{
    if (call.type(0).dataType != DataType::Bool)
        return call.misfit(0, "bool");
    return one(DataType::Bool, call.in(0));
}

/// (x) -> bool
TypesOutcome typesOfTest(const InferCall &call)
{
    TRY_VOID(checkFloating(call, 1));
    return one(DataType::Bool, call.in(0));
}

TypesOutcome typesOfCast(const InferCall &call)
{
    if (call.declared.empty())
        return call.badOutput("a declared element type");
    return one(call.declared[0].dataType, call.in(0));
}

/// The shape of what two inputs make together.
Result<Shape> shapeOfPair(const InferCall &call)
{
    using enum OperatorKind;
    if (call.kind != Pow)
        TRY_VOID(checkSameTypes(call, 2));
    auto shape = broadcast(call.in(0), call.in(1));
    if (!shape || (call.kind == PRelu && *shape != call.in(0)))
        return call.misfit(1, "a shape that broadcasts with input 0's " + toString(call.in(0)));
    return *std::move(shape);
}

/// (a, b) -> y, all of one element type. @param fits  whether it may be that one: `expected`
TypesOutcome typesOfPair(const InferCall &call, bool (*fits)(DataType), const char *expected)
{
    TRY(Shape shape, shapeOfPair(call));
    if (!fits(call.type(0).dataType))
        return call.misfit(0, expected);
    return one(call.type(0).dataType, std::move(shape));
}

TypesOutcome typesOfNumbers(const InferCall &call)
{
    return typesOfPair(
        call, [](DataType type) { return type != DataType::Bool; }, "numbers");
}

TypesOutcome typesOfSlope(const InferCall &call)
{
    return typesOfPair(call, isFloating, "a floating element type");
}

TypesOutcome typesOfLogic(const InferCall &call)
{
    return typesOfPair(
        call, [](DataType type) { return type == DataType::Bool; }, "bool");
}

TypesOutcome typesOfBits(const InferCall &call)
{
    return typesOfPair(
        call, [](DataType type) { return !isFloating(type) && type != DataType::Bool; }, "integers");
}

TypesOutcome typesOfComparison(const InferCall &call)
{
    TRY(Shape shape, shapeOfPair(call));
    return one(DataType::Bool, std::move(shape));
}

TypesOutcome typesOfWhere(const InferCall &call)
{
    if (call.type(0).dataType != DataType::Bool)
        return call.misfit(0, "a bool condition");
    if (call.type(1).dataType != call.type(2).dataType)
        return call.misfit(2, std::string("the element type of input 1, ") + nameOf(call.type(1).dataType));
    const auto values = broadcast(call.in(1), call.in(2));
    if (!values)
        return call.misfit(2, "a shape that broadcasts with input 1's " + toString(call.in(1)));
    auto shape = broadcast(call.in(0), *values);
    if (!shape)
        return call.misfit(0, "a shape that broadcasts with " + toString(*values));
    return one(call.type(1).dataType, *std::move(shape));
}

// --- annotation, gradients, work

std::string annotateElementwise(const AnnotateCall &call, AnnotationBuilder &builder)
{
    const DimensionList dimensions = builder.freshAll(call.out(0));
    for (std::size_t slot = 0; slot < call.inputs.size(); ++slot) {
        if (call.has(slot))
            builder.input(slot, builder.broadcast(dimensions, call.in(slot)));
    }
    builder.output(0, dimensions);
    return {};
}

NeedsOfInputs needsOfIdentity(const Operator &op)
{
    return op.attributes.integer("detached") == 0 ? NeedsOfInputs{NeedOfInput{}} : NeedsOfInputs{};
}

double perWantedElement(const WorkShapes &shapes, double forward)
{
    return std::max(forward, shapes.outElements(0)) * shapes.wantedCount();
}

/// A row of the tables below.
struct ElementwiseRow {
    OperatorKind kind;
    const char *name;
    /// Per element of the output: for transcendental functions about the steps that vector libraries take.
    double operations;
    GradientNeeds gradients{};
    TypesRule types = typesOfFunction;
    std::vector<std::int32_t> linear{}; ///< As in `SplitRule`.
    KindMarks marks{};
};

void appendKinds(std::vector<KindEntry> &kinds, OperatorCategory category, std::size_t inputs,
    std::vector<ElementwiseRow> rows)
{
    for (ElementwiseRow &row : rows) {
        row.marks.isElementwise = true;
        kinds.push_back({row.kind, row.name, category, {inputs, inputs}, row.types,
            {annotateElementwise, DimensionLock::Whole, std::move(row.linear)}, std::move(row.gradients),
            {row.operations, firstOutput, perWantedElement}, std::move(row.marks)});
    }
}

} // namespace

std::vector<KindEntry> elementwiseKinds()
{
    using enum OperatorKind;
    const GradientNeeds none{}; // not continuous
    const GradientNeeds nothing{{NeedOfInput{}}};
    const GradientNeeds input{{NeedOfInput{{0}}}};
    const GradientNeeds output{{NeedOfInput{{}, {0}}}};
    const GradientNeeds nothingOfBoth{{NeedOfInput{}, NeedOfInput{}}};
    const GradientNeeds both{{NeedOfInput{{0, 1}}, NeedOfInput{{0, 1}}}};

    std::vector<KindEntry> kinds;
    appendKinds(kinds, OperatorCategory::Elementwise, 1,
        {{Abs, "Abs", 1, input, typesOfAnyNumber}, {Acos, "Acos", 10, input}, {Acosh, "Acosh", 10, input},
            {Asin, "Asin", 10, input}, {Asinh, "Asinh", 10, input}, {Atan, "Atan", 10, input},
            {Atanh, "Atanh", 10, input}, {Ceil, "Ceil", 1, none}, {Cos, "Cos", 10, input},
            {Cosh, "Cosh", 10, input}, {Erf, "Erf", 10, input}, {Exp, "Exp", 10, output},
            {Floor, "Floor", 1, none},
            {Identity, "Identity", 0, {{}, needsOfIdentity}, typesOfAnyNumber, {0}, {.isView = true}},
            {IsInf, "IsInf", 1, none, typesOfTest}, {IsNaN, "IsNaN", 1, none, typesOfTest},
            {Log, "Log", 10, input}, {Neg, "Neg", 1, nothing, typesOfAnyNumber, {0}},
            {Not, "Not", 1, none, typesOfNot}, {Reciprocal, "Reciprocal", 4, output},
            {Round, "Round", 1, none}, {Sign, "Sign", 1, none, typesOfAnyNumber}, {Sin, "Sin", 10, input},
            {Sinh, "Sinh", 10, input}, {Sqrt, "Sqrt", 4, output}, {Tan, "Tan", 10, output},
            {Clip, "Clip", 1, input, typesOfAnyNumber},
            {Cast, "Cast", 0, nothing, typesOfCast, {0}, {.isDeclared = true}},
            {Dropout, "Dropout", 20, nothing, typesOfFunction, {0}}}); // a counter-based draw
    appendKinds(kinds, OperatorCategory::Activation, 1,
        {{Relu, "Relu", 1, output, typesOfAnyNumber}, {Sigmoid, "Sigmoid", 10, output},
            {Softplus, "Softplus", 12, input}, {Softsign, "Softsign", 4, input}, {Tanh, "Tanh", 10, output},
            {Mish, "Mish", 16, input}, {HardSwish, "HardSwish", 4, input}, {Silu, "Silu", 12, input},
            {Gelu, "Gelu", 16, input}, {Elu, "Elu", 12, input}, {Celu, "Celu", 12, input},
            {LeakyRelu, "LeakyRelu", 1, input}, {ThresholdedRelu, "ThresholdedRelu", 1, input},
            {Selu, "Selu", 12, input}, {HardSigmoid, "HardSigmoid", 4, input}});
    appendKinds(kinds, OperatorCategory::Elementwise, 2,
        {{Add, "Add", 1, nothingOfBoth, typesOfNumbers, {0, 1}},
            {Sub, "Sub", 1, nothingOfBoth, typesOfNumbers, {0, 1}},
            {Mul, "Mul", 1, {{NeedOfInput{{1}}, NeedOfInput{{0}}}}, typesOfNumbers, {0}},
            {Div, "Div", 4, {{NeedOfInput{{1}}, NeedOfInput{{0, 1}}}}, typesOfNumbers, {0}},
            {Pow, "Pow", 10, both, typesOfNumbers},
            {Mod, "Mod", 4, {{NeedOfInput{}, NeedOfInput{{0, 1}}}}, typesOfNumbers},
            {Min, "Min", 1, both, typesOfNumbers}, {Max, "Max", 1, both, typesOfNumbers},
            {And, "And", 1, none, typesOfLogic}, {Or, "Or", 1, none, typesOfLogic},
            {Xor, "Xor", 1, none, typesOfLogic}, {Equal, "Equal", 1, none, typesOfComparison},
            {Greater, "Greater", 1, none, typesOfComparison},
            {GreaterOrEqual, "GreaterOrEqual", 1, none, typesOfComparison},
            {Less, "Less", 1, none, typesOfComparison},
            {LessOrEqual, "LessOrEqual", 1, none, typesOfComparison},
            {BitShift, "BitShift", 1, none, typesOfBits}, {BitwiseAnd, "BitwiseAnd", 1, none, typesOfBits},
            {BitwiseOr, "BitwiseOr", 1, none, typesOfBits},
            {BitwiseXor, "BitwiseXor", 1, none, typesOfBits}});
    appendKinds(kinds, OperatorCategory::Activation, 2, {{PRelu, "PRelu", 1, both, typesOfSlope}});
    appendKinds(kinds, OperatorCategory::Elementwise, 3,
        {{Where, "Where", 1, {{std::nullopt, NeedOfInput{{0}}, NeedOfInput{{0}}}}, typesOfWhere, {1, 2}}});
    return kinds;
}

} // namespace planloom
