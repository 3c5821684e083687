#include "engine/design/schedules/schedule_choice.h"

#include "engine/design/schedules/simulated_blocks.h"
#include "engine/hardware/cluster_json.h"
#include "engine/table/kinds/meaning.h"
#include "engine/table/table_text.h"
#include "engine/verify/verify.h"
#include "tests/engine/design/small_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace planloom {
namespace {

PlanRequest pipelineRequest()
{
    const auto model =
        openModel({"zoo:gpt?layers=8&hidden=256&heads=4&seq=64&batch=16&vocab=512", {}, {}}, {});
    EXPECT_TRUE(model);
    PlanRequest request;
    request.model = *model;
    request.gallery = "pipeline:stages=4,micro-batches=8";
    request.target = {.cluster = "dgx-h100:4"};
    return request;
}

/// The chosen schedule is the shortest of all that fit, is a row of the table, and is proven.
TEST(ChooseSchedule, IsNoLongerThanAnyTemplate)
{
    const auto choice = chooseSchedule(pipelineRequest(), {.seconds = 10});
    ASSERT_TRUE(choice) << describe(choice.error());
    ASSERT_TRUE(choice->best->isTimed());
    std::size_t searched = 0;
    std::size_t planned = 0;
    for (const TriedSchedule &each : choice->tried) {
        if (each.problem)
            continue;
        ++planned;
        searched += each.name == "best" ? 1 : 0;
        if (each.fits) {
            EXPECT_GE(each.stepSeconds, choice->best->summary.stepSeconds) << each.name;
        }
    }
    EXPECT_EQ(searched, 4U); // with whole backward passes, and with split ones; in a wave, too
    EXPECT_GT(planned, 8U);
    EXPECT_EQ(choice->searches.size(), 4U);
    for (const ScheduleAnswer &each : choice->searches)
        EXPECT_EQ(each.status, ScheduleStatus::Optimal);
    const ConstraintTable table = choice->best->table.table();
    EXPECT_EQ(std::count_if(table.rows.begin(), table.rows.end(),
                  [](const Row &row) { return std::holds_alternative<ScheduleRule>(row.rule); }),
        2); // what was found, for this number of micro-batches; for any other one, what the rows said before
    const auto scheduleAt = [&](std::int32_t microBatches) {
        const auto row = scheduleRowAt(table, microBatches);
        return row ? std::get<ScheduleRule>(table.rows[static_cast<std::size_t>(row->index)].rule).kind
                   : ScheduleKind::Sequential;
    };
    const std::int32_t own = choice->best->plan->microBatches;
    EXPECT_EQ(scheduleAt(own), ScheduleKind::Listed);
    EXPECT_EQ(scheduleAt(own + 1), ScheduleKind::OneFOneB);
    const auto verdict = verify(*choice->best->execution);
    ASSERT_TRUE(verdict) << describe(verdict.error());
    EXPECT_TRUE(verdict->ok());
}

/// The pipeline's devices with so much of the memory that 1F1B needs.
void shrinkMemory(PlanRequest &request, double share)
{
    const auto roomy = chooseSchedule(request, {.seconds = 0});
    ASSERT_TRUE(roomy) << describe(roomy.error());
    double peak = 0;
    for (const TriedSchedule &each : roomy->tried)
        if (each.name == "1f1b")
            peak = static_cast<double>(each.peak.count);
    auto target = resolve(request.target);
    ASSERT_TRUE(target);
    target->cluster.device.memory.value = share * peak;
    request.target = {.cluster = "small", .clusterJson = toJson(target->cluster)};
}

/// Where a device has a quick way to its host, and rows forbid to recompute, the search offloads in stages
/// that hold too much; where rows leave only some operators to it, only those.
TEST(ChooseSchedule, OffloadsInStagesWhereMemoryBinds)
{
    const auto model =
        openModel({"zoo:gpt?layers=8&hidden=256&heads=4&seq=512&batch=8&vocab=512", {}, {}}, {});
    ASSERT_TRUE(model);
    PlanRequest request = pipelineRequest();
    request.model = *model;
    shrinkMemory(request, 0.95);
    const auto table = parseTable("recompute all never");
    ASSERT_TRUE(table && request.table.apply(appendRows(request.table, table->rows)));
    const auto choice = chooseSchedule(request, {.seconds = 1});
    ASSERT_TRUE(choice) << describe(choice.error());
    std::size_t offloaded = 0;
    for (const TriedSchedule &each : choice->tried)
        for (const Row &row : each.memoryRows) {
            const auto *rule = std::get_if<OffloadRule>(&row.rule);
            ASSERT_NE(rule, nullptr) << print(row);
            EXPECT_EQ(rule->what, OffloadedKind::Activations);
            offloaded += each.fits ? 1 : 0;
        }
    EXPECT_GT(offloaded, 0U);
    const auto verdict = verify(*choice->best->execution);
    ASSERT_TRUE(verdict) << describe(verdict.error());
    EXPECT_TRUE(verdict->ok());
    const auto never = parseTable("offload all : activations never");
    ASSERT_TRUE(never && request.table.apply(appendRows(request.table, never->rows)));
    const auto kept = chooseSchedule(request, {.seconds = 1});
    ASSERT_TRUE(kept) << describe(kept.error());
    for (const TriedSchedule &each : kept->tried)
        EXPECT_TRUE(each.memoryRows.empty()) << each.name;
}

/// Where everything fits, nothing is recomputed; on devices that are too small for 1F1B, the search
/// recomputes in some stages, and its plans fit.
TEST(ChooseSchedule, RecomputesInStagesWhereMemoryBinds)
{
    const auto model =
        openModel({"zoo:gpt?layers=8&hidden=256&heads=4&seq=512&batch=8&vocab=512", {}, {}}, {});
    ASSERT_TRUE(model);
    PlanRequest request = pipelineRequest();
    request.model = *model;
    const auto roomy = chooseSchedule(request, {.seconds = 1});
    ASSERT_TRUE(roomy) << describe(roomy.error());
    double peak = 0;
    for (const TriedSchedule &each : roomy->tried) {
        EXPECT_TRUE(each.memoryRows.empty()) << each.name;
        if (each.name == "1f1b")
            peak = static_cast<double>(each.peak.count);
    }
    auto target = resolve(request.target);
    ASSERT_TRUE(target);
    target->cluster.device.memory.value = 0.95 * peak;
    request.target = {.cluster = "small", .clusterJson = toJson(target->cluster)};
    const auto tight = chooseSchedule(request, {.seconds = 1});
    ASSERT_TRUE(tight) << describe(tight.error());
    std::size_t recomputed = 0;
    for (const TriedSchedule &each : tight->tried) {
        EXPECT_TRUE(each.name != "1f1b" || !each.fits);
        if (each.memoryRows.empty())
            continue;
        EXPECT_EQ(each.name, "best");
        recomputed += each.fits ? 1 : 0;
    }
    EXPECT_GT(recomputed, 0U);
    ASSERT_TRUE(tight->best->execution);
    const auto verdict = verify(*tight->best->execution);
    ASSERT_TRUE(verdict) << describe(verdict.error());
    EXPECT_TRUE(verdict->ok());
    // Rows that say what is recomputed and offloaded leave nothing to the search.
    const auto never = parseTable("recompute all never\noffload all : activations never");
    ASSERT_TRUE(never && request.table.apply(appendRows(request.table, never->rows)));
    const auto kept = chooseSchedule(request, {.seconds = 1});
    ASSERT_TRUE(kept) << describe(kept.error());
    for (const TriedSchedule &each : kept->tried)
        EXPECT_TRUE(each.memoryRows.empty()) << each.name;
}

/// Gradients of replicas are reduced, and weights updated, once behind the backward blocks of their stage;
/// what no schedule is shorter than counts both, and the simulated step is no shorter.
TEST(ChooseSchedule, CountsWhatRunsOnceAStep)
{
    PlanRequest request = pipelineRequest();
    request.gallery = "3d:dp=2,pp=2,micro-batches=4";
    request.upTo = PlanGrade::Simulated;
    const auto answer = answerOf(request);
    ASSERT_TRUE(answer && (*answer)->timeline && (*answer)->execution);
    const std::vector<BlockInfo> blocks = simulatedBlocks(**answer, *(*answer)->timeline);
    const StagePlacement stages = placementOfBlocks(blocks, (*answer)->materialized->dataFlow, {}, {});
    ASSERT_TRUE(validate(stages.placement)) << describe(validate(stages.placement).error());
    std::map<std::string, std::int32_t> once;
    Placement without = stages.placement;
    for (std::size_t b = 0; b < stages.placement.blocks.size(); ++b) {
        const PlacementBlock &block = stages.placement.blocks[b];
        if (!block.once)
            continue;
        ++once[block.kind];
        EXPECT_EQ(block.queue, block.kind == "reduce" ? 3 : 0);
        std::int32_t waits = 0;
        for (const PlacementEdge &edge : stages.placement.edges)
            if (edge.after == static_cast<std::int32_t>(b)) {
                ++waits;
                const PlacementBlock &before = stages.placement.blocks[static_cast<std::size_t>(edge.before)];
                // The update of a weight that both stages have is on all devices.
                EXPECT_TRUE(std::includes(block.devices.begin(), block.devices.end(), before.devices.begin(),
                    before.devices.end()));
                EXPECT_EQ(before.kind, "backward");
            }
        EXPECT_EQ(waits, 1);
        without.blocks[b].time = 1;
    }
    EXPECT_GE(once["reduce"], 2);
    EXPECT_GE(once["optimizer"], 2);
    const std::int64_t bound = makespanBound(stages.placement, 4);
    EXPECT_GT(bound, makespanBound(without, 4));
    EXPECT_LE(static_cast<double>(bound), (*answer)->summary.stepSeconds * 1e9);
}

TEST(ChooseSchedule, ASearchedScheduleIsAsListed)
{
    const auto base = answerOf(pipelineRequest());
    ASSERT_TRUE(base && (*base)->materialized);
    const StagePlacement stages =
        placementOfBlocks((*base)->materialized->blocks, (*base)->materialized->dataFlow, {}, {});
    ASSERT_TRUE(validate(stages.placement));
    EXPECT_EQ(stages.placement.devices, 4);
    const auto found = findSchedule(stages.placement, {.microBatches = 8, .seconds = 10});
    ASSERT_TRUE(found);
    const Schedule schedule = scheduleOf(stages, found->makespan.starts);
    const auto request = withSchedule(pipelineRequest(), {ScheduleKind::Listed, schedule});
    ASSERT_TRUE(request) << describe(request.error());
    const auto answer = answerOf(*request);
    ASSERT_TRUE(answer);
    ASSERT_FALSE((*answer)->firstError()) << describe(*(*answer)->firstError());
    EXPECT_EQ((*answer)->plan->order, schedule);
    // Blocks of each device run in the listed order.
    for (const DeviceProgram &device : (*answer)->execution->devices) {
        std::vector<std::pair<std::int32_t, std::int32_t>> runs; // stage and micro-batch
        for (const ScheduleEntry &entry : device.schedule) {
            const Segment &segment = device.segments[static_cast<std::size_t>(entry.segment)];
            if (segment.kind == SegmentKind::Forward && (entry.begin == 0))
                runs.emplace_back(segment.stage.index, entry.microBatch);
        }
        std::vector<std::pair<std::int32_t, std::int32_t>> listed;
        for (const auto &rank : schedule.ranks)
            for (const ScheduledBlock &block : rank)
                if (block.block.pass == SegmentKind::Forward && !runs.empty()
                    && block.block.stage.index == runs.front().first)
                    listed.emplace_back(block.block.stage.index, block.microBatch);
        EXPECT_EQ(runs, listed);
    }
}

/// A searched schedule takes as long in simulation as the search says, and that is what the busiest device
/// takes, where memory lets nobody wait: what is sent does not get into its own way.
TEST(ChooseSchedule, FoundOrdersAreAsLongAsTheBusiestDevice)
{
    const auto model =
        openModel({"zoo:gpt?layers=16&hidden=4096&heads=32&seq=2048&batch=32&vocab=32000", {}, {}}, {});
    ASSERT_TRUE(model);
    PlanRequest request;
    request.model = *model;
    request.gallery = "pipeline:stages=8,micro-batches=32";
    request.target = {.cluster = "dgx-h100:8"};
    const auto choice = chooseSchedule(request, {.seconds = 10});
    ASSERT_TRUE(choice) << describe(choice.error());
    std::size_t compared = 0;
    for (const ScheduleSearch &search : choice->searches) {
        if (search.shape != StageShape::AsTheyAre || !search.splits)
            continue;
        ASSERT_EQ(search.status, ScheduleStatus::Optimal);
        for (const TriedSchedule &each : choice->tried) {
            if (each.name != "best" || each.shape != search.shape || !splitsBackward(each.rule.order))
                continue;
            ++compared;
            EXPECT_LE(each.stepSeconds * 1e9, 1.01 * static_cast<double>(search.stepBound()));
        }
    }
    EXPECT_EQ(compared, 1U);
}

/// Stages that differ, as those of DeepSeek-V3: layers without mixtures first, the head and a module that
/// predicts one token further last.
TEST(ChooseSchedule, UnequalStagesAreNoLongerThanUnderAnyTemplate)
{
    const auto model = openModel({"zoo:llama?layers=13&hidden=1024&heads=8&ffn=512&seq=1024&batch=32"
                                  "&vocab=32000&experts=16&top_k=4&dense=3&dense_ffn=4096&mtp=1",
                                     {}, {}},
        {});
    ASSERT_TRUE(model) << describe(model.error());
    PlanRequest request;
    request.model = *model;
    request.gallery = "pipeline:stages=8,micro-batches=32";
    request.target = {.cluster = "dgx-h100:8"};
    const auto choice = chooseSchedule(request, {.seconds = 10});
    ASSERT_TRUE(choice) << describe(choice.error());
    // By the passes' form and the stages' shape: what a search found, and the shortest with a name.
    std::map<std::pair<bool, StageShape>, double> found;
    std::map<std::pair<bool, StageShape>, double> named;
    for (const TriedSchedule &each : choice->tried) {
        if (each.problem)
            continue;
        if (each.fits) {
            EXPECT_GE(each.stepSeconds, choice->best->summary.stepSeconds) << each.name;
        }
        const bool listed = each.rule.kind == ScheduleKind::Listed;
        const std::pair form{
            listed ? splitsBackward(each.rule.order) : splitsBackward(each.rule.kind), each.shape};
        // These overlap what blocks communicate inside, which a list of blocks does not say.
        if (each.rule.kind == ScheduleKind::CombinedOneFOneB || each.rule.kind == ScheduleKind::DualPipeV)
            continue;
        auto &shortest = listed ? found : named;
        const auto [known, isNew] = shortest.try_emplace(form, each.stepSeconds);
        known->second = std::min(known->second, each.stepSeconds);
    }
    ASSERT_EQ(found.size(), 4U);
    for (const auto &[form, seconds] : found) {
        EXPECT_LE(seconds, 1.01 * named.at(form)) << form.first << " " << nameOf(form.second);
    }
}

TEST(ChooseSchedule, StopsWhenAskedTo)
{
    std::stop_source stop;
    stop.request_stop();
    const auto choice = chooseSchedule(pipelineRequest(), {.seconds = 10}, stop.get_token());
    ASSERT_FALSE(choice);
    EXPECT_EQ(choice.error().code, ErrorCode::Cancelled);
}

/// What is reported on the way: every schedule once, with its answer, and bounds before the searches end.
TEST(ChooseSchedule, ReportsAsItGoes)
{
    std::size_t reported = 0;
    std::size_t withSpans = 0;
    const auto choice = chooseSchedule(pipelineRequest(),
        {.spans = true, .report = [&](const ScheduleChoice &known, const PlanAnswerSnapshot &answer) {
             ASSERT_LE(reported, known.tried.size());
             ASSERT_LE(known.tried.size(), reported + 1);
             reported = known.tried.size();
             withSpans += answer && answer->timeline ? 1 : 0;
             for (const ScheduleSearch &search : known.searches) {
                 EXPECT_FALSE(search.proof.empty());
                 EXPECT_GT(search.makespan.bound, 0);
             }
         }});
    ASSERT_TRUE(choice) << describe(choice.error());
    EXPECT_EQ(reported, choice->tried.size());
    const auto planned = std::count_if(
        choice->tried.begin(), choice->tried.end(), [](const TriedSchedule &each) { return !each.problem; });
    EXPECT_EQ(withSpans, static_cast<std::size_t>(planned));
    EXPECT_EQ(choice->tried.front().name, choice->bestName);
    for (const ScheduleSearch &search : choice->searches)
        EXPECT_NE(search.proof.find("GPU "), std::string::npos) << search.proof;
}

TEST(ChooseSchedule, WithoutASearchTriesThoseWithAName)
{
    const auto choice = chooseSchedule(pipelineRequest(), {.seconds = 0});
    ASSERT_TRUE(choice) << describe(choice.error());
    EXPECT_EQ(choice->tried.size(), kAllSchedules.size());
    EXPECT_TRUE(choice->searches.empty());
    for (const TriedSchedule &each : choice->tried) {
        if (each.name == "gpipe") {
            EXPECT_EQ(each.inFlight, 8);
        }
        if (each.name == "1f1b") {
            EXPECT_EQ(each.inFlight, 4);
        }
    }
}

/// Templates that are refused are those that no plan has; those that run in waves lay the stages out anew.
TEST(ChooseSchedule, RefusedTemplatesHaveNoPlan)
{
    const auto base = answerOf(pipelineRequest());
    ASSERT_TRUE(base);
    const auto fits = fitTemplates(**base);
    ASSERT_EQ(fits.size(), kAllSchedules.size());
    const auto choice = chooseSchedule(pipelineRequest(), {.seconds = 0});
    ASSERT_TRUE(choice);
    for (std::size_t i = 0; i < fits.size(); ++i) {
        const ScheduleKind kind = kAllSchedules[i];
        const bool wave = runsInWaves(kind) || kind == ScheduleKind::Chimera; // whose halves are a wave, too
        EXPECT_EQ(fits[i].shape == StageShape::Wave, wave) << nameOf(kind);
        EXPECT_EQ(fits[i].stageRows.size(), wave ? 16U : 0U) << nameOf(kind);
        for (const TriedSchedule &each : choice->tried)
            if (each.name == nameOf(kind)) {
                EXPECT_EQ(fits[i].refused.has_value(), each.problem.has_value()) << each.name;
                EXPECT_EQ(each.stageRows, fits[i].stageRows) << each.name;
            }
    }
}

/// A schedule by name alone: with the stages that it is for, whatever rows said of them, and back again.
TEST(ChooseSchedule, LaysStagesOutForASchedule)
{
    PlanRequest bare = pipelineRequest();
    bare.gallery.clear();
    PlanRequest wave = pipelineRequest();
    wave.gallery = "pipeline:stages=4,micro-batches=8,schedule=v-half";
    for (const PlanRequest &request : {pipelineRequest(), bare, wave})
        for (const ScheduleKind kind : {ScheduleKind::ZeroBubbleV, ScheduleKind::DualPipeV,
                 ScheduleKind::VMin, ScheduleKind::Hanayo, ScheduleKind::ZeroBubbleH2}) {
            SCOPED_TRACE(request.gallery + " " + nameOf(kind));
            const auto with = withSchedule(request, {kind, {}});
            ASSERT_TRUE(with) << describe(with.error());
            const auto answer = answerOf(*with);
            ASSERT_TRUE(answer);
            ASSERT_FALSE((*answer)->firstError()) << describe(*(*answer)->firstError());
            EXPECT_EQ((*answer)->execution->stageCount, runsInWaves(kind) ? 8 : 4);
            EXPECT_EQ((*answer)->plan->schedule, kind);
            ASSERT_TRUE((*answer)->verdict);
            EXPECT_TRUE((*answer)->verdict->ok());
        }
}

/// Rows for all micro-batches are dependencies of the search; others are named, and kept all the same.
TEST(ChooseSchedule, KeepsTheRowsOfAPerson)
{
    PlanRequest request = pipelineRequest();
    const auto rows = answerOf(request);
    ASSERT_TRUE(rows);
    request.gallery.clear();
    request.table = (*rows)->table;
    const auto write = [&](const auto &propose) {
        GestureContext context = gestureContextOf(*request.model, request.table, 4);
        context.plan = (*rows)->plan;
        context.cluster = (*rows)->cluster;
        const Proposal proposal = propose(context);
        ASSERT_TRUE(proposal.accepted()) << (proposal.refusal ? describe(*proposal.refusal) : "");
        ASSERT_TRUE(request.table.apply(proposal.edit));
    };
    write([](const GestureContext &context) { return proposeInFlight(context, StageId{0}, 2); });
    const auto block = [](std::int32_t stage, Direction direction, std::int32_t microBatch) {
        return BlockRef{StageId{stage}, direction, microBatch};
    };
    write([&](const GestureContext &context) {
        return proposeBlockOrder(
            context, block(1, Direction::Backward, 0), block(1, Direction::Forward, 2), false);
    });
    write([&](const GestureContext &context) {
        return proposeBlockOrder(
            context, block(2, Direction::Backward, 1), block(2, Direction::Forward, 4), true);
    });
    const auto choice = chooseSchedule(request, {.seconds = 5});
    ASSERT_TRUE(choice) << describe(choice.error());
    ASSERT_EQ(choice->bentTo.size(), 1U);
    const ConstraintTable table = request.table.table();
    EXPECT_EQ(choice->bentTo.front().index, static_cast<std::int32_t>(table.rows.size()) - 1);
    std::size_t best = 0;
    for (const TriedSchedule &each : choice->tried)
        if (each.name == "best" && !each.problem) {
            ++best;
            for (const auto &rank : each.rule.order.ranks) {
                std::int32_t held = 0; // of stage 0
                std::int32_t ahead = 0; // of stage 1
                for (const ScheduledBlock &block : rank) {
                    const bool backward = block.block.pass != SegmentKind::Forward;
                    if (block.block.stage.index == 0
                        && (!backward || block.block.pass == SegmentKind::Backward
                            || block.block.pass == SegmentKind::WeightGradient))
                        held += backward ? -1 : 1;
                    EXPECT_LE(held, 2);
                    if (block.block.stage.index == 1 && block.block.pass != SegmentKind::WeightGradient)
                        ahead += backward ? -1 : 1;
                    EXPECT_LE(ahead, 2); // the third forward block comes behind the first backward block
                }
            }
        }
    EXPECT_GT(best, 0U);
}

} // namespace
} // namespace planloom
