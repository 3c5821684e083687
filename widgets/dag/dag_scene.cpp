#include "widgets/dag/dag_scene.h"

#include "engine/base/ids.h"
#include "widgets/common/format.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace planloom {

namespace {

std::string countOf(std::size_t count, const char *one, const char *many)
{
    return formatCount(static_cast<std::int64_t>(count)) + " " + (count == 1 ? one : many);
}

/// "4×64×768"
std::string compactShape(const Shape &shape)
{
    if (shape.empty())
        return "scalar";
    std::string text;
    for (const auto extent : shape) {
        if (!text.empty())
            text += "×";
        text += std::to_string(extent);
    }
    return text;
}

/// Size of a node from what is written on it.
SceneRect sizeOf(const BoxText &text, const TextMeasure &measure)
{
    double width = std::max(measure(text.title, true), measure(text.subtitle, false)) + text.besides();
    width = std::clamp(std::ceil(width), DagMetrics::kLeastNodeWidth, DagMetrics::kMostNodeWidth);
    return {0, 0, width, DagMetrics::kNodeHeight};
}

/// One frame being laid out.
struct Inside {
    LayeredGraph graph{};
    std::shared_ptr<const LayeredLayout> layout{};
    double left = 0; ///< Of the layout's origin, within the frame.
    double top = 0;
    double width = 0; ///< Of the frame.
    double height = 0;
};

class Composer
{
public:
    Composer(const DagOutline &outline, const VisibleGraph &visible, const TextMeasure &measure, DagFlow flow)
        : m_outline(outline)
        , m_visible(visible)
        , m_measure(measure)
        , m_right(flow == DagFlow::Right)
    {
        m_scene.flow = flow;
    }

    std::optional<DagScene> compose(const LayoutEngine &engine)
    {
        const std::size_t boxes = m_visible.boxes.size();
        m_scene.rects.resize(boxes);
        m_scene.texts.reserve(boxes);
        for (std::size_t box = 0; box < boxes; ++box) {
            m_scene.texts.push_back(textOf(m_outline, m_visible, static_cast<std::int32_t>(box)));
            if (!m_visible.boxes[box].frame)
                m_scene.rects[box] = sizeOf(m_scene.texts.back(), m_measure);
        }
        m_insides.resize(m_visible.frames.size());
        bool complete = true;
        for (std::size_t frame = m_visible.frames.size(); frame-- > 0;) // inner frames first
            complete &= layOut(frame, engine);
        if (!complete)
            return std::nullopt;
        place();
        return std::move(m_scene);
    }

private:
    bool layOut(std::size_t index, const LayoutEngine &engine)
    {
        const auto &frame = m_visible.frames[index];
        const auto &children = m_visible.at(frame.box).children;
        auto &inside = m_insides[index];
        for (const auto child : children) {
            if (m_visible.at(child).frame && !m_insides[at(m_visible.frameOf[at(child)])].layout)
                return false;
            const auto &rect = m_scene.rects[at(child)];
            inside.graph.nodes.push_back(
                m_right ? LayeredNode{rect.height, rect.width} : LayeredNode{rect.width, rect.height});
        }
        for (const auto &port : frame.ports) {
            const auto pin = port.in ? LayeredNode::Pin::First : LayeredNode::Pin::Last;
            inside.graph.nodes.push_back({0, 0, pin});
        }
        for (const auto &link : frame.links)
            inside.graph.edges.push_back({link.from, link.to, portOffset(frame, link.from, link.fromPort),
                portOffset(frame, link.to, link.toPort)});
        if (m_right) { // boxes are wider than high: closer side by side, further apart along the flow
            inside.graph.nodeGap = 18;
            inside.graph.rankGap = 34;
            inside.graph.wrapAspect = 1 / inside.graph.wrapAspect;
        }
        inside.layout = engine(inside.graph);
        if (!inside.layout)
            return false;
        const bool isModel = frame.box == 0;
        const double padding = isModel ? 0 : DagMetrics::kFramePadding;
        const double header = isModel ? 0 : DagMetrics::kFrameHeader;
        const auto &text = m_scene.texts[at(frame.box)];
        const bool stack = m_outline.at(m_visible.at(frame.box).item).kind == OutlineItem::Kind::Stack;
        const double title =
            isModel ? 0 : m_measure(text.title, true) + m_measure(text.subtitle, false) + (stack ? 150 : 52);
        const auto extent = turned({inside.layout->width, inside.layout->height});
        inside.width = std::max(extent.x + 2 * padding, title);
        inside.left = (inside.width - extent.x) / 2;
        inside.top = isModel ? 0 : header + padding / 2;
        inside.height = inside.top + extent.y + padding;
        auto &rect = m_scene.rects[at(frame.box)];
        rect.width = inside.width;
        rect.height = inside.height;
        return true;
    }

    /// How far from a child's middle its port lies; 0 for nodes and for the frame's own ports.
    double portOffset(const VisibleFrame &frame, std::int32_t end, std::int32_t port) const
    {
        const auto &children = m_visible.at(frame.box).children;
        if (port < 0 || at(end) >= children.size())
            return 0;
        const std::int32_t child = children[at(end)];
        const auto &inner = m_insides[at(m_visible.frameOf[at(child)])];
        const std::size_t node = m_visible.at(child).children.size() + at(port);
        const double across = inner.layout->centres[node].x;
        return m_right ? inner.top + across - inner.height / 2 : inner.left + across - inner.width / 2;
    }

    /// Between the layout's coordinates, where data flows down, and the scene's.
    LayoutPoint turned(LayoutPoint point) const { return m_right ? LayoutPoint{point.y, point.x} : point; }

    void place()
    {
        for (std::size_t index = 0; index < m_visible.frames.size(); ++index) // outer frames first
            placeInside(m_visible.frames[index], m_insides[index]);
        for (const auto &edge : m_visible.remote) {
            addStub(edge.to, edge.from, 0, true);
            addStub(edge.from, edge.to, 0, false);
        }
        std::stable_sort(m_scene.paths.begin(), m_scene.paths.end(),
            [](const ScenePath &a, const ScenePath &b) { return a.source < b.source; });
        for (auto &[key, stub] : m_stubs) {
            std::sort(stub.others.begin(), stub.others.end());
            stub.others.erase(std::unique(stub.others.begin(), stub.others.end()), stub.others.end());
            m_scene.stubs.push_back(std::move(stub));
        }
        m_scene.bounds = m_scene.rects.front();
    }

    void placeInside(const VisibleFrame &frame, const Inside &inside)
    {
        const auto &children = m_visible.at(frame.box).children;
        const SceneRect outer = m_scene.rects[at(frame.box)];
        const LayoutPoint origin{outer.x + inside.left, outer.y + inside.top};
        for (std::size_t i = 0; i < children.size(); ++i) {
            auto &rect = m_scene.rects[at(children[i])];
            const auto centre = turned(inside.layout->centres[i]);
            rect.x = origin.x + centre.x - rect.width / 2;
            rect.y = origin.y + centre.y - rect.height / 2;
        }
        for (std::size_t i = 0; i < frame.links.size(); ++i) {
            const auto &link = frame.links[i];
            const auto &route = inside.layout->routes[i];
            if (route.kind == EdgeRoute::Routed)
                addPath(frame, link, route, outer, origin);
            else if (route.kind == EdgeRoute::Stub)
                addStubs(frame, link);
        }
    }

    void addPath(const VisibleFrame &frame, const FrameLink &link, const LayeredRoute &route,
        const SceneRect &outer, LayoutPoint origin)
    {
        const auto &own = m_visible.at(frame.box).children;
        ScenePath path;
        path.source = link.source;
        path.frame = frame.box;
        path.target = at(link.to) < own.size() ? own[at(link.to)] : -1;
        path.begin = static_cast<std::uint32_t>(m_scene.points.size());
        for (const auto &point : route.points) {
            const auto here = turned(point);
            m_scene.points.push_back({origin.x + here.x, origin.y + here.y});
        }
        path.end = static_cast<std::uint32_t>(m_scene.points.size());
        // Data that comes from outside, or goes there, passes the frame's border.
        auto &first = m_scene.points[path.begin];
        auto &last = m_scene.points[path.end - 1];
        if (at(link.from) >= own.size())
            (m_right ? first.x : first.y) = m_right ? outer.x : outer.y;
        if (path.target < 0)
            (m_right ? last.x : last.y) = m_right ? outer.right() : outer.bottom();
        double minX = first.x;
        double maxX = first.x;
        double minY = first.y;
        double maxY = first.y;
        for (std::uint32_t i = path.begin; i < path.end; ++i) {
            minX = std::min(minX, m_scene.points[i].x);
            maxX = std::max(maxX, m_scene.points[i].x);
            minY = std::min(minY, m_scene.points[i].y);
            maxY = std::max(maxY, m_scene.points[i].y);
        }
        path.bounds = {minX - 1, minY - 1, maxX - minX + 2, maxY - minY + 2};
        m_scene.paths.push_back(path);
    }

    void addStubs(const VisibleFrame &frame, const FrameLink &link)
    {
        const auto &children = m_visible.at(frame.box).children;
        const std::int32_t target = at(link.to) < children.size() ? children[at(link.to)] : -1;
        if (target >= 0)
            addStub(target, link.source, portOffset(frame, link.to, link.toPort), true);
        if (at(link.from) < children.size())
            addStub(children[at(link.from)], target, portOffset(frame, link.from, link.fromPort), false);
    }

    /// @param offset  across the flow, from the box's middle
    void addStub(std::int32_t box, std::int32_t other, double offset, bool atTarget)
    {
        const bool frame = m_visible.at(box).frame;
        // Pills on a node join; on a frame each stands at its port.
        auto &stub = m_stubs[std::tuple(box, atTarget, frame ? std::lround(offset) : 0L)];
        const auto &rect = m_scene.rects[at(box)];
        stub.box = box;
        stub.atTarget = atTarget;
        if (m_right) {
            stub.x = atTarget ? rect.x : rect.right();
            stub.y = rect.y + rect.height / 2 + offset;
        } else {
            stub.x = rect.x + rect.width / 2 + offset;
            stub.y = atTarget ? rect.y : rect.bottom();
        }
        if (m_right && atTarget && !frame) { // edges come in at the left: names stand on top
            stub.x = rect.x + std::min(60.0, rect.width / 2);
            stub.y = rect.y;
        }
        if (other >= 0)
            stub.others.push_back(other);
    }

    const DagOutline &m_outline;
    const VisibleGraph &m_visible;
    const TextMeasure &m_measure;
    bool m_right;
    DagScene m_scene{};
    std::vector<Inside> m_insides{}; ///< By frame.
    std::map<std::tuple<std::int32_t, bool, long>, SceneStub> m_stubs{};
};

} // namespace

double BoxText::besides() const
{
    return DagMetrics::kTextLeft + DagMetrics::kTextRight + (twin || step ? DagMetrics::kTwinWidth : 0)
        + (opens ? 14 : 0);
}

BoxText textOf(const DagOutline &outline, const VisibleGraph &visible, std::int32_t box)
{
    const auto &shown = visible.at(box);
    const auto &item = outline.at(shown.item);
    BoxText text;
    text.opens = item.kind != OutlineItem::Kind::Operator;
    const auto size = static_cast<std::size_t>(item.end - item.begin);
    switch (item.kind) {
    case OutlineItem::Kind::Operator: {
        const auto &unit = outline.units[at(item.begin)];
        const auto &op = outline.graph->at(unit.op);
        text.title = item.label;
        const auto &graph = *outline.graph;
        const auto isOpaque = [&graph](TensorId id) { return id.valid() && !graph.at(id).typeKnown; };
        text.subtitle = typeNameOf(op);
        text.behindUnread = std::any_of(op.inputs.begin(), op.inputs.end(), isOpaque);
        text.unread = !text.behindUnread && std::any_of(op.outputs.begin(), op.outputs.end(), isOpaque);
        for (const auto output : op.outputs) {
            if (output.valid()) {
                text.subtitle +=
                    " · " + (isOpaque(output) ? std::string("?") : compactShape(graph.at(output).type.shape));
                break;
            }
        }
        text.twin = unit.backward.valid();
        text.step = !unit.optimizers.empty();
        break;
    }
    case OutlineItem::Kind::Group:
        text.title = item.label;
        text.subtitle = countOf(size, "operator", "operators");
        break;
    case OutlineItem::Kind::Stack: {
        const auto count = item.children.size();
        text.title = item.label + " ×" + std::to_string(count);
        text.subtitle = countOf(size / count, "operator each", "operators each");
        break;
    }
    }
    return text;
}

std::int32_t DagScene::boxAt(const VisibleGraph &visible, double x, double y) const
{
    std::int32_t found = 0;
    for (std::size_t box = 1; box < rects.size(); ++box) { // children come after their frames
        if (rects[box].contains(x, y) && visible.boxes[box].depth >= visible.at(found).depth)
            found = static_cast<std::int32_t>(box);
    }
    return found;
}

std::int32_t DagScene::neighbour(const VisibleGraph &visible, std::int32_t from, int dx, int dy) const
{
    const auto &start = rects[at(from)];
    const double x = start.x + start.width / 2;
    const double y = start.y + start.height / 2;
    double best = std::numeric_limits<double>::max();
    std::int32_t found = -1;
    for (std::size_t box = 1; box < rects.size(); ++box) {
        if (visible.boxes[box].frame || static_cast<std::int32_t>(box) == from)
            continue;
        const double offX = rects[box].x + rects[box].width / 2 - x;
        const double offY = rects[box].y + rects[box].height / 2 - y;
        const double along = offX * dx + offY * dy;
        const double across = std::abs(offX * dy) + std::abs(offY * dx);
        if (along < 1)
            continue;
        // Straight ahead before near: a step sideways counts double, more than 60 degrees off not at all.
        if (across > 1.8 * along)
            continue;
        const double distance = along + 2 * across;
        if (distance < best) {
            best = distance;
            found = static_cast<std::int32_t>(box);
        }
    }
    return found;
}

LayoutKey keyOf(const LayeredGraph &graph)
{
    LayoutKey key{0x243F6A8885A308D3ULL, 0x13198A2E03707344ULL};
    const auto mix = [&key](std::uint64_t value) {
        key[0] = (key[0] ^ value) * 0x9E3779B97F4A7C15ULL;
        key[0] ^= key[0] >> 29U;
        key[1] = (key[1] + value) * 0xC2B2AE3D27D4EB4FULL;
        key[1] ^= key[1] >> 31U;
    };
    const auto mixLength = [&mix](double value) { mix(std::bit_cast<std::uint64_t>(value + 0.0)); };
    mix(graph.nodes.size());
    for (const auto &node : graph.nodes) {
        mixLength(node.width);
        mixLength(node.height);
        mix(static_cast<std::uint64_t>(node.pin));
    }
    mix(graph.edges.size());
    for (const auto &edge : graph.edges) {
        mix(static_cast<std::uint64_t>(edge.from));
        mix(static_cast<std::uint64_t>(edge.to));
        mixLength(edge.fromOffset);
        mixLength(edge.toOffset);
    }
    mixLength(graph.nodeGap);
    mixLength(graph.rankGap);
    mixLength(graph.bendGap);
    mixLength(graph.wrapAspect);
    mix(static_cast<std::uint64_t>(graph.longestSpan));
    return key;
}

std::shared_ptr<const LayeredLayout> LayoutCache::find(const LayoutKey &key) const
{
    const std::lock_guard lock(m_mutex);
    const auto found = m_layouts.find(key);
    return found == m_layouts.end() ? nullptr : found->second;
}

void LayoutCache::insert(const LayoutKey &key, std::shared_ptr<const LayeredLayout> layout)
{
    std::size_t points = layout->centres.size();
    for (const auto &route : layout->routes)
        points += route.points.size();
    const std::lock_guard lock(m_mutex);
    if (m_points + points > kMostPoints) { // what is in use is laid out again soon enough
        m_layouts.clear();
        m_points = 0;
    }
    if (m_layouts.insert_or_assign(key, std::move(layout)).second)
        m_points += points;
}

std::size_t LayoutCache::size() const
{
    const std::lock_guard lock(m_mutex);
    return m_layouts.size();
}

std::optional<DagScene> composeScene(const DagOutline &outline, const VisibleGraph &visible,
    const TextMeasure &measure, const LayoutEngine &engine, DagFlow flow)
{
    return Composer(outline, visible, measure, flow).compose(engine);
}

LayoutEngine layeredEngine(LayoutCache &cache, std::stop_token stop)
{
    return [&cache, stop = std::move(stop)](const LayeredGraph &graph) {
        const LayoutKey key = keyOf(graph);
        auto layout = cache.find(key);
        if (!layout) {
            layout = std::make_shared<const LayeredLayout>(wrapped(graph, layeredLayout(graph, stop)));
            if (!stop.stop_requested())
                cache.insert(key, layout);
        }
        return layout;
    };
}

} // namespace planloom
