// Plans whose devices are ranks of NCCL: what they compute and call, and how they end when something breaks.
// Ranks are threads here, each with a GPU and an NCCL that are fakes.

#include "engine/cuda/nccl/nccl_devices.h"
#include "engine/cuda/nccl/nccl_log.h"
#include "engine/cuda/nccl/nccl_order.h"
#include "engine/lowering/program/expand_units.h"
#include "engine/runtime/processes/run_ranks.h"

#include "tests/engine/cuda/array_distance.h"
#include "tests/engine/cuda/fake_cuda.h"
#include "tests/engine/cuda/fake_nccl.h"
#include "tests/engine/cuda/host_compiler.h"
#include "tests/engine/cuda/training_steps.h"
#include "tests/engine/lowering/random_plans.h"
#include "tests/engine/runtime/model_files.h"
#include "tests/seeds.h"

#include <gtest/gtest.h>

#include <cctype>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <random>
#include <set>
#include <stop_token>
#include <thread>

namespace planloom {
namespace {

/// A run whose ranks are threads, and what it is watched by.
class NcclRun
{
public:
    explicit NcclRun(const ExecutionPlan &plan, std::uint32_t seed = 1)
        : m_plan(plan)
    {
        for (std::size_t d = 0; d < plan.devices.size(); ++d) {
            cudas.push_back(std::make_shared<FakeCuda>(seed + static_cast<std::uint32_t>(d) * 1000));
            cudas.back()->devices = static_cast<std::int32_t>(plan.devices.size());
        }
        // Ranks of one process share its environment, which they must not change side by side.
        ::setenv("NCCL_LAUNCH_ORDER_IMPLICIT", "1", 0);
        ::setenv("NCCL_DEBUG", "WARN", 0);
        ::setenv("NCCL_DEBUG_FILE", "/dev/null", 0);
    }

    void run(const RunOptions &options)
    {
        const auto ranks = static_cast<std::int32_t>(m_plan.devices.size());
        const auto world = ProcessWorld::make({ranks, ranks}, m_plan.groups);
        ASSERT_TRUE(world);
        outcomes.assign(m_plan.devices.size(), Result<RunOutcome>{RunOutcome{}});
        std::vector<std::thread> threads;
        for (std::int32_t rank = 0; rank < ranks; ++rank)
            threads.emplace_back([&, rank] {
                const auto at = static_cast<std::size_t>(rank);
                RunOptions mine{options};
                mine.threads = 1;
                mine.devices = ncclDevices(
                    [cuda = cudas[at]]() -> Result<std::shared_ptr<CudaFunctions>> {
                        return std::shared_ptr<CudaFunctions>{cuda};
                    },
                    [this, at]() -> Result<std::shared_ptr<NcclFunctions>> {
                        if (missing)
                            return *missing;
                        return std::shared_ptr<NcclFunctions>{std::make_shared<FakeNccl>(net, *cudas[at])};
                    },
                    backend);
                outcomes[at] = runRankOnCpu(
                    m_plan, mine, rank == 0 ? events : RunEvents{}, **world, rank, stops[at % stops.size()]);
            });
        for (std::thread &thread : threads)
            thread.join();
    }

    std::size_t live() const
    {
        std::size_t live = net.live();
        for (const auto &cuda : cudas)
            live += cuda->live();
        return live;
    }

    /// The error of the run, which is rank 0's.
    std::string error() const
    {
        return outcomes.front() ? std::string{} : describe(outcomes.front().error());
    }

    FakeNcclNet net{};
    std::vector<std::shared_ptr<FakeCuda>> cudas{};
    CudaBackendOptions backend{};
    std::optional<Error> missing{}; ///< NCCL is, with this reason.
    RunEvents events{}; ///< Of rank 0.
    std::vector<std::stop_token> stops{std::stop_token{}};
    std::vector<Result<RunOutcome>> outcomes{};

private:
    const ExecutionPlan &m_plan;
};

/// What a rank calls for the collectives of a step, by group, as the plan has them.
std::map<std::int32_t, std::vector<std::string>> callsOfStep(const ExecutionPlan &plan, std::int32_t device)
{
    const auto instructionsOf = [&](std::int32_t of, std::int32_t group) {
        std::vector<const Instruction *> all;
        const DeviceProgram &program = plan.devices[static_cast<std::size_t>(of)];
        for (const ScheduleEntry &entry : program.schedule) {
            const auto &instructions = program.segments[static_cast<std::size_t>(entry.segment)].instructions;
            const std::int32_t end =
                entry.end < 0 ? static_cast<std::int32_t>(instructions.size()) : entry.end;
            for (std::int32_t i = entry.begin; i < end; ++i) {
                const Instruction &instruction = instructions[static_cast<std::size_t>(i)];
                if (isCommunication(instruction.kind) && instruction.kind != InstructionKind::Send
                    && instruction.kind != InstructionKind::Recv && instruction.group == group)
                    all.push_back(&instruction);
            }
        }
        return all;
    };
    std::map<std::int32_t, std::vector<std::string>> calls;
    for (std::size_t g = 0; g < plan.groups.size(); ++g) {
        const std::vector<DeviceId> &members = plan.groups[g];
        if (members.size() < 2
            || std::find(members.begin(), members.end(), DeviceId{device}) == members.end())
            continue;
        const auto group = static_cast<std::int32_t>(g);
        const auto mine = instructionsOf(device, group);
        for (std::size_t i = 0; i < mine.size(); ++i) {
            const Instruction &instruction = *mine[i];
            const auto bufferOf = [&](std::int32_t of, bool in) -> const BufferInfo & {
                const Instruction &theirs = *instructionsOf(of, group)[i];
                return plan.devices[static_cast<std::size_t>(of)]
                    .buffers[static_cast<std::size_t>(in ? theirs.inputs[0] : theirs.outputs[0])];
            };
            const auto elementsOf = [](const BufferInfo &buffer) {
                std::int64_t count = 1;
                for (const Range &range : buffer.index.ranges)
                    count *= range.size();
                return count;
            };
            const bool first = members.front().index == device;
            const BufferInfo &own = bufferOf(device, instruction.kind != InstructionKind::Broadcast || first);
            const std::int64_t count = elementsOf(own);
            const std::int64_t bytes = count * sizeOf(own.dataType);
            const bool sums = instruction.combination == Combination::Sum && isFloating(own.dataType);
            const bool gathers = instruction.kind == InstructionKind::AllGather;
            bool even = true;
            for (const DeviceId member : members)
                even = even
                    && elementsOf(bufferOf(member.index, gathers)) == elementsOf(bufferOf(device, gathers));
            std::string call = "exchange";
            if (instruction.kind == InstructionKind::AllReduce)
                call = sums ? "all-reduce " + std::to_string(count) : "all-gather " + std::to_string(bytes);
            else if (gathers && even)
                call = "all-gather " + std::to_string(bytes);
            else if (instruction.kind == InstructionKind::ReduceScatter && even && sums)
                call = "reduce-scatter " + std::to_string(elementsOf(bufferOf(device, false)));
            else if (instruction.kind == InstructionKind::Broadcast)
                call = "broadcast " + std::to_string(bytes);
            calls[group].push_back(call);
        }
    }
    return calls;
}

/// The calls that were made are the plan's, `times` over.
void expectThePlansCalls(const ExecutionPlan &plan, const FakeNcclNet &net, std::int32_t times)
{
    for (std::int32_t device = 0; device < static_cast<std::int32_t>(plan.devices.size()); ++device) {
        auto expected = callsOfStep(plan, device);
        int split = 0;
        for (std::size_t g = 0; g < plan.groups.size(); ++g) {
            if (plan.groups[g].size() < 2)
                continue;
            const auto found = net.calls.find({split++, device});
            std::vector<std::string> all;
            for (std::int32_t i = 0; i < times; ++i)
                all.insert(all.end(), expected[static_cast<std::int32_t>(g)].begin(),
                    expected[static_cast<std::int32_t>(g)].end());
            EXPECT_EQ(found == net.calls.end() ? std::vector<std::string>{} : found->second, all)
                << "device " << device << ", group " << g;
        }
    }
}

/// Messages of each queue have a communicator of their own, and its calls are in one stream: those of other
/// queues do not wait for them.
void expectACommunicatorForEachQueue(const ExecutionPlan &plan, const FakeNcclNet &net)
{
    const auto groups = static_cast<int>(std::count_if(
        plan.groups.begin(), plan.groups.end(), [](const auto &group) { return group.size() > 1; }));
    for (std::int32_t device = 0; device < static_cast<std::int32_t>(plan.devices.size()); ++device) {
        std::set<QueueKind> queues;
        for (const Segment &segment : plan.devices[static_cast<std::size_t>(device)].segments)
            for (const Instruction &instruction : segment.instructions)
                if (instruction.kind == InstructionKind::Send || instruction.kind == InstructionKind::Recv)
                    queues.insert(queueOf(instruction));
        std::size_t communicators = 0;
        std::set<void *> streams;
        for (const auto &[at, own] : net.exchangeStreams)
            if (at.second == device && (at.first < 0 || at.first >= groups)) { // no group's
                ++communicators;
                streams.insert(own.begin(), own.end());
                EXPECT_EQ(own.size(), 1U);
            }
        EXPECT_EQ(communicators, queues.size()) << "device " << device;
        EXPECT_EQ(streams.size(), queues.size()) << "device " << device;
    }
}

class NcclPlans : public testing::TestWithParam<const char *>
{
};

TEST_P(NcclPlans, AreWhatTheyAreEmulatedAndOnTheCpu)
{
    std::array<Model, 2> models;
    for (const std::size_t which : {0, 1}) {
        const GraphSnapshot graph =
            trainingStepOf(GetParam(), which == 0 ? OperatorKind::SgdStep : OperatorKind::AdamWStep);
        if (!graph)
            GTEST_SKIP() << "the model set is not beside this checkout";
        models[which] = Model(graph);
    }
    RunOptions options;
    options.keepGradients = true;
    options.randomWeights = true;
    options.steps = 2;
    int ran = 0;
    const auto [first, end] = seedsToTry("PLANLOOM_RANDOM_PLANS", 20);
    for (std::uint32_t seed = first; seed < end; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        const bool adam = seed % 2 == 1;
        const Model &model = models[adam ? 1 : 0];
        const RandomCase drawn = randomCase(*model.graph, seed,
            {.touched = 0.15,
                .wholeBatches = true,
                .precisions = seed % 4 == 3,
                .weightVersions = seed % 5 == 2});
        if (drawn.devices != 2 && drawn.devices != 4)
            continue;
        const RandomOutcome outcome = carryOut(model, drawn);
        if (!outcome.lowered)
            continue;
        const ExecutionPlan plan =
            outcome.lowered->units.isOne() ? *outcome.lowered : expandUnits(*outcome.lowered);
        RunOptions emulated{options};
        emulated.devices = emulatedCudaDevices([cuda = std::make_shared<FakeCuda>(seed)] {
            return Result<std::shared_ptr<CudaFunctions>>{std::shared_ptr<CudaFunctions>{cuda}};
        });
        const auto expected = runOnCpu(plan, emulated);
        ASSERT_TRUE(expected) << describe(expected.error());
        NcclRun run(plan, seed);
        run.net.hasOwnMemory = seed % 4 != 0; // as before 2.19
        for (const auto &cuda : run.cudas)
            cuda->hasCompiler = seed % 3 == 0 && whyNoHostCompiler().empty();
        ASSERT_NO_FATAL_FAILURE(run.run(options));
        for (const auto &each : run.outcomes)
            ASSERT_TRUE(each) << describe(each.error()) << " " << run.net.misuse();
        const RunOutcome &got = *run.outcomes.front();
        // The fake adds in the members' order, too: only the order of host code may differ.
        constexpr double kSame = 1e-6;
        for (std::size_t step = 0; step < expected->losses.size(); ++step)
            EXPECT_NEAR(got.losses[step], expected->losses[step], kSame * std::abs(expected->losses[step]));
        EXPECT_LT(distanceOf(got.outputs, expected->outputs), kSame);
        EXPECT_LT(distanceOf(got.gradients, expected->gradients), kSame);
        EXPECT_LT(distanceOf(got.weights, expected->weights), kSame);
        if (plan.precisions.empty()) {
            const auto onCpu = runOnCpu(plan, options);
            ASSERT_TRUE(onCpu) << describe(onCpu.error());
            const double bound = adam ? 2e-2 : 1e-4; // as of emulated devices
            EXPECT_LT(distanceOf(got.outputs, onCpu->outputs), bound);
            EXPECT_LT(distanceOf(got.gradients, onCpu->gradients), 2 * bound);
            EXPECT_LT(distanceOf(got.weights, onCpu->weights), bound);
        }
        EXPECT_EQ(run.net.misuse(), "");
        EXPECT_EQ(run.net.aborted(), 0);
        EXPECT_EQ(run.net.registered() > 0, run.net.hasOwnMemory && plan.devices.size() > 1);
        EXPECT_EQ(run.live(), 0U);
        expectThePlansCalls(plan, run.net, options.steps);
        expectACommunicatorForEachQueue(plan, run.net);
        ++ran;
    }
    EXPECT_GT(ran, 0);
    RecordProperty("plans", ran);
}

INSTANTIATE_TEST_SUITE_P(Models, NcclPlans,
    testing::Values("t5_tiny", "swin_tiny", "zoo:gpt?layers=2&hidden=16&heads=4&seq=8&batch=8&vocab=24",
        "zoo:llama?layers=1&hidden=16&heads=4&kv_heads=2&seq=4&batch=4&vocab=24",
        "zoo:moe?layers=2&hidden=16&heads=4&seq=8&batch=2&vocab=24&experts=4"),
    [](const auto &info) {
        std::string name(info.param);
        for (char &c : name)
            if (std::isalnum(static_cast<unsigned char>(c)) == 0)
                c = '_';
        return name;
    });

/// Plans of 2 to 4 devices that communicate, a few of them.
const std::vector<ExecutionPlan> &somePlansForNccl()
{
    static const std::vector<ExecutionPlan> kPlans = [] {
        const GraphSnapshot graph = trainingStepOf(
            "zoo:gpt?layers=1&hidden=16&heads=4&seq=8&batch=8&vocab=24", OperatorKind::AdamWStep);
        const Model model(graph);
        std::vector<ExecutionPlan> plans;
        for (std::uint32_t seed = 0; plans.size() < 4 && seed < 100; ++seed) {
            const RandomCase drawn = randomCase(*graph, seed, {.touched = 0.15, .wholeBatches = true});
            if (drawn.devices < 2 || drawn.devices > 4)
                continue;
            if (auto lowered = carryOut(model, drawn).lowered; lowered && !lowered->groups.empty())
                plans.push_back(lowered->units.isOne() ? *lowered : expandUnits(*lowered));
        }
        return plans;
    }();
    return kPlans;
}

RunOptions stepsOf(std::int32_t steps)
{
    RunOptions options;
    options.randomWeights = true;
    options.steps = steps;
    return options;
}

TEST(NcclFaults, OfCallsAreNamedAndAbortAll)
{
    std::mt19937 random(5);
    int failed = 0;
    for (std::uint32_t i = 0; i < 60; ++i) {
        const auto &plans = somePlansForNccl();
        NcclRun run(plans[i % plans.size()], i);
        run.net.failAfter = static_cast<std::int64_t>(random() % 120);
        run.run(stepsOf(3));
        EXPECT_EQ(run.live(), 0U) << i;
        if (run.outcomes.front())
            continue;
        ++failed;
        EXPECT_NE(run.error().find("NCCL error 6"), std::string::npos) << i << ": " << run.error();
        EXPECT_TRUE(run.error().find("nccl") != std::string::npos
            || run.error().find("NCCL failed asynchronously") != std::string::npos)
            << run.error();
    }
    EXPECT_GT(failed, 20);
}

TEST(NcclFaults, ThatComeByThemselvesAreNamed)
{
    int failed = 0;
    for (std::int64_t after = 0; after < 20; ++after) {
        const ExecutionPlan &plan = somePlansForNccl()[static_cast<std::size_t>(after) % 4];
        NcclRun run(plan, 7);
        run.net.asyncAfter = after + 1;
        run.net.stuckAfter = after + 1; // as it is then
        run.run(stepsOf(3));
        EXPECT_EQ(run.live(), 0U) << after;
        if (run.outcomes.front())
            continue;
        ++failed;
        EXPECT_NE(run.error().find("NCCL failed asynchronously on device"), std::string::npos) << run.error();
        EXPECT_GT(run.net.aborted(), 0);
    }
    EXPECT_GT(failed, 10);
}

TEST(NcclFaults, WhatHangsIsGivenUpWithItsName)
{
    int failed = 0;
    for (std::int64_t after = 0; after < 12; ++after) {
        NcclRun run(somePlansForNccl()[static_cast<std::size_t>(after) % 4], 3);
        run.net.stuckAfter = after;
        run.backend.deadline = std::chrono::milliseconds{150};
        run.run(stepsOf(2));
        EXPECT_EQ(run.live(), 0U) << after;
        if (run.outcomes.front())
            continue;
        ++failed;
        EXPECT_NE(run.error().find("has ended for"), std::string::npos) << run.error();
        EXPECT_TRUE(run.error().find("of group") != std::string::npos
            || run.error().find("device") != std::string::npos)
            << run.error();
    }
    EXPECT_GT(failed, 6);
}

TEST(NcclGraphs, MakeWhatIssuedStepsMakeBitForBit)
{
    constexpr std::int32_t kSteps = 7;
    for (std::uint32_t seed = 0; seed < 4; ++seed) {
        const ExecutionPlan &plan = somePlansForNccl()[seed];
        std::array<RunOutcome, 2> outcomes;
        std::array<std::size_t, 2> calls{};
        for (const bool captures : {false, true}) {
            NcclRun run(plan, seed);
            run.backend.captures = captures;
            ASSERT_NO_FATAL_FAILURE(run.run(trainingSteps(kSteps)));
            for (const auto &each : run.outcomes)
                ASSERT_TRUE(each) << describe(each.error()) << " " << run.net.misuse();
            EXPECT_EQ(run.net.misuse(), "");
            EXPECT_EQ(run.live(), 0U);
            for (const auto &cuda : run.cudas) {
                EXPECT_EQ(cuda->captured, captures ? 1 : 0);
                EXPECT_EQ(cuda->replayed, captures ? kSteps - 3 : 0); // with the one that launches it first
            }
            for (const auto &[group, made] : run.net.calls)
                calls[captures ? 1 : 0] += made.size();
            outcomes[captures ? 1 : 0] = *run.outcomes.front();
        }
        EXPECT_LT(calls[1], calls[0]);
        EXPECT_EQ(outcomes[0].losses, outcomes[1].losses);
        expectSameBits(outcomes[0].weights, outcomes[1].weights);
        expectSameBits(outcomes[0].gradients, outcomes[1].gradients);
    }
}

TEST(NcclGraphs, AreOfAllRanksOrOfNone)
{
    const ExecutionPlan &plan = somePlansForNccl()[0];
    std::array<RunOutcome, 2> outcomes;
    for (const bool fails : {false, true}) {
        NcclRun run(plan, 9);
        run.cudas.back()->captureFails = fails ? 901 : 0;
        ASSERT_NO_FATAL_FAILURE(run.run(trainingSteps(7)));
        for (const auto &each : run.outcomes)
            ASSERT_TRUE(each) << describe(each.error()) << " " << run.net.misuse();
        for (const auto &cuda : run.cudas) {
            EXPECT_EQ(cuda->replayed > 0, !fails);
        }
        EXPECT_EQ(run.net.misuse(), "");
        EXPECT_EQ(run.live(), 0U);
        outcomes[fails ? 1 : 0] = *run.outcomes.front();
    }
    EXPECT_EQ(outcomes[0].losses, outcomes[1].losses);
    expectSameBits(outcomes[0].weights, outcomes[1].weights);
}

TEST(NcclGraphs, ThatHangAreGivenUpWithTheNameOfWhatTheyWaitFor)
{
    int inGraphs = 0;
    for (std::int64_t after = 0; after < 240; after += 7) {
        NcclRun run(somePlansForNccl()[static_cast<std::size_t>(after) % 4], 3);
        run.net.stuckAfter = after;
        run.backend.deadline = std::chrono::milliseconds{150};
        run.run(trainingSteps(7));
        EXPECT_EQ(run.live(), 0U) << after;
        if (run.outcomes.front())
            continue;
        inGraphs += run.cudas.front()->replayed > 0 ? 1 : 0;
        EXPECT_GT(run.net.aborted(), 0);
        EXPECT_NE(run.error().find(" for "), std::string::npos) << run.error();
        EXPECT_TRUE(run.error().find("of group") != std::string::npos
            || run.error().find("device") != std::string::npos
            || run.error().find("agreed on a graph") != std::string::npos)
            << run.error();
    }
    EXPECT_GT(inGraphs, 2);
}

TEST(NcclFaults, OfTheStartAreSaid)
{
    const ExecutionPlan &plan = somePlansForNccl().front();
    const auto errorOf = [&](const std::function<void(NcclRun &)> &broken) {
        NcclRun run(plan);
        run.backend.deadline = std::chrono::milliseconds{200};
        broken(run);
        run.run(stepsOf(1));
        EXPECT_EQ(run.live(), 0U);
        return run.error();
    };
    EXPECT_NE(errorOf([](NcclRun &run) { run.net.initFails = true; }).find("ncclCommInitRankConfig failed"),
        std::string::npos);
    EXPECT_NE(errorOf([](NcclRun &run) { run.net.version = 21205; }).find("NCCL is of version 2.12"),
        std::string::npos);
    EXPECT_NE(errorOf([](NcclRun &run) {
        run.missing = Error{ErrorCode::NotFound, "NCCL cannot be used: it is not there", {}, {}};
    }).find("it is not there"),
        std::string::npos);
    EXPECT_NE(errorOf([](NcclRun &run) { run.cudas.back()->driver = 12020; }).find("driver is for CUDA 12.2"),
        std::string::npos);
    EXPECT_NE(errorOf([](NcclRun &run) { run.cudas.back()->devices = 1; }).find("this machine has 1 GPUs"),
        std::string::npos);
    EXPECT_NE(
        errorOf([](NcclRun &run) { run.cudas.back()->freeBytes = 5000; }).find("MiB"), std::string::npos);
    EXPECT_NE(errorOf([](NcclRun &run) { run.cudas.front()->failAfter = 300; }).find("failed with 719"),
        std::string::npos); // the GPU is gone
}

TEST(NcclFaults, RandomCancelsLeaveNothingBehind)
{
    std::mt19937 random(6);
    for (std::uint32_t i = 0; i < 100; ++i) {
        const ExecutionPlan &plan = somePlansForNccl()[i % somePlansForNccl().size()];
        NcclRun run(plan, i);
        std::vector<std::stop_source> sources(plan.devices.size());
        run.stops.clear();
        for (const std::stop_source &source : sources)
            run.stops.push_back(source.get_token());
        std::stop_source &chosen = sources[random() % sources.size()];
        std::thread canceller([&chosen, after = random() % 40] {
            std::this_thread::sleep_for(std::chrono::milliseconds{after});
            chosen.request_stop();
        });
        run.run(stepsOf(100'000));
        canceller.join();
        for (const auto &outcome : run.outcomes) {
            ASSERT_FALSE(outcome);
            EXPECT_EQ(outcome.error().code, ErrorCode::Cancelled) << describe(outcome.error());
        }
        EXPECT_EQ(run.live(), 0U) << i;
        EXPECT_EQ(run.net.misuse(), "");
    }
}

TEST(NcclOrder, OfADamagedPlanIsRefused)
{
    for (const ExecutionPlan &plan : somePlansForNccl()) {
        ASSERT_TRUE(ncclOrder(plan, DeviceId{0}));
        // Device 0 leaves its first communication out: the others wait for it.
        ExecutionPlan damaged = plan;
        bool left = false;
        for (Segment &segment : damaged.devices[0].segments.edit())
            for (std::size_t i = 0; !left && i < segment.instructions.size(); ++i)
                if (isCommunication(segment.instructions[i].kind)) {
                    segment.instructions[i].kind = InstructionKind::Sum;
                    left = true;
                }
        if (!left)
            continue;
        const auto order = ncclOrder(damaged, DeviceId{0});
        ASSERT_FALSE(order);
        EXPECT_FALSE(order.error().advice.empty());
    }
}

TEST(NcclOrder, OfEndsInDifferentQueuesIsRefused)
{
    int refused = 0;
    for (const ExecutionPlan &plan : somePlansForNccl()) {
        ExecutionPlan damaged = plan;
        bool moved = false;
        for (Segment &segment : damaged.devices[0].segments.edit())
            for (Instruction &instruction : segment.instructions)
                if (!moved && instruction.kind == InstructionKind::Recv
                    && instruction.queue == QueueKind::PipelineBack) {
                    instruction.queue = QueueKind::Pipeline;
                    moved = true;
                }
        if (!moved)
            continue;
        const auto order = ncclOrder(damaged, DeviceId{0});
        ASSERT_FALSE(order);
        EXPECT_EQ(order.error().code, ErrorCode::InvalidInput) << describe(order.error());
        ++refused;
    }
    EXPECT_GT(refused, 0);
}

TEST(Nccl, WarningsOfItsLogAreKept)
{
    const char *const before = std::getenv("NCCL_DEBUG_FILE");
    const std::string kept = before == nullptr ? "" : before;
    ::unsetenv("NCCL_DEBUG_FILE");
    {
        const NcclLog log;
        EXPECT_EQ(log.warnings(), "");
        const char *const file = std::getenv("NCCL_DEBUG_FILE");
        ASSERT_NE(file, nullptr);
        EXPECT_STREQ(std::getenv("NCCL_LAUNCH_ORDER_IMPLICIT"), "1");
        std::ofstream(file) << "host:1:2 [0] NCCL INFO Bootstrap\n"
                               "host:1:2 [0] misc/socket.cc:480 NCCL WARN socketStartConnect: refused\n";
        EXPECT_EQ(log.warnings(), "socketStartConnect: refused");
    }
    EXPECT_EQ(std::getenv("NCCL_DEBUG_FILE"), nullptr);
    if (!kept.empty())
        ::setenv("NCCL_DEBUG_FILE", kept.c_str(), 1);
}

TEST(Nccl, GpusThatAreTooFewAreSaidWithTheOfferToEmulate)
{
    const auto cuda = std::make_shared<FakeCuda>();
    cuda->devices = 2;
    FakeNcclNet net;
    const OpenCuda openCuda = [&]() -> Result<std::shared_ptr<CudaFunctions>> {
        return std::shared_ptr<CudaFunctions>{cuda};
    };
    const OpenNccl openNccl = [&]() -> Result<std::shared_ptr<NcclFunctions>> {
        return std::shared_ptr<NcclFunctions>{std::make_shared<FakeNccl>(net, *cuda)};
    };
    EXPECT_TRUE(checkGpus(openCuda, openNccl, 2));
    const auto tooFew = checkGpus(openCuda, openNccl, 8);
    ASSERT_FALSE(tooFew);
    EXPECT_EQ(tooFew.error().message, "the plan is for 8 devices, and this machine has 2 GPUs");
    EXPECT_NE(tooFew.error().advice.find("cuda-emulated"), std::string::npos);
    net.version = 21703;
    EXPECT_FALSE(checkGpus(openCuda, openNccl, 2));
    EXPECT_TRUE(checkGpus(openCuda, openNccl, 1)); // needs none
}

} // namespace
} // namespace planloom
