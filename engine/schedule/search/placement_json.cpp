#include "engine/schedule/search/placement_json.h"

#include "engine/base/ids.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <map>

namespace planloom {

namespace {

using Json = nlohmann::json;

Error wrongPlacement(std::string where, std::string message, std::string advice = {})
{
    return {ErrorCode::InvalidInput, std::move(message), std::move(advice), std::move(where)};
}

/// "an integer", "a text": what stands there instead.
std::string foundWords(const Json &value)
{
    const std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
    return ", found " + (text.size() > 40 ? text.substr(0, 37) + "..." : text);
}

Result<std::int64_t> wholeNumber(
    const Json &value, const std::string &where, std::int64_t least, std::int64_t most)
{
    const bool whole = value.is_number_integer()
        || (value.is_number_float() && std::nearbyint(value.get<double>()) == value.get<double>());
    const double rough = value.is_number() ? value.get<double>() : 0;
    if (!whole || rough < static_cast<double>(least) || rough > static_cast<double>(most))
        return wrongPlacement(where,
            "expected a whole number from " + std::to_string(least) + " to " + std::to_string(most)
                + foundWords(value),
            value.is_number_float() ? "measure in a smaller unit, nanoseconds for one" : "");
    return value.is_number_integer() ? value.get<std::int64_t>() : static_cast<std::int64_t>(rough);
}

Result<std::int64_t> member(const Json &object, const char *key, const std::string &where,
    std::optional<std::int64_t> fallback, std::int64_t least, std::int64_t most)
{
    const auto found = object.find(key);
    if (found != object.end())
        return wholeNumber(*found, where + key, least, most);
    if (fallback)
        return *fallback;
    return wrongPlacement(where + key, "expected a whole number, found nothing");
}

Result<void> knownMembers(
    const Json &object, std::initializer_list<std::string_view> known, const std::string &where)
{
    std::string names;
    for (const std::string_view each : known)
        names += (names.empty() ? "" : ", ") + std::string(each);
    if (!object.is_object())
        return wrongPlacement(
            where.empty() ? "placement" : where, "expected an object with " + names + foundWords(object));
    for (const auto &[key, value] : object.items())
        if (std::find(known.begin(), known.end(), key) == known.end())
            return wrongPlacement(where + key, "nothing here is called \"" + key + "\"", "known: " + names);
    return {};
}

Result<std::string> textMember(const Json &object, const char *key, const std::string &where)
{
    const auto found = object.find(key);
    if (found == object.end())
        return std::string{};
    if (!found->is_string())
        return wrongPlacement(where + key, "expected a text" + foundWords(*found));
    return found->get<std::string>();
}

Result<const Json *> listMember(const Json &object, const char *key)
{
    const auto found = object.find(key);
    if (found == object.end() || !found->is_array())
        return wrongPlacement(key,
            "expected a list, found " + std::string(found == object.end() ? "nothing" : found->type_name()));
    return &*found;
}

/// An option before the blocks that it names are known.
struct ReadOption {
    MemoryOption option{};
    std::int64_t until = 0; ///< An id.
    bool queued = false; ///< It says on which queue.
    bool queuedBack = false;
    std::string where{};
};

Result<ReadOption> optionFrom(
    const Json &object, OptionKind kind, const std::string &where, const PlacementBlock &block)
{
    const bool copies = kind == OptionKind::Offload;
    if (copies) {
        TRY_VOID(
            knownMembers(object, {"until", "time", "memory", "queue", "back_time", "back_queue"}, where));
    } else {
        TRY_VOID(knownMembers(object, {"until", "time", "memory"}, where));
    }
    ReadOption read{.where = where};
    read.option.kind = kind;
    TRY(read.until, member(object, "until", where, {}, -kMostPlacementTime, kMostPlacementTime));
    TRY(read.option.time, member(object, "time", where, {}, 1, kMostPlacementTime));
    TRY(read.option.memory, member(object, "memory", where, block.memory, 1, kMostPlacementTime));
    TRY(read.option.backTime,
        member(object, "back_time", where, copies ? read.option.time : 1, 1, kMostPlacementTime));
    read.queued = object.contains("queue");
    read.queuedBack = object.contains("back_queue");
    TRY(const auto queue, member(object, "queue", where, 0, 0, kMostPlacementBlocks));
    TRY(const auto back, member(object, "back_queue", where, 0, 0, kMostPlacementBlocks));
    read.option.queue = static_cast<std::int32_t>(queue);
    read.option.backQueue = static_cast<std::int32_t>(back);
    return read;
}

/// One option, or a list of them.
Result<void> readOptions(const Json &object, OptionKind kind, const std::string &where,
    const PlacementBlock &block, std::int32_t index, std::vector<ReadOption> &options)
{
    const auto found = object.find(nameOf(kind));
    if (found == object.end())
        return {};
    const std::string own = where + nameOf(kind) + "/";
    const std::size_t first = options.size();
    if (!found->is_array()) {
        TRY(options.emplace_back(), optionFrom(*found, kind, own, block));
    } else {
        for (std::size_t i = 0; i < found->size(); ++i) {
            TRY(options.emplace_back(), optionFrom((*found)[i], kind, own + std::to_string(i) + "/", block));
        }
    }
    for (std::size_t o = first; o < options.size(); ++o)
        options[o].option.block = index;
    return {};
}

/// Gives the options the blocks and queues that they are for.
Result<void> joinOptions(std::vector<ReadOption> options, const std::map<std::int64_t, std::int32_t> &indexOf,
    Placement &placement)
{
    std::int32_t last = 0; // queue
    for (const PlacementBlock &block : placement.blocks)
        last = std::max(last, block.queue);
    for (const ReadOption &read : options)
        last = std::max({last, read.option.queue, read.option.backQueue});
    for (ReadOption &read : options) {
        const auto until = indexOf.find(read.until);
        if (until == indexOf.end())
            return wrongPlacement(read.where + "until", "there is no block " + std::to_string(read.until),
                "the id of the block that needs it again");
        read.option.until = until->second;
        if (read.option.kind == OptionKind::Offload) {
            read.option.queue = read.queued ? read.option.queue : last + 1;
            read.option.backQueue = read.queuedBack ? read.option.backQueue : read.option.queue;
        }
        placement.options.push_back(read.option);
    }
    return {};
}

Result<PlacementBlock> blockFrom(const Json &object, const std::string &where)
{
    TRY_VOID(knownMembers(object,
        {"id", "kind", "name", "devices", "queue", "time", "memory", "workspace", "gives_back", "once",
            "recompute", "offload"},
        where));
    PlacementBlock block;
    TRY(block.id, member(object, "id", where, {}, -kMostPlacementTime, kMostPlacementTime));
    TRY(block.kind, textMember(object, "kind", where));
    TRY(block.time, member(object, "time", where, {}, 1, kMostPlacementTime));
    TRY(block.memory, member(object, "memory", where, 0, -kMostPlacementTime, kMostPlacementTime));
    TRY(block.workspace, member(object, "workspace", where, 0, 0, kMostPlacementTime));
    TRY(const auto queue, member(object, "queue", where, 0, 0, kMostPlacementBlocks));
    block.queue = static_cast<std::int32_t>(queue);
    TRY(const std::string gives, textMember(object, "gives_back", where));
    if (!gives.empty() && gives != "start" && gives != "end")
        return wrongPlacement(where + "gives_back", "expected \"start\" or \"end\", found \"" + gives + "\"");
    block.givesBackAtEnd = gives == "end";
    if (const auto once = object.find("once"); once != object.end()) {
        if (!once->is_boolean())
            return wrongPlacement(where + "once", "expected true or false" + foundWords(*once));
        block.once = once->get<bool>();
    }
    const auto devices = object.find("devices");
    if (devices == object.end() || !devices->is_array())
        return wrongPlacement(where + "devices", "expected a list of devices");
    for (std::size_t i = 0; i < devices->size(); ++i) {
        TRY(const auto device,
            wholeNumber((*devices)[i], where + "devices/" + std::to_string(i), 0, kMostPlacementBlocks));
        block.devices.push_back(static_cast<std::int32_t>(device));
    }
    std::sort(block.devices.begin(), block.devices.end());
    return block;
}

} // namespace

Result<Placement> placementFromJson(std::string_view text)
{
    const Json json = Json::parse(text, nullptr, false);
    if (json.is_discarded())
        return wrongPlacement("placement", "this is no JSON", "a placement is one JSON object");
    TRY_VOID(knownMembers(json, {"name", "devices", "memory_limit", "blocks", "edges"}, ""));
    Placement placement;
    TRY(const auto devices, member(json, "devices", "", {}, 1, kMostPlacementBlocks));
    placement.devices = static_cast<std::int32_t>(devices);
    if (const auto limit = json.find("memory_limit"); limit != json.end() && limit->is_array()) {
        for (std::size_t d = 0; d < limit->size(); ++d) {
            TRY(const auto each,
                wholeNumber((*limit)[d], "memory_limit/" + std::to_string(d), 0, kMostPlacementTime));
            placement.memoryLimit.push_back(each);
        }
        if (limit->size() != at(placement.devices))
            return wrongPlacement("memory_limit",
                "expected " + std::to_string(devices) + " limits, one for each device, found "
                    + std::to_string(limit->size()));
    } else if (limit != json.end() && !limit->is_null()) {
        TRY(const auto each, wholeNumber(*limit, "memory_limit", 0, kMostPlacementTime));
        placement.memoryLimit.assign(at(placement.devices), each);
    }
    TRY(const Json *blocks, listMember(json, "blocks"));
    std::map<std::int64_t, std::int32_t> indexOf;
    std::vector<ReadOption> options;
    for (std::size_t b = 0; b < blocks->size(); ++b) {
        const std::string where = "blocks/" + std::to_string(b) + "/";
        TRY(PlacementBlock block, blockFrom((*blocks)[b], where));
        for (const OptionKind kind : {OptionKind::Recompute, OptionKind::Offload})
            TRY_VOID(readOptions((*blocks)[b], kind, where, block, static_cast<std::int32_t>(b), options));
        indexOf.emplace(block.id, static_cast<std::int32_t>(b));
        placement.blocks.push_back(std::move(block));
    }
    TRY_VOID(joinOptions(std::move(options), indexOf, placement));
    if (json.contains("edges")) {
        TRY(const Json *edges, listMember(json, "edges"));
        for (std::size_t e = 0; e < edges->size(); ++e) {
            const Json &edge = (*edges)[e];
            const std::string where = "edges/" + std::to_string(e);
            if (!edge.is_array() || edge.size() < 2 || edge.size() > 3)
                return wrongPlacement(
                    where, "expected the ids of two blocks, and perhaps a distance" + foundWords(edge));
            PlacementEdge read;
            for (const std::size_t end : {0, 1}) {
                TRY(const auto id,
                    wholeNumber(edge[end], where + "/" + std::to_string(end), -kMostPlacementTime,
                        kMostPlacementTime));
                const auto found = indexOf.find(id);
                if (found == indexOf.end())
                    return wrongPlacement(
                        where, "there is no block " + std::to_string(id), "edges join blocks by their ids");
                (end == 0 ? read.before : read.after) = found->second;
            }
            if (edge.size() == 3) {
                TRY(const auto distance, wholeNumber(edge[2], where + "/2", 0, kMostPlacementBlocks));
                read.distance = static_cast<std::int32_t>(distance);
            }
            placement.edges.push_back(read);
        }
    }
    TRY_VOID(validate(placement));
    return placement;
}

Json placementToJson(const Placement &placement)
{
    Json json{{"devices", placement.devices}, {"blocks", Json::array()}, {"edges", Json::array()}};
    if (!placement.memoryLimit.empty())
        json["memory_limit"] = placement.memoryLimit;
    for (const PlacementBlock &block : placement.blocks) {
        Json each{
            {"id", block.id}, {"devices", block.devices}, {"time", block.time}, {"memory", block.memory}};
        if (!block.kind.empty())
            each["kind"] = block.kind;
        if (block.queue != 0)
            each["queue"] = block.queue;
        if (block.givesBackAtEnd)
            each["gives_back"] = "end";
        if (block.workspace != 0)
            each["workspace"] = block.workspace;
        if (block.once)
            each["once"] = true;
        json["blocks"].push_back(std::move(each));
    }
    for (const MemoryOption &option : placement.options) {
        Json each{{"until", placement.blocks[at(option.until)].id}, {"time", option.time},
            {"memory", option.memory}};
        if (option.kind == OptionKind::Offload)
            each.update(
                {{"queue", option.queue}, {"back_time", option.backTime}, {"back_queue", option.backQueue}});
        Json &own = json["blocks"][at(option.block)][nameOf(option.kind)];
        if (own.is_null())
            own = Json::array();
        own.push_back(std::move(each));
    }
    for (const PlacementEdge &edge : placement.edges) {
        Json each{placement.blocks[at(edge.before)].id, placement.blocks[at(edge.after)].id};
        if (edge.distance != 0)
            each.push_back(edge.distance);
        json["edges"].push_back(std::move(each));
    }
    return json;
}

namespace {

Json choicesJson(const Placement &placement, const OptionChoices &choices)
{
    const Placement chosen = withOptions(placement, choices);
    const OptionChoices open = openOptions(placement);
    std::size_t copy = placement.blocks.size();
    Json list = Json::array();
    for (std::size_t b = 0; b < choices.size(); ++b) {
        if (open[b] != kOptionOpen)
            continue;
        Json &each = list.emplace_back(Json{{"id", placement.blocks[b].id}, {"choice", "kept"}});
        if (choices[b] < 0)
            continue;
        const MemoryOption &option = placement.options[at(choices[b])];
        each["choice"] = nameOf(option.kind);
        each["until"] = placement.blocks[at(option.until)].id;
        each["memory"] = option.memory;
        if (option.kind == OptionKind::Offload) {
            each["out"] = chosen.blocks[copy++].id;
            each["back"] = chosen.blocks[copy++].id;
        }
    }
    return list;
}

} // namespace

Json toJson(const Placement &whole, const ScheduleAnswer &answer)
{
    const Placement placement = withOptions(whole, answer.makespan.choices);
    const Placement repeated = withOptions(whole, answer.period.choices);
    const std::string count = std::to_string(answer.microBatches);
    const bool found = !answer.makespan.starts.empty();
    Json json{{"status", nameOf(answer.status)}, {"period", nullptr}, {"period_bound", nullptr},
        {"gap", nullptr}, {"micro_batches", answer.microBatches}, {"makespan", {{count, nullptr}}},
        {"makespan_bound", {{count, answer.makespan.bound}}}, {"blocks", Json::array()},
        {"repetend", Json::array()}, {"period_seconds", answer.periodSeconds}, {"seconds", answer.seconds}};
    if (!answer.period.none)
        json["period_bound"] = answer.period.bound;
    if (const auto &steady = answer.period.schedule) {
        json["period"] = steady->period;
        json["gap"] = 1 - static_cast<double>(answer.period.bound) / static_cast<double>(steady->period);
        for (std::size_t b = 0; b < steady->start.size(); ++b)
            if (!repeated.blocks[b].once)
                json["repetend"].push_back(
                    {{"id", repeated.blocks[b].id}, {"stage", steady->start[b] / steady->period},
                        {"phase", steady->start[b] % steady->period}});
    }
    if (answer.unit)
        json["unit"] = {{"micro_batches", answer.unit->microBatches}, {"period", answer.unit->period}};
    if (found) {
        json["makespan"][count] = answer.makespan.makespan;
        json["peak_memory"] = answer.figures.peakMemory;
        json["in_flight"] = answer.figures.inFlight;
        json["bubble"] = Json::array();
        for (const std::int64_t busy : answer.figures.busy)
            json["bubble"].push_back(
                1 - static_cast<double>(busy) / static_cast<double>(answer.figures.makespan));
    } else {
        json["peak_memory"] = nullptr;
        json["in_flight"] = nullptr;
    }
    for (const BlockStart &run : answer.makespan.starts)
        json["blocks"].push_back({{"id", placement.blocks[at(run.block)].id}, {"micro_batch", run.microBatch},
            {"start", run.start}});
    if (!whole.options.empty()) {
        json["choices"] = found ? choicesJson(whole, answer.makespan.choices) : Json();
        json["repetend_choices"] =
            answer.period.schedule ? choicesJson(whole, answer.period.choices) : Json();
    }
    return json;
}

} // namespace planloom
