#include "widgets/table/table_panel.h"

#include <QtCore/QJsonArray>
#include <QtCore/QJsonDocument>
#include <QtCore/QJsonObject>
#include <QtGui/QFocusEvent>
#include <QtWidgets/QHBoxLayout>
#include <QtWidgets/QHeaderView>
#include <QtWidgets/QLabel>
#include <QtWidgets/QLineEdit>
#include <QtWidgets/QMenu>
#include <QtWidgets/QStackedWidget>
#include <QtWidgets/QTabBar>
#include <QtWidgets/QToolButton>
#include <QtWidgets/QVBoxLayout>

#include "widgets/common/palette.h"
#include "widgets/common/selection_model.h"
#include "widgets/design/workspace.h"
#include "widgets/table/paste_preview.h"
#include "widgets/table/price_service.h"
#include "widgets/table/rows_view.h"
#include "widgets/table/table_delegate.h"
#include "widgets/table/table_links.h"
#include "widgets/table/table_text_editor.h"

#include <algorithm>

namespace planloom {

namespace {

constexpr int kGridTab = 0;
constexpr int kTextTab = 1;

} // namespace

TablePanel::TablePanel(Workspace *workspace, SelectionModel *selection, QWidget *parent)
    : QWidget(parent), m_workspace(workspace), m_selection(selection), m_rows(new ConstraintTableModel(this)),
      m_list(new TableListModel(m_rows, this)), m_delegate(new TableDelegate(m_list, this)), m_links(new TableLinks(this)),
      m_prices(new PriceService(m_rows, this)), m_view(new RowsView(m_list, this)),
      m_pastePreview(new PastePreview(this)), m_text(new TableTextEditor(m_rows, this)),
      m_stack(new QStackedWidget(this)), m_tabs(new QTabBar(this)), m_filter(new QLineEdit(this)), m_message(new QLabel(this)),
      m_menu(new QToolButton(this)), m_grouping(new QToolButton(this))
{
    setObjectName(QStringLiteral("constraints"));
    m_view->setItemDelegate(m_delegate);
    m_stack->addWidget(m_view);
    m_stack->addWidget(m_text);
    buildActions();
    buildBar();
    m_rows->setEdit([this](const QString &words, const TableEdit &edit, const QString &mergeKey) {
        return m_workspace->editTable(words, edit, mergeKey);
    });
    m_delegate->setWrite([this](const QModelIndex &index, const QString &text) {
        const auto selected = selectedRows();
        const int row = m_list->sourceRow(index.row());
        const bool several = selected.size() > 1 && std::find(selected.begin(), selected.end(), row) != selected.end();
        if (several)
            m_rows->writeCells(selected, static_cast<TableColumn>(index.column()), text);
        else
            m_list->setData(index, text, Qt::EditRole);
        refreshMessage();
    });
    connectWorkspace();
    connectLinks();
    takeModel();
    takeDocument();
    takeUpdate();
    takeSelection();
    refreshActions();
}

TablePanel::~TablePanel() = default;

/// No focus proxy: with one, Tab would leave out what stands before it.
void TablePanel::focusInEvent(QFocusEvent *event)
{
    (m_stack->currentWidget() == m_text ? static_cast<QWidget *>(m_text) : m_view)->setFocus(event->reason());
}

void TablePanel::buildBar()
{
    m_tabs->addTab(tr("Grid"));
    m_tabs->addTab(tr("Text"));
    m_tabs->setDrawBase(false);
    m_tabs->setExpanding(false);
    m_tabs->setAccessibleName(tr("Constraints as a grid or as text"));
    connect(m_tabs, &QTabBar::currentChanged, this, [this](int tab) { setTextMode(tab == kTextTab); });
    m_filter->setPlaceholderText(tr("Filter rows"));
    m_filter->setClearButtonEnabled(true);
    m_filter->setAccessibleName(tr("Filter rows"));
    connect(m_filter, &QLineEdit::textChanged, this, [this](const QString &text) {
        m_list->setFilter(text);
        refreshMessage();
    });
    connect(m_filter, &QLineEdit::returnPressed, m_view, qOverload<>(&QWidget::setFocus));
    auto *acting = new QToolButton(this);
    acting->setDefaultAction(m_acting);
    auto *add = new QToolButton(this);
    add->setDefaultAction(m_new);
    m_grouping->setPopupMode(QToolButton::InstantPopup);
    m_grouping->setToolTip(tr("Put rows together under headings"));
    auto *groups = new QMenu(m_grouping);
    for (QAction *action : m_groupBy)
        groups->addAction(action);
    m_grouping->setMenu(groups);
    m_grouping->setText(tr("Group"));
    m_grouping->setAccessibleName(tr("Group rows"));
    m_menu->setText(tr("Rows"));
    m_menu->setPopupMode(QToolButton::InstantPopup);
    m_menu->setAccessibleName(tr("What can be done with rows"));
    auto *menu = new QMenu(m_menu);
    for (QAction *action : {m_cut, m_copy, m_paste, m_duplicate, m_remove})
        menu->addAction(action);
    menu->addSeparator();
    for (QAction *action : {m_switch, m_up, m_down, m_fill, m_operators})
        menu->addAction(action);
    menu->addSeparator();
    for (QAction *action : {m_copyPlan, m_textOrder, m_actingFirst, m_pricesAction})
        menu->addAction(action);
    m_menu->setMenu(menu);
    for (QToolButton *button : {add, acting, m_grouping, m_menu}) {
        button->setAutoRaise(true);
        button->setFocusPolicy(Qt::TabFocus);
        button->setToolButtonStyle(Qt::ToolButtonTextOnly);
    }
    auto *bar = new QHBoxLayout;
    bar->setContentsMargins(4, 2, 4, 2);
    bar->addWidget(m_tabs);
    bar->addWidget(add);
    bar->addWidget(m_filter, 1);
    bar->addWidget(acting);
    bar->addWidget(m_grouping);
    bar->addWidget(m_menu);
    m_message->setTextFormat(Qt::PlainText);
    m_message->setWordWrap(true);
    m_message->setMargin(4);
    m_message->setTextInteractionFlags(Qt::TextSelectableByMouse);
    m_message->setAccessibleName(tr("What there is to say about the row"));
    m_message->hide();
    auto *layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(0);
    layout->addLayout(bar);
    layout->addWidget(m_stack, 1);
    layout->addWidget(m_pastePreview);
    layout->addWidget(m_message);
    QWidget *before = m_tabs;
    for (QWidget *widget : std::initializer_list<QWidget *>{add, m_filter, acting, m_grouping, m_menu, m_view, m_text}) {
        setTabOrder(before, widget);
        before = widget;
    }
    m_view->setContextMenuPolicy(Qt::CustomContextMenu);
    connect(m_view, &QWidget::customContextMenuRequested, this, &TablePanel::showContextMenu);
    connect(m_view->horizontalHeader(), &QHeaderView::sectionClicked, this, &TablePanel::sortBy);
}

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
    connect(m_text, &TableTextEditor::edited, this, [this](const TableEdit &change) {
        // Keystrokes within a second are one step; a large table is not sent whole for each.
        constexpr std::size_t kFewLines = 500;
        if (m_rows->document().lines().size() <= kFewLines) {
            TableDocument document = m_rows->document();
            if (document.apply(change)) {
                m_workspace->setTableText(document.text());
                return;
            }
        }
        m_workspace->editTable(tr("edit the rows as text"), change, QStringLiteral("text"));
    });
    connect(m_text, &TableTextEditor::undoAsked, m_workspace, &Workspace::undo);
    connect(m_text, &TableTextEditor::redoAsked, m_workspace, &Workspace::redo);
}

void TablePanel::connectLinks()
{
    connect(m_view->selectionModel(), &QItemSelectionModel::selectionChanged, this, &TablePanel::rowsSelected);
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
    connect(m_links, &TableLinks::hoverFound, this,
        [this](const std::vector<std::uint64_t> &keys) { m_list->setHovered({keys.begin(), keys.end()}); });
    connect(m_links, &TableLinks::reachFound, m_rows, &ConstraintTableModel::setReach);
    connect(m_links, &TableLinks::conflictsFound, this, [this](quint64 revision, std::map<std::int32_t, QString> sentences) {
        const PlanUpdateSnapshot &latest = m_workspace->latest();
        if (latest && latest->revision == revision && latest->tableText == m_workspace->tableText()) {
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
    connect(m_list, &TableListModel::rowsDropped, this, [this](const std::vector<std::int32_t> &lines, std::int32_t before) {
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
        QItemSelection selection;
        for (const auto key : m_keptSelection) {
            const int row = m_list->rowOfKey(key);
            if (row >= 0)
                selection.select(m_list->index(row, 0), m_list->index(row, kTableColumns - 1));
        }
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
    if (update->tableText != m_workspace->tableText())
        return;
    m_rows->setUpdate(update);
    if (const auto context = update->errorCount() > 0 ? m_workspace->gestureContext() : nullptr)
        m_links->findConflicts(context, update);
    else
        m_rows->setConflicts({});
    if (update->plan)
        m_links->findReach(update);
    if (update->final && update->scene)
        m_prices->setBaseline(update, m_workspace->cluster(), m_workspace->deviceCount(), m_workspace->clusterJson());
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
        if (m_ownSelection) {
            m_links->forgetOperators();
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

std::vector<int> TablePanel::selectedRows() const
{
    std::vector<int> rows;
    if (isTextMode()) {
        for (const std::int32_t line : m_text->selectedLines()) {
            if (m_rows->rowOfLine(line) >= 0)
                rows.push_back(m_rows->rowOfLine(line));
        }
        return rows;
    }
    const QItemSelection selection = m_view->selectionModel()->selection();
    for (const QItemSelectionRange &range : selection) {
        for (int row = range.top(); row <= range.bottom(); ++row) {
            if (m_list->sourceRow(row) >= 0)
                rows.push_back(m_list->sourceRow(row));
        }
    }
    std::sort(rows.begin(), rows.end());
    rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
    return rows;
}

std::vector<std::int32_t> TablePanel::selectedLines() const
{
    std::vector<std::int32_t> lines;
    for (const int row : selectedRows())
        lines.push_back(m_rows->lineAt(row));
    return lines;
}

void TablePanel::selectLines(const std::vector<std::int32_t> &lines, int column)
{
    if (lines.empty())
        return;
    if (isTextMode()) {
        m_text->showLine(lines.front());
        return;
    }
    QItemSelection selection;
    QModelIndex first;
    for (const std::int32_t line : lines) {
        const int row = m_rows->rowOfLine(line);
        const int shown = row < 0 ? -1 : m_list->rowOfSource(row);
        if (shown < 0)
            continue;
        selection.select(m_list->index(shown, 0), m_list->index(shown, kTableColumns - 1));
        if (!first.isValid())
            first = m_list->index(shown, column >= 0 ? column : std::max(m_view->currentIndex().column(), 0));
    }
    if (!first.isValid())
        return;
    m_view->selectionModel()->setCurrentIndex(first, QItemSelectionModel::NoUpdate);
    m_view->selectionModel()->select(selection, QItemSelectionModel::ClearAndSelect);
    m_view->scrollTo(first);
}

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
        m_view->setColumnWidth(column, static_cast<int>(letters * m_view->fontMetrics().averageCharWidth() + 0.5));
    }
    setTextMode(state[QStringLiteral("text")].toBool());
    refreshActions();
}

QString TablePanel::message() const
{
    return m_message->isHidden() ? QString() : m_message->text();
}

void TablePanel::say(const QString &text, bool problem)
{
    m_lastMessageIsProblem = problem;
    m_message->setText(problem && !text.isEmpty() ? QStringLiteral("✖ ") + text : text);
    QPalette colours = m_message->palette();
    colours.setColor(QPalette::WindowText, problem ? paletteFor(*this).error : paletteFor(*this).textMuted);
    m_message->setPalette(colours);
    m_message->setVisible(!text.isEmpty());
}

void TablePanel::refreshMessage()
{
    if (m_lastMessageIsProblem)
        return; // stays until the person goes on
    int row = -1;
    if (isTextMode())
        row = m_rows->rowOfLine(m_text->currentLine());
    else if (m_view->currentIndex().isValid())
        row = m_list->sourceRow(m_view->currentIndex().row());
    if (row >= 0) {
        const QString problem = m_rows->problemAt(row);
        if (!problem.isEmpty()) {
            say(tr("Row %1. %2").arg(m_rows->lineAt(row) + 1).arg(problem), true);
            m_lastMessageIsProblem = false;
            return;
        }
        const QString warning = m_rows->warningAt(row);
        if (!warning.isEmpty()) {
            say(tr("⚠ Row %1: %2").arg(m_rows->lineAt(row) + 1).arg(warning));
            return;
        }
    }
    if (m_list->showsActingOnly())
        say(tr("Only rows that act on what is selected are shown."));
    else
        say({});
}

} // namespace planloom
