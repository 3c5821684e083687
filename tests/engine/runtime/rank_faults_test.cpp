// Ranks that are killed, stop answering, run out of memory or disk, or run another plan; and runs that are
// cancelled at any moment: each is named, all processes end, and nothing is left.

#include "engine/runtime/processes/rank_process.h"
#include "engine/runtime/processes/stall.h"
#include "engine/table/table_text.h"

#include "tests/engine/gallery/gallery_for_tests.h"
#include "tests/engine/lowering/models_for_tests.h"
#include "tests/engine/runtime/model_files.h"
#include "tests/engine/runtime/plan_writer.h"
#include "tests/engine/runtime/run_listener.h"
#include "tests/seeds.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <limits>
#include <random>
#include <set>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace planloom {
namespace {

using Json = nlohmann::json;
using Clock = std::chrono::steady_clock;

double secondsSince(Clock::time_point time)
{
    return std::chrono::duration<double>(Clock::now() - time).count();
}

/// Four devices that reduce in every step, for as long as they are let.
RunRequest longRun(std::int32_t ranks, std::int32_t steps = 1'000'000)
{
    static const ExecutionPlan plan = [] {
        const GraphSnapshot graph = trainingStepOf(
            "zoo:gpt?layers=2&hidden=16&heads=4&seq=8&batch=8&vocab=24", OperatorKind::SgdStep);
        const auto table = galleryTable("data-parallel", graph, 4);
        EXPECT_TRUE(table);
        auto lowered = loweredRows(graph, print(*table), 4);
        EXPECT_TRUE(lowered);
        return *std::move(lowered);
    }();
    RunRequest request;
    request.plan = plan;
    request.options.steps = steps;
    request.options.randomWeights = true;
    request.ranks = ranks;
    return request;
}

/// What a run could leave behind: descriptors, shared memory, files.
struct Belongings {
    std::size_t descriptors = 0;
    std::size_t sharedMappings = 0;
    std::set<std::string> files{};

    friend bool operator==(const Belongings &, const Belongings &) = default;

    static Belongings now()
    {
        Belongings found;
        for (const auto &each : std::filesystem::directory_iterator("/proc/self/fd")) {
            (void)each;
            ++found.descriptors;
        }
        std::ifstream maps("/proc/self/maps");
        for (std::string line; std::getline(maps, line);)
            found.sharedMappings += line.find(" rw-s ") != std::string::npos ? 1U : 0U;
        for (const char *folder : {"/dev/shm", "/tmp"}) {
            std::error_code none;
            for (const auto &file : std::filesystem::directory_iterator(folder, none))
                if (file.path().filename().string().find("planloom_fault") != std::string::npos)
                    found.files.insert(file.path().string());
        }
        return found;
    }
};

/// Does something from outside at a moment of its own: a process, since ranks are forked from one thread.
class Later
{
public:
    void start(std::chrono::microseconds after, const std::function<void()> &what)
    {
        m_process = ::fork();
        if (m_process != 0)
            return;
        ::usleep(static_cast<useconds_t>(after.count()));
        what();
        ::_exit(0);
    }
    ~Later()
    {
        if (m_process > 0)
            ::waitpid(m_process, nullptr, 0);
    }

private:
    pid_t m_process = -1;
};

class RandomFaults : public testing::TestWithParam<std::int32_t>
{
protected:
    /// Runs of the suite, or as many as are asked for.
    static std::pair<std::uint32_t, std::uint32_t> runs() { return seedsToTry("PLANLOOM_FAULTS", 8); }
};

TEST_P(RandomFaults, ACancelAtAnyMomentEndsAllRanksAndLeavesNothing)
{
    const Belongings before = Belongings::now();
    const auto [first, end] = runs();
    double slowest = 0;
    for (std::uint32_t seed = first; seed < end; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        std::mt19937 random(seed);
        int ends[2];
        ASSERT_EQ(::pipe(ends), 0);
        RunListener listener;
        Clock::time_point asked{};
        {
            Later later;
            listener.react = [&](const Json &event) {
                if (event.at("t") == "hello")
                    later.start(std::chrono::microseconds{random() % 150'000},
                        [&] { (void)!::write(ends[1], "cancel\n", 7); });
                if (event.at("t") == "cancelling" && event.at("stage") == "ask")
                    asked = Clock::now();
            };
            const auto outcome =
                superviseRun(longRun(GetParam()), {.controlDescriptor = ends[0]}, listener.sink());
            slowest = std::max(slowest, secondsSince(asked));
            ASSERT_FALSE(outcome);
            EXPECT_EQ(outcome.error().code, ErrorCode::Cancelled) << describe(outcome.error());
        }
        EXPECT_TRUE(listener.ranksAreGone());
        ::close(ends[0]);
        ::close(ends[1]);
    }
    EXPECT_LT(slowest, 5);
    EXPECT_EQ(Belongings::now(), before);
    RecordProperty("slowest_seconds", std::to_string(slowest));
}

TEST_P(RandomFaults, ARankKilledAtAnyMomentIsNamedAndTheOthersEnd)
{
    const Belongings before = Belongings::now();
    const auto [first, end] = runs();
    double slowest = 0;
    for (std::uint32_t seed = first; seed < end; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        std::mt19937 random(seed + 1000);
        RunListener listener;
        const auto victim = static_cast<std::int32_t>(random() % static_cast<std::uint32_t>(GetParam()));
        Clock::time_point told{};
        {
            Later later;
            listener.react = [&](const Json &event) {
                if (event.at("t") == "hello") {
                    const pid_t rank = listener.ranks()[static_cast<std::size_t>(victim)];
                    later.start(
                        std::chrono::microseconds{random() % 150'000}, [=] { ::kill(rank, SIGKILL); });
                }
                if (event.at("t") == "error")
                    told = Clock::now();
            };
            const auto outcome = superviseRun(longRun(GetParam()), {}, listener.sink());
            ASSERT_FALSE(outcome);
            const Json error = listener.last("error");
            EXPECT_EQ(error.at("signal"), SIGKILL);
            EXPECT_EQ(error.at("rank"), victim);
            EXPECT_NE(outcome.error().message.find("killed by signal 9"), std::string::npos)
                << outcome.error().message;
        }
        slowest = std::max(slowest, secondsSince(told));
        EXPECT_TRUE(listener.ranksAreGone());
    }
    EXPECT_LT(slowest, 5);
    EXPECT_EQ(Belongings::now(), before);
    RecordProperty("slowest_seconds", std::to_string(slowest));
}

INSTANTIATE_TEST_SUITE_P(Ranks, RandomFaults, testing::Values(1, 2, 4));

/// Makes x w on a device. @return its buffer
std::int32_t emitProduct(PlanWriter &writer, std::size_t device)
{
    const auto x = writer.buffer(device, writer.tensor("x"));
    const auto w = writer.buffer(device, writer.tensor("w"), {}, kPersistent);
    const auto y = writer.buffer(device, writer.plan.graph->at(OperatorId{0}).outputs[0]);
    writer.setup(device, w);
    writer.emit(device, {.kind = InstructionKind::Load, .outputs = {x}});
    writer.emit(device, {.op = {0}, .inputs = {x, w}, .outputs = {y}, .deaths = {x}});
    return y;
}

TEST(RankFaults, ARankThatStopsAnsweringIsNamed)
{
    RunListener listener;
    std::stop_source source;
    listener.react = [&](const Json &event) {
        if (event.at("t") == "step" && event.at("n") == 2)
            ::kill(listener.ranks()[1], SIGSTOP);
        if (event.at("t") == "stalled" && event.contains("rank"))
            source.request_stop();
    };
    const auto outcome = superviseRun(longRun(2), {.stallSeconds = 0.8}, listener.sink(), source.get_token());
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.error().code, ErrorCode::Cancelled);
    const Json stalled = listener.last("stalled");
    EXPECT_EQ(stalled.at("rank"), 1);
    EXPECT_EQ(stalled.at("device"), 2);
    EXPECT_EQ(
        stalled.at("text").get<std::string>().find("rank 1 (devices 2 and 3) does not answer any more"), 0U)
        << stalled.at("text");
    EXPECT_TRUE(listener.ranksAreGone()); // although it hears no SIGTERM
}

TEST(RankFaults, ACollectiveThatHangsNamesWhoWaitsForWhom)
{
    // Devices 0 and 1 reduce; device 1 waits before that for a message that nobody sends.
    for (const std::int32_t ranks : {1, 2}) {
        PlanWriter writer{productGraph(), 2};
        writer.plan.groups = {{{0}, {1}}};
        const TensorId y = writer.plan.graph->at(OperatorId{0}).outputs[0];
        for (std::size_t d = 0; d < 2; ++d) {
            if (d == 1) {
                const auto never = writer.buffer(d, y);
                writer.emit(
                    d, {.kind = InstructionKind::Recv, .op = {0}, .peer = {0}, .tag = 1, .outputs = {never}});
            }
            const auto in = emitProduct(writer, d);
            const auto out = writer.buffer(d, y);
            writer.emit(d,
                {.kind = InstructionKind::AllReduce,
                    .op = {0},
                    .group = 0,
                    .inputs = {in},
                    .outputs = {out}});
        }
        RunRequest request = requestOf(writer);
        request.ranks = ranks;
        RunListener listener;
        std::stop_source source;
        listener.react = [&](const Json &event) {
            if (event.at("t") == "stalled")
                source.request_stop();
        };
        const auto outcome =
            superviseRun(request, {.stallSeconds = 0.8}, listener.sink(), source.get_token());
        ASSERT_FALSE(outcome);
        const Json stalled = listener.last("stalled");
        EXPECT_EQ(stalled.at("text").get<std::string>().find("device 0 waits at all-reduce of product"), 0U)
            << stalled.at("text");
        EXPECT_NE(stalled.at("text").get<std::string>().find("for device 1: device 1 is at recv of product"),
            std::string::npos)
            << stalled.at("text");
        EXPECT_FALSE(stalled.contains("rank")); // all answer
    }
}

TEST(RankFaults, ARankWithAnotherPlanIsNamed)
{
    SuperviseOptions options;
    options.rank = [](const RankStart &start) {
        RunRequest other{start.request};
        other.options.seed += start.rank == 1 ? 1U : 0U;
        return rankMain({other, start.rank, start.world, start.socket, start.counters, start.pulse});
    };
    RunListener listener;
    const auto outcome = superviseRun(longRun(2), options, listener.sink());
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.error().code, ErrorCode::InvalidInput);
    EXPECT_EQ(outcome.error().message.find("rank 1 (devices 2 and 3) runs another plan"), 0U)
        << outcome.error().message;
    EXPECT_FALSE(outcome.error().advice.empty());
    EXPECT_EQ(listener.last("error").at("rank"), 1);
    EXPECT_TRUE(listener.ranksAreGone());
}

/// Leaves this process so many bytes of memory beside what it has.
void limitMemory(rlim_t bytes)
{
    std::ifstream status("/proc/self/status");
    rlim_t used = 0;
    for (std::string word; status >> word;)
        if (word == "VmData:" && status >> used)
            break;
    const rlimit limit{used * 1024 + bytes, used * 1024 + bytes};
    ::setrlimit(RLIMIT_DATA, &limit);
}

TEST(RankFaults, MemoryThatRunsOutIsNamedWithItsDevice)
{
    PlanWriter writer{productGraph(), 1};
    Graph graph = *writer.plan.graph;
    graph.at(writer.tensor("x")).type.shape = {64 << 20, 4}; // 1 GiB
    writer.plan.graph = std::make_shared<const Graph>(std::move(graph));
    const auto x = writer.buffer(0, writer.tensor("x"));
    writer.emit(0, {.kind = InstructionKind::Load, .outputs = {x}});
    SuperviseOptions options;
    options.rank = [](const RankStart &start) {
        limitMemory(rlim_t{256} << 20U);
        return rankMain(start);
    };
    RunListener listener;
    const auto outcome = superviseRun(requestOf(writer), options, listener.sink());
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.error().code, ErrorCode::ResourceLimit) << describe(outcome.error());
    EXPECT_NE(outcome.error().message.find("device 0 found no memory for"), std::string::npos)
        << outcome.error().message;
    EXPECT_FALSE(outcome.error().advice.empty());
    EXPECT_TRUE(listener.ranksAreGone());
}

TEST(RankFaults, MemoryThatAllRanksNeedTogetherIsRefusedBeforeTheyStart)
{
    PlanWriter writer{productGraph(), 2};
    Graph graph = *writer.plan.graph;
    graph.at(writer.tensor("x")).type.shape = {std::int64_t{1} << 38U, 4}; // 4 TiB each
    writer.plan.graph = std::make_shared<const Graph>(std::move(graph));
    for (std::size_t d = 0; d < 2; ++d) {
        const auto x = writer.buffer(d, writer.tensor("x"));
        writer.emit(d, {.kind = InstructionKind::Load, .outputs = {x}});
    }
    RunRequest request = requestOf(writer);
    request.ranks = 2;
    RunListener listener;
    const auto outcome = superviseRun(request, {}, listener.sink());
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.error().code, ErrorCode::ResourceLimit) << describe(outcome.error());
    EXPECT_NE(outcome.error().message.find("all 2 devices need 8192.0 GiB"), std::string::npos)
        << outcome.error().message;
    EXPECT_TRUE(listener.ranksAreGone());
}

TEST(RankFaults, AFullDiskIsNamedWithTheFile)
{
    const std::filesystem::path folder =
        std::filesystem::temp_directory_path() / ("planloom_fault_disk_" + std::to_string(::getpid()));
    for (const std::int32_t ranks : {1, 4}) {
        RunRequest request = longRun(ranks, 2);
        request.options.keepGradients = true;
        request.outcomeFolder = folder.string();
        SuperviseOptions options;
        options.rank = [](const RankStart &start) {
            const rlimit limit{1000, 1000};
            ::setrlimit(RLIMIT_FSIZE, &limit);
            return rankMain(start);
        };
        RunListener listener;
        const auto outcome = superviseRun(request, options, listener.sink());
        ASSERT_FALSE(outcome);
        EXPECT_EQ(outcome.error().code, ErrorCode::Io);
        EXPECT_NE(describe(outcome.error()).find(folder.string()), std::string::npos)
            << describe(outcome.error());
        EXPECT_FALSE(outcome.error().advice.empty());
        EXPECT_TRUE(listener.ranksAreGone());
        std::filesystem::remove_all(folder);
    }
}

TEST(RankFaults, AnErrorOfOneRankIsTheErrorOfTheRun)
{
    for (const std::int32_t ranks : {1, 2}) {
        PlanWriter writer{productGraph(), 2};
        writer.plan.groups = {{{0}, {1}}};
        const TensorId y = writer.plan.graph->at(OperatorId{0}).outputs[0];
        for (std::size_t d = 0; d < 2; ++d) { // members that disagree about what they reduce
            auto in = emitProduct(writer, d);
            const std::optional<IndexMask> part =
                d == 1 ? std::optional{box({{0, 2}, {0, 2}})} : std::nullopt;
            if (part) {
                const auto cut = writer.buffer(d, y, part);
                writer.emit(
                    d, {.kind = InstructionKind::Select, .op = {0}, .inputs = {in}, .outputs = {cut}});
                in = cut;
            }
            const auto out = writer.buffer(d, y, part);
            writer.emit(d,
                {.kind = InstructionKind::AllReduce,
                    .op = {0},
                    .group = 0,
                    .inputs = {in},
                    .outputs = {out}});
        }
        RunRequest request = requestOf(writer);
        request.ranks = ranks;
        RunListener listener;
        const auto outcome = superviseRun(request, {}, listener.sink());
        ASSERT_FALSE(outcome);
        EXPECT_EQ(outcome.error().code, ErrorCode::InvalidInput) << describe(outcome.error());
        EXPECT_EQ(outcome.error().where, "operator:0");
        EXPECT_NE(outcome.error().message.find("all-reduce of product"), std::string::npos);
        EXPECT_TRUE(listener.ranksAreGone());
    }
}

TEST(RankFaults, TheOperatorThatMakesNaNIsNamed)
{
    for (const std::int32_t ranks : {1, 2}) {
        PlanWriter writer{productGraph(), 2};
        emitProduct(writer, 0);
        const auto y = emitProduct(writer, 1);
        const auto loss = writer.buffer(1, writer.plan.graph->loss);
        writer.emit(1, {.op = {1}, .inputs = {y}, .outputs = {loss}, .deaths = {y}});
        writer.emit(1, {.kind = InstructionKind::Store, .op = {1}, .inputs = {loss}, .deaths = {loss}});
        RunRequest request = requestOf(writer);
        request.ranks = ranks;
        // Times weights of both signs.
        request.options.inputs["x"] =
            floats({4, 4}, std::vector<float>(16, std::numeric_limits<float>::infinity()));
        RunListener listener;
        const auto outcome = superviseRun(request, {}, listener.sink());
        ASSERT_TRUE(outcome) << describe(outcome.error());
        const std::string text = listener.last("warn").at("text");
        EXPECT_NE(text.find("the loss is NaN in step 1"), std::string::npos) << text;
        EXPECT_NE(text.find("operator product made NaN out of numbers"), std::string::npos) << text;
    }
}

} // namespace
} // namespace planloom
