// The model set under the gallery's plans, against PyTorch's outputs, loss and gradients.

#include "engine/frontend/onnx/import_onnx.h"
#include "engine/interop/npz.h"
#include "engine/runtime/run.h"
#include "engine/runtime/training/check.h"
#include "engine/verify/verify.h"
#include "planloom_paths.h"
#include "tests/engine/gallery/gallery_for_tests.h"
#include "tests/engine/runtime/model_files.h"

#include "tests/engine/lowering/models_for_tests.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>

namespace planloom {
namespace {

/// A model with reference values (models/README.md). Batch norm's statistics are per micro-batch.
struct ReferenceModel {
    const char *name;
    double gradientTolerance;
    bool batchNorm = false;
};

const ReferenceModel kModels[]{{"gpt2_tiny", 1e-4}, {"bert_tiny", 1e-3}, {"bert_tiny_opset17", 1e-3},
    {"t5_tiny", 1e-4}, {"swin_tiny", 1e-4}, {"evoformer_tiny", 1e-3}, {"resnet50_tiny", 1e-2, true}};

std::vector<float> floats(const TensorData &data)
{
    std::vector<float> values(data.bytes.size() / sizeof(float));
    std::memcpy(values.data(), data.bytes.data(), values.size() * sizeof(float));
    return values;
}

double largest(const std::vector<float> &values)
{
    double most = 0;
    for (const float value : values)
        most = std::max(most, std::abs(static_cast<double>(value)));
    return most;
}

double largestDifference(const std::vector<float> &a, const std::vector<float> &b)
{
    EXPECT_EQ(a.size(), b.size());
    double most = 0;
    for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
        const double difference = std::abs(static_cast<double>(a[i]) - b[i]);
        most = std::isnan(difference) ? INFINITY : std::max(most, difference);
    }
    return most;
}

class ModelPlans : public testing::TestWithParam<ReferenceModel>
{
protected:
    void SetUp() override
    {
        const std::filesystem::path model = kModelFiles / (std::string(GetParam().name) + ".onnx");
        if (!std::filesystem::exists(model))
            GTEST_SKIP() << "the model set is not beside this checkout";
        const auto forward = importOnnxFile(model);
        ASSERT_TRUE(forward) << describe(forward.error());
        TrainingOptions options;
        auto step = buildTrainingStep(*forward, options);
        ASSERT_TRUE(step) << describe(step.error());
        m_graph = std::make_shared<const Graph>(*std::move(step));
        const std::string stem = (kModelFiles / GetParam().name).string();
        auto inputs = readInputs(stem + ".io.npz");
        ASSERT_TRUE(inputs) << describe(inputs.error());
        m_options.inputs = *std::move(inputs);
        m_options.keepGradients = true;
        auto values = readNpz(stem + ".io.npz");
        ASSERT_TRUE(values);
        for (auto &[name, array] : *values)
            if (name.rfind("out.", 0) == 0)
                m_outputs[name.substr(4)] = array;
        for (const auto &entry : std::filesystem::directory_iterator(kModelFiles)) {
            const std::string file = entry.path().filename().string();
            if (file.rfind(std::string(GetParam().name) + ".grads", 0) != 0)
                continue;
            auto gradients = readNpz(entry.path().string());
            ASSERT_TRUE(gradients);
            for (auto &[name, array] : *gradients)
                m_gradients[name.substr(5)] = array;
        }
        ASSERT_FALSE(m_gradients.empty());
    }

    void expectPyTorchsValues(
        const RunOutcome &outcome, double gradientTolerance = GetParam().gradientTolerance) const
    {
        const double loss = floats(m_outputs.at("loss"))[0];
        EXPECT_NEAR(outcome.losses.back(), loss, 1e-5 * std::abs(loss));
        for (const auto &[name, reference] : m_outputs) {
            if (name == "loss")
                continue;
            ASSERT_TRUE(outcome.outputs.count(name)) << name;
            const auto expected = floats(reference);
            EXPECT_LE(largestDifference(floats(outcome.outputs.at(name)), expected), 1e-4 * largest(expected))
                << name;
        }
        double most = 0;
        for (const auto &[name, reference] : m_gradients)
            most = std::max(most, largest(floats(reference)));
        for (const auto &[name, reference] : m_gradients) {
            ASSERT_TRUE(outcome.gradients.count(name)) << name;
            const auto expected = floats(reference);
            EXPECT_LE(largestDifference(floats(outcome.gradients.at(name)), expected),
                gradientTolerance * std::max(largest(expected), 1e-3 * most))
                << name;
        }
    }

    GraphSnapshot m_graph{};
    RunOptions m_options{};
    NamedArrays m_outputs{};
    NamedArrays m_gradients{};
};

TEST_P(ModelPlans, GiveWhatPyTorchGives)
{
    struct Case {
        const char *gallery;
        std::int32_t devices;
    };
    const Case cases[]{{"single", 1}, {"data-parallel", 2}, {"data-parallel", 4}, {"tensor-parallel", 2},
        {"tensor-parallel", 4}, {"pipeline:schedule=gpipe,micro-batches=1", 2},
        {"pipeline:schedule=gpipe,micro-batches=2", 4}, {"pipeline:schedule=1f1b,micro-batches=2", 2},
        {"zero1", 2}, {"zero2:micro-batches=2", 2}, {"zero3", 2}, {"3d:dp=2,tp=2,pp=2,zero=3", 8},
        {"3d:dp=2,tp=2,pp=2", 8}, {"3d:dp=1,tp=2,pp=4,micro-batches=2", 8}};
    int ran = 0;
    for (const Case &plan : cases) {
        SCOPED_TRACE(std::string(plan.gallery) + " on " + std::to_string(plan.devices));
        const auto table = galleryTable(plan.gallery, m_graph, plan.devices);
        if (!table) {
            EXPECT_FALSE(table.error().message.empty());
            continue; // as far as dimensions divide
        }
        const auto completion = completePlan(m_graph, plan.devices, *table);
        ASSERT_TRUE(completion && !firstError(*completion));
        const auto lowered = lower(completion->plan, *clusterNamed("cpu:8"));
        ASSERT_TRUE(lowered) << describe(lowered.error());
        const auto report = verify(*lowered);
        ASSERT_TRUE(report && report->ok()) << report->failure->reason;
        const auto outcome = runOnCpu(*lowered, m_options);
        ASSERT_TRUE(outcome) << describe(outcome.error());
        ++ran;
        if (!GetParam().batchNorm || lowered->microBatches == 1) {
            expectPyTorchsValues(*outcome);
            continue;
        }
        Plan whole = completePlan(m_graph, 1, ConstraintTable{})->plan;
        whole.microBatches = completion->plan.microBatches;
        const auto reference = lower(whole, *clusterNamed("cpu:1"));
        ASSERT_TRUE(reference);
        const auto check = checkAgainst(*reference, *lowered, *outcome, m_options);
        ASSERT_TRUE(check) << describe(check.error());
        EXPECT_TRUE(check->ok) << check->worstTensor << " " << check->worstError;
    }
    EXPECT_GE(ran, 4);
}

/// Every schedule by name, over stages as it needs them. Micro-batches are whole batches, so that there are
/// enough of them: gradients are means over those. Lanes need samples to share out.
TEST_P(ModelPlans, GiveWhatPyTorchGivesUnderEverySchedule)
{
    const std::string name = GetParam().name;
    if (name != "gpt2_tiny" && name != "t5_tiny" && name != "evoformer_tiny")
        GTEST_SKIP() << "the others run under fewer plans";
    for (const ScheduleKind kind : kAllSchedules) {
        SCOPED_TRACE(nameOf(kind));
        const bool bothWays = kind == ScheduleKind::Chimera || kind == ScheduleKind::DualPipe;
        const bool several = kind == ScheduleKind::Interleaved || kind == ScheduleKind::BreadthFirst;
        const std::string lanes =
            kind == ScheduleKind::DualPipe ? "stages=2,micro-batches=2" : "stages=2,micro-batches=1";
        const std::string stages = "stages=2,micro-batches=1,interleave=" + std::to_string(several ? 2 : 1)
            + ",schedule=" + nameOf(kind);
        auto table = galleryTable(bothWays ? "bidirectional:" + lanes : "pipeline:" + stages, m_graph, 2);
        if (kind == ScheduleKind::DualPipe || (bothWays && name == "evoformer_tiny")) {
            // Every lane has samples of its own, in as many micro-batches as there are ranks under DualPipe:
            // the files hold two samples, and one.
            ASSERT_FALSE(table);
            EXPECT_NE(table.error().message.find("sample"), std::string::npos) << table.error().message;
            continue;
        }
        ASSERT_TRUE(table) << describe(table.error());
        for (Row &row : table->rows)
            if (auto *schedule = std::get_if<ScheduleRule>(&row.rule))
                schedule->kind = kind;
        std::erase_if(
            table->rows, [](const Row &row) { return std::holds_alternative<MicroBatchesRule>(row.rule); });
        if (!bothWays)
            table->rows.push_back(Row{.rule = MicroBatchesRule{8, true}});
        const auto completion = completePlan(m_graph, 2, *table);
        ASSERT_TRUE(completion && !firstError(*completion)) << describe(*firstError(*completion));
        const auto plan = lower(completion->plan, *clusterNamed("cpu:2"));
        ASSERT_TRUE(plan) << describe(plan.error());
        EXPECT_EQ(plan->microBatches, bothWays ? 1 : 8);
        const auto report = verify(*plan);
        ASSERT_TRUE(report && report->ok()) << report->failure->reason;
        const auto outcome = runOnCpu(*plan, m_options);
        ASSERT_TRUE(outcome) << describe(outcome.error());
        expectPyTorchsValues(*outcome, 1e-4);
    }
}

INSTANTIATE_TEST_SUITE_P(ModelSet, ModelPlans, testing::ValuesIn(kModels),
    [](const testing::TestParamInfo<ReferenceModel> &info) { return std::string(info.param.name); });

} // namespace
} // namespace planloom
