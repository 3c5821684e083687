// What several devices compute alike is computed once, and everything comes out as if it were not.

#include "engine/runtime/devices/shared_values.h"

#include "engine/lowering/program/expand_units.h"
#include "engine/runtime/run.h"
#include "engine/table/table_text.h"

#include "tests/engine/gallery/gallery_for_tests.h"
#include "tests/engine/lowering/random_plans.h"
#include "tests/engine/runtime/like_the_model.h"
#include "tests/engine/runtime/model_files.h"
#include "tests/seeds.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace planloom {
namespace {

constexpr std::int64_t kAlignment = 64;

std::vector<MemoryPlan> plannedMemory(const ExecutionPlan &plan)
{
    std::vector<MemoryPlan> memory;
    for (std::size_t d = 0; d < plan.devices.size(); ++d) {
        auto made = planMemory(plan, static_cast<std::int32_t>(d), kAlignment, 0, true);
        EXPECT_TRUE(made) << describe(made.error());
        if (made)
            memory.push_back(*std::move(made));
    }
    return memory;
}

bool equalArrays(const NamedArrays &a, const NamedArrays &b)
{
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
        [](const auto &x, const auto &y) { return x.first == y.first && x.second.bytes == y.second.bytes; });
}

void expectEqualArrays(const NamedArrays &got, const NamedArrays &expected)
{
    ASSERT_EQ(got.size(), expected.size());
    for (const auto &[name, array] : expected) {
        ASSERT_TRUE(got.contains(name)) << name;
        EXPECT_TRUE(got.at(name).bytes == array.bytes) << name;
    }
}

/// Runs `plan` with and without sharing. @return whether it runs at all
bool expectSameBothWays(const ExecutionPlan &plan, RunOptions options)
{
    options.keepGradients = true;
    options.randomWeights = true;
    options.threads = 3;
    options.shareValues = false;
    const auto expected = runOnCpu(plan, options);
    options.shareValues = true;
    const auto got = runOnCpu(plan, options);
    EXPECT_EQ(static_cast<bool>(got), static_cast<bool>(expected));
    if (!got || !expected)
        return false;
    for (const double loss : expected->losses)
        if (!std::isfinite(loss))
            return false; // NaNs have many bits
    EXPECT_EQ(got->losses, expected->losses);
    EXPECT_EQ(got->dropped, expected->dropped);
    EXPECT_EQ(got->peak, expected->peak); // of devices that are on their own
    expectEqualArrays(got->outputs, expected->outputs);
    expectEqualArrays(got->gradients, expected->gradients);
    expectEqualArrays(got->weights, expected->weights);
    expectEqualArrays(got->tensors, expected->tensors);
    return true;
}

/// Two turns that touch the same bytes, one of which writes them, follow one another, be it by their queue or
/// because one waits for the other.
void expectJointlyOrdered(const ExecutionPlan &plan, const SharedStep &step, const JointOrder &order)
{
    struct Touch {
        std::size_t turn = 0;
        std::int64_t begin = 0;
        std::int64_t end = 0;
        bool writes = false;
        bool isShared = false;
    };
    std::vector<std::set<std::size_t>> before(order.turns.size());
    std::map<std::pair<std::int32_t, std::int32_t>, std::size_t> positions;
    std::map<std::pair<std::int32_t, QueueKind>, std::size_t> last;
    std::map<std::pair<std::int32_t, MemoryPlace>, std::vector<Touch>> touches;
    std::vector<std::size_t> meetings(order.turns.size());
    for (const auto &[begin, end] : order.meetings) {
        std::set<std::size_t> all;
        for (std::size_t at = begin; at < end; ++at) {
            const auto &[device, index] = order.turns[at];
            const auto d = static_cast<std::size_t>(device);
            const auto i = static_cast<std::size_t>(index);
            const StepInstruction &source = step.memory[d].instructions[i];
            const Instruction &instruction = plan.devices[d]
                                                 .segments[static_cast<std::size_t>(source.segment)]
                                                 .instructions[static_cast<std::size_t>(source.instruction)];
            std::vector<std::size_t> direct;
            for (const EventId event : step.waits[d].own[i])
                direct.push_back(positions.at({device, event}));
            for (const DeviceEvent &event : step.waits[d].elsewhere[i]) {
                EXPECT_NE(event.device, device);
                ASSERT_TRUE(positions.contains({event.device, event.event})) << "waits for what comes later";
                direct.push_back(positions.at({event.device, event.event}));
            }
            const std::pair queue{device, queueOf(instruction)};
            if (last.contains(queue))
                direct.push_back(last.at(queue));
            for (const std::size_t each : direct) {
                all.insert(each);
                all.insert(before[each].begin(), before[each].end());
            }
        }
        for (std::size_t at = begin; at < end; ++at) { // those that meet end together
            before[at] = all;
            meetings[at] = begin;
        }
        for (std::size_t at = begin; at < end; ++at) {
            const auto &[device, index] = order.turns[at];
            const MemoryPlan &memory = step.memory[static_cast<std::size_t>(device)];
            positions[{device, index}] = at;
            const StepInstruction &source = memory.instructions[static_cast<std::size_t>(index)];
            const Instruction &instruction = plan.devices[static_cast<std::size_t>(device)]
                                                 .segments[static_cast<std::size_t>(source.segment)]
                                                 .instructions[static_cast<std::size_t>(source.instruction)];
            last[{device, queueOf(instruction)}] = at;
            for (const StepOperand &operand : memory.operandsOf(static_cast<std::size_t>(index))) {
                if (operand.block < 0)
                    continue;
                const PlannedBlock &block = memory.blocks[static_cast<std::size_t>(operand.block)];
                const bool writes = operand.use != OperandUse::Reads && operand.use != OperandUse::Shared;
                auto &there = touches[{block.owner < 0 ? device : block.owner, block.place}];
                const bool isShared = operand.use == OperandUse::Shared;
                for (const Touch &touch : there) {
                    if (meetings[touch.turn] == begin && touch.turn >= begin
                        && (touch.isShared || isShared
                            || (touch.writes && writes && isCommunication(instruction.kind))))
                        continue; // what the members of a collective make together
                    if ((touch.writes || writes) && touch.turn != at
                        && touch.begin < block.offset + block.bytes && block.offset < touch.end) {
                        ASSERT_TRUE(before[at].contains(touch.turn))
                            << touch.turn << (touch.writes ? " written" : " read") << " and " << at
                            << (writes ? " written, " : " read, ") << nameOf(instruction.kind);
                    }
                }
                there.push_back({at, block.offset, block.offset + block.bytes, writes, isShared});
            }
        }
    }
}

/// How many of a device's kernels of a direction, and of a kind if one is given, it runs itself, and how many
/// it has.
std::pair<int, int> kernelsLeft(const ExecutionPlan &plan, const SharedStep &step, std::size_t device,
    Direction direction, std::optional<OperatorKind> kind = std::nullopt)
{
    int left = 0;
    int all = 0;
    const MemoryPlan &memory = step.memory[device];
    for (std::size_t i = 0; i < memory.instructions.size(); ++i) {
        const StepInstruction &at = memory.instructions[i];
        const Instruction &instruction = plan.devices[device]
                                             .segments[static_cast<std::size_t>(at.segment)]
                                             .instructions[static_cast<std::size_t>(at.instruction)];
        if (instruction.kind != InstructionKind::Kernel)
            continue;
        const Operator &op = plan.graph->at(instruction.op);
        if (op.direction != direction || (kind && op.kind != *kind))
            continue;
        const auto operands = memory.operandsOf(i);
        ++all;
        left += std::any_of(operands.begin(), operands.end(),
                    [](const StepOperand &operand) { return operand.use == OperandUse::Shared; })
            ? 0
            : 1;
    }
    return {left, all};
}

Result<ExecutionPlan> planToShare(const std::string &model, const std::string &entry, std::int32_t devices)
{
    const GraphSnapshot graph = trainingStepOf(model, OperatorKind::AdamWStep);
    TRY(const auto table, galleryTable(entry, graph, devices));
    return loweredRows(graph, print(table), devices);
}

constexpr const char *kGptToShare = "zoo:gpt?layers=2&hidden=32&heads=4&seq=16&batch=8&vocab=64";

TEST(SharedValues, ReplicasUpdateTheirWeightsOnce)
{
    const auto plan = planToShare(kGptToShare, "data-parallel", 4);
    ASSERT_TRUE(plan) << describe(plan.error());
    const auto step = shareValues(*plan, plannedMemory(*plan), kAlignment);
    ASSERT_TRUE(step);
    int updates = 0;
    int weights = 0;
    for (std::size_t d = 0; d < 4; ++d) {
        const auto [left, all] = kernelsLeft(*plan, *step, d, Direction::Optimizer);
        updates += left;
        weights = all;
        const auto [own, backward] = kernelsLeft(*plan, *step, d, Direction::Backward);
        EXPECT_GT(own, 0.9 * backward); // of its own samples
    }
    EXPECT_GT(weights, 0);
    EXPECT_EQ(updates, weights);
}

TEST(SharedValues, ShardsComputeNormsOnce)
{
    const auto plan = planToShare(kGptToShare, "tensor-parallel", 4);
    ASSERT_TRUE(plan) << describe(plan.error());
    const auto step = shareValues(*plan, plannedMemory(*plan), kAlignment);
    ASSERT_TRUE(step);
    const auto [left, all] = kernelsLeft(*plan, *step, 1, Direction::Forward, OperatorKind::LayerNorm);
    EXPECT_GT(all, 0);
    EXPECT_EQ(left, 0);
}

TEST(SharedValues, AloneThereIsNothingToShare)
{
    const auto plan = planToShare(kGptToShare, "single", 1);
    ASSERT_TRUE(plan) << describe(plan.error());
    EXPECT_FALSE(shareValues(*plan, plannedMemory(*plan), kAlignment));
}

TEST(SharedValues, TakeLessMemory)
{
    const auto plan = planToShare(kGptToShare, "data-parallel", 4);
    ASSERT_TRUE(plan) << describe(plan.error());
    const std::vector<MemoryPlan> alone = plannedMemory(*plan);
    const auto step = shareValues(*plan, alone, kAlignment);
    ASSERT_TRUE(step);
    for (std::size_t d = 1; d < 4; ++d) {
        EXPECT_LT(2 * step->memory[d].arenaBytes[0], alone[d].arenaBytes[0]);
        EXPECT_EQ(step->memory[d].peak, alone[d].peak); // that of a device on its own
    }
}

TEST(AddsInPlace, GradientsOfLaterMicroBatches)
{
    const auto plan = planToShare(kGptToShare, "single:micro-batches=4", 1);
    ASSERT_TRUE(plan) << describe(plan.error());
    const auto memory = planMemory(*plan, 0, kAlignment, 0, true);
    const auto plain = planMemory(*plan, 0, kAlignment);
    ASSERT_TRUE(memory && plain);
    EXPECT_EQ(memory->peak, plain->peak);
    EXPECT_LE(memory->arenaBytes[0], plain->arenaBytes[0]);
    std::map<OperatorKind, int> adds;
    for (std::size_t i = 0; i < memory->instructions.size(); ++i) {
        const StepInstruction &at = memory->instructions[i];
        const Instruction &instruction = plan->devices[0]
                                             .segments[static_cast<std::size_t>(at.segment)]
                                             .instructions[static_cast<std::size_t>(at.instruction)];
        for (const StepOperand &operand : memory->operandsOf(i))
            if (operand.use == OperandUse::Adds)
                ++adds[plan->graph->at(instruction.op).kind];
    }
    EXPECT_EQ(adds[OperatorKind::Linear], 3 * (4 * 2 + 1)); // of all micro-batches but the first
    EXPECT_GT(adds[OperatorKind::Embedding], 0);
    RunOptions options;
    options.steps = 2;
    options.randomWeights = true;
    options.keepGradients = true;
    const auto got = runOnCpu(*plan, options);
    options.keepAll = true; // where everything is looked at, nothing is left out
    const auto expected = runOnCpu(*plan, options);
    ASSERT_TRUE(got && expected);
    for (const auto &[name, array] : expected->gradients) {
        const auto *a = reinterpret_cast<const float *>(array.bytes.data());
        const auto *b = reinterpret_cast<const float *>(got->gradients.at(name).bytes.data());
        for (std::size_t i = 0; i < array.bytes.size() / sizeof(float); ++i)
            ASSERT_NEAR(a[i], b[i], 1e-5F * std::max(1.0F, std::abs(a[i]))) << name;
    }
}

class SharedValuesOf : public testing::TestWithParam<const char *>
{
};

TEST_P(SharedValuesOf, RandomPlansChangeNothing)
{
    const GraphSnapshot graph = trainingStepOf(GetParam(), OperatorKind::AdamWStep);
    if (!graph)
        GTEST_SKIP() << "the model set is not beside this checkout";
    const Model model{graph};
    int shared = 0;
    int ran = 0;
    const auto [first, end] = seedsToTry("PLANLOOM_RANDOM_PLANS", 12);
    for (std::uint32_t seed = first; seed < end; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        const RandomOutcome outcome = carryOut(model,
            randomCase(*graph, seed,
                {.touched = seed % 2 == 0 ? 0.15 : 0.6,
                    .wholeBatches = true,
                    .weightVersions = seed % 5 == 2}));
        if (!outcome.lowered)
            continue;
        const ExecutionPlan plan = expandUnits(*outcome.lowered);
        const std::vector<MemoryPlan> memory = plannedMemory(plan);
        const auto order = jointOrder(plan, memory);
        ASSERT_TRUE(order);
        if (const auto step = shareValues(plan, memory, kAlignment)) {
            ++shared;
            if (order->turns.size() < 2500)
                expectJointlyOrdered(plan, *step, *order);
        }
        RunOptions options;
        options.steps = 3;
        options.keepAll = seed % 3 == 0;
        ran += expectSameBothWays(plan, options) ? 1 : 0;
    }
    EXPECT_GT(shared, 0);
    EXPECT_GT(ran, 0);
}

INSTANTIATE_TEST_SUITE_P(Models, SharedValuesOf,
    testing::Values("gpt2_tiny", "t5_tiny", "evoformer_tiny", "resnet50_tiny",
        "zoo:moe?layers=2&hidden=16&heads=4&seq=8&batch=2&vocab=24&experts=4",
        "zoo:gpt?layers=2&hidden=16&heads=4&seq=8&batch=8&vocab=24&dropout=0.1"));

struct Entry {
    const char *gallery;
    std::int32_t devices;
};

class SharedValuesUnder : public testing::TestWithParam<Entry>
{
};

TEST_P(SharedValuesUnder, GalleryPlansChangeNothing)
{
    const auto plan = planToShare(kGptToShare, GetParam().gallery, GetParam().devices);
    ASSERT_TRUE(plan) << describe(plan.error());
    RunOptions options;
    options.steps = 3;
    for (const bool keepsAll : {false, true}) {
        options.keepAll = keepsAll;
        EXPECT_TRUE(expectSameBothWays(*plan, options));
    }
}

INSTANTIATE_TEST_SUITE_P(Plans, SharedValuesUnder,
    testing::Values(Entry{"data-parallel", 8}, Entry{"tensor-parallel", 4}, Entry{"zero1", 4},
        Entry{"zero2", 4}, Entry{"zero3", 4}, Entry{"3d:dp=2,tp=2,pp=2,micro-batches=2", 8},
        Entry{"3d:dp=2,tp=2,pp=1,micro-batches=4", 4}, Entry{"1f1b", 4}));

/// Replaces an input of one instruction by another buffer of the same box and type.
bool damageAnInput(ExecutionPlan &plan, std::mt19937 &random)
{
    for (int tries = 0; tries < 200; ++tries) {
        DeviceProgram &program = plan.devices[random() % plan.devices.size()];
        std::vector<Segment> segments(program.segments.begin(), program.segments.end());
        Segment &segment = segments[random() % segments.size()];
        if (segment.instructions.empty())
            continue;
        Instruction &instruction = segment.instructions[random() % segment.instructions.size()];
        if (instruction.inputs.empty() || instruction.inputs[0] < 0)
            continue;
        const std::size_t slot = random() % instruction.inputs.size();
        const std::int32_t old = instruction.inputs[slot];
        const auto other = static_cast<std::int32_t>(random() % program.buffers.size());
        if (old < 0 || other == old)
            continue;
        const BufferInfo &a = program.buffers[static_cast<std::size_t>(old)];
        const BufferInfo &b = program.buffers[static_cast<std::size_t>(other)];
        if (a.index != b.index || a.dataType != b.dataType || a.place != b.place
            || a.perMicroBatch != b.perMicroBatch || isFloating(a.dataType) == false)
            continue;
        instruction.inputs[slot] = other;
        program.segments = SharedVector<Segment>{segments};
        return true;
    }
    return false;
}

TEST(SharedValues, HideNoMistakeOfAPlan)
{
    std::mt19937 random(11);
    int ran = 0;
    int wrong = 0;
    for (const char *entry :
        {"data-parallel", "tensor-parallel", "zero2", "3d:dp=2,tp=2,pp=1,micro-batches=4"}) {
        const auto plan = planToShare(kGptToShare, entry, 4);
        ASSERT_TRUE(plan) << describe(plan.error());
        RunOptions options;
        options.steps = 2;
        options.poison = false;
        options.randomWeights = true;
        options.keepGradients = true;
        const auto right = runOnCpu(*plan, options);
        ASSERT_TRUE(right) << describe(right.error());
        for (int i = 0; i < 12; ++i) {
            SCOPED_TRACE(std::string{entry} + ", " + std::to_string(i));
            ExecutionPlan damaged = *plan;
            if (!damageAnInput(damaged, random))
                continue;
            bool readable = true; // memory that nobody wrote is not the same in two runs
            for (std::size_t d = 0; d < damaged.devices.size(); ++d)
                readable = readable && planMemory(damaged, static_cast<std::int32_t>(d), kAlignment);
            if (!readable || !expectSameBothWays(damaged, options))
                continue;
            ++ran;
            const auto got = runOnCpu(damaged, options);
            wrong += got && !equalArrays(got->weights, right->weights) ? 1 : 0;
        }
    }
    EXPECT_GT(ran, 8);
    EXPECT_GT(wrong, 4);
}

} // namespace
} // namespace planloom
