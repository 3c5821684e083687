#pragma once

#include "engine/base/result.h"
#include "engine/design/make_plan.h"
#include "engine/interop/configs/config_formats.h"
#include "engine/interop/configs/framework_config.h"

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace planloom {

/// A plan that a format says whole.
struct SaidPlan {
    FrameworkConfig config{}; ///< As it is read again.
    PlanRequest request{}; ///< Its rows, and those of who asked; no gallery.
    double stepSeconds = 0;
    /// Of its device that is fullest, as a share of what it has: `fullnessOf`.
    double fullness = 0;
    bool fits() const { return fullness <= 1; }
};

/// What a search among the plans of a format found.
struct ConfigSearch {
    SaidPlan best{}; ///< The fastest that fits, or where none does the one that needs least.
    std::int32_t planned = 0; ///< Plans that were simulated.
    std::int32_t refused = 0; ///< That the format says, and that are no plans of this model on these devices.
};

struct ConfigSearchOptions {
    std::int32_t mostPlanned = 400; ///< Simulations; those of the first look are all made.
    /// Rows of a plan that is there: as far as a config says it, it is tried, too.
    ConstraintTable atHand{};
    std::function<void(const SaidPlan &)> onBetter{}; ///< On the calling thread; may be empty.
};

/// Looks for the fastest plan that `format` says whole, by simulating plans that it says: written, read
/// again, and planned as they are read.
///
/// First every way to share the devices out among pipeline, tensor, expert and data parallelism is tried,
/// with little and with all of what saves memory. From the best few of them one setting at a time is changed,
/// as long as a step gets shorter: degrees (context parallelism among them), micro-batches, chunks of a
/// pipeline and their schedule, the ZeRO stage, what is computed again. Nothing is proven of what was not
/// simulated.
///
/// @param request  its model, target and rows, which every plan holds to; its gallery is empty. The target
/// has the framework that times are predicted for.
/// @return Conflict where the rows leave no plan that the format says; Cancelled if stopped
/// O(mostPlanned simulations).
Result<ConfigSearch> searchConfigs(const ConfigFormat &format, const PlanRequest &request,
    const ConfigSearchOptions &options = {}, const std::stop_token &stop = {});

/// The format that people ask for by a name of it or of its framework: "fsdp" is what accelerate's file says.
/// @return NotFound with the names there are, `where` "--for"
Result<const ConfigFormat *> searchedFormatNamed(std::string_view name);
std::vector<std::string> searchedFormatNames();

} // namespace planloom
