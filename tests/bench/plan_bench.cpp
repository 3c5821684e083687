// From rows to a timeline and a proof: completing, lowering, simulating, verifying.

#include "engine/lowering/order/sequence.h"

#include "tests/bench/bench_models.h"

#include <benchmark/benchmark.h>

#include <optional>

namespace planloom::bench {
namespace {

constexpr Case kGpt3{"zoo:gpt?layers=96&hidden=12288&heads=96&seq=2048&batch=32&vocab=50257",
    kGpt3FileCase.gallery, kGpt3FileCase.devices, kGpt3FileCase.cluster};

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

/// The second half of lowering alone, as for a block dragged on the timeline.
void resequence(benchmark::State &state, const Case &that)
{
    const auto start = startOf(that, PlanGrade::Lowered);
    if (!start) {
        state.SkipWithError(describe(start.error()).c_str());
        return;
    }
    std::optional<ExecutionPlan> last;
    for (auto _ : state) {
        auto again = sequence(*(*start)->materialized, *(*start)->plan);
        if (!again || !*again) {
            state.SkipWithError("the order is another one");
            return;
        }
        state.PauseTiming();
        last = *std::move(again);
        state.ResumeTiming();
    }
}

/// Blocks in time: what a ghost waits for while a block is dragged. Each iteration another order of the
/// blocks of 16 devices and 64 micro-batches.
constexpr Case kBlocks{"zoo:gpt?layers=24&hidden=1024&heads=16&seq=1024&batch=64&vocab=50257",
    "pipeline:stages=16,micro-batches=64,schedule=1f1b", 16, "dgx-a100"};

void reorder(benchmark::State &state, const Case &that)
{
    const auto start = startOf(that, PlanGrade::Simulated);
    if (!start) {
        state.SkipWithError(describe(start.error()).c_str());
        return;
    }
    PlanRequest request;
    request.model = (*start)->model;
    request.target = {that.cluster, {}, that.devices};
    request.upTo = PlanGrade::Timed;
    request.last = *start;
    int offset = 0;
    for (auto _ : state) {
        state.PauseTiming();
        request.table = (*start)->table;
        const std::string row =
            "order backward & layer:0 before layer:0 at +" + std::to_string(14 + offset++ % 2);
        if (!request.table.apply(insertText(request.table, request.table.lineCount(), row)))
            state.SkipWithError("no row");
        state.ResumeTiming();
        const auto answer = planOf(request);
        if (!answer) {
            state.SkipWithError(describe(answer.error()).c_str());
            return;
        }
        state.PauseTiming();
        if (!(*answer)->materialized || (*answer)->materialized != request.last->materialized)
            state.SkipWithError("the programs were made anew");
        request.last = *answer;
        state.ResumeTiming();
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

BENCHMARK_CAPTURE(complete, gpt2_small_8_devices, kGpt2Case)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(complete, gpt3_175b_64_devices, kGpt3)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(lowerAndSimulate, gpt2_small_8_devices_8_micro_batches, kGpt2Case)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(lowerAndSimulate, gpt3_175b_64_devices_32_micro_batches, kGpt3)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(lowerAndSimulate, gpt3_175b_file, kGpt3FileCase)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(resequence, gpt2_small_8_devices_8_micro_batches, kGpt2Case)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(resequence, gpt3_175b_64_devices_32_micro_batches, kGpt3)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(reorder, blocks_on_16_devices, kBlocks)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(prove, gpt2_small_8_devices_8_micro_batches, kGpt2Case)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(prove, gpt3_175b_64_devices_32_micro_batches, kGpt3)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(prove, gpt3_175b_file, kGpt3FileCase)->Unit(benchmark::kMillisecond);

} // namespace
} // namespace planloom::bench
