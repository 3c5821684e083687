#pragma once

#include "engine/interop/configs/config_formats.h"

#include <span>

namespace planloom {

// The tables of the frameworks' keys. A key stands in one of them; prefixes are the formats' own. Of several
// keys for one field the first is written; of several that are said the last counts.

std::span<const ConfigKey> megatronPlanKeys(); ///< Of megatron.core's configs, whoever passes them on.
std::span<const ConfigKey> megatronCommandKeys(); ///< Of its command line alone.
std::span<const ConfigKey> megatronSizeKeys();
std::span<const ConfigKey> megatronBatchKeys();
std::span<const ConfigKey> megatronSharingKeys(); ///< Of the optimizer and of replicas.
std::span<const ConfigKey> launcherKeys(); ///< Of torchrun, accelerate launch and Slurm.
std::span<const ConfigKey> huggingFaceSizeKeys();

} // namespace planloom
