#include "engine/hardware/remembered_costs.h"

#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace planloom {

namespace {

/// Above, all are forgotten: what is asked for again is soon there again.
constexpr std::size_t kMostRemembered = std::size_t{1} << 16;

struct Asked {
    CollectiveKind kind{};
    Bytes bytes{};
    GroupShape shape{};
    friend bool operator==(const Asked &, const Asked &) = default;
};

struct HashOfAsked {
    std::size_t operator()(const Asked &asked) const
    {
        std::uint64_t hash = static_cast<std::uint64_t>(asked.bytes.count);
        const auto add = [&hash](std::uint64_t number) {
            hash = (hash ^ number) * 0x9e3779b97f4a7c15U;
            hash ^= hash >> 29U;
        };
        add(static_cast<std::uint64_t>(asked.kind));
        add(static_cast<std::uint64_t>(asked.shape.ranks) << 32U
            | static_cast<std::uint32_t>(asked.shape.nodes));
        for (const std::int32_t outer : asked.shape.outer)
            add(static_cast<std::uint32_t>(outer));
        add(asked.shape.classes);
        return hash;
    }
};

struct Remembered {
    std::mutex mutex{}; ///< Of what follows.
    std::unordered_map<Asked, double, HashOfAsked> seconds{};
};

} // namespace

CostModel withRememberedCollectives(CostModel costs)
{
    costs.collective = [ask = std::move(costs.collective), known = std::make_shared<Remembered>()](
                           CollectiveKind kind, Bytes bytes, GroupShape shape) {
        const Asked asked{kind, bytes, shape};
        {
            const std::scoped_lock lock(known->mutex);
            if (const auto found = known->seconds.find(asked); found != known->seconds.end())
                return found->second;
        }
        const double seconds = ask(kind, bytes, shape);
        const std::scoped_lock lock(known->mutex);
        if (known->seconds.size() >= kMostRemembered)
            known->seconds.clear();
        known->seconds.emplace(asked, seconds);
        return seconds;
    };
    return costs;
}

} // namespace planloom
