#pragma once

#include "engine/base/result.h"
#include "engine/table/model.h"
#include "engine/table/table.h"

#include <cstdint>
#include <string>

namespace planloom {

/// What rows leave of ZeRO to the search.
struct ShardingLeft {
    bool isLeft = true; ///< None says so of a weight, or some leave it to the search.
    std::int32_t own = 0; ///< The furthest stage that rows give.
    bool differs = false; ///< They give several.
    double left = 1; ///< The share of what the search shards in the bytes of all weights,
    double given = 0; ///< and of what rows shard.

    /// Stages differ from weight to weight: then less is proven of plans.
    bool isMixed() const { return differs || (left > 0 && left < 1) || (given > 0 && given < 1); }
    /// Of what a device has from stage `from` on cut over `replicas`: the share that it keeps, where the
    /// search shards what it may by `zero`. Where stages differ, as if they were spread evenly over the
    /// weights.
    double keptShare(std::int32_t zero, std::int32_t from, std::int32_t replicas) const;
    std::string key() const; ///< Tells apart what is modelled in another way; empty where nothing is mixed.
};
ShardingLeft shardingLeft(const Model &model, const ConstraintTable &rows);

/// The rows by which the search shards by `stage` what `rows` leave to it.
/// @param axis  as `OptimizerShardingRule::axis`
ConstraintTable shardingChoice(
    const Model &model, const ConstraintTable &rows, std::int32_t stage, const std::string &axis);

} // namespace planloom
