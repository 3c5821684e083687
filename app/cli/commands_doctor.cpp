#include "app/cli/commands.h"
#include "app/cli/verbs.h"

#include "engine/base/nearest_name.h"
#include "engine/cuda/backend/cuda_plugin.h"
#include "engine/cuda/nccl/nccl_functions.h"
#include "engine/interop/torch/launch/torch_probe.h"
#include "engine/kernels/products/onednn_version.h"
#include "engine/runtime/machine/doctor.h"
#include "engine/terminal/exit_status.h"
#include "engine/terminal/help.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <system_error>

#include <unistd.h>

namespace planloom::cli {

namespace {

namespace fs = std::filesystem;

std::string variable(const char *name)
{
    const char *const value = std::getenv(name);
    return value ? value : "";
}

std::string ifExecutable(const fs::path &path)
{
    std::error_code ignored;
    const bool isFile = fs::is_regular_file(path, ignored);
    return isFile && ::access(path.c_str(), X_OK) == 0 ? path.string() : std::string{};
}

/// The version of an interpreter's torch, by the package's metadata: importing torch takes seconds. Empty
/// without it.
std::string torchVersion(const std::string &python)
{
    std::string quoted = "'";
    for (const char c : python)
        quoted += c == '\'' ? "'\\''" : std::string(1, c);
    FILE *const pipe = ::popen(
        (quoted + "' -c 'import importlib.metadata as m; print(m.version(\"torch\"))' 2>/dev/null </dev/null")
            .c_str(),
        "r");
    if (!pipe)
        return {};
    std::array<char, 128> line{};
    const bool isRead = std::fgets(line.data(), line.size(), pipe) != nullptr;
    if (::pclose(pipe) != 0 || !isRead)
        return {};
    const std::string version = line.data();
    return version.substr(0, version.find_first_of("\r\n"));
}

InstallationFacts factsOfThisMachine()
{
    InstallationFacts facts;
    facts.version = program().version;
    std::error_code ignored;
    const fs::path folder = fs::read_symlink("/proc/self/exe", ignored).parent_path();
    facts.window = ifExecutable(folder / "planloom");
    facts.runner = ifExecutable(folder / "planloom-exec");
    for (const fs::path &place : {folder, folder.parent_path() / "lib/planloom"})
        if (facts.layoutHelper.empty())
            facts.layoutHelper = ifExecutable(place / "planloom-layout");
    const std::string wayland = variable("WAYLAND_DISPLAY");
    facts.display = wayland.empty() ? variable("DISPLAY") : wayland;
    facts.oneDnn = oneDnnVersion();
    for (const std::string &path : cudaPluginPaths())
        if (facts.plugin.empty() && fs::exists(path, ignored))
            facts.plugin = path;
    if (!facts.plugin.empty())
        if (const auto opened = openCudaPlugin(); !opened)
            facts.pluginProblem = opened.error().message;
    facts.oldestNccl = std::to_string(kOldestNccl / 10000) + "." + std::to_string(kOldestNccl / 100 % 100);
    facts.python = pythonOnPath();
    facts.torch = facts.python.empty() ? std::string{} : torchVersion(facts.python);
    facts.probe = probeMachine();
    return facts;
}

nlohmann::json toJson(const Finding &finding)
{
    nlohmann::json lacks = nlohmann::json::array();
    for (const Lack &lack : finding.lacks)
        lacks.push_back({{"missing", lack.what}, {"remedy", lack.remedy}});
    return {{"name", finding.name}, {"feature", finding.feature},
        {"works", finding.readiness != FeatureState::Missing},
        {"whole", finding.readiness == FeatureState::Ready}, {"found", finding.found},
        {"lacks", std::move(lacks)}};
}

} // namespace

Result<int> runDoctor(const Arguments &arguments)
{
    const InstallationFacts facts = factsOfThisMachine();
    std::vector<Finding> findings = examine(facts);
    if (arguments.has("feature")) {
        const std::string name = arguments.text("feature");
        std::vector<std::string_view> known;
        std::string list;
        for (const Finding &finding : findings) {
            known.push_back(finding.name);
            list += (list.empty() ? "" : ", ") + finding.name;
        }
        if (std::find(known.begin(), known.end(), name) == known.end()) {
            const std::string guess = didYouMean(name, known);
            return Error{ErrorCode::InvalidInput,
                "expected one of " + list + ", found \"" + name + "\"" + (guess.empty() ? "" : ": " + guess),
                {}, "--feature"};
        }
        std::erase_if(findings, [&](const Finding &finding) { return finding.name != name; });
    }
    if (arguments.has("json")) {
        nlohmann::json object{{"version", facts.version}, {"features", nlohmann::json::array()}};
        for (const Finding &finding : findings)
            object["features"].push_back(toJson(finding));
        std::cout << object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
    } else {
        std::cout << pageOf(facts, findings, terminalWidth());
    }
    const bool isAsked = arguments.has("feature");
    return isAsked && findings.front().readiness == FeatureState::Missing ? kExitFailed : kExitDone;
}

} // namespace planloom::cli
