// Each collective by NCCL is what its definition says: any dimension, even and uneven pieces, all types.

#include "engine/cuda/backend/cuda_backend.h"
#include "engine/cuda/nccl/nccl_world.h"
#include "engine/runtime/communication/collective_work.h"

#include "tests/engine/cuda/fake_cuda.h"
#include "tests/engine/cuda/fake_nccl.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <set>
#include <thread>

namespace planloom {
namespace {

/// A collective of some members: their calls, with memory of their own, and what it makes of it.
struct DrawnCollective {
    std::vector<CollectiveCall> calls{};
    NcclPieces pieces{};
    std::vector<std::vector<std::byte>> ins{};
    std::vector<std::vector<std::byte>> outs{};
};

std::vector<std::int64_t> drawnExtents(std::size_t members, std::mt19937 &random)
{
    const bool even = random() % 2 == 0;
    std::vector<std::int64_t> extents(members, 1 + static_cast<std::int64_t>(random() % 3));
    for (std::int64_t &extent : extents)
        extent = even ? extents.front() : static_cast<std::int64_t>(random() % 4);
    extents.front() = std::max<std::int64_t>(extents.front(), 1);
    return extents;
}

DrawnCollective drawnCollective(std::mt19937 &random)
{
    constexpr std::array kKinds{InstructionKind::AllReduce, InstructionKind::AllGather,
        InstructionKind::ReduceScatter, InstructionKind::AllToAll, InstructionKind::Broadcast,
        InstructionKind::Shift};
    constexpr std::array kTypes{
        DataType::Float32, DataType::BFloat16, DataType::Int32, DataType::Int64, DataType::Float8E4M3};
    const std::size_t members = 2 + random() % 3;
    DrawnCollective drawn;
    drawn.calls.resize(members);
    const InstructionKind kind = kKinds[random() % kKinds.size()];
    const DataType type = kTypes[random() % kTypes.size()];
    Combination combination =
        std::array{Combination::Sum, Combination::Max, Combination::LogSumExp}[random() % 3];
    if (!canCombine(type, combination))
        combination = Combination::Max;
    Shape shape;
    const std::size_t dimensions = 2 + random() % 2;
    for (std::size_t d = 0; d < dimensions; ++d)
        shape.push_back(1 + static_cast<std::int64_t>(random() % 3));
    const std::size_t cut = random() % dimensions;
    const std::size_t join = (cut + 1 + random() % (dimensions - 1)) % dimensions;
    const auto cuts = drawnExtents(members, random);
    const auto joins = drawnExtents(members, random);
    const auto total = [](const std::vector<std::int64_t> &extents) {
        std::int64_t sum = 0;
        for (const std::int64_t extent : extents)
            sum += extent;
        return sum;
    };
    for (std::size_t k = 0; k < members; ++k) {
        CollectiveCall &call = drawn.calls[k];
        call.kind = kind;
        call.combination = combination;
        Shape in = shape;
        Shape out = shape;
        if (kind == InstructionKind::AllGather) {
            call.dimension = static_cast<std::int32_t>(cut);
            in[cut] = cuts[k];
            out[cut] = total(cuts);
        } else if (kind == InstructionKind::ReduceScatter) {
            call.dimension = static_cast<std::int32_t>(cut);
            in[cut] = total(cuts);
            out[cut] = cuts[k];
        } else if (kind == InstructionKind::AllToAll) {
            call.dimension = static_cast<std::int32_t>(cut);
            call.gatherDimension = static_cast<std::int32_t>(join);
            in[cut] = total(cuts);
            in[join] = joins[k];
            out[cut] = cuts[k];
            out[join] = total(joins);
            drawn.pieces.joined = joins;
        }
        if (call.dimension >= 0)
            drawn.pieces.cut = cuts;
        call.in = {nullptr, type, in};
        call.out = {nullptr, type, out};
        auto &from = drawn.ins.emplace_back(static_cast<std::size_t>(elementCount(in) * sizeOf(type)) + 8);
        drawn.outs.emplace_back(static_cast<std::size_t>(elementCount(out) * sizeOf(type)) + 8);
        for (std::byte &byte : from) // small numbers, in each of the types
            byte = static_cast<std::byte>(random() % 64);
    }
    for (std::size_t k = 0; k < members; ++k) {
        drawn.calls[k].in.data = drawn.ins[k].data();
        drawn.calls[k].out.data = drawn.outs[k].data();
        if (kind == InstructionKind::Broadcast && k > 0)
            drawn.calls[k].in = {};
    }
    return drawn;
}

/// Keeps the error of the one task that a rank has.
class OneOutcome final : public TaskListener
{
public:
    void finished(EventId, const Result<void> &outcome, Clock::time_point, Clock::time_point) override
    {
        if (!outcome)
            error = describe(outcome.error());
    }
    std::string error{};
};

TEST(NcclCollectives, AreWhatTheirDefinitionSays)
{
    std::mt19937 random(11);
    std::set<std::string> called;
    for (int repeat = 0; repeat < 400; ++repeat) {
        const DrawnCollective drawn = drawnCollective(random);
        const std::size_t members = drawn.calls.size();
        SCOPED_TRACE(std::string{nameOf(drawn.calls[0].kind)} + " of " + nameOf(drawn.calls[0].in.type)
            + " by " + nameOf(drawn.calls[0].combination) + ", " + toString(drawn.calls[0].in.shape) + " to "
            + toString(drawn.calls[0].out.shape) + ", case " + std::to_string(repeat));
        ASSERT_EQ(misfit(drawn.calls), "");
        auto expected = drawn.calls;
        auto made = drawn.outs;
        for (std::size_t k = 0; k < members; ++k)
            expected[k].out.data = made[k].data();
        for (std::size_t k = 0; k < members; ++k)
            memberPart(expected, k);

        FakeNcclNet net;
        std::vector<DeviceId> group;
        for (std::size_t k = 0; k < members; ++k)
            group.push_back({static_cast<std::int32_t>(members - 1 - k)}); // ranks in another order
        std::vector<std::string> errors(members);
        std::vector<std::thread> threads;
        for (std::size_t k = 0; k < members; ++k)
            threads.emplace_back([&, k] {
                FakeCuda cuda(static_cast<std::uint32_t>(repeat) * 8 + static_cast<std::uint32_t>(k));
                FakeNccl nccl(net, cuda);
                CudaShared shared(cuda, 1);
                NcclWorldOptions options{.device = group[k],
                    .devices = static_cast<std::int32_t>(members),
                    .groups = {group},
                    .order = {{{drawn.pieces}}}};
                NcclWorld world(&nccl, options);
                NcclId id;
                (void)nccl.uniqueId(id);
                if (auto connected = world.connect(id); !connected) {
                    errors[k] = describe(connected.error());
                    return;
                }
                auto device = cudaBackend(shared, world.communicator(), {});
                OneOutcome told;
                (*device)->begin(1, told);
                (*device)->issue({.event = 0, .communication = drawn.calls[k]});
                (*device)->finish();
                errors[k] = told.error;
            });
        for (std::thread &thread : threads)
            thread.join();
        EXPECT_EQ(net.misuse(), "");
        EXPECT_EQ(net.live(), 0U);
        for (std::size_t k = 0; k < members; ++k) {
            EXPECT_EQ(errors[k], "");
            ASSERT_EQ(drawn.outs[k], made[k]) << "member " << k;
        }
        for (const auto &[at, calls] : net.calls)
            for (const std::string &call : calls)
                called.insert(call.substr(0, call.find(' ')));
    }
    EXPECT_EQ(called,
        (std::set<std::string>{"all-gather", "all-reduce", "broadcast", "exchange", "reduce-scatter"}));
}

} // namespace
} // namespace planloom
