#include "app/cli/model.h"
#include "app/cli/without_effect.h"

#include "engine/base/files.h"
#include "engine/design/models/model_rows.h"
#include "engine/design/models/table_file.h"
#include "engine/design/remembered.h"
#include "engine/frontend/file_kind.h"
#include "engine/frontend/torch/module_classes.h"
#include "engine/gallery/usual_rows.h"
#include "engine/hardware/framework.h"
#include "engine/interop/autodist_yaml.h"
#include "engine/lowering/program/execution_plan_json.h"
#include "engine/table/table_text.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <utility>

namespace planloom::cli {

Result<ModelSource> modelSource(const Arguments &arguments, const std::string &model)
{
    ModelSource source{model, {}, {}};
    ModelOptions &options = source.options;
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
    for (const auto &[option, as] :
        {std::pair("parameter", StoredAs::Parameter), std::pair("constant", StoredAs::Constant)}) {
        for (const std::string &name : arguments.texts(option)) {
            if (const auto [known, isNew] = options.storedAs.emplace(name, as); !isNew && known->second != as)
                return Error{ErrorCode::InvalidInput, "\"" + name + "\" cannot be a parameter and a constant",
                    {}, "--" + std::string(option)};
        }
    }
    for (const std::string &name : arguments.texts("as-input")) {
        if (options.storedAs.count(name) != 0)
            return Error{ErrorCode::InvalidInput, "\"" + name + "\" cannot be an input and be stored", {},
                "--as-input"};
        options.asInputs.insert(name);
    }
    for (const std::string &file : arguments.texts("operators")) {
        std::error_code failure;
        const auto absolute = std::filesystem::absolute(file, failure);
        options.operatorFiles.insert(failure ? file : absolute.lexically_normal().string());
    }
    for (const std::string &capacity : arguments.texts("capacity")) {
        const std::size_t equals = capacity.rfind('=');
        const std::string name = equals == std::string::npos ? "*" : capacity.substr(0, equals);
        TRY(options.capacities[name],
            capacityNamed(equals == std::string::npos ? capacity : capacity.substr(equals + 1)));
    }
    for (const std::string &name : arguments.texts("unroll"))
        options.unroll.insert(name == "all" ? "*" : name);
    options.inference = arguments.has("inference");
    TRY(options.optimizer, optimizerNamed(arguments.text("optimizer", nameOf(options.optimizer))));
    TRY(options.learningRate, arguments.real("learning-rate", options.learningRate));
    TRY(options.weightDecay, arguments.real("weight-decay", options.weightDecay));
    TRY(options.clipNorm, arguments.real("clip-norm", options.clipNorm));
    return source;
}

Result<ModelSnapshot> openToTrain(const ModelSource &source)
{
    TRY(auto model, openModel(source, {}, KeepContent::No));
    TRY_VOID(requireTrainingStep(*model));
    return model;
}

Result<PlanRequest> planRequest(const Arguments &arguments, const std::string &model,
    const std::map<std::string, Shape> &shapes, const ModelSnapshot &known)
{
    PlanRequest request;
    const std::string table = arguments.text("table", arguments.text("watch"));
    const bool isAutodist = isAutodistFile(table);
    if (!table.empty() && !isAutodist) {
        TRY(request.table, readTableFile(table));
    }
    TRY(ModelSource source, modelSource(arguments, model));
    source.options = withRows(std::move(source.options), request.table);
    if (!shapes.empty()) {
        TRY(source.options, withArrays(source, shapes));
    }
    const auto isOpen = [&](const OpenedModel &opened) {
        ModelSource same = opened.source; // files that it needed stand in its options, too
        same.options.operatorFiles = source.options.operatorFiles;
        return same == source;
    };
    if (known && isOpen(*known)) {
        request.model = known;
    } else {
        TRY(request.model, openModel(source, {}, KeepContent::No));
        // What is given a value is an input, whatever the file's rules took it for.
        if (const auto given = storedWithoutValues(*request.model, shapes); !given.empty()) {
            source.options.asInputs.insert(given.begin(), given.end());
            TRY(request.model, openModel(source, {}, KeepContent::No));
        }
    }
    TRY_VOID(checkEffects(arguments, *request.model));
    if (isAutodist) { // read against the model
        const std::string &path = table;
        TRY(const std::string text, readFile(path, {.pipes = true}));
        TRY(const ModuleClasses classes, moduleClassesOf(source.source, source.content));
        TRY(const AutodistRows rows,
            readAutodist(text, path, *request.model, arguments.text("axis", kAutodistAxis), classes));
        for (const std::string &note : rows.notes)
            std::fprintf(stderr, "planloom-cli: warning: %s: %s\n", path.c_str(), note.c_str());
        request.table = TableDocument(print(rows.table));
    }
    request.needsTraining = true; // a plan of the forward pass alone is asked for with --inference
    TRY(const auto devices, arguments.integer("devices", 0, 1, 16384));
    request.target.deviceCount = static_cast<std::int32_t>(devices);
    request.target.cluster = clusterWord(arguments, devices > 0 ? "cpu" : "cpu:1");

    TRY(const auto microBatches, arguments.integer("micro-batches", 0, 1, 1 << 20));
    request.gallery = arguments.text("gallery");
    if (arguments.has("gallery") && request.gallery.empty())
        return Error{ErrorCode::NotFound, "there is no gallery plan without a name", {}, "--gallery"};
    if (arguments.has("precision")) {
        const std::string preset = arguments.text("precision");
        if (!precisionPresetNamed(preset))
            return Error{ErrorCode::InvalidInput,
                "expected fp32, tf32, bf16, fp16 or fp8, found \"" + preset + "\"",
                "single settings are a row of the table: precision all : bf16 optimizer=bf16", "--precision"};
        TRY_VOID(request.table.apply(insertText(request.table, 0, "precision all : " + preset)));
    }
    if (arguments.has("recompute")) {
        TRY(const std::string row, recomputeRow(*request.model, arguments.text("recompute")));
        if (!row.empty())
            TRY_VOID(request.table.apply(insertText(request.table, 0, row)));
    }
    if (arguments.has("zero")) {
        const std::string stage = arguments.text("zero");
        if (stage.size() != 1 || stage[0] < '0' || stage[0] > '3')
            return Error{ErrorCode::InvalidInput, "expected a stage from 0 to 3, found \"" + stage + "\"", {},
                "--zero"};
        if (stage != "0")
            TRY_VOID(request.table.apply(insertText(request.table, 0, "zero" + stage + " weight:*")));
    }
    if (arguments.has("offload")) {
        TRY(const auto rows, offloadRows(arguments.text("offload")));
        for (const std::string &row : rows)
            TRY_VOID(request.table.apply(insertText(request.table, 0, row)));
    }
    if (arguments.has("attention")) {
        const std::string mode = arguments.text("attention");
        if (!attentionModeNamed(mode))
            return Error{ErrorCode::InvalidInput, "expected fused or plain, found \"" + mode + "\"", {},
                "--attention"};
        TRY_VOID(request.table.apply(insertText(request.table, 0, "attention all : " + mode)));
    }
    if (microBatches > 0 && !arguments.has("gallery")) {
        const std::string row = "micro-batches " + std::to_string(microBatches);
        TRY_VOID(request.table.apply(insertText(request.table, 0, row)));
    } else if (microBatches > 0 && request.gallery.find("micro-batches=") == std::string::npos) {
        // The gallery balances its plan for the micro-batches it knows of.
        request.gallery += (request.gallery.find(':') == std::string::npos ? ":" : ",")
            + std::string("micro-batches=") + std::to_string(microBatches);
    }
    return request;
}

Result<ExecutionPlan> readPlan(const std::string &path)
{
    TRY(const auto text, readFile(path, {.pipes = true}));
    auto plan = executionPlanFromJson(text);
    if (!plan) {
        if (const auto kind = findFileKind(text);
            kind && kind != FileKind::ExecutionPlan && kind != FileKind::Json)
            return Error{ErrorCode::InvalidInput,
                std::string("this is ") + nameOf(*kind) + ", where an execution plan was expected",
                "planloom-cli solve MODEL --out FILE writes one", path};
        Error error = std::move(plan).error();
        error.where = path + ":" + error.where;
        return error;
    }
    return plan;
}

std::string clusterWord(const Arguments &arguments, const std::string &usual)
{
    const std::string cluster = arguments.text("cluster", usual);
    return joinFramework(cluster, arguments.text("framework"));
}

Result<Cluster> clusterOf(const Arguments &arguments, const ExecutionPlan &plan)
{
    const TargetChoice target =
        arguments.has("cluster") ? TargetChoice{clusterWord(arguments, ""), {}, 0} : rememberedTarget(plan);
    TRY(const Target found, resolve(target));
    const Cluster &cluster = found.cluster;
    if (cluster.deviceCount < static_cast<std::int32_t>(plan.devices.size()))
        return Error{ErrorCode::InvalidInput,
            "the plan uses " + std::to_string(plan.devices.size()) + " devices, " + cluster.name + " has "
                + std::to_string(cluster.deviceCount),
            "name a larger cluster", "--cluster"};
    return cluster;
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

namespace {

/// True if two tensors are of one type in files: a plan may be older than the way in which its model's
/// weights are divided into parts now.
bool holdsSameValues(const Graph &plan, TensorId mine, const Graph &model, TensorId theirs)
{
    return plan.at(mine).type.dataType == model.at(theirs).type.dataType
        && shapeInFiles(plan, mine) == shapeInFiles(model, theirs);
}

} // namespace

Result<ExecutionPlan> planWithValues(const std::string &path)
{
    TRY(auto plan, readPlan(path));
    auto source = rememberedModel(plan);
    if (!source) {
        Error error = std::move(source).error();
        error.where = path + ":" + error.where;
        return error;
    }
    if (!isAtHand(*source)) {
        std::fprintf(stderr,
            "planloom-cli: warning: the model %s is not at hand: what the plan's graph stores has no values "
            "but those "
            "that --random-weights draws\n",
            source->source.c_str());
        return plan;
    }
    TRY(const auto model, openToTrain(*source));
    std::map<std::string, TensorId> byName;
    for (std::size_t i = 0; i < model->graph->tensors.size(); ++i)
        byName[model->graph->tensors[i].name] = TensorId{static_cast<std::int32_t>(i)};
    Graph graph = *plan.graph;
    for (std::size_t i = 0; i < graph.tensors.size(); ++i) {
        const TensorId id{static_cast<std::int32_t>(i)};
        Tensor &tensor = graph.tensors[i];
        if (tensor.role == TensorRole::Activation || tensor.role == TensorRole::Gradient)
            continue;
        const auto it = byName.find(tensor.name);
        if (it == byName.end() || !holdsSameValues(graph, id, *model->graph, it->second))
            return Error{ErrorCode::InvalidInput,
                "the model " + source->source + " is not the one the plan was made for: "
                    + (it == byName.end() ? "it has no tensor " : "it has another type of ") + tensor.name,
                "solve the model again", path};
        const Tensor &known = model->graph->at(it->second);
        tensor.data = known.data;
        if (known.data && known.type != tensor.type) {
            auto data = std::make_shared<TensorData>(*known.data);
            data->type = tensor.type;
            tensor.data = std::move(data);
        }
        tensor.external = known.external;
    }
    plan.graph = std::make_shared<const Graph>(std::move(graph));
    return plan;
}

} // namespace planloom::cli
