#pragma once

#include "engine/base/result.h"
#include "engine/graph/partition.h"
#include "engine/table/model.h"

#include <cstdint>
#include <map>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace planloom {

/// By forward operator: how it is cut over one mesh axis.
using UsualPartition = std::vector<Split>;

/// The partitions that people use, as the gallery makes them: tensor parallelism (arXiv:1909.08053), and with
/// what lies between cut along the sequence (arXiv:2205.05198). None where the model cannot be cut so.
/// @return Cancelled if stopped
Result<std::vector<UsualPartition>> usualPartitions(
    const Model &model, const std::string &axis, std::int32_t parts, const std::stop_token &stop);

/// Those of one model that were asked for, by axis and parts: they follow from no row.
using UsualPartitions = std::map<std::pair<std::string, std::int32_t>, std::vector<UsualPartition>>;

} // namespace planloom
