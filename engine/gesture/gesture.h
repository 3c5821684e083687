#pragma once

#include "engine/base/result.h"
#include "engine/hardware/cluster.h"
#include "engine/plan/plan.h"
#include "engine/table/row_setting.h"
#include "engine/table/table_document.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace planloom {

// What a person's gesture would write into the constraint table: the three primitives by hand (ux.md,
// section 4.3). All functions are pure and quick (well below a frame: they bind the new row and look at the
// rows it meets, they do not complete a plan), so that they may be called for every movement of the pointer.

/// What gestures act on: one state of the design, read as its rows are. Immutable.
struct GestureContext : RowSetting {
    TableDocument document{};
    std::shared_ptr<const Plan> plan{}; ///< Of these rows or the last that held; null before the first.
    Cluster cluster{};
};
using GestureContextSnapshot = std::shared_ptr<const GestureContext>;

/// The change that releasing a gesture would make, or why there is none.
struct Proposal {
    std::string
        words{}; ///< "split k+ by 4", "place h.0.mlp on GPU 1": for tag, Undo and History. No row syntax.
    TableEdit edit{}; ///< Empty if refused, or if it would change nothing.
    std::vector<std::string> rows{}; ///< The rows it writes, as printed.
    std::vector<OperatorId> operators{}; ///< Forward operators it acts on, ascending.
    /// Rows that give way: lines of the document whose selectors are narrowed, or which go, and what happens
    /// to each
    /// ("row 4 lets go of 24 operators"). They could not hold together with the new row.
    std::vector<std::int32_t> yielding{};
    std::vector<std::string> yieldingWords{};
    /// Why it may not be: "h can't be split by 3: 32 heads". One sentence; `where` "operator:NAME/k".
    std::optional<Error> refusal{};
    /// A cycle that the refused order would close, first operator first; empty otherwise.
    std::vector<OperatorId> cycle{};

    bool accepted() const { return !refusal && !edit.empty(); }
};

/// The smallest selector a person would write for exactly `operators` (ascending, forward ones; backward and
/// optimizer ones are left out): a layer or range of layers, a module, a pattern over repeated layers
/// ("h.*.attn.c_attn"), or a set of names. Selects the operators given and no other forward operator.
Selector selectorFor(const SelectorIndex &index, const std::vector<OperatorId> &operators);
/// "layers 0-5", "h.*.attn.c_attn (12 operators)", "24 operators": for sentences.
std::string wordsFor(const SelectorIndex &index, const std::vector<OperatorId> &operators);

/// One dimension of an operator's tensors, as the chip on its box shows it.
struct DimensionChip {
    std::int32_t dimension = -1; ///< Index into the annotation's dimensions.
    bool output = false; ///< On the bottom edge; else on the top edge.
    std::int32_t slot = 0; ///< Which input or output.
    std::string label{}; ///< "k+"; "^" marks what may not be split.
    std::string meaning{}; ///< "hidden", "key sequence", "(batch sequence)"; empty where it is not known.
    std::int64_t size = 0;
    DimensionMark mark = DimensionMark::Spatial;
    std::vector<std::int32_t>
        counts{}; ///< Into how many parts it may be cut, ascending, from 2; at most 32 of them.
    std::string locked{}; ///< Why it can't be split: "softmax reduces over this dimension"; empty if it can.
};
/// The chips of an operator: those of its inputs, then of its outputs, each identifier once an edge. Weights'
/// and activations' alike; literals of size 1 left out.
std::vector<DimensionChip> chipsOf(const GestureContext &context, OperatorId op);
/// Value split possible (the operator is linear in some inputs).
bool hasValueSplit(const GestureContext &context, OperatorId op);

/// op-trans by hand.
struct SplitGesture {
    std::vector<OperatorId>
        operators{}; ///< All that it acts on; of one annotation, or the chip's identifier by place.
    OperatorId on{}; ///< Whose chip is pulled; one of `operators`.
    SplitKind kind = SplitKind::Dimension;
    std::int32_t dimension = -1; ///< Of `on`'s annotation; Dimension only.
    std::int32_t parts = 2; ///< Ignored if `axis` is given.
    std::string axis{}; ///< Mesh axis dropped on the chip: splits over it and places in one row.
};
/// Writes `split`, `replicate` or `value`. A row that splits exactly these operators by the same dimension or
/// over the same axis is replaced, so that pulling again changes the number; parts of 1 take it away.
Proposal proposeSplit(const GestureContext &context, const SplitGesture &gesture);

/// op-assign by hand.
struct PlaceGesture {
    std::vector<OperatorId> operators{};
    std::vector<DeviceId>
        devices{}; ///< Dealt out in order; empty with no coordinates gives the choice back (Free).
    std::vector<AxisCoordinate> coordinates{}; ///< Part of the mesh ("pp=1") instead of devices.
    bool replicate = false; ///< All on each device (Alt).
};
/// Writes `place` and takes the operators out of other place rows (and of stage rows, where the new devices
/// belong to another stage). Prefers coordinates of the mesh where the devices are exactly such a part, so
/// that splits over the mesh go on.
Proposal proposePlace(const GestureContext &context, const PlaceGesture &gesture);

/// op-order by hand.
struct OrderGesture {
    std::vector<OperatorId> first{};
    std::vector<OperatorId> second{};
    std::int32_t microBatchOffset = 0;
    std::int32_t microBatch = -1; ///< Of `first`: only this one (Alt); -1 for all.
    BlockPart part{}; ///< Of the blocks of `first`: see `OpOrderRule`.
    BlockPart secondPart{};
};
/// Writes `order`. Refused where the data flow or another row runs the other way: `cycle` is the path.
Proposal proposeOrder(const GestureContext &context, const OrderGesture &gesture);

/// An end of an order's arrow: what runs first, or what it runs before.
enum class OrderEnd : std::uint8_t { First, Second };
/// The line of the order row, on, that `row` of the context's plan is: it orders some of `first` before some
/// of `second`. -1 if the table has none any more.
std::int32_t orderLineOf(const GestureContext &context, RowId row, const std::vector<OperatorId> &first,
    const std::vector<OperatorId> &second);
/// The order row at `line` gets other operators at one end: those of `operators` that have the direction of
/// the end's present ones. Its offset, note and place stay. Refused as `proposeOrder`; without an edit if
/// nothing changes.
Proposal proposeRetarget(
    const GestureContext &context, std::int32_t line, OrderEnd end, const std::vector<OperatorId> &operators);
/// As `proposeRetarget`, with both ends as selectors.
Proposal proposeOrderRow(
    const GestureContext &context, std::int32_t line, const Selector &first, const Selector &second);

/// A block of the timeline: what one stage does of one direction, or one lane and slice of it.
struct BlockRef {
    StageId stage{};
    Direction direction = Direction::Forward;
    std::int32_t microBatch = 0;
    BlockPart part{};
    friend bool operator==(const BlockRef &, const BlockRef &) = default;
};
std::string wordsOf(const BlockRef &block); ///< "F2 of stage 1"
/// Moves a block of the timeline before another one on its device: the pattern (stage, direction, lane,
/// slice, micro-batch offset) for all micro-batches, or with `onlyThis` this one. Needs a plan.
Proposal proposeBlockOrder(const GestureContext &context, BlockRef moved, BlockRef before, bool onlyThis);
/// The warm-up bracket: at most `count` micro-batches in flight on the stage.
Proposal proposeInFlight(const GestureContext &context, StageId stage, std::int32_t count);
/// Gives the pipeline this schedule: in the place of the row that gives one for as many micro-batches (or for
/// any), or behind the last row. One for any number switches off the one for the number that there is.
/// `words` is what it is called; empty for a schedule with a name. `stageRows`, if there are any, lay its
/// stages out in place of the rows that do so far; `moreRows` come behind the last row.
Proposal proposeSchedule(const GestureContext &context, const ScheduleRule &rule, std::string words = {},
    const std::vector<Row> &stageRows = {}, const std::vector<Row> &moreRows = {});

/// Where rows that are on lay a pipeline's stages out one by one over one axis of the mesh, as plans of the
/// gallery do: a row numbers each, another one of the same operators places it at a coordinate.
struct StageLayoutRows {
    std::string axis{};
    std::vector<std::int32_t> lines{}; ///< Of the document; ascending.
};
/// Nothing where no rows do, or where a stage lies otherwise.
std::optional<StageLayoutRows> stageRowsOf(const TableDocument &document);
/// All forward operators of a stage in the context's plan.
std::vector<OperatorId> operatorsOfStage(const GestureContext &context, StageId stage);

/// Groups operators as a pipeline stage.
Proposal proposeStage(const GestureContext &context, const std::vector<OperatorId> &operators, StageId stage);
/// Recompute on, or off where all of them are recomputed by rows.
Proposal proposeRecompute(const GestureContext &context, const std::vector<OperatorId> &operators);
/// Turns what the solver chose for these operators into rows (Hold): their splits and devices as the plan has
/// them, where no row decides them yet.
Proposal proposeHold(const GestureContext &context, const std::vector<OperatorId> &operators);
/// Takes these operators out of every row that speaks of them (Free); rows left without operators go. Rows
/// that select everything (`all`) stay, except by `proposePlace` and its kin.
Proposal proposeFree(const GestureContext &context, const std::vector<OperatorId> &operators);

/// Rows that are on and act on `op`: lines of the document, ascending.
std::vector<std::int32_t> rowsActingOn(const GestureContext &context, OperatorId op);

/// A command typed in full ("split k by 4 where fc1", "place layer:3 : devices 1"): the text of a row. The
/// word `where` may name the operators behind the rule instead of before it; with neither, the `selected`
/// ones are meant.
Proposal proposeText(
    const GestureContext &context, std::string_view text, const std::vector<OperatorId> &selected);

} // namespace planloom
