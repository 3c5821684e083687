#include "engine/design/explain/what_if_sweep.h"

#include "engine/analyse/limits.h"
#include "engine/design/models/model_rows.h"
#include "engine/gesture/kept_schedules.h"
#include "engine/table/mesh_axes.h"
#include "engine/table/table_mesh.h"

#include <algorithm>
#include <set>
#include <variant>

namespace planloom {

namespace {

constexpr std::int32_t kMostMicroBatches = 256;
constexpr std::int32_t kMostStages = 64;

/// Of its pipeline: several stages of one rank count once.
std::int32_t ranksOf(const Plan &plan, const std::vector<MeshAxis> &mesh)
{
    const std::int64_t ranks = sizeOfRole(mesh, AxisRole::Ranks);
    return ranks > 1 ? static_cast<std::int32_t>(ranks) : std::max(plan.stageCount, 1);
}

} // namespace

std::vector<SweepChoice> sweepChoices(const PlanAnswer &answer)
{
    std::vector<SweepChoice> choices;
    if (!answer.plan || !answer.model)
        return choices;
    const Plan &plan = *answer.plan;
    const std::int64_t samples = std::max<std::int64_t>(answer.model->batch->size, 1);
    std::set<std::int32_t> counts{plan.microBatches};
    for (std::int64_t m = 1; m <= std::min<std::int64_t>(samples, kMostMicroBatches); m *= 2)
        if (samples % m == 0)
            counts.insert(static_cast<std::int32_t>(m));
    for (const std::int32_t count : counts)
        choices.push_back({SweepAxis::MicroBatches, count, count == plan.microBatches, {}});
    const std::vector<MeshAxis> mesh = meshOf(answer.table.table());
    const auto shards =
        static_cast<std::int32_t>(std::max<std::int64_t>(sizeOfRole(mesh, AxisRole::Shards), 1));
    if (shards > answer.deviceCount || answer.deviceCount % shards != 0)
        return choices;
    const std::int32_t ranks = answer.deviceCount / shards;
    const std::int32_t now = ranksOf(plan, mesh);
    for (std::int32_t stages = 1; stages <= std::max(std::min(ranks, kMostStages), now); ++stages) {
        if (stages == now) {
            choices.push_back({SweepAxis::Stages, stages, true, {}});
            continue;
        }
        if (stages > ranks || ranks % stages != 0)
            continue;
        // As many micro-batches as there are, or as each replica's share of the batch can be cut into.
        const std::int64_t share = std::max<std::int64_t>(samples / (ranks / stages), 1);
        std::int64_t microBatches = std::min<std::int64_t>(plan.microBatches, share);
        while (share % microBatches != 0)
            --microBatches;
        std::string spec = "3d:dp=" + std::to_string(ranks / stages) + ",tp=" + std::to_string(shards)
            + ",pp=" + std::to_string(stages) + ",micro-batches=" + std::to_string(microBatches);
        const bool named = plan.schedule != ScheduleKind::Sequential && scheduleNamed(nameOf(plan.schedule));
        if (stages > 1 && named)
            spec += ",schedule=" + std::string(nameOf(plan.schedule));
        choices.push_back({SweepAxis::Stages, stages, false, std::move(spec)});
    }
    return choices;
}

Result<PlanRequest> requestOf(PlanRequest request, const SweepChoice &choice)
{
    request.search = false;
    request.explains = false;
    request.begin.reset();
    if (choice.now)
        return request;
    if (choice.axis == SweepAxis::Stages) {
        request.gallery = choice.gallery;
        request.table = modelRows(request.table); // its rows take the place of all others
        return request;
    }
    TRY_VOID(request.table.apply(withMicroBatches(request.table, choice.value)));
    return request;
}

Result<SweepPoint> sweep(const PlanRequest &request, const SweepChoice &choice, const std::stop_token &stop)
{
    SweepPoint point{.choice = choice};
    auto wanted = requestOf(request, choice);
    if (!wanted) {
        point.problem = wanted.error();
        return point;
    }
    wanted->upTo = PlanGrade::Timed;
    TRY(const PlanAnswerSnapshot answer, answerOf(*wanted, stop));
    point.problem = answer->firstError();
    if (!answer->isTimed() || !answer->execution)
        return point;
    point.stepSeconds = answer->summary.stepSeconds;
    point.bubble = answer->summary.bubble;
    const MemoryUse use = memoryUse(answer->summary, answer->cluster, answer->execution->units);
    point.peak = use.peak;
    point.fits = use.over == 0;
    return point;
}

} // namespace planloom
