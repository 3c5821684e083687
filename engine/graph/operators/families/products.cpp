// Products of matrices.

#include "engine/graph/operators/kind_entry.h"

#include <algorithm>
#include <utility>

namespace planloom {

namespace {

// --- types

TypesOutcome inferMatMul(const InferCall &call)
{
    const Shape &a = call.in(0);
    const Shape &b = call.in(1);
    if (a.empty())
        return call.misfit(0, "at least one dimension");
    if (b.empty())
        return call.misfit(1, "at least one dimension");
    TRY_VOID(checkSameTypes(call, 2));
    const std::int64_t inner = b.size() == 1 ? b[0] : b[b.size() - 2];
    if (inner != a.back()) {
        return call.misfit(
            1, std::to_string(a.back()) + " rows, as many as input 0, " + toString(a) + ", has columns");
    }
    const auto batchOf = [](const Shape &shape) {
        return shape.size() > 2 ? Shape(shape.begin(), shape.end() - 2) : Shape{};
    };
    auto y = broadcast(batchOf(a), batchOf(b));
    if (!y)
        return call.misfit(1, "leading dimensions that broadcast with input 0's " + toString(a));
    if (a.size() > 1)
        y->push_back(a[a.size() - 2]);
    if (b.size() > 1)
        y->push_back(b.back());
    return one(call.type(0).dataType, *std::move(y));
}

TypesOutcome inferLinear(const InferCall &call)
{
    const Shape &x = call.in(0);
    const Shape &w = call.in(1);
    TRY_VOID(checkFloating(call, 3));
    if (x.empty())
        return call.misfit(0, "at least one dimension");
    const bool transposed = call.attributes.integer("transposed") != 0;
    if (w.size() < 2 || w.size() > 3 || (transposed ? w.back() : w.front()) != x.back()) {
        return call.misfit(1,
            std::string("two dimensions, or three, ") + (transposed ? "the last" : "the first") + " of them "
                + std::to_string(x.back()));
    }
    const Shape columns = transposed ? Shape(w.begin(), w.end() - 1) : Shape(w.begin() + 1, w.end());
    Shape y(x.begin(), x.end() - 1);
    y.insert(y.end(), columns.begin(), columns.end());
    if (call.has(2) && call.in(2) != columns)
        return call.misfit(2, toString(columns));
    return one(call.type(0).dataType, std::move(y));
}

TypesOutcome inferEinsum(const InferCall &call)
{
    TRY_VOID(checkSameTypes(call, call.inputs.size()));
    std::string equation;
    for (const char c : call.attributes.text("equation")) {
        if (c != ' ')
            equation += c;
    }
    const std::size_t arrow = equation.find("->");
    if (arrow == std::string::npos)
        return call.badAttribute("equation", "letters, commas and '->', found '" + equation + "'");
    std::int64_t sizes[128];
    std::fill(std::begin(sizes), std::end(sizes), -1);
    std::size_t slot = 0;
    std::size_t position = 0;
    for (std::size_t i = 0; i <= arrow; ++i) {
        const char c = equation[i];
        if (c == ',' || i == arrow) {
            if (slot >= call.inputs.size() || !call.has(slot))
                return call.badAttribute("equation", "as many operands as inputs");
            if (position != call.rank(slot))
                return call.misfit(slot, std::to_string(position) + " dimensions by '" + equation + "'");
            ++slot;
            position = 0;
            continue;
        }
        const auto letter = static_cast<unsigned char>(c);
        if (!((letter | 32) >= 'a' && (letter | 32) <= 'z'))
            return call.badAttribute("equation", "letters, commas and '->', found '" + equation + "'");
        if (slot >= call.inputs.size() || position >= call.rank(slot))
            return call.badAttribute(
                "equation", "as many letters as the inputs have dimensions: '" + equation + "'");
        const std::int64_t extent = call.in(slot)[position++];
        if (sizes[letter] > 1 && extent != 1 && extent != sizes[letter]) {
            return call.misfit(slot,
                "'" + std::string(1, c) + "' to be " + std::to_string(sizes[letter]) + " in '" + equation
                    + "'");
        }
        if (sizes[letter] < 0 || sizes[letter] == 1)
            sizes[letter] = extent;
    }
    if (slot != call.inputs.size())
        return call.badAttribute("equation", "as many operands as inputs");
    Shape y;
    for (std::size_t i = arrow + 2; i < equation.size(); ++i) {
        const auto letter = static_cast<unsigned char>(equation[i]);
        if (letter >= 128 || sizes[letter] < 0 || equation.find(equation[i], arrow) != i)
            return call.badAttribute(
                "equation", "output letters that occur in an input, once each: '" + equation + "'");
        y.push_back(sizes[letter]);
    }
    return one(call.type(0).dataType, std::move(y));
}

// --- annotations

std::string annotateMatMul(const AnnotateCall &call, AnnotationBuilder &builder)
{
    const Shape &a = call.in(0);
    const Shape &b = call.in(1);
    if (a.empty() || b.empty())
        return "MatMul needs two inputs with dimensions";
    const std::size_t batch = std::max(a.size(), b.size()) < 2 ? 0 : std::max(a.size(), b.size()) - 2;
    const std::size_t rows = a.size() > 1 ? 1 : 0;
    const std::size_t columns = b.size() > 1 ? 1 : 0;
    if (call.outRank(0) != batch + rows + columns)
        return "MatMul's output has " + std::to_string(call.outRank(0)) + " dimensions, but its inputs make "
            + std::to_string(batch + rows + columns);
    DimensionList y(batch);
    for (std::size_t i = 0; i < batch; ++i)
        y[i] = builder.fresh(call.out(0)[i]);
    const std::int32_t k = builder.named("k", a.back(), kReduce);
    DimensionList left =
        builder.broadcast(y, Shape(a.begin(), a.end() - static_cast<std::ptrdiff_t>(rows) - 1));
    DimensionList right =
        builder.broadcast(y, Shape(b.begin(), b.end() - static_cast<std::ptrdiff_t>(columns) - 1));
    if (rows != 0) {
        left.push_back(builder.named("m", a[a.size() - 2]));
        y.push_back(left.back());
    }
    left.push_back(k);
    right.push_back(k);
    if (columns != 0) {
        right.push_back(builder.named("n", b.back()));
        y.push_back(right.back());
    }
    builder.input(0, left);
    builder.input(1, right);
    builder.output(0, y);
    builder.linear({0});
    return {};
}

std::string annotateLinear(const AnnotateCall &call, AnnotationBuilder &builder)
{
    if (call.in(0).empty() || call.inRank(1) < 2 || call.inRank(1) > 3)
        return "Linear needs an input with dimensions and a weight of two, or three";
    const bool transposed = call.attributes.integer("transposed") != 0;
    DimensionList x;
    for (std::size_t i = 0; i + 1 < call.inRank(0); ++i)
        x.push_back(builder.fresh(call.in(0)[i]));
    DimensionList y = x;
    const std::int32_t k = builder.named("k", call.in(0).back(), kReduce);
    DimensionList columns;
    if (call.inRank(1) == 3)
        columns.push_back(builder.named("p", call.in(1)[transposed ? 0 : 1]));
    columns.push_back(builder.named("n", call.in(1)[call.inRank(1) - (transposed ? 2 : 1)]));
    x.push_back(k);
    y.insert(y.end(), columns.begin(), columns.end());
    builder.input(0, x);
    DimensionList weight = columns;
    weight.insert(transposed ? weight.end() : weight.begin(), k);
    builder.input(1, weight);
    if (call.has(2))
        builder.input(2, builder.broadcast(columns, call.in(2)));
    builder.output(0, y);
    return {};
}

std::string annotateEinsum(const AnnotateCall &call, AnnotationBuilder &builder)
{
    std::string equation;
    for (const char c : call.attributes.text("equation")) {
        if (c != ' ')
            equation += c;
    }
    const std::size_t arrow = equation.find("->");
    if (arrow == std::string::npos)
        return "Einsum's equation '" + equation + "' has no '->'";
    std::vector<std::string> operands{""};
    for (const char c : equation.substr(0, arrow)) {
        if (c == ',')
            operands.emplace_back();
        else
            operands.back() += c;
    }
    const std::string result = equation.substr(arrow + 2);
    if (operands.size() != call.inputs.size() || result.size() != call.outRank(0))
        return "Einsum's equation '" + equation + "' does not fit its inputs and output";

    // The extent of a letter is the largest any operand gives it: operands of extent 1 broadcast.
    std::int64_t sizes[128] = {};
    bool frozen[128] = {};
    for (std::size_t slot = 0; slot < operands.size(); ++slot) {
        const std::string &letters = operands[slot];
        if (!call.has(slot) || letters.size() != call.inRank(slot))
            return "Einsum's equation '" + equation + "' does not fit input " + std::to_string(slot);
        for (std::size_t i = 0; i < letters.size(); ++i) {
            const auto letter = static_cast<unsigned char>(letters[i]);
            if (letter >= 128 || !((letter | 32) >= 'a' && (letter | 32) <= 'z'))
                return "Einsum's equation '" + equation + "' has something other than letters in it";
            sizes[letter] = std::max(sizes[letter], call.in(slot)[i]);
            frozen[letter] |= letters.find(letters[i]) != i || letters.rfind(letters[i]) != i;
        }
    }
    const auto identifier = [&](char letter) {
        const auto index = static_cast<unsigned char>(letter);
        const auto mark = frozen[index]                ? kFrozen
            : result.find(letter) == std::string::npos ? kReduce
                                                       : DimensionMark::Spatial;
        return builder.named(std::string_view(&letter, 1), sizes[index], mark);
    };
    for (std::size_t slot = 0; slot < operands.size(); ++slot) {
        DimensionList list;
        for (std::size_t i = 0; i < operands[slot].size(); ++i) {
            const std::int32_t dimension = identifier(operands[slot][i]);
            list.push_back(builder.sizeOf(dimension) == call.in(slot)[i] ? dimension
                                                                         : builder.literal(call.in(slot)[i]));
        }
        builder.input(slot, list);
    }
    DimensionList y;
    for (std::size_t i = 0; i < result.size(); ++i) {
        const auto letter = static_cast<unsigned char>(result[i]);
        if (letter >= 128 || sizes[letter] == 0 || result.find(result[i]) != i)
            return "Einsum's equation '" + equation + "' has an output letter that is in no input, or twice";
        y.push_back(identifier(result[i]));
    }
    builder.output(0, y);
    return {};
}

// --- gradients, work

/// All other operands.
NeedsOfInputs needsOfEinsum(const Operator &op)
{
    NeedsOfInputs needs(op.inputs.size(), NeedOfInput{});
    for (std::size_t slot = 0; slot < needs.size(); ++slot)
        for (std::size_t other = 0; other < needs.size(); ++other)
            if (other != slot)
                needs[slot]->inputs.push_back(other);
    return needs;
}

double stepsOfMatMul(const WorkShapes &shapes)
{
    const Shape *b = shapes.in(1);
    return shapes.outElements(0)
        * (shapes.in(0) != nullptr ? lastExtent(shapes.in(0), 0)
                                   : lastExtent(b, b != nullptr && b->size() > 1 ? 1 : 0));
}

double stepsOfLinear(const WorkShapes &shapes)
{
    const bool transposed = shapes.attributes().integer("transposed") != 0;
    return shapes.outElements(0)
        * (shapes.in(0) != nullptr ? lastExtent(shapes.in(0), 0) : summedByWeight(shapes.in(1), transposed));
}

double stepsOfEinsum(const WorkShapes &shapes)
{
    // One loop over all letters.
    double extents[128] = {};
    const std::string equation = shapes.attributes().text("equation");
    std::size_t slot = 0;
    std::size_t position = 0;
    std::size_t operands = 1;
    for (const char c : equation) {
        if (c == '-')
            break;
        if (c == ',') {
            ++slot;
            ++operands;
            position = 0;
            continue;
        }
        const auto letter = static_cast<unsigned char>(c);
        if (c == ' ' || letter >= 128)
            continue;
        const Shape *shape = shapes.in(slot);
        if (shape != nullptr && position < shape->size())
            extents[letter] = std::max(extents[letter], static_cast<double>((*shape)[position]));
        ++position;
    }
    const std::size_t arrow = equation.find("->");
    position = 0;
    const Shape *y = shapes.out(0);
    for (std::size_t i = arrow == std::string::npos ? equation.size() : arrow + 2; i < equation.size(); ++i) {
        const auto letter = static_cast<unsigned char>(equation[i]);
        if (equation[i] == ' ' || letter >= 128)
            continue;
        if (y != nullptr && position < y->size())
            extents[letter] = std::max(extents[letter], static_cast<double>((*y)[position]));
        ++position;
    }
    double loop = 1;
    for (const double extent : extents)
        loop *= extent > 0 ? extent : 1;
    return loop * static_cast<double>(operands);
}

double onePerOperand(const WorkShapes &shapes, double forward)
{
    return forward * shapes.wantedCount();
}

} // namespace

std::vector<KindEntry> productKinds()
{
    using enum OperatorKind;
    constexpr auto kProduct = OperatorCategory::Product;
    constexpr auto kWhole = DimensionLock::Whole;
    return {
        {MatMul, "MatMul", kProduct, {2, 2}, inferMatMul, {annotateMatMul, kWhole, {}, "kmn"},
            {{NeedOfInput{{1}}, NeedOfInput{{0}}}}, {2, stepsOfMatMul, onePerFactor}},
        {Linear, "Linear", kProduct, {2, 3}, inferLinear, {annotateLinear, kWhole, {0}, "knp"},
            {{NeedOfInput{{1}}, NeedOfInput{{0}}, NeedOfInput{}}}, {2, stepsOfLinear, onePerFactor, true}},
        {Einsum, "Einsum", kProduct, {1, kAnyNumber}, inferEinsum, {annotateEinsum, kWhole, {0}},
            {{}, needsOfEinsum}, {1, stepsOfEinsum, onePerOperand}},
    };
}

} // namespace planloom
