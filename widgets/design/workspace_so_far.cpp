// The best plan of a search under way, shown in place of the plan before it.

#include "widgets/design/workspace.h"

#include <utility>

namespace planloom {

/// Rows, plan and pictures become those of the best so far: no step of the history before the search is over,
/// or a person works on with what they see.
void Workspace::showBetter(const PlanUpdateSnapshot &update)
{
    if (!isSearching() || update->model != m_model || !update->scene)
        return;
    if (m_preview || (m_isHandAtWork && m_isHandAtWork())) {
        m_soFar.waiting = update;
        m_soFarTimer.start();
        return;
    }
    m_soFar.waiting.reset();
    if (!m_soFar.plan) {
        m_soFar.latestBefore = m_latest;
        m_soFar.goodBefore = m_lastGood;
        m_soFar.wasCurrent = m_goodIsCurrent;
    }
    m_soFar.plan = update;
    m_latest = update;
    m_lastGood = update;
    m_goodIsCurrent = true;
    m_context.reset();
    Q_EMIT tableChanged();
    Q_EMIT planChanged();
    Q_EMIT contextChanged();
    Q_EMIT stateChanged();
}

/// What a search chose becomes part of the edit that it answers, or a step of its own.
///
/// @param words  with a place for the plan's name
void Workspace::recordAnswer(const QString &words, const SearchResult &found, const DesignChange &change)
{
    const QString plan = words.arg(QString::fromStdString(toString(found.best.configuration)));
    const HistoryStep *edit = m_searchByName ? nullptr : m_history.find(m_history.current());
    const bool answered = std::exchange(m_answered, true);
    if (edit)
        record(tr("%1 → %2").arg(QString::fromStdString(edit->words), plan), change,
            QLatin1String(kAnswerOfEdit), false);
    else
        record(plan, change, {}, false);
    m_answered = answered;
}

/// A person goes on with the rows that they see: these are a step, and the search is over.
void Workspace::keepSoFar()
{
    const PlanUpdateSnapshot shown = std::exchange(m_soFar, {}).plan;
    m_soFarTimer.stop();
    if (!shown)
        return;
    const DesignChange change{difference(table(), shown->table), {}};
    if (change.empty())
        return;
    recordAnswer(tr("best plan so far: %1"), *shown->search, change);
}

/// The rows are those of the history again, and the plan that was shown before stands for them.
/// @return whether anything was shown
bool Workspace::leaveSoFar()
{
    m_soFarTimer.stop();
    SoFar before = std::exchange(m_soFar, {});
    if (!before.plan)
        return false;
    m_lastGood = std::move(before.goodBefore);
    m_goodIsCurrent = before.wasCurrent;
    m_latest =
        m_goodIsCurrent ? m_lastGood : std::move(before.latestBefore); // not what the search began with
    m_context.reset();
    return true;
}

/// As `leaveSoFar`, and tells of it.
void Workspace::dropSoFar()
{
    if (!leaveSoFar())
        return;
    Q_EMIT tableChanged();
    Q_EMIT planChanged();
    Q_EMIT contextChanged();
}

} // namespace planloom
