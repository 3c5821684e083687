// Vectors that keep few values in themselves (inline_vector.h), and those whose copies share them
// (shared_vector.h), against std::vector.

#include "engine/base/inline_vector.h"
#include "engine/base/shared_vector.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

using namespace planloom;

namespace {

using Short = InlineVector<std::int32_t, 4>;

std::vector<std::int32_t> plain(const Short &values)
{
    return {values.begin(), values.end()};
}

} // namespace

TEST(InlineVector, RandomStepsMeanWhatTheyMeanForAVector)
{
    std::mt19937 random(7);
    for (int round = 0; round < 300; ++round) {
        Short ours;
        std::vector<std::int32_t> theirs;
        for (int step = 0; step < 60; ++step) {
            const auto value = static_cast<std::int32_t>(random() % 100);
            const std::size_t at = theirs.empty() ? 0 : random() % theirs.size();
            const auto offset = static_cast<std::ptrdiff_t>(at);
            switch (random() % 10) {
            case 0:
            case 1:
            case 2:
                ours.push_back(value);
                theirs.push_back(value);
                break;
            case 3:
                ours.insert(ours.begin() + offset, value);
                theirs.insert(theirs.begin() + offset, value);
                break;
            case 4:
                if (!theirs.empty()) {
                    ours.erase(ours.begin() + offset);
                    theirs.erase(theirs.begin() + offset);
                }
                break;
            case 5:
                ours.resize(at + 2, value);
                theirs.resize(at + 2, value);
                break;
            case 6: {
                const std::vector<std::int32_t> more(random() % 6, value);
                ours.insert(ours.begin() + offset, more.begin(), more.end());
                theirs.insert(theirs.begin() + offset, more.begin(), more.end());
                break;
            }
            case 7: {
                Short copy = ours;
                EXPECT_EQ(copy, ours);
                ours = std::move(copy);
                break;
            }
            case 8:
                if (!theirs.empty()) {
                    ours.push_back(ours[at]); // a value of its own
                    theirs.push_back(theirs[at]);
                }
                break;
            case 9:
                if (!theirs.empty()) {
                    ours.pop_back();
                    theirs.pop_back();
                }
                break;
            }
            ASSERT_EQ(plain(ours), theirs);
            ASSERT_EQ(ours.empty(), theirs.empty());
        }
        Short moved = std::move(ours);
        EXPECT_EQ(plain(moved), theirs);
    }
}

TEST(InlineVector, ComparesAsVectorsDo)
{
    const std::vector<std::vector<std::int32_t>> lists{
        {}, {1}, {1, 2, 3, 4, 5, 6}, {1, 2}, {2}, {1, 2, 3, 4, 5}};
    for (const auto &a : lists) {
        for (const auto &b : lists) {
            EXPECT_EQ(Short(a) == Short(b), a == b);
            EXPECT_EQ(Short(a) < Short(b), a < b);
        }
    }
}

TEST(SharedVector, CopiesShareUntilOneChanges)
{
    SharedVector<int> first(std::vector<int>{1, 2, 3});
    const SharedVector<int> second = first;
    EXPECT_TRUE(first.sharesWith(second));
    EXPECT_EQ(first, second);
    first.push_back(4);
    EXPECT_FALSE(first.sharesWith(second));
    EXPECT_EQ(first.values(), (std::vector<int>{1, 2, 3, 4}));
    EXPECT_EQ(second.values(), (std::vector<int>{1, 2, 3}));
    EXPECT_EQ(first.back(), 4);
    EXPECT_NE(first, second);
}

TEST(SharedVector, AnEmptyOneIsAnOrdinaryEmptyList)
{
    SharedVector<int> none;
    EXPECT_TRUE(none.empty());
    EXPECT_EQ(none.size(), 0u);
    EXPECT_EQ(none.begin(), none.end());
    EXPECT_EQ(none, SharedVector<int>(std::vector<int>{}));
    none.push_back(1);
    EXPECT_EQ(none.front(), 1);
}
