#pragma once

#include <cstdint>
#include <string>

namespace planloom {

/// Why a dimension may not be split.
enum class DimensionLock : std::uint8_t {
    Whole, ///< The operator needs it whole; nothing more is known.
    Reduced, ///< It is reduced otherwise than by what parts can be combined by.
    Statistics, ///< Statistics are taken over it.
    Classes, ///< All classes are compared with one another.
    Borders, ///< Windows read over the borders of parts.
    Steps, ///< Each step needs the one before.
    Mixed, ///< It is regrouped with others.
    Along, ///< The operator joins, cuts or ranks along it.
    LookedUp, ///< Any element of it may be looked up.
    WithinHead, ///< An attention sums over it within a head.
    SharedKeys, ///< Heads of queries share a head of keys.
    MaskedKeys, ///< Masks may leave a part of the keys without weight.
};

/// "softmax reduces over this dimension". @param words  what sentences call the operator: "softmax"
std::string sentenceOf(DimensionLock lock, const std::string &words);

} // namespace planloom
