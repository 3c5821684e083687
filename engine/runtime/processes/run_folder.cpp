#include "engine/runtime/processes/run_folder.h"

#include "engine/interop/npz.h"
#include "engine/lowering/program/execution_plan_json.h"

#include <cstring>
#include <filesystem>
#include <map>
#include <span>
#include <system_error>
#include <vector>

#include <nlohmann/json.hpp>

namespace planloom {

namespace {

constexpr std::size_t kArchiveSize = std::size_t{1} << 30U;
using Json = nlohmann::json;

Result<void> writeText(const std::filesystem::path &path, const std::string &text)
{
    return writeBytes(path.string(), std::as_bytes(std::span{text}));
}

Result<std::string> readText(const std::string &path)
{
    TRY(const auto bytes, readBytes(path));
    return std::string{reinterpret_cast<const char *>(bytes.data()), bytes.size()};
}

Result<ExecutionPlan> readPlan(const std::string &path)
{
    TRY(const auto text, readText(path));
    auto plan = executionPlanFromJson(text);
    if (!plan) {
        Error error = std::move(plan).error();
        error.where = path + error.where;
        return error;
    }
    return plan;
}

/// Gives the tensors of `plan` the values and files found beside it.
void attach(ExecutionPlan &plan, const std::map<std::string, std::shared_ptr<const TensorData>> &weights,
    const std::map<std::string, ExternalData> &external)
{
    auto graph = std::make_shared<Graph>(*plan.graph);
    for (Tensor &tensor : graph->tensors) {
        if (const auto found = weights.find(tensor.name);
            found != weights.end() && found->second->type == tensor.type)
            tensor.data = found->second;
        if (const auto found = external.find(tensor.name); found != external.end())
            tensor.external = found->second;
    }
    plan.graph = std::move(graph);
}

Result<Json> weightFiles(const std::filesystem::path &folder, const Graph &graph)
{
    Json files = Json::array();
    NamedArrays shard;
    std::size_t bytes = 0;
    const auto flush = [&]() -> Result<void> {
        if (shard.empty())
            return {};
        const std::string name = "weights_" + std::to_string(files.size()) + ".npz";
        TRY_VOID(writeNpz((folder / name).string(), shard));
        files.push_back(name);
        shard.clear();
        bytes = 0;
        return {};
    };
    for (const Tensor &tensor : graph.tensors) {
        if (!tensor.data)
            continue;
        if (bytes + tensor.data->bytes.size() > kArchiveSize)
            TRY_VOID(flush());
        bytes += tensor.data->bytes.size();
        shard.emplace(tensor.name, *tensor.data);
    }
    TRY_VOID(flush());
    return files;
}

} // namespace

Result<void> writeRunFolder(const std::string &folder, const RunRequest &request)
{
    const std::filesystem::path root{folder};
    const RunOptions &options = request.options;
    TRY_VOID(writeText(root / "plan.json", planFileText(request.plan)));
    Json document{{"version", 1}, {"steps", options.steps}, {"seed", options.seed},
        {"random_weights", options.randomWeights}, {"keep_gradients", options.keepGradients},
        {"poison", options.poison}, {"share_values", options.shareValues},
        {"predicted_step_seconds", request.predictedStepSeconds}, {"libraries", options.libraries},
        {"backend", request.backend}, {"python", request.python}, {"python_said", request.pythonSaid},
        {"outcome", request.outcomeFolder}, {"spans", request.spans}, {"live_spans", request.liveSpans},
        {"ranks", request.ranks}, {"temporary", request.temporary}, {"training", toJson(options.training)}};
    if (request.reference) {
        TRY_VOID(writeText(root / "reference.json", toJson(*request.reference)));
        document["reference"] = "reference.json";
    }
    if (!options.inputs.empty()) {
        TRY_VOID(writeNpz((root / "inputs.npz").string(), options.inputs));
        document["inputs"] = "inputs.npz";
    }
    TRY(document["weights"], weightFiles(root, *request.plan.graph));
    Json external = Json::array();
    for (const Tensor &tensor : request.plan.graph->tensors)
        if (tensor.external && !tensor.data)
            external.push_back({{"tensor", tensor.name}, {"path", tensor.external->path},
                {"offset", tensor.external->offset}, {"length", tensor.external->length},
                {"present", tensor.external->present}});
    document["external"] = std::move(external);
    return writeText(root / "options.json", document.dump(1));
}

Result<RunRequest> readRunFolder(const std::string &planPath, const std::string &optionsPath)
{
    RunRequest request;
    TRY(request.plan, readPlan(planPath));
    TRY(const auto text, readText(optionsPath));
    const std::filesystem::path root = std::filesystem::path{optionsPath}.parent_path();
    const auto beside = [&](const Json &name) {
        const std::filesystem::path path{name.get<std::string>()};
        return (path.is_absolute() ? path : root / path).string();
    };
    std::map<std::string, std::shared_ptr<const TensorData>> weights;
    std::map<std::string, ExternalData> external;
    try {
        const Json document = Json::parse(text);
        if (document.at("version").get<int>() != 1)
            return Error{
                ErrorCode::NotSupported, "these options are of another version of Planloom", {}, optionsPath};
        RunOptions &options = request.options;
        options.steps = document.value("steps", options.steps);
        options.seed = document.value("seed", options.seed);
        options.randomWeights = document.value("random_weights", options.randomWeights);
        options.keepGradients = document.value("keep_gradients", options.keepGradients);
        options.poison = document.value("poison", options.poison);
        options.shareValues = document.value("share_values", options.shareValues);
        options.libraries = document.value("libraries", options.libraries);
        if (const auto training = document.find("training"); training != document.end()) {
            TRY(options.training, trainingRunFromJson(*training));
        }
        request.backend = document.value("backend", request.backend);
        request.python = document.value("python", std::string{});
        request.pythonSaid = document.value("python_said", std::string{});
        request.predictedStepSeconds = document.value("predicted_step_seconds", 0.0);
        request.outcomeFolder = document.value("outcome", std::string{});
        if (!request.outcomeFolder.empty())
            request.outcomeFolder = beside(document.at("outcome"));
        request.spans = document.value("spans", true);
        request.liveSpans = document.value("live_spans", false);
        request.ranks = document.value("ranks", request.ranks);
        request.temporary = document.value("temporary", false);
        if (options.steps < 1)
            return Error{ErrorCode::InvalidInput, "steps must be at least 1", {}, optionsPath + "/steps"};
        if (document.contains("inputs")) {
            TRY(options.inputs, readInputs(beside(document.at("inputs"))));
        }
        for (const Json &file : document.value("weights", Json::array())) {
            TRY(auto arrays, readNpz(beside(file)));
            for (auto &[name, array] : arrays)
                weights[name] = std::make_shared<const TensorData>(std::move(array));
        }
        for (const Json &entry : document.value("external", Json::array()))
            external[entry.at("tensor").get<std::string>()] = {entry.at("path").get<std::string>(),
                entry.at("offset").get<std::int64_t>(), entry.at("length").get<std::int64_t>(),
                entry.at("present").get<bool>()};
        if (document.contains("reference")) {
            TRY(auto reference, readPlan(beside(document.at("reference"))));
            attach(reference, weights, external);
            request.reference = std::make_shared<const ExecutionPlan>(std::move(reference));
        }
    } catch (const Json::exception &failure) {
        return Error{ErrorCode::InvalidInput, std::string{"the options cannot be read: "} + failure.what(),
            "let planloom-cli write them", optionsPath};
    }
    attach(request.plan, weights, external);
    return request;
}

void removeRunFolder(const std::string &optionsPath)
{
    const std::filesystem::path folder = std::filesystem::path{optionsPath}.parent_path();
    std::error_code none;
    std::vector<std::filesystem::path> written;
    for (const auto &file : std::filesystem::directory_iterator(folder, none)) {
        const std::string name = file.path().filename().string();
        if (name == "plan.json" || name == "options.json" || name == "reference.json" || name == "inputs.npz"
            || (name.starts_with("weights_") && name.ends_with(".npz")))
            written.push_back(file.path());
    }
    for (const auto &file : written)
        std::filesystem::remove(file, none);
    std::filesystem::remove(folder, none); // fails where something else is in it
}

NamedArrays dumpOf(const RunOutcome &outcome)
{
    NamedArrays arrays;
    TensorData losses{{DataType::Float64, {static_cast<std::int64_t>(outcome.losses.size())}}, {}};
    losses.bytes.resize(outcome.losses.size() * sizeof(double));
    if (!outcome.losses.empty())
        std::memcpy(losses.bytes.data(), outcome.losses.data(), losses.bytes.size());
    arrays.emplace("loss", std::move(losses));
    for (const auto &[name, array] : outcome.outputs)
        arrays.emplace("out/" + name, array);
    for (const auto &[name, array] : outcome.gradients)
        arrays.emplace("grad/" + name, array);
    for (const auto &[name, array] : outcome.weights)
        arrays.emplace("weight/" + name, array);
    return arrays;
}

} // namespace planloom
