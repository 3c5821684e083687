#pragma once

#include <QtCore/QString>
#include <QtGui/QFont>

#include "widgets/dag/dag_scene.h"

#include <array>
#include <memory>
#include <vector>

namespace planloom {

/// Widths of letters at the sizes nodes are written in, so that thousands of texts are measured without
/// shaping each. Immutable, usable from any thread.
class FontTable
{
public:
    /// @param font  its family and style are used, not its size
    explicit FontTable(const QFont &font);

    /// In scene units: bold at `kTitleSize`, plain at `kSubtitleSize`.
    double width(const QString &text, bool bold) const;
    /// `text` cut at its end with "…" to a width in scene units.
    QString elided(const QString &text, bool bold, double width) const;

private:
    std::array<std::array<float, 256>, 2> m_advance{};
    std::array<float, 2> m_other{}; ///< For letters beyond Latin-1.
};

/// Measures with a table that it keeps alive.
TextMeasure measureWith(std::shared_ptr<const FontTable> table);

/// The texts of a scene as they are painted, by box, cut to their boxes.
struct DagLabels {
    std::vector<QString> titles{};
    std::vector<QString> subtitles{};
    /// For the middle zooms, where letters are larger than their boxes allow.
    std::vector<QString> shortTitles{};
    std::vector<QString> farTitles{}; ///< Below them, where the backward operators' column is not drawn.
};
DagLabels labelsOf(const VisibleGraph &visible, const DagScene &scene, const FontTable &table);

} // namespace planloom
