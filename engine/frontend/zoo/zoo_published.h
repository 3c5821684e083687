#pragma once

#include "engine/frontend/zoo/zoo.h"

#include <vector>

namespace planloom {

/// Models whose sizes were published, "llama-3-70b": each as one of `families`, with its sizes as fallbacks.
std::vector<ZooFamily> publishedModels(const std::vector<ZooFamily> &families);

} // namespace planloom
