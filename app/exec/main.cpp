#include "app/exec/run_torch.h"

#include "engine/base/files.h"
#include "engine/cuda/nccl/nccl_devices.h"
#include "engine/lowering/program/execution_plan_json.h"
#include "engine/lowering/program/expand_units.h"
#include "engine/runtime/devices/run_devices.h"
#include "engine/runtime/machine/calibrate.h"
#include "engine/runtime/machine/probe.h"
#include "engine/runtime/processes/event_json.h"
#include "engine/runtime/processes/supervisor.h"
#include "engine/terminal/arguments.h"
#include "engine/terminal/exit_status.h"
#include "engine/terminal/help.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>
#include <unistd.h>

using namespace planloom;
using Json = nlohmann::json;

namespace {

/// Every verb with its options.
const ProgramSpec &program()
{
    static const ProgramSpec kProgram{.name = "planloom-exec",
        .version = PLANLOOM_VERSION,
        .meaning = "runs execution plans of Planloom, in processes of their own",
        .paragraphs = {"Events of a run are written to standard output, one JSON object a line. A line "
                       "\"cancel\" on standard input, SIGINT or SIGTERM end the run; \"finish\", or the "
                       "first SIGINT of a run that writes checkpoints, ends it behind its step. Files whose "
                       "options say \"temporary\" are removed once they are read."},
        .verbs = {{"run", "", "runs a plan on the devices that its options name",
                      {{"plan", "FILE", "the execution plan (needed)"},
                          {"options", "FILE",
                              "how it is run (needed; planloom-cli run --prepare writes both)"},
                          {"data", "PATH|synthetic", "batches, in place of what the options say"},
                          {"checkpoint", "DIR",
                              "where checkpoints are written, in place of what the options say"},
                          {"resume", "PATH",
                              "the checkpoint to go on from, in place of what the options say"}},
                      "planloom-exec run --plan plan.json --options options.json"},
            {"bench", "",
                "measures on this machine what the plan runs, every kernel anew, keeps it in a profile, and "
                "prints it, slowest first; where the options name a backend of GPUs, it measures there",
                {{"plan", "FILE", "the execution plan (needed)"},
                    {"options", "FILE", "how it would be run (default: on the processor)"},
                    {"profile", "FILE", "where times are kept (default: where predictions look for them)"},
                    {"seconds", "S", "how long it measures at most (default: 600)"}},
                "planloom-exec bench --plan plan.json --seconds 60"},
            {"probe", "",
                "writes what this machine has to run plans on, and why what it has cannot be used, as one "
                "JSON object",
                {}, "planloom-exec probe"}},
        .environment = {{"PLANLOOM_PLUGIN_PATH",
                            "folders, separated by colons, where the plugin planloom-cuda.so is looked for, "
                            "behind those of the installation"},
            {"PLANLOOM_LIBRARY_PATH",
                "folders, separated by colons, where NCCL, cuBLASLt and NVRTC are looked for first"}},
        .files = {},
        .seeAlso = {"planloom", "planloom-cli"}};
    return kProgram;
}

bool writeLine(const std::string &line)
{
    const std::string text = line + "\n";
    std::size_t done = 0;
    while (done < text.size()) {
        const ssize_t written = ::write(STDOUT_FILENO, text.data() + done, text.size() - done);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return false;
        done += static_cast<std::size_t>(written);
    }
    return true;
}

int failed(const Error &error)
{
    std::fprintf(stderr, "planloom-exec: %s\n", describe(error).c_str());
    return exitStatusOf(error.code);
}

/// The plan, on the backend that the options name; without options, on the CPU.
Result<RunRequest> requestToBench(const Arguments &given)
{
    if (given.has("options"))
        return readRunFolder(given.text("plan"), given.text("options"));
    RunRequest request;
    TRY(const auto text, readFile(given.text("plan")));
    TRY(request.plan, executionPlanFromJson(text));
    return request;
}

/// On a GPU of this machine. Ranks of processes of their own are not started for it: kernels of a plan for
/// several GPUs are measured on the first one, and its collectives are not.
Result<void> benchDevices(MachineProfile &profile, const ExecutionPlan &plan, const std::string &backend,
    const CalibrateOptions &options)
{
    const bool several = backend == "cuda" && plan.devices.size() > 1;
    ExecutionPlan alone = plan;
    if (several)
        alone.groups.clear();
    TRY(const OpenDevices open, devicesOfBackend(several ? "cuda-emulated" : backend));
    TRY(const auto devices, open(alone));
    devices->setWarning(
        [](const std::string &text) { std::fprintf(stderr, "planloom-exec: %s\n", text.c_str()); });
    TRY_VOID(devices->connect({}));
    TRY_VOID(calibrate(profile, alone, *devices, options));
    profile.oneEach = backend == "cuda";
    return {};
}

int bench(const Arguments &given)
{
    CalibrateOptions options{.seconds = 600, .repeats = 9, .again = true};
    const auto seconds = given.real("seconds", options.seconds);
    if (!seconds)
        return failed(seconds.error());
    if (!(*seconds > 0))
        return failed({ErrorCode::InvalidInput,
            "expected a number above 0, found \"" + given.text("seconds") + "\"", {}, "--seconds"});
    options.seconds = *seconds;
    auto request = requestToBench(given);
    if (!request)
        return failed(request.error());
    ExecutionPlan &plan = request->plan;
    const bool onCpu = request->backend == "cpu";
    const std::string path = given.has("profile") ? given.text("profile") : profilePath(request->backend);
    MachineProfile profile;
    if (auto kept = readProfile(path))
        profile = *std::move(kept);
    if (!onCpu && !plan.units.isOne())
        plan = expandUnits(plan);
    if (const auto done = onCpu ? calibrate(profile, plan, options)
                                : benchDevices(profile, plan, request->backend, options);
        !done)
        return failed(done.error());
    if (const auto written = writeProfile(path, profile); !written)
        return failed(written.error());
    const auto predicted = onCpu ? predictRun(plan, profile) : predictOnGpus(plan, profile, probeMachine());
    if (!predicted)
        return failed(predicted.error());
    std::vector<std::pair<std::string, MeasuredKernel>> kernels(
        profile.kernels.begin(), profile.kernels.end());
    std::sort(kernels.begin(), kernels.end(),
        [](const auto &a, const auto &b) { return a.second.seconds > b.second.seconds; });
    std::printf(
        "%s: %.1f us an instruction, %.1f us an exchange, %.1f GB/s in collectives, %.1f GB/s in copies\n",
        profile.machine.c_str(), profile.taskSeconds * 1e6, profile.exchangeSeconds * 1e6,
        profile.exchangeRate * 1e-9, profile.copyRate * 1e-9);
    std::printf("%12s %8s %10s %10s  %s\n", "us", "spread", "GFLOP/s", "GB/s", "kernel");
    for (const auto &[key, kernel] : kernels)
        std::printf("%12.1f %7.0f%% %10.1f %10.1f  %s\n", kernel.seconds * 1e6, kernel.spread * 100,
            kernel.flops / kernel.seconds * 1e-9, kernel.bytes / kernel.seconds * 1e-9, key.c_str());
    std::printf("predicted for this machine: %.3f ms a step\n",
        std::chrono::duration<double>(predicted->step).count() * 1e3);
    std::printf("kept in %s\n", path.c_str());
    return 0;
}

int probe()
{
    const bool written =
        writeLine(toJson(probeMachine()).dump(-1, ' ', false, Json::error_handler_t::replace));
    std::fflush(nullptr);
    ::_exit(written ? kExitDone : kExitFailed); // a driver that does not answer holds a thread
}

int run(const Arguments &given)
{
    auto request = readRunFolder(given.text("plan"), given.text("options"));
    const bool onTorch = request && request->backend == "torch";
    if (request && !onTorch)
        if (auto opened = openBackend(*request, true); !opened)
            request = std::move(opened).error();
    if (!request) {
        writeLine(errorEvent(request.error()).dump(-1, ' ', false, Json::error_handler_t::replace));
        return failed(request.error());
    }
    if (request->temporary)
        removeRunFolder(given.text("options"));
    TrainingRun &training = request->options.training;
    if (given.has("data"))
        setData(training, given.text("data"));
    if (given.has("checkpoint"))
        training.checkpoints = given.text("checkpoint");
    if (given.has("resume"))
        training.resume = given.text("resume");
    const auto outcome = onTorch
        ? runTorchRequest(*request, writeLine)
        : superviseRun(*request, {.controlDescriptor = STDIN_FILENO, .signals = true}, writeLine);
    if (!outcome)
        return failed(outcome.error());
    return outcome->check && !outcome->check->ok ? kExitFailed : kExitDone;
}

int print(const std::string &text)
{
    const bool isWritten = std::fputs(text.c_str(), stdout) >= 0 && std::fflush(stdout) == 0;
    return isWritten ? kExitDone
                     : failed({ErrorCode::Io, "standard output cannot be written",
                         "check that its disk has room", "stdout"});
}

} // namespace

int main(int argc, char **argv)
{
    std::signal(SIGPIPE, SIG_IGN); // a reader that is gone is an error of write()
    const std::vector<std::string> words(argv + 1, argv + argc);
    if (words.empty()) {
        std::fprintf(
            stderr, "planloom-exec: a verb is missing\n\n%s", helpOf(program(), terminalWidth()).c_str());
        return kExitUsage;
    }
    if (const auto answer = answerOf(program(), words))
        return print(*answer);
    const auto verb = findVerb(program(), words[0]);
    if (!verb)
        return failed(verb.error());
    const auto given = Arguments::parse(program(), **verb, {words.begin() + 1, words.end()});
    if (!given)
        return failed(given.error());
    if (given->has("help"))
        return print(helpOf(program(), **verb, terminalWidth()));
    if (given->has("version"))
        return print(*answerOf(program(), {"--version"}));
    if ((*verb)->name == "probe")
        return probe();
    const bool benches = (*verb)->name == "bench";
    for (const char *const needed : {"plan", "options"})
        if (!given->has(needed) && !(benches && needed == std::string_view{"options"}))
            return failed({ErrorCode::InvalidInput, std::string{"--"} + needed + " FILE is needed",
                "planloom-exec " + (*verb)->name + " --help lists the options", "command line"});
    return benches ? bench(*given) : run(*given);
}
