#include "engine/kernels/custom/operator_library.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include <dlfcn.h>

namespace planloom {

namespace {

Error libraryError(
    ErrorCode code, const OperatorDefinition &definition, std::string message, std::string advice)
{
    return {
        code, std::move(message), std::move(advice), definition.file + ":" + std::to_string(definition.line)};
}

std::string lastLoaderError()
{
    const char *text = dlerror();
    return text == nullptr ? "no reason given" : text;
}

Result<std::shared_ptr<void>> openLibrary(const OperatorDefinition &definition)
{
    const std::string &path = definition.library->path;
    std::error_code failure;
    if (!std::filesystem::is_regular_file(path, failure))
        return libraryError(ErrorCode::NotFound, definition,
            "the library " + path + ", which computes " + toString(definition.name) + ", does not exist",
            "build it, or correct the line 'library' of the operator file");
    void *handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr)
        return libraryError(ErrorCode::InvalidInput, definition,
            "the library " + path + " cannot be loaded: " + lastLoaderError(),
            "build it as a shared library for this machine");
    std::shared_ptr<void> owned(handle, [](void *open) { dlclose(open); });
    using Version = std::uint32_t (*)();
    const auto version = reinterpret_cast<Version>(dlsym(handle, "planloom_operator_version"));
    if (version == nullptr)
        return libraryError(ErrorCode::InvalidInput, definition,
            "the library " + path + " does not say for which version of planloom_operator.h it was made",
            "write PLANLOOM_OPERATOR_LIBRARY in one of its sources");
    if (const std::uint32_t made = version(); made != PLANLOOM_OPERATOR_VERSION)
        return libraryError(ErrorCode::InvalidInput, definition,
            "the library " + path + " was made for version " + std::to_string(made)
                + " of planloom_operator.h, where version " + std::to_string(PLANLOOM_OPERATOR_VERSION)
                + " was expected",
            "build it again with this version's header");
    return owned;
}

/// Those that a run of `graph` calls.
std::vector<const OperatorDefinition *> computingDefinitions(const Graph &graph)
{
    std::vector<const OperatorDefinition *> definitions;
    for (const Operator &op : graph.operators)
        if (const OperatorDefinition *definition = computedBy(op); definition != nullptr
            && std::find(definitions.begin(), definitions.end(), definition) == definitions.end())
            definitions.push_back(definition);
    return definitions;
}

} // namespace

const OperatorDefinition *computedBy(const Operator &op)
{
    if (op.kind != OperatorKind::Custom)
        return nullptr;
    const OperatorDefinition &definition = *op.attributes.definition();
    return op.direction == Direction::Backward ? definition.derivative.definition.get() : &definition;
}

std::vector<std::string> librariesOf(const Graph &graph)
{
    std::set<std::string> paths;
    for (const OperatorDefinition *definition : computingDefinitions(graph))
        if (definition->library)
            paths.insert(definition->library->path);
    return {paths.begin(), paths.end()};
}

Result<std::shared_ptr<const OperatorLibraries>> OperatorLibraries::load(
    const Graph &graph, const std::vector<std::string> &allowed)
{
    auto libraries = std::make_shared<OperatorLibraries>();
    std::map<std::string, std::shared_ptr<void>> open;
    for (const OperatorDefinition *definition : computingDefinitions(graph)) {
        if (!definition->library)
            continue;
        const auto &[path, function] = *definition->library;
        if (std::find(allowed.begin(), allowed.end(), path) == allowed.end()) {
            if (!definition->body.empty())
                continue;
            return libraryError(ErrorCode::NotSupported, *definition,
                toString(definition->name) + " is computed by the library " + path
                    + ", which was not allowed to run",
                "if you trust it: --allow-library " + path + ", or name its operator file with --operators");
        }
        auto &handle = open[path];
        if (!handle) {
            TRY(handle, openLibrary(*definition));
            libraries->m_handles.push_back(handle);
        }
        const auto found =
            reinterpret_cast<planloom_operator_function>(dlsym(handle.get(), function.c_str()));
        if (found == nullptr)
            return libraryError(ErrorCode::NotFound, *definition,
                "the library " + path + " has no function " + function,
                "declare it PLANLOOM_OPERATOR_FUNCTION, or correct the line 'library'");
        libraries->m_functions[{path, function}] = found;
    }
    return std::shared_ptr<const OperatorLibraries>(std::move(libraries));
}

planloom_operator_function OperatorLibraries::find(const DefinedLibrary &library) const
{
    const auto found = m_functions.find({library.path, library.function});
    return found == m_functions.end() ? nullptr : found->second;
}

} // namespace planloom
