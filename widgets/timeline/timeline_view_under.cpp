// The list of everything under the pointer: Alt+click, a long press, or its key.

#include "widgets/timeline/timeline_view.h"

#include <QtWidgets/QMenu>

#include "widgets/timeline/timeline_under.h"

#include <chrono>
#include <cmath>

namespace planloom {

void TimelineView::listUnder(QPoint position)
{
    const auto content = contentAt(position);
    const auto things =
        content ? thingsUnder(canvas(), content->first, content->second) : std::vector<ThingUnder>{};
    if (things.empty())
        return;
    leave(); // no tooltip over the list
    auto *menu = new QMenu(this);
    menu->setObjectName(QStringLiteral("timeline.under"));
    menu->setAccessibleName(tr("What is here"));
    menu->setAttribute(Qt::WA_DeleteOnClose);
    for (const ThingUnder &thing : things) {
        QAction *entry = menu->addAction(
            QString::fromStdString(thing.words).replace(QLatin1Char('&'), QStringLiteral("&&")));
        connect(entry, &QAction::triggered, this, [this, thing, of = shown()] {
            if (of != shown())
                return; // a new plan came meanwhile: what was listed is no more
            setFocus(Qt::OtherFocusReason);
            if (thing.kind == ThingUnder::Kind::Memory)
                showTime(Nanoseconds{std::llround(thing.time)});
            const bool whole = thing.kind == ThingUnder::Kind::Memory || thing.kind == ThingUnder::Kind::Lane;
            focusOn(whole ? TimelineFocus{thing.focus.lane, LanePart::Block, 0, -1} : thing.focus, !whole);
            if (thing.kind == ThingUnder::Kind::Idle) {
                m_idleTime = thing.time;
                explainIdle();
            }
        });
    }
    menu->popup(viewport()->mapToGlobal(position));
}

void TimelineView::listFocus()
{
    const QRect rect = focusRect();
    if (m_scene && m_focus.valid() && !rect.isEmpty())
        listUnder(rect.center());
}

} // namespace planloom
