#include "engine/frontend/onnx/import_onnx.h"

#include "engine/base/files.h"
#include "engine/frontend/complete_import.h"
#include "engine/frontend/finish_import.h"
#include "engine/frontend/onnx/onnx_graph_importer.h"
#include "engine/frontend/onnx/onnx_inputs.h"
#include "engine/frontend/onnx/onnx_reader.h"
#include "engine/frontend/onnx/parameters/onnx_parameters.h"
#include "engine/frontend/onnx/parameters/onnx_restore.h"

#include <set>
#include <utility>

namespace planloom {

namespace {

constexpr std::int64_t kOldestOpset = 7;
constexpr std::int64_t kNewestOpset = 25;

/// @return NotSupported for operator sets that are older than what is read
Result<void> checkOpset(std::int64_t opset, const std::string &place)
{
    if (opset >= kOldestOpset)
        return {};
    return Error{ErrorCode::NotSupported,
        opset < 1 ? "the file does not say which operator set it uses"
                  : "the file uses operator set " + std::to_string(opset) + ", where 7 or newer was expected",
        "export the model anew, with operator set 17", place};
}

/// True if a value of this type is not what the file declares. @param isLoss  it becomes a scalar
bool differsFrom(const OnnxValue &declared, const TensorType &type, bool isLoss)
{
    bool differs = declared.dataType && *declared.dataType != type.dataType;
    if (declared.shape && !isLoss) {
        differs = differs || declared.shape->size() != type.shape.size();
        for (std::size_t i = 0; !differs && i < type.shape.size(); ++i)
            differs = (*declared.shape)[i].size && *(*declared.shape)[i].size != type.shape[i];
    }
    return differs;
}

/// What the model's graph returns.
Result<ReturnedValues> returnedBy(
    const OnnxGraph &graph, const OnnxGraphImporter &nodes, GraphWriter &writer, const std::string &place)
{
    const auto error = [&](ErrorCode code, const std::string &what, const char *advice) {
        return Error{code, "the model returns " + what, advice, place};
    };
    if (graph.outputs.empty())
        return error(ErrorCode::InvalidInput, "nothing", "name its outputs when exporting it");
    const std::string &named = writer.options().lossOutput;
    const std::string loss = named.empty() ? "loss" : named;
    ReturnedValues returned;
    std::set<std::string> names;
    for (const OnnxValue &output : graph.outputs) {
        const TensorId id = nodes.find(output.name);
        if (!id && nodes.findSequence(output.name) != nullptr)
            return error(ErrorCode::NotSupported, "'" + output.name + "', a sequence of tensors",
                "export the model with tensors as outputs");
        if (!id)
            return error(ErrorCode::InvalidInput, "'" + output.name + "', which nothing makes",
                "export the model anew");
        if (!names.insert(output.name).second)
            return error(ErrorCode::InvalidInput, "'" + output.name + "' twice", "export the model anew");
        const TensorType &type = writer.typeOf(id);
        if (writer.at(id).typeKnown && elementCount(type.shape) != 0
            && differsFrom(output, type, output.name == loss))
            writer.note("the output '" + output.name + "' is " + nameOf(type.dataType) + toString(type.shape)
                + ", not what the file declares");
        returned.values.push_back({output.name, id});
    }
    return returned;
}

Result<Graph> importNamed(std::string_view bytes, const std::filesystem::path &folder,
    const ImportOptions &options, const std::string &place, const std::string &name)
{
    if (bytes.size() > options.mostFileBytes)
        return Error{ErrorCode::ResourceLimit,
            "the file has " + std::to_string(bytes.size()) + " bytes, more than the "
                + std::to_string(options.mostFileBytes) + " that are allowed",
            "store the weights as external data", place};
    TRY(OnnxModel model, readOnnx(bytes, folder, place));
    TRY(Graph graph, importOnnxModel(std::move(model), options, place));
    if (!name.empty())
        graph.name = name;
    return completeImport(std::move(graph), options, true);
}

Result<std::string> readModel(const std::filesystem::path &path, const ImportOptions &options)
{
    auto bytes = readFile(path, {.what = "model file", .mostBytes = options.mostFileBytes});
    if (!bytes) {
        Error error = std::move(bytes).error();
        error.where = path.filename().string();
        if (error.code == ErrorCode::ResourceLimit)
            error.advice = "store the weights as external data";
        else if (error.code == ErrorCode::NotFound || error.code == ErrorCode::InvalidInput)
            error.advice = "give the path of a model file (.onnx, .pt2)";
        return error;
    }
    return bytes;
}

std::filesystem::path folderOf(const std::filesystem::path &path)
{
    return path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
}

} // namespace

Result<Graph> importOnnxModel(OnnxModel model, const ImportOptions &options, const std::string &place)
{
    TRY_VOID(checkOpset(model.opset, place));
    TRY_VOID(checkOptions(options, place));
    GraphWriter writer(options);
    for (const std::string &note : restoreFromMetadata(model.graph, options.storedAs))
        writer.note(note);
    OnnxGraphImporter nodes(model, writer, place);
    TRY_VOID(nodes.begin());
    const ParameterRules rules(model.graph, nodes.uses(), options.storedAs);
    nodes.setRules(rules);
    TRY(auto dimensions, openDimensionsOf(model.graph).resolve(options.dimensions, place));
    OnnxInputs inputs(model.graph, rules, sizesOf(dimensions), writer, nodes, place);
    TRY_VOID(inputs.add());
    TRY_VOID(nodes.importNodes());
    TRY(const ReturnedValues returned, returnedBy(model.graph, nodes, writer, place));
    std::vector<std::string> notes = inputs.notes();
    if (model.opset > kNewestOpset)
        notes.insert(notes.begin(),
            "operator set " + std::to_string(model.opset) + " is newer than " + std::to_string(kNewestOpset)
                + ": operators that changed since may be read wrongly");
    TRY(Graph graph, finishImport(writer, returned, notes, place));
    graph.name = model.graph.name;
    graph.dimensions = std::move(dimensions);
    return graph;
}

Result<std::vector<InputDimension>> onnxDimensions(std::string_view bytes,
    const std::filesystem::path &folder, const ImportOptions &options, const std::string &name)
{
    TRY(const OnnxModel model, readOnnx(bytes, folder, name));
    return openDimensionsOf(model.graph).resolve(options.dimensions, name, OpenDimensions::Missing::Left);
}

Result<std::vector<InputDimension>> onnxFileDimensions(
    const std::filesystem::path &path, const ImportOptions &options)
{
    TRY(const std::string bytes, readModel(path, options));
    return onnxDimensions(bytes, folderOf(path), options, path.filename().string());
}

Result<Graph> importOnnxFile(const std::filesystem::path &path, const ImportOptions &options)
{
    TRY(const std::string bytes, readModel(path, options));
    return importNamed(bytes, folderOf(path), options, path.filename().string(), path.stem().string());
}

Result<Graph> importOnnxBytes(std::string_view bytes, const std::filesystem::path &folder,
    const ImportOptions &options, const std::string &name)
{
    return importNamed(bytes, folder, options, name, {});
}

} // namespace planloom
