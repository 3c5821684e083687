// Planning anew after an edit of one row, as the window does it: the rows are read and bound, and all that
// follows from them is worked out, as far as a plan, a timeline with its picture's data, or a proof.

#include "tests/bench/bench_models.h"
#include "widgets/design/plan_update.h"

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
constexpr Case kGpt3File{"gpt3_175b_full.onnx", "3d:dp=1,tp=8,pp=8,micro-batches=32", 64, "dgx-h100"};

/// The row that comes and goes.
constexpr const char *kEdited = "recompute layer:0 per layer\n";

/// The gallery's rows and one more, and what else a plan follows from.
Result<PlanRequest> requestOf(const Case &that)
{
    const std::string model =
        std::string_view(that.model).starts_with("zoo:") ? that.model : modelFile(that.model);
    if (model.empty())
        return Error{ErrorCode::NotFound, "PLANLOOM_MODELS names no folder with this model", {}, that.model};
    TRY(const auto snapshot, opened(model));
    PlanRequest request =
        galleryRequest(snapshot, that.gallery, that.cluster, that.devices, PlanGrade::Planned);
    TRY(const auto start, planOf(request));
    request.gallery.clear();
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

BENCHMARK_CAPTURE(replan, gpt2_planned, kGpt2, PlanGrade::Planned)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(replan, gpt2_simulated, kGpt2, PlanGrade::Simulated)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(replan, gpt2_verified, kGpt2, PlanGrade::Verified)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(replan, gpt3_planned, kGpt3File, PlanGrade::Planned)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(replan, gpt3_simulated, kGpt3File, PlanGrade::Simulated)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(replan, gpt3_verified, kGpt3File, PlanGrade::Verified)->Unit(benchmark::kMillisecond);

} // namespace
} // namespace planloom::bench
