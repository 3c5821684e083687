#pragma once

#include "engine/hardware/cluster.h"
#include "engine/hardware/cost_model.h"
#include "engine/search/partition/mesh_places.h"
#include "engine/search/search_space.h"
#include "engine/search/time/pipeline_time.h"
#include "engine/search/time/stage_figures.h"

#include <vector>

namespace planloom {

/// What it takes to send from stage to stage; of the replica whose links are slowest.
class LinkTimes
{
public:
    /// What it is made of must outlive it.
    LinkTimes(const Configuration &configuration, const MeshPlaces &places, const CostModel &costs,
        const Cluster &cluster)
        : m_configuration(configuration)
        , m_places(places)
        , m_costs(costs)
        , m_cluster(cluster)
    {
    }

    /// Seconds, by link.
    std::vector<StageSend> sendsOf(const std::vector<StageLink> &links) const;
    /// Likewise of each tensor.
    struct Sending {
        std::vector<double> forward{};
        std::vector<double> backward{};
    };
    std::vector<Sending> sendingOf(const std::vector<StageLink> &links) const;

private:
    const Configuration &m_configuration;
    const MeshPlaces &m_places;
    const CostModel &m_costs;
    const Cluster &m_cluster;
};

} // namespace planloom
