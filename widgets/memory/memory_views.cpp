#include "widgets/memory/memory_views.h"

#include "engine/base/words.h"
#include "widgets/common/quantity_text.h"
#include "widgets/memory/treemap.h"
#include "widgets/scene/time_axis.h"

#include <QtCore/QEvent>
#include <QtGui/QHelpEvent>
#include <QtGui/QKeyEvent>
#include <QtGui/QMouseEvent>
#include <QtGui/QPainter>
#include <QtWidgets/QToolTip>

#include <algorithm>

namespace planloom {

namespace {

} // namespace

MemoryCurveView::MemoryCurveView(QWidget *parent)
    : QWidget(parent)
{
    setAccessibleName(tr("Memory over the step"));
    setFocusPolicy(Qt::StrongFocus);
    setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Expanding);
}

QSize MemoryCurveView::sizeHint() const
{
    return {fontMetrics().averageCharWidth() * 60, fontMetrics().height() * 9};
}

QSize MemoryCurveView::minimumSizeHint() const
{
    return {fontMetrics().averageCharWidth() * 24, fontMetrics().height() * 4};
}

void MemoryCurveView::setScene(TimelineSceneSnapshot scene, std::int32_t device)
{
    m_scene = std::move(scene);
    m_device = device;
    update();
}

void MemoryCurveView::setTime(std::int64_t nanoseconds)
{
    m_time = nanoseconds;
    update();
}

const MemoryCurve *MemoryCurveView::curve() const
{
    return m_scene && m_device >= 0 && static_cast<std::size_t>(m_device) < m_scene->timeline->memory.size()
        ? &m_scene->timeline->memory[static_cast<std::size_t>(m_device)]
        : nullptr;
}

QRectF MemoryCurveView::plot() const
{
    const QFontMetrics metrics = fontMetrics();
    return QRectF(rect()).adjusted(
        metrics.horizontalAdvance(QStringLiteral("0000 GiB")) + metrics.averageCharWidth(),
        metrics.height() * 0.8, -metrics.averageCharWidth() * 2, -metrics.height() * 1.3);
}

void MemoryCurveView::chooseAt(double x)
{
    const QRectF area = plot();
    if (!curve() || area.width() <= 0)
        return;
    const double share = std::clamp((x - area.left()) / area.width(), 0.0, 1.0);
    Q_EMIT timeChosen(static_cast<qint64>(share * static_cast<double>(m_scene->timeline->step.count())));
}

void MemoryCurveView::mousePressEvent(QMouseEvent *event)
{
    if (event->button() == Qt::LeftButton)
        chooseAt(event->position().x());
}

void MemoryCurveView::mouseMoveEvent(QMouseEvent *event)
{
    if (event->buttons() & Qt::LeftButton)
        chooseAt(event->position().x());
}

void MemoryCurveView::keyPressEvent(QKeyEvent *event)
{
    const MemoryCurve *known = curve();
    if (!known || known->time.empty() || (event->key() != Qt::Key_Left && event->key() != Qt::Key_Right)) {
        QWidget::keyPressEvent(event);
        return;
    }
    // From one change of the curve to the next.
    const auto &times = known->time;
    if (event->key() == Qt::Key_Right) {
        const auto next = std::upper_bound(times.begin(), times.end(), m_time);
        Q_EMIT timeChosen(next == times.end() ? times.back() : *next);
    } else {
        const auto next = std::lower_bound(times.begin(), times.end(), m_time);
        Q_EMIT timeChosen(next == times.begin() ? times.front() : *(next - 1));
    }
}

void MemoryCurveView::paintEvent(QPaintEvent *)
{
    const Palette &palette = paletteFor(*this);
    QPainter painter(this);
    painter.fillRect(rect(), palette.canvas);
    const MemoryCurve *known = curve();
    const QFontMetrics metrics = fontMetrics();
    if (!known || known->time.empty()) {
        painter.setPen(palette.textMuted);
        painter.drawText(rect(), Qt::AlignCenter, tr("A plan's memory appears here."));
        return;
    }
    const QRectF area = plot();
    const auto capacity = static_cast<std::int64_t>(
        m_scene->deviceModel(DeviceId{static_cast<std::int32_t>(m_device)}).memory.value);
    const std::int64_t peak = std::max<std::int64_t>(known->peak.count, 1);
    // The cap is drawn where the curve comes near it; far below it, the curve has the room.
    const bool capShown = capacity > 0 && peak * 3 > capacity;
    const double top = static_cast<double>(capShown ? std::max(peak, capacity) : peak) * 1.08;
    const double step = std::max<double>(1, static_cast<double>(m_scene->timeline->step.count()));
    const auto y = [&](double bytes) { return area.bottom() - bytes / top * area.height(); };
    const PeakIndex &index = m_scene->lanes[static_cast<std::size_t>(m_device)].memory;
    for (int x = 0; x < static_cast<int>(area.width()); ++x) {
        const double begin = x / area.width() * step;
        const double end = (x + 1) / area.width() * step;
        const std::int64_t entry = index.largestIn(*known, begin, end);
        if (entry < 0)
            continue;
        double below = 0;
        for (int kind = 0; kind < kMemoryKindCount; ++kind) {
            const double bytes = static_cast<double>(
                known->bytes[static_cast<std::size_t>(entry)][static_cast<std::size_t>(kind)]);
            if (bytes <= 0)
                continue;
            painter.fillRect(QRectF(area.left() + x, y(below + bytes), 1, y(below) - y(below + bytes)),
                memoryColour(palette, static_cast<MemoryKind>(kind)));
            below += bytes;
        }
    }
    painter.setPen(palette.grid);
    painter.drawLine(area.bottomLeft(), area.bottomRight());
    painter.setPen(palette.text);
    const auto label = [&](double bytes, const QString &text) {
        painter.drawText(QRectF(0, y(bytes) - metrics.height() / 2.0,
                             area.left() - metrics.averageCharWidth(), metrics.height()),
            Qt::AlignRight | Qt::AlignVCenter, text);
    };
    label(static_cast<double>(peak), bytesText(peak));
    painter.setPen(QPen(palette.textMuted, 1, Qt::DotLine));
    painter.drawLine(QPointF(area.left(), y(static_cast<double>(peak))),
        QPointF(area.right(), y(static_cast<double>(peak))));
    if (capShown) {
        painter.setPen(QPen(palette.error, 2));
        painter.drawLine(QPointF(area.left(), y(static_cast<double>(capacity))),
            QPointF(area.right(), y(static_cast<double>(capacity))));
        painter.setPen(palette.text);
        painter.drawText(
            QRectF(area.left() + 4, y(static_cast<double>(capacity)) + 2, area.width(), metrics.height()),
            Qt::AlignLeft, tr("capacity %1").arg(bytesText(capacity)));
    } else if (capacity > 0) {
        painter.setPen(palette.textMuted);
        painter.drawText(QRectF(area.left(), 0, area.width(), metrics.height()),
            Qt::AlignRight | Qt::AlignVCenter, tr("capacity %1, far above").arg(bytesText(capacity)));
    }
    painter.setPen(palette.textMuted);
    painter.drawText(QRectF(area.left(), area.bottom() + 2, area.width(), metrics.height()), Qt::AlignLeft,
        QStringLiteral("0"));
    painter.drawText(QRectF(area.left(), area.bottom() + 2, area.width(), metrics.height()), Qt::AlignRight,
        QString::fromStdString(formatSeconds(step * 1e-9)));
    const double at = area.left() + static_cast<double>(m_time) / step * area.width();
    painter.setPen(QPen(palette.text, 1.5));
    painter.drawLine(QPointF(at, area.top()), QPointF(at, area.bottom()));
    if (hasFocus()) {
        painter.setPen(QPen(palette.accent, 2));
        painter.drawRect(QRectF(rect()).adjusted(1, 1, -1, -1));
    }
}

MemoryTreemap::MemoryTreemap(QWidget *parent)
    : QWidget(parent)
{
    setAccessibleName(tr("Live tensors"));
    setFocusPolicy(Qt::StrongFocus);
    setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Expanding);
}

QSize MemoryTreemap::sizeHint() const
{
    return {fontMetrics().averageCharWidth() * 50, fontMetrics().height() * 10};
}

QSize MemoryTreemap::minimumSizeHint() const
{
    return {fontMetrics().averageCharWidth() * 20, fontMetrics().height() * 4};
}

void MemoryTreemap::setLive(std::vector<BufferLifetime> live, GraphSnapshot graph)
{
    m_live = std::move(live);
    std::erase_if(m_live, [](const BufferLifetime &buffer) { return buffer.bytes.count <= 0; });
    m_graph = std::move(graph);
    m_current = -1;
    m_total = 0;
    for (const BufferLifetime &buffer : m_live)
        m_total += buffer.bytes.count;
    setAccessibleDescription(tr("%1 buffers, %2").arg(m_live.size()).arg(bytesText(m_total)));
    layOut();
}

void MemoryTreemap::layOut()
{
    m_tiles.clear();
    std::vector<double> weights;
    for (std::size_t i = 0; i < m_live.size() && m_tiles.size() + 1 < kMostTiles; ++i)
        m_tiles.push_back({{}, i, 1, m_live[i].bytes.count});
    if (m_tiles.size() < m_live.size()) {
        Tile rest{{}, m_tiles.size(), m_live.size() - m_tiles.size(), 0};
        for (std::size_t i = rest.first; i < m_live.size(); ++i)
            rest.bytes += m_live[i].bytes.count;
        m_tiles.push_back(rest);
        std::stable_sort(
            m_tiles.begin(), m_tiles.end(), [](const Tile &a, const Tile &b) { return a.bytes > b.bytes; });
    }
    for (const Tile &tile : m_tiles)
        weights.push_back(static_cast<double>(tile.bytes));
    const std::vector<QRectF> rects = treemapOf(weights, QRectF(rect()));
    for (std::size_t i = 0; i < rects.size(); ++i)
        m_tiles[i].rect = rects[i];
    update();
}

void MemoryTreemap::resizeEvent(QResizeEvent *)
{
    layOut();
}

int MemoryTreemap::tileAt(QPointF at) const
{
    for (std::size_t i = 0; i < m_tiles.size(); ++i) {
        if (m_tiles[i].rect.contains(at))
            return static_cast<int>(i);
    }
    return -1;
}

QString MemoryTreemap::factOf(std::size_t number) const
{
    const Tile &tile = m_tiles[number];
    if (tile.count > 1)
        return tr("%1 smaller buffers, %2").arg(tile.count).arg(bytesText(tile.bytes));
    const BufferLifetime &buffer = m_live[tile.first];
    QString text = QString::fromStdString(m_graph->at(buffer.tensor).name);
    text += QLatin1Char('\n')
        + tr("%1, %2").arg(QLatin1String(nameOf(buffer.kind)), bytesText(buffer.bytes.count));
    if (m_total > 0)
        text += tr(" (%1% of what lives now)")
                    .arg(100.0 * static_cast<double>(buffer.bytes.count) / static_cast<double>(m_total), 0,
                        'f', 1);
    if (buffer.microBatch >= 0)
        text += QLatin1Char('\n') + tr("micro-batch %1").arg(buffer.microBatch);
    if (buffer.maker.valid())
        text +=
            QLatin1Char('\n') + tr("made by %1").arg(QString::fromStdString(m_graph->at(buffer.maker).name));
    text += QLatin1Char('\n')
        + (buffer.death == kNeverDies ? tr("lives on after the step")
                                      : tr("from %1 to %2")
                                            .arg(QString::fromStdString(formatNanoseconds(buffer.birth)),
                                                QString::fromStdString(formatNanoseconds(buffer.death))));
    return text;
}

void MemoryTreemap::choose(int tile)
{
    m_current = tile;
    update();
    if (tile < 0)
        return;
    setAccessibleDescription(factOf(static_cast<std::size_t>(tile)));
    const Tile &chosenTile = m_tiles[static_cast<std::size_t>(tile)];
    if (chosenTile.count == 1 && m_live[chosenTile.first].maker.valid())
        Q_EMIT chosen(m_live[chosenTile.first].maker);
}

void MemoryTreemap::mousePressEvent(QMouseEvent *event)
{
    if (event->button() == Qt::LeftButton)
        choose(tileAt(event->position()));
}

void MemoryTreemap::keyPressEvent(QKeyEvent *event)
{
    const int count = static_cast<int>(m_tiles.size());
    if (count > 0 && (event->key() == Qt::Key_Right || event->key() == Qt::Key_Down))
        choose((m_current + 1) % count);
    else if (count > 0 && (event->key() == Qt::Key_Left || event->key() == Qt::Key_Up))
        choose((m_current + count - 1) % count);
    else
        QWidget::keyPressEvent(event);
}

bool MemoryTreemap::event(QEvent *event)
{
    if (event->type() == QEvent::ToolTip) {
        const auto *help = static_cast<QHelpEvent *>(event); // the type says so
        const int tile = tileAt(help->pos());
        tile < 0 ? QToolTip::hideText()
                 : QToolTip::showText(help->globalPos(), factOf(static_cast<std::size_t>(tile)), this);
        return true;
    }
    return QWidget::event(event);
}

void MemoryTreemap::paintEvent(QPaintEvent *)
{
    const Palette &palette = paletteFor(*this);
    QPainter painter(this);
    painter.fillRect(rect(), palette.canvas);
    const QFontMetrics metrics = fontMetrics();
    if (m_tiles.empty()) {
        painter.setPen(palette.textMuted);
        painter.drawText(rect(), Qt::AlignCenter | Qt::TextWordWrap,
            tr("The tensors that live at the chosen moment appear here."));
        return;
    }
    for (std::size_t i = 0; i < m_tiles.size(); ++i) {
        const Tile &tile = m_tiles[i];
        const QColor colour =
            tile.count > 1 ? palette.neutral : memoryColour(palette, m_live[tile.first].kind);
        const QRectF box = tile.rect.adjusted(0.5, 0.5, -0.5, -0.5);
        painter.fillRect(box, colour);
        if (box.height() > metrics.height() * 1.1 && box.width() > metrics.averageCharWidth() * 6) {
            painter.setPen(readableOn(colour));
            const QString name = tile.count > 1
                ? tr("%1 smaller").arg(tile.count)
                : QString::fromStdString(m_graph->at(m_live[tile.first].tensor).name);
            painter.drawText(box.adjusted(3, 1, -3, 0), Qt::AlignLeft | Qt::AlignTop,
                metrics.elidedText(name, Qt::ElideLeft, static_cast<int>(box.width() - 6)));
            if (box.height() > metrics.height() * 2.2)
                painter.drawText(box.adjusted(3, 1 + metrics.height(), -3, 0), Qt::AlignLeft | Qt::AlignTop,
                    metrics.elidedText(
                        bytesText(tile.bytes), Qt::ElideRight, static_cast<int>(box.width() - 6)));
        }
        if (static_cast<int>(i) == m_current) {
            painter.setPen(QPen(palette.text, 2));
            painter.drawRect(box.adjusted(1, 1, -1, -1));
        }
    }
    if (hasFocus()) {
        painter.setPen(QPen(palette.accent, 2));
        painter.drawRect(QRectF(rect()).adjusted(1, 1, -1, -1));
    }
}

} // namespace planloom

#include "moc_memory_views.cpp"
