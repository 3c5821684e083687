#include "engine/design/balanced_gallery.h"

#include "engine/design/gallery_folder.h"
#include "engine/gallery/gallery.h"
#include "engine/table/table_text.h"

#include <algorithm>
#include <set>

namespace planloom {

namespace {

constexpr double kUsedRoom = 0.995; ///< Of the memory: what the next cut holds is known only nearly.

/// By forward operator: what it and its backward operator take on one device in a step.
std::vector<std::int64_t> bothPasses(const PlanAnswer &answer)
{
    const Graph &graph = *answer.model->graph;
    std::vector<std::int64_t> nanoseconds(graph.operators.size(), 0);
    for (std::size_t i = 0; i < nanoseconds.size(); ++i) {
        const Operator &op = graph.operators[i];
        if (op.direction != Direction::Forward)
            continue;
        nanoseconds[i] = answer.operatorNanoseconds[i]
            + (op.mirror.valid() ? answer.operatorNanoseconds[static_cast<std::size_t>(op.mirror.index)] : 0);
    }
    return nanoseconds;
}

/// What operators hold on their stages' devices as long as the step lasts, and how much more or less of that
/// the devices of each stage have room for.
void addRoom(const PlanAnswer &answer, StageMeasure &measure)
{
    const Graph &graph = *answer.model->graph;
    const Plan &plan = *answer.plan;
    const auto limit = static_cast<double>(leastMemory(answer.cluster));
    // By stage: bytes of its weights, what its fullest device holds for good, and its peak.
    struct Stage {
        double weights = 0;
        double held = 0;
        double peak = 0;
    };
    std::vector<Stage> stages(static_cast<std::size_t>(plan.stageCount));
    std::vector<double> weights(graph.operators.size(), 0);
    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
        if (graph.operators[i].direction != Direction::Forward || !plan.decisions[i].stage.valid())
            continue;
        for (const TensorId input : graph.operators[i].inputs)
            if (input && graph.at(input).role == TensorRole::Weight)
                weights[i] += static_cast<double>(elementCount(graph.at(input).type.shape));
        Stage &stage = stages[static_cast<std::size_t>(plan.decisions[i].stage.index)];
        stage.weights += weights[i];
        for (const DeviceId device : plan.decisions[i].devices) {
            const MemoryCurve &curve = answer.timeline->memory[static_cast<std::size_t>(device.index)];
            if (static_cast<double>(curve.peak.count) <= stage.peak)
                continue;
            stage.peak = static_cast<double>(curve.peak.count);
            stage.held = 0;
            for (const MemoryKind kind :
                {MemoryKind::Weight, MemoryKind::Gradient, MemoryKind::OptimizerState})
                stage.held += static_cast<double>(curve.atPeak[static_cast<std::size_t>(kind)]);
        }
    }
    double held = 0;
    double all = 0;
    for (const Stage &stage : stages) {
        held += stage.held;
        all += stage.weights;
    }
    if (all == 0)
        return;
    const double each = held / all; // bytes on a device of an element of a weight
    measure.bytes.assign(weights.size(), 0);
    for (std::size_t i = 0; i < weights.size(); ++i)
        measure.bytes[i] = static_cast<std::int64_t>(weights[i] * each);
    for (const Stage &stage : stages)
        measure.room.push_back(
            static_cast<std::int64_t>(std::max(stage.weights * each + kUsedRoom * limit - stage.peak, 0.0)));
}

bool fits(const PlanAnswer &answer)
{
    return static_cast<double>(answer.summary.largestPeak.count)
        <= static_cast<double>(leastMemory(answer.cluster));
}

bool isBetter(const PlanAnswer &one, const PlanAnswer &other)
{
    if (fits(one) != fits(other))
        return fits(one);
    return fits(one) ? one.summary.stepSeconds < other.summary.stepSeconds
                     : one.summary.largestPeak.count < other.summary.largestPeak.count;
}

bool hasStages(const ConstraintTable &table)
{
    return std::any_of(table.rows.begin(), table.rows.end(),
        [](const Row &row) { return std::holds_alternative<StageRule>(row.rule); });
}

} // namespace

Result<PlanAnswerSnapshot> balancedPlanOf(
    const PlanRequest &request, std::int32_t rounds, const std::stop_token &stop)
{
    const Gallery gallery = findGallery();
    PlanRequest next = request;
    next.upTo = PlanGrade::Simulated;
    const std::string rows = request.table.text();
    std::set<std::string> seen;
    PlanAnswerSnapshot best;
    for (std::int32_t round = 0; round < rounds; ++round) {
        auto answer = planOf(next, stop);
        if (!answer)
            return best ? best : std::move(answer);
        if (!best || isBetter(**answer, *best))
            best = *answer;
        if (request.gallery.empty() || !hasStages((*answer)->table.table())
            || !seen.insert((*answer)->table.text()).second)
            break;
        StageMeasure measure{.nanoseconds = bothPasses(**answer)};
        addRoom(**answer, measure);
        TRY(const GalleryPlan plan,
            galleryPlan(request.gallery, gallery, *request.model, (*answer)->deviceCount,
                costModelOf((*answer)->cluster), &measure, usualPrecision((*answer)->cluster)));
        next.gallery.clear();
        next.table = TableDocument(print(plan.table) + rows);
    }
    return best;
}

} // namespace planloom
