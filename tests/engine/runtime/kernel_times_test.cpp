// What runs of a kernel say of it where other programs take cores away.

#include "engine/runtime/machine/kernel_times.h"

#include <gtest/gtest.h>

namespace planloom {
namespace {

TEST(KernelTimes, OfAShortKernelItsFastestRunCounts)
{
    KernelTimes times;
    for (const double disturbed : {9.0, 1.0, 4.0, 1.02, 30.0})
        times.add(2e-4 * disturbed, 3.6e-4);
    EXPECT_DOUBLE_EQ(times.seconds(), 2e-4);
    EXPECT_DOUBLE_EQ(times.coreSeconds(), 3.6e-4);
    EXPECT_DOUBLE_EQ(times.spread(), 3);
    EXPECT_TRUE(times.areSettled());
}

TEST(KernelTimes, ARunThatNoOtherConfirmsIsNotSettled)
{
    KernelTimes times;
    times.add(2e-4, 2e-4);
    EXPECT_FALSE(times.areSettled());
    times.add(3e-4, 2e-4);
    EXPECT_FALSE(times.areSettled());
    times.add(2.08e-4, 2e-4);
    EXPECT_TRUE(times.areSettled());
}

TEST(KernelTimes, WhereEveryRunWasDisturbedWhatCoresWorkedCounts)
{
    // 40 ms of work in loops: two cores do it in 20, but another program always has one of them.
    KernelTimes times;
    for (const double elapsed : {0.041, 0.038, 0.036, 0.037})
        times.add(elapsed, 0.040);
    EXPECT_FALSE(times.wereDisturbed()); // nobody has said what two cores would take
    EXPECT_TRUE(times.needShare());
    EXPECT_FALSE(times.areSettled()); // though two of them agree
    EXPECT_DOUBLE_EQ(times.seconds(), 0.036);
    times.setShare(0.5);
    EXPECT_TRUE(times.wereDisturbed());
    EXPECT_FALSE(times.areSettled());
    EXPECT_DOUBLE_EQ(times.seconds(), 0.020);
    EXPECT_DOUBLE_EQ(times.coreSeconds(), 0.040);
    // One run in peace is believed, though its pieces were not quite equal.
    times.add(0.0215, 0.040);
    times.add(0.0218, 0.041);
    EXPECT_TRUE(times.areSettled());
    EXPECT_DOUBLE_EQ(times.seconds(), 0.0215);
}

TEST(KernelTimes, WhatRunsOnOneCoreTakesWhatThatCoreWorks)
{
    KernelTimes times;
    times.setShare(1);
    times.add(0.030, 0.010);
    EXPECT_DOUBLE_EQ(times.seconds(), 0.010);
    EXPECT_DOUBLE_EQ(times.coreSeconds(), 0.010);
}

} // namespace
} // namespace planloom
