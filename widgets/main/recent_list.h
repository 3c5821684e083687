#pragma once

#include <QtCore/QByteArray>
#include <QtCore/QFutureWatcher>
#include <QtCore/QObject>
#include <QtCore/QString>
#include <QtCore/QThreadPool>

#include "sessions/recent.h"
#include "sessions/session_store.h"

#include <functional>
#include <vector>

namespace planloom {

/// One session of the recent list, ready to be shown.
struct RecentEntry {
    RecentSession session{};
    SessionSummary summary{}; ///< As its file says it now; empty if it can't be read.
    bool cutOff = false; ///< Its last window did not close: a crash, or a machine switched off.
};

/// The recent list of a folder, read and written on a worker.
class RecentList : public QObject
{
    Q_OBJECT
public:
    /// @param folder  empty keeps the list in memory (the sessions are files all the same)
    explicit RecentList(const QString &folder, QObject *parent = nullptr);
    ~RecentList() override; ///< Finishes what was begun to be written.

    const std::vector<RecentEntry> &entries() const { return m_entries; }
    /// Reads it again: which sessions are missing, which were cut off, and where each stands.
    void refresh();
    void add(const RecentSession &session); ///< Puts it at the head.
    void remove(const QString &path);

Q_SIGNALS:
    void changed();

private:
    using Entries = std::vector<RecentEntry>;
    void run(std::function<void()> change);

    QString m_folder;
    QThreadPool m_pool;
    QFutureWatcher<Entries> m_watcher{this};
    Entries m_entries;
};

/// True if nobody has the session open and its last owner did not close it.
bool wasCutOff(const std::filesystem::path &session);

} // namespace planloom
