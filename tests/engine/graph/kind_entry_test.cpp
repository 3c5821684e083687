#include "engine/graph/operators/catalogue.h"
#include "engine/graph/operators/kind_entry.h"
#include "tests/engine/graph/parts_for_tests.h"

#include <gtest/gtest.h>

#include <set>

namespace planloom {

namespace {

/// Why dimension `name` of an operator is locked, in words.
std::string lockOf(OperatorKind kind, const Attributes &attributes, const std::vector<TensorType> &inputs,
    std::string_view name)
{
    const std::vector<bool> present(inputs.size(), true);
    const auto outputs = inferTypes(kind, attributes, inputs, present, {});
    if (!outputs) {
        ADD_FAILURE() << describe(outputs.error());
        return {};
    }
    const Annotation annotation = annotate(kind, attributes, inputs, present, *outputs).annotation;
    const auto index = findDimension(annotation, name);
    if (!index) {
        ADD_FAILURE() << "no " << name << " in " << toString(annotation);
        return {};
    }
    const Dimension &dimension = annotation.dimensions[static_cast<std::size_t>(*index)];
    EXPECT_EQ(dimension.mark, DimensionMark::Frozen);
    return sentenceOf(dimension.lock, wordsOf(kind));
}

Attributes with(std::string_view name, std::int64_t value)
{
    Attributes attributes;
    attributes.set(name, value);
    return attributes;
}

} // namespace

TEST(KindEntry, EveryKindHasOne)
{
    std::set<std::string> names;
    for (int i = 0; i < kOperatorKindCount; ++i) {
        const auto kind = static_cast<OperatorKind>(i);
        const KindEntry &entry = entryOf(kind);
        SCOPED_TRACE(testing::Message() << "kind " << i << " '" << entry.name << "'");
        EXPECT_EQ(entry.kind, kind);
        EXPECT_TRUE(names.insert(entry.name).second);
        EXPECT_NE(entry.types, nullptr);
        EXPECT_EQ(entry.splits.annotate == nullptr, kind == OperatorKind::Custom);
        EXPECT_LE(entry.inputs.required, entry.inputs.most);
        EXPECT_FALSE(entry.gradients.of && !entry.gradients.all.empty());
    }
    EXPECT_FALSE(names.contains(""));
}

TEST(KindEntry, SaysWhyADimensionIsLocked)
{
    using enum OperatorKind;
    EXPECT_EQ(lockOf(Softmax, with("axis", 1), {floats({4, 6})}, "b"), "softmax reduces over this dimension");
    EXPECT_EQ(lockOf(LayerNorm, with("axis", 1), {floats({4, 6})}, "b"),
        "layer norm takes its statistics over this dimension");
    EXPECT_EQ(lockOf(CumSum, with("axis", 0), {floats({4, 6})}, "a"),
        "each step along this dimension needs the one before");
    EXPECT_EQ(lockOf(CrossEntropy, {}, {floats({4, 6}), integers({4})}, "c"),
        "cross-entropy compares all classes with one another");
    EXPECT_EQ(lockOf(Gather, with("axis", 0), {floats({4, 6}), integers({3})}, "a"),
        "Gather looks up anywhere along this dimension");
    EXPECT_EQ(lockOf(Conv, {}, {floats({2, 4, 8}), floats({6, 4, 3})}, "3"),
        "Conv reads over the borders of parts here");
    EXPECT_EQ(lockOf(Trilu, {}, {floats({4, 6})}, "a"), "Trilu needs this dimension whole");
}

TEST(KindEntry, AttentionSaysMoreOfItsKeys)
{
    using enum OperatorKind;
    const std::vector<TensorType> inputs{
        floats({4, 6, 8}), floats({2, 10, 8}), floats({2, 10, 8}), floats({6, 10})};
    EXPECT_EQ(lockOf(Attention, {}, inputs, "e"), "attention sums over this dimension within a head");
    EXPECT_EQ(lockOf(Attention, {}, inputs, "r"), "query heads that share a key head stay together");
    EXPECT_EQ(lockOf(Attention, {}, inputs, "t"),
        "additive masks may hide all keys of a part, whose weights are lost then");
}

TEST(DimensionLock, IsForPeople)
{
    Dimension dimension{"c", 4, DimensionMark::Frozen};
    const Dimension other{"c", 4, DimensionMark::Frozen, DimensionLock::Steps};
    EXPECT_EQ(dimension, other);
    EXPECT_EQ(backwardAnnotation(parsed("a b^ -> a b^", {{4, 6}}, {{4, 6}})).dimensions[1].lock,
        DimensionLock::Whole);
}

} // namespace planloom
