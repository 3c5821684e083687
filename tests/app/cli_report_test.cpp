// planloom-cli report, communication, fits --csv, compare of models, cluster --topology: what they write and
// print.

#include "planloom_paths.h"
#include "sessions/session_store.h"
#include "tests/temporary_folder.h"

#include <nlohmann/json.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <sys/wait.h>

namespace planloom {
namespace {

class CliReport : public testing::Test
{
protected:
    static void SetUpTestSuite()
    {
        s_folder = new TemporaryFolder;
        ASSERT_EQ(run("solve 'zoo:gpt?layers=4&hidden=32&heads=4&seq=8&batch=8&vocab=24' --cluster "
                      "dgx-a100:8 --gallery "
                      "3d:dp=2,tp=2,pp=2 --micro-batches 2 --out a.json"),
            0);
        ASSERT_EQ(run("solve 'zoo:gpt?layers=4&hidden=32&heads=4&seq=8&batch=8&vocab=24' --cluster "
                      "dgx-a100:8 --gallery "
                      "data-parallel --out b.json"),
            0);
    }
    static void TearDownTestSuite()
    {
        delete s_folder;
        s_folder = nullptr;
    }

    static int run(const std::string &words)
    {
        const std::string command = "cd '" + s_folder->path().string()
            + "' && '" PLANLOOM_BINARY_DIR "/bin/planloom-cli' " + words + " 2>err.txt";
        FILE *pipe = popen(command.c_str(), "r");
        s_said.clear();
        if (!pipe)
            return -1;
        std::array<char, 4096> chunk{};
        while (const std::size_t n = fread(chunk.data(), 1, chunk.size(), pipe))
            s_said.append(chunk.data(), n);
        const int status = pclose(pipe);
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }
    static std::string textOf(const std::string &name)
    {
        std::ifstream stream(s_folder->at(name), std::ios::binary);
        return {std::istreambuf_iterator<char>(stream), {}};
    }
    static nlohmann::json said() { return nlohmann::json::parse(s_said, nullptr, false); }

    static TemporaryFolder *s_folder; ///< GoogleTest's way to share it among the tests of a suite.
    static std::string s_said; ///< On standard output.
};

TemporaryFolder *CliReport::s_folder = nullptr;
std::string CliReport::s_said{};

std::size_t linesOf(const std::string &text)
{
    return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

TEST_F(CliReport, WritesOneFileOfAPlanOrTwo)
{
    ASSERT_EQ(run("report a.json --out a.html --json"), 0) << textOf("err.txt");
    EXPECT_EQ(said()["plans"], 1);
    EXPECT_NE(textOf("a.html").find("<h2>Timeline</h2>"), std::string::npos);
    EXPECT_NE(textOf("a.html").find("mesh dp=2"), std::string::npos) << "the rows of the plan";
    ASSERT_EQ(run("report a.json"), 0) << textOf("err.txt");
    EXPECT_EQ(s_said, textOf("a.html"));
    ASSERT_EQ(run("report a.json --with b.json --out ab.html"), 0) << textOf("err.txt");
    EXPECT_NE(textOf("ab.html").find("plan B: b.json"), std::string::npos);
    EXPECT_NE(textOf("ab.html").find("<h2>Differences</h2>"), std::string::npos);
}

TEST_F(CliReport, ReportsWhatASessionStandsAt)
{
    SessionContents contents;
    contents.model.source = "zoo:mlp?layers=4&hidden=16&batch=16";
    History history({TableDocument("mesh dp=2\n"), {{"cluster", "dgx-a100:2"}, {"devices", "2"}}});
    DesignState next = history.state();
    ASSERT_TRUE(next.table.apply(insertText(next.table, 1, "# why\nmicro-batches 4")));
    ASSERT_TRUE(history.record("add micro-batches", difference(history.state(), next), 1));
    contents.history = history;
    ASSERT_TRUE(SessionStore::create(s_folder->at("s.planloom"), contents));
    ASSERT_EQ(run("report s.planloom --out s.html"), 0) << textOf("err.txt");
    const std::string html = textOf("s.html");
    for (const char *part :
        {"<code>micro-batches 4</code>", "why", "History of s.planloom", "add micro-batches"})
        EXPECT_NE(html.find(part), std::string::npos) << part;
    EXPECT_EQ(run("report s.planloom --cluster cpu:2 --out t.html"), 2);
}

TEST_F(CliReport, PrintsAPdfWhereItsHelperIs)
{
    const int status = run("report a.json --with b.json --out ab.pdf");
    if (!std::filesystem::exists(PLANLOOM_BINARY_DIR "/bin/planloom-report")) {
        EXPECT_EQ(status, 2);
        EXPECT_NE(textOf("err.txt").find("prints as a PDF from any browser"), std::string::npos);
        return;
    }
    ASSERT_EQ(status, 0) << textOf("err.txt");
    EXPECT_EQ(textOf("ab.pdf").substr(0, 5), "%PDF-");
    EXPECT_EQ(run("report a.json --out no/such.pdf"), 1);
}

TEST_F(CliReport, RefusesWhatItCannotWrite)
{
    EXPECT_EQ(run("report a.json --json"), 2);
    EXPECT_EQ(run("report a.json --out no/such.html"), 2);
    EXPECT_EQ(run("report none.json --out n.html"), 2);
    EXPECT_FALSE(std::filesystem::exists(s_folder->at("n.html")));
}

TEST_F(CliReport, ListsCommunicationAsTextJsonAndTable)
{
    ASSERT_EQ(run("communication a.json --json --csv c.csv"), 0) << textOf("err.txt");
    const nlohmann::json object = said();
    ASSERT_GT(object["lines"].size(), 2U);
    for (const nlohmann::json &line : object["lines"]) {
        EXPECT_EQ(line["start_nanoseconds"].size(), line["count"]);
        EXPECT_EQ(
            line["exposed_nanoseconds"].get<std::int64_t>() + line["hidden_nanoseconds"].get<std::int64_t>(),
            line["nanoseconds"]);
        EXPECT_EQ(line["groups"][0].size(), line["group_size"]);
    }
    EXPECT_EQ(linesOf(textOf("c.csv")), object["lines"].size() + 1);
    ASSERT_EQ(run("communication a.json"), 0);
    EXPECT_NE(s_said.find("all-reduce"), std::string::npos) << s_said;
}

TEST_F(CliReport, WritesMemoryOfAllRanks)
{
    ASSERT_EQ(run("fits a.json --csv m.csv"), 0) << textOf("err.txt");
    EXPECT_EQ(linesOf(textOf("m.csv")), 9U);
    EXPECT_EQ(textOf("m.csv").substr(0, 17), "rank,peak_bytes,l");
}

TEST_F(CliReport, ComparesModels)
{
    const std::string small = "'zoo:gpt?layers=2&hidden=16&heads=4&seq=8&batch=4&vocab=24' ";
    ASSERT_EQ(
        run("compare " + small + "'zoo:gpt?layers=3&hidden=16&heads=4&seq=8&batch=4&vocab=24' --json"), 0)
        << textOf("err.txt");
    EXPECT_TRUE(said()["removed"].empty());
    EXPECT_EQ(said()["added"].size(), 19U);
    ASSERT_EQ(run("compare " + small + small), 0);
    EXPECT_NE(s_said.find("the models are the same"), std::string::npos) << s_said;
    EXPECT_EQ(run("compare " + small + small + "--at-most 2"), 2);
    EXPECT_EQ(run("compare a.json b.json --dim batch=2"), 2);
}

TEST_F(CliReport, MakesClustersOfTopologies)
{
    std::ofstream(s_folder->at("topo.txt")) << "GPU0 GPU1\nGPU0 X NV12\nGPU1 NV12 X\n";
    std::ofstream(s_folder->at("topology.conf"))
        << "SwitchName=a Nodes=n[1-2]\nSwitchName=b Nodes=n[3-4]\nSwitchName=t "
           "Switches=a,b\n";
    ASSERT_EQ(
        run("cluster --topology topo.txt --topology topology.conf --device A100 --out c.json --json"), 0)
        << textOf("err.txt");
    EXPECT_EQ(said()["read"].size(), 2U);
    EXPECT_FALSE(said()["assumed"].empty());
    ASSERT_EQ(
        run("solve 'zoo:mlp?layers=4&hidden=16&batch=16' --cluster c.json --gallery data-parallel --json"), 0)
        << textOf("err.txt");
    EXPECT_EQ(said()["devices"].size(), 8U);
    EXPECT_EQ(run("cluster --topology topo.txt"), 2);
    EXPECT_NE(textOf("err.txt").find("--device"), std::string::npos) << textOf("err.txt");
    EXPECT_EQ(run("cluster --topology topo.txt --device A100 --kernels x.json"), 2);
    EXPECT_EQ(run("cluster --hosts 2 --kernels x.json"), 2);
}

} // namespace
} // namespace planloom
