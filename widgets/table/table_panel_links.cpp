// The Constraints dock and the rest of the window: news from the workspace, and what rows and operators have
// to do with each other.

#include "widgets/table/table_panel.h"

#include <QtWidgets/QLineEdit>
#include <QtWidgets/QPlainTextEdit>
#include <QtWidgets/QStackedWidget>

#include "widgets/common/selection_model.h"
#include "widgets/design/row_sentences.h"
#include "widgets/design/workspace.h"
#include "widgets/table/paste_preview.h"
#include "widgets/table/price_service.h"
#include "widgets/table/rows_view.h"
#include "widgets/table/table_delegate.h"
#include "widgets/table/table_links.h"
#include "widgets/table/table_text_editor.h"

#include <algorithm>

namespace planloom {

void TablePanel::connectWorkspace()
{
    connect(m_workspace, &Workspace::tableChanged, this, &TablePanel::takeDocument);
    connect(m_workspace, &Workspace::planChanged, this, &TablePanel::takeUpdate);
    connect(m_workspace, &Workspace::modelChanged, this, &TablePanel::takeModel);
    connect(m_workspace, &Workspace::clusterChanged, this, [this] {
        m_delegate->setDeviceCount(m_workspace->deviceCount());
        m_rows->agePrices();
        m_prices->interrupt();
    });
    connect(m_workspace, &Workspace::stateChanged, this, &TablePanel::refreshActions);
    connect(m_text, &TableTextEditor::edited, m_workspace, &Workspace::editText);
    connect(m_text, &TableTextEditor::undoAsked, m_workspace, &Workspace::undo);
    connect(m_text, &TableTextEditor::redoAsked, m_workspace, &Workspace::redo);
}

void TablePanel::connectLinks()
{
    connect(
        m_view->selectionModel(), &QItemSelectionModel::selectionChanged, this, &TablePanel::rowsSelected);
    connect(m_view->selectionModel(), &QItemSelectionModel::currentChanged, this, [this] {
        m_lastMessageIsProblem = false;
        refreshMessage();
        refreshActions();
    });
    connect(m_links, &TableLinks::operatorsFound, this, [this](std::vector<OperatorId> operators) {
        m_selecting = true;
        m_ownSelection = true;
        m_selection->select(std::move(operators));
        m_selecting = false;
    });
    connect(m_links, &TableLinks::actingFound, this, [this](const std::vector<std::uint64_t> &keys) {
        std::unordered_set<ConstraintTableModel::RowKey> acting(keys.begin(), keys.end());
        m_list->setActing(acting);
        if (m_ownSelection)
            return; // rows that a person selects stay where they are
        m_actingRows = std::move(acting);
        const bool any = !m_selection->selected().empty();
        m_quiet = true;
        m_list->setActingFilter(m_acting->isChecked() && any, m_actingFirst->isChecked(), m_actingRows);
        m_quiet = false;
        if (!m_actingRows.empty() && m_actingFirst->isChecked() && m_list->rowCount() > 0)
            m_view->scrollToTop();
        refreshMessage();
    });
    connect(m_selection, &SelectionModel::selectionChanged, this, &TablePanel::takeSelection);
    // Rows under the pointer light up an operator, operators under the pointer light up rows.
    connect(m_view, &RowsView::rowHovered, this, [this](int row) {
        const int source = m_list->sourceRow(row);
        if (source < 0) {
            m_links->findPreview({});
            return;
        }
        m_links->findPreview(linkedRows({source}));
    });
    connect(m_links, &TableLinks::previewFound, this, [this](const std::vector<OperatorId> &operators) {
        m_selecting = true;
        m_selection->setHovered(operators.size() == 1 ? operators.front() : OperatorId{});
        m_selecting = false;
    });
    connect(m_selection, &SelectionModel::hoveredChanged, this, [this] {
        if (m_selecting)
            return;
        if (!m_selection->hovered().valid()) {
            m_links->findHover({}, {});
            return;
        }
        std::vector<int> all(static_cast<std::size_t>(m_rows->rowCount()));
        for (std::size_t i = 0; i < all.size(); ++i)
            all[i] = static_cast<int>(i);
        m_links->findHover(linkedRows(all), m_selection->hovered());
    });
    connect(m_links, &TableLinks::hoverFound, this, [this](const std::vector<std::uint64_t> &keys) {
        m_list->setHovered({keys.begin(), keys.end()});
    });
    connect(m_links, &TableLinks::reachFound, m_rows, &ConstraintTableModel::setReach);
    connect(m_links, &TableLinks::conflictsFound, this,
        [this](quint64 revision, std::map<std::int32_t, QString> sentences) {
            const PlanUpdateSnapshot &latest = m_workspace->latest();
            if (latest && latest->revision == revision && latest->table == m_workspace->table()) {
                m_rows->setConflicts(std::move(sentences));
                refreshMessage();
            }
        });
    connect(m_pastePreview, &PastePreview::accepted, this, [this] {
        m_stack->currentWidget()->setFocus();
        insertPasted(m_pastePreview->pasted());
    });
    connect(m_pastePreview, &PastePreview::rejected, this, [this] {
        m_stack->currentWidget()->setFocus();
        say(tr("Nothing was pasted."));
    });
    connect(m_list, &TableListModel::rowAdded, this, [this](int line) { selectLines({line}); });
    connect(m_list, &TableListModel::rowsDropped, this,
        [this](const std::vector<std::int32_t> &lines, std::int32_t before) {
            std::vector<int> rows;
            for (const std::int32_t line : lines) {
                if (m_rows->rowOfLine(line) >= 0)
                    rows.push_back(m_rows->rowOfLine(line));
            }
            std::vector<ConstraintTableModel::RowKey> keys;
            for (const int row : rows)
                keys.push_back(m_rows->keyAt(row));
            const int target = m_rows->rowOfLine(before);
            const std::int32_t to = target >= 0 ? m_rows->firstLineAt(target) : before;
            edit(tr("move %1").arg(nameOfRows(rows)), moveLines(m_rows->document(), blockLines(rows), to));
            std::vector<std::int32_t> moved;
            for (const auto key : keys)
                moved.push_back(m_rows->lineAt(m_rows->rowOfKey(key)));
            selectLines(moved);
        });
    connect(m_list, &QAbstractItemModel::modelAboutToBeReset, this, [this] {
        m_keptSelection.clear();
        for (const int row : selectedRows())
            m_keptSelection.push_back(m_rows->keyAt(row));
    });
    connect(m_list, &QAbstractItemModel::modelReset, this, [this] {
        std::vector<int> rows;
        for (const auto key : m_keptSelection) {
            if (m_list->rowOfKey(key) >= 0)
                rows.push_back(m_list->rowOfKey(key));
        }
        const QItemSelection selection = wholeRows(*m_list, std::move(rows));
        const bool wasQuiet = m_quiet;
        m_quiet = true;
        m_view->selectionModel()->select(selection, QItemSelectionModel::ClearAndSelect);
        m_quiet = wasQuiet;
    });
    connect(m_text, &QPlainTextEdit::cursorPositionChanged, this, [this] {
        const int line = m_text->currentLine();
        if (line == m_textLine || !m_text->hasFocus())
            return;
        m_textLine = line;
        refreshMessage();
        const int row = m_rows->rowOfLine(line);
        if (row >= 0)
            m_links->findOperators(linkedRows({row}));
    });
}

void TablePanel::takeDocument()
{
    m_prices->interrupt();
    m_rows->agePrices();
    const bool wasQuiet = m_quiet;
    m_quiet = true;
    m_rows->setDocument(m_workspace->table());
    m_quiet = wasQuiet;
    if (isTextMode())
        m_text->setDocumentText(m_workspace->table());
    refreshActions();
    refreshMessage();
    findActing();
}

void TablePanel::takeUpdate()
{
    const PlanUpdateSnapshot &update = m_workspace->latest();
    if (!update) {
        m_rows->setUpdate(nullptr);
        return;
    }
    // Answers about older rows say nothing about these.
    if (!(update->table == m_workspace->table()))
        return;
    m_rows->setUpdate(update);
    if (!update->conflicts.empty())
        m_links->findConflicts(update);
    else
        m_rows->setConflicts({});
    if (update->plan)
        m_links->findReach(update);
    if (update->final && update->scene)
        m_prices->setBaseline(
            update, m_workspace->cluster(), m_workspace->deviceCount(), m_workspace->clusterJson());
    refreshMessage();
}

void TablePanel::takeModel()
{
    m_delegate->setModel(m_workspace->model());
    m_delegate->setDeviceCount(m_workspace->deviceCount());
    m_links->setModel(m_workspace->model());
    m_prices->interrupt();
    m_rows->clearPrices();
    findActing();
    refreshActions();
}

void TablePanel::takeSelection()
{
    if (!m_selecting) {
        m_ownSelection = false;
        m_links->forgetOperators();
    }
    findActing();
}

void TablePanel::findActing()
{
    if (m_selection->selected().empty()) {
        m_links->findActing({}, {});
        return;
    }
    std::vector<int> all(static_cast<std::size_t>(m_rows->rowCount()));
    for (std::size_t i = 0; i < all.size(); ++i)
        all[i] = static_cast<int>(i);
    m_links->findActing(linkedRows(all), m_selection->selected());
}

void TablePanel::rowsSelected()
{
    refreshActions();
    if (m_quiet)
        return;
    const auto rows = selectedRows();
    if (rows.empty()) {
        m_links->forgetOperators();
        if (m_ownSelection) {
            m_selecting = true;
            m_selection->clear();
            m_selecting = false;
        }
        return;
    }
    m_links->findOperators(linkedRows(rows));
}

std::vector<LinkedRow> TablePanel::linkedRows(const std::vector<int> &rows) const
{
    std::vector<LinkedRow> linked;
    linked.reserve(rows.size());
    const auto &lines = m_rows->document().lines();
    for (const int row : rows)
        linked.push_back({m_rows->keyAt(row), lines[static_cast<std::size_t>(m_rows->lineAt(row))]});
    return linked;
}

} // namespace planloom
