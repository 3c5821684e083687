// What gestures show over the canvas.

#include "engine/base/ids.h"
#include "widgets/dag/dag_gesture_layer.h"

#include "widgets/dag/dag_ghost_painter.h"
#include "widgets/dag/dag_line_editors.h"
#include "widgets/dag/dag_view.h"

#include <QtGui/QPainter>

#include <algorithm>

namespace planloom {

namespace {

constexpr std::int32_t kMostSlices = 16;

} // namespace

void DagGestureLayer::paint(QPainter &painter)
{
    const Palette &palette = paletteFor(m_view);
    const auto placed = placedChips();
    if (!placed.empty())
        paintChips(painter,
            {.chips = m_chips,
                .placed = placed,
                .node = nodeRect(m_chipBox),
                .lit = m_drag == Drag::Foreign ? m_gestures.chip() : m_hoveredChip},
            m_view.font(), palette);
    if ((!busy() || m_drag == Drag::HandlePress) && m_drag != Drag::OrderPress && m_grip.arrow < 0) {
        std::int32_t last = -1;
        for (const auto box : {m_view.hoveredBox(), m_chipBox, m_handleBox}) {
            const QRectF place = handleRect(box);
            if (box != last && !place.isEmpty())
                planloom::paintHandle(painter, place, box == m_handleBox, palette);
            last = box;
        }
    }
    paintConversions(painter);
    paintGhost(painter);
    paintOrderEnds(painter);
    if (m_drag == Drag::Body)
        paintShelf(painter);
    paintTag(painter);
}

void DagGestureLayer::paintGhost(QPainter &painter)
{
    if (!m_gestures.active())
        return;
    const Palette &palette = paletteFor(m_view);
    const auto &proposal = m_gestures.proposal();
    const bool refused = proposal && proposal->refusal.has_value();
    const QColor mood = refused ? palette.error : m_gestures.isBlocked() ? palette.warning : palette.accent;
    const auto picture = m_view.picture();
    const auto ring = [&](std::int32_t box, const QColor &colour, Qt::PenStyle style) {
        painter.setRenderHint(QPainter::Antialiasing, true);
        painter.setBrush(Qt::NoBrush);
        painter.setPen(QPen(colour, 2.6, style));
        painter.drawRoundedRect(m_view.viewRect(box).adjusted(-3, -3, 3, 3), 6, 6);
    };
    if (proposal && picture) { // what closes the circle
        for (const auto op : proposal->cycle) {
            const std::int32_t unit = at(op.index) < picture->outline->unitOfOperator.size()
                ? picture->outline->unitOfOperator[at(op.index)]
                : -1;
            if (unit >= 0)
                ring(picture->visible.boxOfUnit[at(unit)], palette.error, Qt::SolidLine);
        }
    }
    switch (m_gestures.kind()) {
    case DagGestures::Kind::Split: {
        if (!proposal || m_chipBox < 0)
            break;
        const auto chip = m_gestures.chip();
        const bool dimension = m_gestures.splitKind() == SplitKind::Dimension && chip >= 0;
        std::int32_t parts = m_gestures.isPushed() ? 1 : m_gestures.parts();
        if (!m_gestures.isPushed() && !m_gestures.axis().empty()) {
            const auto context = m_gestures.context();
            for (const auto &axis : context ? context->mesh : std::vector<MeshAxis>{}) {
                if (axis.name == m_gestures.axis())
                    parts = axis.size;
            }
        }
        const std::int32_t shown = std::clamp(parts, 1, kMostSlices);
        std::vector<QString> texts;
        if (dimension) {
            for (const auto &range : sliceRanges(m_gestures.chips()[at(chip)].size, parts, shown))
                texts.push_back(
                    QStringLiteral("%1–%2").arg(range.begin).arg(std::max(range.begin, range.end - 1)));
        }
        for (std::int32_t i = static_cast<std::int32_t>(texts.size()); i < shown; ++i) {
            texts.push_back(m_gestures.splitKind() == SplitKind::Value
                    ? QStringLiteral("Σ %1/%2").arg(i + 1).arg(parts)
                    : QStringLiteral("= %1").arg(i + 1));
        }
        if (parts > shown)
            texts.back() = QStringLiteral("… %1").arg(parts);
        const GhostMetrics metrics(m_view.font());
        const bool below = chip < 0 || m_gestures.chips()[at(chip)].output;
        // Where a line editor stands below the node, slices are above it.
        SceneRect around = nodeRect(m_chipBox); // with the chips
        for (const PlacedChip &each : placedChips()) {
            const double bottom = std::max(around.bottom(), each.rect.bottom());
            around.y = std::min(around.y, each.rect.y);
            around.height = bottom - around.y;
        }
        paintSlices(painter,
            placeSlices(around, shown, below && m_editor == nullptr, metrics.cellWidth, metrics.cellHeight,
                m_view.width(), m_view.height()),
            texts, refused, m_view.font(), palette);
        break;
    }
    case DagGestures::Kind::Place:
        if (m_drag == Drag::Body) {
            // The body under the pointer, and how many it stands for.
            const QRectF node = m_view.viewRect(m_box);
            const QSizeF size(std::clamp(node.width(), 60.0, 220.0), std::clamp(node.height(), 22.0, 60.0));
            const QRectF ghost(m_last - QPointF(size.width() / 2, size.height() + 6), size);
            paintSlices(painter, {{ghost.x(), ghost.y(), ghost.width(), ghost.height()}},
                {tr("%n operator(s)", nullptr, static_cast<int>(m_gestures.operators().size()))}, refused,
                m_view.font(), palette);
        } else if (m_targetBox > 0) {
            ring(m_targetBox, mood, Qt::DashLine);
        }
        break;
    case DagGestures::Kind::Order: {
        if (m_targetBox > 0)
            ring(m_targetBox, mood, refused ? Qt::DashLine : Qt::SolidLine);
        const std::int32_t from = m_box > 0 ? m_box : m_chipBox > 0 ? m_chipBox : m_view.focusedBox();
        const QRectF start = handleRect(from);
        if (m_drag == Drag::Handle)
            paintOrderGhost(painter, start.center(), m_last, refused, palette);
        else if (m_targetBox > 0 && !start.isEmpty())
            paintOrderGhost(painter, start.center(), m_view.viewRect(m_targetBox).center(), refused, palette);
        break;
    }
    case DagGestures::Kind::Retarget:
        if (m_targetBox > 0)
            ring(m_targetBox, mood, refused ? Qt::DashLine : Qt::SolidLine);
        break;
    case DagGestures::Kind::Stage:
    case DagGestures::Kind::None:
        break;
    }
}

void DagGestureLayer::paintShelf(QPainter &painter)
{
    const auto preview = m_gestures.host() != nullptr ? m_gestures.host()->currentPreview() : nullptr;
    const auto context = m_gestures.context();
    // As the device would be, as far as it is known; else as it is.
    const TimelineSummary *would = preview && preview->feasible() ? &preview->update->summary : nullptr;
    const TimelineSummary *is = preview && preview->baseline && preview->baseline->scene
        ? &preview->baseline->summary
        : m_view.summary();
    const std::int32_t lit = m_shelf.tileAt(m_last.x(), m_last.y());
    std::vector<ShelfLoad> loads;
    for (const auto &tile : m_tiles)
        loads.push_back(
            context ? loadOf(tile, would != nullptr ? would : is, context->cluster) : ShelfLoad{});
    const auto &proposal = m_gestures.proposal();
    planloom::paintShelf(painter,
        {.tiles = m_tiles,
            .counts = m_tileCounts,
            .loads = loads,
            .layout = m_shelf,
            .lit = lit,
            .refused = proposal && proposal->refusal.has_value()},
        m_view.font(), paletteFor(m_view));
}

QString DagGestureLayer::lockReason(const DimensionChip &chip)
{
    return chip.locked.empty() ? tr("%1 may not be split").arg(QString::fromStdString(chip.label))
                               : QString::fromStdString(chip.locked);
}

void DagGestureLayer::paintTag(QPainter &painter)
{
    QString text;
    TagMark mark = TagMark::None;
    QPointF place = m_last;
    if (m_gestures.active() && m_gestures.proposal()) {
        const auto &proposal = *m_gestures.proposal();
        text = m_gestures.tag(tagKey());
        mark = proposal.refusal                                    ? TagMark::Refused
            : !proposal.yielding.empty() || m_gestures.isBlocked() ? TagMark::Yielding
                                                                   : TagMark::Legal;
        if (m_editor != nullptr)
            place = QPointF(m_editor->geometry().bottomLeft()) + QPointF(-10, -8);
    } else if (!m_note.isEmpty()) {
        text = m_note;
        mark = TagMark::Refused;
        place = m_notePlace;
    } else if (m_drag == Drag::Handle) {
        text = tr("before …");
    } else if (m_drag == Drag::OrderEnd) {
        text =
            m_grip.end == OrderEnd::First ? tr("which operator runs first?") : tr("before which operator?");
    } else if (m_drag == Drag::Body) {
        text =
            tr("%n operator(s): drop on a device", nullptr, static_cast<int>(m_gestures.operators().size()));
    } else if (m_drag == Drag::None && m_editor == nullptr && m_hoveredChip >= 0
        && at(m_hoveredChip) < m_chips.size()) {
        const auto &chip = m_chips[at(m_hoveredChip)];
        if (isLocked(chip)) {
            text = lockReason(chip);
            mark = TagMark::Refused;
        } else {
            QStringList counts;
            for (std::size_t i = 0; i < std::min<std::size_t>(chip.counts.size(), 8); ++i)
                counts.append(QString::number(chip.counts[i]));
            if (chip.counts.size() > 8)
                counts.append(QStringLiteral("…"));
            const QString label =
                QString::fromStdString(chip.meaning.empty() ? chip.label : chip.label + " " + chip.meaning);
            text = tr("%1: %2. Pull to split by %3")
                       .arg(label)
                       .arg(chip.size)
                       .arg(counts.join(QStringLiteral(", ")));
        }
    }
    m_tagRect = {};
    QSizeF room(m_view.size());
    if (m_drag == Drag::Body && m_shelf.band.y > 60)
        room.setHeight(m_shelf.band.y - 4); // above the shelf, whose bars it would hide
    if (!text.isEmpty())
        m_tagRect = planloom::paintTag(painter, text, mark, place, room, m_view.font(), paletteFor(m_view));
}

} // namespace planloom
