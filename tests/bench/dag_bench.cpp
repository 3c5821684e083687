// The DAG canvas: flat layout of 50,000 boxes, outline and first picture, expanding, frames while panning and
// zooming with everything open. PLANLOOM_MODELS names the folder of the models; without it zoo models of like
// size are taken.

#include <QtCore/QElapsedTimer>
#include <QtCore/QThread>
#include <QtGui/QImage>
#include <QtWidgets/QApplication>

#include "tests/bench/bench_models.h"
#include "tests/engine/layered/nasty_graphs.h"
#include "widgets/dag/dag_decor.h"
#include "widgets/dag/dag_navigation.h"
#include "widgets/dag/dag_query.h"
#include "widgets/dag/dag_text.h"
#include "widgets/dag/dag_view.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace planloom::bench {
namespace {

/// Transformer layers of 16 boxes with residual edges, as one flat graph.
LayeredGraph flatGraph(std::int32_t boxes)
{
    LayeredGraph graph;
    graph.nodes.assign(static_cast<std::size_t>(boxes), LayeredNode{.width = 110, .height = 38});
    for (std::int32_t v = 1; v < boxes; ++v) {
        graph.edges.push_back({v - 1, v});
        if (v % 8 == 0 && v >= 8)
            graph.edges.push_back({v - 8, v});
        if (v % 16 == 5)
            graph.edges.push_back({v - 3, v});
    }
    return graph;
}

void flatLayout(benchmark::State &state)
{
    const auto graph = flatGraph(static_cast<std::int32_t>(state.range(0)));
    for (auto _ : state)
        benchmark::DoNotOptimize(layeredLayout(graph).width);
}
BENCHMARK(flatLayout)->Arg(1000)->Arg(10000)->Arg(50000)->Unit(benchmark::kMillisecond);

/// Budget: 150 ms each, that of 50,000 boxes laid out flat.
void nastyGraphs(benchmark::State &state)
{
    const LayeredGraph graphs[] = {
        starOf(5000), parallelChains(200, 50), edgeAcross(40'000), trainingChain(1024), allToAll(60)};
    const char *const names[] = {"star of 5,000", "200 chains of 50", "edge across 40,000 ranks",
        "training chain of 1,024", "all to all of 60"};
    const auto which = static_cast<std::size_t>(state.range(0));
    state.SetLabel(names[which]);
    for (auto _ : state)
        benchmark::DoNotOptimize(layeredLayout(graphs[which]).width);
}
BENCHMARK(nastyGraphs)->DenseRange(0, 4)->Unit(benchmark::kMillisecond);

/// The training step of Evoformer with 48 blocks: from the file if there is one, else from the zoo.
GraphSnapshot evoformer()
{
    static const GraphSnapshot graph = [] {
        const std::string path = modelFile("evoformer_48_full.onnx");
        auto model = opened(path.empty() ? "zoo:evoformer?layers=48" : path);
        return model ? (*model)->graph : GraphSnapshot{};
    }();
    return graph;
}

TextMeasure measure()
{
    return measureWith(std::make_shared<const FontTable>(QApplication::font()));
}

void outline(benchmark::State &state)
{
    const auto graph = evoformer();
    for (auto _ : state)
        benchmark::DoNotOptimize(buildOutline(graph, DagMode::Folded).items.size());
}
BENCHMARK(outline)->Unit(benchmark::kMillisecond);

void firstPicture(benchmark::State &state)
{
    const auto graph = evoformer();
    for (auto _ : state) {
        const auto made = std::make_shared<const DagOutline>(buildOutline(graph, DagMode::Folded));
        LayoutCache cache;
        benchmark::DoNotOptimize(makePicture(made, initialState(*made), measure(), cache));
    }
}
BENCHMARK(firstPicture)->Unit(benchmark::kMillisecond);

void expandGroup(benchmark::State &state)
{
    const auto made = std::make_shared<const DagOutline>(buildOutline(evoformer(), DagMode::Folded));
    // The largest stack, with every copy shown: the costliest single expansion there is.
    std::int32_t stack = 0;
    for (std::size_t i = 0; i < made->items.size(); ++i) {
        const auto &item = made->items[i];
        if (item.kind == OutlineItem::Kind::Stack
            && item.end - item.begin > made->at(stack).end - made->at(stack).begin)
            stack = static_cast<std::int32_t>(i);
        if (stack == 0 && item.kind == OutlineItem::Kind::Stack)
            stack = static_cast<std::int32_t>(i);
    }
    auto open = initialState(*made);
    open.open.insert(stack);
    open.unstacked.insert(stack);
    for (auto _ : state) {
        LayoutCache cache;
        benchmark::DoNotOptimize(makePicture(made, open, measure(), cache));
    }
}
BENCHMARK(expandGroup)->Unit(benchmark::kMillisecond);

void expandEverything(benchmark::State &state)
{
    const auto made = std::make_shared<const DagOutline>(buildOutline(evoformer(), DagMode::Folded));
    for (auto _ : state) {
        LayoutCache cache;
        benchmark::DoNotOptimize(makePicture(made, fullyOpen(*made), measure(), cache));
    }
}
BENCHMARK(expandEverything)->Unit(benchmark::kMillisecond);

/// What a picture with everything open is shown with: texts, colours, badges.
void decorEverything(benchmark::State &state)
{
    const auto made = std::make_shared<const DagOutline>(buildOutline(evoformer(), DagMode::Folded));
    LayoutCache cache;
    DagDecorRequest request;
    request.picture = makePicture(made, fullyOpen(*made), measure(), cache);
    request.font = std::make_shared<const FontTable>(QApplication::font());
    request.facts = std::make_shared<const OperatorFacts>();
    request.colourBy = static_cast<ColourBy>(state.range(0));
    request.palette = lightPalette();
    for (auto _ : state)
        benchmark::DoNotOptimize(decorate(request));
}
BENCHMARK(decorEverything)
    ->Arg(static_cast<int>(ColourBy::Kind))
    ->Arg(static_cast<int>(ColourBy::Memory))
    ->Unit(benchmark::kMillisecond);

/// Questions of find over all operators.
void find(benchmark::State &state)
{
    static constexpr std::array<const char *, 4> kQuestions{
        "no such operator", "kind:Linear & layer:0-9", "bytes>1MiB", "/attn.*[0-9]$/"};
    const auto query = parseDagQuery(kQuestions[static_cast<std::size_t>(state.range(0))]);
    DagQueryWorld world;
    world.index = std::make_shared<const SelectorIndex>(evoformer());
    for (auto _ : state)
        benchmark::DoNotOptimize(askDagQuery(*query, world));
    state.counters["operators"] = static_cast<double>(evoformer()->operators.size());
}
BENCHMARK(find)->DenseRange(0, 3)->Unit(benchmark::kMillisecond);

void cone(benchmark::State &state)
{
    const auto made = buildOutline(evoformer(), DagMode::Unrolled);
    for (auto _ : state)
        benchmark::DoNotOptimize(coneOf(made, {0}, true));
}
BENCHMARK(cone)->Unit(benchmark::kMillisecond);

/// The longest single turn of the GUI thread's events while a model opens and all of it is shown.
void longestTurn(benchmark::State &state)
{
    double longest = 0;
    for (auto _ : state) {
        DagView view;
        view.resize(1600, 900);
        QElapsedTimer timer;
        const auto turn = [&](auto &&act) {
            timer.start();
            act();
            longest = std::max(longest, static_cast<double>(timer.nsecsElapsed()) / 1e6);
        };
        const auto settle = [&] {
            while (!view.isSettled()) {
                turn([] { QCoreApplication::processEvents(QEventLoop::AllEvents); });
                QThread::usleep(200);
            }
        };
        turn([&] { view.setGraph(evoformer()); });
        settle();
        turn([&] { view.expandAll(); });
        settle();
        turn([&] { view.setColourBy(ColourBy::Memory); });
        settle();
    }
    state.counters["longest_ms"] = longest;
}
BENCHMARK(longestTurn)->Unit(benchmark::kMillisecond)->Iterations(3);

/// Frames of 1600 x 900 while zooming from everything down to single operators; p95 over all frames.
void paintFrames(benchmark::State &state)
{
    DagView view;
    view.resize(1600, 900);
    view.setMode(static_cast<DagMode>(state.range(0)));
    view.setGraph(evoformer());
    const auto settle = [&view] {
        while (!view.isSettled())
            QCoreApplication::processEvents(QEventLoop::WaitForMoreEvents);
    };
    settle();
    view.expandAll();
    settle();
    QImage image(1600, 900, QImage::Format_ARGB32_Premultiplied);
    std::vector<double> times;
    for (auto _ : state) {
        view.fitAll();
        for (int step = 0; step < 24; ++step) {
            QElapsedTimer timer;
            timer.start();
            view.render(&image);
            times.push_back(static_cast<double>(timer.nsecsElapsed()) / 1e6);
            view.zoomBy(1.25);
        }
    }
    std::sort(times.begin(), times.end());
    state.counters["p50_ms"] = times[times.size() / 2];
    state.counters["p95_ms"] = times[times.size() * 95 / 100];
    state.counters["boxes"] = static_cast<double>(view.picture()->visible.boxes.size());
}
BENCHMARK(paintFrames)
    ->Arg(static_cast<int>(DagMode::Folded))
    ->Arg(static_cast<int>(DagMode::Unrolled))
    ->Unit(benchmark::kMillisecond);

/// 50,000 operators: a training step of more Evoformer blocks.
GraphSnapshot large()
{
    static const GraphSnapshot graph = [] {
        auto model = opened("zoo:evoformer?layers=112");
        return model ? (*model)->graph : GraphSnapshot{};
    }();
    return graph;
}

void settle(DagView &view)
{
    while (!view.isSettled())
        QCoreApplication::processEvents(QEventLoop::WaitForMoreEvents, 5);
}

/// Frames over 50,000 operators, every one a node, with nothing (0) or everything (1) selected.
void flatFrames(benchmark::State &state)
{
    DagView view;
    view.resize(1600, 900);
    view.setMode(DagMode::Unrolled);
    view.setGraph(large());
    settle(view);
    view.expandAll();
    settle(view);
    if (state.range(0) != 0)
        view.selectionModel()->select(operatorsOf(*view.picture()->outline, view.picture()->visible, 0));
    QImage image(1600, 900, QImage::Format_ARGB32_Premultiplied);
    std::vector<double> times;
    for (auto _ : state) {
        view.fitAll();
        for (int step = 0; step < 24; ++step) {
            QElapsedTimer timer;
            timer.start();
            view.render(&image);
            times.push_back(static_cast<double>(timer.nsecsElapsed()) / 1e6);
            view.zoomBy(1.25);
        }
    }
    std::sort(times.begin(), times.end());
    state.counters["p50_ms"] = times[times.size() / 2];
    state.counters["p95_ms"] = times[times.size() * 95 / 100];
    state.counters["boxes"] = static_cast<double>(view.picture()->visible.boxes.size());
}
BENCHMARK(flatFrames)->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);

/// Opening and closing groups of 50,000 operators, at first all closed (0) or all open (1): until the new
/// picture is there, and how far what is at the pointer moved.
void toggleGroups(benchmark::State &state)
{
    DagView view;
    view.resize(1600, 900);
    view.setReducedMotion(true);
    if (state.range(0) != 0)
        view.setMode(DagMode::Unrolled);
    view.setGraph(large());
    settle(view);
    if (state.range(0) != 0) {
        view.expandAll();
        settle(view);
    }
    double slowest = 0;
    double drift = 0;
    int toggles = 0;
    for (auto _ : state) {
        const auto picture = view.picture();
        std::vector<std::int32_t> groups; // those in sight, and then those within them
        for (std::size_t box = 1; box < picture->visible.boxes.size(); ++box) {
            if (picture->outline->at(picture->visible.boxes[box].item).kind != OutlineItem::Kind::Operator)
                groups.push_back(picture->visible.boxes[box].item);
        }
        for (std::size_t i = 0; i < groups.size() && i < 12; ++i) {
            const std::int32_t item = groups[i];
            for (const auto child : picture->outline->at(item).children) {
                if (picture->outline->at(child).kind != OutlineItem::Kind::Operator)
                    groups.push_back(child);
            }
            if (view.picture()->visible.boxOfItem(item) <= 0)
                continue; // within one that is closed again
            for (int time = state.range(0) == 0 ? 0 : 1; time < 3;
                 ++time) { // open at the end: what is within is in sight
                ++toggles;
                const std::int32_t before = view.picture()->visible.boxOfItem(item);
                while (view.viewRect(before).width() < 40) // as near as one that is pointed at
                    view.zoomBy(2);
                // A group grows on all sides of the pointer: what stays is the share of its width, and its
                // upper border.
                const auto pointerIn = [](const QRectF &box) {
                    return QPointF(box.left() + 0.3 * box.width(), box.top() + 0.1);
                };
                const QPointF pointer = pointerIn(view.viewRect(before));
                QElapsedTimer timer;
                timer.start();
                view.toggleItem(item, pointer);
                settle(view);
                slowest = std::max(slowest, static_cast<double>(timer.nsecsElapsed()) / 1e6);
                const QPointF moved =
                    pointerIn(view.viewRect(view.picture()->visible.boxOfItem(item))) - pointer;
                drift = std::max({drift, std::abs(moved.x()), std::abs(moved.y())});
            }
        }
    }
    if (toggles == 0)
        state.SkipWithError("no group was in sight");
    state.counters["slowest_ms"] = slowest;
    state.counters["drift_px"] = drift;
    state.counters["toggles"] = toggles;
}
BENCHMARK(toggleGroups)->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond)->Iterations(1);

/// What keeps the GUI thread: the longest of each kind of thing done to 50,000 operators, apart from
/// painting.
void longestEvents(benchmark::State &state)
{
    DagView view;
    view.resize(1600, 900);
    view.setReducedMotion(true);
    view.setMode(DagMode::Unrolled);
    view.setGraph(large());
    settle(view);
    view.expandAll();
    settle(view);
    const auto picture = view.picture();
    const auto all = operatorsOf(*picture->outline, picture->visible, 0);
    const auto measured = [&](const char *name, auto &&act) {
        QElapsedTimer timer;
        timer.start();
        act();
        double longest = static_cast<double>(timer.nsecsElapsed()) / 1e6;
        while (!view.isSettled()) {
            timer.start();
            QCoreApplication::processEvents(QEventLoop::AllEvents);
            longest = std::max(longest, static_cast<double>(timer.nsecsElapsed()) / 1e6);
            QThread::usleep(200);
        }
        state.counters[name] = std::max(longest, state.counters[name].value);
    };
    for (auto _ : state) {
        measured("select_all", [&] { view.selectionModel()->select(all); });
        measured("invert", [&] { view.invertSelection(); });
        view.selectionModel()->select({all.front()});
        measured("cone", [&] { view.selectCone(true); });
        measured("similar", [&] { view.selectSimilar(); });
        measured("colours", [&] {
            view.setColourBy(view.colourBy() == ColourBy::Memory ? ColourBy::Kind : ColourBy::Memory);
        });
        measured("camera_state", [&] { benchmark::DoNotOptimize(view.cameraState()); });
        measured("describe", [&] { benchmark::DoNotOptimize(view.describe(1)); });
        measured("hover", [&] { benchmark::DoNotOptimize(view.boxAt(QPointF(800, 450))); });
    }
}
BENCHMARK(longestEvents)->Unit(benchmark::kMillisecond)->Iterations(3);

} // namespace
} // namespace planloom::bench

int main(int count, char **arguments)
{
    qputenv("QT_QPA_PLATFORM", "offscreen");
    QApplication application(count, arguments);
    benchmark::Initialize(&count, arguments);
    benchmark::RunSpecifiedBenchmarks();
    benchmark::Shutdown();
    return 0;
}
