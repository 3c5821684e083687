// Axes and devices dragged to the canvas from the Devices panel.

#include "widgets/dag/dag_gesture_layer.h"

#include "widgets/common/drag_types.h"
#include "widgets/dag/dag_view.h"

#include <algorithm>

namespace planloom {

bool DagGestureLayer::dragOver(const QMimeData &data, QPointF view)
{
    const bool axis = data.hasFormat(QLatin1String(kAxisMimeType));
    if (!m_gestures.context() || (!axis && !data.hasFormat(QLatin1String(kDeviceMimeType))))
        return false;
    if (m_drag != Drag::Foreign)
        cancel();
    m_drag = Drag::Foreign;
    m_last = view;
    // A chip may hang over its box's border; it keeps its box.
    const std::int32_t chip = chipAt(placedChips(), view.x(), view.y());
    const std::int32_t box = chip >= 0 ? m_chipBox : m_view.boxAt(view);
    if (box <= 0 || operatorsFor(box).empty()) {
        m_gestures.abandon();
        m_targetBox = -1;
        m_view.update();
        return true;
    }
    m_targetBox = box;
    if (axis && box != m_pinnedChips && chip < 0 && representative(box).valid()) {
        m_pinnedChips = box;
        refreshChips(box);
    }
    if (!axis) {
        const auto text = QString::fromUtf8(data.data(QLatin1String(kDeviceMimeType))).toStdString();
        const auto target = placeFromText(text, world());
        if (!target)
            return false;
        const auto operators = operatorsFor(box);
        if (m_gestures.kind() != DagGestures::Kind::Place || m_gestures.operators() != operators) {
            m_gestures.beginPlace(operators, onlyThese(operators));
        }
        m_gestures.aimAt(*target);
    } else if (representative(box).valid()) {
        // Beside the chips the first one that the axis divides is meant.
        const std::string name = axisIn(data);
        const auto &mesh = m_gestures.context()->mesh;
        const auto found =
            std::find_if(mesh.begin(), mesh.end(), [&](const MeshAxis &each) { return each.name == name; });
        const std::int32_t size = found == mesh.end() ? 0 : found->size;
        std::int32_t wanted = chip;
        for (std::size_t i = 0; wanted < 0 && i < m_chips.size(); ++i) {
            const auto &counts = m_chips[i].counts;
            if (!isLocked(m_chips[i]) && std::find(counts.begin(), counts.end(), size) != counts.end())
                wanted = static_cast<std::int32_t>(i);
        }
        if (wanted < 0) {
            m_gestures.abandon();
        } else if (m_gestures.kind() != DagGestures::Kind::Split || m_gestures.chip() != wanted
            || m_gestures.axis() != name || m_targetBox != m_box) {
            m_box = box;
            m_gestures.beginSplit(operatorsFor(box), representative(box), m_chips, wanted);
            m_gestures.setAxis(name);
        }
    } else {
        m_gestures.abandon();
    }
    m_view.update();
    return true;
}

void DagGestureLayer::dragLeft()
{
    m_gestures.abandon();
    endDrag();
}

bool DagGestureLayer::drop(const QMimeData &data, QPointF view)
{
    const bool taken = dragOver(data, view);
    const auto proposal = m_gestures.proposal();
    const bool written = taken && m_gestures.active() && m_gestures.commit();
    if (proposal && proposal->refusal)
        note(QString::fromStdString(proposal->refusal->message), view);
    m_gestures.abandon();
    endDrag();
    return written;
}

} // namespace planloom
