// Plans whose gradients are computed at weights of earlier updates: proven, run, and compared with the model
// that is trained with the same delays on one device; and that with a loop written out here.

#include "engine/design/models/reference.h"
#include "engine/lowering/lower.h"
#include "engine/lowering/program/execution_plan_json.h"
#include "engine/plan/complete.h"
#include "engine/runtime/training/check.h"
#include "engine/table/table_text.h"
#include "engine/verify/verify.h"
#include "tests/engine/gallery/gallery_for_tests.h"
#include "tests/engine/lowering/random_tables.h"
#include "tests/engine/runtime/model_files.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstring>
#include <ostream>
#include <random>

namespace planloom {
namespace {

struct DelayedPlan {
    const char *model;
    const char *rows;
    std::int32_t devices;
};

std::ostream &operator<<(std::ostream &out, const DelayedPlan &plan)
{
    return out << plan.model << " " << plan.rows;
}

Result<ExecutionPlan> delayedPlanOf(const GraphSnapshot &graph, const std::string &rows, std::int32_t devices)
{
    TRY(const auto table, parseTable(rows));
    TRY(const auto completion, completePlan(graph, devices, table));
    if (const auto error = firstError(completion))
        return *error;
    return lower(completion.plan, *clusterNamed("cpu:" + std::to_string(devices)));
}

std::int32_t mostVersionsIn(const ExecutionPlan &plan)
{
    std::int32_t most = 0;
    for (const DeviceProgram &device : plan.devices)
        for (const BufferInfo &buffer : device.buffers)
            most = std::max<std::int32_t>(most, buffer.versions);
    return most;
}

constexpr std::int32_t kDelayedSteps = 5;

RunOutcome ranDelayed(const ExecutionPlan &plan, std::int32_t steps = kDelayedSteps)
{
    RunOptions options;
    options.keepGradients = true;
    options.randomWeights = true;
    options.steps = steps;
    auto outcome = runOnCpu(plan, options);
    EXPECT_TRUE(outcome) << describe(outcome.error());
    return outcome ? *std::move(outcome) : RunOutcome{};
}

/// Losses, gradients and weights of the last of several steps.
void expectDelayedIsTheModel(const ExecutionPlan &plan)
{
    const auto report = verify(plan);
    ASSERT_TRUE(report) << describe(report.error());
    ASSERT_TRUE(report->ok()) << report->failure->reason;
    const auto reference = referenceOf(plan);
    ASSERT_TRUE(reference) << describe(reference.error());
    ASSERT_EQ((*reference)->devices.size(), 1U);
    const auto check = compareOutcomes(ranDelayed(plan), ranDelayed(**reference), tolerancesOf(plan));
    ASSERT_TRUE(check) << describe(check.error());
    EXPECT_TRUE(check->ok) << check->worstTensor << " " << check->worstError;
}

class WeightVersions : public testing::TestWithParam<DelayedPlan>
{
};

TEST_P(WeightVersions, TrainLikeTheModelWithTheSameDelays)
{
    const DelayedPlan &given = GetParam();
    const GraphSnapshot graph = trainingStepOf(given.model);
    if (!graph)
        GTEST_SKIP() << "the model set is not at " << kModelFiles;
    const auto plan = delayedPlanOf(graph, given.rows, given.devices);
    ASSERT_TRUE(plan) << describe(plan.error());
    EXPECT_GT(mostVersionsIn(*plan), 1);
    expectDelayedIsTheModel(*plan);
    // Its file says it all.
    const auto again = executionPlanFromJson(toJson(*plan));
    ASSERT_TRUE(again) << describe(again.error());
    EXPECT_EQ(again->devices, plan->devices);
    EXPECT_EQ(again->weightVersions, plan->weightVersions);
}

constexpr const char *kGpt2Delayed = "zoo:gpt?layers=2&hidden=16&heads=4&seq=8&batch=4&vocab=24";
constexpr const char *kLlamaDelayed =
    "zoo:llama?layers=2&hidden=16&heads=4&kv_heads=2&seq=4&batch=8&vocab=24";
constexpr const char *kT5Delayed = "zoo:t5?layers=1&hidden=16&heads=4&src=8&tgt=4&batch=4&vocab=24";
constexpr const char *kTwoStages = "micro-batches 2\nstage layer:1 : 1\nplace layer:1 : devices 1\n"
                                   "place layer:0 : devices 0\nschedule 1f1b\nweight-versions all : 2";

constexpr const char *kTwoUpdates = "micro-batches 2 update every 1\nstage layer:1 : 1\n"
                                    "place layer:1 : devices 1\nplace layer:0 : devices 0\n"
                                    "schedule 1f1b\nweight-versions all : 2";

const DelayedPlan kDelayed[] = {{kGpt2Delayed, "weight-versions all : 2", 1},
    {kGpt2Delayed, "weight-versions all : 4\nmicro-batches 2", 1},
    // As many as the stage is from the last one: PipeDream's.
    {kGpt2Delayed,
        "micro-batches 4\nstage layer:1 : 1\nplace layer:1 : devices 1\nplace layer:0 : devices 0\n"
        "schedule 1f1b\nweight-versions layer:0 : 2",
        2},
    {kGpt2Delayed, kTwoStages, 2},
    // The embedding's two readers, at different ages.
    {kGpt2Delayed, "weight-versions layer:0 : 2\nweight-versions kind:Gather : 3", 1},
    {kGpt2Delayed, "mesh x=2\nsplit all : heads over x\nweight-versions all : 2", 2},
    {kGpt2Delayed, "mesh x=2\nsplit all : sequence over x\nweight-versions all : 3", 2},
    {kGpt2Delayed, "mesh dp=2\nsplit all : batch over dp\nweight-versions all : 2", 2},
    {kGpt2Delayed, "mesh dp=2\nsplit all : batch over dp\nzero1 all over dp\nweight-versions all : 2", 2},
    {kGpt2Delayed, "mesh dp=2\nsplit all : batch over dp\nzero2 all over dp\nweight-versions all : 3", 2},
    {kGpt2Delayed, "mesh dp=2\nsplit all : batch over dp\nzero3 all over dp\nweight-versions all : 2", 2},
    {kGpt2Delayed,
        "mesh dp=2\nmicro-batches 2\nsplit all : batch over dp\nzero3 all over dp prefetch 2\n"
        "precision all : bf16\nweight-versions layer:0 : 3\nweight-versions layer:1 : 2",
        2},
    {kGpt2Delayed, "recompute layer:* per layer\nweight-versions all : 2", 1},
    // Several updates in a step.
    {kGpt2Delayed, "micro-batches 4 update every 1\nweight-versions all : 3", 1},
    {kGpt2Delayed, "micro-batches 4 update every 2\nprecision all : bf16\nweight-versions layer:0 : 2", 1},
    {kGpt2Delayed,
        "micro-batches 4 update every 1\nstage layer:1 : 1\nplace layer:1 : devices 1\n"
        "place layer:0 : devices 0\nschedule 1f1b\nweight-versions layer:0 : 2",
        2},
    {kLlamaDelayed,
        "micro-batches 8 update every 1\nstage layer:1 : 1\nplace layer:1 : devices 1\n"
        "place layer:0 : devices 0\nschedule 1f1b\nweight-versions layer:0 : 2\n"
        "weight-versions name:embed* : 2",
        2},
    {kLlamaDelayed,
        "mesh dp=2 pp=2\nmicro-batches 4 update every 2\nsplit all : batch over dp\nstage layer:1 : 1\n"
        "place layer:1 : pp=1\nplace layer:0 : pp=0\nschedule 1f1b\nzero1 all over dp\n"
        "weight-versions all : 2",
        4},
    {kLlamaDelayed,
        "mesh dp=2\nmicro-batches 4 update every 1\nsplit all : batch over dp\nzero3 all over dp\n"
        "weight-versions all : 2",
        2},
    {kLlamaDelayed,
        "mesh dp=2\nmicro-batches 4 update every 2\nsplit all : batch over dp\nzero2 all over dp\n"
        "split-backward all\nweight-versions all : 2",
        2},
    {kGpt2Delayed, "micro-batches 4 whole update every 2\nweight-versions all : 2", 1},
    {kGpt2Delayed,
        "micro-batches 4 update every 2\noffload all : states\noffload all : activations\n"
        "weight-versions all : 2",
        1},
    {kGpt2Delayed,
        "micro-batches 4 update every 2\nstage layer:1 : 1\nplace layer:1 : devices 1\n"
        "place layer:0 : devices 0\nschedule gpipe\nweight-versions all : 2\nrecompute layer:* per layer",
        2},
    {kT5Delayed,
        "mesh x=2\nsplit all : heads over x\nmicro-batches 4 update every 1\nweight-versions all : 2", 2},
    {kGpt2Delayed, "split-backward all\nmicro-batches 2\nweight-versions all : 2", 1},
    {kGpt2Delayed, "coshard layer:0 : batch by 2\nweight-versions all : 2", 1},
    {kGpt2Delayed, "precision all : bf16\nmicro-batches 2\nweight-versions all : 2", 1},
    {kT5Delayed, "mesh x=2\nsplit all : heads over x\nmicro-batches 2\nweight-versions all : 2", 2},
    {"gpt2_tiny", kTwoStages, 2}, {"gpt2_tiny", kTwoUpdates, 2}, {"t5_tiny", kTwoStages, 2},
    {"t5_tiny", kTwoUpdates, 2}, {"swin_tiny", "micro-batches 2 update every 1\nweight-versions all : 2", 1},
    {"evoformer_tiny", "micro-batches 4 whole update every 2\nweight-versions all : 2", 1},
    {"swin_tiny", "weight-versions all : 2", 1},
    {"swin_tiny", "mesh x=2\nsplit all : batch over x\nweight-versions all : 2", 2},
    {"evoformer_tiny", "mesh x=2\nsplit all : heads over x\nweight-versions all : 2", 2}};

INSTANTIATE_TEST_SUITE_P(Models, WeightVersions, testing::ValuesIn(kDelayed), [](const auto &info) {
    std::string name = std::to_string(info.index) + "_";
    for (const char letter : std::string(info.param.rows))
        name += std::isalnum(static_cast<unsigned char>(letter)) != 0 ? letter : '_';
    return name;
});

TEST(WeightVersionsOfGalleryPlans, TrainLikeTheModelWithTheSameDelays)
{
    for (const char *model : {"zoo:gpt?layers=4&hidden=16&heads=4&seq=8&batch=8&vocab=24",
             "zoo:llama?layers=4&hidden=16&heads=4&kv_heads=2&seq=4&batch=8&vocab=24"}) {
        const GraphSnapshot graph = trainingStepOf(model);
        for (const char *gallery : {"pipedream:micro-batches=8", "pipedream-2bw:micro-batches=8"}) {
            SCOPED_TRACE(testing::Message() << model << " " << gallery);
            const auto table = galleryTable(gallery, graph, 4);
            ASSERT_TRUE(table) << describe(table.error());
            const auto plan = delayedPlanOf(graph, print(*table), 4);
            ASSERT_TRUE(plan) << describe(plan.error());
            EXPECT_GT(plan->updates, 1);
            EXPECT_GT(mostVersionsIn(*plan), 1);
            expectDelayedIsTheModel(*plan);
        }
    }
}

TEST(WeightVersionsOfUnits, AreSharedOutToo)
{
    const GraphSnapshot graph =
        trainingStepOf("zoo:gpt?layers=2&hidden=16&heads=4&seq=8&batch=8&vocab=24", OperatorKind::AdamWStep);
    for (const char *sharding : {"zero1 all over dp", "zero2 all over dp", "zero3 all over dp",
             "zero1 all over dp\nmicro-batches 2 update every 1",
             "zero3 all over dp\nmicro-batches 2 update every 1"})
        for (const char *precision : {"fp32", "bf16"}) {
            SCOPED_TRACE(testing::Message() << sharding << " " << precision);
            const auto table = parseTable(std::string("mesh dp=4\nsplit all : batch over dp\n") + sharding
                + "\nprecision all : " + precision + "\nweight-versions layer:0 : 3\n"
                + "weight-versions layer:1 : 2");
            ASSERT_TRUE(table) << describe(table.error());
            const auto completion =
                completePlan(graph, 4, *table, CompletionOptions{.units = UseUnits::WherePossible});
            ASSERT_TRUE(completion && !firstError(*completion)) << describe(*firstError(*completion));
            ASSERT_EQ(completion->plan.units.count, 4);
            const auto plan = lower(completion->plan, *clusterNamed("cpu:4"));
            ASSERT_TRUE(plan) << describe(plan.error());
            EXPECT_EQ(mostVersionsIn(*plan), 3);
            expectDelayedIsTheModel(*plan);
        }
}

/// A perceptron with one hidden layer, trained by plain loops: no graph, no kernels, no plan.
class LoopMlp
{
public:
    static constexpr std::size_t kInputs = 3;
    static constexpr std::size_t kHidden = 4;
    static constexpr std::size_t kClasses = 2;
    static constexpr std::size_t kBatch = 4;
    using Values = std::vector<double>;
    using Parameters = std::array<Values, 4>; ///< Weight (input-major) and bias of both layers.

    LoopMlp()
        : m_x(drawnDoubles(kBatch * kInputs))
    {
    }

    static Values drawnDoubles(std::size_t count)
    {
        static std::mt19937 random(3);
        Values values(count);
        for (double &value : values)
            value = static_cast<float>(std::uniform_real_distribution<double>(-1, 1)(random));
        return values;
    }
    static Parameters first()
    {
        return {drawnDoubles(kInputs * kHidden), drawnDoubles(kHidden), drawnDoubles(kHidden * kClasses),
            drawnDoubles(kClasses)};
    }
    const Values &x() const { return m_x; }
    static std::size_t labelOf(std::size_t sample) { return sample % kClasses; }

    /// The mean cross-entropy, and its gradient.
    /// Of the samples [begin, end).
    double derive(const Parameters &p, Parameters &gradient, std::size_t begin, std::size_t end) const
    {
        const auto samples = static_cast<double>(end - begin);
        for (std::size_t i = 0; i < p.size(); ++i)
            gradient[i].assign(p[i].size(), 0);
        double loss = 0;
        for (std::size_t n = begin; n < end; ++n) {
            Values hidden = p[1];
            for (std::size_t i = 0; i < kInputs; ++i)
                for (std::size_t h = 0; h < kHidden; ++h)
                    hidden[h] += m_x[n * kInputs + i] * p[0][i * kHidden + h];
            for (double &value : hidden)
                value = std::max(value, 0.0);
            Values logits = p[3];
            for (std::size_t h = 0; h < kHidden; ++h)
                for (std::size_t c = 0; c < kClasses; ++c)
                    logits[c] += hidden[h] * p[2][h * kClasses + c];
            double sum = 0;
            for (const double logit : logits)
                sum += std::exp(logit);
            loss -= (logits[labelOf(n)] - std::log(sum)) / samples;
            Values ofHidden(kHidden, 0);
            for (std::size_t c = 0; c < kClasses; ++c) {
                const double ofLogit = (std::exp(logits[c]) / sum - (c == labelOf(n) ? 1 : 0)) / samples;
                gradient[3][c] += ofLogit;
                for (std::size_t h = 0; h < kHidden; ++h) {
                    gradient[2][h * kClasses + c] += hidden[h] * ofLogit;
                    ofHidden[h] += p[2][h * kClasses + c] * ofLogit;
                }
            }
            for (std::size_t h = 0; h < kHidden; ++h) {
                if (hidden[h] <= 0)
                    continue;
                gradient[1][h] += ofHidden[h];
                for (std::size_t i = 0; i < kInputs; ++i)
                    gradient[0][i * kHidden + h] += m_x[n * kInputs + i] * ofHidden[h];
            }
        }
        return loss;
    }

private:
    Values m_x;
};

std::shared_ptr<const TensorData> asTensor(const TensorType &type, const LoopMlp::Values &values)
{
    auto data = std::make_shared<TensorData>(TensorData{type, std::vector<std::byte>(values.size() * 4)});
    for (std::size_t i = 0; i < values.size(); ++i) {
        const auto value = static_cast<float>(values[i]);
        std::memcpy(data->bytes.data() + i * 4, &value, 4);
    }
    return data;
}

/// Gradients of each layer's own age, by hand: w(t+1) = w(t) - rate x gradient at w(t - (versions - 1)).
TEST(WeightVersionsOfAnMlp, TrainAsAPlainLoopDoes)
{
    constexpr double kRate = 0.5;
    constexpr std::size_t kSteps = 7;
    const auto forward = buildZooModel("zoo:mlp?layers=2&input=3&hidden=4&classes=2&batch=4");
    ASSERT_TRUE(forward) << describe(forward.error());
    TrainingOptions options;
    options.learningRate = kRate;
    auto step = buildTrainingStep(*forward, options);
    ASSERT_TRUE(step) << describe(step.error());
    const LoopMlp loop;
    const LoopMlp::Parameters initial = LoopMlp::first();
    std::array<TensorId, 4> parameters;
    std::size_t layer = 0;
    for (const Operator &op : step->operators)
        if (op.kind == OperatorKind::Linear && op.direction == Direction::Forward) {
            parameters[2 * layer] = op.inputs[1];
            parameters[2 * layer + 1] = op.inputs[2];
            ++layer;
        }
    ASSERT_EQ(layer, 2U);
    // A model's weights may lie the other way round.
    const auto turned = [&, weights = step->tensors](
                            std::size_t i, const LoopMlp::Values &values, bool back) {
        const std::size_t inputs = i == 0 ? LoopMlp::kInputs : LoopMlp::kHidden;
        const Shape &shape = weights[static_cast<std::size_t>(parameters[i].index)].type.shape;
        if (i % 2 == 1 || shape.front() == static_cast<std::int64_t>(inputs))
            return values;
        const std::size_t outputs = values.size() / inputs;
        LoopMlp::Values other(values.size());
        for (std::size_t a = 0; a < inputs; ++a)
            for (std::size_t b = 0; b < outputs; ++b)
                if (back)
                    other[a * outputs + b] = values[b * inputs + a];
                else
                    other[b * inputs + a] = values[a * outputs + b];
        return other;
    };
    for (std::size_t i = 0; i < parameters.size(); ++i) {
        Tensor &tensor = step->at(parameters[i]);
        tensor.data = asTensor(tensor.type, turned(i, initial[i], false));
    }
    RunOptions run;
    run.steps = kSteps;
    run.keepGradients = true;
    run.inputs["x"] = *asTensor({DataType::Float32, {4, 3}}, loop.x());
    TensorData labels{{DataType::Int64, {4}}, std::vector<std::byte>(4 * 8)};
    for (std::size_t n = 0; n < LoopMlp::kBatch; ++n) {
        const auto label = static_cast<std::int64_t>(LoopMlp::labelOf(n));
        std::memcpy(labels.bytes.data() + n * 8, &label, 8);
    }
    run.inputs["labels"] = labels;
    const auto graph = std::make_shared<const Graph>(*std::move(step));
    struct Case {
        std::array<std::int32_t, 2> versions; // of the layers
        std::size_t updates; // in a step
        std::string rows;
        std::int32_t devices;
    };
    for (const Case &c : {Case{{1, 1}, 1, "", 1}, Case{{2, 2}, 1, "weight-versions all : 2", 1},
             Case{{4, 4}, 1, "weight-versions all : 4\nmicro-batches 2", 1},
             Case{{3, 1}, 1, "weight-versions in:layers.0 : 3", 1},
             Case{{2, 1}, 1,
                 "micro-batches 4\nstage in:layers.0 : 0\nplace in:layers.0 : devices 0\nstage in:layers.1 : "
                 "1\n"
                 "place in:layers.1 : devices 1\nschedule 1f1b\nweight-versions in:layers.0 : 2",
                 2},
             Case{{2, 3}, 1,
                 "mesh dp=2\nsplit all : batch over dp\nzero1 all over dp\nweight-versions in:layers.0 : 2\n"
                 "weight-versions in:layers.1 : 3",
                 2},
             Case{{1, 1}, 2, "micro-batches 4 update every 2", 1},
             Case{{3, 2}, 4,
                 "micro-batches 4 update every 1\nweight-versions in:layers.0 : 3\n"
                 "weight-versions in:layers.1 : 2",
                 1},
             Case{{2, 1}, 4,
                 "micro-batches 4 update every 1\nstage in:layers.0 : 0\nplace in:layers.0 : devices 0\n"
                 "stage in:layers.1 : 1\nplace in:layers.1 : devices 1\nschedule 1f1b\n"
                 "weight-versions in:layers.0 : 2",
                 2}}) {
        SCOPED_TRACE(c.rows);
        const auto plan = delayedPlanOf(graph, c.rows, c.devices);
        ASSERT_TRUE(plan) << describe(plan.error());
        const auto outcome = runOnCpu(*plan, run);
        ASSERT_TRUE(outcome) << describe(outcome.error());
        std::vector<LoopMlp::Parameters> history{initial};
        double loss = 0;
        const std::size_t size = LoopMlp::kBatch / c.updates;
        for (std::size_t t = 0; t < kSteps * c.updates; ++t) {
            LoopMlp::Parameters read;
            for (std::size_t i = 0; i < read.size(); ++i) {
                const auto age = static_cast<std::size_t>(c.versions[i / 2] - 1);
                read[i] = history[t < age ? 0 : t - age][i];
            }
            LoopMlp::Parameters gradient;
            const std::size_t begin = t % c.updates * size;
            loss += loop.derive(read, gradient, begin, begin + size) / static_cast<double>(c.updates);
            if ((t + 1) % c.updates == 0) {
                EXPECT_NEAR(outcome->losses[t / c.updates], loss, 1e-5) << t;
                loss = 0;
            }
            LoopMlp::Parameters next = history.back();
            for (std::size_t i = 0; i < next.size(); ++i)
                for (std::size_t v = 0; v < next[i].size(); ++v)
                    next[i][v] -= kRate * gradient[i][v];
            history.push_back(next);
        }
        for (std::size_t i = 0; i < parameters.size(); ++i) {
            const TensorData &trained = outcome->weights.at(graph->at(parameters[i]).name);
            LoopMlp::Values values(initial[i].size());
            for (std::size_t v = 0; v < values.size(); ++v) {
                float value = 0;
                std::memcpy(&value, trained.bytes.data() + v * 4, 4);
                values[v] = value;
            }
            values = turned(i, values, true);
            for (std::size_t v = 0; v < values.size(); ++v)
                EXPECT_NEAR(values[v], history.back()[i][v], 1e-5) << "parameter " << i << ", " << v;
        }
    }
}

TEST(WeightVersionsOfRandomTables, TrainLikeTheModelWithTheSameDelays)
{
    std::mt19937 random(17);
    int delayed = 0;
    for (const char *model : {kGpt2Delayed, kT5Delayed}) {
        const GraphSnapshot graph = trainingStepOf(model);
        for (int round = 0; round < 16; ++round) {
            SCOPED_TRACE(testing::Message() << model << ", round " << round);
            const ConstraintTable table =
                randomTable(*graph, 3, random, {.touched = 0.3, .weightVersions = true});
            const auto completion = completePlan(graph, 3, table);
            ASSERT_TRUE(completion) << describe(completion.error());
            if (firstError(*completion))
                continue;
            const auto plan = lower(completion->plan, *clusterNamed("cpu:3"));
            if (!plan)
                continue; // refused with a reason, as without these rows
            delayed += mostVersionsIn(*plan) > 1 ? 1 : 0;
            expectDelayedIsTheModel(*plan);
        }
    }
    EXPECT_GT(delayed, 8);
}

} // namespace
} // namespace planloom
