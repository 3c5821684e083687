#pragma once

#include <QtCore/QString>
#include <QtGui/QColor>

#include "engine/plan/plan.h"
#include "widgets/common/operator_change.h"
#include "widgets/common/palette.h"
#include "widgets/dag/visible_graph.h"

#include <map>
#include <memory>
#include <vector>

namespace planloom {

/// What colours of nodes mean.
enum class ColourBy : std::uint8_t {
    Device,
    Stage,
    Kind,
    Time, ///< Compute time of a step.
    Memory, ///< Bytes of outputs; a group's are the sum, as of the next two.
    Communication, ///< Bytes sent for it.
    Slack, ///< Seconds an operator may be late without making the step longer; a group's is its least.
    DecidedBy, ///< Default, rows of others, or a row of its own.
    Error, ///< Measured over predicted time; a group's is the mean.
    Difference, ///< `OperatorChange` of each operator, for comparing two plans.
};
constexpr int kColourByCount = 10;
QString nameOf(ColourBy colourBy); ///< "Device", for menus and the legend.

/// What is known of operators besides the graph; each part may be missing.
struct OperatorFacts {
    std::shared_ptr<const Plan> plan{};
    std::vector<double> seconds{}; ///< By operator, one training step; empty if unknown.
    /// Values by operator for colourings that are not known from graph and plan; NaN where there is none.
    std::map<ColourBy, std::vector<double>> values{};
};

/// Values by operator of a colouring that has values; empty if they are not known.
std::vector<double> valuesOf(const Graph &graph, const OperatorFacts &facts, ColourBy colourBy);
/// True for colourings on a scale.
bool hasScale(ColourBy colourBy);
/// "1.25 ms", "64 MiB", "1.3×".
QString valueText(ColourBy colourBy, double value);

/// A share of a box's colour bar.
struct ColourShare {
    QRgb colour = 0;
    float share = 1;
    std::int32_t key = -1; ///< Of its legend entry; -1 for what has none.
};

/// Colours of one box: shares sum to 1, the largest first.
struct BoxColours {
    std::vector<ColourShare> shares{};
    QString badge{}; ///< "0–3": devices, or "S2": stage, or a value; empty without a plan.
    std::int32_t copies = 1; ///< It stands for ...
    std::int32_t deviating = 0; ///< ... of which so many are planned differently from the others.
    DecidedBy decidedBy = DecidedBy::Default; ///< The least of its operators; Default for an open group.
    QRgb main() const { return shares.front().colour; }
};

struct LegendEntry {
    QColor colour;
    QString text;
    std::int32_t key = -1; ///< Of the shares it explains.
};

struct DagColours {
    std::vector<BoxColours> boxes{};
    std::vector<LegendEntry> legend{};
    QString title{}; ///< Of the legend.
    bool scale = false; ///< The legend is a scale from its first entry to its last.
};

/// Colours of everything in sight. O(units + boxes).
DagColours coloursOf(const DagOutline &outline, const VisibleGraph &visible, const OperatorFacts &facts,
    ColourBy colourBy, const Palette &palette);

} // namespace planloom
