// The program planloom-exec: events on standard output, exit status.

#include "engine/runtime/processes/run_folder.h"
#include "planloom_paths.h"

#include "tests/engine/runtime/plan_writer.h"

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>

#include <nlohmann/json.hpp>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace planloom;
using Json = nlohmann::json;

namespace {

struct Finished {
    int status = -1;
    std::vector<Json> events{};

    std::vector<Json> of(const std::string &type) const
    {
        std::vector<Json> found;
        for (const Json &event : events)
            if (event.at("t") == type)
                found.push_back(event);
        return found;
    }
};

/// Runs planloom-exec; `react` sees each event as it comes, with the supervisor's process id.
Finished exec(std::vector<std::string> arguments, const std::function<void(const Json &, pid_t)> &react = {})
{
    Finished finished;
    int out[2];
    if (::pipe(out) != 0)
        return finished;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", 0, 0);
    posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
    posix_spawn_file_actions_addclose(&actions, out[0]);
    posix_spawn_file_actions_addclose(&actions, out[1]);
    arguments.insert(arguments.begin(), PLANLOOM_BINARY_DIR "/bin/planloom-exec");
    std::vector<char *> pointers;
    for (std::string &argument : arguments)
        pointers.push_back(argument.data());
    pointers.push_back(nullptr);
    pid_t process = -1;
    const int failed =
        ::posix_spawn(&process, arguments[0].c_str(), &actions, nullptr, pointers.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    ::close(out[1]);
    EXPECT_EQ(failed, 0) << arguments[0];
    std::string text;
    char bytes[4096];
    for (ssize_t got = ::read(out[0], bytes, sizeof(bytes)); got > 0;
         got = ::read(out[0], bytes, sizeof(bytes))) {
        text.append(bytes, static_cast<std::size_t>(got));
        for (std::size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n')) {
            finished.events.push_back(Json::parse(text.substr(0, end)));
            text.erase(0, end + 1);
            if (react)
                react(finished.events.back(), process);
        }
    }
    ::close(out[0]);
    EXPECT_EQ(text, "");
    int status = 0;
    if (failed == 0 && ::waitpid(process, &status, 0) == process && WIFEXITED(status))
        finished.status = WEXITSTATUS(status);
    return finished;
}

class Exec : public testing::Test
{
protected:
    Exec()
        : m_folder(std::filesystem::temp_directory_path()
            / (std::string{"planloom_exec_"} + testing::UnitTest::GetInstance()->current_test_info()->name()))
    {
        std::filesystem::remove_all(m_folder);
    }
    ~Exec() override { std::filesystem::remove_all(m_folder); }

    std::vector<std::string> write(const RunRequest &request)
    {
        const auto written = writeRunFolder(m_folder.string(), request);
        EXPECT_TRUE(written) << describe(written.error());
        return {"run", "--plan", (m_folder / "plan.json").string(), "--options",
            (m_folder / "options.json").string()};
    }

    std::filesystem::path m_folder;
};

TEST_F(Exec, RunsAFolderAndWritesTheOutcome)
{
    RunRequest request;
    request.plan = oneDevice(2).plan;
    request.options.inputs["x"] = floats({4, 4}, drawn(16, 2));
    request.options.steps = 2;
    request.outcomeFolder = "outcome"; // beside options.json
    const Finished finished = exec(write(request));
    EXPECT_EQ(finished.status, 0);
    ASSERT_EQ(finished.of("done").size(), 1U);
    EXPECT_EQ(finished.of("step").size(), 2U);
    EXPECT_EQ(finished.of("done")[0].at("losses")[0],
        static_cast<double>(total(product(drawn(16, 2), drawn(8, 1)))));
    EXPECT_TRUE(std::filesystem::exists(m_folder / "outcome" / "loss.npy"));
}

TEST_F(Exec, RemovesAFolderThatIsTemporaryOnceItIsRead)
{
    for (const bool more : {false, true}) {
        RunRequest request;
        request.plan = oneDevice(2).plan;
        request.options.inputs["x"] = floats({4, 4}, drawn(16, 2));
        request.reference = std::make_shared<const ExecutionPlan>(oneDevice(1).plan);
        request.temporary = true;
        const auto arguments = write(request);
        if (more)
            std::ofstream{m_folder / "notes.txt"} << "of somebody else";
        EXPECT_EQ(exec(arguments).status, 0);
        EXPECT_EQ(std::filesystem::exists(m_folder), more);
        EXPECT_EQ(std::filesystem::exists(m_folder / "notes.txt"), more);
        EXPECT_FALSE(std::filesystem::exists(m_folder / "plan.json"));
    }
}

TEST_F(Exec, BenchMeasuresOnTheBackendThatItsOptionsName)
{
    RunRequest request;
    request.plan = oneDevice(2).plan;
    const auto bench = [&](const std::string &backend) {
        request.backend = backend;
        (void)write(request);
        const std::string command = std::string{"'" PLANLOOM_BINARY_DIR "/bin/planloom-exec' bench --plan '"}
            + (m_folder / "plan.json").string() + "' --options '" + (m_folder / "options.json").string()
            + "' --profile '" + (m_folder / backend).string() + "' >'" + (m_folder / "said").string()
            + "' 2>&1";
        const int status = std::system(command.c_str());
        std::ifstream said(m_folder / "said");
        return std::pair{status, std::string{std::istreambuf_iterator<char>{said}, {}}};
    };
    const auto [status, said] = bench("cpu");
    EXPECT_EQ(status, 0) << said;
    EXPECT_NE(said.find("predicted for this machine: "), std::string::npos) << said;
    EXPECT_TRUE(std::filesystem::exists(m_folder / "cpu"));
    const auto [onGpu, saidOfGpu] = bench("cuda-emulated");
    if (onGpu == 0) { // there is one
        EXPECT_NE(saidOfGpu.find("compute capability"), std::string::npos) << saidOfGpu;
    } else {
        EXPECT_TRUE(saidOfGpu.starts_with("planloom-exec: ")) << saidOfGpu;
        EXPECT_FALSE(std::filesystem::exists(m_folder / "cuda-emulated"));
    }
    const auto [unknown, saidOfIt] = bench("abacus");
    EXPECT_NE(unknown, 0);
    EXPECT_NE(saidOfIt.find("known: cpu, cuda, cuda-emulated"), std::string::npos) << saidOfIt;
}

TEST_F(Exec, AKilledRankEndsTheRunWithStatus1)
{
    const Finished finished = exec(write(waitingForEver()), [](const Json &event, pid_t) {
        static pid_t rank = -1;
        if (event.at("t") == "hello")
            rank = event.at("rank_pid");
        if (event.at("t") == "progress")
            ::kill(rank, SIGKILL);
    });
    EXPECT_EQ(finished.status, 1);
    ASSERT_EQ(finished.of("error").size(), 1U);
    EXPECT_EQ(finished.of("error")[0].at("signal"), SIGKILL);
    EXPECT_EQ(finished.of("error")[0].at("devices").at(1).at("kind"), "recv");
}

TEST_F(Exec, ATerminatedSupervisorCancelsTheRun)
{
    const Finished finished = exec(write(waitingForEver()), [](const Json &event, pid_t supervisor) {
        if (event.at("t") == "progress")
            ::kill(supervisor, SIGTERM);
    });
    EXPECT_EQ(finished.status, 1);
    EXPECT_EQ(finished.of("cancelling").size(), 1U);
}

TEST_F(Exec, ADeadSupervisorLeavesNoRankBehind)
{
    for (const std::int32_t ranks : {1, 2}) {
        std::size_t started = 0;
        RunRequest request = waitingForEver();
        request.ranks = ranks;
        // The ranks hold standard output too: `exec` returns once they have ended as well.
        const Finished finished = exec(write(request), [&](const Json &event, pid_t supervisor) {
            if (event.at("t") == "hello")
                started = event.at("rank_pids").size();
            if (event.at("t") == "progress")
                ::kill(supervisor, SIGKILL);
        });
        EXPECT_EQ(finished.status, -1); // killed
        EXPECT_EQ(started, static_cast<std::size_t>(ranks));
    }
}

TEST_F(Exec, AReaderWhoIsGoneEndsTheRun)
{
    // Nothing happens in this run that would be reported: it must notice all the same.
    const auto begin = std::chrono::steady_clock::now();
    const auto arguments = write(waitingForEver());
    int out[2];
    ASSERT_EQ(::pipe(out), 0);
    const pid_t supervisor = ::fork();
    if (supervisor == 0) {
        ::dup2(out[1], STDOUT_FILENO);
        ::close(out[0]);
        ::close(out[1]);
        ::close(STDERR_FILENO);
        ::execl(PLANLOOM_BINARY_DIR "/bin/planloom-exec", "planloom-exec", "run", "--plan",
            arguments[2].c_str(), "--options", arguments[4].c_str(), nullptr);
        ::_exit(99);
    }
    ::close(out[1]);
    char byte = 0;
    EXPECT_EQ(::read(out[0], &byte, 1), 1); // it has started
    ::close(out[0]); // as when the window is killed
    int status = 0;
    EXPECT_EQ(::waitpid(supervisor, &status, 0), supervisor);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 1);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds{5});
}

TEST_F(Exec, ProbesTheMachine)
{
    const auto begin = std::chrono::steady_clock::now();
    const Finished finished = exec({"probe"});
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds{2});
    EXPECT_EQ(finished.status, 0);
    ASSERT_EQ(finished.events.size(), 1U);
    EXPECT_GE(finished.events[0].at("cpu").at("cores"), 1);
    EXPECT_EQ(finished.events[0].at("gpus").empty(), finished.events[0].at("gpu_problem") != "");
    EXPECT_EQ(exec({"probe", "--now"}).status, 2);
}

TEST_F(Exec, BadInputIsStatus2)
{
    EXPECT_EQ(exec({}).status, 2);
    EXPECT_EQ(exec({"walk"}).status, 2);
    EXPECT_EQ(exec({"run", "--plan", "x"}).status, 2);
    EXPECT_EQ(exec({"run", "--plan", "/none.json", "--options", "/none.json"}).status, 2);
    RunRequest request;
    request.plan = oneDevice(1).plan;
    const auto arguments = write(request);
    for (const char *text :
        {"", "[", "{}", "{\"version\": 1, \"steps\": 0}", "{\"version\": 1, \"steps\": \"two\"}",
            "{\"version\": 1, \"inputs\": \"none.npz\"}", "{\"version\": 1, \"external\": [{}]}"}) {
        std::ofstream{m_folder / "options.json"} << text;
        const Finished finished = exec(arguments);
        EXPECT_EQ(finished.status, 2) << text;
        EXPECT_EQ(finished.of("error").size(), 1U) << text;
    }
}

} // namespace
