#include "widgets/memory/communication_panel.h"

#include "widgets/common/quantity_text.h"
#include "widgets/memory/communication_lines_view.h"
#include "widgets/memory/communication_models.h"
#include "widgets/memory/matrix_view.h"
#include "widgets/memory/topology_view.h"

#include <QtConcurrent/QtConcurrentRun>
#include <QtCore/QSignalBlocker>
#include <QtWidgets/QComboBox>
#include <QtWidgets/QHeaderView>
#include <QtWidgets/QLabel>
#include <QtWidgets/QScrollArea>
#include <QtWidgets/QSplitter>
#include <QtWidgets/QTabWidget>
#include <QtWidgets/QTableView>
#include <QtWidgets/QVBoxLayout>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <set>

namespace planloom {

namespace {

QTableView *tableFor(QAbstractItemModel *model, const QString &name, QWidget *parent)
{
    auto *view = new QTableView(parent);
    view->setModel(model);
    view->setAccessibleName(name);
    view->setSelectionBehavior(QAbstractItemView::SelectRows);
    view->setSelectionMode(QAbstractItemView::SingleSelection);
    view->setShowGrid(false);
    view->setAlternatingRowColors(true);
    view->setTabKeyNavigation(false);
    view->verticalHeader()->hide();
    view->verticalHeader()->setDefaultSectionSize(view->fontMetrics().height() + 5);
    view->horizontalHeader()->setSectionResizeMode(QHeaderView::Stretch);
    return view;
}

/// Whether a flow leaves by a link.
bool carries(const LinkLoad &link, const Flow &flow, const Cluster &cluster)
{
    const std::int32_t from = cluster.nodeOf(flow.from);
    const bool leaves = from != cluster.nodeOf(flow.to);
    return link.betweenNodes ? leaves && from == link.index : !leaves && flow.from.index == link.index;
}

} // namespace

CommunicationPanel::CommunicationPanel(Workspace *workspace, SelectionModel *selection, QWidget *parent)
    : QWidget(parent)
    , m_workspace(workspace)
    , m_selection(selection)
    , m_kinds(new QComboBox(this))
    , m_measure(new QComboBox(this))
    , m_sum(new QLabel(this))
    , m_rows(new QLabel(this))
    , m_view(new MatrixView(this))
    , m_flows(new FlowsModel(this))
    , m_links(new LinksModel(this))
    , m_lines(new CommunicationLinesView(this))
    , m_map(new TopologyView)
{
    m_kinds->setAccessibleName(tr("Kind of communication"));
    m_measure->setAccessibleName(tr("Measure"));
    m_measure->addItem(tr("Bytes"));
    m_measure->addItem(tr("Time"));
    m_sum->setTextFormat(Qt::PlainText);
    m_rows->setTextFormat(Qt::PlainText);
    m_rows->setWordWrap(true);
    m_rows->setContentsMargins(6, 2, 6, 4);
    auto *head = new QHBoxLayout;
    head->setContentsMargins(6, 3, 6, 3);
    head->addWidget(m_kinds);
    head->addWidget(m_measure);
    head->addWidget(m_sum, 1);
    auto *tabs = new QTabWidget(this);
    tabs->setDocumentMode(true);
    auto *flows = new QWidget(tabs);
    auto *column = new QVBoxLayout(flows);
    column->setContentsMargins(0, 0, 0, 0);
    m_flowsView = tableFor(m_flows, tr("Flows"), flows);
    m_flowsView->setObjectName(QStringLiteral("communication.flows"));
    column->addWidget(m_flowsView, 1);
    column->addWidget(m_rows);
    tabs->addTab(flows, tr("Flows"));
    tabs->addTab(m_lines, tr("Collectives"));
    connect(m_lines, &CommunicationLinesView::operatorsChosen, this,
        [this](const std::vector<OperatorId> &operators) { m_selection->select(operators); });
    tabs->addTab(tableFor(m_links, tr("Links"), tabs), tr("Links"));
    auto *map = new QScrollArea(tabs);
    map->setWidget(m_map);
    map->setWidgetResizable(true);
    map->setFrameShape(QFrame::NoFrame);
    map->setFocusPolicy(Qt::NoFocus); // the map itself takes the keyboard
    tabs->addTab(map, tr("Map"));
    auto *splitter = new QSplitter(Qt::Horizontal, this);
    splitter->setChildrenCollapsible(false);
    splitter->addWidget(m_view);
    splitter->addWidget(tabs);
    splitter->setStretchFactor(0, 1);
    splitter->setStretchFactor(1, 1);
    auto *layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(0);
    layout->addLayout(head);
    layout->addWidget(splitter, 1);
    connect(m_workspace, &Workspace::planChanged, this, &CommunicationPanel::refresh);
    connect(m_kinds, &QComboBox::currentIndexChanged, this, &CommunicationPanel::showMatrix);
    connect(m_measure, &QComboBox::currentIndexChanged, this, &CommunicationPanel::showMatrix);
    connect(m_view, &MatrixView::cellChosen, this, [this] {
        m_link.reset();
        showFlows();
    });
    connect(m_map, &TopologyView::linkChosen, this, &CommunicationPanel::chooseLink);
    connect(m_flowsView->selectionModel(), &QItemSelectionModel::currentRowChanged, this,
        [this](const QModelIndex &index) { chooseFlow(index.row()); });
    connect(&m_watcher, &QFutureWatcherBase::finished, this, [this] {
        if (m_watcher.future().resultCount() == 0 || !m_watcher.result())
            return;
        m_matrix = m_watcher.result();
        const QSignalBlocker blocker(m_kinds);
        const QVariant before = m_kinds->currentData();
        m_kinds->clear();
        m_kinds->addItem(tr("All kinds"), -1);
        std::set<InstructionKind> kinds;
        for (const Flow &flow : m_matrix->flows)
            kinds.insert(flow.kind);
        for (const InstructionKind kind : kinds)
            m_kinds->addItem(QString::fromLatin1(nameOf(kind)), static_cast<int>(kind));
        m_kinds->setCurrentIndex(std::max(m_kinds->findData(before), 0));
        m_links->set(m_matrix->links);
        m_link.reset();
        m_map->setMatrix(m_matrix, m_scene ? m_scene->cluster : Cluster{});
        showMatrix();
        Q_EMIT matrixChanged();
    });
    m_kinds->addItem(tr("All kinds"), -1);
    refresh();
}

CommunicationPanel::~CommunicationPanel()
{
    m_stop.request_stop();
}

void CommunicationPanel::refresh()
{
    const PlanUpdateSnapshot good = m_workspace->lastGood();
    const TimelineSceneSnapshot scene = good ? good->scene : nullptr;
    m_update = good;
    if (scene == m_scene && (m_matrix || m_watcher.isRunning()))
        return;
    m_scene = scene;
    m_lines->setUpdate(good);
    m_stop.request_stop();
    if (!scene) {
        m_watcher.setFuture({});
        m_matrix.reset();
        m_links->set({});
        m_link.reset();
        m_map->setMatrix(nullptr, {});
        showMatrix();
        return;
    }
    m_stop = std::stop_source{};
    m_watcher.setFuture(QtConcurrent::run([scene, stop = m_stop.get_token()]() -> MatrixSnapshot {
        auto matrix = communicationMatrix(*scene->plan, *scene->timeline, scene->cluster, stop);
        return matrix ? std::make_shared<const CommunicationMatrix>(*std::move(matrix)) : nullptr;
    }));
}

void CommunicationPanel::showMatrix()
{
    const int kind = m_kinds->currentData().toInt();
    const auto chosen = kind < 0 ? std::nullopt : std::optional(static_cast<InstructionKind>(kind));
    m_view->setMatrix(m_matrix, chosen, m_measure->currentIndex() == 1);
    if (m_matrix) {
        Bytes sent;
        for (const Flow &flow : m_matrix->flows)
            sent += !chosen || flow.kind == *chosen ? flow.bytes : Bytes{};
        m_sum->setText(m_matrix->flows.empty() ? tr("Devices send nothing to one another.")
                                               : tr("%1 in one step, all devices").arg(bytesText(sent)));
    } else {
        m_sum->setText(tr("There is no plan yet."));
    }
    showFlows();
}

void CommunicationPanel::showFlows()
{
    m_rows->clear();
    std::vector<Flow> flows;
    if (m_matrix) {
        const int kind = m_kinds->currentData().toInt();
        const auto [from, to] = m_view->current();
        std::map<InstructionKind, Flow> sums;
        for (const Flow &flow : m_matrix->flows) {
            if (kind >= 0 && flow.kind != static_cast<InstructionKind>(kind))
                continue;
            if (m_link) {
                if (carries(*m_link, flow, m_scene->cluster))
                    flows.push_back(flow);
                continue;
            }
            if (from >= 0) {
                if (flow.from.index == from && flow.to.index == to)
                    flows.push_back(flow);
                continue;
            }
            Flow &sum = sums[flow.kind]; // of all pairs
            sum.kind = flow.kind;
            sum.bytes += flow.bytes;
            sum.time += flow.time;
            sum.count += flow.count;
            std::vector<OperatorId> both;
            std::set_union(sum.operators.begin(), sum.operators.end(), flow.operators.begin(),
                flow.operators.end(), std::back_inserter(both));
            sum.operators = std::move(both);
        }
        for (auto &[key, sum] : sums)
            flows.push_back(std::move(sum));
    }
    std::stable_sort(flows.begin(), flows.end(),
        [](const Flow &a, const Flow &b) { return a.bytes.count > b.bytes.count; });
    m_flows->set(std::move(flows));
}

void CommunicationPanel::chooseLink(const LinkLoad *link)
{
    m_link = link && m_scene ? std::optional(*link) : std::nullopt;
    showFlows();
    if (!m_link)
        return;
    std::vector<OperatorId> operators;
    for (int row = 0; const Flow *flow = m_flows->flowAt(row); ++row) {
        std::vector<OperatorId> both;
        std::set_union(operators.begin(), operators.end(), flow->operators.begin(), flow->operators.end(),
            std::back_inserter(both));
        operators = std::move(both);
    }
    m_selection->select(operators);
}

void CommunicationPanel::chooseFlow(int row)
{
    const Flow *flow = m_flows->flowAt(row);
    if (!flow || !m_update || !m_update->plan || !m_matrix)
        return;
    m_selection->select(flow->operators);
    QStringList words;
    std::vector<std::int32_t> lines;
    for (const RowTraffic &behind : rowsBehind(*m_update->plan, *m_matrix, flow)) {
        const auto index = static_cast<std::size_t>(behind.row.index);
        if (behind.row.valid() && index < m_update->rows.size()) {
            lines.push_back(m_update->rows[index].line);
            words << tr("row %1 (%2): %3")
                         .arg(m_update->rows[index].line + 1)
                         .arg(bytesText(behind.bytes), QString::fromStdString(m_update->rows[index].text));
        } else if (!behind.row.valid()) {
            words << tr("defaults: %1").arg(bytesText(behind.bytes));
        }
    }
    m_rows->setText(
        words.isEmpty() ? QString() : tr("Behind it: %1").arg(words.mid(0, 4).join(QStringLiteral("; "))));
    Q_EMIT linesChosen(std::move(lines));
}

} // namespace planloom

#include "moc_communication_panel.cpp"
