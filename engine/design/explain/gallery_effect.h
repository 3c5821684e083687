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
    std::vector<std::string> uncut{}; ///< As `uncutWords`.
    std::string copied{}; ///< As `copiedWords`.
    bool isCopied = false; ///< Over `kMostCopies`: replicas hardly share anything.
};

/// @param request  with a gallery plan
/// @return as `planOf`
Result<GalleryEffect> effectOf(const PlanRequest &request, const std::stop_token &stop = {});

/// Operators whose weights are the same on every device of an axis, along which other weights are cut.
struct UncutWeights {
    std::string axis{};
    std::vector<OperatorId> operators{}; ///< Of one name but for numbers; ascending.
    std::string name{}; ///< "96 h.*.attn.c_attn", "lm_head"
    Bytes bytes{}; ///< Of all their weights, whole.
    std::string why{}; ///< "8 does not divide v=50257 (50264 would do)"
    bool isIndivisible = false; ///< That is a matter of sizes, not of rows.
    /// Much of a device's share of the model's weights: half of it; a twentieth where sizes stand in the way.
    bool matters = false;
};
/// The largest first. O(operators + their splits)
std::vector<UncutWeights> uncutWeights(const Plan &plan);
/// "lm_head over tp (2.30 GiB): 8 does not divide v=50257 (50264 would do)"
std::string wordsOf(const UncutWeights &uncut);
/// A sentence for each of the few that matter most, and one for all others of an axis.
std::vector<std::string> uncutWords(const Plan &plan);

} // namespace planloom
