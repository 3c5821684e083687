#include "engine/hardware/remembered_costs.h"

#include "engine/hardware/cluster.h"

#include <gtest/gtest.h>

namespace planloom {
namespace {

TEST(RememberedCosts, AreThoseThatWereAskedForOnce)
{
    const Cluster cluster = *clusterNamed("dgx-h100:16");
    const CostModel plain = costModelOf(cluster);
    int asked = 0;
    CostModel counting = plain;
    counting.collective = [&](CollectiveKind kind, Bytes bytes, GroupShape shape) {
        ++asked;
        return plain.collective(kind, bytes, shape);
    };
    const CostModel remembering = withRememberedCollectives(counting);
    const GroupShape within = groupShape(cluster, {{0}, {1}});
    const GroupShape across = groupShape(cluster, {{0}, {8}});
    for (int round = 0; round < 2; ++round)
        for (const CollectiveKind kind : {CollectiveKind::AllReduce, CollectiveKind::AllGather})
            for (const std::int64_t bytes : {1, 4096, 1 << 20})
                for (const GroupShape shape : {within, across})
                    EXPECT_EQ(remembering.collective(kind, Bytes{bytes}, shape),
                        plain.collective(kind, Bytes{bytes}, shape));
    EXPECT_EQ(asked, 2 * 3 * 2);
}

} // namespace
} // namespace planloom
