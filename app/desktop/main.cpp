// planloom: opens the designer's window on what the command line names.

#include <QtCore/QCoreApplication>
#include <QtCore/QDir>
#include <QtCore/QElapsedTimer>
#include <QtCore/QFileInfo>
#include <QtCore/QStandardPaths>
#include <QtCore/QTimer>
#include <QtGui/QIcon>
#include <QtGui/QPixmap>

#include "app/desktop/options.h"
#include "engine/design/models/target.h"
#include "engine/design/solved_store.h"
#include "engine/terminal/exit_status.h"
#include "engine/terminal/help.h"
#include "widgets/common/gui_watchdog.h"
#include "widgets/frame/application_style.h"
#include "widgets/frame/dock_board.h"
#include "widgets/frame/settings.h"
#include "widgets/main/gallery_panel.h"
#include "widgets/main/lesson_window.h"
#include "widgets/main/main_window.h"

#include <iostream>
#include <map>
#include <string>
#include <vector>

namespace {

using namespace planloom;

constexpr int kUsualDevices = 4;
constexpr int kPollMilliseconds = 50;
constexpr int kSettledPolls = 6; ///< A picture is taken once nothing has changed for so long.
constexpr qint64 kScreenshotLimit = 180'000; ///< ms

int usageError(const Error &error)
{
    std::cerr << "planloom: " << describe(error) << "\n";
    return kExitUsage;
}

int print(const std::string &text)
{
    std::cout << text << std::flush;
    return std::cout ? kExitDone : kExitFailed;
}

/// For a model: as said; else all of a cluster that was asked for.
int devicesAsked(const DesktopOptions &options)
{
    if (options.devices > 0)
        return options.devices;
    if (options.cluster.isEmpty())
        return kUsualDevices;
    const auto target = resolve({options.cluster.toStdString(), {}, 0});
    return target ? target->deviceCount : kUsualDevices; // what is wrong with it is told where it is used
}

void openLesson(LessonWindow &lessons, const DesktopOptions &options)
{
    for (const Lesson &lesson : bundledLessons()) {
        if (lesson.name == options.lesson.toStdString()) {
            lessons.open(std::make_shared<const Lesson>(lesson), options.cluster.toStdString());
            return;
        }
    }
    lessons.openFolder(options.lesson, options.cluster.toStdString());
}

/// Presents once the plan is there, or it is known that there is none.
void presentWhenPlanned(MainWindow &window)
{
    auto *timer = new QTimer(&window);
    timer->setInterval(kPollMilliseconds);
    QObject::connect(timer, &QTimer::timeout, &window, [&window, timer] {
        const auto &latest = window.workspace().latest();
        if (!window.isSettled() || !latest || !latest->final
            || !window.trigger(QStringLiteral("view.present")))
            return;
        timer->deleteLater();
    });
    timer->start();
}

Result<void> openAsked(MainWindow &window, const DesktopOptions &options)
{
    Workspace &workspace = window.workspace();
    const std::string cluster =
        options.cluster.isEmpty() ? workspace.cluster() : options.cluster.toStdString();
    if (!options.sample.isEmpty()) {
        TRY(Sample sample, sampleNamed(options.sample.toStdString()));
        if (!options.cluster.isEmpty())
            sample.cluster = cluster;
        if (options.devices > 0) // else those that its gallery plan is for
            sample.devices = options.devices;
        if (!options.gallery.isEmpty())
            sample.gallery = options.gallery.toStdString();
        window.openSample(sample);
        return {};
    }
    if (!options.lesson.isEmpty()) {
        openLesson(*window.lessons(), options);
        return {};
    }
    if (options.open.isEmpty())
        return {};
    if (looksLikeSession(options.open.toStdString())) {
        workspace.openSession(options.open);
        if (options.present)
            presentWhenPlanned(window);
        return {};
    }
    workspace.openWith({options.open.toStdString(), {}, {}}, cluster, devicesAsked(options),
        options.gallery.isEmpty() ? "single" : options.gallery.toStdString());
    window.gallery()->setSpec(options.gallery);
    return {};
}

/// PLANLOOM_WATCHDOG is "off", "warn" or "assert". Unless it is set, builds for debugging end with the name
/// of an event that keeps the GUI thread too long, and all others don't look.
void watchOverEvents(GuiWatchdog &application)
{
    const QByteArray wanted = qgetenv("PLANLOOM_WATCHDOG");
#if !defined(NDEBUG) && !defined(__OPTIMIZE__)
    const bool debugging = wanted.isEmpty();
#else
    const bool debugging = false;
#endif
    application.setAllowance(GuiWatchdog::buildFactor());
    if (debugging || wanted == "assert")
        application.watch(true, WatchdogReply::Assert);
    else if (wanted == "warn")
        application.watch(true, WatchdogReply::Warn);
}

/// Takes the picture once the window has come to rest.
void takeScreenshot(MainWindow &window, const QString &path)
{
    auto *timer = new QTimer(&window);
    auto *clock = new QElapsedTimer;
    clock->start();
    QObject::connect(timer, &QObject::destroyed, [clock] { delete clock; });
    timer->setInterval(kPollMilliseconds);
    QObject::connect(timer, &QTimer::timeout, &window, [&window, timer, clock, path, quiet = 0]() mutable {
        quiet = window.isSettled() ? quiet + 1 : 0;
        const bool late = clock->elapsed() > kScreenshotLimit;
        if (quiet < kSettledPolls && !late)
            return;
        timer->stop();
        const bool written = window.grab().save(path, "PNG");
        if (!written)
            std::cerr << "planloom: the picture " << path.toStdString() << " could not be written\n";
        if (late)
            std::cerr << "planloom: the plan was not ready in time\n";
        QCoreApplication::exit(written && !late ? 0 : kExitFailed);
    });
    timer->start();
}

} // namespace

int main(int argc, char **argv)
{
    // What needs no window must work without a display; without one Qt would end the program itself.
    bool platformChosen = qEnvironmentVariableIsSet("QT_QPA_PLATFORM");
    const std::vector<std::string> words(argv + 1, argv + argc);
    if (const auto answer = answerOf(desktopProgram(), words))
        return print(*answer);
    for (const std::string &word : words) {
        if (word == "--")
            break; // behind it are files
        if (word == "--help" || word == "-h")
            return print(helpOf(desktopProgram(), terminalWidth()));
        if (word == "--version")
            return print(*answerOf(desktopProgram(), {"--version"}));
        platformChosen = platformChosen || word == "-platform" || word == "--platform";
    }
    if (!platformChosen && !qEnvironmentVariableIsSet("DISPLAY")
        && !qEnvironmentVariableIsSet("WAYLAND_DISPLAY"))
        return usageError({ErrorCode::NotFound, "there is no display to open a window on",
            "set DISPLAY, or use planloom-cli, which needs none", {}});
    hideSessionOption(argc, argv);
    GuiWatchdog application(argc, argv);
    QApplication::setApplicationName(QStringLiteral("planloom"));
    QApplication::setApplicationDisplayName(QStringLiteral("Planloom"));
    QApplication::setApplicationVersion(QStringLiteral(PLANLOOM_VERSION));
    QApplication::setDesktopFileName(QStringLiteral("planloom")); // resources/desktop
    QApplication::setWindowIcon(QIcon::fromTheme(QStringLiteral("planloom")));
    const auto options = desktopOptions(QCoreApplication::arguments());
    if (!options)
        return usageError(options.error());
    watchOverEvents(application);
    // Pictures are taken of a window that knows nothing of this machine.
    const bool keep = !options->noSession && options->screenshot.isEmpty();
    WindowServices services;
    if (keep) {
        const QString data = QStandardPaths::writableLocation(QStandardPaths::AppLocalDataLocation);
        services.sessionFolder = options->sessions.isEmpty() ? data + QStringLiteral("/sessions")
                                                             : QDir(options->sessions).absolutePath();
        services.recentFolder = services.sessionFolder;
        services.solvedFolder = options->sessions.isEmpty()
            ? QString::fromStdString(userSolvedFolder().string())
            : services.sessionFolder + QStringLiteral("/solved");
        services.settings = std::make_shared<Settings>(
            (options->sessions.isEmpty() ? QStandardPaths::writableLocation(QStandardPaths::AppConfigLocation)
                                         : services.sessionFolder)
            + QStringLiteral("/planloom.ini"));
    } else {
        services.settings = std::make_shared<Settings>();
    }
    ThemeKeeper themes(&application, services.settings);
    if (!options->theme.isEmpty())
        themes.use(options->theme); // once: preferences stay as they are
    services.themes = &themes;
    // Beside the program, or, installed, where programs are that nobody starts by hand.
    for (const QString &folder : {QStringLiteral("/"), QStringLiteral("/../lib/planloom/")}) {
        const QString helper =
            QCoreApplication::applicationDirPath() + folder + QStringLiteral("planloom-layout");
        if (services.layoutHelper.isEmpty() && QFileInfo(helper).isExecutable())
            services.layoutHelper = QFileInfo(helper).canonicalFilePath();
    }

    MainWindow window(services);
    if (options->size.isValid())
        window.resize(options->size);
    static const std::map<QString, TimelineColouring> kColourings{
        {QStringLiteral("direction"), TimelineColouring::Direction},
        {QStringLiteral("micro-batch"), TimelineColouring::MicroBatch},
        {QStringLiteral("stage"), TimelineColouring::Stage},
        {QStringLiteral("device"), TimelineColouring::Device},
        {QStringLiteral("kind"), TimelineColouring::Kind}, {QStringLiteral("time"), TimelineColouring::Time},
        {QStringLiteral("decided-by"), TimelineColouring::DecidedBy}};
    if (!options->colourBy.isEmpty()) {
        const auto colouring = kColourings.find(options->colourBy);
        if (colouring == kColourings.end()) {
            return usageError({ErrorCode::InvalidInput,
                "--colour-by does not know \"" + options->colourBy.toStdString() + "\"",
                "see planloom --help"});
        }
        window.setColouring(colouring->second);
    }
    if (!options->screenshot.isEmpty()) {
        QObject::connect(&window.workspace(), &Workspace::problem, &window, [](const Error &error) {
            std::cerr << "planloom: " << describe(error) << "\n";
            QCoreApplication::exit(kExitUsage);
        });
    }
    if (!options->perspective.isEmpty()) {
        QObject::connect(&window.workspace(), &Workspace::sessionChanged, &window,
            [&window, wanted = options->perspective] { window.docks().apply(wanted); });
    }
    if (options->size.isValid() || !options->screenshot.isEmpty())
        window.show(); // as asked for, on whatever screen
    else
        window.showOnScreen();
    if (const auto opened = openAsked(window, *options); !opened)
        return usageError(opened.error());
    if (!options->screenshot.isEmpty())
        takeScreenshot(window, options->screenshot);
    return QApplication::exec();
}
