#pragma once

#include "engine/design/make_plan.h"
#include "engine/frontend/zoo/zoo.h"

#include <cstdint>
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

/// One plan that people make, and the machine it is for.
struct Case {
    const char *model; ///< A zoo model, or the name of a file of PLANLOOM_MODELS.
    const char *gallery;
    std::int32_t devices;
    const char *cluster; ///< A profile without a size.
};
inline constexpr Case kGpt2Case{"zoo:gpt?layers=12&hidden=768&heads=12&seq=1024&batch=8&vocab=50257",
    "3d:dp=1,tp=2,pp=4,micro-batches=8", 8, "dgx-a100"};
/// The exported file: micro-batches are whole batches of its one sequence.
inline constexpr Case kGpt3FileCase{
    "gpt3_175b_full.onnx", "3d:dp=1,tp=8,pp=8,micro-batches=32", 64, "dgx-h100"};

/// A plan as far as `upTo`, or why there is none.
inline Result<PlanAnswerSnapshot> startOf(const Case &that, PlanGrade upTo)
{
    const std::string model = isZooSpec(that.model) ? that.model : modelFile(that.model);
    if (model.empty())
        return Error{ErrorCode::NotFound, "PLANLOOM_MODELS names no folder with this model", {}, that.model};
    TRY(const auto snapshot, opened(model));
    return planOf(galleryRequest(snapshot, that.gallery, that.cluster, that.devices, upTo));
}

} // namespace planloom::bench
