#include "app/cli/commands.h"
#include "app/cli/export_config.h"
#include "app/cli/model.h"

#include "engine/base/files.h"
#include "engine/design/models/reference.h"
#include "engine/interop/chakra/chakra.h"
#include "engine/interop/configs/config_formats.h"
#include "engine/interop/perfetto.h"
#include "engine/interop/torch/modules/modules_export.h"
#include "engine/interop/torch/starters.h"
#include "engine/interop/torch/torch_export.h"
#include "engine/lowering/program/expand_units.h"
#include "engine/simulate/simulate.h"

#include <nlohmann/json.hpp>

#include <cstdio>
#include <iostream>
#include <tuple>

namespace planloom::cli {

namespace {

using nlohmann::json;

Result<int> exportPerfetto(const Arguments &arguments)
{
    TRY(const auto plan, readPlan(arguments.positional()));
    TRY(const auto cluster, clusterOf(arguments, plan));
    TRY(const auto timeline, simulate(plan, cluster));
    if (!arguments.has("out")) {
        if (arguments.has("json"))
            return Error{ErrorCode::InvalidInput,
                "--json needs --out: the trace itself goes to standard output", {}, "--json"};
        if (!writePerfetto(std::cout, plan, timeline))
            return Error{ErrorCode::Io, "standard output cannot be written", {}, "stdout"};
        return 0;
    }
    TRY_VOID(writeFileBy(
        arguments.text("out"), [&](std::ostream &stream) { return writePerfetto(stream, plan, timeline); }));
    if (arguments.has("json"))
        std::cout << json{{"format", "perfetto"}, {"file", arguments.text("out")},
            {"spans", timeline.spans.size()}}
                  << "\n";
    return 0;
}

Result<int> exportToTorch(const Arguments &arguments)
{
    if (!arguments.has("out"))
        return Error{ErrorCode::InvalidInput, "--format torch needs --out: the folder to write",
            "planloom-cli export PLAN --format torch --out FOLDER", "--out"};
    TRY(const auto plan, planWithValues(arguments.positional()));
    TRY(const auto reference, referenceOf(plan));
    TRY(const auto made,
        exportTorch(plan, {.weights = arguments.has("weights"), .reference = reference.get()}));
    const std::string folder = arguments.text("out");
    TRY_VOID(writeTorchFolder(made, folder));
    if (arguments.has("json"))
        std::cout << json{{"format", "torch"}, {"folder", folder}, {"processes", made.world},
            {"programs", made.programs}}
                  << "\n";
    else
        std::printf("%s: %d processes, %d distinct programs; start it there with\n  %s\n", folder.c_str(),
            made.world, made.programs,
            commandOf({.processes = made.world,
                          .perNode = made.world,
                          .weights = arguments.has("weights") ? TorchWeights::OfModel : TorchWeights::Drawn})
                .c_str());
    return 0;
}

Result<int> exportToTorchModules(const Arguments &arguments)
{
    if (!arguments.has("out"))
        return Error{ErrorCode::InvalidInput, "--format torch-modules needs --out: the folder to write",
            "planloom-cli export PLAN --format torch-modules --module package.module:make_model --out FOLDER",
            "--out"};
    TRY(const ExecutionPlan plan, readPlan(arguments.positional()));
    TRY(const PlanRequest request, requestRemembered(arguments, plan));
    TRY(const ModulesExport made,
        modulesExport(request, {.module = arguments.text("module"), .leaveOut = arguments.has("leave-out")}));
    if (!made.isWritten())
        return unsaidError(made);
    const std::string folder = arguments.text("out");
    TRY_VOID(writeTorchFolder(made.folder, folder));
    json unsaid = json::array();
    for (const UnsaidRow &row : made.said.unsaid)
        unsaid.push_back({{"row", row.row.index}, {"text", row.text}});
    if (arguments.has("json"))
        std::cout << json{{"format", "torch-modules"}, {"folder", folder}, {"processes", made.folder.world},
            {"whole", made.said.isWhole}, {"unsaid", unsaid}}
                  << "\n";
    else
        std::printf("%s: %d processes; start it with\n  torchrun --nproc-per-node %d %s/train.py --module "
                    "package.module:make_model\n",
            folder.c_str(), made.folder.world, made.folder.world, folder.c_str());
    sayUnsaid("torch-modules", made.said);
    return made.said.isWhole ? 0 : 1;
}

/// Execution traces are of every rank: so many nodes are written at most.
constexpr std::int64_t kMostChakraNodes = 20'000'000;

Result<int> exportChakra(const Arguments &arguments)
{
    if (!arguments.has("out"))
        return Error{ErrorCode::InvalidInput, "--format chakra needs --out: the folder to write",
            "planloom-cli export PLAN --format chakra --out FOLDER", "--out"};
    TRY(const auto folded, readPlan(arguments.positional()));
    TRY(const auto cluster, clusterOf(arguments, folded));
    const std::int64_t nodes = instructionCount(folded) * folded.units.count;
    if (nodes > kMostChakraNodes)
        return Error{ErrorCode::ResourceLimit,
            "execution traces of all ranks would have " + std::to_string(nodes) + " nodes, and at most "
                + std::to_string(kMostChakraNodes) + " are written",
            "export a plan for fewer replicas or micro-batches", "--format"};
    const ExecutionPlan plan = expandUnits(folded);
    TRY(const auto timeline, simulate(plan, cluster));
    TRY(const auto traces, chakraTraces(plan, timeline));
    const std::string folder = arguments.text("out");
    TRY_VOID(writeChakraFolder(plan, traces, folder));
    if (arguments.has("json"))
        std::cout << json{{"format", "chakra"}, {"folder", folder}, {"ranks", traces.size()},
            {"nodes", timeline.spans.size()}}
                  << "\n";
    else
        std::printf("%s: execution traces of %zu ranks, %zu nodes\n", folder.c_str(), traces.size(),
            timeline.spans.size());
    return 0;
}

} // namespace

Result<int> runExport(const Arguments &arguments)
{
    const std::string format = arguments.text("format", "perfetto");
    for (const auto &[option, takes, what] : {std::tuple("weights", format == "torch", "torch"),
             std::tuple("module", format == "torch-modules", "torch-modules"),
             std::tuple("leave-out", format == "torch-modules", "torch-modules"),
             std::tuple("ranks", isConfigFormat(format), "the config of a framework"),
             std::tuple("hosts", arguments.has("ranks"), "--ranks")})
        if (arguments.has(option) && !takes)
            return Error{ErrorCode::InvalidInput, std::string("--") + option + " is for " + what,
                "leave it out", std::string("--") + option};
    if (format == "perfetto")
        return exportPerfetto(arguments);
    if (format == "torch")
        return exportToTorch(arguments);
    if (format == "torch-modules")
        return exportToTorchModules(arguments);
    if (format == "chakra")
        return exportChakra(arguments);
    if (isConfigFormat(format))
        return exportConfig(arguments);
    std::string known = "perfetto, torch, torch-modules, chakra";
    for (const std::string &name : configFormatNames())
        known += ", " + name;
    return Error{
        ErrorCode::NotSupported, "\"" + format + "\" is no format of export", "known: " + known, "--format"};
}

} // namespace planloom::cli
