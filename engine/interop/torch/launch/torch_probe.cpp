#include "engine/interop/torch/launch/torch_probe.h"

#include "engine/interop/torch/launch/child_process.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include <poll.h>
#include <unistd.h>

namespace planloom {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::array<int, 2> kOldestTorch{2, 6};

constexpr const char *kProbe = R"python(
import json, sys
found = {"python": "%d.%d.%d" % sys.version_info[:3]}
try:
    import torch
    import torch.distributed as dist
    found.update(torch=str(torch.__version__), distributed=dist.is_available(), gpus=torch.cuda.device_count(), cuda=str(torch.version.cuda or torch.version.hip or ""))
    if dist.is_available():
        found.update(gloo=dist.is_gloo_available() if hasattr(dist, "is_gloo_available") else True, nccl=dist.is_nccl_available())
    if not torch.cuda.is_available():
        found.update(gpus=0, no_gpus="PyTorch sees no GPU" if torch.version.cuda or torch.version.hip else "this PyTorch was built without CUDA")
except BaseException as error:
    found["no_torch"] = "%s: %s" % (type(error).__name__, error)
print("PLANLOOM " + json.dumps(found))
)python";

std::string executableAt(const fs::path &path)
{
    std::error_code ignored;
    return fs::is_regular_file(path, ignored) && ::access(path.c_str(), X_OK) == 0 ? path.string()
                                                                                   : std::string{};
}

Error noPython(const std::string &python, const std::string &why)
{
    return {ErrorCode::InvalidInput, "it is no Python that answers: " + why,
        "name another one with --python, such as VENV/bin/python", python};
}

/// All that arrives until the end, or the time is over. @return false if it is, or was stopped
bool readUntilEnd(ChildProcess &child, std::string &output, std::string &errors, double seconds,
    const std::stop_token &stop)
{
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    std::array<pollfd, 2> waits{pollfd{child.output(), POLLIN, 0}, pollfd{child.errors(), POLLIN, 0}};
    while (waits[0].fd >= 0 || waits[1].fd >= 0) {
        if (stop.stop_requested() || std::chrono::steady_clock::now() >= end)
            return false;
        ::poll(waits.data(), waits.size(), 200);
        for (std::size_t i = 0; i < waits.size(); ++i) {
            std::array<char, 4096> chunk{};
            const ssize_t count =
                waits[i].revents != 0 ? ::read(waits[i].fd, chunk.data(), chunk.size()) : -1;
            if (count > 0)
                (i == 0 ? output : errors).append(chunk.data(), static_cast<std::size_t>(count));
            else if (count == 0)
                waits[i].fd = -1;
        }
    }
    return true;
}

bool isOlder(const std::string &version)
{
    std::array<int, 2> found{};
    return std::sscanf(version.c_str(), "%d.%d", &found[0], &found[1]) == 2 && found < kOldestTorch;
}

} // namespace

std::string pythonOnPath()
{
    const auto variable = [](const char *name) {
        const char *const value = std::getenv(name);
        return std::string(value ? value : "");
    };
    if (const std::string environment = variable("VIRTUAL_ENV"); !environment.empty())
        if (const std::string path = executableAt(fs::path(environment) / "bin/python3"); !path.empty())
            return path;
    std::string folders = variable("PATH");
    while (!folders.empty()) {
        const std::size_t end = std::min(folders.find(':'), folders.size());
        if (const std::string path = executableAt(fs::path(folders.substr(0, end)) / "python3");
            end > 0 && !path.empty())
            return path;
        folders.erase(0, end + 1);
    }
    return {};
}

Result<TorchProbe> torchProbeIn(std::string_view text, const std::string &python)
{
    const std::size_t mark = text.rfind("PLANLOOM {");
    if (mark == std::string_view::npos)
        return noPython(
            python, text.empty() ? "it said nothing" : "it said " + std::string(text.substr(0, 80)));
    const json found = json::parse(text.substr(mark + 9), nullptr, false);
    if (!found.is_object())
        return noPython(python, "what it said is cut off");
    try {
        TorchProbe probe;
        probe.python = python;
        probe.pythonVersion = found.value("python", std::string{});
        probe.torch = found.value("torch", std::string{});
        probe.whyNoTorch = found.value("no_torch", std::string{});
        probe.distributed = found.value("distributed", false);
        probe.gloo = found.value("gloo", false);
        probe.nccl = found.value("nccl", false);
        probe.gpus = found.value("gpus", 0);
        probe.whyNoGpus = found.value("no_gpus", std::string{});
        probe.cuda = found.value("cuda", std::string{});
        probe.said = text.substr(mark);
        return probe;
    } catch (const json::exception &failure) {
        return noPython(python, failure.what());
    }
}

Result<TorchProbe> probeTorch(const std::string &python, double seconds, const std::stop_token &stop)
{
    auto child = ChildProcess::start({python, "-c", kProbe});
    if (!child)
        return Error{ErrorCode::NotFound, child.error().message,
            "name a Python that has PyTorch with --python, such as VENV/bin/python", python};
    std::string output;
    std::string errors;
    if (!readUntilEnd(*child, output, errors, seconds, stop))
        return stop.stop_requested()
            ? cancelled()
            : noPython(python, "nothing came within " + std::to_string(static_cast<int>(seconds)) + " s");
    return torchProbeIn(output.empty() ? errors : output, python);
}

Result<TorchPlace> torchPlaceOf(const TorchProbe &probe, std::int32_t processes)
{
    const auto no = [&](const std::string &why, const std::string &advice) {
        return Error{ErrorCode::NotSupported, why, advice, probe.python};
    };
    const std::string install = probe.python + " -m pip install --upgrade torch";
    if (probe.torch.empty())
        return no(
            "Python " + probe.pythonVersion + " here has no PyTorch that works (" + probe.whyNoTorch + ")",
            install + ", or name another one with --python");
    if (isOlder(probe.torch))
        return no("this is PyTorch " + probe.torch + ", and exported plans need 2.6 or newer", install);
    if (!probe.distributed)
        return no("this PyTorch was built without torch.distributed", install);
    if (probe.gpus >= processes && probe.nccl)
        return TorchPlace{true, {}};
    if (!probe.gloo)
        return no("this PyTorch has no gloo, which processes on CPUs communicate by", install);
    if (probe.gpus == 0)
        return TorchPlace{false, probe.whyNoGpus};
    if (probe.gpus < processes)
        return TorchPlace{false,
            "there are " + std::to_string(probe.gpus) + " GPUs for " + std::to_string(processes)
                + " processes"};
    return TorchPlace{false, "this PyTorch has no NCCL"};
}

} // namespace planloom
