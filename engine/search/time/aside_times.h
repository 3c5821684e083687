#pragma once

#include "engine/binding/bound_table.h"
#include "engine/hardware/cluster.h"
#include "engine/search/partition/mesh_places.h"
#include "engine/search/partition/partition_problem.h"
#include "engine/search/partition/placed_operators.h"
#include "engine/search/time/stage_figures.h"

#include <cstdint>
#include <map>
#include <vector>

namespace planloom {

/// What operators take that rows place apart (`PlacedOperators::aside`), with what is sent to their devices
/// and back. One micro-batch is played, operator by operator in their order: the mesh does what is left to
/// the search, the devices of a group what rows put there, and each waits for what the other makes.
///
///     mesh      | fc 4 |                          waits                          | proj | ...
///     group            :              | concat | gelu | select |                 :
///     its links        | 7 pieces come         |         | 7 pieces go           |
///
/// A group is bound by its own links, which send or receive one piece after the other. An estimate: as if all
/// devices of a stage waited for the last piece. For one thread.
class AsideTimes
{
public:
    /// Of nothing.
    AsideTimes() = default;
    /// @param setting  of the problem, with its rows; @param cluster  must outlive this
    AsideTimes(const AxisSetting &setting, const Cluster &cluster, const PlacedOperators &placed);

    bool isEmpty() const { return m_operators.empty(); }
    /// Seconds of a step that the device computes which has most of what is placed apart.
    double ofDevice() const { return m_ofDevice; }

    struct Played {
        OperatorTimes times{}; ///< With what each operator waits, or lets all others wait.
        /// By stage: how much of that makes gradients of weights of operators placed apart, which a backward
        /// pass that is split does later.
        std::vector<double> weights{};
        /// By stage: seconds in which its devices run operators of other stages that are placed there.
        std::vector<double> hostedForward{};
        std::vector<double> hostedBackward{};
        double longer = 0; ///< Seconds that is more of both passes than without them: no less.
    };
    /// @param problem  of the setting, or of another class of devices @param places  of its configuration
    /// @param times  of the partition, without what is placed apart
    /// O((operators + tensors) x groups), and O(devices) once for each way in which tensors lie.
    Played play(const PartitionProblem &problem, const MeshPlaces &places,
        const std::vector<std::int32_t> &choice, const StagePlan &plan, OperatorTimes times) const;
    /// Seconds between the gradients of weights that others read in parts, too, and their updates: a group
    /// sends what it made of them to all who have a part, and gets the parts back.
    double sharedSeconds(const PartitionProblem &problem, const MeshPlaces &places,
        const std::vector<std::int32_t> &choice) const;
    /// Seconds in which devices update weights that only operators placed apart read: of the device that has
    /// most. @param rank  whose devices they are; -1: those that are no rank's
    double updateSeconds(const PartitionProblem &problem, const MeshPlaces &places, std::int32_t rank) const;

private:
    struct Own { ///< An operator, of one micro-batch on one device.
        std::int32_t group = -1; ///< Not placed apart where it is -1.
        double parts = 1; ///< Into how many it is cut there.
        double forward = 0;
        double backward = 0;
        double weights = 0; ///< Of that, what makes gradients of weights.
    };
    class Player;

    const Cluster *m_cluster = nullptr;
    std::vector<Own> m_operators{}; ///< By forward operator.
    std::vector<std::vector<DeviceId>> m_groups{}; ///< That operators are on; the devices ascending.
    std::vector<std::vector<TensorId>> m_weights{}; ///< By group: that these operators read.
    double m_ofDevice = 0;
};

} // namespace planloom
