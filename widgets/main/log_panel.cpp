#include "widgets/main/log_panel.h"

#include <QtGui/QAction>
#include <QtGui/QClipboard>
#include <QtGui/QGuiApplication>
#include <QtWidgets/QHeaderView>
#include <QtWidgets/QScrollBar>
#include <QtWidgets/QTableView>
#include <QtWidgets/QVBoxLayout>

namespace planloom {

void LogModel::add(LogKind kind, const QString &what, const QDateTime &time)
{
    if (!m_entries.empty() && m_entries.back().kind == kind && m_entries.back().what == what) {
        m_entries.back().time = time;
        const QModelIndex last = index(rowCount() - 1, Time);
        Q_EMIT dataChanged(last, last);
        return;
    }
    if (rowCount() == kMostEntries) {
        beginRemoveRows({}, 0, 0);
        m_entries.pop_front();
        endRemoveRows();
    }
    beginInsertRows({}, rowCount(), rowCount());
    m_entries.push_back({time, kind, what});
    endInsertRows();
}

void LogModel::clear()
{
    beginResetModel();
    m_entries.clear();
    endResetModel();
}

QString LogModel::text() const
{
    QString text;
    for (int row = 0; row < rowCount(); ++row) {
        for (int column = 0; column < ColumnCount; ++column)
            text += data(index(row, column), Qt::DisplayRole).toString()
                + QLatin1Char(column + 1 < ColumnCount ? '\t' : '\n');
    }
    return text;
}

int LogModel::rowCount(const QModelIndex &parent) const
{
    return parent.isValid() ? 0 : static_cast<int>(m_entries.size());
}

int LogModel::columnCount(const QModelIndex &parent) const
{
    return parent.isValid() ? 0 : ColumnCount;
}

QVariant LogModel::data(const QModelIndex &index, int role) const
{
    if (!index.isValid() || index.row() >= rowCount() || (role != Qt::DisplayRole && role != Qt::ToolTipRole))
        return {};
    const Entry &entry = m_entries[static_cast<std::size_t>(index.row())];
    switch (index.column()) {
    case Time:
        return entry.time.toString(QStringLiteral("hh:mm:ss"));
    case Kind:
        switch (entry.kind) {
        case LogKind::Model:
            return tr("Model");
        case LogKind::Plan:
            return tr("Plan");
        case LogKind::Session:
            return tr("Session");
        case LogKind::Run:
            return tr("Run");
        case LogKind::Problem:
            return tr("Problem");
        }
        return {};
    case What:
        return entry.what;
    default:
        return {};
    }
}

QVariant LogModel::headerData(int section, Qt::Orientation orientation, int role) const
{
    if (orientation != Qt::Horizontal || role != Qt::DisplayRole)
        return {};
    switch (section) {
    case Time:
        return tr("Time");
    case Kind:
        return tr("About");
    case What:
        return tr("What happened");
    default:
        return {};
    }
}

LogPanel::LogPanel(QWidget *parent)
    : QWidget(parent)
    , m_model(new LogModel(this))
    , m_list(new QTableView(this))
{
    m_list->setModel(m_model);
    m_list->setFrameShape(QFrame::NoFrame);
    m_list->setShowGrid(false);
    m_list->setWordWrap(false);
    m_list->setTabKeyNavigation(false);
    m_list->setSelectionBehavior(QAbstractItemView::SelectRows);
    m_list->setAccessibleName(tr("Log"));
    m_list->verticalHeader()->hide();
    m_list->verticalHeader()->setDefaultSectionSize(fontMetrics().height() * 3 / 2);
    m_list->horizontalHeader()->setStretchLastSection(true);
    m_list->horizontalHeader()->setHighlightSections(false);
    m_list->setColumnWidth(LogModel::Time, fontMetrics().averageCharWidth() * 12);
    m_list->setColumnWidth(LogModel::Kind, fontMetrics().averageCharWidth() * 12);
    auto *layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->addWidget(m_list);
    // The end stays in sight unless somebody reads further up.
    connect(m_model, &QAbstractItemModel::rowsAboutToBeInserted, this, [this] {
        const QScrollBar *bar = m_list->verticalScrollBar();
        setProperty("atEnd", bar->value() == bar->maximum());
    });
    connect(m_model, &QAbstractItemModel::rowsInserted, this, [this] {
        if (property("atEnd").toBool())
            m_list->scrollToBottom();
    });
    auto *copy = new QAction(tr("Copy Log"), this);
    copy->setObjectName(QStringLiteral("log.copy"));
    connect(
        copy, &QAction::triggered, this, [this] { QGuiApplication::clipboard()->setText(m_model->text()); });
    auto *clear = new QAction(tr("Clear Log"), this);
    clear->setObjectName(QStringLiteral("log.clear"));
    connect(clear, &QAction::triggered, m_model, &LogModel::clear);
    addActions({copy, clear});
    m_list->setContextMenuPolicy(Qt::ActionsContextMenu);
    m_list->addActions({copy, clear});
}

} // namespace planloom

#include "moc_log_panel.cpp"
