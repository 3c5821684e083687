#include "widgets/main/lesson_window.h"

#include <QtCore/QFileInfo>
#include <QtCore/QRegularExpression>
#include <QtWidgets/QDockWidget>
#include <QtWidgets/QLabel>
#include <QtWidgets/QMenuBar>
#include <QtWidgets/QSplitter>
#include <QtWidgets/QStatusBar>
#include <QtWidgets/QToolBar>

#include "engine/analyse/memory_at.h"
#include "engine/table/selector.h"
#include "widgets/common/qt_text.h"
#include "widgets/frame/dock_board.h"
#include "widgets/frame/settings.h"
#include "widgets/glossary/glossary_help.h"
#include "widgets/lesson/lesson_pane.h"
#include "widgets/main/command_registry.h"
#include "widgets/main/log_panel.h"
#include "widgets/main/main_window.h"
#include "widgets/main/notice_bar.h"
#include "widgets/run/run_record.h"
#include "widgets/table/rows_view.h"
#include "widgets/table/table_panel.h"

#include <algorithm>
#include <charconv>

namespace planloom {

namespace {

const QString kLessons = QStringLiteral("lessons/");

const QString &sessionKey()
{
    static const QString kKey = QStringLiteral("/session");
    return kKey;
}

/// "0.4" of the step, or "peak of device 0": a time of the scene.
std::optional<std::int64_t> timeOf(const std::string &moment, const TimelineScene &scene)
{
    const Timeline &timeline = *scene.timeline;
    const std::string_view peak = "peak of device ";
    const std::string_view text = moment;
    if (text.starts_with(peak)) {
        std::size_t device = timeline.memory.size();
        std::from_chars(text.data() + peak.size(), text.data() + text.size(), device);
        if (device >= timeline.memory.size())
            return std::nullopt;
        return peakTime(timeline.memory[device]).count();
    }
    double share = -1;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), share);
    if (read.ec != std::errc() || !(share >= 0 && share <= 1))
        return std::nullopt;
    return static_cast<std::int64_t>(share * static_cast<double>(timeline.step.count()));
}

bool holds(const QMenu *menu, const QAction *action)
{
    const QList<QAction *> actions = menu->actions();
    return std::any_of(actions.begin(), actions.end(), [action](const QAction *own) {
        return own == action || (own->menu() && holds(own->menu(), action));
    });
}

} // namespace

QString LessonWindow::commandOfColour(const std::string &colour)
{
    static const QRegularExpression kBetween(QStringLiteral("[ -]"));
    QString id = QStringLiteral("view.colour");
    for (const QString &word : toQString(colour).split(kBetween))
        id += word.left(1).toUpper() + word.mid(1).toLower();
    return id;
}

std::optional<LessonMark> lessonMark(const Settings &settings, const QString &lesson)
{
    const QString key = kLessons + lesson;
    LessonMark mark;
    mark.steps = settings.value(key + QStringLiteral("/steps"), 0).toInt();
    if (mark.steps <= 0)
        return std::nullopt;
    mark.step = std::clamp(settings.value(key + QStringLiteral("/step"), 0).toInt(), 0, mark.steps - 1);
    mark.finished = settings.value(key + QStringLiteral("/finished"), false).toBool();
    mark.session = settings.value(key + sessionKey()).toString();
    return mark;
}

LessonWindow::LessonWindow(MainWindow *window, std::shared_ptr<Settings> settings, const QString &folder)
    : QObject(window)
    , m_window(window)
    , m_settings(std::move(settings))
    , m_folder(folder)
    , m_guide(new LessonGuide(&window->workspace(), this, window))
{
}

LessonWindow::~LessonWindow()
{
    delete m_guide; // it may still speak to this
}

QString LessonWindow::folder() const
{
    return m_folder.isEmpty() ? QString() : m_folder + QStringLiteral("/lessons");
}

void LessonWindow::open(const LessonSnapshot &lesson, const std::string &cluster)
{
    if (m_window->workspace().model() && !m_guide->isOn()) {
        m_window->openWindow()->lessons()->open(lesson, cluster);
        return;
    }
    const auto mark =
        cluster.empty() ? lessonMark(*m_settings, toQString(lesson->name)) : std::optional<LessonMark>();
    if (!mark || mark->finished || !QFileInfo(mark->session).isFile()) {
        begin(lesson, cluster, mark && !mark->finished ? mark->step : 0);
        return;
    }
    // The session takes its lesson up. One that can't be read, or that fits the lesson no longer, is left
    // alone.
    auto *opening = new QObject(this);
    const auto beginUnlessOn = [this, lesson, opening] {
        opening->deleteLater();
        if (!m_guide->isOn())
            begin(lesson, {}, 0);
    };
    Workspace *workspace = &m_window->workspace();
    connect(workspace, &Workspace::sessionChanged, opening, beginUnlessOn, Qt::QueuedConnection);
    connect(workspace, &Workspace::problem, opening, beginUnlessOn, Qt::QueuedConnection);
    m_window->openHere(mark->session);
}

void LessonWindow::begin(const LessonSnapshot &lesson, const std::string &cluster, int step)
{
    m_window->workspace().setSessionFolder(folder());
    m_guide->begin(lesson, cluster, step);
    for (const Error &problem : lesson->problems)
        m_window->log()->model()->add(LogKind::Problem, toQString(describe(problem)));
}

void LessonWindow::openFolder(const QString &folder, const std::string &cluster)
{
    Result<Lesson> lesson = readLesson(folder.toStdString());
    const QString id = QStringLiteral("lesson");
    if (!lesson || lesson->steps.empty()) {
        const Error error = lesson ? Error{ErrorCode::InvalidInput, "the lesson has no steps",
                                "a step is a heading of the second level, and what stands below it", {}}
                                   : lesson.error();
        m_window->notices().show({id, NoticeKind::Error, toQString(describe(error)), {}, true});
        return;
    }
    if (!lesson->problems.empty()) {
        QStringList lines;
        for (std::size_t i = 0; i < std::min<std::size_t>(lesson->problems.size(), 3); ++i)
            lines << toQString(describe(lesson->problems[i]));
        if (lesson->problems.size() > 3)
            lines << tr("%1 more are in the log.").arg(lesson->problems.size() - 3);
        m_window->notices().show({id, NoticeKind::Warning,
            tr("The lesson is open but for this:") + QLatin1Char('\n') + lines.join(QLatin1Char('\n')), {},
            true});
    }
    open(std::make_shared<const Lesson>(*std::move(lesson)), cluster);
}

void LessonWindow::enter(QWidget *pane)
{
    auto *body = m_window->findChild<QSplitter *>(QStringLiteral("window.body"));
    if (body->indexOf(pane) >= 0)
        return;
    body->addWidget(pane);
    body->setStretchFactor(0, 1);
    body->setStretchFactor(1, 0);
    body->setCollapsible(1, false);
}

void LessonWindow::arrange()
{
    m_window->docks().apply(QStringLiteral("lesson"));
}

void LessonWindow::leave(QWidget *pane)
{
    pane->setParent(m_window);
    pane->hide();
    m_window->workspace().setSessionFolder(m_folder);
    showCanvases("both");
    if (m_window->docks().current() == QStringLiteral("lesson"))
        m_window->docks().apply(QStringLiteral("design"));
}

void LessonWindow::showCanvases(const std::string &canvas)
{
    auto *canvases = m_window->findChild<QSplitter *>(QStringLiteral("window.splitter"));
    canvases->widget(0)->setVisible(canvas != "timeline");
    canvases->widget(1)->setVisible(canvas != "graph");
}

void LessonWindow::show(const LessonShow &show)
{
    if (!show.canvas.empty())
        showCanvases(show.canvas);
    if (show.dock == "none") {
        for (QDockWidget *dock : m_window->docks().docks())
            dock->hide();
    } else if (!show.dock.empty()) {
        m_window->docks().reveal(toQString(show.dock), false);
    }
    if (!show.colour.empty()) {
        m_window->trigger(commandOfColour(show.colour));
    }
    const ModelSnapshot &model = m_window->workspace().model();
    if (!show.select.empty() && model) {
        if (const auto selector = parseSelector(show.select))
            m_window->selection().select(model->index->select(*selector));
    }
    if (show.moment.empty())
        Q_EMIT m_window->timeline()->timeCleared(); // that of a step before
    else
        showMoment(show.moment);
}

void LessonWindow::showMoment(const std::string &moment)
{
    TimelineView *timeline = m_window->timeline();
    if (!timeline->scene())
        return;
    if (const auto time = timeOf(moment, *timeline->scene()))
        Q_EMIT timeline->timeAsked(Nanoseconds(*time)); // as a click on the ruler does
}

std::optional<QRect> LessonWindow::seen(const QWidget *widget, const QRect &rect) const
{
    if (!widget->isVisible())
        return std::nullopt;
    const QRect part = rect.intersected(widget->rect());
    if (part.isEmpty())
        return std::nullopt;
    return QRect(widget->mapTo(m_window, part.topLeft()), part.size());
}

std::optional<QRect> LessonWindow::placeOf(const LessonPoint &point) const
{
    switch (point.kind) {
    case PlaceKind::Operator:
        return placeOfOperator(point.what);
    case PlaceKind::Device:
        return placeOfLane(point.device);
    case PlaceKind::Block:
        return placeOfBlock(point);
    case PlaceKind::Row:
        return placeOfRow(point.what);
    case PlaceKind::Dock: {
        const QDockWidget *dock = m_window->docks().find(toQString(point.what));
        return dock ? seen(dock, dock->rect()) : std::nullopt;
    }
    case PlaceKind::Command:
        return placeOfCommand(toQString(point.what));
    case PlaceKind::StepTime: {
        const auto *label = m_window->statusBar()->findChild<QLabel *>(QStringLiteral("status.step"));
        return label ? seen(label, label->rect()) : std::nullopt;
    }
    }
    return std::nullopt;
}

std::optional<QRect> LessonWindow::placeOfOperator(const std::string &selector) const
{
    const ModelSnapshot &model = m_window->workspace().model();
    const auto parsed = parseSelector(selector);
    if (!model || !parsed)
        return std::nullopt;
    const std::vector<OperatorId> operators = model->index->select(*parsed);
    const DagView *dag = m_window->dag();
    if (const DagPictureSnapshot picture = dag->picture(); picture && dag->isVisible()) {
        for (const OperatorId op : operators) {
            const std::int32_t unit = picture->outline->unitOfOperator[static_cast<std::size_t>(op.index)];
            const std::int32_t box =
                unit < 0 ? -1 : picture->visible.boxOfUnit[static_cast<std::size_t>(unit)];
            if (box < 0)
                continue;
            if (const auto place = seen(dag, dag->viewRect(box).toAlignedRect()))
                return place;
        }
    }
    const TimelineView *timeline = m_window->timeline();
    if (!timeline->scene() || !timeline->isVisible() || operators.empty())
        return std::nullopt;
    for (const std::size_t row : rowsOf(*timeline->scene(), {operators.front()})) {
        if (const auto rect = timeline->rectOf(row))
            return seen(timeline->viewport(), *rect);
    }
    return std::nullopt;
}

/// Symmetric devices may share a lane: that of any of them will do.
std::optional<QRect> LessonWindow::placeOfLane(std::int32_t device) const
{
    const TimelineView *timeline = m_window->timeline();
    const TimelineSceneSnapshot &scene = timeline->scene();
    if (!scene || device < 0 || device >= static_cast<std::int32_t>(scene->lanes.size()))
        return std::nullopt;
    const std::int32_t symmetry = scene->lanes[static_cast<std::size_t>(device)].symmetryClass;
    if (const QRect own = timeline->laneRect(device); !own.isEmpty())
        return seen(timeline->viewport(), own);
    for (std::size_t lane = 0; lane < scene->lanes.size(); ++lane) {
        if (scene->lanes[lane].symmetryClass != symmetry)
            continue;
        if (const QRect rect = timeline->laneRect(static_cast<std::int32_t>(lane)); !rect.isEmpty())
            return seen(timeline->viewport(), rect);
    }
    return std::nullopt;
}

std::optional<QRect> LessonWindow::placeOfBlock(const LessonPoint &point) const
{
    const TimelineView *timeline = m_window->timeline();
    const TimelineSceneSnapshot &scene = timeline->scene();
    if (!scene)
        return std::nullopt;
    const SegmentKind kind = point.backward ? SegmentKind::Backward : SegmentKind::Forward;
    for (std::size_t lane = 0; lane < scene->lanes.size(); ++lane) {
        const auto &blocks = scene->lanes[lane].blocks;
        for (std::size_t i = 0; i < blocks.size(); ++i) {
            if (blocks[i].kind != kind || blocks[i].stage.index != point.stage
                || blocks[i].microBatch != point.microBatch)
                continue;
            if (const auto rect = timeline->rectOfBlock(static_cast<std::int32_t>(lane), i))
                return seen(timeline->viewport(), *rect);
        }
    }
    return std::nullopt;
}

int LessonWindow::listRowOf(const std::string &text) const
{
    const TablePanel *table = m_window->constraints();
    const auto &lines = m_window->workspace().table().lines();
    for (std::size_t line = 0; line < lines.size(); ++line) {
        if (lines[line]->row && lines[line]->text.find(text) != std::string::npos)
            return table->list()->rowOfSource(table->rows()->rowOfLine(static_cast<int>(line)));
    }
    return -1;
}

void LessonWindow::reveal(const LessonPoint &point)
{
    const int row = point.kind == PlaceKind::Row ? listRowOf(point.what) : -1;
    const TablePanel *table = m_window->constraints();
    if (row >= 0)
        table->grid()->scrollTo(table->list()->index(row, 0), QAbstractItemView::PositionAtCenter);
}

std::optional<QRect> LessonWindow::placeOfRow(const std::string &text) const
{
    const TablePanel *table = m_window->constraints();
    const int row = listRowOf(text);
    if (row < 0)
        return std::nullopt;
    if (!table->grid()->isVisible())
        return seen(table, table->rect()); // as text
    const QRect first = table->grid()->visualRect(table->list()->index(row, 0));
    const QRect all(0, first.top(), table->grid()->viewport()->width(), first.height());
    return seen(table->grid()->viewport(), all);
}

/// Its button, or the menu that holds it.
std::optional<QRect> LessonWindow::placeOfCommand(const QString &id) const
{
    QAction *action = m_window->commands().find(id);
    if (!action)
        return std::nullopt;
    for (const QToolBar *bar : m_window->findChildren<QToolBar *>()) {
        const QWidget *button = bar->widgetForAction(action);
        if (button && button->isVisible())
            return seen(button, button->rect());
    }
    const QMenuBar *menus = m_window->menuBar();
    for (QAction *menu : menus->actions()) {
        if (menu->menu() && holds(menu->menu(), action))
            return seen(menus, menus->actionGeometry(menu));
    }
    return std::nullopt;
}

void LessonWindow::openTerm(const QString &term)
{
    if (auto *help = m_window->findChild<GlossaryHelp *>())
        help->open(term);
}

std::optional<LessonRun> LessonWindow::lastRun() const
{
    const std::vector<SessionRun> &runs = m_window->workspace().runs();
    if (runs.empty() || runs.back().step != m_window->workspace().history().current())
        return std::nullopt;
    const auto record = RunRecord::fromJson(runs.back().details);
    if (!record || record->state != RunState::Done)
        return std::nullopt;
    return LessonRun{record->measuredStepSeconds(), record->check && record->check->ok};
}

void LessonWindow::remember(const QString &lesson, const LessonMark &mark)
{
    const QString key = kLessons + lesson;
    const bool finished =
        mark.finished || m_settings->value(key + QStringLiteral("/finished"), false).toBool();
    m_settings->setValue(key + QStringLiteral("/steps"), mark.steps);
    m_settings->setValue(key + QStringLiteral("/step"), mark.step);
    m_settings->setValue(key + QStringLiteral("/finished"), finished);
    m_settings->setValue(key + sessionKey(), mark.session);
}

} // namespace planloom

#include "moc_lesson_window.cpp"
