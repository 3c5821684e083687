#include "engine/table/allowed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

namespace planloom {
namespace {

constexpr int kUniverse = 6;

/// What a set holds of 0 .. 5, asked one by one.
std::set<int> heldBy(const Allowed<int> &allowed)
{
    std::set<int> held;
    for (int value = 0; value < kUniverse; ++value) {
        if (allowed.contains(value))
            held.insert(value);
    }
    return held;
}

Allowed<int> drawn(std::mt19937 &random)
{
    std::vector<int> values;
    for (int value = 0; value < kUniverse; ++value) {
        if (random() % 2 == 0)
            values.push_back(value);
    }
    std::shuffle(values.begin(), values.end(), random);
    return random() % 2 == 0 ? Allowed<int>::oneOf(values) : Allowed<int>::anythingBut(values);
}

TEST(Allowed, KnowsAnythingExactAndNothing)
{
    EXPECT_TRUE(Allowed<int>{}.isAnything());
    EXPECT_FALSE(Allowed<int>{}.isEmpty());
    EXPECT_EQ(Allowed<int>{}.preferred(), nullptr);
    ASSERT_NE(Allowed<int>::only(3).exact(), nullptr);
    EXPECT_EQ(*Allowed<int>::only(3).exact(), 3);
    EXPECT_EQ(Allowed<int>::oneOf({4, 2}).exact(), nullptr);
    EXPECT_EQ(*Allowed<int>::oneOf({4, 2}).preferred(), 4);
    EXPECT_TRUE(Allowed<int>::oneOf({}).isEmpty());
    EXPECT_FALSE(Allowed<int>::anythingBut({1}).isListed());
}

TEST(Allowed, IntersectionsHoldWhatBothHold)
{
    std::mt19937 random(7);
    int empty = 0;
    for (int i = 0; i < 2000; ++i) {
        const Allowed<int> a = drawn(random);
        const Allowed<int> b = drawn(random);
        const Allowed<int> both = intersection(a, b);
        std::set<int> expected;
        for (const int value : heldBy(a)) {
            if (b.contains(value))
                expected.insert(value);
        }
        EXPECT_EQ(heldBy(both), expected);
        EXPECT_EQ(heldBy(intersection(b, a)), expected);
        // Only a listed set can be known to be empty; the rest of the world is not known here.
        EXPECT_EQ(both.isEmpty(), both.isListed() && expected.empty());
        empty += both.isEmpty() ? 1 : 0;
        const Allowed<int> c = drawn(random);
        EXPECT_EQ(heldBy(intersection(both, c)), heldBy(intersection(a, intersection(b, c))));
        EXPECT_EQ(heldBy(intersection(a, Allowed<int>{})), heldBy(a));
    }
    EXPECT_GT(empty, 50);
}

TEST(Allowed, KeepsTheOrderOfTheFirst)
{
    const auto both = intersection(Allowed<int>::oneOf({5, 1, 3}), Allowed<int>::oneOf({3, 5}));
    EXPECT_EQ(both.members(), (std::vector<int>{5, 3}));
    EXPECT_EQ(intersection(Allowed<int>::anythingBut({5}), Allowed<int>::oneOf({5, 1, 3})).members(),
        (std::vector<int>{1, 3}));
}

TEST(Allowed, AsksWhatAgrees)
{
    struct SameTens {
        bool operator()(int a, int b) const { return a / 10 == b / 10; }
    };
    using Tens = Allowed<int, SameTens>;
    EXPECT_EQ(intersection(Tens::only(12), Tens::oneOf({19, 31})).members(), std::vector<int>{12});
    EXPECT_TRUE(intersection(Tens::only(12), Tens::only(22)).isEmpty());
    EXPECT_TRUE(Tens::anythingBut({12}).contains(22));
    EXPECT_FALSE(Tens::anythingBut({12}).contains(17));
}

} // namespace
} // namespace planloom
