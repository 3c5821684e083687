#pragma once

#include "engine/frontend/import_onnx.h"
#include "engine/frontend/training.h"
#include "engine/frontend/zoo.h"
#include "engine/lowering/lower.h"
#include "engine/plan/complete.h"
#include "engine/gallery/gallery.h"

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
inline Result<GraphSnapshot> trainingStep(const std::string &model)
{
    TRY(const auto forward, isZooSpec(model) ? buildZooModel(model) : importOnnxFile(model));
    TrainingOptions options;
    options.optimizer = OperatorKind::AdamWStep;
    TRY(auto step, buildTrainingStep(forward, options));
    return GraphSnapshot(std::make_shared<const Graph>(std::move(step)));
}

/// `graph` with the rows of a gallery plan, completed on `devices` devices.
inline Result<Plan> planned(const GraphSnapshot &graph, const std::string &gallery, std::int32_t devices)
{
    TRY(const auto table, galleryTable(gallery, graph, devices));
    TRY(auto completion, completePlan(graph, devices, table));
    if (auto error = firstError(completion))
        return *std::move(error);
    return std::move(completion.plan);
}

} // namespace planloom::bench
