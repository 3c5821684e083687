#include "engine/plan/decided_by.h"
#include "tests/engine/table/models.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace planloom {
namespace {

DecidedBy ofOperator(const Plan &plan, std::string_view name)
{
    return decidedBy(plan)[static_cast<std::size_t>(operatorNamed(*plan.graph, name).index)];
}

TEST(DecidedBy, WithoutRowsEverythingIsDefault)
{
    for (const int devices : {1, 3}) {
        const auto decided = decidedBy(planOf(tinyGpt(), devices, ""));
        EXPECT_TRUE(std::all_of(
            decided.begin(), decided.end(), [](DecidedBy by) { return by == DecidedBy::Default; }));
    }
    EXPECT_TRUE(decidedBy({}).empty());
}

TEST(DecidedBy, WhatFollowsARowIsImplied)
{
    const auto graph = tinyMlp();
    const Plan plan = planOf(graph, 2, "mesh tp=2\nsplit name:a : n over tp");
    EXPECT_EQ(ofOperator(plan, "a"), DecidedBy::Row);
    EXPECT_EQ(ofOperator(plan, "a'"), DecidedBy::Row);
    EXPECT_EQ(ofOperator(plan, "r"), DecidedBy::Implied); // cut as `a` is
    EXPECT_EQ(ofOperator(plan, "b"), DecidedBy::Implied); // its sum runs over the parts
    EXPECT_EQ(ofOperator(plan, "w1.step"), DecidedBy::Implied);
    EXPECT_EQ(ofOperator(plan, "sum"), DecidedBy::Default);
}

TEST(DecidedBy, AnotherPlaceIsImpliedToo)
{
    const auto graph = tinyMlp();
    const Plan plan = planOf(graph, 2, "place name:a : devices 1");
    EXPECT_EQ(ofOperator(plan, "a"), DecidedBy::Row);
    EXPECT_EQ(ofOperator(plan, "r"), DecidedBy::Implied);
    // On a list that names a device twice an operator is still not on all of them.
    const Plan twice = planOf(graph, 2, "split name:a : batch by 2\nplace name:a : devices 1,1");
    EXPECT_EQ(ofOperator(twice, "r"), DecidedBy::Implied);
}

TEST(DecidedBy, AnOrderHoldsBothOfItsOperators)
{
    const auto graph = tinyMlp();
    const Plan plan = planOf(graph, 1, "order name:r before name:b");
    EXPECT_EQ(ofOperator(plan, "r"), DecidedBy::Row);
    EXPECT_EQ(ofOperator(plan, "b"), DecidedBy::Row);
    EXPECT_EQ(ofOperator(plan, "a"), DecidedBy::Default);
}

} // namespace
} // namespace planloom
