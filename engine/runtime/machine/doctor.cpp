#include "engine/runtime/machine/doctor.h"

#include "engine/base/words.h"
#include "engine/terminal/help.h"

#include <algorithm>
#include <cstdlib>

namespace planloom {

namespace {

void addLack(Finding &finding, FeatureState readiness, std::string what, std::string remedy)
{
    finding.readiness = std::max(finding.readiness, readiness);
    finding.lacks.push_back({std::move(what), std::move(remedy)});
}

/// Whether version `found` is at least `oldest`, number by number.
bool isAtLeast(const std::string &found, const std::string &oldest)
{
    const char *a = found.c_str();
    const char *b = oldest.c_str();
    while (*b != '\0') {
        char *endA = nullptr;
        char *endB = nullptr;
        const long numberA = std::strtol(a, &endA, 10);
        const long numberB = std::strtol(b, &endB, 10);
        if (numberA != numberB)
            return numberA > numberB;
        a = *endA == '.' ? endA + 1 : endA;
        b = *endB == '.' ? endB + 1 : endB;
    }
    return true;
}

Finding planning()
{
    return {"plan", "opening models, searching, predicting and proving plans", FeatureState::Ready,
        "nothing else is needed", {}};
}

Finding cpuRuns(const InstallationFacts &facts)
{
    const ProbedCpu &cpu = facts.probe.cpu;
    Finding finding{"cpu", "runs on emulated devices of the processor (--backend cpu)", FeatureState::Ready,
        counted(cpu.cores, "core") + (cpu.vectorUnits.empty() ? "" : " with " + cpu.vectorUnits), {}};
    if (facts.oneDnn.empty())
        addLack(finding, FeatureState::Slow,
            "this build has no oneDNN: products are computed by portable loops, which are slower",
            "install libdnnl-dev and build Planloom anew, or install the package planloom-tools, which has "
            "it");
    else
        finding.found += ", oneDNN " + facts.oneDnn;
    if (facts.runner.empty())
        addLack(finding, FeatureState::Slow,
            "planloom-exec is not beside this program: the window cannot run plans",
            "install the package planloom-tools");
    return finding;
}

Finding windowOf(const InstallationFacts &facts)
{
    Finding finding{"window", "the window (planloom)", FeatureState::Ready, facts.window, {}};
    if (facts.window.empty())
        addLack(finding, FeatureState::Missing, "the program planloom is not installed",
            "install the package planloom");
    if (facts.display.empty())
        addLack(finding, FeatureState::Missing,
            "there is no display: neither DISPLAY nor WAYLAND_DISPLAY is set",
            "start it on a desktop, over ssh -X, or take a picture: QT_QPA_PLATFORM=offscreen planloom "
            "--screenshot FILE.png");
    else
        finding.found += (finding.found.empty() ? "display " : ", display ") + facts.display;
    if (!facts.window.empty() && facts.layoutHelper.empty())
        addLack(finding, FeatureState::Slow,
            "planloom-layout is missing: operators are laid out without Graphviz",
            "install the package planloom anew");
    return finding;
}

void addDriver(Finding &finding, const Probe &probe, std::ptrdiff_t wanted)
{
    const auto usable = std::count_if(
        probe.gpus.begin(), probe.gpus.end(), [](const ProbedGpu &gpu) { return gpu.problem.empty(); });
    if (!probe.driver.empty())
        finding.found = "driver " + probe.driver + ", " + counted(usable, "GPU");
    for (const ProbedGpu &gpu : probe.gpus)
        if (!gpu.problem.empty())
            addLack(finding, usable >= wanted ? FeatureState::Slow : FeatureState::Missing,
                "GPU " + std::to_string(gpu.index) + " (" + gpu.name + ") cannot be used: " + gpu.problem,
                "nvidia-smi says more");
    if (!probe.gpuProblem.empty())
        addLack(finding, FeatureState::Missing, "no GPU: " + probe.gpuProblem,
            "on a machine with a GPU of NVIDIA's, install its driver (Debian: nvidia-driver, of non-free)");
    else if (usable < wanted)
        addLack(finding, FeatureState::Missing,
            counted(usable, "GPU") + " can be used, " + std::to_string(wanted) + " are needed",
            "use --backend cuda-emulated on one GPU, or a machine with more");
}

/// @param name  as the probe calls it
void addLibrary(Finding &finding, const Probe &probe, const std::string &name, const std::string &oldest,
    const std::string &package)
{
    const auto library = std::find_if(probe.libraries.begin(), probe.libraries.end(),
        [&](const ProbedLibrary &each) { return each.name == name; });
    const std::string problem =
        library == probe.libraries.end() ? "it did not answer in time" : library->problem;
    const std::string remedy =
        "pip install " + package + ", or name the folder that has it in PLANLOOM_LIBRARY_PATH";
    if (!problem.empty()) {
        addLack(finding, FeatureState::Missing, name + " cannot be used: " + problem, remedy);
    } else if (!oldest.empty() && !isAtLeast(library->version, oldest)) {
        addLack(finding, FeatureState::Missing,
            name + " is version " + library->version + ", " + oldest + " or later is needed", remedy);
    } else {
        finding.found += (finding.found.empty() ? "" : ", ") + name + " " + library->version;
    }
}

Finding gpuRuns(const InstallationFacts &facts, bool several)
{
    Finding finding{several ? "gpus" : "gpu",
        several ? "runs on several GPUs (--backend cuda)" : "runs on one GPU (--backend cuda-emulated)",
        FeatureState::Ready, {}, {}};
    addDriver(finding, facts.probe, several ? 2 : 1);
    if (facts.plugin.empty())
        addLack(finding, FeatureState::Missing, "the plugin planloom-cuda.so is not installed",
            "install the package planloom-cuda");
    else if (!facts.pluginProblem.empty())
        addLack(finding, FeatureState::Missing,
            "the plugin " + facts.plugin + " cannot be used: " + facts.pluginProblem,
            "install the package planloom-cuda of version " + facts.version);
    else
        finding.found += (finding.found.empty() ? "" : ", ") + std::string("plugin ") + facts.plugin;
    addLibrary(finding, facts.probe, "cuBLASLt", {}, "nvidia-cublas-cu12");
    addLibrary(finding, facts.probe, "NVRTC", {}, "nvidia-cuda-nvrtc-cu12");
    if (several)
        addLibrary(finding, facts.probe, "NCCL", facts.oldestNccl, "nvidia-nccl-cu12");
    return finding;
}

Finding torchModels(const InstallationFacts &facts)
{
    Finding finding{"torch", "writing models of PyTorch as .pt2 or .onnx (reading them needs no Python)",
        FeatureState::Ready, {}, {}};
    if (facts.python.empty()) {
        addLack(finding, FeatureState::Missing, "no Python was found on PATH",
            "install the package python3, then: pip install torch");
        return finding;
    }
    finding.found = facts.python;
    if (facts.torch.empty())
        addLack(finding, FeatureState::Missing, facts.python + " has no package torch",
            facts.python + " -m pip install torch, in a virtual environment, whose activate comes first");
    else
        finding.found += " with torch " + facts.torch;
    return finding;
}

std::string indented(const std::string &head, const std::string &text, std::size_t width)
{
    return head + wrapped(text, width - head.size(), head.size()) + "\n";
}

} // namespace

std::vector<Finding> examine(const InstallationFacts &facts)
{
    return {planning(), cpuRuns(facts), windowOf(facts), gpuRuns(facts, false), gpuRuns(facts, true),
        torchModels(facts)};
}

std::string pageOf(const InstallationFacts &facts, const std::vector<Finding> &findings, std::size_t width)
{
    std::string page = "Planloom " + facts.version + "\n";
    std::vector<Lack> told;
    for (const Finding &finding : findings) {
        const char *const mark = finding.readiness == FeatureState::Ready ? "yes"
            : finding.readiness == FeatureState::Slow                     ? "part"
                                                                          : "no";
        page += "\n";
        page += indented(
            std::string(mark) + std::string(6 - std::string(mark).size(), ' '), finding.feature, width);
        if (!finding.found.empty())
            page += indented("      found: ", finding.found, width);
        for (const Lack &lack : finding.lacks) {
            const bool isTold = std::find(told.begin(), told.end(), lack) != told.end();
            page += indented("      missing: ", lack.what + (isTold ? " (see above)" : ""), width);
            if (!isTold)
                page += indented("        to get it: ", lack.remedy, width);
            told.push_back(lack);
        }
    }
    return page;
}

} // namespace planloom
