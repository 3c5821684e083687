#include "engine/graph/attributes.h"
#include "engine/graph/operators/mask.h"
#include "engine/graph/shape.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace planloom {

namespace {

IndexMask box(std::vector<Range> ranges)
{
    return IndexMask{std::move(ranges)};
}

/// The elements of a box of rank 2, one by one.
std::set<std::pair<std::int64_t, std::int64_t>> elements(const IndexMask &mask)
{
    std::set<std::pair<std::int64_t, std::int64_t>> result;
    for (std::int64_t i = mask.ranges[0].begin; i < mask.ranges[0].end; ++i) {
        for (std::int64_t j = mask.ranges[1].begin; j < mask.ranges[1].end; ++j)
            result.emplace(i, j);
    }
    return result;
}

} // namespace

TEST(Shape, CountsAndPrints)
{
    EXPECT_EQ(elementCount({}), 1);
    EXPECT_EQ(elementCount({2, 16, 64}), 2048);
    EXPECT_EQ(elementCount({2, 0, 64}), 0);
    EXPECT_EQ(toString(Shape{}), "[]");
    EXPECT_EQ(toString(Shape{2, 16, 64}), "[2 16 64]");
}

TEST(Shape, KnowsItsDataTypes)
{
    EXPECT_EQ(sizeOf(DataType::Float64), 8);
    EXPECT_EQ(sizeOf(DataType::Int32), 4);
    EXPECT_EQ(sizeOf(DataType::BFloat16), 2);
    EXPECT_EQ(sizeOf(DataType::Bool), 1);
    EXPECT_STREQ(nameOf(DataType::Float32), "float32");
    EXPECT_STREQ(nameOf(DataType::Int64), "int64");
    EXPECT_TRUE(isFloating(DataType::BFloat16));
    EXPECT_FALSE(isFloating(DataType::Int8));
}

TEST(Mask, OfAWholeTensorHasItsShape)
{
    const IndexMask mask = wholeMask({2, 3});
    EXPECT_EQ(mask, box({{0, 2}, {0, 3}}));
    EXPECT_EQ(shapeOf(mask), (Shape{2, 3}));
    EXPECT_EQ(wholeMask({}), IndexMask{});
}

TEST(Mask, OfAScalarMeetsItself)
{
    EXPECT_EQ(intersection(IndexMask{}, IndexMask{}), IndexMask{});
    EXPECT_TRUE(contains(IndexMask{}, IndexMask{}));
}

TEST(Mask, PrintsTheValueMaskOnlyIfNotComplete)
{
    TensorView view{TensorId{3}, box({{0, 8}, {0, 64}}), {}};
    EXPECT_EQ(toString(view), "[0:8 0:64]");
    view.value = {1, 2};
    EXPECT_EQ(toString(view), "[0:8 0:64] 1/2");
    EXPECT_EQ(toString(IndexMask{}), "[]");
}

TEST(Mask, IntersectionAndContainmentAreThoseOfElements)
{
    std::mt19937 random(7);
    const auto randomRange = [&]() -> Range {
        const std::int64_t begin = static_cast<std::int64_t>(random() % 5);
        return {begin, begin + 1 + static_cast<std::int64_t>(random() % 4)};
    };
    int disjoint = 0;
    for (int i = 0; i < 2000; ++i) {
        const IndexMask a = box({randomRange(), randomRange()});
        const IndexMask b = box({randomRange(), randomRange()});
        SCOPED_TRACE(toString(a) + " and " + toString(b));
        const auto ofA = elements(a);
        const auto ofB = elements(b);
        std::set<std::pair<std::int64_t, std::int64_t>> both;
        std::set_intersection(
            ofA.begin(), ofA.end(), ofB.begin(), ofB.end(), std::inserter(both, both.end()));
        const auto common = intersection(a, b);
        ASSERT_EQ(common.has_value(), !both.empty());
        disjoint += common ? 0 : 1;
        if (common) {
            ASSERT_EQ(elements(*common), both);
        }
        ASSERT_EQ(contains(a, b), std::includes(ofA.begin(), ofA.end(), ofB.begin(), ofB.end()));
    }
    EXPECT_GT(disjoint, 100);
}

TEST(Attributes, FallBackWhereMissingOrOfAnotherType)
{
    Attributes attributes;
    attributes.set("axis", std::int64_t{2});
    attributes.set("epsilon", 1e-5);
    attributes.set("mode", std::string("edge"));
    attributes.set("pads", std::vector<std::int64_t>{1, 2});
    EXPECT_EQ(attributes.integer("axis"), 2);
    EXPECT_EQ(attributes.integer("epsilon", 7), 7);
    EXPECT_EQ(attributes.integer("missing", -1), -1);
    EXPECT_DOUBLE_EQ(attributes.real("epsilon"), 1e-5);
    EXPECT_DOUBLE_EQ(attributes.real("axis", 0.5), 0.5);
    EXPECT_EQ(attributes.text("mode"), "edge");
    EXPECT_EQ(attributes.text("axis", "none"), "none");
    EXPECT_EQ(attributes.integers("pads"), (std::vector<std::int64_t>{1, 2}));
    EXPECT_TRUE(attributes.integers("axis").empty());
}

TEST(Attributes, SetReplacesAndEraseRemoves)
{
    Attributes attributes;
    attributes.set("axis", std::int64_t{2});
    attributes.set("axis", std::int64_t{3});
    EXPECT_EQ(attributes.integer("axis"), 3);
    attributes.erase("axis");
    attributes.erase("never there");
    EXPECT_FALSE(attributes.has("axis"));
    EXPECT_EQ(attributes, Attributes{});
}

} // namespace planloom
