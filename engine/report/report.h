#pragma once

#include "engine/hardware/cluster.h"
#include "engine/lowering/program/execution_plan.h"
#include "engine/simulate/timeline.h"
#include "engine/table/table.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace planloom {

/// A plan with all that a report says of it.
struct ReportedPlan {
    std::string name{}; ///< Of its file or session, for people.
    ExecutionPlan plan{};
    Cluster cluster{}; ///< The whole one.
    Timeline timeline{}; ///< Of `plan` on `cluster`, with spans.
    std::optional<ConstraintTable> rows{}; ///< Nothing where the plan does not say of which rows it is.
};

/// A table that stands at the end of a report: of what only the caller knows.
struct ReportTable {
    std::string title{};
    std::string about{}; ///< A sentence; may be empty.
    std::vector<std::string> headings{};
    std::vector<std::vector<std::string>> rows{};
};

/// What a report is of.
struct Report {
    std::vector<ReportedPlan> plans{}; ///< One; or two, of which the second is held against the first.
    std::vector<ReportTable> tables{};
};

/// Devices of which a timeline is drawn one by one; of more, those that do the same at the same moments share
/// one.
constexpr std::size_t kMostDrawnDevices = 64;
/// Spans of one plan that are drawn one by one; of more, those of a block that follow one another are one.
constexpr std::size_t kMostDrawnSpans = 60'000;
/// Lanes of communication in a table; the others are counted.
constexpr std::size_t kMostListedLines = 60;

/// The report as one HTML file, with nothing beside it: styles, script and data are inside, nothing is
/// fetched. Equal reports are equal texts. All that models and rows say in it is escaped. Below 5 MB for 64
/// devices.
/// @param report  with one plan or two
/// O(spans + operators log operators). Thread-safe.
std::string htmlOf(const Report &report);

/// The same for paper, as HTML that Qt's text documents understand: tables alone, without styles and script.
/// Pictures stand where `<img src="timeline:0">` (and "timeline:1") and `<img src="graph:">` do.
std::string printedHtml(const Report &report);

/// The model of the last plan as SVG, with what it does otherwise than the first one marked; empty where it
/// is too large (report_graph.h).
std::string reportGraphSvg(const Report &report);

/// Whether the report's timeline draws blocks in place of operators.
bool drawsBlocks(const ReportedPlan &plan);

} // namespace planloom
