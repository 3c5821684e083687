#pragma once

#include "engine/base/result.h"
#include "engine/design/models/model_options.h"
#include "engine/graph/graph.h"
#include "engine/table/model.h"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace planloom {

/// Where a model comes from.
struct ModelSource {
    std::string source{}; ///< Path of a model file (import_model.h), or "zoo:...".
    std::string content{}; ///< Bytes of the file, where a session holds them; empty reads `source`.
    ModelOptions options{}; ///< Zoo models have no choice of losses: it is passed by.
    /// What operator files held, by path, where a plan carries them: in place of the files.
    std::map<std::string, std::string> operatorTexts{};
    friend bool operator==(const ModelSource &, const ModelSource &) = default;
};

/// A model ready to be planned: the engine's `Model` of what is planned (its training step, or the forward
/// pass where there is none or none is wanted), and what people are told of it. Immutable.
struct OpenedModel : Model {
    /// `content` is filled in for files, if it was asked for; `options` name all operator files that were
    /// needed.
    ModelSource source{};
    /// What the operator files of `source.options` hold, by path.
    std::map<std::string, std::string> operatorTexts{};
    std::int64_t forwardOperators = 0;
    std::int64_t parameters = 0; ///< Elements of all weights.
    bool hasExperts = false; ///< It is a mixture of experts, which `appendExpertParallel` spreads.
    std::string remark{}; ///< Why it has no training step; empty if it has, or if none is wanted.
    /// The model has a loss, but no training step can be made of it (an operator without a gradient). It is
    /// open all the same, as its forward pass: see `requireTrainingStep`.
    std::optional<Error> trainingProblem{};
    /// The model is open to be looked at alone: why nothing can be planned of it (`Graph::obstacles` has all
    /// of it).
    std::optional<Error> planProblem{};
    std::string name{}; ///< For people: "gpt2_small_full", or "gpt" for a zoo model.
};
using ModelSnapshot = std::shared_ptr<const OpenedModel>;

/// Whether `OpenedModel::source.content` holds the file: sessions keep it, the command line has no use for
/// it.
enum class KeepContent : bool { No, Yes };

/// Reads, imports and differentiates a model, once for all that is asked of it.
///
/// A model whose training step cannot be made opens with a remark rather than not at all: its forward pass
/// can be looked at, planned and priced. Who can't do with that asks `requireTrainingStep` (as the command
/// line does, where a plan that silently leaves the training out would pass for one of training).
///
/// A file with operators that cannot be imported opens all the same, to be looked at (`planProblem`): its
/// operators, with those that are missing marked. Nothing can be planned of it.
///
/// @return the importer's errors; NotFound for a missing file; InvalidInput for options out of range;
/// Cancelled O(operators). Waits for the disk.
Result<ModelSnapshot> openModel(
    const ModelSource &source, std::stop_token stop = {}, KeepContent keep = KeepContent::Yes);

/// The forward pass alone, as the file has it, if need be to be looked at alone (`Graph::obstacles`).
/// @return as `openModel`
Result<Graph> openForward(const ModelSource &source, std::stop_token stop = {});

/// The sizes of the model's inputs that are chosen when it is opened, with those of `source.options`; 0 where
/// these say none: who opens it has to be asked.
/// @return as `openModel`, of what is wrong with the file as such or with the sizes
/// Waits for the disk.
Result<std::vector<InputDimension>> openDimensions(const ModelSource &source);

/// @return `planProblem` or `trainingProblem`, if there is one
Result<void> requireTrainingStep(const OpenedModel &model);

} // namespace planloom
