#include "tests/engine/gesture/contexts.h"

#include <gtest/gtest.h>

namespace planloom {
namespace {

constexpr const char *kRows =
    "micro-batches 4\n# why\norder name:h.1.attn.k_attn before name:h.1.attn.q_attn  @gesture\n";

TEST(Retarget, AnEndIsMovedInItsOwnRow)
{
    const GestureContext context = gpt(2, kRows);
    const OperatorId k = one(context, "h.1.attn.k_attn");
    const OperatorId q = one(context, "h.1.attn.q_attn");
    const OperatorId v = one(context, "h.1.attn.v_attn");
    const std::int32_t line = orderLineOf(context, context.plan->orders.front().row, {k}, {q});
    ASSERT_EQ(line, 2);
    EXPECT_EQ(after(context, proposeRetarget(context, line, OrderEnd::Second, {v})),
        "micro-batches 4\n# why\norder name:h.1.attn.k_attn before name:h.1.attn.v_attn  @gesture\n");
    const Proposal first = proposeRetarget(context, line, OrderEnd::First, {v});
    EXPECT_EQ(after(context, first),
        "micro-batches 4\n# why\norder name:h.1.attn.v_attn before name:h.1.attn.q_attn  @gesture\n");
    EXPECT_EQ(first.words, "h.1.attn.v_attn before h.1.attn.q_attn");
    const Proposal same = proposeRetarget(context, line, OrderEnd::Second, {q});
    EXPECT_FALSE(same.refusal);
    EXPECT_TRUE(same.edit.empty());
}

TEST(Retarget, ARowIsNotInItsOwnWay)
{
    const GestureContext context = gpt(2, kRows);
    const auto swapped = proposeOrderRow(
        context, 2, *parseSelector("name:h.1.attn.q_attn"), *parseSelector("name:h.1.attn.k_attn"));
    EXPECT_EQ(after(context, swapped),
        "micro-batches 4\n# why\norder name:h.1.attn.q_attn before name:h.1.attn.k_attn  @gesture\n");
}

TEST(Retarget, ACycleIsRefusedWithItsPath)
{
    const GestureContext context = gpt(2, kRows);
    const OperatorId k = one(context, "h.1.attn.k_attn");
    const OperatorId before = one(context, "h.0.mlp.c_fc");
    const Proposal refused = proposeRetarget(context, 2, OrderEnd::Second, {before});
    EXPECT_EQ(
        refusal(refused), "h.1.attn.k_attn can't run before h.0.mlp.c_fc: it needs what comes out of it");
    ASSERT_GE(refused.cycle.size(), 2U);
    EXPECT_EQ(refused.cycle.front(), k);
    EXPECT_NE(std::find(refused.cycle.begin(), refused.cycle.end(), before), refused.cycle.end());
}

TEST(Retarget, WhatCanNotBeIsRefusedInWords)
{
    const GestureContext context = gpt(2, kRows);
    EXPECT_EQ(refusal(proposeRetarget(context, 0, OrderEnd::First, {one(context, "h.0.mlp.c_fc")})),
        "there is no such order any more");
    EXPECT_EQ(refusal(proposeRetarget(context, 99, OrderEnd::First, {one(context, "h.0.mlp.c_fc")})),
        "there is no such order any more");
    EXPECT_FALSE(refusal(proposeRetarget(context, 2, OrderEnd::First, {})).empty());
    EXPECT_EQ(refusal(proposeOrderRow(
                  context, 2, *parseSelector("name:nobody"), *parseSelector("name:h.1.attn.q_attn"))),
        "name:nobody selects no operator");
}

TEST(Retarget, BackwardOrdersStayBackward)
{
    const GestureContext empty = gpt(2, "micro-batches 4\n");
    const auto mirrorOf = [&](std::string_view name) {
        const OperatorId op = one(empty, name);
        for (std::size_t i = 0; i < empty.graph().operators.size(); ++i) {
            const auto &each = empty.graph().operators[i];
            if (each.direction == Direction::Backward && each.mirror == op)
                return OperatorId{static_cast<std::int32_t>(i)};
        }
        return OperatorId{};
    };
    const OperatorId q = mirrorOf("h.1.attn.q_attn");
    const OperatorId k = mirrorOf("h.1.attn.k_attn");
    const OperatorId v = mirrorOf("h.1.attn.v_attn");
    ASSERT_TRUE(q.valid() && k.valid() && v.valid());
    const GestureContext context = gpt(2, after(empty, proposeOrder(empty, {{k}, {q}})));
    const std::int32_t line = orderLineOf(context, RowId{}, {k}, {q});
    ASSERT_GE(line, 0);
    const Proposal moved =
        proposeRetarget(context, line, OrderEnd::Second, {one(context, "h.1.attn.v_attn"), v});
    const GestureContext then = gpt(2, after(context, moved));
    EXPECT_EQ(orderLineOf(then, RowId{}, {k}, {v}), line);
    EXPECT_EQ(orderLineOf(then, RowId{}, {k}, {q}), -1);
}

} // namespace
} // namespace planloom
