#pragma once

#include "engine/base/result.h"
#include "engine/design/make_plan.h"
#include "engine/interop/configs/config_formats.h"
#include "engine/interop/configs/framework_config.h"

#include <string>
#include <vector>

namespace planloom {

constexpr std::size_t kMostRowsTimed = 16; ///< A simulation each.

/// A row that a format can't say.
struct UnsaidRow {
    RowId row{};
    std::string text{};
    /// A step of the plan without it; 0 where that is no plan, and for rows behind the first
    /// `kMostRowsTimed`.
    double secondsWithout = 0;
    friend bool operator==(const UnsaidRow &, const UnsaidRow &) = default;
};

/// A plan as a framework's config says it, and what that leaves out.
struct WrittenConfig {
    std::string text{};
    std::vector<UnsaidRow> unsaid{}; ///< Without these rows the format says the plan whole.
    std::vector<std::string>
        instead{}; ///< Rows that the config makes and the plan has not, where they differ.
    /// Where the framework numbers ranks otherwise than the plan numbers devices, the device of each rank.
    std::vector<DeviceId> ranks{};
    bool isWhole = false; ///< What was written, read again and planned, is the same plan.
    double planSeconds = 0; ///< A step; 0 where the config says the plan whole.
    double configSeconds = 0; ///< A step of what the config says; 0 where it can't be planned.
    std::vector<std::string> notes{};
};

/// A config as text in a format: only what is not the framework's default, keys in the order of its tables.
std::string printConfig(const ConfigFormat &format, const FrameworkConfig &config);

/// The rows of `request` as they are: nothing is searched. @return as `planOf`
Result<PlanAnswerSnapshot> plannedAsTheyAre(PlanRequest request, PlanGrade upTo);

/// Fills in what a step takes: of the plan, of what is said in its place (`again`), and without each of the
/// first `kMostRowsTimed` unsaid rows.
void timeUnsaid(const PlanRequest &request, const PlanRequest &again, WrittenConfig &written);

/// Writes the rows of `request` for a framework, reads what was written, and plans it again: so what is said
/// to be said, is. @param request  with its model, its rows (no gallery) and its target
/// @return InvalidInput where the rows are no plan, or have a mesh that no config has words for
Result<WrittenConfig> writeConfig(const ConfigFormat &format, const PlanRequest &request);

} // namespace planloom
