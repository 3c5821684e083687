#include "widgets/design/session_writer.h"

#include <QtCore/QMetaObject>

#include <utility>

namespace planloom {

namespace {

/// Whether the same write may succeed later, when the disk is better.
bool mayWorkLater(const Error &error)
{
    return error.code == ErrorCode::Io;
}

} // namespace

SessionWriter::SessionWriter(Make make, Whole whole, QObject *parent)
    : QObject(parent)
    , m_make(std::move(make))
    , m_whole(std::move(whole))
{
    // The thread ends before this object's signals do: `m_thread` is joined first in the destructor.
    m_ended = m_end.get_future().share();
    m_thread = std::jthread([this](const std::stop_token &stop) {
        work(stop);
        m_store.reset(); // the file is free for others
        m_end.set_value();
        QMetaObject::invokeMethod(this, &SessionWriter::finished, Qt::QueuedConnection);
    });
}

SessionWriter::~SessionWriter()
{
    m_thread.request_stop();
    m_wake.notify_all();
    m_thread.join();
}

void SessionWriter::finish()
{
    {
        const std::lock_guard lock(m_mutex);
        m_isFinishing = true;
    }
    m_wake.notify_all();
}

void SessionWriter::post(Write write)
{
    postEdit(std::move(write), false);
    // Something is missing, and all of it could not be written anew: perhaps now.
    if (m_lacking && m_whole && m_wholePosted <= m_done)
        postEdit(m_whole(), true);
}

void SessionWriter::postEdit(Write write, bool isWhole)
{
    const std::uint64_t number = ++m_posted;
    if (isWhole)
        m_wholePosted = number;
    {
        const std::lock_guard lock(m_mutex);
        m_edits.push_back({std::move(write), number, isWhole});
    }
    m_wake.notify_all();
}

void SessionWriter::postDerived(const std::string &key, Write write)
{
    {
        const std::lock_guard lock(m_mutex);
        m_derived[key] = std::move(write);
    }
    m_wake.notify_all();
}

void SessionWriter::dropDerived(const std::string &key)
{
    const std::lock_guard lock(m_mutex);
    m_derived.erase(key);
    if (m_derivedInWork == key)
        m_derivedInWork.clear();
}

bool SessionWriter::waitForEdits(std::chrono::nanoseconds patience)
{
    std::unique_lock lock(m_mutex);
    m_change.wait_for(lock, patience, [this] { return m_edits.empty() || m_editFails; });
    return m_edits.empty() && !m_editFails;
}

bool SessionWriter::takeNext(
    const std::stop_token &stop, std::optional<Edit> &edit, std::optional<Derived> &derived)
{
    std::unique_lock lock(m_mutex);
    const auto isEnding = [&] { return stop.stop_requested() || m_isFinishing; };
    for (;;) {
        if (!m_edits.empty()) {
            edit = m_edits.front();
            return true;
        }
        if (!m_derived.empty() && (isEnding() || Clock::now() >= m_derivedFrom)) {
            auto first = m_derived.extract(m_derived.begin());
            m_derivedInWork = first.key();
            derived = Derived{std::move(first.key()), std::move(first.mapped())};
            return true;
        }
        if (m_derived.empty() && isEnding())
            return false; // all that can be written is
        if (m_derived.empty())
            m_wake.wait(lock, stop, [&] { return !m_edits.empty() || !m_derived.empty() || m_isFinishing; });
        else
            m_wake.wait_until(lock, stop, m_derivedFrom, [&] { return !m_edits.empty() || m_isFinishing; });
    }
}

Result<void> SessionWriter::makeStore()
{
    if (m_store)
        return {};
    TRY(SessionStore made, m_make());
    m_store.emplace(std::move(made));
    QMetaObject::invokeMethod(
        this, [this, path = QString::fromStdString(m_store->path().string())] { Q_EMIT opened(path); },
        Qt::QueuedConnection);
    return {};
}

void SessionWriter::work(const std::stop_token &stop)
{
    for (;;) {
        std::optional<Edit> edit;
        std::optional<Derived> derived;
        if (!takeNext(stop, edit, derived))
            return;
        if (derived) {
            writeDerived(stop, *std::move(derived));
            continue;
        }
        if (writeEdit(*edit))
            continue;
        if (stop.stop_requested())
            return; // a last try failed: there is nobody left to wait for a better disk
        std::unique_lock lock(m_mutex);
        const std::size_t waiting = m_edits.size();
        m_wake.wait_for(lock, stop, std::chrono::milliseconds(kRetryMilliseconds),
            [&] { return m_edits.size() != waiting; });
    }
}

bool SessionWriter::writeEdit(const Edit &edit)
{
    auto outcome = makeStore();
    const bool isMade = outcome.has_value();
    if (isMade)
        outcome = edit.write(*m_store);
    if (!outcome && (!isMade || mayWorkLater(outcome.error()))) {
        {
            const std::lock_guard lock(m_mutex);
            m_editFails = true;
        }
        m_change.notify_all();
        if (!std::exchange(m_isFailing, true))
            tell(outcome.error());
        return false;
    }
    m_isFailing = false;
    m_isLacking = !outcome || (m_isLacking && !edit.isWhole);
    ++m_written;
    bool isLast = false;
    {
        const std::lock_guard lock(m_mutex);
        m_edits.pop_front();
        isLast = m_edits.empty();
        m_editFails = m_isLacking;
    }
    m_change.notify_all();
    if (!outcome && edit.isWhole) {
        tell(outcome.error());
    } else if (!outcome) {
        QMetaObject::invokeMethod(
            this, [this, number = edit.number, error = outcome.error()] { onRefused(number, error); },
            Qt::QueuedConnection);
    } else if (isLast) {
        tell({});
    }
    return true;
}

void SessionWriter::writeDerived(const std::stop_token &stop, Derived derived)
{
    auto outcome = makeStore();
    const bool isMade = outcome.has_value();
    if (isMade)
        outcome = derived.write(*m_store);
    bool isIdle = false;
    {
        const std::lock_guard lock(m_mutex);
        const bool isWanted =
            std::exchange(m_derivedInWork, {}) == derived.key; // else an edit has made it wrong
        if (!outcome && isWanted && (!isMade || mayWorkLater(outcome.error())) && !stop.stop_requested()
            && !m_isFinishing)
            m_derived.try_emplace(derived.key, std::move(derived.write));
        isIdle = m_edits.empty() && m_derived.empty();
    }
    if (!outcome) {
        m_derivedFrom = Clock::now() + std::chrono::milliseconds(kRetryMilliseconds);
        if (!mayWorkLater(outcome.error())) {
            m_derivedFrom = {};
            QMetaObject::invokeMethod(
                this, [this, error = outcome.error()] { Q_EMIT derivedFailed(error); }, Qt::QueuedConnection);
        }
    }
    if (isIdle)
        QMetaObject::invokeMethod(this, &SessionWriter::settled, Qt::QueuedConnection);
}

void SessionWriter::tell(std::optional<Error> failure)
{
    QMetaObject::invokeMethod(
        this, [this, told = Report{m_written, m_isLacking, std::move(failure)}] { report(told); },
        Qt::QueuedConnection);
}

void SessionWriter::report(const Report &told)
{
    m_done = told.done;
    m_lacking = told.lacking;
    m_failed = told.failure.has_value() && !told.lacking;
    // An edit that came while all of it was being written anew, in vain, is a reason to try once more.
    if (m_lacking && m_whole && m_wholePosted <= m_done && m_wholePosted < m_posted)
        postEdit(m_whole(), true);
    if (told.failure)
        Q_EMIT failed(*told.failure);
    else if (isAcknowledged())
        Q_EMIT acknowledged();
}

void SessionWriter::onRefused(std::uint64_t number, const Error &error)
{
    ++m_refusals;
    m_lacking = true;
    // What was posted before the newest whole is part of it.
    if (m_whole && number > m_wholePosted)
        postEdit(m_whole(), true);
    Q_EMIT refused(error);
}

} // namespace planloom

#include "moc_session_writer.cpp"
