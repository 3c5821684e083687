#pragma once

#include "engine/interop/torch/embedded_runtime.h"

#include <span>

namespace planloom {

/// The files of resources/torch/modules, compiled in.
std::span<const RuntimeFile> embeddedModules();

} // namespace planloom
