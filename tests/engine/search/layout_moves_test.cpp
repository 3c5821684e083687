#include "engine/search/partition/layout_moves.h"

#include "engine/hardware/cluster.h"
#include "engine/lowering/layout/layout.h"

#include <gtest/gtest.h>

#include <cmath>

namespace planloom {
namespace {

/// A matrix over four devices, two along each axis.
struct Square {
    Cluster cluster{};
    std::vector<DeviceId> group{};
    CostModel costs = costModelOf(cluster);
    std::int64_t rows = 0;
    std::int64_t columns = 0;

    MovedTensor moved() const
    {
        return {rows * columns * sizeOf(DataType::Float32), Combination::Sum, 3, 3, 3};
    }

    LayoutMoves moves() const
    {
        const auto shape = [&](std::vector<std::size_t> of) {
            std::vector<DeviceId> devices;
            for (const std::size_t d : of)
                devices.push_back(group[d]);
            return groupShape(cluster, devices);
        };
        return {costs, {shape({0, 1}), shape({0, 2}), shape({0, 1, 2, 3}), shape({0, 3})}, 2, 2, 0};
    }

    /// As lowering numbers the devices: the outer axis is digit 0, the inner one digit 1.
    static Layout layoutOf(ShardLayout layout)
    {
        Layout digits;
        digits.dimensionDigits.resize(2);
        const auto put = [&](AxisLayout form, std::int8_t digit) {
            if (form == kSummands)
                digits.summandDigits.push_back(digit);
            else if (isCut(form))
                digits.dimensionDigits[static_cast<std::size_t>(form - cutAlong(0))].push_back(digit);
        };
        put(layout.outer, 0);
        put(layout.inner, 1);
        return digits;
    }

    double lowered(ShardLayout from, ShardLayout to) const
    {
        const IndexMask whole{{{0, rows}, {0, columns}}};
        return cheapestPath(layoutOf(from), layoutOf(to), whole, DataType::Float32, group, cluster, costs)
            ->seconds;
    }
};

Square square(const char *cluster, std::vector<DeviceId> group, std::int64_t rows, std::int64_t columns)
{
    Square made{.cluster = *clusterNamed(cluster), .group = std::move(group)};
    made.costs = costModelOf(made.cluster);
    made.rows = rows;
    made.columns = columns;
    return made;
}

const std::vector<AxisLayout> kForms{kWhole, kSummands, cutAlong(0), cutAlong(1)};

/// The estimate of a move is the price of the path that lowering takes, which may go over layouts that the
/// search does not know to divide: then lowering's is cheaper.
TEST(LayoutMoves, CostWhatLoweringsPathsDo)
{
    for (const Square &on : {square("dgx-h100:4", {{0}, {1}, {2}, {3}}, 512, 1024),
             square("dgx-h100:16", {{0}, {1}, {8}, {9}}, 4096, 4096), // the outer axis across nodes
             square("dgx-h100:4", {{0}, {1}, {2}, {3}}, 8, 16)}) {
        const LayoutMoves moves = on.moves();
        int same = 0;
        int all = 0;
        for (const AxisLayout fromInner : kForms)
            for (const AxisLayout fromOuter : kForms)
                for (const AxisLayout toInner : kForms)
                    for (const AxisLayout toOuter : kForms) {
                        const ShardLayout from{fromInner, fromOuter};
                        const ShardLayout to{toInner, toOuter};
                        if (toInner == kSummands || toOuter == kSummands)
                            continue;
                        SCOPED_TRACE(testing::Message() << int{from.inner} << ' ' << int{from.outer} << " to "
                                                        << int{to.inner} << ' ' << int{to.outer});
                        const double own = moves.seconds(from, to, on.moved());
                        const double lowered = on.lowered(from, to);
                        EXPECT_GE(own, lowered * (1 - 1e-9));
                        same += std::abs(own - lowered) <= 1e-9 * lowered ? 1 : 0;
                        ++all;
                    }
        EXPECT_GE(same, all * 9 / 10) << "of " << all;
    }
}

TEST(LayoutMoves, StayingCostsNothingAndASummandOfAWholeACopy)
{
    const Square on = square("dgx-h100:4", {{0}, {1}, {2}, {3}}, 512, 1024);
    const LayoutMoves moves = on.moves();
    for (const AxisLayout inner : kForms)
        for (const AxisLayout outer : kForms)
            EXPECT_EQ(moves.seconds({inner, outer}, {inner, outer}, on.moved()), 0);
    const auto summands = [&](ShardLayout from, ShardLayout to) {
        return moves.seconds(from, to, on.moved());
    };
    const double copy = on.costs.copy(Bytes{on.moved().bytes}, 0);
    EXPECT_DOUBLE_EQ(summands({kWhole, kWhole}, {kSummands, kWhole}), copy);
    EXPECT_DOUBLE_EQ(summands({kWhole, kWhole}, {kSummands, kSummands}), copy);
    EXPECT_DOUBLE_EQ(summands({kSummands, kWhole}, {kSummands, kSummands}), copy);
    const ShardLayout both{kSummands, cutAlong(0)};
    EXPECT_LE(summands({kWhole, kWhole}, both), 2 * copy); // of what is cut first
    EXPECT_GT(summands({kWhole, kWhole}, both), 0);
}

/// An axis that is taken apart costs no less than lowering's path, which does that, too, and hardly more.
TEST(LayoutMoves, AxesAreTakenApartAsLoweringDoes)
{
    constexpr std::int32_t kDevices = 16; // four digits
    int apart = 0;
    for (const char *name : {"dgx2-v100:16", "dgx-h100:16"})
        for (const std::int64_t rows : {64, 1024, 16384}) {
            const Cluster cluster = *clusterNamed(name);
            const CostModel costs = costModelOf(cluster);
            std::vector<DeviceId> devices;
            for (std::int32_t d = 0; d < kDevices; ++d)
                devices.push_back({d});
            AxisParts parts;
            for (std::int32_t stride = 1; stride < kDevices; stride *= 2)
                for (std::int32_t count = 2; stride * count <= kDevices; count *= 2) {
                    std::vector<DeviceId> own;
                    for (std::int32_t d = 0; d < count; ++d)
                        own.push_back({d * stride});
                    parts[{stride, count}] = groupShape(cluster, own);
                }
            const std::int64_t bytes = rows * 256 * sizeOf(DataType::Float32);
            const GroupShape whole = groupShape(cluster, devices);
            const AxisCollectives collectives(costs, whole, parts, kDevices);
            const Layout one{.dimensionDigits = {{}, {}}};
            Layout cut = one;
            cut.dimensionDigits[0] = {0, 1, 2, 3};
            Layout crosswise = one;
            crosswise.dimensionDigits[1] = {0, 1, 2, 3};
            Layout summed = one;
            summed.summandDigits = {0, 1, 2, 3};
            struct Move {
                CollectiveKind kind;
                Layout from, to;
                std::int64_t bytes;
            };
            for (const Move &move : {Move{CollectiveKind::AllGather, cut, one, bytes},
                     {CollectiveKind::ReduceScatter, summed, cut, bytes},
                     {CollectiveKind::AllReduce, summed, one, bytes},
                     {CollectiveKind::AllToAll, cut, crosswise, bytes / kDevices}}) {
                SCOPED_TRACE(testing::Message() << name << ' ' << rows << ' ' << static_cast<int>(move.kind));
                const double seconds = collectives.seconds(move.kind, move.bytes);
                const double direct = costs.collective(move.kind, Bytes{move.bytes}, whole);
                const IndexMask box{{{0, rows}, {0, 256}}};
                const double lowered =
                    cheapestPath(move.from, move.to, box, DataType::Float32, devices, cluster, costs)
                        ->seconds;
                EXPECT_GE(seconds, lowered * (1 - 1e-9));
                EXPECT_LE(seconds, lowered * 1.15);
                apart += seconds < 0.95 * direct ? 1 : 0;
            }
        }
    EXPECT_GT(apart, 4);
}

/// Over an axis whose devices are apart, a hop is as slow as the links between nodes.
TEST(LayoutMoves, UseTheLinksOfTheirAxis)
{
    const Square on = square("dgx-h100:16", {{0}, {1}, {8}, {9}}, 4096, 4096);
    const LayoutMoves moves = on.moves();
    const ShardLayout whole{};
    EXPECT_LT(2 * moves.seconds({cutAlong(0), kWhole}, whole, on.moved()),
        moves.seconds({kWhole, cutAlong(0)}, whole, on.moved()));
}

} // namespace
} // namespace planloom
