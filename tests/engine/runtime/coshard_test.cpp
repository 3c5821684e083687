// Coshard regions, which take turns, against the unpartitioned model: alone and beside other rows.

#include "engine/frontend/onnx/import_onnx.h"
#include "engine/runtime/training/check.h"
#include "engine/table/table_text.h"
#include "engine/verify/verify.h"
#include "tests/engine/lowering/models_for_tests.h"
#include "tests/engine/runtime/model_files.h"

#include "planloom_paths.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>

namespace planloom {
namespace {

struct CoshardCase {
    const char *model;
    const char *table;
    std::int32_t devices;
};

class Coshard : public testing::TestWithParam<CoshardCase>
{
};

/// Forward operators of the largest region.
std::int64_t largestRegion(const Plan &plan)
{
    std::map<std::int32_t, std::int64_t> size;
    std::int64_t most = 0;
    for (std::size_t i = 0; i < plan.decisions.size(); ++i)
        if (plan.decisions[i].coshardRegion >= 0 && plan.graph->operators[i].direction == Direction::Forward)
            most = std::max(most, ++size[plan.decisions[i].coshardRegion]);
    return most;
}

/// Kernels of one part of a region before those of the next, on every device.
void expectTurns(const Plan &plan, const ExecutionPlan &lowered)
{
    for (const DeviceProgram &program : lowered.devices)
        for (const Segment &segment : program.segments) {
            std::int32_t region = -1;
            std::int32_t turn = 0;
            for (const Instruction &instruction : segment.instructions) {
                if (instruction.kind != InstructionKind::Kernel)
                    continue;
                const OperatorDecision &decision =
                    plan.decisions[static_cast<std::size_t>(instruction.op.index)];
                if (decision.coshardRegion < 0)
                    continue;
                const std::int32_t now = turnOf(decision, instruction.part);
                EXPECT_TRUE(decision.coshardRegion != region || now >= turn || now == 0);
                region = decision.coshardRegion;
                turn = now;
            }
        }
}

/// Rows that keep have nothing run again.
bool recomputes(const ExecutionPlan &lowered)
{
    for (const DeviceProgram &program : lowered.devices)
        for (const Segment &segment : program.segments)
            for (const Instruction &instruction : segment.instructions)
                if (instruction.recompute)
                    return true;
    return false;
}

TEST_P(Coshard, RunsEqualToTheModel)
{
    const CoshardCase &test = GetParam();
    const GraphSnapshot graph = trainingStepOf(test.model);
    if (!graph)
        GTEST_SKIP() << "the model set is not at " << kModelFiles;
    const auto table = parseTable(test.table);
    ASSERT_TRUE(table) << describe(table.error());
    const auto completion = completePlan(graph, test.devices, *table);
    ASSERT_TRUE(completion) << describe(completion.error());
    ASSERT_FALSE(firstError(*completion)) << describe(*firstError(*completion));
    EXPECT_GE(largestRegion(completion->plan), 3);
    const auto lowered = lower(completion->plan, *clusterNamed("cpu:" + std::to_string(test.devices)));
    ASSERT_TRUE(lowered) << describe(lowered.error());
    expectTurns(completion->plan, *lowered);
    const bool keeps = std::all_of(table->rows.begin(), table->rows.end(), [](const Row &row) {
        const auto *coshard = std::get_if<CoshardRule>(&row.rule);
        return !std::holds_alternative<RecomputeRule>(row.rule) && (!coshard || coshard->keep);
    });
    EXPECT_EQ(recomputes(*lowered), !keeps);
    const auto report = verify(*lowered);
    ASSERT_TRUE(report) << describe(report.error());
    ASSERT_TRUE(report->ok()) << report->failure->reason;
    RunOptions options;
    options.keepGradients = true;
    options.randomWeights = true;
    const auto outcome = runOnCpu(*lowered, options);
    ASSERT_TRUE(outcome) << describe(outcome.error());
    const auto reference = lower(completePlan(graph, 1, ConstraintTable{})->plan, *clusterNamed("cpu:1"));
    ASSERT_TRUE(reference);
    const auto check = checkAgainst(*reference, *lowered, *outcome, options);
    ASSERT_TRUE(check) << describe(check.error());
    EXPECT_TRUE(check->ok) << check->worstTensor << " " << check->worstError << " at "
                           << check->firstDifference;
}

constexpr const char *kSmallGpt = "zoo:gpt?layers=2&hidden=16&heads=4&seq=8&batch=4&vocab=24";

const CoshardCase kCoshard[]{
    {kSmallGpt, "coshard all : batch by 2", 1},
    {kSmallGpt, "coshard all : heads by 4", 1},
    {kSmallGpt, "coshard all : sequence by 2", 1},
    {kSmallGpt, "coshard in:*.mlp : feed-forward by 4", 1},
    {kSmallGpt, "coshard all : heads by 2\nrecompute layer:* per layer", 1},
    {kSmallGpt, "coshard all : batch by 2\nrecompute layer:* per selection", 1},
    {kSmallGpt, "mesh tp=2\nsplit all : heads over tp\ncoshard all : heads by 2", 2},
    {kSmallGpt, "mesh tp=2\nsplit all : heads over tp\ncoshard all : batch by 2", 2},
    {kSmallGpt, "mesh dp=2\nsplit all : batch over dp\ncoshard all : heads by 2\nmicro-batches 2", 2},
    {kSmallGpt, "mesh dp=2\nsplit all : batch over dp\ncoshard all : sequence by 2", 2},
    {kSmallGpt,
        "place layer:0 : devices 0\nplace layer:1 : devices 1\n"
        "micro-batches 2\nschedule 1f1b\ncoshard all : batch by 2",
        2},
    {kSmallGpt,
        "mesh pp=2 tp=2\nplace layer:0 : pp=0\nplace layer:1 : pp=1\nsplit all : heads over tp\n"
        "micro-batches 2\nschedule gpipe\ncoshard all : heads by 2\nrecompute layer:* per layer",
        4},
    {"gpt2_tiny", "coshard all : batch by 2", 1},
    {"gpt2_tiny", "coshard all : heads by 2", 1},
    {"gpt2_tiny", "mesh tp=2\nsplit all : heads over tp\ncoshard all : sequence by 2", 2},
    {"gpt2_tiny", "mesh tp=2\nsplit all : heads over tp\ncoshard all : heads by 2\nmicro-batches 2", 2},
    {"t5_tiny", "coshard all : batch by 2", 1},
    {"t5_tiny", "coshard all : heads by 2\nrecompute layer:* per layer", 1},
    {"t5_tiny", "mesh tp=2\nsplit all : heads over tp\ncoshard all : sequence by 2", 2},
    {"swin_tiny", "coshard all : heads by 2", 1},
    {"swin_tiny", "coshard all : batch by 2", 1},
    {"swin_tiny", "mesh tp=2\nsplit all : heads over tp\ncoshard all : height by 2", 2},
    {"evoformer_tiny", "coshard all : heads by 2", 1},
    {"evoformer_tiny", "coshard all : features by 2\nrecompute all per layer", 1},
    {kSmallGpt, "mesh dp=2\nsplit all : batch over dp\nzero3 all\ncoshard all : batch by 2\nmicro-batches 1",
        2},
    {kSmallGpt, "mesh dp=2\nsplit all : batch over dp\nzero2 all\ncoshard all : heads by 2\nmicro-batches 2",
        2},
    {"evoformer_tiny", "mesh dp=2\nsplit all : heads over dp\ncoshard all : features by 2", 2},
    {kSmallGpt, "coshard all : batch by 2 keep", 1},
    {kSmallGpt, "coshard all : heads by 4 keep", 1},
    {kSmallGpt, "coshard all : sequence by 2 keep", 1},
    {kSmallGpt, "coshard in:*.mlp : feed-forward by 4 keep\ncoshard in:*.attn : heads by 2", 1},
    {kSmallGpt, "coshard all : heads by 2 keep\nrecompute layer:1 per layer", 1},
    {kSmallGpt, "mesh tp=2\nsplit all : heads over tp\ncoshard all : heads by 2 keep", 2},
    {kSmallGpt,
        "mesh dp=2\nsplit all : batch over dp\nzero3 all\ncoshard all : heads by 2 keep\n"
        "micro-batches 2",
        2},
    {kSmallGpt,
        "place layer:0 : devices 0\nplace layer:1 : devices 1\n"
        "micro-batches 2\nschedule 1f1b\ncoshard all : batch by 2 keep",
        2},
    {"gpt2_tiny", "mesh tp=2\nsplit all : heads over tp\ncoshard all : heads by 2 keep\nmicro-batches 2", 2},
    {"t5_tiny", "coshard all : batch by 2 keep", 1},
    {"swin_tiny", "mesh tp=2\nsplit all : heads over tp\ncoshard all : height by 2 keep", 2},
    {"evoformer_tiny", "coshard all : features by 2 keep", 1},
    // Another stage makes one summand of a gradient that a region reads, the region itself the other.
    {kSmallGpt, "place name:*.mlp.* : devices 1\ncoshard all : sequence by 2", 2},
};

INSTANTIATE_TEST_SUITE_P(Rows, Coshard, testing::ValuesIn(kCoshard), [](const auto &info) {
    std::string name = std::to_string(info.index) + "_" + info.param.model;
    for (char &c : name)
        if (!std::isalnum(static_cast<unsigned char>(c)))
            c = '_';
    return name;
});

} // namespace
} // namespace planloom
