#pragma once

#include "engine/base/result.h"
#include "engine/design/make_plan.h"
#include "engine/frontend/torch/module_classes.h"
#include "engine/table/kinds/partition/mesh.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace planloom {

/// How a tensor lies along one axis of the mesh, in DTensor's terms.
struct TensorPlacement {
    enum class Kind : std::uint8_t { Replicate, Shard, Partial };
    Kind kind = Kind::Replicate;
    std::int32_t dimension = 0; ///< Of Shard; -1 is the last one.
    bool isWhole() const { return kind == Kind::Replicate; }
    friend bool operator==(const TensorPlacement &, const TensorPlacement &) = default;
};
std::string textOf(const TensorPlacement &placement); ///< "Shard(1)"

/// What an axis of the mesh is for.
enum class WordRole : std::uint8_t { Data, Tensor, Context, Stages };

struct WordAxis {
    std::string name{};
    std::int32_t size = 1;
    WordRole role = WordRole::Data;
};

/// A parameter that is cut along `dimension`, inside each of `groups` equal parts that it is joined of.
struct ParameterCut {
    std::string name{}; ///< In its module: "weight".
    std::int32_t dimension = 0;
    std::int64_t groups = 1;
    friend bool operator==(const ParameterCut &, const ParameterCut &) = default;
};

/// How a module that has weights is parallelized.
struct ModuleStyle {
    enum class Kind : std::uint8_t {
        Colwise, ///< nn.Linear by its outputs, nn.Embedding by its width.
        Rowwise, ///< nn.Linear by its inputs, nn.Embedding by its rows.
        Sequence, ///< Whole weights, and activations that come and go cut alike.
        Cut, ///< None of PyTorch's own: a style of the folder (styles.py).
    };
    Kind kind = Kind::Colwise;
    std::vector<ParameterCut> parameters{}; ///< Of Cut.
    TensorPlacement from{}; ///< Of what it is given.
    TensorPlacement to{}; ///< Of what it computes with.
    TensorPlacement made{};
    TensorPlacement given{}; ///< Of what it hands on.
    bool staysDTensor = false; ///< What it hands on, so that shapes are those of the whole tensor.
    friend bool operator==(const ModuleStyle &, const ModuleStyle &) = default;
};

/// What a module hands on is laid out anew, once for all that read it (PrepareModuleOutput).
struct ModuleOutput {
    TensorPlacement made{};
    TensorPlacement given{};
    friend bool operator==(const ModuleOutput &, const ModuleOutput &) = default;
};

/// What is on one stage of a pipeline.
struct ModuleStage {
    std::vector<std::string> modules{}; ///< All in it whose parents are not.
    std::string first{}; ///< The module that what is received goes into; empty of stage 0.
    TensorPlacement enters{}; ///< How that lies along the tensor axis.
    std::int32_t rank = 0; ///< Along the axis of stages.
};

/// A plan in the words of torch.distributed.
struct PlanWords {
    std::vector<WordAxis> axes{}; ///< Of more than one device, outermost first.
    std::map<std::string, ModuleStyle> styles{}; ///< By module.
    std::map<std::string, ModuleOutput> outputs{}; ///< By module.
    bool lossParallel = false; ///< The loss is made of logits that are cut along their classes.
    /// By module, sizes that its forward may take from attributes: whole, and of one device.
    std::map<std::string, std::map<std::int64_t, std::int64_t>> localSizes{};
    std::vector<ModuleStage> stages{}; ///< Empty without a pipeline.
    std::vector<std::vector<std::string>> tied{}; ///< Names of parameters that stages share.
    std::string scheduleClass{}; ///< "1F1B"; empty where `scheduleCsv` has the order.
    std::string scheduleCsv{};
    std::int32_t microBatches = 1;
    std::int32_t zero = 0; ///< Stage of ZeRO.
    bool keepsWeights = false; ///< Of stage 3: between forward and backward pass.
    std::vector<std::string> wrapped{}; ///< Modules whose weights are gathered together (fully_shard).
    std::vector<std::string> recomputed{}; ///< Modules under checkpoint.
    bool gathersKeys = false; ///< Context: keys and values are gathered, not passed round.
    std::vector<std::string> madeInside{}; ///< Context: constants that depend on the place in the sequence.
    std::string autocast{}; ///< "bfloat16"; empty: as the module is.
    bool tensorFloat32 = false;

    const WordAxis *axisOf(WordRole role) const;
};

/// An operator that is decided otherwise than these words would have it.
struct Refusal {
    OperatorId op{};
    std::string axis{}; ///< Along which; empty: of all of it.
    std::string why{};
};

struct ReadWords {
    PlanWords words{};
    std::vector<Refusal> refused{};
};

/// What is asked again and again of a plan.
struct WordsSource {
    const Plan &plan;
    const Model &model;
    ModuleClasses classes{};
    std::vector<MeshAxis> mesh{}; ///< Axes of more than one device.

    /// The module whose weights an operator reads ("h.0.attn.c_attn"); empty for others.
    std::string moduleOf(OperatorId op) const;
    /// The split of an operator over an axis; null where there is none, or several.
    const Split *splitOf(OperatorId op, const std::string &axis) const;
    std::int32_t sizeOfAxis(const std::string &axis) const;
};

/// How a split lets a tensor of an operator lie. @param terms  of the slot
TensorPlacement placementOf(
    const Annotation &annotation, const TensorTerms &terms, const Split *split, bool isOutput);

/// How a tensor lies where it is handed on.
struct Laid {
    TensorPlacement placement{};
    bool isDTensor = false;
};

/// Reads styles off what the plan decides along `axis`, following each tensor from whoever makes it to
/// whoever reads it; what is computed between modules has to be what follows from what it is given.
/// @return by tensor, how it is handed on
/// O(operators x slots)
std::vector<Laid> readTensorWords(const WordsSource &source, const std::string &axis, ReadWords &read);

/// Which modules are on which stage, and what goes between them.
void readStageWords(
    const WordsSource &source, const WordAxis &axis, const std::vector<Laid> &laid, ReadWords &read);

/// All of a plan. @param answer  lowered, for its rows
/// @return as `moduleClassesOf`; NotSupported for schedules that PyTorch has no actions for
Result<ReadWords> readPlanWords(const PlanAnswer &answer, const OpenedModel &model);

/// The rows that say what the words do, without any of the plan's own.
ConstraintTable rowsOfWords(const ReadWords &read, const PlanAnswer &answer);

} // namespace planloom
