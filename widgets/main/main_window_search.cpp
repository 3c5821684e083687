// What the search found, and what becomes of it.

#include "widgets/main/main_window.h"

#include "widgets/accuracy/accuracy_dialog.h"
#include "widgets/main/advice_dialog.h"
#include "widgets/main/log_panel.h"
#include "widgets/main/notice_bar.h"
#include "widgets/main/search_report.h"

namespace planloom {

namespace {

const QString kSearched = QStringLiteral("searched"); ///< Its notice.

} // namespace

/// The rows that the solver chose become a person's own: no search replaces them.
void MainWindow::keepSearched()
{
    const TableDocument &table = m_workspace.table();
    m_workspace.editTable(tr("keep what was searched"), keepRows(table, linesOfSearch(table)));
}

void MainWindow::onSearched()
{
    const PlanUpdateSnapshot latest = m_workspace.latest();
    if (!latest || !latest->search)
        return;
    const QString said = SearchReport::sentence(*latest->search);
    m_log->model()->add(LogKind::Plan, said);
    if (m_workspace.isSearchByName()) // after edits the pill says it
        showSearchNotice(*latest->search, said);
}

/// What it says of the plan before is not left standing over another one.
void MainWindow::updateSearchNotice()
{
    const PlanUpdateSnapshot latest = m_workspace.latest();
    if (!latest || !latest->final || !m_notices->isShown(kSearched))
        return;
    if (!latest->search) {
        if (!m_workspace.isSearchedNext())
            m_notices->dismiss(kSearched);
        return;
    }
    if (const QString said = SearchReport::sentence(*latest->search); said != m_notices->textOf(kSearched))
        showSearchNotice(*latest->search, said);
}

void MainWindow::showSearchNotice(const SearchResult &found, const QString &said)
{
    m_notices->show({kSearched, found.fits ? NoticeKind::Info : NoticeKind::Warning, said,
        {{tr("Show What Was Searched"), [this] { showSearched(); }, true},
            {tr("Keep These Rows"), [this] { keepSearched(); }}},
        true});
}

/// What no row decides, and rows that would help; they follow the plan while they are shown.
void MainWindow::showAdvice(int page)
{
    if (!m_advice) {
        m_advice = new AdviceDialog(this);
        connect(m_advice, &AdviceDialog::taken, this,
            [this](const QString &words, const TableEdit &edit, const TableDocument &table) {
                if (!(m_workspace.table() == table))
                    return say(tr("The rows have changed meanwhile: nothing was taken"));
                if (!edit.empty())
                    m_workspace.editTable(words, edit);
            });
    }
    updateAdvice();
    m_advice->showPage(static_cast<AdviceDialog::Page>(page));
    m_advice->show();
    m_advice->raise();
    m_advice->activateWindow();
}

void MainWindow::showAccuracy()
{
    auto *dialog = findChild<AccuracyDialog *>();
    if (!dialog)
        dialog = new AccuracyDialog(QStringLiteral(":/planloom/runs"), this);
    dialog->show();
    dialog->raise();
    dialog->activateWindow();
}

void MainWindow::updateAdvice()
{
    const PlanUpdateSnapshot &good = m_workspace.lastGood();
    if (!m_advice || !good || !good->plan || !good->isTimed())
        return;
    PlanRequest request;
    request.model = good->model;
    request.table = good->table;
    request.target = {m_workspace.cluster(), m_workspace.clusterJson(), m_workspace.deviceCount()};
    m_advice->setPlan(good, std::move(request));
}

void MainWindow::showSearched()
{
    const PlanUpdateSnapshot latest = m_workspace.latest();
    if (!latest || !latest->search)
        return;
    auto *report = new SearchReport(latest->search, this);
    connect(report, &SearchReport::opened, this, [this](const SearchedPlan &plan) {
        TableDocument rows = m_workspace.table();
        const std::vector<std::int32_t> chosen = linesOfSearch(rows);
        if (!chosen.empty() && !rows.apply(removeLines(rows, chosen)))
            return;
        // A person chose it: nothing is to be searched in its place.
        ConstraintTable own = *plan.rows;
        for (Row &row : own.rows)
            row.origin = RowOrigin::Text;
        if (!rows.apply(appendRows(rows, own.rows)))
            return;
        m_workspace.editTable(tr("plan %1").arg(QString::fromStdString(toString(plan.configuration))),
            difference(m_workspace.table(), rows));
    });
    report->show();
}

} // namespace planloom
