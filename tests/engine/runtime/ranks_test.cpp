// One plan in one process and in several: the same bits.

#include "engine/frontend/import_model.h"
#include "engine/interop/npy.h"
#include "engine/runtime/processes/supervisor.h"
#include "engine/table/table_text.h"

#include "tests/engine/gallery/gallery_for_tests.h"
#include "tests/engine/lowering/random_plans.h"
#include "tests/engine/runtime/like_the_model.h"
#include "tests/engine/runtime/model_files.h"
#include "tests/engine/runtime/run_listener.h"
#include "tests/engine/runtime/training_plans.h"
#include "tests/seeds.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <ostream>
#include <set>

#include <unistd.h>

namespace planloom {
namespace {

using Json = nlohmann::json;

/// What a run in `ranks` processes writes, by name.
Result<NamedArrays> dumpInProcesses(const ExecutionPlan &plan, const RunOptions &options, std::int32_t ranks)
{
    const std::filesystem::path folder =
        std::filesystem::temp_directory_path() / ("planloom_ranks_" + std::to_string(::getpid()));
    RunRequest request;
    request.plan = plan;
    request.options = options;
    request.ranks = ranks;
    request.outcomeFolder = folder.string();
    auto outcome = superviseRun(request, {}, {});
    NamedArrays arrays;
    std::error_code none;
    for (const auto &file : std::filesystem::recursive_directory_iterator(folder, none)) {
        if (!outcome || !file.is_regular_file())
            continue;
        auto array = readNpy(file.path().string());
        EXPECT_TRUE(array);
        const std::string name = std::filesystem::relative(file.path(), folder).replace_extension().string();
        arrays[name] = *std::move(array);
    }
    std::filesystem::remove_all(folder);
    if (!outcome)
        return outcome.error();
    return arrays;
}

std::set<std::int32_t> ranksToTry(std::int32_t devices)
{
    return {std::min(2, devices), (devices + 1) / 2, devices};
}

void expectSameInProcesses(const ExecutionPlan &plan, std::int32_t steps = 2)
{
    RunOptions options;
    options.keepGradients = true;
    options.randomWeights = true;
    options.steps = steps;
    const auto alone = runOnCpu(plan, options);
    ASSERT_TRUE(alone) << describe(alone.error());
    const NamedArrays expected = dumpOf(*alone);
    for (const std::int32_t ranks : ranksToTry(static_cast<std::int32_t>(alone->peak.size()))) {
        SCOPED_TRACE(std::to_string(ranks) + " ranks");
        const auto got = dumpInProcesses(plan, options, ranks);
        ASSERT_TRUE(got) << describe(got.error());
        ASSERT_EQ(got->size(), expected.size());
        for (const auto &[name, array] : expected) {
            ASSERT_TRUE(got->contains(name)) << name;
            EXPECT_TRUE(got->at(name).bytes == array.bytes) << name;
        }
    }
}

struct InProcesses {
    const char *model;
    const char *spec;
    std::int32_t devices;
};

std::ostream &operator<<(std::ostream &out, const InProcesses &run)
{
    return out << run.spec << " of " << run.model;
}

class GalleryInProcesses : public testing::TestWithParam<InProcesses>
{
};

TEST_P(GalleryInProcesses, SameBits)
{
    const InProcesses &given = GetParam();
    const GraphSnapshot graph = trainingStepOf(given.model, OperatorKind::AdamWStep);
    const auto table = galleryTable(given.spec, graph, given.devices);
    ASSERT_TRUE(table) << describe(table.error());
    const auto plan = loweredRows(graph, print(*table), given.devices);
    ASSERT_TRUE(plan) << describe(plan.error());
    expectSameInProcesses(*plan);
}

constexpr const char *kRanksGpt = "zoo:gpt?layers=2&hidden=16&heads=4&seq=8&batch=8&vocab=24";
constexpr const char *kRanksLlama = "zoo:llama?layers=2&hidden=16&heads=4&kv_heads=2&seq=8&batch=4&vocab=24";
constexpr const char *kRanksMoe = "zoo:moe?layers=2&hidden=16&heads=4&seq=8&batch=4&vocab=24&experts=4";
constexpr const char *kRanksT5 = "zoo:t5?layers=2&hidden=16&heads=4&d_kv=4&src=8&tgt=4&batch=4&vocab=24";
constexpr const char *kRanksSwin =
    "zoo:swin?layers=2&hidden=8&heads=4&window=2&image=32&patch=2&classes=4&batch=4";
constexpr const char *kRanksFolding =
    "zoo:evoformer?layers=2&msa=8&pair=8&single=6&seqs=4&residues=4&heads=2&"
    "pair_heads=2&head_width=4&triangle=8&batch=4";
constexpr const char *kRanksRecycled =
    "zoo:evoformer?layers=2&msa=8&pair=8&single=6&seqs=4&residues=4&heads=2&"
    "pair_heads=2&head_width=4&triangle=8&batch=4&recycles=2";
constexpr const char *kRanksVision = "zoo:vgg?depth=11&width=2&head=8&image=32&classes=4&batch=4";

INSTANTIATE_TEST_SUITE_P(Gallery, GalleryInProcesses,
    testing::Values(InProcesses{kRanksGpt, "data-parallel", 4}, InProcesses{kRanksGpt, "zero1", 4},
        InProcesses{kRanksGpt, "zero2", 4}, InProcesses{kRanksGpt, "zero3", 4},
        InProcesses{kRanksGpt, "tensor-parallel", 4}, InProcesses{kRanksGpt, "sequence-parallel", 2},
        InProcesses{kRanksGpt, "1f1b:pp=2,tp=2,recompute=1", 4},
        InProcesses{kRanksGpt, "3d:dp=2,tp=2,pp=2,micro-batches=2", 8},
        InProcesses{kRanksLlama, "tensor-parallel", 2}, InProcesses{kRanksMoe, "data-parallel", 4},
        InProcesses{kRanksT5, "interlaced", 2}, InProcesses{kRanksT5, "interlaced:pp=2,dp=2,zero=1", 4},
        InProcesses{kRanksSwin, "coshard:dp=2,attention=2", 2},
        InProcesses{kRanksFolding, "axial:dp=2,dap=2", 4},
        InProcesses{kRanksRecycled, "3f1b:pp=2,dap=2,recompute=1", 4},
        InProcesses{kRanksVision, "conv-dense", 2}));

class RandomInProcesses : public testing::TestWithParam<const char *>
{
};

TEST_P(RandomInProcesses, SameBits)
{
    const GraphSnapshot graph = trainingStepOf(GetParam(), OperatorKind::AdamWStep);
    if (!graph)
        GTEST_SKIP() << "the model set is not beside this checkout";
    const Model model(graph);
    int ran = 0;
    const auto [first, end] = seedsToTry("PLANLOOM_RANDOM_RANKS", 3);
    for (std::uint32_t seed = first; seed < end; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        const RandomCase drawn = randomCase(*model.graph, seed,
            {.touched = 0.15,
                .wholeBatches = true,
                .precisions = seed % 4 == 3,
                .weightVersions = seed % 5 == 2});
        const RandomOutcome outcome = carryOut(model, drawn);
        if (!outcome.lowered)
            continue;
        expectSameInProcesses(*outcome.lowered);
        ++ran;
    }
    EXPECT_GT(ran, 0);
}

INSTANTIATE_TEST_SUITE_P(Models, RandomInProcesses,
    testing::Values("gpt2_tiny", "t5_tiny", "swin_tiny", "evoformer_tiny", kRanksMoe));

struct SavedInProcesses {
    const char *first;
    std::int32_t firstDevices;
    const char *second;
    std::int32_t secondDevices;
};

std::ostream &operator<<(std::ostream &out, const SavedInProcesses &plans)
{
    return out << plans.first << " then " << plans.second;
}

class CheckpointsOfRanks : public testing::TestWithParam<SavedInProcesses>
{
protected:
    static RunOptions options(std::int32_t steps)
    {
        RunOptions options;
        options.steps = steps;
        options.randomWeights = true;
        options.training.batches = BatchSource::Drawn;
        options.training.learningRate = 3e-3;
        return options;
    }
    static std::string contentOf(const std::filesystem::path &path)
    {
        std::ifstream file(path, std::ios::binary);
        EXPECT_TRUE(file) << path;
        return {std::istreambuf_iterator<char>(file), {}};
    }
    void TearDown() override { std::filesystem::remove_all(m_folder); }

    const std::filesystem::path m_folder =
        std::filesystem::temp_directory_path() / ("planloom_rank_checkpoints_" + std::to_string(::getpid()));
};

// Each rank writes what it holds: the file is the one that a single process writes, and any plan goes on.
TEST_P(CheckpointsOfRanks, AreThoseOfOneProcessAndContinueUnderAnotherPlan)
{
    const ExecutionPlan first = trainingPlanOf(kRanksGpt, GetParam().first, GetParam().firstDevices);
    const ExecutionPlan second = trainingPlanOf(kRanksGpt, GetParam().second, GetParam().secondDevices);
    const auto whole = runOnCpu(first, options(20));
    ASSERT_TRUE(whole) << describe(whole.error());
    RunOptions saving = options(10);
    saving.training.checkpoints = (m_folder / "one").string();
    const auto alone = runOnCpu(first, saving);
    ASSERT_TRUE(alone) << describe(alone.error());

    RunRequest request;
    request.plan = first;
    request.options = saving;
    request.options.training.checkpoints = (m_folder / "ranks").string();
    request.options.training.every = 5;
    request.ranks = GetParam().firstDevices;
    const auto begun = superviseRun(request, {}, {});
    ASSERT_TRUE(begun) << describe(begun.error());
    EXPECT_EQ(begun->checkpoint, (m_folder / "ranks" / "step-00000010.safetensors").string());
    EXPECT_TRUE(contentOf(begun->checkpoint) == contentOf(alone->checkpoint));
    std::set<std::string> files;
    for (const auto &entry : std::filesystem::directory_iterator(m_folder / "ranks"))
        files.insert(entry.path().filename().string());
    EXPECT_EQ(files, (std::set<std::string>{"step-00000005.safetensors", "step-00000010.safetensors"}));

    request.plan = second;
    request.options = {};
    request.options.steps = 10;
    request.options.training.batches = BatchSource::Drawn;
    request.options.training.resume = (m_folder / "ranks").string();
    request.ranks = std::min(2, GetParam().secondDevices);
    const auto continued = superviseRun(request, {}, {});
    ASSERT_TRUE(continued) << describe(continued.error());
    EXPECT_EQ(continued->firstStep, 10);
    ASSERT_EQ(continued->losses.size(), 10U);
    for (std::size_t i = 0; i < 10; ++i)
        EXPECT_NEAR(continued->losses[i], whole->losses[10 + i], 1e-5 * std::abs(whole->losses[10 + i]));
}

INSTANTIATE_TEST_SUITE_P(Plans, CheckpointsOfRanks,
    testing::Values(SavedInProcesses{"tensor-parallel", 4, "zero3", 2},
        SavedInProcesses{"zero3", 4, "single", 1}, SavedInProcesses{"zero1", 2, "tensor-parallel", 2},
        SavedInProcesses{"1f1b:pp=2,tp=2,recompute=1", 4, "data-parallel", 2}));

TEST(Ranks, EndTogetherIfACheckpointCannotBeWritten)
{
    const std::filesystem::path folder =
        std::filesystem::temp_directory_path() / ("planloom_no_folder_" + std::to_string(::getpid()));
    std::ofstream(folder) << "a file";
    const GraphSnapshot graph = trainingStepOf(kRanksGpt, OperatorKind::AdamWStep);
    const auto plan = loweredRows(graph, "mesh dp=2\nsplit all : batch over dp\n", 2);
    ASSERT_TRUE(plan) << describe(plan.error());
    RunRequest request;
    request.plan = *plan;
    request.options.randomWeights = true;
    request.options.training.checkpoints = (folder / "run").string();
    request.ranks = 2;
    const auto outcome = superviseRun(request, {}, {});
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.error().code, ErrorCode::Io);
    std::filesystem::remove(folder);
}

TEST(Ranks, ReportLikeOneProcess)
{
    const GraphSnapshot graph = trainingStepOf(kRanksGpt, OperatorKind::AdamWStep);
    const auto table = galleryTable("data-parallel", graph, 4);
    ASSERT_TRUE(table) << describe(table.error());
    RunRequest request;
    const auto plan = loweredRows(graph, print(*table), 4);
    ASSERT_TRUE(plan) << describe(plan.error());
    request.plan = *plan;
    request.options.steps = 3;
    request.options.randomWeights = true;
    request.liveSpans = true;
    std::map<std::int32_t, std::vector<std::string>> told;
    std::map<std::int32_t, std::map<int, std::size_t>> spans; // by device
    for (const std::int32_t ranks : {1, 3}) {
        request.ranks = ranks;
        RunListener listener;
        const auto outcome = superviseRun(request, {}, listener.sink());
        ASSERT_TRUE(outcome) << describe(outcome.error());
        EXPECT_EQ(listener.ranks().size(), static_cast<std::size_t>(ranks));
        EXPECT_TRUE(listener.ranksAreGone());
        for (const std::string &type : listener.types())
            if (type != "live")
                told[ranks].push_back(type);
        std::map<int, std::size_t> live;
        for (const Json &event : listener.events) {
            if (event.at("t") == "live")
                live[event.at("device")] += event.at("start").size();
            if (event.at("t") != "spans")
                continue;
            spans[ranks][event.at("device")] = event.at("start").size();
            for (const std::int64_t start : event.at("start")) {
                EXPECT_GE(start, 0); // one clock: nothing runs before the step has begun anywhere
                EXPECT_LT(start, event.at("step_nanoseconds").get<std::int64_t>());
            }
        }
        ASSERT_EQ(live.size(), 4U);
        for (const auto &[device, count] : live)
            EXPECT_EQ(count, 3 * spans[ranks][device]);
        EXPECT_EQ(outcome->peak.size(), 4U);
    }
    EXPECT_EQ(told[1], told[3]);
    EXPECT_EQ(spans[1], spans[3]);
}

TEST(Ranks, CountTogetherWhatDataChoseAndHadNoRoom)
{
    ImportOptions import;
    import.capacities["*"] = *capacityNamed("1"); // room for one token each
    const auto forward = importModelFile(
        std::filesystem::path{PLANLOOM_SOURCE_DIR} / "tests/engine/frontend/mixtures/picked.pt2", import);
    ASSERT_TRUE(forward) << describe(forward.error());
    auto step = buildTrainingStep(*forward, {.optimizer = OperatorKind::SgdStep});
    ASSERT_TRUE(step) << describe(step.error());
    const auto graph = std::make_shared<const Graph>(*std::move(step));
    const auto table = galleryTable("data-parallel", graph, 2);
    ASSERT_TRUE(table) << describe(table.error());
    RunRequest request;
    const auto plan = loweredRows(graph, print(*table), 2);
    ASSERT_TRUE(plan) << describe(plan.error());
    request.plan = *plan;
    request.options.steps = 3;
    request.options.randomWeights = true;
    const auto alone = runOnCpu(request.plan, request.options);
    ASSERT_TRUE(alone) << describe(alone.error());
    EXPECT_GT(alone->dropped.at(0), 0);
    request.ranks = 2;
    RunListener listener;
    const auto outcome = superviseRun(request, {}, listener.sink());
    ASSERT_TRUE(outcome) << describe(outcome.error());
    EXPECT_EQ(outcome->dropped, alone->dropped);
    EXPECT_NE(listener.last("warn").at("text").get<std::string>().find("had no room"), std::string::npos);
}

TEST(Ranks, ThereAreNoMoreThanDevices)
{
    RunRequest request;
    request.plan.graph = trainingStepOf(kRanksGpt);
    request.plan.devices.resize(2);
    for (const std::int32_t ranks : {0, 3}) {
        request.ranks = ranks;
        const auto outcome = superviseRun(request, {}, {});
        ASSERT_FALSE(outcome);
        EXPECT_EQ(outcome.error().code, ErrorCode::InvalidInput);
        EXPECT_EQ(outcome.error().where, "ranks");
    }
}

} // namespace
} // namespace planloom
