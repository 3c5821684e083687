#include "widgets/run/readiness.h"

#include "engine/interop/torch/torch_export.h"
#include "engine/kernels/kernel.h"
#include "widgets/common/format.h"
#include "widgets/run/machine_devices.h"

#include <algorithm>
#include <cctype>
#include <utility>

namespace planloom {

std::vector<PreflightItem> preflight(const ExecutionPlan &plan, const Timeline &predicted, bool verified,
    const RunSetup &setup, const RunMachine &machine)
{
    const std::int64_t memoryBytes = machine.freeMemory;
    const int processors = machine.processors;
    using Level = PreflightItem::Level;
    std::vector<PreflightItem> items;
    const auto add = [&items](Level level, std::string text) { items.push_back({level, std::move(text)}); };
    const auto count = static_cast<int>(plan.devices.size());
    if (verified)
        add(Level::Good, "The plan is proven to compute what the model computes.");
    else
        add(Level::Note, "The plan is not proven yet; the check at the end compares its results.");
    const bool onCpu = setup.backend == RunBackend::Cpu;
    if (onCpu)
        add(count > processors ? Level::Note : Level::Good,
            std::to_string(count) + (count == 1 ? " CPU device" : " CPU devices") + " on "
                + std::to_string(processors) + (processors == 1 ? " processor" : " processors")
                + (count > processors
                        ? ": they take turns, so steps are slower than the plan, results the same."
                        : "."));
    const bool ownKernels = setup.backend != RunBackend::Torch; // PyTorch's are asked for by `torchPreflight`
    const Operator *missing = nullptr;
    for (const DeviceProgram &device : plan.devices) {
        for (const Segment &segment : device.segments) {
            for (const Instruction &instruction : segment.instructions) {
                if (missing || !ownKernels || instruction.kind != InstructionKind::Kernel)
                    continue;
                const Operator &op = plan.graph->at(instruction.op);
                if (!hasKernel(op))
                    missing = &op;
            }
        }
    }
    if (missing)
        add(Level::Blocked,
            "Operator " + missing->name + " (" + typeNameOf(*missing)
                + ") can be planned but has no implementation to run.");
    std::int64_t needed = 0; // of this machine's memory
    for (const MemoryCurve &curve : predicted.memory)
        needed += onCpu ? curve.peak.count : 0;
    std::int64_t whole = 0; // of the reference, roughly: weights and their states once more
    for (const Tensor &tensor : plan.graph->tensors)
        whole += tensor.role == TensorRole::Weight
            ? elementCount(tensor.type.shape) * sizeOf(tensor.type.dataType)
            : 0;
    if (setup.check)
        needed += 4 * whole;
    const auto sized = [](std::int64_t bytes) { return formatBytes(Bytes{bytes}); };
    if (memoryBytes > 0 && needed > memoryBytes)
        add(Level::Blocked,
            (onCpu ? "All devices together need about " : "The comparison needs about ") + sized(needed)
                + "; this machine has " + sized(memoryBytes) + " free.");
    else if (onCpu) // the memory of others is their own
        add(Level::Good,
            "All devices together need about " + sized(needed)
                + (memoryBytes > 0 ? " of the " + sized(memoryBytes) + " that are free." : "."));
    std::int64_t unset = 0;
    for (const Tensor &tensor : plan.graph->tensors)
        unset += tensor.role == TensorRole::Weight && !tensor.data
                && !(tensor.external && tensor.external->present)
            ? 1
            : 0;
    if (unset > 0)
        add(Level::Note,
            std::to_string(unset) + " weights have no values in the model: they are drawn from seed "
                + std::to_string(setup.seed) + ".");
    switch (setup.training.batches) {
    case BatchSource::Same:
        add(Level::Good,
            "Inputs are drawn from seed " + std::to_string(setup.seed) + ", the same in every run.");
        break;
    case BatchSource::Drawn:
        add(Level::Good,
            "Inputs are drawn anew in every step, from seed " + std::to_string(setup.seed) + ".");
        break;
    case BatchSource::Files:
        add(Level::Good, "Batches are read from " + setup.training.data + ".");
        break;
    }
    if (setup.check)
        add(Level::Good,
            "Loss, outputs, gradients and updated weights are compared with the unpartitioned model.");
    else
        add(Level::Note, "Results are not compared with the unpartitioned model.");
    return items;
}

std::optional<PreflightItem> gpuPreflight(
    const ExecutionPlan &plan, const Timeline &predicted, const RunSetup &setup, const RunMachine &machine)
{
    using Level = PreflightItem::Level;
    if (setup.backend == RunBackend::Cpu || setup.backend == RunBackend::Torch)
        return std::nullopt;
    if (!machine.probe)
        return PreflightItem{Level::Note, "GPUs of this machine are looked for."};
    std::vector<Bytes> peaks;
    for (std::int32_t unit = 0; unit < plan.units.count; ++unit)
        for (const MemoryCurve &curve : predicted.memory)
            peaks.push_back(curve.peak);
    const std::string why = whyNotOnGpus(*machine.probe, setup.backend, peaks);
    if (!why.empty()) {
        std::string sentence = why + ".";
        sentence.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(sentence.front())));
        return PreflightItem{Level::Blocked, std::move(sentence)};
    }
    const std::string count = std::to_string(peaks.size()) + (peaks.size() == 1 ? " device" : " devices");
    const ProbedGpu &gpu = machine.probe->gpus.front();
    return PreflightItem{Level::Good,
        setup.backend == RunBackend::CudaEmulated
            ? count + ", emulated on GPU 0 (" + gpu.name + ")."
            : count + (peaks.size() == 1 ? " on a GPU (" : ", each on a GPU (") + gpu.name
                + "), in a process of its own."};
}

std::int32_t processesOf(const ExecutionPlan &plan)
{
    return static_cast<std::int32_t>(plan.devices.size()) * plan.units.count;
}

std::vector<PreflightItem> torchPreflight(
    const ExecutionPlan &plan, const RunSetup &setup, const RunMachine &machine)
{
    using Level = PreflightItem::Level;
    std::vector<PreflightItem> items;
    if (setup.backend != RunBackend::Torch)
        return items;
    const std::int32_t processes = processesOf(plan);
    const auto place = !machine.torch ? Result<TorchPlace>{Error{}}
        : *machine.torch              ? torchPlaceOf(**machine.torch, processes)
                                      : Result<TorchPlace>{machine.torch->error()};
    if (!machine.torch) {
        items.push_back({Level::Note, "The Python is asked what it has."});
    } else if (!place) {
        items.push_back({Level::Blocked, whyNoTorch(place.error())});
    } else {
        items.push_back({place->onGpus ? Level::Good : Level::Note,
            "PyTorch " + (*machine.torch)->torch + " runs it in " + std::to_string(processes)
                + (processes == 1 ? " process" : " processes")
                + (place->onGpus ? ", each on a GPU, by NCCL."
                                 : " on CPUs, by gloo: " + place->whyNot + ".")});
    }
    if (setup.training.batches == BatchSource::Files)
        items.push_back({Level::Blocked,
            "PyTorch's run takes no files of batches: File > Export > PyTorch…, and put a Dataset into its "
            "dataset.py."});
    if (const auto made = exportTorch(plan); !made)
        items.push_back({Level::Blocked, "PyTorch cannot run it: " + describe(made.error())});
    items.push_back({Level::Good, "Spans are measured in the last step."});
    return items;
}

bool mayRun(const std::vector<PreflightItem> &items)
{
    return std::none_of(items.begin(), items.end(),
        [](const PreflightItem &item) { return item.level == PreflightItem::Level::Blocked; });
}

Readiness readinessOf(const ExecutionPlan &plan, const Timeline &predicted, bool verified,
    const RunSetup &setup, const RunMachine &machine)
{
    const auto itemsOn = [&](RunBackend backend) {
        RunSetup on = setup;
        on.backend = backend;
        std::vector<PreflightItem> items = preflight(plan, predicted, verified, on, machine);
        if (auto fit = gpuPreflight(plan, predicted, on, machine))
            items.push_back(*std::move(fit));
        for (PreflightItem &item : torchPreflight(plan, on, machine))
            items.push_back(std::move(item));
        return items;
    };
    Readiness readiness{.items = itemsOn(setup.backend)};
    if (!mayRun(readiness.items)) {
        for (const RunBackend other : {RunBackend::Cuda, RunBackend::CudaEmulated, RunBackend::Cpu}) {
            const bool known = other == RunBackend::Cpu || machine.probe; // else nobody knows whether it can
            if (other == setup.backend || !known || !mayRun(itemsOn(other)))
                continue;
            readiness.offer = other;
            break;
        }
    }
    if (setup.backend == RunBackend::Cpu && machine.probe)
        readiness.items.push_back({PreflightItem::Level::Note,
            whatItRunsOn(*machine.probe, static_cast<std::int32_t>(plan.devices.size()))});
    return readiness;
}

} // namespace planloom
