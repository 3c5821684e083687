#pragma once

#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

namespace planloom {

/// Runs `dispose` on a thread kept for this, after what was given before; at once, on the calling thread,
/// while the program ends. Thread-safe.
void disposeInBackground(std::function<void()> dispose);

/// Waits until all that was given to `disposeInBackground` before this call is gone. Not from within a
/// disposal.
void waitForDisposal();

/// A shared value that is destroyed in the background, whoever drops it last. For snapshots with millions of
/// parts, which views hold: giving their memory back takes tens of milliseconds, which no thread that people
/// wait for should spend.
template<class T> std::shared_ptr<const T> sharedInBackground(T &&value)
{
    using Value = std::remove_cvref_t<T>;
    return std::shared_ptr<const Value>(new Value(std::forward<T>(value)),
        [](const Value *gone) { disposeInBackground([gone] { delete gone; }); });
}

} // namespace planloom
