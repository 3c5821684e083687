// Memory laid out before a run: what lives at once never overlaps, and little is lost between.

#include "engine/runtime/devices/memory_plan.h"

#include "engine/runtime/devices/step_order.h"
#include "tests/engine/lowering/random_plans.h"
#include "tests/engine/runtime/model_files.h"
#include "tests/engine/runtime/plan_writer.h"
#include "tests/seeds.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

namespace planloom {
namespace {

constexpr std::int64_t kAlignment = 64;

bool liveTogether(const PlannedBlock &a, const PlannedBlock &b)
{
    return a.place == b.place && a.first <= b.last && b.first <= a.last;
}

void expectApart(const std::vector<PlannedBlock> &blocks, const std::array<std::int64_t, 2> &arena)
{
    for (std::size_t i = 0; i < blocks.size(); ++i) {
        const PlannedBlock &a = blocks[i];
        EXPECT_EQ(a.offset % kAlignment, 0);
        EXPECT_GE(a.offset, 0);
        EXPECT_LE(a.offset + a.bytes, arena[static_cast<std::size_t>(a.place)]);
        for (std::size_t j = i + 1; j < blocks.size(); ++j) {
            const PlannedBlock &b = blocks[j];
            if (a.bytes > 0 && b.bytes > 0 && liveTogether(a, b)) {
                ASSERT_TRUE(a.offset + a.bytes <= b.offset || b.offset + b.bytes <= a.offset)
                    << "blocks " << i << " and " << j;
            }
        }
    }
}

/// Most aligned bytes that live at once.
std::int64_t mostAtOnce(const std::vector<PlannedBlock> &blocks, MemoryPlace place)
{
    std::map<std::int32_t, std::int64_t> changes;
    for (const PlannedBlock &block : blocks) {
        if (block.place != place)
            continue;
        const std::int64_t bytes = (block.bytes + kAlignment - 1) / kAlignment * kAlignment;
        changes[block.first] += bytes;
        changes[block.last + 1] -= bytes;
    }
    std::int64_t live = 0;
    std::int64_t most = 0;
    for (const auto &[at, change] : changes) {
        live += change;
        most = std::max(most, live);
    }
    return most;
}

std::vector<PlannedBlock> drawnBlocks(std::mt19937 &random, std::size_t count)
{
    std::vector<PlannedBlock> blocks;
    for (std::size_t i = 0; i < count; ++i) {
        const auto first = static_cast<std::int32_t>(random() % count);
        // Mostly short lives, as of what one operator hands to the next; some from a forward to a backward
        // pass.
        const auto life = static_cast<std::int32_t>(random() % (random() % 4 == 0 ? count : 4));
        const std::int64_t bytes = random() % 16 == 0 ? 0 : 1 + random() % (1U << (4 + random() % 14));
        blocks.push_back({MemoryPlace::Device, bytes, first, first + life, -1});
    }
    return blocks;
}

TEST(PlaceBlocks, NeverOverlapAndComeCloseToWhatLivesAtOnce)
{
    std::mt19937 random(5);
    double lost = 0;
    constexpr int kCases = 60;
    for (int i = 0; i < kCases; ++i) {
        std::vector<PlannedBlock> blocks = drawnBlocks(random, 1 + random() % 300);
        std::vector<PlannedBlock *> pointers;
        for (PlannedBlock &block : blocks)
            pointers.push_back(&block);
        for (PlannedBlock &block : blocks)
            block.offset = 0;
        const std::int64_t total = placeBlocks(pointers, kAlignment);
        expectApart(blocks, {total, 0});
        const std::int64_t most = mostAtOnce(blocks, MemoryPlace::Device);
        EXPECT_GE(total, most);
        lost += most == 0 ? 0 : static_cast<double>(total - most) / static_cast<double>(most);
    }
    EXPECT_LT(lost / kCases, 0.05);
}

TEST(PlaceBlocks, ManyBlocksArePlacedInTheOrderOfTheProgram)
{
    std::mt19937 random(6);
    std::vector<PlannedBlock> blocks = drawnBlocks(random, 5000);
    std::vector<PlannedBlock *> pointers;
    for (PlannedBlock &block : blocks)
        pointers.push_back(&block);
    for (PlannedBlock &block : blocks)
        block.offset = 0;
    const std::int64_t total = placeBlocks(pointers, kAlignment);
    expectApart(blocks, {total, 0});
    EXPECT_LT(
        static_cast<double>(total), 1.35 * static_cast<double>(mostAtOnce(blocks, MemoryPlace::Device)));
}

TEST(PlanMemory, ViewsAndUpdatesTakeNoMemoryOfTheirOwn)
{
    // x dies in the Select of all of it; the weight's new value is made where the weight lies.
    PlanWriter writer{productGraph(), 1};
    const TensorId x = writer.tensor("x");
    const auto bx = writer.buffer(0, x);
    const auto same = writer.buffer(0, x);
    const auto bw = writer.buffer(0, writer.tensor("w"), {}, kPersistent);
    const auto fresh = writer.buffer(0, writer.tensor("w"), {}, {.perMicroBatch = false});
    writer.setup(0, bw);
    writer.emit(0, {.kind = InstructionKind::Load, .outputs = {bx}});
    writer.emit(0, {.kind = InstructionKind::Select, .inputs = {bx}, .outputs = {same}, .deaths = {bx}});
    writer.emit(0, {.kind = InstructionKind::Load, .outputs = {fresh}, .deaths = {same}});
    writer.emit(0, {.kind = InstructionKind::Update, .inputs = {fresh}, .outputs = {bw}, .deaths = {fresh}});
    const auto made = planMemory(writer.plan, 0, kAlignment);
    ASSERT_TRUE(made) << describe(made.error());
    EXPECT_EQ(made->blocks.size(), 2U);
    EXPECT_EQ(made->arenaBytes[0], 64 + 64); // w: 32 bytes, x: 64
    EXPECT_EQ(made->peak[0], 32 + 64);
    EXPECT_EQ(made->operandsOf(1)[1].use, OperandUse::Takes);
    EXPECT_EQ(made->operandsOf(3)[1].use, OperandUse::Takes);
    EXPECT_EQ(made->operandsOf(2)[0].block, made->persistent[static_cast<std::size_t>(bw)]);
}

TEST(PlanMemory, AWeightThatIsStillReadIsNotOverwritten)
{
    PlanWriter writer{productGraph(), 1};
    const TensorId x = writer.tensor("x");
    const OperatorId matmul{0};
    const auto bx = writer.buffer(0, x);
    const auto by = writer.buffer(0, writer.plan.graph->at(matmul).outputs[0]);
    const auto bw = writer.buffer(0, writer.tensor("w"), {}, kPersistent);
    const auto fresh = writer.buffer(0, writer.tensor("w"), {}, {.perMicroBatch = false});
    writer.setup(0, bw);
    writer.emit(0, {.kind = InstructionKind::Load, .outputs = {bx}});
    writer.emit(0, {.kind = InstructionKind::Load, .outputs = {fresh}});
    writer.emit(0, {.op = matmul, .inputs = {bx, bw}, .outputs = {by}, .deaths = {bx, by}});
    writer.emit(0, {.kind = InstructionKind::Update, .inputs = {fresh}, .outputs = {bw}, .deaths = {fresh}});
    const auto made = planMemory(writer.plan, 0, kAlignment);
    ASSERT_TRUE(made) << describe(made.error());
    EXPECT_NE(made->operandsOf(1)[0].block, made->persistent[static_cast<std::size_t>(bw)]);
    EXPECT_EQ(made->operandsOf(3)[1].use, OperandUse::Changes);
}

/// Which instructions come before each, by the order of queues and by waits.
std::vector<std::set<std::int32_t>> before(
    const DeviceProgram &program, const MemoryPlan &memory, const std::vector<std::vector<EventId>> &waits)
{
    std::vector<std::set<std::int32_t>> all(waits.size());
    std::array<std::int32_t, kQueueCount> last;
    last.fill(-1);
    for (std::size_t i = 0; i < waits.size(); ++i) {
        const StepInstruction &at = memory.instructions[i];
        const auto queue =
            static_cast<std::size_t>(queueOf(program.segments[static_cast<std::size_t>(at.segment)]
                                                 .instructions[static_cast<std::size_t>(at.instruction)]));
        std::vector<std::int32_t> direct(waits[i].begin(), waits[i].end());
        if (last[queue] >= 0)
            direct.push_back(last[queue]);
        for (const std::int32_t each : direct) {
            EXPECT_LT(each, static_cast<std::int32_t>(i));
            all[i].insert(each);
            all[i].insert(
                all[static_cast<std::size_t>(each)].begin(), all[static_cast<std::size_t>(each)].end());
        }
        last[queue] = static_cast<std::int32_t>(i);
    }
    return all;
}

/// Two instructions that touch the same bytes, one of which writes them, must not run side by side.
void expectOrdered(const DeviceProgram &program, const MemoryPlan &memory)
{
    const auto earlier = before(program, memory, stepOrder(program, memory));
    const auto touch = [&](const StepOperand &a, const StepOperand &b) {
        if (a.block < 0 || b.block < 0 || (a.use == OperandUse::Reads && b.use == OperandUse::Reads))
            return false;
        const PlannedBlock &x = memory.blocks[static_cast<std::size_t>(a.block)];
        const PlannedBlock &y = memory.blocks[static_cast<std::size_t>(b.block)];
        return x.place == y.place && x.offset < y.offset + y.bytes && y.offset < x.offset + x.bytes;
    };
    for (std::size_t j = 0; j < earlier.size(); ++j)
        for (std::size_t i = 0; i < j; ++i)
            for (const StepOperand &a : memory.operandsOf(i))
                for (const StepOperand &b : memory.operandsOf(j))
                    if (touch(a, b)) {
                        ASSERT_TRUE(earlier[j].contains(static_cast<std::int32_t>(i))) << i << ", " << j;
                    }
}

/// Blocks end where nothing uses them any more, if only one queue ever has.
void expectEnds(const DeviceProgram &program, const MemoryPlan &memory)
{
    std::vector<std::set<QueueKind>> queues(memory.blocks.size());
    std::vector<std::size_t> last(memory.blocks.size(), 0);
    for (std::size_t i = 0; i < memory.instructions.size(); ++i) {
        const StepInstruction &at = memory.instructions[i];
        const Instruction &instruction = program.segments[static_cast<std::size_t>(at.segment)]
                                             .instructions[static_cast<std::size_t>(at.instruction)];
        for (const StepOperand &operand : memory.operandsOf(i)) {
            if (operand.block < 0)
                continue;
            queues[static_cast<std::size_t>(operand.block)].insert(queueOf(instruction));
            last[static_cast<std::size_t>(operand.block)] = i;
        }
    }
    const std::set<std::int32_t> persistent(memory.persistent.begin(), memory.persistent.end());
    std::vector<std::vector<std::int32_t>> expected(memory.instructions.size());
    for (std::size_t block = 0; block < queues.size(); ++block)
        if (queues[block].size() == 1 && persistent.count(static_cast<std::int32_t>(block)) == 0)
            expected[last[block]].push_back(static_cast<std::int32_t>(block));
    EXPECT_EQ(endingBlocks(program, memory), expected);
}

class PlanMemoryOf : public testing::TestWithParam<const char *>
{
};

TEST_P(PlanMemoryOf, RandomPlansOverlapsNothingThatLives)
{
    const GraphSnapshot graph = trainingStepOf(GetParam(), OperatorKind::AdamWStep);
    if (!graph)
        GTEST_SKIP() << "the model set is not beside this checkout";
    const Model model{graph};
    std::int64_t arenas = 0;
    std::int64_t peaks = 0;
    const auto [first, end] = seedsToTry("PLANLOOM_RANDOM_PLANS", 6);
    for (std::uint32_t seed = first; seed < end; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        const RandomOutcome outcome = carryOut(model,
            randomCase(
                *graph, seed, {.touched = 0.15, .wholeBatches = true, .weightVersions = seed % 5 == 2}));
        if (!outcome.lowered)
            continue;
        const ExecutionPlan &plan = *outcome.lowered;
        for (std::size_t d = 0; d < plan.devices.size(); ++d) {
            for (std::int32_t phase = 0; phase < versionCycle(plan.devices[d]); ++phase) {
                const auto made = planMemory(plan, static_cast<std::int32_t>(d), kAlignment, phase);
                ASSERT_TRUE(made) << describe(made.error());
                expectApart(made->blocks, made->arenaBytes);
                for (std::size_t place = 0; place < 2; ++place)
                    EXPECT_GE(
                        made->arenaBytes[place], mostAtOnce(made->blocks, static_cast<MemoryPlace>(place)));
                EXPECT_GE(made->arenaBytes[0], made->peak[0]);
                if (made->instructions.size() < 1500)
                    expectOrdered(plan.devices[d], *made);
                expectEnds(plan.devices[d], *made);
                arenas += made->arenaBytes[0];
                peaks += mostAtOnce(made->blocks, MemoryPlace::Device);
            }
        }
    }
    EXPECT_LT(static_cast<double>(arenas), 1.1 * static_cast<double>(peaks));
}

INSTANTIATE_TEST_SUITE_P(Models, PlanMemoryOf,
    testing::Values("gpt2_tiny", "t5_tiny",
        "zoo:moe?layers=2&hidden=16&heads=4&seq=8&batch=2&vocab=24&experts=4",
        "zoo:gpt?layers=2&hidden=16&heads=4&seq=8&batch=8&vocab=24"));

} // namespace
} // namespace planloom
