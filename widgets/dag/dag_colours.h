#pragma once

#include <QtCore/QString>
#include <QtGui/QColor>

#include "engine/plan/plan.h"
#include "widgets/common/palette.h"
#include "widgets/dag/visible_graph.h"

#include <memory>
#include <vector>

namespace planloom {

/// What colours of nodes mean.
enum class ColourBy : std::uint8_t { Device, Stage, Kind, Time };
constexpr int kColourByCount = 4;
QString nameOf(ColourBy colourBy); ///< "Device", for menus and the legend.

/// What is known of operators besides the graph; each part may be missing.
struct OperatorFacts {
    std::shared_ptr<const Plan> plan{};
    std::vector<double> seconds{}; ///< By operator, one training step; empty if unknown.
};

/// A share of a box's colour bar.
struct ColourShare {
    QRgb colour = 0;
    float share = 1;
};

/// Colours of one box: shares sum to 1, the largest first.
struct BoxColours {
    std::vector<ColourShare> shares{};
    QString badge{}; ///< "0–3": devices, or "S2": stage; empty without a plan.
    QRgb main() const { return shares.front().colour; }
};

struct LegendEntry {
    QColor colour;
    QString text;
};

struct DagColours {
    std::vector<BoxColours> boxes{};
    std::vector<LegendEntry> legend{};
    QString title{}; ///< Of the legend.
    bool scale = false; ///< The legend is a scale from its first entry to its last.
};

/// "0–3, 6": ascending indices with runs joined.
QString rangesOf(std::vector<std::int32_t> indices);

/// Devices of all parts of an operator, ascending, each once; empty without a decision.
std::vector<std::int32_t> devicesOf(const Plan &plan, OperatorId op);

/// Colours of everything in sight. O(units + boxes).
DagColours coloursOf(const DagOutline &outline, const VisibleGraph &visible, const OperatorFacts &facts,
    ColourBy colourBy, const Palette &palette);

} // namespace planloom
