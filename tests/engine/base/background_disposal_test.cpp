#include "engine/base/background_disposal.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

using namespace planloom;

namespace {

/// Says where it was destroyed.
class Witness
{
public:
    explicit Witness(std::atomic<int> *gone, std::thread::id *where = nullptr)
        : m_gone(gone)
        , m_where(where)
    {
    }
    Witness(Witness &&other) noexcept
        : m_gone(std::exchange(other.m_gone, nullptr))
        , m_where(other.m_where)
    {
    }
    Witness(const Witness &) = delete;
    Witness &operator=(const Witness &) = delete;
    Witness &operator=(Witness &&) = delete;
    ~Witness()
    {
        if (!m_gone)
            return;
        if (m_where)
            *m_where = std::this_thread::get_id();
        ++*m_gone;
    }

private:
    std::atomic<int> *m_gone;
    std::thread::id *m_where;
};

struct Outer {
    std::shared_ptr<const Witness> inner{};
};

} // namespace

TEST(BackgroundDisposal, DestroysOnAnotherThreadOnceTheLastIsGone)
{
    std::atomic<int> gone = 0;
    std::thread::id where;
    auto first = sharedInBackground(Witness(&gone, &where));
    auto second = first;
    first.reset();
    waitForDisposal();
    EXPECT_EQ(gone, 0);
    second.reset();
    waitForDisposal();
    EXPECT_EQ(gone, 1);
    EXPECT_NE(where, std::this_thread::get_id());
}

TEST(BackgroundDisposal, TakesWhatHoldsOthersOfItsKind)
{
    std::atomic<int> gone = 0;
    auto outer = sharedInBackground(Outer{sharedInBackground(Witness(&gone))});
    outer.reset();
    waitForDisposal(); // the outer one
    waitForDisposal(); // what it let go
    EXPECT_EQ(gone, 1);
}

TEST(BackgroundDisposal, LosesNothingFromManyThreads)
{
    constexpr int kThreads = 4;
    constexpr int kEach = 500;
    std::atomic<int> gone = 0;
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
        threads.emplace_back([&gone] {
            for (int i = 0; i < kEach; ++i)
                sharedInBackground(Witness(&gone)).reset();
        });
    }
    for (std::thread &thread : threads)
        thread.join();
    waitForDisposal();
    EXPECT_EQ(gone, kThreads * kEach);
}

TEST(BackgroundDisposal, RunsInOrder)
{
    std::vector<int> order;
    for (int i = 0; i < 100; ++i)
        disposeInBackground([&order, i] { order.push_back(i); });
    waitForDisposal();
    ASSERT_EQ(order.size(), 100u);
    for (int i = 0; i < 100; ++i)
        EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
}
