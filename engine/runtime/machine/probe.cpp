#include "engine/runtime/machine/probe.h"
#include "engine/base/words.h"

#include "engine/base/work_pool.h"
#include "engine/runtime/machine/free_memory.h"
#include "engine/runtime/machine/nvml.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <thread>
#include <utility>

#include <dlfcn.h>
#include <nlohmann/json.hpp>

namespace planloom {

namespace {

using Json = nlohmann::json;

constexpr std::int32_t kLeastCapability = 75; ///< CUDA 13 compiles for nothing older.
constexpr int kLeastCuda = 12000; ///< As NVML counts: 12.0.

std::string valueIn(const std::string &path, const std::string &name)
{
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
        const std::size_t colon = line.find(':');
        if (colon == std::string::npos || !line.starts_with(name))
            continue;
        const std::size_t begin = line.find_first_not_of(" \t", colon + 1);
        return begin == std::string::npos ? std::string{} : line.substr(begin);
    }
    return {};
}

std::string vectorUnits()
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    std::string units;
    const auto add = [&units](bool has, const char *name) {
        if (has)
            units += (units.empty() ? "" : ", ") + std::string{name};
    };
    add(__builtin_cpu_supports("avx512f"), "AVX-512");
    add(__builtin_cpu_supports("avx512bf16"), "AVX-512 BF16");
    add(__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"), "AVX2");
    return units;
#else
    return {};
#endif
}

ProbedCpu probeCpu(const std::string &root)
{
    ProbedCpu cpu;
    cpu.name = valueIn(root + "/proc/cpuinfo", "model name");
    cpu.cores = allowedCores();
    cpu.vectorUnits = vectorUnits();
    const std::string total = valueIn(root + "/proc/meminfo", "MemTotal");
    cpu.memory = {std::strtoll(total.c_str(), nullptr, 10) * 1024};
    cpu.freeMemory = freeMemory(root);
    return cpu;
}

/// "13.0" of 13000.
std::string dotted(int version)
{
    return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

std::vector<ProbedLinks> linksOf(const nvml::Functions &nvml, nvml::Device device)
{
    std::map<std::string, ProbedLinks> byEnd;
    for (unsigned link = 0; nvml.linkState != nullptr && link < nvml::kMostLinks; ++link) {
        int active = 0;
        nvml::PciInfo end;
        if (nvml.linkState(device, link, &active) != nvml::kSuccess || active == 0
            || nvml.linkRemote == nullptr || nvml.linkRemote(device, link, &end) != nvml::kSuccess)
            continue;
        end.busId[sizeof(end.busId) - 1] = '\0';
        ProbedLinks &links = byEnd[end.busId];
        links.to = end.busId;
        ++links.count;
        unsigned version = 0;
        if (nvml.linkVersion != nullptr && nvml.linkVersion(device, link, &version) == nvml::kSuccess)
            links.version = static_cast<std::int32_t>(version);
    }
    std::vector<ProbedLinks> all;
    for (auto &[end, links] : byEnd)
        all.push_back(std::move(links));
    return all;
}

std::string whyNot(const nvml::Functions &nvml, nvml::Device device, const ProbedGpu &gpu)
{
    if (gpu.computeCapability > 0 && gpu.computeCapability < kLeastCapability)
        return "its compute capability is " + std::to_string(gpu.computeCapability / 10) + "."
            + std::to_string(gpu.computeCapability % 10) + "; kernels need 7.5 (Turing) or newer";
    int mode = 0;
    if (nvml.computeMode != nullptr && nvml.computeMode(device, &mode) == nvml::kSuccess
        && mode == nvml::kProhibited)
        return "its compute mode forbids programs to use it: nvidia-smi -c DEFAULT";
    return {};
}

ProbedGpu probeGpu(const nvml::Library &library, std::int32_t index)
{
    const nvml::Functions &nvml = library.functions();
    ProbedGpu gpu;
    gpu.index = index;
    nvml::Device device = nullptr;
    if (const int error = nvml.deviceByIndex(static_cast<unsigned>(index), &device);
        error != nvml::kSuccess) {
        gpu.name = "GPU " + std::to_string(index);
        gpu.problem = "the driver does not hand it out: " + library.describe(error);
        return gpu;
    }
    std::array<char, 97> name{};
    if (nvml.name(device, name.data(), name.size() - 1) == nvml::kSuccess)
        gpu.name = name.data();
    int major = 0;
    int minor = 0;
    if (nvml.computeCapability != nullptr && nvml.computeCapability(device, &major, &minor) == nvml::kSuccess)
        gpu.computeCapability = 10 * major + minor;
    nvml::PciInfo pci;
    if (nvml.pciInfo != nullptr && nvml.pciInfo(device, &pci) == nvml::kSuccess) {
        pci.busId[sizeof(pci.busId) - 1] = '\0';
        gpu.busId = pci.busId;
    }
    unsigned number = 0;
    if (nvml.pcieGeneration != nullptr && nvml.pcieGeneration(device, &number) == nvml::kSuccess)
        gpu.pcieGeneration = static_cast<std::int32_t>(number);
    if (nvml.pcieWidth != nullptr && nvml.pcieWidth(device, &number) == nvml::kSuccess)
        gpu.pcieWidth = static_cast<std::int32_t>(number);
    if (nvml.temperature != nullptr
        && nvml.temperature(device, nvml::kTemperatureOfGpu, &number) == nvml::kSuccess)
        gpu.temperature = static_cast<std::int32_t>(number);
    gpu.links = linksOf(nvml, device);
    gpu.problem = whyNot(nvml, device, gpu);
    nvml::Memory memory;
    if (const int error = nvml.memory(device, &memory); error == nvml::kSuccess) {
        gpu.memory = {static_cast<std::int64_t>(memory.total)};
        gpu.freeMemory = {static_cast<std::int64_t>(memory.free)};
    } else if (gpu.problem.empty()) { // one that has fallen off the bus says so here
        gpu.problem = "its memory cannot be read: " + library.describe(error);
    }
    return gpu;
}

/// What the driver says of GPUs; the rest of a probe is left alone.
Probe probeGpus(const std::string &nvmlName)
{
    Probe probe;
    const auto opened = nvml::Library::open(nvmlName);
    if (!opened) {
        probe.gpuProblem = opened.error().message;
        return probe;
    }
    const nvml::Library &library = **opened;
    const nvml::Functions &nvml = library.functions();
    if (const int error = nvml.init(); error != nvml::kSuccess) {
        probe.gpuProblem = "NVIDIA's driver does not work: " + library.describe(error);
        return probe;
    }
    std::array<char, 81> text{};
    if (nvml.driverVersion != nullptr && nvml.driverVersion(text.data(), text.size() - 1) == nvml::kSuccess)
        probe.driver = text.data();
    int cuda = 0;
    if (nvml.cudaVersion != nullptr && nvml.cudaVersion(&cuda) == nvml::kSuccess)
        probe.cuda = dotted(cuda);
    unsigned count = 0;
    if (const int error = nvml.deviceCount(&count); error != nvml::kSuccess)
        probe.gpuProblem = "NVIDIA's driver counts no GPUs: " + library.describe(error);
    else if (count == 0)
        probe.gpuProblem = "NVIDIA's driver is there, but sees no GPU";
    for (unsigned index = 0; index < count; ++index) {
        ProbedGpu gpu = probeGpu(library, static_cast<std::int32_t>(index));
        if (gpu.problem.empty() && cuda > 0 && cuda < kLeastCuda)
            gpu.problem = "the driver " + probe.driver + " knows CUDA " + probe.cuda + " at most; CUDA "
                + dotted(kLeastCuda) + " is needed: install a newer driver";
        probe.gpus.push_back(std::move(gpu));
    }
    nvml.shutdown();
    return probe;
}

/// Opens the first of `names` that can be, and asks for its version.
ProbedLibrary probeLibrary(const char *name, const std::vector<std::string> &names, const char *function,
    const std::function<std::string(void *)> &versionOf)
{
    ProbedLibrary library;
    library.name = name;
    void *const handle = openVendorLibrary(names, library.problem); // some do not bear to be closed
    if (handle == nullptr)
        return library;
    void *const asked = ::dlsym(handle, function);
    library.version = asked == nullptr ? std::string{} : versionOf(asked);
    if (library.version.empty())
        library.problem = std::string{"it does not say its version ("} + function + ")";
    return library;
}

std::vector<ProbedLibrary> probeLibraries(const ProbeOptions &options)
{
    const auto dots = [](int major, int minor, int patch) {
        return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(patch);
    };
    return {probeLibrary("NCCL", options.nccl, "ncclGetVersion",
                [&](void *function) {
                    int version = 0; // 22809 is 2.28.9; before 2.9, 2708 was 2.7.8
                    if (reinterpret_cast<int (*)(int *)>(function)(&version) != 0)
                        return std::string{};
                    return version >= 10000 ? dots(version / 10000, version / 100 % 100, version % 100)
                                            : dots(version / 1000, version / 100 % 10, version % 100);
                }),
        probeLibrary("cuBLASLt", options.products, "cublasLtGetVersion",
            [&](void *function) { // 130100 is 13.1.0
                const auto version = static_cast<int>(reinterpret_cast<std::size_t (*)()>(function)());
                return dots(version / 10000, version / 100 % 100, version % 100);
            }),
        probeLibrary("NVRTC", options.compilers, "nvrtcVersion", [](void *function) {
            int major = 0;
            int minor = 0;
            if (reinterpret_cast<int (*)(int *, int *)>(function)(&major, &minor) != 0)
                return std::string{};
            return std::to_string(major) + "." + std::to_string(minor);
        })};
}

/// What `work` returns, if it does within `patience`; else its thread is left to itself.
template<typename Work>
auto withPatience(std::chrono::milliseconds patience, Work work) -> std::optional<decltype(work())>
{
    auto promise = std::make_shared<std::promise<decltype(work())>>();
    auto outcome = promise->get_future();
    std::thread([promise, work = std::move(work)] { promise->set_value(work()); }).detach();
    if (outcome.wait_for(patience) != std::future_status::ready)
        return std::nullopt;
    return outcome.get();
}

} // namespace

Probe probeMachine(const ProbeOptions &options)
{
    const auto end = std::chrono::steady_clock::now() + options.patience;
    Probe probe;
    if (auto gpus = withPatience(options.patience, [name = options.nvml] { return probeGpus(name); }))
        probe = *std::move(gpus);
    else
        probe.gpuProblem = "NVIDIA's driver did not answer within " + std::to_string(options.patience.count())
            + " ms: a GPU may have failed, see nvidia-smi";
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    if (auto libraries = withPatience(
            std::max(left, std::chrono::milliseconds{300}), [options] { return probeLibraries(options); }))
        probe.libraries = *std::move(libraries);
    probe.cpu = probeCpu(options.root);
    return probe;
}

Json toJson(const Probe &probe)
{
    Json gpus = Json::array();
    for (const ProbedGpu &gpu : probe.gpus) {
        Json links = Json::array();
        for (const ProbedLinks &each : gpu.links)
            links.push_back({{"to", each.to}, {"count", each.count}, {"version", each.version}});
        gpus.push_back({{"index", gpu.index}, {"name", gpu.name}, {"memory_bytes", gpu.memory.count},
            {"free_bytes", gpu.freeMemory.count}, {"compute_capability", gpu.computeCapability},
            {"bus_id", gpu.busId}, {"pcie_generation", gpu.pcieGeneration}, {"pcie_lanes", gpu.pcieWidth},
            {"nvlinks", std::move(links)},
            {"temperature_celsius", gpu.temperature ? Json(*gpu.temperature) : Json(nullptr)},
            {"usable", gpu.problem.empty()}, {"problem", gpu.problem}});
    }
    Json libraries = Json::array();
    for (const ProbedLibrary &library : probe.libraries)
        libraries.push_back(
            {{"name", library.name}, {"version", library.version}, {"problem", library.problem}});
    const ProbedCpu &cpu = probe.cpu;
    return {{"v", 1},
        {"cpu",
            {{"name", cpu.name}, {"cores", cpu.cores}, {"vector_units", cpu.vectorUnits},
                {"memory_bytes", cpu.memory.count},
                {"free_bytes", cpu.freeMemory ? Json(cpu.freeMemory->count) : Json(nullptr)}}},
        {"driver", probe.driver}, {"cuda", probe.cuda}, {"gpus", std::move(gpus)},
        {"gpu_problem", probe.gpuProblem}, {"libraries", std::move(libraries)}};
}

Result<Probe> probeFromJson(std::string_view text)
{
    try {
        const Json json = Json::parse(text);
        Probe probe;
        const Json &cpu = json.at("cpu");
        probe.cpu.name = cpu.at("name").get<std::string>();
        probe.cpu.cores = cpu.at("cores").get<std::int32_t>();
        probe.cpu.vectorUnits = cpu.at("vector_units").get<std::string>();
        probe.cpu.memory = {cpu.at("memory_bytes").get<std::int64_t>()};
        if (const Json &free = cpu.at("free_bytes"); !free.is_null())
            probe.cpu.freeMemory = Bytes{free.get<std::int64_t>()};
        probe.driver = json.at("driver").get<std::string>();
        probe.cuda = json.at("cuda").get<std::string>();
        probe.gpuProblem = json.at("gpu_problem").get<std::string>();
        for (const Json &from : json.at("gpus")) {
            ProbedGpu &gpu = probe.gpus.emplace_back();
            gpu.index = from.at("index").get<std::int32_t>();
            gpu.name = from.at("name").get<std::string>();
            gpu.memory = {from.at("memory_bytes").get<std::int64_t>()};
            gpu.freeMemory = {from.at("free_bytes").get<std::int64_t>()};
            gpu.computeCapability = from.at("compute_capability").get<std::int32_t>();
            gpu.busId = from.at("bus_id").get<std::string>();
            gpu.pcieGeneration = from.at("pcie_generation").get<std::int32_t>();
            gpu.pcieWidth = from.at("pcie_lanes").get<std::int32_t>();
            for (const Json &links : from.at("nvlinks"))
                gpu.links.push_back({links.at("to").get<std::string>(), links.at("count").get<std::int32_t>(),
                    links.at("version").get<std::int32_t>()});
            if (const Json &degrees = from.at("temperature_celsius"); !degrees.is_null())
                gpu.temperature = degrees.get<std::int32_t>();
            gpu.problem = from.at("problem").get<std::string>();
        }
        for (const Json &library : json.at("libraries"))
            probe.libraries.push_back({library.at("name").get<std::string>(),
                library.at("version").get<std::string>(), library.at("problem").get<std::string>()});
        return probe;
    } catch (const Json::exception &failure) {
        return Error{ErrorCode::InvalidInput, std::string{"what was found cannot be read: "} + failure.what(),
            "let planloom-exec probe write it", {}};
    }
}

std::string whatItRunsOn(const Probe &probe, std::int32_t devices)
{
    const auto usable = std::count_if(
        probe.gpus.begin(), probe.gpus.end(), [](const ProbedGpu &gpu) { return gpu.problem.empty(); });
    const std::string emulated = counted(devices, "device") + (devices == 1 ? " is" : " are")
        + " emulated on " + counted(probe.cpu.cores, "core");
    if (usable > 0)
        return counted(usable, "GPU") + " of this machine can be used; in this run the plan's " + emulated
            + ".";
    std::string why = probe.gpuProblem;
    for (const ProbedGpu &gpu : probe.gpus)
        if (why.empty())
            why = gpu.name + ": " + gpu.problem;
    return "The plan's " + emulated + ", since no GPU can be used" + (why.empty() ? "." : " (" + why + ").");
}

std::string gpuMachineName(const std::string &gpu, std::int32_t computeCapability)
{
    return gpu + ", compute capability " + std::to_string(computeCapability / 10) + "."
        + std::to_string(computeCapability % 10);
}

} // namespace planloom
