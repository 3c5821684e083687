#pragma once

#include <QtCore/QCoreApplication>
#include <QtCore/QElapsedTimer>

#include <algorithm>
#include <chrono>
#include <functional>
#include <iostream>
#include <thread>
#include <vector>

namespace planloom::bench {

constexpr int kWindowPatience = 120'000; ///< ms

inline double percentile(std::vector<double> values, double share)
{
    if (values.empty())
        return 0;
    std::sort(values.begin(), values.end());
    return values[std::min(
        values.size() - 1, static_cast<std::size_t>(share * static_cast<double>(values.size())))];
}

/// Processes events until `done` or patience ends. @return false for the latter
inline bool waitUntil(const std::function<bool()> &done, const char *what)
{
    QElapsedTimer clock;
    clock.start();
    while (!done()) {
        if (clock.elapsed() > kWindowPatience) {
            std::cerr << "waited in vain for " << what << '\n';
            return false;
        }
        QCoreApplication::processEvents();
        std::this_thread::sleep_for(std::chrono::microseconds(500)); // the solver wants the processor
    }
    return true;
}

/// Milliseconds on the wall.
inline double since(const QElapsedTimer &clock)
{
    return static_cast<double>(clock.nsecsElapsed()) * 1e-6;
}

} // namespace planloom::bench
