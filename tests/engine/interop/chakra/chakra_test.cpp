#include "engine/interop/chakra/chakra.h"

#include "engine/base/files.h"
#include "engine/simulate/simulate.h"
#include "tests/engine/simulate/plans_for_tests.h"
#include "tests/temporary_folder.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <map>
#include <optional>
#include <set>

namespace planloom {
namespace {

/// A reader of protobuf's wire format, written from its description: field -> values in order.
struct Message {
    std::map<std::uint32_t, std::vector<std::uint64_t>> numbers{};
    std::map<std::uint32_t, std::vector<std::string>> texts{};
};

std::uint64_t readVarint(std::string_view &bytes)
{
    std::uint64_t value = 0;
    for (unsigned shift = 0; !bytes.empty() && shift < 64; shift += 7) {
        const auto byte = static_cast<unsigned char>(bytes.front());
        bytes.remove_prefix(1);
        value |= std::uint64_t{byte & 0x7fU} << shift;
        if (byte < 0x80)
            return value;
    }
    ADD_FAILURE() << "a number does not end";
    return value;
}

std::string readDelimited(std::string_view &bytes)
{
    const std::uint64_t size = readVarint(bytes);
    EXPECT_LE(size, bytes.size());
    std::string made(bytes.substr(0, size));
    bytes.remove_prefix(std::min<std::size_t>(size, bytes.size()));
    return made;
}

Message parse(const std::string &text)
{
    Message made;
    std::string_view bytes = text;
    while (!bytes.empty()) {
        const std::uint64_t key = readVarint(bytes);
        if ((key & 7U) == 0)
            made.numbers[static_cast<std::uint32_t>(key >> 3U)].push_back(readVarint(bytes));
        else if ((key & 7U) == 2)
            made.texts[static_cast<std::uint32_t>(key >> 3U)].push_back(readDelimited(bytes));
        else
            ADD_FAILURE() << "wire type " << (key & 7U);
    }
    return made;
}

struct Node {
    Message message{};
    std::map<std::string, Message> attributes{};
    std::vector<std::uint64_t> needs{};
    std::uint64_t number(std::uint32_t field) const
    {
        const auto found = message.numbers.find(field);
        return found == message.numbers.end() ? 0 : found->second[0];
    }
};

std::vector<Node> nodesOf(const std::string &trace)
{
    std::string_view bytes = trace;
    const Message metadata = parse(readDelimited(bytes));
    EXPECT_FALSE(metadata.texts.at(1).at(0).empty()) << "the version of the schema";
    std::vector<Node> nodes;
    while (!bytes.empty()) {
        Node node{parse(readDelimited(bytes)), {}, {}};
        for (const std::string &text : node.message.texts[10]) {
            Message attribute = parse(text);
            node.attributes[attribute.texts.at(1).at(0)] = attribute;
        }
        for (const std::string &packed : node.message.texts[5])
            for (std::string_view rest = packed; !rest.empty();)
                node.needs.push_back(readVarint(rest));
        nodes.push_back(std::move(node));
    }
    return nodes;
}

struct Written {
    ExecutionPlan plan{};
    Timeline timeline{};
    std::vector<std::vector<Node>> ranks{};
    std::vector<std::string> traces{};
};

Written written()
{
    Written made;
    made.plan = test::pipelinePlan({.stages = 2, .microBatches = 2, .replicas = 2, .optimizer = true});
    made.timeline = *simulate(made.plan, test::clusterOf(made.plan));
    auto traces = chakraTraces(made.plan, made.timeline);
    EXPECT_TRUE(traces) << describe(traces.error());
    made.traces = *std::move(traces);
    for (const std::string &trace : made.traces)
        made.ranks.push_back(nodesOf(trace));
    return made;
}

TEST(Chakra, HasANodeForEverySpanBehindWhatItNeeds)
{
    const Written made = written();
    ASSERT_EQ(made.ranks.size(), 4U);
    for (std::size_t rank = 0; rank < made.ranks.size(); ++rank) {
        EXPECT_EQ(
            made.ranks[rank].size(), made.timeline.deviceBegin[rank + 1] - made.timeline.deviceBegin[rank]);
        std::set<std::uint64_t> before;
        std::size_t needs = 0;
        for (const Node &node : made.ranks[rank]) {
            for (const std::uint64_t need : node.needs)
                EXPECT_TRUE(before.count(need)) << "node " << node.number(1) << " stands before " << need;
            needs += node.needs.size();
            EXPECT_TRUE(before.insert(node.number(1)).second) << "two nodes of one id";
            EXPECT_FALSE(node.message.texts.at(2).at(0).empty());
            EXPECT_EQ(node.attributes.at("is_cpu_op").numbers.at(27).at(0), 0U);
        }
        EXPECT_GE(needs + 3, made.ranks[rank].size()) << "all but the first of each queue wait for something";
        std::multiset<std::uint64_t> durations;
        std::multiset<std::uint64_t> expected;
        for (std::size_t i = 0; i < made.ranks[rank].size(); ++i) {
            EXPECT_EQ(made.ranks[rank][i].number(1), i);
            durations.insert(made.ranks[rank][i].number(7));
            const std::size_t row = made.timeline.deviceBegin[rank] + i;
            expected.insert((static_cast<std::uint64_t>(made.timeline.spans.duration[row]) + 500) / 1000);
        }
        EXPECT_EQ(durations, expected) << "in microseconds";
    }
}

TEST(Chakra, SendsMeetTheirReceivesAndCollectivesSayTheirGroup)
{
    const Written made = written();
    std::map<std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>, int> messages; // sends less receives
    int sends = 0;
    int collectives = 0;
    for (const auto &nodes : made.ranks)
        for (const Node &node : nodes) {
            const std::uint64_t type = node.number(3);
            const auto said = [&](const char *name, std::uint32_t field) {
                return node.attributes.at(name).numbers.at(field).at(0);
            };
            if (type == 5 || type == 6) {
                messages[{said("comm_src", 7), said("comm_dst", 7), said("comm_tag", 7)}] +=
                    type == 5 ? 1 : -1;
                sends += type == 5 ? 1 : 0;
                EXPECT_GT(said("comm_size", 9), 0U);
            } else if (type == 7) {
                ++collectives;
                EXPECT_EQ(said("comm_type", 9), 0U) << "gradients are all-reduced";
                EXPECT_GT(said("comm_size", 9), 0U);
                EXPECT_LT(
                    std::stoul(node.attributes.at("pg_name").texts.at(29).at(0)), made.plan.groups.size());
            } else {
                EXPECT_EQ(type, 4U);
            }
        }
    EXPECT_GT(sends, 0);
    EXPECT_GT(collectives, 0);
    for (const auto &[key, count] : messages)
        EXPECT_EQ(count, 0) << std::get<0>(key) << " to " << std::get<1>(key);
}

TEST(Chakra, WritesAFileForEachRankAndTheGroups)
{
    const Written made = written();
    const TemporaryFolder folder;
    ASSERT_TRUE(writeChakraFolder(made.plan, made.traces, folder.path() / "new", "step"));
    for (int rank = 0; rank < 4; ++rank)
        EXPECT_EQ(*readFile(folder.at("new/step." + std::to_string(rank) + ".et")),
            made.traces[static_cast<std::size_t>(rank)]);
    const auto groups = nlohmann::json::parse(*readFile(folder.at("new/comm_groups.json")));
    ASSERT_EQ(groups.size(), made.plan.groups.size());
    EXPECT_EQ(groups.at("0").size(), made.plan.groups[0].size());
}

} // namespace
} // namespace planloom
