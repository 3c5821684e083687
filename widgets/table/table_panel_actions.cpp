// What can be done with rows: the actions of the *Constraints* dock.

#include <QtConcurrent/QtConcurrentRun>
#include <QtCore/QFutureWatcher>
#include <QtCore/QMimeData>
#include <QtGui/QActionGroup>
#include <QtGui/QClipboard>
#include <QtGui/QGuiApplication>
#include <QtWidgets/QHeaderView>
#include <QtWidgets/QLineEdit>
#include <QtWidgets/QMenu>

#include "engine/design/explain/free_decisions.h"
#include "widgets/common/selection_model.h"
#include "widgets/design/workspace.h"
#include "widgets/table/paste_preview.h"
#include "widgets/table/price_service.h"
#include "widgets/table/row_clipboard.h"
#include "widgets/table/rows_view.h"
#include "widgets/table/table_delegate.h"
#include "widgets/table/table_links.h"
#include "widgets/table/table_panel.h"
#include "widgets/table/table_text_editor.h"

#include <algorithm>

namespace planloom {

namespace {

/// Texts up to this size are read at once; larger ones on a worker.
constexpr qsizetype kShortText = 32 << 10;

QString textOf(const TableDocument &document, const std::vector<std::int32_t> &lines)
{
    std::string text;
    for (const std::int32_t line : lines)
        text += document.lines()[static_cast<std::size_t>(line)]->text + '\n';
    return QString::fromStdString(text);
}

} // namespace

QAction *TablePanel::addRowAction(
    const char *name, const QString &text, const QKeySequence &shortcut, const QString &tip)
{
    auto *action = new QAction(text, this);
    action->setObjectName(QString::fromLatin1(name));
    action->setShortcut(shortcut);
    // Letters and Space belong to the grid alone: in a text or an editor they are typed.
    action->setShortcutContext(Qt::WidgetShortcut);
    action->setToolTip(shortcut.isEmpty()
            ? tip
            : tip + QStringLiteral(" (") + shortcut.toString(QKeySequence::NativeText) + QLatin1Char(')'));
    addAction(action);
    m_view->addAction(action);
    return action;
}

void TablePanel::buildActions()
{
    m_cut =
        addRowAction("rows.cut", tr("Cut Rows"), QKeySequence::Cut, tr("Take rows out and keep their text"));
    m_copy = addRowAction("rows.copy", tr("Copy Rows"), QKeySequence::Copy, tr("Copy rows as text"));
    m_paste = addRowAction(
        "rows.paste", tr("Paste Rows"), QKeySequence::Paste, tr("Insert rows from text or a spreadsheet"));
    m_duplicate = addRowAction(
        "rows.duplicate", tr("Duplicate Row"), Qt::CTRL | Qt::Key_D, tr("Write the rows a second time"));
    m_remove = addRowAction("rows.remove", tr("Remove Rows"), Qt::Key_Delete, tr("Take rows out"));
    m_switch = addRowAction("rows.switch", tr("Switch Rows On/Off"), Qt::Key_Space,
        tr("Rows that are off are kept, but do nothing"));
    m_prefer = addRowAction("rows.prefer", tr("Switch Rows Must/Prefer"), Qt::SHIFT | Qt::Key_Space,
        tr("Preferred rows hold as far as they can; with what they don't is said at the row"));
    m_up = addRowAction("rows.moveUp", tr("Move Rows Up"), Qt::ALT | Qt::Key_Up,
        tr("Order has no meaning; it is for reading"));
    m_down = addRowAction("rows.moveDown", tr("Move Rows Down"), Qt::ALT | Qt::Key_Down,
        tr("Order has no meaning; it is for reading"));
    m_fill = addRowAction("rows.fillDown", tr("Fill Down"), Qt::CTRL | Qt::SHIFT | Qt::Key_Down,
        tr("Give the cell of the first selected row to the others"));
    m_new = addRowAction("rows.new", tr("New Row"), Qt::Key_Insert, tr("Add a row"));
    m_edit = addRowAction("rows.edit", tr("Edit Cell"), Qt::Key_F2,
        tr("Change the cell; with several rows selected, in all of them"));
    m_operators = addRowAction("rows.selectOperators", tr("Select Operators of Rows"),
        Qt::CTRL | Qt::SHIFT | Qt::Key_L, tr("Select what the rows act on, in every view"));
    m_keep = addRowAction("rows.keep", tr("Keep Rows of the Solver"), {},
        tr("Selected rows that the solver chose become yours: no search replaces them"));
    m_keepAll = addRowAction("rows.keepAll", tr("Keep All Rows of the Solver"), {},
        tr("All grey rows become yours: the plan stays as it is shown"));
    m_copyPlan = addRowAction("rows.copyPlan", tr("Copy Plan as Text"), {},
        tr("Copy all rows, to paste into another window or a message"));
    m_textOrder =
        addRowAction("rows.textOrder", tr("Order as in Text"), {}, tr("Show rows as they stand in the text"));
    m_textMode = addRowAction("rows.textMode", tr("Edit Rows as Text"), {}, tr("The same rows as text"));
    m_textMode->setCheckable(true);
    m_acting = addRowAction("rows.actingOnSelection", tr("Acting on Selection"), Qt::CTRL | Qt::Key_L,
        tr("Show only rows that act on what is selected"));
    m_acting->setShortcutContext(Qt::WindowShortcut); // wherever the selection was made
    m_acting->setCheckable(true);
    m_actingFirst = addRowAction("rows.actingFirst", tr("Rows of the Selection First"), {},
        tr("Rows that act on what is selected in a view come first"));
    m_actingFirst->setCheckable(true);
    m_actingFirst->setChecked(true);
    m_pricesAction = addRowAction("rows.prices", tr("Compute Prices While Idle"), {},
        tr("Find how much faster the step would be without each row"));
    m_pricesAction->setCheckable(true);
    m_pricesAction->setChecked(true);
    auto *groups = new QActionGroup(this);
    const QString names[3] = {tr("No Groups"), tr("Group Rows by Rule"), tr("Group Rows by Origin")};
    const char *const ids[3] = {"rows.groupNone", "rows.groupByRule", "rows.groupByOrigin"};
    for (int i = 0; i < 3; ++i) {
        m_groupBy[i] = addRowAction(ids[i], names[i], {}, tr("Put rows together under headings"));
        m_groupBy[i]->setCheckable(true);
        m_groupBy[i]->setChecked(i == 0);
        groups->addAction(m_groupBy[i]);
        connect(m_groupBy[i], &QAction::triggered, this, [this, i] {
            m_quiet = true;
            m_list->setGrouping(static_cast<RowGrouping>(i));
            m_quiet = false;
            m_groupBy[i]->setChecked(true);
            refreshActions();
        });
    }
    connect(m_cut, &QAction::triggered, this, &TablePanel::cutRows);
    connect(m_copy, &QAction::triggered, this, &TablePanel::copyRows);
    connect(m_paste, &QAction::triggered, this, &TablePanel::pasteRows);
    connect(m_duplicate, &QAction::triggered, this, &TablePanel::duplicateRows);
    connect(m_remove, &QAction::triggered, this, &TablePanel::removeRows);
    connect(m_switch, &QAction::triggered, this, &TablePanel::switchRows);
    connect(m_prefer, &QAction::triggered, this, &TablePanel::switchStrength);
    connect(m_up, &QAction::triggered, this, [this] { moveRows(-1); });
    connect(m_down, &QAction::triggered, this, [this] { moveRows(1); });
    connect(m_fill, &QAction::triggered, this, &TablePanel::fillDown);
    connect(m_new, &QAction::triggered, this, &TablePanel::newRow);
    connect(m_edit, &QAction::triggered, this, [this] {
        if (m_view->currentIndex().isValid())
            m_view->edit(m_view->currentIndex());
    });
    connect(m_operators, &QAction::triggered, this, &TablePanel::selectOperators);
    connect(m_keep, &QAction::triggered, this, [this] { keepRows(false); });
    connect(m_keepAll, &QAction::triggered, this, [this] { keepRows(true); });
    connect(m_delegate, &TableDelegate::keepAsked, this, [this](int row) {
        if (const int source = m_list->sourceRow(row); source >= 0)
            keepLines({m_rows->lineAt(source)});
    });
    connect(m_copyPlan, &QAction::triggered, this, &TablePanel::copyPlan);
    connect(m_textOrder, &QAction::triggered, this, [this] {
        if (m_list->sortColumn() < 0)
            return;
        m_list->sort(-1);
        m_view->horizontalHeader()->setSortIndicatorShown(false);
        say({});
        refreshActions();
    });
    connect(m_textMode, &QAction::toggled, this, &TablePanel::setTextMode);
    connect(m_acting, &QAction::toggled, this, [this](bool on) {
        if (on && isTextMode())
            setTextMode(false);
        const bool any = !m_selection->selected().empty();
        if (on && !any)
            say(tr("Select operators in a view, and only the rows that act on them are shown."));
        m_quiet = true;
        m_list->setActingFilter(on && any, m_actingFirst->isChecked(), m_actingRows);
        m_quiet = false;
        m_ownSelection = false;
        findActing();
        if (!on || any)
            refreshMessage();
    });
    connect(m_actingFirst, &QAction::toggled, this, [this](bool on) {
        m_quiet = true;
        m_list->setActingFilter(m_list->showsActingOnly(), on, m_actingRows);
        m_quiet = false;
        refreshActions();
    });
    connect(m_pricesAction, &QAction::toggled, m_prices, &PriceService::setEnabled);
}

void TablePanel::refreshActions()
{
    const auto rows = selectedRows();
    const bool any = !rows.empty();
    const bool open = m_workspace->model() != nullptr;
    for (QAction *action : {m_cut, m_copy, m_duplicate, m_remove, m_switch, m_prefer, m_operators})
        action->setEnabled(any);
    const auto chosen = linesOfSearch(m_rows->document());
    m_keep->setEnabled(
        std::any_of(rows.begin(), rows.end(), [this](int row) { return m_rows->isChosen(row); }));
    m_keepAll->setEnabled(!chosen.empty());
    m_keepAll->setVisible(!chosen.empty());
    m_keepAll->setIconText(chosen.size() == 1 ? tr("Keep 1 Grey Row")
                                              : tr("Keep %1 Grey Rows").arg(static_cast<int>(chosen.size())));
    m_paste->setEnabled(open);
    m_new->setEnabled(open);
    m_copyPlan->setEnabled(m_rows->document().lineCount() > 0);
    const bool movable = any && m_list->isInTextOrder();
    m_up->setEnabled(movable && rows.front() > 0);
    m_down->setEnabled(movable && rows.back() + 1 < m_rows->rowCount());
    m_fill->setEnabled(any && !isTextMode());
    m_textOrder->setEnabled(m_list->sortColumn() >= 0);
    m_edit->setEnabled(!isTextMode() && (m_view->currentIndex().flags() & Qt::ItemIsEditable));
}

void TablePanel::showContextMenu(const QPoint &position)
{
    auto *menu = new QMenu(this);
    menu->setAttribute(Qt::WA_DeleteOnClose);
    menu->addActions({m_edit, m_switch, m_prefer});
    if (m_keepAll->isEnabled())
        menu->addActions({m_keep, m_keepAll});
    menu->addSeparator();
    menu->addActions({m_cut, m_copy, m_paste, m_duplicate, m_remove});
    menu->addSeparator();
    menu->addActions({m_fill, m_up, m_down});
    menu->addSeparator();
    menu->addActions({m_operators, m_new, m_copyPlan});
    menu->popup(m_view->viewport()->mapToGlobal(position));
}

bool TablePanel::edit(const QString &words, const TableEdit &edit, const QString &mergeKey)
{
    return !edit.empty() && m_workspace->editTable(words, edit, mergeKey);
}

std::vector<std::int32_t> TablePanel::blockLines(const std::vector<int> &rows) const
{
    std::vector<std::int32_t> lines;
    for (const int row : rows) {
        for (int line = m_rows->firstLineAt(row); line <= m_rows->lineAt(row); ++line)
            lines.push_back(line);
    }
    return lines;
}

QString TablePanel::nameOfRows(const std::vector<int> &rows) const
{
    return rows.size() == 1 ? tr("row %1").arg(m_rows->lineAt(rows.front()) + 1)
                            : tr("%1 rows").arg(static_cast<int>(rows.size()));
}

void TablePanel::copyRows()
{
    const auto rows = selectedRows();
    if (rows.empty())
        return;
    QGuiApplication::clipboard()->setText(textOf(m_rows->document(), blockLines(rows)));
    say(tr("Copied %1.").arg(nameOfRows(rows)));
}

void TablePanel::cutRows()
{
    if (selectedRows().empty())
        return;
    copyRows();
    const auto rows = selectedRows();
    edit(tr("cut %1").arg(nameOfRows(rows)), removeLines(m_rows->document(), blockLines(rows)));
}

void TablePanel::pasteRows()
{
    if (!m_workspace->model())
        return;
    const QString text = QGuiApplication::clipboard()->text();
    const auto take = [this](const Result<PastedRows> &pasted) {
        if (!pasted) {
            const Error &error = pasted.error();
            say(QString::fromStdString(error.message + ". " + error.advice), true);
            return;
        }
        say({});
        m_pastePreview->show(*pasted, m_workspace->model());
    };
    if (text.size() <= kShortText) {
        take(readPastedRows(text.toStdString()));
        return;
    }
    say(tr("Reading what is to be pasted…"));
    using Outcome = std::shared_ptr<const Result<PastedRows>>;
    auto *watcher = new QFutureWatcher<Outcome>(this);
    connect(watcher, &QFutureWatcherBase::finished, this, [watcher, take] {
        take(*watcher->result());
        watcher->deleteLater();
    });
    watcher->setFuture(QtConcurrent::run([text]() -> Outcome {
        return std::make_shared<const Result<PastedRows>>(readPastedRows(text.toStdString()));
    }));
}

void TablePanel::insertPasted(const PastedRows &pasted)
{
    const auto rows = selectedRows();
    const int behind = rows.empty() ? m_rows->rowCount() - 1 : rows.back();
    const std::int32_t at = behind < 0 ? m_rows->document().lineCount() : m_rows->lineAt(behind) + 1;
    TableEdit change;
    change.splices.push_back({at, {}, pasted.lines});
    const int count = pasted.rows + pasted.unreadable;
    if (!edit(count == 1 ? tr("paste 1 row") : tr("paste %1 rows").arg(count), change))
        return;
    std::vector<std::int32_t> lines;
    for (std::size_t i = 0; i < pasted.lines.size(); ++i)
        lines.push_back(at + static_cast<std::int32_t>(i));
    selectLines(lines);
    QString said = pasted.rows == 1 ? tr("Pasted 1 row") : tr("Pasted %1 rows").arg(pasted.rows);
    if (pasted.fromSpreadsheet)
        said += tr(" from a spreadsheet");
    if (pasted.unreadable > 0) {
        said += pasted.unreadable == 1
            ? tr("; 1 line could not be read and is kept in red")
            : tr("; %1 lines could not be read and are kept in red").arg(pasted.unreadable);
    }
    say(said + QLatin1Char('.'), pasted.unreadable > 0);
}

void TablePanel::duplicateRows()
{
    const auto rows = selectedRows();
    if (rows.empty())
        return;
    const auto lines = blockLines(rows);
    const std::int32_t at = m_rows->lineAt(rows.back()) + 1;
    TableEdit change;
    TableSplice splice{at, {}, {}};
    for (const std::int32_t line : lines)
        splice.inserted.push_back(m_rows->document().lines()[static_cast<std::size_t>(line)]->text);
    change.splices.push_back(splice);
    if (!edit(tr("duplicate %1").arg(nameOfRows(rows)), change))
        return;
    std::vector<std::int32_t> made;
    for (std::size_t i = 0; i < lines.size(); ++i)
        made.push_back(at + static_cast<std::int32_t>(i));
    selectLines(made);
}

void TablePanel::removeRows()
{
    const auto rows = selectedRows();
    if (rows.empty())
        return;
    const int next = rows.front();
    if (!edit(tr("remove %1").arg(nameOfRows(rows)), removeLines(m_rows->document(), blockLines(rows))))
        return;
    // The row below takes the place, for the next press.
    const int row = std::min(next, m_rows->rowCount() - 1);
    if (row >= 0) {
        m_quiet = true;
        selectLines({m_rows->lineAt(row)});
        m_quiet = false;
        refreshActions();
    }
}

void TablePanel::switchRows()
{
    const auto rows = selectedRows();
    if (rows.empty())
        return;
    const bool anyOff =
        std::any_of(rows.begin(), rows.end(), [this](int row) { return !m_rows->cellsAt(row).enabled; });
    m_rows->setRowsEnabled(rows, anyOff);
}

void TablePanel::switchStrength()
{
    const auto rows = selectedRows();
    if (rows.empty())
        return;
    const bool anyMust = std::any_of(
        rows.begin(), rows.end(), [this](int row) { return weightOf(m_rows->cellsAt(row).strength) == 0; });
    m_rows->writeCells(rows, TableColumn::Strength, anyMust ? QStringLiteral("prefer") : QString());
}

void TablePanel::moveRows(int by)
{
    const auto rows = selectedRows();
    if (rows.empty() || !m_list->isInTextOrder())
        return;
    const int other = by < 0 ? rows.front() - 1 : rows.back() + 1;
    if (other < 0 || other >= m_rows->rowCount())
        return;
    std::vector<ConstraintTableModel::RowKey> keys;
    for (const int row : rows)
        keys.push_back(m_rows->keyAt(row));
    const int column = m_view->currentIndex().column();
    const std::int32_t to = by < 0 ? m_rows->firstLineAt(other) : m_rows->lineAt(other) + 1;
    if (!edit(by < 0 ? tr("move %1 up").arg(nameOfRows(rows)) : tr("move %1 down").arg(nameOfRows(rows)),
            moveLines(m_rows->document(), blockLines(rows), to), QStringLiteral("move rows")))
        return;
    std::vector<std::int32_t> lines;
    for (const auto key : keys) {
        if (m_rows->rowOfKey(key) >= 0)
            lines.push_back(m_rows->lineAt(m_rows->rowOfKey(key)));
    }
    m_quiet = true;
    selectLines(lines, column);
    m_quiet = false;
    refreshActions();
}

void TablePanel::fillDown()
{
    if (isTextMode())
        return;
    auto rows = selectedRows();
    const QModelIndex current = m_view->currentIndex();
    const auto column = static_cast<TableColumn>(std::max(current.column(), 0));
    if (rows.empty())
        return;
    // Top to bottom as shown.
    std::sort(rows.begin(), rows.end(),
        [this](int a, int b) { return m_list->rowOfSource(a) < m_list->rowOfSource(b); });
    int from = rows.front();
    if (rows.size() == 1) {
        const int above = m_list->sourceRow(m_list->rowOfSource(rows.front()) - 1);
        if (above < 0) {
            say(tr("There is no row above to fill from."), true);
            return;
        }
        from = above;
    } else {
        rows.erase(rows.begin());
    }
    if (column == TableColumn::On) {
        m_rows->setRowsEnabled(rows, m_rows->cellsAt(from).enabled);
        return;
    }
    const QModelIndex source = m_rows->index(from, static_cast<int>(column));
    if (!(m_rows->flags(source) & Qt::ItemIsEditable)) {
        say(tr("Go to the cell to fill from: Selector, Rule, Value, Origin or Note."), true);
        return;
    }
    const QString text = source.data(Qt::EditRole).toString();
    m_rows->apply(
        tr("fill the %1 of %2 with %3").arg(titleOf(column).toLower(), nameOfRows(rows), text.simplified()),
        m_rows->cellEdit(rows, column, text));
}

void TablePanel::newRow()
{
    if (!m_workspace->model())
        return;
    if (isTextMode()) {
        if (m_text->isFilling())
            return;
        m_text->moveCursor(QTextCursor::EndOfBlock);
        m_text->insertPlainText(QStringLiteral("\n"));
        m_text->setFocus();
        return;
    }
    const QModelIndex cell = m_list->index(m_list->newRow(), static_cast<int>(TableColumn::Rule));
    m_view->setFocus();
    m_view->setCurrentIndex(cell);
    m_view->scrollTo(cell);
    m_view->edit(cell);
}

void TablePanel::selectOperators()
{
    const auto rows = selectedRows();
    if (!rows.empty())
        m_links->findOperators(linkedRows(rows));
}

void TablePanel::keepRows(bool all)
{
    keepLines(all ? linesOfSearch(m_rows->document()) : selectedLines());
}

void TablePanel::keepLines(const std::vector<std::int32_t> &lines)
{
    const std::vector<std::int32_t> chosen = linesOfSearch(m_rows->document());
    std::vector<int> rows;
    for (const std::int32_t line : lines)
        if (std::find(chosen.begin(), chosen.end(), line) != chosen.end())
            rows.push_back(m_rows->rowOfLine(line));
    if (!rows.empty())
        edit(
            rows.size() == chosen.size() ? tr("keep what was searched") : tr("keep %1").arg(nameOfRows(rows)),
            planloom::keepRows(m_rows->document(), lines));
}

void TablePanel::copyPlan()
{
    QGuiApplication::clipboard()->setText(QString::fromStdString(m_rows->document().text()));
    const int rows = m_rows->rowCount();
    say(rows == 1 ? tr("Copied the plan: 1 row.") : tr("Copied the plan: %1 rows.").arg(rows));
}

} // namespace planloom
