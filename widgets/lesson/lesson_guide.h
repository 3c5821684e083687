#pragma once

#include <QtCore/QObject>
#include <QtCore/QRect>

#include "widgets/common/latest_job.h"
#include "widgets/lesson/lesson_progress.h"
#include "widgets/lesson/lesson_work.h"

#include <memory>
#include <optional>

namespace planloom {

class LessonArrows;
class LessonPane;
class Workspace;

/// How far somebody is in a lesson, for lists of them.
struct LessonMark {
    std::int32_t step = 0;
    std::int32_t steps = 0;
    bool finished = false;
    QString session{}; ///< Its file; empty while it has none.
};

/// What a lesson needs of the window that it is shown in.
class LessonStage
{
public:
    virtual ~LessonStage() = default;
    /// Shows the pane beside the canvases.
    virtual void enter(QWidget *pane) = 0;
    /// Docks as lessons have them: a new session is open.
    virtual void arrange() = 0;
    virtual void leave(QWidget *pane) = 0;
    virtual void show(const LessonShow &show) = 0;
    /// In the window's coordinates; nothing while it is out of sight.
    virtual std::optional<QRect> placeOf(const LessonPoint &point) const = 0;
    /// Brings it into sight, as far as that changes nothing else.
    virtual void reveal(const LessonPoint &point) = 0;
    virtual void openTerm(const QString &term) = 0;
    /// What the last run of the design as it is came to; nothing where it has not run.
    virtual std::optional<LessonRun> lastRun() const = 0;
    virtual void remember(const QString &lesson, const LessonMark &mark) = 0;
};

/// Leads through a lesson in a window whose session is the lesson's own: opens what a step begins with, shows
/// it, has texts and checks worked out beside the window, and keeps how far somebody is. GUI thread.
class LessonGuide : public QObject
{
    Q_OBJECT
public:
    /// @param stage, workspace  must outlive this
    LessonGuide(Workspace *workspace, LessonStage *stage, QWidget *window);
    ~LessonGuide() override;

    /// Begins a lesson in a new session. @param cluster  to work through it on; empty for its own
    void begin(LessonSnapshot lesson, const std::string &cluster = {}, int step = 0);
    void leave();
    bool isOn() const { return m_lesson != nullptr; }
    const LessonSnapshot &lesson() const { return m_lesson; }
    const LessonProgress &progress() const { return m_progress; }
    LessonPane *pane() const { return m_pane; }
    LessonArrows *arrows() const { return m_arrows; }
    void goTo(int step);
    /// Nothing is being opened or worked out.
    bool isSettled() const;

Q_SIGNALS:
    /// A lesson has begun, or ended, or is at another step; or its texts or checks are others.
    void changed();

private:
    /// The design that a step begins with, worked out.
    struct Prepared {
        ModelSource source{};
        TargetChoice target{};
        std::string rows{};
        std::optional<Error> error{};
    };

    static Prepared prepare(const LessonSnapshot &lesson, std::size_t step, const LessonTarget &target,
        const ModelSnapshot &known, const std::stop_token &stop);
    void beginLesson();
    void enterStep();
    bool isTaskSkipped() const;
    void openDesign(const Prepared &design);
    void beginStep();
    void beginWhenPlanned();
    void onSessionChanged();
    void takeUp();
    void end();
    void remember(bool finished);
    void ask();
    void take(const LessonFindings &findings);
    void makeMove();
    void restoreBeginning(const QString &words);
    void pointAt(const StepTexts &texts);
    void store();
    const LessonStep &step() const { return m_lesson->steps[static_cast<std::size_t>(m_progress.step)]; }

    Workspace *m_workspace;
    LessonStage *m_stage;
    LessonPane *m_pane;
    LessonArrows *m_arrows;
    LessonSnapshot m_lesson;
    LessonProgress m_progress;
    std::shared_ptr<FiguresOfStep> m_figures;
    PlanAnswerSnapshot m_begun; ///< What the step began with.
    bool m_opens = false; ///< A session is being opened for the step.
    bool m_arranges = false; ///< It has been, and docks are as they were.
    QString m_rememberedPath; ///< Of the session.
    bool m_waits = false; ///< For the plan that the step begins with.
    bool m_wantsTexts = false;
    int m_moves = 0; ///< Of the solution, made.
    LatestJob<Prepared> m_preparing;
    LatestJob<LessonFindings> m_working;
};

} // namespace planloom
