#include "engine/simulate/meetings.h"

#include <algorithm>

namespace planloom {

MeetingPlaces meetingPlaces(const Symmetry &symmetry, std::int32_t microBatches)
{
    MeetingPlaces result;
    result.places.resize(static_cast<std::size_t>(symmetry.channelClassCount));
    for (std::size_t c = 0; c < symmetry.channels.size(); ++c) {
        MeetingPlace &place = result.places[static_cast<std::size_t>(symmetry.channelClass[c])];
        if (place.channel >= 0)
            continue;
        const Channel &channel = symmetry.channels[c];
        place.channel = static_cast<std::int32_t>(c);
        for (const Channel::Member &member : channel.members) {
            place.complete = place.complete && member.slot >= 0;
            place.ends.emplace_back(
                symmetry.deviceClass[static_cast<std::size_t>(member.device)], member.slot);
        }
        std::sort(place.ends.begin(), place.ends.end());
        place.ends.erase(std::unique(place.ends.begin(), place.ends.end()), place.ends.end());
        place.begin = result.points;
        result.points += channel.tag < 0 ? 1 : microBatches;
    }
    return result;
}

} // namespace planloom
