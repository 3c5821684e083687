// Plans whose backward passes are split, or whose blocks run side by side: proven, run, and compared with the
// model on one device.

#include "engine/lowering/lower.h"
#include "engine/runtime/training/check.h"
#include "engine/table/table_text.h"
#include "engine/verify/verify.h"

#include "tests/engine/runtime/like_the_model.h"

#include <gtest/gtest.h>

#include <cctype>
#include <map>
#include <ostream>
#include <random>
#include <set>

namespace planloom {
namespace {

struct BlockPlan {
    const char *model;
    const char *rows;
    std::int32_t devices;
};

std::ostream &operator<<(std::ostream &out, const BlockPlan &plan)
{
    return out << plan.model << " " << plan.rows;
}

class BlockSchedules : public testing::TestWithParam<BlockPlan>
{
};

TEST_P(BlockSchedules, LikeTheModelOnOneDevice)
{
    const BlockPlan &given = GetParam();
    const GraphSnapshot graph = trainingStep(given.model);
    const auto plan = loweredRows(graph, given.rows, given.devices);
    ASSERT_TRUE(plan) << describe(plan.error());
    bool split = false;
    bool sliced = false;
    for (const DeviceProgram &device : plan->devices) {
        for (const Segment &segment : device.segments)
            split = split || segment.kind == SegmentKind::WeightGradient;
        for (const ScheduleEntry &entry : device.schedule)
            sliced = sliced
                || (entry.begin > 0
                    && device.segments[static_cast<std::size_t>(entry.segment)].kind == SegmentKind::Forward);
    }
    const std::string rows = given.rows;
    EXPECT_EQ(split, rows.find("split-backward") != rows.npos || rows.find("zb-h1") != rows.npos);
    EXPECT_EQ(sliced, rows.find("combined-1f1b") != rows.npos || rows.find("interleave") != rows.npos);
    expectLikeTheModel(graph, *plan);
}

constexpr const char *kGptOfTwo = "zoo:gpt?layers=2&hidden=16&heads=4&seq=8&batch=4&vocab=24";
constexpr const char *kT5OfOne = "zoo:t5?layers=1&hidden=16&heads=4&src=8&tgt=4&batch=4&vocab=24";
constexpr const char *kSwinOfTwo =
    "zoo:swin?layers=2&hidden=8&heads=2&window=2&image=32&patch=2&classes=5&batch=2";
constexpr const char *kEvoformerOfTwo =
    "zoo:evoformer?layers=2&msa=8&pair=8&single=6&seqs=3&residues=4&heads=2&"
    "pair_heads=2&head_width=4";
constexpr const char *kMlpOfThree = "zoo:mlp?layers=3&hidden=12&batch=8";

const BlockPlan kBlockPlans[] = {{kMlpOfThree, "split-backward all", 1},
    {kMlpOfThree, "split-backward all\nsplit kind:Linear : value by 2\nplace all : devices 0,1", 2},
    {kMlpOfThree,
        "split-backward all\nmesh dp=2\nsplit all : batch over dp\nzero1 all over dp\nmicro-batches 2", 2},
    {kGptOfTwo, "split-backward all\nmicro-batches 2", 1}, {kGptOfTwo, "split-backward layer:1", 1},
    {kGptOfTwo, "split-backward all\nrecompute layer:* per layer\nmicro-batches 2", 1},
    {kGptOfTwo, "split-backward all\nmesh x=2\nsplit all : heads over x", 2},
    {kGptOfTwo, "split-backward all\nmesh x=2\nsplit all : sequence over x", 2},
    {kGptOfTwo,
        "micro-batches 4\nstage layer:1 : 1\nplace layer:1 : devices 1\nplace layer:0 : devices 0\n"
        "schedule zb-h1",
        2},
    {kGptOfTwo,
        "micro-batches 4\nstage layer:1 : 1\nplace layer:1 : devices 1\nplace layer:0 : devices 0\n"
        "schedule 1f1b\nsplit-backward all\nrecompute layer:* per operator",
        2},
    {kGptOfTwo,
        "micro-batches 2\nmesh dp=2 pp=2\nsplit all : batch over dp\nstage layer:1 : 1\nplace layer:1 : "
        "pp=1\nplace layer:0 : pp=0\nschedule zb-h1",
        4},
    // What is made of weights alone goes through operators that no row names, or that take turns.
    {kT5OfOne, "split-backward kind:Transpose", 1},
    // A region makes again for the first pass what a group makes again for the second.
    {kT5OfOne,
        "split-backward all\ncoshard name:encoder.block.0.feed_forward.act : batch by 2\n"
        "recompute set{encoder.block.0.feed_forward.act, encoder.block.0.feed_forward.wo} per layer",
        1},
    {kT5OfOne, "split-backward all\ncoshard name:*relative_attention_bias : out0.-1 by 2", 1},
    {kT5OfOne, "split-backward all\nmesh x=2\nsplit all : heads over x\nmicro-batches 2", 2},
    {kGptOfTwo, "mesh x=2\nsplit all : heads over x\nmicro-batches 4\nschedule combined-1f1b", 2},
    {kGptOfTwo,
        "mesh tp=2 pp=2\nsplit all : heads over tp\nmicro-batches 4\nstage layer:1 : 1\nplace layer:1 : "
        "pp=1\n"
        "place layer:0 : pp=0\nschedule combined-1f1b",
        4},
    {kGptOfTwo,
        "mesh dp=2 tp=2\nsplit all : batch over dp\nsplit all : heads over tp\nmicro-batches 2\n"
        "schedule combined-1f1b\nsplit-backward all",
        4},
    {kT5OfOne, "mesh x=2\nsplit all : heads over x\nmicro-batches 2\nschedule combined-1f1b", 2},
    {kGptOfTwo, "mesh x=2\nsplit all : heads over x\nmicro-batches 4\ninterleave forward with backward at -1",
        2},
    {kGptOfTwo,
        "mesh x=2\nsplit all : heads over x\nmicro-batches 2\ninterleave forward with forward at +1\n"
        "schedule gpipe\nrecompute layer:* per layer",
        2},
    {kGptOfTwo,
        "mesh x=2\nsplit all : heads over x\nmicro-batches 4\nsplit-backward all\n"
        "interleave forward with weight-gradient at -1",
        2},
    {kGptOfTwo,
        "micro-batches 2\nsplit all : batch by 2\nstage layer:0 : 0\nplace layer:0 : devices 0,1\n"
        "stage layer:1 : 1\nplace layer:1 : devices 1,0\nschedule chimera",
        2},
    {kGptOfTwo,
        "micro-batches 4\nstage layer:1 : 1\nplace layer:1 : devices 1\nplace layer:0 : devices 0\n"
        "schedule gpipe\ncommunicate layer:0 sends after layer:0 at +1\n"
        "communicate layer:1 & backward sends after layer:1 & backward at +1",
        2},
    {kGptOfTwo,
        "mesh dp=2\nsplit all : batch over dp\nmicro-batches 2\n"
        "communicate layer:1 reductions after backward & layer:0",
        2},
    {kT5OfOne,
        "mesh dp=2\nsplit all : batch over dp\nzero3 all over dp\n"
        "communicate in:*.ff gathers after name:*.attn.out_proj",
        2},
    {kSwinOfTwo, "split-backward all\nmicro-batches 2", 1}, {kEvoformerOfTwo, "split-backward all", 1}};

/// Any pairs of blocks, under any schedule: accepted and equal, or refused where they wait for one another.
TEST(InterleavedRows, RunLikeTheModelOrAreRefused)
{
    const GraphSnapshot graph = trainingStep(kGptOfTwo);
    const auto reference = loweredRows(graph, "", 1);
    ASSERT_TRUE(reference);
    int accepted = 0;
    int refused = 0;
    for (std::uint32_t seed = 0; seed < 80; ++seed) {
        std::mt19937 random(seed);
        const auto below = [&random](int n) { return std::uniform_int_distribution<int>(0, n - 1)(random); };
        constexpr const char *kSchedules[] = {"sequential", "gpipe", "1f1b", "zb-h1", "combined-1f1b"};
        constexpr const char *kPasses[] = {"forward", "backward", "weight-gradient"};
        std::string rows = "mesh tp=2 pp=2\nsplit all : heads over tp\nmicro-batches 4\n";
        if (below(4) > 0)
            rows += "stage layer:1 : 1\nplace layer:1 : pp=1\nplace layer:0 : pp=0\n";
        rows += std::string("schedule ") + kSchedules[below(5)] + "\n";
        if (below(3) == 0)
            rows += "split-backward all\n";
        if (below(3) == 0)
            rows += "slice all : sequence by 2\n";
        for (int n = 1 + below(2); n > 0; --n) {
            const std::string stage = below(2) == 0 ? "" : " stage " + std::to_string(below(2));
            rows += std::string("interleave ") + kPasses[below(3)] + stage + " with " + kPasses[below(3)];
            if (const int offset = below(7) - 3; offset != 0)
                rows += " at " + std::to_string(offset);
            rows += "\n";
        }
        SCOPED_TRACE(rows);
        const auto plan = loweredRows(graph, rows, 4);
        if (!plan) {
            EXPECT_EQ(plan.error().where.rfind("row:", 0), 0U) << describe(plan.error());
            ++refused;
            continue;
        }
        ++accepted;
        const auto report = verify(*plan);
        ASSERT_TRUE(report) << describe(report.error());
        ASSERT_TRUE(report->ok()) << report->failure->reason;
        RunOptions options;
        options.keepGradients = true;
        options.randomWeights = true;
        const auto outcome = runOnCpu(*plan, options);
        ASSERT_TRUE(outcome) << describe(outcome.error());
        const auto check = checkAgainst(*reference, *plan, *outcome, options);
        ASSERT_TRUE(check) << describe(check.error());
        EXPECT_TRUE(check->ok) << check->worstTensor << " " << check->worstError;
    }
    EXPECT_GT(accepted, 10);
    EXPECT_GT(refused, 10);
}

/// What a row says.
struct Asked {
    std::string first{};
    std::string second{};
    int offset = 0;
    int only = -1;
};

/// Every device that runs both runs them so.
void expectRunsBefore(const ExecutionPlan &plan, const Asked &asked)
{
    for (const DeviceProgram &program : plan.devices) {
        std::map<std::pair<std::string, int>, std::pair<int, int>> places; // first and last, by micro-batch
        int place = 0;
        for (const ScheduleEntry &entry : program.schedule) {
            const Segment &segment = program.segments[static_cast<std::size_t>(entry.segment)];
            const auto end =
                entry.end < 0 ? static_cast<std::int32_t>(segment.instructions.size()) : entry.end;
            for (std::int32_t i = entry.begin; isPass(segment.kind) && i < end; ++i) {
                const Instruction &run = segment.instructions[static_cast<std::size_t>(i)];
                if (run.kind != InstructionKind::Kernel || run.recompute)
                    continue;
                ++place;
                places.try_emplace({plan.graph->at(run.op).name, entry.microBatch}, place, place)
                    .first->second.second = place;
            }
        }
        for (int i = 0; i < plan.microBatches; ++i) {
            const auto first = places.find({asked.first, i});
            const auto second = places.find({asked.second, i + asked.offset});
            if ((asked.only < 0 || asked.only == i) && first != places.end() && second != places.end()) {
                EXPECT_LT(first->second.second, second->second.first)
                    << asked.first << " of " << i << " before " << asked.second;
            }
        }
    }
}

/// Any orders of operators of blocks that run side by side: cut there and equal, or refused with a row where
/// they run in a circle.
TEST(PiecesOfInterleavedBlocks, RunLikeTheModelInAnyOrder)
{
    const GraphSnapshot graph = trainingStep(kGptOfTwo);
    const auto reference = loweredRows(graph, "", 1);
    ASSERT_TRUE(reference);
    int accepted = 0;
    int refused = 0;
    int moved = 0;
    for (std::uint32_t seed = 0; seed < 60; ++seed) {
        std::mt19937 random(seed);
        const auto below = [&random](int n) { return std::uniform_int_distribution<int>(0, n - 1)(random); };
        std::string rows = "mesh tp=2 pp=2\nsplit all : heads over tp\nmicro-batches 4\n"
                           "stage layer:1 : 1\nplace layer:1 : pp=1\nplace layer:0 : pp=0\n";
        const bool byRow = below(3) == 0;
        rows += byRow ? "schedule 1f1b\ninterleave forward stage 0 with backward at -2\n"
                      : "schedule combined-1f1b\n";
        if (below(3) == 0)
            rows += "recompute layer:* per layer\n";
        if (below(4) == 0)
            rows += "slice all : sequence by 2\n";
        const auto plain = loweredRows(graph, rows, 4);
        ASSERT_TRUE(plain) << describe(plain.error());
        std::vector<Asked> orders;
        for (int n = 1 + below(3); n > 0; --n) {
            const int stage = byRow ? 0 : below(2);
            const auto operatorOf = [&](Direction direction) {
                for (;;) {
                    const Operator &op = graph->operators[static_cast<std::size_t>(
                        below(static_cast<int>(graph->operators.size())))];
                    const std::string scope = "h." + std::to_string(stage) + ".";
                    if (op.direction == direction && op.name.rfind(scope, 0) == 0)
                        return op.name;
                }
            };
            const bool forwardFirst = below(2) == 0;
            const std::string names[] = {operatorOf(Direction::Forward), operatorOf(Direction::Backward)};
            orders.push_back({names[forwardFirst ? 0 : 1], names[forwardFirst ? 1 : 0],
                forwardFirst ? stage - 2 : 2 - stage, -1});
            rows += "order name:" + names[forwardFirst ? 0 : 1]
                + " before name:" + names[forwardFirst ? 1 : 0] + " at " + (forwardFirst ? "-" : "+")
                + std::to_string(2 - stage);
            if (below(3) == 0) {
                orders.back().only = forwardFirst ? 2 : 1;
                rows += " of " + std::to_string(orders.back().only);
            }
            rows += "\n";
        }
        SCOPED_TRACE(rows);
        const auto plan = loweredRows(graph, rows, 4);
        if (!plan) {
            EXPECT_EQ(plan.error().where.rfind("row:", 0), 0U) << describe(plan.error());
            ++refused;
            continue;
        }
        ++accepted;
        for (const Asked &asked : orders)
            expectRunsBefore(*plan, asked);
        for (std::size_t d = 0; d < plan->devices.size(); ++d)
            moved += plan->devices[d].schedule != plain->devices[d].schedule ? 1 : 0;
        const auto report = verify(*plan);
        ASSERT_TRUE(report) << describe(report.error());
        ASSERT_TRUE(report->ok()) << report->failure->reason;
        RunOptions options;
        options.keepGradients = true;
        options.randomWeights = true;
        const auto outcome = runOnCpu(*plan, options);
        ASSERT_TRUE(outcome) << describe(outcome.error());
        const auto check = checkAgainst(*reference, *plan, *outcome, options);
        ASSERT_TRUE(check) << describe(check.error());
        EXPECT_TRUE(check->ok) << check->worstTensor << " " << check->worstError;
    }
    EXPECT_GT(accepted, 30);
    EXPECT_GT(refused, 2);
    EXPECT_GT(moved, 30);
}

TEST(Bidirectional, GalleryPlanIsTheModel)
{
    const GraphSnapshot graph = trainingStep("zoo:gpt?layers=4&hidden=16&heads=4&seq=8&batch=8&vocab=24");
    for (const char *gallery :
        {"bidirectional:micro-batches=4", "bidirectional:micro-batches=2", "bidirectional"}) {
        SCOPED_TRACE(gallery);
        const auto table = galleryTable(gallery, graph, 4);
        ASSERT_TRUE(table) << describe(table.error());
        const auto completion = completePlan(graph, 4, *table);
        ASSERT_TRUE(completion && !firstError(*completion));
        const auto plan = lower(completion->plan, *clusterNamed("cpu:4"));
        ASSERT_TRUE(plan) << describe(plan.error());
        // Both ends of the pipeline on each device, and a copy of their weights.
        std::set<std::int32_t> stages;
        for (const Segment &segment : plan->devices[0].segments)
            if (isPass(segment.kind))
                stages.insert(segment.stage.index);
        EXPECT_EQ(stages, (std::set<std::int32_t>{0, 3}));
        expectLikeTheModel(graph, *plan);
    }
    EXPECT_FALSE(galleryTable("bidirectional", graph, 3));
}

INSTANTIATE_TEST_SUITE_P(Plans, BlockSchedules, testing::ValuesIn(kBlockPlans), [](const auto &info) {
    std::string name = std::to_string(info.index) + "_";
    for (const char letter : std::string(info.param.rows).substr(0, 60))
        name += std::isalnum(static_cast<unsigned char>(letter)) != 0 ? letter : '_';
    return name;
});

} // namespace
} // namespace planloom
