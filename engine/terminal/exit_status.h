#pragma once

#include "engine/base/result.h"

#include <string>
#include <utility>
#include <vector>

namespace planloom {

constexpr int kExitDone = 0;
constexpr int kExitFailed = 1;
constexpr int kExitUsage = 2;
constexpr int kExitConflict = 3;

/// The exit status of a program that ends with this error, the same for every program.
int exitStatusOf(ErrorCode code);

/// Each status with its meaning, in order.
const std::vector<std::pair<int, std::string>> &exitStatuses();

} // namespace planloom
