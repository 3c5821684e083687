#include "widgets/compare/compare_view.h"

#include <QtConcurrent/QtConcurrentRun>
#include <QtCore/QEvent>
#include <QtGui/QAction>
#include <QtGui/QClipboard>
#include <QtGui/QGuiApplication>
#include <QtGui/QKeyEvent>
#include <QtWidgets/QApplication>
#include <QtWidgets/QComboBox>
#include <QtWidgets/QLabel>
#include <QtWidgets/QLineEdit>
#include <QtWidgets/QStackedWidget>
#include <QtWidgets/QTabWidget>
#include <QtWidgets/QTableView>

#include "widgets/common/format.h"
#include "widgets/common/palette.h"
#include "widgets/common/qt_text.h"
#include "widgets/compare/communication_compare.h"
#include "widgets/compare/compare_causes.h"
#include "widgets/compare/compare_export.h"
#include "widgets/compare/compare_models.h"
#include "widgets/compare/compared_timeline.h"
#include "widgets/compare/memory_overlay.h"
#include "widgets/compare/plans_model.h"
#include "widgets/compare/waterfall_view.h"
#include "widgets/dag/dag_view.h"
#include "widgets/design/workspace.h"
#include "widgets/timeline/timeline_view.h"

#include <algorithm>

namespace planloom {

namespace {

constexpr int kBlinkMilliseconds = 450; ///< Slower than three flashes a second.

} // namespace

CompareView::CompareView(
    Workspace *workspace, SelectionModel *selection, CompareChoice *choice, QWidget *parent)
    : QWidget(parent)
    , m_workspace(workspace)
    , m_selection(selection)
    , m_choice(choice)
{
    setObjectName(QStringLiteral("compareView"));
    setAccessibleName(tr("Comparison of plans"));
    makeActions();
    buildBar();
    buildTimelines();
    buildTabs();
    layOut();

    m_gatherTimer.setSingleShot(true);
    m_gatherTimer.setInterval(0);
    connect(&m_gatherTimer, &QTimer::timeout, this, &CompareView::gather);
    m_blinkTimer.setInterval(kBlinkMilliseconds);
    connect(&m_blinkTimer, &QTimer::timeout, this, [this] {
        m_blinkB = !m_blinkB;
        m_timelineA->setVisible(!m_blinkB);
        m_timelineB->setVisible(m_blinkB);
        m_blinkLabel->setText(m_blinkB ? tr("now B") : tr("now A"));
    });
    const auto later = [this] { m_gatherTimer.start(); };
    connect(m_choice, &CompareChoice::changed, this, later);
    connect(m_workspace, &Workspace::planChanged, this, [this, later] {
        if (m_choice->indexOf(kCurrentPlan) >= 0 || m_choice->indexOf(m_workspace->history().current()) >= 0)
            later();
    });
    connect(m_workspace, &Workspace::historyChanged, this, later);
    connect(m_workspace, &Workspace::sessionChanged, this, [this, later] {
        m_plans.clear();
        later();
    });
    connect(m_workspace, &Workspace::modelChanged, this, [this, later] {
        m_plans.clear();
        later();
    });
    connect(m_workspace, &Workspace::planOfStepReady, this,
        [this, later](StepId step, const PlanUpdateSnapshot &update) {
            if (m_choice->indexOf(step) < 0)
                return;
            m_plans[step] = update;
            later();
        });
    connect(&m_watcher, &QFutureWatcherBase::finished, this, [this] {
        m_comparing = false;
        if (const CompareSnapshot result = m_watcher.result())
            showResult(result);
    });
    connect(m_selection, &SelectionModel::selectionChanged, this, [this] {
        if (m_alignAt == AlignAt::Operator)
            align();
    });
    setMode(CompareMode::SideBySide);
}

CompareView::~CompareView()
{
    m_stop.request_stop();
    m_blinkTimer.stop();
    qApp->removeEventFilter(this);
}

QString CompareView::remark() const
{
    return m_remark->text();
}

void CompareView::say(const QString &sentence)
{
    QPalette colours = palette();
    colours.setColor(QPalette::WindowText, paletteFor(*this).error);
    m_remark->setPalette(colours);
    m_remark->setText(sentence.isEmpty() ? QString() : QStringLiteral("⚠ ") + sentence);
    m_remark->setVisible(!sentence.isEmpty());
}

QString CompareView::titleOfPlan(std::size_t place) const
{
    return titleOf(m_workspace->history(), m_choice->plans()[place]);
}

PlanUpdateSnapshot CompareView::planOf(StepId step)
{
    const PlanUpdateSnapshot &latest = m_workspace->latest();
    const bool answered = latest && (latest->scene || latest->final);
    if (step == kCurrentPlan)
        return answered ? latest : m_workspace->lastGood();
    if (step != m_workspace->history().current()) {
        if (const auto known = m_plans.find(step); known != m_plans.end())
            return known->second;
    }
    // The current step may have been amended since; the workspace knows.
    PlanUpdateSnapshot plan = m_workspace->planOfStep(step);
    if (plan)
        m_plans[step] = plan;
    return plan;
}

void CompareView::gather()
{
    if (!isVisible()) {
        m_outdated = true;
        return;
    }
    m_outdated = false;
    fillChoosers();
    for (auto plan = m_plans.begin(); plan != m_plans.end();)
        plan = m_choice->indexOf(plan->first) < 0 ? m_plans.erase(plan) : std::next(plan);
    m_swap->setEnabled(m_choice->isPair());
    refreshMetrics();
    compareNow();
}

void CompareView::refreshMetrics()
{
    std::vector<PlanUpdateSnapshot> plans;
    QStringList titles;
    for (std::size_t i = 0; i < m_choice->plans().size(); ++i) {
        plans.push_back(planOf(m_choice->plans()[i]));
        titles << titleOfPlan(i);
    }
    m_metrics->setMetrics(metricTable(plans), titles);
    fitFonts();
}

void CompareView::compareNow()
{
    if (!m_choice->isPair()) {
        say(tr("Choose two plans to compare."));
        return;
    }
    const PlanUpdateSnapshot a = planOf(m_choice->a());
    const PlanUpdateSnapshot b = planOf(m_choice->b());
    if (!a || !b)
        return; // `planOfStepReady` comes
    QStringList sentences;
    for (const bool ofB : {false, true}) {
        const PlanUpdateSnapshot &plan = ofB ? b : a;
        if (!plan->scene) {
            sentences << tr("%1 has no plan: its rows could not hold.").arg(ofB ? tr("B") : tr("A"));
        }
    }
    say(sentences.join(QLatin1Char(' ')));
    if (m_result && m_result->a == a && m_result->b == b && !m_comparing) {
        showResult(m_result); // titles may have changed
        return;
    }
    m_stop.request_stop();
    m_stop = std::stop_source{};
    m_comparing = true;
    m_watcher.setFuture(
        QtConcurrent::run([a, b, stop = m_stop.get_token()] { return comparePlans(a, b, stop); }));
}

void CompareView::showResult(const CompareSnapshot &result)
{
    const bool fresh = result != m_result;
    m_result = result;
    const TimelineSceneSnapshot &a = result->a->scene;
    const TimelineSceneSnapshot &b = result->b->scene;
    m_waterfall->setWaterfall(
        result->waterfall, titleOfPlan(0), m_choice->isPair() ? titleOfPlan(1) : QString());
    if (!fresh)
        return;
    m_rows->setRows(result->rows);
    m_tabs->setTabText(1, tr("Rows (%1)").arg(m_rows->differences()));
    m_causes->setResult(result);
    m_tabs->setTabText(2, tr("Why (%1)").arg(m_causes->count()));
    m_timelineA->setScene(a);
    m_timelineB->setScene(b);
    m_compared->setResult(result);
    m_memory->setResult(result);
    m_communication->setResult(result);
    align();
    if (m_fitted)
        fitAxis();
    const GraphSnapshot graph = b ? b->plan->graph : result->b->model ? result->b->model->graph : nullptr;
    if (graph != m_dagGraph) {
        m_dagGraph = graph;
        m_dag->setGraph(graph);
    }
    m_dag->setPlan(result->b->plan);
    m_dag->setDifference(result->operators);
    m_dag->setColourBy(ColourBy::Difference);
    const auto count = [&result](OperatorChange change) {
        return toQString(formatCount(result->counts[static_cast<std::size_t>(change)]));
    };
    m_dagCounts->setText(result->operators.empty()
            ? tr("Operators are compared once both plans have a timeline.")
            : tr("%1 same · %2 split differently · %3 placed elsewhere · %4 ordered differently · "
                 "%5 computed differently · %6 several")
                  .arg(count(OperatorChange::Same), count(OperatorChange::Split),
                      count(OperatorChange::Placed), count(OperatorChange::Ordered),
                      count(OperatorChange::Computed), count(OperatorChange::Both)));
    m_tabs->setTabText(0,
        result->operators.empty()
            ? tr("Operators")
            : tr("Operators (%1)").arg(static_cast<int>(result->operators.size()) - result->counts[0]));
    Q_EMIT resultChanged();
}

void CompareView::fillChoosers()
{
    const History &history = m_workspace->history();
    std::vector<StepId> steps;
    for (const ListedPlan &plan : listPlans(history)) {
        if (std::find(steps.begin(), steps.end(), plan.step) == steps.end())
            steps.push_back(plan.step);
    }
    for (const StepId step : m_choice->plans()) {
        if (std::find(steps.begin(), steps.end(), step) == steps.end())
            steps.push_back(step);
    }
    for (QComboBox *box : {m_chooseA, m_chooseB}) {
        const QSignalBlocker blocker(box);
        box->clear();
        for (const StepId step : steps)
            box->addItem(titleOf(history, step), QVariant::fromValue(static_cast<qlonglong>(step)));
        const std::size_t place = box == m_chooseA ? 0 : 1;
        if (place < m_choice->plans().size())
            box->setCurrentIndex(
                box->findData(QVariant::fromValue(static_cast<qlonglong>(m_choice->plans()[place]))));
        else
            box->setCurrentIndex(-1);
    }
}

void CompareView::takeIntoCurrent(const std::vector<int> &rows, bool fromA)
{
    TableDocument table = m_workspace->table();
    TableEdit edit;
    QString last;
    int taken = 0;
    for (const int row : rows) {
        const ComparedRow &compared = m_rows->rows()[static_cast<std::size_t>(row)];
        const TableEdit one = takeOver(table, compared, fromA);
        if (one.empty() || !table.apply(one))
            continue;
        edit = joined(std::move(edit), one);
        const std::string &text = fromA ? compared.a.text : compared.b.text;
        last = toQString(text.empty() ? (fromA ? compared.b.text : compared.a.text) : text);
        ++taken;
    }
    if (edit.empty()) {
        say(tr("The current design has this already."));
        return;
    }
    const QString side = fromA ? tr("A") : tr("B");
    const QString what = taken == 1
        ? tr("take \"%1\" as in %2").arg(toQString(elided(last.toStdString(), 60)), side)
        : tr("take %1 rows as in %2").arg(taken).arg(side);
    if (m_workspace->editTable(what, edit))
        say({});
}

void CompareView::takeSelected()
{
    std::vector<int> fromA;
    std::vector<int> fromB;
    const ComparedRow *const first = m_rows->rows().data();
    for (const QModelIndex &index : m_rowList->selectionModel()->selectedIndexes()) {
        const int row = static_cast<int>(&m_rows->rowAt(index.row()) - first);
        const bool ofA = index.column() == RowDiffModel::SelectorA || index.column() == RowDiffModel::RuleA;
        const bool ofB = index.column() == RowDiffModel::SelectorB || index.column() == RowDiffModel::RuleB;
        std::vector<int> *side = ofA ? &fromA : ofB ? &fromB : nullptr;
        if (side && std::find(side->begin(), side->end(), row) == side->end())
            side->push_back(row);
    }
    if (fromA.empty() == fromB.empty()) {
        say(fromA.empty() ? tr("Select a cell of A or of B first.") : tr("Select cells of one side only."));
        return;
    }
    takeIntoCurrent(fromA.empty() ? fromB : fromA, fromB.empty());
}

void CompareView::copyFigures(bool json)
{
    std::vector<std::string> titles;
    for (const QString &title : m_metrics->titles())
        titles.push_back(title.toStdString());
    if (titles.empty())
        return;
    QGuiApplication::clipboard()->setText(toQString(
        json ? metricsAsJson(m_metrics->metrics(), titles) : metricsAsCsv(m_metrics->metrics(), titles)));
}

void CompareView::setMode(CompareMode mode)
{
    setBlinking(false);
    m_mode = mode;
    m_modes[mode]->setChecked(true);
    if (mode == CompareMode::SideBySide) {
        m_pages->setCurrentIndex(0);
        return;
    }
    m_compared->setMode(mode == CompareMode::Difference ? ComparedTimeline::Mode::Difference
                                                        : ComparedTimeline::Mode::Butterfly);
    m_pages->setCurrentIndex(1);
}

void CompareView::setBlinking(bool blinking)
{
    if (blinking == isBlinking())
        return;
    m_blink->setChecked(blinking);
    m_blinkLabel->setVisible(blinking);
    if (blinking) {
        m_pages->setCurrentIndex(0);
        m_blinkB = true;
        m_timelineA->hide();
        m_timelineB->show();
        m_blinkLabel->setText(tr("now B"));
        m_blinkTimer.start();
        return;
    }
    m_blinkTimer.stop();
    m_timelineA->show();
    m_timelineB->show();
    m_pages->setCurrentIndex(m_mode == CompareMode::SideBySide ? 0 : 1);
}

void CompareView::setAlignment(AlignAt event)
{
    m_alignAt = event;
    const QSignalBlocker blocker(m_align);
    m_align->setCurrentIndex(m_align->findData(static_cast<int>(event)));
    align();
}

/// Where the event is now: it moves with the plans, and with the selection.
void CompareView::align()
{
    const TimelineSceneSnapshot a = m_result ? m_result->a->scene : nullptr;
    const TimelineSceneSnapshot b = m_result ? m_result->b->scene : nullptr;
    double shift = 0;
    if (a && b) {
        const std::vector<OperatorId> &selected = m_selection->selected();
        const OperatorId op = selected.empty() ? OperatorId{} : selected.front();
        const auto inA = timeOf(m_alignAt, *a, op);
        const auto inB = timeOf(m_alignAt, *b, op);
        if (inA && inB)
            shift = static_cast<double>(*inB - *inA);
    }
    if (shift == m_shift)
        return;
    m_shift = shift;
    m_compared->setShift(shift);
    if (m_fitted)
        fitAxis();
    else
        linkAxis(m_timelineA->axis(), m_timelineA);
}

void CompareView::linkAxis(const TimeAxis &axis, const QObject *from)
{
    m_fitted = false;
    TimeAxis ofA = axis;
    if (from == m_timelineB)
        ofA.origin -= m_shift;
    TimeAxis ofB = ofA;
    ofB.origin += m_shift;
    if (from != m_timelineA)
        m_timelineA->setAxis(ofA);
    if (from != m_timelineB)
        m_timelineB->setAxis(ofB);
    if (from != m_compared)
        m_compared->setAxis(ofA);
}

void CompareView::fitAxis()
{
    double extent = 0;
    const double begin = std::min(0.0, -m_shift); // where B begins, if that is before A
    for (const TimelineView *view : {m_timelineA, m_timelineB}) {
        if (view->scene()) {
            const double end = static_cast<double>(view->scene()->timeline->step.count())
                - (view == m_timelineB ? m_shift : 0);
            extent = std::max(extent, end - begin);
        }
    }
    if (extent <= 0)
        return;
    const TimelineView *wide = m_timelineA->isVisible() ? m_timelineA : m_timelineB;
    const double width = std::max(wide->viewport()->width() - wide->axisLeft(), 50);
    TimeAxis axis = fitted(extent, width);
    axis.origin += begin;
    m_timelineA->setAxis(axis);
    if (m_shift != 0)
        m_compared->setAxis(axis);
    axis.origin += m_shift;
    m_timelineB->setAxis(axis);
}

bool CompareView::eventFilter(QObject *watched, QEvent *event)
{
    const bool resized = event->type() == QEvent::Resize;
    if (resized && m_fitted && (watched == m_timelineA->viewport() || watched == m_timelineB->viewport())) {
        // After the view has laid itself out.
        QMetaObject::invokeMethod(
            this,
            [this] {
                if (m_fitted)
                    fitAxis();
            },
            Qt::QueuedConnection);
        return false;
    }
    if (event->type() != QEvent::KeyPress && event->type() != QEvent::KeyRelease)
        return false;
    auto *key = static_cast<QKeyEvent *>(event);
    auto *widget = qobject_cast<QWidget *>(watched);
    if (key->key() != Qt::Key_QuoteLeft || !widget || (widget != this && !isAncestorOf(widget))
        || qobject_cast<QLineEdit *>(widget))
        return false;
    if (!key->isAutoRepeat())
        setBlinking(event->type() == QEvent::KeyPress);
    return true;
}

void CompareView::showEvent(QShowEvent *event)
{
    QWidget::showEvent(event);
    qApp->installEventFilter(this); // the key may be held while any part has the focus
    if (m_outdated)
        m_gatherTimer.start();
}

void CompareView::hideEvent(QHideEvent *event)
{
    QWidget::hideEvent(event);
    qApp->removeEventFilter(this);
    setBlinking(false);
}

void CompareView::changeEvent(QEvent *event)
{
    QWidget::changeEvent(event);
    if (m_metricList && (event->type() == QEvent::FontChange || event->type() == QEvent::StyleChange))
        fitFonts();
}

} // namespace planloom

#include "moc_compare_view.cpp"
