// Rows that cannot hold together: three among two hundred on a GPT of 96 layers, and their ways out.
#include "engine/conflict/ways_out.h"
#include "engine/design/models/opened_model.h"
#include "engine/table/table_document.h"
#include "tests/engine/conflict/planted.h"

#include <benchmark/benchmark.h>

#include <chrono>
#include <string>
#include <thread>

namespace planloom {
namespace {

const OpenedModel &bigGpt()
{
    static const ModelSnapshot kModel = *openModel({kBigGpt, {}, {}}, {}, KeepContent::No);
    return *kModel;
}

void findPlanted(benchmark::State &state, const char *rows)
{
    const ConstraintTable table = TableDocument(plantedTable(rows)).table();
    const OpenedModel &model = bigGpt();
    for (auto _ : state) {
        const auto answer = findConflict(model, 8, table, {.limit = std::chrono::seconds(60)});
        if (!answer->sets.empty())
            state.counters["rows"] = static_cast<double>(answer->sets.front().rows.size());
        state.counters["sets"] = static_cast<double>(answer->sets.size());
        state.counters["completions"] = answer->completions;
    }
}
BENCHMARK_CAPTURE(findPlanted, orders, kPlantedOrders)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(findPlanted, splits, kPlantedSplits)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(findPlanted, nothing, "")->Unit(benchmark::kMillisecond);

void waysOutOfPlanted(benchmark::State &state)
{
    const ConstraintTable table = TableDocument(plantedTable(kPlantedOrders)).table();
    const OpenedModel &model = bigGpt();
    const auto answer = findConflict(model, 8, table, {.limit = std::chrono::seconds(60)});
    for (auto _ : state) {
        const auto ways = waysOut(model, 8, table, answer->sets, {.limit = std::chrono::seconds(60)});
        state.counters["ways"] = static_cast<double>(ways->front().size());
    }
}
BENCHMARK(waysOutOfPlanted)->Unit(benchmark::kMillisecond);

/// Thousands of rows, most of which cannot hold together: the limit of a second is kept.
void findAmongThousands(benchmark::State &state)
{
    std::string text = "mesh dp=2 tp=4\n";
    for (int i = 0; i < 3000; ++i) {
        const std::string layer = std::to_string(i * 7919 % 96);
        const std::string rows[] = {"split layer:" + layer + " : batch over dp", "recompute in:h." + layer,
            "stage layer:" + layer + " : " + std::to_string(i * 31 % 4),
            "place layer:" + layer + " : devices " + std::to_string(i * 13 % 8), "schedule 1f1b",
            "order name:h." + layer + ".attn.q_attn before name:h." + std::to_string(i * 577 % 96)
                + ".attn.k_attn"};
        text += rows[i % 6] + "\n";
    }
    const ConstraintTable table = TableDocument(text).table();
    const OpenedModel &model = bigGpt();
    for (auto _ : state) {
        const auto answer = findConflict(model, 8, table);
        state.counters["sets"] = static_cast<double>(answer->sets.size());
        state.counters["completions"] = answer->completions;
    }
}
BENCHMARK(findAmongThousands)->Unit(benchmark::kMillisecond);

/// How long it takes to answer once it is asked to stop, somewhere on the way.
void stopping(benchmark::State &state)
{
    const ConstraintTable table = TableDocument(plantedTable(kPlantedSplits)).table();
    const OpenedModel &model = bigGpt();
    double worst = 0;
    int after = 0;
    for (auto _ : state) {
        std::stop_source stop;
        std::chrono::steady_clock::time_point asked;
        std::thread other([&] {
            std::this_thread::sleep_for(std::chrono::milliseconds(20 + 13 * (after++ % 16)));
            asked = std::chrono::steady_clock::now();
            stop.request_stop();
        });
        while (findConflict(model, 8, table, {.limit = std::chrono::seconds(60)}, stop.get_token())) { }
        const auto answered = std::chrono::steady_clock::now();
        other.join();
        worst = std::max(worst, std::chrono::duration<double, std::milli>(answered - asked).count());
    }
    state.counters["worst_ms"] = worst;
}
BENCHMARK(stopping)->Unit(benchmark::kMillisecond)->Iterations(32);

} // namespace
} // namespace planloom
