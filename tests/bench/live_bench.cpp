// How the window keeps up with edits while the solver chooses: frames of the views while rows change five
// times a second, the time from a drop to the picture of the plan that was searched anew, and how soon what
// runs ends when it is told to. In the real window, with synthetic events; figures are counters in ms, of the
// clock on the wall, and of processor time where they end with "cpu".

#include <QtCore/QTemporaryDir>
#include <QtGui/QMouseEvent>
#include <QtTest/QTest>
#include <QtWidgets/QScrollBar>

#include "tests/bench/bench_models.h"
#include "tests/bench/window_bench.h"
#include "widgets/common/gui_watchdog.h"
#include "widgets/main/main_window.h"

#include <benchmark/benchmark.h>

#include <chrono>
#include <ctime>
#include <map>
#include <random>
#include <string>
#include <thread>

using namespace planloom;
using namespace planloom::bench;

namespace {

constexpr const char *kLiveGpt = "gpt2_small_full.onnx";

/// PLANLOOM_EDITS makes them fewer, for a quick look.
int editCount()
{
    const int asked = qEnvironmentVariableIntValue("PLANLOOM_EDITS");
    return asked > 0 ? asked : 50;
}

/// Of the thread that asks, or of all that the program does.
double processorMilliseconds(clockid_t which)
{
    timespec now{};
    clock_gettime(which, &now);
    return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}

/// The window with a model whose plan was searched.
bool openSearched(MainWindow &window, const std::string &model, int devices)
{
    window.resize(1600, 1000);
    window.show();
    Workspace &workspace = window.workspace();
    workspace.openWith({model, {}, {}}, "dgx-h100", devices, {}, "# mine\n");
    const auto settled = [&] {
        return window.isSettled() && workspace.latest() && workspace.latest()->final && !workspace.isStale();
    };
    if (!waitUntil(settled, "the plan"))
        return false;
    workspace.searchBest();
    return waitUntil([&] { return settled() && workspace.latest()->search; }, "the search");
}

/// A row of the kind that people try, another one each time; within it there is something to search.
std::string rowOf(std::mt19937 &random, std::size_t operators)
{
    switch (random() % 5) {
    case 0:
        return "micro-batches " + std::to_string(1 << random() % 3);
    case 1:
        return "recompute layer:" + std::to_string(random() % 12) + " per layer";
    case 2:
        return "degree tensor at most " + std::to_string(1 << random() % 4);
    case 3:
        return "degree pipeline at most " + std::to_string(1 << random() % 4);
    default:
        return "limit memory " + std::to_string(20 + random() % 40 + operators % 2) + "GiB";
    }
}

/// One frame: the pointer goes over the views, and what changed is painted.
class Frames
{
public:
    explicit Frames(MainWindow &window)
        : m_window(window)
    {
    }

    void one()
    {
        QElapsedTimer clock;
        clock.start();
        const double before = processorMilliseconds(CLOCK_THREAD_CPUTIME_ID);
        m_at += 7;
        QWidget *widgets[] = {m_window.timeline()->viewport(), m_window.dag()};
        for (QWidget *widget : widgets) {
            const QPointF at(m_at % std::max(1, widget->width()), widget->height() / 2.0);
            QMouseEvent move(
                QEvent::MouseMove, at, widget->mapToGlobal(at), Qt::NoButton, Qt::NoButton, Qt::NoModifier);
            QCoreApplication::sendEvent(widget, &move);
        }
        m_window.timeline()->horizontalScrollBar()->setValue(m_at % 200);
        QCoreApplication::processEvents();
        m_window.timeline()->viewport()->repaint();
        frames.push_back(since(clock));
        cpu.push_back(processorMilliseconds(CLOCK_THREAD_CPUTIME_ID) - before);
    }

    std::vector<double> frames;
    std::vector<double> cpu;

private:
    MainWindow &m_window;
    int m_at = 0;
};

void sayWhatWasSlow(const GuiWatchdog &watchdog)
{
    std::map<std::string, std::pair<int, std::int64_t>> slow;
    for (const auto *list : {&watchdog.slowEvents(), &watchdog.slowFrames()})
        for (const SlowEvent &event : *list) {
            auto &[count, worst] =
                slow[event.receiver.toStdString() + " event " + std::to_string(static_cast<int>(event.type))];
            ++count;
            worst = std::max(worst, event.microseconds);
        }
    for (const auto &[what, figures] : slow)
        std::cerr << "too slow: " << what << ": " << figures.first << " times, at most "
                  << figures.second / 1000.0 << " ms\n";
}

/// Rows change five times a second while 64 devices are searched for.
void framesWhileSolving(benchmark::State &state)
{
    const std::string model = modelFile("gpt2_xl_full.onnx");
    if (model.empty()) {
        state.SkipWithError("PLANLOOM_MODELS does not name a folder with gpt2_xl_full.onnx");
        return;
    }
    for (auto _ : state) {
        MainWindow window;
        if (!openSearched(window, model, 64)) {
            state.SkipWithError("the model was not searched in time");
            return;
        }
        Workspace &workspace = window.workspace();
        auto *watchdog = qobject_cast<GuiWatchdog *>(QCoreApplication::instance());
        watchdog->clear();
        watchdog->watch(true);
        Frames frames(window);
        std::mt19937 random(5);
        std::vector<double> edits;
        int searching = 0;
        const std::string own = workspace.tableText();
        QElapsedTimer clock;
        clock.start();
        for (int edit = 0; edit < editCount(); ++edit) {
            QElapsedTimer one;
            one.start();
            const TableDocument &table = workspace.table();
            const std::string row = rowOf(random, static_cast<std::size_t>(edit));
            workspace.editTable(
                QStringLiteral("edit"), edit == 0 ? insertText(table, 0, row) : replaceLine(table, 0, row));
            edits.push_back(since(one));
            while (clock.elapsed() < 200 * (edit + 1)) {
                frames.one();
                searching += workspace.isPlanning() ? 1 : 0;
                std::this_thread::sleep_for(std::chrono::milliseconds(4));
            }
        }
        watchdog->watch(false);
        state.counters["frames"] = static_cast<double>(frames.frames.size());
        state.counters["frame_p50"] = percentile(frames.frames, 0.5);
        state.counters["frame_p95"] = percentile(frames.frames, 0.95);
        state.counters["frame_max"] = percentile(frames.frames, 1);
        state.counters["frame_p95_cpu"] = percentile(frames.cpu, 0.95);
        state.counters["frame_max_cpu"] = percentile(frames.cpu, 1);
        state.counters["edit_p95"] = percentile(edits, 0.95);
        state.counters["solving_share"] = searching / static_cast<double>(frames.frames.size());
        sayWhatWasSlow(*watchdog);
    }
}
BENCHMARK(framesWhileSolving)->Iterations(1)->Unit(benchmark::kSecond);

/// From the drop of a chip, or of a row, to the picture of the plan that the solver chose for it. Some look
/// at the ghost until its numbers are there; the others let go at once (the range's argument).
void dropToSolvedPicture(benchmark::State &state)
{
    const bool looks = state.range(0) != 0;
    const std::string model = modelFile(kLiveGpt);
    if (model.empty()) {
        state.SkipWithError("PLANLOOM_MODELS does not name a folder with gpt2_small_full.onnx");
        return;
    }
    for (auto _ : state) {
        MainWindow window;
        if (!openSearched(window, model, 8)) {
            state.SkipWithError("the model was not searched in time");
            return;
        }
        Workspace &workspace = window.workspace();
        std::mt19937 random(11);
        std::vector<double> first;
        std::vector<double> solved;
        std::vector<double> solvedCpu;
        std::vector<double> guiCpu;
        for (int edit = 0; edit < editCount(); ++edit) {
            const GestureContextSnapshot context = workspace.gestureContext();
            Proposal proposal;
            const auto &operators = workspace.model()->graph->operators;
            for (int tries = 0; tries < 200 && !(proposal.accepted() && !proposal.edit.empty()); ++tries) {
                if (edit % 2 == 1) {
                    proposal = proposeText(*context, rowOf(random, static_cast<std::size_t>(edit)), {});
                    continue;
                }
                const OperatorId op{static_cast<std::int32_t>(random() % operators.size())};
                if (operators[static_cast<std::size_t>(op.index)].direction != Direction::Forward)
                    continue;
                const auto chips = chipsOf(*context, op);
                if (chips.empty())
                    continue;
                const DimensionChip &chip = chips[random() % chips.size()];
                if (!chip.locked.empty() || chip.counts.empty())
                    continue;
                proposal = proposeSplit(*context, {{op}, op, SplitKind::Dimension, chip.dimension, 2, {}});
            }
            if (!proposal.accepted() || proposal.edit.empty())
                continue;
            workspace.preview(proposal);
            if (looks)
                waitUntil([&] { return workspace.currentPreview()->final; }, "the ghost");
            const PlanUpdateSnapshot before = workspace.lastGood();
            const auto shown = [&] {
                return workspace.lastGood() != before
                    && window.timeline()->scene() == workspace.lastGood()->scene;
            };
            QElapsedTimer clock;
            clock.start();
            const double cpu = processorMilliseconds(CLOCK_PROCESS_CPUTIME_ID);
            const double gui = processorMilliseconds(CLOCK_THREAD_CPUTIME_ID);
            workspace.commit(proposal);
            waitUntil([&] { return shown() || (!workspace.isPlanning() && workspace.latest()->final); },
                "a picture");
            window.timeline()->viewport()->repaint();
            first.push_back(since(clock));
            waitUntil(
                [&] {
                    const PlanUpdateSnapshot &latest = workspace.latest();
                    return latest && !workspace.isSearching() && latest->table == workspace.table()
                        && (latest->scene ? window.timeline()->scene() == latest->scene : latest->final)
                        && (latest->search || latest->final);
                },
                "the solved picture");
            window.timeline()->viewport()->repaint();
            solved.push_back(since(clock));
            solvedCpu.push_back(processorMilliseconds(CLOCK_PROCESS_CPUTIME_ID) - cpu);
            guiCpu.push_back(processorMilliseconds(CLOCK_THREAD_CPUTIME_ID) - gui);
            if (qEnvironmentVariableIsSet("PLANLOOM_SAY"))
                std::cerr << first.back() << " " << solved.back() << " ms, " << solvedCpu.back()
                          << " of processors, " << guiCpu.back() << " of them the GUI's: " << proposal.words
                          << (workspace.latest()->search ? "" : " (not searched)") << '\n';
            waitUntil([&] { return window.isSettled() && workspace.latest()->final; }, "rest");
            while (workspace.canUndo() && workspace.history().current() > 1)
                workspace.undo();
            waitUntil([&] { return window.isSettled() && workspace.latest()->final; }, "rest");
        }
        state.counters["drops"] = static_cast<double>(solved.size());
        state.counters["picture_p50"] = percentile(first, 0.5);
        state.counters["picture_p95"] = percentile(first, 0.95);
        state.counters["solved_p50"] = percentile(solved, 0.5);
        state.counters["solved_p95"] = percentile(solved, 0.95);
        state.counters["solved_p50_cpu"] = percentile(solvedCpu, 0.5);
        state.counters["solved_p95_cpu"] = percentile(solvedCpu, 0.95);
        state.counters["gui_p50_cpu"] = percentile(guiCpu, 0.5);
        state.counters["gui_p95_cpu"] = percentile(guiCpu, 0.95);
    }
}
BENCHMARK(dropToSolvedPicture)->Arg(1)->Arg(0)->Iterations(1)->Unit(benchmark::kSecond);

/// From `stop`, at random moments of a search for 64 devices, to a solver that rests.
void cancelling(benchmark::State &state)
{
    const std::string file = modelFile("gpt2_xl_full.onnx");
    const auto model = file.empty() ? Result<ModelSnapshot>(cancelled()) : opened(file);
    if (!model) {
        state.SkipWithError("PLANLOOM_MODELS does not name a folder with gpt2_xl_full.onnx");
        return;
    }
    for (auto _ : state) {
        std::mt19937 random(3);
        std::vector<double> ends;
        LiveSolver solver;
        for (int i = 0; i < editCount(); ++i) {
            PlanRequest request;
            request.model = *model;
            request.target = {"dgx-h100", {}, 64};
            request.search = true;
            request.memory = std::make_shared<SearchMemory>(); // all of it, each time
            solver.solve(std::move(request), [](const LiveReport &) {});
            std::this_thread::sleep_for(std::chrono::milliseconds(random() % 1500));
            QElapsedTimer clock;
            clock.start();
            solver.stop();
            while (solver.isSolving())
                std::this_thread::sleep_for(std::chrono::microseconds(200));
            ends.push_back(since(clock));
        }
        state.counters["end_p50"] = percentile(ends, 0.5);
        state.counters["end_p95"] = percentile(ends, 0.95);
        state.counters["end_max"] = percentile(ends, 1);
    }
}
BENCHMARK(cancelling)->Iterations(1)->Unit(benchmark::kSecond);

} // namespace

int main(int argc, char **argv)
{
    if (!qEnvironmentVariableIsSet("QT_QPA_PLATFORM"))
        qputenv("QT_QPA_PLATFORM", "offscreen");
    // What earlier runs have solved would be remembered.
    const QTemporaryDir home;
    qputenv("XDG_DATA_HOME", home.filePath(QStringLiteral("data")).toUtf8());
    qputenv("XDG_CACHE_HOME", home.filePath(QStringLiteral("cache")).toUtf8());
    qputenv("XDG_CONFIG_HOME", home.filePath(QStringLiteral("config")).toUtf8());
    GuiWatchdog application(argc, argv);
    benchmark::Initialize(&argc, argv);
    benchmark::RunSpecifiedBenchmarks();
    benchmark::Shutdown();
    return 0;
}
