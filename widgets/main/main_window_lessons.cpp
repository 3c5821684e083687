// Lessons: the commands that begin them.

#include "widgets/main/main_window.h"

#include <QtWidgets/QFileDialog>
#include <QtWidgets/QMenu>

#include "widgets/common/qt_text.h"
#include "widgets/main/command_registry.h"
#include "widgets/main/lesson_window.h"
#include "widgets/main/start_page.h"

namespace planloom {

LessonWindow *MainWindow::lessons() const
{
    return findChild<LessonWindow *>(QString(), Qt::FindDirectChildrenOnly);
}

void MainWindow::buildLessonCommands(QMenu *menu)
{
    auto *lessons = new LessonWindow(this, m_services.settings, m_services.sessionFolder);
    QMenu *list = menu->addMenu(tr("&Lessons"));
    int number = 0;
    for (const Lesson &lesson : bundledLessons()) {
        const auto open = [lessons, shared = std::make_shared<const Lesson>(lesson)] { lessons->open(shared); };
        QAction *action = m_commands->add(("lesson." + lesson.name).c_str(),
            tr("%1. %2").arg(++number).arg(toQString(lesson.title)), {}, nullptr, lessons, open);
        action->setToolTip(toQString(lesson.idea));
        list->addAction(action);
        connect(m_start, &StartPage::lessonChosen, action, [action](const QString &id) {
            if (id == action->objectName())
                action->trigger();
        });
    }
    list->addSeparator();
    list->addAction(
        m_commands->add("lesson.open", tr("&Open Lesson…"), {}, "open", lessons, [this, lessons] {
            const QString folder = QFileDialog::getExistingDirectory(this, tr("Open the folder of a lesson"));
            if (!folder.isEmpty())
                lessons->openFolder(folder);
        }));
    QAction *leave = m_commands->add(
        "lesson.leave", tr("Lea&ve the Lesson"), {}, "close", lessons, [lessons] { lessons->guide()->leave(); });
    m_commands->enableWhile(leave, [lessons] { return lessons->guide()->isOn(); });
    connect(lessons->guide(), &LessonGuide::changed, this, [this, lessons] {
        refreshCommands();
        m_start->refreshLessons();
        refreshTitle();
    });
    list->addAction(leave);
    m_start->showLessons(m_services.settings);
}

} // namespace planloom
