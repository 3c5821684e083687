#include "widgets/main/recent_list.h"

#include <QtConcurrent/QtConcurrentRun>

#include "sessions/session_lock.h"

#include <algorithm>
#include <utility>

namespace planloom {

bool wasCutOff(const std::filesystem::path &session)
{
    // A lock file that nobody holds was left by a process that ended without closing: taking and letting go
    // of it tells, and removes it.
    std::error_code failure;
    if (!std::filesystem::exists(SessionLock::pathFor(session), failure))
        return false;
    const SessionLock::Outcome outcome = SessionLock::take(session);
    return outcome.lock.has_value();
}

RecentList::RecentList(const QString &folder, QObject *parent)
    : QObject(parent)
    , m_folder(folder)
{
    m_pool.setMaxThreadCount(1); // changes come one after the other
    connect(&m_watcher, &QFutureWatcherBase::finished, this, [this] {
        if (m_watcher.future().resultCount() == 0)
            return;
        Entries entries = m_watcher.result();
        // What was cut off stays so until it is opened: looking removes the sign of it.
        for (RecentEntry &entry : entries) {
            const auto known = std::find_if(m_entries.begin(), m_entries.end(),
                [&entry](const RecentEntry &old) { return old.session.path == entry.session.path; });
            entry.cutOff = entry.cutOff
                || (known != m_entries.end() && known->cutOff
                    && known->session.opened == entry.session.opened);
        }
        m_entries = std::move(entries);
        Q_EMIT changed();
    });
    refresh();
}

RecentList::~RecentList()
{
    m_pool.waitForDone();
}

void RecentList::run(std::function<void()> change)
{
    std::vector<RecentSession> held;
    for (const RecentEntry &entry : m_entries)
        held.push_back(entry.session);
    m_watcher.setFuture(QtConcurrent::run(
        &m_pool, [folder = m_folder.toStdString(), held = std::move(held), change = std::move(change)] {
            if (change)
                change();
            Entries entries;
            for (const RecentSession &session : folder.empty() ? held : loadRecent(folder)) {
                RecentEntry entry{session, {}, !session.missing && wasCutOff(session.path)};
                if (auto summary = session.missing ? SessionSummary{} : readSummary(session.path))
                    entry.summary = *std::move(summary);
                entries.push_back(std::move(entry));
            }
            return entries;
        }));
}

void RecentList::refresh()
{
    run({});
}

void RecentList::add(const RecentSession &session)
{
    if (m_folder.isEmpty()) {
        std::erase_if(
            m_entries, [&session](const RecentEntry &entry) { return entry.session.path == session.path; });
        m_entries.insert(m_entries.begin(), {session, {}, false});
        run({});
        return;
    }
    run([folder = m_folder.toStdString(), session] {
        // A list that can't be written is no reason to stop anybody.
        static_cast<void>(addRecent(folder, session).has_value());
    });
}

void RecentList::remove(const QString &path)
{
    std::erase_if(
        m_entries, [&path](const RecentEntry &entry) { return entry.session.path == path.toStdString(); });
    if (m_folder.isEmpty()) {
        run({});
        return;
    }
    run([folder = m_folder.toStdString(), path] {
        static_cast<void>(removeRecent(folder, path.toStdString()).has_value());
    });
}

} // namespace planloom

#include "moc_recent_list.cpp"
