#include "widgets/design/session_writer.h"

#include <QtCore/QMetaObject>

#include <chrono>
#include <utility>

namespace planloom {

SessionWriter::SessionWriter(Make make, QObject *parent) : QObject(parent), m_make(std::move(make))
{
    // The thread ends before this object's signals do: `m_thread` is joined first in the destructor.
    m_ended = m_end.get_future().share();
    m_thread = std::jthread([this](std::stop_token stop) {
        work(std::move(stop));
        m_store.reset(); // the file is free for others
        m_end.set_value();
        QMetaObject::invokeMethod(this, &SessionWriter::finished, Qt::QueuedConnection);
    });
}

SessionWriter::~SessionWriter()
{
    finish();
    m_thread.join();
}

void SessionWriter::finish()
{
    m_thread.request_stop();
    m_wake.notify_all();
}

void SessionWriter::post(Write write)
{
    ++m_posted;
    {
        const std::lock_guard lock(m_mutex);
        m_queue.push_back(std::move(write));
    }
    m_wake.notify_all();
}

void SessionWriter::work(std::stop_token stop)
{
    std::uint64_t done = 0;
    bool failing = false;
    for (;;) {
        Write write;
        {
            std::unique_lock lock(m_mutex);
            m_wake.wait(lock, stop, [this] { return !m_queue.empty(); });
            if (m_queue.empty())
                return; // asked to stop, and all is written
            write = m_queue.front(); // it stays first in line until it is done
        }
        Result<void> outcome{};
        if (!m_store) {
            if (auto made = m_make())
                m_store.emplace(*std::move(made));
            else
                outcome = made.error();
        }
        if (m_store)
            outcome = write(*m_store);
        if (outcome) {
            failing = false;
            ++done;
            bool idle = false;
            {
                const std::lock_guard lock(m_mutex);
                m_queue.pop_front();
                idle = m_queue.empty();
            }
            if (idle)
                QMetaObject::invokeMethod(this, [this, done] { report(done, {}); }, Qt::QueuedConnection);
            continue;
        }
        if (stop.stop_requested())
            return; // a last try failed: there is nobody left to wait for a better disk
        if (!std::exchange(failing, true)) {
            QMetaObject::invokeMethod(
                this, [this, done, error = outcome.error()] { report(done, error); }, Qt::QueuedConnection);
        }
        std::unique_lock lock(m_mutex);
        const std::size_t waiting = m_queue.size();
        m_wake.wait_for(lock, stop, std::chrono::milliseconds(kRetryMilliseconds),
            [this, waiting] { return m_queue.size() != waiting; });
    }
}

void SessionWriter::report(std::uint64_t done, const std::optional<Error> &error)
{
    m_done = done;
    m_failed = error.has_value();
    if (error)
        Q_EMIT failed(*error);
    else if (isAcknowledged())
        Q_EMIT acknowledged();
}

} // namespace planloom
