// Losses, and what they are made of.

#include "engine/graph/operators/class_axis.h"
#include "engine/graph/operators/kind_entry.h"

namespace planloom {

namespace {

// --- types

/// A loss of items: their sum, or each of them.
TypesOutcome typesOfLoss(const InferCall &call, const Shape &items)
{
    const std::string reduction = call.attributes.text("reduction", "sum");
    if (reduction != "sum" && reduction != "none")
        return call.badAttribute("reduction", "\"sum\" or \"none\", found \"" + reduction + "\"");
    return one(call.type(0).dataType, reduction == "sum" ? Shape{} : items);
}

TypesOutcome inferCountValid(const InferCall &call)
{
    if (!isIndexType(call.type(0).dataType))
        return call.misfit(0, "int32 or int64 labels");
    return one(call.has(1) ? call.type(1).dataType : DataType::Float32, {});
}

template<typename Call> std::size_t classAxisOf(const Call &call)
{
    return classAxis(call.attributes, call.in(0).size());
}

/// The shape of the logits without their classes, which the labels have.
Result<Shape> itemsOf(const InferCall &call)
{
    const Shape &logits = call.in(0);
    if (!isFloating(call.type(0).dataType) || logits.empty())
        return call.misfit(0, "floating logits with a class dimension");
    if (!isIndexType(call.type(1).dataType))
        return call.misfit(1, "int32 or int64 labels");
    if (classAxisOf(call) >= logits.size())
        return call.badAttribute("axis", "a dimension of the logits");
    Shape items = logits;
    items.erase(items.begin() + static_cast<std::ptrdiff_t>(classAxisOf(call)));
    if (call.in(1) != items)
        return call.misfit(1, toString(items) + ", the shape of the logits without their classes");
    return items;
}

TypesOutcome inferClassStatistics(const InferCall &call)
{
    TRY(const Shape items, itemsOf(call));
    return std::vector<TensorType>(2, {call.type(0).dataType, items});
}

TypesOutcome inferLoss(const InferCall &call)
{
    TRY(const Shape items, itemsOf(call));
    const Shape classes{call.in(0)[classAxisOf(call)]};
    if (call.has(2) && call.in(2) != classes)
        return call.misfit(2, "one weight per class, " + toString(classes));
    return typesOfLoss(call, items);
}

/// A cross-entropy from the statistics of its classes.
TypesOutcome inferClassLoss(const InferCall &call)
{
    const Shape &items = call.in(0);
    if (!isFloating(call.type(0).dataType))
        return call.misfit(0, "floating statistics");
    if (call.type(1) != call.type(0))
        return call.misfit(1, std::string(nameOf(call.type(0).dataType)) + toString(items));
    if (!isIndexType(call.type(2).dataType) || call.in(2) != items)
        return call.misfit(2, "int32 or int64 labels of shape " + toString(items));
    if (call.has(3) && call.rank(3) != 1)
        return call.misfit(3, "one weight per class");
    return typesOfLoss(call, items);
}

// --- annotations

/// The items that labels stand for: [n ..].
DimensionList itemIdentifiers(AnnotationBuilder &builder, const Shape &labels, DimensionMark mark)
{
    DimensionList items;
    for (std::size_t i = 0; i < labels.size(); ++i)
        items.push_back(i == 0 ? builder.named("n", labels[i], mark) : builder.fresh(labels[i], mark));
    return items;
}

/// The logits, as their items and classes.
DimensionList withClasses(
    const AnnotateCall &call, AnnotationBuilder &builder, const DimensionList &items, DimensionMark classes)
{
    const std::size_t axis = classAxisOf(call);
    DimensionList logits = items;
    logits.insert(
        logits.begin() + static_cast<std::ptrdiff_t>(axis), builder.named("c", call.in(0)[axis], classes));
    return logits;
}

std::string annotateClassWeights(const AnnotateCall &call, AnnotationBuilder &builder, std::size_t slot)
{
    if (!call.has(slot))
        return {};
    if (call.inRank(slot) != 1)
        return std::string(nameOf(call.kind)) + "'s class weights must have one dimension";
    builder.input(slot, DimensionList{builder.named("c", call.in(slot)[0], kFrozen)});
    return {};
}

std::string annotateCountValid(const AnnotateCall &call, AnnotationBuilder &builder)
{
    builder.input(0, itemIdentifiers(builder, call.in(0), kReduce));
    builder.output(0, DimensionList{});
    return annotateClassWeights(call, builder, 1);
}

bool isSum(const AnnotateCall &call)
{
    return call.attributes.text("reduction", "sum") == "sum";
}

std::string annotateLoss(const AnnotateCall &call, AnnotationBuilder &builder)
{
    const bool sum = isSum(call);
    const DimensionList labels = itemIdentifiers(builder, call.in(1), sum ? kReduce : DimensionMark::Spatial);
    if (call.inRank(0) == 0)
        return std::string(nameOf(call.kind)) + " needs logits with a class dimension";
    if (classAxisOf(call) > labels.size())
        return std::string(nameOf(call.kind)) + "'s labels have too few dimensions";
    builder.input(0, withClasses(call, builder, labels, kFrozen));
    builder.input(1, labels);
    builder.output(0, sum ? DimensionList{} : labels);
    return annotateClassWeights(call, builder, 2);
}

/// Statistics of a range of the classes: where the label is outside, its logit is 0 in the sum.
std::string annotateClassStatistics(const AnnotateCall &call, AnnotationBuilder &builder)
{
    if (call.outputs.size() != 2)
        return missing(call);
    const DimensionList items = itemIdentifiers(builder, call.in(1), DimensionMark::Spatial);
    if (call.inRank(0) != items.size() + 1)
        return "ClassStatistics needs logits with one dimension more than its labels";
    builder.input(0, withClasses(call, builder, items, kReduce));
    builder.input(1, items);
    builder.output(0, items);
    builder.output(1, items);
    builder.combines(0, Combination::LogSumExp);
    return {};
}

std::string annotateClassLoss(const AnnotateCall &call, AnnotationBuilder &builder)
{
    const bool sum = isSum(call);
    const DimensionList items = itemIdentifiers(builder, call.in(2), sum ? kReduce : DimensionMark::Spatial);
    for (std::size_t slot = 0; slot < 3; ++slot)
        builder.input(slot, items);
    if (call.has(3))
        builder.input(3, builder.literals(call.in(3)));
    builder.output(0, sum ? DimensionList{} : items);
    return {};
}

// --- work, entries

double secondInput(const WorkShapes &shapes)
{
    return shapes.inElements(1);
}

} // namespace

std::vector<KindEntry> lossKinds()
{
    using enum OperatorKind;
    constexpr auto kLoss = OperatorCategory::Loss;
    constexpr auto kClasses = DimensionLock::Classes;
    constexpr auto kWhole = DimensionLock::Whole;
    return {
        {CrossEntropy, "CrossEntropy", kLoss, {2, 3}, inferLoss, {annotateLoss, kClasses, {}, "nc"},
            {{NeedOfInput{{0, 1, 2}}}}, {14, firstInput}, {.words = "cross-entropy", .statistics = {0}}},
        // A sum of elements; labels and weights are held fixed.
        {NegativeLogLikelihood, "NegativeLogLikelihood", kLoss, {2, 3}, inferLoss,
            {annotateLoss, kClasses, {0}, "nc"}, {{NeedOfInput{{1, 2}}}}, {2, secondInput},
            {.statistics = {0}}},
        {ClassStatistics, "ClassStatistics", kLoss, {2, 2}, inferClassStatistics,
            {annotateClassStatistics, kWhole, {}, "nc"}, {{NeedOfInput{{0, 1}, {0}}}}, {14, firstInput},
            {.words = "cross-entropy", .statistics = {0, 1}}},
        {ClassLoss, "ClassLoss", kLoss, {3, 4}, inferClassLoss, {annotateClassLoss, kWhole, {}, "nc"},
            {{NeedOfInput{{2, 3}}, NeedOfInput{{2, 3}}}}, {2, secondInput},
            {.words = "cross-entropy", .statistics = {0}}},
        {CountValid, "CountValid", kLoss, {1, 2}, inferCountValid, {annotateCountValid, kWhole, {}, "nc"}, {},
            {2, firstInput}, {.statistics = {0}}},
    };
}

} // namespace planloom
