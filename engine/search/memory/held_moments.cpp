#include "engine/search/memory/held_moments.h"

#include <algorithm>
#include <cmath>

namespace planloom {

namespace {

/// Weights of moments are found so exactly.
constexpr double kExact = 1.0 / 32;

} // namespace

HeldMoments::HeldMoments(std::size_t ranks, const std::vector<StageHeld> &first)
    : m_ranks(ranks)
    , m_mixed(first.size())
{
    for (std::size_t r = 0; r < ranks; ++r) {
        m_ranks[r].base = momentOf(r, first);
        m_ranks[r].known.push_back(m_ranks[r].base);
        put(r, m_ranks[r].base);
    }
}

bool HeldMoments::shift(std::size_t rank, const std::vector<StageHeld> &heldBy)
{
    Rank &own = m_ranks[rank];
    const Moment moment = momentOf(rank, heldBy);
    const bool isBase = std::find(own.known.begin(), own.known.end(), moment) != own.known.end();
    if (!own.target.empty() && moment == own.target) {
        own.low = (own.low + own.high) / 2;
    } else if (isBase && own.target.empty()) {
        return false;
    } else if (isBase) {
        own.high = (own.low + own.high) / 2;
    } else {
        if (!own.target.empty()) {
            own.base = mixedOf(own);
            own.known.push_back(own.target);
        }
        own.target = moment;
        own.low = 0;
        own.high = 1;
    }
    put(rank, mixedOf(own));
    return own.high - own.low > kExact;
}

HeldMoments::Moment HeldMoments::momentOf(std::size_t rank, const std::vector<StageHeld> &heldBy) const
{
    Moment moment;
    for (std::size_t s = rank; s < heldBy.size(); s += m_ranks.size())
        moment.push_back({static_cast<double>(heldBy[s].microBatches),
            static_cast<double>(heldBy[s].deferred), heldBy[s].gradients ? 1.0 : 0.0});
    return moment;
}

HeldMoments::Moment HeldMoments::mixedOf(const Rank &rank) const
{
    const double weight = (rank.low + rank.high) / 2;
    Moment mixed = rank.base;
    for (std::size_t s = 0; s < mixed.size(); ++s) {
        const MixedHeld &target = rank.target[s];
        mixed[s] = {std::lerp(mixed[s].microBatches, target.microBatches, weight),
            std::lerp(mixed[s].deferred, target.deferred, weight),
            std::lerp(mixed[s].gradients, target.gradients, weight)};
    }
    return mixed;
}

void HeldMoments::put(std::size_t rank, const Moment &moment)
{
    for (std::size_t i = 0; i < moment.size(); ++i)
        m_mixed[rank + i * m_ranks.size()] = moment[i];
}

} // namespace planloom
