#pragma once

#include "engine/schedule/search/placement.h"

#include <cstdint>
#include <vector>

namespace planloom {

/// What is decided on the options of a block: an index into `Placement::options`, or one of these.
constexpr std::int32_t kOptionKept = -1; ///< None is taken: the block's memory is held. So for others, too.
constexpr std::int32_t kOptionOpen = -2; ///< Nothing is decided yet.

/// By block of a placement.
using OptionChoices = std::vector<std::int32_t>;

/// The placement with these options carried out, without any options: blocks keep their index, those that
/// copy follow, by option: out (kind "offload"), then back ("fetch"), with ids above all others.
///
/// Options that are open leave a placement that all decisions on them are schedules of, with the same starts:
/// the most that any saves is not held between its blocks, and takes no time.
Placement withOptions(const Placement &placement, const OptionChoices &choices);

/// All options kept.
OptionChoices keptOptions(const Placement &placement);

/// Those blocks' options open that have any, all others kept.
OptionChoices openOptions(const Placement &placement);

} // namespace planloom
