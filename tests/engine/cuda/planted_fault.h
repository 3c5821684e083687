#pragma once

#include "engine/runtime/run.h"

#include "tests/engine/cuda/fake_cuda.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>

namespace planloom {

/// Runs a plan on a fake all of whose calls fail from the one with number `after` on, by turns with an error
/// of the GPU and for want of memory: the run is to name the error, and to leave nothing behind.
/// @param number  of the fault: the fake's seed, and whose turn it is
/// @param open  the run's devices on a fake @return whether the run came upon the fault
inline bool failsAsPlanted(const ExecutionPlan &plan, RunOptions options, std::uint32_t number,
    std::int64_t after, const std::function<OpenDevices(const std::shared_ptr<FakeCuda> &)> &open)
{
    const auto cuda = std::make_shared<FakeCuda>(number);
    cuda->failAfter = after;
    cuda->failure = number % 2 == 0 ? 719 : kCudaOutOfMemory;
    options.devices = open(cuda);
    const auto got = runOnCpu(plan, options);
    options.devices = {};
    EXPECT_TRUE(got || got.error().message.find(std::to_string(cuda->failure)) != std::string::npos
        || got.error().code == ErrorCode::Cancelled)
        << describe(got.error());
    EXPECT_EQ(cuda->live(), 0U) << number;
    return !got;
}

} // namespace planloom
