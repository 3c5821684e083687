#include "engine/lesson/figure.h"

#include "engine/analyse/waterfall.h"
#include "engine/base/units.h"
#include "engine/base/words.h"
#include "engine/lowering/program/execution_plan.h"
#include "engine/table/kinds/order/schedule.h"

#include <array>
#include <cmath>
#include <cstdio>

namespace planloom {

namespace {

using Unit = FigureUnit;
using Operand = FigureOperand;

constexpr std::array kFigures{
    FigureEntry{Figure::Step, "step", Unit::Time, Operand::None, "the step"},
    FigureEntry{Figure::Compute, "compute", Unit::Time, Operand::None, "the time of computing"},
    FigureEntry{Figure::ExposedCommunication, "exposed communication", Unit::Time, Operand::None,
        "the exposed communication"},
    FigureEntry{Figure::Idle, "idle", Unit::Time, Operand::None, "the idle time"},
    FigureEntry{Figure::Recompute, "recompute", Unit::Time, Operand::None, "the time of computing again"},
    FigureEntry{Figure::Optimizer, "optimizer", Unit::Time, Operand::None, "the time of the optimizer"},
    FigureEntry{Figure::Other, "other", Unit::Time, Operand::None, "the time of all else"},
    FigureEntry{Figure::Communication, "communication", Unit::Time, Operand::None, "the communication"},
    FigureEntry{Figure::HiddenCommunication, "hidden communication", Unit::Time, Operand::None,
        "the hidden communication"},
    FigureEntry{Figure::Busy, "busy", Unit::Time, Operand::Device, "the time of computing"},
    FigureEntry{Figure::Waits, "waits", Unit::Time, Operand::Device, "the time of waiting"},
    FigureEntry{Figure::Bubble, "bubble", Unit::Share, Operand::None, "the bubble"},
    FigureEntry{Figure::Peak, "peak", Unit::Bytes, Operand::DeviceOrStage, "the peak"},
    FigureEntry{
        Figure::Parameters, "parameters", Unit::Bytes, Operand::DeviceOrStage, "the memory of parameters"},
    FigureEntry{
        Figure::Gradients, "gradients", Unit::Bytes, Operand::DeviceOrStage, "the memory of gradients"},
    FigureEntry{
        Figure::States, "states", Unit::Bytes, Operand::DeviceOrStage, "the memory of optimizer states"},
    FigureEntry{
        Figure::Activations, "activations", Unit::Bytes, Operand::DeviceOrStage, "the memory of activations"},
    FigureEntry{
        Figure::Workspace, "workspace", Unit::Bytes, Operand::DeviceOrStage, "the memory of workspaces"},
    FigureEntry{Figure::Buffers, "buffers", Unit::Bytes, Operand::DeviceOrStage,
        "the memory of communication buffers"},
    FigureEntry{Figure::Memory, "memory", Unit::Bytes, Operand::None, "the memory of each device"},
    FigureEntry{Figure::Sent, "sent", Unit::Bytes, Operand::Kind, "what is sent"},
    FigureEntry{Figure::Messages, "messages", Unit::Count, Operand::Kind, "the number of messages"},
    FigureEntry{Figure::Devices, "devices", Unit::Count, Operand::SelectorOrNone, "the number of devices"},
    FigureEntry{Figure::Stages, "stages", Unit::Count, Operand::None, "the number of stages"},
    FigureEntry{
        Figure::MicroBatches, "micro-batches", Unit::Count, Operand::None, "the number of micro-batches"},
    FigureEntry{
        Figure::DataParallel, "data parallel", Unit::Count, Operand::None, "the degree of data parallelism"},
    FigureEntry{Figure::TensorParallel, "tensor parallel", Unit::Count, Operand::None,
        "the degree of tensor parallelism"},
    FigureEntry{Figure::ContextParallel, "context parallel", Unit::Count, Operand::None,
        "the degree of context parallelism"},
    FigureEntry{Figure::ExpertParallel, "expert parallel", Unit::Count, Operand::None,
        "the degree of expert parallelism"},
    FigureEntry{Figure::Zero, "zero", Unit::Count, Operand::None, "the stage of ZeRO"},
    FigureEntry{
        Figure::InFlight, "in flight", Unit::Count, Operand::Stage, "the number of micro-batches in flight"},
    FigureEntry{Figure::WarmUp, "warm-up", Unit::Count, Operand::Stage,
        "the number of forward blocks in the warm-up"},
    FigureEntry{Figure::Period, "period", Unit::Time, Operand::None, "the period of the pipeline"},
    FigureEntry{Figure::Steady, "steady", Unit::Time, Operand::None, "the steady phase"},
    FigureEntry{Figure::Recomputed, "recomputed", Unit::Count, Operand::None,
        "the number of operators computed again"},
    FigureEntry{
        Figure::Offloaded, "offloaded", Unit::Count, Operand::None, "the number of operators offloaded"},
    FigureEntry{
        Figure::InTurns, "in turns", Unit::Count, Operand::None, "the number of operators run in turns"},
    FigureEntry{Figure::Parts, "parts", Unit::Count, Operand::Selector, "the number of parts"},
    FigureEntry{Figure::Rows, "rows", Unit::Count, Operand::Text, "the number of rows"},
    FigureEntry{Figure::Weights, "weights", Unit::Count, Operand::None, "the number of weights"},
    FigureEntry{Figure::TokensPerSecond, "tokens per second", Unit::Count, Operand::None,
        "the number of tokens per second"},
    FigureEntry{Figure::Bound, "bound", Unit::Time, Operand::None, "the bound"},
    FigureEntry{Figure::Gap, "gap", Unit::Share, Operand::None, "the gap to the bound"},
    FigureEntry{
        Figure::Conflicts, "conflicts", Unit::Count, Operand::None, "the number of conflicts of rows"},
    FigureEntry{Figure::Measured, "measured", Unit::Time, Operand::None, "the measured step"},
    FigureEntry{Figure::Run, "run", Unit::Truth, Operand::None, "a run was equal to the unpartitioned model",
        "no run was equal to the unpartitioned model"},
    FigureEntry{Figure::Schedule, "schedule", Unit::Word, Operand::None, "the schedule"},
    FigureEntry{Figure::Name, "name", Unit::Word, Operand::None, "the plan's name"},
    FigureEntry{
        Figure::LargestPart, "largest part", Unit::Word, Operand::None, "the largest part of the step"},
    FigureEntry{Figure::LargestKind, "largest kind", Unit::Word, Operand::None,
        "the largest kind of memory at the peak"},
    FigureEntry{Figure::SequenceParallel, "sequence parallel", Unit::Truth, Operand::None,
        "what lies between tensor-parallel pairs is cut along the sequence",
        "what lies between tensor-parallel pairs is not cut along the sequence"},
    FigureEntry{Figure::Zigzag, "zigzag", Unit::Truth, Operand::None,
        "the parts of the sequence lie in zigzag", "the parts of the sequence do not lie in zigzag"},
    FigureEntry{Figure::Ring, "ring", Unit::Truth, Operand::None, "keys and values go round a ring",
        "keys and values go round no ring"},
    FigureEntry{Figure::ByHeads, "by heads", Unit::Truth, Operand::None, "attention is cut by heads",
        "attention is not cut by heads"},
    FigureEntry{
        Figure::Planned, "planned", Unit::Truth, Operand::None, "there is a plan", "there is no plan"},
    FigureEntry{Figure::Verified, "verified", Unit::Truth, Operand::None,
        "the plan is proven to compute the model", "the plan is not proven to compute the model"},
    FigureEntry{Figure::Fits, "fits", Unit::Truth, Operand::None, "the plan fits into the devices' memory",
        "the plan does not fit into the devices' memory"},
};

std::string numberText(double number, int digits)
{
    std::array<char, 64> text{};
    const bool isWhole = number == std::floor(number) && std::abs(number) < 1e15;
    if (isWhole)
        return formatCount(static_cast<std::int64_t>(number));
    // No exponent: as many decimals as leave that many digits.
    const int before = std::abs(number) < 1 ? 0 : static_cast<int>(std::log10(std::abs(number))) + 1;
    std::snprintf(text.data(), text.size(), "%.*f", std::max(digits - before, 0), number);
    return text.data();
}

/// "34%"; with a decimal where it is less than ten.
std::string shareText(double share, int digits)
{
    std::array<char, 64> text{};
    const double percent = 100 * share;
    const int decimals = digits - 3 + (percent != 0 && std::abs(percent) < 9.95 ? 1 : 0);
    std::snprintf(text.data(), text.size(), "%.*f%%", decimals, percent);
    return text.data();
}

} // namespace

std::string toString(const FigureValue &value, int digits)
{
    if (value.unit == FigureUnit::Word)
        return value.word;
    if (value.unit == FigureUnit::Truth)
        return value.number != 0 ? "yes" : "no";
    if (!std::isfinite(value.number))
        return "-";
    constexpr double kMostShown = 9e18; // of 64 bits
    if (value.asPercent || value.unit == FigureUnit::Share)
        return shareText(value.number, digits);
    if (value.unit == FigureUnit::Time)
        return formatSeconds(value.number * 1e-9, digits);
    if (value.unit == FigureUnit::Bytes && std::abs(value.number) < kMostShown)
        return formatBytes(Bytes{std::llround(value.number)}, digits);
    return numberText(value.number, digits);
}

std::span<const FigureEntry> figureTable()
{
    return kFigures;
}

const FigureEntry &entryOf(Figure figure)
{
    return kFigures[static_cast<std::size_t>(figure)];
}

std::vector<std::string_view> wordsOf(Figure figure)
{
    std::vector<std::string_view> words;
    if (figure == Figure::Schedule) {
        for (const ScheduleKind kind : kAllSchedules)
            words.emplace_back(nameOf(kind));
        words.emplace_back(nameOf(ScheduleKind::Listed));
    } else if (figure == Figure::LargestPart) {
        for (std::size_t part = 0; part < kStepPartCount; ++part)
            words.emplace_back(nameOf(static_cast<StepPart>(part)));
    } else if (figure == Figure::LargestKind) {
        for (std::size_t kind = static_cast<std::size_t>(Figure::Parameters);
             kind <= static_cast<std::size_t>(Figure::Buffers); ++kind)
            words.push_back(kFigures[kind].words.substr(std::string_view("the memory of ").size()));
    }
    return words;
}

std::vector<std::string_view> communicationKinds()
{
    std::vector<std::string_view> kinds;
    for (std::size_t kind = 0; kind < kInstructionKindCount; ++kind)
        if (isCommunication(static_cast<InstructionKind>(kind))
            && static_cast<InstructionKind>(kind) != InstructionKind::Recv) // counted where it is sent
            kinds.emplace_back(nameOf(static_cast<InstructionKind>(kind)));
    return kinds;
}

} // namespace planloom
