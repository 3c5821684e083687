#include "widgets/memory/treemap.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace planloom {
namespace {

TEST(Treemap, FillsTheAreaInProportionWithoutOverlaps)
{
    std::mt19937 random(3);
    for (int round = 0; round < 200; ++round) {
        std::vector<double> weights(1 + random() % 60);
        for (double &weight : weights)
            weight = 1 + static_cast<double>(random() % 1000);
        std::sort(weights.rbegin(), weights.rend());
        const QRectF area(10, 20, 50 + random() % 500, 50 + random() % 300);
        const std::vector<QRectF> rects = treemapOf(weights, area);
        ASSERT_EQ(rects.size(), weights.size());
        const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
        double surface = 0;
        for (std::size_t i = 0; i < rects.size(); ++i) {
            const double mine = rects[i].width() * rects[i].height();
            EXPECT_NEAR(mine / (area.width() * area.height()), weights[i] / total, 1e-6);
            EXPECT_TRUE(area.adjusted(-1e-6, -1e-6, 1e-6, 1e-6).contains(rects[i]));
            surface += mine;
            for (std::size_t j = 0; j < i; ++j) {
                const QRectF common = rects[i].intersected(rects[j]);
                EXPECT_LT(common.width() * common.height(), 1e-3);
            }
        }
        EXPECT_NEAR(surface, area.width() * area.height(), 1e-3 * surface);
    }
}

TEST(Treemap, EqualWeightsAreNearlySquares)
{
    for (const QRectF &rect : treemapOf(std::vector<double>(16, 1.0), QRectF(0, 0, 400, 400)))
        EXPECT_LT(std::max(rect.width(), rect.height()) / std::min(rect.width(), rect.height()), 1.5);
}

TEST(Treemap, NothingToShowIsNoRectangle)
{
    EXPECT_TRUE(treemapOf({}, QRectF(0, 0, 10, 10)).empty());
    EXPECT_EQ(treemapOf({1, 2}, QRectF()).size(), 2U);
}

} // namespace
} // namespace planloom
