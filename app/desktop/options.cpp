#include "app/desktop/options.h"

#include <QtCore/QFileInfo>

#include "engine/base/nearest_name.h"
#include "engine/frontend/zoo/zoo.h"
#include "engine/hardware/cluster.h"
#include "engine/lesson/lesson.h"
#include "engine/terminal/arguments.h"
#include "sessions/session_file.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace planloom {

namespace {

constexpr std::string_view kSession = "--session";
constexpr std::string_view kHiddenSession = "--planloom-session";

Error wrong(const QString &message)
{
    return {ErrorCode::InvalidInput, message.toStdString(), "see planloom --help"};
}

Result<QSize> sizeFrom(const QString &text)
{
    const QStringList parts = text.split(QLatin1Char('x'));
    bool wide = false;
    bool high = false;
    const QSize size = parts.size() == 2 ? QSize(parts[0].toInt(&wide), parts[1].toInt(&high)) : QSize();
    if (!wide || !high || size.width() < 200 || size.height() < 200 || size.width() > 16384
        || size.height() > 16384)
        return wrong(QStringLiteral("--size takes WIDTHxHEIGHT from 200 to 16384, not \"%1\"").arg(text));
    return size;
}

/// What is to be opened is there, and what was named as a session is one.
Result<void> checkFile(const DesktopOptions &options)
{
    const std::string path = options.open.toStdString();
    if (path.empty() || (!options.isSession && isZooSpec(path)))
        return {};
    if (!QFileInfo(options.open).isFile())
        return Error{ErrorCode::NotFound, "there is no file \"" + path + "\"",
            "give the path of a model or of a session", path};
    if (options.isSession && !looksLikeSession(path))
        return Error{ErrorCode::InvalidInput, "\"" + path + "\" is not a session",
            options.present ? "scenes are kept in sessions: open the model without --present and make some"
                            : "open a model without --session",
            path};
    return {};
}

std::vector<std::string> lessonNames()
{
    std::vector<std::string> names;
    for (const Lesson &lesson : bundledLessons())
        names.push_back(lesson.name);
    return names;
}

/// The lesson is one of the program's, or a folder with one.
Result<void> checkLessonName(const QString &asked)
{
    if (asked.isEmpty() || QFileInfo(asked + QStringLiteral("/lesson.md")).isFile())
        return {};
    const std::vector<std::string> names = lessonNames();
    const std::string name = asked.toStdString();
    if (std::find(names.begin(), names.end(), name) != names.end())
        return {};
    return Error{ErrorCode::NotFound,
        "there is no lesson \"" + name + "\", and no folder of this name with a file lesson.md",
        didYouMean(name, {names.begin(), names.end()}), {}};
}

bool isKnown(const QString &name)
{
    const auto &options = desktopProgram().verbs.front().options;
    return std::any_of(options.begin(), options.end(),
        [&](const OptionSpec &option) { return name.toStdString() == "--" + option.name; });
}

} // namespace

void hideSessionOption(int argc, char **argv)
{
    static std::vector<std::string> words; // that argv points to
    words.reserve(static_cast<std::size_t>(argc));
    for (int i = 1; i < argc; ++i) {
        const std::string_view word = argv[i];
        if (word != kSession && !word.starts_with(std::string(kSession) + "="))
            continue;
        words.push_back(std::string(kHiddenSession) + std::string(word.substr(kSession.size())));
        argv[i] = words.back().data();
    }
}

const ProgramSpec &desktopProgram()
{
    static const ProgramSpec kProgram{.name = "planloom",
        .version = PLANLOOM_VERSION,
        .meaning = "designer for parallelization plans of deep-neural-network training",
        .paragraphs = {"FILE is a model (.onnx, .pt2), a session, or a model of the zoo "
                       "(zoo:NAME?key=value&...). Without one, the window shows its start page."},
        .verbs = {{"", "[FILE]", "opens the designer's window",
            {{"session", "FILE", "open this session"},
                {"present", "SESSION", "open this session and present its scenes"},
                {"sample", "NAME",
                    "open a bundled session: gpt2, t5, swin, evoformer, llama, long, experts, resnet, mlp",
                    {"gpt2", "t5", "swin", "evoformer", "llama", "long", "experts", "resnet", "mlp"}},
                {"lesson", "NAME|FOLDER", "begin a lesson, or go on with it", lessonNames()},
                {"gallery", "SPEC", "start from the rows of a gallery plan: 3d:dp=1,tp=2,pp=2"},
                {"devices", "N", "number of devices (default: the cluster's)"},
                {"cluster", "NAME", "profile of the devices: dgx-a100", clusterNames()},
                {"theme", "light|dark|high-contrast|high-contrast-dark",
                    "colours (default: as in the preferences)"},
                {"colour-by", "direction|micro-batch|stage|device|kind|time|decided-by", "what colours show"},
                {"perspective", "design|compare|run", "which docks are open"},
                {"sessions", "DIR",
                    "where sessions without a name are kept (default: the desktop's place for data)"},
                {"no-session", "", "keep nothing: no session, no recent list, no preferences"},
                {"screenshot", "FILE.png", "open, wait for the plan, save a picture of the window, and quit"},
                {"size", "WxH", "size of the window"}},
            "planloom --sample gpt2 --devices 8"}},
        .environment = {{"QT_QPA_PLATFORM", "offscreen: pictures without a display"},
            {"PLANLOOM_WATCHDOG",
                "off, warn or assert: what is done about events that keep the window too long"}},
        .files = {{"~/.local/share/planloom/sessions", "sessions without a name"},
            {"~/.config/planloom/planloom.ini", "preferences"},
            {"~/.cache/planloom", "plans that were solved; may be removed at any time"}},
        .seeAlso = {"planloom-cli", "planloom-exec"}};
    return kProgram;
}

Result<DesktopOptions> desktopOptions(const QStringList &arguments)
{
    DesktopOptions options;
    bool behindDashes = false;
    for (qsizetype i = 1; i < arguments.size(); ++i) {
        QString name = arguments[i];
        if (!behindDashes && name == QLatin1String("--")) {
            behindDashes = true;
            continue;
        }
        if (behindDashes || !name.startsWith(QLatin1Char('-')) || name.size() == 1) {
            if (!options.open.isEmpty())
                return wrong(QStringLiteral("one file can be opened, not \"%1\" too").arg(name));
            options.open = name;
            continue;
        }
        if (name == QLatin1String("--no-session")) {
            options.noSession = true;
            continue;
        }
        if (name.startsWith(QLatin1String(kHiddenSession.data())))
            name.replace(0, static_cast<qsizetype>(kHiddenSession.size()), QLatin1String(kSession.data()));
        QString value;
        if (const auto equals = name.indexOf(QLatin1Char('=')); equals > 0) {
            value = name.mid(equals + 1);
            name.truncate(equals);
        } else if (!isKnown(name)) {
            return unknownOption(desktopProgram(), desktopProgram().verbs.front(), name.toStdString());
        } else if (i + 1 < arguments.size()) {
            value = arguments[++i];
        } else {
            return wrong(QStringLiteral("%1 needs a value").arg(name));
        }
        if (name == QLatin1String("--session") || name == QLatin1String("--present")) {
            if (!options.open.isEmpty())
                return wrong(QStringLiteral("one file can be opened, not \"%1\" too").arg(value));
            options.open = value;
            options.isSession = true;
            options.present = name == QLatin1String("--present");
        } else if (name == QLatin1String("--sample")) {
            options.sample = value;
        } else if (name == QLatin1String("--lesson")) {
            options.lesson = value;
        } else if (name == QLatin1String("--gallery")) {
            options.gallery = value;
        } else if (name == QLatin1String("--cluster")) {
            options.cluster = value;
        } else if (name == QLatin1String("--theme")) {
            static const QStringList kThemes{QStringLiteral("light"), QStringLiteral("dark"),
                QStringLiteral("high-contrast"), QStringLiteral("high-contrast-dark")};
            if (!kThemes.contains(value))
                return wrong(QStringLiteral("--theme takes %1, not \"%2\"")
                                 .arg(kThemes.join(QStringLiteral(", ")), value));
            options.theme = value;
        } else if (name == QLatin1String("--perspective")) {
            if (value != QLatin1String("design") && value != QLatin1String("compare")
                && value != QLatin1String("run"))
                return wrong(
                    QStringLiteral("--perspective takes design, compare or run, not \"%1\"").arg(value));
            options.perspective = value;
        } else if (name == QLatin1String("--sessions")) {
            options.sessions = value;
        } else if (name == QLatin1String("--colour-by")) {
            options.colourBy = value;
        } else if (name == QLatin1String("--screenshot")) {
            options.screenshot = value;
        } else if (name == QLatin1String("--size")) {
            TRY(options.size, sizeFrom(value));
        } else if (name == QLatin1String("--devices")) {
            bool ok = false;
            options.devices = value.toInt(&ok);
            if (!ok || options.devices < 1 || options.devices > 16384)
                return wrong(
                    QStringLiteral("--devices takes a number from 1 to 16384, not \"%1\"").arg(value));
        } else {
            return unknownOption(desktopProgram(), desktopProgram().verbs.front(), name.toStdString());
        }
    }
    TRY_VOID(checkFile(options));
    TRY_VOID(checkLessonName(options.lesson));
    return options;
}

} // namespace planloom
