#include "widgets/trace/trace_panel.h"

#include <QtConcurrent/QtConcurrentRun>
#include <QtCore/QFileInfo>
#include <QtGui/QAction>
#include <QtWidgets/QHBoxLayout>
#include <QtWidgets/QHeaderView>
#include <QtWidgets/QLabel>
#include <QtWidgets/QSplitter>
#include <QtWidgets/QTabWidget>
#include <QtWidgets/QTableView>
#include <QtWidgets/QToolButton>
#include <QtWidgets/QVBoxLayout>

#include "engine/base/words.h"
#include "widgets/common/qt_text.h"
#include "widgets/common/themed_icon.h"
#include "widgets/trace/trace_models.h"
#include "widgets/trace/trace_view.h"

#include <utility>
#include <vector>

namespace planloom {

TracePanel::TracePanel(Workspace *workspace, QWidget *parent)
    : QWidget(parent)
    , m_workspace(workspace)
    , m_said(new QLabel(this))
    , m_view(new TraceView(this))
    , m_tables(new QTabWidget(this))
    , m_ranks(new TraceTableModel(rankColumns(), this))
    , m_collectives(new TraceTableModel(collectiveColumns(), this))
    , m_against(new TraceTableModel(matchColumns(), this))
    , m_fitErrors(new TraceTableModel(fitColumns(), this))
    , m_calibrate(new QAction(themedIcon(QLatin1String("measure")), tr("&Calibrate from This Run"), this))
    , m_fitting([this](const Fitted &fitted) { showFitted(fitted); })
{
    m_said->setTextFormat(Qt::PlainText);
    m_said->setContentsMargins(6, 3, 6, 3);
    m_said->setText(tr("No trace is open."));
    m_tables->setDocumentMode(true);
    addTable(m_ranks, tr("Ranks"));
    addTable(m_collectives, tr("Slowest Collectives"));
    addTable(m_against, tr("Against the Plan"));
    addTable(m_fitErrors, tr("Calibration"));
    m_calibrate->setObjectName(QStringLiteral("trace.calibrate"));
    m_calibrate->setToolTip(
        tr("Makes a profile of the cluster from what this run measured; the prediction follows"));
    m_calibrate->setEnabled(false);
    addAction(m_calibrate);
    connect(m_calibrate, &QAction::triggered, this, &TracePanel::calibrate);
    auto *button = new QToolButton(this);
    button->setDefaultAction(m_calibrate);
    button->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
    button->setAutoRaise(true);
    auto *line = new QHBoxLayout;
    line->addWidget(m_said, 1);
    line->addWidget(button);
    m_said->setWordWrap(true);
    auto *splitter = new QSplitter(Qt::Horizontal, this);
    splitter->setChildrenCollapsible(false);
    splitter->addWidget(m_view);
    splitter->addWidget(m_tables);
    splitter->setStretchFactor(0, 3);
    splitter->setStretchFactor(1, 2);
    auto *layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(0);
    layout->addLayout(line);
    layout->addWidget(splitter, 1);
    connect(&m_opening, &QFutureWatcherBase::finished, this, &TracePanel::showOpened);
    connect(&m_matching, &QFutureWatcherBase::finished, this, &TracePanel::showMatched);
    connect(m_workspace, &Workspace::planChanged, this, &TracePanel::startMatching);
}

TracePanel::~TracePanel()
{
    m_stop.request_stop();
    m_stopMatching.request_stop();
}

QTableView *TracePanel::addTable(TraceTableModel *model, const QString &title)
{
    auto *view = new QTableView(m_tables);
    view->setModel(model);
    view->setAccessibleName(title);
    view->setSelectionBehavior(QAbstractItemView::SelectRows);
    view->setSelectionMode(QAbstractItemView::SingleSelection);
    view->setShowGrid(false);
    view->setAlternatingRowColors(true);
    view->setTabKeyNavigation(false);
    view->verticalHeader()->hide();
    view->verticalHeader()->setDefaultSectionSize(view->fontMetrics().height() + 5);
    const auto go = [this, model](const QModelIndex &index) {
        if (const auto place = model->placeAt(index.row()))
            m_view->reveal(*place);
    };
    connect(view, &QTableView::clicked, this, go);
    connect(view, &QTableView::activated, this, go);
    connect(model, &QAbstractItemModel::modelReset, view, [view] { view->resizeColumnsToContents(); });
    m_tables->addTab(view, title);
    return view;
}

QString TracePanel::text() const
{
    return m_said->text();
}

void TracePanel::open(const QStringList &paths)
{
    m_paths = paths;
    m_said->setText(tr("Reading %1…").arg(QFileInfo(paths.value(0)).fileName()));
    start(true);
}

void TracePanel::start(bool isSample)
{
    m_stop.request_stop();
    m_stop = std::stop_source();
    m_isSampling = isSample;
    std::vector<std::filesystem::path> paths;
    for (const QString &path : m_paths)
        paths.emplace_back(path.toStdString());
    m_opening.setFuture(QtConcurrent::run([paths, isSample, stop = m_stop.get_token()] {
        return std::make_shared<Result<TraceDocumentSnapshot>>(openTraceDocument(paths, isSample, stop));
    }));
}

void TracePanel::showOpened()
{
    const Opened read = m_opening.result();
    const bool wasSample = m_isSampling;
    if (!*read) {
        const Error &error = read->error();
        if (error.code == ErrorCode::Cancelled)
            return;
        if (wasSample) { // the whole says better what is wrong
            start(false);
            return;
        }
        m_said->setText(toQString(describe(error)));
        Q_EMIT failed(error);
        return;
    }
    m_document = **read;
    m_match.reset();
    m_shown.clear();
    m_view->setDocument(m_document);
    m_ranks->setLines(rankLines(*m_document));
    m_collectives->setLines(collectiveLines(*m_document));
    m_against->setLines({});
    QString said =
        tr("%1, %2 events")
            .arg(toQString(counted(static_cast<std::int64_t>(m_document->trace.ranks.size()), "rank")),
                toQString(formatCount(static_cast<std::int64_t>(m_document->trace.eventCount()))));
    if (const auto straggler = stragglerOf(m_document->analysis))
        said += tr("; rank %1 makes others wait %2")
                    .arg(QString::number(m_document->trace.ranks[*straggler].rank),
                        toQString(formatNanoseconds(m_document->analysis.ranks[*straggler].madeWait)));
    std::int64_t unread = static_cast<std::int64_t>(m_document->trace.remarks.size());
    for (const RankTrace &rank : m_document->trace.ranks)
        for (const TraceRemark &remark : rank.remarks)
            unread += remark.count;
    if (unread > 0)
        said += tr("; %1 not read").arg(unread);
    if (m_document->isSample)
        said += tr("; a first picture, the whole follows…");
    m_shown = said;
    m_said->setText(said);
    if (m_document->isSample) {
        start(false);
        return;
    }
    startMatching();
    Q_EMIT opened();
}

void TracePanel::startMatching()
{
    m_stopMatching.request_stop();
    const PlanUpdateSnapshot good = m_workspace->lastGood();
    if (!m_document || m_document->isSample || !good || !good->execution)
        return;
    m_stopMatching = std::stop_source();
    m_matching.setFuture(QtConcurrent::run([document = m_document, good, stop = m_stopMatching.get_token()] {
        return std::make_shared<Result<TraceMatchSnapshot>>(matchTrace(*document, *good, stop));
    }));
}

void TracePanel::showMatched()
{
    const Matched matched = m_matching.result();
    if (!*matched && matched->error().code == ErrorCode::Cancelled)
        return;
    m_match = *matched ? **matched : TraceMatchSnapshot();
    m_view->setMatch(m_match);
    m_said->setText(m_match ? m_shown + QStringLiteral("; ") + matchSentence(*m_match) : m_shown);
    m_calibrate->setEnabled(m_match != nullptr);
    TraceLines lines;
    if (m_match) {
        lines = matchLines(*m_match);
    } else {
        lines.lines.push_back({toQString(describe(matched->error()))});
        lines.places.resize(1);
    }
    m_against->setLines(std::move(lines));
}

void TracePanel::calibrate()
{
    const PlanUpdateSnapshot good = m_workspace->lastGood();
    if (!m_match || !good || m_fitting.isBusy())
        return;
    m_calibrate->setEnabled(false);
    m_said->setText(tr("Fitting the cluster's figures to what was measured…"));
    const std::string source = QFileInfo(m_paths.value(0)).fileName().toStdString();
    m_fitting.ask([match = m_match, cluster = good->cluster, source](const std::stop_token &stop) {
        return fittedToSpans(
            cluster, *match->plan, match->matched.measured, source, match->matched.isExact, stop);
    });
}

void TracePanel::showFitted(const Fitted &fitted)
{
    m_calibrate->setEnabled(m_match != nullptr);
    if (!fitted) {
        m_said->setText(QStringLiteral("✖ ") + toQString(describe(fitted.error())));
        Q_EMIT failed(fitted.error());
        return;
    }
    m_fitErrors->setLines(fitLines(*fitted));
    m_tables->setCurrentIndex(m_tables->count() - 1);
    const QString sentence = fitSentence(*fitted);
    // What is predicted now follows with the plan.
    m_shown = m_shown.section(QStringLiteral("; calibrated"), 0, 0)
        + tr("; calibrated, before %1").arg(toQString(formatSeconds(fitted->predictedBefore)));
    m_said->setText(sentence);
    Q_EMIT calibrated(fitted->cluster, sentence);
}

} // namespace planloom

#include "moc_trace_panel.cpp"
