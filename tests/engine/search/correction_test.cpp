#include "engine/search/search_memory.h"

#include <gtest/gtest.h>

namespace planloom {
namespace {

/// What other stages gained in one pipeline, those may gain whose stages were not moved: nobody else.
TEST(Correction, PipelinesThatWereNotMovedMayGainAsMuch)
{
    const Configuration moved{.ranks = 4, .schedule = ScheduleKind::OneFOneB};
    const Configuration other{.ranks = 2, .schedule = ScheduleKind::OneFOneB};
    const Configuration single{.replicas = 4};
    Correction correction;
    for (const Configuration &each : {moved, other, single})
        correction.learn(each, 2.0, 2.0, 2.0);
    const double before = correction.leastOf(other);
    const double ofMoved = correction.leastOf(moved);
    const double ofSingle = correction.leastOf(single);
    correction.learnMoved(moved, 0.9);
    EXPECT_DOUBLE_EQ(correction.leastOf(other), 0.9 * before);
    EXPECT_DOUBLE_EQ(correction.leastOf(moved), ofMoved);
    EXPECT_DOUBLE_EQ(correction.leastOf(single), ofSingle);
    correction.learnMoved(other, 1);
    EXPECT_DOUBLE_EQ(correction.leastOf(other), before);
}

} // namespace
} // namespace planloom
