#include "app/cli/commands.h"
#include "app/cli/model.h"
#include "app/cli/run_report.h"
#include "app/cli/run_torch.h"
#include "app/cli/without_effect.h"

#include "engine/base/files.h"
#include "engine/cuda/nccl/nccl_devices.h"
#include "engine/design/models/operator_files.h"
#include "engine/design/models/reference.h"
#include "engine/design/remembered.h"
#include "engine/interop/npz.h"
#include "engine/interop/perfetto.h"
#include "engine/runtime/machine/calibrate.h"
#include "engine/runtime/processes/run_event.h"
#include "engine/runtime/processes/run_folder.h"
#include "engine/runtime/processes/supervisor.h"
#include "engine/simulate/simulate.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <numeric>

namespace planloom::cli {

namespace {

using nlohmann::json;

/// What the options say of training.
Result<TrainingRun> trainingOf(const Arguments &arguments)
{
    TrainingRun training;
    setData(training, arguments.text("data"));
    if (arguments.has("rate-schedule")) {
        TRY(training.schedule, parseRateSchedule(arguments.text("rate-schedule")));
    }
    training.checkpoints = arguments.text("checkpoint");
    TRY(const auto every, arguments.integer("checkpoint-every", 0, 1, 1'000'000));
    training.every = static_cast<std::int32_t>(every);
    training.resume = arguments.text("resume");
    if (!training.resume.empty() && arguments.has("seed"))
        return Error{ErrorCode::InvalidInput, "a run that is resumed has the seed of its checkpoint",
            "leave --seed out", "--seed"};
    TRY_VOID(validate(training));
    return training;
}

} // namespace

Result<int> runRun(const Arguments &arguments)
{
    const std::string backend = arguments.text("backend", "cpu");
    RunRequest request;
    request.backend = backend;
    const bool onTorch = backend == "torch";
    if (!onTorch)
        TRY_VOID(devicesOfBackend(backend)); // that there is none of this name is said first
    TRY(const auto steps, arguments.integer("steps", 1, 1, 1'000'000));
    TRY(const auto seed, arguments.integer("seed", 1, 0, INT64_MAX));
    TRY(const auto ranks, arguments.integer("ranks", 1, 1, 4096));
    request.ranks = static_cast<std::int32_t>(ranks);
    request.options.steps = static_cast<std::int32_t>(steps);
    request.options.seed = static_cast<std::uint64_t>(seed);
    if (arguments.has("random-weights")) {
        TRY(const auto weights, arguments.integer("random-weights", 1, 0, INT64_MAX));
        request.options.randomWeights = true;
        request.options.seed = static_cast<std::uint64_t>(weights);
    }
    if (arguments.has("inputs")) {
        TRY(request.options.inputs, readInputs(arguments.text("inputs")));
    }
    const auto named = arguments.texts("operators");
    TRY(request.options.libraries, trustedLibraries(named));
    for (const std::string &library : arguments.texts("allow-library"))
        request.options.libraries.push_back(std::filesystem::absolute(library).lexically_normal().string());
    TRY(request.options.training, trainingOf(arguments));
    request.options.poison = arguments.has("check"); // reads of memory nobody wrote then show as NaN
    request.options.keepGradients = arguments.has("check") || arguments.has("dump");

    const std::string &positional = arguments.positional();
    if (isPlanFile(positional)) {
        TRY(request.plan, planWithValues(positional));
    } else {
        std::map<std::string, Shape> shapes;
        for (const auto &[name, array] : request.options.inputs)
            shapes[name] = array.type.shape;
        TRY(auto wanted, planRequest(arguments, positional, shapes));
        wanted.upTo = PlanGrade::Lowered;
        TRY(const auto solved, planOf(wanted));
        request.plan = *solved->execution;
    }
    if (onTorch)
        return runWithTorch(arguments, request);
    TRY_VOID(openBackend(request, !arguments.has("prepare")));
    if (arguments.has("ranks") && request.ranks != ranks)
        return Error{ErrorCode::InvalidInput,
            "--backend cuda runs one process for each device: " + std::to_string(request.ranks) + ", and not "
                + std::to_string(ranks),
            "leave --ranks out", "--ranks"};
    SimulateOptions simulation;
    simulation.spans = arguments.has("trace");
    const bool onCpu = request.backend == "cpu";
    Probe probe; // a driver that does not answer is waited for where its answer counts
    std::optional<MachineProfile> ofGpu;
    if (!onCpu && std::filesystem::exists(profilePath(request.backend))) {
        probe = probeMachine();
        ofGpu = gpuProfile(profilePath(request.backend), probe);
    }
    auto measured = ofGpu ? Result<MachineProfile>{*ofGpu} : profileFor(request.plan, profilePath());
    if (!measured)
        return std::move(measured).error();
    const MachineProfile profile = *std::move(measured);
    request.options.shareValues = !arguments.has("no-sharing");
    const bool sharesValues = request.options.shareValues && request.ranks <= 1 && onCpu;
    TRY(const auto predicted,
        ofGpu ? predictOnGpus(request.plan, profile, probe, simulation)
              : predictRun(request.plan, profile, sharesValues, simulation));
    request.predictedStepSeconds = std::chrono::duration<double>(predicted.step).count();
    if (arguments.has("trace")) {
        TRY_VOID(writeFileBy(arguments.text("trace"),
            [&](std::ostream &stream) { return writePerfetto(stream, request.plan, predicted); }));
    }
    if (arguments.has("check")) {
        TRY(request.reference, referenceOf(request.plan));
    }
    request.spans = false;
    if (arguments.has("dump"))
        request.outcomeFolder = std::filesystem::absolute(arguments.text("dump")).string();

    if (arguments.has("prepare")) {
        TRY_VOID(writeRunFolder(arguments.text("prepare"), request));
        return 0;
    }
    SuperviseOptions options;
    options.signals = true;
    const bool quiet = arguments.has("json");
    std::int64_t before = 0;
    TRY(const auto outcome, superviseRun(request, options, [quiet, &before](const std::string &line) {
        return quiet ? true : showEvent(line, before);
    }));

    double stepSeconds = 0;
    for (const double seconds : outcome.stepSeconds)
        stepSeconds = stepSeconds == 0 ? seconds : std::min(stepSeconds, seconds);
    std::int64_t peak = 0;
    json peaks = json::array();
    for (const Bytes bytes : outcome.peak) {
        peak = std::max(peak, bytes.count);
        peaks.push_back(bytes.count);
    }
    const std::int64_t dropped =
        std::accumulate(outcome.dropped.begin(), outcome.dropped.end(), std::int64_t{0});
    const bool ok = !outcome.check || outcome.check->ok;
    if (quiet) {
        json object{{"steps", outcome.losses.size()}, {"losses", outcome.losses},
            {"step_seconds", stepSeconds}, {"predicted_step_seconds", request.predictedStepSeconds},
            {"machine", profile.machine}, {"peak_bytes", peak}, {"device_peak_bytes", peaks},
            {"devices", request.plan.devices.size()}, {"ranks", request.ranks},
            {"micro_batches", request.plan.microBatches}, {"backend", backend}, {"dropped", dropped},
            {"first_step", outcome.firstStep}, {"stopped", outcome.stopped},
            {"checkpoint", outcome.checkpoint}};
        object["loss"] = outcome.losses.empty() ? json(nullptr) : json(outcome.losses.back());
        if (outcome.check)
            object["check"] = checkJson(*outcome.check, request.plan);
        std::cout << object.dump(-1, ' ', false, json::error_handler_t::replace) << "\n";
        return ok ? 0 : 1;
    }
    std::printf("ran on %zu %s devices in %d micro-batches: %.1f ms a step, %.2f MiB at most on a device\n",
        request.plan.devices.size(),
        onCpu                   ? "CPU"
            : backend == "cuda" ? "CUDA"
                                : "emulated CUDA",
        request.plan.microBatches, stepSeconds * 1e3, static_cast<double>(peak) / 1048576);
    if (onCpu || ofGpu)
        std::printf(
            "predicted for this machine (%s): %.1f ms a step, %+.0f%% from the fastest step measured\n",
            profile.machine.c_str(), request.predictedStepSeconds * 1e3,
            100 * (request.predictedStepSeconds / std::max(stepSeconds, 1e-9) - 1));
    if (!outcome.losses.empty() && request.plan.graph->loss.valid())
        std::printf("loss %.7g\n", outcome.losses.back());
    if (outcome.stopped)
        std::printf("stopped behind step %lld\n",
            static_cast<long long>(outcome.firstStep) + static_cast<long long>(outcome.losses.size()));
    if (!outcome.checkpoint.empty())
        std::printf("checkpoint: %s (--resume goes on from it)\n", outcome.checkpoint.c_str());
    if (dropped > 0)
        std::printf("left out, for want of room: %lld of what data chose (--capacity)\n",
            static_cast<long long>(dropped));
    if (outcome.check) {
        std::printf("check against %s: %s\n", referenceText(request.plan).c_str(),
            verdictText(*outcome.check).c_str());
        if (!outcome.check->firstDifference.empty())
            std::printf("first operator that differs: %s\n", outcome.check->firstDifference.c_str());
    }
    return ok ? 0 : 1;
}

} // namespace planloom::cli
