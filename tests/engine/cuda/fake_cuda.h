#pragma once

#include "engine/cuda/backend/cuda_functions.h"

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace planloom {

/// CUDA without a GPU: memory of the device is memory of the host, kernels are run by their host build, and
/// streams are carried out in a random order that their events allow, never sooner than somebody asks: what a
/// stream does not wait for comes too late, or too soon. Thread-safe.
class FakeCuda final : public CudaFunctions
{
public:
    explicit FakeCuda(std::uint32_t seed = 1)
        : m_random(seed)
    {
    }

    // What tests set.
    std::int64_t freeBytes = std::int64_t{8} << 30;
    std::int32_t devices = 1;
    std::int32_t driver = 13000;
    std::int32_t code = 90; ///< The architecture that its code is of.
    int teamThreads = 1; ///< Threads of a team: what they owe each other shows with several.
    std::int64_t stuckAfter = -1; ///< Things that streams do until none does anything any more; -1: never.
    bool hasProducts = true; ///< As if cuBLASLt was there.
    bool hasCompiler = false; ///< As if NVRTC was there: sources are compiled by the host's compiler.
    std::string compilerNumber = "13.0";
    CudaStatus compileFails = 0; ///< What every compilation,
    CudaStatus loadFails = 0; ///< and every loading of a kernel, fails with.
    bool hasEpilogues = true; ///< Of products.
    std::int64_t failAfter = -1; ///< Calls until everything fails with `failure`; -1: never.
    CudaStatus failure = 719;
    bool keepsCalls = false; ///< In `calls`.
    /// How long kernels ("Move"), products, copies and fills ("copy") take, in microseconds on the clock of
    /// events, beside what it shows for each thing that a stream does or waits with; empty: no longer.
    std::function<std::int64_t(const std::string &)> takes{};
    CudaStatus captureFails = 0; ///< What the end of every capture fails with.
    int captured = 0; ///< Graphs that were made,
    int replayed = 0; ///< and launched.
    int compiled = 0; ///< Sources.
    std::set<std::string> sources{}; ///< Those.

    /// "launch Move s2", "record e7 s1", ...: in the order of the calls.
    std::vector<std::string> calls{};

    /// What is allocated: blocks, streams, events, products. Nothing is, once all is over.
    std::size_t live() const;

    /// The capture that `stream` is part of, counted from 1; 0 for none.
    int captureOf(CudaStream stream);
    /// Something a stream does; false as long as it cannot be done yet.
    void put(CudaStream stream, std::function<bool()> work);
    /// Does some of what may be done. @return false if nothing may
    bool advance(int most);

    CudaStatus driverVersion(std::int32_t &version) override;
    CudaStatus runtimeVersion(std::int32_t &version) override;
    CudaStatus deviceCount(std::int32_t &count) override;
    CudaStatus deviceInfo(std::int32_t device, CudaDeviceInfo &info) override;
    CudaStatus setDevice(std::int32_t device) override;
    std::string errorText(CudaStatus status) override;
    std::string architectures() override { return "75 80 90 120+"; }
    CudaStatus codeArchitecture(std::int32_t &architecture) override;
    CudaStatus allocate(void **memory, std::size_t bytes) override;
    CudaStatus release(void *memory) override;
    CudaStatus allocateHost(void **memory, std::size_t bytes) override;
    CudaStatus releaseHost(void *memory) override;
    CudaStatus createStream(CudaStream *stream, bool urgent) override;
    CudaStatus destroyStream(CudaStream stream) override;
    CudaStatus createEvent(CudaEvent *event) override;
    CudaStatus destroyEvent(CudaEvent event) override;
    CudaStatus record(CudaEvent event, CudaStream stream) override;
    CudaStatus wait(CudaStream stream, CudaEvent event) override;
    CudaStatus query(CudaEvent event) override;
    CudaStatus milliseconds(float &passed, CudaEvent from, CudaEvent to) override;
    CudaStatus recordTime(CudaEvent event, CudaStream stream) override;
    CudaStatus beginCapture(CudaStream stream) override;
    CudaStatus endCapture(CudaStream stream, CudaGraph *graph) override;
    CudaStatus launchGraph(CudaGraph graph, CudaStream stream) override;
    CudaStatus destroyGraph(CudaGraph graph) override;
    CudaStatus copy(void *to, const void *from, std::size_t bytes, CudaStream stream) override;
    CudaStatus fill(void *to, std::uint8_t value, std::size_t bytes, CudaStream stream) override;
    CudaStatus hostFunction(CudaStream stream, void (*function)(void *), void *data) override;
    CudaStatus launch(
        DeviceKernel kernel, const void *arguments, std::int64_t items, CudaStream stream) override;
    std::string whyNoProducts() override { return hasProducts ? "" : "cuBLASLt was not found"; }
    CudaStatus planProduct(const ProductShape &shape, std::size_t &workspace, CudaProduct *product) override;
    CudaStatus multiply(CudaProduct product, const void *a, const void *b, const void *bias, void *c,
        void *aux, void *workspace, CudaStream stream) override;
    void forgetProduct(CudaProduct product) override;
    std::string whyNoCompiler() override { return hasCompiler ? "" : "NVRTC was not found"; }
    std::string compilerVersion() override { return compilerNumber; }
    CudaStatus compile(const std::string &source,
        const std::vector<std::pair<std::string, std::string>> &headers, std::int32_t architecture,
        std::string &code, std::string &log) override;
    CudaStatus loadKernel(const std::string &code, const char *name, CudaKernel *kernel) override;
    CudaStatus unloadKernel(CudaKernel kernel) override;
    CudaStatus launchCompiled(CudaKernel kernel, const std::vector<std::uint64_t> &words, std::int64_t items,
        CudaStream stream) override;

private:
    struct Event {
        std::int64_t recorded = 0; ///< How often it was put into a stream,
        std::int64_t happened = 0; ///< and how often it has happened.
        std::int64_t time = 0;
        std::string name{};
        int capture = 0; ///< The one that it was last recorded in; 0: none.
        std::size_t token = 0; ///< Of that capture.
    };
    struct Stream {
        std::deque<std::function<bool()>> work{};
        std::string name{};
    };
    /// A graph that runs: what each captured stream has left, and which captured events have happened.
    struct GraphRun {
        std::vector<std::shared_ptr<Stream>> lanes{};
        std::set<std::size_t> happened{};
    };
    struct Graph {
        std::vector<std::vector<std::function<bool(GraphRun &)>>> lanes{};
    };
    /// A capture: its streams, each with how much of each other stream it comes after.
    struct Capture {
        int number = 0;
        std::map<CudaStream, std::size_t> lanes{};
        std::vector<std::map<std::size_t, std::size_t>> after{}; ///< By lane.
        std::vector<std::map<std::size_t, std::size_t>> tokens{}; ///< `after` of what was recorded.
        Graph graph{};
        CudaStatus broken = 0;
    };

    /// The lane of a stream that is captured; null for others.
    std::vector<std::function<bool(GraphRun &)>> *laneOf(CudaStream stream);

    /// Counts a call. @return what it fails with
    CudaStatus called(const std::string &what);
    void pass(const std::string &kernel);
    bool advanceLocked(int most);
    CudaStatus take(void **memory, std::size_t bytes);
    CudaStatus giveBack(void *memory);

    mutable std::recursive_mutex m_mutex{};
    std::mt19937 m_random;
    std::map<void *, std::unique_ptr<std::byte[]>> m_blocks{};
    std::map<void *, std::int64_t> m_sizes{};
    std::map<CudaStream, std::unique_ptr<Stream>> m_streams{};
    std::map<CudaEvent, std::shared_ptr<Event>> m_events{};
    std::set<CudaProduct> m_products{};
    std::multiset<CudaKernel> m_kernels{};
    std::unique_ptr<Capture> m_capture{};
    std::set<CudaGraph> m_graphs{};
    std::vector<std::shared_ptr<GraphRun>> m_runs{}; ///< Of graphs, until all is done.
    int m_captures = 0;
    std::int64_t m_clock = 0; ///< In microseconds.
    std::int64_t m_called = 0;
    std::int64_t m_advanced = 0;
    int m_names = 0;
};

} // namespace planloom
