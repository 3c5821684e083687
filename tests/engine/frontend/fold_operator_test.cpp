#include "engine/frontend/writer/fold_operator.h"

#include "engine/frontend/writer/graph_writer.h"
#include "engine/frontend/writer/tensor_values.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace planloom {

namespace {

using enum OperatorKind;
using Integers = std::vector<std::int64_t>;
using Values = std::shared_ptr<const TensorData>;

constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

Values listOf(Integers values)
{
    const auto count = static_cast<std::int64_t>(values.size());
    return integerTensor(std::move(values), {count});
}

/// The integers that an operator makes of lists, in a list of `count`; nothing if it is not folded.
std::optional<Integers> folded(
    OperatorKind kind, std::vector<Values> inputs, std::int64_t count, const Attributes &attributes = {})
{
    const auto made = foldOperator(kind, attributes, inputs, {{DataType::Int64, {count}}});
    return made ? std::optional(integersOf(made->front())) : std::nullopt;
}

TEST(FoldOperator, ComputesWithIntegersExactly)
{
    EXPECT_EQ(folded(Add, {listOf({kLeast, 5}), listOf({16})}, 2), (Integers{kLeast + 16, 21}));
    EXPECT_EQ(folded(Sub, {listOf({kMost}), listOf({kMost - 3})}, 1), (Integers{3}));
    EXPECT_EQ(folded(Div, {listOf({-7, 7}), listOf({2})}, 2), (Integers{-3, 3}));
    EXPECT_EQ(folded(Mod, {listOf({-7, 7}), listOf({3})}, 2), (Integers{2, 1}));
    EXPECT_EQ(folded(Max, {listOf({kMost, kLeast}), listOf({0})}, 2), (Integers{kMost, 0}));
    EXPECT_EQ(folded(ReduceProd, {listOf({1 << 20, 1 << 20, 1 << 20})}, 1,
                  attributesFrom({{"axes", Integers{0}}, {"keepdims", std::int64_t{1}}})),
        (Integers{std::int64_t{1} << 60}));
}

TEST(FoldOperator, LeavesAloneWhatWouldLeaveTheRangeOfIntegers)
{
    EXPECT_FALSE(folded(Add, {listOf({kMost}), listOf({1})}, 1));
    EXPECT_FALSE(folded(Sub, {listOf({kLeast}), listOf({1})}, 1));
    EXPECT_FALSE(folded(Mul, {listOf({std::int64_t{1} << 40}), listOf({std::int64_t{1} << 40})}, 1));
    EXPECT_FALSE(folded(Neg, {listOf({kLeast})}, 1));
    EXPECT_FALSE(folded(Div, {listOf({kLeast}), listOf({-1})}, 1));
    EXPECT_FALSE(folded(Div, {listOf({1}), listOf({0})}, 1));
    EXPECT_FALSE(folded(Mod, {listOf({1}), listOf({0})}, 1));
}

TEST(FoldOperator, RoundsFloatingResultsOnce)
{
    const Values x = realTensor(DataType::Float32, {1.0, -2.5, 0.1}, {3});
    const auto made = foldOperator(Exp, {}, {x}, {x->type});
    ASSERT_TRUE(made);
    for (std::size_t i = 0; i < 3; ++i) {
        const double from = realsOf(*x)[i];
        EXPECT_EQ(realsOf(made->front())[i], static_cast<double>(static_cast<float>(std::exp(from))));
    }
}

TEST(FoldOperator, MovesElementsOfEveryType)
{
    for (const DataType type : {DataType::Bool, DataType::Int8, DataType::Float16, DataType::BFloat16,
             DataType::Float32, DataType::Float64}) {
        SCOPED_TRACE(nameOf(type));
        const Values x = realTensor(type, {1, 0, 1, 1, 0, 0}, {2, 3});
        const auto turned =
            foldOperator(Transpose, attributesFrom({{"permutation", Integers{1, 0}}}), {x}, {{type, {3, 2}}});
        ASSERT_TRUE(turned);
        EXPECT_EQ(realsOf(turned->front()), (std::vector<double>{1, 1, 0, 0, 1, 0}));
    }
}

TEST(FoldOperator, MakesNothingOfIndicesThatAreOutOfRangeAndOfNoElements)
{
    const Attributes axis = attributesFrom({{"axis", std::int64_t{0}}});
    EXPECT_EQ(folded(Gather, {listOf({4, 5, 6}), listOf({2, -3})}, 2, axis), (Integers{6, 4}));
    EXPECT_FALSE(folded(Gather, {listOf({4, 5, 6}), listOf({3})}, 1, axis));
    EXPECT_FALSE(folded(Concat, {listOf({}), listOf({1})}, 1, axis));
}

} // namespace

} // namespace planloom
