#include "widgets/memory/communication_lines_view.h"

#include <QtConcurrent/QtConcurrentRun>
#include <QtGui/QAction>
#include <QtGui/QClipboard>
#include <QtGui/QGuiApplication>
#include <QtWidgets/QHeaderView>

#include "engine/base/words.h"
#include "engine/report/report_csv.h"
#include "widgets/common/qt_text.h"

namespace planloom {

namespace {

constexpr std::size_t kMostGroups = 2; ///< Of a line, in its cell; its tool tip has more.
constexpr std::size_t kMostGroupsOfTip = 32;

QString textOf(const CommunicationLine &line, int column)
{
    switch (column) {
    case CommunicationLinesModel::What:
        return QString::fromLatin1(nameOf(line.kind));
    case CommunicationLinesModel::Groups:
        return QStringLiteral("%1 × %2").arg(line.groupCount).arg(toQString(groupWords(line, kMostGroups)));
    case CommunicationLinesModel::Link:
        return toQString(line.link);
    case CommunicationLinesModel::Algorithm:
        return toQString(algorithmWords(line));
    case CommunicationLinesModel::Size:
        return toQString(formatBytes(line.bytes));
    case CommunicationLinesModel::Times:
        return QString::number(line.count);
    case CommunicationLinesModel::Alone:
        return toQString(formatNanoseconds(line.alone.count()));
    case CommunicationLinesModel::All:
        return toQString(formatNanoseconds(line.time.count()));
    case CommunicationLinesModel::Exposed:
        return toQString(formatNanoseconds(line.exposed.count()));
    case CommunicationLinesModel::BusBandwidth:
        return QStringLiteral("%1 GB/s").arg(busBandwidthOf(line) * 1e-9, 0, 'f', 1);
    case CommunicationLinesModel::First:
        return toQString(formatNanoseconds(line.starts.front().count()));
    default:
        return {};
    }
}

} // namespace

void CommunicationLinesModel::set(CommunicationLinesSnapshot lines)
{
    beginResetModel();
    m_lines = std::move(lines);
    endResetModel();
}

const CommunicationLine *CommunicationLinesModel::lineAt(int row) const
{
    return m_lines && row >= 0 && row < rowCount() ? &(*m_lines)[static_cast<std::size_t>(row)] : nullptr;
}

int CommunicationLinesModel::rowCount(const QModelIndex &parent) const
{
    return parent.isValid() || !m_lines ? 0 : static_cast<int>(m_lines->size());
}

int CommunicationLinesModel::columnCount(const QModelIndex &parent) const
{
    return parent.isValid() ? 0 : static_cast<int>(ColumnCount);
}

QVariant CommunicationLinesModel::data(const QModelIndex &index, int role) const
{
    const CommunicationLine *line = lineAt(index.row());
    if (!line)
        return {};
    if (role == Qt::DisplayRole)
        return textOf(*line, index.column());
    if (role == Qt::TextAlignmentRole && index.column() >= Size)
        return QVariant(Qt::AlignRight | Qt::AlignVCenter);
    if (role == Qt::ToolTipRole)
        return tr("%1\nin %2\nhidden behind what is computed: %3")
            .arg(toQString(groupWords(*line, kMostGroupsOfTip)), toQString(passWords(*line)),
                toQString(formatNanoseconds(line->hidden().count())));
    return {};
}

QVariant CommunicationLinesModel::headerData(int section, Qt::Orientation orientation, int role) const
{
    if (orientation != Qt::Horizontal || section < 0 || section >= ColumnCount)
        return {};
    static const char *const kTips[ColumnCount]{"",
        QT_TR_NOOP("How many groups do it, and the members of the first of them"),
        QT_TR_NOOP("The outermost link that a group crosses"),
        QT_TR_NOOP("What NCCL's tuning model chooses; empty where it has no choice"),
        QT_TR_NOOP("Of one launch, as nccl-tests count sizes"), QT_TR_NOOP("Launches of one group in a step"),
        QT_TR_NOOP("One launch while nobody else uses its links"), QT_TR_NOOP("All launches of one group"),
        QT_TR_NOOP("Of that, while a member computes nothing"),
        QT_TR_NOOP("What a member sends by the ring algorithm, over the time of a launch"),
        QT_TR_NOOP("When the first launch starts, from the begin of the step")};
    if (role == Qt::ToolTipRole)
        return tr(kTips[section]);
    if (role != Qt::DisplayRole)
        return {};
    const QString names[ColumnCount]{tr("What"), tr("Groups"), tr("Link"), tr("Algorithm"), tr("Size"),
        tr("Times"), tr("Alone"), tr("All"), tr("Exposed"), tr("Bus bandwidth"), tr("First at")};
    return names[section];
}

CommunicationLinesView::CommunicationLinesView(QWidget *parent)
    : QTableView(parent)
    , m_model(new CommunicationLinesModel(this))
{
    setObjectName(QStringLiteral("communication.lines"));
    setAccessibleName(tr("Collectives and messages"));
    setModel(m_model);
    setSelectionBehavior(QAbstractItemView::SelectRows);
    setSelectionMode(QAbstractItemView::SingleSelection);
    setShowGrid(false);
    setAlternatingRowColors(true);
    setTabKeyNavigation(false);
    setWordWrap(false);
    verticalHeader()->hide();
    verticalHeader()->setDefaultSectionSize(fontMetrics().height() + 5);
    horizontalHeader()->setSectionResizeMode(QHeaderView::Interactive);
    horizontalHeader()->setStretchLastSection(true);
    setContextMenuPolicy(Qt::ActionsContextMenu);
    auto *copy = new QAction(tr("Copy All as CSV"), this);
    connect(copy, &QAction::triggered, this, [this] { QGuiApplication::clipboard()->setText(csv()); });
    addAction(copy);
    connect(
        selectionModel(), &QItemSelectionModel::currentRowChanged, this, [this](const QModelIndex &index) {
            if (const CommunicationLine *line = m_model->lineAt(index.row()))
                Q_EMIT operatorsChosen(line->operators);
        });
    connect(&m_watcher, &QFutureWatcherBase::finished, this, [this] {
        if (m_watcher.future().resultCount() == 0 || !m_watcher.result())
            return;
        m_model->set(m_watcher.result());
        resizeColumnsToContents();
    });
}

CommunicationLinesView::~CommunicationLinesView()
{
    m_stop.request_stop();
}

void CommunicationLinesView::setUpdate(const PlanUpdateSnapshot &update)
{
    m_stop.request_stop();
    if (!update || !update->scene) {
        m_watcher.setFuture({});
        m_model->set(nullptr);
        return;
    }
    m_stop = std::stop_source{};
    m_watcher.setFuture(
        QtConcurrent::run([update, stop = m_stop.get_token()]() -> CommunicationLinesSnapshot {
            auto lines =
                communicationLines(*update->scene->plan, *update->scene->timeline, update->cluster, stop);
            return lines ? std::make_shared<const CommunicationLines>(*std::move(lines)) : nullptr;
        }));
}

QString CommunicationLinesView::csv() const
{
    return toQString(communicationCsv(m_model->lines() ? *m_model->lines() : CommunicationLines{}));
}

} // namespace planloom

#include "moc_communication_lines_view.cpp"
