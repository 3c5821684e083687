// planloom-cli cluster: a cluster file of times that were measured, or an error and no file.

#include "planloom_paths.h"

#include <nlohmann/json.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sys/wait.h>

namespace planloom {
namespace {

class CliCluster : public testing::Test
{
protected:
    void SetUp() override
    {
        m_folder =
            std::filesystem::path(testing::TempDir()) / ("planloom cluster " + std::to_string(getpid()));
        std::filesystem::create_directories(m_folder);
        std::ofstream(m_folder / "kernels.json") << kernels(-1);
    }
    void TearDown() override { std::filesystem::remove_all(m_folder); }

    /// Times of an H100 and of a B200; the row of number `wrong` takes a negative time.
    static std::string kernels(int wrong)
    {
        nlohmann::json file{{"matmul_columns", {"device", "precision", "m", "n", "k", "microseconds"}}};
        file["matmul"] = nlohmann::json::array();
        for (const double m : {256, 2048, 16384})
            for (const double k : {2048, 8192}) {
                const double flops = 2 * m * 8192 * k;
                const double microseconds = flops / 700e6 + 5;
                const bool isWrong = static_cast<int>(file["matmul"].size()) == wrong;
                file["matmul"].push_back(
                    {"h100_sxm", "bfloat16", m, 8192, k, isWrong ? -microseconds : microseconds});
            }
        file["matmul"].push_back({"b200_sxm", "bfloat16", 8192, 8192, 8192, 700});
        return file.dump();
    }

    int run(const std::string &words)
    {
        FILE *pipe = popen(("'" PLANLOOM_BINARY_DIR "/bin/planloom-cli' " + words + " 2>&1").c_str(), "r");
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

    std::filesystem::path m_folder{};
    std::string m_said{};
};

TEST_F(CliCluster, IsMadeOfTimesAndUsed)
{
    ASSERT_EQ(
        run("cluster --kernels " + path("kernels.json") + " --device h100_sxm --out " + path("mine.json")), 0)
        << m_said;
    EXPECT_NE(m_said.find("products, 16 bits and more: off by"), std::string::npos) << m_said;
    std::ifstream stream(m_folder / "mine.json");
    const auto file = nlohmann::json::parse(stream);
    EXPECT_NEAR(file["device"]["productEfficiency"]["value"].get<double>(), 700.0 / 989, 0.05);
    EXPECT_NE(
        file["device"]["productEfficiency"]["source"].get<std::string>().find("h100_sxm"), std::string::npos);
    EXPECT_EQ(file["device"]["memory"]["value"], 80e9); // of the data sheet
    EXPECT_EQ(run("solve 'zoo:mlp' --no-search --cluster " + path("mine.json")), 0) << m_said;
    ASSERT_EQ(run("cluster --json --kernels " + path("kernels.json") + " --device h100_sxm"), 0);
    EXPECT_EQ(nlohmann::json::parse(m_said)["errors"][0]["times"], 6);
}

TEST_F(CliCluster, OfWrongTimesIsRefusedWithTheirPlace)
{
    const std::string out = " --out " + path("mine.json");
    EXPECT_EQ(run("cluster --kernels " + path("kernels.json") + out), 2);
    EXPECT_NE(m_said.find("b200_sxm, h100_sxm"), std::string::npos) << m_said;
    std::ofstream(m_folder / "wrong.json") << kernels(3);
    EXPECT_EQ(run("cluster --device h100_sxm --kernels " + path("wrong.json") + out), 2);
    EXPECT_NE(m_said.find("/matmul/3/microseconds"), std::string::npos) << m_said;
    // Times that an A100 can't reach.
    EXPECT_EQ(run("cluster --device h100_sxm --base dgx-a100 --kernels " + path("kernels.json") + out), 2);
    EXPECT_NE(m_said.find("--base"), std::string::npos) << m_said;
    std::ofstream(m_folder / "nccl.txt") << "nothing\n";
    EXPECT_EQ(run("cluster --base dgx-h100 --collectives " + path("nccl.txt") + out), 2);
    EXPECT_EQ(run("cluster" + out), 2);
    EXPECT_EQ(run("cluster more" + out), 2);
    EXPECT_EQ(run("cluster --kernels " + path("missing.json") + out), 2);
    EXPECT_FALSE(std::filesystem::exists(m_folder / "mine.json"));
}

/// A plan is run on this machine's processor, and what its events say makes the cluster.
TEST_F(CliCluster, IsMadeOfWhatARunMeasured)
{
    ASSERT_EQ(run("solve 'zoo:mlp?layers=2&hidden=64&batch=32' --devices 2 --gallery data-parallel --out "
                  + path("plan.json")),
        0)
        << m_said;
    ASSERT_EQ(run("run " + path("plan.json") + " --random-weights 1 --steps 2 --prepare " + path("run")), 0)
        << m_said;
    // Spans of the last step are told in the end.
    std::ifstream prepared(m_folder / "run/options.json");
    auto options = nlohmann::json::parse(prepared);
    options["spans"] = true;
    std::ofstream(m_folder / "run/options.json") << options;
    const std::string exec = "'" PLANLOOM_BINARY_DIR "/bin/planloom-exec' run --plan " + path("run/plan.json")
        + " --options " + path("run/options.json") + " > " + path("log.jsonl");
    ASSERT_EQ(std::system(exec.c_str()), 0);
    ASSERT_EQ(run("cluster --spans " + path("log.jsonl") + " --plan " + path("plan.json") + " --out "
                  + path("mine.json")),
        0)
        << m_said;
    EXPECT_NE(m_said.find("product: off by"), std::string::npos) << m_said;
    EXPECT_NE(m_said.find("a step: "), std::string::npos) << m_said;
    std::ifstream stream(m_folder / "mine.json");
    const auto file = nlohmann::json::parse(stream);
    EXPECT_NE(file["device"]["productEfficiency"]["source"].get<std::string>().find("measured, "),
        std::string::npos);
    EXPECT_EQ(run("simulate " + path("plan.json") + " --cluster " + path("mine.json")), 0) << m_said;
    EXPECT_EQ(run("cluster --spans " + path("log.jsonl")), 2);
    EXPECT_NE(m_said.find("--plan"), std::string::npos) << m_said;
    EXPECT_EQ(run("cluster --spans " + path("log.jsonl") + " --plan " + path("plan.json") + " --hosts 2"), 2);
    EXPECT_EQ(run("cluster --plan " + path("plan.json")), 2);
}

} // namespace
} // namespace planloom
