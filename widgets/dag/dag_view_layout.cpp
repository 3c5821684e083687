// From a model to a picture in sight: outline, layout and decor made off the GUI thread, and the way from one
// picture to the next.

#include "engine/base/ids.h"
#include "widgets/dag/dag_view.h"

#include "engine/base/background_disposal.h"
#include "widgets/common/canvas_legend.h"
#include "widgets/dag/dag_find_bar.h"
#include "widgets/dag/dag_gesture_layer.h"

#include <QtConcurrent/QtConcurrentRun>

#include <algorithm>
#include <cmath>
#include <utility>

namespace planloom {

namespace {

constexpr std::size_t kMostInitialBoxes = 32;
constexpr double kLeastFirstScale = 0.45;
constexpr std::size_t kMostMorphBoxes = 600; ///< More than these change place at once.

} // namespace

/// The outline is made off the GUI thread; until it is there, what was shown stays.
void DagView::startOutline()
{
    m_outlineBusy = true;
    m_outlineWatcher.setFuture(QtConcurrent::run(
        [graph = m_graph, mode = m_mode] { return sharedInBackground(buildOutline(graph, mode)); }));
}

void DagView::takeOutline()
{
    const auto outline = m_outlineWatcher.result();
    if (!m_outlineBusy || outline->graph != m_graph || outline->mode != m_mode)
        return; // of a model that has gone
    m_outlineBusy = false;
    m_nextOutline = outline;
    if (!m_picture)
        m_outline = outline;
    m_history.clear();
    m_initialBoxes = kMostInitialBoxes;
    m_state = initialState(*outline, m_initialBoxes);
    m_fitNext = true;
    m_anchor.reset();
    m_revealUnit.reset();
    m_goTo.reset();
    chooseFlow();
    applyRestore();
    for (const auto &[path, offset] : m_nudges) {
        if (const std::int32_t item = findItem(*outline, path); item > 0)
            m_state.nudges[item] = {offset.x(), offset.y()};
    }
    requestLayout();
}

bool DagView::isSettled() const
{
    return !m_outlineBusy && !m_layout.isBusy() && !m_decorator.isBusy() && !m_searching && !m_choosing
        && !m_measureBusy && !m_morph.isActive();
}

void DagView::requestLayout()
{
    if (const auto &outline = m_nextOutline ? m_nextOutline : m_outline)
        m_layout.request(outline, m_state, m_flow);
}

void DagView::takePicture(const DagPictureSnapshot &picture)
{
    if (picture->outline != (m_nextOutline ? m_nextOutline : m_outline))
        return; // of a model that has gone
    if (m_initialBoxes > 0 && openLess(*picture))
        return;
    m_initialBoxes = 0;
    m_arrived = picture;
    requestDecor();
}

void DagView::requestDecor()
{
    DagDecorRequest request;
    request.picture = m_arrived ? m_arrived : m_picture;
    if (!request.picture)
        return;
    request.font = m_fontTable;
    request.facts = m_facts;
    request.scene = m_update ? m_update->scene : nullptr;
    request.colourBy = m_colourBy;
    request.palette = paletteFor(*this);
    request.last = m_decor;
    m_decorator.request(std::move(request));
}

void DagView::adopt(const DagDecorSnapshot &decor)
{
    if (decor->picture != m_arrived) { // other colours of what is in sight
        if (decor->picture != m_picture)
            return;
        m_decor = decor;
        m_overview = {};
        refreshMarks();
        m_gestures->selectionChanged();
        update();
        return;
    }
    clearMeasure(); // its boxes are numbered anew
    std::map<std::int32_t, QRectF> before;
    if (m_picture && !m_fitNext && !m_reducedMotion && m_picture->outline == decor->picture->outline
        && m_picture->visible.boxes.size() <= kMostMorphBoxes && isVisible()) {
        for (std::size_t box = 1; box < m_picture->visible.boxes.size(); ++box)
            before[m_picture->visible.boxes[box].item] = viewRect(static_cast<std::int32_t>(box));
    }
    const bool otherOutline = m_outline != decor->picture->outline || !m_picture;
    m_picture = std::exchange(m_arrived, nullptr);
    m_outline = m_picture->outline;
    m_nextOutline = nullptr;
    m_decor = decor;
    m_overview = {};
    if (otherOutline) {
        m_focusedItem = -1;
        m_matches.clear();
        m_match = -1;
    }
    m_focused = m_focusedItem >= 0 ? m_picture->visible.boxOfItem(m_focusedItem) : -1;
    m_hovered = -1;
    refreshMarks();
    if (m_goTo) {
        m_camera.scale = m_goTo->scale;
        m_camera.centreOn({m_goTo->centreX, m_goTo->centreY, 0, 0}, width(), height());
        m_goTo.reset();
        m_fitNext = m_fitted = false;
    } else if (m_fitNext) {
        m_fitNext = false;
        fitAll();
    } else {
        applyAnchor();
    }
    if (m_revealUnit) {
        m_camera.scale = std::max(m_camera.scale, 0.7);
        const std::int32_t box = m_picture->visible.boxOfUnit[at(*m_revealUnit)];
        m_camera.centreOn(m_picture->scene.rects[at(box)], width(), height());
        setFocused(box, false);
        m_revealUnit.reset();
        m_fitted = false;
    }
    if (!before.empty())
        startMorph(before);
    cameraMoved();
    m_gestures->pictureChanged();
    describeForScreenReader();
    if (otherOutline && m_findBar->isVisible() && !m_findBar->text().isEmpty())
        search(m_findBar->text());
    Q_EMIT pictureChanged();
}

/// Boxes go from where they were to where they are; those that are new come out of what they lie in.
void DagView::startMorph(const std::map<std::int32_t, QRectF> &before)
{
    const auto &boxes = m_picture->visible.boxes;
    if (boxes.size() > kMostMorphBoxes)
        return;
    m_morphFrom.assign(boxes.size(), SceneRect{});
    double farthest = 0;
    for (std::size_t box = 0; box < boxes.size(); ++box) {
        const auto &to = m_picture->scene.rects[box];
        m_morphFrom[box] = to;
        std::int32_t from = static_cast<std::int32_t>(box);
        while (from > 0 && !before.contains(boxes[at(from)].item))
            from = boxes[at(from)].parent;
        if (from <= 0)
            continue;
        const QRectF old = before.at(boxes[at(from)].item);
        SceneRect rect{m_camera.sceneX(old.x()), m_camera.sceneY(old.y()), old.width() / m_camera.scale,
            old.height() / m_camera.scale};
        if (from != static_cast<std::int32_t>(box)) // out of the middle of what it lies in
            rect = {rect.x + rect.width / 2 - to.width / 2, rect.y + rect.height / 2 - to.height / 2,
                to.width, to.height};
        m_morphFrom[box] = rect;
        farthest = std::max(
            {farthest, std::abs(rect.x - to.x), std::abs(rect.y - to.y), std::abs(rect.width - to.width)});
    }
    if (farthest * m_camera.scale < 1)
        return;
    m_morphScene = m_picture->scene;
    m_morphScene.paths.clear();
    m_morphScene.stubs.clear();
    m_morphTime.start();
    m_morph.start();
}

void DagView::setReducedMotion(bool reduced)
{
    m_reducedMotion = reduced;
    if (reduced)
        m_morph.stop();
    update();
}

/// The first picture of a model opens only so many groups that their names can be read.
bool DagView::openLess(const DagPicture &picture)
{
    DagCamera camera;
    camera.fit(picture.scene.bounds, width(), heightAboveLegend(*this), kFitMargin, kMostFitScale);
    while (camera.scale < kLeastFirstScale && m_initialBoxes > 1) {
        m_initialBoxes /= 2;
        auto state = initialState(*picture.outline, m_initialBoxes);
        state.nudges = m_state.nudges;
        if (state == m_state)
            continue;
        m_state = std::move(state);
        requestLayout();
        return true;
    }
    return false;
}

void DagView::applyAnchor()
{
    if (!m_anchor)
        return;
    // The item itself, or the nearest of what it lies in: it may have been closed from outside.
    std::int32_t item = m_anchor->item;
    std::int32_t box = m_picture->visible.boxOfItem(item);
    while (box < 0 && item > 0) {
        item = m_outline->at(item).parent;
        box = m_picture->visible.boxOfItem(item);
    }
    if (box >= 0) {
        const auto &rect = m_picture->scene.rects[at(box)];
        const double down = std::min(m_anchor->down, rect.height - 1);
        m_camera.x = m_anchor->view.x() - (rect.x + m_anchor->shareX * rect.width) * m_camera.scale;
        m_camera.y = m_anchor->view.y() - (rect.y + down) * m_camera.scale;
    }
    m_anchor.reset();
}

DagView::Anchor DagView::anchorFor(std::int32_t item, std::optional<QPointF> point) const
{
    Anchor anchor;
    anchor.item = item;
    const std::int32_t box = m_picture ? m_picture->visible.boxOfItem(item) : -1;
    if (box < 0)
        return anchor;
    const auto &rect = m_picture->scene.rects[at(box)];
    if (point && viewRect(box).contains(*point)) {
        anchor.view = *point;
        anchor.shareX = (m_camera.sceneX(point->x()) - rect.x) / std::max(1.0, rect.width);
        // Within what a closed group and the title of an open one have in common.
        anchor.down = std::min(m_camera.sceneY(point->y()) - rect.y, DagMetrics::kFrameHeader);
        return anchor;
    }
    // The top's middle, or as much of it as is in sight.
    const QRectF shown = viewRect(box).intersected(QRectF(QWidget::rect()));
    const double x = shown.isEmpty() ? viewRect(box).center().x() : shown.center().x();
    anchor.shareX = (m_camera.sceneX(x) - rect.x) / std::max(1.0, rect.width);
    anchor.down = 0;
    anchor.view = {x, m_camera.viewY(rect.y)};
    return anchor;
}

} // namespace planloom
