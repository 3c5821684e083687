#pragma once

#include "engine/simulate/link_map.h"
#include "engine/simulate/meetings.h"

#include <cstdint>
#include <stop_token>
#include <vector>

namespace planloom {

/// How long every meeting takes where those that run at the same time share links.
///
/// A fluid model: what a communication asks of its links (`CommunicationLoad`) flows at a speed from 0 to 1,
/// which changes only when another begins or ends; the speeds of those that run are max-min fair
/// (`FairShare`). Its latency passes whatever the others do. Which links there are says `LinkMap`: a device's
/// port inside its node, its network card, or the part of one that it shares, and the ways out of racks,
/// sites ..., each in both directions.
///
/// What a device's network gives it is priced already in `collectiveSeconds`: a group alone on a link is at
/// full speed, and nothing counts twice.
/// @return empty where no link can ever be asked for more than it gives: then all take as long as alone. Also
/// if stopped, or if the programs do not fit together, which `runPrograms` says
/// O(unrolled instructions + events x (log events + those that share links with what begins or ends))
MeetingDurations contendedDurations(const std::vector<CompiledProgram> &programs, const MeetingPlaces &places,
    const LinkMap &links, const std::vector<CommunicationLoad> &loads, std::int32_t microBatches,
    const std::stop_token &stop);

} // namespace planloom
