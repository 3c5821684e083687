#include "widgets/memory/topology_view.h"

#include "widgets/common/format.h"
#include "widgets/common/palette.h"

#include <QtGui/QHelpEvent>
#include <QtGui/QKeyEvent>
#include <QtGui/QMouseEvent>
#include <QtGui/QPaintEvent>
#include <QtGui/QPainter>
#include <QtWidgets/QToolTip>

#include <algorithm>
#include <cmath>

namespace planloom {

namespace {

QRectF rectOf(const TopologyBox &box)
{
    return {box.x, box.y, box.width, box.height};
}

QString percent(double share)
{
    return share > 0 && share < 0.01 ? QStringLiteral("<1%")
                                     : QString::number(std::lround(share * 100)) + QLatin1Char('%');
}

} // namespace

TopologyView::TopologyView(QWidget *parent)
    : QWidget(parent)
{
    setFocusPolicy(Qt::StrongFocus);
    setAccessibleName(tr("Map of the cluster with the load of its links"));
    QSizePolicy policy(QSizePolicy::Preferred, QSizePolicy::Preferred);
    policy.setHeightForWidth(false);
    setSizePolicy(policy);
    layOut();
}

void TopologyView::setMatrix(std::shared_ptr<const CommunicationMatrix> matrix, const Cluster &cluster)
{
    m_matrix = std::move(matrix);
    m_perNode = std::max(cluster.links.devicesPerNode, 1);
    m_ofDevice.assign(m_matrix ? static_cast<std::size_t>(std::max(m_matrix->deviceCount, 0)) : 0, -1);
    m_ofNode.assign(m_ofDevice.size() / static_cast<std::size_t>(m_perNode) + 1, -1);
    for (std::size_t i = 0; m_matrix && i < m_matrix->links.size(); ++i) {
        const LinkLoad &link = m_matrix->links[i];
        auto &list = link.betweenNodes ? m_ofNode : m_ofDevice;
        if (link.index >= 0 && static_cast<std::size_t>(link.index) < list.size())
            list[static_cast<std::size_t>(link.index)] = static_cast<std::int32_t>(i);
    }
    if (!m_matrix || static_cast<std::size_t>(std::max(m_current, 0)) >= m_matrix->links.size())
        m_current = -1;
    layOut();
}

void TopologyView::layOut()
{
    const QFontMetrics metrics = fontMetrics();
    TopologyMetrics sizes;
    sizes.lineHeight = metrics.height() + 2;
    sizes.tileWidth = metrics.horizontalAdvance(QStringLiteral("00000")) + 8;
    sizes.tileHeight = 2 * metrics.height() + 4;
    sizes.linkHeight = metrics.height() + 2;
    m_layout = TopologyLayout(m_matrix ? m_matrix->deviceCount : 0, m_perNode, width(), sizes);
    const int high = m_matrix ? static_cast<int>(std::ceil(m_layout.height())) : 3 * metrics.height();
    if (minimumHeight() != high)
        setMinimumHeight(high);
    update();
}

QSize TopologyView::sizeHint() const
{
    return {fontMetrics().averageCharWidth() * 50, minimumHeight()};
}

const LinkLoad *TopologyView::current() const
{
    return m_matrix && m_current >= 0 ? &m_matrix->links[static_cast<std::size_t>(m_current)] : nullptr;
}

std::int32_t TopologyView::linkOf(bool betweenNodes, std::int32_t index) const
{
    const auto &list = betweenNodes ? m_ofNode : m_ofDevice;
    return index >= 0 && static_cast<std::size_t>(index) < list.size() ? list[static_cast<std::size_t>(index)]
                                                                       : -1;
}

std::int32_t TopologyView::linkAt(QPointF at) const
{
    if (const std::int32_t device = m_layout.deviceAt(at.x(), at.y()); device >= 0)
        return linkOf(false, device);
    return linkOf(true, m_layout.nodeHeadAt(at.x(), at.y()));
}

QString TopologyView::factOf(const LinkLoad &link) const
{
    const QString bytes = QString::fromStdString(formatBytes(link.bytes));
    return link.betweenNodes
        ? tr("host %1 sends %2 to other hosts in a step: %3 of what its link could carry")
              .arg(link.index)
              .arg(bytes, percent(link.share))
        : tr("device %1 sends %2 inside its host in a step: %3 of what its link could carry")
              .arg(link.index)
              .arg(bytes, percent(link.share));
}

void TopologyView::choose(std::int32_t link)
{
    m_current = link;
    setAccessibleDescription(current() ? factOf(*current()) : QString());
    update();
    Q_EMIT linkChosen(current());
}

void TopologyView::resizeEvent(QResizeEvent *event)
{
    QWidget::resizeEvent(event);
    layOut();
}

void TopologyView::mousePressEvent(QMouseEvent *event)
{
    if (event->button() == Qt::LeftButton && m_matrix)
        choose(linkAt(event->position()));
    else
        QWidget::mousePressEvent(event);
}

void TopologyView::keyPressEvent(QKeyEvent *event)
{
    const LinkLoad *now = current();
    const bool node = now && now->betweenNodes;
    std::int32_t index = now ? now->index : -1;
    switch (m_matrix && m_layout.deviceCount() > 0 ? event->key() : 0) {
    case Qt::Key_Left:
        --index;
        break;
    case Qt::Key_Right:
        ++index;
        break;
    case Qt::Key_Up: // to the node that a device hangs from
        if (m_layout.hasNetwork() && !node)
            choose(linkOf(true, std::max(index, 0) / m_perNode));
        return;
    case Qt::Key_Down:
        if (node || index < 0)
            choose(linkOf(false, std::max(index, 0) * (node ? m_perNode : 1)));
        return;
    case Qt::Key_Escape:
        choose(-1);
        return;
    default:
        QWidget::keyPressEvent(event);
        return;
    }
    choose(linkOf(node, std::clamp(index, 0, (node ? m_layout.nodeCount() : m_layout.deviceCount()) - 1)));
}

bool TopologyView::event(QEvent *event)
{
    if (event->type() == QEvent::ToolTip) {
        const auto *help = static_cast<QHelpEvent *>(event); // the type says so
        const std::int32_t link = m_matrix ? linkAt(help->pos()) : -1;
        link < 0 ? QToolTip::hideText()
                 : QToolTip::showText(
                     help->globalPos(), factOf(m_matrix->links[static_cast<std::size_t>(link)]), this);
        return true;
    }
    if (event->type() == QEvent::FontChange)
        layOut();
    return QWidget::event(event);
}

void TopologyView::paintEvent(QPaintEvent *event)
{
    const Palette &palette = paletteFor(*this);
    QPainter painter(this);
    painter.fillRect(event->rect(), palette.surface);
    if (!m_matrix || m_matrix->deviceCount < 1) {
        painter.setPen(palette.textMuted);
        painter.drawText(
            rect(), Qt::AlignCenter | Qt::TextWordWrap, tr("The load of the cluster's links appears here."));
        return;
    }
    const auto gauge = [&](const TopologyBox &box, std::int32_t link) {
        if (link < 0)
            return;
        const LinkLoad &load = m_matrix->links[static_cast<std::size_t>(link)];
        const QRectF outline = rectOf(box);
        painter.setPen(link == m_current ? QPen(palette.accent, 3) : QPen(palette.textMuted, 1));
        painter.setBrush(palette.canvas);
        painter.drawRect(outline);
        const double share = std::clamp(load.share, 0.0, 1.0);
        if (load.bytes.count > 0) { // at least a hairline where anything is sent
            const double high = std::max(1.0, share * (outline.height() - 2));
            painter.fillRect(
                QRectF(outline.left() + 1, outline.bottom() - 1 - high, outline.width() - 2, high),
                heatColour(palette, share));
        }
    };
    const auto [first, last] = m_layout.nodesBetween(event->rect().top(), event->rect().bottom() + 1);
    for (std::int32_t node = first; node < last; ++node) {
        const QRectF box = rectOf(m_layout.node(node));
        painter.setPen(palette.border);
        painter.setBrush(palette.surfaceRaised);
        painter.drawRoundedRect(box, 4, 4);
        const std::int32_t link = linkOf(true, node);
        if (m_layout.hasNetwork()) {
            const QRectF pipe = rectOf(m_layout.nodeLink(node));
            painter.fillRect(QRectF(box.left() - 6, pipe.top() - 4, box.width() + 12, 4),
                palette.textMuted); // the network's line
            gauge(m_layout.nodeLink(node), link);
        }
        painter.setPen(palette.text);
        QString title = tr("host %1").arg(node);
        if (link >= 0)
            title += QStringLiteral(" · ") + percent(m_matrix->links[static_cast<std::size_t>(link)].share);
        const QRectF head(box.left() + 6, box.top(), box.width() - 12, fontMetrics().height() + 2);
        painter.drawText(head, Qt::AlignLeft | Qt::AlignVCenter,
            fontMetrics().elidedText(title, Qt::ElideRight, static_cast<int>(head.width())));
        painter.fillRect(rectOf(m_layout.nodeSwitch(node)), palette.textMuted);
        for (std::int32_t device = node * m_perNode;
             device < std::min((node + 1) * m_perNode, m_layout.deviceCount()); ++device) {
            const QRectF tile = rectOf(m_layout.device(device));
            const std::int32_t own = linkOf(false, device);
            gauge(m_layout.deviceLink(device), own);
            painter.setPen(own >= 0 && own == m_current ? QPen(palette.accent, 3) : QPen(palette.border, 1));
            painter.setBrush(palette.canvas);
            painter.drawRoundedRect(tile, 3, 3);
            painter.setPen(palette.text);
            painter.drawText(
                tile.adjusted(0, 1, 0, -tile.height() / 2), Qt::AlignCenter, QString::number(device));
            if (own >= 0) {
                painter.setPen(palette.textMuted);
                painter.drawText(tile.adjusted(0, tile.height() / 2 - 1, 0, -1), Qt::AlignCenter,
                    percent(m_matrix->links[static_cast<std::size_t>(own)].share));
            }
        }
    }
    if (hasFocus()) {
        painter.setPen(QPen(palette.accent, 2));
        painter.setBrush(Qt::NoBrush);
        painter.drawRect(QRectF(rect()).adjusted(1, 1, -1, -1));
    }
}

} // namespace planloom

#include "moc_topology_view.cpp"
