#include "engine/base/words.h"
#include "widgets/timeline/timeline_view.h"

#include <QtConcurrent/QtConcurrentRun>
#include <QtGui/QAccessible>
#include <QtGui/QClipboard>
#include <QtGui/QGuiApplication>
#include <QtWidgets/QApplication>

#include "engine/analyse/statistics.h"
#include "engine/hardware/device_word.h"
#include "widgets/common/format.h"
#include "widgets/timeline/timeline_analysis.h"
#include "widgets/timeline/timeline_panel.h"

#include <algorithm>
#include <cmath>

namespace planloom {

struct TimelineView::BoxContents {
    std::vector<OperatorId> operators{};
    std::optional<PanelTable> figures{};
};

int TimelineView::phasesHeight() const
{
    return m_scene && m_scene->plan->stageCount > 1 && m_scene->plan->microBatches > 1 ? m_metrics.bracket
                                                                                       : 0;
}

void TimelineView::selectBox(const QRect &box, bool enclosed, Qt::KeyboardModifiers modifiers)
{
    if (!m_scene)
        return;
    const TimelinePicture shownPicture = picture();
    TimelineBox area;
    area.begin = m_axis.timeAt(box.left() - m_metrics.header);
    area.end = m_axis.timeAt(box.right() - m_metrics.header);
    area.enclosed = enclosed;
    for (const TimelineRow &row : m_rows) {
        if (row.kind != TimelineRow::Kind::Device)
            continue;
        const int top = shownPicture.top(row, row.operatorsTop());
        const int bottom = top + row.operators - 1;
        if (enclosed ? top >= box.top() && bottom <= box.bottom()
                     : top <= box.bottom() && bottom >= box.top())
            area.devices.insert(area.devices.end(), row.devices.begin(), row.devices.end());
    }
    std::sort(area.devices.begin(), area.devices.end());
    m_boxAdds = modifiers & (Qt::ControlModifier | Qt::ShiftModifier);
    m_boxStop.request_stop();
    m_boxStop = {};
    m_boxWatcher.setFuture(QtConcurrent::run([scene = shown(), area, stop = m_boxStop.get_token()] {
        auto contents = std::make_shared<BoxContents>();
        contents->operators = operatorsIn(*scene, area, stop);
        if (!area.devices.empty()) {
            const TimeBox times{static_cast<std::int64_t>(std::llround(std::max(area.begin, 0.0))),
                std::min(static_cast<std::int64_t>(std::llround(area.end)), scene->timeline->step.count()),
                area.devices};
            const auto figures = times.begin < times.end
                ? statisticsOf(*scene->plan, *scene->timeline, times, stop)
                : std::nullopt;
            if (figures)
                contents->figures = statisticsTable(*scene, *figures);
        }
        return std::shared_ptr<const BoxContents>(std::move(contents));
    }));
}

void TimelineView::takeBox()
{
    if (m_boxWatcher.future().resultCount() == 0 || m_boxStop.stop_requested())
        return;
    const auto contents = m_boxWatcher.result();
    if (m_boxAdds)
        m_selection->add(contents->operators);
    else
        m_selection->select(contents->operators);
    m_wouldEnd.reset();
    if (contents->figures)
        showPanel(*contents->figures);
    updateActions();
}

void TimelineView::showPanel(PanelTable table)
{
    m_chain = {};
    m_panel->open(std::move(table));
    placePanel();
}

/// Beside the lanes: it never lies over what it explains.
void TimelineView::placePanel()
{
    const int width = m_panel->isHidden() ? 0 : m_panel->widthBeside(this->width());
    setViewportMargins(0, 0, width, 0);
    const QRect lanes = viewport()->geometry();
    m_panel->setGeometry(lanes.right() + 1, lanes.top(), width, lanes.height());
}

void TimelineView::hidePanel()
{
    m_wouldEnd.reset();
    m_chain = {};
    if (m_panel->isHidden())
        return;
    const bool hadFocus = m_panel->isAncestorOf(QApplication::focusWidget());
    m_panel->hide();
    placePanel();
    if (hadFocus)
        setFocus(Qt::OtherFocusReason);
    updateActions();
}

void TimelineView::copyPanel()
{
    if (m_panel->isVisible())
        QGuiApplication::clipboard()->setText(QString::fromStdString(m_panel->table().text()));
}

void TimelineView::setCriticalPath(bool on)
{
    if (m_criticalPath == on)
        return;
    m_criticalPath = on;
    syncActions();
    if (on)
        needAnalysis();
    viewport()->update();
}

bool TimelineView::isAnalysed() const
{
    return m_analyst->deep() != nullptr;
}

void TimelineView::onAnalysed()
{
    if (m_explains && m_analyst->deep())
        explainIdle();
    if (m_wantsIdleTable && m_analyst->deep())
        showIdleTimes();
    if (m_asksWhatIf && m_analyst->deep())
        askWhatIf();
    if (m_hover.hit.span >= 0 || m_hover.hit.part == HitPart::Idle)
        m_hover.facts = factsOf(m_hover.hit);
    updateActions();
    viewport()->update();
}

void TimelineView::announceFocus()
{
    if (!QAccessible::isActive())
        return;
    if (QAccessibleInterface *timeline = QAccessible::queryAccessibleInterface(this)) {
        if (QAccessibleInterface *item = timeline->focusChild(); item && !item->object()) {
            QAccessibleEvent event(item, QAccessible::Focus);
            QAccessible::updateAccessibility(&event);
        }
    }
}

QString TimelineView::focusText() const
{
    if (!m_scene || !m_focus.valid())
        return {};
    const DeviceLane &lane = shown()->lanes[static_cast<std::size_t>(m_focus.lane)];
    const auto block = static_cast<std::size_t>(std::max(m_focus.block, 0));
    const QString device =
        QString::fromStdString(deviceWord(shown()->cluster)) + QStringLiteral(" %1").arg(m_focus.lane);
    switch (m_focus.part) {
    case LanePart::Bracket:
        return tr("warm-up of stage %1 on %2, %3 in flight")
            .arg(lane.warmUp.stage.index)
            .arg(device)
            .arg(lane.warmUp.count);
    case LanePart::Block:
        return block < lane.blocks.size() ? QString::fromStdString(sentenceOf(*shown(), lane, block))
                                          : QString();
    case LanePart::Span:
    case LanePart::Communication:
        return m_focus.span >= 0
            ? QString::fromStdString(sentenceOf(*shown(), static_cast<std::size_t>(m_focus.span)))
            : QString();
    case LanePart::Idle: {
        const std::int64_t begin = lane.endBefore(block);
        const std::int64_t end =
            block < lane.blocks.size() ? lane.blocks[block].begin : shown()->timeline->step.count();
        return tr("idle on %1, %2").arg(device, QString::fromStdString(formatNanoseconds(end - begin)));
    }
    }
    return {};
}

QString TimelineView::laneText(std::int32_t lane) const
{
    const std::int32_t at = rowOfDevice(m_rows, DeviceId{lane});
    if (!m_scene || at < 0)
        return {};
    const TimelineRow &row = m_rows[static_cast<std::size_t>(at)];
    const Timeline &timeline = *shown()->timeline;
    const auto device = static_cast<std::size_t>(lane);
    QStringList parts{QString::fromStdString(row.title)};
    if (row.devices.size() > 1)
        parts << tr("%1 symmetric devices").arg(row.devices.size());
    if (shown()->lanes[device].stage >= 0 && shown()->plan->stageCount > 1)
        parts << tr("stage %1").arg(shown()->lanes[device].stage);
    if (device < timeline.busy.size() && timeline.step.count() > 0) {
        parts << tr("busy %1%")
                     .arg(100.0 * static_cast<double>(timeline.busy[device].count())
                             / static_cast<double>(timeline.step.count()),
                         0, 'f', 0);
    }
    if (device < timeline.memory.size())
        parts << tr("memory peak %1").arg(QString::fromStdString(formatBytes(timeline.memory[device].peak)));
    return parts.join(QStringLiteral(", "));
}

QRect TimelineView::laneRect(std::int32_t lane) const
{
    const std::int32_t at = rowOfDevice(m_rows, DeviceId{lane});
    if (!m_scene || at < 0)
        return {};
    const TimelinePicture shownPicture = picture();
    const TimelineRow &row = m_rows[static_cast<std::size_t>(at)];
    const QRect area = shownPicture.canvas().adjusted(-m_metrics.header, 0, 0, 0);
    return QRect(0, shownPicture.top(row, row.y), viewport()->width(), row.height) & area;
}

QRect TimelineView::focusRect() const
{
    if (!m_scene || !m_focus.valid())
        return {};
    switch (m_focus.part) {
    case LanePart::Block:
        return rectOfBlock(m_focus.lane, static_cast<std::size_t>(std::max(m_focus.block, 0)))
            .value_or(QRect());
    case LanePart::Span:
    case LanePart::Communication:
        return m_focus.span >= 0 ? rectOf(static_cast<std::size_t>(m_focus.span)).value_or(QRect()) : QRect();
    case LanePart::Bracket:
        return rectOfBracketEnd(m_focus.lane).value_or(QRect());
    case LanePart::Idle:
        break;
    }
    return laneRect(m_focus.lane);
}

} // namespace planloom
