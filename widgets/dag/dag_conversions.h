#pragma once

#include "engine/base/units.h"
#include "engine/lowering/program/execution_plan.h"

#include <QtCore/QString>

#include <cstdint>
#include <stop_token>
#include <vector>

namespace planloom {

/// What has to happen to data between the operator that makes it and the one that uses it.
enum class Conversion : std::uint8_t {
    None, ///< It is used as it was made.
    Local, ///< Devices cut, join or add what they have.
    Communication, ///< Devices exchange it.
};

/// What a plan does to one tensor of an operator.
struct TensorConversion {
    TensorId tensor{};
    bool input = false; ///< The operator uses it; else it makes it.
    Conversion conversion = Conversion::None;
    InstructionKind kind = InstructionKind::Kernel; ///< The communication, or the local step; of several the
                                                    ///< first in the list of kinds that moves the most.
    Bytes bytes{}; ///< Of the largest buffer that it takes in, on one device.
    friend bool operator==(const TensorConversion &, const TensorConversion &) = default;
};

/// Inputs, then outputs of `op`, each once, in the order of its slots; what the plan's instructions do to
/// them between its producer and it, and between it and its users. O(instructions); empty if stopped.
std::vector<TensorConversion> conversionsAround(
    const ExecutionPlan &plan, OperatorId op, const std::stop_token &stop = {});

/// "as is", "local select", "all-reduce 32 MiB".
QString textOf(const TensorConversion &conversion);

} // namespace planloom
