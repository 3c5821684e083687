#include "engine/analyse/plan_difference.h"

#include "engine/table/table_text.h"

#include "tests/engine/gallery/gallery_for_tests.h"
#include "tests/engine/simulate/gallery_plans.h"
#include "tests/engine/table/random_table.h"

#include <map>

namespace planloom {
namespace {

const char *const kModel = "zoo:mlp?layers=4&hidden=16&batch=16";

ExecutionPlan planOfRows(const GraphSnapshot &graph, std::int32_t devices, const char *rows)
{
    const auto table = parseTable(rows);
    EXPECT_TRUE(table) << describe(table.error());
    const auto completion = completePlan(graph, devices, *table);
    EXPECT_TRUE(completion);
    EXPECT_FALSE(firstError(*completion)) << describe(*firstError(*completion));
    auto plan = lower(completion->plan, *clusterNamed("dgx-a100:" + std::to_string(devices)));
    EXPECT_TRUE(plan) << describe(plan.error());
    return *std::move(plan);
}

const OperatorDifference *findOperator(const PlanDifference &difference, const std::string &name)
{
    for (const OperatorDifference &one : difference.operators)
        if (one.name == name)
            return &one;
    return nullptr;
}

TEST(PlanDifference, OfAPlanWithItselfIsEmpty)
{
    for (const SimulatedPlan &plan : galleryPlans()) {
        const auto difference = differenceOf(plan.plan, plan.plan);
        ASSERT_TRUE(difference);
        EXPECT_TRUE(difference->empty()) << plan.name;
        EXPECT_EQ(difference->same, static_cast<std::int32_t>(plan.plan.graph->operators.size()));
        for (const MetricDifference &metric : metricsOf(plan.timeline, plan.timeline)) {
            EXPECT_EQ(metric.delta, 0) << metric.name;
            EXPECT_EQ(metric.percent.value_or(0), 0);
        }
    }
}

TEST(PlanDifference, TheOtherWayRoundIsTheMirrorImage)
{
    auto plans = galleryPlans();
    for (SimulatedPlan &plan : randomPlans("zoo:mlp?layers=4&hidden=16&batch=16", 20))
        plans.push_back(std::move(plan));
    const GraphSnapshot graph = trainingStep(kModel);
    for (const char *schedule : {"sequential", "gpipe", "1f1b"}) // of one placement
        for (const char *rows : {"", "in-flight 1", "in-flight 3 stage 0"}) {
            auto table = galleryTable("pipeline:schedule=gpipe,micro-batches=8", graph, 4);
            ASSERT_TRUE(table);
            for (Row &row : table->rows)
                if (std::holds_alternative<ScheduleRule>(row.rule))
                    row = *parseRow(std::string("schedule ") + schedule);
            if (*rows)
                table->rows.push_back(*parseRow(rows));
            const auto completion = completePlan(graph, 4, *table);
            ASSERT_TRUE(completion && !firstError(*completion));
            plans.push_back(simulated(
                schedule + std::string(rows), *lower(completion->plan, *clusterNamed("dgx-a100:4"))));
        }
    std::int32_t ordered = 0;
    for (std::size_t i = 0; i < plans.size(); ++i)
        for (std::size_t j = i % 3; j < plans.size(); j += 3) {
            const auto there = differenceOf(plans[i].plan, plans[j].plan);
            const auto back = differenceOf(plans[j].plan, plans[i].plan);
            ASSERT_TRUE(there && back);
            EXPECT_EQ(there->same, back->same);
            std::map<std::pair<OperatorId, OperatorId>, std::tuple<bool, bool, bool>> a;
            std::map<std::pair<OperatorId, OperatorId>, std::tuple<bool, bool, bool>> b;
            for (const OperatorDifference &one : there->operators) {
                a[{one.a, one.b}] = {one.split, one.placed, one.ordered};
                ordered += one.ordered ? 1 : 0;
                EXPECT_TRUE(one.split || one.placed || one.ordered || !one.a.valid() || !one.b.valid());
            }
            for (const OperatorDifference &one : back->operators)
                b[{one.b, one.a}] = {one.split, one.placed, one.ordered};
            EXPECT_EQ(a, b) << plans[i].name << ", " << plans[j].name;
        }
    EXPECT_GT(ordered, 0);
}

TEST(PlanDifference, SaysWhatDiffers)
{
    const GraphSnapshot graph = trainingStep(kModel);
    const ExecutionPlan base = planOfRows(graph, 2, "place all : devices 0");
    const std::string first = "layers.1.linear";
    const auto placed = differenceOf(base,
        planOfRows(graph, 2,
            "place name:layers.1.linear : devices 1\n"
            "place !name:layers.1.linear & forward : devices 0"));
    ASSERT_TRUE(placed);
    ASSERT_NE(findOperator(*placed, first), nullptr);
    EXPECT_TRUE(findOperator(*placed, first)->placed);
    EXPECT_FALSE(findOperator(*placed, first)->split);
    EXPECT_EQ(findOperator(*placed, "layers.2.linear"), nullptr);

    const auto split = differenceOf(
        base, planOfRows(graph, 2, "place all : devices 0\nsplit name:layers.1.linear : out0.-1 by 2"));
    ASSERT_TRUE(split);
    ASSERT_NE(findOperator(*split, first), nullptr);
    EXPECT_TRUE(findOperator(*split, first)->split);
    EXPECT_FALSE(findOperator(*split, first)->placed);
    EXPECT_GT(split->same, 0);
}

TEST(PlanDifference, OtherSchedulesAreOtherOrdersAlone)
{
    const GraphSnapshot graph = trainingStep(kModel);
    const auto difference = differenceOf(galleryPlan(graph, "pipeline:schedule=gpipe,micro-batches=4", 2),
        galleryPlan(graph, "pipeline:schedule=1f1b,micro-batches=4", 2));
    ASSERT_TRUE(difference);
    EXPECT_FALSE(difference->empty());
    for (const OperatorDifference &one : difference->operators) {
        EXPECT_TRUE(one.ordered);
        EXPECT_FALSE(one.split || one.placed);
    }
    EXPECT_GT(difference->same, 0);
}

TEST(PlanDifference, AttentionsThatKeepTheirProbabilitiesAreComputedDifferently)
{
    const GraphSnapshot graph = trainingStep(smallModels()[1]);
    const auto difference =
        differenceOf(planOfRows(graph, 1, ""), planOfRows(graph, 1, "attention layer:1 : plain"));
    ASSERT_TRUE(difference);
    ASSERT_EQ(difference->operators.size(), 2U);
    for (const OperatorDifference &one : difference->operators) {
        EXPECT_TRUE(one.name.starts_with("h.1.attn.attention")) << one.name;
        EXPECT_TRUE(one.computed);
        EXPECT_FALSE(one.split || one.placed || one.ordered);
    }
}

TEST(PlanDifference, OtherModelsMatchByName)
{
    const auto difference =
        differenceOf(galleryPlan(trainingStep("zoo:mlp?layers=3&hidden=16&batch=16"), "single", 1),
            galleryPlan(trainingStep("zoo:mlp?layers=4&hidden=16&batch=16"), "single", 1));
    ASSERT_TRUE(difference);
    EXPECT_GT(difference->same, 0);
    EXPECT_TRUE(std::any_of(difference->operators.begin(), difference->operators.end(),
        [](const OperatorDifference &one) { return !one.a.valid() && one.b.valid(); }));
}

TEST(RowDifference, NamesRowsOfOneTableAndChangedOnes)
{
    const auto a = parseTable("mesh dp=2\nsplit name:x : m by 2\nstage layer:0 : 0\nschedule 1f1b\n");
    const auto b =
        parseTable("schedule gpipe\nsplit name:x : m by 4\nmesh dp=2  # moved, and noted\nrecompute all\n");
    ASSERT_TRUE(a && b);
    using Kind = RowDifference::Kind;
    EXPECT_EQ(differenceOf(*a, *b),
        (std::vector<RowDifference>{{Kind::Changed, {1}, {1}}, {Kind::OnlyInA, {2}, {}},
            {Kind::Changed, {3}, {0}}, {Kind::OnlyInB, {}, {3}}}));
    EXPECT_TRUE(differenceOf(*a, *a).empty());
    const auto off = parseTable("off mesh dp=2\nsplit name:x : m by 2\nstage layer:0 : 0\nschedule 1f1b\n");
    ASSERT_TRUE(off);
    EXPECT_EQ(differenceOf(*a, *off), (std::vector<RowDifference>{{Kind::Changed, {0}, {0}}}));
}

TEST(RowDifference, OfRandomTablesMirrors)
{
    RandomTable random(12);
    for (int trial = 0; trial < 500; ++trial) {
        ConstraintTable a = random.table();
        ConstraintTable b = random.table();
        for (const Row &row : a.rows)
            if (random.chance(50))
                b.rows.push_back(row);
        EXPECT_TRUE(differenceOf(a, a).empty());
        std::map<RowDifference::Kind, std::size_t> there;
        std::map<RowDifference::Kind, std::size_t> back;
        std::vector<bool> seenA(a.rows.size(), false);
        for (const RowDifference &one : differenceOf(a, b)) {
            ++there[one.kind];
            EXPECT_EQ(one.a.valid(), one.kind != RowDifference::Kind::OnlyInB);
            EXPECT_EQ(one.b.valid(), one.kind != RowDifference::Kind::OnlyInA);
            if (one.a.valid()) {
                EXPECT_FALSE(seenA[static_cast<std::size_t>(one.a.index)]);
                seenA[static_cast<std::size_t>(one.a.index)] = true;
            }
        }
        for (const RowDifference &one : differenceOf(b, a))
            ++back[one.kind];
        EXPECT_EQ(there[RowDifference::Kind::OnlyInA], back[RowDifference::Kind::OnlyInB]);
        EXPECT_EQ(there[RowDifference::Kind::OnlyInB], back[RowDifference::Kind::OnlyInA]);
        EXPECT_EQ(there[RowDifference::Kind::Changed], back[RowDifference::Kind::Changed]);
    }
}

TEST(Metrics, SayHowMuchAndWhichWayIsBetter)
{
    const GraphSnapshot graph = trainingStep(kModel);
    const auto one = simulated("one", galleryPlan(graph, "single", 1));
    const auto two = simulated("two", galleryPlan(graph, "data-parallel", 2));
    const auto metrics = metricsOf(one.timeline, two.timeline);
    ASSERT_EQ(metrics.size(), 5u);
    EXPECT_EQ(metrics[0].name, "step");
    EXPECT_DOUBLE_EQ(metrics[0].b - metrics[0].a, metrics[0].delta);
    EXPECT_NEAR(*metrics[0].percent, 100 * metrics[0].delta / metrics[0].a, 1e-9);
    EXPECT_EQ(metrics[3].name, "sent");
    EXPECT_EQ(metrics[3].a, 0);
    EXPECT_FALSE(metrics[3].percent) << "no percentage of nothing";
    EXPECT_GT(metrics[3].delta, 0);
    for (const MetricDifference &metric : metrics)
        EXPECT_TRUE(metric.lowerIsBetter);
}

} // namespace
} // namespace planloom
