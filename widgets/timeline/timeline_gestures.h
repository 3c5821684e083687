#pragma once

#include "widgets/design/gesture_host.h"
#include "widgets/design/rows_in_the_way.h"
#include "widgets/timeline/timeline_followers.h"
#include "widgets/timeline/timeline_hit.h"
#include "widgets/timeline/timeline_pieces.h"
#include "widgets/timeline/timeline_proposals.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace planloom {

/// What a person is doing to the plan.
enum class TimelineDrag : std::uint8_t {
    None,
    Place, ///< op-assign: vertically to another lane.
    Order, ///< op-order: horizontally to a caret.
    Spread, ///< op-trans: a bottom edge pulled over further lanes.
    InFlight, ///< The warm-up bracket.
    Axis, ///< A mesh axis over a lane.
    Line, ///< Typed in a line editor.
};

struct GestureModifiers {
    bool shift = false;
    bool alt = false;
    bool control = false;
    friend bool operator==(const GestureModifiers &, const GestureModifiers &) = default;
};

/// What is drawn of a gesture before, and beside, what the engine says of it. Content coordinates.
struct TimelineGhost {
    TimelineDrag drag = TimelineDrag::None;
    std::vector<OperatorId> operators{}; ///< Forward ones that the gesture acts on, ascending.
    /// Rows of the spans taken along: all micro-batches, forward and backward, or those of one block;
    /// ascending.
    std::vector<std::size_t> spans{};
    StageId stage{}; ///< Valid if its whole blocks are taken along instead.
    std::int32_t sourceRow = -1; ///< Index into the rows.
    LaneTarget target{}; ///< Of Place and Axis: the lane that lights up.
    std::vector<std::int32_t> targetRows{}; ///< Of Spread: all lanes it would run on.
    std::optional<Caret> caret{}; ///< Of Order.
    bool amongSpans = false; ///< The caret is between spans, not between blocks.
    bool amongPieces = false; ///< Between those of two blocks that run side by side.
    Direction pieceDirection = Direction::Forward; ///< Of the piece, then: the other pass stays where it is.
    double illegalBegin = 0; ///< Where the caret may not be; nanoseconds, empty if not before `illegalEnd`.
    double illegalEnd = 0;
    /// Of Order among blocks: carets at pauses into which the block may go, as far as is known; they light
    /// up.
    std::vector<std::size_t> candidates{};
    std::int32_t inFlight = 0; ///< Of InFlight.
    double bracketEnd = 0; ///< Nanoseconds.
    std::vector<std::string> choices{}; ///< Of Spread: dimensions that digit keys pick: "n", "k+".
    std::int32_t choice = 0;
    /// Of Order, where those that follow are to keep their order.
    struct Kept {
        bool known = false; ///< The engine has said what would become of them.
        std::int32_t rows = 0; ///< Written for them.
        std::int32_t lost = 0; ///< Can't keep it.
    };
    std::optional<Kept> kept{};
    bool atHome = true; ///< Releasing here would change nothing.
};

/// A gesture on the timeline from the press to the release: which rows it would write at every step. Draws
/// nothing.
///
/// Everything it learns of the design comes from the host; everything it wants goes there. Refusals, ghosts
/// and numbers are in the host's preview.
class TimelineGestures
{
public:
    void setHost(GestureHost *host);
    GestureHost *host() const { return m_host; }
    /// What happens to those that follow something that is moved in time.
    void setFollowersPolicy(FollowersPolicy policy);
    FollowersPolicy followersPolicy() const { return m_policy; }
    /// Blocks are moved in every unit of so many micro-batches: the repeating unit is pinned. 0 lets it go.
    void setPinnedUnit(std::int32_t microBatches);
    std::int32_t pinnedUnit() const { return m_unit; }

    /// The pointer was pressed on `hit`. @return true if a drag may follow
    bool press(const TimelineCanvas &canvas, const TimelineHit &hit, double x, int y,
        const std::vector<OperatorId> &selected);
    /// It moved, or a modifier changed. @return true if what is drawn may have changed
    bool move(const TimelineCanvas &canvas, double x, int y, GestureModifiers modifiers);
    /// Looks on, for a few milliseconds, for the pauses into which a block may go. @return true if some were
    /// found
    bool probe(const TimelineCanvas &canvas);
    /// A digit during a spread picks its dimension, from 1. @return true if the drag took it
    bool digit(const TimelineCanvas &canvas, int digit);
    /// O during a gesture, and again: the rows in its way are to be switched off with it. @return true if it
    /// took the key
    bool toggleRowsInTheWay();
    /// The host knows more of what is proposed.
    void answered();
    const RowsInTheWay &rowsInTheWay() const { return m_way; }
    /// Released: writes what is proposed. @return true if rows were written
    bool drop();
    /// Given up: nothing is left behind.
    void abandon();

    bool pressed() const { return m_pressed; }
    bool dragging() const { return m_ghost.drag != TimelineDrag::None; }
    const TimelineGhost &ghost() const { return m_ghost; }
    /// Counts up whenever the ghost takes other things along.
    std::uint64_t taken() const { return m_takes; }
    /// What releasing would write; nothing where it would change nothing.
    const std::optional<Proposal> &proposal() const { return m_proposal; }

    /// A mesh axis hovers over content at `y`. @return true if it may be dropped there
    bool hoverAxis(const TimelineCanvas &canvas, int y, const std::string &axis,
        const std::vector<OperatorId> &selected);

    /// What a line editor would write now; shown like a drag.
    void type(const TimelineCanvas &canvas, const Proposal &proposal);

    // By keyboard, written at once. Steps with the same key within a second are one (see
    // GestureHost::commit).

    /// The operators go to the device row `by` rows below where they are. @return false if there is none or
    /// it was refused
    bool moveLane(const TimelineCanvas &canvas, const std::vector<OperatorId> &operators, std::int32_t by);
    /// A block of `lane` goes one slot earlier (-1) or later (1).
    /// @param held  it stays between its new neighbours: see holdingBlock
    bool moveBlock(const TimelineCanvas &canvas, std::int32_t lane, std::size_t block, std::int32_t by,
        bool onlyThis, bool held = false);
    /// A span goes before (or behind) its neighbour in its block, or the piece beside it of the block that
    /// runs side by side with it.
    bool moveSpan(
        const TimelineCanvas &canvas, std::size_t span, std::int32_t by, bool onlyThis, bool held = false);
    /// A block runs beside the one that follows it, or apart again from the one that runs beside it.
    bool pairBlock(const TimelineCanvas &canvas, std::int32_t lane, std::size_t block);
    bool changeInFlight(const TimelineCanvas &canvas, std::int32_t lane, std::int32_t by);
    /// @param followers  that are to keep their order, if this is an order; else empty
    bool commit(const Proposal &proposal, const QString &mergeKey = {}, const Followers &followers = {});
    /// Why the last key did nothing; empty if it did something.
    const std::string &refusal() const { return m_refusal; }
    /// The plan on screen is another one: where keys have moved things is seen there.
    void forgetKeys();
    /// `scene` is shown now. Where it is that of rows written while what follows was to keep its order, and
    /// it could not yet be known which would not, rows for those are written now: within the same step, if
    /// the plan came within a second.
    void planArrived(const TimelineScene &scene);

private:
    struct Key { // what a proposal was made for; the same again needs no new one
        std::int64_t a = -1;
        std::int64_t b = -1;
        GestureModifiers modifiers{};
        friend bool operator==(const Key &, const Key &) = default;
    };

    void take(const TimelineCanvas &canvas, GestureModifiers modifiers);
    void moveTo(const TimelineCanvas &canvas, int y, GestureModifiers modifiers);
    void orderTo(const TimelineCanvas &canvas, double x, GestureModifiers modifiers);
    OperatorId splitOn(const std::vector<DeviceId> &devices);
    void spreadTo(const TimelineCanvas &canvas, int y);
    void bracketTo(const TimelineCanvas &canvas, double x);
    /// Among what something is put to another place in time.
    enum class OrderAmong : std::uint8_t {
        Blocks,
        Spans, ///< Of its block.
        Pieces, ///< Of the block beside it.
        OwnPieces, ///< Where nothing would change.
    };
    struct OrderPlace {
        OrderAmong among = OrderAmong::Blocks;
        std::size_t own = 0; ///< Index of the block, or row of the span.
        bool home = false; ///< Nothing would change.
    };
    OrderPlace placeAt(const TimelineCanvas &canvas, const DeviceLane &lane, const TimelineBlock &block,
        double time, GestureModifiers modifiers);
    void holdPiece(const TimelineCanvas &canvas);
    bool isAmongPieces(double time, double margin, GestureModifiers modifiers) const;
    std::optional<PieceMove> pieceMove(
        const TimelineCanvas &canvas, std::size_t caret, GestureModifiers modifiers) const;
    void takePiece(const TimelineCanvas &canvas, bool moves);
    void takeBlock(const TimelineCanvas &canvas, const TimelineBlock &block, bool amongSpans);
    bool moveAround(const GestureContext &context, const TimelineScene &scene, std::size_t span,
        LaneRows piece, bool earlier, bool onlyThis, bool held);
    Followers followersAt(const TimelineCanvas &canvas, std::size_t own, GestureModifiers modifiers) const;
    Proposal orderProposal(const TimelineCanvas &canvas, std::size_t caret, GestureModifiers modifiers) const;
    void refuseBroken(const Preview &preview);
    void beginProbe(const DeviceLane &lane, std::size_t own, GestureModifiers modifiers);
    void beginRefused(const TimelineCanvas &canvas, GestureModifiers modifiers);
    void showRefused(const TimelineCanvas &canvas);
    void show(Key key, Proposal proposal);
    void previewWay();
    bool keepOrder(const GestureContext &context, const Preview &preview);
    /// How far keys have sent what is shown there.
    std::int32_t slotsMoved(std::int32_t lane, std::size_t what) const;
    bool commitOrder(const Proposal &proposal, const Followers &followers, const QString &mergeKey);
    void showHome(Key key);

    GestureHost *m_host = nullptr;
    GestureContextSnapshot m_context;
    bool m_pressed = false;
    TimelineHit m_hit;
    double m_x = 0;
    int m_y = 0;
    std::vector<OperatorId> m_selected;
    OperatorId m_operator; ///< Of the span that was pressed, whatever its direction.
    OperatorId m_splitOn; ///< Of a spread of a whole lane: whose dimension splits all of it.
    std::optional<SideBySide> m_pair; ///< Of the block that was pressed, where it has a piece there.
    LaneRows m_held{}; ///< That piece, or the span.
    TimelineGhost m_ghost;
    std::optional<Proposal> m_proposal;
    RowsInTheWay m_way;
    FollowersPolicy m_policy = FollowersPolicy::CloseGaps;
    Followers m_followers; ///< Of the drag.
    std::int32_t m_unit = 0; ///< See `setPinnedUnit`.
    std::int32_t m_rounds = 0; ///< In which rows were added for them.
    /// An order that was written before its timeline was known.
    struct Written {
        Followers followers{};
        QString mergeKey{};
        std::string text{}; ///< The table as it left it.
        std::int32_t rounds = 0;
    };
    std::optional<Written> m_written;
    std::uint64_t m_orders = 0; ///< Counts up, so that each drag is a step of its own.
    /// The search for the pauses into which a block may go.
    struct Probe {
        std::size_t own = 0; ///< Index of the block.
        GestureModifiers modifiers{};
        std::vector<std::size_t> open{}; ///< Carets not asked for yet, the nearest one last.
    };
    std::optional<Probe> m_probe;
    /// Carets beside each other that are refused, the present one among them.
    struct Refused {
        bool amongSpans = false;
        GestureModifiers modifiers{};
        std::size_t low = 0;
        std::size_t high = 0;
        bool lowKnown = false; ///< The one before `low` is not refused, or there is none.
        bool highKnown = false;
    };
    std::optional<Refused> m_refused;
    std::int64_t m_probed = 0; ///< Nanoseconds that this drag has spent on looking for places.
    std::optional<Key> m_key;
    std::uint64_t m_takes = 0;
    std::optional<GestureModifiers> m_taken; ///< With which modifiers the things taken along were found.
    std::string m_refusal;
    /// Where keys have sent operators or blocks since the plan on screen was made.
    std::optional<std::pair<std::vector<OperatorId>, std::int32_t>> m_keyLane;
    std::map<std::pair<std::int32_t, std::size_t>, std::int32_t>
        m_keySlots; ///< By lane and block or span: slots moved.
    std::uint64_t m_pictures = 0; ///< So often these were forgotten; a commit may show a new plan at once.
    std::map<std::int32_t, std::int32_t> m_keyInFlight; ///< By stage.
};

/// A block as the engine names it.
BlockRef refOf(const TimelineBlock &block);

} // namespace planloom
