// What every verb of the command line keeps: help, version, words behind --, nearest names, exit statuses,
// whole files.

#include "planloom_paths.h"
#include "sessions/session_store.h"
#include "tests/temporary_folder.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <sys/wait.h>

namespace planloom {
namespace {

struct ShellEnd {
    int status = -1;
    std::string output{};
};

ShellEnd shell(const std::string &command)
{
    ShellEnd end;
    const char *const bash = "bash -c ";
    std::string quoted = "'";
    for (const char c : command)
        quoted += c == '\'' ? "'\\''" : std::string(1, c);
    FILE *const pipe = popen((bash + quoted + "'").c_str(), "r");
    if (!pipe)
        return end;
    std::array<char, 4096> chunk{};
    while (const std::size_t n = fread(chunk.data(), 1, chunk.size(), pipe))
        end.output.append(chunk.data(), n);
    const int status = pclose(pipe);
    end.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return end;
}

const std::string kCli = "'" PLANLOOM_BINARY_DIR "/bin/planloom-cli' ";
const std::string kExec = "'" PLANLOOM_BINARY_DIR "/bin/planloom-exec' ";
const std::string kSmallModel = "'zoo:gpt?layers=2&hidden=16&heads=4&seq=8&batch=4&vocab=24'";

/// A verb with words that it does its work for, and the option that names what it writes.
struct VerbCase {
    std::string name{};
    std::string words{};
    std::string written{}; ///< Empty: it writes no file, or folders.
};

void PrintTo(const VerbCase &verb, std::ostream *stream)
{
    *stream << verb.name;
}

/// One folder for all: with a plan, a placement, a session.
class EveryVerb : public testing::TestWithParam<VerbCase>
{
protected:
    static void SetUpTestSuite()
    {
        s_folder = new TemporaryFolder;
        const std::string start = "cd '" + s_folder->path().string() + "' && ";
        ASSERT_EQ(shell(start + kCli + "solve " + kSmallModel
                      + " --cluster cpu:2 --gallery data-parallel --out plan.json "
                        ">/dev/null")
                      .status,
            0);
        std::ofstream(s_folder->at("placement.json")) << R"({"devices": 1, "blocks": [
            {"id": 0, "kind": "forward", "devices": [0], "time": 1, "memory": 1},
            {"id": 1, "kind": "backward", "devices": [0], "time": 2, "memory": -1}], "edges": [[0, 1]]})";
        std::ofstream(s_folder->at("train.sh")) << "train.py --num-layers 2 --hidden-size 32 "
                                                   "--num-attention-heads 2 --seq-length 8 --vocab-size 64\n";
        std::ofstream(s_folder->at("rank0.json"))
            << R"({"traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", "ts": 1, "dur": 2, "args": {"stream": 7}}]})";
        std::ofstream(s_folder->at("node.txt")) << "GPU0 GPU1\nGPU0 X NV12\nGPU1 NV12 X\n";
        SessionContents contents;
        contents.model.source = "zoo:mlp";
        contents.history = History({TableDocument("mesh dp=2\n"), {{"cluster", "cpu"}, {"devices", "2"}}});
        ASSERT_TRUE(SessionStore::create(s_folder->at("a.planloom"), contents));
    }
    static void TearDownTestSuite()
    {
        delete s_folder;
        s_folder = nullptr;
    }
    /// In the folder; both streams as one unless `streams` says otherwise.
    static ShellEnd run(
        const std::string &words, const std::string &streams = "2>&1", const std::string &before = {})
    {
        return shell("cd '" + s_folder->path().string() + "'; " + before + "COLUMNS=60 " + kCli + words + " "
            + streams);
    }
    static std::string textOf(const std::string &name)
    {
        std::ifstream stream(s_folder->at(name));
        return {std::istreambuf_iterator<char>(stream), {}};
    }

    static TemporaryFolder *s_folder; ///< GoogleTest's way to share it among the tests of a suite.
};

TemporaryFolder *EveryVerb::s_folder = nullptr;

TEST_P(EveryVerb, HelpsInTheWidthOfTheTerminalWithAnExample)
{
    const std::string name = GetParam().name;
    const ShellEnd help = run(name + " --help");
    EXPECT_EQ(help.status, 0) << help.output;
    EXPECT_EQ(run(name + " -h").output, help.output);
    EXPECT_EQ(run("help " + name).output, help.output);
    const auto example = help.output.find("\nExample:\n  planloom-cli " + name);
    ASSERT_NE(example, std::string::npos) << help.output;
    std::istringstream lines(help.output.substr(0, example));
    for (std::string line; std::getline(lines, line);)
        EXPECT_LE(line.size(), 60U) << line;
    EXPECT_NE(run("--help").output.find("\n  " + name), std::string::npos);
    EXPECT_EQ(run(name + " --version").output, run("--version").output);
}

TEST_P(EveryVerb, SaysTheNearestNameOfAMisspeltWord)
{
    const std::string name = GetParam().name;
    const ShellEnd verb = run(name + "x");
    EXPECT_EQ(verb.status, 2);
    EXPECT_NE(verb.output.find("did you mean '" + name + "'?"), std::string::npos) << verb.output;
    const ShellEnd option = run(name + " --jsonn");
    EXPECT_EQ(option.status, 2);
    EXPECT_NE(option.output.find("did you mean --json?"), std::string::npos) << option.output;
    const ShellEnd unknown = run(name + " --zyxwvutsr");
    EXPECT_EQ(unknown.status, 2);
    EXPECT_NE(unknown.output.find("is no option of planloom-cli " + name), std::string::npos)
        << unknown.output;
}

TEST_P(EveryVerb, TakesWordsBehindTwoDashesForNames)
{
    // A file called --json is not there; a verb that takes none says that it takes options alone.
    const std::string second = GetParam().name == "compare" ? " --json" : "";
    const ShellEnd end = run(GetParam().name + " -- --json" + second);
    EXPECT_EQ(end.status, 2) << end.output;
    EXPECT_NE(end.output.find("--json"), std::string::npos) << end.output;
    EXPECT_EQ(end.output.find("no option"), std::string::npos) << end.output;
    EXPECT_EQ(end.output.find('{'), std::string::npos) << "it is no option: " << end.output;
}

TEST_P(EveryVerb, EndsWithOneWhereItsOutputHasNoRoom)
{
    if (!std::filesystem::exists("/dev/full"))
        GTEST_SKIP() << "this system has no /dev/full";
    EXPECT_EQ(run(GetParam().name + " --help", "2>&1 >/dev/full").status, 1);
    if (GetParam().words.empty())
        return;
    EXPECT_EQ(run(GetParam().words, "2>&1 >/dev/null").status, 0) << run(GetParam().words).output;
    const ShellEnd full = run(GetParam().words, "2>&1 >/dev/full");
    EXPECT_EQ(full.status, 1);
    EXPECT_NE(full.output.find("standard output cannot be written"), std::string::npos) << full.output;
}

TEST_P(EveryVerb, WritesFilesWholeOrNotAtAll)
{
    const VerbCase &verb = GetParam();
    if (verb.written.empty())
        return;
    for (const std::string old : {"", "old"}) {
        const std::string file = "out.svg";
        std::filesystem::remove(s_folder->at(file));
        if (!old.empty())
            std::ofstream(s_folder->at(file)) << old;
        // No file may have a byte: what a full disk does, without one.
        const ShellEnd full = run(
            verb.words + " " + verb.written + " " + file, "2>&1 >/dev/null", "trap '' XFSZ; ulimit -f 0; ");
        EXPECT_EQ(full.status, 1) << full.output;
        EXPECT_NE(full.output.find("cannot be written: "), std::string::npos) << full.output;
        EXPECT_EQ(std::filesystem::exists(s_folder->at(file)), !old.empty());
        EXPECT_EQ(textOf(file), old);
        EXPECT_FALSE(std::filesystem::exists(s_folder->at(file + ".part")));
        EXPECT_EQ(run(verb.words + " " + verb.written + " " + file).status, 0);
        EXPECT_GT(textOf(file).size(), 3U);
    }
    const ShellEnd nowhere = run(verb.words + " " + verb.written + " no/such/out.svg");
    EXPECT_EQ(nowhere.status, 2) << "a folder that is not there is bad input";
    EXPECT_NE(nowhere.output.find("there is no folder \"no/such\""), std::string::npos) << nowhere.output;
}

INSTANTIATE_TEST_SUITE_P(Cli, EveryVerb,
    testing::Values(VerbCase{"info", "info " + kSmallModel, {}},
        VerbCase{"solve", "solve " + kSmallModel + " --cluster cpu:2 --gallery data-parallel", "--out"},
        VerbCase{"schedule", "schedule placement.json --micro-batches 2", "--picture"},
        VerbCase{"simulate", "simulate plan.json", "--trace"}, VerbCase{"fits", "fits plan.json", "--csv"},
        VerbCase{"communication", "communication plan.json", "--csv"},
        VerbCase{"report", "report plan.json", "--out"},
        VerbCase{"compare", "compare plan.json plan.json", {}},
        VerbCase{"check-annotation", "check-annotation MatMul", {}},
        VerbCase{"verify", "verify plan.json", {}},
        VerbCase{"run", "run plan.json --random-weights 1", "--trace"},
        VerbCase{"import", "import train.sh", "--out"}, VerbCase{"export", "export plan.json", "--out"},
        VerbCase{"trace", "trace rank0.json --no-cache", "--csv"}, VerbCase{"gallery", "gallery all", {}},
        VerbCase{"rows", "rows " + kSmallModel + " --cluster cpu:2 --gallery data-parallel", "--out"},
        VerbCase{"cluster", "cluster --topology node.txt --device A100", "--out"},
        VerbCase{"session", "session a.planloom", {}}, VerbCase{"lesson", "lesson list", {}},
        VerbCase{"doctor", "doctor", {}}),
    [](const auto &info) {
        std::string name = info.param.name;
        std::erase(name, '-');
        return name;
    });

TEST(Conventions, EveryVerbOfTheHelpIsTried)
{
    std::istringstream lines(shell(kCli + "--print-completions=fish").output);
    int verbs = 0;
    for (std::string line; std::getline(lines, line);)
        verbs += line.find("__fish_use_subcommand -a") != std::string::npos ? 1 : 0;
    EXPECT_EQ(verbs, 20 + 1) << "those above, and help";
}

TEST(Conventions, AllProgramsSayTheSameVersionAndStatuses)
{
    const std::string version = shell(kCli + "--version").output;
    ASSERT_TRUE(version.starts_with("planloom-cli ")) << version;
    const std::string number = version.substr(std::string("planloom-cli ").size());
    EXPECT_EQ(shell(kExec + "--version").output, "planloom-exec " + number);
    const auto statuses = [](const std::string &help) {
        const std::size_t begin = help.find("Exit status:");
        return help.substr(begin, help.find("Example:", begin) - begin);
    };
    EXPECT_EQ(statuses(shell(kCli + "-h").output), statuses(shell(kExec + "-h").output));
}

TEST(Conventions, TheRunnerKeepsThem)
{
    for (const std::string verb : {"run", "bench", "probe"}) {
        const ShellEnd help = shell(kExec + verb + " -h");
        EXPECT_EQ(help.status, 0);
        EXPECT_NE(help.output.find("Example:\n  planloom-exec " + verb), std::string::npos) << help.output;
        EXPECT_EQ(shell(kExec + verb + " --no-such 2>&1").status, 2);
    }
    EXPECT_NE(shell(kExec + "rum 2>&1").output.find("did you mean 'run'?"), std::string::npos);
    EXPECT_NE(shell(kExec + "run --plam x 2>&1").output.find("did you mean --plan?"), std::string::npos);
    EXPECT_EQ(shell(kExec + "-h >/dev/full 2>&1").status, 1);
    EXPECT_EQ(shell(kExec + "probe >/dev/full 2>&1").status, 1);
    EXPECT_EQ(shell(kExec + "2>&1").status, 2);
    EXPECT_EQ(shell(kCli + "2>&1").status, 2);
}

/// A machine that the doctor sees: what PATH, display, libraries and Python are.
TEST(Doctor, NamesWhatIsMissingForWhatAndHowToGetIt)
{
    const TemporaryFolder folder;
    const std::string bare = "env -i PATH='" + folder.path().string() + "' COLUMNS=100 " + kCli + "doctor ";
    const ShellEnd page = shell(bare + "2>&1");
    EXPECT_EQ(page.status, 0) << page.output;
    for (const char *part : {"there is no display", "no Python was found on PATH", "to get it: "})
        EXPECT_NE(page.output.find(part), std::string::npos) << part << " in\n" << page.output;
    EXPECT_LE(std::count(page.output.begin(), page.output.end(), '\n'), 60) << "one page";
    EXPECT_EQ(shell(bare + "--feature plan").status, 0);
    EXPECT_EQ(shell(bare + "--feature torch").status, 1);
    const ShellEnd wrong = shell(bare + "--feature gpuu 2>&1");
    EXPECT_EQ(wrong.status, 2);
    EXPECT_NE(wrong.output.find("did you mean"), std::string::npos) << wrong.output;

    const std::string python = folder.at("python3");
    std::ofstream(python) << "#!/bin/sh\nexit 1\n";
    std::filesystem::permissions(python, std::filesystem::perms::owner_all);
    EXPECT_NE(shell(bare + "--feature torch").output.find("has no package torch"), std::string::npos);
    std::ofstream(python) << "#!/bin/sh\necho 2.5.1\n";
    const ShellEnd torch = shell(bare + "--feature torch");
    EXPECT_EQ(torch.status, 0) << torch.output;
    EXPECT_NE(torch.output.find("torch 2.5.1"), std::string::npos) << torch.output;
}

} // namespace
} // namespace planloom
