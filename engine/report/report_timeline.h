#pragma once

#include "engine/report/report.h"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace planloom {

/// What colours the spans of a report tell apart.
enum class SpanClass : std::uint8_t {
    Forward,
    Backward,
    WeightGradient,
    Recompute,
    Optimizer,
    Other, ///< Loads, slices, sums and copies.
    AllReduce,
    AllGather,
    ReduceScatter,
    AllToAll,
    OtherCollective,
    Message,
    HostCopy,
};
constexpr std::size_t kSpanClassCount = static_cast<std::size_t>(SpanClass::HostCopy) + 1;
const char *nameOf(SpanClass spanClass); ///< "weight gradient": for legends.
const char *colourOf(SpanClass spanClass); ///< "weight": the style sheet's "--weight".

SpanClass spanClassOf(const ExecutionPlan &plan, const Segment &segment, const Instruction &instruction);

/// Spans of one queue, in order, as columns: what a report's script unpacks.
struct ReportLane {
    QueueKind queue{};
    std::vector<std::int64_t> gap{}; ///< Nanoseconds since the end of the one before.
    std::vector<std::int64_t> duration{};
    std::vector<SpanClass> spanClass{};
    std::vector<std::int32_t> name{}; ///< Index into `ReportNames`.
    std::vector<std::int32_t> microBatch{}; ///< -1 where it runs once a step.
    std::vector<std::size_t> row{}; ///< Of the timeline's spans: the first that it stands for.
};

/// Names that lanes share.
class ReportNames
{
public:
    std::int32_t indexOf(const std::string &name);
    const std::vector<std::string> &all() const { return m_names; }

private:
    std::vector<std::string> m_names{};
    std::map<std::string, std::int32_t> m_known{};
};

/// Devices that do the same at the same moments.
struct ReportLanes {
    std::vector<std::int32_t> devices{}; ///< Within a unit, ascending.
    std::vector<ReportLane> lanes{}; ///< Those with spans, by queue.
};

/// By class of devices, in the order of their first ones. O(spans of one device of each class)
std::vector<ReportLanes> lanesOf(const ReportedPlan &plan, ReportNames &names);
/// The same, span by span or as blocks whatever their number.
std::vector<ReportLanes> lanesOf(const ReportedPlan &plan, ReportNames &names, bool asBlocks);
/// Spans that are drawn one by one where none are drawn as blocks.
std::size_t distinctSpans(const ReportedPlan &plan);

/// A memory curve in few steps, none of which is below what the curve has in its stretch of the step.
/// @return bytes
std::vector<std::int64_t> memorySteps(const MemoryCurve &curve, Nanoseconds step, std::size_t steps);

/// One lane as a page's script unpacks it.
nlohmann::json laneJson(const ReportLane &lane);
/// A plan's step, its devices, and the lanes and memory of each of `kinds`, in their order.
nlohmann::json planJson(const ReportedPlan &plan, const std::vector<ReportLanes> &kinds);

/// The data of all timelines, as JSON.
std::string timelineJson(const Report &report);

} // namespace planloom
