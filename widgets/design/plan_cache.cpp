#include "widgets/design/plan_cache.h"

namespace planloom {

std::string PlanCache::keyOf(const PlanRequest &request)
{
    // The model by identity: an answer holds its model, so the address is not given out again while it is
    // kept.
    return std::to_string(reinterpret_cast<std::uintptr_t>(request.model.get())) + '\n'
        + request.target.cluster + '\n' + std::to_string(request.target.deviceCount) + '\n'
        + std::to_string(request.target.clusterJson.size()) + '\n' + request.target.clusterJson + '\n'
        + request.table.text();
}

PlanUpdateSnapshot PlanCache::find(const std::string &key)
{
    const auto found = m_byKey.find(key);
    if (found == m_byKey.end())
        return nullptr;
    m_entries.splice(m_entries.begin(), m_entries, found->second);
    return m_entries.front().update;
}

void PlanCache::insert(const std::string &key, PlanUpdateSnapshot update)
{
    if (!update || !update->final)
        return;
    if (const auto found = m_byKey.find(key); found != m_byKey.end()) {
        m_spans -= found->second->spans;
        m_entries.erase(found->second);
        m_byKey.erase(found);
    }
    const std::size_t spans = update->scene ? update->scene->timeline->spans.size() : 0;
    m_entries.push_front({key, std::move(update), spans});
    m_byKey.emplace(key, m_entries.begin());
    m_spans += spans;
    while (m_entries.size() > 1 && (m_spans > kMostSpans || m_entries.size() > kMostEntries)) {
        m_spans -= m_entries.back().spans;
        m_byKey.erase(m_entries.back().key);
        m_entries.pop_back();
    }
}

void PlanCache::clear()
{
    m_entries.clear();
    m_byKey.clear();
    m_spans = 0;
}

} // namespace planloom
