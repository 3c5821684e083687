#include "widgets/lesson/lesson_moves.h"

#include "engine/lesson/player.h"
#include "widgets/common/qt_text.h"
#include "widgets/design/workspace.h"

#include <QtCore/QCoreApplication>

namespace planloom {

namespace {

QString wordsOf(const LessonDeed &deed)
{
    const char *form = "";
    switch (deed.kind) {
    case DeedKind::Say:
        break;
    case DeedKind::Row:
        form = QT_TRANSLATE_NOOP("LessonMove", "lesson: add %1");
        break;
    case DeedKind::Remove:
        form = QT_TRANSLATE_NOOP("LessonMove", "lesson: remove %1");
        break;
    case DeedKind::Replace:
        form = QT_TRANSLATE_NOOP("LessonMove", "lesson: replace %1");
        break;
    case DeedKind::Gallery:
        form = QT_TRANSLATE_NOOP("LessonMove", "lesson: %1");
        break;
    case DeedKind::Devices:
    case DeedKind::Cluster:
    case DeedKind::Search:
        form = QT_TRANSLATE_NOOP("LessonMove", "lesson: devices");
        break;
    }
    return QCoreApplication::translate("LessonMove", form).arg(toQString(deed.what));
}

} // namespace

std::vector<LessonMove> movesOf(const std::vector<LessonDeed> &solution)
{
    std::vector<LessonMove> moves;
    LessonMove next;
    for (const LessonDeed &deed : solution) {
        if (deed.kind == DeedKind::Say) {
            next.said.push_back(&deed);
            continue;
        }
        next.deed = &deed;
        moves.push_back(std::exchange(next, {}));
    }
    if (!next.said.empty())
        moves.push_back(std::move(next));
    return moves;
}

Result<void> carryOut(const LessonMove &move, Workspace &workspace)
{
    if (!move.deed)
        return {};
    const LessonDeed &deed = *move.deed;
    switch (deed.kind) {
    case DeedKind::Gallery:
        workspace.applyGallery(deed.what);
        return {};
    case DeedKind::Devices:
        workspace.setDeviceCount(deed.devices);
        return {};
    case DeedKind::Cluster:
        workspace.setCluster(deed.what);
        return {};
    case DeedKind::Search:
        workspace.searchBest();
        return {};
    default:
        break;
    }
    TRY(const TableEdit edit, editOf(workspace.table(), deed));
    workspace.editTable(wordsOf(deed), edit);
    return {};
}

} // namespace planloom
