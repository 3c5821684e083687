// From rows to a timeline and a proof: completing, lowering, simulating, verifying.

#include "tests/bench/bench_models.h"

#include "engine/simulate/simulate.h"
#include "engine/verify/verify.h"

#include <benchmark/benchmark.h>

namespace planloom::bench {
namespace {

/// One plan that people make, and the machine it is for.
struct Case {
    const char *model; ///< A zoo model, or the name of a file of PLANLOOM_MODELS.
    const char *gallery;
    std::int32_t devices;
    const char *cluster;
};
constexpr Case kGpt2{"zoo:gpt?layers=12&hidden=768&heads=12&seq=1024&batch=8&vocab=50257",
    "3d:dp=1,tp=2,pp=4,micro-batches=8", 8, "dgx-a100:8"};
constexpr Case kGpt3{"zoo:gpt?layers=96&hidden=12288&heads=96&seq=2048&batch=32&vocab=50257",
    "3d:dp=1,tp=8,pp=8,micro-batches=32", 64, "dgx-h100:64"};

// The exported file: micro-batches are whole batches of its one sequence.
constexpr Case kGpt3File{"gpt3_175b_full.onnx", kGpt3.gallery, kGpt3.devices, kGpt3.cluster};

/// What a benchmark starts from, or why it cannot.
struct Start {
    GraphSnapshot graph{};
    Plan plan{};
    Cluster cluster{};
};

Result<Start> startOf(const Case &that)
{
    Start start;
    const std::string model = isZooSpec(that.model) ? that.model : modelFile(that.model);
    if (model.empty())
        return Error{ErrorCode::NotFound, "PLANLOOM_MODELS names no folder with this model", {}, that.model};
    TRY(start.graph, trainingStep(model));
    TRY(start.plan, planned(start.graph, that.gallery, that.devices));
    TRY(start.cluster, clusterNamed(that.cluster));
    return start;
}

void complete(benchmark::State &state, const Case &that)
{
    const auto start = startOf(that);
    if (!start) {
        state.SkipWithError(describe(start.error()).c_str());
        return;
    }
    for (auto _ : state) {
        const auto plan = planned(start->graph, that.gallery, that.devices);
        if (!plan) {
            state.SkipWithError(describe(plan.error()).c_str());
            return;
        }
        benchmark::DoNotOptimize(plan->microBatches);
    }
}

void lowerAndSimulate(benchmark::State &state, const Case &that)
{
    const auto start = startOf(that);
    if (!start) {
        state.SkipWithError(describe(start.error()).c_str());
        return;
    }
    std::int64_t instructions = 0;
    for (auto _ : state) {
        const auto plan = lower(start->plan, start->cluster);
        if (!plan) {
            state.SkipWithError(describe(plan.error()).c_str());
            return;
        }
        const auto timeline = simulate(*plan, start->cluster);
        if (!timeline) {
            state.SkipWithError(describe(timeline.error()).c_str());
            return;
        }
        state.PauseTiming();
        instructions = instructionCount(*plan);
        state.counters["step_ms"] = static_cast<double>(timeline->step.count()) / 1e6;
        state.ResumeTiming();
    }
    state.counters["instructions"] = static_cast<double>(instructions);
}

void prove(benchmark::State &state, const Case &that)
{
    const auto start = startOf(that);
    if (!start) {
        state.SkipWithError(describe(start.error()).c_str());
        return;
    }
    const auto plan = lower(start->plan, start->cluster);
    if (!plan) {
        state.SkipWithError(describe(plan.error()).c_str());
        return;
    }
    for (auto _ : state) {
        const auto report = verify(*plan);
        if (!report || !report->ok()) {
            state.SkipWithError(report ? report->failure->reason.c_str() : describe(report.error()).c_str());
            return;
        }
        state.counters["instructions"] = static_cast<double>(report->instructions);
    }
}

BENCHMARK_CAPTURE(complete, gpt2_small_8_devices, kGpt2)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(complete, gpt3_175b_64_devices, kGpt3)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(lowerAndSimulate, gpt2_small_8_devices_8_micro_batches, kGpt2)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(lowerAndSimulate, gpt3_175b_64_devices_32_micro_batches, kGpt3)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(lowerAndSimulate, gpt3_175b_file, kGpt3File)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(prove, gpt2_small_8_devices_8_micro_batches, kGpt2)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(prove, gpt3_175b_64_devices_32_micro_batches, kGpt3)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(prove, gpt3_175b_file, kGpt3File)->Unit(benchmark::kMillisecond);

} // namespace
} // namespace planloom::bench
