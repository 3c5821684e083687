// What does not divide is cut in rounded shares by the gallery's plans, and runs like the model on one
// device.

#include "engine/runtime/training/check.h"

#include "engine/hardware/cluster.h"
#include "engine/lowering/lower.h"
#include "engine/verify/verify.h"
#include "tests/engine/gallery/gallery_for_tests.h"
#include "tests/engine/table/models.h"

#include <algorithm>
#include <cctype>
#include <ostream>

namespace planloom {
namespace {

constexpr const char *kOddGpt = "zoo:gpt?layers=2&hidden=40&heads=5&seq=6&vocab=33&batch=4";
constexpr const char *kOddLlama =
    "zoo:llama?layers=2&hidden=40&heads=10&kv_heads=5&ffn=50&seq=6&vocab=35&batch=4";

struct RoundedCase {
    const char *model = kOddGpt;
    const char *gallery = "";
    std::int32_t devices = 1;
};

std::ostream &operator<<(std::ostream &out, const RoundedCase &test)
{
    return out << test.model << " with " << test.gallery << " on " << test.devices;
}

Result<ExecutionPlan> roundedPlan(const GraphSnapshot &graph, const char *gallery, std::int32_t devices)
{
    TRY(const auto table, galleryTable(gallery, graph, devices));
    TRY(const auto completion, completePlan(graph, devices, table));
    if (const auto error = firstError(completion))
        return *error;
    TRY(const auto cluster, clusterNamed("cpu:" + std::to_string(devices)));
    return lower(completion.plan, cluster);
}

class RoundedShares : public testing::TestWithParam<RoundedCase>
{
};

TEST_P(RoundedShares, AreProvenAndRunLikeTheModelOnOneDevice)
{
    const RoundedCase &test = GetParam();
    const GraphSnapshot graph = zooTraining(test.model);
    const auto reference = roundedPlan(graph, "single", 1);
    const auto plan = roundedPlan(graph, test.gallery, test.devices);
    ASSERT_TRUE(reference) << describe(reference.error());
    ASSERT_TRUE(plan) << describe(plan.error());
    EXPECT_TRUE(std::any_of(plan->partitions.begin(), plan->partitions.end(), [](const Partition &each) {
        return std::any_of(each.splits.begin(), each.splits.end(),
            [](const Split &split) { return !split.sizes.empty() && split.over == SplitOver::Devices; });
    }));
    const auto proof = verify(*plan);
    ASSERT_TRUE(proof) << describe(proof.error());
    ASSERT_TRUE(proof->ok()) << proof->failure->reason;
    RunOptions options;
    options.randomWeights = true;
    options.keepGradients = true;
    options.steps = 2;
    const auto outcome = runOnCpu(*plan, options);
    ASSERT_TRUE(outcome) << describe(outcome.error());
    const auto report = checkAgainst(*reference, *plan, *outcome, options);
    ASSERT_TRUE(report) << describe(report.error());
    EXPECT_TRUE(report->ok) << report->worstTensor << " " << report->worstError;
}

INSTANTIATE_TEST_SUITE_P(Gallery, RoundedShares,
    testing::Values(RoundedCase{kOddGpt, "tensor-parallel", 2}, RoundedCase{kOddGpt, "tensor-parallel", 3},
        RoundedCase{kOddGpt, "tensor-parallel", 4},
        RoundedCase{kOddGpt, "3d:dp=2,tp=2,zero=1,micro-batches=2", 4},
        RoundedCase{kOddGpt, "3d:dp=2,tp=2,zero=3", 4}, RoundedCase{kOddGpt, "3d:tp=2,sequence=1", 2},
        RoundedCase{kOddGpt, "3d:pp=2,tp=3,micro-batches=2", 6},
        RoundedCase{kOddGpt, "interlaced:micro-batches=2", 2}, RoundedCase{kOddLlama, "tensor-parallel", 2},
        RoundedCase{kOddLlama, "tensor-parallel", 4}, RoundedCase{kOddLlama, "3d:tp=3,cp=2", 6}),
    [](const auto &info) {
        std::string name = (info.param.model == kOddGpt ? "gpt_" : "llama_") + std::string(info.param.gallery)
            + "_" + std::to_string(info.param.devices);
        std::replace_if(
            name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
        return name;
    });

} // namespace
} // namespace planloom
