// How long a person waits while shaping a plan by hand, in the real window with synthetic events: a frame
// while dragging, the ghost's numbers and its timeline, the new timeline after the release; and which events
// kept the GUI thread longer than 5 ms.
//
// Each benchmark makes 200 random gestures on DAG and timeline, each taken back afterwards. Figures are
// counters in ms.

#include <QtCore/QElapsedTimer>
#include <QtGui/QMouseEvent>
#include <QtTest/QTest>
#include <QtWidgets/QApplication>
#include <QtWidgets/QScrollBar>

#include "tests/bench/bench_models.h"
#include "tests/bench/window_bench.h"
#include "widgets/common/gui_watchdog.h"
#include "widgets/dag/dag_gesture_layer.h"
#include "widgets/main/main_window.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <functional>
#include <iostream>
#include <map>
#include <random>
#include <string>
#include <vector>

using namespace planloom;
using namespace planloom::bench;

namespace {

/// PLANLOOM_GESTURES makes it fewer, for a quick look.
int gestureCount()
{
    const int asked = qEnvironmentVariableIntValue("PLANLOOM_GESTURES");
    return asked > 0 ? asked : 200;
}
constexpr int kMoves = 8; ///< Of the pointer in one drag.

class Drags
{
public:
    /// @param ordersOnly  blocks are dragged in time, and nothing else is
    Drags(MainWindow &window, bool ordersOnly)
        : m_window(window)
        , m_workspace(window.workspace())
        , m_ordersOnly(ordersOnly)
    {
    }

    void run()
    {
        for (int gesture = 0; gesture < gestureCount(); ++gesture) {
            const StepId before = m_workspace.history().current();
            !m_ordersOnly &&m_random() % 2 == 0 ? dragOnDag() : dragOnTimeline();
            while (m_workspace.history().current() != before && m_workspace.canUndo())
                m_workspace.undo();
            waitUntil(
                [this] { return m_window.isSettled() && !m_workspace.isStale(); }, "the window to settle");
        }
    }

    std::vector<double> frames;
    std::vector<double> ghosts;
    std::vector<double> ghostTimelines;
    std::vector<double> releases;
    int refused = 0;

private:
    /// Sends a mouse event and paints what follows from it: one frame.
    void send(QWidget *widget, QEvent::Type type, QPointF at, Qt::MouseButtons buttons)
    {
        const Qt::MouseButton button = type == QEvent::MouseMove ? Qt::NoButton : Qt::LeftButton;
        QMouseEvent event(type, at, widget->mapToGlobal(at), button, buttons, Qt::NoModifier);
        QCoreApplication::sendEvent(widget, &event);
    }

    void drag(QWidget *widget, QPointF from, const std::function<QPointF()> &target)
    {
        send(widget, QEvent::MouseMove, from, Qt::NoButton);
        send(widget, QEvent::MouseButtonPress, from, Qt::LeftButton);
        QPointF at = from;
        QElapsedTimer ghost;
        for (int move = 1; move <= kMoves; ++move) {
            const QPointF to = target();
            at = from + (to - from) * (static_cast<double>(move) / kMoves);
            if (move < kMoves && m_random() % 4 == 0)
                at += QPointF(static_cast<double>(m_random() % 9) - 4, 0);
            QElapsedTimer frame;
            frame.start();
            if (move == kMoves)
                ghost.start();
            send(widget, QEvent::MouseMove, at, Qt::LeftButton);
            widget->repaint();
            frames.push_back(since(frame));
            QCoreApplication::processEvents();
        }
        const PreviewSnapshot preview = m_workspace.currentPreview();
        const bool accepted = preview && preview->proposal.accepted();
        const auto known = [this](bool all) {
            const PreviewSnapshot now = m_workspace.currentPreview();
            return !now || now->final || (!all && now->feasible());
        };
        if (accepted && waitUntil([&] { return known(false); }, "figures")) {
            ghosts.push_back(since(ghost));
            if (qEnvironmentVariableIsSet("PLANLOOM_SAY"))
                std::cerr << ghosts.back() << " ms: " << preview->proposal.words << '\n';
        }
        // Some let go as soon as they know the figures, others look at the would-be timeline first.
        if (accepted && m_random() % 2 == 0
            && waitUntil([&] { return known(true); }, "the would-be timeline"))
            ghostTimelines.push_back(since(ghost));
        const PlanUpdateSnapshot old = m_workspace.lastGood();
        const bool feasible =
            accepted && m_workspace.currentPreview() && m_workspace.currentPreview()->feasible();
        refused += feasible ? 0 : 1;
        if (!feasible && preview && qEnvironmentVariableIsSet("PLANLOOM_SAY"))
            std::cerr << tagOf(m_workspace.currentPreview() ? *m_workspace.currentPreview() : *preview)
                             .toStdString()
                      << '\n';
        QElapsedTimer release;
        release.start();
        send(widget, QEvent::MouseButtonRelease, at, Qt::NoButton);
        if (!feasible)
            return;
        if (!waitUntil(
                [&] {
                    return m_workspace.lastGood() != old
                        && m_window.timeline()->scene() == m_workspace.lastGood()->scene;
                },
                "the new timeline"))
            return;
        m_window.timeline()->viewport()->repaint();
        releases.push_back(since(release));
    }

    void dragOnDag()
    {
        DagView *dag = m_window.dag();
        const DagPictureSnapshot picture = dag->picture();
        std::vector<std::int32_t> boxes;
        for (std::int32_t box = 1; box < static_cast<std::int32_t>(picture->scene.rects.size()); ++box) {
            if (QRectF(dag->rect()).adjusted(4, 4, -4, -4).contains(dag->viewRect(box).center()))
                boxes.push_back(box);
        }
        if (boxes.empty())
            return;
        const QPointF from = dag->viewRect(boxes[m_random() % boxes.size()]).center();
        const std::size_t wanted = m_random();
        drag(dag, from, [dag, from, wanted]() -> QPointF {
            const auto &tiles = dag->gestures().tiles();
            if (tiles.empty())
                return from + QPointF(0, 60);
            const QRectF tile = dag->gestures().tileRect(static_cast<std::int32_t>(wanted % tiles.size()));
            return tile.isEmpty() ? from + QPointF(0, 60) : tile.center();
        });
    }

    void dragOnTimeline()
    {
        TimelineView *timeline = m_window.timeline();
        struct Candidate {
            QRect rect;
            std::int32_t row;
        };
        std::vector<Candidate> candidates;
        const auto &rows = timeline->rows();
        for (std::int32_t row = 0; row < static_cast<std::int32_t>(rows.size()); ++row) {
            for (std::size_t block = 0; block < 40; ++block) {
                const auto rect = timeline->rectOfBlock(row, block);
                if (rect && rect->width() >= 4 && timeline->viewport()->rect().contains(rect->center()))
                    candidates.push_back({*rect, row});
            }
        }
        if (candidates.empty())
            return;
        const Candidate from = candidates[m_random() % candidates.size()];
        const Candidate to = candidates[m_random() % candidates.size()];
        const QPointF begin = from.rect.center();
        const QPointF end = !m_ordersOnly && m_random() % 2 == 0
            ? QPointF(begin.x(), to.rect.center().y()) // another lane
            : QPointF(to.rect.left() + 1, begin.y()); // another place in the order
        drag(timeline->viewport(), begin, [end] { return end; });
    }

    MainWindow &m_window;
    Workspace &m_workspace;
    bool m_ordersOnly;
    std::mt19937 m_random{20240229};
};

void shape(benchmark::State &state, const std::string &model, int devices, const std::string &gallery,
    bool ordersOnly = false)
{
    for (auto _ : state) {
        MainWindow window;
        window.resize(1600, 1000);
        window.show();
        window.workspace().openWith({model, {}, {}}, "dgx-h100", devices, gallery);
        if (!waitUntil(
                [&] {
                    return window.isSettled() && window.workspace().lastGood()
                        && window.workspace().latest()->final;
                },
                "the plan")) {
            state.SkipWithError("the model was not planned in time");
            return;
        }
        auto *watchdog = qobject_cast<GuiWatchdog *>(QCoreApplication::instance());
        watchdog->clear();
        watchdog->watch(true);
        Drags drags(window, ordersOnly);
        drags.run();
        watchdog->watch(false);
        state.counters["frame_p50"] = percentile(drags.frames, 0.5);
        state.counters["frame_p95"] = percentile(drags.frames, 0.95);
        state.counters["ghost_p50"] = percentile(drags.ghosts, 0.5);
        state.counters["ghost_p95"] = percentile(drags.ghosts, 0.95);
        state.counters["ghost_timeline_p50"] = percentile(drags.ghostTimelines, 0.5);
        state.counters["ghost_timeline_p95"] = percentile(drags.ghostTimelines, 0.95);
        state.counters["release_p50"] = percentile(drags.releases, 0.5);
        state.counters["release_p95"] = percentile(drags.releases, 0.95);
        state.counters["released"] = static_cast<double>(drags.releases.size());
        state.counters["refused"] = drags.refused;
        state.counters["slow_events"] = static_cast<double>(watchdog->slowEvents().size());
        std::map<std::string, std::pair<int, std::int64_t>> slow;
        for (const SlowEvent &event : watchdog->slowEvents()) {
            auto &[count, worst] =
                slow[event.receiver.toStdString() + " event " + std::to_string(static_cast<int>(event.type))];
            ++count;
            worst = std::max(worst, event.microseconds);
        }
        for (const auto &[what, figures] : slow)
            std::cerr << "over 5 ms: " << what << ": " << figures.first << " times, at most "
                      << figures.second / 1000.0 << " ms\n";
    }
}

void gpt2OnEightDevices(benchmark::State &state)
{
    shape(state, "zoo:gpt?layers=12&hidden=768&heads=12&seq=1024&batch=16&vocab=50257", 8,
        "3d:dp=2,tp=2,pp=2,schedule=1f1b,micro-batches=8");
}
BENCHMARK(gpt2OnEightDevices)->Iterations(1)->Unit(benchmark::kSecond);

/// Blocks in time: 32 blocks of each of 64 micro-batches on 16 devices.
void blocksOnSixteenDevices(benchmark::State &state)
{
    shape(state, "zoo:gpt?layers=24&hidden=1024&heads=16&seq=1024&batch=64&vocab=50257", 16,
        "pipeline:stages=16,micro-batches=64,schedule=1f1b", true);
}
BENCHMARK(blocksOnSixteenDevices)->Iterations(1)->Unit(benchmark::kSecond);

void gpt3OnSixtyFourDevices(benchmark::State &state)
{
    const std::string file = planloom::bench::modelFile("gpt3_175b_full.onnx");
    if (file.empty()) {
        state.SkipWithError("PLANLOOM_MODELS does not name a folder with gpt3_175b_full.onnx");
        return;
    }
    shape(state, file, 64, "3d:dp=1,tp=8,pp=8,micro-batches=32");
}
BENCHMARK(gpt3OnSixtyFourDevices)->Iterations(1)->Unit(benchmark::kSecond);

} // namespace

int main(int argc, char **argv)
{
    if (!qEnvironmentVariableIsSet("QT_QPA_PLATFORM"))
        qputenv("QT_QPA_PLATFORM", "offscreen");
    GuiWatchdog application(argc, argv);
    benchmark::Initialize(&argc, argv);
    benchmark::RunSpecifiedBenchmarks();
    benchmark::Shutdown();
    return 0;
}
