// What is known of programs makes a simulation quicker and changes nothing.

#include "engine/lowering/order/sequence.h"
#include "engine/simulate/known_programs.h"
#include "engine/simulate/simulate.h"

#include "tests/engine/lowering/models_for_tests.h"
#include "tests/engine/simulate/same_timeline.h"

#include <gtest/gtest.h>

namespace planloom {
namespace {

Plan planOfRows(const GraphSnapshot &graph, const std::string &rows, std::int32_t devices)
{
    const auto table = parseTable(rows);
    EXPECT_TRUE(table) << describe(table.error());
    auto completion = completePlan(graph, devices, *table);
    EXPECT_TRUE(completion && !firstError(*completion)) << rows;
    return std::move(completion->plan);
}

/// Simulated with what is known so far, and without.
void expectNoDifference(
    const ExecutionPlan &plan, const Cluster &cluster, std::shared_ptr<const KnownPrograms> &known)
{
    SimulateOptions options;
    options.programs = &known;
    const auto quick = simulate(plan, cluster, options);
    ASSERT_TRUE(quick) << describe(quick.error());
    ASSERT_TRUE(known);
    EXPECT_TRUE(isOf(*known, plan));
    const auto anew = simulate(plan, cluster);
    ASSERT_TRUE(anew) << describe(anew.error());
    expectSameTimeline(*quick, *anew);
}

TEST(KnownPrograms, OfAnotherOrderGiveWhatReadingThemAnewGives)
{
    const GraphSnapshot graph = trainingStep("zoo:gpt?layers=4&hidden=16&heads=4&seq=8&batch=16&vocab=24");
    const std::string stages = "mesh dp=2 tp=2 pp=2\nsplit all : batch over dp\nsplit all : heads over tp\n"
                               "stage layer:0-1 : 0\nstage layer:2-3 : 1\nplace layer:2-3 : pp=1\n"
                               "place layer:0-1 : pp=0\nmicro-batches 8\n";
    for (const char *profile : {"dgx-a100:8", "dgx2-v100:8", "cpu:8"}) {
        SCOPED_TRACE(profile);
        const Cluster cluster = *clusterNamed(profile);
        const auto materialized =
            materialize(planOfRows(graph, stages + "schedule 1f1b", 8), cluster, costModelOf(cluster));
        ASSERT_TRUE(materialized) << describe(materialized.error());
        std::shared_ptr<const KnownPrograms> known;
        std::shared_ptr<const KnownPrograms> first;
        for (const char *rows : {"schedule 1f1b", "schedule gpipe", "schedule sequential",
                 "schedule 1f1b\nin-flight 3 stage 0", "schedule combined-1f1b",
                 "schedule 1f1b\norder backward & layer:0 before layer:0 at +2 of 1"}) {
            SCOPED_TRACE(rows);
            const auto plan = sequence(*materialized, planOfRows(graph, stages + rows, 8));
            ASSERT_TRUE(plan && *plan) << rows;
            expectNoDifference(**plan, cluster, known);
            first = first ? first : known;
            EXPECT_TRUE(isOf(*first, **plan)) << "they share their programs";
        }
    }
}

TEST(KnownPrograms, OfDevicesThatWereAlikeAreReadWhereAnOrderTellsThemApart)
{
    const GraphSnapshot graph = trainingStep("zoo:gpt?layers=2&hidden=16&heads=4&seq=8&batch=8&vocab=24");
    const Cluster cluster = *clusterNamed("dgx-a100:2");
    ExecutionPlan plan =
        *lower(planOfRows(graph, "mesh dp=2\nsplit all : batch over dp\nmicro-batches 4", 2), cluster);
    std::shared_ptr<const KnownPrograms> known;
    expectNoDifference(plan, cluster, known);
    ASSERT_FALSE(known->devices[1].compiled) << "one stood for both";
    // A block in two runs, one behind the other: the same in time, but another schedule.
    std::vector<ScheduleEntry> &schedule = plan.devices[1].schedule;
    for (std::size_t i = 0; i < schedule.size(); ++i) {
        const auto &segment = plan.devices[1].segments[static_cast<std::size_t>(schedule[i].segment)];
        if (segment.kind != SegmentKind::Forward || segment.instructions.size() < 2)
            continue;
        ScheduleEntry rest = schedule[i];
        schedule[i].end = rest.begin = 1;
        schedule.insert(schedule.begin() + static_cast<std::ptrdiff_t>(i) + 1, rest);
        break;
    }
    expectNoDifference(plan, cluster, known);
    EXPECT_TRUE(known->devices[1].compiled);
}

TEST(KnownPrograms, OfOtherPlansAreNotTaken)
{
    const GraphSnapshot graph = trainingStep("zoo:mlp?layers=2&hidden=12&batch=8");
    const Cluster cluster = *clusterNamed("cpu:2");
    const Plan plan = planOfRows(graph, "micro-batches 2", 2);
    const ExecutionPlan one = *lower(plan, cluster);
    const ExecutionPlan other = *lower(planOfRows(graph, "micro-batches 4", 2), cluster);
    std::shared_ptr<const KnownPrograms> known;
    expectNoDifference(one, cluster, known);
    EXPECT_FALSE(isOf(*known, other));
    EXPECT_FALSE(isOf(*known, *lower(plan, cluster))) << "equal, but not shared";
    expectNoDifference(other, cluster, known);
    EXPECT_TRUE(isOf(*known, other));
    // What is changed is another program.
    ExecutionPlan changed = other;
    changed.devices[0].segments.edit();
    EXPECT_FALSE(isOf(*known, changed));
}

} // namespace
} // namespace planloom
