#include "app/cli/run_torch.h"

#include "app/cli/run_report.h"

#include "engine/design/models/reference.h"
#include "engine/interop/torch/launch/torch_probe.h"
#include "engine/interop/torch/launch/torch_run.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iostream>

namespace planloom::cli {

Result<int> runWithTorch(const Arguments &arguments, RunRequest &request)
{
    using nlohmann::json;
    for (const char *const option : {"ranks", "prepare", "trace"})
        if (arguments.has(option))
            return Error{ErrorCode::InvalidInput, std::string("--") + option + " is for other backends",
                "leave it out", std::string("--") + option};
    TRY_VOID(requireTorchRun(request));
    const std::string python = arguments.text("python", pythonOnPath());
    if (python.empty())
        return Error{
            ErrorCode::NotFound, "there is no python3 on PATH", "name one with --python", "--python"};
    TorchRunOptions options;
    options.signals = true;
    TRY(options.probe, probeTorch(python));
    if (arguments.has("check")) {
        TRY(request.reference, referenceOf(request.plan));
    }
    request.spans = arguments.has("events");
    if (arguments.has("dump"))
        request.outcomeFolder = std::filesystem::absolute(arguments.text("dump")).string();
    const bool quiet = arguments.has("json");
    const bool events = arguments.has("events");
    std::int64_t before = 0;
    TRY(const auto outcome, runOnTorch(request, options, [&](const std::string &line) {
        if (events)
            std::cout << line << std::endl;
        return events || quiet ? bool(std::cout) : showEvent(line, before);
    }));
    const double fastest = outcome.stepSeconds.empty()
        ? 0
        : *std::min_element(outcome.stepSeconds.begin(), outcome.stepSeconds.end());
    std::int64_t peak = 0;
    json peaks = json::array();
    for (const Bytes bytes : outcome.peak) {
        peak = std::max(peak, bytes.count);
        peaks.push_back(bytes.count);
    }
    const bool ok = !outcome.check || outcome.check->ok;
    if (events)
        return ok ? 0 : 1;
    if (quiet) {
        json object{{"steps", outcome.losses.size()}, {"losses", outcome.losses}, {"step_seconds", fastest},
            {"peak_bytes", peak}, {"device_peak_bytes", peaks}, {"devices", outcome.peak.size()},
            {"micro_batches", request.plan.microBatches}, {"backend", "torch"},
            {"torch", options.probe.torch}, {"first_step", outcome.firstStep},
            {"checkpoint", outcome.checkpoint}};
        object["loss"] = outcome.losses.empty() ? json(nullptr) : json(outcome.losses.back());
        if (outcome.check)
            object["check"] = checkJson(*outcome.check, request.plan);
        std::cout << object.dump(-1, ' ', false, json::error_handler_t::replace) << "\n";
        return ok ? 0 : 1;
    }
    std::printf("ran by PyTorch %s in %zu processes, %d micro-batches: %.1f ms a step\n",
        options.probe.torch.c_str(), outcome.peak.size(), request.plan.microBatches, fastest * 1e3);
    if (!outcome.losses.empty() && request.plan.graph->loss.valid())
        std::printf("loss %.7g\n", outcome.losses.back());
    if (!outcome.checkpoint.empty())
        std::printf("checkpoint: %s (--resume goes on from it)\n", outcome.checkpoint.c_str());
    if (outcome.check)
        std::printf("check against %s: %s\n", referenceText(request.plan).c_str(),
            verdictText(*outcome.check).c_str());
    return ok ? 0 : 1;
}

} // namespace planloom::cli
