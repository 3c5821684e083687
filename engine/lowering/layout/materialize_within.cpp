// Within one group of devices, parts of values, and one box for many.

#include "engine/lowering/layout/materialize.h"

#include "engine/lowering/layout/box_algebra.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace planloom {

namespace {

/// Every box of `needs` is there with each part of the value.
bool coverParts(const std::vector<Need> &needs)
{
    std::map<IndexMask, std::set<std::int32_t>> parts;
    for (const Need &need : needs) {
        if (need.value.count != needs.front().value.count)
            return false;
        parts[need.box].insert(need.value.index);
    }
    return std::all_of(parts.begin(), parts.end(), [&](const auto &each) {
        return static_cast<std::int32_t>(each.second.size()) == needs.front().value.count;
    });
}

} // namespace

/// What `holdings` become along a path, in the order in which it numbers their devices.
std::vector<Holding> Materializer::along(
    const PathFinder::Found &found, const std::vector<Holding> &holdings, const Task &task)
{
    std::vector<Holding> numbered;
    std::vector<DeviceId> devices;
    for (const std::size_t i : found.order) {
        numbered.push_back(holdings[i]);
        devices.push_back(holdings[i].device);
    }
    walk(found.path, numbered, devices, task);
    return numbered;
}

std::optional<std::vector<Holding>> Materializer::convertWithin(
    const std::vector<Holding> &from, const std::vector<Need> &needs, const Task &task)
{
    // Same devices on both sides, one box each.
    if (from.size() != needs.size())
        return std::nullopt;
    std::vector<Holding> holdings = from;
    std::stable_sort(holdings.begin(), holdings.end(), byDevice);
    std::vector<Need> wanted = needs;
    std::stable_sort(
        wanted.begin(), wanted.end(), [](const Need &a, const Need &b) { return a.device < b.device; });
    std::vector<Cell> cells;
    for (std::size_t i = 0; i < holdings.size(); ++i) {
        if (holdings[i].device != wanted[i].device || (i > 0 && holdings[i].device == holdings[i - 1].device))
            return std::nullopt;
        cells.push_back({wanted[i].box, wanted[i].value.index});
    }
    // What is communicated for weights goes along with others: of a bucket, and of a layer (ZeRO-2 and 3).
    const MemoryKind memory = memoryOf(task.tensor);
    const Launch launch =
        memory == MemoryKind::Weight || memory == MemoryKind::Gradient ? Launch::InBucket : Launch::Alone;
    const auto found = m_paths.find(holdings, cells, task.whole, task.dataType, task.combination, launch);
    if (!found)
        return std::nullopt;
    if (!found->regular)
        if (const auto general = generalSeconds(from, needs, task); general && *general < found->path.seconds)
            return std::nullopt;
    return along(*found, holdings, task);
}

std::optional<std::vector<Holding>> Materializer::convertAmongHolders(
    const std::vector<Holding> &from, const std::vector<Need> &needs, const Task &task)
{
    if (needs.empty() || needs.size() >= from.size()
        || std::all_of(from.begin(), from.end(), [](const Holding &h) { return h.summands.empty(); }))
        return std::nullopt;
    std::map<DeviceId, const Need *> needOf;
    for (const Need &need : needs)
        if (!need.value.complete() || !needOf.try_emplace(need.device, &need).second)
            return std::nullopt;
    std::vector<Holding> holdings = from;
    std::stable_sort(holdings.begin(), holdings.end(), byDevice);
    // Who wants nothing is given what those want who do, in turn: so that all together have a layout.
    std::vector<const Need *> inTurn;
    for (const auto &[device, need] : needOf)
        inTurn.push_back(need);
    std::vector<Need> wanted;
    for (std::size_t i = 0; i < holdings.size(); ++i) {
        if (i > 0 && holdings[i].device == holdings[i - 1].device)
            return std::nullopt;
        wanted.push_back(*inTurn[i % inTurn.size()]);
        wanted.back().device = holdings[i].device;
        if (const auto own = needOf.find(holdings[i].device); own != needOf.end()) {
            if (own->second->box != wanted.back().box)
                return std::nullopt;
            needOf.erase(own);
        }
    }
    if (!needOf.empty())
        return std::nullopt; // others want it, too
    std::vector<Cell> cells;
    for (const Need &need : wanted)
        cells.push_back({need.box, 0});
    const auto found = m_paths.find(holdings, cells, task.whole, task.dataType, task.combination);
    const auto general = generalSeconds(from, needs, task);
    if (!found || (general && *general <= found->path.seconds))
        return std::nullopt;
    std::vector<Holding> brought = along(*found, holdings, task);
    std::erase_if(brought, [&](const Holding &h) {
        return std::none_of(
            needs.begin(), needs.end(), [&](const Need &need) { return need.device == h.device; });
    });
    return brought;
}

std::optional<std::vector<std::int32_t>> Materializer::ensureParts(
    TensorId tensor, const std::vector<Need> &needs, std::int32_t block, OperatorId op)
{
    TensorState &state = m_tensors[static_cast<std::size_t>(tensor.index)];
    const auto [asked, first] = m_partsFound.try_emplace({op, tensor}, false);
    // Lanes are lowered one after another: the first would divide what it made, the next finds what two of
    // them made and could not do so, and all have to divide a value alike.
    if (m_builder.block(block).lanes > 1)
        return std::nullopt;
    // Shares of a value are summed by those that read them: only summands of a sum are shares of it.
    if ((!first && !asked->second) || state.made.size() != 1 || !coverParts(needs)
        || onceWeighed(m_combinations[static_cast<std::size_t>(tensor.index)]) != Combination::Sum)
        return std::nullopt;
    Made &made = state.made.front();
    // What is made once per step stays so, unless micro-batches read slices of it.
    const BlockInfo &maker = m_builder.block(made.block);
    const bool once = maker.kind == SegmentKind::Prologue
        && m_batch.tensorDimension[static_cast<std::size_t>(tensor.index)] < 0;
    if (made.block != block && !once
        && (!perMicroBatch(block) || !perMicroBatch(made.block) || maker.rank > m_builder.block(block).rank))
        return std::nullopt;
    std::vector<std::int32_t> buffers;
    for (const Need &need : needs) {
        const auto found = std::find_if(state.parts.begin(), state.parts.end(), [&](const PartOfValue &part) {
            return part.need == need && m_builder.block(part.block).rank <= m_builder.block(block).rank;
        });
        if (found == state.parts.end())
            break;
        buffers.push_back(found->buffer);
    }
    if (buffers.size() == needs.size()) {
        asked->second = true;
        return buffers;
    }
    const SummandSet summands = summandsOf(made.raw);
    const Task task{.tensor = tensor,
        .op = op,
        .block = made.block == block || once ? made.block : transferBlock(made.block, block),
        .dataType = m_types.accumulated(tensor),
        .whole = wholeBox(tensor),
        .summands = summands};
    const std::vector<Holding> merged = merge(made, task);
    // Complete values are divided where they are needed; only sums that are still open are worth a path.
    if (!m_summands.complete(tensor, summands, task.whole)
        || std::all_of(merged.begin(), merged.end(), [](const Holding &h) { return h.summands.empty(); }))
        return std::nullopt;
    const auto brought = convertWithin(merged, needs, task);
    if (!brought)
        return std::nullopt;
    asked->second = true;
    buffers.clear();
    for (const Need &need : needs) {
        const auto it = std::find_if(
            brought->begin(), brought->end(), [&](const Holding &h) { return h.device == need.device; });
        buffers.push_back(it->buffer);
        state.parts.push_back({need, it->buffer, block});
    }
    return buffers;
}

std::vector<Materializer::Apart> Materializer::apartOf(
    const std::vector<Holding> &from, const std::vector<Need> &needs)
{
    std::map<IndexMask, std::size_t> group; // by box
    for (const Holding &h : from)
        group.try_emplace(h.box, group.size());
    for (const Need &need : needs)
        group.try_emplace(need.box, group.size());
    std::size_t count = group.size();
    for (auto a = group.begin(); a != group.end(); ++a)
        for (auto b = group.begin(); b != a; ++b) {
            const auto common = intersection(a->first, b->first);
            if (a->second == b->second || !common || volumeOf(*common) == 0)
                continue;
            const std::size_t gone = a->second;
            for (auto &[box, number] : group)
                number = number == gone ? b->second : number;
            --count;
        }
    if (count < 2)
        return {};
    std::map<std::size_t, Apart> found;
    for (const Holding &h : from)
        found[group.at(h.box)].from.push_back(h);
    for (const Need &need : needs)
        found[group.at(need.box)].needs.push_back(need);
    std::vector<Apart> apart;
    for (auto &[number, each] : found)
        if (!each.from.empty() && !each.needs.empty())
            apart.push_back(std::move(each));
    return apart;
}

/// Every need collects its pieces on its own, as `fetch` and `fetchGeneral` do: a device sends and receives
/// one at a time, and puts together what it got once all is sent.
std::optional<double> Materializer::generalSeconds(
    const std::vector<Holding> &from, const std::vector<Need> &needs, const Task &task) const
{
    if (std::any_of(needs.begin(), needs.end(), [](const Need &need) { return !need.value.complete(); }))
        return std::nullopt;
    std::map<DeviceId, double> busy;
    std::map<DeviceId, double> joining;
    const auto bytesOf = [&](const IndexMask &box) { return Bytes{volumeOf(box) * sizeOf(task.dataType)}; };
    for (const Need &need : needs) {
        std::vector<const Holding *> byPreference;
        for (const Holding &h : from)
            byPreference.push_back(&h);
        const auto rank = [&](const Holding *h) {
            return std::tuple(h->device != need.device,
                m_cluster.nodeOf(h->device) != m_cluster.nodeOf(need.device), busy[h->device], h->device);
        };
        std::stable_sort(byPreference.begin(), byPreference.end(),
            [&](const Holding *a, const Holding *b) { return rank(a) < rank(b); });
        std::map<SummandSet, std::vector<IndexMask>> missing; // by summands
        for (const Holding &h : from)
            missing[h.summands] = {need.box};
        std::int64_t pieces = 0;
        for (const Holding *h : byPreference) {
            std::vector<IndexMask> still;
            for (const IndexMask &box : missing[h->summands]) {
                const auto piece = intersection(h->box, box);
                if (!piece || volumeOf(*piece) == 0) {
                    still.push_back(box);
                    continue;
                }
                ++pieces;
                subtract(box, *piece, still);
                if (*piece != h->box)
                    busy[h->device] += m_costs.copy(bytesOf(*piece), m_cluster.classOf(h->device));
                if (h->device == need.device)
                    continue;
                const double seconds = m_costs.collective(CollectiveKind::SendRecv, bytesOf(*piece),
                    groupShape(m_cluster, {h->device, need.device}));
                busy[h->device] = busy[need.device] = std::max(busy[h->device], busy[need.device]) + seconds;
            }
            missing[h->summands] = std::move(still);
        }
        if (pieces > 1) // joined, or added up
            joining[need.device] += m_costs.copy(bytesOf(need.box), m_cluster.classOf(need.device));
    }
    for (const auto &[device, seconds] : joining)
        busy[device] += seconds;
    double worst = 0;
    for (const auto &[device, seconds] : busy)
        worst = std::max(worst, seconds);
    return worst;
}

namespace {

/// Who passes the box on, and to whom.
struct SpreadRoles {
    const Holding *root = nullptr;
    std::vector<DeviceId> members{}; ///< The root first.
};

/// Nothing if more than one box is wanted, nobody holds it, or fewer than two lack it.
std::optional<SpreadRoles> spreadRolesOf(const std::vector<Holding> &from, const std::vector<Need> &needs)
{
    const Need &first = needs.front();
    if (!first.value.complete()
        || std::any_of(needs.begin(), needs.end(),
            [&](const Need &need) { return need.box != first.box || need.value != first.value; })
        || std::any_of(
            from.begin(), from.end(), [&](const Holding &h) { return h.summands != from.front().summands; }))
        return std::nullopt;
    const auto holds = [&](const Holding &h) { return contains(h.box, first.box); };
    SpreadRoles roles;
    for (const Holding &h : from)
        if (holds(h) && !roles.root)
            roles.root = &h;
    if (!roles.root)
        return std::nullopt;
    roles.members.push_back(roles.root->device);
    for (const Need &need : needs)
        if (std::none_of(from.begin(), from.end(),
                [&](const Holding &h) { return h.device == need.device && holds(h); }))
            roles.members.push_back(need.device);
    if (roles.members.size() < 3)
        return std::nullopt;
    return roles;
}

} // namespace

std::optional<double> Materializer::spreadSeconds(
    const std::vector<Holding> &from, const std::vector<Need> &needs, const Task &task) const
{
    const auto roles = spreadRolesOf(from, needs);
    if (!roles)
        return std::nullopt;
    const IndexMask &box = needs.front().box;
    const Bytes bytes{elementCount(shapeOf(box)) * sizeOf(task.dataType)};
    return (roles->root->box == box ? 0 : m_costs.copy(bytes, m_cluster.classOf(roles->root->device)))
        + m_costs.collective(CollectiveKind::Broadcast, bytes, groupShape(m_cluster, roles->members));
}

std::optional<std::vector<Holding>> Materializer::spread(
    const std::vector<Holding> &from, const std::vector<Need> &needs, const Task &task)
{
    const auto seconds = spreadSeconds(from, needs, task);
    if (!seconds)
        return std::nullopt;
    if (const auto otherwise = generalSeconds(from, needs, task); otherwise && *otherwise <= *seconds)
        return std::nullopt;
    const auto roles = spreadRolesOf(from, needs);
    const IndexMask &box = needs.front().box;
    std::vector<Holding> received;
    broadcast(select(*roles->root, box, task), roles->members, task, received);
    for (const Need &need : needs) // who had it already
        if (std::find(roles->members.begin(), roles->members.end(), need.device) == roles->members.end())
            received.push_back(
                select(*std::find_if(from.begin(), from.end(),
                           [&](const Holding &h) { return h.device == need.device && contains(h.box, box); }),
                    box, task));
    return received;
}

} // namespace planloom
