#include "widgets/dag/dag_navigation.h"

#include <QtCore/QJsonArray>
#include <QtCore/QJsonDocument>
#include <QtCore/QJsonObject>

#include <algorithm>
#include <cmath>
#include <utility>

namespace planloom {

namespace {

std::size_t at(std::int32_t index)
{
    return static_cast<std::size_t>(index);
}

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
    const auto &label = outline.at(item).label;
    int number = 1;
    for (const auto sibling : outline.at(outline.at(item).parent).children) {
        if (sibling == item)
            break;
        number += outline.at(sibling).label == label ? 1 : 0;
    }
    return number == 1 ? label : label + "#" + std::to_string(number);
}

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
    std::vector<char> seen(outline.units.size(), 0);
    std::vector<std::int32_t> front;
    for (const auto unit : units) {
        if (std::exchange(seen[at(unit)], char {1}) == 0)
            front.push_back(unit);
    }
    for (std::int32_t round = 0; !front.empty() && (depth < 0 || round < depth); ++round) {
        std::vector<std::int32_t> next;
        for (const auto unit : front) {
            const auto visit = [&](std::int32_t other) {
                if (std::exchange(seen[at(other)], char {1}) == 0)
                    next.push_back(other);
            };
            if (forwards) {
                const auto first = std::lower_bound(outline.edges.begin(), outline.edges.end(), unit,
                    [](const OutlineEdge &edge, std::int32_t wanted) { return edge.from < wanted; });
                for (auto edge = first; edge != outline.edges.end() && edge->from == unit; ++edge)
                    visit(edge->to);
            } else {
                const auto first = std::lower_bound(outline.edgesByTarget.begin(), outline.edgesByTarget.end(), unit,
                    [](const OutlineEdge &edge, std::int32_t wanted) { return edge.to < wanted; });
                for (auto edge = first; edge != outline.edgesByTarget.end() && edge->to == unit; ++edge)
                    visit(edge->from);
            }
        }
        front = std::move(next);
    }
    std::vector<std::int32_t> result;
    for (std::size_t unit = 0; unit < seen.size(); ++unit) {
        if (seen[unit] != 0)
            result.push_back(static_cast<std::int32_t>(unit));
    }
    return result;
}

std::vector<std::int32_t> similarTo(const DagOutline &outline, std::int32_t unit)
{
    std::vector<std::int32_t> result {unit};
    for (const auto item : outline.pathTo(outline.units[at(unit)].item)) { // outer stacks first
        const auto &stack = outline.at(item);
        if (stack.kind != OutlineItem::Kind::Stack)
            continue;
        const auto copies = static_cast<std::int32_t>(stack.children.size());
        const std::int32_t stride = (stack.end - stack.begin) / copies;
        std::vector<std::int32_t> wider;
        for (const auto known : result) {
            // The same stack in another copy of an outer one begins elsewhere, but at a whole number of its own lengths
            // from there; the offset within it is what counts.
            const std::int32_t offset = (unit - stack.begin) % stride;
            const std::int32_t own = known - (unit - stack.begin);
            for (std::int32_t copy = 0; copy < copies; ++copy)
                wider.push_back(own + copy * stride + offset);
        }
        result = std::move(wider);
    }
    if (result.size() == 1) {
        const auto &graph = *outline.graph;
        const auto &wanted = graph.at(outline.units[at(unit)].op);
        const auto &label = outline.at(outline.units[at(unit)].item).label;
        result.clear();
        for (std::size_t other = 0; other < outline.units.size(); ++other) {
            const auto &op = graph.at(outline.units[other].op);
            if (op.kind == wanted.kind && op.direction == wanted.direction
                && outline.at(outline.units[other].item).label == label)
                result.push_back(static_cast<std::int32_t>(other));
        }
    }
    std::sort(result.begin(), result.end());
    result.erase(std::unique(result.begin(), result.end()), result.end());
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
        // Labels may hold slashes of their own: the longest child that fits is taken.
        std::int32_t found = -1;
        std::size_t length = 0;
        for (const auto child : outline.at(item).children) {
            const std::string step = stepOf(outline, child);
            const bool fits = rest.substr(0, step.size()) == step
                && (rest.size() == step.size() || rest[step.size()] == '/');
            if (fits && step.size() >= length) {
                found = child;
                length = step.size();
            }
        }
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
    const auto all = fullyOpen(outline);
    if (state.place.state.open == all.open && state.place.state.unstacked == all.unstacked) {
        object[QStringLiteral("open")] = QStringLiteral("all");
    } else {
        object[QStringLiteral("open")] = paths(state.place.state.open);
        object[QStringLiteral("copies")] = paths(state.place.state.unstacked);
    }
    QJsonObject nudges;
    for (const auto &[item, offset] : state.place.state.nudges)
        nudges[QString::fromStdString(pathOfItem(outline, item))] = QJsonArray {offset.first, offset.second};
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
        for (const auto &path : value.toArray()) {
            const std::int32_t item = findItem(outline, path.toString().toStdString());
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
