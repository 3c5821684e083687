#pragma once

#include <QtCore/QCoreApplication>

#include "widgets/table/row_cells.h"
#include "widgets/table/selector_completions.h"

#include <array>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

class QWidget;

namespace planloom {

class CellEditor;

/// What the window adds to a word that rows begin with: all that the grid knows of a kind of row beyond its
/// language (engine/table/kinds). One file a kind defines it, as a constant.
struct RuleCells {
    RuleWord word{};
    const char *meaning =
        ""; ///< One line for people who don't know it, marked for translation in `RuleTexts`.
    /// The editor of `value`, as far as it can show it; null edits it as text. The text is set by the caller.
    CellEditor *(*newEditor)(
        const std::string &value, const SelectorCompletionsSnapshot &completions, QWidget *parent) = nullptr;
    /// Adds values to choose from where they are edited as text.
    void (*suggest)(const ValueChoices &choices, std::vector<std::string> &texts) = nullptr;
};

extern const RuleCells kSplitCells;
extern const RuleCells kReplicateCells;
extern const RuleCells kPartsCells;
extern const RuleCells kAlikeCells;
extern const RuleCells kFollowCells;
extern const RuleCells kPlaceCells;
extern const RuleCells kSpreadCells;
extern const RuleCells kLayoutCells;
extern const RuleCells kTogetherCells;
extern const RuleCells kApartCells;
extern const RuleCells kOrderCells;
extern const RuleCells kStageCells;
extern const RuleCells kRecomputeCells;
extern const RuleCells kCoshardCells;
extern const RuleCells kSliceCells;
extern const RuleCells kLanesCells;
extern const RuleCells kInterleaveCells;
extern const RuleCells kZero0Cells;
extern const RuleCells kZero1Cells;
extern const RuleCells kZero2Cells;
extern const RuleCells kZero3Cells;
extern const RuleCells kZeroCells;
extern const RuleCells kPrecisionCells;
extern const RuleCells kMeshCells;
extern const RuleCells kMicroBatchesCells;
extern const RuleCells kOverlapCells;
extern const RuleCells kScheduleCells;
extern const RuleCells kDimensionSizeCells;
extern const RuleCells kCapacityCells;
extern const RuleCells kUnrollCells;
extern const RuleCells kInFlightCells;
extern const RuleCells kLimitCells;
extern const RuleCells kDegreeCells;
extern const RuleCells kAttentionCells;
extern const RuleCells kSplitBackwardCells;
extern const RuleCells kWeightVersionsCells;
extern const RuleCells kOffloadCells;
extern const RuleCells kCommunicateCells;
extern const RuleCells kRingCells;

/// All of them, in the order people meet them.
inline constexpr std::array kAllRuleCells{&kSplitCells, &kReplicateCells, &kPartsCells, &kAlikeCells,
    &kFollowCells, &kPlaceCells, &kSpreadCells, &kLayoutCells, &kTogetherCells, &kApartCells, &kOrderCells,
    &kStageCells, &kRecomputeCells, &kCoshardCells, &kSliceCells, &kLanesCells, &kZero1Cells, &kZero2Cells,
    &kZero3Cells, &kZero0Cells, &kZeroCells, &kPrecisionCells, &kMeshCells, &kMicroBatchesCells,
    &kScheduleCells, &kOverlapCells, &kInFlightCells, &kInterleaveCells, &kLimitCells, &kDegreeCells,
    &kAttentionCells, &kRingCells, &kOffloadCells, &kSplitBackwardCells, &kWeightVersionsCells,
    &kCommunicateCells, &kDimensionSizeCells, &kCapacityCells, &kUnrollCells};

/// Null for words that no row begins with.
const RuleCells *findRuleCells(std::string_view word);

/// Translates the words of kinds.
struct RuleTexts {
    Q_DECLARE_TR_FUNCTIONS(planloom::ConstraintTable)
};

// For the files of the kinds.

/// The rule of a row that begins with `word` and has `value`; nothing if that is no row.
std::optional<Rule> ruleOf(std::string_view word, const std::string &value);

/// One of a few values, each with what it means.
CellEditor *newChoiceEditor(QWidget *parent, std::initializer_list<std::pair<const char *, QString>> choices);

/// "over dp", "by 4": the ways to repeat something.
void suggestReplicas(const ValueChoices &choices, std::vector<std::string> &texts);

} // namespace planloom
