#include "tests/engine/cuda/fake_cuda.h"

#include "tests/engine/cuda/host_compiler.h"

#include <algorithm>
#include <barrier>
#include <cstring>
#include <limits>
#include <thread>

namespace planloom {

namespace {

/// The host build of the kernels: one item after the other.
template<typename Kernel> void runElements(const Kernel &kernel, std::int64_t items)
{
    for (std::int64_t i = 0; i < items; ++i)
        kernel(i);
}

/// A team of threads that wait for each other, as a block of the device does.
class ThreadTeam
{
public:
    struct Shared {
        explicit Shared(int threads)
            : barrier(threads)
            , parts(static_cast<std::size_t>(threads))
        {
        }
        std::barrier<> barrier;
        std::vector<double> parts;
        std::vector<float> floats = std::vector<float>(
            static_cast<std::size_t>(kTeamFloats), std::numeric_limits<float>::quiet_NaN());
    };
    ThreadTeam(Shared &shared, std::int64_t index)
        : m_shared(shared)
        , m_index(index)
    {
    }
    std::int64_t index() const { return m_index; }
    std::int64_t size() const { return static_cast<std::int64_t>(m_shared.parts.size()); }
    void meet() const { m_shared.barrier.arrive_and_wait(); }
    float *shared() const { return m_shared.floats.data(); }
    double sum(double own) const
    {
        double all = 0;
        for (const double part : partsWith(own))
            all += part;
        return all;
    }
    float largest(float own) const
    {
        const std::vector<double> parts = partsWith(static_cast<double>(own));
        return static_cast<float>(*std::max_element(parts.begin(), parts.end()));
    }

private:
    std::vector<double> partsWith(double own) const
    {
        m_shared.parts[static_cast<std::size_t>(m_index)] = own;
        meet();
        std::vector<double> all = m_shared.parts;
        meet();
        return all;
    }
    Shared &m_shared;
    std::int64_t m_index;
};

template<typename Kernel> void runTeams(const Kernel &kernel, std::int64_t items, int threads)
{
    if (threads > 1) {
        ThreadTeam::Shared shared(threads);
        std::vector<std::thread> team;
        for (int t = 0; t < threads; ++t)
            team.emplace_back([&, t] {
                for (std::int64_t i = 0; i < items; ++i)
                    kernel(ThreadTeam(shared, t), i);
            });
        for (std::thread &each : team)
            each.join();
        return;
    }
    // Floats that nobody has written are no numbers: what a kernel relies on without having made it shows.
    std::vector<float> shared(static_cast<std::size_t>(kTeamFloats), std::numeric_limits<float>::quiet_NaN());
    const LoneTeam team(shared.data());
    for (std::int64_t i = 0; i < items; ++i)
        kernel(team, i);
}

/// A product whose sums go through its epilogue before they are rounded.
void runWithEpilogue(PlainProductKernel kernel, const ProductShape &p, const Elements &aux)
{
    const Elements c = kernel.c;
    std::vector<float> sums(static_cast<std::size_t>(p.m * p.n));
    kernel.c = {sums.data(), DataType::Float32};
    kernel.cRow = p.n;
    runElements(kernel, p.m * p.n);
    const unary::Parameters<float> none{};
    for (std::int64_t i = 0; i < p.m * p.n; ++i) {
        const std::int64_t place = i / p.n * p.cRow + i % p.n;
        float value = sums[static_cast<std::size_t>(i)];
        if (p.epilogue == Epilogue::GeluKeeping)
            store(aux, place, value);
        if (p.epilogue == Epilogue::Relu)
            value = unary::Relu::value(value, none);
        else if (p.epilogue == Epilogue::Gelu || p.epilogue == Epilogue::GeluKeeping)
            value = unary::GeluTanh::value(value, none);
        else if (p.epilogue == Epilogue::GeluSlope)
            value *= unary::GeluTanh::slope(at(aux, place), none);
        store(c, place, value);
    }
    const bool ofA = p.epilogue == Epilogue::SumsOfA;
    if (!ofA && p.epilogue != Epilogue::SumsOfB)
        return;
    for (std::int64_t i = 0; i < (ofA ? p.m : p.n); ++i) {
        float sum = 0;
        for (std::int64_t k = 0; k < p.k; ++k)
            sum += ofA ? at(kernel.a, i * p.aRow + k * p.aColumn) : at(kernel.b, k * p.bRow + i * p.bColumn);
        store(aux, i, sum);
    }
}

/// A block of warps: a thread each. What a warp has asked for to be copied is there when it has waited
/// for it, not before.
class WarpBlock
{
public:
    struct Shared {
        explicit Shared(std::size_t bytes)
            : elements(bytes / sizeof(std::uint16_t), 0x7FFF) // no number in any type
        {
        }
        std::barrier<> barrier{kMatrixWarps};
        std::vector<std::uint16_t> elements;
    };
    WarpBlock(Shared &shared, int warp)
        : m_shared(shared)
        , m_warp(warp)
    {
    }
    int warp() const { return m_warp; }
    std::uint16_t *shared() const { return m_shared.elements.data(); }
    void meet() const { m_shared.barrier.arrive_and_wait(); }
    void copy(std::uint16_t *to, const std::uint16_t *from, bool isThere) const
    {
        m_copies.push_back({to, isThere ? from : nullptr});
    }
    void arrive() const
    {
        for (const auto &[to, from] : m_copies)
            for (int i = 0; i < 8; ++i)
                to[i] = from == nullptr ? std::uint16_t{0} : from[i];
        m_copies.clear();
    }

private:
    Shared &m_shared;
    int m_warp;
    mutable std::vector<std::pair<std::uint16_t *, const std::uint16_t *>> m_copies{};
};

template<typename Kernel> void runMatrices(const Kernel &kernel, std::int64_t items)
{
    WarpBlock::Shared shared(matrixSharedBytes(kernel));
    std::vector<std::thread> warps;
    for (int warp = 0; warp < kMatrixWarps; ++warp)
        warps.emplace_back([&, warp] {
            const WarpBlock block(shared, warp);
            (void)withMatrixWidth(kernel, [&]<typename Operands, int kWidth>() {
                for (std::int64_t i = 0; i < items; ++i)
                    kernel.template run<Operands, kWidth>(block, i);
            });
        });
    for (std::thread &each : warps)
        each.join();
}

} // namespace

std::size_t FakeCuda::live() const
{
    const std::lock_guard lock{m_mutex};
    return m_blocks.size() + m_streams.size() + m_events.size() + m_products.size() + m_graphs.size()
        + m_kernels.size();
}

CudaStatus FakeCuda::called(const std::string &what)
{
    ++m_called;
    if (keepsCalls)
        calls.push_back(what);
    return failAfter >= 0 && m_called > failAfter ? failure : kCudaSuccess;
}

void FakeCuda::pass(const std::string &kernel)
{
    if (takes)
        m_clock += takes(kernel);
}

void FakeCuda::put(CudaStream stream, std::function<bool()> work)
{
    const std::lock_guard lock{m_mutex};
    if (auto *const lane = laneOf(stream)) {
        lane->push_back([work = std::move(work)](GraphRun &) { return work(); });
        ++m_capture->after[m_capture->lanes.at(stream)][m_capture->lanes.at(stream)];
    } else {
        m_streams.at(stream)->work.push_back(std::move(work));
    }
}

std::vector<std::function<bool(FakeCuda::GraphRun &)>> *FakeCuda::laneOf(CudaStream stream)
{
    if (!m_capture || m_capture->lanes.count(stream) == 0)
        return nullptr;
    return &m_capture->graph.lanes[m_capture->lanes.at(stream)];
}

int FakeCuda::captureOf(CudaStream stream)
{
    const std::lock_guard lock{m_mutex};
    return laneOf(stream) != nullptr ? m_capture->number : 0;
}

bool FakeCuda::advance(int most)
{
    const std::lock_guard lock{m_mutex};
    return advanceLocked(most);
}

bool FakeCuda::advanceLocked(int most)
{
    bool any = false;
    for (int i = 0; i < most; ++i) {
        if (stuckAfter >= 0 && m_advanced >= stuckAfter)
            break;
        ++m_advanced;
        std::vector<Stream *> order;
        for (const auto &[handle, stream] : m_streams)
            if (!stream->work.empty())
                order.push_back(stream.get());
        for (const auto &run : m_runs)
            for (const auto &lane : run->lanes)
                if (!lane->work.empty())
                    order.push_back(lane.get());
        std::shuffle(order.begin(), order.end(), m_random);
        const bool done = std::any_of(order.begin(), order.end(), [this](Stream *stream) {
            ++m_clock;
            if (!stream->work.front()())
                return false;
            stream->work.pop_front();
            return true;
        });
        if (!done)
            break;
        any = true;
    }
    return any;
}

CudaStatus FakeCuda::driverVersion(std::int32_t &version)
{
    version = driver;
    return kCudaSuccess;
}
CudaStatus FakeCuda::runtimeVersion(std::int32_t &version)
{
    version = 13000;
    return kCudaSuccess;
}
CudaStatus FakeCuda::deviceCount(std::int32_t &count)
{
    if (driver < 13000)
        return 35;
    count = devices;
    return devices == 0 ? 100 : kCudaSuccess;
}
CudaStatus FakeCuda::deviceInfo(std::int32_t device, CudaDeviceInfo &info)
{
    if (device < 0 || device >= devices)
        return 101;
    std::strcpy(info.name, "Fake GPU");
    info.major = 9;
    info.totalBytes = info.freeBytes = freeBytes;
    return kCudaSuccess;
}
CudaStatus FakeCuda::codeArchitecture(std::int32_t &architecture)
{
    const std::lock_guard lock{m_mutex};
    architecture = code;
    return called("code architecture");
}
CudaStatus FakeCuda::setDevice(std::int32_t device)
{
    return device >= 0 && device < devices ? kCudaSuccess : 101;
}
std::string FakeCuda::errorText(CudaStatus status)
{
    return "error " + std::to_string(status) + " of the fake";
}

CudaStatus FakeCuda::take(void **memory, std::size_t bytes)
{
    const std::lock_guard lock{m_mutex};
    if (const CudaStatus status = called("allocate " + std::to_string(bytes)); status != kCudaSuccess)
        return status;
    if (static_cast<std::int64_t>(bytes) > freeBytes)
        return kCudaOutOfMemory;
    auto block = std::make_unique<std::byte[]>(bytes + 256);
    auto address = reinterpret_cast<std::uintptr_t>(block.get());
    *memory = reinterpret_cast<void *>((address + 255) / 256 * 256);
    std::memset(*memory, 0xFF, bytes);
    freeBytes -= static_cast<std::int64_t>(bytes);
    m_sizes[*memory] = static_cast<std::int64_t>(bytes);
    m_blocks[*memory] = std::move(block);
    return kCudaSuccess;
}
CudaStatus FakeCuda::giveBack(void *memory)
{
    const std::lock_guard lock{m_mutex};
    freeBytes += m_sizes.at(memory);
    m_sizes.erase(memory);
    m_blocks.erase(memory);
    return kCudaSuccess;
}
CudaStatus FakeCuda::allocate(void **memory, std::size_t bytes)
{
    return take(memory, bytes);
}
CudaStatus FakeCuda::release(void *memory)
{
    return giveBack(memory);
}
CudaStatus FakeCuda::allocateHost(void **memory, std::size_t bytes)
{
    return take(memory, bytes);
}
CudaStatus FakeCuda::releaseHost(void *memory)
{
    return giveBack(memory);
}

CudaStatus FakeCuda::createStream(CudaStream *stream, bool)
{
    const std::lock_guard lock{m_mutex};
    if (const CudaStatus status = called("stream"); status != kCudaSuccess)
        return status;
    auto made = std::make_unique<Stream>();
    made->name = "s" + std::to_string(m_streams.size());
    *stream = made.get();
    m_streams[*stream] = std::move(made);
    return kCudaSuccess;
}
CudaStatus FakeCuda::destroyStream(CudaStream stream)
{
    const std::lock_guard lock{m_mutex};
    m_streams.erase(stream);
    return kCudaSuccess;
}
CudaStatus FakeCuda::createEvent(CudaEvent *event)
{
    const std::lock_guard lock{m_mutex};
    if (const CudaStatus status = called("event"); status != kCudaSuccess)
        return status;
    auto made = std::make_shared<Event>();
    made->name = "e" + std::to_string(m_names++);
    *event = made.get();
    m_events[*event] = std::move(made);
    return kCudaSuccess;
}
CudaStatus FakeCuda::destroyEvent(CudaEvent event)
{
    const std::lock_guard lock{m_mutex};
    m_events.erase(event);
    return kCudaSuccess;
}
CudaStatus FakeCuda::record(CudaEvent event, CudaStream stream)
{
    const std::lock_guard lock{m_mutex};
    const auto recorded = m_events.at(event);
    if (auto *const lane = laneOf(stream)) {
        const std::size_t own = m_capture->lanes.at(stream);
        recorded->capture = m_capture->number;
        recorded->token = m_capture->tokens.size();
        lane->push_back([token = recorded->token](GraphRun &run) {
            run.happened.insert(token);
            return true;
        });
        ++m_capture->after[own][own];
        m_capture->tokens.push_back(m_capture->after[own]);
        return called("record " + recorded->name + " " + m_streams.at(stream)->name);
    }
    recorded->capture = 0;
    const std::int64_t number = ++recorded->recorded;
    put(stream, [this, recorded, number] {
        recorded->happened = number;
        recorded->time = ++m_clock;
        return true;
    });
    return called("record " + recorded->name + " " + m_streams.at(stream)->name);
}
CudaStatus FakeCuda::wait(CudaStream stream, CudaEvent event)
{
    const std::lock_guard lock{m_mutex};
    const auto awaited = m_events.at(event);
    const std::string call = "wait " + m_streams.at(stream)->name + " " + awaited->name;
    if (m_capture && awaited->capture == m_capture->number) {
        const auto [found, isNew] = m_capture->lanes.emplace(stream, m_capture->lanes.size());
        if (isNew) { // it becomes part of the capture
            m_capture->graph.lanes.emplace_back();
            m_capture->after.emplace_back();
        }
        for (const auto &[lane, count] : m_capture->tokens[awaited->token]) {
            std::size_t &known = m_capture->after[found->second][lane];
            known = std::max(known, count);
        }
        m_capture->graph.lanes[found->second].push_back(
            [token = awaited->token](GraphRun &run) { return run.happened.count(token) != 0; });
        ++m_capture->after[found->second][found->second];
        return called(call);
    }
    if (laneOf(stream) != nullptr || awaited->capture != 0) {
        if (m_capture)
            m_capture->broken = 901;
        return 905; // of another capture, or of none
    }
    const std::int64_t number =
        awaited->recorded; // as it is now: one that was not recorded is not waited for
    put(stream, [awaited, number] { return awaited->happened >= number; });
    return called(call);
}
CudaStatus FakeCuda::recordTime(CudaEvent event, CudaStream stream)
{
    const std::lock_guard lock{m_mutex};
    if (laneOf(stream) == nullptr)
        return record(event, stream);
    const auto recorded = m_events.at(event);
    recorded->capture = 0;
    put(stream, [this, recorded] {
        recorded->happened = ++recorded->recorded;
        recorded->time = ++m_clock;
        return true;
    });
    return called("time " + recorded->name + " " + m_streams.at(stream)->name);
}
CudaStatus FakeCuda::beginCapture(CudaStream stream)
{
    const std::lock_guard lock{m_mutex};
    if (const CudaStatus status = called("begin capture"); status != kCudaSuccess)
        return status;
    if (m_capture)
        return 900;
    m_capture = std::make_unique<Capture>();
    m_capture->number = ++m_captures;
    m_capture->lanes[stream] = 0;
    m_capture->graph.lanes.emplace_back();
    m_capture->after.emplace_back();
    return kCudaSuccess;
}
CudaStatus FakeCuda::endCapture(CudaStream stream, CudaGraph *graph)
{
    const std::lock_guard lock{m_mutex};
    const auto ended = std::move(m_capture);
    if (const CudaStatus status = called("end capture"); status != kCudaSuccess)
        return status;
    if (!ended || ended->lanes.at(stream) != 0)
        return 903;
    if (captureFails != 0 || ended->broken != 0)
        return captureFails != 0 ? captureFails : ended->broken;
    for (std::size_t lane = 0; lane < ended->after.size(); ++lane)
        if (ended->after[0][lane] < ended->after[lane][lane])
            return 904; // not joined to where it began
    ++captured;
    *graph = new Graph(std::move(ended->graph));
    m_graphs.insert(*graph);
    return kCudaSuccess;
}
CudaStatus FakeCuda::launchGraph(CudaGraph graph, CudaStream stream)
{
    const std::lock_guard lock{m_mutex};
    const auto run = std::make_shared<GraphRun>();
    for (std::size_t l = 0; l < static_cast<const Graph *>(graph)->lanes.size(); ++l)
        run->lanes.push_back(std::make_shared<Stream>());
    put(stream, [this, run, lanes = static_cast<const Graph *>(graph)->lanes, begun = false]() mutable {
        if (!begun) {
            for (std::size_t l = 0; l < lanes.size(); ++l)
                for (const auto &work : lanes[l])
                    run->lanes[l]->work.push_back([work, each = run.get()] { return work(*each); });
            m_runs.push_back(run);
            begun = true;
        }
        const auto isDone = [](const auto &lane) { return lane->work.empty(); };
        if (!std::all_of(run->lanes.begin(), run->lanes.end(), isDone))
            return false;
        m_runs.erase(std::find(m_runs.begin(), m_runs.end(), run));
        return true;
    });
    ++replayed;
    return called("launch graph");
}
CudaStatus FakeCuda::destroyGraph(CudaGraph graph)
{
    const std::lock_guard lock{m_mutex};
    m_graphs.erase(graph);
    delete static_cast<Graph *>(graph);
    return kCudaSuccess;
}
CudaStatus FakeCuda::query(CudaEvent event)
{
    const std::lock_guard lock{m_mutex};
    if (failAfter >= 0 && m_called > failAfter)
        return failure;
    if (m_capture && m_events.at(event)->capture == m_capture->number)
        return 907; // it only says what comes after what
    advanceLocked(1 + static_cast<int>(m_random() % 40));
    const Event &asked = *m_events.at(event);
    return asked.happened >= asked.recorded ? kCudaSuccess : kCudaNotReady;
}
CudaStatus FakeCuda::milliseconds(float &passed, CudaEvent from, CudaEvent to)
{
    const std::lock_guard lock{m_mutex};
    passed = static_cast<float>(m_events.at(to)->time - m_events.at(from)->time) * 1e-3F;
    return kCudaSuccess;
}

CudaStatus FakeCuda::copy(void *to, const void *from, std::size_t bytes, CudaStream stream)
{
    const std::lock_guard lock{m_mutex};
    put(stream, [=, this] {
        pass("copy");
        std::memmove(to, from, bytes);
        return true;
    });
    return called("copy " + std::to_string(bytes) + " " + m_streams.at(stream)->name);
}
CudaStatus FakeCuda::fill(void *to, std::uint8_t value, std::size_t bytes, CudaStream stream)
{
    const std::lock_guard lock{m_mutex};
    put(stream, [=, this] {
        pass("fill");
        std::memset(to, value, bytes);
        return true;
    });
    return called("fill " + std::to_string(bytes) + " " + m_streams.at(stream)->name);
}
CudaStatus FakeCuda::hostFunction(CudaStream stream, void (*function)(void *), void *data)
{
    const std::lock_guard lock{m_mutex};
    put(stream, [=] {
        function(data);
        return true;
    });
    return called("host " + m_streams.at(stream)->name);
}

CudaStatus FakeCuda::launch(DeviceKernel kernel, const void *arguments, std::int64_t items, CudaStream stream)
{
    const std::lock_guard lock{m_mutex};
    switch (kernel) {
#define PLANLOOM_FAKE_ELEMENTS(Name)                                                                         \
    case DeviceKernel::Name:                                                                                 \
        put(stream, [this, work = *static_cast<const Name##Kernel *>(arguments), items] {                    \
            pass(#Name);                                                                                     \
            runElements(work, items);                                                                        \
            return true;                                                                                     \
        });                                                                                                  \
        return called("launch " #Name " " + m_streams.at(stream)->name);
#define PLANLOOM_FAKE_TEAMS(Name)                                                                            \
    case DeviceKernel::Name:                                                                                 \
        put(stream, [this, work = *static_cast<const Name##Kernel *>(arguments), items] {                    \
            pass(#Name);                                                                                     \
            runTeams(work, items, teamThreads);                                                              \
            return true;                                                                                     \
        });                                                                                                  \
        return called("launch " #Name " " + m_streams.at(stream)->name);
        PLANLOOM_ELEMENT_KERNELS(PLANLOOM_FAKE_ELEMENTS)
        PLANLOOM_CHAIN_KERNELS(PLANLOOM_FAKE_ELEMENTS)
        PLANLOOM_TEAM_KERNELS(PLANLOOM_FAKE_TEAMS)
#define PLANLOOM_FAKE_MATRICES(Name)                                                                         \
    case DeviceKernel::Name:                                                                                 \
        put(stream, [this, work = *static_cast<const Name##Kernel *>(arguments), items] {                    \
            pass(#Name);                                                                                     \
            runMatrices(work, items);                                                                        \
            return true;                                                                                     \
        });                                                                                                  \
        return called("launch " #Name " " + m_streams.at(stream)->name);
        PLANLOOM_MATRIX_KERNELS(PLANLOOM_FAKE_MATRICES)
    }
    return 98; // invalid device function
}

CudaStatus FakeCuda::planProduct(const ProductShape &shape, std::size_t &workspace, CudaProduct *product)
{
    const std::lock_guard lock{m_mutex};
    if (!hasProducts)
        return 1;
    if (shape.epilogue != Epilogue::None && !hasEpilogues)
        return 15; // not supported
    if (const CudaStatus status = called("plan product"); status != kCudaSuccess)
        return status;
    workspace = 1024;
    auto *const made = new ProductShape(shape);
    *product = made;
    m_products.insert(made);
    return kCudaSuccess;
}
CudaStatus FakeCuda::multiply(CudaProduct product, const void *a, const void *b, const void *bias, void *c,
    void *aux, void *workspace, CudaStream stream)
{
    const std::lock_guard lock{m_mutex};
    const ProductShape &p = *static_cast<const ProductShape *>(product);
    const auto of = [](const void *data, DataType type) { return Elements{const_cast<void *>(data), type}; };
    PlainProductKernel kernel{of(a, p.operands), of(b, p.operands), of(p.bias ? bias : nullptr, p.result),
        of(c, p.result), p.m, p.n, p.k, p.aRow, p.aColumn, p.bRow, p.bColumn, p.cRow, p.aStep, p.bStep,
        p.cStep, p.tensorFloat32 ? DataType::TensorFloat32 : DataType::Float32, p.accumulate};
    if (p.epilogue == Epilogue::None) {
        put(stream, [this, kernel, workspace, items = p.m * p.n * p.repeats] {
            pass("multiply");
            std::memset(workspace, 0x5A, 1024);
            runElements(kernel, items);
            return true;
        });
        return called("multiply " + m_streams.at(stream)->name);
    }
    if (p.repeats != 1 || p.accumulate || aux == c)
        return 7; // invalid
    put(stream, [this, kernel, workspace, p, extra = of(aux, p.result)] {
        pass("multiply");
        std::memset(workspace, 0x5A, 1024);
        runWithEpilogue(kernel, p, extra);
        return true;
    });
    static const std::map<Epilogue, std::string> kNames{{Epilogue::Relu, "relu"}, {Epilogue::Gelu, "gelu"},
        {Epilogue::GeluKeeping, "gelu keeping"}, {Epilogue::GeluSlope, "gelu slope"},
        {Epilogue::SumsOfA, "sums of a"}, {Epilogue::SumsOfB, "sums of b"}};
    return called("multiply " + kNames.at(p.epilogue) + " " + m_streams.at(stream)->name);
}
void FakeCuda::forgetProduct(CudaProduct product)
{
    const std::lock_guard lock{m_mutex};
    m_products.erase(product);
    delete static_cast<ProductShape *>(product);
}

CudaStatus FakeCuda::compile(const std::string &source,
    const std::vector<std::pair<std::string, std::string>> &headers, std::int32_t architecture,
    std::string &code, std::string &log)
{
    const std::lock_guard lock{m_mutex};
    if (compileFails != 0 || architecture != 90) {
        log = "line 1: error\nand more";
        return compileFails != 0 ? compileFails : 5;
    }
    ++compiled;
    sources.insert(source);
    return compileOnHost(source, headers, code, log) ? kCudaSuccess : 6;
}
CudaStatus FakeCuda::loadKernel(const std::string &code, const char *name, CudaKernel *kernel)
{
    const std::lock_guard lock{m_mutex};
    if (const CudaStatus status = called("load kernel"); status != kCudaSuccess)
        return status;
    *kernel = loadFails != 0 ? nullptr : loadOnHost(code, name);
    if (*kernel == nullptr)
        return loadFails != 0 ? loadFails : 200; // an invalid image
    m_kernels.insert(*kernel);
    return kCudaSuccess;
}
CudaStatus FakeCuda::unloadKernel(CudaKernel kernel)
{
    const std::lock_guard lock{m_mutex};
    m_kernels.erase(m_kernels.find(kernel));
    return kCudaSuccess;
}
CudaStatus FakeCuda::launchCompiled(
    CudaKernel kernel, const std::vector<std::uint64_t> &words, std::int64_t items, CudaStream stream)
{
    const std::lock_guard lock{m_mutex};
    put(stream, [run = reinterpret_cast<HostKernel>(kernel), words, items] {
        run(words.data(), items);
        return true;
    });
    return called("launch chain " + m_streams.at(stream)->name);
}

} // namespace planloom
