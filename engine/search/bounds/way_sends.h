#pragma once

#include "engine/search/bounds/step_way.h"

#include <cstdint>
#include <map>
#include <vector>

namespace planloom {

/// What is sent from stage to stage on ways through a step: more or less of it, as partitions have it.
class WaySends
{
public:
    explicit WaySends(const BoundedStep &step);

    std::size_t count() const { return m_links.size(); }
    /// Of one partition. @param isOwn  by stage: its blocks take what its operators do
    void addTo(const std::vector<StageLink> &links, const std::vector<bool> &isOwn, StepWay &way) const;
    /// The operator that makes it.
    std::size_t makerOf(const SentOn &sent) const { return at(meetingOf(sent).producer); }
    /// Of what an operator's outputs take to be sent more than at least, as it is on ways.
    double seconds(const OperatorChoice &choice, const std::vector<SentOn> &sent) const;

private:
    const Meeting &meetingOf(const SentOn &sent) const;

    const BoundedStep &m_step;
    const std::vector<StageLink> m_links;
    const std::vector<StageSend> m_leastSends; ///< By link, as the next: seconds of each tensor at least.
    const std::vector<LinkTimes::Sending> m_leastSending;
    /// By the parts that each tensor is sent in (`partsSent`), as if all were.
    std::map<std::int64_t, std::vector<LinkTimes::Sending>> m_sending{};
    std::vector<bool> m_recomputes{}; ///< By stage: something.
};

} // namespace planloom
