#pragma once

#include "engine/base/result.h"
#include "engine/design/make_plan.h"
#include "engine/interop/configs/framework_config.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace planloom {

/// The zoo's model of a config's sizes, or the published one that it names: "zoo:llama?layers=32&...".
/// @return NotSupported where neither is known (`where` "model")
Result<std::string> zooSpecOf(const FrameworkConfig &config);

/// The sizes that `spec` gives a model, by the names of `FrameworkConfig`; `zooSpecOf` of them is the same
/// model.
/// @return NotSupported for a model that no config has sizes for, as a file
Result<FrameworkConfig> sizesOfZoo(std::string_view spec);

/// A plan as a config says it: the gallery's `3d` with its degrees, and the rows that stand beside it.
struct ConfigPlan {
    std::string gallery{};
    std::string rows{};
};

/// @return InvalidInput where degrees, devices and batch do not fit together (`where` names the field)
Result<ConfigPlan> planOfConfig(const FrameworkConfig &config, const Model &model);

/// All of a config as a request: model, devices with the framework that trains, gallery and rows. Measured
/// runs and framework configs are planned by it.
/// @param model  in place of the one that the config names; may be null
/// @return as `zooSpecOf`, `openModel` and `planOfConfig`
Result<PlanRequest> requestOfConfig(const FrameworkConfig &config, const ModelSnapshot &model = {});

/// The rows of what a config says is computed again: of layers, runs of them, or the usual words; empty for
/// nothing. Modules are the gallery's. @param layout  of stages; may be empty
/// @return as `recomputeRow`
Result<std::string> recomputationOf(
    const FrameworkConfig &config, const Model &model, const std::string &layout);

/// Stages with so many layers each in Megatron-LM's notation, embedding and loss with the first and the last.
std::string evenLayout(const std::vector<std::int64_t> &layersOfStages);

/// Small letters and digits of `name` alone: "LLaMA-3 70B" and "llama3_70b" are one model.
std::string lettersOf(std::string_view name);

} // namespace planloom
