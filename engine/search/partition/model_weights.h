#pragma once

#include "engine/search/partition/operator_choices.h"

#include <array>
#include <compare>
#include <cstdint>
#include <limits>
#include <tuple>
#include <vector>

namespace planloom {

/// A collective for one weight by itself.
struct OwnLaunch {
    CollectiveKind kind = CollectiveKind::AllReduce;
    GroupShape over{}; ///< One device: there is none.
    bool ofModel = false; ///< Of the weight as the model reads it; else of its gradient, as it is sent.

    friend bool operator==(const OwnLaunch &, const OwnLaunch &) = default;
    friend std::strong_ordering operator<=>(const OwnLaunch &a, const OwnLaunch &b)
    {
        const auto key = [](const OwnLaunch &each) {
            return std::tie(each.kind, each.over.ranks, each.over.nodes, each.over.outer, each.over.classes,
                each.ofModel);
        };
        return key(a) <=> key(b);
    }
};

/// Seconds that communication for one weight takes at least.
struct WeightTraffic {
    double fixed = 0;
    double perReducedByte = 0; ///< Of its gradient, as it is sent.
    double perModelByte = 0; ///< Of the weight, as the model reads it.
    /// Where a device has at least so many bytes of its gradient these are made for it alone, in place of the
    /// former.
    double launchedFrom = std::numeric_limits<double>::infinity();
    std::array<OwnLaunch, 3> launches{};
    double launchLess = 0; ///< Seconds taken off these: what others may have saved that go along.
    friend auto operator<=>(const WeightTraffic &, const WeightTraffic &) = default;
};

/// By the axes over which the gradients of a weight are summed up, beside replicas: `indexOf(ShardAxes)`.
template<typename Value> using BySums = std::array<Value, kShardAxisSets>;

/// What a whole weight, or buffer, takes of memory.
struct WeightBytes {
    std::int64_t model = 0; ///< As the model reads it.
    std::int64_t state = 0; ///< What the optimizer alone keeps: master and states.
    std::int64_t gradient = 0; ///< Of its gradient, added up over micro-batches.
    std::int64_t all() const { return model + state + gradient; }
};

struct LayerBytes { ///< Of weights that have a gradient, whole.
    double reducedBytes = 0; ///< Of their gradients, as they are sent.
    double modelBytes = 0; ///< As the model reads them.
};

/// What the weights of a model take of memory, of the optimizer and of communication, whole. Those that only
/// operators placed apart read take nothing but updates.
class ModelWeights
{
public:
    explicit ModelWeights(const AxisSetting &setting); ///< Must outlive it.

    /// The gradient of a tensor; invalid if it has none.
    TensorId gradientOf(TensorId tensor) const { return m_gradientOf[at(tensor)]; }
    const WeightBytes &bytesOf(TensorId weight) const { return m_bytes[at(weight)]; }
    /// Slots of forward operators that read a tensor, without those placed apart.
    std::int32_t readersOf(TensorId tensor) const { return m_readers[at(tensor)]; }
    /// Whether the optimizer updates more precise copies of some weights than the model reads.
    bool hasMasters() const { return m_hasMasters; }

    /// Seconds of the optimizer for all of a weight on one device, with casting it for the model.
    double updateSeconds(TensorId weight) const { return m_updates[at(weight)]; }
    /// Likewise of one that only operators placed apart read, of which the former is 0.
    double updateSecondsAside(TensorId weight) const { return m_updatesAside[at(weight)]; }
    /// Of all, but for the latter.
    double updateSeconds() const { return m_all.update; }
    /// Seconds of a step that communicating takes for all weights.
    double trafficSeconds(const WeightTraffic &traffic) const;
    /// Likewise of one of `readers` readers of a weight, for a part of it; 0 if it is not trained.
    double secondsOf(TensorId weight, const WeightTraffic &traffic, double share, double readers) const;

    /// Of that whose operators read a weight first; of what belongs to none, of all that one operator does.
    LayerBytes layerWith(TensorId weight) const { return m_layerWith[at(weight)]; }
    /// None has more of either.
    LayerBytes largestLayer() const { return m_largestLayer; }
    /// Bytes of the largest gradient of one, as it is sent, whole.
    double largestReduced() const { return m_all.largest; }

private:
    void findBytes();
    void leaveOutAside();
    void findLayers();
    void findUpdates();
    /// The types that a more precise weight is cast to for the model.
    std::vector<DataType> castsOf(TensorId weight) const;

    const AxisSetting &m_setting;
    const Graph &m_graph;
    std::vector<TensorId> m_gradientOf{}; ///< By tensor, as the next.
    std::vector<WeightBytes> m_bytes{};
    std::vector<std::int32_t> m_readers{};
    std::vector<double> m_reducedBytes{}; ///< Of its gradient, as it is sent.
    std::vector<double> m_updates{};
    std::vector<double> m_updatesAside{};
    std::vector<LayerBytes> m_layerWith{};
    LayerBytes m_largestLayer{};
    bool m_hasMasters = false;
    struct All { ///< That have a gradient.
        double count = 0;
        double reducedBytes = 0;
        double modelBytes = 0;
        double largest = 0; ///< See `largestReduced`.
        double update = 0; ///< Seconds.
    };
    All m_all{};
};

} // namespace planloom
