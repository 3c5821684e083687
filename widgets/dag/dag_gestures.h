#pragma once

#include "engine/gesture/place_text.h"
#include "widgets/dag/dag_chips.h"
#include "widgets/design/gesture_host.h"
#include "widgets/design/rows_in_the_way.h"

#include <QtCore/QPointer>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace planloom {

/// Shaping a plan by hand on the canvas: which gesture is under way, what it would write, and how it ends.
/// Knows nothing of windows, places or events; pointer and line editors drive the same one. Between
/// `begin...` and `commit` or `abandon` every change is put before the host as a preview.
class DagGestures
{
public:
    enum class Kind : std::uint8_t { None, Split, Place, Order, Stage, Retarget };

    void setHost(GestureHost *host);
    GestureHost *host() const { return m_host; }
    /// The design as it is; null without a host or a model.
    GestureContextSnapshot context() const;

    Kind kind() const { return m_kind; }
    bool active() const { return m_kind != Kind::None; }
    /// Operators it acts on, forward ones.
    const std::vector<OperatorId> &operators() const { return m_operators; }
    /// What a release would do; none before the first step.
    const std::optional<Proposal> &proposal() const { return m_proposal; }
    /// What the tag says: the host's tag for this proposal where it has one, why it may not be where it may
    /// not, and which rows are in its way.
    /// @param key  what turns `toggleRowsInTheWay` on and off
    QString tag(const QString &key) const;
    /// It may be written, but rows can't hold then.
    bool isBlocked() const;
    /// Rows in the way are to be switched off with it, or no more.
    void toggleRowsInTheWay();
    /// The host has said more of the proposal.
    void answered();

    // --- op-trans ---

    /// A chip is caught. `operators` must not be empty; `on` is one of them.
    void beginSplit(std::vector<OperatorId> operators, OperatorId on, std::vector<DimensionChip> chips,
        std::int32_t chip);
    const std::vector<DimensionChip> &chips() const { return m_chips; }
    std::int32_t chip() const { return m_chip; }
    SplitKind splitKind() const { return m_splitKind; }
    std::int32_t parts() const { return m_parts; }
    const std::string &axis() const { return m_axis; }
    void pull(double distance);
    /// The chip is pushed into its node: what is split along it is put together again.
    void push();
    bool isPushed() const { return m_pushed; }
    void setChip(std::int32_t chip);
    void setSplitKind(SplitKind kind);
    void setParts(std::int32_t parts); ///< Exactly, whatever the distance, from now on.
    void stepParts(std::int32_t by);
    void typeDigit(std::int32_t digit); ///< Digits one after the other make a number.
    void forgetParts(); ///< The distance decides again.
    void setAxis(const std::string &axis); ///< Empty for none.
    /// Counts the present kind of split offers.
    std::vector<std::int32_t> counts() const;

    // --- op-assign ---

    /// @param all  every copy of a stack; `onlyThis` those of the copy in sight
    void beginPlace(std::vector<OperatorId> all, std::vector<OperatorId> onlyThis);
    /// Over no place: nothing would happen.
    void aimAt(const std::optional<PlaceTarget> &target);
    const std::optional<PlaceTarget> &target() const { return m_target; }
    void setReplicate(bool replicate);
    void setOnlyThis(bool onlyThis);
    bool onlyThis() const { return m_onlyThis; }

    // --- op-order ---

    void beginOrder(std::vector<OperatorId> operators);
    /// No operators: over nothing.
    void aimAtOperators(std::vector<OperatorId> second);

    // --- an order that is there ---

    /// @param line  of the order row; see `orderLineOf`
    void beginRetarget(std::int32_t line, OrderEnd end);
    /// What the end would be moved to; no operators: over nothing.
    void aimEndAt(std::vector<OperatorId> operators);
    /// Both ends as written.
    void setOrderSelectors(Selector first, Selector second);

    // --- stages ---

    void beginStage(std::vector<OperatorId> operators);
    void setStage(std::int32_t stage);

    // --- the end ---

    /// Writes the proposal if there is one that may be written. Ends the gesture.
    /// @return true if rows were written
    bool commit();
    /// Ends it without a trace.
    void abandon();
    /// The design changed under the gesture: proposes anew.
    void contextChanged();

private:
    void begin(Kind kind, std::vector<OperatorId> operators);
    void propose();
    Proposal make(const GestureContext &context) const;
    void nothing();
    void show();
    PreviewSnapshot preview() const; ///< Of the proposal; null for none.

    QPointer<GestureHost> m_host;
    Kind m_kind = Kind::None;
    std::vector<OperatorId> m_operators;
    std::optional<Proposal> m_proposal;
    RowsInTheWay m_way;

    OperatorId m_on;
    std::vector<DimensionChip> m_chips;
    std::int32_t m_chip = -1;
    SplitKind m_splitKind = SplitKind::Dimension;
    std::int32_t m_parts = 1;
    bool m_partsFixed = false;
    std::int32_t m_typed = 0;
    double m_pulled = 0;
    bool m_pushed = false;
    std::string m_axis;

    std::vector<OperatorId> m_all;
    std::vector<OperatorId> m_this;
    bool m_onlyThis = false;
    bool m_replicate = false;
    std::optional<PlaceTarget> m_target;

    std::vector<OperatorId> m_second;
    std::int32_t m_stage = -1;

    std::int32_t m_line = -1;
    OrderEnd m_end = OrderEnd::Second;
    std::optional<std::pair<Selector, Selector>> m_selectors;
};

} // namespace planloom
