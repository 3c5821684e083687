#include "engine/search/partition/operator_times.h"

#include "engine/hardware/cluster.h"
#include "tests/engine/table/models.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
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

    Asked(GraphSnapshot graph, std::int32_t parts, std::int32_t outerParts = 1)
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
            .parts = parts,
            .outerAxis = outerParts > 1 ? "cp" : "",
            .outerParts = outerParts};
        const auto group = [&](std::int32_t count, std::int32_t stride) {
            std::vector<DeviceId> devices;
            for (std::int32_t d = 0; d < count; ++d)
                devices.push_back({d * stride});
            return groupShape(cluster, devices);
        };
        problem = std::make_unique<PartitionProblem>(setting,
            ShardGroups{group(parts, 1), group(outerParts, parts), group(parts * outerParts, 1),
                groupShape(cluster, {{0}, {parts * outerParts - 1}})});
    }

    /// What operators take, with their communication, and their weights' part of the step.
    double seconds(const std::vector<std::int32_t> &choice) const
    {
        const OperatorTimes times = timesOf(*problem, choice);
        double sum = 0;
        for (std::size_t i = 0; i < times.forward.size(); ++i) {
            sum += times.forward[i] + times.backward[i];
            const Operator &op = model.graph->operators[i];
            for (std::size_t slot = 0; slot < op.inputs.size(); ++slot)
                if (const auto own = problem->accumulationOf(i, slot, problem->choiceOf(i, choice[i])))
                    sum += own->first
                        + problem->weights().updateSeconds(op.inputs[slot])
                            * problem->shareOf(op.inputs[slot], choice);
        }
        return sum;
    }
};

TEST(PartitionProblem, ItsNetworkCostsWhatOperatorsAndTheirCommunicationTake)
{
    for (const std::int32_t outer : {1, 2}) {
        const Asked asked(tinyMlp(8, 16), 2, outer);
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
}

/// x w, of a batch too large for latencies to matter.
GraphSnapshot oneProduct(std::int64_t m, std::int64_t k, std::int64_t n)
{
    GraphBuilder builder("product");
    const TensorId x = builder.input("x", {DataType::Float32, {m, k}});
    const TensorId w = builder.weight("w", {k, n});
    const TensorId y = builder.one(OperatorKind::Linear, {x, w, {}}, {}, "y");
    const TensorId loss = builder.one(OperatorKind::ReduceSum, {y},
        attributesOf({{"axes", std::vector<std::int64_t>{0, 1}}, {"keepdims", std::int64_t{0}}}), "sum");
    return shared(*buildTrainingStep(*builder.finish({}, loss)));
}

std::string cutOf(const Asked &asked, std::size_t op, const Split &split)
{
    return split.kind == SplitKind::Dimension
        ? asked.model.graph->operators[op]
              .annotation.dimensions[static_cast<std::size_t>(split.dimension)]
              .name
        : std::string("whole");
}

/// Every pair of the splits over either axis is a choice, the outer one around the other; what is read and
/// made lies as both cut it.
TEST(PartitionProblem, TwoAxesNestEverySplitInEveryOther)
{
    const Asked asked(oneProduct(8, 8, 8), 2, 2);
    std::map<std::pair<std::string, std::string>, const OperatorChoice *> choices; // outer, inner
    for (std::size_t c = 0; c < asked.problem->choiceCount(0); ++c) {
        const OperatorChoice &choice = asked.problem->choiceOf(0, static_cast<std::int32_t>(c));
        EXPECT_EQ(choice.split.axis, "tp");
        EXPECT_EQ(choice.outer.axis, "cp");
        choices[{cutOf(asked, 0, choice.outer), cutOf(asked, 0, choice.split)}] = &choice;
    }
    EXPECT_EQ(choices.size(), 16u);
    const OperatorChoice &nested = *choices.at({"a", "k"}); // y = x w
    EXPECT_EQ(nested.inputs[0], (ShardLayout{cutAlong(1), cutAlong(0)}));
    EXPECT_EQ(nested.inputs[1], (ShardLayout{cutAlong(0), kWhole}));
    EXPECT_EQ(nested.outputs[0], (ShardLayout{kSummands, cutAlong(0)}));
    EXPECT_EQ(nested.inputGradients[1], (ShardLayout{cutAlong(0), kSummands}));
    EXPECT_EQ(nested.outputGradients[0], (ShardLayout{kWhole, cutAlong(0)}));
    const auto accumulation = asked.problem->accumulationOf(0, 1, nested);
    ASSERT_TRUE(accumulation);
    EXPECT_EQ(accumulation->sums, ShardAxes::Outer);
    const OperatorChoice &twice = *choices.at({"n", "n"});
    EXPECT_EQ(twice.outputs[0], (ShardLayout{cutAlong(1), cutAlong(1)}));
    EXPECT_EQ(asked.problem->setting().partsOf(twice.outputs[0]), 4);
}

/// A dimension of six, which four devices do not divide: one axis of four can only replicate or cut the
/// others.
TEST(PartitionProblem, TwoAxesCutWhatOneOfAllDevicesCannot)
{
    const GraphSnapshot graph = oneProduct(2, 6, 6);
    EXPECT_EQ(Asked(graph, 4).problem->choiceCount(0), 1u); // whole
    const Asked two(graph, 2, 2);
    std::int32_t most = 1;
    for (std::size_t c = 0; c < two.problem->choiceCount(0); ++c)
        most = std::max(most,
            two.problem->setting().partsOf(two.problem->choiceOf(0, static_cast<std::int32_t>(c)).inputs[0]));
    EXPECT_EQ(most, 4); // the samples over one, the sum over the other
}

TEST(PartitionProblem, TheCheapestOverTwoAxesIsThatOfAllPairsOfSplits)
{
    for (const std::int64_t size : {8, 512, 4096}) {
        const Asked asked(tinyMlp(size, 2 * size), 2, 2);
        const CostNetwork network = asked.problem->network({});
        const auto answer = cheapestChoice(network);
        ASSERT_TRUE(answer);
        EXPECT_TRUE(answer->exact);
        std::vector<std::int32_t> choice(network.domains.size(), 0);
        double least = std::numeric_limits<double>::infinity();
        double partitions = 1;
        for (const std::int32_t domain : network.domains)
            partitions *= domain;
        ASSERT_LE(partitions, 1e6);
        for (bool more = true; more;) {
            least = std::min(least, asked.problem->costOf({}, choice));
            more = false;
            for (std::size_t i = choice.size(); i-- > 0 && !more;) {
                more = ++choice[i] < network.domains[i];
                choice[i] = more ? choice[i] : 0;
            }
        }
        EXPECT_NEAR(answer->cost, least, 1e-9 * least) << size;
        EXPECT_NEAR(answer->bound, least, 1e-9 * least) << size;
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
    pricing.reduced[indexOf(ShardAxes::Inner)].perReducedByte =
        asked.costs.collective(CollectiveKind::AllReduce, Bytes{1 << 30}, group) / (1 << 30);
    const auto answer = cheapestChoice(asked.problem->network(pricing));
    ASSERT_TRUE(answer);
    EXPECT_TRUE(answer->exact);
    const auto cut = [&](std::string_view name) {
        const auto op = static_cast<std::size_t>(operatorNamed(*asked.model.graph, name).index);
        return cutOf(asked, op, asked.problem->choiceOf(op, answer->choice[op]).split);
    };
    EXPECT_EQ(cut("a"), "n");
    EXPECT_EQ(cut("b"), "k");
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
