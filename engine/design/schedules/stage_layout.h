#pragma once

#include "engine/base/result.h"
#include "engine/design/make_plan.h"
#include "engine/schedule/schedule.h"

#include <optional>
#include <vector>

namespace planloom {

/// How the stages of a pipeline lie on its ranks.
enum class StageShape : std::uint8_t {
    AsTheyAre, ///< As rows have them.
    OneEach, ///< Stage s on rank s.
    Wave, ///< Two on each rank: stage s on rank s, and on rank 2 p - 1 - s on the way up again.
};

/// "one stage on each device"; empty for AsTheyAre.
const char *nameOf(StageShape shape);

/// How stages have to lie for a template: as they are where it takes them so, else in the first other shape
/// that it takes.
/// @param setting  as they are
/// @return what the template says of them as they are, if it takes no shape
Result<StageShape> shapeFor(ScheduleKind kind, const ScheduleSetting &setting);

/// Rows that lay the stages of a table out in another shape, over the ranks that they have: consecutive ones,
/// balanced by what `cluster` says that operators take. They stand in for those that `stageRowsOf` finds.
/// @return InvalidInput where rows do not lay stages out over one axis, or the model has too few operators
Result<std::vector<Row>> layStages(const OpenedModel &model, const TableDocument &table,
    std::int32_t deviceCount, const Cluster &cluster, StageShape shape);

/// What a template does with the stages of a plan.
struct TemplateFit {
    StageShape shape = StageShape::AsTheyAre;
    std::vector<Row> stageRows{}; ///< Of another shape: see `layStages`.
    std::optional<Error> refused{}; ///< Why it is not for them, in any shape.
};

/// By template, in the order of `scheduleTemplates`; where the plan's blocks are not known, all fit. Rows may
/// still keep a template that fits from being carried out. O(templates x blocks x micro-batches).
std::vector<TemplateFit> fitTemplates(const PlanAnswer &answer);

} // namespace planloom
