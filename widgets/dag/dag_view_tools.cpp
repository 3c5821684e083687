// The tools of the canvas: what a drag with the left button does, and the measured path.

#include "engine/base/ids.h"
#include "widgets/dag/dag_view.h"

#include "engine/base/background_disposal.h"
#include "widgets/dag/dag_ghost_painter.h"
#include "widgets/dag/dag_measure.h"
#include "widgets/design/plan_update.h"

#include <QtConcurrent/QtConcurrentRun>
#include <QtGui/QPainter>

#include <algorithm>
#include <utility>

namespace planloom {

void DagView::setTool(CanvasTool tool)
{
    if (tool == m_tool)
        return;
    m_tool = tool;
    if (tool != CanvasTool::Measure)
        clearMeasure();
    showToolCursor();
    Q_EMIT toolChanged(tool);
}

CanvasTool DagView::toolInHand() const
{
    return m_spaceHeld ? CanvasTool::Pan : m_measureHeld ? CanvasTool::Measure : m_tool;
}

void DagView::showToolCursor()
{
    switch (toolInHand()) {
    case CanvasTool::Select:
        unsetCursor();
        break;
    case CanvasTool::Measure:
        setCursor(Qt::CrossCursor);
        break;
    case CanvasTool::Pan:
        setCursor(m_gesture == Gesture::Pan ? Qt::ClosedHandCursor : Qt::OpenHandCursor);
        break;
    }
}

void DagView::startMeasure(QPointF view)
{
    clearMeasure();
    m_measureFrom = boxAt(view);
    m_measuring = true;
    if (m_measureFrom <= 0 || m_picture->visible.at(m_measureFrom).frame) {
        m_measuring = false;
        m_measureFrom = -1;
        Q_EMIT noted(tr("Drag from one operator to another to measure the path between them."));
    }
}

/// The pointer is at `view`: what lies between is looked for by a worker.
void DagView::measureTo(QPointF view)
{
    m_measureEnd = view;
    const std::int32_t box = boxAt(view);
    const bool node = m_measuring && box > 0 && box != m_measureFrom && !m_picture->visible.at(box).frame;
    update();
    if ((node ? box : -1) == m_measureTo)
        return;
    m_measureTo = node ? box : -1;
    m_measure = nullptr;
    m_measureStop.request_stop();
    m_measureStop = std::stop_source{};
    m_measureBusy = node;
    if (!node)
        return;
    const auto unitsOf = [this](std::int32_t wanted) {
        std::vector<std::int32_t> units;
        for (const auto op : planloom::operatorsOf(*m_outline, m_picture->visible, wanted, false))
            units.push_back(m_outline->unitOfOperator[at(op.index)]);
        return units;
    };
    m_measureWatcher.setFuture(
        QtConcurrent::run([outline = m_outline, update = m_update, from = unitsOf(m_measureFrom),
                              to = unitsOf(m_measureTo), stop = m_measureStop.get_token()] {
            return sharedInBackground(measurePath(
                *outline, update && update->scene ? update->scene.get() : nullptr, from, to, stop));
        }));
}

void DagView::takeMeasure()
{
    if (!std::exchange(m_measureBusy, false))
        return;
    m_measure = m_measureWatcher.result();
    update();
    Q_EMIT measured(textOf(*m_measure));
}

void DagView::clearMeasure()
{
    if (m_measureFrom < 0 && !m_measure)
        return;
    m_measureStop.request_stop();
    m_measureBusy = m_measuring = false;
    m_measureFrom = m_measureTo = -1;
    m_measure = nullptr;
    update();
}

QString DagView::measureText() const
{
    return m_measure ? textOf(*m_measure) : QString();
}

void DagView::paintMeasure(QPainter &painter)
{
    if (m_measureFrom <= 0)
        return;
    const Palette &palette = paletteFor(*this);
    painter.setRenderHint(QPainter::Antialiasing, true);
    painter.setBrush(Qt::NoBrush);
    painter.setPen(QPen(palette.accent, 2));
    // The path through what is in sight of it.
    std::vector<std::int32_t> boxes{m_measureFrom};
    for (const auto unit : m_measure ? m_measure->path : std::vector<std::int32_t>{}) {
        const std::int32_t box = m_picture->visible.boxOfUnit[at(unit)];
        if (std::find(boxes.begin(), boxes.end(), box) == boxes.end())
            boxes.push_back(box);
    }
    if (m_measureTo > 0 && std::find(boxes.begin(), boxes.end(), m_measureTo) == boxes.end())
        boxes.push_back(m_measureTo);
    for (const auto box : boxes)
        painter.drawRoundedRect(viewRect(box).adjusted(-4, -4, 4, 4), 6, 6);
    painter.setPen(QPen(palette.accent, 1.6, Qt::DashLine));
    painter.drawLine(
        viewRect(m_measureFrom).center(), m_measureTo > 0 ? viewRect(m_measureTo).center() : m_measureEnd);
    const QString text = m_measure ? textOf(*m_measure)
        : m_measureTo > 0          ? tr("measuring …")
                                   : tr("to which operator?");
    paintTag(painter, text, TagMark::None, m_measureEnd, QSizeF(size()), font(), palette);
}

} // namespace planloom
