// Steps on CPU devices as predicted from what calibration measured, beside runs:
// predicted_beside_measured [--quick] [--rounds N] [--only TEXT] [--kinds]
//
// Models of several families under data, tensor and pipeline plans on this machine's cores. Each round runs
// every plan of a model for a few steps, so that what else the machine does falls on all of them, and of all
// rounds the fastest step counts. Processor time is beside it: what it differs by is not others' doing.

#include "tests/bench/bench_models.h"

#include "engine/base/processor_time.h"
#include "engine/graph/operators/catalogue.h"
#include "engine/runtime/machine/calibrate.h"
#include "engine/runtime/run.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

using namespace planloom;
using namespace planloom::bench;

namespace {

struct Family {
    const char *name;
    const char *spec;
};
/// Small enough for a machine with two cores and 24 GiB: a step takes a second or less.
constexpr Family kFamilies[] = {
    {"GPT-2", kGpt2Small},
    {"T5", "zoo:t5?layers=4&hidden=512&heads=8&d_kv=64&ffn=2048&src=64&tgt=64&batch=4&vocab=8192"},
    {"Swin", "zoo:swin?layers=8&hidden=96&heads=3&window=7&image=224&patch=4&classes=1000&batch=4"},
    {"ResNet-50", "zoo:resnet?depth=50&batch=8&image=224&classes=1000"},
};
struct Rows {
    const char *gallery;
    std::int32_t devices;
};
constexpr Rows kRows[] = {{"single", 1}, {"data-parallel", 2}, {"zero1", 2}, {"tensor-parallel", 2},
    {"gpipe:micro-batches=4", 2}, {"1f1b:micro-batches=4", 2}, {"data-parallel", 4},
    {"1f1b:micro-batches=4", 4}};

struct Options {
    bool quick = false;
    bool kinds = false;
    int rounds = 3;
    std::string only{};
};

/// A plan, what was predicted and what was measured. Times in seconds.
struct Row {
    std::string name{};
    ExecutionPlan plan{};
    Timeline predicted{};
    double predictedCores = 0;
    double measured = 1e9;
    double measuredCores = 1e9;
    Timeline fastest{}; ///< Spans of the run with the fastest last step.
    double fastestLast = 1e9;
    std::vector<Bytes> peak{};

    double predictedSeconds() const { return static_cast<double>(predicted.step.count()) * 1e-9; }
};

std::optional<Options> optionsOf(int argc, char **argv)
{
    Options options;
    for (int i = 1; i < argc; ++i) {
        const std::string_view word = argv[i];
        if (word == "--quick")
            options.quick = true;
        else if (word == "--kinds")
            options.kinds = true;
        else if (word == "--rounds" && i + 1 < argc)
            options.rounds = std::max(1, std::atoi(argv[++i]));
        else if (word == "--only" && i + 1 < argc)
            options.only = argv[++i];
        else
            return std::nullopt;
    }
    return options;
}

Result<Row> rowOf(const Family &family, const ModelSnapshot &model, const Rows &rows)
{
    TRY(const auto answer,
        planOf(galleryRequest(model, rows.gallery, "cpu", rows.devices, PlanGrade::Lowered)));
    Row row;
    row.name = std::string{family.name} + ", " + rows.gallery + " on " + std::to_string(rows.devices);
    row.plan = *answer->execution;
    return row;
}

Result<void> predict(Row &row, MachineProfile &profile, const Options &options)
{
    CalibrateOptions calibration; // as before the first run of a plan
    if (!options.quick) {
        calibration.seconds = 600;
        calibration.repeats = 9;
    }
    TRY_VOID(calibrate(profile, row.plan, calibration));
    SimulateOptions simulation;
    simulation.spans = options.kinds;
    TRY(row.predicted, predictRun(row.plan, profile, true, simulation));
    TRY(row.predictedCores, predictCores(row.plan, profile));
    return {};
}

Result<void> measure(Row &row)
{
    RunOptions options;
    options.steps = 4;
    options.randomWeights = true;
    options.poison = false;
    std::vector<double> cores;
    RunEvents events;
    events.stepDone = [&](std::int32_t, double, double) { cores.push_back(processorSeconds()); };
    TRY(const auto outcome, runOnCpu(row.plan, options, events));
    for (std::size_t step = 1; step < cores.size(); ++step) { // the first one warms caches and memory
        row.measured = std::min(row.measured, outcome.stepSeconds[step]);
        row.measuredCores = std::min(row.measuredCores, cores[step] - cores[step - 1]);
    }
    if (outcome.stepSeconds.back() < row.fastestLast) {
        row.fastestLast = outcome.stepSeconds.back();
        row.fastest = outcome.measured;
    }
    row.peak = outcome.peak;
    return {};
}

double errorOf(double predicted, double measured)
{
    return 100 * (predicted / measured - 1);
}

/// The worst of all devices.
double peakError(const Row &row)
{
    double worst = 0;
    for (std::size_t d = 0; d < row.peak.size(); ++d) {
        const double error = errorOf(
            static_cast<double>(row.predicted.memory[d].peak.count), static_cast<double>(row.peak[d].count));
        if (std::abs(error) > std::abs(worst))
            worst = error;
    }
    return worst;
}

/// Milliseconds of all devices by what instructions are.
std::map<std::string, double> kindsOf(const ExecutionPlan &plan, const Timeline &timeline)
{
    std::map<std::string, double> sums;
    const SpanColumns &spans = timeline.spans;
    for (std::size_t i = 0; i < spans.size(); ++i) {
        const DeviceProgram &program = plan.devices[static_cast<std::size_t>(spans.device[i])];
        const Instruction &instruction = program.segments[static_cast<std::size_t>(spans.segment[i])]
                                             .instructions[static_cast<std::size_t>(spans.instruction[i])];
        std::string kind = nameOf(instruction.kind);
        if (instruction.kind == InstructionKind::Kernel) {
            const Operator &op = plan.graph->at(instruction.op);
            kind +=
                std::string{" "} + nameOf(op.kind) + (op.direction == Direction::Backward ? " backward" : "");
        }
        sums[kind] += static_cast<double>(spans.duration[i]) * 1e-6;
    }
    return sums;
}

void printKinds(const Row &row)
{
    const auto predicted = kindsOf(row.plan, row.predicted);
    const auto measured = kindsOf(row.plan, row.fastest);
    std::vector<std::pair<std::string, double>> kinds(measured.begin(), measured.end());
    std::sort(kinds.begin(), kinds.end(), [](const auto &a, const auto &b) { return a.second > b.second; });
    for (const auto &[kind, milliseconds] : kinds) {
        const auto found = predicted.find(kind);
        std::printf("      %-44s %9.2f ms predicted, %9.2f measured\n", kind.c_str(),
            found == predicted.end() ? 0.0 : found->second, milliseconds);
    }
}

/// What the first device holds at its peak, by kind.
void printPeak(const Row &row)
{
    const MemoryCurve &predicted = row.predicted.memory.front();
    const MemoryCurve &measured = row.fastest.memory.front();
    for (int kind = 0; kind < kMemoryKindCount; ++kind) {
        const auto k = static_cast<std::size_t>(kind);
        std::printf("      %-44s %9.2f MiB predicted, %8.2f measured\n",
            nameOf(static_cast<MemoryKind>(kind)), static_cast<double>(predicted.atPeak[k]) / 1048576,
            static_cast<double>(measured.atPeak[k]) / 1048576);
    }
}

/// Of pairs more than a tenth apart: how many there are, and how many were predicted the other way round.
std::pair<int, int> pairsOf(const std::vector<Row> &rows)
{
    int apart = 0;
    int wrong = 0;
    for (std::size_t a = 0; a < rows.size(); ++a)
        for (std::size_t b = 0; b < rows.size(); ++b)
            if (rows[a].measured > 1.1 * rows[b].measured) {
                ++apart;
                wrong += rows[a].predictedSeconds() <= rows[b].predictedSeconds() ? 1 : 0;
            }
    return {apart, wrong};
}

Result<void> runFamily(const Family &family, MachineProfile &profile, const Options &options)
{
    TRY(const auto model, opened(family.spec));
    std::vector<Row> rows;
    for (const Rows &each : kRows) {
        auto row = rowOf(family, model, each);
        if (!row) {
            std::printf(
                "%s, %s on %d: %s\n", family.name, each.gallery, each.devices, describe(row.error()).c_str());
            continue;
        }
        if (row->name.find(options.only) == std::string::npos)
            continue;
        TRY_VOID(predict(*row, profile, options));
        rows.push_back(*std::move(row));
    }
    for (int round = 0; round < options.rounds; ++round)
        for (Row &row : rows)
            TRY_VOID(measure(row));
    for (const Row &row : rows) {
        std::printf("%-40s %9.1f %9.1f %+6.1f%% %9.1f %9.1f %+6.1f%% %+6.1f%%\n", row.name.c_str(),
            row.predictedSeconds() * 1e3, row.measured * 1e3, errorOf(row.predictedSeconds(), row.measured),
            row.predictedCores * 1e3, row.measuredCores * 1e3, errorOf(row.predictedCores, row.measuredCores),
            peakError(row));
        if (options.kinds) {
            printKinds(row);
            printPeak(row);
        }
    }
    const auto [apart, wrong] = pairsOf(rows);
    std::printf("%s: %d of %d pairs more than 10%% apart are predicted in the wrong order\n", family.name,
        wrong, apart);
    std::fflush(stdout);
    return {};
}

} // namespace

int main(int argc, char **argv)
{
    const auto options = optionsOf(argc, argv);
    if (!options) {
        std::fputs("predicted_beside_measured [--quick] [--rounds N] [--only TEXT] [--kinds]\n", stderr);
        return 2;
    }
    std::printf(
        "%-40s %9s %9s %7s %9s %9s %7s %7s\n", "", "predicted", "measured", "", "cores:", "", "", "peak");
    std::printf("%-40s %9s %9s %7s %9s %9s %7s %7s\n", "", "ms", "ms", "", "ms", "ms", "", "");
    MachineProfile profile;
    for (const Family &family : kFamilies)
        if (const auto done = runFamily(family, profile, *options); !done) {
            std::fprintf(stderr, "%s: %s\n", family.name, describe(done.error()).c_str());
            return 1;
        }
    return 0;
}
