// What the split in the hand needs on the edges of its node: none, a local step or a communication, as the
// engine's would-be plan has it.

#include "widgets/dag/dag_gesture_layer.h"

#include "widgets/dag/dag_ghost_painter.h"
#include "widgets/dag/dag_view.h"

#include <QtConcurrent/QtConcurrentRun>
#include <QtGui/QFontMetricsF>
#include <QtGui/QPainter>
#include <QtGui/QPolygonF>

#include <algorithm>
#include <cmath>
#include <utility>

namespace planloom {

/// The engine has said more of what is proposed: its communication is looked up by a worker.
void DagGestureLayer::lookUpConversions()
{
    const auto preview = m_gestures.host() != nullptr ? m_gestures.host()->currentPreview() : nullptr;
    const auto scene = m_gestures.kind() == DagGestures::Kind::Split && preview && preview->update
        ? preview->update->scene
        : nullptr;
    const OperatorId op = representative(m_chipBox);
    if (!scene || !op.valid()) {
        m_conversionStop.request_stop();
        m_conversionsOf = nullptr;
        m_conversions.clear();
        return;
    }
    if (scene == m_conversionsOf)
        return;
    m_conversionsOf = scene;
    m_conversions.clear();
    m_conversionStop.request_stop();
    m_conversionStop = std::stop_source{};
    m_conversionWatcher.setFuture(QtConcurrent::run([scene, op, stop = m_conversionStop.get_token()] {
        return conversionsAround(*scene->plan, op, stop);
    }));
}

void DagGestureLayer::takeConversions()
{
    if (!m_conversionsOf || m_conversionWatcher.future().resultCount() == 0)
        return;
    m_conversions = m_conversionWatcher.result();
    m_view.update();
}

void DagGestureLayer::paintConversions(QPainter &painter)
{
    const auto picture = m_view.picture();
    if (m_conversions.empty() || m_chipBox <= 0 || !picture || m_gestures.kind() != DagGestures::Kind::Split)
        return;
    const Palette &palette = paletteFor(m_view);
    const auto &scene = picture->scene;
    const auto &camera = m_view.camera();
    const QFontMetricsF metrics(m_view.font());
    std::vector<QRectF> taken;
    painter.setRenderHint(QPainter::Antialiasing, true);
    painter.setFont(m_view.font());
    const QRectF node = m_view.viewRect(m_chipBox);
    std::int32_t beside = 0;
    for (const auto &each : m_conversions) {
        const QColor colour = each.conversion == Conversion::None ? palette.success
            : each.conversion == Conversion::Local                ? palette.warning
                                                                  : palette.error;
        const QPen pen(colour, each.conversion == Conversion::Communication ? 3.6 : 2.4,
            each.conversion == Conversion::None        ? Qt::SolidLine
                : each.conversion == Conversion::Local ? Qt::DashLine
                                                       : Qt::SolidLine);
        // The ways its data takes: from the node that makes it to this one, or from this one on.
        std::int32_t source = each.input ? -1 : m_chipBox;
        for (std::size_t i = 0; each.input && i < picture->visible.edges.size() && source < 0; ++i) {
            const auto &edge = picture->visible.edges[i];
            if (edge.to != m_chipBox)
                continue;
            for (const auto op :
                planloom::operatorsOf(*picture->outline, picture->visible, edge.from, false)) {
                const auto &made = picture->outline->graph->at(op).outputs;
                if (std::find(made.begin(), made.end(), each.tensor) != made.end())
                    source = edge.from;
            }
        }
        QPointF badge;
        bool drawn = false;
        for (const auto &path : scene.paths) {
            if (path.source != source || (each.input && path.target != m_chipBox))
                continue;
            QPolygonF line;
            for (std::uint32_t i = path.begin; i < path.end; ++i)
                line.append(QPointF(camera.viewX(scene.points[i].x), camera.viewY(scene.points[i].y)));
            painter.setBrush(Qt::NoBrush);
            painter.setPen(pen);
            painter.drawPolyline(line);
            if (!drawn)
                badge = (line.first() + line.last()) / 2;
            drawn = true;
        }
        if (source < 0 && !drawn && each.conversion == Conversion::None)
            continue; // a weight used as it lies: nothing flows that could be marked
        const QString text = textOf(each);
        const QSizeF size(metrics.horizontalAdvance(text) + 16, metrics.height() + 4);
        if (!drawn) { // not drawn in sight: at the node's side
            badge = QPointF(node.left() - size.width() / 2 - 8, node.top() + size.height() * (0.5 + beside));
            ++beside;
        }
        QRectF rect(badge - QPointF(size.width() / 2, size.height() / 2), size);
        rect.moveLeft(std::clamp(rect.left(), 2.0, std::max(2.0, m_view.width() - rect.width() - 2)));
        for (bool again = true; again;) {
            again = false;
            for (const auto &other : taken) {
                if (other.intersects(rect)) {
                    rect.moveTop(other.bottom() + 2);
                    again = true;
                }
            }
        }
        taken.push_back(rect);
        painter.setPen(QPen(colour, 1.6, pen.style()));
        painter.setBrush(palette.surface);
        painter.drawRoundedRect(rect, rect.height() / 2, rect.height() / 2);
        painter.setPen(palette.text);
        painter.drawText(rect, Qt::AlignCenter, text);
    }
}

} // namespace planloom
