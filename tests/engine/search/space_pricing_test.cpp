#include "engine/search/space_pricing.h"

#include "tests/engine/search/search_site.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <utility>

namespace planloom {
namespace {

class SpacePricingTest : public testing::Test
{
protected:
    void SetUp() override
    {
        auto space = searchSpaceOf(m_site.model, m_site.cluster, m_site.devices, {});
        ASSERT_TRUE(space);
        m_space = *std::move(space);
    }

    void makeEstimator()
    {
        auto made = StepEstimator::make(m_site.model, m_site.cluster, m_site.devices, {}, m_space,
            m_site.costs, PrecisionPreset::Float32);
        ASSERT_TRUE(made);
        m_estimator = *std::move(made);
    }

    /// @param note  called behind every configuration that is priced
    SpacePricing pricing(std::function<void()> note, const std::stop_token &stop = {})
    {
        return SpacePricing({.estimator = m_estimator.get(),
            .space = &m_space,
            .correction = &m_correction,
            .worked = &m_worked,
            .mostSeconds = 1000,
            .note = [note](double, double) { note(); },
            .stop = stop});
    }

    const Site m_site{zooTraining("zoo:gpt?layers=4&hidden=512&heads=8&seq=256&vocab=2048&batch=8"), 8};
    SearchSpace m_space{};
    std::unique_ptr<StepEstimator> m_estimator{};
    const Correction m_correction{};
    const WorkClock m_worked{};
};

/// Pricing a configuration whose partition is known takes little, but there are many of them.
TEST_F(SpacePricingTest, StopsBehindEveryConfiguration)
{
    makeEstimator();
    int priced = 0;
    ASSERT_TRUE(pricing([&] { ++priced; }).price()); // all partitions are known from now on
    ASSERT_GT(priced, 20);
    priced = 0;
    std::stop_source source;
    const auto third = [&] {
        if (++priced == 3)
            source.request_stop();
    };
    const auto stopped = pricing(third, source.get_token()).price();
    ASSERT_FALSE(stopped);
    EXPECT_EQ(stopped.error().code, ErrorCode::Cancelled);
    EXPECT_EQ(priced, 3);
}

/// Also what did not fit: its price without the limit is enough to know.
TEST_F(SpacePricingTest, LeavesAloneWhatTookLongerBefore)
{
    m_space.memoryLimit = 64 << 20; // some fit
    makeEstimator();
    auto before = pricing([] {});
    ASSERT_TRUE(before.price());
    const auto again = [&](const KnownBounds &known) {
        int priced = 0;
        auto after = pricing([&] { ++priced; });
        after.takeOver(known);
        EXPECT_TRUE(after.price());
        double best = std::numeric_limits<double>::infinity();
        for (const StepEstimate &each : after.book().priced())
            if (after.book().fits(each))
                best = std::min(best, each.seconds);
        return std::pair(priced, best);
    };
    KnownBounds ofFitting = before.book().known();
    for (auto &[configuration, known] : ofFitting)
        known.priced = 0;
    const auto [all, bestOfAll] = again(ofFitting);
    const auto [few, bestOfFew] = again(before.book().known());
    EXPECT_TRUE(std::isfinite(bestOfAll));
    EXPECT_DOUBLE_EQ(bestOfFew, bestOfAll);
    EXPECT_LT(few, all);
}

} // namespace
} // namespace planloom
