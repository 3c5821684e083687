#include "engine/search/space_pricing.h"

#include "tests/engine/search/search_site.h"

#include <gtest/gtest.h>

namespace planloom {
namespace {

/// Pricing a configuration whose partition is known takes little, but there are many of them.
TEST(SpacePricing, StopsBehindEveryConfiguration)
{
    const Site site(zooTraining("zoo:gpt?layers=4&hidden=512&heads=8&seq=256&vocab=2048&batch=8"), 8);
    const auto space = searchSpaceOf(site.model, site.cluster, site.devices, {});
    ASSERT_TRUE(space);
    const auto estimator = StepEstimator::make(
        site.model, site.cluster, site.devices, {}, *space, site.costs, PrecisionPreset::Float32);
    ASSERT_TRUE(estimator);
    const Correction correction;
    const WorkClock worked;
    std::stop_source never;
    std::stop_source source;
    int priced = 0;
    const auto price = [&](const std::stop_source &stop, int most) {
        SpacePricing::Setting setting{.estimator = estimator->get(),
            .space = &*space,
            .correction = &correction,
            .worked = &worked,
            .mostSeconds = 1000,
            .stop = stop.get_token()};
        setting.note = [&, most](double, double) {
            if (++priced == most)
                source.request_stop();
        };
        return SpacePricing(setting).price();
    };
    ASSERT_TRUE(price(never, 0)); // all partitions are known from now on
    ASSERT_GT(priced, 20);
    priced = 0;
    const auto stopped = price(source, 3);
    ASSERT_FALSE(stopped);
    EXPECT_EQ(stopped.error().code, ErrorCode::Cancelled);
    EXPECT_EQ(priced, 3);
}

} // namespace
} // namespace planloom
