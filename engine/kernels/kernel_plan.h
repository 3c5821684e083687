#pragma once

#include "engine/kernels/kernel.h"

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

} // namespace planloom
