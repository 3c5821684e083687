#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace planloom {

/// In what a figure is measured.
enum class FigureUnit : std::uint8_t { Time, Bytes, Share, Count, Number, Word, Truth };

/// A value with its unit: nanoseconds, bytes, a share (0.34), a count or a plain number; or a word.
struct FigureValue {
    FigureUnit unit = FigureUnit::Number;
    double number = 0; ///< Of `Truth` 0 or 1.
    std::string word{};
    bool asPercent = false; ///< As a text says it.
};

/// "41.3 ms", "12.6 GiB", "34%", "4", "1.42", "1f1b", "yes": as the window writes such values.
/// @param digits  of times, sizes and plain numbers
std::string toString(const FigureValue &value, int digits = 3);

/// What a lesson can say of a plan (resources/lessons.md has the list with its meanings).
enum class Figure : std::uint16_t {
    Step,
    Compute,
    ExposedCommunication,
    Idle,
    Recompute,
    Optimizer,
    Other,
    Communication,
    HiddenCommunication,
    Busy,
    Waits,
    Bubble,
    Peak,
    Parameters,
    Gradients,
    States,
    Activations,
    Workspace,
    Buffers,
    Memory,
    Sent,
    Messages,
    Devices,
    Stages,
    MicroBatches,
    DataParallel,
    TensorParallel,
    ContextParallel,
    ExpertParallel,
    Zero,
    InFlight,
    WarmUp,
    Period,
    Steady,
    Recomputed,
    Offloaded,
    InTurns,
    Parts,
    Rows,
    Weights,
    TokensPerSecond,
    Bound,
    Gap,
    Conflicts,
    Measured,
    Run,
    Schedule,
    Name,
    LargestPart,
    LargestKind,
    SequenceParallel,
    Zigzag,
    Ring,
    ByHeads,
    Planned,
    Verified,
    Fits,
};

/// What stands behind a figure's name.
enum class FigureOperand : std::uint8_t {
    None,
    Device, ///< "of device N"
    Stage, ///< "of stage N"
    DeviceOrStage, ///< Either, or nothing.
    Kind, ///< "by KIND" of instructions, or nothing.
    Selector, ///< "of SELECTOR"
    SelectorOrNone, ///< The same, or nothing.
    Text, ///< with "TEXT", or nothing.
};

/// A figure as texts name it. There is one table: parser, units and sentences go by it.
struct FigureEntry {
    Figure figure{};
    std::string_view name{}; ///< "in flight"
    FigureUnit unit = FigureUnit::Number;
    FigureOperand operand = FigureOperand::None;
    /// For sentences: "the step" is 41.3 ms; of what is true or not, a sentence of its own.
    std::string_view words{};
    std::string_view otherwise{}; ///< Where it is not true.
};

/// In the order of `Figure`.
std::span<const FigureEntry> figureTable();
const FigureEntry &entryOf(Figure figure);

/// The words that a figure may be; empty where they are none of a list (`Name`).
std::vector<std::string_view> wordsOf(Figure figure);
/// Kinds of instructions that communicate: what may stand behind "by".
std::vector<std::string_view> communicationKinds();

} // namespace planloom
