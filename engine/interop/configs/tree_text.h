#pragma once

#include "engine/base/result.h"
#include "engine/interop/configs/setting.h"

#include <string>
#include <string_view>

namespace planloom {

/// The settings of a YAML or JSON file: "policy.megatron_cfg.enabled". What an alias stands for, and what
/// "<<" merges, counts each time; "${key}" and "${mul:a,b}" of OmegaConf are what they stand for.
/// @return InvalidInput with its place (`where` "line:LINE:COLUMN") for what is no YAML, or no map;
/// ResourceLimit
///   beyond `kMostSettings` or `kMostConfigDepth`
Result<SettingList> readTree(std::string_view text);

} // namespace planloom
