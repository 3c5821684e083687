#include "engine/runtime/communication/thread_communicator.h"
#include "engine/runtime/devices/memory_pool.h"
#include "engine/runtime/processes/process_world.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstring>
#include <functional>
#include <future>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <stdexcept>
#include <thread>

using namespace planloom;

namespace {

using Values = std::vector<float>;

/// An end of the communication whose calls wait until they are done.
class WaitingEnd
{
public:
    explicit WaitingEnd(std::unique_ptr<Communicator> end)
        : m_end(std::move(end))
    {
    }

    DeviceId device() const { return m_end->device(); }
    Result<void> allReduce(std::int32_t group, const CollectiveBuffer &in, const CollectiveBuffer &out,
        Combination combination = Combination::Sum)
    {
        return join({InstructionKind::AllReduce, group, 0, in, out, -1, -1, combination});
    }
    Result<void> allGather(
        std::int32_t group, const CollectiveBuffer &in, const CollectiveBuffer &out, std::int32_t dimension)
    {
        return join({InstructionKind::AllGather, group, 0, in, out, dimension});
    }
    Result<void> reduceScatter(std::int32_t group, const CollectiveBuffer &in, const CollectiveBuffer &out,
        std::int32_t dimension, Combination combination = Combination::Sum)
    {
        return join({InstructionKind::ReduceScatter, group, 0, in, out, dimension, -1, combination});
    }
    Result<void> allToAll(std::int32_t group, const CollectiveBuffer &in, const CollectiveBuffer &out,
        std::int32_t dimension, std::int32_t gatherDimension)
    {
        return join({InstructionKind::AllToAll, group, 0, in, out, dimension, gatherDimension});
    }
    Result<void> broadcast(std::int32_t group, const CollectiveBuffer &in, const CollectiveBuffer &out)
    {
        return join({InstructionKind::Broadcast, group, 0, in, out});
    }
    Result<void> shift(std::int32_t group, const CollectiveBuffer &in, const CollectiveBuffer &out)
    {
        return join({InstructionKind::Shift, group, 0, in, out});
    }
    template<typename T> Result<void> send(const MessageKey &key, T value)
    {
        return wait([&](auto done) {
            m_end->send({key, reinterpret_cast<std::byte *>(&value), sizeof value}, std::move(done));
        });
    }
    template<typename T> Result<T> receive(const MessageKey &key)
    {
        T value{};
        TRY_VOID(wait([&](auto done) {
            m_end->receive({key, reinterpret_cast<std::byte *>(&value), sizeof value}, std::move(done));
        }));
        return value;
    }

private:
    template<typename Start> static Result<void> wait(const Start &start)
    {
        auto promise = std::make_shared<std::promise<Result<void>>>();
        auto outcome = promise->get_future();
        start([promise](Result<void> got) { promise->set_value(std::move(got)); });
        return outcome.get();
    }
    Result<void> join(CollectiveCall call)
    {
        call.sequence = m_sequence[call.group]++;
        return wait([&](auto done) { m_end->join(call, std::move(done)); });
    }

    std::unique_ptr<Communicator> m_end;
    std::map<std::int32_t, std::int64_t> m_sequence{};
};

/// Makes the devices of one run talk. Another implementation of `Communicator` joins by a class like
/// `Threads`.
class Threads
{
public:
    Threads(std::int32_t devices, std::vector<std::vector<DeviceId>> groups)
        : m_devices(devices)
        , m_world(devices, std::move(groups))
    {
        for (std::int32_t d = 0; d < m_devices; ++d)
            m_ends.push_back(std::make_unique<WaitingEnd>(m_world.communicator(DeviceId{d})));
    }

    /// Runs `body` on every device at once.
    void run(const std::function<void(WaitingEnd &)> &body)
    {
        std::vector<std::thread> threads;
        for (std::int32_t d = 0; d < m_devices; ++d)
            threads.emplace_back([&, d] { body(*m_ends[static_cast<std::size_t>(d)]); });
        for (std::thread &thread : threads)
            thread.join();
    }

    void abort() { m_world.abort(); }

private:
    std::int32_t m_devices;
    ThreadWorld m_world;
    std::vector<std::unique_ptr<WaitingEnd>> m_ends{};
};

/// The ranks of several processes, here in one: nothing but shared memory and their inboxes joins them.
template<std::int32_t kDevicesPerRank> class Processes
{
public:
    Processes(std::int32_t devices, std::vector<std::vector<DeviceId>> groups)
    {
        const RankLayout layout{devices, (devices + kDevicesPerRank - 1) / kDevicesPerRank};
        auto world = ProcessWorld::make(layout, std::move(groups));
        if (!world)
            throw std::runtime_error(world.error().message);
        m_world = *std::move(world);
        for (std::int32_t rank = 0; rank < layout.ranks; ++rank) {
            m_pools.push_back(std::make_unique<WorkPool>(1));
            m_ranks.push_back(m_world->enter(rank, *m_pools.back()));
            m_ranks.back()->start({});
        }
        for (std::int32_t d = 0; d < devices; ++d)
            m_ends.push_back(std::make_unique<WaitingEnd>(
                m_ranks[static_cast<std::size_t>(layout.rankOf({d}))]->communicator({d})));
    }

    void run(const std::function<void(WaitingEnd &)> &body)
    {
        std::vector<std::thread> threads;
        for (const auto &end : m_ends)
            threads.emplace_back([&] { body(*end); });
        for (std::thread &thread : threads)
            thread.join();
    }

    void abort() { m_ranks.back()->fail(cancelled()); }

private:
    std::unique_ptr<ProcessWorld> m_world{};
    std::vector<std::unique_ptr<WorkPool>> m_pools{};
    std::vector<std::unique_ptr<RankEnd>> m_ranks{};
    std::vector<std::unique_ptr<WaitingEnd>> m_ends{};
};

template<typename World> class CommunicatorTest : public testing::Test
{
};
using Worlds = testing::Types<Threads, Processes<1>, Processes<2>>;
TYPED_TEST_SUITE(CommunicatorTest, Worlds);

std::vector<DeviceId> everyone(std::int32_t devices)
{
    std::vector<DeviceId> members;
    for (std::int32_t d = 0; d < devices; ++d)
        members.push_back({d});
    return members;
}

/// Small integers: their float sums are exact, whatever the order.
Values drawnValues(std::mt19937 &random, std::int64_t count)
{
    Values values(static_cast<std::size_t>(count));
    for (float &value : values)
        value = static_cast<float>(static_cast<int>(random() % 201) - 100);
    return values;
}

CollectiveBuffer bufferOf(Values &values, Shape shape)
{
    return {reinterpret_cast<std::byte *>(values.data()), DataType::Float32, std::move(shape)};
}

std::size_t flat(const Shape &shape, const std::vector<std::int64_t> &index)
{
    std::int64_t at = 0;
    for (std::size_t d = 0; d < shape.size(); ++d)
        at = at * shape[d] + index[d];
    return static_cast<std::size_t>(at);
}

/// Calls visit(index) for every element of `shape`.
void forEach(const Shape &shape, const std::function<void(const std::vector<std::int64_t> &)> &visit)
{
    std::vector<std::int64_t> index(shape.size(), 0);
    for (std::int64_t left = elementCount(shape); left > 0; --left) {
        visit(index);
        for (std::size_t d = shape.size(); d-- > 0;) {
            if (++index[d] < shape[d])
                break;
            index[d] = 0;
        }
    }
}

Shape randomShape(std::mt19937 &random, std::size_t rank, std::int64_t most)
{
    Shape shape;
    for (std::size_t d = 0; d < rank; ++d)
        shape.push_back(1 + static_cast<std::int64_t>(random() % static_cast<std::uint32_t>(most)));
    return shape;
}

} // namespace

TYPED_TEST(CommunicatorTest, AllReduceIsTheSumOnEveryMember)
{
    std::mt19937 random(1);
    for (std::int32_t n = 1; n <= 5; ++n) {
        TypeParam world{n, {everyone(n)}};
        for (const std::int64_t count : {std::int64_t{0}, std::int64_t{1}, std::int64_t{7},
                 std::int64_t{1023}, std::int64_t{5000}, std::int64_t{20001}}) {
            for (const bool inPlace : {false, true}) {
                std::vector<Values> in;
                std::vector<Values> out(
                    static_cast<std::size_t>(n), Values(static_cast<std::size_t>(count), -1.0F));
                Values sum(static_cast<std::size_t>(count));
                for (std::int32_t d = 0; d < n; ++d) {
                    in.push_back(drawnValues(random, count));
                    for (std::size_t i = 0; i < sum.size(); ++i)
                        sum[i] += in.back()[i];
                }
                world.run([&](WaitingEnd &end) {
                    const auto d = static_cast<std::size_t>(end.device().index);
                    const auto source = bufferOf(in[d], {count});
                    const auto outcome =
                        end.allReduce(0, source, inPlace ? source : bufferOf(out[d], {count}));
                    EXPECT_TRUE(outcome);
                });
                for (std::size_t d = 0; d < in.size(); ++d)
                    EXPECT_EQ(inPlace ? in[d] : out[d], sum) << n << " devices, " << count << " elements";
            }
        }
    }
}

TYPED_TEST(CommunicatorTest, SumsAreTheSameBitsOnEveryMemberAndEveryTime)
{
    constexpr std::int32_t kDevices = 4;
    constexpr std::int64_t kCount = 10000;
    TypeParam world{kDevices, {{{2}, {0}, {3}, {1}}}};
    std::mt19937 random(2);
    std::uniform_real_distribution<float> real(-1, 1);
    std::vector<Values> in(kDevices, Values(kCount));
    for (Values &values : in)
        for (float &value : values)
            value = real(random);
    Values expected(kCount);
    for (std::size_t i = 0; i < kCount; ++i)
        expected[i] = ((in[2][i] + in[0][i]) + in[3][i]) + in[1][i];
    for (int repeat = 0; repeat < 20; ++repeat) {
        std::vector<Values> out(kDevices, Values(kCount));
        world.run([&](WaitingEnd &end) {
            const auto d = static_cast<std::size_t>(end.device().index);
            EXPECT_TRUE(end.allReduce(0, bufferOf(in[d], {kCount}), bufferOf(out[d], {kCount})));
        });
        for (const Values &values : out)
            EXPECT_EQ(values, expected);
    }
}

TYPED_TEST(CommunicatorTest, SumsOfNarrowTypesAreRoundedOnce)
{
    // 2^-8 is half of BFloat16's last place at 1: added one by one, ties to even would swallow both.
    TypeParam world{3, {everyone(3)}};
    std::array<std::uint16_t, 3> in{0x3f80, 0x3b80, 0x3b80}; // 1, 2^-8, 2^-8
    std::array<std::array<std::uint16_t, 1>, 3> out{};
    world.run([&](WaitingEnd &end) {
        const auto d = static_cast<std::size_t>(end.device().index);
        const auto buffer = [](std::uint16_t *data) {
            return CollectiveBuffer{reinterpret_cast<std::byte *>(data), DataType::BFloat16, {1}};
        };
        EXPECT_TRUE(end.allReduce(0, buffer(&in[d]), buffer(out[d].data())));
    });
    for (const auto &sum : out)
        EXPECT_EQ(sum[0], 0x3f81); // 1 + 2^-7
}

TYPED_TEST(CommunicatorTest, AllGatherConcatenatesAlongAnyDimension)
{
    std::mt19937 random(3);
    for (std::int32_t n = 1; n <= 5; ++n) {
        TypeParam world{n, {everyone(n)}};
        for (int repeat = 0; repeat < 12; ++repeat) {
            const std::size_t rank = 1 + random() % 3;
            const std::size_t d = random() % rank;
            const Shape base = randomShape(random, rank, 6);
            std::vector<Shape> shapes;
            std::vector<Values> in;
            Shape whole = base;
            whole[d] = 0;
            for (std::int32_t k = 0; k < n; ++k) {
                Shape shape = base;
                shape[d] = 1 + static_cast<std::int64_t>(random() % 4);
                whole[d] += shape[d];
                in.push_back(drawnValues(random, elementCount(shape)));
                shapes.push_back(shape);
            }
            Values expected(static_cast<std::size_t>(elementCount(whole)));
            std::int64_t offset = 0;
            for (std::size_t k = 0; k < in.size(); ++k) {
                forEach(shapes[k], [&](std::vector<std::int64_t> index) {
                    const float value = in[k][flat(shapes[k], index)];
                    index[d] += offset;
                    expected[flat(whole, index)] = value;
                });
                offset += shapes[k][d];
            }
            std::vector<Values> out(in.size(), Values(expected.size(), -1.0F));
            world.run([&](WaitingEnd &end) {
                const auto k = static_cast<std::size_t>(end.device().index);
                EXPECT_TRUE(end.allGather(
                    0, bufferOf(in[k], shapes[k]), bufferOf(out[k], whole), static_cast<std::int32_t>(d)));
            });
            for (const Values &values : out)
                EXPECT_EQ(values, expected);
        }
    }
}

TYPED_TEST(CommunicatorTest, LargestAndLogSumExpAreThoseOfAllMembers)
{
    constexpr float kNone = -std::numeric_limits<float>::infinity();
    std::mt19937 random(9);
    for (std::int32_t n = 1; n <= 4; ++n) {
        TypeParam world{n, {everyone(n)}};
        const std::int64_t count = 12 * n;
        std::vector<Values> in;
        for (std::int32_t d = 0; d < n; ++d) {
            in.push_back(drawnValues(random, count));
            in.back()[0] = kNone; // nobody has anything
            in.back()[1] = d == 0 ? 3.0F : kNone; // one has
            in.back()[2] = 500.0F + static_cast<float>(d); // whose exponential no float holds
            in.back()[3] = -500.0F;
        }
        for (const Combination combination : {Combination::Max, Combination::LogSumExp}) {
            Values expected;
            for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
                double largest = -std::numeric_limits<double>::infinity();
                for (const Values &values : in)
                    largest = std::max(largest, static_cast<double>(values[i]));
                double sum = 0;
                for (const Values &values : in)
                    sum += std::exp(static_cast<double>(values[i]) - largest);
                const bool logarithm = combination == Combination::LogSumExp && std::isfinite(largest);
                expected.push_back(static_cast<float>(logarithm ? largest + std::log(sum) : largest));
            }
            const auto expectPart = [&](const Values &values, std::size_t first) {
                for (std::size_t i = 0; i < values.size(); ++i)
                    EXPECT_FLOAT_EQ(values[i], expected[first + i]) << first + i;
            };
            std::vector<Values> all(in.size(), Values(static_cast<std::size_t>(count)));
            std::vector<Values> chunks(in.size(), Values(12));
            world.run([&](WaitingEnd &end) {
                const auto d = static_cast<std::size_t>(end.device().index);
                EXPECT_TRUE(
                    end.allReduce(0, bufferOf(in[d], {count}), bufferOf(all[d], {count}), combination));
                EXPECT_TRUE(end.reduceScatter(
                    0, bufferOf(in[d], {count}), bufferOf(chunks[d], {12}), 0, combination));
            });
            for (std::size_t d = 0; d < in.size(); ++d) {
                expectPart(all[d], 0);
                expectPart(chunks[d], 12 * d);
            }
        }
    }
}

TYPED_TEST(CommunicatorTest, MembersMustCombineAlike)
{
    TypeParam world{2, {everyone(2)}};
    std::vector<Values> values(2, Values(4));
    world.run([&](WaitingEnd &end) {
        const auto d = static_cast<std::size_t>(end.device().index);
        const auto buffer = bufferOf(values[d], {4});
        const auto outcome = end.allReduce(0, buffer, buffer, d == 0 ? Combination::Max : Combination::Sum);
        EXPECT_FALSE(outcome);
    });
}

TYPED_TEST(CommunicatorTest, ReduceScatterKeepsTheChunkOfTheSum)
{
    std::mt19937 random(4);
    for (std::int32_t n = 1; n <= 5; ++n) {
        TypeParam world{n, {everyone(n)}};
        for (int repeat = 0; repeat < 12; ++repeat) {
            const std::size_t rank = 1 + random() % 3;
            const std::size_t d = random() % rank;
            Shape whole = randomShape(random, rank, 6);
            std::vector<Shape> shapes;
            whole[d] = 0;
            for (std::int32_t k = 0; k < n; ++k) {
                Shape shape = whole;
                shape[d] = 1 + static_cast<std::int64_t>(random() % 4);
                shapes.push_back(shape);
            }
            for (const Shape &shape : shapes)
                whole[d] += shape[d];
            Values sum(static_cast<std::size_t>(elementCount(whole)));
            std::vector<Values> in;
            std::vector<Values> out;
            for (const Shape &shape : shapes) {
                in.push_back(drawnValues(random, elementCount(whole)));
                for (std::size_t i = 0; i < sum.size(); ++i)
                    sum[i] += in.back()[i];
                out.emplace_back(static_cast<std::size_t>(elementCount(shape)), -1.0F);
            }
            world.run([&](WaitingEnd &end) {
                const auto k = static_cast<std::size_t>(end.device().index);
                EXPECT_TRUE(end.reduceScatter(
                    0, bufferOf(in[k], whole), bufferOf(out[k], shapes[k]), static_cast<std::int32_t>(d)));
            });
            std::int64_t offset = 0;
            for (std::size_t k = 0; k < out.size(); ++k) {
                forEach(shapes[k], [&](std::vector<std::int64_t> index) {
                    const float got = out[k][flat(shapes[k], index)];
                    index[d] += offset;
                    EXPECT_EQ(got, sum[flat(whole, index)]);
                });
                offset += shapes[k][d];
            }
        }
    }
}

TYPED_TEST(CommunicatorTest, AllToAllMovesTheCutToAnotherDimension)
{
    std::mt19937 random(5);
    for (std::int32_t n = 1; n <= 5; ++n) {
        TypeParam world{n, {everyone(n)}};
        for (int repeat = 0; repeat < 12; ++repeat) {
            const std::size_t rank = 2 + random() % 2;
            const std::size_t cut = random() % rank;
            const std::size_t join = (cut + 1 + random() % (rank - 1)) % rank;
            Shape whole = randomShape(random, rank, 3);
            whole[cut] *= n;
            whole[join] *= n;
            const Values all = drawnValues(random, elementCount(whole));
            Shape inShape = whole;
            inShape[join] /= n;
            Shape outShape = whole;
            outShape[cut] /= n;
            std::vector<Values> in(
                static_cast<std::size_t>(n), Values(static_cast<std::size_t>(elementCount(inShape))));
            std::vector<Values> out(
                static_cast<std::size_t>(n), Values(static_cast<std::size_t>(elementCount(outShape)), -1.0F));
            for (std::size_t k = 0; k < in.size(); ++k) {
                forEach(inShape, [&](std::vector<std::int64_t> index) {
                    float &value = in[k][flat(inShape, index)];
                    index[join] += static_cast<std::int64_t>(k) * inShape[join];
                    value = all[flat(whole, index)];
                });
            }
            world.run([&](WaitingEnd &end) {
                const auto k = static_cast<std::size_t>(end.device().index);
                EXPECT_TRUE(end.allToAll(0, bufferOf(in[k], inShape), bufferOf(out[k], outShape),
                    static_cast<std::int32_t>(cut), static_cast<std::int32_t>(join)));
            });
            for (std::size_t k = 0; k < out.size(); ++k) {
                forEach(outShape, [&](std::vector<std::int64_t> index) {
                    const float got = out[k][flat(outShape, index)];
                    index[cut] += static_cast<std::int64_t>(k) * outShape[cut];
                    EXPECT_EQ(got, all[flat(whole, index)]);
                });
            }
        }
    }
}

TYPED_TEST(CommunicatorTest, BroadcastComesFromTheFirstMember)
{
    for (std::int32_t n = 1; n <= 5; ++n) {
        for (const bool keep : {false, true}) {
            std::vector<DeviceId> members = everyone(n);
            std::rotate(members.begin(), members.begin() + n / 2, members.end());
            TypeParam world{n, {members}};
            Values in{1, 2, 3, 4, 5, 6};
            std::vector<Values> out(static_cast<std::size_t>(n), Values(6, -1.0F));
            world.run([&](WaitingEnd &end) {
                const auto d = static_cast<std::size_t>(end.device().index);
                const bool first = end.device() == members.front();
                EXPECT_TRUE(end.broadcast(0, first ? bufferOf(in, {2, 3}) : CollectiveBuffer{},
                    first && !keep ? CollectiveBuffer{} : bufferOf(out[d], {2, 3})));
            });
            for (std::size_t d = 0; d < out.size(); ++d) {
                const bool first = DeviceId{static_cast<std::int32_t>(d)} == members.front();
                EXPECT_EQ(out[d], first && !keep ? Values(6, -1.0F) : in);
            }
        }
    }
}

TYPED_TEST(CommunicatorTest, AShiftComesFromTheMemberBefore)
{
    for (std::int32_t n = 1; n <= 5; ++n) {
        std::vector<DeviceId> members = everyone(n);
        std::rotate(members.begin(), members.begin() + n / 2, members.end());
        TypeParam world{n, {members}};
        // Member i has i + 1 elements.
        const auto valuesOf = [&](std::size_t member) {
            return Values(member % members.size() + 1, static_cast<float>(member % members.size()));
        };
        std::vector<Values> out(members.size());
        world.run([&](WaitingEnd &end) {
            const auto me = static_cast<std::size_t>(
                std::find(members.begin(), members.end(), end.device()) - members.begin());
            Values in = valuesOf(me);
            out[me] = Values(valuesOf(me + members.size() - 1).size(), -1.0F);
            const auto sent = static_cast<std::int64_t>(in.size());
            const auto received = static_cast<std::int64_t>(out[me].size());
            EXPECT_TRUE(end.shift(0, bufferOf(in, {sent}), bufferOf(out[me], {received})));
            EXPECT_FALSE(end.shift(0, bufferOf(in, {sent}), bufferOf(in, {sent}))); // onto itself
        });
        for (std::size_t member = 0; member < out.size(); ++member)
            EXPECT_EQ(out[member], valuesOf(member + members.size() - 1)) << n << " members";
    }
}

TYPED_TEST(CommunicatorTest, MessagesArriveByKeyAndInOrder)
{
    constexpr std::int32_t kDevices = 3;
    TypeParam world{kDevices, {}};
    world.run([&](WaitingEnd &end) {
        const std::int32_t me = end.device().index;
        // Nobody receives before all has been sent: a send waits for no receiver.
        for (std::int32_t peer = 0; peer < kDevices; ++peer)
            for (std::int32_t m = 0; m < 4; ++m)
                for (std::int32_t k = 0; peer != me && k < 2; ++k)
                    EXPECT_TRUE(end.send({{peer}, 7, m}, ((me * 10 + peer) * 10 + m) * 10 + k));
        for (std::int32_t m = 3; m >= 0; --m) { // in another order than they were sent
            for (std::int32_t peer = kDevices; peer-- > 0;) {
                for (std::int32_t k = 0; peer != me && k < 2; ++k) {
                    const auto value = end.template receive<std::int32_t>({{peer}, 7, m});
                    ASSERT_TRUE(value);
                    EXPECT_EQ(*value, ((peer * 10 + me) * 10 + m) * 10 + k);
                }
            }
        }
        if (me == 0) {
            EXPECT_TRUE(end.send({{1}, 8, 0}, std::int64_t{5}));
        } else if (me == 1) {
            const auto value = end.template receive<std::int32_t>({{0}, 8, 0}); // of another size
            EXPECT_TRUE(!value && value.error().code == ErrorCode::InvalidInput);
        }
    });
}

TYPED_TEST(CommunicatorTest, ManyCollectivesInSeveralGroupsKeepApart)
{
    TypeParam world{4, {{{0}, {1}}, {{2}, {3}}, {{0}, {2}}, {{1}, {3}}, everyone(4)}};
    world.run([](WaitingEnd &end) {
        const std::int32_t d = end.device().index;
        for (int repeat = 0; repeat < 300; ++repeat) {
            Values rows{static_cast<float>(d + repeat)};
            Values sum(1);
            EXPECT_TRUE(end.allReduce(d / 2, bufferOf(rows, {1}), bufferOf(sum, {1})));
            EXPECT_EQ(sum[0], static_cast<float>(d / 2 * 4 + 1 + 2 * repeat));
            EXPECT_TRUE(end.allReduce(2 + d % 2, bufferOf(sum, {1}), bufferOf(rows, {1})));
            EXPECT_EQ(rows[0], static_cast<float>(6 + 4 * repeat));
            EXPECT_TRUE(end.allReduce(4, bufferOf(rows, {1}), bufferOf(rows, {1})));
            EXPECT_EQ(rows[0], static_cast<float>(4 * (6 + 4 * repeat)));
        }
    });
}

TYPED_TEST(CommunicatorTest, AnAbortWakesEveryoneWhoWaits)
{
    for (int what = 0; what < 2; ++what) {
        TypeParam world{3, {everyone(3)}};
        std::atomic<int> cancelled{0};
        world.run([&](WaitingEnd &end) {
            const std::int32_t d = end.device().index;
            if (d == 2) {
                world.abort(); // whether or not the others wait already
                return;
            }
            Values values(10, 1.0F);
            Error error;
            if (what == 0) {
                if (auto outcome = end.allReduce(0, bufferOf(values, {10}), bufferOf(values, {10})); !outcome)
                    error = outcome.error();
            } else if (auto outcome = end.template receive<std::int32_t>({{2}, 0, 0}); !outcome) {
                error = outcome.error();
            }
            cancelled += error.code == ErrorCode::Cancelled ? 1 : 0;
        });
        EXPECT_EQ(cancelled, 2);
    }
}

TYPED_TEST(CommunicatorTest, MembersThatDisagreeAllGetAnError)
{
    TypeParam world{3, {everyone(3)}};
    std::atomic<int> refused{0};
    world.run([&](WaitingEnd &end) {
        const std::int64_t count = end.device().index == 1 ? 4 : 5;
        Values values(5, 1.0F);
        const auto shapes = end.allReduce(0, bufferOf(values, {count}), bufferOf(values, {count}));
        refused += !shapes && shapes.error().code == ErrorCode::InvalidInput ? 1 : 0;
        const auto kinds = end.device().index == 1
            ? end.broadcast(0, bufferOf(values, {5}), bufferOf(values, {5}))
            : end.allReduce(0, bufferOf(values, {5}), bufferOf(values, {5}));
        refused += !kinds && kinds.error().code == ErrorCode::InvalidInput ? 1 : 0;
        EXPECT_FALSE(end.allReduce(1, bufferOf(values, {5}), bufferOf(values, {5}))); // no such group
    });
    EXPECT_EQ(refused, 6);
}

TEST(MemoryPool, GivesFreedBlocksAgain)
{
    MemoryPool pool;
    const std::byte *first = nullptr;
    {
        const MemoryBlock block = pool.allocate(100000);
        first = block.data();
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(first) % 64, 0U);
    }
    const std::size_t reserved = pool.reserved();
    const MemoryBlock again = pool.allocate(100000);
    EXPECT_EQ(again.data(), first);
    const MemoryBlock other = pool.allocate(100000);
    EXPECT_NE(other.data(), first);
    EXPECT_GT(pool.reserved(), reserved);
}

/// The run ends with the last thing that is told, on whichever thread: nothing may be touched behind it.
TEST(ThreadCommunicator, WhoIsToldLastMayEndTheWorld)
{
    Values sent(64, 3.0F);
    Values received(64);
    const MessageCall to{{.peer = {1}, .tag = 0, .microBatch = 0}, reinterpret_cast<std::byte *>(sent.data()),
        sent.size() * sizeof(float)};
    MessageCall from{to};
    from.key.peer = DeviceId{0};
    from.data = reinterpret_cast<std::byte *>(received.data());
    auto world = std::make_unique<ThreadWorld>(2, std::vector<std::vector<DeviceId>>{});
    const auto sender = world->communicator({0});
    const auto receiver = world->communicator({1});
    bool isSent = false;
    sender->send(to, [&](const Result<void> &outcome) { isSent = static_cast<bool>(outcome); });
    ASSERT_TRUE(isSent); // put aside
    receiver->receive(from, [&](const Result<void> &outcome) {
        EXPECT_TRUE(outcome);
        world.reset();
    });
    EXPECT_FALSE(world);
    EXPECT_EQ(received, sent);
}
