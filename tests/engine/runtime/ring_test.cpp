// Ring attention: keys and values go round the devices, turn by turn.

#include "engine/gallery/gallery.h"
#include "tests/engine/lowering/random_tables.h"
#include "tests/engine/runtime/attention_models.h"
#include "tests/engine/runtime/model_files.h"

#include <cstdlib>
#include <map>
#include <random>
#include <utility>
#include <vector>

namespace planloom {
namespace {

std::string ringRows(std::int32_t members)
{
    return "mesh cp=" + std::to_string(members) + "\nring kind:Attention : over cp\n";
}

void expectRing(const GraphSnapshot &graph, const std::string &rows, std::int32_t devices)
{
    expectLikeTheModel(graph, rows, devices, InstructionKind::Shift);
}

TEST(RingAttention, GivesTheModelsNumbersForwardAndBackward)
{
    const AttentionForm forms[] = {{}, {.causal = true}, {.keyHeads = 2, .causal = true},
        {.keyHeads = 2, .dropout = 0.25}, {.keyHeads = 1}, {.causal = true, .window = 3}, {.window = 2},
        {.memory = 12}, {.masked = true}, {.causal = true, .memory = 16, .masked = true}};
    for (const AttentionForm &form : forms)
        for (const std::int32_t members : {2, 4}) {
            SCOPED_TRACE(textOf(form));
            expectRing(attentionModel(form), ringRows(members), members);
        }
}

TEST(RingAttention, GoesWithOtherRows)
{
    const GraphSnapshot graph = attentionModel({.keyHeads = 2, .causal = true});
    for (const char *rows : {"mesh cp=2 tp=2\nring all : over cp\nsplit name:attention : heads over tp\n",
             "mesh tp=2 cp=2\nsplit name:attention : heads over tp\nring all : over cp\n",
             "mesh dp=2 cp=2\nsplit all : batch over dp\nring all : over cp\n",
             "mesh cp=2 sp=2\nring all : over cp\nsplit name:attention : s over sp\n",
             "mesh cp=2 rp=2\nring all : over cp\nreplicate name:attention : over rp\n",
             "mesh cp=4\nmicro-batches 2\nring all : over cp\nrecompute all\n",
             "mesh cp=4\nring all : over cp\nsplit-backward all\noffload all : activations\n",
             "mesh cp=4\nring all : over cp\nsplit !kind:Attention : sequence over cp\nzero3 all over cp\n"})
        expectRing(graph, rows, 4);
    // Keys that are cut over devices, too: what is merged there is weighed against the others'.
    const char *both = "mesh cp=2 kp=2\nring all : over cp\nsplit name:attention : t over kp\n";
    expectRing(graph, both, 4);
    expectLikeTheModel(graph, both, 4, InstructionKind::Weigh);
    // One key head for all: its gradient is a sum over the ring and over the heads.
    expectRing(attentionModel({.keyHeads = 1}),
        "mesh cp=2 tp=2\nring all : over cp\nsplit name:attention : heads over tp\n", 4);
}

TEST(RingAttention, TrainsModelsWhoseSequenceIsInParts)
{
    const char *parts = "split !kind:Attention : sequence over cp\n";
    const auto train = [&](const char *model, const std::string &rows, std::int32_t devices) {
        SCOPED_TRACE(model);
        if (const GraphSnapshot graph = trainingStepOf(model))
            expectRing(graph, rows, devices);
    };
    for (const std::int32_t members : {2, 4}) {
        train(
            "zoo:gpt?layers=2&hidden=16&heads=4&seq=8&batch=2&vocab=24", ringRows(members) + parts, members);
        train("zoo:llama?layers=2&hidden=16&heads=4&kv_heads=2&seq=8&batch=2&vocab=24",
            ringRows(members) + parts, members);
        train("gpt2_tiny", ringRows(members), members);
        train("t5_tiny", "mesh cp=" + std::to_string(members) + "\nring name:*EncDec* : over cp\n", members);
    }
    train("gpt2_tiny",
        "mesh pp=2 cp=2\nplace layer:0 : pp=0\nplace layer:1 : pp=1\nmicro-batches 2\nschedule 1f1b\n"
        "ring kind:Attention : over cp\n",
        4);
}

TEST(RingAttention, OfTheGalleryTrains)
{
    const GraphSnapshot graph = trainingStepOf("zoo:gpt?layers=2&hidden=16&heads=4&seq=8&batch=4&vocab=24");
    const CostModel costs = costModelOf(*clusterNamed("cpu:8"));
    for (const auto &[spec, devices] :
        {std::pair{"context-parallel", 4}, {"3d:cp=2,tp=2", 4}, {"3d:cp=2,tp=2,sequence=1", 4},
            {"3d:dp=2,cp=2,zero=3", 4}, {"3d:pp=2,cp=2,tp=2,schedule=1f1b,micro-batches=2", 8}}) {
        const auto table = galleryTable(spec, graph, devices, costs);
        ASSERT_TRUE(table) << spec << ": " << describe(table.error());
        expectRing(graph, print(*table), devices);
    }
}

TEST(RingAttention, TakesTurnsAndPassesEachPartOnce)
{
    const std::int32_t n = 4;
    const auto plan =
        planOfRows(attentionModel({}), ringRows(n) + "split !kind:Attention : sequence over cp\n", n);
    ASSERT_TRUE(plan) << describe(plan.error());
    for (std::int32_t d = 0; d < n; ++d) {
        std::map<SegmentKind, std::vector<std::int64_t>> firstKeys; // that kernels read, in their order
        std::map<SegmentKind, std::int64_t> shifts;
        const DeviceProgram &program = plan->devices[static_cast<std::size_t>(d)];
        for (const Segment &segment : program.segments)
            for (const Instruction &instruction : segment.instructions) {
                if (!instruction.op || plan->graph->at(instruction.op).kind != OperatorKind::Attention)
                    continue;
                if (instruction.kind == InstructionKind::Shift)
                    ++shifts[segment.kind];
                EXPECT_TRUE(!isCommunication(instruction.kind) || instruction.kind == InstructionKind::Shift)
                    << nameOf(instruction.kind);
                if (instruction.kind != InstructionKind::Kernel)
                    continue;
                const std::size_t key = segment.kind == SegmentKind::Forward ? 1 : 4; // behind 3 gradients
                const auto &box = program.buffers[static_cast<std::size_t>(instruction.inputs[key])].index;
                firstKeys[segment.kind].push_back(box.ranges[2].begin);
            }
        std::vector<std::int64_t> expected;
        for (std::int32_t turn = 0; turn < n; ++turn)
            expected.push_back((d + n - turn) % n * (8 / n));
        EXPECT_EQ(firstKeys[SegmentKind::Forward], expected);
        EXPECT_EQ(firstKeys[SegmentKind::Backward], expected);
        EXPECT_EQ(shifts[SegmentKind::Forward], 2 * (n - 1)); // keys, values
        EXPECT_EQ(shifts[SegmentKind::Backward], 2 * (n - 1) + 2 * n); // and their gradients, home at last
    }
}

TEST(RingAttention, LeavesOutPartsThatSeeNothing)
{
    const auto kernels = [](const AttentionForm &form, std::int32_t members) {
        const auto plan = planOfRows(attentionModel(form), ringRows(members), members);
        EXPECT_TRUE(plan) << describe(plan.error());
        std::pair<std::int64_t, std::int64_t> counts; // kernels, shifts
        counts.first = countOf(*plan, [&](const Instruction &instruction) {
            return instruction.kind == InstructionKind::Kernel
                && plan->graph->at(instruction.op).kind == OperatorKind::Attention;
        });
        counts.second = countOfKind(*plan, InstructionKind::Shift);
        return counts;
    };
    for (const std::int32_t n : {2, 4}) {
        const std::int64_t shifts = n * (4 * (n - 1) + 2 * n);
        EXPECT_EQ(kernels({}, n), (std::pair<std::int64_t, std::int64_t>{2 * n * n, shifts}));
        EXPECT_EQ(kernels({.causal = true}, n),
            (std::pair<std::int64_t, std::int64_t>{2 * n * (n + 1) / 2, shifts}));
    }
    // Queries of a part of two see the part before it at most: a turn more, and no third. Sums go home.
    EXPECT_EQ(kernels({.causal = true, .window = 2}, 4),
        (std::pair<std::int64_t, std::int64_t>{2 * (4 + 3), 4 * (4 * 1 + 2 * 4)}));
}

/// Random rows about everything but attentions, which go round.
TEST(RingAttention, GoesWithRandomRows)
{
    const char *asked = std::getenv("PLANLOOM_RANDOM_PLANS");
    const int rounds = asked ? std::atoi(asked) : 12;
    std::mt19937 random(23);
    int ran = 0;
    for (const char *model : {"zoo:gpt?layers=2&hidden=16&heads=4&seq=8&batch=4&vocab=24",
             "zoo:t5?layers=2&hidden=16&heads=4&d_kv=4&src=8&tgt=12&batch=4&vocab=24"}) {
        const GraphSnapshot graph = trainingStepOf(model);
        const auto isAttention = [&](const std::string &name) {
            return std::any_of(graph->operators.begin(), graph->operators.end(),
                [&](const Operator &op) { return op.kind == OperatorKind::Attention && op.name == name; });
        };
        // The ones of T5 that have no positions in their scores.
        const std::string rings =
            std::string(model).starts_with("zoo:t5") ? "name:*cross_attention.attention" : "kind:Attention";
        for (int round = 0; round < rounds; ++round) {
            SCOPED_TRACE(testing::Message() << model << ", round " << round);
            ConstraintTable table = randomTable(*graph, 4, random, {.touched = 0.3, .orders = false});
            std::erase_if(table.rows, [&](const Row &row) {
                const bool speaks = std::holds_alternative<AttentionRule>(row.rule)
                    || ((std::holds_alternative<OpTransRule>(row.rule)
                            || std::holds_alternative<OpAssignRule>(row.rule))
                        && row.selector.kind == SelectorKind::Set && isAttention(row.selector.names.front()));
                return speaks || std::holds_alternative<RecomputeRule>(row.rule)
                    || (round % 4 != 3 && std::holds_alternative<MicroBatchesRule>(row.rule));
            });
            std::string text = round % 2 == 0 ? "mesh cp=4\n" : "mesh dp=2 cp=2\n";
            text += "place " + rings + " : mesh\nring " + rings + " : over cp\n";
            if (round % 4 == 1)
                text += "split kind:Attention : batch over dp\n";
            if (round % 3 == 0)
                text += "recompute layer:* per layer\n";
            const auto rows = parseTable(text);
            ASSERT_TRUE(rows) << describe(rows.error());
            table.rows.insert(table.rows.end(), rows->rows.begin(), rows->rows.end());
            const auto completion = completePlan(graph, 4, table);
            ASSERT_TRUE(completion) << describe(completion.error());
            if (firstError(*completion))
                continue;
            const auto plan = lower(completion->plan, *clusterNamed("cpu:4"));
            if (!plan)
                continue; // refused with a reason, as without the ring
            ++ran;
            EXPECT_GT(countOfKind(*plan, InstructionKind::Shift), 0);
            const auto proof = verify(*plan);
            ASSERT_TRUE(proof && proof->ok()) << proof->failure->reason << "\n" << print(table);
            RunOptions options;
            options.randomWeights = true;
            options.keepGradients = true;
            const auto outcome = runOnCpu(*plan, options);
            ASSERT_TRUE(outcome) << describe(outcome.error()) << "\n" << print(table);
            const auto reference = planOfRows(graph, "", 1);
            ASSERT_TRUE(reference);
            const auto check = checkAgainst(*reference, *plan, *outcome, options);
            ASSERT_TRUE(check) << describe(check.error());
            EXPECT_TRUE(check->ok) << check->worstTensor << " " << check->worstError << "\n" << print(table);
        }
    }
    EXPECT_GT(ran, rounds / 3); // most others are refused with a reason
}

TEST(RingAttention, RefusesWhatCannotGoRound)
{
    const auto refusal = [](const AttentionForm &form, const std::string &rows, std::int32_t devices) {
        const auto plan = planOfRows(attentionModel(form), rows, devices);
        EXPECT_FALSE(plan);
        return plan ? Error{} : plan.error();
    };
    EXPECT_EQ(refusal({}, ringRows(3), 3).where, "row:1/rule"); // 8 queries
    EXPECT_EQ(refusal({.memory = 9}, ringRows(2), 2).where, "row:1/rule"); // 9 keys
    EXPECT_EQ(refusal({}, "mesh cp=2\nring all : over tp\n", 2).where, "row:1/rule"); // no such axis
    // Rows that say otherwise: probabilities in memory, other turns, another ring, uneven parts.
    for (const char *row : {"attention all : plain", "coshard all : heads by 2", "ring all : over rp",
             "split name:attention : s into 5,3 over cp", "split name:attention : t into 5,3 over cp"}) {
        SCOPED_TRACE(row);
        const Error error =
            refusal({}, "mesh cp=2 rp=2\nring kind:Attention : over cp\n" + std::string(row) + "\n", 4);
        EXPECT_EQ(error.where, "row:1/rule");
        EXPECT_NE(error.message.find("this row and row 3"), std::string::npos) << describe(error);
    }
}

} // namespace
} // namespace planloom
