#pragma once

#include <QtWidgets/QAbstractScrollArea>

#include "widgets/common/selection_model.h"
#include "widgets/compare/compare_result.h"
#include "widgets/compare/compared_lanes.h"

#include <optional>
#include <vector>

class QPainter;

namespace planloom {

struct Palette;

/// Two timelines in one picture, lane by lane: A in the upper half, B in the lower one. Either all of them
/// (butterfly), or only what is not at its place, with arrows from the old place to the new one (difference).
///
/// Ctrl+wheel, W and S zoom; wheel, A and D move in time with Shift; Home fits; a click selects the operator.
class ComparedTimeline : public QAbstractScrollArea
{
    Q_OBJECT
public:
    enum class Mode { Difference, Butterfly };

    /// @param selection  shared with the other views; must outlive this one
    explicit ComparedTimeline(SelectionModel *selection, QWidget *parent = nullptr);

    void setResult(CompareSnapshot result);
    void setMode(Mode mode);
    Mode mode() const { return m_mode; }

    const TimeAxis &axis() const { return m_axis; }
    /// Does not report back.
    void setAxis(const TimeAxis &axis);
    /// B's times are drawn this much earlier, so that an event of both is at one place. The ruler is A's.
    void setShift(double nanoseconds);
    double shift() const { return m_shift; }
    const std::vector<ComparedLane> &lanes() const { return m_lanes; }
    /// Arrows drawn in the last picture.
    int arrowCount() const { return m_arrows; }
    /// Where a span of A, or of B, is; nothing if it is off the screen. In the viewport.
    std::optional<QRectF> rectOf(bool ofB, std::size_t row) const;

Q_SIGNALS:
    void axisChanged(const planloom::TimeAxis &axis);

protected:
    void paintEvent(QPaintEvent *event) override;
    void resizeEvent(QResizeEvent *event) override;
    void wheelEvent(QWheelEvent *event) override;
    void keyPressEvent(QKeyEvent *event) override;
    void mousePressEvent(QMouseEvent *event) override;
    void mouseMoveEvent(QMouseEvent *event) override;
    void mouseReleaseEvent(QMouseEvent *event) override;
    bool viewportEvent(QEvent *event) override;
    void changeEvent(QEvent *event) override;
    void scrollContentsBy(int dx, int dy) override;

private:
    struct Found {
        bool ofB = false;
        std::size_t row = 0;
    };
    int header() const;
    int ruler() const;
    int half() const; ///< Height of one plan's compute part of a lane.
    int leastHalf() const; ///< At which it can be read well.
    int strip() const; ///< Height of one plan's communication part, with its tracks; 0 where lanes are tight.
    int leastStrip() const;
    int roomOfLane() const; ///< If all are in sight.
    bool isTight() const; ///< There is no room for all lanes as they are read well.
    int air() const; ///< Above and below a lane.
    int gap() const; ///< Between both parts: room for arrows.
    int laneHeight() const;
    int topOf(std::size_t lane) const; ///< In the viewport.
    double extent() const;
    TimeAxis axisOf(bool ofB) const;
    double canvasWidth() const;
    void moveAxis(const TimeAxis &axis);
    void relayout();
    std::optional<Found> findAt(QPoint position) const;
    QString tooltipOf(const Found &found) const;
    /// From the upper edge of a lane in the viewport: where one plan's spans of a queue are.
    TrackPlace placeOf(const ComparedLane &lane, bool ofB, QueueKind queue) const;
    void paintHalf(QPainter &painter, const Palette &palette, const ComparedLane &lane, bool ofB, int top);
    void paintArrows(QPainter &painter, const Palette &palette);

    SelectionModel *m_selection;
    CompareSnapshot m_result;
    std::vector<ComparedLane> m_lanes;
    std::vector<std::int32_t> m_laneOfDevice; ///< Index into m_lanes.
    int m_mostTracks = 1; ///< Of any lane.
    Mode m_mode = Mode::Difference;
    TimeAxis m_axis;
    double m_shift = 0; ///< Nanoseconds.
    bool m_fitted = true;
    int m_arrows = 0;
    std::optional<QPoint> m_pressed;
    TimeAxis m_axisPressed;
    bool m_dragged = false;
};

} // namespace planloom
