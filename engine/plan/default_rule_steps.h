#pragma once

#include "engine/binding/followers.h"
#include "engine/plan/plan_draft.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace planloom {

/// Decides operators one after the other, producers first.
class DefaultRule
{
public:
    explicit DefaultRule(PlanDraft &draft, bool follow)
        : m_draft(draft)
        , m_graph(draft.graph())
        , m_follow(follow)
    {
        if (follow)
            m_domainOf.assign(m_graph.operators.size(), -1);
        for (std::size_t i = 0; i < draft.bound.alikeWith.size(); ++i)
            if (const OperatorId leader = draft.bound.alikeWith[i].leader)
                m_alikes[leader].push_back({static_cast<std::int32_t>(i)});
    }

    void decideAll();
    void decide(OperatorId op, std::int32_t domain);

private:
    using LaneDomains = std::vector<Domain>; ///< By lane: what it has of an operator's place.
    void chooseDomains();
    std::vector<std::size_t> nestingOfAxes(OperatorId op) const;
    void onMesh(OperatorId op, const Domain &domain, std::vector<DeviceId> &devices);
    void onList(OperatorId op, const Domain &domain, std::vector<DeviceId> &devices);
    bool followList(OperatorId op, const Domain &domain, std::vector<DeviceId> &devices);
    void dealOut(OperatorId op, const Domain &domain, std::vector<DeviceId> &devices);
    Split byDefault(OperatorId op, const MeshAxis &axis, const std::vector<Split> &taken, std::string &why);
    std::optional<Split> leadersSplit(OperatorId op, const MeshAxis &axis, const std::vector<Split> &taken);
    std::optional<Split> batchSplit(OperatorId op, const MeshAxis &axis, const std::vector<Split> &taken);
    bool mayBe(OperatorId op, const std::vector<Split> &splits) const;
    void keepToParts(OperatorId op, const Domain &domain, const std::vector<Split> &besides);
    bool asItsLeader(OperatorId op, const MeshAxis &axis, Split &split);
    void checkParts(OperatorId op);
    void checkFollowing(OperatorId op);
    void addCoshard(OperatorId op, std::vector<DeviceId> &devices);
    void addSlices(OperatorId op, std::vector<DeviceId> &devices);
    std::optional<LaneDomains> lanesOf(OperatorId op, const Domain &domain);
    std::optional<Split> laneSplit(OperatorId op, const std::string &axis);
    void addLanes(OperatorId op, const LaneDomains &lanes, std::vector<DeviceId> &devices);
    void checkResult(OperatorId op);
    void explain(std::string &why, const std::string &part);

    PlanDraft &m_draft;
    const Graph &m_graph;
    bool m_follow = true;
    std::vector<std::int32_t> m_domainOf{};
    std::map<OperatorId, std::vector<OperatorId>> m_alikes{}; ///< Who is cut alike, by the first of them.
    std::int32_t m_domain = -1; ///< Of the operator at hand.
    Leader m_leader{}; ///< Of the operator at hand.
    std::vector<ChosenSplit> m_chosen{}; ///< What rows decide for the operator at hand.
    std::vector<Split> m_splits{}; ///< Of the operator at hand.
    std::vector<bool> m_isFree{}; ///< By axis of its place: no row decides how it is split over it.
    std::int32_t m_lanes = 1; ///< Of the operator at hand: as rows ask for.
    std::optional<Split> m_inLanes{}; ///< Of the operator at hand: nothing where it runs in one of them.
};

/// The splits of `partition` but for those over lanes and slices.
std::vector<Split> insideBlocks(const Partition &partition);

} // namespace planloom
