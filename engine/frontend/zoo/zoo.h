#pragma once

#include "engine/base/result.h"
#include "engine/graph/capacity.h"
#include "engine/graph/graph.h"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace planloom {

/// One parameter of a family of models.
struct ZooParameter {
    std::string name{}; ///< "layers"
    double fallback = 0; ///< Its value where the name does not give one.
    double least = 0;
    double most = 0;
    bool integral = true;
    std::string meaning{}; ///< One line for a person; says what 0 means where 0 means something.
    bool isInputSize = false; ///< Of the inputs, not of the weights: a dimension that rows may set.
};

/// One family of models, "gpt", or one model of a family whose sizes were published, "llama-3-70b": a family
/// of other fallbacks.
struct ZooFamily {
    std::string name{};
    std::string meaning{}; ///< One line for a person.
    std::vector<ZooParameter> parameters{};
    std::string builtAs{}; ///< The family whose layers it has; empty: its own.
};

/// All families and their parameters, in the order they are listed to people.
const std::vector<ZooFamily> &zooFamilies();

/// True if `spec` names a zoo model rather than a file: it begins with "zoo:".
bool isZooSpec(std::string_view spec);

/// Builds the training model (up to its loss) that `spec` names: "zoo:gpt?layers=96&hidden=12288&heads=96".
/// @param sizes  of the inputs, by the names of their parameters ("batch", "seq"); they go before those in
/// `spec`, as do `capacities` before what `spec` gives experts that data choose
///
/// Weights have no values, so that a model of any size takes little memory; operators are those an importer
/// makes after fusing, in scopes such as h.3 > attn. The loss is the mean cross-entropy over the labels
/// (Evoformer: the sum of its outputs' mean squares).
/// @return InvalidInput that lists what is known, for an unknown family or parameter, a value out of its
///   range, or values that do not fit together (`where` is "zoo:<family>/<parameter>")
/// O(operators).
Result<Graph> buildZooModel(std::string_view spec, const std::map<std::string, std::int64_t> &sizes = {},
    const Capacities &capacities = {});

} // namespace planloom
