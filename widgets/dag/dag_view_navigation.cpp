// Finding one's way on the canvas: back and forward, bookmarks, the view's state, what belongs together.

#include "engine/base/ids.h"
#include "widgets/dag/dag_view.h"

#include "widgets/dag/dag_gesture_layer.h"
#include "widgets/dag/dag_still.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace planloom {

namespace {

constexpr int kBookmarks = 9;
constexpr double kEdgeReach = 5; ///< Pixels from an edge that still hit it.

double distanceTo(QPointF point, QPointF from, QPointF to)
{
    const QPointF along = to - from;
    const double length = QPointF::dotProduct(along, along);
    const double share =
        length > 0 ? std::clamp(QPointF::dotProduct(point - from, along) / length, 0.0, 1.0) : 0;
    const QPointF off = point - from - along * share;
    return std::sqrt(QPointF::dotProduct(off, off));
}

} // namespace

DagPlace DagView::placeNow() const
{
    DagPlace place;
    place.state = m_state;
    place.centreX = m_camera.sceneX(width() / 2.0);
    place.centreY = m_camera.sceneY(height() / 2.0);
    place.scale = m_camera.scale;
    return place;
}

/// Called before going somewhere else.
void DagView::remember()
{
    if (m_picture && !changing())
        m_history.leave(placeNow());
}

void DagView::goTo(const DagPlace &place)
{
    m_fitted = false;
    const bool same = place.state == m_state && m_picture && m_picture->state == m_state;
    m_state = place.state;
    if (same) {
        m_camera.scale = place.scale;
        m_camera.centreOn({place.centreX, place.centreY, 0, 0}, width(), height());
        cameraMoved();
        return;
    }
    m_goTo = place;
    m_anchor.reset();
    m_revealUnit.reset();
    requestLayout();
}

void DagView::goBack()
{
    if (!m_picture || changing())
        return;
    if (const auto place = m_history.back(placeNow()))
        goTo(*place);
}

void DagView::goForward()
{
    if (!m_picture || changing())
        return;
    if (const auto place = m_history.forward(placeNow()))
        goTo(*place);
}

QString DagView::cameraState() const
{
    if (!m_picture || changing())
        return m_restore;
    DagViewState state;
    state.mode = m_mode;
    state.flow = m_wantedFlow ? static_cast<int>(*m_wantedFlow) : -1;
    state.place = placeNow();
    return writeViewState(*m_outline, state);
}

void DagView::restoreCamera(const QString &state)
{
    const auto mode = modeOfViewState(state);
    if (!mode)
        return;
    m_restore = state;
    if (!m_graph)
        return; // once there is one
    if (*mode != m_mode) {
        setMode(*mode); // its outline asks for what waits
        return;
    }
    if (changing())
        return;
    applyRestore();
    if (m_goTo)
        requestLayout();
}

/// Takes over a state that waited for its outline.
void DagView::applyRestore()
{
    const auto &outline = m_nextOutline ? m_nextOutline : m_outline;
    if (m_restore.isEmpty() || !outline)
        return;
    if (const auto mode = modeOfViewState(m_restore); mode && *mode != m_mode) {
        m_mode = *mode;
        m_nextOutline = nullptr;
        startOutline();
        Q_EMIT modeChanged(m_mode);
        return;
    }
    const auto state = readViewState(*outline, std::exchange(m_restore, {}));
    if (!state)
        return;
    m_wantedFlow =
        state->flow < 0 ? std::optional<DagFlow>{} : std::optional(static_cast<DagFlow>(state->flow));
    chooseFlow();
    m_state = state->place.state;
    m_goTo = state->place;
    m_initialBoxes = 0;
    m_fitNext = m_fitted = false;
}

void DagView::setBookmarks(const QStringList &bookmarks)
{
    m_bookmarks = bookmarks.mid(0, kBookmarks);
}

void DagView::setBookmark()
{
    if (!m_picture || changing())
        return;
    qsizetype place = m_bookmarks.indexOf(QString());
    if (place < 0 && m_bookmarks.size() < kBookmarks) {
        place = m_bookmarks.size();
        m_bookmarks.append(QString());
    }
    if (place < 0) { // the oldest makes room
        m_bookmarks.removeFirst();
        m_bookmarks.append(QString());
        place = kBookmarks - 1;
    }
    m_bookmarks[place] = cameraState();
    Q_EMIT noted(tr("Bookmark %1: Alt+%1 comes back here.").arg(place + 1));
    Q_EMIT bookmarksChanged(m_bookmarks);
}

void DagView::goToBookmark(int number)
{
    if (number < 1 || number > m_bookmarks.size() || m_bookmarks[number - 1].isEmpty()) {
        Q_EMIT noted(tr("There is no bookmark %1 yet. Ctrl+M makes one.").arg(number));
        return;
    }
    remember();
    restoreCamera(m_bookmarks[number - 1]);
}

void DagView::showBreadcrumb(int index)
{
    if (!m_picture || index < 0 || at(index) >= m_breadcrumbItems.size())
        return;
    const std::int32_t box = m_picture->visible.boxOfItem(m_breadcrumbItems[at(index)]);
    if (box < 0)
        return;
    remember();
    m_camera.fit(m_picture->scene.rects[at(box)], width(), height(), kFitMargin, kMostFitScale);
    m_fitted = false;
    cameraMoved();
}

void DagView::toggleFlow()
{
    setFlow(m_flow == DagFlow::Down ? DagFlow::Right : DagFlow::Down);
}

/// A click on an edge goes to its farther end.
bool DagView::jumpAlongEdge(QPointF view)
{
    const double reach = kEdgeReach / m_camera.scale;
    const SceneRect around{
        m_camera.sceneX(view.x()) - reach, m_camera.sceneY(view.y()) - reach, 2 * reach, 2 * reach};
    const auto &scene = m_picture->scene;
    const ScenePath *nearest = nullptr;
    double best = kEdgeReach;
    for (const auto &path : scene.paths) {
        if (!path.bounds.intersects(around))
            continue;
        for (std::uint32_t i = path.begin; i + 1 < path.end; ++i) {
            const auto mapped = [this, &scene](std::uint32_t point) {
                return QPointF(m_camera.viewX(scene.points[point].x), m_camera.viewY(scene.points[point].y));
            };
            const double distance = distanceTo(view, mapped(i), mapped(i + 1));
            if (distance < best) {
                best = distance;
                nearest = &path;
            }
        }
    }
    if (nearest == nullptr)
        return false;
    const auto &visible = m_picture->visible;
    const auto farness = [&](std::int32_t box) {
        const QPointF off = viewRect(box).center() - view;
        return QPointF::dotProduct(off, off);
    };
    // Its ends: where the data is made, and the nodes that use it on this way.
    std::int32_t target = -1;
    for (const auto &edge : visible.edges) {
        if (edge.from != nearest->source)
            continue;
        bool onTheWay = nearest->target < 0; // it leaves its frame
        for (std::int32_t box = edge.to; box > 0 && !onTheWay; box = visible.at(box).parent)
            onTheWay = box == nearest->target;
        if (onTheWay && (target < 0 || farness(edge.to) < farness(target)))
            target = edge.to;
    }
    const std::int32_t end =
        target >= 0 && farness(target) > farness(nearest->source) ? target : nearest->source;
    remember();
    setFocused(end, true);
    selectBox(end, Qt::NoModifier);
    return true;
}

void DagView::setNudges(const std::map<std::string, QPointF> &nudges)
{
    m_nudges = nudges;
    if (!m_outline || changing())
        return;
    m_state.nudges.clear();
    for (const auto &[path, offset] : m_nudges) {
        if (const std::int32_t item = findItem(*m_outline, path); item > 0)
            m_state.nudges[item] = {offset.x(), offset.y()};
    }
    requestLayout();
}

void DagView::nudgeBy(std::int32_t item, double dx, double dy)
{
    if (changing() || item <= 0 || m_outline->at(item).kind == OutlineItem::Kind::Operator)
        return;
    auto &offset = m_state.nudges[item];
    offset.first += dx;
    offset.second += dy;
    const std::string path = pathOfItem(*m_outline, item);
    m_nudges[path] = {offset.first, offset.second};
    m_fitted = false;
    requestLayout();
    Q_EMIT nudged(QString::fromStdString(path), offset.first, offset.second);
}

void DagView::relayoutHere()
{
    if (!m_picture || changing())
        return;
    const std::int32_t item = m_focusedItem > 0 ? m_focusedItem : 0;
    const auto &around = m_outline->at(item);
    bool any = false;
    for (auto each = m_state.nudges.begin(); each != m_state.nudges.end();) {
        const auto &moved = m_outline->at(each->first);
        const bool inside = item == 0 || (moved.begin >= around.begin && moved.end <= around.end);
        if (!inside) {
            ++each;
            continue;
        }
        const std::string path = pathOfItem(*m_outline, each->first);
        m_nudges.erase(path);
        each = m_state.nudges.erase(each);
        any = true;
        Q_EMIT nudged(QString::fromStdString(path), 0, 0);
    }
    if (any)
        requestLayout();
}

QSizeF DagView::wholeSize() const
{
    if (!m_picture)
        return {1, 1};
    const auto &bounds = m_picture->scene.bounds;
    return {bounds.width + 2 * kFitMargin, bounds.height + 2 * kFitMargin};
}

std::shared_ptr<const DagStill> DagView::still(DagExtent extent, const Palette &palette) const
{
    DagStillParts parts;
    parts.palette = palette;
    if (!m_picture)
        return std::make_shared<const DagStill>(std::move(parts));
    parts.picture = m_picture;
    parts.labels = {m_decor, &m_decor->labels};
    parts.orders = {m_decor, &m_decor->orders};
    if (m_communicationShown)
        parts.traffic = {m_decor, &m_decor->traffic};
    parts.facts = m_facts;
    parts.colourBy = m_colourBy;
    parts.font = font();
    parts.camera = m_camera;
    parts.size = size();
    if (extent == DagExtent::InSight) {
        parts.marks = m_marks;
        return std::make_shared<const DagStill>(std::move(parts));
    }
    // In full detail whatever the size: what is too small to read can be enlarged.
    const auto around =
        extent == DagExtent::WholeModel ? std::optional(m_picture->scene.bounds) : selectionBounds();
    parts.size = around ? QSizeF(around->width + 2 * kFitMargin, around->height + 2 * kFitMargin) : QSizeF();
    if (around) {
        parts.camera.scale = 1;
        parts.camera.centreOn(*around, parts.size.width(), parts.size.height());
    }
    return std::make_shared<const DagStill>(std::move(parts));
}

void DagView::render(QPainter &painter, const QRectF &target, bool wholeModel, const Palette &palette)
{
    still(wholeModel ? DagExtent::WholeModel : DagExtent::InSight, palette)->paint(painter, target);
}

} // namespace planloom
