#pragma once

#include "engine/layered/layered_layout.h"
#include "widgets/dag/visible_graph.h"

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace planloom {

/// Width of a text in scene units. Called from worker threads: must be thread-safe.
using TextMeasure = std::function<double(const std::string &text, bool bold)>;

/// Where data flows to on the canvas.
enum class DagFlow : std::uint8_t { Down, Right };

/// Scene units that painting and layout share.
struct DagMetrics {
    static constexpr double kNodeHeight = 38;
    static constexpr double kLeastNodeWidth = 84;
    static constexpr double kMostNodeWidth = 250;
    static constexpr double kTextLeft = 13; ///< From a node's left edge, behind its colour bar.
    static constexpr double kTextRight = 9;
    static constexpr double kTwinWidth = 24; ///< Column at the right of a node for its backward operator.
    static constexpr double kStackStep = 5; ///< Offset of the cards behind a stack.
    static constexpr double kFrameHeader = 26;
    static constexpr double kFramePadding = 16;
    static constexpr double kTitleSize = 12; ///< Pixels at zoom 1.
    static constexpr double kSubtitleSize = 10;
    /// Titles are written in this share of the box's width, so relatively larger than at zoom 1: at middle
    /// zooms ...
    static constexpr double kMiddleShare = 0.85;
    static constexpr double kFarShare = 0.62; ///< ... and from further away.
};

/// An axis-parallel rectangle.
struct SceneRect {
    double x = 0;
    double y = 0;
    double width = 0;
    double height = 0;
    double right() const { return x + width; }
    double bottom() const { return y + height; }
    bool contains(double px, double py) const { return px >= x && px < right() && py >= y && py < bottom(); }
    bool intersects(const SceneRect &other) const
    {
        return x < other.right() && other.x < right() && y < other.bottom() && other.y < bottom();
    }
    friend bool operator==(const SceneRect &, const SceneRect &) = default;
};

/// What is written on a box.
struct BoxText {
    std::string title{};
    std::string subtitle{}; ///< Kind and shape; size of a group.
    bool twin = false; ///< A backward operator stands beside it.
    bool step = false; ///< An optimizer step is folded into it.
    bool opens = false; ///< A group or stack.
    /// Of operators in models that are open to be looked at alone: this one could not be read, or reads what
    /// such ones make.
    bool unread = false;
    bool behindUnread = false;
    /// What of its width the texts cannot use.
    double besides() const;
};
BoxText textOf(const DagOutline &outline, const VisibleGraph &visible, std::int32_t box);

/// A stretch of data flow as drawn: points as in `LayeredRoute` in scene coordinates; x and y change roles if
/// the flow is to the right.
struct ScenePath {
    std::int32_t source = 0; ///< Box of the node whose data it is.
    std::int32_t target = -1; ///< Child box of the frame it ends at; -1 if it ends at the frame's border.
    std::int32_t frame = 0; ///< Box.
    std::uint32_t begin = 0; ///< Points [begin, end) of `DagScene::points`.
    std::uint32_t end = 0;
    SceneRect bounds{};
};

/// Marks the end of edges that are not drawn: at a target's top the names of its sources, where data leaves a
/// source a tick.
struct SceneStub {
    std::int32_t box = 0; ///< Node or frame it stands at.
    double x = 0; ///< Where the pill, or the tick, touches the box's border.
    double y = 0;
    bool atTarget = true;
    std::vector<std::int32_t> others{}; ///< Boxes at the other ends, ascending.
};

/// Everything in sight with its place. Immutable; arrays are by box of the visible graph.
struct DagScene {
    std::vector<SceneRect> rects{};
    std::vector<BoxText> texts{};
    std::vector<ScenePath> paths{}; ///< Ascending by source.
    std::vector<LayoutPoint> points{};
    std::vector<SceneStub> stubs{};
    SceneRect bounds{};
    DagFlow flow = DagFlow::Down;

    /// Box at a place: a node before the frame it is in; 0 (the model) for empty ground. O(boxes).
    std::int32_t boxAt(const VisibleGraph &visible, double x, double y) const;
    /// Node nearest to `from` in a direction (dx, dy, one of them 0): for the arrow keys; -1 if there is
    /// none.
    std::int32_t neighbour(const VisibleGraph &visible, std::int32_t from, int dx, int dy) const;
};

/// A graph's identity for caching: equal graphs have equal keys, others practically never.
using LayoutKey = std::array<std::uint64_t, 2>;
LayoutKey keyOf(const LayeredGraph &graph);

/// Layouts by structure, shared by all copies of a group. Thread-safe.
class LayoutCache
{
public:
    std::shared_ptr<const LayeredLayout> find(const LayoutKey &key) const;
    void insert(const LayoutKey &key, std::shared_ptr<const LayeredLayout> layout);
    std::size_t size() const;

private:
    static constexpr std::size_t kMostPoints = 4'000'000; ///< About 100 MB.
    mutable std::mutex m_mutex;
    std::map<LayoutKey, std::shared_ptr<const LayeredLayout>> m_layouts;
    std::size_t m_points = 0;
};

/// Finds the layout of one frame's inside; null if it is not known yet.
using LayoutEngine = std::function<std::shared_ptr<const LayeredLayout>(const LayeredGraph &graph)>;

/// Places everything in sight, frames from the inside out: a frame is a box of its parent's layout.
/// @return none if `engine` did not know the layout of some frame (it was asked for all that could be asked)
std::optional<DagScene> composeScene(const DagOutline &outline, const VisibleGraph &visible,
    const TextMeasure &measure, const LayoutEngine &engine, DagFlow flow = DagFlow::Down);

/// An engine that lays out at once with `layeredLayout`, through `cache`.
LayoutEngine layeredEngine(LayoutCache &cache, std::stop_token stop = {});

} // namespace planloom
