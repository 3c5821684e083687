#pragma once

#include <QtWidgets/QAbstractScrollArea>

#include "widgets/scene/time_axis.h"
#include "widgets/trace/trace_document.h"

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace planloom {

/// A rank's event: indices into `Trace::ranks` and its events.
using TracePlace = std::pair<std::uint32_t, std::uint32_t>;

/// The lanes of all ranks on one clock. Ctrl and the wheel zoom, Shift and the wheel or a drag pan, + and -
/// zoom from the keyboard, Home shows all.
class TraceView : public QAbstractScrollArea
{
    Q_OBJECT
public:
    explicit TraceView(QWidget *parent = nullptr);

    /// What is in view stays where the new document has the same ranks, as the whole behind a first picture.
    void setDocument(TraceDocumentSnapshot document);
    const TraceDocumentSnapshot &document() const { return m_document; }
    /// What was predicted stands below each rank, and says what its instructions are; null: nothing was.
    void setMatch(TraceMatchSnapshot match);
    /// Selects an event and brings it into view, with as much again on either side.
    void reveal(TracePlace place);
    const std::optional<TracePlace> &selected() const { return m_selected; }
    /// The event at a point of the viewport.
    std::optional<TracePlace> placeAt(QPoint point) const;
    /// What an event is, in a few lines of plain text.
    QString textOf(TracePlace place) const;
    void fit();
    const TimeAxis &axis() const { return m_axis; }

Q_SIGNALS:
    void chosen(planloom::TracePlace place);

protected:
    void paintEvent(QPaintEvent *event) override;
    void resizeEvent(QResizeEvent *event) override;
    void wheelEvent(QWheelEvent *event) override;
    void mousePressEvent(QMouseEvent *event) override;
    void mouseMoveEvent(QMouseEvent *event) override;
    void mouseReleaseEvent(QMouseEvent *event) override;
    void keyPressEvent(QKeyEvent *event) override;
    bool viewportEvent(QEvent *event) override;

private:
    /// A lane in its place.
    struct Row {
        std::uint32_t rank = 0; ///< Index into `Trace::ranks`.
        std::uint32_t lane = 0;
        bool isPredicted = false; ///< Of what was predicted for the rank.
    };
    /// An event where it is seen.
    struct Hit {
        Row row{};
        std::uint32_t event = 0;
    };

    double extent() const;
    int headerWidth() const;
    int rulerHeight() const;
    int rowHeight() const;
    double canvasWidth() const;
    void zoom(double factor, double x);
    void setAxis(const TimeAxis &axis);
    void updateScrollBars();
    void paintRuler(QPainter &painter) const;
    void paintRow(QPainter &painter, const Row &row, int y) const;
    QColor colourOf(const Row &row, const TraceEvent &event) const;
    const RankTrace &traceOf(const Row &row) const;
    std::int64_t shiftOf(const Row &row) const;
    std::optional<Hit> hitAt(QPoint point) const;
    QString nameAt(const RankTrace &rank, const TraceEvent &event) const;
    QString textOf(const Hit &hit) const;
    void makeRows();

    TraceDocumentSnapshot m_document;
    TraceMatchSnapshot m_match;
    std::vector<Row> m_rows;
    TimeAxis m_axis;
    bool m_fitted = true; ///< All is in view, and stays so when the window is resized.
    bool m_scrolling = false; ///< The scroll bars are being set.
    std::optional<TracePlace> m_selected;
    std::optional<QPoint> m_pressed; ///< Where a drag goes on from.
    bool m_dragged = false;
};

} // namespace planloom

Q_DECLARE_METATYPE(planloom::TracePlace)
