#pragma once

#include "engine/base/result.h"
#include "engine/graph/annotation/partition.h"
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
/// what lies between cut along the sequence (arXiv:2205.05198); and those of `usualAround`. None where the
/// model cannot be cut so.
/// @return Cancelled if stopped
Result<std::vector<UsualPartition>> usualPartitions(
    const Model &model, const std::string &axis, std::int32_t parts, const std::stop_token &stop);

/// Likewise for an axis outside of those: sequences cut wherever they can be (context parallelism,
/// arXiv:2407.21783, section 3.3.2), and everywhere but in attentions, whose heads are cut instead (Ulysses,
/// arXiv:2309.14509). None where the model has none.
std::vector<UsualPartition> usualAround(const Model &model, const std::string &axis, std::int32_t parts);

/// Those of one model that were asked for, by axis and parts: they follow from no row.
struct UsualPartitions {
    using ByAxis = std::map<std::pair<std::string, std::int32_t>, std::vector<UsualPartition>>;
    ByAxis inner{}; ///< `usualPartitions`.
    ByAxis around{};
};

} // namespace planloom
