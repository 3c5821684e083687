// How the Constraints dock shows the rows: as a grid or as text, sorted, grouped; and the state of that, to
// come back to.

#include "widgets/table/table_panel.h"

#include <QtCore/QJsonArray>
#include <QtCore/QJsonDocument>
#include <QtCore/QJsonObject>
#include <QtGui/QAction>
#include <QtWidgets/QHeaderView>
#include <QtWidgets/QLineEdit>
#include <QtWidgets/QStackedWidget>
#include <QtWidgets/QTabBar>

#include "widgets/design/workspace.h"
#include "widgets/table/price_service.h"
#include "widgets/table/rows_view.h"
#include "widgets/table/table_text_editor.h"

#include <algorithm>

namespace planloom {

void TablePanel::focusRow(std::int32_t line)
{
    if (isTextMode()) {
        m_text->showLine(line);
        m_text->setFocus();
        return;
    }
    const int row = m_rows->rowOfLine(line);
    if (row >= 0 && m_list->rowOfSource(row) < 0) {
        // Hidden by a filter or a heading: it was asked for.
        m_acting->setChecked(false);
        m_filter->clear();
        if (m_list->rowOfSource(row) < 0)
            m_groupBy[0]->trigger();
    }
    selectLines({line});
    m_view->setFocus();
}

bool TablePanel::isTextMode() const
{
    return m_stack->currentIndex() == kTextTab;
}

void TablePanel::setTextMode(bool text)
{
    if (text == isTextMode())
        return;
    if (text) {
        const auto lines = selectedLines();
        const int current = m_rows->lineAt(m_list->sourceRow(m_view->currentIndex().row()));
        m_text->setDocumentText(m_workspace->table());
        const bool hadFocus = m_view->hasFocus() || m_tabs->hasFocus();
        m_stack->setCurrentIndex(kTextTab);
        m_textLine = -1;
        if (current >= 0)
            m_text->showLine(current);
        else if (!lines.empty())
            m_text->showLine(lines.front());
        if (hadFocus)
            m_text->setFocus();
    } else {
        const int line = m_text->currentLine();
        m_stack->setCurrentIndex(kGridTab);
        // The row of the line, or the next one below a remark.
        for (int below = line; below < m_rows->document().lineCount(); ++below) {
            if (m_rows->rowOfLine(below) >= 0) {
                m_quiet = true;
                selectLines({below});
                m_quiet = false;
                break;
            }
        }
        if (m_text->hasFocus() || !m_view->hasFocus())
            m_view->setFocus();
    }
    m_tabs->setCurrentIndex(text ? kTextTab : kGridTab);
    m_textMode->setChecked(text);
    m_filter->setEnabled(!text);
    refreshActions();
    refreshMessage();
}

void TablePanel::sortBy(int column)
{
    // Up, down, and back to the order of the text.
    const bool same = column == m_list->sortColumn();
    const bool wasUp = m_list->sortOrder() == Qt::AscendingOrder;
    m_quiet = true;
    if (!same)
        m_list->sort(column, Qt::AscendingOrder);
    else if (wasUp)
        m_list->sort(column, Qt::DescendingOrder);
    else
        m_list->sort(-1, Qt::AscendingOrder);
    m_quiet = false;
    auto *header = m_view->horizontalHeader();
    header->setSortIndicatorShown(m_list->sortColumn() >= 0);
    header->setSortIndicator(m_list->sortColumn(), m_list->sortOrder());
    m_textOrder->setEnabled(m_list->sortColumn() >= 0);
    refreshActions();
    if (m_list->sortColumn() >= 0)
        say(tr("Sorted by %1 on the screen alone: order has no meaning, all rows hold together.")
                .arg(titleOf(static_cast<TableColumn>(m_list->sortColumn()))));
    else
        say({});
}

std::string TablePanel::viewState() const
{
    QJsonObject state;
    state[QStringLiteral("text")] = isTextMode();
    state[QStringLiteral("sort")] = m_list->sortColumn();
    state[QStringLiteral("down")] = m_list->sortOrder() == Qt::DescendingOrder;
    state[QStringLiteral("group")] = static_cast<int>(m_list->grouping());
    state[QStringLiteral("filter")] = m_filter->text();
    state[QStringLiteral("actingFirst")] = m_actingFirst->isChecked();
    state[QStringLiteral("prices")] = m_pricesAction->isChecked();
    QJsonArray widths; // in letters, so that they fit other screens
    const double letter = m_view->fontMetrics().averageCharWidth();
    for (int column = 0; column < kTableColumns; ++column)
        widths.append(m_view->columnWidth(column) / letter);
    state[QStringLiteral("widths")] = widths;
    return QJsonDocument(state).toJson(QJsonDocument::Compact).toStdString();
}

void TablePanel::restoreViewState(const std::string &text)
{
    const QJsonObject state = QJsonDocument::fromJson(QByteArray::fromStdString(text)).object();
    if (state.isEmpty())
        return;
    const int group = std::clamp(state[QStringLiteral("group")].toInt(), 0, 2);
    m_groupBy[group]->trigger();
    m_filter->setText(state[QStringLiteral("filter")].toString());
    m_actingFirst->setChecked(state[QStringLiteral("actingFirst")].toBool(true));
    m_pricesAction->setChecked(state[QStringLiteral("prices")].toBool(true));
    const int sort = state[QStringLiteral("sort")].toInt(-1);
    m_list->sort(sort >= 0 && sort < kTableColumns ? sort : -1,
        state[QStringLiteral("down")].toBool() ? Qt::DescendingOrder : Qt::AscendingOrder);
    m_view->horizontalHeader()->setSortIndicatorShown(m_list->sortColumn() >= 0);
    m_view->horizontalHeader()->setSortIndicator(m_list->sortColumn(), m_list->sortOrder());
    const QJsonArray widths = state[QStringLiteral("widths")].toArray();
    for (int column = 0; column < kTableColumns && column < widths.size(); ++column) {
        const double letters = std::clamp(widths[column].toDouble(), 2.0, 400.0);
        m_view->setColumnWidth(
            column, static_cast<int>(letters * m_view->fontMetrics().averageCharWidth() + 0.5));
    }
    setTextMode(state[QStringLiteral("text")].toBool());
    refreshActions();
}

} // namespace planloom
