// The command line as scripts use it: fields, exit statuses, and nothing but one JSON object on standard
// output.

#include "planloom_paths.h"
#include "sessions/session_store.h"

#include <nlohmann/json.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <sys/wait.h>

namespace planloom {
namespace {

const char *const kModel = "'zoo:gpt?layers=2&hidden=16&heads=4&seq=8&batch=4&vocab=24'";

struct Outcome {
    int status = -1;
    std::string output{};
    nlohmann::json json() const { return nlohmann::json::parse(output, nullptr, false); }
};

class Cli : public testing::Test
{
protected:
    void SetUp() override
    {
        m_folder = std::filesystem::path(testing::TempDir())
            / ("planloom cli " + std::to_string(getpid())
                + testing::UnitTest::GetInstance()->current_test_info()->name());
        std::filesystem::create_directories(m_folder);
    }
    void TearDown() override { std::filesystem::remove_all(m_folder); }

    static Outcome run(const std::string &words) { return outcomeOf(words, "2>/dev/null"); }
    /// What it says on standard error, for people.
    static Outcome said(const std::string &words) { return outcomeOf(words, "2>&1 >/dev/null"); }
    static Outcome outcomeOf(const std::string &words, const std::string &streams)
    {
        Outcome outcome;
        FILE *pipe =
            popen(("'" PLANLOOM_BINARY_DIR "/bin/planloom-cli' " + words + " " + streams).c_str(), "r");
        if (!pipe)
            return outcome;
        std::array<char, 4096> chunk{};
        while (const std::size_t n = fread(chunk.data(), 1, chunk.size(), pipe))
            outcome.output.append(chunk.data(), n);
        const int status = pclose(pipe);
        outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
        return outcome;
    }

    std::string textOf(const std::string &name) const
    {
        std::ifstream stream(m_folder / name, std::ios::binary);
        return {std::istreambuf_iterator<char>(stream), {}};
    }
    std::string path(const std::string &name) const { return "'" + (m_folder / name).string() + "'"; }

    std::filesystem::path m_folder{};
};

/// A file that changes is solved anew, line by line; an interrupt ends it.
TEST_F(Cli, WatchSolvesATableAsItChanges)
{
    const std::string file = (m_folder / "rows.txt").string();
    const auto write = [&](const char *rows) { std::ofstream(file, std::ios::trunc) << rows; };
    write("mesh dp=2\nsplit all : batch over dp\n");
    FILE *pipe =
        popen(("echo $$; exec '" PLANLOOM_BINARY_DIR "/bin/planloom-cli' solve " + std::string(kModel)
                  + " --cluster cpu:2 --json --watch '" + file + "' 2>/dev/null")
                  .c_str(),
            "r");
    ASSERT_TRUE(pipe);
    std::array<char, 1 << 16> line{};
    ASSERT_TRUE(fgets(line.data(), line.size(), pipe));
    const auto process = static_cast<pid_t>(std::stol(line.data()));
    const auto next = [&](const char *grade) {
        while (fgets(line.data(), line.size(), pipe)) {
            auto json = nlohmann::json::parse(line.data(), nullptr, false);
            EXPECT_TRUE(json.is_object()) << line.data();
            if (json.value("grade", "") == grade)
                return json;
        }
        return nlohmann::json{};
    };
    EXPECT_EQ(next("checked").value("rows", 0), 2);
    const auto first = next("final");
    EXPECT_EQ(first.value("revision", 0), 1);
    EXPECT_EQ(first.at("errors").size(), 0u);
    EXPECT_GT(first.value("step_seconds", 0.0), 0);
    write("mesh dp=2\nsplit all : batch over dp\nmesh tp=2\n");
    const auto second = next("final");
    EXPECT_EQ(second.value("revision", 0), 2);
    EXPECT_EQ(second.at("errors").at(0).value("row", -1), 2);
    EXPECT_FALSE(second.at("conflicts").empty());
    write("mesh dp=2\nsplit everything\n");
    EXPECT_EQ(next("unreadable").at("errors").size(), 1u);
    write("degree data at most 1\n");
    const auto last = next("final");
    EXPECT_EQ(last.value("revision", 0), 3);
    EXPECT_EQ(last.at("errors").size(), 0u);
    EXPECT_FALSE(last.value("plan", "").empty());
    ASSERT_EQ(kill(process, SIGINT), 0);
    const int status = pclose(pipe);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0);
    EXPECT_EQ(run("solve " + std::string(kModel) + " --cluster cpu:2 --watch x --table y").status, 2);
}

/// Rows that cannot hold together: the minimal set of them, and ways out with what they would give, each an
/// edit that solves.
TEST_F(Cli, SolveNamesTheConflictAndItsWaysOut)
{
    const std::string rows = "mesh dp=2 tp=4\nmicro-batches 2\nzero1 all\nsplit all : batch over tp\n";
    std::ofstream(m_folder / "rows.txt") << rows;
    const std::string solve = std::string("solve ") + kModel + " --cluster cpu:8 --table '"
        + (m_folder / "rows.txt").string() + "'";
    const Outcome refused = run(solve + " --json");
    EXPECT_EQ(refused.status, 3);
    const auto json = refused.json();
    ASSERT_TRUE(json.is_object()) << refused.output;
    EXPECT_EQ(json["conflict"], (nlohmann::json{0, 1, 3}));
    ASSERT_GE(json["ways_out"].size(), 3u);
    for (const auto &way : json["ways_out"]) {
        EXPECT_TRUE(way["holds"]) << way;
        EXPECT_GT(way["step_seconds"], 0) << way;
    }
    EXPECT_NE(said(solve).output.find("rows 1, 2 and 4 cannot hold together"), std::string::npos);
    std::istringstream lines(rows);
    std::ofstream changed(m_folder / "rows.txt");
    std::string line;
    for (int row = 0; std::getline(lines, line); ++row)
        changed << (row == json["ways_out"][0]["row"] ? json["ways_out"][0]["edit"].get<std::string>() : line)
                << "\n";
    changed.close();
    EXPECT_EQ(run(solve).status, 0);
}

/// Rows that leave the search no plan are a conflict like others, and nothing is solved that breaks them.
TEST_F(Cli, SolveNamesRowsThatLeaveTheSearchNoPlan)
{
    const std::string solve = std::string("solve ") + kModel + " --cluster cpu:4 --table '"
        + (m_folder / "rows.txt").string() + "'";
    std::ofstream(m_folder / "rows.txt") << "degree data exactly 4\nzero1 all\ndegree pipeline exactly 4\n";
    const Outcome refused = run(solve + " --json");
    EXPECT_EQ(refused.status, 3);
    const auto json = refused.json();
    ASSERT_TRUE(json.is_object()) << refused.output;
    EXPECT_EQ(json["conflict"], (nlohmann::json{0, 2}));
    EXPECT_FALSE(json.contains("step_seconds"));
    std::set<std::string> edits;
    for (const auto &way : json["ways_out"]) {
        EXPECT_TRUE(way["holds"]) << way;
        edits.insert(way["edit"]);
    }
    EXPECT_TRUE(edits.contains("off degree pipeline one of 4")) << refused.output;
    EXPECT_NE(said(solve).output.find("rows 1 and 3 cannot hold together: no mesh"), std::string::npos);
    std::ofstream(m_folder / "rows.txt") << "degree micro-batches at least 64\n";
    EXPECT_EQ(run(solve).status, 3);
}

/// A row that is wrong whatever the others say is bad input, with the nearest values that are right.
TEST_F(Cli, SolveSaysWhichValuesAreNearOnesThatHold)
{
    std::ofstream(m_folder / "rows.txt") << "micro-batches 3\n";
    const Outcome refused = run(std::string("solve ") + kModel + " --json --cluster cpu:1 --table '"
        + (m_folder / "rows.txt").string() + "'");
    EXPECT_EQ(refused.status, 2);
    const auto json = refused.json();
    EXPECT_EQ(json["conflict"], nlohmann::json{0});
    std::set<std::string> edits;
    for (const auto &way : json["ways_out"])
        edits.insert(way["edit"]);
    EXPECT_EQ(edits, (std::set<std::string>{"micro-batches 2", "micro-batches 4", "off micro-batches 3"}));
}

TEST_F(Cli, InfoNamesWhatScriptsRelyOn)
{
    const Outcome outcome = run(std::string("info ") + kModel + " --json");
    ASSERT_EQ(outcome.status, 0);
    const auto json = outcome.json();
    for (const char *field : {"operators", "tensors", "parameters", "flops_forward", "layers", "kinds",
             "not_annotated", "not_runnable", "no_derivative", "obstacles", "dimensions"})
        EXPECT_TRUE(json.contains(field)) << field;
    EXPECT_EQ(json["layers"], 2);
    EXPECT_TRUE(json["not_annotated"].empty());
}

TEST_F(Cli, SizesComeFromRowsOptionsOrArrays)
{
    const std::string model = "'" PLANLOOM_SOURCE_DIR "/tests/engine/frontend/pt2/transformer.pt2'";
    const std::string arrays = "'" PLANLOOM_SOURCE_DIR "/tests/engine/frontend/pt2/transformer.npz'";
    const std::string missing = said("info " + model).output;
    EXPECT_NE(missing.find("--dim s52=8"), std::string::npos) << missing;
    const Outcome given = run("info --json --dim s52=4 " + model);
    ASSERT_EQ(given.status, 0);
    EXPECT_EQ(given.json()["dimensions"][0],
        (nlohmann::json{
            {"name", "s52"}, {"size", 4}, {"least", 2}, {"most", 64}, {"places", {"tokens.0", "labels.0"}}}));
    std::ofstream(m_folder / "rows.txt") << "dim tokens.0 = 6\n";
    EXPECT_EQ(run("solve --json --cluster cpu:1 --table " + path("rows.txt") + " " + model).status, 0);
    const Outcome ran = run("run --json --inputs " + arrays + " " + model);
    ASSERT_EQ(ran.status, 0);
    EXPECT_NEAR(ran.json()["loss"].get<double>(), 7.43189, 1e-4); // PyTorch's
}

TEST_F(Cli, InfoShowsWhatCannotBePlanned)
{
    const std::string model = "'" PLANLOOM_SOURCE_DIR "/tests/widgets/main/unread.onnx'";
    const Outcome shown = run("info --json " + model);
    ASSERT_EQ(shown.status, 0);
    const auto obstacles = shown.json()["obstacles"];
    ASSERT_EQ(obstacles.size(), 2U);
    EXPECT_EQ(obstacles[0]["operator"], "block.0.router");
    EXPECT_EQ(obstacles[1]["operator"], "block.1.pick");
    EXPECT_FALSE(obstacles[1]["advice"].get<std::string>().empty());
    EXPECT_EQ(run("solve --cluster cpu:1 " + model).status, 2);
}

TEST_F(Cli, LossesThatAreNoNumbersDoNotEndARun)
{
    const Outcome outcome =
        said(std::string("run ") + kModel + " --random-weights 1 --steps 4 --learning-rate 1e30");
    EXPECT_EQ(outcome.status, 0) << outcome.output;
    EXPECT_NE(outcome.output.find("step 4: "), std::string::npos) << outcome.output;
}

TEST_F(Cli, APlanGoesFromSolveToVerifySimulateExportAndRun)
{
    const Outcome solved = run(std::string("solve ") + kModel
        + " --cluster dgx-a100:8 --gallery 3d:dp=2,tp=2,pp=2 --micro-batches 2 --json --out "
        + path("plan.json"));
    ASSERT_EQ(solved.status, 0) << solved.output;
    for (const char *field :
        {"step_seconds", "bound_seconds", "gap", "devices", "micro_batches", "solve_seconds", "conflict"})
        EXPECT_TRUE(solved.json().contains(field)) << field;
    EXPECT_EQ(
        solved.json()["name"], "1F1B over 2 stages, data parallel 2, tensor parallel 2, 2 micro-batches");
    EXPECT_EQ(solved.json()["title"], "1F1B over 2, data 2, tensor 2");
    EXPECT_EQ(solved.json()["devices"].size(), 8u);
    EXPECT_LE(solved.json()["bound_seconds"], solved.json()["step_seconds"]);

    const Outcome verified = run("verify --json " + path("plan.json"));
    EXPECT_EQ(verified.status, 0);
    EXPECT_EQ(verified.json()["ok"], true);
    const Outcome simulated = run("simulate --json " + path("plan.json") + " --trace " + path("trace.json"));
    EXPECT_EQ(simulated.status, 0);
    EXPECT_EQ(simulated.json()["step_seconds"], solved.json()["step_seconds"]);
    std::ifstream trace(m_folder / "trace.json");
    EXPECT_TRUE(nlohmann::json::parse(trace).contains("traceEvents"));
    EXPECT_EQ(
        run("export " + path("plan.json") + " --format perfetto --out " + path("again.json")).status, 0);

    EXPECT_FALSE(simulated.json().contains("idle"));
    const Outcome idle = run("simulate --json --idle " + path("plan.json"));
    EXPECT_EQ(idle.status, 0);
    const nlohmann::json why = idle.json();
    for (std::size_t d = 0; d < 8; ++d) { // what is idle is all that is not busy
        double sum = 0;
        for (const auto &part : why["idle"]["devices"][d].items())
            sum += part.value().get<double>();
        EXPECT_NEAR(
            sum, why["step_seconds"].get<double>() - why["devices"][d]["busy_seconds"].get<double>(), 1e-9);
    }
    EXPECT_GT(why["idle"]["total"]["fill_seconds"].get<double>(), 0);
    const nlohmann::json peak = run("simulate --json --peak " + path("plan.json")).json()["peak"];
    std::int64_t held = 0;
    std::int64_t ofKinds = 0;
    for (const auto &each : peak["held"])
        held += each["bytes"].get<std::int64_t>();
    for (const auto &kind : peak["kinds"].items())
        ofKinds += kind.value().get<std::int64_t>();
    EXPECT_EQ(held, peak["bytes"].get<std::int64_t>());
    EXPECT_EQ(ofKinds, held);
    std::int64_t fullest = 0;
    for (const auto &device : why["devices"])
        fullest = std::max(fullest, device["peak_bytes"].get<std::int64_t>());
    EXPECT_EQ(held, fullest);

    const Outcome ran = run(
        "run --json --check --random-weights 3 --steps 2 " + path("plan.json") + " --dump " + path("dump"));
    ASSERT_EQ(ran.status, 0) << ran.output;
    EXPECT_EQ(ran.json()["check"]["ok"], true);
    EXPECT_EQ(ran.json()["steps"], 2);
    EXPECT_TRUE(std::filesystem::exists(m_folder / "dump" / "loss.npy"));
    EXPECT_TRUE(std::filesystem::exists(m_folder / "dump" / "grad" / "wte.weight.npy"));

    const Outcome apart = run("run --json --random-weights 3 --steps 2 --ranks 2 " + path("plan.json"));
    ASSERT_EQ(apart.status, 0) << apart.output;
    EXPECT_EQ(apart.json()["ranks"], 2);
    EXPECT_EQ(apart.json()["losses"], ran.json()["losses"]); // the same bits
    const Outcome alone = run("run --json --random-weights 3 --steps 2 --no-sharing " + path("plan.json"));
    ASSERT_EQ(alone.status, 0) << alone.output;
    EXPECT_EQ(alone.json()["losses"], ran.json()["losses"]);
    EXPECT_GT(alone.json()["predicted_step_seconds"].get<double>(),
        ran.json()["predicted_step_seconds"].get<double>());
    EXPECT_EQ(run("run --random-weights 3 --ranks 4000 " + path("plan.json")).status, 2);
}

TEST_F(Cli, APlanFileNeedsNoOtherFile)
{
    const std::string source = PLANLOOM_SOURCE_DIR "/resources/clusters/rtx4090.json";
    nlohmann::json cluster = nlohmann::json::parse(std::ifstream(source));
    cluster["name"] = "under my desk";
    cluster["deviceCount"] = 2;
    std::ofstream(m_folder / "desk.json") << cluster;
    const Outcome solved = run(std::string("solve ") + kModel + " --json --gallery data-parallel --cluster "
        + path("desk.json") + " --out " + path("plan.json"));
    ASSERT_EQ(solved.status, 0) << solved.output;
    std::filesystem::remove(m_folder / "desk.json");
    const Outcome simulated = run("simulate --json " + path("plan.json"));
    ASSERT_EQ(simulated.status, 0);
    EXPECT_EQ(simulated.json()["cluster"], "under my desk");
    EXPECT_EQ(simulated.json()["step_seconds"], solved.json()["step_seconds"]);
    EXPECT_EQ(run("compare " + path("plan.json") + " " + path("plan.json")).status, 0);
    EXPECT_EQ(run("verify " + path("plan.json")).status, 0);
    EXPECT_EQ(run("export " + path("plan.json") + " --out " + path("trace.json")).status, 0);
    const Outcome rows = run("rows " + path("plan.json"));
    EXPECT_EQ(rows.status, 0);
    EXPECT_NE(rows.output.find("mesh"), std::string::npos);
    EXPECT_TRUE(run("rows --json " + path("plan.json")).json().is_object());
}

TEST_F(Cli, OptionsWithoutEffectAreRefusedWithTheReason)
{
    const std::string model = kModel;
    std::ofstream(m_folder / "plan.json") << "{}";
    for (const std::string &words : std::vector<std::string>{"solve " + model + " --suggest",
             "solve " + model + " --axis tp", "solve " + model + " --inference --learning-rate 0.1",
             "solve " + model + " --constant w", "solve " + model + " --as-input w",
             "solve " + model + " --loss y", "solve " + model + " --unroll all",
             "solve " + model + " --gallery data-parallel:micro-batches=2 --micro-batches 4",
             "run " + path("plan.json") + " --cluster cpu:2", "run " + path("plan.json") + " --optimizer sgd",
             "run " + model + " --seed 2 --random-weights 1", "run " + model + " --backend cuda --no-sharing",
             "run " + model + " --prepare x --dump y", "gallery all --cluster cpu:2",
             "gallery 1f1b --precision bf16", "solve " + model + " --gallery 1f1b --no-search",
             "solve " + model + " --capacity 2x", "schedule x.json --csv-format compute_only",
             "schedule x.json --template gpipe --time-limit 3",
             std::string("check-annotation MatMul --seed 3"), std::string("session x --repair y --table")}) {
        SCOPED_TRACE(words);
        const Outcome refused = said(words);
        EXPECT_EQ(refused.status, 2);
        EXPECT_NE(refused.output.find("would have no effect"), std::string::npos) << refused.output;
    }
}

TEST_F(Cli, StagesOnTheSameDevicesAreNamed)
{
    std::ofstream(m_folder / "rows.txt") << "micro-batches 2\nstage layer:0 : 0\nstage layer:1 : 1\n";
    const Outcome solved = run(
        std::string("solve ") + kModel + " --json --no-search --cluster cpu:2 --table " + path("rows.txt"));
    ASSERT_EQ(solved.status, 0) << solved.output;
    const std::string warnings = solved.json()["warnings"].dump();
    EXPECT_NE(warnings.find("stages run on the same 2 devices"), std::string::npos) << warnings;
}

TEST_F(Cli, RowsThatThePlanCouldDoWithoutAreNamed)
{
    const auto warningsOf = [&](const std::string &rows) {
        std::ofstream(m_folder / "rows.txt") << rows;
        const Outcome solved = run(std::string("solve ") + kModel
            + " --json --no-search --cluster cpu:4 --table " + path("rows.txt"));
        EXPECT_EQ(solved.status, 0) << solved.output;
        return solved.status == 0 ? solved.json()["warnings"].dump() : std::string();
    };
    EXPECT_NE(warningsOf("mesh dp=2 tp=2\nsplit all : batch over dp\n").find("shared out over tp"),
        std::string::npos);
    EXPECT_NE(warningsOf("mesh dp=2 tp=2\n").find("shared out over dp, tp"), std::string::npos);
    EXPECT_EQ(warningsOf("mesh pp=2 tp=2\nspread layer:* : over pp\nsplit all : batch over tp\n")
                  .find("shared out"),
        std::string::npos);
    EXPECT_NE(warningsOf("schedule 1f1b\n").find("the same in every schedule"), std::string::npos);
    EXPECT_EQ(warningsOf("schedule 1f1b\nmicro-batches 2\n").find("schedule"), std::string::npos);
}

TEST_F(Cli, AttentionIsAChoiceOfEveryPlan)
{
    const auto peakOf = [&](const std::string &options) {
        const Outcome solved = run(std::string("solve ") + kModel + " --devices 2 --json" + options);
        EXPECT_EQ(solved.status, 0) << solved.output;
        return solved.status == 0 ? solved.json()["devices"][0]["peak_bytes"].get<std::int64_t>() : 0;
    };
    const std::int64_t usual = peakOf("");
    EXPECT_EQ(peakOf(" --attention fused"), usual);
    EXPECT_GT(peakOf(" --attention plain"), usual);
    EXPECT_GT(peakOf(" --gallery data-parallel --attention plain"), peakOf(" --gallery data-parallel"));
    const Outcome ran = run(std::string("run ") + kModel
        + " --devices 2 --gallery tensor-parallel --attention plain --check --random-weights 3 --json");
    ASSERT_EQ(ran.status, 0) << ran.output;
    EXPECT_EQ(ran.json()["check"]["ok"], true);
    EXPECT_NE(run(std::string("solve ") + kModel + " --attention fast").status, 0);
}

TEST_F(Cli, GalleryListsShowsAndTriesItsPlans)
{
    const Outcome all = run("gallery all --json");
    ASSERT_EQ(all.status, 0) << all.output;
    EXPECT_GE(all.json()["entries"].size(), 24u);
    EXPECT_NE(run("gallery interlaced").output.find("E0 E1"), std::string::npos);
    const Outcome tried =
        run(std::string("gallery 1f1b:tp=2 --model ") + kModel + " --cluster dgx-a100:4 --json");
    ASSERT_EQ(tried.status, 0) << tried.output;
    EXPECT_EQ(tried.json()["values"]["pp"], "2");
    EXPECT_EQ(tried.json()["fits"], true);
    EXPECT_GT(tried.json()["step_seconds"], 0);
    EXPECT_EQ(run(std::string("gallery axial --model ") + kModel + " --devices 2").status, 2);
    EXPECT_NE(
        said("gallery axial --model " + std::string(kModel) + " --devices 2").output.find("axial attention"),
        std::string::npos);
    EXPECT_EQ(run("gallery nonsense").status, 2);
}

TEST_F(Cli, PartitionConstraintsOfAutodistComeAndGo)
{
    std::ofstream(m_folder / "c.yaml") << "- name: torch.nn.functional.linear\n  parent_module: mlp\n"
                                          "  allowed_partition_dims: [\"2,0\"]\n  replica_allowed: false\n";
    std::ofstream(m_folder / "bad.yaml") << "- name: x\n  allowed: []\n";
    const std::string rows = std::string("rows ") + kModel + " --devices 2 ";
    EXPECT_EQ(run(rows + "--table " + path("bad.yaml")).status, 2);
    EXPECT_NE(said(rows + "--table " + path("bad.yaml")).output.find("bad.yaml:2:3"), std::string::npos);
    const Outcome out = run(rows + "--gallery tensor-parallel --out " + path("out.yaml"));
    ASSERT_EQ(out.status, 0) << out.output;
    const Outcome back = run(rows + "--gallery tensor-parallel --table " + path("out.yaml"));
    ASSERT_EQ(back.status, 0) << back.output;
    EXPECT_NE(back.output.find("@import"), std::string::npos) << back.output;
}

TEST_F(Cli, AWrongPlanIsNotVerified)
{
    ASSERT_EQ(run(std::string("solve ") + kModel + " --cluster cpu:2 --gallery data-parallel --out "
                  + path("plan.json"))
                  .status,
        0);
    nlohmann::json plan = nlohmann::json::parse(std::ifstream(m_folder / "plan.json"));
    auto &instructions = plan["devices"][1]["segments"][0]["instructions"];
    instructions.erase(instructions.size() - 1);
    std::ofstream(m_folder / "bad.json") << plan;
    const Outcome verified = run("verify --json " + path("bad.json"));
    EXPECT_EQ(verified.status, 1);
    EXPECT_EQ(verified.json()["ok"], false);
    for (const char *field : {"device", "instruction", "reason"})
        EXPECT_TRUE(verified.json()["first_failure"].contains(field)) << field;

    // A constant changed on all ranks: the plan is right for its own graph, but that is not the model's.
    plan = nlohmann::json::parse(std::ifstream(m_folder / "plan.json"));
    for (auto &op : plan["graph"]["operators"])
        if (op["attributes"].contains("epsilon"))
            op["attributes"]["epsilon"] = 0.5;
    std::ofstream(m_folder / "changed.json") << plan;
    EXPECT_EQ(run("verify " + path("changed.json")).status, 1);
}

TEST_F(Cli, BadUsageAndBadInputAreStatusTwo)
{
    EXPECT_EQ(run("dance").status, 2);
    EXPECT_EQ(run("solve").status, 2);
    EXPECT_EQ(run(std::string("solve ") + kModel + " --wings").status, 2);
    EXPECT_EQ(run(std::string("solve ") + kModel + " --cluster moon:3").status, 2);
    EXPECT_EQ(run("info /no/such/file.onnx").status, 2);
    std::ofstream(m_folder / "broken.onnx") << "not a model";
    const Outcome broken = run("info --json " + path("broken.onnx"));
    EXPECT_EQ(broken.status, 2);
    EXPECT_TRUE(broken.json()["error"].contains("message"));
    std::ofstream(m_folder / "rows.txt") << "split all : nowhere by\n";
    EXPECT_EQ(run(std::string("solve ") + kModel + " --table " + path("rows.txt")).status, 2);
    EXPECT_EQ(run("verify " + path("broken.onnx")).status, 2);
}

/// Two stages on two devices: 1F1B is the best there is, and nothing fits no memory.
TEST_F(Cli, SchedulesPlacements)
{
    std::ofstream(m_folder / "placement.json") << R"({"devices": 2, "memory_limit": 2, "blocks": [
        {"id": 0, "kind": "forward", "devices": [0], "time": 1, "memory": 1},
        {"id": 1, "kind": "forward", "devices": [1], "time": 1, "memory": 1},
        {"id": 2, "kind": "backward", "devices": [1], "time": 2, "memory": -1},
        {"id": 3, "kind": "backward", "devices": [0], "time": 2, "memory": -1}],
        "edges": [[0, 1], [1, 2], [2, 3]]})";
    const std::string words = "schedule " + path("placement.json") + " --json";
    const Outcome four = run(words + " --micro-batches 4 --picture " + path("four.svg"));
    EXPECT_EQ(four.status, 0);
    EXPECT_EQ(four.json()["status"], "optimal");
    EXPECT_EQ(four.json()["period"], 3);
    EXPECT_EQ(four.json()["makespan"]["4"], 15);
    EXPECT_EQ(four.json()["makespan_bound"]["4"], 15);
    EXPECT_EQ(four.json()["blocks"].size(), 16U);
    EXPECT_TRUE(std::filesystem::exists(m_folder / "four.svg"));
    EXPECT_EQ(run(words + " --memory 1").json()["period"], 6);
    const Outcome none = run(words + " --memory 0");
    EXPECT_EQ(none.status, 1);
    EXPECT_EQ(none.json()["status"], "infeasible");
    const Outcome gpipe = run(words + " --micro-batches 2 --template gpipe --csv " + path("gpipe.csv"));
    EXPECT_EQ(gpipe.status, 0);
    EXPECT_EQ(gpipe.json()["makespan"]["2"], 9);
    const Outcome back = run("schedule " + path("gpipe.csv") + " --json --csv " + path("again.csv"));
    EXPECT_EQ(back.json()["makespan"]["2"], 9);
    EXPECT_EQ(textOf("again.csv"), textOf("gpipe.csv"));
    EXPECT_EQ(textOf("gpipe.csv"), "0F0,0F1,0B0,0B1\r\n1F0,1F1,1B0,1B1\r\n");
    EXPECT_EQ(run(words + " --micro-batches 4 --template gpipe").status, 1); // holds 4 of 2
    EXPECT_EQ(run(words + " --template waltz").status, 2);
    // What is communicated is kept, whatever PyTorch would have made of the computation.
    const std::string theirs = "0F0,0SEND_F0,,0RECV_B0,0B0\r\n,1RECV_F0,1F0,1B0,1SEND_B0\r\n";
    std::ofstream(m_folder / "theirs.csv", std::ios::binary) << theirs;
    EXPECT_EQ(run("schedule " + path("theirs.csv") + " --csv " + path("kept.csv")).status, 0);
    EXPECT_EQ(textOf("kept.csv"), theirs);
    EXPECT_EQ(
        run("schedule " + path("theirs.csv") + " --csv-format compute_only --csv " + path("only.csv")).status,
        0);
    EXPECT_EQ(textOf("only.csv"), "0F0,0B0\r\n1F0,1B0\r\n");
    std::ofstream(m_folder / "unsent.csv") << "0F0,0RECV_B0,0SEND_F0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n";
    EXPECT_EQ(run("schedule " + path("unsent.csv")).status, 2);
    std::ofstream(m_folder / "stuck.csv") << "0F0,0B0\n1B0,1F0\n";
    EXPECT_EQ(run("schedule " + path("stuck.csv")).status, 2);
    std::ofstream(m_folder / "beyond.csv") << "0F0,0B9\n1F0,1B0\n";
    EXPECT_EQ(run("schedule " + path("beyond.csv")).status, 2);
    EXPECT_EQ(run(words + " --micro-batches 0").status, 2);
    EXPECT_EQ(run(words + " --time-limit 0").status, 2);
    std::ofstream(m_folder / "broken.json") << R"({"devices": 0})";
    EXPECT_EQ(run("schedule " + path("broken.json")).status, 2);
}

/// One device has room for one micro-batch unless its forward block recomputes.
TEST_F(Cli, SchedulesSayWhatRecomputes)
{
    std::ofstream(m_folder / "placement.json") << R"({"devices": 2, "memory_limit": [4, 3], "blocks": [
        {"id": 5, "kind": "forward", "devices": [0], "time": 2, "memory": 3,
            "recompute": {"until": 8, "time": 1, "memory": 2}},
        {"id": 6, "kind": "forward", "devices": [1], "time": 2, "memory": 3},
        {"id": 7, "kind": "backward", "devices": [1], "time": 2, "memory": -3},
        {"id": 8, "kind": "backward", "devices": [0], "time": 2, "memory": -3}],
        "edges": [[5, 6], [6, 7], [7, 8]]})";
    const std::string words = "schedule " + path("placement.json");
    const auto json = run(words + " --json --picture " + path("picture.svg")).json();
    EXPECT_EQ(json["status"], "optimal");
    EXPECT_EQ(json["period"], 5);
    EXPECT_EQ(json["repetend_choices"],
        nlohmann::json::parse(R"([{"id": 5, "choice": "recompute", "until": 8, "memory": 2}])"));
    EXPECT_NE(run(words).output.find("recompute      block 5"), std::string::npos);
}

TEST_F(Cli, AFileOfAnotherKindIsNamedForWhatItIs)
{
    ASSERT_EQ(run(std::string("solve ") + kModel + " --out " + path("plan.json")).status, 0);
    std::ofstream(m_folder / "README.md") << "# A heading\n\nand its text\n";
    std::ofstream(m_folder / "empty.onnx");
    std::ofstream(m_folder / "rows.txt") << "# of today\nplace all : devices 0\n";
    std::ofstream(m_folder / "cut.onnx", std::ios::binary) << "\x08\x07\x3a\x7fxyz";
    const std::pair<std::string, std::string> cases[] = {
        {"plan.json", "plan.json: this is an execution plan of Planloom"},
        {"README.md", "README.md: this is plain text"}, {"empty.onnx", "empty.onnx: the file is empty"},
        {"rows.txt", "rows.txt: this is a table of rows"},
        {"cut.onnx", "cut.onnx: this is no ONNX model, or one that is cut off or damaged"}};
    for (const auto &[file, words] : cases) {
        const Outcome outcome = said("info " + path(file));
        EXPECT_EQ(outcome.status, 2);
        EXPECT_NE(outcome.output.find(words), std::string::npos) << outcome.output;
        EXPECT_EQ(outcome.output.find("model.onnx"), std::string::npos) << outcome.output;
    }
    const Outcome text = said("verify " + path("README.md"));
    EXPECT_NE(text.output.find("this is plain text, where an execution plan was expected"), std::string::npos)
        << text.output;
}

/// The importer, which lies below the table, knows the words that rows begin with: all that the table's
/// reader knows.
TEST_F(Cli, EveryRowIsRecognisedAsARow)
{
    std::ofstream(m_folder / "nonsense.txt") << "nonsense\n";
    const std::string expected =
        said(std::string("solve ") + kModel + " --table " + path("nonsense.txt")).output;
    const std::size_t begin = expected.find("a row: ");
    const std::size_t end = expected.find(", found", begin);
    ASSERT_NE(end, std::string::npos) << expected;
    std::istringstream words(
        expected.substr(begin + 7, end - begin - 7)); // "mesh, micro-batches, ... in-flight or limit"
    int count = 0;
    for (std::string word; words >> word;) {
        word.erase(std::remove(word.begin(), word.end(), ','), word.end());
        if (word == "or")
            continue;
        std::ofstream(m_folder / "row.txt") << word << " all\n";
        const Outcome outcome = said("info " + path("row.txt"));
        EXPECT_NE(outcome.output.find("a table of rows"), std::string::npos)
            << word << ": " << outcome.output;
        ++count;
    }
    EXPECT_EQ(count, 39) << expected;
}

TEST_F(Cli, ALimitThatIsBrokenIsStatusOneAndNamesItsRow)
{
    std::ofstream(m_folder / "rows.txt") << "micro-batches 2\nlimit memory 1KiB\n";
    const Outcome broken = run(std::string("solve ") + kModel + " --json --table " + path("rows.txt"));
    EXPECT_EQ(broken.status, 1);
    EXPECT_EQ(broken.json()["error"]["where"], "row:1/rule");
    const Outcome words = said(std::string("solve ") + kModel + " --table " + path("rows.txt"));
    EXPECT_NE(words.output.find("planloom-cli: row 2: "), std::string::npos) << words.output;
    EXPECT_NE(broken.output.find("the row allows 1.00 KiB"), std::string::npos) << broken.output;
    std::ofstream(m_folder / "rows.txt") << "limit memory 1GiB\nlimit time 60s\n";
    const Outcome held = run(std::string("solve ") + kModel + " --table " + path("rows.txt"));
    EXPECT_EQ(held.status, 0);
    EXPECT_NE(held.output.find("row 1 holds: peak "), std::string::npos) << held.output;
}

TEST_F(Cli, FitsIsStatusZeroOrOneAndSaysWhatTheFullestRankHolds)
{
    const std::string model = std::string("fits ") + kModel + " --gallery 3d:pp=2 ";
    const Outcome fits = run(model + "--cluster dgx-h100:4");
    EXPECT_EQ(fits.status, 0);
    EXPECT_TRUE(fits.output.starts_with("fits: rank ")) << fits.output;
    EXPECT_NE(fits.output.find(" holds the most, 0.0 of "), std::string::npos) << fits.output;
    EXPECT_EQ(std::count(fits.output.begin(), fits.output.end(), '\n'), 1) << fits.output;

    const auto all = run(model + "--cluster dgx-h100:4 --json").json();
    EXPECT_EQ(all.at("fits"), true);
    ASSERT_EQ(all.at("ranks").size(), 4u);
    for (std::size_t r = 0; r < 4; ++r) {
        const auto &rank = all.at("ranks").at(r);
        EXPECT_EQ(rank.at("rank"), r);
        std::int64_t sum = 0;
        for (const auto &[kind, bytes] : rank.at("kinds").items())
            sum += bytes.get<std::int64_t>();
        EXPECT_EQ(sum, rank.at("peak_bytes").get<std::int64_t>());
        EXPECT_GT(rank.at("kinds").at("main_parameters"), 0);
        EXPECT_GT(rank.at("limit_bytes"), rank.at("peak_bytes"));
    }

    const std::string large =
        "'zoo:gpt?layers=48&hidden=6400&heads=64&seq=2048&batch=4' --cluster dgx-h100:4 ";
    const Outcome full = run("fits " + large + "--gallery 3d:pp=2,tp=2,micro-batches=4");
    EXPECT_EQ(full.status, 1);
    EXPECT_TRUE(full.output.starts_with("rank ")) << full.output;
    EXPECT_NE(full.output.find(" GiB: optimizer states "), std::string::npos) << full.output;
    EXPECT_NE(full.output.find("\n4 ranks of 4 do not fit\n"), std::string::npos) << full.output;

    EXPECT_EQ(run("solve " + std::string(kModel) + " --cluster cpu:2 --gallery data-parallel --out "
                  + path("plan.json"))
                  .status,
        0);
    EXPECT_EQ(run("fits " + path("plan.json")).status, 0);
    EXPECT_EQ(run("fits " + path("plan.json") + " --cluster dgx-h100:2").status, 0);
    EXPECT_EQ(run("fits " + path("plan.json") + " --gallery single").status, 2);
    EXPECT_EQ(run("fits").status, 2);
    std::ofstream(m_folder / "rows.txt") << "mesh dp=2\nmesh tp=2\n";
    EXPECT_EQ(run(std::string("fits ") + kModel + " --cluster cpu:2 --table " + path("rows.txt")).status, 3);
}

TEST_F(Cli, PlansAreComparedAndASlowerOneIsStatusOne)
{
    const auto solveTo = [&](const std::string &gallery, const std::string &file) {
        ASSERT_EQ(run(std::string("solve ") + kModel + " --cluster dgx-a100:2 --gallery " + gallery
                      + " --out " + path(file))
                      .status,
            0);
    };
    solveTo("pipeline:schedule=gpipe,micro-batches=4", "a.json");
    solveTo("pipeline:schedule=1f1b,micro-batches=2", "b.json");
    const Outcome there = run("compare --json " + path("a.json") + " " + path("b.json"));
    ASSERT_EQ(there.status, 0) << there.output;
    const auto json = there.json();
    EXPECT_FALSE(json["operators"].empty());
    std::int64_t delta = 0;
    for (const auto &part : json["waterfall"])
        delta += part["delta_nanoseconds"].get<std::int64_t>();
    EXPECT_NEAR(static_cast<double>(delta) * 1e-9, json["metrics"]["step"]["delta"], 1e-12);
    EXPECT_TRUE(json["steady_state"]["a"].contains("period_seconds"));

    const double ratio = json["ratio"];
    const auto atMost = [&](double value) {
        return run("compare " + path("a.json") + " " + path("b.json") + " --at-most " + std::to_string(value))
            .status;
    };
    EXPECT_EQ(atMost(ratio * 1.01), 0);
    EXPECT_EQ(atMost(ratio * 0.99), 1);
    const Outcome same = run("compare --json --at-most 1 " + path("a.json") + " " + path("a.json"));
    EXPECT_EQ(same.status, 0);
    EXPECT_TRUE(same.json()["operators"].empty());
    EXPECT_EQ(same.json()["ratio"], 1.0);

    EXPECT_EQ(run("compare " + path("a.json")).status, 2);
    EXPECT_EQ(run("compare " + path("a.json") + " " + path("a.json") + " " + path("a.json")).status, 2);
    EXPECT_EQ(run("compare " + path("a.json") + " " + path("missing.json")).status, 2);
    EXPECT_EQ(atMost(-1), 2);
    EXPECT_EQ(atMost(0), 2);
}

TEST_F(Cli, SessionsAreShownCheckedAndRepaired)
{
    const std::string table = "split all : batch by 2\n";
    SessionContents contents;
    contents.model.source = "zoo:mlp";
    contents.history = History({TableDocument(table), {{"cluster", "cpu"}, {"devices", "2"}}});
    History &history = contents.history;
    ASSERT_TRUE(history.record("4 devices", {{}, {{"devices", "2", "4"}}}, 1700000000000));
    history.undo();
    ASSERT_TRUE(history.record("8 devices", {{}, {{"devices", "2", "8"}}}, 1700000001000));
    history.setName("best", 2);
    history.setFigures(2, {0.25, 1024, true});
    contents.runs = {{3, 2, 1700000002000, "2 CPU devices", "done", "{}", "[]"}};
    ASSERT_TRUE(SessionStore::create(m_folder / "a.planloom", contents));

    const Outcome shown = run("session --json " + path("a.planloom"));
    EXPECT_EQ(shown.status, 0);
    const auto json = shown.json();
    EXPECT_EQ(json["rows"], 1);
    EXPECT_EQ(json["cluster"], "cpu");
    EXPECT_EQ(json["devices"], 8);
    EXPECT_EQ(json["step"], 2);
    EXPECT_EQ(json["branch"], "branch 2");
    ASSERT_EQ(json["steps"].size(), 2U);
    EXPECT_EQ(json["steps"][0]["words"], "4 devices");
    EXPECT_FALSE(json["steps"][0].contains("step_seconds"));
    EXPECT_EQ(json["steps"][1]["step_seconds"], 0.25);
    EXPECT_EQ(json["steps"][1]["peak_bytes"], 1024);
    EXPECT_EQ(json["branches"][0]["name"], "main");
    EXPECT_EQ(json["branches"][1]["head"], 2);
    EXPECT_EQ(json["names"]["best"], 2);
    EXPECT_EQ(json["runs"][0]["title"], "2 CPU devices");
    EXPECT_TRUE(json["damage"].empty());

    const std::string text = run("session " + path("a.planloom")).output;
    for (const char *part : {"\"4 devices\"", "\"8 devices\"", "branch 2", "best", "2 CPU devices", "250 ms"})
        EXPECT_NE(text.find(part), std::string::npos) << part << " in\n" << text;
    EXPECT_EQ(run("session --table " + path("a.planloom")).output, table);
    EXPECT_EQ(run("session --check " + path("a.planloom")).status, 0);
    EXPECT_EQ(run("session /no/such/file.planloom").status, 2);

    EXPECT_EQ(run("session --repair " + path("b.planloom") + " " + path("a.planloom")).status, 0);
    auto copied = run("session --json " + path("b.planloom")).json();
    EXPECT_EQ(copied["steps"], json["steps"]);
    EXPECT_EQ(copied["runs"], json["runs"]);
    EXPECT_EQ(
        SessionStore::openToLook(m_folder / "b.planloom")->store.loadRunTimeline(3).value_or("?"), "[]");
    EXPECT_EQ(run("session --repair " + path("b.planloom") + " " + path("a.planloom")).status,
        2); // it is there already
}

TEST_F(Cli, DamagedSessionsAreSaidToBeAndRepairedAsFarAsTheyGo)
{
    SessionContents contents;
    contents.history = History({TableDocument("split all : batch by 2\n"), {}});
    const std::string words = "the words of one step";
    ASSERT_TRUE(contents.history.record("first", {{}, {{"a", std::nullopt, "1"}}}, 0));
    ASSERT_TRUE(contents.history.record(words, {{}, {{"b", std::nullopt, "2"}}}, 0));
    ASSERT_TRUE(SessionStore::create(m_folder / "a.planloom", contents));
    std::string bytes;
    {
        std::ifstream stream(m_folder / "a.planloom", std::ios::binary);
        bytes.assign(std::istreambuf_iterator<char>(stream), {});
    }
    const std::size_t place = bytes.find(words);
    ASSERT_NE(place, std::string::npos);
    bytes[place] ^= 1;
    std::ofstream(m_folder / "a.planloom", std::ios::binary) << bytes;
    const Outcome checked = run("session --check " + path("a.planloom"));
    EXPECT_EQ(checked.status, 1);
    EXPECT_NE(checked.output.find("cannot be read whole"), std::string::npos) << checked.output;
    const Outcome repaired = run("session --json --repair " + path("b.planloom") + " " + path("a.planloom"));
    EXPECT_EQ(repaired.status, 1);
    EXPECT_FALSE(repaired.json()["losses"].empty());
    const auto json = run("session --json --check " + path("b.planloom")).json();
    EXPECT_EQ(json["steps"].size(), 1U);
    EXPECT_TRUE(json["damage"].empty());
}

} // namespace
} // namespace planloom
