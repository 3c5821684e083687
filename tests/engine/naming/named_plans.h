#pragma once

#include "engine/design/make_plan.h"
#include "engine/naming/plan_name.h"

#include <cstdint>
#include <string>

namespace planloom {

/// The plan of a gallery's spec (may be empty) and rows behind it, every decision made.
inline Result<PlanAnswerSnapshot> plannedFor(
    const ModelSnapshot &model, const std::string &spec, const std::string &rows, std::int32_t devices)
{
    PlanRequest request;
    request.model = model;
    request.gallery = spec;
    request.table = TableDocument(rows);
    request.target = {"cpu:" + std::to_string(devices), {}, devices};
    request.upTo = PlanGrade::Planned;
    request.allowsCopies = true;
    return planOf(request);
}

} // namespace planloom
