#pragma once

#include "engine/lowering/program/execution_plan.h"
#include "engine/lowering/program/plan_value.h"

#include <cstddef>
#include <vector>

namespace planloom {

/// Reads what devices do from an execution plan's document. What is wrong is thrown (`PlanValue`).
class ProgramFromJson
{
public:
    /// @param plan  all but its devices; outlives this
    ProgramFromJson(const ExecutionPlan &plan, std::size_t deviceCount)
        : m_plan(plan)
        , m_deviceCount(deviceCount)
    {
    }

    DeviceProgram device(const PlanValue &value) const; ///< Written out.

    /// All but the tensor, which is said elsewhere.
    BufferInfo buffer(const PlanValue &value, TensorId tensor) const;
    /// All but operator and part.
    /// @param bufferCount  that it may name
    Instruction instruction(const PlanValue &value, std::size_t bufferCount) const;
    /// Fails, at `value`, where a kernel does not fit its operator.
    void requireKernel(const PlanValue &value, const Instruction &instruction) const;
    Segment segment(const PlanValue &value) const; ///< Without its instructions.
    std::vector<ScheduleEntry> schedule(const PlanValue &value, const DeviceProgram &program) const;

private:
    Instruction writtenOut(const PlanValue &value, const DeviceProgram &program) const;

    const ExecutionPlan &m_plan;
    std::size_t m_deviceCount;
};

} // namespace planloom
