#include "engine/analyse/what_if.h"

#include <algorithm>

namespace planloom {

WhatIf stepWithout(const Timeline &timeline, const TimelineDependencies &dependencies,
    const std::vector<std::size_t> &rows, std::stop_token stop)
{
    const SpanColumns &spans = timeline.spans;
    if (dependencies.size() != spans.size() || dependencies.order.size() != spans.size())
        return {};
    WhatIf answer;
    answer.before = timeline.step.count();
    std::vector<bool> gone(spans.size(), false);
    for (const std::size_t row : rows) {
        if (row >= spans.size())
            continue;
        gone[row] = true;
        answer.own += spans.duration[row];
        ++answer.spans;
    }
    std::vector<std::int64_t> end(spans.size(), 0);
    std::int64_t last = -1;
    const auto &order = dependencies.order;
    for (std::size_t first = 0; first < order.size();) {
        if (first % 4096 < 64 && stop.stop_requested())
            return {};
        // The members of a communication stand together, start together and end together.
        const std::int32_t meeting = dependencies.meeting[static_cast<std::size_t>(order[first])];
        std::size_t behind = first + 1;
        while (meeting >= 0 && behind < order.size()
            && dependencies.meeting[static_cast<std::size_t>(order[behind])] == meeting)
            ++behind;
        std::int64_t ready = 0; // as it would be
        std::int64_t wasReady = 0;
        std::int64_t begun = 0;
        std::int64_t duration = 0;
        bool away = false;
        for (std::size_t i = first; i < behind; ++i) {
            const auto s = static_cast<std::size_t>(order[i]);
            away = away || gone[s];
            duration = std::max(duration, spans.duration[s]);
            begun = std::max(begun, spans.start[s]);
            for (std::int32_t e = dependencies.needBegin[s]; e < dependencies.needBegin[s + 1]; ++e) {
                const auto need =
                    static_cast<std::size_t>(dependencies.needs[static_cast<std::size_t>(e)].span);
                ready = std::max(ready, end[need]);
                wasReady = std::max(wasReady, spans.start[need] + spans.duration[need]);
            }
        }
        const std::int64_t done = ready + std::max<std::int64_t>(begun - wasReady, 0) + (away ? 0 : duration);
        for (std::size_t i = first; i < behind; ++i) {
            const auto s = static_cast<std::size_t>(order[i]);
            end[s] = done;
            if (done > last) {
                last = done;
                answer.lastDevice = spans.device[s];
            }
        }
        first = behind;
    }
    answer.after = std::max<std::int64_t>(last, 0);
    return answer;
}

} // namespace planloom
