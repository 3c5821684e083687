// A training step of GPT-2 small (124 million parameters, batch 4, sequence 64, AdamW) on CPU devices that
// share one core: on one device, and data-parallel on four, which do the same work and add communication.

#include "tests/bench/bench_models.h"

#include "engine/runtime/run.h"

#include <benchmark/benchmark.h>

#include <sched.h>

#include <algorithm>
#include <ctime>
#include <vector>

namespace planloom::bench {
namespace {

/// Keeps this process, and the threads it starts from now on, on the core it is on.
bool stayOnOneCore()
{
    const int core = sched_getcpu();
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(static_cast<std::size_t>(std::max(core, 0)), &set);
    return core >= 0 && sched_setaffinity(0, sizeof set, &set) == 0;
}

/// Of all threads of this process so far. On one core, differences are what a step takes there on a quiet
/// machine.
double processorSeconds()
{
    timespec time{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

/// Times steps after the first, which warms caches and memory.
void cpuStep(benchmark::State &state, const char *gallery, std::int32_t devices)
{
    const auto plan = [&]() -> Result<ExecutionPlan> {
        TRY(const auto model, opened(kGpt2Small));
        TRY(const auto answer, planOf(galleryRequest(model, gallery, "cpu", devices, PlanGrade::Lowered)));
        return *answer->execution;
    }();
    if (!plan) {
        state.SkipWithError(describe(plan.error()).c_str());
        return;
    }
    if (!stayOnOneCore()) {
        state.SkipWithError("the process cannot be kept on one core");
        return;
    }
    RunOptions options;
    options.steps = 4;
    options.randomWeights = true;
    options.poison = false;
    std::vector<double> processor;
    RunEvents events;
    events.stepDone = [&](std::int32_t, double, double) { processor.push_back(processorSeconds()); };
    for (auto _ : state) {
        const auto outcome = runOnCpu(*plan, options, events);
        if (!outcome) {
            state.SkipWithError(describe(outcome.error()).c_str());
            return;
        }
        state.SetIterationTime(
            *std::min_element(outcome->stepSeconds.begin() + 1, outcome->stepSeconds.end()));
        double least = processor[1] - processor[0];
        for (std::size_t step = 2; step < processor.size(); ++step)
            least = std::min(least, processor[step] - processor[step - 1]);
        state.counters["processor_ms"] = least * 1e3;
        state.counters["loss"] = outcome->losses.back();
        for (std::size_t device = 0; device < outcome->peak.size(); ++device)
            state.counters["peak_MiB_" + std::to_string(device)] =
                static_cast<double>(outcome->peak[device].count) / 1048576.0;
    }
}

void once(benchmark::internal::Benchmark *step)
{
    step->UseManualTime()->Iterations(1)->Unit(benchmark::kMillisecond);
}

BENCHMARK_CAPTURE(cpuStep, one_device, "single", 1)->Apply(once);
BENCHMARK_CAPTURE(cpuStep, zero1_4, "zero1", 4)->Apply(once);
BENCHMARK_CAPTURE(cpuStep, tensor_parallel_2, "tensor-parallel", 2)->Apply(once);
BENCHMARK_CAPTURE(cpuStep, pipeline_2, "1f1b", 2)->Apply(once);
BENCHMARK_CAPTURE(cpuStep, data_parallel_4, "data-parallel", 4)->Apply(once);

} // namespace
} // namespace planloom::bench
