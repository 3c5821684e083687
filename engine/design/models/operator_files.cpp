#include "engine/design/models/operator_files.h"

#include "engine/base/files.h"
#include "engine/base/user_folder.h"
#include "engine/frontend/onnx/functions/function_body.h"
#include "engine/graph/operator_files/operator_file.h"

#include <algorithm>
#include <set>
#include <utility>

namespace planloom {

namespace fs = std::filesystem;

namespace {

using DefinitionList = std::vector<std::shared_ptr<const OperatorDefinition>>;

fs::path absoluteOf(const fs::path &path)
{
    std::error_code failure;
    const fs::path absolute = fs::absolute(path, failure);
    return failure ? path : absolute.lexically_normal();
}

bool isFile(const fs::path &path)
{
    std::error_code failure;
    return fs::is_regular_file(path, failure);
}

Result<std::string> textAt(const fs::path &path)
{
    return readFile(absoluteOf(path), {.what = "operator file", .mostBytes = kMostOperatorFileBytes});
}

Result<DefinitionList> definitionsIn(const std::string &text, const fs::path &path)
{
    const fs::path absolute = absoluteOf(path);
    return readOperatorFile(text, absolute.string(), absolute.parent_path().string(), readFunctionBody);
}

/// Adds what is not defined yet. @return an error where two operators of the file have one name
Result<void> addNew(OperatorDefinitions &definitions, const DefinitionList &more)
{
    for (const auto &definition : more) {
        std::vector<DefinedName> names{definition->name};
        names.insert(names.end(), definition->alsoNamed.begin(), definition->alsoNamed.end());
        const bool known = std::any_of(names.begin(), names.end(),
            [&](const DefinedName &name) { return definitions.find(name.domain, name.type) != nullptr; });
        if (!known)
            TRY_VOID(definitions.add(definition));
    }
    return {};
}

/// Where a named file is now.
Result<fs::path> locate(const fs::path &named, const fs::path &model, const fs::path &userFolder)
{
    if (isFile(named))
        return named;
    for (const fs::path &folder : {model.parent_path(), userFolder})
        if (const fs::path moved = folder / named.filename(); !folder.empty() && isFile(moved))
            return moved;
    return Error{ErrorCode::NotFound,
        "the operator file " + named.string() + ", which the model needs, does not exist",
        "put it back, beside the model or into "
            + (userFolder.empty() ? "~/.config/planloom/operators" : userFolder.string()),
        named.string()};
}

} // namespace

fs::path userOperatorFolder()
{
    return userFolder("operators");
}

fs::path operatorFileBeside(const fs::path &model)
{
    fs::path file = model;
    return file.replace_extension(kOperatorFileEnding);
}

Result<DefinitionList> readOperatorFileAt(const fs::path &path)
{
    TRY(const std::string text, textAt(path));
    return definitionsIn(text, path);
}

OperatorFileOrigin originOfOperatorFile(
    const fs::path &file, const fs::path &model, const fs::path &userFolder)
{
    const fs::path absolute = absoluteOf(file);
    if (!model.empty() && absolute == absoluteOf(operatorFileBeside(model)))
        return OperatorFileOrigin::BesideModel;
    const bool inFolder = !userFolder.empty() && absolute.parent_path() == absoluteOf(userFolder)
        && absolute.extension() == kOperatorFileEnding;
    return inFolder ? OperatorFileOrigin::UserFolder : OperatorFileOrigin::Named;
}

Result<FoundOperators> findOperators(const fs::path &model, const std::vector<std::string> &named,
    const fs::path &userFolder, const std::map<std::string, std::string> &carried)
{
    auto definitions = std::make_shared<OperatorDefinitions>();
    FoundOperators found;
    std::set<fs::path> read;
    const auto take = [&](const std::string &text, const fs::path &path) -> Result<void> {
        TRY(const DefinitionList list, definitionsIn(text, path));
        // As printed, bodies that lie in files of their own are in it.
        found.texts[absoluteOf(path).string()] = printOperatorFile(list);
        return addNew(*definitions, list);
    };
    for (const std::string &name : named) {
        const auto known = carried.find(name);
        fs::path path = absoluteOf(name);
        if (known == carried.end()) {
            TRY(path, locate(absoluteOf(name), absoluteOf(model), userFolder));
        }
        if (!read.insert(path).second)
            continue;
        TRY(const std::string text,
            known == carried.end() ? textAt(path) : Result<std::string>(known->second));
        TRY_VOID(take(text, path));
        found.texts[name] = found.texts[path.string()];
    }
    if (const fs::path beside = absoluteOf(operatorFileBeside(model));
        isFile(beside) && read.insert(beside).second) {
        TRY(const std::string text, textAt(beside));
        TRY_VOID(take(text, beside));
    }
    for (const fs::path &path : filesIn(userFolder, kOperatorFileEnding)) {
        if (!read.insert(absoluteOf(path)).second)
            continue;
        const auto text = textAt(path);
        const auto added = text ? take(*text, path) : Result<void>(text.error());
        if (!added)
            found.notes.push_back("an operator file was passed by: " + describe(added.error()));
    }
    found.definitions = std::move(definitions);
    return found;
}

std::vector<std::string> operatorFilesOf(const Graph &graph)
{
    std::set<std::string> files;
    for (const Operator &op : graph.operators)
        if (const auto &definition = op.attributes.definition())
            files.insert(definition->file);
    return {files.begin(), files.end()};
}

Result<std::vector<std::string>> trustedLibraries(
    const std::vector<std::string> &named, const fs::path &userFolder)
{
    std::set<std::string> libraries;
    const auto take = [&libraries](const DefinitionList &list) {
        for (const auto &definition : list)
            if (definition->library)
                libraries.insert(definition->library->path);
    };
    for (const std::string &name : named) {
        TRY(const DefinitionList list, readOperatorFileAt(name));
        take(list);
    }
    for (const fs::path &path : filesIn(userFolder, kOperatorFileEnding))
        if (const auto list = readOperatorFileAt(path))
            take(*list);
    return std::vector<std::string>{libraries.begin(), libraries.end()};
}

} // namespace planloom
