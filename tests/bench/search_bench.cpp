// The search for the best plan, from nothing: pricing alone, and with the simulations that decide.
#include "engine/design/models/opened_model.h"
#include "engine/design/models/target.h"
#include "engine/graph/annotation/partition.h"
#include "engine/search/solver.h"
#include "engine/table/selector_index.h"
#include "engine/table/table_text.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

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

/// After one row changes: what was worked out before is remembered.
/// @param threads  as `SearchOptions::threads`; the live solver has two
void edit(benchmark::State &state, const char *spec, const char *cluster, std::int32_t threads)
{
    const OpenedModel &model = modelOf(spec);
    const Cluster devices = *clusterNamed(cluster);
    const CostModel costs = costModelOf(devices);
    SearchOptions options;
    options.precision = usualPrecision(devices);
    options.memory = std::make_shared<SearchMemory>();
    options.threads = threads;
    const auto search = [&](const ConstraintTable &rows) {
        return searchPlan(model, devices, devices.deviceCount, rows, costs, options);
    };
    (void)search({});
    std::mt19937 random(1);
    std::vector<double> seconds;
    std::vector<double> first;
    std::vector<double> cpu; // of the process: what other programs do meanwhile does not count
    for (auto _ : state) {
        // A row about one operator, as a person adds it.
        const auto forward = static_cast<std::int32_t>(model.index->forwardCount());
        std::optional<ConstraintTable> table;
        while (!table) {
            const OperatorId op{std::uniform_int_distribution<std::int32_t>(0, forward - 1)(random)};
            const std::string selector = "name:" + model.graph->at(op).name;
            const auto dimensions = splittableDimensions(model.graph->at(op).annotation);
            const auto kind = random() % 4;
            std::string row;
            if (kind == 0 && !dimensions.empty())
                row = "split " + selector + " : "
                    + model.graph->at(op)
                          .annotation
                          .dimensions[static_cast<std::size_t>(dimensions[random() % dimensions.size()])]
                          .name
                    + " over tp";
            else if (kind == 1)
                row = "replicate " + selector + " : over tp";
            else if (kind == 2)
                row = "recompute " + selector;
            else
                row = random() % 2 == 0 ? "micro-batches 2" : "zero1 all";
            if (auto parsed = parseRow(row))
                table = ConstraintTable{{*std::move(parsed)}, {}};
        }
        const auto begin = std::chrono::steady_clock::now();
        const auto passed = [&] {
            return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
        };
        double firstSeen = 0;
        options.onBetter = [&](const SearchResult &) { firstSeen = firstSeen > 0 ? firstSeen : passed(); };
        const std::clock_t worked = std::clock();
        benchmark::DoNotOptimize(search(*table));
        seconds.push_back(passed());
        cpu.push_back(static_cast<double>(std::clock() - worked) / CLOCKS_PER_SEC);
        first.push_back(firstSeen > 0 ? firstSeen : seconds.back());
    }
    const auto median = [](std::vector<double> values) {
        std::nth_element(
            values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
        return values[values.size() / 2] * 1e3;
    };
    state.counters["median_ms"] = median(seconds);
    state.counters["first_median_ms"] = median(first);
    state.counters["median_cpu_ms"] = median(cpu);
}

constexpr const char *kGpt2 = "zoo:gpt?layers=12&hidden=768&heads=12&seq=1024&vocab=50304&batch=8";
constexpr const char *kGpt3 = "zoo:gpt?layers=96&hidden=12288&heads=96&seq=2048&vocab=51200&batch=64";

BENCHMARK_CAPTURE(search, gpt2_8_one, kGpt2, "dgx-h100:8", 1)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(search, gpt2_8_twelve, kGpt2, "dgx-h100:8", 12)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(search, gpt3_64_one, kGpt3, "dgx-h100:64", 1)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(search, gpt3_64_four, kGpt3, "dgx-h100:64", 4)->Unit(benchmark::kMillisecond);

BENCHMARK_CAPTURE(edit, gpt2_8, kGpt2, "dgx-h100:8", 1)->Iterations(50)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(edit, gpt2_64, kGpt2, "dgx-h100:64", 1)->Iterations(50)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(edit, gpt3_64, kGpt3, "dgx-h100:64", 1)->Iterations(50)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(edit, gpt2_8_live, kGpt2, "dgx-h100:8", 2)->Iterations(50)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(edit, gpt3_64_live, kGpt3, "dgx-h100:64", 2)->Iterations(50)->Unit(benchmark::kMillisecond);

} // namespace
} // namespace planloom
