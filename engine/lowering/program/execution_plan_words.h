#pragma once

#include "engine/lowering/program/execution_plan.h"

#include <nlohmann/json_fwd.hpp>

#include <array>
#include <cstdint>
#include <string>
#include <tuple>
#include <utility>

namespace planloom {

// What the readers and the writer of execution plans share (execution_plan_json.h).

// Versions of the document: the first is of plans that are Float32 throughout, which older readers
// understand.
inline constexpr int kPlanVersion = 1;
inline constexpr int kPrecisionVersion = 2; ///< With precisions and types of buffers.
inline constexpr int kCombinationVersion = 3; ///< With summands that are not summed.
inline constexpr int kUpdatesVersion = 4; ///< With versions of weights, or several updates in a step.
inline constexpr int kDirectionsVersion = 5; ///< With a queue of its own for what stages send back.
inline constexpr int kNumbersVersion = 6; ///< With attributes that are infinite, no number, or empty lists.
inline constexpr int kFoldedVersion = 7; ///< Programs as calls of templates (folded_programs.h).

/// Of the buffers, instructions, segments and entries of schedules of all devices together: as many as a
/// folded document may stand for, so that a short one cannot fill the memory.
inline constexpr std::int64_t kMostUnfolded = std::int64_t{1} << 24;

/// By `SplitOver`.
inline constexpr std::array<const char *, 4> kSplitOver{"devices", "units", "slices", "lanes"};

/// What an instruction says of itself where it is so.
inline constexpr std::array<std::pair<const char *, bool Instruction::*>, 5> kInstructionFlags{
    {{"recompute", &Instruction::recompute}, {"joined", &Instruction::joined},
        {"overlaps", &Instruction::overlaps}, {"waits", &Instruction::waits},
        {"across_units", &Instruction::acrossUnits}}};

/// Lists of buffers, with the least that stands in them: -1 for none.
inline constexpr std::array<std::tuple<const char *, BufferList Instruction::*, std::int32_t>, 3>
    kInstructionBuffers{{{"inputs", &Instruction::inputs, -1}, {"outputs", &Instruction::outputs, -1},
        {"deaths", &Instruction::deaths, 0}}};

nlohmann::json instructionToJson(const Instruction &instruction);
nlohmann::json bufferToJson(const ExecutionPlan &plan, const BufferInfo &buffer);
nlohmann::json segmentToJson(const Segment &segment); ///< Without its instructions.
nlohmann::json scheduleToJson(const DeviceProgram &program);
/// In one line; text that is not UTF-8 is replaced.
std::string textOfJson(const nlohmann::json &value);

/// What `kMostUnfolded` is about.
std::int64_t itemCount(const ExecutionPlan &plan);

} // namespace planloom
