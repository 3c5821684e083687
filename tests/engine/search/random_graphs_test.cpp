#include "engine/search/solver.h"

#include "engine/hardware/cluster.h"
#include "engine/lowering/lower.h"
#include "engine/search/time/step_estimate.h"
#include "tests/engine/runtime/like_the_model.h"
#include "tests/engine/table/models.h"
#include "tests/seeds.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

namespace planloom {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

class Dice
{
public:
    explicit Dice(std::uint32_t seed)
        : m_random(seed)
    {
    }
    std::size_t below(std::size_t count)
    {
        return std::uniform_int_distribution<std::size_t>(0, count - 1)(m_random);
    }
    bool hits(double chance) { return std::bernoulli_distribution(chance)(m_random); }
    template<typename T> const T &of(const std::vector<T> &values) { return values[below(values.size())]; }

private:
    std::mt19937 m_random;
};

/// A few operators and a loss: products, activations and sums that branch and meet, at times of one weight.
GraphSnapshot randomGraph(Dice &dice, bool large, std::size_t mostOperators = 6)
{
    const std::int64_t batch = dice.of<std::int64_t>({4, 8});
    const std::int64_t width = large ? dice.of<std::int64_t>({512, 2048, 8192}) : 8;
    GraphBuilder builder("random");
    std::vector<TensorId> made{builder.input("x", {DataType::Float32, {batch * (large ? 64 : 1), width}})};
    std::vector<TensorId> weights;
    const std::size_t operators = 1 + dice.below(mostOperators);
    for (std::size_t i = 0; i < operators; ++i) {
        const std::string name = "o" + std::to_string(i);
        const TensorId from = i == 0 || dice.hits(0.7) ? made.back() : made[1 + dice.below(made.size() - 1)];
        switch (i == 0 ? 0 : dice.below(4)) {
        case 0:
        case 1: {
            if (weights.empty() || dice.hits(0.75))
                weights.push_back(builder.weight("w" + std::to_string(i), {width, width}));
            made.push_back(builder.one(OperatorKind::Linear, {from, dice.of(weights), {}}, {}, name));
            break;
        }
        case 2:
            made.push_back(builder.one(OperatorKind::Relu, {from}, {}, name));
            break;
        default:
            made.push_back(builder.one(OperatorKind::Add, {from, dice.of(made)}, {}, name));
        }
    }
    const TensorId loss = builder.one(OperatorKind::ReduceSum, {made.back()},
        attributesOf({{"axes", std::vector<std::int64_t>{0, 1}}, {"keepdims", std::int64_t{0}}}), "sum");
    auto forward = builder.finish({}, loss);
    EXPECT_TRUE(forward) << describe(forward.error());
    auto graph = buildTrainingStep(
        *forward, {.optimizer = dice.hits(0.5) ? OperatorKind::AdamWStep : OperatorKind::SgdStep});
    EXPECT_TRUE(graph) << describe(graph.error());
    return shared(*std::move(graph));
}

/// @param mesh  empty: a random one over one shard axis, or none
std::string randomRows(
    Dice &dice, const Graph &graph, std::int32_t devices, bool large, const std::string &mesh = {})
{
    std::vector<std::string> forward;
    for (const Operator &op : graph.operators)
        if (op.direction == Direction::Forward)
            forward.push_back("name:" + op.name);
    std::string rows;
    const auto add = [&](const std::string &row) { rows += row + "\n"; };
    const std::vector<std::string> axes =
        mesh.empty() ? std::vector<std::string>{"tp"} : std::vector<std::string>{"tp", "cp"};
    const std::vector<std::string> dimensions{mesh.empty() ? "m" : "a", "n", "k", "d0", "d1"};
    if (!mesh.empty()) { // with few configurations, that all partitions can be tried of
        add("mesh " + mesh);
        add("micro-batches " + std::to_string(1 << dice.below(3)));
    } else if (dice.hits(0.6)) {
        std::vector<std::string> meshes{"dp=" + std::to_string(devices), "tp=" + std::to_string(devices),
            "pp=" + std::to_string(devices)};
        if (devices == 4)
            for (const char *mesh : {"dp=2 tp=2", "pp=2 tp=2", "dp=2 pp=2"})
                meshes.emplace_back(mesh);
        add("mesh " + dice.of(meshes));
    }
    if (mesh.empty() && dice.hits(0.4))
        add("micro-batches " + std::to_string(1 << dice.below(3)));
    if (dice.hits(0.3))
        add("zero" + std::to_string(1 + dice.below(3)) + " all");
    if (dice.hits(0.2))
        add("schedule " + dice.of<std::string>({"1f1b", "gpipe", "zb-h1", "interleaved"}));
    if (dice.hits(0.2))
        add("recompute " + dice.of(forward));
    for (std::size_t i = dice.below(3); i > 0; --i)
        if (dice.hits(0.6))
            add("split " + dice.of(forward) + " : " + dice.of(dimensions) + " over " + dice.of(axes));
        else
            add("replicate " + dice.of(forward) + " : over " + dice.of(axes));
    if (dice.hits(0.2))
        add("degree "
            + dice.of<std::string>({"data", "tensor", "pipeline", "stages", "micro-batches", "sequence"})
            + dice.of<std::string>({" at most 2", " at least 2", " one of 1 4"}));
    const auto bound = [&] {
        return dice.of<std::string>({" at most 1", " at most 2", " at least 2", " one of 1 4", " exactly 2"});
    };
    if (dice.hits(0.2))
        add("parts " + (dice.hits(0.5) ? dice.of(forward) : std::string("all")) + " : "
            + dice.of<std::string>({"m", "n", "k", "d0", "d1", "batch", "in all"}) + bound());
    if (dice.hits(0.15))
        add("alike " + dice.of(forward) + " as " + dice.of(forward));
    if (dice.hits(0.15))
        add("follow " + dice.of(forward));
    if (dice.hits(0.1))
        add(dice.hits(0.5) ? "together " + dice.of(forward) + " with " + dice.of(forward)
                           : "apart " + dice.of(forward) + " from " + dice.of(forward));
    if (dice.hits(0.1))
        add("stage " + dice.of(forward) + " : "
            + dice.of<std::string>({"0", "1", "0 of 2", "1 of 2", "1 of 4"}));
    if (dice.hits(0.15))
        add("recompute " + dice.of(forward) + dice.of<std::string>({" never", " solver"}));
    if (dice.hits(0.05))
        add("zero0 all");
    if (dice.hits(0.15))
        add("place " + dice.of(forward) + " : "
            + dice.of<std::string>(
                {"devices 0", "devices 1", "devices 0, 1", "pp=0", "pp=1", "tp=1", "mesh"}));
    if (dice.hits(0.05))
        add("spread all : over pp");
    if (dice.hits(0.05))
        add("limit traffic " + dice.of<std::string>({"1KiB", "1MiB", "1GiB"})
            + dice.of<std::string>({"", " per link", " on device", " on node"}));
    if (dice.hits(0.25))
        add("limit memory "
            + (large ? dice.of<std::string>({"64MiB", "512MiB", "4GiB"})
                     : dice.of<std::string>({"1KiB", "2KiB", "8KiB"})));
    for (int i = dice.hits(0.15) ? 2 : 0; i > 0; --i)
        add("zero " + dice.of(forward) + dice.of<std::string>({" solver", " solver", " never"}));
    if (dice.hits(0.1))
        add("schedule solver" + dice.of<std::string>({"", " among gpipe", " among zb-h1, 1f1b"}));
    return rows;
}

/// Of devices that are alike, or of which some are of a slower kind.
Cluster randomCluster(Dice &dice, std::int32_t devices)
{
    Cluster cluster = *clusterNamed("dgx-h100:" + std::to_string(devices));
    if (!dice.hits(0.3))
        return cluster;
    const Cluster slower = *clusterNamed("dgx2-v100:" + std::to_string(devices));
    DeviceClass other{slower.device, slower.links};
    other.links.devicesPerNode = cluster.links.devicesPerNode;
    other.links.outer = cluster.links.outer;
    other.where = {dice.hits(0.7) ? DeviceRange{devices / 2, devices - devices / 2, 0}
                                  : DeviceRange{static_cast<std::int32_t>(dice.below(2)), 1, 2}};
    cluster.otherClasses.push_back(std::move(other));
    return cluster;
}

/// Every choice of every operator, if they are few.
bool nextChoice(const PartitionProblem &problem, std::vector<std::int32_t> &choice)
{
    for (std::size_t i = choice.size(); i-- > 0;) {
        if (static_cast<std::size_t>(++choice[i]) < problem.choiceCount(i))
            return true;
        choice[i] = 0;
    }
    return false;
}

/// The cheapest of one configuration, whatever the partition, and of those that fit.
struct Cheapest {
    double any = kNever;
    double fitting = kNever;
    double peak = kNever;
};

class RandomGraphs : public testing::Test
{
protected:
    /// @return nothing where there are too many partitions to try all
    std::optional<Cheapest> bruteForce(
        StepEstimator &estimator, const Configuration &configuration, std::int64_t limit)
    {
        if (!estimator.boundOf(configuration, {}))
            return Cheapest{};
        const PartitionProblem &problem = estimator.problemOf(configuration);
        double partitions = 1;
        for (std::size_t i = 0; i < problem.operatorCount(); ++i)
            partitions *= static_cast<double>(problem.choiceCount(i));
        if (partitions > m_mostPartitions)
            return std::nullopt;
        Cheapest cheapest;
        const CostNetwork network = problem.network({});
        std::vector<std::int32_t> choice(problem.operatorCount(), 0);
        do {
            const double cost = problem.costOf({}, choice);
            const double inNetwork = costOf(network, choice);
            if (cost == kNever) {
                EXPECT_EQ(inNetwork, kNever);
            } else {
                EXPECT_NEAR(inNetwork, cost, 1e-9 * cost);
            }
            const auto estimate = estimator.estimateWith(configuration, choice);
            if (!estimate || cost == kNever)
                continue;
            ++m_partitions;
            cheapest.any = std::min(cheapest.any, estimate->seconds);
            cheapest.peak = std::min(cheapest.peak, static_cast<double>(estimate->peakBytes));
            if (estimate->peakBytes <= limit)
                cheapest.fitting = std::min(cheapest.fitting, estimate->seconds);
        } while (nextChoice(problem, choice));
        return cheapest;
    }

    /// The search's model against all partitions and configurations: no bound is above what can be had, what
    /// is said not to fit does not, and what is found is no better than what there is. What is found binds,
    /// lowers and is proven to compute what the model does.
    void expectAgreement(
        const GraphSnapshot &graph, const Cluster &cluster, const std::string &text, bool runs);

    /// @return whether devices are of several classes
    bool expectAgreementOf(std::uint32_t seed)
    {
        Dice dice(seed);
        const bool large = dice.hits(0.6);
        const GraphSnapshot graph = randomGraph(dice, large);
        const std::int32_t devices = dice.of<std::int32_t>({2, 4, 4, 3});
        const std::string text = randomRows(dice, *graph, devices, large);
        SCOPED_TRACE(testing::Message() << "seed " << seed << "\n" << text);
        const Cluster cluster = randomCluster(dice, devices);
        expectAgreement(graph, cluster, text, !large && seed % 4 == 0);
        return !cluster.otherClasses.empty();
    }

    void report()
    {
        RecordProperty("found", m_found);
        RecordProperty("refused", m_refused);
        RecordProperty("tooLarge", m_tooLarge);
        RecordProperty("proven", m_proven);
        RecordProperty("tight", m_tight);
        RecordProperty("keptTo", m_keptTo);
        RecordProperty("near", m_near);
        RecordProperty("ran", m_ran);
        RecordProperty("partitions", m_partitions);
        std::printf("%d found, %d refused, %d too large, %d proven optimal, %d of %d tight limits kept, %d "
                    "bounded near, "
                    "%d run, %d partitions\n",
            m_found, m_refused, m_tooLarge, m_proven, m_keptTo, m_tight, m_near, m_ran, m_partitions);
    }

    double m_mostPartitions = 150; ///< Of one configuration, that are tried.
    int m_partitions = 0;
    int m_found = 0;
    int m_priced = 0; ///< With stages that are those of the brute force.
    int m_refused = 0;
    int m_tooLarge = 0;
    int m_proven = 0;
    int m_tight = 0; ///< Limits that some partition keeps to,
    int m_keptTo = 0; ///< and one was found that does,
    int m_near = 0; ///< and the bound along paths is near the fastest.
    int m_ran = 0;
};

void RandomGraphs::expectAgreement(
    const GraphSnapshot &graph, const Cluster &cluster, const std::string &text, bool runs)
{
    const std::int32_t devices = cluster.deviceCount;
    const auto rows = parseTable(text);
    ASSERT_TRUE(rows) << describe(rows.error());
    const Model model(graph);
    const CostModel costs = costModelOf(cluster);
    SearchOptions options;
    options.mostSeconds = 1000;
    options.mostSimulated = 3;
    const auto result = searchPlan(model, cluster, devices, *rows, costs, options);

    const auto space = searchSpaceOf(model, cluster, devices, *rows);
    auto estimator = space
        ? StepEstimator::make(model, cluster, devices, *rows, *space, costs, PrecisionPreset::Float32)
        : Result<std::unique_ptr<StepEstimator>>(space.error());
    double best = kNever;
    double peak = kNever;
    bool all = true;
    bool any = false;
    bool movesStages = false; // to where there is room: the brute force does not
    for (std::size_t c = 0; estimator && c < space->configurations.size(); ++c) {
        const Configuration &configuration = space->configurations[c];
        if (configuration.recompute != RecomputeWord::None
            && !(*estimator)->mayNeedRecompute(configuration, {}))
            continue; // the search does not look at it
        const auto cheapest = bruteForce(**estimator, configuration, space->memoryLimit);
        all = all && cheapest;
        if (!cheapest)
            continue;
        any = any || cheapest->any < kNever;
        best = std::min(best, cheapest->fitting);
        peak = std::min(peak, cheapest->peak);
        if (cheapest->any == kNever)
            continue;
        SCOPED_TRACE(toString(configuration));
        EXPECT_LE(static_cast<double>(*(*estimator)->leastPeakOf(configuration)), cheapest->peak);
        EXPECT_LE(*(*estimator)->boundOf(configuration, {}), cheapest->any * (1 + 1e-9));
        const auto staged = (*estimator)->stagedBoundOf(configuration, {});
        EXPECT_LE(staged->seconds, cheapest->any * (1 + 1e-9));
        EXPECT_LE(static_cast<double>(staged->peakBytes), cheapest->peak);
        for (int path = 0; configuration.ranks > 1 && path < 3; ++path)
            if (const auto estimate =
                    (*estimator)->estimateAlongPaths(configuration, space->memoryLimit, {})) {
                EXPECT_LE(estimate->bound, cheapest->fitting * (1 + 1e-9)) << path;
                EXPECT_GE(estimate->seconds, cheapest->any * (1 - 1e-9)) << path;
            }
        if (const auto within = (*estimator)->estimateWithin(configuration, space->memoryLimit, {})) {
            EXPECT_LE(within->bound, cheapest->fitting * (1 + 1e-9));
            // Stages may have moved to where there is room: then that is another question.
            const auto shared = (*estimator)->estimate(configuration, 0, {});
            ASSERT_TRUE(shared);
            movesStages = movesStages || within->stages->stageOf != shared->stages->stageOf;
            if (within->stages->stageOf == shared->stages->stageOf) {
                EXPECT_GE(within->seconds, cheapest->any * (1 - 1e-9));
                EXPECT_GE(static_cast<double>(within->peakBytes), cheapest->peak);
                if (within->peakBytes <= space->memoryLimit) {
                    EXPECT_GE(within->seconds, cheapest->fitting * (1 - 1e-9));
                }
            }
        }
        // Limits that few partitions keep to.
        for (const double room : {1.0, 1.15}) {
            const auto limit = static_cast<std::int64_t>(std::ceil(cheapest->peak * room));
            if (c % 3 != 0 || limit > space->memoryLimit)
                continue;
            const auto within = (*estimator)->estimateWithin(configuration, limit, {});
            ASSERT_TRUE(within) << describe(within.error());
            const double fitting = bruteForce(**estimator, configuration, limit)->fitting;
            EXPECT_LE(within->bound, fitting * (1 + 1e-9));
            double along = 0;
            for (int path = 0; path < 6; ++path)
                if (const auto estimate = (*estimator)->estimateAlongPaths(configuration, limit, {}))
                    along = std::max(along, estimate->bound);
            EXPECT_LE(along, fitting * (1 + 1e-9));
            m_near += along > 0.95 * fitting ? 1 : 0;
            ++m_tight;
            m_keptTo += within->peakBytes <= limit ? 1 : 0;
        }
        for (const double price : {0.25, 0.6, 1.0})
            if (const auto estimate = (*estimator)->estimate(configuration, price, {})) {
                EXPECT_LE(estimate->bound, cheapest->any * (1 + 1e-9)) << price;
                EXPECT_GE(estimate->seconds, cheapest->any * (1 - 1e-9)) << price;
            }
    }
    if (!result) {
        ++m_refused;
        bool contradict = false; // the rows about the whole plan, by themselves
        planMeaning(model, devices, *rows, [&](RowId, Error) { contradict = true; });
        // And those about operators, whatever the mesh.
        ConstraintTable anyMesh = *rows;
        for (Row &row : anyMesh.rows)
            row.enabled = row.enabled && !std::holds_alternative<OpTransRule>(row.rule);
        contradict = contradict || bindTable(model, devices, anyMesh).failed;
        // What runs elsewhere is priced about, and need not go with what else rows say.
        contradict = contradict || text.find("place ") != std::string::npos;
        EXPECT_TRUE(contradict || !(any && all)) << describe(result.error());
        return;
    }
    ++m_found;
    EXPECT_TRUE(any || !all);
    if (result->cannotFit()) {
        ++m_tooLarge;
        EXPECT_GT(peak, static_cast<double>(space->memoryLimit));
    } else {
        EXPECT_LE(result->modelBound, best * (1 + 1e-9));
        // A plan with other stages than the brute force has is known by its simulated step alone.
        const bool isPriced = result->best.seconds != result->best.simulatedSeconds;
        m_priced += isPriced ? 1 : 0;
        if (all && isPriced && !movesStages && !result->isOfOthers()
            && result->best.peakBytes <= space->memoryLimit) {
            EXPECT_GE(result->best.seconds, best * (1 - 1e-9));
        }
        m_proven += result->modelBound >= result->best.seconds * (1 - 1e-9) ? 1 : 0;
    }
    ConstraintTable whole = *rows;
    whole.rows.insert(whole.rows.end(), result->rows.rows.begin(), result->rows.rows.end());
    const auto completion = completePlan(model, devices, whole);
    ASSERT_TRUE(completion) << describe(completion.error());
    ASSERT_FALSE(firstError(*completion)) << describe(*firstError(*completion));
    const auto plan = lower(completion->plan, cluster, costs);
    ASSERT_TRUE(plan) << describe(plan.error());
    const auto proof = verify(*plan);
    ASSERT_TRUE(proof);
    EXPECT_TRUE(proof->ok());
    if (runs) {
        ++m_ran;
        expectLikeTheModel(graph, *plan);
    }
}

TEST_F(RandomGraphs, FeasibilityCostAndBoundAgreeWithBruteForce)
{
    const auto [first, end] = seedsToTry("PLANLOOM_RANDOM_GRAPHS", 120);
    int mixed = 0;
    for (std::uint32_t seed = first; seed < end; ++seed)
        mixed += expectAgreementOf(seed) ? 1 : 0;
    report();
    if (end - first >= 100) {
        EXPECT_GT(m_found, 50);
        EXPECT_GT(m_priced, 30);
        EXPECT_GT(m_refused, 0);
        EXPECT_GT(m_tooLarge, 0);
        EXPECT_GT(m_proven, 10);
        EXPECT_GT(m_ran, 3);
        EXPECT_GT(mixed, 20);
    }
}

/// Of a layer's weights the largest need not be one whose gradient computation waits for; those that could
/// have fitted, and many of those that need least, may not be plans at all; and a search moves stages to
/// where there is room.
TEST_F(RandomGraphs, AgreeWhereTheyOnceDidNot)
{
    for (const std::uint32_t seed : {501543U, 600623U, 606058U, 811161U})
        expectAgreementOf(seed);
}

/// Likewise with operators cut over two axes, each as it likes and as rows about either axis allow.
TEST_F(RandomGraphs, TwoShardAxesAgreeWithBruteForce)
{
    const auto [first, end] = seedsToTry("PLANLOOM_RANDOM_AXES", 60);
    m_mostPartitions = 2500;
    for (std::uint32_t seed = first; seed < end; ++seed) {
        Dice dice(seed + 1000);
        const bool large = dice.hits(0.6);
        const GraphSnapshot graph = randomGraph(dice, large, 3);
        const std::string mesh = dice.of<std::string>(
            {"cp=2 tp=2", "tp=2 cp=2", "cp=2 tp=2", "dp=2 cp=2 tp=2", "pp=2 cp=2 tp=2", "cp=2 tp=4"});
        const std::int32_t devices = mesh.size() > 9 || mesh.ends_with('4') ? 8 : 4;
        const std::string text = randomRows(dice, *graph, devices, large, mesh);
        SCOPED_TRACE(testing::Message() << "seed " << seed << "\n" << text);
        expectAgreement(
            graph, *clusterNamed("dgx-h100:" + std::to_string(devices)), text, !large && seed % 4 == 0);
    }
    report();
    if (end - first >= 60) {
        EXPECT_GT(m_found, 25);
        EXPECT_GT(m_proven, 5);
        EXPECT_GT(m_ran, 1);
        EXPECT_GT(m_partitions, 1000);
    }
}

} // namespace
} // namespace planloom
