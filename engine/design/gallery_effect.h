#pragma once

#include "engine/design/make_plan.h"
#include "engine/gallery/gallery.h"

#include <stop_token>
#include <string>
#include <vector>

namespace planloom {

/// What a gallery plan would do, before it is applied.
struct GalleryEffect {
    std::string entry{};
    std::vector<GalleryValue> values{}; ///< With what the entry and the devices decide.
    ConstraintTable rows{}; ///< That it makes, with those of the search where it is left something.
    TimelineSummary summary{};
    Bytes memory{}; ///< Of a device.
    bool fits = false;
    /// What is the same on every device of an axis, and why, a sentence an axis: "over tp: 3 of 26 operators
    /// with weights are not cut, the largest 'wpe' (1.00 MiB): ...".
    std::vector<std::string> uncut{};
};

/// @param request  with a gallery plan
/// @return as `planOf`
Result<GalleryEffect> effectOf(const PlanRequest &request, const std::stop_token &stop = {});

/// What operators with weights are the same on every device of an axis of the plan's mesh, and why.
std::vector<std::string> uncutWords(const Plan &plan);

} // namespace planloom
