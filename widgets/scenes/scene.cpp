#include "widgets/scenes/scene.h"

#include <QtCore/QJsonArray>
#include <QtCore/QJsonDocument>
#include <QtCore/QJsonObject>

#include <algorithm>
#include <cmath>

namespace planloom {

namespace {

constexpr int kSceneVersion = 1;
constexpr std::size_t kMostSceneBytes = 16'000'000;
constexpr qsizetype kMostStateCharacters = 100'000;
constexpr qsizetype kMostDocks = 64;
constexpr qsizetype kMostRanges = 10'000;

QJsonObject jsonOf(const Scene &scene)
{
    QJsonArray selected;
    for (const auto &[first, count] : scene.selected) {
        selected.append(first);
        selected.append(count);
    }
    QJsonObject object{{QStringLiteral("name"), scene.name}, {QStringLiteral("note"), scene.note},
        {QStringLiteral("step"), static_cast<qint64>(scene.step)}, {QStringLiteral("branch"), scene.branch},
        {QStringLiteral("timeline"), QString::fromStdString(scene.timeline)},
        {QStringLiteral("graph"), scene.graph}, {QStringLiteral("wholeGraph"), scene.wholeGraph},
        {QStringLiteral("colouring"), scene.colouring},
        {QStringLiteral("graphColouring"), scene.graphColouring},
        {QStringLiteral("canvases"), static_cast<int>(scene.canvases)},
        {QStringLiteral("docks"), QJsonArray::fromStringList(scene.docks)},
        {QStringLiteral("selected"), selected}, {QStringLiteral("plays"), scene.plays},
        {QStringLiteral("seconds"), scene.seconds}};
    if (scene.span)
        object[QLatin1String("span")] = QJsonArray{scene.span->first, scene.span->second};
    if (scene.moment)
        object[QLatin1String("moment")] = *scene.moment;
    return object;
}

/// Reads one scene; `wrong` is the first thing that is not as it should be.
class SceneReader
{
public:
    explicit SceneReader(const QJsonObject &object)
        : m_object(object)
    {
    }

    Scene read()
    {
        Scene scene;
        scene.name = text("name", kMostSceneName);
        if (scene.name.trimmed().isEmpty())
            refuse("has no name");
        scene.note = text("note", kMostSceneNote);
        scene.step = static_cast<StepId>(whole("step", 0, 1e15));
        scene.branch = static_cast<std::int32_t>(whole("branch", 0, 1e9));
        scene.timeline = text("timeline", kMostStateCharacters).toStdString();
        scene.graph = text("graph", kMostStateCharacters);
        scene.wholeGraph = m_object[QLatin1String("wholeGraph")].toBool(true);
        scene.colouring = static_cast<int>(whole("colouring", 0, 1000));
        scene.graphColouring = static_cast<int>(whole("graphColouring", 0, 1000));
        scene.canvases = static_cast<SceneCanvases>(whole("canvases", 0, kSceneCanvasesCount - 1));
        const QJsonArray docks = list("docks", kMostDocks);
        for (const auto &dock : docks)
            scene.docks.append(dock.toString().left(kMostSceneName));
        readSelected(scene);
        readTimes(scene);
        scene.plays = m_object[QLatin1String("plays")].toBool(false);
        scene.seconds = static_cast<int>(whole("seconds", 1, kMostSceneSeconds));
        return scene;
    }
    const std::string &wrong() const { return m_wrong; }

private:
    void refuse(std::string what)
    {
        if (m_wrong.empty())
            m_wrong = std::move(what);
    }
    QString text(const char *name, qsizetype most)
    {
        const QString found = m_object[QLatin1String(name)].toString();
        if (found.size() > most)
            refuse(std::string("has more than ") + std::to_string(most) + " characters of \"" + name + '"');
        return found.left(most);
    }
    double whole(const char *name, double least, double most)
    {
        const double found = m_object[QLatin1String(name)].toDouble(std::nan(""));
        if (!(found >= least && found <= most) || found != std::floor(found)) {
            refuse(std::string("has no whole number from ") + std::to_string(static_cast<std::int64_t>(least))
                + " to " + std::to_string(static_cast<std::int64_t>(most)) + " as \"" + name + '"');
            return least;
        }
        return found;
    }
    QJsonArray list(const char *name, qsizetype most)
    {
        const QJsonArray found = m_object[QLatin1String(name)].toArray();
        if (found.size() <= most)
            return found;
        refuse(std::string("has more than ") + std::to_string(most) + " entries of \"" + name + '"');
        return {};
    }
    void readSelected(Scene &scene)
    {
        const QJsonArray numbers = list("selected", 2 * kMostRanges);
        std::int64_t behind = 0;
        for (qsizetype i = 0; i + 1 < numbers.size(); i += 2) {
            const std::int64_t first = numbers[i].toInt(-1);
            const std::int64_t count = numbers[i + 1].toInt(-1);
            if (first < behind || count < 1 || first + count > std::int64_t{1} << 30) {
                refuse("selects operators that are not in order");
                return;
            }
            behind = first + count;
            scene.selected.emplace_back(static_cast<std::int32_t>(first), static_cast<std::int32_t>(count));
        }
    }
    void readTimes(Scene &scene)
    {
        const QJsonArray span = m_object[QLatin1String("span")].toArray();
        if (span.size() == 2) {
            scene.span = {span[0].toDouble(), span[1].toDouble()};
            if (!(scene.span->second > scene.span->first) || std::abs(scene.span->first) > 1e18
                || std::abs(scene.span->second) > 1e18)
                refuse("shows a stretch of time that ends before it begins");
        }
        if (const QJsonValue moment = m_object[QLatin1String("moment")]; moment.isDouble()) {
            scene.moment = moment.toDouble();
            if (!(*scene.moment >= 0 && *scene.moment <= 1e18))
                refuse("is at a moment before the step begins");
        }
    }

    const QJsonObject &m_object;
    std::string m_wrong{};
};

Error wrongScenes(const std::string &what)
{
    return {ErrorCode::InvalidInput, "the scenes of this session cannot be read: " + what,
        "they are left out; scenes that are made now take their place", {}};
}

} // namespace

std::string sceneText(const std::vector<Scene> &scenes)
{
    QJsonArray list;
    for (const Scene &scene : scenes)
        list.append(jsonOf(scene));
    const QJsonObject whole{{QStringLiteral("version"), kSceneVersion}, {QStringLiteral("scenes"), list}};
    return QJsonDocument(whole).toJson(QJsonDocument::Compact).toStdString();
}

Result<std::vector<Scene>> readScenes(const std::string &text)
{
    std::vector<Scene> scenes;
    if (text.empty())
        return scenes;
    if (text.size() > kMostSceneBytes)
        return wrongScenes("they are larger than 16 MB");
    QJsonParseError failure;
    const QJsonDocument document = QJsonDocument::fromJson(QByteArray::fromStdString(text), &failure);
    if (!document.isObject())
        return wrongScenes("what was found is no JSON object (" + failure.errorString().toStdString() + ")");
    if (document[QLatin1String("version")].toInt(0) != kSceneVersion)
        return wrongScenes("they are of another version of Planloom");
    const QJsonValue list = document[QLatin1String("scenes")];
    if (!list.isArray() || list.toArray().size() > static_cast<qsizetype>(kMostScenes))
        return wrongScenes("there is no list of at most " + std::to_string(kMostScenes) + " of them");
    const QJsonArray entries = list.toArray();
    for (const auto &entry : entries) {
        const QJsonObject object = entry.toObject();
        SceneReader reader(object);
        scenes.push_back(reader.read());
        if (!reader.wrong().empty())
            return wrongScenes("scene " + std::to_string(scenes.size()) + ' ' + reader.wrong());
    }
    return scenes;
}

std::string stateOnWidth(const Scene &scene, double width)
{
    if (!scene.span)
        return scene.timeline;
    QJsonObject state = QJsonDocument::fromJson(QByteArray::fromStdString(scene.timeline)).object();
    state[QLatin1String("fitted")] = false;
    state[QLatin1String("origin")] = scene.span->first;
    state[QLatin1String("scale")] = (scene.span->second - scene.span->first) / width;
    return QJsonDocument(state).toJson(QJsonDocument::Compact).toStdString();
}

QString firstLineOf(const Scene &scene)
{
    const QStringList lines = scene.note.split(QLatin1Char('\n'));
    const auto found = std::find_if(
        lines.begin(), lines.end(), [](const QString &line) { return !line.trimmed().isEmpty(); });
    return found == lines.end() ? QString() : found->trimmed();
}

std::vector<std::pair<std::int32_t, std::int32_t>> rangesOfOperators(const std::vector<OperatorId> &selected)
{
    std::vector<std::pair<std::int32_t, std::int32_t>> ranges;
    for (const OperatorId op : selected) {
        if (!ranges.empty() && ranges.back().first + ranges.back().second == op.index)
            ++ranges.back().second;
        else if (ranges.size() < static_cast<std::size_t>(kMostRanges))
            ranges.emplace_back(op.index, 1);
    }
    return ranges;
}

std::vector<OperatorId> operatorsOfRanges(
    const std::vector<std::pair<std::int32_t, std::int32_t>> &ranges, std::size_t operators)
{
    std::vector<OperatorId> found;
    for (const auto &[first, count] : ranges)
        for (std::int64_t index = first; index < std::int64_t{first} + count; ++index) {
            if (index >= static_cast<std::int64_t>(operators))
                return found;
            found.push_back(OperatorId{static_cast<std::int32_t>(index)});
        }
    return found;
}

} // namespace planloom
