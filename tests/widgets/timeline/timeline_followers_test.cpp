#include "widgets/timeline/timeline_followers.h"

#include "tests/widgets/timeline/gesture_host_for_tests.h"
#include "widgets/timeline/timeline_gestures.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace planloom {
namespace {

/// A small transformer in two stages on two devices.
class TimelineFollowers : public testing::Test
{
protected:
    static void SetUpTestSuite()
    {
        auto model =
            openModel({"zoo:gpt?layers=4&hidden=64&heads=4&seq=64&vocab=128&batch=8&fused=0", {}, {}}, {});
        ASSERT_TRUE(model) << model.error().message;
        s_model = *model;
        s_update = planned(s_model, {}, "pipeline:micro-batches=4,schedule=1f1b", 2);
        ASSERT_TRUE(s_update);
    }
    static void TearDownTestSuite()
    {
        s_model.reset();
        s_update.reset();
    }

    GestureContextSnapshot context() const { return RecordingHost(s_model, s_update, 2).gestureContext(); }
    const DeviceLane &lane() const { return s_update->scene->lanes.front(); }

    PlanUpdateSnapshot after(const Proposal &proposal) const
    {
        TableDocument document = context()->document;
        EXPECT_TRUE(document.apply(proposal.edit));
        return planned(s_model, document.text(), {}, 2);
    }

    /// What the canvas does: rows are added until the engine's answer keeps the order.
    struct Settled {
        Proposal proposal{};
        std::int32_t rows = 0;
        std::int32_t lost = 0;
        PlanUpdateSnapshot plan{};
    };
    Settled settle(const Proposal &base, const Followers &followers) const
    {
        Settled result{base, 0, 0, after(base)};
        for (int round = 0; round < 12; ++round) {
            const KeptOrder kept = keepingOrder(*context(), result.proposal, followers, *result.plan->scene);
            result.lost = kept.lost;
            if (kept.rows == 0)
                return result;
            result.rows += kept.rows;
            result.proposal = kept.proposal;
            result.plan = after(result.proposal);
        }
        ADD_FAILURE() << "it does not settle";
        return result;
    }

    static std::string text(const DeviceLane &lane)
    {
        std::string text;
        for (const TimelineBlock &block : lane.blocks) {
            if (block.isOrdered())
                text += (text.empty() ? "" : " ")
                    + std::string(block.kind == SegmentKind::Backward ? "B" : "F")
                    + std::to_string(block.microBatch);
        }
        return text;
    }

    /// Row of the span of the first block that runs an operator.
    std::size_t spanOf(const char *name) const
    {
        const LaneRows rows = lane().blocks.front().rows;
        for (std::size_t row = rows.begin; row < rows.end; ++row) {
            const OperatorId op = s_update->scene->operatorOf(row);
            if (op.valid() && s_model->graph->at(op).name == name)
                return row;
        }
        ADD_FAILURE() << "no span of " << name;
        return 0;
    }
    std::string names(const TimelineScene &scene, const char *from) const
    {
        std::string text;
        const LaneRows rows = scene.lanes.front().blocks.front().rows;
        bool found = false;
        for (std::size_t row = rows.begin; row < rows.end && std::count(text.begin(), text.end(), ' ') < 6;
             ++row) {
            const OperatorId op = scene.operatorOf(row);
            if (!op.valid())
                continue;
            found = found || s_model->graph->at(op).name == from;
            if (found)
                text += (text.empty() ? "" : " ") + s_model->graph->at(op).name.substr(9);
        }
        return text;
    }

    static inline ModelSnapshot s_model;
    static inline PlanUpdateSnapshot s_update;
};

TEST_F(TimelineFollowers, OfABlockThatIsMovedOnceStayInOrderByOneRow)
{
    ASSERT_EQ(text(lane()), "F0 F1 B0 F2 B1 F3 B2 B3");
    const BlockMove move = blockMoveTo(lane(), 2, 1);
    const Proposal base =
        proposeBlockOrder(*context(), refOf(lane().blocks[2]), refOf(lane().blocks[1]), true);
    ASSERT_TRUE(base.accepted());
    const Followers followers = followersOfBlock(lane(), 2, 1, 2, 1, true, false);
    EXPECT_EQ(move.first, 2);
    // The engine closes the gap by another order.
    EXPECT_EQ(text(after(base)->scene->lanes.front()), "F0 F2 B0 F1 B2 F3 B1 B3");
    const Settled settled = settle(base, followers);
    EXPECT_EQ(text(settled.plan->scene->lanes.front()), "F0 B0 F1 F2 B1 F3 B2 B3");
    EXPECT_EQ(settled.rows, 1);
    EXPECT_EQ(settled.lost, 0);
    EXPECT_EQ(settled.proposal.rows.size(), base.rows.size() + 1);
    EXPECT_EQ(settled.proposal.words, base.words);
    EXPECT_TRUE(showsMove(*settled.plan->scene, followers));
    EXPECT_FALSE(showsMove(*s_update->scene, followers));
}

TEST_F(TimelineFollowers, OfAPatternOnItsOwnDeviceNeedNoRow)
{
    const Proposal base =
        proposeBlockOrder(*context(), refOf(lane().blocks[2]), refOf(lane().blocks[1]), false);
    ASSERT_TRUE(base.accepted());
    const Settled settled = settle(base, followersOfBlock(lane(), 2, 1, 2, 1, false, false));
    EXPECT_EQ(settled.rows, 0);
    EXPECT_EQ(settled.lost, 0);
    EXPECT_EQ(settled.proposal.edit, base.edit);
}

TEST_F(TimelineFollowers, OfAnOperatorStayInOrderByOneRow)
{
    const std::size_t own = spanOf("h.0.attn.v_attn");
    const std::size_t caret = spanOf("h.0.attn.q_attn");
    ASSERT_LT(caret, own);
    EXPECT_EQ(names(*s_update->scene, "h.0.attn.q_attn"),
        "q_attn query.heads query.transpose k_attn key.heads key.transpose v_attn");
    const OperatorId first = s_update->scene->operatorOf(own);
    const OperatorId second = s_update->scene->operatorOf(caret);
    const Proposal base = proposeOrder(*context(), {.first = {first}, .second = {second}});
    ASSERT_TRUE(base.accepted());
    // What need not wait for the one that was moved goes first, by the engine's own order.
    EXPECT_EQ(names(*after(base)->scene, "h.0.attn.k_attn"),
        "k_attn key.heads key.transpose v_attn q_attn query.heads query.transpose");
    const Followers followers = followersOfSpan(*s_update->scene, lane(), 0, own, caret, first, second);
    const Settled settled = settle(base, followers);
    EXPECT_EQ(names(*settled.plan->scene, "h.0.attn.v_attn"),
        "v_attn q_attn query.heads query.transpose k_attn key.heads key.transpose");
    EXPECT_EQ(settled.rows, 1);
    EXPECT_EQ(settled.lost, 0);
}

TEST_F(TimelineFollowers, ThatNeedWhatIsMovedGoAlong)
{
    // To the end of the block: all that uses it goes behind it.
    const std::size_t own = spanOf("h.0.attn.q_attn");
    const std::size_t caret = spanOf("h.0.attn.v_attn") + 1;
    const OperatorId first = s_update->scene->operatorOf(caret - 1);
    const OperatorId second = s_update->scene->operatorOf(own);
    const Proposal base = proposeOrder(*context(), {.first = {first}, .second = {second}});
    ASSERT_TRUE(base.accepted());
    const Settled settled =
        settle(base, followersOfSpan(*s_update->scene, lane(), 0, own, caret, first, second));
    EXPECT_GT(settled.lost, 0);
    EXPECT_TRUE(settled.plan->scene);
    EXPECT_EQ(settled.plan->errorCount(), 0u);
}

TEST_F(TimelineFollowers, WithoutAnythingBehindThemAreNone)
{
    const std::size_t last = lane().blocks.size() - 1;
    EXPECT_TRUE(followersOfBlock(lane(), last, last, 1, 0, true, false).empty());
    const KeptOrder kept = keepingOrder(*context(), {}, {}, *s_update->scene);
    EXPECT_EQ(kept.rows, 0);
    EXPECT_TRUE(kept.proposal.edit.empty());
}

TEST_F(TimelineFollowers, OfAnyMoveSettle)
{
    int kept = 0;
    for (std::size_t own = 0; own < lane().blocks.size(); ++own) {
        for (std::size_t caret = 0; caret <= lane().blocks.size(); ++caret) {
            const BlockMove move = blockMoveTo(lane(), own, caret);
            if (!lane().blocks[own].isOrdered() || !move.changes())
                continue;
            const auto first = static_cast<std::size_t>(move.first);
            const auto second = static_cast<std::size_t>(move.second);
            const Proposal base = proposeBlockOrder(
                *context(), refOf(lane().blocks[first]), refOf(lane().blocks[second]), true);
            if (!base.accepted() || !after(base))
                continue;
            const Followers followers = followersOfBlock(lane(), own, caret, first, second, true, false);
            const Settled settled = settle(base, followers);
            ASSERT_TRUE(settled.plan);
            EXPECT_TRUE(showsMove(*settled.plan->scene, followers));
            kept += settled.rows > 0 ? 1 : 0;
            if (settled.lost > 0)
                continue;
            // The followers are in the order that they had.
            std::vector<BlockRef> now;
            for (const TimelineBlock &block : settled.plan->scene->lanes.front().blocks) {
                if (std::find(followers.blocks.begin(), followers.blocks.end(), refOf(block))
                        != followers.blocks.end()
                    && block.isOrdered())
                    now.push_back(refOf(block));
            }
            EXPECT_EQ(now, followers.blocks) << base.words;
        }
    }
    EXPECT_GE(kept, 3);
}

} // namespace
} // namespace planloom
