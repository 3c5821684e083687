#pragma once

#include "engine/base/result.h"
#include "engine/graph/dimensions/dimension_classes.h"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <string>

namespace planloom {

class TextCursor;

/// How a row names an operator's dimension, so that it fits operators of several kinds.
struct DimensionRef {
    enum class Kind : std::uint8_t {
        Identifier, ///< `m`: the identifier of the annotation.
        Input, ///< `in0.1`: the identifier that leads dimension 1 of input 0; negative ones count from the
               ///< last.
        Output, ///< `out0.-1`
        Meaning, ///< `batch`, `sequence`, `heads`: what the identifier is in the model.
    };
    Kind kind = Kind::Identifier;
    /// Of Meaning. Batch is what `analyseBatch` cuts, the others are found by `analyseDimensions`; where an
    /// operator has several, `findMeant` says which (the query's sequence; the key's has its identifier as
    /// name).
    DimensionMeaning meaning = DimensionMeaning::Batch;
    std::string name{}; ///< Of Identifier.
    std::int32_t slot = 0; ///< Of Input and Output.
    std::int32_t dimension = 0; ///< Of Input and Output.
    friend bool operator==(const DimensionRef &, const DimensionRef &) = default;
};

Result<DimensionRef> parseDimension(TextCursor &cursor);
std::string print(const DimensionRef &dimension);
nlohmann::json toJson(const DimensionRef &ref);
/// The members "dimension" and "parts" of a rule that cuts along a dimension, and their text "batch by 2".
struct PartsAlong {
    DimensionRef dimension{};
    std::int32_t parts = 2;
};
Result<PartsAlong> parsePartsAlong(TextCursor &cursor);
std::string print(const PartsAlong &rule);
void write(const PartsAlong &rule, nlohmann::json &json);
/// @param json  may have other members: who reads them refuses what is nobody's
Result<PartsAlong> partsAlongAt(const nlohmann::json &json, const std::string &where);

/// The member "dimension" of `object`, which is at `parent` in its document.
Result<DimensionRef> dimensionAt(const nlohmann::json &object, const std::string &parent);

} // namespace planloom
