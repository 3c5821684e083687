#include "engine/design/models/opened_model.h"

#include "engine/base/background_disposal.h"
#include "engine/base/words.h"
#include "engine/design/models/operator_files.h"
#include "engine/frontend/import_model.h"
#include "engine/frontend/training/training.h"
#include "engine/frontend/zoo/zoo.h"
#include "engine/gallery/gallery_experts.h"

#include <filesystem>
#include <utility>

namespace planloom {

namespace {

/// What a window holds in memory and writes into its session.
constexpr std::uintmax_t kMostKeptBytes = std::uintmax_t{1} << 30;

/// Exporters call every graph alike ("torch_jit"): the file's name says more.
std::string nameOfSource(const std::string &source)
{
    if (!isZooSpec(source))
        return std::filesystem::path(source).stem().string();
    const std::size_t begin = source.find(':') + 1;
    return source.substr(begin, source.find('?') - begin);
}

ImportOptions importOptionsOf(const ModelSource &source)
{
    ImportOptions options;
    options.lossOutput = source.options.lossOutput;
    options.dimensions = source.options.dimensions;
    options.storedAs = source.options.storedAs;
    options.asInputs = source.options.asInputs;
    options.capacities = source.options.capacities;
    options.unroll = source.options.unroll;
    return options;
}

Result<Graph> importedFrom(const ModelSource &source, const ImportOptions &options)
{
    const std::filesystem::path path(source.source);
    return source.content.empty() ? importModelFile(path, options)
                                  : importModelBytes(source.content, path, options);
}

/// As `importedFrom`; where the model cannot be read whole, as far as it can be, to be looked at.
Result<Graph> importedOrLookedAt(const ModelSource &source, ImportOptions options)
{
    auto whole = importedFrom(source, options);
    if (whole
        || (whole.error().code != ErrorCode::NotSupported && whole.error().code != ErrorCode::InvalidInput))
        return whole;
    options.look = true;
    auto looked = importedFrom(source, options);
    // Where it fails all the same, it is the file or the options that are wrong. Without obstacles, nothing
    // needs what could not be read.
    return looked ? std::move(looked) : std::move(whole);
}

/// @param texts  filled in with what operator files hold
Result<Graph> forwardOf(
    const ModelSource &source, const std::stop_token &stop, std::map<std::string, std::string> &texts)
{
    if (isZooSpec(source.source))
        return buildZooModel(source.source, source.options.dimensions, source.options.capacities);
    const auto &named = source.options.operatorFiles;
    TRY(FoundOperators found,
        findOperators(
            source.source, {named.begin(), named.end()}, userOperatorFolder(), source.operatorTexts));
    texts = std::move(found.texts);
    ImportOptions options = importOptionsOf(source);
    options.stop = stop;
    options.operators = std::move(found.definitions);
    TRY(Graph graph, importedOrLookedAt(source, std::move(options)));
    graph.notes.insert(graph.notes.end(), found.notes.begin(), found.notes.end());
    return graph;
}

/// Why nothing can be planned of a model with obstacles.
Error planProblemOf(const Graph &graph)
{
    const Obstacle &first = graph.obstacles.front();
    const auto others = static_cast<std::int64_t>(graph.obstacles.size()) - 1;
    return {ErrorCode::NotSupported,
        first.message
            + (others > 0 ? ", and " + counted(others, "other operator") + " cannot be read either" : ""),
        first.advice, first.op.empty() ? std::string{} : "operator:" + first.op};
}

} // namespace

Result<ModelSnapshot> openModel(const ModelSource &source, std::stop_token stop, KeepContent keep)
{
    OpenedModel model;
    model.source = source;
    if (keep == KeepContent::Yes && source.content.empty() && !isZooSpec(source.source)) {
        TRY(model.source.content, keptModelContent(source.source, kMostKeptBytes));
    }
    TRY(Graph forward, forwardOf(model.source, stop, model.operatorTexts));
    model.name = nameOfSource(source.source);
    if (stop.stop_requested())
        return cancelled();
    for (const std::string &file : operatorFilesOf(forward))
        model.source.options.operatorFiles.insert(file);
    std::erase_if(model.operatorTexts,
        [&](const auto &each) { return model.source.options.operatorFiles.count(each.first) == 0; });
    model.forwardOperators = static_cast<std::int64_t>(forward.operators.size());
    for (const Tensor &tensor : forward.tensors) {
        if (tensor.role == TensorRole::Weight && !tensor.of.valid())
            model.parameters += elementCount(tensor.type.shape);
    }
    if (!forward.obstacles.empty())
        model.planProblem = planProblemOf(forward);
    GraphSnapshot graph;
    if (!source.options.inference && !model.planProblem) {
        TrainingOptions training;
        training.optimizer =
            source.options.optimizer == Optimizer::Sgd ? OperatorKind::SgdStep : OperatorKind::AdamWStep;
        training.learningRate = source.options.learningRate;
        training.weightDecay = source.options.weightDecay;
        training.clipNorm = source.options.clipNorm;
        auto step = buildTrainingStep(forward, training);
        if (step) {
            graph = sharedInBackground(*std::move(step));
        } else if (training.learningRate < 0 || training.weightDecay < 0 || training.clipNorm < 0) {
            return std::move(step).error(); // the options are wrong, not the model
        } else {
            model.remark = step.error().message;
            if (forward.loss.valid())
                model.trainingProblem = std::move(step).error();
        }
    }
    if (!graph)
        graph = sharedInBackground(std::move(forward));
    if (stop.stop_requested())
        return cancelled();
    static_cast<Model &>(model) = Model(std::move(graph));
    model.hasExperts = !model.planProblem && hasExperts(model);
    static_cast<void>(model.index->dimensions()); // found here, where nobody waits for it at the next frame
    return std::make_shared<const OpenedModel>(std::move(model));
}

Result<Graph> openForward(const ModelSource &source, std::stop_token stop)
{
    std::map<std::string, std::string> texts;
    return forwardOf(source, stop, texts);
}

Result<std::vector<InputDimension>> openDimensions(const ModelSource &source)
{
    if (isZooSpec(source.source)) {
        TRY(Graph graph, buildZooModel(source.source, source.options.dimensions));
        return std::move(graph.dimensions);
    }
    const ImportOptions options = importOptionsOf(source);
    const std::filesystem::path path(source.source);
    if (source.content.empty())
        return modelFileDimensions(path, options);
    return modelDimensions(source.content, path, options);
}

Result<void> requireTrainingStep(const OpenedModel &model)
{
    if (model.planProblem)
        return *model.planProblem;
    if (model.trainingProblem)
        return *model.trainingProblem;
    return {};
}

} // namespace planloom
