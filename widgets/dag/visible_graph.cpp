#include "widgets/dag/visible_graph.h"

#include "engine/base/ids.h"

#include <algorithm>
#include <deque>
#include <numeric>
#include <utility>

namespace planloom {

namespace {

class VisibleGraphBuilder
{
public:
    VisibleGraphBuilder(const DagOutline &outline, const DagState &state)
        : m_outline(outline)
        , m_state(state)
    {
    }

    VisibleGraph build()
    {
        m_visible.boxOfUnit.assign(m_outline.units.size(), -1);
        m_stackOfUnit.assign(m_outline.units.size(), -1);
        addBox(0, -1, 1, 0, -1);
        listUnits();
        addFrames();
        addEdges();
        return std::move(m_visible);
    }

private:
    /// A stack of which one copy stands for all.
    struct Represented {
        std::int32_t begin; ///< First unit.
        std::int32_t stride; ///< Units of a copy.
        std::int32_t outer; ///< Represented stack around it, or -1.
    };

    bool isOpen(std::int32_t item) const { return item == 0 || m_state.open.contains(item); }

    std::int32_t addBox(std::int32_t itemIndex, std::int32_t parent, std::int32_t copies, std::int32_t depth,
        std::int32_t stack)
    {
        const auto &item = m_outline.at(itemIndex);
        const auto box = static_cast<std::int32_t>(m_visible.boxes.size());
        const bool frame = item.kind != OutlineItem::Kind::Operator && isOpen(itemIndex);
        m_visible.boxes.push_back({.item = itemIndex,
            .parent = parent,
            .frame = frame,
            .copies = copies,
            .depth = depth,
            .children = {}});
        if (!frame) {
            for (std::int32_t unit = item.begin; unit < item.end; ++unit) {
                m_visible.boxOfUnit[at(unit)] = box;
                m_stackOfUnit[at(unit)] = stack;
            }
            return box;
        }
        std::vector<std::int32_t> children;
        const bool represented =
            item.kind == OutlineItem::Kind::Stack && !m_state.unstacked.contains(itemIndex);
        if (represented) {
            const auto &first = m_outline.at(item.children.front());
            const auto count = static_cast<std::int32_t>(item.children.size());
            const std::int32_t stride = first.end - first.begin;
            const auto inner = static_cast<std::int32_t>(m_represented.size());
            m_represented.push_back({item.begin, stride, stack});
            for (const auto child : first.children)
                children.push_back(addBox(child, box, copies * count, depth + 1, inner));
            for (std::int32_t unit = item.begin + stride; unit < item.end; ++unit) {
                const std::int32_t same = item.begin + (unit - item.begin) % stride;
                m_visible.boxOfUnit[at(unit)] = m_visible.boxOfUnit[at(same)];
                m_stackOfUnit[at(unit)] = m_stackOfUnit[at(same)];
            }
        } else {
            for (const auto child : item.children)
                children.push_back(addBox(child, box, copies, depth + 1, stack));
        }
        m_visible.boxes[at(box)].children = std::move(children);
        return box;
    }

    void listUnits()
    {
        m_visible.unitBegin.assign(m_visible.boxes.size() + 1, 0);
        for (const auto box : m_visible.boxOfUnit)
            ++m_visible.unitBegin[at(box) + 1];
        std::partial_sum(m_visible.unitBegin.begin(), m_visible.unitBegin.end(), m_visible.unitBegin.begin());
        m_visible.unitList.resize(m_visible.boxOfUnit.size());
        auto next = m_visible.unitBegin;
        for (std::size_t unit = 0; unit < m_visible.boxOfUnit.size(); ++unit)
            m_visible.unitList[at(next[at(m_visible.boxOfUnit[unit])]++)] = static_cast<std::int32_t>(unit);
    }

    void addFrames()
    {
        m_visible.frameOf.assign(m_visible.boxes.size(), -1);
        m_place.assign(m_visible.boxes.size(), 0);
        for (std::size_t box = 0; box < m_visible.boxes.size(); ++box) {
            if (!m_visible.boxes[box].frame)
                continue;
            m_visible.frameOf[box] = static_cast<std::int32_t>(m_visible.frames.size());
            m_visible.frames.push_back({.box = static_cast<std::int32_t>(box), .ports = {}, .links = {}});
            const auto &children = m_visible.boxes[box].children;
            for (std::size_t i = 0; i < children.size(); ++i)
                m_place[at(children[i])] = static_cast<std::int32_t>(i);
        }
    }

    /// False if the ends lie in different copies of a stack of which one copy stands for all.
    bool inSameCopies(std::int32_t from, std::int32_t to) const
    {
        // Stacks around both ends, from the inside; the numbering of units makes this a matter of division.
        for (std::int32_t stack = m_stackOfUnit[at(to)]; stack >= 0; stack = m_represented[at(stack)].outer) {
            if (!isWithin(from, stack))
                continue;
            const auto &represented = m_represented[at(stack)];
            if (offsetIn(from, stack) / represented.stride != offsetIn(to, stack) / represented.stride)
                return false;
        }
        return true;
    }

    bool isWithin(std::int32_t unit, std::int32_t stack) const
    {
        for (std::int32_t s = m_stackOfUnit[at(unit)]; s >= 0; s = m_represented[at(s)].outer) {
            if (s == stack)
                return true;
        }
        return false;
    }

    /// Where a unit would lie in the representative's own numbering of `stack`: copies of outer stacks
    /// removed.
    std::int32_t offsetIn(std::int32_t unit, std::int32_t stack) const
    {
        const auto &represented = m_represented[at(stack)];
        if (represented.outer >= 0) {
            const auto &outer = m_represented[at(represented.outer)];
            unit = outer.begin + offsetIn(unit, represented.outer) % outer.stride;
        }
        return unit - represented.begin;
    }

    void addEdges()
    {
        auto &edges = m_visible.edges;
        for (const auto &edge : m_outline.edges) {
            const std::int32_t from = m_visible.boxOfUnit[at(edge.from)];
            const std::int32_t to = m_visible.boxOfUnit[at(edge.to)];
            if (from != to && inSameCopies(edge.from, edge.to))
                edges.push_back({from, to});
        }
        std::sort(edges.begin(), edges.end());
        edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
        countPorts();
        const std::size_t boxes = m_visible.boxes.size();
        m_portOf[0] = m_portOf[1] = m_left = m_reached = LastMet(boxes);
        m_port[0].assign(boxes, -1);
        m_port[1].assign(boxes, -1);
        for (const auto &edge : edges) {
            if (needsCrowdedFrame(edge))
                m_visible.remote.push_back(edge);
            else
                addLinks(edge);
        }
    }

    std::int32_t parentOf(std::int32_t box) const { return m_visible.boxes[at(box)].parent; }

    /// Calls `leave(frame)` for each frame an edge leaves, `enter(frame)` for each it enters (inner first);
    /// returns the frame in which both ends meet.
    template<typename Leave, typename Enter>
    std::int32_t climb(const VisibleEdge &edge, Leave leave, Enter enter) const
    {
        std::int32_t a = parentOf(edge.from);
        std::int32_t b = parentOf(edge.to);
        while (a != b) {
            if (m_visible.boxes[at(a)].depth >= m_visible.boxes[at(b)].depth) {
                leave(a);
                a = parentOf(a);
            } else {
                enter(b);
                b = parentOf(b);
            }
        }
        return a;
    }

    /// Edges come by source: whether a frame has met the present one is a matter of which it met last.
    struct LastMet {
        explicit LastMet(std::size_t boxes)
            : source(boxes, -1)
        {
        }
        /// True the first time for each source.
        bool meets(std::int32_t box, std::int32_t other)
        {
            return std::exchange(source[at(box)], other) != other;
        }
        std::vector<std::int32_t> source;
    };

    void countPorts()
    {
        LastMet ins(m_visible.boxes.size());
        LastMet outs(m_visible.boxes.size());
        m_inPorts.assign(m_visible.boxes.size(), 0);
        m_outPorts.assign(m_visible.boxes.size(), 0);
        for (const auto &edge : m_visible.edges) {
            climb(
                edge,
                [&](std::int32_t frame) {
                    if (outs.meets(frame, edge.from))
                        ++m_outPorts[at(frame)];
                },
                [&](std::int32_t frame) {
                    if (ins.meets(frame, edge.from))
                        ++m_inPorts[at(frame)];
                });
        }
    }

    bool needsCrowdedFrame(const VisibleEdge &edge) const
    {
        bool crowded = false;
        climb(
            edge, [&](std::int32_t frame) { crowded |= m_outPorts[at(frame)] > VisibleGraph::kMostPorts; },
            [&](std::int32_t frame) { crowded |= m_inPorts[at(frame)] > VisibleGraph::kMostPorts; });
        return crowded;
    }

    std::int32_t portOf(std::int32_t frameBox, std::int32_t source, bool in)
    {
        auto &frame = m_visible.frames[at(m_visible.frameOf[at(frameBox)])];
        std::int32_t &port = m_port[in ? 1 : 0][at(frameBox)];
        if (m_portOf[in ? 1 : 0].meets(frameBox, source)) {
            port = static_cast<std::int32_t>(frame.ports.size());
            frame.ports.push_back({.source = source, .in = in});
        }
        return port;
    }

    void addLink(std::int32_t frameBox, FrameLink link)
    {
        m_visible.frames[at(m_visible.frameOf[at(frameBox)])].links.push_back(link);
    }

    void addLinks(const VisibleEdge &edge)
    {
        const auto countOf = [this](std::int32_t box) {
            return static_cast<std::int32_t>(m_visible.boxes[at(box)].children.size());
        };
        std::int32_t fromBox = edge.from;
        std::int32_t fromPort = -1;
        std::int32_t toBox = edge.to;
        std::int32_t toPort = -1;
        const std::int32_t meeting = climb(
            edge,
            [&](std::int32_t frame) {
                const std::int32_t port = portOf(frame, edge.from, false);
                // One link for each way data of one source takes through a frame. Within a frame it leaves
                // from one place ...
                if (m_left.meets(frame, edge.from))
                    addLink(frame, {m_place[at(fromBox)], countOf(frame) + port, fromPort, -1, edge.from});
                fromBox = frame;
                fromPort = port;
            },
            [&](std::int32_t frame) {
                const std::int32_t port = portOf(frame, edge.from, true);
                if (m_reached.meets(toBox, edge.from)) // ... and comes to each box from one place
                    addLink(frame, {countOf(frame) + port, m_place[at(toBox)], -1, toPort, edge.from});
                toBox = frame;
                toPort = port;
            });
        if (m_reached.meets(toBox, edge.from))
            addLink(meeting, {m_place[at(fromBox)], m_place[at(toBox)], fromPort, toPort, edge.from});
    }

    const DagOutline &m_outline;
    const DagState &m_state;
    VisibleGraph m_visible{};
    std::vector<Represented> m_represented{};
    std::vector<std::int32_t> m_stackOfUnit{}; ///< Innermost represented stack around a unit, or -1.
    std::vector<std::int32_t> m_place{}; ///< By box: index among its parent's children.
    std::vector<std::size_t> m_inPorts{};
    std::vector<std::size_t> m_outPorts{};
    LastMet m_portOf[2]{LastMet(0), LastMet(0)}; ///< By frame, of ports out and in.
    std::vector<std::int32_t> m_port[2]{}; ///< The last one's number.
    LastMet m_left{0}; ///< By frame.
    LastMet m_reached{0}; ///< By box.
};

} // namespace

DagState initialState(const DagOutline &outline, std::size_t most)
{
    DagState state;
    state.open.insert(0);
    std::size_t showing = outline.at(0).children.size();
    std::deque<std::int32_t> waiting;
    // Stacks before groups, for what repeats is what a model is about; then the groups that hold the most.
    const auto queue = [&](std::vector<std::int32_t> children) {
        std::stable_sort(children.begin(), children.end(), [&](std::int32_t a, std::int32_t b) {
            const auto &first = outline.at(a);
            const auto &second = outline.at(b);
            const bool stackFirst = first.kind == OutlineItem::Kind::Stack;
            const bool stackSecond = second.kind == OutlineItem::Kind::Stack;
            return stackFirst != stackSecond ? stackFirst
                                             : first.end - first.begin > second.end - second.begin;
        });
        waiting.insert(waiting.end(), children.begin(), children.end());
    };
    queue(outline.at(0).children);
    while (!waiting.empty()) {
        const std::int32_t item = waiting.front();
        waiting.pop_front();
        if (outline.at(item).kind == OutlineItem::Kind::Operator)
            continue;
        const bool stack = outline.at(item).kind == OutlineItem::Kind::Stack;
        const auto &inner =
            stack ? outline.at(outline.at(item).children.front()).children : outline.at(item).children;
        // A group that alone fills the picture is opened whatever its size: a lone box says nothing.
        if (showing > 1 && showing - 1 + inner.size() > most)
            continue;
        showing += inner.size() - 1;
        state.open.insert(item);
        queue(inner);
    }
    return state;
}

DagState fullyOpen(const DagOutline &outline)
{
    DagState state;
    for (std::size_t i = 0; i < outline.items.size(); ++i) {
        const auto item = static_cast<std::int32_t>(i);
        if (outline.items[i].kind != OutlineItem::Kind::Operator)
            state.open.insert(state.open.end(), item);
        if (outline.items[i].kind == OutlineItem::Kind::Stack)
            state.unstacked.insert(state.unstacked.end(), item);
    }
    return state;
}

std::int32_t VisibleGraph::boxOfItem(std::int32_t item) const
{
    for (std::size_t box = 0; box < boxes.size(); ++box) {
        if (boxes[box].item == item)
            return static_cast<std::int32_t>(box);
    }
    return -1;
}

VisibleGraph visibleGraph(const DagOutline &outline, const DagState &state)
{
    return VisibleGraphBuilder(outline, state).build();
}

std::vector<OperatorId> operatorsOf(
    const DagOutline &outline, const VisibleGraph &visible, std::int32_t box, bool folded)
{
    std::vector<OperatorId> result;
    const auto collect = [&](auto &&self, std::int32_t inner) -> void {
        for (const auto child : visible.at(inner).children)
            self(self, child);
        for (std::int32_t i = visible.unitBegin[static_cast<std::size_t>(inner)];
             i < visible.unitBegin[static_cast<std::size_t>(inner) + 1]; ++i) {
            const auto &unit =
                outline.units[static_cast<std::size_t>(visible.unitList[static_cast<std::size_t>(i)])];
            result.push_back(unit.op);
            if (!folded)
                continue;
            if (unit.backward.valid())
                result.push_back(unit.backward);
            result.insert(result.end(), unit.optimizers.begin(), unit.optimizers.end());
        }
    };
    collect(collect, box);
    std::sort(result.begin(), result.end());
    return result;
}

} // namespace planloom
