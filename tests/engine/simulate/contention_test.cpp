#include "engine/analyse/communication.h"
#include "engine/simulate/fair_share.h"
#include "engine/simulate/shared_links.h"
#include "tests/engine/simulate/by_definition.h"
#include "tests/engine/simulate/plans_for_tests.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <set>

namespace planloom {
namespace {

using test::Node;
using test::Order;
using test::PipelineShape;

// What progressive filling is defined to reach: nobody asks too much, and whoever is slower than alone has a
// full link on which nobody is faster (Bertsekas and Gallager, Data Networks, section 6.5.2).
TEST(FairShare, GivesEveryTransferABottleneckOfItsOwn)
{
    std::mt19937 random(11);
    for (int round = 0; round < 500; ++round) {
        const std::size_t links = 1 + random() % 6;
        std::vector<std::vector<LinkUse>> uses(1 + random() % 8);
        for (auto &own : uses)
            for (std::size_t l = 0; l < links; ++l)
                if (random() % 2 == 0)
                    own.push_back({static_cast<std::int32_t>(l),
                        1 + static_cast<std::int64_t>(random() % (kWholeLink + kWholeLink / 2))});
        std::vector<const std::vector<LinkUse> *> pointers;
        for (const auto &own : uses)
            pointers.push_back(&own);
        std::vector<std::int32_t> all(links);
        std::iota(all.begin(), all.end(), 0);
        FairShare share(links);
        const std::vector<double> speeds = share.speeds(pointers, all);

        std::vector<double> used(links, 0), fastest(links, 0);
        for (std::size_t t = 0; t < uses.size(); ++t)
            for (const LinkUse &use : uses[t]) {
                used[static_cast<std::size_t>(use.link)] += speeds[t] * static_cast<double>(use.share);
                fastest[static_cast<std::size_t>(use.link)] =
                    std::max(fastest[static_cast<std::size_t>(use.link)], speeds[t]);
            }
        const double whole = static_cast<double>(kWholeLink);
        for (const double sum : used)
            ASSERT_LE(sum, whole + static_cast<double>(kLinkSlack) + 1);
        for (std::size_t t = 0; t < uses.size(); ++t) {
            ASSERT_GT(speeds[t], 0);
            ASSERT_LE(speeds[t], 1);
            if (speeds[t] < 1) {
                ASSERT_TRUE(std::any_of(uses[t].begin(), uses[t].end(),
                    [&](const LinkUse &use) {
                        const auto l = static_cast<std::size_t>(use.link);
                        return used[l] > whole - 1 && fastest[l] <= speeds[t] + 1e-12;
                    }))
                    << "transfer " << t;
            }
        }

        std::vector<std::size_t> order(uses.size()); // neither does order matter
        std::iota(order.begin(), order.end(), std::size_t{0});
        std::shuffle(order.begin(), order.end(), random);
        std::shuffle(all.begin(), all.end(), random);
        pointers.clear();
        for (const std::size_t t : order)
            pointers.push_back(&uses[t]);
        const std::vector<double> again = share.speeds(pointers, all);
        for (std::size_t t = 0; t < order.size(); ++t)
            ASSERT_EQ(again[t], speeds[order[t]]);
    }
}

/// Nodes of two devices with one card for both.
Cluster sharedCards(std::int32_t devices, double ports = 1)
{
    Cluster cluster = *clusterNamed("dgx-a100:" + std::to_string(devices));
    cluster.links.devicesPerNode = 2;
    cluster.links.interBandwidth.value = 1e9;
    cluster.links.interLatency.value = 2e-6;
    cluster.links.interPorts.value = ports;
    return cluster;
}

/// Two stages of two replicas: devices 0 and 1 send what they make to 2 and 3, on another node.
ExecutionPlan twoSenders()
{
    return test::pipelinePlan({.stages = 2, .microBatches = 1, .replicas = 2, .width = 250'000});
}

/// Kernels of class c take 10 + 200 c us, copies nothing.
CostModel lateCosts(const Cluster &cluster)
{
    CostModel costs = costModelOf(cluster);
    costs.kernel = [](const KernelQuery &query) { return 1e-5 + 2e-4 * query.deviceClass; };
    costs.copy = [](Bytes, std::int32_t) { return 0.0; };
    return costs;
}

/// Start and duration of the first send of `device`.
Stretch firstSend(const ExecutionPlan &plan, const Timeline &timeline, std::size_t device)
{
    const auto [begin, end] = rowsOf(timeline, device, QueueKind::Pipeline);
    for (std::size_t row = begin; row < end; ++row) {
        const auto &segment =
            plan.devices[device].segments[static_cast<std::size_t>(timeline.spans.segment[row])];
        if (segment.instructions[static_cast<std::size_t>(timeline.spans.instruction[row])].kind
            == InstructionKind::Send)
            return {timeline.spans.start[row], timeline.spans.duration[row]};
    }
    ADD_FAILURE() << "device " << device << " sends nothing";
    return {};
}

constexpr std::int64_t kAlone = 1'002'000; ///< 2 us, and 1 MB at 1 GB/s.

TEST(Contention, TwoSendsThroughOneCardTakeTwiceAsLong)
{
    const ExecutionPlan plan = twoSenders();
    const Cluster cluster = sharedCards(4);
    const auto timeline = simulate(plan, cluster, lateCosts(cluster));
    ASSERT_TRUE(timeline) << describe(timeline.error());
    for (const std::size_t device : {0U, 1U})
        EXPECT_EQ(firstSend(plan, *timeline, device), (Stretch{10'000, 2'002'000}));

    for (const Segment &segment : plan.devices[0].segments)
        for (const Instruction &instruction : segment.instructions)
            if (instruction.kind == InstructionKind::Send) {
                EXPECT_EQ(durationAlone(plan, cluster, DeviceId{0}, instruction), kAlone);
            }

    const auto alone = simulate(plan, cluster, lateCosts(cluster), {.sharedLinks = false});
    ASSERT_TRUE(alone);
    EXPECT_EQ(firstSend(plan, *alone, 0), (Stretch{10'000, kAlone}));
    EXPECT_LT(alone->step, timeline->step);
}

TEST(Contention, DevicesWithCardsOfTheirOwnDoNotSlowEachOtherDown)
{
    const ExecutionPlan plan = twoSenders();
    const Cluster cluster = sharedCards(4, 0); // each has half of the node's network, used or not
    const auto timeline = simulate(plan, cluster, lateCosts(cluster));
    ASSERT_TRUE(timeline) << describe(timeline.error());
    EXPECT_EQ(firstSend(plan, *timeline, 0), (Stretch{10'000, 2'002'000}));
    const auto off = simulate(plan, cluster, lateCosts(cluster), {.sharedLinks = false});
    ASSERT_TRUE(off);
    EXPECT_EQ(off->step, timeline->step);
}

TEST(Contention, SendersOnDifferentNodesDoNotSlowEachOtherDown)
{
    // Devices 0 and 1 on nodes 0 and 1, 2 and 3 on nodes 2 and 3.
    const ExecutionPlan plan = twoSenders();
    Cluster cluster = sharedCards(4);
    cluster.links.devicesPerNode = 1;
    const auto timeline = simulate(plan, cluster, lateCosts(cluster));
    ASSERT_TRUE(timeline) << describe(timeline.error());
    for (const std::size_t device : {0U, 1U})
        EXPECT_EQ(firstSend(plan, *timeline, device), (Stretch{10'000, kAlone}));
}

TEST(Contention, OneThatStartsInTheMiddleSlowsTheRestOfTheOther)
{
    const ExecutionPlan plan = twoSenders();
    Cluster cluster = sharedCards(4);
    cluster.otherClasses.push_back({cluster.device, cluster.links, {{.first = 1, .count = 1}}});
    const auto timeline = simulate(plan, cluster, lateCosts(cluster));
    ASSERT_TRUE(timeline) << describe(timeline.error());
    // Bytes of the first flow alone from 12 to 212 us, then both at half speed; what is left of the second
    // when the first is done, 200 us at full speed, runs alone again.
    EXPECT_EQ(firstSend(plan, *timeline, 0), (Stretch{10'000, 2'000 + 200'000 + 2 * 800'000}));
    EXPECT_EQ(firstSend(plan, *timeline, 1), (Stretch{210'000, 2'000 + 2 * 800'000 + 200'000}));
}

TEST(Contention, RacksShareTheirWayOut)
{
    const ExecutionPlan plan = twoSenders();
    Cluster cluster = sharedCards(4);
    cluster.links.devicesPerNode = 1; // racks of two nodes: 0 and 1, 2 and 3
    cluster.links.outer.push_back({"rack", 2, {1.5e9, "test"}, {2e-6, "test"}});
    const auto timeline = simulate(plan, cluster, lateCosts(cluster));
    ASSERT_TRUE(timeline) << describe(timeline.error());
    // Each card gives 1 GB/s, the rack 0.75 GB/s for each.
    const Stretch send = firstSend(plan, *timeline, 0);
    EXPECT_EQ(send.first, 10'000);
    EXPECT_NEAR(static_cast<double>(send.second), 2'000 + 1e6 / 0.75, 20);
}

TEST(Contention, OtherUnitsUseTheSameCards)
{
    const Cluster cluster = sharedCards(8);
    const auto users = [&](const ScaleUnits &units) {
        return sharedLevels(unitOf(cluster, units), static_cast<std::size_t>(8 / units.count)).front().users;
    };
    using Users = std::vector<std::vector<std::int32_t>>;
    EXPECT_EQ(users({1, 1}), (Users{{0, 1}, {2, 3}, {4, 5}, {6, 7}}));
    EXPECT_EQ(users({2, 1}), (Users{{0, 0}, {1, 1}, {2, 2}, {3, 3}})); // side by side
    EXPECT_EQ(users({2, 2}), (Users{{0, 1}, {2, 3}})); // one after the other
}

/// Which link a device uses at a level: told apart by level, place and direction.
using LinkName = std::tuple<std::size_t, std::int32_t, bool>;

/// The fluid model by definition: every device on its own, speeds worked out anew at each event from all that
/// flows, by raising them together.
std::map<std::set<Node>, double> endsByDefinition(const ExecutionPlan &plan, const Cluster &cluster,
    const CostModel &costs, const std::map<Node, Stretch> &spans)
{
    struct Flow {
        std::set<Node> nodes;
        double begin = 0;
        double left = 0;
        std::map<LinkName, double> uses; // bytes/s
        double end = -1;
    };
    std::map<LinkName, double> capacity;
    std::vector<Flow> flows;
    std::map<std::tuple<std::int32_t, std::int32_t, std::int32_t, std::int32_t, std::int64_t>, std::size_t>
        index; // a channel, a micro-batch, and when it starts
    for (const auto &[node, span] : spans) {
        const auto &[d, e, i] = node;
        const DeviceProgram &program = plan.devices[d];
        const ScheduleEntry entry = program.schedule[e];
        const Instruction &instruction =
            program.segments[static_cast<std::size_t>(entry.segment)].instructions[i];
        const auto kind = collectiveOf(instruction.kind);
        if (!kind)
            continue;
        const bool paired = *kind == CollectiveKind::SendRecv;
        const auto device = static_cast<std::int32_t>(d);
        const std::vector<DeviceId> members = paired
            ? std::vector<DeviceId>{DeviceId{device}, instruction.peer}
            : plan.groups[static_cast<std::size_t>(instruction.group)];
        const GroupShape shape = groupShape(cluster, members);
        const Bytes bytes = collectiveBytes(program, instruction);
        const CommunicationLoad load = costs.load(*kind, bytes, shape);
        const auto [found, isNew] =
            index.try_emplace({paired ? -1 : instruction.group, paired ? instruction.tag : -1,
                                  entry.microBatch, static_cast<std::int32_t>(*kind), span.first},
                flows.size());
        if (isNew) {
            const double alone =
                members.size() < 2 ? 0 : std::round(costs.collective(*kind, bytes, shape) * 1e9);
            const double latency = std::min(std::round(load.latency * 1e9), alone);
            flows.push_back({{}, static_cast<double>(span.first) + latency, alone - latency, {}});
        }
        Flow &flow = flows[found->second];
        flow.nodes.insert(node);
        const Interconnect &links = cluster.linksAt(DeviceId{device});
        const auto use = [&](std::size_t level, std::int32_t place, double rate, double limit) {
            for (const bool out : {true, false}) {
                if (rate <= 0 || (paired && out != (instruction.kind == InstructionKind::Send)))
                    continue;
                capacity[{level, place, out}] = limit;
                flow.uses[{level, place, out}] += rate;
            }
        };
        use(0, device, load.device, links.intraBandwidth.value);
        use(1, device * links.portsPerNode() / links.devicesPerNode, load.network,
            links.interBandwidth.value / links.portsPerNode());
        for (std::size_t level = 0; level < links.outer.size(); ++level)
            use(2 + level, device / (links.devicesPerNode * nodesOf(links, level)), load.outer[level],
                links.outer[level].bandwidth.value);
    }

    for (double now = 0;;) {
        std::vector<Flow *> rising;
        double next = std::numeric_limits<double>::infinity();
        std::map<Flow *, double> speed;
        for (Flow &flow : flows) {
            if (flow.end >= 0)
                continue;
            if (flow.begin > now)
                next = std::min(next, flow.begin);
            else
                rising.push_back(&flow);
        }
        std::map<LinkName, double> left = capacity;
        while (!rising.empty()) {
            double level = 1;
            std::map<LinkName, double> wanted;
            for (const Flow *flow : rising)
                for (const auto &[link, rate] : flow->uses)
                    wanted[link] += rate;
            for (const auto &[link, rate] : wanted)
                level = std::min(level, left[link] * (1 + 1e-5) / rate); // as the engine rounds
            std::vector<Flow *> still;
            for (Flow *flow : rising) {
                const bool stops =
                    level >= 1 || std::any_of(flow->uses.begin(), flow->uses.end(), [&](const auto &own) {
                        return left[own.first] * (1 + 1e-5) / wanted[own.first] <= level * (1 + 1e-12);
                    });
                if (stops)
                    speed[flow] = level;
                else
                    still.push_back(flow);
            }
            for (const auto &[flow, at] : speed)
                if (std::find(rising.begin(), rising.end(), flow) != rising.end())
                    for (const auto &[link, rate] : flow->uses)
                        left[link] -= at * rate;
            rising = std::move(still);
        }
        for (const auto &[flow, at] : speed)
            next = std::min(next, now + flow->left / at);
        if (std::isinf(next))
            break;
        for (const auto &[flow, at] : speed) {
            flow->left -= at * (next - now);
            if (flow->left < 1e-6)
                flow->end = next;
        }
        now = next;
    }
    std::map<std::set<Node>, double> ends;
    for (const Flow &flow : flows)
        ends[flow.nodes] = flow.end;
    return ends;
}

/// Clusters in which all kinds of links are scarce.
Cluster randomCluster(std::int32_t devices, std::mt19937 &random)
{
    Cluster cluster = *clusterNamed((random() % 2 == 0 ? "dgx-a100:" : "rtx4090:") + std::to_string(devices));
    Interconnect &links = cluster.links;
    links.devicesPerNode = static_cast<std::int32_t>(1U << random() % 3);
    links.interPorts.value = static_cast<double>(
        std::min<std::uint32_t>(1U << random() % 3, static_cast<std::uint32_t>(links.devicesPerNode)));
    links.intraBandwidth.value = 1e9 * static_cast<double>(1 + random() % 4);
    links.interBandwidth.value = 1e9 * static_cast<double>(1 + random() % 4);
    if (random() % 2 == 0)
        links.outer.push_back({"rack", 1 + static_cast<std::int32_t>(random() % 2),
            {5e8 * static_cast<double>(1 + random() % 4), "test"}, {5e-5, "test"}});
    if (random() % 2 == 0) {
        DeviceClass other{cluster.device, links, {{.first = 0, .count = 1, .every = 3}}};
        other.device.name = "another";
        other.device.float32Flops.value /= 3;
        other.device.memoryBandwidth.value /= 3;
        other.links.intraBandwidth.value /= 2;
        cluster.otherClasses.push_back(std::move(other));
    }
    return cluster;
}

// A timeline is right if every start follows from the ends before it, and every end from the starts.
TEST(Contention, AgreesWithTheFluidModelOnRandomPrograms)
{
    std::mt19937 random(5);
    int slowed = 0;
    for (int round = 0; round < 120; ++round) {
        const PipelineShape shape{.stages = 1 + static_cast<std::int32_t>(random() % 3),
            .microBatches = 1 + static_cast<std::int32_t>(random() % 4),
            .order = random() % 2 == 0 ? Order::GPipe : Order::OneFOneB,
            .replicas = 1 + static_cast<std::int32_t>(random() % 3),
            .shards = 1 + static_cast<std::int32_t>(random() % 2),
            .kernels = 1 + static_cast<std::int32_t>(random() % 2),
            .stores = random() % 2 == 0,
            .optimizer = random() % 2 == 0,
            .width = 1000 + static_cast<std::int64_t>(random() % 100'000)};
        SCOPED_TRACE(testing::Message()
            << "round " << round << ": " << shape.stages << " x " << shape.replicas << " x " << shape.shards);
        ExecutionPlan plan = test::pipelinePlan(shape);
        for (DeviceProgram &program : plan.devices) // so that more runs at a time
            for (Segment &segment : program.segments.edit())
                for (Instruction &instruction : segment.instructions)
                    if (instruction.kind == InstructionKind::AllReduce
                        && segment.kind == SegmentKind::Reduce) {
                        instruction.queue = QueueKind::Data;
                        instruction.waits = random() % 2 == 0;
                    }
        const Cluster cluster = randomCluster(static_cast<std::int32_t>(plan.devices.size()), random);
        const CostModel costs = costModelOf(cluster);
        const auto timeline = simulate(plan, cluster, costs);
        ASSERT_TRUE(timeline) << describe(timeline.error());

        std::map<Node, Stretch> spans;
        for (std::size_t row = 0; row < timeline->spans.size(); ++row) {
            const auto d = static_cast<std::size_t>(timeline->spans.device[row]);
            const auto &schedule = plan.devices[d].schedule;
            const auto entry = std::find(schedule.begin(), schedule.end(),
                ScheduleEntry{timeline->spans.segment[row], timeline->spans.microBatch[row]});
            spans[{d, static_cast<std::size_t>(entry - schedule.begin()),
                static_cast<std::size_t>(timeline->spans.instruction[row])}] = {
                timeline->spans.start[row], timeline->spans.duration[row]};
        }
        const auto starts = test::startsByDefinition(
            plan, cluster, costs, [&](const Node &node) { return spans.at(node).second; });
        for (const auto &[node, start] : starts)
            ASSERT_EQ(spans.at(node).first, start);
        for (const auto &[nodes, end] : endsByDefinition(plan, cluster, costs, spans))
            for (const Node &node : nodes) {
                const auto &[start, duration] = spans.at(node);
                ASSERT_NEAR(
                    static_cast<double>(start + duration), end, 5 + 1e-4 * static_cast<double>(duration));
            }

        const auto apart = simulate(plan, cluster, costs, {.mergeSymmetric = false});
        ASSERT_TRUE(apart);
        ASSERT_EQ(apart->spans.start, timeline->spans.start);
        ASSERT_EQ(apart->spans.duration, timeline->spans.duration);
        const auto off = simulate(plan, cluster, costs, {.sharedLinks = false});
        ASSERT_TRUE(off);
        ASSERT_LE(off->step, timeline->step); // bounds of what nothing slows down stay bounds
        slowed += off->step < timeline->step ? 1 : 0;
    }
    EXPECT_GT(slowed, 20);
}

} // namespace
} // namespace planloom
