#pragma once

// What every kind of device has to do alike: the suite that backends pass. Each joins it by a class of
// devices, with a constructor that takes how many there are and which groups, `device(d)` and `abort()`,
// whose memory the host can read and write; and by PLANLOOM_BACKEND_TESTS(that class). Tests of one with a
// static `whyNot()` are skipped where that is not empty.

#include "engine/runtime/devices/device_backend.h"

#include "engine/frontend/zoo/graph_builder.h"
#include "engine/kernels/elements/narrow_float.h"
#include "engine/runtime/devices/box_copy.h"
#include "tests/engine/runtime/plan_writer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <random>

namespace planloom {
namespace {

/// Why the devices of a class cannot be had here; empty if they can.
template<typename Devices> std::string whyNoDevices()
{
    if constexpr (requires { Devices::whyNot(); })
        return Devices::whyNot();
    return {};
}

/// Keeps what a device told.
class Told final : public TaskListener
{
public:
    struct Task {
        std::optional<Error> error{};
        Clock::time_point start{};
        Clock::time_point end{};
    };
    void finished(
        EventId event, const Result<void> &outcome, Clock::time_point start, Clock::time_point end) override
    {
        const std::lock_guard lock{m_mutex};
        EXPECT_TRUE(tasks.emplace(event, Task{{}, start, end}).second) << "twice";
        if (!outcome)
            tasks[event].error = outcome.error();
    }
    std::map<EventId, Task> tasks{};

private:
    std::mutex m_mutex{};
};

template<typename TypeParam> void testQueuesKeepTheirOrderAndWaitForEvents()
{
    std::mt19937 random(3);
    for (int repeat = 0; repeat < 20; ++repeat) {
        TypeParam devices{1, {}};
        DeviceBackend &device = devices.device(0);
        Told told;
        constexpr EventId kTasks = 120;
        struct Issued {
            std::size_t queue = 0;
            std::vector<EventId> waits{};
        };
        std::vector<Issued> issued;
        device.begin(kTasks, told);
        for (EventId event = 0; event < kTasks; ++event) {
            Issued task{random() % kQueueCount, {}};
            for (int w = 0; event > 0 && w < 2; ++w)
                if (random() % 3 == 0)
                    task.waits.push_back(static_cast<EventId>(random() % static_cast<std::uint32_t>(event)));
            issued.push_back(task);
            device.issue({.event = event,
                .queue = static_cast<QueueKind>(task.queue),
                .waits = task.waits,
                .work = [](DeviceQueue &) { return Result<void>{}; }});
        }
        device.finish();
        ASSERT_EQ(told.tasks.size(), static_cast<std::size_t>(kTasks));
        std::map<std::size_t, EventId> last;
        for (EventId event = 0; event < kTasks; ++event) {
            const Issued &task = issued[static_cast<std::size_t>(event)];
            std::vector<EventId> before = task.waits;
            if (last.contains(task.queue))
                before.push_back(last[task.queue]);
            for (const EventId each : before)
                EXPECT_LE(told.tasks[each].end, told.tasks[event].start) << each << " before " << event;
            last[task.queue] = event;
        }
    }
}

template<typename TypeParam> void testMemoryIsAlignedAndHoldsWhatIsPutThere()
{
    TypeParam devices{1, {}};
    DeviceBackend &device = devices.device(0);
    const auto arena = device.reserve(MemoryPlace::Device, 1 << 20);
    ASSERT_TRUE(arena);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(*arena) % static_cast<std::uintptr_t>(device.alignment()), 0U);
    const auto nothing = device.reserve(MemoryPlace::Host, 0);
    ASSERT_TRUE(nothing);
    EXPECT_EQ(*nothing, nullptr);
    std::byte *const at = *arena;
    std::vector<float> seen(24);
    Told told;
    device.begin(1, told);
    device.issue({.event = 0, .work = [&](DeviceQueue &queue) -> Result<void> {
                      const std::vector<float> a = drawn(12, 1);
                      TRY_VOID(queue.upload(at, 48, [a](std::byte *to) {
                          std::memcpy(to, a.data(), 48);
                          return Result<void>{};
                      }));
                      queue.fill(at + 64, 0, 96);
                      // Rows 1 and 2 of [4 3] to where they lie in [4 6] from column 2 on.
                      queue.copyBox(at, box({{0, 4}, {0, 3}}), at + 64, box({{0, 4}, {-2, 4}}),
                          box({{1, 3}, {0, 3}}), 4);
                      queue.copy(at + 256, at + 64, 96);
                      return queue.download(at + 256, 96, [&](const std::byte *data) -> Result<void> {
                          std::memcpy(seen.data(), data, 96);
                          return {};
                      });
                  }});
    device.finish();
    ASSERT_FALSE(told.tasks[0].error);
    const std::vector<float> a = drawn(12, 1);
    for (std::size_t row = 0; row < 4; ++row)
        for (std::size_t column = 0; column < 6; ++column)
            EXPECT_EQ(seen[row * 6 + column],
                row >= 1 && row < 3 && column >= 2 && column < 5 ? a[row * 3 + column - 2] : 0.0F);
}

template<typename TypeParam> void testCombinationsAndConversionsAreThoseOfTheirDefinitions()
{
    TypeParam devices{1, {}};
    DeviceBackend &device = devices.device(0);
    constexpr std::size_t kCount = 700'001; // several pieces, the last one short
    const std::size_t bytes = kCount * sizeof(float);
    const auto arena = device.reserve(MemoryPlace::Device, 4 * (bytes + 64));
    ASSERT_TRUE(arena);
    const auto at = [&](std::size_t i) { return *arena + i * (bytes + 60) / 64 * 64; };
    std::vector<std::vector<float>> given{drawn(kCount, 1), drawn(kCount, 2), drawn(kCount, 3)};
    for (std::size_t i = 0; i < 3; ++i)
        std::memcpy(at(i), given[i].data(), bytes);
    Told told;
    bool ok = true;
    device.begin(1, told);
    device.issue({.event = 0, .work = [&](DeviceQueue &queue) -> Result<void> {
                      const std::vector<const std::byte *> from{at(0), at(1), at(2)};
                      ok = queue.combine(at(3), from, kCount, DataType::Float32, Combination::Max) && ok;
                      ok = queue.add(at(3), DataType::Float32, at(0), DataType::Float32, kCount) && ok;
                      ok = queue.convert(at(3), DataType::Float32, at(1), DataType::BFloat16, kCount) && ok;
                      ok = queue.add(at(2), DataType::Float32, at(1), DataType::BFloat16, kCount) && ok;
                      ok = !queue.combine(at(3), from, kCount, DataType::Bool, Combination::Sum) && ok;
                      return {};
                  }});
    device.finish();
    EXPECT_TRUE(ok);
    std::vector<float> sum(kCount);
    std::vector<float> rounded(kCount);
    std::memcpy(sum.data(), at(3), bytes);
    std::memcpy(rounded.data(), at(2), bytes);
    for (std::size_t i = 0; i < kCount; ++i) { // all small multiples of a quarter: exact in every type
        const float expected = std::max({given[0][i], given[1][i], given[2][i]}) + given[0][i];
        ASSERT_EQ(sum[i], expected) << i;
        ASSERT_EQ(rounded[i], given[2][i] + expected) << i;
    }
}

template<typename TypeParam> void testKernelsComputeWhatTheOperatorsSay()
{
    const Graph graph = productGraph();
    TypeParam devices{1, {}};
    DeviceBackend &device = devices.device(0);
    const auto arena = device.reserve(MemoryPlace::Device, 1024);
    ASSERT_TRUE(arena);
    const std::vector<float> x = drawn(16, 5);
    const std::vector<float> w = drawn(8, 6);
    std::memcpy(*arena, x.data(), 64);
    std::memcpy(*arena + 64, w.data(), 32);
    KernelCall call;
    call.op = &graph.operators[0];
    call.inputs = {{*arena, DataType::Float32, {4, 4}}, {*arena + 64, DataType::Float32, {4, 2}}};
    call.outputs = {{*arena + 128, DataType::Float32, {4, 2}}};
    Told told;
    device.begin(1, told);
    device.issue({.event = 0, .work = [&](DeviceQueue &queue) { return queue.kernel(call, nullptr); }});
    device.finish();
    ASSERT_FALSE(told.tasks[0].error);
    std::vector<float> y(8);
    std::memcpy(y.data(), *arena + 128, 32);
    EXPECT_EQ(y, product(x, w));
}

template<typename TypeParam> void testFailuresAreToldAndWhatComesLaterStillRuns()
{
    TypeParam devices{1, {}};
    DeviceBackend &device = devices.device(0);
    Told told;
    device.begin(3, told);
    device.issue({.event = 0, .work = [](DeviceQueue &) -> Result<void> {
                      return Error{ErrorCode::InvalidInput, "broken", {}, {}};
                  }});
    device.issue({.event = 1, .work = [](DeviceQueue &) -> Result<void> { throw std::bad_alloc(); }});
    device.issue({.event = 2, .queue = QueueKind::Data, .waits = {0, 1}});
    device.finish();
    ASSERT_TRUE(told.tasks[0].error && told.tasks[1].error);
    EXPECT_EQ(told.tasks[0].error->message, "broken");
    EXPECT_EQ(told.tasks[1].error->code, ErrorCode::ResourceLimit);
    EXPECT_FALSE(told.tasks[2].error);
}

template<typename TypeParam> void testCommunicationGoesOnBesideComputationAndEndsWithAnAbort()
{
    TypeParam devices{2, {{{0}, {1}}}};
    std::array<Told, 2> told;
    const std::array<std::vector<float>, 2> values{drawn(1000, 1), drawn(1000, 2)};
    const std::array<std::vector<float>, 2> sent{std::vector<float>{1, 2, 3}, std::vector<float>{4, 5, 6}};
    // By device: 1000 values to sum, then 3 to send, and 3 received.
    std::array<float *, 2> memory{};
    for (std::int32_t d = 0; d < 2; ++d) {
        const auto mine = static_cast<std::size_t>(d);
        DeviceBackend &device = devices.device(mine);
        const auto arena = device.reserve(MemoryPlace::Device, 1006 * sizeof(float));
        ASSERT_TRUE(arena);
        memory[mine] = reinterpret_cast<float *>(*arena);
        std::copy(values[mine].begin(), values[mine].end(), memory[mine]);
        std::copy(sent[mine].begin(), sent[mine].end(), memory[mine] + 1000);
        device.begin(4, told[mine]);
        const CollectiveBuffer buffer{*arena, DataType::Float32, {1000}};
        device.issue({.event = 0,
            .queue = QueueKind::Data,
            .communication = CollectiveCall{.in = buffer, .out = buffer}});
        // Both send before they receive, in one queue.
        const MessageKey key{{1 - d}, 5, 0};
        device.issue(
            {.event = 1, .queue = QueueKind::Pipeline, .communication = SendCall{{key, *arena + 4000, 12}}});
        device.issue({.event = 2,
            .queue = QueueKind::Pipeline,
            .communication = ReceiveCall{{key, *arena + 4012, 12}}});
        device.issue({.event = 3, .work = [](DeviceQueue &) { return Result<void>{}; }});
    }
    for (std::size_t d = 0; d < 2; ++d)
        devices.device(d).finish();
    for (std::size_t d = 0; d < 2; ++d) {
        for (const auto &[event, task] : told[d].tasks)
            EXPECT_FALSE(task.error) << event;
        EXPECT_TRUE(std::equal(sent[1 - d].begin(), sent[1 - d].end(), memory[d] + 1003));
        for (std::size_t i = 0; i < 1000; ++i)
            ASSERT_EQ(memory[d][i], values[0][i] + values[1][i]);
    }
    // Nobody joins the second collective: it ends with the abort, and with an error.
    Told waiting;
    DeviceBackend &device = devices.device(0);
    device.begin(1, waiting);
    const CollectiveBuffer buffer{reinterpret_cast<std::byte *>(memory[0]), DataType::Float32, {1000}};
    device.issue({.event = 0, .communication = CollectiveCall{.sequence = 1, .in = buffer, .out = buffer}});
    devices.abort();
    device.finish();
    ASSERT_TRUE(waiting.tasks[0].error);
    EXPECT_EQ(waiting.tasks[0].error->code, ErrorCode::Cancelled);
}

} // namespace
} // namespace planloom

#define PLANLOOM_BACKEND_TEST(Devices, Name)                                                                 \
    TEST(Devices, Name)                                                                                      \
    {                                                                                                        \
        if (const std::string why = whyNoDevices<Devices>(); !why.empty())                                   \
            GTEST_SKIP() << why;                                                                             \
        test##Name<Devices>();                                                                               \
    }
#define PLANLOOM_BACKEND_TESTS(Devices)                                                                      \
    PLANLOOM_BACKEND_TEST(Devices, QueuesKeepTheirOrderAndWaitForEvents)                                     \
    PLANLOOM_BACKEND_TEST(Devices, MemoryIsAlignedAndHoldsWhatIsPutThere)                                    \
    PLANLOOM_BACKEND_TEST(Devices, CombinationsAndConversionsAreThoseOfTheirDefinitions)                     \
    PLANLOOM_BACKEND_TEST(Devices, KernelsComputeWhatTheOperatorsSay)                                        \
    PLANLOOM_BACKEND_TEST(Devices, FailuresAreToldAndWhatComesLaterStillRuns)                                \
    PLANLOOM_BACKEND_TEST(Devices, CommunicationGoesOnBesideComputationAndEndsWithAnAbort)
