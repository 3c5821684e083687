#pragma once

#include <QtCore/QObject>

#include "widgets/lesson/lesson_guide.h"

#include <memory>

namespace planloom {

class MainWindow;
class Settings;

/// How far somebody is in a lesson, as it is kept in the settings; nothing where it was never begun.
std::optional<LessonMark> lessonMark(const Settings &settings, const QString &lesson);

/// Lessons in one window: where their pane stands, what they show of canvases and docks, and where the places
/// are that they point at. A child of the window.
class LessonWindow : public QObject, public LessonStage
{
    Q_OBJECT
public:
    /// @param folder  where sessions without a name are kept; those of lessons lie in a folder of it. Empty
    /// keeps them in memory.
    LessonWindow(MainWindow *window, std::shared_ptr<Settings> settings, const QString &folder);
    ~LessonWindow() override;

    LessonGuide *guide() const { return m_guide; }
    /// Goes on where somebody left a lesson, or begins it: here if there is no design in the window but a
    /// lesson's, else in a window of its own. @param cluster  to work through it on; empty for its own: then
    /// it begins anew
    void open(const LessonSnapshot &lesson, const std::string &cluster = {});
    /// Reads a lesson of somebody's own. What is wrong with it is said across the window.
    void openFolder(const QString &folder, const std::string &cluster = {});
    /// Where sessions of lessons are kept; empty for none.
    QString folder() const;

    /// Of a colouring as lessons call it: "micro-batch".
    static QString commandOfColour(const std::string &colour);

    void enter(QWidget *pane) override;
    void arrange() override;
    void leave(QWidget *pane) override;
    void show(const LessonShow &show) override;
    std::optional<QRect> placeOf(const LessonPoint &point) const override;
    void reveal(const LessonPoint &point) override;
    void openTerm(const QString &term) override;
    std::optional<LessonRun> lastRun() const override;
    void remember(const QString &lesson, const LessonMark &mark) override;

private:
    void begin(const LessonSnapshot &lesson, const std::string &cluster, int step);
    std::optional<QRect> placeOfOperator(const std::string &selector) const;
    std::optional<QRect> placeOfLane(std::int32_t device) const;
    std::optional<QRect> placeOfBlock(const LessonPoint &point) const;
    std::optional<QRect> placeOfRow(const std::string &text) const;
    /// The list's row of the first row of the table that holds the text; -1 if none does.
    int listRowOf(const std::string &text) const;
    std::optional<QRect> placeOfCommand(const QString &id) const;
    std::optional<QRect> seen(const QWidget *widget, const QRect &rect) const;
    void showCanvases(const std::string &canvas);
    void showMoment(const std::string &moment);

    MainWindow *m_window;
    std::shared_ptr<Settings> m_settings;
    QString m_folder;
    LessonGuide *m_guide;
};

} // namespace planloom
