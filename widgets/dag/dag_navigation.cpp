#include "widgets/dag/dag_navigation.h"

#include "engine/base/ids.h"

#include <QtCore/QJsonArray>
#include <QtCore/QJsonDocument>
#include <QtCore/QJsonObject>

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace planloom {

namespace {

void push(std::vector<DagPlace> &places, DagPlace place)
{
    if (!places.empty() && places.back() == place)
        return;
    if (places.size() == DagHistory::kMost)
        places.erase(places.begin());
    places.push_back(std::move(place));
}

std::optional<DagPlace> step(std::vector<DagPlace> &from, std::vector<DagPlace> &to, DagPlace here)
{
    if (from.empty())
        return std::nullopt;
    push(to, std::move(here));
    auto place = std::move(from.back());
    from.pop_back();
    return place;
}

/// "attn", or "attn#2" for the second sibling of that name.
std::string stepOf(const DagOutline &outline, std::int32_t item)
{
    const auto &shown = outline.at(item);
    return shown.number == 1 ? shown.label : shown.label + "#" + std::to_string(shown.number);
}

/// How much of `rest` names the item; 0 if it begins otherwise.
std::size_t namedBy(const OutlineItem &item, std::string_view rest)
{
    const auto &label = item.label;
    if (rest.substr(0, label.size()) != label)
        return 0;
    std::size_t length = label.size();
    if (item.number != 1) {
        const std::string number = "#" + std::to_string(item.number);
        if (rest.substr(length, number.size()) != number)
            return 0;
        length += number.size();
    }
    return rest.size() == length || rest[length] == '/' ? length : 0;
}

/// The child of `item` that `rest` begins with, and how much of it names the child. Labels may hold slashes
/// of their own: the longest one that fits is taken.
std::pair<std::int32_t, std::size_t> childNamed(
    const DagOutline &outline, std::int32_t item, std::string_view rest)
{
    std::pair<std::int32_t, std::size_t> found{-1, 0};
    for (const auto child : outline.at(item).children) {
        if (const std::size_t length = namedBy(outline.at(child), rest); length > 0 && length >= found.second)
            found = {child, length};
    }
    return found;
}

/// Finds many items: those of one group look it up once.
class ItemFinder
{
public:
    explicit ItemFinder(const DagOutline &outline)
        : m_outline(outline)
    {
    }

    std::int32_t find(const std::string &path)
    {
        // What lies around it was most often asked for just before.
        for (std::size_t end = path.rfind('/'); end != std::string::npos && end > 0;
             end = path.rfind('/', end - 1)) {
            const auto known = m_known.find(path.substr(0, end));
            if (known == m_known.end())
                continue;
            const std::string_view rest = std::string_view(path).substr(end + 1);
            if (const auto [child, length] = childNamed(m_outline, known->second, rest);
                child >= 0 && length == rest.size())
                return m_known[path] = child;
            break;
        }
        const std::int32_t item = findItem(m_outline, path);
        if (item > 0)
            m_known[path] = item;
        return item;
    }

private:
    const DagOutline &m_outline;
    std::unordered_map<std::string, std::int32_t> m_known{};
};

constexpr const char *kFormat = "planloom-dag-1";

} // namespace

void DagHistory::leave(DagPlace here)
{
    push(m_behind, std::move(here));
    m_ahead.clear();
}

std::optional<DagPlace> DagHistory::back(DagPlace here)
{
    return step(m_behind, m_ahead, std::move(here));
}

std::optional<DagPlace> DagHistory::forward(DagPlace here)
{
    return step(m_ahead, m_behind, std::move(here));
}

void DagHistory::clear()
{
    m_behind.clear();
    m_ahead.clear();
}

std::vector<std::int32_t> coneOf(
    const DagOutline &outline, const std::vector<std::int32_t> &units, bool forwards, std::int32_t depth)
{
    return wholeCone(outline, units, forwards).within(depth);
}

DagCone wholeCone(const DagOutline &outline, const std::vector<std::int32_t> &units, bool forwards,
    const std::stop_token &stop)
{
    DagCone cone;
    std::vector<char> seen(outline.units.size(), 0);
    const auto visit = [&](std::int32_t unit) {
        if (std::exchange(seen[at(unit)], char{1}) == 0)
            cone.units.push_back(unit);
    };
    for (const auto unit : units)
        visit(unit);
    for (std::size_t begin = 0; begin < cone.units.size() && !stop.stop_requested();) {
        const std::size_t end = cone.units.size();
        cone.ends.push_back(end);
        for (; begin < end; ++begin) {
            const std::int32_t unit = cone.units[begin];
            if (forwards) {
                const auto first = std::lower_bound(outline.edges.begin(), outline.edges.end(), unit,
                    [](const OutlineEdge &edge, std::int32_t wanted) { return edge.from < wanted; });
                for (auto edge = first; edge != outline.edges.end() && edge->from == unit; ++edge)
                    visit(edge->to);
            } else {
                const auto first =
                    std::lower_bound(outline.edgesByTarget.begin(), outline.edgesByTarget.end(), unit,
                        [](const OutlineEdge &edge, std::int32_t wanted) { return edge.to < wanted; });
                for (auto edge = first; edge != outline.edgesByTarget.end() && edge->to == unit; ++edge)
                    visit(edge->from);
            }
        }
    }
    return cone;
}

std::vector<std::int32_t> DagCone::within(std::int32_t depth) const
{
    if (ends.empty())
        return {};
    const std::size_t last = depth < 0 ? ends.size() - 1 : std::min(ends.size() - 1, at(depth));
    const auto end = units.begin() + static_cast<std::ptrdiff_t>(ends[last]);
    std::vector<char> chosen(at(*std::max_element(units.begin(), end)) + 1, 0);
    for (auto unit = units.begin(); unit != end; ++unit)
        chosen[at(*unit)] = 1;
    std::vector<std::int32_t> result;
    result.reserve(ends[last]);
    for (std::size_t unit = 0; unit < chosen.size(); ++unit) {
        if (chosen[unit] != 0)
            result.push_back(static_cast<std::int32_t>(unit));
    }
    return result;
}

std::string pathOfItem(const DagOutline &outline, std::int32_t item)
{
    std::string path;
    for (const auto step : outline.pathTo(item))
        path += (path.empty() ? "" : "/") + stepOf(outline, step);
    return path;
}

std::int32_t findItem(const DagOutline &outline, const std::string &path)
{
    if (path.empty())
        return 0;
    std::int32_t item = 0;
    std::string_view rest(path);
    while (true) {
        const auto [found, length] = childNamed(outline, item, rest);
        if (found < 0)
            return -1;
        item = found;
        if (rest.size() == length)
            return item;
        rest.remove_prefix(length + 1);
    }
}

QString writeViewState(const DagOutline &outline, const DagViewState &state)
{
    const auto paths = [&](const std::set<std::int32_t> &items) {
        QJsonArray array;
        for (const auto item : items) {
            if (item > 0 && at(item) < outline.items.size())
                array.append(QString::fromStdString(pathOfItem(outline, item)));
        }
        return array;
    };
    QJsonObject object;
    object[QStringLiteral("format")] = QLatin1String(kFormat);
    object[QStringLiteral("mode")] = static_cast<int>(state.mode);
    object[QStringLiteral("flow")] = state.flow;
    object[QStringLiteral("x")] = state.place.centreX;
    object[QStringLiteral("y")] = state.place.centreY;
    object[QStringLiteral("scale")] = state.place.scale;
    const auto &shown = state.place.state;
    if (shown.open.size() == at(outline.groups) && shown.unstacked.size() == at(outline.stacks)) {
        object[QStringLiteral("open")] = QStringLiteral("all");
    } else {
        object[QStringLiteral("open")] = paths(state.place.state.open);
        object[QStringLiteral("copies")] = paths(state.place.state.unstacked);
    }
    QJsonObject nudges;
    for (const auto &[item, offset] : state.place.state.nudges)
        nudges[QString::fromStdString(pathOfItem(outline, item))] = QJsonArray{offset.first, offset.second};
    if (!nudges.isEmpty())
        object[QStringLiteral("nudges")] = nudges;
    return QString::fromUtf8(QJsonDocument(object).toJson(QJsonDocument::Compact));
}

std::optional<DagMode> modeOfViewState(const QString &text)
{
    const auto object = QJsonDocument::fromJson(text.toUtf8()).object();
    const int mode = object[QStringLiteral("mode")].toInt(-1);
    if (object[QStringLiteral("format")].toString() != QLatin1String(kFormat) || mode < 0 || mode > 2)
        return std::nullopt;
    return static_cast<DagMode>(mode);
}

std::optional<DagViewState> readViewState(const DagOutline &outline, const QString &text)
{
    const auto mode = modeOfViewState(text);
    if (!mode)
        return std::nullopt;
    const auto object = QJsonDocument::fromJson(text.toUtf8()).object();
    DagViewState state;
    state.mode = *mode;
    state.flow = std::clamp(object[QStringLiteral("flow")].toInt(-1), -1, 1);
    const auto number = [&object](const char *name, double otherwise) {
        const double value = object[QLatin1String(name)].toDouble(otherwise);
        return std::isfinite(value) ? value : otherwise;
    };
    state.place.centreX = number("x", 0);
    state.place.centreY = number("y", 0);
    state.place.scale = std::clamp(number("scale", 1), DagCamera::kLeastScale, DagCamera::kMostScale);
    const auto items = [&](const QJsonValue &value) {
        std::set<std::int32_t> found;
        ItemFinder finder(outline);
        for (const auto &path : value.toArray()) {
            const std::int32_t item = finder.find(path.toString().toStdString());
            if (item > 0 && outline.at(item).kind != OutlineItem::Kind::Operator)
                found.insert(item);
        }
        return found;
    };
    if (object[QStringLiteral("open")].toString() == QLatin1String("all")) {
        state.place.state = fullyOpen(outline);
    } else {
        state.place.state.open = items(object[QStringLiteral("open")]);
        state.place.state.open.insert(0);
        state.place.state.unstacked = items(object[QStringLiteral("copies")]);
    }
    const auto nudges = object[QStringLiteral("nudges")].toObject();
    for (auto each = nudges.begin(); each != nudges.end(); ++each) {
        const std::int32_t item = findItem(outline, each.key().toStdString());
        const auto offset = each.value().toArray();
        if (item > 0 && offset.size() == 2)
            state.place.state.nudges[item] = {offset[0].toDouble(), offset[1].toDouble()};
    }
    return state;
}

} // namespace planloom
