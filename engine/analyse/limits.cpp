#include "engine/analyse/limits.h"

#include "engine/base/nearest_name.h"
#include "engine/base/words.h"
#include "engine/graph/operators/storage_types.h"
#include "engine/simulate/link_traffic.h"
#include "engine/simulate/summary.h"

namespace planloom {

namespace {

std::string formatLimit(LimitRule::Kind kind, std::int64_t value, int digits)
{
    return kind == LimitRule::Kind::Time ? formatNanoseconds(value, digits) : formatBytes({value}, digits);
}

/// Both amounts with enough digits to tell them apart.
std::pair<std::string, std::string> apart(LimitRule::Kind kind, std::int64_t one, std::int64_t other)
{
    int digits = 3;
    while (digits < 17 && one != other && formatLimit(kind, one, digits) == formatLimit(kind, other, digits))
        ++digits;
    return {formatLimit(kind, one, digits), formatLimit(kind, other, digits)};
}

/// What a limit row is held against, and on which device, card, node ...
struct Measured {
    std::int64_t value = 0;
    std::size_t device = 0;
    std::string links{}; ///< Of what level; empty for a device as a whole.
};

/// @return nothing where there are no links of the name
std::optional<Measured> measure(const LimitRule &limit, const Timeline &timeline)
{
    if (limit.kind == LimitRule::Kind::Time)
        return Measured{timeline.step.count(), 0};
    Measured most;
    if (limit.kind == LimitRule::Kind::Traffic && limit.links.empty()) {
        const TimelineSummary summary = summaryOf(timeline);
        for (std::size_t d = 0; d < summary.devices.size(); ++d)
            if (summary.devices[d].sent.count > most.value)
                most = {summary.devices[d].sent.count, d};
        return most;
    }
    if (limit.kind == LimitRule::Kind::Traffic) {
        if (!mostCarried({}, timeline.links, limit.links))
            return std::nullopt;
        for (const LevelTraffic &level : timeline.links)
            if (mostCarried({}, {level}, limit.links) && level.most.count >= most.value)
                most = {level.most.count, static_cast<std::size_t>(level.index), level.links};
        return most;
    }
    for (std::size_t d = 0; d < timeline.memory.size(); ++d)
        if (timeline.memory[d].peak.count > most.value)
            most = {timeline.memory[d].peak.count, d};
    return most;
}

/// "device 3", "node 1", "network card 12"
std::string carrierOf(const Measured &measured)
{
    const std::string what = measured.links.empty() ? "device"
        : measured.links == "card"                  ? "network card"
                                                    : measured.links;
    return what + ' ' + std::to_string(measured.device);
}

/// Where to, of links: " inside its node", " to other nodes".
std::string wayOf(const Measured &measured)
{
    if (measured.links.empty())
        return {};
    return measured.links == "device"                          ? " inside its node"
        : measured.links == "card" || measured.links == "node" ? " to other nodes"
                                                               : " to others";
}

Error noSuchLinks(const LimitRule &limit, const Timeline &timeline, RowId row)
{
    std::vector<std::string_view> known{"link"};
    std::string names;
    for (const LevelTraffic &level : timeline.links) {
        known.push_back(level.links);
        names += (names.empty() ? "" : ", ") + level.links;
    }
    const auto nearest = nearestNames(limit.links, known);
    return {ErrorCode::InvalidInput, "the cluster has no links of '" + limit.links + "': it has " + names,
        nearest.empty() ? "name one of these, or write per link" : "did you mean '" + nearest.front() + "'?",
        placeOf(row, "rule")};
}

template<typename Visit> void forEachLimit(const ConstraintTable &table, Visit visit)
{
    for (std::size_t i = 0; i < table.rows.size(); ++i)
        if (const auto *limit = std::get_if<LimitRule>(&table.rows[i].rule); limit && table.rows[i].enabled)
            visit(i, *limit);
}

} // namespace

std::vector<BrokenLimit> brokenLimits(const ConstraintTable &table, const Timeline &timeline)
{
    std::vector<BrokenLimit> broken;
    forEachLimit(table, [&](std::size_t i, const LimitRule &limit) {
        const RowId row{static_cast<std::int32_t>(i)};
        const auto found = measure(limit, timeline);
        if (!found)
            broken.push_back({row, noSuchLinks(limit, timeline, row), 0});
        if (!found || found->value <= limit.value)
            return;
        const Measured &measured = *found;
        const auto [needs, allows] = apart(limit.kind, measured.value, limit.value);
        Error error{ErrorCode::ResourceLimit, {}, {}, placeOf(row, "rule")};
        if (limit.kind == LimitRule::Kind::Memory) {
            error.message = "device " + std::to_string(measured.device) + " needs " + needs
                + " at its peak, the row allows " + allows;
            error.advice = "split or recompute more, hold fewer micro-batches in flight, or raise the limit";
        } else if (limit.kind == LimitRule::Kind::Traffic) {
            error.message = carrierOf(measured) + " sends " + needs + wayOf(measured)
                + " in a step, the row allows " + allows;
            error.advice = "cut what is exchanged less, reduce gradients less often, or raise the limit";
        } else {
            error.message = "the step takes " + needs + ", the row allows " + allows;
            error.advice = "use more devices, balance the stages, or raise the limit";
        }
        broken.push_back({row, std::move(error), measured.value});
    });
    return broken;
}

std::vector<std::string> limitRemarks(const ConstraintTable &table, const Timeline &timeline)
{
    std::vector<std::string> remarks(table.rows.size());
    forEachLimit(table, [&](std::size_t i, const LimitRule &limit) {
        const auto measured = measure(limit, timeline);
        if (!measured || measured->value > limit.value)
            return;
        const auto [needs, allows] = apart(limit.kind, measured->value, limit.value);
        remarks[i] = (limit.kind == LimitRule::Kind::Memory        ? "peak "
                             : limit.kind == LimitRule::Kind::Time ? "step "
                                                                   : "sent ")
            + needs + " of " + allows;
    });
    return remarks;
}

Bytes leastMemory(const Plan &plan, std::int32_t devices)
{
    const Graph &graph = *plan.graph;
    std::vector<Precision> precisions;
    std::vector<bool> passedBy(graph.tensors.size(), false); // on the host, or made within the step
    for (std::size_t o = 0; o < plan.decisions.size(); ++o) {
        precisions.push_back(plan.decisions[o].precision);
        if (graph.operators[o].direction == Direction::Optimizer && plan.decisions[o].offloaded)
            for (const TensorId input : graph.operators[o].inputs)
                if (input)
                    passedBy[at(input)] = true;
        for (const TensorId output : graph.operators[o].outputs)
            if (output)
                passedBy[at(output)] = true;
    }
    const StorageTypes types(graph, precisions);
    std::int64_t bytes = 0;
    for (std::size_t t = 0; t < graph.tensors.size(); ++t) {
        const Tensor &tensor = graph.tensors[t];
        if ((tensor.role == TensorRole::Weight || tensor.role == TensorRole::OptimizerState) && !passedBy[t])
            bytes += elementCount(tensor.type.shape) * sizeOf(types.carried({static_cast<std::int32_t>(t)}));
    }
    return {(bytes + devices - 1) / devices};
}

MemoryUse memoryUse(const TimelineSummary &summary, const Cluster &cluster, const ScaleUnits &units)
{
    MemoryUse use;
    double most = -1;
    for (std::size_t d = 0; d < summary.devices.size(); ++d) {
        const auto device = static_cast<std::int32_t>(d);
        const Bytes peak = summary.devices[d].peak;
        const double memory = memoryOf(cluster, units, device);
        const auto bytes = static_cast<double>(peak.count);
        use.over += bytes > memory ? 1 : 0;
        if (memory > 0 && bytes / memory > most) {
            most = bytes / memory;
            use = {device, peak, Bytes{static_cast<std::int64_t>(memory)}, use.over};
        }
    }
    return use;
}

std::optional<Error> hostOverflow(
    const TimelineSummary &summary, const Cluster &cluster, const ScaleUnits &units)
{
    for (std::size_t d = 0; d < summary.devices.size(); ++d) {
        const DeviceId id = units.deviceOf(0, DeviceId{static_cast<std::int32_t>(d)});
        const Bytes share{static_cast<std::int64_t>(cluster.deviceAt(id).hostMemory.value)};
        const Bytes peak = summary.devices[d].hostPeak;
        if (share.count > 0 && peak.count > share.count)
            return Error{ErrorCode::ResourceLimit,
                "device " + std::to_string(d) + " keeps " + formatBytes(peak)
                    + " in host memory, its share of it is " + formatBytes(share),
                "offload fewer layers, or split weights over more devices", "memory"};
    }
    return std::nullopt;
}

} // namespace planloom
