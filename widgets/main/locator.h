#pragma once

#include <QtCore/QAbstractListModel>
#include <QtCore/QFutureWatcher>
#include <QtCore/QThreadPool>
#include <QtWidgets/QFrame>

#include "widgets/main/locator_search.h"

#include <functional>

class QLabel;
class QLineEdit;
class QListView;

namespace planloom {

class GestureHost;

/// What was found, as a list: title, detail and shortcut.
class LocatorModel : public QAbstractListModel
{
    Q_OBJECT
public:
    enum Role { DetailRole = Qt::UserRole, KeysRole };

    using QAbstractListModel::QAbstractListModel;
    void setEntries(std::vector<LocatorEntry> entries);
    const std::vector<LocatorEntry> &entries() const { return m_entries; }

    int rowCount(const QModelIndex &parent = {}) const override;
    QVariant data(const QModelIndex &index, int role) const override;
    Qt::ItemFlags flags(const QModelIndex &index) const override;

private:
    std::vector<LocatorEntry> m_entries;
};

/// The line that everything can be reached from: *Command Palette* (commands, and rows typed in full, shown
/// as a ghost while they are typed) and *Go to Anything*. Lies over the top of the window, takes the
/// keyboard, and goes with Escape or a click elsewhere. Searches off the GUI thread; the newest text wins.
class Locator : public QFrame
{
    Q_OBJECT
public:
    /// @param sources  what to search, asked once each time the line opens
    Locator(GestureHost *host, std::function<LocatorSources()> sources, QWidget *parent);
    ~Locator() override;

    /// Opens with `text`; `selectFrom` and what is behind it is selected, so that typing replaces it (-1:
    /// nothing).
    void open(bool commandsOnly, const QString &text = {}, int selectFrom = -1, int selectLength = -1);
    void close();
    QLineEdit *line() const { return m_line; }
    QListView *list() const { return m_list; }
    LocatorModel *model() const { return m_model; }
    /// The answers to what is typed are there.
    bool isSettled() const { return !m_busy; }

Q_SIGNALS:
    /// The person chose this (Write entries are committed already).
    void chosen(const planloom::LocatorEntry &entry);

protected:
    bool eventFilter(QObject *watched, QEvent *event) override;
    void changeEvent(QEvent *event) override;

private:
    void search();
    void take();
    void choose(const QModelIndex &index);
    void onCurrent();
    void place();
    void move(int rows);

    GestureHost *m_host;
    std::function<LocatorSources()> m_collect;
    LocatorSources m_sources;
    QLineEdit *m_line;
    QListView *m_list;
    QLabel *m_hint;
    LocatorModel *m_model;
    QThreadPool m_pool;
    QFutureWatcher<LocatorResults> m_watcher{this};
    std::stop_source m_stop;
    QPointer<QWidget> m_before; ///< Had the keyboard when the line opened.
    bool m_busy = false;
    bool m_enterWhenFound = false; ///< Enter came before the answers.
    bool m_previewing = false;
};

} // namespace planloom

Q_DECLARE_METATYPE(planloom::LocatorEntry)
