#pragma once

#include "engine/graph/dimensions/dimension_classes.h"

#include <cstdint>
#include <string>

namespace planloom {

class RuleForm;

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

std::string print(const DimensionRef &dimension);
/// A word; in JSON the member "dimension".
void dimensionRef(RuleForm &form, DimensionRef &dimension);
/// "batch by 2"; in JSON the members "dimension" and "parts".
void partsAlong(RuleForm &form, DimensionRef &dimension, std::int32_t &parts);

} // namespace planloom
