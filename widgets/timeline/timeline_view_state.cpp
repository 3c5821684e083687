#include "widgets/timeline/timeline_view.h"

#include <QtCore/QJsonArray>
#include <QtCore/QJsonDocument>
#include <QtCore/QJsonObject>
#include <QtWidgets/QScrollBar>

namespace planloom {

namespace {

template<typename Numbers> QJsonArray arrayOf(const Numbers &numbers)
{
    QJsonArray array;
    for (const std::int32_t number : numbers)
        array.append(number);
    return array;
}

std::set<std::int32_t> setOf(const QJsonArray &array)
{
    std::set<std::int32_t> numbers;
    for (const auto &value : array)
        numbers.insert(value.toInt(-1));
    return numbers;
}

} // namespace

std::string TimelineView::viewState() const
{
    if (!m_scene && !m_pendingState.empty())
        return m_pendingState;
    QJsonObject state;
    state[QLatin1String("fitted")] = m_fitted;
    state[QLatin1String("origin")] = m_axis.origin;
    state[QLatin1String("scale")] = m_axis.nanosecondsPerPixel;
    state[QLatin1String("scroll")] = verticalScrollBar()->value();
    state[QLatin1String("colouring")] = static_cast<int>(m_colouring);
    state[QLatin1String("expanded")] = arrayOf(m_arrangement.expanded);
    state[QLatin1String("pinned")] = arrayOf(m_arrangement.pinned);
    state[QLatin1String("order")] = arrayOf(m_arrangement.order);
    QJsonArray collapsed;
    for (const std::string &group : m_arrangement.collapsed)
        collapsed.append(QString::fromStdString(group));
    state[QLatin1String("collapsed")] = collapsed;
    state[QLatin1String("grouping")] = static_cast<int>(m_arrangement.grouping);
    state[QLatin1String("filter")] = QString::fromStdString(m_arrangement.filter);
    state[QLatin1String("communication")] = m_arrangement.communication;
    state[QLatin1String("laneHeight")] = static_cast<int>(m_arrangement.laneHeight);
    state[QLatin1String("laneZoom")] = m_arrangement.zoom;
    state[QLatin1String("followers")] =
        QLatin1String(followersPolicy() == FollowersPolicy::KeepOrder ? "keep" : "close");
    return QJsonDocument(state).toJson(QJsonDocument::Compact).toStdString();
}

void TimelineView::restoreViewState(const std::string &text)
{
    const QJsonDocument document = QJsonDocument::fromJson(QByteArray::fromStdString(text));
    if (!document.isObject())
        return;
    if (!m_scene) {
        m_pendingState = text;
        return;
    }
    const QJsonObject state = document.object();
    m_arrangement.expanded = setOf(state[QLatin1String("expanded")].toArray());
    m_arrangement.pinned = setOf(state[QLatin1String("pinned")].toArray());
    m_arrangement.order.clear();
    for (const auto &value : state[QLatin1String("order")].toArray())
        m_arrangement.order.push_back(value.toInt(-1));
    m_arrangement.collapsed.clear();
    for (const auto &value : state[QLatin1String("collapsed")].toArray())
        m_arrangement.collapsed.insert(value.toString().toStdString());
    const int grouping = state[QLatin1String("grouping")].toInt(0);
    m_arrangement.grouping = grouping >= 0 && grouping <= static_cast<int>(LaneGrouping::None)
        ? static_cast<LaneGrouping>(grouping)
        : LaneGrouping::Automatic;
    m_arrangement.filter = state[QLatin1String("filter")].toString().toStdString();
    m_arrangement.communication = state[QLatin1String("communication")].toBool(true);
    const int laneHeight = state[QLatin1String("laneHeight")].toInt(0);
    m_arrangement.laneHeight = laneHeight >= 0 && laneHeight < kLaneHeightCount
        ? static_cast<LaneHeight>(laneHeight)
        : LaneHeight::Full;
    m_arrangement.zoom = state[QLatin1String("laneZoom")].toDouble(1);
    setFollowersPolicy(state[QLatin1String("followers")].toString() == QLatin1String("keep")
            ? FollowersPolicy::KeepOrder
            : FollowersPolicy::CloseGaps);
    syncActions();
    const int colouring = state[QLatin1String("colouring")].toInt(0);
    if (colouring >= 0 && colouring < kTimelineColouringCount)
        m_colouring = static_cast<TimelineColouring>(colouring);
    relayout();
    const double scale = state[QLatin1String("scale")].toDouble(0);
    if (state[QLatin1String("fitted")].toBool(true) || scale <= 0) {
        fitAll();
    } else {
        m_fitted = false;
        const TimeAxis axis{state[QLatin1String("origin")].toDouble(0), scale};
        // Within the limits of this step, which may be another one.
        moveAxis(zoomed(axis, 1, 0, extent(), canvasWidth()));
    }
    verticalScrollBar()->setValue(state[QLatin1String("scroll")].toInt(0));
}

} // namespace planloom
