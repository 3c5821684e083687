#pragma once

#include "engine/kernels/kernel_call.h"

#include <optional>
#include <utility>

namespace planloom {

/// What a call asks for, worked out from its slots, shapes and attributes: between which buffers, and how
/// they lie. Kernels start from it on every kind of device. Nothing where the call wants nothing; an Error
/// that names the operator where a slot is missing, or its shapes do not fit.
template<typename Plan> class [[nodiscard]] Planned : public Result<std::optional<Plan>>
{
public:
    Planned(Plan plan)
        : Result<std::optional<Plan>>(std::optional<Plan>(std::move(plan)))
    {
    }
    Planned(std::nullopt_t)
        : Result<std::optional<Plan>>(std::optional<Plan>{})
    {
    }
    Planned(Error error)
        : Result<std::optional<Plan>>(std::move(error))
    {
    }
};

/// The kernel that plans a call by `plan`, and runs by `run(call, plan)` what there is to be made.
template<auto plan, auto run> Result<void> planned(const KernelCall &call)
{
    TRY(const auto made, plan(call));
    return made ? run(call, *made) : Result<void>{};
}

/// The kernel that makes its first output of its first input, or, backward, of the gradient:
/// `run(call, from, to)`.
template<auto run> Result<void> mapped(const KernelCall &call)
{
    const Buffer *from = findInput(call, 0);
    const Buffer *to = findOutput(call, 0);
    if (to == nullptr)
        return {};
    if (from == nullptr)
        return missingSlot(call, call.op->direction == Direction::Backward ? "a gradient" : "its input");
    return run(call, *from, *to);
}

} // namespace planloom
