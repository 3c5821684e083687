// What `trace` and `export --format chakra` do on the command line.

#include "planloom_paths.h"
#include "tests/temporary_folder.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sys/wait.h>

namespace planloom {
namespace {

/// A folder with the traces of two ranks that all-reduce twice; rank 1 comes 100 µs late.
class CliTrace : public testing::Test
{
protected:
    void SetUp() override
    {
        for (int rank = 0; rank < 2; ++rank) {
            std::ofstream file(m_folder.at("rank" + std::to_string(rank) + ".json"));
            file << R"({"distributedInfo": {"rank": )" << rank << R"(}, "traceEvents": [)";
            for (int i = 0; i < 2; ++i) {
                const int late = 100 * rank;
                file
                    << R"({"ph": "X", "cat": "kernel", "name": "gemm", "ts": )" << 1000 * i << R"(, "dur": )"
                    << 200 + late
                    << R"(, "args": {"stream": 7}}, {"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce", "ts": )"
                    << 1000 * i + 200 + late << R"(, "dur": )" << 300 - late
                    << R"(, "args": {"stream": 20, "Collective name": "allreduce", "Seq": )" << i << "}},";
            }
            file << "{}]}";
        }
    }

    struct End {
        int status = -1;
        std::string output{};
        std::string errors{};
    };
    /// In the folder, without the user's cache.
    End run(const std::string &words) const
    {
        const std::string command = "cd '" + m_folder.path().string() + "' && XDG_CACHE_HOME='"
            + m_folder.at("cache") + "' '" PLANLOOM_BINARY_DIR "/bin/planloom-cli' " + words + " 2>errors";
        End end;
        FILE *const pipe = popen(command.c_str(), "r");
        std::array<char, 4096> chunk{};
        while (const std::size_t n = fread(chunk.data(), 1, chunk.size(), pipe))
            end.output.append(chunk.data(), n);
        const int status = pclose(pipe);
        end.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
        std::ifstream errors(m_folder.at("errors"));
        end.errors.assign(std::istreambuf_iterator<char>(errors), {});
        return end;
    }

    TemporaryFolder m_folder;
};

TEST_F(CliTrace, SaysWhoIsWaitedFor)
{
    const End end = run("trace rank0.json rank1.json --json --csv ranks.csv --perfetto all.json");
    ASSERT_EQ(end.status, 0) << end.errors;
    const auto said = nlohmann::json::parse(end.output);
    EXPECT_EQ(said.at("straggler"), 1);
    EXPECT_EQ(said.at("joined"), 2);
    EXPECT_NEAR(said.at("ranks")[1].at("made_wait_seconds").get<double>(), 200e-6, 1e-9);
    EXPECT_NEAR(said.at("ranks")[0].at("idle").at("late_peer_seconds").get<double>(), 200e-6, 1e-9);
    EXPECT_EQ(said.at("collectives")[0].at("came_last"), 1);
    std::ifstream csv(m_folder.at("ranks.csv"));
    int lines = 0;
    for (std::string line; std::getline(csv, line);)
        ++lines;
    EXPECT_EQ(lines, 3);
    std::ifstream perfetto(m_folder.at("all.json"));
    EXPECT_EQ(nlohmann::json::parse(perfetto).at("traceEvents").size(), 2U + 4U + 8U)
        << "ranks, lanes, events";
    EXPECT_TRUE(std::filesystem::exists(m_folder.at("cache/planloom/traces")));
    const End text = run("trace rank0.json rank1.json");
    EXPECT_NE(text.output.find("straggler      rank 1 makes others wait 200 µs"), std::string::npos)
        << text.output;
    EXPECT_LE(std::count(text.output.begin(), text.output.end(), '\n'), 40);
}

TEST_F(CliTrace, ComparesTwoRanks)
{
    const End end = run("trace rank0.json rank1.json --ranks 0,1 --json");
    ASSERT_EQ(end.status, 0) << end.errors;
    const auto difference = nlohmann::json::parse(end.output).at("difference");
    EXPECT_EQ(difference.at("aligned"), 4);
    for (const auto &kind : difference.at("kinds"))
        EXPECT_NEAR(std::abs(kind.at("difference_seconds").get<double>()), 200e-6, 1e-9) << kind;
    EXPECT_EQ(run("trace rank0.json rank1.json --ranks 0,7").status, 2);
    EXPECT_EQ(run("trace rank0.json rank1.json --ranks 0").status, 2);
    EXPECT_EQ(run("trace rank0.json --ranks 0,1 --with rank1.json").status, 2);
    EXPECT_EQ(run("trace rank0.json --cluster cpu:2").status, 2) << "only a plan is predicted for a cluster";
    EXPECT_EQ(run("trace none.json").status, 2);
}

TEST_F(CliTrace, HoldsATraceAgainstAPlanAndWritesExecutionTraces)
{
    ASSERT_EQ(run("solve 'zoo:mlp?layers=2&hidden=16&batch=4' --cluster cpu:2 --gallery data-parallel --out "
                  "plan.json >solved")
                  .status,
        0);
    const End end = run("trace rank0.json rank1.json --plan plan.json --json");
    ASSERT_EQ(end.status, 0) << end.errors;
    const auto plan = nlohmann::json::parse(end.output).at("plan");
    EXPECT_EQ(plan.at("ranks"), 2);
    EXPECT_FALSE(plan.at("is_exact").get<bool>());
    EXPECT_GT(plan.at("predicted_seconds").get<double>(), 0);
    std::int64_t matched = 0;
    for (const auto &count : plan.at("counts"))
        if (count.at("kind") == "all-reduce")
            matched = count.at("matched").get<std::int64_t>();
    EXPECT_EQ(matched, 4) << "two of each rank, of the plan's more";
    EXPECT_LE(std::count(end.output.begin(), end.output.end(), '\n'), 1);
    const End text = run("trace rank0.json rank1.json --plan plan.json");
    EXPECT_LE(std::count(text.output.begin(), text.output.end(), '\n'), 40) << text.output;
    const End chakra = run("export plan.json --format chakra --out et --json");
    ASSERT_EQ(chakra.status, 0) << chakra.errors;
    EXPECT_EQ(nlohmann::json::parse(chakra.output).at("ranks"), 2);
    for (const char *name : {"et/plan.0.et", "et/plan.1.et", "et/comm_groups.json"})
        EXPECT_GT(std::filesystem::file_size(m_folder.at(name)), 10U) << name;
    EXPECT_EQ(run("export plan.json --format chakra").status, 2) << "it needs a folder";
}

} // namespace
} // namespace planloom
