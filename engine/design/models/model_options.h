#pragma once

#include "engine/base/result.h"
#include "engine/graph/capacity.h"
#include "engine/graph/tensor.h"

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>

namespace planloom {

/// What updates the weights in a training step.
enum class Optimizer : std::uint8_t { AdamW, Sgd };

/// "adamw", "sgd".
const char *nameOf(Optimizer optimizer);
/// @return InvalidInput, `where` "--optimizer"
Result<Optimizer> optimizerNamed(std::string_view name);

/// Before the name of a symbolic dimension in the name of its option.
constexpr std::string_view kDimensionOption = "dim.";

/// Before the name of a tensor in the name of its option.
constexpr std::string_view kStoredOption = "stored.";
/// The value of such an option that leaves the choice to the importer.
constexpr std::string_view kStoredByRule = "by-rule";
/// The value that makes a tensor an input (`ModelOptions::asInputs`).
constexpr std::string_view kStoredAsInput = "input";

/// Before the path of an operator file in the name of its option, whose value is "file".
constexpr std::string_view kOperatorsOption = "operators.";
constexpr std::string_view kOperatorsValue = "file";
constexpr std::string_view kNoOperatorsValue = "none"; ///< A file that was named before, and is not now.
/// The option that says how much room there is for what data choose; with ".NAME" behind, for what operator
/// NAME finds.
constexpr std::string_view kCapacityOption = "capacity";

/// The option that says that recurrences are unrolled, "1" or "0"; with ".NAME" behind, that of operator
/// NAME.
constexpr std::string_view kUnrollOption = "unroll";

/// All that a person may choose about a model when it is opened; window, command line, sessions and plan
/// files mean the same by it. Each has a name, the one of the command line's option.
struct ModelOptions {
    std::string
        lossOutput{}; ///< "loss": the output to train on; empty takes the scalar output "loss", if any.
    /// "dim.NAME": sizes of symbolic dimensions; at least 1.
    std::map<std::string, std::int64_t> dimensions{};
    /// "stored.NAME": what a stored tensor is ("parameter", "buffer", "constant"), where a person knows
    /// better than the importer (import_onnx.h, "What is a weight"); by names of tensors, here or in the
    /// file.
    std::map<std::string, StoredAs> storedAs{};
    /// "stored.NAME" = "input": what is an input of the plan, whatever a file says or seems to say. In none
    /// of `storedAs`.
    std::set<std::string> asInputs{};
    /// "operators.PATH": operator files (operator_files.h), those that were named and, once a model is open,
    /// all that it was made with. In order of path.
    std::set<std::string> operatorFiles{};
    /// "capacity", "capacity.NAME": room for what data choose (capacity.h); by operator, "*" for all others.
    Capacities capacities{};
    /// "unroll", "unroll.NAME": recurrences as the operators of their steps, by operator; "*" is all of them.
    std::set<std::string> unroll{};
    bool inference = false; ///< "inference": the forward pass alone, also for a model with a loss.
    Optimizer optimizer = Optimizer::AdamW; ///< "optimizer"
    double learningRate = 1e-3; ///< "learning-rate": at least 0.
    double weightDecay = 0; ///< "weight-decay": at least 0.
    double clipNorm = 0; ///< "clip-norm": at most so large is the norm of all gradients; 0: any.
    friend bool operator==(const ModelOptions &, const ModelOptions &) = default;
};

/// Which options are written.
enum class WrittenOptions : std::uint8_t {
    Unusual, ///< Those that are not as in `ModelOptions{}`.
    All, ///< Every one: to be laid over others.
};
/// As sessions keep them (`SessionModel::options`), by name. `modelOptionsOf(valuesOf(o))` is `o`, also for
/// numbers.
std::map<std::string, std::string> valuesOf(
    const ModelOptions &options, WrittenOptions written = WrittenOptions::Unusual);
/// Names that are missing stay as in `ModelOptions{}`.
/// @return InvalidInput for values that are none, and for names nobody knows: a model that is silently
/// another one than
///   was asked for helps nobody; `where` is "--NAME"
Result<ModelOptions> modelOptionsOf(const std::map<std::string, std::string> &values);

/// True if the model `source` that was opened with `opened` is what `wanted` asks for: `opened` may name more
/// operator files, those that were found beside it or in the user's folder.
bool isOpenedAs(const ModelOptions &wanted, const ModelOptions &opened, const std::string &source);

/// "sgd, learning rate 0.01": what is not as in `ModelOptions{}`, for sentences; empty if all is.
std::string describe(const ModelOptions &options);

} // namespace planloom
