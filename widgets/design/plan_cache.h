#pragma once

#include "engine/base/result.h"
#include "widgets/design/plan_update.h"

#include <cstddef>
#include <cstdint>
#include <list>
#include <string>
#include <unordered_map>

namespace planloom {

/// Finished answers by what they follow from, the latest used ones: undo shows a plan at once. GUI thread
/// only.
class PlanCache
{
public:
    /// What an answer follows from: model, rows, cluster and devices, as one text.
    static std::string keyOf(const PlanRequest &request);

    /// Null if it is not there.
    PlanUpdateSnapshot find(const std::string &key);
    /// Keeps `update` (final ones only) and lets go of the longest unused ones above `kMostSpans`.
    void insert(const std::string &key, PlanUpdateSnapshot update);
    void clear();
    std::size_t size() const { return m_entries.size(); }

private:
    /// Spans and instructions make an answer's size; about 1 GiB at this bound.
    static constexpr std::size_t kMostSpans = 8'000'000;
    static constexpr std::size_t kMostEntries = 64;
    struct Entry {
        std::string key{};
        PlanUpdateSnapshot update{};
        std::size_t spans = 0;
    };
    std::list<Entry> m_entries; ///< The latest used one first.
    std::unordered_map<std::string, std::list<Entry>::iterator> m_byKey;
    std::size_t m_spans = 0;
};

} // namespace planloom
