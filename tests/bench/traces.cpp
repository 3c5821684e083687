// Traces of many ranks: makes files as torch.profiler writes them, and says how long it takes to open them.
//
//     build/tests/bench/traces FOLDER [RANKS [EVENTS]]
//
// FOLDER is made and filled unless it is there; 64 ranks of 100,000 events take 2 GB. The index is kept in
// FOLDER/cache, which is removed first.

#include "engine/traces/reading/open_trace.h"
#include "engine/traces/trace_analysis.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace fs = std::filesystem;
using namespace planloom;

namespace {

constexpr int kSteps = 5;

/// Writes one rank: for each step rounds of an operator of Python, a call, an arrow, a kernel, and now and
/// then an all-reduce that every rank ends at one time.
class RankWriter
{
public:
    RankWriter(const fs::path &path, int rank, int ranks)
        : m_file(std::fopen(path.c_str(), "wb"))
        , m_rank(rank)
        , m_ranks(ranks)
    {
    }
    ~RankWriter()
    {
        if (m_file)
            std::fclose(m_file);
    }

    bool write(int events)
    {
        if (!m_file)
            return false;
        std::fprintf(m_file,
            "{\n  \"schemaVersion\": 1,\n  \"distributedInfo\": {\"backend\": \"nccl\", \"rank\": %d, "
            "\"world_size\": %d},\n  \"traceEvents\": [\n",
            m_rank, m_ranks);
        const int rounds = events / (kSteps * 5);
        for (int step = 0; step < kSteps; ++step) {
            const double begin = m_time;
            for (int round = 0; round < rounds; ++round)
                writeRound(step * rounds + round);
            event("user_annotation", "ProfilerStep#" + std::to_string(step), begin, m_time - begin, "");
        }
        std::fprintf(m_file, "  {\"ph\": \"M\", \"name\": \"end\", \"pid\": 0, \"args\": {}}\n  ]\n}\n");
        return std::ferror(m_file) == 0;
    }

private:
    void event(
        const char *category, const std::string &name, double start, double duration, const std::string &more)
    {
        std::fprintf(m_file,
            "  {\n    \"ph\": \"X\", \"cat\": \"%s\", \"name\": \"%s\", \"pid\": %d, \"tid\": %d,\n    "
            "\"ts\": %.3f, "
            "\"dur\": %.3f,\n    \"args\": {\n      \"External id\": %d%s\n    }\n  },\n",
            category, name.c_str(), m_rank, m_rank, 1740461679000000.0 + start, duration, m_correlation,
            more.c_str());
    }

    void writeRound(int round)
    {
        ++m_correlation;
        const std::string correlation = std::to_string(m_correlation);
        event("python_function", "torch/nn/modules/linear.py(124): forward", m_time, 12,
            ", \"Python id\": " + correlation + ", \"Python parent id\": 17");
        event("cpu_op", "aten::addmm", m_time + 1, 9,
            ", \"Input Dims\": [[4096], [8192, 1024], [1024, 4096], [], []], \"Input type\": "
            "[\"c10::BFloat16\", "
            "\"c10::BFloat16\", \"c10::BFloat16\", \"Scalar\", \"Scalar\"], \"Sequence number\": 1");
        event("cuda_runtime", "cudaLaunchKernel", m_time + 4, 3,
            ", \"cbid\": 211, \"correlation\": " + correlation);
        std::fprintf(m_file,
            "  {\n    \"ph\": \"s\", \"id\": %d, \"pid\": %d, \"tid\": %d, \"ts\": %.3f,\n    \"cat\": "
            "\"ac2g\", \"name\": "
            "\"ac2g\"\n  },\n",
            m_correlation, m_rank, m_rank, m_time + 4);
        const bool isCollective = round % 16 == 15;
        const double late = (m_rank * 7 + round) % 5;
        if (isCollective)
            event("kernel", "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
                m_time + 9 + late, 31 - late,
                ", \"device\": 0, \"stream\": 20, \"correlation\": " + correlation
                    + ", \"Collective name\": \"allreduce\", \"In msg nelems\": 4194304, \"Out msg nelems\": "
                      "4194304, \"Group "
                      "size\": "
                    + std::to_string(m_ranks)
                    + ", \"dtype\": \"BFloat16\", \"Process Group Name\": \"0\", \"Process Group "
                      "Description\": "
                      "\"default_pg\", \"Seq\": "
                    + std::to_string(round));
        else
            event("kernel",
                "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_256x128_64x3_tn_align8_"
                    + std::to_string(round % 40) + ">(Params)",
                m_time + 9, 26,
                ", \"device\": 0, \"context\": 1, \"stream\": 7, \"correlation\": " + correlation
                    + ", \"registers per thread\": 230, \"shared memory\": 98304, \"blocks per SM\": "
                      "3.878788, \"grid\": [32, "
                      "16, 1], \"block\": [256, 1, 1], \"est. achieved occupancy %\": 13");
        m_time += 40;
    }

    std::FILE *m_file;
    int m_rank;
    int m_ranks;
    int m_correlation = 0;
    double m_time = 0;
};

double peakGigabytes()
{
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);)
        if (line.rfind("VmHWM:", 0) == 0)
            return std::atof(line.c_str() + 6) / 1e6;
    return 0;
}

/// Opens and analyses, and says how long that took.
template<typename Open> bool measure(const char *what, const Open &open)
{
    const auto begin = std::chrono::steady_clock::now();
    const auto secondsSince = [&] {
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    };
    const Result<Trace> trace = open();
    if (!trace) {
        std::fprintf(stderr, "%s\n", describe(trace.error()).c_str());
        return false;
    }
    const double opened = secondsSince();
    const auto analysis = analyseTrace(*trace);
    std::printf("%-14s %6.2f s to open, %6.2f s with analysis: %zu ranks, %zu events, %zu collectives; peak "
                "%.2f GB\n",
        what, opened, secondsSince(), trace->ranks.size(), trace->eventCount(),
        analysis ? analysis->collectives.size() : 0, peakGigabytes());
    return true;
}

} // namespace

int main(int argc, char **argv)
{
    if (argc < 2) {
        std::fprintf(stderr, "expected FOLDER [RANKS [EVENTS]]\n");
        return 2;
    }
    const fs::path folder = argv[1];
    const int ranks = argc > 2 ? std::atoi(argv[2]) : 64;
    const int events = argc > 3 ? std::atoi(argv[3]) : 100'000;
    if (!fs::exists(folder)) {
        fs::create_directories(folder);
        for (int rank = 0; rank < ranks; ++rank)
            if (!RankWriter(folder / ("rank" + std::to_string(rank) + ".json"), rank, ranks).write(events)) {
                std::fprintf(stderr, "%s cannot be written\n", folder.c_str());
                return 1;
            }
    }
    const auto files = traceFilesOf({folder});
    if (!files) {
        std::fprintf(stderr, "%s\n", describe(files.error()).c_str());
        return 1;
    }
    TraceOptions options;
    options.cache = folder / "cache";
    fs::remove_all(options.cache);
    const bool isDone = measure("first picture", [&] { return sampleTrace(*files, options); })
        && measure("whole", [&] { return openTrace(*files, options); })
        && measure("again", [&] { return openTrace(*files, options); });
    return isDone ? 0 : 1;
}
