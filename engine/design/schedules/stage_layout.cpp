#include "engine/design/schedules/stage_layout.h"

#include "engine/base/ids.h"
#include "engine/gallery/gallery_find.h"
#include "engine/lowering/order/block_setting.h"

#include <algorithm>
#include <map>

namespace planloom {

namespace {

/// The same ranks with their stages in another shape.
ScheduleSetting inShape(const ScheduleSetting &setting, StageShape shape)
{
    ScheduleSetting other{
        .rankCount = setting.rankCount, .microBatches = setting.microBatches, .backward = setting.backward};
    const std::int32_t p = setting.rankCount;
    for (std::int32_t s = 0; s < (shape == StageShape::Wave ? 2 * p : p); ++s)
        other.rankOf.push_back(std::min(s, 2 * p - 1 - s));
    return other;
}

} // namespace

const char *nameOf(StageShape shape)
{
    switch (shape) {
    case StageShape::AsTheyAre:
        return "";
    case StageShape::OneEach:
        return "one stage on each device";
    case StageShape::Wave:
        return "two stages on each device, in a wave";
    }
    return "";
}

Result<StageShape> shapeFor(ScheduleKind kind, const ScheduleSetting &setting)
{
    const auto make = scheduleTemplates()[static_cast<std::size_t>(kind)].make;
    if (!make)
        return StageShape::AsTheyAre;
    const auto own = make(setting);
    if (own)
        return StageShape::AsTheyAre;
    if (setting.laneRanks.empty() && setting.wide.empty() && setting.rankCount > 1)
        for (const StageShape shape : {StageShape::OneEach, StageShape::Wave})
            if (make(inShape(setting, shape)))
                return shape;
    return own.error();
}

Result<std::vector<Row>> layStages(const OpenedModel &model, const TableDocument &table,
    std::int32_t deviceCount, const Cluster &cluster, StageShape shape)
{
    const auto rows = stageRowsOf(table);
    const RowSetting setting = gestureContextOf(model, table, deviceCount);
    if (!rows || findAxis(setting.mesh, rows->axis) == nullptr)
        return Error{ErrorCode::InvalidInput,
            "rows do not lay the stages out one by one over an axis of the mesh",
            "begin with the gallery's pipeline or 3d", "stages"};
    const CostModel seconds = costModelOf(cluster);
    const OperatorCosts costs(*model.graph, seconds, usualPrecision(cluster));
    FindLine line{.kind = FindLine::Kind::Stages, .axis = rows->axis};
    line.waves = shape == StageShape::Wave;
    line.times = line.waves ? 2 : 1;
    ConstraintTable laid;
    TRY_VOID(appendFound(line, FindSetting{model, deviceCount, costs, setting.mesh}, laid));
    return std::move(laid.rows);
}

std::vector<TemplateFit> fitTemplates(const PlanAnswer &answer)
{
    std::vector<TemplateFit> fits(scheduleTemplates().size());
    if (!answer.materialized || !answer.execution)
        return fits;
    const ScheduleSetting setting =
        settingOf(answer.materialized->blocks, answer.execution->microBatches, answer.execution->stageCount);
    std::map<StageShape, Result<std::vector<Row>>> laid; // of shapes that were asked for
    for (std::size_t i = 0; i < fits.size(); ++i) {
        const auto shape = shapeFor(scheduleTemplates()[i].kind, setting);
        if (!shape) {
            fits[i].refused = shape.error();
            continue;
        }
        if (*shape == StageShape::AsTheyAre)
            continue;
        if (!laid.contains(*shape))
            laid.emplace(
                *shape, layStages(*answer.model, answer.table, answer.deviceCount, answer.cluster, *shape));
        const Result<std::vector<Row>> &rows = laid.at(*shape);
        if (rows) {
            fits[i].shape = *shape;
            fits[i].stageRows = *rows;
        } else {
            fits[i].refused = rows.error();
        }
    }
    return fits;
}

} // namespace planloom
