#include "engine/search/stages/stages_by_end.h"

#include "engine/binding/stage_numbers.h"

#include <algorithm>
#include <optional>

namespace planloom {

namespace {

/// Bisections of the time in which all stages are to end: to a millionth of the range.
constexpr int kBisections = 20;

/// Sums of what stands before each link of a chain.
class EndingChain
{
public:
    EndingChain(const std::vector<StagedSeconds> &links, double microBatches)
        : m_before(links.size() + 1)
        , m_microBatches(microBatches)
    {
        for (std::size_t i = 0; i < links.size(); ++i)
            m_before[i + 1] = {m_before[i].forward + links[i].forward,
                m_before[i].backward + links[i].backward, m_before[i].apart + links[i].apart,
                m_before[i].update + links[i].update};
    }

    std::size_t size() const { return m_before.size() - 1; }

    /// When the stage of links [begin, end) ends: later, the later `end` is, and the earlier `begin`.
    double endOf(std::size_t begin, std::size_t end) const
    {
        const auto of = [&](double StagedSeconds::*what) {
            return m_before[end].*what - m_before[begin].*what;
        };
        const StagedSeconds &all = m_before.back();
        const StagedSeconds &before = m_before[begin];
        const double last = of(&StagedSeconds::apart) + of(&StagedSeconds::update);
        const double way = all.forward + all.backward - before.backward + last;
        const double passes =
            of(&StagedSeconds::forward) + of(&StagedSeconds::backward) + of(&StagedSeconds::apart);
        return std::max(way, before.forward + m_microBatches * passes + of(&StagedSeconds::update));
    }

private:
    std::vector<StagedSeconds> m_before;
    double m_microBatches = 1;
};

/// Where stages 1, 2, ... begin so that all end by `latest`, each as late as can be; nothing where they
/// cannot.
std::optional<std::vector<std::size_t>> cutsWithin(
    const EndingChain &chain, const std::vector<std::size_t> &places, std::int32_t stages, double latest)
{
    std::vector<std::size_t> cuts;
    std::size_t begin = 0;
    for (std::int32_t stage = 1; stage < stages; ++stage) {
        const auto left = static_cast<std::size_t>(stages - 1 - stage); // cuts that follow
        const auto first = std::upper_bound(places.begin(), places.end(), begin);
        auto last = std::partition_point(
            first, places.end(), [&](std::size_t end) { return chain.endOf(begin, end) <= latest; });
        if (static_cast<std::size_t>(places.end() - first) <= left || last == first)
            return std::nullopt;
        last = std::min(last - 1, places.end() - 1 - static_cast<std::ptrdiff_t>(left));
        cuts.push_back(begin = *last);
    }
    return chain.endOf(begin, chain.size()) <= latest ? std::optional(std::move(cuts)) : std::nullopt;
}

} // namespace

std::vector<std::int32_t> stagesEndingEarly(const SelectorIndex &index, std::int32_t stages,
    const std::vector<StagedSeconds> &seconds, std::int32_t microBatches, bool betweenLayers)
{
    const auto isFree = freeOperators(index, std::vector<bool>(index.graph().operators.size(), false), true);
    std::vector<OperatorId> links;
    std::vector<StagedSeconds> ofLinks;
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < index.forwardCount(); ++i) {
        if (isFree[i])
            continue;
        const OperatorId op{static_cast<std::int32_t>(i)};
        if (!links.empty() && (!betweenLayers || index.layerOf(links.back()) != index.layerOf(op)))
            places.push_back(links.size());
        links.push_back(op);
        ofLinks.push_back(seconds[i]);
    }
    const EndingChain chain(ofLinks, microBatches);
    double early = 0;
    double late = chain.endOf(0, chain.size()) * stages;
    auto cuts = cutsWithin(chain, places, stages, late);
    for (int i = 0; cuts && i < kBisections; ++i) {
        const double middle = (early + late) / 2;
        auto found = cutsWithin(chain, places, stages, middle);
        (found ? late : early) = middle;
        if (found)
            cuts = std::move(found);
    }
    if (!cuts)
        return {};
    std::vector<std::int32_t> stageOf(index.graph().operators.size(), 0);
    for (std::size_t p = 0; p < links.size(); ++p)
        stageOf[at(links[p])] =
            static_cast<std::int32_t>(std::upper_bound(cuts->begin(), cuts->end(), p) - cuts->begin());
    joinConsumers(index, isFree, stageOf);
    stageOf.resize(index.forwardCount());
    return stageOf;
}

} // namespace planloom
