#pragma once

#include "engine/frontend/fuse_editor.h"
#include "engine/graph/attention.h"

#include <optional>

namespace planloom {

/// Scores at or below this have no weight beside any that a model makes: what hides a key.
constexpr double kHidingScore = -1e4;

/// What a mask of known values says.
struct KnownMask {
    bool seesAll = false; ///< It hides nothing.
    AttentionReach reach{}; ///< Else it hides exactly what this does not reach.
};

/// Reads a mask of [.. queries keys], in which every query sees at least one key, and all leading indices say
/// the same: from its values (Bool: true is seen; floating: 0 is seen, kHidingScore or less is not), or from
/// two Ranges that are compared.
/// @param isHidden  true where a Bool mask says what is hidden, instead
/// @return nothing if it says anything else than `KnownMask` can, or is not known
std::optional<KnownMask> knownMask(
    const FuseEditor &editor, TensorId mask, std::int64_t queries, std::int64_t keys, bool isHidden);

} // namespace planloom
