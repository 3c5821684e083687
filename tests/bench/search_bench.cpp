// The search for the best plan, from nothing: pricing alone, and with the simulations that decide.
#include "engine/design/opened_model.h"
#include "engine/design/target.h"
#include "engine/search/solver.h"

#include <benchmark/benchmark.h>

#include <map>
#include <string>

namespace planloom {
namespace {

const OpenedModel &modelOf(const std::string &spec)
{
    static std::map<std::string, ModelSnapshot> opened;
    ModelSnapshot &model = opened[spec];
    if (!model)
        model = *openModel({spec, {}, {}}, {}, KeepContent::No);
    return *model;
}

void search(benchmark::State &state, const char *spec, const char *cluster, std::int32_t simulated)
{
    const OpenedModel &model = modelOf(spec);
    const Cluster devices = *clusterNamed(cluster);
    const CostModel costs = costModelOf(devices);
    SearchOptions options;
    options.precision = usualPrecision(devices);
    options.mostSimulated = simulated;
    options.mostSeconds = 1000;
    for (auto _ : state) {
        const auto found = searchPlan(model, devices, devices.deviceCount, {}, costs, options);
        state.counters["configurations"] = static_cast<double>(found->configurations);
        state.counters["gap"] = found->gap();
        state.counters["model/simulated"] = found->best.seconds / found->best.simulatedSeconds;
        state.counters["step_ms"] = found->best.simulatedSeconds * 1e3;
    }
}

constexpr const char *kGpt2 = "zoo:gpt?layers=12&hidden=768&heads=12&seq=1024&vocab=50304&batch=8";
constexpr const char *kGpt3 = "zoo:gpt?layers=96&hidden=12288&heads=96&seq=2048&vocab=51200&batch=64";

BENCHMARK_CAPTURE(search, gpt2_8_one, kGpt2, "dgx-h100:8", 1)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(search, gpt2_8_twelve, kGpt2, "dgx-h100:8", 12)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(search, gpt3_64_one, kGpt3, "dgx-h100:64", 1)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(search, gpt3_64_four, kGpt3, "dgx-h100:64", 4)->Unit(benchmark::kMillisecond);

} // namespace
} // namespace planloom
