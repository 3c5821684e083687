#include "engine/plan/complete.h"
#include "engine/table/selector_index.h"
#include "tests/engine/table/models.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

namespace planloom {
namespace {

TEST(CompletePlan, WithoutRowsEverythingIsReplicatedOnAllDevices)
{
    const auto graph = tinyMlp();
    EXPECT_EQ(decisionText(planOf(graph, 1, ""), "a"), "whole @ 0 stage 0");
    const Plan plan = planOf(graph, 3, "");
    EXPECT_EQ(decisionText(plan, "a"), "replicate:3 @ 0,1,2 stage 0");
    EXPECT_EQ(decisionText(plan, "w1.step"), "replicate:3 @ 0,1,2 stage -1");
    EXPECT_EQ(plan.stageCount, 1);
}

TEST(CompletePlan, WritesUnitsOnlyWhereTheClusterDoesNotTellThemApart)
{
    const auto graph = tinyMlp(8);
    const auto table = parseTable("mesh dp=2\nsplit all : batch over dp");
    ASSERT_TRUE(table) << describe(table.error());
    const auto unitsOf = [&](const std::function<bool(const ScaleUnits &)> &alike) {
        const auto completion =
            completePlan(graph, 2, *table, {.units = UseUnits::WherePossible, .alike = alike});
        EXPECT_TRUE(completion);
        return completion->plan.units.count;
    };
    EXPECT_EQ(unitsOf({}), 2);
    EXPECT_EQ(unitsOf([](const ScaleUnits &units) { return units == ScaleUnits{2, 1}; }), 2);
    EXPECT_EQ(unitsOf([](const ScaleUnits &) { return false; }), 1);
}

/// Degrees are those of the whole mesh, of which a unit has but a part.
TEST(CompletePlan, DegreesCountAllUnits)
{
    const auto graph = tinyMlp(8);
    const auto completed = [&](const std::string &rows) {
        const auto table = parseTable(rows + "mesh dp=2 tp=2\nsplit all : batch over dp\n");
        EXPECT_TRUE(table) << describe(table.error());
        auto completion = completePlan(graph, 4, *table, {.units = UseUnits::WherePossible});
        EXPECT_TRUE(completion);
        return *std::move(completion);
    };
    const Completion held = completed("degree data exactly 2\ndegree tensor exactly 2\n");
    EXPECT_FALSE(firstError(held));
    EXPECT_EQ(held.plan.units.count, 2);
    EXPECT_TRUE(firstError(completed("degree data exactly 1\n")));
    EXPECT_TRUE(firstError(completed("degree tensor exactly 1\n")));
}

TEST(CompletePlan, OperatorsFollowTheirProducerWhereThatIsFree)
{
    const auto graph = tinyMlp();
    const Plan plan = planOf(graph, 2, "mesh tp=2\nsplit name:a : n over tp");
    EXPECT_EQ(decisionText(plan, "a"), "n:2 @ 0,1 stage 0");
    // The Relu takes the cut; the second Linear's sum runs over it; its summands can't be followed.
    const auto &relu = plan.decisions[static_cast<std::size_t>(operatorNamed(*graph, "r").index)];
    ASSERT_EQ(relu.partition.splits.size(), 1u);
    EXPECT_EQ(relu.partition.splits[0].kind, SplitKind::Dimension);
    EXPECT_EQ(relu.why, "follows 'a' over tp");
    EXPECT_EQ(decisionText(plan, "b"), "k+:2 @ 0,1 stage 0");
    EXPECT_EQ(decisionText(plan, "sum"), "replicate:2 @ 0,1 stage 0");
    // Backward operators mirror, optimizers follow their weights.
    EXPECT_EQ(decisionText(plan, "a'"), "n+:2 @ 0,1 stage 0");
    const auto &step = plan.decisions[static_cast<std::size_t>(operatorNamed(*graph, "w1.step").index)];
    ASSERT_EQ(step.partition.splits.size(), 1u);
    EXPECT_EQ(step.partition.splits[0].parts, 2);
    EXPECT_EQ(step.partition.splits[0].kind, SplitKind::Dimension);
}

TEST(CompletePlan, RowsOverDifferentAxesComposeInMeshOrder)
{
    const auto graph = tinyMlp();
    const Plan plan = planOf(graph, 4, "mesh dp=2 tp=2\nsplit name:a : n over tp\nsplit all : batch over dp");
    const auto &a = plan.decisions[static_cast<std::size_t>(operatorNamed(*graph, "a").index)];
    ASSERT_EQ(a.partition.splits.size(), 2u);
    EXPECT_EQ(a.partition.splits[0].axis, "dp");
    EXPECT_EQ(a.partition.splits[1].axis, "tp");
    EXPECT_EQ(a.rows, (std::vector<RowId>{{1}, {2}}));
    // After the row-split Linear the batch stays cut over dp, and replicas run over tp.
    const auto &sum = plan.decisions[static_cast<std::size_t>(operatorNamed(*graph, "sum").index)];
    ASSERT_EQ(sum.partition.splits.size(), 2u);
    EXPECT_EQ(sum.partition.splits[0].kind, SplitKind::Dimension);
    EXPECT_EQ(sum.partition.splits[1].kind, SplitKind::Replicate);
}

TEST(CompletePlan, ListsOfDevicesTakePartsOrReplicas)
{
    const auto graph = tinyMlp();
    EXPECT_EQ(decisionText(planOf(graph, 4, "split name:a : n by 2\nplace name:a : devices 3,1"), "a"),
        "n:2 @ 3,1 stage 0");
    EXPECT_EQ(decisionText(planOf(graph, 4, "split name:a : n by 4\nplace name:a : devices 3,1"), "a"),
        "n:4 @ 3,3,1,1 stage 0");
    EXPECT_EQ(decisionText(planOf(graph, 4, "split name:a : n by 2\nplace name:a : devices 3,1,0,2"), "a"),
        "n:2 replicate:2 @ 3,1,0,2 stage 0");
    EXPECT_EQ(
        decisionText(planOf(graph, 3, "split name:a : n into 3,5,4\nplace name:a : devices 0,1,1"), "a"),
        "n:(3 5 4) @ 0,1,1 stage 0");
}

TEST(CompletePlan, CoshardPartsStayOnTheirDeviceAndAreRecomputed)
{
    const auto graph = tinyMlp();
    const Plan plan = planOf(graph, 2, "mesh tp=2\nsplit name:a : n over tp\ncoshard name:a : n by 3");
    EXPECT_EQ(decisionText(plan, "a"), "n:2 n:3 @ 0,0,0,1,1,1 stage 0");
    const auto a = static_cast<std::size_t>(operatorNamed(*graph, "a").index);
    EXPECT_GE(plan.decisions[a].recomputeGroup, 0);
    // Followers follow the cut between devices, not the one inside them.
    const auto &relu = plan.decisions[static_cast<std::size_t>(operatorNamed(*graph, "r").index)];
    EXPECT_EQ(relu.devices, (std::vector<DeviceId>{{0}, {1}}));
    EXPECT_LT(relu.recomputeGroup, 0);
}

TEST(CompletePlan, CoshardPartsAreKeptWhereTheRowSaysSo)
{
    const auto graph = tinyMlp();
    const auto decisionOf = [&](const Plan &plan, const char *name) {
        return plan.decisions[static_cast<std::size_t>(operatorNamed(*graph, name).index)];
    };
    const Plan kept = planOf(graph, 1, "coshard set{a, r} : batch by 2 keep");
    EXPECT_GE(decisionOf(kept, "a").coshardRegion, 0);
    EXPECT_EQ(decisionOf(kept, "a").coshardRegion, decisionOf(kept, "r").coshardRegion);
    EXPECT_LT(decisionOf(kept, "a").recomputeGroup, 0);
    // Those that are kept and those that are not are apart.
    const Plan both = planOf(graph, 1, "coshard name:a : batch by 2 keep\ncoshard name:r : batch by 2");
    EXPECT_GE(decisionOf(both, "a").coshardRegion, 0);
    EXPECT_GE(decisionOf(both, "r").coshardRegion, 0);
    EXPECT_NE(decisionOf(both, "a").coshardRegion, decisionOf(both, "r").coshardRegion);
    EXPECT_LT(decisionOf(both, "a").recomputeGroup, 0);
    EXPECT_GE(decisionOf(both, "r").recomputeGroup, 0);
    // A row about recomputation has its say.
    const Plan again = planOf(graph, 1, "coshard set{a, r} : batch by 2 keep\nrecompute name:a");
    EXPECT_GE(decisionOf(again, "a").recomputeGroup, 0);
    EXPECT_LT(decisionOf(again, "r").recomputeGroup, 0);
}

TEST(CompletePlan, PlacesAndStagesFollowTheDataFlow)
{
    const auto graph = tinyMlp();
    const Plan plan = planOf(
        graph, 2, "mesh pp=2\nplace name:a : pp=0\nplace name:b : pp=1\nschedule gpipe\nmicro-batches 2");
    EXPECT_EQ(decisionText(plan, "a"), "whole @ 0 stage 0");
    EXPECT_EQ(decisionText(plan, "r"), "whole @ 0 stage 0");
    EXPECT_EQ(decisionText(plan, "b"), "whole @ 1 stage 1");
    EXPECT_EQ(decisionText(plan, "sum"), "whole @ 1 stage 1");
    EXPECT_EQ(decisionText(plan, "b'"), "whole @ 1 stage 1");
    EXPECT_EQ(plan.stageCount, 2);
    EXPECT_EQ(plan.schedule, ScheduleKind::GPipe);
    EXPECT_EQ(plan.microBatches, 2);
    // Going back to an earlier device is a new stage.
    const Plan back =
        planOf(graph, 2, "place name:a : devices 0\nplace name:r : devices 1\nplace name:b : devices 0");
    EXPECT_EQ(decisionText(back, "b"), "whole @ 0 stage 2");
    EXPECT_EQ(back.stageCount, 3);
    // Stage rows win.
    const Plan rows =
        planOf(graph, 2, "place name:a : devices 0\nplace name:b : devices 1\nstage name:b : 3");
    EXPECT_EQ(decisionText(rows, "r"), "whole @ 0 stage 0");
    EXPECT_EQ(decisionText(rows, "sum"), "whole @ 1 stage 3");
}

TEST(CompletePlan, RowsAreReportedWithTheOperatorsTheyBind)
{
    const auto graph = tinyMlp();
    const auto table =
        parseTable("split name:nothing.* : m by 2\noff split name:a : n by 5\nsplit kind:Linear : n by 2");
    ASSERT_TRUE(table);
    const auto completion = completePlan(graph, 2, *table);
    ASSERT_TRUE(completion);
    ASSERT_TRUE(completion->plan.graph);
    ASSERT_EQ(completion->rows.size(), 3u);
    EXPECT_FALSE(completion->rows[0].warning.empty());
    EXPECT_EQ(completion->rows[1].selected, 1);
    EXPECT_EQ(completion->rows[1].bound, 0);
    EXPECT_EQ(completion->rows[2].selected, 4); // forward and backward
    EXPECT_EQ(completion->rows[2].bound, 2);
}

TEST(CompletePlan, AttentionsKeepTheirProbabilitiesWhereARowSaysSo)
{
    const auto graph = tinyGpt();
    const auto plainOnes = [&](const std::string &rows) {
        const Plan plan = planOf(graph, 1, rows);
        std::set<std::string> names;
        for (std::size_t i = 0; i < graph->operators.size(); ++i) {
            if (plan.decisions[i].attention == AttentionMode::Plain)
                names.insert(graph->operators[i].name);
        }
        return names;
    };
    using Names = std::set<std::string>;
    EXPECT_EQ(plainOnes(""), Names{});
    EXPECT_EQ(plainOnes("attention all : fused"), Names{});
    EXPECT_EQ(plainOnes("attention all : plain"),
        (Names{"h.0.attn.attention", "h.0.attn.attention'", "h.1.attn.attention", "h.1.attn.attention'"}));
    EXPECT_EQ(plainOnes("attention layer:1 : plain\nattention kind:Attention & layer:0 : fused"),
        (Names{"h.1.attn.attention", "h.1.attn.attention'"}));
    const Plan plan = planOf(graph, 1, "recompute layer:0\nattention layer:0 : plain");
    const OperatorId attention = operatorNamed(*graph, "h.0.attn.attention");
    const OperatorId norm = operatorNamed(*graph, "h.0.ln_1");
    EXPECT_EQ(plan.decisions[static_cast<std::size_t>(attention.index)].rows, (std::vector<RowId>{{0}, {1}}));
    EXPECT_EQ(plan.decisions[static_cast<std::size_t>(norm.index)].rows, (std::vector<RowId>{{0}}));
}

TEST(CompletePlan, AnAttentionRowThatMeetsNoneSaysSo)
{
    const auto completion = completePlan(tinyMlp(), 1, *parseTable("attention all : plain"));
    ASSERT_TRUE(completion);
    EXPECT_FALSE(firstError(*completion));
    EXPECT_EQ(completion->rows[0].bound, 0);
    EXPECT_NE(completion->rows[0].warning.find("can take this rule"), std::string::npos);
}

TEST(CompletePlan, AttentionRowsThatDisagreeAreAConflict)
{
    const auto completion =
        completePlan(tinyGpt(), 1, *parseTable("attention all : plain\nattention layer:1 : fused"));
    ASSERT_TRUE(completion);
    for (const std::size_t row : {0U, 1U}) {
        ASSERT_TRUE(completion->rows[row].error);
        EXPECT_EQ(completion->rows[row].error->code, ErrorCode::Conflict);
        EXPECT_NE(completion->rows[row].error->message.find(
                      "compute attention differently in operator 'h.1.attn.attention'"),
            std::string::npos)
            << completion->rows[row].error->message;
    }
}

TEST(CompletePlan, RecomputeGroupsAreCutPerRowLayerAndOperator)
{
    const auto graph = tinyGpt();
    const auto groups = [&](const char *text) {
        const Plan plan = planOf(graph, 1, text);
        std::int32_t most = -1;
        for (const auto &decision : plan.decisions)
            most = std::max(most, decision.recomputeGroup);
        return most + 1;
    };
    EXPECT_EQ(groups(""), 0);
    EXPECT_EQ(groups("recompute layer:*"), 1);
    EXPECT_EQ(groups("recompute layer:* per layer"), 2);
    EXPECT_EQ(groups("recompute kind:Gelu per operator"), 2);
}

TEST(CompletePlan, OrdersPairEqualSelectionsAndCrossOthers)
{
    const auto graph = tinyGpt();
    EXPECT_EQ(planOf(graph, 1, "order name:h.*.attn.query before name:h.*.mlp.c_fc at +1").orders.size(), 0u);
    const Plan paired = planOf(graph, 1, "order name:h.*.mlp.c_proj before name:h.*.mlp.c_fc at +1");
    ASSERT_EQ(paired.orders.size(), 2u);
    EXPECT_EQ(graph->at(paired.orders[1].first).name, "h.1.mlp.c_proj");
    EXPECT_EQ(graph->at(paired.orders[1].second).name, "h.1.mlp.c_fc");
    EXPECT_EQ(paired.orders[1].microBatchOffset, 1);
    EXPECT_EQ(planOf(graph, 1, "order name:h.*.mlp.c_fc before name:lm_head").orders.size(), 2u);
}

TEST(CompletePlan, OrdersOfLargeSelectionsStaySmallAndNameEveryOperator)
{
    const auto graph = zooTraining("zoo:gpt?layers=24&hidden=16&heads=2&seq=8&vocab=32&batch=2");
    const Plan plan = planOf(graph, 1, "order layer:0-11 before layer:12-22");
    std::set<OperatorId> firsts;
    std::set<OperatorId> seconds;
    for (const OrderConstraint &order : plan.orders) {
        EXPECT_TRUE(order.allWithAll);
        firsts.insert(order.first);
        seconds.insert(order.second);
    }
    const SelectorIndex index(graph);
    const auto forward = [&](const char *text) {
        std::set<OperatorId> found;
        for (const OperatorId op : index.select(*parseSelector(text)))
            if (graph->at(op).direction == Direction::Forward)
                found.insert(op);
        return found;
    };
    EXPECT_EQ(firsts, forward("layer:0-11"));
    EXPECT_EQ(seconds, forward("layer:12-22"));
    EXPECT_GT(firsts.size() * seconds.size(), 10'000u);
    EXPECT_EQ(plan.orders.size(), std::max(firsts.size(), seconds.size()));
}

TEST(CompletePlan, InFlightRowsSpeakOfStages)
{
    const auto graph = tinyMlp();
    EXPECT_TRUE(planOf(graph, 1, "").inFlight.empty());
    EXPECT_EQ(planOf(graph, 1, "in-flight 3").inFlight, (std::vector<std::int32_t>{3}));
    const Plan one = planOf(graph, 2, "stage name:b : 1\nin-flight 3 stage 1");
    EXPECT_EQ(one.inFlight, (std::vector<std::int32_t>{0, 3}));
    EXPECT_FALSE(one.inFlightRows[0].valid());
    EXPECT_EQ(one.inFlightRows[1], RowId{1});
    EXPECT_EQ(
        planOf(graph, 2, "off in-flight 2\nstage name:b : 1\nin-flight 3\nin-flight 3 stage 0").inFlight,
        (std::vector<std::int32_t>{3, 3}));
}

TEST(CompletePlan, LimitsDecideNothing)
{
    const auto graph = tinyMlp();
    EXPECT_EQ(planOf(graph, 2, "limit memory 1B\nlimit time 1ns").decisions, planOf(graph, 2, "").decisions);
}

/// A chain and tree of random operators on [4 6 8] tensors, with weights.
GraphSnapshot randomGraph(std::mt19937 &random)
{
    const auto pick = [&](int most) { return std::uniform_int_distribution<int>(0, most)(random); };
    GraphBuilder builder("random");
    std::vector<TensorId> values{builder.input("x", {DataType::Float32, {4, 6, 8}})};
    for (int i = 0; i < 8; ++i) {
        const TensorId x = values[static_cast<std::size_t>(pick(static_cast<int>(values.size()) - 1))];
        const TensorId y = values.back();
        switch (pick(4)) {
        case 0:
            values.push_back(builder.one(OperatorKind::Linear, {x, builder.weight("w", {8, 8}), {}}));
            break;
        case 1:
            values.push_back(builder.one(OperatorKind::Add, {x, y}));
            break;
        case 2:
            values.push_back(builder.one(OperatorKind::Relu, {y}));
            break;
        case 3:
            values.push_back(
                builder.one(OperatorKind::Softmax, {x}, attributesOf({{"axis", std::int64_t{2}}})));
            break;
        default:
            values.push_back(builder.one(OperatorKind::Mul, {x, builder.weight("s", {8})}));
            break;
        }
    }
    values.push_back(builder.one(OperatorKind::Linear, {values.back(), builder.weight("last", {8, 8}), {}}));
    const TensorId loss = builder.one(OperatorKind::ReduceSum, {values.back()},
        attributesOf({{"axes", std::vector<std::int64_t>{0, 1, 2}}, {"keepdims", std::int64_t{0}}}));
    auto forward = builder.finish({}, loss);
    EXPECT_TRUE(forward) << describe(forward.error());
    auto graph = buildTrainingStep(*forward, {.optimizer = OperatorKind::AdamWStep});
    EXPECT_TRUE(graph) << describe(graph.error());
    return shared(*std::move(graph));
}

TEST(CompletePlan, RandomTablesGiveAValidPlanOrAnErrorOnARow)
{
    std::mt19937 random(7);
    const auto pick = [&](int most) { return std::uniform_int_distribution<int>(0, most)(random); };
    int plans = 0;
    for (int trial = 0; trial < 400; ++trial) {
        const auto graph = randomGraph(random);
        std::vector<std::string> names;
        for (const Operator &op : graph->operators) {
            if (op.direction == Direction::Forward)
                names.push_back(op.name);
        }
        std::string text = pick(1) ? "mesh dp=2 tp=2\n" : "";
        const bool mesh = !text.empty();
        for (int n = pick(5); n > 0; --n) {
            const std::string name =
                "name:\"" + names[static_cast<std::size_t>(pick(static_cast<int>(names.size()) - 1))] + "\"";
            const std::string dims[] = {"out0.0", "out0.1", "out0.-1", "in0.-1", "batch"};
            const std::string dim = dims[pick(4)];
            switch (pick(7)) {
            case 0:
                text += "split " + name + " : " + dim + (mesh ? " over tp\n" : " by 2\n");
                break;
            case 1:
                text += "split all : batch" + std::string(mesh ? " over dp\n" : " by 4\n");
                break;
            case 2:
                text += "place " + name + " : devices " + std::to_string(pick(3)) + ","
                    + std::to_string(pick(3)) + "\n";
                break;
            case 3:
                text += "place " + name + (mesh ? " : dp=1\n" : " : devices 2\n");
                break;
            case 4:
                text += "coshard " + name + " : " + dim + " by 2\n";
                break;
            case 5:
                text += "zero1 all" + std::string(mesh && pick(1) ? " over dp\n" : "\n");
                break;
            case 6:
                text += "split " + name + " : value by 2\n";
                break;
            default:
                text += pick(1) ? "micro-batches 2\n" : "recompute " + name + "\n";
                break;
            }
        }
        const auto table = parseTable(text);
        ASSERT_TRUE(table) << text;
        const auto completion = completePlan(graph, 4, *table);
        ASSERT_TRUE(completion) << text << describe(completion.error());
        ASSERT_EQ(completion->rows.size(), table->rows.size());
        if (!completion->plan.graph) {
            const auto error = firstError(*completion);
            ASSERT_TRUE(error) << text;
            EXPECT_EQ(error->where.substr(0, 4), "row:") << error->where;
            EXPECT_FALSE(error->message.empty());
            continue;
        }
        ++plans;
        EXPECT_TRUE(validate(completion->plan)) << text;
        for (const auto &decision : completion->plan.decisions)
            EXPECT_EQ(static_cast<std::int32_t>(decision.devices.size()), partCount(decision.partition));
        // Every optimizer part runs where the weight is used, and all its users' devices are served.
        for (std::size_t i = 0; i < graph->operators.size(); ++i) {
            if (graph->operators[i].direction != Direction::Optimizer)
                continue;
            std::set<DeviceId> users;
            const auto uses = usesOf(*graph);
            for (const OperatorId user :
                uses.consumers[static_cast<std::size_t>(graph->operators[i].inputs[0].index)]) {
                if (graph->at(user).direction == Direction::Forward) {
                    const auto &devices =
                        completion->plan.decisions[static_cast<std::size_t>(user.index)].devices;
                    users.insert(devices.begin(), devices.end());
                }
            }
            const auto &devices = completion->plan.decisions[i].devices;
            EXPECT_EQ(std::set<DeviceId>(devices.begin(), devices.end()), users) << text;
        }
    }
    EXPECT_GT(plans, 100);
    EXPECT_LT(plans, 390);
}

} // namespace
} // namespace planloom
