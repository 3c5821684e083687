#pragma once

#include "engine/base/result.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace planloom {

constexpr std::size_t kMostHosts = 16384; ///< Of one file.
constexpr std::size_t kMostNameLength = 255;

/// The names of an expression of Slurm's: "node[01-16,20],login", "rack[0-1]node[0-3]". Numbers keep the
/// zeros before them. In the order of the expression.
/// @return InvalidInput for brackets that do not close, empty names and ranges, and ranges that go backwards;
///   ResourceLimit for more than `kMostHosts` names, before they are made. `where` is empty.
Result<std::vector<std::string>> hostNames(std::string_view expression);

} // namespace planloom
