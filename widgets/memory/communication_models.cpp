#include "widgets/memory/communication_models.h"

#include "widgets/common/quantity_text.h"

namespace planloom {

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
    static const std::array<const char *, ColumnCount> kNames{QT_TR_NOOP("Kind"), QT_TR_NOOP("From"),
        QT_TR_NOOP("To"), QT_TR_NOOP("Sent"), QT_TR_NOOP("Time"), QT_TR_NOOP("Count")};
    return tr(kNames[static_cast<std::size_t>(section)]);
}

void LinksModel::set(std::vector<LinkLoad> links)
{
    beginResetModel();
    m_links = std::move(links);
    std::stable_sort(m_links.begin(), m_links.end(),
        [](const LinkLoad &a, const LinkLoad &b) { return a.share > b.share; });
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
        return link.betweenNodes ? tr("host %1 to other hosts").arg(link.index)
                                 : tr("device %1 inside its host").arg(link.index);
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

} // namespace planloom

#include "moc_communication_models.cpp"
