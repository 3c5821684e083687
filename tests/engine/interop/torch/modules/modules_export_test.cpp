// planloom-cli export --format torch-modules: what it writes is Python, and asks a torch without numbers
// (fake_modules) for what the plan says; what PyTorch has no words for is refused row by row. That its
// numbers are right is for tests/e2e/torch_modules.py to say, where there is a torch.

#include "planloom_paths.h"

#include "engine/interop/torch/modules/modules_text.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sys/wait.h>

namespace planloom {
namespace {

namespace fs = std::filesystem;

constexpr const char *kSmallGpt = "'zoo:gpt?layers=8&hidden=32&heads=4&vocab=96&seq=16&batch=8'";
constexpr const char *kSmallLlama = "'zoo:llama?layers=8&hidden=32&heads=4&vocab=96&seq=16&batch=8'";

class ModulesExportCli : public testing::Test
{
protected:
    void SetUp() override
    {
        m_folder = fs::path(testing::TempDir()) / ("planloom modules " + std::to_string(getpid()));
        fs::create_directories(m_folder);
    }
    void TearDown() override { fs::remove_all(m_folder); }

    int run(const std::string &command)
    {
        FILE *pipe = popen((command + " 2>&1").c_str(), "r");
        m_said.clear();
        if (!pipe)
            return -1;
        std::array<char, 4096> chunk{};
        while (const std::size_t n = fread(chunk.data(), 1, chunk.size(), pipe))
            m_said.append(chunk.data(), n);
        const int status = pclose(pipe);
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }
    std::string path(const std::string &name) const { return "'" + (m_folder / name).string() + "'"; }
    int cli(const std::string &words) { return run("'" PLANLOOM_BINARY_DIR "/bin/planloom-cli' " + words); }

    /// Plans a model and exports the plan. @return the exit status of the export
    int exported(const std::string &model, const std::string &options, const std::string &how = {})
    {
        EXPECT_EQ(cli("solve " + model + " " + options + " --allow-copies --out " + path("plan.json")), 0)
            << m_said;
        return cli(
            "export " + path("plan.json") + " --format torch-modules " + how + " --out " + path("out"));
    }
    bool hasPython() { return run("python3 -c 'import sys; sys.exit(sys.version_info < (3, 9))'") == 0; }
    /// What all ranks ask the fake torch for, in `m_said`.
    void runOnFake()
    {
        const std::string program =
            "'" PLANLOOM_SOURCE_DIR "/tests/engine/interop/torch/modules/fake_modules/run_modules.py' ";
        EXPECT_EQ(run("python3 -B " + program + path("out") + " " + path("plan.json")), 0) << m_said;
    }
    bool says(const std::string &text) const { return m_said.find(text) != std::string::npos; }
    std::string fileText(const std::string &name) const
    {
        std::ifstream file(m_folder / "out" / name);
        return {std::istreambuf_iterator<char>(file), {}};
    }

    fs::path m_folder{};
    std::string m_said{};
};

TEST_F(ModulesExportCli, AsksForStylesThatFollowFromLayouts)
{
    if (!hasPython())
        GTEST_SKIP() << "there is no python3 to run exported scripts with (apt-get install python3)";
    ASSERT_EQ(exported(kSmallGpt, "--devices 4 --gallery sequence-parallel", "--leave-out"), 1) << m_said;
    const std::string file = fileText("parallelize.py");
    EXPECT_NE(
        file.find(
            "RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1), use_local_output=False)"),
        std::string::npos)
        << file;
    EXPECT_NE(file.find("SequenceParallel()"), std::string::npos) << file;
    EXPECT_NE(file.find("PrepareModuleOutput(output_layouts=Shard(1), desired_output_layouts=Replicate()"),
        std::string::npos)
        << file;
    runOnFake();
    EXPECT_TRUE(says("SequenceParallel()")) << m_said;
    EXPECT_NE(file.find("Cut({\"weight\": (1, 3), \"bias\": (0, 3)}"), std::string::npos) << file;
    // Without the rows that cut sequences norms have no style, and what rows of weights make is joined.
    ASSERT_EQ(exported(kSmallGpt, "--devices 4 --gallery tensor-parallel"), 0) << m_said;
    runOnFake();
    EXPECT_FALSE(says("SequenceParallel")) << m_said;
    EXPECT_TRUE(says("RowwiseParallel(input_layouts=Replicate())")) << m_said;
}

TEST_F(ModulesExportCli, AsksForStagesAndTheirSchedule)
{
    if (!hasPython())
        GTEST_SKIP() << "there is no python3 to run exported scripts with (apt-get install python3)";
    for (const auto &[plan, asked, stages] : {std::tuple("--gallery 1f1b --micro-batches 4",
                                                  R"(["schedule", "Schedule1F1B", "[0]", "4", "None"])", 4),
             std::tuple("--gallery 1f1b --micro-batches 4 --schedule gpipe",
                 R"(["schedule", "ScheduleGPipe", "[0]", "4", "None"])", 4),
             std::tuple("--gallery 3d:dp=1,tp=1,pp=4,interleave=2 --micro-batches 4",
                 R"(["schedule", "ScheduleInterleaved1F1B", "[0, 4]", "4", "None"])", 8),
             std::tuple("--gallery 1f1b --schedule zb-v --micro-batches 8",
                 R"(["schedule", "ScheduleZBVZeroBubble", "[0, 7]", "8", "None"])", 8),
             std::tuple("--gallery 1f1b --schedule dualpipev --micro-batches 8",
                 R"(["schedule", "ScheduleDualPipeV", "[0, 7]", "8", "None"])", 8),
             std::tuple("--gallery 1f1b --schedule zb-h1 --micro-batches 4",
                 R"(["csv", "compute_only", "4"])", 4)}) {
        SCOPED_TRACE(plan);
        ASSERT_EQ(exported(kSmallLlama, std::string("--devices 4 ") + plan), 0) << m_said;
        runOnFake();
        EXPECT_TRUE(says(asked)) << m_said;
        EXPECT_TRUE(says("{\"stages\": " + std::to_string(stages))) << m_said;
    }
}

TEST_F(ModulesExportCli, AsksForWhatReplicasShare)
{
    if (!hasPython())
        GTEST_SKIP() << "there is no python3 to run exported scripts with (apt-get install python3)";
    ASSERT_EQ(exported(kSmallLlama, "--devices 4 --gallery data-parallel"), 0) << m_said;
    runOnFake();
    EXPECT_TRUE(says(R"("asked": [["DDP", "dp"]])")) << m_said;
    for (const auto &[plan, reshard] : {std::pair("zero2", "False"), std::pair("zero3", "True")}) {
        ASSERT_EQ(exported(kSmallLlama, std::string("--devices 4 --gallery ") + plan), 0) << m_said;
        runOnFake();
        EXPECT_TRUE(says(std::string(R"(["fully_shard", "dp", "?", ")") + reshard))
            << m_said; // the whole module
    }
    ASSERT_EQ(exported(kSmallLlama, "--devices 4 --gallery zero1"), 0) << m_said;
    EXPECT_NE(fileText("train.py").find("ZeroRedundancyOptimizer("), std::string::npos);
    ASSERT_EQ(exported(kSmallLlama, "--devices 4 --gallery context-parallel"), 0) << m_said;
    runOnFake();
    EXPECT_TRUE(says(R"(["rotate", "alltoall"])")) << m_said;
    EXPECT_TRUE(says("buffer_seq_dims=[1, 1]")) << m_said;
    EXPECT_TRUE(says(R"(["context_parallel", "cp")")) << m_said;
}

TEST_F(ModulesExportCli, RefusesRowsThatPyTorchHasNoWordsFor)
{
    ASSERT_EQ(exported(kSmallGpt, "--devices 4 --gallery zero3 --offload states"), 2);
    EXPECT_TRUE(says("offload all : states")) << m_said;
    EXPECT_FALSE(says("zero3 weight:*")) << m_said;
    EXPECT_TRUE(says("--format torch ")) << m_said;
    EXPECT_TRUE(says("--leave-out")) << m_said;
    EXPECT_FALSE(fs::exists(m_folder / "out"));
    EXPECT_EQ(exported(kSmallGpt, "--devices 4 --gallery zero3 --offload states", "--leave-out"), 1)
        << m_said;
    EXPECT_TRUE(says("has no words for")) << m_said;
    EXPECT_NE(fileText("README.md").find("`offload all : states`"), std::string::npos);
    EXPECT_EQ(fileText("parallelize.py").find("offload"), std::string::npos);
}

TEST_F(ModulesExportCli, WritesWhatPyflakesHasNothingToSayOf)
{
    if (run("pyflakes3 --version") != 0)
        GTEST_SKIP() << "there is no pyflakes (apt-get install python3-pyflakes)";
    for (const char *const plan : {"--gallery data-parallel --micro-batches 2", "--gallery zero1",
             "--gallery zero3", "--gallery tensor-parallel", "--gallery context-parallel",
             "--gallery 1f1b --micro-batches 4", "--gallery 1f1b --schedule zb-h1 --micro-batches 4",
             "--gallery 3d:dp=2,tp=2,pp=1 --precision bf16",
             "--gallery 3d:dp=1,tp=2,pp=2 --micro-batches 4 --recompute full"}) {
        SCOPED_TRACE(plan);
        ASSERT_EQ(exported(kSmallGpt, std::string("--devices 4 ") + plan), 0) << m_said;
        EXPECT_EQ(run("pyflakes3 " + path("out")), 0) << m_said;
    }
}

TEST(FilledIn, ChoosesLinesAndFillsInWords)
{
    EXPECT_EQ(
        filledIn("a {{A}}\n#if B\nb\n#if C\nc\n#end\n#else\nd\n#end\n{{X}}e", {{"A", "{{B}}"}, {"B", ""}}),
        "a {{B}}\nb\ne");
    EXPECT_EQ(filledIn("#if B\nb\n#else\nd {{A}}{{A}}\n#end\n", {{"A", "1"}}), "d 11\n");
}

} // namespace
} // namespace planloom
