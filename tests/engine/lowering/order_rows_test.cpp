// Order and in-flight rows on whole plans: what the schedules of the devices hold in the end.

#include "engine/lowering/order/in_flight.h"
#include "engine/schedule/schedule.h"
#include "engine/table/selector_index.h"
#include "engine/table/table_text.h"
#include "engine/verify/verify.h"

#include "tests/engine/gallery/gallery_for_tests.h"
#include "tests/engine/lowering/models_for_tests.h"
#include "tests/engine/lowering/random_tables.h"

#include <gtest/gtest.h>

#include <map>

namespace planloom {
namespace {

struct Lowered {
    Plan plan{};
    ExecutionPlan execution{};
};

Lowered lowered(const GraphSnapshot &graph, std::int32_t devices, const std::string &rows,
    const std::string &gallery = "single")
{
    auto table = galleryTable(gallery, graph, devices);
    EXPECT_TRUE(table) << describe(table.error());
    const auto added = parseTable(rows);
    EXPECT_TRUE(added) << describe(added.error());
    table->rows.insert(table->rows.end(), added->rows.begin(), added->rows.end());
    auto completion = completePlan(graph, devices, *table);
    EXPECT_TRUE(completion) << describe(completion.error());
    EXPECT_FALSE(firstError(*completion)) << describe(*firstError(*completion));
    auto execution = lower(completion->plan, *clusterNamed("cpu:" + std::to_string(devices)));
    EXPECT_TRUE(execution) << describe(execution.error());
    return {std::move(completion->plan), *std::move(execution)};
}

/// Positions of the kernels of each operator and micro-batch on device `device`, first runs only.
std::map<std::pair<std::string, std::int32_t>, std::size_t> positions(
    const ExecutionPlan &plan, std::size_t device = 0)
{
    std::map<std::pair<std::string, std::int32_t>, std::size_t> found;
    std::size_t position = 0;
    for (const ScheduleEntry &entry : plan.devices[device].schedule)
        for (const Instruction &instruction :
            plan.devices[device].segments[static_cast<std::size_t>(entry.segment)].instructions) {
            ++position;
            if (instruction.kind == InstructionKind::Kernel && !instruction.recompute)
                found.emplace(std::pair(plan.graph->at(instruction.op).name, entry.microBatch), position);
        }
    return found;
}

TEST(OrderRows, InFlightRowsSetTheWarmUpOfEveryStage)
{
    const auto graph = trainingStep("zoo:mlp?layers=8&hidden=8&batch=16");
    const std::string pipeline = "pipeline:schedule=1f1b,micro-batches=8";
    EXPECT_EQ(
        mostInFlight(lowered(graph, 4, "", pipeline).execution), (std::vector<std::int32_t>{4, 3, 2, 1}));
    EXPECT_EQ(mostInFlight(lowered(graph, 4, "in-flight 2", pipeline).execution),
        (std::vector<std::int32_t>{2, 2, 2, 1}));
    EXPECT_EQ(mostInFlight(lowered(graph, 4, "in-flight 6 stage 0", pipeline).execution).front(), 6);
    EXPECT_EQ(
        mostInFlight(lowered(graph, 4, "in-flight 3", "pipeline:schedule=gpipe,micro-batches=8").execution),
        (std::vector<std::int32_t>{3, 3, 3, 3}));
    for (const char *rows : {"in-flight 1", "in-flight 2 stage 1", "in-flight 7"}) {
        const auto plan = lowered(graph, 4, rows, pipeline);
        EXPECT_TRUE(liftedLimits(plan.plan, plan.execution).empty()) << rows;
        const auto report = verify(plan.execution);
        ASSERT_TRUE(report);
        EXPECT_TRUE(report->ok()) << rows;
    }
}

TEST(OrderRows, NoDeviceOfARandomPlanHoldsMoreThanItsStagesLimit)
{
    const auto graph = trainingStep("zoo:mlp?layers=3&hidden=12&batch=16");
    std::int32_t checked = 0;
    for (std::uint32_t seed = 0; seed < 200; ++seed) {
        SCOPED_TRACE(seed);
        std::mt19937 random(seed);
        const std::int32_t devices = 1 + static_cast<std::int32_t>(seed % 5);
        ConstraintTable table = randomTable(*graph, devices, random, {.orders = false});
        const auto limit = 1 + static_cast<std::int32_t>(random() % 4);
        table.rows.push_back(Row{.selector = {}, .rule = InFlightRule{limit, -1}});
        const auto completion = completePlan(graph, devices, table);
        ASSERT_TRUE(completion);
        if (firstError(*completion))
            continue;
        if (scheduleTemplates()[static_cast<std::size_t>(completion->plan.schedule)].make)
            continue; // says itself what each rank runs when
        const auto execution = lower(completion->plan, *clusterNamed("dgx-a100:8"));
        if (!execution)
            continue;
        ++checked;
        EXPECT_TRUE(liftedLimits(completion->plan, *execution).empty());
        for (const std::int32_t most : mostInFlight(*execution))
            EXPECT_LE(most, limit);
    }
    EXPECT_GT(checked, 60);
}

TEST(OrderRows, ALimitThatAnotherRowBreaksIsToldToItsRow)
{
    const auto graph = trainingStep("zoo:mlp?layers=2&hidden=8&batch=8");
    const auto plan =
        lowered(graph, 1, "micro-batches 4\nschedule 1f1b\nin-flight 1\norder forward before backward at -1");
    const auto lifted = liftedLimits(plan.plan, plan.execution);
    ASSERT_EQ(lifted.size(), 1u);
    EXPECT_NE(lifted[0].second.find("stage 0 holds 2 micro-batches"), std::string::npos) << lifted[0].second;
    EXPECT_EQ(lifted[0].first, plan.plan.inFlightRows[0]);
}

TEST(OrderRows, OneMicroBatchAloneIsMoved)
{
    const auto graph = trainingStep("zoo:mlp?layers=2&hidden=8&batch=8");
    const auto kindsOf = [](const ExecutionPlan &plan) {
        std::string text;
        for (const ScheduleEntry &entry : plan.devices[0].schedule) {
            const SegmentKind kind = plan.devices[0].segments[static_cast<std::size_t>(entry.segment)].kind;
            if (kind == SegmentKind::Forward || kind == SegmentKind::Backward)
                text += (kind == SegmentKind::Forward ? "F" : "B") + std::to_string(entry.microBatch) + " ";
        }
        return text;
    };
    EXPECT_EQ(kindsOf(lowered(graph, 1, "micro-batches 4").execution), "F0 B0 F1 B1 F2 B2 F3 B3 ");
    EXPECT_EQ(
        kindsOf(lowered(graph, 1, "micro-batches 4\norder forward before backward at -1 of 2").execution),
        "F0 B0 F1 F2 B1 B2 F3 B3 ");
}

TEST(OrderRows, AllWithAllHoldsForEveryPairInsideABlock)
{
    // Two branches without data between them.
    const auto graph = trainingStep("zoo:gpt?layers=2&hidden=16&heads=2&seq=8&vocab=32&batch=4&fused=0");
    const auto forwardRow = [&](const char *rows, const char *first, const char *second) {
        const auto plan = lowered(graph, 1, rows);
        const auto at = positions(plan.execution);
        const SelectorIndex index(graph);
        std::int32_t pairs = 0;
        for (const OperatorId a : index.select(*parseSelector(first)))
            for (const OperatorId b : index.select(*parseSelector(second))) {
                if (graph->at(a).direction != Direction::Forward
                    || graph->at(b).direction != Direction::Forward)
                    continue;
                EXPECT_LT(at.at({graph->at(a).name, 0}), at.at({graph->at(b).name, 0}))
                    << graph->at(a).name << " before " << graph->at(b).name;
                ++pairs;
            }
        EXPECT_GT(pairs, 1);
    };
    forwardRow("order name:h.0.attn.v_attn* | name:h.0.attn.value* before name:h.0.attn.q_attn",
        "name:h.0.attn.v_attn* | name:h.0.attn.value*", "name:h.0.attn.q_attn");
    forwardRow("order name:h.*.attn.v_attn before name:h.1.attn.q_attn | name:h.1.attn.k_attn | "
               "name:h.1.attn.query*",
        "name:h.*.attn.v_attn", "name:h.1.attn.q_attn | name:h.1.attn.k_attn | name:h.1.attn.query*");
}

TEST(OrderRows, LargeSelectionsThatMeetAsBlocksCostLittleAndVerify)
{
    const auto graph = trainingStep("zoo:gpt?layers=40&hidden=8&heads=2&seq=4&vocab=16&batch=4");
    const SelectorIndex index(graph);
    const auto count = [&](const char *text) {
        std::size_t n = 0;
        for (const OperatorId op : index.select(*parseSelector(text)))
            n += graph->at(op).direction == Direction::Forward ? 1u : 0u;
        return n;
    };
    ASSERT_GE(count("layer:0-19"), 300u);
    ASSERT_NE(count("layer:0-19"), count("layer:20-39 | name:ln_f"));
    const auto plan = lowered(graph, 2,
        "order layer:0-19 before layer:20-39 | name:ln_f at -1\norder layer:0-19 before layer:20-39 | "
        "name:ln_f",
        "pipeline:schedule=1f1b,micro-batches=4");
    EXPECT_LE(plan.plan.orders.size(), 2 * count("layer:20-39 | name:ln_f"));
    const auto report = verify(plan.execution);
    ASSERT_TRUE(report);
    EXPECT_TRUE(report->ok());
}

} // namespace
} // namespace planloom
