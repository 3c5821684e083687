// Planning anew after an edit of one row, as the window does it: the rows are read and bound, and all that
// follows from them is worked out, as far as a plan, a timeline with its picture's data, or a proof.

#include "tests/bench/bench_models.h"
#include "widgets/design/plan_update.h"

#include <benchmark/benchmark.h>

namespace planloom::bench {
namespace {

/// The row that comes and goes.
constexpr const char *kEdited = "recompute layer:0 per layer\n";

/// The gallery's rows and one more, and what else a plan follows from.
Result<PlanRequest> requestOf(const Case &that)
{
    TRY(const auto start, startOf(that, PlanGrade::Planned));
    PlanRequest request;
    request.model = start->model;
    request.target = {that.cluster, {}, that.devices};
    request.table = start->table;
    TRY_VOID(request.table.apply(insertText(request.table, request.table.lineCount(), kEdited)));
    return request;
}

/// The last row is switched off, or on again.
void replan(benchmark::State &state, const Case &that, PlanGrade upTo)
{
    auto request = requestOf(that);
    if (!request) {
        state.SkipWithError(describe(request.error()).c_str());
        return;
    }
    request->upTo = upTo;
    const std::int32_t line = request->table.lineCount() - 1;
    bool enabled = true;
    for (auto _ : state) {
        enabled = !enabled;
        const auto edited = request->table.apply(setEnabled(request->table, {line}, enabled));
        PlanUpdateSnapshot last;
        makeUpdates(*request, {}, {}, [&last](PlanUpdateSnapshot update) { last = std::move(update); });
        if (!edited || !last || last->firstError()) {
            state.SkipWithError(edited && last ? describe(*last->firstError()).c_str() : "no answer");
            return;
        }
    }
}

BENCHMARK_CAPTURE(replan, gpt2_planned, kGpt2Case, PlanGrade::Planned)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(replan, gpt2_simulated, kGpt2Case, PlanGrade::Simulated)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(replan, gpt2_verified, kGpt2Case, PlanGrade::Verified)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(replan, gpt3_planned, kGpt3FileCase, PlanGrade::Planned)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(replan, gpt3_simulated, kGpt3FileCase, PlanGrade::Simulated)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(replan, gpt3_verified, kGpt3FileCase, PlanGrade::Verified)->Unit(benchmark::kMillisecond);

} // namespace
} // namespace planloom::bench
