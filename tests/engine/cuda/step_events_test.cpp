#include "engine/cuda/backend/step_events.h"

#include "engine/cuda/backend/cuda_communicator.h"
#include "tests/engine/cuda/fake_cuda.h"

#include <gtest/gtest.h>

#include <chrono>

using namespace planloom;
using namespace std::chrono_literals;

namespace {

/// A task of the compute queue that does nothing.
CudaTask taskOf(EventId event)
{
    DeviceTask task;
    task.event = event;
    return {std::move(task), nullptr};
}

/// Carries out all that is in the streams.
void finishAll(FakeCuda &cuda)
{
    while (cuda.advance(1)) { }
}

} // namespace

TEST(StepEvents, TellWhenATaskRanOnTheClockOfTheHost)
{
    FakeCuda cuda;
    CudaStream stream = nullptr;
    ASSERT_EQ(cuda.createStream(&stream, false), kCudaSuccess);
    {
        StepEvents events{cuda};
        events.begin(StepMode::Issue, false);
        ASSERT_TRUE(events.make(2));
        const auto before = StepEvents::Clock::now();
        const auto anchored = events.anchor(stream, 10s);
        ASSERT_TRUE(anchored && *anchored);
        const CudaTask first = taskOf(0);
        const CudaTask second = taskOf(1);
        for (const CudaTask *task : {&first, &second}) {
            ASSERT_TRUE(events.recordStart(*task, stream));
            ASSERT_EQ(events.recordEnd(*task, stream), kCudaSuccess);
        }
        finishAll(cuda);
        EXPECT_EQ(events.query(second), kCudaSuccess);
        EXPECT_TRUE(events.recordsTimes()); // each that is issued has its times, whoever asks
        StepEvents::Clock::time_point start{};
        StepEvents::Clock::time_point end{};
        events.timesOf(first, start, end);
        EXPECT_GE(start, before);
        EXPECT_GE(end, start);
        StepEvents::Clock::time_point next{};
        events.timesOf(second, next, end);
        EXPECT_GE(next, start);
        EXPECT_EQ(cuda.live(), 6U); // a stream, the anchor, and two events for each task
    }
    ASSERT_EQ(cuda.destroyStream(stream), kCudaSuccess);
    EXPECT_EQ(cuda.live(), 0U);
}

TEST(StepEvents, TasksOfOneKernelShareItsTime)
{
    FakeCuda cuda;
    cuda.takes = [](const std::string &) { return 1000; };
    CudaStream stream = nullptr;
    ASSERT_EQ(cuda.createStream(&stream, false), kCudaSuccess);
    StepEvents events{cuda};
    events.begin(StepMode::Issue, true);
    ASSERT_TRUE(events.make(2));
    ASSERT_TRUE(events.anchor(stream, 10s));
    CudaTask first = taskOf(0);
    CudaTask second = taskOf(1);
    first.share = {0, 1, 0, 0.25, true};
    second.share = {0, 1, 0.25, 1, false};
    ASSERT_TRUE(events.recordStart(first, stream));
    std::byte memory[4];
    ASSERT_EQ(cuda.fill(memory, 0, sizeof memory, stream), kCudaSuccess);
    ASSERT_EQ(events.recordEnd(second, stream), kCudaSuccess);
    finishAll(cuda);
    StepEvents::Clock::time_point start{};
    StepEvents::Clock::time_point middle{};
    StepEvents::Clock::time_point begin{};
    StepEvents::Clock::time_point end{};
    events.timesOf(first, start, middle);
    events.timesOf(second, begin, end);
    EXPECT_EQ(begin, middle);
    EXPECT_GE(end - start, 1ms);
    EXPECT_NEAR(
        static_cast<double>((middle - start).count()), 0.25 * static_cast<double>((end - start).count()), 2);
    ASSERT_EQ(cuda.destroyStream(stream), kCudaSuccess);
}

TEST(StepEvents, AnAnchorThatDoesNotComeIsGivenUp)
{
    FakeCuda cuda;
    cuda.stuckAfter = 0;
    CudaStream stream = nullptr;
    ASSERT_EQ(cuda.createStream(&stream, false), kCudaSuccess);
    StepEvents events{cuda};
    events.begin(StepMode::Issue, true);
    ASSERT_TRUE(events.make(1));
    const auto anchored = events.anchor(stream, 1ms);
    ASSERT_TRUE(anchored);
    EXPECT_FALSE(*anchored);
}

TEST(StepEvents, OfAGraphOtherEventsTellTheTimesIfSomebodyAsks)
{
    FakeCuda cuda;
    StepEvents events{cuda};
    events.begin(StepMode::Capture, false);
    ASSERT_TRUE(events.make(3));
    EXPECT_EQ(cuda.live(), 13U); // the anchor, six that order, six that tell times
    EXPECT_FALSE(events.recordsTimes());
    events.begin(StepMode::Replay, true);
    EXPECT_TRUE(events.recordsTimes());
    events.begin(StepMode::Capture, false);
    events.issueAnew();
    EXPECT_EQ(events.mode(), StepMode::Issue);
    EXPECT_TRUE(events.recordsTimes());
}
