// From rows to a timeline and a proof: completing, lowering, simulating, verifying.

#include "tests/bench/bench_models.h"

#include "engine/frontend/zoo.h"

#include <benchmark/benchmark.h>

namespace planloom::bench {
namespace {

/// One plan that people make, and the machine it is for.
struct Case {
    const char *model; ///< A zoo model, or the name of a file of PLANLOOM_MODELS.
    const char *gallery;
    std::int32_t devices;
    const char *cluster; ///< A profile without a size.
};
constexpr Case kGpt2{"zoo:gpt?layers=12&hidden=768&heads=12&seq=1024&batch=8&vocab=50257",
    "3d:dp=1,tp=2,pp=4,micro-batches=8", 8, "dgx-a100"};
constexpr Case kGpt3{"zoo:gpt?layers=96&hidden=12288&heads=96&seq=2048&batch=32&vocab=50257",
    "3d:dp=1,tp=8,pp=8,micro-batches=32", 64, "dgx-h100"};

// The exported file: micro-batches are whole batches of its one sequence.
constexpr Case kGpt3File{"gpt3_175b_full.onnx", kGpt3.gallery, kGpt3.devices, kGpt3.cluster};

/// A plan as far as `upTo`, to start from, or why there is none.
Result<PlanAnswerSnapshot> startOf(const Case &that, PlanGrade upTo)
{
    const std::string model = isZooSpec(that.model) ? that.model : modelFile(that.model);
    if (model.empty())
        return Error{ErrorCode::NotFound, "PLANLOOM_MODELS names no folder with this model", {}, that.model};
    TRY(const auto snapshot, opened(model));
    return planOf(galleryRequest(snapshot, that.gallery, that.cluster, that.devices, upTo));
}

/// Goes on from a plan that has got as far as `from` to `to`, once an iteration.
PlanAnswerSnapshot carryOn(benchmark::State &state, const Case &that, PlanGrade from, PlanGrade to)
{
    const auto start = startOf(that, from);
    if (!start) {
        state.SkipWithError(describe(start.error()).c_str());
        return nullptr;
    }
    PlanRequest request = galleryRequest((*start)->model, that.gallery, that.cluster, that.devices, to);
    if (from > PlanGrade::Checked)
        request.begin = *start;
    PlanAnswerSnapshot last;
    for (auto _ : state) {
        const auto answer = planOf(request);
        if (!answer) {
            state.SkipWithError(describe(answer.error()).c_str());
            return nullptr;
        }
        state.PauseTiming();
        last = *answer;
        state.ResumeTiming();
    }
    return last;
}

void complete(benchmark::State &state, const Case &that)
{
    carryOn(state, that, PlanGrade::Checked, PlanGrade::Planned);
}

void lowerAndSimulate(benchmark::State &state, const Case &that)
{
    if (const auto last = carryOn(state, that, PlanGrade::Planned, PlanGrade::Simulated)) {
        state.counters["step_ms"] = last->summary.stepSeconds * 1e3;
        state.counters["instructions"] = static_cast<double>(instructionCount(*last->execution));
    }
}

void prove(benchmark::State &state, const Case &that)
{
    if (const auto last = carryOn(state, that, PlanGrade::Simulated, PlanGrade::Verified)) {
        if (!last->verdict->ok())
            state.SkipWithError(last->verdict->failure->reason.c_str());
        state.counters["instructions"] = static_cast<double>(last->verdict->instructions);
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
