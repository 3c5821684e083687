// What the comparison is made of.

#include "widgets/compare/compare_view.h"

#include <QtGui/QAction>
#include <QtGui/QActionGroup>
#include <QtGui/QShortcut>
#include <QtWidgets/QComboBox>
#include <QtWidgets/QHBoxLayout>
#include <QtWidgets/QHeaderView>
#include <QtWidgets/QLabel>
#include <QtWidgets/QSplitter>
#include <QtWidgets/QStackedWidget>
#include <QtWidgets/QStyledItemDelegate>
#include <QtWidgets/QTabWidget>
#include <QtWidgets/QTableView>
#include <QtWidgets/QToolButton>
#include <QtWidgets/QVBoxLayout>

#include "widgets/common/delta.h"
#include "widgets/common/palette.h"
#include "widgets/compare/communication_compare.h"
#include "widgets/compare/compare_causes.h"
#include "widgets/compare/compare_models.h"
#include "widgets/compare/compared_timeline.h"
#include "widgets/compare/memory_overlay.h"
#include "widgets/compare/waterfall_view.h"
#include "widgets/dag/dag_view.h"
#include "widgets/timeline/timeline_view.h"

#include <utility>

namespace planloom {

namespace {

/// Colours of what a difference means, and cells that differ.
class CompareDelegate : public QStyledItemDelegate
{
public:
    using QStyledItemDelegate::QStyledItemDelegate;

protected:
    void initStyleOption(QStyleOptionViewItem *option, const QModelIndex &index) const override
    {
        QStyledItemDelegate::initStyleOption(option, index);
        if (!option->widget)
            return;
        const Palette &palette = paletteFor(*option->widget);
        if (qobject_cast<const RowDiffModel *>(index.model())) {
            const auto kind = static_cast<ComparedRow::Kind>(index.data(RowDiffModel::KindRole).toInt());
            if (kind == ComparedRow::Kind::Same)
                option->palette.setColor(QPalette::Text, palette.textMuted);
            if (index.data(RowDiffModel::DiffersRole).toBool()) {
                option->backgroundBrush = mixed(palette.surface, palette.match, 0.16);
                option->palette.setColor(QPalette::Text, palette.text);
                option->font.setBold(true);
            }
            return;
        }
        const QVariant change = index.data(MetricModel::ChangeRole);
        if (!change.isValid())
            return;
        const auto meaning = static_cast<Change>(change.toInt());
        option->palette.setColor(QPalette::Text,
            meaning == Change::Better      ? palette.success
                : meaning == Change::Worse ? palette.error
                : meaning == Change::Same  ? palette.textMuted
                                           : palette.text);
    }
};

QTableView *newTable(QAbstractItemModel *model, const QString &name, QWidget *parent)
{
    auto *table = new QTableView(parent);
    table->setModel(model);
    table->setItemDelegate(new CompareDelegate(table));
    table->setFrameShape(QFrame::NoFrame);
    table->setShowGrid(false);
    table->setWordWrap(false);
    table->setTabKeyNavigation(false);
    table->setEditTriggers(QAbstractItemView::NoEditTriggers);
    table->setAccessibleName(name);
    table->verticalHeader()->hide();
    table->horizontalHeader()->setHighlightSections(false);
    return table;
}

} // namespace

QAction *CompareView::addNewAction(
    const char *name, const QString &text, const QString &tip, std::function<void()> act)
{
    auto *action = new QAction(text, this);
    action->setObjectName(QLatin1String(name));
    action->setToolTip(tip);
    action->setShortcutContext(Qt::WidgetWithChildrenShortcut);
    connect(action, &QAction::triggered, this, [act = std::move(act)] { act(); });
    addAction(action);
    return action;
}

void CompareView::makeActions()
{
    auto *group = new QActionGroup(this);
    const auto addMode = [this, group](
                             CompareMode mode, const char *name, const QString &text, const QString &tip) {
        QAction *action = addNewAction(name, text, tip, [this, mode] { setMode(mode); });
        action->setCheckable(true);
        group->addAction(action);
        m_modes[mode] = action;
    };
    addMode(CompareMode::SideBySide, "compare.sideBySide", tr("Side by Side"),
        tr("A's timeline above B's, on one axis"));
    addMode(CompareMode::Difference, "compare.difference", tr("Difference"),
        tr("Only what moved, with arrows from the old place to the new one"));
    addMode(CompareMode::Butterfly, "compare.butterfly", tr("Butterfly"), tr("A above B in every lane"));
    m_blink = addNewAction("compare.blink", tr("Blink"), tr("A and B take turns at the same place (hold `)"),
        [this] { setBlinking(m_blink->isChecked()); });
    m_blink->setCheckable(true);
    m_swap = addNewAction(
        "compare.swap", tr("Swap A and B"), tr("Exchanges A and B"), [this] { m_choice->swap(); });
    m_take = addNewAction("compare.takeIntoCurrent", tr("Take into Current"),
        tr("Puts the selected cells' rows into the current design, to see what would be"),
        [this] { takeSelected(); });
    m_only = addNewAction("compare.onlyDifferences", tr("Only Differences"),
        tr("Leaves out rows that are the same on both sides"),
        [this] { m_rows->setOnlyDifferences(m_only->isChecked()); });
    m_only->setCheckable(true);
    m_copy = addNewAction("compare.copyTable", tr("Copy Figures"),
        tr("Copies the table of figures as comma-separated text"), [this] { copyFigures(false); });
    m_copyJson = addNewAction("compare.copyJson", tr("Copy Figures as JSON"),
        tr("Copies the table of figures as JSON"), [this] { copyFigures(true); });
    addNewAction("compare.done", tr("Done"), tr("Back to the design (Esc)"), [] {}); // the window's to do
}

void CompareView::buildBar()
{
    m_bar = new QWidget(this);
    auto *row = new QHBoxLayout(m_bar);
    row->setContentsMargins(8, 4, 8, 4);
    const auto addChooser = [this, row](const QString &letter, const QString &name) {
        auto *label = new QLabel(letter, m_bar);
        QFont bold = label->font();
        bold.setBold(true);
        label->setFont(bold);
        auto *box = new QComboBox(m_bar);
        box->setAccessibleName(name);
        box->setSizeAdjustPolicy(QComboBox::AdjustToContents);
        label->setBuddy(box);
        row->addWidget(label);
        row->addWidget(box);
        return box;
    };
    const auto addButton = [this, row](QAction *action) {
        auto *button = new QToolButton(m_bar);
        button->setDefaultAction(action);
        button->setAutoRaise(true);
        button->setFocusPolicy(Qt::TabFocus);
        button->setAccessibleName(action->text());
        row->addWidget(button);
    };
    m_chooseA = addChooser(tr("A"), tr("Plan A"));
    addButton(m_swap);
    m_chooseB = addChooser(tr("B"), tr("Plan B"));
    connect(m_chooseA, &QComboBox::activated, this,
        [this](int index) { m_choice->setA(m_chooseA->itemData(index).toLongLong()); });
    connect(m_chooseB, &QComboBox::activated, this,
        [this](int index) { m_choice->setB(m_chooseB->itemData(index).toLongLong()); });
    row->addSpacing(16);
    for (const auto &[mode, action] : m_modes)
        addButton(action);
    m_align = new QComboBox(m_bar);
    m_align->setObjectName(QStringLiteral("compare.align"));
    m_align->setAccessibleName(tr("Event at which the timelines are aligned"));
    m_align->setToolTip(tr("Event at which the timelines lie over each other; the ruler shows A's times"));
    for (const auto &[event, text] : {std::pair{AlignAt::Start, tr("from the start")},
             {AlignAt::End, tr("at the end")}, {AlignAt::FirstBackward, tr("at the first backward pass")},
             {AlignAt::Gradients, tr("at the gradients' reduction")},
             {AlignAt::Operator, tr("at the selected operator")}})
        m_align->addItem(text, static_cast<int>(event));
    auto *alignLabel = new QLabel(tr("Aligned"), m_bar);
    alignLabel->setBuddy(m_align);
    row->addSpacing(8);
    row->addWidget(alignLabel);
    row->addWidget(m_align);
    connect(m_align, &QComboBox::activated, this,
        [this](int index) { setAlignment(static_cast<AlignAt>(m_align->itemData(index).toInt())); });
    row->addSpacing(8);
    addButton(m_blink);
    m_blinkLabel = new QLabel(m_bar);
    m_blinkLabel->hide();
    row->addWidget(m_blinkLabel);
    row->addStretch(1);
    m_remark = new QLabel(m_bar);
    m_remark->setAccessibleName(tr("Remark"));
    m_remark->hide();
    row->addWidget(m_remark);
    addButton(m_copy);
    QAction *done = findChild<QAction *>(QStringLiteral("compare.done"));
    addButton(done);
    connect(new QShortcut(Qt::Key_Escape, this, nullptr, nullptr, Qt::WidgetWithChildrenShortcut),
        &QShortcut::activated, done, &QAction::trigger);
}

void CompareView::buildTimelines()
{
    m_metrics = new MetricModel(this);
    m_metricList = newTable(m_metrics, tr("Figures of the plans"), this);
    m_metricList->setSelectionBehavior(QAbstractItemView::SelectRows);
    m_metricList->setContextMenuPolicy(Qt::ActionsContextMenu);
    m_metricList->addActions({m_copy, m_copyJson});
    m_waterfall = new WaterfallView(this);
    m_pages = new QStackedWidget(this);
    m_pair = new QSplitter(Qt::Vertical, m_pages);
    m_pair->setChildrenCollapsible(false);
    m_timelineA = new TimelineView(m_selection, m_pair);
    m_timelineB = new TimelineView(m_selection, m_pair);
    m_timelineA->setAccessibleName(tr("Timeline of A"));
    m_timelineB->setAccessibleName(tr("Timeline of B"));
    m_pair->addWidget(m_timelineA);
    m_pair->addWidget(m_timelineB);
    m_compared = new ComparedTimeline(m_selection, m_pages);
    m_pages->addWidget(m_pair);
    m_pages->addWidget(m_compared);
    for (TimelineView *view : {m_timelineA, m_timelineB}) {
        LaneArrangement all; // two timelines share the room of one: nobody scrolls to compare
        all.laneHeight = LaneHeight::Fit;
        view->setArrangement(std::move(all));
        view->viewport()->installEventFilter(this);
        connect(view, &TimelineView::axisChanged, this,
            [this, view](const TimeAxis &axis) { linkAxis(axis, view); });
        connect(view, &TimelineView::operatorActivated, this, &CompareView::operatorActivated);
    }
    connect(m_compared, &ComparedTimeline::axisChanged, this,
        [this](const TimeAxis &axis) { linkAxis(axis, m_compared); });
}

void CompareView::buildTabs()
{
    m_tabs = new QTabWidget(this);
    m_tabs->setDocumentMode(true);
    auto *operators = new QWidget(m_tabs);
    auto *operatorsLayout = new QVBoxLayout(operators);
    operatorsLayout->setContentsMargins(0, 0, 0, 0);
    operatorsLayout->setSpacing(0);
    m_dagCounts = new QLabel(operators);
    m_dagCounts->setMargin(4);
    m_dagCounts->setAccessibleName(tr("How operators differ"));
    m_dag = new DagView(operators);
    m_dag->setSelectionModel(m_selection);
    m_dag->setColourBy(ColourBy::Difference);
    operatorsLayout->addWidget(m_dagCounts);
    operatorsLayout->addWidget(m_dag, 1);
    m_tabs->addTab(operators, tr("Operators"));

    m_rows = new RowDiffModel(this);
    auto *rows = new QWidget(m_tabs);
    m_rowList = newTable(m_rows, tr("Rows of both plans"), rows);
    m_rowList->setSelectionMode(QAbstractItemView::ExtendedSelection);
    m_rowList->setSelectionBehavior(QAbstractItemView::SelectItems); // the cell tells the side
    m_rowList->setDragEnabled(true);
    m_rowList->setAcceptDrops(true);
    m_rowList->setDropIndicatorShown(true);
    m_rowList->setDragDropMode(QAbstractItemView::DragDrop);
    m_rowList->setDefaultDropAction(Qt::CopyAction);
    m_rowList->setDragDropOverwriteMode(true);
    m_rowList->setAccessibleDescription(
        tr("Select cells of one side and take them into the current design."));
    m_rowList->setContextMenuPolicy(Qt::ActionsContextMenu);
    m_rowList->QWidget::addAction(m_take);
    connect(m_rows, &RowDiffModel::takeOverRequested, this, &CompareView::takeIntoCurrent);
    auto *take = new QToolButton(rows);
    take->setDefaultAction(m_take);
    take->setAccessibleName(m_take->text());
    take->setFocusPolicy(Qt::TabFocus);
    auto *only = new QToolButton(rows);
    only->setDefaultAction(m_only);
    only->setAccessibleName(m_only->text());
    only->setFocusPolicy(Qt::TabFocus);
    auto *tools = new QHBoxLayout;
    tools->setContentsMargins(6, 3, 6, 3);
    tools->addWidget(take);
    tools->addWidget(only);
    tools->addStretch(1);
    auto *rowsLayout = new QVBoxLayout(rows);
    rowsLayout->setContentsMargins(0, 0, 0, 0);
    rowsLayout->setSpacing(0);
    rowsLayout->addLayout(tools);
    rowsLayout->addWidget(m_rowList, 1);
    m_tabs->addTab(rows, tr("Rows"));
    m_causes = new CompareCauses(m_tabs);
    connect(m_causes, &CompareCauses::operatorsChosen, m_selection, &SelectionModel::select);
    m_tabs->addTab(m_causes, tr("Why"));

    m_memory = new MemoryOverlay(m_tabs);
    m_tabs->addTab(m_memory, tr("Memory"));
    m_communication = new CommunicationCompare(m_tabs);
    m_tabs->addTab(m_communication, tr("Communication"));
}

void CompareView::layOut()
{
    auto *top = new QSplitter(Qt::Horizontal, this);
    m_metricList->setMinimumWidth(fontMetrics().averageCharWidth() * 60);
    top->addWidget(m_metricList);
    top->addWidget(m_waterfall);
    top->setStretchFactor(0, 1);
    top->setStretchFactor(1, 1);
    auto *parts = new QSplitter(Qt::Vertical, this);
    parts->addWidget(top);
    parts->addWidget(m_pages);
    parts->addWidget(m_tabs);
    parts->setStretchFactor(0, 2);
    parts->setStretchFactor(1, 8);
    parts->setStretchFactor(2, 3);
    const int line = fontMetrics().height();
    top->setSizes({line * 42, line * 46});
    parts->setSizes({line * 12, line * 40, line * 14});
    auto *layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(0);
    layout->addWidget(m_bar);
    layout->addWidget(parts, 1);
    fitFonts();
}

void CompareView::fitFonts()
{
    const QFontMetrics metrics = fontMetrics();
    const int em = metrics.averageCharWidth();
    for (QTableView *table : {m_metricList, m_rowList}) {
        table->verticalHeader()->setMinimumSectionSize(metrics.height());
        table->verticalHeader()->setDefaultSectionSize(metrics.height() * 4 / 3);
    }
    m_metricList->resizeColumnsToContents(); // ten rows
    for (int column = 0; column < m_metrics->columnCount(); ++column)
        m_metricList->setColumnWidth(column, m_metricList->columnWidth(column) + em * 2);
    m_rowList->setColumnWidth(RowDiffModel::State, em * 14);
    for (const int column :
        {RowDiffModel::SelectorA, RowDiffModel::RuleA, RowDiffModel::SelectorB, RowDiffModel::RuleB})
        m_rowList->horizontalHeader()->setSectionResizeMode(column, QHeaderView::Stretch);
}

} // namespace planloom
