#pragma once

#include "widgets/dag/dag_camera.h"
#include "widgets/dag/dag_outline.h"
#include "widgets/dag/visible_graph.h"

#include <QtCore/QString>

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace planloom {

// Finding one's way in a big graph: where one was, what belongs together, where data comes from and goes to.

/// What the canvas shows and from where.
struct DagPlace {
    DagState state{};
    double centreX = 0; ///< Of the window, in scene coordinates.
    double centreY = 0;
    double scale = 1;
    friend bool operator==(const DagPlace &, const DagPlace &) = default;
};

/// Places in the order they were seen, for back and forward.
class DagHistory
{
public:
    static constexpr std::size_t kMost = 100;
    /// About to leave `here` for somewhere new: what lay ahead is forgotten.
    void leave(DagPlace here);
    /// The place before; `here` can be come back to. None at the start.
    std::optional<DagPlace> back(DagPlace here);
    std::optional<DagPlace> forward(DagPlace here);
    bool canGoBack() const { return !m_behind.empty(); }
    bool canGoForward() const { return !m_ahead.empty(); }
    void clear();

private:
    std::vector<DagPlace> m_behind{};
    std::vector<DagPlace> m_ahead{};
};

/// Units that data of `units` reaches, or comes from, in at most `depth` steps (-1: however many), with
/// `units` themselves; ascending. O(units + edges)
std::vector<std::int32_t> coneOf(const DagOutline &outline, const std::vector<std::int32_t> &units,
    bool forwards, std::int32_t depth = -1);

/// What data of some units reaches, or comes from, by distance.
struct DagCone {
    std::vector<std::int32_t> units{}; ///< Nearest first; the given ones at the front.
    std::vector<std::size_t> ends{}; ///< Units within d steps are `units[0 .. ends[d])`.
    /// How many steps the farthest one is away.
    std::int32_t depth() const { return static_cast<std::int32_t>(ends.size()) - 1; }
    /// Units within so many steps (-1: all), ascending.
    std::vector<std::int32_t> within(std::int32_t depth) const;
};
/// O(units + edges x log)
DagCone wholeCone(const DagOutline &outline, const std::vector<std::int32_t> &units, bool forwards,
    const std::stop_token &stop = {});

/// "h/h.3/attn": labels from the model down to the item, the n-th of equally named siblings with "#n". The
/// model itself is empty.
std::string pathOfItem(const DagOutline &outline, std::int32_t item);
/// -1 if there is none.
std::int32_t findItem(const DagOutline &outline, const std::string &path);

/// A place with mode, flow and what was moved by hand as text, for the session; items are named by their
/// paths.
struct DagViewState {
    DagMode mode = DagMode::Folded;
    int flow = -1; ///< -1: by the window's shape; 0 down, 1 right.
    DagPlace place{};
};
QString writeViewState(const DagOutline &outline, const DagViewState &state);
/// Which mode a text was written for; none if it is no such text.
std::optional<DagMode> modeOfViewState(const QString &text);
/// What no longer exists is passed by. None if it is no such text.
std::optional<DagViewState> readViewState(const DagOutline &outline, const QString &text);

} // namespace planloom
