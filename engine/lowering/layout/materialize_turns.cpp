// Turns of coshard regions: what each makes is its own until the region is over.

#include "engine/lowering/layout/materialize.h"

#include "engine/lowering/layout/box_algebra.h"
#include "engine/lowering/layout/shared_summands.h"

#include <algorithm>

namespace planloom {

void Materializer::beginTurn(std::int32_t turn)
{
    m_turn = turn;
}

void Materializer::endTurns(std::int32_t block, const std::vector<TensorId> &read)
{
    m_turn = -1;
    for (const TensorId tensor : m_turnTensors) {
        TensorState &state = m_tensors[static_cast<std::size_t>(tensor.index)];
        Made joined{.block = block};
        const auto take = [&](const Made &made) {
            if (made.block != block)
                return false;
            // What a turn has added up itself stays so, if others can still add it to theirs.
            const auto &holdings =
                made.turn >= 0 && !made.merged.empty() && !shareSome(made.merged) ? made.merged : made.raw;
            joined.raw.insert(joined.raw.end(), holdings.begin(), holdings.end());
            return true;
        };
        const auto first = std::find_if(
            state.made.begin(), state.made.end(), [&](const Made &made) { return made.block == block; });
        const auto at = first - state.made.begin();
        std::erase_if(state.made, take);
        state.made.insert(state.made.begin() + at, std::move(joined));
        for (auto &[type, versions] : state.versions)
            std::erase_if(versions, [block](const Made &made) { return made.block == block; });
    }
    m_turnTensors.clear();
    for (const TensorId tensor : read) {
        auto &available = m_tensors[static_cast<std::size_t>(tensor.index)].available;
        std::vector<std::pair<DeviceId, std::int32_t>> gone; // device, buffer
        available.forEach([&](const auto &own) {
            for (const Available &slice : own) {
                const bool canBeCutAgain =
                    slice.block == block && std::any_of(own.begin(), own.end(), [&](const Available &whole) {
                        return whole.holding.box != slice.holding.box
                            && contains(whole.holding.box, slice.holding.box);
                    });
                if (canBeCutAgain)
                    gone.emplace_back(slice.holding.device, slice.holding.buffer);
            }
        });
        available.eraseIf([&](const Available &entry) {
            return std::find(gone.begin(), gone.end(), std::pair(entry.holding.device, entry.holding.buffer))
                != gone.end();
        });
    }
}

} // namespace planloom
