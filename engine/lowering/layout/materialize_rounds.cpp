// Several boxes on every device: see `Materializer::convertInRounds`.

#include "engine/lowering/layout/materialize.h"

#include "engine/lowering/layout/box_algebra.h"

#include <algorithm>
#include <map>

namespace planloom {

namespace {

template<typename Each> using ByDevice = std::map<DeviceId, std::vector<Each>>;

/// Each device's, by box; replicas are dropped. Nothing where a device has several of one box.
template<typename Each, typename Same>
std::optional<ByDevice<Each>> byDeviceAndBox(const std::vector<Each> &all, const Same &same)
{
    ByDevice<Each> sorted;
    for (const Each &each : all) {
        auto &own = sorted[each.device];
        const auto place = std::lower_bound(
            own.begin(), own.end(), each, [](const Each &a, const Each &b) { return a.box < b.box; });
        if (place != own.end() && place->box == each.box) {
            if (!same(*place, each))
                return std::nullopt;
            continue;
        }
        own.insert(place, each);
    }
    return sorted;
}

/// How many every device has; 0 where they differ.
template<typename Each> std::size_t countOf(const ByDevice<Each> &all)
{
    const std::size_t count = all.begin()->second.size();
    return std::all_of(all.begin(), all.end(), [&](const auto &own) { return own.second.size() == count; })
        ? count
        : 0;
}

template<typename Each> std::vector<IndexMask> boxesOf(const std::vector<Each> &all)
{
    std::vector<IndexMask> boxes;
    for (const Each &each : all)
        if (std::find(boxes.begin(), boxes.end(), each.box) == boxes.end())
            boxes.push_back(each.box);
    return boxes;
}

template<typename Each> bool anyHasSeveral(const std::vector<Each> &all)
{
    std::vector<DeviceId> devices;
    for (const Each &each : all)
        devices.push_back(each.device);
    std::sort(devices.begin(), devices.end());
    return std::adjacent_find(devices.begin(), devices.end()) != devices.end();
}

/// Some device's boxes are no box together: else they are better brought as one.
template<typename Each> bool lieApart(const ByDevice<Each> &all)
{
    return std::any_of(
        all.begin(), all.end(), [](const auto &own) { return !tiledBox(boxesOf(own.second)); });
}

} // namespace

/// Where every device holds, or wants, as many boxes, those that come first of all devices are brought as one
/// layout, then those that come second, and so on: of a sequence in zigzags, the chunks of its first half lie
/// in the order of the devices, those of the second the other way round. What is wanted as one box is put
/// together, and what is held as one is cut.
/// @param raw  whose `raw` is `from`; null: it is in the task's type
/// @return nothing where one of the rounds is no layout, or boxes lie side by side
std::optional<std::vector<Holding>> Materializer::convertInRounds(
    const std::vector<Holding> &from, const std::vector<Need> &needs, const Task &task, Made *raw)
{
    if (!anyHasSeveral(from) && !anyHasSeveral(needs))
        return std::nullopt;
    const auto sameSummands = [](const Holding &a, const Holding &b) { return a.summands == b.summands; };
    auto held = byDeviceAndBox(from, sameSummands);
    const auto wanted = byDeviceAndBox(needs, [](const Need &, const Need &) { return true; });
    if (!held || !wanted || held->empty()
        || !std::equal(held->begin(), held->end(), wanted->begin(), wanted->end(),
            [](const auto &a, const auto &b) { return a.first == b.first; })
        || std::any_of(needs.begin(), needs.end(), [](const Need &need) { return !need.value.complete(); }))
        return std::nullopt;
    const std::size_t holds = countOf(*held);
    const std::size_t wants = countOf(*wanted);
    const std::size_t rounds = std::max(holds, wants);
    if (rounds < 2 || holds == 0 || wants == 0 || (holds > 1 && wants > 1 && holds != wants)
        || (!lieApart(*held) && !lieApart(*wanted)))
        return std::nullopt;
    struct Round {
        Task task{};
        std::vector<Holding> held{};
        PathFinder::Found found{};
    };
    std::vector<Round> planned;
    ByDevice<Need> covered;
    for (std::size_t r = 0; r < rounds; ++r) {
        Round round{task, {}, {}};
        std::vector<IndexMask> boxes;
        for (const auto &[device, own] : *held)
            boxes.push_back(holds > 1 ? own[r].box : wanted->at(device)[r].box);
        std::sort(boxes.begin(), boxes.end());
        boxes.erase(std::unique(boxes.begin(), boxes.end()), boxes.end());
        const auto whole = tiledBox(boxes);
        if (!whole)
            return std::nullopt;
        round.task.whole = *whole;
        std::vector<Cell> cells;
        for (const auto &[device, own] : *held) {
            const auto cut = intersection(own[holds > 1 ? r : 0].box, *whole);
            const auto want = intersection(wanted->at(device)[wants > 1 ? r : 0].box, *whole);
            if (!cut || !want || (wants > 1 && *want != wanted->at(device)[r].box))
                return std::nullopt;
            round.held.push_back(own[holds > 1 ? r : 0]);
            round.held.back().box = *cut;
            cells.push_back({*want, 0});
            covered[device].push_back({device, *want, {}});
        }
        auto found = m_paths.find(round.held, cells, *whole, task.dataType, task.combination);
        if (!found)
            return std::nullopt;
        round.found = *std::move(found);
        planned.push_back(std::move(round));
    }
    for (const auto &[device, own] : covered)
        if (wants == 1 && tiledBox(boxesOf(own)) != wanted->at(device).front().box)
            return std::nullopt;
    if (raw) // in the task's type, now that it is sure
        held = byDeviceAndBox(castRaw(*raw, task), sameSummands);
    ByDevice<Holding> pieces;
    std::size_t number = 0;
    for (Round &round : planned) {
        for (Holding &each : round.held)
            each = select(held->at(each.device)[holds > 1 ? number : 0], IndexMask(each.box), task);
        ++number;
        for (Holding &piece : along(round.found, round.held, round.task))
            pieces[piece.device].push_back(std::move(piece));
    }
    std::vector<Holding> result;
    for (auto &[device, own] : pieces) {
        if (wants == 1)
            result.push_back(concat(own, wanted->at(device).front().box, task));
        else
            result.insert(result.end(), own.begin(), own.end());
    }
    return result;
}

} // namespace planloom
