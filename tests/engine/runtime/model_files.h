#pragma once

#include "engine/frontend/onnx/import_onnx.h"
#include "engine/frontend/training/training.h"
#include "engine/frontend/zoo/zoo.h"

#include "tests/model_folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>

namespace planloom {

/// Where models that are too large for the repository lie, if they do.
inline const std::filesystem::path kModelFiles = modelFolder();

/// The training step of a zoo model, or of a file of the model set; null without the set.
inline GraphSnapshot trainingStepOf(const std::string &name, OperatorKind optimizer = OperatorKind::SgdStep)
{
    const auto file = kModelFiles / (name + ".onnx");
    if (!isZooSpec(name) && !std::filesystem::exists(file))
        return nullptr;
    const auto forward = isZooSpec(name) ? buildZooModel(name) : importOnnxFile(file);
    EXPECT_TRUE(forward) << describe(forward.error());
    auto step = buildTrainingStep(*forward, {.optimizer = optimizer});
    EXPECT_TRUE(step) << describe(step.error());
    return std::make_shared<const Graph>(*std::move(step));
}

} // namespace planloom
