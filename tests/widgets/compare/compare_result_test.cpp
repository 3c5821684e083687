#include "widgets/compare/compare_result.h"

#include "engine/analyse/statistics.h"
#include "engine/table/table_text.h"
#include "tests/widgets/timeline/scene_for_tests.h"
#include "widgets/compare/alignment.h"
#include "widgets/compare/compare_export.h"
#include "widgets/compare/compared_lanes.h"
#include "widgets/compare/metric_table.h"
#include "widgets/compare/waterfall_view.h"
#include "widgets/scene/plan_thumbnail.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

namespace planloom {
namespace {

constexpr const char *kGpt = "zoo:gpt?layers=2&hidden=32&heads=2&seq=8&vocab=64&batch=8";

PlanUpdateSnapshot planOf(const std::string &gallery, const std::string &text = {})
{
    static const ModelSnapshot kModel = *openModel({kGpt, {}, {}}, {});
    PlanRequest request;
    request.model = kModel;
    request.gallery = gallery;
    request.table = TableDocument(text);
    request.target = {"dgx-a100", {}, 4};
    request.upTo = PlanGrade::Simulated;
    PlanUpdateSnapshot last;
    makeUpdates(request, {}, {}, [&last](PlanUpdateSnapshot update) { last = std::move(update); });
    return last;
}

const PlanUpdateSnapshot &dataParallel()
{
    static const PlanUpdateSnapshot kPlan = planOf("data-parallel");
    return kPlan;
}

const PlanUpdateSnapshot &pipeline()
{
    static const PlanUpdateSnapshot kPlan = planOf("3d:dp=2,pp=2,tp=1,schedule=1f1b,micro-batches=4");
    return kPlan;
}

ConstraintTable tableOf(const std::string &text)
{
    return readTable(text).table;
}

std::string summaryOf(const std::vector<ComparedRow> &rows)
{
    std::string text;
    for (const ComparedRow &row : rows)
        text += std::string(1, "=~-+"[static_cast<int>(row.kind)]) + row.a.text + " | " + row.b.text + "\n";
    return text;
}

TEST(ComparePlans, OfAPlanWithItselfIsEmpty)
{
    for (const PlanUpdateSnapshot &plan : {dataParallel(), pipeline()}) {
        ASSERT_TRUE(plan->scene);
        const CompareSnapshot result = comparePlans(plan, plan);
        EXPECT_TRUE(result->isEmpty());
        EXPECT_TRUE(result->moves.empty());
        EXPECT_EQ(result->moves.same, static_cast<std::int64_t>(plan->scene->timeline->spans.size()));
        EXPECT_EQ(result->waterfall->delta, StepParts{});
        EXPECT_EQ(result->counts[0], static_cast<std::int32_t>(result->operators.size()));
    }
}

TEST(ComparePlans, SwappedIsTheMirrorImage)
{
    const CompareSnapshot there = comparePlans(dataParallel(), pipeline());
    const CompareSnapshot back = comparePlans(pipeline(), dataParallel());
    EXPECT_FALSE(there->isEmpty());
    for (std::size_t i = 0; i < kStepPartCount; ++i)
        EXPECT_EQ(there->waterfall->delta.nanoseconds[i], -back->waterfall->delta.nanoseconds[i]);
    EXPECT_EQ(there->operators, back->operators); // of one model: the same operators differ, in the same way
    EXPECT_EQ(there->moves.onlyA, back->moves.onlyB);
    EXPECT_EQ(there->moves.onlyB, back->moves.onlyA);
    EXPECT_EQ(there->moves.same, back->moves.same);
    ASSERT_EQ(there->moves.moved.size(), back->moves.moved.size());
    const auto mirrored = [](std::vector<SpanMove> moves, bool turn) {
        for (SpanMove &move : moves) {
            if (turn)
                std::swap(move.a, move.b);
        }
        std::sort(moves.begin(), moves.end(), [](const SpanMove &x, const SpanMove &y) { return x.a < y.a; });
        return moves;
    };
    EXPECT_EQ(mirrored(there->moves.moved, false), mirrored(back->moves.moved, true));
    ASSERT_EQ(there->rows.size(), back->rows.size());
    std::string negated;
    for (const ComparedRow &row : there->rows)
        negated += row.b.text + " | " + row.a.text + "\n";
    for (const ComparedRow &row : back->rows)
        EXPECT_NE(negated.find(row.a.text + " | " + row.b.text + "\n"), std::string::npos) << row.a.text;
}

TEST(ComparePlans, CountsEverySpanOnce)
{
    const CompareSnapshot result = comparePlans(dataParallel(), pipeline());
    const SpanMoves &moves = result->moves;
    EXPECT_EQ(moves.moved.size() + moves.onlyA.size() + static_cast<std::size_t>(moves.same),
        dataParallel()->scene->timeline->spans.size());
    EXPECT_EQ(moves.moved.size() + moves.onlyB.size() + static_cast<std::size_t>(moves.same),
        pipeline()->scene->timeline->spans.size());
    EXPECT_EQ(moves.fromA.rows.size(), moves.moved.size() + moves.onlyA.size());
    EXPECT_EQ(moves.toB.rows.size(), moves.moved.size() + moves.onlyB.size());
    for (const SpanSubset *subset : {&moves.fromA, &moves.toB}) {
        std::size_t inLanes = 0;
        for (std::size_t d = 0; d < subset->queues.size(); ++d) {
            for (const LaneRows &rows : subset->queues[d])
                inLanes += rows.end - rows.begin;
        }
        EXPECT_EQ(inLanes, subset->rows.size());
        EXPECT_TRUE(std::is_sorted(subset->rows.begin(), subset->rows.end()));
    }
}

/// `scene` with the all-reduce of the first bucket in another queue: row 17 or 18, between the two of tensor.
TimelineSceneSnapshot withFirstBucketIn(QueueKind queue, const TimelineSceneSnapshot &scene)
{
    auto plan = std::make_shared<ExecutionPlan>(*scene->plan);
    for (std::size_t i = 0; i < 2; ++i)
        plan->devices[0].segments.edit()[2].instructions[i].queue = queue;
    auto timeline = std::make_shared<Timeline>(*scene->timeline);
    SpanColumns &spans = timeline->spans;
    spans.queue[17] = spans.queue[18] = queue;
    std::vector<std::size_t> order(spans.size());
    for (std::size_t row = 0; row < order.size(); ++row)
        order[row] = row;
    std::stable_sort(order.begin(), order.end(), [&spans](std::size_t a, std::size_t b) {
        return std::pair(spans.queue[a], spans.start[a]) < std::pair(spans.queue[b], spans.start[b]);
    });
    const auto sorted = [&order](auto column) {
        auto result = column;
        for (std::size_t i = 0; i < order.size(); ++i)
            result[i] = column[order[i]];
        return result;
    };
    spans.queue = sorted(spans.queue);
    spans.start = sorted(spans.start);
    spans.duration = sorted(spans.duration);
    for (auto *column : {&spans.segment, &spans.instruction, &spans.microBatch})
        *column = sorted(*column);
    return makeTimelineScene(timeline, plan, scene->cluster);
}

TEST(SpanMoves, OfAPlanWithItselfAreNone)
{
    const auto scene = slicedSceneForTests();
    const auto moves = movesOf(*scene, *scene, 0);
    ASSERT_TRUE(moves);
    EXPECT_TRUE(moves->empty());
    EXPECT_EQ(moves->same, 20);
}

TEST(SpanMoves, TellWhatWaitsInAnotherQueue)
{
    const auto a = slicedSceneForTests();
    const auto b = withFirstBucketIn(QueueKind::Tensor, a);
    ASSERT_EQ(b->lanes[0].rowsOf(QueueKind::Tensor), (LaneRows{15, 19}));
    const auto moves = movesOf(*a, *b, 0);
    ASSERT_TRUE(moves);
    // At the same time for as long, but behind others.
    EXPECT_EQ(moves->moved, (std::vector<SpanMove>{{17, 16}, {18, 17}}));
    EXPECT_TRUE(moves->onlyA.empty() && moves->onlyB.empty());
    EXPECT_EQ(moves->same, 18);
    EXPECT_EQ(moves->fromA.rowsOf(0, QueueKind::Data), (LaneRows{0, 2}));
    EXPECT_EQ(moves->fromA.rowsOf(0, QueueKind::Tensor), LaneRows{});
    EXPECT_EQ(moves->toB.rowsOf(0, QueueKind::Tensor), (LaneRows{0, 2}));
    EXPECT_EQ(moves->toB.rowsOf(1, QueueKind::Tensor), LaneRows{}) << "there is no such device";
}

/// Of several all-reduces of one operator those of one queue belong together, whatever their order.
TEST(SpanMoves, PairWithinAQueueFirst)
{
    const auto a = slicedSceneForTests();
    auto changed = std::make_shared<ExecutionPlan>(*a->plan);
    // Both the activation's and the gradient's now serve operator 6.
    changed->devices[0].segments.edit()[1].instructions[3].op = OperatorId{6};
    const auto both = makeTimelineScene(a->timeline, changed, a->cluster);
    auto without = std::make_shared<Timeline>(*a->timeline); // no activation is summed up: rows 15 and 16 go
    SpanColumns &spans = without->spans;
    const auto cut = [](auto &column) { column.erase(column.begin() + 15, column.begin() + 17); };
    for (auto *column : {&spans.device, &spans.segment, &spans.instruction, &spans.microBatch})
        cut(*column);
    cut(spans.queue);
    cut(spans.start);
    cut(spans.duration);
    without->deviceBegin = {0, spans.size()};
    const auto fewer = makeTimelineScene(without, changed, a->cluster);
    const auto moves = movesOf(*both, *fewer, 0);
    ASSERT_TRUE(moves);
    EXPECT_TRUE(moves->moved.empty()) << "none took the place of another";
    EXPECT_EQ(moves->onlyA, (std::vector<std::size_t>{15, 16}));
    EXPECT_TRUE(moves->onlyB.empty());
    EXPECT_EQ(moves->same, 18);
}

TEST(ComparedLanes, HaveTheQueuesOfBothPlans)
{
    const auto a = sceneForTests({.devices = 1}); // tensor alone
    const auto b = slicedSceneForTests(); // tensor and data
    const auto lanes = comparedLanes(a.get(), b.get());
    ASSERT_EQ(lanes.size(), 1u);
    EXPECT_EQ(lanes[0].queues, b->lanes[0].queues());
    EXPECT_EQ(comparedLanes(a.get(), nullptr)[0].queues, a->lanes[0].queues());
}

/// Gradients that are reduced beside the backward pass are no blocks of the compute queue.
TEST(Alignment, OfGradientsIsWhereTheFirstAreReduced)
{
    const auto scene = slicedSceneForTests();
    EXPECT_EQ(timeOf(AlignAt::Gradients, *scene), 10'000);
    EXPECT_EQ(timeOf(AlignAt::FirstBackward, *scene), 3000);
    EXPECT_EQ(timeOf(AlignAt::Gradients, *sceneForTests({.devices = 1})), std::nullopt);
}

TEST(ComparePlans, StopsWhenAsked)
{
    std::stop_source stop;
    stop.request_stop();
    EXPECT_EQ(comparePlans(dataParallel(), pipeline(), stop.get_token()), nullptr);
}

TEST(ComparePlans, WithoutATimelineComparesRows)
{
    const PlanUpdateSnapshot broken = planOf({}, "place all : devices 99\n");
    ASSERT_FALSE(broken->scene);
    const CompareSnapshot result = comparePlans(broken, dataParallel());
    EXPECT_FALSE(result->waterfall);
    EXPECT_FALSE(result->rows.empty());
}

TEST(CompareRows, SaysWhatChanged)
{
    const auto rows = compareRows(
        tableOf("mesh dp=4\nsplit all : batch over dp\nplace in:a : devices 0\noff place in:c : devices 1\n"),
        tableOf("split all : batch over dp\nmesh dp=2\nplace in:b : devices 0\nplace in:c : devices "
                "1\nschedule gpipe\n"));
    EXPECT_EQ(summaryOf(rows),
        "~mesh dp=4 | mesh dp=2\n"
        "~place in:a : devices 0 | place in:b : devices 0\n"
        "~off place in:c : devices 1 | place in:c : devices 1\n"
        "+ | schedule gpipe\n"
        "=split all : batch over dp | split all : batch over dp\n");
    EXPECT_TRUE(compareRows({}, {}).empty());
}

TEST(TakeOver, MakesARowAsItIsOnOneSide)
{
    const std::string a = "mesh dp=4\nsplit all : batch over dp\n";
    const std::string b = "mesh dp=2\nschedule gpipe\n";
    const auto rows = compareRows(tableOf(a), tableOf(b));
    ASSERT_EQ(summaryOf(rows), "~mesh dp=4 | mesh dp=2\n-split all : batch over dp | \n+ | schedule gpipe\n");
    const auto taken = [&rows](const std::string &text, std::size_t row, bool fromA) {
        TableDocument table(text);
        const TableEdit edit = takeOver(table, rows[row], fromA);
        EXPECT_TRUE(table.apply(edit));
        return table.text();
    };
    EXPECT_EQ(taken(b, 0, true), "mesh dp=4\nschedule gpipe\n"); // in the other side's place
    EXPECT_EQ(taken(b, 1, true), "mesh dp=2\nschedule gpipe\nsplit all : batch over dp\n");
    EXPECT_EQ(taken(b, 2, true), "mesh dp=2\n"); // A has no such row
    EXPECT_EQ(taken(a, 0, true), a); // there already
    EXPECT_EQ(taken("mesh tp=8\n", 0, false), "mesh dp=2\n"); // about the same thing
    // All of A, row by row, makes B's rows A's.
    TableDocument table(b);
    for (const ComparedRow &row : rows)
        ASSERT_TRUE(table.apply(takeOver(table, row, true)));
    const auto left = compareRows(tableOf(a), table.table());
    EXPECT_TRUE(std::all_of(left.begin(), left.end(),
        [](const ComparedRow &row) { return row.kind == ComparedRow::Kind::Same; }));
}

TEST(ComparedLanes, HoldEveryDeviceOnce)
{
    const auto lanes = comparedLanes(dataParallel()->scene.get(), pipeline()->scene.get());
    std::vector<DeviceId> devices;
    for (const ComparedLane &lane : lanes)
        devices.insert(devices.end(), lane.devices.begin(), lane.devices.end());
    std::sort(devices.begin(), devices.end());
    EXPECT_EQ(devices, (std::vector<DeviceId>{{0}, {1}, {2}, {3}}));
    EXPECT_GE(lanes.size(), 2U); // stages are not alike
    EXPECT_LT(comparedLanes(dataParallel()->scene.get(), dataParallel()->scene.get()).size(), 4U);
    EXPECT_EQ(comparedLanes(nullptr, pipeline()->scene.get()).front().a, -1);
}

TEST(MetricTable, SaysWhatIsBetter)
{
    PlanMetric metric{
        "step time", PlanMetric::Unit::Seconds, PlanMetric::Better::Less, {0.0439, 0.0412, std::nullopt}, {}};
    EXPECT_EQ(valueText(metric, 1), "41.2 ms");
    EXPECT_EQ(deltaText(metric, 0, 1), "\u22122.70 ms");
    EXPECT_EQ(percentText(metric, 0, 1), "\u22126.2%");
    EXPECT_EQ(changeOf(metric, 0, 1), Change::Better);
    EXPECT_EQ(changeOf(metric, 1, 0), Change::Worse);
    EXPECT_EQ(valueText(metric, 2), "–");
    EXPECT_EQ(deltaText(metric, 0, 2), "");
    metric.values[1] = 0.04391; // below half a percent
    EXPECT_EQ(changeOf(metric, 0, 1), Change::Same);
    const auto table = metricTable({dataParallel(), pipeline(), nullptr});
    ASSERT_EQ(table.front().name, "step time");
    EXPECT_DOUBLE_EQ(*table.front().values[0], dataParallel()->summary.stepSeconds);
    EXPECT_FALSE(table.front().values[2]);
    for (const PlanMetric &each : table) {
        EXPECT_EQ(changeOf(each, 0, 0), Change::Same) << each.name;
        const Change there = changeOf(each, 0, 1);
        const Change back = changeOf(each, 1, 0);
        if (there == Change::Better || there == Change::Worse) {
            EXPECT_NE(there, back) << each.name; // swap negates
        }
    }
}

/// The table of figures and the waterfall below it are about the same plans, and say the same of them.
TEST(MetricTable, SaysOfExposedCommunicationWhatTheWaterfallSays)
{
    const PlanUpdateSnapshot gpipe = planOf("3d:dp=2,pp=2,tp=1,schedule=gpipe,micro-batches=4");
    int different = 0;
    for (const auto &[a, b] : {std::pair{dataParallel(), pipeline()}, std::pair{gpipe, pipeline()},
             std::pair{pipeline(), gpipe}, std::pair{gpipe, gpipe}}) {
        const auto table = metricTable({a, b});
        const auto metric = std::find_if(table.begin(), table.end(),
            [](const PlanMetric &each) { return each.name == "exposed communication"; });
        ASSERT_NE(metric, table.end());
        const auto compared = comparePlans(a, b);
        ASSERT_TRUE(compared->waterfall);
        const auto bars = barsOf(*compared->waterfall);
        const auto bar = std::find_if(bars.begin(), bars.end(), [](const WaterfallBar &each) {
            return each.kind == WaterfallBar::Kind::Part && each.part == StepPart::ExposedCommunication;
        });
        ASSERT_NE(bar, bars.end());
        EXPECT_NEAR((*metric->values[1] - *metric->values[0]) * 1e9, static_cast<double>(bar->delta()), 2);
        EXPECT_EQ(changeOf(*metric, 0, 1) == Change::Same, bar->noise);
        different += bar->noise ? 0 : 1;
    }
    EXPECT_GE(different, 1) << "or nothing was compared";
}

TEST(Thumbnails, PaintPassesAsTheTimelineDoes)
{
    for (const SegmentKind kind :
        {SegmentKind::Forward, SegmentKind::Backward, SegmentKind::Reduce, SegmentKind::Optimizer}) {
        const QImage image = thumbnailOf(*sceneOfOneKind(kind), lightPalette(), {64, 12});
        const QColor painted = image.pixelColor(20, 2);
        const QColor expected = directionColour(lightPalette(), directionOf(kind));
        EXPECT_LE(std::abs(painted.red() - expected.red()) + std::abs(painted.green() - expected.green())
                + std::abs(painted.blue() - expected.blue()),
            6)
            << nameOf(kind);
    }
}

TEST(MetricExport, WritesNumbersInFull)
{
    const std::vector<PlanMetric> metrics{
        {"step time", PlanMetric::Unit::Seconds, PlanMetric::Better::Less, {0.5, 0.25}, {}},
        {"schedule", PlanMetric::Unit::Word, PlanMetric::Better::Neither, {0.0, 1.0}, {"gpipe", "1f1b"}}};
    EXPECT_EQ(metricsAsCsv(metrics, {"a, old", "b"}),
        "figure,unit,\"a, old\",b,\"b - a, old\",b %\nstep "
        "time,s,0.5,0.25,-0.25,-50\nschedule,,gpipe,1f1b,,\n");
    const std::string json = metricsAsJson(metrics, {"a", "b"});
    EXPECT_NE(json.find("\"delta\": [\n        -0.25\n      ]"), std::string::npos) << json;
    EXPECT_NE(json.find("\"1f1b\""), std::string::npos);
}

} // namespace
} // namespace planloom
