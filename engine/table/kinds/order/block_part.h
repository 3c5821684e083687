#pragma once

#include "engine/table/kinds/rule_traits.h"

#include <cstdint>
#include <string>

namespace planloom {

/// Which of the blocks that a stage has in one pass: those of a lane (see `LanesRule`), of a slice (see
/// `SliceRule`), of both, or all.
struct BlockPart {
    std::int32_t lane = -1; ///< From 0; -1 for every one.
    std::int32_t slice = -1; ///< From 0; -1 for every one.
    friend auto operator<=>(const BlockPart &, const BlockPart &) = default;

    bool isAll() const { return lane < 0 && slice < 0; }
    /// The block of this lane and slice is among them.
    bool holds(std::int32_t itsLane, std::int32_t itsSlice) const
    {
        return (lane < 0 || lane == itsLane) && (slice < 0 || slice == itsSlice);
    }
};

/// "in lane 0 slice 2", of which anything may be missing; in JSON the members `lane` and `slice`, with
/// `prefix` before their names.
void blockPart(RuleForm &form, BlockPart &part, const std::string &prefix);
/// " in lane 0 slice 2", or what is said of it.
std::string toString(const BlockPart &part);

} // namespace planloom
