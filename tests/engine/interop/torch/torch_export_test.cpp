// planloom-cli export --format torch: what it writes is Python, and runs on a torch of shapes and calls
// (fake_torch), rank by rank: every instruction once, in its order, and members of groups meet alike. That
// its numbers are right is for tests/e2e/torch_plans.py to say, where there is a torch.

#include "planloom_paths.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <sys/wait.h>

namespace planloom {
namespace {

namespace fs = std::filesystem;

constexpr const char *kGpt = "'zoo:gpt?layers=2&hidden=32&heads=4&vocab=96&seq=16&batch=8'";

class TorchExportCli : public testing::Test
{
protected:
    void SetUp() override
    {
        m_folder = fs::path(testing::TempDir()) / ("planloom torch " + std::to_string(getpid()));
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
    int cli(const std::string &words) { return run("'" PLANLOOM_BINARY_DIR "/bin/planloom-cli' " + words); }
    std::string path(const std::string &name) const { return "'" + (m_folder / name).string() + "'"; }

    /// Plans a model, and writes the plan as PyTorch code.
    void exportPlan(const std::string &model, const std::string &options)
    {
        ASSERT_EQ(cli("solve " + model + " " + options + " --allow-copies --out " + path("plan.json")), 0)
            << m_said;
        ASSERT_EQ(cli("export " + path("plan.json") + " --format torch --out " + path("out")), 0) << m_said;
    }
    void runOnFake()
    {
        const std::string program =
            "'" PLANLOOM_SOURCE_DIR "/tests/engine/interop/torch/fake_torch/run_programs.py' ";
        EXPECT_EQ(run("python3 -B " + program + path("out") + " " + path("plan.json")), 0) << m_said;
    }
    bool hasPython() { return run("python3 -c 'import sys; sys.exit(sys.version_info < (3, 9))'") == 0; }

    fs::path m_folder{};
    std::string m_said{};
};

TEST_F(TorchExportCli, RunsEveryInstructionOnceAndInOrder)
{
    if (!hasPython())
        GTEST_SKIP() << "there is no python3 to run exported programs with (apt-get install python3)";
    for (const char *const plan :
        {"--devices 1 --gallery single", "--devices 4 --gallery zero3 --micro-batches 2",
            "--devices 4 --gallery sequence-parallel", "--devices 4 --gallery context-parallel",
            "--devices 4 --gallery 3d:dp=1,tp=2,pp=2 --micro-batches 4 --clip-norm 1",
            "--devices 2 --gallery interlaced --micro-batches 2",
            "--devices 4 --gallery bidirectional --micro-batches 4",
            "--devices 2 --gallery data-parallel --recompute full --offload both",
            "--devices 2 --gallery 1f1b --micro-batches 4 --schedule zb-v",
            "--devices 2 --gallery data-parallel --precision bf16"}) {
        SCOPED_TRACE(plan);
        exportPlan(kGpt, plan);
        runOnFake();
    }
}

TEST_F(TorchExportCli, WritesWhatPyflakesHasNothingToSayOf)
{
    if (run("pyflakes3 --version") != 0)
        GTEST_SKIP() << "there is no pyflakes (apt-get install python3-pyflakes)";
    for (const char *const plan :
        {"--devices 4 --gallery zero3 --micro-batches 2", "--devices 4 --gallery context-parallel",
            "--devices 4 --gallery 3d:dp=1,tp=2,pp=2 --micro-batches 4"}) {
        exportPlan(kGpt, plan);
        EXPECT_EQ(run("pyflakes3 " + path("out")), 0) << m_said;
    }
    EXPECT_EQ(run("pyflakes3 '" PLANLOOM_SOURCE_DIR "/tests/engine/interop/torch/fake_torch'"), 0) << m_said;
}

TEST_F(TorchExportCli, RefusesBadStartsByNameBeforeTraining)
{
    if (!hasPython())
        GTEST_SKIP() << "there is no python3 to run exported programs with (apt-get install python3)";
    exportPlan(kGpt, "--devices 2 --gallery tensor-parallel");
    fs::create_directories(m_folder / "scratch");
    EXPECT_EQ(run("python3 -B '" PLANLOOM_SOURCE_DIR "/tests/engine/interop/torch/fake_torch/bad_starts.py' "
                  + path("out") + " " + path("scratch")),
        0)
        << m_said;
    for (const char *const group : {"processes", "machines", "values", "places", "disks", "stalls"})
        EXPECT_NE(m_said.find(std::string(group) + " refused"), std::string::npos) << m_said;
}

/// Devices of a zigzag are in the order of their sequences' parts, process groups of PyTorch in that of
/// ranks.
TEST_F(TorchExportCli, GivesGroupsTheirOwnOrder)
{
    if (!hasPython())
        GTEST_SKIP() << "there is no python3 to run exported programs with (apt-get install python3)";
    EXPECT_EQ(run("python3 -B '" PLANLOOM_SOURCE_DIR "/tests/engine/interop/torch/fake_torch/group_order.py' "
                  "'" PLANLOOM_SOURCE_DIR "/resources/torch/runtime/queues.py'"),
        0)
        << m_said;
}

TEST_F(TorchExportCli, CapturesStepsAndReplaysThem)
{
    if (!hasPython())
        GTEST_SKIP() << "there is no python3 to run exported programs with (apt-get install python3)";
    exportPlan(kGpt, "--devices 1 --gallery single");
    fs::create_directories(m_folder / "scratch");
    EXPECT_EQ(
        run("python3 -B '" PLANLOOM_SOURCE_DIR "/tests/engine/interop/torch/fake_torch/capture_steps.py' "
            + path("out") + " " + path("scratch")),
        0)
        << m_said;
}

TEST_F(TorchExportCli, WritesOperatorsOfFilesAsTheySay)
{
    std::ofstream(m_folder / "swish.ops")
        << "planloom-operators 1\noperator my.ops::Swish\ninputs x\noutputs y\n"
           "attribute beta = 1.5\nannotation b h -> b h\nbody\n    z = Mul(x, beta)\n"
           "    g = Sigmoid(z)\n    y = Mul(x, g)\nend\n"
           "torch \"x * torch.sigmoid(beta * x)\"\n";
    exportPlan(
        "'" PLANLOOM_SOURCE_DIR "/tests/engine/interop/torch/swish.onnx' --operators " + path("swish.ops"),
        "--devices 2 --gallery data-parallel");
    std::ifstream file(m_folder / "out" / "programs" / "stage0.py");
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    EXPECT_NE(text.find(" * torch.sigmoid(1.5 * "), std::string::npos) << text;
    EXPECT_NE(text.find("ops.derivative(lambda a: a * torch.sigmoid(1.5 * a), "), std::string::npos) << text;
    if (hasPython())
        runOnFake();
}

TEST_F(TorchExportCli, LeavesNothingOnADiskThatFills)
{
    exportPlan(kGpt, "--devices 1 --gallery single");
    ASSERT_EQ(run("rm -r " + path("out")), 0);
    // Files of more than 4 KiB cannot be written: to a program the same as a disk that is full.
    EXPECT_EQ(run("trap '' XFSZ; ulimit -f 8; '" PLANLOOM_BINARY_DIR "/bin/planloom-cli' export "
                  + path("plan.json") + " --format torch --out " + path("out")),
        1)
        << m_said;
    EXPECT_NE(m_said.find("out"), std::string::npos) << m_said;
    EXPECT_FALSE(fs::exists(m_folder / "out"));
    EXPECT_FALSE(fs::exists(m_folder / "out.part"));
}

TEST_F(TorchExportCli, NamesTheRowThatCommunicationFollowsFrom)
{
    exportPlan(kGpt, "--devices 8 --gallery 3d:dp=2,tp=2,pp=2 --micro-batches 2");
    std::ifstream file(m_folder / "out" / "programs" / "stage0.py");
    std::map<std::string, std::string> numbers; // of rows, by their text
    std::string embeds;
    std::string sends;
    for (std::string line, before; std::getline(file, line); before = line) {
        if (const std::size_t at = line.find("  ", 4);
            line.starts_with("   ") && at != std::string::npos && at < 6)
            numbers[line.substr(at + 2)] = line.substr(3, at - 3);
        const bool isBefore = before.find("    # [") == 0;
        if (line.find("wte = run.tensor.all_reduce_(") != std::string::npos)
            embeds = isBefore ? before : line;
        if (line.find("run.pipeline.send(") != std::string::npos)
            sends = line;
    }
    EXPECT_TRUE(embeds.ends_with("; row " + numbers["split name:wte : in0.0 over tp"])) << embeds;
    EXPECT_NE(sends.find("  # row"), std::string::npos) << sends;
}

TEST_F(TorchExportCli, LeavesNoMarkInPrograms)
{
    // Both devices of a bias whose gradient one of them adds up, over rows that differ.
    exportPlan("'zoo:unet3d?batch=2&levels=2&width=4&volume=16'", "--devices 2 --gallery spatial");
    std::size_t programs = 0;
    for (const auto &entry : fs::directory_iterator(m_folder / "out" / "programs")) {
        std::ifstream file(entry.path());
        const std::string text{std::istreambuf_iterator<char>(file), {}};
        for (const char mark : {'\1', '\2', '\3'})
            EXPECT_EQ(text.find(mark), std::string::npos) << entry.path();
        ++programs;
    }
    EXPECT_GT(programs, 1U);
}

TEST_F(TorchExportCli, SharesOneProgramAmongRanksThatDifferInNumbersAlone)
{
    exportPlan(kGpt, "--devices 4 --gallery 3d:dp=1,tp=2,pp=2 --micro-batches 2");
    std::size_t programs = 0;
    for (const auto &entry : fs::directory_iterator(m_folder / "out" / "programs"))
        programs += entry.path().stem() != "__init__" && entry.path().extension() == ".py" ? 1 : 0;
    EXPECT_EQ(programs, 3); // of the last stage, the rank that tells the loss has one of its own
}

TEST_F(TorchExportCli, LeavesFoldersOfOthersAlone)
{
    ASSERT_EQ(
        cli("solve " + std::string(kGpt) + " --devices 1 --gallery single --out " + path("plan.json")), 0)
        << m_said;
    fs::create_directories(m_folder / "out");
    std::ofstream(m_folder / "out" / "thesis.tex") << "years of work";
    EXPECT_EQ(cli("export " + path("plan.json") + " --format torch --out " + path("out")), 2);
    EXPECT_NE(m_said.find("thesis.tex"), std::string::npos) << m_said;
    EXPECT_FALSE(fs::exists(m_folder / "out" / "train.py"));
    EXPECT_FALSE(fs::exists(m_folder / "out.part"));
    EXPECT_EQ(cli("export " + path("plan.json") + " --format torch"), 2);
    EXPECT_EQ(cli("export " + path("plan.json") + " --format torch --out " + path("no/such/folder")), 2);
    EXPECT_EQ(cli("export " + path("plan.json") + " --format perl --out " + path("other")), 2);
    EXPECT_NE(m_said.find("torch"), std::string::npos) << m_said;
}

TEST_F(TorchExportCli, KeepsTheDatasetOfTheUser)
{
    exportPlan(kGpt, "--devices 1 --gallery single");
    std::ofstream(m_folder / "out" / "dataset.py") << "mine = True\n";
    ASSERT_EQ(cli("export " + path("plan.json") + " --format torch --out " + path("out")), 0) << m_said;
    std::ifstream file(m_folder / "out" / "dataset.py");
    std::string line;
    std::getline(file, line);
    EXPECT_EQ(line, "mine = True");
}

} // namespace
} // namespace planloom
