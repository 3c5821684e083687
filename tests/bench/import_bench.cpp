// Importing the largest models: 9,449 and 16,956 nodes. PLANLOOM_MODELS names the folder that holds them.

#include "tests/bench/bench_models.h"

#include "engine/frontend/onnx/import_onnx.h"
#include "engine/frontend/zoo/zoo.h"

#include <benchmark/benchmark.h>

namespace planloom::bench {
namespace {

void importModel(benchmark::State &state, const char *name)
{
    const std::string path = modelFile(name);
    if (path.empty()) {
        state.SkipWithError("PLANLOOM_MODELS names no folder with this model");
        return;
    }
    std::size_t operators = 0;
    for (auto _ : state) {
        const auto graph = importOnnxFile(path);
        if (!graph) {
            state.SkipWithError(describe(graph.error()).c_str());
            return;
        }
        operators = graph->operators.size();
    }
    state.counters["operators"] = static_cast<double>(operators);
}
BENCHMARK_CAPTURE(importModel, gpt3_175b, "gpt3_175b_full.onnx")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(importModel, evoformer_48, "evoformer_48_full.onnx")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(importModel, gpt2_small, "gpt2_small_full.onnx")->Unit(benchmark::kMillisecond);

void buildZoo(benchmark::State &state)
{
    for (auto _ : state) {
        const auto graph = buildZooModel("zoo:gpt?layers=96&hidden=12288&heads=96&seq=2048&batch=1");
        if (!graph) {
            state.SkipWithError(describe(graph.error()).c_str());
            return;
        }
        benchmark::DoNotOptimize(graph->operators.size());
    }
}
BENCHMARK(buildZoo)->Unit(benchmark::kMillisecond);

} // namespace
} // namespace planloom::bench
