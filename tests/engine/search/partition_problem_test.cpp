#include "engine/search/partition_problem.h"

#include "engine/hardware/cluster.h"
#include "tests/engine/table/models.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace planloom {
namespace {

/// A problem with all that it is read against.
struct Asked {
    Model model{};
    Cluster cluster{};
    CostModel costs{};
    Plan plan{};
    std::unique_ptr<StorageTypes> types{};
    std::unique_ptr<PartitionProblem> problem{};

    Asked(GraphSnapshot graph, std::int32_t parts)
        : model(std::move(graph))
        , cluster(*clusterNamed("dgx-h100:8"))
        , costs(costModelOf(cluster))
    {
        plan = completePlan(model, 1, {})->plan;
        types = std::make_unique<StorageTypes>(*model.graph, std::vector<Precision>{});
        const AxisSetting setting{.model = &model,
            .plan = &plan,
            .types = types.get(),
            .costs = &costs,
            .axis = "tp",
            .parts = parts};
        std::vector<DeviceId> group;
        for (std::int32_t d = 0; d < parts; ++d)
            group.push_back({d});
        problem = std::make_unique<PartitionProblem>(setting, groupShape(cluster, group));
    }

    /// What operators take, with their communication, and their weights' part of the step.
    double seconds(const std::vector<std::int32_t> &choice) const
    {
        const OperatorTimes times = problem->timesOf(choice);
        double sum = 0;
        for (std::size_t i = 0; i < times.forward.size(); ++i) {
            sum += times.forward[i] + times.backward[i];
            const Operator &op = model.graph->operators[i];
            for (std::size_t slot = 0; slot < op.inputs.size(); ++slot)
                if (const auto own = problem->accumulationOf(i, slot, problem->choiceOf(i, choice[i])))
                    sum += own->first
                        + problem->updateSeconds(op.inputs[slot]) * problem->shareOf(op.inputs[slot], choice);
        }
        return sum;
    }
};

TEST(PartitionProblem, ItsNetworkCostsWhatOperatorsAndTheirCommunicationTake)
{
    const Asked asked(tinyMlp(8, 16), 2);
    const CostNetwork network = asked.problem->network({});
    std::mt19937 random(1);
    for (int i = 0; i < 200; ++i) {
        std::vector<std::int32_t> choice;
        for (const std::int32_t domain : network.domains)
            choice.push_back(std::uniform_int_distribution<std::int32_t>(0, domain - 1)(random));
        EXPECT_NEAR(costOf(network, choice), asked.seconds(choice), 1e-9);
        EXPECT_NEAR(asked.problem->costOf({}, choice), asked.seconds(choice), 1e-9);
    }
}

/// Column, then row (arXiv:1909.08053, section 3): no communication in between, one all-reduce forward.
TEST(PartitionProblem, FindsColumnAndRowOfAPairOfLargeProducts)
{
    GraphBuilder builder("mlp");
    const TensorId x = builder.input("x", {DataType::Float32, {64, 8192}});
    const TensorId w1 = builder.weight("w1", {8192, 32768});
    const TensorId w2 = builder.weight("w2", {32768, 8192});
    const TensorId a = builder.one(OperatorKind::Linear, {x, w1, {}}, {}, "a");
    const TensorId r = builder.one(OperatorKind::Relu, {a}, {}, "r");
    const TensorId b = builder.one(OperatorKind::Linear, {r, w2, {}}, {}, "b");
    const TensorId loss = builder.one(OperatorKind::ReduceSum, {b},
        attributesOf({{"axes", std::vector<std::int64_t>{0, 1}}, {"keepdims", std::int64_t{0}}}), "sum");
    auto graph = buildTrainingStep(*builder.finish({}, loss));
    ASSERT_TRUE(graph);
    const Asked asked(shared(*std::move(graph)), 8);
    // Reductions of whole weights' gradients count, as they would without anything to hide behind.
    const GroupShape group{.ranks = 8};
    PartitionPricing pricing;
    pricing.reductions = 1;
    pricing.all.perReducedByte =
        asked.costs.collective(CollectiveKind::AllReduce, Bytes{1 << 30}, group) / (1 << 30);
    const auto answer = cheapestChoice(asked.problem->network(pricing));
    ASSERT_TRUE(answer);
    EXPECT_TRUE(answer->exact);
    const auto cutOf = [&](std::string_view name) {
        const auto op = static_cast<std::size_t>(operatorNamed(*asked.model.graph, name).index);
        const Split &split = asked.problem->choiceOf(op, answer->choice[op]).split;
        return split.kind == SplitKind::Dimension
            ? asked.model.graph->operators[op]
                  .annotation.dimensions[static_cast<std::size_t>(split.dimension)]
                  .name
            : std::string("whole");
    };
    EXPECT_EQ(cutOf("a"), "n");
    EXPECT_EQ(cutOf("b"), "k");
}

TEST(PartitionProblem, AlikeLayersShareTheirChoices)
{
    const Asked asked(tinyGpt(), 2);
    const Graph &graph = *asked.model.graph;
    std::size_t pairs = 0;
    for (std::size_t i = 0; i < asked.problem->operatorCount(); ++i) {
        const std::string &name = graph.operators[i].name;
        const std::size_t at = name.find(".0.");
        if (at == std::string::npos)
            continue;
        const OperatorId twin = operatorNamed(graph, name.substr(0, at) + ".1." + name.substr(at + 3));
        if (!twin.valid())
            continue;
        ++pairs;
        EXPECT_EQ(
            &asked.problem->choiceOf(i, 0), &asked.problem->choiceOf(static_cast<std::size_t>(twin.index), 0))
            << name;
    }
    EXPECT_GT(pairs, 5u);
}

} // namespace
} // namespace planloom
