// planloom-cli run --backend torch: what is made of what an interpreter and torchrun say. The interpreter is
// a script here that says it; with a torch, tests/e2e/torch_plans.py --run does the same.

#include "engine/interop/torch/launch/torch_probe.h"

#include "planloom_paths.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include <sys/wait.h>

namespace planloom {
namespace {

namespace fs = std::filesystem;

constexpr const char *kGood =
    R"(echo 'PLANLOOM {"python": "3.11.2", "torch": "2.15.0", "distributed": true, "gloo": true, "gpus": 0, "no_gpus": "PyTorch sees no GPU"}')";

class TorchRunCli : public testing::Test
{
protected:
    void SetUp() override
    {
        m_folder = fs::path(testing::TempDir()) / ("planloom torch run " + std::to_string(getpid()));
        fs::create_directories(m_folder / "tmp");
        ASSERT_EQ(run("solve 'zoo:mlp?batch=8&layers=2&hidden=8&input=4&classes=4' --devices 2 --gallery "
                      "data-parallel "
                      "--allow-copies --out "
                      + path("plan.json")),
            0)
            << m_said;
    }
    void TearDown() override { fs::remove_all(m_folder); }

    int run(const std::string &words)
    {
        FILE *pipe =
            popen(("TMPDIR=" + path("tmp") + " '" PLANLOOM_BINARY_DIR "/bin/planloom-cli' " + words + " 2>&1")
                      .c_str(),
                "r");
        m_said.clear();
        std::array<char, 4096> chunk{};
        while (const std::size_t n = fread(chunk.data(), 1, chunk.size(), pipe))
            m_said.append(chunk.data(), n);
        const int status = pclose(pipe);
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }
    std::string path(const std::string &name) const { return "'" + (m_folder / name).string() + "'"; }

    /// An interpreter that answers the probe by `probe`, and torchrun by `torchrun`.
    int runBy(const std::string &probe, const std::string &torchrun, const std::string &more = {})
    {
        const fs::path script = m_folder / "python";
        std::ofstream(script) << "#!/bin/bash\nif [ \"$1\" = -c ]; then\n"
                              << probe << "\nelse\nshift 6\n"
                              << torchrun << "\nfi\n";
        fs::permissions(script, fs::perms::owner_all);
        return run("run " + path("plan.json") + " --backend torch --random-weights 7 --python "
            + path("python") + " " + more);
    }
    void expectSaid(const std::string &words) { EXPECT_NE(m_said.find(words), std::string::npos) << m_said; }
    bool leftNothing() const { return fs::is_empty(m_folder / "tmp"); }

    fs::path m_folder{};
    std::string m_said{};
};

TEST_F(TorchRunCli, PassesOnWhatRanksTell)
{
    const std::string torchrun = R"(echo hello from the user
echo '{"v": 1, "t": "hello", "devices": 2, "steps": 2}'
echo '{"v": 1, "t": "step", "n": 0, "loss": 1.5, "seconds": 0.25, "learning_rate": 0.1}'
echo '{"v": 1, "t": "step", "n": 1, "loss": 1.25, "seconds": 0.125, "learning_rate": 0.1}'
echo '{"v": 1, "t": "done", "losses": [1.5, 1.25], "step_seconds": [0.25, 0.125], "peak_bytes": [100, 200], "first_step": 0, "checkpoint": ""}')";
    ASSERT_EQ(runBy(kGood, torchrun), 0) << m_said;
    expectSaid("warn: runs on CPUs: PyTorch sees no GPU");
    expectSaid("warn: hello from the user");
    expectSaid("step 2: loss 1.25, 125.0 ms");
    expectSaid("ran by PyTorch 2.15.0 in 2 processes");
    ASSERT_EQ(runBy(kGood, torchrun, "--json"), 0) << m_said;
    expectSaid(R"("device_peak_bytes":[100,200])");
    expectSaid(R"("losses":[1.5,1.25])");
    ASSERT_EQ(runBy(kGood, torchrun, "--events"), 0) << m_said;
    expectSaid(R"("t":"step")");
    expectSaid(R"("t":"done")");
    EXPECT_TRUE(leftNothing());
}

TEST_F(TorchRunCli, StartsTorchrunWithWhatIsAskedFor)
{
    runBy(kGood,
        "echo \"words: $@\" >&2; echo \"Error: $PLANLOOM_DEVICE $(ls \"$(dirname \"$1\")\" | tr '\\n' ' ') "
        "$*\" >&2; exit 1",
        "--steps 3 --data synthetic --rate-schedule constant:warmup=2 --checkpoint " + path("kept"));
    expectSaid("Error: cpu");
    expectSaid("plan.json");
    expectSaid("programs");
    expectSaid(
        "--steps 3 --random-weights 7 --data synthetic --rate-schedule constant:warmup=2 --checkpoint");
}

TEST_F(TorchRunCli, FeedsBatchesOfFiles)
{
    // float32 arrays of 3 steps, of which the run has two; and one array for all of them
    const auto writeArray = [&](const std::string &name, const std::string &shape, std::size_t bytes) {
        std::string head = "{'descr': '<f4', 'fortran_order': False, 'shape': (" + shape + "), }";
        head.resize(117, ' ');
        std::ofstream(m_folder / name, std::ios::binary) << std::string("\x93NUMPY\x01\x00\x76\x00",
            10) << head << "\n" << std::string(bytes, '\0');
    };
    fs::create_directories(m_folder / "steps");
    fs::create_directories(m_folder / "wrong");
    writeArray("steps/x.npy", "3, 8, 4", std::size_t{3} * 8 * 4 * 4);
    const std::string list = "while [ $# -gt 1 ]; do [ \"$1\" = --batches ] && echo \"Error: $(ls \"$2\" | "
                             "tr '\\n' ' ')\" >&2; shift; done; exit 1";
    runBy(kGood, list, "--steps 2 --data " + path("steps"));
    expectSaid("000000000000.safetensors 000000000001.safetensors");
    EXPECT_EQ(m_said.find("000000000002"), std::string::npos) << m_said;
    writeArray("wrong/x.npy", "8, 5", std::size_t{8} * 5 * 4);
    EXPECT_EQ(runBy(kGood, list, "--inputs " + path("wrong")), 2);
    expectSaid("the array given is");
    EXPECT_TRUE(leftNothing());
}

TEST_F(TorchRunCli, TellsTheRankThatFailedFirst)
{
    const std::string error =
        R"(echo '{"v": 1, "t": "error", "code": "cancelled", "message": "ended by its starter", "advice": "", "where": "rank 0"}'
echo '{"v": 1, "t": "error", "code": "internal", "message": "all-reduce: connection closed", "advice": "", "where": "rank 2"}'
echo '{"v": 1, "t": "error", "code": "invalid-input", "message": "weights has none of the tensors", "advice": "", "where": "rank 1"}'
exit 1)";
    EXPECT_EQ(runBy(kGood, error), 2);
    expectSaid("rank 1: weights has none of the tensors");
    EXPECT_EQ(runBy(kGood, "echo 'ImportError: libfoo.so is missing' >&2; exit 3"), 1);
    expectSaid("ended with status 3: ImportError: libfoo.so is missing");
    EXPECT_EQ(runBy(kGood, "kill -9 $$"), 1);
    expectSaid("status 137");
    EXPECT_TRUE(leftNothing());
}

TEST_F(TorchRunCli, EndsAllWhenInterrupted)
{
    const auto begin = std::chrono::steady_clock::now();
    runBy(kGood,
        "echo '{\"v\": 1, \"t\": \"hello\"}'; trap 'echo ended > \"$0.ended\"; exit 1' TERM; kill -INT "
        "$PPID; sleep 60 & wait");
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
    expectSaid("interrupted");
    EXPECT_TRUE(fs::exists(m_folder / "python.ended"));
    EXPECT_TRUE(leftNothing());
}

TEST_F(TorchRunCli, SaysWhyAPythonDoesNotDo)
{
    EXPECT_EQ(
        runBy(
            R"(echo 'PLANLOOM {"python": "3.11.2", "no_torch": "ModuleNotFoundError: No module named torch"}')",
            ""),
        2);
    expectSaid("here has no PyTorch that works (ModuleNotFoundError");
    expectSaid("-m pip install");
    EXPECT_EQ(
        runBy(
            R"(echo 'PLANLOOM {"python": "3.9.2", "torch": "2.5.1+cpu", "distributed": true, "gloo": true}')",
            ""),
        2);
    expectSaid("this is PyTorch 2.5.1+cpu, and exported plans need 2.6 or newer");
    EXPECT_EQ(runBy(R"(echo 'PLANLOOM {"python": "3.9.2", "torch": "2.6.0", "distributed": false}')", ""), 2);
    expectSaid("without torch.distributed");
    EXPECT_EQ(runBy("echo hello", ""), 2);
    expectSaid("no Python that answers");
    EXPECT_EQ(
        run("run " + path("plan.json") + " --backend torch --random-weights 7 --python /nowhere/python"), 2);
    expectSaid("cannot be started");
    EXPECT_EQ(run("run " + path("plan.json") + " --backend torch --python " + path("python")), 2);
    expectSaid("--random-weights SEED draws them");
    EXPECT_EQ(run("run " + path("plan.json") + " --python " + path("python")), 2);
    expectSaid("add --backend torch");
}

TEST(TorchProbe, RunsOnGpusWhereThereIsOneForEachProcess)
{
    const auto probe = torchProbeIn(
        R"(noise PLANLOOM {"python": "3.12.1", "torch": "2.8.0+cu128", "distributed": true, "gloo": true, "nccl": true, "gpus": 4})",
        "python3");
    ASSERT_TRUE(probe);
    EXPECT_EQ(probe->gpus, 4);
    EXPECT_TRUE(torchPlaceOf(*probe, 4)->onGpus);
    const auto few = torchPlaceOf(*probe, 8);
    ASSERT_TRUE(few);
    EXPECT_FALSE(few->onGpus);
    EXPECT_EQ(few->whyNot, "there are 4 GPUs for 8 processes");
    TorchProbe without = *probe;
    without.nccl = false;
    EXPECT_EQ(torchPlaceOf(without, 2)->whyNot, "this PyTorch has no NCCL");
    without.gloo = false;
    EXPECT_FALSE(torchPlaceOf(without, 2));
    EXPECT_FALSE(torchProbeIn("PLANLOOM {\"python\": 3", "python3"));
    EXPECT_FALSE(torchProbeIn(R"(PLANLOOM {"python": 3})", "python3"));
}

} // namespace
} // namespace planloom
