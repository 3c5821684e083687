#pragma once

#include <cstddef>
#include <functional>

namespace planloom {

/// Calls `work(begin, end)` for stretches that make up [0, count), on this thread and on others that are kept
/// for it, and returns when all are done. `work` must not throw, and not call this again.
/// @param least  length of a stretch that is worth another thread; fewer than twice as many are one call
///
/// While another thread is at it, all is done on the calling thread: nobody waits for threads. Thread-safe.
void inParallel(std::size_t count, std::size_t least,
    const std::function<void(std::size_t begin, std::size_t end)> &work);

} // namespace planloom
