#include "widgets/lesson/lesson_guide.h"

#include <QtWidgets/QWidget>

#include "widgets/common/palette.h"
#include "widgets/common/qt_text.h"
#include "widgets/design/workspace.h"
#include "widgets/lesson/lesson_arrows.h"
#include "widgets/lesson/lesson_moves.h"
#include "widgets/lesson/lesson_pane.h"
#include "widgets/lesson/lesson_task_card.h"

#include <algorithm>

namespace planloom {

namespace {

constexpr const char *kProgress = "lesson"; ///< In the session's view.

LessonSnapshot lessonOf(const LessonProgress &progress)
{
    if (progress.lesson.empty())
        return nullptr;
    if (!progress.folder.empty()) {
        Result<Lesson> read = readLesson(progress.folder);
        return read ? std::make_shared<const Lesson>(*std::move(read)) : nullptr;
    }
    for (const Lesson &lesson : bundledLessons()) {
        if (lesson.name == progress.lesson)
            return std::make_shared<const Lesson>(lesson);
    }
    return nullptr;
}

} // namespace

LessonGuide::LessonGuide(Workspace *workspace, LessonStage *stage, QWidget *window)
    : QObject(window)
    , m_workspace(workspace)
    , m_stage(stage)
    , m_pane(new LessonPane(window))
    , m_arrows(new LessonArrows(window))
    , m_preparing([this](const Prepared &design) { openDesign(design); })
    , m_working([this](const LessonFindings &findings) { take(findings); })
{
    m_pane->hide();
    connect(m_pane, &LessonPane::stepAsked, this, &LessonGuide::goTo);
    connect(m_pane, &LessonPane::leaveAsked, this, &LessonGuide::leave);
    connect(m_pane, &LessonPane::moveAsked, this, &LessonGuide::makeMove);
    connect(m_pane, &LessonPane::beginAgainAsked, this, [this] {
        m_moves = 0;
        m_pane->setMoves(0);
        restoreBeginning(tr("lesson: begin again"));
    });
    connect(m_pane, &LessonPane::termAsked, this, [this](const QString &term) { m_stage->openTerm(term); });
    connect(m_pane, &LessonPane::answered, this, [this](const QString &place, const QString &given) {
        m_progress.answers[place.toStdString()] = given.toStdString();
        store();
    });
    connect(m_pane, &LessonPane::hintAsked, this, [this] {
        m_progress.hints[m_progress.step] = m_pane->task()->hints();
        store();
    });
    connect(m_workspace, &Workspace::sessionChanged, this, &LessonGuide::onSessionChanged);
    connect(m_workspace, &Workspace::planChanged, this, [this] {
        if (m_waits)
            beginWhenPlanned();
        else if (m_lesson && !m_opens)
            ask();
    });
    connect(m_workspace, &Workspace::runsChanged, this, [this] {
        if (m_lesson && !m_opens && !m_waits)
            ask();
    });
    connect(m_workspace, &Workspace::stateChanged, this, [this] {
        if (m_waits)
            beginWhenPlanned();
        m_pane->setBusy(m_workspace->isPlanning());
        if (m_lesson && !m_opens && !m_waits && m_workspace->path() != m_rememberedPath)
            remember(false); // it has a file since the first edit
    });
    connect(m_workspace, &Workspace::problem, this, [this](const Error &error) {
        if (!m_lesson || !m_opens)
            return;
        m_opens = false;
        m_pane->setProblem(toQString(describe(error)));
        Q_EMIT changed();
    });
}

LessonGuide::~LessonGuide() = default;

void LessonGuide::begin(LessonSnapshot lesson, const std::string &cluster, int step)
{
    if (!lesson || lesson->steps.empty())
        return;
    m_lesson = std::move(lesson);
    m_progress = {};
    m_progress.lesson = m_lesson->name;
    m_progress.folder = m_lesson->folder.string();
    m_progress.cluster = cluster;
    m_progress.step = std::clamp(step, 0, static_cast<int>(m_lesson->steps.size()) - 1);
    beginLesson();
}

void LessonGuide::leave()
{
    if (!m_lesson)
        return;
    if (!m_opens)
        remember(m_progress.step + 1 == static_cast<std::int32_t>(m_lesson->steps.size()));
    end();
}

void LessonGuide::end()
{
    if (!m_lesson)
        return;
    m_preparing.cancel();
    m_working.cancel();
    m_lesson.reset();
    m_figures.reset();
    m_begun.reset();
    m_opens = m_waits = m_wantsTexts = m_arranges = false;
    m_arrows->setTargets({});
    m_pane->hide();
    m_stage->leave(m_pane);
    Q_EMIT changed();
}

void LessonGuide::remember(bool finished)
{
    m_rememberedPath = m_workspace->path();
    m_stage->remember(toQString(m_lesson->name),
        {m_progress.step, static_cast<std::int32_t>(m_lesson->steps.size()), finished, m_rememberedPath});
}

void LessonGuide::beginLesson()
{
    const auto step = static_cast<std::size_t>(m_progress.step);
    m_figures = std::make_shared<FiguresOfStep>(
        FiguresOfStep{LessonFigures(*m_lesson, step, LessonTarget{m_progress.cluster, {}}), step});
    m_stage->enter(m_pane);
    m_pane->show();
    enterStep();
}

void LessonGuide::goTo(int step)
{
    if (!m_lesson || step < 0 || step >= static_cast<int>(m_lesson->steps.size()))
        return;
    m_progress.step = step;
    enterStep();
}

bool LessonGuide::isSettled() const
{
    return !m_opens && !m_waits && !m_wantsTexts && !m_working.isBusy() && !m_preparing.isBusy();
}

void LessonGuide::enterStep()
{
    m_arrows->setTargets({});
    m_working.cancel();
    m_moves = 0;
    m_begun.reset();
    m_wantsTexts = false;
    m_pane->showStep(*m_lesson, m_progress);
    const bool seen = m_progress.isSeen(m_progress.step);
    if (m_progress.open == step().open && (seen || (!step().opens && !isTaskSkipped()))) {
        m_waits = true;
        beginWhenPlanned();
    } else {
        m_opens = true;
        m_waits = false;
        m_preparing.ask(
            [lesson = m_lesson, step = static_cast<std::size_t>(m_progress.step),
                target = LessonTarget{m_progress.cluster, {}}, known = m_workspace->model()](
                const std::stop_token &stop) { return prepare(lesson, step, target, known, stop); });
    }
    Q_EMIT changed();
}

/// The step before has a task that was passed by: this one speaks of a design in which it is done.
bool LessonGuide::isTaskSkipped() const
{
    const std::int32_t before = m_progress.step - 1;
    return before >= 0 && m_lesson->steps[static_cast<std::size_t>(before)].task
        && !m_progress.done.contains(before);
}

/// What the step begins with for who has done all before it: a step is not always come to from the one
/// before.
LessonGuide::Prepared LessonGuide::prepare(const LessonSnapshot &lesson, std::size_t step,
    const LessonTarget &target, const ModelSnapshot &known, const std::stop_token &stop)
{
    Prepared prepared;
    Result<PlanRequest> request = beginningOf(*lesson, step, target, stop, known);
    if (request)
        request = withAllRows(*std::move(request), stop);
    if (!request) {
        prepared.error = request.error();
        return prepared;
    }
    prepared.source = request->model->source;
    prepared.target = request->target;
    prepared.rows = request->table.text();
    return prepared;
}

void LessonGuide::openDesign(const Prepared &design)
{
    if (!m_lesson || !m_opens)
        return;
    if (design.error) {
        m_opens = false;
        m_pane->setProblem(toQString(describe(*design.error)));
        Q_EMIT changed();
        return;
    }
    if (m_progress.open == step().open && m_workspace->model()) { // the same design, a task further
        m_opens = false;
        DesignState wanted = m_workspace->history().state();
        wanted.table = TableDocument(design.rows);
        m_workspace->edit(
            tr("lesson: as if it were done"), difference(m_workspace->history().state(), wanted));
        if (design.target.cluster != m_workspace->cluster())
            m_workspace->setCluster(design.target.cluster);
        m_workspace->setDeviceCount(design.target.deviceCount);
        m_waits = true;
        beginWhenPlanned();
        return;
    }
    m_workspace->openWith(design.source, design.target.cluster, design.target.deviceCount, {}, design.rows);
}

void LessonGuide::onSessionChanged()
{
    if (!m_lesson || !m_opens) {
        takeUp();
        return;
    }
    m_opens = false;
    m_arranges = true;
    m_progress.open = step().open;
    // Places in the history of a session before are none of this one's.
    m_progress.begins.clear();
    m_waits = true;
    beginWhenPlanned();
}

/// A session that was a lesson's is one again.
void LessonGuide::takeUp()
{
    const auto found = m_workspace->view().find(kProgress);
    const LessonProgress progress =
        found == m_workspace->view().end() ? LessonProgress() : lessonProgressFromJson(found->second);
    LessonSnapshot lesson = lessonOf(progress);
    if (!lesson || progress.step >= static_cast<std::int32_t>(lesson->steps.size())
        || progress.open != lesson->steps[static_cast<std::size_t>(progress.step)].open) {
        end(); // another session
        return;
    }
    m_lesson = std::move(lesson);
    m_progress = progress;
    beginLesson();
}

void LessonGuide::beginWhenPlanned()
{
    if (!m_lesson || m_workspace->isOpening() || m_workspace->isPlanning() || !m_workspace->latest())
        return;
    m_waits = false;
    beginStep();
}

void LessonGuide::beginStep()
{
    const auto [begin, isNew] =
        m_progress.begins.try_emplace(m_progress.step, m_workspace->history().current());
    m_progress.reached = std::max(m_progress.reached, m_progress.step);
    m_begun = m_workspace->latest();
    if (!isNew && begin->second != m_workspace->history().current()) {
        // Texts speak of what the step began with, which is not what is open now.
        if (const PlanUpdateSnapshot plan = m_workspace->planOfStep(begin->second))
            m_begun = plan;
    }
    if (std::exchange(m_arranges, false))
        m_stage->arrange();
    if (step().show)
        m_stage->show(*step().show);
    m_wantsTexts = true;
    store();
    ask();
}

void LessonGuide::ask()
{
    const PlanUpdateSnapshot own = m_workspace->latest();
    LessonQuestionOfPlan question;
    question.lesson = m_lesson;
    question.step = static_cast<std::size_t>(m_progress.step);
    question.figures = m_figures;
    question.begun = m_begun;
    if (own && own->final)
        question.own = own;
    question.run = m_stage->lastRun();
    question.texts = m_wantsTexts;
    question.palette = paletteFor(*m_pane);
    question.ratio = m_pane->devicePixelRatioF();
    if (question.texts || question.own)
        m_working.ask([question](const std::stop_token &stop) { return findingsOf(question, stop); });
}

void LessonGuide::take(const LessonFindings &findings)
{
    if (!m_lesson || findings.stopped)
        return;
    if (findings.texts) {
        m_wantsTexts = false;
        m_pane->setTexts(*findings.texts, m_progress);
        m_pane->setMoves(m_moves);
        pointAt(*findings.texts);
    }
    if (findings.missing) {
        m_pane->setMissing(*findings.missing);
        if (findings.missing->empty() && m_progress.done.insert(m_progress.step).second)
            store();
    }
    Q_EMIT changed();
}

void LessonGuide::pointAt(const StepTexts &texts)
{
    for (const LessonPoint &point : step().points)
        m_stage->reveal(point);
    std::vector<LessonArrows::Target> targets;
    for (std::size_t i = 0; i < texts.points.size(); ++i) {
        targets.push_back(
            {texts.points[i], [this, point = step().points[i]] { return m_stage->placeOf(point); }});
    }
    m_arrows->setTargets(std::move(targets));
}

void LessonGuide::makeMove()
{
    if (!step().task)
        return;
    const std::vector<LessonMove> moves = movesOf(step().task->solution);
    if (m_moves >= static_cast<int>(moves.size()))
        return;
    if (m_moves == 0)
        restoreBeginning(tr("lesson: from the beginning"));
    const Result<void> done = carryOut(moves[static_cast<std::size_t>(m_moves)], *m_workspace);
    if (!done) {
        // The design was changed between two moves: the way is shown from its beginning.
        m_moves = 0;
        m_pane->setMoves(0);
        restoreBeginning(tr("lesson: begin again"));
        return;
    }
    m_pane->setMoves(++m_moves);
}

/// What the step began with, as a step of the history: undo takes it back.
void LessonGuide::restoreBeginning(const QString &words)
{
    const auto begin = m_progress.begins.find(m_progress.step);
    if (begin == m_progress.begins.end())
        return;
    const Result<DesignState> state = m_workspace->history().stateAt(begin->second);
    if (state)
        m_workspace->edit(words, difference(m_workspace->history().state(), *state));
}

void LessonGuide::store()
{
    if (!m_lesson)
        return;
    m_workspace->setView(kProgress, toJson(m_progress));
    remember(false);
}

} // namespace planloom

#include "moc_lesson_guide.cpp"
