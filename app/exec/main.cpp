#include "engine/base/files.h"
#include "engine/cuda/nccl/nccl_devices.h"
#include "engine/lowering/program/execution_plan_json.h"
#include "engine/lowering/program/expand_units.h"
#include "engine/runtime/devices/run_devices.h"
#include "engine/runtime/machine/calibrate.h"
#include "engine/runtime/machine/probe.h"
#include "engine/runtime/processes/event_json.h"
#include "engine/runtime/processes/supervisor.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>
#include <unistd.h>

using namespace planloom;
using Json = nlohmann::json;

namespace {

constexpr const char *kUsage =
    "planloom-exec run --plan FILE --options FILE [--data PATH|synthetic] [--checkpoint DIR] [--resume "
    "PATH]\n"
    "planloom-exec bench --plan FILE [--options FILE] [--profile FILE] [--seconds S]\n"
    "planloom-exec probe\n"
    "\n"
    "Runs an execution plan in processes of their own, on the devices that its options name. Events are "
    "written to\n"
    "standard output, one JSON object a line. A line \"cancel\" on standard input, SIGINT or\n"
    "SIGTERM end the run; \"finish\", or the first SIGINT of a run that writes checkpoints, ends it\n"
    "behind its step. --data, --checkpoint and --resume stand in for what the options say. Files whose\n"
    "options say \"temporary\" are removed once they are read.\n"
    "\n"
    "bench measures on this machine what the plan runs, every kernel anew (at most S seconds, else 600), "
    "keeps it\n"
    "in the profile (else the one that predictions use), and prints it, slowest first. Where the options\n"
    "name a backend of GPUs, it measures there, and keeps what it finds in a profile of that backend.\n"
    "\n"
    "probe writes what this machine has to run plans on, and why what it has cannot be used, as one\n"
    "JSON object.\n"
    "Exit status: 0 done, 1 the run failed, 2 wrong usage or bad input.\n";

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

int statusOf(const Error &error)
{
    switch (error.code) {
    case ErrorCode::InvalidInput:
    case ErrorCode::NotSupported:
    case ErrorCode::NotFound:
        return 2;
    default:
        return 1;
    }
}

int usage(const std::string &problem)
{
    std::fprintf(stderr, "planloom-exec: %s\n\n%s", problem.c_str(), kUsage);
    return 2;
}

/// Options that stand in for those of the options file.
constexpr std::array<const char *, 3> kTrainingOptions{"--data", "--checkpoint", "--resume"};

bool isRunOption(const std::string &name)
{
    return name == "--options"
        || std::find(kTrainingOptions.begin(), kTrainingOptions.end(), name) != kTrainingOptions.end();
}

/// The plan, on the backend that the options name; without options, on the CPU.
Result<RunRequest> requestToBench(std::map<std::string, std::string> &given)
{
    if (given.contains("--options"))
        return readRunFolder(given["--plan"], given["--options"]);
    RunRequest request;
    TRY(const auto text, readFile(given["--plan"]));
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

int bench(std::map<std::string, std::string> &given)
{
    const auto failed = [](const Error &error) {
        std::fprintf(stderr, "planloom-exec: %s\n", describe(error).c_str());
        return statusOf(error);
    };
    CalibrateOptions options{.seconds = 600, .repeats = 9, .again = true};
    if (given.contains("--seconds")) {
        char *end = nullptr;
        options.seconds = std::strtod(given["--seconds"].c_str(), &end);
        if (*end != '\0' || !(options.seconds > 0))
            return usage("--seconds needs a number above 0, got " + given["--seconds"]);
    }
    auto request = requestToBench(given);
    if (!request)
        return failed(request.error());
    ExecutionPlan &plan = request->plan;
    const bool onCpu = request->backend == "cpu";
    const std::string path = given.contains("--profile") ? given["--profile"] : profilePath(request->backend);
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

} // namespace

int main(int argc, char **argv)
{
    std::signal(SIGPIPE, SIG_IGN); // a reader that is gone is an error of write()
    std::map<std::string, std::string> given;
    if (argc < 2)
        return usage("a verb is missing");
    if (std::string_view{argv[1]} == "--help") {
        std::fputs(kUsage, stdout);
        return 0;
    }
    if (std::string_view{argv[1]} == "probe") {
        if (argc > 2)
            return usage(std::string{"unknown option "} + argv[2]);
        const bool written =
            writeLine(toJson(probeMachine()).dump(-1, ' ', false, Json::error_handler_t::replace));
        std::fflush(nullptr);
        ::_exit(written ? 0 : 1); // a driver that does not answer holds a thread
    }
    const bool benches = std::string_view{argv[1]} == "bench";
    if (!benches && std::string_view{argv[1]} != "run")
        return usage(std::string{"unknown verb "} + argv[1]);
    for (int i = 2; i < argc; i += 2) {
        const std::string name = argv[i];
        if (name != "--plan"
            && (benches ? name != "--profile" && name != "--seconds" && name != "--options"
                        : !isRunOption(name)))
            return usage("unknown option " + name);
        if (i + 1 == argc)
            return usage(name + (name == "--seconds" ? " needs a number" : " needs a file"));
        given[name] = argv[i + 1];
    }
    if (benches)
        return given.contains("--plan") ? bench(given) : usage("--plan is needed");
    if (!given.contains("--plan") || !given.contains("--options"))
        return usage("--plan and --options are needed");
    auto request = readRunFolder(given["--plan"], given["--options"]);
    if (request)
        if (auto opened = openBackend(*request, true); !opened)
            request = std::move(opened).error();
    if (!request) {
        writeLine(errorEvent(request.error()).dump(-1, ' ', false, Json::error_handler_t::replace));
        std::fprintf(stderr, "planloom-exec: %s\n", describe(request.error()).c_str());
        return statusOf(request.error());
    }
    if (request->temporary)
        removeRunFolder(given["--options"]);
    TrainingRun &training = request->options.training;
    if (given.contains("--data"))
        setData(training, given["--data"]);
    if (given.contains("--checkpoint"))
        training.checkpoints = given["--checkpoint"];
    if (given.contains("--resume"))
        training.resume = given["--resume"];
    const SuperviseOptions options{.controlDescriptor = STDIN_FILENO, .signals = true};
    const auto outcome = superviseRun(*request, options, writeLine);
    if (!outcome) {
        std::fprintf(stderr, "planloom-exec: %s\n", describe(outcome.error()).c_str());
        return statusOf(outcome.error());
    }
    return outcome->check && !outcome->check->ok ? 1 : 0;
}
