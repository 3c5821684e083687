#include "sessions/session_request.h"

#include "engine/design/models/model_rows.h"
#include "sessions/model_values.h"

#include <charconv>

namespace planloom {

namespace {

std::string valueOf(const DesignState &state, const std::string &name)
{
    const auto found = state.values.find(name);
    return found == state.values.end() ? std::string{} : found->second;
}

} // namespace

Result<PlanRequest> requestOf(const SessionContents &contents)
{
    const DesignState &state = contents.history.state();
    TRY(const ModelOptions opened, modelOptionsOf(contents.model.options));
    TRY(const ModelOptions options, modelOptionsIn(state, opened));
    PlanRequest request;
    request.table = state.table;
    TRY(request.model,
        openModel({contents.model.source, contents.model.content, withRows(options, state.table), {}}, {},
            KeepContent::No));
    request.target.cluster = valueOf(state, "cluster");
    request.target.clusterJson = valueOf(state, "cluster-json");
    if (request.target.clusterJson.empty() && request.target.cluster.find('/') != std::string::npos)
        request.target.clusterJson = contents.clusterJson; // what the file held, should it be gone
    const std::string devices = valueOf(state, "devices");
    std::from_chars(devices.data(), devices.data() + devices.size(), request.target.deviceCount);
    return request;
}

} // namespace planloom
