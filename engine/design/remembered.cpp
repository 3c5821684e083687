#include "engine/design/remembered.h"

#include "engine/frontend/zoo/zoo.h"
#include "engine/hardware/cluster_json.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

namespace planloom {

namespace {

constexpr const char *kClusterText = "cluster.json";
constexpr std::string_view kOperatorsText = "operators-text."; ///< Before the path of a file.

} // namespace

std::map<std::string, std::string> originOf(
    const ModelSource &model, const std::string &cluster, const std::string &rows)
{
    std::map<std::string, std::string> origin;
    std::string dimensions;
    for (const auto &[name, value] : valuesOf(model.options)) {
        if (name.starts_with(kDimensionOption))
            dimensions +=
                (dimensions.empty() ? "" : ",") + name.substr(kDimensionOption.size()) + "=" + value;
        else
            origin[name] = value;
    }
    if (!dimensions.empty())
        origin["dim"] = dimensions;
    std::error_code failure;
    const auto absolute = std::filesystem::absolute(model.source, failure);
    origin["model"] =
        isZooSpec(model.source) || failure ? model.source : absolute.lexically_normal().string();
    origin["cluster"] = cluster;
    origin["rows"] = rows;
    return origin;
}

std::map<std::string, std::string> originOf(
    const OpenedModel &model, const Cluster &cluster, const std::string &rows)
{
    auto origin = originOf(model.source, cluster.name, rows);
    origin[kClusterText] = toJson(cluster);
    for (const auto &[path, text] : model.operatorTexts)
        origin[std::string(kOperatorsText) + path] = text;
    return origin;
}

Result<ModelSource> rememberedModel(const ExecutionPlan &plan)
{
    ModelSource model;
    std::map<std::string, std::string> values;
    for (const auto &[name, value] : plan.origin) {
        if (name == "model") {
            model.source = value;
        } else if (name.starts_with(kOperatorsText)) {
            model.operatorTexts[name.substr(kOperatorsText.size())] = value;
        } else if (name == "dim") {
            for (std::size_t begin = 0; begin < value.size();) {
                const std::size_t end = std::min(value.find(',', begin), value.size());
                const std::string one = value.substr(begin, end - begin);
                const std::size_t equals = one.find('=');
                if (equals == std::string::npos || equals == 0)
                    return Error{ErrorCode::InvalidInput,
                        "expected NAME=SIZE with a size of at least 1, found \"" + one + "\"", {},
                        "/origin/dim"};
                values[std::string(kDimensionOption) + one.substr(0, equals)] = one.substr(equals + 1);
                begin = end + 1;
            }
        } else if (name == "loss" || name == "inference" || name == "optimizer" || name == "learning-rate"
            || name == "weight-decay" || name == "clip-norm" || name.starts_with(kStoredOption)
            || name.starts_with(kOperatorsOption) || name.starts_with(kCapacityOption)
            || name.starts_with(kUnrollOption)) {
            values[name] = value;
        }
    }
    if (model.source.empty())
        return Error{ErrorCode::InvalidInput, "the plan does not say which model it is for",
            "solve the model again", "/origin/model"};
    auto options = modelOptionsOf(values);
    if (!options) {
        Error error = std::move(options).error();
        error.where = "/origin/" + error.where.substr(std::min<std::size_t>(2, error.where.size()));
        return error;
    }
    model.options = *std::move(options);
    return model;
}

bool isAtHand(const ModelSource &model)
{
    std::error_code failure;
    return isZooSpec(model.source) || std::filesystem::exists(model.source, failure);
}

Result<std::string> rowsRemembered(const ExecutionPlan &plan)
{
    const auto found = plan.origin.find("rows");
    if (found == plan.origin.end())
        return Error{ErrorCode::InvalidInput, "the plan does not say of which rows it is",
            "solve the model again", "/origin/rows"};
    return found->second;
}

std::string rememberedCluster(const ExecutionPlan &plan)
{
    const auto found = plan.origin.find("cluster");
    return found == plan.origin.end() ? "cpu:" + std::to_string(plan.devices.size()) : found->second;
}

TargetChoice rememberedTarget(const ExecutionPlan &plan)
{
    const auto found = plan.origin.find(kClusterText);
    return {rememberedCluster(plan), found == plan.origin.end() ? std::string{} : found->second, 0};
}

} // namespace planloom
