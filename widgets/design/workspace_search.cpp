// Searching for the best plan.

#include "engine/base/words.h"
#include "engine/design/explain/free_decisions.h"
#include "widgets/design/workspace.h"

#include <utility>
#include <vector>

namespace planloom {

void Workspace::searchBest()
{
    if (const auto row = scheduleThatHoldsSearch(table().table())) {
        const auto line = table().rowLines()[at(*row)];
        Q_EMIT problem({ErrorCode::InvalidInput,
            "the schedule of " + rowWords(line)
                + " is for the stages that the grey rows make, and no search knows it",
            "switch that row off to have all of them chosen again", "search"});
        return;
    }
    search(true);
}

bool Workspace::leaveToSearch(PlanRequest &wanted) const
{
    // As for a gallery plan: what another one has decided gives way.
    std::vector<std::int32_t> ofGallery;
    for (std::int32_t line = 0; line < table().lineCount(); ++line)
        if (const auto &row = table().lines()[static_cast<std::size_t>(line)]->row;
            row && row->origin == RowOrigin::Template)
            ofGallery.push_back(line);
    wanted.search = true;
    wanted.memory = m_searchMemory;
    return ofGallery.empty() || wanted.table.apply(removeLines(wanted.table, ofGallery)).has_value();
}

std::optional<PlanRequest> Workspace::searchRequest() const
{
    auto wanted = planRequest();
    if (!wanted || m_readOnly || scheduleThatHoldsSearch(table().table()) || !leaveToSearch(*wanted))
        return std::nullopt;
    return wanted;
}

/// @param meanwhile  the plan of the rows as they are is not known, and shown until the search has one
void Workspace::search(bool byName, bool meanwhile)
{
    if (!m_model || m_model->planProblem)
        return;
    dropSoFar();
    PlanRequest wanted = requestFor(m_history.state());
    if (meanwhile)
        wanted.meanwhile = wanted.table;
    if (!leaveToSearch(wanted))
        return;
    wanted.betterEvery = m_betterEvery;
    m_searchAsked = true;
    m_searchByName = byName;
    m_searchNext = false;
    m_progress.reset();
    m_galleryAsked.clear();
    m_editTimer.stop();
    m_revision = m_engine->plan(std::move(wanted));
    Q_EMIT stateChanged();
}

} // namespace planloom
