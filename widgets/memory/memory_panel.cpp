#include "widgets/memory/memory_panel.h"

#include "engine/base/words.h"
#include "widgets/common/quantity_text.h"
#include "widgets/memory/memory_views.h"

#include <QtConcurrent/QtConcurrentRun>
#include <QtCore/QSignalBlocker>
#include <QtWidgets/QComboBox>
#include <QtWidgets/QHBoxLayout>
#include <QtWidgets/QHeaderView>
#include <QtWidgets/QLabel>
#include <QtWidgets/QSplitter>
#include <QtWidgets/QTableView>
#include <QtWidgets/QVBoxLayout>

#include <algorithm>
#include <numeric>

namespace planloom {

namespace {

} // namespace

void MemoryKindsModel::set(const std::array<std::int64_t, kMemoryKindCount> &now,
    const std::array<std::int64_t, kMemoryKindCount> &peak)
{
    if (now == m_now && peak == m_peak)
        return;
    m_now = now;
    m_peak = peak;
    Q_EMIT dataChanged(index(0, 0), index(rowCount() - 1, ColumnCount - 1));
}

int MemoryKindsModel::rowCount(const QModelIndex &parent) const
{
    return parent.isValid() ? 0 : kMemoryKindCount + 1;
}

int MemoryKindsModel::columnCount(const QModelIndex &parent) const
{
    return parent.isValid() ? 0 : ColumnCount;
}

QVariant MemoryKindsModel::data(const QModelIndex &index, int role) const
{
    if (!index.isValid())
        return {};
    if (role == Qt::TextAlignmentRole)
        return QVariant((index.column() == Kind ? Qt::AlignLeft : Qt::AlignRight) | Qt::AlignVCenter);
    if (role != Qt::DisplayRole && role != Qt::AccessibleTextRole)
        return {};
    const std::int64_t total = std::accumulate(m_now.begin(), m_now.end(), std::int64_t{0});
    const bool sum = index.row() == kMemoryKindCount;
    const auto kind = static_cast<std::size_t>(index.row());
    switch (index.column()) {
    case Kind:
        return sum ? tr("all") : QString::fromLatin1(nameOf(static_cast<MemoryKind>(index.row())));
    case Now:
        return bytesText(sum ? total : m_now[kind]);
    case Share:
        return total > 0
            ? QString::number(
                  100.0 * static_cast<double>(sum ? total : m_now[kind]) / static_cast<double>(total), 'f', 1)
                + QLatin1Char('%')
            : QString();
    default:
        return bytesText(sum ? std::accumulate(m_peak.begin(), m_peak.end(), std::int64_t{0}) : m_peak[kind]);
    }
}

QVariant MemoryKindsModel::headerData(int section, Qt::Orientation orientation, int role) const
{
    if (orientation != Qt::Horizontal || role != Qt::DisplayRole)
        return {};
    switch (section) {
    case Kind:
        return tr("Kind");
    case Now:
        return tr("Now");
    case Share:
        return tr("Share");
    default:
        return tr("At peak");
    }
}

MemoryPanel::MemoryPanel(Workspace *workspace, SelectionModel *selection, QWidget *parent)
    : QWidget(parent)
    , m_workspace(workspace)
    , m_selection(selection)
    , m_devices(new QComboBox(this))
    , m_moment(new QLabel(this))
    , m_curve(new MemoryCurveView(this))
    , m_treemap(new MemoryTreemap(this))
    , m_kinds(new MemoryKindsModel(this))
    , m_kindsView(new QTableView(this))
{
    m_devices->setAccessibleName(tr("Device"));
    m_moment->setTextFormat(Qt::PlainText);
    m_kindsView->setModel(m_kinds);
    m_kindsView->setAccessibleName(tr("Memory by kind"));
    m_kindsView->setSelectionMode(QAbstractItemView::SingleSelection);
    m_kindsView->setSelectionBehavior(QAbstractItemView::SelectRows);
    m_kindsView->setShowGrid(false);
    m_kindsView->setTabKeyNavigation(false);
    m_kindsView->verticalHeader()->hide();
    m_kindsView->verticalHeader()->setDefaultSectionSize(fontMetrics().height() + 5);
    m_kindsView->horizontalHeader()->setSectionResizeMode(QHeaderView::Stretch);
    m_kindsView->horizontalHeader()->setSectionResizeMode(
        MemoryKindsModel::Kind, QHeaderView::ResizeToContents);
    m_kindsView->setMinimumWidth(fontMetrics().averageCharWidth() * 52);
    auto *head = new QHBoxLayout;
    head->setContentsMargins(6, 3, 6, 3);
    head->addWidget(m_devices);
    head->addWidget(m_moment, 1);
    auto *splitter = new QSplitter(Qt::Horizontal, this);
    splitter->setChildrenCollapsible(false);
    splitter->addWidget(m_curve);
    splitter->addWidget(m_kindsView);
    splitter->addWidget(m_treemap);
    splitter->setStretchFactor(0, 4);
    splitter->setStretchFactor(1, 2);
    splitter->setStretchFactor(2, 4);
    auto *layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(0);
    layout->addLayout(head);
    layout->addWidget(splitter, 1);
    connect(m_workspace, &Workspace::planChanged, this, &MemoryPanel::refresh);
    connect(m_devices, &QComboBox::currentIndexChanged, this, [this] {
        m_time = -1;
        m_lifetimes.reset();
        m_scene.reset();
        refresh();
    });
    connect(m_curve, &MemoryCurveView::timeChosen, this, [this](qint64 time) {
        setTime(time);
        Q_EMIT timeChosen(time);
    });
    connect(m_treemap, &MemoryTreemap::chosen, this, [this](OperatorId op) { m_selection->select({op}); });
    connect(&m_watcher, &QFutureWatcherBase::finished, this, [this] {
        if (m_watcher.future().resultCount() == 0)
            return;
        m_lifetimes = m_watcher.result();
        showMoment();
    });
    refresh();
}

MemoryPanel::~MemoryPanel()
{
    m_stop.request_stop();
}

std::int32_t MemoryPanel::device() const
{
    return std::max(m_devices->currentIndex(), 0);
}

void MemoryPanel::setDevice(std::int32_t device)
{
    if (device >= 0 && device < m_devices->count())
        m_devices->setCurrentIndex(device);
}

void MemoryPanel::setTime(std::int64_t time)
{
    m_time = time;
    showMoment();
}

void MemoryPanel::refresh()
{
    const PlanUpdateSnapshot good = m_workspace->lastGood();
    const TimelineSceneSnapshot scene = good ? good->scene : nullptr;
    if (scene == m_scene && m_lifetimes)
        return;
    m_scene = scene;
    const int count = scene ? static_cast<int>(scene->timeline->memory.size()) : 0;
    if (count != m_devices->count()) {
        const QSignalBlocker blocker(m_devices);
        const int before = m_devices->currentIndex();
        m_devices->clear();
        for (int d = 0; d < count; ++d)
            m_devices->addItem(tr("Device %1").arg(d));
        m_devices->setCurrentIndex(std::clamp(before, 0, std::max(count - 1, 0)));
    }
    m_devices->setEnabled(count > 0);
    m_curve->setScene(scene, device());
    m_stop.request_stop();
    m_lifetimes.reset();
    if (!scene || count == 0) {
        m_watcher.setFuture({});
        showMoment();
        return;
    }
    m_stop = std::stop_source{};
    m_watcher.setFuture(
        QtConcurrent::run([scene, shown = device(), stop = m_stop.get_token()]() -> Lifetimes {
            return std::make_shared<const std::vector<BufferLifetime>>(
                lifetimesOf(*scene->plan, *scene->timeline, DeviceId{shown}, stop));
        }));
    showMoment();
}

void MemoryPanel::showMoment()
{
    const std::size_t shown = static_cast<std::size_t>(device());
    if (!m_scene || shown >= m_scene->timeline->memory.size()) {
        m_moment->setText(tr("There is no plan yet."));
        m_live.clear();
        m_treemap->setLive({}, nullptr);
        m_kinds->set({}, {});
        Q_EMIT liveChanged();
        return;
    }
    const MemoryCurve &curve = m_scene->timeline->memory[shown];
    std::int64_t time = m_time;
    if (time < 0 || time > m_scene->timeline->step.count()) { // its peak says most
        time = 0;
        std::int64_t most = -1;
        for (std::size_t i = 0; i < curve.time.size(); ++i) {
            const std::int64_t sum =
                std::accumulate(curve.bytes[i].begin(), curve.bytes[i].end(), std::int64_t{0});
            if (sum > most) {
                most = sum;
                time = curve.time[i];
            }
        }
    }
    m_curve->setTime(time);
    const auto now = bytesAt(curve, Nanoseconds{time});
    m_kinds->set(now, curve.atPeak);
    const std::int64_t total = std::accumulate(now.begin(), now.end(), std::int64_t{0});
    m_moment->setText(
        tr("at %1: %2, peak %3 of %4")
            .arg(QString::fromStdString(formatNanoseconds(time)), bytesText(total),
                bytesText(curve.peak.count),
                bytesText(static_cast<std::int64_t>(m_scene->deviceModel(DeviceId{device()}).memory.value))));
    m_live = m_lifetimes ? aliveAt(*m_lifetimes, Nanoseconds{time}) : std::vector<BufferLifetime>{};
    m_treemap->setLive(m_live, m_scene->plan->graph);
    Q_EMIT liveChanged();
}

} // namespace planloom

#include "moc_memory_panel.cpp"
