#pragma once

#include "widgets/dag/dag_outline.h"

#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace planloom {

/// What the user has opened. Items that are not in sight may be in it, and come back when their parents open.
struct DagState {
    std::set<std::int32_t> open{}; ///< Groups and stacks; an open stack shows one copy for all.
    std::set<std::int32_t> unstacked{}; ///< Open stacks that show each copy.
    /// Groups and stacks that were moved by hand: by how much, in scene units.
    std::map<std::int32_t, std::pair<double, double>> nudges{};
    friend bool operator==(const DagState &, const DagState &) = default;
};

/// Opens the model, then groups breadth-first and in order as long as at most `most` boxes would show.
DagState initialState(const DagOutline &outline, std::size_t most = 26);
/// Everything open, every copy shown.
DagState fullyOpen(const DagOutline &outline);

/// One box in sight: a frame (open group, open stack) or a node (operator, closed group, closed stack).
struct VisibleBox {
    std::int32_t item = 0;
    std::int32_t parent = -1; ///< Box of the frame around it; -1 for box 0, the model.
    bool frame = false;
    std::int32_t copies = 1; ///< How many copies it stands for, from the stacks around it.
    std::int32_t depth = 0;
    std::vector<std::int32_t> children{}; ///< Boxes, of a frame.
};

/// Data flow between two nodes in sight.
struct VisibleEdge {
    std::int32_t from = 0; ///< Box.
    std::int32_t to = 0; ///< Box.
    friend auto operator<=>(const VisibleEdge &, const VisibleEdge &) = default;
};

/// Where data of one node passes the border of a frame.
struct FramePort {
    std::int32_t source = 0; ///< Box of the node whose data it is.
    bool in = false;
};

/// A stretch of data flow within one frame. Ends are local: a child's index, or the number of children plus a
/// port's index. `fromPort` and `toPort` are ports of the child frames at the ends; -1 where they are no
/// frames.
struct FrameLink {
    std::int32_t from = 0;
    std::int32_t to = 0;
    std::int32_t fromPort = -1;
    std::int32_t toPort = -1;
    std::int32_t source = 0; ///< Box of the node whose data it is.
};

/// The inside of one frame.
struct VisibleFrame {
    std::int32_t box = 0;
    std::vector<FramePort> ports{};
    std::vector<FrameLink> links{};
};

/// The part of an outline that is in sight, before layout. Edges between frames run through ports on their
/// borders, one for each source, so that a tensor with many users is one line that branches.
struct VisibleGraph {
    static constexpr std::size_t kMostPorts = 32;

    std::vector<VisibleBox> boxes{}; ///< Parents before children.
    std::vector<VisibleEdge> edges{}; ///< Ascending.
    std::vector<VisibleFrame> frames{}; ///< Outer before inner.
    std::vector<std::int32_t> frameOf{}; ///< By box: index into `frames`, -1 for nodes.
    /// Edges that would need too many ports in some frame: only their ends are marked.
    std::vector<VisibleEdge> remote{};
    std::vector<std::int32_t> boxOfUnit{}; ///< By unit of the outline: its node.
    std::vector<std::int32_t>
        unitBegin{}; ///< By box: where its units start in `unitList`; one more at the end.
    std::vector<std::int32_t> unitList{};

    const VisibleBox &at(std::int32_t box) const { return boxes[static_cast<std::size_t>(box)]; }
    /// The box of an item in sight; -1 if it is hidden. O(boxes).
    std::int32_t boxOfItem(std::int32_t item) const;
};

/// O((units + edges) x depth). Deterministic.
VisibleGraph visibleGraph(const DagOutline &outline, const DagState &state);

/// Operators a box stands for: all copies' and, if `folded`, those folded into their units. Ascending.
std::vector<OperatorId> operatorsOf(
    const DagOutline &outline, const VisibleGraph &visible, std::int32_t box, bool folded = true);

} // namespace planloom
