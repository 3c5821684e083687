#include "widgets/compare/pareto.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace planloom {
namespace {

bool beats(const ParetoPoint &a, const ParetoPoint &b)
{
    return a.x <= b.x && a.y <= b.y && (a.x < b.x || a.y < b.y);
}

TEST(ParetoFront, OfNothingIsEmpty)
{
    EXPECT_TRUE(paretoFront({}).empty());
}

TEST(ParetoFront, LeavesOutWhatIsBeaten)
{
    EXPECT_EQ(paretoFront({{3, 1}, {1, 3}, {2, 2}, {2, 3}, {3, 3}}), (std::vector<std::size_t>{1, 2, 0}));
}

TEST(ParetoFront, HasOneOfEqualPoints)
{
    EXPECT_EQ(paretoFront({{1, 1}, {1, 1}, {1, 2}}), (std::vector<std::size_t>{0}));
}

TEST(ParetoFront, IsThatOfTryingEveryPairOnAThousandPoints)
{
    std::mt19937 random(11);
    for (const int values : {20, 1000, 1'000'000}) { // with many, few and no equal ones
        SCOPED_TRACE(values);
        std::vector<ParetoPoint> points;
        for (int i = 0; i < 1000; ++i) {
            points.push_back({static_cast<double>(random() % static_cast<unsigned>(values)),
                static_cast<double>(random() % static_cast<unsigned>(values))});
        }
        std::set<std::pair<double, double>> expected;
        for (const ParetoPoint &point : points) {
            bool beaten = false;
            for (const ParetoPoint &other : points)
                beaten = beaten || beats(other, point);
            if (!beaten)
                expected.emplace(point.x, point.y);
        }
        const std::vector<std::size_t> front = paretoFront(points);
        std::set<std::pair<double, double>> found;
        for (const std::size_t i : front)
            found.emplace(points[i].x, points[i].y);
        EXPECT_EQ(found, expected);
        EXPECT_EQ(front.size(), expected.size()); // each once
        for (std::size_t i = 1; i < front.size(); ++i)
            EXPECT_LT(points[front[i - 1]].x, points[front[i]].x);
    }
}

} // namespace
} // namespace planloom
