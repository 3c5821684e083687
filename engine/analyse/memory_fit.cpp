#include "engine/analyse/memory_fit.h"

#include "engine/analyse/memory_at.h"
#include "engine/graph/dimensions/dimension_classes.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace planloom {

namespace {

using Held = std::array<std::int64_t, kHeldAsCount>;

/// By tensor: whether it runs over a vocabulary; whether a backward operator reads it.
class TensorUses
{
public:
    explicit TensorUses(const Graph &graph)
        : m_graph(graph)
        , m_isOfVocabulary(graph.tensors.size(), false)
        , m_isSaved(graph.tensors.size(), false)
    {
        const DimensionClasses classes = analyseDimensions(graph);
        for (std::size_t t = 0; t < graph.tensors.size(); ++t)
            m_isOfVocabulary[t] = std::any_of(
                classes.ofTensor[t].begin(), classes.ofTensor[t].end(), [&](DimensionClassId each) {
                    return each.valid() && leadingWith(classes, each, DimensionMeaning::Vocabulary).valid();
                });
        for (const Operator &op : graph.operators)
            for (const TensorId input : op.inputs)
                if (input && op.direction == Direction::Backward)
                    m_isSaved[at(input)] = true;
    }

    HeldAs of(const BufferLifetime &lifetime) const
    {
        const bool isWeight = lifetime.tensor && m_graph.at(lifetime.tensor).role == TensorRole::Weight;
        switch (lifetime.kind) {
        case MemoryKind::Weight:
            return HeldAs::Parameters;
        case MemoryKind::Gradient:
            return HeldAs::Gradients;
        case MemoryKind::OptimizerState:
            return isWeight ? HeldAs::MainParameters : HeldAs::OptimizerStates;
        case MemoryKind::Input:
            return HeldAs::Inputs;
        case MemoryKind::Communication:
            return HeldAs::CommunicationBuffers;
        case MemoryKind::Activation:
            break;
        }
        if (!lifetime.tensor)
            return HeldAs::OtherActivations;
        if (m_isOfVocabulary[at(lifetime.tensor)])
            return HeldAs::Logits;
        const bool isSaved =
            m_isSaved[at(lifetime.tensor)] && m_graph.at(lifetime.tensor).role == TensorRole::Activation;
        return isSaved ? HeldAs::SavedActivations : HeldAs::OtherActivations;
    }

private:
    const Graph &m_graph;
    std::vector<bool> m_isOfVocabulary{};
    std::vector<bool> m_isSaved{};
};

Held heldAtPeak(
    const ExecutionPlan &plan, const Timeline &timeline, const TensorUses &uses, std::size_t device)
{
    Held held{};
    const MemoryCurve &curve = timeline.memory[device];
    const DeviceId id{static_cast<std::int32_t>(device)};
    for (const BufferLifetime &each : memoryAt(plan, timeline, id, peakTime(curve)))
        held[static_cast<std::size_t>(uses.of(each))] += each.bytes.count;
    held[static_cast<std::size_t>(HeldAs::Workspaces)] +=
        curve.peak.count - std::accumulate(held.begin(), held.end(), std::int64_t{0});
    return held;
}

} // namespace

const char *nameOf(HeldAs held)
{
    constexpr std::array<const char *, kHeldAsCount> kNames{"parameters", "main parameters", "gradients",
        "optimizer states", "saved activations", "logits", "other activations", "workspaces", "inputs",
        "communication buffers"};
    return kNames[static_cast<std::size_t>(held)];
}

const char *keyOf(HeldAs held)
{
    constexpr std::array<const char *, kHeldAsCount> kKeys{"parameters", "main_parameters", "gradients",
        "optimizer_states", "saved_activations", "logits", "other_activations", "workspaces", "inputs",
        "communication_buffers"};
    return kKeys[static_cast<std::size_t>(held)];
}

std::vector<RankMemory> memoryOfRanks(
    const ExecutionPlan &plan, const Timeline &timeline, const Cluster &cluster)
{
    const TensorUses uses(*plan.graph);
    std::map<std::int32_t, Held> known; // by class of devices with equal timelines
    std::vector<RankMemory> ranks;
    for (std::size_t d = 0; d < timeline.memory.size(); ++d) {
        const std::int32_t like =
            d < timeline.symmetryClass.size() ? timeline.symmetryClass[d] : -1 - static_cast<std::int32_t>(d);
        const auto [found, isNew] = known.try_emplace(like);
        if (isNew)
            found->second = heldAtPeak(plan, timeline, uses, d);
        for (std::int32_t unit = 0; unit < plan.units.count; ++unit) {
            const DeviceId rank = plan.units.deviceOf(unit, DeviceId{static_cast<std::int32_t>(d)});
            ranks.push_back({rank, timeline.memory[d].peak.count,
                static_cast<std::int64_t>(cluster.deviceAt(rank).memory.value), found->second});
        }
    }
    std::sort(
        ranks.begin(), ranks.end(), [](const RankMemory &a, const RankMemory &b) { return a.rank < b.rank; });
    return ranks;
}

const RankMemory *fullestOf(const std::vector<RankMemory> &ranks)
{
    const auto found = std::max_element(ranks.begin(), ranks.end(),
        [](const RankMemory &a, const RankMemory &b) { return a.share() < b.share(); });
    return found == ranks.end() ? nullptr : &*found;
}

} // namespace planloom
