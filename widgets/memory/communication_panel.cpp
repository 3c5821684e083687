#include "widgets/memory/communication_panel.h"

#include "widgets/common/format.h"
#include "widgets/common/palette.h"
#include "widgets/memory/topology_view.h"

#include <QtConcurrent/QtConcurrentRun>
#include <QtCore/QSignalBlocker>
#include <QtGui/QHelpEvent>
#include <QtGui/QKeyEvent>
#include <QtGui/QMouseEvent>
#include <QtGui/QPainter>
#include <QtWidgets/QComboBox>
#include <QtWidgets/QHeaderView>
#include <QtWidgets/QLabel>
#include <QtWidgets/QScrollArea>
#include <QtWidgets/QSplitter>
#include <QtWidgets/QTabWidget>
#include <QtWidgets/QTableView>
#include <QtWidgets/QToolTip>
#include <QtWidgets/QVBoxLayout>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <map>
#include <set>

namespace planloom {

namespace {

QString bytesText(Bytes bytes)
{
    return QString::fromStdString(formatBytes(bytes));
}

QString timeText(Nanoseconds time)
{
    return QString::fromStdString(formatSeconds(static_cast<double>(time.count()) * 1e-9));
}

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

void FlowsModel::set(std::vector<Flow> flows)
{
    beginResetModel();
    m_flows = std::move(flows);
    endResetModel();
}

const Flow *FlowsModel::flowAt(int row) const
{
    return row >= 0 && row < rowCount() ? &m_flows[static_cast<std::size_t>(row)] : nullptr;
}

int FlowsModel::rowCount(const QModelIndex &parent) const
{
    return parent.isValid() ? 0 : static_cast<int>(m_flows.size());
}

int FlowsModel::columnCount(const QModelIndex &parent) const
{
    return parent.isValid() ? 0 : ColumnCount;
}

QVariant FlowsModel::data(const QModelIndex &index, int role) const
{
    if (!index.isValid())
        return {};
    if (role == Qt::TextAlignmentRole)
        return QVariant((index.column() == Kind ? Qt::AlignLeft : Qt::AlignRight) | Qt::AlignVCenter);
    if (role != Qt::DisplayRole && role != Qt::AccessibleTextRole)
        return {};
    const Flow &flow = m_flows[static_cast<std::size_t>(index.row())];
    switch (index.column()) {
    case Kind:
        return QString::fromLatin1(nameOf(flow.kind));
    case From:
        return flow.from.valid() ? QString::number(flow.from.index) : tr("all");
    case To:
        return flow.to.valid() ? QString::number(flow.to.index) : tr("all");
    case Sent:
        return bytesText(flow.bytes);
    case Time:
        return timeText(flow.time);
    default:
        return QString::fromStdString(formatCount(flow.count));
    }
}

QVariant FlowsModel::headerData(int section, Qt::Orientation orientation, int role) const
{
    if (orientation != Qt::Horizontal || role != Qt::DisplayRole)
        return {};
    static const std::array<const char *, ColumnCount> kNames{
        QT_TR_NOOP("Kind"), QT_TR_NOOP("From"), QT_TR_NOOP("To"), QT_TR_NOOP("Sent"), QT_TR_NOOP("Time"), QT_TR_NOOP("Count")};
    return tr(kNames[static_cast<std::size_t>(section)]);
}

void LinksModel::set(std::vector<LinkLoad> links)
{
    beginResetModel();
    m_links = std::move(links);
    std::stable_sort(m_links.begin(), m_links.end(), [](const LinkLoad &a, const LinkLoad &b) { return a.share > b.share; });
    endResetModel();
}

int LinksModel::rowCount(const QModelIndex &parent) const
{
    return parent.isValid() ? 0 : static_cast<int>(m_links.size());
}

int LinksModel::columnCount(const QModelIndex &parent) const
{
    return parent.isValid() ? 0 : ColumnCount;
}

QVariant LinksModel::data(const QModelIndex &index, int role) const
{
    if (!index.isValid())
        return {};
    if (role == Qt::TextAlignmentRole)
        return QVariant((index.column() == Link ? Qt::AlignLeft : Qt::AlignRight) | Qt::AlignVCenter);
    if (role != Qt::DisplayRole && role != Qt::AccessibleTextRole)
        return {};
    const LinkLoad &link = m_links[static_cast<std::size_t>(index.row())];
    switch (index.column()) {
    case Link:
        return link.betweenNodes ? tr("host %1 to other hosts").arg(link.index) : tr("device %1 inside its host").arg(link.index);
    case Sent:
        return bytesText(link.bytes);
    default:
        return QString::number(100 * link.share, 'f', 1) + QLatin1Char('%');
    }
}

QVariant LinksModel::headerData(int section, Qt::Orientation orientation, int role) const
{
    if (orientation != Qt::Horizontal || role != Qt::DisplayRole)
        return {};
    return section == Link ? tr("Link") : section == Sent ? tr("Sent") : tr("Of what it could carry");
}

MatrixView::MatrixView(QWidget *parent) : QWidget(parent)
{
    setAccessibleName(tr("Bytes from device to device"));
    setFocusPolicy(Qt::StrongFocus);
    setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Expanding);
}

QSize MatrixView::sizeHint() const
{
    return {fontMetrics().height() * 14, fontMetrics().height() * 11};
}

QSize MatrixView::minimumSizeHint() const
{
    return {fontMetrics().height() * 6, fontMetrics().height() * 5};
}

void MatrixView::setMatrix(std::shared_ptr<const CommunicationMatrix> matrix, std::optional<InstructionKind> kind, bool byTime)
{
    show(std::move(matrix), nullptr, kind, byTime);
}

void MatrixView::setDifference(std::shared_ptr<const CommunicationMatrix> a, std::shared_ptr<const CommunicationMatrix> b,
    std::optional<InstructionKind> kind, bool byTime)
{
    const bool both = a && b;
    show(both ? std::move(b) : nullptr, both ? std::move(a) : nullptr, kind, byTime);
}

void MatrixView::show(std::shared_ptr<const CommunicationMatrix> matrix, std::shared_ptr<const CommunicationMatrix> takenOff,
    std::optional<InstructionKind> kind, bool byTime)
{
    m_matrix = std::move(matrix);
    m_takenOff = std::move(takenOff);
    m_kind = kind;
    m_byTime = byTime;
    m_count = std::max(m_matrix ? m_matrix->deviceCount : 0, m_takenOff ? m_takenOff->deviceCount : 0);
    m_values.assign(static_cast<std::size_t>(m_count) * static_cast<std::size_t>(m_count), 0);
    if (m_matrix)
        sumUp(*m_matrix, 1);
    if (m_takenOff)
        sumUp(*m_takenOff, -1);
    m_most = 0;
    for (const double value : m_values)
        m_most = std::max(m_most, std::abs(value));
    if (m_current.first >= m_count || m_current.second >= m_count)
        m_current = {-1, -1};
    update();
}

void MatrixView::sumUp(const CommunicationMatrix &matrix, double sign)
{
    for (const Flow &flow : matrix.flows) {
        if (m_kind && flow.kind != *m_kind)
            continue;
        m_values[static_cast<std::size_t>(flow.from.index) * static_cast<std::size_t>(m_count) + static_cast<std::size_t>(flow.to.index)]
            += sign * (m_byTime ? static_cast<double>(flow.time.count()) * 1e-9 : static_cast<double>(flow.bytes.count));
    }
}

void MatrixView::setCurrent(std::pair<int, int> cell)
{
    m_current = cell.first < m_count && cell.second < m_count ? cell : std::pair{-1, -1};
    setAccessibleDescription(m_current.first >= 0 ? factOf(m_current.first, m_current.second) : QString());
    update();
}

double MatrixView::valueOf(int from, int to) const
{
    return m_values[static_cast<std::size_t>(from) * static_cast<std::size_t>(m_count) + static_cast<std::size_t>(to)];
}

QRectF MatrixView::plot() const
{
    const double label = fontMetrics().horizontalAdvance(QStringLiteral("0000"));
    const double line = fontMetrics().height();
    const QRectF inside = QRectF(rect()).adjusted(label + line * 1.2, line * 2.2, -4, -4);
    const double side = std::max(0.0, std::min(inside.width(), inside.height() * 3.0));
    return {inside.left(), inside.top(), side, std::min(inside.height(), side)};
}

QRectF MatrixView::cellRect(int from, int to) const
{
    const QRectF area = plot();
    const double count = std::max(m_count, 1);
    return {area.left() + to * area.width() / count, area.top() + from * area.height() / count, area.width() / count, area.height() / count};
}

std::pair<int, int> MatrixView::cellAt(QPointF at) const
{
    const QRectF area = plot();
    if (!m_matrix || m_count < 1 || !area.contains(at))
        return {-1, -1};
    const int count = m_count;
    return {std::clamp(static_cast<int>((at.y() - area.top()) / area.height() * count), 0, count - 1),
        std::clamp(static_cast<int>((at.x() - area.left()) / area.width() * count), 0, count - 1)};
}

QString MatrixView::factOf(int from, int to) const
{
    if (m_takenOff) {
        const auto of = [&](const CommunicationMatrix &matrix) {
            return m_byTime ? timeText(matrix.timeBetween({from}, {to}, m_kind)) : bytesText(matrix.bytesBetween({from}, {to}, m_kind));
        };
        return tr("device %1 to %2: %3 → %4").arg(from).arg(to).arg(of(*m_takenOff), of(*m_matrix));
    }
    return tr("device %1 to %2: %3 in %4").arg(from).arg(to).arg(bytesText(m_matrix->bytesBetween({from}, {to}, m_kind)),
        timeText(m_matrix->timeBetween({from}, {to}, m_kind)));
}

void MatrixView::choose(std::pair<int, int> cell)
{
    m_current = cell;
    if (cell.first >= 0)
        setAccessibleDescription(factOf(cell.first, cell.second));
    update();
    Q_EMIT cellChosen(cell.first, cell.second);
}

void MatrixView::mousePressEvent(QMouseEvent *event)
{
    if (event->button() == Qt::LeftButton)
        choose(cellAt(event->position()));
}

void MatrixView::keyPressEvent(QKeyEvent *event)
{
    const int count = m_matrix ? m_count : 0;
    auto [from, to] = m_current;
    switch (count > 0 ? event->key() : 0) {
    case Qt::Key_Left:
        --to;
        break;
    case Qt::Key_Right:
        ++to;
        break;
    case Qt::Key_Up:
        --from;
        break;
    case Qt::Key_Down:
        ++from;
        break;
    case Qt::Key_Escape:
        choose({-1, -1});
        return;
    default:
        QWidget::keyPressEvent(event);
        return;
    }
    choose({std::clamp(from, 0, count - 1), std::clamp(to, 0, count - 1)});
}

bool MatrixView::event(QEvent *event)
{
    if (event->type() == QEvent::ToolTip) {
        const auto *help = static_cast<QHelpEvent *>(event); // the type says so
        const auto [from, to] = cellAt(help->pos());
        from < 0 ? QToolTip::hideText() : QToolTip::showText(help->globalPos(), factOf(from, to), this);
        return true;
    }
    return QWidget::event(event);
}

void MatrixView::paintEvent(QPaintEvent *)
{
    const Palette &palette = paletteFor(*this);
    QPainter painter(this);
    painter.fillRect(rect(), palette.surface);
    const QFontMetrics metrics = fontMetrics();
    if (!m_matrix || m_count < 1) {
        painter.setPen(palette.textMuted);
        painter.drawText(rect(), Qt::AlignCenter | Qt::TextWordWrap, tr("What devices send to one another appears here."));
        return;
    }
    const QRectF area = plot();
    const int count = m_count;
    const double cellWidth = area.width() / count;
    const double cellHeight = area.height() / count;
    const int everyColumn = std::max(1, static_cast<int>(std::ceil(metrics.horizontalAdvance(QStringLiteral("000 ")) / std::max(cellWidth, 0.01))));
    const int everyRow = std::max(1, static_cast<int>(std::ceil(metrics.height() / std::max(cellHeight, 0.01))));
    painter.setPen(palette.textMuted);
    painter.drawText(QRectF(area.left(), 0, area.width(), metrics.height()), Qt::AlignHCenter, tr("to"));
    painter.save();
    painter.translate(2, area.center().y());
    painter.rotate(-90);
    painter.drawText(QRectF(-area.height() / 2, 0, area.height(), metrics.height()), Qt::AlignHCenter, tr("from"));
    painter.restore();
    for (int i = 0; i < count; ++i) {
        if (i % everyColumn == 0)
            painter.drawText(QRectF(area.left() + i * cellWidth, area.top() - metrics.height() - 1, std::max(cellWidth, metrics.averageCharWidth() * 4.0), metrics.height()),
                cellWidth > metrics.averageCharWidth() * 3 ? Qt::AlignHCenter : Qt::AlignLeft, QString::number(i));
        if (i % everyRow == 0)
            painter.drawText(QRectF(0, area.top() + i * cellHeight, area.left() - 4, std::max(cellHeight, static_cast<double>(metrics.height()))),
                Qt::AlignRight | (cellHeight > metrics.height() ? Qt::AlignVCenter : Qt::AlignTop), QString::number(i));
    }
    for (int from = 0; from < count; ++from) {
        for (int to = 0; to < count; ++to) {
            const QRectF cell = cellRect(from, to);
            const double value = valueOf(from, to);
            const double share = m_most > 0 ? std::abs(value) / m_most : 0;
            const QColor colour = value == 0 ? palette.canvas
                : m_takenOff ? mixed(palette.surface, value > 0 ? palette.error : palette.success, 0.35 + 0.65 * share) // more is worse
                             : heatColour(palette, share);
            painter.fillRect(cell.adjusted(0.5, 0.5, -0.5, -0.5), colour);
            if (value == 0 || cell.height() < metrics.height())
                continue;
            const double size = std::abs(value);
            QString text = m_byTime ? QString::fromStdString(formatSeconds(size)) : bytesText({static_cast<std::int64_t>(size)});
            if (m_takenOff)
                text.prepend(value > 0 ? QLatin1Char('+') : QChar(0x2212));
            if (metrics.horizontalAdvance(text) + 4 <= cell.width()) {
                painter.setPen(readableOn(colour));
                painter.drawText(cell, Qt::AlignCenter, text);
            }
        }
    }
    if (m_current.first >= 0) {
        painter.setPen(QPen(palette.text, 2));
        painter.drawRect(cellRect(m_current.first, m_current.second).adjusted(1, 1, -1, -1));
    }
    if (hasFocus()) {
        painter.setPen(QPen(palette.accent, 2));
        painter.drawRect(QRectF(rect()).adjusted(1, 1, -1, -1));
    }
}

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
        auto matrix = communicationMatrix(*scene->plan, *scene->timeline, scene->cluster, DataType::Float32, stop);
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
        m_sum->setText(m_matrix->flows.empty() ? tr("Devices send nothing to one another.") : tr("%1 in one step, all devices").arg(bytesText(sent)));
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
            std::set_union(sum.operators.begin(), sum.operators.end(), flow.operators.begin(), flow.operators.end(), std::back_inserter(both));
            sum.operators = std::move(both);
        }
        for (auto &[key, sum] : sums)
            flows.push_back(std::move(sum));
    }
    std::stable_sort(flows.begin(), flows.end(), [](const Flow &a, const Flow &b) { return a.bytes.count > b.bytes.count; });
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
        std::set_union(operators.begin(), operators.end(), flow->operators.begin(), flow->operators.end(), std::back_inserter(both));
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
            words << tr("line %1 (%2): %3").arg(m_update->rows[index].line + 1).arg(bytesText(behind.bytes), QString::fromStdString(m_update->rows[index].text));
        } else if (!behind.row.valid()) {
            words << tr("defaults: %1").arg(bytesText(behind.bytes));
        }
    }
    m_rows->setText(words.isEmpty() ? QString() : tr("Behind it: %1").arg(words.mid(0, 4).join(QStringLiteral("; "))));
    Q_EMIT linesChosen(std::move(lines));
}

} // namespace planloom
