// Pieces of blocks that run side by side, moved by hand.

#include "engine/gesture/piece_gesture.h"
#include "tests/engine/gesture/contexts.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace planloom {
namespace {

const std::string kSideBySide = "micro-batches 4\nschedule combined-1f1b\n";

/// The table's text after a proposal, without where its rows come from.
std::string written(const GestureContext &context, const Proposal &proposal)
{
    const std::string origin = "  @gesture";
    std::string text = after(context, proposal);
    for (std::size_t at = text.find(origin); at != std::string::npos; at = text.find(origin))
        text.erase(at, origin.size());
    return text;
}

/// F2 beside B0 of the only stage: the operators of layer 0, and their gradients the other way round.
PieceMove layerMove(const GestureContext &context)
{
    PieceMove move{
        .block = {StageId{0}, Direction::Forward, 2}, .beside = {StageId{0}, Direction::Backward, 0}};
    move.own = forward(context, "layer:0");
    for (auto op = move.own.rbegin(); op != move.own.rend(); ++op)
        if (const OperatorId mirror = context.graph().at(*op).mirror; mirror.valid())
            move.other.push_back(mirror);
    EXPECT_GT(move.own.size(), 8U);
    EXPECT_GT(move.other.size(), 8U);
    return move;
}

std::string nameAt(const GestureContext &context, const std::vector<OperatorId> &sequence, std::size_t at)
{
    return context.graph().at(sequence[at]).name;
}

TEST(PieceMove, WritesAnOrderOfTwoOperators)
{
    const GestureContext context = gpt(1, kSideBySide);
    PieceMove move = layerMove(context);
    move.begin = 4;
    move.end = 6;
    move.caret = 2;
    const std::string first = nameAt(context, move.own, 4);
    const std::string last = nameAt(context, move.own, 5);
    const Proposal earlier = proposePieceMove(context, move);
    EXPECT_EQ(written(context, earlier),
        kSideBySide + "order name:" + last + " before name:" + nameAt(context, move.other, 2) + " at -2\n");
    EXPECT_EQ(earlier.words,
        "move " + first + " to " + last + " of F2 of stage 0 before " + nameAt(context, move.other, 2)
            + " of B0 of stage 0");
    EXPECT_EQ(earlier.operators, (std::vector<OperatorId>{move.own[4], move.own[5]}));
    move.earlier = false;
    const Proposal later = proposePieceMove(context, move);
    EXPECT_EQ(written(context, later),
        kSideBySide + "order name:" + nameAt(context, move.other, 1) + " before name:" + first + " at +2\n");
}

TEST(PieceMove, IsForThisMicroBatchAloneOrStaysBetweenItsNeighbours)
{
    const GestureContext context = gpt(1, kSideBySide);
    PieceMove move = layerMove(context);
    move.begin = 4;
    move.end = 5;
    move.caret = 2;
    move.onlyThis = true;
    const std::string name = nameAt(context, move.own, 4);
    EXPECT_EQ(written(context, proposePieceMove(context, move)),
        kSideBySide + "order name:" + name + " before name:" + nameAt(context, move.other, 2)
            + " at -2 of 2\n");
    move.onlyThis = false;
    move.held = true;
    EXPECT_EQ(written(context, proposePieceMove(context, move)),
        kSideBySide + "order name:" + name + " before name:" + nameAt(context, move.other, 2)
            + " at -2\norder name:" + nameAt(context, move.other, 1) + " before name:" + name + " at +2\n");
}

TEST(PieceMove, ReplacesWhatAnEarlierOneWrote)
{
    GestureContext context = gpt(1, kSideBySide);
    PieceMove move = layerMove(context);
    move.begin = 4;
    move.end = 5;
    move.caret = 5;
    const auto moved = [&] {
        const std::string text = written(context, proposePieceMove(context, move));
        context = gpt(1, text);
        return text.substr(kSideBySide.size());
    };
    const std::string name = nameAt(context, move.own, 4);
    EXPECT_EQ(moved(), "order name:" + name + " before name:" + nameAt(context, move.other, 5) + " at -2\n");
    move.caret = 2; // further on: the first row says less
    EXPECT_EQ(moved(), "order name:" + name + " before name:" + nameAt(context, move.other, 2) + " at -2\n");
    move.earlier = false; // and back: it would run against the row
    move.caret = 8;
    EXPECT_EQ(moved(), "order name:" + nameAt(context, move.other, 7) + " before name:" + name + " at +2\n");
    EXPECT_FALSE(proposePieceMove(context, move).accepted()) << "it is there already";
}

TEST(PieceMove, IsRefusedWithTheRowThatRunsTheOtherWay)
{
    GestureContext context = gpt(1, kSideBySide);
    const PieceMove plain = layerMove(context);
    const std::string b3 = nameAt(context, plain.other, 3);
    const std::string a2 = nameAt(context, plain.own, 2);
    context = gpt(1, kSideBySide + "order name:" + b3 + " before name:" + a2 + " at +2\n");
    PieceMove move = layerMove(context);
    move.begin = 5;
    move.end = 6;
    move.caret = 1;
    const Proposal proposal = proposePieceMove(context, move);
    EXPECT_EQ(refusal(proposal),
        nameAt(context, move.own, 5) + " can't run before " + nameAt(context, move.other, 1) + ": row 3 runs "
            + b3 + " before " + a2);
    EXPECT_EQ(proposal.refusal->where, "row:2");
    EXPECT_EQ(proposal.cycle.size(), 4U);
    // Other micro-batches, and what that row leaves room for, are free.
    move.block.microBatch = 3;
    EXPECT_TRUE(proposePieceMove(context, move).accepted());
    move.block.microBatch = 2;
    move.caret = 4;
    EXPECT_TRUE(proposePieceMove(context, move).accepted());
    // A row of whole layers counts as well.
    context = gpt(1, kSideBySide + "order backward & layer:0 before layer:0 at +2\n");
    EXPECT_NE(refusal(proposePieceMove(context, move)).find("row 3"), std::string::npos);
}

TEST(PieceMove, NeedsAPlanAndSomethingToGoBefore)
{
    GestureContext context = gpt(1, kSideBySide);
    PieceMove move = layerMove(context);
    move.begin = 4;
    move.end = 5;
    move.caret = move.other.size();
    EXPECT_NE(
        refusal(proposePieceMove(context, move)).find("no operator of B0 of stage 0"), std::string::npos);
    move.caret = 0;
    move.earlier = false;
    EXPECT_TRUE(proposePieceMove(context, move).refusal);
    move.earlier = true;
    context.plan.reset();
    EXPECT_TRUE(proposePieceMove(context, move).refusal);
}

TEST(SideBySide, IsARowThatPairsTheirStages)
{
    const GestureContext context = gpt(1, "micro-batches 4\nschedule 1f1b\n");
    const BlockRef forward{StageId{0}, Direction::Forward, 2};
    const BlockRef backward{StageId{0}, Direction::Backward, 0};
    const Proposal paired = proposeSideBySide(context, backward, forward); // either of them may be held
    EXPECT_EQ(paired.words, "run F2 of stage 0 beside B0 of stage 0");
    const std::string text = written(context, paired);
    EXPECT_EQ(text, "micro-batches 4\nschedule 1f1b\ninterleave forward stage 0 with backward at -2\n");
    // Others of the same stages take its place, the same ones run apart again.
    const GestureContext with = gpt(1, text);
    EXPECT_EQ(written(with, proposeSideBySide(with, {StageId{0}, Direction::Forward, 3}, backward)),
        "micro-batches 4\nschedule 1f1b\ninterleave forward stage 0 with backward at -3\n");
    const Proposal apart =
        proposeSideBySide(with, {StageId{0}, Direction::Forward, 3}, {StageId{0}, Direction::Backward, 1});
    EXPECT_EQ(apart.words, "run F3 of stage 0 and B1 of stage 0 apart");
    EXPECT_EQ(written(with, apart), "micro-batches 4\nschedule 1f1b\n");
}

TEST(SideBySide, OfOneStageLeavesTheOthersAsTheyAre)
{
    const std::string stages = "micro-batches 4\nstage layer:2-3 : 1\nplace layer:2-3 : devices 1\n"
                               "place layer:0-1 : devices 0\n";
    const GestureContext context = gpt(2, stages + "interleave forward with backward at -2\n");
    ASSERT_TRUE(context.plan);
    EXPECT_EQ(written(context,
                  proposeSideBySide(
                      context, {StageId{0}, Direction::Forward, 2}, {StageId{0}, Direction::Backward, 0})),
        stages + "interleave forward stage 1 with backward at -2\n");
}

TEST(SideBySide, IsRefusedWhereItCannotBe)
{
    const BlockRef forward{StageId{0}, Direction::Forward, 2};
    const GestureContext plain = gpt(1, "micro-batches 4\nschedule 1f1b\n");
    EXPECT_EQ(refusal(proposeSideBySide(plain, forward, {StageId{0}, Direction::Backward, 2})),
        "B2 of stage 0 needs what F2 of stage 0 makes");
    EXPECT_FALSE(proposeSideBySide(plain, forward, forward).accepted());
    const GestureContext combined = gpt(1, kSideBySide);
    EXPECT_NE(refusal(proposeSideBySide(combined, forward, {StageId{0}, Direction::Backward, 0}))
                  .find("the schedule combined-1f1b"),
        std::string::npos);
}

} // namespace
} // namespace planloom
