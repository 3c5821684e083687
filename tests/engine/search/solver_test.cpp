#include "engine/search/solver.h"

#include "engine/gallery/gallery.h"
#include "engine/graph/operators/weight_update.h"
#include "engine/hardware/cluster.h"
#include "engine/lowering/lower.h"
#include "engine/search/steps_seen.h"
#include "engine/simulate/simulate.h"
#include "engine/table/row_setting.h"
#include "engine/verify/verify.h"
#include "tests/engine/search/search_site.h"
#include "tests/engine/table/models.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <set>
#include <string>

namespace planloom {
namespace {

TEST(Solver, FindsAPlanThatHoldsForModelsOfManyKinds)
{
    for (const char *spec : {"zoo:gpt?layers=2&hidden=64&heads=4&seq=16&vocab=160&batch=4",
             "zoo:t5?layers=1&hidden=32&heads=4&src=16&tgt=16&vocab=64&batch=4",
             "zoo:moe?layers=2&hidden=32&heads=4&seq=16&vocab=64&batch=4&experts=4",
             "zoo:resnet?depth=18&batch=4&image=32"}) {
        SCOPED_TRACE(spec);
        const Site site(zooTraining(spec), 4);
        const auto found = site.search("");
        ASSERT_TRUE(found) << describe(found.error());
        site.expectHolds("", *found);
    }
}

/// With whatever parameters.
TEST(Solver, IsNoSlowerThanTheGallery)
{
    const Site site(zooTraining("zoo:gpt?layers=4&hidden=512&heads=8&seq=256&vocab=2048&batch=8"), 4);
    const auto found = site.search("");
    ASSERT_TRUE(found);
    int compared = 0;
    for (const int tp : {1, 2, 4})
        for (const int pp : {1, 2, 4})
            for (const int zero : {0, 1, 3})
                for (const int microBatches : {1, 2, 4}) {
                    if (tp * pp > 4)
                        continue;
                    const std::string spec = "3d:tp=" + std::to_string(tp) + ",pp=" + std::to_string(pp)
                        + ",dp=" + std::to_string(4 / tp / pp) + ",zero=" + std::to_string(zero)
                        + ",micro-batches=" + std::to_string(microBatches);
                    const auto rows = galleryTable(spec, site.model, site.devices, site.costs);
                    if (!rows)
                        continue;
                    const auto plan = site.carriedOut(*rows);
                    ASSERT_TRUE(plan) << spec;
                    const auto summary = site.timed(*plan);
                    ASSERT_TRUE(summary);
                    ++compared;
                    EXPECT_GE(summary->stepSeconds, found->best.simulatedSeconds * (1 - 1e-9)) << spec;
                }
    EXPECT_GT(compared, 15);
}

TEST(Solver, KeepsToTheRows)
{
    const Site site(tinyGpt(8), 4);
    for (const char *rows :
        {"mesh tp=4\n", "mesh dp=2 pp=2\n", "micro-batches 4\n", "mesh dp=2 tp=2\nzero2 all\n",
            "mesh tp=4\nreplicate kind:LayerNorm : over tp\n", "mesh tp=2 dp=2\nsplit all : batch over dp\n",
            "recompute layer:* per layer\n", "schedule gpipe\n", "precision all : fp16\n"}) {
        SCOPED_TRACE(rows);
        const auto found = site.search(rows);
        ASSERT_TRUE(found) << describe(found.error());
        site.expectHolds(rows, *found);
        EXPECT_NE(found->configurations, 0);
    }
    const auto pipeline = site.search("mesh dp=2 pp=2\n");
    EXPECT_EQ(pipeline->best.configuration.replicas, 2);
    EXPECT_EQ(pipeline->best.configuration.ranks, 2);
    EXPECT_EQ(pipeline->best.configuration.shards, 1);
    EXPECT_EQ(site.search("micro-batches 4\n")->best.configuration.microBatches, 4);
}

TEST(Solver, KeepsToDegrees)
{
    const Site site(tinyGpt(8), 4);
    const auto chosen = [&](const char *rows) {
        SCOPED_TRACE(rows);
        const auto found = site.search(rows);
        EXPECT_TRUE(found) << describe(found.error());
        site.expectHolds(rows, *found);
        return found->best.configuration;
    };
    EXPECT_EQ(chosen("degree data at most 1\ndegree pipeline at most 1\n").shards, 4);
    EXPECT_EQ(chosen("degree tensor at most 1\ndegree pipeline at most 1\n").replicas, 4);
    const Configuration pipeline = chosen("degree stages one of 8\ndegree tensor at most 1\n");
    EXPECT_EQ(pipeline.stages(), 8);
    EXPECT_EQ(pipeline.shards, 1);
    EXPECT_EQ(chosen("degree micro-batches at least 8\n").microBatches, 8);
    EXPECT_FALSE(site.search("degree data one of 3\n"));
}

/// Of every operator of the plan that `rows` come to.
TEST(Solver, KeepsToRowsOfEveryKind)
{
    const Site site(tinyGpt(8), 4);
    const Graph &graph = *site.model.graph;
    const auto planOf = [&](const char *rows) {
        SCOPED_TRACE(rows);
        const auto found = site.search(rows);
        EXPECT_TRUE(found) << describe(found.error());
        if (!found)
            return Plan{};
        site.expectHolds(rows, *found);
        ConstraintTable all = *parseTable(rows);
        all.rows.insert(all.rows.end(), found->rows.rows.begin(), found->rows.rows.end());
        return completePlan(site.model, site.devices, all)->plan;
    };
    const auto select = [&](const char *selector) {
        auto operators = site.model.index->select(*parseSelector(selector));
        std::erase_if(operators, [&](OperatorId op) { return graph.at(op).direction != Direction::Forward; });
        return operators;
    };
    Plan plan =
        planOf("degree data at most 2\ndegree pipeline at most 1\nparts kind:Linear : in all at most 2\n");
    for (const OperatorId op : select("kind:Linear"))
        EXPECT_LE(partsOf(plan.decisions[at(op)].partition.splits, -1), 2);
    plan = planOf("degree tensor at least 2\nalike layer:1 as layer:0\n");
    const auto first = select("layer:0");
    const auto second = select("layer:1");
    for (std::size_t i = 0; i < first.size(); ++i)
        EXPECT_EQ(plan.decisions[at(first[i])].partition, plan.decisions[at(second[i])].partition);
    plan = planOf("stage layer:0 : 0 of 2\nstage layer:1 : 1\n");
    EXPECT_EQ(plan.stageCount, 2);
    for (const OperatorId op : first)
        EXPECT_EQ(plan.decisions[at(op)].stage.index, 0);
    plan = planOf("apart layer:0 from layer:1\n");
    for (const DeviceId device : plan.decisions[at(first.front())].devices)
        for (const OperatorId op : second)
            EXPECT_EQ(std::count(plan.decisions[at(op)].devices.begin(), plan.decisions[at(op)].devices.end(),
                          device),
                0);
    plan = planOf("limit memory 1KiB\nrecompute layer:0 never\n"); // nothing fits: it saves what it can
    for (const OperatorId op : first)
        EXPECT_LT(plan.decisions[at(op)].recomputeGroup, 0);
    plan = planOf("limit memory 1KiB\nrecompute layer:0 solver\n");
    for (const OperatorId op : second)
        EXPECT_LT(plan.decisions[at(op)].recomputeGroup, 0);
    EXPECT_FALSE(site.search("stage layer:0 : 1 of 2\nstage layer:1 : 0\n"));
    EXPECT_FALSE(site.search("parts layer:0 & kind:Linear : in all at least 64\n"));
}

TEST(Solver, ChoosesTheScheduleAmongThoseThatARowLeaves)
{
    const Site site(tinyGpt(8), 4);
    const auto scheduleOf = [&](const char *rows) {
        SCOPED_TRACE(rows);
        const auto found = site.search(rows);
        EXPECT_TRUE(found) << describe(found.error());
        site.expectHolds(rows, *found);
        // It stands among the solver's rows, which hold beside the row that leaves it to the search.
        const auto said = std::count_if(found->rows.rows.begin(), found->rows.rows.end(),
            [](const Row &row) { return std::holds_alternative<ScheduleRule>(row.rule); });
        EXPECT_EQ(said, 1);
        return found->best.configuration.schedule;
    };
    EXPECT_EQ(scheduleOf("mesh pp=4\nmicro-batches 4\nschedule solver among gpipe\n"), ScheduleKind::GPipe);
    EXPECT_EQ(
        scheduleOf("mesh pp=4\nmicro-batches 4\nschedule solver among zb-h1\n"), ScheduleKind::ZeroBubbleH1);
    const ScheduleKind either = scheduleOf("mesh pp=4\nmicro-batches 4\nschedule solver among gpipe, 1f1b\n");
    EXPECT_TRUE(either == ScheduleKind::GPipe || either == ScheduleKind::OneFOneB);
    const auto all = site.search("mesh pp=4\nmicro-batches 4\n");
    const auto left = site.search("mesh pp=4\nmicro-batches 4\nschedule solver\n");
    ASSERT_TRUE(all && left);
    EXPECT_EQ(left->best.configuration, all->best.configuration);
    // A row that gives it is one of them, or the two do not hold.
    EXPECT_TRUE(site.carriedOut(*parseTable("mesh pp=4\nschedule gpipe\nschedule solver among gpipe\n")));
    EXPECT_FALSE(site.carriedOut(*parseTable("mesh pp=4\nschedule 1f1b\nschedule solver among gpipe\n")));
    EXPECT_FALSE(site.carriedOut(*parseTable("mesh pp=4\nschedule solver among gpipe\nschedule 1f1b\n")));
}

TEST(Solver, ShardsWhatRowsLeaveToIt)
{
    const Site site(zooTraining("zoo:gpt?layers=4&hidden=512&heads=8&seq=256&vocab=2048&batch=8"), 4);
    const auto search = [&](const std::string &rows) {
        SCOPED_TRACE(rows);
        auto found = site.search(rows);
        EXPECT_TRUE(found) << describe(found.error());
        site.expectHolds(rows, *found);
        return *std::move(found);
    };
    const auto stagesOf = [&](const std::string &rows, const SearchResult &found) {
        ConstraintTable all = *parseTable(rows);
        all.rows.insert(all.rows.end(), found.rows.rows.begin(), found.rows.rows.end());
        const Completion completion = *completePlan(site.model, site.devices, all);
        std::map<std::string, int> stages; // by the name of what updates a weight
        for (std::size_t o = 0; o < completion.plan.decisions.size(); ++o)
            if (const Operator &op = site.model.graph->operators[o]; updatesWeight(op))
                stages[op.name] = completion.plan.decisions[o].sharding.stage;
        return stages;
    };
    // Nothing fits: it saves what it can, and what no row leaves to it is not cut.
    const std::string mesh = "mesh dp=4\nmicro-batches 1\nlimit memory 1KiB\n";
    const auto of = [&](const char *selector) {
        std::set<std::string> names;
        const auto selected = site.model.index->select(*parseSelector(selector));
        for (const OperatorId op : optimizersOf(*site.model.index, selected))
            names.insert(site.model.graph->at(op).name);
        return names;
    };
    const auto first = of("layer:0-1");
    ASSERT_FALSE(first.empty());
    std::string rows = mesh + "zero layer:0-1 solver\n";
    int cut = 0;
    for (const auto &[name, stage] : stagesOf(rows, search(rows))) {
        if (first.count(name) == 0) {
            EXPECT_EQ(stage, 0) << name;
        }
        cut += stage > 0 ? 1 : 0;
    }
    EXPECT_GT(cut, 0);
    // What rows give stays as it is, whatever the search does with the rest.
    rows = mesh + "zero all solver\nzero1 layer:0-1\nzero layer:2 never\n";
    const auto never = of("layer:2");
    for (const auto &[name, stage] : stagesOf(rows, search(rows))) {
        if (first.count(name) > 0) {
            EXPECT_EQ(stage, 1) << name;
        }
        if (never.count(name) > 0) {
            EXPECT_EQ(stage, 0) << name;
        }
    }
    // All of them is as without a row.
    const SearchResult free = search("mesh dp=4\n");
    EXPECT_EQ(search("mesh dp=4\nzero all solver\n").best.configuration, free.best.configuration);
}

/// Of groups of three devices on nodes of eight some lie across two nodes: the others wait for them.
TEST(Solver, PricesTheSlowestOfGroupsThatAreNotAlike)
{
    const Site site(zooTraining("zoo:gpt?layers=2&hidden=1920&heads=15&seq=512&vocab=1920&batch=8"), 16);
    const std::string rows = "mesh cp=5 tp=3\n";
    const auto found = site.search(rows);
    ASSERT_TRUE(found) << describe(found.error());
    EXPECT_NEAR(found->best.seconds / found->best.simulatedSeconds, 1, 0.05);
    site.expectHolds(rows, *found);
}

/// Operators are cut over both axes, each as rows about either allow.
TEST(Solver, SearchesMeshesOfTwoShardAxes)
{
    const Site site(zooTraining("zoo:gpt?layers=2&hidden=64&heads=4&seq=16&vocab=160&batch=4"), 8);
    const auto cutsOf = [&](const ConstraintTable &table, std::string_view name) {
        const auto completion = completePlan(site.model, site.devices, table);
        std::map<std::string, std::string> cuts; // by axis
        if (!completion)
            return cuts;
        const OperatorId op = operatorNamed(*site.model.graph, name);
        const Annotation &annotation = site.model.graph->at(op).annotation;
        for (const Split &split :
            completion->plan.decisions[static_cast<std::size_t>(op.index)].partition.splits)
            cuts[split.axis] = split.kind == SplitKind::Dimension
                ? annotation.dimensions[static_cast<std::size_t>(split.dimension)].name
                : "whole";
        return cuts;
    };
    const auto found = [&](const std::string &rows) {
        SCOPED_TRACE(rows);
        const auto result = site.search(rows);
        EXPECT_TRUE(result) << describe(result.error());
        ConstraintTable all = *parseTable(rows);
        if (result) {
            site.expectHolds(rows, *result);
            EXPECT_GT(result->best.configuration.outerShards, 1);
            all.rows.insert(all.rows.end(), result->rows.rows.begin(), result->rows.rows.end());
        }
        return all;
    };
    for (const char *mesh :
        {"mesh cp=2 tp=4\n", "mesh tp=2 dp=2 cp=2\n", "mesh pp=2 ep=2 tp=2\nmicro-batches 2\n"})
        found(mesh);
    const std::string split = "split name:h.0.mlp.c_fc : n over cp\n";
    for (const auto &[own, cut] :
        {std::pair{"replicate name:h.0.mlp.c_fc : over tp\n", "whole"},
            {"split name:h.0.mlp.c_fc : n over tp\n", "n"}, {"split name:h.0.mlp.c_fc : k over tp\n", "k"}}) {
        const auto cuts = cutsOf(found("mesh cp=2 tp=4\n" + split + own), "h.0.mlp.c_fc");
        EXPECT_EQ(cuts.at("cp"), "n");
        EXPECT_EQ(cuts.at("tp"), cut);
    }
    // Of both axes together.
    const auto most =
        cutsOf(found("mesh cp=2 tp=4\nparts name:h.0.mlp.c_fc : in all at most 2\n"), "h.0.mlp.c_fc");
    EXPECT_EQ(most.at("tp"), "whole");
}

/// What is carried out is what was priced: over both axes.
TEST(Solver, ItsModelOfTwoShardAxesAgreesWithSimulation)
{
    struct Case {
        const char *model;
        int devices;
        const char *rows;
    };
    for (const auto &[model, devices, rows] :
        {Case{"zoo:gpt?layers=4&hidden=1536&heads=12&seq=16384&batch=1&vocab=32000", 8, "mesh cp=2 tp=4\n"},
            Case{"zoo:gpt?layers=4&hidden=1536&heads=12&seq=1024&batch=8&vocab=32000", 8,
                "mesh dp=2 cp=2 tp=2\n"},
            Case{"zoo:gpt?layers=4&hidden=1536&heads=12&seq=1024&batch=8&vocab=32000", 16,
                "mesh tp=2 dp=4 cp=2\nmicro-batches 2\n"},
            Case{"zoo:llama?layers=4&hidden=2048&heads=16&seq=8192&batch=2&vocab=32000", 16,
                "mesh cp=4 tp=4\n"},
            Case{"zoo:moe?layers=4&hidden=1024&heads=16&seq=1024&vocab=32000&batch=8&experts=8", 8,
                "mesh dp=2 ep=2 tp=2\n"}}) {
        SCOPED_TRACE(testing::Message() << model << ", " << rows);
        const Site site(zooTraining(model), devices);
        const auto found = site.search(rows);
        ASSERT_TRUE(found) << describe(found.error());
        EXPECT_GT(found->best.configuration.outerShards, 1);
        EXPECT_NEAR(found->best.seconds / found->best.simulatedSeconds, 1, 0.05);
    }
}

/// Six heads on four devices: two axes of two cut them, and what lies between.
TEST(Solver, TriesASecondAxisWhereOneDoesNotDivide)
{
    const Site site(zooTraining("zoo:gpt?layers=2&hidden=1536&heads=6&seq=8192&vocab=1024&batch=1"), 4);
    const auto two = site.search("");
    ASSERT_TRUE(two) << describe(two.error());
    EXPECT_EQ(two->best.configuration.outerShards, 2) << toString(two->best.configuration);
    EXPECT_EQ(toString(two->best.configuration).substr(0, 6), "tp 2x2");
    site.expectHolds("", *two);
    const auto one = site.search("mesh tp=4\n");
    ASSERT_TRUE(one);
    EXPECT_LT(two->best.simulatedSeconds, one->best.simulatedSeconds);
    // Eight heads divide.
    const Site even(zooTraining("zoo:gpt?layers=2&hidden=64&heads=8&seq=16&vocab=160&batch=4"), 4);
    const auto found = even.search("");
    ASSERT_TRUE(found);
    for (const SearchedPlan &plan : found->seen)
        EXPECT_EQ(plan.configuration.outerShards, 1) << toString(plan.configuration);
}

TEST(Solver, SaysWhyThereIsNothingToSearch)
{
    const Model model(tinyGpt(8));
    EXPECT_FALSE(nothingToSearch(model, {}));
    EXPECT_FALSE(nothingToSearch(model, *parseTable("mesh dp=2 pp=2 tp=2\n")));
    EXPECT_FALSE(nothingToSearch(model, *parseTable("mesh pp=2\nspread all : over pp\n")));
    EXPECT_FALSE(nothingToSearch(model, *parseTable("stage layer:0 : 0 of 2\n")));
    EXPECT_FALSE(nothingToSearch(model, *parseTable("mesh a=2 b=2\n")));
    EXPECT_FALSE(nothingToSearch(model, *parseTable("mesh a=2 b=1 c=2\n")));
    EXPECT_TRUE(nothingToSearch(model, *parseTable("mesh a=2 b=2 c=2\n")));
    EXPECT_TRUE(nothingToSearch(model, *parseTable("mesh dp=2 data=2\n")));
}

/// The devices of an operator's parts, each once, ascending.
std::vector<std::int32_t> devicesOf(const Site &site, const ConstraintTable &table, std::string_view name)
{
    const auto completion = completePlan(site.model, site.devices, table);
    std::vector<std::int32_t> devices;
    for (std::size_t i = 0; completion && i < site.model.graph->operators.size(); ++i)
        if (site.model.graph->operators[i].name == name)
            for (const DeviceId device : completion->plan.decisions[i].devices)
                devices.push_back(device.index);
    std::sort(devices.begin(), devices.end());
    devices.erase(std::unique(devices.begin(), devices.end()), devices.end());
    return devices;
}

/// What rows place is where they say, and what they do not say is searched for as ever.
TEST(Solver, GoesOnAroundWhatRowsPlace)
{
    const Site site(zooTraining("zoo:gpt?layers=4&hidden=512&heads=8&seq=256&vocab=2048&batch=8"), 4);
    const auto free = site.search("");
    ASSERT_TRUE(free);
    const std::string op =
        site.model.graph->at(site.model.index->select(*parseSelector("layer:1")).front()).name;
    const auto allOf = [&](std::string_view rows, const SearchResult &found) {
        ConstraintTable all = *parseTable(rows);
        all.rows.insert(all.rows.end(), found.rows.rows.begin(), found.rows.rows.end());
        return all;
    };
    const std::string apart = "place name:\"" + op + "\" : devices 2\n";
    const auto found = site.search(apart);
    ASSERT_TRUE(found) << describe(found.error());
    site.expectHolds(apart, *found);
    EXPECT_EQ(devicesOf(site, allOf(apart, *found), op), std::vector<std::int32_t>{2});
    EXPECT_GE(found->best.simulatedSeconds, free->best.simulatedSeconds);
    EXPECT_LE(found->bound, found->best.simulatedSeconds);
    // Not all on that device, as they would be by following it.
    const auto alone = site.timed(*site.carriedOut(*parseTable(apart)));
    ASSERT_TRUE(alone);
    EXPECT_LT(found->best.simulatedSeconds, 0.7 * alone->stepSeconds);

    // Two halves on the devices of two ranks are a pipeline, by lists as by the mesh.
    for (const char *rows : {"place layer:0-1 : devices 0, 1\nplace layer:2-3 : devices 2, 3\n",
             "mesh pp=2 tp=2\nplace layer:0-1 : pp=0\nplace layer:2-3 : pp=1\n",
             "mesh pp=2 tp=2\nspread layer:* : over pp by count\n"}) {
        SCOPED_TRACE(rows);
        const auto halves = site.search(rows);
        ASSERT_TRUE(halves) << describe(halves.error());
        site.expectHolds(rows, *halves);
        EXPECT_EQ(halves->best.configuration.ranks, 2);
        EXPECT_EQ(devicesOf(site, allOf(rows, *halves), op), (std::vector<std::int32_t>{0, 1}));
    }
}

/// What replicas reduce, update and gather takes in the search's model what it takes in simulation.
TEST(Solver, PricesReplicasAsTheyAreSimulated)
{
    for (const int devices : {8, 32})
        for (const char *zero : {"", "zero1 all over dp\n"}) {
            const std::string rows = "mesh dp=" + std::to_string(devices)
                + "\nsplit all : batch over dp\nmicro-batches 1\n" + zero;
            SCOPED_TRACE(rows);
            const Site site(
                zooTraining("zoo:gpt?layers=6&hidden=768&heads=12&seq=512&vocab=16384&batch=64"), devices);
            const auto found = site.search(rows);
            ASSERT_TRUE(found) << describe(found.error());
            EXPECT_NEAR(
                found->best.seconds, found->best.simulatedSeconds, 0.03 * found->best.simulatedSeconds);
        }
}

/// Likewise what devices send beside that: at the rims of windows, for means over the batch, of weights whose
/// gradients all devices add up, and where some ranks' replicas lie in one node and others' in two.
TEST(Solver, PricesWhatIsSentAsItIsSimulated)
{
    struct Case {
        const char *model;
        int devices;
        const char *rows;
    };
    for (const Case &each : {Case{"zoo:swin", 4, "mesh tp=4\n"},
             {"zoo:resnet?depth=50&batch=4&image=224", 4, "mesh dp=4\nsplit all : batch over dp\n"},
             {"zoo:gpt?layers=8&hidden=1024&heads=16&seq=1024&vocab=32000&batch=4", 16,
                 "mesh dp=4 tp=4\nsplit all : batch over dp\nzero2 all\n"},
             {"zoo:gpt?layers=8&hidden=1024&heads=16&seq=1024&vocab=32000&batch=8", 16,
                 "mesh dp=2 tp=8\nsplit all : batch over dp\nzero3 all\n"},
             {"zoo:gpt?layers=6&hidden=1024&heads=16&seq=512&vocab=32000&batch=12", 12,
                 "mesh dp=2 pp=3 tp=2\nzero1 all\n"}}) {
        SCOPED_TRACE(each.model);
        const Site site(zooTraining(each.model), each.devices);
        const auto found = site.search(each.rows);
        ASSERT_TRUE(found) << describe(found.error());
        EXPECT_NEAR(found->best.seconds, found->best.simulatedSeconds, 0.03 * found->best.simulatedSeconds);
        site.expectHolds(each.rows, *found);
    }
}

/// Likewise what stages wait for: what they read first, of those alone that send it; a product's two halves
/// in split backward passes, and what is made of weights alone, with the weights'.
TEST(Solver, PricesPipelinesAsTheyAreSimulated)
{
    const char *t5 = "zoo:t5?layers=4&hidden=256&heads=4&src=64&tgt=64&vocab=1024&batch=8";
    const char *resnet = "zoo:resnet?depth=50&batch=4&image=64";
    for (const auto &[model, devices, rows] :
        {std::tuple{t5, 8, "mesh pp=8\nschedule zb-h1\nmicro-batches 1\n"},
            {resnet, 4, "mesh pp=4\nschedule zb-h1\n"}, {resnet, 8, "mesh pp=4 tp=2\nschedule zb-h1\n"},
            {"zoo:llama?layers=4&hidden=64&heads=4&seq=16&vocab=256&batch=4", 4,
                "mesh pp=4\nschedule zb-h1\nmicro-batches 1\n"}}) {
        SCOPED_TRACE(testing::Message() << model << " on " << devices << ": " << rows);
        const Site site(zooTraining(model), devices);
        const auto found = site.search(rows);
        ASSERT_TRUE(found) << describe(found.error());
        EXPECT_NEAR(found->best.seconds, found->best.simulatedSeconds, 0.03 * found->best.simulatedSeconds);
        site.expectHolds(rows, *found);
    }
}

/// Likewise what is sent to operators that rows place apart, and back, and that their weights are updated
/// there.
TEST(Solver, PricesWhatIsPlacedApartAsItIsSimulated)
{
    const char *gpt = "zoo:gpt?layers=6&hidden=768&heads=12&seq=512&vocab=16384&batch=32";
    const char *llama = "zoo:llama?layers=4&hidden=1024&heads=16&seq=1024&vocab=32000&batch=8";
    struct Case {
        const char *model;
        int devices;
        const char *rows;
    };
    for (const Case &each : {Case{gpt, 8, "place name:lm_head : devices 3\n"},
             {gpt, 8, "place name:lm_head : devices 2,3\nmesh dp=8\n"},
             {gpt, 8, "place name:lm_head : devices 3\nmesh dp=2 tp=4\nmicro-batches 1\n"},
             {gpt, 8, "place name:lm_head : devices 3\nmesh pp=2 dp=4\nmicro-batches 1\n"},
             {gpt, 16, "place name:lm_head : devices 3\n"},
             {gpt, 8, "place layer:2 & kind:Gelu : devices 3\n"},
             {gpt, 8, "place layer:2 : devices 2,3\nmesh dp=8\n"},
             {gpt, 8, "place kind:Embedding : devices 3\nmesh dp=8\n"},
             {llama, 8, "place layer:2 : devices 1\n"}, {llama, 8, "place name:lm_head : devices 1\n"},
             {"zoo:resnet?depth=50&batch=32&image=224", 8, "place layer:5 : devices 1\n"}}) {
        SCOPED_TRACE(testing::Message() << each.model << " on " << each.devices << ": " << each.rows);
        const Site site(zooTraining(each.model), each.devices);
        const auto found = site.search(each.rows);
        ASSERT_TRUE(found) << describe(found.error());
        EXPECT_NEAR(found->best.seconds, found->best.simulatedSeconds, 0.05 * found->best.simulatedSeconds);
        site.expectHolds(each.rows, *found);
    }
}

/// Where there is too little work for all of them, or numbers do not divide, some are left idle.
TEST(Solver, IsNoSlowerOnMoreDevices)
{
    for (const auto &[spec, most] :
        {std::pair{"zoo:gpt?layers=3&hidden=384&heads=6&seq=128&vocab=1024&batch=6", 8},
            {"zoo:resnet?depth=18&batch=4&image=64", 8}}) {
        const GraphSnapshot graph = zooTraining(spec);
        double before = std::numeric_limits<double>::infinity();
        for (const int devices : {1, 2, 3, 4, 6, 7, most}) {
            SCOPED_TRACE(testing::Message() << spec << " on " << devices);
            const Site site(graph, devices);
            const auto found = site.search("");
            ASSERT_TRUE(found) << describe(found.error());
            EXPECT_LE(found->best.simulatedSeconds, before * 1.02); // the model is no nearer to simulation
            before = found->best.simulatedSeconds;
            site.expectHolds("", *found);
        }
    }
}

/// Six samples, six heads and what they are wide do not divide by eight.
TEST(Solver, LeavesDevicesIdleWhereThatIsFaster)
{
    const Site site(zooTraining("zoo:gpt?layers=3&hidden=1158&heads=6&seq=1215&vocab=1021&batch=6"), 8);
    const auto found = site.search("");
    ASSERT_TRUE(found) << describe(found.error());
    EXPECT_LT(found->best.configuration.devices(), 8);
    EXPECT_GT(found->best.configuration.devices(), 4);
    site.expectHolds("", *found);
}

/// Branches that all end in summands are reduced once, behind their sum (as of GPT-J's layers).
TEST(Solver, AddsUpSummandsBeforeTheyAreReduced)
{
    constexpr int kBranches = 4;
    GraphBuilder builder("side by side");
    const TensorId x = builder.input("x", {DataType::Float32, {4093, 2048}});
    std::vector<TensorId> wide;
    for (int i = 0; i < kBranches; ++i)
        wide.push_back(builder.one(OperatorKind::Relu,
            {builder.one(OperatorKind::Linear, {x, builder.weight("a" + std::to_string(i), {2048, 2048}), {}},
                {}, "wide" + std::to_string(i))},
            {}, "active" + std::to_string(i)));
    std::vector<TensorId> made;
    for (int i = 0; i < kBranches; ++i)
        made.push_back(builder.one(OperatorKind::Linear,
            {wide[static_cast<std::size_t>(i)], builder.weight("b" + std::to_string(i), {2048, 2048}), {}},
            {}, "branch" + std::to_string(i)));
    TensorId all = made.front();
    for (int i = 1; i < kBranches; ++i)
        all = builder.one(
            OperatorKind::Add, {all, made[static_cast<std::size_t>(i)]}, {}, "sum" + std::to_string(i));
    const TensorId out = builder.one(OperatorKind::Relu, {all}, {}, "out");
    const TensorId loss = builder.one(OperatorKind::ReduceSum, {out},
        attributesOf({{"axes", std::vector<std::int64_t>{0, 1}}, {"keepdims", std::int64_t{0}}}), "sum");
    auto graph = buildTrainingStep(*builder.finish({}, loss));
    ASSERT_TRUE(graph);
    const Site site(shared(*std::move(graph)), 16);
    const auto found = site.search("mesh tp=16");
    ASSERT_TRUE(found) << describe(found.error());
    EXPECT_NE(print(found->rows).find("value over tp"), std::string::npos) << print(found->rows);
    site.expectHolds("mesh tp=16", *found);
    const auto without = site.search("mesh tp=16\nreplicate name:sum1 : over tp");
    ASSERT_TRUE(without) << describe(without.error());
    EXPECT_LT(found->best.simulatedSeconds, without->best.simulatedSeconds);
}

/// Between making a tensor and reading it devices compute something else for long, in many places.
TEST(Solver, CountsNoCommunicationThatRunsBesideWhatIsComputed)
{
    for (const char *zoo : {"zoo:evoformer?layers=2", "zoo:t5?layers=2&batch=8"}) {
        SCOPED_TRACE(zoo);
        const Site site(zooTraining(zoo), 8);
        const auto found = site.search("precision all : bf16\nmesh tp=8");
        ASSERT_TRUE(found) << describe(found.error());
        EXPECT_NEAR(found->best.simulatedSeconds / found->best.seconds, 1, 0.04);
        site.expectHolds("precision all : bf16\nmesh tp=8", *found);
    }
}

/// Thousands of devices and samples that many numbers divide: what there is room for, and in it what people
/// use (96 layers on 2304 devices as of Megatron-LM's tables).
TEST(Solver, LooksAtNoMoreMeshesThanThereIsRoomFor)
{
    const Site site(zooTraining("zoo:gpt?layers=96&hidden=768&heads=96&seq=64&vocab=512&batch=1152"), 2304);
    const auto space = searchSpaceOf(site.model, site.cluster, site.devices, {});
    ASSERT_TRUE(space) << describe(space.error());
    std::set<std::array<std::int32_t, 3>> problems;
    bool isUsualThere = false;
    for (const Configuration &each : space->configurations) {
        problems.insert({each.shards, each.replicas, each.microBatches});
        isUsualThere =
            isUsualThere || (each.replicas == 48 && each.ranks == 6 && each.shards == 8 && each.zero == 1);
    }
    EXPECT_LE(problems.size() * site.model.index->forwardCount(), 1'500'000U);
    EXPECT_TRUE(isUsualThere);
}

/// Of experts and what lies between them one has all the weights and the other all the work: ZeRO-3 gathers
/// no further than a layer ahead.
TEST(Solver, LayersWaitForTheirWeightsThoughOthersHaveTimeToSpare)
{
    const Site site(zooTraining("zoo:moe?layers=4&hidden=1024&heads=8&experts=32&seq=512&batch=32"), 8);
    const char *rows = "precision all : bf16\nmesh dp=8\nzero3 all over dp";
    const auto found = site.search(rows);
    ASSERT_TRUE(found) << describe(found.error());
    EXPECT_NEAR(found->best.simulatedSeconds / found->best.seconds, 1, 0.05);
    site.expectHolds(rows, *found);
}

/// The first half of the devices is faster than the others: stages are balanced by what they take on theirs,
/// and the model says so.
TEST(Solver, UsesDevicesOfSeveralClasses)
{
    const GraphSnapshot graph =
        zooTraining("zoo:gpt?layers=8&hidden=2048&heads=16&seq=512&vocab=2048&batch=16");
    const Site fast(graph, 8);
    const auto half = fast.search("");
    ASSERT_TRUE(half) << describe(half.error());
    const Site mixed(graph, 16, "mixed-h100-a100");
    ASSERT_NE(mixed.cluster.classOf({0}), mixed.cluster.classOf({15}));
    const auto found = mixed.search("");
    ASSERT_TRUE(found) << describe(found.error());
    EXPECT_LE(found->best.simulatedSeconds, half->best.simulatedSeconds * 1.001);
    mixed.expectHolds("", *found);
    const std::string rows = "mesh pp=2 dp=4 tp=2\nschedule 1f1b\nmicro-batches 4";
    const auto piped = mixed.search(rows);
    ASSERT_TRUE(piped) << describe(piped.error());
    mixed.expectHolds(rows, *piped);
    EXPECT_NEAR(piped->best.seconds, piped->best.simulatedSeconds, 0.05 * piped->best.simulatedSeconds);
    // The fast stage has more of the layers.
    std::array<int, 2> operators{};
    for (const OperatorDecision &decision : piped->plan->decisions)
        if (decision.stage.valid())
            ++operators.at(static_cast<std::size_t>(decision.stage.index));
    EXPECT_GT(operators[0], operators[1] * 3 / 2);
}

/// A row's mesh is used in the order of its axes.
TEST(Solver, PricesMeshesInTheOrderOfTheirAxes)
{
    const Site site(zooTraining("zoo:gpt?layers=4&hidden=2048&heads=16&seq=512&vocab=2048&batch=16"), 16);
    for (const char *mesh : {"mesh dp=2 pp=2 tp=4", "mesh pp=2 dp=2 tp=4", "mesh tp=4 dp=2 pp=2"}) {
        SCOPED_TRACE(mesh);
        const auto found = site.search(mesh);
        ASSERT_TRUE(found) << describe(found.error());
        EXPECT_NEAR(found->best.seconds, found->best.simulatedSeconds, 0.05 * found->best.simulatedSeconds);
        site.expectHolds(mesh, *found);
    }
}

/// One plan can be written over several meshes.
TEST(StepsSeen, KnowsAPlanOverAnotherMesh)
{
    const Site site(tinyGpt(8), 4);
    const auto planOf = [&](const char *rows) {
        const auto completed = completePlan(site.model, site.devices, *parseTable(rows));
        EXPECT_TRUE(completed && !firstError(*completed)) << rows;
        return completed->plan;
    };
    const Plan flat = planOf("mesh dp=4\nsplit all : batch over dp\n");
    StepsSeen seen;
    EXPECT_FALSE(seen.find(flat));
    seen.add(flat, {.seconds = 7});
    ASSERT_TRUE(seen.find(flat));
    const Plan nested = planOf("mesh dp=2 tp=2\nsplit all : batch over dp\nsplit all : batch over tp\n");
    ASSERT_TRUE(seen.find(nested));
    EXPECT_EQ(seen.find(nested)->seconds, 7);
    const auto stepOf = [&](const Plan &plan) {
        return site.timed(*lower(plan, site.cluster, site.costs))->stepSeconds;
    };
    EXPECT_EQ(stepOf(flat), stepOf(nested));
    for (const char *other : {"mesh dp=2 tp=2\nsplit all : batch over dp\n",
             "mesh dp=4\nsplit all : batch over dp\nzero1 all over dp\n",
             "mesh dp=4\nsplit all : batch over dp\nrecompute layer:* per layer\n",
             "mesh dp=4\nsplit all : batch over dp\nmicro-batches 2\n"})
        EXPECT_FALSE(seen.find(planOf(other))) << other;
}

TEST(StepsSeen, ForgetsThoseThatWereNotAskedForForLong)
{
    const auto planOf = [](int microBatches) {
        Plan plan;
        plan.microBatches = microBatches;
        return plan;
    };
    const auto most = static_cast<int>(StepsSeen::kMostPlans);
    StepsSeen seen;
    for (int i = 1; i <= most; ++i)
        seen.add(planOf(i), {.seconds = static_cast<double>(i)});
    ASSERT_TRUE(seen.find(planOf(1)));
    seen.add(planOf(most), {}); // known
    seen.add(planOf(most + 1), {});
    EXPECT_EQ(seen.size(), StepsSeen::kMostPlans);
    EXPECT_TRUE(seen.find(planOf(1)));
    EXPECT_FALSE(seen.find(planOf(2)));
    EXPECT_EQ(seen.find(planOf(most))->seconds, most);
}

TEST(Solver, SaysThatRowsPlaceEverything)
{
    const Site site(tinyGpt(8), 4);
    const auto found = site.search("place all : devices 0\n");
    ASSERT_FALSE(found);
    EXPECT_NE(found.error().message.find("place every operator"), std::string::npos)
        << describe(found.error());
}

/// What is remembered changes nothing but the time, and which of plans that take nearly as long is found:
/// after an edit fewer are simulated.
TEST(Solver, RemembersWithoutChangingItsMind)
{
    const Site site(tinyGpt(8), 4);
    const auto memory = std::make_shared<SearchMemory>();
    for (const char *rows : {"", "micro-batches 2\n", "mesh dp=2 tp=2\n", "", "limit memory 1KiB\n",
             "mesh dp=2 tp=2\nreplicate kind:LayerNorm : over tp\n", "recompute kind:Gelu\n",
             "recompute layer:1\n", "mesh dp=2 tp=2\n"}) {
        SCOPED_TRACE(rows);
        SearchOptions options;
        options.mostSeconds = 1000;
        options.memory = memory;
        const auto again = searchPlan(site.model, site.cluster, 4, *parseTable(rows), site.costs, options);
        const auto anew = site.search(rows);
        ASSERT_TRUE(again && anew);
        EXPECT_EQ(again->fits, anew->fits);
        EXPECT_EQ(again->cannotFit(), anew->cannotFit());
        if (!anew->fits) // what is shown then depends on what simulations have shown of peaks
            continue;
        EXPECT_NEAR(
            again->best.simulatedSeconds, anew->best.simulatedSeconds, 0.04 * anew->best.simulatedSeconds);
        // What was proven before still is; bounds that near to the best price are left as they are.
        EXPECT_GE(
            again->modelBound, std::min(anew->modelBound, again->seen.front().seconds * 0.95) * (1 - 1e-9));
        EXPECT_LE(again->modelBound, again->best.seconds);
        const auto undone = searchPlan(site.model, site.cluster, 4, *parseTable(rows), site.costs, options);
        ASSERT_TRUE(undone);
        EXPECT_EQ(print(undone->rows), print(again->rows));
        EXPECT_EQ(undone->bound, again->bound);
        EXPECT_EQ(undone->seen.size(), again->seen.size());
    }
}

/// However many edits were tried and taken back: the next one begins with what is known without it.
TEST(Solver, RemembersWhatAllEditsBeginWith)
{
    const Site site(tinyGpt(8), 4);
    SearchOptions options;
    options.mostSeconds = 1000;
    options.memory = std::make_shared<SearchMemory>();
    const auto search = [&](const std::string &rows) {
        return searchPlan(site.model, site.cluster, 4, *parseTable(rows), site.costs, options);
    };
    const auto base = search("");
    ASSERT_TRUE(base);
    const auto first = search("limit memory 60GiB\n");
    ASSERT_TRUE(first);
    EXPECT_LT(first->seen.size(), base->seen.size());
    for (int i = 1; i <= 40; ++i)
        ASSERT_TRUE(search("limit memory " + std::to_string(60 - i) + "GiB\n"));
    const auto last = search("limit memory 61GiB\n");
    ASSERT_TRUE(last);
    // Simulations in between have shown more of how far the model is off: not just what was looked at first.
    // Of plans that take as long any may be found.
    EXPECT_LT(last->seen.size() * 4, base->seen.size() * 3);
    EXPECT_DOUBLE_EQ(last->best.simulatedSeconds, base->best.simulatedSeconds);
}

/// What took far longer than the best before a row was added is left alone after it, whether it fitted or
/// not.
TEST(Solver, LooksAgainOnlyAtWhatWasNearlyBest)
{
    const Site site(zooTraining("zoo:gpt?layers=4&hidden=512&heads=8&seq=256&vocab=2048&batch=8"), 4);
    const auto roomy = site.search("");
    ASSERT_TRUE(roomy);
    const std::string limit = "limit memory " + std::to_string(roomy->best.simulatedPeak * 3 / 4) + "B\n";
    const std::string rows = limit + "replicate name:h.0.ln_1 : over tp\n";
    SearchOptions options;
    options.mostSeconds = 1000;
    options.memory = std::make_shared<SearchMemory>();
    const auto search = [&](const std::string &text) {
        return searchPlan(site.model, site.cluster, 4, *parseTable(text), site.costs, options);
    };
    const auto base = search(limit);
    const auto edited = search(rows);
    const auto anew = site.search(rows);
    ASSERT_TRUE(base && edited && anew);
    ASSERT_TRUE(base->fits && edited->fits && anew->fits);
    EXPECT_NEAR(
        edited->best.simulatedSeconds, anew->best.simulatedSeconds, 0.02 * anew->best.simulatedSeconds);
    EXPECT_LT(edited->seen.size() * 3, base->seen.size());
}

/// What rows say of one operator leaves the others to the search.
TEST(Solver, RecomputesMoreThanRowsNameWhereThatIsNeeded)
{
    const Site site(zooTraining("zoo:gpt?layers=4&hidden=512&heads=8&seq=256&vocab=1024&batch=8"), 2);
    const auto &operators = site.model.graph->operators;
    const auto gelu = std::find_if(
        operators.begin(), operators.end(), [](const Operator &op) { return op.kind == OperatorKind::Gelu; });
    ASSERT_NE(gelu, operators.end());
    const std::string rows = "mesh dp=2\nmicro-batches 1\nzero0 all\nrecompute name:" + gelu->name + "\n";
    const auto roomy = site.search(rows);
    ASSERT_TRUE(roomy) << describe(roomy.error());
    EXPECT_EQ(roomy->best.configuration.recompute, RecomputeWord::None);
    const std::int64_t limit = roomy->best.simulatedPeak * 97 / 100;
    const std::string tight = rows + "limit memory " + std::to_string(limit >> 10) + "KiB\n";
    const auto found = site.search(tight);
    ASSERT_TRUE(found) << describe(found.error());
    EXPECT_TRUE(found->fits);
    EXPECT_NE(found->best.configuration.recompute, RecomputeWord::None);
    site.expectHolds(tight, *found);
}

/// Which plans are simulated ahead changes nothing but the time.
TEST(Solver, FindsTheSameOnTwoThreads)
{
    const Site site(zooTraining("zoo:gpt?layers=4&hidden=512&heads=8&seq=256&vocab=2048&batch=8"), 4);
    for (const char *rows :
        {"", "micro-batches 2\n", "mesh pp=4\n", "limit memory 200MiB\n", "limit memory 1KiB\n"}) {
        SCOPED_TRACE(rows);
        const auto alone = site.search(rows);
        SearchOptions options;
        options.mostSeconds = 1000;
        options.threads = 2;
        options.memory = std::make_shared<SearchMemory>();
        const auto both = searchPlan(site.model, site.cluster, 4, *parseTable(rows), site.costs, options);
        ASSERT_TRUE(alone && both);
        EXPECT_EQ(print(both->rows), print(alone->rows));
        EXPECT_EQ(both->best.simulatedSeconds, alone->best.simulatedSeconds);
        EXPECT_EQ(both->bound, alone->bound);
        ASSERT_EQ(both->seen.size(), alone->seen.size());
        for (std::size_t i = 0; i < both->seen.size(); ++i)
            EXPECT_EQ(both->seen[i].simulatedSeconds, alone->seen[i].simulatedSeconds);
    }
}

/// What is said of the best plan is what its simulation says.
TEST(Solver, KeepsTheFiguresOfItsBestPlan)
{
    const Site site(tinyGpt(8), 4);
    const auto found = site.search("");
    ASSERT_TRUE(found && found->figures && found->plan);
    const TimelineSummary kept = summaryOf(*found->figures);
    const auto anew = site.timed(*lower(*found->plan, site.cluster, site.costs));
    ASSERT_TRUE(anew);
    EXPECT_EQ(kept.stepSeconds, anew->stepSeconds);
    EXPECT_EQ(kept.stepSeconds, found->best.simulatedSeconds);
    EXPECT_EQ(kept.largestPeak, anew->largestPeak);
}

TEST(Solver, StopsWhenAsked)
{
    const Site site(tinyGpt(8), 4);
    std::stop_source source;
    source.request_stop();
    const auto found =
        searchPlan(site.model, site.cluster, site.devices, {}, site.costs, {}, source.get_token());
    ASSERT_FALSE(found);
    EXPECT_EQ(found.error().code, ErrorCode::Cancelled);
}

} // namespace
} // namespace planloom
