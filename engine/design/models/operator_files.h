#pragma once

#include "engine/base/result.h"
#include "engine/graph/graph.h"
#include "engine/graph/operator_files/operator_definition.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace planloom {

/// The user's folder of operator files: "planloom/operators" in $XDG_CONFIG_HOME, or in ~/.config. Empty
/// where neither is known. It need not exist.
std::filesystem::path userOperatorFolder();

/// The operator file that stands beside a model: model.onnx -> model.ops.
std::filesystem::path operatorFileBeside(const std::filesystem::path &model);

/// How an operator file came to a model.
enum class OperatorFileOrigin : std::uint8_t {
    Named,
    BesideModel,
    UserFolder,
};
OperatorFileOrigin originOfOperatorFile(const std::filesystem::path &file, const std::filesystem::path &model,
    const std::filesystem::path &userFolder = userOperatorFolder());

/// What operator files say to a model.
struct FoundOperators {
    std::shared_ptr<const OperatorDefinitions> definitions{};
    std::map<std::string, std::string> texts{}; ///< What the files define, by path, and by what they were
                                                ///< named: operator files that need no other.
    std::vector<std::string> notes{}; ///< Files of the user's folder that could not be read, and why.
};

/// Reads the operator files for a model: those that are named, then the one beside the model, then all
/// "*.ops" of the user's folder. What an earlier one defines goes before what later ones say of the same
/// operator.
///
/// A named file that is not where it was is looked for beside the model and in the user's folder.
/// @param carried  what files held, by their paths: read in place of those
/// @return NotFound for a named file that is nowhere; errors of a named file, or of the one beside the model.
/// Waits for the disk.
Result<FoundOperators> findOperators(const std::filesystem::path &model,
    const std::vector<std::string> &named, const std::filesystem::path &userFolder = userOperatorFolder(),
    const std::map<std::string, std::string> &carried = {});

/// One operator file. @return NotFound, Io, or what is wrong in it with its path, line and column
Result<std::vector<std::shared_ptr<const OperatorDefinition>>> readOperatorFileAt(
    const std::filesystem::path &path);

/// The operator files that operators of `graph` come from, each once, absolute.
std::vector<std::string> operatorFilesOf(const Graph &graph);

/// Libraries that may be loaded without asking: those of files in the user's folder, and of files that the
/// user named just now. Absolute paths. A file beside a model, or one that a session or plan remembers, is no
/// such file: it may be a stranger's.
/// @return errors of the named files
Result<std::vector<std::string>> trustedLibraries(
    const std::vector<std::string> &named, const std::filesystem::path &userFolder = userOperatorFolder());

} // namespace planloom
