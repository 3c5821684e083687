#include "widgets/table/table_panel.h"

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

TablePanel::TablePanel(Workspace *workspace, SelectionModel *selection, QWidget *parent)
    : QWidget(parent)
    , m_workspace(workspace)
    , m_selection(selection)
    , m_rows(new ConstraintTableModel(this))
    , m_list(new TableListModel(m_rows, this))
    , m_delegate(new TableDelegate(m_list, this))
    , m_links(new TableLinks(this))
    , m_prices(new PriceService(m_rows, this))
    , m_view(new RowsView(m_list, this))
    , m_pastePreview(new PastePreview(this))
    , m_text(new TableTextEditor(m_rows, this))
    , m_stack(new QStackedWidget(this))
    , m_tabs(new QTabBar(this))
    , m_filter(new QLineEdit(this))
    , m_message(new QLabel(this))
    , m_menu(new QToolButton(this))
    , m_grouping(new QToolButton(this))
    , m_keepButton(new QToolButton(this))
    , m_actingButton(new QToolButton(this))
    , m_bar(new QHBoxLayout)
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
        const bool several =
            selected.size() > 1 && std::find(selected.begin(), selected.end(), row) != selected.end();
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

void TablePanel::resizeEvent(QResizeEvent *)
{
    fitBar();
}

/// Where there is no room for all buttons, those go that the menu has, too.
void TablePanel::fitBar()
{
    constexpr int kFilterLetters = 10;
    int room = width() - m_bar->contentsMargins().left() - m_bar->contentsMargins().right()
        - m_filter->fontMetrics().averageCharWidth() * kFilterLetters;
    for (int i = 0; i < m_bar->count(); ++i) {
        const QWidget *widget = m_bar->itemAt(i)->widget();
        if (widget != m_filter && widget != m_keepButton && widget != m_actingButton)
            room -= widget->sizeHint().width();
        room -= i > 0 ? m_bar->spacing() : 0;
    }
    for (QToolButton *button : {m_keepButton, m_actingButton}) {
        const bool isWanted = button != m_keepButton || m_keepAll->isEnabled();
        const bool fits = isWanted && button->sizeHint().width() <= room;
        room -= fits ? button->sizeHint().width() : 0;
        button->setVisible(fits);
    }
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
    m_actingButton->setDefaultAction(m_acting);
    auto *add = new QToolButton(this);
    add->setDefaultAction(m_new);
    m_keepButton->setDefaultAction(m_keepAll);
    connect(m_keepAll, &QAction::changed, this, &TablePanel::fitBar);
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
    for (QAction *action : {m_switch, m_prefer, m_up, m_down, m_fill, m_operators, m_keep, m_keepAll})
        menu->addAction(action);
    menu->addSeparator();
    for (QAction *action : {m_copyPlan, m_textOrder, m_acting, m_actingFirst, m_pricesAction})
        menu->addAction(action);
    m_menu->setMenu(menu);
    for (QToolButton *button : {add, m_keepButton, m_actingButton, m_grouping, m_menu}) {
        button->setAutoRaise(true);
        button->setFocusPolicy(Qt::TabFocus);
        button->setToolButtonStyle(Qt::ToolButtonTextOnly);
    }
    m_bar->setContentsMargins(4, 2, 4, 2);
    m_bar->addWidget(m_tabs);
    m_bar->addWidget(add);
    m_bar->addWidget(m_filter, 1);
    m_bar->addWidget(m_keepButton);
    m_bar->addWidget(m_actingButton);
    m_bar->addWidget(m_grouping);
    m_bar->addWidget(m_menu);
    fitBar();
    m_message->setTextFormat(Qt::PlainText);
    m_message->setWordWrap(true);
    m_message->setMargin(4);
    m_message->setTextInteractionFlags(Qt::TextSelectableByMouse);
    m_message->setAccessibleName(tr("What there is to say about the row"));
    m_message->hide();
    auto *layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(0);
    layout->addLayout(m_bar);
    layout->addWidget(m_stack, 1);
    layout->addWidget(m_pastePreview);
    layout->addWidget(m_message);
    QWidget *before = m_tabs;
    for (QWidget *widget : std::initializer_list<QWidget *>{
             add, m_filter, m_keepButton, m_actingButton, m_grouping, m_menu, m_view, m_text}) {
        setTabOrder(before, widget);
        before = widget;
    }
    m_view->setContextMenuPolicy(Qt::CustomContextMenu);
    connect(m_view, &QWidget::customContextMenuRequested, this, &TablePanel::showContextMenu);
    connect(m_view->horizontalHeader(), &QHeaderView::sectionClicked, this, &TablePanel::sortBy);
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
    std::vector<int> rows;
    for (const std::int32_t line : lines) {
        const int row = m_rows->rowOfLine(line);
        const int shown = row < 0 ? -1 : m_list->rowOfSource(row);
        if (shown >= 0)
            rows.push_back(shown);
    }
    const QModelIndex first = rows.empty()
        ? QModelIndex()
        : m_list->index(rows.front(), column >= 0 ? column : std::max(m_view->currentIndex().column(), 0));
    const QItemSelection selection = wholeRows(*m_list, std::move(rows));
    if (!first.isValid())
        return;
    m_view->selectionModel()->setCurrentIndex(first, QItemSelectionModel::NoUpdate);
    m_view->selectionModel()->select(selection, QItemSelectionModel::ClearAndSelect);
    m_view->scrollTo(first);
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

#include "moc_table_panel.cpp"
