#include "tests/engine/gallery/gallery_for_tests.h"
#include "tests/engine/gesture/contexts.h"

#include <gtest/gtest.h>

namespace planloom {
namespace {

GestureContext gallery(std::string_view spec, std::int32_t devices)
{
    const GestureContext empty = gpt(devices, "");
    const auto table = galleryTable(spec, empty.model, devices);
    EXPECT_TRUE(table) << describe(table.error());
    return gpt(devices, print(*table));
}

DimensionChip chip(const GestureContext &context, std::string_view name, std::string_view label)
{
    for (const DimensionChip &candidate : chipsOf(context, one(context, name))) {
        if (candidate.label == label)
            return candidate;
    }
    ADD_FAILURE() << name << " has no chip " << label;
    return {};
}

Proposal split(const GestureContext &context, std::string_view name, std::string_view label,
    std::int32_t parts, std::string axis = {})
{
    SplitGesture gesture;
    gesture.on = one(context, name);
    gesture.operators = {gesture.on};
    gesture.dimension = chip(context, name, label).dimension;
    gesture.parts = parts;
    gesture.axis = std::move(axis);
    return proposeSplit(context, gesture);
}

/// The plan after a proposal.
Plan planAfter(const GestureContext &context, const Proposal &proposal)
{
    const GestureContext next =
        contextOf(context.model.index, context.deviceCount, std::string_view(after(context, proposal)));
    EXPECT_TRUE(next.plan) << next.document.text();
    return next.plan ? *next.plan : Plan{};
}

// --- chips
// ----------------------------------------------------------------------------------------------------------

TEST(Chips, StandForEachDimensionOnceAnEdge)
{
    const GestureContext context = gpt(4, "mesh tp=3\n");
    std::string labels;
    for (const DimensionChip &c : chipsOf(context, one(context, "h.1.mlp.c_fc")))
        labels += (c.output ? "/" : "") + c.label + " ";
    EXPECT_EQ(labels, "a b k+ n /a /b /n ");
    EXPECT_EQ(chip(context, "h.1.mlp.c_fc", "k+").counts, (std::vector<std::int32_t>{2, 4, 8, 16, 32, 64}));
    EXPECT_EQ(chip(context, "h.1.mlp.c_fc", "k+").size, 64);
    EXPECT_EQ(
        chip(context, "h.1.attn.attention", "e^").locked, "attention sums over this dimension within a head");
    EXPECT_TRUE(chip(context, "h.1.attn.attention", "e^").counts.empty());
    EXPECT_FALSE(chip(context, "h.1.attn.attention", "t+").counts.empty());
    EXPECT_FALSE(chip(context, "h.1.attn.attention", "h").counts.empty());
    EXPECT_FALSE(chip(context, "h.1.ln_1", "c^").locked.empty());
    EXPECT_TRUE(hasValueSplit(context, one(context, "h.1.mlp.c_fc")));
    EXPECT_FALSE(hasValueSplit(context, one(context, "h.1.attn.attention")));
}

TEST(Chips, OfTheBatchCountWhatMicroBatchesLeave)
{
    EXPECT_EQ(chip(gpt(4, ""), "h.1.mlp.c_fc", "a").counts, (std::vector<std::int32_t>{2, 4, 8}));
    EXPECT_EQ(
        chip(gpt(4, "micro-batches 2\n"), "h.1.mlp.c_fc", "a").counts, (std::vector<std::int32_t>{2, 4}));
    EXPECT_FALSE(chip(gpt(4, "micro-batches 8\n"), "h.1.mlp.c_fc", "a").locked.empty());
}

TEST(Chips, CountsAreLegalSplits)
{
    const GestureContext context = gpt(1, "");
    for (const char *name :
        {"h.0.mlp.c_fc", "h.0.attn.attention", "h.0.attn.query.heads", "embeddings", "wte", "lm_head"}) {
        for (const DimensionChip &c : chipsOf(context, one(context, name))) {
            EXPECT_LE(c.counts.size(), 32u);
            EXPECT_EQ(c.counts.empty(), !c.locked.empty()) << name << c.label;
            for (const std::int32_t count : c.counts) {
                const Split cut{.kind = SplitKind::Dimension, .dimension = c.dimension, .parts = count};
                EXPECT_TRUE(checkPartition(context.graph().at(one(context, name)), {{cut}}))
                    << name << c.label << count;
            }
        }
    }
}

// --- split
// ----------------------------------------------------------------------------------------------------------

TEST(SplitGesture, WritesARowAndPullingAgainChangesTheNumber)
{
    const GestureContext single = gallery("single", 4);
    const Proposal first = split(single, "h.1.mlp.c_fc", "k+", 4);
    EXPECT_EQ(first.words, "split k+ by 4");
    EXPECT_EQ(first.rows, std::vector<std::string>{"split name:h.1.mlp.c_fc : k by 4"});
    EXPECT_EQ(first.operators, std::vector<OperatorId>{one(single, "h.1.mlp.c_fc")});
    EXPECT_TRUE(first.yielding.empty());
    const std::string text = after(single, first);
    EXPECT_EQ(text, "place all : devices 0  @template\nsplit name:h.1.mlp.c_fc : k by 4  @gesture\n");

    const GestureContext again = gpt(4, text);
    EXPECT_EQ(after(again, split(again, "h.1.mlp.c_fc", "k+", 2)),
        "place all : devices 0  @template\nsplit name:h.1.mlp.c_fc : k by 2  @gesture\n");
    EXPECT_EQ(after(again, split(again, "h.1.mlp.c_fc", "k+", 1)), "place all : devices 0  @template\n");
    EXPECT_TRUE(split(again, "h.1.mlp.c_fc", "k+", 4).edit.empty());
    EXPECT_EQ(after(again, split(again, "h.1.mlp.c_fc", "n", 2)),
        "place all : devices 0  @template\nsplit name:h.1.mlp.c_fc : k by 4 then n by 2  @gesture\n");
}

TEST(SplitGesture, OverAnAxisMovesToTheMeshWhereNeeded)
{
    const GestureContext context = gpt(4, "mesh dp=2 tp=2\nplace all : devices 0\n");
    EXPECT_EQ(after(context, split(context, "h.1.mlp.c_fc", "n", 0, "tp")),
        "mesh dp=2 tp=2\nplace !name:h.1.mlp.c_fc : devices 0\nsplit name:h.1.mlp.c_fc : n over tp  "
        "@gesture\n"
        "place name:h.1.mlp.c_fc : dp=0  @gesture\n");
    const GestureContext there = gpt(4, "mesh dp=2 tp=2\n");
    EXPECT_EQ(after(there, split(there, "h.1.mlp.c_fc", "n", 0, "tp")),
        "mesh dp=2 tp=2\nsplit name:h.1.mlp.c_fc : n over tp  @gesture\n");
}

TEST(SplitGesture, KeepsWhatTheMeshSplitsAlready)
{
    const GestureContext context = gpt(4, "mesh dp=2 tp=2\nsplit all : batch over dp\n");
    const Proposal proposal = split(context, "h.1.mlp.c_fc", "n", 2);
    EXPECT_EQ(after(context, proposal),
        "mesh dp=2 tp=2\nsplit !name:h.1.mlp.c_fc : batch over dp\n"
        "split name:h.1.mlp.c_fc : batch over dp then n by 2  @gesture\n");
    EXPECT_EQ(proposal.yielding, std::vector<std::int32_t>{1});
    EXPECT_EQ(proposal.yieldingWords, std::vector<std::string>{"row 2 lets go of 1 operator"});
    EXPECT_EQ(decisionText(planAfter(context, proposal), "h.1.mlp.c_fc"),
        "a:2 replicate:2 n:2 @ 0,0,1,1,2,2,3,3 stage 0");
}

/// A stack of which the solver had cut some operators one way, some another, some not at all.
TEST(SplitGesture, OfAStackTakesThePlaceOfWhatTheSolverChose)
{
    const GestureContext context = gpt(4,
        "mesh tp=4\nsplit name:h.1.mlp.c_fc : a over tp  @solver\n"
        "split name:h.2.mlp.* : batch by 2 then n by 2  @solver\n");
    SplitGesture gesture;
    gesture.operators = forward(context, "name:h.*.mlp.c_fc");
    gesture.on = one(context, "h.1.mlp.c_fc");
    gesture.dimension = chip(context, "h.1.mlp.c_fc", "n").dimension;
    gesture.parts = 4;
    const Proposal proposal = proposeSplit(context, gesture);
    EXPECT_EQ(proposal.rows, std::vector<std::string>{"split name:h.*.mlp.c_fc : n by 4"});
    for (const char *name : {"h.0.mlp.c_fc", "h.1.mlp.c_fc", "h.2.mlp.c_fc"})
        EXPECT_EQ(decisionText(planAfter(context, proposal), name), "n:4 @ 0,1,2,3 stage 0") << name;
    // Over an axis it stands beside what the solver did with another one.
    const GestureContext mesh = gpt(4, "mesh dp=2 tp=2\nsplit all : batch over dp  @solver\n");
    EXPECT_EQ(after(mesh, split(mesh, "h.1.mlp.c_fc", "n", 0, "tp")),
        "mesh dp=2 tp=2\nsplit all : batch over dp  @solver\nsplit name:h.1.mlp.c_fc : n over tp  "
        "@gesture\n");
}

TEST(SplitGesture, NamesADimensionByPlaceForOperatorsOfSeveralKinds)
{
    const GestureContext context = gallery("single", 4);
    SplitGesture gesture;
    gesture.operators = forward(context, "in:h.1.mlp");
    gesture.on = one(context, "h.1.mlp.c_fc");
    gesture.dimension = chip(context, "h.1.mlp.c_fc", "n").dimension;
    gesture.parts = 2;
    EXPECT_EQ(
        proposeSplit(context, gesture).rows, std::vector<std::string>{"split in:h.1.mlp : out0.-1 by 2"});
    gesture.operators = forward(context, "name:h.*.mlp.c_fc");
    EXPECT_EQ(
        proposeSplit(context, gesture).rows, std::vector<std::string>{"split name:h.*.mlp.c_fc : n by 2"});
    gesture.kind = SplitKind::Replicate;
    EXPECT_EQ(
        proposeSplit(context, gesture).rows, std::vector<std::string>{"replicate name:h.*.mlp.c_fc : by 2"});
    gesture.kind = SplitKind::Value;
    EXPECT_EQ(proposeSplit(context, gesture).rows,
        std::vector<std::string>{"split name:h.*.mlp.c_fc : value by 2"});
}

TEST(SplitGesture, IsRefusedInASentence)
{
    const GestureContext single = gallery("single", 4);
    const Proposal third = split(single, "h.1.mlp.c_fc", "k+", 3);
    EXPECT_EQ(refusal(third), "k can't be split by 3: its size is 64 in h.1.mlp.c_fc");
    EXPECT_EQ(third.refusal->where, "operator:h.1.mlp.c_fc/k");
    EXPECT_EQ(third.words, "split k+ by 3");
    EXPECT_EQ(refusal(split(single, "h.1.attn.attention", "e^", 2)),
        "attention sums over this dimension within a head: it can't be split");
    EXPECT_EQ(refusal(split(single, "h.1.mlp.c_fc", "n", 0, "tp")), "there is no mesh with an axis 'tp'");
    const GestureContext three = gpt(3, "");
    EXPECT_EQ(refusal(split(three, "h.1.mlp.c_fc", "n", 2)),
        "2 parts of h.1.mlp.c_fc can't be dealt out to 3 devices: neither number divides the other");
    SplitGesture value;
    value.on = one(single, "h.1.attn.attention");
    value.operators = {value.on};
    value.kind = SplitKind::Value;
    EXPECT_EQ(refusal(proposeSplit(single, value)),
        "the value of h.1.attn.attention can't be split: no input enters it linearly");
    EXPECT_EQ(refusal(proposeSplit(single, {})), "no forward operator is selected");
    const GestureContext micro = gpt(1, "micro-batches 4\n");
    EXPECT_EQ(refusal(split(micro, "h.1.mlp.c_fc", "a", 4)),
        "the batch of h.1.mlp.c_fc can't be cut so: 8 samples in 4 micro-batches don't divide into 4");
}

// --- place
// ----------------------------------------------------------------------------------------------------------

TEST(PlaceGesture, TakesALayerOutOfTheRowThatPlacesAll)
{
    const GestureContext context = gallery("single", 4);
    const Proposal proposal = proposePlace(context, {forward(context, "layer:3"), {{1}}});
    EXPECT_EQ(proposal.words, "place layer 3 on GPU 1");
    EXPECT_EQ(after(context, proposal),
        "place !layer:3 : devices 0  @template\nplace layer:3 : devices 1  @gesture\n");
    EXPECT_EQ(proposal.yieldingWords, std::vector<std::string>{"row 1 lets go of 20 operators"});
    const GestureContext next = gpt(4, after(context, proposal));
    EXPECT_EQ(after(next, proposePlace(next, {forward(next, "layer:3"), {{2}}})),
        "place !layer:3 : devices 0  @template\nplace layer:3 : devices 2  @gesture\n");
    EXPECT_TRUE(proposePlace(next, {forward(next, "layer:3"), {{1}}}).edit.empty());
    EXPECT_EQ(after(next, proposePlace(next, {forward(next, "layer:0-2"), {{3}}})),
        "place !layer:0-3 : devices 0  @template\nplace layer:3 : devices 1  @gesture\n"
        "place layer:0-2 : devices 3  @gesture\n");
}

TEST(PlaceGesture, MovesTheStageAlongWhereTheDataFlowLetsIt)
{
    const GestureContext context = gallery("3d:dp=2,tp=2,pp=2,schedule=1f1b,micro-batches=2", 8);
    const auto stagesOf = [&](const Proposal &proposal, std::string_view name) {
        const Plan plan = planAfter(context, proposal);
        return plan.decisions[static_cast<std::size_t>(one(context, name).index)].stage.index;
    };
    const Proposal last = proposePlace(context, {forward(context, "layer:1"), {{2}, {3}, {6}, {7}}});
    EXPECT_EQ(last.words, "place layer 1 at pp=1");
    EXPECT_EQ(last.rows, (std::vector<std::string>{"place layer:1 : pp=1", "stage layer:1 : 1"}));
    EXPECT_EQ(stagesOf(last, "h.1.mlp.c_fc"), 1);
    EXPECT_EQ(decisionText(planAfter(context, last), "h.1.mlp.c_fc"), "a:2 n:2 @ 2,3,6,7 stage 1");
    const Proposal first = proposePlace(context, {forward(context, "layer:0"), {}, {{"pp", 1}}});
    EXPECT_EQ(first.rows, std::vector<std::string>{"place layer:0 : pp=1"});
    EXPECT_EQ(stagesOf(first, "h.0.mlp.c_fc"), 0);
}

TEST(PlaceGesture, LeavesTheOthersWhereTheyAre)
{
    const GestureContext context = gallery("data-parallel", 4);
    const Proposal proposal = proposePlace(context, {{one(context, "h.1.mlp.c_fc")}, {{1}}});
    const Plan plan = planAfter(context, proposal);
    EXPECT_EQ(decisionText(plan, "h.1.mlp.c_fc"), "whole @ 1 stage 1");
    int moved = 0;
    for (const OperatorId op : forward(context, "all")) {
        const auto at = static_cast<std::size_t>(op.index);
        moved += plan.decisions[at].devices != context.plan->decisions[at].devices;
    }
    EXPECT_EQ(moved, 1) << after(context, proposal);
}

TEST(PlaceGesture, ReplicatesOnEachDeviceAndFrees)
{
    const GestureContext context = gallery("single", 4);
    const Proposal all = proposePlace(context, {{one(context, "h.1.ln_1")}, {{1}, {2}}, {}, true});
    EXPECT_EQ(all.words, "replicate h.1.ln_1 on GPUs 1-2");
    EXPECT_EQ(decisionText(planAfter(context, all), "h.1.ln_1"), "replicate:2 @ 1,2 stage 1");
    const Proposal back = proposePlace(context, {forward(context, "layer:0")});
    EXPECT_EQ(back.words, "free the place of layer 0");
    EXPECT_EQ(after(context, back), "place !layer:0 : devices 0  @template\n");
    EXPECT_EQ(refusal(proposePlace(context, {forward(context, "layer:0"), {{9}}})),
        "there is no device 9: the plan has 4 devices, numbered from 0");
    EXPECT_EQ(refusal(proposePlace(context, {forward(context, "layer:0"), {}, {{"tp", 0}}})),
        "there is no mesh to place on");
    const GestureContext four = gpt(4, "place all : devices 0\nsplit layer:0 : out0.0 by 4\n");
    EXPECT_NE(refusal(proposePlace(four, {forward(four, "layer:0"), {{0}, {1}, {2}}}))
                  .find("can't be dealt out to 3 devices"),
        std::string::npos);
}

// --- hold, free, stage, recompute
// -----------------------------------------------------------------------------------

TEST(Hold, LeavesThePlanAsItIsAndSaysItInRows)
{
    for (const char *spec : {"single", "data-parallel", "tensor-parallel", "pipeline:micro-batches=2",
             "zero1", "3d:dp=1,tp=2,pp=2,micro-batches=2"}) {
        SCOPED_TRACE(spec);
        const GestureContext context = gallery(spec, 4);
        for (const char *selector :
            {"all", "layer:1", "name:h.2.mlp.act", "kind:LayerNorm", "in:h.0.attn | layer:3"}) {
            const auto operators = forward(context, selector);
            const Proposal proposal = proposeHold(context, operators);
            ASSERT_FALSE(proposal.refusal);
            const Plan plan = planAfter(context, proposal);
            for (const OperatorId op : forward(context, "all")) {
                const auto at = static_cast<std::size_t>(op.index);
                ASSERT_EQ(plan.decisions[at].partition, context.plan->decisions[at].partition)
                    << context.graph().at(op).name << "\n"
                    << after(context, proposal);
                ASSERT_EQ(plan.decisions[at].devices, context.plan->decisions[at].devices);
                const bool held = std::find(operators.begin(), operators.end(), op) != operators.end();
                ASSERT_TRUE(!held || !plan.decisions[at].rows.empty());
            }
            const GestureContext next =
                contextOf(context.model.index, 4, std::string_view(after(context, proposal)));
            EXPECT_TRUE(proposeHold(next, operators).edit.empty()) << "holding twice";
        }
    }
}

/// Holds what a selector says, and finds every decision as it was.
/// @return of them: the partitions
std::vector<Partition> heldPartitions(const GestureContext &context, const char *selector)
{
    const auto operators = forward(context, selector);
    const Proposal proposal = proposeHold(context, operators);
    EXPECT_FALSE(proposal.refusal);
    const Plan plan = planAfter(context, proposal);
    std::vector<Partition> partitions;
    for (const OperatorId op : operators) {
        const auto at = static_cast<std::size_t>(op.index);
        EXPECT_EQ(plan.decisions[at].partition, context.plan->decisions[at].partition);
        EXPECT_EQ(plan.decisions[at].devices, context.plan->decisions[at].devices);
        partitions.push_back(plan.decisions[at].partition);
    }
    return partitions;
}

TEST(Hold, LeavesSlicesToTheirRow)
{
    const auto held = heldPartitions(
        gpt(2, "mesh tp=2\nsplit all : heads over tp\nslice layer:* : sequence by 2\n"), "layer:1");
    EXPECT_TRUE(std::any_of(
        held.begin(), held.end(), [](const Partition &partition) { return sliceCount(partition) == 2; }));
}

TEST(Hold, LeavesLanesToTheirRow)
{
    for (const char *rows :
        {"lanes all : 2\nplace all : devices 0,1\n", "mesh way=2\nlanes all : over way\n"}) {
        SCOPED_TRACE(rows);
        const auto held = heldPartitions(gpt(2, rows), "all"); // the loss is added up in one lane
        EXPECT_TRUE(std::any_of(
            held.begin(), held.end(), [](const Partition &partition) { return laneCount(partition) == 2; }));
    }
}

TEST(BlockOrder, NamesTheLanesOfItsBlocks)
{
    const GestureContext context = gpt(2,
        "lanes all : 2\nmicro-batches 2\nstage layer:0 : 0\nplace layer:0 : devices 0,1\nstage layer:1 : 1\n"
        "place layer:1 : devices 1,0\nschedule 1f1b\n");
    const BlockRef moved{StageId{0}, Direction::Forward, 1, {.lane = 0}};
    const BlockRef before{StageId{1}, Direction::Backward, 0, {.lane = 1}};
    const Proposal proposal = proposeBlockOrder(context, moved, before, false);
    ASSERT_FALSE(proposal.refusal) << proposal.refusal->message;
    ASSERT_EQ(proposal.rows.size(), 1U);
    EXPECT_NE(proposal.rows.front().find(" in lane 0 before "), std::string::npos) << proposal.rows.front();
    EXPECT_NE(proposal.rows.front().find(" in lane 1 at -1"), std::string::npos) << proposal.rows.front();
    // The other way round on the same pair: the row gives way.
    GestureContext after = context;
    ASSERT_TRUE(after.document.apply(proposal.edit));
    const Proposal back = proposeBlockOrder(after, before, moved, false);
    EXPECT_EQ(back.edit.splices.empty(), false);
    // Micro-batches of one lane run in their order; of the other lane they are blocks of their own.
    const BlockRef same{StageId{0}, Direction::Forward, 0, {.lane = 0}};
    EXPECT_TRUE(proposeBlockOrder(context, moved, same, false).refusal.has_value());
    const BlockRef other{StageId{0}, Direction::Forward, 0, {.lane = 1}};
    EXPECT_FALSE(proposeBlockOrder(context, moved, other, false).refusal.has_value());
}

TEST(Free, TakesOperatorsOutOfTheRowsThatSpeakOfThem)
{
    const GestureContext context = gpt(4,
        "mesh dp=2 tp=2\nsplit all : batch over dp\nplace layer:1 : dp=1\nsplit name:h.1.mlp.c_fc : n over "
        "tp\n"
        "order name:h.1.ln_1 before name:h.2.ln_1\nrecompute layer:0-1 per layer\n");
    const Proposal proposal = proposeFree(context, forward(context, "layer:1"));
    EXPECT_EQ(proposal.words, "free layer 1");
    EXPECT_EQ(
        after(context, proposal), "mesh dp=2 tp=2\nsplit all : batch over dp\nrecompute layer:0 per layer\n");
    EXPECT_EQ(proposal.yieldingWords.size(), 4u);
    const GestureContext zero = gpt(4, "mesh dp=4\nzero1 weight:h.*.mlp.c_fc.weight over dp\n");
    const GestureContext less = gpt(4, after(zero, proposeFree(zero, forward(zero, "layer:0-2"))));
    EXPECT_EQ(rowsActingOn(less, one(less, "h.0.mlp.c_fc")), std::vector<std::int32_t>{});
    EXPECT_EQ(rowsActingOn(less, one(less, "h.3.mlp.c_fc")), std::vector<std::int32_t>{1});
}

TEST(Rows, ActingOnAnOperatorAreThoseThatBind)
{
    const GestureContext context = gpt(4,
        "mesh dp=2 tp=2\nsplit all : batch over dp\noff place layer:1 : dp=1\nsplit in:h.1.mlp : k over tp\n"
        "order name:h.1.ln_1 before backward & layer:1\nzero1 weight:* over dp\nplace layer:0 : dp=0\n");
    EXPECT_EQ(rowsActingOn(context, one(context, "h.1.mlp.c_fc")), (std::vector<std::int32_t>{1, 3, 5}));
    EXPECT_EQ(rowsActingOn(context, one(context, "h.1.mlp.act")), (std::vector<std::int32_t>{1}));
    EXPECT_EQ(rowsActingOn(context, one(context, "h.1.mlp.act'")), (std::vector<std::int32_t>{1, 4}));
    EXPECT_EQ(rowsActingOn(context, one(context, "h.1.ln_1")), (std::vector<std::int32_t>{1, 4, 5}));
    EXPECT_TRUE(rowsActingOn(context, {-1}).empty());
}

TEST(Stage, FollowsTheDataFlow)
{
    const GestureContext context = gallery("pipeline:micro-batches=2", 4);
    EXPECT_EQ(refusal(proposeStage(context, forward(context, "layer:3"), {0})),
        "h.3.ln_1 in stage 0 reads what h.2.residual_2 makes in stage 2");
    const Proposal proposal = proposeStage(context, forward(context, "layer:1"), {2});
    EXPECT_EQ(proposal.rows, std::vector<std::string>{"stage layer:1 : 2"});
    EXPECT_TRUE(planAfter(context, proposal).graph);
    EXPECT_TRUE(proposeStage(context, forward(context, "layer:1"), {1}).edit.empty());
}

TEST(Recompute, TurnsOnAndOff)
{
    const GestureContext context = gpt(1, "recompute layer:0\n");
    const Proposal on = proposeRecompute(context, forward(context, "layer:0-2"));
    EXPECT_EQ(after(context, on), "recompute layer:0\nrecompute layer:1-2 per layer  @gesture\n");
    const GestureContext next = gpt(1, after(context, on));
    EXPECT_EQ(after(next, proposeRecompute(next, forward(next, "layer:0-1"))),
        "recompute layer:2 per layer  @gesture\n");
}

} // namespace
} // namespace planloom
