#include "engine/analyse/critical_path.h"

#include "engine/table/table_text.h"

#include "tests/engine/gallery/gallery_for_tests.h"
#include "tests/engine/simulate/gallery_plans.h"
#include "tests/engine/simulate/plans_for_tests.h"

#include <map>
#include <numeric>
#include <set>

namespace planloom {
namespace {

TimelineDependencies dependenciesOfPlan(const SimulatedPlan &plan)
{
    auto found = dependenciesOf(plan.plan, plan.timeline);
    EXPECT_TRUE(found) << describe(found.error());
    return *std::move(found);
}

TEST(Dependencies, SpansStartExactlyWhenAllThatTheyNeedHasEnded)
{
    for (const SimulatedPlan &plan : allPlans()) {
        SCOPED_TRACE(plan.name);
        const auto dependencies = dependenciesOfPlan(plan);
        const SpanColumns &spans = plan.timeline.spans;
        for (std::size_t s = 0; s < spans.size(); ++s) {
            std::int64_t ready = 0;
            std::vector<std::int32_t> ends{static_cast<std::int32_t>(s)};
            for (const Dependency &need : needsOf(dependencies, static_cast<std::int32_t>(s)))
                if (need.kind == WaitKind::Peer)
                    ends.push_back(need.span);
            for (const std::int32_t end : ends)
                for (const Dependency &need : needsOf(dependencies, end))
                    if (need.kind != WaitKind::Peer)
                        ready = std::max(ready,
                            spans.start[static_cast<std::size_t>(need.span)]
                                + spans.duration[static_cast<std::size_t>(need.span)]);
            ASSERT_EQ(spans.start[s], ready) << "span " << s;
        }
    }
}

TEST(Dependencies, ArrowsAreTheSameFromBothEnds)
{
    for (const SimulatedPlan &plan : allPlans()) {
        const auto dependencies = dependenciesOfPlan(plan);
        std::set<std::tuple<std::int32_t, std::int32_t, WaitKind>> forwards;
        std::set<std::tuple<std::int32_t, std::int32_t, WaitKind>> backwards;
        for (std::int32_t s = 0; s < static_cast<std::int32_t>(dependencies.size()); ++s) {
            for (const Dependency &need : needsOf(dependencies, s))
                EXPECT_TRUE(forwards.emplace(need.span, s, need.kind).second) << plan.name;
            for (const Dependency &unblocked : unblocksOf(dependencies, s))
                EXPECT_TRUE(backwards.emplace(s, unblocked.span, unblocked.kind).second) << plan.name;
        }
        EXPECT_EQ(forwards, backwards) << plan.name;
        // Topological: all needs stand before.
        std::vector<std::size_t> position(dependencies.size());
        for (std::size_t i = 0; i < dependencies.order.size(); ++i)
            position[static_cast<std::size_t>(dependencies.order[i])] = i;
        for (const auto &[from, to, kind] : forwards)
            if (kind != WaitKind::Peer) {
                EXPECT_LT(position[static_cast<std::size_t>(from)], position[static_cast<std::size_t>(to)]);
            }
    }
}

TEST(Dependencies, EveryEndOfACommunicationIsFound)
{
    for (const SimulatedPlan &plan : allPlans()) {
        const auto dependencies = dependenciesOfPlan(plan);
        const SpanColumns &spans = plan.timeline.spans;
        for (std::size_t s = 0; s < spans.size(); ++s) {
            const Instruction &instruction =
                plan.plan.devices[static_cast<std::size_t>(spans.device[s])]
                    .segments[static_cast<std::size_t>(spans.segment[s])]
                    .instructions[static_cast<std::size_t>(spans.instruction[s])];
            std::size_t peers = 0;
            for (const Dependency &need : needsOf(dependencies, static_cast<std::int32_t>(s))) {
                if (need.kind != WaitKind::Peer)
                    continue;
                ++peers;
                EXPECT_EQ(spans.start[static_cast<std::size_t>(need.span)], spans.start[s]);
                EXPECT_EQ(spans.microBatch[static_cast<std::size_t>(need.span)], spans.microBatch[s]);
            }
            const std::size_t expected = instruction.group >= 0
                ? plan.plan.groups[static_cast<std::size_t>(instruction.group)].size() - 1
                : instruction.tag >= 0 ? 1u
                                       : 0u;
            EXPECT_EQ(peers, expected) << plan.name;
        }
    }
}

TEST(CriticalPath, AddsUpToTheMakespanWithoutGaps)
{
    for (const SimulatedPlan &plan : allPlans()) {
        SCOPED_TRACE(plan.name);
        const auto dependencies = dependenciesOfPlan(plan);
        const CriticalPath path = criticalPath(plan.timeline, dependencies);
        const std::vector<std::int64_t> slack = slackOf(plan.timeline, dependencies);
        std::int64_t sum = 0;
        for (std::size_t i = 0; i < path.size(); ++i) {
            EXPECT_EQ(path.gap[i], 0);
            sum += path.gap[i] + plan.timeline.spans.duration[static_cast<std::size_t>(path.leaves[i])];
            EXPECT_EQ(slack[static_cast<std::size_t>(path.span[i])], 0);
            if (i > 0) {
                const auto needs = needsOf(dependencies, path.span[i]);
                EXPECT_TRUE(std::any_of(needs.begin(), needs.end(), [&](const Dependency &need) {
                    return need.span == path.leaves[i - 1] && need.kind == path.kind[i];
                }));
            }
        }
        EXPECT_EQ(sum, plan.timeline.step.count());
    }
}

TEST(CriticalPath, OfMeasuredTimesAddsUpWithGaps)
{
    std::mt19937 random(5);
    for (SimulatedPlan plan : galleryPlans()) {
        const auto dependencies = dependenciesOfPlan(plan);
        SpanColumns &spans = plan.timeline.spans;
        for (std::size_t s = 0; s < spans.size(); ++s) // jitter that keeps the streams in order
            spans.duration[s] -= spans.duration[s] > 0
                ? std::uniform_int_distribution<std::int64_t>(0, spans.duration[s] / 2)(random)
                : 0;
        const CriticalPath path = criticalPath(plan.timeline, dependencies);
        std::int64_t end = 0;
        for (std::size_t s = 0; s < spans.size(); ++s)
            end = std::max(end, spans.start[s] + spans.duration[s]);
        std::int64_t sum = 0;
        for (std::size_t i = 0; i < path.size(); ++i)
            sum += path.gap[i] + spans.duration[static_cast<std::size_t>(path.leaves[i])];
        EXPECT_EQ(sum, end) << plan.name;
    }
}

/// Kernels take a time of their own for each operator and direction, communication one for each size; `more`
/// adds to one.
struct MadeUpCosts {
    std::string op{};
    CollectiveKind kind{};
    std::int64_t bytes = -1;
    std::int64_t more = 0;

    CostModel model() const
    {
        return {[*this](const KernelQuery &query) {
                    const auto own =
                        static_cast<std::int64_t>(std::hash<std::string>{}(query.op.name) % 2000) + 1;
                    return static_cast<double>(own + (query.op.name == op ? more : 0)) * 1e-9;
                },
            [*this](CollectiveKind collective, Bytes size, GroupShape) {
                const std::int64_t own = size.count % 997 + 50 * static_cast<std::int64_t>(collective);
                return static_cast<double>(own + (collective == kind && size.count == bytes ? more : 0))
                    * 1e-9;
            },
            [](Bytes size, std::int32_t) { return static_cast<double>(size.count % 31) * 1e-9; }};
    }
};

TEST(Slack, IsExactlyHowMuchLongerASpanCanTake)
{
    SimulateOptions options;
    options.mergeSymmetric = false;
    std::int32_t tight = 0;
    std::int32_t loose = 0;
    std::int32_t communications = 0;
    auto plans = randomPlans("zoo:mlp?layers=3&hidden=12&batch=8", 100);
    for (SimulatedPlan &plan : randomPlans("zoo:mlp?layers=2&hidden=6&batch=4", 20))
        plans.push_back(std::move(plan));
    for (SimulatedPlan &plan : plans) {
        SCOPED_TRACE(plan.name);
        // Of joined collectives each takes what it adds to those before, and of those that run beside a
        // product a part is hidden: none has a length of its own.
        for (DeviceProgram &program : plan.plan.devices)
            for (Segment &segment : program.segments.edit())
                for (Instruction &instruction : segment.instructions) {
                    instruction.joined = instruction.joined && instruction.group < 0;
                    instruction.overlaps = false;
                }
        const auto timeline = simulate(plan.plan, plan.cluster, MadeUpCosts{}.model(), options);
        ASSERT_TRUE(timeline);
        const auto dependencies = dependenciesOf(plan.plan, *timeline);
        ASSERT_TRUE(dependencies);
        const auto slack = slackOf(*timeline, *dependencies);
        const SpanColumns &spans = timeline->spans;

        // A cost model can only lengthen what has a name of its own.
        std::map<std::string, std::vector<std::size_t>> kernels;
        std::map<std::pair<CollectiveKind, std::int64_t>, std::set<std::int32_t>> meetings;
        for (std::size_t s = 0; s < spans.size(); ++s) {
            const DeviceProgram &program = plan.plan.devices[static_cast<std::size_t>(spans.device[s])];
            const Instruction &instruction =
                program.segments[static_cast<std::size_t>(spans.segment[s])]
                    .instructions[static_cast<std::size_t>(spans.instruction[s])];
            if (instruction.kind == InstructionKind::Kernel && !isView(plan.plan.graph->at(instruction.op)))
                kernels[plan.plan.graph->at(instruction.op).name].push_back(s);
            if (const auto kind = collectiveOf(instruction.kind))
                meetings[{*kind, collectiveBytes(program, instruction).count}].insert(
                    dependencies->meeting[s]);
        }
        const auto makespanWith = [&](MadeUpCosts costs) {
            const auto again = simulate(plan.plan, plan.cluster, costs.model(), options);
            EXPECT_TRUE(again);
            return again->step;
        };
        const auto check = [&](std::size_t s, MadeUpCosts costs) {
            (slack[s] == 0 ? tight : loose) += 1;
            costs.more = slack[s];
            EXPECT_EQ(makespanWith(costs), timeline->step);
            costs.more = slack[s] + 7;
            EXPECT_EQ(makespanWith(costs), timeline->step + Nanoseconds{7});
        };
        for (const auto &[name, rows] : kernels)
            if (rows.size() == 1)
                check(rows.front(), {.op = name});
        for (const auto &[key, ids] : meetings) {
            const auto begin =
                static_cast<std::size_t>(dependencies->memberBegin[static_cast<std::size_t>(*ids.begin())]);
            if (ids.size() == 1
                && spans.duration[static_cast<std::size_t>(dependencies->members[begin])] > 0) {
                ++communications;
                check(static_cast<std::size_t>(dependencies->members[begin]),
                    {.kind = key.first, .bytes = key.second});
            }
        }
    }
    EXPECT_GT(tight, 50);
    EXPECT_GT(loose, 50);
    EXPECT_GT(communications, 20);
}

TEST(WhyIdle, LeadsBackFromABubbleToWhatRanWhenItBegan)
{
    std::int32_t bubbles = 0;
    for (const SimulatedPlan &plan : allPlans()) {
        SCOPED_TRACE(plan.name);
        const auto dependencies = dependenciesOfPlan(plan);
        const SpanColumns &spans = plan.timeline.spans;
        std::mt19937 random(7);
        for (std::int32_t d = 0; d < static_cast<std::int32_t>(plan.plan.devices.size()); ++d)
            for (int trial = 0; trial < 20; ++trial) {
                const Nanoseconds time{
                    std::uniform_int_distribution<std::int64_t>(0, plan.timeline.step.count() - 1)(random)};
                bool busy = false;
                for (std::size_t s = 0; s < spans.size(); ++s)
                    busy = busy
                        || (spans.device[s] == d && spans.queue[s] == QueueKind::Compute
                            && spans.start[s] <= time.count()
                            && spans.start[s] + spans.duration[s] > time.count());
                const auto bubble =
                    whyIdle(plan.plan, nullptr, plan.timeline, dependencies, DeviceId{d}, time);
                ASSERT_EQ(bubble.has_value(), !busy);
                if (!bubble)
                    continue;
                ++bubbles;
                EXPECT_LE(bubble->begin, time.count());
                EXPECT_GT(bubble->end, time.count());
                ASSERT_FALSE(bubble->waits.empty());
                for (std::size_t w = 0; w + 1 < bubble->waits.size(); ++w)
                    EXPECT_EQ(bubble->waits[w].on, bubble->waits[w + 1].span);
                const Wait &last = bubble->waits.back();
                if (last.on >= 0) {
                    EXPECT_LE(spans.start[static_cast<std::size_t>(last.on)], bubble->begin);
                } else {
                    EXPECT_EQ(spans.start[static_cast<std::size_t>(last.span)], 0);
                }
            }
        EXPECT_FALSE(whyIdle(plan.plan, nullptr, plan.timeline, dependencies, DeviceId{99}, Nanoseconds{0}));
        EXPECT_FALSE(
            whyIdle(plan.plan, nullptr, plan.timeline, dependencies, DeviceId{0}, plan.timeline.step));
    }
    EXPECT_GT(bubbles, 100);
}

TEST(WhyIdle, NamesTheRowThatHoldsWorkBack)
{
    // Two stages: the second may only start a micro-batch once the first has run backward, by a row.
    const GraphSnapshot graph = trainingStep("zoo:mlp?layers=4&hidden=16&batch=16");
    auto table = galleryTable("pipeline:schedule=gpipe,micro-batches=4", graph, 2);
    ASSERT_TRUE(table);
    table->rows.push_back(*parseRow("in-flight 1"));
    const auto completion = completePlan(graph, 2, *table);
    ASSERT_TRUE(completion);
    ASSERT_FALSE(firstError(*completion));
    const auto cluster = *clusterNamed("dgx-a100:2");
    const auto execution = lower(completion->plan, cluster);
    ASSERT_TRUE(execution);
    const auto timeline = simulate(*execution, cluster);
    ASSERT_TRUE(timeline);
    const auto dependencies = dependenciesOf(*execution, *timeline);
    ASSERT_TRUE(dependencies);
    // Device 0 waits for its own backward pass although the next forward pass could run.
    const RowId row{static_cast<std::int32_t>(table->rows.size()) - 1};
    bool named = false;
    for (std::int64_t t = 0; t < timeline->step.count();
         t += std::max<std::int64_t>(timeline->step.count() / 500, 1)) {
        const auto bubble =
            whyIdle(*execution, &completion->plan, *timeline, *dependencies, DeviceId{0}, Nanoseconds{t});
        named = named || (bubble && bubble->heldBack >= 0 && bubble->heldBackRow == row);
    }
    EXPECT_TRUE(named);
}

TEST(CriticalPath, StopsWhenAsked)
{
    const SimulatedPlan &plan = allPlans().front();
    std::stop_source source;
    source.request_stop();
    const auto dependencies = dependenciesOfPlan(plan);
    EXPECT_EQ(
        dependenciesOf(plan.plan, plan.timeline, source.get_token()).error().code, ErrorCode::Cancelled);
    EXPECT_EQ(criticalPath(plan.timeline, dependencies, source.get_token()).size(), 0u);
    EXPECT_TRUE(slackOf(plan.timeline, dependencies, source.get_token()).empty());
    EXPECT_FALSE(dependenciesOf(plan.plan, Timeline{}));
}

} // namespace
} // namespace planloom
