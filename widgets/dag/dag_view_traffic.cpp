// What is communicated on the lines, and the moment that is played.

#include "widgets/dag/dag_view.h"

#include "widgets/dag/dag_gesture_layer.h"

#include <QtGui/QPainter>

#include <algorithm>

namespace planloom {

void DagView::setCommunicationShown(bool shown)
{
    if (m_communicationShown == shown)
        return;
    m_communicationShown = shown;
    update();
}

const std::vector<TrafficBadge> &DagView::traffic() const
{
    static const std::vector<TrafficBadge> kNone;
    return m_decor ? m_decor->traffic : kNone;
}

QRectF DagView::trafficRect(std::size_t badge) const
{
    const auto found = std::find_if(
        m_painted.begin(), m_painted.end(), [badge](const auto &painted) { return painted.second == badge; });
    return found != m_painted.end() ? found->first : QRectF();
}

void DagView::markCommunication(OperatorId op, TensorId tensor)
{
    m_markedCommunication = {op, tensor};
    update();
}

std::optional<std::size_t> DagView::markedCommunication() const
{
    const auto [op, tensor] = m_markedCommunication;
    if (!m_decor || !m_decor->scene || !tensor.valid())
        return {};
    const auto &edges = m_decor->scene->communication;
    const EdgeCommunication *marked = findEdge(edges, op, tensor);
    if (!marked)
        return {};
    const auto edge = static_cast<std::uint32_t>(marked - edges.data());
    for (std::size_t i = 0; i < m_decor->traffic.size(); ++i) {
        const auto &own = m_decor->traffic[i].edges;
        if (std::binary_search(own.begin(), own.end(), edge))
            return i;
    }
    return {};
}

void DagView::setMoment(DagMoment moment)
{
    if (m_moment.empty() && moment.empty())
        return;
    m_moment = std::move(moment);
    update();
}

void DagView::paintTrafficAndMoment(QPainter &painter)
{
    const Palette &palette = paletteFor(*this);
    m_painted.clear();
    // During a gesture its own figures stand on the lines.
    if (m_communicationShown && !m_gestures->dragging())
        m_painted = paintTraffic(painter, *m_picture, m_camera, palette, traffic(), font(), size(),
            markedCommunication().value_or(traffic().size()));
    if (!m_moment.empty())
        paintMoment(painter, *m_picture, m_camera, palette, m_moment, font());
}

std::optional<std::size_t> DagView::trafficAt(QPointF view) const
{
    constexpr double kSlack = 2;
    for (const auto &[rect, badge] : m_painted) {
        if (rect.adjusted(-kSlack, -kSlack, kSlack, kSlack).contains(view))
            return badge;
    }
    return {};
}

bool DagView::clickTraffic(QPointF view)
{
    const auto badge = trafficAt(view);
    if (!badge || !m_decor->scene)
        return false;
    std::vector<EdgeCommunication> edges;
    for (const std::uint32_t edge : traffic()[*badge].edges)
        edges.push_back(m_decor->scene->communication[edge]);
    Q_EMIT communicationChosen(edges);
    markCommunication(edges.front().op, edges.front().tensor);
    return true;
}

} // namespace planloom
