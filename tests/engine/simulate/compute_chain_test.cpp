// What runs as it did for the micro-batch before is booked as a whole: that makes a simulation quicker and
// changes nothing.

#include "engine/simulate/compute_chain.h"
#include "engine/simulate/event_loop.h"
#include "engine/simulate/simulate.h"

#include "tests/engine/lowering/models_for_tests.h"
#include "tests/engine/simulate/same_timeline.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <utility>
#include <vector>

namespace planloom {
namespace {

void expectSameWithout(const ExecutionPlan &plan, const Cluster &cluster, const CostModel &costs)
{
    const auto quick = simulate(plan, cluster, costs);
    ASSERT_TRUE(quick) << describe(quick.error());
    SimulateOptions options;
    options.chains = false;
    const auto one = simulate(plan, cluster, costs, options);
    ASSERT_TRUE(one) << describe(one.error());
    expectSameTimeline(*quick, *one);
}

/// Links so slow, or so fast, that communication is waited for now and then, always or never.
CostModel scaled(const Cluster &cluster, double factor)
{
    CostModel costs = costModelOf(cluster);
    costs.collective = [factor, usual = costs.collective](CollectiveKind kind, Bytes bytes,
                           const GroupShape &group) { return factor * usual(kind, bytes, group); };
    costs.hostCopy = [factor, usual = costs.hostCopy](
                         Bytes bytes, std::int32_t device) { return factor * usual(bytes, device); };
    return costs;
}

TEST(ComputeChains, OfLoweredPlansRunAsTheirInstructionsDo)
{
    const GraphSnapshot graph = trainingStep("zoo:gpt?layers=4&hidden=16&heads=4&seq=8&batch=32&vocab=24");
    const std::string stages = "stage layer:0-1 : 0\nstage layer:2-3 : 1\n";
    const std::string pipeline = "mesh pp=2\n" + stages + "place layer:2-3 : pp=1\nplace layer:0-1 : pp=0\n";
    const std::vector<std::pair<std::string, std::int32_t>> plans{
        {"micro-batches 8\n", 1},
        {"micro-batches 16\noffload layer:* : activations\n", 1},
        {"micro-batches 8\noffload all : states\nrecompute layer:* per layer\n", 1},
        {"mesh dp=2\nsplit all : batch over dp\nzero3 weight:* over dp\nmicro-batches 8\n", 2},
        {"mesh dp=2\nsplit all : batch over dp\nzero2 weight:* over dp\nmicro-batches 16\n", 2},
        {"mesh tp=2\nsplit all : heads over tp\nmicro-batches 8\n", 2},
        {pipeline + "schedule 1f1b\nmicro-batches 16\n", 2},
        {pipeline + "schedule zb-h1\nmicro-batches 8\n", 2},
        {pipeline + "schedule gpipe\nmicro-batches 32\noffload layer:0-1 : activations\n", 2},
        {pipeline + "schedule combined-1f1b\nmicro-batches 8\n", 2},
    };
    for (const auto &[rows, devices] : plans) {
        SCOPED_TRACE(rows);
        const auto plan = loweredRows(graph, rows, devices);
        ASSERT_TRUE(plan) << describe(plan.error());
        for (const std::string profile : {"dgx-a100:", "cpu:"}) {
            const Cluster cluster = *clusterNamed(profile + std::to_string(devices));
            for (const double factor : {1e-3, 0.3, 1.0, 20.0})
                expectSameWithout(*plan, cluster, scaled(cluster, factor));
        }
    }
}

/// A program of two segments for one device: kernels, and copies of other queues, of random lengths write,
/// read and drop buffers of each micro-batch and of the step, so that other queues hold kernels up now and
/// then.
class RandomProgram
{
public:
    explicit RandomProgram(std::uint32_t seed)
        : m_random(seed)
    {
        const std::int32_t persistent = below(3);
        for (std::int32_t b = 0; b < persistent; ++b) {
            m_program.persistent.push_back(addBuffer(false));
            m_alive.push_back(b);
        }
        for (std::int32_t b = below(3); b > 0; --b)
            m_sums.push_back(addBuffer(false));
        m_program.segmentBegin.push_back(0);
        for (int segment = 0; segment < 2; ++segment) {
            for (std::int32_t i = 2 + below(12); i > 0; --i)
                addInstruction();
            m_program.segmentBegin.push_back(static_cast<std::int32_t>(m_program.instructions.size()));
        }
        addSchedule();
    }

    const CompiledProgram &program() const { return m_program; }
    std::int32_t microBatches() const { return m_microBatches; }

private:
    std::int32_t below(std::int32_t end)
    {
        return static_cast<std::int32_t>(m_random() % static_cast<std::uint32_t>(end));
    }

    std::int32_t addBuffer(bool perMicroBatch)
    {
        std::int32_t &count = perMicroBatch ? m_program.perMicroBatchCount : m_program.singleCount;
        m_program.buffers.push_back({count++, perMicroBatch, 0, 1});
        m_program.bufferBytes.push_back(1 + below(100));
        m_program.bufferKind.push_back(static_cast<MemoryKind>(below(kMemoryKindCount)));
        m_program.onHost.push_back(perMicroBatch && below(40) == 0);
        return static_cast<std::int32_t>(m_program.buffers.size()) - 1;
    }

    std::int32_t operandCount() const { return static_cast<std::int32_t>(m_program.operands.size()); }

    void addInstruction()
    {
        CompiledInstruction instruction;
        instruction.kind = InstructionKind::Kernel;
        instruction.queue = below(4) == 0 ? static_cast<QueueKind>(below(kQueueCount)) : QueueKind::Compute;
        instruction.waits = below(6) == 0;
        instruction.blocks = below(10) == 0;
        instruction.duration = below(3) == 0 ? 0 : below(instruction.queue == QueueKind::Compute ? 10 : 60);
        instruction.inputBegin = operandCount();
        for (std::int32_t n = below(3); n > 0 && !m_alive.empty(); --n)
            m_program.operands.push_back(m_alive[at(below(static_cast<std::int32_t>(m_alive.size())))]);
        instruction.outputBegin = operandCount();
        if (!m_sums.empty() && below(4) == 0) {
            instruction.kind = InstructionKind::Accumulate;
            instruction.firstDuration = below(5);
            m_program.operands.push_back(m_sums[at(below(static_cast<std::int32_t>(m_sums.size())))]);
        } else if (below(6) != 0 || m_alive.empty()) {
            m_alive.push_back(addBuffer(true));
            m_program.operands.push_back(m_alive.back());
        } else {
            m_program.operands.push_back(m_alive[at(below(static_cast<std::int32_t>(m_alive.size())))]);
        }
        instruction.deathBegin = operandCount();
        while (below(2) == 0 && m_alive.size() > 1) {
            const std::int32_t dead = m_alive[at(below(static_cast<std::int32_t>(m_alive.size())))];
            if (!m_program.buffers[at(dead)].perMicroBatch)
                break;
            m_program.operands.push_back(dead);
            std::erase(m_alive, dead);
        }
        instruction.deathEnd = operandCount();
        if (below(8) == 0)
            m_program.workspaces.emplace(
                static_cast<std::int32_t>(m_program.instructions.size()), 1 + below(200));
        m_program.instructions.push_back(instruction);
    }

    /// Each micro-batch's second segment behind its first, at a random distance; now and then in two parts.
    void addSchedule()
    {
        m_microBatches = 1 + below(20);
        const auto add = [this](std::int32_t segment, std::int32_t microBatch) {
            const std::int32_t begin = m_program.segmentBegin[at(segment)];
            const std::int32_t end = m_program.segmentBegin[at(segment + 1)];
            const std::int32_t middle = below(3) == 0 ? begin + below(end - begin) : begin;
            if (middle > begin)
                m_program.schedule.push_back({segment, microBatch, begin, middle});
            m_program.schedule.push_back({segment, microBatch, middle, end});
        };
        std::int32_t second = 0;
        for (std::int32_t m = 0; m < m_microBatches; ++m) {
            add(0, m);
            while (second <= m && below(2) == 0)
                add(1, second++);
        }
        while (second < m_microBatches)
            add(1, second++);
        m_program.runs.assign(m_program.instructions.size(), m_microBatches);
        for (const CompiledInstruction &instruction : m_program.instructions)
            m_program.counts[static_cast<std::size_t>(instruction.queue)] += m_microBatches;
    }

    std::mt19937 m_random;
    CompiledProgram m_program{};
    std::int32_t m_microBatches = 1;
    std::vector<std::int32_t> m_alive{}; ///< Buffers, as the next instruction finds them.
    std::vector<std::int32_t> m_sums{}; ///< Buffers of the step that are added to.
};

TEST(ComputeChains, OfRandomProgramsRunAsTheirInstructionsDo)
{
    Symmetry symmetry;
    symmetry.representative = {0};
    for (std::uint32_t seed = 0; seed < 3000; ++seed) {
        SCOPED_TRACE(seed);
        const RandomProgram random(seed);
        const auto run = [&](bool chains) {
            auto traces =
                runPrograms({random.program()}, symmetry, {}, random.microBatches(), {}, chains, {});
            EXPECT_TRUE(traces) << describe(traces.error());
            return std::move(traces->front());
        };
        const DeviceTrace quick = run(true);
        const DeviceTrace single = run(false);
        ASSERT_EQ(quick.end, single.end);
        for (std::size_t q = 0; q < kQueueCount; ++q) {
            const QueueTrace quickly = spelledOut(quick.queues[q]);
            const QueueTrace one = spelledOut(single.queues[q]);
            ASSERT_EQ(quickly.segment, one.segment);
            ASSERT_EQ(quickly.instruction, one.instruction);
            ASSERT_EQ(quickly.microBatch, one.microBatch);
            ASSERT_EQ(quickly.start, one.start);
            ASSERT_EQ(quickly.duration, one.duration);
        }
        const MemoryCurve quickCurve = memoryCurve(quick.memory, true);
        const MemoryCurve curve = memoryCurve(single.memory, true);
        ASSERT_EQ(quickCurve.time, curve.time);
        ASSERT_EQ(quickCurve.bytes, curve.bytes);
        ASSERT_EQ(memoryCurve(quick.hostMemory, true).bytes, memoryCurve(single.hostMemory, true).bytes);
    }
}

TEST(ComputeChains, EndWhereOneOfThemWaitsForAnotherQueue)
{
    // Three kernels of 10; the third reads what a copy has written by 25, or by 15.
    CompiledProgram program;
    for (std::int32_t b = 0; b < 4; ++b) {
        program.buffers.push_back({b, true, 0, 1});
        program.bufferBytes.push_back(1);
        program.bufferKind.push_back(MemoryKind::Activation);
        program.onHost.push_back(false);
    }
    program.perMicroBatchCount = 4;
    program.operands = {3, 0, 1, 3, 2};
    const auto add = [&](QueueKind queue, std::int32_t input, std::int32_t output, std::int32_t end) {
        CompiledInstruction instruction;
        instruction.kind = InstructionKind::Kernel;
        instruction.queue = queue;
        instruction.duration = 10;
        instruction.inputBegin = input;
        instruction.outputBegin = output;
        instruction.deathBegin = instruction.deathEnd = end;
        program.instructions.push_back(instruction);
    };
    add(QueueKind::Copy, 0, 0, 1);
    add(QueueKind::Compute, 1, 1, 2);
    add(QueueKind::Compute, 2, 2, 3);
    add(QueueKind::Compute, 3, 4, 5);
    program.segmentBegin = {0, 4};
    const std::vector<bool> shared = touchedByOthers(program);
    EXPECT_EQ(shared, (std::vector<bool>{false, false, false, true}));
    for (const auto &[there, instructions] : {std::pair{25, 2}, std::pair{15, 3}}) {
        BufferStates states(program, 1, shared);
        states.write(3, 0, there);
        const auto chain = makeChain(program, 1, 4, 0, states, 0, 0);
        ASSERT_TRUE(chain);
        EXPECT_EQ(chain->end, 1 + instructions);
        EXPECT_EQ(startOf(*chain, states, 0, 0), 0);
        states.write(3, 0, 40); // for another micro-batch it comes later
        EXPECT_EQ(startOf(*chain, states, 0, 0).has_value(), instructions == 2);
        applyEffects(*chain, states, 0, 0);
        EXPECT_TRUE(states.isThere(0, 0) && states.isThere(1, 0));
        EXPECT_EQ(states.isThere(2, 0), instructions == 3);
    }
}

} // namespace
} // namespace planloom
