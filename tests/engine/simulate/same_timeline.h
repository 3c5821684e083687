#pragma once

#include "engine/simulate/timeline.h"

#include <gtest/gtest.h>

namespace planloom {

inline void expectSameTimeline(const Timeline &a, const Timeline &b)
{
    EXPECT_EQ(a.spans.device, b.spans.device);
    EXPECT_EQ(a.spans.queue, b.spans.queue);
    EXPECT_EQ(a.spans.segment, b.spans.segment);
    EXPECT_EQ(a.spans.instruction, b.spans.instruction);
    EXPECT_EQ(a.spans.microBatch, b.spans.microBatch);
    EXPECT_EQ(a.spans.start, b.spans.start);
    EXPECT_EQ(a.spans.duration, b.spans.duration);
    EXPECT_EQ(a.deviceBegin, b.deviceBegin);
    ASSERT_EQ(a.memory.size(), b.memory.size());
    for (std::size_t d = 0; d < a.memory.size(); ++d) {
        EXPECT_EQ(a.memory[d].time, b.memory[d].time);
        EXPECT_EQ(a.memory[d].bytes, b.memory[d].bytes);
        EXPECT_EQ(a.memory[d].peak, b.memory[d].peak);
        EXPECT_EQ(a.memory[d].atPeak, b.memory[d].atPeak);
    }
    EXPECT_EQ(a.hostPeak, b.hostPeak);
    ASSERT_EQ(a.traffic.size(), b.traffic.size());
    for (std::size_t i = 0; i < a.traffic.size(); ++i) {
        EXPECT_EQ(a.traffic[i].kind, b.traffic[i].kind);
        EXPECT_EQ(a.traffic[i].group, b.traffic[i].group);
        EXPECT_EQ(a.traffic[i].from, b.traffic[i].from);
        EXPECT_EQ(a.traffic[i].to, b.traffic[i].to);
        EXPECT_EQ(a.traffic[i].bytes, b.traffic[i].bytes);
        EXPECT_EQ(a.traffic[i].count, b.traffic[i].count);
    }
    EXPECT_EQ(a.step, b.step);
    EXPECT_EQ(a.busy, b.busy);
    EXPECT_EQ(a.exposedCommunication, b.exposedCommunication);
    EXPECT_EQ(a.symmetryClass, b.symmetryClass);
}

} // namespace planloom
