// Painting a million spans: a frame of the timeline takes at most 16 ms at the 95th percentile (ux.md,
// section 2.2).

#include <QtGui/QImage>
#include <QtGui/QMouseEvent>
#include <QtGui/QPainter>
#include <QtWidgets/QApplication>

#include "tests/widgets/timeline/gesture_host_for_tests.h"
#include "widgets/common/selection_model.h"
#include "widgets/timeline/timeline_ghost_painter.h"
#include "widgets/timeline/timeline_painter.h"
#include "widgets/timeline/timeline_view.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>
#include <map>
#include <string>

namespace {

using namespace planloom;

constexpr std::int32_t kDevices = 16;
constexpr std::int32_t kOperators = 488; ///< In a segment.
constexpr std::int32_t kMicroBatches = 64; ///< 16 devices x 64 micro-batches x 2 x 488 spans: a million.

/// A step of `kDevices` devices, each with a program of its own.
TimelineSceneSnapshot millionSpans()
{
    auto graph = std::make_shared<Graph>();
    for (std::int32_t i = 0; i < 2 * kOperators; ++i) {
        Operator op;
        op.name = "operator_" + std::to_string(i);
        op.kind = OperatorKind::MatMul;
        op.direction = i < kOperators ? Direction::Forward : Direction::Backward;
        op.scope = ScopeId{0};
        graph->operators.push_back(op);
    }
    auto plan = std::make_shared<ExecutionPlan>();
    plan->graph = graph;
    plan->microBatches = kMicroBatches;
    plan->placement.assign(graph->operators.size(), {DeviceId{0}});
    auto timeline = std::make_shared<Timeline>();
    SpanColumns &spans = timeline->spans;
    std::int64_t step = 0;
    for (std::int32_t d = 0; d < kDevices; ++d) {
        DeviceProgram program;
        for (const SegmentKind kind : {SegmentKind::Forward, SegmentKind::Backward}) {
            Segment segment{kind, StageId{d}, {}};
            for (std::int32_t i = 0; i < kOperators; ++i) {
                Instruction instruction;
                instruction.op = OperatorId{kind == SegmentKind::Forward ? i : kOperators + i};
                segment.instructions.push_back(instruction);
            }
            program.segments.push_back(std::move(segment));
        }
        plan->devices.push_back(std::move(program));
        timeline->deviceBegin.push_back(spans.size());
        MemoryCurve curve;
        std::int64_t now = d * 100'000;
        for (std::int32_t batch = 0; batch < kMicroBatches; ++batch) {
            for (std::int32_t segment = 0; segment < 2; ++segment) {
                for (std::int32_t i = 0; i < kOperators; ++i) {
                    const std::int64_t duration = 2'000 + (i * 7919 + d * 104'729) % 30'000;
                    spans.device.push_back(d);
                    spans.queue.push_back(QueueKind::Compute);
                    spans.segment.push_back(segment);
                    spans.instruction.push_back(i);
                    spans.microBatch.push_back(batch);
                    spans.start.push_back(now);
                    spans.duration.push_back(duration);
                    curve.time.push_back(now);
                    std::array<std::int64_t, kMemoryKindCount> bytes{};
                    bytes[3] = (segment == 0 ? i : kOperators - i) * std::int64_t{1 << 20};
                    curve.bytes.push_back(bytes);
                    now += duration + (i % 16 == 0 ? 5'000 : 0);
                }
            }
        }
        step = std::max(step, now);
        curve.peak = {std::int64_t{kOperators} << 20};
        timeline->memory.push_back(std::move(curve));
        timeline->busy.push_back(Nanoseconds{now});
        timeline->symmetryClass.push_back(d);
    }
    timeline->deviceBegin.push_back(spans.size());
    timeline->step = Nanoseconds{step};
    Cluster cluster;
    cluster.device.memory.value = 80e9;
    cluster.deviceCount = kDevices;
    return makeTimelineScene(timeline, plan, cluster);
}

/// Times of frames: on the wall, and of this thread's processor, which a busy machine does not change.
class FrameTimes
{
public:
    void begin()
    {
        m_wall = std::chrono::steady_clock::now();
        m_processor = processor();
    }
    void end()
    {
        m_wallTimes.push_back(
            std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - m_wall).count());
        m_processorTimes.push_back(processor() - m_processor);
    }
    void report(benchmark::State &state)
    {
        state.counters["p95_ms"] = p95(m_wallTimes);
        state.counters["p95_cpu_ms"] = p95(m_processorTimes);
    }

private:
    static double processor()
    {
        timespec now{};
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
        return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
    }
    static double p95(std::vector<double> &times)
    {
        std::sort(times.begin(), times.end());
        return times.empty() ? 0 : times[times.size() * 95 / 100];
    }

    std::chrono::steady_clock::time_point m_wall{};
    double m_processor = 0;
    std::vector<double> m_wallTimes;
    std::vector<double> m_processorTimes;
};

/// Frames of a zoom from the whole step to single spans and a pan, and their 95th percentile in milliseconds.
void paintMillionSpans(benchmark::State &state)
{
    static const TimelineSceneSnapshot kScene = millionSpans();
    const auto rows = layoutRows(*kScene, {});
    QImage image(1600, 900, QImage::Format_RGB32);
    const double extent = static_cast<double>(kScene->timeline->step.count());
    TimelinePicture picture;
    picture.scene = kScene.get();
    picture.rows = &rows;
    picture.size = image.size();
    picture.font = QApplication::font();
    const double width = picture.canvas().width();
    FrameTimes times;
    int frame = 0;
    for (auto _ : state) {
        const double depth = static_cast<double>(frame % 120) / 12; // ten doublings, again and again
        picture.axis =
            zoomed(fitted(extent, width), std::pow(2.0, depth), width * (frame % 7) / 7, extent, width);
        times.begin();
        QPainter painter(&image);
        paintTimeline(painter, lightPalette(), picture);
        painter.end();
        times.end();
        ++frame;
    }
    times.report(state);
    state.counters["spans"] = static_cast<double>(kScene->timeline->spans.size());
}
BENCHMARK(paintMillionSpans)->Iterations(240)->Unit(benchmark::kMillisecond);

/// Folding alone, of all lanes at full extent.
void foldMillionSpans(benchmark::State &state)
{
    static const TimelineSceneSnapshot kScene = millionSpans();
    const TimeAxis axis = fitted(static_cast<double>(kScene->timeline->step.count()), 1432);
    std::vector<DrawRecord> records;
    for (auto _ : state) {
        records.clear();
        for (const DeviceLane &lane : kScene->lanes)
            foldSpans(kScene->timeline->spans, kScene->before, lane.compute, axis, 1432, records);
        benchmark::DoNotOptimize(records.data());
    }
}
BENCHMARK(foldMillionSpans)->Unit(benchmark::kMicrosecond);

/// The same frames with a ghost over them: a stage on its way to another lane, the would-be plan of a million
/// spans too.
void paintGhostOfMillionSpans(benchmark::State &state)
{
    static const TimelineSceneSnapshot kScene = millionSpans();
    const auto rows = layoutRows(*kScene, {});
    QImage image(1600, 900, QImage::Format_RGB32);
    const double extent = static_cast<double>(kScene->timeline->step.count());
    TimelinePicture picture;
    picture.scene = kScene.get();
    picture.rows = &rows;
    picture.size = image.size();
    picture.font = QApplication::font();
    picture.behindGhost = true;
    picture.would = kScene.get();
    TimelineGhost ghost;
    ghost.drag = TimelineDrag::Place;
    ghost.atHome = false;
    ghost.stage = StageId{0};
    ghost.sourceRow = 0;
    const double width = picture.canvas().width();
    FrameTimes times;
    int frame = 0;
    for (auto _ : state) {
        picture.axis = zoomed(fitted(extent, width), std::pow(2.0, static_cast<double>(frame % 120) / 12),
            width * (frame % 7) / 7, extent, width);
        const TimelineRow &target = rows[1 + static_cast<std::size_t>(frame) % 6];
        ghost.target = {static_cast<std::int32_t>(&target - rows.data()), target.devices, target.y,
            target.y + target.height, target.title};
        times.begin();
        QPainter painter(&image);
        paintLanes(painter, lightPalette(), picture);
        paintWouldLanes(painter, lightPalette(), picture, ghost);
        paintGhost(painter, lightPalette(), picture, ghost, {});
        paintFrame(painter, lightPalette(), picture);
        painter.end();
        times.end();
        ++frame;
    }
    times.report(state);
}
BENCHMARK(paintGhostOfMillionSpans)->Iterations(240)->Unit(benchmark::kMillisecond);

/// A step of 16,384 devices in 64 classes, a few spans each.
TimelineSceneSnapshot manyDevices()
{
    constexpr std::int32_t kMany = 16'384;
    constexpr std::int32_t kClasses = 64;
    auto graph = std::make_shared<Graph>();
    for (std::int32_t i = 0; i < 8; ++i) {
        Operator op;
        op.name = "operator_" + std::to_string(i);
        op.kind = OperatorKind::MatMul;
        op.scope = ScopeId{0};
        graph->operators.push_back(op);
    }
    auto plan = std::make_shared<ExecutionPlan>();
    plan->graph = graph;
    plan->placement.assign(graph->operators.size(), {DeviceId{0}});
    auto timeline = std::make_shared<Timeline>();
    SpanColumns &spans = timeline->spans;
    for (std::int32_t d = 0; d < kMany; ++d) {
        DeviceProgram program;
        Segment segment{SegmentKind::Forward, StageId{d % kClasses}, {}};
        timeline->deviceBegin.push_back(spans.size());
        for (std::int32_t i = 0; i < 8; ++i) {
            Instruction instruction;
            instruction.op = OperatorId{i};
            segment.instructions.push_back(instruction);
            spans.device.push_back(d);
            spans.queue.push_back(QueueKind::Compute);
            spans.segment.push_back(0);
            spans.instruction.push_back(i);
            spans.microBatch.push_back(0);
            spans.start.push_back((d % kClasses) * 1'000 + i * 10'000);
            spans.duration.push_back(9'000);
        }
        program.segments.push_back(std::move(segment));
        plan->devices.push_back(std::move(program));
        timeline->memory.emplace_back();
        timeline->busy.push_back(Nanoseconds{72'000});
        timeline->symmetryClass.push_back(d % kClasses);
    }
    timeline->deviceBegin.push_back(spans.size());
    timeline->step = Nanoseconds{150'000};
    Cluster cluster;
    cluster.device.memory.value = 80e9;
    cluster.deviceCount = kMany;
    return makeTimelineScene(timeline, plan, cluster);
}

/// What opening such a step costs the window: laying its lanes out and the first frame, symmetric devices
/// once.
void openManyDevices(benchmark::State &state)
{
    static const TimelineSceneSnapshot kScene = manyDevices();
    for (auto _ : state) {
        SelectionModel selection;
        TimelineView view(&selection);
        view.resize(1600, 900);
        view.setScene(kScene);
        benchmark::DoNotOptimize(view.grab());
    }
}
BENCHMARK(openManyDevices)->Unit(benchmark::kMillisecond);

/// A frame with each of the 16,384 devices in a lane of its own: what is out of sight costs nothing.
void paintManyLanes(benchmark::State &state)
{
    static const TimelineSceneSnapshot kScene = manyDevices();
    SelectionModel selection;
    TimelineView view(&selection);
    view.resize(1600, 900);
    view.setScene(kScene);
    view.expandAll(true);
    for (auto _ : state)
        benchmark::DoNotOptimize(view.viewport()->grab());
    state.counters["lanes"] = static_cast<double>(view.rows().size());
}
BENCHMARK(paintManyLanes)->Unit(benchmark::kMillisecond);

/// The rows of a thousand operators in a million spans: what a selection asks for.
void findRowsOfOperators(benchmark::State &state)
{
    static const TimelineSceneSnapshot kScene = millionSpans();
    std::vector<OperatorId> operators;
    for (std::int32_t i = 0; i < state.range(0); ++i)
        operators.push_back(OperatorId{i});
    for (auto _ : state)
        benchmark::DoNotOptimize(rowsOf(*kScene, operators));
}
BENCHMARK(findRowsOfOperators)->Arg(1)->Arg(16)->Unit(benchmark::kMicrosecond);

/// The processor's time of this thread in milliseconds.
double processorTime()
{
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}

/// What a person's hand costs the window on a large plan, event by event: nothing but paints may take over 5
/// ms.
class HandOnPlan
{
public:
    HandOnPlan(ModelSnapshot model, PlanUpdateSnapshot update, std::int32_t devices)
        : m_host(std::move(model), update, devices)
        , m_view(&m_selection)
    {
        m_view.resize(1600, 1400);
        m_view.setGestureHost(&m_host);
        setScene(update->scene);
        m_view.show();
        m_view.grab();
    }

    void setScene(const TimelineSceneSnapshot &scene)
    {
        measure("setScene", [&] { m_view.setScene(scene); });
    }
    void select(std::vector<OperatorId> operators, const char *what)
    {
        measure(what, [&] { m_selection.select(std::move(operators)); });
    }
    void hoverAll()
    {
        for (int y = 20; y < m_view.viewport()->height(); y += 37) {
            for (int x = 200; x < m_view.viewport()->width(); x += 173)
                send(QEvent::MouseMove, QPointF(x, y), Qt::NoButton, "hover");
        }
    }
    void drag(const char *what, QPointF from, QPointF to, Qt::KeyboardModifiers modifiers = Qt::NoModifier)
    {
        const std::string name = what;
        constexpr int kMoves = 16;
        send(QEvent::MouseButtonPress, from, Qt::LeftButton, name + " press", modifiers);
        for (int move = 1; move <= kMoves; ++move) {
            send(QEvent::MouseMove, from + (to - from) * move / kMoves, Qt::LeftButton, name + " move",
                modifiers);
            const double begin = processorTime();
            m_view.viewport()->grab();
            note("frame", processorTime() - begin);
        }
        // Home again, so that nothing is written.
        send(QEvent::MouseMove, from, Qt::LeftButton, name + " move", modifiers);
        send(QEvent::MouseButtonRelease, from, Qt::NoButton, name + " release", modifiers);
    }
    TimelineView &view() { return m_view; }
    void frame(const char *what)
    {
        measure(what, [&] { m_view.viewport()->grab(); });
    }
    /// Clicks on pauses: why a device is idle.
    void clickIdle()
    {
        const std::vector<TimelineRow> rows = m_view.rows();
        for (const TimelineRow &row : rows) {
            if (row.kind != TimelineRow::Kind::Device)
                continue;
            const int y = m_view.lanesTop() + row.operatorsTop() + row.operators / 2;
            for (int x = m_view.axisLeft() + 5; x < m_view.viewport()->width(); x += 61) {
                send(QEvent::MouseButtonPress, QPointF(x, y), Qt::LeftButton, "click press");
                send(QEvent::MouseButtonRelease, QPointF(x, y), Qt::NoButton, "click release");
            }
        }
    }

    void report(benchmark::State &state)
    {
        for (auto &[what, times] : m_times) {
            std::sort(times.begin(), times.end());
            std::string name = what;
            std::replace(name.begin(), name.end(), ' ', '_');
            state.counters[name + "_max"] = times.back();
        }
        state.counters["proposals"] = static_cast<double>(m_host.previews.size());
        state.counters["refused"] = static_cast<double>(std::count_if(m_host.previews.begin(),
            m_host.previews.end(), [](const Proposal &proposal) { return proposal.refusal.has_value(); }));
        std::sort(m_times["frame"].begin(), m_times["frame"].end());
        state.counters["frame_p95"] = m_times["frame"][m_times["frame"].size() * 95 / 100];
    }

private:
    void note(const std::string &what, double milliseconds) { m_times[what].push_back(milliseconds); }
    template<typename Act> void measure(const std::string &what, const Act &act)
    {
        const double begin = processorTime();
        act();
        note(what, processorTime() - begin);
    }
    void send(QEvent::Type type, QPointF at, Qt::MouseButtons buttons, const std::string &what,
        Qt::KeyboardModifiers modifiers = Qt::NoModifier)
    {
        const Qt::MouseButton button = type == QEvent::MouseMove ? Qt::NoButton : Qt::LeftButton;
        QMouseEvent event(type, at, m_view.viewport()->mapToGlobal(at), button, buttons, modifiers);
        measure(what, [&] { QCoreApplication::sendEvent(m_view.viewport(), &event); });
    }

    SelectionModel m_selection;
    RecordingHost m_host;
    TimelineView m_view;
    std::map<std::string, std::vector<double>> m_times;
};

/// The events of a hand on a GPT of GPT-3's width over 64 devices; its layers are the argument.
void handOnGpt3(benchmark::State &state)
{
    const std::string layers = std::to_string(state.range(0));
    auto model = openModel(
        {"zoo:gpt?layers=" + layers + "&hidden=12288&heads=96&seq=2048&batch=64&vocab=51200", {}, {}}, {});
    if (!model) {
        state.SkipWithError("the model could not be made");
        return;
    }
    const auto update =
        planned(*model, {}, std::string("3d:dp=1,tp=8,pp=8,schedule=1f1b,micro-batches=32"), 64);
    if (!update) {
        state.SkipWithError("there is no plan");
        return;
    }
    for (auto _ : state) {
        HandOnPlan hand(*model, update, 64);
        hand.setScene(update->scene);
        hand.hoverAll();
        std::vector<OperatorId> all;
        for (std::size_t i = 0; i < update->scene->graph().operators.size(); ++i)
            all.push_back({static_cast<std::int32_t>(i)});
        hand.select({all.begin() + 200, all.begin() + 800}, "select600");
        hand.select(all, "selectAll");
        hand.setScene(update->scene);
        hand.select({}, "select0");
        const TimelineView &view = hand.view();
        const auto centre = [&](std::int32_t lane, std::size_t block) {
            return QPointF(view.rectOfBlock(lane, block).value_or(QRect(300, 200, 1, 1)).center());
        };
        hand.drag("blockOrder", centre(0, 20), centre(0, 3));
        hand.drag("blockOrder", centre(0, 3), centre(0, 40));
        hand.drag("blockSwap", centre(0, 20), centre(0, 3), Qt::ShiftModifier);
        hand.drag("stagePlace", centre(0, 9), QPointF(centre(0, 9).x(), view.viewport()->height() - 60));
        // A single operator, wide enough for a hand.
        const SpanColumns &spans = update->scene->timeline->spans;
        const DeviceLane &lane = update->scene->lanes.front();
        std::size_t row = lane.compute.begin + (lane.compute.end - lane.compute.begin) / 3;
        while (row + 1 < lane.compute.end && spans.duration[row] < 1000)
            ++row;
        const double scale = static_cast<double>(spans.duration[row]) / 60;
        hand.view().setAxis({static_cast<double>(spans.start[row]) - 600 * scale, scale});
        if (view.rectOf(row)) {
            const QRect rect = *view.rectOf(row);
            hand.drag("spanPlace", rect.center(), QPointF(rect.center().x(), view.viewport()->height() - 60));
            hand.drag("spanOrder", rect.center(), QPointF(200, rect.center().y()));
            hand.drag("spread", QPointF(rect.center().x(), rect.bottom() - 1),
                QPointF(rect.center().x(), view.viewport()->height() - 60));
            hand.select(
                {all.begin(), all.begin() + static_cast<std::ptrdiff_t>(all.size() / 3)}, "selectThird");
            hand.drag(
                "selectionPlace", rect.center(), QPointF(rect.center().x(), view.viewport()->height() - 60));
        } else {
            state.SkipWithError("no span is in sight");
        }
        hand.view().fitAll();
        hand.view().setCriticalPath(true); // asks for all that is known of it
        constexpr auto kPatience = std::chrono::seconds(60);
        const auto begin = std::chrono::steady_clock::now();
        while (!hand.view().isAnalysed() && std::chrono::steady_clock::now() - begin < kPatience)
            QCoreApplication::processEvents(QEventLoop::AllEvents, 10);
        hand.hoverAll();
        hand.frame("path frame");
        hand.clickIdle();
        hand.report(state);
        state.counters["spans"] = static_cast<double>(update->scene->timeline->spans.size());
        state.counters["operators"] = static_cast<double>(all.size());
    }
}
BENCHMARK(handOnGpt3)->Arg(96)->Iterations(1)->Unit(benchmark::kMillisecond);

/// What the picture's part of each plan costs on its worker.
void makeSceneOfMillionSpans(benchmark::State &state)
{
    static const TimelineSceneSnapshot kScene = millionSpans();
    for (auto _ : state)
        benchmark::DoNotOptimize(makeTimelineScene(kScene->timeline, kScene->plan, kScene->cluster));
}
BENCHMARK(makeSceneOfMillionSpans)->Unit(benchmark::kMillisecond);

} // namespace

int main(int argc, char **argv)
{
    qputenv("QT_QPA_PLATFORM", "offscreen");
    QApplication application(argc, argv);
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv))
        return 1;
    benchmark::RunSpecifiedBenchmarks();
    return 0;
}
