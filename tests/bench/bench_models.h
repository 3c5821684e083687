#pragma once

#include "engine/design/make_plan.h"

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>

namespace planloom::bench {

/// GPT-2 small: 124 million parameters, batch 4, sequence 64.
inline constexpr const char *kGpt2Small = "zoo:gpt?layers=12&hidden=768&heads=12&seq=64&batch=4&vocab=50257";

/// The file `name` in the folder that the environment variable PLANLOOM_MODELS names; empty if there is none.
inline std::string modelFile(const std::string &name)
{
    const char *const folder = std::getenv("PLANLOOM_MODELS");
    if (folder == nullptr)
        return {};
    const std::filesystem::path path = std::filesystem::path(folder) / name;
    return std::filesystem::exists(path) ? path.string() : std::string{};
}

/// The AdamW training step of a zoo model or of an ONNX file.
inline Result<ModelSnapshot> opened(const std::string &model)
{
    TRY(auto snapshot, openModel({model, {}, {}}, {}, KeepContent::No));
    TRY_VOID(requireTrainingStep(*snapshot));
    return snapshot;
}

/// The rows of a gallery plan on `devices` devices of `cluster`, a profile without a size.
inline PlanRequest galleryRequest(const ModelSnapshot &model, const std::string &gallery,
    const std::string &cluster, std::int32_t devices, PlanGrade upTo)
{
    PlanRequest request;
    request.model = model;
    request.gallery = gallery;
    request.target = {cluster, {}, devices};
    request.upTo = upTo;
    return request;
}

} // namespace planloom::bench
