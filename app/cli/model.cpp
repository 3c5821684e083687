#include "app/cli/model.h"

#include "engine/base/words.h"
#include "engine/frontend/file_kind.h"
#include "engine/frontend/import_onnx.h"
#include "engine/frontend/training.h"
#include "engine/frontend/zoo.h"
#include "engine/lowering/execution_plan_json.h"
#include "engine/lowering/in_flight.h"
#include "engine/lowering/lower.h"
#include "engine/plan/gallery.h"
#include "engine/plan/table_json.h"
#include "engine/plan/table_text.h"

#include <algorithm>
#include <cstdio>
#include <chrono>
#include <fstream>
#include <sstream>

namespace planloom::cli {

Result<std::string> readFile(const std::filesystem::path &path)
{
    std::error_code failure;
    if (!std::filesystem::exists(path, failure))
        return Error{ErrorCode::NotFound, "there is no such file", "check the path", path.string()};
    if (std::filesystem::is_directory(path, failure))
        return Error{ErrorCode::InvalidInput, "expected a file, found a folder", {}, path.string()};
    std::ifstream stream(path, std::ios::binary);
    std::ostringstream bytes;
    bytes << stream.rdbuf();
    if (!stream)
        return Error{ErrorCode::Io, "cannot be read", "check its permissions", path.string()};
    return std::move(bytes).str();
}

Result<void> writeFile(const std::filesystem::path &path, std::string_view bytes)
{
    // Beside it first, so that a full disk leaves an older file as it was.
    const std::filesystem::path fresh = path.string() + ".part";
    std::ofstream stream(fresh, std::ios::binary | std::ios::trunc);
    stream.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    stream.close();
    std::error_code failure;
    if (stream)
        std::filesystem::rename(fresh, path, failure);
    if (!stream || failure) {
        std::filesystem::remove(fresh, failure);
        return Error{
            ErrorCode::Io, "cannot be written", "check that the folder exists and has room", path.string()};
    }
    return {};
}

Result<Graph> loadForward(const Arguments &arguments, const std::string &model)
{
    if (isZooSpec(model))
        return buildZooModel(model);
    ImportOptions options;
    options.lossOutput = arguments.text("loss");
    for (const std::string &dimension : arguments.texts("dim")) {
        const std::size_t equals = dimension.find('=');
        char *end = nullptr;
        const long long size =
            equals == std::string::npos ? 0 : std::strtoll(dimension.c_str() + equals + 1, &end, 10);
        if (equals == std::string::npos || equals == 0 || *end != '\0' || size < 1)
            return Error{ErrorCode::InvalidInput,
                "expected NAME=SIZE with a size of at least 1, found \"" + dimension + "\"", {}, "--dim"};
        options.dimensions[dimension.substr(0, equals)] = size;
    }
    return importOnnxFile(model, options);
}

Result<LoadedModel> loadModel(const Arguments &arguments, const std::string &model)
{
    LoadedModel loaded;
    TRY(loaded.forward, loadForward(arguments, model));
    if (!loaded.forward.loss || arguments.has("inference")) {
        loaded.graph = std::make_shared<const Graph>(loaded.forward);
        return loaded;
    }
    TrainingOptions options;
    const std::string optimizer = arguments.text("optimizer", "adamw");
    if (optimizer == "adamw")
        options.optimizer = OperatorKind::AdamWStep;
    else if (optimizer == "sgd")
        options.optimizer = OperatorKind::SgdStep;
    else
        return Error{
            ErrorCode::InvalidInput, "expected sgd or adamw, found \"" + optimizer + "\"", {}, "--optimizer"};
    TRY(options.learningRate, arguments.real("learning-rate", options.learningRate));
    TRY(options.weightDecay, arguments.real("weight-decay", 0));
    TRY(auto step, buildTrainingStep(loaded.forward, options));
    loaded.graph = std::make_shared<const Graph>(std::move(step));
    return loaded;
}

Result<Target> targetOf(const Arguments &arguments)
{
    Target target;
    TRY(const auto devices, arguments.integer("devices", 0, 1, 16384));
    const std::string name =
        arguments.text("cluster", "cpu:" + std::to_string(std::max<std::int64_t>(devices, 1)));
    TRY(target.cluster, clusterNamed(name));
    target.devices = devices > 0 ? static_cast<std::int32_t>(devices) : target.cluster.deviceCount;
    if (target.devices > target.cluster.deviceCount)
        return Error{ErrorCode::InvalidInput,
            "the cluster " + target.cluster.name + " has " + std::to_string(target.cluster.deviceCount)
                + " devices, asked for were " + std::to_string(target.devices),
            "ask for fewer, or name a larger cluster", "--devices"};
    return target;
}

namespace {

Result<ConstraintTable> tableOf(const Arguments &arguments, const GraphSnapshot &graph, std::int32_t devices)
{
    ConstraintTable table;
    TRY(const auto microBatches, arguments.integer("micro-batches", 0, 1, 1 << 20));
    if (arguments.has("gallery")) {
        std::string spec = arguments.text("gallery");
        // The gallery balances its plan for the micro-batches it knows of.
        if (microBatches > 0 && spec.find("micro-batches=") == std::string::npos)
            spec += (spec.find(':') == std::string::npos ? ":" : ",") + std::string("micro-batches=")
                + std::to_string(microBatches);
        TRY(table, galleryTable(spec, graph, devices));
    } else if (microBatches > 0) {
        table.rows.push_back(Row{.rule = MicroBatchesRule{static_cast<std::int32_t>(microBatches)}});
    }
    if (arguments.has("table")) {
        const std::string path = arguments.text("table");
        TRY(const auto text, readFile(path));
        const std::size_t first = text.find_first_not_of(" \t\r\n");
        const bool isJson = first != std::string::npos && text[first] == '{';
        auto own = isJson ? tableFromJson(std::string_view(text)) : parseTable(text);
        if (!own) {
            Error error = std::move(own).error();
            error.where = path + ":" + error.where;
            return error;
        }
        for (Row &row : own->rows)
            table.rows.push_back(std::move(row));
    }
    return table;
}

} // namespace

Result<SolvedPlan> solve(const Arguments &arguments, const std::string &model)
{
    SolvedPlan solved;
    TRY(solved.model, loadModel(arguments, model));
    TRY(solved.target, targetOf(arguments));
    const auto start = std::chrono::steady_clock::now();
    TRY(solved.table, tableOf(arguments, solved.model.graph, solved.target.devices));
    TRY(auto completion, completePlan(solved.model.graph, solved.target.devices, solved.table));
    if (auto error = firstError(completion))
        return *std::move(error);
    solved.plan = std::move(completion.plan);
    TRY(solved.execution, lower(solved.plan, solved.target.cluster));
    for (std::size_t row = 0; row < completion.rows.size(); ++row)
        if (!completion.rows[row].warning.empty())
            solved.warnings.push_back(rowWords(static_cast<std::int32_t>(row)) + ": " + completion.rows[row].warning);
    for (const auto &[row, warning] : liftedLimits(solved.plan, solved.execution))
        solved.warnings.push_back(rowWords(row.index) + ": " + warning);
    solved.execution.origin["model"] =
        isZooSpec(model) ? model : std::filesystem::absolute(model).lexically_normal().string();
    solved.execution.origin["cluster"] = solved.target.cluster.name;
    for (const char *option : {"loss", "optimizer", "learning-rate", "weight-decay"})
        if (arguments.has(option))
            solved.execution.origin[option] = arguments.text(option);
    if (arguments.has("inference"))
        solved.execution.origin["inference"] = "1";
    std::string dimensions;
    for (const std::string &dimension : arguments.texts("dim"))
        dimensions += (dimensions.empty() ? "" : ",") + dimension;
    if (!dimensions.empty())
        solved.execution.origin["dim"] = dimensions;
    solved.solveSeconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return solved;
}

Result<ExecutionPlan> readPlan(const std::string &path)
{
    TRY(const auto text, readFile(path));
    auto plan = executionPlanFromJson(text);
    if (!plan) {
        if (const auto kind = findFileKind(text); kind && kind != FileKind::ExecutionPlan && kind != FileKind::Json)
            return Error{ErrorCode::InvalidInput,
                std::string("this is ") + nameOf(*kind) + ", where an execution plan was expected",
                "planloom-cli solve MODEL --out FILE writes one", path};
        Error error = std::move(plan).error();
        error.where = path + ":" + error.where;
        return error;
    }
    return plan;
}

Result<Arguments> rememberedArguments(const ExecutionPlan &plan)
{
    const auto &spec = *std::find_if(
        verbs().begin(), verbs().end(), [](const VerbSpec &verb) { return verb.name == "solve"; });
    std::vector<std::string> words;
    for (const auto &[name, value] : plan.origin) {
        if (name == "model")
            words.push_back(value);
        else if (name == "inference")
            words.push_back("--inference");
        else if (name == "dim") {
            for (std::size_t begin = 0; begin < value.size();) {
                const std::size_t end = std::min(value.find(',', begin), value.size());
                words.push_back("--dim=" + value.substr(begin, end - begin));
                begin = end + 1;
            }
        } else if (name == "loss" || name == "optimizer" || name == "learning-rate"
            || name == "weight-decay") {
            words.push_back("--" + name + "=" + value);
        }
    }
    return Arguments::parse(spec, words);
}

Result<Cluster> clusterOf(const Arguments &arguments, const ExecutionPlan &plan)
{
    std::string name = arguments.text("cluster");
    if (name.empty()) {
        const auto it = plan.origin.find("cluster");
        name = it == plan.origin.end() ? "cpu:" + std::to_string(plan.devices.size()) : it->second;
    }
    TRY(auto cluster, clusterNamed(name));
    if (cluster.deviceCount < static_cast<std::int32_t>(plan.devices.size()))
        return Error{ErrorCode::InvalidInput,
            "the plan uses " + std::to_string(plan.devices.size()) + " devices, " + cluster.name + " has "
                + std::to_string(cluster.deviceCount),
            "name a larger cluster", "--cluster"};
    return cluster;
}

std::string bytesText(double bytes)
{
    static const char *const kUnits[]{"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    std::size_t unit = 0;
    for (; bytes >= 1024 && unit < 5; ++unit)
        bytes /= 1024;
    char text[32];
    std::snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : "%.2f %s", bytes, kUnits[unit]);
    return text;
}

std::string secondsText(double seconds)
{
    char text[32];
    if (seconds >= 1)
        std::snprintf(text, sizeof text, "%.3f s", seconds);
    else if (seconds >= 1e-3)
        std::snprintf(text, sizeof text, "%.3f ms", seconds * 1e3);
    else
        std::snprintf(text, sizeof text, "%.1f us", seconds * 1e6);
    return text;
}

} // namespace planloom::cli
