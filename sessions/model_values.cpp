#include "sessions/model_values.h"

#include <string_view>

namespace planloom {

namespace {

constexpr std::string_view kPrefix = "model/";

} // namespace

Result<ModelOptions> modelOptionsIn(const DesignState &state, const ModelOptions &opened)
{
    auto values = valuesOf(opened);
    for (const auto &[name, value] : state.values) {
        if (isModelValue(name))
            values[name.substr(kPrefix.size())] = value;
    }
    return modelOptionsOf(values);
}

std::vector<ValueChange> changeOfOptions(
    const DesignState &state, const ModelOptions &before, const ModelOptions &after)
{
    const auto now = valuesOf(before, WrittenOptions::All);
    std::vector<ValueChange> changes;
    for (const auto &[option, value] : valuesOf(after, WrittenOptions::All)) {
        if (const auto known = now.find(option); known != now.end() && known->second == value)
            continue;
        ValueChange change{std::string(kPrefix) + option, {}, value};
        if (const auto found = state.values.find(change.name); found != state.values.end())
            change.before = found->second;
        changes.push_back(std::move(change));
    }
    // What is left to the importer again says so: the session's model may have been opened otherwise.
    for (const auto &[option, value] : now) {
        const bool isByRule = option.starts_with(kStoredOption)
            && after.storedAs.count(option.substr(kStoredOption.size())) == 0
            && after.asInputs.count(option.substr(kStoredOption.size())) == 0;
        const bool isLeftOut = option.starts_with(kOperatorsOption)
            && after.operatorFiles.count(option.substr(kOperatorsOption.size())) == 0;
        if (!isByRule && !isLeftOut)
            continue;
        ValueChange change{
            std::string(kPrefix) + option, {}, std::string(isByRule ? kStoredByRule : kNoOperatorsValue)};
        if (const auto found = state.values.find(change.name); found != state.values.end())
            change.before = found->second;
        changes.push_back(std::move(change));
    }
    return changes;
}

bool isModelValue(const std::string &name)
{
    return name.starts_with(kPrefix);
}

} // namespace planloom
